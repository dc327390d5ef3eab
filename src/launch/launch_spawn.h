/* Starting a command of the system, such as ssh or srun, beside this process. */
#ifndef LAUNCH_SPAWN_H
#define LAUNCH_SPAWN_H

#include <sys/types.h>

/* Runs the words, which end with NULL and of which the first is looked for in PATH, with these as standard input,
 * output and error.  It leads a session of its own: it has no terminal to ask for a password at, and Ctrl-C comes to us
 * alone.  0, or what errno would be. */
int launch_spawn(pid_t *out, const char *const *words, const int streams[3]);
/* Closes a descriptor that is open, and notes that it is not any more. */
void launch_close(int *descriptor);

#endif
