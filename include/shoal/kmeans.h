/* k-means, exact to the bit.
 *
 *     shoal_kmeans_config config = {0};
 *     shoal_options_default(&config, shoal_kmeans.options);
 *     config.k = 100;
 *     shoal_run(&result, NULL, &shoal_kmeans, &config, data, NULL, NULL);
 *     const shoal_tensor *centres = shoal_result_tensor(result, "centres");    // k x columns, float64
 *     const shoal_tensor *labels = shoal_result_tensor(result, "labels");      // rows, int32
 *
 * With config.ks = "2..20" and config.k = 0 it also has, for each of those numbers of clusters, "ks", "objectives",
 * "silhouettes", "calinski_harabasz" and "iterations_by_k"; and all the rest belongs to the K that was chosen.
 * "sample-labels", int64, has a line for each row that silhouettes are of: its number, from 0, then its label for each
 * K.  The numbers "pick_silhouette", "pick_calinski_harabasz" and "pick_elbow" are what each rule chooses, NaN where it
 * can't.
 *
 * With config.batch = 1024 it is mini-batch k-means: the centres move after every 1,024 rows, drawn at random; and the
 * number "batches" is how often they did.  "seen", float64, is the weight, or number, of the rows that each centre is
 * the mean of; config.seen lets given centres go on from there.
 *
 * docs/learn/kmeans.md defines the result and proves that every kernel gives it. */
#ifndef SHOAL_KMEANS_H
#define SHOAL_KMEANS_H

#include <shoal/learn.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum shoal_kmeans_empty {
    SHOAL_EMPTY_FARTHEST, /* an empty cluster takes the row farthest from its centre */
    SHOAL_EMPTY_KEEP,     /* it keeps its old centre */
    SHOAL_EMPTY_SPLIT     /* it takes half of the largest cluster: two centres very close together */
} shoal_kmeans_empty;

typedef enum shoal_kmeans_metric {
    SHOAL_METRIC_EUCLIDEAN,
    SHOAL_METRIC_COSINE /* rows count by their direction alone, and centres have length 1 */
} shoal_kmeans_metric;

/* Which of several numbers of clusters a run ends with. */
typedef enum shoal_kmeans_choose {
    SHOAL_CHOOSE_SILHOUETTE, /* the greatest mean silhouette */
    SHOAL_CHOOSE_CALINSKI,   /* the greatest score of Calinski and Harabasz */
    SHOAL_CHOOSE_ELBOW       /* where the objective's fall bends most */
} shoal_kmeans_choose;

typedef struct shoal_kmeans_config {
    int64_t k;
    const char *ks;      /* several numbers of clusters to choose from, "2..20" or "2,4,8", when k is 0; NULL: k */
    const char *init;    /* "auto", "kmeans++", "parallel", "random", or the path that start came from */
    const double *start; /* given centres, k x columns; NULL unless init names a file */
    int64_t iterations;
    double tolerance;
    int64_t runs;
    int64_t seed;
    int empty;  /* shoal_kmeans_empty */
    int metric; /* shoal_kmeans_metric */
    /* Of several numbers of clusters. */
    int choose;     /* shoal_kmeans_choose */
    int64_t sample; /* rows that silhouettes are computed from; 0: chosen from the number of columns */
    /* Mini-batch k-means. */
    int64_t batch;              /* rows of a batch; 0: every update sees all rows */
    int64_t init_size;          /* rows that first centres are found among; 0: 3 * batch, or 3 * k if that is more */
    int64_t max_no_improvement; /* so many batches in a row that do not lower the smoothed objective end it; 0: none */
    const double *seen;         /* what given centres have seen before, of k of them; NULL: nothing */
    double reassignment_ratio;  /* a centre with less than this part of the greatest centre's weight moves to a row */
} shoal_kmeans_config;

SHOAL_API extern const shoal_algorithm shoal_kmeans;

/* Labels and distances of rows under given centres: one labelling round. */
typedef struct shoal_predict_config {
    const double *centres; /* k x columns */
    int64_t k, columns;
    bool distances;     /* also the distance of each row to its centre: rows, float64 */
    bool all_distances; /* and from every centre, as "all-distances": rows x k, float64 */
    int metric;         /* shoal_kmeans_metric */
} shoal_predict_config;

SHOAL_API extern const shoal_algorithm shoal_kmeans_predict;

#ifdef __cplusplus
}
#endif
#endif
