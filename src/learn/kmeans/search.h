/* Good clusterings of a few thousand rows into many numbers of clusters, from the distances between the rows alone.
 *
 *     kmeans_search search = {.distance = d, .weight = w, .rows = n, .ks = ks, .trials = trials, .seed = seed};
 *     status = kmeans_search_run(labels, &search, crew);          // labels: trials x n
 *
 * What is in a cluster's mean need not be known to measure from it: with M the cluster's weight, S(x) the weighted sum
 * of squared distances from x to its rows, and I half the sum of S over its rows, |x - mean|^2 = S(x)/M - I/M^2, and
 * the cluster adds I/M to the objective.  So moving a row costs as much as there are rows, whatever their columns. */
#ifndef KMEANS_SEARCH_H
#define KMEANS_SEARCH_H

#include <shoal/learn.h>

/* More clusters than this are not looked for, nor clusters of fewer rows each. */
enum { KMEANS_SEARCH_K_MOST = 128, KMEANS_SEARCH_ROWS_EACH = 8 };

typedef struct kmeans_search {
    const float *distance; /* rows x rows: squared, symmetric, 0 on the diagonal */
    const double *weight;  /* of each row, greater than 0 */
    int64_t rows;
    const int64_t *ks; /* increasing */
    int64_t trials;    /* how many of them */
    int64_t seed;
} kmeans_search;

/* Labels of each row in the best clustering that was found for each of the Ks, all K clusters having rows; the first
 * label is -1 where none was.  The same for any number of threads. */
int kmeans_search_run(int32_t *labels, const kmeans_search *search, const shoal_crew *crew);

#endif
