/* TFRecord files: tables and images, labels as numbers and names, and what is wrong by record and byte. */
#include "tfrecord_support.h"

#include <math.h>
#include <sys/stat.h>

/* 2 x 3 pixels in grey. */
#define PIXELS bytes_list(BLOB("\1\2\3\4\5\6"))
#define SIZE entry_of("size", INTEGERS(2, 3))

static void test_table(void **state)
{
    (void)state;
    const blob file = FRAMES(EXAMPLE(entry_of("b", FLOATS(1.5, 2)), entry_of("a", INTEGERS(7))),
                             EXAMPLE(entry_of("a", INTEGERS(-8)), entry_of("b", FLOATS(3, 4))));
    shoal_data *data = open_data(write_blob("t.tfrecord", file));
    assert_string_equal(shoal_data_format(data), "tfrecord");
    assert_string_equal(shoal_data_detail(data), "TFRecord, 2 records of 2 features, decoded into memory");
    assert_string_equal(shoal_data_column_name(data, 0), "a");
    assert_string_equal(shoal_data_column_name(data, 2), "b.2");
    EXPECT_VALUES(data, 2, 3, 7, 1.5, 2, -8, 3, 4);
    append_gzip("t.gz", file.bytes, file.size);
    for (int memory = 0; memory < 2; memory++)
        EXPECT_VALUES(open_with(file_path("t.gz"), &(shoal_data_options){.memory = memory}), 2, 3, 7, 1.5, 2, -8, 3, 4);
    EXPECT_VALUES(open_with(file_path("t.gz"), &(shoal_data_options){.keep_columns = "b.2,a"}), 2, 2, 2, 7, 4, -8);
}

static void test_types(void **state)
{
    (void)state;
    const struct {
        blob first, second;
        shoal_type type;
    } cases[] = {
        {INTEGERS(INT64_MAX), INTEGERS(1), SHOAL_INT64},
        {FLOATS(1), FLOATS(2), SHOAL_FLOAT32},
        {INTEGERS(1), FLOATS(2), SHOAL_FLOAT64},
        {INTEGERS(1), BLOB(""), SHOAL_FLOAT64},
        {FLOATS(1), BLOB(""), SHOAL_FLOAT32},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        shoal_data *data = open_data(
            write_blob("y", FRAMES(EXAMPLE(entry_of("a", cases[i].first)), EXAMPLE(entry_of("a", cases[i].second)))));
        assert_int_equal(shoal_data_type(data), cases[i].type);
        double *values = all_values(data);
        assert_true(cases[i].second.size > 0 ? values[1] == (i ? 2 : 1) : isnan(values[1]));
        free(values);
        shoal_data_free(&data);
    }
    /* What a record lacks is missing, and can be filled in. */
    const blob sparse = FRAMES(EXAMPLE(entry_of("a", FLOATS(1))), EXAMPLE(entry_of("b", FLOATS(2))),
                               EXAMPLE(entry_of("a", FLOATS(3)), entry_of("b", FLOATS(4))));
    EXPECT_VALUES(open_with(write_blob("s", sparse), &(shoal_data_options){.missing = SHOAL_MISSING_DROP}), 1, 2, 3, 4);
}

static void test_text(void **state)
{
    (void)state;
    const char *path =
        write_blob("x", FRAMES(EXAMPLE(entry_of("k", bytes_list(BLOB("dog"))), entry_of("v", FLOATS(1))),
                               EXAMPLE(entry_of("v", FLOATS(2)), entry_of("k", bytes_list(BLOB("cat"))))));
    refuse(path, SHOAL_INVALID, "column 1, \"k\", is text and not numbers; --drop-column leaves it out");
    EXPECT_VALUES(open_with(path, &(shoal_data_options){.drop_columns = "k"}), 2, 1, 1, 2);
    shoal_data *data = open_with(path, &(shoal_data_options){.target = "k"});
    assert_string_equal(shoal_data_word(data, 0), "cat");
    assert_int_equal(shoal_data_target(data), 0);
    EXPECT_VALUES(data, 2, 2, 1, 1, 0, 2);
    data = open_with(path, &(shoal_data_options){.keep_text = true});
    assert_non_null(shoal_data_column_text(data, 0));
    shoal_data_free(&data);
}

static void test_images(void **state)
{
    (void)state;
    const blob file =
        FRAMES(EXAMPLE(entry_of("image", PIXELS), SIZE, entry_of("class", INTEGERS(2))),
               EXAMPLE(entry_of("image", bytes_list(BLOB("\6\5\4\3\2\xff"))), SIZE, entry_of("class", INTEGERS(0))));
    shoal_data *data = open_data(write_blob("i", file));
    const int64_t *shape;
    assert_int_equal(shoal_data_dimensions(data, &shape), 2);
    assert_true(shape[0] == 2 && shape[1] == 3);
    assert_int_equal(shoal_data_type(data), SHOAL_UINT8);
    assert_null(shoal_data_column_name(data, 0));
    assert_string_equal(shoal_data_column_name(data, 6), "label");
    EXPECT_VALUES(data, 2, 7, 1, 2, 3, 4, 5, 6, 2, 6, 5, 4, 3, 2, 255, 0);
    data = open_with(file_path("i"), &(shoal_data_options){.target = ""});
    assert_int_equal(shoal_data_target(data), 6);
    shoal_data_free(&data);
    data = open_with(file_path("i"), &(shoal_data_options){.drop_columns = "label"});
    assert_int_equal(shoal_data_dimensions(data, &shape), 2);
    EXPECT_VALUES(data, 2, 6, 1, 2, 3, 4, 5, 6, 6, 5, 4, 3, 2, 255);
    EXPECT_VALUES(open_with(file_path("i"), &(shoal_data_options){.keep_columns = "label"}), 2, 1, 2, 0);
    /* Other tools' names, three channels, and no class. */
    data = open_data(write_blob("j", FRAMES(EXAMPLE(entry_of("image_raw", PIXELS), entry_of("height", INTEGERS(1)),
                                                    entry_of("width", INTEGERS(2)), entry_of("depth", INTEGERS(3))))));
    assert_int_equal(shoal_data_dimensions(data, &shape), 3);
    EXPECT_VALUES(data, 1, 6, 1, 2, 3, 4, 5, 6);
}

/* A class that no byte holds makes all values wider. */
static void test_classes(void **state)
{
    (void)state;
    static const struct {
        int64_t class;
        shoal_type type;
    } cases[] = {{255, SHOAL_UINT8}, {256, SHOAL_UINT16}, {65536, SHOAL_INT64}, {-1, SHOAL_INT64}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        shoal_data *data = open_data(write_blob(
            "c", FRAMES(EXAMPLE(entry_of("image", PIXELS), SIZE, entry_of("label", INTEGERS(cases[i].class))))));
        assert_int_equal(shoal_data_type(data), cases[i].type);
        EXPECT_VALUES(data, 1, 7, 1, 2, 3, 4, 5, 6, (double)cases[i].class);
    }
}

static blob named_image(const char *name, int64_t class)
{
    const blob text = {name, strlen(name)};
    return EXAMPLE(entry_of("image", PIXELS), SIZE, entry_of("label", bytes_list(text)),
                   entry_of("class", INTEGERS(class)));
}

static void expect_labels(const char *path, const char *target, double first, double second, const char *word)
{
    shoal_data *data = open_with(path, &(shoal_data_options){.target = target});
    double *values = all_values(data);
    assert_true(values[6] == first && values[13] == second);
    free(values);
    assert_int_equal(shoal_data_word(data, 0) != NULL, word != NULL);
    if (word)
        assert_string_equal(shoal_data_word(data, 0), word);
    shoal_data_free(&data);
}

/* Names are the classes where the label is the target and they mean the same as the numbers. */
static void test_names(void **state)
{
    (void)state;
    const char *path = write_blob("n", FRAMES(named_image("rose", 4), named_image("lily", 9)));
    expect_labels(path, "", 1, 0, "lily");
    expect_labels(path, "label", 1, 0, "lily");
    expect_labels(path, NULL, 4, 9, NULL);
    expect_labels(path, "2", 4, 9, NULL);
    path = write_blob("n", FRAMES(named_image("rose", 4), named_image("rose", 9)));
    expect_labels(path, "", 4, 9, NULL);
    path = write_blob("n", FRAMES(named_image("rose", 4), named_image("lily", 4)));
    expect_labels(path, "", 4, 4, NULL);
    const blob only = EXAMPLE(entry_of("image", PIXELS), SIZE, entry_of("label", bytes_list(BLOB("rose"))));
    path = write_blob("n", FRAMES(only, only));
    expect_labels(path, "", 0, 0, "rose");
    shoal_data *data = open_data(path); /* text that nobody uses is not told of until it is */
    assert_int_equal(shoal_data_write(data, file_path("n.csv")), SHOAL_INVALID);
    shoal_data_free(&data);
    EXPECT_VALUES(open_with(path, &(shoal_data_options){.drop_columns = "label"}), 2, 6, 1, 2, 3, 4, 5, 6, 1, 2, 3, 4,
                  5, 6);
}

static void test_wrong_records(void **state)
{
    (void)state;
    const blob good = EXAMPLE(entry_of("a", INTEGERS(1)));
    const blob picture = EXAMPLE(entry_of("image", PIXELS), SIZE, entry_of("class", INTEGERS(1)));
    const struct {
        blob record, before;
        const char *sentence;
    } cases[] = {
        {BLOB("\x0a\x7f"), good, "not a tf.train.Example: a length leads beyond its end"},
        {EXAMPLE(entry_of("a", INTEGERS(1, 2))), good, "\"a\" has 2 values, and in record 1 it has 1"},
        {EXAMPLE(entry_of("a", bytes_list(BLOB("x")))), good, "\"a\" is bytes, and in record 1 it is integers"},
        {good, picture, "it has no image: \"image\" is not there"},
        {EXAMPLE(entry_of("image", PIXELS), SIZE), picture, "it has no class: \"class\" is not one integer"},
        {EXAMPLE(entry_of("image", PIXELS), entry_of("class", INTEGERS(1))), picture, "no size says how its pixels"},
        {EXAMPLE(entry_of("image", PIXELS), entry_of("size", INTEGERS(3, 2)), entry_of("class", INTEGERS(1))), picture,
         "its image has 3 x 2 pixels, and that of record 1 has 2 x 3"},
        {EXAMPLE(entry_of("image", PIXELS), entry_of("size", INTEGERS(4, 5)), entry_of("class", INTEGERS(1))), picture,
         "its 6 bytes are not 4 x 5 pixels of 1 or 3"},
        {EXAMPLE(entry_of("image", PIXELS), entry_of("size", INTEGERS(-2, -3)), entry_of("class", INTEGERS(1))),
         picture, "said to have -3 x -2 pixels"},
        {EXAMPLE(entry_of("image", bytes_list(BLOB("\xff\xd8\xff\xe0 nothing"))), SIZE, entry_of("class", INTEGERS(1))),
         picture, "w.tfrec: record 2, byte"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char place[100];
        snprintf(place, sizeof place, "w.tfrec: record 2, byte %zu: ", frame_of(cases[i].before).size);
        const char *path = write_blob("w.tfrec", FRAMES(cases[i].before, cases[i].record));
        refuse(path, SHOAL_INVALID, cases[i].sentence);
        refuse(path, SHOAL_INVALID, place);
    }
    refuse(write_blob("w.tfrec", FRAMES(BLOB(""))), SHOAL_INVALID, "record 1, byte 0: it has no features");
}

/* A small file can't ask for much memory or time by its names. */
static void test_many_names(void **state)
{
    (void)state;
    enum { NAME_BYTES = 1 << 16, VALUES = 1 << 13, FEATURES = (1 << 16) + 1 };
    static char name[NAME_BYTES + 1];
    static float values[VALUES];
    memset(name, 'n', NAME_BYTES);
    refuse(write_blob("w.tfrec", FRAMES(EXAMPLE(entry_of(name, floats(VALUES, values))))), SHOAL_INVALID,
           "record 1, byte 0: the names of its values are longer than 268435456 bytes");
    base_writer entries = {0};
    const blob one = INTEGERS(1);
    for (int i = 0; i < FEATURES; i++) {
        snprintf(name, sizeof name, "%d", i);
        const blob entry = entry_of(name, one);
        base_write_bytes(&entries, entry.bytes, entry.size);
    }
    refuse(write_blob("w.tfrec", FRAMES(field_of(1, blob_of(&entries)))), SHOAL_INVALID,
           "record 1, byte 0: there are more than 65536 different features");
}

/* Where a frame ends is not known any more, so the sentence says from where on all is lost. */
static void test_wrong_frames(void **state)
{
    (void)state;
    const blob one = frame_of(EXAMPLE(entry_of("a", INTEGERS(1)))), file = joined(one, one);
    char *bytes = malloc(file.size), place[100];
    snprintf(place, sizeof place, "f.tfrec: record 2, byte %zu: ", one.size);
    for (size_t at = one.size; at < file.size; at++) {
        memcpy(bytes, file.bytes, file.size);
        bytes[at] ^= 64;
        const char *path = write_file("f.tfrec", bytes, file.size);
        refuse(path, SHOAL_INVALID, place);
        refuse(path, SHOAL_INVALID,
               at < one.size + 12 ? "its length has another checksum" : "its bytes have another checksum");
    }
    for (size_t size = one.size + 1; size < file.size; size++)
        refuse(write_file("f.tfrec", file.bytes, size), SHOAL_INVALID, "the file is cut off");
    free(bytes);
    /* A length that is right by its checksum and longer than any memory. */
    base_writer huge = {0};
    base_write_bytes(&huge, one.bytes, one.size);
    base_write_u64(&huge, UINT64_MAX);
    base_write_u32(&huge, data_tfrecord_check("\xff\xff\xff\xff\xff\xff\xff\xff", 8));
    base_write_u64(&huge, 0);
    refuse(write_blob("f.tfrec", blob_of(&huge)), SHOAL_INVALID, "a record of 18446744073709551615 bytes has 8 left");
    append_gzip("f.gz", file.bytes, file.size - 1);
    refuse(file_path("f.gz"), SHOAL_INVALID, "of what was decompressed: the file is cut off");
}

/* Rows, and the line about what was left out after the name of the file. */
static shoal_data *open_skipping(const char *path, int64_t rows, int64_t skipped, const char *line)
{
    shoal_data *data = open_with(path, &(shoal_data_options){.skip_broken = true});
    assert_int_equal(shoal_data_rows(data), rows);
    assert_int_equal(shoal_data_skipped(data), skipped);
    const char *text = shoal_data_skipped_text(data);
    if (line)
        assert_string_equal(text + strlen(path) + 2, line);
    else
        assert_null(text);
    return data;
}

static void refuse_skipping(const char *path, int expected, const char *words)
{
    shoal_data *data = NULL;
    assert_int_equal(shoal_data_open(&data, path, &(shoal_data_options){.skip_broken = true}), expected);
    assert_non_null(strstr(shoal_error(), words));
    assert_null(data);
}

/* A frame whose bytes, or with `length` whose length, have another checksum. */
static blob damaged(blob frame, bool length)
{
    base_writer out = {0};
    base_write_bytes(&out, frame.bytes, frame.size);
    out.data[length ? 8 : 12] ^= 1;
    return blob_of(&out);
}

static void test_skipping(void **state)
{
    (void)state;
    const blob one = frame_of(EXAMPLE(entry_of("a", INTEGERS(1)))), two = frame_of(EXAMPLE(entry_of("a", INTEGERS(2)))),
               bad = damaged(one, false), lost = damaged(one, true), none = frame_of(BLOB("\x0a\x7f"));
    char line[400];
    EXPECT_VALUES(open_skipping(write_blob("s", joined(one, two)), 2, 0, NULL), 2, 1, 1, 2);
    snprintf(line, sizeof line,
             "1 broken record was left out: record 1, byte 0: it is damaged: its bytes have another checksum");
    EXPECT_VALUES(open_skipping(write_blob("s", joined(bad, two)), 1, 1, line), 1, 1, 2);
    snprintf(line, sizeof line,
             "2 broken records were left out: record 2, byte %zu: not a tf.train.Example: a length leads beyond its "
             "end; record 4, byte %zu: its length has another checksum, so neither it nor what follows can be read",
             one.size, 2 * one.size + none.size);
    EXPECT_VALUES(open_skipping(write_blob("s", joined(joined(one, none), joined(two, joined(lost, one)))), 2, 2, line),
                  2, 1, 1, 2);
    for (size_t size = 1; size < two.size; size++) {
        shoal_data *data = open_with(write_blob("s", joined(one, (blob){two.bytes, size})),
                                     &(shoal_data_options){.skip_broken = true});
        assert_int_equal(shoal_data_skipped(data), 1);
        assert_non_null(strstr(shoal_data_skipped_text(data), "was left out: record 2, byte"));
        assert_non_null(strstr(shoal_data_skipped_text(data), ": the file is cut off: "));
        EXPECT_VALUES(data, 1, 1, 1);
    }
    blob many = joined(two, lost);
    for (int i = 0; i < 5; i++)
        many = joined(bad, many);
    shoal_data *data = open_with(write_blob("s", many), &(shoal_data_options){.skip_broken = true});
    assert_int_equal(shoal_data_skipped(data), 6);
    assert_non_null(strstr(shoal_data_skipped_text(data), "checksum; and 2 more; record 7, byte"));
    EXPECT_VALUES(data, 1, 1, 2);
}

/* An image that can't be decoded is damaged, too, and one of another size is not; numbers are those of the file. */
static void test_skipping_images(void **state)
{
    (void)state;
    const blob good = EXAMPLE(entry_of("image", PIXELS), SIZE, entry_of("class", INTEGERS(1))),
               broken = EXAMPLE(entry_of("image", bytes_list(BLOB("\xff\xd8\xff\xe0 nothing"))), SIZE,
                                entry_of("class", INTEGERS(1))),
               other =
                   EXAMPLE(entry_of("image", PIXELS), entry_of("size", INTEGERS(3, 2)), entry_of("class", INTEGERS(1)));
    shoal_data *data =
        open_with(write_blob("s", FRAMES(broken, good, broken, good)), &(shoal_data_options){.skip_broken = true});
    assert_int_equal(shoal_data_skipped(data), 2);
    assert_non_null(strstr(shoal_data_skipped_text(data), "were left out: record 1, byte 0: "));
    assert_non_null(strstr(shoal_data_skipped_text(data), "; record 3, byte "));
    EXPECT_VALUES(data, 2, 7, 1, 2, 3, 4, 5, 6, 1, 1, 2, 3, 4, 5, 6, 1);
    refuse_skipping(write_blob("s", FRAMES(broken, good, other)), SHOAL_INVALID, "s: record 3, byte");
    assert_non_null(strstr(shoal_error(), "that of record 2 has 2 x 3"));
    refuse_skipping(write_blob("s", FRAMES(broken, broken)), SHOAL_INVALID,
                    "s: every record is broken: record 1, byte 0: ");
    refuse_skipping(write_blob("s.csv", BLOB("1,2\n3,4\n")), SHOAL_USAGE,
                    "--skip-broken is for TFRecord, and this is text");
}

/* Files of a folder, one of them empty, follow each other; records are counted, and lost, by file. */
static void test_folder_of_files(void **state)
{
    (void)state;
    static const char *const names[] = {"many/a.tfrec", "many/b.tfrec", "many/c.tfrec", "many/c.tfrec.idx"};
    const blob two = FRAMES(EXAMPLE(entry_of("a", FLOATS(1))), EXAMPLE(entry_of("a", FLOATS(2))));
    const blob one = FRAMES(EXAMPLE(entry_of("a", FLOATS(3))));
    char second[160];
    assert_int_equal(mkdir(file_path("many"), 0700), 0);
    write_blob(names[0], two);
    write_blob(names[1], BLOB(""));
    write_blob(names[2], joined(one, one));
    write_blob(names[3], BLOB("0 20"));
    shoal_data *data = open_data(file_path("many"));
    assert_string_equal(shoal_data_format(data), "tfrecord");
    assert_non_null(strstr(shoal_data_detail(data), " in 3 files, "));
    EXPECT_VALUES(data, 4, 1, 1, 2, 3, 3);
    write_blob(names[0], (blob){two.bytes, two.size - 1});
    snprintf(second, sizeof second, "many/a.tfrec: record 2, byte %zu: the file is cut off", two.size / 2);
    refuse(file_path("many"), SHOAL_INVALID, second);
    EXPECT_VALUES(open_with(file_path("many"), &(shoal_data_options){.skip_broken = true}), 3, 1, 1, 3, 3);
    write_blob(names[2], joined(one, FRAMES(EXAMPLE(entry_of("a", FLOATS(4, 5))))));
    snprintf(second, sizeof second, "many/c.tfrec: record 2, byte %zu: \"a\" has 2 values, and in ", one.size);
    write_blob(names[0], one);
    refuse(file_path("many"), SHOAL_INVALID, second);
    refuse(file_path("many"), SHOAL_INVALID, "and in record 1 of a.tfrec it has 1");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_int_equal(unlink(file_path(names[i])), 0);
    assert_int_equal(rmdir(file_path("many")), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_images),
        cmocka_unit_test(test_classes),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_wrong_records),
        cmocka_unit_test(test_many_names),
        cmocka_unit_test(test_wrong_frames),
        cmocka_unit_test(test_skipping),
        cmocka_unit_test(test_skipping_images),
        cmocka_unit_test(test_folder_of_files),
    };
    return cmocka_run_group_tests_name("data_tfrecord", tests, folder_setup, folder_teardown);
}
