/* Choosing a configuration by trying: Bayesian optimisation over a finite list of configurations.
 *
 *     plan_search *search = NULL;
 *     int status = plan_search_new(&search, &space, &options);
 *     int64_t next = 0;
 *     while (status == SHOAL_OK && (status = plan_search_next(&next, &why, search)) == SHOAL_OK && next >= 0) {
 *         const plan_trial trial = {.candidate = next, .outcome = PLAN_TRIAL_DONE, .seconds = run(next)};
 *         status = plan_search_tell(search, &trial);
 *     }
 *     int64_t best = plan_search_best(search);
 *     plan_search_free(&search);
 *
 * The same space, options and trials give the same next candidate: nothing else is looked at, so a search that was
 * broken off resumes from its trials.  docs/plan-search.md says how the next one is chosen. */
#ifndef PLAN_SEARCH_H
#define PLAN_SEARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PLAN_FEATURES_MOST = 16 };

/* One configuration that could be tried. */
typedef struct plan_candidate {
    const char *machine;                /* what {machine} stands for */
    int64_t count;                      /* what {count} stands for */
    double dollars_per_hour;            /* of all its machines together; 0 when only time counts */
    double feature[PLAN_FEATURES_MOST]; /* what it is like: cores, memory, ...: the model sees nothing else of it */
} plan_candidate;

typedef struct plan_candidates {
    const plan_candidate *candidate;
    int64_t candidates;
    int features;
    const char *feature_name[PLAN_FEATURES_MOST];
    bool logarithmic[PLAN_FEATURES_MOST]; /* positive, and differences are ratios */
} plan_candidates;

typedef enum plan_objective { PLAN_TIME, PLAN_COST, PLAN_COST_TIME } plan_objective;

/* "time", "cost", "cost*time". */
const char *plan_objective_name(plan_objective objective);

typedef enum plan_outcome {
    PLAN_TRIAL_DONE,
    PLAN_TRIAL_FAILED,   /* ended with an error after `seconds`: such configurations may not be able to */
    PLAN_TRIAL_TIMED_OUT /* took longer than `seconds` */
} plan_outcome;

typedef struct plan_trial {
    int64_t candidate;
    plan_outcome outcome;
    double seconds;
    double dollars; /* what it cost, where that was measured; 0: seconds times the candidate's price */
} plan_trial;

typedef struct plan_search_options {
    plan_objective objective;
    double deadline, budget; /* of a run; 0: none */
    uint64_t seed;
    int64_t least, most; /* trials before it may stop by itself (6); that are made at most (0: all candidates) */
    double improvement;  /* stops when what it expects to gain falls below this share of the best (0.1); 0: never */
    const struct search_method *method; /* NULL: ours; bench/plan has others to compare it with */
} plan_search_options;

typedef struct plan_search plan_search;

/* `space` must outlive it. */
int plan_search_new(plan_search **out, const plan_candidates *space, const plan_search_options *options);
void plan_search_free(plan_search **search);
/* What to try next; -1 when the search is over.  *why, for people, belongs to the search: "start 2 of 3", "expects 24%
 * less", "stops: ...". */
int plan_search_next(int64_t *candidate, const char **why, plan_search *search);
int plan_search_tell(plan_search *search, const plan_trial *trial);
/* The best that was tried and meets deadline and budget; -1 when none did. */
int64_t plan_search_best(const plan_search *search);
/* The objective of what was tried best; NaN without. */
double plan_search_best_value(const plan_search *search);
/* What the model thinks of a candidate now: mean and standard deviation of the logarithm of the objective. */
int plan_search_opinion(double *mean, double *deviation, const plan_search *search, int64_t candidate);

#endif
