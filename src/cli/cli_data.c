/* shoal data convert: the same rows in another format. */
#include "cli.h"

#include "data/data_internal.h"

typedef struct settings {
    cli_common common;
    shoal_data_options data;
    const char *format;
    bool force;
} settings;

static const shoal_option convert_rows[] = {
    {"format", 'f', SHOAL_OPTION_TEXT, offsetof(settings, format), "FORMAT",
     .help =
         "format to write: npy, csv, tsv, txt, idx, raw or bin, text and idx also with .gz, .xz, .bz2 or .zst as in "
         "csv.gz (default: by "
         "the ending of OUT)"},
    {0},
};
static const shoal_option *const convert_options = convert_rows;

static const base_option_group convert_groups[] = {
    {"Output", &convert_options, 0},
    {"Replacing files", &run_force_options, offsetof(settings, force)},
    {"Reading the data", &run_data_options, offsetof(settings, data)},
    {"Help", &cli_common_options, offsetof(settings, common)},
    {0},
};

static int run_convert(void *from_main, const char *const *word, int words)
{
    settings *settings = from_main;
    run_file outputs[] = {{"OUT", word[1], {.kind = DATA_CONTENT_ARRAY, .format = settings->format, .rank = 2}}, {0}};
    const run_file inputs[] = {{.name = "IN", .path = word[0]}, {0}};
    shoal_data *data = NULL;
    int64_t shape[DATA_NPY_RANK_MOST];
    (void)words;
    int status = run_files_check(outputs, inputs, false);
    if (status == SHOAL_OK)
        status = shoal_data_open(&data, word[0], &settings->data);
    if (status == SHOAL_OK) {
        cli_tell_skipped(data);
        outputs[0].content.type = shoal_type_name(shoal_data_type(data));
        outputs[0].content.rows = shoal_data_rows(data);
        outputs[0].content.columns = shoal_data_columns(data);
        outputs[0].content.rank = data_shape_whole(shape, data);
        outputs[0].content.names = data_write_has_header(data) ? data : NULL;
        status = run_files_check_old(outputs, settings->force);
    }
    if (status == SHOAL_OK)
        status = data_write_as(data, word[1], settings->format);
    shoal_data_free(&data);
    return status;
}

static const char *const convert_description[] = {"Writes the rows of IN to OUT in the format that the ending of OUT "
                                                  "names: .npy, .csv, .tsv, .txt (spaces), .idx, .raw "
                                                  "or .bin, text and .idx also with .gz, .xz, .bz2 or .zst; --format "
                                                  "names it for a pipe "
                                                  "or any other name. Values keep their type where the format can hold "
                                                  "it. OUT appears when it is whole; until then an old file of that "
                                                  "name stays.",
                                                  NULL};
static const learn_example convert_examples[] = {
    {"shoal data convert iris.csv iris.npy --drop-column species", "text to .npy, without the column of labels"},
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
