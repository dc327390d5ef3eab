/* Reading tf.train.Example, the protocol buffer of named lists that a TFRecord mostly is.  example.h writes them.
 *
 *     data_features features = {0};
 *     const char *wrong;
 *     if (data_example_read(&features, bytes, size, &wrong) == SHOAL_OK) {
 *         const data_feature *class = data_feature_find(&features, "class");
 *         if (class && class->kind == DATA_FEATURE_INTEGERS && class->count == 1)
 *             data_feature_integers(&value, 1, class);
 *     }
 *     data_features_release(&features);
 *
 * Nothing is copied: features point into the bytes.  As in any reader of protocol buffers, fields that are not known
 * are skipped, lists may be packed or not, the last of several entries of one name counts, and of several lists in one
 * feature those of the last kind.  Every length is checked against the bytes around it. */
#ifndef DATA_EXAMPLE_READ_H
#define DATA_EXAMPLE_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum data_feature_kind {
    DATA_FEATURE_NONE, /* no list at all */
    DATA_FEATURE_BYTES,
    DATA_FEATURE_FLOATS,
    DATA_FEATURE_INTEGERS,
} data_feature_kind;

typedef struct data_feature {
    const char *name; /* not ended by NUL */
    size_t name_bytes;
    data_feature_kind kind;
    int64_t count; /* of its values */
    const unsigned char *entry;
    size_t entry_bytes;
} data_feature;

typedef struct data_features {
    data_feature *feature; /* in the order of the bytes of their names, each name once */
    int64_t count, room;
    bool has_lists; /* there are the lists of a SequenceExample, too, which are not read */
} data_features;

/* Replaces what `features` held.  SHOAL_INVALID sets no message, but *wrong to what is wrong, to follow a colon. */
int data_example_read(data_features *features, const void *bytes, size_t size, const char **wrong);
void data_features_release(data_features *features);

/* NULL when there is none. */
const data_feature *data_feature_find(const data_features *features, const char *name);
/* As memcmp, by the bytes of the names; a name that the other begins with comes first. */
int data_feature_compare(const char *name, size_t name_bytes, const char *other, size_t other_bytes);
/* At most the first `most` values: of floats and integers, the latter rounded to nearest. */
void data_feature_numbers(double *out, int64_t most, const data_feature *feature);
void data_feature_integers(int64_t *out, int64_t most, const data_feature *feature);
/* The first of a list of bytes; *out is NULL when there is none. */
void data_feature_bytes(const unsigned char **out, size_t *size, const data_feature *feature);

#endif
