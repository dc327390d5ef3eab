/* Rounds and results: containers that free what they own. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "learn/partial.h"
#include "learn/wire.h"

static void test_round(void **state)
{
    (void)state;
    shoal_round *round = NULL;
    assert_int_equal(shoal_round_new(&round, 100), SHOAL_OK);
    assert_int_equal(round->model_bytes, 100);
    assert_int_equal((uintptr_t)round->model % 64, 0);
    for (int i = 0; i < 100; i++)
        assert_int_equal(((unsigned char *)round->model)[i], 0);
    assert_int_equal(round->layout.carry_from, -1);
    assert_int_equal(round->layout.cells, 0);
    assert_true(isnan(round->objective) && isnan(round->change));
    shoal_round_free(&round);
    assert_null(round);
    shoal_round_free(&round);
    assert_int_equal(shoal_round_new(&round, SIZE_MAX), SHOAL_MEMORY);
    assert_null(round);
    for (int64_t n = 0; n < 2; n++) {
        base_memory_fail_after(n);
        int status = shoal_round_new(&round, 100);
        base_memory_fail_after(-1);
        assert_int_equal(status, SHOAL_MEMORY);
        assert_null(round);
    }
}

static void test_tensors(void **state)
{
    (void)state;
    shoal_result *result = NULL;
    assert_int_equal(shoal_result_new(&result), SHOAL_OK);
    double *values = shoal_result_add(result, "centres", SHOAL_FLOAT64, 2, (int64_t[]){3, 4});
    assert_non_null(values);
    for (int i = 0; i < 12; i++)
        assert_true(values[i] == 0);
    assert_non_null(shoal_result_add(result, "none", SHOAL_UINT8, 3, (int64_t[]){3, 0, 4}));
    const shoal_tensor *tensor = shoal_result_tensor(result, "centres");
    assert_ptr_equal(tensor->values, values);
    assert_int_equal(tensor->type, SHOAL_FLOAT64);
    assert_int_equal(tensor->rank, 2);
    assert_int_equal(tensor->shape[0], 3);
    assert_int_equal(tensor->shape[1], 4);
    assert_null(shoal_result_tensor(result, "centre"));
    int before = result->tensors;
    assert_null(shoal_result_add(result, "huge", SHOAL_FLOAT64, 3, (int64_t[]){INT64_MAX, INT64_MAX, 2}));
    assert_non_null(strstr(shoal_error(), "huge"));
    assert_null(shoal_result_add(result, "large", SHOAL_FLOAT64, 1, (int64_t[]){INT64_MAX / 8}));
    base_memory_fail_after(0);
    assert_null(shoal_result_add(result, "unlucky", SHOAL_FLOAT64, 1, (int64_t[]){1}));
    base_memory_fail_after(-1);
    assert_int_equal(result->tensors, before);
    shoal_result_free(&result);
    assert_null(result);
    shoal_result_free(&result);
}

static void test_numbers(void **state)
{
    (void)state;
    shoal_result *result = NULL;
    assert_int_equal(shoal_result_new(&result), SHOAL_OK);
    shoal_result_set(result, "objective", 1.5);
    shoal_result_set_whole(result, "rounds", INT64_C(1) << 40);
    shoal_result_set_truth(result, "converged", true);
    assert_true(shoal_result_number(result, "objective") == 1.5);
    assert_true(shoal_result_number(result, "rounds") == 0x1p40);
    assert_true(shoal_result_number(result, "converged") == 1);
    assert_true(isnan(shoal_result_number(result, "nothing")));
    assert_false(result->number[0].whole || result->number[0].truth);
    assert_true(result->number[1].whole && !result->number[1].truth);
    assert_true(result->number[2].truth && !result->number[2].whole);
    shoal_result_free(&result);
}

/* As many as there are, whatever the room they began with. */
static void test_many(void **state)
{
    (void)state;
    enum { MANY = 1000 };
    char name[32];
    shoal_result *result = NULL;
    void *first = NULL;
    assert_int_equal(shoal_result_new(&result), SHOAL_OK);
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "thing %d", i);
        int32_t *values = shoal_result_add(result, name, SHOAL_INT32, 1, (int64_t[]){1});
        assert_non_null(values);
        *values = i;
        first = first ? first : values;
        shoal_result_set_whole(result, name, i);
    }
    assert_int_equal(shoal_result_check(result), SHOAL_OK);
    assert_int_equal(result->tensors, MANY);
    assert_int_equal(result->numbers, MANY);
    assert_ptr_equal(result->tensor[0].values, first);
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "thing %d", i);
        assert_int_equal(*(const int32_t *)shoal_result_tensor(result, name)->values, i);
        assert_true(shoal_result_number(result, name) == i);
    }
    shoal_result_free(&result);
}

/* Numbers are set without a word; who finishes the result hears of those that are missing. */
static void test_no_memory_for_numbers(void **state)
{
    (void)state;
    shoal_result *result = NULL;
    assert_int_equal(shoal_result_new(&result), SHOAL_OK);
    for (int i = 0; i < 8; i++)
        shoal_result_set(result, "number", i);
    base_memory_fail_after(0);
    shoal_result_set(result, "lost", 1);
    base_memory_fail_after(-1);
    shoal_result_set(result, "later", 2);
    assert_int_equal(shoal_result_check(result), SHOAL_MEMORY);
    assert_true(isnan(shoal_result_number(result, "lost")));
    for (int64_t n = 0; n < 2; n++) {
        base_memory_fail_after(n);
        assert_null(shoal_result_add(result, "tensor", SHOAL_INT32, 1, (int64_t[]){1}));
        base_memory_fail_after(-1);
        assert_int_equal(result->tensors, 0);
    }
    assert_non_null(shoal_result_add(result, "tensor", SHOAL_INT32, 1, (int64_t[]){1}));
    shoal_result_free(&result);
}

static void test_more_than_any_learner_has(void **state)
{
    (void)state;
    shoal_result *result = NULL;
    assert_int_equal(shoal_result_new(&result), SHOAL_OK);
    for (int i = 0; i < LEARN_RESULT_MOST; i++)
        shoal_result_set(result, "number", i);
    assert_int_equal(shoal_result_check(result), SHOAL_OK);
    shoal_result_set(result, "number", 0);
    assert_int_equal(result->numbers, LEARN_RESULT_MOST);
    assert_int_equal(shoal_result_check(result), SHOAL_USAGE);
    shoal_result_free(&result);
}

static void test_rows_move_without_a_copy(void **state)
{
    (void)state;
    const shoal_layout layout = {.cells = 1, .cell = {{"labels", SHOAL_CELL_ROW, 0, sizeof(int32_t), false}}};
    shoal_partial *partial = NULL;
    shoal_result *result = NULL;
    assert_int_equal(learn_partial_new(&partial, &layout, 0, 10, NULL), SHOAL_OK);
    assert_int_equal(shoal_result_new(&result), SHOAL_OK);
    int32_t *rows = shoal_partial_row(partial, 0, 0);
    rows[9] = 7;
    assert_int_equal(shoal_result_take_rows(result, "labels", SHOAL_INT32, partial, 0, 10), SHOAL_OK);
    learn_partial_free(&partial);
    const shoal_tensor *labels = shoal_result_tensor(result, "labels");
    assert_ptr_equal(labels->values, rows);
    assert_int_equal(((const int32_t *)labels->values)[9], 7);
    assert_int_equal(labels->rank, 1);
    assert_int_equal(labels->shape[0], 10);
    shoal_result_free(&result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_round),
                                       cmocka_unit_test(test_tensors),
                                       cmocka_unit_test(test_numbers),
                                       cmocka_unit_test(test_many),
                                       cmocka_unit_test(test_no_memory_for_numbers),
                                       cmocka_unit_test(test_more_than_any_learner_has),
                                       cmocka_unit_test(test_rows_move_without_a_copy)};
    return cmocka_run_group_tests_name("result", tests, NULL, NULL);
}
