/* How good the search of configurations is on a measured table, beside CherryPick as published and beside chance: JSON
 * for bench/bench_plan.py.
 *
 *     bench_plan_search TABLE.csv PRICES.csv [--seeds N] [--runs N] [--objective WHAT] [--deadline SECONDS] [...] */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/option.h"
#include "plan/search_replay.h"

typedef struct settings {
    int64_t seeds, seed, runs, least;
    int objective;
    double deadline, budget, improvement;
} settings;

#define AT(field) offsetof(settings, field)

static const char *const objectives[] = {"time", "cost", "cost*time", NULL}; /* as plan_objective has them */
static const shoal_option rows[] = {
    {"seeds", 0, SHOAL_OPTION_COUNT, AT(seeds), "N", .help = "searches of each workload", .fallback = "50", .least = 1,
     .most = 10000},
    {"seed", 0, SHOAL_OPTION_COUNT, AT(seed), "N", .help = "of the first of them", .fallback = "1", .most = 1e15},
    {"runs", 0, SHOAL_OPTION_COUNT, AT(runs), "N", .help = "of the searches that do not stop by themselves",
     .fallback = "10", .least = 1, .most = 1e6},
    {"least", 0, SHOAL_OPTION_COUNT, AT(least), "N", .help = "runs before one may stop by itself", .fallback = "6",
     .least = 1, .most = 1e6},
    {"objective", 0, SHOAL_OPTION_CHOICE, AT(objective), "WHAT", .help = "what to minimise", .fallback = "cost",
     .choices = objectives},
    {"deadline", 0, SHOAL_OPTION_REAL, AT(deadline), "SECONDS", .help = "what a run may take", .most = 1e9},
    {"budget", 0, SHOAL_OPTION_REAL, AT(budget), "DOLLARS", .help = "what a run may cost", .most = 1e9},
    {"improvement", 0, SHOAL_OPTION_REAL, AT(improvement), "SHARE", .help = "stops when less is expected to be gained",
     .fallback = "0.1", .most = 1},
    {0},
};
static const shoal_option *const options = rows;
static const base_option_group groups[] = {{"Replay", &options, 0}, {0}};

static json_t *score_json(const plan_replay_score *score)
{
    json_t *row = json_object();
    base_json_put(&row, "method", json_string(score->method->name));
    base_json_put(&row, "fixed", json_integer(score->fixed));
    base_json_put(&row, "workload", score->workload ? base_json_text(score->workload) : json_null());
    base_json_put(&row, "searches", json_integer(score->searches));
    base_json_put(&row, "without", json_integer(score->without));
    base_json_put(&row, "found", base_json_real(score->found));
    base_json_put(&row, "median", base_json_real(score->median));
    base_json_put(&row, "p90", base_json_real(score->high));
    base_json_put(&row, "mean", base_json_real(score->mean));
    base_json_put(&row, "runs", base_json_real(score->runs));
    base_json_put(&row, "runs_least", json_integer(score->runs_least));
    base_json_put(&row, "runs_most", json_integer(score->runs_most));
    return row;
}

static int print_replay(const plan_replay *replay, const plan_table *table, int64_t seeds)
{
    json_t *object = json_object(), *list = json_array();
    base_json_put(&object, "table", base_json_text(table->name));
    base_json_put(&object, "workloads", json_integer(table->workloads));
    base_json_put(&object, "skipped", json_integer(replay->skipped));
    base_json_put(&object, "configurations", json_integer(table->space.candidates));
    base_json_put(&object, "seeds", json_integer(seeds));
    for (int64_t i = 0; i < replay->scores; i++)
        json_array_append_new(list, score_json(&replay->score[i]));
    base_json_put(&object, "scores", list);
    char *text = json_dumps(object, JSON_REAL_PRECISION(17) | JSON_ENSURE_ASCII);
    json_decref(object);
    if (!text)
        return shoal_fail(SHOAL_MEMORY, "out of memory for the JSON object");
    puts(text);
    free(text);
    return SHOAL_OK;
}

static int replay_table(const char *path, const char *prices_path, const settings *from)
{
    plan_prices *prices = NULL;
    plan_table *table = NULL;
    plan_replay *replay = NULL;
    const plan_replay_options how = {.search = {.objective = (plan_objective)from->objective,
                                                .deadline = from->deadline,
                                                .budget = from->budget,
                                                .seed = (uint64_t)from->seed,
                                                .least = from->least,
                                                .improvement = from->improvement},
                                     .seeds = from->seeds,
                                     .fixed = from->runs};
    int status = plan_prices_read(&prices, prices_path);
    if (status == SHOAL_OK)
        status = plan_table_read(&table, path, prices);
    if (status == SHOAL_OK)
        status = plan_replay_run(&replay, table, &how);
    if (status == SHOAL_OK)
        status = print_replay(replay, table, from->seeds);
    plan_replay_free(&replay);
    plan_table_free(&table);
    plan_prices_free(&prices);
    return status;
}

int main(int argc, char **argv)
{
    settings from = {0};
    const char *word[16];
    int words = 0;
    int status = argc <= 16 ? base_options_default(&from, groups) : shoal_fail(SHOAL_USAGE, "too many arguments");
    if (status == SHOAL_OK)
        status = base_options_parse(&from, groups, word, &words, argc - 1, argv + 1);
    if (status == SHOAL_OK && words != 2)
        status = shoal_fail(SHOAL_USAGE, "usage: bench_plan_search TABLE.csv PRICES.csv [options]");
    if (status == SHOAL_OK)
        status = replay_table(word[0], word[1], &from);
    if (status < 0)
        fprintf(stderr, "bench_plan_search: %s\n", shoal_error());
    return status < 0;
}
