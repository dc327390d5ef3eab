/* Writing arrays and data sets.  The ending of the name chooses the encoding, one row of the table below;
 * rows pass through in blocks, so a data set larger than memory is copied in little.  See shoal/data.h. */
#include "data_internal.h"

#include <fenv.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/pool.h"

enum { BLOCK_BYTES = 1 << 20, TEXT_BYTES = 64 << 10, NPY_ALIGNMENT = 64 };

typedef struct writer {
    const struct encoding *encoding;
    data_sink sink;
    shoal_data *data;
    const char *path;
    void *scratch; /* room for a block of rows */
    char *text;    /* of TEXT_BYTES; NULL unless the encoding is text */
    size_t text_used;
} writer;

/* How rows become bytes of a file. */
struct encoding {
    const char *ending;
    bool may_gzip;
    char delimiter; /* text only */
    /* Writes what comes before the rows.  Fails before anything is written if the data do not fit. */
    int (*begin)(writer *writer);
    int (*add_rows)(writer *writer, const void *rows, int64_t count);
};

/* ---- npy --------------------------------------------------------------------------------------------------------- */

size_t data_npy_header_write(char text[DATA_NPY_HEADER_ROOM], shoal_type type, int rank, const int64_t *shape)
{
    enum { ROOM = DATA_NPY_HEADER_ROOM, PREFIX = 10 };
    static const char prefix[PREFIX] = "\x93NUMPY\x01";
    memcpy(text, prefix, PREFIX);
    size_t used = PREFIX;
    used += (size_t)snprintf(text + used, ROOM - used, "{'descr': '%s', 'fortran_order': False, 'shape': (",
                             data_type_descr(type));
    for (int i = 0; i < rank; i++)
        used += (size_t)snprintf(text + used, ROOM - used, "%lld,%s", (long long)shape[i], i + 1 < rank ? " " : "");
    if (rank > 1)
        used--; /* only one dimension needs its comma */
    used += (size_t)snprintf(text + used, ROOM - used, "), }");
    size_t total = (used + 1 + NPY_ALIGNMENT - 1) / NPY_ALIGNMENT * NPY_ALIGNMENT;
    memset(text + used, ' ', total - used - 1);
    text[total - 1] = '\n';
    text[8] = (char)((total - PREFIX) & 0xff);
    text[9] = (char)((total - PREFIX) >> 8);
    return total;
}

static int write_npy_header(data_sink *sink, shoal_type type, int rank, const int64_t *shape)
{
    char text[DATA_NPY_HEADER_ROOM];
    return data_sink_write(sink, text, data_npy_header_write(text, type, rank, shape));
}

static int count_bytes(size_t *bytes, const char *path, shoal_type type, int rank, const int64_t *shape)
{
    if (rank < 0 || rank > 64 || (unsigned)type >= SHOAL_TYPES)
        return shoal_fail(SHOAL_USAGE, "%s: an npy array has a type and up to 64 dimensions", path);
    *bytes = shoal_type_size(type);
    for (int i = 0; i < rank; i++)
        if (shape[i] < 0 || !base_multiply(bytes, *bytes, (size_t)shape[i]))
            return shoal_fail(SHOAL_USAGE, "%s: dimension %d of the array, %lld, is negative or too large", path, i + 1,
                              (long long)shape[i]);
    return SHOAL_OK;
}

int shoal_npy_write(const char *path, const void *values, shoal_type type, int rank, const int64_t *shape)
{
    data_sink sink = {0};
    size_t bytes;
    int status = count_bytes(&bytes, path, type, rank, shape);
    if (status == SHOAL_OK)
        status = data_sink_open(&sink, path, false);
    if (status == SHOAL_OK)
        status = write_npy_header(&sink, type, rank, shape);
    if (status == SHOAL_OK)
        status = data_sink_write(&sink, values, bytes);
    if (status == SHOAL_OK)
        status = data_sink_commit(&sink);
    data_sink_close(&sink);
    return status;
}

static int begin_npy(writer *writer)
{
    int64_t shape[2] = {writer->data->rows, writer->data->columns};
    return write_npy_header(&writer->sink, writer->data->type, 2, shape);
}

static int add_rows_plain(writer *writer, const void *rows, int64_t count)
{
    return data_sink_write(&writer->sink, rows, (size_t)count * data_row_bytes(writer->data));
}

/* ---- raw --------------------------------------------------------------------------------------------------------- */

static int begin_raw(writer *writer)
{
    (void)writer;
    return SHOAL_OK;
}

/* ---- IDX --------------------------------------------------------------------------------------------------------- */

static unsigned char idx_code(shoal_type type)
{
    switch (type) {
    case SHOAL_BOOL: /* IDX has no bool; 0 and 1 are bytes */
    case SHOAL_UINT8: return 0x08;
    case SHOAL_INT8: return 0x09;
    case SHOAL_INT16: return 0x0B;
    case SHOAL_INT32: return 0x0C;
    case SHOAL_FLOAT32: return 0x0D;
    case SHOAL_FLOAT64: return 0x0E;
    default: return 0;
    }
}

static int begin_idx(writer *writer)
{
    const shoal_data *data = writer->data;
    if (!idx_code(data->type))
        return shoal_fail(SHOAL_USAGE, "%s: IDX can't hold %s; .npy can", writer->path, shoal_type_name(data->type));
    if (data->rows > UINT32_MAX || data->columns > UINT32_MAX)
        return shoal_fail(SHOAL_USAGE, "%s: IDX counts rows and columns in 32 bits; .npy has more", writer->path);
    bool flat = data->columns == 1;
    unsigned char header[12] = {0, 0, idx_code(data->type), flat ? 1 : 2};
    for (int i = 0; i < 4; i++) {
        header[4 + i] = (unsigned char)(data->rows >> (24 - 8 * i));
        header[8 + i] = (unsigned char)(data->columns >> (24 - 8 * i));
    }
    return data_sink_write(&writer->sink, header, flat ? 8 : 12);
}

static int add_rows_idx(writer *writer, const void *rows, int64_t count)
{
    size_t size = shoal_type_size(writer->data->type), values = (size_t)count * (size_t)writer->data->columns;
    if (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ && size > 1) {
        data_swap_bytes(writer->scratch, rows, values, size);
        rows = writer->scratch;
    }
    return data_sink_write(&writer->sink, rows, values * size);
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

static int flush_text(writer *writer)
{
    int status = data_sink_write(&writer->sink, writer->text, writer->text_used);
    writer->text_used = 0;
    return status;
}

static int add_char(writer *writer, char c)
{
    writer->text[writer->text_used++] = c;
    return writer->text_used < TEXT_BYTES ? SHOAL_OK : flush_text(writer);
}

/* A name in quotes where it could be taken for something else without them. */
static int add_name(writer *writer, const char *name)
{
    bool quoted = *name == '\0' || *name == '#' || strpbrk(name, " \t,;\"\r\n");
    int status = quoted ? add_char(writer, '"') : SHOAL_OK;
    for (; status == SHOAL_OK && *name; name++) {
        if (*name == '"')
            status = add_char(writer, '"');
        if (status == SHOAL_OK)
            status = add_char(writer, *name);
    }
    return status == SHOAL_OK && quoted ? add_char(writer, '"') : status;
}

/* Whether the names would be taken for a header again: a number among them would make them a row. */
static bool names_make_a_header(const shoal_data *data)
{
    bool any_text = false;
    for (int64_t i = 0; data->names && i < data->columns; i++) {
        const char *name = shoal_data_column_name(data, i);
        if (data_is_number(name, strlen(name)))
            return false;
        any_text |= *name != '\0';
    }
    return any_text;
}

static int begin_text(writer *writer)
{
    shoal_data *data = writer->data;
    int status = base_alloc(&writer->text, TEXT_BYTES, 1, "text output");
    if (status < 0 || !names_make_a_header(data))
        return status;
    for (int64_t i = 0; status == SHOAL_OK && i < data->columns; i++) {
        status = add_name(writer, shoal_data_column_name(data, i));
        if (status == SHOAL_OK)
            status = add_char(writer, i + 1 < data->columns ? writer->encoding->delimiter : '\n');
    }
    return status < 0 ? status : flush_text(writer);
}

static int add_rows_text(writer *writer, const void *rows, int64_t count)
{
    int64_t columns = writer->data->columns, values = count * columns;
    int status = SHOAL_OK;
    for (int64_t i = 0; status == SHOAL_OK && i < values; i++) {
        if (writer->text_used + DATA_NUMBER_CHARS > TEXT_BYTES)
            if ((status = flush_text(writer)) < 0)
                break;
        writer->text_used += data_number_print(writer->text + writer->text_used, rows, writer->data->type, i);
        status = add_char(writer, (i + 1) % columns == 0 ? '\n' : writer->encoding->delimiter);
    }
    return status < 0 ? status : flush_text(writer);
}

/* ---- copying a data set ------------------------------------------------------------------------------------------ */

static const struct encoding encodings[] = {
    {".npy", false, 0, begin_npy, add_rows_plain},   {".csv", true, ',', begin_text, add_rows_text},
    {".tsv", true, '\t', begin_text, add_rows_text}, {".txt", true, ' ', begin_text, add_rows_text},
    {".idx", true, 0, begin_idx, add_rows_idx},      {".raw", false, 0, begin_raw, add_rows_plain},
    {".bin", false, 0, begin_raw, add_rows_plain},
};

static bool ends_in(const char *text, size_t length, const char *ending)
{
    size_t wanted = strlen(ending);
    return length >= wanted && memcmp(text + length - wanted, ending, wanted) == 0;
}

/* By the ending of the path, or by a format such as "csv.gz", which is an ending without its point. */
static int find_encoding(const struct encoding **out, bool *gzip, const char *path, const char *format)
{
    const char *name = format ? format : path;
    size_t length = strlen(name);
    *gzip = ends_in(name, length, ".gz");
    length -= *gzip ? 3 : 0;
    for (size_t i = 0; i < sizeof encodings / sizeof *encodings; i++) {
        const char *ending = encodings[i].ending;
        bool fits =
            format ? length == strlen(ending + 1) && ends_in(name, length, ending + 1) : ends_in(name, length, ending);
        if (fits && (encodings[i].may_gzip || !*gzip)) {
            *out = &encodings[i];
            return SHOAL_OK;
        }
    }
    if (format)
        return shoal_fail(SHOAL_USAGE,
                          "%s: there is no format '%s', only npy, raw, bin, csv, tsv, txt, idx, csv.gz, tsv.gz, "
                          "txt.gz and idx.gz",
                          path, format);
    return shoal_fail(SHOAL_USAGE,
                      "%s: the name's ending chooses the format: .npy .raw .bin .csv .tsv .txt .idx, the last four "
                      "also with .gz",
                      path);
}

static int copy_rows(writer *writer)
{
    shoal_data *data = writer->data;
    size_t row_bytes = data_row_bytes(data);
    int64_t block = row_bytes < BLOCK_BYTES ? (int64_t)(BLOCK_BYTES / row_bytes) : 1;
    int status = base_alloc(&writer->scratch, (size_t)block, row_bytes, "a block of rows");
    for (int64_t first = 0; status == SHOAL_OK && first < data->rows; first += block) {
        int64_t count = data->rows - first < block ? data->rows - first : block;
        const void *rows;
        status = shoal_data_read(&rows, data, first, count, writer->scratch);
        if (status == SHOAL_OK)
            status = writer->encoding->add_rows(writer, rows, count);
    }
    return status == SHOAL_OK ? shoal_data_check(data) : status;
}

int data_write_check(const char *path, const char *format)
{
    const struct encoding *encoding;
    bool gzip;
    return find_encoding(&encoding, &gzip, path, format);
}

int shoal_data_write(shoal_data *data, const char *path)
{
    return data_write_as(data, path, NULL);
}

int data_write_as(shoal_data *data, const char *path, const char *format)
{
    writer writer = {.data = data, .path = path};
    bool gzip;
    fenv_t callers; /* digits are chosen by rounding to nearest, whatever the caller does */
    fegetenv(&callers);
    base_default_arithmetic();
    int status = find_encoding(&writer.encoding, &gzip, path, format);
    if (status == SHOAL_OK)
        status = data_sink_open(&writer.sink, path, gzip);
    if (status == SHOAL_OK)
        status = writer.encoding->begin(&writer);
    if (status == SHOAL_OK)
        status = copy_rows(&writer);
    if (status == SHOAL_OK)
        status = data_sink_commit(&writer.sink);
    data_sink_close(&writer.sink);
    fesetenv(&callers);
    base_free(&writer.text);
    base_free(&writer.scratch);
    return status;
}
