/* Starting programs, the only place where that is done.
 *
 *     const char *words[] = {"sinfo", "-h", NULL};
 *     pid_t process = 0;
 *     int error = base_spawn(&process, &(base_spawning){.words = words, .stream = {-1, output, -1}});
 *     ...
 *     base_wait(process, &how);
 *
 * It is done by posix_spawn, never by fork: this process may hold databases and threads that a forked copy would break.
 * Nothing that is open here stays open there but what is handed over, since all descriptors of ours are close-on-exec.
 */
#ifndef BASE_SPAWN_H
#define BASE_SPAWN_H

#include <stdbool.h>
#include <sys/types.h>

enum { BASE_SPAWN_EXTRA = 3 };

/* Whom a terminal's keys and hang-ups reach, and whom kill(-process) does. */
typedef enum base_group {
    BASE_GROUP_OURS,    /* Ctrl-C ends it as it ends us */
    BASE_GROUP_OWN,     /* it and all that it starts can be ended together */
    BASE_GROUP_SESSION, /* so, and without a terminal, at which it could ask for a password */
} base_group;

typedef struct base_spawning {
    const char *const *words; /* ends with NULL */
    const char *program;      /* its path; NULL: the first word, looked for in PATH when it has no '/' */
    int stream[3];            /* its standard input, output and error; ours are 0, 1 and 2, -1 is /dev/null */
    int extra;                /* becomes BASE_SPAWN_EXTRA there; 0 or -1 for none */
    const char *folder;       /* where it runs; NULL: where this process does */
    char *const *environment; /* NULL: this process's */
    base_group group;
    /* No signal is blocked there.  None is ignored either, but by our own programs, which are to outlive a hang-up as
     * we do under nohup. */
    bool ignores_too;
} base_spawning;

/* 0 or an errno value, ENOENT when there is no such program. */
int base_spawn(pid_t *out, const base_spawning *spawning);
/* A command line for /bin/sh, in whose place `words` is not looked at. */
int base_spawn_shell(pid_t *out, const char *command, const base_spawning *spawning);
/* Waits for its end; *how, which may be NULL, is as waitpid tells, or 0 when somebody else has waited for it: whoever
 * embeds us may reap all children. */
void base_wait(pid_t process, int *how);

/* A process that outlives this one, however that is ended, to end a process group then: first with SIGTERM, and after
 * some seconds with SIGKILL; at once when `grace` is 0.  Groups are lines of numbers that are written to `pipe`, and a
 * line "-NUMBER" takes one back; ours is the last end of the pipe that is open. */
typedef struct base_guard {
    pid_t process; /* 0 for none */
    int pipe;      /* close-on-exec; -1 for none */
} base_guard;

int base_guard_start(base_guard *out, int grace);
/* A folder that it removes at the end, too, in the place of the one before.  One whose path has a line end stays. */
void base_guard_folder(base_guard *guard, const char *path);
/* Lets it go: nobody is ended any more. */
void base_guard_stop(base_guard *guard);

#endif
