/* shoal run: your own functions over the rows of a data set, as a C module or as any program. */
#include "cli.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/pool.h"
#include "kernel/kernel.h"
#include "learn/module.h"
#include "learn_verb.h"
#include "ranks.h"
#include "run_code.h"
#include "run_job.h"
#include "run_params.h"
#include "run_result.h"

typedef struct function {
    const char *exec;
    shoal_texts send;
    const char *weights;
} function;

typedef struct outputs {
    const char *out;
} outputs;

typedef struct settings {
    cli_common common;
    function function;
    shoal_exec_config config;
    shoal_data_options data;
    cli_run_settings run;
    cli_ranks_settings ranks;
    cli_workers_settings workers;
    outputs outputs;
    cli_trace_settings trace;
    cli_print_settings print;
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
    {"out", 'o', SHOAL_OPTION_TEXT, offsetof(outputs, out), "FILE",
     .help = "write the result: FILE.npy, or FILE.safetensors; without it the numbers are printed"},
    {0},
};
static const shoal_option run_rows[] = {
    {"threads", 't', SHOAL_OPTION_COUNT, offsetof(cli_run_settings, threads), "N",
     .help = "threads, each with a process of --exec; all cores this process may use when left out; never changes the "
             "result",
     .least = 1, .most = SHOAL_THREADS_MOST},
    {"kernel", 0, SHOAL_OPTION_TEXT, offsetof(cli_run_settings, kernel), "NAME",
     .help = "instructions that a module's whole algorithm may ask for: auto, portable, avx2, avx512 or vnni",
     .fallback = "auto"},
    {"grain", 0, SHOAL_OPTION_COUNT, offsetof(cli_run_settings, rows_per_grain), "ROWS",
     .help = "rows that the function sees at once; chosen from the shape when left out", .least = 1},
    {0},
};
static const shoal_option *const function_options = function_rows, *const output_options = output_rows,
                                 *const run_options = run_rows;
static const base_option_group groups[] = {
    {"Your function", &function_options, offsetof(settings, function)},
    {"What it is told, and what becomes of its answers", &shoal_exec.options, offsetof(settings, config)},
    {"Output", &output_options, offsetof(settings, outputs)},
    {"Following the run", &cli_trace_options, offsetof(settings, trace)},
    {"Reading the data", &cli_data_options, offsetof(settings, data)},
    {"Running", &run_options, offsetof(settings, run)},
    {"Ranks and checkpoints", &cli_ranks_options, offsetof(settings, ranks)},
    {"Running on workers", &cli_workers_options, offsetof(settings, workers)},
    {"Printing", &cli_print_options, offsetof(settings, print)},
    {"Help", &cli_common_options, offsetof(settings, common)},
    {0},
};

/* ---- after the run ----------------------------------------------------------------------------------------------- */

static double objective_of(const shoal_result *result)
{
    return shoal_result_number(result, "objective");
}

static void print_summary(FILE *stream, const cli_job *job, const cli_file *written, const cli_trace_settings *trace)
{
    double objective = objective_of(job->result);
    cli_job_print_data(job, stream);
    if (!isnan(objective))
        fprintf(stream, "objective  %.10g\n", objective);
    cli_job_print(job, stream);
    cli_print_written(stream, written, trace);
}

enum { OUTPUTS = 2 };
static void list_outputs(cli_file list[OUTPUTS + 1], const outputs *from, const cli_trace_settings *trace)
{
    const cli_file all[OUTPUTS + 1] = {{"--out", from->out}, {"--trace", trace->trace}, {0}};
    memcpy(list, all, sizeof all);
}

static int write_outputs(cli_job *job, const outputs *out)
{
    double started = base_seconds();
    int status = cli_run_write(out->out, job);
    if (status == SHOAL_OK)
        status = cli_trace_commit(&job->trace, objective_of(job->result));
    job->write_seconds = base_seconds() - started;
    return status;
}

/* Writes and tells what was found. */
static int end_run(cli_job *job, const outputs *out, const cli_trace_settings *trace, const cli_print_settings *print)
{
    cli_file written[OUTPUTS + 1];
    list_outputs(written, out, trace);
    if (!cli_is_first())
        return SHOAL_OK;
    FILE *summary = cli_summary_stream(written);
    int status = cli_workers_close(job, cli_job_close(job, write_outputs(job, out)));
    if (status < 0)
        return status;
    if (print->json) {
        json_t *object = cli_job_json(job);
        if (object)
            cli_run_json(&object, job->result);
        status = cli_print_json(object);
    } else if (!out->out) {
        cli_run_print(stdout, job->result);
    } else if (!print->quiet) {
        print_summary(summary, job, written, trace);
    }
    if (status == SHOAL_OK && job->report.stopped) {
        fprintf(stderr, "shoal: stopped after %" PRId64 " rounds; the result is that of the last one\n",
                job->report.rounds);
        status = CLI_INTERRUPTED;
    }
    return status;
}

int cli_run_finish(cli_job *job, const json_t *asked, const cli_print_settings *print)
{
    const outputs out = {.out = cli_asked_path(asked, "out")};
    const cli_trace_settings trace = cli_asked_trace(asked);
    int status = cli_run_check_output(out.out);
    return status == SHOAL_OK ? end_run(job, &out, &trace, print) : status;
}

/* ---- the verb ---------------------------------------------------------------------------------------------------- */

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

static int check_settings(const settings *settings, int words, bool *on_workers)
{
    const kernel_set *set = NULL;
    int status = check_function(settings, words);
    if (status == SHOAL_OK)
        status = cli_workers_check(on_workers, &settings->workers);
    if (status == SHOAL_OK)
        status = kernel_choose(&set, settings->run.kernel);
    if (status == SHOAL_OK)
        status = cli_run_check_output(settings->outputs.out);
    return status;
}

/* Everything of one call that has to be freed. */
typedef struct run {
    settings *settings;
    const char *module, *data;
    bool on_workers;
    char *params;
    cli_code code;
    const shoal_algorithm *algorithm;
    learn_module_config module_config;
} run;

static int prepare_code(run *self)
{
    const function *function = &self->settings->function;
    const char *params = self->settings->config.params;
    int status = params && !cli_params_are_json(params) ? cli_ranks_can_read("--params", params) : SHOAL_OK;
    if (status == SHOAL_OK)
        status = cli_params_read(&self->params, params);
    self->algorithm = &shoal_exec;
    self->settings->config.params = self->params;
    self->module_config.params = self->params;
    if (status == SHOAL_OK)
        status = function->exec ? cli_code_command(&self->code, function->exec, &function->send, self->on_workers)
                                : cli_code_module(&self->code, &self->algorithm, self->module);
    if (status == SHOAL_OK)
        cli_code_name(&self->code);
    return status == SHOAL_OK && function->exec && !self->on_workers ? cli_code_folder(&self->code) : status;
}

static int run_here(cli_job *job, const run *self, const void *config)
{
    const settings *settings = self->settings;
    job->code = self->code.folder;
    job->code_hash = self->code.hash;
    return cli_job_run(job, config, &settings->run, &settings->ranks, settings->data.memory, &settings->trace);
}

static int run_on_workers(cli_job *job, const run *self, const void *config, const cli_file *written)
{
    const settings *settings = self->settings;
    const cli_workers_wish wish = {.config = config,
                                   .data_path = self->data,
                                   .data = &settings->data,
                                   .weights_path = settings->function.weights,
                                   .outputs = written,
                                   .trace = &settings->trace,
                                   .code = self->code.file,
                                   .codes = self->code.count};
    return cli_workers_run(job, &wish, &settings->run, &settings->workers, &settings->print);
}

static int load(cli_job *job, void *context)
{
    const run *self = context;
    return cli_job_load(job, self->data, &self->settings->data, self->settings->function.weights);
}

static int run_job(const run *self, const cli_file *written)
{
    const settings *settings = self->settings;
    const void *config = self->algorithm == &shoal_exec ? (const void *)&settings->config : &self->module_config;
    cli_job job;
    cli_job_init(&job, self->algorithm, settings->print.quiet);
    job.keeps_part = self->algorithm != &shoal_exec;
    job.outputs = written;
    int status = cli_load(&job, load, (void *)self);
    if (status == SHOAL_OK)
        status = self->on_workers ? run_on_workers(&job, self, config, written) : run_here(&job, self, config);
    if (status == SHOAL_OK && !job.away.detached)
        status = end_run(&job, &settings->outputs, &settings->trace, &settings->print);
    cli_job_release(&job);
    return status;
}

static int run_run(void *from_main, const char *const *word, int words)
{
    settings *settings = from_main;
    run self = {.settings = settings, .module = words > 1 ? word[0] : NULL, .data = words > 1 ? word[1] : word[0]};
    const char *params =
        settings->config.params && !cli_params_are_json(settings->config.params) ? settings->config.params : NULL;
    const cli_file sources[] = {{"DATA", self.data},
                                {"MODULE", self.module},
                                {"--weights", settings->function.weights},
                                {"--params", params},
                                {0}};
    cli_file written[OUTPUTS + 1];
    list_outputs(written, &settings->outputs, &settings->trace);
    int status = check_settings(settings, words, &self.on_workers);
    if (status == SHOAL_OK)
        status = cli_ranks_begin(&settings->ranks, self.on_workers);
    if (status == SHOAL_OK && cli_is_first())
        status = cli_files_check(written, sources, settings->print.json);
    if (status == SHOAL_OK && cli_is_first())
        status = cli_trace_check(&settings->trace);
    if (status == SHOAL_OK)
        status = prepare_code(&self);
    if (status == SHOAL_OK)
        status = run_job(&self, written);
    cli_code_release(&self.code);
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
static const cli_example examples[] = {
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
