/* Words that dense_product.h and the files that include it share; for GCC and clang. */
#ifndef KERNEL_DENSE_TILES_H
#define KERNEL_DENSE_TILES_H

#define ALWAYS_INLINE static inline __attribute__((always_inline))

/* In front of a loop over a constant number of steps, whose arrays are to become registers. */
#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 32")
#endif

/* From here on the compiler knows nothing of an integer's value. */
#define HIDE(integer) __asm__("" : "+r"(integer))

#endif
