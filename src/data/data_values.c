/* From values as a file has them to rows in native byte order: mapped as they are where possible, and
 * otherwise swapped, transposed or copied once into a data_buffer.  See data_internal.h.
 *
 * Nothing is allocated on a header's word alone: a plain file's size is compared first, and a stream's
 * buffer grows as bytes arrive. */
#include "data_internal.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/memory.h"

static bool bools_are_clean(const unsigned char *values, size_t count)
{
    unsigned char all = 0;
    for (size_t i = 0; i < count; i++)
        all |= values[i];
    return all <= 1;
}

static size_t value_count(const shoal_data *data)
{
    return (size_t)data->rows * (size_t)data->columns;
}

/* The bytes that values take in the file. */
static size_t stored_bytes(const shoal_data *data, const data_layout *layout)
{
    return value_count(data) * data_stored_size(layout->stored, data->type);
}

static bool is_transposed(const shoal_data *data, const data_layout *layout)
{
    return layout->fortran && data->columns > 1;
}

/* Whether the bytes can be handed out as they lie there. */
static bool is_usable(const shoal_data *data, const unsigned char *values, const data_layout *layout)
{
    if (layout->swapped || layout->stored != DATA_STORED_SAME || is_transposed(data, layout))
        return false;
    if ((uintptr_t)values % shoal_type_size(data->type) != 0)
        return false;
    return data->type != SHOAL_BOOL || bools_are_clean(values, value_count(data));
}

/* Swaps values of one size; memcpy since neither side need be aligned. */
#define SWAP_VALUES(c_type, swap)                                                                                      \
    for (size_t i = 0; i < count; i++) {                                                                               \
        c_type value;                                                                                                  \
        memcpy(&value, (const char *)in + i * sizeof value, sizeof value);                                             \
        value = swap(value);                                                                                           \
        memcpy((char *)out + i * sizeof value, &value, sizeof value);                                                  \
    }                                                                                                                  \
    break

void data_swap_bytes(void *out, const void *in, size_t count, size_t size)
{
    switch (size) {
    case 2: SWAP_VALUES(uint16_t, __builtin_bswap16);
    case 4: SWAP_VALUES(uint32_t, __builtin_bswap32);
    case 8: SWAP_VALUES(uint64_t, __builtin_bswap64);
    default: SHOAL_BUG("values of %zu bytes are never swapped", size);
    }
}

/* The place of row 0 of column `column` in Fortran order, in values.  Columns count the trailing indices
 * in C order (last fastest), the file has them first fastest. */
static size_t fortran_place(const data_layout *layout, size_t column)
{
    size_t stride = 1, place = 0;
    for (int i = 1; i < layout->rank; i++)
        stride *= layout->shape[i - 1];
    for (int i = layout->rank - 1; i >= 1; i--) {
        place += column % layout->shape[i] * stride;
        column /= layout->shape[i];
        stride /= layout->shape[i - 1];
    }
    return place;
}

/* Copies one block of a transposition; a loop for each size lets the compiler move whole values. */
#define COPY_BLOCK(bytes)                                                                                              \
    for (size_t row = 0; row < rows; row++)                                                                            \
        for (size_t i = 0; i < columns; i++)                                                                           \
            memcpy(out + (row * out_stride + i) * (bytes), in + (places[i] + row) * (bytes), bytes);                   \
    break

static void copy_block(unsigned char *out, const unsigned char *in, const size_t *places, size_t rows, size_t columns,
                       size_t out_stride, size_t size)
{
    switch (size) {
    case 1: COPY_BLOCK(1);
    case 2: COPY_BLOCK(2);
    case 4: COPY_BLOCK(4);
    case 8: COPY_BLOCK(8);
    default: SHOAL_BUG("value size %zu", size);
    }
}

/* In blocks of 64 columns by 64 rows, so that each cache line read or written is used whole while it is there. */
static void copy_fortran(unsigned char *out, const unsigned char *in, const shoal_data *data, const data_layout *layout)
{
    enum { BLOCK = 64 };
    size_t size = data_stored_size(layout->stored, data->type), rows = (size_t)data->rows,
           columns = (size_t)data->columns;
    for (size_t first = 0; first < columns; first += BLOCK) {
        size_t places[BLOCK], width = columns - first < BLOCK ? columns - first : BLOCK;
        for (size_t i = 0; i < width; i++)
            places[i] = fortran_place(layout, first + i);
        for (size_t row = 0; row < rows; row += BLOCK) {
            size_t height = rows - row < BLOCK ? rows - row : BLOCK;
            copy_block(out + (row * columns + first) * size, in + row * size, places, height, width, columns, size);
        }
    }
}

/* `out` may be `in` unless the layout is Fortran's. */
static void decode(unsigned char *out, const unsigned char *in, const shoal_data *data, const data_layout *layout)
{
    size_t count = value_count(data), size = data_stored_size(layout->stored, data->type);
    if (is_transposed(data, layout)) {
        copy_fortran(out, in, data, layout);
        in = out;
    }
    if (layout->swapped && size > 1)
        data_swap_bytes(out, in, count, size);
    else if (out != in)
        memcpy(out, in, count * size);
    data_stored_widen(out, count, layout->stored, data->type);
    if (data->type == SHOAL_BOOL)
        for (size_t i = 0; i < count; i++)
            out[i] = out[i] != 0;
}

static int decode_into_buffer(shoal_data *data, const unsigned char *in, const data_layout *layout)
{
    size_t bytes = value_count(data) * shoal_type_size(data->type);
    data_buffer decoded = data->buffer;
    decoded.bytes = NULL;
    decoded.size = decoded.capacity = 0;
    decoded.descriptor = -1;
    int status = data_buffer_reserve(&decoded, bytes);
    if (status < 0)
        return status;
    decode(decoded.bytes, in, data, layout);
    decoded.size = bytes;
    data_buffer_release(&data->buffer);
    data->buffer = decoded;
    data->values = decoded.bytes;
    return SHOAL_OK;
}

static int fail_size(const shoal_data *data, size_t claimed, size_t held, const char *or_more)
{
    return shoal_fail(SHOAL_INVALID, "%s: %lld rows of %lld columns of %s take %zu bytes, but the file holds %zu%s",
                      data->path, (long long)data->rows, (long long)data->columns, shoal_type_name(data->type), claimed,
                      held, or_more);
}

int data_take_mapped(shoal_data *data, size_t offset, const data_layout *layout)
{
    size_t claimed = stored_bytes(data, layout), size = base_mapped_size(data->mapped);
    size_t held = offset < size ? size - offset : 0;
    if (held < claimed)
        return fail_size(data, claimed, held, " there");
    const unsigned char *whole = base_mapped_bytes(data->mapped), *values = whole + offset;
    if (is_usable(data, values, layout)) {
        const size_t start = offset / (size_t)getpagesize() * (size_t)getpagesize();
        bool fits = (int64_t)claimed < base_memory_available() / 2;
        (void)madvise((void *)(whole + start), offset + claimed - start, fits ? MADV_WILLNEED : MADV_SEQUENTIAL);
        data->values = values;
        return shoal_data_check(data);
    }
    int status = decode_into_buffer(data, values, layout);
    if (status == SHOAL_OK)
        status = shoal_data_check(data);
    data_unmap(data);
    return status;
}

int data_decode_buffer(shoal_data *data, const data_layout *layout)
{
    if (is_transposed(data, layout))
        return decode_into_buffer(data, data->buffer.bytes, layout);
    const size_t bytes = value_count(data) * shoal_type_size(data->type);
    int status = data_buffer_reserve(&data->buffer, bytes);
    if (status < 0)
        return status;
    data->buffer.size = bytes;
    data_buffer_trim(&data->buffer);
    decode(data->buffer.bytes, data->buffer.bytes, data, layout);
    data->values = data->buffer.bytes;
    return SHOAL_OK;
}

/* All of a file but its header, in place. */
static int take_mapped(shoal_data *data, const data_source *source, const data_layout *layout)
{
    int status = SHOAL_OK;
    if (source->is_part && !source->part.is_bare) {
        status = data_source_check_mapped(source, base_mapped_bytes(data->mapped));
        if (shoal_data_check(data) < 0)
            return SHOAL_INVALID; /* what was lost has another checksum, too */
    }
    return status == SHOAL_OK ? data_take_mapped(data, source->part.first + source->position, layout) : status;
}

/* Straight to where the values stay. */
static int take_read(shoal_data *data, data_source *source, const data_layout *layout)
{
    const size_t stored = stored_bytes(data, layout);
    int status = data_buffer_reserve(&data->buffer, value_count(data) * shoal_type_size(data->type));
    if (status == SHOAL_OK)
        status = data_source_read_rest(source, data->buffer.bytes, stored);
    return status == SHOAL_OK ? data_decode_buffer(data, layout) : status;
}

static int take_loaded(shoal_data *data, data_source *source, const data_layout *layout)
{
    size_t claimed = stored_bytes(data, layout);
    int status = data_source_load(&data->buffer, source, claimed + 1); /* one more, to see whether it ends */
    if (status < 0)
        return status;
    if (data->buffer.size != claimed)
        return fail_size(data, claimed, data->buffer.size, data->buffer.size > claimed ? " or more" : "");
    return data_decode_buffer(data, layout);
}

/* Whether values have to be changed or moved, one by one. */
static bool must_be_read(const shoal_data *data, const data_source *source, const data_layout *layout)
{
    const size_t offset = source->part.first + source->position;
    return !is_transposed(data, layout) && (layout->swapped || layout->stored != DATA_STORED_SAME ||
                                            offset % data_stored_size(layout->stored, data->type) != 0);
}

int data_take_values(shoal_data *data, data_source *source, const data_layout *layout)
{
    if (!source->mappable || source->position > source->content_size)
        return take_loaded(data, source, layout);
    const size_t claimed = stored_bytes(data, layout), held = source->content_size - source->position;
    if (held != claimed)
        return fail_size(data, claimed, held, "");
    if (must_be_read(data, source, layout))
        return take_read(data, source, layout);
    return data_source_map(&data->mapped, &data->mapped_file, source) ? take_mapped(data, source, layout)
                                                                      : take_loaded(data, source, layout);
}

const char *data_kept(const shoal_data *data)
{
    if (data->mapped)
        return "mapped";
    return data_buffer_is_file(&data->buffer) ? "decoded into a temporary file" : "decoded into memory";
}
