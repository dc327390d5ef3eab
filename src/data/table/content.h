/* What an output file holds: its name must end accordingly, and a file that is there already is replaced only by more
 * of the same.
 *
 *     const data_content labels = {.kind = DATA_CONTENT_ARRAY, .type = "int32", .rank = 1};
 *     status = data_content_check_name("--labels", "l.npy", &labels);   // before anything is done
 *     status = data_content_check_old("--labels", "l.npy", &labels);    // before work that would be lost
 *
 * Of an old file no more is read than its start; it may hold anything.  All of that start must be what the command
 * would write there: in doubt a file is not replaced. */
#ifndef DATA_CONTENT_H
#define DATA_CONTENT_H

#include <stdbool.h>
#include <stdint.h>

#include "data/array.h"

typedef enum data_content_kind {
    DATA_CONTENT_ANY,     /* no ending is asked for, and any file is replaced */
    DATA_CONTENT_ARRAY,   /* see array.h */
    DATA_CONTENT_RESULT,  /* the same, or .safetensors */
    DATA_CONTENT_MODEL,   /* .safetensors */
    DATA_CONTENT_PICTURE, /* .png or .svg */
    DATA_CONTENT_TRACE,   /* .jsonl */
} data_content_kind;

enum { DATA_CONTENT_LATER = -1 };

/* What will be written, as far as it is known. */
typedef struct data_content {
    data_content_kind kind;
    const char *format; /* of an array: "csv.gz"; NULL: by the path's ending */
    const char *type;   /* of its values: "float64", or "words"; NULL: unknown */
    int rank;           /* of an array; 0: unknown */
    int64_t rows;       /* of raw values; 0: unknown; DATA_CONTENT_LATER: the file is checked again once it is known */
    int64_t columns;    /* 0: unknown */
    data_codes words;   /* of "words": those that may be written */
    const shoal_data
        *names; /* has the names of the columns if text begins with them (data_write_has_header), or NULL */
    const shoal_data *lines; /* text that is rows of this one (data_lines.h) as they are, or NULL */
    char delimiter;          /* between their columns; 0: that of the rows */
    const char *learner;     /* of a model or result as .safetensors; for other files of tensors, what kind they are */
} data_content;

/* SHOAL_USAGE, with all endings there are, for a name that does not say a format of this kind. */
int data_content_check_name(const char *option, const char *path, const data_content *content);
/* SHOAL_USAGE, with what the file holds and --force, when there is a file that holds something else.  Empty files may
 * be replaced; what is not a plain file, and standard output, is written to and not replaced. */
int data_content_check_old(const char *option, const char *path, const data_content *content);
/* A name beside a path that nothing has yet: "labels-2.npy". */
int data_content_beside(char **out, const char *path);

#endif
