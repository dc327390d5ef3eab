/* src/plot: what is drawn is there, as pixels that libpng reads and as XML that expat reads, whatever was asked for. */
#include <expat.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <png.h>

#include <shoal/error.h>

#include "base/memory.h"
#include "data/table/content.h"
#include "plot/plot.h"

static char folder[] = "/tmp/shoal-plot-XXXXXX";
static char png[64], svg[64];

static int make_folder(void **state)
{
    (void)state;
    const char *made = mkdtemp(folder);
    snprintf(png, sizeof png, "%s/plot.png", made ? made : "/nowhere");
    snprintf(svg, sizeof svg, "%s/plot.svg", made ? made : "/nowhere");
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(png);
    unlink(svg);
    return rmdir(folder);
}

/* ---- reading back ------------------------------------------------------------------------------------------------ */

typedef struct pixels {
    unsigned char *rgb;
    int width, height;
} pixels;

static pixels write_png(const plot_canvas *canvas)
{
    png_image image = {.version = PNG_IMAGE_VERSION};
    assert_int_equal(plot_write(canvas, png), SHOAL_OK);
    assert_true(png_image_begin_read_from_file(&image, png));
    image.format = PNG_FORMAT_RGB;
    pixels out = {malloc(PNG_IMAGE_SIZE(image)), (int)image.width, (int)image.height};
    assert_non_null(out.rgb);
    assert_true(png_image_finish_read(&image, NULL, out.rgb, 0, NULL));
    return out;
}

static plot_rgb pixel(const pixels *in, int x, int y)
{
    const unsigned char *at = in->rgb + 3 * (y * in->width + x);
    return (plot_rgb)(at[0] << 16 | at[1] << 8 | at[2]);
}

static int64_t count_dark(const pixels *in)
{
    int64_t count = 0;
    for (int i = 0; i < in->width * in->height; i++)
        count += in->rgb[3 * i] < 128;
    return count;
}

static char content[1 << 16], texts[1 << 12];

static void XMLCALL on_text(void *context, const XML_Char *text, int length)
{
    (void)context;
    strncat(texts, text, (size_t)length);
}

/* The file as text in `content`, and all its character data in `texts`; fails unless it is XML. */
static void write_svg(const plot_canvas *canvas)
{
    assert_int_equal(plot_write(canvas, svg), SHOAL_OK);
    FILE *file = fopen(svg, "r");
    assert_non_null(file);
    size_t size = fread(content, 1, sizeof content - 1, file);
    fclose(file);
    content[size] = texts[0] = '\0';
    XML_Parser parser = XML_ParserCreate("UTF-8");
    XML_SetCharacterDataHandler(parser, on_text);
    assert_int_equal(XML_Parse(parser, content, (int)size, true), XML_STATUS_OK);
    XML_ParserFree(parser);
}

static plot_canvas *new_canvas(double width, double height)
{
    plot_canvas *canvas = NULL;
    assert_int_equal(plot_canvas_new(&canvas, width, height, "a <plot> & \"more\""), SHOAL_OK);
    return canvas;
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

static void shapes_cover_the_pixels_that_they_should(void **state)
{
    plot_canvas *canvas = new_canvas(20, 10);
    (void)state;
    plot_rectangle(canvas, (plot_box){1, 1, 4, 3}, (plot_paint){.filled = true, .fill = 0x102030});
    plot_line(canvas, (plot_xy[]){{6, 5}, {18, 5}}, 2, (plot_paint){.line = 0xff0000, .width = 1});
    plot_dots(canvas, &(plot_xy){3, 7}, 1, 2, (plot_paint){.filled = true, .fill = 0x0000ff, .opacity = 0.5});
    pixels read = write_png(canvas);
    assert_int_equal(read.width, 20 * PLOT_SCALE);
    assert_int_equal(read.height, 10 * PLOT_SCALE);
    for (int y = 0; y < 8; y++)
        for (int x = 0; x < 10; x++)
            assert_int_equal(pixel(&read, x, y), x >= 2 && x < 8 && y >= 2 && y < 6 ? 0x102030 : 0xffffff);
    assert_int_equal(pixel(&read, 20, 9), 0xff0000);
    assert_int_equal(pixel(&read, 20, 10), 0xff0000);
    assert_int_equal(pixel(&read, 20, 7), 0xffffff);
    assert_int_equal(pixel(&read, 20, 12), 0xffffff);
    const plot_rgb half = pixel(&read, 6, 14);
    assert_true(half == 0x7f7fff || half == 0x8080ff);
    free(read.rgb);
    plot_canvas_free(&canvas);
}

static void lines_are_filled_and_dashed(void **state)
{
    const plot_paint blue = {.filled = true, .fill = 0x0000ff};
    plot_canvas *canvas = new_canvas(40, 20);
    (void)state;
    plot_line(canvas, (plot_xy[]){{2, 2}, {10, 2}, {2, 18}, {NAN, NAN}, {20, 2}, {28, 2}, {28, 10}, {20, 10}}, 8, blue);
    plot_line(canvas, (plot_xy[]){{10, 15}, {40, 15}}, 2, (plot_paint){.width = 1, .dash = "4 3 1 3"});
    pixels read = write_png(canvas);
    assert_int_equal(pixel(&read, 6, 6), 0x0000ff);   /* in the triangle, whose third side is not drawn */
    assert_int_equal(pixel(&read, 5, 30), 0x0000ff);  /* in its lower corner */
    assert_int_equal(pixel(&read, 17, 20), 0xffffff); /* beyond that side */
    assert_int_equal(pixel(&read, 30, 10), 0xffffff); /* between the parts */
    assert_int_equal(pixel(&read, 55, 19), 0x0000ff); /* the corner of the square */
    assert_int_equal(pixel(&read, 56, 10), 0xffffff); /* beyond its edge */
    assert_int_equal(pixel(&read, 24, 30), 0x000000); /* the first dash, from 10 to 14 */
    assert_int_equal(pixel(&read, 31, 30), 0xffffff); /* a gap, from 14 to 17 */
    assert_int_equal(pixel(&read, 35, 30), 0x000000); /* the second, from 17 to 18 */
    assert_int_equal(pixel(&read, 39, 30), 0xffffff); /* the next gap, from 18 to 21 */
    assert_int_equal(pixel(&read, 46, 30), 0x000000); /* again, from 21 on */
    free(read.rgb);
    write_svg(canvas);
    assert_non_null(strstr(content, "stroke-dasharray=\"4 3 1 3\""));
    plot_canvas_free(&canvas);
}

static void markers_differ(void **state)
{
    unsigned char *first[PLOT_PLUS + 1];
    size_t size = 0;
    (void)state;
    for (int shape = 0; shape <= PLOT_PLUS; shape++) {
        plot_canvas *canvas = new_canvas(20, 20);
        plot_markers(canvas, (plot_xy[]){{10, 10}, {NAN, 3}}, 2, (plot_shape)shape, 6,
                     (plot_paint){.filled = true, .width = 1});
        write_svg(canvas);
        assert_null(strstr(content, "nan"));
        pixels read = write_png(canvas);
        size = (size_t)(3 * read.width * read.height);
        assert_int_equal(pixel(&read, 20, 20), 0x000000);
        assert_int_equal(pixel(&read, 3, 3), 0xffffff);
        first[shape] = read.rgb;
        for (int other = 0; other < shape; other++)
            assert_memory_not_equal(first[shape], first[other], size);
        plot_canvas_free(&canvas);
    }
    for (int shape = 0; shape <= PLOT_PLUS; shape++)
        free(first[shape]);
}

static void nothing_is_drawn_outside_the_clip(void **state)
{
    plot_canvas *canvas = new_canvas(20, 10);
    const plot_box box = {5, 2, 10, 8};
    (void)state;
    plot_clip(canvas, &box);
    plot_line(canvas, (plot_xy[]){{-1e300, 5}, {1e300, 5}}, 2, (plot_paint){.width = 4});
    plot_dots(canvas, &(plot_xy){10, 5}, 1, 4, (plot_paint){.filled = true});
    plot_text(canvas, (plot_xy){0, 8}, "WWWWW", 9, (plot_font){.size = 10});
    plot_raster(canvas, (plot_box){0, 0, 20, 10}, (const unsigned char[]){0, 0, 0, 255}, 1, 1);
    pixels read = write_png(canvas);
    for (int y = 0; y < read.height; y++)
        for (int x = 0; x < read.width; x++)
            assert_int_equal(pixel(&read, x, y), x >= 10 && x < 20 && y >= 4 && y < 16 ? 0 : 0xffffff);
    free(read.rgb);
    write_svg(canvas);
    assert_non_null(strstr(content, "clip-path=\"url(#cut1)\""));
    plot_canvas_free(&canvas);
}

static void text_cannot_break_out(void **state)
{
    plot_canvas *canvas = new_canvas(100, 50);
    const plot_font font = {.size = 12, .halo = true};
    (void)state;
    plot_text(canvas, (plot_xy){5, 20}, "<&\">'", 100, font);
    plot_text(canvas, (plot_xy){5, 20}, "a\nb\033[31m\xff\xe2\x80\xae", 100, font);
    plot_text(canvas, (plot_xy){5, 20}, "größer als erlaubt", 6, font);
    plot_text(canvas, (plot_xy){NAN, 20}, "nowhere", 100, font);
    plot_text(canvas, (plot_xy){5, 20}, "", 100, font);
    write_svg(canvas);
    assert_non_null(strstr(texts, "a <plot> & \"more\""));
    assert_non_null(strstr(texts, "<&\">'"));
    assert_non_null(strstr(texts, "a?b?[31m??"));
    assert_non_null(strstr(texts, "größe…\n"));
    assert_null(strstr(texts, "nowhere"));
    free(write_png(canvas).rgb);
    plot_canvas_free(&canvas);
}

static void every_letter_is_drawn(void **state)
{
    (void)state;
    for (unsigned letter = 0x21; letter < 0x180; letter++) {
        if (letter > 0x7e && letter <= 0xa0)
            continue;
        char text[3] = {(char)letter, 0, 0};
        if (letter > 0x7f) {
            text[0] = (char)(0xc0 | letter >> 6);
            text[1] = (char)(0x80 | (letter & 0x3f));
        }
        plot_canvas *canvas = new_canvas(60, 60);
        plot_text(canvas, (plot_xy){30, 35}, text, 1, (plot_font){.size = 24, .anchor = PLOT_MIDDLE});
        pixels read = write_png(canvas);
        assert_in_range(count_dark(&read), 5, 900);
        free(read.rgb);
        plot_canvas_free(&canvas);
    }
}

static void what_is_not_finite_is_left_out(void **state)
{
    plot_canvas *canvas = new_canvas(40, 20);
    const plot_paint line = {.width = 2}, dot = {.filled = true}, ring = {.width = 1};
    (void)state;
    plot_line(canvas, (plot_xy[]){{2, 5}, {10, 5}, {NAN, 5}, {20, 5}, {INFINITY, 5}, {25, 5}, {30, 5}}, 7, line);
    plot_dots(canvas, (plot_xy[]){{NAN, 1}, {1, -INFINITY}, {35, 15}}, 3, 3, dot);
    plot_dots(canvas, (plot_xy[]){{NAN, 1}, {1e300, -1e300}}, 2, 3, ring);
    plot_rectangle(canvas, (plot_box){NAN, 0, 10, 10}, dot);
    plot_rectangle(canvas, (plot_box){10, 0, 0, 10}, dot);
    plot_line(canvas, NULL, 0, line);
    plot_line(canvas, NULL, 0, dot);
    plot_line(canvas, (plot_xy[]){{NAN, 1}, {1, INFINITY}}, 2, dot);
    plot_markers(canvas, NULL, 0, PLOT_UP, 3, dot);
    write_svg(canvas);
    assert_null(strstr(content, "nan"));
    assert_null(strstr(content, "inf"));
    assert_non_null(strstr(content, "M2 5L10 5M20 5M25 5L30 5"));
    pixels read = write_png(canvas);
    assert_int_equal(pixel(&read, 10, 10), 0);
    assert_int_equal(pixel(&read, 30, 10), 0xffffff); /* the line is broken */
    assert_int_equal(pixel(&read, 56, 10), 0);
    assert_int_equal(pixel(&read, 70, 30), 0);
    free(read.rgb);
    plot_canvas_free(&canvas);
}

static void a_raster_fills_its_box(void **state)
{
    static const unsigned char cells[8] = {255, 0, 0, 255, 0, 0, 255, 0};
    plot_canvas *canvas = new_canvas(20, 10);
    (void)state;
    plot_raster(canvas, (plot_box){2, 2, 12, 8}, cells, 2, 1);
    pixels read = write_png(canvas);
    assert_int_equal(pixel(&read, 4, 4), 0xff0000);
    assert_int_equal(pixel(&read, 13, 15), 0xff0000);
    assert_int_equal(pixel(&read, 14, 15), 0xffffff); /* of no opacity */
    assert_int_equal(pixel(&read, 3, 4), 0xffffff);
    free(read.rgb);
    write_svg(canvas);
    assert_non_null(strstr(content, "href=\"data:image/png;base64,iVBOR"));
    plot_canvas_free(&canvas);
}

static void ticks_are_round_and_few(void **state)
{
    static const struct {
        double least, greatest;
        const char *first, *last;
    } cases[] = {
        {0, 10, "0", "10"},
        {2, 20, "2", "20"},
        {0, 1e6, "0", "1.0e6"},
        {-0.00002, 0.00003, "-0.00002", "0.00003"},
        {1e-12, 3e-12, "1.0e-12", "3.0e-12"},
        {5, 5, "5.000000000", NULL},
        {0, 0, "-1.0", "1.0"},
        {1e300, 1.7e308, NULL, NULL},
        {-INFINITY, INFINITY, NULL, NULL},
        {NAN, NAN, "-1.0", "1.0"},
        {123456.25, 123456.5, NULL, NULL},
        {1e15, 1e15 + 4, NULL, NULL},
        {5e-324, 1e-320, NULL, NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        plot_axis axis;
        char label[32], before[32] = "";
        plot_axis_init(&axis, cases[i].least, cases[i].greatest, 0, 500);
        assert_true(isfinite(axis.low) && isfinite(axis.high) && axis.low < axis.high);
        assert_in_range(axis.ticks, 2, PLOT_TICKS_MOST);
        for (int t = 0; t < axis.ticks; t++) {
            plot_axis_label(label, &axis, t);
            assert_string_not_equal(label, before);
            assert_in_range((int)plot_axis_place(&axis, axis.tick[t]), 0, 500);
            if (t == 0 && cases[i].last)
                assert_string_equal(label, cases[i].first);
            strcpy(before, label);
        }
        if (cases[i].last)
            assert_string_equal(label, cases[i].last);
    }
}

static void counts_have_whole_ticks(void **state)
{
    plot_axis axis;
    (void)state;
    plot_axis_init_whole(&axis, 2, 4, 0, 500);
    assert_int_equal(axis.ticks, 3);
    for (int i = 0; i < axis.ticks; i++)
        assert_true(axis.tick[i] == 2 + i);
    plot_axis_init_whole(&axis, 7, 7, 0, 500);
    assert_true(axis.ticks == 3 && axis.tick[1] == 7);
}

static void a_frame_has_titles_and_ticks(void **state)
{
    plot_canvas *canvas = new_canvas(400, 300);
    const plot_box box = {60, 20, 380, 250};
    plot_axis x, y;
    (void)state;
    plot_axis_init(&x, 0, 4, box.left, box.right);
    plot_axis_init(&y, -1, 1, box.bottom, box.top);
    plot_frame(canvas, &box, &x, &y, "length <cm>", "width");
    write_svg(canvas);
    assert_non_null(strstr(texts, "length <cm>"));
    assert_non_null(strstr(texts, "width"));
    assert_non_null(strstr(texts, "\n4.0\n"));
    assert_non_null(strstr(texts, "-0.5"));
    free(write_png(canvas).rgb);
    plot_canvas_free(&canvas);
}

static void a_legend_says_how_many_it_leaves_out(void **state)
{
    char name[60][16];
    plot_entry entries[60];
    const plot_box narrow = {0, 0, 120, 170}, wide = {0, 0, 5000, 170};
    plot_canvas *canvas = new_canvas(600, 170);
    (void)state;
    for (int i = 0; i < 60; i++) {
        snprintf(name[i], sizeof name[i], "cluster %d", i + 1);
        entries[i] = (plot_entry){name[i], plot_colour(i), i % 3};
    }
    assert_true(plot_legend(NULL, &narrow, entries, 60) <= 120);
    assert_true(plot_legend(NULL, &wide, entries, 60) > 480);
    assert_true(plot_legend(NULL, &wide, entries, 0) == 0);
    plot_legend(canvas, &narrow, entries, 60);
    write_svg(canvas);
    assert_non_null(strstr(texts, "cluster 9"));
    assert_null(strstr(texts, "cluster 10"));
    assert_non_null(strstr(texts, "and 51 more"));
    plot_canvas_free(&canvas);
}

static void colours_differ_and_start_again(void **state)
{
    (void)state;
    for (int i = 0; i < PLOT_COLOURS; i++)
        for (int j = 0; j < i; j++)
            assert_int_not_equal(plot_colour(i), plot_colour(j));
    assert_int_equal(plot_colour(PLOT_COLOURS + 3), plot_colour(3));
}

static void both_kinds_of_file_are_known_again(void **state)
{
    plot_canvas *canvas = new_canvas(10, 10);
    const data_content picture = {.kind = DATA_CONTENT_PICTURE};
    (void)state;
    free(write_png(canvas).rgb);
    write_svg(canvas);
    assert_int_equal(data_content_check_old("--plot", png, &picture), SHOAL_OK);
    assert_int_equal(data_content_check_old("--plot", svg, &picture), SHOAL_OK);
    plot_canvas_free(&canvas);
}

/* Draws something of everything, and writes it. */
static int draw_all(const char *path)
{
    plot_canvas *canvas = NULL;
    int status = plot_canvas_new(&canvas, 30, 20, "all");
    if (status < 0)
        return status;
    for (int i = 0; i < 80; i++) /* the list of marks grows */
        plot_rectangle(canvas, (plot_box){0, 0, 5, 5}, (plot_paint){.width = 1});
    plot_line(canvas, (plot_xy[]){{1, 1}, {9, 9}}, 2, (plot_paint){.width = 1, .dash = "5 4"});
    plot_markers(canvas, (plot_xy[]){{3, 3}, {15, 8}}, 2, PLOT_DIAMOND, 2, (plot_paint){.filled = true, .width = 1});
    plot_text(canvas, (plot_xy){5, 5}, "text", 9, (plot_font){.size = 9, .upwards = true});
    plot_raster(canvas, (plot_box){0, 0, 9, 9}, (const unsigned char[4]){0}, 1, 1);
    status = plot_write(canvas, path);
    plot_canvas_free(&canvas);
    return status;
}

static void memory_that_there_is_not_is_told(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        const char *path = i ? svg : png;
        int64_t n = 0;
        unlink(path);
        for (int status = SHOAL_MEMORY; status != SHOAL_OK; n++) {
            base_memory_fail_after(n);
            status = draw_all(path);
            base_memory_fail_after(-1);
            assert_true(status == SHOAL_OK || status == SHOAL_MEMORY);
            assert_int_equal(access(path, F_OK), status == SHOAL_OK ? 0 : -1);
        }
        assert_true(n > 5);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes_cover_the_pixels_that_they_should),
        cmocka_unit_test(lines_are_filled_and_dashed),
        cmocka_unit_test(markers_differ),
        cmocka_unit_test(nothing_is_drawn_outside_the_clip),
        cmocka_unit_test(text_cannot_break_out),
        cmocka_unit_test(every_letter_is_drawn),
        cmocka_unit_test(what_is_not_finite_is_left_out),
        cmocka_unit_test(a_raster_fills_its_box),
        cmocka_unit_test(ticks_are_round_and_few),
        cmocka_unit_test(counts_have_whole_ticks),
        cmocka_unit_test(a_frame_has_titles_and_ticks),
        cmocka_unit_test(a_legend_says_how_many_it_leaves_out),
        cmocka_unit_test(colours_differ_and_start_again),
        cmocka_unit_test(both_kinds_of_file_are_known_again),
        cmocka_unit_test(memory_that_there_is_not_is_told),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
