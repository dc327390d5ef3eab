/* The kernel set for CPUs with AVX-512 F, BW, DQ and VL.  Compiled with those instructions enabled: nothing here may be
 * called, or be linked into anything that is called, before kernel.c has asked the CPU. */
#include "kernel/kernel_avx512.h"

enum { TILE_ROWS = 12, TILE_VECTORS = 2, FEW_VECTORS = 3, FEW_CENTRES = 8 };
#define DOUBLE_LANES 8
#define WIDEN_BYTES(bytes) _mm512_cvtepi32_pd(_mm256_cvtepu8_epi32(_mm_cvtsi64_si128((int64_t)(bytes))))
enum { BYTE_TILE_ROWS = 12, BYTE_TILE_VECTORS = 2, BYTE_ROW_EXCESS = 64, BYTE_ROW_MOST = 63, BYTE_CENTRE_MOST = 127 };

/* Products of pairs in int16, which 2 * 127 * 127 does not saturate, then pairs of pairs in int32.  The empty statement
 * keeps the compiler from putting off the additions until it has to spill. */
static inline vector_index v_add_dots(vector_index sums, vector_index rows, vector_index centres)
{
    __m512i pairs = _mm512_maddubs_epi16(rows, centres);
    sums = _mm512_add_epi32(sums, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)));
    __asm__("" : "+v"(sums));
    return sums;
}

#include "kernel/kernel_bytes.h"
#include "kernel/kernel_exact.h"
#include "kernel/kernel_float.h"

void kernel_fill_avx512(kernel_set *set)
{
    fill_exact(set);
    fill_float(set);
    fill_bytes(set);
}
