/* Labels: threads
 * Runs in step that were broken off: whoever dies where, others take up what was saved, in any number, and come to the
 * same bytes; and nobody waits for one who is gone. */
#include "ranks_support.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- checkpoints ------------------------------------------------------------------------------------------------- */

static char folder[64], place[128];

static int begin_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/shoal-ranks-XXXXXX");
    snprintf(place, sizeof place, "%s", mkdtemp(folder) ? folder : "");
    strcat(place, "/a.checkpoint");
    return *place == '/' ? 0 : -1;
}

static int end_folder(void **state)
{
    (void)state;
    unlink(place);
    return rmdir(folder);
}

static bool is_there(void)
{
    return access(place, F_OK) == 0;
}

/* Every round is saved and compared. */
static void save_all(scene *of, bool resume)
{
    of->options.checkpoint = place;
    of->options.checkpoint_seconds = 1e-9;
    of->options.resume = resume;
    of->options.verify = 1;
}

static const int pairs[][2] = {{0, 0}, {0, 3}, {3, 0}, {2, 7}, {7, 2}, {1, 4}, {4, 3}};

/* Broken off in round `round` with the first number of ranks, gone on with by the second, which is broken off
 * as well and goes on once more. */
static void break_and_go_on(scene *of, const int pair[2], int64_t round, const shoal_result *alone,
                            const shoal_report *report)
{
    set_fault(IN_UPDATE, 0, round, SHOAL_SYSTEM);
    save_all(of, false);
    run(of, pair[0]);
    expect_failed(of, pair[0] ? pair[0] : 1, SHOAL_SYSTEM, "as told");
    assert_int_equal(is_there(), round > 0);
    save_all(of, true);
    if (round > 0 && round + 2 <= STEPS) {
        fault.round = round + 2;
        run(of, pair[1]);
        expect_failed(of, pair[1] ? pair[1] : 1, SHOAL_SYSTEM, "as told");
        assert_int_equal(of->got[0].report.resumed, round);
        round += 2;
    }
    fault.place = NOWHERE;
    run(of, pair[1]);
    if (pair[1])
        expect_same(of, pair[1], alone, report);
    else
        expect_same_result(of->got[0].result, alone, 0);
    assert_int_equal(of->got[0].report.rounds, report->rounds);
    assert_int_equal(of->got[0].report.counter[0], report->counter[0]); /* of all ranks that there ever were */
    assert_int_equal(of->got[0].report.resumed, round);
    assert_int_equal(shoal_checkpoint_remove(place), SHOAL_OK);
    assert_false(is_there());
}

static void test_a_run_that_was_broken_off_goes_on(void **state)
{
    (void)state;
    scene of = toy_scene();
    shoal_report report;
    shoal_result *alone = run_alone(&of, &report);
    for (size_t p = 0; p < sizeof pairs / sizeof *pairs; p++)
        for (int64_t round = 0; round <= STEPS; round += p ? 5 : 2)
            break_and_go_on(&of, pairs[p], round, alone, &report);
    shoal_result_free(&alone);
    end_toy(&of);
}

/* A learner, broken off by the update of one rank. */
static const shoal_algorithm *within;

static int update_within(shoal_round **next, shoal_result **result, const shoal_round *round, shoal_partial *merged,
                         const shoal_shape *shape, const shoal_crew *crew, bool stop)
{
    return goes_wrong(IN_UPDATE, round->number) ? fail_as_told()
                                                : within->update(next, result, round, merged, shape, crew, stop);
}

static void break_learner(scene *of, const shoal_algorithm *algorithm, const int64_t *rounds)
{
    shoal_algorithm broken = *algorithm;
    within = algorithm;
    broken.update = update_within;
    of->algorithm = &broken;
    memset(&fault, 0, sizeof fault);
    shoal_report report;
    shoal_result *alone = run_alone(of, &report);
    for (int p = 0; p < 4; p++)
        for (int r = 0; r < 3; r++) {
            const int *pair = pairs[1 + p];
            assert_true(rounds[r] < report.rounds);
            set_fault(IN_UPDATE, 0, rounds[r], SHOAL_SYSTEM);
            save_all(of, false);
            run(of, pair[0]);
            expect_failed(of, pair[0] ? pair[0] : 1, SHOAL_SYSTEM, "as told");
            fault.place = NOWHERE;
            save_all(of, true);
            run(of, pair[1]);
            for (int i = 0; i < (pair[1] ? pair[1] : 1); i++) {
                if (of->got[i].status < 0)
                    fail_msg("%s", of->got[i].message);
                expect_same_result(of->got[i].result, alone, i);
            }
            assert_int_equal(of->got[0].report.resumed, rounds[r]);
            assert_int_equal(shoal_checkpoint_remove(place), SHOAL_OK);
        }
    clear(of);
    shoal_result_free(&alone);
}

static void test_learners_that_were_broken_off_go_on(void **state)
{
    (void)state;
    shoal_data *data = open_data("gen:blobs?rows=600&cols=6&centres=5&seed=5");
    shoal_kmeans_config kmeans = kmeans_config(5, "auto");
    double *weights = make_weights(600);
    scene first = {.config = &kmeans, .data = data, .weights = weights, .options = {.rows_per_grain = 40}};
    break_learner(&first, &shoal_kmeans, (const int64_t[]){1, 6, 12});
    shoal_autoencoder_config autoencoder = autoencoder_config();
    scene second = {.config = &autoencoder, .data = data, .options = {.rows_per_grain = 40}};
    break_learner(&second, &shoal_autoencoder, (const int64_t[]){1, 5, 9});
    free(weights);
    shoal_data_free(&data);
}

/* A stopped run says what it has; and goes on all the same when it is asked to. */
static void test_a_stopped_run_goes_on(void **state)
{
    (void)state;
    scene of = toy_scene();
    shoal_report report;
    shoal_result *alone = run_alone(&of, &report);
    for (size_t p = 0; p < sizeof pairs / sizeof *pairs; p++) {
        int before = pairs[p][0], after = pairs[p][1];
        save_all(&of, false);
        set_fault(IN_STOP, before ? before - 1 : 0, 4, SHOAL_OK);
        run(&of, before);
        assert_int_equal(of.got[0].status, SHOAL_OK);
        assert_true(of.got[0].result->incomplete && of.got[0].report.stopped);
        assert_true(is_there());
        fault.place = NOWHERE;
        save_all(&of, true);
        run(&of, after);
        for (int i = 0; i < (after ? after : 1); i++)
            expect_same_result(of.got[i].result, alone, i);
        assert_int_equal(of.got[0].report.resumed, 5);
        assert_int_equal(shoal_checkpoint_remove(place), SHOAL_OK);
    }
    shoal_result_free(&alone);
    end_toy(&of);
}

static void test_resuming_nothing_starts(void **state)
{
    (void)state;
    scene of = toy_scene();
    shoal_report report;
    shoal_result *alone = run_alone(&of, &report);
    of.options.checkpoint = place; /* without seconds: nothing is written */
    of.options.resume = true;
    run(&of, 3);
    expect_same(&of, 3, alone, &report);
    assert_int_equal(of.got[0].report.resumed, 0);
    assert_false(is_there());
    shoal_result_free(&alone);
    end_toy(&of);
}

/* Not before it is time. */
static void test_rounds_are_saved_when_it_is_time(void **state)
{
    (void)state;
    for (int size = 0; size <= 3; size += 3) {
        scene of = toy_scene();
        set_fault(IN_UPDATE, 0, STEPS, SHOAL_SYSTEM);
        save_all(&of, false);
        of.options.checkpoint_seconds = 3600;
        run(&of, size);
        expect_failed(&of, size ? size : 1, SHOAL_SYSTEM, "as told");
        assert_false(is_there());
        fault.place = NOWHERE;
        end_toy(&of);
    }
}

static void write_place(const void *bytes, size_t size)
{
    FILE *file = fopen(place, "wb");
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    fclose(file);
}

static void test_checkpoints_that_are_refused(void **state)
{
    (void)state;
    static char bytes[20000];
    const toy_config other = {.seed = 8};
    for (int size = 0; size <= 3; size += 3) {
        scene of = toy_scene();
        int ranks = size ? size : 1;
        set_fault(IN_UPDATE, 0, 4, SHOAL_SYSTEM);
        save_all(&of, false);
        run(&of, size);
        fault.place = NOWHERE;
        run(&of, size); /* as if it were new */
        expect_failed(&of, ranks, SHOAL_CONFLICT, "resume it with --resume");
        save_all(&of, true);
        of.config = &other;
        run(&of, size);
        expect_failed(&of, ranks, SHOAL_CONFLICT, "belongs to another run");
        of.config = &toy_plain;
        of.options.code_hash = "another module";
        run(&of, size);
        expect_failed(&of, ranks, SHOAL_CONFLICT, "belongs to another run");
        of.options.code_hash = NULL;
        toy_values[33] += 1;
        run(&of, size);
        expect_failed(&of, ranks, SHOAL_CONFLICT, "belongs to another run");
        toy_values[33] -= 1;
        double *weights = make_weights(TOY_ROWS);
        of.weights = weights;
        run(&of, size);
        expect_failed(&of, ranks, SHOAL_CONFLICT, "belongs to another run");
        of.weights = NULL;
        free(weights);
        FILE *file = fopen(place, "rb");
        size_t length = fread(bytes, 1, sizeof bytes, file);
        fclose(file);
        bytes[length / 2] ^= 1;
        write_place(bytes, length);
        run(&of, size);
        expect_failed(&of, ranks, SHOAL_BROKEN, "damaged");
        assert_null(strstr(of.got[0].message, "rank 0"));
        write_place("something", 9);
        run(&of, size);
        expect_failed(&of, ranks, SHOAL_BROKEN, "is not a shoal checkpoint");
        unlink(place);
        end_toy(&of);
    }
}

static void test_a_place_where_nothing_can_be_written(void **state)
{
    (void)state;
    scene of = toy_scene();
    save_all(&of, false);
    of.options.checkpoint = "/nonexistent/x";
    run(&of, 3);
    expect_failed(&of, 3, SHOAL_SYSTEM, "/nonexistent/x: can't write");
    assert_int_equal(of.told[0], 0); /* before the first round */
    end_toy(&of);
}

/* The folder goes while the run does: all ranks hear of it. */
static char vanishing[128];

static int update_vanishing(shoal_round **next, shoal_result **result, const shoal_round *round, shoal_partial *merged,
                            const shoal_shape *shape, const shoal_crew *crew, bool stop)
{
    if (this_rank == 0 && round->number == 4) {
        char file[200];
        snprintf(file, sizeof file, "%s/x", vanishing);
        unlink(file);
        rmdir(vanishing);
    }
    return update_toy(next, result, round, merged, shape, crew, stop);
}

static void test_a_place_that_vanishes(void **state)
{
    (void)state;
    shoal_algorithm algorithm = toy;
    char file[200];
    algorithm.update = update_vanishing;
    snprintf(vanishing, sizeof vanishing, "%s/sub", folder);
    snprintf(file, sizeof file, "%s/x", vanishing);
    for (int size = 0; size <= 3; size++) {
        scene of = toy_scene();
        of.algorithm = &algorithm;
        save_all(&of, false);
        of.options.checkpoint = file;
        assert_int_equal(mkdir(vanishing, 0777), 0);
        run(&of, size);
        expect_failed(&of, size ? size : 1, SHOAL_SYSTEM, "can't write");
        assert_true(of.got[0].report.rounds < STEPS);
        end_toy(&of);
    }
}

/* ---- ends that leave nothing in order, each in a process of its own ---------------------------------------------- */

enum { FINE = 0, ABORTED = 3, WRONG = 4 };

/* Under the thread sanitizer a child takes seconds: only some of these places then. */
#ifdef UNDER_THREAD_SANITIZER
enum { CALL_STEP = 25, ALLOCATION_STEP = 61, EACH_STEP = 61, ENDS_LEAST = 4 };
#else
enum { CALL_STEP = 7, ALLOCATION_STEP = 13, EACH_STEP = 3, ENDS_LEAST = 12 };
#endif

static atomic_int maps; /* that threads of ranks are in */

/* In a child, which a hang would end by SIGALRM; what is lost in an abort is lost with it. */
static int run_in_child(scene *of, int size, const ranks_here_options *options, int64_t allocations)
{
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        alarm(500);
        base_memory_fail_after(allocations);
        ranks_here_end end = ranks_here_run(size, run_one, of, options);
        base_memory_fail_after(-1);
        if (atomic_load(&maps) > 0) {
            fprintf(stderr, "all ranks have left, and threads of theirs still map\n");
            _exit(WRONG);
        }
        if (end.aborted) {
            bool ours = end.code == 9 || (end.code == 1 && strstr(end.message, "memory"));
            if (!ours)
                fprintf(stderr, "rank %d ended all with %d: %s\n", end.rank, end.code, end.message);
            _exit(ours ? ABORTED : WRONG);
        }
        int wrong = 0;
        for (int i = 0; i < size; i++) {
            wrong += of->got[i].status != of->got[0].status;
            wrong += of->got[i].status < 0 && of->got[i].status != SHOAL_MEMORY;
            if (wrong)
                fprintf(stderr, "rank %d: %d, %s\n", i, of->got[i].status, of->got[i].message);
        }
        _exit(wrong ? WRONG : of->got[0].status == SHOAL_OK ? FINE : ABORTED);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!WIFEXITED(status))
        fail_msg("with %d ranks a child ended by signal %d", size, WTERMSIG(status));
    assert_int_not_equal(WEXITSTATUS(status), WRONG);
    return WEXITSTATUS(status);
}

/* Any rank may die in any call: the others end, and what was saved is gone on with to the same bytes. */
static void test_a_rank_that_dies_anywhere(void **state)
{
    (void)state;
    scene of = toy_scene();
    shoal_report report;
    shoal_result *alone = run_alone(&of, &report);
    int64_t resumed = 0, died = 0;
    for (int64_t call = 1;; call += CALL_STEP) {
        save_all(&of, false);
        clear(&of);
        int end = run_in_child(&of, 3, &(ranks_here_options){.abort_call = call, .abort_rank = (int)(call % 3)}, -1);
        save_all(&of, true);
        run(&of, call % 2 ? 2 : 4);
        expect_same(&of, call % 2 ? 2 : 4, alone, &report);
        resumed += of.got[0].report.resumed > 0;
        shoal_checkpoint_remove(place);
        if (end == FINE)
            break;
        died++;
    }
    assert_true(died >= ENDS_LEAST / 3);
    assert_true(resumed >= ENDS_LEAST / 3);
    shoal_result_free(&alone);
    end_toy(&of);
}

/* Memory runs out at any allocation of all ranks together: all of them say so, or are ended, and nobody
 * waits forever. */
static void test_memory_runs_out(void **state)
{
    (void)state;
    scene of = toy_scene();
    int64_t ends = 0;
    for (int64_t n = 0;; n += n < 20 ? 2 : ALLOCATION_STEP) {
        clear(&of);
        save_all(&of, false);
        if (n % 3 == 0)
            of.options.checkpoint_seconds = 0;
        if (run_in_child(&of, 2 + (int)(n % 2), NULL, n) == FINE)
            break;
        assert_int_equal(shoal_checkpoint_remove(place), SHOAL_OK);
        ends++;
    }
    assert_true(ends >= ENDS_LEAST);
    end_toy(&of);
}

/* One allocation fails, on one rank: every rank says so, or all are ended. */
static int failing_rank;
static int64_t failing_allocation, allocations[RANKS_MOST];

static void enter_to_fail(shoal_ranks *ranks)
{
    base_memory_fail_here(ranks->rank == failing_rank ? failing_allocation : -1);
}

static int update_counting(shoal_round **next, shoal_result **result, const shoal_round *round, shoal_partial *merged,
                           const shoal_shape *shape, const shoal_crew *crew, bool stop)
{
    int status = update_toy(next, result, round, merged, shape, crew, stop);
    if (*result)
        allocations[this_rank] = base_memory_fail_here(-1);
    return status;
}

/* With one thread each a rank allocates the same every time, and no failure may be passed over. */
static void fail_each_allocation(int size, int threads, int step)
{
    scene of = toy_scene();
    shoal_algorithm algorithm = toy;
    algorithm.update = update_counting;
    of.algorithm = &algorithm;
    of.threads = threads;
    of.enter = enter_to_fail;
    save_all(&of, false);
    failing_rank = -1;
    run(&of, size);
    assert_int_equal(of.got[0].status, SHOAL_OK);
    assert_int_equal(shoal_checkpoint_remove(place), SHOAL_OK);
    for (failing_rank = 0; failing_rank < size; failing_rank++)
        for (int64_t n = 0; n < allocations[failing_rank]; n += step) {
            clear(&of);
            failing_allocation = n;
            int end = run_in_child(&of, size, NULL, -1);
            if (threads == 1 && end == FINE)
                fail_msg("allocation %lld of rank %d failed, and nobody was told", (long long)n, failing_rank);
            assert_int_equal(shoal_checkpoint_remove(place), SHOAL_OK);
        }
    end_toy(&of);
}

static void test_one_rank_gets_no_memory(void **state)
{
    (void)state;
    fail_each_allocation(2, 1, EACH_STEP);
    fail_each_allocation(3, 0, ALLOCATION_STEP);
}

/* Rank 0 ends all while the other thread of rank 1 is in a map, of which rank 1 hears when it polls: it may not leave
 * before that map is over. */
static shoal_ranks *rank_of[2];
static atomic_int other_maps, rank_1_heard;

static bool alarmed_noting(shoal_ranks *ranks)
{
    bool alarmed = alarmed_here(ranks);
    if (alarmed)
        atomic_store(&rank_1_heard, 1);
    return alarmed;
}

static void enter_noting(shoal_ranks *ranks)
{
    rank_of[ranks->rank] = ranks;
    if (ranks->rank == 1)
        ranks->alarmed = alarmed_noting;
}

static bool is_ended(shoal_ranks *ranks)
{
    here_world *world = here_of(ranks)->world;
    pthread_mutex_lock(&world->lock);
    bool ended = world->end.aborted;
    pthread_mutex_unlock(&world->lock);
    return ended;
}

static int map_while_ended(shoal_partial *partial, const shoal_round *round, const void *prepared,
                           const shoal_grain *grain, const shoal_scratch *scratch)
{
    (void)partial, (void)round, (void)prepared, (void)scratch;
    atomic_fetch_add(&maps, 1);
    if (grain->index < TOY_GRAINS / 3) { /* rank 0, which has one of three threads */
        while (!atomic_load(&other_maps))
            sched_yield();
        atomic_fetch_sub(&maps, 1);
        abort_here(rank_of[0], "told to by the test", 9);
    } else if (pthread_equal(pthread_self(), here_of(rank_of[1])->thread)) {
        while (!is_ended(rank_of[1]))
            sched_yield();
    } else {
        atomic_store(&other_maps, 1);
        while (!atomic_load(&rank_1_heard))
            sched_yield();
    }
    atomic_fetch_sub(&maps, 1);
    return SHOAL_OK;
}

static void test_a_rank_that_is_ended_while_its_threads_map(void **state)
{
    (void)state;
    scene of = toy_scene();
    shoal_algorithm algorithm = toy;
    algorithm.map = map_while_ended;
    of.algorithm = &algorithm;
    of.enter = enter_noting;
    assert_int_equal(run_in_child(&of, 2, NULL, -1), ABORTED);
    end_toy(&of);
}

int main(void)
{
#define IN_A_FOLDER(test) cmocka_unit_test_setup_teardown(test, begin_folder, end_folder)
    const struct CMUnitTest tests[] = {
        IN_A_FOLDER(test_a_run_that_was_broken_off_goes_on),
        IN_A_FOLDER(test_learners_that_were_broken_off_go_on),
        IN_A_FOLDER(test_a_stopped_run_goes_on),
        IN_A_FOLDER(test_rounds_are_saved_when_it_is_time),
        IN_A_FOLDER(test_resuming_nothing_starts),
        IN_A_FOLDER(test_checkpoints_that_are_refused),
        IN_A_FOLDER(test_a_place_where_nothing_can_be_written),
        IN_A_FOLDER(test_a_place_that_vanishes),
        IN_A_FOLDER(test_a_rank_that_dies_anywhere),
        IN_A_FOLDER(test_memory_runs_out),
        IN_A_FOLDER(test_one_rank_gets_no_memory),
        IN_A_FOLDER(test_a_rank_that_is_ended_while_its_threads_map),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
