/* How well a model does on rows of which the truth is known: what `shoal predict --score` prints.
 *
 * Everything is counted in whole numbers or summed in the order of the rows, by the one process that has all
 * predictions: the same numbers come out on any number of threads and ranks. */
#ifndef RUN_SCORE_H
#define RUN_SCORE_H

#include <shoal/model.h>

#include "learn/face.h"

typedef struct run_score {
    shoal_result *facts;      /* numbers by name: rows, accuracy, log_loss, adjusted_rand_index, objective, error */
    int64_t known, predicted; /* rows and columns of the table: known classes, and what the model said; 0: no table */
    char **known_names, **predicted_names;
    int64_t *table; /* how many rows of a known class got which prediction */
} run_score;

/* Compares predictions with what is known.  Release it whatever came of it. */
int run_score_make(run_score *out, const shoal_application *application);
void run_score_release(run_score *score);

/* SHOAL_USAGE when the table is too large for a picture. */
int run_score_check_picture(const run_score *score);
/* Draws the table (plot/matrix.h); the title calls the rows `name`. */
int run_score_draw(const char *path, const run_score *score, const char *name);

/* Lines for people; the table is left out where it would not fit a screen. */
void run_score_say(learn_lines *lines, const run_score *score);

#endif
