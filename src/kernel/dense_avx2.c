/* The dense tables for CPUs with AVX2 and FMA.  Compiled with those instructions enabled: nothing here may be called,
 * or be linked into anything that is called, before kernel.c has asked the CPU. */
#include <immintrin.h>

#include "kernel/dense.h"

#define DENSE_DOUBLE 0
#include "kernel/dense_elements.h"
#undef DENSE_DOUBLE
#define DENSE_DOUBLE 1
#include "kernel/dense_elements.h"
#undef DENSE_DOUBLE

#include "kernel/dense_tiles.h"

enum { WIDE = 8, ROWS_1 = 12, ROWS_2 = 6, ROWS_3 = 4, ROWS_4 = 3, ROWS_WIDE = 1, NARROW_GROUPS = 2 };
enum { DIRECT_ROWS = 32, DIRECT_PARTS = 0, DEPTH_MOST = 320, DEPTH_MOST_ACROSS = 256, AHEAD = 8 };

/* From 8 - n on, the first n of eight lanes are chosen; from 2 (4 - n) on, the first n of four. */
static const int32_t first_lanes[16] = {-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0};

/* ---- float ------------------------------------------------------------------------------------------------------- */

typedef __m256 vector32;
#define REAL float
#define P(name) name##32
#define LANES 8
#define QUAD 4
#define V_LOAD(p) _mm256_loadu_ps(p)
#define V_STORE(p, v) _mm256_storeu_ps(p, v)
#define V_BROADCAST(p) _mm256_broadcast_ss(p)
#define V_FMA(a, b, c) _mm256_fmadd_ps(a, b, c)
#define V_LOAD_LAST(p, n) V_LOAD(p)
#define V_LOAD_PART(p, n) load_part32(p, n)
#define V_STORE_PART(p, v, n) store_part32(p, v, n)

ALWAYS_INLINE __m256 load_part32(const float *p, int n)
{
    return n == 8 ? _mm256_loadu_ps(p)
                  : _mm256_maskload_ps(p, _mm256_loadu_si256((const __m256i *)(first_lanes + 8 - n)));
}

ALWAYS_INLINE void store_part32(float *p, __m256 v, int n)
{
    if (n == 8)
        _mm256_storeu_ps(p, v);
    else
        _mm256_maskstore_ps(p, _mm256_loadu_si256((const __m256i *)(first_lanes + 8 - n)), v);
}

/* Four values of the rows i and i + 4. */
ALWAYS_INLINE __m256 two_rows32(const float *a, int64_t a_row)
{
    return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(a)), _mm_loadu_ps(a + 4 * a_row), 1);
}

ALWAYS_INLINE void load_columns32(__m256 out[4], const float *a, int64_t a_row)
{
    __m256 r0 = two_rows32(a, a_row), r1 = two_rows32(a + a_row, a_row);
    __m256 r2 = two_rows32(a + 2 * a_row, a_row), r3 = two_rows32(a + 3 * a_row, a_row);
    __m256d low01 = _mm256_castps_pd(_mm256_unpacklo_ps(r0, r1)), high01 = _mm256_castps_pd(_mm256_unpackhi_ps(r0, r1));
    __m256d low23 = _mm256_castps_pd(_mm256_unpacklo_ps(r2, r3)), high23 = _mm256_castps_pd(_mm256_unpackhi_ps(r2, r3));
    out[0] = _mm256_castpd_ps(_mm256_unpacklo_pd(low01, low23));
    out[1] = _mm256_castpd_ps(_mm256_unpackhi_pd(low01, low23));
    out[2] = _mm256_castpd_ps(_mm256_unpacklo_pd(high01, high23));
    out[3] = _mm256_castpd_ps(_mm256_unpackhi_pd(high01, high23));
}

#define V_ADD(a, b) _mm256_add_ps(a, b)
#define V_MULTIPLY(a, b) _mm256_mul_ps(a, b)
#define V_ZERO _mm256_setzero_ps()
#define V_MASK __m256
#define V_OVER(a, b) _mm256_or_ps(_mm256_cmp_ps(a, b, _CMP_GT_OQ), _mm256_cmp_ps(a, a, _CMP_UNORD_Q))
#define V_SAME(a, b) _mm256_castsi256_ps(_mm256_cmpeq_epi32(_mm256_castps_si256(a), _mm256_castps_si256(b)))
#define V_PICK(mask, a, b) _mm256_blendv_ps(b, a, mask)
#define V_INDEX(i) _mm256_castsi256_ps(_mm256_set1_epi32(i))

typedef __m256i integers32;
#define I_LOAD(p) _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define I_ADD(a, b) _mm256_add_epi32(a, b)
#define I_BROADCAST(i) _mm256_set1_epi32(i)
#define V_UNLIKE(a, b) _mm256_cmp_ps(a, b, _CMP_NEQ_UQ)
#define V_BOTH(a, b) _mm256_and_ps(a, b)
#define V_LOOK_UP(table, v) look_up_four(table, v)
#define V_KEEP(values, places, v, p, mask) keep_lanes(values, places, v, p, mask)

ALWAYS_INLINE __m256i look_up_four(const int32_t table[4], __m256 v)
{
    const __m256i all = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)table));
    return _mm256_permutevar8x32_epi32(all, _mm256_cvttps_epi32(v));
}

/* Of each choice of four lanes, in which order it wants them. */
static const int32_t kept_lanes[16][4] = {
    {0, 0, 0, 0}, {0, 0, 0, 0}, {1, 0, 0, 0}, {0, 1, 0, 0}, {2, 0, 0, 0}, {0, 2, 0, 0}, {1, 2, 0, 0}, {0, 1, 2, 0},
    {3, 0, 0, 0}, {0, 3, 0, 0}, {1, 3, 0, 0}, {0, 1, 3, 0}, {2, 3, 0, 0}, {0, 2, 3, 0}, {1, 2, 3, 0}, {0, 1, 2, 3}};

ALWAYS_INLINE int keep_four(float *values, int32_t *places, __m128 v, __m128i p, int mask)
{
    const __m128i order = _mm_loadu_si128((const __m128i *)(const void *)kept_lanes[mask]);
    _mm_storeu_ps(values, _mm_permutevar_ps(v, order));
    _mm_storeu_ps((float *)(void *)places, _mm_permutevar_ps(_mm_castsi128_ps(p), order));
    return __builtin_popcount((unsigned)mask);
}

ALWAYS_INLINE int keep_lanes(float *values, int32_t *places, __m256 v, __m256i p, __m256 mask)
{
    const int which = _mm256_movemask_ps(mask);
    const int low = keep_four(values, places, _mm256_castps256_ps128(v), _mm256_castsi256_si128(p), which & 15);
    return low + keep_four(values + low, places + low, _mm256_extractf128_ps(v, 1), _mm256_extracti128_si256(p, 1),
                           which >> 4);
}

enum { CONV_OUTPUTS = 3, BACK_OUTPUTS = 3, BACK_TAPS = 4, KEPT_CHAINS = 12 };
#include "kernel/convolution_loops.h"

typedef __m256d wide64;
enum { WIDE_LANES = 4, POINT_TAPS = 4, POINT_OUTPUTS = 3 };
#define W_LOAD(p) _mm256_cvtps_pd(_mm_loadu_ps(p))
#include "kernel/map_loops.h"

#include "kernel/dense_product.h"

/* ---- double ------------------------------------------------------------------------------------------------------ */

typedef __m256d vector64;
#define REAL double
#define P(name) name##64
#define LANES 4
#define QUAD 2
#define V_LOAD(p) _mm256_loadu_pd(p)
#define V_STORE(p, v) _mm256_storeu_pd(p, v)
#define V_BROADCAST(p) _mm256_broadcast_sd(p)
#define V_FMA(a, b, c) _mm256_fmadd_pd(a, b, c)
#define V_LOAD_LAST(p, n) V_LOAD(p)
#define V_LOAD_PART(p, n) load_part64(p, n)
#define V_STORE_PART(p, v, n) store_part64(p, v, n)

ALWAYS_INLINE __m256d load_part64(const double *p, int n)
{
    return n == 4 ? _mm256_loadu_pd(p)
                  : _mm256_maskload_pd(p, _mm256_loadu_si256((const __m256i *)(first_lanes + 8 - 2 * n)));
}

ALWAYS_INLINE void store_part64(double *p, __m256d v, int n)
{
    if (n == 4)
        _mm256_storeu_pd(p, v);
    else
        _mm256_maskstore_pd(p, _mm256_loadu_si256((const __m256i *)(first_lanes + 8 - 2 * n)), v);
}

/* Two values of the rows i and i + 2. */
ALWAYS_INLINE __m256d two_rows64(const double *a, int64_t a_row)
{
    return _mm256_insertf128_pd(_mm256_castpd128_pd256(_mm_loadu_pd(a)), _mm_loadu_pd(a + 2 * a_row), 1);
}

ALWAYS_INLINE void load_columns64(__m256d out[2], const double *a, int64_t a_row)
{
    __m256d even = two_rows64(a, a_row), odd = two_rows64(a + a_row, a_row);
    out[0] = _mm256_unpacklo_pd(even, odd);
    out[1] = _mm256_unpackhi_pd(even, odd);
}

#include "kernel/dense_product.h"

void kernel_dense_avx2(kernel_dense32 *dense32, kernel_dense64 *dense64, kernel_convolution *convolution)
{
    fill_convolution(convolution);
    fill_maps(convolution);
    fill_elements32(dense32);
    fill_elements64(dense64);
    dense32->product = product32;
    dense64->product = product64;
}
