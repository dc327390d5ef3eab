/* Which columns of DATA a run uses.
 *
 * Training notes what its columns are called, and where the target is, for the model.  A run that has a model, to apply
 * it or to start from it, is brought to the model's columns: by name where both have names, else by number.  All of it
 * happens where rows are loaded, so that ranks that share them see the same. */
#ifndef RUN_COLUMNS_H
#define RUN_COLUMNS_H

#include <shoal/data.h>

#include "learn/schema.h"

struct shoal_outcome;

typedef struct run_columns {
    learn_schema schema; /* of the rows as the learner sees them */
    const char *model;   /* whose columns the rows must have: the file that `schema` is from; NULL: theirs are noted */
    int64_t target;      /* the column of the target from 1; 0 for none */
    bool target_file;    /* the target was read from a file and is not a column of DATA */
    /* Of rows that a model is applied to: the truth that predictions are compared with. */
    bool wants_known, needs_known; /* if there is any; there must be */
    double *known;                 /* one a row; NULL for none */
    char **known_words;            /* what its values 0, 1, ... stand for; NULL when they are numbers */
    int64_t known_words_count;
    char *note; /* what people are told of columns that were reordered or left out; NULL for nothing */
} run_columns;

/* Finds the target, and brings the rows to the model's columns or notes theirs. */
int run_columns_settle(struct shoal_outcome *outcome);
/* Then, when no value is missing any more: brings values to what the model, the job or --standardise says. */
int run_columns_scale(struct shoal_outcome *outcome);
void run_columns_release(run_columns *columns);

#endif
