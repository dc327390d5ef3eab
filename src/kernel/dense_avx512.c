/* The dense tables for CPUs with AVX-512 F, BW, DQ and VL.  Compiled with those instructions enabled: nothing here may
 * be called, or be linked into anything that is called, before kernel.c has asked the CPU. */
#include <immintrin.h>

#include "kernel/dense.h"

#define DENSE_DOUBLE 0
#include "kernel/dense_elements.h"
#undef DENSE_DOUBLE
#define DENSE_DOUBLE 1
#include "kernel/dense_elements.h"
#undef DENSE_DOUBLE

#include "kernel/dense_tiles.h"

enum { WIDE = 7, ROWS_1 = 14, ROWS_2 = 14, ROWS_3 = 8, ROWS_4 = 6, ROWS_WIDE = 3, NARROW_GROUPS = 2 };
enum { DIRECT_ROWS = 64, DIRECT_PARTS = 1, DEPTH_MOST = 200, DEPTH_MOST_ACROSS = 136, AHEAD = 8 };

/* ---- float ------------------------------------------------------------------------------------------------------- */

typedef __m512 vector32;
#define REAL float
#define P(name) name##32
#define LANES 16
#define QUAD 4
#define V_LOAD(p) _mm512_loadu_ps(p)
#define V_STORE(p, v) _mm512_storeu_ps(p, v)
#define V_BROADCAST(p) _mm512_set1_ps(*(p))
#define V_FMA(a, b, c) _mm512_fmadd_ps(a, b, c)
#define V_LOAD_LAST(p, n) V_LOAD_PART(p, n)
#define V_LOAD_PART(p, n) _mm512_maskz_loadu_ps((__mmask16)(0xffffU >> (16 - (n))), p)
#define V_STORE_PART(p, v, n) _mm512_mask_storeu_ps(p, (__mmask16)(0xffffU >> (16 - (n))), v)

/* Four values of the rows i, i + 4, i + 8 and i + 12. */
ALWAYS_INLINE __m512 four_rows32(const float *a, int64_t a_row)
{
    __m512 v = _mm512_castps128_ps512(_mm_loadu_ps(a));
    v = _mm512_insertf32x4(v, _mm_loadu_ps(a + 4 * a_row), 1);
    v = _mm512_insertf32x4(v, _mm_loadu_ps(a + 8 * a_row), 2);
    return _mm512_insertf32x4(v, _mm_loadu_ps(a + 12 * a_row), 3);
}

ALWAYS_INLINE void load_columns32(__m512 out[4], const float *a, int64_t a_row)
{
    __m512 r0 = four_rows32(a, a_row), r1 = four_rows32(a + a_row, a_row);
    __m512 r2 = four_rows32(a + 2 * a_row, a_row), r3 = four_rows32(a + 3 * a_row, a_row);
    __m512d low01 = _mm512_castps_pd(_mm512_unpacklo_ps(r0, r1)), high01 = _mm512_castps_pd(_mm512_unpackhi_ps(r0, r1));
    __m512d low23 = _mm512_castps_pd(_mm512_unpacklo_ps(r2, r3)), high23 = _mm512_castps_pd(_mm512_unpackhi_ps(r2, r3));
    out[0] = _mm512_castpd_ps(_mm512_unpacklo_pd(low01, low23));
    out[1] = _mm512_castpd_ps(_mm512_unpackhi_pd(low01, low23));
    out[2] = _mm512_castpd_ps(_mm512_unpacklo_pd(high01, high23));
    out[3] = _mm512_castpd_ps(_mm512_unpackhi_pd(high01, high23));
}

#define V_ADD(a, b) _mm512_add_ps(a, b)
#define V_MULTIPLY(a, b) _mm512_mul_ps(a, b)
#define V_ZERO _mm512_setzero_ps()
#define V_MASK __mmask16
#define V_OVER(a, b) (_mm512_cmp_ps_mask(a, b, _CMP_GT_OQ) | _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q))
#define V_SAME(a, b) _mm512_cmpeq_epi32_mask(_mm512_castps_si512(a), _mm512_castps_si512(b))
#define V_PICK(mask, a, b) _mm512_mask_mov_ps(b, mask, a)
#define V_INDEX(i) _mm512_castsi512_ps(_mm512_set1_epi32(i))

typedef __m512i integers32;
#define I_LOAD(p) _mm512_loadu_si512(p)
#define I_ADD(a, b) _mm512_add_epi32(a, b)
#define I_BROADCAST(i) _mm512_set1_epi32(i)
#define V_UNLIKE(a, b) _mm512_cmp_ps_mask(a, b, _CMP_NEQ_UQ)
#define V_BOTH(a, b) ((__mmask16)((a) & (b)))
#define V_LOOK_UP(table, v) look_up_four(table, v)
#define V_KEEP(values, places, v, p, mask) keep_lanes(values, places, v, p, mask)

ALWAYS_INLINE __m512i look_up_four(const int32_t table[4], __m512 v)
{
    const __m512i all = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(const void *)table));
    return _mm512_permutexvar_epi32(_mm512_cvttps_epi32(v), all);
}

ALWAYS_INLINE int keep_lanes(float *values, int32_t *places, __m512 v, __m512i p, __mmask16 mask)
{
    _mm512_storeu_ps(values, _mm512_maskz_compress_ps(mask, v));
    _mm512_storeu_si512(places, _mm512_maskz_compress_epi32(mask, p));
    return __builtin_popcount(mask);
}

typedef __m256 few32;
#define FEW_LANES 8
#define N_ZERO _mm256_setzero_ps()
#define N_ADD(a, b) _mm256_add_ps(a, b)
#define N_LOAD(p) _mm256_loadu_ps(p)
#define N_STORE(p, v) _mm256_storeu_ps(p, v)
#define N_BROADCAST(p) _mm256_broadcast_ss(p)
#define N_FMA(a, b, c) _mm256_fmadd_ps(a, b, c)

enum { CONV_OUTPUTS = 6, BACK_OUTPUTS = 4, BACK_TAPS = 5, KEPT_CHAINS = 20 };
#include "kernel/convolution_loops.h"

typedef __m512d wide64;
enum { WIDE_LANES = 8, POINT_TAPS = 6, POINT_OUTPUTS = 4 };
#define W_LOAD(p) _mm512_cvtps_pd(_mm256_loadu_ps(p))
#include "kernel/map_loops.h"

#include "kernel/dense_product.h"

/* ---- double ------------------------------------------------------------------------------------------------------ */

typedef __m512d vector64;
#define REAL double
#define P(name) name##64
#define LANES 8
#define QUAD 2
#define V_LOAD(p) _mm512_loadu_pd(p)
#define V_STORE(p, v) _mm512_storeu_pd(p, v)
#define V_BROADCAST(p) _mm512_set1_pd(*(p))
#define V_FMA(a, b, c) _mm512_fmadd_pd(a, b, c)
#define V_LOAD_LAST(p, n) V_LOAD_PART(p, n)
#define V_LOAD_PART(p, n) _mm512_maskz_loadu_pd((__mmask8)(0xffU >> (8 - (n))), p)
#define V_STORE_PART(p, v, n) _mm512_mask_storeu_pd(p, (__mmask8)(0xffU >> (8 - (n))), v)

/* Two values of the rows i, i + 2, i + 4 and i + 6. */
ALWAYS_INLINE __m512d four_rows64(const double *a, int64_t a_row)
{
    __m512d v = _mm512_castpd128_pd512(_mm_loadu_pd(a));
    v = _mm512_insertf64x2(v, _mm_loadu_pd(a + 2 * a_row), 1);
    v = _mm512_insertf64x2(v, _mm_loadu_pd(a + 4 * a_row), 2);
    return _mm512_insertf64x2(v, _mm_loadu_pd(a + 6 * a_row), 3);
}

ALWAYS_INLINE void load_columns64(__m512d out[2], const double *a, int64_t a_row)
{
    __m512d even = four_rows64(a, a_row), odd = four_rows64(a + a_row, a_row);
    out[0] = _mm512_unpacklo_pd(even, odd);
    out[1] = _mm512_unpackhi_pd(even, odd);
}

#include "kernel/dense_product.h"

void kernel_dense_avx512(kernel_dense32 *dense32, kernel_dense64 *dense64, kernel_convolution *convolution)
{
    fill_convolution(convolution);
    fill_maps(convolution);
    fill_elements32(dense32);
    fill_elements64(dense64);
    dense32->product = product32;
    dense64->product = product64;
}
