/* src/engine/store/job_guess.c: when something will be there, and when to ask for it. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "engine/store/job_guess.h"

static void assert_near(double a, double b)
{
    if (!(fabs(a - b) < 1e-9))
        fail_msg("%g is not %g", a, b);
}

static void slow_rounds_do_not_count(void **state)
{
    (void)state;
    job_guess guess = {0};
    assert_near(job_guess_early(&guess), 0);
    job_guess_learn(&guess, 8);
    assert_near(job_guess_early(&guess), 8);
    job_guess_learn(&guess, 0.1); /* one good round after a bad one, or after many, is enough */
    assert_near(job_guess_early(&guess), 0.1);
    for (int i = 0; i < JOB_GUESS_ROUNDS - 1; i++)
        job_guess_learn(&guess, 8);
    assert_near(job_guess_early(&guess), 0.1);
    job_guess_learn(&guess, 8); /* rounds that stay longer are eventually believed */
    assert_near(job_guess_early(&guess), 8);
}

static void the_quickest_is_an_exception(void **state)
{
    (void)state;
    job_guess guess = {0};
    for (int i = 0; i < JOB_GUESS_ROUNDS; i++)
        job_guess_learn(&guess, i == 3 ? 0.9 : 1 + 0.01 * i);
    assert_true(job_guess_early(&guess) > 0.99 && job_guess_early(&guess) < 1.03);
}

/* Each round takes this many seconds; a phase is a letter. */
static void tell(job_trailer *out, const char *phases, const double *seconds)
{
    *out = (job_trailer){0};
    for (int i = 0; phases[i]; i++) {
        out->seconds += seconds[i];
        out->step[out->steps++] = (job_step){.number = i, .seconds = out->seconds, .phase = {phases[i]}};
    }
}

static void rounds_are_told_by_their_phase(void **state)
{
    (void)state;
    job_trailer trailer;
    tell(&trailer, "aabab", (double[]){9, 1, 5, 3, 7});
    assert_near(job_guess_rounds(&trailer, "a").early, 1); /* the first has nothing before it */
    assert_near(job_guess_rounds(&trailer, "a").usual, 3);
    assert_near(job_guess_rounds(&trailer, "b").early, 5);
    assert_near(job_guess_rounds(&trailer, "c").early, 0);
    assert_near(job_guess_rounds(&trailer, "c").usual, 0);
}

static void a_history_that_lies_is_left_out(void **state)
{
    (void)state;
    job_trailer trailer;
    tell(&trailer, "aaaaaa", (double[]){1, NAN, -5, INFINITY, 2, 2});
    assert_near(job_guess_rounds(&trailer, "a").early, 0);
    tell(&trailer, "aaaa", (double[]){1, -5, 2, 3});
    assert_near(job_guess_rounds(&trailer, "a").early, 2);
    trailer.step[3].number = 77; /* some are missing in between */
    assert_near(job_guess_rounds(&trailer, "a").early, 2);
    trailer.step[2].number = 78;
    assert_near(job_guess_rounds(&trailer, "a").early, 0);
}

static void what_is_said_is_bounded_by_what_was_seen(void **state)
{
    (void)state;
    assert_near(job_guess_between(0.5, -1, 3), 0.5); /* it had been there for long */
    assert_near(job_guess_between(0.5, 2, 3), 2);
    assert_near(job_guess_between(9, 2, 3), 3);
    assert_near(job_guess_between(-9, 2, 3), 3);
    assert_near(job_guess_between(NAN, 2, 3), 3);
    assert_near(job_guess_between(-INFINITY, -1, 3), 3);
}

static void a_stopped_process_does_not_make_trips_long(void **state)
{
    (void)state;
    double trip = job_guess_trip(0, 0.01, false);
    assert_near(trip, 0.01);
    assert_true(job_guess_trip(trip, 60, false) < 0.02);
    assert_near(job_guess_trip(trip, 60, true), trip); /* bytes came with it */
    for (int i = 0; i < 40; i++)
        trip = job_guess_trip(trip, 0.2, false); /* a store that is slow is found out */
    assert_true(trip > 0.19);
    assert_near(job_guess_trip(trip, 0.01, true), 0.01); /* and at once when it is not any more */
}

/* How often, and how late, something that comes at `there` is asked for when it may come at `early`. */
static int ask_until(double *late, double early, double there, double trip)
{
    job_asking asking = {.early = early, .trip = trip, .first = -1, .asked = -1};
    int asked = 0;
    do {
        double next = job_guess_ask(&asking);
        assert_true(asked == 0 || next > asking.asked);
        asking.now = asking.elapsed = asking.asked = next;
        asking.first = asking.first < 0 ? next : asking.first;
        asked++;
    } while (asking.asked + trip / 2 < there - 1e-12);
    *late = asking.asked + trip / 2 - there;
    return asked;
}

static void asking_is_soon_enough_and_not_often(void **state)
{
    (void)state;
    static const double trips[] = {0.001, 0.01, 0.2};
    double late;
    for (int t = 0; t < 3; t++) {
        double trip = trips[t];
        assert_int_equal(ask_until(&late, 1, 1, trip), 1); /* as expected */
        assert_true(late < 1e-9);
        for (double there = 1; there < 3000; there *= 1.37) {
            int asked = ask_until(&late, 1, there, trip);
            double excess = there - 1, pause = fmax(fmax(1.5 * trip, 0.02 * there), 0.3 * excess);
            assert_true(late <= fmin(pause * 1.31, 2) + 1e-9);
            assert_true(asked <= 40 + there / 2);
        }
        /* What comes earlier than it may is found when it may be there: and then the next guess knows. */
        assert_int_equal(ask_until(&late, 1, 0.1, trip), 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slow_rounds_do_not_count),
        cmocka_unit_test(the_quickest_is_an_exception),
        cmocka_unit_test(rounds_are_told_by_their_phase),
        cmocka_unit_test(a_history_that_lies_is_left_out),
        cmocka_unit_test(what_is_said_is_bounded_by_what_was_seen),
        cmocka_unit_test(a_stopped_process_does_not_make_trips_long),
        cmocka_unit_test(asking_is_soon_enough_and_not_often),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
