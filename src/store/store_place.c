/* Opening what a URL names, and iterating over its keys.  See the header. */
#include "store_place.h"

#include <string.h>

#include "base/memory.h"
#include "store_internal.h"

/* ---- opening ----------------------------------------------------------------------------------------------------- */

/* Whether a URL is one of a dir: store, and whether it ends with a slash. */
static bool is_folder_url(const char *text, bool *slash)
{
    store_url url;
    if (store_url_parse(&url, text) < 0)
        return false;
    bool is = strcmp(url.scheme, "dir") == 0;
    *slash = *url.rest && url.rest[strlen(url.rest) - 1] == '/';
    store_url_release(&url);
    return is;
}

int store_place_open(store_place *out, const char *text, double patience, shoal_store_options options)
{
    store_url url;
    *out = (store_place){.url = text, .patience = patience};
    int status = store_url_parse(&url, text);
    if (status == SHOAL_OK) {
        size_t length = strlen(url.rest);
        out->slash = length > 0 && url.rest[length - 1] == '/';
        status = shoal_store_open_at(&out->store, &out->rest, text, &options, shoal_after(out->patience));
        store_url_release(&url);
    }
    if (status == SHOAL_OK)
        status = store_prefix_check(out->rest);
    if (status < 0) {
        store_place_close(out);
        return status;
    }
    for (size_t length = strlen(out->rest); length > 0 && out->rest[length - 1] == '/';)
        out->rest[--length] = '\0';
    return SHOAL_OK;
}

void store_place_close(store_place *self)
{
    shoal_store_close(&self->store);
    shoal_text_free(&self->rest);
}

int store_place_open_target(store_place *out, const char *url, double patience, bool create, bool many)
{
    bool slash = false, folder = is_folder_url(url, &slash), may_make = folder ? many || slash : create;
    int status = store_place_open(out, url, patience, (shoal_store_options){.create = may_make});
    if (status == SHOAL_ABSENT && folder && !may_make)
        return shoal_fail(status, "%s: there is no store here or in a folder above; '%s/' would create one here", url,
                          url);
    if (status == SHOAL_ABSENT && !may_make)
        return shoal_fail(status, "%s; use --create to create it", shoal_error());
    return status;
}

bool store_place_is_same(const store_place *a, const store_place *b)
{
    return strcmp(a->store->name, b->store->name) == 0;
}

const char *store_place_folder(const store_place *self)
{
    static const char scheme[] = "dir:";
    return strncmp(self->store->name, scheme, strlen(scheme)) == 0 ? self->store->name + strlen(scheme) : NULL;
}

/* ---- keys -------------------------------------------------------------------------------------------------------- */

int store_keys_start(store_keys *keys, const store_place *from, const char *prefix)
{
    *keys = (store_keys){.from = from};
    return base_copy_text(&keys->prefix, prefix);
}

int store_keys_start_below(store_keys *keys, const store_place *from)
{
    *keys = (store_keys){.from = from};
    return base_format(&keys->prefix, "%s%s", from->rest, *from->rest ? "/" : "");
}

int store_keys_next(store_keys *keys, const shoal_entry **out)
{
    shoal_listing *page = &keys->page;
    *out = NULL;
    while (keys->next >= page->count) {
        if (keys->started && !page->more)
            return SHOAL_OK;
        int64_t deadline = shoal_after(keys->from->patience);
        int status = keys->own ? store_list(keys->from->store, keys->prefix, NULL, page, deadline)
                               : shoal_store_list(keys->from->store, keys->prefix, NULL, page, deadline);
        if (status < 0)
            return status;
        keys->started = true;
        keys->next = 0;
    }
    *out = &page->entries[keys->next++];
    return SHOAL_OK;
}

void store_keys_stop(store_keys *keys)
{
    shoal_listing_release(&keys->page);
    base_free(&keys->prefix);
    *keys = (store_keys){0};
}

int store_place_check_key(const store_place *self)
{
    return store_key_check(self->rest);
}

/* A key is the first of all that start with it. */
int store_place_find(const store_place *self, const char *key, shoal_entry *out)
{
    const shoal_entry *first = NULL;
    store_keys keys;
    int status = store_key_check(key);
    if (status < 0)
        return status;
    status = store_keys_start(&keys, self, key);
    if (status == SHOAL_OK)
        status = store_keys_next(&keys, &first);
    if (status == SHOAL_OK && (!first || strcmp(first->key, key) != 0))
        status = store_fail(self->store, key, SHOAL_ABSENT, "there is no such key");
    if (status == SHOAL_OK) {
        *out = *first;
        out->key = NULL;
        status = base_copy_text(&out->key, key);
    }
    store_keys_stop(&keys);
    return status;
}

int store_place_remove(const store_place *self, const char *key)
{
    return store_remove(self->store, key, shoal_after(self->patience));
}
