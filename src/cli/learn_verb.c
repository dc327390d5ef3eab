/* What the verbs of learners share.  See learn_verb.h. */
#include "learn_verb.h"

#include "base/pool.h"
#include "kernel/kernel.h"
#include "learn/lbfgs.h"
#include "labels.h"
#include "ranks.h"

int cli_learning_check(cli_learning *learning, const cli_file *inputs)
{
    const kernel_set *set = NULL;
    int status = cli_workers_check(&learning->on_workers, learning->workers);
    if (status == SHOAL_OK)
        status = cli_ranks_begin(learning->ranks, learning->on_workers);
    if (status == SHOAL_OK)
        status = kernel_choose(&set, learning->run->kernel);
    if (status == SHOAL_OK && cli_is_first())
        status = cli_files_check(learning->outputs, inputs, learning->print->json);
    if (status == SHOAL_OK && cli_is_first())
        status = cli_trace_check(learning->trace);
    return status;
}

static int load(cli_job *job, void *context)
{
    const cli_learning *learning = context;
    int status = cli_job_load(job, learning->data_path, learning->data, learning->weights_path);
    return status == SHOAL_OK && learning->labels_path ? cli_labels_join(job, learning->labels_path) : status;
}

int cli_learning_load(cli_job *job, const cli_learning *learning)
{
    return cli_load(job, load, (void *)learning);
}

int cli_learning_run(cli_job *job, const cli_learning *learning, json_t *more)
{
    const cli_workers_wish wish = {.config = learning->config,
                                   .data_path = learning->data_path,
                                   .data = learning->data,
                                   .weights_path = learning->weights_path,
                                   .labels_path = learning->labels_path,
                                   .outputs = learning->outputs,
                                   .more = more,
                                   .trace = learning->trace};
    if (learning->on_workers)
        return cli_workers_run(job, &wish, learning->run, learning->workers, learning->print);
    json_decref(more);
    job->outputs = learning->outputs;
    return cli_job_run(job, learning->config, learning->run, learning->ranks, learning->data->memory, learning->trace);
}

/* ---- the end ----------------------------------------------------------------------------------------------------- */

/* The trace comes last: a file of it that is there tells that the others are. */
static int write_all(cli_job *job, const cli_ending *ending)
{
    double started = base_seconds();
    int status = ending->write(job, ending->context);
    if (status == SHOAL_OK)
        status = cli_trace_commit(&job->trace, shoal_result_number(job->result, "objective"));
    job->write_seconds = base_seconds() - started;
    return status;
}

static void print_summary(FILE *stream, const cli_job *job, const cli_ending *ending)
{
    cli_job_print_data(job, stream);
    ending->summary(stream, job, ending->context);
    cli_job_print(job, stream);
    cli_print_written(stream, ending->outputs, ending->trace);
}

static int print_object(const cli_job *job, const cli_ending *ending)
{
    json_t *object = cli_job_json(job);
    if (object && ending->json)
        ending->json(&object, job, ending->context);
    return cli_print_json(object);
}

/* What was found before a run diverged is written; still it is a failure. */
static int fail_diverged(const cli_job *job)
{
    return shoal_fail(SHOAL_INVALID,
                      "%s: diverged in round %lld: the cost has no finite value further down; the model is that of "
                      "iteration %.0f",
                      job->data_name, (long long)job->report.rounds, shoal_result_number(job->result, "iterations"));
}

int cli_learning_end(cli_job *job, const cli_ending *ending)
{
    if (!cli_is_first())
        return ending->follow ? ending->follow(job, ending->context) : SHOAL_OK;
    FILE *stream = cli_summary_stream(ending->outputs);
    int status = job->away.id[0] ? ending->check(job, ending->context) : SHOAL_OK;
    if (status == SHOAL_OK)
        status = cli_workers_close(job, cli_job_close(job, write_all(job, ending)));
    if (status < 0)
        return status;
    if (ending->print->json)
        status = print_object(job, ending);
    else if (!ending->print->quiet)
        print_summary(stream, job, ending);
    if (status == SHOAL_OK && job->report.stopped) {
        double iterations = shoal_result_number(job->result, "iterations");
        fprintf(stderr, "shoal: stopped after %.0f iterations; %s of iteration %.0f\n", iterations, ending->kept,
                iterations);
        status = CLI_INTERRUPTED;
    }
    if (status == SHOAL_OK && shoal_result_number(job->result, "diverged") > 0)
        status = fail_diverged(job);
    return status;
}

/* The number "end" of the result may come from a store. */
static const char *why_ended(const cli_job *job)
{
    static const char *const ends[] = {[LEARN_LBFGS_GOES_ON] = "not converged",
                                       [LEARN_LBFGS_GRADIENT] = "converged: the gradient is small",
                                       [LEARN_LBFGS_CHANGE] = "converged: the objective hardly changes",
                                       [LEARN_LBFGS_ITERATIONS] = "not converged: more --iterations would go on",
                                       [LEARN_LBFGS_STUCK] = "converged as far as rounding lets it",
                                       [LEARN_LBFGS_DIVERGED] = "diverged"};
    double end = shoal_result_number(job->result, "end");
    if (job->report.stopped)
        return "stopped";
    return end >= 0 && end < (double)(sizeof ends / sizeof ends[0]) ? ends[(int)end] : ends[LEARN_LBFGS_GOES_ON];
}

void cli_print_descent(FILE *stream, const cli_job *job)
{
    fprintf(stream, "objective  %.10g after %.0f iterations, %s\n", shoal_result_number(job->result, "objective"),
            shoal_result_number(job->result, "iterations"), why_ended(job));
}

bool cli_is_vector(const shoal_tensor *tensor, int64_t count)
{
    return tensor && tensor->type == SHOAL_FLOAT64 && tensor->rank == 1 && tensor->shape[0] == count;
}

bool cli_is_matrix(const shoal_tensor *tensor, int64_t rows, int64_t columns)
{
    return tensor && tensor->type == SHOAL_FLOAT64 && tensor->rank == 2 && tensor->shape[0] == rows &&
           tensor->shape[1] == columns;
}

/* ---- what a job was submitted with ------------------------------------------------------------------------------- */

const char *cli_asked_path(const json_t *asked, const char *name)
{
    return json_string_value(json_object_get(json_object_get(asked, "outputs"), name));
}

cli_trace_settings cli_asked_trace(const json_t *asked)
{
    return (cli_trace_settings){.trace = cli_asked_path(asked, "trace"),
                                .tensorboard = cli_asked_path(asked, "tensorboard")};
}
