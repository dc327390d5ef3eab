/* Changes to the images that a net is trained on.  See train_internal.h and docs/learn/train.md.
 *
 * Values only move, or become the edge: no arithmetic is done.  What moves where is a function of the seed, the epoch
 * and the number of the row, so that threads, workers, ranks, batches and groups can't change it. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/option.h"
#include "base/random.h"
#include "base/text.h"
#include "learn/train/train_internal.h"

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* One word of the list, `size` characters. */
static int read_word(train_augment *out, const char *word, size_t size, const train_shape *in)
{
    const int64_t most = in->height < in->width ? in->height : in->width;
    const bool crop = size > 5 && strncmp(word, "crop:", 5) == 0, shift = size > 6 && strncmp(word, "shift:", 6) == 0;
    char number[24] = "";
    int64_t pixels = 0;
    if (size == 4 && strncmp(word, "flip", 4) == 0) {
        out->flip = 1;
        return SHOAL_OK;
    }
    const size_t begin = crop ? 5 : 6;
    if ((crop || shift) && size - begin < sizeof number)
        memcpy(number, word + begin, size - begin);
    if (!base_parse_count(&pixels, number) || pixels < 1)
        return shoal_fail(SHOAL_USAGE,
                          "--augment: '%.*s' is not flip, crop:P or shift:P with P pixels, such as shift:2", (int)size,
                          word);
    if (pixels >= most)
        return shoal_fail(SHOAL_USAGE, "--augment: %.*s on images of %" PRId64 "x%" PRId64 " leaves nothing of them",
                          (int)size, word, in->height, in->width);
    *(crop ? &out->crop : &out->shift) = pixels;
    return SHOAL_OK;
}

int train_augment_read(train_augment *out, const char *text, const train_shape *in)
{
    *out = (train_augment){0};
    if (!text)
        return SHOAL_OK;
    if (in->flat)
        return shoal_fail(SHOAL_USAGE, "--augment changes images, but these rows are lists: --shape HxW says what "
                                       "images they are");
    int status = SHOAL_OK;
    for (const char *word = text; status == SHOAL_OK; word++) {
        const size_t size = strcspn(word, ",");
        status = read_word(out, word, size, in);
        word += size;
        if (*word == '\0')
            break;
    }
    return status;
}

/* ---- changing ---------------------------------------------------------------------------------------------------- */

/* What happens to a row. */
typedef struct change {
    bool mirrored;
    int64_t crop_down, crop_right;   /* of the border, where the window begins, less the border's width */
    int64_t shift_down, shift_right; /* where what is seen comes from */
} change;

/* A whole number from -most to most: 32 bits times how many there are, of which the upper bits are taken. */
static int64_t whole_within(uint32_t bits, int64_t most)
{
    return (int64_t)(((uint64_t)bits * (uint64_t)(2 * most + 1)) >> 32) - most;
}

static change draw_change(const train_augment *how, uint64_t seed, int64_t epoch, int64_t row)
{
    const uint64_t key = base_random_u64(seed, BASE_FOR_AUGMENT, (uint64_t)epoch, 0);
    uint32_t first[4], second[4];
    base_random(first, key, BASE_FOR_AUGMENT, (uint64_t)row, 0);
    base_random(second, key, BASE_FOR_AUGMENT, (uint64_t)row, 1);
    return (change){.mirrored = how->flip && first[0] < 0x80000000U,
                    .crop_down = whole_within(first[1], how->crop),
                    .crop_right = whole_within(first[2], how->crop),
                    .shift_down = whole_within(second[0], how->shift),
                    .shift_right = whole_within(second[1], how->shift)};
}

static int64_t within(int64_t at, int64_t size)
{
    return at < 0 ? 0 : at < size ? at : size - 1;
}

void train_augment_row(float *image, float *spare, const train_augment *how, const train_shape *in, float zero,
                       uint64_t seed, int64_t epoch, int64_t row)
{
    const change to = draw_change(how, seed, epoch, row);
    const int64_t height = in->height, width = in->width, places = height * width;
    memcpy(spare, image, (size_t)(in->channels * places) * sizeof *image);
    for (int64_t c = 0; c < in->channels; c++)
        for (int64_t y = 0; y < height; y++) {
            const int64_t from_y = within(y + to.shift_down, height) + to.crop_down;
            const float *line = spare + c * places + from_y * width;
            float *out = image + c * places + y * width;
            for (int64_t x = 0; x < width; x++) {
                const int64_t from_x = within(x + to.shift_right, width) + to.crop_right;
                const bool there = from_y >= 0 && from_y < height && from_x >= 0 && from_x < width;
                out[x] = !there ? zero : line[to.mirrored ? width - 1 - from_x : from_x];
            }
        }
}
