/* Which reader a picture needs, and squares of what it read.  See image.h. */
#include "image.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"

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

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static bool starts_with(const unsigned char *head, size_t size, const char *magic, size_t length)
{
    return size >= length && memcmp(head, magic, length) == 0;
}

static int fail_foreign(const char *path)
{
    return shoal_fail(SHOAL_INVALID, "%s: neither PNG, JPEG nor .npy", path);
}

/* Reads the picture or, when the bytes are those of an array, returns SHOAL_OK with *array set. */
static int read_stream(data_image *out, bool *array, const data_image_input *input)
{
    unsigned char head[8];
    size_t size = fread(head, 1, sizeof head, input->stream);
    if (ferror(input->stream))
        return shoal_fail_errno(SHOAL_SYSTEM, errno, "%s: can't read", input->path);
    if (size == 0)
        return shoal_fail(SHOAL_INVALID, "%s: the file is empty", input->path);
    *array = starts_with(head, size, "\x93NUMPY", 6) || starts_with(head, size, "\x1f\x8b\x08", 3);
    if (*array)
        return SHOAL_OK;
    if (fseek(input->stream, 0, SEEK_SET) < 0)
        return shoal_fail_errno(SHOAL_SYSTEM, errno, "%s: can't read", input->path);
    if (starts_with(head, size, "\x89PNG\r\n\x1a\n", 8))
        return data_image_read_png(out, input);
    if (starts_with(head, size, "\xff\xd8\xff", 3))
        return data_image_read_jpeg(out, input);
    return fail_foreign(input->path);
}

int data_image_read(data_image *out, FILE *stream, int64_t bytes, const char *path, data_image_want want)
{
    const data_image_input input = {stream, bytes, path, want};
    bool array = false;
    *out = (data_image){0};
    int status = read_stream(out, &array, &input);
    if (status == SHOAL_OK && array)
        status = fail_foreign(path);
    if (status < 0)
        data_image_release(out);
    return status;
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
