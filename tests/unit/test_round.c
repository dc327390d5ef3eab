/* Rounds and what they keep: the memory of rounds that are over serves those that come, and nobody can tell. */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <shoal/shoal.h>

#include "base/memory.h"
#include "learn/round.h"

enum { BYTES = 1000, KEPT = 777 };

static void check(int status)
{
    if (status < 0)
        fail_msg("%s", shoal_error());
}

static bool holds(const void *bytes, int value, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (((const unsigned char *)bytes)[i] != value)
            return false;
    return true;
}

static shoal_round *new_round(size_t bytes)
{
    shoal_round *round = NULL;
    check(shoal_round_new(&round, bytes));
    assert_true(holds(round->model, 0, bytes));
    assert_int_equal(round->model_bytes, bytes);
    assert_int_equal(round->number, 0);
    assert_int_equal(round->keeps, 0);
    assert_int_equal(round->layout.cells, 0);
    assert_int_equal(round->layout.carry_from, -1);
    assert_string_equal(round->phase, "run");
    assert_true(isnan(round->objective) && isnan(round->change));
    return round;
}

/* Everything in it is used. */
static void use(shoal_round *round)
{
    memset(round->model, 7, round->model_bytes);
    round->number = 9;
    round->layout.cells = 2;
    round->layout.carry_from = 3;
    round->layout.cell[1].count = 5;
    snprintf(round->phase, sizeof round->phase, "seed");
    round->objective = round->change = 1;
}

static void *keep(shoal_round *round, size_t bytes, int value)
{
    void *kept = shoal_round_keep(round, bytes);
    assert_non_null(kept);
    assert_int_equal((uintptr_t)kept % 64, 0);
    memset(kept, value, bytes);
    assert_int_equal(round->kept[round->keeps - 1]->born, -1);
    round->kept[round->keeps - 1]->born = round->keeps;
    return kept;
}

/* ---- by hand ----------------------------------------------------------------------------------------------------- */

static void test_a_round_is_like_new(void **state)
{
    (void)state;
    learn_recycler recycler;
    learn_recycle_begin(&recycler);
    shoal_round *round = new_round(BYTES);
    const void *model = round->model;
    use(round);
    const void *kept = keep(round, KEPT, 1);
    shoal_round_free(&round);
    assert_null(round);
    base_memory_fail_after(0);
    round = new_round(BYTES);
    const void *kept_again = keep(round, KEPT, 2);
    base_memory_fail_after(-1);
    assert_ptr_equal(round->model, model);
    assert_ptr_equal(kept_again, kept);
    assert_int_equal(round->kept[0]->bytes, KEPT);
    assert_int_equal(round->kept[0]->holders, 1);
    use(round);
    shoal_round_free(&round);
    for (size_t bytes = 0; bytes < 3 * BYTES; bytes += BYTES / 2) { /* of another size */
        round = new_round(bytes);
        use(round);
        keep(round, bytes, 3);
        shoal_round_free(&round);
    }
    learn_recycle_end(&recycler);
    round = new_round(BYTES);
    shoal_round_free(&round);
}

/* What several rounds keep is nobody else's before the last of them is gone. */
static void test_what_is_shared_stays(void **state)
{
    (void)state;
    learn_recycler recycler;
    learn_recycle_begin(&recycler);
    shoal_round *first = new_round(BYTES), *second = new_round(BYTES), *third = new_round(BYTES);
    const void *shared = keep(first, KEPT, 1);
    shoal_round_keep_on(second, first, 0);
    shoal_round_keep_on(third, first, 0);
    shoal_round_free(&first);
    const void *own = keep(second, KEPT, 2);
    assert_ptr_not_equal(own, shared);
    shoal_round_free(&second);
    assert_true(holds(shared, 1, KEPT));
    assert_ptr_equal(keep(third, KEPT, 3), own);
    assert_true(holds(shared, 1, KEPT));
    shoal_round_free(&third);
    learn_recycle_end(&recycler);
}

/* A round outlives the run that made it, or was made before; runs may lie in each other. */
static void test_rounds_of_elsewhere(void **state)
{
    (void)state;
    learn_recycler outer, inner;
    shoal_round *before = new_round(BYTES);
    keep(before, KEPT, 1);
    learn_recycle_begin(&outer);
    shoal_round *own = new_round(BYTES);
    shoal_round_free(&before);
    learn_recycle_begin(&inner);
    shoal_round *nested = new_round(BYTES), *survivor = new_round(BYTES);
    keep(nested, KEPT, 1);
    shoal_round_free(&own);
    shoal_round_free(&nested);
    learn_recycle_end(&inner);
    base_memory_fail_after(0);
    own = new_round(BYTES); /* of `before` */
    base_memory_fail_after(-1);
    shoal_round_free(&own);
    learn_recycle_end(&outer);
    assert_true(holds(survivor->model, 0, BYTES));
    shoal_round_free(&survivor);
}

static void test_no_memory_for_a_round(void **state)
{
    (void)state;
    learn_recycler recycler;
    learn_recycle_begin(&recycler);
    for (int64_t n = 0; n < 4; n++) {
        shoal_round *round = NULL;
        base_memory_fail_after(n);
        int status = shoal_round_new(&round, BYTES + (size_t)n);
        void *kept = status == SHOAL_OK ? shoal_round_keep(round, KEPT) : NULL;
        base_memory_fail_after(-1);
        assert_int_equal(status, n < 2 ? SHOAL_MEMORY : SHOAL_OK);
        assert_null(kept);
        assert_true(n < 2 || round->keeps == 0);
        shoal_round_free(&round);
    }
    learn_recycle_end(&recycler);
}

/* ---- by a run ---------------------------------------------------------------------------------------------------- */

enum { ROUNDS = 40, SUMS = 600000, GRAINS = 8 };

/* A learner whose model is how often it was updated, many times over, and which keeps the last two models, too. */
static int lay_out(shoal_round *round)
{
    round->layout.cells = 2;
    round->layout.cell[0] = (shoal_cell){.name = "sums", .kind = SHOAL_CELL_SUM, .count = SUMS};
    round->layout.cell[1] = (shoal_cell){.name = "most", .kind = SHOAL_CELL_MAX, .count = 3};
    return SHOAL_OK;
}

static int start_state(shoal_round **out, const void *config, const shoal_shape *shape)
{
    (void)config, (void)shape;
    int status = shoal_round_new(out, SUMS * sizeof(int64_t));
    return status < 0 ? status : lay_out(*out);
}

static int check_state(const shoal_algorithm *self, const shoal_round *round, const shoal_shape *shape)
{
    (void)self, (void)round, (void)shape;
    return SHOAL_OK; /* nothing comes from elsewhere */
}

static int64_t one_row(const void *config, const shoal_shape *shape)
{
    (void)config, (void)shape;
    return 1;
}

static size_t no_scratch(const shoal_round *round, const void *prepared, const shoal_shape *shape)
{
    (void)round, (void)prepared, (void)shape;
    return 0;
}

static int map_state(shoal_partial *partial, const shoal_round *round, const void *prepared, const shoal_grain *grain,
                     const shoal_scratch *scratch)
{
    const int64_t *model = round->model;
    int64_t *sums = shoal_partial_values(partial, 0);
    (void)prepared, (void)scratch;
    for (int64_t i = grain->index; i < SUMS; i += GRAINS / 2) /* each is met by two grains */
        sums[i] += model[i] + 1;
    shoal_max_raise(shoal_partial_values(partial, 1), grain->index % 3, (double)round->number);
    return SHOAL_OK;
}

static int update_state(shoal_round **next, shoal_result **result, const shoal_round *round, shoal_partial *merged,
                        const shoal_shape *shape, const shoal_crew *crew, bool stop)
{
    const int64_t *model = round->model, *sums = shoal_partial_values(merged, 0);
    (void)shape, (void)crew, (void)stop;
    for (int64_t i = 0; i < SUMS; i++)
        if (model[i] != round->number || sums[i] != (i < GRAINS / 2 ? 1 : 2) * (round->number + 1))
            return shoal_fail(SHOAL_INVALID, "round %d: sum %d is %d", (int)round->number, (int)i, (int)sums[i]);
    for (int i = 0; i < 3; i++)
        if (shoal_max_value(shoal_partial_values(merged, 1)[i]) != (double)round->number)
            return shoal_fail(SHOAL_INVALID, "a maximum of another round");
    for (int i = 0; i < round->keeps; i++) {
        const int64_t *kept = round->kept[i]->values;
        for (int64_t j = 0; j < SUMS; j++)
            if (kept[j] != round->kept[i]->born - 1)
                return shoal_fail(SHOAL_INVALID, "round %d keeps something else", (int)round->number);
    }
    if (round->number + 1 == ROUNDS)
        return shoal_result_new(result);
    int status = shoal_round_new(next, SUMS * sizeof *model);
    if (status < 0)
        return status;
    for (int64_t i = 0; i < SUMS; i++)
        ((int64_t *)(*next)->model)[i] += round->number + 1; /* zero before */
    if (round->keeps > 0)
        shoal_round_keep_on(*next, round, round->keeps - 1);
    void *kept = shoal_round_keep(*next, SUMS * sizeof *model);
    if (!kept)
        return SHOAL_MEMORY;
    memcpy(kept, model, SUMS * sizeof *model);
    return lay_out(*next);
}

static const shoal_algorithm learner = {.version = SHOAL_ALGORITHM_VERSION,
                                        .bytes = sizeof(shoal_algorithm),
                                        .name = "state",
                                        .start = start_state,
                                        .check = check_state,
                                        .rows_per_grain = one_row,
                                        .scratch_bytes = no_scratch,
                                        .map = map_state,
                                        .update = update_state};

typedef struct counting {
    int rounds;
    int64_t late; /* allocations after the third round */
} counting;

static void count_allocations(void *context, const shoal_round *done, const shoal_round *next, int64_t rows,
                              double seconds)
{
    counting *count = context;
    int64_t since = base_memory_fail_after(-1);
    (void)done, (void)rows, (void)seconds;
    if (next && count->rounds >= 3)
        count->late += since;
    count->rounds++;
}

static void run_state(int threads, counting *count)
{
    shoal_data *data = NULL;
    shoal_result *result = NULL;
    shoal_run_options options = {
        .threads = threads, .progress = count ? count_allocations : NULL, .progress_context = count};
    check(shoal_data_open(&data, "gen:uniform?rows=8&cols=2&seed=1", NULL));
    check(shoal_run(&result, NULL, &learner, "", data, NULL, &options));
    shoal_result_free(&result);
    shoal_data_free(&data);
}

static void test_no_allocation_after_the_third_round(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 3; threads++) {
        counting count = {0};
        run_state(threads, &count);
        assert_int_equal(count.rounds, ROUNDS);
        assert_int_equal(count.late, 0);
    }
}

static void *run_beside(void *argument)
{
    (void)argument;
    run_state(2, NULL);
    return NULL;
}

static void test_runs_beside_each_other(void **state)
{
    (void)state;
    pthread_t thread[3];
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, run_beside, NULL), 0);
    for (int i = 0; i < 3; i++)
        pthread_join(thread[i], NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_round_is_like_new),
                                       cmocka_unit_test(test_what_is_shared_stays),
                                       cmocka_unit_test(test_rounds_of_elsewhere),
                                       cmocka_unit_test(test_no_memory_for_a_round),
                                       cmocka_unit_test(test_no_allocation_after_the_third_round),
                                       cmocka_unit_test(test_runs_beside_each_other)};
    return cmocka_run_group_tests_name("round", tests, NULL, NULL);
}
