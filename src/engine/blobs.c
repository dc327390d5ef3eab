/* Blobs in folders and stores.  See blobs.h.
 *
 * In a folder a blob is written as every output is (base/file.h), so that a process that is killed leaves the old file
 * or the new one.  Names may come from a store, so they are checked here, whoever calls. */
#include "engine/blobs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <shoal/engine.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/hex.h"
#include "base/io.h"
#include "base/memory.h"
#include "base/path.h"

struct engine_blobs {
    shoal_blobs table; /* the first member: maps get its address */
    char *folder;      /* NULL: in the store */
    engine_open_file *open_file;
    void *context;
    engine_blobs_in in; /* with a prefix of its own */
    char *prefix;
};

static const engine_blobs *blobs_of(const shoal_blobs *self)
{
    return (const engine_blobs *)self;
}

static int check_name(const char *name)
{
    if (!base_path_stays_below(name))
        return shoal_fail(SHOAL_INVALID, "'%s' can't be the name of a blob", name);
    return SHOAL_OK;
}

static int fail_large(const char *place, const char *name, int64_t size, int64_t most)
{
    return shoal_fail(SHOAL_MEMORY, "%s/%s has %lld bytes, more than %lld", place, name, (long long)size,
                      (long long)most);
}

static void release_bytes(const shoal_blobs *self, void **bytes)
{
    (void)self;
    base_free(bytes);
}

/* ---- folders ----------------------------------------------------------------------------------------------------- */

/* A pipe is opened without waiting for its other end, and then refused. */
static int open_any(void *context, int *out, const char *path)
{
    (void)context;
    *out = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (*out < 0 && (errno == ENOENT || errno == ENOTDIR))
        return shoal_fail(SHOAL_ABSENT, "%s: there is no such file", path);
    return *out < 0 ? shoal_fail_errno(SHOAL_SYSTEM, errno, "%s: can't read", path) : SHOAL_OK;
}

static int path_in(char **out, const engine_blobs *blobs, const char *name)
{
    int status = check_name(name);
    return status == SHOAL_OK ? base_format(out, "%s/%s", blobs->folder, name) : status;
}

/* Opens a plain file and says how large it is. */
static int open_blob(int *file, int64_t *size, const engine_blobs *blobs, const char *name)
{
    char *path = NULL;
    struct stat about;
    *file = -1;
    int status = path_in(&path, blobs, name);
    if (status == SHOAL_OK)
        status = blobs->open_file(blobs->context, file, path);
    if (status == SHOAL_OK && fstat(*file, &about) < 0)
        status = shoal_fail_errno(SHOAL_SYSTEM, errno, "%s: can't read", path);
    else if (status == SHOAL_OK && !S_ISREG(about.st_mode))
        status = shoal_fail(SHOAL_INVALID, "%s is not a plain file", path);
    if (status == SHOAL_OK)
        *size = about.st_size;
    if (status < 0 && *file >= 0) {
        close(*file);
        *file = -1;
    }
    base_free(&path);
    return status;
}

/* A blob of a folder that is gone as a whole is not missing: nobody knows. */
static int check_folder(const engine_blobs *blobs, int status)
{
    if (status == SHOAL_ABSENT && access(blobs->folder, F_OK) < 0)
        return shoal_fail_errno(SHOAL_SYSTEM, errno, "%s: can't read the folder", blobs->folder);
    return status;
}

static int get_in_folder(const shoal_blobs *self, const char *name, int64_t most, void **bytes, size_t *size)
{
    const engine_blobs *blobs = blobs_of(self);
    int64_t length = 0;
    size_t have = 0;
    int file, error = 0;
    *bytes = NULL;
    int status = open_blob(&file, &length, blobs, name);
    if (status < 0)
        return check_folder(blobs, status);
    if (length > most)
        status = fail_large(blobs->folder, name, length, most);
    if (status == SHOAL_OK)
        status = base_alloc_unset(bytes, (size_t)length, 1, name);
    if (status == SHOAL_OK)
        error = base_read_all_at(file, *bytes, (size_t)length, 0, &have);
    if (error)
        status = shoal_fail_errno(SHOAL_SYSTEM, error, "%s/%s: can't read", blobs->folder, name);
    else if (status == SHOAL_OK && have < (size_t)length)
        status = shoal_fail(SHOAL_INVALID, "%s/%s became shorter while it was read", blobs->folder, name);
    close(file);
    if (status < 0)
        base_free(bytes);
    *size = status == SHOAL_OK ? have : 0;
    return status;
}

static int fail_short(const char *place, const char *name, int64_t first, size_t size)
{
    return shoal_fail(SHOAL_INVALID, "%s/%s has no %zu bytes from byte %lld on", place, name, size, (long long)first);
}

static int get_part_in_folder(const shoal_blobs *self, const char *name, int64_t first, void *into, size_t size)
{
    const engine_blobs *blobs = blobs_of(self);
    int64_t length = 0;
    size_t have = 0;
    int file;
    int status = open_blob(&file, &length, blobs, name);
    if (status < 0)
        return status;
    int error = base_read_all_at(file, into, size, first, &have);
    if (error)
        status = shoal_fail_errno(SHOAL_SYSTEM, error, "%s/%s: can't read", blobs->folder, name);
    else if (have < size)
        status = fail_short(blobs->folder, name, first, size);
    close(file);
    return status;
}

static int has_in_folder(const shoal_blobs *self, const char *name, int64_t *size)
{
    int file;
    int status = open_blob(&file, size, blobs_of(self), name);
    if (file >= 0)
        close(file);
    return status;
}

int engine_blobs_begin(engine_blob_parts **out, const shoal_blobs *self, const char *name)
{
    char *path = NULL;
    *out = NULL;
    int status = path_in(&path, blobs_of(self), name);
    int error = status == SHOAL_OK ? base_make_folders_above(path, 0777, NULL) : 0;
    if (error)
        status = shoal_fail_errno(SHOAL_SYSTEM, error, "%s: can't make its folder", path);
    if (status == SHOAL_OK)
        status = base_output_open(out, path);
    base_free(&path);
    return status;
}

int engine_blobs_add(engine_blob_parts *parts, const void *bytes, size_t size)
{
    return base_output_write(parts, bytes, size);
}

int engine_blobs_end(engine_blob_parts **parts, int status)
{
    if (status == SHOAL_OK)
        status = base_output_commit(parts);
    base_output_discard(parts);
    return status;
}

static int put_in_folder(const shoal_blobs *self, const char *name, const void *bytes, size_t size)
{
    engine_blob_parts *parts = NULL;
    int status = engine_blobs_begin(&parts, self, name);
    if (status == SHOAL_OK)
        status = engine_blobs_add(parts, bytes, size);
    return engine_blobs_end(&parts, status);
}

bool engine_blobs_take_parts(const shoal_blobs *self)
{
    return self->put == put_in_folder;
}

static int remove_in_folder(const shoal_blobs *self, const char *name)
{
    char *path = NULL;
    int status = path_in(&path, blobs_of(self), name);
    if (status == SHOAL_OK && unlink(path) < 0 && errno != ENOENT && errno != ENOTDIR)
        status = shoal_fail_errno(SHOAL_SYSTEM, errno, "%s: can't remove", path);
    base_free(&path);
    return status;
}

static int remove_nothing(const shoal_blobs *self, const char *name)
{
    (void)self;
    return shoal_fail(SHOAL_DENIED, "%s: these blobs can only be read", name);
}

static int put_nowhere(const shoal_blobs *self, const char *name, const void *bytes, size_t size)
{
    (void)self, (void)bytes, (void)size;
    return shoal_fail(SHOAL_DENIED, "%s: these blobs can only be read", name);
}

static int new_in_folder(engine_blobs **out, const char *folder, engine_open_file *open_file, void *context)
{
    engine_blobs *blobs = NULL;
    int status = base_alloc(&blobs, 1, sizeof *blobs, "blobs");
    if (status == SHOAL_OK)
        status = base_copy_text(&blobs->folder, folder);
    if (status == SHOAL_OK) {
        blobs->table =
            (shoal_blobs){get_in_folder, release_bytes, put_nowhere, has_in_folder, remove_nothing, get_part_in_folder};
        blobs->open_file = open_file ? open_file : open_any;
        blobs->context = context;
    } else {
        engine_blobs_free(&blobs);
    }
    *out = blobs;
    return status;
}

int engine_blobs_in_folder(engine_blobs **out, const char *folder, engine_open_file *open_file, void *context)
{
    return new_in_folder(out, folder, open_file, context);
}

int engine_blobs_in_own_folder(engine_blobs **out, const char *folder)
{
    *out = NULL;
    int error = base_make_folders(folder, 0777, NULL);
    if (error)
        return shoal_fail_errno(SHOAL_SYSTEM, error, "%s: can't make the folder", folder);
    int status = new_in_folder(out, folder, NULL, NULL);
    if (status == SHOAL_OK) {
        (*out)->table.put = put_in_folder;
        (*out)->table.remove = remove_in_folder;
    }
    return status;
}

/* ---- stores ------------------------------------------------------------------------------------------------------ */

int engine_blobs_hashed_key(char **out, const char *prefix, const char *name)
{
    unsigned char hash[BASE_HASH_SIZE];
    char hex[BASE_HASH_HEX];
    base_hash_of(hash, name, strlen(name));
    base_hex_write(hex, hash, sizeof hash);
    return base_format(out, "%s%s", prefix, hex);
}

static int key_in(char **out, const engine_blobs *blobs, const char *name)
{
    int status = check_name(name);
    if (status < 0)
        return status;
    return blobs->in.hashed ? engine_blobs_hashed_key(out, blobs->prefix, name)
                            : base_format(out, "%s%s", blobs->prefix, name);
}

static int fail_absent(const engine_blobs *blobs, const char *key)
{
    return shoal_fail(SHOAL_ABSENT, "%s: there is no %s", shoal_store_describe(blobs->in.store).name, key);
}

/* A range of one byte tells how large the whole blob is. */
static int ask_size(int64_t *size, const engine_blobs *blobs, const char *key)
{
    shoal_blob about = {0};
    char first;
    int status =
        shoal_store_get_range(blobs->in.store, key, 0, 1, NULL, &first, &about, shoal_after(blobs->in.patience));
    *size = about.whole;
    return status == SHOAL_ABSENT ? fail_absent(blobs, key) : status;
}

/* Waits until it is there, if it is still being put. */
static int await_size(int64_t *size, const engine_blobs *blobs, const char *key)
{
    const int64_t until = shoal_after(blobs->in.patience);
    uint32_t seen = 0;
    int status = ask_size(size, blobs, key);
    while (status == SHOAL_ABSENT && blobs->in.awaited && shoal_now() < until) {
        int64_t nap = shoal_after(1);
        status = shoal_store_wait(blobs->in.store, key, &seen, nap < until ? nap : until);
        if (status == SHOAL_OK || status == SHOAL_AGAIN)
            status = ask_size(size, blobs, key);
    }
    if (status == SHOAL_ABSENT && blobs->in.awaited)
        status = shoal_fail(SHOAL_SYSTEM, "%s was to be uploaded, and did not come", key);
    return status;
}

static int get_in_store(const shoal_blobs *self, const char *name, int64_t most, void **bytes, size_t *size)
{
    const engine_blobs *blobs = blobs_of(self);
    char *key = NULL;
    shoal_blob blob = {0};
    int64_t whole = 0;
    *bytes = NULL;
    *size = 0;
    int status = key_in(&key, blobs, name);
    if (status == SHOAL_OK)
        status = await_size(&whole, blobs, key);
    if (status == SHOAL_OK && whole > most)
        status = fail_large(shoal_store_describe(blobs->in.store).name, key, whole, most);
    if (status == SHOAL_OK)
        status = base_alloc_unset(bytes, (size_t)whole, 1, name);
    if (status == SHOAL_OK)
        status =
            shoal_store_get_range(blobs->in.store, key, 0, whole, NULL, *bytes, &blob, shoal_after(blobs->in.patience));
    if (status == SHOAL_ABSENT)
        status = fail_absent(blobs, key);
    if (status == SHOAL_OK && (blob.whole != whole || blob.size != (size_t)whole))
        status = shoal_fail(SHOAL_INVALID, "%s changed while it was read", key);
    if (status == SHOAL_OK)
        *size = blob.size;
    else
        base_free(bytes);
    shoal_blob_release(&blob);
    base_free(&key);
    return status;
}

static int get_part_in_store(const shoal_blobs *self, const char *name, int64_t first, void *into, size_t size)
{
    const engine_blobs *blobs = blobs_of(self);
    char *key = NULL;
    shoal_blob blob = {0};
    int status = key_in(&key, blobs, name);
    if (status == SHOAL_OK)
        status = shoal_store_get_range(blobs->in.store, key, first, (int64_t)size, NULL, into, &blob,
                                       shoal_after(blobs->in.patience));
    if (status == SHOAL_ABSENT)
        status = fail_absent(blobs, key);
    else if (status == SHOAL_OK && blob.size != size)
        status = fail_short(shoal_store_describe(blobs->in.store).name, key, first, size);
    shoal_blob_release(&blob);
    base_free(&key);
    return status;
}

static int has_in_store(const shoal_blobs *self, const char *name, int64_t *size)
{
    char *key = NULL;
    int status = key_in(&key, blobs_of(self), name);
    if (status == SHOAL_OK)
        status = ask_size(size, blobs_of(self), key);
    base_free(&key);
    return status;
}

static int put_in_store(const shoal_blobs *self, const char *name, const void *bytes, size_t size)
{
    const engine_blobs *blobs = blobs_of(self);
    char *key = NULL;
    int status = key_in(&key, blobs, name);
    if (status == SHOAL_OK)
        status = shoal_store_put(blobs->in.store, key, bytes, size, NULL, NULL, shoal_after(blobs->in.patience));
    base_free(&key);
    return status;
}

static int remove_in_store(const shoal_blobs *self, const char *name)
{
    char *key = NULL;
    int status = key_in(&key, blobs_of(self), name);
    if (status == SHOAL_OK)
        status = shoal_store_remove(blobs_of(self)->in.store, key, shoal_after(blobs_of(self)->in.patience));
    base_free(&key);
    return status;
}

/* "" or what ends with '/'. */
static int as_prefix(char **out, const char *rest)
{
    size_t length = strlen(rest);
    while (length > 0 && rest[length - 1] == '/')
        length--;
    return base_format(out, "%.*s%s", (int)length, rest, length > 0 ? "/" : "");
}

int engine_blobs_in_store(engine_blobs **out, const engine_blobs_in *in)
{
    engine_blobs *blobs = NULL;
    shoal_store *store = in->owned ? in->store : NULL;
    int status = base_alloc(&blobs, 1, sizeof *blobs, "blobs");
    if (status == SHOAL_OK)
        status = as_prefix(&blobs->prefix, in->prefix);
    if (status == SHOAL_OK) {
        blobs->table =
            (shoal_blobs){get_in_store, release_bytes, put_in_store, has_in_store, remove_in_store, get_part_in_store};
        blobs->in = *in;
    } else {
        engine_blobs_free(&blobs);
        shoal_store_close(&store);
    }
    *out = blobs;
    return status;
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

static int add_name(json_t *names, const char *name)
{
    if (json_object_set_new_nocheck(names, name, json_true()) < 0)
        return shoal_fail(SHOAL_MEMORY, "out of memory for the names of blobs");
    return SHOAL_OK;
}

static int add_names_in_folder(json_t *names, const char *folder)
{
    DIR *open = opendir(folder);
    const struct dirent *entry;
    int status = SHOAL_OK;
    if (!open)
        return errno == ENOENT ? SHOAL_OK : shoal_fail_errno(SHOAL_SYSTEM, errno, "%s: can't read the folder", folder);
    for (errno = 0; status == SHOAL_OK && (entry = readdir(open)); errno = 0)
        if (base_path_stays_below(entry->d_name))
            status = add_name(names, entry->d_name);
    if (status == SHOAL_OK && errno)
        status = shoal_fail_errno(SHOAL_SYSTEM, errno, "%s: can't read the folder", folder);
    closedir(open);
    return status;
}

static int add_names_in_store(json_t *names, const engine_blobs *blobs)
{
    const size_t length = strlen(blobs->prefix);
    shoal_listing page = {0};
    int status;
    do {
        status = shoal_store_list(blobs->in.store, blobs->prefix, NULL, &page, shoal_after(blobs->in.patience));
        for (size_t i = 0; status == SHOAL_OK && i < page.count; i++)
            status = add_name(names, page.entries[i].key + length);
    } while (status == SHOAL_OK && page.more);
    shoal_listing_release(&page);
    return status;
}

int engine_blobs_names(json_t **out, const shoal_blobs *self)
{
    const engine_blobs *blobs = blobs_of(self);
    *out = json_object();
    if (!*out)
        return shoal_fail(SHOAL_MEMORY, "out of memory for the names of blobs");
    int status = blobs->folder ? add_names_in_folder(*out, blobs->folder) : add_names_in_store(*out, blobs);
    if (status < 0) {
        json_decref(*out);
        *out = NULL;
    }
    return status;
}

/* ---- both -------------------------------------------------------------------------------------------------------- */

const shoal_blobs *engine_blobs_table(const engine_blobs *blobs)
{
    return blobs ? &blobs->table : NULL;
}

void engine_blobs_free(engine_blobs **inout)
{
    engine_blobs *blobs = *inout;
    if (!blobs)
        return;
    if (blobs->in.owned)
        shoal_store_close(&blobs->in.store);
    base_free(&blobs->prefix);
    base_free(&blobs->folder);
    base_free(inout);
}

static int open_in_store(engine_blobs **out, const char *url, bool write, double patience)
{
    engine_blobs_in in = {.patience = patience, .owned = true};
    const shoal_store_options options = {.create = write, .read_only = !write};
    char *rest = NULL;
    int status = shoal_store_open_at(&in.store, &rest, url, &options, shoal_after(patience));
    in.prefix = rest;
    if (status == SHOAL_OK)
        status = engine_blobs_in_store(out, &in);
    shoal_text_free(&rest);
    return status;
}

/* A path without a scheme is a plain folder; dir:PATH is a store. */
static int is_store(bool *out, const char *place)
{
    char *folder = NULL;
    int status = shoal_store_url_folder(&folder, place);
    *out = !folder || strncmp(place, "dir:", 4) == 0;
    shoal_text_free(&folder);
    return status;
}

int shoal_blobs_open(const shoal_blobs **out, const char *place, bool write, double patience)
{
    engine_blobs *blobs = NULL;
    bool in_store = false;
    int status = is_store(&in_store, place);
    if (status == SHOAL_OK && in_store)
        status = open_in_store(&blobs, place, write, patience);
    else if (status == SHOAL_OK)
        status = write ? engine_blobs_in_own_folder(&blobs, place) : engine_blobs_in_folder(&blobs, place, NULL, NULL);
    *out = engine_blobs_table(blobs);
    return status;
}

void shoal_blobs_close(const shoal_blobs **inout)
{
    engine_blobs *blobs = (engine_blobs *)(void *)(uintptr_t)*inout;
    engine_blobs_free(&blobs);
    *inout = NULL;
}
