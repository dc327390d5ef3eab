/* src/data/table/split.c, split_write.c and strata.c: rows are all there, once, in the same order whatever the memory
 * and the format; classes get their shares; and text keeps its lines.  tests/system/test_data_split.py compares with
 * scikit-learn. */
#include "data_support.h"

#include "base/memory.h"
#include "data/table/split.h"

/* ---- shares ------------------------------------------------------------------------------------------------------ */

static void shares_are_rounded_and_add_up(void **state)
{
    (void)state;
    static const int64_t rows[] = {50, 50, 50, 7, 2, 1000001};
    enum { COUNT = sizeof rows / sizeof *rows };
    int64_t all = 0, out[COUNT];
    for (int i = 0; i < COUNT; i++)
        all += rows[i];
    for (int64_t wanted = 0; wanted <= all; wanted = wanted * 3 + 1) {
        int64_t sum = 0;
        assert_int_equal(data_strata_share(out, rows, COUNT, wanted, 3), SHOAL_OK);
        for (int i = 0; i < COUNT; i++) {
            const double share = (double)rows[i] * (double)wanted / (double)all;
            assert_true((double)out[i] > share - 1 && (double)out[i] < share + 1);
            sum += out[i];
        }
        assert_int_equal(sum, wanted);
    }
    assert_int_equal(data_strata_share(out, (int64_t[]){6, 3, 1}, 3, 5, 0), SHOAL_OK); /* 3, 1.5, 0.5 */
    assert_int_equal(out[0], 3);
    assert_int_equal(out[1] + out[2], 2);
    assert_int_equal(data_strata_share(out, (int64_t[]){7, 2, 1}, 3, 3, 0), SHOAL_OK); /* 2.1, 0.6, 0.3 */
    assert_int_equal(out[0], 2);
    assert_int_equal(out[1], 1);
    assert_int_equal(out[2], 0);
}

/* Of equal remainders not always the same one gets the row. */
static void ties_are_drawn(void **state)
{
    (void)state;
    int64_t out[4], times[4] = {0};
    for (uint64_t seed = 0; seed < 64; seed++) {
        assert_int_equal(data_strata_share(out, (int64_t[]){3, 3, 3, 3}, 4, 6, seed), SHOAL_OK);
        for (int i = 0; i < 4; i++)
            times[i] += out[i] == 2;
    }
    for (int i = 0; i < 4; i++)
        assert_in_range(times[i], 16, 48);
}

static void sizes_are_shares_or_numbers(void **state)
{
    (void)state;
    int64_t out;
    static const struct {
        const char *size;
        int64_t up, down;
    } good[] = {{"0.2", 30, 30}, {"0.25", 38, 37}, {"1e-9", 1, 0}, {"1", 1, 1}, {"30", 30, 30}, {"1e2", 100, 100}};
    static const char *const bad[] = {"", "0", "1.0", "-1", "-0.5", "1.5", "20%", "half", "nan", "1e30", "0.0"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_int_equal(data_split_size(&out, "--test", good[i].size, 150, true), SHOAL_OK);
        assert_int_equal(out, good[i].up);
        assert_int_equal(data_split_size(&out, "--test", good[i].size, 150, false), SHOAL_OK);
        assert_int_equal(out, good[i].down);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(data_split_size(&out, "--test", bad[i], 150, true), SHOAL_USAGE);
        assert_non_null(strstr(shoal_error(), "--test: "));
    }
}

/* ---- whole splits ------------------------------------------------------------------------------------------------ */

static int split_once(const data_split_request *request)
{
    data_split split;
    int status = data_split_open(&split, request);
    if (status == SHOAL_OK)
        status = data_split_write(&split);
    data_split_close(&split);
    return status;
}

static const char *contents(const char *name)
{
    static char text[2][16384];
    static int next;
    char *out = text[next++ % 2];
    out[read_whole_file((unsigned char *)out, sizeof text[0] - 1, file_path(name))] = '\0';
    return out;
}

/* 100 lines "i,word-i % 3,i / 2" below names, which end in CR LF, some in quotes; the last has no end. */
static void write_table(const char *name)
{
    char text[8192];
    size_t used = (size_t)sprintf(text, "\xef\xbb\xbf# of a test\r\nid,\"the, word\",half\r\n");
    for (int i = 0; i < 100; i++)
        used += (size_t)sprintf(text + used, i % 9 ? "%d, w%d ,%.1f0%s" : "%d,\"w%d\",%.1f0%s", i, i % 3, i / 2.0,
                                i == 99 ? "" : "\r\n");
    write_text(name, text);
}

/* The first column of a file, in order. */
static int64_t read_ids(int64_t *out, const char *name)
{
    shoal_data *data = NULL;
    const void *row;
    double id;
    assert_int_equal(shoal_data_open(&data, file_path(name), &(shoal_data_options){.keep_columns = "1"}), SHOAL_OK);
    const int64_t rows = shoal_data_rows(data);
    for (int64_t i = 0; i < rows; i++) {
        assert_int_equal(shoal_data_read(&row, data, i, 1, NULL), SHOAL_OK);
        shoal_convert_float64(&id, row, shoal_data_type(data), 1);
        out[i] = (int64_t)id;
    }
    shoal_data_free(&data);
    return rows;
}

static void rows_are_the_same_in_all_formats_and_memories(void **state)
{
    (void)state;
    static const char *const endings[] = {"csv", "tsv.gz", "npy", "raw.csv", "txt"};
    int64_t train[100], test[100], other[100];
    write_table("table.csv");
    char in[128], paths[2][128], names[2][32];
    strcpy(in, file_path("table.csv"));
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        for (int memory = 0; memory < 3; memory++) {
            for (int k = 0; k < 2; k++) {
                sprintf(names[k], "%s.%s", k ? "test" : "train", endings[i]);
                strcpy(paths[k], file_path(names[k]));
            }
            const bool numbers = strcmp(endings[i], "npy") == 0;
            const data_split_request request = {
                .data = in,
                .reading = {.memory = (int64_t[]){0, 1, 2000}[memory], .drop_columns = numbers ? "2" : NULL},
                .train = paths[0],
                .test = paths[1],
                .test_size = "20",
                .stratify = "the, word",
                .seed = 5};
            if (split_once(&request) < 0)
                fail_msg("%s", shoal_error());
            const bool first = i == 0 && memory == 0;
            assert_int_equal(read_ids(first ? train : other, names[0]), 80);
            if (!first)
                assert_memory_equal(train, other, 80 * sizeof *train);
            assert_int_equal(read_ids(first ? test : other, names[1]), 20);
            if (!first)
                assert_memory_equal(test, other, 20 * sizeof *test);
        }
    int seen[100] = {0}, of_class[3] = {0};
    for (int i = 0; i < 80; i++)
        seen[train[i]]++;
    for (int i = 0; i < 20; i++) {
        seen[test[i]]++;
        of_class[test[i] % 3]++;
    }
    for (int i = 0; i < 100; i++)
        assert_int_equal(seen[i], 1);
    for (int k = 0; k < 3; k++)
        assert_in_range(of_class[k], 6, 7);
}

static void text_keeps_its_lines(void **state)
{
    (void)state;
    char in[128], out[128];
    write_table("table.csv");
    strcpy(in, file_path("table.csv"));
    strcpy(out, file_path("mixed.csv"));
    assert_int_equal(split_once(&(data_split_request){.data = in, .train = out, .seed = 1}), SHOAL_OK);
    const char *before = contents("table.csv"), *after = contents("mixed.csv");
    assert_int_equal(strlen(after), strlen(before) + 2); /* the end of the last line */
    assert_memory_equal(after, "\xef\xbb\xbf# of a test\r\nid,\"the, word\",half\r\n", 37);
    int lines = 0, moved = 0;
    for (const char *at = after + 37; *at; lines++) {
        char line[64];
        const size_t size = (size_t)(strstr(at, "\r\n") + 2 - at);
        snprintf(line, sizeof line, "\n%.*s", (int)size - 2, at);
        const char *found = strstr(before, line);
        assert_non_null(found);
        moved += found - before != at - after - 1;
        at += size;
    }
    assert_int_equal(lines, 100);
    assert_in_range(moved, 80, 100);
    /* In order, they are the file itself. */
    assert_int_equal(split_once(&(data_split_request){.data = in, .train = out, .in_order = true}), SHOAL_OK);
    assert_memory_equal(contents("mixed.csv"), before, strlen(before));
    /* Another delimiter, and fewer columns: the comment would not be true any more. */
    strcpy(out, file_path("mixed.tsv"));
    assert_int_equal(split_once(&(data_split_request){
                         .data = in, .train = out, .in_order = true, .reading = {.keep_columns = "half,the, word"}}),
                     SHOAL_USAGE); /* the comma ends a name */
    assert_int_equal(split_once(&(data_split_request){
                         .data = in, .train = out, .in_order = true, .reading = {.keep_columns = "3,2"}}),
                     SHOAL_OK);
    assert_memory_equal(contents("mixed.tsv"), "half\t\"the, word\"\r\n0.00\t\"w0\"\r\n0.50\tw1\r\n", 38);
}

static void arrays_keep_their_shape(void **state)
{
    (void)state;
    static uint16_t values[10 * 2 * 3];
    char in[128], out[2][128];
    for (int i = 0; i < 60; i++)
        values[i] = (uint16_t)(i / 6);
    strcpy(in, file_path("images.npy"));
    strcpy(out[0], file_path("a.npy"));
    strcpy(out[1], file_path("b.idx"));
    assert_int_equal(shoal_npy_write(in, values, SHOAL_UINT16, 3, (int64_t[]){10, 2, 3}), SHOAL_OK);
    assert_int_equal(split_once(&(data_split_request){.data = in, .train = out[0]}), SHOAL_OK);
    assert_non_null(strstr(contents("a.npy") + 10, "'shape': (10, 2, 3)"));
    assert_int_equal(split_once(&(data_split_request){.data = in, .train = out[0], .reading.keep_columns = "2"}),
                     SHOAL_OK);
    assert_non_null(strstr(contents("a.npy") + 10, "'shape': (10, 1)"));
    assert_int_equal(shoal_npy_write(in, values, SHOAL_UINT8, 1, (int64_t[]){10}), SHOAL_OK);
    assert_int_equal(split_once(&(data_split_request){
                         .data = in, .train = out[0], .test = out[1], .test_size = "3", .train_size = "2"}),
                     SHOAL_OK);
    assert_non_null(strstr(contents("a.npy") + 10, "'shape': (2,)"));
    assert_memory_equal(contents("b.idx"), "\0\0\x08\1\0\0\0\3", 8);
}

/* Rows of data that are made when they are read. */
static void generated_rows_are_split(void **state)
{
    (void)state;
    char out[2][128];
    strcpy(out[0], file_path("a.npy"));
    strcpy(out[1], file_path("b.npy"));
    assert_int_equal(split_once(&(data_split_request){.data = "gen:uniform?rows=9&cols=1&low=0&high=3&type=uint8",
                                                      .train = out[0],
                                                      .test = out[1],
                                                      .reading.memory = 1}),
                     SHOAL_OK);
    assert_non_null(strstr(contents("a.npy") + 10, "'shape': (6, 1)"));
    assert_non_null(strstr(contents("b.npy") + 10, "'shape': (3, 1)"));
}

/* ---- what is refused --------------------------------------------------------------------------------------------- */

static void expect_refusal(const char *text, const data_split_request *wanted, const char *says)
{
    data_split_request request = *wanted;
    char in[128], train[128], test[128];
    strcpy(in, write_text("in.csv", text));
    strcpy(train, file_path("never.csv"));
    strcpy(test, file_path("never.npy"));
    request.data = in;
    request.train = train;
    request.test = test;
    assert_true(split_once(&request) < 0);
    if (!strstr(shoal_error(), says))
        fail_msg("\"%s\" does not say \"%s\"", shoal_error(), says);
    assert_int_equal(access(train, F_OK), -1);
    assert_int_equal(access(test, F_OK), -1);
}

static void what_can_not_be_split_is_refused(void **state)
{
    (void)state;
    typedef data_split_request ask;
    expect_refusal("a\n1\n2\n", &(ask){.test_size = "2"}, "2 of the 2 rows for the test leave none for training");
    expect_refusal("a\n1\n", &(ask){0}, "1 of the 1 row for the test leaves none for training");
    expect_refusal("a\n1\n2\n", &(ask){.train_size = "2"}, "2 of the 2 rows for training leave none for the test");
    expect_refusal("a\n1\n2\n", &(ask){.train_size = "0.1"}, "--train 0.1 of 2 rows is none");
    expect_refusal("a\n1\n2\n3\n", &(ask){.test_size = "2", .train_size = "2"}, "are more than the 3 there are");
    expect_refusal("a,b\n1,x\n2,x\n3,y\n4,z\n", &(ask){.stratify = "b"}, "class y of column b of ");
    expect_refusal("a,b\n1,x\n2,x\n3,\n4,z\n5,\n", &(ask){.stratify = "b"}, "2 values of column b of ");
    expect_refusal("a,b\n1,x\n2,x\n3,\n4,z\n5,\n", &(ask){.stratify = "b"}, "the first in row 3");
    expect_refusal("a,b\n1,x\n2,x\n3,y\n4,y\n", &(ask){.stratify = "b"}, "1 row for the test can't hold the 2 classes");
    expect_refusal("a,b\n1,5\n2,5\n3,9007199254740993\n4,9007199254740992\n", &(ask){.stratify = "b"},
                   "row 3 of column b of ");
    expect_refusal("a,b\n1,2\n1,3\n", &(ask){.stratify = "c"}, "--stratify: there is no column \"c\" and no such file");
    expect_refusal("a,b\n1,2\n1,3\n", &(ask){.stratify = "b", .in_order = true}, "--stratify and --in-order");
    expect_refusal("a,b\n1,x\n1,y\n", &(ask){.test_size = "1"}, "\"x\" is not a number; --drop-column b");
    char other[128];
    strcpy(other, write_text("labels.csv", "1\n2\n3\n"));
    expect_refusal("a,b\n1,2\n1,3\n", &(ask){.stratify = other}, "--stratify needs one value for each of the 2 rows");
}

static void classes_may_be_in_another_file(void **state)
{
    (void)state;
    char in[128], labels[128], train[128], test[128];
    int64_t ids[100];
    write_table("table.csv");
    strcpy(in, file_path("table.csv"));
    char text[512] = "";
    for (int i = 0; i < 100; i++)
        strcat(text, i < 90 ? "yes\n" : "no\n");
    strcpy(labels, write_text("labels.txt", text));
    strcpy(train, file_path("train.csv"));
    strcpy(test, file_path("test.csv"));
    assert_int_equal(split_once(&(data_split_request){
                         .data = in, .train = train, .test = test, .test_size = "0.3", .stratify = labels}),
                     SHOAL_OK);
    int64_t late = 0;
    assert_int_equal(read_ids(ids, "test.csv"), 30);
    for (int i = 0; i < 30; i++)
        late += ids[i] >= 90;
    assert_int_equal(late, 3);
}

/* A file that shrinks between the look at its lines and their writing. */
static void a_file_that_changes_is_an_error(void **state)
{
    (void)state;
    char in[128], out[128];
    data_split split;
    write_table("table.csv");
    strcpy(in, file_path("table.csv"));
    strcpy(out, file_path("gone.csv"));
    assert_int_equal(data_split_open(&split, &(data_split_request){.data = in, .train = out}), SHOAL_OK);
    assert_int_equal(truncate(in, 100), 0);
    assert_int_equal(data_split_write(&split), SHOAL_INVALID);
    data_split_close(&split);
    assert_int_equal(access(out, F_OK), -1);
}

/* Every allocation fails once: no file is left behind, and the next attempt succeeds. */
static void memory_may_fail(void **state)
{
    (void)state;
    char in[128], train[128], test[128];
    write_table("table.csv");
    strcpy(in, file_path("table.csv"));
    strcpy(train, file_path("memory.csv"));
    strcpy(test, file_path("memory.npy"));
    const data_split_request request = {.data = in,
                                        .train = train,
                                        .test = test,
                                        .test_size = "0.2",
                                        .stratify = "2",
                                        .reading = {.drop_columns = "2", .memory = 5000}};
    for (int64_t n = 0;; n++) {
        assert_true(n < 1000);
        base_memory_fail_after(n);
        const int status = split_once(&request);
        base_memory_fail_after(-1);
        if (status == SHOAL_OK)
            break;
        assert_int_equal(status, SHOAL_MEMORY);
        if (access(train, F_OK) == 0 || access(test, F_OK) == 0)
            fail_msg("allocation %lld fails, and a file is there", (long long)n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_are_rounded_and_add_up),
        cmocka_unit_test(ties_are_drawn),
        cmocka_unit_test(sizes_are_shares_or_numbers),
        cmocka_unit_test(rows_are_the_same_in_all_formats_and_memories),
        cmocka_unit_test(text_keeps_its_lines),
        cmocka_unit_test(arrays_keep_their_shape),
        cmocka_unit_test(generated_rows_are_split),
        cmocka_unit_test(what_can_not_be_split_is_refused),
        cmocka_unit_test(classes_may_be_in_another_file),
        cmocka_unit_test(a_file_that_changes_is_an_error),
        cmocka_unit_test(memory_may_fail),
    };
    return cmocka_run_group_tests(tests, folder_setup, folder_teardown);
}
