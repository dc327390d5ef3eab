/* Forecasts and choices of how many machines: over every small table of options, deadline, budget and number that runs,
 * compared with what choice.h says in words. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "control/choice.h"

enum { MOST = 6 };

/* Machines share the work, and get in each other's way by so much. */
static void fill_options(control_option *option, double work, double fixed, double slope)
{
    for (int n = 1; n <= MOST; n++)
        option[n - 1] = (control_option){.machines = n, .work = work / n, .fixed = fixed + slope * n, .price = n};
}

static control_band with(const control_question *question, int64_t machines)
{
    control_course course = question->course;
    course.now = question->running > 0 ? &question->option[question->running - 1] : NULL;
    return control_foresee(question->trend, &question->option[machines - 1], &course);
}

/* ---- forecasts --------------------------------------------------------------------------------------------------- */

static void test_a_model_that_is_wrong_is_corrected(void **state)
{
    control_option option[MOST];
    control_trend trend;
    (void)state;
    fill_options(option, 100, 1, 0);
    for (double wrong = 0.3; wrong < 4; wrong *= 1.5) {
        control_trend_init(&trend, 0.4);
        for (int i = 0; i < 12; i++)
            control_trend_see(&trend, &option[1], 50 * wrong + 1);
        double round = control_trend_round(&trend, &option[3]);
        assert_true(fabs(round / (25 * wrong + 1) - 1) < 0.1);
        control_band band = control_foresee(&trend, &option[3], &(control_course){.rounds = 10, .now = &option[3]});
        assert_true(band.low < 10 * (25 * wrong + 1) && 10 * (25 * wrong + 1) < band.high);
        assert_true(band.high < 1.3 * band.seconds);
    }
}

static void test_one_slow_round_is_not_believed_but_two_are(void **state)
{
    control_option option[MOST];
    control_trend trend;
    (void)state;
    fill_options(option, 100, 1, 0);
    control_trend_init(&trend, 0.2);
    for (int i = 0; i < 20; i++)
        control_trend_see(&trend, &option[1], 51);
    double before = control_trend_round(&trend, &option[1]);
    control_trend_see(&trend, &option[1], 120);
    assert_true(control_trend_round(&trend, &option[1]) == before);
    control_trend_see(&trend, &option[1], 120);
    assert_true(control_trend_round(&trend, &option[1]) > 110);
    control_trend_see(&trend, &option[1], 0); /* no round */
    control_trend_see(&trend, &option[1], NAN);
    assert_true(control_trend_round(&trend, &option[1]) > 110);
}

static void test_what_machines_do_not_make_faster_is_told_apart(void **state)
{
    control_option option[MOST];
    control_trend trend;
    (void)state;
    fill_options(option, 10, 10, 0);
    control_trend_init(&trend, 0.2);
    for (int i = 0; i < 40; i++) { /* in truth all of it is fixed work, and twice as much of that */
        int64_t n = 1 + i % MOST;
        control_trend_see(&trend, &option[n - 1], 10.0 / (double)n + 20);
    }
    assert_true(fabs(control_trend_round(&trend, &option[0]) / 30 - 1) < 0.06);
    assert_true(fabs(control_trend_round(&trend, &option[MOST - 1]) / (20 + 10.0 / MOST) - 1) < 0.06);
}

static void test_blind(void **state)
{
    control_option option[MOST];
    control_trend trend;
    (void)state;
    fill_options(option, 1, 0, 0);
    control_trend_init_blind(&trend);
    control_trend_see(&trend, &option[0], 300);
    assert_true(fabs(control_trend_round(&trend, &option[0]) / 300 - 1) < 0.02);
}

/* ---- choices ----------------------------------------------------------------------------------------------------- */

static void expect_by_definition(const control_question *question, const control_answer *answer)
{
    int64_t fewest = 0, fastest = 1, cheapest = 0, affordable = 0;
    for (int64_t n = 1; n <= question->options; n++) {
        control_band band = with(question, n);
        bool in_time = band.high <= question->deadline * 0.98, fits = band.cost_high <= question->budget;
        if (in_time && !fewest)
            fewest = n;
        if (band.high < with(question, fastest).high)
            fastest = n;
        if (in_time && fits && (!cheapest || band.cost < with(question, cheapest).cost))
            cheapest = n;
        if (fits && (!affordable || band.high < with(question, affordable).high))
            affordable = n;
    }
    bool timed = isfinite(question->deadline), bounded = isfinite(question->budget);
    if (timed && !bounded) {
        assert_int_equal(answer->wanted, fewest ? fewest : fastest);
        assert_int_equal(answer->verdict, fewest ? CONTROL_KEPT : CONTROL_LATE);
    } else if (timed) {
        if (cheapest)
            assert_int_equal(answer->wanted, cheapest);
        assert_int_equal(answer->verdict == CONTROL_KEPT, cheapest > 0);
        if (answer->verdict == CONTROL_DEAR)
            assert_int_equal(affordable, 0);
    } else if (bounded) {
        if (affordable)
            assert_int_equal(answer->wanted, affordable);
        assert_int_equal(answer->verdict == CONTROL_KEPT, affordable > 0);
    }
}

static void expect_change(const control_question *question, control_state *state)
{
    control_answer first = control_choose(state, question);
    expect_by_definition(question, &first);
    assert_in_range(first.machines, 1, question->options);
    int64_t running = question->running;
    if (running == 0) {
        assert_int_equal(first.machines, first.wanted);
        return;
    }
    control_band present = with(question, running);
    bool holds = present.high <= question->deadline * 0.98 && present.cost_high <= question->budget;
    bool faster = holds && !isfinite(question->deadline) && (double)(first.wanted - running) > 0.15 * (double)running;
    if (first.wanted > running && (!holds || faster))
        assert_true(first.machines > running); /* at once */
    else
        assert_int_equal(first.machines, running); /* fewer never at once, more not where what runs will do */
    if (first.machines != running)
        return;
    control_answer second = control_choose(state, question), third = control_choose(state, question);
    assert_int_equal(second.machines, running);
    bool enough = (double)first.wanted <= 0.85 * (double)running;
    assert_int_equal(third.machines, enough ? first.wanted : running);
}

static void test_every_small_question(void **state)
{
    static const double works[] = {5, 60, 400}, fixeds[] = {0.1, 5}, slopes[] = {0, 2};
    static const double deadlines[] = {30, 200, 600, 1500, 9000, INFINITY}, budgets[] = {0, 0.05, 0.3, 1, 20, INFINITY};
    int64_t questions = 0;
    (void)state;
    for (int shape = 0; shape < 12; shape++) {
        control_option option[MOST];
        fill_options(option, works[shape % 3], fixeds[shape / 3 % 2], slopes[shape / 6]);
        for (int error = 0; error < 2; error++)
            for (int d = 0; d < 6; d++)
                for (int b = 0; b < 6; b++)
                    for (int64_t running = 0; running <= MOST; running++)
                        for (int rounds = 1; rounds <= 100; rounds *= 10) {
                            control_trend trend;
                            control_state fresh = {0};
                            control_trend_init(&trend, error ? 0.4 : 0.05);
                            const control_question question = {.option = option,
                                                               .options = MOST,
                                                               .trend = &trend,
                                                               .course = {.rounds = rounds, .start = 20 * error},
                                                               .running = running,
                                                               .deadline = deadlines[d],
                                                               .budget = budgets[b]};
                            expect_change(&question, &fresh);
                            questions++;
                        }
    }
    assert_int_equal(questions, 12 * 2 * 36 * 7 * 3);
}

static void test_fewer_is_what_three_rounds_agree_on(void **state)
{
    control_option option[MOST];
    control_trend trend;
    control_state memory = {0};
    (void)state;
    fill_options(option, 60, 0.1, 0);
    control_trend_init(&trend, 0.05);
    control_question question = {.option = option,
                                 .options = MOST,
                                 .trend = &trend,
                                 .course = {.rounds = 10},
                                 .running = MOST,
                                 .deadline = 800,
                                 .budget = INFINITY};
    assert_int_equal(control_choose(&memory, &question).wanted, 1);
    question.deadline = 400;
    assert_int_equal(control_choose(&memory, &question).wanted, 2);
    question.deadline = 110; /* needs all: what was agreed so far is void */
    assert_int_equal(control_choose(&memory, &question).machines, MOST);
    question.deadline = 800;
    assert_int_equal(control_choose(&memory, &question).machines, MOST);
    question.deadline = 400;
    assert_int_equal(control_choose(&memory, &question).machines, MOST);
    question.deadline = 800;
    assert_int_equal(control_choose(&memory, &question).machines, 2); /* the most that the three wanted */
    assert_int_equal(memory.changes, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_model_that_is_wrong_is_corrected),
                                       cmocka_unit_test(test_one_slow_round_is_not_believed_but_two_are),
                                       cmocka_unit_test(test_what_machines_do_not_make_faster_is_told_apart),
                                       cmocka_unit_test(test_blind),
                                       cmocka_unit_test(test_every_small_question),
                                       cmocka_unit_test(test_fewer_is_what_three_rounds_agree_on)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
