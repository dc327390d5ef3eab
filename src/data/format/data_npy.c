/* numpy's .npy, versions 1 to 3: a magic number, a header that is a Python dict literal, then the values.
 * Format: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
 *
 * The header is read by a strict parser of just the literals numpy writes; nothing in it is trusted, and
 * what would need Python to load (objects) or has no place in a matrix of numbers is refused by name. */
#include "data/data_internal.h"

#include <string.h>

#include "base/memory.h"

enum { MAGIC_BYTES = 6, GREATEST_HEADER = 1 << 20 };

typedef data_npy_header npy_header;

/* Where the parser stands; `at` never passes `end`, which holds NUL. */
typedef struct npy_parser {
    const char *at, *end;
    const char *path;
} npy_parser;

static bool recognise_npy(const data_hint *hint)
{
    return hint->head && hint->head_size >= MAGIC_BYTES && memcmp(hint->head, "\x93NUMPY", MAGIC_BYTES) == 0;
}

static int fail_header(const npy_parser *parser, const char *what)
{
    return shoal_fail(SHOAL_INVALID, "%s: the npy header is damaged: %s", parser->path, what);
}

static void skip_spaces(npy_parser *parser)
{
    while (parser->at < parser->end && strchr(" \t\r\n", *parser->at) && *parser->at)
        parser->at++;
}

static bool take_char(npy_parser *parser, char wanted)
{
    skip_spaces(parser);
    if (parser->at == parser->end || *parser->at != wanted)
        return false;
    parser->at++;
    return true;
}

static bool take_word(npy_parser *parser, const char *word)
{
    size_t length = strlen(word);
    skip_spaces(parser);
    if ((size_t)(parser->end - parser->at) < length || memcmp(parser->at, word, length) != 0)
        return false;
    parser->at += length;
    return true;
}

/* A quoted text without escapes, which numpy never needs here. */
static bool take_string(npy_parser *parser, const char **text, size_t *length)
{
    skip_spaces(parser);
    char quote = *parser->at;
    if (parser->at == parser->end || (quote != '\'' && quote != '"'))
        return false;
    const char *start = parser->at + 1;
    const char *close = memchr(start, quote, (size_t)(parser->end - start));
    if (!close || memchr(start, '\\', (size_t)(close - start)))
        return false;
    *text = start;
    *length = (size_t)(close - start);
    parser->at = close + 1;
    return true;
}

static int take_dimension(npy_parser *parser, uint64_t *out)
{
    uint64_t value = 0;
    skip_spaces(parser);
    const char *start = parser->at;
    for (; *parser->at >= '0' && *parser->at <= '9'; parser->at++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*parser->at - '0'), &value))
            return fail_header(parser, "a dimension needs more than 64 bits");
    if (parser->at == start)
        return fail_header(parser, *start == '-' ? "a dimension is negative" : "a dimension is not a whole number");
    if (*parser->at == 'L') /* Python 2 wrote its long integers so */
        parser->at++;
    *out = value;
    return SHOAL_OK;
}

static int take_shape(npy_parser *parser, npy_header *header)
{
    if (!take_char(parser, '('))
        return fail_header(parser, "the shape is not a tuple");
    bool comma = true;
    while (!take_char(parser, ')')) {
        if (!comma)
            return fail_header(parser, "the shape is not a tuple");
        if (header->rank == DATA_NPY_RANK_MOST)
            return fail_header(parser, "there are more than 64 dimensions");
        int status = take_dimension(parser, &header->shape[header->rank++]);
        if (status < 0)
            return status;
        comma = take_char(parser, ',');
    }
    if (header->rank == 1 && !comma)
        return fail_header(parser, "the shape is not a tuple");
    return SHOAL_OK;
}

/* What a type we do not read is, by the letter of its kind, and what to do about it. */
static const char *refusal(char kind, const char **advice)
{
    const char *save = "";
    const char *what = "values of a type that is not known";
    switch (kind) {
    case 'O': what = "Python objects", save = ", which are never loaded: save numbers instead"; break;
    case 'c': what = "complex numbers", save = ": save real and imaginary parts as columns"; break;
    case 'S':
    case 'a':
    case 'U': what = "text", save = ": save numbers instead"; break;
    case 'V': what = "records", save = ": save the fields as columns of one type"; break;
    case 'M':
    case 'm': what = "dates", save = ": save them as int64 or float64"; break;
    case 'f': what = "floats of an unusual size", save = ": save them as float32 or float64"; break;
    default: break;
    }
    *advice = save;
    return what;
}

const char *data_npy_refused(char kind)
{
    const char *advice;
    return refusal(kind, &advice);
}

static int fail_refused(const npy_parser *parser, npy_header *header, char kind)
{
    const char *advice, *what = refusal(kind, &advice);
    header->refused = kind;
    return shoal_fail(SHOAL_INVALID, "%s: the array holds %s%s", parser->path, what, advice);
}

static int take_descr(npy_parser *parser, npy_header *header)
{
    const char *text;
    size_t length;
    skip_spaces(parser);
    if (*parser->at == '[')
        return fail_refused(parser, header, 'V');
    if (!take_string(parser, &text, &length))
        return fail_header(parser, "the type is not text");
    if (data_stored_parse(&header->type, &header->stored, &header->swapped, text, length))
        return SHOAL_OK;
    size_t marked = length > 0 && strchr("<>=|", text[0]) ? 1 : 0;
    int status = fail_refused(parser, header, length > marked ? text[marked] : '?');
    return shoal_fail(status, "%s (type '%.*s')", shoal_error(), (int)(length < 40 ? length : 40), text);
}

static int take_order(npy_parser *parser, npy_header *header)
{
    header->fortran = take_word(parser, "True");
    if (!header->fortran && !take_word(parser, "False"))
        return fail_header(parser, "fortran_order is neither True nor False");
    return SHOAL_OK;
}

static int take_entry(npy_parser *parser, npy_header *header)
{
    static const struct {
        const char *key;
        size_t seen; /* where in npy_header it is noted */
        int (*take)(npy_parser *parser, npy_header *header);
    } entries[] = {
        {"descr", offsetof(npy_header, has_descr), take_descr},
        {"fortran_order", offsetof(npy_header, has_order), take_order},
        {"shape", offsetof(npy_header, has_shape), take_shape},
    };
    const char *key;
    size_t length;
    if (!take_string(parser, &key, &length) || !take_char(parser, ':'))
        return fail_header(parser, "a key is missing");
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        if (strlen(entries[i].key) != length || memcmp(key, entries[i].key, length) != 0)
            continue;
        bool *seen = (bool *)((char *)header + entries[i].seen);
        if (*seen)
            return fail_header(parser, "a key is repeated");
        *seen = true;
        return entries[i].take(parser, header);
    }
    return fail_header(parser, "there is an unknown key");
}

static int parse_dict(npy_parser *parser, npy_header *header)
{
    if (!take_char(parser, '{'))
        return fail_header(parser, "it is not a dict");
    bool comma = true;
    while (!take_char(parser, '}')) {
        if (!comma)
            return fail_header(parser, "a comma is missing");
        int status = take_entry(parser, header);
        if (status < 0)
            return status;
        comma = take_char(parser, ',');
    }
    skip_spaces(parser);
    if (parser->at != parser->end)
        return fail_header(parser, "something follows the dict");
    if (!header->has_descr || !header->has_order || !header->has_shape)
        return fail_header(parser, "descr, fortran_order or shape is missing");
    return SHOAL_OK;
}

/* Reads exactly `size` bytes of the header. */
static int read_part(data_source *source, void *out, size_t size)
{
    size_t got;
    int status = data_source_read(&got, source, out, size);
    if (status == SHOAL_OK && got < size)
        status = shoal_fail(SHOAL_INVALID, "%s: the file ends inside its npy header", source->path);
    return status;
}

static int read_length(size_t *length, int *version, data_source *source)
{
    unsigned char magic[MAGIC_BYTES + 2], bytes[4] = {0};
    int status = read_part(source, magic, sizeof magic);
    if (status < 0)
        return status;
    *version = magic[MAGIC_BYTES];
    if (*version < 1 || *version > 3 || magic[MAGIC_BYTES + 1] != 0)
        return shoal_fail(SHOAL_INVALID, "%s: npy version %d.%d is not known; 1.0, 2.0 and 3.0 are", source->path,
                          *version, magic[MAGIC_BYTES + 1]);
    if ((status = read_part(source, bytes, *version == 1 ? 2 : 4)) < 0)
        return status;
    *length = bytes[0] | (size_t)bytes[1] << 8 | (size_t)bytes[2] << 16 | (size_t)bytes[3] << 24;
    if (*length > GREATEST_HEADER)
        return shoal_fail(SHOAL_INVALID, "%s: the npy header claims %zu bytes, more than any array needs", source->path,
                          *length);
    return SHOAL_OK;
}

int data_npy_read_header(data_npy_header *header, data_source *source)
{
    size_t length = 0;
    char *text = NULL;
    int status = read_length(&length, &header->version, source);
    if (status == SHOAL_OK)
        status = base_alloc(&text, length + 1, 1, "an npy header");
    if (status == SHOAL_OK)
        status = read_part(source, text, length);
    if (status == SHOAL_OK) {
        npy_parser parser = {.at = text, .end = text + length, .path = source->path};
        status = parse_dict(&parser, header);
    }
    base_free(&text);
    return status;
}

int data_npy_detail(char **out, const data_npy_header *header)
{
    const bool one_byte = shoal_type_size(header->type) == 1;
    const bool little = (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__) != header->swapped;
    return base_format(out, "%s order%s%s", header->fortran ? "Fortran" : "C",
                       one_byte ? ""
                       : little ? ", little-endian"
                                : ", big-endian",
                       header->stored == DATA_STORED_HALF ? ", float16 read as float32" : "");
}

static int describe(shoal_data *data, const npy_header *header, const data_source *source)
{
    char *order = NULL;
    int status = data_npy_detail(&order, header);
    if (status == SHOAL_OK)
        status = base_format(&data->detail, "npy version %d.0, %s%s, %s", header->version, order,
                             data_source_detail(source), data_kept(data));
    base_free(&order);
    return status;
}

static int read_header_and_shape(npy_header *header, shoal_data *data, data_source *source)
{
    uint64_t columns;
    int status = data_npy_read_header(header, source);
    if (status < 0)
        return status;
    if (header->rank == 0)
        return shoal_fail(SHOAL_INVALID, "%s: the array is a single number without rows", data->path);
    if (!data_fold_shape(&columns, header->shape, header->rank))
        return shoal_fail(SHOAL_INVALID, "%s: the dimensions in the npy header multiply to more than 64 bits",
                          data->path);
    data_note_shape(data, header->shape, header->rank);
    return data_set_shape(data, header->shape[0], columns, header->type);
}

size_t data_npy_header_bytes(const unsigned char *head, size_t size)
{
    enum { LEAST = MAGIC_BYTES + 2 + 4 };
    const data_hint hint = {.head = head, .head_size = size};
    if (size < LEAST || !recognise_npy(&hint))
        return 0;
    const unsigned char *at = head + MAGIC_BYTES + 2;
    size_t length = at[0] | (size_t)at[1] << 8;
    if (head[MAGIC_BYTES] > 1)
        length |= (size_t)at[2] << 16 | (size_t)at[3] << 24;
    return (length < GREATEST_HEADER ? length : GREATEST_HEADER) + LEAST;
}

/* Version 1 has two bytes of length, the others four. */
size_t data_npy_header_next(const unsigned char *head, size_t size)
{
    const size_t before = size > MAGIC_BYTES && head[MAGIC_BYTES] > 1 ? MAGIC_BYTES + 2 + 4 : MAGIC_BYTES + 2 + 2;
    if (memcmp(head, "\x93NUMPY", size < MAGIC_BYTES ? size : MAGIC_BYTES) != 0)
        return 0;
    if (size < before)
        return before;
    const unsigned char *at = head + MAGIC_BYTES + 2;
    size_t length = at[0] | (size_t)at[1] << 8;
    if (head[MAGIC_BYTES] > 1)
        length |= (size_t)at[2] << 16 | (size_t)at[3] << 24;
    return before + (length < GREATEST_HEADER ? length : GREATEST_HEADER);
}

int data_npy_parse(data_npy_header *out, const void *bytes, size_t size, const char *name)
{
    data_source source;
    data_source_of_bytes(&source, name, bytes, size);
    *out = (data_npy_header){0};
    int status = data_npy_read_header(out, &source);
    data_source_close(&source);
    return status;
}

int data_npy_describe(data_npy_header *out, shoal_data *data, data_source *source)
{
    *out = (data_npy_header){0};
    int status = read_header_and_shape(out, data, source);
    out->fortran &= data->columns > 1;
    return status;
}

int data_npy_open(data_npy_header *out, shoal_data *data, data_source *source)
{
    *out = (data_npy_header){0};
    int status = read_header_and_shape(out, data, source);
    const data_layout layout = {out->swapped, out->fortran, out->stored, out->rank, out->shape};
    return status == SHOAL_OK ? data_take_values(data, source, &layout) : status;
}

static int open_npy(shoal_data *data, data_source *source, const shoal_data_options *options)
{
    npy_header header;
    (void)options;
    int status = data_npy_open(&header, data, source);
    return status == SHOAL_OK ? describe(data, &header, source) : status;
}

const struct data_format data_npy = {.name = "npy", .recognise = recognise_npy, .open = open_npy};
