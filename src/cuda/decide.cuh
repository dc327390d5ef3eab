/* What the filter left is decided by the definition; rows whose label changed are listed. */
#ifndef SHOAL_CUDA_DECIDE_CUH
#define SHOAL_CUDA_DECIDE_CUH

#include "filter.cuh"

/* Counts of one block of rows, and of all. */
struct Counts {
    int some, all;
};

struct Change {
    int row, from, to;
};

struct Decision {
    const Progress *progress;
    const double *centres;
    int k, columns;
    long first;
    int rows;
    bool fresh, chunked;
    int *out;
    const float *upper;
    Candidate *candidates;
    int *label;                /* by row of the slice */
    Counts *counts;
    int *some, *all;           /* rows of the block that have candidates, or that all centres are left of */
    int *changes;              /* how many */
    Change *change;
    double *best;              /* of a row and 32 centres: the least ... */
    int *best_id;              /* ... and whose */
    int split;                 /* how many rows there is room for there */
    int *ended;                /* of each of those: how many of its blocks have ended; zero between calls */
};

/* A row has its label. */
__device__ __forceinline__ void settle(const Decision &d, int row, int label)
{
    const long at = d.first + row;
    const int from = d.label[at];
    if (!d.fresh && from == label)
        return;
    d.label[at] = label;
    if (!d.fresh)
        d.change[atomicAdd(d.changes, 1)] = Change{(int)at, from, label};
}

/* Candidates of earlier chunks, against what is known at the end. */
__device__ __forceinline__ int end_chunks(const Decision &d, int row, int code)
{
    Candidate *kept = d.candidates + (long)row * CANDIDATES;
    int left = 0;
    if (code == ALL_LEFT || code == 0)
        return ALL_LEFT;
    for (int i = 0; i < -code; i++)
        if (kept[i].lower <= d.upper[row])
            kept[left++] = kept[i];
    return left == 1 ? kept[0].id : left == 0 ? ALL_LEFT : -left;
}

/* Sorts rows into those with a label, some candidates, and all.  A block of threads asks for room once for each. */
__global__ void __launch_bounds__(256) collect(Decision d)
{
    enum { EACH = 4 };
    __shared__ int of_warp[8][3], base[3];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const unsigned before = (1u << lane) - 1;
    if (*(volatile const int *)&d.progress->halt)
        return;
    for (int i0 = blockIdx.x * 256 * EACH; i0 < d.rows; i0 += gridDim.x * 256 * EACH) {
        int code[EACH], old[EACH], at[EACH], kind[EACH], n[3] = {0, 0, 0};
#pragma unroll
        for (int u = 0; u < EACH; u++) {
            const int i = i0 + u * 256 + threadIdx.x;
            code[u] = i < d.rows ? d.out[i] : 0;
            old[u] = i < d.rows ? d.label[d.first + i] : 0;
            if (d.chunked && i < d.rows) {
                code[u] = end_chunks(d, i, code[u]);
                if (code[u] < 0)
                    d.out[i] = code[u];
            }
            kind[u] = i >= d.rows              ? 3
                      : code[u] == ALL_LEFT    ? 2
                      : code[u] < 0            ? 1
                      : d.fresh                ? 4
                      : code[u] == old[u]      ? 3
                                               : 0;
        }
#pragma unroll
        for (int u = 0; u < EACH; u++)
#pragma unroll
            for (int q = 0; q < 3; q++) {
                const unsigned those = __ballot_sync(~0u, kind[u] == q);
                if (kind[u] == q)
                    at[u] = n[q] + __popc(those & before);
                n[q] += __popc(those);
            }
        if (lane == 0)
            for (int q = 0; q < 3; q++)
                of_warp[warp][q] = n[q];
        __syncthreads();
        if (threadIdx.x < 3) {
            int sum = 0;
            for (int w = 0; w < 8; w++) {
                const int v = of_warp[w][threadIdx.x];
                of_warp[w][threadIdx.x] = sum;
                sum += v;
            }
            int *const counter = threadIdx.x == 0 ? d.changes : threadIdx.x == 1 ? &d.counts->some : &d.counts->all;
            base[threadIdx.x] = sum ? atomicAdd(counter, sum) : 0;
        }
        __syncthreads();
#pragma unroll
        for (int u = 0; u < EACH; u++) {
            const int i = i0 + u * 256 + threadIdx.x;
            if (kind[u] == 3)
                continue;
            const int to = kind[u] < 3 ? base[kind[u]] + of_warp[warp][kind[u]] + at[u] : 0;
            if (kind[u] == 2)
                d.all[to] = i;
            else if (kind[u] == 1)
                d.some[to] = i;
            else
                d.label[d.first + i] = code[u];
            if (kind[u] == 0)
                d.change[to] = Change{(int)(d.first + i), old[u], code[u]};
        }
        __syncthreads();
    }
}

/* Rows with some candidates: eight threads a candidate, sixteen a row. */
template <class T, bool PRODUCT> __device__ __forceinline__ void decide_some(const Rows<T> &rows, const Decision &d)
{
    const int half = (threadIdx.x >> 4) & 1, turn = (threadIdx.x >> 3) & 1, lane = threadIdx.x & 7;
    const int warp = (blockIdx.x * blockDim.x + threadIdx.x) >> 5, warps = gridDim.x * blockDim.x >> 5;
    const int total = *(volatile int *)&d.counts->some;
    for (int e0 = warp * 2; e0 < total; e0 += warps * 2) {
        const bool live = e0 + half < total;
        const int row = d.some[live ? e0 + half : e0], n = -d.out[row], most = max(n, __shfl_xor_sync(~0u, n, 16));
        const Candidate *candidate = d.candidates + (long)row * CANDIDATES;
        double best = INFINITY;
        int best_id = INT_MAX;
        for (int q = 0; q < most; q += 2) {
            const int j = candidate[q + turn < n ? q + turn : 0].id;
            const double v =
                define<T, PRODUCT>(rows, rows.row(d.first + row), d.centres + (long)j * d.columns, lane);
            if (v < best || (v == best && j < best_id)) {
                best = v;
                best_id = j;
            }
        }
        const double other = __shfl_xor_sync(~0u, best, 8);
        const int other_id = __shfl_xor_sync(~0u, best_id, 8);
        if (other < best || (other == best && other_id < best_id))
            best_id = other_id;
        if (live && (threadIdx.x & 15) == 0)
            settle(d, row, best_id);
    }
}

/* The least of 32, and whose it is; the lowest on ties.  Thread 0 has it. */
__device__ __forceinline__ void least_of_block(double &best, int &best_id)
{
    __shared__ double values[32];
    __shared__ int ids[32];
    __syncthreads();
    if ((threadIdx.x & 7) == 0) {
        values[threadIdx.x >> 3] = best;
        ids[threadIdx.x >> 3] = best_id;
    }
    __syncthreads();
    if (threadIdx.x == 0)
        for (int i = 1; i < 32; i++)
            if (values[i] < best || (values[i] == best && ids[i] < best_id)) {
                best = values[i];
                best_id = ids[i];
            }
}

/* What was found among all parts of the centres; thread 0 of the block that ends last. */
__device__ __forceinline__ void join_parts(const Decision &d, int e, int parts)
{
    const volatile double *best = d.best + (long)e * parts;
    const volatile int *best_id = d.best_id + (long)e * parts;
    double least = best[0];
    int id = best_id[0];
    for (int q = 1; q < parts; q++) {
        const double v = best[q];
        const int j = best_id[q];
        if (v < least || (v == least && j < id)) {
            least = v;
            id = j;
        }
    }
    settle(d, d.all[e], id);
}

/* Rows that all centres are left of.  While there are few, a block of threads has a row and 32 centres, and who ends
 * last of a row's blocks joins what they found; of the others each block has a row. */
template <class T, bool PRODUCT> __device__ __forceinline__ void decide_all(const Rows<T> &rows, const Decision &d)
{
    const int lane = threadIdx.x & 7, group = threadIdx.x >> 3, parts = (d.k + 31) / 32,
              total = *(volatile int *)&d.counts->all, split = min(total, d.split);
    for (long e = blockIdx.x; e < (long)split * parts; e += gridDim.x) {
        const int row = d.all[e / parts];
        int id = min((int)(e % parts) * 32 + group, d.k - 1);
        double best = define<T, PRODUCT>(rows, rows.row(d.first + row), d.centres + (long)id * d.columns, lane);
        least_of_block(best, id);
        if (threadIdx.x == 0) {
            d.best[e] = best;
            d.best_id[e] = id;
            __threadfence();
            if (atomicAdd(d.ended + e / parts, 1) == parts - 1) {
                d.ended[e / parts] = 0;
                __threadfence();
                join_parts(d, (int)(e / parts), parts);
            }
        }
    }
    for (int e = split + blockIdx.x; e < total; e += gridDim.x) {
        const int row = d.all[e];
        double best = INFINITY;
        int best_id = INT_MAX;
        for (int j0 = 0; j0 < d.k; j0 += 32) {
            const int j = min(j0 + group, d.k - 1);
            const double v =
                define<T, PRODUCT>(rows, rows.row(d.first + row), d.centres + (long)j * d.columns, lane);
            if (v < best || (v == best && j < best_id)) {
                best = v;
                best_id = j;
            }
        }
        least_of_block(best, best_id);
        if (threadIdx.x == 0)
            settle(d, row, best_id);
    }
}

template <class T, bool PRODUCT> __global__ void __launch_bounds__(256) decide(Rows<T> rows, Decision d)
{
    if (*(volatile const int *)&d.progress->halt)
        return;
    decide_some<T, PRODUCT>(rows, d);
    decide_all<T, PRODUCT>(rows, d);
}

/* Without the filter: all centres are left of every row. */
__global__ void leave_rows(Decision d)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < d.rows; i += gridDim.x * blockDim.x)
        d.out[i] = ALL_LEFT;
}

#endif
