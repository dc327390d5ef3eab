/* A fixed crew of threads with stealing.  See pool.h.
 *
 * Each thread owns a run of items [begin, end) packed into one 64-bit word, so that taking one item and
 * stealing half of a run are each a single compare-and-swap. */
#include "pool.h"

#include <fenv.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <shoal/error.h>

#include "memory.h"

enum { MESSAGE_BYTES = 4096, SPINS = 4000, SPINS_LEAST = 60, SPINS_TRIED_EVERY = 8 };

typedef struct member {
    _Alignas(64) atomic_ullong run; /* begin in the high half, end in the low half */
    struct base_pool *pool;
    pthread_t thread;
    int index;
    int spins;      /* how long it spins by now */
    unsigned waits; /* how often it has waited */
} member;

struct base_pool {
    int threads;
    int started; /* members whose thread runs: 1 .. started */
    bool spins;  /* waiting by spinning for a moment pays only when every thread has a core */
    member *members;

    pthread_mutex_t lock;
    pthread_cond_t work_given, work_done;
    atomic_uint generation; /* grows with every call of each */
    atomic_int busy;
    bool leaving;

    base_task *task;
    void *context;
    atomic_int status; /* the first failure */
    char message[MESSAGE_BYTES];
};

double base_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* The quota of control group v2 ("max" or "MICROSECONDS PERIOD") or v1 (two files); 0 when there is none. */
static int quota_cores(void)
{
    long long quota = -1, period = 0;
    FILE *file = fopen("/sys/fs/cgroup/cpu.max", "r");
    if (file) {
        if (fscanf(file, "%lld %lld", &quota, &period) != 2)
            quota = -1;
        fclose(file);
    } else {
        FILE *of_quota = fopen("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "r");
        FILE *of_period = fopen("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "r");
        if (!of_quota || !of_period || fscanf(of_quota, "%lld", &quota) != 1 || fscanf(of_period, "%lld", &period) != 1)
            quota = -1;
        if (of_quota)
            fclose(of_quota);
        if (of_period)
            fclose(of_period);
    }
    return quota > 0 && period > 0 ? (int)((quota + period - 1) / period) : 0;
}

/* The affinity mask.  The kernel refuses a set smaller than its own, which may count more than cpu_set_t's 1024. */
static int allowed_cores(void)
{
    enum { IDS_MOST = 1 << 20 };
    cpu_set_t usual;
    if (sched_getaffinity(0, sizeof usual, &usual) == 0)
        return CPU_COUNT(&usual);
    for (int ids = 2 * CPU_SETSIZE; ids <= IDS_MOST; ids *= 2) {
        cpu_set_t *set = CPU_ALLOC((size_t)ids);
        bool known = set && sched_getaffinity(0, CPU_ALLOC_SIZE(ids), set) == 0;
        int cores = known ? CPU_COUNT_S(CPU_ALLOC_SIZE(ids), set) : 0;
        CPU_FREE(set);
        if (known)
            return cores;
    }
    return 1;
}

int base_cores(void)
{
    int cores = allowed_cores();
    int quota = quota_cores();
    if (quota > 0 && quota < cores)
        cores = quota;
    return cores > 0 ? cores : 1;
}

static unsigned long long pack_run(uint64_t begin, uint64_t end)
{
    return (unsigned long long)(begin << 32 | end);
}

/* Takes one item from the front of a run. */
static bool take(member *from, int64_t *item)
{
    unsigned long long run = atomic_load_explicit(&from->run, memory_order_relaxed);
    for (;;) {
        uint64_t begin = run >> 32, end = run & UINT32_MAX;
        if (begin >= end)
            return false;
        if (atomic_compare_exchange_weak(&from->run, &run, pack_run(begin + 1, end))) {
            *item = (int64_t)begin;
            return true;
        }
    }
}

/* Moves the back half of the longest run to `thief`.  False when there is nothing left anywhere. */
static bool steal(base_pool *pool, member *thief)
{
    for (;;) {
        member *victim = NULL;
        unsigned long long longest = 0;
        uint64_t most = 0;
        for (int i = 0; i < pool->threads; i++) {
            unsigned long long run = atomic_load(&pool->members[i].run);
            uint64_t begin = run >> 32, end = run & UINT32_MAX;
            if (end > begin && end - begin > most) {
                most = end - begin;
                longest = run;
                victim = &pool->members[i];
            }
        }
        if (!victim)
            return false;
        uint64_t begin = longest >> 32, end = longest & UINT32_MAX, middle = begin + most / 2;
        if (atomic_compare_exchange_strong(&victim->run, &longest, pack_run(begin, middle))) {
            atomic_store(&thief->run, pack_run(middle, end));
            return true;
        }
    }
}

static void fail(base_pool *pool, int status)
{
    int none = SHOAL_OK;
    pthread_mutex_lock(&pool->lock);
    if (atomic_compare_exchange_strong(&pool->status, &none, status))
        snprintf(pool->message, sizeof pool->message, "%s", shoal_error());
    pthread_mutex_unlock(&pool->lock);
}

void base_default_arithmetic(void)
{
    fesetenv(FE_DFL_ENV);
#if defined(__x86_64__)
    _mm_setcsr(0x1f80); /* round to nearest, denormals kept, no traps */
#endif
}

static void work(base_pool *pool, member *self)
{
    int64_t item;
    do {
        while (atomic_load_explicit(&pool->status, memory_order_relaxed) == SHOAL_OK && take(self, &item)) {
            int status = pool->task(pool->context, item, self->index);
            if (status < 0)
                fail(pool, status);
        }
    } while (atomic_load(&pool->status) == SHOAL_OK && steal(pool, self));
}

static inline void pause_briefly(void)
{
#if defined(__x86_64__)
    _mm_pause();
#endif
}

/* How often a thread looks before it sleeps.  Where cores are shared with other processes, the one it waits for may not
 * run at all, and spinning takes the core from it: what was in vain is halved, until it is worth it again, which is
 * tried now and then. */
static int spins_of(member *self)
{
    return !self->pool->spins ? 0 : ++self->waits % SPINS_TRIED_EVERY == 0 ? SPINS : self->spins;
}

static void note_spins(member *self, bool worth_it)
{
    self->spins = worth_it ? SPINS : self->spins > 2 * SPINS_LEAST ? self->spins / 2 : SPINS_LEAST;
}

/* Returns once the generation is no longer `seen`, or false when the pool ends. */
static bool wait_for_work(member *self, unsigned seen)
{
    base_pool *pool = self->pool;
    int spins = spins_of(self), spun = 0;
    for (; spun < spins && atomic_load_explicit(&pool->generation, memory_order_acquire) == seen; spun++)
        pause_briefly();
    note_spins(self, spun < spins);
    pthread_mutex_lock(&pool->lock);
    while (atomic_load(&pool->generation) == seen && !pool->leaving)
        pthread_cond_wait(&pool->work_given, &pool->lock);
    bool go_on = !pool->leaving;
    pthread_mutex_unlock(&pool->lock);
    return go_on;
}

static void *thread_main(void *argument)
{
    member *self = argument;
    base_pool *pool = self->pool;
    base_default_arithmetic();
    for (unsigned seen = 0; wait_for_work(self, seen);) {
        seen = atomic_load(&pool->generation);
        work(pool, self);
        if (atomic_fetch_sub(&pool->busy, 1) == 1) {
            pthread_mutex_lock(&pool->lock);
            pthread_cond_signal(&pool->work_done);
            pthread_mutex_unlock(&pool->lock);
        }
    }
    return NULL;
}

/* Signals are for the thread that made the pool, so that a handler never runs while its data are in use elsewhere;
 * those that an instruction causes come to the thread that executes it, and a profiler samples every thread. */
static int start_thread(member *self)
{
    static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT, SIGPROF};
    sigset_t blocked, callers;
    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        sigdelset(&blocked, own[i]);
    pthread_sigmask(SIG_BLOCK, &blocked, &callers);
    int error = pthread_create(&self->thread, NULL, thread_main, self);
    pthread_sigmask(SIG_SETMASK, &callers, NULL);
    return error;
}

int base_pool_new(base_pool **out, int threads)
{
    base_pool *pool = NULL;
    int status = base_alloc(&pool, 1, sizeof *pool, "a pool of threads");
    if (status < 0)
        return status;
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->work_given, NULL);
    pthread_cond_init(&pool->work_done, NULL);
    pool->threads = threads > 0 ? threads : 1;
    pool->spins = pool->threads <= base_cores();
    status = base_alloc(&pool->members, (size_t)pool->threads, sizeof *pool->members, "threads");
    for (int i = 0; status == SHOAL_OK && i < pool->threads; i++) {
        member *self = &pool->members[i];
        self->pool = pool;
        self->index = i;
        self->spins = SPINS;
        if (i == 0)
            continue; /* the caller is member 0 */
        int error = start_thread(self);
        if (error)
            status = shoal_fail_errno(SHOAL_SYSTEM, error, "can't start thread %d of %d", i + 1, pool->threads);
        else
            pool->started = i;
    }
    if (status == SHOAL_OK)
        *out = pool;
    else
        base_pool_free(&pool);
    return status;
}

void base_pool_free(base_pool **inout)
{
    base_pool *pool = *inout;
    if (!pool)
        return;
    pthread_mutex_lock(&pool->lock);
    pool->leaving = true;
    atomic_fetch_add(&pool->generation, 1); /* for those that spin */
    pthread_cond_broadcast(&pool->work_given);
    pthread_mutex_unlock(&pool->lock);
    for (int i = 1; i <= pool->started; i++)
        pthread_join(pool->members[i].thread, NULL);
    pthread_mutex_destroy(&pool->lock);
    pthread_cond_destroy(&pool->work_given);
    pthread_cond_destroy(&pool->work_done);
    base_free(&pool->members);
    base_free(inout);
}

int base_pool_threads(const base_pool *pool)
{
    return pool->threads;
}

static void deal(base_pool *pool, int64_t items)
{
    for (int i = 0; i < pool->threads; i++) {
        uint64_t begin = (uint64_t)(items * i / pool->threads), end = (uint64_t)(items * (i + 1) / pool->threads);
        atomic_store(&pool->members[i].run, pack_run(begin, end));
    }
}

static void wait_until_done(base_pool *pool)
{
    member *self = &pool->members[0];
    int spins = spins_of(self), spun = 0;
    for (; spun < spins && atomic_load(&pool->busy) > 0; spun++)
        pause_briefly();
    note_spins(self, spun < spins);
    pthread_mutex_lock(&pool->lock);
    while (atomic_load(&pool->busy) > 0)
        pthread_cond_wait(&pool->work_done, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
}

int base_pool_each(base_pool *pool, int64_t items, base_task *task, void *context)
{
    fenv_t callers;
    if (items < 0 || items > UINT32_MAX)
        SHOAL_BUG("a pool can't run %lld items", (long long)items);
    fegetenv(&callers);
    base_default_arithmetic();
    pool->task = task;
    pool->context = context;
    atomic_store(&pool->status, SHOAL_OK);
    deal(pool, items);

    pthread_mutex_lock(&pool->lock);
    atomic_store(&pool->busy, pool->threads - 1);
    atomic_fetch_add(&pool->generation, 1);
    pthread_cond_broadcast(&pool->work_given);
    pthread_mutex_unlock(&pool->lock);

    work(pool, &pool->members[0]);
    wait_until_done(pool);
    fesetenv(&callers);
    int status = atomic_load(&pool->status);
    return status < 0 ? shoal_fail(status, "%s", pool->message) : SHOAL_OK;
}
