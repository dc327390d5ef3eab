/* What rounds of nets say while a run goes: of good ones how far it is, and of any bytes nothing that does harm. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "learn/train/follow.h"
#include "learn/train/train_internal.h"

static shoal_round round_of(train_model *model, const char *phase, int64_t step, int64_t steps)
{
    shoal_round round = {.model = model, .model_bytes = sizeof *model, .step = step, .steps = steps, .objective = 0.25};
    snprintf(round.phase, sizeof round.phase, "%s", phase);
    return round;
}

static void test_lines(void **state)
{
    static train_model model;
    learn_told told = {0};
    (void)state;
    model.set.epochs = 4;
    model.set.batch = 8;
    model.last[TRAIN_HELD_ACCURACY] = 0.75;
    shoal_round round = round_of(&model, "run", 25, 40);
    train_follow(&told, NULL, &round, NULL);
    assert_string_equal(told.line, "epoch 3/4, step 5/10, loss 0.25, validation 75.00%");
    assert_true(told.done == 25.0 / 40 && told.rows == 200 && !told.may_end && told.row == 2);
    assert_string_equal(told.warning, "");
    told = (learn_told){0};
    round = round_of(&model, "validate", 2, 4); /* whose epoch is not in `last` yet */
    train_follow(&told, NULL, &round, NULL);
    assert_string_equal(told.line, "");
    assert_int_equal(told.row, 1);
}

static void test_warnings(void **state)
{
    static train_model model;
    train_config apart = {.held = 10};
    learn_told told = {0};
    (void)state;
    model.set.epochs = model.set.batch = 1;
    model.apart = 0.5;
    shoal_round round = round_of(&model, "run", 0, 10);
    train_follow(&told, NULL, &round, NULL);
    assert_non_null(strstr(told.warning, "those held out have other classes"));
    told = (learn_told){0};
    train_follow(&told, &apart, &round, NULL); /* a file of its own may have others */
    assert_string_equal(told.warning, "");
    model.sorted = 0.9;
    train_follow(&told, &apart, &round, NULL);
    assert_non_null(strstr(told.warning, "batches draw from have different classes"));
}

static void test_any_bytes(void **state)
{
    static const int64_t odd[] = {INT64_MIN, -1, 0, 1, 2, 7, INT32_MAX, INT64_MAX};
    enum { ODD = sizeof odd / sizeof *odd };
    train_model *model = malloc(sizeof *model);
    (void)state;
    assert_non_null(model);
    srand(1);
    for (int i = 0; i < 3000; i++) {
        learn_told told = {0};
        for (size_t k = 0; k < sizeof *model; k++)
            ((unsigned char *)model)[k] = (unsigned char)rand();
        model->set.epochs = odd[rand() % ODD];
        model->set.batch = odd[rand() % ODD];
        for (int k = 0; k < TRAIN_EPOCH_VALUES; k++)
            model->last[k] = rand() % 2 ? 1e308 : -1e-308;
        shoal_round round = round_of(model, rand() % 2 ? "run" : "validate", odd[rand() % ODD], odd[rand() % ODD]);
        round.objective = rand() % 2 ? NAN : 1e300;
        round.model_bytes -= rand() % 4 == 0;
        train_follow(&told, NULL, &round, NULL);
        assert_non_null(memchr(told.line, '\0', sizeof told.line));
        assert_true(told.row >= 0 && (told.row == 0 || told.values));
    }
    free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_warnings),
        cmocka_unit_test(test_any_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
