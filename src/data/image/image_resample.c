/* Resizing and cropping, row by row.  See image_resample.h.
 *
 * A row of the source is converted to floats, narrowed to the item's columns, and kept until the last row of the item
 * that needs it is made.  Pixels are vectors of four floats, so that the compiler need not find them. */
#include "image_resample.h"

#include <math.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "base/memory.h"

typedef data_image_lanes lanes;

int data_image_room_get(data_image_room *room, int64_t count, size_t size)
{
    size_t bytes;
    if (!base_multiply(&bytes, (size_t)count, size))
        bytes = SIZE_MAX;
    if (room->block && room->size >= bytes)
        return SHOAL_OK;
    base_free(&room->block);
    room->size = 0;
    int status = base_alloc_unset(&room->block, bytes, 1, "an image");
    if (status == SHOAL_OK)
        room->size = bytes;
    return status;
}

/* ---- geometry ---------------------------------------------------------------------------------------------------- */

data_image_cover data_image_cover_of(const data_image_shape *shape)
{
    const int64_t h = shape->source_height, w = shape->source_width;
    data_image_cover cover = {.height = shape->height, .width = shape->width};
    if (w * shape->height < h * shape->width)
        cover.height = h * shape->width / w;
    else
        cover.width = w * shape->height / h;
    cover.top = (cover.height - shape->height) / 2;
    cover.left = (cover.width - shape->width) / 2;
    return cover;
}

/* Pixels offset to offset + side of `size` that `source` are resized to. */
typedef struct stretch {
    int64_t source, size, offset;
    int side;
} stretch;

/* The two neighbours of a pixel's centre and the share of the second, exactly as tf.image.resize computes them. */
static void place_tf(data_image_axis *axis, const stretch *by)
{
    const float scale = (float)by->source / (float)by->size;
    for (int i = 0; i < by->side; i++) {
        const float at = ((float)(by->offset + i) + 0.5f) * scale - 0.5f, below = floorf(at);
        int64_t first = (int64_t)below;
        float share = at - below;
        axis->count[i] = 2;
        if (first < 0 || first >= by->source - 1) { /* beyond an edge there is one */
            first = first < 0 ? 0 : by->source - 1;
            share = 0;
            axis->count[i] = 1;
        }
        axis->shares[i] = (lanes){share, share, share, share};
        axis->first[i] = (int32_t)first;
    }
}

/* The pixels below a triangle around a pixel's centre, as wide as the scale, and their shares. */
static void place_antialias(data_image_axis *axis, const stretch *by)
{
    const double scale = (double)by->source / (double)by->size, reach = scale > 1 ? scale : 1;
    for (int i = 0; i < by->side; i++) {
        const double centre = ((double)(by->offset + i) + 0.5) * scale;
        float *weights = axis->weights + (int64_t)i * axis->most;
        int64_t first = (int64_t)floor(centre - reach + 0.5), past = (int64_t)floor(centre + reach + 0.5);
        double sum = 0;
        first = first < 0 ? 0 : first;
        past = past > by->source ? by->source : past;
        axis->first[i] = (int32_t)first;
        axis->count[i] = (int32_t)(past - first);
        for (int64_t x = first; x < past; x++)
            sum += fmax(0, 1 - fabs((double)x + 0.5 - centre) / reach);
        for (int64_t x = first; x < past; x++)
            weights[x - first] = (float)(fmax(0, 1 - fabs((double)x + 0.5 - centre) / reach) / sum);
    }
}

static int place(data_image_axis *axis, data_image_resize resize, const stretch *by)
{
    const double scale = (double)by->source / (double)by->size;
    const int64_t most = 2 * (int64_t)ceil(scale > 1 ? scale : 1) + 2;
    const bool tf = resize == DATA_IMAGE_TF;
    axis->most = tf ? 2 : (int)(most < by->source ? most : by->source);
    const int64_t weights = (int64_t)by->side * (tf ? 4 : axis->most);
    int status = data_image_room_get(&axis->memory, weights + 2 * (int64_t)by->side, sizeof(int32_t));
    if (status < 0)
        return status;
    axis->weights = axis->memory.block;
    axis->shares = axis->memory.block;
    axis->first = (int32_t *)axis->memory.block + weights;
    axis->count = axis->first + by->side;
    if (tf)
        place_tf(axis, by);
    else
        place_antialias(axis, by);
    const int last = by->side - 1;
    axis->from = axis->first[0];
    axis->past = axis->first[last] + axis->count[last];
    for (int i = 0; i < by->side; i++)
        axis->first[i] -= (int32_t)axis->from;
    return SHOAL_OK;
}

/* Pixels beyond an edge, of one neighbour, get two: the inner one's share is 0, the same value. */
static void pair_edges(data_image_axis *axis, int side)
{
    for (int i = 0; i < side; i++)
        if (axis->count[i] == 1 && axis->first[i] > 0) {
            axis->first[i]--;
            axis->shares[i] = (lanes){1, 1, 1, 1};
        }
}

/* A row of the item has room for a vector behind its last pixel. */
static int64_t row_floats(const data_image_shape *shape)
{
    return 3 * (int64_t)shape->width + 1;
}

/* libjpeg writes aligned rows past the caches, where whoever reads them would wait for them. */
int data_resample_whole(data_resampler *self, const data_image_shape *shape)
{
    enum { UNALIGNED = 4 };
    self->shape = *shape;
    int status = data_image_room_get(&self->out_memory, (int64_t)shape->height * shape->width * 3 + UNALIGNED, 1);
    self->out = status == SHOAL_OK ? (unsigned char *)self->out_memory.block + UNALIGNED : NULL;
    return status;
}

int data_resample_begin(data_resampler *self, const data_image_shape *shape)
{
    const data_image_cover cover = data_image_cover_of(shape);
    const stretch down = {shape->source_height, cover.height, cover.top, shape->height},
                  across = {shape->source_width, cover.width, cover.left, shape->width};
    self->row = self->done = 0;
    int status = data_resample_whole(self, shape);
    if (status == SHOAL_OK)
        status = place(&self->rows, shape->resize, &down);
    if (status == SHOAL_OK)
        status = place(&self->columns, shape->resize, &across);
    if (status == SHOAL_OK)
        status = data_image_room_get(&self->line_memory, self->columns.past - self->columns.from, sizeof *self->line);
    if (status == SHOAL_OK) /* and the sum */
        status = data_image_room_get(&self->ring_memory, (self->rows.most + 1) * row_floats(shape), sizeof *self->ring);
    if (status < 0)
        return status;
    if (shape->resize == DATA_IMAGE_TF)
        pair_edges(&self->columns, shape->width);
    self->arithmetic = data_image_rows_best();
    self->line = self->line_memory.block;
    self->sum = self->ring_memory.block;
    self->ring = self->sum + row_floats(shape);
    return SHOAL_OK;
}

void data_resample_release(data_resampler *self)
{
    base_free(&self->rows.memory.block);
    base_free(&self->columns.memory.block);
    base_free(&self->line_memory.block);
    base_free(&self->ring_memory.block);
    base_free(&self->out_memory.block);
    *self = (data_resampler){0};
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

/* Four bytes at a time become four floats: gcc's own code for this takes twice the time. */
static void make_floats(lanes *restrict out, const unsigned char *restrict pixels, int64_t count)
{
    int64_t i = 0;
#ifdef __SSE2__
    const __m128i zero = _mm_setzero_si128();
    for (; i + 4 <= count; i += 4) {
        const __m128i bytes = _mm_loadu_si128((const __m128i *)(pixels + 4 * i)), low = _mm_unpacklo_epi8(bytes, zero),
                      high = _mm_unpackhi_epi8(bytes, zero);
        out[i] = _mm_cvtepi32_ps(_mm_unpacklo_epi16(low, zero));
        out[i + 1] = _mm_cvtepi32_ps(_mm_unpackhi_epi16(low, zero));
        out[i + 2] = _mm_cvtepi32_ps(_mm_unpacklo_epi16(high, zero));
        out[i + 3] = _mm_cvtepi32_ps(_mm_unpackhi_epi16(high, zero));
    }
#endif
    for (; i < count; i++)
        out[i] = (lanes){pixels[4 * i], pixels[4 * i + 1], pixels[4 * i + 2], pixels[4 * i + 3]};
}

/* Writes three floats and, where the next pixel or nothing will be, a fourth. */
static inline void put(float *out, lanes pixel)
{
    memcpy(out, &pixel, sizeof pixel);
}

static void narrow_antialias(float *restrict out, const lanes *restrict line, const data_image_axis *axis, int width)
{
    const float *weights = axis->weights;
    for (int x = 0; x < width; x++, weights += axis->most) {
        const lanes *pixel = line + axis->first[x];
        lanes sum = {0};
        for (int i = 0; i < axis->count[x]; i++)
            sum += pixel[i] * (lanes){weights[i], weights[i], weights[i], weights[i]};
        put(out + 3 * x, sum);
    }
}

static void set_row(float *restrict sum, const float *restrict row, float weight, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        sum[i] = row[i] * weight;
}

static void add_row(float *restrict sum, const float *restrict row, float weight, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        sum[i] += row[i] * weight;
}

static void round_row(unsigned char *restrict out, const float *restrict sum, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        out[i] = (unsigned char)(int)(sum[i] + 0.5f);
}

static float *kept_row(const data_resampler *self, int64_t row)
{
    return self->ring + row % self->rows.most * row_floats(&self->shape);
}

static void make_row(data_resampler *self, int y)
{
    const int64_t first = self->rows.first[y], values = 3 * (int64_t)self->shape.width;
    float *sum = self->sum;
    unsigned char *out = self->out + y * values;
    if (self->shape.resize == DATA_IMAGE_TF) {
        const int64_t last = first + self->rows.count[y] - 1;
        self->arithmetic->mix(out, kept_row(self, first), kept_row(self, last), self->rows.shares[y][0], values);
        return;
    }
    const float *weights = self->rows.weights + (int64_t)y * self->rows.most;
    set_row(sum, kept_row(self, first), weights[0], values);
    for (int i = 1; i < self->rows.count[y]; i++)
        add_row(sum, kept_row(self, first + i), weights[i], values);
    round_row(out, sum, values);
}

static void narrow_row(float *out, const data_resampler *self, const unsigned char *pixels)
{
    const data_image_axis *columns = &self->columns;
    const int64_t count = columns->past - columns->from;
    unsigned char pair[8] = {0};
    if (self->shape.resize == DATA_IMAGE_ANTIALIAS) {
        make_floats(self->line, pixels, count);
        narrow_antialias(out, self->line, columns, self->shape.width);
        return;
    }
    if (count == 1) /* has no other beside it; that one's share is 0 */
        pixels = memcpy(pair, pixels, 4);
    self->arithmetic->narrow(out, pixels, columns->first, columns->shares, self->shape.width);
}

void data_resample_row(data_resampler *self, const unsigned char *pixels)
{
    const int64_t row = self->row++;
    const data_image_axis *rows = &self->rows;
    if (self->done == self->shape.height || row < rows->first[self->done]) /* it lies between those that are needed */
        return;
    narrow_row(kept_row(self, row), self, pixels);
    while (self->done < self->shape.height && rows->first[self->done] + rows->count[self->done] - 1 <= row)
        make_row(self, self->done++);
}
