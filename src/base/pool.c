/* A fixed crew of threads with stealing.  See pool.h.
 *
 * Each thread owns a run of items [begin, end) packed into one 64-bit word, so that taking one item and
 * stealing half of a run are each a single compare-and-swap.
 *
 * A call opens the gate, works, closes it when no item is left, and waits for the threads that came in through it.  It
 * does not wait for those that did not: a thread that sleeps, or whose core is taken, holds nobody up, since its run is
 * stolen. */
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

enum { MESSAGE_BYTES = 4096 };

/* Nanoseconds: long enough for what is between the calls of short rounds. */
enum { SPIN_MOST = 150000, SPIN_LEAST = 2000, SPIN_TRIED_EVERY = 8 };

/* The gate: how many threads are inside, whether more may come in, and the number of the call. */
static const uint64_t GATE_INSIDE = 0xffff, GATE_OPEN = 1 << 16, GATE_CALL = 1 << 17;

typedef struct member {
    _Alignas(64) atomic_ullong run; /* begin in the high half, end in the low half */
    struct base_pool *pool;
    pthread_t thread;
    int index;
    int64_t spins;  /* nanoseconds that it spins by now */
    unsigned waits; /* how often it has waited */
    uint64_t call;  /* the last one that it was in */
} member;

struct base_pool {
    int threads;
    int started; /* members whose thread runs: 1 .. started */
    bool spins;  /* waiting by spinning for a moment pays only when every thread has a core */
    member *members;

    _Alignas(64) atomic_ullong gate;
    atomic_int asleep;         /* members that wait for work_given */
    atomic_bool caller_asleep; /* the caller waits for work_done */
    atomic_bool leaving;
    pthread_mutex_t lock;
    pthread_cond_t work_given, work_done;

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

/* ---- waiting ----------------------------------------------------------------------------------------------------- */

static int64_t nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static inline void pause_briefly(void)
{
    for (int i = 0; i < 8; i++) {
#if defined(__x86_64__)
        _mm_pause();
#else
        atomic_signal_fence(memory_order_seq_cst);
#endif
    }
}

/* How long a thread looks before it sleeps.  Where cores are shared with other processes, the one it waits for may not
 * run at all, and spinning takes the core from it: what was in vain is halved, until it is worth it again, which is
 * tried now and then. */
static int64_t spins_of(member *self)
{
    return !self->pool->spins ? 0 : ++self->waits % SPIN_TRIED_EVERY == 0 ? SPIN_MOST : self->spins;
}

/* Looks for a moment whether `is_over`, and says so. */
static bool spin(member *self, bool (*is_over)(const member *self))
{
    int64_t spins = spins_of(self);
    bool over = is_over(self);
    if (over || spins == 0)
        return over;
    for (int64_t end = nanoseconds() + spins; !over && nanoseconds() < end; over = is_over(self))
        pause_briefly();
    self->spins = over ? SPIN_MOST : self->spins > 2 * SPIN_LEAST ? self->spins / 2 : SPIN_LEAST;
    return over;
}

/* A call that this member was not in can be entered, or the pool ends. */
static bool may_enter(const member *self)
{
    uint64_t gate = atomic_load(&self->pool->gate);
    return (gate & GATE_OPEN && gate / GATE_CALL != self->call) || atomic_load(&self->pool->leaving);
}

static bool nobody_inside(const member *self)
{
    return (atomic_load(&self->pool->gate) & GATE_INSIDE) == 0;
}

/* Enters the next call that is still open; false when the pool ends. */
static bool enter(member *self)
{
    base_pool *pool = self->pool;
    while (!atomic_load(&pool->leaving)) {
        unsigned long long gate = atomic_load(&pool->gate);
        while (gate & GATE_OPEN && gate / GATE_CALL != self->call)
            if (atomic_compare_exchange_weak(&pool->gate, &gate, gate + 1)) {
                self->call = gate / GATE_CALL;
                return true;
            }
        if (spin(self, may_enter))
            continue;
        pthread_mutex_lock(&pool->lock);
        atomic_fetch_add(&pool->asleep, 1); /* before it looks again: who opens looks at this afterwards */
        if (!may_enter(self))               /* and after it: woken too late for one call, it looks out for the next */
            pthread_cond_wait(&pool->work_given, &pool->lock);
        atomic_fetch_sub(&pool->asleep, 1);
        pthread_mutex_unlock(&pool->lock);
    }
    return false;
}

static void leave(base_pool *pool)
{
    unsigned long long before = atomic_fetch_sub(&pool->gate, 1);
    if ((before & GATE_INSIDE) != 1 || !atomic_load(&pool->caller_asleep))
        return;
    pthread_mutex_lock(&pool->lock);
    pthread_cond_signal(&pool->work_done);
    pthread_mutex_unlock(&pool->lock);
}

static void open_gate(base_pool *pool, bool wakes)
{
    uint64_t call = atomic_load(&pool->gate) / GATE_CALL + 1;
    atomic_store(&pool->gate, call * GATE_CALL | GATE_OPEN);
    if (!wakes || atomic_load(&pool->asleep) == 0)
        return;
    pthread_mutex_lock(&pool->lock);
    pthread_cond_broadcast(&pool->work_given);
    pthread_mutex_unlock(&pool->lock);
}

/* Lets nobody in any more, and waits for those who are inside. */
static void close_gate(base_pool *pool)
{
    member *self = &pool->members[0];
    atomic_fetch_and(&pool->gate, ~GATE_OPEN);
    if (spin(self, nobody_inside))
        return;
    pthread_mutex_lock(&pool->lock);
    atomic_store(&pool->caller_asleep, true); /* before it looks again: who leaves looks at this afterwards */
    while (!nobody_inside(self))
        pthread_cond_wait(&pool->work_done, &pool->lock);
    atomic_store(&pool->caller_asleep, false);
    pthread_mutex_unlock(&pool->lock);
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

static void *thread_main(void *argument)
{
    member *self = argument;
    base_default_arithmetic();
    while (enter(self)) {
        work(self->pool, self);
        leave(self->pool);
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
        self->spins = SPIN_MOST;
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
    atomic_store(&pool->leaving, true);
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

/* ---- calls ------------------------------------------------------------------------------------------------------- */

static void deal(base_pool *pool, int64_t items, int among)
{
    for (int i = 0; i < pool->threads; i++) {
        uint64_t begin = i < among ? (uint64_t)(items * i / among) : 0,
                 end = i < among ? (uint64_t)(items * (i + 1) / among) : 0;
        atomic_store(&pool->members[i].run, pack_run(begin, end));
    }
}

static int each_item(base_pool *pool, int64_t items, base_task *task, void *context, bool wakes)
{
    fenv_t callers;
    const bool alone = pool->threads == 1 || items < 2; /* nobody is woken for that */
    if (items < 0 || items > UINT32_MAX)
        SHOAL_BUG("a pool can't run %lld items", (long long)items);
    fegetenv(&callers);
    base_default_arithmetic();
    pool->task = task;
    pool->context = context;
    atomic_store(&pool->status, SHOAL_OK);
    deal(pool, items, alone ? 1 : pool->threads);
    if (!alone)
        open_gate(pool, wakes);
    work(pool, &pool->members[0]);
    if (!alone)
        close_gate(pool);
    fesetenv(&callers);
    int status = atomic_load(&pool->status);
    return status < 0 ? shoal_fail(status, "%s", pool->message) : SHOAL_OK;
}

int base_pool_each(base_pool *pool, int64_t items, base_task *task, void *context)
{
    return each_item(pool, items, task, context, true);
}

int base_pool_each_awake(base_pool *pool, int64_t items, base_task *task, void *context)
{
    return each_item(pool, items, task, context, false);
}
