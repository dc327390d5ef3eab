/* src/plot/sheet.c: 0 is white, signs have colours, one scale for all images; shapes and sizes. */
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
#include "plot/sheet.h"

static char *names[4] = {"ant", "bee", "cat", "dog"};

static plot_canvas *draw(const plot_sheet *what)
{
    plot_canvas *canvas = NULL;
    assert_int_equal(plot_sheet_new(&canvas, what), SHOAL_OK);
    assert_int_equal(canvas->status, SHOAL_OK);
    return canvas;
}

static const plot_mark *image(const plot_canvas *canvas, int64_t which)
{
    for (int64_t i = 0; i < canvas->marks; i++)
        if (canvas->mark[i].kind == PLOT_RASTER && which-- == 0)
            return &canvas->mark[i];
    return NULL;
}

static bool has_text(const plot_canvas *canvas, const char *text)
{
    for (int64_t i = 0; i < canvas->marks; i++)
        if (canvas->mark[i].kind == PLOT_TEXT && strcmp(canvas->mark[i].text, text) == 0)
            return true;
    return false;
}

static void signs_have_colours_and_zero_has_none(void **state)
{
    const double values[8] = {0, 2, -2, 1, -1, NAN, 0.2, -0.2};
    (void)state;
    plot_canvas *canvas = draw(&(plot_sheet){
        .values = values, .images = 2, .height = 2, .width = 2, .channels = 1, .names = names, .title = "a title"});
    const unsigned char *one = image(canvas, 0)->pixels, *two = image(canvas, 1)->pixels;
    assert_true(one[0] == 255 && one[1] == 255 && one[2] == 255);
    assert_true(one[4] > one[6] + 50 && one[10] > one[8] + 50);   /* 2 is red, -2 blue */
    assert_true(one[13] > one[5] && two[1] > one[9]);             /* 1 and -1 are paler: one scale for both images */
    assert_true(two[4] == 255 && two[5] == 255 && two[6] == 255); /* what is not finite */
    assert_true(two[8] > two[10] && two[9] > 200 && two[14] > two[12] && two[13] > 200);
    assert_true(has_text(canvas, "ant") && has_text(canvas, "bee") && has_text(canvas, "a title"));
    assert_true(has_text(canvas, "-2") && has_text(canvas, "0") && has_text(canvas, "2"));
    plot_canvas_free(&canvas);
}

static void a_few_great_weights_do_not_pale_the_others(void **state)
{
    enum { VALUES = 400 };
    static double values[VALUES];
    (void)state;
    for (int i = 0; i < VALUES; i++)
        values[i] = i % 2 ? 1 : -1;
    values[0] = 1000;
    plot_canvas *canvas = draw(&(plot_sheet){
        .values = values, .images = 1, .height = 20, .width = 20, .channels = 1, .names = names, .title = "t"});
    const unsigned char *pixels = image(canvas, 0)->pixels;
    assert_memory_equal(pixels, pixels + 4, 4); /* as dark as 1 */
    assert_true(has_text(canvas, "1 or more") && has_text(canvas, "-1 or less"));
    plot_canvas_free(&canvas);
}

static void colours_of_pixels_are_around_grey(void **state)
{
    const double values[6] = {0, 0, 0, 3, -3, 0};
    (void)state;
    plot_canvas *canvas = draw(&(plot_sheet){
        .values = values, .images = 1, .height = 1, .width = 2, .channels = 3, .names = names, .title = "t"});
    const unsigned char *pixels = image(canvas, 0)->pixels;
    assert_int_equal(image(canvas, 0)->width, 2);
    assert_true(pixels[0] == 128 && pixels[1] == 128 && pixels[2] == 128);
    assert_true(pixels[4] == 255 && pixels[5] == 0 && pixels[6] == 128);
    plot_canvas_free(&canvas);
}

static void pictures_are_as_they_are(void **state)
{
    const unsigned char colours[12] = {1, 2, 3, 4, 5, 6, 200, 100, 50, 7, 8, 9};
    (void)state;
    plot_canvas *canvas = draw(
        &(plot_sheet){.colours = colours, .images = 2, .height = 1, .width = 2, .names = names, .title = "a title"});
    const unsigned char *pixels = image(canvas, 1)->pixels;
    assert_memory_equal(pixels, ((unsigned char[8]){200, 100, 50, 255, 7, 8, 9, 255}), 8);
    assert_true(has_text(canvas, "bee") && has_text(canvas, "a title") && !has_text(canvas, "0"));
    assert_null(image(canvas, 2)); /* no scale */
    plot_canvas_free(&canvas);
}

static void images_stand_as_was_asked_for(void **state)
{
    const double values[16] = {0};
    plot_sheet what = {
        .values = values, .images = 4, .height = 2, .width = 2, .channels = 1, .names = names, .title = "t"};
    (void)state;
    plot_canvas *square = draw(&what);
    assert_true(image(square, 0)->box.left < image(square, 1)->box.left);
    assert_true(image(square, 2)->box.left == image(square, 0)->box.left);
    assert_true(image(square, 2)->box.top > image(square, 0)->box.bottom);
    plot_canvas_free(&square);
    what.across = 1;
    what.scale = 10;
    plot_canvas *column = draw(&what);
    for (int i = 0; i < 4; i++) {
        const plot_box box = image(column, i)->box;
        assert_true(fabs(box.right - box.left - 20.0 / PLOT_SCALE) < 1e-9);
        assert_true(box.left == image(column, 0)->box.left);
    }
    plot_canvas_free(&column);
    what.scale = 1e6;
    assert_int_equal(plot_sheet_new(&column, &what), SHOAL_USAGE);
    assert_null(column);
}

static void memory_that_is_not_there_is_told(void **state)
{
    const double values[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    const plot_sheet what = {
        .values = values, .images = 2, .height = 2, .width = 2, .channels = 1, .names = names, .title = "t"};
    bool whole = false;
    (void)state;
    for (int64_t n = 0; !whole; n++) {
        plot_canvas *canvas = NULL;
        base_memory_fail_after(n);
        int status = plot_sheet_new(&canvas, &what);
        base_memory_fail_after(-1);
        assert_true(status == SHOAL_OK || (status == SHOAL_MEMORY && !canvas));
        whole = status == SHOAL_OK && canvas->status == SHOAL_OK;
        plot_canvas_free(&canvas);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(signs_have_colours_and_zero_has_none),
        cmocka_unit_test(a_few_great_weights_do_not_pale_the_others),
        cmocka_unit_test(colours_of_pixels_are_around_grey),
        cmocka_unit_test(pictures_are_as_they_are),
        cmocka_unit_test(images_stand_as_was_asked_for),
        cmocka_unit_test(memory_that_is_not_there_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
