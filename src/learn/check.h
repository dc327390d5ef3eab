/* Looking at what came from elsewhere before a learner uses it: tables of modules, rounds, results.
 *
 * Rounds and results are decoded by wire.h, which knows only that they are whole.  Whether they are the learner's, for
 * the data at hand, the learner itself says (shoal_algorithm.check), and engines ask it through these functions. */
#ifndef LEARN_CHECK_H
#define LEARN_CHECK_H

#include <shoal/learn.h>

/* SHOAL_INVALID for a table that was compiled for another version of shoal/learn.h, or that lacks a function it must
 * have. */
int learn_algorithm_check(const shoal_algorithm *algorithm);
/* SHOAL_BROKEN for a round that is not one of this learner's for data of this shape. */
int learn_round_check(const shoal_algorithm *algorithm, const shoal_round *round, const shoal_shape *shape);
/* SHOAL_BROKEN for a result that a run which began with `first` can't have.  Learners that can't tell let everything
 * pass. */
int learn_result_check(const shoal_algorithm *algorithm, const shoal_result *result, const shoal_round *first,
                       const shoal_shape *shape);

/* ---- what learners check with ------------------------------------------------------------------------------------ */

/* Whether a result has a tensor of that name, type and shape; -1 stands for any size. */
bool learn_result_has(const shoal_result *result, const char *name, shoal_type type, int rank, const int64_t *shape);

#endif
