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

void kernel_dense_avx2(kernel_dense32 *dense32, kernel_dense64 *dense64)
{
    fill_elements32(dense32);
    fill_elements64(dense64);
    dense32->product = product32;
    dense64->product = product64;
}
