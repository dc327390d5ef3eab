/* Several numbers of clusters in one run: which of them are tried, what is known of each, and which is chosen.
 *
 * After the scan a sample of rows is brought to the updates, once.  Each K then starts from a clustering of that sample
 * (search.h), iterates over all rows as a run of that K alone does, and leaves its centres, its scores and the labels
 * of the sampled rows behind.  In the end silhouettes are computed, one K is chosen, and all rows get its labels.
 *
 * What only updates need is kept beside the model (shoal_round_keep): first the sample, then one part for each K. */
#ifndef KMEANS_CHOOSE_H
#define KMEANS_CHOOSE_H

#include "base/counts.h"
#include "learn/kmeans/kmeans_internal.h"

/* One number of clusters; the scores are there once it was tried, silhouettes once all were. */
typedef struct kmeans_trial {
    int64_t k, iterations, converged;
    double objective; /* in the data's units */
    double calinski_harabasz, silhouette;
} kmeans_trial;

/* The numbers of clusters that a config asks for; one when that is k. */
int kmeans_read_ks(base_counts *out, const shoal_kmeans_config *config);
/* Fills what `header` says of trials; *ks are written to the first round by kmeans_set_trials. */
void kmeans_ask_trials(kmeans_model *header, const base_counts *ks, const shoal_kmeans_config *config,
                       const shoal_shape *shape);
void kmeans_set_trials(shoal_round *first, const base_counts *ks);
/* Whether this is a round of several K that still labels for one of them. */
bool kmeans_is_trial(const kmeans_model *model);

/* The first round after the scan. */
int kmeans_begin_draw(shoal_round **next, const shoal_round *from);
/* Once K is labelled: notes it and goes on with the next, or ends.  `objective` is in the learner's units; the sums of
 * the sampled rows are their labels. */
int kmeans_end_trial(shoal_round **next, const shoal_round *round, const int64_t *sample_labels, double objective,
                     const shoal_shape *shape, const shoal_crew *crew, bool stop);
/* Asked to stop while another K is tried: chooses among those before it, if there are any. */
bool kmeans_can_end_trials(const shoal_round *round);
int kmeans_end_trials(shoal_round **next, const shoal_round *round, const shoal_crew *crew);
/* Adds what is known of all of them to the result. */
int kmeans_tell_trials(shoal_result *result, const shoal_round *round);

/* The number of sampled row `at`, of model->sample; in increasing order. */
int64_t kmeans_sample_row(const kmeans_model *model, int64_t at);
/* The first of them that may be row `row` or later. */
int64_t kmeans_sample_from(const kmeans_model *model, int64_t row);

/* Whether the trials of a round from elsewhere, and what it keeps, can be. */
bool kmeans_are_trials(const shoal_round *round, const kmeans_view *view);
/* The same for a result whose first round had these. */
bool kmeans_are_trial_results(const shoal_result *result, const shoal_round *first);

#endif
