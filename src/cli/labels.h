/* --labels FILE: labels that lie in a file of their own, beside the rows they belong to. */
#ifndef CLI_LABELS_H
#define CLI_LABELS_H

#include "cli.h"

/* Reads one label a row, as a column or as a row of any data file, and makes it the last column of job->data, which
 * then lies in memory. The values stay what they are: the type is that of the data where it holds all labels, otherwise
 * the smallest that holds both. */
int cli_labels_join(cli_job *job, const char *path);

#endif
