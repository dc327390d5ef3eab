/* shoal calibrate: measures what plans need of this machine and of stores, and keeps it (plan/measure/calibrate.h). */
#include "calibrate_print.h"

#include "base/memory.h"
#include "base/text.h"
#include "plan/measure/calibrate.h"

typedef struct settings {
    cli_common common;
    plan_calibrate_request request;
    bool history, refit;
    cli_print_settings print;
} settings;

static const shoal_option rows[] = {
    {"store", 's', SHOAL_OPTION_LIST, offsetof(settings, request.stores), "URL",
     .help = "store to measure: a folder, az://ACCOUNT/CONTAINER or s3://BUCKET; may be repeated (default: the folder "
             "that jobs of this user use)"},
    {"learner", 'l', SHOAL_OPTION_LIST, offsetof(settings, request.learners), "NAME",
     .help = "learner to measure, such as kmeans; may be repeated (default: all that can be measured)"},
    {"workers", 'w', SHOAL_OPTION_COUNT, offsetof(settings, request.workers), "N",
     .help = "largest number of workers to measure rounds with; 1, 2 and 4 are always tried", .fallback = "4",
     .least = 1, .most = 256},
    {"seconds", 0, SHOAL_OPTION_REAL, offsetof(settings, request.seconds), "N",
     .help = "approximate time for all measurements", .fallback = "45", .least = 1, .most = 86400},
    {"out", 'o', SHOAL_OPTION_TEXT, offsetof(settings, request.out), "FILE",
     .help = "file to keep measurements in (default: $XDG_CONFIG_HOME/shoal/calibration.json, or below ~/.config)"},
    {"fresh", 0, SHOAL_OPTION_FLAG, offsetof(settings, request.fresh), NULL,
     .help = "discard what was measured before"},
    {0},
};
static const shoal_option history_rows[] = {
    {"history", 0, SHOAL_OPTION_FLAG, offsetof(settings, history), NULL,
     .help = "measure nothing; list past runs, with predicted and actual times"},
    {"refit", 0, SHOAL_OPTION_FLAG, offsetof(settings, refit), NULL,
     .help = "measure nothing; fit the calibration to past runs"},
    {0},
};
static const shoal_option *const options = rows, *const history_options = history_rows;

static const base_option_group groups[] = {
    {"Measuring", &options, 0},
    {"Past runs", &history_options, 0},
    {"Output", &cli_print_options, offsetof(settings, print)},
    {"Help", &cli_common_options, offsetof(settings, common)},
    {0},
};

static int print_kept(const plan_calibration *kept, const char *path, bool json)
{
    if (json)
        return cli_calibration_print_json(kept, path);
    cli_calibration_print(stdout, kept, path);
    return SHOAL_OK;
}

static int measure_and_print(plan_calibration *kept, char **path, const settings *settings)
{
    cli_watch watch;
    cli_watch_start(&watch, settings->print.quiet);
    const shoal_watcher watcher = cli_watcher(&watch);
    int status = plan_calibrate(kept, path, &settings->request, &watcher);
    cli_progress_clear(&watch.progress);
    return status == SHOAL_OK ? print_kept(kept, *path, settings->print.json) : status;
}

static int refit_and_print(plan_calibration *kept, char **path, const settings *settings)
{
    int64_t used = 0, count = 0;
    int status = plan_recalibrate(kept, path, settings->request.out, &used, &count);
    if (status == SHOAL_OK)
        status = print_kept(kept, *path, settings->print.json);
    if (status == SHOAL_OK && !settings->print.quiet)
        fprintf(stderr, "refitted from %lld of %lld run%s\n", (long long)used, (long long)count, base_plural(count));
    return status;
}

static int check_calibrate_settings(const settings *settings)
{
    const char *which = settings->history ? "--history" : "--refit";
    if (!settings->history && !settings->refit)
        return SHOAL_OK;
    if (settings->history && settings->refit)
        return shoal_fail(SHOAL_USAGE, "--history and --refit cannot be combined");
    if (settings->history && settings->request.out)
        return shoal_fail(SHOAL_USAGE, "--history writes nothing: omit --out");
    if (settings->request.stores.count || settings->request.learners.count || settings->request.fresh)
        return shoal_fail(SHOAL_USAGE, "%s measures nothing: omit %s", which,
                          settings->request.stores.count     ? "--store"
                          : settings->request.learners.count ? "--learner"
                                                             : "--fresh");
    return SHOAL_OK;
}

static int run_calibrate(void *from_main, const char *const *word, int words)
{
    const settings *settings = from_main;
    plan_calibration *kept = NULL;
    char *path = NULL;
    (void)word, (void)words;
    int status = check_calibrate_settings(settings);
    if (status < 0 || settings->history)
        return status < 0 ? status : cli_history_print(settings->print.json);
    status = base_alloc(&kept, 1, sizeof *kept, "the calibration");
    if (status == SHOAL_OK)
        status = (settings->refit ? refit_and_print : measure_and_print)(kept, &path, settings);
    base_free(&kept);
    base_free(&path);
    return status;
}

static const char *const description[] = {
    "Measures in under a minute what shoal plan needs to know about this machine and a store: the speed of learners "
    "with one thread and with all; latency and bandwidth of the store; and the overhead of a round of workers that "
    "meet there. New figures replace the old ones in ~/.config/shoal/calibration.json; the rest stays.",
    "The machine should be idle. If other programs use the processor, calibrate waits a few seconds for them, then "
    "measures processor time, says so, and makes the intervals of predictions wider. Everything it writes to a store "
    "goes below a random name and is removed at the end. A missing folder is created; a container or bucket is not.",
    "Every run of a learner then prints the predicted and the actual time. --history lists both, with the median and "
    "the worst error; --refit fits the calibration to past runs, whose data may be easier or harder than generated "
    "rows.",
    NULL,
};
static const learn_example examples[] = {
    {"shoal calibrate", "this machine, with a folder as the store"},
    {"shoal calibrate --store az://acct/box --learner kmeans", "another store, and one learner"},
    {"shoal calibrate --history", "how good predictions were"},
    {NULL, NULL},
};
const cli_verb cli_calibrate = {
    .name = "calibrate",
    .summary = "measure this machine and its stores for plans",
    .synopsis = "[options]",
    .description = description,
    .examples = examples,
    .options = groups,
    .settings_size = sizeof(settings),
    .run = run_calibrate,
};
