/* Names of files and keys of a store, each made from the other. */
#ifndef TRANSFER_NAMES_H
#define TRANSFER_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#include "store/store_place.h"

/* The last segment of a key, or of a path without the slashes at its end: "b" of "a/b" and of "a/b/"; "" when there is
 * none.  It is `*length` bytes long. */
const char *transfer_last(size_t *length, const char *name);
/* base/relative; just one of them when the other is empty, and no second slash when base ends with one. */
int transfer_join(char **out, const char *base, const char *relative);
/* SHOAL_INVALID, with a sentence that names the file, when `key` can't be one. */
int transfer_check_key(const char *key, const char *path);
/* SHOAL_INVALID when a key can't be the name of a file: a server may list what would lead out of the
 * folder.  `relative` is the end of the key that becomes the path. */
int transfer_check_path(const char *key, const char *relative);

/* The name of incomplete files, followed by 16 hexadecimal digits; no key is fetched to such a name, and no such file
 * is put. */
#define TRANSFER_PART_NAME ".shoal-part-"
bool transfer_is_part(const char *name);

/* SHOAL_USAGE when two of several sources have the same last segment: below one target only one would be left.  `shown`
 * is how the user called them. */
int transfer_check_distinct(const char *const *names, const char *const *shown, int count);

/* Whether of names in the order of their bytes one is to be a file and a folder at once, as 'a' is when there is
 * 'a/b'. */
typedef struct transfer_ancestors {
    char **names; /* those of which the last name is a continuation, letter by letter; the shortest first */
    size_t count, room;
} transfer_ancestors;

/* Takes note of the next name.  *above is the earlier name that it lies below, or NULL. */
int transfer_ancestors_next(transfer_ancestors *self, const char *name, const char **above);
void transfer_ancestors_release(transfer_ancestors *self);

/* The name of what a URL means, the same however it was written: az://acct/box/jobs.  And the names of several, and of
 * several paths, in one text. */
int transfer_name_place(char **out, const store_place *place);
int transfer_name_places(char **out, const store_place *places, int count);
int transfer_name_paths(char **out, const char *const *paths, int count);

#endif
