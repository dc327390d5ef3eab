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

/* Opens the bytes as a file with these options; a failure must come with a message and no data set. */
static inline void open_bytes(const uint8_t *bytes, size_t size, const shoal_data_options *options)
{
    char path[64];
    shoal_data *data = NULL;
    int descriptor = memfd_create("input", 0);
    if (descriptor < 0 || write(descriptor, bytes, size) != (ssize_t)size)
        abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    if (shoal_data_open(&data, path, options) == SHOAL_OK)
        read_all(data, (int64_t)1 << 40);
    else if (data || shoal_error()[0] == '\0')
        abort();
    close(descriptor);
}

#endif
