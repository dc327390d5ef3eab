/* See data_table.h. */
#include "data_table.h"

#include <errno.h>
#include <string.h>

#include <shoal/error.h>

#include "base/io.h"
#include "base/memory.h"
#include "base/text.h"
#include "data/format/data_text.h"

/* All that three clouds rent in all their regions is a few megabytes; more is another kind of file. */
enum { SIZE_MOST = 16 << 20 };

static int start(data_table *table, size_t length)
{
    const char *text = table->text;
    if (length >= 2 && (memcmp(text, "\xff\xfe", 2) == 0 || memcmp(text, "\xfe\xff", 2) == 0))
        return shoal_fail(SHOAL_INVALID, "%s: this is UTF-16 text; save it as UTF-8", table->name);
    /* Some programs put a mark before UTF-8. */
    table->at = table->text + (length >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0);
    table->end = table->text + length;
    return SHOAL_OK;
}

int data_table_init(data_table *out, const char *name, const char *text, size_t length)
{
    *out = (data_table){.name = name};
    int status = base_alloc(&out->text, length + 1, 1, "a table");
    if (status < 0)
        return status;
    memcpy(out->text, text, length);
    return start(out, length);
}

int data_table_read(data_table *out, const char *name, FILE *file, const char *what)
{
    size_t length = 0;
    *out = (data_table){.name = name};
    int status = base_read_whole(&out->text, &length, fileno(file), SIZE_MOST, what); /* leaves room for a newline */
    if (status == SHOAL_INVALID)
        shoal_fail(status, "%s is larger than %d MiB, so it is not %s", name, SIZE_MOST >> 20, what);
    else if (status == SHOAL_SYSTEM)
        shoal_fail_errno(status, errno, "%s can't be read", name);
    return status == SHOAL_OK ? start(out, length) : status;
}

void data_table_release(data_table *table)
{
    base_free(&table->text);
}

/* Cuts off the next line, which then ends with a newline at *stop; NULL at the end. */
static char *next_line(char **stop, data_table *table)
{
    char *line = table->at;
    if (line == table->end)
        return NULL;
    *stop = memchr(line, '\n', (size_t)(table->end - line));
    table->at = *stop ? *stop + 1 : table->end;
    *stop = *stop ? *stop : table->end;
    if (*stop > line && (*stop)[-1] == '\r')
        --*stop;
    **stop = '\n';
    table->line++;
    return line;
}

static int check_line(const data_table *table, const char *line, const char *stop)
{
    bool plain;
    for (size_t step; line < stop; line += step) {
        const unsigned char c = (unsigned char)*line;
        step = base_text_next(&plain, line);
        if ((c < ' ' && c != '\t') || c == 0x7f)
            return shoal_fail(SHOAL_INVALID, "%s: line %lld holds a control character, so this is not a table of text",
                              table->name, (long long)table->line);
        if (c >= 0x80 && step == 1)
            return shoal_fail(SHOAL_INVALID, "%s: line %lld is not UTF-8", table->name, (long long)table->line);
    }
    return SHOAL_OK;
}

static int split_line(data_table *table, const char *line, const char *stop)
{
    text_field field = {.next = line};
    for (table->fields = 0; !field.last;) {
        const long long number = table->line;
        if (table->fields == DATA_TABLE_FIELDS)
            return shoal_fail(SHOAL_INVALID, "%s: line %lld has more than %d fields", table->name, number,
                              DATA_TABLE_FIELDS);
        if (!data_text_take_field(&field, field.next, stop + 1, ','))
            return shoal_fail(SHOAL_INVALID, "%s: line %lld: a quote is not closed", table->name, number);
        if (!field.quoted && field.length && *field.text == '"')
            return shoal_fail(SHOAL_INVALID, "%s: line %lld: text after the closing quote of '%.*s'", table->name,
                              number, (int)strcspn(field.text + 1, "\""), field.text + 1);
        table->field[table->fields] = (char *)field.text; /* and is ended in place */
        data_text_copy_field(table->field[table->fields++], &field);
    }
    return SHOAL_OK;
}

bool data_table_next(int *status, data_table *table)
{
    for (char *stop, *line; (line = next_line(&stop, table));) {
        if ((*status = check_line(table, line, stop)) < 0)
            return false;
        line += strspn(line, " \t");
        if (line == stop || *line == '#')
            continue;
        *status = split_line(table, line, stop);
        return *status == SHOAL_OK;
    }
    return false;
}
