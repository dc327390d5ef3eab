/* src/plan/make.c, words.c: a plan from a request of the library, with and without somebody who measures; what is
 * missing is told, and every allocation may fail. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <shoal/error.h>
#include <shoal/kmeans.h>

#include "base/memory.h"
#include "plan/plan.h"

static int probes, learners, notes;
static const int no_stop;

/* A probe that comes to nothing, as of a learner that is too slow for it. */
static int probe_nothing(shoal_pace *pace, int *paces, double *thread_loss, const plan_probe *what)
{
    (void)pace, (void)thread_loss;
    assert_ptr_equal(what->algorithm, &shoal_kmeans);
    *paces = 0;
    probes++;
    return shoal_fail(SHOAL_ABSENT, "nothing");
}

static int measure(shoal_pace *pace, int *paces, double *thread_loss, const shoal_algorithm *algorithm, double seconds,
                   const volatile int *stop)
{
    static const char *const phases[] = {"scan", "seed", "run", "label"};
    assert_true(seconds > 0 && stop == &no_stop);
    for (*paces = 0; *paces < 4; ++*paces) {
        pace[*paces] = (shoal_pace){.operation = 1e-10};
        snprintf(pace[*paces].learner, sizeof pace->learner, "%s", algorithm->name);
        snprintf(pace[*paces].phase, sizeof pace->phase, "%s", phases[*paces]);
    }
    *thread_loss = 0;
    learners++;
    return SHOAL_OK;
}

static void note(const char *text)
{
    assert_non_null(strstr(text, "measuring kmeans"));
    notes++;
}

static shoal_kmeans_config config;
static int64_t numbers[] = {1, 2, 4, 8, 16, 32};

static plan_request usual(void)
{
    config = (shoal_kmeans_config){0};
    assert_int_equal(shoal_options_default(&config, shoal_kmeans.options), SHOAL_OK);
    config.k = 100;
    return (plan_request){.algorithm = &shoal_kmeans,
                          .config = &config,
                          .shape = {.rows = 10000000, .columns = 64, .type = SHOAL_FLOAT32},
                          .source = -1,
                          .workers = {.number = numbers, .count = 6},
                          .price = NAN,
                          .losses = NAN,
                          .start = NAN,
                          .straggle = NAN,
                          .speed = 1,
                          .billed = 1,
                          .replace = 30,
                          .flops = 1e10,
                          .meter = {probe_nothing, measure, NULL, note, &no_stop}};
}

static void told_constants_need_nobody_who_measures(void **state)
{
    (void)state;
    plan *plan = NULL;
    char text[320];
    plan_request request = usual();
    probes = learners = 0;
    assert_int_equal(plan_make(&plan, &request), SHOAL_OK);
    assert_int_equal(plan->choice.options, 6);
    assert_true(plan->best == &plan->choice.option[plan->choice.best] && plan->best->estimate.seconds > 0);
    assert_true(!plan->priced && !plan->probed && !plan->site_measured && probes + learners == 0);
    assert_string_equal(plan->store, "s3");
    assert_non_null(strstr(plan->assumed, "of unknown price"));
    plan_tell_why(text, sizeof text, plan);
    assert_string_equal(text, "the fastest of 6");
    plan_describe(text, sizeof text, plan, plan->best, false);
    assert_non_null(strstr(text, " workers, "));
    plan_free(&plan);
    plan_free(&plan);
}

static void this_machine_is_planned_where_nothing_is_said_of_workers(void **state)
{
    (void)state;
    plan *plan = NULL;
    char text[320];
    plan_request request = usual();
    request.here = request.workers.local = true;
    request.workers.number = NULL;
    request.workers.count = 0;
    request.shape.rows = 5000;
    request.threads = 3;
    assert_int_equal(plan_make(&plan, &request), SHOAL_OK);
    const plan_choice *choice = &plan->choice;
    bool given = false;
    int64_t alone = 0;
    for (; alone < choice->options && choice->option[alone].alone; alone++) {
        const plan_option *option = &choice->option[alone];
        assert_int_equal(option->workers, 1);
        assert_true(option->estimate.start > 0 && option->estimate.publish == 0 && option->fits);
        assert_true(option->threads == 1 || option->threads > option[-1].threads);
        given |= option->threads == 3;
    }
    assert_true(given && alone >= 2 && alone < choice->options && plan->usual == 3);
    assert_int_equal(choice->option[alone].workers, 2);
    assert_string_equal(plan->store, "dir");
    assert_true(plan->best->alone && plan->alone.threads == 0);
    plan_tell_why(text, sizeof text, plan);
    assert_non_null(strstr(text, "threads here are fastest; "));
    plan_describe(text, sizeof text, plan, plan->best, false);
    assert_non_null(strstr(text, " threads, "));
    plan_free(&plan);
}

static plan *plan_here(double (*busy)(double seconds))
{
    plan *plan = NULL;
    static plan_request request;
    request = usual();
    request.here = request.workers.local = true;
    request.workers.number = NULL;
    request.workers.count = 0;
    request.shape.rows = 5000;
    request.meter.busy = busy;
    assert_int_equal(plan_make(&plan, &request), SHOAL_OK);
    return plan;
}

/* Whole programs are compared, so that a run with one thread is as fast as itself. */
static void speedups_here_are_against_one_thread(void **state)
{
    (void)state;
    plan *plan = plan_here(NULL);
    const plan_choice *choice = &plan->choice;
    const double one = choice->option[0].estimate.seconds;
    assert_true(choice->option[0].threads == 1 && choice->option[0].estimate.start > 0);
    for (int64_t i = 0; i < choice->options; i++) {
        const shoal_estimate *estimate = &choice->option[i].estimate;
        double threads = estimate->units * fmin((double)choice->option[i].threads, plan->question.crew.cores);
        assert_true(fabs(estimate->speedup - one / estimate->seconds) < 1e-9);
        assert_true(fabs(estimate->efficiency - estimate->speedup / threads) < 1e-9);
    }
    assert_true(fabs(choice->option[0].estimate.speedup - 1) < 1e-9);
    assert_true(fabs(choice->option[0].estimate.efficiency - 1) < 1e-9);
    plan_free(&plan);
}

static double busy_by_four_fifths(double seconds)
{
    assert_true(seconds > 0);
    return 0.8;
}

static double hardly_busy(double seconds)
{
    (void)seconds;
    return 0.05;
}

static void a_busy_machine_moves_upper_limits(void **state)
{
    (void)state;
    plan *idle = plan_here(hardly_busy), *busy = plan_here(busy_by_four_fifths);
    assert_true(idle->busy == 0 && busy->busy == 0.8);
    for (int64_t i = 0; i < idle->choice.options; i++) {
        const shoal_estimate *a = &idle->choice.option[i].estimate, *b = &busy->choice.option[i].estimate;
        assert_true(a->seconds == b->seconds && a->low == b->low && b->high > 20 * a->high);
    }
    plan_free(&idle);
    plan_free(&busy);
    plan_request request = usual(); /* other machines */
    request.meter.busy = busy_by_four_fifths;
    assert_int_equal(plan_make(&busy, &request), SHOAL_OK);
    assert_true(busy->busy == 0);
    plan_free(&busy);
}

static void that_no_workers_would_be_faster_is_told(void **state)
{
    (void)state;
    plan *plan = NULL;
    plan_request request = usual();
    request.shape.rows = 5000;
    assert_int_equal(plan_make(&plan, &request), SHOAL_OK);
    assert_true(plan->alone.alone && plan->alone.estimate.seconds < plan->best->estimate.seconds);
    plan_free(&plan);
    request.shape.rows = 1000000000; /* much work, and more rows than fit here */
    request.shape.columns = 100000;
    assert_int_equal(plan_make(&plan, &request), SHOAL_OK);
    assert_int_equal(plan->alone.threads, 0);
    plan_free(&plan);
}

static void what_nobody_kept_is_measured(void **state)
{
    (void)state;
    plan *plan = NULL;
    plan_request request = usual();
    probes = learners = notes = 0;
    request.flops = 0;
    assert_int_equal(plan_make(&plan, &request), SHOAL_OK);
    assert_true(probes == 1 && learners == 1 && notes == 1 && plan->measured_now && !plan->probed);
    plan_free(&plan);
    request.no_probe = true;
    assert_int_equal(plan_make(&plan, &request), SHOAL_OK);
    assert_true(probes == 1 && learners == 2);
    plan_free(&plan);
}

static void machines_of_a_table_are_compared(void **state)
{
    (void)state;
    plan *plan = NULL;
    char text[320];
    plan_request request = usual();
    request.machines = "aws:us-east-1/c7i.*";
    request.deadline = 86400;
    assert_int_equal(plan_make(&plan, &request), SHOAL_OK);
    assert_true(plan->priced && plan->best->machine && plan->best->estimate.cost > 0);
    assert_true(plan_is_one_place(&plan->choice));
    plan_tell_why(text, sizeof text, plan);
    assert_non_null(strstr(text, "the cheapest of "));
    plan_free(&plan);
    request.budget = 1e-9;
    assert_int_equal(plan_make(&plan, &request), SHOAL_INVALID);
    assert_null(plan);
    assert_non_null(strstr(shoal_error(), "--budget: nothing meets "));
    request.machines = "aws:us-east-1/none";
    assert_int_equal(plan_make(&plan, &request), SHOAL_USAGE);
}

static void the_paper_has_its_own_best(void **state)
{
    (void)state;
    plan *plan = NULL;
    plan_request request = usual();
    request.shape = (shoal_shape){.rows = 500000, .columns = 1000, .type = SHOAL_FLOAT32};
    request.by_paper = true;
    request.clusters = 1000;
    request.iterations = 10;
    request.flops = 669e6;
    request.bandwidth = 8e6;
    assert_int_equal(plan_make(&plan, &request), SHOAL_OK);
    assert_true(plan->best == &plan->optimum && fabs((double)plan->best->workers - plan->formula) <= 0.5);
    plan_free(&plan);
    request.deadline = 1e9; /* something else is wanted of it */
    assert_int_equal(plan_make(&plan, &request), SHOAL_OK);
    assert_true(plan->best != &plan->optimum);
    plan_free(&plan);
}

static void what_is_missing_is_told(void **state)
{
    (void)state;
    plan *plan = NULL;
    plan_request request = usual();
    request.shape.rows = 0;
    assert_int_equal(plan_make(&plan, &request), SHOAL_USAGE);
    assert_string_equal(shoal_error(), "the size of the data is unknown: give DATA, or --rows and --cols");
    request.shape.rows = 5;
    request.path = "x.npy";
    assert_int_equal(plan_make(&plan, &request), SHOAL_USAGE);
    request = usual();
    request.machines = "a.csv";
    request.prices = "b.csv";
    assert_int_equal(plan_make(&plan, &request), SHOAL_USAGE);
    assert_null(plan);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    plan_request request = usual();
    int status = SHOAL_MEMORY;
    request.machines = "aws:us-east-1/c7i.*";
    for (int64_t n = 0; status != SHOAL_OK; n++) {
        plan *plan = NULL;
        base_memory_fail_after(n);
        status = plan_make(&plan, &request);
        base_memory_fail_after(-1);
        assert_true(status == SHOAL_OK || status == SHOAL_MEMORY);
        assert_true((plan != NULL) == (status == SHOAL_OK));
        plan_free(&plan);
    }
}

static int use_no_calibration(void **state)
{
    (void)state;
    return setenv("XDG_CONFIG_HOME", "/nowhere", 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(told_constants_need_nobody_who_measures),
        cmocka_unit_test(this_machine_is_planned_where_nothing_is_said_of_workers),
        cmocka_unit_test(that_no_workers_would_be_faster_is_told),
        cmocka_unit_test(speedups_here_are_against_one_thread),
        cmocka_unit_test(a_busy_machine_moves_upper_limits),
        cmocka_unit_test(what_nobody_kept_is_measured),
        cmocka_unit_test(machines_of_a_table_are_compared),
        cmocka_unit_test(the_paper_has_its_own_best),
        cmocka_unit_test(what_is_missing_is_told),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, use_no_calibration, NULL);
}
