/* Columns by name and number.  See data_columns.h. */
#include "data_columns.h"

#include <inttypes.h>
#include <string.h>

#include "base/memory.h"
#include "base/option.h"
#include "base/text.h"
#include "data/table/data_select.h"
#include "data/data_internal.h"
#include "data_words.h"

/* Names in a message; a table may have thousands. */
enum { NAMES_SHOWN = 12, NEAREST_MOST = 10000 };

/* One piece of a list, without the blanks around it. */
typedef struct piece {
    const char *text;
    size_t length;
} piece;

static const char *name_of(const data_table_columns *table, int64_t column)
{
    if (!table->names)
        return column == table->label ? "label" : NULL; /* behind an image, whose values have no names */
    return table->names + table->offsets[column];
}

data_table_columns data_columns_of(const shoal_data *data)
{
    return (data_table_columns){data->path, data->columns, data->names, data->name_offsets, data->label};
}

/* ---- what is not a column ---------------------------------------------------------------------------------------- */

static int list_names(char **out, const data_table_columns *table)
{
    int status = base_copy_text(out, "; the columns are ");
    for (int64_t i = 0; i < table->count && i < NAMES_SHOWN && status == SHOAL_OK; i++) {
        char *longer = NULL;
        status = base_format(&longer, "%s%s%.*s", *out, i > 0 ? ", " : "", DATA_SHOWN_BYTES, name_of(table, i));
        base_free(out);
        *out = longer;
    }
    if (status == SHOAL_OK && table->count > NAMES_SHOWN) {
        char *longer = NULL;
        status = base_format(&longer, "%s and %" PRId64 " more", *out, table->count - NAMES_SHOWN);
        base_free(out);
        *out = longer;
    }
    return status;
}

int data_columns_advice(char **out, const data_table_columns *table, const char *wrong)
{
    const char **names = NULL, *near = NULL;
    *out = NULL;
    if (!table->names)
        return table->count == 1 ? base_copy_text(out, "; there is 1 column, without a name")
                                 : base_format(out, "; there are %" PRId64 " columns, without names", table->count);
    const int count = table->count < NEAREST_MOST ? (int)table->count : NEAREST_MOST;
    int status = base_alloc(&names, (size_t)count, sizeof *names, "names of columns");
    for (int i = 0; i < count && status == SHOAL_OK; i++)
        names[i] = name_of(table, i);
    if (status == SHOAL_OK)
        near = base_nearest(wrong, names, count);
    base_free(&names);
    if (status < 0)
        return status;
    status = near ? base_format(out, "; did you mean \"%.*s\"?", DATA_SHOWN_BYTES, near) : list_names(out, table);
    if (status == SHOAL_OK)
        base_text_clean(*out);
    return status;
}

static int fail_unknown(const data_table_columns *table, const char *option, const piece *wrong, const char *more)
{
    char *advice = NULL, *text = NULL;
    const int shown = wrong->length < DATA_SHOWN_BYTES ? (int)wrong->length : DATA_SHOWN_BYTES;
    int status = base_copy_text_n(&text, wrong->text, wrong->length);
    if (status == SHOAL_OK)
        status = data_columns_advice(&advice, table, text);
    if (status == SHOAL_OK)
        status = shoal_fail(SHOAL_USAGE, "%s: %s: there is no column \"%.*s\"%s%s", table->path, option, shown,
                            wrong->text, more, advice);
    base_free(&advice);
    base_free(&text);
    return status;
}

/* ---- one piece of a list ----------------------------------------------------------------------------------------- */

/* Numbers from 1, or from -1 backwards, as columns from 0; NULL when there is none, else its end. */
static const char *parse_column(int64_t *out, const char *at, const char *end, int64_t count)
{
    const bool backwards = at < end && *at == '-';
    const char *digits = at + backwards;
    int64_t number = 0;
    for (at = digits; at < end && *at >= '0' && *at <= '9'; at++)
        number = number <= count ? number * 10 + (*at - '0') : number;
    if (at == digits || number < 1 || number > count)
        return NULL;
    *out = backwards ? count - number : number - 1;
    return at;
}

/* "3", "-1", "3-7", "3--1". */
static bool parse_range(int64_t *first, int64_t *last, const piece *of, int64_t count)
{
    const char *end = of->text + of->length, *at = parse_column(first, of->text, end, count);
    *last = *first;
    if (at && at < end && *at == '-')
        at = parse_column(last, at + 1, end, count);
    return at == end && at != NULL && *first <= *last;
}

static bool is_named(const data_table_columns *table, int64_t column, const piece *of)
{
    const char *name = name_of(table, column);
    return name && strlen(name) == of->length && memcmp(name, of->text, of->length) == 0;
}

/* What one list says of the columns. */
typedef struct listing {
    const data_table_columns *table;
    const char *option;
    bool *listed;
    int64_t *order, count;
} listing;

static void add_column(listing *self, int64_t column)
{
    if (!self->listed[column])
        self->order[self->count++] = column;
    self->listed[column] = true;
}

/* A name counts first, and means all columns of that name. */
static int add_piece(listing *self, const piece *of)
{
    int64_t first, last, before = self->count;
    bool found = false;
    for (int64_t i = 0; of->length > 0 && i < self->table->count; i++)
        if (is_named(self->table, i, of)) {
            add_column(self, i);
            found = true;
        }
    if (!found && parse_range(&first, &last, of, self->table->count))
        for (found = true; first <= last; first++)
            add_column(self, first);
    if (!found)
        return fail_unknown(self->table, self->option, of, "");
    if (self->count == before)
        return shoal_fail(SHOAL_USAGE, "%s: %s: column \"%.*s\" is listed twice", self->table->path, self->option,
                          of->length < DATA_SHOWN_BYTES ? (int)of->length : DATA_SHOWN_BYTES, of->text);
    return SHOAL_OK;
}

static int read_list(listing *out, const data_table_columns *table, const char *option, const char *list)
{
    *out = (listing){.table = table, .option = option};
    int status = base_alloc(&out->listed, (size_t)table->count, sizeof *out->listed, "columns");
    if (status == SHOAL_OK)
        status = base_alloc(&out->order, (size_t)table->count, sizeof *out->order, "columns");
    while (status == SHOAL_OK && list) {
        const char *comma = strchrnul(list, ','), *start = list + strspn(list, " ");
        piece of = {start, start < comma ? (size_t)(comma - start) : 0};
        while (of.length && of.text[of.length - 1] == ' ')
            of.length--;
        status = add_piece(out, &of);
        list = *comma ? comma + 1 : NULL;
    }
    return status;
}

static void release_list(listing *list)
{
    base_free(&list->listed);
    base_free(&list->order);
}

int data_columns_list(int64_t **out, int64_t *count, const data_table_columns *table, const char *option,
                      const char *list)
{
    listing listed = {0};
    int status = read_list(&listed, table, option, list);
    *out = NULL;
    if (status == SHOAL_OK) {
        *out = listed.order;
        *count = listed.count;
        listed.order = NULL;
    }
    release_list(&listed);
    return status;
}

/* ---- all together ------------------------------------------------------------------------------------------------ */

/* -1 when it is none. */
static int find_column(int64_t *out, const data_table_columns *table, const char *option, const char *column)
{
    const piece of = {column, strlen(column)};
    int64_t last;
    *out = -1;
    for (int64_t i = 0; of.length > 0 && i < table->count; i++) {
        if (!is_named(table, i, &of))
            continue;
        if (*out >= 0)
            return shoal_fail(SHOAL_USAGE,
                              "%s: %s: columns %" PRId64 " and %" PRId64
                              " are both called \"%s\"; give the number of the one that is meant",
                              table->path, option, *out + 1, i + 1, column);
        *out = i;
    }
    if (*out < 0 && (!parse_range(out, &last, &of, table->count) || last != *out))
        *out = -1;
    return SHOAL_OK;
}

int data_columns_find(int64_t *out, const data_table_columns *table, const char *option, const char *column, bool file)
{
    int status = find_column(out, table, option, column);
    if (status == SHOAL_OK && *out < 0 && !file)
        return fail_unknown(table, option, &(piece){column, strlen(column)}, " and no such file");
    return status;
}

/* Without a word the target is what the file calls its label, or its last column; if that is not the last that is
 * read, it has to be said. */
static int find_last(int64_t *out, const data_table_columns *table, const data_chosen *chosen, bool picked)
{
    *out = table->label >= 0 ? table->label : chosen->columns[chosen->count - 1];
    if (table->label >= 0)
        return SHOAL_OK;
    if (*out == table->count - 1)
        return SHOAL_OK;
    return shoal_fail(SHOAL_USAGE,
                      "%s: %s leaves open which column is the target, since the file's last one is not the last that "
                      "is read; name it with --target",
                      table->path, picked ? "--columns" : "--drop-column");
}

static int place_target(data_chosen *chosen, const data_table_columns *table, const shoal_data_options *options,
                        const bool *dropped)
{
    int64_t target = -1;
    int status = *options->target ? find_column(&target, table, "--target", options->target)
                                  : find_last(&target, table, chosen, options->keep_columns != NULL);
    if (status == SHOAL_OK && target < 0 && options->need_target)
        return fail_unknown(table, "--target", &(piece){options->target, strlen(options->target)}, " and no such file");
    if (status < 0 || target < 0)
        return status;
    if (dropped && dropped[target])
        return shoal_fail(SHOAL_USAGE, "%s: --drop-column leaves out column %" PRId64 ", which is the target",
                          table->path, target + 1);
    for (chosen->target = 0; chosen->target < chosen->count; chosen->target++)
        if (chosen->columns[chosen->target] == target)
            return SHOAL_OK;
    chosen->columns[chosen->count++] = target;
    return SHOAL_OK;
}

static int choose(data_chosen *out, const data_table_columns *table, const shoal_data_options *options,
                  const listing *kept, const listing *dropped)
{
    for (int64_t i = 0; i < (options->keep_columns ? kept->count : table->count); i++) {
        const int64_t column = options->keep_columns ? kept->order[i] : i;
        if (!options->drop_columns || !dropped->listed[column])
            out->columns[out->count++] = column;
    }
    if (out->count == 0)
        return shoal_fail(SHOAL_USAGE, "%s: no column is left: there are %" PRId64 ", and all are left out",
                          table->path, table->count);
    return options->target ? place_target(out, table, options, dropped->listed) : SHOAL_OK;
}

int data_columns_choose(data_chosen *out, const data_table_columns *table, const shoal_data_options *options)
{
    listing kept = {0}, dropped = {0};
    *out = (data_chosen){.target = -1};
    int status = base_alloc(&out->columns, (size_t)table->count, sizeof *out->columns, "columns");
    if (status == SHOAL_OK && options->keep_columns)
        status = read_list(&kept, table, "--columns", options->keep_columns);
    if (status == SHOAL_OK && options->drop_columns)
        status = read_list(&dropped, table, "--drop-column", options->drop_columns);
    if (status == SHOAL_OK)
        status = choose(out, table, options, &kept, &dropped);
    release_list(&kept);
    release_list(&dropped);
    if (status < 0)
        base_free(&out->columns);
    return status;
}

/* Words of a label are those of the target if it is that, and it is a column like others if it is asked for. */
static void settle_label(shoal_data *data, const shoal_data_options *options)
{
    if (data->label < 0)
        return;
    if (data->label != data->target) {
        data_words_free(&data->words, data->words_count);
        data->words_count = 0;
    } else if (data->not_numbers) {
        base_free(&data->not_numbers[data->label]);
    }
    if (options->keep_columns)
        data->label = -1;
}

int data_columns_apply(shoal_data **data, const shoal_data_options *options)
{
    const data_table_columns table = data_columns_of(*data);
    data_chosen chosen;
    if (!options->keep_columns && !options->drop_columns && !options->target) {
        settle_label(*data, options);
        return SHOAL_OK;
    }
    int status = data_columns_choose(&chosen, &table, options);
    if (status < 0)
        return status;
    if (options->keep_columns || options->drop_columns)
        status = data_select(data, chosen.columns, chosen.count);
    (*data)->target = chosen.target;
    base_free(&chosen.columns);
    if (status == SHOAL_OK)
        settle_label(*data, options);
    return status;
}
