/* shoal data split and shoal data shuffle: rows dealt out at random. */
#include "cli.h"

#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "data/table/data_lines.h"
#include "data/table/split.h"

typedef struct settings {
    cli_common common;
    shoal_data_options data;
    const char *test, *train, *stratify;
    int64_t seed;
    bool in_order, force;
    cli_print_settings print;
} settings;

#define SEED_HELP "where random numbers start; the same seed and the same number of rows give the same order"

static const shoal_option split_rows[] = {
    {"test", 0, SHOAL_OPTION_TEXT, offsetof(settings, test), "SHARE|N",
     .help = "rows of TEST: a share between 0 and 1, rounded up, or a number",
     .default_text = "0.25, or all but those of --train"},
    {"train", 0, SHOAL_OPTION_TEXT, offsetof(settings, train), "SHARE|N",
     .help = "rows of TRAIN: a share, rounded down, or a number; what is in neither file is left out",
     .default_text = "all but those of --test"},
    {"stratify", 0, SHOAL_OPTION_TEXT, offsetof(settings, stratify), "COLUMN|FILE",
     .help = "give both files the classes in the proportions that DATA has them in: a column, by name or number, or a "
             "file with one value for each row"},
    {"seed", 0, SHOAL_OPTION_COUNT, offsetof(settings, seed), "N", .help = SEED_HELP, .fallback = "0"},
    {"in-order", 0, SHOAL_OPTION_FLAG, offsetof(settings, in_order), NULL,
     .help = "leave the rows in order: the first ones for TRAIN, the ones behind them for TEST, as for series in time"},
    {0},
};
static const shoal_option shuffle_rows[] = {
    {"seed", 0, SHOAL_OPTION_COUNT, offsetof(settings, seed), "N", .help = SEED_HELP, .fallback = "0"},
    {0},
};
static const shoal_option *const split_options = split_rows, *const shuffle_options = shuffle_rows;

#define OTHER_GROUPS                                                                                                   \
    {"Replacing files", &run_force_options, offsetof(settings, force)},                                                \
        {"Reading the data", &run_rows_options, offsetof(settings, data)},                                             \
        {"Printing", &cli_print_options, offsetof(settings, print)},                                                   \
        {"Help", &cli_common_options, offsetof(settings, common)},                                                     \
    {                                                                                                                  \
        0                                                                                                              \
    }
static const base_option_group split_groups[] = {{"Splitting", &split_options, 0}, OTHER_GROUPS};
static const base_option_group shuffle_groups[] = {{"Shuffling", &shuffle_options, 0}, OTHER_GROUPS};

/* ---- what is told ------------------------------------------------------------------------------------------------ */

static json_t *json_classes(const data_split *split)
{
    json_t *list = json_array();
    char room[DATA_NUMBER_CHARS];
    for (int64_t i = 0; i < split->strata.count; i++) {
        json_t *object = json_object();
        base_json_put(&object, "class", base_json_text(data_strata_name(room, &split->strata, i)));
        base_json_put(&object, "train", json_integer(split->part[0].of_class[i]));
        base_json_put(&object, "test", json_integer(split->part[1].of_class[i]));
        if (json_array_append_new(list, object) < 0)
            break;
    }
    return list;
}

static int print_split_json(const data_split *split, const run_file *outputs)
{
    json_t *object = json_object();
    base_json_put(&object, "data", base_json_text(shoal_data_path(split->data)));
    base_json_put(&object, "rows", json_integer(shoal_data_rows(split->data)));
    base_json_put(&object, "seed", json_integer((json_int_t)split->request.seed));
    for (int i = 0; i < split->parts; i++) {
        json_t *part = json_object();
        base_json_put(&part, "path", base_json_text(outputs[i].path));
        base_json_put(&part, "rows", json_integer(split->part[i].rows));
        base_json_put(&object, split->parts == 1 ? "out" : i == 0 ? "train" : "test", part);
    }
    if (split->strata.count > 0)
        base_json_put(&object, "classes", json_classes(split));
    return cli_print_json(object);
}

/* "120 rows to train.csv, 30 to test.csv; 3 classes of column species of iris.csv" */
static void print_split(const data_split *split, const run_file *outputs)
{
    FILE *stream = cli_summary_stream(outputs);
    char count[32];
    for (int i = 0; i < split->parts; i++) {
        base_format_count(count, sizeof count, split->part[i].rows);
        fprintf(stream, "%s%s%s to ", i > 0 ? ", " : "", count,
                i > 0                      ? ""
                : split->part[i].rows == 1 ? " row"
                                           : " rows");
        cli_put_text(stream, strcmp(outputs[i].path, "-") == 0 ? "standard output" : outputs[i].path);
    }
    if (split->strata.count > 0) {
        fprintf(stream, "; %" PRId64 " class%s of ", split->strata.count, split->strata.count == 1 ? "" : "es");
        cli_put_text(stream, split->strata.source);
    }
    fputc('\n', stream);
}

/* ---- the verbs --------------------------------------------------------------------------------------------------- */

static data_content content_of(const data_split *split, const data_split_part *part)
{
    const shoal_data *values = data_split_values(split);
    if (part->text)
        return (data_content){.kind = DATA_CONTENT_ARRAY, .lines = split->data, .delimiter = part->delimiter};
    return (data_content){.kind = DATA_CONTENT_ARRAY,
                          .type = shoal_type_name(shoal_data_type(values)),
                          .rank = part->rank,
                          .rows = part->rows,
                          .columns = shoal_data_columns(values),
                          .names = data_write_has_header(values) ? values : NULL};
}

static int deal_rows(const settings *settings, const data_split_request *request, run_file *outputs)
{
    const run_file inputs[] = {
        {.name = "DATA", .path = request->data}, {.name = "--stratify", .path = request->stratify}, {0}};
    data_split split = {0};
    int status = run_files_check(outputs, inputs, settings->print.json);
    if (status < 0)
        return status;
    status = data_split_open(&split, request);
    if (status == SHOAL_OK)
        cli_tell_skipped(split.data);
    for (int i = 0; i < split.parts && status == SHOAL_OK; i++)
        outputs[i].content = content_of(&split, &split.part[i]);
    if (status == SHOAL_OK)
        status = run_files_check_old(outputs, settings->force);
    if (status == SHOAL_OK)
        status = data_split_write(&split);
    if (status == SHOAL_OK && settings->print.json)
        status = print_split_json(&split, outputs);
    else if (status == SHOAL_OK && !settings->print.quiet)
        print_split(&split, outputs);
    data_split_close(&split);
    return status;
}

static int run_split(void *from_main, const char *const *word, int words)
{
    const settings *settings = from_main;
    const data_split_request request = {.data = word[0],
                                        .reading = settings->data,
                                        .train = word[1],
                                        .test = word[2],
                                        .test_size = settings->test,
                                        .train_size = settings->train,
                                        .stratify = settings->stratify,
                                        .seed = (uint64_t)settings->seed,
                                        .in_order = settings->in_order};
    run_file outputs[] = {
        {"TRAIN", word[1], {.kind = DATA_CONTENT_ARRAY}}, {"TEST", word[2], {.kind = DATA_CONTENT_ARRAY}}, {0}};
    (void)words;
    return deal_rows(settings, &request, outputs);
}

static int run_shuffle(void *from_main, const char *const *word, int words)
{
    const settings *settings = from_main;
    const data_split_request request = {
        .data = word[0], .reading = settings->data, .train = word[1], .seed = (uint64_t)settings->seed};
    run_file outputs[] = {{"OUT", word[1], {.kind = DATA_CONTENT_ARRAY}}, {0}};
    (void)words;
    return deal_rows(settings, &request, outputs);
}

#define TEXT_STAYS                                                                                                     \
    "Text that becomes text keeps its lines byte for byte, with its words, digits and header, if the names end "       \
    "alike; another ending, such as .tsv, changes the delimiter. Anything else is written as values: .npy, .idx, "     \
    ".raw and .bin keep type and shape."
#define SAME_ORDER                                                                                                     \
    "Which rows are drawn depends on the seed and the number of rows alone: rows and targets that lie in two files "   \
    "stay together if both commands have the same options. The same seed gives the same bytes on every machine."

static const char *const split_description[] = {
    "Deals the rows of DATA out to a training and a test set at random, as scikit-learn's train_test_split does: the "
    "test set has --test of them, the training set the others, both in random order. The endings of TRAIN and TEST "
    "choose their formats.",
    "--stratify keeps the proportions of classes: each gets its share of both files, rounded down or up. Each class "
    "needs two rows, and a value in every row. The column may be one that --columns or --drop-column leaves out.",
    TEXT_STAYS,
    SAME_ORDER,
    "Rows keep values that are missing. Data larger than memory are read several times from one end to the other; "
    "--memory says how much is used.",
    NULL,
};
static const learn_example split_examples[] = {
    {"shoal data split iris.csv train.csv test.csv --test 0.2 --stratify species --seed 1",
     "30 rows of 150 to test with, 10 of each species"},
    {"shoal data split images.npy train.npy test.npy --test 10000 --stratify labels.npy",
     "the classes in another file"},
    {"shoal data split prices.csv.gz past.csv recent.csv --test 0.1 --in-order", "the last tenth"},
    {NULL, NULL},
};
const cli_verb cli_data_split = {
    .name = "data split",
    .summary = "split rows into a training and a test set",
    .word = {"DATA", "TRAIN", "TEST"},
    .words_least = 3,
    .synopsis = "[--test 0.2] [options]",
    .description = split_description,
    .examples = split_examples,
    .options = split_groups,
    .settings_size = sizeof(settings),
    .run = run_split,
};

static const char *const shuffle_description[] = {
    "Writes the rows of DATA to OUT in random order. The ending of OUT chooses its format; '-' is standard output.",
    TEXT_STAYS,
    SAME_ORDER,
    "Data larger than memory are read several times from one end to the other; --memory says how much is used.",
    NULL,
};
static const learn_example shuffle_examples[] = {
    {"shoal data shuffle iris.csv mixed.csv --seed 1", "the header stays on top"},
    {"shoal data shuffle rows.npy mixed.npy", "values of the same type"},
    {"shoal data shuffle big.csv - | shoal data head - -n 5", "five rows drawn at random"},
    {NULL, NULL},
};
const cli_verb cli_data_shuffle = {
    .name = "data shuffle",
    .summary = "write rows in random order",
    .word = {"DATA", "OUT"},
    .words_least = 2,
    .synopsis = "[--seed N] [options]",
    .description = shuffle_description,
    .examples = shuffle_examples,
    .options = shuffle_groups,
    .settings_size = sizeof(settings),
    .run = run_shuffle,
};
