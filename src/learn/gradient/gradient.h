/* Learners that go down a gradient: the layer between the contract of shoal/learn.h and a function with parameters.
 *
 * Such a learner says what the rows of one grain add to some sums, and how value and gradient come from those sums once
 * all rows are in them.  Everything else is done here: rounds, exact merging, L-BFGS, stopping, the trace.
 *
 *     round 0          "scan": the learner looks at all rows once: ranges, labels, what is not finite
 *     round 1, 2, ...  "run": sums at a point that L-BFGS asks for
 *
 * Sums are float or double inside a grain, in a fixed order; each is then rounded once to a multiple of its group's
 * quantum, a power of two, and added as an integer.  Groups are sums of like size.  The quantum follows from the last
 * round's greatest grain value, with some room above it; a round in which a sum had no room, or too few digits, is
 * asked for again at the same point (gradient_sums.c).
 *
 * src/learn/logistic is the short example.  The functions of a shoal_algorithm are not told whose they are, so each
 * learner has its own, of one line each, that hand over to the functions at the end of this file with its
 * gradient_class. */
#ifndef GRADIENT_H
#define GRADIENT_H

#include <shoal/learn.h>

#include "kernel/kernel.h"
#include "learn/lbfgs.h"

enum { GRADIENT_GROUPS_MOST = 10 };

/* Sums that are alike in size. */
typedef struct gradient_group {
    int64_t first, count; /* of the sums; groups lie one after another and cover all */
    double size;          /* a guess of the greatest sum of one grain, for the first round */
    int64_t narrow;       /* 1 when its sums are float32 inside a grain, so that fewer digits will do */
} gradient_group;

/* What a learner asks for once it has seen the data. */
typedef struct gradient_plan {
    int64_t sums;
    int64_t groups;
    gradient_group group[GRADIENT_GROUPS_MOST];
    learn_lbfgs_options search;
    int64_t notes; /* numbers that `note` leaves about a point; 0 for none */
} gradient_plan;

/* Whether two plans are the same but for the guesses of sizes: what a learner that gets a plan from elsewhere must know
 * before it counts on where parameters and sums lie. */
bool gradient_plan_alike(const gradient_plan *a, const gradient_plan *b);

/* Where a map leaves the sums of its grain. */
typedef struct gradient_sums gradient_sums;
/* Adds a whole group of the grain, once a grain for each group; float sums and double sums. */
void gradient_add32(gradient_sums *sums, int group, const float *values);
void gradient_add64(gradient_sums *sums, int group, const double *values);

/* What a learner of this kind provides.  `own` is its own struct, without pointers, `own_bytes` long, that travels
 * with every round: options, shape, what the scan found. */
typedef struct gradient_class {
    /* Round 0: which cells the scan fills, and filling them for one grain. */
    void (*scan_layout)(shoal_layout *layout, const void *own, const shoal_shape *shape);
    int (*scan)(shoal_partial *partial, const void *own, const shoal_grain *grain, const shoal_scratch *scratch);
    size_t (*scan_scratch)(const void *own, const shoal_shape *shape);
    /* After the scan: replaces *own (base_alloc, its size in *own_bytes) where that is needed, and fills the
     * plan.  SHOAL_INVALID names the row. */
    int (*plan)(gradient_plan *out, void **own, size_t *own_bytes, const shoal_partial *merged,
                const shoal_shape *shape);
    /* The first point.  What only this needed, a given start say, may be dropped from the end of own: then *own_bytes
     * is less. */
    int (*first)(double *x, void *own, size_t *own_bytes, const shoal_shape *shape);

    /* Derives from the point what the maps of this process share; as in shoal_algorithm. */
    int (*prepare)(void **prepared, const void *own, const double *x, const shoal_shape *shape, const shoal_crew *crew);
    void (*forget)(void **prepared);
    size_t (*scratch_bytes)(const void *own, const void *prepared, const shoal_shape *shape);
    /* Gives the sums of a grain to gradient_add. */
    int (*map)(gradient_sums *sums, const void *own, const void *prepared, const shoal_grain *grain,
               const shoal_scratch *scratch);
    /* Value and gradient at x from the sums of all rows; both may come out not finite. */
    int (*combine)(double *value, double *gradient, const double *sums, const void *own, const double *x,
                   const shoal_shape *shape);
    /* Adds tensors and numbers of its own to the numbers of the layer: objective, iterations, evaluations, gradient
     * (its greatest component), converged, diverged, end (a learn_lbfgs_end).  x is the best point that was found. */
    int (*result)(shoal_result *result, const void *own, size_t own_bytes, const double *x, const shoal_shape *shape);
    /* Whether bytes that came from elsewhere are such a struct, for data of this shape, and the plan is the one that
     * belongs to them (gradient_plan_alike); it is NULL in round 0. */
    bool (*good)(const void *own, size_t own_bytes, const gradient_plan *plan, const shoal_shape *shape);

    /* Optional, both or none.  plan->notes numbers about a point that only its sums tell (mean activations, say).  They
     * are kept with a point that is accepted, and `tell` adds those of the result's point to the result. */
    int (*note)(double *notes, const double *sums, const void *own, const double *x, const shoal_shape *shape);
    int (*tell)(shoal_result *result, const double *notes, const void *own, const shoal_shape *shape);
} gradient_class;

/* What a learner knows of its rounds before the data was seen. */
typedef struct gradient_sizes {
    double own_bytes;     /* in round 0 and, unless it says otherwise, later */
    double run_own_bytes; /* once the scan is done; 0: the same */
    double scan_bytes;    /* of the scan's partial */
    double parameters, sums, groups, notes;
    double operations_per_row; /* of an evaluation */
    double iterations;         /* at most */
} gradient_sizes;

/* The learner's own struct in a round that was checked. */
const void *gradient_own_of(const shoal_round *round);

/* Fills both phases: a scan, and an evaluation for each iteration and some more. */
void gradient_cost(shoal_cost *out, const gradient_sizes *sizes);

/* The functions of a shoal_algorithm.  gradient_start makes round 0 with a copy of `own`. */
int gradient_start(shoal_round **out, const gradient_class *of, const void *own, size_t own_bytes,
                   const shoal_shape *shape);
/* SHOAL_BROKEN for a model that the layer can't have made for this class. */
int gradient_check(const gradient_class *of, const shoal_round *round, const shoal_shape *shape);
int gradient_prepare(void **prepared, const gradient_class *of, const shoal_round *round, const shoal_shape *shape,
                     const shoal_crew *crew);
void gradient_forget(void **prepared, const gradient_class *of);
size_t gradient_scratch_bytes(const gradient_class *of, const shoal_round *round, const void *prepared,
                              const shoal_shape *shape);
int gradient_map(shoal_partial *partial, const gradient_class *of, const shoal_round *round, const void *prepared,
                 const shoal_grain *grain, const shoal_scratch *scratch);
int gradient_update(shoal_round **next, shoal_result **result, const gradient_class *of, const shoal_round *round,
                    shoal_partial *merged, const shoal_shape *shape, const shoal_crew *crew, bool stop);

#endif
