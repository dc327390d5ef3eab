/* How well a model does on rows of which the truth is known.  See score.h. */
#include "score.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apply.h"
#include "base/memory.h"
#include "base/text.h"
#include "plot/matrix.h"

/* Cells of a table that are worth their memory; a target of more different values is not one of classes. */
enum { CELLS_MOST = 1 << 22 };

void run_score_release(run_score *score)
{
    for (int64_t i = 0; score->known_names && i < score->known; i++)
        base_free(&score->known_names[i]);
    for (int64_t i = 0; score->predicted_names && i < score->predicted; i++)
        base_free(&score->predicted_names[i]);
    base_free(&score->known_names);
    base_free(&score->predicted_names);
    base_free(&score->table);
    shoal_result_free(&score->facts);
    *score = (run_score){0};
}

/* ---- classes ----------------------------------------------------------------------------------------------------- */

static int compare_numbers(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

/* The different values, ascending. */
static int list_values(double **out, int64_t *count, const double *values, int64_t rows)
{
    int status = base_alloc(out, (size_t)rows, sizeof **out, "known classes");
    if (status < 0)
        return status;
    memcpy(*out, values, (size_t)rows * sizeof **out);
    qsort(*out, (size_t)rows, sizeof **out, compare_numbers);
    *count = 0;
    for (int64_t i = 0; i < rows; i++)
        if (*count == 0 || (*out)[*count - 1] != (*out)[i])
            (*out)[(*count)++] = (*out)[i];
    return SHOAL_OK;
}

static int64_t find_value(const double *values, int64_t count, double value)
{
    const double *found = bsearch(&value, values, (size_t)count, sizeof value, compare_numbers);
    return found ? found - values : -1;
}

static int name_value(char **out, char *const *words, int64_t words_count, double value)
{
    if (words && value >= 0 && value < (double)words_count)
        return base_copy_text(out, words[(int64_t)value]);
    return base_format(out, "%.10g", value);
}

/* What is known, and which row of the table each of its values is. */
typedef struct truth {
    const double *value; /* one a row of the data */
    int64_t rows;
    double *different; /* ascending */
    int64_t count;
    int64_t *place; /* of each of them */
} truth;

static int find_truth(truth *out, const shoal_application *application)
{
    const run_columns *columns = &application->outcome->columns_used;
    *out = (truth){.value = columns->known, .rows = application->outcome->rows};
    for (int64_t i = 0; i < out->rows; i++)
        if (!isfinite(out->value[i]))
            return shoal_fail(SHOAL_INVALID,
                              "%s: the target of row %" PRId64 " is missing or not finite; --score "
                              "needs it",
                              application->outcome->data_name, i + 1);
    int status = list_values(&out->different, &out->count, out->value, out->rows);
    if (status == SHOAL_OK)
        status = base_alloc(&out->place, (size_t)out->count, sizeof *out->place, "known classes");
    return status;
}

static void release_truth(truth *of)
{
    base_free(&of->different);
    base_free(&of->place);
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

static int make_table(run_score *score, int64_t known, int64_t predicted, const char *data_name)
{
    if (known > CELLS_MOST / predicted)
        return shoal_fail(SHOAL_INVALID, "%s: the target has %" PRId64 " different values; is it a column of classes?",
                          data_name, known);
    score->known = known;
    score->predicted = predicted;
    int status = base_alloc(&score->table, (size_t)(known * predicted), sizeof *score->table, "a table of classes");
    if (status == SHOAL_OK)
        status = base_alloc(&score->known_names, (size_t)known, sizeof *score->known_names, "names of classes");
    if (status == SHOAL_OK)
        status =
            base_alloc(&score->predicted_names, (size_t)predicted, sizeof *score->predicted_names, "names of classes");
    return status;
}

/* Words on one side and numbers on the other have nothing in common. */
static int check_kinds(const shoal_application *application)
{
    const run_columns *columns = &application->outcome->columns_used;
    const learn_schema *schema = &application->model->schema;
    if (!schema->classes == !columns->known_words)
        return SHOAL_OK;
    return shoal_fail(SHOAL_INVALID, "%s: the target holds %s, but the classes of the model are %s",
                      application->outcome->data_name, columns->known_words ? "words" : "numbers",
                      schema->classes ? "words" : "numbers");
}

/* The number of the model's class that a known value is; -1 for a class that the model does not know. */
static int64_t find_class(const shoal_application *application, double value)
{
    const learn_schema *schema = &application->model->schema;
    if (!schema->classes)
        return find_value(application->applied.classes, application->applied.classes_count, value);
    const char *word = application->outcome->columns_used.known_words[(int64_t)value];
    for (int64_t i = 0; i < schema->classes_count; i++)
        if (strcmp(schema->classes[i], word) == 0)
            return i;
    return -1;
}

/* The model's classes come first, in their order, then those that it does not know. */
static int lay_out_classes(run_score *score, truth *known, const shoal_application *application)
{
    const run_columns *columns = &application->outcome->columns_used;
    const learn_schema *schema = &application->model->schema;
    int64_t classes = application->applied.classes_count, all = classes;
    int status = check_kinds(application);
    for (int64_t i = 0; i < known->count && status == SHOAL_OK; i++) {
        int64_t class = find_class(application, known->different[i]);
        known->place[i] = class >= 0 ? class : all++;
    }
    if (status == SHOAL_OK)
        status = make_table(score, all, classes, application->outcome->data_name);
    for (int64_t i = 0; i < classes && status == SHOAL_OK; i++) {
        status =
            name_value(&score->known_names[i], schema->classes, schema->classes_count, application->applied.classes[i]);
        if (status == SHOAL_OK)
            status = base_copy_text(&score->predicted_names[i], score->known_names[i]);
    }
    for (int64_t i = 0; i < known->count && status == SHOAL_OK; i++)
        if (known->place[i] >= classes)
            status = name_value(&score->known_names[known->place[i]], columns->known_words, columns->known_words_count,
                                known->different[i]);
    return status;
}

/* Probabilities below this count as it, as in scikit-learn, so that one row can't make the mean infinite. */
static const double LEAST_PROBABILITY = DBL_EPSILON;

/* Of more classes than this it is also told how often the known one is among the most probable. */
enum { CLASSES_FEW = 10, TOP = 5 };

static bool is_among_top(const double *probability, int64_t classes, int64_t class)
{
    int64_t greater = 0;
    for (int64_t i = 0; i < classes; i++)
        greater += probability[i] > probability[class];
    return greater < TOP;
}

static int score_classes(run_score *score, truth *known, const shoal_application *application)
{
    const shoal_result *result = application->outcome->result;
    const double *label = shoal_result_tensor(result, "labels")->values;
    const double *probability = shoal_result_tensor(result, "probabilities")->values;
    const int64_t classes = application->applied.classes_count;
    int64_t right = 0, unknown = 0, among = 0;
    double loss = 0;
    int status = lay_out_classes(score, known, application);
    for (int64_t i = 0; i < known->rows && status == SHOAL_OK; i++) {
        int64_t truth = known->place[find_value(known->different, known->count, known->value[i])];
        int64_t said = find_value(application->applied.classes, classes, label[i]);
        score->table[truth * classes + said]++;
        right += truth == said;
        unknown += truth >= classes;
        among += truth < classes && is_among_top(probability + i * classes, classes, truth);
        if (truth < classes)
            loss -= log(fmax(probability[i * classes + truth], LEAST_PROBABILITY));
    }
    if (status < 0)
        return status;
    shoal_result_set(score->facts, "accuracy", (double)right / (double)known->rows);
    shoal_result_set_whole(score->facts, "right", right);
    if (classes > CLASSES_FEW)
        shoal_result_set(score->facts, "top_5", (double)among / (double)known->rows);
    shoal_result_set(score->facts, "log_loss", unknown > 0 ? NAN : loss / (double)known->rows);
    shoal_result_set_whole(score->facts, "unknown_classes", score->known - classes);
    return SHOAL_OK;
}

/* ---- clusters ---------------------------------------------------------------------------------------------------- */

static double pairs_of(int64_t count)
{
    return (double)count * (double)(count - 1) / 2;
}

/* Hubert and Arabie 1985, (5): pairs that are together in both, less what chance would give. */
static double adjusted_rand_index(const run_score *score)
{
    double both = 0, known = 0, said = 0;
    int64_t rows = 0;
    for (int64_t i = 0; i < score->known; i++) {
        int64_t sum = 0;
        for (int64_t k = 0; k < score->predicted; k++) {
            sum += score->table[i * score->predicted + k];
            both += pairs_of(score->table[i * score->predicted + k]);
        }
        known += pairs_of(sum);
        rows += sum;
    }
    for (int64_t k = 0; k < score->predicted; k++) {
        int64_t sum = 0;
        for (int64_t i = 0; i < score->known; i++)
            sum += score->table[i * score->predicted + k];
        said += pairs_of(sum);
    }
    if (both == known && both == said) /* the same clusters, also where there is but one */
        return 1;
    double chance = known * said / pairs_of(rows);
    return (both - chance) / ((known + said) / 2 - chance);
}

static int score_clusters(run_score *score, truth *known, const shoal_application *application, int64_t clusters)
{
    const run_columns *columns = &application->outcome->columns_used;
    const int32_t *label = shoal_result_tensor(application->outcome->result, "labels")->values;
    int status = make_table(score, known->count, clusters, application->outcome->data_name);
    for (int64_t i = 0; i < known->count && status == SHOAL_OK; i++) {
        known->place[i] = i;
        status =
            name_value(&score->known_names[i], columns->known_words, columns->known_words_count, known->different[i]);
    }
    for (int64_t i = 0; i < clusters && status == SHOAL_OK; i++)
        status = name_value(&score->predicted_names[i], NULL, 0, (double)i);
    for (int64_t i = 0; i < known->rows && status == SHOAL_OK; i++)
        score->table[find_value(known->different, known->count, known->value[i]) * clusters + label[i]]++;
    if (status == SHOAL_OK)
        shoal_result_set(score->facts, "adjusted_rand_index", adjusted_rand_index(score));
    return status;
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

static int score_known(run_score *score, const shoal_application *application)
{
    truth known;
    int status = find_truth(&known, application);
    if (status == SHOAL_OK && application->applied.classes_count > 0)
        status = score_classes(score, &known, application);
    else if (status == SHOAL_OK && application->applied.clusters > 0)
        status = score_clusters(score, &known, application, application->applied.clusters);
    release_truth(&known);
    return status;
}

int run_score_make(run_score *out, const shoal_application *application)
{
    const learn_predictor *predictor = application->model->face->predictor;
    const shoal_outcome *outcome = application->outcome;
    *out = (run_score){0};
    int status = shoal_result_new(&out->facts);
    if (status == SHOAL_OK) {
        shoal_result_set_whole(out->facts, "rows", outcome->rows);
        if (outcome->columns_used.known)
            status = score_known(out, application);
    }
    if (status == SHOAL_OK && predictor->score)
        status = predictor->score(out->facts, &application->applied, outcome->result, outcome->data,
                                  (int)outcome->request->place.threads);
    return status < 0 ? status : shoal_result_check(out->facts);
}

int shoal_application_score(shoal_result **out, const shoal_application *application)
{
    const shoal_result *facts = application->score.facts;
    *out = NULL;
    if (!facts)
        return shoal_fail(SHOAL_USAGE, "a score needs the option score, and a run");
    int status = shoal_result_new(out);
    for (int i = 0; i < facts->numbers && status == SHOAL_OK; i++) {
        shoal_result_set(*out, facts->number[i].name, facts->number[i].value);
        status = shoal_result_check(*out);
        if (status == SHOAL_OK)
            (*out)->number[i] = facts->number[i];
    }
    if (status < 0)
        shoal_result_free(out);
    return status;
}

/* ---- as a picture ------------------------------------------------------------------------------------------------ */

static bool is_of_classes(const run_score *score)
{
    return shoal_result_number(score->facts, "accuracy") >= 0;
}

int run_score_check_picture(const run_score *score)
{
    if (score->known <= PLOT_MATRIX_MOST && score->predicted <= PLOT_MATRIX_MOST)
        return SHOAL_OK;
    return shoal_fail(SHOAL_USAGE,
                      "--confusion: %" PRId64 " by %" PRId64 " %s are more than the %d a picture shows: --score "
                      "--json prints the table",
                      score->known, score->predicted, is_of_classes(score) ? "classes" : "classes and clusters",
                      PLOT_MATRIX_MOST);
}

int run_score_draw(const char *path, const run_score *score, const char *name)
{
    const bool classes = is_of_classes(score);
    const double rows = shoal_result_number(score->facts, "rows");
    plot_matrix table = {.rows = score->known,
                         .columns = score->predicted,
                         .count = score->table,
                         .row_names = score->known_names,
                         .column_names = score->predicted_names,
                         .same = classes ? score->predicted : 0,
                         .row_title = "known class",
                         .column_title = classes ? "what the model says" : "cluster"};
    plot_canvas *canvas = NULL;
    char *title = NULL;
    int status = classes ? base_format(&title, "%s: %.2f%% of %.0f row%s are right", name,
                                       100 * shoal_result_number(score->facts, "accuracy"), rows, rows == 1 ? "" : "s")
                         : base_format(&title, "%s: %.0f row%s, adjusted Rand index %.4g", name, rows,
                                       rows == 1 ? "" : "s", shoal_result_number(score->facts, "adjusted_rand_index"));
    table.title = title;
    if (status == SHOAL_OK)
        status = plot_matrix_new(&canvas, &table);
    if (status == SHOAL_OK)
        status = plot_write(canvas, path);
    plot_canvas_free(&canvas);
    base_free(&title);
    return status;
}

/* ---- for people -------------------------------------------------------------------------------------------------- */

enum { SHOWN = 20, WIDEST = 16 };

/* How many characters the text has, of `most` that are looked at, and how many bytes these take. */
static int count_letters(size_t *bytes, const char *text, int most)
{
    int count = 0;
    uint32_t letter;
    *bytes = 0;
    for (; count < most && text[*bytes]; count++)
        *bytes += base_text_letter(&letter, text + *bytes);
    return count;
}

static int wider(int width, char *const *names, int64_t count)
{
    size_t bytes;
    for (int64_t i = 0; i < count; i++) {
        int letters = count_letters(&bytes, names[i], WIDEST);
        width = letters > width ? letters : width;
    }
    return width;
}

static int widest(const run_score *score)
{
    int width = wider(wider(1, score->known_names, score->known), score->predicted_names, score->predicted);
    for (int64_t i = 0; i < score->known * score->predicted; i++) {
        int digits = snprintf(NULL, 0, "%" PRId64, score->table[i]);
        width = digits > width ? digits : width;
    }
    return width;
}

/* Right-aligned, and cut where it is too long. */
static void say_name(learn_lines *lines, const char *name, int width)
{
    size_t bytes;
    int letters = count_letters(&bytes, name, width);
    learn_say_more(lines, "%*s%.*s", width - letters, "", (int)bytes, name);
}

static void say_table(learn_lines *lines, const run_score *score)
{
    int width = widest(score);
    bool classes = score->table && is_of_classes(score);
    learn_say(lines, classes ? "confusion" : "clusters", "rows: known classes; columns: %s",
              classes ? "predicted classes" : "clusters");
    learn_say_more(lines, "\n%*s", 11 + width, "");
    for (int64_t k = 0; k < score->predicted; k++) {
        learn_say_more(lines, " ");
        say_name(lines, score->predicted_names[k], width);
    }
    for (int64_t i = 0; i < score->known; i++) {
        learn_say_more(lines, "\n%11s", "");
        say_name(lines, score->known_names[i], width);
        for (int64_t k = 0; k < score->predicted; k++)
            learn_say_more(lines, " %*" PRId64, width, score->table[i * score->predicted + k]);
    }
}

void run_score_say(learn_lines *lines, const run_score *score)
{
    const shoal_result *facts = score->facts;
    double accuracy = shoal_result_number(facts, "accuracy"), loss = shoal_result_number(facts, "log_loss");
    double unknown = shoal_result_number(facts, "unknown_classes"), error = shoal_result_number(facts, "error");
    if (accuracy >= 0) {
        const double rows = shoal_result_number(facts, "rows");
        learn_say(lines, "accuracy", "%.2f%%: %.0f of %.0f row%s", 100 * accuracy, shoal_result_number(facts, "right"),
                  rows, rows == 1 ? "" : "s");
        if (shoal_result_number(facts, "top_5") >= 0)
            learn_say(lines, "top 5", "%.2f%%: the known class is among the five most probable",
                      100 * shoal_result_number(facts, "top_5"));
        if (unknown > 0)
            learn_say(lines, "log loss", "infinite: the model does not know %.0f of the classes", unknown);
        else
            learn_say(lines, "log loss", "%.6g", loss);
    }
    if (!isnan(shoal_result_number(facts, "adjusted_rand_index")))
        learn_say(lines, "agreement", "adjusted Rand index %.6g", shoal_result_number(facts, "adjusted_rand_index"));
    if (error >= 0)
        learn_say(lines, "error", "%.10g: half the mean squared error of a row", error);
    if (score->table && score->known <= SHOWN && score->predicted <= SHOWN)
        say_table(lines, score);
    else if (score->table)
        learn_say(lines, "confusion",
                  "%" PRId64 " by %" PRId64 " classes: --json prints the table, --confusion FILE draws "
                  "it",
                  score->known, score->predicted);
}
