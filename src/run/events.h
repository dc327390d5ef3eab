/* TensorBoard's event files: numbers that change while a run goes on, as curves in a browser.
 *
 *     run_events *events = NULL;
 *     const run_event_value values[] = {{"objective", 12.5}, {"seconds", 0.1}};
 *     status = run_events_open(&events, "runs/first");              // makes the folder and the file
 *     run_events_add(events, round, values, 2);                     // at once in the file
 *     status = run_events_close(&events);
 *
 * The file grows as rounds go by, so that TensorBoard can follow a run; each event is written by one call, and what a
 * killed run leaves can be read to its last whole event.  A run that goes on writes another file beside it, which
 * TensorBoard joins. */
#ifndef RUN_EVENTS_H
#define RUN_EVENTS_H

#include <stdint.h>

#include "base/bytes.h"

typedef struct run_event_value {
    const char *tag;
    double value; /* written as float32, which is what TensorBoard has; left out when not finite */
} run_event_value;

typedef struct run_events run_events;

/* Whether events could be written to this folder, which is yet to be made or is there. */
int run_events_check(const char *folder);
int run_events_open(run_events **out, const char *folder);
/* A failure is kept for run_events_close. */
void run_events_add(run_events *events, int64_t step, const run_event_value *values, int count);
/* Closes the file and tells the first failure there was; accepts a NULL inside. */
int run_events_close(run_events **events);
/* The same after another failure, whose message stays. */
void run_events_abandon(run_events **events);

/* One event as protocol buffers have it, for the two above and for tests. */
void run_event_write_version(base_writer *out, double wall_time);
void run_event_write_values(base_writer *out, double wall_time, int64_t step, const run_event_value *values, int count);

#endif
