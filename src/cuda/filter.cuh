/* The filter: which centres may be the nearest of each row, from scores that tensor cores compute in fp16 and fp32.
 *
 * The computed score s of a row and a centre is off from the true one by at most e = norm q1 + residual q2 + q0, with
 * q's of the centre's tile (docs/devices.md has the proof).  U is the least s + e seen of a row; centres with s > U + e
 * are not its nearest.  A row ends with its label, if one centre is left; with a few candidates; or with all. */
#ifndef SHOAL_CUDA_FILTER_CUH
#define SHOAL_CUDA_FILTER_CUH

#include <climits>

#include "centres.cuh"

enum { CANDIDATES = 16, TILES_MOST = 8, ALL_LEFT = INT_MIN };

/* The score of a centre that may be the nearest is at least `lower`. */
struct Candidate {
    float lower;
    int id;
};

struct Filter {
    const Progress *progress;
    Centres c;
    int chunk, chunks;        /* which places are looked at: CHUNK from chunk * CHUNK on */
    long first;               /* row of this block of rows ... */
    int rows;                 /* ... and how many */
    int tiles;                /* of rows */
    bool fresh;               /* rows have no labels yet */
    const float *norm, *residual;
    const int *label;         /* by row of the slice */
    int *out;                 /* by row of the block: its label; or -n: it has n candidates; or ALL_LEFT */
    float *upper;             /* U, where there are several chunks */
    Candidate *candidates;    /* CANDIDATES a row */
    float loss, roundings;    /* of the tensor cores, and of the definition */
    const unsigned *norm_most;
};

struct Bound {
    float q0, q1, q2;
    __device__ __forceinline__ float of(float norm, float residual) const
    {
        return fmaf(norm, q1, fmaf(residual, q2, q0));
    }
};

__device__ __forceinline__ Bound bound_of(const Filter &p, int tile)
{
    const float R = __uint_as_float(p.c.residual[tile]), M = __uint_as_float(p.c.norm[tile]),
                most = __uint_as_float(*p.norm_most), up = 1 + 0x1p-16f, B = p.loss + 0x1p-22f;
    return Bound{(0x1p-22f + p.roundings) * M * M * up + 0x1p-100f, (R + B * M + p.roundings * most) * up,
                 M * (1 + B) * up};
}

/* Makes room for `count` more candidates of a row, behind those of the chunks before that still may be the nearest.
 * Where they go; -1 where all centres are left.  One thread. */
__device__ __forceinline__ int make_room(const Filter &p, long row, float U, int count, bool all)
{
    Candidate *kept = p.candidates + row * CANDIDATES;
    const int before = p.chunk > 0 ? p.out[row] : 0;
    int n = -before;
    p.upper[row] = U;
    all = all || before == ALL_LEFT;
    if (!all && n + count > CANDIDATES) {
        int left = 0;
        for (int i = 0; i < n; i++)
            if (kept[i].lower <= U)
                kept[left++] = kept[i];
        n = left;
    }
    all = all || n + count > CANDIDATES;
    p.out[row] = all ? ALL_LEFT : -(n + count);
    return all ? -1 : n;
}

/* ---- Hopper: warpgroups, bulk copies ----------------------------------------------------------------------------- */

/* One thread copies, four warpgroups multiply.  Narrow rows (up to 128 columns) stay in shared memory while all centres
 * pass by: 256 rows a block, 64 a warpgroup, tiles of 128 centres.  Wide ones pass by with the centres: 128 rows a
 * block, and two warpgroups, one for each half of 256 centres, share 64 of them. */
template <bool WIDE> struct Layout {
    static constexpr int GROUPS = 4, STAGES = 4, SIDES = WIDE ? 2 : 1;
    static constexpr int BLOCK = WIDE ? 128 : 256, TILE = WIDE ? 256 : 128, COLUMN_BLOCKS = 2;
    static constexpr int THREADS = GROUPS * 128 + 128;
    static constexpr int ROW_BYTES = BLOCK * 128, CENTRE_BYTES = TILE * 128; /* of 64 columns */
    static constexpr int LIST = 6;                                           /* candidates a thread holds for a row */
    static constexpr int ROWS_TOTAL = WIDE ? STAGES * ROW_BYTES : 2 * COLUMN_BLOCKS * ROW_BYTES;
    static constexpr int BYTES = ROWS_TOTAL + STAGES * CENTRE_BYTES + CHUNK * 4 + BLOCK * 4 * SIDES * LIST * 4 +
                                 TILES_MOST * 12 + 256 + (WIDE ? BLOCK * 24 : 0);
};

#ifdef HAS_WARPGROUPS

/* Pointers into shared memory. */
template <bool WIDE> struct Shared {
    using L = Layout<WIDE>;
    unsigned char *rows, *centres;
    float *bias;
    unsigned *lists;
    Bound *bound;
    u64 *full, *empty, *rows_full, *rows_empty;
    volatile float *upper;  /* wide: by parity, side and row */
    unsigned char *counted; /* wide: by row, side and thread of four */

    __device__ explicit Shared(unsigned char *memory)
    {
        rows = memory;
        centres = rows + L::ROWS_TOTAL;
        bias = (float *)(centres + L::STAGES * L::CENTRE_BYTES);
        lists = (unsigned *)(bias + CHUNK);
        bound = (Bound *)(lists + L::BLOCK * 4 * L::SIDES * L::LIST);
        full = (u64 *)(bound + TILES_MOST);
        empty = full + L::STAGES;
        rows_full = empty + L::STAGES;
        rows_empty = rows_full + 2;
        upper = (float *)(rows_empty + 2);
        counted = (unsigned char *)(upper + 4 * L::BLOCK);
    }
};

/* The thread that fetches tiles, in the order in which they are multiplied. */
template <bool WIDE>
__device__ __forceinline__ void fetch_tiles(const Filter &p, const Shared<WIDE> &s, const CUtensorMap *rows,
                                            const CUtensorMap *centres, int centre_tiles)
{
    using L = Layout<WIDE>;
    const int column_blocks = p.c.padded / 64;
    int stage = 0, phase = 0, half = 0, half_phase = 0;
    for (int t = blockIdx.x; t < p.tiles; t += gridDim.x) {
        const int row = (int)(p.first + (long)t * L::BLOCK);
        if (!WIDE) {
            barrier_wait(s.rows_empty + half, half_phase ^ 1);
            barrier_expect(s.rows_full + half, L::COLUMN_BLOCKS * L::ROW_BYTES);
            for (int b = 0; b < L::COLUMN_BLOCKS; b++)
                copy_box(s.rows + (half * L::COLUMN_BLOCKS + b) * L::ROW_BYTES, rows, b * 64, row, s.rows_full + half);
            if (++half == 2) {
                half = 0;
                half_phase ^= 1;
            }
        }
        for (int tile = 0; tile < centre_tiles; tile++)
            for (int b = 0; b < column_blocks; b++) {
                barrier_wait(s.empty + stage, phase ^ 1);
                barrier_expect(s.full + stage, (WIDE ? L::ROW_BYTES : 0) + L::CENTRE_BYTES);
                if (WIDE)
                    copy_box(s.rows + stage * L::ROW_BYTES, rows, b * 64, row, s.full + stage);
                copy_box(s.centres + stage * L::CENTRE_BYTES, centres, b * 64, p.chunk * CHUNK + tile * L::TILE,
                         s.full + stage);
                if (++stage == L::STAGES) {
                    stage = 0;
                    phase ^= 1;
                }
            }
    }
}

/* Stored scores have lost their lower ten bits: they are within 2^-13 of their size. */
__device__ __forceinline__ float stored_score(unsigned word)
{
    return __uint_as_float(word & ~1023u);
}

__device__ __forceinline__ float stored_lower(unsigned word, const Bound *bound, int tile_size, float norm,
                                              float residual)
{
    const float score = stored_score(word);
    return score - 0x1p-12f * fabsf(score) - bound[(int)(word & 1023) / tile_size].of(norm, residual);
}

/* The four threads that have a row's lists put what is left of them where the row's result goes.  `list` has `held`
 * words of this thread that passed the last test against U. */
__device__ __forceinline__ void end_row(const Filter &p, long row, bool is_row, float U, const unsigned *const list[2],
                                        const int held[2], bool over, const Bound *bound, int tile_size, float norm,
                                        float residual)
{
    const int quarter = threadIdx.x & 3;
    int left = 0, last = 0;
#pragma unroll
    for (int side = 0; side < 2; side++)
        for (int i = 0; i < held[side]; i++)
            if (stored_lower(list[side][i], bound, tile_size, norm, residual) <= U) {
                left++;
                last = list[side][i] & 1023;
            }
    int total = left + __shfl_xor_sync(~0u, left, 1);
    total += __shfl_xor_sync(~0u, total, 2);
    const unsigned four = 0xfu << (threadIdx.x & 28);
    const bool all = (__ballot_sync(~0u, over) & four) != 0 || (p.chunks == 1 && (total > CANDIDATES || total == 0));
    int before = __shfl_up_sync(~0u, left, 1, 4), upto = left + (quarter < 1 ? 0 : before);
    before = __shfl_up_sync(~0u, upto, 2, 4);
    upto += (quarter < 2 ? 0 : before) - left;
    const int *id = p.c.id + p.chunk * CHUNK;
    if (p.chunks > 1) {
        int room = -1;
        if (quarter == 0 && is_row)
            room = make_room(p, row, U, total, all);
        room = __shfl_sync(~0u, room, threadIdx.x & 28);
        if (room < 0)
            return;
        upto += room;
    } else if (is_row) {
        if (!all && total == 1) {
            if (left == 1)
                p.out[row] = __ldg(id + last);
            return;
        }
        if (quarter == 0)
            p.out[row] = all ? ALL_LEFT : -total;
    }
    if (all || !is_row)
        return;
#pragma unroll
    for (int side = 0; side < 2; side++)
        for (int i = 0; i < held[side]; i++) {
            const float lower = stored_lower(list[side][i], bound, tile_size, norm, residual);
            if (lower <= U)
                p.candidates[row * CANDIDATES + upto++] = Candidate{lower, __ldg(id + (list[side][i] & 1023))};
        }
}

template <bool WIDE> __device__ __forceinline__ void begin_filter(const Filter &p, const Shared<WIDE> &s, int tiles)
{
    using L = Layout<WIDE>;
    if (threadIdx.x == 0) {
        for (int i = 0; i < L::STAGES; i++) {
            barrier_init(s.full + i, 1);
            barrier_init(s.empty + i, L::GROUPS * 4);
        }
        for (int i = 0; i < 2; i++) {
            barrier_init(s.rows_full + i, 1);
            barrier_init(s.rows_empty + i, L::GROUPS * 4);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    for (int i = threadIdx.x; i < tiles * L::TILE; i += L::THREADS)
        s.bias[i] = p.c.bias[p.chunk * CHUNK + i];
    if ((int)threadIdx.x < tiles)
        s.bound[threadIdx.x] = bound_of(p, p.chunk * (CHUNK / L::TILE) + threadIdx.x);
    if (WIDE)
        for (int i = threadIdx.x; i < 4 * L::BLOCK; i += L::THREADS)
            s.upper[i] = INFINITY;
    __syncthreads();
}

/* All rows of the block are decided by the definition. */
__device__ __forceinline__ bool leave_all(const Filter &p)
{
    if (*(volatile const int *)p.c.far == 0)
        return false;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < p.rows; i += gridDim.x * blockDim.x)
        p.out[i] = ALL_LEFT;
    return true;
}

#endif

/* KNOWN: U has a first value, from the row's old label or the chunks before; otherwise each tile's least score gives
 * it. */
template <bool KNOWN>
__global__ void __launch_bounds__(640, 1)
    filter_narrow(const __grid_constant__ CUtensorMap row_map, const __grid_constant__ CUtensorMap centre_map, Filter p)
{
#ifdef HAS_WARPGROUPS
    using L = Layout<false>;
    enum { PAIRS = 2, PARTS = 8 }; /* a part: two times two columns of a thread's 32 */
    extern __shared__ __align__(1024) unsigned char memory[];
    const Shared<false> s(memory);
    const int lane = threadIdx.x & 31, warp = (threadIdx.x >> 5) & 3, quarter = lane & 3;
    const int group = __shfl_sync(~0u, threadIdx.x >> 7, 0);
    const int centre_tiles = min(CHUNK, p.c.padded_k - p.chunk * CHUNK) / L::TILE;
    if (*(volatile const int *)&p.progress->halt || leave_all(p))
        return;
    begin_filter<false>(p, s, centre_tiles);
    if (group == L::GROUPS) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
        if (threadIdx.x == L::GROUPS * 128)
            fetch_tiles<false>(p, s, &row_map, &centre_map, centre_tiles);
        return;
    }
    asm volatile("setmaxnreg.inc.sync.aligned.u32 112;");
    int stage = 0, phase = 0, half = 0, half_phase = 0;
    for (int t = blockIdx.x; t < p.tiles; t += gridDim.x) {
        /* A thread has, of two rows eight apart, the columns 2 quarter, 2 quarter + 1 of every eight. */
        const int in_block = group * 64 + warp * 16 + (lane >> 2), row0 = t * L::BLOCK + in_block;
        const unsigned *list = s.lists + (in_block * 4 + quarter) * L::LIST;
        const uint32_t lists = shared_address(list);
        float U[2], norm[2], residual[2];
        uint32_t at[2];
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const int row = min(row0 + h * 8, p.rows - 1);
            norm[h] = __ldg(p.norm + p.first + row);
            residual[h] = __ldg(p.residual + p.first + row);
            U[h] = KNOWN && p.chunk > 0 ? p.upper[row] : INFINITY;
            at[h] = lists + h * 8 * 4 * L::LIST * 4;
        }
        barrier_wait(s.rows_full + half, half_phase);
        if (KNOWN && p.chunk == 0) { /* the old label's score */
#pragma unroll
            for (int h = 0; h < 2; h++) {
                const int row = min(row0 + h * 8, p.rows - 1), r = in_block + h * 8;
                const int place = __ldg(p.c.place + __ldg(p.label + p.first + row));
                const uint4 *centre = (const uint4 *)(p.c.packed + (long)place * 128);
                float sum = 0;
#pragma unroll
                for (int u = 0; u < L::COLUMN_BLOCKS * 2; u++) {
                    const int chunk = quarter + 4 * (u & 1);
                    uint4 y = __ldg(centre + (u >> 1) * 8 + chunk);
                    uint4 x = *(const uint4 *)(s.rows + (half * L::COLUMN_BLOCKS + (u >> 1)) * L::ROW_BYTES + r * 128 +
                                               ((chunk ^ (r & 7)) << 4));
                    const __half2 *a = (const __half2 *)&x, *b = (const __half2 *)&y;
#pragma unroll
                    for (int w = 0; w < 4; w++) {
                        float2 f = __half22float2(a[w]), g = __half22float2(b[w]);
                        sum = fmaf(f.x, g.x, sum);
                        sum = fmaf(f.y, g.y, sum);
                    }
                }
                sum += __shfl_xor_sync(~0u, sum, 1);
                sum += __shfl_xor_sync(~0u, sum, 2);
                /* its tile may be of another chunk: read what bounds it anew */
                const Bound bound = p.chunks == 1 ? s.bound[place / L::TILE] : bound_of(p, place / L::TILE);
                U[h] = __ldg(p.c.bias + place) - sum + bound.of(norm[h], residual[h]);
            }
        }
        for (int tile = 0; tile < centre_tiles; tile++) {
            float acc[64];
            const int stage0 = stage;
#pragma unroll
            for (int b = 0; b < L::COLUMN_BLOCKS; b++) {
                barrier_wait(s.full + stage, phase);
                const u64 centres = describe(s.centres + stage * L::CENTRE_BYTES),
                          rows = describe(s.rows + (half * L::COLUMN_BLOCKS + b) * L::ROW_BYTES + group * 8192);
                product_fence();
#pragma unroll
                for (int k = 0; k < 4; k++)
                    multiply(acc, rows + 2 * k, centres + 2 * k, b + k > 0);
                if (++stage == L::STAGES) {
                    stage = 0;
                    phase ^= 1;
                }
            }
            product_commit();
            product_wait<0>();
            if (lane == 0)
                for (int b = 0; b < L::COLUMN_BLOCKS; b++)
                    barrier_arrive(s.empty + ((stage0 + b) & (L::STAGES - 1)));
            if (tile == centre_tiles - 1 && lane == 0)
                barrier_arrive(s.rows_empty + half);
            const float2 *bias = (const float2 *)(s.bias + tile * L::TILE) + quarter;
            const unsigned place0 = tile * L::TILE + 2 * quarter;
            float least[2][PARTS], e[2], threshold[2];
#pragma unroll
            for (int c = 0; c < PARTS; c++)
#pragma unroll
                for (int pair = 0; pair < PAIRS; pair++) {
                    const int i = c * PAIRS + pair;
                    const float2 b = bias[i * 4];
#pragma unroll
                    for (int h = 0; h < 2; h++) {
                        const float s0 = b.x - acc[4 * i + 2 * h], s1 = b.y - acc[4 * i + 2 * h + 1];
                        acc[4 * i + 2 * h] = s0;
                        acc[4 * i + 2 * h + 1] = s1;
                        const float v = fminf(s0, s1);
                        least[h][c] = pair == 0 ? v : fminf(least[h][c], v);
                    }
                }
#pragma unroll
            for (int h = 0; h < 2; h++) {
                e[h] = s.bound[tile].of(norm[h], residual[h]);
                if (!KNOWN) {
                    float v = least[h][0];
#pragma unroll
                    for (int c = 1; c < PARTS; c++)
                        v = fminf(v, least[h][c]);
                    v = fminf(v, __shfl_xor_sync(~0u, v, 1));
                    v = fminf(v, __shfl_xor_sync(~0u, v, 2));
                    U[h] = fminf(U[h], v + e[h]);
                }
                threshold[h] = U[h] + e[h];
            }
            bool hit = false;
#pragma unroll
            for (int c = 0; c < PARTS; c++) {
                const bool hits[2] = {least[0][c] <= threshold[0], least[1][c] <= threshold[1]};
                if (!__any_sync(~0u, hits[0] | hits[1]))
                    continue;
                hit = true;
#pragma unroll
                for (int h = 0; h < 2; h++) {
                    if (!__any_sync(~0u, hits[h]))
                        continue;
                    U[h] = fminf(U[h], least[h][c] + e[h]);
                    threshold[h] = U[h] + e[h];
                    const uint32_t end = lists + h * 8 * 4 * L::LIST * 4 + L::LIST * 4;
#pragma unroll
                    for (int pair = 0; pair < PAIRS; pair++) {
                        const int i = c * PAIRS + pair;
                        push(at[h], end, acc[4 * i + 2 * h], threshold[h], place0 + i * 8);
                        push(at[h], end, acc[4 * i + 2 * h + 1], threshold[h], place0 + i * 8 + 1);
                    }
                }
            }
            if (hit)
#pragma unroll
                for (int h = 0; h < 2; h++) {
                    U[h] = fminf(U[h], __shfl_xor_sync(~0u, U[h], 1));
                    U[h] = fminf(U[h], __shfl_xor_sync(~0u, U[h], 2));
                }
        }
        if (++half == 2) {
            half = 0;
            half_phase ^= 1;
        }
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const int row = row0 + h * 8, pushed = (int)(at[h] - lists - h * 8 * 4 * L::LIST * 4) / 4;
            const unsigned *const of_row[2] = {list + h * 8 * 4 * L::LIST, nullptr};
            const int held[2] = {min(pushed, (int)L::LIST), 0};
            end_row(p, row, row < p.rows, U[h], of_row, held, pushed > L::LIST, s.bound, L::TILE, norm[h],
                    residual[h]);
        }
    }
#endif
}

/* Rows of more than 128 columns. */
__global__ void __launch_bounds__(640, 1)
    filter_wide(const __grid_constant__ CUtensorMap row_map, const __grid_constant__ CUtensorMap centre_map, Filter p)
{
#ifdef HAS_WARPGROUPS
    using L = Layout<true>;
    enum { PAIRS = 2, PARTS = 8, HALF = 128 };
    extern __shared__ __align__(1024) unsigned char memory[];
    const Shared<true> s(memory);
    const int lane = threadIdx.x & 31, warp = (threadIdx.x >> 5) & 3, quarter = lane & 3;
    const int group = __shfl_sync(~0u, threadIdx.x >> 7, 0), of_rows = group & 1, side = group >> 1;
    const int centre_tiles = min(CHUNK, p.c.padded_k - p.chunk * CHUNK) / L::TILE, column_blocks = p.c.padded / 64;
    if (*(volatile const int *)&p.progress->halt || leave_all(p))
        return;
    begin_filter<true>(p, s, centre_tiles);
    if (group == L::GROUPS) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
        if (threadIdx.x == L::GROUPS * 128)
            fetch_tiles<true>(p, s, &row_map, &centre_map, centre_tiles);
        return;
    }
    asm volatile("setmaxnreg.inc.sync.aligned.u32 112;");
    int stage = 0, phase = 0, parity = 0;
    for (int t = blockIdx.x; t < p.tiles; t += gridDim.x) {
        const int in_block = of_rows * 64 + warp * 16 + (lane >> 2), row0 = t * L::BLOCK + in_block;
        const uint32_t lists = shared_address(s.lists + (in_block * 8 + side * 4 + quarter) * L::LIST);
        float U[2], norm[2], residual[2];
        uint32_t at[2];
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const int row = min(row0 + h * 8, p.rows - 1);
            norm[h] = __ldg(p.norm + p.first + row);
            residual[h] = __ldg(p.residual + p.first + row);
            U[h] = p.chunk > 0 ? p.upper[row] : INFINITY;
            at[h] = lists + h * 8 * 8 * L::LIST * 4;
        }
        for (int tile = 0; tile < centre_tiles; tile++) {
            float acc[64];
            int before = 0;
            for (int b = 0; b < column_blocks; b++) {
                barrier_wait(s.full + stage, phase);
                const u64 centres = describe(s.centres + stage * L::CENTRE_BYTES + side * HALF * 128),
                          rows = describe(s.rows + stage * L::ROW_BYTES + of_rows * 8192);
                product_fence();
#pragma unroll
                for (int k = 0; k < 4; k++)
                    multiply(acc, rows + 2 * k, centres + 2 * k, b + k > 0);
                product_commit();
                if (b > 0) {
                    product_wait<1>();
                    if (lane == 0)
                        barrier_arrive(s.empty + before);
                }
                before = stage;
                if (++stage == L::STAGES) {
                    stage = 0;
                    phase ^= 1;
                }
            }
            product_wait<0>();
            if (lane == 0)
                barrier_arrive(s.empty + before);
            const float2 *bias = (const float2 *)(s.bias + tile * L::TILE + side * HALF) + quarter;
            const unsigned place0 = tile * L::TILE + side * HALF + 2 * quarter;
#pragma unroll
            for (int h = 0; h < 2; h++) {
                float least[PARTS];
#pragma unroll
                for (int c = 0; c < PARTS; c++)
#pragma unroll
                    for (int pair = 0; pair < PAIRS; pair++) {
                        const int i = c * PAIRS + pair;
                        const float2 b = bias[i * 4];
                        const float v = fminf(b.x - acc[4 * i + 2 * h], b.y - acc[4 * i + 2 * h + 1]);
                        least[c] = pair == 0 ? v : fminf(least[c], v);
                    }
                const float e = s.bound[tile].of(norm[h], residual[h]);
                float v = least[0];
#pragma unroll
                for (int c = 1; c < PARTS; c++)
                    v = fminf(v, least[c]);
                v = fminf(v, __shfl_xor_sync(~0u, v, 1));
                v = fminf(v, __shfl_xor_sync(~0u, v, 2));
                U[h] = fminf(U[h], v + e);
                const int r = in_block + h * 8; /* what the other side knows, however old, bounds as well */
                if (quarter == 0)
                    s.upper[(parity * 2 + side) * L::BLOCK + r] = U[h];
                U[h] = fminf(U[h], s.upper[(parity * 2 + 1 - side) * L::BLOCK + r]);
                const float threshold = U[h] + e;
                if (!__any_sync(~0u, v <= threshold))
                    continue;
                const uint32_t end = lists + h * 8 * 8 * L::LIST * 4 + L::LIST * 4;
#pragma unroll
                for (int c = 0; c < PARTS; c++) {
                    if (!__any_sync(~0u, least[c] <= threshold))
                        continue;
#pragma unroll
                    for (int pair = 0; pair < PAIRS; pair++) {
                        const int i = c * PAIRS + pair;
                        const float2 b = bias[i * 4];
                        push(at[h], end, b.x - acc[4 * i + 2 * h], threshold, place0 + i * 8);
                        push(at[h], end, b.y - acc[4 * i + 2 * h + 1], threshold, place0 + i * 8 + 1);
                    }
                }
            }
        }
        /* Both sides of a row meet; side h ends the rows of h. */
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const int r = in_block + h * 8;
            if (quarter == 0)
                s.upper[(parity * 2 + side) * L::BLOCK + r] = U[h];
            s.counted[r * 8 + side * 4 + quarter] =
                (unsigned char)min((int)(at[h] - lists - h * 8 * 8 * L::LIST * 4) / 4, 255);
        }
        group_sync(8 + of_rows, 256);
        {
            const int r = in_block + side * 8, row = t * L::BLOCK + r;
            const float least = fminf(s.upper[parity * 2 * L::BLOCK + r], s.upper[(parity * 2 + 1) * L::BLOCK + r]);
            const int pushed[2] = {s.counted[r * 8 + quarter], s.counted[r * 8 + 4 + quarter]};
            const unsigned *const of_row[2] = {s.lists + (r * 8 + quarter) * L::LIST,
                                               s.lists + (r * 8 + 4 + quarter) * L::LIST};
            const int held[2] = {min(pushed[0], (int)L::LIST), min(pushed[1], (int)L::LIST)};
            end_row(p, row, row < p.rows, least, of_row, held, pushed[0] > L::LIST || pushed[1] > L::LIST, s.bound,
                    L::TILE, side ? norm[1] : norm[0], side ? residual[1] : residual[0]);
            parity ^= 1;
            for (int i = warp * 32 + lane; i < 64; i += 128) /* for the next tile of rows */
                s.upper[(parity * 2 + side) * L::BLOCK + of_rows * 64 + i] = INFINITY;
        }
        group_sync(8 + of_rows, 256);
    }
#endif
}

/* ---- any GPU from Ampere on -------------------------------------------------------------------------------------- */

enum { OLD_ROWS = 64, OLD_TILE = 128, OLD_THREADS = 128, OLD_LIST = 8, OLD_HALVES = 72, OLD_SCORES = OLD_TILE + 4 };
enum { OLD_BYTES = (OLD_ROWS + OLD_TILE) * OLD_HALVES * 2 + OLD_ROWS * OLD_SCORES * 4 + OLD_ROWS * 2 * OLD_LIST * 8 };

#endif
