/* src/plot/matrix.c: cells in the colours of their shares, counts while they fit, names while they do not overlap. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <shoal/error.h>

#include "base/memory.h"
#include "plot/canvas.h"
#include "plot/matrix.h"

enum { MANY = 300 };

static char *names[MANY];
static char name_texts[MANY][8];

static int make_names(void **state)
{
    (void)state;
    for (int i = 0; i < MANY; i++) {
        snprintf(name_texts[i], sizeof name_texts[i], "n%d", i);
        names[i] = name_texts[i];
    }
    return 0;
}

static plot_matrix table_of(const int64_t *count, int64_t rows, int64_t columns)
{
    return (plot_matrix){.rows = rows,
                         .columns = columns,
                         .count = count,
                         .row_names = names,
                         .column_names = names,
                         .same = columns,
                         .title = "a title",
                         .row_title = "known",
                         .column_title = "said"};
}

static plot_canvas *draw(const plot_matrix *what)
{
    plot_canvas *canvas = NULL;
    assert_int_equal(plot_matrix_new(&canvas, what), SHOAL_OK);
    assert_int_equal(canvas->status, SHOAL_OK);
    return canvas;
}

static int64_t count_texts(const plot_canvas *canvas, const char *text)
{
    int64_t count = 0;
    for (int64_t i = 0; i < canvas->marks; i++)
        count += canvas->mark[i].kind == PLOT_TEXT && strcmp(canvas->mark[i].text, text) == 0;
    return count;
}

/* The filled rectangle number `which`. */
static const plot_mark *cell(const plot_canvas *canvas, int64_t which)
{
    for (int64_t i = 0; i < canvas->marks; i++)
        if (canvas->mark[i].kind == PLOT_RECTANGLE && canvas->mark[i].paint.filled && which-- == 0)
            return &canvas->mark[i];
    return NULL;
}

static int red(plot_rgb colour)
{
    return (int)(colour >> 16);
}

static int blue(plot_rgb colour)
{
    return (int)(colour & 0xff);
}

static void cells_have_counts_shares_and_the_colours_of_right_and_wrong(void **state)
{
    /* The third row is of a class that the model does not know. */
    const int64_t count[] = {9990, 10, 0, 5, 5, 0};
    const plot_matrix what = table_of(count, 3, 2);
    (void)state;
    plot_canvas *canvas = draw(&what);
    const plot_mark *right = cell(canvas, 0), *wrong = cell(canvas, 1), *other = cell(canvas, 2),
                    *unknown = cell(canvas, 3);
    assert_non_null(unknown);
    assert_null(cell(canvas, 4)); /* nothing where the count is 0 */
    assert_true(blue(right->paint.fill) > red(right->paint.fill));
    assert_true(red(wrong->paint.fill) > blue(wrong->paint.fill) && red(wrong->paint.fill) > 225); /* pale */
    assert_true(fabs(wrong->box.left - right->box.right) < 1e-9 && fabs(wrong->box.top - right->box.top) < 1e-9);
    assert_true(fabs(other->box.left - wrong->box.left) < 1e-9 && fabs(other->box.top - wrong->box.bottom) < 1e-9);
    assert_true(red(unknown->paint.fill) > blue(unknown->paint.fill)); /* it can't be right */
    assert_int_equal(count_texts(canvas, "9990"), 1);
    assert_int_equal(count_texts(canvas, "99.9%"), 1);
    assert_int_equal(count_texts(canvas, "0.1%"), 1);
    assert_int_equal(count_texts(canvas, "5"), 2);
    assert_int_equal(count_texts(canvas, "n0"), 2);
    assert_int_equal(count_texts(canvas, "n2"), 1);
    assert_int_equal(count_texts(canvas, "known") + count_texts(canvas, "said") + count_texts(canvas, "a title"), 3);
    assert_int_equal(count_texts(canvas, "right") + count_texts(canvas, "wrong"), 2);
    plot_canvas_free(&canvas);
}

static void clusters_are_neither_right_nor_wrong(void **state)
{
    const int64_t count[] = {3, 4};
    plot_matrix what = table_of(count, 1, 2);
    (void)state;
    what.same = 0;
    plot_canvas *canvas = draw(&what);
    for (int i = 0; i < 2; i++)
        assert_true(blue(cell(canvas, i)->paint.fill) > red(cell(canvas, i)->paint.fill));
    assert_int_equal(count_texts(canvas, "share"), 1);
    assert_int_equal(count_texts(canvas, "wrong"), 0);
    plot_canvas_free(&canvas);
}

static void many_classes_are_an_image_that_fits_a_screen(void **state)
{
    static int64_t count[MANY * MANY];
    const plot_matrix what = table_of(count, MANY, MANY);
    (void)state;
    for (int i = 0; i < MANY; i++)
        count[i * MANY + i] = 50;
    count[MANY - 1] = 50; /* the last of the first row is wrong */
    plot_canvas *canvas = draw(&what);
    const plot_mark *image = NULL;
    for (int64_t i = 0; i < canvas->marks && !image; i++)
        image = canvas->mark[i].kind == PLOT_RASTER ? &canvas->mark[i] : NULL;
    assert_non_null(image);
    assert_null(cell(canvas, 0));
    assert_true(canvas->width < 1300 && canvas->height < 1000);
    const unsigned char *first = image->pixels, *last = image->pixels + 4 * (image->width - 1),
                        *middle = image->pixels + 4 * (image->width / 2);
    assert_true(first[2] > first[0] && last[0] > last[2]);
    assert_true(middle[0] == 255 && middle[1] == 255 && middle[2] == 255);
    assert_int_equal(count_texts(canvas, "n0"), 2);
    assert_int_equal(count_texts(canvas, "n1"), 0); /* it would overlap with n0 */
    assert_int_equal(count_texts(canvas, "50"), 0);
    plot_canvas_free(&canvas);
}

static void long_names_stand_upright(void **state)
{
    char *words[2] = {"a word that is far too long for a column", "b"};
    const int64_t count[] = {1, 2, 3, 4};
    plot_matrix what = table_of(count, 2, 2);
    int64_t upright = 0;
    (void)state;
    what.column_names = words;
    plot_canvas *canvas = draw(&what);
    for (int64_t i = 0; i < canvas->marks; i++)
        upright += canvas->mark[i].kind == PLOT_TEXT && canvas->mark[i].font.upwards;
    assert_int_equal(upright, 3); /* with the title of the axis */
    plot_canvas_free(&canvas);
}

static void memory_that_is_not_there_is_told(void **state)
{
    static int64_t count[MANY * MANY];
    (void)state;
    for (int way = 0; way < 2; way++) { /* cell by cell, and as an image, a low one, which is soon drawn */
        const plot_matrix what = way == 0 ? table_of(count, 3, 3) : table_of(count, 6, MANY);
        bool whole = false;
        for (int64_t n = 0; !whole; n++) {
            plot_canvas *canvas = NULL;
            base_memory_fail_after(n);
            int status = plot_matrix_new(&canvas, &what);
            base_memory_fail_after(-1);
            assert_true(status == SHOAL_OK || (status == SHOAL_MEMORY && !canvas));
            whole = status == SHOAL_OK && canvas->status == SHOAL_OK;
            plot_canvas_free(&canvas);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cells_have_counts_shares_and_the_colours_of_right_and_wrong),
        cmocka_unit_test(clusters_are_neither_right_nor_wrong),
        cmocka_unit_test(many_classes_are_an_image_that_fits_a_screen),
        cmocka_unit_test(long_names_stand_upright),
        cmocka_unit_test(memory_that_is_not_there_is_told),
    };
    return cmocka_run_group_tests(tests, make_names, NULL);
}
