/* What the files of the layer share: gradient.c goes from round to round, gradient_model.c knows how a round lies in
 * bytes, gradient_sums.c adds up exactly. */
#ifndef GRADIENT_INTERNAL_H
#define GRADIENT_INTERNAL_H

#include "learn/gradient/gradient.h"

enum { GRADIENT_SCAN, GRADIENT_DESCEND };
enum { GRADIENT_CELL_SUMS = 0, GRADIENT_CELL_GREATEST = 1 }; /* of a descending round */

/* The head of a model; after it `own`, filled up to a multiple of 8 bytes, and, in a descending round, the point. */
typedef struct gradient_model {
    int64_t phase;
    int64_t own_bytes;
    gradient_plan plan;
    double quantum[GRADIENT_GROUPS_MOST]; /* of each group, a power of two */
    learn_lbfgs search;
} gradient_model;

/* How many numbers are kept of an accepted point: x, g, d and the learner's notes. */
static inline size_t gradient_kept_numbers(const gradient_plan *plan)
{
    return 3 * (size_t)plan->search.parameters + (size_t)plan->notes;
}

const void *gradient_own(const gradient_model *model);
const double *gradient_point(const gradient_model *model);

/* Makes a round with a copy of the head and of own; `point` is zero in a descending round. */
int gradient_round_new(shoal_round **out, const gradient_class *of, const gradient_model *head, const void *own,
                       const shoal_shape *shape);
/* SHOAL_USAGE for a plan that makes no sense. */
int gradient_plan_check(const gradient_plan *plan);

/* ---- gradient_sums.c --------------------------------------------------------------------------------------------- */

struct gradient_sums {
    const gradient_model *model;
    const kernel_set *kernel;
    int64_t grains;
    int64_t *values, *greatest; /* of the partial */
};

/* The quantum for a group whose greatest grain value is `size`. */
double gradient_quantum(double size, int64_t grains);

typedef enum gradient_merit {
    GRADIENT_FINE,
    GRADIENT_AGAIN,     /* the same point once more: quantum[] has been changed */
    GRADIENT_NOT_FINITE /* some sum is infinite or no number */
} gradient_merit;

/* Judges the merged sums, and sets the quanta of the next round. */
gradient_merit gradient_judge(double quantum[GRADIENT_GROUPS_MOST], const gradient_model *model,
                              const shoal_partial *merged, int64_t grains);
/* The sums as doubles, each rounded once. */
void gradient_read_sums(double *out, const gradient_model *model, const shoal_partial *merged);

#endif
