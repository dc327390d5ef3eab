/* Folders: those above a file, those where a user's own files belong, temporary ones; and names of files. */
#ifndef BASE_PATH_H
#define BASE_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* ---- making ------------------------------------------------------------------------------------------------------ */

/* How far it went, as bytes of the path up to the end of a folder. */
typedef struct base_making {
    size_t first; /* the first folder that was not there before: it and all below it were made; 0 when all were there */
    size_t failed; /* the one that can't be made, after a failure */
} base_making;

/* Makes a folder and those above it that are missing.  `mode` is mkdir's, less the umask: 0700 for what is this user's
 * alone, as the XDG base directory specification asks, 0777 for what the user names.  A link to a folder is one.
 * Returns 0 or an errno value, ENOTDIR when there is something else in the place of one; `making` may be NULL. */
int base_make_folders(const char *path, mode_t mode, base_making *making);
/* The same for the folders above a file. */
int base_make_folders_above(const char *path, mode_t mode, base_making *making);

/* Removes a folder with all that is in it, as far as that can be done; follows no links. */
void base_remove_folder(const char *path);

bool base_path_is_folder(const char *path);

/* ---- where things belong ----------------------------------------------------------------------------------------- */

/* What the XDG base directory specification tells apart. */
typedef enum base_place {
    BASE_CONFIG, /* $XDG_CONFIG_HOME/shoal, or ~/.config/shoal */
    BASE_STATE,  /* $XDG_STATE_HOME/shoal, or ~/.local/state/shoal */
    BASE_CACHE,  /* $XDG_CACHE_HOME/shoal, or ~/.cache/shoal */
} base_place;

/* The path of a file or folder of this user, of the whole place when `name` is NULL; makes nothing.  A user without a
 * home: SHOAL_USAGE, "PURPOSE: neither XDG_STATE_HOME nor HOME names a folder"; when `purpose` is NULL *out is. */
int base_user_path(char **out, base_place place, const char *name, const char *purpose);

/* $TMPDIR when it is an absolute path, or /tmp. */
const char *base_temporary_folder(void);
/* Makes a folder in it whose name starts so, for this user alone. */
int base_make_temporary_folder(char **out, const char *name);
/* A file without a name in $TMPDIR, /var/tmp or /tmp, for what may be large; -1 with errno.  *folder is the one it is
 * in, or can't be in. */
int base_open_temporary(const char **folder);

/* ---- names ------------------------------------------------------------------------------------------------------- */

/* What follows the last '/'. */
const char *base_path_name(const char *path);
/* Whether a path leads to a place below the folder it starts from: no segment is empty, "." or "..", and none holds a
 * control character. */
bool base_path_stays_below(const char *path);

#endif
