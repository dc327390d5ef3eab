/* How well rows are clustered, for choosing the number of clusters: pure functions of labels and distances.
 *
 * docs/learn/kmeans.md, "Choosing K", says what each score means. */
#ifndef KMEANS_SCORE_H
#define KMEANS_SCORE_H

#include <shoal/learn.h>

#include "kernel/kernel.h"

/* Rows that distances are measured between. */
typedef struct kmeans_points {
    const double *values; /* rows x columns */
    int64_t rows, columns;
    bool cosine; /* they have length 1, and distances are 1 - cosine */
} kmeans_points;

/* Squared distances between all pairs, rows x rows, of values times `scale`, rounded to float32. */
int kmeans_pair_distances(float *out, const kmeans_points *sample, double scale, const kernel_set *kernel,
                          const shoal_crew *crew);

/* The mean silhouette (Rousseeuw 1987) of each of `trials` labellings, by distances in float64; `labels` has
 * those of all rows for the first, then for the second, and ks[t] says that labels of trial t are below it.  NaN for
 * labels of which there is one alone, or as many as rows. */
int kmeans_silhouettes(double *out, const kmeans_points *sample, const int32_t *labels, const int64_t *ks,
                       int64_t trials, const kernel_set *kernel, const shoal_crew *crew);

/* Calinski and Harabasz 1974: how far the means of k clusters are apart, beside how far rows are from them; both sums
 * are of squared distances, weighted.  NaN when there is one cluster, or no more weight than clusters. */
double kmeans_calinski_harabasz(double between, double within, double weight, int64_t k);

/* The greatest of `count` scores, the first on ties; -1 when none is a number. */
int64_t kmeans_greatest(const double *scores, int64_t count);
/* The elbow of the objectives by K: the point farthest below the chord from the first to the last, both axes scaled to
 * 0..1 (Satopaa, Albrecht, Irwin and Raghavan 2011, without smoothing); -1 when no point is below it. */
int64_t kmeans_elbow(const int64_t *ks, const double *objectives, int64_t count);

#endif
