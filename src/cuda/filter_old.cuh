/* The filter for any GPU from Ampere on: the products of warps, by the instructions that CUDA's own header has words
 * for.  It looks at all centres in one pass. */
#ifndef SHOAL_CUDA_FILTER_OLD_CUH
#define SHOAL_CUDA_FILTER_OLD_CUH

#include <mma.h>

#include "filter.cuh"

/* 64 columns of `count` rows, from device to shared memory. */
__device__ __forceinline__ void copy_block(__half *to, const __half *from, int count, int most, int padded)
{
    for (int i = threadIdx.x; i < count * 8; i += OLD_THREADS) {
        const int r = i / 8, part = i % 8;
        uint4 v = make_uint4(0, 0, 0, 0);
        if (r < most)
            v = *(const uint4 *)(from + (long)r * padded + part * 8);
        *(uint4 *)(to + r * OLD_HALVES + part * 8) = v;
    }
}

/* Two threads have a row, and half the tile's centres each. */
struct OldRow {
    float U, norm, residual;
    Candidate *list;
    int count;
    bool over;

    __device__ void add(float lower, int id)
    {
        if (count == OLD_LIST) {
            int left = 0;
            for (int i = 0; i < count; i++)
                if (list[i].lower <= U)
                    list[left++] = list[i];
            count = left;
        }
        over |= count == OLD_LIST;
        if (!over)
            list[count++] = Candidate{lower, id};
    }
};

__global__ void __launch_bounds__(OLD_THREADS) filter_old(const __half *rows, Filter p)
{
    using namespace nvcuda;
    extern __shared__ __align__(1024) unsigned char memory[];
    __half *a = (__half *)memory, *b = a + OLD_ROWS * OLD_HALVES;
    float *scores = (float *)(b + OLD_TILE * OLD_HALVES);
    Candidate *lists = (Candidate *)(scores + OLD_ROWS * OLD_SCORES);
    const int warp = threadIdx.x >> 5, mine = threadIdx.x >> 1, side = threadIdx.x & 1;
    if (*(volatile const int *)&p.progress->halt)
        return;
    const bool all = *(volatile const int *)p.c.far != 0;
    for (int t = blockIdx.x; t < p.tiles; t += gridDim.x) {
        const int row = t * OLD_ROWS + mine, seen = min(row, p.rows - 1);
        OldRow state = {INFINITY, p.norm[p.first + seen], p.residual[p.first + seen],
                        lists + threadIdx.x * OLD_LIST, 0, all};
        for (int tile = 0; tile < p.c.padded_k / OLD_TILE && !all; tile++) {
            wmma::fragment<wmma::accumulator, 16, 16, 16, float> acc[OLD_TILE / 16];
            for (int n = 0; n < OLD_TILE / 16; n++)
                wmma::fill_fragment(acc[n], 0.f);
            for (int k = 0; k < p.c.padded; k += 64) {
                __syncthreads();
                copy_block(a, rows + (p.first + (long)t * OLD_ROWS) * p.c.padded + k, OLD_ROWS,
                           p.rows - t * OLD_ROWS, p.c.padded);
                copy_block(b, p.c.packed + (long)tile * OLD_TILE * p.c.padded + k, OLD_TILE, OLD_TILE, p.c.padded);
                __syncthreads();
                for (int kk = 0; kk < 64; kk += 16) {
                    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> left;
                    wmma::load_matrix_sync(left, a + warp * 16 * OLD_HALVES + kk, OLD_HALVES);
#pragma unroll
                    for (int n = 0; n < OLD_TILE / 16; n++) {
                        wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> right;
                        wmma::load_matrix_sync(right, b + n * 16 * OLD_HALVES + kk, OLD_HALVES);
                        wmma::mma_sync(acc[n], left, right, acc[n]);
                    }
                }
            }
            for (int n = 0; n < OLD_TILE / 16; n++)
                wmma::store_matrix_sync(scores + warp * 16 * OLD_SCORES + n * 16, acc[n], OLD_SCORES,
                                        wmma::mem_row_major);
            __syncwarp();
            const Bound bound = bound_of(p, tile * OLD_TILE / p.c.tile);
            const float e = bound.of(state.norm, state.residual), *of_row = scores + mine * OLD_SCORES;
            const int place0 = tile * OLD_TILE;
            float least = INFINITY;
            for (int i = side; i < OLD_TILE; i += 2)
                least = fminf(least, p.c.bias[place0 + i] - of_row[i]);
            least = fminf(least, __shfl_xor_sync(~0u, least, 1));
            state.U = fminf(state.U, least + e);
            if (least <= state.U + e)
                for (int i = side; i < OLD_TILE; i += 2) {
                    const float score = p.c.bias[place0 + i] - of_row[i];
                    if (score <= state.U + e) {
                        const float lower = score - e;
                        state.add(lower - 0x1p-22f * fabsf(lower), p.c.id[place0 + i]);
                    }
                }
        }
        int left = 0;
        for (int i = 0; i < state.count; i++)
            if (state.list[i].lower <= state.U)
                state.list[left++] = state.list[i];
        const bool over = __shfl_xor_sync(~0u, (int)state.over, 1) || state.over;
        const int other = __shfl_xor_sync(~0u, left, 1), total = left + other;
        if (row < p.rows) {
            Candidate *to = p.candidates + (long)row * CANDIDATES + (side ? other : 0);
            for (int i = 0; i < left && !over; i++)
                to[i] = state.list[i];
            if (side == 0)
                p.out[row] = over || total == 0 ? ALL_LEFT : -total;
        }
        __syncthreads();
    }
}

#endif
