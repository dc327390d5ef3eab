/* shoal logistic: learns to tell labels from the other columns. */
#include "cli.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "learn_verb.h"
#include "ranks.h"
#include "model_file.h"

typedef struct inputs {
    const char *target, *labels, *weights, *start;
} inputs;

typedef struct outputs {
    const char *model;
} outputs;

typedef struct settings {
    cli_common common;
    shoal_logistic_config config;
    shoal_data_options data;
    inputs inputs;
    cli_run_settings run;
    cli_ranks_settings ranks;
    cli_workers_settings workers;
    outputs outputs;
    cli_trace_settings trace;
    cli_print_settings print;
} settings;

static const shoal_option input_rows[] = {
    {"target", 'y', SHOAL_OPTION_TEXT, offsetof(inputs, target), "COLUMN",
     .help = "the column with the labels: its name in the header of a text file, its number from 1, or from -1 "
             "backwards; the last when left out"},
    {"labels", 'l', SHOAL_OPTION_TEXT, offsetof(inputs, labels), "FILE",
     .help = "the labels, as any data file of one column or one row, when DATA does not hold them"},
    {"weights", 'w', SHOAL_OPTION_TEXT, offsetof(inputs, weights), "FILE",
     .help = "a weight for each row, finite and at least 0, as any data file of one column or one row"},
    {"start", 0, SHOAL_OPTION_TEXT, offsetof(inputs, start), "MODEL",
     .help = "start from what an earlier run wrote with --model, for the same columns and classes"},
    {0},
};
static const shoal_option *const input_options = input_rows;

static const shoal_option output_rows[] = {
    {"model", 'm', SHOAL_OPTION_TEXT, offsetof(outputs, model), "FILE.safetensors",
     .help = "write weights, intercept and classes, and how they were found, for shoal predict"},
    {0},
};
static const shoal_option *const output_options = output_rows;

static const base_option_group groups[] = {
    {"Labels and weights", &input_options, offsetof(settings, inputs)},
    {"Learning", &shoal_logistic.options, offsetof(settings, config)},
    {"Output", &output_options, offsetof(settings, outputs)},
    {"Following the run", &cli_trace_options, offsetof(settings, trace)},
    {"Reading the data", &cli_data_options, offsetof(settings, data)},
    {"Running", &cli_run_options, offsetof(settings, run)},
    {"Ranks and checkpoints", &cli_ranks_options, offsetof(settings, ranks)},
    {"Running on workers", &cli_workers_options, offsetof(settings, workers)},
    {"Printing", &cli_print_options, offsetof(settings, print)},
    {"Help", &cli_common_options, offsetof(settings, common)},
    {0},
};

/* ---- before the run ---------------------------------------------------------------------------------------------- */

/* Sets config->target from a name or a number.  Names count first, as they do for --drop-column. */
static int find_target(shoal_logistic_config *config, const char *text, const cli_job *job)
{
    bool named = false, backwards;
    int64_t number = 0;
    if (!text)
        return SHOAL_OK;
    for (int64_t i = 0; i < job->columns; i++) {
        const char *name = shoal_data_column_name(job->data, i);
        named |= name != NULL;
        if (name && strcmp(name, text) == 0) {
            config->target = i + 1;
            return SHOAL_OK;
        }
    }
    backwards = text[0] == '-';
    if (!base_parse_count(&number, text + backwards) || number < 1 || number > job->columns)
        return shoal_fail(SHOAL_USAGE, "--target: %s has no column '%s'; there are %" PRId64 " columns%s",
                          job->data_name, text, job->columns, named ? "" : " without names");
    config->target = backwards ? -number : number;
    return SHOAL_OK;
}

/* An earlier model, whose numbers config points to. */
typedef struct start {
    double *weights, *intercept, *classes;
} start;

static int load_start(start *out, shoal_logistic_config *config, const char *path, const cli_job *job)
{
    cli_model model = {0};
    int64_t columns = job->columns - 1;
    if (!path)
        return SHOAL_OK;
    int status = cli_model_open_as(&model, path, "logistic");
    if (status == SHOAL_OK)
        status = cli_model_matrix(&out->weights, &config->start_outputs, &columns, &model, "weights");
    if (status == SHOAL_OK)
        status = cli_model_vector(&out->intercept, &config->start_outputs, &model, "intercept");
    if (status == SHOAL_OK)
        status = cli_model_vector(&out->classes, &config->start_classes_count, &model, "classes");
    cli_model_close(&model);
    config->start_columns = columns;
    config->start_weights = out->weights;
    config->start_intercept = out->intercept;
    config->start_classes = out->classes;
    return status;
}

static void release_start(start *start)
{
    base_free(&start->weights);
    base_free(&start->intercept);
    base_free(&start->classes);
}

/* What can be refused before anything is read. */
static int check_settings(const settings *settings, const char *data)
{
    const inputs *in = &settings->inputs;
    if (in->labels && in->target)
        return shoal_fail(SHOAL_USAGE, "--labels FILE and --target COLUMN both say where the labels are");
    if (in->labels && cli_is_in_store(data))
        return shoal_fail(SHOAL_USAGE,
                          "--labels: the rows of %s stay in their store, so the labels must be one of its columns; or "
                          "fetch it first with shoal store get",
                          data);
    return SHOAL_OK;
}

/* ---- after the run ----------------------------------------------------------------------------------------------- */

/* What the end of a run needs to know, whether it was started here or resumed. */
typedef struct ending {
    outputs outputs;
    const json_t *options; /* of the learner */
} ending;

static int write_outputs(const cli_job *job, const void *context)
{
    static const char *const parts[] = {"weights", "intercept", "classes", NULL};
    const ending *end = context;
    char columns[24];
    snprintf(columns, sizeof columns, "%" PRId64, job->columns - 1); /* of the rows that it labels */
    return cli_model_write(end->outputs.model, job, parts, end->options,
                           (const data_metadata[]){{"columns", columns}, {NULL, NULL}});
}

static void print_summary(FILE *stream, const cli_job *job, const void *context)
{
    const shoal_result *result = job->result;
    const shoal_tensor *weights = shoal_result_tensor(result, "weights");
    const double *weight = weights->values;
    int64_t count = weights->shape[0] * weights->shape[1], others = 0;
    (void)context;
    for (int64_t i = 0; i < count; i++)
        others += weight[i] != 0;
    fprintf(stream, "classes    %.0f; %" PRId64 " weights, %" PRId64 " of them not 0\n",
            shoal_result_number(result, "classes"), count, others);
    cli_print_descent(stream, job);
    fprintf(stream, "loss       %.10g; %.2f%% of these rows are labelled right\n", shoal_result_number(result, "loss"),
            100 * shoal_result_number(result, "accuracy"));
}

static int check_result(const cli_job *job, const void *context)
{
    const shoal_tensor *classes = shoal_result_tensor(job->result, "classes");
    int64_t count = classes && classes->rank == 1 ? classes->shape[0] : 0, outputs = count == 2 ? 1 : count;
    (void)context;
    return count >= 2 && cli_is_vector(classes, count) &&
                   cli_is_matrix(shoal_result_tensor(job->result, "weights"), outputs, job->columns - 1) &&
                   cli_is_vector(shoal_result_tensor(job->result, "intercept"), outputs)
               ? SHOAL_OK
               : shoal_fail(SHOAL_BROKEN, "the result of job %s is not that of logistic regression on its data",
                            job->away.id);
}

/* Everything a run writes, in the order in which it is told. */
enum { OUTPUTS = 2 };
static void list_outputs(cli_file out[OUTPUTS + 1], const outputs *from, const cli_trace_settings *trace)
{
    const cli_file all[OUTPUTS + 1] = {{"--model", from->model}, {"--trace", trace->trace}, {0}};
    memcpy(out, all, sizeof all);
}

/* Writes and tells what was found. */
static int end_run(cli_job *job, const ending *end, const cli_trace_settings *trace, const cli_print_settings *print)
{
    cli_file written[OUTPUTS + 1];
    list_outputs(written, &end->outputs, trace);
    return cli_learning_end(job, &(cli_ending){.outputs = written,
                                               .trace = trace,
                                               .print = print,
                                               .check = check_result,
                                               .write = write_outputs,
                                               .summary = print_summary,
                                               .kept = "the weights are those",
                                               .context = end});
}

int cli_logistic_finish(cli_job *job, const json_t *asked, const cli_print_settings *print)
{
    const cli_trace_settings trace = cli_asked_trace(asked);
    const ending end = {.outputs = {.model = cli_asked_path(asked, "model")},
                        .options = json_object_get(asked, "options")};
    return end_run(job, &end, &trace, print);
}

/* ---- the verb ---------------------------------------------------------------------------------------------------- */

static int run_logistic(void *from_main, const char *const *word, int words)
{
    settings *settings = from_main;
    const inputs *in = &settings->inputs;
    const cli_file sources[] = {
        {"DATA", word[0]}, {"--labels", in->labels}, {"--weights", in->weights}, {"--start", in->start}, {0}};
    cli_file written[OUTPUTS + 1];
    cli_learning learning = {.data_path = word[0],
                             .config = &settings->config,
                             .data = &settings->data,
                             .weights_path = in->weights,
                             .labels_path = in->labels,
                             .run = &settings->run,
                             .ranks = &settings->ranks,
                             .workers = &settings->workers,
                             .trace = &settings->trace,
                             .print = &settings->print,
                             .outputs = written};
    ending end = {.outputs = settings->outputs};
    json_t *options = NULL;
    start from = {0};
    cli_job job;
    (void)words;

    list_outputs(written, &settings->outputs, &settings->trace);
    cli_job_init(&job, &shoal_logistic, settings->print.quiet);
    job.keeps_part = true;
    int status = check_settings(settings, word[0]);
    if (status == SHOAL_OK)
        status = cli_learning_check(&learning, sources);
    if (status == SHOAL_OK)
        status = cli_learning_load(&job, &learning);
    if (status == SHOAL_OK)
        status = find_target(&settings->config, in->target, &job);
    if (status == SHOAL_OK)
        status = load_start(&from, &settings->config, in->start, &job);
    if (status == SHOAL_OK)
        status = cli_learning_run(&job, &learning, NULL);
    end.options = options = cli_options_json(shoal_logistic.options, &settings->config);
    if (status == SHOAL_OK && !job.away.detached)
        status = end_run(&job, &end, &settings->trace, &settings->print);
    cli_job_release(&job);
    json_decref(options);
    release_start(&from);
    return status;
}

static const char *const description[] = {
    "Finds weights of the columns that tell the label of a row: logistic regression for two classes, softmax "
    "regression for more. It minimises the sum over rows of -log(probability of the row's label), plus l2/2 times the "
    "squared weights, plus l1 times the absolute weights; the intercept is free of both. That is scikit-learn's "
    "objective with C = 1 / l2. Labels are any finite numbers, of at most 1,000 different values. DATA is any file "
    "that shoal data info reads, or the URL of a .npy blob in a store, and holds the labels in one of its columns, or "
    "--labels brings them to a file.",
    "Columns of very different size make the search long: it helps to scale them alike beforehand. On data that a "
    "plane separates there is no minimum without l2 or l1: then the weights grow until --iterations ends it.",
    "The result depends on the data, the options under Learning, the weights of rows, where it starts and --grain "
    "alone. The number of threads or workers and the kernel never change one bit of it.",
    "With --workers or --store the same is done by worker processes that meet only in a store, and the result has the "
    "same bits. Any of them may die or leave at any moment, and more may join; shoal job shows, stops, resumes and "
    "removes jobs.",
    "Started by mpirun or srun, all ranks run it together, each on its own part of the rows, and the result has the "
    "same bits; rank 0 alone prints and writes. With --checkpoint the same command and --resume goes on after a crash, "
    "with any number of ranks or threads.",
    "SIGINT (Ctrl-C), SIGTERM or SIGHUP ends the run after the round it is in: the model is written from the best "
    "point so far, a sentence on stderr says so, and the exit code is 130. A second signal ends it at once, and "
    "nothing is written.",
    NULL,
};

static const cli_example examples[] = {
    {"shoal logistic digits.csv --target class --model digits.safetensors", "learn to tell a column of a text file"},
    {"shoal predict digits.safetensors new.csv --labels labels.npy", "label new rows by it"},
    {"shoal logistic images.idx.gz --labels labels.idx.gz --l2 100", "labels in a file of their own"},
    {"shoal logistic rows.npy --l2 0 --l1 5", "few weights, the others exactly 0"},
    {"shoal logistic rows.npy --start model.safetensors --model better.safetensors", "go on from an earlier model"},
    {"shoal logistic rows.npy --workers local:4 --json", "with four processes, any of which may die"},
    {NULL, NULL},
};

const cli_verb cli_logistic = {
    .name = "logistic",
    .summary = "learn to tell labels by logistic or softmax regression",
    .word = {"DATA"},
    .words_least = 1,
    .synopsis = "[options]",
    .description = description,
    .examples = examples,
    .options = groups,
    .settings_size = sizeof(settings),
    .of_ranks = true,
    .run = run_logistic,
};
