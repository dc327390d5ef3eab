/* Blobs of a store into files, and to a stream. */
#include "transfer_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "transfer_names.h"

bool transfer_is_stream(const char *path)
{
    struct stat info;
    return base_output_descriptor(path) >= 0 ||
           (stat(path, &info) == 0 && !S_ISDIR(info.st_mode) && !S_ISREG(info.st_mode));
}

/* ---- to a stream ------------------------------------------------------------------------------------------------- */

/* One version of the blob from its start to its end. */
static int stream_key(const store_place *from, base_output *output)
{
    void *buffer = NULL;
    shoal_blob blob = {0};
    shoal_etag version = {""};
    int status = base_alloc_unset(&buffer, TRANSFER_PIECE, 1, "a blob");
    for (int64_t at = 0, whole = 1; status == SHOAL_OK && at < whole;) {
        status = shoal_store_get_range(from->store, from->rest, at, TRANSFER_PIECE, at ? &version : NULL, buffer, &blob,
                                       shoal_after(from->patience));
        if (status == SHOAL_CONFLICT)
            status = shoal_fail(status, "%s: changed while being read", from->url);
        if (status == SHOAL_OK)
            status = base_output_write(output, buffer, blob.size);
        if (status == SHOAL_OK && blob.size == 0 && blob.whole > at)
            status = shoal_fail(SHOAL_BROKEN, "%s: ends after %lld of %lld bytes", from->url, (long long)at,
                                (long long)blob.whole);
        whole = blob.whole;
        version = blob.etag;
        at += (int64_t)blob.size;
        shoal_blob_release(&blob);
    }
    base_free(&buffer);
    return status;
}

int transfer_stream(const char *const *urls, int count, const char *path, double patience)
{
    base_output *output = NULL;
    bool closed = strcmp(path, "/dev/stdout") == 0 && (fcntl(STDOUT_FILENO, F_GETFL) & O_ACCMODE) == O_RDONLY;
    int status = closed ? shoal_fail_errno(SHOAL_SYSTEM, EBADF, "standard output: can't write")
                        : base_output_open(&output, path);
    for (int i = 0; i < count && status == SHOAL_OK; i++) {
        store_place from;
        status = store_place_open(&from, urls[i], patience, (shoal_store_options){.read_only = true});
        if (status == SHOAL_OK && !*from.rest)
            status = shoal_fail(SHOAL_USAGE, "%s: names a store, not a key in it", urls[i]);
        if (status == SHOAL_OK)
            status = stream_key(&from, output);
        store_place_close(&from);
    }
    if (status == SHOAL_OK)
        status = base_output_commit(&output);
    base_output_discard(&output);
    return status;
}

/* ---- to files ---------------------------------------------------------------------------------------------------- */

/* Whether a path, of which the end need not be there, lies in the folder of a store: files written there could be the
 * store's own. */
static int is_in_store(bool *out, const char *path)
{
    char *at = NULL, *marker = NULL, *real = NULL;
    int status = base_format(&at, "%s%s", path[0] == '/' ? "" : "./", path);
    *out = false;
    while (status == SHOAL_OK && !(real = realpath(at, NULL)) && strrchr(at, '/') > at)
        *strrchr(at, '/') = '\0';
    for (size_t length = real ? strlen(real) : 0; status == SHOAL_OK && !*out && length > 0;) {
        status = base_format(&marker, "%.*s/shoal-store", (int)length, real);
        *out = status == SHOAL_OK && access(marker, F_OK) == 0;
        base_free(&marker);
        do
            length--;
        while (length > 0 && real[length] != '/');
    }
    free(real);
    base_free(&at);
    return status;
}

static int check_target(const char *target, bool recursive, bool below)
{
    bool in_store = false;
    if (!*target)
        return shoal_fail(SHOAL_USAGE, "TARGET is empty; '.' is the current folder");
    int status = is_in_store(&in_store, target);
    if (status < 0)
        return status;
    if (in_store)
        return shoal_fail(
            SHOAL_USAGE,
            "%s: lies in the folder of a store, which must not hold other files; use 'store copy' to copy to keys of "
            "a store",
            target);
    if (!recursive && !below && transfer_is_folder(target))
        return shoal_fail(SHOAL_USAGE, "%s: is a folder; use %s/ to put the file into it", target, target);
    if ((recursive || below) && !transfer_is_folder(target) && transfer_is_stream(target))
        return shoal_fail(SHOAL_USAGE, "%s: is not a folder", target);
    return SHOAL_OK;
}

static int check_distinct(const store_place *from, int count)
{
    const char **names = NULL;
    int status = base_alloc(&names, 2 * (size_t)count, sizeof *names, "names");
    for (int i = 0; i < count && status == SHOAL_OK; i++) {
        names[i] = from[i].rest;
        names[count + i] = from[i].url;
    }
    if (status == SHOAL_OK)
        status = transfer_check_distinct(names, names + count, count);
    base_free(&names);
    return status;
}

/* To the target, or below it by the last segment of the key. */
static int add_url(transfer *self, const store_place *from, const char *target, bool below, bool recursive)
{
    char *path = NULL;
    size_t length = 0;
    const char *name = transfer_last(&length, from->rest); /* to its end, since rest has no slash there */
    if (!*from->rest && !recursive)
        return shoal_fail(SHOAL_USAGE, "%s: names a whole store: use -r to get everything in it", from->url);
    int status = below ? transfer_join(&path, target, name) : base_copy_text(&path, target);
    if (status == SHOAL_OK)
        status = transfer_add_keys(self, from, path, recursive);
    base_free(&path);
    if (status == SHOAL_ABSENT || status == SHOAL_INVALID) { /* the others can still be fetched */
        transfer_add_failure(self);
        status = SHOAL_OK;
    }
    return status;
}

int transfer_get(transfer_report *report, const char *const *urls, int count, const char *target,
                 const transfer_options *options)
{
    bool below = count > 1 || (*target && target[strlen(target) - 1] == '/');
    store_place *from = NULL;
    transfer *self = NULL;
    char *from_name = NULL, *to_name = NULL;
    int status = check_target(target, options->recursive, below);
    if (status == SHOAL_OK)
        status = base_alloc(&from, (size_t)count, sizeof *from, "stores");
    for (int i = 0; i < count && status == SHOAL_OK; i++)
        status = store_place_open(&from[i], urls[i], options->patience, (shoal_store_options){.read_only = true});
    if (status == SHOAL_OK && count > 1)
        status = check_distinct(from, count);
    if (status == SHOAL_OK)
        status = transfer_name_places(&from_name, from, count);
    if (status == SHOAL_OK)
        status = transfer_name_paths(&to_name, &target, 1);
    if (status < 0)
        goto done;
    status = transfer_start(&self, options, NULL, from_name, to_name);
    for (int i = 0; i < count && status == SHOAL_OK; i++)
        status = add_url(self, &from[i], target, below, options->recursive);
    status = transfer_finish(&self, status, report);
    for (int i = 0; i < count; i++)
        store_counts_add(&report->requests, from[i].store);
done:
    for (int i = 0; i < count && from; i++)
        store_place_close(&from[i]);
    base_free(&from);
    base_free(&from_name);
    base_free(&to_name);
    return status;
}
