/* Which kernel sets this CPU can run, and which one to use.  The tables are built once, at the first question. */
#include "kernel/kernel.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <shoal/error.h>

enum { SETS_MOST = 8 };

static kernel_set sets[SETS_MOST]; /* portable first, each better than the one before */
static int count_sets;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* A set starts as a copy of the one below it; `fill_dense` may be NULL, for one that has the same dense tables. */
static void add_set(const char *name, void (*fill)(kernel_set *),
                    void (*fill_dense)(kernel_dense32 *, kernel_dense64 *, kernel_convolution *))
{
    kernel_set *set = &sets[count_sets];
    if (count_sets > 0)
        *set = sets[count_sets - 1];
    fill(set);
    if (fill_dense)
        fill_dense(&set->dense32, &set->dense64, &set->convolution);
    set->name = name;
    count_sets++;
}

static void build_sets(void)
{
    add_set("portable", kernel_fill_portable, kernel_dense_portable);
#if defined(__x86_64__)
    /* __builtin_cpu_supports also asks whether the system saves the wide registers (XCR0). */
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
        return;
    add_set("avx2", kernel_fill_avx2, kernel_dense_avx2);
    if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
        !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512vl"))
        return;
    add_set("avx512", kernel_fill_avx512, kernel_dense_avx512);
    if (__builtin_cpu_supports("avx512vnni"))
        add_set("vnni", kernel_fill_vnni, NULL);
#endif
}

int kernel_list(const kernel_set *out[8])
{
    pthread_once(&once, build_sets);
    for (int i = 0; i < count_sets; i++)
        out[i] = &sets[i];
    return count_sets;
}

static bool is_known(const char *name)
{
    static const char *const names[] = {"portable", "avx2", "avx512", "vnni"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(name, names[i]))
            return true;
    return false;
}

/* `from` says where the name was found. */
static int fail_to_choose(const char *from, const char *name)
{
    char runs[128] = "";
    size_t used = 0;
    for (int i = 0; i < count_sets && used < sizeof runs; i++)
        used += (size_t)snprintf(runs + used, sizeof runs - used, "%s%s", i ? ", " : "", sets[i].name);
    if (is_known(name))
        return shoal_fail(SHOAL_USAGE, "%s: '%s' needs instructions that this CPU does not have; use auto, %s", from,
                          name, runs);
    return shoal_fail(SHOAL_USAGE, "%s: '%s' is not one of auto, %s", from, name, runs);
}

int kernel_choose(const kernel_set **out, const char *name)
{
    const char *from = "--kernel";
    pthread_once(&once, build_sets);
    if (!name || !strcmp(name, "auto")) {
        name = getenv("SHOAL_KERNEL");
        from = "environment variable SHOAL_KERNEL";
    }
    if (!name || !*name || !strcmp(name, "auto")) {
        *out = &sets[count_sets - 1];
        return SHOAL_OK;
    }
    for (int i = 0; i < count_sets; i++)
        if (!strcmp(name, sets[i].name)) {
            *out = &sets[i];
            return SHOAL_OK;
        }
    return fail_to_choose(from, name);
}
