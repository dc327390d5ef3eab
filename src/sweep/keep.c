/* See keep.h. */
#include "keep.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <shoal/error.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/hex.h"
#include "base/io.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/world.h"

enum { DEPTH_MOST = 8, FILES_MOST = 4096, ATTEMPTS = 3 };
static const uint32_t kind = SHOAL_KIND('k', 'e', 'p', 't');
static const char reports[] = "reports.jsonl";

/* ---- what there is ----------------------------------------------------------------------------------------------- */

typedef struct found {
    char *name; /* below the folder */
    struct stat about;
} found;

typedef struct finding {
    found *file;
    int count, room;
    int64_t bytes;
    base_hash mark; /* of all but the reports */
} finding;

static int add_found(finding *self, char *name, const struct stat *about)
{
    if (self->count == self->room) {
        const int room = self->room ? 2 * self->room : 16;
        int status = base_grow(&self->file, (size_t)self->room, (size_t)room, sizeof *self->file, "a trial's files");
        if (status < 0)
            return status;
        self->room = room;
    }
    self->file[self->count++] = (found){.name = name, .about = *about};
    self->bytes += about->st_size;
    return SHOAL_OK;
}

static int find_files(finding *self, int folder, const char *before, int depth);

/* Plain files; links and what has a name that is no text stay where they are. */
static int find_one(finding *self, int folder, const char *before, const char *name, int depth)
{
    struct stat about;
    char *path = NULL;
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || fstatat(folder, name, &about, AT_SYMLINK_NOFOLLOW) < 0 ||
        (!S_ISREG(about.st_mode) && !S_ISDIR(about.st_mode)))
        return SHOAL_OK;
    int status = base_format(&path, "%s%s%s", before, *before ? "/" : "", name);
    if (status == SHOAL_OK && S_ISDIR(about.st_mode) && depth < DEPTH_MOST) {
        const int inner = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        status = inner < 0 ? SHOAL_OK : find_files(self, inner, path, depth + 1);
    } else if (status == SHOAL_OK && S_ISREG(about.st_mode) && base_path_stays_below(path) &&
               self->count <= FILES_MOST && (status = add_found(self, path, &about)) == SHOAL_OK) {
        return SHOAL_OK;
    }
    base_free(&path);
    return status;
}

/* Closes the folder. */
static int find_files(finding *self, int folder, const char *before, int depth)
{
    DIR *entries = fdopendir(folder);
    int status = SHOAL_OK;
    if (!entries) {
        close(folder);
        return SHOAL_OK;
    }
    for (struct dirent *entry; status == SHOAL_OK && (entry = readdir(entries));)
        status = find_one(self, folder, before, entry->d_name, depth);
    closedir(entries);
    return status;
}

static bool is_reports(const char *name)
{
    return strcmp(base_path_name(name), reports) == 0;
}

/* The reports come last: what is reported before a checkpoint is kept is then there when the checkpoint is. */
static int by_name(const void *a, const void *b)
{
    const found *x = a, *y = b;
    const int last = is_reports(x->name) - is_reports(y->name);
    return last ? last : strcmp(x->name, y->name);
}

static void release_finding(finding *self)
{
    for (int i = 0; i < self->count; i++)
        base_free(&self->file[i].name);
    base_free(&self->file);
}

static int find_all(finding *out, unsigned char mark[BASE_HASH_SIZE], const char *folder)
{
    *out = (finding){0};
    const int opened = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int status = opened < 0 ? SHOAL_OK : find_files(out, opened, "", 0);
    if (out->count > 0)
        qsort(out->file, (size_t)out->count, sizeof *out->file, by_name);
    for (int i = 0; i < out->count; i++) {
        const found *file = &out->file[i];
        if (is_reports(file->name))
            continue;
        const int64_t numbers[] = {file->about.st_size, file->about.st_mtim.tv_sec, file->about.st_mtim.tv_nsec,
                                   (int64_t)file->about.st_ino};
        base_hash_add(&out->mark, file->name, strlen(file->name) + 1);
        base_hash_add(&out->mark, numbers, sizeof numbers);
    }
    base_hash_end(&out->mark, mark);
    return status;
}

/* ---- keys -------------------------------------------------------------------------------------------------------- */

static void folder_key(char out[64], int64_t trial)
{
    snprintf(out, 64, "trial/%lld/folder", (long long)trial);
}

static int file_key(char out[SHOAL_KEY_MOST + 1], const sweep_keeper *self, const char *hash)
{
    return snprintf(out, SHOAL_KEY_MOST + 1, "sweeps/%s/trial/%lld/file/%s", self->place->name, (long long)self->trial,
                    hash) > SHOAL_KEY_MOST
               ? shoal_fail(SHOAL_USAGE, "the sweep's name is too long")
               : SHOAL_OK;
}

static bool has_hash(const json_t *files, const char *hash)
{
    size_t index;
    const json_t *file;
    json_array_foreach(files, index, file)
    {
        const char *other = json_string_value(json_object_get(file, "sha256"));
        if (other && strcmp(other, hash) == 0)
            return true;
    }
    return false;
}

/* What one list has and another, which may be NULL, has not. */
static void remove_files(const sweep_keeper *self, const json_t *files, const json_t *but)
{
    size_t index;
    const json_t *file;
    json_array_foreach(files, index, file)
    {
        char key[SHOAL_KEY_MOST + 1];
        const char *hash = json_string_value(json_object_get(file, "sha256"));
        if (hash && base_hex_is(hash, 64) && !has_hash(but, hash) && file_key(key, self, hash) == SHOAL_OK)
            (void)shoal_store_remove(self->place->store, key, shoal_after(self->place->patience));
    }
}

/* ---- putting ----------------------------------------------------------------------------------------------------- */

/* The bytes of a file from its first data on: what was read of reports takes no room any more.  SHOAL_ABSENT when it
 * has gone meanwhile. */
static int read_found(char **out, size_t *size, const char *folder, const char *name)
{
    const int opened = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int file = opened < 0 ? -1 : base_open_beneath(opened, name, O_RDONLY | O_CLOEXEC);
    if (opened >= 0)
        close(opened);
    *out = NULL;
    *size = 0;
    if (file < 0)
        return shoal_fail(SHOAL_ABSENT, "%s/%s has gone", folder, name);
    const off_t data = is_reports(name) ? lseek(file, 0, SEEK_DATA) : 0;
    if (data >= 0)
        (void)lseek(file, data, SEEK_SET);
    int status = data < 0 ? base_copy_text(out, "")
                          : base_read_whole(out, size, file, (size_t)SWEEP_KEEP_MOST, "a trial's file");
    close(file);
    return status;
}

static int put_file(json_t *files, const sweep_keeper *self, const found *file)
{
    char key[SHOAL_KEY_MOST + 1], hex[BASE_HASH_HEX], *bytes = NULL;
    unsigned char hash[BASE_HASH_SIZE];
    size_t size = 0;
    int status = read_found(&bytes, &size, self->folder, file->name);
    if (status == SHOAL_OK) {
        base_hash_of(hash, bytes, size);
        base_hex_write(hex, hash, sizeof hash);
        status = file_key(key, self, hex);
    }
    if (status == SHOAL_OK && !has_hash(self->files, hex) && !has_hash(files, hex))
        status = shoal_store_put_framed(self->place->store, key, kind, bytes, size, NULL, NULL,
                                        shoal_after(self->place->patience));
    base_free(&bytes);
    if (status == SHOAL_OK && json_array_append_new(files, json_pack("{s:s,s:I,s:s}", "name", file->name, "bytes",
                                                                     (json_int_t)size, "sha256", hex)) < 0)
        status = shoal_fail(SHOAL_MEMORY, "out of memory for a trial's files");
    return status;
}

static int put_list(const sweep_keeper *self, json_t *files)
{
    char key[64];
    json_t *object = json_object();
    base_json_put(&object, "holder", base_json_text(self->holder));
    base_json_put(&object, "files", json_incref(files));
    char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;
    folder_key(key, self->trial);
    int status =
        text ? sweep_place_put(self->place, key, text) : shoal_fail(SHOAL_MEMORY, "out of memory for a trial's files");
    json_decref(object);
    free(text);
    return status;
}

int sweep_keeper_put(sweep_keeper *self)
{
    unsigned char mark[BASE_HASH_SIZE];
    finding all;
    int status = find_all(&all, mark, self->folder);
    const bool some = all.count > 0 && !is_reports(all.file[0].name);
    if (status < 0 || !some || all.bytes > SWEEP_KEEP_MOST || all.count > FILES_MOST ||
        (self->put > 0 && memcmp(mark, self->mark, sizeof mark) == 0)) {
        release_finding(&all);
        return status;
    }
    json_t *files = json_array();
    for (int i = 0; i < all.count && status == SHOAL_OK; i++)
        status = put_file(files, self, &all.file[i]);
    if (status == SHOAL_OK)
        status = put_list(self, files);
    if (status == SHOAL_OK) {
        remove_files(self, self->files, files);
        memcpy(self->mark, mark, sizeof mark);
        self->put = base_now();
        json_decref(self->files);
        self->files = files;
    } else {
        json_decref(files);
    }
    release_finding(&all);
    return status == SHOAL_ABSENT ? SHOAL_OK : status; /* it is just being replaced: the next time */
}

/* ---- bringing ---------------------------------------------------------------------------------------------------- */

static int fetch_file(const sweep_keeper *self, const json_t *file)
{
    const char *name = json_string_value(json_object_get(file, "name"));
    const char *hash = json_string_value(json_object_get(file, "sha256"));
    char key[SHOAL_KEY_MOST + 1], hex[BASE_HASH_HEX], *path = NULL;
    unsigned char own[BASE_HASH_SIZE];
    shoal_blob blob = {0};
    base_output *output = NULL;
    if (!name || !hash || !base_hex_is(hash, 64) || !base_path_stays_below(name))
        return shoal_fail(SHOAL_BROKEN, "the list of trial %lld's files makes no sense", (long long)self->trial);
    int status = file_key(key, self, hash);
    if (status == SHOAL_OK)
        status = shoal_store_get_framed(self->place->store, key, kind, &blob, shoal_after(self->place->patience));
    if (status == SHOAL_OK) {
        base_hash_of(own, blob.data, blob.size);
        base_hex_write(hex, own, sizeof own);
        if (strcmp(hex, hash) != 0)
            status = shoal_fail(SHOAL_BROKEN, "%s is not what its name says", key);
    }
    if (status == SHOAL_OK)
        status = base_format(&path, "%s/%s", self->folder, name);
    const int error = status == SHOAL_OK ? base_make_folders_above(path, 0777, NULL) : 0;
    if (error)
        status = shoal_fail_errno(SHOAL_SYSTEM, error, "%s: can't make its folder", path);
    if (status == SHOAL_OK)
        status = base_output_open(&output, path);
    if (status == SHOAL_OK)
        status = base_output_write(output, blob.data, blob.size);
    if (status == SHOAL_OK)
        status = base_output_commit(&output);
    base_output_discard(&output);
    shoal_blob_release(&blob);
    base_free(&path);
    return status;
}

/* The list that is there, NULL when there is none. */
static int get_list(json_t **out, const sweep_keeper *self)
{
    char key[64], *text = NULL;
    *out = NULL;
    folder_key(key, self->trial);
    int status = sweep_place_get(&text, self->place, key);
    if (status == SHOAL_OK)
        *out = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    base_free(&text);
    return status == SHOAL_ABSENT ? SHOAL_OK : status;
}

/* SHOAL_ABSENT or SHOAL_BROKEN: what the list names has been replaced meanwhile. */
static int fetch_once(sweep_keeper *self)
{
    json_t *list = NULL;
    int status = get_list(&list, self);
    const char *holder = json_string_value(json_object_get(list, "holder"));
    json_t *files = json_object_get(list, "files");
    const bool here = holder && strcmp(holder, self->holder) == 0;
    if (status == SHOAL_OK && holder && !here) {
        base_remove_folder(self->folder);
        const int error = base_make_folders(self->folder, 0777, NULL);
        if (error)
            status = shoal_fail_errno(SHOAL_SYSTEM, error, "%s: can't make the folder of a trial", self->folder);
        for (size_t i = 0; i < json_array_size(files) && status == SHOAL_OK; i++)
            status = fetch_file(self, json_array_get(files, i));
        if (status == SHOAL_OK)
            status = put_list(self, files); /* whoever begins here again finds it here */
    }
    if (status == SHOAL_OK && json_is_array(files)) {
        json_decref(self->files);
        self->files = json_incref(files);
    }
    json_decref(list);
    return status;
}

int sweep_keeper_fetch(sweep_keeper *self)
{
    int status = SHOAL_OK;
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        status = fetch_once(self);
        if (status != SHOAL_ABSENT && status != SHOAL_BROKEN)
            return status;
    }
    base_remove_folder(self->folder); /* it begins anew */
    (void)base_make_folders(self->folder, 0777, NULL);
    return SHOAL_OK;
}

int sweep_keeper_drop(sweep_keeper *self)
{
    char key[SHOAL_KEY_MOST + 1], own[64];
    if (!self->files)
        return SHOAL_OK;
    folder_key(own, self->trial);
    int status = snprintf(key, sizeof key, "sweeps/%s/%s", self->place->name, own) >= (int)sizeof key
                     ? shoal_fail(SHOAL_USAGE, "the sweep's name is too long")
                     : shoal_store_remove(self->place->store, key, shoal_after(self->place->patience));
    if (status == SHOAL_OK)
        remove_files(self, self->files, NULL);
    return status;
}

void sweep_keeper_release(sweep_keeper *self)
{
    json_decref(self->files);
    *self = (sweep_keeper){0};
}
