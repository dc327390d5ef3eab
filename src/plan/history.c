/* The file of the history.  See history.h.
 *
 * A line is one write at the end of the file, which no other write can come between.  Only cutting the file to its
 * newer half replaces it, and a line that is added to the old file meanwhile would be lost: so who adds holds a shared
 * lock, who cuts, or first looks whether a job has a line, one of its own, and who finds after locking that the name
 * means another file by now begins again.  Locks are never waited for long: what is at stake is a line. */
#include "plan/history.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <shoal/error.h>

#include "base/file.h"
#include "base/io.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/world.h"
#include "plan/history_internal.h"

enum { BYTES_MOST = 4 << 20, READ_MOST = 2 * BYTES_MOST, LOCK_TRIES = 50 };
static const double LOCK_PAUSE = 0.001;

int plan_history_path(char **out)
{
    return base_user_path(out, BASE_STATE, "history.jsonl", "cannot store the history");
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

/* Opens a plain file: a pipe or a device in its place would block, or never end. */
static int open_plain(int *out, const char *path, int flags)
{
    struct stat about;
    int file = open(path, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0600);
    if (file < 0)
        return shoal_fail_errno(errno == ENOENT || errno == ENOTDIR ? SHOAL_ABSENT : SHOAL_SYSTEM, errno,
                                "%s: can't open", path);
    if (fstat(file, &about) == 0 && S_ISREG(about.st_mode)) {
        *out = file;
        return SHOAL_OK;
    }
    close(file);
    return shoal_fail(SHOAL_INVALID, "%s: the history must be a regular file", path);
}

/* True when the lock is held; file systems that know no locks go without. */
static bool lock(int file, int how, int tries)
{
    for (; tries > 0; tries--) {
        if (flock(file, how | LOCK_NB) == 0)
            return true;
        if (errno != EWOULDBLOCK && errno != EINTR)
            return false;
        if (tries > 1)
            base_sleep_until(base_time_after(base_now(), LOCK_PAUSE));
    }
    return false;
}

static bool is_still_there(const char *path, int file)
{
    struct stat by_name, by_file;
    return stat(path, &by_name) == 0 && fstat(file, &by_file) == 0 && by_name.st_ino == by_file.st_ino &&
           by_name.st_dev == by_file.st_dev;
}

/* The file with such a lock on it; makes it, and the folders above. */
static int open_to_add(int *out, const char *path, int how)
{
    int status = open_plain(out, path, O_RDWR | O_APPEND | O_CREAT);
    if (status == SHOAL_ABSENT && (status = base_output_folders(path)) == SHOAL_OK)
        status = open_plain(out, path, O_RDWR | O_APPEND | O_CREAT);
    for (int tries = 0; status == SHOAL_OK && tries < LOCK_TRIES; tries++) {
        lock(*out, how, LOCK_TRIES);
        if (is_still_there(path, *out))
            return SHOAL_OK;
        close(*out);
        *out = -1;
        status = open_plain(out, path, O_RDWR | O_APPEND | O_CREAT);
    }
    return status == SHOAL_ABSENT ? SHOAL_SYSTEM : status;
}

/* ---- adding ------------------------------------------------------------------------------------------------------ */

/* Whether the last line was cut short, by a full disk say: then the next one must not become part of it. */
static bool ends_within_line(int file)
{
    struct stat about;
    char last = '\n';
    return fstat(file, &about) == 0 && about.st_size > 0 && pread(file, &last, 1, about.st_size - 1) == 1 &&
           last != '\n';
}

static int write_history_line(int file, const char *path, const char *line, size_t size)
{
    ssize_t done;
    do
        done = write(file, line, size);
    while (done < 0 && errno == EINTR);
    if (done == (ssize_t)size)
        return SHOAL_OK;
    return shoal_fail_errno(SHOAL_SYSTEM, done < 0 ? errno : ENOSPC, "%s: can't write", path);
}

/* Reads up to `most` bytes of the end, from the beginning of a line on. */
static int read_end(char **out, size_t *size, int file, const char *path, off_t most)
{
    struct stat about;
    if (fstat(file, &about) < 0)
        return shoal_fail_errno(SHOAL_SYSTEM, errno, "%s: can't read", path);
    off_t from = about.st_size > most ? about.st_size - most : 0;
    size_t wanted = (size_t)(about.st_size - from), done;
    int status = base_alloc_unset(out, wanted + 1, 1, path);
    if (status < 0)
        return status;
    int error = base_read_all_at(file, *out, wanted, from, &done);
    if (error)
        return shoal_fail_errno(SHOAL_SYSTEM, error, "%s: can't read", path);
    const char *newline = from > 0 ? memchr(*out, '\n', done) : NULL;
    size_t cut = newline ? (size_t)(newline - *out) + 1 : from > 0 ? done : 0;
    memmove(*out, *out + cut, done - cut);
    *size = done - cut;
    return SHOAL_OK;
}

/* The newer half in place of the whole.  Where someone else is adding it is left to a later run. */
static int cut_to_half(int file, const char *path)
{
    struct stat about;
    char *bytes = NULL;
    size_t size = 0;
    base_output *output = NULL;
    if (fstat(file, &about) < 0 || about.st_size <= BYTES_MOST || !lock(file, LOCK_EX, 1) ||
        !is_still_there(path, file))
        return SHOAL_OK;
    int status = read_end(&bytes, &size, file, path, BYTES_MOST / 2);
    if (status == SHOAL_OK)
        status = base_output_open(&output, path);
    if (status == SHOAL_OK)
        status = base_output_write(output, bytes, size);
    if (status == SHOAL_OK)
        status = base_output_commit(&output);
    base_output_discard(&output);
    base_free(&bytes);
    return status;
}

/* Whether the file has a line of the job.  Ids are random, and written as they are here. */
static int find_job(bool *out, int file, const char *path, const char *job)
{
    char *bytes = NULL, *wanted = NULL;
    size_t size = 0;
    int status = base_format(&wanted, "\"job\":\"%s\"", job);
    if (status == SHOAL_OK)
        status = read_end(&bytes, &size, file, path, READ_MOST);
    *out = status == SHOAL_OK && memmem(bytes, size, wanted, strlen(wanted));
    base_free(&bytes);
    base_free(&wanted);
    return status;
}

int plan_history_add(const char *path, const plan_run *run)
{
    bool is_there = false;
    char *line = NULL, *whole = NULL;
    size_t size = 0;
    int file = -1;
    int status = plan_history_line_write(&line, &size, run);
    if (status == SHOAL_OK)
        status = open_to_add(&file, path, run->job[0] ? LOCK_EX : LOCK_SH);
    if (status == SHOAL_OK && run->job[0])
        status = find_job(&is_there, file, path, run->job);
    if (status == SHOAL_OK && !is_there && ends_within_line(file)) {
        status = base_format(&whole, "\n%s", line);
        size++;
    }
    if (status == SHOAL_OK && !is_there)
        status = write_history_line(file, path, whole ? whole : line, size);
    if (status == SHOAL_OK)
        status = cut_to_half(file, path);
    if (file >= 0)
        close(file);
    base_free(&whole);
    base_free(&line);
    return status;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* Room for one more. */
static int reserve_runs(plan_run **runs, int64_t count, int64_t *room)
{
    if (count < *room)
        return SHOAL_OK;
    int64_t more = *room ? 2 * *room : 64;
    int status = base_grow(runs, (size_t)*room, (size_t)more, sizeof **runs, "the history");
    if (status == SHOAL_OK)
        *room = more;
    return status;
}

static int read_history_lines(plan_run **out, int64_t *count, int64_t *damaged, const char *bytes, size_t size)
{
    int64_t room = 0;
    int status = SHOAL_OK;
    for (size_t at = 0; status == SHOAL_OK && at < size;) {
        const char *newline = memchr(bytes + at, '\n', size - at);
        size_t length = newline ? (size_t)(newline - bytes) - at : size - at;
        status = length > 0 ? reserve_runs(out, *count, &room) : SHOAL_OK;
        if (status == SHOAL_OK && length > 0) {
            bool well = plan_history_line_read(&(*out)[*count], bytes + at, length);
            *count += well;
            *damaged += !well;
        }
        at += length + 1;
    }
    return status;
}

/* Where the last lines that are wanted begin: those before need not be parsed. */
static size_t start_of_last(const char *bytes, size_t size, int64_t lines)
{
    size_t at = size > 0 && bytes[size - 1] == '\n' ? size - 1 : size;
    while (at > 0 && lines > 0) {
        const char *newline = memrchr(bytes, '\n', at);
        if (--lines == 0)
            return newline ? (size_t)(newline - bytes) + 1 : 0;
        at = newline ? (size_t)(newline - bytes) : 0;
    }
    return 0;
}

int plan_history_read(plan_run **out, int64_t *count, int64_t *damaged, const char *path, int64_t most)
{
    char *bytes = NULL;
    size_t size = 0;
    int file = -1;
    *out = NULL;
    *count = *damaged = 0;
    int status = open_plain(&file, path, O_RDONLY);
    if (status == SHOAL_ABSENT)
        return SHOAL_OK;
    if (status == SHOAL_OK)
        status = read_end(&bytes, &size, file, path, READ_MOST);
    if (file >= 0)
        close(file);
    size_t first = most > 0 && status == SHOAL_OK ? start_of_last(bytes, size, most) : 0;
    if (status == SHOAL_OK)
        status = read_history_lines(out, count, damaged, bytes + first, size - first);
    base_free(&bytes);
    if (status < 0)
        base_free(out);
    if (status < 0)
        *count = 0;
    return status;
}
