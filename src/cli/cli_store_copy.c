/* shoal store copy: blobs from one store to another. */
#include "store_verb.h"

typedef struct settings {
    cli_common common;
    transfer_options transfer;
    cli_store_settings store;
    cli_print_settings print;
} settings;

static const base_option_group groups[] = {
    {"Copying", &cli_transfer_options, offsetof(settings, transfer)},
    {"Target", &cli_target_options, offsetof(settings, transfer)},
    {"Store", &cli_store_options, offsetof(settings, store)},
    {"Printing", &cli_print_options, offsetof(settings, print)},
    {"Help", &cli_common_options, offsetof(settings, common)},
    {0},
};

static int run_copy(void *from_main, const char *const *word, int words)
{
    settings *settings = from_main;
    transfer_report report = {0};
    cli_progress progress;
    cli_stores_protect(word, words);
    settings->transfer.patience = settings->store.patience;
    cli_transfer_follow(&settings->transfer, &progress, settings->print.quiet);
    int status = transfer_copy(&report, word[0], word[1], &settings->transfer);
    return cli_transfer_print(&report, "copied", &settings->print, &progress, status);
}

static const char *const description[] = {
    "Copies a key, or with -r all keys below FROM, to another store, or to other keys of the same store. If TO ends "
    "with '/' or names just a store, a single key goes below it under its last segment; with -r the names below FROM "
    "become the same names below TO.",
    "Keys that already exist with the same content are skipped, so a command that was interrupted continues when it is "
    "repeated. Blobs of more than 16 MiB go through a temporary file in $TMPDIR, or /var/tmp.",
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
