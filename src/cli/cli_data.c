/* shoal data info, head, convert: what a data set is, its first rows, and the same rows in another format. */
#include "cli.h"

#include <inttypes.h>
#include <string.h>

#include "base/memory.h"
#include "data/data_internal.h"
#include "data/data_missing.h"

typedef struct settings {
    cli_common common;
    shoal_data_options data;
    bool json;
    int64_t count;
    const char *format;
    bool force;
} settings;

static const shoal_option info_rows[] = {
    {"json", 0, SHOAL_OPTION_FLAG, offsetof(settings, json), NULL, .help = "print one JSON object"},
    {0},
};
static const shoal_option head_rows[] = {
    {"count", 'n', SHOAL_OPTION_COUNT, offsetof(settings, count), "N", .help = "how many rows to print",
     .fallback = "10"},
    {0},
};
static const shoal_option convert_rows[] = {
    {"format", 'f', SHOAL_OPTION_TEXT, offsetof(settings, format), "FORMAT",
     .help =
         "format to write: npy, csv, tsv, txt, idx, raw or bin, text and idx also with .gz as in csv.gz (default: by "
         "the ending of OUT)"},
    {0},
};
static const shoal_option *const info_options = info_rows, *const head_options = head_rows,
                                 *const convert_options = convert_rows;

static const base_option_group info_groups[] = {
    {"Printing", &info_options, 0},
    {"Reading the data", &run_data_options, offsetof(settings, data)},
    {"Help", &cli_common_options, offsetof(settings, common)},
    {0},
};
static const base_option_group head_groups[] = {
    {"Printing", &head_options, 0},
    {"Reading the data", &run_data_options, offsetof(settings, data)},
    {"Help", &cli_common_options, offsetof(settings, common)},
    {0},
};
static const base_option_group convert_groups[] = {
    {"Output", &convert_options, 0},
    {"Replacing files", &run_force_options, offsetof(settings, force)},
    {"Reading the data", &run_data_options, offsetof(settings, data)},
    {"Help", &cli_common_options, offsetof(settings, common)},
    {0},
};

/* ---- info -------------------------------------------------------------------------------------------------------- */

static int64_t value_bytes(const shoal_data *data)
{
    return shoal_data_rows(data) * shoal_data_columns(data) * (int64_t)shoal_type_size(shoal_data_type(data));
}

static json_t *json_text_columns(const shoal_data *data)
{
    json_t *list = json_array();
    for (int64_t i = 0; i < shoal_data_columns(data); i++)
        if (shoal_data_column_text(data, i))
            json_array_append_new(list, json_integer(i + 1));
    return list;
}

static int info_json(const shoal_data *data, const data_missing *missing)
{
    json_t *object = json_object();
    base_json_put(&object, "path", base_json_text(shoal_data_path(data)));
    base_json_put(&object, "format", json_string(shoal_data_format(data)));
    base_json_put(&object, "detail", base_json_text(shoal_data_detail(data)));
    base_json_put(&object, "rows", json_integer(shoal_data_rows(data)));
    base_json_put(&object, "columns", json_integer(shoal_data_columns(data)));
    base_json_put(&object, "type", json_string(shoal_type_name(shoal_data_type(data))));
    base_json_put(&object, "bytes", json_integer(value_bytes(data)));
    cli_json_reading(&object, data);
    if (shoal_data_column_name(data, 0)) {
        json_t *names = json_array();
        for (int64_t i = 0; i < shoal_data_columns(data); i++)
            if (json_array_append_new(names, base_json_text(shoal_data_column_name(data, i))) < 0)
                break;
        base_json_put(&object, "names", names);
    }
    base_json_put(&object, "text_columns", json_text_columns(data));
    if (missing->values > 0) {
        base_json_put(&object, "missing_values", json_integer(missing->values));
        base_json_put(&object, "missing_rows", json_integer(missing->rows));
    }
    return cli_print_json(object);
}

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

/* A table that no learner would take as it is can still be described. */
static int open_described(shoal_data **out, data_missing *missing, const char *path, shoal_data_options options)
{
    options.keep_text = true;
    if (options.missing == SHOAL_MISSING_REFUSE)
        options.missing = SHOAL_MISSING_KEEP;
    *missing = (data_missing){0};
    int status = shoal_data_open(out, path, &options);
    return status == SHOAL_OK && options.missing == SHOAL_MISSING_KEEP && (*out)->format == &data_text
               ? data_missing_count(missing, *out)
               : status;
}

static int run_info(void *from_main, const char *const *word, int words)
{
    settings *settings = from_main;
    shoal_data *data = NULL;
    (void)words;
    data_missing missing;
    int status = open_described(&data, &missing, word[0], settings->data);
    if (status < 0) {
        shoal_data_free(&data);
        return status;
    }
    if (settings->json) {
        status = info_json(data, &missing);
    } else {
        fputs("path      ", stdout);
        cli_put_text(stdout, shoal_data_path(data));
        fputs("\nformat    ", stdout);
        cli_put_text(stdout, shoal_data_detail(data));
        printf("\nrows      %" PRId64, shoal_data_rows(data));
        cli_print_reading(stdout, data, shoal_data_columns(data));
        printf("\ncolumns   %" PRId64 "\ntype      %s\nbytes     %" PRId64 "\n", shoal_data_columns(data),
               shoal_type_name(shoal_data_type(data)), value_bytes(data));
        if (shoal_data_column_name(data, 0)) {
            fputs("names     ", stdout);
            for (int64_t i = 0; i < shoal_data_columns(data); i++) {
                fputs(i ? ", " : "", stdout);
                cli_put_text(stdout, shoal_data_column_name(data, i));
            }
            putchar('\n');
        }
        print_text_columns(data);
        if (missing.values > 0)
            printf("missing   %" PRId64 " value%s in %" PRId64 " row%s\n", missing.values, base_plural(missing.values),
                   missing.rows, base_plural(missing.rows));
    }
    shoal_data_free(&data);
    return status;
}

/* ---- head -------------------------------------------------------------------------------------------------------- */

static void print_names(const shoal_data *data)
{
    for (int64_t i = 0; shoal_data_column_name(data, 0) && i < shoal_data_columns(data); i++) {
        cli_put_text(stdout, shoal_data_column_name(data, i));
        putchar(i + 1 < shoal_data_columns(data) ? '\t' : '\n');
    }
}

/* What a column of text says is not kept. */
static void print_data_row(const shoal_data *data, const void *values)
{
    char text[DATA_NUMBER_CHARS];
    const int64_t columns = shoal_data_columns(data);
    for (int64_t i = 0; i < columns; i++) {
        if (shoal_data_column_text(data, i))
            fputs("(text)", stdout);
        else
            fwrite(text, 1, data_number_print(text, values, shoal_data_type(data), i), stdout);
        putchar(i + 1 < columns ? '\t' : '\n');
    }
}

static int run_head(void *from_main, const char *const *word, int words)
{
    settings *settings = from_main;
    shoal_data *data = NULL;
    void *scratch = NULL;
    const void *row = NULL;
    data_missing missing;
    (void)words;
    int status = open_described(&data, &missing, word[0], settings->data);
    if (status < 0) {
        shoal_data_free(&data);
        return status;
    }
    status = base_alloc(&scratch, (size_t)shoal_data_columns(data), shoal_type_size(shoal_data_type(data)), "a row");
    if (status == SHOAL_OK)
        print_names(data);
    for (int64_t i = 0; status == SHOAL_OK && i < settings->count && i < shoal_data_rows(data); i++) {
        status = shoal_data_read(&row, data, i, 1, scratch);
        if (status == SHOAL_OK)
            print_data_row(data, row);
    }
    if (status == SHOAL_OK)
        status = shoal_data_check(data);
    base_free(&scratch);
    shoal_data_free(&data);
    return status;
}

/* ---- convert ----------------------------------------------------------------------------------------------------- */

static int run_convert(void *from_main, const char *const *word, int words)
{
    settings *settings = from_main;
    run_file outputs[] = {{"OUT", word[1], {.kind = DATA_CONTENT_ARRAY, .format = settings->format, .rank = 2}}, {0}};
    const run_file inputs[] = {{.name = "IN", .path = word[0]}, {0}};
    shoal_data *data = NULL;
    (void)words;
    int status = run_files_check(outputs, inputs, false);
    if (status == SHOAL_OK)
        status = shoal_data_open(&data, word[0], &settings->data);
    if (status == SHOAL_OK) {
        outputs[0].content.type = shoal_type_name(shoal_data_type(data));
        outputs[0].content.rows = shoal_data_rows(data);
        outputs[0].content.columns = shoal_data_columns(data);
        outputs[0].content.names = data_write_has_header(data) ? data : NULL;
        status = run_files_check_old(outputs, settings->force);
    }
    if (status == SHOAL_OK)
        status = data_write_as(data, word[1], settings->format);
    shoal_data_free(&data);
    return status;
}

/* ---- the verbs --------------------------------------------------------------------------------------------------- */

static const char *const info_description[] = {
    "Prints the format, shape and type of a data set. Formats are recognised by their content: .npy (any version, "
    "byte order and order of axes), IDX as MNIST has it, text with commas, tabs, semicolons or spaces and an optional "
    "header line, each of these also compressed by gzip; raw values with --cols and --type; and generated data, named "
    "gen:uniform?... or gen:blobs?...",
    "gen:uniform?rows=N&cols=N&seed=N has values between 0 and 1, gen:blobs?rows=N&cols=N&seed=N&centres=N&spread=X "
    "has rows around random centres. Any row of it can be made alone, so that it takes no memory.",
    "Dimensions beyond the second are folded: an array of shape 60000x28x28 is 60000 rows of 784 columns. '-' is "
    "standard input.",
    NULL,
};
static const learn_example info_examples[] = {
    {"shoal data info data.npy", "rows, columns and type of a file"},
    {"shoal data info values.bin --cols 128 --type float32", "how many rows of 128 values a raw file holds"},
    {NULL, NULL},
};
const cli_verb cli_data_info = {
    .name = "data info",
    .summary = "print the format, shape and type of a data set",
    .word = {"PATH"},
    .words_least = 1,
    .synopsis = "[options]",
    .description = info_description,
    .examples = info_examples,
    .options = info_groups,
    .settings_size = sizeof(settings),
    .run = run_info,
};

static const char *const head_description[] = {
    "Prints the first rows as text with tabs between values, below the names of the columns when the file has them. "
    "Every value has the digits it takes to read it back unchanged. PATH is whatever shoal data info reads.",
    NULL,
};
static const learn_example head_examples[] = {
    {"shoal data head data.npy", "the first ten rows"},
    {"shoal data head 'gen:blobs?rows=1000&cols=4&seed=1' -n 3", "three rows of generated data"},
    {NULL, NULL},
};
const cli_verb cli_data_head = {
    .name = "data head",
    .summary = "print the first rows of a data set",
    .word = {"PATH"},
    .words_least = 1,
    .synopsis = "[-n N] [options]",
    .description = head_description,
    .examples = head_examples,
    .options = head_groups,
    .settings_size = sizeof(settings),
    .run = run_head,
};

static const char *const convert_description[] = {"Writes the rows of IN to OUT in the format that the ending of OUT "
                                                  "names: .npy, .csv, .tsv, .txt (spaces), .idx, .raw "
                                                  "or .bin, text and .idx also with .gz; --format names it for a pipe "
                                                  "or any other name. Values keep their type where the format can hold "
                                                  "it. OUT appears when it is whole; until then an old file of that "
                                                  "name stays.",
                                                  NULL};
static const learn_example convert_examples[] = {
    {"shoal data convert iris.csv iris.npy --drop-column species", "text to .npy, without the label"},
    {"shoal data convert 'gen:uniform?rows=500000&cols=1000&seed=1' uniform.npy", "keep generated data"},
    {"shoal data convert data.npy /dev/stdout --format csv | sort", "rows as text for another program"},
    {NULL, NULL},
};
const cli_verb cli_data_convert = {
    .name = "data convert",
    .summary = "copy a data set into another format",
    .word = {"IN", "OUT"},
    .words_least = 2,
    .synopsis = "[options]",
    .description = convert_description,
    .examples = convert_examples,
    .options = convert_groups,
    .settings_size = sizeof(settings),
    .run = run_convert,
};
