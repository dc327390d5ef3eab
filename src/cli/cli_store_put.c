/* shoal store put: files into a store. */
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

static int run_put(void *from_main, const char *const *word, int words)
{
    settings *settings = from_main;
    const char *url = word[words - 1];
    transfer_report report = {0};
    cli_progress progress;
    cli_stores_protect(&url, 1);
    settings->transfer.patience = settings->store.patience;
    cli_transfer_follow(&settings->transfer, &progress, settings->print.quiet);
    int status = transfer_put(&report, word, words - 1, url, &settings->transfer);
    return cli_transfer_print(&report, "put", &settings->print, &progress, status);
}

static const char *const description[] = {
    "Copies files into a store as they are. One file becomes the key that URL names; several, or a URL that ends with "
    "'/' or names just a store, go below it under their own names. With -r a folder's files become keys below URL. "
    "FILE '-' is standard input.",
    "A key appears only when it is complete. Keys that already exist with the same content are skipped, so a command "
    "that was interrupted continues when it is repeated. One file that fails does not stop the others.",
    "URL is the path of a folder or dir:PATH, az://ACCOUNT/CONTAINER/KEY or s3://BUCKET/KEY. A folder becomes a store "
    "if it is not one yet.",
    "Names that can't be keys (control characters, invalid UTF-8, a segment that ends with a dot, more than 512 bytes) "
    "are reported, and the rest is copied. Links to files are followed, links to folders are not. Empty folders are "
    "not stored.",
    NULL,
};
static const learn_example examples[] = {
    {"shoal store put data.npy ./st/", "the key data.npy of a store in the folder st"},
    {"shoal store put -r results az://acct/box/2026/results", "all files of a folder"},
    {"sort names.txt | shoal store put - ./st/names", "the output of a program"},
    {NULL, NULL},
};
const cli_verb cli_store_put = {
    .name = "store put",
    .summary = "copy files into a store",
    .word = {"FILE...", "URL"},
    .words_least = 2,
    .synopsis = "[-r] [options]",
    .description = description,
    .examples = examples,
    .options = groups,
    .settings_size = sizeof(settings),
    .run = run_put,
};
