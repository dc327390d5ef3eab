/* Waking those that wait for a key: a table of counters, one chosen by the hash of a name.  Two names may share a
 * counter, which may wake someone needlessly, but never misses a change.  A change of a/b/c counts for "", "a/", "a/b/"
 * and "a/b/c", so that a process waiting for one key is not woken by its neighbours. */
#include "store_internal.h"

#include <string.h>

#include "base/world.h"

/* FNV-1a, which can go on from the hash of a shorter name. */
enum { HASH_START = 0x811c9dc5 };

static uint32_t hash_on(uint32_t hash, char letter)
{
    return (hash ^ (unsigned char)letter) * 0x01000193u;
}

static size_t word_of_hash(uint32_t hash)
{
    return (hash ^ hash >> 16) % STORE_WAKE_WORDS;
}

static void bump(store_wake *wake, size_t at)
{
    atomic_fetch_add(&wake->word[at], 1);
    if (atomic_load(&wake->waiters[at]) > 0)
        base_wake_word(&wake->word[at], INT_MAX);
}

/* The words of one change. */
typedef struct touched {
    size_t count;
    uint16_t at[4 * SHOAL_KEY_MOST];
} touched;

static void touch_word(touched *all, uint32_t hash)
{
    if (all->count < sizeof all->at / sizeof *all->at)
        all->at[all->count++] = (uint16_t)word_of_hash(hash);
}

/* Those of every run of segments of the name that `text` to `end` ends, whose start has that hash; the shortest
 * first. */
static uint32_t touch_runs(touched *all, uint32_t hash, const char *text, const char *end)
{
    for (; text < end; text++) {
        hash = hash_on(hash, *text);
        if (*text == '/' || text + 1 == end)
            touch_word(all, hash);
    }
    return hash;
}

/* A blob of a queue that is made of blobs, PREFIX.shoal/queue/NAME/m/ID, is a change of the queue PREFIX and
 * NAME.  Where PREFIX ends is not known here, and it may hold the like itself. */
static void touch_queue(touched *all, const char *key)
{
    static const char own[] = ".shoal/queue/";
    for (const char *start = key; (start = strstr(start, own)); start++) {
        const char *name = start + sizeof own - 1, *end = key + strlen(key);
        if (start > key && start[-1] != '/')
            continue;
        for (int segments = 0; segments < 2; segments++)
            while (end > name && *--end != '/')
                ;
        touch_runs(all, touch_runs(all, HASH_START, key, start), name, end);
    }
}

/* The longest name first: a process woken for everything below a name, which then asks what changed, must find it. */
void store_wake_changed(store_wake *wake, const char *key)
{
    touched all;
    all.count = 0;
    touch_word(&all, HASH_START);
    touch_runs(&all, HASH_START, key, key + strlen(key));
    touch_queue(&all, key);
    while (all.count > 0)
        bump(wake, all.at[--all.count]);
}

int store_wake_wait(store_wake *wake, const char *name, uint32_t *seen, int64_t deadline)
{
    uint32_t hash = HASH_START;
    for (; *name; name++)
        hash = hash_on(hash, *name);
    size_t at = word_of_hash(hash);
    for (;;) {
        uint32_t word = atomic_load(&wake->word[at]);
        uint32_t value = word << 1 | 1; /* what a caller has seen is never 0 */
        if (value != *seen) {
            *seen = value;
            return SHOAL_OK;
        }
        if (base_now() >= deadline)
            return shoal_fail(SHOAL_AGAIN, "nothing changed in time");
        /* Counted first; then the kernel compares again: a process that bumps in between sees the count, or we see the
         * new word. */
        atomic_fetch_add(&wake->waiters[at], 1);
        base_wait_word(&wake->word[at], word, deadline);
        atomic_fetch_sub(&wake->waiters[at], 1);
    }
}
