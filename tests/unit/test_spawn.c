/* Programs that are started: what they are handed, what they inherit and how they end; and guards. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/io.h"
#include "base/path.h"
#include "base/spawn.h"
#include "base/world.h"

/* What a command line of the shell writes; its end in *how. */
static const char *output_of(const char *command, base_spawning spawning, int *how)
{
    static char text[4096];
    size_t got = 0;
    pid_t process = 0;
    int file = memfd_create("test", MFD_CLOEXEC);
    assert_true(file >= 0);
    spawning.stream[1] = file;
    assert_int_equal(base_spawn_shell(&process, command, &spawning), 0);
    base_wait(process, how);
    assert_int_equal(base_read_all_at(file, text, sizeof text - 1, 0, &got), 0);
    text[got] = '\0';
    close(file);
    return text;
}

static void words_and_how_it_ends(void **state)
{
    const char *found[] = {"sh", "-c", "exit $#", "sh", "one", "two words", NULL};
    const char *named[] = {"another name", "-c", "kill -9 $$", NULL};
    pid_t process = 0;
    int how = 0;
    (void)state;
    assert_int_equal(base_spawn(&process, &(base_spawning){.words = found, .stream = {-1, -1, -1}}), 0);
    base_wait(process, &how);
    assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 2);
    assert_int_equal(
        base_spawn(&process, &(base_spawning){.words = named, .program = "/bin/sh", .stream = {-1, -1, -1}}), 0);
    base_wait(process, &how);
    assert_true(WIFSIGNALED(how) && WTERMSIG(how) == 9);
    how = 7;
    base_wait(process, &how); /* which nobody waits for any more */
    assert_int_equal(how, 0);
}

static void what_is_not_there(void **state)
{
    const char *words[] = {"no such program", NULL};
    pid_t process = 0;
    (void)state;
    assert_int_equal(base_spawn(&process, &(base_spawning){.words = words, .stream = {-1, -1, -1}}), ENOENT);
    assert_int_equal(base_spawn_shell(&process, "true", &(base_spawning){.stream = {-1, -1, -1}, .folder = "/nowhere"}),
                     ENOENT);
    assert_int_equal(base_spawn_shell(&process, "true", &(base_spawning){.stream = {900, -1, -1}}), EBADF);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* nothing was left behind */
}

static void streams_and_nothing_else(void **state)
{
    static char *const environment[] = {"PATH=/usr/bin:/bin", "FISH=herring", NULL};
    int ends[2], secret = open("/dev/null", O_RDONLY | O_CLOEXEC);
    (void)state;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(base_write_all(ends[1], "asked\n", 6), 0);
    base_spawning spawning = {
        .stream = {ends[0], -1, -1}, .extra = ends[1], .folder = "/proc", .environment = environment};
    assert_string_equal(
        output_of("read x; echo $x $FISH $PWD; for i in 3 4 5 6 7 8 9; do [ -e self/fd/$i ] && echo $i; done", spawning,
                  NULL),
        "asked herring /proc\n3\n");
    assert_string_equal(
        output_of("cat; echo said >&2; readlink /proc/$$/fd/0", (base_spawning){.stream = {-1, 0, -1}}, NULL),
        "/dev/null\n");
    close(secret);
    close(ends[0]);
    close(ends[1]);
}

/* Whoever starts us may have closed the three, and then files of ours have their numbers. */
static void streams_that_cross(void **state)
{
    int kept[3], how = 0, ends[2];
    char text[8] = "";
    pid_t process = 0;
    (void)state;
    for (int i = 0; i < 3; i++)
        kept[i] = fcntl(i, F_DUPFD_CLOEXEC, 20);
    int said = memfd_create("test", MFD_CLOEXEC), written = memfd_create("test", MFD_CLOEXEC);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(base_write_all(ends[1], "x\n", 2), 0);
    dup3(said, 0, O_CLOEXEC);
    dup3(ends[0], 1, O_CLOEXEC);
    dup3(written, 2, O_CLOEXEC);
    int error = base_spawn_shell(&process, "read a; echo out $a; echo err >&2", &(base_spawning){.stream = {1, 2, 0}});
    base_wait(process, &how);
    for (int i = 0; i < 3; i++) {
        dup2(kept[i], i);
        close(kept[i]);
    }
    assert_int_equal(error, 0);
    assert_int_equal(how, 0);
    assert_int_equal(pread(written, text, 7, 0), 6);
    assert_string_equal(text, "out x\n");
    assert_int_equal(pread(said, text, 7, 0), 4);
    assert_memory_equal(text, "err\n", 4);
    close(said);
    close(written);
    close(ends[0]);
    close(ends[1]);
}

/* The line of /proc/PID/status. */
#define SIGNALS(name) "sed -n 's/^" name ":[ \\t]*//p' /proc/self/status"

static void signals_as_programs_expect_them(void **state)
{
    sigset_t some, before;
    (void)state;
    sigemptyset(&some);
    sigaddset(&some, SIGTERM);
    sigaddset(&some, SIGUSR1);
    sigprocmask(SIG_BLOCK, &some, &before);
    signal(SIGHUP, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    assert_string_equal(output_of(SIGNALS("SigBlk"), (base_spawning){.stream = {-1, -1, 2}}, NULL),
                        "0000000000000000\n");
    assert_int_equal(strtoull(output_of(SIGNALS("SigIgn"), (base_spawning){.stream = {-1, -1, 2}}, NULL), NULL, 16) &
                         (1u << (SIGHUP - 1) | 1u << (SIGPIPE - 1)),
                     0);
    assert_int_equal(
        strtoull(output_of(SIGNALS("SigIgn"), (base_spawning){.stream = {-1, -1, 2}, .ignores_too = true}, NULL), NULL,
                 16) &
            (1u << (SIGHUP - 1) | 1u << (SIGPIPE - 1)),
        1u << (SIGHUP - 1) | 1u << (SIGPIPE - 1));
    signal(SIGHUP, SIG_DFL);
    signal(SIGPIPE, SIG_DFL);
    sigprocmask(SIG_SETMASK, &before, NULL);
}

static void groups_and_sessions(void **state)
{
    long process, group, session;
    (void)state;
    for (int kind = BASE_GROUP_OURS; kind <= BASE_GROUP_SESSION; kind++) {
        base_spawning spawning = {.stream = {-1, -1, 2}, .group = (base_group)kind};
        const char *text = output_of(
            /* of the shell: its number, group, session */ "cut -d ' ' -f 1,5,6 /proc/$$/stat; true", spawning, NULL);
        assert_int_equal(sscanf(text, "%ld %ld %ld", &process, &group, &session), 3);
        assert_int_equal(group, kind == BASE_GROUP_OURS ? getpgrp() : process);
        assert_int_equal(session, kind == BASE_GROUP_SESSION ? process : getsid(0));
    }
}

/* ---- guards ------------------------------------------------------------------------------------------------------ */

/* A group of its own that says when it is there, and lives until it is ended; `ready` is read. */
static pid_t start_group(const char *command, int *ready)
{
    int ends[2];
    char byte;
    pid_t process = 0;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(
        base_spawn_shell(&process, command, &(base_spawning){.stream = {-1, ends[1], 2}, .group = BASE_GROUP_OWN}), 0);
    close(ends[1]);
    assert_int_equal(read(ends[0], &byte, 1), 1);
    *ready = ends[0];
    return process;
}

/* It says so itself, since it is a shell: that takes a moment. */
static void wait_until_deaf(pid_t process)
{
    char path[64], text[4096];
    snprintf(path, sizeof path, "/proc/%ld/status", (long)process);
    for (int64_t until = base_time_after(base_now(), 30); base_now() < until;) {
        const char *ignored = base_read_small(text, sizeof text, path) ? strstr(text, "SigIgn:") : NULL;
        if (ignored && strtoull(ignored + 7, NULL, 16) >> (SIGTERM - 1) & 1)
            return;
        base_sleep_until(base_time_after(base_now(), 0.002));
    }
    fail_msg("the guard hears signals");
}

/* The last folder that it was told of goes with what is in it, and no other. */
static void folders(void **state)
{
    char base[] = "/tmp/shoal-guard-XXXXXX", path[3][64], name[256];
    base_guard guard;
    (void)state;
    assert_non_null(mkdtemp(base));
    assert_int_equal(base_guard_start(&guard, 0), 0);
    for (int i = 0; i < 3; i++) {
        snprintf(path[i], sizeof path[i], "%s/%d %s", base, i, i == 2 ? "a\nb" : "$(x) *");
        assert_int_equal(mkdir(path[i], 0777), 0);
        snprintf(name, sizeof name, "%s/file", path[i]);
        assert_int_equal(mknod(name, S_IFREG | 0666, 0), 0);
        base_guard_folder(&guard, path[i]);
    }
    base_close(&guard.pipe);
    base_wait(guard.process, NULL);
    assert_int_equal(access(path[0], F_OK), 0);
    assert_int_equal(access(path[1], F_OK), -1);
    assert_int_equal(access(path[2], F_OK), 0);
    base_remove_folder(base);
}

static int guard_that_is_left(int grace, const char *command)
{
    base_guard guard;
    char line[32];
    int how = 0, ready = -1;
    pid_t group = start_group(command, &ready);
    assert_int_equal(base_guard_start(&guard, grace), 0);
    snprintf(line, sizeof line, "%ld\n", (long)group);
    assert_int_equal(base_write_all(guard.pipe, line, strlen(line)), 0);
    wait_until_deaf(guard.process);
    kill(guard.process, SIGTERM);
    base_close(&guard.pipe); /* as the end of this process would */
    base_wait(group, &how);
    base_wait(guard.process, NULL);
    close(ready);
    return how;
}

static void a_guard_ends_what_is_left(void **state)
{
    (void)state;
    int how = guard_that_is_left(0, "trap '' TERM; echo; sleep 1000; true");
    assert_true(WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL);
    how = guard_that_is_left(1, "trap 'exit 5' TERM; echo; while :; do sleep 0.05; done");
    assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 5);
    how = guard_that_is_left(1, "trap '' TERM; echo; sleep 1000; true");
    assert_true(WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL);
}

static void a_guard_that_is_let_go_ends_nobody(void **state)
{
    base_guard guard;
    char line[32];
    int how = 0, ready = -1;
    (void)state;
    pid_t group = start_group("trap '' TERM; echo; read x <&-; sleep 1000; true", &ready);
    assert_int_equal(base_guard_start(&guard, 0), 0);
    snprintf(line, sizeof line, "%ld\n", (long)group);
    assert_int_equal(base_write_all(guard.pipe, line, strlen(line)), 0);
    base_guard_stop(&guard);
    assert_int_equal(guard.process, 0);
    assert_int_equal(guard.pipe, -1);
    assert_int_equal(waitpid(group, &how, WNOHANG), 0);
    kill(-group, SIGKILL);
    base_wait(group, &how);
    close(ready);
    base_guard_stop(&guard);
}

int main(void)
{
    /* What whoever runs the tests left open, a lock, say, is no descriptor of ours. */
    for (int inherited = 3; inherited < 64; inherited++)
        fcntl(inherited, F_SETFD, FD_CLOEXEC);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_and_how_it_ends),
        cmocka_unit_test(what_is_not_there),
        cmocka_unit_test(streams_and_nothing_else),
        cmocka_unit_test(streams_that_cross),
        cmocka_unit_test(signals_as_programs_expect_them),
        cmocka_unit_test(groups_and_sessions),
        cmocka_unit_test(a_guard_ends_what_is_left),
        cmocka_unit_test(a_guard_that_is_let_go_ends_nobody),
        cmocka_unit_test(folders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
