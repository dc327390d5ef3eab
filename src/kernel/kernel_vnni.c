/* The kernel set for CPUs with AVX-512 and VNNI, whose one instruction for four products of bytes makes score_bytes
 * four times as fast as float32.  Compiled with those instructions enabled; all else is avx512's. */
#include "kernel/kernel_avx512.h"

enum { BYTE_TILE_ROWS = 12, BYTE_TILE_VECTORS = 2, BYTE_ROW_EXCESS = 128, BYTE_ROW_MOST = 127, BYTE_CENTRE_MOST = 127 };

/* Written out because compilers copy the sum before the intrinsic and spill what they copied. */
static inline vector_index v_add_dots(vector_index sums, vector_index rows, vector_index centres)
{
    __asm__("vpdpbusd %2, %1, %0" : "+v"(sums) : "v"(rows), "v"(centres));
    return sums;
}

#include "kernel/kernel_bytes.h"

void kernel_fill_vnni(kernel_set *set)
{
    fill_bytes(set);
}
