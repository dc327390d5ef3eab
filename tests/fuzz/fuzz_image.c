/* Any bytes as a PNG, a JPEG or an array of images: either refused with a sentence that names the file, or all of its
 * samples are there. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "data/image/image.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* Touches every sample, so that the sanitizers see those that are missing. */
static void touch(const data_image *image)
{
    size_t count = (size_t)(image->images * image->height * image->width) * (size_t)image->channels;
    const unsigned char *samples = image->samples;
    volatile unsigned char sum = 0;
    if (image->channels != 1 && image->channels != 3)
        abort();
    for (size_t i = 0; i < count * shoal_type_size(image->type); i++)
        sum = (unsigned char)(sum ^ samples[i]);
}

/* An array is opened by its path. */
static void read_array(const uint8_t *bytes, size_t size)
{
    char path[64];
    data_image image = {0};
    const int file = memfd_create("input", 0);
    if (file < 0 || write(file, bytes, size) != (ssize_t)size)
        abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    int status = data_image_load(&image, path, DATA_IMAGE_COLOUR);
    if (status == SHOAL_OK)
        touch(&image);
    else if (image.owned || image.array || strncmp(shoal_error(), path, strlen(path)) != 0)
        abort();
    data_image_release(&image);
    close(file);
}

/* Reads it one way. */
static void read_as(const uint8_t *bytes, size_t size, data_image_want want)
{
    data_image image = {0};
    FILE *stream = fmemopen((void *)(uintptr_t)bytes, size, "rb");
    if (!stream)
        abort();
    int status = data_image_read(&image, stream, (int64_t)size, "input", want);
    fclose(stream);
    if (status < 0 && (image.owned || strncmp(shoal_error(), "input", 5) != 0))
        abort();
    if (status == SHOAL_OK && want != DATA_IMAGE_HEADER)
        touch(&image);
    data_image_release(&image);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    if (size == 0)
        return 0;
    if (size >= 6 && memcmp(bytes, "\x93NUMPY", 6) == 0)
        read_array(bytes, size);
    read_as(bytes, size, DATA_IMAGE_HEADER);
    read_as(bytes, size, size % 2 ? DATA_IMAGE_GREY : DATA_IMAGE_COLOUR);
    return 0;
}
