/* The classes of rows, by a column of theirs or by a file, and how many rows of each a part of them gets. */
#ifndef STRATA_H
#define STRATA_H

#include <shoal/data.h>

#include "data/data_internal.h"

typedef struct data_strata {
    char *source;      /* "column species of iris.csv", for messages */
    data_buffer group; /* the class of each row, an int32_t counted from 0; they ascend with their values or words */
    int64_t count;     /* of classes */
    double *value;     /* of each class; what it means when there are no words */
    char **words;      /* that the values are numbers of; NULL when they are values */
    int64_t words_count;
    int64_t *rows; /* of each class */
} data_strata;

/* The classes of an open data set, which has all its columns: by one of them, or by a file with one value for each row.
 * SHOAL_INVALID for missing values and for more than 4,096 classes. */
int data_strata_open(data_strata *out, shoal_data *data, const char *stratify, const shoal_data_options *options);
void data_strata_close(data_strata *strata);
static inline const int32_t *data_strata_group(const data_strata *strata)
{
    return (const int32_t *)(const void *)strata->group.bytes;
}
/* What a class is called: its word, or its value as text. */
const char *data_strata_name(char room[DATA_NUMBER_CHARS], const data_strata *strata, int64_t group);

/* Shares `wanted` among classes in proportion to `rows`, by largest remainder: each gets its share, rounded down or up.
 * Of equal remainders the seed decides. */
int data_strata_share(int64_t *out, const int64_t *rows, int64_t count, int64_t wanted, uint64_t seed);

#endif
