/* The words of `shoal map`: arguments from several sources, and the command that each of their combinations makes.
 *
 *     map_table table = {0};
 *     map_template *template = NULL;
 *     int status = map_table_add(&table, values, count);
 *     if (status == SHOAL_OK)
 *         status = map_template_new(&template, "convert {} {.}.png", table.columns, true);
 *     for (int64_t row = 0; row < table.rows; row++)
 *         status = map_template_fill(&command, template, &table, row, true);
 *
 * What stands for an argument in a template is what GNU parallel has: {} {.} {/} {//} {/.} {#}, and with the number of
 * a source {1} {2.} {3/}. */
#ifndef RUN_MAP_WORDS_H
#define RUN_MAP_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Rows of arguments, one for each job; the texts are the caller's. */
typedef struct map_table {
    int columns;
    int64_t rows;
    const char **cell; /* row after row */
} map_table;

/* Adds a source whose values go with the rows one by one, until one of them ends. */
int map_table_add(map_table *table, const char *const *value, int64_t count);
/* Puts each row together with each of another table, whose rows vary fastest. */
int map_table_cross(map_table *table, const map_table *with);
void map_table_release(map_table *table);

typedef struct map_template map_template;

/* SHOAL_USAGE for one that asks for what there is not.  Without anything that stands for an argument, {} is added at
 * its end if `completes`.  NULL: the arguments are the command. */
int map_template_new(map_template **out, const char *text, int columns, bool completes);
void map_template_free(map_template **template);
/* Its text for a row; `quoted`: for a shell, as words that are just these arguments. */
int map_template_fill(char **out, const map_template *template, const map_table *table, int64_t row, bool quoted);

/* Cuts a text at each end of a line, or at each NUL: values that lie in it, which changes.  *value is base_alloc'd. */
int map_cut_values(const char ***value, int64_t *count, char *text, size_t size, char end);

#endif
