/* --labels FILE: labels that lie in a file of their own, beside the rows they belong to. */
#ifndef RUN_LABELS_H
#define RUN_LABELS_H

#include "outcome.h"

/* Reads one label a row, as a column or as a row of any data file, and makes it the last column of outcome->data, which
 * then lies in memory. The values stay what they are: the type is that of the data where it holds all labels, otherwise
 * the smallest that holds both. */
int run_labels_join(shoal_outcome *outcome, const char *path);

#endif
