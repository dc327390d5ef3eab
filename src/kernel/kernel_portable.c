/* The kernel set that runs everywhere: vectors of four float32 in GNU C, which every CPU has or the compiler imitates.
 * There is no fused multiply-add to count on, and bytes do not pay. */
#include <stdint.h>
#include <string.h>

enum { LANES = 4, TILE_ROWS = 4, TILE_VECTORS = 2, FEW_VECTORS = 2, FEW_CENTRES = 4 };
#define DOUBLE_LANES 2

typedef float vector __attribute__((vector_size(16)));
typedef int32_t vector_index __attribute__((vector_size(16)));
typedef vector_index vector_mask;

static inline vector v_zero(void)
{
    return (vector){0, 0, 0, 0};
}

static inline vector v_load(const float *p)
{
    return *(const vector *)p;
}

static inline vector v_load_any(const float *p)
{
    vector v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline vector v_load_part(const float *p, int count)
{
    vector v = v_zero();
    memcpy(&v, p, (size_t)count * sizeof *p);
    return v;
}

static inline vector v_broadcast(const float *p)
{
    return (vector){*p, *p, *p, *p};
}

static inline vector_index v_broadcast_index(int32_t i)
{
    return (vector_index){i, i, i, i};
}

static inline void v_store(float *p, vector v)
{
    *(vector *)p = v;
}

static inline vector v_add(vector a, vector b)
{
    return a + b;
}

static inline float v_sum(vector v)
{
    return (v[0] + v[2]) + (v[1] + v[3]);
}

static inline vector v_subtract(vector a, vector b)
{
    return a - b;
}

static inline vector v_multiply_add(vector a, vector b, vector c)
{
    return a * b + c;
}

static inline vector v_subtract_product(vector a, vector b, vector from)
{
    return from - a * b;
}

static inline vector_mask v_below(vector a, vector b)
{
    return a < b;
}

static inline vector_mask v_at_most(vector a, vector b)
{
    return a <= b;
}

static inline vector_index v_pick_index(vector_mask mask, vector_index yes, vector_index no)
{
    return (yes & mask) | (no & ~mask);
}

static inline vector v_pick(vector_mask mask, vector yes, vector no)
{
    return (vector)v_pick_index(mask, (vector_index)yes, (vector_index)no);
}

static inline vector v_min(vector a, vector b)
{
    return v_pick(a < b, a, b);
}

static inline vector v_max(vector a, vector b)
{
    return v_pick(a > b, a, b);
}

static inline unsigned v_bits(vector_mask mask)
{
    uint64_t half[2];
    memcpy(half, &mask, sizeof half);
    if (!(half[0] | half[1]))
        return 0;
    return (unsigned)((mask[0] & 1) | (mask[1] & 2) | (mask[2] & 4) | (mask[3] & 8));
}

#include "kernel/kernel_exact.h"
#include "kernel/kernel_float.h"

void kernel_fill_portable(kernel_set *set)
{
    fill_exact(set);
    fill_float(set);
}
