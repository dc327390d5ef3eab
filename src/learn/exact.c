/* Sums of doubles without rounding.  See exact.h. */
#include "learn/exact.h"

#include <math.h>
#include <string.h>

enum { DIGIT_BITS = 32, LOW_USUAL = -160, DIGITS_USUAL = 9, LOW_LEAST = -1088, TOP_MOST = 1024, LEAST_BIT = -1074 };

learn_window learn_window_usual(void)
{
    return (learn_window){.low = LOW_USUAL, .digits = DIGITS_USUAL};
}

static int top_of(const learn_window *window)
{
    return window->low + DIGIT_BITS * window->digits;
}

bool learn_window_good(const learn_window *window)
{
    return window->low >= LOW_LEAST && window->low <= LOW_USUAL && window->low % DIGIT_BITS == 0 &&
           window->digits >= DIGITS_USUAL && window->digits <= LEARN_EXACT_DIGITS_MOST && top_of(window) <= TOP_MOST;
}

/* A double as sign and whole number times a power of two. */
typedef struct parts {
    uint64_t whole;
    int power;
    bool negative;
} parts;

static parts take_apart(double value)
{
    enum { FRACTION_BITS = 52 };
    const uint64_t fraction_mask = (UINT64_C(1) << FRACTION_BITS) - 1;
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    int exponent = (int)(bits >> FRACTION_BITS & 0x7ff);
    parts out = {.whole = bits & fraction_mask, .power = LEAST_BIT, .negative = bits >> 63};
    if (exponent > 0) {
        out.whole |= UINT64_C(1) << FRACTION_BITS;
        out.power += exponent - 1;
    }
    return out;
}

void learn_exact_add(int64_t *digits, const learn_window *window, double value, int64_t *range)
{
    parts of = take_apart(value);
    if (of.whole == 0)
        return;
    int lowest = of.power + __builtin_ctzll(of.whole), above = of.power + 64 - __builtin_clzll(of.whole);
    if (lowest < window->low || above > top_of(window)) {
        shoal_max_raise(range, 0, above);
        shoal_max_raise(range, 1, -lowest);
        return;
    }
    int place = of.power - window->low;
    if (place < 0) { /* what is shifted out are zeros */
        of.whole >>= -place;
        place = 0;
    }
    unsigned __int128 shifted = (unsigned __int128)of.whole << place % DIGIT_BITS;
    for (int64_t *digit = digits + place / DIGIT_BITS; shifted; digit++, shifted >>= DIGIT_BITS) {
        int64_t part = (int64_t)(shifted & UINT32_MAX);
        *digit += of.negative ? -part : part;
    }
}

bool learn_window_widen(learn_window *window, const int64_t *range)
{
    double above = shoal_max_value(range[0]), below = shoal_max_value(range[1]);
    int low = window->low, top = top_of(window);
    while (top < above && top < TOP_MOST)
        top += DIGIT_BITS;
    while (-below < low && low > LOW_LEAST)
        low -= DIGIT_BITS;
    bool wider = low < window->low || top > top_of(window);
    *window = (learn_window){.low = low, .digits = (top - low) / DIGIT_BITS};
    return wider;
}

/* A whole number of 32-bit digits, two more than a window can have: room for what is carried out of it. */
enum { WHOLE_DIGITS = LEARN_EXACT_DIGITS_MOST + 2 };

/* Carries, and turns a negative sum into its size; whether it was negative. */
static bool carry(uint32_t whole[WHOLE_DIGITS], const int64_t *digits, int count)
{
    __int128 carried = 0;
    for (int i = 0; i < WHOLE_DIGITS; i++) {
        carried += i < count ? digits[i] : 0;
        whole[i] = (uint32_t)carried;
        carried >>= DIGIT_BITS;
    }
    if (carried >= 0)
        return false;
    uint64_t one = 1;
    for (int i = 0; i < WHOLE_DIGITS; i++) {
        one += (uint32_t)~whole[i];
        whole[i] = (uint32_t)one;
        one >>= DIGIT_BITS;
    }
    return true;
}

static bool bit_at(const uint32_t *whole, int place)
{
    return place >= 0 && (whole[place / DIGIT_BITS] >> place % DIGIT_BITS & 1);
}

static bool any_below(const uint32_t *whole, int place)
{
    for (int i = 0; i < place / DIGIT_BITS; i++)
        if (whole[i])
            return true;
    return whole[place / DIGIT_BITS] & ((UINT32_C(1) << place % DIGIT_BITS) - 1);
}

double learn_exact_value(const int64_t *digits, const learn_window *window)
{
    uint32_t whole[WHOLE_DIGITS];
    bool negative = carry(whole, digits, window->digits);
    int highest = WHOLE_DIGITS * DIGIT_BITS - 1;
    while (highest >= 0 && !bit_at(whole, highest))
        highest--;
    if (highest < 0)
        return 0;
    /* The place of the last bit that a double has room for. */
    int last = highest - 52;
    if (last + window->low < LEAST_BIT)
        last = LEAST_BIT - window->low;
    if (last < 0)
        last = 0;
    uint64_t kept = 0;
    for (int place = highest; place >= last; place--)
        kept = kept << 1 | bit_at(whole, place);
    if (last > 0 && bit_at(whole, last - 1) && (any_below(whole, last - 1) || (kept & 1)))
        kept++;
    double value = ldexp((double)kept, last + window->low);
    return negative ? -value : value;
}
