/* How fast a learner is on this machine: runs of a few shapes on generated rows, and the constants of shoal_pace that
 * fit them best.
 *
 *     shoal_pace pace[SHOAL_COST_PHASES];
 *     int paces = 0;
 *     double thread_loss;
 *     int status = cli_measure_learner(pace, &paces, &thread_loss, &shoal_kmeans, 8);
 *
 * Rows are spread evenly, as k-means finds them hardest: its bounds skip little, and it does not converge soon.  Rounds
 * of rows that fall into clear groups take less; a refit from history (plan/history.h) learns of that. */
#ifndef CLI_MEASURE_LEARNER_H
#define CLI_MEASURE_LEARNER_H

#include <shoal/learn.h>
#include <shoal/plan.h>

/* Fills `pace`, which has room for SHOAL_COST_PHASES, with what was found of each phase, in about so many seconds;
 * `thread_loss`, as in shoal_site, with what several threads lose, or NAN where there is only one core.  SHOAL_USAGE
 * for a learner that can't be measured so; SHOAL_STOPPED after a signal that was allowed. */
int cli_measure_learner(shoal_pace *pace, int *paces, double *thread_loss, const shoal_algorithm *algorithm,
                        double seconds);

/* Rows of values between 0 and 1, which the caller frees; where `classes` is not 0, the last column has the labels of
 * so many. */
int cli_make_rows(float **out, int64_t rows, int64_t columns, int64_t classes, int seed);

/* The learners that can be: names, ended by NULL. */
const char *const *cli_measured_learners(void);
/* The one of that name; SHOAL_USAGE with the nearest name. */
int cli_measured_learner(const shoal_algorithm **out, const char *name);

#endif
