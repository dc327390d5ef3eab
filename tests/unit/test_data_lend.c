/* Rows that are lent: who borrows them has the same data set, and the same memory; what was described or lent
 * wrongly is refused. */
#include <fcntl.h>
#include <sys/stat.h>

#include "data_support.h"

#include "base/memory.h"
#include "data/data_lend.h"
#include "data/data_place.h"

static const char table[] = "alpha,\"be,ta\",gamma\n1,2.5,3\n-4,5,6e3\n7,8,9\n";

static const char *written(const char *name, const char *text)
{
    const char *path = file_path(name);
    FILE *file = fopen(path, "w");
    assert_true(file && fputs(text, file) >= 0 && fclose(file) == 0);
    return path;
}

static const char *lent_path(int descriptor)
{
    static char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)getpid(), descriptor);
    return path;
}

static shoal_data *borrowed(shoal_data *data, int *descriptor)
{
    shoal_data *out = NULL;
    void *note = NULL;
    size_t size = 0;
    assert_int_equal(data_lend(descriptor, data), SHOAL_OK);
    assert_int_equal(data_lent_describe(&note, &size, data), SHOAL_OK);
    assert_int_equal(data_borrow(&out, note, size, lent_path(*descriptor)), SHOAL_OK);
    base_free(&note);
    return out;
}

static void expect_same(shoal_data *a, shoal_data *b, const void *values)
{
    size_t size = (size_t)shoal_data_rows(a) * data_row_bytes(a);
    const void *of_a = NULL, *of_b = NULL;
    assert_int_equal(shoal_data_rows(a), shoal_data_rows(b));
    assert_int_equal(shoal_data_columns(a), shoal_data_columns(b));
    assert_int_equal(shoal_data_type(a), shoal_data_type(b));
    assert_string_equal(shoal_data_path(a), shoal_data_path(b));
    assert_string_equal(shoal_data_format(a), shoal_data_format(b));
    assert_string_equal(shoal_data_detail(a), shoal_data_detail(b));
    assert_int_equal(data_place_of(a).kind, DATA_HERE);
    assert_int_equal(data_place_of(b).kind, DATA_HERE);
    for (int64_t i = 0; i < shoal_data_columns(a); i++) {
        const char *name = shoal_data_column_name(a, i), *other = shoal_data_column_name(b, i);
        assert_int_equal(name != NULL, other != NULL);
        if (name)
            assert_string_equal(name, other);
    }
    assert_int_equal(shoal_data_read(&of_a, a, 0, shoal_data_rows(a), NULL), SHOAL_OK);
    assert_int_equal(shoal_data_read(&of_b, b, 0, shoal_data_rows(b), NULL), SHOAL_OK);
    assert_memory_equal(of_a, values, size);
    assert_memory_equal(of_b, values, size);
    assert_ptr_not_equal(of_a, of_b);
}

static void tables_with_names(void **state)
{
    static const double values[] = {1, 2.5, 3, -4, 5, 6000, 7, 8, 9};
    const int64_t limits[] = {0, 1}; /* in memory, or in a temporary file */
    (void)state;
    for (int i = 0; i < 2; i++) {
        shoal_data *data = NULL, *other = NULL;
        int descriptor = -1;
        assert_int_equal(shoal_data_open(&data, written("t.csv", table), &(shoal_data_options){.memory = limits[i]}),
                         SHOAL_OK);
        other = borrowed(data, &descriptor);
        assert_string_equal(shoal_data_column_name(other, 1), "be,ta");
        expect_same(data, other, values);
        int again = -1;
        assert_int_equal(data_lend(&again, data), SHOAL_OK); /* they lie there already */
        assert_int_equal(again, descriptor);
        shoal_data_free(&data);
        const void *read = NULL; /* who lent them may go */
        assert_int_equal(shoal_data_read(&read, other, 1, 2, NULL), SHOAL_OK);
        assert_memory_equal(read, values + 3, 6 * sizeof *values);
        assert_true(fcntl(descriptor, F_GETFD) < 0);
        shoal_data_free(&other);
    }
}

static void rows_that_were_wrapped(void **state)
{
    enum { COUNT = 5 << 20 }; /* more than is copied at once, and no whole number of pages */
    uint8_t *values = malloc(COUNT * 4 + 4), *copy = malloc(COUNT * 4 + 4);
    shoal_data *data = NULL, *other = NULL;
    int descriptor = -1;
    (void)state;
    for (size_t i = 0; i < COUNT * 4 + 4; i++)
        values[i] = copy[i] = (uint8_t)(i * 2654435761u >> 24);
    assert_int_equal(shoal_data_wrap(&data, values, COUNT + 1, 4, SHOAL_UINT8), SHOAL_OK);
    other = borrowed(data, &descriptor);
    memset(values, 0, COUNT * 4 + 4);
    free(values);
    assert_string_equal(shoal_data_format(other), "memory");
    expect_same(data, other, copy);
    shoal_data_free(&data);
    shoal_data_free(&other);
    free(copy);
}

/* The same pages, and not a copy: what is written to the file is seen through both. */
static void one_memory(void **state)
{
    shoal_data *data = NULL, *other = NULL;
    const void *read = NULL;
    double fresh = 42;
    int descriptor = -1;
    (void)state;
    assert_int_equal(shoal_data_open(&data, written("t.csv", table), NULL), SHOAL_OK);
    other = borrowed(data, &descriptor);
    assert_int_equal(pwrite(descriptor, &fresh, sizeof fresh, 0), sizeof fresh);
    assert_int_equal(shoal_data_read(&read, data, 0, 1, NULL), SHOAL_OK);
    assert_memory_equal(read, &fresh, sizeof fresh);
    assert_int_equal(shoal_data_read(&read, other, 0, 1, NULL), SHOAL_OK);
    assert_memory_equal(read, &fresh, sizeof fresh);
    shoal_data_free(&data);
    shoal_data_free(&other);
}

static void wrong_notes_and_files(void **state)
{
    shoal_data *data = NULL, *other = NULL;
    unsigned char *note = NULL, longer[512] = {0};
    size_t size = 0;
    int descriptor = -1;
    (void)state;
    assert_int_equal(shoal_data_open(&data, written("t.csv", table), NULL), SHOAL_OK);
    assert_int_equal(data_lend(&descriptor, data), SHOAL_OK);
    assert_int_equal(data_lent_describe((void **)&note, &size, data), SHOAL_OK);
    assert_true(size < sizeof longer);
    for (size_t i = 0; i < size; i++) {
        unsigned char *exact = malloc(i + !i); /* for tools that watch its end */
        memcpy(exact, note, i);
        assert_int_equal(data_borrow(&other, exact, i, lent_path(descriptor)), SHOAL_BROKEN);
        assert_null(other);
        free(exact);
    }
    memcpy(longer, note, size);
    assert_int_equal(data_borrow(&other, longer, size + 1, lent_path(descriptor)), SHOAL_BROKEN);
    assert_int_equal(data_borrow(&other, note, size, "/proc/self/fd/99999"), SHOAL_SYSTEM);
    assert_non_null(strstr(shoal_error(), "t.csv: can't see the rows"));
    assert_int_equal(ftruncate(descriptor, 8), 0);
    assert_int_equal(data_borrow(&other, note, size, lent_path(descriptor)), SHOAL_BROKEN);
    assert_non_null(strstr(shoal_error(), "are not the rows that were lent"));
    assert_null(other);
    base_free(&note);
    shoal_data_free(&data);
}

/* As many descriptors and mappings as before, whichever allocation fails. */
static void without_memory(void **state)
{
    shoal_data *data = NULL;
    int descriptor = -1, status = SHOAL_MEMORY, tries = 0;
    (void)state;
    assert_int_equal(shoal_data_open(&data, written("t.csv", table), NULL), SHOAL_OK);
    assert_int_equal(data_lend(&descriptor, data), SHOAL_OK);
    int next = dup(0);
    close(next);
    for (; status == SHOAL_MEMORY; tries++) {
        shoal_data *other = NULL;
        void *note = NULL;
        size_t size = 0;
        base_memory_fail_after(tries);
        status = data_lent_describe(&note, &size, data);
        if (status == SHOAL_OK)
            status = data_borrow(&other, note, size, lent_path(descriptor));
        base_memory_fail_after(-1);
        assert_int_equal(other != NULL, status == SHOAL_OK);
        base_free(&note);
        shoal_data_free(&other);
        int now = dup(0);
        assert_int_equal(now, next);
        close(now);
    }
    assert_int_equal(status, SHOAL_OK);
    assert_true(tries > 5);
    shoal_data_free(&data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_with_names),     cmocka_unit_test(rows_that_were_wrapped), cmocka_unit_test(one_memory),
        cmocka_unit_test(wrong_notes_and_files), cmocka_unit_test(without_memory),
    };
    return cmocka_run_group_tests(tests, folder_setup, folder_teardown);
}
