/* src/data/image/patches.c, image_list.c: lists of files, memory that runs out, and files that can't be read. */
#include "data_support.h"

#include <sys/stat.h>

#include "base/memory.h"
#include "data/image/image_list.h"
#include "data/image/patches.h"

static void write_images(const char *name, int64_t images, int64_t height, int64_t width, float from)
{
    float *values = malloc((size_t)(images * height * width) * sizeof *values);
    for (int64_t i = 0; i < images * height * width; i++)
        values[i] = from + (float)i;
    assert_int_equal(shoal_npy_write(file_path(name), values, SHOAL_FLOAT32, 3, (int64_t[]){images, height, width}),
                     SHOAL_OK);
    free(values);
}

typedef struct cutting {
    data_buffer rows;
    data_patch_report report;
    int status;
} cutting;

static cutting cut(const char *const *paths, int64_t files, const data_patch_options *options, int threads)
{
    cutting out = {0};
    base_pool *pool = NULL;
    assert_int_equal(base_pool_new(&pool, threads), SHOAL_OK);
    data_buffer_init(&out.rows, "patches", 0);
    out.status = data_patches_cut(&out.rows, &out.report, paths, files, options, pool);
    base_pool_free(&pool);
    return out;
}

static void release(cutting *in)
{
    data_buffer_release(&in->rows);
    data_patch_report_release(&in->report);
}

static const data_patch_options usual = {.size = 3, .count = 400, .type = SHOAL_FLOAT32};

/* Each value says where it lies, so that each row can be checked by itself. */
static void rows_are_squares_of_images(void **state)
{
    char first[600], second[600];
    (void)state;
    write_images("a.npy", 3, 5, 7, 0);
    write_images("b.npy", 1, 9, 5, 1000);
    write_images("c.npy", 50, 2, 9, 5000); /* too small */
    snprintf(first, sizeof first, "%s", file_path("a.npy"));
    snprintf(second, sizeof second, "%s", file_path("b.npy"));
    const char *paths[] = {first, second, file_path("c.npy")};
    cutting one = cut(paths, 3, &usual, 1), many = cut(paths, 3, &usual, 4);
    assert_int_equal(one.status, SHOAL_OK);
    assert_true(one.report.files == 2 && one.report.images == 4 && one.report.small == 50 && one.report.broken == 0);
    assert_int_equal(one.rows.size, 400 * 9 * sizeof(float));
    assert_memory_equal(one.rows.bytes, many.rows.bytes, one.rows.size);
    int of_second = 0;
    for (int i = 0; i < 400; i++) {
        const float *row = (const float *)one.rows.bytes + 9 * i;
        const int width = row[0] >= 1000 ? 5 : 7, from = row[0] >= 1000 ? 1000 : 0;
        const int place = (int)row[0] - from, x = place % width, y = place / width % (width == 5 ? 9 : 5);
        of_second += width == 5;
        assert_true(x + 3 <= width && y + 3 <= (width == 5 ? 9 : 5));
        for (int v = 0; v < 9; v++)
            assert_true(row[v] == row[0] + (float)(v / 3 * width + v % 3));
    }
    assert_in_range(of_second, 70, 130); /* one image of four */
    release(&one);
    release(&many);
}

static void broken_files_are_told_or_left_out(void **state)
{
    char good[600], bad[600];
    data_patch_options options = usual;
    (void)state;
    write_images("a.npy", 2, 6, 6, 0);
    write_images("cut.npy", 2, 6, 6, 900);
    snprintf(good, sizeof good, "%s", file_path("a.npy"));
    snprintf(bad, sizeof bad, "%s", file_path("cut.npy"));
    assert_int_equal(truncate(bad, 300), 0); /* the header is whole */
    const char *paths[] = {good, bad, file_path("absent.npy")};
    cutting done = cut(paths, 2, &options, 2);
    assert_int_equal(done.status, SHOAL_INVALID);
    assert_int_equal(done.report.broken, 1);
    assert_non_null(strstr(shoal_error(), "cut.npy"));
    release(&done);
    options.skip_broken = true;
    done = cut(paths, 3, &options, 2);
    assert_int_equal(done.status, SHOAL_OK);
    assert_true(done.report.broken == 2 && done.report.images == 2 && !done.report.why[0]);
    assert_true(strstr(done.report.why[1], "cut.npy") && strstr(done.report.why[2], "absent.npy"));
    for (int i = 0; i < 400 * 9; i++)
        assert_true(((const float *)done.rows.bytes)[i] < 72);
    release(&done);
    done = cut(paths + 1, 2, &options, 1);
    assert_int_equal(done.status, SHOAL_INVALID);
    release(&done);
}

static void every_failing_allocation_is_told(void **state)
{
    int status = SHOAL_MEMORY;
    (void)state;
    write_images("a.npy", 2, 6, 6, 0);
    const char *paths[] = {file_path("a.npy")};
    base_pool *pool = NULL;
    assert_int_equal(base_pool_new(&pool, 1), SHOAL_OK);
    int64_t n = 0;
    for (; status < 0; n++) {
        cutting out = {0};
        assert_true(n < 100);
        data_buffer_init(&out.rows, "patches", 0);
        base_memory_fail_after(n);
        status = data_patches_cut(&out.rows, &out.report, paths, 1, &usual, pool);
        base_memory_fail_after(-1);
        if (status != SHOAL_OK && status != SHOAL_MEMORY)
            fail_msg("allocation %lld: %s", (long long)n, shoal_error());
        release(&out);
    }
    assert_true(n > 5);
    base_pool_free(&pool);
}

static void folders_are_listed_in_order(void **state)
{
    static const char *const names[] = {"b.png", "a.JPG", "c.jpeg", "notes.txt", "old.npy", ".hidden.png", "z.pngx"};
    static const char *const expected[] = {"a.JPG", "b.png", "c.jpeg", "down/x.png"};
    char below[600], link[640];
    data_image_list list = {0};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        write_text(names[i], "x");
    snprintf(below, sizeof below, "%s", file_path("down"));
    assert_int_equal(mkdir(below, 0700), 0);
    write_text("down/x.png", "x");
    snprintf(link, sizeof link, "%s/again.png", below);
    assert_int_equal(symlink(test_folder, link), 0); /* a folder, whatever its name says: not entered */
    assert_int_equal(data_image_list_add(&list, test_folder), SHOAL_OK);
    assert_int_equal(list.count, 4);
    for (int i = 0; i < 4; i++)
        assert_string_equal(list.paths[i] + strlen(test_folder) + 1, expected[i]);
    assert_int_equal(data_image_list_add(&list, file_path("notes.txt")), SHOAL_OK); /* named, so it is wanted */
    assert_int_equal(list.count, 5);
    data_image_list_release(&list);
    unlink(link);
    unlink(file_path("down/x.png"));
    assert_int_equal(data_image_list_add(&list, below), SHOAL_INVALID);
    assert_int_equal(data_image_list_add(&list, file_path("absent")), SHOAL_SYSTEM);
    data_image_list_release(&list);
    rmdir(below);
    unlink(file_path(".hidden.png"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(rows_are_squares_of_images, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(broken_files_are_told_or_left_out, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(every_failing_allocation_is_told, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(folders_are_listed_in_order, folder_setup, folder_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
