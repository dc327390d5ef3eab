/* Stores as the verbs of `shoal store` see them: a URL opened, with the key or the start of keys behind the store's own
 * part of it, and the keys of a store one after the other. */
#ifndef CLI_STORE_OPEN_H
#define CLI_STORE_OPEN_H

#include <stdbool.h>
#include <shoal/option.h>
#include <shoal/store.h>

typedef struct cli_store_settings {
    double patience; /* seconds that one request may take, all its attempts included */
} cli_store_settings;

extern const shoal_option *const cli_store_options; /* of cli_store_settings: --deadline */

typedef struct cli_store {
    shoal_store *store;
    const char *url; /* as it was given */
    char *rest;      /* "" or a key or a run of its first segments, without a slash at the end */
    bool slash;      /* the URL ended with '/': what is put there goes below it, by its own name */
    double patience;
} cli_store;

int cli_store_open(cli_store *out, const char *url, const cli_store_settings *settings, shoal_store_options options);
/* The same for writing.  Others are made only with `create`, a dir: store whenever it is not there and the URL can mean
 * a store: it ends with '/', or what goes there is `many` keys.  As the name of one key it would leave open where the
 * store ends. */
int cli_store_open_target(cli_store *out, const char *url, const cli_store_settings *settings, bool create, bool many);
void cli_store_close(cli_store *self);
/* Whether both are in the same store. */
bool cli_store_is_same(const cli_store *a, const cli_store *b);
/* The folder a dir: store lies in; NULL for others. */
const char *cli_store_folder(const cli_store *self);
/* The name of what the URL means, the same however the URL was written: az://acct/box/jobs. */
int cli_store_name(char **out, const cli_store *self);
/* The names of several, and of several paths, in one text. */
int cli_stores_name(char **out, const cli_store *stores, int count);
int cli_paths_name(char **out, const char *const *paths, int count);

/* SHOAL_USAGE unless the URL's rest is a key. */
int cli_store_check_key(const cli_store *self);
/* What a key is at this moment; SHOAL_ABSENT with a sentence.  The entry's key is the caller's to free. */
int cli_store_find(const cli_store *self, const char *key, shoal_entry *out);

/* Removes a key that was listed, whatever it is called. */
int cli_store_remove(const cli_store *self, const char *key);

/* The keys that start with a prefix, one after the other, a page at a time. */
typedef struct cli_keys {
    const cli_store *from;
    char *prefix;
    shoal_listing page;
    size_t next;
    bool started;
    bool own; /* the store's own keys, below .shoal, which no listing shows otherwise */
} cli_keys;

int cli_keys_start(cli_keys *keys, const cli_store *from, const char *prefix);
/* All below the URL's rest, which is rest/ or everything. */
int cli_keys_start_below(cli_keys *keys, const cli_store *from);
/* *out is NULL behind the last; it is valid until the next call. */
int cli_keys_next(cli_keys *keys, const shoal_entry **out);
void cli_keys_stop(cli_keys *keys);

#endif
