/* --trace: one line of JSON for every round.  The file appears when the run is done; a target that is no plain file
 * (/dev/stderr, a pipe) is written as rounds go by. */
#include "cli.h"

#include <math.h>

int cli_trace_open(cli_trace *trace, const char *path)
{
    *trace = (cli_trace){0};
    return path ? base_output_open(&trace->output, path) : SHOAL_OK;
}

static void put_real(FILE *stream, const char *name, double value)
{
    if (isfinite(value))
        fprintf(stream, ", \"%s\": %.17g", name, value);
    else
        fprintf(stream, ", \"%s\": null", name);
}

static void put_line(cli_trace *trace, const shoal_round *round, double objective, double change, double seconds)
{
    FILE *stream = base_output_stream(trace->output);
    fprintf(stream, "{\"round\": %lld, \"phase\": \"%s\", \"step\": %lld", (long long)round->number, round->phase,
            (long long)round->step);
    put_real(stream, "objective", objective);
    put_real(stream, "change", change);
    put_real(stream, "seconds", seconds);
    fputs("}\n", stream);
    fflush(stream);
}

void cli_trace_round(cli_trace *trace, const shoal_round *done, const shoal_round *next, double seconds)
{
    if (!trace->output)
        return;
    double took = seconds - trace->last;
    trace->last = seconds;
    if (next) {
        put_line(trace, done, next->objective, next->change, took);
        return;
    }
    trace->held = *done;
    trace->held.model = NULL;
    trace->held_seconds = took;
    trace->holds = true;
}

int cli_trace_commit(cli_trace *trace, double objective)
{
    if (!trace->output)
        return SHOAL_OK;
    if (trace->holds)
        put_line(trace, &trace->held, objective, NAN, trace->held_seconds);
    return base_output_commit(&trace->output);
}

void cli_trace_discard(cli_trace *trace)
{
    base_output_discard(&trace->output);
}
