/* Logistic and softmax regression, by L-BFGS (OWL-QN with an L1 term).
 *
 *     shoal_logistic_config config = {0};
 *     shoal_options_default(&config, shoal_logistic.options);      // the last column holds the labels
 *     shoal_run(&result, NULL, &shoal_logistic, &config, data, NULL, NULL);
 *    const shoal_tensor *weights = shoal_result_tensor(result, "weights");    // classes (1 for two) x columns, float64
 *
 * Minimises  sum of row losses + l2/2 |w|^2 + l1 |w|_1,  the intercept free of both: scikit-learn's objective with C =
 * 1 / l2. docs/learn/logistic.md has the details. */
#ifndef SHOAL_LOGISTIC_H
#define SHOAL_LOGISTIC_H

#include <shoal/learn.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { SHOAL_LOGISTIC_CLASSES_MOST = 1000 };

typedef struct shoal_logistic_config {
    int64_t target; /* the column with the labels, from 1; negative numbers count from the end: -1, like 0, is the
                     * last */
    double l1, l2;
    bool no_intercept;
    int64_t iterations, history;
    double tolerance; /* greatest component of the gradient per row, for centred and scaled columns */
    int precision;    /* of products: 0 auto (float64), 1 float32, 2 float64 */
    /* Where to start: what an earlier run found, or NULL.  All three or none; the classes must be those of the data. */
    const double *start_weights, *start_intercept, *start_classes;
    int64_t start_outputs, start_classes_count, start_columns; /* outputs: rows of start_weights */
    /* Only for cost(), since only a run finds out how many there are; 0: as many as a start has, or 2. */
    int64_t expected_classes;
} shoal_logistic_config;

/* Tensors: weights (outputs x columns other than the target: one output for two classes, otherwise one per class),
 * intercept (outputs), classes (the labels, ascending), all float64.  With two classes the output is the log-odds of
 * the second. */
SHOAL_API extern const shoal_algorithm shoal_logistic;

/* Labels and probabilities of rows (which have no column for the label) under a model. */
typedef struct shoal_logistic_predict_config {
    const double *weights, *intercept, *classes;
    int64_t outputs, classes_count, columns; /* outputs: rows of weights, 1 for two classes */
    bool probabilities;                      /* also the probability of each class, float64 */
} shoal_logistic_predict_config;

/* Tensors: labels (float64, values of `classes`), probabilities (rows x classes, float64).  Among equally likely
 * classes the label is the first. */
SHOAL_API extern const shoal_algorithm shoal_logistic_predict;

#ifdef __cplusplus
}
#endif
#endif
