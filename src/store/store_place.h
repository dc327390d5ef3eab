/* A place in a store: what a URL names, opened, with the key or prefix after the store's own part of it; and the keys
 * of a store one after another.
 *
 *     store_place from;
 *     store_keys keys = {0};
 *     const shoal_entry *next = NULL;
 *     int status = store_place_open(&from, "az://acct/box/jobs", 60, (shoal_store_options){.read_only = true});
 *     if (status == SHOAL_OK) status = store_keys_start_below(&keys, &from);
 *     while (status == SHOAL_OK && (status = store_keys_next(&keys, &next)) == SHOAL_OK && next)
 *         ... next->key, next->size ...
 *     store_keys_stop(&keys);
 *     store_place_close(&from); */
#ifndef STORE_PLACE_H
#define STORE_PLACE_H

#include <stdbool.h>
#include <shoal/store.h>

typedef struct store_place {
    shoal_store *store;
    const char *url; /* as it was given */
    char *rest;      /* "" or a key or a run of its first segments, without a slash at the end */
    bool slash;      /* the URL ended with '/': what is put there goes below it, under its own name */
    double patience; /* seconds that one request may take, all its attempts included */
} store_place;

/* After a failure there is nothing to close, but closing is harmless. */
int store_place_open(store_place *out, const char *url, double patience, shoal_store_options options);
/* The same for writing.  Others are made only with `create`, a dir: store whenever it is not there and the URL can mean
 * a store: it ends with '/', or what goes there is `many` keys.  As the name of one key it would not say where the
 * store ends. */
int store_place_open_target(store_place *out, const char *url, double patience, bool create, bool many);
void store_place_close(store_place *self);
/* Whether both are in the same store. */
bool store_place_is_same(const store_place *a, const store_place *b);
/* The folder a dir: store lies in; NULL for others. */
const char *store_place_folder(const store_place *self);

/* SHOAL_USAGE unless the URL's rest is a key. */
int store_place_check_key(const store_place *self);
/* What a key is at this moment; SHOAL_ABSENT with a sentence.  The entry's key is the caller's to free. */
int store_place_find(const store_place *self, const char *key, shoal_entry *out);
/* Removes a key that was listed, whatever it is called. */
int store_place_remove(const store_place *self, const char *key);

/* The keys that start with a prefix, one after another, a page at a time. */
typedef struct store_keys {
    const store_place *from;
    char *prefix;
    shoal_listing page;
    size_t next;
    bool started;
    bool own; /* the store's own keys, below .shoal, which no listing shows otherwise */
} store_keys;

int store_keys_start(store_keys *keys, const store_place *from, const char *prefix);
/* All below the URL's rest, which is rest/ or everything. */
int store_keys_start_below(store_keys *keys, const store_place *from);
/* *out is NULL after the last; it is valid until the next call. */
int store_keys_next(store_keys *keys, const shoal_entry **out);
void store_keys_stop(store_keys *keys);

#endif
