/* Instructions of the GPU that C has no words for: barriers and bulk copies in shared memory, and the matrix product of a
 * warpgroup (sm_90a). */
#ifndef SHOAL_CUDA_PTX_CUH
#define SHOAL_CUDA_PTX_CUH

#include <cuda.h>
#include <cstdint>

typedef unsigned long long u64;
typedef long long i64;

/* Whether this is compiled for a chip whose warpgroups multiply matrices from shared memory. */
#if defined __CUDA_ARCH_FEAT_SM90_ALL
#define HAS_WARPGROUPS 1
#endif

__device__ __forceinline__ uint32_t shared_address(const void *p)
{
    return (uint32_t)__cvta_generic_to_shared(p);
}

/* candidate <= threshold: one more for the list, whose end `at` counts on; it is stored while there is room.  The lower
 * ten bits of the score give way to the place. */
__device__ __forceinline__ void push(uint32_t &at, uint32_t end, float score, float threshold, unsigned place)
{
    asm volatile("{\n.reg .pred p, q;\n.reg .b32 k;\n"
                 "setp.le.f32 p, %1, %2;\nsetp.lt.and.u32 q, %0, %3, p;\n"
                 "lop3.b32 k, %4, 0xfffffc00, %5, 0xea;\n"
                 "@q st.shared.b32 [%0], k;\n@p add.u32 %0, %0, 4;\n}\n"
                 : "+r"(at)
                 : "f"(score), "f"(threshold), "r"(end), "r"(__float_as_uint(score)), "r"(place)
                 : "memory");
}

#ifdef HAS_WARPGROUPS

/* ---- barriers ---------------------------------------------------------------------------------------------------- */

__device__ __forceinline__ void barrier_init(u64 *barrier, int arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals));
}

__device__ __forceinline__ void barrier_expect(u64 *barrier, int bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes)
                 : "memory");
}

__device__ __forceinline__ void barrier_arrive(u64 *barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}

__device__ __forceinline__ void barrier_wait(u64 *barrier, int phase)
{
    asm volatile("{\n.reg .pred P1;\nLAB_WAIT:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;\n@P1 bra DONE;\nbra LAB_WAIT;\nDONE:\n}\n" ::"r"(
                     shared_address(barrier)),
                 "r"(phase)
                 : "memory");
}

/* Threads of one group wait for each other; groups have numbers from 1 on. */
__device__ __forceinline__ void group_sync(int group, int threads)
{
    asm volatile("bar.sync %0, %1;" ::"r"(group), "r"(threads) : "memory");
}

/* ---- bulk copies ------------------------------------------------------------------------------------------------- */

/* A box of a matrix in device memory to shared memory; the barrier hears of its bytes. */
__device__ __forceinline__ void copy_box(void *to, const CUtensorMap *map, int column, int row, u64 *barrier)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], "
                 "[%2];" ::"r"(shared_address(to)),
                 "l"((u64)map), "r"(shared_address(barrier)), "r"(column), "r"(row)
                 : "memory");
}

/* ---- products ---------------------------------------------------------------------------------------------------- */

__device__ __forceinline__ void product_fence()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void product_commit()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

template <int groups> __device__ __forceinline__ void product_wait()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(groups) : "memory");
}

/* How a warpgroup finds rows of 64 halves in shared memory, swizzled by 128 bytes. */
__device__ __forceinline__ u64 describe(const void *p)
{
    return ((shared_address(p) & 0x3FFFF) >> 4) | (u64)1 << 16 | (u64)64 << 32 | (u64)1 << 62;
}

/* d = a b, or d += a b: 64 rows of a, 128 of b, 16 columns each; fp16 in, fp32 out. */
__device__ __forceinline__ void multiply(float (&d)[64], u64 a, u64 b, int adds)
{
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\nwgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {"
                 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
                 "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
                 "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
                 "%64, %65, p, 1, 1, 0, 0;\n}\n"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]),
                   "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]),
                   "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]),
                   "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
                   "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]),
                   "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]),
                   "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]),
                   "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]),
                   "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]),
                   "+f"(d[54]), "+f"(d[55]), "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]),
                   "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
                 : "l"(a), "l"(b), "r"(adds));
}

#endif
#endif
