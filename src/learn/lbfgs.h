/* L-BFGS: minimises a smooth function of many numbers, and, as OWL-QN, one with an L1 term, from values and gradients
 * alone.
 *
 * It never calls the function.  It says at which point it wants value and gradient, gets them, and says the next point:
 *
 *     learn_lbfgs machine;
 *     learn_lbfgs_start(&machine, &options);
 *     for (;;) {                                            // x is where to evaluate
 *         f = value and gradient g at x;
 *         learn_lbfgs_step(&step, &machine, &past, f, g, x, workspace, crew);
 *      if (step.accepted)  keep a copy of workspace as the newest iterate of `past`, drop the oldest beyond history + 1
 *         if (step.done)      break;
 *     }
 *
 * The scalars are in the machine, plain data that may be copied, stored and resumed anywhere.  The vectors are in the
 * past: the last accepted points with their gradients and the directions that led on from them.  They never change once
 * they are there, so whoever stores a run writes each of them once.  The difference of two neighbours is the pair of
 * the L-BFGS update.
 *
 * Sums over vectors are made in blocks of fixed size, in a fixed order, whatever the number of
 * threads.  docs/learn/gradient.md has the mathematics. */
#ifndef LEARN_LBFGS_H
#define LEARN_LBFGS_H

#include <stdbool.h>
#include <stdint.h>
#include <shoal/learn.h>

enum { LEARN_LBFGS_HISTORY_MOST = 60 };

typedef struct learn_lbfgs_options {
    int64_t parameters;
    int64_t history;           /* pairs that are remembered, 1 .. LEARN_LBFGS_HISTORY_MOST */
    int64_t iterations;        /* most accepted points after the first */
    double gradient_tolerance; /* stop when no component of the (pseudo-)gradient is greater; 0: when all are 0 */
    double change_tolerance;   /* stop when an iteration lowers f by no more than this share of |f|; 0 never */
    double l1;                 /* weight of |x| over l1_count parameters; f and g are given without it */
    int64_t l1_first, l1_count;
} learn_lbfgs_options;

/* Why it ended. */
typedef enum learn_lbfgs_end {
    LEARN_LBFGS_GOES_ON,
    LEARN_LBFGS_GRADIENT,   /* the gradient is small enough */
    LEARN_LBFGS_CHANGE,     /* the value hardly changes any more */
    LEARN_LBFGS_ITERATIONS, /* as many as were asked for */
    LEARN_LBFGS_STUCK,      /* no step leads lower any more: as low as rounding lets it come */
    LEARN_LBFGS_DIVERGED    /* the first point, or every point towards lower values, has no finite value */
} learn_lbfgs_end;

/* A search along the newest iterate's direction d.  Steps are multiples of d, values are relative to where it
 * starts. */
typedef struct learn_line {
    double slope;                                /* at step 0 */
    double step;                                 /* the one that is being evaluated */
    double best_step, best_value, best_slope;    /* the lowest point so far */
    double other_step, other_value, other_slope; /* the other end of an interval with a minimum, once there is one */
    double width, width_before;                  /* of that interval, the last two times */
    double wall;                                 /* the least step without a finite value; 0 while there is none */
    int64_t evaluations;
    int64_t bracketed; /* whether there is such an interval */
    int64_t settled;   /* whether a point was low enough with a slope upwards: Moré and Thuente's second stage */
    int64_t again;     /* whether the search is over and its best point is evaluated once more, to be accepted */
} learn_line;

/* Scalars only; all of it travels, so its layout is fixed and without padding. */
typedef struct learn_lbfgs {
    learn_lbfgs_options options;
    int64_t iteration, evaluations;
    double value;                       /* at the newest accepted point, the L1 term included */
    double gradient_most;               /* the greatest component of the (pseudo-)gradient there */
    double change;                      /* by how much, in relation, the last iteration lowered the value; NaN before */
    int64_t end;                        /* learn_lbfgs_end */
    int64_t accepted;                   /* iterates so far: the first point, one an iteration, one a restart */
    int64_t pairs;                      /* pairs of the newest iterates that may be used: none from before a restart */
    double scale;                       /* s.y / y.y of the newest pair with enough curvature; 0 before */
    double least_value, least_gradient; /* of all iterates */
    int64_t idle;                       /* iterations since one of these two was lowered */
    double curvature[LEARN_LBFGS_HISTORY_MOST]; /* s.y of the pairs, newest first; 0 for one that is not to be used */
    learn_line line;
} learn_lbfgs;

/* An accepted point, as it is kept: x, g and d, one after another, `parameters` doubles each. */
typedef struct learn_past {
    int count;                                           /* oldest first; the newest is where the line search starts */
    const double *iterate[LEARN_LBFGS_HISTORY_MOST + 1]; /* each x, g, d */
} learn_past;

typedef struct learn_lbfgs_answer {
    /* `workspace` now holds x, g, d of a new iterate: the point that was just evaluated, or, where a search failed, the
     * newest iterate's point once more with the steepest descent as its direction (`iteration` stays). */
    bool accepted;
    bool done; /* machine->end says why; then x is the best point: the newest iterate's */
} learn_lbfgs_answer;

/* SHOAL_USAGE for options that make no sense. */
int learn_lbfgs_start(learn_lbfgs *machine, const learn_lbfgs_options *options);
/* Whether this file can have made it for this number of parameters and of past iterates, which is the
 * lesser of machine->accepted and history + 1; for what came from elsewhere. */
bool learn_lbfgs_good(const learn_lbfgs *machine, int64_t parameters, int past);
/* Takes value and gradient at x (not finite counts as +infinity) and replaces x by the next point.  `workspace` has
 * room for 3 * parameters doubles and overlaps nothing else.  Nothing is changed but *machine, x and workspace, and
 * *machine only when it succeeds.  crew may be NULL. */
int learn_lbfgs_step(learn_lbfgs_answer *out, learn_lbfgs *machine, const learn_past *past, double value,
                     const double *gradient, double *x, double *workspace, const shoal_crew *crew);

#endif
