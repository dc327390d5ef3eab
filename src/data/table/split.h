/* Rows dealt out to files: a training and a test set, or all rows shuffled.
 *
 *     data_split split;
 *     const data_split_request request = {.data = "iris.csv", .train = "train.csv", .test = "test.csv",
 *                                         .test_size = "0.2", .stratify = "species", .seed = 1};
 *     int status = data_split_open(&split, &request);       // which rows go where: split.rows, split.share, ...
 *     if (status == SHOAL_OK) status = data_split_write(&split);
 *     data_split_close(&split);
 *
 * Which rows go where, and in which order, depends on the seed, on how many rows there are and on the classes, and on
 * nothing else: not on the format, the machine or the memory.  Text that becomes text keeps its lines. */
#ifndef SPLIT_H
#define SPLIT_H

#include <shoal/data.h>

#include "row_order.h"
#include "strata.h"

enum { DATA_SPLIT_PARTS = 2 };

typedef struct data_split_request {
    const char *data;
    shoal_data_options reading;
    const char *train, *test;           /* the files; without `test`, all rows go to `train` */
    const char *test_size, *train_size; /* "0.2" or "30"; NULL: what the other leaves, and a quarter for the test */
    const char *stratify;               /* a column or a file; NULL: any row is as good as another */
    uint64_t seed;
    bool in_order; /* rows stay in order, the first ones for training */
} data_split_request;

/* One of the files. */
typedef struct data_split_part {
    const char *path;
    int64_t rows;
    int64_t *of_class;   /* how many rows of each class; NULL without classes */
    data_border *border; /* of each class, behind the part's rows */
    bool text;           /* lines of text are written, and not values */
    char delimiter;      /* of them; 0: as they are */
    int64_t shape[DATA_NPY_RANK_MOST];
    int rank;
    data_writer *writer;
} data_split_part;

typedef struct data_split {
    data_split_request request;
    shoal_data *data;   /* the rows: lines of text, or values */
    shoal_data *values; /* the values of the same rows, if a part needs them and `data` has lines */
    data_order order;
    data_strata strata; /* of none without classes */
    int parts;
    data_split_part part[DATA_SPLIT_PARTS]; /* of a split: train, test */
} data_split;

/* Reads the data and decides which rows go where.  Close it in any case. */
int data_split_open(data_split *out, const data_split_request *request);
int data_split_write(data_split *split);
void data_split_close(data_split *split);
/* The data set whose values a part gets, for its type and columns. */
static inline shoal_data *data_split_values(const data_split *split)
{
    return split->values ? split->values : split->data;
}

/* "0.2" of that many rows, rounded up or down, or "30" of them.  SHOAL_USAGE for what is neither. */
int data_split_size(int64_t *out, const char *option, const char *size, int64_t rows, bool up);

#endif
