/* float16, which no arithmetic here is done in: it becomes float32, exactly.  See data_internal.h. */
#include <string.h>

#include "data_internal.h"

/* Sign, 5 bits of exponent, 10 of mantissa (IEEE 754 binary16).  A subnormal is its mantissa times 2^-24. */
static float widen(uint16_t half)
{
    const uint32_t sign = (uint32_t)(half & 0x8000) << 16, exponent = half >> 10 & 0x1f, mantissa = half & 0x3ff;
    uint32_t bits;
    float value;
    if (exponent == 0) {
        value = (float)mantissa * 0x1p-24f;
        memcpy(&bits, &value, sizeof bits);
        bits |= sign;
    } else {
        bits = sign | (exponent == 0x1f ? 0xff : exponent + 127 - 15) << 23 | mantissa << 13;
    }
    memcpy(&value, &bits, sizeof value);
    return value;
}

void data_widen_half(void *out, const void *in, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint16_t half;
        memcpy(&half, (const char *)in + i * sizeof half, sizeof half);
        const float value = widen(half);
        memcpy((char *)out + i * sizeof value, &value, sizeof value);
    }
}
