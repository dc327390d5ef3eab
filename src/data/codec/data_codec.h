/* Ways of compressing files: gzip, xz, bzip2, zstd.  Adding one is a file with a table of functions and a line in the
 * list in data_codec.c.
 *
 * All but gzip stand on libraries that a program may be built without (src/portable/no_*.c); what is compressed so is
 * then still recognised, and refused by name. */
#ifndef DATA_CODEC_H
#define DATA_CODEC_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes on their way through: what is left of the input, and of the room for output. */
typedef struct data_coding {
    const unsigned char *in;
    size_t in_size;
    unsigned char *out;
    size_t out_size;
    bool last;  /* encoding: nothing follows the input */
    bool ended; /* set when a stream is complete */
} data_coding;

/* The functions of one of them, both directions.  Each moves on as far as input and room allow; messages name `path`.
 * Memory for decoding is bounded whatever the input says (DATA_CODEC_MEMORY). */
struct data_coder {
    int (*decode_new)(void **state, const char *path);
    int (*decode_again)(void *state, const char *path); /* at the start of a stream that follows another */
    int (*decode)(void *state, data_coding *coding, const char *path);
    void (*decode_free)(void **state);
    int (*encode_new)(void **state, const char *path);
    int (*encode)(void *state, data_coding *coding, const char *path);
    void (*encode_free)(void **state);
};
enum { DATA_CODEC_MEMORY = 1 << 30 };
/* NULL in a program that was built without the library. */
extern const struct data_coder *const data_coder_xz, *const data_coder_bzip2, *const data_coder_zstd;
extern const struct data_coder data_coder_gzip;
/* Decode only: the deflated members of zip files, and the compressed elements of MATLAB's. */
extern const struct data_coder data_coder_deflate, data_coder_zlib;

typedef struct data_codec {
    const char *name;    /* "gzip" */
    const char *detail;  /* ", gzip" */
    const char *ending;  /* ".gz" */
    const char *library; /* that it stands on */
    const char *program; /* that does the same: "gunzip" */
    bool (*recognise)(const unsigned char *head, size_t size);
    const struct data_coder *const *coder; /* NULL there: built without */
} data_codec;

enum { DATA_CODEC_HEAD_BYTES = 10 }; /* that recognising takes */

/* By the first bytes of a file; NULL for what is not compressed. */
const data_codec *data_codec_of_head(const unsigned char *head, size_t size);
/* By the ending of a name; NULL for none. */
const data_codec *data_codec_of_name(const char *name, size_t length);
/* SHOAL_INVALID for reading, SHOAL_USAGE for writing, naming the library, if the program was built without it. */
int data_codec_check(const data_codec *codec, const char *path, bool writing);

int data_codec_fail_memory(const char *path, const char *name);
int data_codec_fail_corrupt(const char *path, const char *name, const char *why);

#endif
