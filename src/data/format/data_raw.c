/* Raw files: values one after another, row by row, with nothing else.  Their shape and type come from the
 * options; a type may say its byte order (">f4"). */
#include "data/data_internal.h"

#include <string.h>

#include "base/memory.h"

static bool recognise_raw(const data_hint *hint)
{
    const shoal_data_options *options = hint->options;
    return !hint->head && (options->rows || options->columns || options->type) && !data_vecs_is_type(options->type);
}

/* As many rows as the source holds, which must be whole. */
static int count_rows(uint64_t *rows, const data_source *source, size_t row_bytes)
{
    if (!source->mappable)
        return shoal_fail(SHOAL_USAGE, "%s: use --rows to say how many rows to read: this is not a plain file",
                          source->path);
    if (source->file_size % row_bytes != 0)
        return shoal_fail(SHOAL_INVALID, "%s: %zu bytes are not a whole number of rows of %zu bytes", source->path,
                          source->file_size, row_bytes);
    *rows = source->file_size / row_bytes;
    return SHOAL_OK;
}

static int check_description(const shoal_data *data, const data_source *source, const shoal_data_options *options)
{
    if (source->head_size >= 6 && memcmp(source->head, "\x93NUMPY", 6) == 0)
        return shoal_fail(SHOAL_USAGE, "%s: --rows, --cols and --type are for raw files, and this is npy", data->path);
    if (!options->columns || !options->type)
        return shoal_fail(SHOAL_USAGE, "%s: a raw file needs its number of columns and its type", data->path);
    return SHOAL_OK;
}

static int open_raw(shoal_data *data, data_source *source, const shoal_data_options *options)
{
    data_layout layout = {0};
    shoal_type type;
    uint64_t rows = (uint64_t)options->rows;
    size_t row_bytes;
    int status = check_description(data, source, options);
    if (status < 0)
        return status;
    if (!data_stored_parse(&type, &layout.stored, &layout.swapped, options->type, strlen(options->type)))
        return shoal_type_parse(&type, options->type); /* which knows what to say */
    if (!base_multiply(&row_bytes, (size_t)options->columns, data_stored_size(layout.stored, type)))
        return shoal_fail(SHOAL_USAGE, "%s: %lld columns are too many", data->path, (long long)options->columns);
    if (rows == 0)
        status = count_rows(&rows, source, row_bytes);
    if (status == SHOAL_OK)
        status = data_set_shape(data, rows, (uint64_t)options->columns, type);
    if (status == SHOAL_OK)
        status = data_take_values(data, source, &layout);
    if (status == SHOAL_OK)
        status = base_format(&data->detail, "raw%s%s, %s", layout.swapped ? ", other byte order" : "",
                             layout.stored == DATA_STORED_HALF ? ", float16 read as float32" : "", data_kept(data));
    return status;
}

const struct data_format data_raw = {.name = "raw", .takes_shape = true, .recognise = recognise_raw, .open = open_raw};
