/* How tensor cores add is observed, not specified: so it is measured when a device is opened.
 *
 * A step adds 16 products to an accumulator.  What it is off from the true sum, in units of 2^-23 of the greatest of the
 * 17 terms, must stay below PROBE_UNITS; the proof in docs/devices.md counts on it. */
#ifndef SHOAL_CUDA_PROBE_CUH
#define SHOAL_CUDA_PROBE_CUH

#include <mma.h>
#include <cstdlib>
#include <cstring>

#include "filter.cuh"

constexpr float PROBE_UNITS = 18;
enum { PROBES = 1 << 15, PROBE_COLUMNS = 32 }; /* two steps each: the first makes the accumulator of the second */

/* All 64 are in registers of their own here: what was written to them comes before, what is read of them after.  Without
 * it the compiler sees one that is used, keeps no room for the others, and says that products wait for each other. */
__device__ __forceinline__ void pin(float (&d)[64])
{
    for (int i = 0; i < 64; i++)
        asm volatile("" : "+f"(d[i])::"memory");
}

__global__ void __launch_bounds__(128) probe_groups(const __half *a, const __half *b, float *out)
{
#ifdef HAS_WARPGROUPS
    extern __shared__ __align__(1024) unsigned char memory[];
    __half *A = (__half *)memory, *B = (__half *)(memory + 8192);
    for (int i = threadIdx.x; i < (8192 + 16384) / 2; i += 128)
        A[i] = __float2half(0.f);
    __syncthreads();
    for (int c = blockIdx.x; c < PROBES; c += gridDim.x) {
        if (threadIdx.x < PROBE_COLUMNS) {
            A[threadIdx.x] = a[c * PROBE_COLUMNS + threadIdx.x];
            B[threadIdx.x] = b[c * PROBE_COLUMNS + threadIdx.x];
        }
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads();
        float d[64] = {};
        pin(d);
        product_fence();
        multiply(d, describe(A), describe(B), 0);
        product_commit();
        product_wait<0>();
        pin(d);
        float first;
        asm volatile("mov.f32 %0, %1;" : "=f"(first) : "f"(d[0]) : "memory");
        pin(d);
        product_fence();
        multiply(d, describe(A) + 2, describe(B) + 2, 1);
        product_commit();
        product_wait<0>();
        pin(d);
        if (threadIdx.x == 0) {
            out[2 * c] = first;
            out[2 * c + 1] = d[0];
        }
        __syncthreads();
    }
#endif
}

__global__ void __launch_bounds__(32) probe_warps(const __half *a, const __half *b, float *out)
{
    using namespace nvcuda;
    __shared__ __align__(32) __half A[16 * 16], B[16 * 16];
    __shared__ __align__(32) float D[16 * 16];
    for (int i = threadIdx.x; i < 256; i += 32)
        A[i] = B[i] = __float2half(0.f);
    for (int c = blockIdx.x; c < PROBES; c += gridDim.x) {
        wmma::fragment<wmma::accumulator, 16, 16, 16, float> acc;
        wmma::fill_fragment(acc, 0.f);
        for (int step = 0; step < 2; step++) {
            __syncwarp();
            if (threadIdx.x < 16) {
                A[threadIdx.x] = a[c * PROBE_COLUMNS + step * 16 + threadIdx.x];
                B[threadIdx.x] = b[c * PROBE_COLUMNS + step * 16 + threadIdx.x];
            }
            __syncwarp();
            wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> left;
            wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> right;
            wmma::load_matrix_sync(left, A, 16);
            wmma::load_matrix_sync(right, B, 16);
            wmma::mma_sync(acc, left, right, acc);
            wmma::store_matrix_sync(D, acc, 16, wmma::mem_row_major);
            __syncwarp();
            if (threadIdx.x == 0)
                out[2 * c + step] = D[0];
        }
    }
}

/* Products of one size, and of sizes apart by up to 2^-24; all signs, some signs, signs that make the steps cancel. */
static void make_probes(__half *a, __half *b)
{
    uint64_t state = 1;
    auto next = [&]() {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        return (double)(state >> 11) * 0x1p-53;
    };
    for (int c = 0; c < PROBES; c++) {
        const int spread = (int)(next() * 13), signs = (int)(next() * 3);
        for (int k = 0; k < PROBE_COLUMNS; k++) {
            double x = (1 + next()) * ldexp(1, -(int)(next() * (spread + 1))),
                   y = (1 + next()) * ldexp(1, -(int)(next() * (spread + 1)));
            if ((signs == 1 && next() < 0.5) || (signs == 2 && k >= 16))
                x = -x;
            if (c < 64 && k % 16) /* one term, and fifteen that lie below its last bits */
                x = ldexp(1, -10 - c % 16), y = ldexp(1, -12);
            a[c * PROBE_COLUMNS + k] = __float2half((float)x);
            b[c * PROBE_COLUMNS + k] = __float2half((float)y);
        }
    }
}

/* The worst of all steps, in those units. */
static float judge_probes(const __half *a, const __half *b, const float *out)
{
    double worst = 0;
    for (int c = 0; c < PROBES; c++)
        for (int step = 0; step < 2; step++) {
            long double sum = step ? out[2 * c] : 0, most = fabsl(sum);
            for (int k = step * 16; k < step * 16 + 16; k++) {
                const long double product = (long double)__half2float(a[c * PROBE_COLUMNS + k]) *
                                            __half2float(b[c * PROBE_COLUMNS + k]);
                sum += product;
                most = fmaxl(most, fabsl(product));
            }
            const double off = (double)(fabsl(out[2 * c + step] - sum) / most) * 0x1p23;
            worst = off <= worst ? worst : off; /* NaN is the worst */
        }
    return (float)worst;
}

#endif
