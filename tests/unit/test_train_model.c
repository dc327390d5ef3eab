/* Of nets: the unit that losses are counted in, and results that come from elsewhere. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <shoal/error.h>

#include "learn/train/train_internal.h"

/* However many rows there are, the greatest losses of all maps of a round fit into 64 bits. */
static void test_losses_fit(void **state)
{
    (void)state;
    for (int bits = 0; bits < 40; bits++) {
        const int64_t rows = INT64_C(1) << bits, grains = (rows + 255) / 256;
        const shoal_shape shape = {
            .rows = 2 * rows, .held = rows, .grains = 2 * grains, .rows_per_grain = 256, .strata = 1};
        const shoal_layout held = {.part = SHOAL_HELD}, batch = {.pick = {.count = rows, .group = 1}};
        const double groups = (double)(rows / TRAIN_ROWS_AT_ONCE) + (double)shape.grains;
        assert_true(groups * TRAIN_LOSS_MOST / train_loss_unit(&held, &shape) <= 0x1p62);
        assert_true((double)rows * TRAIN_LOSS_MOST / train_loss_unit(&batch, &shape) <= 0x1p62);
        if (rows <= 1 << 10)
            assert_true(train_loss_unit(&held, &shape) == 0x1p-32 && train_loss_unit(&batch, &shape) == 0x1p-32);
    }
}

static const shoal_shape shape = {
    .rows = 8, .columns = 3, .type = SHOAL_FLOAT32, .grains = 1, .rows_per_grain = 8, .strata = 1};

/* A number that a result tells of rows of this shape, and that it must. */
typedef struct told {
    const char *name;
    double value;
} told;
enum { TOLD = 7 };

static int check_told(const told number[TOLD], const train_net *net, const shoal_round *first)
{
    static const int64_t classes = 2, epochs[2] = {1, TRAIN_EPOCH_VALUES};
    const train_model *model = first->model;
    const int64_t count = train_net_values(net), text = (int64_t)strlen(model->text);
    shoal_result *result = NULL;
    assert_int_equal(shoal_result_new(&result), SHOAL_OK);
    assert_non_null(shoal_result_add(result, "parameters", SHOAL_FLOAT32, 1, &count));
    double *labels = shoal_result_add(result, "classes", SHOAL_FLOAT64, 1, &classes);
    char *copy = shoal_result_add(result, "net", SHOAL_UINT8, 1, &text);
    assert_true(labels && copy && shoal_result_add(result, "history", SHOAL_FLOAT64, 2, epochs));
    labels[1] = 1;
    memcpy(copy, model->text, (size_t)text);
    for (int i = 0; i < TOLD; i++)
        shoal_result_set(result, number[i].name, number[i].value);
    const int status = train_check_result(&train_algorithm, result, first, &shape);
    shoal_result_free(&result);
    return status;
}

/* Tensors of a model are found by parsing its net for rows of the shape that the result tells. */
static void test_results_are_of_these_rows(void **state)
{
    static const double lies[] = {3, 0.5, -1, 1e300, NAN};
    const train_config config = {.text = "dense 2 softmax", .batch = 8, .epochs = 4, .group = 4, .every = 1};
    shoal_round *first = NULL;
    train_net net;
    (void)state;
    assert_int_equal(train_algorithm.start(&first, &config, &shape), SHOAL_OK);
    const train_settings *set = &((const train_model *)first->model)->set;
    const told good[TOLD] = {{"channels", (double)set->channels},
                             {"height", (double)set->height},
                             {"width", (double)set->width},
                             {"flat", (double)set->flat},
                             {"scale", set->scale},
                             {"shift", set->shift},
                             {"epoch", 1}};
    assert_int_equal(train_model_net(&net, first->model), SHOAL_OK);
    assert_int_equal(check_told(good, &net, first), SHOAL_OK);
    for (int i = 0; i < TOLD; i++)
        for (size_t k = 0; k < sizeof lies / sizeof *lies; k++) {
            told forged[TOLD];
            memcpy(forged, good, sizeof forged);
            forged[i].value = lies[k];
            assert_int_equal(check_told(forged, &net, first), SHOAL_BROKEN);
        }
    shoal_round_free(&first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_losses_fit),
        cmocka_unit_test(test_results_are_of_these_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
