/* Where images are read from: files of this machine, or blobs of a store. */
#ifndef RUN_SPEED_SOURCE_H
#define RUN_SPEED_SOURCE_H

#include <stddef.h>

#include "speed.h"
#include "store/store_place.h"

/* The files of a source: paths, or keys of its store with their sizes. */
typedef struct speed_list {
    char **name;
    int64_t *size; /* of blobs; NULL for files */
    int64_t count, room;
} speed_list;

typedef struct speed_source {
    const char *name; /* as it was given; of several files, the first */
    speed_kind kind;
    bool in_store;
    store_place place; /* the store */
    char **named;      /* files that were given one by one; NULL for a folder or a store */
    int count;         /* of them */
} speed_source;

typedef struct speed_sources {
    speed_source source[SPEED_SOURCES_MOST];
    int count;
} speed_sources;

/* Finds out what each word names.  A folder or a place in a store is a source; so are all TFRecord files that are named
 * one by one, and all image files.  To be released in any case. */
int speed_sources_open(speed_sources *out, const char *const *words, int count);
void speed_sources_release(speed_sources *sources);

/* Lists the files of a source as they are now, in the order of their names; there is one at least. */
int speed_list_fill(speed_list *out, const speed_source *source);
void speed_list_release(speed_list *list);
/* What messages call a file of the list. */
void speed_list_name(char *out, size_t room, const speed_source *source, const speed_list *list, int64_t file);

/* One file that is read. */
typedef struct speed_input {
    const speed_source *source;
    const char *name; /* of the list; it must last */
    int descriptor;   /* -1: a blob, or none */
    int64_t size;
} speed_input;

int speed_input_open(speed_input *out, const speed_source *source, const speed_list *list, int64_t file);
void speed_input_close(speed_input *input);
/* Fills `bytes` from `offset` on; they lie within the size. */
int speed_input_read(const speed_input *input, void *bytes, size_t size, int64_t offset);

#endif
