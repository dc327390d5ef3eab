/* --trace: one line of JSON for every round.  The file appears when the run is done; a target that is not a plain file
 * (/dev/stderr, a pipe) is written as rounds go by.  --tensorboard: the same as events, always as rounds go by. */
#include "trace.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "events.h"

enum { TRACE_COLUMNS_MOST = 16 };

int run_trace_check(const run_trace_options *options)
{
    return options->tensorboard ? run_events_check(options->tensorboard) : SHOAL_OK;
}

int run_trace_open(run_trace *trace, const run_trace_options *options)
{
    *trace = (run_trace){0};
    int status = options->trace ? base_output_open(&trace->output, options->trace) : SHOAL_OK;
    if (status == SHOAL_OK && options->tensorboard)
        status = run_events_open(&trace->events, options->tensorboard);
    return status;
}

bool run_trace_is_open(const run_trace *trace)
{
    return trace->output || trace->events;
}

static void put_real(FILE *stream, const char *name, double value)
{
    if (isfinite(value))
        fprintf(stream, ", \"%s\": %.17g", name, value);
    else
        fprintf(stream, ", \"%s\": null", name);
}

static void put_line(FILE *stream, const run_traced *round)
{
    fprintf(stream, "{\"round\": %lld, \"phase\": \"%s\", \"step\": %lld", (long long)round->number, round->phase,
            (long long)round->step);
    if (round->k > 0)
        fprintf(stream, ", \"k\": %lld", (long long)round->k);
    put_real(stream, "objective", round->objective);
    put_real(stream, "change", round->change);
    put_real(stream, "seconds", round->seconds);
    fputs("}\n", stream);
    fflush(stream);
}

void run_trace_held(run_trace *trace, int64_t number, const control_point *point)
{
    FILE *stream = trace->output ? base_output_stream(trace->output) : NULL;
    const run_event_value values[] = {{"held/workers", (double)point->workers}, {"held/end", point->end}};
    if (stream) {
        fprintf(stream, "{\"held\": true, \"round\": %lld, \"workers\": %lld", (long long)number,
                (long long)point->workers);
        put_real(stream, "seconds", point->at);
        put_real(stream, "end", point->end);
        put_real(stream, "end_low", point->low);
        put_real(stream, "end_high", point->high);
        put_real(stream, "spent", point->spent);
        put_real(stream, "projected", point->cost);
        fputs("}\n", stream);
        fflush(stream);
    }
    if (trace->events)
        run_events_add(trace->events, number, values, sizeof values / sizeof *values);
}

/* The step of a curve is the round's number, which is unique: the learner's own steps start again in each phase. */
static void put_round(run_trace *trace, const run_traced *round)
{
    const run_event_value values[] = {
        {"objective", round->objective}, {"change", round->change}, {"seconds", round->seconds}};
    if (trace->output)
        put_line(base_output_stream(trace->output), round);
    if (trace->events)
        run_events_add(trace->events, round->number, values, 3);
}

void run_trace_round(run_trace *trace, const shoal_round *done, const shoal_round *next, double seconds)
{
    if (!run_trace_is_open(trace))
        return;
    run_traced round = {.number = done->number, .step = done->step, .k = done->k, .seconds = seconds - trace->last};
    memcpy(round.phase, done->phase, sizeof round.phase);
    trace->last = seconds;
    if (next) {
        round.objective = next->objective;
        round.change = next->change;
        put_round(trace, &round);
        return;
    }
    trace->held = round;
    trace->holds = true;
}

static void put_history(FILE *stream, int64_t number, int64_t row, const char *const *names, const double *values)
{
    if (number >= 0)
        fprintf(stream, "{\"round\": %lld", (long long)number);
    else
        fputs("{\"round\": null", stream);
    fprintf(stream, ", \"phase\": \"epoch\", \"step\": %lld", (long long)row);
    for (int i = 0; names[i]; i++)
        put_real(stream, names[i], values[i]);
    fputs("}\n", stream);
    fflush(stream);
}

void run_trace_history(run_trace *trace, int64_t number, int64_t row, const char *const *names, const double *values)
{
    run_event_value events[TRACE_COLUMNS_MOST];
    int count = 0;
    if (!run_trace_is_open(trace))
        return;
    if (trace->rows == 0 && number >= 0)
        trace->rows = trace->before = row - 1;
    if (row != trace->rows + 1 && !(number < 0 && row <= trace->before))
        return;
    trace->rows = row > trace->rows ? row : trace->rows;
    for (; names[count] && count < TRACE_COLUMNS_MOST; count++)
        events[count] = (run_event_value){names[count], values[count]};
    if (trace->output)
        put_history(base_output_stream(trace->output), number, row, names, values);
    if (trace->events)
        run_events_add(trace->events, row, events, count);
}

int run_trace_commit(run_trace *trace, double objective)
{
    if (trace->holds) {
        trace->held.objective = objective;
        trace->held.change = NAN;
        put_round(trace, &trace->held);
    }
    int status = trace->output ? base_output_commit(&trace->output) : SHOAL_OK;
    return status == SHOAL_OK ? run_events_close(&trace->events) : status;
}

void run_trace_discard(run_trace *trace)
{
    base_output_discard(&trace->output);
    run_events_abandon(&trace->events);
}
