/* IDX, the format of MNIST: two zero bytes, a type, the number of dimensions, each dimension as a big-endian
 * 32-bit number, then the values, big-endian.  Dimensions after the first are folded into columns. */
#include "data/data_internal.h"

#include <stdio.h>

#include "base/memory.h"

static bool type_of_code(shoal_type *type, unsigned code)
{
    switch (code) {
    case 0x08: *type = SHOAL_UINT8; return true;
    case 0x09: *type = SHOAL_INT8; return true;
    case 0x0B: *type = SHOAL_INT16; return true;
    case 0x0C: *type = SHOAL_INT32; return true;
    case 0x0D: *type = SHOAL_FLOAT32; return true;
    case 0x0E: *type = SHOAL_FLOAT64; return true;
    default: return false;
    }
}

static bool recognise_idx(const data_hint *hint)
{
    shoal_type type;
    return hint->head && hint->head_size >= 4 && hint->head[0] == 0 && hint->head[1] == 0 &&
           type_of_code(&type, hint->head[2]);
}

/* "60000 x 28 x 28"; dimensions that do not fit are left out. */
static void print_shape(char *out, size_t room, const uint64_t *shape, int rank)
{
    size_t used = 0;
    for (int i = 0; i < rank && used + 24 < room; i++)
        used += (size_t)snprintf(out + used, room - used, "%s%llu", i ? " x " : "", (unsigned long long)shape[i]);
}

static int read_shape(uint64_t *shape, int rank, data_source *source)
{
    for (int i = 0; i < rank; i++) {
        unsigned char bytes[4];
        size_t got;
        int status = data_source_read(&got, source, bytes, sizeof bytes);
        if (status < 0)
            return status;
        if (got < sizeof bytes)
            return shoal_fail(SHOAL_INVALID, "%s: the file ends inside its IDX header of %d dimensions", source->path,
                              rank);
        shape[i] = (uint64_t)bytes[0] << 24 | (uint64_t)bytes[1] << 16 | (uint64_t)bytes[2] << 8 | bytes[3];
    }
    return SHOAL_OK;
}

static int open_idx(shoal_data *data, data_source *source, const shoal_data_options *options)
{
    unsigned char magic[4];
    uint64_t shape[255], columns;
    char shape_text[128] = "";
    shoal_type type;
    size_t got;
    (void)options;
    int status = data_source_read(&got, source, magic, sizeof magic);
    if (status < 0)
        return status;
    int rank = magic[3];
    if (!type_of_code(&type, magic[2]) || rank == 0)
        return shoal_fail(SHOAL_INVALID, "%s: an IDX file needs at least one dimension", data->path);
    if ((status = read_shape(shape, rank, source)) < 0)
        return status;
    if (!data_fold_shape(&columns, shape, rank))
        return shoal_fail(SHOAL_INVALID, "%s: the dimensions in the IDX header multiply to more than 64 bits",
                          data->path);
    print_shape(shape_text, sizeof shape_text, shape, rank);
    bool little_endian = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
    data_layout layout = {.swapped = little_endian && shoal_type_size(type) > 1};
    data_note_shape(data, shape, rank);
    status = data_set_shape(data, shape[0], columns, type);
    if (status == SHOAL_OK)
        status = data_take_values(data, source, &layout);
    if (status == SHOAL_OK)
        status = base_format(&data->detail, "IDX of %s%s, %s", shape_text, data_source_detail(source), data_kept(data));
    return status;
}

const struct data_format data_idx = {.name = "idx", .recognise = recognise_idx, .open = open_idx};
