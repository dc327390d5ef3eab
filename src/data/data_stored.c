/* Values that a file stores in a type that rows do not have: float16, and the smaller types that MATLAB picks for
 * numbers that fit into them.  See data_internal.h.
 *
 * What is stored takes no more bytes than what it becomes, so it widens in place, from the last value to the first. */
#include <string.h>

#include "data_internal.h"

size_t data_stored_size(int stored, shoal_type type)
{
    if (stored == DATA_STORED_HALF)
        return 2;
    return shoal_type_size(stored == DATA_STORED_SAME ? type : (shoal_type)(stored - DATA_STORED_TYPE));
}

bool data_stored_parse(shoal_type *type, int *stored, bool *swapped, const char *text, size_t length)
{
    const bool marked = length > 0 && strchr("<>=", text[0]);
    const char *const name = text + marked;
    const size_t bytes = length - marked;
    const bool is_half =
        (bytes == 2 && memcmp(name, "f2", 2) == 0) || (!marked && bytes == 7 && memcmp(name, "float16", 7) == 0);
    *stored = is_half ? DATA_STORED_HALF : DATA_STORED_SAME;
    if (!is_half)
        return data_type_parse(type, swapped, text, length);
    *type = SHOAL_FLOAT32;
    *swapped = marked && text[0] == (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? '>' : '<');
    return true;
}

/* ---- float16 ----------------------------------------------------------------------------------------------------- */

/* Sign, 5 bits of exponent, 10 of mantissa (IEEE 754 binary16).  As float32 bits, moved to where those have theirs, the
 * rest is 2^112 too small, for subnormals too; infinities and NaN keep their mantissa. */
static uint32_t widen_half(uint16_t half)
{
    const uint32_t moved = (uint32_t)(half & 0x7fff) << 13;
    uint32_t bits;
    float value;
    memcpy(&value, &moved, sizeof value);
    value *= 0x1p112f;
    memcpy(&bits, &value, sizeof bits);
    if (moved >= (uint32_t)0x7c00 << 13)
        bits = moved | 0x7f800000;
    return bits | (uint32_t)(half & 0x8000) << 16;
}

static void widen_halves(void *values, size_t count)
{
    for (size_t i = count; i-- > 0;) {
        uint16_t half;
        memcpy(&half, (const char *)values + i * sizeof half, sizeof half);
        const uint32_t bits = widen_half(half);
        memcpy((char *)values + i * sizeof bits, &bits, sizeof bits);
    }
}

/* ---- smaller types ----------------------------------------------------------------------------------------------- */

/* The bits of an integer type without its sign; 0 for floats and bool. */
static int integer_bits(shoal_type type, bool *has_sign)
{
    *has_sign = type >= SHOAL_INT8 && type <= SHOAL_INT64;
    const bool is_integer = *has_sign || (type >= SHOAL_UINT8 && type <= SHOAL_UINT64);
    return is_integer ? (int)shoal_type_size(type) * 8 - *has_sign : 0;
}

bool data_stored_fits(shoal_type stored, shoal_type type)
{
    bool from_sign, to_sign;
    const int from = integer_bits(stored, &from_sign), to = integer_bits(type, &to_sign);
    const size_t most = shoal_type_size(type) < 4 ? shoal_type_size(type) : 4; /* which float64 holds exactly */
    if (shoal_type_size(stored) > most)
        return false;
    if (to > 0)
        return from > 0 && from <= to && (!from_sign || to_sign);
    return type != SHOAL_BOOL && (from > 0 || stored == SHOAL_FLOAT32);
}

#define STORE(c_type)                                                                                                  \
    for (size_t i = 0; i < count; i++)                                                                                 \
        ((c_type *)out)[i] = (c_type)in[i];                                                                            \
    break

/* Values that fit the type. */
static void store_doubles(void *out, const double *in, shoal_type type, size_t count)
{
    switch (type) {
    case SHOAL_FLOAT32: STORE(float);
    case SHOAL_FLOAT64: STORE(double);
    case SHOAL_INT8: STORE(int8_t);
    case SHOAL_INT16: STORE(int16_t);
    case SHOAL_INT32: STORE(int32_t);
    case SHOAL_INT64: STORE(int64_t);
    case SHOAL_UINT8: STORE(uint8_t);
    case SHOAL_UINT16: STORE(uint16_t);
    case SHOAL_UINT32: STORE(uint32_t);
    case SHOAL_UINT64: STORE(uint64_t);
    default: SHOAL_BUG("nothing is widened to type %d", (int)type);
    }
}

static void widen_type(unsigned char *values, size_t count, shoal_type from, shoal_type to)
{
    enum { BLOCK = 512 };
    double block[BLOCK];
    for (size_t end = count; end > 0;) {
        const size_t size = end % BLOCK ? end % BLOCK : BLOCK, first = end - size;
        shoal_convert_float64(block, values + first * shoal_type_size(from), from, (int64_t)size);
        store_doubles(values + first * shoal_type_size(to), block, to, size);
        end = first;
    }
}

void data_stored_widen(void *values, size_t count, int stored, shoal_type type)
{
    if (stored == DATA_STORED_HALF)
        widen_halves(values, count);
    else if (stored >= DATA_STORED_TYPE)
        widen_type(values, count, (shoal_type)(stored - DATA_STORED_TYPE), type);
}
