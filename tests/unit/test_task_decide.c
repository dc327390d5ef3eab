/* Decisions about tasks, over everything that can happen to a few bundles, workers and deaths. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <shoal/task.h>

#include "engine/tasks/task_decide.h"

enum { LEASE = 1000 };

/* ---- claims ------------------------------------------------------------------------------------------------------ */

/* A bundle of so many tasks of which one kills whoever runs it, and others die by chance: which are run, how often. */
typedef struct history {
    int tasks, killer; /* -1: none */
    int deaths;        /* of workers, so far */
    int runs[4];       /* of the killer or the others, that ended in a death */
    bool done[4], poison[4];
} history;

/* What workers do, one after another, until all tasks have a result; `chance` says at which steps one dies. */
static void live_through(history *all, uint32_t chance)
{
    task_claim claim = {.worker = 1, .index = -1};
    for (uint64_t worker = 1; worker < 30; worker++) {
        bool died = false;
        for (int i = 0; i < all->tasks && !died; i++) {
            if (all->done[i])
                continue;
            if (task_claim_is_careful(&claim))
                claim = task_claim_at(&claim, i);
            if (task_claim_is_poison(&claim, i)) {
                all->poison[i] = all->done[i] = true;
                continue;
            }
            died = i == all->killer || (chance & 1);
            chance >>= 1;
            if (died)
                all->runs[i]++;
            else
                all->done[i] = task_claim_is_careful(&claim); /* others are put with the whole bundle */
        }
        if (!died)
            return;
        all->deaths++;
        claim = task_claim_inherit(&claim, worker + 1);
        int first = 0;
        while (first < all->tasks && all->done[first])
            first++;
        if (claim.index < 0 || all->done[claim.index])
            claim = task_claim_at(&claim, first);
        assert_int_equal(claim.worker, worker + 1);
    }
    fail_msg("the bundle is never done");
}

static void test_a_task_that_kills_is_found(void **state)
{
    (void)state;
    for (int tasks = 1; tasks <= 4; tasks++)
        for (int killer = 0; killer < tasks; killer++) {
            history all = {.tasks = tasks, .killer = killer};
            live_through(&all, 0);
            for (int i = 0; i < tasks; i++)
                assert_int_equal(all.poison[i], i == killer);
            assert_int_equal(all.deaths, SHOAL_TASK_DEATHS_MOST);
        }
}

/* Whatever the order in which workers die, a task is poison only if three died while they ran it or ran the bundle when
 * it was not yet known which, and none is ever run a fourth time. */
static void test_deaths_by_chance_are_counted_by_task(void **state)
{
    (void)state;
    for (int tasks = 1; tasks <= 4; tasks++)
        for (int killer = -1; killer < tasks; killer++)
            for (uint32_t chance = 0; chance < 1 << 12; chance++) {
                history all = {.tasks = tasks, .killer = killer};
                live_through(&all, chance);
                for (int i = 0; i < tasks; i++) {
                    assert_in_range(all.runs[i], 0, SHOAL_TASK_DEATHS_MOST);
                    if (all.poison[i])
                        assert_true(all.runs[i] >= SHOAL_TASK_DEATHS_MOST - 1);
                }
                if (killer >= 0)
                    assert_true(all.poison[killer]);
            }
}

static void test_a_death_between_two_tasks_is_nobodys(void **state)
{
    (void)state;
    task_claim claim = {.worker = 1, .index = -1};
    claim = task_claim_inherit(&claim, 2); /* worker 1 died of one of them */
    claim = task_claim_at(&claim, 0);
    claim = task_claim_inherit(&claim, 3); /* and worker 2 of task 0 */
    assert_int_equal(task_claim_deaths(&claim, 0), 2);
    assert_int_equal(task_claim_deaths(&claim, 1), 1);
    claim = task_claim_at(&claim, 1); /* which worker 3 could do */
    assert_int_equal(task_claim_deaths(&claim, 1), 1);
    assert_false(task_claim_is_poison(&claim, 1));
    assert_false(task_claim_is_decisive(&claim, 1));
    assert_true(task_claim_is_careful(&claim));
    claim = task_claim_inherit(&claim, 4);
    assert_true(task_claim_is_decisive(&claim, 1));
}

/* ---- taking ------------------------------------------------------------------------------------------------------ */

static const task_taker taker = {.worker = 3};

static void test_workers_reach_for_different_ones(void **state)
{
    task_seen seen[16] = {{0}};
    int taken[16] = {0}, different = 0;
    (void)state;
    for (int i = 0; i < 16; i++)
        seen[i].number = i;
    for (uint64_t worker = 1; worker <= 16; worker++) {
        task_choice choice = task_choose(seen, 16, &(task_taker){.worker = worker * 0x9e3779b97f4a7c15u}, LEASE, 1);
        assert_int_equal(choice.step, TASK_CLAIM);
        taken[choice.which]++;
    }
    for (int i = 0; i < 16; i++)
        different += taken[i] > 0;
    assert_true(different >= 8);
    memset(taken, 0, sizeof taken);
    for (int rank = 0; rank < 16; rank++) /* and if they know each other, for one each */
        taken[task_choose(seen, 16, &(task_taker){rank * 7 + 1, rank, 16}, LEASE, 1).which]++;
    for (int i = 0; i < 16; i++)
        assert_int_equal(taken[i], 1);
    seen[5].claimed = true; /* one that finds its own taken helps others */
    assert_int_equal(task_choose(seen, 16, &(task_taker){1, 5, 16}, LEASE, 1).step, TASK_CLAIM);
}

static void test_old_ones_come_first(void **state)
{
    task_seen seen[1000] = {{0}};
    (void)state;
    for (int i = 0; i < 1000; i++)
        seen[i].number = i, seen[i].claimed = i < 500;
    for (uint64_t worker = 1; worker <= 100; worker++)
        assert_in_range(task_choose(seen, 1000, &(task_taker){.worker = worker}, LEASE, 1).which, 500, 531);
}

/* One bundle in every state: what is done follows from what is known, and there is always a moment to look again. */
static void test_every_state_of_a_claim(void **state)
{
    const int64_t times[] = {0, 1000, 1900, 2000};
    (void)state;
    for (int bits = 0; bits < 32; bits++)
        for (int read = 0; read < 4; read++)
            for (int done = 0; done < 4; done++)
                for (int checked = 0; checked < 4; checked++) {
                    const task_seen one = {.claimed = bits & 1,
                                           .mine = bits & 2,
                                           .held = bits & 4,
                                           .owner_lives = bits & 8,
                                           .owner = bits & 16 ? 7 : 0,
                                           .read_at = times[read],
                                           .done_at = times[done],
                                           .since = times[checked],
                                           .checked_at = times[checked]};
                    const int64_t now = 2000, last = one.checked_at > one.done_at ? one.checked_at : one.done_at;
                    task_choice choice = task_choose(&one, 1, &taker, LEASE, now);
                    if (!one.claimed)
                        assert_int_equal(choice.step, TASK_CLAIM);
                    else if (one.held)
                        assert_int_equal(choice.step, TASK_NOTHING);
                    else if (one.mine)
                        assert_int_equal(choice.step, last == 0 || now - last >= LEASE ? TASK_CHECK : TASK_NOTHING);
                    else if (one.owner && !one.owner_lives)
                        assert_int_equal(choice.step, TASK_INHERIT);
                    else
                        assert_int_equal(choice.step, now - (one.read_at ? one.read_at : one.since) >= LEASE / 4
                                                          ? TASK_READ
                                                          : TASK_NOTHING);
                    if (choice.step == TASK_NOTHING && !one.held)
                        assert_in_range(choice.until, now + 1, now + LEASE);
                }
}

/* With many, the most urgent is done, and a free one is never left for what others have. */
static void test_free_ones_come_before_those_of_others(void **state)
{
    task_seen seen[3] = {{.number = 0, .claimed = true, .owner = 9}, {.number = 1}, {.number = 2, .claimed = true}};
    (void)state;
    assert_int_equal(task_choose(seen, 3, &taker, LEASE, 2000).step, TASK_CLAIM);
    seen[1].claimed = true;
    seen[1].read_at = 2000;
    seen[1].owner = 5;
    seen[1].owner_lives = true;
    task_choice choice = task_choose(seen, 3, &taker, LEASE, 2000);
    assert_int_equal(choice.step, TASK_INHERIT);
    assert_int_equal(choice.which, 0);
    seen[0].owner_lives = true;
    seen[0].read_at = 2000;
    choice = task_choose(seen, 3, &taker, LEASE, 2000);
    assert_int_equal(choice.step, TASK_READ);
    assert_int_equal(choice.which, 2);
}

static void test_what_is_given_back(void **state)
{
    (void)state;
    assert_false(task_gives_back(0.4, 3, false));
    assert_true(task_gives_back(0.6, 3, false));
    assert_false(task_gives_back(0.6, 0, false));
    assert_false(task_gives_back(0.6, 3, true));
}

/* ---- bundling ---------------------------------------------------------------------------------------------------- */

static int64_t size_of(int64_t pending, int64_t out, int64_t slots, double seconds)
{
    return task_bundle_size(
        &(task_load){.pending = pending, .out = out, .slots = slots, .seconds = seconds, .aim = 0.02});
}

static void test_bundles(void **state)
{
    (void)state;
    assert_int_equal(size_of(0, 0, 4, 0), 0);
    assert_int_equal(size_of(1000, 0, 4, -1), 1);     /* of unknown length */
    assert_int_equal(size_of(1000, 0, 4, 10), 1);     /* long ones travel alone */
    assert_int_equal(size_of(1000, 0, 4, 1e-6), 125); /* short ones by the share of a slot */
    assert_int_equal(size_of(100000, 0, 4, 1e-6), TASK_BUNDLE_MOST);
    assert_int_equal(size_of(100000, 0, 4, 0.001), 20);
    assert_int_equal(size_of(7, 0, 4, 0), 1); /* few are not put together while others have nothing to do */
    assert_int_equal(size_of(1000, 10, 4, 0), 0);
    for (int64_t pending = 1; pending < 3000; pending += 7)
        for (int64_t slots = 0; slots < 40; slots += 3)
            for (double seconds = -1; seconds < 1; seconds += 0.01)
                assert_in_range(size_of(pending, 0, slots, seconds), 1, TASK_BUNDLE_MOST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_task_that_kills_is_found),
        cmocka_unit_test(test_deaths_by_chance_are_counted_by_task),
        cmocka_unit_test(test_a_death_between_two_tasks_is_nobodys),
        cmocka_unit_test(test_workers_reach_for_different_ones),
        cmocka_unit_test(test_old_ones_come_first),
        cmocka_unit_test(test_every_state_of_a_claim),
        cmocka_unit_test(test_free_ones_come_before_those_of_others),
        cmocka_unit_test(test_what_is_given_back),
        cmocka_unit_test(test_bundles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
