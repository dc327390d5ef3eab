/* The course of a sweep: what was ordered, what came of it, and what is to be done next.  Pure: no clock, no store, no
 * thread.
 *
 *     sweep_order order;
 *     while (sweep_course_give(&course, &order) == SHOAL_OK)      // SHOAL_ABSENT: nothing for now
 *         ... someone takes trial order.trial until step order.until ...
 *     status = sweep_course_take(&course, &result);               // what came of an order
 *
 * An order takes one trial from where it stands to a rung.  Which order comes next is a function of the rules and of
 * what was given and taken before, in that order. */
#ifndef SWEEP_COURSE_H
#define SWEEP_COURSE_H

#include "sampler.h"
#include "stopper.h"

typedef struct sweep_rules {
    const sweep_space *space;
    const sweep_sampler *sampler;
    const sweep_stopper *stopper;
    sweep_rungs rungs;
    uint64_t seed;
    int64_t trials; /* that may begin, besides those that were adopted */
    double goal;    /* nothing more is given once a value is this small; -INFINITY: never */
} sweep_rules;

typedef struct sweep_order {
    int64_t trial;
    int rung;            /* that it goes to */
    int64_t from, until; /* steps */
    bool ended;          /* its result was taken */
} sweep_order;

typedef struct sweep_result {
    int64_t order;
    bool failed;
    int64_t step; /* that was reached: less than the order's where the trial ended by itself */
    double value; /* the least of the trial so far */
} sweep_result;

typedef struct sweep_course {
    const sweep_rules *rules;
    sweep_trial *trial;
    int64_t trials, trials_room;
    int64_t adopted; /* the first trials, which are another sweep's */
    sweep_order *order;
    int64_t orders, orders_room;
    int64_t open;   /* orders without a result */
    int64_t best;   /* the trial with the least value, -1: none */
    bool exhausted; /* the sampler has no further point */
    /* Of a table of results to choose from (sampler.h); NULL otherwise. */
    const sweep_point *pool;
    bool *used;
    int64_t pools;
} sweep_course;

/* `rules` must outlast it. */
void sweep_course_init(sweep_course *course, const sweep_rules *rules);
void sweep_course_release(sweep_course *course);
/* SHOAL_ABSENT, and nothing has changed, when there is nothing to do before further results are taken, if ever. */
int sweep_course_give(sweep_course *course, sweep_order *out);
/* Gives an order as somebody else gave it: the trial's point when it begins, NULL when it goes on.  SHOAL_BROKEN for
 * one that its trial can't have; whether it is the one that follows is not asked. */
int sweep_course_follow(sweep_course *course, int64_t number, int64_t trial, int64_t until, const sweep_point *point);
/* SHOAL_BROKEN for what can't be the result of one of its orders, or of one that has a result already. */
int sweep_course_take(sweep_course *course, const sweep_result *result);
/* Adds what another sweep found at a point, before anything is given: a trial that is known and runs no more.  The
 * value is NaN where it failed.  SHOAL_BROKEN once an order was given. */
int sweep_course_adopt(sweep_course *course, const sweep_point *point, double value, int64_t step);
/* Whether as many trials have begun as may. */
bool sweep_course_is_full(const sweep_course *course);
/* Whether the goal was reached, after which nothing more is given. */
bool sweep_course_reached(const sweep_course *course);

#endif
