/* Commands of the system beside this process.  See launch_spawn.h. */
#include "launch/launch_spawn.h"

#include <signal.h>
#include <spawn.h>
#include <unistd.h>

/* Signals as a command expects them, whatever this process does with its own. */
static int set_attributes(posix_spawnattr_t *attributes)
{
    sigset_t none, usual;
    sigemptyset(&none);
    sigemptyset(&usual);
    sigaddset(&usual, SIGPIPE);
    sigaddset(&usual, SIGINT);
    sigaddset(&usual, SIGHUP);
    int error = posix_spawnattr_setsigmask(attributes, &none);
    if (error == 0)
        error = posix_spawnattr_setsigdefault(attributes, &usual);
    if (error == 0)
        error =
            posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
    return error;
}

int launch_spawn(pid_t *out, const char *const *words, const int streams[3])
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    int error = posix_spawn_file_actions_init(&files);
    if (error != 0)
        return error;
    error = posix_spawnattr_init(&attributes);
    if (error == 0) {
        error = set_attributes(&attributes);
        for (int i = 0; i < 3 && error == 0; i++)
            error = posix_spawn_file_actions_adddup2(&files, streams[i], i);
        if (error == 0)
            error = posix_spawnp(out, words[0], &files, &attributes, (char *const *)words, environ);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&files);
    return error;
}

void launch_close(int *descriptor)
{
    if (*descriptor >= 0)
        close(*descriptor);
    *descriptor = -1;
}
