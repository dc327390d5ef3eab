/* libhdf5 as a table of functions, found at run time.
 *
 * The library is not safe for threads, so that everything between hdf5_begin and hdf5_end is under one lock; and it
 * prints its errors unless told not to, which is undone at the end, since others in the process may use it, too. */
#ifndef HDF5_LIBRARY_H
#define HDF5_LIBRARY_H

#define H5_USE_110_API
#include <hdf5.h>

#define HDF5_FUNCTIONS(FUNCTION)                                                                                       \
    FUNCTION(H5open)                                                                                                   \
    FUNCTION(H5get_libversion)                                                                                         \
    FUNCTION(H5free_memory)                                                                                            \
    FUNCTION(H5Eget_auto2)                                                                                             \
    FUNCTION(H5Eset_auto2)                                                                                             \
    FUNCTION(H5Fopen)                                                                                                  \
    FUNCTION(H5Gget_info)                                                                                              \
    FUNCTION(H5Lget_name_by_idx)                                                                                       \
    FUNCTION(H5Oopen)                                                                                                  \
    FUNCTION(H5Idec_ref)                                                                                               \
    FUNCTION(H5Iget_type)                                                                                              \
    FUNCTION(H5Aexists)                                                                                                \
    FUNCTION(H5Aopen)                                                                                                  \
    FUNCTION(H5Aget_type)                                                                                              \
    FUNCTION(H5Aget_space)                                                                                             \
    FUNCTION(H5Aread)                                                                                                  \
    FUNCTION(H5Dget_space)                                                                                             \
    FUNCTION(H5Dget_type)                                                                                              \
    FUNCTION(H5Dget_create_plist)                                                                                      \
    FUNCTION(H5Dget_offset)                                                                                            \
    FUNCTION(H5Dget_storage_size)                                                                                      \
    FUNCTION(H5Dget_chunk_storage_size)                                                                                \
    FUNCTION(H5Dread)                                                                                                  \
    FUNCTION(H5Screate_simple)                                                                                         \
    FUNCTION(H5Sget_simple_extent_type)                                                                                \
    FUNCTION(H5Sget_simple_extent_ndims)                                                                               \
    FUNCTION(H5Sget_simple_extent_dims)                                                                                \
    FUNCTION(H5Sget_simple_extent_npoints)                                                                             \
    FUNCTION(H5Sselect_hyperslab)                                                                                      \
    FUNCTION(H5Tget_class)                                                                                             \
    FUNCTION(H5Tget_size)                                                                                              \
    FUNCTION(H5Tget_order)                                                                                             \
    FUNCTION(H5Tget_sign)                                                                                              \
    FUNCTION(H5Tget_precision)                                                                                         \
    FUNCTION(H5Tget_offset)                                                                                            \
    FUNCTION(H5Tget_fields)                                                                                            \
    FUNCTION(H5Tget_ebias)                                                                                             \
    FUNCTION(H5Tget_norm)                                                                                              \
    FUNCTION(H5Tis_variable_str)                                                                                       \
    FUNCTION(H5Tget_super)                                                                                             \
    FUNCTION(H5Tget_nmembers)                                                                                          \
    FUNCTION(H5Tget_member_name)                                                                                       \
    FUNCTION(H5Pget_layout)                                                                                            \
    FUNCTION(H5Pget_chunk)                                                                                             \
    FUNCTION(H5Pget_nfilters)                                                                                          \
    FUNCTION(H5Pget_filter2)                                                                                           \
    FUNCTION(H5Pget_external_count)                                                                                    \
    FUNCTION(H5Zfilter_avail)

typedef struct hdf5_library {
#define HDF5_DECLARE(name) __typeof__(name) *name;
    HDF5_FUNCTIONS(HDF5_DECLARE)
#undef HDF5_DECLARE
    /* Under other names since version 1.12. */
    herr_t (*get_link_info)(hid_t at, const char *group, H5_index_t index, H5_iter_order_t order, hsize_t n,
                            H5L_info_t *out, hid_t properties);
    herr_t (*get_object_info)(hid_t object, H5O_info_t *out);
    /* Only since versions 1.10.3 and 1.10.7; NULL before. */
    herr_t (*H5Dread_chunk)(hid_t dataset, hid_t properties, const hsize_t *start, uint32_t *filters_off, void *out);
    herr_t (*H5Pset_file_locking)(hid_t properties, hbool_t lock, hbool_t or_not);
    hid_t (*H5Pcreate)(hid_t of);
    const hid_t *file_access;
} hdf5_library;

/* Takes the lock, and gives the functions; loads the library first, if it is not loaded yet.  `path` is of the file
 * that needs it, for the sentence that says that it is not there. */
int hdf5_begin(const hdf5_library **out, const char *path);
void hdf5_end(const hdf5_library *hdf5);

/* Closes an object of any kind, and leaves -1. */
static inline void hdf5_close(const hdf5_library *hdf5, hid_t *id)
{
    if (*id >= 0)
        hdf5->H5Idec_ref(*id);
    *id = -1;
}

#endif
