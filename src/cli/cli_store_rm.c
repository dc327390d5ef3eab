/* shoal store rm: removes keys.  Everything below a name takes -r, a whole store --all as well: neither can be
 * undone. */
#include "store_verb.h"

#include "base/text.h"

typedef struct settings {
    cli_common common;
    cli_store_settings store;
    cli_print_settings print;
    transfer_options removal;
} settings;

static const shoal_option rows[] = {
    {"recursive", 'r', SHOAL_OPTION_FLAG, offsetof(settings, removal.recursive), NULL,
     .help = "everything below a name, too"},
    {"all", 0, SHOAL_OPTION_FLAG, offsetof(settings, removal.all), NULL,
     .help = "with -r: a URL may name a whole store, which is emptied"},
    {"jobs", 'j', SHOAL_OPTION_COUNT, offsetof(settings, removal.jobs), "N", .help = "how many to remove at once",
     .fallback = "8", .least = 1, .most = 256},
    {0},
};
static const shoal_option *const options = rows;

static const base_option_group groups[] = {
    {"Removing", &options, 0},
    {"Store", &cli_store_options, offsetof(settings, store)},
    {"Printing", &cli_print_options, offsetof(settings, print)},
    {"Help", &cli_common_options, offsetof(settings, common)},
    {0},
};

/* A few are gone before anyone could read the line. */
static void show_removed(void *progress, const transfer_counts *so_far)
{
    char line[96], bytes[32];
    if (so_far->files < 1000)
        return;
    base_format_bytes(bytes, sizeof bytes, (double)so_far->bytes);
    snprintf(line, sizeof line, "removed %lld keys, %s", (long long)so_far->files, bytes);
    cli_progress_say(progress, line);
}

static int print_removed(const transfer_report *report, const cli_print_settings *print)
{
    char bytes[32];
    if (print->json) {
        json_t *object = json_object();
        base_json_put(&object, "keys", json_integer(report->files));
        base_json_put(&object, "bytes", json_integer(report->bytes));
        cli_json_put_counts(&object, &report->requests);
        return cli_print_json(object);
    }
    base_format_bytes(bytes, sizeof bytes, (double)report->bytes);
    if (!print->quiet && report->files > 0)
        printf("removed %lld key%s, %s\n", (long long)report->files, base_plural(report->files), bytes);
    return SHOAL_OK;
}

static int run_rm(void *from_main, const char *const *word, int words)
{
    settings *settings = from_main;
    transfer_report report = {0};
    cli_progress progress;
    cli_progress_start(&progress, settings->print.quiet);
    cli_stores_protect(word, words);
    settings->removal.patience = settings->store.patience;
    settings->removal.on_progress = show_removed;
    settings->removal.context = &progress;
    int status = transfer_remove(&report, word, words, &settings->removal);
    cli_progress_clear(&progress);
    if (report.begun) {
        int printed = print_removed(&report, &settings->print);
        status = status < 0 ? status : printed;
    }
    transfer_report_release(&report);
    return status;
}

static const char *const description[] = {
    "Removes the keys that the URLs name, and says how many there were and how much they held. What is below a key "
    "stays, unless -r is given. This can't be undone.",
    "A URL that names a whole store is refused unless both -r and --all are given. What is below a name includes what "
    "queues below it keep as blobs, under .shoal; messages that a server keeps in queues of its own stay, and those "
    "whose bodies were such blobs can no longer be read.",
    NULL,
};
static const learn_example examples[] = {
    {"shoal store rm ./st/data.npy", "one key"},
    {"shoal store rm -r az://acct/box/jobs/1", "a key and everything below it"},
    {NULL, NULL},
};
const cli_verb cli_store_rm = {
    .name = "store rm",
    .summary = "remove keys from a store",
    .word = {"URL..."},
    .words_least = 1,
    .synopsis = "[-r] [options]",
    .description = description,
    .examples = examples,
    .options = groups,
    .settings_size = sizeof(settings),
    .run = run_rm,
};
