/* shoal run: your own functions over the rows of a data set, as a C module or as any program. */
#include "cli.h"

#include <string.h>
#include <shoal/exec.h>

#include "base/memory.h"
#include "learn/module.h"
#include "run/code.h"
#include "run/params.h"
#include "run/ranks.h"
#include "run/run.h"

typedef struct function {
    const char *exec;
    shoal_texts send;
    const char *weights;
} function;

typedef struct settings {
    cli_common common;
    cli_print_settings print;
    function function;
    shoal_exec_config config;
    const char *out;
    shoal_data_options data;
    run_place run;
    run_ranks_options ranks;
    run_workers_options workers;
    run_trace_options trace;
} settings;

static const shoal_option function_rows[] = {
    {"exec", 'e', SHOAL_OPTION_TEXT, offsetof(function, exec), "COMMAND",
     .help = "run this command line instead of a module: it reads .npy arrays of rows on standard input and writes "
             "one .npy array for each on standard output"},
    {"send", 0, SHOAL_OPTION_LIST, offsetof(function, send), "FILE",
     .help = "--exec: a file that the command needs on workers, besides those its words name; may be given again"},
    {"weights", 'w', SHOAL_OPTION_TEXT, offsetof(function, weights), "FILE",
     .help = "MODULE: a weight for each row, finite and at least 0, as any data file of one column or one row"},
    {0},
};
static const shoal_option output_rows[] = {
    {"out", 'o', SHOAL_OPTION_TEXT, offsetof(settings, out), "FILE",
     .help = "write the result: FILE.npy, or FILE.safetensors; without it the numbers are printed"},
    {0},
};
static const shoal_option run_rows[] = {
    {"threads", 't', SHOAL_OPTION_COUNT, offsetof(run_place, threads), "N",
     .help = "threads, each with a process of --exec; all cores this process may use when left out; never changes the "
             "result",
     .least = 1, .most = SHOAL_THREADS_MOST},
    {"kernel", 0, SHOAL_OPTION_TEXT, offsetof(run_place, kernel), "NAME",
     .help = "instructions that a module's whole algorithm may ask for: auto, portable, avx2, avx512 or vnni",
     .fallback = "auto"},
    {"grain", 0, SHOAL_OPTION_COUNT, offsetof(run_place, rows_per_grain), "ROWS",
     .help = "rows that the function sees at once; chosen from the shape when left out", .least = 1},
    {0},
};
static const shoal_option *const function_options = function_rows, *const output_options = output_rows,
                                 *const run_options = run_rows;
static const base_option_group groups[] = {
    {"Your function", &function_options, offsetof(settings, function)},
    {"What it is told, and what becomes of its answers", &shoal_exec.options, offsetof(settings, config)},
    {"Output", &output_options, 0},
    {"Following the run", &run_trace_options_table, offsetof(settings, trace)},
    {"Reading the data", &run_data_options, offsetof(settings, data)},
    {"Running", &run_options, offsetof(settings, run)},
    {"Ranks and checkpoints", &run_ranks_options_table, offsetof(settings, ranks)},
    {"Running on workers", &run_workers_options_table, offsetof(settings, workers)},
    {"Printing", &cli_print_options, offsetof(settings, print)},
    {"Help", &cli_common_options, offsetof(settings, common)},
    {0},
};

/* What of the options belongs to programs alone, or to modules alone. */
static int check_function(const settings *settings, int words)
{
    const function *function = &settings->function;
    if (function->exec && !function->exec[strspn(function->exec, " \t\n")])
        return shoal_fail(SHOAL_USAGE, "--exec needs a command line");
    if (function->exec && words > 1)
        return shoal_fail(SHOAL_USAGE, "with --exec there is no MODULE: shoal run --exec COMMAND DATA");
    if (words < (function->exec ? 1 : 2))
        return shoal_fail(SHOAL_USAGE, "run needs MODULE and DATA, or --exec COMMAND and DATA");
    if (function->exec && function->weights)
        return shoal_fail(SHOAL_USAGE, "--weights is for modules: programs see rows alone");
    if (!function->exec && (function->send.count > 0 || settings->config.collect))
        return shoal_fail(SHOAL_USAGE, "--send and --collect need --exec COMMAND");
    return SHOAL_OK;
}

/* What is run: a module or a command, its parameters, and the request that they make. */
typedef struct errand {
    char *params;
    run_code code;
    shoal_request *request;
} errand;

/* Refuses what can be refused before a compiler is called, and meets other ranks. */
static int check_request(const shoal_request *request, const char *module, const char *params)
{
    run_files outputs, inputs;
    run_file sources[RUN_FILES_MOST + 2] = {0};
    int count = 0, status = run_check(request);
    if (status < 0 || !run_is_first())
        return status;
    run_request_outputs(&outputs, request);
    run_request_inputs(&inputs, request);
    for (; inputs.file[count].name; count++)
        sources[count] = inputs.file[count];
    sources[count++] = (run_file){"MODULE", module};
    if (params && !run_params_are_json(params))
        sources[count] = (run_file){"--params", params};
    return run_files_check(outputs.file, sources, request->json);
}

static int make_request(errand *self, const settings *settings, const char *data, cli_watch *watch)
{
    const learn_face *face = learn_face_find(settings->function.exec ? "exec" : "module");
    int status = base_alloc(&self->request, 1, run_request_size(face), "a request");
    if (status < 0)
        return status;
    shoal_request *request = self->request;
    request->face = face;
    request->algorithm = face->algorithm;
    request->data = data;
    request->reading = settings->data;
    request->inputs.weights = settings->function.weights;
    request->output[0] = settings->out;
    request->trace = settings->trace;
    request->place = settings->run;
    request->ranks = settings->ranks;
    request->workers = settings->workers;
    request->json = settings->print.json;
    request->watch = cli_watcher(watch);
    request->code = &self->code;
    return SHOAL_OK;
}

/* Loads or compiles the module, or takes the command along. */
static int prepare_code(errand *self, const settings *settings, const char *module)
{
    const function *function = &settings->function;
    const char *params = settings->config.params;
    bool away = run_on_workers(&settings->workers);
    shoal_request *request = self->request;
    int status = params && !run_params_are_json(params) ? run_ranks_can_read("--params", params) : SHOAL_OK;
    if (status == SHOAL_OK)
        status = run_params_read(&self->params, params);
    if (status == SHOAL_OK)
        status = function->exec ? run_code_command(&self->code, function->exec, &function->send, away)
                                : run_code_module(&self->code, &request->algorithm, module);
    if (status == SHOAL_OK)
        run_code_name(&self->code);
    if (status == SHOAL_OK && function->exec && !away)
        status = run_code_folder(&self->code, &request->watch);
    if (function->exec) {
        shoal_exec_config *config = (shoal_exec_config *)request->config;
        *config = settings->config;
        config->params = self->params;
    } else {
        ((learn_module_config *)request->config)->params = self->params;
    }
    return status;
}

static int run_run(void *from_main, const char *const *word, int words)
{
    const settings *settings = from_main;
    const char *module = words > 1 ? word[0] : NULL;
    shoal_outcome *outcome = NULL;
    errand self = {0};
    cli_watch watch;
    int status = check_function(settings, words);
    if (status < 0)
        return status;
    cli_watch_start(&watch, settings->print.quiet);
    status = make_request(&self, settings, words > 1 ? word[1] : word[0], &watch);
    if (status == SHOAL_OK)
        status = check_request(self.request, module, settings->config.params);
    if (status == SHOAL_OK)
        status = prepare_code(&self, settings, module);
    if (status == SHOAL_OK)
        status = run_checked(&outcome, self.request);
    cli_progress_clear(&watch.progress);
    status = cli_outcome_tell(outcome, &settings->print, status);
    shoal_outcome_free(&outcome);
    if (self.request)
        run_code_release(&self.code, &self.request->watch);
    shoal_request_free(&self.request);
    base_free(&self.params);
    return status;
}

static const char *const description[] = {
    "Runs a function of your own over the rows of a data set, on all cores or on workers: shoal run MODULE DATA, or "
    "shoal run --exec COMMAND DATA. It sees the rows a grain (a run of rows) at a time; what it answers is added "
    "exactly, so that the result has the same bits for any number of threads, workers and machines.",
    "MODULE is a C file, which is compiled once by ${CC:-cc}, or a shared object; shoal/module.h says what is in it. "
    "Ten lines are enough for the sum of every column.",
    "COMMAND is a command line for /bin/sh. A process for each thread reads arrays of rows in the .npy format on its "
    "standard input, one behind the other, and writes one array for each to its standard output. These are added "
    "(integers as int64, floats as float64, rounded once), or with --collect joined along their first axis. It finds "
    "--params as JSON in SHOAL_PARAMS and the machine's name in SHOAL_HOST, and on workers the files that its words "
    "and --send name in its current folder. A program that exits, writes anything else or takes longer than --timeout "
    "ends the run with a sentence that shows the rows, the machine and the last lines of its standard error.",
    "Without --out the numbers of the result are printed, a row a line, if there are at most 10,000.",
    "Started by mpirun or srun, all ranks run it together, each on its own part of the rows, and the result has the "
    "same bits; rank 0 alone prints and writes. With --checkpoint the same command and --resume goes on after a crash, "
    "with any number of ranks or threads.",
    "SIGINT (Ctrl-C), SIGTERM or SIGHUP ends the run of a module after the round it is in, and what it has found so "
    "far is the result; the exit code is 130. A second signal, and the first one with --exec, ends it at once.",
    NULL,
};
static const learn_example examples[] = {
    {"shoal run sum_rows.c data.npy", "the sum of every column, by a module of ten lines"},
    {"shoal run logistic.c data.npy --params '{\"rate\": 0.5}' -o weights.npy", "a module with parameters"},
    {"shoal run --exec 'python3 sum.py' data.npy --workers local:4", "a program, on four workers"},
    {"shoal run --exec 'python3 features.py' images.npy --collect -o features.npy", "an answer for every row"},
    {NULL, NULL},
};

const cli_verb cli_run = {
    .name = "run",
    .summary = "run a function of your own over the rows of a data set",
    .word = {"MODULE", "DATA"},
    .words_in_synopsis = true,
    .synopsis = "MODULE DATA | --exec COMMAND DATA [options]",
    .description = description,
    .examples = examples,
    .options = groups,
    .settings_size = sizeof(settings),
    .of_ranks = true,
    .run = run_run,
};
