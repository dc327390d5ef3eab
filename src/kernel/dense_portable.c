/* The dense tables that run everywhere, and logarithms of single values.
 *
 * Where the CPU has no fused multiply-add, or the compiler may not count on it, each is a call of the C library: right,
 * and slow. */
#include "kernel/dense.h"

#define DENSE_DOUBLE 0
#include "kernel/dense_elements.h"
#undef DENSE_DOUBLE
#define DENSE_DOUBLE 1
#include "kernel/dense_elements.h"
#undef DENSE_DOUBLE

#define PRODUCT(name, type, fma)                                                                                       \
    static void name(type *restrict c, int64_t c_row, const type *restrict a, int64_t a_row, int64_t a_column,         \
                     const type *restrict b, int64_t b_row, int64_t rows, int64_t columns, int64_t depth)              \
    {                                                                                                                  \
        for (int64_t i = 0; i < rows; i++)                                                                             \
            for (int64_t t = 0; t < depth; t++) {                                                                      \
                const type factor = a[i * a_row + t * a_column];                                                       \
                const type *restrict from = b + t * b_row;                                                             \
                type *restrict to = c + i * c_row;                                                                     \
                for (int64_t j = 0; j < columns; j++)                                                                  \
                    to[j] = fma(factor, from[j], to[j]);                                                               \
            }                                                                                                          \
    }

PRODUCT(product32, float, __builtin_fmaf)
PRODUCT(product64, double, __builtin_fma)

void kernel_dense_portable(kernel_dense32 *dense32, kernel_dense64 *dense64)
{
    fill_elements32(dense32);
    fill_elements64(dense64);
    dense32->product = product32;
    dense64->product = product64;
}

/* ---- single values ----------------------------------------------------------------------------------------------- */

/* x = 2^k (1 + f) with 1 + f from sqrt(1/2) to sqrt(2), and s = f / (2 + f), so that log(1 + f) is
 * 2 artanh(s) = 2s + s R(s^2) = f - s (f - R), which begins with f as it is: near 1 nothing is lost. */
double kernel_log(double x)
{
    const double ln2_high = 0x1.62e42feep-1, ln2_low = 0x1.a39ef35793c76p-33, infinity = __builtin_inf();
    if (!(x > 0) || x == infinity)
        return x == 0 ? -infinity : x < 0 ? __builtin_nan("") : x;
    int64_t k = 0;
    if (x < 0x1p-1022) {
        x *= 0x1p54;
        k = -54;
    }
    /* The exponent's bits tick over where the mantissa reaches sqrt(2). */
    uint64_t above = bits_of64(x) - UINT64_C(0x3fe6a09e667f3bcd);
    k += (int64_t)above >> 52;
    double f = real_of64((above & UINT64_C(0xfffffffffffff)) + UINT64_C(0x3fe6a09e667f3bcd)) - 1;
    double s = f / (2 + f), z = s * s, w = z * z;
    double even = w * (0x1.99999999952b2p-2 + w * (0x1.c71c62debf86bp-3 + w * 0x1.39fe208c33457p-3));
    double odd =
        z * (0x1.5555555555558p-1 + w * (0x1.2492492df6947p-2 + w * (0x1.7462b69705382p-3 + w * 0x1.2b5b5fb2eac92p-3)));
    double rest = even + odd, half = 0.5 * f * f;
    return (double)k * ln2_high - ((half - (s * (half + rest) + (double)k * ln2_low)) - f);
}

/* What 1 + x rounds away is put back by the first term of the series. */
double kernel_log_one_plus(double x)
{
    double sum = 1 + x;
    return kernel_log(sum) + (x - (sum - 1)) / sum;
}
