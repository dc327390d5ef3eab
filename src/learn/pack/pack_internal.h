/* Packing images into shards: a learner whose rows name images, and whose maps put what they made of them as blobs.
 *
 * A row is fixed bytes: how large the image's file is, its class, and its name.  A grain is a shard.  Its map gets each
 * image, prepares it (data/image/image_prepare.h), and puts all of them as one blob, whose bytes and name are a
 * function of the rows and the options alone: any process may make any shard, twice too.  What became of them travels
 * in records.
 *
 *     pack.c          rounds: the model, what comes from elsewhere, the result
 *     pack_shard.c    one shard: TFRecord, tar or npy
 *     pack_part.c     what is kept beside a shard until all are done, so that a run that was killed skips it
 *     pack_verify.c   shards compared with the manifest
 *     pack_replaced.c what is left of images that were packed to the same place before, by a run that was killed, too
 *     pack_reader.c   the items of a shard, read back
 *     pack_sheet.c    which of them a contact sheet shows
 *     face.c          options, lines, and the manifest
 */
#ifndef PACK_INTERNAL_H
#define PACK_INTERNAL_H

#include <jansson.h>
#include <shoal/learn.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "data/image/image_prepare.h"
#include "learn/face.h"
#include "learn/pack/pack_rows.h"

typedef enum pack_format { PACK_TFRECORD, PACK_TAR, PACK_NPY } pack_format;

typedef struct pack_config {
    const char *size; /* "192x192" */
    int resize, encode, huffman, chroma, format;
    int64_t quality, shards;
    const char *name;    /* what shards are called by */
    const char *classes; /* names of classes, a line each; "" for none */
    bool orient, index, skip_broken, parts, resume, replace;
} pack_config;

/* The only round's model: this, the name, and the names of classes, each ended by a NUL. */
typedef struct pack_model {
    int32_t height, width, resize, encode, quality, huffman, chroma, orient;
    int32_t format, index, skip_broken, parts, resume;
    int32_t classes, digits, replace; /* digits: of a shard's number */
    int64_t name_bytes, classes_bytes;
    unsigned char decoder[BASE_HASH_SIZE]; /* of what the JPEG library makes of a picture */
    char texts[];
} pack_model;

/* Reads "192x192": SHOAL_USAGE for what is no size of an item. */
int pack_read_size(int *height, int *width, const char *text);
data_image_recipe pack_recipe(const pack_model *model);
/* The name of class `index`, which has one. */
const char *pack_class_name(const pack_model *model, int64_t index);
/* How shards are called. */
typedef struct pack_naming {
    const char *name;
    int format, digits;
} pack_naming;

pack_naming pack_naming_of(const pack_model *model);
int pack_digits(int64_t shards);
/* "flowers00-230.tfrec"; with `more`, "flowers00-230" and that: ".idx". */
int pack_shard_name(char **out, const pack_naming *naming, int64_t shard, int64_t items, const char *more);

enum { PACK_CELL_SHARDS, PACK_CELL_BROKEN, PACK_CELLS };

/* What became of a shard: the record of its key, which is its number. */
typedef struct pack_shard {
    int64_t bytes, items, written, beside_bytes; /* beside: its index, or the classes of an array; 0: there is none */
    unsigned char sha256[BASE_HASH_SIZE], beside[BASE_HASH_SIZE];
    unsigned char inputs[BASE_HASH_SIZE]; /* of all that its bytes depend on */
} pack_shard;

/* What follows the name of a shard in that of the file beside it; NULL when there is none. */
const char *pack_beside(int format, bool index, bool has_classes);

/* A row of the result's "shards": items, written, bytes, beside_bytes. */
enum { PACK_NUMBERS = 4 };

/* An image that could not be read: its name and why, each ended by a NUL. */
enum { PACK_WHY_BYTES = 512 };

/* Adds what became of an image that can't be read. */
int pack_add_broken(shoal_partial *partial, int64_t row, const char *name, const char *why);

/* What the maps of a process share. */
typedef struct pack_ready {
    const shoal_blobs *from, *to;
    const shoal_shape *shape;
    json_t *old; /* when it resumes: the manifest of a run that was done, or NULL */
} pack_ready;

/* Makes a shard and puts it.  `spare`: how many bytes that may take, 0 for any number (shoal_scratch). */
int pack_make_shard(shoal_partial *partial, const pack_model *model, const pack_ready *ready, const shoal_grain *grain,
                    int64_t spare);

/* The hash of all that a shard's bytes depend on. */
void pack_shard_inputs(unsigned char out[BASE_HASH_SIZE], const pack_model *model, const pack_ready *ready,
                       const shoal_grain *grain);
/* Whether an earlier run has put this shard: then what became of it is added to the partial.  SHOAL_USAGE when such a
 * run was done and has packed something else, which is not to be replaced. */
int pack_part_take(bool *there, shoal_partial *partial, const pack_model *model, const pack_ready *ready,
                   const shoal_grain *grain);
/* Whether a file is as it was put: *why says what is wrong, in static memory, and is NULL when nothing is. */
int pack_compare(const char **why, const shoal_blobs *blobs, const char *name, int64_t bytes,
                 const unsigned char sha256[BASE_HASH_SIZE]);
/* Keeps that beside the shard. */
int pack_part_put(const pack_shard *shard, const base_writer *broken, const pack_model *model, const pack_ready *ready,
                  const shoal_grain *grain);
/* SHOAL_USAGE: there is a manifest, and nobody said that what it lists may be replaced. */
int pack_fail_packed(const char *why);

/* Before the first shard: see learn_face.begin_blobs.  SHOAL_USAGE for what may not be replaced. */
int pack_begin(const shoal_blobs *to, const json_t *names, const learn_ended *begun);
/* The manifest that is there, or NULL. */
int pack_manifest_get(json_t **out, const shoal_blobs *to);
/* Removes the files of shards that `old` lists and `new` does not. */
int pack_remove_replaced(const shoal_blobs *to, const json_t *old, const json_t *new);

/* Items of the shards that were put, for a contact sheet. */
int pack_show(learn_shown *out, const shoal_blobs *to, const learn_ended *ended);

/* SHA-256 of what the JPEG library makes of a picture that has all a decoder can do differently. */
int pack_decoder_hash(unsigned char out[BASE_HASH_SIZE]);

extern const shoal_algorithm pack_algorithm;

#endif
