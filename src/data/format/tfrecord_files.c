/* The files whose records are one data set: one file, or those of a folder, in the order of their names.
 *
 * Each is read by itself, so that what is cut off in one takes nothing from the next. */
#include "data_tfrecord.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "data/image/image_list.h"

/* Mapped until the rows are made, or read. */
int tf_take_file(tf_reader *reader, data_buffer *loaded, data_source *source)
{
    shoal_data *data = reader->data;
    int status = base_alloc(&reader->file, 1, sizeof *reader->file, "a list of files");
    if (status == SHOAL_OK)
        status = base_copy_text(&reader->file[reader->files++].path, data->path);
    if (status < 0)
        return status;
    reader->file->is_packed = data_source_codec(source) != NULL;
    if (source->mappable && data_source_map(&data->mapped, &data->mapped_file, source)) {
        reader->content = base_mapped_bytes(data->mapped);
        reader->file->end = source->file_size;
    } else {
        status = data_source_load(loaded, source, INT64_MAX);
        reader->content = loaded->bytes;
        reader->file->end = loaded->size;
    }
    return status;
}

/* ---- folders ----------------------------------------------------------------------------------------------------- */

static const char unfinished[] = ".part";

static bool is_wanted(const char *name)
{
    return data_tfrecord_is_shard(name) || base_text_ends(name, unfinished);
}

/* What `data pack` is writing, or was when it was killed, is not all there yet: ".part" files lie beside its shards
 * until the manifest does. */
static int check_finished(const char *part)
{
    const int folder = (int)(strrchr(part, '/') - part);
    char *manifest = NULL;
    int status = base_format(&manifest, "%.*s/manifest.json", folder, part);
    if (status == SHOAL_OK && access(manifest, F_OK) < 0)
        status = shoal_fail(SHOAL_INVALID,
                            "%.*s: images are still being packed here, or that was cut off (%s is there, and no "
                            "manifest.json): data pack --resume goes on with it",
                            folder, part, part + folder + 1);
    base_free(&manifest);
    return status;
}

/* Behind what was loaded before; takes the path. */
static int load_file(tf_reader *reader, data_buffer *loaded, char **path)
{
    tf_file *file = &reader->file[reader->files++];
    data_source source;
    *file = (tf_file){.path = *path, .first = loaded->size};
    *path = NULL;
    int status = data_source_open(&source, file->path, true);
    if (status < 0)
        return status;
    file->is_packed = data_source_codec(&source) != NULL;
    status = data_source_load(loaded, &source, INT64_MAX);
    file->end = loaded->size;
    data_source_close(&source);
    return status;
}

int tf_take_folder(tf_reader *reader, data_buffer *loaded)
{
    const char *folder = reader->data->path;
    data_image_list list = {0};
    int status = data_image_list_folder(&list, folder, is_wanted);
    if (status == SHOAL_OK)
        status = base_alloc(&reader->file, (size_t)list.count, sizeof *reader->file, "a list of files");
    for (int64_t i = 0; i < list.count && status == SHOAL_OK; i++)
        status = base_text_ends(list.paths[i], unfinished) ? check_finished(list.paths[i])
                                                           : load_file(reader, loaded, &list.paths[i]);
    if (status == SHOAL_OK && reader->files == 0)
        status = shoal_fail(SHOAL_SYSTEM,
                            "%s: can't read: it is a folder, and no names in it have .tfrec in them; data pack makes "
                            "TFRecords of images",
                            folder);
    reader->content = loaded->bytes;
    data_image_list_release(&list);
    return status;
}

void tf_release_files(tf_reader *reader)
{
    for (int64_t i = 0; i < reader->files; i++)
        base_free(&reader->file[i].path);
    base_free(&reader->file);
}

/* ---- where a record is ------------------------------------------------------------------------------------------- */

static const tf_file *file_of(const tf_reader *reader, int64_t record)
{
    const size_t offset = reader->records[record].offset;
    int64_t low = 0, high = reader->files - 1;
    while (low < high) { /* the first that ends behind it */
        const int64_t middle = low + (high - low) / 2;
        if (reader->file[middle].end > offset)
            high = middle;
        else
            low = middle + 1;
    }
    return &reader->file[low];
}

/* From 1, of its file. */
static int64_t number_of(const tf_reader *reader, const tf_file *file, int64_t record)
{
    return 1 + (reader->numbers ? reader->numbers[record] : record) - file->before;
}

void tf_place(char *out, size_t size, const tf_reader *reader, int64_t record)
{
    const tf_file *file = file_of(reader, record);
    snprintf(out, size, "%s: record %" PRId64 ", byte %zu%s", file->path, number_of(reader, file, record),
             reader->records[record].offset - file->first, file->is_packed ? " of what was decompressed" : "");
}

void tf_other(char out[TF_OTHER_ROOM], const tf_reader *reader, int64_t record)
{
    const tf_file *file = file_of(reader, record);
    const char *slash = strrchr(file->path, '/');
    const int length = snprintf(out, TF_OTHER_ROOM, "record %" PRId64, number_of(reader, file, record));
    if (reader->files > 1)
        snprintf(out + length, (size_t)(TF_OTHER_ROOM - length), " of %s", slash ? slash + 1 : file->path);
}
