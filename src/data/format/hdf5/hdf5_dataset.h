/* One data set of an HDF5 file: what its values are, and where they are kept. */
#ifndef HDF5_DATASET_H
#define HDF5_DATASET_H

#include <stdbool.h>

#include "data/data_internal.h"
#include "data/format/data_members.h"
#include "hdf5_library.h"

/* What values are, in the file and here. */
typedef struct hdf5_type {
    bool is_number;                    /* of a type that is read; the rest but for `name` is set only then */
    shoal_type type;                   /* that rows have */
    bool swapped;                      /* the file has the other byte order */
    bool is_half;                      /* the file has float16, and rows have float32 */
    char name[DATA_MEMBER_TYPE_BYTES]; /* "float16", "text", "compound values", ... */
} hdf5_type;

hdf5_type hdf5_type_of(const hdf5_library *hdf5, hid_t dataset);
/* The dimensions, outermost first; -1 for a data set that is empty by declaration. */
int hdf5_shape_of(hsize_t shape[H5S_MAX_RANK], const hdf5_library *hdf5, hid_t dataset);
/* The text of an attribute, such as MATLAB_class; false when there is none. */
bool hdf5_attribute(char *out, size_t room, const hdf5_library *hdf5, hid_t object, const char *name);
bool hdf5_has_attribute(const hdf5_library *hdf5, hid_t object, const char *name);

/* Opens the file that a source has, to be read. */
int hdf5_open_file(hid_t *out, const hdf5_library *hdf5, const data_source *source);
/* Whether it was written by MATLAB, which has dimensions in the reverse order. */
bool hdf5_is_matlab(const data_source *source);

/* An open data set on its way into rows. */
typedef struct hdf5_reading {
    const hdf5_library *hdf5;
    shoal_data *data;
    data_source *source;
    const char *name;
    hid_t dataset, type_in_file, properties;
    hdf5_type type;
    int rank;
    hsize_t shape[H5S_MAX_RANK];
    hsize_t chunk[H5S_MAX_RANK];
    H5D_layout_t layout;
} hdf5_reading;

/* Reads all values as the file has them, `size` bytes each, into `out`. */
int hdf5_read_values(const hdf5_reading *self, unsigned char *out, size_t size);
/* The same by threads, for chunks that are compressed by gzip; *done says whether it could. */
int hdf5_read_chunks(bool *done, const hdf5_reading *self, unsigned char *out, size_t size);
int hdf5_fail_damaged(const hdf5_reading *self);

#endif
