/* Images in an .npy array: height x width, images x height x width, or either with 1 or 3 channels behind.  An array of
 * three dimensions whose last is at most 4 is one image with channels: nobody cuts squares from images that narrow. */
#include "image.h"

#include "base/memory.h"
#include "data/data_internal.h"

static int read_header(data_npy_header *header, const char *path)
{
    data_source source = {.descriptor = -1};
    unsigned char *bytes = NULL;
    size_t size = 0, got = 0;
    int status = data_source_open(&source, path, true);
    if (status == SHOAL_OK) {
        size = data_npy_header_next(source.head, source.head_size);
        if (source.head_size < 6 || size == 0)
            status = shoal_fail(SHOAL_INVALID, "%s: neither PNG, JPEG nor .npy", path);
    }
    if (status == SHOAL_OK)
        status = base_alloc(&bytes, size, 1, "an npy header");
    if (status == SHOAL_OK)
        status = data_source_read(&got, &source, bytes, size);
    if (status == SHOAL_OK)
        status = data_npy_parse(header, bytes, got, path);
    base_free(&bytes);
    data_source_close(&source);
    return status;
}

static int set_shape(data_image *out, const data_npy_header *header, const char *path)
{
    const uint64_t *shape = header->shape;
    const int rank = header->rank;
    const bool channels = rank == 4 || (rank == 3 && shape[2] <= 4);
    const int sides = rank - channels, first = sides - 2;
    size_t all = 1;
    if (sides < 2 || sides > 3 || (channels && shape[rank - 1] != 1 && shape[rank - 1] != 3))
        return shoal_fail(
            SHOAL_INVALID,
            "%s: an array of %d dimensions%s is not an image: height x width, images x height x width, or "
            "one of these x 3 for colours would be",
            path, rank, channels ? " with that many channels" : "");
    for (int i = 0; i < rank; i++)
        if (shape[i] < 1 || shape[i] > INT32_MAX || !base_multiply(&all, all, (size_t)shape[i]) || all > INT64_MAX / 8)
            return shoal_fail(SHOAL_INVALID, "%s: images of an impossible shape", path);
    out->images = sides == 3 ? (int64_t)shape[0] : 1;
    out->height = (int64_t)shape[first];
    out->width = (int64_t)shape[first + 1];
    out->channels = channels ? (int)shape[rank - 1] : 1;
    return SHOAL_OK;
}

static int check_type(shoal_type type, const char *path)
{
    switch (type) {
    case SHOAL_UINT8:
    case SHOAL_UINT16:
    case SHOAL_BOOL:
    case SHOAL_FLOAT32:
    case SHOAL_FLOAT64: return SHOAL_OK;
    default:
        return shoal_fail(SHOAL_INVALID, "%s: images of %s do not say what white is: uint8, uint16 or floats do", path,
                          shoal_type_name(type));
    }
}

int data_image_open_npy(data_image *out, const char *path, data_image_want want)
{
    data_npy_header header = {0};
    const void *samples = NULL;
    int status = read_header(&header, path);
    if (status == SHOAL_OK)
        status = set_shape(out, &header, path);
    if (status == SHOAL_OK)
        status = check_type(header.type, path);
    if (status < 0)
        return status;
    out->type = header.type;
    out->path = path;
    if (want == DATA_IMAGE_HEADER)
        return SHOAL_OK;
    status = shoal_data_open(&out->array, path, NULL);
    if (status == SHOAL_OK)
        status = shoal_data_read(&samples, out->array, 0, shoal_data_rows(out->array), NULL);
    if (status == SHOAL_OK &&
        (shoal_data_type(out->array) != out->type || shoal_data_rows(out->array) * shoal_data_columns(out->array) !=
                                                         out->images * out->height * out->width * out->channels))
        status = shoal_fail(SHOAL_INVALID, "%s: changed while it was read", path);
    out->samples = samples;
    return status;
}
