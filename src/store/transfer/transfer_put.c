/* Files into a store: what is wrong with the names is told before anything is copied. */
#include "transfer_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "transfer_names.h"

static bool is_input(const char *path)
{
    return strcmp(path, "-") == 0;
}

static bool is_folder(const char *path)
{
    return !is_input(path) && transfer_is_folder(path);
}

static int check_source(const char *path, bool recursive)
{
    struct stat info;
    if (is_input(path))
        return SHOAL_OK;
    if (stat(path, &info) < 0)
        return shoal_fail_errno(SHOAL_SYSTEM, errno, "%s: can't read", path);
    if (S_ISDIR(info.st_mode) && !recursive)
        return shoal_fail(SHOAL_USAGE, "%s: is a folder: use -r to put everything in it", path);
    if (!S_ISDIR(info.st_mode) && !S_ISREG(info.st_mode))
        return shoal_fail(SHOAL_USAGE, "%s: is neither a file nor a folder; '-' is standard input", path);
    return SHOAL_OK;
}

/* A folder that holds the store would be put into itself without end. */
static int check_not_inside(const char *path, const store_place *to)
{
    char *real = is_input(path) ? NULL : realpath(path, NULL);
    size_t length = real ? strlen(real) : 0;
    const char *store = store_place_folder(to);
    bool inside = real && store && strncmp(store, real, length) == 0 &&
                  (store[length] == '/' || store[length] == '\0' || strcmp(real, "/") == 0);
    free(real);
    return inside ? shoal_fail(SHOAL_USAGE, "%s: contains the store %s, which would be put into itself", path, to->url)
                  : SHOAL_OK;
}

/* Where a source goes: below the URL by its own name, or to just what the URL says. */
static int key_for_path(char **out, const char *path, const store_place *to, bool many)
{
    bool folder = is_folder(path);
    bool below = many || to->slash || (!*to->rest && !folder);
    size_t length = 0;
    const char *last = transfer_last(&length, path);
    char *name = NULL;
    if (below && is_input(path))
        return shoal_fail(SHOAL_USAGE, "%s: standard input needs a full key, not a prefix", to->url);
    if (!below || (folder && (strncmp(last, ".", length) == 0 || strncmp(last, "..", length) == 0)))
        return !below && !folder && store_place_check_key(to) < 0 ? SHOAL_USAGE : base_copy_text(out, to->rest);
    int status = base_copy_text_n(&name, last, length);
    if (status == SHOAL_OK)
        status = transfer_join(out, to->rest, name);
    base_free(&name);
    return status;
}

static int add_path(transfer *self, const char *path, const store_place *to, bool many, transfer_part *input)
{
    char *target = NULL, *spooled = NULL;
    int status = key_for_path(&target, path, to, many);
    if (status == SHOAL_OK && is_input(path)) {
        status = transfer_spool_input(input, &spooled);
        if (status == SHOAL_OK)
            status = transfer_add_unnamed(self, spooled, target);
    } else if (status == SHOAL_OK) {
        status = transfer_add_files(self, path, target);
    }
    base_free(&spooled);
    base_free(&target);
    return status;
}

int transfer_put(transfer_report *report, const char *const *paths, int count, const char *url,
                 const transfer_options *options)
{
    store_place to = {0};
    transfer *self = NULL;
    transfer_part input = {.descriptor = -1};
    char *from_name = NULL, *to_name = NULL;
    int status = SHOAL_OK;
    for (int i = 0; i < count && status == SHOAL_OK; i++)
        status = check_source(paths[i], options->recursive);
    if (status == SHOAL_OK && count > 1)
        status = transfer_check_distinct(paths, paths, count);
    if (status == SHOAL_OK)
        status =
            store_place_open_target(&to, url, options->patience, options->create, count > 1 || is_folder(paths[0]));
    for (int i = 0; i < count && status == SHOAL_OK; i++)
        status = check_not_inside(paths[i], &to);
    if (status == SHOAL_OK)
        status = transfer_name_paths(&from_name, paths, count);
    if (status == SHOAL_OK)
        status = transfer_name_place(&to_name, &to);
    if (status < 0)
        goto done;
    status = transfer_start(&self, options, &to, from_name, to_name);
    for (int i = 0; i < count && status == SHOAL_OK; i++)
        status = add_path(self, paths[i], &to, count > 1, &input);
    status = transfer_finish(&self, status, report);
    store_counts_add(&report->requests, to.store);
    report->resumed += to.store->counts.kept;
done:
    transfer_part_close(&input, false);
    base_free(&from_name);
    base_free(&to_name);
    store_place_close(&to);
    return status;
}
