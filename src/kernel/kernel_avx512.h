/* The words of kernel_float.h and kernel_bytes.h for AVX-512 F, BW, DQ and VL.  Only for the files that are compiled
 * with those instructions enabled; all is static, so that none of it is linked into code for other CPUs. */
#include <immintrin.h>
#include <stdint.h>
#include <string.h>

enum { LANES = 16 };

typedef __m512 vector;
typedef __m512i vector_index;
typedef __mmask16 vector_mask;

static inline vector v_zero(void)
{
    return _mm512_setzero_ps();
}

static inline vector v_load(const float *p)
{
    return _mm512_load_ps(p);
}

static inline vector v_load_any(const float *p)
{
    return _mm512_loadu_ps(p);
}

static inline vector v_load_part(const float *p, int count)
{
    return _mm512_maskz_loadu_ps((__mmask16)((1u << count) - 1), p);
}

/* The empty statement keeps the compiler from broadcasting again in each instruction that uses the value. */
static inline vector v_broadcast(const float *p)
{
    vector v = _mm512_set1_ps(*p);
    __asm__("" : "+v"(v));
    return v;
}

static inline vector_index v_broadcast_index(int32_t i)
{
    return _mm512_set1_epi32(i);
}

static inline void v_store(float *p, vector v)
{
    _mm512_store_ps(p, v);
}

static inline vector v_add(vector a, vector b)
{
    return _mm512_add_ps(a, b);
}

static inline float v_sum(vector v)
{
    return _mm512_reduce_add_ps(v);
}

static inline vector v_subtract(vector a, vector b)
{
    return _mm512_sub_ps(a, b);
}

static inline vector v_multiply(vector a, vector b)
{
    return _mm512_mul_ps(a, b);
}

static inline vector v_multiply_add(vector a, vector b, vector c)
{
    return _mm512_fmadd_ps(a, b, c);
}

static inline vector v_subtract_product(vector a, vector b, vector from)
{
    return _mm512_fnmadd_ps(a, b, from);
}

static inline vector v_min(vector a, vector b)
{
    return _mm512_min_ps(a, b);
}

static inline vector v_max(vector a, vector b)
{
    return _mm512_max_ps(a, b);
}

static inline vector_mask v_below(vector a, vector b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ);
}

static inline vector_mask v_at_most(vector a, vector b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ);
}

static inline vector v_pick(vector_mask mask, vector yes, vector no)
{
    return _mm512_mask_mov_ps(no, mask, yes);
}

static inline vector_index v_pick_index(vector_mask mask, vector_index yes, vector_index no)
{
    return _mm512_mask_mov_epi32(no, mask, yes);
}

static inline unsigned v_bits(vector_mask mask)
{
    return mask;
}

static inline vector v_absolute(vector v)
{
    return _mm512_abs_ps(v);
}

static inline vector v_round(vector v)
{
    return _mm512_roundscale_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

static inline void v_store_bytes(uint8_t *p, vector integers)
{
    _mm_storeu_si128((__m128i *)p, _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(integers)));
}

static inline vector_index v_load_index(const void *p)
{
    return _mm512_load_si512(p);
}

/* Four bytes to every lane. */
static inline vector_index v_broadcast_bytes(const uint8_t *p)
{
    int32_t four;
    memcpy(&four, p, sizeof four);
    vector_index v = _mm512_set1_epi32(four);
    __asm__("" : "+v"(v));
    return v;
}

static inline vector_index v_zero_index(void)
{
    return _mm512_setzero_si512();
}

/* a - b as float32 */
static inline vector v_difference(vector_index a, vector_index b)
{
    return _mm512_cvtepi32_ps(_mm512_sub_epi32(a, b));
}
