/* Searches whose runs are looked up in a table, and how they compare with the best there is. */
#include "search_replay.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <shoal/error.h>

#include "base/memory.h"

enum { SEEDS_MOST = 10000, METHODS = 3 };

/* ---- one workload ------------------------------------------------------------------------------------------------ */

/* Candidates that were measured, as a space of their own. */
typedef struct task {
    const char *name;
    plan_candidates space;
    plan_candidate *candidate;
    plan_trial *trial;
    double optimum; /* NaN: nothing works and meets deadline and budget */
} task;

static int task_init(task *out, const plan_table *table, int64_t workload)
{
    const plan_workload *of = &table->workload[workload];
    *out = (task){.name = of->name, .space = table->space, .optimum = NAN};
    int status = base_alloc(&out->candidate, (size_t)of->measured, sizeof *out->candidate, "a replay");
    if (status == SHOAL_OK)
        status = base_alloc(&out->trial, (size_t)of->measured, sizeof *out->trial, "a replay");
    if (status < 0)
        return status;
    out->space.candidates = 0;
    out->space.candidate = out->candidate;
    for (int64_t c = 0; c < table->space.candidates; c++) {
        if (isnan(of->trial[c].seconds))
            continue;
        const int64_t at = out->space.candidates++;
        out->candidate[at] = table->candidate[c];
        out->trial[at] = of->trial[c];
        out->trial[at].candidate = at;
    }
    return SHOAL_OK;
}

static void task_release(task *of)
{
    base_free(&of->candidate);
    base_free(&of->trial);
}

/* Tries everything, which is what a search would have to do to be sure. */
static int find_optimum(task *of, const plan_search_options *options)
{
    plan_search_options all = *options;
    plan_search *search = NULL;
    all.method = &search_random;
    int status = plan_search_new(&search, &of->space, &all);
    for (int64_t c = 0; status == SHOAL_OK && c < of->space.candidates; c++)
        status = plan_search_tell(search, &of->trial[c]);
    if (status == SHOAL_OK)
        of->optimum = plan_search_best_value(search);
    plan_search_free(&search);
    return status;
}

/* ---- one search -------------------------------------------------------------------------------------------------- */

typedef struct outcome {
    double above; /* the optimum; infinite without an answer */
    int64_t runs;
} outcome;

static int search_once(outcome *out, const task *of, const plan_search_options *options)
{
    plan_search *search = NULL;
    int64_t next = 0;
    *out = (outcome){.above = INFINITY};
    int status = plan_search_new(&search, &of->space, options);
    while (status == SHOAL_OK && (status = plan_search_next(&next, NULL, search)) == SHOAL_OK && next >= 0) {
        status = plan_search_tell(search, &of->trial[next]);
        out->runs++;
    }
    if (status == SHOAL_OK && plan_search_best(search) >= 0)
        out->above = fmax(plan_search_best_value(search) / of->optimum - 1, 0);
    plan_search_free(&search);
    return status;
}

/* ---- scores ------------------------------------------------------------------------------------------------------ */

static int by_distance(const void *a, const void *b)
{
    const double x = ((const outcome *)a)->above, y = ((const outcome *)b)->above;
    return (x > y) - (x < y);
}

/* The smallest that at least this share of all do not exceed. */
static double quantile(const outcome *sorted, int64_t count, double share)
{
    int64_t at = (int64_t)ceil(share * (double)count) - 1;
    return sorted[at < 0 ? 0 : at].above;
}

/* Sorts the outcomes. */
static void score(plan_replay_score *out, outcome *of, int64_t count)
{
    double sum = 0, runs = 0;
    int64_t found = 0;
    out->searches = count;
    out->runs_least = INT64_MAX;
    for (int64_t i = 0; i < count; i++) {
        const bool none = isinf(of[i].above);
        out->without += none;
        sum += none ? 0 : of[i].above;
        found += of[i].above < 1e-9;
        runs += (double)of[i].runs;
        out->runs_least = of[i].runs < out->runs_least ? of[i].runs : out->runs_least;
        out->runs_most = of[i].runs > out->runs_most ? of[i].runs : out->runs_most;
    }
    qsort(of, (size_t)count, sizeof *of, by_distance);
    out->found = (double)found / (double)count;
    out->median = quantile(of, count, 0.5);
    out->high = quantile(of, count, 0.9);
    out->mean = count > out->without ? sum / (double)(count - out->without) : INFINITY;
    out->runs = runs / (double)count;
}

typedef struct replayer {
    const plan_replay_options *options;
    task *task;
    int64_t tasks;
    outcome *outcome; /* tasks x seeds, of the group that is scored */
    int64_t *runs;    /* as many, of the method asked for */
    plan_replay *replay;
} replayer;

/* Random search makes the runs that the first method made. */
static int run_searches(replayer *r, const search_method *method, int64_t fixed, bool leads)
{
    int status = SHOAL_OK;
    for (int64_t i = 0; status == SHOAL_OK && i < r->tasks * r->options->seeds; i++) {
        plan_search_options options = r->options->search;
        options.method = method;
        options.seed += (uint64_t)(i % r->options->seeds);
        if (fixed > 0 || method == &search_random)
            options.improvement = 0;
        if (fixed > 0)
            options.most = fixed;
        else if (method == &search_random && !leads)
            options.most = r->runs[i];
        status = search_once(&r->outcome[i], &r->task[i / r->options->seeds], &options);
        if (leads)
            r->runs[i] = r->outcome[i].runs;
    }
    return status;
}

static int score_group(replayer *r, const search_method *method, int64_t fixed, bool leads)
{
    const int64_t seeds = r->options->seeds;
    int status = run_searches(r, method, fixed, leads);
    if (status < 0)
        return status;
    plan_replay_score *out = r->replay->score + r->replay->scores;
    for (int64_t i = 0; i <= r->tasks; i++)
        out[i] = (plan_replay_score){.method = method, .fixed = fixed, .workload = i > 0 ? r->task[i - 1].name : NULL};
    for (int64_t i = 0; i < r->tasks; i++)
        score(&out[i + 1], r->outcome + i * seeds, seeds);
    score(&out[0], r->outcome, r->tasks * seeds);
    r->replay->scores += 1 + r->tasks;
    return SHOAL_OK;
}

static int score_groups(replayer *r)
{
    const search_method *first = r->options->search.method ? r->options->search.method : &search_ours;
    int status = SHOAL_OK;
    for (int pass = 0; status == SHOAL_OK && pass < (r->options->fixed > 0 ? 2 : 1); pass++) {
        const int64_t fixed = pass ? r->options->fixed : 0;
        status = score_group(r, first, fixed, true);
        if (status == SHOAL_OK && first != &search_cherrypick)
            status = score_group(r, &search_cherrypick, fixed, false);
        if (status == SHOAL_OK && first != &search_random)
            status = score_group(r, &search_random, fixed, false);
    }
    return status;
}

/* ---- the replay -------------------------------------------------------------------------------------------------- */

static int collect_tasks(replayer *r, const plan_table *table)
{
    int status = base_alloc(&r->task, (size_t)table->workloads, sizeof *r->task, "a replay");
    for (int64_t w = 0; status == SHOAL_OK && w < table->workloads; w++) {
        task *next = &r->task[r->tasks];
        status = task_init(next, table, w);
        if (status == SHOAL_OK)
            status = find_optimum(next, &r->options->search);
        if (status == SHOAL_OK && !isnan(next->optimum)) {
            r->tasks++;
        } else {
            task_release(next);
            r->replay->skipped++;
        }
    }
    if (status == SHOAL_OK && r->tasks == 0)
        status = shoal_fail(SHOAL_INVALID, "%s: no workload has a candidate that works and meets deadline and budget",
                            table->name);
    return status;
}

static int make_room(replayer *r)
{
    const size_t searches = (size_t)r->tasks * (size_t)r->options->seeds;
    int status = base_alloc(&r->outcome, searches, sizeof *r->outcome, "a replay");
    if (status == SHOAL_OK)
        status = base_alloc(&r->runs, searches, sizeof *r->runs, "a replay");
    if (status == SHOAL_OK)
        status =
            base_alloc(&r->replay->score, 2 * METHODS * (size_t)(1 + r->tasks), sizeof *r->replay->score, "a replay");
    return status;
}

int plan_replay_run(plan_replay **out, const plan_table *table, const plan_replay_options *options)
{
    replayer r = {.options = options};
    *out = NULL;
    if (options->seeds < 1 || options->seeds > SEEDS_MOST)
        return shoal_fail(SHOAL_USAGE, "a replay has 1 to %d seeds, not %lld", SEEDS_MOST, (long long)options->seeds);
    if (options->fixed < 0)
        return shoal_fail(SHOAL_USAGE, "a replay can't have %lld runs a search", (long long)options->fixed);
    int status = base_alloc(&r.replay, 1, sizeof *r.replay, "a replay");
    if (status == SHOAL_OK)
        status = collect_tasks(&r, table);
    if (status == SHOAL_OK)
        status = make_room(&r);
    if (status == SHOAL_OK)
        status = score_groups(&r);
    for (int64_t i = 0; i < r.tasks; i++)
        task_release(&r.task[i]);
    base_free(&r.task);
    base_free(&r.outcome);
    base_free(&r.runs);
    if (status < 0)
        plan_replay_free(&r.replay);
    *out = r.replay;
    return status;
}

void plan_replay_free(plan_replay **replay)
{
    if (*replay)
        base_free(&(*replay)->score);
    base_free(replay);
}
