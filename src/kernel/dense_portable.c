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

#include "kernel/dense_tiles.h"

/* Four values at a time, which compilers make what the CPU has. */
typedef float vector32 __attribute__((vector_size(16)));
typedef int32_t integers32 __attribute__((vector_size(16)));
#define LANES 4
#define QUAD 4
#define V_LOAD(p) load_four(p)
#define V_STORE(p, v) store_four(p, v)
#define V_BROADCAST(p) ((vector32){*(p), *(p), *(p), *(p)})
#define V_FMA(a, b, c) fuse_four(a, b, c)
#define V_ADD(a, b) ((a) + (b))
#define V_MULTIPLY(a, b) ((a) * (b))
#define V_ZERO ((vector32){0, 0, 0, 0})
#define V_MASK integers32
#define V_OVER(a, b) (((a) > (b)) | ((a) != (a)))
#define V_SAME(a, b) ((integers32)(a) == (integers32)(b))
#define V_PICK(mask, a, b) ((vector32)(((mask) & (integers32)(a)) | (~(mask) & (integers32)(b))))
#define V_INDEX(i) ((vector32)(integers32){i, i, i, i})

ALWAYS_INLINE vector32 load_four(const float *p)
{
    vector32 v;
    memcpy(&v, p, sizeof v);
    return v;
}

ALWAYS_INLINE void store_four(float *p, vector32 v)
{
    memcpy(p, &v, sizeof v);
}

ALWAYS_INLINE vector32 fuse_four(vector32 a, vector32 b, vector32 c)
{
    for (int i = 0; i < 4; i++)
        c[i] = __builtin_fmaf(a[i], b[i], c[i]);
    return c;
}

ALWAYS_INLINE void load_columns32(vector32 out[4], const float *a, int64_t a_row)
{
    for (int k = 0; k < 4; k++)
        out[k] = (vector32){a[k], a[a_row + k], a[2 * a_row + k], a[3 * a_row + k]};
}

#define I_LOAD(p) load_four_integers(p)
#define I_ADD(a, b) ((a) + (b))
#define I_BROADCAST(i) ((integers32){i, i, i, i})
#define V_UNLIKE(a, b) ((integers32)((a) != (b)))
#define V_BOTH(a, b) ((a) & (b))
#define V_LOOK_UP(table, v)                                                                                            \
    ((integers32){(table)[(int)(v)[0] & 3], (table)[(int)(v)[1] & 3], (table)[(int)(v)[2] & 3],                        \
                  (table)[(int)(v)[3] & 3]})
#define V_KEEP(values, places, v, p, mask) keep_lanes(values, places, v, p, mask)

ALWAYS_INLINE integers32 load_four_integers(const int32_t *p)
{
    integers32 v;
    memcpy(&v, p, sizeof v);
    return v;
}

ALWAYS_INLINE int keep_lanes(float *values, int32_t *places, vector32 v, integers32 p, integers32 mask)
{
    int count = 0;
    for (int i = 0; i < 4; i++) {
        values[count] = v[i];
        places[count] = p[i];
        count += mask[i] != 0;
    }
    return count;
}

enum { CONV_OUTPUTS = 4, BACK_OUTPUTS = 3, BACK_TAPS = 4, KEPT_CHAINS = 8 };
#include "kernel/convolution_loops.h"

typedef double wide64 __attribute__((vector_size(16)));
enum { WIDE_LANES = 2, POINT_TAPS = 3, POINT_OUTPUTS = 3 };
#define W_LOAD(p) ((wide64){(double)(p)[0], (double)(p)[1]})
#include "kernel/map_loops.h"

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

void kernel_dense_portable(kernel_dense32 *dense32, kernel_dense64 *dense64, kernel_convolution *convolution)
{
    fill_convolution(convolution);
    fill_maps(convolution);
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
