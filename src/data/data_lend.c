/* Lending rows to other processes.  See data_lend.h.
 *
 * They lie in an unnamed file, in memory or, if too large for it, on disk; both sides use it as the data set's buffer,
 * so that to everything else they are decoded rows. */
#include "data/data_lend.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/io.h"
#include "base/memory.h"
#include "data_internal.h"
#include "data/table/data_words.h"

static size_t values_bytes(const shoal_data *data)
{
    return (size_t)data->rows * data_row_bytes(data);
}

/* ---- lending ----------------------------------------------------------------------------------------------------- */

/* Releases the whole pages of this range, which will not be read again. */
static void drop_pages(unsigned char *start, unsigned char *end)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = ((uintptr_t)start + page - 1) / page * page,
              last = (uintptr_t)end / page * page;
    if (last > first)
        (void)madvise((void *)first, last - first, MADV_DONTNEED);
}

/* Copies the rows; pages of the data set's own buffer are released as they are copied, so that the rows are never in
 * memory twice. */
static int copy_values(int file, shoal_data *data)
{
    const size_t size = values_bytes(data), step = (size_t)16 << 20;
    const bool own = data->values == data->buffer.bytes;
    for (size_t done = 0; done < size;) {
        size_t next = size - done < step ? size - done : step;
        int error = base_write_all_at(file, data->values + done, next, (off_t)done);
        if (error)
            return error;
        if (own)
            drop_pages(data->buffer.bytes + done, data->buffer.bytes + done + next);
        done += next;
    }
    return 0;
}

/* The file's content becomes the data set's buffer and its values; takes the descriptor. */
static int adopt(shoal_data *data, int file)
{
    const size_t size = values_bytes(data);
    void *bytes = mmap(NULL, size, PROT_READ, MAP_SHARED, file, 0);
    if (bytes == MAP_FAILED) {
        int error = errno;
        close(file);
        return shoal_fail_errno(SHOAL_SYSTEM, error, "%s: can't map %zu bytes of rows", data->path, size);
    }
    data_unmap(data);
    data_buffer_release(&data->buffer);
    data->buffer.bytes = bytes;
    data->buffer.size = data->buffer.capacity = size;
    data->buffer.descriptor = file;
    data->buffer.shared = true;
    data->values = bytes;
    return SHOAL_OK;
}

int data_lend(int *descriptor, shoal_data *data)
{
    if (!data->values)
        SHOAL_BUG("rows that are not there were to be lent");
    if (data->values == data->buffer.bytes && data_buffer_is_file(&data->buffer)) {
        data->buffer.shared = true;
        *descriptor = data->buffer.descriptor;
        return SHOAL_OK;
    }
    int file = memfd_create("shoal-rows", MFD_CLOEXEC);
    int error = file < 0 ? errno : copy_values(file, data);
    if (error) {
        if (file >= 0)
            close(file);
        if (error == EFAULT && shoal_data_check(data) < 0)
            return SHOAL_INVALID;
        return shoal_fail_errno(SHOAL_SYSTEM, error, "%s: can't put %zu bytes of rows where other processes see them",
                                data->path, values_bytes(data));
    }
    int status = shoal_data_check(data);
    if (status < 0) {
        close(file);
        return status;
    }
    *descriptor = file;
    return adopt(data, file);
}

/* ---- what is known of them --------------------------------------------------------------------------------------- */

static void write_shape(base_writer *out, const shoal_data *data)
{
    base_write_u32(out, (uint32_t)data->rank);
    for (int i = 0; i < data->rank; i++)
        base_write_i64(out, data->shape[i]);
}

static void write_names(base_writer *out, const shoal_data *data)
{
    base_write_u8(out, data->names != NULL);
    for (int64_t i = 0; data->names && i < data->columns; i++)
        base_write_text(out, data->names + data->name_offsets[i]);
}

static void write_facts(base_writer *out, const shoal_data *data)
{
    base_write_u8(out, data->has_header);
    base_write_i64(out, data->target);
    base_write_i64(out, data->missing);
    base_write_i64(out, data->source_rows);
    base_write_i64(out, data->skipped);
    base_write_u32(out, (uint32_t)data->words_count);
    for (int64_t i = 0; i < data->words_count; i++)
        base_write_text(out, data->words[i]);
    base_write_u8(out, data->means != NULL);
    if (data->means)
        base_write_bytes(out, data->means, (size_t)data->columns * sizeof *data->means);
}

int data_lent_describe(void **out, size_t *size, const shoal_data *data)
{
    base_writer note = {0};
    base_write_text(&note, data->format->name);
    base_write_text(&note, data->path);
    base_write_text(&note, data->detail ? data->detail : "");
    base_write_i64(&note, data->rows);
    base_write_i64(&note, data->columns);
    base_write_u32(&note, (uint32_t)data->type);
    write_shape(&note, data);
    write_names(&note, data);
    write_facts(&note, data);
    return base_writer_take(&note, out, size);
}

/* A text of any length, for the caller; NULL when it is not there. */
static char *read_text(int *status, base_reader *in)
{
    char *text = NULL;
    size_t length = base_read_u32(in);
    const char *from = base_read_bytes(in, length);
    if (*status == SHOAL_OK && from)
        *status = base_copy_text_n(&text, from, length);
    return text;
}

static int read_shape(shoal_data *data, base_reader *in)
{
    uint64_t shape[DATA_NPY_RANK_MOST] = {0}, columns = 1;
    const uint32_t rank = base_read_u32(in);
    for (uint32_t i = 0; i < rank && i < DATA_NPY_RANK_MOST; i++)
        shape[i] = base_read_u64(in);
    if (in->bad || rank > DATA_NPY_RANK_MOST || !data_fold_shape(&columns, shape, (int)rank) ||
        (rank > 0 && columns != (uint64_t)data->columns && columns + 1 != (uint64_t)data->columns))
        return shoal_fail(SHOAL_BROKEN, "the description of lent rows is malformed");
    data_note_shape(data, shape, (int)rank);
    return SHOAL_OK;
}

static int read_names(shoal_data *data, base_reader *in)
{
    size_t room = in->left + 1, at = 0; /* a text takes more with its length than with its NUL */
    if (!base_read_u8(in))
        return SHOAL_OK;
    int status = base_alloc(&data->names, room, 1, "names of columns");
    if (status == SHOAL_OK)
        status = base_alloc(&data->name_offsets, (size_t)data->columns, sizeof *data->name_offsets, "names of columns");
    for (int64_t i = 0; status == SHOAL_OK && i < data->columns && !in->bad; i++) {
        size_t length = base_read_u32(in);
        const void *from = base_read_bytes(in, length);
        if (from)
            memcpy(data->names + at, from, length);
        data->name_offsets[i] = at;
        at += from ? length + 1 : 0;
    }
    return status;
}

static int read_facts(shoal_data *data, base_reader *in)
{
    int status = SHOAL_OK;
    data->has_header = base_read_u8(in);
    data->target = base_read_i64(in);
    data->missing = base_read_i64(in);
    data->source_rows = base_read_i64(in);
    data->skipped = base_read_i64(in);
    const uint32_t count = base_read_u32(in);
    if (in->bad || data->target < -1 || data->target >= data->columns || count > DATA_WORDS_MOST)
        return shoal_fail(SHOAL_BROKEN, "the description of lent rows is malformed");
    if (count > 0)
        status = base_alloc(&data->words, count, sizeof *data->words, "words");
    for (data->words_count = 0; status == SHOAL_OK && data->words_count < count && !in->bad; data->words_count++)
        data->words[data->words_count] = read_text(&status, in);
    if (status < 0 || !base_read_u8(in))
        return status;
    const void *means = base_read_bytes(in, (size_t)data->columns * sizeof *data->means);
    if (means)
        status = base_alloc(&data->means, (size_t)data->columns, sizeof *data->means, "means of columns");
    if (means && status == SHOAL_OK)
        memcpy(data->means, means, (size_t)data->columns * sizeof *data->means);
    return status;
}

static int read_note(shoal_data *data, base_reader *in)
{
    int status = SHOAL_OK;
    char *format = read_text(&status, in), *path = read_text(&status, in);
    data->detail = read_text(&status, in);
    int64_t rows = base_read_i64(in), columns = base_read_i64(in);
    uint32_t type = base_read_u32(in);
    if (status == SHOAL_OK && (in->bad || rows < 1 || columns < 1 || type >= SHOAL_TYPES))
        status = shoal_fail(SHOAL_BROKEN, "the description of lent rows is malformed");
    if (status == SHOAL_OK)
        status = data_rename(data, path);
    if (status == SHOAL_OK)
        status = data_set_shape(data, (uint64_t)rows, (uint64_t)columns, (shoal_type)type);
    if (status == SHOAL_OK) {
        data->format = data_format_named(format);
        status = read_shape(data, in);
    }
    if (status == SHOAL_OK)
        status = read_names(data, in);
    if (status == SHOAL_OK)
        status = read_facts(data, in);
    if (status == SHOAL_OK && !base_reader_done(in))
        status = shoal_fail(SHOAL_BROKEN, "the description of lent rows is malformed");
    base_free(&format);
    base_free(&path);
    return status;
}

/* ---- borrowing --------------------------------------------------------------------------------------------------- */

static int open_lent(shoal_data *data, const char *path)
{
    struct stat about;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return shoal_fail_errno(errno == EACCES || errno == EPERM ? SHOAL_DENIED : SHOAL_SYSTEM, errno,
                                "%s: can't see the rows that another process has at %s", data->path, path);
    if (fstat(file, &about) < 0 || (uint64_t)about.st_size < values_bytes(data)) {
        close(file);
        return shoal_fail(SHOAL_BROKEN, "%s: %s are not the rows that were lent", data->path, path);
    }
    return adopt(data, file);
}

int data_borrow(shoal_data **out, const void *note, size_t size, const char *path)
{
    shoal_data *data = NULL;
    base_reader in = base_reader_of(note, size);
    *out = NULL;
    int status = data_new(&data, "lent rows", 1);
    if (status == SHOAL_OK)
        status = read_note(data, &in);
    if (status == SHOAL_OK)
        status = open_lent(data, path);
    if (status < 0)
        shoal_data_free(&data);
    *out = data;
    return status;
}
