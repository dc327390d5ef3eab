/* Writing arrays and data sets.  The ending of the name chooses the encoding, one row of the table below;
 * rows pass through in blocks, so a data set larger than memory is copied in little.  See shoal/data.h. */
#include "data_internal.h"

#include <fenv.h>
#include <stdio.h>
#include <string.h>

#include "array.h"
#include "base/memory.h"
#include "base/pool.h"
#include "base/text.h"

enum { BLOCK_BYTES = 1 << 20, TEXT_BYTES = 64 << 10, NPY_ALIGNMENT = 64, TEXT_AS_IT_IS = -1 };

struct data_writer {
    const struct encoding *encoding;
    data_sink sink;
    const char *path;
    shoal_type type;
    int rank; /* as .npy and IDX have it */
    const int64_t *shape;
    int64_t rows, columns;   /* the same with all dimensions after the first as columns */
    const shoal_data *names; /* which has the names of the columns; NULL for none */
    data_codes words;
    size_t letters; /* of the longest word, in .npy */
    int64_t block;  /* rows that are written at once */
    void *scratch;  /* room for as many */
    char *text;     /* of TEXT_BYTES; NULL unless the encoding is text */
    size_t text_used;
};

/* How rows become bytes of a file. */
struct encoding {
    const char *ending;
    bool may_compress;
    char delimiter; /* text only */
    bool has_words; /* it can hold words as well as numbers */
    /* Writes what comes before the rows.  Fails before anything is written if the data do not fit. */
    int (*begin)(data_writer *writer);
    int (*add_rows)(data_writer *writer, const void *rows, int64_t count);
};

/* ---- npy --------------------------------------------------------------------------------------------------------- */

static size_t print_npy_header(char text[DATA_NPY_HEADER_ROOM], const char *descr, int rank, const int64_t *shape)
{
    enum { ROOM = DATA_NPY_HEADER_ROOM, PREFIX = 10 };
    static const char prefix[PREFIX] = "\x93NUMPY\x01";
    memcpy(text, prefix, PREFIX);
    size_t used = PREFIX;
    used += (size_t)snprintf(text + used, ROOM - used, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
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

size_t data_npy_header_write(char text[DATA_NPY_HEADER_ROOM], shoal_type type, int rank, const int64_t *shape)
{
    return print_npy_header(text, data_type_descr(type), rank, shape);
}

static int count_bytes(size_t *bytes, const char *path, shoal_type type, int rank, const int64_t *shape)
{
    if (rank < 0 || rank > DATA_NPY_RANK_MOST || (unsigned)type >= SHOAL_TYPES)
        return shoal_fail(SHOAL_USAGE, "%s: an npy array has a type and up to 64 dimensions", path);
    *bytes = shoal_type_size(type);
    for (int i = 0; i < rank; i++)
        if (shape[i] < 0 || !base_multiply(bytes, *bytes, (size_t)shape[i]))
            return shoal_fail(SHOAL_USAGE, "%s: dimension %d of the array, %lld, is negative or too large", path, i + 1,
                              (long long)shape[i]);
    return SHOAL_OK;
}

/* Counts the letters of the longest word; numpy has no words of none. */
static size_t count_letters(const data_codes *words)
{
    size_t most = 1;
    for (int64_t i = 0; i < words->count; i++) {
        size_t letters = 0;
        uint32_t letter;
        for (const char *at = words->word[i]; *at; letters++)
            at += base_text_letter(&letter, at);
        most = letters > most ? letters : most;
    }
    return most;
}

static int begin_npy(data_writer *writer)
{
    char text[DATA_NPY_HEADER_ROOM], descr[32];
    snprintf(descr, sizeof descr, "%s", data_type_descr(writer->type));
    if (writer->words.word) {
        writer->letters = count_letters(&writer->words);
        snprintf(descr, sizeof descr, "%cU%zu", __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? '<' : '>', writer->letters);
    }
    return data_sink_write(&writer->sink, text, print_npy_header(text, descr, writer->rank, writer->shape));
}

/* The word that a value is the code of. */
static int find_word(const char **out, const data_writer *writer, const void *values, int64_t index)
{
    double code;
    const char *at = (const char *)values + (size_t)index * shoal_type_size(writer->type);
    shoal_convert_float64(&code, at, writer->type, 1);
    if (!(code >= 0) || code >= (double)writer->words.count || code != (double)(int64_t)code)
        return shoal_fail(SHOAL_INVALID, "%s: %g is not the number of one of the %lld classes", writer->path, code,
                          (long long)writer->words.count);
    *out = writer->words.word[(int64_t)code];
    return SHOAL_OK;
}

/* numpy has words as UCS-4 of one length, with zeros at their ends. */
static int add_word_npy(data_writer *writer, const char *word)
{
    size_t used = 0;
    int status = SHOAL_OK;
    for (; used < writer->letters && status == SHOAL_OK; used++) {
        uint32_t letter = 0;
        if (*word)
            word += base_text_letter(&letter, word);
        status = data_sink_write(&writer->sink, &letter, sizeof letter);
    }
    return status;
}

static int add_rows_plain(data_writer *writer, const void *rows, int64_t count)
{
    int64_t values = count * writer->columns;
    const char *word = "";
    int status = SHOAL_OK;
    if (!writer->words.word)
        return data_sink_write(&writer->sink, rows, (size_t)values * shoal_type_size(writer->type));
    for (int64_t i = 0; i < values && status == SHOAL_OK; i++) {
        status = find_word(&word, writer, rows, i);
        if (status == SHOAL_OK)
            status = add_word_npy(writer, word);
    }
    return status;
}

/* ---- raw --------------------------------------------------------------------------------------------------------- */

static int begin_raw(data_writer *writer)
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

static int begin_idx(data_writer *writer)
{
    enum { RANK_MOST = 255 };
    const int rank = writer->columns == 1 ? 1 : writer->rank; /* labels are a row of values, as MNIST has them */
    const int64_t one = writer->rows, *shape = rank == 1 ? &one : writer->shape;
    unsigned char header[4 + 4 * RANK_MOST] = {0, 0, idx_code(writer->type), (unsigned char)rank};
    if (!idx_code(writer->type))
        return shoal_fail(SHOAL_USAGE, "%s: IDX can't hold %s; .npy can", writer->path, shoal_type_name(writer->type));
    for (int i = 0; i < rank; i++) {
        if (shape[i] > UINT32_MAX)
            return shoal_fail(SHOAL_USAGE, "%s: IDX counts rows and columns in 32 bits; .npy has more", writer->path);
        for (int byte = 0; byte < 4; byte++)
            header[4 + 4 * i + byte] = (unsigned char)(shape[i] >> (24 - 8 * byte));
    }
    return data_sink_write(&writer->sink, header, (size_t)(4 + 4 * rank));
}

static int add_rows_idx(data_writer *writer, const void *rows, int64_t count)
{
    size_t size = shoal_type_size(writer->type), values = (size_t)count * (size_t)writer->columns;
    if (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ && size > 1) {
        data_swap_bytes(writer->scratch, rows, values, size);
        rows = writer->scratch;
    }
    return data_sink_write(&writer->sink, rows, values * size);
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

static int flush_text(data_writer *writer)
{
    int status = data_sink_write(&writer->sink, writer->text, writer->text_used);
    writer->text_used = 0;
    return status;
}

static int add_char(data_writer *writer, char c)
{
    writer->text[writer->text_used++] = c;
    return writer->text_used < TEXT_BYTES ? SHOAL_OK : flush_text(writer);
}

bool data_write_quotes(const char *word)
{
    return *word == '\0' || *word == '#' || strpbrk(word, " \t,;\"\r\n");
}

static int add_name(data_writer *writer, const char *name)
{
    bool quoted = data_write_quotes(name);
    int status = quoted ? add_char(writer, '"') : SHOAL_OK;
    for (; status == SHOAL_OK && *name; name++) {
        if (*name == '"')
            status = add_char(writer, '"');
        if (status == SHOAL_OK)
            status = add_char(writer, *name);
    }
    return status == SHOAL_OK && quoted ? add_char(writer, '"') : status;
}

/* Names that would be taken for a header again: a number among them would make them a row. */
bool data_write_has_header(const shoal_data *data)
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

static int begin_text(data_writer *writer)
{
    const shoal_data *data = writer->names;
    int status = base_alloc(&writer->text, TEXT_BYTES, 1, "text output");
    if (status < 0 || !data || !data_write_has_header(data))
        return status;
    for (int64_t i = 0; status == SHOAL_OK && i < data->columns; i++) {
        status = add_name(writer, shoal_data_column_name(data, i));
        if (status == SHOAL_OK)
            status = add_char(writer, i + 1 < data->columns ? writer->encoding->delimiter : '\n');
    }
    return status < 0 ? status : flush_text(writer);
}

static int add_value_text(data_writer *writer, const void *rows, int64_t index)
{
    const char *word = "";
    int status = SHOAL_OK;
    if (writer->words.word) {
        status = find_word(&word, writer, rows, index);
        return status < 0 ? status : add_name(writer, word);
    }
    if (writer->text_used + DATA_NUMBER_CHARS > TEXT_BYTES)
        status = flush_text(writer);
    if (status == SHOAL_OK)
        writer->text_used += data_number_print(writer->text + writer->text_used, rows, writer->type, index);
    return status;
}

static int add_rows_text(data_writer *writer, const void *rows, int64_t count)
{
    int64_t columns = writer->columns, values = count * columns;
    int status = SHOAL_OK;
    for (int64_t i = 0; status == SHOAL_OK && i < values; i++) {
        status = add_value_text(writer, rows, i);
        if (status == SHOAL_OK)
            status = add_char(writer, (i + 1) % columns == 0 ? '\n' : writer->encoding->delimiter);
    }
    return status < 0 ? status : flush_text(writer);
}

/* ---- formats ----------------------------------------------------------------------------------------------------- */

static const struct encoding encodings[] = {
    {".npy", false, 0, true, begin_npy, add_rows_plain},   {".csv", true, ',', true, begin_text, add_rows_text},
    {".tsv", true, '\t', true, begin_text, add_rows_text}, {".txt", true, ' ', true, begin_text, add_rows_text},
    {".idx", true, 0, false, begin_idx, add_rows_idx},     {".raw", false, 0, false, begin_raw, add_rows_plain},
    {".bin", false, 0, false, begin_raw, add_rows_plain},
};

static bool ends_in(const char *text, size_t length, const char *ending)
{
    size_t wanted = strlen(ending);
    return length >= wanted && memcmp(text + length - wanted, ending, wanted) == 0;
}

/* Whether a name is that of the encoding: an ending of a path, or a format such as "csv", which has no point. */
static bool is_named(const struct encoding *encoding, const char *name, size_t length, bool format)
{
    if (format)
        return length == strlen(encoding->ending + 1) && ends_in(name, length, encoding->ending + 1);
    return length > strlen(encoding->ending) && ends_in(name, length, encoding->ending);
}

/* By the ending of the path, or by a format such as "csv.gz".  Standard output has text, devices and pipes .npy. */
static int find_encoding(const struct encoding **out, const data_codec **codec, const char *path, const char *format)
{
    const char *name = format                         ? format
                       : strcmp(path, "-") == 0       ? "-.csv"
                       : base_output_is_special(path) ? "-.npy"
                                                      : path;
    size_t length = strlen(name);
    *codec = data_codec_of_name(name, length);
    length -= *codec ? strlen((*codec)->ending) : 0;
    for (size_t i = 0; i < sizeof encodings / sizeof *encodings; i++) {
        if (is_named(&encodings[i], name, length, format) && (encodings[i].may_compress || !*codec)) {
            *out = &encodings[i];
            return *codec ? data_codec_check(*codec, path, true) : SHOAL_OK;
        }
    }
    if (format)
        return shoal_fail(
            SHOAL_USAGE,
            "%s: unknown format '%s'; formats are npy, raw, bin, csv, tsv, txt and idx, the last four also "
            "with .gz, .xz, .bz2 or .zst as in csv.gz",
            path, format);
    return shoal_fail(SHOAL_USAGE, "%s: the name must end in " DATA_ARRAY_ENDINGS, path);
}

int data_write_check(const char *path, const char *format)
{
    const struct encoding *encoding;
    const data_codec *codec;
    return find_encoding(&encoding, &codec, path, format);
}

/* Two names end alike if they do so before the endings of codecs: a.csv and b.csv.gz. */
static bool ends_alike(const char *a, const char *b)
{
    const data_codec *codec_a = data_codec_of_name(a, strlen(a)), *codec_b = data_codec_of_name(b, strlen(b));
    size_t end_a = strlen(a) - (codec_a ? strlen(codec_a->ending) : 0);
    size_t end_b = strlen(b) - (codec_b ? strlen(codec_b->ending) : 0);
    while (end_a > 0 && end_b > 0 && a[end_a - 1] == b[end_b - 1] && a[end_a - 1] != '.') {
        end_a--;
        end_b--;
    }
    return end_a > 0 && end_b > 0 && a[end_a - 1] == '.' && b[end_b - 1] == '.';
}

bool data_write_is_text(char *delimiter, const char *path, const char *like)
{
    const struct encoding *encoding;
    const data_codec *codec;
    *delimiter = 0;
    if (find_encoding(&encoding, &codec, path, NULL) < 0 || !encoding->delimiter)
        return false;
    *delimiter = strcmp(path, "-") == 0 || ends_alike(path, like) ? 0 : encoding->delimiter;
    return true;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

/* Opens the file and writes what comes before the rows. */
static int begin_writing(data_writer *writer, const char *format)
{
    const data_codec *codec;
    const size_t row_bytes = (size_t)writer->columns * shoal_type_size(writer->type);
    int status = find_encoding(&writer->encoding, &codec, writer->path, format);
    if (status == SHOAL_OK && writer->words.word && !writer->encoding->has_words)
        return shoal_fail(SHOAL_USAGE,
                          "%s: %s files hold numbers, but these classes are words; .npy and .csv hold both",
                          writer->path, writer->encoding->ending);
    writer->block = row_bytes > 0 && row_bytes < BLOCK_BYTES ? (int64_t)(BLOCK_BYTES / row_bytes) : 1;
    if (status == SHOAL_OK)
        status = base_alloc(&writer->scratch, (size_t)writer->block, row_bytes + 1, "a block of rows");
    if (status == SHOAL_OK)
        status = data_sink_open(&writer->sink, writer->path, codec);
    return status == SHOAL_OK && writer->rank >= 0 ? writer->encoding->begin(writer) : status;
}

/* Writes rows in blocks: those in memory at `values`, or those of the data set when that is NULL. */
static int copy_rows(data_writer *writer, const void *values, shoal_data *data)
{
    const size_t row_bytes = (size_t)writer->columns * shoal_type_size(writer->type);
    int status = SHOAL_OK;
    for (int64_t first = 0; status == SHOAL_OK && first < writer->rows; first += writer->block) {
        int64_t count = writer->rows - first < writer->block ? writer->rows - first : writer->block;
        const void *rows = values ? (const char *)values + (size_t)first * row_bytes : NULL;
        if (!values)
            status = shoal_data_read(&rows, data, first, count, writer->scratch);
        if (status == SHOAL_OK)
            status = writer->encoding->add_rows(writer, rows, count);
    }
    return status == SHOAL_OK && data ? shoal_data_check(data) : status;
}

static void release_writer(data_writer *writer)
{
    data_sink_close(&writer->sink);
    base_free(&writer->text);
    base_free(&writer->scratch);
}

static int write_rows(data_writer *writer, const char *format, const void *values, shoal_data *data)
{
    fenv_t callers; /* digits are chosen by rounding to nearest, whatever the caller does */
    fegetenv(&callers);
    base_default_arithmetic();
    int status = begin_writing(writer, format);
    if (status == SHOAL_OK)
        status = copy_rows(writer, values, data);
    if (status == SHOAL_OK)
        status = data_sink_commit(&writer->sink);
    fesetenv(&callers);
    release_writer(writer);
    return status;
}

int data_writer_open(data_writer **out, const data_writing *writing)
{
    size_t bytes;
    int status = count_bytes(&bytes, writing->path, writing->type, writing->rank, writing->shape);
    if (status == SHOAL_OK)
        status = base_alloc(out, 1, sizeof **out, "an output");
    if (status < 0)
        return status;
    data_writer *writer = *out;
    *writer = (data_writer){.path = writing->path,
                            .type = writing->type,
                            .rank = writing->rank > 0 ? writing->rank : TEXT_AS_IT_IS,
                            .shape = writing->shape,
                            .rows = writing->rank > 0 ? writing->shape[0] : 0,
                            .columns = 1,
                            .names = writing->names};
    for (int i = 1; i < writing->rank; i++)
        writer->columns *= writing->shape[i];
    return begin_writing(writer, writing->format);
}

int data_writer_rows(data_writer *writer, const void *rows, int64_t count)
{
    const size_t row_bytes = (size_t)writer->columns * shoal_type_size(writer->type);
    int status = SHOAL_OK;
    for (int64_t first = 0; first < count && status == SHOAL_OK; first += writer->block) {
        const int64_t some = count - first < writer->block ? count - first : writer->block;
        status = writer->encoding->add_rows(writer, (const char *)rows + (size_t)first * row_bytes, some);
    }
    return status;
}

int data_writer_text(data_writer *writer, const void *bytes, size_t size)
{
    return data_sink_write(&writer->sink, bytes, size);
}

int data_writer_finish(data_writer *writer)
{
    return data_sink_finish(&writer->sink);
}

int data_writer_commit(data_writer *writer)
{
    return data_sink_commit(&writer->sink);
}

void data_writer_close(data_writer **writer)
{
    if (*writer)
        release_writer(*writer);
    base_free(writer);
}

int data_array_write(const char *path, const data_array *array)
{
    size_t bytes;
    int status = count_bytes(&bytes, path, array->type, array->rank, array->shape);
    if (status < 0)
        return status;
    data_writer writer = {.path = path,
                          .type = array->type,
                          .rank = array->rank,
                          .shape = array->shape,
                          .rows = array->rank > 0 ? array->shape[0] : 1,
                          .columns = 1,
                          .words = array->words};
    for (int i = 1; i < array->rank; i++)
        writer.columns *= array->shape[i];
    return write_rows(&writer, array->format, array->values ? array->values : "", NULL);
}

int shoal_npy_write(const char *path, const void *values, shoal_type type, int rank, const int64_t *shape)
{
    return data_array_write(
        path, &(data_array){.values = values, .type = type, .rank = rank, .shape = shape, .format = "npy"});
}

int shoal_data_write(shoal_data *data, const char *path)
{
    return data_write_as(data, path, NULL);
}

int data_write_as(shoal_data *data, const char *path, const char *format)
{
    int64_t shape[DATA_NPY_RANK_MOST];
    if (data->label >= 0 && shoal_data_column_text(data, data->label))
        return shoal_fail(SHOAL_INVALID, "%s", shoal_data_column_text(data, data->label));
    data_writer writer = {.path = path,
                          .type = data->type,
                          .rank = data_shape_whole(shape, data),
                          .shape = shape,
                          .rows = data->rows,
                          .columns = data->columns,
                          .names = data};
    return write_rows(&writer, format, NULL, data);
}
