/* How fast a learner is on this machine: runs of a few shapes on generated rows, and the constants of shoal_pace that
 * fit them best.
 *
 *     shoal_pace pace[SHOAL_COST_PHASES];
 *     int paces = 0;
 *     double thread_loss;
 *     int status = plan_measure_learner(pace, &paces, &thread_loss, &shoal_kmeans, 8, &stop);
 *
 * Rows are spread evenly, as k-means finds them hardest: its bounds skip little, and it does not converge soon.  Rounds
 * of rows that fall into clear groups take less; a refit from history (plan/history.h) learns of that. */
#ifndef PLAN_MEASURE_LEARNER_H
#define PLAN_MEASURE_LEARNER_H

#include <shoal/learn.h>
#include <shoal/plan.h>

/* Fills `pace`, which has room for SHOAL_COST_PHASES, with what was found of each phase, in about that many seconds;
 * `thread_loss`, as in shoal_site, with what several threads lose, or NAN where there is only one core, or others have
 * too much of them.  SHOAL_USAGE for a learner whose face has no probe; SHOAL_STOPPED when *stop was set. */
int plan_measure_learner(shoal_pace *pace, int *paces, double *thread_loss, const shoal_algorithm *algorithm,
                         double seconds, const volatile int *stop);

/* Rows of values between 0 and 1, which the caller frees; where `classes` is not 0, the last column has the labels of
 * that many. */
int plan_measure_rows(float **out, int64_t rows, int64_t columns, int64_t classes, int seed);

#endif
