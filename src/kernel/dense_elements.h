/* The entries of a dense table that go value by value, in plain C that each set's file compiles for its own CPU.
 *
 * Included twice by each dense_<set>.c, once with DENSE_DOUBLE defined as 0 and once as 1.  Everything is static: code
 * built for one CPU must not be linked into another's.  The loops are written so that compilers turn them into vectors:
 * no calls, no branches, and comparisons that let NaN through.
 *
 * The chains that dense_entries.h defines are spelled out here.  FUSE(a, b, c) is fma for float; for double it is a
 * product and a sum, each rounded, because the portable set runs on the baseline CPU, where each fma is a call. */
#include <stdint.h>
#include <string.h>

#include "kernel/kernel.h"
#include "kernel/nearest_integer.h"

#if DENSE_DOUBLE
#define REAL double
#define BITS uint64_t
#define N(name) name##64
#define C(float_constant, double_constant) double_constant
#define FMA(a, b, c) __builtin_fma(a, b, c)
#define FUSE(a, b, c) ((a) * (b) + (c))
#define ABSOLUTE(x) __builtin_fabs(x)
#define SIGNED_AS(x, sign) __builtin_copysign(x, sign)
#else
#define REAL float
#define BITS uint32_t
#define N(name) name##32
#define C(float_constant, double_constant) float_constant
#define FMA(a, b, c) __builtin_fmaf(a, b, c)
#define FUSE(a, b, c) __builtin_fmaf(a, b, c)
#define ABSOLUTE(x) __builtin_fabsf(x)
#define SIGNED_AS(x, sign) __builtin_copysignf(x, sign)
#endif

/* ---- exp, logistic, tanh ----------------------------------------------------------------------------------------- */

static inline REAL N(real_of)(BITS bits)
{
    REAL x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline BITS N(bits_of)(REAL x)
{
    BITS bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* x = n ln 2 + r with |r| < 0.3467.  Returns exp(r) - 1 and n + BIAS, the exponent field of 2^n.  n ln2_high is
 * exact.  Adding 1.5 times 2^(digits - 1) leaves no bits for a fraction, so that the addition itself rounds. */
static inline REAL N(exp_reduced)(REAL x, BITS *field)
{
    const REAL log2_e = C(0x1.715476p+0F, 0x1.71547652b82fep+0), large = C(0x1.8p23F, 0x1.8p52);
    const REAL ln2_high = C(0x1.62e4p-1F, 0x1.62e42feep-1), ln2_low = C(0x1.7f7d1cp-20F, 0x1.a39ef35793c76p-33);
    REAL shifted = FUSE(x, log2_e, large), n = shifted - large;
    REAL r = FUSE(n, -ln2_high, x);
    r = FUSE(n, -ln2_low, r);
    REAL r2 = r * r;
#if DENSE_DOUBLE
    REAL r4 = r2 * r2;
    REAL q01 = FUSE(r, 0x1.5555555555557p-3, 0x1p-1);
    REAL q23 = FUSE(r, 0x1.11111111100d3p-7, 0x1.5555555555556p-5);
    REAL q45 = FUSE(r, 0x1.a01a01abeccc3p-13, 0x1.6c16c16c162cfp-10);
    REAL q67 = FUSE(r, 0x1.71de02225a2f3p-19, 0x1.a01a01a6db488p-16);
    REAL q89 = FUSE(r, 0x1.af4e092e1705bp-26, 0x1.27e4db5bb725ap-22);
    REAL q03 = FUSE(r2, q23, q01);
    REAL q47 = FUSE(r2, q67, q45);
    REAL q8a = FUSE(r2, 0x1.1f7315649f2d7p-29, q89);
    REAL q4a = FUSE(r4, q8a, q47);
    REAL q = FUSE(r4, q4a, q03);
#else
    REAL q01 = FUSE(r, 0x1.5554dcp-3F, 0x1p-1F);
    REAL q23 = FUSE(r, 0x1.120b9p-7F, 0x1.55551ap-5F);
    REAL q24 = FUSE(r2, 0x1.6d112cp-10F, q23);
    REAL q = FUSE(r2, q24, q01);
#endif
    *field = N(bits_of)(shifted) - N(bits_of)(large) + C(127U, 1023U);
    return FUSE(r2, q, r);
}

enum { N(MANTISSA) = C(23, 52), N(BIAS) = C(127, 1023) };

/* Below this exp is 0; above the negative of C(89, 710) it is infinite. */
static inline REAL N(at_least)(REAL x, REAL least)
{
    return x < least ? least : x;
}

/* exp(x) for x from C(-104, -746) to C(89, 710).  2^n may be beyond the range where exp(x) is not, hence in two
 * factors. */
static inline REAL N(exp_within)(REAL x)
{
    BITS field;
    REAL rest = N(exp_reduced)(x, &field);
    BITS first = (field + N(BIAS)) >> 1, second = field + N(BIAS) - first;
    REAL scaled = (1 + rest) * N(real_of)(first << N(MANTISSA));
    return scaled * N(real_of)(second << N(MANTISSA));
}

static inline REAL N(exp_of)(REAL x)
{
    const REAL most = C(89, 710);
    x = x > most ? most : x;
    return N(exp_within)(N(at_least)(x, C(-104, -746)));
}

static inline REAL N(logistic_of)(REAL z)
{
    REAL e = N(exp_within)(N(at_least)(-ABSOLUTE(z), C(-104, -746)));
    return (z < 0 ? e : 1) / (1 + e);
}

/* With e = exp(-2|z|) - 1, tanh |z| is -e / (2 + e).  e = 2^n (exp(r) - 1) + (2^n - 1) keeps its digits near 0, where n
 * is. */
static inline REAL N(tanh_of)(REAL z)
{
    BITS field;
    REAL rest = N(exp_reduced)(N(at_least)(-2 * ABSOLUTE(z), -64), &field);
    REAL scale = N(real_of)(field << N(MANTISSA));
    REAL e = FUSE(scale, rest, scale - 1);
    return SIGNED_AS(e / (2 + e), z);
}

static void N(exp_all)(REAL *x, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        x[i] = N(exp_of)(x[i]);
}

/* ---- activations ------------------------------------------------------------------------------------------------- */

static inline REAL N(slope_logistic)(REAL y)
{
    return y * (1 - y);
}

static inline REAL N(slope_tanh)(REAL y)
{
    return (1 - y) * (1 + y);
}

static inline REAL N(slope_relu)(REAL y)
{
    return y > 0 ? 1 : 0;
}

static inline REAL N(slope_linear)(REAL y)
{
    (void)y;
    return 1;
}

static void N(activate)(REAL *z, kernel_activation f, int64_t count)
{
    switch (f) {
    case KERNEL_LINEAR: break;
    case KERNEL_LOGISTIC:
        for (int64_t i = 0; i < count; i++)
            z[i] = N(logistic_of)(z[i]);
        break;
    case KERNEL_TANH:
        for (int64_t i = 0; i < count; i++)
            z[i] = N(tanh_of)(z[i]);
        break;
    case KERNEL_RELU:
        for (int64_t i = 0; i < count; i++)
            z[i] = z[i] < 0 ? 0 : z[i];
        break;
    }
}

static void N(slope)(REAL *restrict out, const REAL *restrict y, kernel_activation f, int64_t count)
{
    switch (f) {
    case KERNEL_LINEAR:
        for (int64_t i = 0; i < count; i++)
            out[i] = 1;
        break;
    case KERNEL_LOGISTIC:
        for (int64_t i = 0; i < count; i++)
            out[i] = N(slope_logistic)(y[i]);
        break;
    case KERNEL_TANH:
        for (int64_t i = 0; i < count; i++)
            out[i] = N(slope_tanh)(y[i]);
        break;
    case KERNEL_RELU:
        for (int64_t i = 0; i < count; i++)
            out[i] = N(slope_relu)(y[i]);
        break;
    }
}

static void N(multiply)(REAL *restrict x, const REAL *restrict y, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        x[i] *= y[i];
}

/* A difference of floats has a square that float64 holds, so its fma needs no instruction of that name. */
#if DENSE_DOUBLE
#define ADD_SQUARE(d, sum) __builtin_fma(d, d, sum)
#else
#define ADD_SQUARE(d, sum) ((double)(d) * (double)(d) + (sum))
#endif
#define MISS(f)                                                                                                        \
    static void N(miss_##f)(REAL *restrict y, const REAL *restrict target, double *restrict lanes, int64_t count)      \
    {                                                                                                                  \
        int64_t i = 0;                                                                                                 \
        for (; i + KERNEL_LANES <= count; i += KERNEL_LANES)                                                           \
            for (int lane = 0; lane < KERNEL_LANES; lane++) {                                                          \
                REAL value = y[i + lane], d = value - target[i + lane];                                                \
                y[i + lane] = d * N(slope_##f)(value);                                                                 \
                lanes[lane] = ADD_SQUARE(d, lanes[lane]);                                                              \
            }                                                                                                          \
        for (int lane = 0; i < count; i++, lane++) {                                                                   \
            REAL value = y[i], d = value - target[i];                                                                  \
            y[i] = d * N(slope_##f)(value);                                                                            \
            lanes[lane] = ADD_SQUARE(d, lanes[lane]);                                                                  \
        }                                                                                                              \
    }

MISS(linear)
MISS(logistic)
MISS(tanh)
MISS(relu)
#undef MISS
#undef ADD_SQUARE

static void N(miss)(REAL *y, const REAL *target, kernel_activation f, double lanes[KERNEL_LANES], int64_t count)
{
    static void (*const miss[])(REAL *restrict, const REAL *restrict, double *restrict, int64_t) = {
        [KERNEL_LINEAR] = N(miss_linear),
        [KERNEL_LOGISTIC] = N(miss_logistic),
        [KERNEL_TANH] = N(miss_tanh),
        [KERNEL_RELU] = N(miss_relu),
    };
    miss[f](y, target, lanes, count);
}

/* ---- conversions and sums ---------------------------------------------------------------------------------------- */

#define CONVERT(type)                                                                                                  \
    static void N(convert_##type)(REAL *restrict out, const void *values, REAL scale, REAL shift, int64_t count)       \
    {                                                                                                                  \
        const type *restrict x = values;                                                                               \
        if (scale == 1 && shift == 0)                                                                                  \
            for (int64_t i = 0; i < count; i++)                                                                        \
                out[i] = (REAL)x[i];                                                                                   \
        else                                                                                                           \
            for (int64_t i = 0; i < count; i++)                                                                        \
                out[i] = FMA((REAL)x[i], scale, shift);                                                                \
    }

CONVERT(float)
CONVERT(double)
CONVERT(int8_t)
CONVERT(int16_t)
CONVERT(int32_t)
CONVERT(int64_t)
CONVERT(uint8_t)
CONVERT(uint16_t)
CONVERT(uint32_t)
CONVERT(uint64_t)
#undef CONVERT

static void N(convert)(REAL *out, const void *values, shoal_type type, REAL scale, REAL shift, int64_t count)
{
    static void (*const convert[SHOAL_TYPES])(REAL *restrict, const void *, REAL, REAL, int64_t) = {
        [SHOAL_FLOAT32] = N(convert_float),   [SHOAL_FLOAT64] = N(convert_double),
        [SHOAL_INT8] = N(convert_int8_t),     [SHOAL_INT16] = N(convert_int16_t),
        [SHOAL_INT32] = N(convert_int32_t),   [SHOAL_INT64] = N(convert_int64_t),
        [SHOAL_UINT8] = N(convert_uint8_t),   [SHOAL_UINT16] = N(convert_uint16_t),
        [SHOAL_UINT32] = N(convert_uint32_t), [SHOAL_UINT64] = N(convert_uint64_t),
        [SHOAL_BOOL] = N(convert_uint8_t),
    };
    convert[type](out, values, scale, shift, count);
}

/* Four rows at a time, since the sums are fetched and stored each time. */
static void N(add_rows)(REAL *restrict sum, const REAL *restrict v, int64_t row, int64_t rows, int64_t columns)
{
    int64_t i = 0;
    for (; i + 4 <= rows; i += 4) {
        const REAL *restrict v0 = v + i * row, *restrict v1 = v0 + row, *restrict v2 = v1 + row,
                             *restrict v3 = v2 + row;
        for (int64_t j = 0; j < columns; j++)
            sum[j] = (((sum[j] + v0[j]) + v1[j]) + v2[j]) + v3[j];
    }
    for (; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            sum[j] += v[i * row + j];
}

static void N(quantise)(int64_t *restrict sum, const REAL *restrict v, double inverse, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        sum[i] = base_add_wrapping(sum[i], nearest_integer((double)v[i] * inverse));
}

/* Without their sign, numbers are ordered as their bits are, infinity above them and NaN above that. */
static double N(greatest)(const REAL *v, int64_t count)
{
    const BITS sign = (BITS)1 << (8 * sizeof(BITS) - 1), infinite = N(bits_of)(C(__builtin_inff(), __builtin_inf()));
    C(int32_t, int64_t) most = 0;
    for (int64_t i = 0; i < count; i++) {
        C(int32_t, int64_t) bits = (C(int32_t, int64_t))(N(bits_of)(v[i]) & ~sign);
        most = bits > most ? bits : most;
    }
    return N(real_of)((BITS)most < infinite ? (BITS)most : infinite);
}

static void N(fill_elements)(N(kernel_dense) * dense)
{
    dense->convert = N(convert);
    dense->activate = N(activate);
    dense->slope = N(slope);
    dense->multiply = N(multiply);
    dense->miss = N(miss);
    dense->add_rows = N(add_rows);
    dense->quantise = N(quantise);
    dense->greatest = N(greatest);
    dense->exp = N(exp_all);
}

#undef REAL
#undef BITS
#undef N
#undef C
#undef FMA
#undef FUSE
#undef ABSOLUTE
#undef SIGNED_AS
