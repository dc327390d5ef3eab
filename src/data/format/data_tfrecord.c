/* TFRecord files of tf.train.Example: TensorFlow's shards of training data, one or a folder of them (tfrecord_files.c).
 *
 * A file is a run of frames (tfrecord.h), each with an Example (example_read.h).  Records that have an image become
 * its pixels and a label (tfrecord_images.c), all others rows of numbers (tfrecord_table.c).  Frames are found first,
 * one after the other; then all threads check and decode them.  With skip_broken, those that are damaged are removed
 * from the list, and what was made of it is made again. */
#include "data_tfrecord.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "base/text.h"

static bool recognise_tfrecord(const data_hint *hint)
{
    return hint->head && data_tfrecord_starts(hint->head, hint->head_size);
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

int tf_fail(const tf_reader *reader, int64_t record, const char *format, ...)
{
    char place[TF_PLACE_ROOM], text[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    tf_place(place, sizeof place, reader, record);
    return shoal_fail(SHOAL_INVALID, "%s: %s", place, text);
}

/* ---- what is left out -------------------------------------------------------------------------------------------- */

enum { SKIPPED_TOLD = 3 };

/* The last failure, without the name of the file where there is but one. */
static const char *what_failed(const tf_reader *reader)
{
    const char *sentence = shoal_error(), *path = reader->data->path;
    const size_t length = strlen(path);
    return strncmp(sentence, path, length) == 0 && strncmp(sentence + length, ": ", 2) == 0 ? sentence + length + 2
                                                                                            : sentence;
}

/* The last failure, and what could be done about it. */
static int fail_with(const char *hint)
{
    char sentence[512];
    snprintf(sentence, sizeof sentence, "%s", shoal_error());
    return shoal_fail(SHOAL_INVALID, "%s; %s", sentence, hint);
}

/* Notes that what has just failed is left out: of a kind of which there have been `before`. */
static int note_failure(char **told, int64_t before, const tf_reader *reader)
{
    char *longer = NULL;
    if (before >= SKIPPED_TOLD)
        return SHOAL_OK;
    int status = base_format(&longer, "%s%s%s", *told ? *told : "", *told ? "; " : "", what_failed(reader));
    base_free(told);
    *told = longer;
    return status;
}

static int drop_damaged(tf_reader *reader)
{
    int64_t kept = 0;
    int status = SHOAL_OK;
    if (!reader->numbers) {
        status = base_alloc(&reader->numbers, (size_t)reader->count, sizeof *reader->numbers, "records");
        for (int64_t i = 0; i < reader->count && status == SHOAL_OK; i++)
            reader->numbers[i] = i;
    }
    for (int64_t i = 0; i < reader->count && status == SHOAL_OK; i++)
        if (!reader->damaged[i]) {
            reader->records[kept] = reader->records[i];
            reader->numbers[kept++] = reader->numbers[i];
        }
    if (status < 0)
        return status;
    memset(reader->damaged, 0, (size_t)reader->count * sizeof *reader->damaged);
    reader->count = kept;
    reader->dropped = true;
    return kept > 0 ? SHOAL_INVALID
                    : shoal_fail(SHOAL_INVALID, "%s: every record is broken: %s", reader->data->path, reader->told);
}

/* "t.tfrec: 5 broken records were left out: record 2, byte 145: ...; record 7, ...; record 9, ...; and 2 more". */
static int tell_skipped(tf_reader *reader)
{
    shoal_data *data = reader->data;
    const int64_t more = (reader->skipped > SKIPPED_TOLD ? reader->skipped - SKIPPED_TOLD : 0) +
                         (reader->losses > SKIPPED_TOLD ? reader->losses - SKIPPED_TOLD : 0);
    char rest[48] = "";
    data->skipped = reader->skipped + reader->losses;
    if (data->skipped == 0)
        return SHOAL_OK;
    if (more > 0)
        snprintf(rest, sizeof rest, "; and %" PRId64 " more", more);
    return base_format(&data->skipped_text, "%s: %" PRId64 " broken record%s left out: %s%s%s%s", data->path,
                       data->skipped, data->skipped > 1 ? "s were" : " was", reader->told ? reader->told : "", rest,
                       reader->told && reader->lost ? "; " : "", reader->lost ? reader->lost : "");
}

int tf_damaged(tf_reader *reader, int64_t record, int status)
{
    if (status == SHOAL_INVALID)
        reader->damaged[record] = true;
    return status;
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

static int fail_frame(tf_reader *reader, const tf_file *file, const data_tfrecord *record, data_tfrecord_found found)
{
    char why[200];
    int status = add_record(reader, record);
    if (status < 0)
        return status;
    data_tfrecord_explain(why, sizeof why, record, found, file->end - record->offset);
    return tf_fail(reader, reader->count - 1, "%s", why);
}

/* What stands behind a frame that can't be read on from is lost with it, up to the end of its file. */
static int lose_rest(tf_reader *reader, const tf_file *file, const data_tfrecord *record, data_tfrecord_found found)
{
    int status = fail_frame(reader, file, record, found);
    if (status != SHOAL_INVALID || (reader->files == 1 && reader->count == 1))
        return status;
    if (!reader->options->skip_broken)
        return fail_with(reader->files == 1 ? "--skip-broken reads the records before it"
                                            : "--skip-broken reads the records before it, and the other files");
    reader->count--;
    return note_failure(&reader->lost, reader->losses++, reader);
}

static int find_in_file(tf_reader *reader, tf_file *file)
{
    data_tfrecord record = {0};
    int status = SHOAL_OK;
    file->before = reader->count;
    while (status == SHOAL_OK && file->end > file->first) {
        const data_tfrecord_found found =
            data_tfrecord_next(&record, reader->content + file->first, file->end - file->first);
        data_tfrecord placed = record;
        placed.offset += file->first;
        if (found == DATA_TFRECORD_END)
            break;
        if (found != DATA_TFRECORD_ONE)
            return lose_rest(reader, file, &placed, found);
        status = add_record(reader, &placed);
    }
    return status;
}

static int find_records(tf_reader *reader)
{
    int status = SHOAL_OK;
    for (int64_t i = 0; i < reader->files && status == SHOAL_OK; i++)
        status = find_in_file(reader, &reader->file[i]);
    if (status == SHOAL_OK && reader->count == 0)
        status = shoal_fail(SHOAL_INVALID, "%s: there is no record%s%s", reader->data->path,
                            reader->lost ? " that can be read: " : "", reader->lost ? reader->lost : "");
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
    bool drops = false;
    for (int64_t i = 0; i < reader->count && status == SHOAL_OK; i++) {
        if (!reader->broken[i])
            continue;
        status = task(reader, i, 0);
        if (status == SHOAL_OK) {
            status = tf_fail(reader, i, "the file changed while it was read");
        } else if (status == SHOAL_INVALID && reader->damaged[i] && reader->options->skip_broken) {
            drops = true;
            status = note_failure(&reader->told, reader->skipped++, reader);
        } else if (status == SHOAL_INVALID && reader->damaged[i]) {
            status = fail_with("--skip-broken leaves such records out");
        }
    }
    if (status < 0 || !drops)
        return status;
    return drop_damaged(reader);
}

static int check_record(void *context, int64_t record, int thread)
{
    tf_reader *reader = context;
    int status = data_tfrecord_is_whole(&reader->records[record])
                     ? tf_parse(reader, record, thread)
                     : tf_fail(reader, record, "it is damaged: its bytes have another checksum");
    return tf_damaged(reader, record, status);
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

static int make_rows(tf_reader *reader)
{
    int status = tf_parse(reader, 0, 0);
    data_words_free(&reader->data->words, reader->data->words_count);
    reader->data->words_count = 0;
    if (status < 0)
        return status;
    return tf_find_image(&reader->features[0]) ? tf_take_images(reader) : tf_take_table(reader);
}

/* Whether some records were left out, and others are there. */
static bool goes_on(tf_reader *reader, int status)
{
    const bool dropped = reader->dropped;
    reader->dropped = false;
    return status == SHOAL_INVALID && dropped && reader->count > 0;
}

static int take_rows(tf_reader *reader)
{
    const int threads = base_pool_threads(reader->pool);
    int status = find_records(reader);
    if (status == SHOAL_OK)
        status = base_alloc(&reader->damaged, (size_t)reader->count, sizeof *reader->damaged, "records");
    if (status == SHOAL_OK)
        status = base_alloc(&reader->broken, (size_t)reader->count, sizeof *reader->broken, "records");
    if (status == SHOAL_OK)
        status = base_alloc(&reader->features, (size_t)threads, sizeof *reader->features, "features");
    if (status == SHOAL_OK)
        status = tf_for_records(reader, check_record);
    if (status < 0 && !goes_on(reader, status))
        return status;
    do
        status = make_rows(reader);
    while (goes_on(reader, status));
    return status == SHOAL_OK ? tell_skipped(reader) : status;
}

/* Without a source: a folder. */
static int open_records(shoal_data *data, data_source *source, const shoal_data_options *options)
{
    tf_reader reader = {.data = data, .options = options};
    data_buffer loaded;
    char *made = NULL, in_files[40] = "";
    data_buffer_init(&loaded, data->path, options->memory);
    int status = base_pool_new(&reader.pool, base_cores());
    if (status == SHOAL_OK)
        status = source ? tf_take_file(&reader, &loaded, source) : tf_take_folder(&reader, &loaded);
    if (status == SHOAL_OK)
        status = take_rows(&reader);
    for (int i = 0; reader.features && i < base_pool_threads(reader.pool); i++)
        data_features_release(&reader.features[i]);
    data_unmap(data);
    if (status == SHOAL_OK) {
        made = data->detail;
        data->detail = NULL;
        snprintf(in_files, sizeof in_files, " in %" PRId64 " file%s", reader.files, base_plural(reader.files));
        status =
            base_format(&data->detail, "TFRecord, %s%s%s, %s", made, source ? data_source_detail(source) : in_files,
                        reader.has_lists ? ", without the lists of SequenceExamples" : "", data_kept(data));
    }
    base_free(&made);
    base_free(&reader.features);
    base_free(&reader.broken);
    base_free(&reader.damaged);
    base_free(&reader.numbers);
    base_free(&reader.told);
    base_free(&reader.lost);
    base_free(&reader.records);
    tf_release_files(&reader);
    base_pool_free(&reader.pool);
    data_buffer_release(&loaded);
    return status;
}

const struct data_format data_tfrecord_format = {
    .name = "tfrecord", .recognise = recognise_tfrecord, .open = open_records};

static bool recognise_folder(const data_hint *hint)
{
    struct stat about;
    return !hint->head && strcmp(hint->path, "-") != 0 && stat(hint->path, &about) == 0 && S_ISDIR(about.st_mode);
}

const struct data_format data_tfrecord_folder = {
    .name = "tfrecord", .without_file = true, .recognise = recognise_folder, .open = open_records};
