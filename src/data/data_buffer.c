/* Memory that becomes an unnamed temporary file when it grows past its limit.  See data_internal.h.
 *
 * Both kinds are mappings, so growing is mremap and copies nothing.  The file lies in $TMPDIR, else
 * /var/tmp, else /tmp; it has no name, so nothing remains however the process ends. */
#include "data_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/io.h"
#include "base/memory.h"
#include "base/path.h"

static const size_t least_step = (size_t)64 << 10, greatest_step = (size_t)256 << 20;

void data_buffer_init(data_buffer *buffer, const char *path, int64_t memory_limit)
{
    if (memory_limit <= 0)
        memory_limit = base_memory_available() / 2;
    *buffer = (data_buffer){.descriptor = -1, .path = path, .memory_limit = (size_t)memory_limit};
}

static size_t round_to_pages(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), rounded;
    return base_add(&rounded, bytes, page - 1) ? rounded / page * page : 0;
}

/* Allocates the file's blocks up to `capacity`.  Returns an errno value. */
static int allocate_blocks(int descriptor, size_t from, size_t capacity)
{
    int error;
    do
        error = posix_fallocate(descriptor, (off_t)from, (off_t)(capacity - from));
    while (error == EINTR);
    return error;
}

static int fail_temporary(const data_buffer *buffer, int error, size_t capacity)
{
    return shoal_fail_errno(SHOAL_SYSTEM, error,
                            "%s: can't keep %zu decoded bytes in a temporary file (TMPDIR chooses its folder)",
                            buffer->path, capacity);
}

static int move_to_file(data_buffer *buffer, size_t capacity)
{
    const char *folder;
    int descriptor = base_open_temporary(&folder);
    if (descriptor < 0)
        return shoal_fail_errno(SHOAL_SYSTEM, errno, "%s: can't make a temporary file in %s", buffer->path, folder);
    int error = allocate_blocks(descriptor, 0, capacity);
    if (!error)
        error = base_write_all_at(descriptor, buffer->bytes, buffer->size, 0);
    void *fresh = MAP_FAILED;
    if (!error) {
        fresh = mmap(NULL, capacity, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
        error = fresh == MAP_FAILED ? errno : 0;
    }
    if (error) {
        close(descriptor);
        return fail_temporary(buffer, error, capacity);
    }
    if (buffer->bytes)
        munmap(buffer->bytes, buffer->capacity);
    buffer->bytes = fresh;
    buffer->capacity = capacity;
    buffer->descriptor = descriptor;
    return SHOAL_OK;
}

static void *map_memory(data_buffer *buffer, size_t capacity)
{
    if (buffer->bytes)
        return mremap(buffer->bytes, buffer->capacity, capacity, MREMAP_MAYMOVE);
    return mmap(NULL, capacity, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static int grow_memory(data_buffer *buffer, size_t capacity)
{
    void *grown = map_memory(buffer, capacity);
    if (grown == MAP_FAILED)
        return shoal_fail(SHOAL_MEMORY, "%s: out of memory: %zu bytes for decoded values", buffer->path, capacity);
    buffer->bytes = grown;
    buffer->capacity = capacity;
    (void)madvise(grown, capacity, MADV_HUGEPAGE); /* advice only */
    return SHOAL_OK;
}

static int grow_file(data_buffer *buffer, size_t capacity)
{
    int error = allocate_blocks(buffer->descriptor, buffer->capacity, capacity);
    if (!error) {
        void *grown = mremap(buffer->bytes, buffer->capacity, capacity, MREMAP_MAYMOVE);
        if (grown != MAP_FAILED) {
            buffer->bytes = grown;
            buffer->capacity = capacity;
            return SHOAL_OK;
        }
        error = errno;
    }
    return fail_temporary(buffer, error, capacity);
}

int data_buffer_reserve(data_buffer *buffer, size_t wanted)
{
    if (wanted <= buffer->capacity)
        return SHOAL_OK;
    size_t capacity = round_to_pages(wanted);
    if (capacity == 0 || capacity > INT64_MAX)
        return shoal_fail(SHOAL_MEMORY, "%s: out of memory: %zu bytes for decoded values", buffer->path, wanted);
    if (data_buffer_is_file(buffer))
        return grow_file(buffer, capacity);
    return wanted > buffer->memory_limit ? move_to_file(buffer, capacity) : grow_memory(buffer, capacity);
}

int data_buffer_extend(data_buffer *buffer, size_t more)
{
    size_t needed, wanted;
    if (!base_add(&needed, buffer->size, more))
        return shoal_fail(SHOAL_MEMORY, "%s: out of memory: decoded values exceed 64 bits", buffer->path);
    if (needed <= buffer->capacity)
        return SHOAL_OK;
    size_t step = buffer->size < least_step ? least_step : buffer->size;
    step = step > greatest_step ? greatest_step : step;
    if (!base_add(&wanted, buffer->size, step) || wanted < needed)
        wanted = needed;
    return data_buffer_reserve(buffer, wanted);
}

void data_buffer_trim(data_buffer *buffer)
{
    size_t capacity = round_to_pages(buffer->size);
    if (!buffer->bytes || capacity == 0 || capacity == buffer->capacity)
        return;
    void *smaller = mremap(buffer->bytes, buffer->capacity, capacity, MREMAP_MAYMOVE);
    if (smaller == MAP_FAILED)
        return; /* the room stays reserved, which is not an error */
    buffer->bytes = smaller;
    buffer->capacity = capacity;
    if (data_buffer_is_file(buffer))
        (void)!ftruncate(buffer->descriptor, (off_t)capacity);
}

bool data_buffer_is_file(const data_buffer *buffer)
{
    return buffer->descriptor >= 0;
}

void data_buffer_release(data_buffer *buffer)
{
    if (buffer->bytes)
        munmap(buffer->bytes, buffer->capacity);
    if (data_buffer_is_file(buffer))
        close(buffer->descriptor);
    *buffer = (data_buffer){.descriptor = -1, .path = buffer->path, .memory_limit = buffer->memory_limit};
}
