/* A run on its way and what came of it.  See outcome.h. */
#include "outcome.h"

#include <string.h>

#include "base/memory.h"
#include "base/pool.h"
#include "blobs.h"
#include "kept_request.h"
#include "ranks.h"

int run_outcome_new(shoal_outcome **out, const shoal_request *request)
{
    size_t size = request->algorithm->config_size;
    int status = base_alloc(out, 1, sizeof **out, "a run");
    if (status == SHOAL_OK)
        status = base_alloc(&(*out)->config, size ? size : 1, 1, "a run");
    if (status < 0) {
        base_free(out);
        return status;
    }
    (*out)->blobs_lock = -1;
    memcpy((*out)->config, request->config, size);
    (*out)->request = request;
    (*out)->face = request->face;
    (*out)->algorithm = request->algorithm;
    (*out)->started = base_seconds();
    return SHOAL_OK;
}

void shoal_outcome_free(shoal_outcome **inout)
{
    shoal_outcome *outcome = *inout;
    if (!outcome)
        return;
    run_blobs_close(outcome);
    run_trace_discard(&outcome->trace);
    shoal_result_free(&outcome->result);
    if (!outcome->data_lent)
        shoal_data_free(&outcome->data);
    shoal_data_free(&outcome->lent_weights);
    base_free(&outcome->own_weights);
    base_free(&outcome->config);
    run_columns_release(&outcome->columns_used);
    for (int i = 0; i < 4; i++)
        base_free(&outcome->start[i]);
    run_jobs_close(&outcome->jobs);
    base_free(&outcome->data_name);
    base_free(&outcome->held_name);
    base_free(&outcome->away.spec_bytes);
    base_free(&outcome->away.store);
    base_free(&outcome->away.resume);
    base_free(&outcome->away.remove);
    base_free(&outcome->away.ask);
    base_free(&outcome->away.file);
    base_free(&outcome->away.url);
    if (outcome->kept)
        run_kept_release(outcome->kept);
    base_free(&outcome->kept);
    shoal_request_free(&outcome->own);
    base_free(&outcome->checkpoint);
    base_free(inout);
}

const shoal_result *shoal_outcome_result(const shoal_outcome *outcome)
{
    return outcome ? outcome->result : NULL;
}

const shoal_report *shoal_outcome_report(const shoal_outcome *outcome)
{
    static const shoal_report nothing;
    return outcome ? &outcome->report : &nothing;
}

const char *shoal_outcome_job(const shoal_outcome *outcome)
{
    return outcome ? outcome->away.id : "";
}

const char *shoal_outcome_resume(const shoal_outcome *outcome)
{
    return outcome ? outcome->away.resume : NULL;
}

bool run_is_learning(const shoal_outcome *outcome)
{
    return strcmp(outcome->algorithm->name, outcome->face->algorithm->name) == 0;
}

learn_rows run_rows_of(const shoal_outcome *outcome)
{
    return (learn_rows){.name = outcome->data_name,
                        .rows = outcome->rows,
                        .columns = outcome->columns,
                        .type = outcome->type,
                        .own_type = outcome->own_type,
                        .target = outcome->columns_used.target,
                        .data = outcome->data,
                        .schema = outcome->columns_used.schema.columns > 0 ? &outcome->columns_used.schema : NULL};
}

learn_ended run_ended(const shoal_outcome *outcome)
{
    double seconds = 0;
    for (int i = 1; i < outcome->report.phases; i++)
        seconds += outcome->report.phase[i].seconds;
    return (learn_ended){.config = outcome->config,
                         .result = outcome->result,
                         .rows = run_rows_of(outcome),
                         .counter = outcome->report.counter,
                         .stopped = outcome->report.stopped,
                         .seconds = seconds};
}

void run_doing(const shoal_outcome *outcome, const char *text)
{
    const shoal_watcher *watch = &outcome->request->watch;
    if (watch->doing)
        watch->doing(watch->context, text);
}

void run_warn(const shoal_outcome *outcome, const char *line)
{
    const shoal_watcher *watch = &outcome->request->watch;
    if (watch->warn)
        watch->warn(watch->context, line);
}

void run_may_stop(const shoal_outcome *outcome, bool may)
{
    const shoal_watcher *watch = &outcome->request->watch;
    if (watch->may_stop)
        watch->may_stop(watch->context, may);
}

bool run_stopped(const shoal_request *request)
{
    return request->watch.stop && *request->watch.stop;
}

/* A warning, which is said once. */
static void warn_once(shoal_outcome *outcome, const learn_told *told)
{
    if (told->warning[0] && !outcome->warned && run_is_first())
        run_warn(outcome, told->warning);
    outcome->warned |= told->warning[0] != '\0';
}

/* Of what the next round says: a warning, and a new row of the history. */
static void tell_next(shoal_outcome *outcome, const shoal_round *done, const shoal_round *next)
{
    learn_told told = {0};
    if (next->model)
        outcome->face->tell_round(&told, outcome->config, next, NULL);
    warn_once(outcome, &told);
    if (told.row > 0)
        run_trace_history(&outcome->trace, done->number, told.row, outcome->face->history, told.values);
}

void run_tell_end(shoal_outcome *outcome)
{
    const learn_face *face = outcome->face;
    const shoal_tensor *history = shoal_result_tensor(outcome->result, "history");
    learn_told told = {0};
    if (!run_is_learning(outcome) || !face->tell_round)
        return;
    face->tell_round(&told, outcome->config, NULL, outcome->result);
    warn_once(outcome, &told);
    for (int64_t i = 0; face->history && history && i < history->shape[0]; i++)
        run_trace_history(&outcome->trace, -1, i + 1, face->history,
                          (const double *)history->values + i * history->shape[1]);
}

void run_on_round(void *context, const shoal_round *done, const shoal_round *next, int64_t rows, double seconds)
{
    shoal_outcome *outcome = context;
    const shoal_watcher *watch = &outcome->request->watch;
    if (watch->round)
        watch->round(watch->context, done, next, rows, seconds);
    run_trace_round(&outcome->trace, done, next, seconds);
    if (next && outcome->face->tell_round && run_is_learning(outcome))
        tell_next(outcome, done, next);
}
