/* Which reader a picture needs, and squares of what it read.  See image.h. */
#include "image.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "data/format/data_foreign.h"
#include "image_kind.h"

int data_image_set_size(data_image *out, const data_image_input *input, uint64_t height, uint64_t width)
{
    if (height < 1 || width < 1)
        return shoal_fail(SHOAL_INVALID, "%s: an image of %llu x %llu pixels", input->path, (unsigned long long)width,
                          (unsigned long long)height);
    if (height > DATA_IMAGE_PIXELS_MOST || width > DATA_IMAGE_PIXELS_MOST || height * width > DATA_IMAGE_PIXELS_MOST)
        return shoal_fail(SHOAL_INVALID, "%s: %llu x %llu pixels are more than the %d that an image may have",
                          input->path, (unsigned long long)width, (unsigned long long)height, DATA_IMAGE_PIXELS_MOST);
    out->images = 1;
    out->height = (int64_t)height;
    out->width = (int64_t)width;
    out->path = input->path;
    return SHOAL_OK;
}

int data_image_check_room(const data_image_input *input, const data_image *image, int64_t bytes_a_pixel)
{
    if (input->room <= 0 || image->height * image->width * bytes_a_pixel <= input->room)
        return SHOAL_OK;
    return shoal_fail(SHOAL_MEMORY, "%s: its %lld x %lld pixels take more memory than there is for them", input->path,
                      (long long)image->width, (long long)image->height);
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

int data_image_fail_foreign(const unsigned char *head, size_t size, const char *path, const char *neither)
{
    const char *kind = data_foreign_name(head, size < DATA_IMAGE_HEAD ? size : DATA_IMAGE_HEAD);
    if (size == 0)
        return shoal_fail(SHOAL_INVALID, "%s: the file is empty", path);
    if (kind)
        return shoal_fail(SHOAL_INVALID, "%s: %s: it is %s", path, neither, kind);
    return shoal_fail(SHOAL_INVALID, "%s: %s", path, neither);
}

static int read_picture(data_image *out, const unsigned char *head, size_t size, const data_image_input *input)
{
    switch (data_image_kind_of(head, size)) {
    case DATA_IMAGE_PNG_FILE: return data_image_read_png(out, input);
    case DATA_IMAGE_JPEG_FILE: return data_image_read_jpeg(out, input);
    default: return data_image_fail_foreign(head, size, input->path, "neither PNG, JPEG nor .npy");
    }
}

static bool is_array(const unsigned char *head, size_t size)
{
    return size >= 6 && (memcmp(head, "\x93NUMPY", 6) == 0 || memcmp(head, "\x1f\x8b\x08", 3) == 0);
}

/* Reads the picture or, when the bytes are those of an array and that is wanted, returns SHOAL_OK with *array set. */
static int read_stream(data_image *out, bool *array, const data_image_input *input)
{
    unsigned char head[DATA_IMAGE_HEAD];
    size_t size = fread(head, 1, sizeof head, input->stream);
    if (ferror(input->stream))
        return shoal_fail_errno(SHOAL_SYSTEM, errno, "%s: can't read", input->path);
    if (array && is_array(head, size)) {
        *array = true;
        return SHOAL_OK;
    }
    if (fseek(input->stream, 0, SEEK_SET) < 0)
        return shoal_fail_errno(SHOAL_SYSTEM, errno, "%s: can't read", input->path);
    return read_picture(out, head, size, input);
}

int data_image_read(data_image *out, FILE *stream, int64_t bytes, const char *path, data_image_want want)
{
    const data_image_input input = {.stream = stream, .bytes = bytes, .path = path, .want = want};
    *out = (data_image){0};
    int status = read_stream(out, NULL, &input);
    if (status < 0)
        data_image_release(out);
    return status;
}

int data_image_read_input(data_image *out, const data_image_input *input)
{
    *out = (data_image){0};
    int status = read_picture(out, input->memory, (size_t)input->bytes, input);
    if (status < 0)
        data_image_release(out);
    return status;
}

int data_image_read_memory(data_image *out, const void *memory, size_t bytes, const char *path, data_image_want want)
{
    return data_image_read_input(
        out, &(data_image_input){.memory = memory, .bytes = (int64_t)bytes, .path = path, .want = want});
}

/* Opens a plain file; a pipe would be waited for, and could not be read twice. */
static int open_plain(FILE **out, int64_t *bytes, const char *path)
{
    struct stat info;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0 || fstat(descriptor, &info) < 0 ||
        (S_ISREG(info.st_mode) && !(*out = fdopen(descriptor, "rb")))) {
        int error = errno;
        if (descriptor >= 0)
            close(descriptor);
        return shoal_fail_errno(SHOAL_SYSTEM, error, "%s: can't read", path);
    }
    if (!*out) {
        close(descriptor);
        return shoal_fail(SHOAL_SYSTEM, "%s: can't read: it is not a plain file", path);
    }
    *bytes = (int64_t)info.st_size;
    return SHOAL_OK;
}

int data_image_load(data_image *out, const char *path, data_image_want want)
{
    data_image_input input = {.path = path, .want = want};
    bool array = false;
    *out = (data_image){0};
    int status = open_plain(&input.stream, &input.bytes, path);
    if (status == SHOAL_OK)
        status = read_stream(out, &array, &input);
    if (input.stream)
        fclose(input.stream);
    if (status == SHOAL_OK && array)
        status = data_image_open_npy(out, path, want);
    if (status < 0)
        data_image_release(out);
    return status;
}

int data_image_probe(data_image *out, const char *path)
{
    return data_image_load(out, path, DATA_IMAGE_HEADER);
}

void data_image_release(data_image *image)
{
    shoal_data_free(&image->array);
    base_free(&image->owned);
    image->samples = NULL;
}

/* ---- cutting ----------------------------------------------------------------------------------------------------- */

/* What stands for white. */
static double white_of(shoal_type type)
{
    return type == SHOAL_UINT8 ? 255 : type == SHOAL_UINT16 ? 65535 : 1;
}

/* One line of the square.  Sums of integers are exact and divided once, so that a grey of equal parts is that grey. */
static void convert_line(double *out, const double *line, int64_t size, int channels, bool colour, double white)
{
    for (int64_t x = 0; x < size; x++, line += channels) {
        if (colour)
            for (int c = 0; c < 3; c++)
                *out++ = line[channels == 3 ? c : 0] / white;
        else if (channels == 3)
            *out++ = (19595 * line[0] + 38470 * line[1] + 7471 * line[2]) / (65536 * white);
        else
            *out++ = line[0] / white;
    }
}

static int check_finite(const double *values, int64_t count, const data_image *image, const data_cut *cut, int64_t y)
{
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(values[i]))
            return shoal_fail(SHOAL_INVALID, "%s: image %lld, row %lld, column %lld: %s is not a finite number",
                              image->path, (long long)cut->image + 1, (long long)(cut->top + y) + 1,
                              (long long)(cut->left + i / image->channels) + 1, isnan(values[i]) ? "nan" : "inf");
    return SHOAL_OK;
}

int data_image_cut(double *out, const data_image *image, const data_cut *cut, double *scratch)
{
    const int64_t count = cut->size * image->channels, per_line = cut->size * (cut->colour ? 3 : 1);
    const bool real = image->type == SHOAL_FLOAT32 || image->type == SHOAL_FLOAT64;
    for (int64_t y = 0; y < cut->size; y++) {
        int64_t first = ((cut->image * image->height + cut->top + y) * image->width + cut->left) * image->channels;
        const void *from = (const char *)image->samples + (size_t)first * shoal_type_size(image->type);
        shoal_convert_float64(scratch, from, image->type, count);
        if (real && check_finite(scratch, count, image, cut, y) < 0)
            return SHOAL_INVALID;
        convert_line(out + y * per_line, scratch, cut->size, image->channels, cut->colour, white_of(image->type));
    }
    return SHOAL_OK;
}
