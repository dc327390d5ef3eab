/* shoal data info: what data sets are. */
#include "cli.h"

#include <inttypes.h>
#include <string.h>

#include "base/memory.h"
#include "data/data_internal.h"
#include "data/format/data_members.h"
#include "data/table/data_missing.h"

typedef struct settings {
    cli_common common;
    shoal_data_options data;
    bool json;
} settings;

static const shoal_option info_rows[] = {
    {"json", 0, SHOAL_OPTION_FLAG, offsetof(settings, json), NULL, .help = "print one JSON object for each file"},
    {0},
};
static const shoal_option *const info_options = info_rows;

static const base_option_group groups[] = {
    {"Printing", &info_options, 0},
    {"Reading the data", &run_data_options, offsetof(settings, data)},
    {"Help", &cli_common_options, offsetof(settings, common)},
    {0},
};

/* What there is at an address: rows, or the arrays of a file that holds several. */
typedef struct described {
    const char *address;
    shoal_data *data;
    data_missing missing;
    data_members arrays; /* of none when there are rows */
} described;

static void described_release(described *it)
{
    shoal_data_free(&it->data);
    data_members_release(&it->arrays);
}

/* A table that no learner would take as it is can still be described. */
static int open_described(described *out, const char *address, shoal_data_options options)
{
    *out = (described){.address = address};
    int status = data_members_find(&out->arrays, address);
    if (status < 0 || data_members_with_rows(&out->arrays) > 1 ||
        (out->arrays.count > 0 && data_members_with_rows(&out->arrays) == 0))
        return status;
    options.keep_text = true;
    if (options.missing == SHOAL_MISSING_REFUSE)
        options.missing = SHOAL_MISSING_KEEP;
    status = shoal_data_open(&out->data, address, &options);
    if (status == SHOAL_OK)
        cli_tell_skipped(out->data);
    return status == SHOAL_OK && options.missing == SHOAL_MISSING_KEEP && out->data->format == &data_text
               ? data_missing_count(&out->missing, out->data)
               : status;
}

static int64_t value_bytes(const shoal_data *data)
{
    return shoal_data_rows(data) * shoal_data_columns(data) * (int64_t)shoal_type_size(shoal_data_type(data));
}

/* ---- as JSON ----------------------------------------------------------------------------------------------------- */

static json_t *json_text_columns(const shoal_data *data)
{
    json_t *list = json_array();
    for (int64_t i = 0; i < shoal_data_columns(data); i++)
        if (shoal_data_column_text(data, i))
            json_array_append_new(list, json_integer(i + 1));
    return list;
}

/* Of a row. */
static json_t *json_shape(const shoal_data *data)
{
    const int64_t *shape;
    const int dimensions = shoal_data_dimensions(data, &shape);
    json_t *list = json_array();
    for (int i = 0; i < dimensions; i++)
        if (json_array_append_new(list, json_integer(shape[i])) < 0)
            break;
    return list;
}

static void json_rows(json_t **object, const shoal_data *data, const data_missing *missing)
{
    base_json_put(object, "format", json_string(shoal_data_format(data)));
    base_json_put(object, "detail", base_json_text(shoal_data_detail(data)));
    base_json_put(object, "rows", json_integer(shoal_data_rows(data)));
    base_json_put(object, "columns", json_integer(shoal_data_columns(data)));
    base_json_put(object, "shape", json_shape(data));
    base_json_put(object, "type", json_string(shoal_type_name(shoal_data_type(data))));
    base_json_put(object, "bytes", json_integer(value_bytes(data)));
    cli_json_reading(object, data);
    if (shoal_data_column_name(data, 0)) {
        json_t *names = json_array();
        for (int64_t i = 0; i < shoal_data_columns(data); i++)
            if (json_array_append_new(names, base_json_text(shoal_data_column_name(data, i))) < 0)
                break;
        base_json_put(object, "names", names);
    }
    base_json_put(object, "text_columns", json_text_columns(data));
    if (missing->values > 0) {
        base_json_put(object, "missing_values", json_integer(missing->values));
        base_json_put(object, "missing_rows", json_integer(missing->rows));
    }
}

static json_t *json_array_of(const data_member *member)
{
    json_t *object = json_object(), *shape = json_array();
    for (int i = 0; i < member->rank; i++)
        if (json_array_append_new(shape, json_integer((json_int_t)member->shape[i])) < 0)
            break;
    base_json_put(&object, "name", base_json_text(member->name));
    base_json_put(&object, "shape", shape);
    base_json_put(&object, "type", base_json_text(member->type));
    base_json_put(&object, "readable", json_boolean(member->has_rows));
    return object;
}

static int print_described_json(const described *it)
{
    json_t *object = json_object();
    base_json_put(&object, "path", base_json_text(it->data ? shoal_data_path(it->data) : it->address));
    if (it->data) {
        json_rows(&object, it->data, &it->missing);
    } else {
        json_t *arrays = json_array();
        for (int64_t i = 0; i < it->arrays.count; i++)
            if (json_array_append_new(arrays, json_array_of(&it->arrays.member[i])) < 0)
                break;
        base_json_put(&object, "arrays", arrays);
    }
    return cli_print_json(object);
}

/* A file that can't be read has an object, too, so that there is one for each. */
static int print_failed_json(const char *address)
{
    json_t *object = json_object();
    base_json_put(&object, "path", base_json_text(address));
    base_json_put(&object, "error", base_json_text(shoal_error()));
    return cli_print_json(object);
}

/* ---- one data set ------------------------------------------------------------------------------------------------ */

/* Columns of text, which learners can only use as a target. */
static void print_text_columns(const shoal_data *data)
{
    const char *before = "text      ";
    for (int64_t i = 0; i < shoal_data_columns(data); i++) {
        if (!shoal_data_column_text(data, i))
            continue;
        printf("%scolumn %" PRId64, before, i + 1);
        before = ", ";
        if (shoal_data_column_name(data, i)) {
            fputs(" (", stdout);
            cli_put_text(stdout, shoal_data_column_name(data, i));
            fputc(')', stdout);
        }
    }
    if (*before == ',')
        putchar('\n');
}

/* Of rows that are more than a list: "shape     28 x 28". */
static void print_shape(const shoal_data *data)
{
    const int64_t *shape;
    const int dimensions = shoal_data_dimensions(data, &shape);
    for (int i = 0; i < dimensions && dimensions > 1; i++)
        printf("%s%" PRId64, i ? " x " : "\nshape     ", shape[i]);
}

static void print_rows(const shoal_data *data, const data_missing *missing)
{
    fputs("\nformat    ", stdout);
    cli_put_text(stdout, shoal_data_detail(data));
    printf("\nrows      %" PRId64, shoal_data_rows(data));
    cli_print_reading(stdout, data, shoal_data_columns(data));
    printf("\ncolumns   %" PRId64, shoal_data_columns(data));
    print_shape(data);
    printf("\ntype      %s\nbytes     %" PRId64 "\n", shoal_type_name(shoal_data_type(data)), value_bytes(data));
    if (shoal_data_column_name(data, 0)) {
        fputs("names     ", stdout);
        for (int64_t i = 0; i < shoal_data_columns(data); i++) {
            fputs(i ? ", " : "", stdout);
            cli_put_text(stdout, shoal_data_column_name(data, i));
        }
        putchar('\n');
    }
    print_text_columns(data);
    if (missing->values > 0)
        printf("missing   %" PRId64 " value%s in %" PRId64 " row%s\n", missing->values, base_plural(missing->values),
               missing->rows, base_plural(missing->rows));
}

/* "array     x_train: 60000x28x28 uint8" */
static int print_arrays(const data_members *arrays)
{
    int status = SHOAL_OK;
    putchar('\n');
    for (int64_t i = 0; i < arrays->count && status == SHOAL_OK; i++) {
        const data_member *member = &arrays->member[i];
        char *shape = NULL;
        if ((status = data_member_shape(&shape, member)) < 0)
            break;
        fputs("array     ", stdout);
        cli_put_text(stdout, member->name);
        printf(": %s%s%s%s\n", shape, *shape ? " " : "", member->has_rows ? member->type : data_member_what(member),
               member->has_rows ? "" : ", which is not read");
        base_free(&shape);
    }
    return status;
}

static int print_described(const described *it)
{
    fputs("path      ", stdout);
    cli_put_text(stdout, it->data ? shoal_data_path(it->data) : it->address);
    if (!it->data)
        return print_arrays(&it->arrays);
    print_rows(it->data, &it->missing);
    return SHOAL_OK;
}

/* ---- several ----------------------------------------------------------------------------------------------------- */

/* A line of the table; the last column may be of any width. */
enum { TABLE_COLUMNS = 6 };
typedef struct table_line {
    char *cell[TABLE_COLUMNS];
} table_line;

typedef struct table {
    table_line *line;
    int64_t count, room;
} table;

static int table_add(table_line **out, table *table)
{
    if (table->count == table->room) {
        const int64_t room = 2 * table->room + 16;
        int status = base_grow(&table->line, (size_t)table->count, (size_t)room, sizeof *table->line, "a table");
        if (status < 0)
            return status;
        table->room = room;
    }
    *out = &table->line[table->count++];
    **out = (table_line){{0}};
    return SHOAL_OK;
}

static void table_release(table *table)
{
    for (int64_t i = 0; i < table->count; i++)
        for (int k = 0; k < TABLE_COLUMNS; k++)
            base_free(&table->line[i].cell[k]);
    base_free(&table->line);
}

static int add_rows(table *table, const shoal_data *data)
{
    table_line *line;
    int status = table_add(&line, table);
    if (status == SHOAL_OK)
        status = base_copy_text(&line->cell[0], shoal_data_path(data));
    if (status == SHOAL_OK)
        status = base_copy_text(&line->cell[1], shoal_data_format(data));
    if (status == SHOAL_OK)
        status = base_format(&line->cell[2], "%" PRId64, shoal_data_rows(data));
    if (status == SHOAL_OK)
        status = base_format(&line->cell[3], "%" PRId64, shoal_data_columns(data));
    if (status == SHOAL_OK)
        status = base_copy_text(&line->cell[4], shoal_type_name(shoal_data_type(data)));
    return status == SHOAL_OK ? base_copy_text(&line->cell[5], shoal_data_detail(data)) : status;
}

/* Each array by the address that names it. */
static int add_arrays(table *table, const char *address, const data_members *arrays)
{
    int status = SHOAL_OK;
    for (int64_t i = 0; i < arrays->count && status == SHOAL_OK; i++) {
        const data_member *member = &arrays->member[i];
        table_line *line;
        char *shape = NULL;
        uint64_t columns = 1;
        if ((status = table_add(&line, table)) < 0)
            return status;
        data_fold_shape(&columns, member->shape, member->rank);
        status = data_member_shape(&shape, member);
        if (status == SHOAL_OK)
            status = base_format(&line->cell[0], "%s:%s", address, member->name);
        if (status == SHOAL_OK)
            status = base_copy_text(&line->cell[1], "array");
        if (status == SHOAL_OK)
            status = base_format(&line->cell[2], "%" PRIu64, member->rank > 0 ? member->shape[0] : 1);
        if (status == SHOAL_OK)
            status = base_format(&line->cell[3], "%" PRIu64, columns);
        if (status == SHOAL_OK)
            status = base_copy_text(&line->cell[4], member->type);
        if (status == SHOAL_OK)
            status = base_format(&line->cell[5], "%s%s", shape,
                                 member->has_rows ? ""
                                 : *shape         ? ", not read"
                                                  : "not read");
        base_free(&shape);
    }
    return status;
}

/* Columns of a terminal that a text takes: its letters. */
static int count_letters(const char *text)
{
    int count = 0;
    bool plain;
    for (; *text; count++)
        text += base_text_next(&plain, text);
    return count;
}

static void table_print(const table *table)
{
    static const char *const title[TABLE_COLUMNS] = {"file", "format", "rows", "columns", "type", "detail"};
    static const bool is_number[TABLE_COLUMNS] = {[2] = true, [3] = true};
    int width[TABLE_COLUMNS];
    for (int k = 0; k < TABLE_COLUMNS; k++) {
        width[k] = count_letters(title[k]);
        for (int64_t i = 0; i < table->count; i++)
            width[k] =
                width[k] > count_letters(table->line[i].cell[k]) ? width[k] : count_letters(table->line[i].cell[k]);
    }
    for (int64_t i = -1; i < table->count; i++)
        for (int k = 0; k < TABLE_COLUMNS; k++) {
            const char *cell = i < 0 ? title[k] : table->line[i].cell[k];
            const int room = k + 1 < TABLE_COLUMNS ? width[k] - count_letters(cell) : 0;
            printf("%*s", is_number[k] ? room : 0, "");
            cli_put_text(stdout, cell);
            printf("%*s", is_number[k] ? 0 : room, "");
            fputs(k + 1 < TABLE_COLUMNS ? "  " : "\n", stdout);
        }
}

/* ---- the verb ---------------------------------------------------------------------------------------------------- */

static int show_one(const char *address, const settings *settings)
{
    described it;
    int status = open_described(&it, address, settings->data);
    if (status == SHOAL_OK)
        status = settings->json ? print_described_json(&it) : print_described(&it);
    described_release(&it);
    return status;
}

static int show_in_table(table *table, const char *address, const settings *settings)
{
    described it;
    int status = open_described(&it, address, settings->data);
    if (status == SHOAL_OK && it.data)
        status = add_rows(table, it.data);
    else if (status == SHOAL_OK)
        status = add_arrays(table, address, &it.arrays);
    described_release(&it);
    return status;
}

/* One that can't be described doesn't keep the others from being shown. */
static int show_several(const char *const *address, int count, const settings *settings)
{
    table table = {0};
    int failed = 0;
    for (int i = 0; i < count; i++) {
        const int status =
            settings->json ? show_one(address[i], settings) : show_in_table(&table, address[i], settings);
        if (status == SHOAL_OK)
            continue;
        failed++;
        fprintf(stderr, "shoal: %s\n", shoal_error());
        if (settings->json)
            print_failed_json(address[i]);
    }
    if (table.count > 0)
        table_print(&table);
    table_release(&table);
    if (failed > 0)
        return shoal_fail(SHOAL_INVALID, "%d of %d files can't be described", failed, count);
    return SHOAL_OK;
}

static int run_info(void *from_main, const char *const *word, int words)
{
    const settings *settings = from_main;
    return words == 1 ? show_one(word[0], settings) : show_several(word, words, settings);
}

static const char *const info_description[] = {
    "Prints the format, shape and type of data sets. Formats are recognised by their content: .npy (any version, "
    "byte order and order of axes), IDX as MNIST has it, text with commas, tabs, semicolons or spaces and an optional "
    "header line, each of these also compressed by gzip, xz, bzip2 or zstd; raw values with --cols and --type; and "
    "generated data, named "
    "gen:uniform?... or gen:blobs?...",
    "gen:uniform?rows=N&cols=N&seed=N has values between 0 and 1, gen:blobs?rows=N&cols=N&seed=N&centres=N&spread=X "
    "has rows around random centres. Any row can be generated on its own, so the data takes no memory.",
    "Dimensions beyond the second are folded: an array of shape 60000x28x28 is 60000 rows of 784 columns. '-' is "
    "standard input.",
    "Several files are printed as a table, or with --json as one object per line. A file that can't be read is "
    "reported, the others are still shown, and the exit code is 1. If a file holds several arrays, all are listed with "
    "their addresses, FILE:NAME.",
    NULL,
};
static const learn_example info_examples[] = {
    {"shoal data info data.npy", "rows, columns and type of a file"},
    {"shoal data info *.csv *.npy", "a table of many files"},
    {"shoal data info values.bin --cols 128 --type float32", "how many rows of 128 values a raw file holds"},
    {NULL, NULL},
};
const cli_verb cli_data_info = {
    .name = "data info",
    .summary = "print the format, shape and type of data sets",
    .word = {"FILE..."},
    .words_least = 1,
    .synopsis = "[options]",
    .description = info_description,
    .examples = info_examples,
    .options = groups,
    .settings_size = sizeof(settings),
    .run = run_info,
};
