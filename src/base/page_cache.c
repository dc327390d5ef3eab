/* What the system keeps of files.  See page_cache.h. */
#include "page_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <shoal/error.h>

#include "io.h"
#include "memory.h"

static int open_plain(int *out, struct stat *about, const char *path)
{
    *out = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (*out < 0 || fstat(*out, about) < 0)
        return shoal_fail_errno(SHOAL_SYSTEM, errno, "%s: can't read", path);
    return S_ISREG(about->st_mode) ? SHOAL_OK : shoal_fail(SHOAL_USAGE, "%s: is not a plain file", path);
}

int base_page_cache_drop(const char *path)
{
    int file = -1;
    struct stat about;
    int status = open_plain(&file, &about, path);
    if (status == SHOAL_OK) {
        (void)fdatasync(file); /* pages that are not on the disk yet would stay; what stays is counted */
        int error = posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
        if (error)
            status = shoal_fail_errno(SHOAL_SYSTEM, error, "%s: can't be dropped from memory", path);
    }
    base_close(&file);
    return status;
}

/* To all others mincore says that everything is there. */
static bool is_told(const struct stat *about, const char *path)
{
    return about->st_uid == geteuid() || access(path, W_OK) == 0;
}

static int count_pages(base_page_cache *to, int file, int64_t size, const char *path)
{
    const int64_t page = sysconf(_SC_PAGESIZE), pages = (size + page - 1) / page;
    unsigned char *there = NULL;
    void *map = mmap(NULL, (size_t)size, PROT_READ, MAP_SHARED, file, 0);
    if (map == MAP_FAILED)
        return shoal_fail_errno(SHOAL_SYSTEM, errno, "%s: can't be mapped", path);
    int status = base_alloc_unset(&there, (size_t)pages, 1, "the pages of a file");
    if (status == SHOAL_OK && mincore(map, (size_t)size, there) < 0)
        to->unknown = true;
    else if (status == SHOAL_OK)
        for (int64_t i = 0; i < pages; i++)
            if (there[i] & 1)
                to->resident += i + 1 < pages ? page : size - i * page;
    munmap(map, (size_t)size);
    base_free(&there);
    return status;
}

int base_page_cache_add(base_page_cache *to, const char *path)
{
    int file = -1;
    struct stat about;
    int status = open_plain(&file, &about, path);
    if (status == SHOAL_OK) {
        to->bytes += about.st_size;
        if (!is_told(&about, path))
            to->unknown = true;
        else if (about.st_size > 0)
            status = count_pages(to, file, about.st_size, path);
    }
    base_close(&file);
    return status;
}
