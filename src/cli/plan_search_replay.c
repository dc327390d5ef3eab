/* How a replay went, as a table and as JSON.  See plan_search_print.h and plan/search_replay.h. */
#include "cli.h"
#include "plan_search_print.h"

#include <inttypes.h>
#include <math.h>

/* "2.1%", or "none" where that many searches had no answer. */
static void print_share(double share)
{
    if (isfinite(share))
        printf("  %8.1f%%", 100 * share);
    else
        printf("  %9s", "none");
}

static void print_score(const plan_replay_score *score)
{
    printf("  %8.1f%%", 100 * score->found);
    print_share(score->median);
    print_share(score->high);
    print_share(score->mean);
    printf("  %5.1f (%" PRId64 "-%" PRId64 ")", score->runs, score->runs_least, score->runs_most);
    if (score->without > 0)
        printf("  %" PRId64 " without an answer", score->without);
    putchar('\n');
}

static void print_columns(const char *first, int width)
{
    printf("%-*s  %9s  %9s  %9s  %9s  %s\n", width, first, "found", "median", "90%", "mean", "runs");
}

void cli_search_print_replay(const plan_replay *replay, const plan_table *table, const plan_replay_options *options)
{
    char name[64];
    int width = 8;
    for (int64_t i = 0; i < table->workloads; i++) {
        int length = snprintf(NULL, 0, "%s", table->workload[i].name);
        width = length > width ? length : width;
    }
    printf("%s: %" PRId64 " workloads, %" PRId64 " configurations, %" PRId64 " seeds from %" PRIu64 "\n", table->name,
           table->workloads, table->space.candidates, options->seeds, options->search.seed);
    if (replay->skipped > 0)
        printf("%" PRId64 " workloads are left out: nothing in them works and meets deadline and budget\n",
               replay->skipped);
    printf("\nall workloads: how often the optimum was found, and how far above it the answer lies\n");
    print_columns("method", 32);
    for (int64_t i = 0; i < replay->scores; i++) {
        const plan_replay_score *score = &replay->score[i];
        if (score->workload)
            continue;
        if (score->fixed)
            snprintf(name, sizeof name, "%s, %" PRId64 " runs", plan_method_name(score->method), score->fixed);
        else
            snprintf(name, sizeof name, "%s, %s", plan_method_name(score->method),
                     score->method == PLAN_METHOD_RANDOM ? "as many runs" : "stopping by itself");
        printf("%-32s", name);
        print_score(score);
    }
    printf("\nby workload: %s, stopping by itself\n", plan_method_name(options->search.method));
    print_columns("workload", width);
    for (int64_t i = 0; i < replay->scores; i++) {
        const plan_replay_score *score = &replay->score[i];
        if (!score->workload || score->fixed || score->method != (plan_method)options->search.method)
            continue;
        printf("%-*s", width, score->workload);
        print_score(score);
    }
}

int cli_search_print_replay_json(const plan_replay *replay, const plan_table *table, const plan_replay_options *options)
{
    json_t *object = json_object(), *list = json_array();
    cli_json_put(&object, "table", cli_json_text(table->name));
    cli_json_put(&object, "workloads", json_integer(table->workloads));
    cli_json_put(&object, "skipped", json_integer(replay->skipped));
    cli_json_put(&object, "configurations", json_integer(table->space.candidates));
    cli_json_put(&object, "seeds", json_integer(options->seeds));
    for (int64_t i = 0; i < replay->scores; i++) {
        const plan_replay_score *score = &replay->score[i];
        json_t *row = json_object();
        cli_json_put(&row, "method", json_string(plan_method_name(score->method)));
        cli_json_put(&row, "fixed", json_integer(score->fixed));
        cli_json_put(&row, "workload", score->workload ? cli_json_text(score->workload) : json_null());
        cli_json_put(&row, "searches", json_integer(score->searches));
        cli_json_put(&row, "without", json_integer(score->without));
        cli_json_put(&row, "found", cli_json_real(score->found));
        cli_json_put(&row, "median", cli_json_real(score->median));
        cli_json_put(&row, "p90", cli_json_real(score->high));
        cli_json_put(&row, "mean", cli_json_real(score->mean));
        cli_json_put(&row, "runs", cli_json_real(score->runs));
        cli_json_put(&row, "runs_least", json_integer(score->runs_least));
        cli_json_put(&row, "runs_most", json_integer(score->runs_most));
        json_array_append_new(list, row);
    }
    cli_json_put(&object, "scores", list);
    return cli_print_json(object);
}
