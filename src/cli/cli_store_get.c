/* shoal store get and cat: blobs of a store into files, and to standard output. */
#include "store_verb.h"

#include <string.h>

typedef struct settings {
    cli_common common;
    transfer_options transfer;
    cli_store_settings store;
    cli_print_settings print;
} settings;

static const base_option_group groups[] = {
    {"Copying", &cli_transfer_options, offsetof(settings, transfer)},
    {"Store", &cli_store_options, offsetof(settings, store)},
    {"Printing", &cli_print_options, offsetof(settings, print)},
    {"Help", &cli_common_options, offsetof(settings, common)},
    {0},
};
static const base_option_group cat_groups[] = {
    {"Store", &cli_store_options, offsetof(settings, store)},
    {"Help", &cli_common_options, offsetof(settings, common)},
    {0},
};

static const char STANDARD_OUTPUT[] = "/dev/stdout";

static int run_cat(void *from_main, const char *const *word, int words)
{
    const settings *settings = from_main;
    cli_stores_protect(word, words);
    return transfer_stream(word, words, STANDARD_OUTPUT, settings->store.patience);
}

/* One key may go to a pipe or a device; everything else makes files. */
static bool is_to_stream(const char *target, int count, bool recursive)
{
    size_t length = strlen(target);
    bool below = count > 1 || (length > 0 && target[length - 1] == '/');
    return strcmp(target, "-") == 0 || (!below && !recursive && transfer_is_stream(target));
}

static int run_get(void *from_main, const char *const *word, int words)
{
    settings *settings = from_main;
    const char *target = word[words - 1];
    const int count = words - 1;
    const bool recursive = settings->transfer.recursive, to_stream = is_to_stream(target, count, recursive);
    transfer_report report = {0};
    cli_progress progress;
    if (to_stream && (recursive || settings->print.json))
        return shoal_fail(SHOAL_USAGE, "standard output takes keys one by one: no -r and no --json with '-'");
    cli_stores_protect(word, count);
    if (to_stream)
        return transfer_stream(word, count, strcmp(target, "-") == 0 ? STANDARD_OUTPUT : target,
                               settings->store.patience);
    settings->transfer.patience = settings->store.patience;
    cli_transfer_follow(&settings->transfer, &progress, settings->print.quiet);
    int status = transfer_get(&report, word, count, target, &settings->transfer);
    return cli_transfer_print(&report, "got", &settings->print, &progress, status);
}

/* ---- the verbs --------------------------------------------------------------------------------------------------- */

static const char *const description[] = {
    "Copies blobs of a store into files. The key that URL names becomes the file TARGET; several, or a TARGET that "
    "ends with '/', go below it under the last segment of their keys. With -r all keys below URL become files below "
    "TARGET. TARGET '-' is standard output.",
    "A file appears only when it is complete; until then it is kept next to its place as .shoal-part-..., and a large "
    "one continues from there when an interrupted command is repeated. Files that already exist with the same content "
    "are skipped. One that fails does not stop the others.",
    "Keys that can't be files, because one is 'a' and another 'a/b', are reported, and the rest is copied.",
    NULL,
};
static const learn_example examples[] = {
    {"shoal store get ./st/data.npy data.npy", "one key into one file"},
    {"shoal store get -r az://acct/box/2026/results results", "all that is below results"},
    {"shoal store get s3://bucket/names - | sort", "for another program"},
    {NULL, NULL},
};
const cli_verb cli_store_get = {
    .name = "store get",
    .summary = "copy blobs of a store into files",
    .word = {"URL...", "TARGET"},
    .words_least = 2,
    .synopsis = "[-r] [options]",
    .description = description,
    .examples = examples,
    .options = groups,
    .settings_size = sizeof(settings),
    .run = run_get,
};

static const char *const cat_description[] = {
    "Writes the bytes of keys to standard output, one after another, unchanged.", NULL};
static const learn_example cat_examples[] = {
    {"shoal store cat ./st/jobs/1/spec", "show what a key holds"},
    {NULL, NULL},
};
const cli_verb cli_store_cat = {
    .name = "store cat",
    .summary = "write blobs of a store to standard output",
    .word = {"URL..."},
    .words_least = 1,
    .synopsis = "[options]",
    .description = cat_description,
    .examples = cat_examples,
    .options = cat_groups,
    .settings_size = sizeof(settings),
    .run = run_cat,
};
