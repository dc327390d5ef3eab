/* What a worker may read for jobs that it does not trust.  See job_roots.h. */
#include "engine/store/job_roots.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"

typedef struct root {
    char *text;   /* as it was given */
    char *folder; /* its path with all links resolved; NULL for a store */
    int opened;   /* that folder */
} root;

struct job_roots {
    root *root;
    size_t count;
};

/* ---- the list ---------------------------------------------------------------------------------------------------- */

static int open_root(root *self)
{
    char *path = NULL;
    int status = shoal_store_url_check(self->text);
    if (status == SHOAL_OK)
        status = shoal_store_url_folder(&path, self->text);
    if (status < 0)
        return shoal_fail(status, "--data-root: %s", shoal_error());
    char *real = path ? realpath(path, NULL) : NULL;
    if (real) {
        status = base_copy_text(&self->folder, real);
        self->opened = open(real, O_PATH | O_DIRECTORY | O_CLOEXEC);
    }
    if (path && status == SHOAL_OK && self->opened < 0)
        status = shoal_fail_errno(SHOAL_USAGE, errno, "--data-root %s: is not a folder that can be opened", path);
    free(real);
    shoal_text_free(&path);
    return status;
}

int job_roots_new(job_roots **out, const char *list)
{
    job_roots *roots = NULL;
    *out = NULL;
    int status = base_alloc(&roots, 1, sizeof *roots, "roots of data");
    for (const char *at = list; status == SHOAL_OK && at && *at;) {
        size_t length = strcspn(at, ",");
        status = base_grow(&roots->root, roots->count, roots->count + 1, sizeof *roots->root, "roots of data");
        if (status < 0)
            break;
        root *next = &roots->root[roots->count++];
        next->opened = -1;
        status = base_copy_text_n(&next->text, at, length);
        if (status == SHOAL_OK)
            status = open_root(next);
        at += length + (at[length] == ',');
    }
    if (status < 0)
        job_roots_free(&roots);
    *out = roots;
    return status;
}

void job_roots_free(job_roots **inout)
{
    job_roots *roots = *inout;
    if (!roots)
        return;
    for (size_t i = 0; i < roots->count; i++) {
        base_free(&roots->root[i].text);
        base_free(&roots->root[i].folder);
        if (roots->root[i].opened >= 0)
            close(roots->root[i].opened);
    }
    base_free(&roots->root);
    base_free(inout);
}

/* ---- folders ----------------------------------------------------------------------------------------------------- */

/* What a path without links has after a folder's, "" for the folder itself; NULL when it does not lie there. */
static const char *path_behind(const char *path, const char *folder)
{
    size_t length = strcmp(folder, "/") == 0 ? 0 : strlen(folder);
    if (strncmp(path, folder, length) != 0 || (path[length] != '/' && path[length] != '\0'))
        return NULL;
    return path + length + strspn(path + length, "/");
}

static const root *find_folder(const job_roots *roots, const char *path)
{
    for (size_t i = 0; i < roots->count; i++)
        if (roots->root[i].folder && path_behind(path, roots->root[i].folder))
            return &roots->root[i];
    return NULL;
}

static bool may_read_all(const job_roots *roots)
{
    for (size_t i = 0; i < roots->count; i++)
        if (roots->root[i].folder && strcmp(roots->root[i].folder, "/") == 0)
            return true;
    return false;
}

static int fail_denied(const job_roots *roots, const char *what, const char *path)
{
    const char *slash = strcmp(what, "file") == 0 ? strrchr(path, '/') : NULL; /* a file's folder is allowed */
    int length = slash > path ? (int)(slash - path) : slash ? 1 : (int)strlen(path);
    if (roots->count == 0)
        return shoal_fail(SHOAL_DENIED, "this worker may not read the %s %s: allow it with --data-root %.*s", what,
                          path, length, path);
    return shoal_fail(SHOAL_DENIED, "this worker may not read the %s %s: there is no such %s below --data-root", what,
                      path, what);
}

int job_roots_open_file(int *out, const job_roots *roots, const char *path)
{
    struct stat about;
    char *real = realpath(path, NULL); /* only a name: whatever it has become, it is opened without following links */
    const root *found = real ? find_folder(roots, real) : NULL;
    int status = SHOAL_OK;
    *out = -1;
    if (!real && may_read_all(roots)) /* others must not learn what exists */
        status = shoal_fail_errno(SHOAL_SYSTEM, errno, "%s: can't read", path);
    else if (!found)
        status = fail_denied(roots, "file", path);
    else if ((*out = base_open_beneath(found->opened, path_behind(real, found->folder), O_RDONLY)) < 0)
        status = errno == EINVAL ? shoal_fail(SHOAL_INVALID, "%s is not a plain file", path)
                                 : shoal_fail_errno(SHOAL_SYSTEM, errno, "%s: can't read", path);
    if (*out >= 0 && (fstat(*out, &about) < 0 || !S_ISREG(about.st_mode))) {
        status = shoal_fail(SHOAL_INVALID, "%s is not a plain file", path);
        close(*out);
        *out = -1;
    }
    free(real);
    return status;
}

/* ---- stores ------------------------------------------------------------------------------------------------------ */

/* The path, with all links resolved, of what exists of `path`, which is the way to a folder store and on to a key in
 * it. */
static bool resolve_start(char out[PATH_MAX], const char *path)
{
    char at[PATH_MAX];
    if (path[0] != '/' || strlen(path) >= sizeof at)
        return false;
    memcpy(at, path, strlen(path) + 1);
    while (!realpath(*at ? at : "/", out)) {
        char *slash = strrchr(at, '/');
        if ((errno != ENOENT && errno != ENOTDIR) || !slash || strcmp(slash, "/..") == 0)
            return false;
        *slash = '\0';
    }
    return true;
}

/* The folder that a folder store must be in: that of the job's own, or a root; NULL when it may be in none. */
static const char *choose_folder(const job_roots *roots, const char *path, const char *own, char real[PATH_MAX])
{
    if (!resolve_start(real, path))
        return NULL;
    if (own && path_behind(real, own))
        return own;
    const root *found = find_folder(roots, real);
    return found ? found->folder : NULL;
}

static int check_url(const job_roots *roots, const char *url, const char *own)
{
    bool held = false;
    int status = shoal_store_url_is_below(&held, url, own);
    for (size_t i = 0; status == SHOAL_OK && !held && i < roots->count; i++)
        if (!roots->root[i].folder)
            status = shoal_store_url_is_below(&held, url, roots->root[i].text);
    return status < 0 ? status : held ? SHOAL_OK : fail_denied(roots, "store", url);
}

int job_roots_open_store(shoal_store **out, char **key, const job_roots *roots, const char *url, const shoal_store *own,
                         bool trusted, int64_t deadline)
{
    shoal_store_traits ours = shoal_store_describe(own);
    const char *own_folder = strcmp(ours.scheme, "dir") == 0 ? strchr(ours.name, '/') : NULL;
    shoal_store_options options = {.read_only = true};
    char *folder = NULL, real[PATH_MAX];
    *out = NULL;
    *key = NULL;
    int status = shoal_store_url_folder(&folder, url);
    if (status == SHOAL_OK && folder && !(options.within = choose_folder(roots, folder, own_folder, real)))
        status = fail_denied(roots, "store", url);
    else if (status == SHOAL_OK && !folder && !trusted)
        status = check_url(roots, url, ours.name);
    if (status == SHOAL_OK)
        status = shoal_store_open_at(out, key, url, &options, deadline);
    if (status == SHOAL_ABSENT) /* as a missing file: waiting would not help */
        status = shoal_fail(SHOAL_SYSTEM, "%s", shoal_error());
    shoal_text_free(&folder);
    return status;
}
