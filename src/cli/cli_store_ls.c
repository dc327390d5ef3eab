/* shoal store ls and du: which keys there are, and how much they take.  Both go through the keys in their order, a page
 * at a time, so that a store of any size takes no more memory than a page. */
#include "cli.h"

#include <inttypes.h>
#include <string.h>

#include "base/memory.h"
#include "store_open.h"
#include "transfer_names.h"

typedef struct settings {
    cli_common common;
    cli_store_settings store;
    bool recursive, detailed, json;
} settings;

static const shoal_option ls_rows[] = {
    {"recursive", 'r', SHOAL_OPTION_FLAG, offsetof(settings, recursive), NULL,
     .help = "every key below, rather than one level of them"},
    {"long", 'l', SHOAL_OPTION_FLAG, offsetof(settings, detailed), NULL,
     .help = "size in bytes and etag in front of each key"},
    {"json", 0, SHOAL_OPTION_FLAG, offsetof(settings, json), NULL,
     .help = "print a JSON object a line, one for each key"},
    {0},
};
static const shoal_option du_rows[] = {
    {"json", 0, SHOAL_OPTION_FLAG, offsetof(settings, json), NULL,
     .help = "print a JSON object a line: one for each name, and the total"},
    {0},
};
static const shoal_option *const ls_options = ls_rows, *const du_options = du_rows;

static const base_option_group ls_groups[] = {
    {"Printing", &ls_options, 0},
    {"Store", &cli_store_options, offsetof(settings, store)},
    {"Help", &cli_common_options, offsetof(settings, common)},
    {0},
};
static const base_option_group du_groups[] = {
    {"Printing", &du_options, 0},
    {"Store", &cli_store_options, offsetof(settings, store)},
    {"Help", &cli_common_options, offsetof(settings, common)},
    {0},
};

static int fail_nothing(const store_place *from)
{
    return shoal_fail(SHOAL_ABSENT, "%s: there is no such key, and nothing below it", from->url);
}

/* ---- ls ---------------------------------------------------------------------------------------------------------- */

/* One line.  A folder, which stands for all keys that start with it, has no size; `name` is the end of `key`. */
static int show(const settings *settings, const char *key, const char *name, const shoal_entry *entry)
{
    if (settings->json) {
        json_t *object = json_object();
        cli_json_put(&object, entry ? "key" : "prefix", cli_json_text(key));
        if (entry) {
            cli_json_put(&object, "size", json_integer(entry->size));
            cli_json_put(&object, "etag", cli_json_text(entry->etag.text));
        }
        return cli_print_json(object);
    }
    if (settings->detailed && entry) {
        printf("%14" PRId64 "  ", entry->size);
        cli_put_text(stdout, entry->etag.text);
        fputs("  ", stdout);
    } else if (settings->detailed) {
        printf("%14s  ", "-");
    }
    cli_put_text(stdout, name);
    putchar('\n');
    return SHOAL_OK;
}

/* The key that the URL names itself, when there is one. */
static int show_key(const settings *settings, const store_place *from, bool *found)
{
    shoal_entry entry = {0};
    size_t length = 0;
    int status = *from->rest && !from->slash ? store_place_find(from, from->rest, &entry) : SHOAL_ABSENT;
    *found = status == SHOAL_OK;
    if (status == SHOAL_OK)
        status = show(settings, entry.key, transfer_last(&length, entry.key), &entry);
    base_free(&entry.key);
    return status == SHOAL_ABSENT ? SHOAL_OK : status;
}

/* Keys that go on with a slash are one folder, shown when its first key comes. */
static int show_below(const settings *settings, const store_place *from, bool *found)
{
    const shoal_entry *entry = NULL;
    char *folder = NULL;
    store_keys keys;
    int status = store_keys_start_below(&keys, from);
    size_t skip = status == SHOAL_OK ? strlen(keys.prefix) : 0;
    while (status == SHOAL_OK && (status = store_keys_next(&keys, &entry)) == SHOAL_OK && entry) {
        const char *name = entry->key + skip, *slash = settings->recursive ? NULL : strchr(name, '/');
        *found = true;
        if (!slash) {
            status = show(settings, entry->key, name, entry);
        } else if (!folder || strncmp(entry->key, folder, strlen(folder)) != 0) {
            base_free(&folder);
            status = base_copy_text_n(&folder, entry->key, (size_t)(slash + 1 - entry->key));
            if (status == SHOAL_OK)
                status = show(settings, folder, folder + skip, NULL);
        }
    }
    base_free(&folder);
    store_keys_stop(&keys);
    return status;
}

static int run_ls(void *from_main, const char *const *word, int words)
{
    const settings *settings = from_main;
    bool is_key = false, below = false;
    store_place from;
    (void)words;
    int status = cli_store_open(&from, word[0], &settings->store, (shoal_store_options){.read_only = true});
    if (status < 0)
        return status;
    status = show_key(settings, &from, &is_key);
    if (status == SHOAL_OK)
        status = show_below(settings, &from, &below);
    if (status == SHOAL_OK && !is_key && !below && *from.rest)
        status = fail_nothing(&from);
    store_place_close(&from);
    return status;
}

/* ---- du ---------------------------------------------------------------------------------------------------------- */

typedef struct amount {
    int64_t keys, bytes;
} amount;

static int show_amount(const settings *settings, const char *name, amount amount)
{
    char bytes[32];
    if (settings->json) {
        json_t *object = json_object();
        if (name)
            cli_json_put(&object, "name", cli_json_text(name));
        else
            cli_json_put(&object, "total", json_true());
        cli_json_put(&object, "keys", json_integer(amount.keys));
        cli_json_put(&object, "bytes", json_integer(amount.bytes));
        return cli_print_json(object);
    }
    cli_format_bytes(bytes, sizeof bytes, (double)amount.bytes);
    printf("%10s %10" PRId64 "  ", bytes, amount.keys);
    cli_put_text(stdout, name ? name : "total");
    putchar('\n');
    return SHOAL_OK;
}

static int64_t saturating_add(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

/* The keys of a segment follow each other, so one sum at a time is enough. */
static int sum_below(const settings *settings, const store_place *from, amount *total)
{
    const shoal_entry *entry = NULL;
    amount part = {0};
    char *segment = NULL;
    store_keys keys;
    int status = store_keys_start_below(&keys, from);
    size_t skip = status == SHOAL_OK ? strlen(keys.prefix) : 0;
    while (status == SHOAL_OK && (status = store_keys_next(&keys, &entry)) == SHOAL_OK && entry) {
        const char *name = entry->key + skip;
        size_t length = strcspn(name, "/");
        length += name[length] == '/';
        if (!segment || strlen(segment) != length || strncmp(name, segment, length) != 0) {
            if (segment)
                status = show_amount(settings, segment, part);
            base_free(&segment);
            if (status == SHOAL_OK)
                status = base_copy_text_n(&segment, name, length);
            part = (amount){0};
        }
        part = (amount){part.keys + 1, saturating_add(part.bytes, entry->size)};
        *total = (amount){total->keys + 1, saturating_add(total->bytes, entry->size)};
    }
    if (status == SHOAL_OK && segment)
        status = show_amount(settings, segment, part);
    base_free(&segment);
    store_keys_stop(&keys);
    return status;
}

static int sum_url(const settings *settings, const char *url, amount *total)
{
    const int64_t before = total->keys;
    shoal_entry entry = {0};
    size_t length = 0;
    store_place from;
    int status = cli_store_open(&from, url, &settings->store, (shoal_store_options){.read_only = true});
    if (status < 0)
        return status;
    status = *from.rest && !from.slash ? store_place_find(&from, from.rest, &entry) : SHOAL_ABSENT;
    if (status == SHOAL_OK) {
        *total = (amount){total->keys + 1, saturating_add(total->bytes, entry.size)};
        status = show_amount(settings, transfer_last(&length, entry.key), (amount){1, entry.size});
    }
    base_free(&entry.key);
    if (status == SHOAL_OK || status == SHOAL_ABSENT)
        status = sum_below(settings, &from, total);
    if (status == SHOAL_OK && total->keys == before && *from.rest)
        status = fail_nothing(&from);
    store_place_close(&from);
    return status;
}

static int run_du(void *from_main, const char *const *word, int words)
{
    const settings *settings = from_main;
    amount total = {0};
    int status = SHOAL_OK;
    for (int i = 0; i < words && status == SHOAL_OK; i++)
        status = sum_url(settings, word[i], &total);
    return status == SHOAL_OK ? show_amount(settings, NULL, total) : status;
}

/* ---- the verbs --------------------------------------------------------------------------------------------------- */

static const char *const ls_description[] = {
    "Lists the keys below URL in the order of their bytes, one level of them: names that go on with '/' are shown "
    "once, with the slash. With -r every key is shown. A URL that names a key shows that key.",
    "URL is the path of a folder or dir:PATH, az://ACCOUNT/CONTAINER/PREFIX or s3://BUCKET/PREFIX; docs/store.md "
    "explains them and where credentials come from.",
    NULL,
};
static const learn_example ls_examples[] = {
    {"shoal store ls ./st", "what is at the top of a store"},
    {"shoal store ls -r -l az://acct/box/jobs", "every key below jobs, with sizes"},
    {NULL, NULL},
};
const cli_verb cli_store_ls = {
    .name = "store ls",
    .summary = "list the keys of a store",
    .word = {"URL"},
    .words_least = 1,
    .synopsis = "[-r] [-l] [options]",
    .description = ls_description,
    .examples = ls_examples,
    .options = ls_groups,
    .settings_size = sizeof(settings),
    .run = run_ls,
};

static const char *const du_description[] = {
    "Prints how many bytes and how many keys there are below URL, by the first segment of their names, and in all. "
    "Bytes are those of the blobs; what the store needs to keep them comes on top.",
    NULL,
};
static const learn_example du_examples[] = {
    {"shoal store du ./st", "what takes the room"},
    {"shoal store du --json s3://bucket/2026 s3://bucket/2027", "for a script"},
    {NULL, NULL},
};
const cli_verb cli_store_du = {
    .name = "store du",
    .summary = "print how much the keys of a store take",
    .word = {"URL..."},
    .words_least = 1,
    .synopsis = "[options]",
    .description = du_description,
    .examples = du_examples,
    .options = du_groups,
    .settings_size = sizeof(settings),
    .run = run_du,
};
