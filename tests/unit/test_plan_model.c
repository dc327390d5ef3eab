/* src/plan/model.c, tree.c, straggle.c, choose.c: limits that are known in closed form, what must not get worse, and
 * what is refused. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "engine/store/job_tree.h"
#include "plan/choose.h"
#include "plan/straggle.h"
#include "plan/tree.h"

/* ---- a run to change --------------------------------------------------------------------------------------------- */

static const shoal_cost cost = {.phases = 2,
                                .memo_row_bytes = 12,
                                .model_bytes = 8e6,
                                .partial_bytes = 8e6,
                                .phase = {{.name = "scan", .rounds = 2, .model_bytes = 1000, .partial_bytes = 2000},
                                          {.name = "run",
                                           .rounds = 10,
                                           .operations_per_row = 3e6,
                                           .model_bytes = 8e6,
                                           .partial_bytes = 8e6,
                                           .row_bytes = 4}}};
static const shoal_pace paces[] = {{.learner = "other", .phase = "run", .operation = 99},
                                   {.learner = "kmeans", .phase = "scan", .value = 1e-9, .round = 1e-4},
                                   {.learner = "kmeans",
                                    .phase = "run",
                                    .value = 1e-9,
                                    .operation = 1e-9,
                                    .round = 1e-3,
                                    .model_byte = 1e-10,
                                    .rounds = 5}};
enum { PACES = 3 };

typedef struct run {
    shoal_plan_job job;
    shoal_site site;
    shoal_plan_crew crew;
} run;

static run usual(int64_t workers)
{
    return (run){
        .job =
            {.cost = &cost, .learner = "kmeans", .rows = 1e6, .columns = 100, .value_bytes = 4, .known_rounds = true},
        .site = {.get = 0.02,
                 .put = 0.03,
                 .wait = 0.01,
                 .read = 50e6,
                 .write = 40e6,
                 .connections = 4,
                 .account = 1e9,
                 .get_price = 4e-7,
                 .put_price = 5e-6,
                 .straggle = 0.1,
                 .error = 0.1,
                 .requests_per_second = 2},
        .crew = {.workers = workers, .threads = 2, .cores = 2, .dollars_per_hour = 0.1}};
}

static shoal_estimate estimate(const run *run)
{
    shoal_estimate out;
    int status = shoal_plan_estimate(&out, &run->job, &run->site, paces, PACES, &run->crew);
    if (status != SHOAL_OK)
        fail_msg("%s", shoal_error());
    return out;
}

static void assert_near(double found, double wanted, double share)
{
    if (!(fabs(found - wanted) <= share * fabs(wanted)))
        fail_msg("%.12g is not %.12g", found, wanted);
}

/* ---- the slowest ------------------------------------------------------------------------------------------------- */

static void test_normal(void **state)
{
    (void)state;
    assert_near(plan_normal_above(0.025), 1.959963984540054, 1e-12);
    assert_near(plan_normal_above(0.975), -1.959963984540054, 1e-12);
    assert_true(fabs(plan_normal_above(0.5)) < 1e-12);
    assert_near(plan_normal_above(1e-20), 9.262340089798408, 1e-10);
}

/* The mean of the greatest of n by its definition: the integral over x of 1 - F(x)^n, F the distribution of exp(s z -
 * s^2/2). */
static double mean_by_definition(double count, double deviation)
{
    double sum = 0, step = 1e-4;
    for (double x = step / 2; x < 12; x += step) {
        double z = (log(x) + deviation * deviation / 2) / deviation;
        sum += step * -expm1(count * log1p(-0.5 * erfc(z / M_SQRT2)));
    }
    return sum;
}

static void test_slowest(void **state)
{
    (void)state;
    assert_true(plan_slowest_of(1, 0.3).mean == 1);
    assert_near(plan_slowest_of(1, 0.3).deviation, sqrt(expm1(0.09)), 1e-12);
    assert_true(plan_slowest_of(100, 0).mean == 1 && plan_slowest_of(100, 0).deviation == 0);
    static const double counts[] = {2, 10, 160, 5000}, deviations[] = {0.05, 0.2, 0.4};
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 3; j++)
            assert_near(plan_slowest_of(counts[i], deviations[j]).mean, mean_by_definition(counts[i], deviations[j]),
                        1e-3);
}

/* ---- times ------------------------------------------------------------------------------------------------------- */

/* One process without a store: rounds, each with its update and all rows on two threads that lose nothing. */
static void test_alone(void **state)
{
    run run = usual(1);
    (void)state;
    run.crew.alone = true;
    run.site.straggle = 0;
    double scan = 2 * (1e-4 + 1e6 * 100e-9 / 2), rounds = 10 * (1e-3 + 1e-10 * 8e6 + 1e6 * (100e-9 + 3e-3) / 2);
    shoal_estimate found = estimate(&run);
    assert_near(found.seconds, scan + rounds, 1e-12);
    assert_int_equal(found.phases, 2);
    assert_near(found.phase[0].seconds, scan, 1e-12);
    assert_near(found.phase[1].seconds, rounds, 1e-12);
    assert_true(found.requests == 0 && found.request_price == 0);
    /* Threads that lose a tenth; cores of half the speed; rounds that end earlier than expected. */
    run.site.thread_loss = 0.1;
    assert_near(estimate(&run).map, found.map * 1.1, 1e-12);
    run.site.thread_loss = 0;
    run.crew.speed = 0.5;
    assert_near(estimate(&run).seconds, 2 * found.seconds, 1e-12);
    run.crew.speed = 1;
    run.job.known_rounds = false;
    assert_near(estimate(&run).seconds, scan + rounds / 2, 1e-12);
}

/* A store that costs nothing: twice the workers, half the map; efficiency 1. */
static void test_free_store(void **state)
{
    static const shoal_pace plain[] = {{.learner = "kmeans", .phase = "run", .operation = 1e-9}};
    static const shoal_cost only = {.operations_per_row = 3e6, .rounds = 10};
    run run = usual(1);
    shoal_estimate out;
    (void)state;
    run.job.cost = &only;
    run.job.rows = 1e9;
    run.job.slices = 16384;
    run.site = (shoal_site){.read = 1e9, .write = 1e9, .connections = 1};
    run.job.source = SHOAL_PLAN_GENERATED;
    for (run.crew.workers = 1; run.crew.workers <= 4096; run.crew.workers *= 4) {
        assert_int_equal(shoal_plan_estimate(&out, &run.job, &run.site, plain, 1, &run.crew), SHOAL_OK);
        assert_near(out.speedup, 2 * (double)run.crew.workers, 1e-12);
        assert_near(out.efficiency, 1, 1e-12);
    }
}

/* Workers of one machine share its cores. */
static void test_shared_machine(void **state)
{
    run own = usual(8), shared = usual(8);
    (void)state;
    shared.crew.machines = 1;
    shared.crew.threads = 1;
    assert_near(estimate(&shared).map, 8 * estimate(&own).map, 1e-12);
    shared.crew.workers = 1;
    shared.crew.threads = 2;
    assert_near(estimate(&shared).map, 8 * estimate(&own).map, 1e-12);
}

/* No more workers have something to do than there are grains, nor more threads. */
static void test_few_rows(void **state)
{
    run few = usual(30), many = usual(1000);
    (void)state;
    few.job.rows = many.job.rows = 252 * 40;
    few.site.straggle = many.site.straggle = 0;
    shoal_estimate alone = estimate(&few);
    double row = 10 * (100e-9 + 3e-3) + 2 * 100e-9;
    assert_near(alone.map, 2 * 252 * row / 2, 1e-12); /* some have two of them, one for each thread */
    assert_near(estimate(&many).map, 252 * row, 1e-12);
    few.job.grains = 10;
    assert_near(estimate(&few).map, 1008 * row, 1e-12);
}

/* One worker by itself puts its models while it maps the next round. */
static void test_one_worker(void **state)
{
    run run = usual(1);
    (void)state;
    run.site.sync = run.site.crowd = 5;
    shoal_estimate found = estimate(&run);
    assert_true(found.publish == 0 && found.reduce == 0);
    run.site.write = 1e3; /* 8 MB take longer than the rows do, which take 1500.05 s: the difference is left */
    assert_near(estimate(&run).publish, 10 * (0.03 + 8e6 / 4e3 - 1500.05) + 2 * (0.03 + 1e3 / 4e3 - 0.05), 1e-9);
}

/* What is kept is written once a round by one of them. */
static void test_kept(void **state)
{
    run run = usual(8);
    shoal_cost keeping = cost;
    (void)state;
    keeping.phase[1].kept_bytes = 4e6;
    shoal_estimate before = estimate(&run);
    run.job.cost = &keeping;
    assert_near(estimate(&run).publish - before.publish, 10 * (0.03 + 4e6 / 160e6), 1e-9);
}

static void test_nothing_gets_worse(void **state)
{
    (void)state;
    for (int64_t workers = 1; workers <= 1024; workers *= 2) {
        double base = 0;
        for (int change = 0; change <= 10; change++) {
            run run = usual(workers);
            switch (change) {
            case 1: run.site.get *= 2; break;
            case 2: run.site.put *= 2; break;
            case 3: run.site.wait *= 2; break;
            case 4: run.site.read /= 2; break;
            case 5: run.site.write /= 2; break;
            case 6: run.site.account /= 8; break;
            case 7: run.site.connections = 1; break;
            case 8: run.site.straggle *= 2; break;
            case 9:
                run.crew.losses = 0.01;
                run.crew.replace = 30;
                break;
            case 10: run.crew.start = 60; break;
            default: break;
            }
            shoal_estimate found = estimate(&run);
            assert_true(found.low < found.seconds && found.seconds < found.high);
            double parts = found.start + found.load + found.map + found.straggle + found.reduce + found.update +
                           found.publish + found.lost;
            assert_near(parts, found.seconds, 1e-9);
            if (change == 0)
                base = found.seconds;
            else if (found.seconds < base)
                fail_msg("%lld workers: change %d makes %g s of %g", (long long)workers, change, found.seconds, base);
        }
    }
}

/* What all of them read at once is shared; with more workers the account is what holds them up, and there is a best
 * number. */
static void test_account(void **state)
{
    double least = INFINITY, last = 0;
    int64_t best = 0;
    (void)state;
    for (int64_t workers = 1; workers <= 2000; workers++) {
        run run = usual(workers);
        last = estimate(&run).seconds;
        if (last < least) {
            least = last;
            best = workers;
        }
    }
    assert_true(best > 10 && best < 1500);
    assert_true(last > 1.2 * least);
}

static void test_losses(void **state)
{
    run run = usual(10);
    (void)state;
    run.site.straggle = 0;
    shoal_estimate calm = estimate(&run);
    run.crew.losses = 0.5;
    run.crew.replace = 20;
    double delay = 20 + calm.map / 12 + calm.load, share = 10 * 0.5 / 3600 * delay;
    assert_near(estimate(&run).seconds, calm.seconds / (1 - share), 1e-12);
    assert_true(estimate(&run).high / estimate(&run).seconds > calm.high / calm.seconds);
    run.crew.losses = 1000;
    shoal_estimate never = estimate(&run);
    assert_true(isinf(never.seconds) && isinf(never.high) && never.speedup == 0);
}

static void test_money(void **state)
{
    run run = usual(10);
    (void)state;
    shoal_estimate found = estimate(&run);
    assert_near(found.cost, 10 * found.seconds / 3600 * 0.1 + found.request_price, 1e-12);
    assert_true(found.request_price > 0 && found.requests > 12 * 20);
    run.crew.billed = 3600;
    assert_near(estimate(&run).cost, 10 * ceil(found.seconds / 3600) * 0.1 + found.request_price, 1e-12);
    run.crew.billed = 0;
    run.crew.machines = 2;
    found = estimate(&run);
    assert_near(found.cost, 2 * found.seconds / 3600 * 0.1 + found.request_price, 1e-12);
}

/* ---- trees ------------------------------------------------------------------------------------------------------- */

static plan_tree tree(run run, const char *reduce)
{
    plan_tree out;
    run.job.reduce = reduce;
    assert_int_equal(plan_tree_make(&out, &run.job, &run.site, &run.crew), SHOAL_OK);
    return out;
}

static void test_trees(void **state)
{
    run paper = usual(100);
    (void)state;
    paper.job.split_roles = true;
    paper.job.slices = -1;
    plan_tree two = tree(paper, "two-level");
    assert_true(two.slices == 100 && two.put_by_mapper == 1 && two.levels == 2);
    assert_true(two.level[0].parents == 10 && two.level[0].fetched == 10);
    assert_true(two.level[1].parents == 1 && two.level[1].fetched == 10);
    plan_tree flat = tree(paper, "flat");
    assert_true(flat.levels == 1 && flat.level[0].fetched == 100);
    plan_tree binary = tree(paper, "tree:2");
    assert_true(binary.levels == 7 && binary.level[6].parents == 1 && binary.level[0].parents == 50);
    /* Everyone does everything: what a worker made itself is not fetched. */
    run usual_run = usual(8);
    plan_tree own = tree(usual_run, "flat");
    assert_true(own.slices == 32 && own.put_by_mapper == 4 && own.level[0].fetched == 28);
    /* A store that wakes: each thread merges its two slices first. */
    usual_run.site.requests_per_second = 0;
    usual_run.crew.threads = 1;
    plan_tree woken = tree(usual_run, "auto");
    assert_true(woken.slices == 16 && woken.pieces == 8 && woken.level[0].fetched == 7 && woken.put_by_mapper == 1);
    /* One worker exchanges nothing. */
    assert_true(tree(usual(1), "auto").put_by_mapper == 0 && tree(usual(1), "auto").level[0].fetched == 0);
    run wrong = usual(3);
    plan_tree out;
    static const char *const none[] = {"tree:1", "tree:",   "tree:2x",  "tree:-3",    "tree:8e3", "star",
                                       "",       "ranged:", "ranged:1", "ranged:257", "rangedx"};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        wrong.job.reduce = none[i];
        assert_int_equal(plan_tree_make(&out, &wrong.job, &wrong.site, &wrong.crew), SHOAL_USAGE);
    }
}

/* The levels of a tree are those of jobs' own; nothing is left out where those who map do not reduce. */
static void test_trees_of_jobs(void **state)
{
    static const char *const shapes[] = {"flat",   "two-level", "auto",    "ranged",
                                         "tree:2", "tree:3",    "tree:08", "tree:70000000000"};
    (void)state;
    for (size_t shape = 0; shape < sizeof shapes / sizeof shapes[0]; shape++)
        for (int64_t slices = 1; slices <= 300; slices++) {
            run run = usual(100);
            job_tree jobs;
            run.job.split_roles = true;
            run.job.slices = (double)slices;
            plan_tree found = tree(run, shapes[shape]);
            assert_int_equal(job_tree_choose(&jobs, shapes[shape], slices), SHOAL_OK);
            assert_int_equal(found.levels, jobs.levels - 1);
            for (int level = 0; level < found.levels; level++) {
                assert_true(found.level[level].parents == (double)jobs.count[level + 1]);
                assert_true(found.level[level].fetched == (double)jobs.fan[level]);
            }
        }
}

/* In ranges everyone merges as much: 100 slices make ten groups, and these ten ranges. */
static void test_ranges(void **state)
{
    (void)state;
    run run = usual(100);
    run.job.slices = 100;
    plan_tree whole = tree(run, "ranged");
    assert_true(whole.ranges == 10 && whole.range_bytes == 65536);
    plan_tree cut = plan_tree_cut(&whole, &run.job, &run.crew);
    assert_int_equal(cut.levels, 3);
    assert_true(cut.put_by_mapper == 1);
    static const double parents[] = {100, 10, 1}, makers[] = {100, 10, 1}, fetched[] = {9, 9, 9};
    for (int level = 0; level < 3; level++) {
        assert_true(cut.level[level].parents == parents[level] && cut.level[level].makers == makers[level]);
        assert_true(cut.level[level].fetched == fetched[level] && cut.level[level].part == 0.1);
    }
    assert_true(tree(run, "ranged:3").ranges == 3 && tree(run, "two-level").ranges == 0);
}

/* Few workers with many slices merge their own first, and put what is left. */
static void test_own_groups(void **state)
{
    run run = usual(4);
    (void)state;
    run.job.slices = 64;
    plan_tree two = tree(run, "two-level");
    assert_true(two.levels == 1 && two.pieces == 8 && two.put_by_mapper == 2 && two.level[0].fetched == 6);
}

/* ---- refusing ---------------------------------------------------------------------------------------------------- */

static void refuses(const run *run, const char *word)
{
    shoal_estimate out;
    assert_int_equal(shoal_plan_estimate(&out, &run->job, &run->site, paces, PACES, &run->crew), SHOAL_USAGE);
    if (!strstr(shoal_error(), word))
        fail_msg("'%s' does not name %s", shoal_error(), word);
}

static void test_refuses(void **state)
{
    static const shoal_cost unknown = {0};
    (void)state;
    run run = usual(4);
    run.job.rows = -1;
    refuses(&run, "--rows");
    run = usual(4);
    run.job.rows = 1e30;
    refuses(&run, "--rows");
    run = usual(4);
    run.job.columns = NAN;
    refuses(&run, "--cols");
    run = usual(0);
    refuses(&run, "--workers");
    run = usual(4);
    run.site.read = 0;
    refuses(&run, "--bandwidth");
    run = usual(4);
    run.job.cost = &unknown;
    refuses(&run, "does not report its cost");
    run = usual(4);
    run.job.learner = "logistic";
    refuses(&run, "shoal calibrate --learner logistic");
    run.job.learner = NULL;
    refuses(&run, "learner");
}

/* ---- choosing ---------------------------------------------------------------------------------------------------- */

static void test_choosing(void **state)
{
    static const int64_t workers[] = {1, 4, 16, 64, 256, 1024};
    plan_machine machine[] = {
        {.name = "small", .vcpus = 2, .memory_gib = 4, .dollars_per_hour = 0.1, .dollars_spot = 0.03, .speed = 1},
        {.name = "large", .vcpus = 16, .memory_gib = 32, .dollars_per_hour = 0.9, .dollars_spot = NAN, .speed = 1},
        {.name = "tiny", .vcpus = 1, .memory_gib = 0.02, .dollars_per_hour = 0.001, .speed = 1}};
    const plan_machine *list[] = {&machine[0], &machine[1], &machine[2]};
    plan_selection machines = {.machine = list, .machines = 3};
    run run = usual(1);
    plan_question question = {.job = run.job,
                              .site = run.site,
                              .pace = paces,
                              .paces = PACES,
                              .crew = run.crew,
                              .workers = workers,
                              .workers_count = 6,
                              .machines = &machines};
    plan_choice choice;
    (void)state;
    assert_int_equal(plan_choose(&choice, &question), SHOAL_OK);
    assert_int_equal(choice.options, 18);
    assert_int_equal(choice.best, choice.fastest);
    double fastest = choice.option[choice.fastest].estimate.high,
           cheapest = choice.option[choice.cheapest].estimate.cost;
    for (int64_t i = 0; i < choice.options; i++) {
        const plan_option *a = &choice.option[i];
        bool beaten = false;
        assert_true(a->fits == (a->machine != &machine[2] || a->memory <= 0.85 * 0.02 * 1073741824.0));
        for (int64_t j = 0; j < choice.options; j++) {
            const plan_option *b = &choice.option[j];
            beaten |=
                b->fits && j != i && b->estimate.seconds <= a->estimate.seconds && b->estimate.cost <= a->estimate.cost;
        }
        assert_int_equal(a->front, a->fits && !beaten);
        if (a->fits)
            assert_true(a->estimate.cost >= cheapest);
    }
    plan_choice_free(&choice);

    question.deadline = 2 * fastest;
    assert_int_equal(plan_choose(&choice, &question), SHOAL_OK);
    assert_int_equal(choice.goal, PLAN_GOAL_COST);
    for (int64_t i = 0; i < choice.options; i++)
        if (choice.option[i].fits && choice.option[i].estimate.high <= question.deadline)
            assert_true(choice.option[i].estimate.cost >= choice.option[choice.best].estimate.cost);
    assert_true(choice.option[choice.best].estimate.high <= question.deadline);
    plan_choice_free(&choice);

    question.deadline = fastest / 2;
    assert_int_equal(plan_choose(&choice, &question), SHOAL_OK);
    assert_true(choice.best == -1 && choice.fastest >= 0 && choice.cheapest >= 0);
    plan_choice_free(&choice);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_normal),         cmocka_unit_test(test_slowest),
                                       cmocka_unit_test(test_alone),          cmocka_unit_test(test_free_store),
                                       cmocka_unit_test(test_shared_machine), cmocka_unit_test(test_nothing_gets_worse),
                                       cmocka_unit_test(test_account),        cmocka_unit_test(test_losses),
                                       cmocka_unit_test(test_money),          cmocka_unit_test(test_trees),
                                       cmocka_unit_test(test_refuses),        cmocka_unit_test(test_choosing),
                                       cmocka_unit_test(test_few_rows),       cmocka_unit_test(test_one_worker),
                                       cmocka_unit_test(test_kept),           cmocka_unit_test(test_trees_of_jobs),
                                       cmocka_unit_test(test_ranges),         cmocka_unit_test(test_own_groups)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
