/* --trace: one line of JSON for every round.  The file appears when the run is done; a target that is no plain file
 * (/dev/stderr, a pipe) is written as rounds go by.  --tensorboard: the same as events, always as rounds go by. */
#include "cli.h"

#include <math.h>
#include <string.h>

#include "events.h"

static const shoal_option rows[] = {
    {"trace", 0, SHOAL_OPTION_TEXT, offsetof(cli_trace_settings, trace), "FILE.jsonl",
     .help = "write one line of JSON for each round: round, phase, step, objective, change, seconds"},
    {"tensorboard", 0, SHOAL_OPTION_TEXT, offsetof(cli_trace_settings, tensorboard), "DIR",
     .help = "write objective, change and seconds of each round, while it runs, to a file of events in this folder, "
             "which is made: tensorboard --logdir DIR shows them"},
    {0},
};
const shoal_option *const cli_trace_options = rows;

int cli_trace_check(const cli_trace_settings *settings)
{
    return settings->tensorboard ? cli_events_check(settings->tensorboard) : SHOAL_OK;
}

int cli_trace_open(cli_trace *trace, const cli_trace_settings *settings)
{
    *trace = (cli_trace){0};
    if (!settings)
        return SHOAL_OK;
    int status = settings->trace ? base_output_open(&trace->output, settings->trace) : SHOAL_OK;
    if (status == SHOAL_OK && settings->tensorboard)
        status = cli_events_open(&trace->events, settings->tensorboard);
    return status;
}

bool cli_trace_is_open(const cli_trace *trace)
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

static void put_line(FILE *stream, const cli_traced *round)
{
    fprintf(stream, "{\"round\": %lld, \"phase\": \"%s\", \"step\": %lld", (long long)round->number, round->phase,
            (long long)round->step);
    put_real(stream, "objective", round->objective);
    put_real(stream, "change", round->change);
    put_real(stream, "seconds", round->seconds);
    fputs("}\n", stream);
    fflush(stream);
}

/* The step of a curve is the number of the round, which no other round has: those of the learner begin anew with each
 * phase. */
static void put(cli_trace *trace, const cli_traced *round)
{
    const cli_event_value values[] = {
        {"objective", round->objective}, {"change", round->change}, {"seconds", round->seconds}};
    if (trace->output)
        put_line(base_output_stream(trace->output), round);
    if (trace->events)
        cli_events_add(trace->events, round->number, values, 3);
}

void cli_trace_round(cli_trace *trace, const shoal_round *done, const shoal_round *next, double seconds)
{
    if (!cli_trace_is_open(trace))
        return;
    cli_traced round = {.number = done->number, .step = done->step, .seconds = seconds - trace->last};
    memcpy(round.phase, done->phase, sizeof round.phase);
    trace->last = seconds;
    if (next) {
        round.objective = next->objective;
        round.change = next->change;
        put(trace, &round);
        return;
    }
    trace->held = round;
    trace->holds = true;
}

int cli_trace_commit(cli_trace *trace, double objective)
{
    if (trace->holds) {
        trace->held.objective = objective;
        trace->held.change = NAN;
        put(trace, &trace->held);
    }
    int status = trace->output ? base_output_commit(&trace->output) : SHOAL_OK;
    return status == SHOAL_OK ? cli_events_close(&trace->events) : status;
}

void cli_trace_discard(cli_trace *trace)
{
    base_output_discard(&trace->output);
    cli_events_abandon(&trace->events);
}
