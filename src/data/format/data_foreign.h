/* Files that are not read, by name: a Parquet file is told what it is and how to convert it, and not that it is neither
 * npy nor text.  All of it is one table. */
#ifndef DATA_FOREIGN_H
#define DATA_FOREIGN_H

#include <stddef.h>

typedef struct data_foreign data_foreign;
extern const data_foreign data_foreign_zip; /* a zip file of anything */

/* What a zip file with such a member is; NULL when the member says nothing. */
const data_foreign *data_foreign_of_member(const char *name, size_t bytes);
/* SHOAL_INVALID: what it is, what is read instead, how to get there. */
int data_foreign_fail(const char *path, const data_foreign *kind);
/* What a file with these first bytes is, with its article; NULL when nobody knows.  Images are among them. */
const char *data_foreign_name(const unsigned char *head, size_t size);
/* The formats that are read, for messages: "npy, npz, ... or text". */
#define DATA_FORMATS_READ "npy, npz, TFRecord, HDF5, MATLAB, IDX, .fvecs, svmlight and text"

#endif
