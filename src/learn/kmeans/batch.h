/* Mini-batch k-means: after every batch of rows, drawn at random, each centre moves to the mean of all rows that it has
 * been nearest to since the run began (Sculley 2010).
 *
 *     SCATTER  brings a sample of rows; first centres are found among them.  Other starts go through their own phases.
 *     RATE     improves the first centres by that sample; of several runs, the objective of another one decides
 *     BATCH    one batch: labels, sums and objective; the centres move
 *     REFILL   where clusters have seen next to nothing: brings rows, which become their centres
 *     LABEL    as after Lloyd's iteration
 *
 * docs/learn/kmeans.md, "Batches", defines each step.  model->batches counts the batches, and model->iteration the
 * passes that they add up to. */
#ifndef KMEANS_BATCH_H
#define KMEANS_BATCH_H

#include "learn/kmeans/kmeans_internal.h"

/* A map has so many of the rows that were drawn: enough for the kernels' blocks. */
enum { BATCH_GROUP_ROWS = 252 };

/* First centres that were not given move to the means of a sample's rows so often, before runs are compared and before
 * the batches: rows that became centres by chance tell little of how good the clusters will be. */
enum { BATCH_POLISHES = 2 };

/* What goes from batch to batch beside the centres: the model's own section in RATE, BATCH and REFILL rounds. */
typedef struct batch_state {
    int64_t unchecked;  /* rows since clusters were last looked at for refilling */
    int64_t polished;   /* RATE: how often the first centres were improved */
    int64_t starved;    /* REFILL: how many clusters wait for a row */
    int64_t unimproved; /* batches in a row that did not lower the smoothed objective */
    double smoothed;    /* the mean objective of a row, smoothed over the batches; -1 before there is one */
    double least;       /* the least that it was */
    double moved;       /* the centres' squared movements in this pass, added up */
} batch_state;

/* Whether the model's own section is such a one, and there may be another batch. */
bool batch_is_state(const kmeans_view *view);

/* What other rows than those of batches are drawn for. */
typedef enum batch_use { BATCH_TO_RATE, BATCH_TO_START, BATCH_TO_REFILL } batch_use;
/* The key of a pick: `index` is the number of the run, or of the batch. */
uint64_t batch_key(const kmeans_model *model, batch_use use, int64_t index);
/* Rows of a batch, unless it is a pass's last; and how many batches a pass has. */
int64_t batch_rows(const kmeans_model *model);
int64_t batch_steps(const kmeans_model *model);
/* How many batches there are in all passes. */
int64_t batch_steps_most(const kmeans_model *model);

/* What the options are without being given. */
#define KMEANS_PATIENCE 10
#define KMEANS_REASSIGNMENT 0.01

/* SHOAL_USAGE names options that do not go with --batch, or that need it. */
int kmeans_check_batch(const shoal_kmeans_config *config);
/* Fills what `header` says of batches. */
void kmeans_ask_batches(kmeans_model *header, const shoal_kmeans_config *config, const shoal_shape *shape);
/* shoal_algorithm.strata */
int kmeans_strata(const void *config, shoal_shape *shape);
/* How many rows first centres are found among. */
int64_t kmeans_init_size(const shoal_kmeans_config *config, int64_t rows);

/* The first round of a run whose first centres are found among a sample. */
int kmeans_begin_scatter(shoal_round **next, const shoal_round *from);
/* The round once first centres are there; the caller may still write them. */
int kmeans_begin_batches(shoal_round **next, const shoal_round *from);

/* ---- rows that were drawn (batch_rows.c) ------------------------------------------------------------------------- */

/* How many clusters have seen less than the part of the greatest one's weight that the model says; `most` at most. */
int64_t batch_count_starved(const double *weight, const kmeans_model *model, int64_t most);

#endif
