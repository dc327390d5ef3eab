/* All of it.  See io.h. */
#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <unistd.h>

#include <shoal/error.h>

#include "base/memory.h"

/* At the file's own place, for pipes and what is appended to, when `offset` is negative. */
static int write_all(int file, const char *bytes, size_t size, int64_t offset)
{
    for (size_t done = 0; done < size;) {
        ssize_t now = offset < 0 ? write(file, bytes + done, size - done)
                                 : pwrite(file, bytes + done, size - done, (off_t)offset + (off_t)done);
        if (now < 0 && errno == EINTR)
            continue;
        if (now <= 0)
            return now < 0 ? errno : EIO;
        done += (size_t)now;
    }
    return 0;
}

int base_write_all(int file, const void *bytes, size_t size)
{
    return write_all(file, bytes, size, -1);
}

int base_write_all_at(int file, const void *bytes, size_t size, int64_t offset)
{
    return write_all(file, bytes, size, offset);
}

static int read_all(int file, char *out, size_t size, int64_t offset, size_t *got)
{
    for (*got = 0; *got < size;) {
        ssize_t now = offset < 0 ? read(file, out + *got, size - *got)
                                 : pread(file, out + *got, size - *got, (off_t)offset + (off_t)*got);
        if (now < 0 && errno == EINTR)
            continue;
        if (now <= 0)
            return now < 0 ? errno : 0;
        *got += (size_t)now;
    }
    return 0;
}

int base_read_all(int file, void *out, size_t size, size_t *got)
{
    return read_all(file, out, size, -1, got);
}

int base_read_all_at(int file, void *out, size_t size, int64_t offset, size_t *got)
{
    return read_all(file, out, size, offset, got);
}

int base_read_whole(char **out, size_t *size, int file, size_t most, const char *what)
{
    enum { FIRST = 1 << 16 };
    *out = NULL;
    *size = 0;
    for (size_t room = 0; *size == room;) {
        size_t got, wider = room ? room * 2 : FIRST;
        int status = base_grow(out, room ? room + 1 : 0, wider + 1, 1, what); /* one byte stays for the NUL */
        if (status < 0)
            return status;
        room = wider;
        errno = base_read_all(file, *out + *size, room - *size, &got);
        *size += got;
        if (errno)
            return SHOAL_SYSTEM;
        if (*size > most)
            return SHOAL_INVALID;
    }
    (*out)[*size] = '\0';
    return SHOAL_OK;
}

size_t base_read_small(char *out, size_t room, const char *path)
{
    size_t got = 0;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file >= 0) {
        if (base_read_all(file, out, room - 1, &got) != 0)
            got = 0;
        close(file);
    }
    out[got] = '\0';
    return got;
}

void base_close(int *descriptor)
{
    if (*descriptor >= 0)
        close(*descriptor);
    *descriptor = -1;
}
