/* Reading shards back.  See pack_reader.h.
 *
 * A shard may have been changed by others since it was put: every length is checked against its bytes. */
#include "learn/pack/pack_reader.h"

#include <inttypes.h>
#include <string.h>

#include "base/memory.h"
#include "data/data_internal.h"
#include "data/format/tar.h"
#include "data/format/tfrecord.h"

enum { WINDOW = 1 << 20 };

static int fail_at(const pack_reader *self, const char *what)
{
    return shoal_fail(SHOAL_INVALID, "%s: byte %" PRId64 ": %s", self->name, self->next, what);
}

/* Hands out bytes of the shard, with what follows read along. */
static int look_at(const unsigned char **out, pack_reader *self, int64_t first, int64_t count)
{
    if (count < 0 || first > self->size || count > self->size - first)
        return fail_at(self, "the shard is cut off");
    if (first < self->window_first || first + count > self->window_first + self->window_bytes) {
        int64_t wanted = count > WINDOW ? count : WINDOW;
        wanted = wanted < self->size - first ? wanted : self->size - first;
        int status = SHOAL_OK;
        if ((size_t)wanted > self->window_room) {
            base_free(&self->window);
            self->window_room = self->window_bytes = 0;
            status = base_alloc_unset(&self->window, (size_t)wanted, 1, "a shard");
        }
        if (status < 0)
            return status;
        self->window_room = (size_t)wanted > self->window_room ? (size_t)wanted : self->window_room;
        self->window_bytes = 0;
        status = self->blobs->get_part(self->blobs, self->name, first, self->window, (size_t)wanted);
        if (status < 0)
            return status;
        self->window_first = first;
        self->window_bytes = wanted;
    }
    *out = self->window + (first - self->window_first);
    return SHOAL_OK;
}

/* ---- records ----------------------------------------------------------------------------------------------------- */

static int take_record(pack_packed *out, pack_reader *self)
{
    const unsigned char *head;
    const char *wrong = NULL;
    data_tfrecord record = {0};
    uint64_t length = 0;
    int64_t class = -1;
    int status = look_at(&head, self, self->next, DATA_TFRECORD_HEAD);
    if (status < 0)
        return status;
    memcpy(&length, head, sizeof length);
    if (!data_tfrecord_starts(head, DATA_TFRECORD_HEAD) || length > (uint64_t)self->size)
        return fail_at(self, "no record begins here");
    status = look_at(&head, self, self->next, (int64_t)length + DATA_TFRECORD_OVERHEAD);
    if (status < 0)
        return status;
    if (data_tfrecord_next(&record, head, (size_t)length + DATA_TFRECORD_OVERHEAD) != DATA_TFRECORD_ONE ||
        !data_tfrecord_is_whole(&record))
        return fail_at(self, "the record is damaged");
    status = data_example_read(&self->features, record.bytes, record.size, &wrong);
    if (status < 0)
        return status == SHOAL_INVALID ? fail_at(self, wrong) : status;
    const data_feature *image = data_feature_find(&self->features, "image"),
                       *number = data_feature_find(&self->features, "class");
    if (image && image->kind == DATA_FEATURE_BYTES && image->count == 1)
        data_feature_bytes(&out->bytes, &out->size, image);
    if (!out->bytes)
        return fail_at(self, "the record has no image");
    if (number && number->kind == DATA_FEATURE_INTEGERS && number->count == 1)
        data_feature_integers(&class, 1, number);
    out->class = class < 0 || class > INT32_MAX ? -1 : (int32_t) class;
    out->offset = self->next + (out->bytes - head);
    self->next += (int64_t)length + DATA_TFRECORD_OVERHEAD;
    return SHOAL_OK;
}

/* ---- members ----------------------------------------------------------------------------------------------------- */

static bool ends(const char *name, const char *with)
{
    size_t length = strlen(name), end = strlen(with);
    return length > end && strcmp(name + length - end, with) == 0;
}

/* A picture, and the number of its class behind it. */
static int take_members(pack_packed *out, pack_reader *self)
{
    enum { CLASS_BYTES = 2 * DATA_TAR_BLOCK };
    const int64_t behind = self->packing.has_classes ? CLASS_BYTES : 0;
    const unsigned char *block;
    data_tar_member member, label;
    int status = look_at(&block, self, self->next, DATA_TAR_BLOCK);
    if (status < 0)
        return status;
    if (!data_tar_read(&member, block) || !ends(member.name, ".jpg"))
        return fail_at(self, "no picture begins here");
    const int64_t padded = (int64_t)((member.size + DATA_TAR_BLOCK - 1) / DATA_TAR_BLOCK * DATA_TAR_BLOCK);
    status = look_at(&block, self, self->next, DATA_TAR_BLOCK + padded + behind);
    if (status < 0)
        return status;
    *out = (pack_packed){block + DATA_TAR_BLOCK, member.size, self->next + DATA_TAR_BLOCK, -1};
    if (behind > 0) {
        const unsigned char *next = block + DATA_TAR_BLOCK + padded, *digit = next + DATA_TAR_BLOCK;
        if (!data_tar_read(&label, next) || !ends(label.name, ".cls") || label.size < 1 || label.size > 9)
            return fail_at(self, "the picture has no class behind it");
        out->class = 0;
        for (size_t i = 0; i < label.size; i++) {
            if (digit[i] < '0' || digit[i] > '9')
                return fail_at(self, "the picture's class is not a number");
            out->class = 10 * out->class + (digit[i] - '0');
        }
    }
    self->next += DATA_TAR_BLOCK + padded + behind;
    return SHOAL_OK;
}

/* ---- arrays ------------------------------------------------------------------------------------------------------ */

/* Compares the header of an array with the one that was written. */
static int expect_header(int64_t *length, const shoal_blobs *blobs, const char *name, shoal_type type, int rank,
                         const int64_t *shape)
{
    char expected[DATA_NPY_HEADER_ROOM], header[DATA_NPY_HEADER_ROOM];
    *length = (int64_t)data_npy_header_write(expected, type, rank, shape);
    int status = blobs->get_part(blobs, name, 0, header, (size_t)*length);
    if (status == SHOAL_OK && memcmp(header, expected, (size_t)*length) != 0)
        status = shoal_fail(SHOAL_INVALID, "%s is not the array that was written", name);
    return status;
}

static int open_array(pack_reader *self, const char *classes)
{
    const int64_t shape[] = {self->items, self->packing.height, self->packing.width, 3};
    const shoal_blobs *blobs = self->blobs;
    int64_t length = 0;
    int status = SHOAL_OK;
    if (classes) {
        status = expect_header(&length, blobs, classes, SHOAL_INT32, 1, shape);
        if (status == SHOAL_OK)
            status = base_alloc(&self->classes, (size_t)self->items, sizeof *self->classes, "classes");
        if (status == SHOAL_OK)
            status =
                blobs->get_part(blobs, classes, length, self->classes, (size_t)self->items * sizeof *self->classes);
    }
    return status == SHOAL_OK ? expect_header(&self->next, blobs, self->name, SHOAL_UINT8, 4, shape) : status;
}

static int take_pixels(pack_packed *out, pack_reader *self)
{
    const int64_t bytes = (int64_t)self->packing.height * self->packing.width * 3;
    int status = look_at(&out->bytes, self, self->next, bytes);
    out->size = (size_t)bytes;
    out->offset = self->next;
    out->class = self->classes ? self->classes[self->read] : -1;
    self->next += bytes;
    return status;
}

/* ---- all formats ------------------------------------------------------------------------------------------------- */

int pack_reader_open(pack_reader *out, const shoal_blobs *blobs, const pack_packing *packing, const char *name,
                     const char *classes, int64_t items)
{
    *out = (pack_reader){.blobs = blobs, .packing = *packing, .name = name, .items = items};
    int status = blobs->has(blobs, name, &out->size);
    if (status == SHOAL_OK && items > out->size) /* an item has a byte at least */
        status = fail_at(out, "the shard is cut off");
    if (status == SHOAL_OK && packing->format == PACK_NPY)
        status = open_array(out, classes);
    return status;
}

int pack_reader_next(pack_packed *out, pack_reader *self)
{
    int status;
    *out = (pack_packed){.class = -1};
    if (self->read == self->items)
        return SHOAL_OK;
    switch (self->packing.format) {
    case PACK_TFRECORD: status = take_record(out, self); break;
    case PACK_TAR: status = take_members(out, self); break;
    default: status = take_pixels(out, self);
    }
    self->read++;
    if (status < 0)
        out->bytes = NULL;
    return status;
}

void pack_reader_close(pack_reader *reader)
{
    data_features_release(&reader->features);
    base_free(&reader->window);
    base_free(&reader->classes);
}
