/* What the tests of src/data share: a folder of their own, files made from bytes, and the two ways an open can end.
 * For cmocka: folder_setup and folder_teardown go with cmocka_unit_test_setup_teardown or a group. */
#ifndef DATA_SUPPORT_H
#define DATA_SUPPORT_H

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <zlib.h>

#include <shoal/data.h>

#include "data/data_internal.h"

static char test_folder[64];

static inline int folder_setup(void **state)
{
    (void)state;
    strcpy(test_folder, "/tmp/shoal-test-XXXXXX");
    return mkdtemp(test_folder) ? 0 : -1;
}

/* The name of a file in the folder; valid until the fourth call from now. */
static inline const char *file_path(const char *name)
{
    static char paths[4][512];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", test_folder, name);
    return path;
}

static inline int count_files(void)
{
    int count = 0;
    DIR *folder = opendir(test_folder);
    for (struct dirent *entry; (entry = readdir(folder));)
        count += entry->d_name[0] != '.';
    closedir(folder);
    return count;
}

static inline int folder_teardown(void **state)
{
    (void)state;
    DIR *folder = opendir(test_folder);
    for (struct dirent *entry; (entry = readdir(folder));)
        if (entry->d_name[0] != '.')
            unlink(file_path(entry->d_name));
    closedir(folder);
    return rmdir(test_folder);
}

static inline const char *write_file(const char *name, const void *bytes, size_t size)
{
    const char *path = file_path(name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
    return path;
}

static inline const char *write_text(const char *name, const char *text)
{
    return write_file(name, text, strlen(text));
}

/* Adds one gzip member to the file. */
static inline const char *append_gzip(const char *name, const void *bytes, size_t size)
{
    const char *path = file_path(name);
    gzFile file = gzopen(path, "ab");
    assert_non_null(file);
    assert_int_equal(gzwrite(file, bytes, (unsigned)size), (int)size);
    assert_int_equal(gzclose(file), Z_OK);
    return path;
}

static inline size_t read_whole_file(void *out, size_t room, const char *path)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t size = fread(out, 1, room, file);
    fclose(file);
    return size;
}

static inline shoal_data *open_with(const char *path, const shoal_data_options *options)
{
    shoal_data *data = NULL;
    if (shoal_data_open(&data, path, options) < 0)
        fail_msg("%s", shoal_error());
    assert_non_null(data);
    return data;
}

static inline shoal_data *open_data(const char *path)
{
    return open_with(path, NULL);
}

/* Opening must fail with this status and a message that holds `part`. */
static inline void refuse_with(const char *path, const shoal_data_options *options, int status, const char *part)
{
    shoal_data *data = NULL;
    int got = shoal_data_open(&data, path, options);
    shoal_data_free(&data);
    if (got != status)
        fail_msg("%s: status %d instead of %d (%s)", path, got, status, got < 0 ? shoal_error() : "opened");
    if (!strstr(shoal_error(), part))
        fail_msg("\"%s\" does not hold \"%s\"", shoal_error(), part);
    assert_null(strchr(shoal_error(), '\n'));
}

static inline void refuse(const char *path, int status, const char *part)
{
    refuse_with(path, NULL, status, part);
}

/* All values of a data set as float64, freed by the caller. */
static inline double *all_values(shoal_data *data)
{
    int64_t count = shoal_data_rows(data) * shoal_data_columns(data);
    void *scratch = malloc((size_t)count * 8);
    double *values = malloc((size_t)count * sizeof *values);
    const void *rows;
    assert_int_equal(shoal_data_read(&rows, data, 0, shoal_data_rows(data), scratch), SHOAL_OK);
    shoal_convert_float64(values, rows, shoal_data_type(data), count);
    free(scratch);
    return values;
}

/* Checks shape and every value, then frees the data set. */
static inline void expect_values(shoal_data *data, int64_t rows, int64_t columns, const double *expected)
{
    assert_int_equal(shoal_data_rows(data), rows);
    assert_int_equal(shoal_data_columns(data), columns);
    double *values = all_values(data);
    for (int64_t i = 0; i < rows * columns; i++)
        if (!(values[i] == expected[i]))
            fail_msg("%s: value %lld is %.17g instead of %.17g", shoal_data_path(data), (long long)i, values[i],
                     expected[i]);
    free(values);
    shoal_data_free(&data);
}

#define EXPECT_VALUES(data, rows, columns, ...) expect_values(data, rows, columns, (const double[]){__VA_ARGS__})

#endif
