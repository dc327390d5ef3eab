/* What a data set of an HDF5 file holds.  See hdf5_dataset.h. */
#include "hdf5_dataset.h"

#include <stdio.h>
#include <string.h>

/* ---- types ------------------------------------------------------------------------------------------------------- */

/* Where the sign, the exponent and the mantissa of a float of IEEE 754 are. */
static bool is_ieee(const hdf5_library *hdf5, hid_t type, size_t size)
{
    static const struct {
        size_t size, exponent, mantissa, bias;
    } known[] = {{2, 5, 10, 15}, {4, 8, 23, 127}, {8, 11, 52, 1023}};
    size_t sign = 0, at = 0, exponent = 0, mantissa_at = 0, mantissa = 0;
    if (hdf5->H5Tget_fields(type, &sign, &at, &exponent, &mantissa_at, &mantissa) < 0 ||
        hdf5->H5Tget_norm(type) != H5T_NORM_IMPLIED)
        return false;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].size == size)
            return sign == 8 * size - 1 && at == known[i].mantissa && exponent == known[i].exponent &&
                   mantissa_at == 0 && mantissa == known[i].mantissa && hdf5->H5Tget_ebias(type) == known[i].bias;
    return false;
}

static bool type_of_float(hdf5_type *out, const hdf5_library *hdf5, hid_t type)
{
    const size_t size = hdf5->H5Tget_size(type);
    out->is_half = size == 2;
    out->type = size == 8 ? SHOAL_FLOAT64 : SHOAL_FLOAT32;
    snprintf(out->name, sizeof out->name, "float%zu", 8 * size);
    return is_ieee(hdf5, type, size);
}

static bool type_of_integer(hdf5_type *out, const hdf5_library *hdf5, hid_t type)
{
    static const shoal_type whole[2][4] = {{SHOAL_UINT8, SHOAL_UINT16, SHOAL_UINT32, SHOAL_UINT64},
                                           {SHOAL_INT8, SHOAL_INT16, SHOAL_INT32, SHOAL_INT64}};
    const size_t size = hdf5->H5Tget_size(type);
    const H5T_sign_t sign = hdf5->H5Tget_sign(type);
    const int power = size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : size == 8 ? 3 : -1;
    snprintf(out->name, sizeof out->name, "integers of %zu bytes", size);
    if (power < 0 || (sign != H5T_SGN_NONE && sign != H5T_SGN_2) || hdf5->H5Tget_precision(type) != 8 * size ||
        hdf5->H5Tget_offset(type) != 0)
        return false;
    out->type = whole[sign == H5T_SGN_2][power];
    snprintf(out->name, sizeof out->name, "%s", shoal_type_name(out->type));
    return true;
}

/* h5py has bool as an enumeration of FALSE and TRUE; any other is the integers that stand for its words. */
static bool type_of_enumeration(hdf5_type *out, const hdf5_library *hdf5, hid_t type)
{
    hid_t super = hdf5->H5Tget_super(type);
    bool is_number = super >= 0 && type_of_integer(out, hdf5, super);
    if (is_number && hdf5->H5Tget_size(type) == 1 && hdf5->H5Tget_nmembers(type) == 2) {
        char *first = hdf5->H5Tget_member_name(type, 0), *second = hdf5->H5Tget_member_name(type, 1);
        if (first && second && strcmp(first, "FALSE") == 0 && strcmp(second, "TRUE") == 0) {
            out->type = SHOAL_BOOL;
            strcpy(out->name, "bool");
        }
        hdf5->H5free_memory(first);
        hdf5->H5free_memory(second);
    }
    hdf5_close(hdf5, &super);
    return is_number;
}

/* h5py has complex numbers as r and i, MATLAB as real and imag. */
static bool is_complex(const hdf5_library *hdf5, hid_t type)
{
    if (hdf5->H5Tget_nmembers(type) != 2)
        return false;
    char *first = hdf5->H5Tget_member_name(type, 0), *second = hdf5->H5Tget_member_name(type, 1);
    bool is = first && second &&
              ((strcmp(first, "r") == 0 && strcmp(second, "i") == 0) ||
               (strcmp(first, "real") == 0 && strcmp(second, "imag") == 0));
    hdf5->H5free_memory(first);
    hdf5->H5free_memory(second);
    return is;
}

static const char *name_of_class(const hdf5_library *hdf5, hid_t type)
{
    switch (hdf5->H5Tget_class(type)) {
    case H5T_STRING: return "text";
    case H5T_COMPOUND: return is_complex(hdf5, type) ? "complex numbers" : "compound values";
    case H5T_REFERENCE: return "references";
    case H5T_VLEN: return "lists of different length";
    case H5T_ARRAY: return "arrays";
    case H5T_OPAQUE: return "opaque bytes";
    case H5T_BITFIELD: return "bit fields";
    case H5T_TIME: return "times";
    default: return "values of an unknown type";
    }
}

/* MATLAB has truth values and text as integers, and says so beside them. */
static void apply_matlab_class(hdf5_type *out, const hdf5_library *hdf5, hid_t dataset)
{
    char class[32] = "";
    if (!hdf5_attribute(class, sizeof class, hdf5, dataset, "MATLAB_class"))
        return;
    if (strcmp(class, "logical") == 0 && out->type == SHOAL_UINT8) {
        out->type = SHOAL_BOOL;
        strcpy(out->name, "bool");
    } else if (strcmp(class, "char") == 0) {
        out->is_number = false;
        strcpy(out->name, "text");
    } else if (strcmp(class, "cell") == 0 || strcmp(class, "struct") == 0 ||
               hdf5_has_attribute(hdf5, dataset, "MATLAB_empty")) {
        out->is_number = false;
        snprintf(out->name, sizeof out->name, "%s",
                 strcmp(class, "cell") == 0     ? "cells"
                 : strcmp(class, "struct") == 0 ? "structs"
                                                : "nothing");
    }
}

hdf5_type hdf5_type_of(const hdf5_library *hdf5, hid_t dataset)
{
    hdf5_type out = {0};
    hid_t type = hdf5->H5Dget_type(dataset);
    const H5T_class_t class = hdf5->H5Tget_class(type);
    if (class == H5T_FLOAT)
        out.is_number = type_of_float(&out, hdf5, type);
    else if (class == H5T_INTEGER)
        out.is_number = type_of_integer(&out, hdf5, type);
    else if (class == H5T_ENUM)
        out.is_number = type_of_enumeration(&out, hdf5, type);
    else
        snprintf(out.name, sizeof out.name, "%s", name_of_class(hdf5, type));
    if (out.is_number) {
        const H5T_order_t order = hdf5->H5Tget_order(type);
        const bool little = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, one_byte = hdf5->H5Tget_size(type) == 1;
        out.is_number = one_byte || order == H5T_ORDER_LE || order == H5T_ORDER_BE;
        out.swapped = !one_byte && order == (little ? H5T_ORDER_BE : H5T_ORDER_LE);
        apply_matlab_class(&out, hdf5, dataset);
    }
    hdf5_close(hdf5, &type);
    return out;
}

/* ---- shape and attributes ---------------------------------------------------------------------------------------- */

int hdf5_shape_of(hsize_t shape[H5S_MAX_RANK], const hdf5_library *hdf5, hid_t dataset)
{
    hid_t space = hdf5->H5Dget_space(dataset);
    int rank = -1;
    if (hdf5->H5Sget_simple_extent_type(space) != H5S_NULL)
        rank = hdf5->H5Sget_simple_extent_ndims(space);
    if (rank > H5S_MAX_RANK || (rank > 0 && hdf5->H5Sget_simple_extent_dims(space, shape, NULL) != rank))
        rank = -1;
    hdf5_close(hdf5, &space);
    return rank;
}

bool hdf5_has_attribute(const hdf5_library *hdf5, hid_t object, const char *name)
{
    return hdf5->H5Aexists(object, name) > 0;
}

bool hdf5_attribute(char *out, size_t room, const hdf5_library *hdf5, hid_t object, const char *name)
{
    bool found = false;
    if (!hdf5_has_attribute(hdf5, object, name))
        return false;
    hid_t attribute = hdf5->H5Aopen(object, name, H5P_DEFAULT), type = hdf5->H5Aget_type(attribute);
    hid_t space = hdf5->H5Aget_space(attribute);
    const size_t size = hdf5->H5Tget_size(type);
    /* Of one length, which has room here. */
    if (hdf5->H5Tget_class(type) == H5T_STRING && size > 0 && size < room && hdf5->H5Tis_variable_str(type) == 0 &&
        hdf5->H5Sget_simple_extent_npoints(space) == 1) {
        memset(out, 0, room);
        found = hdf5->H5Aread(attribute, type, out) >= 0;
    }
    hdf5_close(hdf5, &space);
    hdf5_close(hdf5, &type);
    hdf5_close(hdf5, &attribute);
    return found;
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

bool hdf5_is_matlab(const data_source *source)
{
    static const char start[] = "MATLAB 7.3 MAT-file";
    return source->head_size > sizeof start && memcmp(source->head, start, sizeof start - 1) == 0;
}

/* Locks are for those who write while others read; and on some network file systems they fail. */
static hid_t access_without_locks(const hdf5_library *hdf5)
{
    hid_t access =
        hdf5->H5Pset_file_locking && hdf5->H5Pcreate && hdf5->file_access ? hdf5->H5Pcreate(*hdf5->file_access) : -1;
    if (access >= 0)
        hdf5->H5Pset_file_locking(access, false, true);
    return access;
}

/* By its descriptor, so that it is the very file that was recognised. */
int hdf5_open_file(hid_t *out, const hdf5_library *hdf5, const data_source *source)
{
    enum { READ_ONLY = 0 }; /* H5F_ACC_RDONLY, which calls functions of the library that nobody linked */
    char path[64];
    if (!source->mappable)
        return shoal_fail(SHOAL_USAGE,
                          "%s is an HDF5 file, which is read only as a plain file, not compressed or from a pipe; put "
                          "it into a file of its own",
                          source->path);
    snprintf(path, sizeof path, "/proc/self/fd/%d", source->descriptor);
    hid_t access = access_without_locks(hdf5);
    *out = hdf5->H5Fopen(path, READ_ONLY, access >= 0 ? access : H5P_DEFAULT);
    hdf5_close(hdf5, &access);
    if (*out < 0)
        return shoal_fail(SHOAL_INVALID, "%s: the HDF5 file is cut off, damaged, or still open for writing",
                          source->path);
    return SHOAL_OK;
}
