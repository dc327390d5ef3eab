/* Types: names both ways, sizes, and conversion to float64. */
#include "data_support.h"

static void test_names_and_sizes(void **state)
{
    (void)state;
    static const char *const names[SHOAL_TYPES] = {"float32", "float64", "int8",   "int16",  "int32", "int64",
                                                   "uint8",   "uint16",  "uint32", "uint64", "bool"};
    static const size_t sizes[SHOAL_TYPES] = {4, 8, 1, 2, 4, 8, 1, 2, 4, 8, 1};
    for (int i = 0; i < SHOAL_TYPES; i++) {
        shoal_type type = SHOAL_TYPES;
        assert_string_equal(shoal_type_name((shoal_type)i), names[i]);
        assert_int_equal(shoal_type_size((shoal_type)i), sizes[i]);
        assert_int_equal(shoal_type_parse(&type, names[i]), SHOAL_OK);
        assert_int_equal(type, i);
        assert_int_equal(shoal_type_parse(&type, data_type_descr((shoal_type)i)), SHOAL_OK);
        assert_int_equal(type, i);
        assert_int_equal(shoal_type_parse(&type, data_type_descr((shoal_type)i) + 1), SHOAL_OK);
        assert_int_equal(type, i);
    }
}

static void test_what_is_no_type(void **state)
{
    (void)state;
    static const char *const names[] = {"", "f", "f2", "f16", "float", "<float32", "|f4", "<", "f4x", "c8", "O", ">f4"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        shoal_type type = SHOAL_TYPES;
        assert_int_equal(shoal_type_parse(&type, names[i]), SHOAL_USAGE);
        assert_non_null(strstr(shoal_error(), names[i]));
        assert_int_equal(type, SHOAL_TYPES);
    }
    shoal_type type;
    bool swapped = false;
    assert_true(data_type_parse(&type, &swapped, ">f4", 3) && swapped);
    assert_true(data_type_parse(&type, &swapped, ">u1", 3) && !swapped);
}

#define CONVERTS(type, c_type, ...)                                                                                    \
    do {                                                                                                               \
        static const c_type values[] = {__VA_ARGS__};                                                                  \
        double out[8];                                                                                                 \
        int64_t count = sizeof values / sizeof *values;                                                                \
        shoal_convert_float64(out, values, type, count);                                                               \
        for (int64_t i = 0; i < count; i++)                                                                            \
            assert_true(out[i] == (double)values[i]);                                                                  \
    } while (0)

static void test_conversion(void **state)
{
    (void)state;
    CONVERTS(SHOAL_FLOAT32, float, 0, -1.5f, 3.4e38f, 1e-45f);
    CONVERTS(SHOAL_FLOAT64, double, 0, -1.5, 1.7e308, 5e-324);
    CONVERTS(SHOAL_INT8, int8_t, -128, 0, 127);
    CONVERTS(SHOAL_INT16, int16_t, -32768, 32767);
    CONVERTS(SHOAL_INT32, int32_t, INT32_MIN, INT32_MAX);
    CONVERTS(SHOAL_INT64, int64_t, INT64_MIN, INT64_MAX, ((int64_t)1 << 53) + 1);
    CONVERTS(SHOAL_UINT8, uint8_t, 0, 255);
    CONVERTS(SHOAL_UINT16, uint16_t, 0, 65535);
    CONVERTS(SHOAL_UINT32, uint32_t, 0, UINT32_MAX);
    CONVERTS(SHOAL_UINT64, uint64_t, 0, UINT64_MAX, ((uint64_t)1 << 53) + 3);
    double out[3];
    shoal_convert_float64(out, "\0\1\5", SHOAL_BOOL, 3);
    assert_true(out[0] == 0 && out[1] == 1 && out[2] == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_names_and_sizes), cmocka_unit_test(test_what_is_no_type),
                                       cmocka_unit_test(test_conversion)};
    return cmocka_run_group_tests_name("data_type", tests, NULL, NULL);
}
