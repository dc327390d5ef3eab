/* svmlight, also called libsvm: a line is a row, "label index:value index:value ...", with "qid:N" before the first
 * pair and "# ..." at the end where somebody wants them.  What is left out is 0.
 *
 * Rows are kept dense.  The text is gone through twice, in pieces that threads share: once to count rows and find the
 * greatest index, which says how wide rows are, and once to put the values where they belong.  A piece notes its first
 * fault, and the first of all pieces is reported, so that messages do not depend on threads. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/pool.h"
#include "base/text.h"
#include "data/data_internal.h"
#include "data/table/data_words.h"

enum { PIECE_BYTES = 1 << 20, DENSE_TIMES = 16 };
static const size_t dense_always = (size_t)1 << 30;

typedef enum fault_kind {
    FAULT_NONE,
    FAULT_NO_LABEL,
    FAULT_SEVERAL_LABELS,
    FAULT_QUERY,
    FAULT_PAIR,
    FAULT_INDEX,
    FAULT_ORDER,
    FAULT_TWICE,
    FAULT_VALUE
} fault_kind;

/* Some whole lines, and what is in them. */
typedef struct piece {
    const char *from, *end;
    int64_t first_line, first_row; /* from 0 */
    int64_t lines, rows, entries;
    int64_t least, most; /* indices */
    bool any_words;      /* a label is not a number */
    fault_kind fault;    /* the first one, at this text in this line of the piece */
    const char *fault_at;
    int64_t fault_line;
} piece;

typedef struct svm_reader {
    shoal_data *data;
    base_mapped *mapped; /* the text, if it could be mapped; otherwise it is loaded */
    int mapped_file;
    data_buffer loaded;
    const char *text;
    size_t size;
    char *tail; /* a last line without an end, with one */
    piece *pieces;
    int64_t pieces_count;
    int64_t first_index, features, rows, entries;
    base_pool *pool;
} svm_reader;

/* ---- one line ---------------------------------------------------------------------------------------------------- */

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v';
}

static bool ends_token(char c)
{
    return is_space(c) || c == '\n' || c == '#' || c == '\0';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static const char *skip_spaces(const char *at)
{
    while (is_space(*at))
        at++;
    return at;
}

/* Every line ends with a newline, which ends a token; so does NUL, which a mapped file that shrinks turns into. */
static const char *token_end(const char *at)
{
    while (!ends_token(*at))
        at++;
    return at;
}

/* The line end at or behind `at`; `last` is the last byte that may be one. */
static const char *line_end(const char *at, const char *last)
{
    const char *newline = memchr(at, '\n', (size_t)(last + 1 - at));
    return newline ? newline : last;
}

/* "12:" and what stands behind the colon; NULL if this is none.  An index beyond 31 bits is INT64_MAX. */
static const char *take_index(int64_t *out, const char *at)
{
    const char *from = at;
    int64_t index = 0;
    for (; is_digit(*at); at++)
        index = index <= INT32_MAX ? index * 10 + (*at - '0') : index;
    *out = index < INT32_MAX ? index : INT64_MAX;
    return at > from && *at == ':' && !ends_token(at[1]) ? at + 1 : NULL;
}

/* "qid:12", which groups rows and is nothing to a learner here. */
static const char *skip_query(const char *at)
{
    if (strncmp(at, "qid:", 4) != 0)
        return at;
    const char *from = at + 4;
    for (at = from; is_digit(*at); at++)
        continue;
    return at > from && ends_token(*at) ? skip_spaces(at) : NULL;
}

static void note_fault(piece *self, fault_kind kind, const char *at, int64_t line)
{
    self->fault = kind;
    self->fault_at = at;
    self->fault_line = line;
}

static fault_kind check_label(const char *from, const char *end)
{
    if (memchr(from, ':', (size_t)(end - from)))
        return FAULT_NO_LABEL;
    return memchr(from, ',', (size_t)(end - from)) ? FAULT_SEVERAL_LABELS : FAULT_NONE;
}

/* ---- the first pass: how many rows, how wide --------------------------------------------------------------------- */

/* Looks at the pairs from `at` to the end of the line; false when something is wrong with one. */
static bool survey_pairs(piece *self, const char *at)
{
    for (int64_t before = -1; *at != '\n' && *at != '#'; at = skip_spaces(token_end(at))) {
        int64_t index;
        const char *value = take_index(&index, at);
        const fault_kind wrong = !value               ? FAULT_PAIR
                                 : index == INT64_MAX ? FAULT_INDEX
                                 : index == before    ? FAULT_TWICE
                                 : index < before     ? FAULT_ORDER
                                                      : FAULT_NONE;
        if (wrong) {
            note_fault(self, wrong, at, self->lines);
            return false;
        }
        self->least = index < self->least ? index : self->least;
        self->most = index > self->most ? index : self->most;
        self->entries++;
        before = index;
    }
    return true;
}

static int survey_piece(void *context, int64_t item, int thread)
{
    piece *self = &((svm_reader *)context)->pieces[item];
    (void)thread;
    self->least = INT64_MAX;
    self->most = -1;
    for (const char *at = self->from; at < self->end; self->lines++) {
        const char *label = skip_spaces(at);
        at = line_end(at, self->end - 1) + 1;
        if (*label == '\n' || *label == '#')
            continue;
        const char *label_end = token_end(label), *pairs = skip_query(skip_spaces(label_end));
        const fault_kind wrong = check_label(label, label_end);
        if (wrong || !pairs) {
            note_fault(self, wrong ? wrong : FAULT_QUERY, wrong ? label : skip_spaces(label_end), self->lines);
            break;
        }
        if (!survey_pairs(self, pairs))
            break;
        self->rows++;
    }
    return SHOAL_OK;
}

/* ---- the second pass: values ------------------------------------------------------------------------------------- */

/* A row's values, and its label behind them.  What the first pass saw is checked again where memory depends on it,
 * since others may write to a mapped file. */
static bool fill_row(piece *self, const svm_reader *reader, double *row, const char *label, int64_t line)
{
    const char *label_end = token_end(label), *end = data_number_parse(&row[reader->features], label);
    if (end != label_end) {
        row[reader->features] = NAN;
        self->any_words = true;
    }
    for (const char *at = skip_query(skip_spaces(label_end)); at && *at != '\n' && *at != '#'; at = skip_spaces(end)) {
        int64_t index;
        const char *value = take_index(&index, at);
        index -= reader->first_index;
        end = value && index >= 0 && index < reader->features ? data_number_parse(&row[index], value) : NULL;
        if (!end || !ends_token(*end)) {
            note_fault(self, FAULT_VALUE, at, line);
            return false;
        }
    }
    return true;
}

static int fill_piece(void *context, int64_t item, int thread)
{
    svm_reader *reader = context;
    piece *self = &reader->pieces[item];
    double *row = (double *)(void *)reader->data->buffer.bytes + self->first_row * (reader->features + 1);
    int64_t line = 0, rows = 0;
    (void)thread;
    for (const char *at = self->from; at < self->end && rows < self->rows; line++) {
        const char *label = skip_spaces(at);
        at = line_end(at, self->end - 1) + 1;
        if (*label == '\n' || *label == '#')
            continue;
        if (!fill_row(self, reader, row, label, line))
            break;
        row += reader->features + 1;
        rows++;
    }
    return SHOAL_OK;
}

/* ---- faults ------------------------------------------------------------------------------------------------------ */

static int fail_fault(const svm_reader *reader, const piece *at)
{
    static const char *const sentences[] = {
        [FAULT_NO_LABEL] = "the line must begin with a label, and \"%.*s\" is none",
        [FAULT_SEVERAL_LABELS] = "the label \"%.*s\" names several classes, and a row can have only one",
        [FAULT_QUERY] = "\"%.*s\" is not qid: with a number",
        [FAULT_PAIR] = "\"%.*s\" is not index:value, as in 3:0.5",
        [FAULT_INDEX] = "\"%.*s\": the index is greater than 2147483646",
        [FAULT_ORDER] = "\"%.*s\" follows a greater index; the indices of a line must ascend",
        [FAULT_TWICE] = "\"%.*s\" has the same index as the pair before it",
        [FAULT_VALUE] = "\"%.*s\": the value is not a number",
    };
    char text[160], shown[DATA_SHOWN_BYTES + 1];
    const size_t length = (size_t)(token_end(at->fault_at) - at->fault_at);
    snprintf(shown, sizeof shown, "%.*s", (int)(length < DATA_SHOWN_BYTES ? length : DATA_SHOWN_BYTES), at->fault_at);
    base_text_clean(shown);
    snprintf(text, sizeof text, sentences[at->fault], (int)sizeof shown, shown);
    return shoal_fail(SHOAL_INVALID, "%s: line %" PRId64 ": %s", reader->data->path,
                      at->first_line + at->fault_line + 1, text);
}

/* Lets threads do something with every piece.  A file that shrank under them is told as such. */
static int for_pieces(svm_reader *reader, base_task *task)
{
    int status = base_pool_each(reader->pool, reader->pieces_count, task, reader);
    if (status == SHOAL_OK && reader->mapped)
        status = base_mapped_check(reader->mapped, reader->mapped_file, reader->data->path);
    if (status < 0)
        return status;
    for (int64_t i = 0, line = 0, row = 0; i < reader->pieces_count; i++) {
        piece *self = &reader->pieces[i];
        self->first_line = line;
        self->first_row = row;
        line += self->lines;
        row += self->rows;
        if (self->fault)
            return fail_fault(reader, self);
    }
    return SHOAL_OK;
}

/* ---- the text and its pieces ------------------------------------------------------------------------------------- */

static int take_text(svm_reader *reader, data_source *source)
{
    int status = SHOAL_OK;
    if (source->mappable && data_source_map(&reader->mapped, &reader->mapped_file, source)) {
        reader->text = (const char *)base_mapped_bytes(reader->mapped);
        reader->size = source->file_size;
    } else {
        status = data_source_load(&reader->loaded, source, INT64_MAX);
        reader->text = (const char *)reader->loaded.bytes;
        reader->size = reader->loaded.size;
    }
    if (status == SHOAL_OK && reader->size >= 3 && memcmp(reader->text, "\xef\xbb\xbf", 3) == 0) {
        reader->text += 3; /* the mark that some programs put before UTF-8 */
        reader->size -= 3;
    }
    return status;
}

/* Whole lines to each piece; the last line may need its end. */
static int cut_pieces(svm_reader *reader)
{
    const char *newline = memrchr(reader->text, '\n', reader->size);
    const char *whole = newline ? newline + 1 : reader->text, *end = reader->text + reader->size;
    int status = base_alloc(&reader->pieces, reader->size / PIECE_BYTES + 2, sizeof *reader->pieces, "parts of text");
    if (status < 0)
        return status;
    for (const char *at = reader->text; at < whole;) {
        piece *self = &reader->pieces[reader->pieces_count++];
        self->from = at;
        at = (size_t)(whole - at) > PIECE_BYTES ? at + PIECE_BYTES : whole;
        if (at < whole)
            at = line_end(at, whole - 1) + 1;
        self->end = at;
    }
    if (whole == end)
        return SHOAL_OK;
    const size_t left = (size_t)(end - whole);
    status = base_alloc(&reader->tail, left + 2, 1, "the last line");
    if (status < 0)
        return status;
    memcpy(reader->tail, whole, left);
    reader->tail[left] = '\n';
    reader->pieces[reader->pieces_count++] = (piece){.from = reader->tail, .end = reader->tail + left + 1};
    return SHOAL_OK;
}

/* Indices count from 1 unless one is 0, as scikit-learn's zero_based="auto" has it. */
static int measure(svm_reader *reader, const shoal_data_options *options)
{
    int64_t least = INT64_MAX, most = -1;
    int status = for_pieces(reader, survey_piece);
    for (int64_t i = 0; i < reader->pieces_count; i++) {
        const piece *self = &reader->pieces[i];
        least = self->least < least ? self->least : least;
        most = self->most > most ? self->most : most;
        reader->rows += self->rows;
        reader->entries += self->entries;
    }
    reader->first_index = least == 0 || options->feature_zero ? 0 : 1;
    reader->features = most + 1 - reader->first_index;
    if (reader->features < options->features)
        reader->features = options->features;
    return status;
}

/* The names of columns are kept, too, and count. */
static int check_dense_size(const svm_reader *reader, const shoal_data_options *options)
{
    enum { NAME_BYTES = 20 };
    size_t per_column, dense, allowed = dense_always;
    if (!base_multiply(&per_column, (size_t)reader->rows, sizeof(double)) ||
        !base_multiply(&dense, per_column + NAME_BYTES, (size_t)reader->features + 1))
        dense = SIZE_MAX;
    if (reader->size < SIZE_MAX / DENSE_TIMES && reader->size * DENSE_TIMES > allowed)
        allowed = reader->size * DENSE_TIMES;
    if ((size_t)options->memory > allowed)
        allowed = (size_t)options->memory;
    if (dense <= allowed)
        return SHOAL_OK;
    const double gigabytes = (double)dense / 1e9;
    return shoal_fail(SHOAL_INVALID,
                      "%s: %" PRId64 " rows of %" PRId64
                      " features take %.1f GB with all their zeros, and sparse rows are not supported; keep fewer "
                      "features, or allow that much with --memory %.0fG",
                      reader->data->path, reader->rows, reader->features, gigabytes, ceil(gigabytes));
}

/* ---- columns ----------------------------------------------------------------------------------------------------- */

/* "f1", "f2", ..., "label": by the index in the file, so that rows of files that begin at 0 and at 1 are not mixed. */
static int name_columns(svm_reader *reader)
{
    enum { NAME_ROOM = 12 };
    shoal_data *data = reader->data;
    const int64_t columns = reader->features + 1;
    int status = base_alloc(&data->names, (size_t)columns, NAME_ROOM, "names of columns");
    if (status == SHOAL_OK)
        status = base_alloc(&data->name_offsets, (size_t)columns, sizeof *data->name_offsets, "names of columns");
    size_t at = 0;
    for (int64_t i = 0; i < columns && status == SHOAL_OK; i++) {
        data->name_offsets[i] = at;
        at += i < reader->features
                  ? (size_t)snprintf(data->names + at, NAME_ROOM, "f%" PRId64, reader->first_index + i) + 1
                  : (size_t)snprintf(data->names + at, NAME_ROOM, "label") + 1;
    }
    return status;
}

bool data_svmlight_is_feature(int64_t *index, const char *name)
{
    int64_t value = 0;
    const char *at = name + 1;
    if (*name != 'f')
        return false;
    for (; is_digit(*at) && value < INT32_MAX; at++)
        value = value * 10 + (*at - '0');
    *index = value;
    return at > name + 1 && *at == '\0' && value < INT32_MAX;
}

static int fail_word(const svm_reader *reader, int64_t line, const char *what)
{
    return shoal_fail(SHOAL_INVALID, "%s: line %" PRId64 ": %s", reader->data->path, line, what);
}

/* The word of one row.  Its number among words is put into its cell for now. */
static int take_word(data_words *words, const svm_reader *reader, double *cell, const char *label, int64_t line)
{
    const size_t length = (size_t)(token_end(label) - label);
    char word[DATA_WORD_BYTES + 1];
    int32_t number = 0;
    bool full = false;
    if (length > DATA_WORD_BYTES)
        return fail_word(reader, line, "the label is longer than 255 bytes");
    snprintf(word, sizeof word, "%.*s", (int)length, label);
    if (!base_text_is_clean(word))
        return fail_word(reader, line, "the label holds a control character or is not UTF-8");
    double value = NAN;
    const bool is_number = data_is_number(word, length);
    if (is_number)
        data_number_parse(&value, word);
    if (!is_number && !reader->data->not_numbers[reader->features]) {
        int status = base_format(&reader->data->not_numbers[reader->features],
                                 "%s: line %" PRId64 ": the label \"%.*s\" is not a number; --drop-column label "
                                 "leaves it out",
                                 reader->data->path, line, DATA_SHOWN_BYTES, word);
        if (status < 0)
            return status;
    }
    int status = data_words_find(&number, &full, words, word, length, value, !is_number);
    if (status == SHOAL_OK && full)
        return fail_word(reader, line, "there are more than 4096 different labels, and some are not numbers");
    *cell = number;
    return status;
}

/* Labels some of which are not numbers are words, all of them. */
static int take_words(data_words *words, svm_reader *reader)
{
    double *cell = (double *)(void *)reader->data->buffer.bytes + reader->features;
    int status = base_alloc(&reader->data->not_numbers, (size_t)reader->features + 1, sizeof *reader->data->not_numbers,
                            "columns");
    for (int64_t i = 0, line = 1; i < reader->pieces_count; i++) {
        const piece *from = &reader->pieces[i];
        int64_t rows = 0;
        for (const char *at = from->from; at < from->end && rows < from->rows && status == SHOAL_OK; line++) {
            const char *label = skip_spaces(at);
            at = line_end(at, from->end - 1) + 1;
            if (*label == '\n' || *label == '#')
                continue;
            status = take_word(words, reader, cell, label, line);
            cell += reader->features + 1;
            rows++;
        }
    }
    return status;
}

static int settle_words(svm_reader *reader)
{
    shoal_data *data = reader->data;
    data_words words = {0};
    int32_t *ranks = NULL;
    bool any = false;
    for (int64_t i = 0; i < reader->pieces_count; i++)
        any |= reader->pieces[i].any_words;
    if (!any)
        return SHOAL_OK;
    int status = take_words(&words, reader);
    data->words_count = words.count;
    if (status == SHOAL_OK)
        status = data_words_finish(&data->words, &ranks, &words);
    double *cell = (double *)(void *)data->buffer.bytes + reader->features;
    for (int64_t i = 0; i < reader->rows && status == SHOAL_OK; i++, cell += reader->features + 1)
        *cell = ranks[(int32_t)*cell];
    base_free(&ranks);
    data_words_release(&words);
    return status;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static int make_rows_dense(svm_reader *reader, const shoal_data_options *options)
{
    shoal_data *data = reader->data;
    int status = measure(reader, options);
    if (status < 0)
        return status;
    if (reader->features <= 0)
        return shoal_fail(SHOAL_INVALID, "%s: the rows have no features", data->path);
    if ((status = check_dense_size(reader, options)) < 0 ||
        (status = data_set_shape(data, (uint64_t)reader->rows, (uint64_t)reader->features + 1, SHOAL_FLOAT64)) < 0)
        return status;
    const size_t bytes = (size_t)reader->rows * data_row_bytes(data);
    if ((status = data_buffer_reserve(&data->buffer, bytes)) < 0)
        return status;
    data->buffer.size = bytes;
    data->values = data->buffer.bytes;
    data->label = reader->features;
    status = for_pieces(reader, fill_piece);
    if (status == SHOAL_OK)
        status = settle_words(reader);
    return status == SHOAL_OK ? name_columns(reader) : status;
}

static int open_svmlight(shoal_data *data, data_source *source, const shoal_data_options *options)
{
    svm_reader reader = {.data = data, .mapped_file = -1};
    data_buffer_init(&reader.loaded, data->path, options->memory);
    int status = base_pool_new(&reader.pool, base_cores());
    if (status == SHOAL_OK)
        status = take_text(&reader, source);
    if (status == SHOAL_OK)
        status = cut_pieces(&reader);
    if (status == SHOAL_OK)
        status = make_rows_dense(&reader, options);
    if (status == SHOAL_OK)
        status = base_format(&data->detail,
                             "svmlight, %" PRId64 " feature%s from index %" PRId64
                             " on and a label, %.3g%% of the values stored%s, %s",
                             reader.features, base_plural(reader.features), reader.first_index,
                             100.0 * (double)reader.entries / ((double)reader.rows * (double)reader.features),
                             data_source_detail(source), data_kept(data));
    base_pool_free(&reader.pool);
    base_free(&reader.pieces);
    base_free(&reader.tail);
    data_buffer_release(&reader.loaded);
    base_mapped_close(&reader.mapped);
    if (reader.mapped_file >= 0)
        close(reader.mapped_file);
    return status;
}

/* ---- recognising ------------------------------------------------------------------------------------------------- */

/* A number or numbers with commas, or a word that begins with a letter; not a date. */
static bool may_be_label(const char *from, const char *end)
{
    const size_t length = (size_t)(end - from);
    if (check_label(from, end) == FAULT_NO_LABEL)
        return false;
    return data_is_number(from, length) || strspn(from, "0123456789,") == length ||
           (unsigned char)((*from | 0x20) - 'a') < 26 || (unsigned char)*from >= 0x80;
}

/* Whether a line is a label and at least one index:value.  `whole` says that the last token is all there. */
static bool is_svmlight_line(const char *at, bool whole)
{
    const char *end = token_end(at);
    int64_t index, pairs = 0;
    if (!may_be_label(at, end) || !(at = skip_query(skip_spaces(end))))
        return false;
    for (; *at != '\n' && *at != '#'; at = skip_spaces(end)) {
        double value;
        const char *from = take_index(&index, at);
        end = token_end(at);
        if (*skip_spaces(end) == '\n' && !whole)
            break;
        if (!from || data_number_parse(&value, from) != end)
            return false;
        pairs++;
    }
    return pairs > 0;
}

/* The first line that has anything behind its label decides. */
static bool recognise_svmlight(const data_hint *hint)
{
    char head[DATA_HEAD_BYTES + 2];
    if (!hint->head || hint->head_size > DATA_HEAD_BYTES)
        return false;
    memcpy(head, hint->head, hint->head_size);
    strcpy(head + hint->head_size, "\n");
    const char *at = head + (strncmp(head, "\xef\xbb\xbf", 3) == 0 ? 3 : 0), *end = head + hint->head_size;
    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end + 1 - at)), *label = skip_spaces(at);
        at = newline + 1;
        if (*label == '\n' || *label == '#')
            continue;
        const char *next = skip_spaces(token_end(label));
        if (*next != '\n' && *next != '#')
            return is_svmlight_line(label, newline < end || hint->head_size < DATA_HEAD_BYTES);
    }
    return false;
}

const struct data_format data_svmlight = {.name = "svmlight", .recognise = recognise_svmlight, .open = open_svmlight};
