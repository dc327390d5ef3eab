/* What a contact sheet shows of packed images: up to SHOWN_MOST of them, read from the shards that were put.
 *
 * Where there are many shards, some that are spread evenly over all are read, each as far as READ_MOST; of what is in
 * them each class gets about as many places as any other, and its items are spread evenly, too.  Nothing is drawn by
 * lot, so the same shards make the same sheet. */
#include "learn/pack/pack_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "data/image/image_resample.h"
#include "learn/pack/pack_reader.h"

enum { SHOWN_MOST = 100, SHARDS_READ = 25, READ_MOST = 64 << 20, SIDE_SHOWN = 192 };

/* An item that may be shown. */
typedef struct candidate {
    int64_t shard, offset;
    size_t size;
    int32_t class;
} candidate;

typedef struct sheet {
    const shoal_blobs *to;
    const learn_ended *ended;
    const pack_config *config;
    pack_naming naming;
    pack_packing packing;
    int64_t shards;
    const int64_t *each; /* three numbers a shard: items, written, bytes */
    candidate *found;
    int64_t count, room;
    int64_t *shown; /* places in `found` */
} sheet;

/* ---- what there is ----------------------------------------------------------------------------------------------- */

static int add_candidate(sheet *self, int64_t shard, const pack_packed *item)
{
    if (self->count == self->room) {
        const int64_t room = 2 * self->room + 256;
        int status = base_grow(&self->found, (size_t)self->room, (size_t)room, sizeof *self->found, "a list of images");
        if (status < 0)
            return status;
        self->room = room;
    }
    self->found[self->count++] = (candidate){shard, item->offset, item->size, item->class};
    return SHOAL_OK;
}

static int look_through(sheet *self, int64_t shard)
{
    const int64_t items = self->each[PACK_NUMBERS * shard];
    char *name = NULL, *classes = NULL;
    pack_reader reader = {0};
    pack_packed item = {0};
    int status = pack_shard_name(&name, &self->naming, shard, items, NULL);
    if (status == SHOAL_OK && self->packing.format == PACK_NPY && self->packing.has_classes)
        status = pack_shard_name(&classes, &self->naming, shard, items, ".classes.npy");
    if (status == SHOAL_OK)
        status =
            pack_reader_open(&reader, self->to, &self->packing, name, classes, self->each[PACK_NUMBERS * shard + 1]);
    while (status == SHOAL_OK && reader.next <= READ_MOST) {
        status = pack_reader_next(&item, &reader);
        if (status < 0 || !item.bytes)
            break;
        status = add_candidate(self, shard, &item);
    }
    pack_reader_close(&reader);
    base_free(&classes);
    base_free(&name);
    return status;
}

static int look_through_all(sheet *self)
{
    const int64_t read = self->shards < SHARDS_READ ? self->shards : SHARDS_READ;
    int status = SHOAL_OK;
    for (int64_t i = 0; i < read && status == SHOAL_OK; i++)
        status = look_through(self, i * self->shards / read);
    return status;
}

/* ---- what is shown ----------------------------------------------------------------------------------------------- */

static int compare_candidates(const void *a, const void *b)
{
    const candidate *left = a, *right = b;
    if (left->class != right->class)
        return left->class < right->class ? -1 : 1;
    if (left->shard != right->shard)
        return left->shard < right->shard ? -1 : 1;
    return (left->offset > right->offset) - (left->offset < right->offset);
}

/* Shares `places` out to classes of so many candidates: one after the other gets one more while it has one.  Where
 * there are more classes than places, those that get one are spread evenly. */
static void share_out(int64_t *quota, const int64_t *has, int64_t classes, int64_t places)
{
    if (classes > places) {
        for (int64_t i = 0; i < places; i++)
            quota[i * classes / places] = 1;
        return;
    }
    for (bool gave = true; gave && places > 0;) {
        gave = false;
        for (int64_t i = 0; i < classes && places > 0; i++)
            if (quota[i] < has[i]) {
                quota[i]++;
                places--;
                gave = true;
            }
    }
}

/* Returns how many there are to be shown. */
static int choose_shown(int64_t *shown, sheet *self)
{
    int64_t classes = 0, *has = NULL, *quota = NULL, at = 0;
    qsort(self->found, (size_t)self->count, sizeof *self->found, compare_candidates);
    for (int64_t i = 0; i < self->count; i++)
        classes += i == 0 || self->found[i].class != self->found[i - 1].class;
    int status = base_alloc(&has, (size_t)classes, sizeof *has, "classes");
    if (status == SHOAL_OK)
        status = base_alloc(&quota, (size_t)classes, sizeof *quota, "classes");
    if (status == SHOAL_OK)
        status = base_alloc(&self->shown, SHOWN_MOST, sizeof *self->shown, "a list of images");
    *shown = 0;
    for (int64_t i = 0, class = -1; i < self->count && status == SHOAL_OK; i++) {
        class += i == 0 || self->found[i].class != self->found[i - 1].class;
        has[class]++;
    }
    if (status == SHOAL_OK)
        share_out(quota, has, classes, SHOWN_MOST);
    for (int64_t class = 0; class < classes && status == SHOAL_OK; at += has[class ++])
        for (int64_t i = 0; i < quota[class]; i++)
            self->shown[(*shown)++] = at + i * has[class] / quota[class];
    base_free(&quota);
    base_free(&has);
    return status;
}

/* ---- pixels ------------------------------------------------------------------------------------------------------ */

static int shrink_pixels(data_resampler *resampler, const data_image_shape *shape, const unsigned char *pixels)
{
    unsigned char *row = NULL;
    int status = data_resample_begin(resampler, shape);
    const int64_t from = resampler->columns.from, count = resampler->columns.past - from;
    if (status == SHOAL_OK)
        status = base_alloc(&row, (size_t)count, 4, "an image");
    for (int64_t y = resampler->rows.from; y < resampler->rows.past && status == SHOAL_OK; y++) {
        for (int64_t x = 0; x < count; x++)
            memcpy(row + 4 * x, pixels + 3 * (y * shape->source_width + from + x), 3);
        data_resample_row(resampler, row);
    }
    base_free(&row);
    return status;
}

typedef struct drawing {
    data_image_maker *maker;
    data_resampler resampler;
    int height, width; /* as they are shown */
} drawing;

/* Makes an item as large as it is shown. */
static int draw_item(unsigned char *out, drawing *self, const sheet *of, const unsigned char *bytes, size_t size,
                     const char *name)
{
    const data_image_recipe recipe = {.height = self->height,
                                      .width = self->width,
                                      .resize = DATA_IMAGE_ANTIALIAS,
                                      .encode = DATA_IMAGE_RAW,
                                      .quality = 1};
    const data_image_shape shape = {DATA_IMAGE_ANTIALIAS, self->height, self->width, of->packing.height,
                                    of->packing.width};
    const size_t pixels = (size_t)self->height * (size_t)self->width * 3;
    data_image_item item;
    int status;
    if (of->config->encode == DATA_IMAGE_RAW) {
        if (size != (size_t)of->packing.height * (size_t)of->packing.width * 3)
            return shoal_fail(SHOAL_INVALID, "%s: an image of %zu bytes is none of %dx%d", name, size,
                              of->packing.height, of->packing.width);
        status = shrink_pixels(&self->resampler, &shape, bytes);
        item.bytes = self->resampler.out;
    } else {
        status = data_image_prepare(&item, self->maker, &recipe, bytes, size, name);
    }
    if (status == SHOAL_OK)
        memcpy(out, item.bytes, pixels);
    return status;
}

static int draw_shown(learn_shown *out, drawing *self, const sheet *of, int64_t i)
{
    const candidate *from = &of->found[of->shown[i]];
    const size_t pixels = (size_t)(out->height * out->width * 3);
    char *name = NULL;
    void *bytes = NULL;
    int status = pack_shard_name(&name, &of->naming, from->shard, of->each[PACK_NUMBERS * from->shard], NULL);
    if (status == SHOAL_OK)
        status = base_alloc_unset(&bytes, from->size, 1, "an image");
    if (status == SHOAL_OK)
        status = of->to->get_part(of->to, name, from->offset, bytes, from->size);
    if (status == SHOAL_OK)
        status = draw_item(out->pixels + (size_t)i * pixels, self, of, bytes, from->size, name);
    base_free(&bytes);
    base_free(&name);
    return status;
}

/* The name of a class, of which the configuration has one per line. */
static int name_shown(char **out, const pack_config *config, int32_t class)
{
    const char *at = config->classes;
    for (; class > 0 && *at; class --)
        at += strcspn(at, "\n") + (at[strcspn(at, "\n")] == '\n');
    return class < 0 ? base_copy_text(out, "") : base_copy_text_n(out, at, strcspn(at, "\n"));
}

static int draw_all(learn_shown *out, const sheet *of, int64_t count)
{
    const int height = of->packing.height, width = of->packing.width, longer = height > width ? height : width;
    drawing self = {.height = height, .width = width};
    if (longer > SIDE_SHOWN) {
        self.height = (int)((int64_t)height * SIDE_SHOWN / longer);
        self.width = (int)((int64_t)width * SIDE_SHOWN / longer);
        self.height += self.height == 0;
        self.width += self.width == 0;
    }
    out->height = self.height;
    out->width = self.width;
    int status = base_alloc(&out->pixels, (size_t)count, (size_t)(out->height * out->width * 3), "a contact sheet");
    if (status == SHOAL_OK)
        status = base_alloc(&out->names, (size_t)count, sizeof *out->names, "a contact sheet");
    if (status == SHOAL_OK)
        status = data_image_maker_new(&self.maker);
    for (int64_t i = 0; i < count && status == SHOAL_OK; i++) {
        status = name_shown(&out->names[i], of->config, of->found[of->shown[i]].class);
        out->images = i + 1;
        if (status == SHOAL_OK)
            status = draw_shown(out, &self, of, i);
    }
    data_image_maker_free(&self.maker);
    data_resample_release(&self.resampler);
    return status;
}

int pack_show(learn_shown *out, const shoal_blobs *to, const learn_ended *ended)
{
    const pack_config *config = ended->config;
    const shoal_tensor *each = shoal_result_tensor(ended->result, "shards");
    const int64_t written = (int64_t)shoal_result_number(ended->result, "written");
    char all[32];
    int64_t count = 0;
    sheet self = {.to = to,
                  .ended = ended,
                  .config = config,
                  .naming = {config->name, config->format, pack_digits(config->shards)},
                  .packing = {.format = config->format, .has_classes = config->classes[0] != '\0'},
                  .shards = each->shape[0],
                  .each = each->values};
    int status = pack_read_size(&self.packing.height, &self.packing.width, config->size);
    if (status == SHOAL_OK)
        status = look_through_all(&self);
    if (status == SHOAL_OK && self.count == 0)
        status = shoal_fail(SHOAL_INVALID, "no image was packed, so there is none to show");
    if (status == SHOAL_OK)
        status = choose_shown(&count, &self);
    if (status == SHOAL_OK)
        status = draw_all(out, &self, count);
    base_format_count(all, sizeof all, written);
    if (status == SHOAL_OK)
        status = base_format(&out->title, "%s: %" PRId64 " of %s packed image%s", config->name, count, all,
                             base_plural(written));
    base_free(&self.shown);
    base_free(&self.found);
    return status;
}
