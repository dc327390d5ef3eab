/* What is left when a signal ends this process at once.  See parting.h. */
#include "base/parting.h"

#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

static _Atomic(pid_t) listed[BASE_PARTING_MOST];
static _Atomic(const char *) last_line;

void base_parting_add(pid_t process)
{
    for (int i = 0; i < BASE_PARTING_MOST; i++) {
        pid_t expected = 0;
        if (atomic_compare_exchange_strong(&listed[i], &expected, process))
            return;
    }
}

void base_parting_remove(pid_t process)
{
    for (int i = 0; i < BASE_PARTING_MOST; i++) {
        pid_t expected = process;
        if (atomic_compare_exchange_strong(&listed[i], &expected, 0))
            return;
    }
}

void base_parting_say(const char *line)
{
    atomic_store(&last_line, line);
}

void base_part(void)
{
    for (int i = 0; i < BASE_PARTING_MOST; i++) {
        pid_t process = atomic_exchange(&listed[i], 0);
        if (process > 0)
            kill(process, SIGKILL);
    }
    const char *line = atomic_exchange(&last_line, NULL);
    if (line && write(STDERR_FILENO, line, strlen(line)) < 0)
        return; /* nobody listens */
}
