/* Starting programs.  See spawn.h. */
#include "base/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"

/* ---- one program ------------------------------------------------------------------------------------------------- */

enum { HANDED = BASE_SPAWN_EXTRA + 1, ABOVE = 10 };

/* What lies where another is to come is moved out of the way first: whoever started us may have closed what is usually
 * there, and our files have taken the numbers. */
static int move_up(int copies[HANDED], int handed[HANDED])
{
    for (int i = 0; i < HANDED; i++) {
        copies[i] =
            handed[i] >= 0 && handed[i] < HANDED && handed[i] != i ? fcntl(handed[i], F_DUPFD_CLOEXEC, ABOVE) : -1;
        if (copies[i] < 0 && handed[i] >= 0 && handed[i] < HANDED && handed[i] != i)
            return errno;
        handed[i] = copies[i] >= 0 ? copies[i] : handed[i];
    }
    return 0;
}

static int set_files(posix_spawn_file_actions_t *files, const base_spawning *spawning, const int handed[HANDED])
{
    int error = 0;
    for (int i = 0; i < HANDED && !error; i++) {
        if (handed[i] >= 0) /* one that stays where it is becomes open there, too */
            error = posix_spawn_file_actions_adddup2(files, handed[i], i);
        else if (i < BASE_SPAWN_EXTRA)
            error = posix_spawn_file_actions_addopen(files, i, "/dev/null", i == STDIN_FILENO ? O_RDONLY : O_WRONLY, 0);
    }
    if (!error && spawning->folder)
        error = posix_spawn_file_actions_addchdir_np(files, spawning->folder);
    return error;
}

static int set_attributes(posix_spawnattr_t *attributes, const base_spawning *spawning)
{
    static const int ignorable[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGXFSZ, SIGCHLD};
    static const int of_group[] = {
        [BASE_GROUP_OURS] = 0, [BASE_GROUP_OWN] = POSIX_SPAWN_SETPGROUP, [BASE_GROUP_SESSION] = POSIX_SPAWN_SETSID};
    int flags = POSIX_SPAWN_SETSIGMASK | of_group[spawning->group];
    sigset_t none, usual;
    sigemptyset(&none);
    sigemptyset(&usual);
    for (size_t i = 0; i < sizeof ignorable / sizeof *ignorable; i++)
        sigaddset(&usual, ignorable[i]);
    if (!spawning->ignores_too)
        flags |= POSIX_SPAWN_SETSIGDEF;
    int error = posix_spawnattr_setsigmask(attributes, &none);
    if (!error)
        error = posix_spawnattr_setsigdefault(attributes, &usual);
    return error ? error : posix_spawnattr_setflags(attributes, (short)flags); /* the group's number is its own: 0 */
}

int base_spawn(pid_t *out, const base_spawning *spawning)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    int copies[HANDED] = {-1, -1, -1, -1};
    int handed[HANDED] = {spawning->stream[0], spawning->stream[1], spawning->stream[2],
                          spawning->extra > 0 ? spawning->extra : -1};
    char *const *words = (char *const *)spawning->words;
    char *const *environment = spawning->environment ? spawning->environment : environ;
    int error = posix_spawn_file_actions_init(&files);
    if (error)
        return error;
    error = posix_spawnattr_init(&attributes);
    if (error)
        goto no_attributes;
    error = move_up(copies, handed);
    if (!error)
        error = set_files(&files, spawning, handed);
    if (!error)
        error = set_attributes(&attributes, spawning);
    if (!error)
        error = spawning->program ? posix_spawn(out, spawning->program, &files, &attributes, words, environment)
                                  : posix_spawnp(out, words[0], &files, &attributes, words, environment);
    for (int i = 0; i < HANDED; i++)
        base_close(&copies[i]);
    posix_spawnattr_destroy(&attributes);
no_attributes:
    posix_spawn_file_actions_destroy(&files);
    return error;
}

int base_spawn_shell(pid_t *out, const char *command, const base_spawning *spawning)
{
    base_spawning shell = *spawning;
    shell.program = "/bin/sh";
    shell.words = (const char *const[]){"sh", "-c", command, NULL};
    return base_spawn(out, &shell);
}

void base_wait(pid_t process, int *how)
{
    int ignored;
    how = how ? how : &ignored;
    *how = 0;
    while (waitpid(process, how, 0) < 0 && errno == EINTR)
        ;
}

/* ---- a guard ----------------------------------------------------------------------------------------------------- */

/* It is deaf to what may end us, and in no group that is told to end with ours. */
int base_guard_start(base_guard *out, int grace)
{
    static const char script[] = "trap '' INT TERM HUP QUIT; g=; f=; while IFS= read -r n; do case $n in\n"
                                 "/*) f=$n;;\n"
                                 "-*) k=; for i in $g; do [ $i = $n ] || k=\"$k $i\"; done; g=$k;;\n"
                                 "*) g=\"$g -$n\";; esac; done\n"
                                 "[ %d = 0 ] || { kill -TERM $g; kill -CONT $g; sleep %d; } 2>/dev/null\n"
                                 "kill -9 $g 2>/dev/null; [ -z \"$f\" ] || rm -rf -- \"$f\"";
    char command[sizeof script + 32];
    int ends[2];
    *out = (base_guard){.pipe = -1};
    if (pipe2(ends, O_CLOEXEC) < 0)
        return errno;
    snprintf(command, sizeof command, script, grace, grace);
    int error = base_spawn_shell(&out->process, command,
                                 &(base_spawning){.stream = {ends[0], -1, -1}, .group = BASE_GROUP_OWN});
    close(ends[0]);
    out->pipe = ends[1];
    if (error)
        base_guard_stop(out);
    return error;
}

void base_guard_folder(base_guard *guard, const char *path)
{
    char line[PATH_MAX + 1];
    const int length = snprintf(line, sizeof line, "%s\n", path);
    if (guard->process > 0 && *path == '/' && !strchr(path, '\n') && length < (int)sizeof line)
        (void)base_write_all(guard->pipe, line, (size_t)length);
}

void base_guard_stop(base_guard *guard)
{
    if (guard->process > 0) { /* before the pipe is closed, which it would take for our end */
        kill(guard->process, SIGKILL);
        base_wait(guard->process, NULL);
    }
    guard->process = 0;
    base_close(&guard->pipe);
}
