/* Blobs from one store to another, or to other keys of the same: which must not be what is copied. */
#include "transfer_internal.h"

#include <string.h>

#include "base/memory.h"
#include "transfer_names.h"

/* Of a/b that is copied to a, with `up` being "b", a key a/b/b/x would replace a/b/x, maybe before that was copied. */
static int check_hoist(const store_place *from, const store_place *to, const char *up)
{
    const shoal_entry *next = NULL;
    store_keys keys = {0};
    char *prefix = NULL;
    bool clash = false;
    int status = base_format(&prefix, "%s/%s", from->rest, up);
    size_t length = prefix ? strlen(prefix) : 0;
    if (status == SHOAL_OK)
        status = store_keys_start(&keys, from, prefix);
    while (status == SHOAL_OK && !clash && (status = store_keys_next(&keys, &next)) == SHOAL_OK && next)
        clash = next->key[length] == '\0' || next->key[length] == '/';
    if (clash)
        status = shoal_fail(SHOAL_USAGE, "%s contains another '%s', so copying it to %s would replace it", from->url,
                            up, to->url);
    store_keys_stop(&keys);
    base_free(&prefix);
    return status;
}

/* What is copied must not be what is written: it would be read while it grows, or be gone before it is read. */
static int check_apart(const store_place *from, const store_place *to, const char *target, bool recursive)
{
    size_t length = strlen(from->rest);
    if (!store_place_is_same(from, to))
        return SHOAL_OK;
    if (strcmp(from->rest, target) == 0)
        return shoal_fail(SHOAL_USAGE, "%s and %s are the same", from->url, to->url);
    if (recursive && strncmp(target, from->rest, length) == 0 && (length == 0 || target[length] == '/'))
        return shoal_fail(SHOAL_USAGE, "%s is below %s, which would be copied into itself", to->url, from->url);
    length = strlen(target);
    if (recursive && strncmp(from->rest, target, length) == 0 && (length == 0 || from->rest[length] == '/'))
        return check_hoist(from, to, from->rest + length + (length > 0));
    return SHOAL_OK;
}

static int key_for_copy(char **out, const store_place *from, const store_place *to, bool recursive)
{
    size_t length = 0;
    const char *name = transfer_last(&length, from->rest);
    bool below = to->slash || (!*to->rest && !recursive);
    if (!below && !recursive && store_place_check_key(to) < 0)
        return SHOAL_USAGE;
    return below ? transfer_join(out, to->rest, name) : base_copy_text(out, to->rest);
}

int transfer_copy(transfer_report *report, const char *from_url, const char *to_url, const transfer_options *options)
{
    const bool recursive = options->recursive;
    store_place from = {0}, to = {0};
    transfer *self = NULL;
    char *target = NULL, *from_name = NULL, *to_name = NULL;
    int status = store_place_open(&from, from_url, options->patience, (shoal_store_options){.read_only = true});
    if (status == SHOAL_OK && !*from.rest && !recursive)
        status = shoal_fail(SHOAL_USAGE, "%s: names a whole store: use -r to copy everything in it", from_url);
    if (status == SHOAL_OK)
        status = store_place_open_target(&to, to_url, options->patience, options->create, recursive);
    if (status == SHOAL_OK)
        status = key_for_copy(&target, &from, &to, recursive);
    if (status == SHOAL_OK)
        status = check_apart(&from, &to, target, recursive);
    if (status == SHOAL_OK)
        status = transfer_name_place(&from_name, &from);
    if (status == SHOAL_OK)
        status = transfer_name_place(&to_name, &to);
    if (status < 0)
        goto done;
    status = transfer_start(&self, options, &to, from_name, to_name);
    if (status == SHOAL_OK)
        status = transfer_add_keys(self, &from, target, recursive);
    status = transfer_finish(&self, status, report);
    store_counts_add(&report->requests, from.store);
    store_counts_add(&report->requests, to.store);
    report->resumed += to.store->counts.kept;
done:
    base_free(&target);
    base_free(&from_name);
    base_free(&to_name);
    store_place_close(&to);
    store_place_close(&from);
    return status;
}
