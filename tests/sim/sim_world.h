/* A world of its own: simulated processes whose threads pass one baton, in virtual time, from one seed.
 *
 *     sim_begin(&(sim_options){.seed = 7});
 *     sim_process *worker = sim_process_start(&(sim_nature){.name = "worker 1"}, work, &context);
 *     sim_sleep(2.5);                                   // two and a half virtual seconds
 *     sim_process_kill(worker);                         // its threads end where they stand
 *     sim_end();
 *
 * Threads are real, so thread-local state, debuggers and sanitizers work, but exactly one runs at a time.  Who goes on
 * is drawn from the seed whenever one waits, joins, sleeps or asks a store.  Time passes only when nobody can run.  So
 * the same seed gives the same history, always.
 *
 * Code that runs in it takes time, waiting, chance and threads from base/world.h, and must hold no lock when it waits:
 * a process dies by jumping out of its threads, and what they had in memory is lost. */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(UNDER_ADDRESS_SANITIZER) || defined(UNDER_THREAD_SANITIZER)
#define SIM_SANITIZED 1 /* stacks are larger, and everything takes longer */
#endif

typedef struct sim_options {
    uint64_t seed;
    double limit;           /* virtual seconds after which it is a failure; 0: a day */
    int64_t steps;          /* changes of the running thread after which it is one; 0: twenty million */
    double spurious;        /* chance that a wait ends for no reason */
    bool verbose;           /* prints every event as it happens */
    void (*describe)(void); /* prints what was being tried when something failed; may be NULL */
} sim_options;

/* From now on the calling thread is the first of process 0, which never dies and whose clock is the world's. */
void sim_begin(const sim_options *options);
/* Every other process must have ended. */
void sim_end(void);

/* ---- processes --------------------------------------------------------------------------------------------------- */

/* What is particular about a process. */
typedef struct sim_nature {
    const char *name;
    int64_t offset;  /* nanoseconds that its clock is ahead of the world's */
    int64_t drift;   /* nanoseconds that it gains in a millisecond */
    double slowness; /* how long it takes to compute, 1 is usual; 0 stands for 1 */
    bool mortal;     /* may die of a fault */
    void *context;   /* whatever its owner likes */
} sim_nature;

typedef struct sim_process sim_process;

sim_process *sim_process_start(const sim_nature *nature, void (*run)(void *context), void *context);
/* Ends all its threads where they stand.  Does not return when it is the caller's own. */
void sim_process_kill(sim_process *process);
/* None of its threads runs for this many seconds, as after SIGSTOP. */
void sim_process_pause(sim_process *process, double seconds);
/* Whether all its threads have ended, by themselves or because it was killed. */
bool sim_process_ended(const sim_process *process);
bool sim_process_killed(const sim_process *process);
const sim_nature *sim_process_nature(const sim_process *process);
int sim_process_number(const sim_process *process);
/* The calling thread's; NULL outside of a simulation. */
sim_process *sim_self(void);

/* ---- time -------------------------------------------------------------------------------------------------------- */

/* The world's time in nanoseconds. */
int64_t sim_time(void);
double sim_seconds(void);
void sim_sleep(double seconds);
void sim_sleep_until(int64_t time);
/* When the world's clock will be, as the calling process's clock shows it, at `until`. */
int64_t sim_time_of(int64_t until);
/* Lets others run. */
void sim_yield(void);
/* Between sim_serve(true) and sim_serve(false) the clock is the world's: what a server does is not done by the process
 * that asks. */
void sim_serve(bool on);

/* ---- chance ------------------------------------------------------------------------------------------------------ */

uint64_t sim_draw(uint64_t bound);
double sim_unit(void);
bool sim_chance(double chance);

/* A stream of numbers of its own. */
typedef struct sim_stream {
    uint64_t state;
} sim_stream;

uint64_t sim_stream_next(sim_stream *stream);
uint64_t sim_stream_below(sim_stream *stream, uint64_t bound);
double sim_stream_unit(sim_stream *stream);
bool sim_stream_chance(sim_stream *stream, double chance);

/* ---- history ----------------------------------------------------------------------------------------------------- */

/* One line of what happened, with time and process in front. */
void sim_event(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Of every event so far. */
uint64_t sim_history_hash(void);
int64_t sim_steps(void);
/* Prints the last events, what every thread waits for, and why, and ends the program with status 1. */
_Noreturn void sim_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
