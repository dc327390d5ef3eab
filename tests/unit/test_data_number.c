/* Numbers as text: parsing equals strtod bit for bit, printing reads back as the same value. */
#include "data_support.h"

#include <locale.h>
#include <math.h>

#include "base/random.h"

static void parses_as_strtod(const char *text)
{
    double got = 0, expected;
    char *expected_end;
    expected = strtod(text, &expected_end);
    const char *end = data_number_parse(&got, text);
    assert_ptr_equal(end, expected_end);
    if (memcmp(&got, &expected, sizeof got) != 0 && !(isnan(got) && isnan(expected)))
        fail_msg("%s is %a, not %a", text, expected, got);
}

static void test_parse_corners(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "0",
        "-0",
        "+1",
        "1.",
        ".5",
        "-.5",
        "00012",
        "0.1",
        "1e22",
        "1e23",
        "9007199254740993",
        "9007199254740992.5",
        "9007199254740993e-27",
        "18446744073709551615",
        "18446744073709551616",
        "1844674407370955161599999",
        "5e-324",
        "2.4703282292062327e-324",
        "2.4703282292062328e-324",
        "1.7976931348623157e308",
        "1e308",
        "1e309",
        "1e-400",
        "1e99999999999999999999",
        "1e-99999999999999999999",
        "0e99999999999",
        "2.2250738585072011e-308",
        "nan",
        "NaN",
        "inf",
        "-Infinity",
        "1e",
        "1e+",
        "1.5e+3x",
        "123abc",
        "7450580596923828125e27",
        "7450580596923828125e-27",
        "0.000000000000000000000000000000000000000000000000000000000000000000001",
        "3.141592653589793238462643383279502884197169399375105820974944592307816406286"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        parses_as_strtod(texts[i]);
}

static void test_parse_refuses(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "-", "+", ".", "-.", "e5", "abc", "--1", ".e1", "n", "in", "#1", "\"1\""};
    double value;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_null(data_number_parse(&value, texts[i]));
    assert_false(data_is_number("1x", 2));
    assert_true(data_is_number("1x", 1));
    assert_false(data_is_number("", 0));
    const char *hexadecimal = "0x10";
    assert_ptr_equal(data_number_parse(&value, hexadecimal), hexadecimal + 1);
}

/* Random digits and exponents around the limits of each exact path. */
static void test_parse_random(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 200000; i++) {
        char text[64];
        uint64_t bits = base_random_u64(7, BASE_FOR_DATA, i, 0), more = base_random_u64(7, BASE_FOR_DATA, i, 1);
        int exponent = (int)(more % 70) - 35;
        uint64_t digits = bits >> (more >> 32) % 64;
        if (i % 3 == 0)
            snprintf(text, sizeof text, "%llue%d", (unsigned long long)digits, exponent);
        else if (i % 3 == 1)
            snprintf(text, sizeof text, "-%llu.%llu", (unsigned long long)(digits >> 40), (unsigned long long)more);
        else
            snprintf(text, sizeof text, "0.%0*llu", (int)(more % 30), (unsigned long long)digits);
        parses_as_strtod(text);
    }
}

/* Exactly half way between two doubles, and a little to either side. */
static void test_parse_ties(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 20000; i++) {
        char text[64];
        uint64_t odd = (base_random_u64(3, BASE_FOR_DATA, i, 0) >> 10 | (uint64_t)1 << 53) | 1; /* 54 bits */
        for (int shift = 0; shift < 9; shift++) {
            for (int64_t nudge = -1; nudge <= 1; nudge++) {
                snprintf(text, sizeof text, "%llu", (unsigned long long)((odd << shift) + (uint64_t)nudge));
                parses_as_strtod(text);
            }
        }
    }
}

static void check_round_trip(double value)
{
    char text[DATA_NUMBER_CHARS];
    size_t length = data_number_print(text, &value, SHOAL_FLOAT64, 0);
    assert_int_equal(length, strlen(text));
    double back = strtod(text, NULL);
    if (memcmp(&back, &value, sizeof value) != 0)
        fail_msg("%a became %s", value, text);
    float single = (float)value;
    data_number_print(text, &single, SHOAL_FLOAT32, 0);
    float single_back = strtof(text, NULL);
    if (memcmp(&single_back, &single, sizeof single) != 0)
        fail_msg("%a became %s", (double)single, text);
}

static void test_print_round_trips(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 20000; i++) {
        uint64_t bits = base_random_u64(5, BASE_FOR_DATA, i, 0);
        double value;
        memcpy(&value, &bits, sizeof value);
        if (isfinite(value))
            check_round_trip(value);
        check_round_trip((double)(int32_t)bits / 1000);
    }
    check_round_trip(-0.0);
    check_round_trip(INFINITY);
    check_round_trip(-INFINITY);
    check_round_trip(5e-324);
    check_round_trip(1e15);
}

static void test_print_is_short(void **state)
{
    (void)state;
    char text[DATA_NUMBER_CHARS];
    double reals[] = {0.1, 1e300, NAN, 3, -17};
    static const char *const expected[] = {"0.1", "1e+300", "nan", "3", "-17"};
    for (int i = 0; i < 5; i++) {
        data_number_print(text, reals, SHOAL_FLOAT64, i);
        assert_string_equal(text, expected[i]);
    }
    float single = 0.1f;
    data_number_print(text, &single, SHOAL_FLOAT32, 0);
    assert_string_equal(text, "0.1");
    int64_t least = INT64_MIN;
    data_number_print(text, &least, SHOAL_INT64, 0);
    assert_string_equal(text, "-9223372036854775808");
    uint64_t greatest = UINT64_MAX;
    data_number_print(text, &greatest, SHOAL_UINT64, 0);
    assert_string_equal(text, "18446744073709551615");
}

/* Chooses a locale with a decimal comma; when none is installed one is made, for which Debian has the package
 * locales. */
static bool use_decimal_comma(void)
{
    char folder[] = "/tmp/shoal-locale-XXXXXX", command[128];
    if (setlocale(LC_ALL, "de_DE.UTF-8") || setlocale(LC_ALL, "fr_FR.UTF-8"))
        return true;
    if (!mkdtemp(folder))
        return false;
    snprintf(command, sizeof command, "localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8 >%s/log 2>&1", folder, folder);
    setenv("LOCPATH", folder, 1);
    bool made = system(command) == 0 && setlocale(LC_ALL, "de_DE.UTF-8");
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command) == 0 && made;
}

/* A locale with a decimal comma changes nothing. */
static void test_locale_does_not_matter(void **state)
{
    (void)state;
    if (!use_decimal_comma())
        skip();
    assert_string_equal(localeconv()->decimal_point, ",");
    char text[DATA_NUMBER_CHARS];
    double value = 0.1, parsed;
    data_number_print(text, &value, SHOAL_FLOAT64, 0);
    assert_string_equal(text, "0.1");
    data_number_parse(&parsed, "0.1000000000000000000000000000000000000000001");
    assert_true(parsed == 0.1);
    setlocale(LC_ALL, "C");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse_corners),          cmocka_unit_test(test_parse_refuses),
        cmocka_unit_test(test_parse_random),           cmocka_unit_test(test_parse_ties),
        cmocka_unit_test(test_print_round_trips),      cmocka_unit_test(test_print_is_short),
        cmocka_unit_test(test_locale_does_not_matter),
    };
    return cmocka_run_group_tests_name("data_number", tests, NULL, NULL);
}
