/* Rows that lie in a store and are never read here: a data set with a shape and a place, and no values.  See
 * data_place.h.
 *
 * Readers fetch ranges of bytes and use them as rows, so only layouts that need no decoding are supported. */
#include "data/data_place.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "data_internal.h"

typedef struct described {
    int64_t offset, size;
    char key[1024], etag[256];
} described;

static bool recognise_described(const data_hint *hint)
{
    (void)hint;
    return false;
}

const struct data_format data_described = {.name = "described", .without_file = true, .recognise = recognise_described};

data_place data_place_of(const shoal_data *data)
{
    if (data->format == &data_generated && !data->values)
        return (data_place){.kind = DATA_MADE, .address = data->path};
    if (data->format == &data_described) {
        const described *state = data->state;
        return (data_place){.kind = DATA_IN_BLOB,
                            .address = data->path,
                            .key = state->key,
                            .etag = state->etag,
                            .offset = state->offset,
                            .size = state->size};
    }
    if (data->mapped)
        return (data_place){.kind = DATA_IN_FILE,
                            .address = data->file,
                            .offset = data->values - base_mapped_bytes(data->mapped),
                            .size = (int64_t)base_mapped_size(data->mapped)};
    return (data_place){.kind = DATA_HERE, .address = data->path};
}

/* ---- describing -------------------------------------------------------------------------------------------------- */

size_t data_describe_bytes(const void *head, size_t size)
{
    return data_npy_header_bytes(head, size);
}

static int refuse(const shoal_data *data, const char *what)
{
    return shoal_fail(
        SHOAL_INVALID,
        "%s: %s can't be used where it lies in a store; fetch it first with shoal store get, or convert it to .npy in "
        "C order",
        data->path, what);
}

static int describe_npy(shoal_data *data, described *state, const void *head, size_t head_size)
{
    data_source source;
    data_npy_header header;
    data_source_of_bytes(&source, data->path, head, head_size);
    int status = data_npy_describe(&header, data, &source);
    if (status < 0)
        return status;
    if (header.fortran)
        return refuse(data, "an array in Fortran order");
    if (header.stored != DATA_STORED_SAME)
        return refuse(data, "an array of float16");
    if (header.swapped)
        return refuse(data, "an array of the other byte order");
    state->offset = (int64_t)source.position;
    return base_format(&data->detail, "npy, C order, in a store");
}

static int describe_raw(shoal_data *data, const described *state, const shoal_data_options *options)
{
    bool swapped = false;
    int stored;
    shoal_type type;
    size_t row_bytes;
    uint64_t rows = (uint64_t)options->rows;
    if (options->columns < 1 || !options->type)
        return shoal_fail(SHOAL_USAGE, "%s: raw rows need their number of columns and their type", data->path);
    if (!data_stored_parse(&type, &stored, &swapped, options->type, strlen(options->type)))
        return shoal_type_parse(&type, options->type); /* which knows what to say */
    if (stored != DATA_STORED_SAME)
        return refuse(data, "float16");
    if (swapped)
        return refuse(data, "what has the other byte order");
    if (!base_multiply(&row_bytes, (size_t)options->columns, shoal_type_size(type)))
        return shoal_fail(SHOAL_USAGE, "%s: %lld columns are too many", data->path, (long long)options->columns);
    if (rows == 0 && (uint64_t)state->size % row_bytes != 0)
        return shoal_fail(SHOAL_INVALID, "%s: %lld bytes are not a whole number of rows of %zu bytes", data->path,
                          (long long)state->size, row_bytes);
    rows = rows ? rows : (uint64_t)state->size / row_bytes;
    int status = data_set_shape(data, rows, (uint64_t)options->columns, type);
    return status == SHOAL_OK ? base_format(&data->detail, "raw, in a store") : status;
}

/* As for files, missing or extra bytes mean that the description is wrong. */
static int check_size(const shoal_data *data, const described *state)
{
    int64_t bytes = data->rows * (int64_t)data_row_bytes(data);
    if (state->size - state->offset != bytes)
        return shoal_fail(SHOAL_INVALID, "%s: %lld rows take %lld bytes, and there are %lld", data->path,
                          (long long)data->rows, (long long)bytes, (long long)(state->size - state->offset));
    return SHOAL_OK;
}

static int describe(shoal_data *data, const data_blob *blob, const void *head, size_t head_size,
                    const shoal_data_options *options)
{
    described *state = NULL;
    bool raw = options->rows || options->columns || options->type, npy = data_npy_header_bytes(head, head_size) > 0;
    data->format = &data_described;
    int status = base_alloc(&state, 1, sizeof *state, "a data set");
    if (status < 0)
        return status;
    data->state = state;
    state->size = blob->size;
    snprintf(state->key, sizeof state->key, "%s", blob->key);
    snprintf(state->etag, sizeof state->etag, "%s", blob->etag);
    if (blob->size == 0)
        return shoal_fail(SHOAL_INVALID, "%s: the blob is empty", data->path);
    if (raw && npy)
        return shoal_fail(SHOAL_USAGE, "%s: --rows, --cols and --type are for raw files, and this is npy", data->path);
    if (options->rows < 0 || options->columns < 0)
        return shoal_fail(SHOAL_USAGE, "%s: rows and columns can't be negative", data->path);
    if (options->header == SHOAL_HEADER_YES)
        return shoal_fail(SHOAL_USAGE, "%s: --header is for text files", data->path);
    if (options->keep_columns || options->drop_columns)
        return shoal_fail(
            SHOAL_USAGE,
            "%s: columns can't be chosen while the rows lie in a store; fetch them first with shoal store "
            "get",
            data->path);
    if (!raw && !npy)
        return refuse(data, "what is neither .npy nor said to be raw (columns and type)");
    status = npy ? describe_npy(data, state, head, head_size) : describe_raw(data, state, options);
    if (status == SHOAL_OK)
        status = check_size(data, state);
    return status == SHOAL_OK ? data_refine(&data, options) : status;
}

int data_describe(shoal_data **out, const data_blob *blob, const void *head, size_t head_size,
                  const shoal_data_options *options)
{
    static const shoal_data_options none;
    shoal_data *data = NULL;
    *out = NULL;
    int status = data_new(&data, blob->url, 1);
    if (status == SHOAL_OK)
        status = describe(data, blob, head, head_size, options ? options : &none);
    if (status == SHOAL_OK) {
        *out = data;
        data = NULL;
    }
    shoal_data_free(&data);
    return status;
}
