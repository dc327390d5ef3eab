/* Batches of pixels.  See speed_reader.h.
 *
 * A batch is made in two steps.  One thread says what belongs to it: names of files, or records, whose bytes it reads
 * block by block.  Then all threads check and decode, each image to its own place in the batch. */
#include "speed_reader.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "data/format/data_tfrecord.h"
#include "data/image/image_kind.h"
#include "data/image/image_prepare.h"

enum {
    BLOCK_OF_FILE = 256 << 10, /* as TensorFlow's readers of records have it */
    BLOCK_OF_BLOB = 4 << 20,   /* a request costs milliseconds */
    NAME_ROOM = 1200
};
/* A file that is larger is no image. */
static const int64_t FILE_BYTES_MOST = (int64_t)1 << 30;

/* What each thread has. */
typedef struct lane {
    data_image_maker *maker;
    data_features features;
    unsigned char *bytes; /* of a file */
    size_t room;
    int64_t read;
} lane;

typedef struct item {
    int64_t file;           /* of the list */
    int64_t record, offset; /* of a TFRecord: its number in the file, and where it begins there */
    size_t at, size;        /* where its bytes lie in the window */
    bool broken;
} item;

struct speed_reader {
    const speed_source *source;
    speed_reading how;
    base_pool *pool;
    lane *lane;
    speed_list list;
    int64_t next; /* file of the list */
    int barren;   /* times that the end was reached since an image was read */
    int64_t read, skipped;
    char *broken;
    int noting; /* a thread keeps the first sentence */
    item *item;
    int64_t items, room;
    unsigned char *pixels; /* of the batch, from its first item on */
    /* TFRecords: the open shard, and bytes of it and of those before it that belong to the batch. */
    speed_input input;
    bool is_open;
    int64_t file, record, frame_at, read_at; /* frame_at: where the next frame begins; read_at: where to read on */
    unsigned char *window;
    size_t window_room, filled, at; /* at: where the next frame lies */
};

/* ---- memory ------------------------------------------------------------------------------------------------------ */

int speed_reader_new(speed_reader **out, const speed_source *source, const speed_reading *how, base_pool *pool)
{
    const int threads = base_pool_threads(pool);
    int status = base_alloc(out, 1, sizeof **out, "reading images");
    if (status < 0)
        return status;
    **out = (speed_reader){.source = source, .how = *how, .pool = pool, .input = {.descriptor = -1}};
    status = base_alloc(&(*out)->lane, (size_t)threads, sizeof *(*out)->lane, "reading images");
    for (int i = 0; i < threads && status == SHOAL_OK; i++)
        status = data_image_maker_new(&(*out)->lane[i].maker);
    if (status < 0)
        speed_reader_free(out);
    return status;
}

void speed_reader_stop(speed_reader *reader)
{
    if (reader->is_open)
        speed_input_close(&reader->input);
    reader->is_open = false;
    speed_list_release(&reader->list);
}

void speed_reader_free(speed_reader **reader)
{
    speed_reader *self = *reader;
    if (!self)
        return;
    speed_reader_stop(self);
    for (int i = 0; self->lane && i < base_pool_threads(self->pool); i++) {
        data_image_maker_free(&self->lane[i].maker);
        data_features_release(&self->lane[i].features);
        base_free(&self->lane[i].bytes);
    }
    base_free(&self->lane);
    base_free(&self->item);
    base_free(&self->window);
    base_free(&self->broken);
    base_free(reader);
}

/* Room for that many bytes; keeps the first `kept`. */
static int make_room(unsigned char **bytes, size_t *room, size_t kept, size_t needed)
{
    unsigned char *more = NULL;
    if (needed <= *room)
        return SHOAL_OK;
    needed += needed / 2;
    int status = base_alloc_unset(&more, needed, 1, "an image");
    if (status < 0)
        return status;
    if (kept > 0)
        memcpy(more, *bytes, kept);
    base_free(bytes);
    *bytes = more;
    *room = needed;
    return SHOAL_OK;
}

int64_t speed_reader_bytes(const speed_reader *reader)
{
    int64_t bytes = reader->read;
    for (int i = 0; i < base_pool_threads(reader->pool); i++)
        bytes += reader->lane[i].read;
    return bytes;
}

int64_t speed_reader_skipped(const speed_reader *reader)
{
    return reader->skipped;
}

const char *speed_reader_broken(const speed_reader *reader)
{
    return reader->broken;
}

/* ---- what is broken ---------------------------------------------------------------------------------------------- */

/* SHOAL_OK when a failure is one to pass over; its sentence is kept, if it is the first. */
static int pass_over(speed_reader *self, int status)
{
    int nobody = 0;
    if (status != SHOAL_INVALID || !self->how.skip_broken)
        return status;
    if (__atomic_compare_exchange_n(&self->noting, &nobody, 1, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        return base_copy_text(&self->broken, shoal_error());
    return SHOAL_OK;
}

/* A batch that goes round is made in parts, so that it is known whether anything can be read. */
static bool is_part_whole(const speed_reader *self)
{
    return self->items > 0 && self->next == self->list.count;
}

/* Moves on to the next file of the list, and round. */
static int take_next_file(speed_reader *self, int64_t *file)
{
    if (self->next == self->list.count) {
        self->next = 0;
        if (++self->barren == 2)
            return shoal_fail(SHOAL_INVALID, "%s: has no image that can be read%s%s", self->source->name,
                              self->broken ? ": " : "", self->broken ? self->broken : "");
    }
    *file = self->next++;
    return SHOAL_OK;
}

/* ---- TFRecords: which records belong to a batch ------------------------------------------------------------------ */

static int fail_frame(const speed_reader *self, const data_tfrecord *frame, data_tfrecord_found found, size_t left)
{
    char name[NAME_ROOM], why[200];
    data_tfrecord_explain(why, sizeof why, frame, found, left);
    speed_list_name(name, sizeof name, self->source, &self->list, self->file);
    return shoal_fail(SHOAL_INVALID, "%s: record %" PRId64 ", byte %" PRId64 ": %s", name, self->record + 1,
                      self->frame_at, why);
}

static int open_next_shard(speed_reader *self)
{
    int status = take_next_file(self, &self->file);
    if (status == SHOAL_OK)
        status = speed_input_open(&self->input, self->source, &self->list, self->file);
    self->is_open = status == SHOAL_OK;
    self->record = self->frame_at = self->read_at = 0;
    self->filled = self->at; /* what is left of another shard is none of its frames */
    return status;
}

static void close_shard(speed_reader *self)
{
    speed_input_close(&self->input);
    self->is_open = false;
}

/* Reads on, so that a frame of that many bytes is in the window as a whole. */
static int fill_window(speed_reader *self, size_t frame)
{
    const size_t block = self->source->in_store ? BLOCK_OF_BLOB : BLOCK_OF_FILE;
    const size_t there = self->filled - self->at, left = (size_t)(self->input.size - self->read_at);
    size_t wanted = frame - there > block ? frame - there : block;
    wanted = wanted < left ? wanted : left;
    int status = make_room(&self->window, &self->window_room, self->filled, self->filled + wanted);
    if (status == SHOAL_OK)
        status = speed_input_read(&self->input, self->window + self->filled, wanted, self->read_at);
    if (status < 0)
        return status;
    self->filled += wanted;
    self->read_at += (int64_t)wanted;
    self->read += (int64_t)wanted;
    return SHOAL_OK;
}

/* The next record of the open shard; *end when it has no more.  A length that its checksum does not vouch for, or that
 * leads beyond the file, asks for no memory. */
static int take_record(speed_reader *self, item *out, bool *end)
{
    for (;;) {
        data_tfrecord frame = {0};
        const size_t there = self->filled - self->at,
                     left = there + (size_t)(self->input.size - self->read_at); /* of the file */
        const data_tfrecord_found found =
            there > 0 ? data_tfrecord_next(&frame, self->window + self->at, there) : DATA_TFRECORD_SHORT;
        *end = left == 0;
        if (left == 0)
            return SHOAL_OK;
        if (found == DATA_TFRECORD_ONE) {
            const size_t size = frame.size + DATA_TFRECORD_OVERHEAD;
            *out = (item){
                .file = self->file, .record = self->record++, .offset = self->frame_at, .at = self->at, .size = size};
            self->at += size;
            self->frame_at += (int64_t)size;
            return SHOAL_OK;
        }
        const bool has_head = there >= DATA_TFRECORD_HEAD;
        if (found == DATA_TFRECORD_LOST || left < DATA_TFRECORD_OVERHEAD ||
            (has_head && frame.size > left - DATA_TFRECORD_OVERHEAD))
            return fail_frame(self, &frame, found, left);
        int status = fill_window(self, has_head ? frame.size + DATA_TFRECORD_OVERHEAD : DATA_TFRECORD_OVERHEAD);
        if (status < 0)
            return status;
    }
}

/* Bytes of the batch before are not needed any more. */
static void clear_window(speed_reader *self)
{
    if (self->at > 0 && self->filled > self->at)
        memmove(self->window, self->window + self->at, self->filled - self->at);
    self->filled -= self->at;
    self->at = 0;
}

static int gather_records(speed_reader *self, int64_t count)
{
    int status = SHOAL_OK;
    clear_window(self);
    while (self->items < count && status == SHOAL_OK) {
        bool end = false;
        if (!self->is_open && is_part_whole(self))
            break;
        if (!self->is_open) {
            status = open_next_shard(self);
            continue;
        }
        status = take_record(self, &self->item[self->items], &end);
        if (status < 0) { /* the rest of the shard is lost with it */
            status = pass_over(self, status);
            self->skipped += status == SHOAL_OK;
            end = true;
        } else if (!end) {
            self->items++;
        }
        if (end)
            close_shard(self);
    }
    return status;
}

/* ---- images ------------------------------------------------------------------------------------------------------ */

static int gather_files(speed_reader *self, int64_t count)
{
    int status = SHOAL_OK;
    for (; self->items < count && status == SHOAL_OK && !is_part_whole(self); self->items++) {
        item *out = &self->item[self->items];
        *out = (item){0};
        status = take_next_file(self, &out->file);
    }
    return status;
}

static int read_file(speed_reader *self, lane *lane, const item *item, size_t *size, const char *name)
{
    speed_input input = {.descriptor = -1};
    int status = speed_input_open(&input, self->source, &self->list, item->file);
    *size = status == SHOAL_OK ? (size_t)input.size : 0;
    if (status == SHOAL_OK && input.size > FILE_BYTES_MOST)
        status = shoal_fail(SHOAL_INVALID, "%s: %" PRId64 " bytes are too many for an image", name, input.size);
    if (status == SHOAL_OK)
        status = make_room(&lane->bytes, &lane->room, 0, *size + 1);
    if (status == SHOAL_OK && *size > 0)
        status = speed_input_read(&input, lane->bytes, *size, 0);
    speed_input_close(&input);
    lane->read += status == SHOAL_OK ? (int64_t)*size : 0;
    return status;
}

/* ---- pixels ------------------------------------------------------------------------------------------------------ */

/* The image of a record whose checksum is right. */
static int find_image(const unsigned char **out, size_t *size, lane *lane, const data_tfrecord *record,
                      const char *name)
{
    const char *wrong = NULL;
    if (!data_tfrecord_is_whole(record))
        return shoal_fail(SHOAL_INVALID, "%s: it is damaged: its bytes have another checksum", name);
    int status = data_example_read(&lane->features, record->bytes, record->size, &wrong);
    if (status < 0)
        return wrong ? shoal_fail(SHOAL_INVALID, "%s: not a tf.train.Example: %s", name, wrong) : status;
    const data_feature *image = tf_find_image(&lane->features);
    if (!image)
        return shoal_fail(SHOAL_INVALID, "%s: it has no image", name);
    data_feature_bytes(out, size, image);
    return SHOAL_OK;
}

static int make_pixels(speed_reader *self, lane *lane, const item *item, unsigned char *out)
{
    const size_t pixels = (size_t)self->how.height * (size_t)self->how.width * 3;
    const unsigned char *bytes = NULL;
    size_t size = 0;
    char name[NAME_ROOM];
    data_image_item made;
    data_image_recipe recipe = data_image_recipe_default;
    int status;
    recipe.height = self->how.height;
    recipe.width = self->how.width;
    recipe.encode = DATA_IMAGE_RAW;
    speed_list_name(name, sizeof name, self->source, &self->list, item->file);
    if (self->source->kind == SPEED_IMAGES) {
        status = read_file(self, lane, item, &size, name);
        bytes = lane->bytes;
    } else {
        const size_t length = strlen(name);
        const data_tfrecord record = {self->window + item->at + DATA_TFRECORD_HEAD, item->size - DATA_TFRECORD_OVERHEAD,
                                      0};
        snprintf(name + length, sizeof name - length, ": record %" PRId64 ", byte %" PRId64, item->record + 1,
                 item->offset);
        status = find_image(&bytes, &size, lane, &record, name);
    }
    if (status < 0)
        return status;
    if (self->source->kind == SPEED_TFRECORD && size == pixels && data_image_kind_of(bytes, size) == DATA_IMAGE_OTHER) {
        memcpy(out, bytes, pixels); /* they are pixels already */
        return SHOAL_OK;
    }
    status = data_image_prepare(&made, lane->maker, &recipe, bytes, size, name);
    if (status == SHOAL_OK)
        memcpy(out, made.bytes, pixels);
    return status;
}

static int make_item(void *context, int64_t number, int thread)
{
    speed_reader *self = context;
    item *item = &self->item[number];
    const size_t pixels = (size_t)self->how.height * (size_t)self->how.width * 3;
    int status = make_pixels(self, &self->lane[thread], item, self->pixels + (size_t)number * pixels);
    if (status == SHOAL_INVALID && self->how.skip_broken) {
        item->broken = true;
        status = pass_over(self, status);
    }
    return status;
}

/* Broken ones leave no holes.  Returns how many images there are. */
static int64_t close_ranks(speed_reader *self)
{
    const size_t pixels = (size_t)self->how.height * (size_t)self->how.width * 3;
    int64_t good = 0;
    for (int64_t i = 0; i < self->items; i++) {
        if (self->item[i].broken)
            continue;
        if (good < i)
            memcpy(self->pixels + (size_t)good * pixels, self->pixels + (size_t)i * pixels, pixels);
        good++;
    }
    self->skipped += self->items - good;
    return good;
}

/* ---- batches ----------------------------------------------------------------------------------------------------- */

int speed_reader_start(speed_reader *self, uint64_t start)
{
    speed_reader_stop(self);
    self->barren = 0;
    self->read = self->skipped = 0;
    self->filled = self->at = 0;
    for (int i = 0; i < base_pool_threads(self->pool); i++)
        self->lane[i].read = 0;
    int status = speed_list_fill(&self->list, self->source);
    if (status == SHOAL_OK)
        self->next = (int64_t)(start % (uint64_t)self->list.count);
    return status;
}

int speed_reader_batch(speed_reader *self, unsigned char *pixels, int64_t count)
{
    const size_t bytes = (size_t)self->how.height * (size_t)self->how.width * 3;
    int status = SHOAL_OK;
    if (count > self->room) {
        status = base_grow(&self->item, (size_t)self->room, (size_t)count, sizeof *self->item, "a batch");
        if (status < 0)
            return status;
        self->room = count;
    }
    for (int64_t done = 0; done < count && status == SHOAL_OK;) {
        self->items = 0;
        self->pixels = pixels + (size_t)done * bytes;
        status =
            self->source->kind == SPEED_IMAGES ? gather_files(self, count - done) : gather_records(self, count - done);
        if (status == SHOAL_OK)
            status = base_pool_each(self->pool, self->items, make_item, self);
        if (status == SHOAL_OK) {
            const int64_t good = close_ranks(self);
            self->barren = good > 0 ? 0 : self->barren;
            done += good;
        }
    }
    return status;
}
