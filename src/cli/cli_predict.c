/* shoal predict: applies a trained model to rows.  The model says which learner it belongs to, and that decides what
 * can be written. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "kernel/kernel.h"
#include "run/apply.h"
#include "run/score.h"
#include "run/ranks.h"
#include "run/target.h"

enum { OUTPUTS_MOST = 16, FACES_MOST = 32 };

typedef struct scoring {
    const char *target;
    bool score;
} scoring;

typedef struct settings {
    cli_common common;
    const char *outputs[OUTPUTS_MOST];
    scoring scoring;
    bool force;
    shoal_data_options data;
    run_place run;
    run_ranks_options ranks;
    cli_print_settings print;
} settings;

/* ---- options ----------------------------------------------------------------------------------------------------- */

static shoal_option output_rows[OUTPUTS_MOST + 1];
static const shoal_option *const output_options = output_rows;

/* "kmeans: write ...; logistic: ...": one option for all learners that give such an output. */
static void add_output(const learn_face *face, const learn_output *output)
{
    char *help = NULL;
    int at = 0;
    while (output_rows[at].name && strcmp(output_rows[at].name, output->name) != 0)
        at++;
    if (at == OUTPUTS_MOST)
        SHOAL_BUG("there are more kinds of predictions than options for them");
    char *before = (char *)output_rows[at].help;
    if (base_format(&help, "%s%s%s: %s", before ? before : "", before ? "; " : "", face->algorithm->name,
                    output->help) < 0)
        abort();
    base_free(&before);
    output_rows[at] = (shoal_option){.name = output->name,
                                     .letter = output->letter,
                                     .kind = SHOAL_OPTION_TEXT,
                                     .offset = (size_t)at * sizeof(char *),
                                     .argument = output->argument,
                                     .help = help}; /* which lasts as long as the process */
}

static const shoal_option scoring_rows[] = {
    {"score", 's', SHOAL_OPTION_FLAG, offsetof(scoring, score),
     .help = "print how well the model does: accuracy, log loss and confusion matrix of classes; the objective of "
             "clusters and, with known classes, the adjusted Rand index; the reconstruction error of an autoencoder"},
    {"target", 'y', SHOAL_OPTION_TEXT, offsetof(scoring, target), "COLUMN|FILE",
     .help = "the known class of each row, for --score: a column of DATA, by its name, its number from 1, or from -1 "
             "backwards; or a file of one column or one row",
     .default_text = "the column the model was trained to predict"},
    {0},
};
static const shoal_option *const scoring_options = scoring_rows;

static const base_option_group groups[] = {
    {"Output", &output_options, offsetof(settings, outputs)},
    {"Scoring", &scoring_options, offsetof(settings, scoring)},
    {"Replacing files", &run_force_options, offsetof(settings, force)},
    {"Reading the data", &run_data_options, offsetof(settings, data)},
    {"Running", &run_place_options, offsetof(settings, run)},
    {"Ranks", &run_engine_options, offsetof(settings, ranks)},
    {"Printing", &cli_print_options, offsetof(settings, print)},
    {"Help", &cli_common_options, offsetof(settings, common)},
    {0},
};

/* ---- telling ----------------------------------------------------------------------------------------------------- */

static json_t *json_table(const run_score *score)
{
    json_t *rows = json_array();
    for (int64_t i = 0; i < score->known && rows; i++) {
        json_t *row = json_array();
        for (int64_t k = 0; k < score->predicted; k++)
            json_array_append_new(row, json_integer(score->table[i * score->predicted + k]));
        if (json_array_append_new(rows, row) < 0) {
            json_decref(rows);
            rows = NULL;
        }
    }
    return rows;
}

static json_t *json_score(const run_score *score)
{
    json_t *object = json_object();
    cli_json_facts(&object, score->facts);
    if (score->table && object) {
        base_json_put(&object, "known", base_json_texts((const char *const *)score->known_names, score->known));
        base_json_put(&object, "predicted",
                      base_json_texts((const char *const *)score->predicted_names, score->predicted));
        base_json_put(&object, "confusion", json_table(score));
    }
    return object;
}

static int print_predict_object(const run_applied *applied, const run_score *score)
{
    const learn_predictor *predictor = applied->face->predictor;
    shoal_result *facts = NULL;
    json_t *object = cli_outcome_json(applied->outcome);
    int status = shoal_result_new(&facts);
    if (status == SHOAL_OK && predictor->tell)
        status = predictor->tell(facts, &applied->model, applied->outcome->result);
    base_json_put(&object, "model", json_string(applied->face->algorithm->name));
    if (status == SHOAL_OK && object)
        cli_json_facts(&object, facts);
    if (status == SHOAL_OK && object && applied->schema.classes) /* instead of the numbers they stand for */
        base_json_put(&object, "classes",
                      base_json_texts((const char *const *)applied->schema.classes, applied->schema.classes_count));
    if (status == SHOAL_OK && object && score->facts)
        base_json_put(&object, "score", json_score(score));
    shoal_result_free(&facts);
    if (status < 0) {
        json_decref(object);
        return status;
    }
    return cli_print_json(object);
}

static int print_predict_summary(const run_applied *applied, const run_score *score, const run_file *written)
{
    FILE *stream = cli_summary_stream(written);
    learn_lines lines = {0};
    cli_outcome_print_data(applied->outcome, stream);
    applied->face->predictor->summarise(&lines, &applied->model, applied->outcome->result);
    if (score->facts)
        run_score_say(&lines, score);
    if (lines.text)
        fprintf(stream, "%s\n", lines.text);
    base_free(&lines.text);
    cli_outcome_print_times(applied->outcome, stream);
    cli_print_written(stream, written, NULL);
    return lines.status;
}

/* ---- the verb ---------------------------------------------------------------------------------------------------- */

static int run_predict(void *from_main, const char *const *word, int words)
{
    const settings *settings = from_main;
    const run_file sources[] = {{.name = "MODEL", .path = word[0]},
                                {.name = "DATA", .path = word[1]},
                                {.name = "--target", .path = run_target_file(settings->scoring.target)},
                                {0}};
    run_file written[OUTPUTS_MOST + 1] = {0};
    char option[OUTPUTS_MOST][RUN_NAME_BYTES];
    const char *names[OUTPUTS_MOST + 1] = {0};
    const kernel_set *set = NULL;
    run_applied applied = {0};
    run_score score = {0};
    cli_watch watch;
    (void)words;
    for (int i = 0; output_rows[i].name; i++) {
        snprintf(option[i], sizeof option[i], "--%s", output_rows[i].name);
        written[i] = (run_file){option[i], settings->outputs[i], {.kind = DATA_CONTENT_ARRAY}};
        names[i] = output_rows[i].name;
    }
    int status = kernel_choose(&set, settings->run.kernel);
    if (status == SHOAL_OK)
        status = run_ranks_begin(&settings->ranks, false);
    if (status == SHOAL_OK && run_is_first())
        status = run_files_check(written, sources, settings->print.json);
    if (status < 0)
        return status;
    cli_watch_start(&watch, settings->print.quiet);
    status = run_apply(&applied, &(run_application){.model = word[0],
                                                    .data = word[1],
                                                    .target = settings->scoring.target,
                                                    .score = settings->scoring.score,
                                                    .reading = settings->data,
                                                    .place = settings->run,
                                                    .ranks = settings->ranks,
                                                    .force = settings->force,
                                                    .names = names,
                                                    .paths = settings->outputs,
                                                    .watch = cli_watcher(&watch)});
    if (status == SHOAL_OK && run_is_first() && settings->scoring.score)
        status = run_score_make(&score, &applied);
    cli_progress_clear(&watch.progress);
    if (status == SHOAL_OK && run_is_first() && settings->print.json)
        status = print_predict_object(&applied, &score);
    else if (status == SHOAL_OK && run_is_first() && !settings->print.quiet)
        status = print_predict_summary(&applied, &score, written);
    run_score_release(&score);
    run_applied_release(&applied);
    return status;
}

/* ---- what help says ---------------------------------------------------------------------------------------------- */

static const char *description[] = {
    NULL, /* what models there are: cli_predict_prepare */
    "A row that is equally near to several centres gets the lowest number. Any data file whose rows are centres is a "
    "model of kmeans, too, such as one that --centres wrote.",
    "The results have the same bits as the learner's own, whatever the number of threads and the kernel.",
    NULL,
};

/* Adds "shoal kmeans, shoal logistic or shoal autoencoder": the names of learners with models, or of those among them
 * that tell classes. */
static void add_names(learn_lines *text, const char *before, const char *last_joint, bool of_classes)
{
    const char *names[FACES_MOST + 1] = {0};
    int count = 0;
    for (const learn_face *const *face = learn_faces; *face && count < FACES_MOST; face++)
        if ((*face)->predictor && (!of_classes || (*face)->classes_most > 0))
            names[count++] = (*face)->algorithm->name;
    for (const char **name = names; *name; name++)
        learn_say_more(text, "%s%s%s", name == names ? "" : name[1] ? ", " : last_joint, before, *name);
}

static void add_outputs(learn_lines *text)
{
    const char *joint = "";
    for (const learn_face *const *face = learn_faces; *face; face++) {
        if (!(*face)->predictor)
            continue;
        learn_say_more(text, "%sof %s", joint, (*face)->algorithm->name);
        for (const learn_output *output = (*face)->predictor->outputs; output->name; output++)
            learn_say_more(text, "%s--%s", output == (*face)->predictor->outputs ? " " : " and ", output->name);
        joint = ", ";
    }
}

/* The options and the first paragraph, which name all learners; both last as long as the process. */
void cli_predict_prepare(void)
{
    learn_lines text = {0};
    for (const learn_face *const *face = learn_faces; *face; face++)
        for (const learn_output *output = (*face)->predictor ? (*face)->predictor->outputs : NULL;
             output && output->name; output++)
            add_output(*face, output);
    learn_say_more(&text, "Applies MODEL, which ");
    add_names(&text, "shoal ", " or ", false);
    learn_say_more(&text, " wrote with --model, to the rows of DATA. The model knows its learner, which decides what "
                          "can be written: ");
    add_outputs(&text);
    learn_say_more(&text,
                   ". DATA is any file or URL that the learners read. Columns are matched by name when the model "
                   "and DATA both have names, otherwise by position; a target column of ");
    add_names(&text, "", " and ", true);
    learn_say_more(&text, " may still be there, and is left out.");
    if (text.status < 0)
        abort();
    description[0] = text.text;
}

static const learn_example examples[] = {
    {"shoal predict model.safetensors new.npy --labels labels.npy", "classify or cluster new rows"},
    {"shoal predict centres.npy new.csv --distances distances.npy --quiet", "the distance of each row from its centre"},
    {"shoal predict spam.safetensors test.csv --score", "accuracy, log loss and confusion matrix on known rows"},
    {"shoal predict spam.safetensors new.csv --probabilities p.npy", "the probability of each class"},
    {"shoal predict autoencoder.safetensors patches.npy --features features.npy",
     "the hidden activations, as new columns"},
    {NULL, NULL},
};

const cli_verb cli_predict = {
    .name = "predict",
    .summary = "apply a model to rows: labels, distances, probabilities or features",
    .word = {"MODEL", "DATA"},
    .words_least = 2,
    .synopsis = "[options]",
    .description = description,
    .examples = examples,
    .options = groups,
    .settings_size = sizeof(settings),
    .of_ranks = true,
    .run = run_predict,
};
