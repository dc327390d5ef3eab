/* Waking those that wait for a key: a table of counters, one chosen by the hash of a name.  Two names may share a counter,
 * which wakes someone for nothing, and never the other way round.  A change of a/b/c counts for "", "a/", "a/b/" and
 * "a/b/c", so that whoever waits for one key is not woken by its neighbours. */
#include "store_internal.h"

#include <string.h>

#include "base/world.h"

/* FNV-1a, which can go on from the hash of a shorter name. */
enum { HASH_START = 0x811c9dc5 };

static uint32_t hash_on(uint32_t hash, char letter)
{
    return (hash ^ (unsigned char)letter) * 0x01000193u;
}

static size_t place(uint32_t hash)
{
    return (hash ^ hash >> 16) % STORE_WAKE_WORDS;
}

static void bump(store_wake *wake, size_t at)
{
    atomic_fetch_add(&wake->word[at], 1);
    if (atomic_load(&wake->waiters[at]) > 0)
        base_wake_word(&wake->word[at], INT_MAX);
}

/* Counts a change of the name that `text` to `end` ends, whose start has that hash. */
static uint32_t bump_runs(store_wake *wake, uint32_t hash, const char *text, const char *end)
{
    for (; text < end; text++) {
        hash = hash_on(hash, *text);
        if (*text == '/' || text + 1 == end)
            bump(wake, place(hash));
    }
    return hash;
}

/* A blob of a queue that is made of blobs, PREFIX.shoal/queue/NAME/m/ID, is a change of the queue PREFIX and NAME.  Where
 * PREFIX ends is not known here, and it may hold the like itself. */
static void bump_queue(store_wake *wake, const char *key)
{
    static const char own[] = ".shoal/queue/";
    for (const char *start = key; (start = strstr(start, own)); start++) {
        const char *name = start + sizeof own - 1, *end = key + strlen(key);
        if (start > key && start[-1] != '/')
            continue;
        for (int segments = 0; segments < 2; segments++)
            while (end > name && *--end != '/')
                ;
        bump_runs(wake, bump_runs(wake, HASH_START, key, start), name, end);
    }
}

void store_wake_changed(store_wake *wake, const char *key)
{
    bump(wake, place(HASH_START));
    bump_runs(wake, HASH_START, key, key + strlen(key));
    bump_queue(wake, key);
}

int store_wake_wait(store_wake *wake, const char *name, uint32_t *seen, int64_t deadline)
{
    uint32_t hash = HASH_START;
    for (; *name; name++)
        hash = hash_on(hash, *name);
    size_t at = place(hash);
    for (;;) {
        uint32_t word = atomic_load(&wake->word[at]);
        uint32_t value = word << 1 | 1; /* what a caller has seen is never 0 */
        if (value != *seen) {
            *seen = value;
            return SHOAL_OK;
        }
        if (base_now() >= deadline)
            return shoal_fail(SHOAL_AGAIN, "nothing changed in time");
        /* Counted first and then looked again, by the kernel: whoever bumps in between sees the count or the new word. */
        atomic_fetch_add(&wake->waiters[at], 1);
        base_wait_word(&wake->word[at], word, deadline);
        atomic_fetch_sub(&wake->waiters[at], 1);
    }
}
