/* Sinks: plain and compressed output arrives whole or not at all. */
#include "data_support.h"

static void write_pieces(data_sink *sink, const char *text, size_t size, size_t step)
{
    for (size_t at = 0; at < size; at += step)
        assert_int_equal(data_sink_write(sink, text + at, size - at < step ? size - at : step), SHOAL_OK);
}

static void test_plain_and_compressed(void **state)
{
    (void)state;
    enum { SIZE = 700000 };
    static const char *const endings[] = {"o", "o.gz", "o.xz", "o.bz2", "o.zst"};
    char *text = malloc(SIZE), *back = malloc(SIZE + 1);
    for (unsigned i = 0; i < SIZE; i++)
        text[i] = (char)(i * i * 2654435761u >> 24); /* does not compress well */
    for (int i = 0; i < 5; i++) {
        data_sink sink;
        data_source source;
        size_t got;
        const char *path = file_path(endings[i]);
        const data_codec *codec = data_codec_of_name(path, strlen(path));
        assert_int_equal(data_sink_open(&sink, path, codec), SHOAL_OK);
        write_pieces(&sink, text, SIZE, 12345);
        assert_int_equal(data_sink_commit(&sink), SHOAL_OK);
        data_sink_close(&sink);
        assert_int_equal(data_source_open(&source, path, true), SHOAL_OK);
        assert_ptr_equal(data_source_codec(&source), codec);
        assert_int_equal(codec != NULL, i > 0);
        assert_int_equal(data_source_read(&got, &source, back, SIZE + 1), SHOAL_OK);
        assert_int_equal(got, SIZE);
        assert_memory_equal(back, text, SIZE);
        data_source_close(&source);
    }
    free(text);
    free(back);
}

static void test_not_committed(void **state)
{
    (void)state;
    char old[8];
    write_text("kept.gz", "old");
    int files = count_files();
    data_sink sink;
    assert_int_equal(data_sink_open(&sink, file_path("kept.gz"), data_codec_of_name("x.gz", 4)), SHOAL_OK);
    write_pieces(&sink, "new content", 11, 3);
    data_sink_close(&sink);
    assert_int_equal(count_files(), files);
    assert_int_equal(read_whole_file(old, sizeof old, file_path("kept.gz")), 3);
    assert_int_equal(data_sink_open(&sink, "/nonexistent/x.gz", data_codec_of_name("x.gz", 4)), SHOAL_SYSTEM);
    data_sink_close(&sink);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_plain_and_compressed),
                                       cmocka_unit_test(test_not_committed)};
    return cmocka_run_group_tests_name("data_sink", tests, folder_setup, folder_teardown);
}
