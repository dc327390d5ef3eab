/* TFRecord files of tf.train.Example: TensorFlow's shards of training data.
 *
 * A file is a run of frames (tfrecord.h), each with an Example (example_read.h).  Records that have an image become
 * its pixels and a label (tfrecord_images.c), all others rows of numbers (tfrecord_table.c).  Frames are found first,
 * one after the other; then all threads check and decode them. */
#include "data_tfrecord.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"

static bool recognise_tfrecord(const data_hint *hint)
{
    return hint->head && data_tfrecord_starts(hint->head, hint->head_size);
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

void tf_place(char *out, size_t size, const tf_reader *reader, int64_t record)
{
    snprintf(out, size, "record %" PRId64 ", byte %zu%s", record + 1, reader->records[record].offset,
             reader->is_packed ? " of what was decompressed" : "");
}

int tf_fail(const tf_reader *reader, int64_t record, const char *format, ...)
{
    char place[100], text[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    tf_place(place, sizeof place, reader, record);
    return shoal_fail(SHOAL_INVALID, "%s: %s: %s", reader->data->path, place, text);
}

/* ---- frames ------------------------------------------------------------------------------------------------------ */

static int add_record(tf_reader *reader, const data_tfrecord *record)
{
    if (reader->count == reader->room) {
        const int64_t room = 2 * reader->room + 64;
        int status = base_grow(&reader->records, (size_t)reader->room, (size_t)room, sizeof *reader->records,
                               "a list of records");
        if (status < 0)
            return status;
        reader->room = room;
    }
    reader->records[reader->count++] = *record;
    return SHOAL_OK;
}

/* What stands behind a frame that can't be left is lost with it. */
static int fail_frame(tf_reader *reader, const data_tfrecord *record, data_tfrecord_found found)
{
    const size_t left = reader->content_size - record->offset;
    int status = add_record(reader, record);
    if (status < 0)
        return status;
    if (found == DATA_TFRECORD_LOST)
        return tf_fail(reader, reader->count - 1,
                       "its length has another checksum, so neither it nor what follows can be read");
    if (left < DATA_TFRECORD_HEAD)
        return tf_fail(reader, reader->count - 1, "the file is cut off: %zu bytes are no record", left);
    return tf_fail(reader, reader->count - 1, "the file is cut off: a record of %zu bytes has %zu left of the file",
                   record->size, left - DATA_TFRECORD_HEAD);
}

static int find_records(tf_reader *reader)
{
    data_tfrecord record = {0};
    int status = SHOAL_OK;
    while (status == SHOAL_OK) {
        const data_tfrecord_found found = data_tfrecord_next(&record, reader->content, reader->content_size);
        if (found == DATA_TFRECORD_END)
            break;
        status = found == DATA_TFRECORD_ONE ? add_record(reader, &record) : fail_frame(reader, &record, found);
    }
    return status;
}

/* ---- records ----------------------------------------------------------------------------------------------------- */

int tf_parse(tf_reader *reader, int64_t record, int thread)
{
    const data_tfrecord *self = &reader->records[record];
    const char *wrong;
    int status = data_example_read(&reader->features[thread], self->bytes, self->size, &wrong);
    return status == SHOAL_INVALID ? tf_fail(reader, record, "not a tf.train.Example: %s", wrong) : status;
}

static int try_record(void *context, int64_t record, int thread)
{
    tf_reader *reader = context;
    int status = reader->task(reader, record, thread);
    reader->broken[record] = status == SHOAL_INVALID;
    return status == SHOAL_INVALID ? SHOAL_OK : status;
}

int tf_for_records(tf_reader *reader, base_task *task)
{
    reader->task = task;
    int status = base_pool_each(reader->pool, reader->count, try_record, reader);
    if (status == SHOAL_OK && reader->data->mapped)
        status = base_mapped_check(reader->data->mapped, reader->data->mapped_file, reader->data->path);
    for (int64_t i = 0; i < reader->count && status == SHOAL_OK; i++)
        if (reader->broken[i] && (status = task(reader, i, 0)) == SHOAL_OK)
            status = tf_fail(reader, i, "the file changed while it was read");
    return status;
}

static int check_record(void *context, int64_t record, int thread)
{
    tf_reader *reader = context;
    if (!data_tfrecord_is_whole(&reader->records[record]))
        return tf_fail(reader, record, "it is damaged: its bytes have another checksum");
    return tf_parse(reader, record, thread);
}

/* ---- words ------------------------------------------------------------------------------------------------------- */

int tf_add_word(const tf_reader *reader, data_words *words, int32_t *number, int64_t record, const unsigned char *text,
                size_t size)
{
    char word[DATA_WORD_BYTES + 1];
    bool full = false;
    if (size > DATA_WORD_BYTES)
        return tf_fail(reader, record, "the name of its class is longer than %d bytes", DATA_WORD_BYTES);
    memcpy(word, text, size);
    word[size] = '\0';
    if (memchr(word, 0, size) || !base_text_is_clean(word))
        return tf_fail(reader, record, "the name of its class holds a control character or is not UTF-8");
    int status = data_words_find(number, &full, words, word, size, NAN, true);
    return full ? tf_fail(reader, record, "there are more than %d different classes", DATA_WORDS_MOST) : status;
}

int tf_finish_words(tf_reader *reader, data_words *words, int32_t *number)
{
    int32_t *ranks = NULL;
    reader->data->words_count = words->count;
    int status = data_words_finish(&reader->data->words, &ranks, words);
    for (int64_t i = 0; i < reader->count && status == SHOAL_OK; i++)
        number[i] = ranks[number[i]];
    base_free(&ranks);
    return status;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

/* Mapped until the rows are made, or read. */
static int take_content(tf_reader *reader, data_buffer *loaded, data_source *source)
{
    shoal_data *data = reader->data;
    int status = SHOAL_OK;
    reader->is_packed = data_source_codec(source) != NULL;
    if (source->mappable && data_source_map(&data->mapped, &data->mapped_file, source)) {
        reader->content = base_mapped_bytes(data->mapped);
        reader->content_size = source->file_size;
    } else {
        status = data_source_load(loaded, source, INT64_MAX);
        reader->content = loaded->bytes;
        reader->content_size = loaded->size;
    }
    return status;
}

static int take_rows(tf_reader *reader)
{
    const int threads = base_pool_threads(reader->pool);
    int status = find_records(reader);
    if (status == SHOAL_OK)
        status = base_alloc(&reader->broken, (size_t)reader->count, sizeof *reader->broken, "records");
    if (status == SHOAL_OK)
        status = base_alloc(&reader->features, (size_t)threads, sizeof *reader->features, "features");
    if (status == SHOAL_OK)
        status = tf_for_records(reader, check_record);
    if (status == SHOAL_OK)
        status = tf_parse(reader, 0, 0);
    if (status < 0)
        return status;
    return tf_find_image(&reader->features[0]) ? tf_take_images(reader) : tf_take_table(reader);
}

static int open_tfrecord(shoal_data *data, data_source *source, const shoal_data_options *options)
{
    tf_reader reader = {.data = data, .options = options};
    data_buffer loaded;
    char *made = NULL;
    data_buffer_init(&loaded, data->path, options->memory);
    int status = base_pool_new(&reader.pool, base_cores());
    if (status == SHOAL_OK)
        status = take_content(&reader, &loaded, source);
    if (status == SHOAL_OK)
        status = take_rows(&reader);
    for (int i = 0; reader.features && i < base_pool_threads(reader.pool); i++)
        data_features_release(&reader.features[i]);
    data_unmap(data);
    if (status == SHOAL_OK) {
        made = data->detail;
        data->detail = NULL;
        status = base_format(&data->detail, "TFRecord, %s%s%s, %s", made, data_source_detail(source),
                             reader.has_lists ? ", without the lists of SequenceExamples" : "", data_kept(data));
    }
    base_free(&made);
    base_free(&reader.features);
    base_free(&reader.broken);
    base_free(&reader.records);
    base_pool_free(&reader.pool);
    data_buffer_release(&loaded);
    return status;
}

const struct data_format data_tfrecord_format = {
    .name = "tfrecord", .recognise = recognise_tfrecord, .open = open_tfrecord};
