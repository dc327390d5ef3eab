/* bench/plan/search_table.c and search_replay.c: tables of runs are read by the names of their columns, wrong ones are
 * refused by line, and scores are what can be counted by hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <shoal/error.h>

#include "../../bench/plan/search_replay.h"
#include "base/memory.h"

static plan_machine machines[] = {
    {.cloud = "a", .region = "r", .name = "small", .vcpus = 2, .memory_gib = 4, .dollars_per_hour = 0.1, .line = 2},
    {.cloud = "a", .region = "r", .name = "large", .vcpus = 8, .memory_gib = 64, .dollars_per_hour = 0.5, .line = 3},
    {.cloud = "a", .region = "r", .name = "twice", .vcpus = 8, .memory_gib = 64, .dollars_per_hour = 0.5, .line = 4},
    {.cloud = "a", .region = "s", .name = "twice", .vcpus = 8, .memory_gib = 64, .dollars_per_hour = 0.5, .line = 5},
    {.cloud = "a", .region = "s", .name = "spot", .vcpus = 8, .memory_gib = 64, .dollars_per_hour = NAN, .line = 6},
};
static const plan_prices prices = {.name = "prices.csv", .machine = machines, .machines = 5};

static char path[64];

static int read_text(plan_table **out, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    assert_int_equal(fclose(file), 0);
    return plan_table_read(out, path, &prices);
}

static int make_path(void **state)
{
    (void)state;
    snprintf(path, sizeof path, "/tmp/test_plan_replay-%ld.csv", (long)getpid());
    return 0;
}

static int remove_path(void **state)
{
    (void)state;
    unlink(path);
    return 0;
}

static const char *const good = "elapsed_time, vm ,nodes,workload,framework,input,run,completed,more\r\n"
                                "100,small,2,sort,spark,big,1,True,x\r\n"
                                "\r\n"
                                "200,small,2,sort,spark,big,2,true,x\r\n"
                                "50,large,1,sort,spark,big,1,True,x\n"
                                "7,large,4,sort,spark,big,1,False,x\n"
                                "300,small,2,count,spark,big,1,True,x\n"
                                "300.5,large,1,count,spark,big,1,False,x";

static void reads_a_table(void **state)
{
    (void)state;
    plan_table *table = NULL;
    assert_int_equal(read_text(&table, good), SHOAL_OK);
    assert_int_equal(table->workloads, 2);
    assert_int_equal(table->space.candidates, 3);
    assert_string_equal(table->workload[0].name, "sort/spark/big");
    assert_string_equal(table->candidate[1].machine, "large");
    assert_true(table->candidate[2].count == 4 && table->candidate[2].dollars_per_hour == 2);
    assert_true(table->candidate[2].feature[0] == 32 && table->candidate[2].feature[1] == 256 &&
                table->candidate[2].feature[2] == 8);
    const plan_trial *sort = table->workload[0].trial, *count = table->workload[1].trial;
    assert_true(sort[0].outcome == PLAN_TRIAL_DONE && sort[0].seconds == 150); /* of two runs */
    assert_int_equal(sort[2].outcome, PLAN_TRIAL_FAILED);
    assert_int_equal(count[1].outcome, PLAN_TRIAL_TIMED_OUT); /* longer than any that was completed */
    assert_true(isnan(count[2].seconds));
    assert_int_equal(table->workload[1].measured, 2);
    plan_table_free(&table);
    plan_table_free(&table);
}

static void refuses_wrong_tables_by_line(void **state)
{
    (void)state;
    static const char *const wrong[][2] = {
        {"", "is empty"},
        {"nodes,vm,workload\n", "line 1 names no column elapsed_time"},
        {"nodes,vm,workload,elapsed_time\n", "has no rows"},
        {"nodes,vm,workload,elapsed_time,vm\n1,small,w,1,small\n", "line 1 has the column vm twice"},
        {"nodes,vm,workload,elapsed_time\n1,small,w,1\n1,small,w\n",
         "line 3 has 3 fields, and elapsed_time would be field 4"},
        {"nodes,vm,workload,elapsed_time\n0,small,w,1\n", "line 2: nodes is '0'"},
        {"nodes,vm,workload,elapsed_time\n1.5,small,w,1\n", "line 2: nodes is '1.5'"},
        {"nodes,vm,workload,elapsed_time\n1e30,small,w,1\n", "line 2: nodes"},
        {"nodes,vm,workload,elapsed_time\n1,small,w,-1\n", "line 2: elapsed_time is '-1'"},
        {"nodes,vm,workload,elapsed_time\n1,small,w,nan\n", "line 2: elapsed_time"},
        {"nodes,vm,workload,elapsed_time\n1,small,w,inf\n", "line 2: elapsed_time"},
        {"nodes,vm,workload,elapsed_time\n1,small,w,\n", "line 2: elapsed_time is ''"},
        {"nodes,vm,workload,elapsed_time\n1,small,,5\n", "line 2: workload"},
        {"nodes,vm,workload,elapsed_time\n1,smal,w,1\n", "line 2: prices.csv has no machine 'smal'"},
        {"nodes,vm,workload,elapsed_time\n1,twice,w,1\n", "twice is in prices.csv twice, at lines 4 and 5"},
        {"nodes,vm,workload,elapsed_time\n1,spot,w,1\n", "prices.csv has no price for spot"},
        {"nodes,vm,workload,elapsed_time,completed\n1,small,w,1,perhaps\n", "line 2: completed is 'perhaps'"},
        {"nodes,vm,workload,elapsed_time,run\n1,small,w,1,1\n2,small,w,1,1\n1,small,w,3,1\n",
         "line 4 has the run of line 2"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        plan_table *table = NULL;
        assert_int_equal(read_text(&table, wrong[i][0]), SHOAL_INVALID);
        assert_null(table);
        if (!strstr(shoal_error(), wrong[i][1]) || !strstr(shoal_error(), path))
            fail_msg("'%s' does not say '%s'", shoal_error(), wrong[i][1]);
    }
    plan_table *table = NULL;
    assert_int_equal(plan_table_read(&table, "/nowhere/there.csv", &prices), SHOAL_SYSTEM);
    char many[600] = "nodes,vm,workload,elapsed_time";
    for (int i = 0; i < 260; i++)
        strcat(many, ",x");
    assert_int_equal(read_text(&table, many), SHOAL_INVALID);
}

static plan_replay_options usual(void)
{
    return (plan_replay_options){
        .search = {.objective = PLAN_COST, .seed = 1, .least = 6, .improvement = 0.1}, .seeds = 4, .fixed = 1};
}

/* With one run a search finds what it starts from: what it costs is in the table.  sort has 150 s * 0.2, 50 s * 0.5
 * (the optimum) and a failure; count has 300 s * 0.2 and a time-out. */
static void scores_are_what_can_be_counted(void **state)
{
    (void)state;
    plan_table *table = NULL;
    plan_replay *replay = NULL;
    plan_replay_options options = usual();
    options.seeds = 200;
    assert_int_equal(read_text(&table, good), SHOAL_OK);
    assert_int_equal(plan_replay_run(&replay, table, &options), SHOAL_OK);
    assert_int_equal(replay->scores, 2 * 3 * 3);
    assert_int_equal(replay->skipped, 0);
    const plan_replay_score *by_rule = replay->score, *fixed = replay->score + 9;
    /* Three and two candidates: the rule has them all tried. */
    assert_true(by_rule[0].workload == NULL && by_rule[0].found == 1 && by_rule[0].median == 0 &&
                by_rule[0].runs == 2.5);
    assert_true(by_rule[0].runs_least == 2 && by_rule[0].runs_most == 3 && by_rule[0].searches == 400);
    assert_true(by_rule[3].method == &search_cherrypick && by_rule[6].method == &search_random &&
                by_rule[6].runs == 2.5);
    assert_string_equal(fixed[1].workload, "sort/spark/big");
    assert_true(fixed[0].fixed == 1 && fixed[0].runs == 1);
    for (int group = 0; group < 3; group++) {
        const plan_replay_score *sort = &fixed[3 * group + 1], *count = sort + 1;
        assert_true(sort->found > 0.22 && sort->found < 0.45); /* of three */
        assert_true(sort->without > 40 && sort->without < 95 && isinf(sort->high));
        assert_true(fabs(sort->median - 0.2) < 1e-9); /* 0.00833.. beside 0.00694.. */
        assert_true(sort->mean > 0.05 && sort->mean < 0.15);
        assert_true(count->found > 0.38 && count->found < 0.62 &&
                    count->without == 200 - (int64_t)lrint(200 * count->found));
    }
    plan_replay_free(&replay);
    plan_replay_free(&replay);
    plan_table_free(&table);
}

/* Two workloads on twelve candidates, of which each has one optimum. */
static void all_is_found_when_all_is_tried(void **state)
{
    (void)state;
    char text[1024] = "nodes,vm,workload,elapsed_time\n";
    plan_table *table = NULL;
    plan_replay *replay = NULL;
    plan_replay_options options = usual();
    options.seeds = 7;
    options.fixed = 12;
    for (int load = 1; load <= 3; load += 2)
        for (int i = 0; i < 12; i++) {
            const int nodes = 1 + i % 6, cores = i < 6 ? 2 : 8;
            const size_t length = strlen(text);
            snprintf(text + length, sizeof text - length, "%d,%s,w%d,%.17g\n", nodes, i < 6 ? "small" : "large", load,
                     load * 4000.0 / (cores * nodes) + 30 * nodes);
        }
    assert_int_equal(read_text(&table, text), SHOAL_OK);
    assert_int_equal(plan_replay_run(&replay, table, &options), SHOAL_OK);
    assert_int_equal(replay->scores, 2 * 3 * 3);
    const plan_replay_score *ours = replay->score, *by_chance = replay->score + 6, *fixed = replay->score + 9;
    assert_true(fixed->fixed == 12 && fixed->found == 1 && fixed->high == 0 && fixed->runs == 12);
    assert_true(by_chance->method == &search_random && by_chance->runs == ours->runs && ours->runs >= 6);
    assert_int_equal(ours->searches, 14);
    assert_int_equal(ours[1].searches, 7);
    plan_replay_free(&replay);
    plan_table_free(&table);
}

static void options_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    plan_table *table = NULL;
    plan_replay *replay = NULL;
    assert_int_equal(read_text(&table, good), SHOAL_OK);
    plan_replay_options options = usual();
    options.seeds = 0;
    assert_int_equal(plan_replay_run(&replay, table, &options), SHOAL_USAGE);
    options = usual(), options.fixed = -1;
    assert_int_equal(plan_replay_run(&replay, table, &options), SHOAL_USAGE);
    options = usual(), options.search.improvement = 2;
    assert_int_equal(plan_replay_run(&replay, table, &options), SHOAL_USAGE);
    options = usual(), options.search.deadline = 1;
    assert_int_equal(plan_replay_run(&replay, table, &options), SHOAL_INVALID);
    options = usual(), options.search.deadline = 200; /* which nothing of `count` meets */
    assert_int_equal(plan_replay_run(&replay, table, &options), SHOAL_OK);
    assert_int_equal(replay->skipped, 1);
    plan_replay_free(&replay);
    plan_table_free(&table);
}

static void memory_that_runs_out_is_told(void **state)
{
    (void)state;
    plan_table *table = NULL;
    plan_replay *replay = NULL;
    plan_replay_options options = usual();
    options.seeds = 1;
    options.search.method = &search_random;
    int status = SHOAL_MEMORY;
    assert_int_equal(read_text(&table, good), SHOAL_OK);
    plan_table_free(&table);
    for (int64_t n = 0; status != SHOAL_OK; n++) {
        base_memory_fail_after(n);
        status = plan_table_read(&table, path, &prices);
        if (status == SHOAL_OK)
            status = plan_replay_run(&replay, table, &options);
        base_memory_fail_after(-1);
        assert_true(status == SHOAL_OK || status == SHOAL_MEMORY);
        plan_replay_free(&replay);
        plan_table_free(&table);
    }
}

/* The published table, when it is there: what is promised of ours. */
static void keeps_what_is_promised_on_real_tables(void **state)
{
    (void)state;
    static const char *const real = "../shared/data/clouds/scout_multi.csv";
    const char *given = getenv("SHOAL_SCOUT");
    plan_prices *of_2018 = NULL;
    plan_table *table = NULL;
    plan_replay *replay = NULL;
    const char *file = given ? given : real;
    if (access(file, R_OK) != 0 || access("examples/prices-2018.csv", R_OK) != 0) {
        fprintf(stderr, "SKIPPED: %s or examples/prices-2018.csv is not there (SHOAL_SCOUT names the table)\n", file);
        skip();
    }
    plan_replay_options options = usual();
    options.seeds = 4;
    options.fixed = 10;
    assert_int_equal(plan_prices_read(&of_2018, "examples/prices-2018.csv"), SHOAL_OK);
    assert_int_equal(plan_table_read(&table, file, of_2018), SHOAL_OK);
    plan_prices_free(&of_2018); /* which the table no longer needs */
    assert_int_equal(table->workloads, 18);
    assert_int_equal(table->space.candidates, 69);
    assert_int_equal(plan_replay_run(&replay, table, &options), SHOAL_OK);
    const plan_replay_score *ours = &replay->score[0], *theirs = &replay->score[19], *fixed = &replay->score[57];
    assert_true(fixed->fixed == 10 && fixed->median < 0.02 && fixed->high < 0.22);
    assert_true(ours->median < theirs->median && ours->high < 0.7 * theirs->high);
    assert_true(fixed->median <= replay->score[95].median); /* by chance */
    plan_replay_free(&replay);
    plan_table_free(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_a_table),
        cmocka_unit_test(refuses_wrong_tables_by_line),
        cmocka_unit_test(scores_are_what_can_be_counted),
        cmocka_unit_test(all_is_found_when_all_is_tried),
        cmocka_unit_test(options_that_make_no_sense_are_refused),
        cmocka_unit_test(memory_that_runs_out_is_told),
        cmocka_unit_test(keeps_what_is_promised_on_real_tables),
    };
    return cmocka_run_group_tests(tests, make_path, remove_path);
}
