/* Memory that fails with a message instead of a crash.
 *
 * Every allocation of the library goes through here, so that a test can make the n-th one fail
 * (base_memory_fail_after) and see that the call reports it, frees everything and can be repeated. */
#ifndef BASE_MEMORY_H
#define BASE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zeroed memory for count * size bytes, aligned to 64.  On failure, overflow included, sets a message that
 * names `what`, leaves *out NULL and returns SHOAL_MEMORY.  Zero bytes give a valid pointer.  Large blocks are
 * aligned to huge pages and ask for them. */
int base_alloc(void *out, size_t count, size_t size, const char *what);

/* The same without the zeros, for what is filled at once. */
int base_alloc_unset(void *out, size_t count, size_t size, const char *what);

/* Grows *inout, which came from base_alloc, from old_count to new_count elements (the new ones zeroed).
 * On failure the old block stays. */
int base_grow(void *inout, size_t old_count, size_t new_count, size_t size, const char *what);

/* Frees *inout and sets it NULL; accepts a NULL inside. */
void base_free(void *inout);

/* A copy of text, or of its first length bytes. */
int base_copy_text(char **out, const char *text);
int base_copy_text_n(char **out, const char *text, size_t length);
/* printf into fresh memory. */
int base_format(char **out, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* a * b and a + b for sizes from outside: false when they do not fit. */
bool base_multiply(size_t *out, size_t a, size_t b);
/* a + b and a - b modulo 2^64: for sums from elsewhere, which may be anything and
 * still must not overflow, and for those made with quanta from elsewhere. */
static inline int64_t base_add_wrapping(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}
static inline int64_t base_subtract_wrapping(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a - (uint64_t)b);
}
bool base_add(size_t *out, size_t a, size_t b);

/* Bytes of memory the system and this process's control groups could give now, and all the system has. */
int64_t base_memory_available(void);
/* What the control groups listed in the file `membership` (as /proc/self/cgroup) and those above them allow, their
 * files being below `root`; INT64_MAX when there is no limit. */
int64_t base_memory_left_in_groups(const char *root, const char *membership);
int64_t base_memory_total(void);
/* The same whatever is in use now: the least of what the machine has and what control groups (of both versions)
 * allow. */
int64_t base_memory_limit(void);
int64_t base_memory_limit_of_groups(const char *root, const char *membership);
/* What each of that many processes of this machine may use by default: its share of three quarters of that limit,
 * and 256 MiB at least. */
int64_t base_memory_share(int64_t processes);
/* From now on an allocation fails that would make this process hold more than that many bytes by these functions;
 * INT64_MAX: any.  The last line of defence of a program that does what others ask of it. */
void base_memory_hold(int64_t most);
/* The most memory this program has had resident, mapped files included; -1 when the system does not tell. */
int64_t base_memory_peak(void);

/* Tests: the n-th allocation from now (0 is the next) and every later one fails; -1 turns that off.
 * Returns how many allocations were counted since the last call. */
int64_t base_memory_fail_after(int64_t n);
/* The same for the calling thread alone, where only the n-th fails: one of several ranks that are threads. */
int64_t base_memory_fail_here(int64_t n);

#endif
