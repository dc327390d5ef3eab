/* Reading by mappings, writing by parts.  See the header. */
#include "transfer_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/io.h"
#include "base/memory.h"
#include "base/path.h"
#include "transfer_journal.h"
#include "transfer_names.h"

int transfer_file_version(const char *path, int64_t *size, shoal_etag *version)
{
    struct stat info;
    if (stat(path, &info) < 0)
        return shoal_fail_errno(errno == ENOENT || errno == ENOTDIR ? SHOAL_ABSENT : SHOAL_SYSTEM, errno, "%s", path);
    *size = info.st_size;
    *version = (shoal_etag){""};
    snprintf(version->text, sizeof version->text, "%lld-%lld.%09ld-%lld.%09ld-%llu", (long long)info.st_size,
             (long long)info.st_mtim.tv_sec, info.st_mtim.tv_nsec, (long long)info.st_ctim.tv_sec, info.st_ctim.tv_nsec,
             (unsigned long long)info.st_ino);
    return SHOAL_OK;
}

bool transfer_is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

int transfer_file_read(const char *path, int64_t offset, void *buffer, size_t length, size_t *got)
{
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe that took its place has nothing to read */
    *got = 0;
    int error = descriptor < 0 ? errno : base_read_all_at(descriptor, buffer, length, offset, got);
    if (descriptor >= 0)
        close(descriptor);
    return error ? shoal_fail_errno(SHOAL_SYSTEM, error, "%s: can't read", path) : SHOAL_OK;
}

/* ---- mappings ---------------------------------------------------------------------------------------------------- */

/* Not by base/mapped.h, which puts zeros where a file shrank: these bytes are on their way to a store, which would keep
 * the zeros.  SIGBUS ends the process before the request is whole. */
int transfer_map_descriptor(transfer_mapping *out, int descriptor, const char *name)
{
    struct stat info;
    *out = (transfer_mapping){.data = ""};
    if (fstat(descriptor, &info) < 0)
        return shoal_fail_errno(SHOAL_SYSTEM, errno, "%s: can't read", name);
    if (!S_ISREG(info.st_mode))
        return shoal_fail(SHOAL_INVALID, "%s: is not a regular file", name);
    if (info.st_size == 0)
        return SHOAL_OK;
    void *data = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_SHARED, descriptor, 0);
    if (data == MAP_FAILED)
        return shoal_fail_errno(SHOAL_SYSTEM, errno, "%s: can't read", name);
    (void)madvise(data, (size_t)info.st_size, MADV_SEQUENTIAL); /* advice only */
    *out = (transfer_mapping){.data = data, .size = (size_t)info.st_size, .mapped = true};
    return SHOAL_OK;
}

int transfer_map(transfer_mapping *out, const char *path)
{
    *out = (transfer_mapping){.data = ""};
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe must not make us wait: it is refused */
    if (descriptor < 0)
        return shoal_fail_errno(SHOAL_SYSTEM, errno, "%s: can't read", path);
    int status = transfer_map_descriptor(out, descriptor, path);
    close(descriptor);
    return status;
}

void transfer_unmap(transfer_mapping *mapping)
{
    if (mapping->mapped)
        munmap((void *)mapping->data, mapping->size);
    *mapping = (transfer_mapping){.data = ""};
}

/* ---- parts ------------------------------------------------------------------------------------------------------- */

/* The part's name depends on the target's alone, and is short however long that is. */
static int part_path(char **out, const char *target)
{
    size_t length, folder;
    const char *name = transfer_last(&length, target);
    transfer_mark mark = transfer_mark_of((const char *const[]){name, NULL});
    uint64_t hash;
    memcpy(&hash, mark.bytes, sizeof hash);
    folder = (size_t)(name - target);
    return base_format(out, "%.*s" TRANSFER_PART_NAME "%016" PRIx64, (int)folder, target, hash);
}

/* The process with the lock may be about to end, just killed or done with a small file: wait for that. */
static int lock_soon(int descriptor)
{
    enum { WAITS = 200 };
    const struct timespec wait = {.tv_nsec = 10 * 1000 * 1000};
    for (int i = 0; flock(descriptor, LOCK_EX | LOCK_NB) < 0; i++) {
        if (errno != EINTR && (errno != EWOULDBLOCK || i >= WAITS))
            return -1;
        nanosleep(&wait, NULL);
    }
    return 0;
}

/* Opens and locks the part.  One that was renamed into place between opening and locking is no longer the part. */
static int open_locked(transfer_part *part)
{
    enum { ATTEMPTS = 10 };
    for (int i = 0; i < ATTEMPTS; i++) {
        struct stat ours, there;
        part->descriptor = open(part->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
        if (part->descriptor < 0)
            return shoal_fail_errno(SHOAL_SYSTEM, errno, "%s: can't write", part->name);
        if (lock_soon(part->descriptor) < 0) {
            int error = errno;
            close(part->descriptor);
            part->descriptor = -1;
            if (error == EWOULDBLOCK)
                return shoal_fail(SHOAL_SYSTEM, "%s: another process is writing it (%s is locked)", part->name,
                                  part->path);
            return shoal_fail_errno(SHOAL_SYSTEM, error, "%s: can't lock %s", part->name, part->path);
        }
        if (fstat(part->descriptor, &ours) == 0 && lstat(part->path, &there) == 0 && ours.st_ino == there.st_ino &&
            ours.st_dev == there.st_dev)
            return SHOAL_OK;
        close(part->descriptor);
        part->descriptor = -1;
    }
    return shoal_fail(SHOAL_SYSTEM, "%s: other processes keep replacing %s", part->name, part->path);
}

int transfer_part_open(transfer_part *out, const char *target)
{
    struct stat info;
    const char *folder;
    *out = (transfer_part){.descriptor = -1};
    int status = base_copy_text(&out->name, target ? target : "a temporary file");
    if (status == SHOAL_OK && !target && (out->descriptor = base_open_temporary(&folder)) < 0)
        status = shoal_fail_errno(SHOAL_SYSTEM, errno,
                                  "can't create a temporary file in %s (TMPDIR chooses the folder)", folder);
    if (status == SHOAL_OK && target) {
        base_making making;
        int error = base_make_folders_above(target, 0777, &making);
        if (error)
            status = shoal_fail_errno(SHOAL_SYSTEM, error, "%s: can't create the folder %.*s", target,
                                      (int)making.failed, target);
        if (status == SHOAL_OK)
            status = base_output_resolve(&out->target, target);
        if (status == SHOAL_OK && stat(out->target, &info) == 0 && !S_ISREG(info.st_mode))
            status = shoal_fail(SHOAL_SYSTEM, "%s: can't write: it is %s", target,
                                S_ISDIR(info.st_mode) ? "a folder" : "not a regular file");
        if (status == SHOAL_OK)
            status = part_path(&out->path, out->target);
        if (status == SHOAL_OK)
            status = open_locked(out);
    }
    if (status < 0)
        transfer_part_close(out, true);
    return status;
}

int transfer_part_write(const transfer_part *part, const void *bytes, size_t size, int64_t offset)
{
    int error = base_write_all_at(part->descriptor, bytes, size, offset);
    return error ? shoal_fail_errno(SHOAL_SYSTEM, error, "%s: can't write", part->name) : SHOAL_OK;
}

int transfer_part_commit(transfer_part *part, int64_t size)
{
    struct stat old, written;
    if (ftruncate(part->descriptor, (off_t)size) < 0 || fstat(part->descriptor, &written) < 0)
        return shoal_fail_errno(SHOAL_SYSTEM, errno, "%s: can't write", part->name);
    if (written.st_size != size)
        return shoal_fail(SHOAL_BROKEN, "%s: %lld bytes were written, not %lld", part->name, (long long)written.st_size,
                          (long long)size);
    if (!part->target)
        return SHOAL_OK;
    if (stat(part->target, &old) == 0)
        (void)fchmod(part->descriptor, old.st_mode & 0777); /* a file system without modes keeps none */
    if (rename(part->path, part->target) < 0)
        return shoal_fail_errno(SHOAL_SYSTEM, errno, "%s: can't write", part->name);
    base_free(&part->path);
    return SHOAL_OK;
}

void transfer_part_close(transfer_part *part, bool keep)
{
    if (part->path && part->descriptor >= 0 && !keep)
        unlink(part->path); /* while the lock is held, so that it is ours */
    if (part->descriptor >= 0)
        close(part->descriptor);
    base_free(&part->path);
    base_free(&part->target);
    base_free(&part->name);
    part->descriptor = -1;
}

/* ---- standard input ---------------------------------------------------------------------------------------------- */

int transfer_spool_input(transfer_part *out, char **path)
{
    char block[1 << 16];
    int64_t size = 0;
    int status = transfer_part_open(out, NULL);
    while (status == SHOAL_OK) {
        ssize_t got = read(STDIN_FILENO, block, sizeof block);
        if (got == 0)
            break;
        if (got < 0 && errno != EINTR)
            status = shoal_fail_errno(SHOAL_SYSTEM, errno, "standard input: can't read");
        else if (got > 0 && (status = transfer_part_write(out, block, (size_t)got, size)) == SHOAL_OK)
            size += got;
    }
    if (status == SHOAL_OK)
        status = base_format(path, "/proc/self/fd/%d", out->descriptor);
    if (status < 0)
        transfer_part_close(out, false);
    return status;
}
