/* Time, waiting, threads and true randomness: all that makes a run differ from its last one, in one place.
 *
 * Whoever waits does so on a 32-bit word: it sleeps while the word has the value it saw, until someone changes the word
 * and wakes it, or until a moment comes.  The word may lie in memory shared with other processes.  Sleeping is waiting
 * on a word that nobody changes.  Tests may put another world in place, whose time passes as they like. */
#ifndef BASE_WORLD_H
#define BASE_WORLD_H

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct base_thread base_thread;

typedef struct base_world {
    /* Nanoseconds since the machine started, its sleep included. */
    int64_t (*now)(void);
    /* Sleeps while *word == value, at most until `until`.  May return early for no reason. */
    void (*wait)(const _Atomic uint32_t *word, uint32_t value, int64_t until);
    /* Wakes at most `most` of those that wait on the word. */
    void (*wake)(const _Atomic uint32_t *word, int most);
    /* Fills bytes that nobody can guess. */
    void (*random)(void *bytes, size_t size);
    /* Starts a thread that calls run(context), and waits for its end; see below. */
    int (*start)(base_thread **out, void (*run)(void *context), void *context);
    void (*join)(base_thread *thread);
} base_world;

/* What the functions below use; NULL is the real world.  To be set before any other thread runs. */
void base_world_set(const base_world *world);

int64_t base_now(void);
/* Nanoseconds since 1970 by the machine's clock, which people set: for what they read, and for order among files. */
int64_t base_wall_now(void);
/* `seconds` after `from`, which saturates: infinitely long is INT64_MAX. */
int64_t base_time_after(int64_t from, double seconds);
/* The earlier of two moments. */
static inline int64_t base_time_first(int64_t a, int64_t b)
{
    return a < b ? a : b;
}
/* The seconds from now until `until`, negative when it has passed. */
double base_seconds_until(int64_t until);
void base_wait_word(const _Atomic uint32_t *word, uint32_t value, int64_t until);
void base_wake_word(const _Atomic uint32_t *word, int most);
void base_sleep_until(int64_t until);
void base_entropy(void *bytes, size_t size);

/* What names this start of this machine, and no other; false, and "", where the system does not say. */
enum { BASE_BOOT_ID_BYTES = 40 };
bool base_boot_id(char out[BASE_BOOT_ID_BYTES]);

/* A thread beside the calling one, that signals do not come to.  SHOAL_SYSTEM when there can be no more. */
int base_thread_start(base_thread **out, void (*run)(void *context), void *context);
/* Waits for its end and frees it; accepts a NULL inside and leaves one. */
void base_thread_join(base_thread **thread);

#endif
