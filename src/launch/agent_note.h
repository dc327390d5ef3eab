/* What the agent and whoever started it tell each other beside the store's traffic: objects of JSON, one per note, each
 * with what it says.
 *
 *     near   start     job, spec, key, kernel, device, threads, memory, helpers, led, first, count, data
 *                                                                                   begin with N workers
 *            scale     count                                                        from now on N
 *            progress                                                               the job moves on
 *            leave                                                                  tell all to leave
 *            probe     key                                                  measure the way to the store with this blob
 *     far    facts     host, version, kernel, gpu, cores, memory                    first of all
 *            started   worker                                                       its id, 16 hexadecimal digits
 *            gone      worker, why                                                  without having left by itself
 *            running   count                                                        whenever that changes
 *            failed    why                                                      no worker runs and none will be started
 *            probed    round_trip, to_host, from_host                               seconds, bytes per second; or why
 * */
#ifndef AGENT_NOTE_H
#define AGENT_NOTE_H

#include <stdint.h>
#include <jansson.h>

/* A note that was heard; NULL when it is not one.  The caller drops it with json_decref. */
json_t *agent_note_read(const char *text);
/* A field of a note; "" or 0 if it is missing or has another type. */
const char *agent_note_text(const json_t *note, const char *name);
int64_t agent_note_count(const json_t *note, const char *name);
double agent_note_real(const json_t *note, const char *name);
uint64_t agent_note_worker(const json_t *note);

/* Hands a note as text to `tell`, and drops it.  SHOAL_MEMORY for a NULL, the result of making one without enough
 * memory. */
int agent_note_tell(json_t *note, int (*tell)(void *link, const char *text), void *link);
/* A string of JSON from bytes that may not be UTF-8. */
json_t *agent_note_string(const char *text);

#endif
