/* Allocation with messages, alignment and a switch for tests.  See memory.h. */
#include "memory.h"

#include <malloc.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <shoal/error.h>

enum { ALIGNMENT = 64, HUGE_PAGE = 2 << 20, ASK_FROM = 256 << 20, COUNT_FROM = 64 << 10 };

static atomic_llong allocations_counted;
static atomic_llong allocations_allowed = -1;
static _Thread_local int64_t counted_here, failing_here = -1;

int64_t base_memory_fail_after(int64_t n)
{
    atomic_store(&allocations_allowed, n);
    return atomic_exchange(&allocations_counted, 0);
}

int64_t base_memory_fail_here(int64_t n)
{
    int64_t counted = counted_here;
    counted_here = 0;
    failing_here = n;
    return counted;
}

/* ---- how much may be held ---------------------------------------------------------------------------------------- */

static atomic_llong held; /* bytes of blocks from COUNT_FROM on: smaller ones don't matter */
static atomic_llong most_held = INT64_MAX;

void base_memory_hold(int64_t most)
{
    atomic_store(&most_held, most);
}

static bool has_room(size_t bytes)
{
    long long room = atomic_load(&most_held) - atomic_load(&held);
    return bytes < COUNT_FROM || (room > 0 && bytes <= (size_t)room);
}

static long long counted_bytes(void *block)
{
    size_t bytes = block ? malloc_usable_size(block) : 0;
    return bytes < COUNT_FROM ? 0 : (long long)bytes;
}

static void release(void *block)
{
    atomic_fetch_sub(&held, counted_bytes(block));
    free(block);
}

/* ---- allocating -------------------------------------------------------------------------------------------------- */

static bool may_allocate(void)
{
    if (counted_here++ == failing_here)
        return false;
    long long so_far = atomic_fetch_add(&allocations_counted, 1);
    long long allowed = atomic_load(&allocations_allowed);
    return allowed < 0 || so_far < allowed;
}

bool base_multiply(size_t *out, size_t a, size_t b)
{
    return !__builtin_mul_overflow(a, b, out);
}

bool base_add(size_t *out, size_t a, size_t b)
{
    return !__builtin_add_overflow(a, b, out);
}

/* Huge pages matter to the packed operands of the kernels: they are read in strides. */
static void *allocate(size_t bytes)
{
    size_t alignment = bytes >= HUGE_PAGE ? HUGE_PAGE : ALIGNMENT;
    size_t rounded;
    if (!may_allocate() || !base_add(&rounded, bytes, alignment - 1))
        return NULL;
    /* The system promises more memory than it has and kills a process that uses it: ask first. */
    if (bytes >= ASK_FROM && (int64_t)bytes > base_memory_available())
        return NULL;
    rounded = (rounded / alignment + (rounded < alignment)) * alignment;
    void *block = has_room(rounded) ? aligned_alloc(alignment, rounded) : NULL;
    atomic_fetch_add(&held, counted_bytes(block));
    if (block && alignment == HUGE_PAGE)
        (void)madvise(block, rounded, MADV_HUGEPAGE); /* advice only: without it things are slower, not wrong */
    return block;
}

static int fail_memory(size_t count, size_t size, const char *what)
{
    long long most = atomic_load(&most_held);
    if (most == INT64_MAX)
        return shoal_fail(SHOAL_MEMORY, "out of memory: %zu times %zu bytes for %s", count, size, what);
    return shoal_fail(SHOAL_MEMORY, "out of memory: %zu times %zu bytes for %s; this process may hold %lld MB", count,
                      size, what, most / 1000000);
}

int base_alloc_unset(void *out, size_t count, size_t size, const char *what)
{
    size_t bytes = 0;
    void *block = NULL;
    if (base_multiply(&bytes, count, size))
        block = allocate(bytes);
    memcpy(out, &block, sizeof block);
    if (!block)
        return fail_memory(count, size, what);
    return SHOAL_OK;
}

int base_alloc(void *out, size_t count, size_t size, const char *what)
{
    void *block;
    int status = base_alloc_unset(out, count, size, what);
    if (status == SHOAL_OK) {
        memcpy(&block, out, sizeof block);
        memset(block, 0, count * size);
    }
    return status;
}

int base_grow(void *inout, size_t old_count, size_t new_count, size_t size, const char *what)
{
    void *old, *fresh;
    memcpy(&old, inout, sizeof old);
    int status = base_alloc(&fresh, new_count, size, what);
    if (status < 0)
        return status;
    if (old)
        memcpy(fresh, old, (old_count < new_count ? old_count : new_count) * size);
    release(old);
    memcpy(inout, &fresh, sizeof fresh);
    return SHOAL_OK;
}

void base_free(void *inout)
{
    void *block;
    memcpy(&block, inout, sizeof block);
    release(block);
    memset(inout, 0, sizeof block);
}

int base_copy_text(char **out, const char *text)
{
    return base_copy_text_n(out, text, strlen(text));
}

int base_copy_text_n(char **out, const char *text, size_t length)
{
    int status = base_alloc(out, length + 1, 1, "text");
    if (status == SHOAL_OK)
        memcpy(*out, text, length);
    return status;
}

int base_format(char **out, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (length < 0)
        SHOAL_BUG("a text that can't be formatted");
    int status = base_alloc(out, (size_t)length + 1, 1, "text");
    if (status == SHOAL_OK) {
        va_start(arguments, format);
        vsnprintf(*out, (size_t)length + 1, format, arguments);
        va_end(arguments);
    }
    return status;
}

int64_t base_memory_total(void)
{
    return (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
}

/* The number of kibibytes behind a name in a file of the proc file system, as bytes; -1 when it is not there. */
static int64_t proc_bytes(const char *path, const char *name)
{
    long long kib = -1;
    char line[128];
    size_t length = strlen(name);
    FILE *file = fopen(path, "r");
    while (file && kib < 0 && fgets(line, sizeof line, file))
        if (strncmp(line, name, length) == 0 && sscanf(line + length, ": %lld kB", &kib) != 1)
            kib = -1;
    if (file)
        fclose(file);
    return kib >= 0 ? kib * 1024 : -1;
}

/* A number in a file of its own, or behind a name in one; -1 when it is not there, as for "max". */
static int64_t read_number(const char *folder, const char *file_name, const char *name)
{
    char path[4096 + 256], line[256];
    long long number = -1;
    size_t length = name ? strlen(name) : 0;
    int size = snprintf(path, sizeof path, "%s/%s", folder, file_name);
    FILE *file = size > 0 && (size_t)size < sizeof path ? fopen(path, "r") : NULL;
    while (file && number < 0 && fgets(line, sizeof line, file))
        if ((name && (strncmp(line, name, length) != 0 || line[length] != ' ')) ||
            sscanf(line + length, "%lld", &number) != 1)
            number = -1;
    if (file)
        fclose(file);
    return number;
}

/* Version 1 says "no limit" by a huge number. */
static int64_t limit_of_group(const char *folder, bool version_2)
{
    int64_t limit = read_number(folder, version_2 ? "memory.max" : "memory.limit_in_bytes", NULL);
    return limit < 0 || limit >= INT64_MAX / 2 ? INT64_MAX : limit;
}

/* What one group may still take.  Pages of files nobody uses lately are counted as used but given back on demand. */
static int64_t left_in_group(const char *folder, bool version_2)
{
    int64_t limit = limit_of_group(folder, version_2);
    int64_t used = read_number(folder, version_2 ? "memory.current" : "memory.usage_in_bytes", NULL);
    int64_t cached = read_number(folder, "memory.stat", version_2 ? "inactive_file" : "total_inactive_file");
    if (limit == INT64_MAX || used < 0)
        return INT64_MAX;
    used -= cached > 0 && cached < used ? cached : 0;
    return used < limit ? limit - used : 0;
}

/* The least that any of the groups says. */
static int64_t least_of_groups(const char *root, const char *membership, int64_t (*ask)(const char *, bool))
{
    char line[4096], folder[4096 + 256];
    int64_t least = INT64_MAX;
    FILE *file = fopen(membership, "r");
    while (file && fgets(line, sizeof line, file)) { /* "0::/path" is version 2, "5:memory,x:/path" version 1 */
        char *group = strchr(line, ':'), *path = group ? strchr(group + 1, ':') : NULL;
        if (!path)
            continue;
        *path++ = '\0';
        path[strcspn(path, "\n")] = '\0';
        bool version_2 = strcmp(group, ":") == 0;
        if (!version_2 && !strstr(group, "memory"))
            continue;
        /* Every group above limits too.  In a container the path may be the host's, and only its end, "/", is here. */
        for (char *end = path + strlen(path); end; end = strrchr(path, '/')) {
            *end = '\0';
            int size = snprintf(folder, sizeof folder, "%s%s%s", root, version_2 ? "" : "/memory", path);
            bool fits = size > 0 && (size_t)size < sizeof folder;
            int64_t said = fits ? ask(folder, version_2) : INT64_MAX;
            least = said < least ? said : least;
        }
    }
    if (file)
        fclose(file);
    return least;
}

int64_t base_memory_left_in_groups(const char *root, const char *membership)
{
    return least_of_groups(root, membership, left_in_group);
}

int64_t base_memory_limit_of_groups(const char *root, const char *membership)
{
    return least_of_groups(root, membership, limit_of_group);
}

int64_t base_memory_limit(void)
{
    int64_t all = base_memory_total(), in_groups = base_memory_limit_of_groups("/sys/fs/cgroup", "/proc/self/cgroup");
    return in_groups < all ? in_groups : all;
}

int64_t base_memory_share(int64_t processes)
{
    const int64_t least = INT64_C(256) << 20;
    int64_t share = base_memory_limit() / 4 * 3 / (processes > 0 ? processes : 1);
    return share > least ? share : least;
}

int64_t base_memory_available(void)
{
    int64_t available = proc_bytes("/proc/meminfo", "MemAvailable");
    int64_t in_groups = base_memory_left_in_groups("/sys/fs/cgroup", "/proc/self/cgroup");
    if (available < 0)
        available = (int64_t)sysconf(_SC_AVPHYS_PAGES) * sysconf(_SC_PAGESIZE);
    return in_groups < available ? in_groups : available;
}

int64_t base_memory_peak(void)
{
    return proc_bytes("/proc/self/status", "VmHWM"); /* getrusage's figure would include what ran before exec */
}
