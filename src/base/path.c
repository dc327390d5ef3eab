/* Folders.  See path.h. */
#include "base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <shoal/error.h>

#include "base/memory.h"

/* ---- making ------------------------------------------------------------------------------------------------------ */

/* A disk that is only read may say so even of a folder that is there. */
static int make_one(bool *made, const char *path, mode_t mode)
{
    struct stat info;
    *made = mkdir(path, mode) == 0;
    int error = *made ? 0 : errno;
    if (*made)
        return 0;
    if (stat(path, &info) == 0)
        return S_ISDIR(info.st_mode) ? 0 : ENOTDIR;
    return error == EEXIST ? errno : error; /* a link that leads nowhere */
}

/* On the stack: nothing here fails for want of memory. */
static int make_folders(const char *path, size_t length, mode_t mode, base_making *making)
{
    char part[PATH_MAX];
    base_making ignored;
    making = making ? making : &ignored;
    *making = (base_making){0};
    while (length > 1 && path[length - 1] == '/')
        length--;
    if (length >= sizeof part) {
        making->failed = length;
        return ENAMETOOLONG;
    }
    memcpy(part, path, length);
    part[length] = '\0';
    for (size_t end = 0; end < length;) {
        bool made;
        end += 1 + strcspn(part + end + 1, "/");
        part[end] = '\0';
        int error = make_one(&made, part, mode);
        if (made && making->first == 0)
            making->first = end;
        if (error) {
            making->failed = end;
            return error;
        }
        if (end < length)
            part[end] = '/';
    }
    return 0;
}

int base_make_folders(const char *path, mode_t mode, base_making *making)
{
    return make_folders(path, strlen(path), mode, making);
}

int base_make_folders_above(const char *path, mode_t mode, base_making *making)
{
    return make_folders(path, (size_t)(base_path_name(path) - path), mode, making);
}

static int remove_entry(const char *path, const struct stat *about, int kind, struct FTW *where)
{
    (void)about, (void)kind, (void)where;
    (void)remove(path);
    return 0;
}

void base_remove_folder(const char *path)
{
    (void)nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

bool base_path_is_folder(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

/* ---- where things belong ----------------------------------------------------------------------------------------- */

int base_user_path(char **out, base_place place, const char *name, const char *purpose)
{
    static const struct {
        const char *variable, *below_home;
    } places[] = {
        [BASE_CONFIG] = {"XDG_CONFIG_HOME", "/.config"},
        [BASE_STATE] = {"XDG_STATE_HOME", "/.local/state"},
        [BASE_CACHE] = {"XDG_CACHE_HOME", "/.cache"},
    };
    const char *chosen = getenv(places[place].variable), *home = getenv("HOME");
    bool is_chosen = chosen && chosen[0] == '/'; /* others are to be ignored, says the specification */
    *out = NULL;
    if (!is_chosen && !(home && home[0] == '/'))
        return purpose
                   ? shoal_fail(SHOAL_USAGE, "%s: neither %s nor HOME names a folder", purpose, places[place].variable)
                   : SHOAL_OK;
    return base_format(out, "%s%s/shoal%s%s", is_chosen ? chosen : home, is_chosen ? "" : places[place].below_home,
                       name ? "/" : "", name ? name : "");
}

const char *base_temporary_folder(void)
{
    const char *chosen = getenv("TMPDIR");
    return chosen && chosen[0] == '/' ? chosen : "/tmp";
}

int base_make_temporary_folder(char **out, const char *name)
{
    int status = base_format(out, "%s/%s-XXXXXX", base_temporary_folder(), name);
    if (status == SHOAL_OK && !mkdtemp(*out)) {
        status = shoal_fail_errno(SHOAL_SYSTEM, errno, "%s: can't make a folder", *out);
        base_free(out);
    }
    return status;
}

static int open_unnamed(const char *folder)
{
    char name[PATH_MAX];
    int file = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (file >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL))
        return file;
    if (snprintf(name, sizeof name, "%s/shoal-XXXXXX", folder) >= (int)sizeof name) {
        errno = ENAMETOOLONG;
        return -1;
    }
    file = mkostemp(name, O_CLOEXEC); /* the file system has no O_TMPFILE */
    if (file >= 0)
        unlink(name);
    return file;
}

int base_open_temporary(const char **folder)
{
    const char *chosen = getenv("TMPDIR");
    bool is_chosen = chosen && *chosen;
    *folder = is_chosen ? chosen : "/var/tmp";
    int file = open_unnamed(*folder);
    if (file < 0 && !is_chosen)
        file = open_unnamed(*folder = "/tmp");
    return file;
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

const char *base_path_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

bool base_path_stays_below(const char *path)
{
    for (const char *at = path; *at; at++)
        if ((unsigned char)*at < ' ' || *at == 0x7f)
            return false;
    for (;;) {
        size_t length = strcspn(path, "/");
        if (length == 0 || (length == 1 && path[0] == '.') || (length == 2 && path[0] == '.' && path[1] == '.'))
            return false;
        if (path[length] == '\0')
            return true;
        path += length + 1;
    }
}
