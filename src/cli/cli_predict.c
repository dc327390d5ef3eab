/* shoal predict: applies a trained model to rows.  The model says which learner it belongs to, and that decides what
 * can be written. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "run/apply.h"
#include "run/score.h"
#include "run/ranks.h"

enum { FACES_MOST = 32 };

typedef struct settings {
    cli_common common;
    run_asked asked;
    cli_print_settings print;
} settings;

static base_option_group groups[RUN_GROUPS_MOST + 2];

/* The options of applying a model, and those of all verbs. */
static void make_groups(void)
{
    int count = run_asked_groups(groups, offsetof(settings, asked));
    groups[count++] = (base_option_group){"Printing", &cli_print_options, offsetof(settings, print)};
    groups[count++] = (base_option_group){"Help", &cli_common_options, offsetof(settings, common)};
    groups[count] = (base_option_group){0};
}

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

static int print_predict_object(const shoal_application *application)
{
    const run_score *score = &application->score;
    const learn_predictor *predictor = application->model->face->predictor;
    shoal_result *facts = NULL;
    json_t *object = cli_outcome_json(application->outcome);
    int status = shoal_result_new(&facts);
    if (status == SHOAL_OK && predictor->tell)
        status = predictor->tell(facts, &application->applied, application->outcome->result);
    if (status == SHOAL_OK)
        status = shoal_result_check(facts);
    base_json_put(&object, "model", json_string(application->model->face->algorithm->name));
    if (status == SHOAL_OK && object)
        cli_json_facts(&object, facts);
    if (status == SHOAL_OK && object && application->model->schema.classes) /* instead of the numbers they stand for */
        base_json_put(&object, "classes",
                      base_json_texts((const char *const *)application->model->schema.classes,
                                      application->model->schema.classes_count));
    if (status == SHOAL_OK && object && score->facts)
        base_json_put(&object, "score", json_score(score));
    shoal_result_free(&facts);
    if (status < 0) {
        json_decref(object);
        return status;
    }
    return cli_print_json(object);
}

static int print_predict_summary(const shoal_application *application, const run_file *written)
{
    const run_score *score = &application->score;
    FILE *stream = cli_summary_stream(written);
    learn_lines lines = {0};
    cli_outcome_print_data(application->outcome, stream);
    application->model->face->predictor->summarise(&lines, &application->applied, application->outcome->result);
    if (score->facts)
        run_score_say(&lines, score);
    if (lines.text)
        fprintf(stream, "%s\n", lines.text);
    base_free(&lines.text);
    cli_outcome_print_times(application->outcome, stream);
    cli_print_written(stream, written, NULL);
    return lines.status;
}

/* ---- the verb ---------------------------------------------------------------------------------------------------- */

static int run_predict(void *from_main, const char *const *word, int words)
{
    settings *settings = from_main;
    shoal_model *model = NULL;
    shoal_application *application = NULL;
    run_files written;
    cli_watch watch;
    (void)words;
    settings->asked.data = word[1];
    settings->asked.json = settings->print.json;
    run_asked_outputs(&written, &settings->asked);
    cli_watch_start(&watch, settings->print.quiet);
    const shoal_watcher watcher = cli_watcher(&watch);
    int status = run_ranks_begin(&settings->asked.ranks, false);
    if (status == SHOAL_OK)
        status = shoal_model_open(&model, word[0]);
    if (status == SHOAL_OK)
        status = shoal_application_new(&application, model);
    if (status == SHOAL_OK) {
        application->asked = settings->asked;
        shoal_application_watch(application, &watcher);
        status = shoal_application_run(application);
    }
    cli_progress_clear(&watch.progress);
    if (status == SHOAL_OK && run_is_first() && settings->print.json)
        status = print_predict_object(application);
    else if (status == SHOAL_OK && run_is_first() && !settings->print.quiet)
        status = print_predict_summary(application, written.file);
    shoal_application_free(&application);
    shoal_model_free(&model);
    return status;
}

/* ---- what help says ---------------------------------------------------------------------------------------------- */

static const char *description[] = {
    NULL, /* what models there are: cli_predict_prepare */
    "A row that is equally near to several centres gets the lowest number. Any data file whose rows are centres can "
    "also serve as a model of kmeans, such as one that --centres wrote.",
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
    make_groups();
    learn_say_more(&text, "Applies MODEL, which ");
    add_names(&text, "shoal ", " or ", false);
    learn_say_more(&text, " wrote with --model, to the rows of DATA. What can be written depends on the learner: ");
    add_outputs(&text);
    learn_say_more(&text,
                   ". DATA is any file or URL that the learners read. Columns are matched by name when the model "
                   "and DATA both have names, otherwise by position; a target column of ");
    add_names(&text, "", " and ", true);
    learn_say_more(&text, " may still be there; it is left out.");
    if (text.status < 0)
        abort();
    description[0] = text.text;
}

static const learn_example examples[] = {
    {"shoal predict model.safetensors new.npy --labels labels.npy", "classify or cluster new rows"},
    {"shoal predict centres.npy new.csv --distances distances.npy --quiet", "how far each row is from its centre"},
    {"shoal predict spam.safetensors test.csv --score", "accuracy, log loss and confusion matrix"},
    {"shoal predict digits.safetensors t10k-images-idx3-ubyte.gz --target t10k-labels-idx1-ubyte.gz --confusion "
     "confusion.svg",
     "the confusion matrix as a picture, too"},
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
