/* Ranks that are threads of this process, so that code that runs in step can be tested without MPI.
 *
 *     static void body(shoal_ranks *ranks, void *context) { ... }            // on a thread of its own for each rank
 *     ranks_here_end end = ranks_here_run(4, body, &context, NULL);
 *     assert_false(end.aborted);
 *
 * What MPI would answer by a hang or by nonsense ends the run here, with a sentence: ranks that call different things
 * or with different sizes, a rank that waits for one that has returned, all of them waiting, a call from a thread that
 * is not the rank's.  abort ends the bodies of all ranks, each at its next call but for poll and alarmed, which a rank
 * makes while other threads of it use what lies on its stack.  What they had is lost, so who tests that under a leak
 * checker forks; and overwritten, so that who still uses it is found out.
 *
 * cmocka's asserts jump to the main thread and are not for bodies: these note what they see, and the test looks when
 * all is over. */
#ifndef RANKS_HERE_H
#define RANKS_HERE_H

#include <pthread.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <shoal/ranks.h>

enum { RANKS_HERE_MOST = 64 };

/* How a run ended. */
typedef struct ranks_here_end {
    bool aborted;
    int rank, code; /* who aborted, and with what; code -1: the ranks did not keep to their contract */
    char message[1200];
    int64_t calls; /* collective ones of each rank */
    int64_t bytes; /* of posted sends */
} ranks_here_end;

/* All of it may be zero, for ranks that are as fast as they are. */
typedef struct ranks_here_options {
    int slow_rank;      /* sleeps before each of its calls ... */
    int slow_us;        /* ... for this many microseconds; 0: nobody does */
    int64_t abort_call; /* in this collective call, counted from 1, abort_rank aborts instead; 0: never */
    int abort_rank;
} ranks_here_options;

typedef enum here_kind { HERE_SUM, HERE_MAX, HERE_GATHER, HERE_GATHER_SOME, HERE_SHARE, HERE_CLOSE } here_kind;
typedef enum here_state { HERE_RUNS, HERE_MEETS, HERE_WAITS, HERE_ENDED } here_state;

/* One collective call of one rank. */
typedef struct here_call {
    here_kind kind;
    void *out;
    const void *in;
    size_t count; /* values, or bytes */
    const size_t *some;
    int from;
    int64_t number; /* of all that this rank called */
} here_call;

typedef struct here_post {
    enum { HERE_POST_SEND, HERE_POST_RECEIVE } kind;
    void *out;
    const void *in;
    size_t count;
    int peer;
    bool done;
    struct here_post *next;
} here_post;

typedef struct here_world here_world;

typedef struct here_rank {
    shoal_ranks table;
    here_world *world;
    pthread_t thread;
    here_state state;
    here_call call;
    int64_t calls;
    here_post *posts; /* oldest first */
    int64_t met;      /* collective calls but for posted ones */
    int64_t alarm;    /* how many there had been when it raised the alarm; -1 before */
    jmp_buf leave;
    void (*body)(shoal_ranks *, void *);
    void *context;
} here_rank;

struct here_world {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int size;
    ranks_here_options options;
    ranks_here_end end;
    here_rank rank[RANKS_HERE_MOST];
};

static inline here_rank *here_of(shoal_ranks *ranks)
{
    return (here_rank *)ranks;
}

/* ---- ends -------------------------------------------------------------------------------------------------------- */

/* With the lock held.  The first reason is the one that counts. */
static inline void here_end(here_world *world, int rank, int code, const char *message)
{
    if (!world->end.aborted) {
        world->end.aborted = true;
        world->end.rank = rank;
        world->end.code = code;
        snprintf(world->end.message, sizeof world->end.message, "%s", message ? message : "");
    }
    pthread_cond_broadcast(&world->changed);
}

static inline void here_unlock(here_rank *self)
{
    bool leave = self->world->end.aborted;
    pthread_mutex_unlock(&self->world->lock);
    if (leave)
        longjmp(self->leave, 1);
}

/* Calls that must not leave begin with this. */
static inline void here_lock_to_stay(here_rank *self)
{
    const ranks_here_options *options = &self->world->options;
    if (!pthread_equal(self->thread, pthread_self())) {
        fprintf(stderr, "rank %d was called from a thread that is not its own\n", self->table.rank);
        abort();
    }
    if (options->slow_us > 0 && options->slow_rank == self->table.rank)
        nanosleep(&(struct timespec){.tv_nsec = 1000L * options->slow_us}, NULL);
    pthread_mutex_lock(&self->world->lock);
}

/* Every other call. */
static inline void here_lock(here_rank *self)
{
    here_lock_to_stay(self);
    if (self->world->end.aborted)
        here_unlock(self);
}

/* When nobody runs any more and someone waits, nobody ever will. */
static inline void here_look_for_deadlock(here_world *world)
{
    char text[1000];
    int length = 0, waiting = 0;
    static const char *const states[] = {"runs", "is in a collective call", "waits for what was posted",
                                         "has returned"};
    for (int i = 0; i < world->size; i++) {
        here_state state = world->rank[i].state;
        if (state == HERE_RUNS)
            return;
        waiting += state != HERE_ENDED;
        if (length < (int)sizeof text - 100)
            length += snprintf(text + length, sizeof text - (size_t)length, "%srank %d %s (call %lld)", i ? ", " : "",
                               i, states[state], (long long)world->rank[i].calls);
    }
    if (waiting > 0)
        here_end(world, 0, -1, text);
}

/* ---- collective calls -------------------------------------------------------------------------------------------- */

static inline bool here_is_same(const here_call *a, const here_call *b, int size)
{
    return a->kind == b->kind && a->number == b->number && a->from == b->from &&
           (a->kind == HERE_GATHER_SOME ? memcmp(a->some, b->some, sizeof *a->some * (size_t)size) == 0
                                        : a->count == b->count);
}

static inline int64_t here_add(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

/* All ranks are here: does what they asked for. */
static inline void here_numbers(here_world *world)
{
    here_call *call = &world->rank[0].call;
    int64_t *all = calloc(call->count + 1, sizeof *all);
    for (int i = 0; i < world->size; i++)
        for (size_t k = 0; k < call->count; k++) {
            int64_t value = ((const int64_t *)world->rank[i].call.in)[k];
            if (i == 0)
                all[k] = value;
            else if (call->kind == HERE_SUM)
                all[k] = here_add(all[k], value);
            else
                all[k] = value > all[k] ? value : all[k];
        }
    for (int i = 0; i < world->size && call->count; i++)
        memcpy(world->rank[i].call.out, all, call->count * sizeof *all);
    free(all);
}

static inline void here_gather(here_world *world)
{
    here_call *call = &world->rank[0].call;
    for (int to = 0; to < world->size; to++) {
        unsigned char *out = world->rank[to].call.out;
        for (int i = 0; i < world->size; i++) {
            size_t bytes = call->kind == HERE_GATHER ? call->count : call->some[i];
            if (bytes)
                memcpy(out, world->rank[i].call.in, bytes);
            out += bytes;
        }
    }
}

static inline void here_share(here_world *world)
{
    here_call *call = &world->rank[0].call;
    for (int i = 0; i < world->size && call->count; i++)
        if (i != call->from)
            memcpy(world->rank[i].call.out, world->rank[call->from].call.out, call->count);
}

static inline void here_perform(here_world *world)
{
    for (int i = 1; i < world->size; i++)
        if (!here_is_same(&world->rank[0].call, &world->rank[i].call, world->size)) {
            const here_call *a = &world->rank[0].call, *b = &world->rank[i].call;
            char text[300];
            snprintf(
                text, sizeof text,
                "rank 0's call %lld is of kind %d with %zu from %d, and rank %d's call %lld is of kind %d with %zu "
                "from %d",
                (long long)a->number, a->kind, a->count, a->from, i, (long long)b->number, b->kind, b->count, b->from);
            here_end(world, i, -1, text);
            return;
        }
    switch (world->rank[0].call.kind) {
    case HERE_SUM:
    case HERE_MAX: here_numbers(world); break;
    case HERE_GATHER:
    case HERE_GATHER_SOME: here_gather(world); break;
    case HERE_SHARE: here_share(world); break;
    case HERE_CLOSE: break;
    }
}

static inline void here_meet(shoal_ranks *ranks, here_call call)
{
    here_rank *self = here_of(ranks);
    here_world *world = self->world;
    int there = 0;
    here_lock(self);
    call.number = ++self->calls;
    if (world->options.abort_call == call.number && world->options.abort_rank == ranks->rank) {
        here_end(world, ranks->rank, 9, "told to by the test");
        here_unlock(self);
    }
    self->call = call;
    self->state = HERE_MEETS;
    for (int i = 0; i < world->size; i++)
        there += world->rank[i].state == HERE_MEETS;
    if (there == world->size) {
        here_perform(world);
        for (int i = 0; i < world->size; i++)
            world->rank[i].state = HERE_RUNS;
        pthread_cond_broadcast(&world->changed);
    }
    self->met++;
    here_look_for_deadlock(world);
    while (self->state == HERE_MEETS && !world->end.aborted)
        pthread_cond_wait(&world->changed, &world->lock);
    here_unlock(self);
}

static inline void sum_here(shoal_ranks *self, int64_t *out, const int64_t *in, size_t count)
{
    here_meet(self, (here_call){.kind = HERE_SUM, .out = out, .in = in, .count = count});
}

static inline void max_here(shoal_ranks *self, int64_t *out, const int64_t *in, size_t count)
{
    here_meet(self, (here_call){.kind = HERE_MAX, .out = out, .in = in, .count = count});
}

static inline void gather_here(shoal_ranks *self, void *out, const void *in, size_t bytes)
{
    here_meet(self, (here_call){.kind = HERE_GATHER, .out = out, .in = in, .count = bytes});
}

static inline void gather_some_here(shoal_ranks *self, void *out, const size_t *bytes, const void *in)
{
    here_meet(self, (here_call){.kind = HERE_GATHER_SOME, .out = out, .in = in, .some = bytes});
}

static inline void share_here(shoal_ranks *self, void *inout, size_t bytes, int from)
{
    here_meet(self, (here_call){.kind = HERE_SHARE, .out = inout, .count = bytes, .from = from});
}

static inline void close_here(shoal_ranks *self)
{
    here_meet(self, (here_call){.kind = HERE_CLOSE});
}

/* ---- what is posted ---------------------------------------------------------------------------------------------- */

static inline void here_post_one(shoal_ranks *ranks, here_post post)
{
    here_rank *self = here_of(ranks);
    here_lock(self);
    here_post **last = &self->posts, *fresh = malloc(sizeof *fresh);
    *fresh = post;
    while (*last)
        last = &(*last)->next;
    *last = fresh;
    if (post.kind == HERE_POST_SEND)
        self->world->end.bytes += (int64_t)post.count;
    here_unlock(self);
}

static inline void post_send_here(shoal_ranks *self, const void *bytes, size_t size, int to)
{
    here_post_one(self, (here_post){.kind = HERE_POST_SEND, .in = bytes, .count = size, .peer = to});
}

static inline void post_receive_here(shoal_ranks *self, void *bytes, size_t size, int from)
{
    here_post_one(self, (here_post){.kind = HERE_POST_RECEIVE, .out = bytes, .count = size, .peer = from});
}

/* The oldest of a rank's posts that is not done, of a kind and with a peer. */
static inline here_post *here_oldest(here_rank *rank, int kind, int peer)
{
    for (here_post *post = rank->posts; post; post = post->next)
        if (!post->done && (int)post->kind == kind && post->peer == peer)
            return post;
    return NULL;
}

/* As with MPI, less than was awaited may come. */
static inline bool here_try_send(here_world *world, int from, int to)
{
    here_post *send = here_oldest(&world->rank[from], HERE_POST_SEND, to);
    here_post *receive = here_oldest(&world->rank[to], HERE_POST_RECEIVE, from);
    if (!send || !receive)
        return false;
    if (send->count > receive->count) {
        here_end(world, from, -1, "a rank sends more than the other awaits");
        return false;
    }
    if (send->count)
        memcpy(receive->out, send->in, send->count);
    send->done = receive->done = true;
    return true;
}

static inline void here_progress(here_world *world)
{
    bool more = true;
    while (more) {
        more = false;
        for (int from = 0; from < world->size; from++)
            for (int to = 0; to < world->size; to++)
                more |= here_try_send(world, from, to);
    }
}

/* Whether all that the rank posted is done; then it is forgotten. */
static inline bool here_settle(here_rank *self)
{
    for (here_post *post = self->posts; post; post = post->next)
        if (!post->done)
            return false;
    while (self->posts) {
        here_post *next = self->posts->next;
        free(self->posts);
        self->posts = next;
    }
    return true;
}

/* With the lock held: completes what can be, and wakes those whose posts are done. */
static inline void here_help(here_world *world)
{
    bool woke = false;
    here_progress(world);
    for (int i = 0; i < world->size; i++)
        if (world->rank[i].state == HERE_WAITS && here_settle(&world->rank[i])) {
            world->rank[i].state = HERE_RUNS;
            woke = true;
        }
    if (woke)
        pthread_cond_broadcast(&world->changed);
}

static inline bool poll_here(shoal_ranks *ranks)
{
    here_rank *self = here_of(ranks);
    here_lock_to_stay(self);
    bool ended = self->world->end.aborted;
    if (!ended)
        here_help(self->world);
    bool done = !ended && here_settle(self);
    pthread_mutex_unlock(&self->world->lock);
    return done;
}

static inline void wait_here(shoal_ranks *ranks)
{
    here_rank *self = here_of(ranks);
    here_lock(self);
    self->state = HERE_WAITS;
    here_help(self->world);
    here_look_for_deadlock(self->world);
    while (self->state == HERE_WAITS && !self->world->end.aborted)
        pthread_cond_wait(&self->world->changed, &self->world->lock);
    here_unlock(self);
}

/* ---- failures ---------------------------------------------------------------------------------------------------- */

/* Until the next collective call. */
static inline void alarm_here(shoal_ranks *ranks)
{
    here_rank *self = here_of(ranks);
    here_lock(self);
    self->alarm = self->met;
    here_unlock(self);
}

static inline bool alarmed_here(shoal_ranks *ranks)
{
    here_rank *self = here_of(ranks);
    here_lock_to_stay(self);
    bool alarmed = self->world->end.aborted;
    for (int i = 0; i < self->world->size; i++)
        alarmed |= i != ranks->rank && self->world->rank[i].alarm >= self->met;
    pthread_mutex_unlock(&self->world->lock);
    return alarmed;
}

static inline void abort_here(shoal_ranks *ranks, const char *message, int code)
{
    here_rank *self = here_of(ranks);
    here_lock(self);
    here_end(self->world, ranks->rank, code, message);
    here_unlock(self);
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

static __attribute__((noinline, unused)) void here_overwrite_stack(void)
{
    volatile unsigned char below[16 << 10];
    for (size_t i = 0; i < sizeof below; i++)
        below[i] = 0x5a;
}

static inline void *here_thread(void *argument)
{
    here_rank *self = argument;
    here_world *world = self->world;
    pthread_mutex_lock(&world->lock); /* until all threads are there */
    pthread_mutex_unlock(&world->lock);
    if (setjmp(self->leave) == 0)
        self->body(&self->table, self->context);
    else
        here_overwrite_stack();
    pthread_mutex_lock(&world->lock);
    self->state = HERE_ENDED;
    if (!world->end.aborted) {
        here_help(world);
        here_look_for_deadlock(world);
        if (!here_settle(self))
            here_end(world, self->table.rank, -1, "a rank returned while what it posted was under way");
    }
    pthread_mutex_unlock(&world->lock);
    return NULL;
}

static inline void here_fill(here_rank *rank, here_world *world, int number)
{
    rank->world = world;
    rank->alarm = -1;
    rank->table = (shoal_ranks){
        .version = SHOAL_RANKS_VERSION,
        .bytes = sizeof rank->table,
        .rank = number,
        .size = world->size,
        .name = "threads of a test",
        .sum = sum_here,
        .max = max_here,
        .gather = gather_here,
        .gather_some = gather_some_here,
        .share = share_here,
        .post_send = post_send_here,
        .post_receive = post_receive_here,
        .poll = poll_here,
        .wait = wait_here,
        .alarm = alarm_here,
        .alarmed = alarmed_here,
        .abort = abort_here,
        .close = close_here,
        .own = rank,
    };
}

/* Runs body(rank, context) on `size` threads, and returns when all have returned or left.  `options` may be NULL. */
static inline ranks_here_end ranks_here_run(int size, void (*body)(shoal_ranks *ranks, void *context), void *context,
                                            const ranks_here_options *options)
{
    here_world *world = calloc(1, sizeof *world);
    if (size < 1 || size > RANKS_HERE_MOST || !world)
        abort();
    world->size = size;
    world->options = options ? *options : (ranks_here_options){0};
    pthread_mutex_init(&world->lock, NULL);
    pthread_cond_init(&world->changed, NULL);
    pthread_mutex_lock(&world->lock);
    for (int i = 0; i < size; i++) {
        here_rank *rank = &world->rank[i];
        here_fill(rank, world, i);
        rank->body = body;
        rank->context = context;
        if (pthread_create(&rank->thread, NULL, here_thread, rank) != 0)
            abort();
    }
    pthread_mutex_unlock(&world->lock);
    for (int i = 0; i < size; i++)
        pthread_join(world->rank[i].thread, NULL);
    ranks_here_end end = world->end;
    end.calls = world->rank[0].calls;
    for (int i = 0; i < size; i++)
        for (here_post *post = world->rank[i].posts, *next; post; post = next) {
            next = post->next;
            free(post);
        }
    pthread_cond_destroy(&world->changed);
    pthread_mutex_destroy(&world->lock);
    free(world);
    return end;
}

#endif
