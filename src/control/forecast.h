/* When a job will end, and what it will cost: the model's word on a round, corrected by the rounds that were seen.
 *
 *     control_trend trend;
 *     control_trend_init(&trend, 0.25);                     // the model is wrong by about so much (log of the ratio)
 *     control_trend_see(&trend, &option[running], seconds); // after each round, with what the model said of it
 *     control_band band = control_foresee(&trend, &option[n], &(control_course){.rounds = 40, .present = running});
 *     ... band.seconds, band.high: expected, and what 95% of cases keep
 *
 * A round takes exp(a) * work + exp(b) * fixed seconds.  `work` is what more machines do faster, `fixed` what they do
 * not: waiting for the store, merging, starting.  a and b are 0 where the model is right; they are a Gaussian with two
 * means and a covariance, and what is seen moves it (an extended Kalman filter on the logarithm of the seconds).  Its
 * variance grows slowly, so that a drift is followed.  One round that is far off is noted and not believed, since a
 * machine may have been lost; a second one on the same side is, and widens the Gaussian, so that a jump is followed
 * within two rounds.  Pure: no clock, no chance. */
#ifndef CONTROL_FORECAST_H
#define CONTROL_FORECAST_H

#include <stdint.h>

/* What the model says of one number of machines. */
typedef struct control_option {
    int64_t machines;
    double work, fixed; /* seconds of a round */
    double price;       /* of all of them, an hour, in the job's currency; 0: free or not known */
} control_option;

typedef struct control_trend {
    double a, b;       /* corrections, as logarithms */
    double aa, ab, bb; /* their covariance */
    double noise;      /* variance of the logarithm of one round */
    double seen;       /* rounds that count towards it */
    int doubted;       /* -1 or 1: the last round was so far below or above that it was not believed; 0: it was */
    int64_t rounds;
} control_trend;

/* `error`: standard deviation of the logarithm of (happened / modelled). */
void control_trend_init(control_trend *self, double error);
/* Nothing is known but the rounds themselves: the first one decides. */
void control_trend_init_blind(control_trend *self);
void control_trend_see(control_trend *self, const control_option *option, double seconds);
/* Seconds of a round as it is believed now. */
double control_trend_round(const control_trend *self, const control_option *option);

/* What is left to do, and with what. */
typedef struct control_course {
    double rounds;             /* expected to come */
    double spread;             /* standard deviation of the logarithm of that; 0: it is known */
    const control_option *now; /* what runs now; NULL: nothing yet */
    double start;              /* seconds until machines are there that do not run yet */
    double losses;             /* of a machine, an hour */
    double replace;            /* seconds that one loss costs, besides half a round */
} control_course;

typedef struct control_band {
    double seconds, low, high; /* until the end: expected, and the limits of 90% of cases: 95% are below `high` */
    double cost, cost_high;    /* from now on */
} control_band;

/* With that option from now on. */
control_band control_foresee(const control_trend *self, const control_option *option, const control_course *course);

#endif
