/* Rows on the device: their values, as they were put, and the definition of distance; and the copies in fp16 that scores
 * are computed from, with what is off in each. */
#ifndef SHOAL_CUDA_ROWS_CUH
#define SHOAL_CUDA_ROWS_CUH

#include <cuda_fp16.h>

#include "ptx.cuh"

/* Values of one form.  Rows lie `stride` values apart, a multiple of 4, filled up with zeros. */
template <class T> struct Rows {
    const T *values;
    long stride;
    int columns;
    double prescale; /* 1 but for extreme float64 */
    __device__ __forceinline__ const T *row(long i) const { return values + i * stride; }
    /* A value in units: what the CPU's kernels call exact. */
    __device__ __forceinline__ double unit(T value) const
    {
        return sizeof(T) == sizeof(double) ? (double)value * prescale : (double)value;
    }
};

template <class T> struct alignas(4 * sizeof(T) < 16 ? 4 * sizeof(T) : 16) Four {
    T v[4];
};

/* ---- the definition ---------------------------------------------------------------------------------------------- */

/* Eight threads of a warp, `lane` of each, get a row's squared distance to a centre, or minus their product.  Lanes by
 * column mod 8, combined ((0+4)+(2+6))+((1+5)+(3+7)), as kernel.h has it; -fmad=false keeps the operations apart. */
template <class T, bool PRODUCT>
__device__ __forceinline__ double define(const Rows<T> &rows, const T *x, const double *centre, int lane)
{
    double sum = 0;
#pragma unroll 8
    for (int k = lane; k < rows.columns; k += 8) {
        if (PRODUCT) {
            sum += rows.unit(x[k]) * centre[k];
        } else {
            double difference = rows.unit(x[k]) - centre[k];
            sum += difference * difference;
        }
    }
    sum += __shfl_xor_sync(~0u, sum, 4);
    sum += __shfl_xor_sync(~0u, sum, 2);
    sum += __shfl_xor_sync(~0u, sum, 1);
    return PRODUCT ? -sum : sum;
}

/* ---- taking rows in ---------------------------------------------------------------------------------------------- */

/* From `columns` apart to `stride` apart. */
template <class T> __global__ void spread_rows(T *to, const T *from, long rows, int columns, int stride)
{
    for (long i = (long)blockIdx.x * blockDim.x + threadIdx.x; i < rows * stride; i += (long)gridDim.x * blockDim.x) {
        long row = i / stride;
        int k = (int)(i % stride);
        to[i] = k < columns ? from[row * columns + k] : T(0);
    }
}

/* What of rows scores are computed from: zeta = s (x - o) as fp16, |zeta| and how far the copy is from it, both rounded
 * up. */
struct Packed {
    __half *rows;
    float *norm, *residual;
    unsigned *norm_most; /* of all rows, as bits */
};

template <class T>
__global__ void __launch_bounds__(256)
    pack_rows(Rows<T> in, long rows, int padded, const double *__restrict__ origin, double scale, Packed out)
{
    const int lane = threadIdx.x & 31;
    float most = 0;
    for (long i = ((long)blockIdx.x * 256 + threadIdx.x) >> 5; i < rows; i += (long)gridDim.x * 8) {
        const T *x = in.row(i);
        double norm = 0, off = 0;
        for (int k = lane * 4; k < padded; k += 128) {
            __half half[4] = {};
            if (k < in.columns) {
                Four<T> four = *(const Four<T> *)(x + k);
#pragma unroll
                for (int c = 0; c < 4; c++) {
                    double z = k + c < in.columns ? (in.unit(four.v[c]) - origin[k + c]) * scale : 0;
                    half[c] = __float2half_rn((float)fmin(fmax(z, -65504.), 65504.));
                    double d = z - (double)__half2float(half[c]);
                    norm += z * z;
                    off += d * d;
                }
            }
            *(uint2 *)(out.rows + i * padded + k) = *(uint2 *)half;
        }
        for (int o = 16; o; o /= 2) {
            norm += __shfl_xor_sync(~0u, norm, o);
            off += __shfl_xor_sync(~0u, off, o);
        }
        if (lane == 0) { /* zeta itself has one rounding, of 2^-53 of it, which 2^-40 covers */
            float up = __double2float_ru(sqrt(norm) * (1 + 0x1p-20) + 0x1p-100);
            out.norm[i] = up;
            out.residual[i] = __double2float_ru(sqrt(off) * (1 + 0x1p-20) + 0x1p-40 * up);
            most = fmaxf(most, up);
        }
    }
    if (lane == 0)
        atomicMax(out.norm_most, __float_as_uint(most));
}

#endif
