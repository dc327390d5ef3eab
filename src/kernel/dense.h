/* Dense arithmetic: matrix products and what surrounds them in a learner that descends a gradient.
 *
 *     const kernel_dense32 *dense = &kernel->dense32;
 *     dense->product(c, ldc, a, lda, 1, b, ldb, rows, columns, depth);
 *
 * Everything here is *exact* in the sense of kernel.h: it gives the same bits in every kernel set, because each entry
 * is defined element by element as a fixed chain of IEEE operations, where fma() is one rounding.  A set is free to
 * block, to pack and to choose its tiles; it is not free to split a chain.  Sets without the instruction call the C
 * library's fma, slowly.
 *
 * There is a table for float and one for double with the same names, so that a learner is written once and compiled
 * twice. */
#ifndef KERNEL_DENSE_H
#define KERNEL_DENSE_H

#include <stdbool.h>
#include <stdint.h>
#include <shoal/data.h>

#include "kernel/convolution.h"

/* Activations between two layers: f, and its slope in terms of y = f(z). */
typedef enum kernel_activation {
    KERNEL_LINEAR,   /* y = z; slope 1 */
    KERNEL_LOGISTIC, /* y = 1 / (1 + exp(-z)); slope y * (1 - y) */
    KERNEL_TANH,     /* y = tanh(z); slope 1 - y * y */
    KERNEL_RELU      /* y = max(z, 0); slope 1 where y > 0, else 0 */
} kernel_activation;

enum { KERNEL_LANES = 16 }; /* sums of float64 are kept in this many lanes, by index mod 16 */

/* Adds lanes up in a fixed order: l += l + 8, then + 4, + 2, + 1. */
static inline double kernel_lanes_sum(const double lanes[KERNEL_LANES])
{
    double sum[KERNEL_LANES];
    for (int i = 0; i < KERNEL_LANES; i++)
        sum[i] = lanes[i];
    for (int half = KERNEL_LANES / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++)
            sum[i] += sum[i + half];
    return sum[0];
}

#define KERNEL_REAL float
#define KERNEL_DENSE kernel_dense32
#include "kernel/dense_entries.h"
#undef KERNEL_REAL
#undef KERNEL_DENSE

#define KERNEL_REAL double
#define KERNEL_DENSE kernel_dense64
#include "kernel/dense_entries.h"
#undef KERNEL_REAL
#undef KERNEL_DENSE

/* Fill the tables of a set; in dense_<name>.c. */
void kernel_dense_portable(kernel_dense32 *dense32, kernel_dense64 *dense64, kernel_convolution *convolution);
#if defined(__x86_64__)
void kernel_dense_avx2(kernel_dense32 *dense32, kernel_dense64 *dense64, kernel_convolution *convolution);
void kernel_dense_avx512(kernel_dense32 *dense32, kernel_dense64 *dense64, kernel_convolution *convolution);
#endif

/* log(x), and log(1 + x) for x >= 0, of one float64: for the few values outside the inner loops.  The C library's
 * differ between machines. */
double kernel_log(double x);
double kernel_log_one_plus(double x);

#endif
