/* shoal data head: the first rows of a data set. */
#include "cli.h"

#include <inttypes.h>
#include <string.h>

#include "base/memory.h"
#include "data/table/data_lines.h"

typedef struct settings {
    cli_common common;
    shoal_data_options data;
    int64_t count;
} settings;

static const shoal_option head_rows[] = {
    {"count", 'n', SHOAL_OPTION_COUNT, offsetof(settings, count), "N", .help = "number of rows to print",
     .fallback = "10"},
    {0},
};
static const shoal_option *const head_options = head_rows;

static const base_option_group groups[] = {
    {"Printing", &head_options, 0},
    {"Reading the data", &run_data_options, offsetof(settings, data)},
    {"Help", &cli_common_options, offsetof(settings, common)},
    {0},
};

static void print_names(const shoal_data *data)
{
    for (int64_t i = 0; shoal_data_column_name(data, 0) && i < shoal_data_columns(data); i++) {
        cli_put_text(stdout, shoal_data_column_name(data, i));
        putchar(i + 1 < shoal_data_columns(data) ? '\t' : '\n');
    }
}

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

static void print_values(const shoal_data *data, const void *values)
{
    char text[DATA_NUMBER_CHARS];
    const int64_t columns = shoal_data_columns(data);
    for (int64_t i = 0; i < columns; i++) {
        fwrite(text, 1, data_number_print(text, values, shoal_data_type(data), i), stdout);
        putchar(i + 1 < columns ? '\t' : '\n');
    }
}

static int show_values(shoal_data *data, int64_t count)
{
    void *scratch = NULL;
    const void *row = NULL;
    int status = base_alloc(&scratch, 1, data_row_bytes(data), "a row");
    for (int64_t i = 0; status == SHOAL_OK && i < count && i < shoal_data_rows(data); i++) {
        status = shoal_data_read(&row, data, i, 1, scratch);
        if (status == SHOAL_OK)
            print_values(data, row);
    }
    base_free(&scratch);
    return status == SHOAL_OK ? shoal_data_check(data) : status;
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

/* A row as the file has it; numbers are those of `values` where that is not NULL. */
static int print_line(data_cells *cells, const shoal_data *data, int64_t line, shoal_data *values, int64_t row)
{
    char number[DATA_NUMBER_CHARS];
    const void *read = NULL;
    int status = data_cells_take(cells, data, data_lines_row(data, line));
    if (status == SHOAL_OK && values)
        status = shoal_data_read(&read, values, row, 1, NULL);
    for (int64_t i = 0; i < shoal_data_columns(data) && status == SHOAL_OK; i++) {
        if (values && !shoal_data_column_text(values, i))
            fwrite(number, 1, data_number_print(number, read, SHOAL_FLOAT64, i), stdout);
        else
            cli_put_text(stdout, data_cells_text(cells, data, i));
        putchar(i + 1 < shoal_data_columns(data) ? '\t' : '\n');
    }
    return status;
}

static int show_lines(const shoal_data *data, shoal_data *values, int64_t count)
{
    data_cells cells;
    int64_t row = 0;
    int status = data_cells_init(&cells, data);
    for (int64_t i = 0; status == SHOAL_OK && row < count && i < shoal_data_rows(data); i++)
        if (!values || !values->gone || !values->gone[i])
            status = print_line(&cells, data, i, values, row++);
    data_cells_release(&cells);
    return status == SHOAL_OK ? shoal_data_check(data) : status;
}

/* ---- the verb ---------------------------------------------------------------------------------------------------- */

static int run_head(void *from_main, const char *const *word, int words)
{
    const settings *settings = from_main;
    shoal_data_options options = settings->data;
    shoal_data *data = NULL, *values = NULL;
    (void)words;
    /* What is filled in, and which rows are left out, is known when all are read; otherwise the first lines do. */
    const bool all = options.missing != SHOAL_MISSING_REFUSE;
    if (!all)
        options.missing = SHOAL_MISSING_KEEP;
    options.keep_text = true;
    int status = data_open_lines(&data, word[0], &options, all ? INT64_MAX : settings->count + (settings->count == 0));
    if (status == SHOAL_OK && data->lines && all)
        status = data_lines_values(&values, data, &options);
    if (status == SHOAL_OK) {
        cli_tell_skipped(data);
        print_names(data);
        status = data->lines ? show_lines(data, values, settings->count) : show_values(data, settings->count);
    }
    shoal_data_free(&values);
    shoal_data_free(&data);
    return status;
}

static const char *const description[] = {
    "Prints the first rows as text with tabs between values, below the names of the columns when the file has them. "
    "Cells of a text file are printed as they stand, without quotes; values of other formats have as many digits as "
    "are needed to read them back unchanged. PATH is whatever shoal data info reads.",
    NULL,
};
static const learn_example examples[] = {
    {"shoal data head data.npy", "the first ten rows"},
    {"shoal data head iris.csv -n 3 --columns species,1-2", "some columns of three rows, words and numbers"},
    {"shoal data head 'gen:blobs?rows=1000&cols=4&seed=1' -n 3", "three rows of generated data"},
    {NULL, NULL},
};
const cli_verb cli_data_head = {
    .name = "data head",
    .summary = "print the first rows of a data set",
    .word = {"PATH"},
    .words_least = 1,
    .synopsis = "[-n N] [options]",
    .description = description,
    .examples = examples,
    .options = groups,
    .settings_size = sizeof(settings),
    .run = run_head,
};
