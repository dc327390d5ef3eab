/* How good a way of searching is, on tables of what was measured: each workload is searched from many seeds, with runs
 * looked up instead of made, and the answer compared with the best there is.
 *
 *     plan_replay_options options = {.search = {.objective = PLAN_COST, .least = 6, .improvement = 0.1, .seed = 1},
 *                                    .seeds = 50, .fixed = 10};
 *     plan_replay *replay = NULL;
 *     int status = plan_replay_run(&replay, table, &options);
 *     for (int64_t i = 0; i < replay->scores; i++)
 *         ... replay->score[i] ...
 *     plan_replay_free(&replay);
 *
 * The scores are those of the method asked for, of CherryPick as published (unless that is the one), and of random
 * search with exactly as many runs as the first one made for the same workload and seed: first with the stopping rule,
 * then with a fixed number of runs.  Each group has the score pooled over workloads and seeds first, then one for each
 * workload. */
#ifndef BENCH_SEARCH_REPLAY_H
#define BENCH_SEARCH_REPLAY_H

#include <stdint.h>
#include "search_methods.h"
#include "search_table.h"

typedef struct plan_replay_options {
    plan_search_options search; /* seeds go from its seed on; `method`, ours when NULL, is the first that is scored */
    int64_t seeds;              /* searches of each workload: 1 to 10000 */
    int64_t fixed;              /* runs of the searches without a stopping rule; 0 leaves these out */
} plan_replay_options;

typedef struct plan_replay_score {
    const search_method *method;
    int64_t fixed;        /* runs a search; 0: as the stopping rule (or who it is compared with) has it */
    const char *workload; /* NULL: all of them */
    int64_t searches;
    int64_t without; /* of them ended without anything that works and meets deadline and budget */
    double found;    /* share that found the optimum */
    /* How far above the optimum the answer lies: 0.02 is 2%.  Infinite where that many searches had no answer; `mean`
     * is over those that had one. */
    double median, high, mean; /* high: the 90th percentile */
    double runs;               /* mean; failed ones and those that timed out are runs, too */
    int64_t runs_least, runs_most;
} plan_replay_score;

typedef struct plan_replay {
    plan_replay_score *score;
    int64_t scores;
    int64_t skipped; /* workloads without any candidate that works and meets deadline and budget */
} plan_replay;

/* SHOAL_USAGE for options that make no sense; SHOAL_INVALID when no workload has an optimum.  The names in scores
 * belong to the table. */
int plan_replay_run(plan_replay **out, const plan_table *table, const plan_replay_options *options);
void plan_replay_free(plan_replay **replay);

#endif
