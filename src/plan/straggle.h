/* The slowest of many: workers whose times differ by a lognormal factor of mean 1. */
#ifndef PLAN_STRAGGLE_H
#define PLAN_STRAGGLE_H

typedef struct plan_slowest {
    double mean, deviation; /* of the greatest of the factors */
} plan_slowest;

/* Of `count` independent factors exp(deviation z - deviation^2 / 2), z normal.  One worker, or a deviation of 0: mean
 * 1. */
plan_slowest plan_slowest_of(double count, double deviation);
/* The last answer, so that it need not be found again; zero at first. */
typedef struct plan_slowest_memo {
    double count, deviation;
    plan_slowest slowest;
} plan_slowest_memo;

plan_slowest plan_slowest_again(plan_slowest_memo *memo, double count, double deviation);
/* The value that a normal variable exceeds with probability `above`. */
double plan_normal_above(double above);

#endif
