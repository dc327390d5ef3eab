/* shoal job wait and result: the end of a job, and what came of it. */
#include "cli.h"

#include <inttypes.h>

#include "base/text.h"
#include "run/jobs.h"
#include "run/tensors.h"

/* ---- wait -------------------------------------------------------------------------------------------------------- */

typedef struct wait_settings {
    cli_common common;
    run_jobs_settings jobs;
    double patience;
    bool quiet;
} wait_settings;

static const shoal_option wait_rows[] = {
    {"patience", 0, SHOAL_OPTION_REAL, offsetof(wait_settings, patience), "SECONDS",
     .help = "give up after SECONDS without any worker or without the store", .fallback = "60",
     .least = SHOAL_JOB_PATIENCE_LEAST, .most = SHOAL_JOB_PATIENCE_MOST},
    {"quiet", 'q', SHOAL_OPTION_FLAG, offsetof(wait_settings, quiet), NULL, .help = "print no progress line"},
    {0},
};
static const shoal_option *const wait_options = wait_rows;
static const base_option_group wait_groups[] = {
    {"Waiting", &wait_options, 0},
    {"Store", &run_jobs_options, offsetof(wait_settings, jobs)},
    {"Help", &cli_common_options, offsetof(wait_settings, common)},
    {0},
};

static void show_followed_round(void *context, const shoal_round *done, const shoal_round *next, int64_t rows,
                                double seconds)
{
    cli_progress_round(context, done, next, rows, seconds);
}

static int say_stopped(void)
{
    fputs("shoal: ", stderr);
    cli_put_text(stderr, shoal_error());
    fputc('\n', stderr);
    return CLI_RESUMABLE;
}

static int wait_for(const wait_settings *settings, const run_jobs *jobs, const char *id)
{
    cli_progress progress;
    shoal_result *result = NULL;
    cli_progress_start(&progress, settings->quiet);
    const shoal_follow_options options = {.progress = show_followed_round,
                                          .progress_context = &progress,
                                          .sparse = true,
                                          .patience = settings->patience,
                                          .algorithms = learn_algorithms()};
    int status = shoal_job_follow(&result, NULL, jobs->store, id, &options);
    cli_progress_clear(&progress);
    shoal_result_free(&result);
    if (status == SHOAL_STOPPED)
        status = say_stopped();
    return status;
}

static int run_wait(void *from_main, const char *const *word, int words)
{
    const wait_settings *settings = from_main;
    char id[SHOAL_JOB_ID_BYTES];
    run_jobs jobs = {0};
    (void)words;
    /* A spec that the store forgot is put again; but who may only read can wait as well. */
    int status = run_jobs_open(&jobs, &settings->jobs, RUN_JOBS_WRITE);
    if (status == SHOAL_DENIED || status == SHOAL_SYSTEM)
        status = run_jobs_open(&jobs, &settings->jobs, RUN_JOBS_READ);
    if (status == SHOAL_OK)
        status = run_jobs_find_running(id, &jobs, word[0]);
    if (status == SHOAL_OK)
        status = wait_for(settings, &jobs, id);
    run_jobs_close(&jobs);
    return status;
}

static const char *const wait_description[] = {
    "Waits for the end of a job. The exit code is 0 if the job is done, 1 if it failed, and 3 if it was cancelled or "
    "has no workers, so that shoal job resume can continue it. Without ID it waits for the only job that has not "
    "ended.",
    NULL,
};
static const learn_example wait_examples[] = {
    {"shoal job wait kmeans-4f --patience 600", "even if workers take ten minutes to start"},
    {NULL, NULL},
};
const cli_verb cli_job_wait = {
    .name = "job wait",
    .summary = "wait for the end of a job",
    .word = {"ID"},
    .synopsis = "[options]",
    .description = wait_description,
    .examples = wait_examples,
    .options = wait_groups,
    .settings_size = sizeof(wait_settings),
    .run = run_wait,
};

/* ---- result ------------------------------------------------------------------------------------------------------ */

typedef struct result_settings {
    cli_common common;
    run_jobs_settings jobs;
    const char *folder, *tensor, *output;
    bool force, json;
} result_settings;

static const shoal_option result_rows[] = {
    {"out", 'o', SHOAL_OPTION_TEXT, offsetof(result_settings, folder), "FOLDER",
     .help = "write every tensor of the result as NAME.npy to this folder, which is created if need be"},
    {"tensor", 0, SHOAL_OPTION_TEXT, offsetof(result_settings, tensor), "NAME",
     .help = "write this tensor to the file of --output"},
    {"output", 0, SHOAL_OPTION_TEXT, offsetof(result_settings, output), "FILE",
     .help = "where --tensor goes: .npy, .csv, .tsv, .txt or .idx; '-' prints it"},
    {"json", 0, SHOAL_OPTION_FLAG, offsetof(result_settings, json), NULL,
     .help = "print the numbers as one JSON object"},
    {0},
};
static const shoal_option *const result_options = result_rows;
static const base_option_group result_groups[] = {
    {"Output", &result_options, 0},
    {"Replacing files", &run_force_options, offsetof(result_settings, force)},
    {"Store", &run_jobs_options, offsetof(result_settings, jobs)},
    {"Help", &cli_common_options, offsetof(result_settings, common)},
    {0},
};

static json_t *json_shape(const shoal_tensor *tensor)
{
    json_t *shape = json_array();
    for (int i = 0; i < tensor->rank; i++)
        json_array_append_new(shape, json_integer(tensor->shape[i]));
    return shape;
}

static int print_json(const char *id, const shoal_result *result)
{
    json_t *object = json_object(), *tensors = json_object();
    base_json_put(&object, "job", json_string(id));
    for (int i = 0; i < result->numbers; i++)
        base_json_put(&object, result->number[i].name, cli_json_number(result, &result->number[i]));
    for (int i = 0; i < result->tensors; i++)
        base_json_put(&tensors, result->tensor[i].name, json_shape(&result->tensor[i]));
    base_json_put(&object, "tensors", tensors);
    return cli_print_json(object);
}

static void print_name(const char *name)
{
    char shown[sizeof((shoal_tensor *)NULL)->name];
    snprintf(shown, sizeof shown, "%s", name);
    base_text_clean(shown);
    printf("%-20s ", shown);
}

static void print_result_text(const shoal_result *result)
{
    for (int i = 0; i < result->numbers; i++) {
        const shoal_number *number = &result->number[i];
        const char *word = learn_number_word(result, number);
        print_name(number->name);
        if (word)
            puts(word);
        else if (number->truth)
            puts(number->value != 0 ? "true" : "false");
        else
            printf(number->whole ? "%.0f\n" : "%.17g\n", number->value);
    }
    for (int i = 0; i < result->tensors; i++) {
        const shoal_tensor *tensor = &result->tensor[i];
        print_name(tensor->name);
        fputs(shoal_type_name(tensor->type), stdout);
        for (int j = 0; j < tensor->rank; j++)
            printf("%s%" PRId64, j ? " x " : ", ", tensor->shape[j]);
        putchar('\n');
    }
}

static int run_result(void *from_main, const char *const *word, int words)
{
    const result_settings *settings = from_main;
    const run_file outputs[] = {{"--output", settings->output, {.kind = DATA_CONTENT_ARRAY}}, {0}}, inputs[] = {{0}};
    char id[SHOAL_JOB_ID_BYTES];
    shoal_result *result = NULL;
    run_jobs jobs = {0};
    (void)words;
    if (!settings->tensor != !settings->output)
        return shoal_fail(SHOAL_USAGE, "--tensor NAME and --output FILE go together");
    int status = run_files_check(outputs, inputs, settings->json);
    if (status == SHOAL_OK)
        status = run_jobs_open_one(&jobs, id, &settings->jobs, RUN_JOBS_READ, word[0]);
    if (status == SHOAL_OK)
        status = shoal_job_result(&result, jobs.store, id, learn_algorithms(), run_jobs_deadline(&jobs));
    if (status == SHOAL_STOPPED)
        status = say_stopped();
    if (status == SHOAL_OK && settings->tensor)
        status = run_tensor_write(settings->output, result, settings->tensor, settings->force);
    if (status == SHOAL_OK && settings->folder)
        status = run_tensors_write(settings->folder, result, settings->force);
    if (status == SHOAL_OK && settings->json)
        status = print_json(id, result);
    else if (status == SHOAL_OK && !settings->tensor)
        print_result_text(result);
    shoal_result_free(&result);
    run_jobs_close(&jobs);
    return status;
}

static const char *const result_description[] = {
    "Prints the numbers and the names of the tensors in a finished job's result, and writes tensors to files if --out "
    "or --tensor asks for it. If the job is not done, the exit code is 3.",
    NULL,
};
static const learn_example result_examples[] = {
    {"shoal job result kmeans-4f --out found", "centres.npy, labels.npy and so on"},
    {"shoal job result --tensor centres --output centres.npy", "one of them"},
    {NULL, NULL},
};
const cli_verb cli_job_result = {
    .name = "job result",
    .summary = "print and write the result of a job",
    .word = {"ID"},
    .synopsis = "[options]",
    .description = result_description,
    .examples = result_examples,
    .options = result_groups,
    .settings_size = sizeof(result_settings),
    .run = run_result,
};
