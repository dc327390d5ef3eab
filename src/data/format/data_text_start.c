/* The start of a text file: its delimiter, the names of its columns, and which of them are read.  See data_text.h;
 * docs/data.md says what is decided and how. */
#include "data_text.h"

#include <string.h>

#include "base/memory.h"

/* ---- finding the delimiter --------------------------------------------------------------------------------------- */

/* What the first two lines look like with one delimiter. */
struct sample {
    char delimiter;
    int lines;
    int64_t fields[2];
    bool all_numbers[2]; /* or empty */
};

/* Counts the fields of the line at reader->at and moves past it. */
static int sample_line(text_reader *reader, struct sample *sample)
{
    text_field field;
    const char *at = reader->at;
    int line = sample->lines;
    sample->all_numbers[line] = true;
    do {
        if (!data_text_take_field(&field, at, reader->end, sample->delimiter))
            return INCOMPLETE;
        sample->fields[line]++;
        if (field.length && !data_text_is_number(&field))
            sample->all_numbers[line] = false;
        at = field.next;
    } while (!field.last);
    sample->lines++;
    reader->at = at;
    return SHOAL_OK;
}

/* Looks at up to two lines and leaves the reader where it was. */
static int take_sample(text_reader *reader, struct sample *sample)
{
    text_reader here = *reader;
    reader->delimiter = sample->delimiter;
    int status = sample_line(reader, sample);
    if (status == SHOAL_OK) {
        status = data_text_skip_to_row(reader);
        if (status == SHOAL_OK)
            status = sample_line(reader, sample);
        else if (reader->ended)
            status = SHOAL_OK;
    }
    *reader = here;
    return status;
}

/* How sure we can be of a delimiter; 0 means that it separates nothing. */
static int rate_sample(const struct sample *sample)
{
    if (sample->lines == 0 || sample->fields[0] < 2)
        return 0;
    if (sample->lines == 1 || sample->fields[0] == sample->fields[1])
        return sample->all_numbers[sample->lines - 1] ? 3 : 2;
    /* A ragged file, or a single column whose header has a blank in it: there only the header would be split. */
    return sample->fields[1] > 1 || sample->all_numbers[0] ? 1 : 0;
}

/* Sets the delimiter.  Of those rated equal the first wins; a text without any is one column. */
static int detect_delimiter(text_reader *reader)
{
    static const char candidates[] = {'\t', ';', ',', ' '};
    int best = 0;
    bool any_complete = false;
    reader->delimiter = ',';
    for (size_t i = 0; i < sizeof candidates; i++) {
        struct sample sample = {.delimiter = candidates[i]};
        if (take_sample(reader, &sample) == INCOMPLETE)
            continue;
        any_complete = true;
        int rating = rate_sample(&sample);
        if (rating > best) {
            best = rating;
            reader->delimiter = candidates[i];
        }
    }
    return any_complete ? SHOAL_OK : INCOMPLETE;
}

/* ---- the first line ---------------------------------------------------------------------------------------------- */

/* Keeps the names of all fields of the header line and moves past it. */
static int take_header(text_reader *reader)
{
    shoal_data *data = reader->data;
    text_field field = {.next = reader->at};
    size_t room = reader->first_line_bytes + (size_t)reader->fields;
    int status = base_alloc(&data->names, room, 1, "names of columns");
    if (status == SHOAL_OK)
        status = base_alloc(&reader->names, (size_t)reader->fields, sizeof *reader->names, "names of columns");
    if (status < 0)
        return status;
    char *to = data->names;
    for (int64_t i = 0; i < reader->fields; i++) {
        data_text_take_field(&field, field.next, reader->end, reader->delimiter);
        reader->names[i] = (size_t)(to - data->names);
        to += data_text_copy_field(to, &field) + 1;
    }
    reader->line += data_text_count_newlines(reader->at, field.next);
    reader->at = field.next;
    return SHOAL_OK;
}

int data_text_read_start(text_reader *reader)
{
    static int (*const steps[])(text_reader *) = {data_text_skip_to_row, detect_delimiter, data_text_skip_to_row,
                                                  data_text_look_at_header};
    int status = SHOAL_OK;
    for (size_t i = 0; status == SHOAL_OK && i < sizeof steps / sizeof *steps; i++)
        status = data_text_with_enough(reader, steps[i]);
    if (status == INCOMPLETE && reader->at == reader->end)
        return shoal_fail(SHOAL_INVALID, "%s: there are no rows", reader->data->path);
    if (status == INCOMPLETE)
        return shoal_fail(SHOAL_INVALID, "%s: line %lld: a quote is opened and never closed", reader->data->path,
                          (long long)reader->line);
    return status == SHOAL_OK && reader->has_header ? take_header(reader) : status;
}

/* ---- columns ----------------------------------------------------------------------------------------------------- */

/* The names of the columns that are read. */
static int choose_names(text_reader *reader, const data_chosen *chosen)
{
    shoal_data *data = reader->data;
    if (!data->names)
        return SHOAL_OK;
    int status = base_alloc(&data->name_offsets, (size_t)chosen->count, sizeof *data->name_offsets, "names of columns");
    for (int64_t i = 0; i < chosen->count && status == SHOAL_OK; i++)
        data->name_offsets[i] = reader->names[chosen->columns[i]];
    return status;
}

int data_text_choose_columns(text_reader *reader, const shoal_data_options *options)
{
    const data_table_columns table = {reader->data->path, reader->fields, reader->data->names, reader->names,
                                      .label = -1};
    data_chosen chosen = {0};
    int status = data_columns_choose(&chosen, &table, options);
    if (status == SHOAL_OK)
        status = base_alloc(&reader->place, (size_t)reader->fields, sizeof *reader->place, "columns");
    if (status == SHOAL_OK)
        status = choose_names(reader, &chosen);
    for (int64_t i = 0; i < reader->fields && status == SHOAL_OK; i++)
        reader->place[i] = -1;
    for (int64_t i = 0; i < chosen.count && status == SHOAL_OK; i++)
        reader->place[chosen.columns[i]] = i;
    reader->all_in_order = chosen.target < 0 && chosen.count == reader->fields;
    for (int64_t i = 0; i < chosen.count && status == SHOAL_OK; i++)
        reader->all_in_order &= chosen.columns[i] == i;
    reader->kept = chosen.count;
    reader->target = reader->data->target = chosen.target;
    base_free(&chosen.columns);
    return status;
}
