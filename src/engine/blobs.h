/* Blobs that maps get and put (shoal_blobs), in a plain folder or in a store.
 *
 * A folder holds one file a blob, as people keep photographs.  In a store a blob is a key below a prefix. */
#ifndef ENGINE_BLOBS_H
#define ENGINE_BLOBS_H

#include <jansson.h>
#include <stdbool.h>
#include <shoal/learn.h>
#include <shoal/store.h>

typedef struct engine_blobs engine_blobs;

/* Opens a file for reading that is named by its whole path: SHOAL_DENIED for one that may not be read. */
typedef int engine_open_file(void *context, int *out, const char *path);

/* In a folder, to be read.  `open_file` may be NULL: any plain file is read. */
int engine_blobs_in_folder(engine_blobs **out, const char *folder, engine_open_file *open_file, void *context);
/* In a folder, to be read and written; it is made if it is missing. */
int engine_blobs_in_own_folder(engine_blobs **out, const char *folder);

typedef struct engine_blobs_in {
    shoal_store *store;
    const char *prefix; /* of all keys: "", or a name that '/' follows; copied */
    double patience;    /* seconds that the store may be out of reach */
    bool owned;         /* the store is closed with the blobs, also if this fails */
    bool hashed;        /* keys are the SHA-256 of names, which may be anything that a folder can hold */
    bool awaited;       /* blobs that are not there yet are waited for */
} engine_blobs_in;

int engine_blobs_in_store(engine_blobs **out, const engine_blobs_in *in);
/* The key of a hashed name. */
int engine_blobs_hashed_key(char **out, const char *prefix, const char *name);

/* The names of all blobs, as the keys of an object; of a folder what is right in it, and nothing when it is missing. */
int engine_blobs_names(json_t **out, const shoal_blobs *blobs);

/* Whether blobs may be put piece by piece, as into a folder; others see them at their end. */
bool engine_blobs_take_parts(const shoal_blobs *blobs);
typedef struct base_output engine_blob_parts;
int engine_blobs_begin(engine_blob_parts **out, const shoal_blobs *blobs, const char *name);
int engine_blobs_add(engine_blob_parts *parts, const void *bytes, size_t size);
/* Puts it, or after a failure drops it and returns that; NULL is accepted. */
int engine_blobs_end(engine_blob_parts **parts, int status);

/* What maps see; NULL for NULL. */
const shoal_blobs *engine_blobs_table(const engine_blobs *blobs);
void engine_blobs_free(engine_blobs **blobs);

#endif
