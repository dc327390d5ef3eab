/* Threads that pass one baton.  See sim_world.h.
 *
 * There is no scheduler thread: a thread about to wait picks the next one and hands the baton over.  Only the baton's
 * holder touches what is static here. */
#include "sim_world.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <linux/futex.h>
#include <sys/syscall.h>

#include <shoal/error.h>

#include "base/world.h"

enum {
    MILLISECOND = 1000000,
#ifdef SIM_SANITIZED
    STACK_BYTES = 2 << 20,
#else
    STACK_BYTES = 256 << 10,
#endif
    EVENTS_KEPT = 600,
    EVENT_BYTES = 320,
    WORDS = 4096, /* a power of two */
};

static const int64_t SECOND = 1000000000;
static const int64_t START = 1000 * SECOND; /* so that a moment ago is not a negative time */

typedef enum thread_state { READY, WAITING, JOINING, ENDED } thread_state;

struct base_thread {
    sim_process *process;
    pthread_t thread;
    void (*run)(void *context);
    void *context;
    jmp_buf end; /* where it goes when its process dies */
    _Atomic uint32_t baton;
    thread_state state;
    const _Atomic uint32_t *word; /* WAITING: on which */
    int64_t until;                /* WAITING: until when, in the world's time */
    base_thread *joiner;          /* who waits for its end */
    bool joined;                  /* somebody waited for its end, or will */
    bool gone;                    /* its pthread was joined */
    int place;                    /* in sim.live */
    bool able;                    /* it can run, and is counted as one that can */
    int alarm;                    /* its place in sim.alarm; -1 when only others can let it run */
    int64_t at;                   /* when its alarm goes off */
    bool listed;                  /* among those that wait on a word, and its neighbours there */
    base_thread *before, *after;
    base_thread *sibling; /* in its process, of those that have not ended */
    base_thread *next;    /* of all there ever were */
};

struct sim_process {
    sim_nature nature;
    char name[32];
    int number;
    int threads; /* that have not ended */
    base_thread *thread;
    bool killed;
    int64_t paused_until;
    sim_stream entropy;
};

static struct {
    bool running;
    sim_options options;
    int64_t time, steps;
    bool serving;
    base_thread *all;
    base_thread **live; /* those that have not ended */
    int live_count, live_room;
    int *able;           /* how many of them can run, as a Fenwick tree over their places, which count from 1 there */
    base_thread **alarm; /* those that will be able to by themselves: a heap, the first one next */
    int alarms;
    base_thread *waiting[WORDS]; /* by a hash of the word */
    sim_process **processes;
    int process_count;
    sim_stream schedule, chance;
    char (*event)[EVENT_BYTES]; /* the last EVENTS_KEPT */
    int64_t events;
    uint64_t hash;
    cpu_set_t cpus; /* on which it may run when it has ended */
} sim;

static __thread base_thread *self;

/* ---- chance ------------------------------------------------------------------------------------------------------ */

/* SplitMix64 (Steele, Lea and Flood 2014). */
uint64_t sim_stream_next(sim_stream *stream)
{
    uint64_t bits = stream->state += UINT64_C(0x9E3779B97F4A7C15);
    bits = (bits ^ bits >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    bits = (bits ^ bits >> 27) * UINT64_C(0x94D049BB133111EB);
    return bits ^ bits >> 31;
}

uint64_t sim_stream_below(sim_stream *stream, uint64_t bound)
{
    return (uint64_t)((unsigned __int128)sim_stream_next(stream) * bound >> 64);
}

double sim_stream_unit(sim_stream *stream)
{
    return (double)(sim_stream_next(stream) >> 11) * 0x1p-53;
}

bool sim_stream_chance(sim_stream *stream, double chance)
{
    return chance > 0 && sim_stream_unit(stream) < chance;
}

uint64_t sim_draw(uint64_t bound)
{
    return sim_stream_below(&sim.chance, bound);
}

double sim_unit(void)
{
    return sim_stream_unit(&sim.chance);
}

bool sim_chance(double chance)
{
    return sim_stream_chance(&sim.chance, chance);
}

static sim_stream stream_for(uint64_t seed, uint64_t purpose)
{
    sim_stream stream = {seed * UINT64_C(0xD1342543DE82EF95) + purpose * UINT64_C(0xA0761D6478BD642F)};
    sim_stream_next(&stream);
    return stream;
}

/* ---- history ----------------------------------------------------------------------------------------------------- */

void sim_event(const char *format, ...)
{
    char *line = sim.event[sim.events % EVENTS_KEPT];
    va_list arguments;
    va_start(arguments, format);
    int length = snprintf(line, EVENT_BYTES, "%12.6f %-12s ", sim_seconds(), self->process->name);
    vsnprintf(line + length, (size_t)(EVENT_BYTES - length), format, arguments);
    va_end(arguments);
    for (const char *letter = line; *letter; letter++)
        sim.hash = (sim.hash ^ (unsigned char)*letter) * UINT64_C(0x100000001b3);
    sim.events++;
    if (sim.options.verbose)
        fprintf(stderr, "%s\n", line);
}

uint64_t sim_history_hash(void)
{
    return sim.hash;
}

int64_t sim_steps(void)
{
    return sim.steps;
}

static void print_threads(void)
{
    fprintf(stderr, "Threads:\n");
    for (int i = 0; i < sim.live_count; i++) {
        const base_thread *thread = sim.live[i];
        fprintf(stderr, "  %-12s ", thread->process->name);
        if (thread->process->paused_until > sim.time)
            fprintf(stderr, "(stopped until %.3f) ", (double)(thread->process->paused_until - START) * 1e-9);
        if (thread == self)
            fprintf(stderr, "runs\n");
        else if (thread->state == READY)
            fprintf(stderr, "can run\n");
        else if (thread->state == JOINING)
            fprintf(stderr, "waits for a thread's end\n");
        else if (thread->until == INT64_MAX)
            fprintf(stderr, "waits on a word, forever\n");
        else
            fprintf(stderr, "waits until %.6f\n", (double)(thread->until - START) * 1e-9);
    }
}

_Noreturn void sim_fail(const char *format, ...)
{
    va_list arguments;
    if (!sim.options.verbose)
        for (int64_t i = sim.events > EVENTS_KEPT ? sim.events - EVENTS_KEPT : 0; i < sim.events; i++)
            fprintf(stderr, "%s\n", sim.event[i % EVENTS_KEPT]);
    print_threads();
    if (sim.options.describe)
        sim.options.describe();
    fprintf(stderr, "FAILED seed %llu at %.6f s, step %lld: ", (unsigned long long)sim.options.seed, sim_seconds(),
            (long long)sim.steps);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fprintf(stderr, "\n");
    fflush(stderr);
    _exit(1);
}

/* ---- the baton --------------------------------------------------------------------------------------------------- */

static void futex(const _Atomic uint32_t *word, int operation, uint32_t value)
{
    syscall(SYS_futex, word, operation, value, NULL, NULL, 0);
}

static void give(base_thread *to)
{
    atomic_store(&to->baton, 1);
    futex(&to->baton, FUTEX_WAKE_PRIVATE, 1);
}

static void await(base_thread *me)
{
    while (atomic_exchange(&me->baton, 0) == 0)
        futex(&me->baton, FUTEX_WAIT_PRIVATE, 0);
}

static bool can_run(const base_thread *thread)
{
    return thread->process->killed || (thread->state == READY && thread->process->paused_until <= sim.time);
}

/* When a thread can run if nobody wakes it. */
static int64_t runs_at(const base_thread *thread)
{
    int64_t time = thread->state == READY ? sim.time : thread->state == WAITING ? thread->until : INT64_MAX;
    int64_t paused = thread->process->paused_until;
    return time == INT64_MAX || time >= paused ? time : paused;
}

/* ---- who can run: a tree of counts, so that the n-th of them is found in a few steps ----------------------------- */

static void count_able(int place, int more)
{
    for (int i = place + 1; i <= sim.live_room; i += i & -i)
        sim.able[i] += more;
}

static void set_able(base_thread *thread, bool able)
{
    if (able != thread->able)
        count_able(thread->place, able ? 1 : -1);
    thread->able = able;
}

static int all_able(void)
{
    int count = 0;
    for (int i = sim.live_count; i > 0; i -= i & -i)
        count += sim.able[i];
    return count;
}

/* The one before which `chosen` others can run.  live_room is a power of two. */
static base_thread *find_able(int chosen)
{
    int place = 0;
    for (int step = sim.live_room; step > 0; step /= 2)
        if (place + step <= sim.live_room && sim.able[place + step] <= chosen) {
            place += step;
            chosen -= sim.able[place];
        }
    return sim.live[place];
}

/* ---- who will be able to: a heap by time ------------------------------------------------------------------------- */

static void set_alarm_at(int place, base_thread *thread)
{
    sim.alarm[place] = thread;
    thread->alarm = place;
}

/* Lets a thread find its place, which is this one or above or below it. */
static void sift_alarm(int place, base_thread *thread)
{
    while (place > 0 && thread->at < sim.alarm[(place - 1) / 2]->at) {
        set_alarm_at(place, sim.alarm[(place - 1) / 2]);
        place = (place - 1) / 2;
    }
    for (int child; (child = 2 * place + 1) < sim.alarms; place = child) {
        if (child + 1 < sim.alarms && sim.alarm[child + 1]->at < sim.alarm[child]->at)
            child++;
        if (sim.alarm[child]->at >= thread->at)
            break;
        set_alarm_at(place, sim.alarm[child]);
    }
    set_alarm_at(place, thread);
}

static void drop_alarm(base_thread *thread)
{
    int place = thread->alarm;
    if (place < 0)
        return;
    thread->alarm = -1;
    base_thread *last = sim.alarm[--sim.alarms];
    if (last != thread)
        sift_alarm(place, last);
}

/* Called whenever something has changed of which it depends when a thread can run. */
static void note_thread(base_thread *thread)
{
    set_able(thread, can_run(thread));
    int64_t at = thread->able ? INT64_MAX : runs_at(thread);
    if (at == INT64_MAX) {
        drop_alarm(thread);
        return;
    }
    thread->at = at;
    sift_alarm(thread->alarm >= 0 ? thread->alarm : sim.alarms++, thread);
}

static void note_process(sim_process *process)
{
    for (base_thread *thread = process->thread; thread; thread = thread->sibling)
        note_thread(thread);
}

/* ---- who waits on a word ----------------------------------------------------------------------------------------- */

static base_thread **waiting_on(const _Atomic uint32_t *word)
{
    return &sim.waiting[((uintptr_t)word * UINT64_C(0x9E3779B97F4A7C15)) >> 52 & (WORDS - 1)];
}

static void list_waiting(base_thread *thread)
{
    base_thread **first = waiting_on(thread->word);
    thread->before = NULL;
    thread->after = *first;
    if (*first)
        (*first)->before = thread;
    *first = thread;
    thread->listed = true;
}

static void unlist_waiting(base_thread *thread)
{
    if (!thread->listed)
        return;
    if (thread->before)
        thread->before->after = thread->after;
    else
        *waiting_on(thread->word) = thread->after;
    if (thread->after)
        thread->after->before = thread->before;
    thread->listed = false;
}

static void set_state(base_thread *thread, thread_state state)
{
    if (thread->state == WAITING && state != WAITING)
        unlist_waiting(thread);
    thread->state = state;
    note_thread(thread);
}

/* ---- whose turn it is -------------------------------------------------------------------------------------------- */

/* Moves time on to the next moment at which anyone can run. */
static void pass_time(void)
{
    if (sim.alarms == 0)
        sim_fail("nobody can ever run again");
    int64_t next = sim.alarm[0]->at;
    sim.time = next > sim.time ? next : sim.time;
    if (sim_seconds() > sim.options.limit)
        sim_fail("it goes on after %.0f virtual seconds", sim.options.limit);
    while (sim.alarms > 0 && sim.alarm[0]->at <= sim.time)
        set_state(sim.alarm[0], READY);
}

static base_thread *pick(void)
{
    if (++sim.steps > sim.options.steps)
        sim_fail("it goes on after %lld steps", (long long)sim.options.steps);
    int count;
    while ((count = all_able()) == 0)
        pass_time();
    return find_able(count == 1 ? 0 : (int)sim_stream_below(&sim.schedule, (uint64_t)count));
}

/* Lets others run until the caller's turn comes; its state says when that can be. */
static void turn(void)
{
    base_thread *me = self, *next = pick();
    if (next != me) {
        give(next);
        await(me);
    }
    set_state(me, READY);
    if (me->process->killed)
        longjmp(me->end, 1);
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

static void must_have(const void *memory)
{
    if (!memory)
        sim_fail("the machine has no more memory");
}

static void add_live(base_thread *thread)
{
    if (sim.live_count == sim.live_room) {
        sim.live_room = sim.live_room ? 2 * sim.live_room : 64;
        sim.live = realloc(sim.live, (size_t)sim.live_room * sizeof *sim.live);
        sim.alarm = realloc(sim.alarm, (size_t)sim.live_room * sizeof *sim.alarm);
        sim.able = realloc(sim.able, (size_t)(sim.live_room + 1) * sizeof *sim.able);
        must_have(sim.live);
        must_have(sim.alarm);
        must_have(sim.able);
        memset(sim.able, 0, (size_t)(sim.live_room + 1) * sizeof *sim.able);
        for (int i = 0; i < sim.live_count; i++)
            count_able(i, sim.live[i]->able);
    }
    thread->place = sim.live_count;
    thread->alarm = -1;
    sim.live[sim.live_count++] = thread;
    note_thread(thread);
}

/* The last one takes its place. */
static void drop_live(base_thread *thread)
{
    base_thread *last = sim.live[--sim.live_count];
    set_able(thread, false);
    drop_alarm(thread);
    unlist_waiting(thread);
    if (last == thread)
        return;
    set_able(last, false);
    last->place = thread->place;
    sim.live[last->place] = last;
    note_thread(last);
}

static void end_thread(base_thread *me)
{
    base_thread **link = &me->process->thread;
    while (*link != me)
        link = &(*link)->sibling;
    *link = me->sibling;
    drop_live(me);
    me->state = ENDED;
    me->process->threads--;
    if (me->joiner && me->joiner->state == JOINING)
        set_state(me->joiner, READY);
}

static void *run_thread(void *context)
{
    base_thread *me = context;
    self = me;
    await(me);
    if (setjmp(me->end) == 0 && !me->process->killed)
        me->run(me->context);
    end_thread(me);
    self = NULL;
    give(pick());
    return NULL;
}

static base_thread *new_thread(sim_process *process, void (*run)(void *context), void *context)
{
    base_thread *thread = calloc(1, sizeof *thread);
    *thread = (base_thread){.process = process, .run = run, .context = context, .next = sim.all};
    sim.all = thread;
    process->threads++;
    thread->sibling = process->thread;
    process->thread = thread;
    add_live(thread);
    return thread;
}

static void start_pthread(base_thread *thread)
{
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    if (pthread_create(&thread->thread, &attributes, run_thread, thread) != 0)
        sim_fail("the machine has no more threads");
    pthread_attr_destroy(&attributes);
}

static void reap(base_thread *thread)
{
    if (!thread->gone)
        pthread_join(thread->thread, NULL);
    thread->gone = true;
}

/* ---- the world's functions --------------------------------------------------------------------------------------- */

static int64_t clock_of(const sim_process *process, int64_t time)
{
    return time + process->nature.offset + time / MILLISECOND * process->nature.drift;
}

int64_t sim_time_of(int64_t until)
{
    const sim_process *process = self->process;
    if (until == INT64_MAX)
        return INT64_MAX;
    double rate = 1 + (double)process->nature.drift / MILLISECOND;
    int64_t time = (int64_t)((double)(until - process->nature.offset) / rate);
    /* Not before the clock shows it: doubles and whole milliseconds are too coarse to tell. */
    while (clock_of(process, time) < until)
        time += until - clock_of(process, time);
    return time;
}

static int64_t now_sim(void)
{
    return sim.serving ? sim.time : clock_of(self->process, sim.time);
}

static void wait_for(const _Atomic uint32_t *word, int64_t until)
{
    self->word = word;
    self->until = until;
    if (until > sim.time) {
        list_waiting(self);
        set_state(self, WAITING);
    }
    turn();
}

static void wait_sim(const _Atomic uint32_t *word, uint32_t value, int64_t until)
{
    if (sim.serving)
        sim_fail("a server waits");
    if (atomic_load(word) != value || sim_stream_chance(&sim.schedule, sim.options.spurious))
        sim_yield();
    else
        wait_for(word, sim_time_of(until));
}

static int by_place(const void *a, const void *b)
{
    return (*(base_thread *const *)a)->place - (*(base_thread *const *)b)->place;
}

/* Never lets another run: those that wake may hold a lock. */
static void wake_sim(const _Atomic uint32_t *word, int most)
{
    int waiting = 0;
    for (base_thread *thread = *waiting_on(word); thread; thread = thread->after)
        waiting += thread->word == word;
    if (waiting == 0)
        return;
    base_thread **all = malloc((size_t)waiting * sizeof *all);
    must_have(all);
    waiting = 0;
    for (base_thread *thread = *waiting_on(word); thread; thread = thread->after)
        if (thread->word == word && thread->until > sim.time) /* or it has waited long enough, and is stopped */
            all[waiting++] = thread;
    qsort(all, (size_t)waiting, sizeof *all, by_place);
    for (int i = 0; waiting > 0 && most > 0; i++, waiting--)
        if (most >= waiting || sim_stream_below(&sim.schedule, (uint64_t)waiting) < (uint64_t)most) {
            set_state(all[i], READY);
            most--;
        }
    free(all);
}

static void random_sim(void *bytes, size_t size)
{
    for (size_t have = 0; have < size; have += 8) {
        uint64_t word = sim_stream_next(&self->process->entropy);
        memcpy((char *)bytes + have, &word, size - have < 8 ? size - have : 8);
    }
}

static int start_sim(base_thread **out, void (*run)(void *context), void *context)
{
    *out = new_thread(self->process, run, context);
    start_pthread(*out);
    return SHOAL_OK;
}

static void join_sim(base_thread *thread)
{
    if (thread->joined)
        sim_fail("a thread is joined twice");
    thread->joined = true;
    thread->joiner = self;
    while (thread->state != ENDED) {
        set_state(self, JOINING);
        turn();
    }
    reap(thread);
}

static const base_world world = {now_sim, wait_sim, wake_sim, random_sim, start_sim, join_sim};

/* A caller that bypasses the world's clock still gets its time. */
#ifndef UNDER_THREAD_SANITIZER
int clock_gettime(clockid_t clock, struct timespec *out)
{
    if (!sim.running || !self)
        return (int)syscall(SYS_clock_gettime, clock, out);
    int64_t time = sim.time + (clock == CLOCK_REALTIME ? 1800000000 * SECOND : 0);
    *out = (struct timespec){.tv_sec = time / SECOND, .tv_nsec = time % SECOND};
    return 0;
}
#endif

/* ---- time -------------------------------------------------------------------------------------------------------- */

int64_t sim_time(void)
{
    return sim.time;
}

double sim_seconds(void)
{
    return (double)(sim.time - START) * 1e-9;
}

void sim_sleep_until(int64_t time)
{
    static const _Atomic uint32_t unchanged;
    while (sim.time < time)
        wait_for(&unchanged, time);
}

void sim_sleep(double seconds)
{
    sim_sleep_until(base_time_after(sim.time, seconds));
}

void sim_yield(void)
{
    turn();
}

void sim_serve(bool on)
{
    sim.serving = on;
}

/* ---- processes --------------------------------------------------------------------------------------------------- */

static sim_process *new_process(const sim_nature *nature)
{
    sim_process *process = calloc(1, sizeof *process);
    process->nature = *nature;
    process->number = sim.process_count;
    snprintf(process->name, sizeof process->name, "%s", nature->name);
    if (process->nature.slowness == 0)
        process->nature.slowness = 1;
    process->entropy = stream_for(sim.options.seed, 1000 + (uint64_t)process->number);
    sim.processes = realloc(sim.processes, (size_t)(sim.process_count + 1) * sizeof *sim.processes);
    sim.processes[sim.process_count++] = process;
    return process;
}

sim_process *sim_process_start(const sim_nature *nature, void (*run)(void *context), void *context)
{
    sim_process *process = new_process(nature);
    start_pthread(new_thread(process, run, context));
    return process;
}

void sim_process_kill(sim_process *process)
{
    if (process->killed || process->threads == 0)
        return;
    process->killed = true;
    note_process(process);
    if (process == self->process)
        longjmp(self->end, 1);
}

void sim_process_pause(sim_process *process, double seconds)
{
    int64_t until = base_time_after(sim.time, seconds);
    process->paused_until = until > process->paused_until ? until : process->paused_until;
    note_process(process);
    if (process == self->process)
        sim_yield();
}

bool sim_process_ended(const sim_process *process)
{
    return process->threads == 0;
}

bool sim_process_killed(const sim_process *process)
{
    return process->killed;
}

const sim_nature *sim_process_nature(const sim_process *process)
{
    return &process->nature;
}

int sim_process_number(const sim_process *process)
{
    return process->number;
}

sim_process *sim_self(void)
{
    return self ? self->process : NULL;
}

/* ---- beginning and end ------------------------------------------------------------------------------------------- */

/* One thread runs at a time, and to wake one on another processor takes many times as long as a step: all of them stay
 * on the processor where the world begins. */
static void stay_on_this_cpu(void)
{
    cpu_set_t here;
    int cpu = sched_getcpu();
    CPU_ZERO(&here);
    if (sched_getaffinity(0, sizeof sim.cpus, &sim.cpus) < 0 || cpu < 0)
        return;
    CPU_SET((size_t)cpu, &here);
    sched_setaffinity(0, sizeof here, &here);
}

void sim_begin(const sim_options *options)
{
    memset(&sim, 0, sizeof sim);
    sim.options = *options;
    sim.options.limit = options->limit > 0 ? options->limit : 86400;
    sim.options.steps = options->steps > 0 ? options->steps : 20000000;
    sim.time = START;
    sim.hash = UINT64_C(0xcbf29ce484222325);
    sim.schedule = stream_for(options->seed, 1);
    sim.chance = stream_for(options->seed, 2);
    sim.event = calloc(EVENTS_KEPT, sizeof *sim.event);
    stay_on_this_cpu();
    self = new_thread(new_process(&(sim_nature){.name = "world"}), NULL, NULL);
    sim.running = true;
    base_world_set(&world);
}

void sim_end(void)
{
    if (sim.live_count != 1)
        sim_fail("%d threads have not ended", sim.live_count - 1);
    base_world_set(NULL);
    sim.running = false;
    while (sim.all) {
        base_thread *thread = sim.all;
        sim.all = thread->next;
        if (thread != self)
            reap(thread);
        free(thread);
    }
    for (int i = 0; i < sim.process_count; i++)
        free(sim.processes[i]);
    free(sim.processes);
    free(sim.live);
    free(sim.able);
    free(sim.alarm);
    free(sim.event);
    sched_setaffinity(0, sizeof sim.cpus, &sim.cpus);
    self = NULL;
}
