/* Centres: moved to the means of their rows, and packed as fp16 for scores, greatest norm first. */
#ifndef SHOAL_CUDA_CENTRES_CUH
#define SHOAL_CUDA_CENTRES_CUH

#include "rows.cuh"

enum { CHUNK = 1024 }; /* centres that a pass of the filter looks at */

/* What becomes of rounds, on the device: nothing that follows `halt` does anything. */
struct Progress {
    int halt, done, converged, differs;
    double change, objective;
};

/* Packed centres, by place.  A tile of places has one bound for all of them. */
struct Centres {
    const double *values; /* k x columns, by index */
    int k, padded_k, columns, padded;
    __half *packed;
    float *bias; /* |gamma|^2 / 2; +infinity behind the last */
    int *id, *place;
    unsigned *residual, *norm; /* of tiles, as bits: the greatest |gamma - copy|, and |gamma| or |copy| */
    int *far;                  /* some centre is too far away for scores: the definition decides all */
    int tile;
};

/* One sum over a block of 128 threads; thread 0 has it. */
__device__ __forceinline__ double add_block(double value, double *scratch)
{
    for (int o = 16; o; o /= 2)
        value += __shfl_xor_sync(~0u, value, o);
    __syncthreads();
    if ((threadIdx.x & 31) == 0)
        scratch[threadIdx.x >> 5] = value;
    __syncthreads();
    return scratch[0] + scratch[1] + scratch[2] + scratch[3];
}

__global__ void __launch_bounds__(128)
    measure_centres(const Progress *progress, Centres c, const double *origin, double scale, float *norm)
{
    __shared__ double scratch[4];
    double sum = 0;
    if (*(volatile const int *)&progress->halt)
        return;
    for (int k = threadIdx.x; k < c.columns; k += 128) {
        double g = (c.values[(long)blockIdx.x * c.columns + k] - origin[k]) * scale;
        sum += g * g;
    }
    sum = add_block(sum, scratch);
    if (threadIdx.x == 0)
        norm[blockIdx.x] = (float)sum;
}

__global__ void __launch_bounds__(128)
    pack_centres(const Progress *progress, Centres c, const double *origin, double scale, const float *norm)
{
    __shared__ double scratch[4];
    __shared__ int place;
    const int j = blockIdx.x;
    if (*(volatile const int *)&progress->halt)
        return;
    if (j >= c.k) {
        if (threadIdx.x == 0) {
            c.bias[j] = INFINITY;
            c.id[j] = 0;
        }
        for (int k = threadIdx.x; k < c.padded; k += 128)
            c.packed[(long)j * c.padded + k] = __float2half(0.f);
        return;
    }
    if (threadIdx.x == 0)
        place = 0;
    __syncthreads();
    const float mine = norm[j];
    int before = 0;
    for (int i = threadIdx.x; i < c.k; i += 128)
        before += norm[i] > mine || (!(norm[i] < mine) && i < j);
    for (int o = 16; o; o /= 2)
        before += __shfl_xor_sync(~0u, before, o);
    if ((threadIdx.x & 31) == 0)
        atomicAdd(&place, before);
    __syncthreads();
    const int at = place;
    double gamma = 0, off = 0, copy = 0;
    for (int k = threadIdx.x; k < c.padded; k += 128) {
        __half half = __float2half(0.f);
        if (k < c.columns) {
            double g = (c.values[(long)j * c.columns + k] - origin[k]) * scale;
            half = __float2half_rn((float)fmin(fmax(g, -65504.), 65504.));
            double f = (double)__half2float(half), d = g - f;
            gamma += g * g;
            off += d * d;
            copy += f * f;
        }
        c.packed[(long)at * c.padded + k] = half;
    }
    gamma = add_block(gamma, scratch);
    off = add_block(off, scratch);
    copy = add_block(copy, scratch);
    if (threadIdx.x == 0) {
        if (!(gamma < 0x1p100))
            *c.far = 1;
        c.bias[at] = (float)(gamma / 2);
        c.id[at] = j;
        c.place[j] = at;
        /* gamma itself has one rounding, of 2^-53 of it, which 2^-40 covers */
        float r = __double2float_ru(sqrt(off) * (1 + 0x1p-20) + 0x1p-40 * sqrt(gamma) + 0x1p-100),
              m = __double2float_ru(sqrt(fmax(gamma, copy)) * (1 + 0x1p-20) + 0x1p-100);
        atomicMax(c.residual + at / c.tile, __float_as_uint(r));
        atomicMax(c.norm + at / c.tile, __float_as_uint(m));
    }
}

/* ---- moving ------------------------------------------------------------------------------------------------------ */

struct Means {
    const u64 *sums;
    const int *rows;
    const i64 *weight; /* NULL when unweighted */
    const double *origin, *inverse;
    double weight_inverse, scale;
    double *centres, *moved, *gained;
    float *norm;
    int k, columns;
};

/* An empty cluster ends it before anything moves.  Up to so many clusters every block that moves one looks itself. */
enum { EMPTY_IN_MOVE = 4096 };

__device__ __forceinline__ bool is_empty(const Means &m, int j)
{
    return m.weight ? m.weight[j] <= 0 : m.rows[j] <= 0;
}

__global__ void __launch_bounds__(1024) find_empty(Progress *progress, Means m)
{
    for (int j = threadIdx.x; j < m.k; j += 1024)
        if (is_empty(m, j))
            progress->halt = 1;
}

/* lloyd.c's move_centre: the same operations in the same order, so the same bits.  Terms are computed side by side; two
 * threads add them up in the order of the columns. */
__global__ void __launch_bounds__(128) move_centres(Progress *progress, Means m)
{
    __shared__ double gain[128], square[128], scratch[4];
    const int j = blockIdx.x;
    double gained = 0, moved = 0, norm = 0;
    bool differs = false, empty = false;
    if (*(volatile const int *)&progress->halt)
        return;
    for (int i = threadIdx.x; m.k <= EMPTY_IN_MOVE && i < m.k; i += 128)
        empty |= is_empty(m, i);
    if (__syncthreads_or(empty)) {
        progress->halt = 1; /* all blocks come to the same */
        return;
    }
    const double weight = m.weight ? (double)m.weight[j] / m.weight_inverse : (double)m.rows[j];
    for (int k0 = 0; k0 < m.columns; k0 += 128) {
        const int k = k0 + threadIdx.x, count = min(m.columns - k0, 128);
        __syncthreads();
        if (k < m.columns) {
            const long at = (long)j * m.columns + k;
            double quantum = m.inverse[k] > 0 ? 1 / m.inverse[k] : 0, sum = (double)(i64)m.sums[at] * quantum;
            double old = m.centres[at], from = old - m.origin[k];
            gain[threadIdx.x] = weight * from * from - 2 * from * sum;
            double fresh = m.origin[k] + sum / weight;
            square[threadIdx.x] = (fresh - old) * (fresh - old);
            m.centres[at] = fresh;
            differs |= __double_as_longlong(fresh) != __double_as_longlong(old);
            double g = (fresh - m.origin[k]) * m.scale;
            norm += g * g;
        }
        __syncthreads();
        if (threadIdx.x == 0)
#pragma unroll 16
            for (int i = 0; i < count; i++)
                gained += gain[i];
        else if (threadIdx.x == 32)
#pragma unroll 16
            for (int i = 0; i < count; i++)
                moved += square[i];
    }
    if (differs)
        progress->differs = 1;
    if (threadIdx.x == 0)
        m.gained[j] = gained;
    if (threadIdx.x == 32)
        m.moved[j] = moved;
    norm = add_block(norm, scratch);
    if (threadIdx.x == 0)
        m.norm[j] = (float)norm;
}

/* The totals, in the order of the clusters, and whether this was the last round. */
__global__ void __launch_bounds__(1024) end_round(Progress *progress, Means m, double least)
{
    __shared__ double gain[1024], square[1024];
    double gained = 0, moved = 0;
    if (*(volatile const int *)&progress->halt)
        return;
    for (int j0 = 0; j0 < m.k; j0 += 1024) {
        const int j = j0 + threadIdx.x, count = min(m.k - j0, 1024);
        __syncthreads();
        gain[threadIdx.x] = j < m.k ? m.gained[j] : 0;
        square[threadIdx.x] = j < m.k ? m.moved[j] : 0;
        __syncthreads();
        if (threadIdx.x == 0)
#pragma unroll 16
            for (int i = 0; i < count; i++)
                gained += gain[i];
        else if (threadIdx.x == 32)
#pragma unroll 16
            for (int i = 0; i < count; i++)
                moved += square[i];
    }
    __syncthreads();
    if (threadIdx.x == 32)
        square[0] = moved;
    __syncthreads();
    if (threadIdx.x == 0) {
        moved = square[0];
        progress->objective = gained;
        progress->change = moved;
        progress->done++;
        progress->converged = !progress->differs || moved <= least;
        progress->differs = 0;
        if (progress->converged)
            progress->halt = 1;
    }
}

#endif
