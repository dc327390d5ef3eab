/* What is done to patches before they are learned from, and the file that does the same to others.
 *
 *     data_whitening how = {.centre = true, .whiten = DATA_WHITEN_ZCA, .epsilon = 0.1};
 *     status = data_whitening_learn(&how, &rows, pool);         // finds what it needs from the rows, and changes them
 *     status = data_whitening_apply(&how, &others, pool);       // the same to others
 *     data_whitening_release(&how);
 *
 * In this order: each row less its own mean (centre); each row x becomes matrix (x - mean) (whiten); all values are
 * clipped at three standard deviations from their mean and mapped to low .. high (range).  Sums are float64 in a fixed
 * order, without functions that differ between machines: the bits depend on the rows alone. */
#ifndef DATA_WHITENING_H
#define DATA_WHITENING_H

#include <stdbool.h>
#include <shoal/data.h>

#include "base/pool.h"

enum { DATA_WHITEN_COLUMNS_MOST = 4096 };

typedef enum data_whiten { DATA_WHITEN_NOT, DATA_WHITEN_ZCA, DATA_WHITEN_PCA } data_whiten;

/* Rows in memory that are changed where they lie: float32 or float64. */
typedef struct data_rows {
    void *values;
    shoal_type type;
    int64_t count, columns;
} data_rows;

typedef struct data_whitening {
    bool centre;
    data_whiten whiten;
    bool range;
    double epsilon;         /* added to the eigenvalues of the covariance */
    double low, high;       /* of the range */
    int64_t size, channels; /* of the patches, for the file */
    /* What is learned. */
    int64_t columns;
    double *mean, *matrix; /* NULL unless whitened; the matrix row by row */
    double middle, reach;  /* of the range: what is mapped to its middle, and what lies from there to its ends */
} data_whitening;

int data_whitening_learn(data_whitening *how, const data_rows *rows, base_pool *pool);
int data_whitening_apply(const data_whitening *how, const data_rows *rows, base_pool *pool);
void data_whitening_release(data_whitening *how);

/* As safetensors: mean, matrix and range are tensors of float64, the rest is metadata. */
int data_whitening_save(const data_whitening *how, const char *path);
int data_whitening_load(data_whitening *out, const char *path);

#endif
