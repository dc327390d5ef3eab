/* What the files of L-BFGS share: passes over the vectors, and the searches along a line. */
#ifndef LEARN_LBFGS_INTERNAL_H
#define LEARN_LBFGS_INTERNAL_H

#include "learn/lbfgs.h"

/* ---- passes over vectors (lbfgs_vector.c) ------------------------------------------------------------------------ */

/* How the passes of one step are made.  The first failure of a crew stays in `status`; later passes then do nothing. */
typedef struct lbfgs_space {
    int64_t count;
    double l1;
    int64_t l1_first, l1_end;
    const shoal_crew *crew;
    double *partial; /* sums of the blocks, when a crew makes them */
    int status;
} lbfgs_space;

/* Two neighbours of the past: s = x - x_old, y = g - g_old. */
typedef struct lbfgs_pair {
    const double *x, *g, *x_old, *g_old;
    double curvature; /* s.y */
} lbfgs_pair;

/* What an evaluated point has to tell.  g stands for the gradient without L1, p for the pseudo-gradient with it. */
typedef struct lbfgs_measure {
    double pp;         /* p.p */
    double l1;         /* the L1 term */
    double greatest;   /* |p|, the greatest component */
    double sy, yy, ss; /* of the pair with the iterate before */
    double sp;         /* s.p */
} lbfgs_measure;

/* How a point of OWL-QN relates to the iterate x_old where its search started. */
typedef struct lbfgs_change {
    double promised;  /* p_old . (x - x_old) */
    double trapezium; /* the change of f with L1, by the mean of both gradients: no rounding of f hides it */
    double l1;        /* the L1 term at x */
    double moved;     /* |x - x_old|^2 */
    double square;    /* g.g at x */
} lbfgs_change;

int lbfgs_space_init(lbfgs_space *space, const learn_lbfgs_options *options, const shoal_crew *crew);
void lbfgs_space_release(lbfgs_space *space);

/* The first point: iterate = x, g, -p. */
void lbfgs_pass_first(lbfgs_space *space, lbfgs_measure *out, double *iterate, const double *x, const double *g);
/* Makes an iterate's d = -p; returns p.p. */
double lbfgs_pass_steepest(lbfgs_space *space, double *iterate);
/* A later one: iterate = x, g, p. */
void lbfgs_pass_meet(lbfgs_space *space, lbfgs_measure *out, double *iterate, const double *x, const double *g,
                     const double *iterate_old);
/* q -= amount * y of `pair`; returns q . s of `next`. */
double lbfgs_pass_down(lbfgs_space *space, double *q, double amount, const lbfgs_pair *pair, const lbfgs_pair *next);
/* q = scale * (q - amount * y); returns q . y, all of one pair. */
double lbfgs_pass_turn(lbfgs_space *space, double *q, double amount, double scale, const lbfgs_pair *pair);
/* q += amount * s of `pair`; returns q . y of `next`. */
double lbfgs_pass_up(lbfgs_space *space, double *q, double amount, const lbfgs_pair *pair, const lbfgs_pair *next);
/* iterate's d = -(q + amount * s), q being in its place, less what leads out of p's orthant where there is L1; *slope
 * = p.d, *length = d.d. */
void lbfgs_pass_close(lbfgs_space *space, double *slope, double *length, double *iterate, double amount,
                      const lbfgs_pair *pair);
/* out = x + step * d of the iterate; with L1, no further than where x's orthant ends. */
void lbfgs_pass_move(lbfgs_space *space, double *out, const double *iterate, double step);
/* g.d along the direction of an iterate, and g.g, which is not finite when any of g is not. */
void lbfgs_pass_slope(lbfgs_space *space, double *slope, double *square, const double *g, const double *iterate_old);
void lbfgs_pass_change(lbfgs_space *space, lbfgs_change *out, const double *x, const double *g,
                       const double *iterate_old);

/* ---- searches along a line (lbfgs_search.c) ---------------------------------------------------------------------- */

typedef enum lbfgs_verdict {
    LBFGS_TRY,  /* evaluate at line->step */
    LBFGS_TAKE, /* accept the point at line->step */
    LBFGS_FAIL  /* nothing lower was found */
} lbfgs_verdict;

void lbfgs_line_start(learn_line *line, double slope, double step);
/* Strong Wolfe conditions.  `origin` is the value at step 0, `value` and `slope` belong to line->step; `finite` tells
 * whether they are. */
lbfgs_verdict lbfgs_line_wolfe(learn_line *line, double origin, double value, double slope, bool finite);
/* Backtracking along a path that is bent where it leaves an orthant. */
lbfgs_verdict lbfgs_line_back(learn_line *line, double origin, double value, const lbfgs_change *change, bool finite);
bool lbfgs_line_good(const learn_line *line);

#endif
