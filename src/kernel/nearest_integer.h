/* Rounding to the nearest integer, for kernels.  Plain arithmetic that each set's file compiles for its own CPU: no
 * instruction of that name is needed, loops with it become vectors everywhere, and the integer is the same. */
#ifndef KERNEL_NEAREST_INTEGER_H
#define KERNEL_NEAREST_INTEGER_H

#include <stdint.h>
#include <string.h>

#include "base/memory.h"

/* rint(v) for |v| <= 2^51; some integer for any other.  Adding 1.5 * 2^52 leaves no bits for a fraction, so that the
 * addition itself rounds to the nearest, ties to even, and the result's low bits are the integer in two's complement.
 */
static inline int64_t nearest_small(double v)
{
    const double large = 0x1.8p52;
    double sum = v + large;
    uint64_t bits, bits_large;
    memcpy(&bits, &sum, sizeof bits);
    memcpy(&bits_large, &large, sizeof bits_large);
    return (int64_t)(bits - bits_large);
}

/* rint(v) for |v| < 2^62 (some integer for any other), in operations that vectorise everywhere.  v = high * 2^32 + low
 * with |low| <= 2^31: both the product and the difference are exact, and since high * 2^32 is an even integer, ties in
 * low are the ties of v. */
static inline int64_t nearest_integer(double v)
{
    const double large = 0x1.8p52;
    double high = (v * 0x1p-32 + large) - large;
    double low = v - high * 0x1p32;
    return base_add_wrapping((int64_t)((uint64_t)nearest_small(high) << 32), nearest_small(low));
}

#endif
