/* The kernel set for CPUs with AVX2 and FMA.  Compiled with those instructions enabled: nothing here may be called, or
 * be linked into anything that is called, before kernel.c has asked the CPU. */
#include <immintrin.h>
#include <stdint.h>
#include <string.h>

enum { LANES = 8, TILE_ROWS = 6, TILE_VECTORS = 2, FEW_VECTORS = 2, FEW_CENTRES = 6 };
#define DOUBLE_LANES 4
#define WIDEN_BYTES(bytes) _mm256_cvtepi32_pd(_mm_cvtepu8_epi32(_mm_cvtsi32_si128((int32_t)(bytes))))
#define WIDEN(floats) _mm256_cvtps_pd(floats) /* gcc makes four instructions of the generic conversion */
enum { BYTE_TILE_ROWS = 6, BYTE_TILE_VECTORS = 2, BYTE_ROW_EXCESS = 64, BYTE_ROW_MOST = 63, BYTE_CENTRE_MOST = 127 };

typedef __m256 vector;
typedef __m256i vector_index;
typedef __m256 vector_mask;

static inline vector v_zero(void)
{
    return _mm256_setzero_ps();
}

static inline vector v_load(const float *p)
{
    return _mm256_load_ps(p);
}

static inline vector v_load_any(const float *p)
{
    return _mm256_loadu_ps(p);
}

static inline vector v_load_part(const float *p, int count)
{
    static const int32_t mask[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
    return _mm256_maskload_ps(p, _mm256_loadu_si256((const __m256i *)(mask + 8 - count)));
}

/* The empty statement keeps the compiler from broadcasting again in each instruction that uses the value. */
static inline vector v_broadcast(const float *p)
{
    vector v = _mm256_set1_ps(*p);
    __asm__("" : "+x"(v));
    return v;
}

static inline vector_index v_broadcast_index(int32_t i)
{
    return _mm256_set1_epi32(i);
}

static inline void v_store(float *p, vector v)
{
    _mm256_store_ps(p, v);
}

static inline vector v_add(vector a, vector b)
{
    return _mm256_add_ps(a, b);
}

static inline float v_sum(vector v)
{
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

static inline vector v_subtract(vector a, vector b)
{
    return _mm256_sub_ps(a, b);
}

static inline vector v_multiply(vector a, vector b)
{
    return _mm256_mul_ps(a, b);
}

static inline vector v_multiply_add(vector a, vector b, vector c)
{
    return _mm256_fmadd_ps(a, b, c);
}

static inline vector v_subtract_product(vector a, vector b, vector from)
{
    return _mm256_fnmadd_ps(a, b, from);
}

static inline vector v_min(vector a, vector b)
{
    return _mm256_min_ps(a, b);
}

static inline vector v_max(vector a, vector b)
{
    return _mm256_max_ps(a, b);
}

static inline vector_mask v_below(vector a, vector b)
{
    return _mm256_cmp_ps(a, b, _CMP_LT_OQ);
}

static inline vector_mask v_at_most(vector a, vector b)
{
    return _mm256_cmp_ps(a, b, _CMP_LE_OQ);
}

static inline vector v_pick(vector_mask mask, vector yes, vector no)
{
    return _mm256_blendv_ps(no, yes, mask);
}

static inline vector_index v_pick_index(vector_mask mask, vector_index yes, vector_index no)
{
    return _mm256_blendv_epi8(no, yes, _mm256_castps_si256(mask));
}

static inline unsigned v_bits(vector_mask mask)
{
    return (unsigned)_mm256_movemask_ps(mask);
}

static inline vector v_absolute(vector v)
{
    return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), v);
}

static inline vector v_round(vector v)
{
    return _mm256_round_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

static inline void v_store_bytes(uint8_t *p, vector integers)
{
    __m256i wide = _mm256_cvtps_epi32(integers);
    __m128i pairs = _mm_packs_epi32(_mm256_castsi256_si128(wide), _mm256_extracti128_si256(wide, 1));
    _mm_storel_epi64((__m128i *)p, _mm_packus_epi16(pairs, pairs));
}

static inline vector_index v_load_index(const void *p)
{
    return _mm256_load_si256(p);
}

/* Four bytes to every lane. */
static inline vector_index v_broadcast_bytes(const uint8_t *p)
{
    int32_t four;
    memcpy(&four, p, sizeof four);
    vector_index v = _mm256_set1_epi32(four);
    __asm__("" : "+x"(v));
    return v;
}

static inline vector_index v_zero_index(void)
{
    return _mm256_setzero_si256();
}

/* a - b as float32 */
static inline vector v_difference(vector_index a, vector_index b)
{
    return _mm256_cvtepi32_ps(_mm256_sub_epi32(a, b));
}

/* Products of pairs in int16, which 2 * 127 * 127 does not saturate, then pairs of pairs in int32.  The empty statement
 * keeps the compiler from putting off the additions until it has to spill. */
static inline vector_index v_add_dots(vector_index sums, vector_index rows, vector_index centres)
{
    __m256i pairs = _mm256_maddubs_epi16(rows, centres);
    sums = _mm256_add_epi32(sums, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
    __asm__("" : "+x"(sums));
    return sums;
}

#include "kernel/kernel_bytes.h"
#include "kernel/kernel_exact.h"
#include "kernel/kernel_float.h"

void kernel_fill_avx2(kernel_set *set)
{
    fill_exact(set);
    fill_float(set);
    fill_bytes(set);
}
