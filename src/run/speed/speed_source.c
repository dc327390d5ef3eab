/* Sources of images.  See speed_source.h. */
#include "speed_source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/memory.h"
#include "base/text.h"
#include "data/codec/data_codec.h"
#include "data/format/tfrecord.h"
#include "data/image/image_kind.h"
#include "data/image/image_list.h"
#include "run/process.h"
#include "run/request.h"

static const double patience = 60; /* seconds that a store may be out of reach */

/* ---- names ------------------------------------------------------------------------------------------------------- */

static const char *last_segment(const char *key)
{
    const char *slash = strrchr(key, '/');
    return slash ? slash + 1 : key;
}

static bool is_wanted_key(const char *key, speed_kind kind)
{
    const char *name = last_segment(key);
    return name[0] != '.' && (kind == SPEED_IMAGES ? data_image_is_picture(name) : data_tfrecord_is_shard(name));
}

/* ---- lists ------------------------------------------------------------------------------------------------------- */

void speed_list_release(speed_list *list)
{
    for (int64_t i = 0; i < list->count; i++)
        base_free(&list->name[i]);
    base_free(&list->name);
    base_free(&list->size);
    *list = (speed_list){0};
}

static int add_key(speed_list *list, const char *key, int64_t size)
{
    int status = SHOAL_OK;
    if (list->count == list->room) {
        const int64_t room = 2 * list->room + 64;
        status = base_grow(&list->name, (size_t)list->room, (size_t)room, sizeof *list->name, "a list of images");
        if (status == SHOAL_OK)
            status = base_grow(&list->size, (size_t)list->room, (size_t)room, sizeof *list->size, "a list of images");
        if (status < 0)
            return status;
        list->room = room;
    }
    status = base_copy_text(&list->name[list->count], key);
    if (status == SHOAL_OK)
        list->size[list->count++] = size;
    return status;
}

/* All of a kind below the URL, or the one key that it names. */
static int list_store(speed_list *out, const store_place *place, speed_kind kind)
{
    store_keys keys = {0};
    const shoal_entry *next = NULL;
    shoal_entry one = {0};
    int status = store_keys_start_below(&keys, place);
    while (status == SHOAL_OK && (status = store_keys_next(&keys, &next)) == SHOAL_OK && next)
        if (is_wanted_key(next->key, kind))
            status = add_key(out, next->key, next->size);
    store_keys_stop(&keys);
    if (status < 0 || out->count > 0 || place->rest[0] == '\0' || !is_wanted_key(place->rest, kind))
        return status;
    status = store_place_find(place, place->rest, &one);
    if (status == SHOAL_ABSENT)
        return SHOAL_OK;
    if (status == SHOAL_OK)
        status = add_key(out, place->rest, one.size);
    base_free(&one.key);
    return status;
}

static int list_folder(speed_list *out, const char *folder, speed_kind kind)
{
    data_image_list found = {0};
    int status =
        data_image_list_folder(&found, folder, kind == SPEED_IMAGES ? data_image_is_picture : data_tfrecord_is_shard);
    if (status < 0)
        data_image_list_release(&found);
    else
        *out = (speed_list){.name = found.paths, .count = found.count, .room = found.room};
    return status;
}

static int list_files(speed_list *out, const speed_source *source)
{
    int status = base_alloc(&out->name, (size_t)source->count, sizeof *out->name, "a list of images");
    for (; status == SHOAL_OK && out->count < source->count; out->count++)
        if ((status = base_copy_text(&out->name[out->count], source->named[out->count])) < 0)
            break;
    return status;
}

static int list_any(speed_list *out, const speed_source *source)
{
    *out = (speed_list){0};
    return source->in_store ? list_store(out, &source->place, source->kind)
           : source->named  ? list_files(out, source)
                            : list_folder(out, source->name, source->kind);
}

int speed_list_fill(speed_list *out, const speed_source *source)
{
    int status = list_any(out, source);
    if (status == SHOAL_OK && out->count == 0)
        status = shoal_fail(SHOAL_INVALID, "%s: what was there is gone", source->name);
    return status;
}

void speed_list_name(char *out, size_t room, const speed_source *source, const speed_list *list, int64_t file)
{
    if (source->in_store)
        snprintf(out, room, "%s/%s", shoal_store_describe(source->place.store).name, list->name[file]);
    else
        snprintf(out, room, "%s", list->name[file]);
}

/* ---- what a word names ------------------------------------------------------------------------------------------- */

/* Of a folder or a place in a store: which of both kinds is there. */
static int find_kind(speed_source *source)
{
    int64_t count[2] = {0};
    for (int kind = SPEED_IMAGES; kind <= SPEED_TFRECORD; kind++) {
        speed_list list;
        source->kind = (speed_kind)kind;
        int status = list_any(&list, source);
        count[kind] = list.count;
        speed_list_release(&list);
        if (status < 0)
            return status;
    }
    if (count[SPEED_IMAGES] > 0 && count[SPEED_TFRECORD] > 0)
        return shoal_fail(SHOAL_USAGE, "%s: holds both images and TFRecords; name one place for each", source->name);
    if (count[SPEED_IMAGES] == 0 && count[SPEED_TFRECORD] == 0)
        return shoal_fail(SHOAL_INVALID,
                          "%s: nothing to read: no names there end with .jpg, .jpeg or .png, or have .tfrec in them",
                          source->name);
    source->kind = count[SPEED_IMAGES] > 0 ? SPEED_IMAGES : SPEED_TFRECORD;
    return SHOAL_OK;
}

static int find_kind_of_file(speed_kind *out, const char *path)
{
    unsigned char head[64];
    size_t size = 0;
    int file = open(path, O_RDONLY | O_CLOEXEC),
        error = file < 0 ? errno : base_read_all(file, head, sizeof head, &size);
    base_close(&file);
    if (error)
        return shoal_fail_errno(SHOAL_SYSTEM, error, "%s: can't read", path);
    const data_codec *codec = data_codec_of_head(head, size);
    *out = SPEED_TFRECORD;
    if (data_tfrecord_starts(head, size))
        return SHOAL_OK;
    *out = SPEED_IMAGES;
    if (data_image_is_picture(path) || data_image_kind_of(head, size) != DATA_IMAGE_OTHER)
        return SHOAL_OK;
    if (codec)
        return shoal_fail(SHOAL_USAGE, "%s: is compressed (%s); data speed reads TFRecords that are not", path,
                          codec->name);
    if (size == 0)
        return shoal_fail(SHOAL_INVALID, "%s: is empty", path);
    return shoal_fail(SHOAL_INVALID, "%s: is neither an image nor TFRecords%s", path,
                      data_tfrecord_is_shard(path) ? ": its first bytes are no length with its checksum" : "");
}

static int add_named(speed_sources *out, const char *path, int most)
{
    speed_kind kind;
    speed_source *source = NULL;
    int status = find_kind_of_file(&kind, path);
    if (status < 0)
        return status;
    for (int i = 0; i < out->count && !source; i++)
        if (out->source[i].named && out->source[i].kind == kind)
            source = &out->source[i];
    if (!source) {
        if (out->count == SPEED_SOURCES_MOST)
            return shoal_fail(SHOAL_USAGE, "%s: more than %d sources", path, SPEED_SOURCES_MOST);
        source = &out->source[out->count++];
        *source = (speed_source){.name = path, .kind = kind};
        status = base_alloc(&source->named, (size_t)most, sizeof *source->named, "a list of images");
        if (status < 0)
            return status;
    }
    return base_copy_text(&source->named[source->count++], path);
}

static int add_place(speed_sources *out, const char *word)
{
    if (out->count == SPEED_SOURCES_MOST)
        return shoal_fail(SHOAL_USAGE, "%s: more than %d sources", word, SPEED_SOURCES_MOST);
    speed_source *source = &out->source[out->count++];
    *source = (speed_source){.name = word, .in_store = run_is_in_store(word)};
    int status = source->in_store ? run_protect_secrets(word) : SHOAL_OK;
    if (status == SHOAL_OK && source->in_store)
        status = store_place_open(&source->place, word, patience, (shoal_store_options){.read_only = true});
    return status == SHOAL_OK ? find_kind(source) : status;
}

int speed_sources_open(speed_sources *out, const char *const *words, int count)
{
    int status = SHOAL_OK;
    *out = (speed_sources){0};
    for (int i = 0; i < count && status == SHOAL_OK; i++) {
        struct stat about = {0};
        if (run_is_in_store(words[i]))
            status = add_place(out, words[i]);
        else if (stat(words[i], &about) < 0)
            status = shoal_fail_errno(SHOAL_SYSTEM, errno, "%s: can't read", words[i]);
        else if (S_ISDIR(about.st_mode))
            status = add_place(out, words[i]);
        else if (S_ISREG(about.st_mode))
            status = add_named(out, words[i], count);
        else
            status = shoal_fail(SHOAL_USAGE, "%s: is neither a file nor a folder", words[i]);
    }
    return status;
}

void speed_sources_release(speed_sources *sources)
{
    for (int i = 0; i < sources->count; i++) {
        speed_source *source = &sources->source[i];
        for (int k = 0; source->named && k < source->count; k++)
            base_free(&source->named[k]);
        base_free(&source->named);
        store_place_close(&source->place);
    }
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

int speed_input_open(speed_input *out, const speed_source *source, const speed_list *list, int64_t file)
{
    struct stat about;
    *out = (speed_input){.source = source, .name = list->name[file], .descriptor = -1};
    if (source->in_store) {
        out->size = list->size[file];
        return SHOAL_OK;
    }
    out->descriptor = open(out->name, O_RDONLY | O_CLOEXEC);
    if (out->descriptor < 0 || fstat(out->descriptor, &about) < 0)
        return shoal_fail_errno(SHOAL_SYSTEM, errno, "%s: can't read", out->name);
    if (!S_ISREG(about.st_mode))
        return shoal_fail(SHOAL_INVALID, "%s: is not a plain file any more", out->name);
    out->size = about.st_size;
    return SHOAL_OK;
}

void speed_input_close(speed_input *input)
{
    if (input->descriptor >= 0)
        base_close(&input->descriptor);
    *input = (speed_input){.descriptor = -1};
}

int speed_input_read(const speed_input *input, void *bytes, size_t size, int64_t offset)
{
    size_t got = 0;
    if (input->source->in_store) {
        shoal_blob blob = {0};
        int status = shoal_store_get_range(input->source->place.store, input->name, offset, (int64_t)size, NULL, bytes,
                                           &blob, shoal_after(patience));
        got = blob.size;
        shoal_blob_release(&blob);
        if (status < 0)
            return status;
    } else {
        int error = base_read_all_at(input->descriptor, bytes, size, offset, &got);
        if (error)
            return shoal_fail_errno(SHOAL_SYSTEM, error, "%s: can't read", input->name);
    }
    return got == size ? SHOAL_OK : shoal_fail(SHOAL_INVALID, "%s: became shorter while it was read", input->name);
}
