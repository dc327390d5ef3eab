/* Where the rows of a data set are stored, so that other processes can read them from there. */
#ifndef DATA_PLACE_H
#define DATA_PLACE_H

#include <shoal/data.h>

typedef enum data_place_kind {
    DATA_HERE,    /* only in this process */
    DATA_IN_FILE, /* in a file, row by row in native byte order, from `offset` on */
    DATA_IN_BLOB, /* likewise in a blob of a store */
    DATA_MADE     /* nowhere: `address` says how to make them */
} data_place_kind;

typedef struct data_place {
    data_place_kind kind;
    const char *address; /* path, URL or gen: address; all texts belong to the data set */
    const char *key;     /* DATA_IN_BLOB: in the store that the URL names */
    const char *etag;    /* DATA_IN_BLOB */
    int64_t offset;      /* of row 0 */
    int64_t size;        /* of the whole file or blob */
} data_place;

data_place data_place_of(const shoal_data *data);

/* A blob of a store. */
typedef struct data_blob {
    const char *url, *key, *etag;
    int64_t size;
} data_blob;

/* Roughly how many of a blob's first bytes data_describe needs, if it starts like this. */
size_t data_describe_bytes(const void *head, size_t size);
/* A data set with a shape but no values, from the first bytes of a blob: .npy, or raw as the options say. */
int data_describe(shoal_data **out, const data_blob *blob, const void *head, size_t head_size,
                  const shoal_data_options *options);

#endif
