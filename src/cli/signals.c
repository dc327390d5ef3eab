/* What signals do to the program.  Handlers touch only atomics, flags and async-signal-safe calls; they may run in
 * any thread.  A signal that was ignored when the program started (nohup, a background job) stays ignored. */
#include "cli.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/parting.h"

static volatile int stop_requested; /* atomic, since threads look at it other than the one that the signal came to */
static volatile sig_atomic_t stop_allowed;
static _Atomic(const char *const *) removable;

static void say_at_once(const char *text)
{
    if (write(STDERR_FILENO, text, strlen(text)) < 0)
        return; /* nobody listens, and there is nobody else to tell */
}

/* What should be gone with the process: unlink and rmdir may be called in a handler. */
static void discard_all(void)
{
    base_part();
    base_output_discard_all();
    for (const char *const *path = atomic_load(&removable); path && *path; path++)
        if (unlink(*path) < 0)
            rmdir(*path);
}

/* Ends the process by the signal itself, so that the parent (a shell's loop, say) knows why. */
static void die_by(int number)
{
    sigset_t set;
    discard_all();
    signal(number, SIG_DFL);
    sigemptyset(&set);
    sigaddset(&set, number);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    raise(number);
    _exit(128 + number);
}

static void handle_stop(int number)
{
    if (!stop_allowed || stop_requested)
        die_by(number);
    __atomic_store_n(&stop_requested, 1, __ATOMIC_SEQ_CST);
}

static void handle_pipe(int number)
{
    die_by(number);
}

static void handle_bus(int number, siginfo_t *info, void *context)
{
    (void)context;
    static atomic_flag told = ATOMIC_FLAG_INIT;
    if (info->si_code != BUS_ADRERR && info->si_code != BUS_OBJERR)
        die_by(number);
    if (atomic_flag_test_and_set(&told)) /* another thread met the same end and is about to say so */
        for (;;)
            pause();
    discard_all();
    say_at_once(
        "shoal: a file became shorter, or could not be read any more, while it was in use; nothing half-written is "
        "left\n");
    _exit(CLI_FAILED);
}

static void handle(int number, void (*handler)(int))
{
    struct sigaction old, action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    if (sigaction(number, NULL, &old) == 0 && old.sa_handler != SIG_IGN)
        sigaction(number, &action, NULL);
}

void cli_signals_start(void)
{
    struct sigaction bus = {.sa_sigaction = handle_bus, .sa_flags = SA_SIGINFO};
    sigemptyset(&bus.sa_mask);
    sigaction(SIGBUS, &bus, NULL);
    handle(SIGINT, handle_stop);
    handle(SIGTERM, handle_stop);
    handle(SIGHUP, handle_stop);
    handle(SIGPIPE, handle_pipe);
    signal(SIGCHLD, SIG_DFL); /* if our parent ignored it, we would not hear of the ends of our own children */
    signal(SIGXFSZ, SIG_IGN); /* a file over the limit is an error of write, which has a message */
}

void cli_signals_allow_stop(bool allow)
{
    stop_allowed = allow;
}

const volatile int *cli_signals_stop(void)
{
    return &stop_requested;
}

bool cli_signals_stopped(void)
{
    return __atomic_load_n(&stop_requested, __ATOMIC_SEQ_CST);
}

void cli_signals_remove(const char *const *paths)
{
    atomic_store(&removable, paths);
}

void cli_signals_leave(void)
{
    discard_all();
    _exit(CLI_INTERRUPTED);
}
