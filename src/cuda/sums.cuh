/* Sums of clusters, in whole quanta: rows are sorted by cluster, runs of one are added up in registers, and each run is
 * one addition to memory.  Only what changed is added and taken away, unless more than half did. */
#ifndef SHOAL_CUDA_SUMS_CUH
#define SHOAL_CUDA_SUMS_CUH

#include "decide.cuh"

enum { COUNTED_IN_BLOCK = 4096 }; /* up to so many clusters a block of threads counts by itself */

/* An entry of the sorted list: a row that joins a cluster, or ~row, which leaves it. */
struct Entry {
    int row, cluster;
};

struct Summing {
    const Progress *progress;
    int rows, columns, k;
    bool fresh; /* nothing is in the sums yet */
    const int *changes;
    const Change *change;
    const int *label;
    int *counted, *cursor; /* k each; counted is zero between rounds */
    Entry *sorted;
    const double *weights, *origin, *inverse;
    double weight_scale, weight_inverse, most;
    u64 *sums;
    int *count; /* k: rows that have weight */
    i64 *weight;
    int wide, wide_bits;
    const i64 *wide_column;
    const double *wide_inverse;
    u64 *wide_sums;
    int run; /* entries that a warp adds up */
};

__device__ __forceinline__ bool adds_all(const Summing &p)
{
    return p.fresh || 2L * *(volatile const int *)p.changes > p.rows;
}

__device__ __forceinline__ Entry entry_of(const Summing &p, bool all, int changes, int i)
{
    if (all)
        return Entry{i, p.label[i]};
    const Change c = p.change[i < changes ? i : i - changes];
    return i < changes ? Entry{c.row, c.to} : Entry{~c.row, c.from};
}

__global__ void __launch_bounds__(512) count_entries(Summing p)
{
    extern __shared__ int in_block[];
    if (*(volatile const int *)&p.progress->halt)
        return;
    const bool all = adds_all(p), here = p.k <= COUNTED_IN_BLOCK;
    const int changes = *p.changes, total = all ? p.rows : 2 * changes;
    for (int i = threadIdx.x; here && i < p.k; i += 512)
        in_block[i] = 0;
    __syncthreads();
    for (int i = blockIdx.x * 512 + threadIdx.x; i < total; i += gridDim.x * 512)
        atomicAdd((here ? in_block : p.counted) + entry_of(p, all, changes, i).cluster, 1);
    __syncthreads();
    for (int i = threadIdx.x; here && i < p.k; i += 512)
        if (in_block[i])
            atomicAdd(p.counted + i, in_block[i]);
    if (!all)
        return;
    const long first = (long)blockIdx.x * 512 + threadIdx.x, step = (long)gridDim.x * 512;
    for (long i = first; i < (long)p.k * p.columns; i += step)
        p.sums[i] = 0;
    for (long i = first; i < 2L * p.k * p.wide; i += step)
        p.wide_sums[i] = 0;
    for (long i = first; i < p.k; i += step) {
        p.count[i] = 0;
        p.weight[i] = 0;
    }
}

/* Where each cluster's entries begin. */
__global__ void __launch_bounds__(1024) place_clusters(Summing p)
{
    __shared__ int of_warp[32], carried;
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    if (*(volatile const int *)&p.progress->halt)
        return;
    if (threadIdx.x == 0)
        carried = 0;
    for (int j0 = 0; j0 < p.k; j0 += 1024) {
        const int j = j0 + threadIdx.x, mine = j < p.k ? p.counted[j] : 0;
        int upto = mine;
        for (int o = 1; o < 32; o *= 2) {
            const int y = __shfl_up_sync(~0u, upto, o);
            upto += lane >= o ? y : 0;
        }
        __syncthreads();
        if (lane == 31)
            of_warp[warp] = upto;
        __syncthreads();
        int before = carried;
        for (int w = 0; w < warp; w++)
            before += of_warp[w];
        if (j < p.k) {
            p.cursor[j] = before + upto - mine;
            p.counted[j] = 0;
        }
        __syncthreads();
        if (threadIdx.x == 1023)
            carried = before + upto;
    }
}

__global__ void __launch_bounds__(512) sort_entries(Summing p)
{
    enum { EACH = 8, STEP = EACH * 512 };
    extern __shared__ int in_block[];
    int *const base = in_block + p.k;
    if (*(volatile const int *)&p.progress->halt)
        return;
    const bool all = adds_all(p), here = p.k <= COUNTED_IN_BLOCK;
    const int changes = *p.changes, total = all ? p.rows : 2 * changes;
    if (!here) {
        for (int i = blockIdx.x * 512 + threadIdx.x; i < total; i += gridDim.x * 512) {
            const Entry e = entry_of(p, all, changes, i);
            p.sorted[atomicAdd(p.cursor + e.cluster, 1)] = e;
        }
        return;
    }
    for (long i0 = (long)blockIdx.x * STEP; i0 < total; i0 += (long)gridDim.x * STEP) {
        Entry entry[EACH];
        int rank[EACH];
        for (int i = threadIdx.x; i < p.k; i += 512)
            in_block[i] = 0;
        __syncthreads();
#pragma unroll
        for (int u = 0; u < EACH; u++) {
            const long i = i0 + u * 512 + threadIdx.x;
            entry[u].cluster = -1;
            if (i < total) {
                entry[u] = entry_of(p, all, changes, (int)i);
                rank[u] = atomicAdd(in_block + entry[u].cluster, 1);
            }
        }
        __syncthreads();
        for (int i = threadIdx.x; i < p.k; i += 512)
            base[i] = in_block[i] ? atomicAdd(p.cursor + i, in_block[i]) : 0;
        __syncthreads();
#pragma unroll
        for (int u = 0; u < EACH; u++)
            if (entry[u].cluster >= 0)
                p.sorted[base[entry[u].cluster] + rank[u]] = entry[u];
        __syncthreads();
    }
}

/* rint(weight (x - origin) inverse), as the kernels' move has it.  SMALL: at most 2^51 in size. */
template <bool WEIGHTED, bool SMALL>
__device__ __forceinline__ i64 quanta(double x, double origin, double inverse, double weight)
{
    const double from = x - origin, v = (WEIGHTED ? weight * from : from) * inverse;
    if (SMALL) /* adding 1.5 * 2^52 leaves no bits for a fraction */
        return __double_as_longlong(v + 0x1.8p52) - 0x4338000000000000ll;
    return __double2ll_rn(v);
}

__device__ __forceinline__ double scaled_weight(const Summing &p, int row)
{
    return p.weights ? p.weights[row] * p.weight_scale : 1;
}

/* A warp adds up a run of entries, 128 columns of them. */
template <class T, bool WEIGHTED, bool SMALL>
__global__ void __launch_bounds__(256) add_runs(Rows<T> rows, Summing p)
{
    enum { AT_ONCE = 8 };
    if (*(volatile const int *)&p.progress->halt)
        return;
    const bool all = adds_all(p);
    const int total = all ? p.rows : 2 * *p.changes, slices = (p.columns + 127) / 128, lane = threadIdx.x & 31;
    const long units = (long)((total + p.run - 1) / p.run) * slices, warps = (long)gridDim.x * blockDim.x >> 5;
    for (long unit = ((long)blockIdx.x * blockDim.x + threadIdx.x) >> 5; unit < units; unit += warps) {
        const int slice = (int)(unit % slices), column = slice * 128 + lane * 4;
        const long first = unit / slices * p.run, last = min(first + p.run, (long)total);
        const bool in = column < p.columns;
        double origin[4], inverse[4];
        i64 sum[4] = {0, 0, 0, 0}, weight_sum = 0;
        int count = 0, cluster = -1;
#pragma unroll
        for (int c = 0; c < 4; c++) {
            origin[c] = column + c < p.columns ? p.origin[column + c] : 0;
            inverse[c] = column + c < p.columns ? p.inverse[column + c] : 0;
        }
        auto flush = [&]() {
            for (int c = 0; c < 4; c++) {
                if (in && column + c < p.columns && sum[c])
                    atomicAdd(p.sums + (long)cluster * p.columns + column + c, (u64)sum[c]);
                sum[c] = 0;
            }
            if (column == 0) {
                atomicAdd(p.count + cluster, count);
                if (WEIGHTED)
                    atomicAdd((u64 *)p.weight + cluster, (u64)weight_sum);
            }
            count = 0;
            weight_sum = 0;
        };
        for (long b = first; b < last; b += AT_ONCE) {
            Entry entry[AT_ONCE];
            Four<T> x[AT_ONCE];
#pragma unroll
            for (int r = 0; r < AT_ONCE; r++)
                entry[r] = b + r < last ? p.sorted[b + r] : Entry{0, -1};
#pragma unroll
            for (int r = 0; r < AT_ONCE; r++) {
                const int row = entry[r].row < 0 ? ~entry[r].row : entry[r].row;
                if (in && entry[r].cluster >= 0)
                    x[r] = *(const Four<T> *)(rows.row(row) + column);
                else
                    x[r] = Four<T>{};
            }
#pragma unroll
            for (int r = 0; r < AT_ONCE; r++) {
                if (entry[r].cluster < 0)
                    break;
                if (entry[r].cluster != cluster) {
                    if (cluster >= 0)
                        flush();
                    cluster = entry[r].cluster;
                }
                const bool leaves = entry[r].row < 0;
                const double weight = WEIGHTED ? scaled_weight(p, leaves ? ~entry[r].row : entry[r].row) : 1;
#pragma unroll
                for (int c = 0; c < 4; c++) {
                    const i64 v = quanta<WEIGHTED, SMALL>(rows.unit(x[r].v[c]), origin[c], inverse[c], weight);
                    sum[c] += leaves ? -v : v;
                }
                if (column == 0) {
                    count += weight > 0 ? (leaves ? -1 : 1) : 0;
                    if (WEIGHTED) {
                        const i64 w = __double2ll_rn(fmax(fmin(weight * p.weight_inverse, p.most), -p.most));
                        weight_sum += leaves ? -w : w;
                    }
                }
            }
        }
        if (cluster >= 0)
            flush();
    }
}

/* A whole number of quanta as two digits, as shoal_wide_add cuts it. */
__device__ __forceinline__ void cut_wide(double value, int bits, i64 &low, i64 &high)
{
    const double base = (double)((i64)1 << bits), most = base * base * (1 - 0x1p-53);
    value = value < most ? value : most;
    value = value > -most ? value : -most;
    high = (i64)(value / base);
    low = (i64)(value - (double)high * base);
}

/* Columns with outliers, few if any. */
template <class T> __global__ void __launch_bounds__(256) add_wide(Rows<T> rows, Summing p)
{
    if (*(volatile const int *)&p.progress->halt)
        return;
    const bool all = adds_all(p);
    const int changes = *p.changes, total = all ? p.rows : 2 * changes;
    const long step = (long)gridDim.x * blockDim.x, digits = (long)p.k * p.wide;
    for (long i = (long)blockIdx.x * blockDim.x + threadIdx.x; i < (long)total * p.wide; i += step) {
        const Entry e = entry_of(p, all, changes, (int)(i / p.wide));
        const int w = (int)(i % p.wide), row = e.row < 0 ? ~e.row : e.row, k = (int)p.wide_column[w];
        const double x = rows.unit(rows.row(row)[k]);
        i64 low, high;
        cut_wide(rint(scaled_weight(p, row) * (x - p.origin[k]) * p.wide_inverse[w]), p.wide_bits, low, high);
        const long at = (long)e.cluster * p.wide + w;
        atomicAdd(p.wide_sums + at, (u64)(e.row < 0 ? -low : low));
        atomicAdd(p.wide_sums + digits + at, (u64)(e.row < 0 ? -high : high));
    }
}

/* ---- the end: distances from labels ------------------------------------------------------------------------------ */

struct Ending {
    const double *centres, *weights;
    const int *label;
    int rows, columns, k, bits;
    double weight_scale, inverse, same;
    double *distance; /* or NULL */
    u64 *digits;      /* low, high, and the greatest term as bits */
    int *sizes;
};

template <class T> __global__ void __launch_bounds__(256) end_rows(Rows<T> rows, Ending p)
{
    const int lane = threadIdx.x & 7;
    i64 low = 0, high = 0;
    double most = 0;
    const long first = ((long)blockIdx.x * blockDim.x + threadIdx.x) >> 3, step = (long)gridDim.x * blockDim.x >> 3;
    const long rounded = (p.rows + 3) / 4 * 4; /* whole warps go on together */
    for (long i = first; i < rounded; i += step) {
        const long row = min(i, (long)p.rows - 1);
        const int j = p.label[row];
        double d = define<T, false>(rows, rows.row(row), p.centres + (long)j * p.columns, lane);
        d = d > p.same ? d : 0;
        if (lane != 0 || i >= p.rows)
            continue;
        const double term = (p.weights ? p.weights[row] * p.weight_scale : 1) * d;
        if (p.inverse > 0) {
            i64 l, h;
            cut_wide(rint(term * p.inverse), p.bits, l, h);
            low += l;
            high += h;
        }
        most = fmax(most, term);
        if (p.distance)
            p.distance[row] = d;
        atomicAdd(p.sizes + j, 1);
    }
    if (lane == 0) {
        atomicAdd(p.digits, (u64)low);
        atomicAdd(p.digits + 1, (u64)high);
        atomicMax(p.digits + 2, (u64)__double_as_longlong(most));
    }
}

#endif
