/* Numbers as text, both ways, whatever the locale.  See data_internal.h.
 *
 * Parsing is correctly rounded.  Nearly all numbers take one of two exact paths: up to 2^53 with a power of
 * ten up to 22 (one exact product or quotient of doubles: Clinger, "How to read floating point numbers
 * accurately", PLDI 1990), or up to 19 digits with a power of ten up to 27 (128-bit integers, since 5^27
 * fits 64 bits).  The rest goes to strtod in the C locale. */
#include "data_internal.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/option.h"

typedef unsigned __int128 uint128;

enum { GREATEST_FIVES = 27, GREATEST_TENS = 22 };

static const uint64_t fives[GREATEST_FIVES + 1] = {
    1u,
    5u,
    25u,
    125u,
    625u,
    3125u,
    15625u,
    78125u,
    390625u,
    1953125u,
    9765625u,
    48828125u,
    244140625u,
    1220703125u,
    6103515625u,
    30517578125u,
    152587890625u,
    762939453125u,
    3814697265625u,
    19073486328125u,
    95367431640625u,
    476837158203125u,
    2384185791015625u,
    11920928955078125u,
    59604644775390625u,
    298023223876953125u,
    1490116119384765625u,
    7450580596923828125u,
};

static const double tens[GREATEST_TENS + 1] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                               1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

/* A decimal number taken apart: (-1)^negative * digits * 10^exponent. */
struct decimal {
    uint64_t digits; /* the first 19 significant ones */
    int64_t exponent;
    bool negative;
    bool cut; /* there were more digits than fit */
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Takes digits into the decimal; returns the first byte that is none. */
static const char *take_digits(struct decimal *decimal, const char *at)
{
    static const uint64_t room = (UINT64_MAX - 9) / 10;
    for (; is_digit(*at); at++) {
        if (decimal->digits <= room)
            decimal->digits = decimal->digits * 10 + (uint64_t)(*at - '0');
        else {
            decimal->cut = true;
            decimal->exponent++;
        }
    }
    return at;
}

/* Takes an exponent if one is there; "1e" and "1e+" end before the e. */
static const char *take_exponent(struct decimal *decimal, const char *at)
{
    if (*at != 'e' && *at != 'E')
        return at;
    const char *digits = at + 1 + (at[1] == '-' || at[1] == '+');
    int64_t value = 0;
    if (!is_digit(*digits))
        return at;
    for (; is_digit(*digits); digits++)
        value = value < 100000000 ? value * 10 + (*digits - '0') : value;
    decimal->exponent += at[1] == '-' ? -value : value;
    return digits;
}

/* 2^exponent, for exponents of normal numbers. */
static double power_of_two(int exponent)
{
    uint64_t bits = (uint64_t)(exponent + 1023) << 52;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* value * 2^exponent, rounded to nearest, ties to even; `sticky` says that a little more belongs to `value`. */
static double round_product(uint128 value, int exponent, bool sticky)
{
    uint64_t high = (uint64_t)(value >> 64);
    int shift = high ? 64 - __builtin_clzll(high) : 0;
    sticky |= (value & (((uint128)1 << shift) - 1)) != 0;
    uint64_t bits = (uint64_t)(value >> shift);
    int leading = __builtin_clzll(bits);
    bits <<= leading; /* of the 64 bits now, the top 53 stay and the rest decides */
    uint64_t mantissa = bits >> 11, rest = bits & 0x7ff;
    if (rest > 0x400 || (rest == 0x400 && (sticky || (mantissa & 1))))
        mantissa++;
    return (double)mantissa * power_of_two(exponent + shift - leading + 11);
}

/* digits / 5^n * 2^-n, from a quotient of at least 64 bits and whether there is a remainder. */
static double divide_exactly(uint64_t digits, int n)
{
    int leading = __builtin_clzll(digits);
    uint128 numerator = (uint128)(digits << leading) << 64;
    uint128 quotient = numerator / fives[n];
    return round_product(quotient, -n - 64 - leading, quotient * fives[n] != numerator);
}

static bool convert_exactly(double *out, const struct decimal *decimal)
{
    int64_t exponent = decimal->exponent;
    if (decimal->cut)
        return false;
    if (decimal->digits == 0) {
        *out = 0;
    } else if (decimal->digits <= (uint64_t)1 << 53 && exponent >= -GREATEST_TENS && exponent <= GREATEST_TENS) {
        double digits = (double)decimal->digits;
        *out = exponent < 0 ? digits / tens[-exponent] : digits * tens[exponent];
    } else if (exponent < 0 && exponent >= -GREATEST_FIVES) {
        *out = divide_exactly(decimal->digits, (int)-exponent);
    } else if (exponent >= 0 && exponent <= GREATEST_FIVES) {
        *out = round_product((uint128)decimal->digits * fives[exponent], (int)exponent, false);
    } else {
        return false;
    }
    if (decimal->negative)
        *out = -*out;
    return true;
}

/* "nan", "inf" and "infinity", in any case. */
static const char *parse_word(double *out, const char *text, bool negative)
{
    static const struct {
        const char *word;
        double value;
    } words[] = {{"infinity", INFINITY}, {"inf", INFINITY}, {"nan", NAN}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t length = strlen(words[i].word);
        if (strncasecmp(text, words[i].word, length) == 0) {
            *out = negative ? -words[i].value : words[i].value;
            return text + length;
        }
    }
    return NULL;
}

const char *data_number_parse(double *out, const char *text)
{
    struct decimal decimal = {.negative = *text == '-'};
    const char *start = text + (*text == '-' || *text == '+');
    const char *at = take_digits(&decimal, start);
    size_t digits = (size_t)(at - start);
    if (*at == '.') {
        const char *fraction = at + 1;
        at = take_digits(&decimal, fraction);
        decimal.exponent -= at - fraction;
        digits += (size_t)(at - fraction);
    }
    if (digits == 0)
        return parse_word(out, start, decimal.negative);
    at = take_exponent(&decimal, at);
    if (!convert_exactly(out, &decimal))
        *out = strtod_l(text, NULL, base_plain_locale());
    return at;
}

bool data_is_number(const char *text, size_t length)
{
    double value;
    return length > 0 && data_number_parse(&value, text) == text + length;
}

static size_t print_whole(char *out, bool negative, uint64_t magnitude)
{
    char reversed[24];
    size_t length = 0, at = 0;
    do
        reversed[length++] = (char)('0' + magnitude % 10);
    while ((magnitude /= 10) != 0);
    if (negative)
        out[at++] = '-';
    while (length > 0)
        out[at++] = reversed[--length];
    out[at] = '\0';
    return at;
}

static size_t print_signed(char *out, int64_t value)
{
    return print_whole(out, value < 0, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

/* `single` says that reading back as float32 is enough. */
static size_t print_real(char *out, double value, bool single)
{
    if (isnan(value))
        return (size_t)sprintf(out, "nan");
    if (fabs(value) < 1e15 && value == trunc(value))
        return print_whole(out, signbit(value), (uint64_t)fabs(value));
    locale_t previous = uselocale(base_plain_locale());
    int length = 0;
    for (int digits = single ? 6 : 15; digits <= (single ? 9 : 17); digits++) {
        length = snprintf(out, DATA_NUMBER_CHARS, "%.*g", digits, value);
        if (single ? strtof(out, NULL) == (float)value : strtod(out, NULL) == value)
            break;
    }
    uselocale(previous);
    return (size_t)length;
}

size_t data_number_print(char out[DATA_NUMBER_CHARS], const void *values, shoal_type type, int64_t index)
{
    switch (type) {
    case SHOAL_FLOAT32: return print_real(out, ((const float *)values)[index], true);
    case SHOAL_FLOAT64: return print_real(out, ((const double *)values)[index], false);
    case SHOAL_INT8: return print_signed(out, ((const int8_t *)values)[index]);
    case SHOAL_INT16: return print_signed(out, ((const int16_t *)values)[index]);
    case SHOAL_INT32: return print_signed(out, ((const int32_t *)values)[index]);
    case SHOAL_INT64: return print_signed(out, ((const int64_t *)values)[index]);
    case SHOAL_UINT8: return print_whole(out, false, ((const uint8_t *)values)[index]);
    case SHOAL_UINT16: return print_whole(out, false, ((const uint16_t *)values)[index]);
    case SHOAL_UINT32: return print_whole(out, false, ((const uint32_t *)values)[index]);
    case SHOAL_UINT64: return print_whole(out, false, ((const uint64_t *)values)[index]);
    case SHOAL_BOOL: return print_whole(out, false, ((const uint8_t *)values)[index] != 0);
    case SHOAL_TYPES: break;
    }
    SHOAL_BUG("type %d", (int)type);
}
