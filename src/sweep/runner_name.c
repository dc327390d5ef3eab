/* The name of a runner among those of a sweep: of its start of the machine, its process numbers' namespace, its
 * process's number and when that began, so that another of the same machine can tell at once whether it has died, and
 * which of its process it is. */
#include "runner.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/world.h"

void sweep_machine_name(char out[SWEEP_MACHINE_BYTES])
{
    char boot[BASE_BOOT_ID_BYTES] = "", space[32] = "";
    (void)base_boot_id(boot);
    const ssize_t length = readlink("/proc/self/ns/pid", space, sizeof space - 1);
    space[length > 0 ? length : 0] = '\0';
    const char *number = strchr(space, '[');
    snprintf(out, SWEEP_MACHINE_BYTES, "%.8s%.20s", boot, number ? number + 1 : "");
    out[strcspn(out, "]")] = '\0';
}

/* When a process began, in ticks since the machine did; 0 when there is none, or it is a zombie. */
static long long began(long number)
{
    char path[48], text[1024];
    snprintf(path, sizeof path, "/proc/%ld/stat", number);
    if (!base_read_small(text, sizeof text, path))
        return 0;
    const char *at = strrchr(text, ')'); /* the name may hold anything */
    long long ticks = 0;
    char state = 0;
    if (!at || sscanf(at + 1, " %c", &state) != 1 || state == 'Z' || state == 'X')
        return 0;
    at++;
    for (int field = 3; field < 22 && at; field++)
        at = strchr(at + 1, ' ');
    return at && sscanf(at, "%lld", &ticks) == 1 ? ticks : 0;
}

void sweep_runner_name(char out[SWEEP_RUNNER_BYTES])
{
    char machine[SWEEP_MACHINE_BYTES];
    static atomic_int count;
    sweep_machine_name(machine);
    snprintf(out, SWEEP_RUNNER_BYTES, "%s-%ld-%lld-%d", machine, (long)getpid(), began(getpid()),
             atomic_fetch_add(&count, 1));
}

bool sweep_runner_is_dead(const char *name)
{
    char machine[SWEEP_MACHINE_BYTES];
    long number;
    long long ticks;
    sweep_machine_name(machine);
    const size_t length = strlen(machine);
    if (length < 8 || strncmp(name, machine, length) != 0 || sscanf(name + length, "-%ld-%lld", &number, &ticks) != 2)
        return false;
    return ticks > 0 && began(number) != ticks;
}
