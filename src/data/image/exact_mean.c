/* Exact means.  See exact_mean.h. */
#include "exact_mean.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { DIGIT_BITS = 32, FRACTION_BITS = 52, LEAST_BIT = -1074, CARRY_EVERY = 1 << 30 };

static void carry(exact_mean *mean)
{
    for (int d = 0; d + 1 < EXACT_MEAN_DIGITS; d++) {
        const int64_t over = mean->digit[d] >> DIGIT_BITS; /* rounds down, so that the digit stays at least 0 */
        mean->digit[d] -= over * (INT64_C(1) << DIGIT_BITS);
        mean->digit[d + 1] += over;
    }
    mean->uncarried = 0;
}

void exact_mean_add(exact_mean *mean, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    const int exponent = (int)(bits >> FRACTION_BITS & 0x7ff);
    uint64_t whole = bits & ((UINT64_C(1) << FRACTION_BITS) - 1);
    if (exponent > 0)
        whole |= UINT64_C(1) << FRACTION_BITS;
    const int place = exponent > 0 ? exponent - 1 : 0;
    unsigned __int128 shifted = (unsigned __int128)whole << place % DIGIT_BITS;
    for (int64_t *digit = mean->digit + place / DIGIT_BITS; shifted; digit++, shifted >>= DIGIT_BITS) {
        const int64_t part = (int64_t)(shifted & UINT32_MAX);
        *digit += bits >> 63 ? -part : part;
    }
    mean->count++;
    if (++mean->uncarried == CARRY_EVERY)
        carry(mean);
}

/* Makes a sum below 0 its opposite; digits are carried before and after. */
static bool take_sign(exact_mean *mean)
{
    if (mean->digit[EXACT_MEAN_DIGITS - 1] >= 0)
        return false;
    for (int d = 0; d < EXACT_MEAN_DIGITS; d++)
        mean->digit[d] = -mean->digit[d];
    carry(mean);
    return true;
}

/* Bit `bit` of carried digits. */
static int bit_at(const uint64_t *digit, int bit)
{
    return bit < 0 ? 0 : (int)(digit[bit / DIGIT_BITS] >> bit % DIGIT_BITS & 1);
}

/* The quotient's 53 highest bits, or fewer above the least bit of all, and what the rest says of rounding. */
static double round_quotient(const uint64_t *quotient, bool remainder, int lowest)
{
    int top = 32 * (EXACT_MEAN_DIGITS + 2) - 1;
    while (top >= 0 && !bit_at(quotient, top))
        top--;
    if (top < 0)
        return 0;
    int last = top - FRACTION_BITS; /* of the bits that stay */
    if (last + lowest < LEAST_BIT)
        last = LEAST_BIT - lowest;
    uint64_t mantissa = 0;
    for (int bit = top; bit >= last; bit--)
        mantissa = mantissa << 1 | (uint64_t)bit_at(quotient, bit);
    bool half = bit_at(quotient, last - 1), more = remainder;
    for (int bit = last - 2; bit >= 0 && !more; bit--)
        more = bit_at(quotient, bit);
    if (half && (more || (mantissa & 1)))
        mantissa++;
    return ldexp((double)mantissa, last + lowest);
}

double exact_mean_value(exact_mean *mean)
{
    /* Two more digits below, so that the quotient keeps 53 bits of any sum that is not tiny. */
    enum { MORE = 2 };
    uint64_t quotient[EXACT_MEAN_DIGITS + MORE] = {0};
    unsigned __int128 rest = 0;
    if (mean->count == 0)
        return NAN;
    exact_mean sum = *mean;
    carry(&sum);
    const bool negative = take_sign(&sum);
    for (int d = EXACT_MEAN_DIGITS + MORE - 1; d >= 0; d--) {
        rest = rest << DIGIT_BITS | (d >= MORE ? (uint64_t)sum.digit[d - MORE] : 0);
        quotient[d] = (uint64_t)(rest / (uint64_t)mean->count);
        rest %= (uint64_t)mean->count;
    }
    const double value = round_quotient(quotient, rest != 0, LEAST_BIT - MORE * DIGIT_BITS);
    return negative ? -value : value;
}
