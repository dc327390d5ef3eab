/* What the files of the search share.  search.c keeps the trials, search_model.c what is believed of the candidates
 * because of them, and search_choose.c decides what to try next, or to stop. */
#ifndef PLAN_SEARCH_INTERNAL_H
#define PLAN_SEARCH_INTERNAL_H

#include "base/gaussian.h"
#include "search.h"

enum { SEARCH_STARTS = 3, SEARCH_MEMBERS = 64 };

/* What is modelled.  All are logarithms; each is looked at only where it is asked for. */
typedef enum search_quantity { SEARCH_OBJECTIVE, SEARCH_SECONDS, SEARCH_DOLLARS, SEARCH_QUANTITIES } search_quantity;

/* Several Gaussian processes that differ in what they believe of the kernel, each with how much the trials speak for
 * it. */
typedef struct search_model {
    int members;
    base_gaussian member[SEARCH_MEMBERS];
    double weight[SEARCH_MEMBERS]; /* their sum is 1; 0 for what hardly counts */
    bool modelled[SEARCH_QUANTITIES];
    double *mean[SEARCH_QUANTITIES]; /* members x candidates */
} search_model;

/* A way of searching.  The program has one; bench/plan/search_methods.c has those it is compared with. */
typedef struct search_method {
    const char *name;
    bool heeds_trouble; /* runs that failed or timed out change what is thought of others */
    /* Makes the members of the model.  NULL: there is no model, and candidates are drawn by chance. */
    int (*init)(plan_search *search);
    /* Lets the members see the newest trial, which tells a time; `value` has room for all trials. */
    int (*learn)(plan_search *search, double *value);
    /* What is left to be gained, when the next trial is expected to gain `next`: the search stops when that is too
     * little. */
    double (*left_to_gain)(const plan_search *search, double next);
    const char *left; /* whose gain that is: "all others together are" */
} search_method;
extern const search_method search_ours;

struct plan_search {
    const plan_candidates *space;
    plan_search_options options;
    const search_method *method;
    int features;  /* in which candidates differ */
    double *place; /* candidates x features, each from -1 to 1 */
    bool priced;   /* all candidates; the prices of only some would tell them apart for no reason */
    plan_trial *trial;
    int64_t trials, room;
    bool *tried;
    double timed_out; /* the longest that a run was let go on before it counted as timed out; 0: none did */
    double longest;   /* that a run took which got done */
    double limit;     /* of a run's seconds: timed_out or the deadline, whichever is less; 0: none */
    int64_t best;     /* index of the trial; -1 */
    double *works;    /* for each candidate; of search_choose */
    search_model model;
    char why[200];
};

/* Logarithms of what a trial did; the seconds and dollars of one that timed out are bounds. */
double search_value(const plan_search *search, const plan_trial *trial, search_quantity quantity);
/* Squared distance of two candidates. */
double search_distance(const plan_search *search, int64_t a, int64_t b);

int search_model_init(plan_search *search);
/* What the processes see of the trials that tell a time, less its mean, which is returned. */
double search_seen_values(double *out, const plan_search *search, search_quantity quantity);
/* Whether what a trial took says something of what others will. */
bool search_tells_time(const plan_trial *trial);
void search_model_release(search_model *model);
/* Takes the newest trial in. */
int search_model_learn(plan_search *search);
/* Of one member: mean and standard deviation of the logarithm of a quantity. */
double search_mean(const plan_search *search, int member, search_quantity quantity, int64_t candidate);
double search_deviation(const plan_search *search, int member, search_quantity quantity, int64_t candidate);
/* How likely a candidate works at all, from those that failed near it. */
double search_works(const plan_search *search, int64_t candidate);

/* The logarithm of the objective of the best so far; infinite while there is none. */
double search_best_so_far(const plan_search *search);
/* What trying all that is left is expected to gain; without a best, the chance that any meets deadline and budget. */
double search_gain_of_all(const plan_search *search, double next);
/* The next candidate, or -1; says why. */
int64_t search_choose(plan_search *search);

#endif
