/* Whether the first line of a text file holds names.  See data_text.h; docs/data.md has the rule for people.
 *
 * The first line is compared with the rows below it, as many as are at hand, whatever columns are then read.  What is
 * taken for a header is lost as a row, so where both are likely nothing is decided: the caller has to say. */
#include "data_text.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "data/table/data_missing.h"

enum { ROWS_COMPARED = 100, YEAR_LEAST = 1000, YEAR_MOST = 2999 };

/* A cell of the first line and what is below it. */
typedef struct first_cell {
    const char *text;
    size_t length;
    bool is_text, is_number;
    double value;            /* of a number */
    bool text_below, recurs; /* some cell below is text; is the same text */
    int64_t numbers_below;   /* how many */
    double least_below, most_below;
} first_cell;

typedef struct first_line {
    first_cell *cell;
    int64_t fields, rows; /* rows that it was compared with */
    bool any_text, any_number, any_number_below, any_recurs;
} first_line;

/* ---- looking ----------------------------------------------------------------------------------------------------- */

static int take_first_line(first_line *line, text_reader *reader)
{
    text_field field = {.next = reader->at};
    for (int64_t i = 0; !field.last; i++) {
        if (!data_text_take_field(&field, field.next, reader->end, reader->delimiter))
            return INCOMPLETE;
        first_cell *cell = &line->cell[i];
        *cell = (first_cell){.text = field.text, .length = field.length};
        const bool missing = data_is_missing(field.text, field.length);
        cell->is_number = !missing && data_text_is_number(&field);
        cell->is_text = !missing && !cell->is_number;
        if (cell->is_number)
            data_number_parse(&cell->value, field.text);
        line->any_text |= cell->is_text;
        line->any_number |= cell->is_number;
    }
    reader->at = field.next;
    return SHOAL_OK;
}

static void compare_cell(first_cell *cell, const text_field *below)
{
    double value;
    if (data_is_missing(below->text, below->length))
        return;
    if (!data_text_is_number(below)) {
        cell->text_below = true;
        cell->recurs |= cell->length == below->length && memcmp(cell->text, below->text, below->length) == 0;
        return;
    }
    data_number_parse(&value, below->text);
    cell->least_below = cell->numbers_below == 0 ? value : fmin(cell->least_below, value);
    cell->most_below = cell->numbers_below == 0 ? value : fmax(cell->most_below, value);
    cell->numbers_below++;
}

/* Compares one row; a ragged one is for others to refuse. */
static int compare_row(first_line *line, text_reader *reader)
{
    text_field field = {.next = reader->at};
    for (int64_t i = 0; !field.last; i++) {
        if (!data_text_take_field(&field, field.next, reader->end, reader->delimiter))
            return INCOMPLETE;
        if (i < line->fields)
            compare_cell(&line->cell[i], &field);
    }
    reader->at = field.next;
    line->rows++;
    return SHOAL_OK;
}

/* The rows at hand; one at least, if there is any. */
static int compare_rows(first_line *line, text_reader *reader)
{
    int status = SHOAL_OK;
    while (status == SHOAL_OK && line->rows < ROWS_COMPARED) {
        status = data_text_skip_to_row(reader);
        if (status == SHOAL_OK)
            status = compare_row(line, reader);
    }
    for (int64_t i = 0; i < line->fields; i++) {
        line->any_number_below |= line->cell[i].numbers_below > 0;
        line->any_recurs |= line->cell[i].is_text && line->cell[i].recurs;
    }
    return status == INCOMPLETE && line->rows == 0 && !reader->ended ? INCOMPLETE : SHOAL_OK;
}

/* ---- deciding ---------------------------------------------------------------------------------------------------- */

/* All its numbers are years, none twice, and not like the numbers below. */
static bool names_years(const first_line *line)
{
    bool seen[YEAR_MOST + 1] = {false};
    for (int64_t i = 0; i < line->fields; i++) {
        const first_cell *cell = &line->cell[i];
        if (!cell->is_number)
            continue;
        if (cell->length != 4 || !(cell->value >= YEAR_LEAST && cell->value <= YEAR_MOST) ||
            cell->value != floor(cell->value) || seen[(int)cell->value])
            return false;
        if (cell->numbers_below > 0 && cell->value >= cell->least_below && cell->value <= cell->most_below)
            return false;
        seen[(int)cell->value] = true;
    }
    return line->rows > 0;
}

/* ",0,1,2": what pandas writes above an array. */
static bool counts_columns(const first_line *line)
{
    if (line->fields < 3 || line->cell[0].length > 0 || line->rows == 0)
        return false;
    for (int64_t i = 1; i < line->fields; i++)
        if (!line->cell[i].is_number || line->cell[i].value != (double)(i - 1))
            return false;
    return true;
}

/* Cells that hold text where all below are numbers: names in a header, typing errors in a row. */
static int64_t count_text_above_numbers(const first_line *line)
{
    int64_t count = 0;
    for (int64_t i = 0; i < line->fields; i++)
        count += line->cell[i].is_text && line->cell[i].numbers_below > 0 && !line->cell[i].text_below;
    return count;
}

static int64_t count_numbers(const first_line *line)
{
    int64_t count = 0;
    for (int64_t i = 0; i < line->fields; i++)
        count += line->cell[i].is_number;
    return count;
}

static int fail_unclear(const text_reader *reader)
{
    const char *end = reader->at + strcspn(reader->at, "\r\n");
    const int shown = end - reader->at < DATA_SHOWN_BYTES ? (int)(end - reader->at) : DATA_SHOWN_BYTES;
    return shoal_fail(SHOAL_INVALID,
                      "%s: line %lld (%.*s%s) may be a header or a row; use --header yes if it holds the names of "
                      "columns, --header no if it is a row",
                      reader->data->path, (long long)reader->line, shown, reader->at,
                      end - reader->at > shown ? "..." : "");
}

static int decide_header(text_reader *reader, const first_line *line)
{
    bool *header = &reader->has_header;
    const int64_t above_numbers = count_text_above_numbers(line);
    if (!line->any_text)
        *header = counts_columns(line);
    else if (!line->any_number)
        *header = line->any_number_below || !line->any_recurs;
    else if (line->rows == 0 || line->any_recurs)
        *header = false;
    else if (names_years(line) || above_numbers > count_numbers(line))
        *header = true;
    else if (above_numbers > 0)
        reader->may_be_header = true; /* which is told when the cell is read */
    else
        return fail_unclear(reader);
    return SHOAL_OK;
}

/* ---- the step ---------------------------------------------------------------------------------------------------- */

static int count_fields(text_reader *reader)
{
    text_field field = {.next = reader->at};
    for (reader->fields = 0; !field.last; reader->fields++)
        if (!data_text_take_field(&field, field.next, reader->end, reader->delimiter))
            return INCOMPLETE;
    reader->first_line = reader->line;
    reader->first_line_at = data_text_position(reader);
    reader->first_line_bytes = (size_t)(field.next - reader->at);
    return SHOAL_OK;
}

static int look_for_header(text_reader *reader)
{
    first_line line = {.fields = reader->fields};
    text_reader ahead = *reader;
    int status = base_alloc(&line.cell, (size_t)line.fields, sizeof *line.cell, "names of columns");
    if (status == SHOAL_OK)
        status = take_first_line(&line, &ahead);
    if (status == SHOAL_OK)
        status = compare_rows(&line, &ahead);
    if (status == SHOAL_OK)
        status = decide_header(reader, &line);
    base_free(&line.cell);
    return status;
}

int data_text_look_at_header(text_reader *reader)
{
    int status = count_fields(reader);
    reader->has_header = reader->header == SHOAL_HEADER_YES;
    return status == SHOAL_OK && reader->header == SHOAL_HEADER_AUTO ? look_for_header(reader) : status;
}
