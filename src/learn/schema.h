/* What a model remembers of the columns it was trained on: their names, the target, the words that classes stand for,
 * and what was done to values before the learner saw them.
 *
 *     learn_schema schema = {0};
 *     status = learn_schema_note(&schema, data, target, true);     // while training
 *     json_t *object = learn_schema_json(&schema);                 // into the model, and into a job's settings
 *     status = learn_schema_take(&schema, object, "m.safetensors");
 *     status = learn_schema_match(columns, &schema, new_data, all, "new.csv", "m.safetensors");
 *     learn_schema_release(&schema);
 *
 * A schema may come from anyone: learn_schema_take checks all of it. */
#ifndef LEARN_SCHEMA_H
#define LEARN_SCHEMA_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <shoal/data.h>

/* All zero: nothing is known. */
typedef struct learn_schema {
    int64_t columns;       /* that the model is applied to: the target is not one of them */
    char **names;          /* one a column, all different and fit to be shown; NULL for columns without names */
    char *target;          /* the name of the target's column; NULL for none */
    int64_t target_column; /* its number from 1 in rows that hold it; 0: there is no target, or it was a file */
    char **classes;        /* words, ascending by bytes: word i is class i; NULL when classes are numbers */
    int64_t classes_count;
    double *fill;         /* what takes the place of missing values, one a column; NULL for none */
    double *mean, *scale; /* of --standardise, one a column each; NULL when values are used as they are */
} learn_schema;

void learn_schema_release(learn_schema *schema);
int learn_schema_copy(learn_schema *out, const learn_schema *from);

/* Notes the columns of a data set; `target` is that of the target from 0, or -1 for none.  Unless it is `in_file`, it
 * was put there by the caller, and rows like these have no such column.  Names that do not tell the columns apart are
 * not kept. */
int learn_schema_note(learn_schema *schema, const shoal_data *data, int64_t target, bool in_file);
/* Notes the words of classes, which are in order. */
int learn_schema_note_classes(learn_schema *schema, const char *const *words, int64_t count);

/* Whether there is anything that rows without names and options would not tell. */
bool learn_schema_says_more(const learn_schema *schema);
/* NULL when out of memory. */
json_t *learn_schema_json(const learn_schema *schema);
/* The way back, into a schema that is all zero.  SHOAL_INVALID, naming `path`, for what is not a schema. */
int learn_schema_take(learn_schema *out, const json_t *object, const char *path);

/* Finds the columns of a model among the first `count` of a data set, by name; both have names.  Fills schema->columns
 * places from 0.  SHOAL_INVALID names the columns that are missing. */
int learn_schema_match(int64_t *columns, const learn_schema *schema, const shoal_data *data, int64_t count,
                       const char *data_name, const char *model);
/* The column of that name from 0; -1 when there is none. */
int64_t learn_column_find(const shoal_data *data, const char *name);
/* Whether every column of the data has a name. */
bool learn_columns_named(const shoal_data *data);

#endif
