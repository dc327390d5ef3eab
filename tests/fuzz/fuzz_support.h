/* What the fuzz targets of src/data share: bytes become a file without a name, which is opened by its path as any other
 * file is, and everything in it is read. */
#ifndef FUZZ_SUPPORT_H
#define FUZZ_SUPPORT_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <shoal/data.h>

#include "data/format/data_members.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* Reads rows one by one and converts them, so that the sanitizers see every byte; frees the data set. */
static inline void read_all(shoal_data *data, int64_t greatest_values)
{
    int64_t columns = shoal_data_columns(data), rows = shoal_data_rows(data);
    if (columns <= greatest_values) {
        void *scratch = malloc((size_t)columns * shoal_type_size(shoal_data_type(data)));
        double *values = malloc((size_t)columns * sizeof *values);
        const void *row;
        for (int64_t i = 0; i < rows && i < greatest_values / columns; i++) {
            if (shoal_data_read(&row, data, i, 1, scratch) < 0)
                abort();
            shoal_convert_float64(values, row, shoal_data_type(data), columns);
        }
        if (shoal_data_read(&row, data, rows - 1, 1, scratch) < 0 || !shoal_data_detail(data))
            abort();
        free(values);
        free(scratch);
    }
    shoal_data_free(&data);
}

/* A file without a name that holds the bytes; `path` has room for its path.  The caller closes it. */
static inline int make_file(char path[64], const uint8_t *bytes, size_t size)
{
    const int descriptor = memfd_create("input", 0);
    if (descriptor < 0 || write(descriptor, bytes, size) != (ssize_t)size)
        abort();
    snprintf(path, 64, "/proc/self/fd/%d", descriptor);
    return descriptor;
}

/* Opens the bytes as a file with these options; a failure must come with a message and no data set. */
static inline void open_bytes(const uint8_t *bytes, size_t size, const shoal_data_options *options)
{
    char path[64];
    shoal_data *data = NULL;
    const int descriptor = make_file(path, bytes, size);
    if (shoal_data_open(&data, path, options) == SHOAL_OK)
        read_all(data, (int64_t)1 << 40);
    else if (data || shoal_error()[0] == '\0')
        abort();
    close(descriptor);
}

/* The same for a file of several arrays: what is listed, and the first ones by their names. */
static inline void open_members(const uint8_t *bytes, size_t size)
{
    enum { OPENED = 8 };
    char path[64], address[4096];
    data_members members = {0};
    const int descriptor = make_file(path, bytes, size);
    if (data_members_find(&members, path) < 0 && shoal_error()[0] == '\0')
        abort();
    for (int64_t i = 0; i < members.count && i < OPENED; i++) {
        shoal_data *data = NULL;
        snprintf(address, sizeof address, "%s:%s", path, members.member[i].name);
        if (shoal_data_open(&data, address, &(shoal_data_options){.memory = 1 << 28}) == SHOAL_OK)
            read_all(data, 1 << 16);
        else if (data || shoal_error()[0] == '\0')
            abort();
    }
    data_members_release(&members);
    close(descriptor);
}

#endif
