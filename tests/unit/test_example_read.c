/* tf.train.Example as any writer of protocol buffers may write it, and every lie one can tell. */
#include "tfrecord_support.h"

#include "base/memory.h"
#include "data/format/example_read.h"

static int read_example(data_features *out, const char **wrong, blob bytes)
{
    /* At the end of memory of their own, so that a sanitizer sees a byte too many. */
    unsigned char *exact = malloc(bytes.size + !bytes.size);
    memcpy(exact, bytes.bytes, bytes.size);
    int status = data_example_read(out, exact, bytes.size, wrong);
    for (int64_t i = 0; i < out->count && status == SHOAL_OK; i++) {
        double numbers[4];
        int64_t whole[4];
        const unsigned char *first;
        size_t size;
        data_feature_numbers(numbers, 4, &out->feature[i]);
        data_feature_integers(whole, 4, &out->feature[i]);
        data_feature_bytes(&first, &size, &out->feature[i]);
    }
    free(exact);
    return status;
}

/* One feature called "a" must have these integers. */
static void expect_integers(blob bytes, int64_t count, const int64_t *values)
{
    data_features features = {0};
    const char *wrong;
    int64_t found[8] = {0};
    if (data_example_read(&features, bytes.bytes, bytes.size, &wrong) < 0)
        fail_msg("%s", wrong);
    const data_feature *a = data_feature_find(&features, "a");
    assert_true(a && a->kind == DATA_FEATURE_INTEGERS && a->count == count);
    data_feature_integers(found, 8, a);
    assert_memory_equal(found, values, (size_t)count * 8);
    data_features_release(&features);
}
#define EXPECT_INTEGERS(bytes, ...)                                                                                    \
    expect_integers(bytes, sizeof((int64_t[]){__VA_ARGS__}) / 8, (const int64_t[]){__VA_ARGS__})

static void test_lists(void **state)
{
    (void)state;
    EXPECT_INTEGERS(EXAMPLE(entry_of("a", INTEGERS(1, -1, INT64_MIN, INT64_MAX, 300))), 1, -1, INT64_MIN, INT64_MAX,
                    300);
    /* Not packed, and both mixed. */
    EXPECT_INTEGERS(EXAMPLE(entry_of("a", field_of(3, BLOB("\x08\x05\x08\x06")))), 5, 6);
    EXPECT_INTEGERS(EXAMPLE(entry_of("a", field_of(3, BLOB("\x08\x05\x0a\x02\x06\x07\x08\x08")))), 5, 6, 7, 8);
    /* A number in more bytes than it needs. */
    EXPECT_INTEGERS(EXAMPLE(entry_of("a", field_of(3, BLOB("\x08\x85\x80\x80\x80\x00\x08\x81\x80\x80\x80\x80\x80\x80"
                                                           "\x80\x80\x00")))),
                    5, 1);
    /* Floats not packed. */
    data_features features = {0};
    const char *wrong;
    double values[2] = {0};
    const blob bytes = EXAMPLE(entry_of("a", field_of(2, BLOB("\x0d\0\0\x80\x3f\x0d\0\0\0\x40"))));
    assert_int_equal(data_example_read(&features, bytes.bytes, bytes.size, &wrong), SHOAL_OK);
    assert_int_equal(features.feature[0].kind, DATA_FEATURE_FLOATS);
    data_feature_numbers(values, 2, &features.feature[0]);
    assert_true(values[0] == 1 && values[1] == 2);
    values[1] = 7;
    data_feature_numbers(values, 1, &features.feature[0]); /* never more than there is room for */
    assert_true(values[1] == 7);
    data_features_release(&features);
}

static void test_maps(void **state)
{
    (void)state;
    data_features features = {0};
    const char *wrong;
    const blob bytes = EXAMPLE(entry_of("b", INTEGERS(1)), entry_of("ab", FLOATS(2)), entry_of("b", INTEGERS(3, 4)),
                               entry_of("a", bytes_list(BLOB("xyz"))), entry_of("", BLOB("")));
    assert_int_equal(data_example_read(&features, bytes.bytes, bytes.size, &wrong), SHOAL_OK);
    assert_int_equal(features.count, 4);
    static const char *const names[] = {"", "a", "ab", "b"};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(features.feature[i].name_bytes, strlen(names[i]));
        assert_memory_equal(features.feature[i].name, names[i], strlen(names[i]));
        assert_ptr_equal(data_feature_find(&features, names[i]), &features.feature[i]);
    }
    assert_null(data_feature_find(&features, "c"));
    assert_int_equal(features.feature[0].kind, DATA_FEATURE_NONE);
    assert_int_equal(features.feature[3].count, 2); /* the last one of a name counts */
    const unsigned char *text;
    size_t size;
    data_feature_bytes(&text, &size, &features.feature[1]);
    assert_true(size == 3 && memcmp(text, "xyz", 3) == 0);
    data_features_release(&features);
    /* The value before its name, Features in two parts, lists in two parts, and the last kind of several. */
    EXPECT_INTEGERS(field_of(1, field_of(1, joined(field_of(2, INTEGERS(7)), field_of(1, BLOB("a"))))), 7);
    EXPECT_INTEGERS(joined(EXAMPLE(entry_of("b", INTEGERS(1))), EXAMPLE(entry_of("a", INTEGERS(2)))), 2);
    EXPECT_INTEGERS(EXAMPLE(entry_of("a", joined(INTEGERS(1, 2), INTEGERS(3)))), 1, 2, 3);
    EXPECT_INTEGERS(EXAMPLE(entry_of("a", joined(FLOATS(1, 2, 3), INTEGERS(4)))), 4);
}

/* Of every type, at every level, groups too. */
static void test_unknown_fields(void **state)
{
    (void)state;
    static const blob unknown[] = {BLOB("\x78\x96\x01"),
                                   BLOB("\x79"
                                        "12345678"),
                                   BLOB("\x7a\x03"
                                        "abc"),
                                   BLOB("\x7d"
                                        "1234"),
                                   BLOB("\x7b\x08\x01\x0b\x10\x05\x0c\x7c"),
                                   BLOB("\x7b\x7c"),
                                   BLOB("\x80\x80\x01\x01")};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        const blob u = unknown[i], list = joined(u, BLOB("\x08\x05"));
        const blob feature = joined(u, field_of(3, list));
        const blob entry = joined(joined(field_of(1, BLOB("a")), u), field_of(2, feature));
        EXPECT_INTEGERS(joined(u, field_of(1, joined(u, field_of(1, entry)))), 5);
    }
    /* A known number of another type is not known either. */
    EXPECT_INTEGERS(joined(BLOB("\x08\x01"), EXAMPLE(entry_of("a", INTEGERS(1)))), 1);
    data_features features = {0};
    const char *wrong;
    const blob sequence = joined(EXAMPLE(entry_of("a", INTEGERS(1))), field_of(2, BLOB("")));
    assert_int_equal(data_example_read(&features, sequence.bytes, sequence.size, &wrong), SHOAL_OK);
    assert_true(features.has_lists);
    data_features_release(&features);
}

static void test_lies(void **state)
{
    (void)state;
    char deep[202];
    memset(deep, 0x7b, 100);
    memset(deep + 101, 0x7c, 101);
    deep[100] = 0x7b;
    const struct {
        blob bytes;
        const char *wrong;
    } cases[] = {
        {BLOB("\x0a"), "a number has no end"},
        {BLOB("\x0a\x05"
              "abcd"),
         "beyond its end"},
        {BLOB("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), "beyond its end"},
        {BLOB("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), "a number has no end"},
        {BLOB("\x02\x00"), "a number that there is none of"},
        {BLOB("\x8a\x80\x80\x80\x80\x80\x01\x00"), "a number that there is none of"},
        {BLOB("\x0e"), "a type that there is none of"},
        {BLOB("\x0c"), "a type that there is none of"},
        {BLOB("\x79"
              "1234567"),
         "beyond its end"},
        {BLOB("\x7b\x08\x01"), "a group has no end"},
        {BLOB("\x7b\x74"), "a group has no end"},
        {{deep, sizeof deep}, "too deep"},
        {EXAMPLE(entry_of("a", field_of(3, BLOB("\x0a\x02\x80\x80")))), "a number has no end"},
        {EXAMPLE(entry_of("a", field_of(2, BLOB("\x0a\x05"
                                                "12345")))),
         "not a whole number of them"},
        {EXAMPLE(field_of(1, joined(field_of(1, BLOB("a\0b")), field_of(2, INTEGERS(1))))), "holds a NUL"},
        {EXAMPLE(field_of(1, BLOB("\x12\x7f"))), "beyond its end"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        data_features features = {0};
        const char *wrong = NULL;
        if (read_example(&features, &wrong, cases[i].bytes) != SHOAL_INVALID || !strstr(wrong, cases[i].wrong))
            fail_msg("case %zu: %s", i, wrong ? wrong : "accepted");
        data_features_release(&features);
    }
}

/* Cut anywhere, and with any byte changed, it is read or refused. */
static void test_every_byte(void **state)
{
    (void)state;
    const blob whole =
        EXAMPLE(entry_of("a", INTEGERS(1, 300)), entry_of("b", FLOATS(1, 2)), entry_of("c", bytes_list(BLOB("text"))));
    data_features features = {0};
    const char *wrong;
    int refused = 0;
    for (size_t size = 1; size < whole.size; size++)
        assert_int_equal(read_example(&features, &wrong, (blob){whole.bytes, size}), SHOAL_INVALID);
    for (size_t at = 0; at < whole.size; at++)
        for (int bit = 0; bit < 8; bit++) {
            char *changed = malloc(whole.size);
            memcpy(changed, whole.bytes, whole.size);
            changed[at] = (char)(changed[at] ^ 1 << bit);
            refused += read_example(&features, &wrong, (blob){changed, whole.size}) < 0;
            free(changed);
        }
    assert_true(refused > 100);
    data_features_release(&features);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_lists), cmocka_unit_test(test_maps),
                                       cmocka_unit_test(test_unknown_fields), cmocka_unit_test(test_lies),
                                       cmocka_unit_test(test_every_byte)};
    return cmocka_run_group_tests_name("example_read", tests, NULL, NULL);
}
