/* src/plan/units.c: durations and money, read as people write them and written as people read them. */
#include "data_support.h"

#include <math.h>

#include "plan/units.h"

static double duration(const char *text)
{
    double seconds = -1;
    if (plan_parse_duration(&seconds, "--deadline", text) < 0)
        fail_msg("%s: %s", text, shoal_error());
    return seconds;
}

static double money(const char *text)
{
    double dollars = -1;
    if (plan_parse_money(&dollars, "--budget", text) < 0)
        fail_msg("%s: %s", text, shoal_error());
    return dollars;
}

static void durations_are_read(void **state)
{
    (void)state;
    assert_true(duration("30s") == 30);
    assert_true(duration("90m") == 5400);
    assert_true(duration("90min") == 5400);
    assert_true(duration("2h") == 7200);
    assert_true(duration("1.5h") == 5400);
    assert_true(duration("1d") == 86400);
    assert_true(duration("1h30m") == 5400);
    assert_true(duration("1 h 30 min") == 5400);
    assert_true(duration("1d2h3m4s") == 93784);
    assert_true(duration("12.5") == 12.5);
    assert_true(duration("1e3") == 1000);
    assert_true(duration("2 days") == 172800);
}

static void what_is_no_duration_is_told(void **state)
{
    (void)state;
    double seconds = 7;
    const char *wrong[] = {"", "h", "2x", "2h3", "30m1h", "2h2h", "two hours", "-2h", "1..5h", "2h,", "nan", "\n"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(plan_parse_duration(&seconds, "--deadline", wrong[i]), SHOAL_USAGE);
        assert_non_null(strstr(shoal_error(), "--deadline: "));
    }
    assert_int_equal(plan_parse_duration(&seconds, "--deadline", "0s"), SHOAL_USAGE);
    assert_string_equal(shoal_error(), "--deadline: '0s' is not more than 0");
    assert_int_equal(plan_parse_duration(&seconds, "--deadline", "-5"), SHOAL_USAGE);
    assert_int_equal(plan_parse_duration(&seconds, "--deadline", "40000d"), SHOAL_USAGE);
    assert_string_equal(shoal_error(), "--deadline: '40000d' is more than 100 years");
    assert_int_equal(plan_parse_duration(&seconds, "--deadline", "inf"), SHOAL_USAGE);
    assert_true(seconds == 7);
}

static void a_pause_may_be_nothing(void **state)
{
    (void)state;
    double seconds = 7;
    assert_int_equal(plan_parse_pause(&seconds, "--start", "0m"), SHOAL_OK);
    assert_true(seconds == 0);
    assert_int_equal(plan_parse_pause(&seconds, "--start", "2m"), SHOAL_OK);
    assert_true(seconds == 120);
    assert_int_equal(plan_parse_pause(&seconds, "--start", "-1"), SHOAL_USAGE);
    assert_string_equal(shoal_error(), "--start: '-1' is less than 0");
    assert_true(seconds == 120);
}

static void money_is_read(void **state)
{
    (void)state;
    assert_true(money("5") == 5);
    assert_true(money("5usd") == 5);
    assert_true(money("5 USD") == 5);
    assert_true(money("$5") == 5);
    assert_true(money("$0.25") == 0.25);
    assert_true(money("1e3usd") == 1000);
}

static void what_is_no_money_is_told(void **state)
{
    (void)state;
    double dollars = 7;
    const char *wrong[] = {"", "usd", "$", "5eur", "5$", "five", "0", "-5", "inf", "nan", "$$5", "1,000"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(plan_parse_money(&dollars, "--budget", wrong[i]), SHOAL_USAGE);
        assert_non_null(strstr(shoal_error(), "--budget: "));
    }
    assert_true(dollars == 7);
}

static void durations_are_written(void **state)
{
    (void)state;
    static const struct {
        double seconds;
        const char *text;
    } cases[] = {{0, "0 s"},           {0.0042, "4.2 ms"},  {0.85, "850 ms"},   {0.9996, "1.0 s"},
                 {12.44, "12.4 s"},    {99.9, "99.9 s"},    {99.96, "1.7 min"}, {450, "7.5 min"},
                 {2700, "45 min"},     {5400, "1.5 h"},     {4680, "1.3 h"},    {4.68e4, "13.0 h"},
                 {449280, "5.2 days"}, {INFINITY, "never"}, {NAN, "-"},         {8.64e6, "100 days"}};
    char text[PLAN_UNITS_BYTES];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        plan_format_duration(text, cases[i].seconds);
        assert_string_equal(text, cases[i].text);
    }
    plan_format_duration(text, 1e300);
    assert_string_equal(text, "1.2e+295 days");
}

static void money_is_written(void **state)
{
    (void)state;
    static const struct {
        double dollars;
        const char *text;
    } cases[] = {{0, "$0"},           {0.04211, "$0.0421"}, {0.99949, "$0.999"},    {0.99951, "$1.00"},
                 {0.09999, "$0.100"}, {1.2345, "$1.23"},    {999.99, "$999.99"},    {1234.4, "$1,234"},
                 {1e6, "$1,000,000"}, {-0.5, "-$0.500"},    {1.23e-6, "$1.23e-06"}, {NAN, "-"},
                 {1e-12, "$1.00e-12"}};
    char text[PLAN_UNITS_BYTES];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        plan_format_money(text, cases[i].dollars);
        assert_string_equal(text, cases[i].text);
    }
    plan_format_money(text, 1e300);
    assert_string_equal(text, "$1.00e+300");
}

static void errors_are_written(void **state)
{
    static const struct {
        double error;
        const char *text;
    } cases[] = {{0, "0.0%"},
                 {0.042, "4.2%"},
                 {0.79, "79%"},
                 {9.99, "999%"},
                 {138.39, "a factor of 139"},
                 {1e9, "a factor of 1e+09"},
                 {NAN, "-"}};
    char text[PLAN_UNITS_BYTES];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        plan_format_error(text, cases[i].error);
        assert_string_equal(text, cases[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(durations_are_read),       cmocka_unit_test(what_is_no_duration_is_told),
        cmocka_unit_test(a_pause_may_be_nothing),   cmocka_unit_test(money_is_read),
        cmocka_unit_test(what_is_no_money_is_told), cmocka_unit_test(durations_are_written),
        cmocka_unit_test(money_is_written),         cmocka_unit_test(errors_are_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
