/* What output files hold.  See content.h. */
#include "content.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "array.h"
#include "base/memory.h"
#include "base/text.h"
#include "data_text.h"
#include "safetensors.h"

/* ---- names ------------------------------------------------------------------------------------------------------- */

static bool has_ending(const char *path, data_content_kind kind)
{
    switch (kind) {
    case DATA_CONTENT_RESULT:
    case DATA_CONTENT_MODEL: return base_text_ends(path, ".safetensors");
    case DATA_CONTENT_PICTURE: return base_text_ends(path, ".png") || base_text_ends(path, ".svg");
    case DATA_CONTENT_CHART: return base_text_ends(path, ".svg");
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
    case DATA_CONTENT_CHART: return ".svg";
    default: return ".jsonl";
    }
}

/* The format of an array: "csv", "csv.gz"; NULL for what is not an array. */
static const char *array_format(const char *path, const data_content *content)
{
    static const char *const formats[] = {"npy",    "csv",    "tsv",    "txt", "idx", "csv.gz",
                                          "tsv.gz", "txt.gz", "idx.gz", "raw", "bin"};
    if (content->format)
        return content->format;
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        size_t length = strlen(path), end = strlen(formats[i]);
        if (length > end + 1 && path[length - end - 1] == '.' && strcmp(path + length - end, formats[i]) == 0)
            return formats[i];
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

enum { FIRST_BYTES = 1 << 20 };

/* What a file was found to hold. */
typedef struct holding {
    enum { HOLDS_OTHER, HOLDS_NPY, HOLDS_IDX, HOLDS_PNG, HOLDS_SVG, HOLDS_TENSORS, HOLDS_TRACE, HOLDS_TEXT } what;
    char type[24]; /* "float64", "words"; "" when it is unknown */
    int rank;
    int64_t columns; /* of text; 0 when the first line is longer than what was read */
    bool gzip;
    char learner[64]; /* of tensors; "" for none */
} holding;

static void look_at_npy(holding *out, const unsigned char *head, size_t size)
{
    data_npy_header header;
    const size_t bytes = data_npy_header_bytes(head, size);
    out->what = HOLDS_NPY;
    if (bytes > 0 && bytes <= size + 2 && data_npy_parse(&header, head, size, "") == SHOAL_OK) {
        out->rank = header.rank;
        snprintf(out->type, sizeof out->type, "%s", shoal_type_name(header.type));
    } else if (memmem(head, size < 128 ? size : 128, "'<U", 3)) {
        out->rank = 1; /* there are no others of words */
        snprintf(out->type, sizeof out->type, "words");
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

/* Counts the fields of the next line that is neither blank nor a comment.  False when there is none as a whole. */
static bool read_line(int64_t *fields, bool *numbers, const char **at, const char *end, char delimiter)
{
    text_reader reader = {.at = *at, .end = (char *)end, .delimiter = delimiter};
    text_field field;
    *fields = 0;
    *numbers = true;
    if (data_text_skip_to_row(&reader) != SHOAL_OK)
        return false;
    for (*at = reader.at; data_text_take_field(&field, *at, end, delimiter); *at = field.next) {
        ++*fields;
        *numbers &= field.length == 0 || data_text_is_number(&field);
        if (field.last) {
            *at = field.next;
            return true;
        }
    }
    return false;
}

/* The first line may be a header: the second one tells numbers from words. */
static void look_at_text(holding *out, const char *text, size_t size, char delimiter)
{
    const char *at = text, *end = text + size;
    int64_t fields, more;
    bool numbers, below;
    if (memchr(text, '\0', size))
        return;
    out->what = HOLDS_TEXT;
    if (!read_line(&fields, &numbers, &at, end, delimiter))
        return;
    out->columns = fields;
    if (read_line(&more, &below, &at, end, delimiter))
        numbers = below;
    snprintf(out->type, sizeof out->type, "%s", numbers ? "numbers" : "words");
}

static bool starts(const char *text, size_t size, const char *with)
{
    return size >= strlen(with) && memcmp(text, with, strlen(with)) == 0;
}

/* `text` has `size` bytes, a newline and NUL. */
static void look(holding *out, const char *path, const char *text, size_t size, char delimiter)
{
    const unsigned char *head = (const unsigned char *)text;
    if (starts(text, size, "\x93NUMPY"))
        look_at_npy(out, head, size);
    else if (starts(text, size, "\x89PNG\r\n\x1a\n"))
        out->what = HOLDS_PNG;
    else if (starts(text, size, "{\"round\": "))
        out->what = HOLDS_TRACE;
    else if (starts(text, size, "<") && memmem(text, size < 4096 ? size : 4096, "<svg", 4))
        out->what = HOLDS_SVG;
    else if (size > 8 && text[8] == '{' && text[7] == 0)
        look_at_tensors(out, path);
    else if (!look_at_idx(out, head, size))
        look_at_text(out, text, size + 1, delimiter);
}

/* Reads the start of a file.  What can't be read, or not as what it seems to be, holds something else. */
static int find_holding(holding *out, const char *path, char delimiter)
{
    data_source source = {0};
    char *text = NULL;
    size_t got = 0;
    *out = (holding){0};
    int status = base_alloc(&text, FIRST_BYTES + 2, 1, "the start of a file");
    if (status < 0)
        return status;
    if (data_source_open(&source, path, true) == SHOAL_OK) {
        if (data_source_read(&got, &source, text, FIRST_BYTES) == SHOAL_OK && got > 0) {
            text[got] = '\n'; /* also the last line ends */
            out->gzip = source.gunzip != NULL;
            look(out, path, text, got, delimiter);
        }
        data_source_close(&source);
    }
    base_free(&text);
    return SHOAL_OK;
}

/* "int64 with 2 dimensions" */
static void describe_array(char *out, size_t size, const char *type, int rank)
{
    const char *what = strcmp(type, "words") == 0 ? "words" : *type ? type : "numbers";
    if (rank > 0)
        snprintf(out, size, "%s with %d dimension%s", what, rank, rank == 1 ? "" : "s");
    else
        snprintf(out, size, "%s", what);
}

static void describe(char *out, size_t size, const holding *holds)
{
    char array[64];
    describe_array(array, sizeof array, holds->type, holds->rank);
    switch (holds->what) {
    case HOLDS_NPY: snprintf(out, size, "an .npy array of %s", array); break;
    case HOLDS_IDX: snprintf(out, size, "an IDX array of %s", array); break;
    case HOLDS_PNG: snprintf(out, size, "a PNG picture"); break;
    case HOLDS_SVG: snprintf(out, size, "an SVG picture"); break;
    case HOLDS_TRACE: snprintf(out, size, "a trace"); break;
    case HOLDS_TENSORS: snprintf(out, size, "tensors%s%s", *holds->learner ? " of " : "", holds->learner); break;
    case HOLDS_TEXT:
        snprintf(out, size, "%s in %lld column%s", *holds->type ? holds->type : "text", (long long)holds->columns,
                 holds->columns == 1 ? "" : "s");
        break;
    default: snprintf(out, size, "something else");
    }
    if (holds->gzip && strlen(out) + 10 < size)
        strcat(out, ", gzipped");
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

static bool fits_array(const holding *holds, const data_content *content, const char *format)
{
    const bool words = content->type && strcmp(content->type, "words") == 0;
    const bool typed = !content->type || strcmp(content->type, holds->type) == 0;
    const bool flat = holds->rank == 1 && content->columns == 1; /* one column is a row of values in IDX */
    if (holds->gzip != base_text_ends(format, ".gz"))
        return false;
    if (is_text_format(format))
        return holds->what == HOLDS_TEXT && (words || strcmp(holds->type, "words") != 0) &&
               (!content->columns || !holds->columns || content->columns == holds->columns);
    if (strncmp(format, "idx", 3) == 0)
        return holds->what == HOLDS_IDX && typed && (!content->rank || content->rank == holds->rank || flat);
    if (strcmp(format, "npy") == 0)
        return holds->what == HOLDS_NPY && typed && (!content->rank || content->rank == holds->rank);
    return holds->what == HOLDS_OTHER; /* raw values look like nothing */
}

static bool fits(const holding *holds, const char *path, const data_content *content)
{
    const char *format = array_format(path, content);
    switch (content->kind) {
    case DATA_CONTENT_ARRAY: return format && fits_array(holds, content, format);
    case DATA_CONTENT_PICTURE: return holds->what == (base_text_ends(path, ".svg") ? HOLDS_SVG : HOLDS_PNG);
    case DATA_CONTENT_CHART: return holds->what == HOLDS_SVG;
    case DATA_CONTENT_TRACE: return holds->what == HOLDS_TRACE;
    case DATA_CONTENT_RESULT:
        if (!base_text_ends(path, ".safetensors"))
            return format && fits_array(holds, content, format);
        break;
    default: break;
    }
    return holds->what == HOLDS_TENSORS && content->learner && strcmp(holds->learner, content->learner) == 0;
}

static void describe_content(char *out, size_t size, const char *path, const data_content *content)
{
    const char *format = array_format(path, content);
    char array[64];
    if (base_text_ends(path, ".safetensors") && content->learner)
        snprintf(out, size, "tensors of %s", content->learner);
    else if (format && is_text_format(format) && content->columns > 0)
        snprintf(out, size, "%s in %lld column%s",
                 content->type && strcmp(content->type, "words") == 0 ? "words" : "numbers",
                 (long long)content->columns, content->columns == 1 ? "" : "s");
    else if (format) {
        describe_array(array, sizeof array, content->type ? content->type : "", content->rank);
        snprintf(out, size, "%s", array);
    } else {
        snprintf(out, size, "%s", content->kind == DATA_CONTENT_TRACE ? "a trace" : "such a picture");
    }
}

int data_content_check_old(const char *option, const char *path, const data_content *content)
{
    struct stat info;
    holding holds;
    char has[160], wanted[160];
    if (content->kind == DATA_CONTENT_ANY || stat(path, &info) < 0 || !S_ISREG(info.st_mode) || info.st_size == 0 ||
        base_output_standard(path) >= 0)
        return SHOAL_OK;
    int status = find_holding(&holds, path, delimiter_of(array_format(path, content)));
    if (status < 0 || fits(&holds, path, content))
        return status;
    describe(has, sizeof has, &holds);
    describe_content(wanted, sizeof wanted, path, content);
    return shoal_fail(SHOAL_USAGE, "%s %s: the file holds %s, not %s; use another name, or replace it with --force",
                      option, path, has, wanted);
}

int data_content_beside(char **out, const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *point = strrchr(name, '.');
    if (point && strcmp(point, ".gz") == 0)
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
