/* Rows of one data set of an HDF5 file: mapped where they lie in one piece, otherwise read once, straight to where they
 * stay. */
#include "hdf5.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "hdf5_dataset.h"

enum { SLAB_BYTES = 32 << 20 };

/* What little is stored may stand for: gzip makes nothing more than 1,032 times smaller, and rows that were never
 * written are allowed this much. */
static const uint64_t stored_times = 1100, never_written = (uint64_t)1 << 30;

int hdf5_fail_damaged(const hdf5_reading *self)
{
    return shoal_fail(SHOAL_INVALID, "%s: the rows of %s can't be read: the file is cut off or damaged",
                      self->source->path, self->name);
}

/* ---- what can be read -------------------------------------------------------------------------------------------- */

/* Filters other than those of the library itself are plug-ins, which may be missing. */
static int check_filters(const hdf5_reading *self)
{
    const hdf5_library *hdf5 = self->hdf5;
    const int count = hdf5->H5Pget_nfilters(self->properties);
    for (int i = 0; i < count; i++) {
        char name[64] = "";
        unsigned flags = 0, values[8], config = 0;
        size_t values_count = sizeof values / sizeof *values;
        const H5Z_filter_t filter = hdf5->H5Pget_filter2(self->properties, (unsigned)i, &flags, &values_count, values,
                                                         sizeof name, name, &config);
        if (filter < 0)
            return hdf5_fail_damaged(self);
        if (hdf5->H5Zfilter_avail(filter) > 0)
            continue;
        return shoal_fail(SHOAL_INVALID,
                          "%s: %s is compressed by the filter %s (number %d), for which libhdf5 has no plug-in here; "
                          "write it without, or with gzip: h5repack -f GZIP=4 OLD NEW",
                          self->source->path, self->name, *name ? name : "of that number", (int)filter);
    }
    return SHOAL_OK;
}

static int check_storage(hdf5_reading *self)
{
    const hdf5_library *hdf5 = self->hdf5;
    self->properties = hdf5->H5Dget_create_plist(self->dataset);
    self->layout = self->properties < 0 ? H5D_LAYOUT_ERROR : hdf5->H5Pget_layout(self->properties);
    if (self->layout == H5D_VIRTUAL || hdf5->H5Pget_external_count(self->properties) > 0)
        return shoal_fail(SHOAL_INVALID, "%s: the values of %s are in other files, and those are not followed",
                          self->source->path, self->name);
    if (self->layout != H5D_COMPACT && self->layout != H5D_CONTIGUOUS && self->layout != H5D_CHUNKED)
        return hdf5_fail_damaged(self);
    if (self->layout == H5D_CHUNKED && hdf5->H5Pget_chunk(self->properties, H5S_MAX_RANK, self->chunk) != self->rank)
        return hdf5_fail_damaged(self);
    return check_filters(self);
}

/* A header can claim any size; what is stored can't be made up. */
static int check_claim(const hdf5_reading *self)
{
    const uint64_t claimed = (uint64_t)self->data->rows * data_row_bytes(self->data);
    const uint64_t stored = self->hdf5->H5Dget_storage_size(self->dataset);
    if (claimed <= never_written || stored >= claimed / stored_times)
        return SHOAL_OK;
    return shoal_fail(
        SHOAL_INVALID,
        "%s: the rows of %s would take %llu bytes, but only %llu are stored: the others were never written",
        self->source->path, self->name, (unsigned long long)claimed, (unsigned long long)stored);
}

static int set_shape(hdf5_reading *self)
{
    uint64_t shape[H5S_MAX_RANK], columns;
    const bool matlab = hdf5_is_matlab(self->source);
    for (int i = 0; i < self->rank; i++)
        shape[i] = self->shape[matlab ? self->rank - 1 - i : i];
    if (!data_fold_shape(&columns, shape, self->rank))
        return shoal_fail(SHOAL_INVALID, "%s: the dimensions of %s multiply to more than 64 bits", self->source->path,
                          self->name);
    data_note_shape(self->data, shape, self->rank);
    return data_set_shape(self->data, shape[0], columns, self->type.type);
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* As many of the outermost dimension as make a slab of whole chunks. */
static hsize_t slab_height(const hdf5_reading *self, size_t inner_bytes)
{
    const hsize_t step = self->layout == H5D_CHUNKED ? self->chunk[0] : 1;
    const hsize_t fitting = SLAB_BYTES / (inner_bytes + 1) + 1;
    return fitting < step ? step : fitting / step * step;
}

int hdf5_read_values(const hdf5_reading *self, unsigned char *out, size_t size)
{
    const hdf5_library *hdf5 = self->hdf5;
    hsize_t start[H5S_MAX_RANK] = {0}, count[H5S_MAX_RANK];
    size_t inner = size;
    memcpy(count, self->shape, sizeof count);
    for (int i = 1; i < self->rank; i++)
        inner *= self->shape[i];
    const hsize_t height = slab_height(self, inner);
    hid_t space = hdf5->H5Dget_space(self->dataset);
    bool ok = space >= 0;
    for (; start[0] < self->shape[0] && ok; start[0] += height) {
        count[0] = self->shape[0] - start[0] < height ? self->shape[0] - start[0] : height;
        hid_t memory = hdf5->H5Screate_simple(self->rank, count, NULL);
        ok = memory >= 0 && hdf5->H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL) >= 0 &&
             hdf5->H5Dread(self->dataset, self->type_in_file, memory, space, H5P_DEFAULT, out + start[0] * inner) >= 0;
        hdf5_close(hdf5, &memory);
    }
    hdf5_close(hdf5, &space);
    return ok ? SHOAL_OK : hdf5_fail_damaged(self);
}

static int read_into(const hdf5_reading *self, unsigned char *out, size_t size)
{
    bool done = false;
    int status = hdf5_read_chunks(&done, self, out, size);
    return status < 0 || done ? status : hdf5_read_values(self, out, size);
}

/* Into the buffer of the data set, in native order. */
static int read_all(hdf5_reading *self)
{
    shoal_data *data = self->data;
    const int stored = self->type.is_half ? DATA_STORED_HALF : DATA_STORED_SAME;
    const size_t size = data_stored_size(stored, data->type), values = (size_t)data->rows * (size_t)data->columns;
    const bool turned = hdf5_is_matlab(self->source) && data->columns > 1 && data->rows > 1;
    data_buffer *buffer = &data->buffer;
    int status = check_claim(self);
    if (status == SHOAL_OK)
        status = data_buffer_reserve(buffer, values * shoal_type_size(data->type));
    if (status < 0)
        return status;
    buffer->size = values * shoal_type_size(data->type);
    status = read_into(self, buffer->bytes, size);
    if (status < 0)
        return status;
    uint64_t shape[H5S_MAX_RANK];
    for (int i = 0; i < self->rank; i++)
        shape[i] = self->shape[self->rank - 1 - i];
    const data_layout layout = {self->type.swapped, turned, stored, self->rank, shape};
    return data_decode_buffer(data, &layout);
}

static const char *describe_storage(const hdf5_reading *self)
{
    if (self->layout != H5D_CHUNKED)
        return "";
    return self->hdf5->H5Pget_nfilters(self->properties) > 0 ? ", in compressed chunks" : ", in chunks";
}

static int describe(hdf5_reading *self)
{
    return base_format(&self->data->detail, "%s%s %s%s%s, %s", hdf5_is_matlab(self->source) ? "MATLAB 7.3" : "HDF5",
                       ",", self->name, describe_storage(self),
                       self->type.is_half   ? ", float16 read as float32"
                       : self->type.swapped ? ", other byte order"
                                            : "",
                       data_kept(self->data));
}

static int read_dataset(hdf5_reading *self)
{
    const hdf5_library *hdf5 = self->hdf5;
    if (hdf5->H5Iget_type(self->dataset) != H5I_DATASET)
        return hdf5_fail_damaged(self);
    self->type = hdf5_type_of(hdf5, self->dataset);
    self->rank = hdf5_shape_of(self->shape, hdf5, self->dataset);
    self->type_in_file = hdf5->H5Dget_type(self->dataset);
    if (!self->type.is_number || self->rank < 1 || self->type_in_file < 0)
        return hdf5_fail_damaged(self);
    int status = check_storage(self);
    if (status == SHOAL_OK)
        status = set_shape(self);
    if (status < 0)
        return status;
    const haddr_t offset = self->layout == H5D_CONTIGUOUS ? hdf5->H5Dget_offset(self->dataset) : HADDR_UNDEF;
    if (offset != HADDR_UNDEF && !self->type.is_half &&
        data_source_map(&self->data->mapped, &self->data->mapped_file, self->source)) {
        uint64_t shape[H5S_MAX_RANK];
        for (int i = 0; i < self->rank; i++)
            shape[i] = self->shape[self->rank - 1 - i];
        const data_layout layout = {self->type.swapped, hdf5_is_matlab(self->source), DATA_STORED_SAME, self->rank,
                                    shape};
        status = data_take_mapped(self->data, offset, &layout);
    } else {
        status = read_all(self);
    }
    return status == SHOAL_OK ? describe(self) : status;
}

int hdf5_open_member(shoal_data *data, data_source *source, const data_member *member)
{
    hdf5_reading self = {
        .data = data, .source = source, .name = member->name, .dataset = -1, .type_in_file = -1, .properties = -1};
    hid_t file = -1;
    int status = hdf5_begin(&self.hdf5, source->path);
    if (status < 0)
        return status;
    status = hdf5_open_file(&file, self.hdf5, source);
    if (status == SHOAL_OK) {
        self.dataset = self.hdf5->H5Oopen(file, member->name, H5P_DEFAULT);
        status = self.dataset < 0 ? hdf5_fail_damaged(&self) : read_dataset(&self);
    }
    hdf5_close(self.hdf5, &self.type_in_file);
    hdf5_close(self.hdf5, &self.properties);
    hdf5_close(self.hdf5, &self.dataset);
    hdf5_close(self.hdf5, &file);
    hdf5_end(self.hdf5);
    return status;
}
