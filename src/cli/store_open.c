/* Opening what a URL names, and going through its keys.  See the header. */
#include "store_open.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "run/secrets.h"
#include "store/store_internal.h"

static const shoal_option rows[] = {
    {"deadline", 0, SHOAL_OPTION_REAL, offsetof(cli_store_settings, patience), "SECONDS",
     .help = "how long to try one request again while the trouble may pass", .fallback = "60", .least = 0.001},
    {0},
};
const shoal_option *const cli_store_options = rows;

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

int cli_store_open(cli_store *out, const char *text, const cli_store_settings *settings, shoal_store_options options)
{
    store_url url;
    *out = (cli_store){.url = text, .patience = settings->patience};
    int status = run_protect_secrets(text);
    if (status == SHOAL_OK)
        status = store_url_parse(&url, text);
    if (status == SHOAL_OK) {
        size_t length = strlen(url.rest);
        out->slash = length > 0 && url.rest[length - 1] == '/';
        status = shoal_store_open_at(&out->store, &out->rest, text, &options, shoal_after(out->patience));
        store_url_release(&url);
    }
    if (status == SHOAL_OK)
        status = store_prefix_check(out->rest);
    if (status < 0) {
        cli_store_close(out);
        return status;
    }
    for (size_t length = strlen(out->rest); length > 0 && out->rest[length - 1] == '/';)
        out->rest[--length] = '\0';
    return SHOAL_OK;
}

void cli_store_close(cli_store *self)
{
    shoal_store_close(&self->store);
    shoal_text_free(&self->rest);
}

int cli_store_open_target(cli_store *out, const char *url, const cli_store_settings *settings, bool create, bool many)
{
    bool slash = false, folder = is_folder_url(url, &slash), may_make = folder ? many || slash : create;
    int status = cli_store_open(out, url, settings, (shoal_store_options){.create = may_make});
    if (status == SHOAL_ABSENT && folder && !may_make)
        return shoal_fail(status, "%s: there is no store here or above; '%s/' would make one here", url, url);
    if (status == SHOAL_ABSENT && !may_make)
        return shoal_fail(status, "%s; --create makes it", shoal_error());
    return status;
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

bool cli_store_is_same(const cli_store *a, const cli_store *b)
{
    return strcmp(a->store->name, b->store->name) == 0;
}

const char *cli_store_folder(const cli_store *self)
{
    static const char scheme[] = "dir:";
    return strncmp(self->store->name, scheme, strlen(scheme)) == 0 ? self->store->name + strlen(scheme) : NULL;
}

int cli_store_name(char **out, const cli_store *self)
{
    return base_format(out, "%s/%s", self->store->name, self->rest);
}

/* Appends a line to *text, which is NULL at first. */
static int append_line(char **text, const char *first, const char *slash, const char *second)
{
    char *longer = NULL;
    int status = base_format(&longer, "%s%s%s%s\n", *text ? *text : "", first, slash, second);
    base_free(text);
    *text = longer;
    return status;
}

int cli_stores_name(char **out, const cli_store *stores, int count)
{
    int status = SHOAL_OK;
    *out = NULL;
    for (int i = 0; i < count && status == SHOAL_OK; i++)
        status = append_line(out, stores[i].store->name, "/", stores[i].rest);
    return status;
}

int cli_paths_name(char **out, const char *const *paths, int count)
{
    char *here = getcwd(NULL, 0);
    int status = SHOAL_OK;
    *out = NULL;
    for (int i = 0; i < count && status == SHOAL_OK; i++) {
        bool relative = paths[i][0] != '/';
        status = append_line(out, relative && here ? here : "", relative ? "/" : "", paths[i]);
    }
    free(here);
    return status;
}

/* ---- keys -------------------------------------------------------------------------------------------------------- */

int cli_keys_start(cli_keys *keys, const cli_store *from, const char *prefix)
{
    *keys = (cli_keys){.from = from};
    return base_copy_text(&keys->prefix, prefix);
}

int cli_keys_start_below(cli_keys *keys, const cli_store *from)
{
    *keys = (cli_keys){.from = from};
    return base_format(&keys->prefix, "%s%s", from->rest, *from->rest ? "/" : "");
}

int cli_keys_next(cli_keys *keys, const shoal_entry **out)
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

void cli_keys_stop(cli_keys *keys)
{
    shoal_listing_release(&keys->page);
    base_free(&keys->prefix);
    *keys = (cli_keys){0};
}

int cli_store_check_key(const cli_store *self)
{
    return store_key_check(self->rest);
}

/* A key is the first of all that start with it. */
int cli_store_find(const cli_store *self, const char *key, shoal_entry *out)
{
    const shoal_entry *first = NULL;
    cli_keys keys;
    int status = store_key_check(key);
    if (status < 0)
        return status;
    status = cli_keys_start(&keys, self, key);
    if (status == SHOAL_OK)
        status = cli_keys_next(&keys, &first);
    if (status == SHOAL_OK && (!first || strcmp(first->key, key) != 0))
        status = store_fail(self->store, key, SHOAL_ABSENT, "there is no such key");
    if (status == SHOAL_OK) {
        *out = *first;
        out->key = NULL;
        status = base_copy_text(&out->key, key);
    }
    cli_keys_stop(&keys);
    return status;
}

int cli_store_remove(const cli_store *self, const char *key)
{
    return store_remove(self->store, key, shoal_after(self->patience));
}
