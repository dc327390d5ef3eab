/* Values that a file stores in other types than rows have: every float16, and every pair of types. */
#include "data_support.h"

#include <math.h>

static double value_of_half(uint16_t half)
{
    const int exponent = half >> 10 & 0x1f, mantissa = half & 0x3ff;
    const double sign = half & 0x8000 ? -1 : 1;
    if (exponent == 0x1f)
        return mantissa ? NAN : sign * INFINITY;
    return exponent ? sign * ldexp(1024 + mantissa, exponent - 25) : sign * ldexp(mantissa, -24);
}

static void test_every_half(void **state)
{
    (void)state;
    static float values[1 << 16];
    uint16_t *halves = (uint16_t *)values;
    for (int i = 0; i < 1 << 16; i++)
        halves[i] = (uint16_t)i;
    data_stored_widen(values, 1 << 16, DATA_STORED_HALF, SHOAL_FLOAT32);
    for (int i = 0; i < 1 << 16; i++) {
        const double expected = value_of_half((uint16_t)i);
        if (isnan(expected) ? !isnan(values[i]) : values[i] != expected)
            fail_msg("%04x is %g instead of %g", i, values[i], expected);
        assert_int_equal(signbit(values[i]) != 0, i >> 15);
    }
}

/* The least and the greatest value of a type, as float64. */
static void limits_of(double out[2], shoal_type type)
{
    const int bits = (int)shoal_type_size(type) * 8;
    const bool has_sign = type >= SHOAL_INT8 && type <= SHOAL_INT64;
    out[0] = has_sign ? -ldexp(1, bits - 1) : 0;
    out[1] = ldexp(1, bits - has_sign) - 1;
    if (type == SHOAL_FLOAT32)
        out[0] = -0x1.fffffep127, out[1] = 0x1p-149;
}

static void put(void *out, shoal_type type, int index, double value)
{
    switch (type) {
    case SHOAL_FLOAT32: ((float *)out)[index] = (float)value; break;
    case SHOAL_INT8: ((int8_t *)out)[index] = (int8_t)value; break;
    case SHOAL_INT16: ((int16_t *)out)[index] = (int16_t)value; break;
    case SHOAL_INT32: ((int32_t *)out)[index] = (int32_t)value; break;
    case SHOAL_UINT8: ((uint8_t *)out)[index] = (uint8_t)value; break;
    case SHOAL_UINT16: ((uint16_t *)out)[index] = (uint16_t)value; break;
    case SHOAL_UINT32: ((uint32_t *)out)[index] = (uint32_t)value; break;
    default: fail();
    }
}

/* More than one block of values, each of which keeps its value. */
static void expect_widened(shoal_type from, shoal_type to)
{
    enum { COUNT = 1300 };
    static _Alignas(8) unsigned char values[COUNT * 8];
    double limits[2], widened[COUNT];
    limits_of(limits, from);
    for (int i = 0; i < COUNT; i++)
        put(values, from, i, i < 100 ? i : limits[i % 2]);
    data_stored_widen(values, COUNT, DATA_STORED_TYPE + from, to);
    shoal_convert_float64(widened, values, to, COUNT);
    for (int i = 0; i < COUNT; i++) {
        const double expected = i < 100 ? i : limits[i % 2];
        if (widened[i] != (to == SHOAL_FLOAT32 ? (float)expected : expected))
            fail_msg("%s to %s: %g", shoal_type_name(from), shoal_type_name(to), widened[i]);
    }
}

static void test_every_pair(void **state)
{
    (void)state;
    int fitting = 0;
    for (int from = 0; from < SHOAL_TYPES; from++)
        for (int to = 0; to < SHOAL_TYPES; to++)
            if (data_stored_fits((shoal_type)from, (shoal_type)to)) {
                fitting++;
                expect_widened((shoal_type)from, (shoal_type)to);
            }
    assert_int_equal(fitting, 38);
    assert_false(data_stored_fits(SHOAL_INT8, SHOAL_UINT16));
    assert_false(data_stored_fits(SHOAL_UINT16, SHOAL_INT16));
    assert_false(data_stored_fits(SHOAL_FLOAT32, SHOAL_INT64));
    assert_false(data_stored_fits(SHOAL_INT64, SHOAL_FLOAT64));
    assert_false(data_stored_fits(SHOAL_BOOL, SHOAL_FLOAT64));
    assert_true(data_stored_fits(SHOAL_UINT8, SHOAL_INT16));
    assert_true(data_stored_fits(SHOAL_FLOAT32, SHOAL_FLOAT64));
}

static void test_names(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool known, big;
    } names[] = {{"f2", true, false}, {"<f2", true, false},       {"=f2", true, false},
                 {">f2", true, true}, {"|f2", false, false},      {"float16", true, false},
                 {"f", false, false}, {"<float16", false, false}, {"", false, false}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        shoal_type type = SHOAL_BOOL;
        int stored = 0;
        bool swapped = false;
        const bool known = data_stored_parse(&type, &stored, &swapped, names[i].text, strlen(names[i].text));
        assert_int_equal(known, names[i].known);
        if (!known)
            continue;
        assert_int_equal(type, SHOAL_FLOAT32);
        assert_int_equal(stored, DATA_STORED_HALF);
        const bool little = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, marked = strchr("<>", names[i].text[0]) != NULL;
        assert_int_equal(swapped, marked && names[i].big == little);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_half), cmocka_unit_test(test_every_pair),
                                       cmocka_unit_test(test_names)};
    return cmocka_run_group_tests_name("data_stored", tests, NULL, NULL);
}
