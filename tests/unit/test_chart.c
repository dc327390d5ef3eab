/* Charts of what a run found: every curve is there, and its pick is named, whatever the numbers are. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <shoal/error.h>

#include "run/chart.h"

#define CURVE(n, v, at, by)                                                                                            \
    {                                                                                                                  \
        .name = (n), .values = (v), .picked = (at), .rule = (by)                                                       \
    }

static char folder[] = "/tmp/shoal-chart-XXXXXX";
static char svg[64];

static int make_folder(void **state)
{
    (void)state;
    snprintf(svg, sizeof svg, "%s/chart.svg", mkdtemp(folder) ? folder : "/nowhere");
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(svg);
    return rmdir(folder);
}

/* The file; the caller frees it. */
static char *draw(const learn_chart *chart, const char *about)
{
    char *text = calloc(1, 1 << 20);
    assert_int_equal(run_chart_write(svg, chart, about), SHOAL_OK);
    FILE *file = fopen(svg, "r");
    assert_non_null(file);
    assert_true(fread(text, 1, (1 << 20) - 1, file) > 0);
    fclose(file);
    return text;
}

static void test_picks_are_named(void **state)
{
    static const int64_t x[] = {2, 3, 5};
    static const double bent[] = {9, 2, 1}, scores[] = {0.25, 0.5, 0.75};
    const learn_chart chart = {.title = "Choosing K",
                               .x_name = "K",
                               .x = x,
                               .count = 3,
                               .curves = 2,
                               .curve = {CURVE("objective", bent, 3, "elbow"), CURVE("score", scores, NAN, "none")}};
    char *text = draw(&chart, "a<b.npy");
    (void)state;
    assert_non_null(strstr(text, "Choosing K: a&lt;b.npy"));
    assert_non_null(strstr(text, ">elbow: K = 3<"));
    assert_null(strstr(text, "none: "));
    assert_non_null(strstr(text, ">objective<"));
    assert_non_null(strstr(text, ">score<"));
    free(text);
}

static int count_text(const char *text, const char *part)
{
    int count = 0;
    for (; (text = strstr(text, part)); text += strlen(part))
        count++;
    return count;
}

/* Two lines of a table whose rows are places, and what lies below them. */
static void test_two_lines_and_filters(void **state)
{
    static const double table[] = {3, 4, 2, NAN, 1, 2};
    static const float weights[2 * 3 * 2 * 1] = {1, -1, 0.5F};
    learn_chart chart = {.title = "Learning curves",
                         .x_name = "epoch",
                         .count = 3,
                         .curves = 1,
                         .curve = {{.name = "loss",
                                    .values = table,
                                    .others = table + 1,
                                    .stride = 2,
                                    .called = {"training", "validation"},
                                    .picked = 3,
                                    .rule = "kept"}},
                         .filters = {.values = weights, .images = 2, .channels = 3, .height = 2, .width = 1}};
    (void)state;
    snprintf(chart.filters.title, sizeof chart.filters.title, "two filters");
    char *text = draw(&chart, "x.npy");
    assert_non_null(strstr(text, ">training<"));
    assert_non_null(strstr(text, ">validation<"));
    assert_non_null(strstr(text, ">kept: epoch = 3<"));
    assert_non_null(strstr(text, ">two filters<"));
    assert_int_equal(count_text(text, "data:image/png"), 3); /* and their scale */
    free(text);
    chart.count = 0; /* a net that was not trained */
    chart.filters.values = NULL;
    text = draw(&chart, "x.npy");
    assert_null(strstr(text, "nan"));
    assert_null(strstr(text, "kept"));
    free(text);
}

static void test_awkward_numbers(void **state)
{
    static const int64_t x[] = {1, INT32_MAX};
    static const double none[] = {NAN, NAN}, infinite[] = {INFINITY, 1}, great[] = {1e308, -1e308}, equal[] = {0, 0};
    learn_chart chart = {.title = "",
                         .x_name = "K",
                         .x = x,
                         .count = 2,
                         .curves = 4,
                         .curve = {CURVE("a", none, 1, "r"), CURVE("b", infinite, 1, "r"), CURVE("c", great, 1, "r"),
                                   CURVE("d", equal, 1, "r")}};
    char *text = draw(&chart, "");
    (void)state;
    assert_null(strstr(text, "nan"));
    assert_null(strstr(text, "inf"));
    free(text);
    chart.count = 1;
    free(draw(&chart, "one point"));
}

static void test_no_folder(void **state)
{
    static const int64_t x[] = {1};
    static const double y[] = {1};
    const learn_chart chart = {
        .title = "t", .x_name = "K", .x = x, .count = 1, .curves = 1, .curve = {CURVE("a", y, 1, "r")}};
    (void)state;
    assert_true(run_chart_write("/nowhere/at/all.svg", &chart, "x") < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_picks_are_named),
        cmocka_unit_test(test_two_lines_and_filters),
        cmocka_unit_test(test_awkward_numbers),
        cmocka_unit_test(test_no_folder),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
