/* One shard: images are got, prepared and written one after another, and the whole is put.  See pack_internal.h. */
#include "learn/pack/pack_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "data/data_internal.h"
#include "data/format/example.h"
#include "data/format/tar.h"
#include "data/format/tfrecord.h"

/* A file that is larger is not read: its pixels would be refused anyway. */
static const int64_t FILE_BYTES_MOST = (int64_t)1 << 30;
/* What a format has around an image, but for the one-hot list of its class. */
enum { RECORD_BYTES = 4096 };

typedef struct shard {
    const pack_model *model;
    const pack_ready *ready;
    const shoal_grain *grain;
    shoal_partial *partial;
    data_image_maker *maker;
    data_image_recipe recipe;
    base_writer body, index, classes; /* classes: of npy, int32 each */
    base_writer broken;               /* rows (int64) and what was said of them, for the part */
    int64_t written;
    int64_t spare; /* bytes that all of this may take; 0: any number */
} shard;

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* `what` needs too much, and what to do about it. */
static int fail_room(const shard *self, const char *what, const char *advice)
{
    return shoal_fail(
        SHOAL_MEMORY,
        "%s more than the %.1f MB that a thread may use here%s (--memory, or --worker-memory where workers "
        "are started)",
        what, (double)self->spare / 1e6, advice);
}

/* Bytes that are held, beside what the maker takes while it decodes: its item, before and after it is encoded. */
static int64_t held_bytes(const shard *self)
{
    const int64_t item = (int64_t)self->recipe.height * self->recipe.width * 3;
    return (int64_t)(self->body.room + self->index.room + self->classes.room + self->broken.room) + 2 * item;
}

/* Whether so many bytes more have room. */
static int check_room(const shard *self, int64_t more)
{
    char what[64];
    if (self->spare == 0 || more <= self->spare - held_bytes(self))
        return SHOAL_OK;
    snprintf(what, sizeof what, "shard %" PRId64 " needs", self->grain->index);
    return fail_room(self, what, ": choose more --shards");
}

/* What a record has around an image, about, with the list that is 1 for its class and 0 for the others. */
static int64_t record_bytes(const shard *self)
{
    return 400 + 4 * (int64_t)self->model->classes;
}

/* The same for an item that is added to the shard, which is copied when it outgrows its memory; a record is copied,
 * too. */
static int check_growth(const shard *self, const data_image_item *made)
{
    const int64_t more = (int64_t)made->size + RECORD_BYTES + record_bytes(self), size = (int64_t)self->body.size,
                  room = (int64_t)self->body.room,
                  grown = more <= room - size      ? 0
                          : size + more > 2 * room ? size + more
                                                   : 2 * room;
    return check_room(self, grown + (self->model->format == PACK_TFRECORD ? 2 * more : 0));
}

/* ---- formats ----------------------------------------------------------------------------------------------------- */

static void add_record(shard *self, const pack_item *item, const data_image_item *made)
{
    const pack_model *model = self->model;
    base_writer example = {0};
    char line[64];
    size_t before = self->body.size;
    data_example_write(&example,
                       &(data_example){.image = made->bytes,
                                       .image_size = made->size,
                                       .label = item->class,
                                       .label_name = item->class < 0 ? NULL : pack_class_name(model, item->class),
                                       .labels = model->classes,
                                       .height = made->height,
                                       .width = made->width});
    if (example.status < 0)
        self->body.status = example.status;
    else
        data_tfrecord_write(&self->body, example.data, example.size);
    base_writer_release(&example);
    int length = snprintf(line, sizeof line, "%zu %zu\n", before, self->body.size - before);
    if (model->index)
        base_write_bytes(&self->index, line, (size_t)length);
}

/* Members of one image have one name, which is its number: that is how webdataset knows that they belong together. */
static void add_members(shard *self, const pack_item *item, const data_image_item *made, int64_t row)
{
    char name[48], class[16];
    snprintf(name, sizeof name, "%09" PRId64 ".jpg", row);
    data_tar_write(&self->body, name, made->bytes, made->size);
    if (item->class < 0)
        return;
    snprintf(name, sizeof name, "%09" PRId64 ".cls", row);
    int length = snprintf(class, sizeof class, "%" PRId32, item->class);
    data_tar_write(&self->body, name, class, (size_t)length);
}

static void add_pixels(shard *self, const pack_item *item, const data_image_item *made)
{
    base_write_bytes(&self->body, made->bytes, made->size);
    base_write_u32(&self->classes, (uint32_t)item->class);
}

static void add_item(shard *self, const pack_item *item, const data_image_item *made, int64_t row)
{
    switch (self->model->format) {
    case PACK_TFRECORD: add_record(self, item, made); break;
    case PACK_TAR: add_members(self, item, made, row); break;
    default: add_pixels(self, item, made);
    }
    self->written++;
}

/* ---- images ------------------------------------------------------------------------------------------------------ */

static int note_broken(shard *self, int64_t row, const pack_item *item, const char *why)
{
    base_write_i64(&self->broken, row);
    base_write_text(&self->broken, item->name);
    base_write_text(&self->broken, why);
    return pack_add_broken(self->partial, row, item->name, why);
}

/* The sentence about an image that is broken begins with its name, as people can be shown it. */
static const char *without_name(const char *sentence, const char *name)
{
    const size_t length = strlen(name);
    char shown[PACK_NAME_MOST + 1];
    memcpy(shown, name, length + 1);
    base_text_clean(shown);
    bool begins = strncmp(sentence, shown, length) == 0 && strncmp(sentence + length, ": ", 2) == 0;
    return begins ? sentence + length + 2 : sentence;
}

/* Whether a file has grown since it was listed; otherwise there was no memory for it. */
static bool is_larger(const shoal_blobs *from, const pack_item *item)
{
    int64_t size = 0;
    char *why = NULL;
    const int kept = base_copy_text(&why, shoal_error());
    const bool larger = from->has(from, item->name, &size) == SHOAL_OK && size > item->size;
    if (kept == SHOAL_OK)
        shoal_fail(SHOAL_MEMORY, "%s", why);
    base_free(&why);
    return larger;
}

static int add_image(shard *self, int64_t row, const pack_item *item)
{
    const shoal_blobs *from = self->ready->from;
    data_image_item made;
    void *bytes = NULL;
    size_t size = 0;
    char why[400];
    if (pack_row_why(item->size))
        return note_broken(self, row, item, pack_row_why(item->size));
    if (item->size > FILE_BYTES_MOST)
        return note_broken(self, row, item, "the file is larger than 1 GiB");
    int status = check_room(self, item->size);
    if (status < 0)
        return status;
    status = from->get(from, item->name, item->size, &bytes, &size);
    if (status == SHOAL_ABSENT)
        return note_broken(self, row, item, "it is not there any more");
    if ((status == SHOAL_MEMORY && is_larger(from, item)) || (status == SHOAL_OK && (int64_t)size != item->size))
        status = shoal_fail(SHOAL_INVALID, "%s has another size than when the images were listed", item->name);
    if (status < 0)
        goto done;
    if (self->spare > 0)
        self->recipe.room = self->spare - held_bytes(self) - item->size + 1;
    status = data_image_prepare(&made, self->maker, &self->recipe, bytes, size, item->name);
    from->release(from, &bytes);
    if (status == SHOAL_INVALID) {
        snprintf(why, sizeof why, "%s", without_name(shoal_error(), item->name));
        return note_broken(self, row, item, why);
    }
    if (status == SHOAL_MEMORY && self->spare > 0) {
        snprintf(why, sizeof why, "%.300s: its pixels take", item->name);
        status = fail_room(self, why, "");
    }
    if (status == SHOAL_OK)
        status = check_growth(self, &made);
    if (status == SHOAL_OK)
        add_item(self, item, &made, row);
    if (status == SHOAL_OK)
        status = self->body.status;
done:
    from->release(from, &bytes);
    return status;
}

static int add_images(shard *self)
{
    const shoal_grain *grain = self->grain;
    const int64_t row_bytes = self->ready->shape->columns;
    int status = SHOAL_OK;
    for (int64_t i = 0; i < grain->rows && status == SHOAL_OK; i++) {
        pack_item item;
        if (!pack_row_read(&item, (const unsigned char *)grain->values + i * row_bytes, row_bytes) ||
            item.class >= self->model->classes)
            return shoal_fail(SHOAL_INVALID, "row %" PRId64 " does not name an image", grain->first_row + i + 1);
        status = add_image(self, grain->first_row + i, &item);
    }
    return status;
}

/* Pixels are as many as there are images, so that nothing is copied as the shard grows. */
static int reserve_pixels(shard *self)
{
    const data_image_recipe *recipe = &self->recipe;
    const int64_t item = (int64_t)recipe->height * recipe->width * 3;
    int64_t bytes;
    if (recipe->encode != DATA_IMAGE_RAW)
        return SHOAL_OK;
    if (__builtin_mul_overflow(item + (self->model->format == PACK_NPY ? 0 : record_bytes(self)), self->grain->rows,
                               &bytes))
        bytes = INT64_MAX;
    int status = check_room(self, bytes);
    if (status == SHOAL_OK)
        base_write_reserve(&self->body, (size_t)bytes);
    return status < 0 ? status : self->body.status;
}

/* ---- putting ----------------------------------------------------------------------------------------------------- */

/* An array's header says how many there are, and stands before them. */
static int put_array(shard *self, const char *name, const base_writer *values, shoal_type type, int rank,
                     const int64_t *shape, int64_t *bytes, unsigned char sha256[BASE_HASH_SIZE])
{
    const shoal_blobs *to = self->ready->to;
    char header[DATA_NPY_HEADER_ROOM];
    base_writer whole = {0};
    size_t length = data_npy_header_write(header, type, rank, shape);
    if (check_room(self, (int64_t)(length + values->size)) < 0)
        return SHOAL_MEMORY;
    base_write_reserve(&whole, length + values->size);
    base_write_bytes(&whole, header, length);
    base_write_bytes(&whole, values->data, values->size);
    int status = whole.status;
    if (status == SHOAL_OK)
        status = to->put(to, name, whole.data, whole.size);
    if (status == SHOAL_OK) {
        *bytes = (int64_t)whole.size;
        base_hash_of(sha256, whole.data, whole.size);
    }
    base_writer_release(&whole);
    return status;
}

static int put_arrays(shard *self, const char *name, pack_shard *out)
{
    const int64_t shape[] = {self->written, self->model->height, self->model->width, 3};
    const pack_naming naming = pack_naming_of(self->model);
    char *classes = NULL;
    int status = put_array(self, name, &self->body, SHOAL_UINT8, 4, shape, &out->bytes, out->sha256);
    if (status == SHOAL_OK && self->model->classes > 0)
        status = pack_shard_name(&classes, &naming, self->grain->index, self->grain->rows, ".classes.npy");
    if (classes && status == SHOAL_OK)
        status = put_array(self, classes, &self->classes, SHOAL_INT32, 1, shape, &out->beside_bytes, out->beside);
    base_free(&classes);
    return status;
}

static int put_shard(shard *self, pack_shard *out)
{
    const shoal_blobs *to = self->ready->to;
    const pack_model *model = self->model;
    const pack_naming naming = pack_naming_of(model);
    char *name = NULL, *index = NULL;
    int status = pack_shard_name(&name, &naming, self->grain->index, self->grain->rows, NULL);
    if (status == SHOAL_OK && model->format == PACK_NPY) {
        status = put_arrays(self, name, out);
        goto done;
    }
    if (model->format == PACK_TAR)
        data_tar_end(&self->body);
    if (status == SHOAL_OK)
        status = self->body.status < 0 ? self->body.status : self->index.status;
    if (status == SHOAL_OK && model->index)
        status = pack_shard_name(&index, &naming, self->grain->index, self->grain->rows, ".idx");
    if (status == SHOAL_OK && index)
        status = to->put(to, index, self->index.data, self->index.size);
    if (status == SHOAL_OK)
        status = to->put(to, name, self->body.data, self->body.size);
    out->bytes = (int64_t)self->body.size;
    base_hash_of(out->sha256, self->body.data, self->body.size);
    if (index) {
        out->beside_bytes = (int64_t)self->index.size;
        base_hash_of(out->beside, self->index.data, self->index.size);
    }
done:
    base_free(&index);
    base_free(&name);
    return status;
}

int pack_make_shard(shoal_partial *partial, const pack_model *model, const pack_ready *ready, const shoal_grain *grain,
                    int64_t spare)
{
    shard self = {.model = model,
                  .ready = ready,
                  .grain = grain,
                  .partial = partial,
                  .recipe = pack_recipe(model),
                  .spare = spare};
    pack_shard out = {.items = grain->rows};
    int status = data_image_maker_new(&self.maker);
    if (status == SHOAL_OK)
        status = reserve_pixels(&self);
    if (status == SHOAL_OK)
        status = add_images(&self);
    if (status == SHOAL_OK && self.broken.size > 0 && !model->skip_broken)
        goto done; /* the run fails once it is known which images are broken */
    out.written = self.written;
    pack_shard_inputs(out.inputs, model, ready, grain);
    if (status == SHOAL_OK)
        status = put_shard(&self, &out);
    if (status == SHOAL_OK && model->parts)
        status = pack_part_put(&out, &self.broken, model, ready, grain);
    if (status == SHOAL_OK)
        status = shoal_partial_record(partial, PACK_CELL_SHARDS, (shoal_key){(uint64_t)grain->index, 0}, &out);
done:
    data_image_maker_free(&self.maker);
    base_writer_release(&self.body);
    base_writer_release(&self.index);
    base_writer_release(&self.classes);
    base_writer_release(&self.broken);
    return status;
}
