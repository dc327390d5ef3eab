/* A run from the request to its outputs.  See run.h and shoal/run.h. */
#include "run.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/pool.h"
#include "base/text.h"
#include "kernel/device/kernel_device.h"
#include "kernel/kernel.h"
#include "learn/standardise.h"
#include "function.h"
#include "load.h"
#include "outputs.h"
#include "plot.h"
#include "process.h"
#include "ranks.h"

/* The path of the learner's output of that kind, of which it has one at most; NULL for none. */
static const char *path_of(const shoal_request *request, learn_output_kind kind)
{
    for (int i = 0; request->face->outputs[i].name; i++)
        if (request->face->outputs[i].kind == kind)
            return request->output[i];
    return NULL;
}

/* Rows, weights, labels and a start, each from one place. */
static int check_rows(const shoal_request *request)
{
    const learn_inputs *inputs = &request->inputs;
    const char *name = request->algorithm->name, *option = "";
    if (!request->data && !request->rows)
        return shoal_fail(SHOAL_USAGE, "%s needs data", name);
    if (request->data && request->rows)
        return shoal_fail(SHOAL_USAGE, "%s has both data, %s, and rows in memory", name, request->data);
    if (request->target && inputs->target)
        return shoal_fail(SHOAL_USAGE, "%s has both a target in memory and --target %s", name, inputs->target);
    if (request->weights && inputs->weights)
        return shoal_fail(SHOAL_USAGE, "%s has both weights in memory and --weights %s", name, inputs->weights);
    if (request->start && request->face->start_file &&
        request->face->start_file(&option, request->config, &request->inputs))
        return shoal_fail(SHOAL_USAGE, "%s has both a start in memory and %s", name, option);
    return SHOAL_OK;
}

/* Whether what is to be written will be there. */
static int check_outputs(const shoal_request *request)
{
    const learn_face *face = request->face;
    int status = SHOAL_OK;
    for (int i = 0; face->check_output && face->outputs[i].name && status == SHOAL_OK; i++)
        if (request->output[i])
            status = face->check_output(request->config, &face->outputs[i]);
    return status;
}

/* What the learner and the rows say of the options, before anything is read. */
static int check_learner(const shoal_request *request)
{
    int status = request->face->runs_code ? run_function_check(request) : SHOAL_OK;
    if (status == SHOAL_OK && request->face->check && !request->start) /* start_from checks those */
        status = request->face->check(request->config, &request->inputs);
    if (status == SHOAL_OK)
        status = check_rows(request);
    if (status == SHOAL_OK)
        status = check_outputs(request);
    if (status == SHOAL_OK)
        status = data_picture_check(&request->picture, path_of(request, LEARN_PICTURE));
    if (status == SHOAL_OK)
        status = run_plot_check(&request->plot, path_of(request, LEARN_PLOT));
    return status;
}

int run_check(const shoal_request *request)
{
    const kernel_set *set = NULL;
    run_files outputs, inputs;
    int status = check_learner(request);
    if (status == SHOAL_OK)
        status = run_workers_check(&request->workers);
    if (status == SHOAL_OK && request->workers.workers.count > 0)
        status = run_check_program(request->program);
    if (status == SHOAL_OK)
        status = run_ranks_begin(&request->ranks, run_on_workers(&request->workers));
    if (status == SHOAL_OK)
        status = kernel_choose(&set, request->place.kernel);
    if (status == SHOAL_OK)
        status = kernel_device_check(request->place.device); /* before workers are started with it */
    if (status < 0 || !run_is_first())
        return status;
    run_request_outputs(&outputs, request);
    run_request_inputs(&inputs, request);
    status = run_files_check(outputs.file, inputs.file, request->json);
    return status == SHOAL_OK ? run_trace_check(&request->trace) : status;
}

/* Values in memory, which are in the units of the data as those of a file are. */
static int take_start(shoal_outcome *outcome, const learn_rows *rows)
{
    const shoal_request *request = outcome->request;
    const size_t count = (size_t)request->start_rows * (size_t)request->start_columns;
    if (request->start_columns != outcome->columns)
        return shoal_fail(SHOAL_INVALID, "a start of %lld columns, but %s has %lld", (long long)request->start_columns,
                          outcome->data_name, (long long)outcome->columns);
    int status = base_alloc(&outcome->start[0], count, sizeof *outcome->start[0], "the start");
    if (status < 0)
        return status;
    memcpy(outcome->start[0], request->start, count * sizeof *outcome->start[0]);
    learn_standardise_values(outcome->start[0], request->start_rows, rows->schema);
    return request->face->start_from(outcome->config, outcome->start[0], request->start_rows);
}

/* What the run starts from: values in memory, or a file. */
static int settle(shoal_outcome *outcome)
{
    const shoal_request *request = outcome->request;
    const learn_rows rows = run_rows_of(outcome);
    const char *option = NULL, *start = request->face->start_file
                                            ? request->face->start_file(&option, request->config, &request->inputs)
                                            : NULL;
    char *line = NULL;
    if (request->start)
        return take_start(outcome, &rows);
    int status = run_ranks_can_read(option, start);
    if (status == SHOAL_OK && request->face->settle)
        status = request->face->settle(outcome->config, outcome->start, &request->inputs, &rows);
    if (status == SHOAL_OK && request->face->tell_start)
        status = request->face->tell_start(&line, outcome->config, &rows);
    if (line && run_is_first())
        run_warn(outcome, line);
    base_free(&line);
    return status;
}

/* A shape that nobody asked for is told: another one may show more. */
static int find_picture(const shoal_outcome *outcome)
{
    data_sheet sheet = {0};
    char line[160];
    const int64_t columns = run_picture_columns(outcome);
    int status = data_picture_find(&sheet, &outcome->request->picture, columns, outcome->data);
    if (status == SHOAL_OK && sheet.guessed && run_is_first()) {
        snprintf(
            line, sizeof line,
            "--picture: the %lld columns of the data are drawn as images of %lldx%lld; --picture-shape HxW chooses "
            "another shape",
            (long long)columns, (long long)sheet.height, (long long)sheet.width);
        run_warn(outcome, line);
    }
    return status;
}

/* Whether there is memory for the rounds of a run of this process; workers look for themselves. */
static int check_memory(const shoal_outcome *outcome)
{
    const shoal_request *request = outcome->request;
    const learn_rows rows = run_rows_of(outcome);
    const int64_t threads = request->place.threads > 0 ? request->place.threads : base_cores();
    const int64_t allowed = request->reading.memory, left = base_memory_available();
    const bool limited = allowed > 0 && allowed < left;
    const double most = (double)(limited ? allowed : left);
    double all = 0, each = 0;
    char needed[32], there[32], advice[96];
    if (!request->face->need || !run_is_learning(outcome) || run_on_workers(&request->workers))
        return SHOAL_OK;
    int status = request->face->need(&all, &each, outcome->config, &rows);
    if (status < 0 || all + (double)threads * each <= most)
        return status;
    base_format_bytes(needed, sizeof needed, all + (double)threads * each);
    base_format_bytes(there, sizeof there, most);
    if (all + each <= most)
        snprintf(advice, sizeof advice, "use --threads %.0f or fewer", floor((most - all) / each));
    else
        snprintf(advice, sizeof advice, "it is too much for one thread, too, so ask for a smaller model");
    return shoal_fail(SHOAL_MEMORY, "%s needs about %s of memory on %lld thread%s, but %s %s: %s",
                      request->algorithm->name, needed, (long long)threads, base_plural(threads),
                      limited ? "--memory allows" : "there is", there, advice);
}

/* Rows, start and picture: what depends on the data. */
static int prepare_run(shoal_outcome *outcome)
{
    const shoal_request *request = outcome->request;
    int status = run_load(outcome);
    if (status == SHOAL_OK)
        status = settle(outcome);
    if (status == SHOAL_OK)
        status = check_memory(outcome);
    if (status == SHOAL_OK && path_of(request, LEARN_PICTURE))
        status = find_picture(outcome);
    if (status == SHOAL_OK && path_of(request, LEARN_PLOT))
        status = run_plot_prepare(outcome, &request->plot);
    if (status == SHOAL_OK && run_is_first())
        status = run_outputs_check_old(outcome);
    return status;
}

static int run_prepared(shoal_outcome *outcome)
{
    int status = prepare_run(outcome);
    if (status == SHOAL_OK)
        status = run_on_workers(&outcome->request->workers) ? run_away_from_here(outcome) : run_here(outcome);
    if (status == SHOAL_INVALID && !outcome->away.keep) /* a job that is kept is told how to remove it */
        status = run_explain_missing(outcome, status);
    if (status == SHOAL_OK && !outcome->away.detached)
        status = run_finish(outcome);
    return status;
}

int run_prepare(shoal_outcome **out, const shoal_request *request)
{
    int status = run_outcome_new(out, request);
    if (status == SHOAL_OK)
        status = run_load_alone(*out);
    return status == SHOAL_OK ? settle(*out) : status;
}

int run_request(shoal_outcome **out, const shoal_request *request)
{
    run_prepared_function function = {0};
    int status = run_outcome_new(out, request);
    if (status == SHOAL_OK)
        status = run_check(request);
    if (status < 0 || !request->face->runs_code)
        return status < 0 ? status : run_prepared(*out);
    status = run_function_prepare(&function, *out);
    if (status == SHOAL_OK)
        status = run_prepared(*out);
    run_function_release(&function, *out);
    return status;
}

int shoal_request_run(shoal_outcome **out, const shoal_request *request)
{
    *out = NULL;
    return run_ranks_finish(run_request(out, request));
}
