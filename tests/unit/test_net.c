/* src/learn/train/net.c: what the text of a net means, and what is said of one that does not fit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <shoal/error.h>

#include "base/memory.h"
#include "learn/train/net.h"

static const train_shape digits = {.channels = 1, .height = 28, .width = 28};
static const train_shape photos = {.channels = 3, .height = 32, .width = 20};
static const train_shape columns = {.channels = 13, .height = 1, .width = 1, .flat = true};

static train_net parse(const char *text, const train_shape *in)
{
    train_net net;
    if (train_net_parse(&net, text, "--net", in) < 0)
        fail_msg("%s: %s", text, shoal_error());
    return net;
}

static void expect_shape(const train_layer *layer, int64_t channels, int64_t height, int64_t width)
{
    assert_int_equal(layer->out.channels, channels);
    assert_int_equal(layer->out.height, height);
    assert_int_equal(layer->out.width, width);
}

static void test_a_tutorials_net(void **state)
{
    static const char *const same[] = {
        "conv 20 5x5 relu; pool 2; conv 40 5x5 relu; pool 2; dense 25 relu; dense 10 softmax",
        "# digits; small\nconv 20 5 relu # wide\n\n  pool max 2x2\nconv 40 5x5\r\nrelu\npool 2 stride 2\nflatten\n"
        "dense 25\nrelu\ndense 10\nsoftmax\n"};
    static const train_kind kinds[] = {TRAIN_CONV, TRAIN_RELU,     TRAIN_POOL_MAX, TRAIN_CONV,
                                       TRAIN_RELU, TRAIN_POOL_MAX, TRAIN_FLATTEN,  TRAIN_DENSE,
                                       TRAIN_RELU, TRAIN_DENSE,    TRAIN_SOFTMAX};
    (void)state;
    for (int i = 0; i < 2; i++) {
        const train_net net = parse(same[i], &digits);
        assert_int_equal(net.layers, sizeof kinds / sizeof *kinds);
        for (int k = 0; k < net.layers; k++)
            assert_int_equal(net.layer[k].kind, kinds[k]);
        assert_int_equal(net.parameters, 36845);
        assert_int_equal(net.classes, 10);
        expect_shape(&net.layer[0], 20, 24, 24);
        expect_shape(&net.layer[3], 40, 8, 8);
        expect_shape(&net.layer[6], 640, 1, 1);
        assert_int_equal(net.layer[3].first, 520);
        assert_int_equal(net.layer[3].depth, 500);
    }
}

static void test_steps_and_padding(void **state)
{
    (void)state;
    train_net net = parse("conv 8 3x5 pad same; conv 8 3x3 stride 2 pad 1; conv 4 4 stride 3 pad same relu6; global "
                          "pool; dense 2 softmax",
                          &photos);
    expect_shape(&net.layer[0], 8, 32, 20);
    assert_int_equal(net.layer[0].pad_top, 1);
    assert_int_equal(net.layer[0].pad_left, 2);
    assert_int_equal(net.layer[0].depth, 3 * 3 * 5);
    expect_shape(&net.layer[1], 8, 16, 10);
    expect_shape(&net.layer[2], 4, 6, 4); /* 16 / 3 and 10 / 3, rounded up */
    assert_int_equal(net.layer[2].pad_top, 1);
    assert_int_equal(net.layer[4].kind, TRAIN_POOL_AVERAGE);
    expect_shape(&net.layer[4], 4, 1, 1);
    net = parse("pool average 3 stride 2 tanh; global pool max; dropout 0.5; dense 2 softmax",
                &(train_shape){5, 7, 8, false});
    expect_shape(&net.layer[0], 5, 3, 3);
}

static void test_groups_norms_and_what_is_added(void **state)
{
    (void)state;
    train_net net = parse("conv 12 3x3 groups 3 stride 2 relu; depthwise 3x3 pad same; batch norm momentum 0.25 relu6; "
                          "save a; conv 12 1x1; add a; dense 9; batch norm epsilon 0.5; dense 2 softmax",
                          &photos);
    assert_int_equal(net.layer[0].groups, 3);
    assert_int_equal(net.layer[0].depth, 9);
    assert_int_equal(net.layer[2].groups, 12);
    assert_int_equal(net.layer[2].depth, 9);
    expect_shape(&net.layer[2], 12, 15, 9);
    assert_int_equal(net.layer[3].kind, TRAIN_NORM);
    assert_int_equal(net.layer[3].outputs, 12);
    assert_true(net.layer[3].momentum == 0.25 && net.layer[3].epsilon == 1e-5);
    assert_true(net.layer[4].saved && !net.layer[5].saved);
    assert_int_equal(net.layer[6].kind, TRAIN_ADD);
    assert_int_equal(net.layer[6].source, 4);
    assert_int_equal(net.layer[9].running, 24);
    assert_true(net.layer[9].momentum == 0.1 && net.layer[9].epsilon == 0.5);
    assert_int_equal(net.running, 24 + 18);
    assert_int_equal(net.parameters, 120 + 120 + 24 + 156 + (12 * 15 * 9 + 1) * 9 + 18 + 20);
    net = parse("save rows\nconv 3 1x1\nadd rows relu\nsave rows\nadd rows\nglobal pool\nbatch norm\ndense 2 softmax",
                &photos);
    assert_int_equal(net.layer[1].source, -1);
    assert_int_equal(net.layer[3].source, 2);
    assert_int_equal(net.layer[2].kind, TRAIN_RELU);
}

static void test_one_without_weights_is_refused(void **state)
{
    train_net net;
    (void)state;
    assert_int_equal(train_net_parse(&net, "global pool; softmax", "--net", &photos), SHOAL_USAGE);
    assert_non_null(strstr(shoal_error(), "at least one layer with weights"));
}

static void test_columns_are_a_list(void **state)
{
    (void)state;
    const train_net net = parse("dense 16 logistic; dropout 0.25; dense 3 softmax", &columns);
    assert_int_equal(net.parameters, 14 * 16 + 17 * 3);
    assert_true(net.layer[2].dropped == 0.25);
}

static void test_what_is_refused(void **state)
{
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"", "at least one layer with weights"},
        {"dense 10", "the last layer must be a softmax"},
        {"dense 1 softmax", "one value"},
        {"conv 3", "layer 1, 'conv 3': the size of the kernel is missing"},
        {"conv x 3", "layer 1, 'conv x 3': the number of maps is 'x'"},
        {"dense 3 softmax; dense 4", "nothing may follow the softmax"},
        {"dense 9 relu\nconv 3 3x3", "line 2, 'conv 3 3x3': it needs maps"},
        {"conv 3 3x3\n\npool 27\n", "line 3, 'pool 27': a kernel of 27x27 does not fit into what it sees, 26x26"},
        {"conv 3 3x3 pad", "the padding is missing"},
        {"conv 3 3x3 stride 0", "the stride is '0'"},
        {"conv 3 0x3", "'0x3' is not the size of a kernel"},
        {"pool 2x3", "a kernel that is not square needs a stride"},
        {"dense 5 relux", "'relux' is not understood here"},
        {"dense 5 relu tanh", "'tanh' is not understood here"},
        {"dropout 1; dense 2 softmax", "less than 1"},
        {"dropout nan; dense 2 softmax", "less than 1"},
        {"global dense", "'global' is followed by 'pool'"},
        {"convolution 3 3x3", "'convolution' is no layer"},
        {"dense 65536; dense 65536", "parameters, more than"},
        {"conv 65536 1x1; conv 65536 1x1 pad 60000", "values for a row, more than"},
        {"conv 4 3x3 groups 3", "3 groups do not divide the 1 maps that it sees and the 4 that it gives"},
        {"conv 4 1x1; conv 6 3x3 groups 4", "4 groups do not divide the 4 maps that it sees and the 6 that it gives"},
        {"conv 4 3x3 groups 0", "the number of groups is '0'"},
        {"conv 4 3x3 groups 1 groups 1", "'groups' is not understood here"},
        {"dense 4; depthwise 3x3", "it needs maps"},
        {"depthwise 3x3 groups 2", "'groups' is not understood here"},
        {"depthwise 99", "a kernel of 99x99 does not fit"},
        {"pool 2 groups 2", "'groups' is not understood here"},
        {"batch 3", "'batch' is followed by 'norm'"},
        {"batch norm momentum 0", "the momentum is a number above 0"},
        {"batch norm momentum", "the momentum is a number above 0"},
        {"batch norm epsilon nan", "epsilon is a number above 0"},
        {"save", "the name to save it by is missing"},
        {"add", "the name of what it adds is missing"},
        {"add a", "layer 1, 'add a': nothing before it is saved as 'a'"},
        {"conv 2 3x3\nsave a\nconv 2 3x3\nadd a\n",
         "line 4, 'add a': 'a' of line 2 is 2 x 26 x 26, but what comes before this is 2 x 24 x 24"},
        {"save a; dense 784; add a", "'a' of layer 1 is 1 x 28 x 28, but what comes before this is a list of 784"},
        {"save a; save a", "'a' was saved in layer 1 and is not added before this"},
        {"conv 2 1x1; save b; dense 3 softmax", "layer 2: 'b' is saved, but never added"},
        {"save a; save b; save c; save d; save e; save f; save g; save h; save i; save j; save k; save l; save m; "
         "save n; save o; save p; save q",
         "at most 16 names"},
        {"save a b", "'b' is not understood here"},
        {"a a a a a a a a a a a a a a", "no layer has so long a line"},
        {"dense\033[2J 3", "layer 1"},
    };
    char *many = NULL;
    train_net net;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(train_net_parse(&net, bad[i].text, "--net", &digits), SHOAL_USAGE);
        if (!strstr(shoal_error(), bad[i].says) || strchr(shoal_error(), '\033'))
            fail_msg("%s: %s", bad[i].text, shoal_error());
    }
    assert_int_equal(base_alloc(&many, TRAIN_TEXT_MOST + 1, 1, "text"), SHOAL_OK);
    memset(many, '\n', TRAIN_TEXT_MOST);
    assert_int_equal(train_net_parse(&net, many, "--net", &digits), SHOAL_USAGE);
    for (int i = 0; i + 4 < TRAIN_TEXT_MOST; i += 5)
        memcpy(many + i, "relu;", 5);
    many[TRAIN_TEXT_MOST - 1] = '\0';
    assert_int_equal(train_net_parse(&net, many, "--net", &digits), SHOAL_USAGE);
    assert_non_null(strstr(shoal_error(), "at most 192 layers"));
    base_free(&many);
    assert_int_equal(train_net_parse(&net, "dense 2 softmax", "--net", &(train_shape){0}), SHOAL_USAGE);
}

/* The nets that examples/ has; tests run in the root of the repository. */
static void test_examples(void **state)
{
    static const train_shape flowers = {.channels = 3, .height = 192, .width = 192};
    static const struct {
        const char *path;
        const train_shape *in;
        int64_t parameters, classes;
    } examples[] = {{"examples/digits.net", &digits, 36845, 10},
                    {"examples/lenet.net", &digits, 520 + 25050 + 400500 + 5010, 10},
                    {"examples/digits-100.net", &digits, 520 + 724 + 2525 + 260, 10},
                    {"examples/fashion.net", &digits, 454922, 10},
                    {"examples/flowers.net", &flowers, 117637, 5}};
    (void)state;
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
        char *text = NULL;
        assert_int_equal(train_net_read(&text, examples[i].path), SHOAL_OK);
        const train_net net = parse(text, examples[i].in);
        assert_int_equal(net.parameters, examples[i].parameters);
        assert_int_equal(net.classes, examples[i].classes);
        base_free(&text);
    }
}

static void test_shapes(void **state)
{
    static const char *const bad[] = {"28", "28x", "x28", "0x3", "3x3x3x3", "28 x 28", "-1x3", ""};
    train_shape shape;
    (void)state;
    assert_int_equal(train_shape_parse(&shape, "32x20x3"), SHOAL_OK);
    assert_true(train_shape_same(&shape, &photos));
    assert_int_equal(train_shape_parse(&shape, "28x28"), SHOAL_OK);
    assert_true(train_shape_same(&shape, &digits));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(train_shape_parse(&shape, bad[i]), SHOAL_USAGE);
}

static void test_one_line(void **state)
{
    char text[] = "# a net\n\nconv  3 3x3 # a; b\n\tdense 2\r\n ;softmax # the end", none[] = " # \n;\n#";
    (void)state;
    train_net_join(text);
    assert_string_equal(text, "conv 3 3x3;dense 2;softmax");
    train_net_join(none);
    assert_string_equal(none, "");
    assert_int_equal(parse(text, &digits).layers, 4);
}

static void test_the_table(void **state)
{
    char *table = NULL;
    const train_net net = parse("conv 20 5x5 stride 2 pad 2 relu; dropout 0.5; dense 10 softmax", &digits);
    (void)state;
    assert_int_equal(train_net_describe(&table, &net), SHOAL_OK);
    assert_non_null(strstr(table, "0 conv 5x5, stride 2, padded"));
    assert_non_null(strstr(table, "20 x 14 x 14"));
    assert_non_null(strstr(table, "2 dropout 0.5"));
    assert_non_null(strstr(table, "39,210")); /* (20 * 14 * 14 + 1) * 10 */
    assert_non_null(strstr(table, "39,730"));
    base_free(&table);
    const train_net more =
        parse("save a; depthwise 3x3 pad same; conv 1 1x1; add a; save b; conv 4 1x1; batch norm; conv "
              "1 1x1; add b; conv 6 3x3 groups 1; conv 6 3x3 groups 2; dense 10 softmax",
              &digits);
    assert_int_equal(train_net_describe(&table, &more), SHOAL_OK);
    assert_non_null(strstr(table, "0 conv 3x3, padded"));
    assert_non_null(strstr(table, "2 add the rows"));
    assert_non_null(strstr(table, "4 batch norm"));
    assert_non_null(strstr(table, "6 add 2"));
    assert_non_null(strstr(table, "8 conv 3x3, 2 groups"));
    base_free(&table);
    train_net frozen =
        parse("save a; conv 2 1x1; conv 1 1x1; add a; save b; conv 2 1x1; conv 1 1x1; add b; conv 4 1x1; "
              "conv 2 3x3 groups 2; dense 10 softmax",
              &digits);
    assert_int_equal(train_net_freeze(&frozen, 8), SHOAL_OK);
    assert_int_equal(train_net_describe(&table, &frozen), SHOAL_OK);
    assert_non_null(strstr(table, "2 add the rows, frozen"));
    assert_non_null(strstr(table, "5 add 2, frozen"));
    assert_non_null(strstr(table, "7 conv 3x3, 2 groups, frozen")); /* of two maps each */
    base_free(&table);
}

static void test_frozen_layers(void **state)
{
    char *table = NULL;
    train_net net =
        parse("conv 20 5x5 relu; pool 2; dropout 0.5; dense 9 tanh; dropout 0.1; dense 10 softmax", &digits);
    (void)state;
    assert_int_equal(train_net_freeze(&net, 0), SHOAL_OK);
    assert_int_equal(net.frozen, 0);
    assert_int_equal(train_net_learns(&net), net.parameters);
    assert_int_equal(train_net_freeze(&net, 1), SHOAL_OK); /* up to the dropout, which goes on */
    assert_int_equal(net.frozen, 3);
    assert_int_equal(net.fixed, 520);
    assert_int_equal(train_net_freeze(&net, 4), SHOAL_OK); /* which a frozen layer behind it ends */
    assert_int_equal(net.frozen, 5);
    assert_int_equal(net.fixed, 520);
    assert_int_equal(train_net_freeze(&net, 6), SHOAL_OK);
    assert_int_equal(net.frozen, 7);
    assert_int_equal(train_net_learns(&net), 100);
    assert_int_equal(train_net_describe(&table, &net), SHOAL_OK);
    assert_non_null(strstr(table, "5 dense, frozen"));
    assert_non_null(strstr(table, "7 dropout 0.1  "));
    assert_non_null(strstr(table, "  trained"));
    base_free(&table);
    assert_int_equal(train_net_freeze(&net, 9), SHOAL_USAGE);
    assert_non_null(strstr(shoal_error(), "layer 8 is the last with weights"));
    assert_int_equal(train_net_freeze(&net, 11), SHOAL_USAGE);
    assert_non_null(strstr(shoal_error(), "the layers are 0 to 9"));
    assert_int_equal(train_net_freeze(&net, -1), SHOAL_USAGE);
}

static void test_files(void **state)
{
    char path[] = "/tmp/shoal-net-XXXXXX", *text = NULL;
    (void)state;
    const int file = mkstemp(path);
    assert_true(file >= 0);
    assert_int_equal(write(file, "dense 2\nsoftmax\n", 16), 16);
    assert_int_equal(train_net_read(&text, path), SHOAL_OK);
    assert_string_equal(text, "dense 2\nsoftmax\n");
    base_free(&text);
    assert_int_equal(write(file, "\0", 1), 1);
    assert_int_equal(train_net_read(&text, path), SHOAL_USAGE);
    assert_int_equal(ftruncate(file, TRAIN_TEXT_MOST), 0);
    assert_int_equal(train_net_read(&text, path), SHOAL_USAGE);
    assert_non_null(strstr(shoal_error(), "has at most 4095 bytes"));
    assert_int_equal(train_net_read(&text, "."), SHOAL_SYSTEM);
    assert_non_null(strstr(shoal_error(), "--net .: can't read: "));
    close(file);
    unlink(path);
    assert_int_equal(train_net_read(&text, path), SHOAL_USAGE);
    assert_non_null(strstr(shoal_error(), "no such file"));
    assert_int_equal(train_net_read(&text, "dense 2; softmax"), SHOAL_OK);
    assert_string_equal(text, "dense 2; softmax");
    base_free(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_tutorials_net),
        cmocka_unit_test(test_steps_and_padding),
        cmocka_unit_test(test_groups_norms_and_what_is_added),
        cmocka_unit_test(test_one_without_weights_is_refused),
        cmocka_unit_test(test_columns_are_a_list),
        cmocka_unit_test(test_what_is_refused),
        cmocka_unit_test(test_examples),
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_one_line),
        cmocka_unit_test(test_the_table),
        cmocka_unit_test(test_frozen_layers),
        cmocka_unit_test(test_files),
    };
    return cmocka_run_group_tests_name("net", tests, NULL, NULL);
}
