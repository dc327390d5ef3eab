/* k-means as a learner: options, the first round, and the hand-over to the phases.  See shoal/kmeans.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/option.h"
#include "base/text.h"
#include "learn/kmeans/batch.h"
#include "learn/kmeans/choose.h"
#include "learn/kmeans/device.h"

/* greedy k-means++ is one round a centre; above this many k-means|| is quicker and as good. */
enum { GREEDY_MOST = 50 };

_Static_assert(offsetof(shoal_kmeans_config, ks) ==
                   offsetof(shoal_kmeans_config, k) + offsetof(base_option_counts, several),
               "k and ks are one option");

#define TEXT_OF_IT(value) #value
#define TEXT_OF(value) TEXT_OF_IT(value)

/* In the order of shoal_kmeans_choose. */
static const char *const choose_choices[] = {"silhouette", "calinski-harabasz", "elbow", NULL};
static const char *const empty_choices[] = {"farthest", "keep", "split", NULL};
const char *const kmeans_metrics[] = {"euclidean", "cosine", NULL};

static const shoal_option kmeans_options[] = {
    {"clusters", 'k', SHOAL_OPTION_COUNTS, offsetof(shoal_kmeans_config, k), "K",
     "number of clusters; or several to choose from: 2..20, 2..50..4 in steps of 4, or 2,4,8", NULL, 1,
     .most = INT32_MAX},
    {"init", 0, SHOAL_OPTION_TEXT, offsetof(shoal_kmeans_config, init), "HOW",
     "first centres: kmeans++, parallel (k-means||), random, a file of K rows, a model, or auto (kmeans++ up to "
     "K = 50, parallel above)",
     .fallback = "auto"},
    {"iterations", 0, SHOAL_OPTION_COUNT, offsetof(shoal_kmeans_config, iterations), "N",
     "maximum number of iterations", "300", 0, .most = INT32_MAX},
    {"tolerance", 0, SHOAL_OPTION_REAL, offsetof(shoal_kmeans_config, tolerance), "T",
     "stop when the centres' squared movement is at most T times the mean variance of the columns", "1e-4", 0,
     .most = INFINITY},
    {"runs", 0, SHOAL_OPTION_COUNT, offsetof(shoal_kmeans_config, runs), "N",
     "independent runs with different first centres; the best is kept", "1", 1, .most = KMEANS_RUNS_MOST},
    {"seed", 0, SHOAL_OPTION_COUNT, offsetof(shoal_kmeans_config, seed), "N", "random seed", "0", 0, .most = 0x1p53},
    {"empty", 0, SHOAL_OPTION_CHOICE, offsetof(shoal_kmeans_config, empty), "HOW",
     "what to do with an empty cluster: move it to the farthest row, keep its centre, or split the largest cluster",
     "farthest", 0, 0, .choices = empty_choices},
    {"metric", 0, SHOAL_OPTION_CHOICE, offsetof(shoal_kmeans_config, metric), "HOW",
     "how distance is measured: euclidean, or by the cosine of the angle between rows, whatever their lengths",
     "euclidean", 0, 0, .choices = kmeans_metrics},
    {"choose", 0, SHOAL_OPTION_CHOICE, offsetof(shoal_kmeans_config, choose), "RULE",
     "of several K, the one that the outputs are of: the greatest silhouette, the greatest Calinski-Harabasz score, or "
     "the elbow of the objective",
     "silhouette", 0, 0, .choices = choose_choices},
    {"sample", 0, SHOAL_OPTION_COUNT, offsetof(shoal_kmeans_config, sample), "N",
     "of several K: number of rows that silhouettes are computed from", .least = 2, .most = 100000,
     .default_text = "1000 to 3000, fewer where there are many columns"},
    {"batch", 0, SHOAL_OPTION_COUNT, offsetof(shoal_kmeans_config, batch), "B",
     "mini-batch k-means: move the centres after every B rows, drawn at random; an iteration is still one pass over "
     "all rows",
     .least = 1, .most = INT32_MAX, .default_text = "all rows"},
    {"init-size", 0, SHOAL_OPTION_COUNT, offsetof(shoal_kmeans_config, init_size), "N",
     "with --batch: find the first centres, and judge them, among N rows drawn at random", .least = 1,
     .most = INT32_MAX, .default_text = "3 times B, or 3 times K if that is more"},
    {"max-no-improvement", 0, SHOAL_OPTION_COUNT, offsetof(shoal_kmeans_config, max_no_improvement), "N",
     "with --batch: stop after N batches in a row that do not lower the smoothed objective; 0: do not stop for that",
     TEXT_OF(KMEANS_PATIENCE), 0, .most = INT32_MAX},
    {"reassignment-ratio", 0, SHOAL_OPTION_REAL, offsetof(shoal_kmeans_config, reassignment_ratio), "R",
     "with --batch: move a centre that has seen less than R times the weight of the one that has seen most to a row "
     "drawn at random; 0: never",
     TEXT_OF(KMEANS_REASSIGNMENT), 0, .most = 1},
    {0}};

static const kmeans_phase *const phases[KMEANS_PHASES] = {
    [KMEANS_RANGE] = &kmeans_range, [KMEANS_SPREAD] = &kmeans_spread,     [KMEANS_WEIGH] = &kmeans_weigh,
    [KMEANS_FETCH] = &kmeans_fetch, [KMEANS_JUDGE] = &kmeans_judge,       [KMEANS_SAMPLE] = &kmeans_sample,
    [KMEANS_LLOYD] = &kmeans_lloyd, [KMEANS_RELOCATE] = &kmeans_relocate, [KMEANS_LABEL] = &kmeans_label,
    [KMEANS_DRAW] = &kmeans_draw,   [KMEANS_TALLY] = &kmeans_tally,       [KMEANS_SCATTER] = &kmeans_scatter,
    [KMEANS_RATE] = &kmeans_rate,   [KMEANS_BATCH] = &kmeans_batch,       [KMEANS_REFILL] = &kmeans_refill,
};

const kmeans_phase *kmeans_phase_of(const shoal_round *round)
{
    return phases[((const kmeans_model *)round->model)->phase];
}

void kmeans_describe(shoal_round *round, const shoal_shape *shape)
{
    const kmeans_phase *phase = kmeans_phase_of(round);
    const kmeans_model *model = round->model;
    snprintf(round->phase, sizeof round->phase, "%s", phase->name);
    round->k = model->sampled ? model->k : 0;
    phase->describe(round, shape);
}

kmeans_start kmeans_usual_start(int64_t k)
{
    return k <= GREEDY_MOST ? KMEANS_START_GREEDY : KMEANS_START_PARALLEL;
}

int kmeans_choose_start(int64_t *out, const shoal_kmeans_config *config)
{
    const char *init = config->init ? config->init : "auto";
    if (config->start)
        *out = KMEANS_START_GIVEN;
    else if (strcmp(init, "auto") == 0)
        *out = config->batch > 0 ? KMEANS_START_GREEDY : kmeans_usual_start(config->k);
    else if (strcmp(init, "kmeans++") == 0)
        *out = KMEANS_START_GREEDY;
    else if (strcmp(init, "parallel") == 0)
        *out = KMEANS_START_PARALLEL;
    else if (strcmp(init, "random") == 0)
        *out = KMEANS_START_RANDOM;
    else
        return shoal_fail(SHOAL_USAGE,
                          "--init: '%s' is not auto, kmeans++, parallel or random, and no centres were read from it",
                          init);
    return SHOAL_OK;
}

static int check_centres(const char *what, const double *centres, int64_t k, int64_t columns)
{
    for (int64_t i = 0; i < k * columns; i++)
        if (!isfinite(centres[i]))
            return shoal_fail(SHOAL_INVALID, "%s: row %lld, column %lld of the centres is not finite", what,
                              (long long)(i / columns + 1), (long long)(i % columns + 1));
    return SHOAL_OK;
}

static bool is_metric(int metric)
{
    return metric == SHOAL_METRIC_EUCLIDEAN || metric == SHOAL_METRIC_COSINE;
}

static int fail_metric(int metric)
{
    return shoal_fail(SHOAL_USAGE, "metric %d is neither SHOAL_METRIC_EUCLIDEAN nor SHOAL_METRIC_COSINE", metric);
}

static int check_config(const shoal_kmeans_config *config, const base_counts *ks, const shoal_shape *shape)
{
    const int64_t most = ks->value[ks->count - 1];
    if (ks->value[0] < 1 || most > INT32_MAX)
        return shoal_fail(SHOAL_USAGE, "-k must be at least 1 and below 2^31, not %lld", (long long)config->k);
    if (shape->rows < 1 || shape->columns < 1)
        return shoal_fail(SHOAL_INVALID, "the data has %lld rows and %lld columns; k-means needs at least one of each",
                          (long long)shape->rows, (long long)shape->columns);
    if (most > shape->rows && !(config->start && config->batch > 0)) /* further rows for centres that are there */
        return shoal_fail(SHOAL_INVALID, "-k %lld is more than the data's %lld row%s", (long long)most,
                          (long long)shape->rows, base_plural(shape->rows));
    if (config->start && config->k == 0)
        return shoal_fail(SHOAL_USAGE, "--init with given centres is for one K, not for -k %s", config->ks);
    if (config->choose < SHOAL_CHOOSE_SILHOUETTE || config->choose > SHOAL_CHOOSE_ELBOW || config->sample < 0)
        return shoal_fail(SHOAL_USAGE, "--choose is %s, %s or %s, and --sample at least 2", choose_choices[0],
                          choose_choices[1], choose_choices[2]);
    if (!(config->tolerance >= 0))
        return shoal_fail(SHOAL_USAGE, "--tolerance must be at least 0, not %g", config->tolerance);
    if (config->iterations < 0 || config->runs < 1 || config->runs > KMEANS_RUNS_MOST)
        return shoal_fail(SHOAL_USAGE, "--iterations must be at least 0 and --runs 1 to %d", KMEANS_RUNS_MOST);
    if (!is_metric(config->metric))
        return fail_metric(config->metric);
    int status = kmeans_check_batch(config);
    if (status < 0)
        return status;
    if (config->start && config->batch > 0 && config->seen && !kmeans_are_sizes(config->seen, config->k))
        return shoal_fail(SHOAL_INVALID, "--init: what a centre has seen is negative or not finite");
    return config->start ? check_centres("--init", config->start, config->k, shape->columns) : SHOAL_OK;
}

static int start_kmeans(shoal_round **out, const void *untyped, const shoal_shape *shape)
{
    const shoal_kmeans_config *config = untyped;
    kmeans_model header = {.phase = KMEANS_RANGE,
                           .k = config->k,
                           .columns = shape->columns,
                           .rows = shape->rows,
                           .empty = config->empty,
                           .iterations = config->iterations,
                           .runs = config->runs,
                           .seed = config->seed,
                           .tolerance = config->tolerance,
                           .weighted = shape->weighted,
                           .metric = config->metric,
                           .prescale = 1,
                           .scale = 1,
                           .weight_scale = 1,
                           .weight_most = 1,
                           .memo_round = -1,
                           .best_run = -1};
    base_counts ks;
    int status = kmeans_read_ks(&ks, config);
    if (status == SHOAL_OK)
        status = check_config(config, &ks, shape);
    if (status == SHOAL_OK)
        status = kmeans_choose_start(&header.start, config);
    if (status == SHOAL_OK)
        kmeans_ask_trials(&header, &ks, config, shape);
    kmeans_ask_batches(&header, config, shape);
    if (header.start == KMEANS_START_GIVEN)
        header.runs = 1; /* every run would be the same */
    if (status == SHOAL_OK)
        status = kmeans_round_first(out, &header);
    if (status < 0)
        return status;
    kmeans_set_trials(*out, &ks);
    if (config->start)
        memcpy(kmeans_view_of(*out).centres, config->start,
               (size_t)(config->k * shape->columns) * sizeof *config->start);
    if (config->start && config->batch > 0 && config->seen)
        memcpy(kmeans_view_of(*out).seen, config->seen, (size_t)config->k * sizeof *config->seen);
    kmeans_describe(*out, shape);
    return SHOAL_OK;
}

static int start_predict(shoal_round **out, const void *untyped, const shoal_shape *shape)
{
    const shoal_predict_config *config = untyped;
    kmeans_model header = {.phase = KMEANS_RANGE,
                           .k = config->k,
                           .columns = shape->columns,
                           .rows = shape->rows,
                           .start = KMEANS_START_GIVEN,
                           .runs = 1,
                           .weighted = shape->weighted,
                           .predicting = 1,
                           .distances =
                               (config->distances ? KMEANS_NEAREST : 0) | (config->all_distances ? KMEANS_ALL : 0),
                           .metric = config->metric,
                           .prescale = 1,
                           .scale = 1,
                           .weight_scale = 1,
                           .weight_most = 1,
                           .memo_round = -1,
                           .best_run = -1};
    if (config->k < 1 || config->k > INT32_MAX || config->columns < 1 || !config->centres)
        return shoal_fail(SHOAL_USAGE,
                          "prediction needs at least one centre and fewer than 2^31, not %lld of %lld columns",
                          (long long)config->k, (long long)config->columns);
    if (config->columns != shape->columns)
        return shoal_fail(SHOAL_INVALID, "the centres have %lld columns, the data %lld", (long long)config->columns,
                          (long long)shape->columns);
    if (!is_metric(config->metric))
        return fail_metric(config->metric);
    int status = check_centres("the model", config->centres, config->k, config->columns);
    if (status == SHOAL_OK)
        status = kmeans_round_first(out, &header);
    if (status < 0)
        return status;
    memcpy(kmeans_view_of(*out).centres, config->centres, (size_t)(config->k * config->columns) * sizeof(double));
    kmeans_describe(*out, shape);
    return SHOAL_OK;
}

/* ---- what a process derives -------------------------------------------------------------------------------------- */

static void forget_kmeans(void **inout)
{
    kmeans_prepared *prepared = *inout;
    if (!prepared)
        return;
    kmeans_pack_release(&prepared->pack);
    base_free(&prepared->origin32);
    base_free(&prepared->padded);
    base_free(&prepared->near);
    base_free(&prepared->set);
    base_free(inout);
}

static int64_t origin_copies(const shoal_shape *shape)
{
    return shape->columns <= KERNEL_FEW_COLUMNS ? KMEANS_ORIGIN_COPIES : 1;
}

static int prepare_kmeans(void **inout, const shoal_round *round, const shoal_shape *shape, const shoal_crew *crew)
{
    const kmeans_phase *phase = kmeans_phase_of(round);
    kmeans_view view = kmeans_view_of(round);
    kmeans_prepared *prepared = *inout;
    int status = SHOAL_OK;
    if (!prepared) {
        status = base_alloc(&prepared, 1, sizeof *prepared, "what rounds share");
        if (status == SHOAL_OK)
            status = kernel_choose(&prepared->kernel, crew->kernel);
        if (status == SHOAL_OK)
            status = base_alloc(&prepared->origin32, (size_t)(shape->columns * origin_copies(shape)), sizeof(float),
                                "the origin");
        *inout = prepared;
    }
    if (status < 0)
        return status;
    for (int64_t k = 0; k < shape->columns * origin_copies(shape); k++)
        prepared->origin32[k] = (float)view.origin[k % shape->columns];
    return phase->prepare ? phase->prepare(prepared, round, shape, crew) : SHOAL_OK;
}

static size_t scratch_bytes_kmeans(const shoal_round *round, const void *prepared, const shoal_shape *shape)
{
    return kmeans_phase_of(round)->scratch_bytes(round, prepared, shape);
}

static int map_kmeans(shoal_partial *partial, const shoal_round *round, const void *prepared, const shoal_grain *grain,
                      const shoal_scratch *scratch)
{
    return kmeans_phase_of(round)->map(partial, round, prepared, grain, scratch);
}

static int update_kmeans(shoal_round **next, shoal_result **result, const shoal_round *round, shoal_partial *merged,
                         const shoal_shape *shape, const shoal_crew *crew, bool stop)
{
    int status = stop && kmeans_can_end_trials(round)
                     ? kmeans_end_trials(next, round, crew)
                     : kmeans_phase_of(round)->update(next, result, round, merged, shape, crew, stop);
    if (status < 0) {
        shoal_round_free(next);
        shoal_result_free(result);
    } else if (*next) {
        kmeans_describe(*next, shape);
    }
    return status;
}

const shoal_algorithm shoal_kmeans = {
    .version = SHOAL_ALGORITHM_VERSION,
    .bytes = sizeof(shoal_algorithm),
    .name = "kmeans",
    .summary = "cluster rows around K centres",
    .options = kmeans_options,
    .config_size = sizeof(shoal_kmeans_config),
    .counter = {"distances_computed", "distances_skipped", "definitions_evaluated", NULL},
    .kernel_free = true,
    .start = start_kmeans,
    .check = kmeans_check,
    .check_result = kmeans_check_result,
    .strata = kmeans_strata,
    .prepare = prepare_kmeans,
    .forget = forget_kmeans,
    .scratch_bytes = scratch_bytes_kmeans,
    .map = map_kmeans,
    .update = update_kmeans,
    .cost = kmeans_cost,
    .attach = kmeans_attach,
    .detach = kmeans_detach,
    .map_many = kmeans_map_many,
    .leap = kmeans_leap,
};

const shoal_algorithm shoal_kmeans_predict = {
    .version = SHOAL_ALGORITHM_VERSION,
    .bytes = sizeof(shoal_algorithm),
    .name = "predict",
    .summary = "label rows by the nearest of given centres",
    .config_size = sizeof(shoal_predict_config),
    .counter = {"distances_computed", "distances_skipped", "definitions_evaluated", NULL},
    .kernel_free = true,
    .start = start_predict,
    .check = kmeans_check_predict,
    .check_result = kmeans_check_result,
    .prepare = prepare_kmeans,
    .forget = forget_kmeans,
    .scratch_bytes = scratch_bytes_kmeans,
    .map = map_kmeans,
    .update = update_kmeans,
    .cost = kmeans_cost_predict,
    .attach = kmeans_attach,
    .detach = kmeans_detach,
    .map_many = kmeans_map_many,
};
