/* shoal store ls and du: which keys there are, and how much they take. */
#include "store_verb.h"

#include <inttypes.h>

#include "base/text.h"
#include "base/memory.h"

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
     .help = "print one JSON object per line, one for each key"},
    {0},
};
static const shoal_option du_rows[] = {
    {"json", 0, SHOAL_OPTION_FLAG, offsetof(settings, json), NULL,
     .help = "print one JSON object per line: one for each name, and the total"},
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

/* ---- ls ---------------------------------------------------------------------------------------------------------- */

/* One line.  A folder, which stands for all keys that start with it, has no size; `name` is the end of `key`. */
static int show_key(const settings *settings, const char *key, const char *name, const shoal_entry *entry)
{
    if (settings->json) {
        json_t *object = json_object();
        base_json_put(&object, entry ? "key" : "prefix", base_json_text(key));
        if (entry) {
            base_json_put(&object, "size", json_integer(entry->size));
            base_json_put(&object, "etag", base_json_text(entry->etag.text));
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

/* Keys that continue with a slash are one folder, shown when its first key comes. */
static int show_listed(void *context, const transfer_listed *listed)
{
    const settings *settings = context;
    const shoal_entry *entry = listed->entry;
    char *folder = NULL;
    size_t start = (size_t)(listed->name - entry->key);
    bool below = listed->segment > 0 && listed->name[listed->segment - 1] == '/';
    if (settings->recursive || !below)
        return show_key(settings, entry->key, listed->name, entry);
    if (!listed->starts)
        return SHOAL_OK;
    int status = base_copy_text_n(&folder, entry->key, start + listed->segment);
    if (status == SHOAL_OK)
        status = show_key(settings, folder, folder + start, NULL);
    base_free(&folder);
    return status;
}

static int run_ls(void *from_main, const char *const *word, int words)
{
    const settings *settings = from_main;
    cli_stores_protect(word, words);
    return transfer_list(word[0], settings->store.patience, show_listed, from_main);
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
            base_json_put(&object, "name", base_json_text(name));
        else
            base_json_put(&object, "total", json_true());
        base_json_put(&object, "keys", json_integer(amount.keys));
        base_json_put(&object, "bytes", json_integer(amount.bytes));
        return cli_print_json(object);
    }
    base_format_bytes(bytes, sizeof bytes, (double)amount.bytes);
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

typedef struct sums {
    const settings *settings;
    char *segment; /* that `part` is the sum of; NULL at first */
    amount part, total;
} sums;

/* Shows the sum of a segment, of which no more will come. */
static int end_segment(sums *self)
{
    int status = self->segment ? show_amount(self->settings, self->segment, self->part) : SHOAL_OK;
    base_free(&self->segment);
    self->part = (amount){0};
    return status;
}

/* The keys of a segment follow each other, so one sum at a time is enough. */
static int add_listed(void *context, const transfer_listed *listed)
{
    sums *self = context;
    const int64_t size = listed->entry->size;
    if (listed->starts) {
        int status = end_segment(self);
        if (status == SHOAL_OK)
            status = base_copy_text_n(&self->segment, listed->name, listed->segment);
        if (status < 0)
            return status;
    }
    self->part = (amount){self->part.keys + 1, saturating_add(self->part.bytes, size)};
    self->total = (amount){self->total.keys + 1, saturating_add(self->total.bytes, size)};
    return SHOAL_OK;
}

static int run_du(void *from_main, const char *const *word, int words)
{
    sums sums = {.settings = from_main};
    int status = SHOAL_OK;
    cli_stores_protect(word, words);
    for (int i = 0; i < words && status == SHOAL_OK; i++) {
        status = transfer_list(word[i], sums.settings->store.patience, add_listed, &sums);
        if (status == SHOAL_OK)
            status = end_segment(&sums);
    }
    base_free(&sums.segment);
    return status == SHOAL_OK ? show_amount(sums.settings, NULL, sums.total) : status;
}

/* ---- the verbs --------------------------------------------------------------------------------------------------- */

static const char *const ls_description[] = {
    "Lists the keys below URL in the order of their bytes, one level of them: names that continue with '/' are shown "
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
    "Bytes are those of the blobs, without the store's own overhead.",
    NULL,
};
static const learn_example du_examples[] = {
    {"shoal store du ./st", "what takes up space"},
    {"shoal store du --json s3://bucket/2026 s3://bucket/2027", "for a script"},
    {NULL, NULL},
};
const cli_verb cli_store_du = {
    .name = "store du",
    .summary = "print the size of the keys of a store",
    .word = {"URL..."},
    .words_least = 1,
    .synopsis = "[options]",
    .description = du_description,
    .examples = du_examples,
    .options = du_groups,
    .settings_size = sizeof(settings),
    .run = run_du,
};
