/* Arguments and commands of `shoal map`.  See map_words.h. */
#include "map_words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <shoal/error.h>

#include "base/memory.h"
#include "jobs.h"

/* ---- rows -------------------------------------------------------------------------------------------------------- */

void map_table_release(map_table *table)
{
    base_free(&table->cell);
    *table = (map_table){0};
}

int map_table_add(map_table *table, const char *const *value, int64_t count)
{
    const int columns = table->columns + 1;
    int64_t rows = table->columns == 0 || count < table->rows ? count : table->rows;
    const char **cell = NULL;
    int status = base_alloc_unset(&cell, (size_t)rows * (size_t)columns + 1, sizeof *cell, "the arguments of jobs");
    if (status < 0)
        return status;
    for (int64_t row = 0; row < rows; row++) {
        for (int i = 0; i < table->columns; i++)
            cell[row * columns + i] = table->cell[row * table->columns + i];
        cell[row * columns + columns - 1] = value[row];
    }
    base_free(&table->cell);
    *table = (map_table){.columns = columns, .rows = rows, .cell = cell};
    return SHOAL_OK;
}

int map_table_cross(map_table *table, const map_table *with)
{
    const int columns = table->columns + with->columns;
    int64_t rows = with->rows;
    const char **cell = NULL;
    size_t cells = 0;
    if ((table->columns > 0 && __builtin_mul_overflow(table->rows, with->rows, &rows)) ||
        !base_multiply(&cells, (size_t)rows, (size_t)columns))
        return shoal_fail(SHOAL_USAGE, "the sources of arguments make more jobs than there can be");
    int status = base_alloc_unset(&cell, cells + 1, sizeof *cell, "the arguments of jobs");
    if (status < 0)
        return status;
    for (int64_t row = 0; row < rows; row++) {
        const char **to = cell + row * columns;
        for (int i = 0; i < table->columns; i++)
            *to++ = table->cell[row / with->rows * table->columns + i];
        for (int i = 0; i < with->columns; i++)
            *to++ = with->cell[row % with->rows * with->columns + i];
    }
    base_free(&table->cell);
    *table = (map_table){.columns = columns, .rows = rows, .cell = cell};
    return SHOAL_OK;
}

int map_cut_values(const char ***value, int64_t *count, char *text, size_t size, char end)
{
    int64_t room = 0;
    *count = 0;
    *value = NULL;
    for (size_t at = 0; at < size;) {
        char *stop = memchr(text + at, end, size - at);
        size_t length = stop ? (size_t)(stop - text) - at : size - at;
        if (memchr(text + at, '\0', length))
            return shoal_fail(SHOAL_INVALID, "argument %lld has a NUL byte: with --null NUL ends each argument",
                              (long long)*count + 1);
        if (*count == room) {
            int64_t more = room ? 2 * room : 64;
            int status = base_grow(value, (size_t)room, (size_t)more, sizeof **value, "arguments");
            if (status < 0)
                return status;
            room = more;
        }
        (*value)[(*count)++] = text + at;
        text[at + length] = '\0';
        at += length + 1;
    }
    return SHOAL_OK;
}

/* ---- templates --------------------------------------------------------------------------------------------------- */

typedef enum piece_kind {
    PIECE_TEXT,
    PIECE_WHOLE,
    PIECE_STEM,      /* {.}: without its extension */
    PIECE_NAME,      /* {/}: what follows the last '/' */
    PIECE_FOLDER,    /* {//} */
    PIECE_NAME_STEM, /* {/.} */
    PIECE_NUMBER,    /* {#}: of the job, from 1 on */
    PIECE_AS_IT_IS,  /* arguments that are the command */
} piece_kind;

typedef struct piece {
    piece_kind kind;
    int column; /* -1: all */
    const char *text;
    size_t length;
} piece;

struct map_template {
    char *text;
    piece *piece;
    int pieces, room;
};

static int add_piece(map_template *self, piece one)
{
    if (self->pieces == self->room) {
        int room = self->room ? 2 * self->room : 8;
        int status = base_grow(&self->piece, (size_t)self->room, (size_t)room, sizeof *self->piece, "a template");
        if (status < 0)
            return status;
        self->room = room;
    }
    self->piece[self->pieces++] = one;
    return SHOAL_OK;
}

/* What stands at a brace; 0 bytes when that is just a brace. */
static size_t read_piece(piece *out, const char *at)
{
    static const struct {
        const char *text;
        piece_kind kind;
    } known[] = {{"}", PIECE_WHOLE},    {".}", PIECE_STEM},       {"/}", PIECE_NAME},
                 {"//}", PIECE_FOLDER}, {"/.}", PIECE_NAME_STEM}, {"#}", PIECE_NUMBER}};
    size_t digits = strspn(at + 1, "0123456789");
    int column = -1;
    if (digits > 4)
        return 0;
    if (digits > 0) {
        column = -1;
        for (size_t i = 0; i < digits; i++)
            column = (column < 0 ? 0 : column) * 10 + at[1 + i] - '0';
        column--;
    }
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strncmp(at + 1 + digits, known[i].text, strlen(known[i].text)) == 0 &&
            !(known[i].kind == PIECE_NUMBER && digits > 0)) {
            *out = (piece){.kind = known[i].kind, .column = digits > 0 ? column : -1};
            if (digits > 0 && column < 0)
                out->column = -2;
            return 1 + digits + strlen(known[i].text);
        }
    return 0;
}

static int cut_template(map_template *self, int columns, bool *stands)
{
    const char *from = self->text, *at = from;
    int status = SHOAL_OK;
    while (*at && status == SHOAL_OK) {
        piece one;
        size_t length = *at == '{' ? read_piece(&one, at) : 0;
        if (strncmp(at, "{%}", 3) == 0)
            return shoal_fail(SHOAL_USAGE, "{%%} is not known: jobs of workers have no slots");
        if (length == 0) {
            at++;
            continue;
        }
        if (one.column >= columns || one.column == -2)
            return shoal_fail(SHOAL_USAGE, "'%.*s' names a source of arguments that is not there: there %s %d",
                              (int)length, at, columns == 1 ? "is" : "are", columns);
        if (at > from)
            status = add_piece(self, (piece){.kind = PIECE_TEXT, .text = from, .length = (size_t)(at - from)});
        if (status == SHOAL_OK)
            status = add_piece(self, one);
        *stands = true;
        at += length;
        from = at;
    }
    if (status == SHOAL_OK && at > from)
        status = add_piece(self, (piece){.kind = PIECE_TEXT, .text = from, .length = (size_t)(at - from)});
    return status;
}

int map_template_new(map_template **out, const char *text, int columns, bool completes)
{
    map_template *self = NULL;
    bool stands = text == NULL;
    *out = NULL;
    int status = base_alloc(&self, 1, sizeof *self, "a template");
    if (status == SHOAL_OK && text)
        status = base_copy_text(&self->text, text);
    if (status == SHOAL_OK && text)
        status = cut_template(self, columns, &stands);
    else if (status == SHOAL_OK)
        status = add_piece(self, (piece){.kind = PIECE_AS_IT_IS, .column = -1});
    if (status == SHOAL_OK && !stands && completes) {
        status = add_piece(self, (piece){.kind = PIECE_TEXT, .text = " ", .length = 1});
        if (status == SHOAL_OK)
            status = add_piece(self, (piece){.kind = PIECE_WHOLE, .column = -1});
    }
    if (status < 0)
        map_template_free(&self);
    *out = self;
    return status;
}

void map_template_free(map_template **inout)
{
    if (!*inout)
        return;
    base_free(&(*inout)->text);
    base_free(&(*inout)->piece);
    base_free(inout);
}

/* As dirname(1) has it: what stands before the name, of which slashes at the end are a part. */
static void cut_folder(const char **from, size_t *length, const char *value)
{
    size_t end = strlen(value);
    while (end > 1 && value[end - 1] == '/')
        end--;
    while (end > 0 && value[end - 1] != '/')
        end--;
    while (end > 1 && value[end - 1] == '/')
        end--;
    *from = end > 0 ? value : ".";
    *length = end > 0 ? end : 1;
}

/* The part of an argument, as GNU parallel cuts it. */
static void part_of(const char **from, size_t *length, piece_kind kind, const char *value)
{
    const char *slash = strrchr(value, '/'), *name = slash ? slash + 1 : value, *dot = strrchr(name, '.');
    if (kind == PIECE_FOLDER) {
        cut_folder(from, length, value);
        return;
    }
    *from = kind == PIECE_NAME || kind == PIECE_NAME_STEM ? name : value;
    *length = strlen(*from);
    if ((kind == PIECE_STEM || kind == PIECE_NAME_STEM) && dot)
        *length = (size_t)(dot - *from);
}

static int write_value(FILE *stream, piece_kind kind, const char *value, bool quoted)
{
    const char *from;
    size_t length;
    char *part = NULL, *word = NULL;
    part_of(&from, &length, kind, value);
    if (!quoted || kind == PIECE_AS_IT_IS) {
        fwrite(from, 1, length, stream);
        return SHOAL_OK;
    }
    int status = base_format(&part, "%.*s", (int)length, from);
    if (status == SHOAL_OK)
        status = run_quote(&word, part);
    if (status == SHOAL_OK)
        fputs(word, stream);
    base_free(&part);
    base_free(&word);
    return status;
}

static int write_piece(FILE *stream, const piece *one, const map_table *table, int64_t row, bool quoted)
{
    const char *const *cell = table->cell + row * table->columns;
    int status = SHOAL_OK;
    if (one->kind == PIECE_TEXT) {
        fwrite(one->text, 1, one->length, stream);
    } else if (one->kind == PIECE_NUMBER) {
        fprintf(stream, "%lld", (long long)row + 1);
    } else if (one->column >= 0) {
        status = write_value(stream, one->kind, cell[one->column], quoted);
    } else {
        for (int i = 0; i < table->columns && status == SHOAL_OK; i++) {
            if (i > 0)
                fputc(' ', stream);
            status = write_value(stream, one->kind, cell[i], quoted);
        }
    }
    return status;
}

int map_template_fill(char **out, const map_template *self, const map_table *table, int64_t row, bool quoted)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    *out = NULL;
    if (!stream)
        return shoal_fail(SHOAL_MEMORY, "out of memory for a command");
    int status = SHOAL_OK;
    for (int i = 0; i < self->pieces && status == SHOAL_OK; i++)
        status = write_piece(stream, &self->piece[i], table, row, quoted);
    if (fclose(stream) != 0 && status == SHOAL_OK)
        status = shoal_fail(SHOAL_MEMORY, "out of memory for a command");
    if (status == SHOAL_OK)
        status = base_copy_text(out, text);
    free(text);
    return status;
}
