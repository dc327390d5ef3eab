/* Arrays as files: the ending of the name chooses the format.
 *
 *     const int64_t shape[] = {rows, columns};
 *     data_array_write("centres.csv", &(data_array){.values = centres, SHOAL_FLOAT64, 2, shape});
 *
 * Formats are .npy, .csv, .tsv, .txt (blanks), .idx, .raw and .bin; text and .idx may be compressed (.csv.gz, .csv.xz,
 * .csv.bz2, .csv.zst).  "-" is
 * standard output, as .csv; devices and pipes have no ending and get .npy.  Text has one line for each entry of the
 * first dimension, with all others side by side, which is how data files of more dimensions are read. */
#ifndef DATA_ARRAY_H
#define DATA_ARRAY_H

#include <stdint.h>
#include <shoal/data.h>

#define DATA_ARRAY_ENDINGS ".npy, .csv, .tsv, .txt, .idx, .raw or .bin (text and .idx also with .gz, .xz, .bz2 or .zst)"

/* What codes mean: names of classes.  UTF-8; a byte that is not becomes a lone surrogate in .npy, as Python has it. */
typedef struct data_codes {
    const char *const *word; /* NULL: values are numbers, and written as such */
    int64_t count;
} data_codes;

typedef struct data_array {
    const void *values;
    shoal_type type;
    int rank;
    const int64_t *shape;
    data_codes words;   /* written in place of the values, which are codes from 0; not to .idx, .raw and .bin */
    const char *format; /* such as "csv.gz"; NULL: by the path's ending */
} data_array;

/* Writes an array under a temporary name and renames it into place. */
int data_array_write(const char *path, const data_array *array);

#endif
