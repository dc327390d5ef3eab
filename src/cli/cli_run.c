/* shoal run: your own functions over the rows of a data set, as a C module or as any program. */
#include "cli.h"

#include <string.h>
#include <shoal/exec.h>

#include "run/run.h"

/* It is followed by a request for the learner that runs commands; with MODULE it becomes one for a module. */
typedef struct settings {
    cli_common common;
    cli_print_settings print;
    _Alignas(16) char request[];
} settings;

static const shoal_option run_rows[] = {
    {"threads", 't', SHOAL_OPTION_COUNT, offsetof(run_place, threads), "N",
     .help = "number of threads, each with a process of --exec; never changes the result", .least = 1,
     .most = SHOAL_THREADS_MOST, .default_text = "all cores this process may use"},
    {"kernel", 0, SHOAL_OPTION_TEXT, offsetof(run_place, kernel), "NAME",
     .help = "processor instructions that a module's own algorithm may use: auto, portable, avx2, avx512 or vnni",
     .fallback = "auto"},
    {"grain", 0, SHOAL_OPTION_COUNT, offsetof(run_place, rows_per_grain), "ROWS",
     .help = "number of rows passed to the function at once", .least = 1, .default_text = "chosen from the shape"},
    {0},
};
static const shoal_option *const own_place_options = run_rows;

/* The groups of the learner that runs commands, with the words of this verb. */
static base_option_group groups[RUN_GROUPS_MOST + 3];

void cli_run_prepare(void)
{
    int count = run_request_groups(groups, learn_face_find("exec"), offsetof(settings, request));
    for (int i = 0; i < count; i++)
        if (groups[i].table == &run_place_options)
            groups[i].table = &own_place_options;
    groups[count++] = (base_option_group){"Printing", &cli_print_options, offsetof(settings, print)};
    groups[count] = (base_option_group){"Help", &cli_common_options, offsetof(settings, common)};
}

static int run_run(void *from_main, const char *const *word, int words)
{
    settings *settings = from_main;
    shoal_request *request = (shoal_request *)settings->request;
    shoal_outcome *outcome = NULL;
    cli_watch watch;
    if (request->function.exec && words > 1)
        return shoal_fail(SHOAL_USAGE, "--exec replaces MODULE: shoal run --exec COMMAND DATA");
    if (words < (request->function.exec ? 1 : 2))
        return shoal_fail(SHOAL_USAGE, "run needs MODULE and DATA, or --exec COMMAND and DATA");
    if (!request->function.exec && ((const shoal_exec_config *)request->config)->collect)
        return shoal_fail(SHOAL_USAGE, "--send and --collect need --exec COMMAND");
    cli_watch_start(&watch, settings->print.quiet);
    request->face = learn_face_find(words > 1 ? "module" : "exec");
    request->algorithm = request->face->algorithm;
    request->function.module = words > 1 ? word[0] : NULL;
    request->data = word[words - 1];
    request->json = settings->print.json;
    request->watch = cli_watcher(&watch);
    int status = run_request(&outcome, request);
    cli_progress_clear(&watch.progress);
    status = cli_outcome_tell(outcome, &settings->print, status);
    shoal_outcome_free(&outcome);
    return status;
}

static const char *const description[] = {
    "Runs a function of your own over the rows of a data set, on all cores or on workers: shoal run MODULE DATA, or "
    "shoal run --exec COMMAND DATA. It sees a grain (a block of rows) at a time; what it returns is added "
    "exactly, so the result has the same bits for any number of threads, workers and machines.",
    "MODULE is a C file, which is compiled once by ${CC:-cc}, or a shared object; shoal/module.h says what is in it. "
    "Ten lines are enough for the sum of every column.",
    "COMMAND is a command line for /bin/sh. A process for each thread reads arrays of rows in the .npy format on its "
    "standard input, one after another, and writes one array for each to its standard output. These are added "
    "(integers as int64, floats as float64, rounded once), or with --collect joined along their first axis. It finds "
    "--params as JSON in SHOAL_PARAMS and the machine's name in SHOAL_HOST, and on workers the files that it and "
    "--send name in its current folder. If a program exits, writes anything else or takes longer than --timeout, the "
    "run ends with an error that names the rows and the machine and shows the last lines of its standard error.",
    "Without --out the numbers of the result are printed, one row per line, if there are at most 10,000.",
    "Started by mpirun or srun, all ranks run it together, each on its own part of the rows, and the result has the "
    "same bits; rank 0 alone prints and writes. With --checkpoint, the same command with --resume continues after a "
    "crash, with any number of ranks or threads.",
    "SIGINT (Ctrl-C), SIGTERM or SIGHUP ends the run of a module after the round it is in, and what it has found so "
    "far is the result; the exit code is 130. A second signal, and the first one with --exec on threads, ends it at "
    "once, which shells show as 130 for Ctrl-C and 143 for SIGTERM.",
    NULL,
};
static const learn_example examples[] = {
    {"shoal run sum_rows.c data.npy", "the sum of every column, by a module of ten lines"},
    {"shoal run logistic.c data.npy --params '{\"rate\": 0.5}' -o weights.npy", "a module with parameters"},
    {"shoal run --exec 'python3 sum.py' data.npy --workers local:4", "a program, on four workers"},
    {"shoal run --exec 'python3 features.py' images.npy --collect -o features.npy", "one result for every row"},
    {NULL, NULL},
};

const cli_verb cli_run = {
    .name = "run",
    .summary = "run your own function over the rows of a data set",
    .word = {"MODULE", "DATA"},
    .words_in_synopsis = true,
    .synopsis = "MODULE DATA | --exec COMMAND DATA [options]",
    .description = description,
    .examples = examples,
    .options = groups,
    .settings_size = sizeof(settings) + sizeof(shoal_request) + sizeof(shoal_exec_config),
    .of_ranks = true,
    .run = run_run,
};
