/* Named tensors in one file: the safetensors format (https://github.com/huggingface/safetensors).
 *
 *     data_tensors *file = NULL;
 *     if (data_safetensors_open(&file, "model.safetensors") == SHOAL_OK) {
 *         const data_tensor *centres = data_safetensors_find(file, "centres");
 *         status = data_safetensors_copy(mine, file, centres, "model.safetensors");
 *     }
 *     data_safetensors_close(&file);
 *
 * The file is 8 bytes of header length (little-endian), a JSON header that gives each tensor's type, shape and place,
 * and the values, little-endian, row by row, without gaps. */
#ifndef DATA_SAFETENSORS_H
#define DATA_SAFETENSORS_H

#include <shoal/data.h>

enum { DATA_TENSOR_RANK_MOST = 8 };

typedef struct data_tensor {
    const char *name;
    shoal_type type;
    int rank; /* 0 for a single value */
    int64_t shape[DATA_TENSOR_RANK_MOST];
    const void *values; /* read: within the file's memory, at any alignment; data_safetensors_copy copies them */
    size_t bytes;       /* read: of the values; write: ignored, since the shape tells */
} data_tensor;

typedef struct data_metadata {
    const char *key, *text;
} data_metadata;

typedef struct data_tensors data_tensors;

/* Maps the file and checks everything its header says: lengths against the file, offsets against shapes, no overlap,
 * gap or rest, no name twice.  SHOAL_INVALID names the file and the tensor. */
int data_safetensors_open(data_tensors **out, const char *path);
/* The same for bytes the caller keeps; `path` is what messages call them. */
int data_safetensors_parse(data_tensors **out, const void *bytes, size_t size, const char *path);
void data_safetensors_close(data_tensors **file);

/* In the order of their values. */
int data_safetensors_count(const data_tensors *file);
const data_tensor *data_safetensors_at(const data_tensors *file, int index);
/* NULL when there is none. */
const data_tensor *data_safetensors_find(const data_tensors *file, const char *name);
/* Copies all of its values.  SHOAL_INVALID, naming `path`, when the file has become shorter since it was opened. */
int data_safetensors_copy(void *out, const data_tensors *file, const data_tensor *tensor, const char *path);
const char *data_safetensors_metadata(const data_tensors *file, const char *key);
/* All of its bytes, as they are. */
const void *data_safetensors_bytes(const data_tensors *file, size_t *size);

/* Whether the file looks like one: by the ending of its name, or by its first bytes. */
bool data_safetensors_is(const char *path);

/* The bytes of a file, which the caller frees. */
int data_safetensors_make(void **out, size_t *size, const data_tensor *tensors, int count,
                          const data_metadata *metadata, int metadata_count);
/* Writes a file under a temporary name and renames it into place. */
int data_safetensors_write(const char *path, const data_tensor *tensors, int count, const data_metadata *metadata,
                           int metadata_count);

#endif
