/* What the files of the search share.  search.c keeps the trials, search_model.c what is believed of the candidates
 * because of them, and search_choose.c decides what to try next, or to stop. */
#ifndef PLAN_SEARCH_INTERNAL_H
#define PLAN_SEARCH_INTERNAL_H

#include "gaussian.h"
#include "search.h"

enum { SEARCH_STARTS = 3, SEARCH_MEMBERS = 64 };

/* What is modelled.  All are logarithms; each is looked at only where it is asked for. */
typedef enum search_quantity { SEARCH_OBJECTIVE, SEARCH_SECONDS, SEARCH_DOLLARS, SEARCH_QUANTITIES } search_quantity;

/* Several Gaussian processes that differ in what they believe of the kernel, each with how much the trials speak for
 * it.  CherryPick has one, random search none. */
typedef struct search_model {
    int members;
    plan_gaussian member[SEARCH_MEMBERS];
    double weight[SEARCH_MEMBERS]; /* their sum is 1; 0 for what hardly counts */
    bool modelled[SEARCH_QUANTITIES];
    double *mean[SEARCH_QUANTITIES]; /* members x candidates */
} search_model;

struct plan_search {
    const plan_space *space;
    plan_search_options options;
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
void search_model_release(search_model *model);
/* Takes the newest trial in. */
int search_model_learn(plan_search *search);
/* Of one member: mean and standard deviation of the logarithm of a quantity. */
double search_mean(const plan_search *search, int member, search_quantity quantity, int64_t candidate);
double search_deviation(const plan_search *search, int member, search_quantity quantity, int64_t candidate);
/* How likely a candidate works at all, from those that failed near it. */
double search_works(const plan_search *search, int64_t candidate);

/* The next candidate, or -1; says why. */
int64_t search_choose(plan_search *search);

#endif
