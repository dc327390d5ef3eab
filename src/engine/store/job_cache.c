/* A folder of slices, by content.  See job_cache.h.
 *
 * A file is 64 bytes and the content:
 *
 *     0  magic "shoalslc"        8  length                    16  id of the content, 32 bytes
 *    48  CRC32C of the content  60  CRC32C of bytes 0 to 59
 *
 * Nothing is forced to the disk: a file that a crash of the machine left torn fails its checksum and is fetched again.
 * A file's time of modification says when it was last used.  The lock is taken only to remove old files, so that two
 * processes do not both remove the oldest half.  The turn to fetch a content is a lock, too: on one byte of the file
 * of turns, the one that its id says.  So no files of turns pile up, and the kernel ends the turn of a process that
 * dies. */
#include "engine/store/job_cache.h"

#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <shoal/error.h>

#include "base/crc.h"
#include "base/hex.h"
#include "base/io.h"
#include "base/mapped.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/world.h"

enum { HEAD_BYTES = 64, NAME_BYTES = BASE_HASH_HEX + 24, STALE_SECONDS = 3600, LOCK_TRIES = 40 };
static const char magic[8] = "shoalslc", lock_name[] = ".lock", turns_name[] = ".turns", temporary[] = ".new-";

struct job_cache {
    char *folder; /* the caller's */
    char *slices; /* below it */
    int64_t bytes;
    atomic_llong missed;
};

int job_cache_new(job_cache **out, const char *folder, int64_t bytes)
{
    job_cache *cache = NULL;
    *out = NULL;
    if (bytes < 0)
        return shoal_fail(SHOAL_USAGE, "%s: a cache can't have %lld bytes", folder, (long long)bytes);
    int status = base_alloc(&cache, 1, sizeof *cache, "a cache");
    if (status == SHOAL_OK)
        status = base_copy_text(&cache->folder, folder);
    if (status == SHOAL_OK)
        status = base_format(&cache->slices, "%s/slices", folder);
    if (status < 0) {
        job_cache_free(&cache);
        return status;
    }
    cache->bytes = bytes;
    *out = cache;
    return SHOAL_OK;
}

void job_cache_free(job_cache **inout)
{
    if (!*inout)
        return;
    base_free(&(*inout)->slices);
    base_free(&(*inout)->folder);
    base_free(inout);
}

const char *job_cache_folder(const job_cache *cache)
{
    return cache->slices;
}

int64_t job_cache_missed(const job_cache *cache)
{
    return atomic_load(&cache->missed);
}

/* The descriptor of the folder, or -1. */
static int open_slices(const job_cache *cache, bool make)
{
    int folder = open(cache->slices, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0 && errno == ENOENT && make) {
        (void)base_make_folders(cache->slices, 0700, NULL); /* a failure shows when it is opened */
        folder = open(cache->slices, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
    return folder;
}

/* ---- one file ---------------------------------------------------------------------------------------------------- */

static void write_head(unsigned char head[HEAD_BYTES], const unsigned char *id, const void *data, size_t size)
{
    uint64_t length = htole64(size);
    uint32_t crc = htole32(base_crc32c(0, data, size));
    memset(head, 0, HEAD_BYTES);
    memcpy(head, magic, sizeof magic);
    memcpy(head + 8, &length, sizeof length);
    memcpy(head + 16, id, BASE_HASH_SIZE);
    memcpy(head + 48, &crc, sizeof crc);
    crc = htole32(base_crc32c(0, head, 60));
    memcpy(head + 60, &crc, sizeof crc);
}

static bool is_intact(const unsigned char *file, const unsigned char *id, size_t size)
{
    unsigned char expected[HEAD_BYTES];
    write_head(expected, id, file + HEAD_BYTES, size);
    return memcmp(file, expected, HEAD_BYTES) == 0;
}

static bool map_file(job_cached *out, int file, const unsigned char *id, size_t size)
{
    struct stat info;
    *out = (job_cached){0};
    if (fstat(file, &info) < 0 || !S_ISREG(info.st_mode) || info.st_uid != geteuid() ||
        (info.st_mode & (S_IWGRP | S_IWOTH)) != 0 || (uint64_t)info.st_size != size + HEAD_BYTES ||
        base_mapped_open(&out->mapped, file, 0, size + HEAD_BYTES, "a file of the cache") < 0)
        return false;
    out->data = base_mapped_bytes(out->mapped) + HEAD_BYTES;
    if (is_intact(base_mapped_bytes(out->mapped), id, size) && !base_mapped_is_lost(out->mapped))
        return true;
    job_cached_release(out);
    return false;
}

bool job_cache_get(job_cached *out, job_cache *cache, const unsigned char id[BASE_HASH_SIZE], size_t size)
{
    char name[BASE_HASH_HEX];
    bool found = false;
    base_hex_write(name, id, BASE_HASH_SIZE);
    *out = (job_cached){0};
    int folder = open_slices(cache, false);
    int file = folder >= 0 ? openat(folder, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
    if (file >= 0) {
        found = map_file(out, file, id, size);
        if (found)
            (void)futimens(file, NULL); /* what was used last is removed last */
        else
            (void)unlinkat(folder, name, 0);
        close(file);
    }
    if (folder >= 0)
        close(folder);
    return found;
}

void job_cached_release(job_cached *cached)
{
    base_mapped_close(&cached->mapped);
    *cached = (job_cached){0};
}

bool job_cached_is_lost(const job_cached *cached)
{
    return cached->mapped && base_mapped_is_lost(cached->mapped);
}

/* Writes under a temporary name and renames. */
static bool write_file(int folder, const char *name, const unsigned char *id, const void *data, size_t size)
{
    unsigned char head[HEAD_BYTES];
    char fresh[NAME_BYTES];
    uint64_t unique;
    base_entropy(&unique, sizeof unique);
    snprintf(fresh, sizeof fresh, "%s%016llx", temporary, (unsigned long long)unique);
    int file = openat(folder, fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0)
        return false;
    write_head(head, id, data, size);
    bool good = base_write_all(file, head, sizeof head) == 0 && base_write_all(file, data, size) == 0;
    good = close(file) == 0 && good;
    good = good && renameat(folder, fresh, folder, name) == 0;
    if (!good)
        (void)unlinkat(folder, fresh, 0);
    return good;
}

/* ---- staying within the limit ------------------------------------------------------------------------------------ */

typedef struct cached_file {
    char name[NAME_BYTES];
    int64_t bytes;
    struct timespec used;
} cached_file;

typedef struct census {
    cached_file *files;
    size_t count, room;
    int64_t bytes; /* of all files, including those being written */
} census;

static int by_use(const void *left, const void *right)
{
    const struct timespec *a = &((const cached_file *)left)->used, *b = &((const cached_file *)right)->used;
    if (a->tv_sec != b->tv_sec)
        return a->tv_sec < b->tv_sec ? -1 : 1;
    return (a->tv_nsec > b->tv_nsec) - (a->tv_nsec < b->tv_nsec);
}

static bool add_file(census *all, const char *name, const struct stat *info)
{
    if (all->count == all->room) {
        size_t room = all->room ? 2 * all->room : 64;
        if (base_grow(&all->files, all->room, room, sizeof *all->files, "a cache") < 0)
            return false;
        all->room = room;
    }
    cached_file *file = &all->files[all->count++];
    snprintf(file->name, sizeof file->name, "%.*s", NAME_BYTES - 1, name);
    file->bytes = info->st_size;
    file->used = info->st_mtim;
    all->bytes += info->st_size;
    return true;
}

/* All files of the folder; leftovers of processes that died while they wrote are removed on the way. */
static bool count_files(census *all, int folder, const char *newest)
{
    bool good = true;
    struct stat info, now; /* the file that was just written has the file system's present time */
    if (fstatat(folder, newest, &now, 0) < 0)
        return false;
    int again = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *names = again >= 0 ? fdopendir(again) : NULL;
    if (!names) {
        if (again >= 0)
            close(again);
        return false;
    }
    for (struct dirent *entry; good && (entry = readdir(names));) {
        bool fresh = strncmp(entry->d_name, temporary, sizeof temporary - 1) == 0;
        if ((entry->d_name[0] == '.' && !fresh) || strlen(entry->d_name) >= NAME_BYTES ||
            fstatat(folder, entry->d_name, &info, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(info.st_mode))
            continue;
        if (fresh && info.st_mtim.tv_sec < now.st_mtim.tv_sec - STALE_SECONDS)
            (void)unlinkat(folder, entry->d_name, 0);
        else if (fresh)
            all->bytes += info.st_size;
        else
            good = add_file(all, entry->d_name, &info);
    }
    closedir(names);
    return good;
}

/* How many bytes all files may take, if they take `bytes` now. */
static int64_t limit_of(const job_cache *cache, int folder, int64_t bytes)
{
    struct statvfs disk;
    if (cache->bytes > 0)
        return cache->bytes;
    if (fstatvfs(folder, &disk) < 0)
        return 0;
    double free = (double)disk.f_bavail * (double)disk.f_frsize;
    return (int64_t)((free + (double)bytes) / 10);
}

/* Removes the oldest files until the rest fit, never `keep`.  False if the folder can't be read. */
static bool remove_oldest(const job_cache *cache, int folder, const char *keep)
{
    census all = {0};
    bool good = count_files(&all, folder, keep);
    int64_t limit = limit_of(cache, folder, all.bytes);
    if (good && all.count > 0)
        qsort(all.files, all.count, sizeof *all.files, by_use);
    for (size_t i = 0; i < all.count && good && all.bytes > limit; i++)
        if (strcmp(all.files[i].name, keep) != 0 && unlinkat(folder, all.files[i].name, 0) == 0)
            all.bytes -= all.files[i].bytes;
    base_free(&all.files);
    return good;
}

/* The lock's descriptor, or -1 if someone holds it for long: a stopped process must not block the others. */
static int lock_cache(int folder)
{
    int file = openat(folder, lock_name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    for (int i = 0; file >= 0; i++) {
        if (flock(file, LOCK_EX | LOCK_NB) == 0)
            return file;
        if (i == LOCK_TRIES)
            break;
        base_sleep_until(base_time_after(base_now(), 0.005));
    }
    if (file >= 0)
        close(file);
    return -1;
}

static bool has_room(const job_cache *cache, int folder, size_t size)
{
    return size <= INT64_MAX - HEAD_BYTES && (int64_t)size + HEAD_BYTES <= limit_of(cache, folder, 0);
}

/* Whether it was kept. */
static bool keep_rows(const job_cache *cache, int folder, const unsigned char *id, const void *data, size_t size)
{
    char name[BASE_HASH_HEX];
    base_hex_write(name, id, BASE_HASH_SIZE);
    if (!has_room(cache, folder, size) || !write_file(folder, name, id, data, size))
        return false;
    int held = lock_cache(folder);
    bool good = held >= 0 && remove_oldest(cache, folder, name);
    if (!good)
        (void)unlinkat(folder, name, 0); /* rather not keep it than exceed the limit */
    if (held >= 0)
        close(held);
    return good;
}

void job_cache_put(job_cache *cache, const unsigned char id[BASE_HASH_SIZE], const void *data, size_t size)
{
    int folder = open_slices(cache, true);
    if (folder < 0 || !keep_rows(cache, folder, id, data, size))
        atomic_fetch_add(&cache->missed, 1);
    if (folder >= 0)
        close(folder);
}

/* ---- turns ------------------------------------------------------------------------------------------------------- */

static struct flock byte_of_turn(const unsigned char *id)
{
    uint64_t place;
    memcpy(&place, id, sizeof place);
    return (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t)(le64toh(place) >> 2), .l_len = 1};
}

bool job_cache_turn(job_turn *out, job_cache *cache, const unsigned char id[BASE_HASH_SIZE], size_t size)
{
    struct flock wanted = byte_of_turn(id);
    int folder = open_slices(cache, true);
    int file =
        folder >= 0 ? openat(folder, turns_name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600) : -1;
    *out = (job_turn){.file = file};
    bool locked = file >= 0 && fcntl(file, F_OFD_SETLK, &wanted) == 0;
    bool others = file >= 0 && !locked && (errno == EAGAIN || errno == EACCES);
    out->held = locked && has_room(cache, folder, size);
    if (file >= 0 && !out->held)
        close(file);
    if (folder >= 0)
        close(folder);
    return !others;
}

void job_turn_end(job_turn *turn)
{
    struct flock all = {.l_type = F_UNLCK, .l_whence = SEEK_SET};
    if (turn->held) {
        (void)fcntl(turn->file, F_OFD_SETLK, &all); /* though a child that was just forked still has it open */
        close(turn->file);
    }
    *turn = (job_turn){0};
}
