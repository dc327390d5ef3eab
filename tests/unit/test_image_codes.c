/* src/data/image/image_codes.c: the bytes of items with the best tables are those that libjpeg's own search for them
 * makes, and tables are whole whatever the counts are. */
#include "data_support.h"

#include <jpeglib.h>

#include "data/image/image_codes.h"
#include "data/image/image_encode.h"

static data_jpeg_writer *writer;

static int start(void **state)
{
    (void)state;
    return data_jpeg_writer_new(&writer);
}

static int stop(void **state)
{
    (void)state;
    data_jpeg_writer_free(&writer);
    return 0;
}

/* Noise that is stronger further down, and steps; `kind` 0 is one grey. */
static void draw(unsigned char *pixels, int height, int width, unsigned kind)
{
    unsigned random = kind * 2654435761u + 1;
    for (int i = 0; i < height * width * 3; i++) {
        const int y = i / 3 / width, x = i / 3 % width;
        random = random * 1664525u + 1013904223u;
        pixels[i] = (unsigned char)(kind == 0 ? 127 : x * 2 * (i % 3) + y % 9 * 13 + (int)(random >> 24) * y / height);
    }
}

static unsigned long libjpeg_best(unsigned char **out, const unsigned char *pixels, const data_image_recipe *recipe)
{
    struct jpeg_compress_struct jpeg;
    struct jpeg_error_mgr errors;
    unsigned long size = 0;
    *out = NULL;
    jpeg.err = jpeg_std_error(&errors);
    jpeg_create_compress(&jpeg);
    jpeg_mem_dest(&jpeg, out, &size);
    jpeg.image_width = (JDIMENSION)recipe->width;
    jpeg.image_height = (JDIMENSION)recipe->height;
    jpeg.input_components = 3;
    jpeg.in_color_space = JCS_RGB;
    jpeg_set_defaults(&jpeg);
    jpeg_set_quality(&jpeg, recipe->quality, TRUE);
    jpeg.optimize_coding = TRUE;
    jpeg.comp_info[0].h_samp_factor = jpeg.comp_info[0].v_samp_factor = recipe->chroma == DATA_IMAGE_420 ? 2 : 1;
    jpeg_start_compress(&jpeg, TRUE);
    while (jpeg.next_scanline < jpeg.image_height) {
        JSAMPROW row = (JSAMPROW)(uintptr_t)(pixels + 3 * (size_t)jpeg.next_scanline * jpeg.image_width);
        jpeg_write_scanlines(&jpeg, &row, 1);
    }
    jpeg_finish_compress(&jpeg);
    jpeg_destroy_compress(&jpeg);
    return size;
}

static void the_best_tables_are_those_of_libjpeg(void **state)
{
    static const int sizes[][2] = {{1, 1}, {8, 8}, {16, 17}, {33, 15}, {64, 80}, {57, 203}};
    static const int qualities[] = {1, 20, 50, 75, 85, 86, 95, 99, 100};
    static unsigned char pixels[57 * 203 * 3];
    (void)state;
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
        for (size_t q = 0; q < sizeof qualities / sizeof qualities[0]; q++)
            for (unsigned form = 0; form < 6; form++) {
                data_image_recipe recipe = data_image_recipe_default;
                const unsigned char *bytes;
                unsigned char *expected;
                size_t size;
                recipe.height = sizes[s][0];
                recipe.width = sizes[s][1];
                recipe.quality = qualities[q];
                recipe.huffman = DATA_IMAGE_BEST;
                recipe.chroma = form % 2 ? DATA_IMAGE_420 : DATA_IMAGE_444;
                draw(pixels, recipe.height, recipe.width, form / 2);
                const unsigned long expected_size = libjpeg_best(&expected, pixels, &recipe);
                assert_int_equal(data_jpeg_encode(&bytes, &size, writer, &recipe, pixels, "x"), SHOAL_OK);
                assert_int_equal(size, expected_size);
                assert_memory_equal(bytes, expected, size);
                free(expected);
            }
}

/* As many codes as there are, no more, and nothing beyond the end is read: the copy is just so long. */
static void other_files_are_refused(void **state)
{
    enum { SIDE = 40, UNITS = 25 };
    static unsigned char pixels[SIDE * SIDE * 3];
    data_image_recipe recipe = data_image_recipe_default;
    const unsigned char *bytes;
    size_t size;
    (void)state;
    recipe.height = recipe.width = SIDE;
    draw(pixels, SIDE, SIDE, 1);
    assert_int_equal(data_jpeg_encode(&bytes, &size, writer, &recipe, pixels, "x"), SHOAL_OK);
    for (int units = UNITS - 1; units <= UNITS + 1; units++)
        for (size_t cut = 0; cut <= (units == UNITS ? size : 0); cut++) {
            data_huffman_tallies tallies = {0};
            unsigned char *copy = malloc(size - cut + 1);
            memcpy(copy, bytes, size - cut);
            const bool counted = data_huffman_count(&tallies, &data_huffman_fine, copy, size - cut, units, 1);
            assert_true(counted == (units == UNITS && cut <= 2)); /* without the end marker, too */
            free(copy);
        }
    for (int i = 0; i < 2000; i++) { /* noise in place of codes, of the header, or of both */
        data_huffman_tallies tallies = {0};
        unsigned char *copy = malloc(size);
        memcpy(copy, bytes, size);
        for (size_t at = i % 3 == 0 ? 0 : size / 3; at < (i % 3 == 1 ? size : size / 2); at++)
            copy[at] = (unsigned char)((at * 7919u + (unsigned)i * 104729u) * 2654435761u >> 24);
        (void)data_huffman_count(&tallies, &data_huffman_fine, copy, size, UNITS, 1);
        free(copy);
    }
}

/* limited: some codes would have been longer than 16 bits; which ones become shorter goes by their symbols. */
static void check_table(const data_huffman_table *table, const int64_t *counts, bool limited)
{
    int length_of[256] = {0}, value = 0, most = 0;
    double used = 0;
    for (int length = 1; length <= 16; length++)
        for (int i = 0; i < table->counts[length]; i++) {
            assert_int_equal(length_of[table->values[value]], 0);
            length_of[table->values[value++]] = length;
            used += 1.0 / (1 << length);
        }
    assert_true(used <= 1 - 1.0 / 65536);
    for (int a = 0; a < 256; a++) {
        assert_true((length_of[a] > 0) == (counts[a] > 0));
        most += counts[a] > 0;
        for (int b = 0; b < 256; b++)
            if (!limited && counts[a] > counts[b] && counts[b] > 0)
                assert_true(length_of[a] <= length_of[b]);
    }
    assert_int_equal(value, most);
}

/* Counts that grow as Fibonacci's numbers would have codes of a bit more each. */
static void tables_are_whole_whatever_the_counts(void **state)
{
    data_huffman_tallies tallies = {0};
    data_huffman_set set;
    int64_t one = 1, two = 1;
    (void)state;
    for (int i = 0; i < 256; i++) {
        tallies.dc[0][i] = 1;
        tallies.ac[0][i] = i % 3 == 0 ? i * i : 0;
        tallies.ac[1][i] = i < 60 ? one : 0;
        if (i < 60) {
            two += one;
            one = two - one;
        }
    }
    tallies.dc[1][7] = 1000;
    data_huffman_shortest(&set, &tallies);
    for (int kind = 0; kind < 2; kind++) {
        check_table(&set.dc[kind], tallies.dc[kind], false);
        check_table(&set.ac[kind], tallies.ac[kind], kind == 1);
    }
    assert_int_equal(set.dc[1].counts[1], 1);
    assert_true(set.ac[1].counts[16] > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_best_tables_are_those_of_libjpeg),
        cmocka_unit_test(other_files_are_refused),
        cmocka_unit_test(tables_are_whole_whatever_the_counts),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
