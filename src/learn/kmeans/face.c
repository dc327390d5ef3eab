/* What people see of k-means.  See learn/face.h. */
#include "base/text.h"
#include "learn/face.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <shoal/kmeans.h>

#include "base/memory.h"
#include "data/data_address.h"
#include "data/read_whole.h"
#include "learn/kmeans/batch.h"
#include "learn/standardise.h"

/* ---- before the run ---------------------------------------------------------------------------------------------- */

static const shoal_option inputs[] = {
    {"weights", 'w', SHOAL_OPTION_TEXT, offsetof(learn_inputs, weights), "FILE",
     .help = "a weight for each row, finite and at least 0, as any data file of one column or one row"},
    LEARN_STANDARDISE,
    {0},
};

static const char *const init_words[] = {"auto", "kmeans++", "parallel", "random"};
enum { INIT_WORDS = 4 };

static bool is_init_word(const char *text)
{
    if (!text)
        return true; /* the learner's default */
    for (int i = 0; i < INIT_WORDS; i++)
        if (strcmp(text, init_words[i]) == 0)
            return true;
    return false;
}

/* --init is a word or a file; what is neither was more likely a misspelt word than a missing file when it looks so. */
static int check_kmeans(const void *from, const learn_inputs *given)
{
    const shoal_kmeans_config *config = from;
    const char *init = config->init;
    (void)given;
    if (is_init_word(init) && config->k == 0 && !config->ks)
        return shoal_fail(SHOAL_USAGE, "kmeans needs -k K, the number of clusters");
    if (!is_init_word(init) && config->ks)
        return shoal_fail(SHOAL_USAGE, "--init %s has the first centres of one K, but -k is %s: give one K", init,
                          config->ks);
    int status = kmeans_check_batch(config);
    if (status < 0)
        return status;
    if (!config->ks && (config->choose != SHOAL_CHOOSE_SILHOUETTE || config->sample > 0))
        return shoal_fail(SHOAL_USAGE, "%s needs several K to choose from, as in -k 2..20",
                          config->sample > 0 ? "--sample" : "--choose");
    if (is_init_word(init) || strncmp(init, "gen:", 4) == 0 || data_address_exists(init) || strpbrk(init, "/."))
        return SHOAL_OK;
    const char *near = base_nearest(init, init_words, INIT_WORDS);
    return shoal_fail(SHOAL_USAGE, "--init: '%s' is neither a file nor one of auto, kmeans++, parallel, random%s%s%s",
                      init, near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
}

static int check_output(const void *from, const learn_output *output)
{
    const shoal_kmeans_config *config = from;
    if (config->ks || !(output->names_rows || output->kind == LEARN_CHART))
        return SHOAL_OK;
    return shoal_fail(SHOAL_USAGE, "--%s needs several K to choose from, as in -k 2..20", output->name);
}

static const char *start_file(const char **option, const void *from, const learn_inputs *given)
{
    const shoal_kmeans_config *config = from;
    (void)given;
    *option = "--init";
    return is_init_word(config->init) ? NULL : config->init;
}

/* Models of before there were metrics are Euclidean. */
static int read_metric(int *out, const learn_model_file *model)
{
    static const char key[] = "option.metric";
    *out = SHOAL_METRIC_EUCLIDEAN;
    return learn_model_file_text(model, key) ? learn_model_file_choice(out, model, key, kmeans_metrics) : SHOAL_OK;
}

/* Centres found by one metric are no start for another: means of rows have no length of 1, and directions no size. */
static int check_metric(const learn_model_file *model, int wanted)
{
    int metric = wanted;
    int status = read_metric(&metric, model);
    if (status < 0 || metric == wanted)
        return status;
    return shoal_fail(SHOAL_USAGE,
                      "--init: %s was trained with --metric %s, not %s; give --metric %s, or another start",
                      model->path, kmeans_metrics[metric], kmeans_metrics[wanted], kmeans_metrics[metric]);
}

/* Centres, and what they have seen: out[1] stays NULL where a model does not say. */
static int read_model_centres(double *out[2], int64_t *rows, int64_t *columns, const char *path, int metric)
{
    learn_model_file model = {0};
    int status = learn_model_file_open_as(&model, path, "kmeans");
    if (status == SHOAL_OK)
        status = check_metric(&model, metric);
    if (status == SHOAL_OK)
        status = learn_model_file_matrix(&out[0], rows, columns, &model, "centres");
    if (status == SHOAL_OK && learn_model_file_has(&model, "seen"))
        status = learn_model_file_vector(&out[1], rows, &model, "seen");
    learn_model_file_close(&model);
    return status;
}

/* Loads the centres that --init names: a data file, in the units of the data, or a model. */
static int settle_kmeans(void *into, double *values[4], const learn_inputs *given, const learn_rows *about)
{
    shoal_kmeans_config *config = into;
    int64_t rows = 0, columns = 0;
    (void)given;
    if (is_init_word(config->init))
        return SHOAL_OK;
    int status = data_safetensors_is(config->init)
                     ? read_model_centres(values, &rows, &columns, config->init, config->metric)
                     : data_read_float64(&values[0], &rows, &columns, config->init);
    if (status < 0)
        return status;
    if (columns != about->columns)
        return shoal_fail(SHOAL_INVALID, "%s: centres of %" PRId64 " column%s, but %s has %" PRId64, config->init,
                          columns, base_plural(columns), about->name, about->columns);
    if (config->k == 0)
        config->k = rows;
    if (config->k != rows)
        return shoal_fail(SHOAL_USAGE, "-k is %" PRId64 ", but --init %s has %" PRId64 " row%s", config->k,
                          config->init, rows, base_plural(rows));
    if (!data_safetensors_is(config->init))
        learn_standardise_values(values[0], rows, about->schema);
    config->start = values[0];
    config->seen = values[1];
    return SHOAL_OK;
}

static int start_from(void *into, const double *centres, int64_t rows)
{
    shoal_kmeans_config *config = into;
    if (config->ks)
        return shoal_fail(SHOAL_USAGE, "a start has the first centres of one K, but -k is %s: give one K", config->ks);
    if (config->k != 0 && config->k != rows)
        return shoal_fail(SHOAL_USAGE, "-k is %" PRId64 ", but the start has %" PRId64 " row%s", config->k, rows,
                          base_plural(rows));
    config->start = centres;
    config->k = rows;
    return SHOAL_OK;
}

/* ---- after the run ----------------------------------------------------------------------------------------------- */

#define PLOT_HELP "draw the rows as dots in the colours of their clusters, and the centres: .svg or .png"

static const learn_output outputs[] = {
    {"centres", 'c', "FILE", "write the centres, in the units of DATA: float64, K rows", .kind = LEARN_TENSOR,
     .type = "float64", .rank = 2, .as_wide_as_data = true},
    {"labels", 'l', "FILE", "write the cluster of each row: int32, from 0; -1 for rows that --missing drop leaves out",
     .kind = LEARN_TENSOR, .type = "int32", .rank = 1, .of_rows = true},
    {"model", 'm', "FILE.safetensors", "write the model: the centres and the options, for shoal predict",
     .kind = LEARN_MODEL},
    {"picture", 0, "FILE", "draw the centres as small images side by side: .png or .svg", .kind = LEARN_PICTURE},
    {"elbow", 0, "FILE",
     "of several K: draw the objective and the scores over K, and what each rule picks: .png or .svg",
     .kind = LEARN_CHART},
    {"sample-labels", 0, "FILE",
     "of several K: write the rows that silhouettes are of: int64, each row's number, from 0, then its cluster for "
     "each K",
     .kind = LEARN_TENSOR, .type = "int64", .rank = 2, .names_rows = true},
    {"plot", 0, "FILE", PLOT_HELP, .kind = LEARN_PLOT},
    {0},
};

static const char *const parts[] = {"centres", "seen", NULL};

/* The seed has its own entry, as models always had it. */
static void annotate(shoal_result *facts, const learn_ended *ended)
{
    const shoal_kmeans_config *config = ended->config;
    shoal_result_set_whole(facts, "seed", config->seed);
}

static int draw(data_sheet *sheet, double **images, const learn_ended *ended)
{
    const shoal_tensor *centres = shoal_result_tensor(ended->result, "centres");
    const size_t count = (size_t)(centres->shape[0] * centres->shape[1]);
    int status = base_alloc(images, count, sizeof **images, "the centres");
    if (status < 0)
        return status;
    memcpy(*images, centres->values, count * sizeof **images);
    learn_unstandardise_values(*images, centres->shape[0], ended->rows.schema);
    sheet->values = *images;
    sheet->images = centres->shape[0];
    return SHOAL_OK;
}

static void plot_kmeans(learn_plot *out, const learn_ended *ended)
{
    const shoal_kmeans_config *config = ended->config;
    const shoal_tensor *centres = shoal_result_tensor(ended->result, "centres"),
                       *labels = shoal_result_tensor(ended->result, "labels");
    *out = (learn_plot){.called = "cluster",
                        .group = labels ? labels->values : NULL,
                        .groups = centres->shape[0],
                        .centres = centres->values,
                        .unit = config->metric == SHOAL_METRIC_COSINE};
}

/* Rows in the smallest and the largest cluster. */
static void summarise_sizes(learn_lines *lines, const shoal_result *result)
{
    const shoal_tensor *sizes = shoal_result_tensor(result, "sizes");
    const int64_t *size = sizes->values;
    int64_t k = sizes->shape[0], least = INT64_MAX, most = 0;
    for (int64_t i = 0; i < k; i++) {
        least = size[i] < least ? size[i] : least;
        most = size[i] > most ? size[i] : most;
    }
    learn_say_sizes(lines, "clusters", k, (double)least, (double)most);
}

/* ---- several numbers of clusters --------------------------------------------------------------------------------- */

/* A number of a table, or a dash where there is none. */
static void say_number(learn_lines *lines, int width, const char *format, double number)
{
    char text[32] = "-";
    if (!isnan(number))
        snprintf(text, sizeof text, format, number);
    learn_say_more(lines, "%*s", width, text);
}

/* The objective as a bar, beside the greatest. */
static void say_bar(learn_lines *lines, double objective, double most)
{
    enum { BAR_MOST = 24 };
    const int length = most > 0 && isfinite(objective) ? (int)lrint(BAR_MOST * objective / most) : 0;
    learn_say_more(lines, "  ");
    for (int i = 0; i < length && i < BAR_MOST; i++)
        learn_say_more(lines, "#");
}

/* What the result has of each K that was tried, by its names in kmeans.h; checked when it came from elsewhere. */
static void say_trials(learn_lines *lines, const shoal_result *result)
{
    const shoal_tensor *ks = shoal_result_tensor(result, "ks");
    const int64_t *k = ks->values, *iterations = shoal_result_tensor(result, "iterations_by_k")->values;
    const double *objective = shoal_result_tensor(result, "objectives")->values;
    const double *silhouette = shoal_result_tensor(result, "silhouettes")->values;
    const double *calinski = shoal_result_tensor(result, "calinski_harabasz")->values;
    double most = 0;
    for (int64_t t = 0; t < ks->shape[0]; t++)
        most = fmax(most, objective[t]);
    learn_say(lines, "", "%6s %16s %11s %18s %11s  %s", "K", "objective", "silhouette", "Calinski-Harabasz",
              "iterations", "elbow");
    for (int64_t t = 0; t < ks->shape[0]; t++) {
        learn_say(lines, "", "%6" PRId64 " %16.10g ", k[t], objective[t]);
        say_number(lines, 11, "%.4f", silhouette[t]);
        say_number(lines, 19, "%.2f", calinski[t]);
        learn_say_more(lines, "%12" PRId64, iterations[t]);
        say_bar(lines, objective[t], most);
    }
}

/* In the order of shoal_kmeans_choose. */
enum { RULES = 3 };
static const struct {
    const char *name, *pick;
} rules[RULES] = {
    {"silhouette", "pick_silhouette"}, {"Calinski-Harabasz", "pick_calinski_harabasz"}, {"elbow", "pick_elbow"}};

/* Where the rule that was asked for picks none, another chose; -1 when none does. */
static int rule_that_chose(int asked, const shoal_result *result)
{
    const int order[RULES] = {asked, SHOAL_CHOOSE_SILHOUETTE, SHOAL_CHOOSE_CALINSKI};
    for (int i = 0; i < RULES; i++)
        if (!isnan(shoal_result_number(result, rules[order[i]].pick)))
            return order[i];
    return -1;
}

/* "chosen     K = 2, by silhouette; outputs are of this K" */
static void say_choice(learn_lines *lines, int asked, const shoal_result *result)
{
    const int rule = rule_that_chose(asked, result);
    learn_say(lines, "chosen", "K = %.0f, ", shoal_result_number(result, "k"));
    if (rule < 0)
        learn_say_more(lines, "the first, since no rule picks one");
    else if (rule == asked)
        learn_say_more(lines, "by %s", rules[rule].name);
    else
        learn_say_more(lines, "by %s, since %s picks none", rules[rule].name, rules[asked].name);
    learn_say_more(lines, "; outputs are of this K");
}

static void say_pick(learn_lines *lines, const char *comma, const char *rule, const shoal_result *result,
                     const char *name)
{
    const double pick = shoal_result_number(result, name);
    if (isnan(pick))
        learn_say_more(lines, "%s%s -", comma, rule);
    else
        learn_say_more(lines, "%s%s %.0f", comma, rule, pick);
}

/* "picks      silhouette 2, Calinski-Harabasz 2, elbow 6" */
static void summarise_trials(learn_lines *lines, const learn_ended *ended)
{
    const shoal_kmeans_config *config = ended->config;
    const shoal_result *result = ended->result;
    const int64_t sample = shoal_result_tensor(result, "sample-labels")->shape[0];
    say_trials(lines, result);
    learn_say(lines, "picks", "%s", "");
    for (int rule = 0; rule < RULES; rule++)
        say_pick(lines, rule ? ", " : "", rules[rule].name, result, rules[rule].pick);
    learn_say(lines, "sample", "%" PRId64 " of %" PRId64 " rows, for the silhouettes", sample, ended->rows.rows);
    say_choice(lines, config->choose, result);
}

/* The objective, whose elbow it is, comes first. */
static void chart(learn_chart *out, const learn_ended *ended)
{
    static const char *const scores[RULES] = {"silhouettes", "calinski_harabasz", "objectives"};
    static const char *const names[RULES] = {"mean silhouette", "Calinski-Harabasz score", "objective"};
    static const int order[RULES] = {SHOAL_CHOOSE_ELBOW, SHOAL_CHOOSE_SILHOUETTE, SHOAL_CHOOSE_CALINSKI};
    const shoal_tensor *ks = shoal_result_tensor(ended->result, "ks");
    *out = (learn_chart){.title = "Choosing K", .x_name = "K", .x = ks->values, .count = ks->shape[0], .curves = RULES};
    for (int i = 0; i < RULES; i++)
        out->curve[i] = (learn_curve){.name = names[order[i]],
                                      .values = shoal_result_tensor(ended->result, scores[order[i]])->values,
                                      .picked = shoal_result_number(ended->result, rules[order[i]].pick),
                                      .rule = rules[order[i]].name};
}

/* For --json: all but the labels of the sample. */
static int tell_kmeans(shoal_result *facts, const learn_ended *ended)
{
    static const char *const names[] = {"ks", "objectives", "silhouettes", "calinski_harabasz", "iterations_by_k"};
    const shoal_tensor *sample = shoal_result_tensor(ended->result, "sample-labels");
    if (sample)
        shoal_result_set_whole(facts, "sample", sample->shape[0]);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const shoal_tensor *from = shoal_result_tensor(ended->result, names[i]);
        if (!from)
            return SHOAL_OK; /* one K alone */
        void *values = shoal_result_add(facts, from->name, from->type, 1, from->shape);
        if (!values)
            return SHOAL_MEMORY;
        memcpy(values, from->values, (size_t)from->shape[0] * shoal_type_size(from->type));
    }
    return SHOAL_OK;
}

/* "batches    85 of 1024 rows, and of 608 at the end of each pass" */
static void summarise_batches(learn_lines *lines, const learn_ended *ended)
{
    const shoal_kmeans_config *config = ended->config;
    const int64_t left = config->batch > 0 ? ended->rows.rows % config->batch : 0;
    const double batches = shoal_result_number(ended->result, "batches");
    learn_say(lines, "batches", "%.0f of ", batches);
    if (config->batch > ended->rows.rows)
        learn_say_more(lines, "all %" PRId64 " row%s, since --batch %" PRId64 " is more than there are",
                       ended->rows.rows, base_plural(ended->rows.rows), config->batch);
    else
        learn_say_more(lines, "%" PRId64 " row%s", config->batch, base_plural(config->batch));
    if (left > 0 && batches > (double)(ended->rows.rows / config->batch) && config->batch < ended->rows.rows)
        learn_say_more(lines, ", and of %" PRId64 " at the end of each pass", left);
}

static void summarise_kmeans(learn_lines *lines, const learn_ended *ended)
{
    double computed = (double)ended->counter[0], skipped = (double)ended->counter[1];
    double iterations = shoal_result_number(ended->result, "iterations");
    bool converged = shoal_result_number(ended->result, "converged") > 0;
    if (shoal_result_tensor(ended->result, "ks"))
        summarise_trials(lines, ended);
    summarise_sizes(lines, ended->result);
    learn_say(lines, "objective", "%.10g after %.0f iteration%s, %s", shoal_result_number(ended->result, "objective"),
              iterations, iterations == 1 ? "" : "s",
              converged        ? "converged"
              : ended->stopped ? "stopped"
                               : LEARN_NOT_CONVERGED);
    if (((const shoal_kmeans_config *)ended->config)->batch > 0)
        summarise_batches(lines, ended);
    if (computed + skipped > 0)
        learn_say(lines, "distances", "%.4g computed, %.4g skipped (%.1f%%)", computed, skipped,
                  100 * skipped / (computed + skipped));
}

/* ---- applying a model -------------------------------------------------------------------------------------------- */

enum { LABELS, DISTANCES, ALL_DISTANCES, PLOT };
static const learn_output predictions[] = {
    [LABELS] = {"labels", 'l', "FILE", "write the index of the nearest centre of each row: int32, from 0",
                .kind = LEARN_TENSOR, .type = "int32", .rank = 1},
    [DISTANCES] = {"distances", 'd', "FILE", "write the distance of each row to its nearest centre: float64",
                   .kind = LEARN_TENSOR, .type = "float64", .rank = 1},
    [ALL_DISTANCES] = {"all-distances", 0, "FILE",
                       "write the distance of each row from every centre: float64, one column per centre",
                       .kind = LEARN_TENSOR, .type = "float64", .rank = 2},
    [PLOT] = {"plot", 0, "FILE", PLOT_HELP, .kind = LEARN_PLOT},
    {0},
};

/* Any data file whose rows are centres is a model, too. */
static int load_kmeans(learn_applied *out, const learn_model_file *model, const char *path)
{
    shoal_predict_config *config = out->config;
    int status = model ? read_metric(&config->metric, model) : SHOAL_OK;
    if (status < 0)
        return status;
    status = model ? learn_model_file_matrix(&out->values[0], &config->k, &config->columns, model, "centres")
                   : data_read_float64(&out->values[0], &config->k, &config->columns, path);
    config->centres = out->values[0];
    out->columns = config->columns;
    out->clusters = config->k;
    return status;
}

static void settle_wanted(learn_applied *applied, const learn_rows *rows)
{
    shoal_predict_config *config = applied->config;
    (void)rows;
    config->distances = applied->wanted[DISTANCES];
    config->all_distances = applied->wanted[ALL_DISTANCES];
}

static void shape_all_distances(int64_t *columns, shoal_type *type, const learn_applied *applied, const char *output)
{
    (void)type, (void)output;
    *columns = applied->clusters;
}

static void summarise_labels(learn_lines *lines, const learn_applied *applied, const shoal_result *result)
{
    const shoal_predict_config *config = applied->config;
    learn_say(lines, "centres", "%" PRId64, config->k);
    learn_say(lines, "objective", "%.10g", shoal_result_number(result, "objective"));
}

static void plot_labels(learn_plot *out, const learn_applied *applied, const shoal_result *result)
{
    const shoal_predict_config *config = applied->config;
    const shoal_tensor *labels = shoal_result_tensor(result, "labels");
    *out = (learn_plot){.called = "cluster",
                        .group = labels ? labels->values : NULL,
                        .groups = config->k,
                        .centres = config->centres,
                        .unit = config->metric == SHOAL_METRIC_COSINE};
}

static int tell_labels(shoal_result *facts, const learn_applied *applied, const shoal_result *result)
{
    const shoal_predict_config *config = applied->config;
    (void)result;
    shoal_result_set_whole(facts, "k", config->k);
    return SHOAL_OK;
}

static int score(shoal_result *facts, const learn_applied *applied, const shoal_result *result, shoal_data *rows,
                 int threads)
{
    (void)applied, (void)rows, (void)threads;
    shoal_result_set(facts, "objective", shoal_result_number(result, "objective"));
    return SHOAL_OK;
}

static const learn_predictor predictor = {
    .algorithm = &shoal_kmeans_predict,
    .outputs = predictions,
    .load = load_kmeans,
    .settle = settle_wanted,
    .shape = shape_all_distances,
    .summarise = summarise_labels,
    .tell = tell_labels,
    .plot = plot_labels,
    .score = score,
    .takes_rows = true,
    .hint = ": leave one out with --drop-column, or, if it is the known class, name it with --score --target COLUMN",
};

/* ---- the face ---------------------------------------------------------------------------------------------------- */

static const learn_probe probe = {
    .size_option = "clusters",
    .set = {{"iterations", "10"}, {"tolerance", "0"}},
    .shape = {{4, "8"}, {16, "64"}, {32, "300"}, {64, "10"}, {128, "100"}, {512, "20"}},
};

static const char *const description[] = {
    "Finds K centres such that the sum of squared distances from each row to its nearest centre, the objective, is "
    "small: seeding, then Lloyd's iteration until the centres stay where they are. DATA is a .npy, IDX, text (CSV, "
    "TSV, spaces) or raw file, .gz included where that is usual, or a generated data set such as "
    "gen:blobs?rows=1000&cols=2&seed=1, or the URL of a .npy or raw blob in a store, such as az://acct/box/rows.npy; "
    "see shoal data info and docs/data.md.",
    "With several K, as in -k 2..20, each is tried, a table shows the objective, the mean silhouette and the "
    "Calinski-Harabasz score of each, and which K the rules pick; the outputs are of the one that --choose picks.",
    "With --batch B it is mini-batch k-means: the centres move after every B rows, drawn at random, and a pass or two "
    "often does. Then the first centres come from a sample, and rows that a store or a generator streams need not fit "
    "into memory.",
    "The result depends on the data, the options under Clustering and the weights alone. The number of threads, the "
    "kernel and the grain never change one bit of it; but with --batch the grain says which rows are drawn together.",
    "Without an option for output a summary is printed and nothing is written. Every file is written under a "
    "temporary name and renamed when whole, so an old file stays until the new one is there.",
    "SIGINT (Ctrl-C), SIGTERM or SIGHUP ends the run after the round it is in: the files are written from what has "
    "been found so far, a sentence on stderr says so, and the exit code is 130. A second signal ends it at once, and "
    "nothing is written. Before the first centres are found there is nothing to write.",
    NULL,
};

static const learn_example examples[] = {
    {"shoal kmeans data.npy -k 100", "cluster with all cores and print a summary"},
    {"shoal kmeans data.npy -k 100 --centres centres.npy --labels labels.npy", "keep the result"},
    {"shoal kmeans data.npy -k 2..20 --elbow elbow.svg --model best.safetensors",
     "try each K, draw how good it is, and keep the best by its silhouette"},
    {"shoal kmeans train-images-idx3-ubyte.gz -k 64 --picture centres.png", "draw the centres of small images"},
    {"shoal kmeans iris.csv -k 3 --drop-column species --plot clusters.svg", "see the clusters"},
    {"shoal kmeans iris.csv -k 3 --drop-column species --runs 10 --json", "the best of ten runs, for a script"},
    {"shoal kmeans documents.npy -k 50 --metric cosine --model topics.safetensors",
     "by direction only: word counts, embeddings"},
    {"shoal kmeans big.npy -k 1000 --batch 10000 --model model.safetensors",
     "mini-batch k-means: a pass or two is enough"},
    {"shoal kmeans data.npy --init centres.npy --iterations 1", "one more iteration from given centres"},
    {"shoal kmeans data.npy -k 100 --workers local:4 --centres centres.npy",
     "with four processes, any of which may die"},
    {"shoal kmeans az://acct/box/data.npy -k 100 --store az://acct/box/jobs --detach", "for workers on other machines"},
    {"mpirun -n 64 shoal kmeans data.npy -k 100 --checkpoint 60 --resume", "on a cluster; again after a crash"},
    {NULL, NULL},
};

static const learn_example plan_examples[] = {
    {"shoal plan kmeans --rows 500e6 --cols 1000 -k 1000 --iterations 20 --machines 'aws:us-east-1/c7i.*' --deadline "
     "2h",
     "the cheapest machines that finish within two hours"},
    {"shoal plan kmeans rows.npy -k 100 --workers local:1..8", "how many processes of this machine are best"},
    {"shoal plan kmeans --rows 5e6 --cols 64 -k 256 --machines prices.csv --spot --budget 5usd --picture plan.svg",
     "a price table of your own, spot prices, and a picture"},
    {"shoal plan kmeans --model paper --rows 500000 --cols 1000 -k 1000 --iterations 10 --flops 669e6 --bandwidth 8e6 "
     "--workers 10,50,95,160 --json",
     "what the paper's model says about the paper's experiment"},
    {NULL, NULL},
};

const learn_face learn_kmeans = {
    .algorithm = &shoal_kmeans,
    .summary = "cluster the rows of a data set around K centres",
    .synopsis = "-k K [options]",
    .description = description,
    .examples = examples,
    .plan_examples = plan_examples,
    .options_title = "Clustering",
    .inputs_title = "Weights and scaling",
    .inputs = inputs,
    .outputs = outputs,
    .keeps_part = true,
    .kept = "centres and labels are those",
    .check = check_kmeans,
    .check_output = check_output,
    .start_file = start_file,
    .settle = settle_kmeans,
    .start_from = start_from,
    .summarise = summarise_kmeans,
    .tell = tell_kmeans,
    .draw = draw,
    .chart = chart,
    .plot = plot_kmeans,
    .parts = parts,
    .annotate = annotate,
    .predictor = &predictor,
    .probe = &probe,
};
