/* .fvecs, .bvecs and .ivecs: rows as FAISS and the benchmarks of nearest neighbours keep them.
 *
 *     row = its number of values, int32, and that many float32 (f), bytes (b) or int32 (i), all little-endian
 *
 * Nothing in such a file says what it is, so the ending of its name decides, or --type fvecs; and then all of it is
 * checked: each row must say the same number, and the file must be a whole number of rows.  Rows of a plain file are
 * read by all cores in pieces that fit into the cache, so that no second copy of them is ever in memory. */
#include <string.h>

#include "base/io.h"
#include "base/memory.h"
#include "base/pool.h"
#include "base/text.h"
#include "data/data_internal.h"

enum { MARK_BYTES = 4, COLUMNS_MOST = 1000000 /* as in FAISS */, PIECE_BYTES = 256 << 10 };

typedef struct vecs_kind {
    const char *name, *ending;
    shoal_type type;
} vecs_kind;

static const vecs_kind kinds[] = {
    {"fvecs", ".fvecs", SHOAL_FLOAT32}, {"bvecs", ".bvecs", SHOAL_UINT8}, {"ivecs", ".ivecs", SHOAL_INT32}};

static const vecs_kind *kind_of_type(const char *type)
{
    for (size_t i = 0; type && i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(type, kinds[i].name) == 0)
            return &kinds[i];
    return NULL;
}

bool data_vecs_is_type(const char *type)
{
    return kind_of_type(type) != NULL;
}

/* Of a name without the ending of a compressed file. */
static const vecs_kind *kind_of_path(const char *path)
{
    size_t length = strlen(path);
    const data_codec *codec = data_codec_of_name(path, length);
    length -= codec ? strlen(codec->ending) : 0;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const size_t bytes = strlen(kinds[i].ending);
        if (length > bytes && memcmp(path + length - bytes, kinds[i].ending, bytes) == 0)
            return &kinds[i];
    }
    return NULL;
}

static bool recognise_vecs(const data_hint *hint)
{
    return hint->head ? kind_of_path(hint->path) != NULL : data_vecs_is_type(hint->options->type);
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

typedef struct vecs_file {
    const char *path;
    const vecs_kind *kind;
    data_source *source;
    uint32_t columns;           /* that the first row says */
    size_t row_bytes, in_bytes; /* without and with its number of values */
    size_t rows;
    size_t rows_per_piece;
    unsigned char *out;
    unsigned char *piece; /* of each thread */
} vecs_file;

static uint32_t read_mark(const unsigned char *at)
{
    return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

/* Copies rows without their marks. */
static int take_rows(const vecs_file *self, unsigned char *out, const unsigned char *in, size_t first, size_t count)
{
    for (size_t i = 0; i < count; i++, in += self->in_bytes, out += self->row_bytes) {
        const uint32_t mark = read_mark(in);
        if (mark != self->columns)
            return shoal_fail(SHOAL_INVALID,
                              "%s: row %zu says that it has %ld values, and row 1 has %lu: the file is damaged, or not "
                              "%s",
                              self->path, first + i + 1, (long)(int32_t)mark, (unsigned long)self->columns,
                              self->kind->ending);
        memcpy(out, in + MARK_BYTES, self->row_bytes);
    }
    return SHOAL_OK;
}

static int measure_rows(vecs_file *self, uint32_t columns)
{
    if (columns == 0 || columns > COLUMNS_MOST)
        return shoal_fail(SHOAL_INVALID,
                          "%s: row 1 says that it has %ld values, so this is not %s; if it holds raw values, give "
                          "--cols and --type",
                          self->path, (long)(int32_t)columns, self->kind->ending);
    self->columns = columns;
    self->row_bytes = columns * shoal_type_size(self->kind->type);
    self->in_bytes = self->row_bytes + MARK_BYTES;
    self->rows_per_piece = PIECE_BYTES / self->in_bytes + 1;
    return SHOAL_OK;
}

static int fail_cut(const vecs_file *self, size_t bytes)
{
    return shoal_fail(SHOAL_INVALID,
                      "%s: %zu bytes are not a whole number of rows of %lu values, as row 1 has them: the file is cut "
                      "off or damaged, or not %s",
                      self->path, bytes, (unsigned long)self->columns, self->kind->ending);
}

/* ---- of a plain file --------------------------------------------------------------------------------------------- */

static int read_piece(void *context, int64_t item, int thread)
{
    const vecs_file *self = context;
    const size_t first = (size_t)item * self->rows_per_piece, left = self->rows - first;
    const size_t count = left < self->rows_per_piece ? left : self->rows_per_piece;
    unsigned char *piece = self->piece + (size_t)thread * self->rows_per_piece * self->in_bytes;
    size_t got = 0;
    const int error = base_read_all_at(self->source->descriptor, piece, count * self->in_bytes,
                                       (int64_t)(first * self->in_bytes), &got);
    if (error)
        return shoal_fail_errno(SHOAL_SYSTEM, error, "%s: can't read", self->path);
    if (got < count * self->in_bytes)
        return shoal_fail(SHOAL_INVALID, "%s: the file shrank while it was read", self->path);
    return take_rows(self, self->out + first * self->row_bytes, piece, first, count);
}

/* By one core after another until the first bad row, so that the sentence is the same each time. */
static int read_in_order(vecs_file *self, int64_t pieces)
{
    int status = SHOAL_OK;
    for (int64_t i = 0; i < pieces && status == SHOAL_OK; i++)
        status = read_piece(self, i, 0);
    return status;
}

static int read_plain(vecs_file *self, shoal_data *data)
{
    const int64_t pieces = (int64_t)((self->rows + self->rows_per_piece - 1) / self->rows_per_piece);
    const int threads = pieces < base_cores() ? (int)pieces : base_cores();
    base_pool *pool = NULL;
    int status = data_buffer_reserve(&data->buffer, self->rows * self->row_bytes);
    if (status == SHOAL_OK)
        status =
            base_alloc_unset(&self->piece, (size_t)threads * self->rows_per_piece, self->in_bytes, "pieces of a file");
    if (status < 0)
        goto done;
    self->out = data->buffer.bytes;
    data->buffer.size = self->rows * self->row_bytes;
    if (threads > 1)
        status = base_pool_new(&pool, threads);
    if (status == SHOAL_OK)
        status = pool ? base_pool_each(pool, pieces, read_piece, self) : read_in_order(self, pieces);
    if (status == SHOAL_INVALID && pool)
        status = read_in_order(self, pieces);
done:
    base_pool_free(&pool);
    base_free(&self->piece);
    return status;
}

/* ---- of a stream ------------------------------------------------------------------------------------------------- */

static int read_stream(vecs_file *self, shoal_data *data)
{
    const size_t piece_bytes = self->rows_per_piece * self->in_bytes;
    size_t got = piece_bytes;
    int status = base_alloc_unset(&self->piece, piece_bytes, 1, "a piece of a file");
    while (status == SHOAL_OK && got == piece_bytes) {
        status = data_source_read(&got, self->source, self->piece, piece_bytes);
        const size_t count = got / self->in_bytes;
        if (status == SHOAL_OK && got % self->in_bytes != 0)
            status = fail_cut(self, self->rows * self->in_bytes + got);
        if (status == SHOAL_OK)
            status = data_buffer_extend(&data->buffer, count * self->row_bytes);
        if (status == SHOAL_OK)
            status = take_rows(self, data->buffer.bytes + data->buffer.size, self->piece, self->rows, count);
        data->buffer.size += status == SHOAL_OK ? count * self->row_bytes : 0;
        self->rows += count;
    }
    base_free(&self->piece);
    return status;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static int check_said_shape(const shoal_data *data, const shoal_data_options *options)
{
    if ((options->rows && options->rows != data->rows) || (options->columns && options->columns != data->columns))
        return shoal_fail(SHOAL_USAGE, "%s: the file has %lld rows of %lld columns, which --rows and --cols deny",
                          data->path, (long long)data->rows, (long long)data->columns);
    return SHOAL_OK;
}

static int open_vecs(shoal_data *data, data_source *source, const shoal_data_options *options)
{
    const vecs_kind *said = kind_of_type(options->type);
    vecs_file self = {.path = source->path, .source = source, .kind = said ? said : kind_of_path(source->path)};
    if (!self.kind)
        SHOAL_BUG("a file of vectors without its kind");
    if (source->head_size < MARK_BYTES)
        return shoal_fail(SHOAL_INVALID, "%s: the file is too short for a row of %s", self.path, self.kind->ending);
    int status = measure_rows(&self, read_mark(source->head));
    if (status < 0)
        return status;
    if (source->mappable) {
        if (source->file_size % self.in_bytes != 0)
            return fail_cut(&self, source->file_size);
        self.rows = source->file_size / self.in_bytes;
    }
    status = source->mappable ? read_plain(&self, data) : read_stream(&self, data);
    if (status == SHOAL_OK)
        status = data_set_shape(data, self.rows, self.columns, self.kind->type);
    if (status == SHOAL_OK)
        status = check_said_shape(data, options);
    const data_layout layout = {.swapped = __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__ && self.kind->type != SHOAL_UINT8};
    if (status == SHOAL_OK)
        status = data_decode_buffer(data, &layout);
    if (status == SHOAL_OK)
        status = base_format(&data->detail, "%s%s, %s", self.kind->ending, data_source_detail(source), data_kept(data));
    return status;
}

const struct data_format data_vecs = {
    .name = "vecs", .takes_shape = true, .recognise = recognise_vecs, .open = open_vecs};
