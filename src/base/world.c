/* The real world: the boot-time clock, futexes, and the system's random numbers.  See world.h. */
#include "world.h"

#include <errno.h>
#include <linux/futex.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <shoal/error.h>

#include "base/io.h"
#include "base/memory.h"

enum { NANOSECONDS = 1000000000 };

static int64_t clock_now(clockid_t which)
{
    struct timespec time;
    clock_gettime(which, &time);
    return (int64_t)time.tv_sec * NANOSECONDS + time.tv_nsec;
}

static int64_t now_real(void)
{
    return clock_now(CLOCK_BOOTTIME);
}

/* The futex is not FUTEX_PRIVATE_FLAG, since the word may lie in a file that several processes map.  It counts on
 * CLOCK_MONOTONIC, which stands still while the machine sleeps: a wait may then be longer than asked for by so much. */
static void wait_real(const _Atomic uint32_t *word, uint32_t value, int64_t until)
{
    int64_t left = until == INT64_MAX ? INT64_MAX : until - now_real();
    if (left <= 0)
        return;
    struct timespec time = {.tv_sec = left / NANOSECONDS, .tv_nsec = left % NANOSECONDS};
    syscall(SYS_futex, word, FUTEX_WAIT, value, until == INT64_MAX ? NULL : &time, NULL, 0);
}

static void wake_real(const _Atomic uint32_t *word, int most)
{
    syscall(SYS_futex, word, FUTEX_WAKE, most, NULL, NULL, 0);
}

static void random_real(void *bytes, size_t size)
{
    for (size_t have = 0; have < size;) {
        ssize_t more = getrandom((char *)bytes + have, size - have, 0);
        if (more > 0)
            have += (size_t)more;
        else if (errno != EINTR)
            SHOAL_BUG("the system has no random numbers");
    }
}

struct base_thread {
    pthread_t thread;
    void (*run)(void *context);
    void *context;
};

static void *run_thread(void *context)
{
    base_thread *thread = context;
    thread->run(thread->context);
    return NULL;
}

static int start_real(base_thread **out, void (*run)(void *context), void *context)
{
    base_thread *thread = NULL;
    sigset_t all, before;
    int status = base_alloc(&thread, 1, sizeof *thread, "a thread");
    if (status < 0)
        return status;
    *thread = (base_thread){.run = run, .context = context};
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&thread->thread, NULL, run_thread, thread);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error) {
        base_free(&thread);
        return shoal_fail_errno(SHOAL_SYSTEM, error, "can't start another thread");
    }
    *out = thread;
    return SHOAL_OK;
}

static void join_real(base_thread *thread)
{
    pthread_join(thread->thread, NULL);
    base_free(&thread);
}

static const base_world real = {now_real, wait_real, wake_real, random_real, start_real, join_real};
static const base_world *world = &real;

void base_world_set(const base_world *other)
{
    world = other ? other : &real;
}

int64_t base_now(void)
{
    return world->now();
}

int64_t base_wall_now(void)
{
    return clock_now(CLOCK_REALTIME);
}

int64_t base_time_after(int64_t from, double seconds)
{
    double later = (double)from + seconds * 1e9;
    if (!(later < 9.2e18)) /* also NaN */
        return INT64_MAX;
    /* The sum in floating point loses nanoseconds; added as integers it does not. */
    return later < 0 ? 0 : from + (int64_t)(seconds * 1e9);
}

double base_seconds_until(int64_t until)
{
    return until == INT64_MAX ? INFINITY : ((double)until - (double)base_now()) * 1e-9;
}

void base_wait_word(const _Atomic uint32_t *word, uint32_t value, int64_t until)
{
    world->wait(word, value, until);
}

void base_wake_word(const _Atomic uint32_t *word, int most)
{
    world->wake(word, most);
}

void base_sleep_until(int64_t until)
{
    static const _Atomic uint32_t unchanged;
    while (base_now() < until)
        base_wait_word(&unchanged, 0, until);
}

void base_entropy(void *bytes, size_t size)
{
    world->random(bytes, size);
}

bool base_boot_id(char out[BASE_BOOT_ID_BYTES])
{
    size_t length = base_read_small(out, BASE_BOOT_ID_BYTES, "/proc/sys/kernel/random/boot_id");
    out[strcspn(out, "\n")] = '\0';
    return length > 0;
}

int base_thread_start(base_thread **out, void (*run)(void *context), void *context)
{
    return world->start(out, run, context);
}

void base_thread_join(base_thread **thread)
{
    if (*thread)
        world->join(*thread);
    *thread = NULL;
}
