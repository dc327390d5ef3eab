/* Tables of text that are small and have names in their fields: prices, results, runs.  One row a line, commas between
 * fields, which may be quoted; blank lines and lines that begin with # don't count.
 *
 *     data_table table;
 *     int status = data_table_read(&table, path, file, "a table of prices");
 *     while (status == SHOAL_OK && data_table_next(&status, &table))
 *         ... table.field[0] to table.field[table.fields - 1], of line table.line ...
 *     data_table_release(&table);
 *
 * Numbers in bulk are shoal_data's; both take lines apart by data_text_fields.c. */
#ifndef DATA_TABLE_H
#define DATA_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { DATA_TABLE_FIELDS = 256 };

typedef struct data_table {
    const char *name;               /* for messages; the caller's */
    char *text;                     /* a copy that is cut into fields */
    char *at, *end;                 /* what was not looked at yet */
    int64_t line;                   /* of the fields, from 1 */
    char *field[DATA_TABLE_FIELDS]; /* without quotes and the blanks around them */
    int fields;
} data_table;

/* SHOAL_INVALID for UTF-16.  Release it, whatever was returned. */
int data_table_init(data_table *out, const char *name, const char *text, size_t length);
/* The same from a file, or a pipe, of which nothing was read yet; SHOAL_INVALID when it is too large to be `what`. */
int data_table_read(data_table *out, const char *name, FILE *file, const char *what);
void data_table_release(data_table *table);
/* Takes the next row apart.  False at the end, or when *status is a failure: SHOAL_INVALID names the line that has a
 * control character, is not UTF-8, has too many fields, or a quote that is not closed, or not where the field ends. */
bool data_table_next(int *status, data_table *table);

#endif
