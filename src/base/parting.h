/* What this process leaves behind when a signal ends it at once: nothing that runs, and a sentence.
 *
 * Whoever starts processes that should not outlive a Ctrl-C lists them here, and the program's signal handler calls
 * base_part, which does nothing that is not allowed in a handler.  A process that has no such handler, or is killed,
 * leaves them running. */
#ifndef BASE_PARTING_H
#define BASE_PARTING_H

#include <sys/types.h>

enum { BASE_PARTING_MOST = 4096 };

/* Lists a child to end; those beyond BASE_PARTING_MOST are not. */
void base_parting_add(pid_t process);
/* To be called before the child is waited for: afterwards its number may be another's. */
void base_parting_remove(pid_t process);
/* A line to write to standard error, which stays the caller's; NULL for none. */
void base_parting_say(const char *line);
/* Kills all that are listed, and says the line.  Async-signal-safe. */
void base_part(void);

#endif
