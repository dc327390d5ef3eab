/* Labels: threads Slices: however the grains are cut, whatever is mapped twice or broken off, the result has
 * shoal_run's bits, and the memo is used where it may be and only there. */
#include <stdatomic.h>

#include "any_round.h"
#include "unit/slice_support.h"

/* ---- a learner that is watched ----------------------------------------------------------------------------------- */

/* What maps saw since it was cleared, and when to interfere; nothing of it enters a result. */
static struct {
    atomic_llong grains, carried;
    atomic_llong stop_after; /* grains until the stop word is set; 0 for never */
    _Atomic uint32_t stop;
} seen;

static const shoal_algorithm *watched_algorithm;

static int map_watched(shoal_partial *partial, const shoal_round *round, const void *prepared, const shoal_grain *grain,
                       const shoal_scratch *scratch)
{
    long long count = atomic_fetch_add(&seen.grains, 1) + 1;
    atomic_fetch_add(&seen.carried, grain->carried);
    if (count == atomic_load(&seen.stop_after))
        atomic_store(&seen.stop, 1);
    return watched_algorithm->map(partial, round, prepared, grain, scratch);
}

static shoal_algorithm watch(const shoal_algorithm *algorithm)
{
    shoal_algorithm watched = *algorithm;
    watched_algorithm = algorithm;
    watched.map = map_watched;
    return watched;
}

static void forget_seen(void)
{
    atomic_store(&seen.grains, 0);
    atomic_store(&seen.carried, 0);
    atomic_store(&seen.stop_after, 0);
    atomic_store(&seen.stop, 0);
}

/* ---- a run with trouble ------------------------------------------------------------------------------------------ */

typedef struct trouble {
    uint64_t seed, draws;
    double stop, fail, twice; /* chances, for each slice and round */
    int64_t stopped, failed, doubled, carried, uncarried;
} trouble;

static bool happens(trouble *by, double chance)
{
    return base_random_unit(by->seed, BASE_FOR_DATA, by->draws++, 77) < chance;
}

static int64_t pick(trouble *by, int64_t bound)
{
    return (int64_t)base_random_below((uint64_t)bound, by->seed, BASE_FOR_DATA, by->draws++, 78);
}

/* Breaks a map off, by the stop word or by rows that can't be read.  Several threads may be done before they see it. */
static bool interrupt(sliced *run, trouble *by, int s)
{
    int64_t grains = run->first_grain[s + 1] - run->first_grain[s];
    shoal_partial *partial = NULL;
    bool by_stop = by->stop > 0 && (by->fail <= 0 || pick(by, 2));
    forget_seen();
    if (by_stop)
        atomic_store(&seen.stop_after, 1 + pick(by, grains));
    else
        run->unreadable_row =
            sliced_first_row(run, s) + pick(by, sliced_first_row(run, s + 1) - sliced_first_row(run, s));
    int status = engine_slice_map(&partial, run->mapper, run->slice[s]);
    run->unreadable_row = -1;
    if (!by_stop)
        assert_int_equal(status, SHOAL_SYSTEM);
    else if (run->threads == 1)
        assert_int_equal(status, atomic_load(&seen.stop_after) < grains ? SHOAL_STOPPED : SHOAL_OK);
    else
        assert_true(status == SHOAL_STOPPED || status == SHOAL_OK);
    assert_int_equal(partial != NULL, status == SHOAL_OK);
    by->stopped += status == SHOAL_STOPPED;
    by->failed += status == SHOAL_SYSTEM;
    return true;
}

/* Maps a slice, perhaps after trouble, and returns its partial as bytes. */
static encoded map_in_trouble(sliced *run, void *context, const shoal_round *round, int s)
{
    trouble *by = context;
    const shoal_layout *layout = &round->layout;
    int64_t grains = run->first_grain[s + 1] - run->first_grain[s];
    shoal_partial *partial = NULL;
    bool disturbed = happens(by, by->stop + by->fail) && interrupt(run, by, s);
    forget_seen();
    hand_check(engine_slice_map(&partial, run->mapper, run->slice[s]));
    assert_int_equal(atomic_load(&seen.grains), grains);
    /* All that share the sums are carried, or none: all when the memo is still that of carry_from. */
    bool carried = layout->carry_from >= 0 && !(disturbed && layout->writes_memo);
    assert_int_equal(atomic_load(&seen.carried), carried ? grains : 0);
    by->carried += carried;
    by->uncarried += layout->carry_from >= 0 && !carried;
    encoded bytes = encode_partial(partial);
    if (happens(by, by->twice)) {
        forget_seen();
        hand_check(engine_slice_map(&partial, run->mapper, run->slice[s]));
        assert_int_equal(atomic_load(&seen.carried), carried && !layout->writes_memo ? grains : 0);
        encoded again = encode_partial(partial);
        expect_same_bytes(bytes, again);
        base_free(&again.bytes);
        by->doubled++;
    }
    return bytes;
}

static void compare(trouble chances, trouble *total)
{
    for (int c = 0; c < SLICED_CASES; c++) {
        sliced_work work;
        make_work(&work, &sliced_cases[c]);
        shoal_result *expected = run_by_threads(&work, NULL);
        shoal_algorithm watched = watch(work.algorithm);
        for (int slices = 1; slices <= 5; slices += 2)
            for (int threads = 1; threads <= 3; threads++) {
                sliced run = sliced_of(&work, &watched, slices, threads);
                trouble by = chances;
                by.seed = (uint64_t)(c * 100 + slices * 10 + threads);
                sliced_begin(&run);
                engine_mapper_watch(run.mapper, &seen.stop);
                shoal_result *result = sliced_run_all(&run, map_in_trouble, &by);
                sliced_end(&run);
                expect_same_results(result, expected);
                shoal_result_free(&result);
                total->stopped += by.stopped;
                total->failed += by.failed;
                total->doubled += by.doubled;
                total->carried += by.carried;
                total->uncarried += by.uncarried;
            }
        shoal_result_free(&expected);
        drop_work(&work);
    }
}

static void test_slices_change_nothing(void **state)
{
    (void)state;
    trouble total = {0};
    compare((trouble){0}, &total);
    assert_true(total.carried > 500);
    assert_int_equal(total.uncarried, 0);
}

static void test_mapping_twice_changes_nothing(void **state)
{
    (void)state;
    trouble total = {0};
    compare((trouble){.twice = 0.4}, &total);
    assert_true(total.doubled > 500 && total.carried > 500);
}

static void test_interrupted_maps_change_nothing(void **state)
{
    (void)state;
    trouble total = {0};
    compare((trouble){.stop = 0.15, .fail = 0.15, .twice = 0.2}, &total);
    assert_true(total.stopped > 100 && total.failed > 100 && total.doubled > 100);
    assert_true(total.carried > 200 && total.uncarried > 100);
}

/* ---- the pieces -------------------------------------------------------------------------------------------------- */

/* A stop that was asked for before ends the map before its first grain, and one that is taken back does not. */
static void test_stop_word(void **state)
{
    (void)state;
    sliced_work work;
    make_work(&work, &sliced_cases[0]);
    shoal_algorithm watched = watch(work.algorithm);
    sliced run = sliced_of(&work, &watched, 2, 2);
    shoal_round *round = NULL;
    shoal_partial *partial = NULL;
    sliced_begin(&run);
    hand_check(watched.start(&round, run.config, &run.shape));
    hand_check(engine_mapper_begin(run.mapper, round));
    forget_seen();
    engine_mapper_watch(run.mapper, &seen.stop);
    atomic_store(&seen.stop, 1);
    assert_int_equal(engine_slice_map(&partial, run.mapper, run.slice[0]), SHOAL_STOPPED);
    assert_null(partial);
    assert_int_equal(atomic_load(&seen.grains), 0);
    engine_mapper_watch(run.mapper, NULL);
    hand_check(engine_slice_map(&partial, run.mapper, run.slice[0]));
    atomic_store(&seen.stop, 0);
    engine_mapper_watch(run.mapper, &seen.stop);
    hand_check(engine_slice_map(&partial, run.mapper, run.slice[1]));
    shoal_round_free(&round);
    sliced_end(&run);
    drop_work(&work);
}

/* ---- sums that can't be carried ---------------------------------------------------------------------------------- */

/* Counts rows: all of them, or none when the count is carried. */
static int map_counting(shoal_partial *partial, const shoal_round *round, const void *prepared,
                        const shoal_grain *grain, const shoal_scratch *scratch)
{
    (void)round, (void)prepared, (void)scratch;
    atomic_fetch_add(&seen.carried, grain->carried);
    shoal_partial_values(partial, 0)[0] += grain->carried ? 0 : grain->rows;
    return SHOAL_OK;
}

static size_t no_scratch(const shoal_round *round, const void *prepared, const shoal_shape *shape)
{
    (void)round, (void)prepared, (void)shape;
    return 0;
}

static const shoal_algorithm counting = {ANY_ROUND, .name = "counting", .scratch_bytes = no_scratch,
                                         .map = map_counting};

/* The memo may be of the right round, and still the sums not: because that round had others, because this one would
 * keep them from the next, or because its partial was made anew for those who may take its rows. */
static void test_sums_that_can_not_be_carried(void **state)
{
    (void)state;
    enum { MEMO = 4 };
    static const struct {
        const char *cell;
        bool carries, writes_memo;
        int64_t carry_from;
        size_t memo;
        bool carried; /* what must come of it */
        bool has_rows;
    } rounds[] = {
        {"others", false, true, -1, MEMO, false, false},
        {"count", true, true, 0, MEMO, false, false}, /* no such sums in round 0 */
        {"count", true, true, 1, MEMO, true, false},
        {"count", true, false, 2, MEMO, false, false}, /* has nowhere to start from */
        {"others", false, false, 2, MEMO, false, false},
        {"count", true, true, 2, MEMO, true, false}, /* looked at, and still there */
        {"count", true, true, 4, MEMO, false, false},
        {"count", true, true, 6, MEMO + 4, false, false},
        {"count", true, true, 7, MEMO + 4, false, true}, /* another layout */
        {"count", true, true, 8, MEMO + 4, false, true}, /* the same, but its rows may have been taken */
    };
    sliced run = {.algorithm = &counting,
                  .values = "0123456789",
                  .shape = {.rows = 10, .columns = 1, .type = SHOAL_UINT8, .rows_per_grain = 3},
                  .slices = 2,
                  .threads = 2};
    sliced_begin(&run);
    for (size_t r = 0; r < sizeof rounds / sizeof *rounds; r++) {
        shoal_round round = {.number = (int64_t)r,
                             .layout = {.cells = rounds[r].has_rows ? 2 : 1,
                                        .cell = {{.kind = SHOAL_CELL_SUM, .count = 1, .carried = rounds[r].carries},
                                                 {.name = "rows", .kind = SHOAL_CELL_ROW, .bytes = 1}},
                                        .memo_row_bytes = rounds[r].memo,
                                        .carry_from = rounds[r].carry_from,
                                        .writes_memo = rounds[r].writes_memo}};
        bool looks = !rounds[r].carries && rounds[r].carry_from >= 0; /* at the memo only, which is there */
        strcpy(round.layout.cell[0].name, rounds[r].cell);
        hand_check(engine_mapper_begin(run.mapper, &round));
        for (int s = 0; s < 2; s++) {
            shoal_partial *partial = NULL;
            forget_seen();
            hand_check(engine_slice_map(&partial, run.mapper, run.slice[s]));
            assert_int_equal(atomic_load(&seen.carried) > 0, rounds[r].carried || looks);
            assert_int_equal(shoal_partial_values(partial, 0)[0],
                             looks ? 0 : sliced_first_row(&run, s + 1) - sliced_first_row(&run, s));
        }
    }
    sliced_end(&run);
}

static int map_memo(shoal_partial *partial, const shoal_round *round, const void *prepared, const shoal_grain *grain,
                    const shoal_scratch *scratch)
{
    (void)round, (void)prepared, (void)scratch;
    shoal_partial_values(partial, 0)[0] += grain->memo ? grain->rows : 0;
    shoal_partial_values(partial, 0)[1] += grain->carried ? grain->rows : 0;
    return SHOAL_OK;
}

/* A memo that is larger than it may be is left out for a learner that does without, and for no other. */
static void test_memo_that_is_spared(void **state)
{
    (void)state;
    enum { MEMO = 4, ROWS_OF_SLICE = 6 }; /* of the first of two; the second has 4 */
    static const struct {
        bool spares;
        int64_t most, there, spared;
    } cases[] = {{true, -1, 10, 0},
                 {true, ROWS_OF_SLICE * MEMO, 10, 0},
                 {true, ROWS_OF_SLICE * MEMO - 1, 4, ROWS_OF_SLICE * MEMO},
                 {true, 0, 0, ROWS_OF_SLICE * MEMO},
                 {false, 0, 10, 0}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        const shoal_algorithm algorithm = {ANY_ROUND, .name = "memo", .scratch_bytes = no_scratch, .map = map_memo,
                                           .spares_memo = cases[c].spares};
        sliced run = {.algorithm = &algorithm,
                      .values = "0123456789",
                      .shape = {.rows = 10, .columns = 1, .type = SHOAL_UINT8, .rows_per_grain = 3},
                      .slices = 2,
                      .threads = 2};
        sliced_begin(&run);
        assert_int_equal(sliced_first_row(&run, 1), ROWS_OF_SLICE);
        engine_mapper_memo(run.mapper, cases[c].most);
        for (int64_t number = 0; number < 2; number++) {
            int64_t there = 0, carried = 0;
            shoal_round round = {.number = number,
                                 .layout = {.cells = 1,
                                            .cell = {{.name = "seen", .kind = SHOAL_CELL_SUM, .count = 2}},
                                            .memo_row_bytes = MEMO,
                                            .carry_from = number - 1,
                                            .writes_memo = number == 0}};
            hand_check(engine_mapper_begin(run.mapper, &round));
            for (int s = 0; s < 2; s++) {
                shoal_partial *partial = NULL;
                hand_check(engine_slice_map(&partial, run.mapper, run.slice[s]));
                there += shoal_partial_values(partial, 0)[0];
                carried += shoal_partial_values(partial, 0)[1];
            }
            assert_int_equal(there, cases[c].there);
            assert_int_equal(carried, number == 0 ? 0 : cases[c].there);
        }
        assert_int_equal(engine_mapper_spared(run.mapper), cases[c].spared);
        sliced_end(&run);
    }
}

/* Who took the rows of a partial finds new ones in the next. */
static encoded map_and_take_rows(sliced *run, void *context, const shoal_round *round, int s)
{
    int64_t *taken = context;
    shoal_partial *partial = NULL;
    encoded bytes = map_plainly(run, NULL, round, s), again;
    for (int cell = 0; cell < round->layout.cells; cell++)
        if (round->layout.cell[cell].kind == SHOAL_CELL_ROW) {
            hand_check(engine_slice_map(&partial, run->mapper, run->slice[s]));
            void *rows = learn_partial_take_rows(partial, cell);
            assert_non_null(rows);
            again = map_plainly(run, NULL, round, s);
            expect_same_bytes(bytes, again);
            base_free(&again.bytes);
            base_free(&rows);
            (*taken)++;
        }
    return bytes;
}

static void test_taken_rows(void **state)
{
    (void)state;
    sliced_work work;
    int64_t taken = 0;
    make_work(&work, &sliced_cases[4]);
    for (int threads = 1; threads <= 2; threads++) {
        sliced run = sliced_of(&work, work.algorithm, 3, threads);
        shoal_result *expected = run_by_threads(&work, NULL);
        sliced_begin(&run);
        shoal_result *result = sliced_run_all(&run, map_and_take_rows, &taken);
        expect_same_results(result, expected);
        shoal_result_free(&result);
        shoal_result_free(&expected);
        sliced_end(&run);
    }
    assert_true(taken >= 12); /* labels and distances of three slices, twice */
    drop_work(&work);
}

static void test_rows_of_grains(void **state)
{
    (void)state;
    shoal_shape shape = {.rows = 25, .rows_per_grain = 10, .grains = 3};
    assert_int_equal(engine_rows_of(&shape, 0, 1), 10);
    assert_int_equal(engine_rows_of(&shape, 0, 3), 25);
    assert_int_equal(engine_rows_of(&shape, 2, 1), 5);
    assert_int_equal(engine_rows_of(&shape, 1, 2), 15);
    assert_int_equal(engine_rows_of(&shape, 1, 0), 0);
}

/* Counters tell what the threads engine tells, and are handed out once. */
static void test_counters(void **state)
{
    (void)state;
    for (int c = 0; c < SLICED_CASES; c++) {
        sliced_work work;
        shoal_report report;
        make_work(&work, &sliced_cases[c]);
        shoal_result *expected = run_by_threads(&work, &report);
        sliced run = sliced_of(&work, work.algorithm, 3, 2);
        int64_t counter[SHOAL_COUNTERS] = {0};
        sliced_begin(&run);
        shoal_result *result = sliced_run_all(&run, map_plainly, NULL);
        engine_mapper_counted(run.mapper, counter);
        assert_true(counter[0] > 0);
        assert_memory_equal(counter, report.counter, sizeof counter);
        engine_mapper_counted(run.mapper, counter);
        assert_memory_equal(counter, report.counter, sizeof counter);
        shoal_result_free(&result);
        shoal_result_free(&expected);
        sliced_end(&run);
        drop_work(&work);
    }
}

/* ---- no memory --------------------------------------------------------------------------------------------------- */

/* Again and again until there is memory enough: whatever failed before must not show. */
static encoded map_at_last(sliced *run, void *context, const shoal_round *round, int s)
{
    int64_t *failures = context;
    shoal_partial *partial = NULL;
    for (int64_t n = 0;; n++) {
        assert_true(n < 5000);
        base_memory_fail_after(n);
        int status = engine_mapper_begin(run->mapper, round);
        if (status == SHOAL_OK)
            status = engine_slice_map(&partial, run->mapper, run->slice[s]);
        base_memory_fail_after(-1);
        if (status == SHOAL_OK)
            return encode_partial(partial);
        assert_int_equal(status, SHOAL_MEMORY);
        assert_null(partial);
        (*failures)++;
    }
}

static void test_no_memory(void **state)
{
    (void)state;
    int64_t failures = 0;
    for (int c = 0; c < SLICED_CASES; c++)
        for (int threads = 1; threads <= 2; threads++) {
            sliced_work work;
            make_work(&work, &sliced_cases[c]);
            shoal_result *expected = run_by_threads(&work, NULL);
            sliced run = sliced_of(&work, work.algorithm, 2, threads);
            sliced_begin(&run);
            shoal_result *result = sliced_run_all(&run, map_at_last, &failures);
            expect_same_results(result, expected);
            shoal_result_free(&result);
            shoal_result_free(&expected);
            sliced_end(&run);
            drop_work(&work);
        }
    assert_true(failures > 200);
}

/* A process whose first attempt at a round failed can still do it: nothing half made is left behind. */
static void test_beginning_again(void **state)
{
    (void)state;
    sliced_work work;
    int status = SHOAL_MEMORY;
    make_work(&work, &sliced_cases[1]);
    for (int64_t n = 0; status < 0; n++) {
        sliced run = sliced_of(&work, work.algorithm, 1, 2);
        shoal_round *round = NULL;
        shoal_partial *partial = NULL;
        sliced_begin(&run);
        hand_check(run.algorithm->start(&round, run.config, &run.shape));
        base_memory_fail_after(n);
        status = engine_mapper_begin(run.mapper, round);
        base_memory_fail_after(-1);
        assert_true(status == SHOAL_OK ? n > 2 : status == SHOAL_MEMORY);
        hand_check(engine_mapper_begin(run.mapper, round));
        hand_check(engine_slice_map(&partial, run.mapper, run.slice[0]));
        shoal_round_free(&round);
        sliced_end(&run);
    }
    drop_work(&work);
}

static void test_no_memory_to_make_them(void **state)
{
    (void)state;
    const kernel_set *kernel = NULL;
    shoal_shape shape = {.rows = 9, .columns = 1, .rows_per_grain = 3, .grains = 3};
    int status = SHOAL_MEMORY;
    hand_check(kernel_choose(&kernel, NULL));
    for (int64_t n = 0; status < 0; n++) {
        engine_mapper *mapper = NULL;
        engine_slice *slice = NULL;
        base_memory_fail_after(n);
        status = engine_mapper_new(&mapper, &shoal_kmeans, &shape, 3, kernel);
        if (status == SHOAL_OK)
            status = engine_slice_new(&slice, 0, 3, &(engine_rows){.read = read_sliced});
        base_memory_fail_after(-1);
        engine_slice_free(&slice);
        engine_mapper_free(&mapper);
        assert_true(status == SHOAL_OK ? n > 2 : status == SHOAL_MEMORY);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_slices_change_nothing),
                                       cmocka_unit_test(test_mapping_twice_changes_nothing),
                                       cmocka_unit_test(test_interrupted_maps_change_nothing),
                                       cmocka_unit_test(test_stop_word),
                                       cmocka_unit_test(test_sums_that_can_not_be_carried),
                                       cmocka_unit_test(test_memo_that_is_spared),
                                       cmocka_unit_test(test_taken_rows),
                                       cmocka_unit_test(test_rows_of_grains),
                                       cmocka_unit_test(test_counters),
                                       cmocka_unit_test(test_no_memory),
                                       cmocka_unit_test(test_beginning_again),
                                       cmocka_unit_test(test_no_memory_to_make_them)};
    return cmocka_run_group_tests_name("slice", tests, NULL, NULL);
}
