/* What classifiers share: the target column, the scan that finds which labels there are, the
 * class of a row, and deciding for one.
 *
 *     round 0   learn_scan_layout, learn_scan        labels, weights, and whether all is finite
 *     update    learn_scan_read                      what was found in all rows, or a sentence that names row or column
 *     later     learn_classes_find                   classes of rows, by the labels that were found
 *
 * Labels are any finite numbers; the classes are their different values, ascending. */
#ifndef LEARN_CLASSES_H
#define LEARN_CLASSES_H

#include <shoal/learn.h>

#include "kernel/kernel.h"

enum { LEARN_CLASSES_MOST = 1000 };

/* The column of the labels, from 0, of an option that counts from 1, or from -1 backwards; 0 is the last.  `learner` is
 * what messages call it: "logistic regression". */
int learn_target_place(int64_t *out, int64_t target, const shoal_shape *shape, const char *learner);

/* ---- the scan ---------------------------------------------------------------------------------------------------- */

/* Its cells; a learner's own follow. */
enum {
    LEARN_SCAN_LABELS,
    LEARN_SCAN_BAD,
    LEARN_SCAN_GREATEST,
    LEARN_SCAN_BAD_WEIGHT,
    LEARN_SCAN_WEIGHT,
    LEARN_SCAN_RANGE, /* of sums as learn/exact.h has them; no sum of the scan leaves its window */
    LEARN_SCAN_CELLS
};

void learn_scan_layout(shoal_layout *layout);
size_t learn_scan_scratch(void);
/* Adds the grain; *finite says whether all its values are.  Nothing else of a grain matters where one is not. */
int learn_scan(bool *finite, shoal_partial *partial, const shoal_grain *grain, int64_t target,
               const shoal_scratch *scratch);
/* Bytes that these cells of a partial take on the way. */
double learn_scan_bytes(int64_t classes);

/* What the scan found in all rows. */
typedef struct learn_scanned {
    int64_t classes;
    double label[LEARN_CLASSES_MOST];
    double greatest; /* |value| of any column, the target among them; for integers, what their type allows */
    double weight_greatest, weight;
} learn_scanned;

/* SHOAL_INVALID for data that can't be learned from. */
int learn_scan_read(learn_scanned *out, const shoal_partial *merged, const shoal_shape *shape, int64_t target,
                    const char *learner);

/* Adds the first value of the grain that is not finite to a RECORD cell of a double, if there is one. */
int learn_note_not_finite(shoal_partial *partial, int cell, const shoal_grain *grain);
/* Fails with the sentence for the first of them in all rows, if there is one. */
int learn_refuse_not_finite(const shoal_partial *merged, int cell, const char *learner);

/* ---- classes of rows --------------------------------------------------------------------------------------------- */

/* Whether they are finite and ascending: for models that came from elsewhere. */
bool learn_classes_good(const double *classes, int64_t count);

/* Fills the class of each of `rows` rows of the grain from `first` on.  A label that is none of the classes, which only
 * a forged model can lead to, gets any of them. */
void learn_classes_find(int32_t *class, const double *classes, int64_t count, const shoal_grain *grain, int64_t first,
                        int64_t rows, int64_t target);

/* Of logarithms of what is proportional to probabilities, a row of `classes` for each row. */

/* Finds the greatest of each row, the first of equals, and subtracts it from all. */
void learn_subtract_greatest(int32_t *most, double *output, int64_t rows, int64_t classes);
/* The sum of a row's exponentials but for the greatest. */
double learn_sum_others(const double *exponential, int64_t classes, int32_t most);
/* Fills the most likely class of each row in `most`; with `probabilities` (rows x classes, else NULL) the probability
 * of each.  The outputs are changed. */
void learn_classes_decide(int32_t *most, double *probabilities, double *output, int64_t rows, int64_t classes,
                          const kernel_dense64 *dense);

/* What a prediction of classes ends with: the ROW cell `labels` and, unless it is -1, `shares`, as tensors of a
 * result.  Sets *out only where all went well. */
int learn_classes_result(shoal_result **out, shoal_partial *merged, int labels, int shares, int64_t rows,
                         int64_t classes);
/* SHOAL_BROKEN for a result that is not that. */
int learn_classes_result_check(const shoal_result *result, int64_t rows, int64_t classes, bool probabilities);

#endif
