/* TensorBoard's event files: numbers that change while a run goes on, as curves in a browser.
 *
 *     cli_events *events = NULL;
 *     const cli_event_value values[] = {{"objective", 12.5}, {"seconds", 0.1}};
 *     status = cli_events_open(&events, "runs/first");              // makes the folder and the file
 *     cli_events_add(events, round, values, 2);                     // at once in the file
 *     status = cli_events_close(&events);
 *
 * The file grows as rounds go by, so that TensorBoard can follow a run; each event is written by one call, and what a
 * killed run leaves can be read to its last whole event.  A run that goes on writes another file beside it, which
 * TensorBoard joins. */
#ifndef CLI_EVENTS_H
#define CLI_EVENTS_H

#include <stdint.h>

#include "base/bytes.h"

typedef struct cli_event_value {
    const char *tag;
    double value; /* written as float32, which is what TensorBoard has; left out when not finite */
} cli_event_value;

typedef struct cli_events cli_events;

/* Whether events could be written to this folder, which is yet to be made or is there. */
int cli_events_check(const char *folder);
int cli_events_open(cli_events **out, const char *folder);
/* A failure is kept for cli_events_close. */
void cli_events_add(cli_events *events, int64_t step, const cli_event_value *values, int count);
/* Closes the file and tells the first failure there was; accepts a NULL inside. */
int cli_events_close(cli_events **events);
/* The same after another failure, whose message stays. */
void cli_events_abandon(cli_events **events);

/* One event as protocol buffers have it, for the two above and for tests. */
void cli_event_write_version(base_writer *out, double wall_time);
void cli_event_write_values(base_writer *out, double wall_time, int64_t step, const cli_event_value *values, int count);

#endif
