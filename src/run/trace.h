/* Rounds as JSON lines and as events for TensorBoard.  A trace that has neither ignores everything. */
#ifndef RUN_TRACE_H
#define RUN_TRACE_H

#include <stdbool.h>
#include <stdint.h>
#include <shoal/learn.h>

#include "base/file.h"
#include "control/picture.h"
#include "request.h"

/* What is told of a round. */
typedef struct run_traced {
    int64_t number, step, k;
    char phase[24];
    double objective, change, seconds;
} run_traced;

typedef struct run_trace {
    base_output *output;
    struct run_events *events;
    double last;     /* seconds at the end of the round before */
    run_traced held; /* the last round, whose objective only the result knows */
    bool holds;
    int64_t rows;   /* of the history up to here were told, */
    int64_t before; /* but for the first, which an earlier run knew that this one has resumed */
} run_trace;

/* Whether the folder of --tensorboard could be written to; the file of --trace is checked with the outputs. */
int run_trace_check(const run_trace_options *options);
int run_trace_open(run_trace *trace, const run_trace_options *options);
/* Whether every round has to be told. */
bool run_trace_is_open(const run_trace *trace);
void run_trace_round(run_trace *trace, const shoal_round *done, const shoal_round *next, double seconds);
/* Tells, while round `number` runs, how the job is held and when it will end. */
void run_trace_held(run_trace *trace, int64_t number, const control_point *point);
/* Tells row `row` of a history, counted from 1, which is known since round `number`; -1: since the end.  Those that a
 * resumed run does not have are left to its end. */
void run_trace_history(run_trace *trace, int64_t number, int64_t row, const char *const *names, const double *values);
/* Writes the last round with the result's objective, renames the file into place and closes the events. */
int run_trace_commit(run_trace *trace, double objective);
/* Removes the file; events that were written stay. */
void run_trace_discard(run_trace *trace);

#endif
