/* The time, and how many multiply-adds a second a set's vectors could do. */
#ifndef TESTS_KERNEL_RATES_H
#define TESTS_KERNEL_RATES_H

#include <string.h>
#include <time.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "kernel/kernel.h"

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Multiply-adds in 12 independent chains: what the units can do when they wait for nothing.  GFLOP/s of one run. */
#define PEAK(name, target, vector, lanes, step)                                                                        \
    target static double name(void)                                                                                    \
    {                                                                                                                  \
        typedef float vector __attribute__((vector_size(4 * lanes)));                                                  \
        const vector factor = (vector){0} + 0.999f, term = (vector){0} + 0.001f;                                       \
        vector sum[12];                                                                                                \
        for (int c = 0; c < 12; c++) /* all different, lest they be computed once */                                   \
            sum[c] = term + (float)c;                                                                                  \
        double start = now();                                                                                          \
        for (int i = 0; i < 20000; i++)                                                                                \
            _Pragma("GCC unroll 12") for (int c = 0; c < 12; c++) step;                                                \
        double seconds = now() - start;                                                                                \
        for (int c = 0; c < 12; c++)                                                                                   \
            __asm__ volatile("" : : "x"(sum[c]));                                                                      \
        return 20000. * 12 * 2 * lanes / seconds * 1e-9;                                                               \
    }

PEAK(peak_portable, , four, 4, sum[c] = sum[c] * factor + term)
#if defined(__x86_64__)
PEAK(peak_avx2, __attribute__((target("avx2,fma"))), eight, 8,
     sum[c] = (eight)_mm256_fmadd_ps((__m256)sum[c], (__m256)factor, (__m256)term))
PEAK(peak_avx512, __attribute__((target("avx512f"))), sixteen, 16,
     sum[c] = (sixteen)_mm512_fmadd_ps((__m512)sum[c], (__m512)factor, (__m512)term))
#endif

static double peak(const kernel_set *set)
{
#if defined(__x86_64__)
    if (!strcmp(set->name, "avx2"))
        return peak_avx2();
    if (strcmp(set->name, "portable") != 0)
        return peak_avx512();
#endif
    (void)set;
    return peak_portable();
}

#endif
