/* Labels: threads
 * Runs in step that go wrong: a failure of one rank is the failure of all, with a sentence that names it, and what
 * differs between them is found; who is asked to stop stops all. */
#include "ranks_support.h"

#include <stdatomic.h>
#include <unistd.h>

/* ---- failures ---------------------------------------------------------------------------------------------------- */

/* The rank that has a grain when each has one thread. */
static int rank_of_grain(int64_t grain, int size)
{
    for (int i = 0; i < size; i++)
        if (grain < (int64_t)TOY_GRAINS * (i + 1) / size)
            return i;
    return size - 1;
}

static void test_a_map_that_fails_on_one_rank(void **state)
{
    (void)state;
    scene of = toy_scene();
    of.threads = 1;
    static const int64_t grains[] = {0, 7, 13, TOY_GRAINS - 1}, rounds[] = {0, 4, STEPS};
    for (int s = 0; s < SIZES; s++)
        for (int g = 0; g < 4; g++)
            for (int r = 0; r < 3; r++) {
                set_fault(IN_MAP, 0, rounds[r], g % 2 ? SHOAL_INVALID : SHOAL_MEMORY);
                fault.grain = grains[g];
                run(&of, sizes[s]);
                expect_failed(&of, sizes[s], fault.status,
                              sizes[s] == 1 ? "as told" : named(rank_of_grain(grains[g], sizes[s]), "as told"));
                assert_int_equal(of.got[0].report.rounds, rounds[r]);
                assert_false(of.got[0].report.stopped);
            }
    end_toy(&of);
}

/* Others hear of a failure between two grains: nobody maps on to the end for nothing. */
static struct {
    atomic_int raised;
    atomic_int mapped; /* grains of rank 0 in the round that fails */
} alarm_seen;

static void note_alarm(shoal_ranks *ranks)
{
    alarm_here(ranks);
    atomic_store(&alarm_seen.raised, 1);
}

static void watch_alarm(shoal_ranks *ranks)
{
    ranks->alarm = note_alarm;
}

/* At most ten minutes for all of it. */
static void await(const atomic_int *what)
{
    static atomic_int waits;
    while (!atomic_load(what) && atomic_fetch_add(&waits, 1) < 600000)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* Rank 1 fails while rank 0 is in its first grain, which goes on when the alarm was raised. */
static int map_waiting(shoal_partial *partial, const shoal_round *round, const void *prepared, const shoal_grain *grain,
                       const shoal_scratch *scratch)
{
    if (round->number == 4 && grain->index == fault.grain)
        await(&alarm_seen.mapped);
    if (round->number == 4 && rank_of_grain(grain->index, 2) == 0) {
        atomic_fetch_add(&alarm_seen.mapped, 1);
        await(&alarm_seen.raised);
    }
    return map_toy(partial, round, prepared, grain, scratch);
}

static void test_others_hear_of_a_failure_at_once(void **state)
{
    (void)state;
    shoal_algorithm algorithm = toy;
    scene of = toy_scene();
    algorithm.map = map_waiting;
    of.algorithm = &algorithm;
    of.threads = 1;
    of.enter = watch_alarm;
    set_fault(IN_MAP, 0, 4, SHOAL_INVALID);
    fault.grain = TOY_GRAINS - 1;
    run(&of, 2);
    expect_failed(&of, 2, SHOAL_INVALID, named(1, "as told"));
    assert_int_equal(atomic_load(&alarm_seen.raised), 1);
    assert_int_equal(atomic_load(&alarm_seen.mapped), 1);
    end_toy(&of);
}

/* A map that fails when part of its rows are on their way already. */
static int map_parts(shoal_partial *partial, const shoal_round *round, const void *prepared, const shoal_grain *grain,
                     const shoal_scratch *scratch)
{
    if (grain->index == fault.grain && fault.place == IN_MAP && round->layout.cells > 0 &&
        round->layout.cell[round->layout.cells - 1].kind == SHOAL_CELL_ROW)
        return fail_as_told();
    return shoal_kmeans_predict.map(partial, round, prepared, grain, scratch);
}

static void test_rows_on_their_way_when_one_fails(void **state)
{
    (void)state;
    enum { GRAINS = 200 };
    shoal_algorithm algorithm = shoal_kmeans_predict;
    shoal_data *data = open_data("gen:uniform?rows=1000000&cols=1&type=float32");
    const double centres[3] = {0.1, 0.5, 0.8};
    shoal_predict_config config = {.centres = centres, .k = 3, .columns = 1, .distances = true};
    algorithm.map = map_parts;
    scene of = {
        .algorithm = &algorithm, .config = &config, .data = data, .threads = 1, .options = {.rows_per_grain = 5000}};
    for (int bad = 0; bad < 3; bad++) {
        set_fault(IN_MAP, 0, 0, SHOAL_INVALID);
        fault.grain = GRAINS * (bad + 1) / 3 - 1; /* the last of its rank */
        run(&of, 3);
        expect_failed(&of, 3, SHOAL_INVALID, named(bad, "as told"));
    }
    memset(&fault, 0, sizeof fault);
    clear(&of);
    shoal_data_free(&data);
}

/* What failed is over: the same ranks may run again. */
static void run_two(shoal_ranks *ranks, void *context)
{
    scene *both = context;
    run_one(ranks, &both[0]);
    run_one(ranks, &both[1]);
}

static void test_a_run_after_one_that_failed(void **state)
{
    (void)state;
    shoal_data *data = open_data("gen:blobs?rows=900&cols=3&centres=4&seed=5");
    shoal_kmeans_config config = kmeans_config(4, "auto");
    scene both[2] = {toy_scene(), {.algorithm = &shoal_kmeans, .config = &config, .data = data}};
    shoal_report report;
    both[1].options = (shoal_run_options){.rows_per_grain = 30, .verify = 1};
    shoal_result *alone = run_alone(&both[1], &report);
    for (int size = 2; size <= 4; size++) {
        clear(&both[0]);
        clear(&both[1]);
        set_fault(IN_MAP, 0, 3, SHOAL_INVALID);
        fault.grain = TOY_GRAINS - 1;
        assert_false(ranks_here_run(size, run_two, both, NULL).aborted);
        expect_failed(&both[0], size, SHOAL_INVALID, named(size - 1, "as told"));
        expect_same(&both[1], size, alone, &report);
    }
    shoal_result_free(&alone);
    clear(&both[1]);
    end_toy(&both[0]);
    shoal_data_free(&data);
}

static void test_anything_that_fails_on_one_rank(void **state)
{
    (void)state;
    static const fault_place places[] = {IN_START, IN_PREPARE, IN_UPDATE};
    static const int64_t rounds[] = {0, 5, STEPS};
    scene of = toy_scene();
    for (int s = 1; s < SIZES; s++)
        for (int p = 0; p < 3; p++)
            for (int r = 0; r < (places[p] == IN_START ? 1 : 3); r++)
                for (int bad = 0; bad < sizes[s]; bad++) {
                    set_fault(places[p], bad, rounds[r], r % 2 ? SHOAL_MEMORY : SHOAL_INVALID);
                    run(&of, sizes[s]);
                    expect_failed(&of, sizes[s], fault.status, named(bad, "as told"));
                }
    end_toy(&of);
}

static void test_an_update_whose_bits_differ(void **state)
{
    (void)state;
    scene of = toy_scene();
    for (int s = 1; s < SIZES; s++)
        for (int bad = 0; bad < sizes[s]; bad++)
            for (int kept = 0; kept < 2; kept++) {
                char words[100];
                int blamed = sizes[s] == 2 ? 1 : bad; /* of two nobody knows which one is right */
                snprintf(words, sizeof words, "rank %d on ", blamed);
                set_fault(kept ? IN_KEPT : IN_BITS, bad, 4, SHOAL_OK);
                of.options.verify = 1;
                run(&of, sizes[s]);
                expect_failed(&of, sizes[s], SHOAL_CONFLICT, words);
                assert_non_null(strstr(of.got[0].message, " has another model"));
                assert_int_equal(of.got[0].report.rounds, 4);
            }
    of.options.verify = 1000; /* what the result is made from is compared in any case */
    set_fault(IN_BITS, 2, STEPS - 1, SHOAL_OK);
    run(&of, 3);
    expect_failed(&of, 3, SHOAL_CONFLICT, "rank 2 on ");
    of.options.verify = 0; /* unless nobody wants to know */
    run(&of, 3);
    assert_int_equal(of.got[0].status, SHOAL_OK);
    end_toy(&of);
}

/* A rank that went wrong so that it is at its end, and calls nobody any more while the others go on, is found without a
 * comparison. */
static void test_a_rank_that_ends_before_the_others(void **state)
{
    (void)state;
    scene of = toy_scene();
    for (int s = 1; s < SIZES; s++)
        for (int bad = 0; bad < sizes[s]; bad++)
            for (int64_t verify = 0; verify <= 1; verify++) {
                char words[100];
                snprintf(words, sizeof words, "rank %d on ", sizes[s] == 2 ? 1 : bad);
                set_fault(IN_END, bad, 4, SHOAL_OK);
                of.options.verify = verify;
                run(&of, sizes[s]);
                expect_failed(&of, sizes[s], SHOAL_CONFLICT, words);
                assert_non_null(strstr(of.got[0].message, " has another model"));
            }
    end_toy(&of);
}

/* Ranks that have something else before they begin. */
static void test_ranks_that_differ(void **state)
{
    (void)state;
    scene of = toy_scene();
    const toy_config other = {.seed = 8};
    for (int bad = 0; bad < 3; bad++) {
        of.odd_rank = bad;
        of.other_config = &other;
        run(&of, 3);
        char words[60];
        snprintf(words, sizeof words, "rank %d on ", bad);
        expect_failed(&of, 3, SHOAL_CONFLICT, words);
        assert_non_null(strstr(of.got[0].message, "options"));
        of.other_config = NULL;
        assert_int_equal(shoal_data_wrap(&of.other_data, toy_values, TOY_ROWS - 1, 1, SHOAL_FLOAT32), SHOAL_OK);
        run(&of, 3);
        expect_failed(&of, 3, SHOAL_CONFLICT, words);
        assert_non_null(strstr(of.got[0].message, "shape of the data"));
        shoal_data_free(&of.other_data);
        of.other_grain = 2 * TOY_GRAIN;
        run(&of, 3);
        expect_failed(&of, 3, SHOAL_CONFLICT, words);
        assert_non_null(strstr(of.got[0].message, "--grain"));
        of.other_grain = 0;
        of.options.code_hash = "one";
        of.other_code = "two";
        run(&of, 3);
        expect_failed(&of, 3, SHOAL_CONFLICT, words);
        assert_non_null(strstr(of.got[0].message, "module or command"));
        of.other_code = NULL;
    }
    end_toy(&of);
}

static void test_what_all_refuse_names_no_rank(void **state)
{
    (void)state;
    shoal_data *data = open_data("gen:blobs?rows=50&cols=3&centres=3&seed=5");
    shoal_kmeans_config config = kmeans_config(0, "auto");
    scene of = {.algorithm = &shoal_kmeans, .config = &config, .data = data};
    run(&of, 3);
    expect_failed(&of, 3, SHOAL_USAGE, "-k must be at least 1");
    assert_null(strstr(of.got[0].message, "rank"));
    config.k = 3;
    of.options.kernel = "abacus";
    run(&of, 3);
    expect_failed(&of, 3, SHOAL_USAGE, "abacus");
    assert_null(strstr(of.got[0].message, "rank"));
    clear(&of);
    shoal_data_free(&data);
}

/* A run with ranks and without end alike when one is asked to stop in the same round. */
static void test_a_stop_on_one_rank(void **state)
{
    (void)state;
    scene of = toy_scene();
    for (int64_t round = 0; round <= STEPS; round++) {
        set_fault(IN_STOP, 0, round, SHOAL_OK);
        run(&of, 0);
        outcome alone = of.got[0];
        of.got[0].result = NULL;
        assert_int_equal(alone.status, round == 0 ? SHOAL_STOPPED : SHOAL_OK);
        for (int s = 0; s < SIZES; s++)
            for (int who = 0; who<sizes[s]; who += sizes[s]> 3 ? 3 : 1) {
                set_fault(IN_STOP, who, round, SHOAL_OK);
                run(&of, sizes[s]);
                for (int i = 0; i < sizes[s]; i++) {
                    assert_int_equal(of.got[i].status, alone.status);
                    assert_int_equal(of.got[i].report.stopped, alone.report.stopped);
                    assert_int_equal(of.got[i].report.rounds, alone.report.rounds);
                    if (alone.result)
                        expect_same_result(of.got[i].result, alone.result, i);
                }
            }
        shoal_result_free(&alone.result);
    }
    end_toy(&of);
}

/* ---- rows that go away ------------------------------------------------------------------------------------------- */

/* After so many rounds rank 0 shortens the file that all ranks have mapped. */
static struct {
    char path[64];
    int64_t round;
    off_t size;
} shortened;

static int update_shortening(shoal_round **next, shoal_result **result, const shoal_round *round, shoal_partial *merged,
                             const shoal_shape *shape, const shoal_crew *crew, bool stop)
{
    if (this_rank == 0 && round->number == shortened.round && truncate(shortened.path, shortened.size) != 0)
        abort();
    return update_toy(next, result, round, merged, shape, crew, stop);
}

/* Looks at all rows, and takes offence at those that are zeros: nobody may be told that. */
static int map_looking(shoal_partial *partial, const shoal_round *round, const void *prepared, const shoal_grain *grain,
                       const shoal_scratch *scratch)
{
    const volatile float *values = grain->values;
    for (int64_t i = 0; i < grain->rows; i++)
        if (values[i] == 0)
            return shoal_fail(SHOAL_USAGE, "row %lld is 0", (long long)(grain->first_row + i));
    return map_toy(partial, round, prepared, grain, scratch);
}

static void write_rows(void)
{
    static float rows[TOY_ROWS * 64];
    strcpy(shortened.path, "/tmp/shoal-ranks-fail-XXXXXX");
    int file = mkstemp(shortened.path);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        rows[i] = 1 + (float)(i % 7);
    assert_int_equal(write(file, rows, sizeof rows), sizeof rows);
    close(file);
}

/* Each rank is a process of its own otherwise: each has mapped the file by itself. */
static void test_rows_of_a_file_that_shrinks(void **state)
{
    (void)state;
    static const off_t left[] = {0, 70000, TOY_ROWS * 64 * 4 - 4};
    shoal_algorithm algorithm = toy;
    algorithm.update = update_shortening;
    algorithm.map = map_looking;
    for (int size = 0; size <= 3; size++)
        for (int i = 0; i < 3; i++) {
            scene of = toy_scene();
            shoal_data *wrapped = of.data;
            write_rows();
            shortened.round = 3 * i;
            shortened.size = left[i];
            assert_int_equal(
                shoal_data_open(&of.data, shortened.path, &(shoal_data_options){.columns = 64, .type = "float32"}),
                SHOAL_OK);
            of.algorithm = &algorithm;
            run(&of, size);
            expect_failed(&of, size ? size : 1, SHOAL_INVALID, "the file shrank from 128000 to ");
            assert_non_null(strstr(of.got[0].message, shortened.path));
            assert_int_equal(of.got[0].report.rounds, shortened.round + 1);
            shoal_data_free(&of.data);
            of.data = wrapped;
            unlink(shortened.path);
            end_toy(&of);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_map_that_fails_on_one_rank),
        cmocka_unit_test(test_others_hear_of_a_failure_at_once),
        cmocka_unit_test(test_rows_on_their_way_when_one_fails),
        cmocka_unit_test(test_a_run_after_one_that_failed),
        cmocka_unit_test(test_anything_that_fails_on_one_rank),
        cmocka_unit_test(test_an_update_whose_bits_differ),
        cmocka_unit_test(test_a_rank_that_ends_before_the_others),
        cmocka_unit_test(test_ranks_that_differ),
        cmocka_unit_test(test_what_all_refuse_names_no_rank),
        cmocka_unit_test(test_a_stop_on_one_rank),
        cmocka_unit_test(test_rows_of_a_file_that_shrinks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
