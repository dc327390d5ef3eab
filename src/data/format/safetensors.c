/* The safetensors format.  See safetensors.h.  Nothing the header says is believed before it is checked against the
 * size of the file. */
#include "safetensors.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/file.h"
#include "base/mapped.h"
#include "base/memory.h"
#include "base/text.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "values are copied as they are, so this needs a little-endian machine"
#endif

enum { LENGTH_BYTES = 8, HEADER_MOST = 100000000 /* the reference's limit too */, ALIGNMENT = 64 };

struct data_tensors {
    const char *path; /* for messages while opening; not owned */
    json_t *header;   /* owns the names and the metadata */
    json_t *metadata; /* within header, or NULL */
    data_tensor *tensors;
    int count;
    const void *bytes; /* all of them */
    size_t size;
    base_mapped *mapped; /* NULL when the bytes are the caller's */
    int descriptor;      /* of what is mapped */
};

static const struct {
    const char *name;
    shoal_type type;
} types[] = {
    {"F64", SHOAL_FLOAT64}, {"F32", SHOAL_FLOAT32}, {"I64", SHOAL_INT64},  {"I32", SHOAL_INT32},
    {"I16", SHOAL_INT16},   {"I8", SHOAL_INT8},     {"U64", SHOAL_UINT64}, {"U32", SHOAL_UINT32},
    {"U16", SHOAL_UINT16},  {"U8", SHOAL_UINT8},    {"BOOL", SHOAL_BOOL},
};
enum { TYPES = sizeof types / sizeof types[0] };

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static int fail_memory(const char *path)
{
    return shoal_fail(SHOAL_MEMORY, "%s: out of memory", path);
}

static int read_type(data_tensor *tensor, json_t *description, const char *path)
{
    const char *name = json_string_value(json_object_get(description, "dtype"));
    for (int i = 0; name && i < TYPES; i++) {
        if (strcmp(name, types[i].name) == 0) {
            tensor->type = types[i].type;
            return SHOAL_OK;
        }
    }
    return shoal_fail(SHOAL_INVALID, "%s: tensor '%s' has type '%s', which is not one shoal reads", path, tensor->name,
                      name ? name : "");
}

/* Fills shape and bytes. */
static int read_shape(data_tensor *tensor, json_t *description, const char *path)
{
    json_t *shape = json_object_get(description, "shape");
    size_t bytes = shoal_type_size(tensor->type);
    if (!json_is_array(shape) || json_array_size(shape) > DATA_TENSOR_RANK_MOST)
        return shoal_fail(SHOAL_INVALID, "%s: tensor '%s' has no shape of at most %d dimensions", path, tensor->name,
                          DATA_TENSOR_RANK_MOST);
    tensor->rank = (int)json_array_size(shape);
    for (int i = 0; i < tensor->rank; i++) {
        json_t *side = json_array_get(shape, (size_t)i);
        tensor->shape[i] = json_integer_value(side);
        if (!json_is_integer(side) || tensor->shape[i] < 0 || !base_multiply(&bytes, bytes, (size_t)tensor->shape[i]))
            return shoal_fail(SHOAL_INVALID, "%s: tensor '%s' has an impossible shape", path, tensor->name);
    }
    tensor->bytes = bytes;
    return SHOAL_OK;
}

static int read_place(data_tensor *tensor, json_t *description, const unsigned char *values, size_t size,
                      const char *path)
{
    json_t *offsets = json_object_get(description, "data_offsets");
    json_t *first = json_array_get(offsets, 0), *last = json_array_get(offsets, 1);
    json_int_t begin = json_integer_value(first), end = json_integer_value(last);
    if (!json_is_integer(first) || !json_is_integer(last) || json_array_size(offsets) != 2 || begin < 0 ||
        end < begin || (uint64_t)end > size)
        return shoal_fail(SHOAL_INVALID, "%s: tensor '%s' lies outside the file", path, tensor->name);
    if ((size_t)(end - begin) != tensor->bytes)
        return shoal_fail(SHOAL_INVALID, "%s: tensor '%s' takes %lld bytes, but its shape says %zu", path, tensor->name,
                          (long long)(end - begin), tensor->bytes);
    tensor->values = values + begin;
    return SHOAL_OK;
}

static int compare_places(const void *a, const void *b)
{
    const data_tensor *left = a, *right = b;
    if (left->values != right->values)
        return (const char *)left->values < (const char *)right->values ? -1 : 1;
    return (left->bytes > right->bytes) - (left->bytes < right->bytes); /* empty tensors first */
}

/* Tensors must follow each other without gap or overlap from the first byte to the last. */
static int check_cover(data_tensors *file, const unsigned char *values, size_t size)
{
    size_t covered = 0;
    if (file->count)
        qsort(file->tensors, (size_t)file->count, sizeof *file->tensors, compare_places);
    for (int i = 0; i < file->count; i++) {
        const data_tensor *tensor = &file->tensors[i];
        if ((const unsigned char *)tensor->values != values + covered)
            return shoal_fail(SHOAL_INVALID, "%s: tensor '%s' does not start where the one before it ends", file->path,
                              tensor->name);
        covered += tensor->bytes;
    }
    if (covered != size)
        return shoal_fail(SHOAL_INVALID, "%s: %zu bytes after the last tensor", file->path, size - covered);
    return SHOAL_OK;
}

static int check_metadata(data_tensors *file, json_t *metadata)
{
    const char *key;
    json_t *value;
    if (!json_is_object(metadata))
        return shoal_fail(SHOAL_INVALID, "%s: its metadata is not an object", file->path);
    json_object_foreach(metadata, key, value) if (!json_is_string(value)) return shoal_fail(
        SHOAL_INVALID, "%s: metadata '%s' is not a string", file->path, key);
    file->metadata = metadata;
    return SHOAL_OK;
}

static int read_entries(data_tensors *file, const unsigned char *values, size_t size)
{
    const char *name;
    json_t *entry;
    int status = base_alloc(&file->tensors, json_object_size(file->header), sizeof *file->tensors, "a list of tensors");
    if (status < 0)
        return status;
    json_object_foreach(file->header, name, entry)
    {
        if (strcmp(name, "__metadata__") == 0) {
            status = check_metadata(file, entry);
        } else {
            data_tensor *tensor = &file->tensors[file->count++];
            tensor->name = name;
            status = read_type(tensor, entry, file->path);
            if (status == SHOAL_OK)
                status = read_shape(tensor, entry, file->path);
            if (status == SHOAL_OK)
                status = read_place(tensor, entry, values, size, file->path);
        }
        if (status < 0)
            return status;
    }
    return check_cover(file, values, size);
}

static int read_all(data_tensors *file, const unsigned char *bytes, size_t size)
{
    uint64_t length = 0;
    json_error_t error;
    if (size < LENGTH_BYTES)
        return shoal_fail(SHOAL_INVALID, "%s: too short to be a safetensors file", file->path);
    memcpy(&length, bytes, LENGTH_BYTES);
    if (length > HEADER_MOST)
        return shoal_fail(SHOAL_INVALID, "%s: not a safetensors file", file->path);
    if (length > size - LENGTH_BYTES)
        return shoal_fail(
            SHOAL_INVALID,
            "%s: not a safetensors file, or cut short: its header claims %llu bytes, but the file has %zu", file->path,
            (unsigned long long)length, size);
    file->header = json_loadb((const char *)bytes + LENGTH_BYTES, (size_t)length, JSON_REJECT_DUPLICATES, &error);
    if (!file->header && (error.text[0] == '\0' || json_error_code(&error) == json_error_out_of_memory))
        return fail_memory(file->path);
    if (!json_is_object(file->header))
        return shoal_fail(SHOAL_INVALID, "%s: its header is not a JSON object%s%s", file->path,
                          file->header ? "" : ": ", file->header ? "" : error.text);
    return read_entries(file, bytes + LENGTH_BYTES + length, size - LENGTH_BYTES - (size_t)length);
}

int data_safetensors_parse(data_tensors **out, const void *bytes, size_t size, const char *path)
{
    data_tensors *file = NULL;
    int status = base_alloc(&file, 1, sizeof *file, path);
    if (status < 0)
        return status;
    file->path = path;
    file->bytes = bytes;
    file->size = size;
    status = read_all(file, bytes, size);
    file->path = NULL;
    if (status == SHOAL_OK) {
        *out = file;
        file = NULL;
    }
    data_safetensors_close(&file);
    return status;
}

static int map_file(base_mapped **out, int descriptor, const char *path)
{
    struct stat info;
    if (fstat(descriptor, &info) < 0)
        return shoal_fail_errno(SHOAL_SYSTEM, errno, "%s: can't read", path);
    if (!S_ISREG(info.st_mode))
        return shoal_fail(SHOAL_INVALID, "%s: not a plain file, as a model must be", path);
    if (info.st_size < LENGTH_BYTES)
        return shoal_fail(SHOAL_INVALID, "%s: too short to be a safetensors file", path);
    return base_mapped_open(out, descriptor, 0, (size_t)info.st_size, path);
}

int data_safetensors_open(data_tensors **out, const char *path)
{
    base_mapped *mapped = NULL;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return shoal_fail_errno(SHOAL_SYSTEM, errno, "%s: can't open", path);
    int status = map_file(&mapped, descriptor, path);
    if (status == SHOAL_OK)
        status = data_safetensors_parse(out, base_mapped_bytes(mapped), base_mapped_size(mapped), path);
    if (mapped && base_mapped_is_lost(mapped)) { /* zeros may have made a header of any kind */
        if (status == SHOAL_OK)
            data_safetensors_close(out);
        status = base_mapped_check(mapped, descriptor, path);
    }
    if (status == SHOAL_OK) {
        (*out)->mapped = mapped;
        (*out)->descriptor = descriptor;
        return SHOAL_OK;
    }
    base_mapped_close(&mapped);
    close(descriptor);
    return status;
}

void data_safetensors_close(data_tensors **inout)
{
    data_tensors *file = *inout;
    if (!file)
        return;
    if (file->mapped)
        close(file->descriptor);
    base_mapped_close(&file->mapped);
    json_decref(file->header);
    base_free(&file->tensors);
    base_free(inout);
}

int data_safetensors_copy(void *out, const data_tensors *file, const data_tensor *tensor, const char *path)
{
    memcpy(out, tensor->values, tensor->bytes);
    return file->mapped ? base_mapped_check(file->mapped, file->descriptor, path) : SHOAL_OK;
}

int data_safetensors_count(const data_tensors *file)
{
    return file->count;
}

const data_tensor *data_safetensors_at(const data_tensors *file, int index)
{
    return &file->tensors[index];
}

const data_tensor *data_safetensors_find(const data_tensors *file, const char *name)
{
    for (int i = 0; i < file->count; i++)
        if (strcmp(file->tensors[i].name, name) == 0)
            return &file->tensors[i];
    return NULL;
}

const char *data_safetensors_metadata(const data_tensors *file, const char *key)
{
    return json_string_value(json_object_get(file->metadata, key));
}

const void *data_safetensors_bytes(const data_tensors *file, size_t *size)
{
    *size = file->size;
    return file->bytes;
}

bool data_safetensors_is(const char *path)
{
    unsigned char head[LENGTH_BYTES + 1];
    if (base_text_ends(path, ".safetensors"))
        return true;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0)
        return false;
    ssize_t got = pread(descriptor, head, sizeof head, 0);
    close(descriptor);
    return got == (ssize_t)sizeof head && head[LENGTH_BYTES] == '{' && head[LENGTH_BYTES - 1] == 0;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static const char *type_name(shoal_type type)
{
    for (int i = 0; i < TYPES; i++)
        if (types[i].type == type)
            return types[i].name;
    SHOAL_BUG("type %d has no name in safetensors", (int)type);
}

static size_t tensor_bytes(const data_tensor *tensor)
{
    size_t bytes = shoal_type_size(tensor->type);
    for (int i = 0; i < tensor->rank; i++)
        bytes *= (size_t)tensor->shape[i]; /* the values are in memory, so this can't overflow */
    return bytes;
}

static json_t *describe(const data_tensor *tensor, size_t offset)
{
    json_t *shape = json_array();
    bool whole = shape != NULL;
    for (int i = 0; i < tensor->rank; i++)
        whole &= json_array_append_new(shape, json_integer(tensor->shape[i])) == 0;
    if (!whole) {
        json_decref(shape);
        return NULL;
    }
    return json_pack("{s:s, s:o, s:[I, I]}", "dtype", type_name(tensor->type), "shape", shape, "data_offsets",
                     (json_int_t)offset, (json_int_t)(offset + tensor_bytes(tensor)));
}

/* The header as text, or NULL when out of memory or a string is no UTF-8. */
static char *make_header(const data_tensor *tensors, int count, const data_metadata *metadata, int metadata_count)
{
    json_t *header = json_object(), *entries = json_object();
    bool whole = header && entries;
    size_t offset = 0;
    for (int i = 0; i < metadata_count; i++)
        whole &= json_object_set_new(entries, metadata[i].key, json_string(metadata[i].text)) == 0;
    if (metadata_count)
        whole &= json_object_set(header, "__metadata__", entries) == 0;
    for (int i = 0; i < count; i++) {
        whole &= json_object_set_new(header, tensors[i].name, describe(&tensors[i], offset)) == 0;
        offset += tensor_bytes(&tensors[i]);
    }
    char *text = whole ? json_dumps(header, JSON_COMPACT) : NULL;
    json_decref(entries);
    json_decref(header);
    return text;
}

/* What comes before the values: the length of the header, and the header, padded. */
static int make_head(base_writer *out, const data_tensor *tensors, int count, const data_metadata *metadata,
                     int metadata_count, const char *name)
{
    static const char spaces[ALIGNMENT] = "                                                               ";
    char *header = make_header(tensors, count, metadata, metadata_count);
    if (!header)
        return fail_memory(name);
    size_t length = strlen(header);
    size_t padding = (ALIGNMENT - (LENGTH_BYTES + length) % ALIGNMENT) % ALIGNMENT;
    uint64_t whole = length + padding;
    base_write_bytes(out, &whole, LENGTH_BYTES);
    base_write_bytes(out, header, length);
    base_write_bytes(out, spaces, padding);
    free(header);
    return SHOAL_OK;
}

int data_safetensors_make(void **out, size_t *size, const data_tensor *tensors, int count,
                          const data_metadata *metadata, int metadata_count)
{
    base_writer writer = {0};
    size_t values = 0;
    int status = make_head(&writer, tensors, count, metadata, metadata_count, "a model");
    for (int i = 0; i < count; i++)
        values += tensor_bytes(&tensors[i]);
    if (status == SHOAL_OK)
        base_write_reserve(&writer, values);
    for (int i = 0; i < count && status == SHOAL_OK; i++)
        base_write_bytes(&writer, tensors[i].values, tensor_bytes(&tensors[i]));
    return status == SHOAL_OK ? base_writer_take(&writer, out, size) : status;
}

int data_safetensors_write(const char *path, const data_tensor *tensors, int count, const data_metadata *metadata,
                           int metadata_count)
{
    base_writer writer = {0};
    base_output *output = NULL;
    void *head = NULL;
    size_t size = 0;
    int status = make_head(&writer, tensors, count, metadata, metadata_count, path);
    if (status == SHOAL_OK)
        status = base_writer_take(&writer, &head, &size);
    if (status == SHOAL_OK)
        status = base_output_open(&output, path);
    if (status == SHOAL_OK)
        status = base_output_write(output, head, size);
    for (int i = 0; status == SHOAL_OK && i < count; i++)
        status = base_output_write(output, tensors[i].values, tensor_bytes(&tensors[i]));
    if (status == SHOAL_OK)
        status = base_output_commit(&output);
    base_output_discard(&output);
    base_free(&head);
    return status;
}
