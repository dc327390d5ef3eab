/* What output files hold.  See content.h. */
#include "content.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/array.h"
#include "base/memory.h"
#include "base/text.h"
#include "content_text.h"
#include "data_lines.h"
#include "data/data_internal.h"
#include "data/image/picture.h"
#include "data/format/safetensors.h"

/* ---- names ------------------------------------------------------------------------------------------------------- */

static bool has_ending(const char *path, data_content_kind kind)
{
    switch (kind) {
    case DATA_CONTENT_RESULT:
    case DATA_CONTENT_MODEL: return base_text_ends(path, ".safetensors");
    case DATA_CONTENT_PICTURE: return base_text_ends(path, ".png") || base_text_ends(path, ".svg");
    case DATA_CONTENT_TRACE: return base_text_ends(path, ".jsonl") || strcmp(path, "-") == 0;
    default: return false;
    }
}

static const char *endings_of(data_content_kind kind)
{
    switch (kind) {
    case DATA_CONTENT_ARRAY: return DATA_ARRAY_ENDINGS;
    case DATA_CONTENT_RESULT: return ".safetensors, " DATA_ARRAY_ENDINGS;
    case DATA_CONTENT_MODEL: return ".safetensors";
    case DATA_CONTENT_PICTURE: return ".png or .svg";
    default: return ".jsonl";
    }
}

/* The format of an array as a path ends in it: "csv", "csv.gz"; NULL for what is not an array. */
static const char *array_format(const char *path, const data_content *content)
{
    static const char *const formats[] = {"npy", "csv", "tsv", "txt", "idx", "raw", "bin"};
    if (content->format)
        return content->format;
    size_t length = strlen(path);
    const data_codec *codec = data_codec_of_name(path, length);
    length -= codec ? strlen(codec->ending) : 0;
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        size_t end = strlen(formats[i]);
        if (length > end + 1 && path[length - end - 1] == '.' && memcmp(path + length - end, formats[i], end) == 0)
            return path + length - end;
    }
    return NULL;
}

/* Words are held by .npy and text alone. */
static int check_words(const char *option, const char *path, const data_content *content)
{
    const char *format = array_format(path, content);
    if (!content->type || strcmp(content->type, "words") != 0 || !format || strchr("nct", format[0]))
        return SHOAL_OK;
    return shoal_fail(SHOAL_USAGE,
                      "%s %s: .%s files hold numbers, but these classes are words; .npy and .csv hold both", option,
                      path, format);
}

int data_content_check_name(const char *option, const char *path, const data_content *content)
{
    const bool array = content->kind == DATA_CONTENT_ARRAY || content->kind == DATA_CONTENT_RESULT;
    if (content->kind == DATA_CONTENT_ANY || base_output_is_special(path) || has_ending(path, content->kind))
        return SHOAL_OK;
    if (array && data_write_check(path, content->format) == SHOAL_OK)
        return check_words(option, path, content);
    if (content->format)
        return shoal_fail(SHOAL_USAGE, "%s %s", option, shoal_error());
    return shoal_fail(SHOAL_USAGE, "%s %s: the name must end in %s", option, path, endings_of(content->kind));
}

/* ---- what is in a file ------------------------------------------------------------------------------------------- */

enum { FIRST_BYTES = 64 << 10 };

/* What a file was found to hold. */
typedef struct holding {
    enum { HOLDS_OTHER, HOLDS_NPY, HOLDS_IDX, HOLDS_PNG, HOLDS_SVG, HOLDS_TENSORS, HOLDS_TRACE, HOLDS_TEXT } what;
    char type[24]; /* "float64", "words"; "" when it is unknown */
    int rank;
    const data_codec *codec; /* that it is compressed by, or NULL */
    bool ours;               /* of a picture: it says that this program made it */
    char learner[64];        /* of tensors; "" for none */
    char *start;             /* of the file, and a newline and NUL; freed with the struct */
    content_text text;       /* the start, without that newline */
    content_table table;     /* of text */
} holding;

/* Whether the header of an .npy file is that of words in one dimension: 'descr': '<U5', ... 'shape': (120,) */
static bool is_list_of_words(const char *header, size_t size)
{
    static const char shape[] = "'shape': (";
    const char *at = memmem(header, size, shape, sizeof shape - 1), *end = header + size;
    if (!at || !memmem(header, size, "'descr': '<U", 12))
        return false;
    for (at += sizeof shape - 1; at < end && *at >= '0' && *at <= '9';)
        at++;
    return end - at >= 2 && at[0] == ',' && at[1] == ')';
}

static void look_at_npy(holding *out, const unsigned char *head, size_t size)
{
    data_npy_header header;
    const size_t bytes = data_npy_header_bytes(head, size);
    out->what = HOLDS_NPY;
    if (bytes > 0 && bytes <= size + 2 && data_npy_parse(&header, head, size, "") == SHOAL_OK) {
        out->rank = header.rank;
        snprintf(out->type, sizeof out->type, "%s",
                 header.stored == DATA_STORED_HALF ? "float16" : shoal_type_name(header.type));
    } else if (is_list_of_words((const char *)head, bytes < size ? bytes : size)) {
        out->rank = 1;
        snprintf(out->type, sizeof out->type, "words");
    } else {
        snprintf(out->type, sizeof out->type, "other values");
    }
}

static bool look_at_idx(holding *out, const unsigned char *head, size_t size)
{
    static const char *const types[] = {
        [0x08] = "uint8", [0x09] = "int8", [0x0B] = "int16", [0x0C] = "int32", [0x0D] = "float32", [0x0E] = "float64"};
    if (size < 8 || head[0] != 0 || head[1] != 0 || head[2] > 0x0E || !types[head[2]] || head[3] == 0)
        return false;
    out->what = HOLDS_IDX;
    out->rank = head[3];
    snprintf(out->type, sizeof out->type, "%s", types[head[2]]);
    return true;
}

static void look_at_tensors(holding *out, const char *path)
{
    data_tensors *file = NULL;
    if (data_safetensors_open(&file, path) < 0)
        return;
    const char *learner = data_safetensors_metadata(file, "learner"), *kind = data_safetensors_metadata(file, "kind");
    out->what = HOLDS_TENSORS;
    snprintf(out->learner, sizeof out->learner, "%s", learner ? learner : kind ? kind : "");
    base_text_clean(out->learner);
    data_safetensors_close(&file);
}

static bool starts(const char *text, size_t size, const char *with)
{
    return size >= strlen(with) && memcmp(text, with, strlen(with)) == 0;
}

/* Whether every line is one of a trace; the last may be cut off. */
static bool is_trace(const char *text, size_t size)
{
    static const char opening[] = "{\"round\": ";
    const char *end = text + size, *at = text;
    while (at < end && starts(at, (size_t)(end - at), opening)) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        at = newline ? newline + 1 : end;
    }
    return at > text && (at == end || (size_t)(end - at) < strlen(opening));
}

static void look_at_text(holding *out)
{
    const content_text lines = {out->start, out->text.size + 1, out->text.whole, out->text.delimiter};
    data_content_text_read(&out->table, &lines);
    out->what = out->table.values == TABLE_BYTES ? HOLDS_OTHER : HOLDS_TEXT;
}

static void look_at_start(holding *out, const char *path)
{
    const char *text = out->start;
    const size_t size = out->text.size, first = size < 1024 ? size : 1024;
    if (starts(text, size, "\x93NUMPY")) {
        look_at_npy(out, (const unsigned char *)text, size);
    } else if (starts(text, size, "\x89PNG\r\n\x1a\n")) {
        out->what = HOLDS_PNG;
        out->ours = memmem(text, first, DATA_PICTURE_PNG_MARK, sizeof DATA_PICTURE_PNG_MARK - 1) != NULL;
    } else if (is_trace(text, size)) {
        out->what = HOLDS_TRACE;
    } else if (starts(text, size, "<") && memmem(text, first, "<svg", 4)) {
        out->what = HOLDS_SVG;
        out->ours = memmem(text, first, DATA_PICTURE_SVG_MARK, sizeof DATA_PICTURE_SVG_MARK - 1) != NULL;
    } else if (size > 8 && text[8] == '{' && text[7] == 0) {
        look_at_tensors(out, path);
    } else if (!look_at_idx(out, (const unsigned char *)text, size)) {
        look_at_text(out);
    }
}

/* Reads the start of a file.  What can't be read, or not as what it seems to be, holds something else. */
static int find_holding(holding *out, const char *path, char delimiter)
{
    data_source source = {0};
    size_t got = 0;
    *out = (holding){0};
    int status = base_alloc(&out->start, FIRST_BYTES + 2, 1, "the start of a file");
    if (status == SHOAL_OK && data_source_open(&source, path, true) == SHOAL_OK) {
        if (data_source_read(&got, &source, out->start, FIRST_BYTES) == SHOAL_OK && got > 0) {
            out->start[got] = '\n';
            out->text = (content_text){out->start, got, got < FIRST_BYTES, delimiter};
            out->codec = data_source_codec(&source);
            look_at_start(out, path);
        }
        data_source_close(&source);
    }
    return status;
}

/* "int64 with 2 dimensions" */
static void describe_array(char *out, size_t size, const char *type, int rank)
{
    const char *what = *type ? type : "numbers";
    if (rank > 0)
        snprintf(out, size, "%s with %d dimension%s", what, rank, rank == 1 ? "" : "s");
    else
        snprintf(out, size, "%s", what);
}

static void describe(char *out, size_t size, const holding *holds)
{
    static const char foreign[] = " that another program made";
    char array[64];
    describe_array(array, sizeof array, holds->type, holds->rank);
    switch (holds->what) {
    case HOLDS_NPY: snprintf(out, size, "an .npy array of %s", array); break;
    case HOLDS_IDX: snprintf(out, size, "an IDX array of %s", array); break;
    case HOLDS_PNG: snprintf(out, size, "a PNG picture%s", holds->ours ? "" : foreign); break;
    case HOLDS_SVG: snprintf(out, size, "an SVG picture%s", holds->ours ? "" : foreign); break;
    case HOLDS_TRACE: snprintf(out, size, "a trace"); break;
    case HOLDS_TENSORS: snprintf(out, size, "tensors%s%s", *holds->learner ? " of " : "", holds->learner); break;
    case HOLDS_TEXT: data_content_text_describe(out, size, &holds->table); break;
    default: snprintf(out, size, "unknown bytes");
    }
    const size_t used = strlen(out);
    if (holds->codec)
        snprintf(out + used, size - used, ", compressed by %s", holds->codec->name);
}

/* ---- whether it may be replaced ---------------------------------------------------------------------------------- */

static bool is_text_format(const char *format)
{
    return strncmp(format, "csv", 3) == 0 || strncmp(format, "tsv", 3) == 0 || strncmp(format, "txt", 3) == 0;
}

static char delimiter_of(const char *format)
{
    return !format || strncmp(format, "csv", 3) == 0 ? ',' : strncmp(format, "tsv", 3) == 0 ? '\t' : ' ';
}

/* Raw values look like nothing: their number is all there is to compare. */
static bool fits_raw(const holding *holds, const char *path, const data_content *content)
{
    shoal_type type;
    struct stat info;
    size_t bytes = 1;
    if (holds->what != HOLDS_OTHER || holds->codec || content->rows == 0 || stat(path, &info) < 0)
        return false;
    if (content->type && content->columns > 0 &&
        (shoal_type_parse(&type, content->type) < 0 ||
         !base_multiply(&bytes, (size_t)content->columns, shoal_type_size(type))))
        return false;
    if (content->rows < 0)
        return (uint64_t)info.st_size % bytes == 0;
    return base_multiply(&bytes, bytes, (size_t)content->rows) && (uint64_t)info.st_size == bytes;
}

static bool fits_array(const holding *holds, const char *path, const data_content *content, const char *format)
{
    const bool typed = !content->type || strcmp(content->type, holds->type) == 0;
    const bool flat = holds->rank == 1 && content->columns == 1; /* one column is a row of values in IDX */
    if (holds->codec != data_codec_of_name(format, strlen(format)))
        return false;
    if (is_text_format(format))
        return holds->what == HOLDS_TEXT && data_content_text_fits(&holds->text, content);
    if (strncmp(format, "idx", 3) == 0)
        return holds->what == HOLDS_IDX && typed && (!content->rank || content->rank == holds->rank || flat);
    if (strcmp(format, "npy") == 0)
        return holds->what == HOLDS_NPY && typed && (!content->rank || content->rank == holds->rank);
    return fits_raw(holds, path, content);
}

static bool fits(const holding *holds, const char *path, const data_content *content)
{
    const char *format = array_format(path, content);
    bool same = false;
    if (content->lines)
        return format && holds->what == HOLDS_TEXT && holds->codec == data_codec_of_name(format, strlen(format)) &&
               data_content_lines_fit(&same, &holds->text, content) == SHOAL_OK && same;
    switch (content->kind) {
    case DATA_CONTENT_ARRAY: return format && fits_array(holds, path, content, format);
    case DATA_CONTENT_PICTURE:
        return holds->ours && holds->what == (base_text_ends(path, ".svg") ? HOLDS_SVG : HOLDS_PNG);
    case DATA_CONTENT_TRACE: return holds->what == HOLDS_TRACE;
    case DATA_CONTENT_RESULT:
        if (!base_text_ends(path, ".safetensors"))
            return format && fits_array(holds, path, content, format);
        break;
    default: break;
    }
    return holds->what == HOLDS_TENSORS && content->learner && strcmp(holds->learner, content->learner) == 0;
}

static void describe_content(char *out, size_t size, const char *path, const data_content *content)
{
    const char *format = array_format(path, content);
    content_table table;
    if (base_text_ends(path, ".safetensors") && content->learner) {
        snprintf(out, size, "tensors of %s", content->learner);
    } else if (content->lines) {
        snprintf(out, size, "only lines of %s", shoal_data_path(content->lines));
    } else if (format && is_text_format(format)) {
        data_content_text_wanted(&table, content);
        data_content_text_describe(out, size, &table);
    } else if (format) {
        describe_array(out, size, content->type ? content->type : "", content->rank);
    } else if (content->kind == DATA_CONTENT_TRACE) {
        snprintf(out, size, "a trace");
    } else {
        snprintf(out, size, "%s picture", base_text_ends(path, ".svg") ? "an SVG" : "a PNG");
    }
}

/* Whether a text file would be described as what is wanted, and the difference is in its bytes. */
static bool is_alike(const holding *holds, const data_content *content)
{
    content_table wanted;
    data_content_text_wanted(&wanted, content);
    return holds->table.columns > 0 && holds->table.columns == wanted.columns && holds->table.header == wanted.header &&
           holds->table.values <= wanted.values;
}

static int refuse(const char *option, const char *path, const data_content *content, const holding *holds)
{
    const bool picture = holds->what == HOLDS_PNG || holds->what == HOLDS_SVG;
    char has[160], wanted[160];
    describe(has, sizeof has, holds);
    describe_content(wanted, sizeof wanted, path, content);
    if (holds->what == HOLDS_TEXT && !content->lines && is_alike(holds, content))
        snprintf(wanted, sizeof wanted, ", but not as this command writes them");
    else if (picture && strncmp(has, wanted, strlen(wanted)) == 0)
        *wanted = '\0';
    return shoal_fail(SHOAL_USAGE, "%s %s: the file holds %s%s%s; use another name, or replace it with --force", option,
                      path, has, *wanted && *wanted != ',' ? ", not " : "", wanted);
}

int data_content_check_old(const char *option, const char *path, const data_content *content)
{
    struct stat info;
    holding holds;
    if (content->kind == DATA_CONTENT_ANY || stat(path, &info) < 0 || !S_ISREG(info.st_mode) || info.st_size == 0 ||
        base_output_descriptor(path) >= 0)
        return SHOAL_OK;
    const char delimiter = !content->lines      ? delimiter_of(array_format(path, content))
                           : content->delimiter ? content->delimiter
                                                : content->lines->lines->delimiter;
    int status = find_holding(&holds, path, delimiter);
    if (status == SHOAL_OK && !fits(&holds, path, content))
        status = refuse(option, path, content, &holds);
    base_free(&holds.start);
    return status;
}

int data_content_beside(char **out, const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *point = strrchr(name, '.');
    if (point && data_codec_of_name(name, strlen(name)))
        for (const char *at = point; at-- > name;)
            if (*at == '.') {
                point = at;
                break;
            }
    int before = point ? (int)(point - path) : (int)strlen(path);
    for (int i = 2; i < 10000; i++) {
        int status = base_format(out, "%.*s-%d%s", before, path, i, path + before);
        if (status < 0 || access(*out, F_OK) < 0)
            return status;
        base_free(out);
    }
    return shoal_fail(SHOAL_SYSTEM, "%s: all names from %.*s-2%s on are taken", path, before, path, path + before);
}
