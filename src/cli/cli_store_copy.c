/* shoal store copy: blobs from one store to another. */
#include "transfer.h"

#include <string.h>

#include "base/memory.h"
#include "run/secrets.h"
#include "transfer_names.h"

typedef struct settings {
    cli_common common;
    transfer_settings transfer;
    transfer_target_settings target;
    cli_store_settings store;
    cli_print_settings print;
} settings;

static const base_option_group groups[] = {
    {"Copying", &transfer_options, offsetof(settings, transfer)},
    {"Target", &transfer_target_options, offsetof(settings, target)},
    {"Store", &cli_store_options, offsetof(settings, store)},
    {"Printing", &cli_print_options, offsetof(settings, print)},
    {"Help", &cli_common_options, offsetof(settings, common)},
    {0},
};

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
        status = shoal_fail(SHOAL_USAGE, "%s has '%s' below it again, and would be replaced when copied to %s",
                            from->url, up, to->url);
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
        return shoal_fail(SHOAL_USAGE, "%s lies below %s, and would be copied into itself", to->url, from->url);
    length = strlen(target);
    if (recursive && strncmp(from->rest, target, length) == 0 && (length == 0 || from->rest[length] == '/'))
        return check_hoist(from, to, from->rest + length + (length > 0));
    return SHOAL_OK;
}

static int target_of(char **out, const store_place *from, const store_place *to, bool recursive)
{
    size_t length = 0;
    const char *name = transfer_last(&length, from->rest);
    bool below = to->slash || (!*to->rest && !recursive);
    if (!below && !recursive && store_place_check_key(to) < 0)
        return SHOAL_USAGE;
    return below ? transfer_join(out, to->rest, name) : base_copy_text(out, to->rest);
}

static int run_copy(void *from_main, const char *const *word, int words)
{
    const settings *settings = from_main;
    bool recursive = settings->transfer.recursive;
    const store_place *stores[2];
    store_place from = {0}, to = {0};
    transfer *copying = NULL;
    transfer_report report = {0};
    transfer_plan plan = {.settings = &settings->transfer,
                          .to = &to,
                          .if_absent = settings->target.if_absent,
                          .quiet = settings->print.quiet};
    char *target = NULL;
    (void)words;
    int status = cli_store_open(&from, word[0], &settings->store, (shoal_store_options){.read_only = true});
    if (status == SHOAL_OK && !*from.rest && !recursive)
        status = shoal_fail(SHOAL_USAGE, "%s: names a whole store: -r copies all that is in it", word[0]);
    if (status == SHOAL_OK)
        status = run_protect_secrets(word[1]);
    if (status == SHOAL_OK)
        status = store_place_open_target(&to, word[1], settings->store.patience, settings->target.create, recursive);
    if (status == SHOAL_OK)
        status = target_of(&target, &from, &to, recursive);
    if (status == SHOAL_OK)
        status = check_apart(&from, &to, target, recursive);
    if (status == SHOAL_OK)
        status = transfer_name_place(&plan.from_name, &from);
    if (status == SHOAL_OK)
        status = transfer_name_place(&plan.to_name, &to);
    if (status < 0) {
        base_free(&plan.from_name);
        goto done;
    }
    status = transfer_start(&copying, &plan);
    if (status == SHOAL_OK)
        status = transfer_add_keys(copying, &from, target, recursive);
    bool started = copying != NULL;
    stores[0] = &from;
    stores[1] = &to;
    status = transfer_finish(&copying, status, &report);
    if (started && status != SHOAL_USAGE) {
        int printed = transfer_print(&report, "copied", &settings->print, stores, 2);
        status = status < 0 ? status : printed;
    }
done:
    transfer_report_release(&report);
    base_free(&target);
    store_place_close(&to);
    store_place_close(&from);
    return status;
}

static const char *const description[] = {
    "Copies a key, or with -r all keys below FROM, to another store or to other keys of the same. A TO that ends with "
    "'/', or names just a store, gets a single key under its last segment; with -r the names below FROM become the "
    "same names below TO.",
    "What is there already with the same content is skipped, so that the same command, given again after it was "
    "stopped, goes on where it was. Blobs of more than 16 MiB go through a temporary file in $TMPDIR, or /var/tmp.",
    NULL,
};
static const learn_example examples[] = {
    {"shoal store copy -r ./st az://acct/box/st --create", "a store of this machine into a new container"},
    {"shoal store copy ./st/a ./st/b", "a key under another name"},
    {"shoal store copy -r --verify s3://bucket/2026 dir:/backup/2026", "compare checksums, too"},
    {NULL, NULL},
};
const cli_verb cli_store_copy = {
    .name = "store copy",
    .summary = "copy blobs from one store to another",
    .word = {"FROM", "TO"},
    .words_least = 2,
    .synopsis = "[-r] [options]",
    .description = description,
    .examples = examples,
    .options = groups,
    .settings_size = sizeof(settings),
    .run = run_copy,
};
