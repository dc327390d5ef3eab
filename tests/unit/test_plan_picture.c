/* src/plan/picture.c: the Pareto front is that of the definition; the picture is XML whatever the names are,
 * stays small however many points there are, shows what there is to show, and its labels do not lie on each other. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <expat.h>

#include <shoal/error.h>

#include "base/memory.h"
#include "plan/pareto.h"
#include "plan/picture.h"
#include "plot/plot.h"

static char folder[] = "/tmp/shoal-plan-picture-XXXXXX";
static char path[64];

static int make_folder(void **state)
{
    (void)state;
    snprintf(path, sizeof path, "%s/plan.svg", mkdtemp(folder) ? folder : "/nowhere");
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(folder);
}

/* ---- the Pareto front -------------------------------------------------------------------------------------------- */

static bool beats(const plan_tradeoff *p, const plan_tradeoff *q)
{
    return p->seconds <= q->seconds && p->dollars <= q->dollars && (p->seconds < q->seconds || p->dollars < q->dollars);
}

static void the_front_is_what_nothing_beats(void **state)
{
    (void)state;
    enum { MOST = 60 };
    static const double odd[] = {INFINITY, NAN, -INFINITY};
    plan_tradeoff point[MOST] = {0};
    bool front[MOST];
    srand(7);
    for (int trial = 0; trial < 3000; trial++) {
        int count = rand() % (MOST + 1), values = 1 + rand() % 30;
        for (int i = 0; i < count; i++) {
            point[i].seconds = rand() % 20 ? 1 + rand() % values : odd[rand() % 3];
            point[i].dollars = rand() % 20 ? rand() % values : odd[rand() % 2];
        }
        memset(front, 1, sizeof front);
        assert_int_equal(plan_pareto(front, point, count), SHOAL_OK);
        for (int i = 0; i < count; i++) {
            bool expected = isfinite(point[i].seconds) && isfinite(point[i].dollars);
            for (int j = 0; j < count && expected; j++) {
                bool other = isfinite(point[j].seconds) && isfinite(point[j].dollars);
                bool same = j < i && point[j].seconds == point[i].seconds && point[j].dollars == point[i].dollars;
                expected = !other || (!beats(&point[j], &point[i]) && !same);
            }
            assert_int_equal(front[i], expected);
        }
    }
}

/* ---- reading a picture ------------------------------------------------------------------------------------------- */

enum { TEXTS_MOST = 400 };

typedef struct drawing {
    char *bytes;
    long size;
    int panels, rings, limits, fronts;
    bool ink;              /* the group is drawn in black */
    double ring_x, ring_y; /* of the last */
    int texts;
    struct written {
        char text[512];
        double left, right, middle, size;
        bool turned;
    } text[TEXTS_MOST];
    bool in_text;
} drawing;

static const char *attribute(const char **attributes, const char *name)
{
    for (; *attributes; attributes += 2)
        if (strcmp(attributes[0], name) == 0)
            return attributes[1];
    return "";
}

static bool has(const char **attributes, const char *name, const char *value)
{
    return strcmp(attribute(attributes, name), value) == 0;
}

/* What it is shows in how it is drawn: frames are grey, a limit has dashes, the front is a wide line without, and a
 * ring is larger than that of the legend. */
static void count_shape(drawing *d, const char *name, const char **attributes)
{
    const bool line = strcmp(name, "path") == 0, ink = has(attributes, "stroke", "#111111");
    d->panels += strcmp(name, "rect") == 0 && has(attributes, "stroke", "#555555");
    d->limits += line && ink && has(attributes, "stroke-dasharray", "5 4");
    d->fronts += line && ink && has(attributes, "stroke-width", "1.6");
    if (strcmp(name, "g") == 0)
        d->ink = ink;
    if (strcmp(name, "circle") == 0 && d->ink && has(attributes, "r", "8")) {
        d->rings++;
        d->ring_x = atof(attribute(attributes, "cx"));
        d->ring_y = atof(attribute(attributes, "cy"));
    }
}

static void opened(void *context, const char *name, const char **attributes)
{
    drawing *d = context;
    count_shape(d, name, attributes);
    d->in_text = strcmp(name, "text") == 0;
    if (!d->in_text)
        return;
    assert_true(d->texts < TEXTS_MOST);
    struct written *w = &d->text[d->texts++];
    *w = (struct written){.left = atof(attribute(attributes, "x")), .size = atof(attribute(attributes, "font-size"))};
    w->middle = atof(attribute(attributes, "y")) - w->size * 0.36;
    w->turned = *attribute(attributes, "transform") != '\0';
    const char *anchor = attribute(attributes, "text-anchor");
    w->right = strcmp(anchor, "middle") == 0 ? 0.5 : strcmp(anchor, "end") == 0 ? 1 : 0; /* until the text is known */
}

static void characters(void *context, const char *text, int length)
{
    drawing *d = context;
    if (d->in_text)
        strncat(d->text[d->texts - 1].text, text, (size_t)length);
}

static void closed(void *context, const char *name)
{
    drawing *d = context;
    if (strcmp(name, "text") != 0)
        return;
    struct written *w = &d->text[d->texts - 1];
    double width = plot_text_width(w->text, w->size) * 0.93;
    assert_true(w->size > 0);
    w->left -= w->right * width;
    w->right = w->left + width;
    d->in_text = false;
}

static void load(drawing *d)
{
    FILE *file = fopen(path, "rb");
    *d = (drawing){0};
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    d->size = ftell(file);
    rewind(file);
    d->bytes = calloc(1, (size_t)d->size + 1);
    assert_int_equal(fread(d->bytes, 1, (size_t)d->size, file), d->size);
    fclose(file);
    XML_Parser parser = XML_ParserCreate(NULL);
    XML_SetUserData(parser, d);
    XML_SetElementHandler(parser, opened, closed);
    XML_SetCharacterDataHandler(parser, characters);
    if (XML_Parse(parser, d->bytes, (int)d->size, 1) != XML_STATUS_OK)
        fail_msg("%s in line %lu", XML_ErrorString(XML_GetErrorCode(parser)), XML_GetCurrentLineNumber(parser));
    XML_ParserFree(parser);
    assert_null(strstr(d->bytes, "nan"));
    assert_null(strstr(d->bytes, "inf"));
}

static bool says(const drawing *d, const char *text)
{
    for (int i = 0; i < d->texts; i++)
        if (strcmp(d->text[i].text, text) == 0)
            return true;
    return false;
}

static void check_labels_apart(const drawing *d)
{
    for (int i = 0; i < d->texts; i++)
        for (int j = 0; j < i; j++) {
            const struct written *a = &d->text[i], *b = &d->text[j];
            bool apart = a->turned || b->turned || a->right < b->left || b->right < a->left ||
                         fabs(a->middle - b->middle) > (a->size + b->size) * 0.4;
            if (!apart)
                fail_msg("'%s' and '%s' lie on each other", a->text, b->text);
        }
}

static drawing drawn;

/* As the chooser does. */
static void mark_front(const plan_picture *picture)
{
    plan_tradeoff *outcome = calloc((size_t)picture->points, sizeof *outcome);
    bool *front = calloc((size_t)picture->points, sizeof *front);
    for (int64_t i = 0; i < picture->points; i++)
        outcome[i] = (plan_tradeoff){picture->point[i].seconds, picture->point[i].dollars};
    assert_int_equal(plan_pareto(front, outcome, picture->points), SHOAL_OK);
    for (int64_t i = 0; i < picture->points; i++)
        ((plan_point *)picture->point)[i].front = front[i];
    free(front);
    free(outcome);
}

static void draw(const plan_picture *picture)
{
    free(drawn.bytes);
    mark_front(picture);
    if (plan_picture_write(path, picture) < 0)
        fail_msg("%s", shoal_error());
    load(&drawn);
}

/* ---- plans ------------------------------------------------------------------------------------------------------- */

static plan_point points[200000];
static int64_t count;

static void add(const char *machine, int64_t workers, double work, double price)
{
    double seconds = 30 + work / (double)workers + 2 * sqrt((double)workers),
           dollars = seconds * (double)workers * price / 3600;
    points[count++] = (plan_point){machine, workers,        seconds,       0.85 * seconds, 1.3 * seconds,
                                   dollars, 0.85 * dollars, 1.3 * dollars, true,           false};
}

static const char *const four[] = {"aws:us-east-1/c7i.large", "aws:us-east-1/c7i.2xlarge", "aws:us-east-1/c8g.8xlarge",
                                   "azure:eastus/Standard_D4s_v5"};

static void plan_four(void)
{
    static const double cores[] = {2, 8, 32, 4}, price[] = {0.09, 0.36, 1.28, 0.19};
    count = 0;
    for (int m = 0; m < 4; m++)
        for (int w = 1; w <= 256; w *= 2)
            add(four[m], w, 72000 / cores[m], price[m]);
    points[19].best = true;
}

static void an_ordinary_plan_has_all_its_parts(void **state)
{
    (void)state;
    plan_four();
    draw(&(plan_picture){"kmeans, 10 rows", "cheapest in time", 1800, 5, points, count, NULL});
    assert_int_equal(drawn.panels, 3);
    assert_int_equal(drawn.rings, 3);
    assert_int_equal(drawn.limits, 4);
    assert_int_equal(drawn.fronts, 2); /* and its sample in the legend */
    static const char *const expected[] = {"kmeans, 10 rows",
                                           "Best: 2 × aws:us-east-1/c8g.8xlarge, 19 min, $0.823: cheapest in time",
                                           "Time against workers",
                                           "Cost against workers",
                                           "Cost against time",
                                           "deadline 30 min",
                                           "budget $5.00",
                                           "2 × c8g.8xlarge",
                                           "10 min",
                                           "$1",
                                           "100",
                                           "best",
                                           "Pareto front (with workers)",
                                           "90% of runs of the best's machine"};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        if (!says(&drawn, expected[i]))
            fail_msg("'%s' is not there", expected[i]);
    for (int i = 0; i < 4; i++)
        assert_true(says(&drawn, four[i]));
    assert_false(says(&drawn, "other machines"));
    check_labels_apart(&drawn);
}

static void the_ring_is_where_the_axes_say(void **state)
{
    (void)state;
    plan_four();
    draw(&(plan_picture){"t", "w", 0, 0, points, count, NULL});
    const struct written *day[2] = {0}; /* two ticks of the last panel's time */
    double minutes[2] = {1, 10};
    for (int i = 0; i < drawn.texts; i++) {
        const struct written *w = &drawn.text[i];
        bool in_map = w->middle > 350 && w->middle < 375 && w->left > 780;
        day[0] = in_map && strcmp(w->text, "1 min") == 0 ? w : day[0];
        day[1] = in_map && strcmp(w->text, "10 min") == 0 ? w : day[1];
    }
    assert_true(day[0] && day[1]);
    double at[2] = {(day[0]->left + day[0]->right) / 2, (day[1]->left + day[1]->right) / 2};
    double share = log(points[19].seconds / 60 / minutes[0]) / log(minutes[1] / minutes[0]);
    assert_true(fabs(drawn.ring_x - (at[0] + share * (at[1] - at[0]))) < 0.5);
}

static void what_is_free_has_one_panel(void **state)
{
    (void)state;
    plan_four();
    for (int64_t i = 0; i < count; i++)
        points[i].dollars = points[i].dollars_low = points[i].dollars_high = 0;
    draw(&(plan_picture){"t", "w", 1800, 0, points, count, NULL});
    assert_int_equal(drawn.panels, 1);
    assert_int_equal(drawn.fronts, 0);
    assert_int_equal(drawn.limits, 1);
    assert_true(says(&drawn, "Best: 2 × aws:us-east-1/c8g.8xlarge, 19 min: w"));
    check_labels_apart(&drawn);
}

static void thousands_of_points_stay_small_and_few_are_named(void **state)
{
    (void)state;
    static char names[190][32];
    count = 0;
    for (int m = 0; m < 190; m++) {
        snprintf(names[m], sizeof names[m], "machine-%d", m);
        for (int w = 1; w <= 1000; w++)
            add(names[m], w, 3e5 / (1 + m % 40), 0.05 * (1 + m % 40 * (1 + m * 7919 % 100 / 150.0)));
    }
    points[150 * 1000 + 4].best = true;
    draw(&(plan_picture){"t", "w", 3600, 0, points, count, NULL});
    assert_true(drawn.size < 500000);
    assert_true(says(&drawn, "other machines"));
    assert_true(says(&drawn, "machine-150"));
    int named = 0;
    for (int i = 0; i < drawn.texts; i++)
        named += strncmp(drawn.text[i].text, "machine-", 8) == 0;
    assert_in_range(named, 1, PLAN_STYLES);
    check_labels_apart(&drawn);
}

static void eight_machines_are_all_named(void **state)
{
    (void)state;
    static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i"};
    count = 0;
    for (int m = 0; m < 9; m++)
        for (int w = 1; w <= 64; w *= 2)
            add(names[m], w, 1000 + 100 * m, 0.1); /* all but the first are beaten */
    draw(&(plan_picture){"t", "", 0, 0, points, 8 * 7, NULL});
    for (int m = 0; m < 8; m++)
        assert_true(says(&drawn, names[m]));
    assert_false(says(&drawn, "other machines"));
    draw(&(plan_picture){"t", "", 0, 0, points, count, NULL});
    assert_true(says(&drawn, "a") && says(&drawn, "other machines"));
    assert_false(says(&drawn, "b"));
}

static void extremes_are_drawn_or_left_out(void **state)
{
    (void)state;
    static const double all[] = {5e-324, 1e-300, 1e-9, 1e-3, 0.7, 1, 59, 3600, 1e5, 1e9, 1e15, 1e300, 1.7e308};
    enum { ALL = sizeof all / sizeof *all };
    for (int i = 0; i < ALL; i++)
        for (int j = 0; j < ALL; j++) {
            count = 0;
            points[count++] = (plan_point){"x", 1, all[i], 0, INFINITY, all[j], -1, NAN, true, true};
            points[count++] = (plan_point){"x", INT64_MAX, all[j], NAN, 1, all[i], 0, INFINITY, true, false};
            points[count++] = (plan_point){"y", 3, INFINITY, 1, 1, 1, 1, 1, false, false};
            points[count++] = (plan_point){"y", 3, NAN, 1, 1, 1, 1, 1, false, false};
            draw(&(plan_picture){"t", "w", all[i], all[j], points, count, NULL});
            assert_false(says(&drawn, "y"));
            draw(&(plan_picture){"t", "w", all[j], all[ALL - 1 - i], points, 1, NULL});
            assert_true(drawn.size < 30000);
        }
}

static void equal_points_are_one(void **state)
{
    (void)state;
    count = 0;
    for (int i = 0; i < 5; i++)
        points[count++] = (plan_point){"x", 8, 100, 100, 100, 2, 2, 2, true, i == 0};
    draw(&(plan_picture){"t", NULL, 0, 0, points, count, NULL});
    assert_true(says(&drawn, "Best: 8 × x, 1.7 min, $2.00"));
    assert_false(says(&drawn, "90% of runs"));
    check_labels_apart(&drawn);
    draw(&(plan_picture){NULL, NULL, 0, 0, points, 1, NULL});
    assert_int_equal(drawn.rings, 3);
}

static void names_can_not_break_the_picture(void **state)
{
    (void)state;
    static const char *const odd[] = {"<&>\"'",
                                      "</text><script>x()</script>",
                                      "]]>",
                                      "\xff\xfe\xc3",
                                      "a\001\033[31m\nb",
                                      "\xed\xa0\x80",
                                      "\xef\xbf\xbf",
                                      "ø→🐟",
                                      "&amp;",
                                      "\xf0\x9f",
                                      "%s%n"};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        count = 0;
        add(odd[i], 1, 1000, 0.1);
        add(odd[i], 2, 1000, 0.1);
        points[0].best = true;
        draw(&(plan_picture){odd[i], odd[i], 10, 10, points, count, NULL});
        assert_null(strstr(drawn.bytes, "<script"));
    }
    count = 0;
    add("&amp;<b>", 1, 1000, 0.1);
    draw(&(plan_picture){"ø → 1 < 2", "", 0, 0, points, count, NULL});
    assert_true(says(&drawn, "&amp;<b>"));
    assert_true(says(&drawn, "ø → 1 < 2"));
}

static void long_names_are_cut(void **state)
{
    (void)state;
    char name[300] = "";
    memset(name, 'm', sizeof name - 1);
    count = 0;
    add(name, 1, 1000, 0.1);
    add(name, 64, 1000, 0.1);
    points[0].best = true;
    draw(&(plan_picture){name, name, 0, 0, points, count, NULL});
    for (int i = 0; i < drawn.texts; i++)
        if (drawn.text[i].right > 1100)
            fail_msg("'%s' goes beyond the picture", drawn.text[i].text);
}

static void the_same_plan_gives_the_same_bytes(void **state)
{
    (void)state;
    plan_four();
    draw(&(plan_picture){"t", "w", 1800, 5, points, count, NULL});
    char *first = strdup(drawn.bytes);
    draw(&(plan_picture){"t", "w", 1800, 5, points, count, NULL});
    assert_string_equal(first, drawn.bytes);
    free(first);
}

static void what_can_not_be_written_is_told(void **state)
{
    (void)state;
    unlink(path);
    count = 0;
    points[count++] = (plan_point){"y", 3, INFINITY, 1, 1, 1, 1, 1, false, false};
    assert_int_equal(plan_picture_write(path, &(plan_picture){"t", "w", 0, 0, points, count, NULL}), SHOAL_INVALID);
    assert_string_equal(shoal_error(), "nothing to draw: no configuration ever ends");
    assert_int_equal(plan_picture_write(path, &(plan_picture){"t", "w", 0, 0, points, 0, NULL}), SHOAL_INVALID);
    assert_int_equal(access(path, F_OK), -1);
    plan_four();
    assert_int_equal(plan_picture_write("/nowhere/x.svg", &(plan_picture){"t", "w", 0, 0, points, count, NULL}),
                     SHOAL_SYSTEM);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    int status = SHOAL_MEMORY, failures = 0;
    plan_four();
    for (; status == SHOAL_MEMORY; failures++) {
        unlink(path);
        base_memory_fail_after(failures);
        status = plan_picture_write(path, &(plan_picture){"t", "w", 0, 0, points, count, NULL});
        base_memory_fail_after(-1);
        assert_int_equal(access(path, F_OK), status == SHOAL_OK ? 0 : -1);
    }
    assert_int_equal(status, SHOAL_OK);
    assert_true(failures > 6);
}

static void axes_have_a_few_round_ticks(void **state)
{
    (void)state;
    plot_axis axis;
    srand(3);
    for (int trial = 0; trial < 20000; trial++) {
        plot_unit unit = (plot_unit)(PLOT_COUNT + trial % 3);
        double least = unit == PLOT_COUNT ? 1 + rand() % 2000 : pow(10, rand() % 1000 / 100.0 - 4);
        double greatest = unit == PLOT_COUNT ? least + rand() % 5000 : least * pow(10, rand() % 500 / 100.0);
        bool upright = rand() % 2;
        plot_axis_init_unit(&axis, unit, least, greatest, upright ? 352 : 76, upright ? 88 : 358);
        assert_in_range(axis.ticks, 2, 12);
        assert_true(axis.low < least + 1e-12 * least && axis.high > greatest - 1e-12 * greatest);
        for (int i = 0; i < axis.ticks; i++) {
            char label[32], other[32];
            plot_axis_label(label, &axis, i);
            if (!*label || plot_text_width(label, 11) > 62)
                fail_msg("the label '%s' of an axis from %g to %g", label, least, greatest);
            for (int j = 0; j < i; j++) {
                plot_axis_label(other, &axis, j);
                assert_string_not_equal(label, other);
                assert_true(fabs(plot_axis_place(&axis, axis.tick[i]) - plot_axis_place(&axis, axis.tick[j])) > 20);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_front_is_what_nothing_beats),
        cmocka_unit_test(an_ordinary_plan_has_all_its_parts),
        cmocka_unit_test(the_ring_is_where_the_axes_say),
        cmocka_unit_test(what_is_free_has_one_panel),
        cmocka_unit_test(thousands_of_points_stay_small_and_few_are_named),
        cmocka_unit_test(eight_machines_are_all_named),
        cmocka_unit_test(extremes_are_drawn_or_left_out),
        cmocka_unit_test(equal_points_are_one),
        cmocka_unit_test(names_can_not_break_the_picture),
        cmocka_unit_test(long_names_are_cut),
        cmocka_unit_test(the_same_plan_gives_the_same_bytes),
        cmocka_unit_test(what_can_not_be_written_is_told),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(axes_have_a_few_round_ticks),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
