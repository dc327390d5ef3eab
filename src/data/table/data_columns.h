/* Which columns are read: --columns, --drop-column and --target, as names and numbers. */
#ifndef DATA_COLUMNS_H
#define DATA_COLUMNS_H

#include <shoal/data.h>

/* A table as its file has it. */
typedef struct data_table_columns {
    const char *path; /* for messages */
    int64_t count;
    const char *names; /* NULL without names */
    const size_t *offsets;
    int64_t label; /* the column that the file says is the target; -1: it does not say */
} data_table_columns;

/* The columns to read. */
typedef struct data_chosen {
    int64_t *columns; /* of the file, from 0, in the order in which they are read; freed with base_free */
    int64_t count;
    int64_t target; /* which of `columns` is the target; -1: none */
} data_chosen;

/* SHOAL_USAGE for a name or number that is not a column, with the columns there are.  A target that is not a column
 * is no target. */
int data_columns_choose(data_chosen *out, const data_table_columns *table, const shoal_data_options *options);
/* One column by name or number, for an option that may also name a file: -1 for what is no column but a `file`, and
 * SHOAL_USAGE for what is neither. */
int data_columns_find(int64_t *out, const data_table_columns *table, const char *option, const char *column, bool file);
/* The columns that one list names, from 0, in its order; `option` is what messages call it.  The caller frees *out. */
int data_columns_list(int64_t **out, int64_t *count, const data_table_columns *table, const char *option,
                      const char *list);
/* Chooses columns of a data set that has them all. */
int data_columns_apply(shoal_data **data, const shoal_data_options *options);
/* "; did you mean "age"?", or what columns there are, to end a sentence with. */
int data_columns_advice(char **out, const data_table_columns *table, const char *wrong);
/* A data set's columns. */
data_table_columns data_columns_of(const shoal_data *data);

#endif
