/* Several numbers of clusters in one run.  See choose.h. */
#include "learn/kmeans/choose.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "learn/check.h"
#include "learn/kmeans/score.h"
#include "learn/kmeans/search.h"

/* ---- what is asked for ------------------------------------------------------------------------------------------- */

/* Rows of a sample: as many as can be compared with each other in a fraction of a second. */
enum { SAMPLE_LEAST = 1000, SAMPLE_MOST = 3000, SEARCH_MOST = 2000 };
static const double SAMPLE_VALUES = 2.4e9; /* values that are compared, each row's with all others' */

int kmeans_read_ks(base_counts *out, const shoal_kmeans_config *config)
{
    *out = (base_counts){.count = 1, .value = {config->k}};
    return config->k == 0 && config->ks ? base_counts_read(out, "-k", config->ks, 1, INT32_MAX) : SHOAL_OK;
}

static int64_t sample_size(const shoal_kmeans_config *config, const shoal_shape *shape)
{
    double rows = sqrt(SAMPLE_VALUES / (double)shape->columns);
    rows = config->sample > 0 ? (double)config->sample : fmin(fmax(rows, SAMPLE_LEAST), SAMPLE_MOST);
    return (int64_t)fmin(rows, (double)shape->rows);
}

void kmeans_ask_trials(kmeans_model *header, const base_counts *ks, const shoal_kmeans_config *config,
                       const shoal_shape *shape)
{
    if (!config->ks || config->k != 0)
        return;
    header->k = ks->value[0];
    header->trials = ks->count;
    header->rule = config->choose;
    header->sample = sample_size(config, shape);
    header->searching = !config->init || strcmp(config->init, "auto") == 0;
}

void kmeans_set_trials(shoal_round *first, const base_counts *ks)
{
    kmeans_view view = kmeans_view_of(first);
    for (int64_t t = 0; t < view.model->trials; t++)
        view.trial[t] = (kmeans_trial){.k = ks->value[t]};
}

bool kmeans_is_trial(const kmeans_model *model)
{
    return model->trials > 0 && !model->chosen;
}

/* ---- the sample -------------------------------------------------------------------------------------------------- */

/* Rows are drawn one from each of as many parts of the data, all of the same length. */
static int64_t part_start(const kmeans_model *model, int64_t part)
{
    return (int64_t)((__int128)part * model->rows / model->sample);
}

int64_t kmeans_sample_row(const kmeans_model *model, int64_t at)
{
    const int64_t first = part_start(model, at), length = part_start(model, at + 1) - first;
    return first +
           (int64_t)base_random_below((uint64_t)length, (uint64_t)model->seed, BASE_FOR_SAMPLE, (uint64_t)at, 0);
}

int64_t kmeans_sample_from(const kmeans_model *model, int64_t row)
{
    int64_t part = (int64_t)((__int128)row * model->sample / model->rows);
    while (part > 0 && part_start(model, part) > row)
        part--;
    return part;
}

/* What is kept of the sample, as float64: its rows, their weights, whether each K has a start, and the starts of those
 * that may have one. */
typedef struct kept_sample {
    double *rows, *weights, *has_start, *starts;
} kept_sample;

static int64_t centres_before(const kmeans_view *view, int64_t trial)
{
    int64_t centres = 0;
    for (int64_t t = 0; t < trial; t++)
        centres += view->trial[t].k <= KMEANS_SEARCH_K_MOST ? view->trial[t].k : 0;
    return centres;
}

/* False when it does not fit a size_t. */
static bool sample_bytes(size_t *out, const kmeans_view *view)
{
    const kmeans_model *model = view->model;
    size_t rows, starts = 0, values;
    if (!base_multiply(&rows, (size_t)model->sample, (size_t)model->columns) ||
        (model->searching &&
         !base_multiply(&starts, (size_t)centres_before(view, model->trials), (size_t)model->columns)) ||
        !base_add(&values, rows, starts) || !base_add(&values, values, (size_t)(model->sample + model->trials)))
        return false;
    return base_multiply(out, values, sizeof(double));
}

static kept_sample sample_in(void *bytes, const kmeans_model *model)
{
    double *values = bytes;
    kept_sample is = {.rows = values};
    is.weights = is.rows + model->sample * model->columns;
    is.has_start = is.weights + model->sample;
    is.starts = is.has_start + model->trials;
    return is;
}

static bool check_draw(const kmeans_view *view, const shoal_shape *shape)
{
    (void)shape;
    return view->model->trials > 0 && !view->model->sampled && view->model->extra_bytes == 0;
}

enum { DRAW_ROWS };

static void describe_draw(shoal_round *round, const shoal_shape *shape)
{
    round->layout.cells = 1;
    round->layout.cell[DRAW_ROWS] =
        (shoal_cell){"sample", SHOAL_CELL_RECORD, 0, (size_t)(shape->columns + 1) * sizeof(double), false};
}

static size_t scratch_draw(const shoal_round *round, const kmeans_prepared *prepared, const shoal_shape *shape)
{
    (void)round, (void)prepared;
    return kmeans_rows_bytes(shape->columns) + kmeans_cut_size((size_t)(shape->columns + 1) * sizeof(double));
}

static int map_draw(shoal_partial *partial, const shoal_round *round, const kmeans_prepared *prepared,
                    const shoal_grain *grain, const shoal_scratch *scratch)
{
    kmeans_view view = kmeans_view_of(round);
    const kmeans_model *model = view.model;
    const int64_t end = grain->first_row + grain->rows;
    unsigned char *memory = scratch->memory;
    double *values = kmeans_cut(&memory, (size_t)(model->columns + 1) * sizeof(double));
    int status = SHOAL_OK;
    kmeans_rows rows;
    kmeans_rows_init(&rows, prepared, &view, grain, &memory);
    for (int64_t at = kmeans_sample_from(model, grain->first_row); at < model->sample && status == SHOAL_OK; at++) {
        const int64_t row = kmeans_sample_row(model, at);
        if (row >= end)
            break;
        if (row < grain->first_row)
            continue;
        kmeans_rows_values(values, &rows, row - grain->first_row);
        values[model->columns] = kmeans_rows_weight(&rows, row - grain->first_row);
        status = shoal_partial_record(partial, DRAW_ROWS, (shoal_key){0, (uint64_t)at}, values);
    }
    return status;
}

static bool take_sample(kept_sample *into, const kmeans_model *model, const shoal_partial *merged)
{
    if (shoal_partial_records(merged, DRAW_ROWS) != model->sample)
        return false;
    for (int64_t at = 0; at < model->sample; at++) {
        shoal_key key;
        const double *row = shoal_partial_record_at(merged, DRAW_ROWS, at, &key);
        if (key.high != 0 || key.low != (uint64_t)at || !kmeans_are_finite(row, model->columns) ||
            !kmeans_are_sizes(row + model->columns, 1))
            return false;
        memcpy(into->rows + at * model->columns, row, (size_t)model->columns * sizeof *row);
        into->weights[at] = row[model->columns];
    }
    return true;
}

/* ---- starts from the sample -------------------------------------------------------------------------------------- */

/* The part of the sample that is searched: rows of some weight, and not too many. */
typedef struct searched_rows {
    int64_t count;
    double *rows, *weights;
    float *distances;
    int32_t *labels;
} searched_rows;

static void release_searched(searched_rows *is)
{
    base_free(&is->rows);
    base_free(&is->weights);
    base_free(&is->distances);
    base_free(&is->labels);
}

static int pick_searched(searched_rows *out, const kept_sample *sample, const kmeans_model *model)
{
    const int64_t step = (model->sample + SEARCH_MOST - 1) / SEARCH_MOST;
    const size_t most = (size_t)((model->sample + step - 1) / step);
    int status = base_alloc(&out->rows, most * (size_t)model->columns, sizeof *out->rows, "rows of the sample");
    if (status == SHOAL_OK)
        status = base_alloc(&out->weights, most, sizeof *out->weights, "weights of the sample");
    if (status == SHOAL_OK)
        status = base_alloc(&out->distances, most * most, sizeof *out->distances, "distances of the sample");
    if (status == SHOAL_OK)
        status = base_alloc(&out->labels, most * (size_t)model->trials, sizeof *out->labels, "labels of the sample");
    for (int64_t at = 0; status == SHOAL_OK && at < model->sample; at += step) {
        if (!(sample->weights[at] > 0))
            continue;
        memcpy(out->rows + out->count * model->columns, sample->rows + at * model->columns,
               (size_t)model->columns * sizeof *out->rows);
        out->weights[out->count++] = sample->weights[at];
    }
    return status;
}

/* The means of a clustering. */
static void find_means(double *out, const searched_rows *is, const int32_t *labels, int64_t k, int64_t columns)
{
    double mass[KMEANS_SEARCH_K_MOST] = {0};
    memset(out, 0, (size_t)(k * columns) * sizeof *out);
    for (int64_t i = 0; i < is->count; i++) {
        double *mean = out + labels[i] * columns;
        mass[labels[i]] += is->weights[i];
        for (int64_t c = 0; c < columns; c++)
            mean[c] += is->weights[i] * is->rows[i * columns + c];
    }
    for (int64_t i = 0; i < k * columns; i++)
        out[i] /= mass[i / columns];
}

static int find_starts(kept_sample *sample, const kmeans_view *view, const shoal_crew *crew)
{
    const kmeans_model *model = view->model;
    const kernel_set *kernel = NULL;
    searched_rows is = {0};
    int64_t ks[BASE_COUNTS_MOST];
    for (int64_t t = 0; t < model->trials; t++)
        ks[t] = view->trial[t].k;
    int status = kernel_choose(&kernel, crew->kernel);
    if (status == SHOAL_OK)
        status = pick_searched(&is, sample, model);
    const kmeans_points rows = {is.rows, is.count, model->columns, kmeans_is_cosine(model)};
    const kmeans_search search = {is.distances, is.weights, is.count, ks, model->trials, model->seed};
    if (status == SHOAL_OK)
        status = kmeans_pair_distances(is.distances, &rows, model->scale, kernel, crew);
    if (status == SHOAL_OK)
        status = kmeans_search_run(is.labels, &search, crew);
    for (int64_t t = 0; status == SHOAL_OK && t < model->trials; t++) {
        const int32_t *labels = is.labels + t * is.count;
        sample->has_start[t] = is.count > 0 && labels[0] >= 0;
        double *means = sample->starts + centres_before(view, t) * model->columns;
        if (sample->has_start[t] > 0)
            find_means(means, &is, labels, ks[t], model->columns);
        for (int64_t j = 0; kmeans_is_cosine(model) && sample->has_start[t] > 0 && j < ks[t]; j++)
            sample->has_start[t] = kmeans_make_unit(means + j * model->columns, kernel, model->columns);
    }
    release_searched(&is);
    return status;
}

/* ---- one K after another ----------------------------------------------------------------------------------------- */

/* Puts the model back to where a run begins. */
static void forget_runs(kmeans_model *model)
{
    model->run = model->filled = model->iteration = model->converged = model->finishing = model->runs_done = 0;
    model->best_iterations = model->best_converged = 0;
    model->best_objective = model->objective_most = 0;
    model->best_run = model->memo_round = -1;
}

static int begin_trial(shoal_round **next, const shoal_round *from, int64_t trial, void *sample_bytes,
                       const shoal_shape *shape)
{
    const kmeans_view view = kmeans_view_of(from);
    const int64_t k = view.trial[trial].k, columns = view.model->columns;
    const kept_sample sample = sample_in(sample_bytes, view.model);
    const double *start = sample.starts + centres_before(&view, trial) * columns;
    const bool starts = view.model->searching && sample.has_start[trial] > 0;
    shoal_round *fresh = NULL;
    if (starts && !kmeans_are_finite(start, k * columns))
        return kmeans_fail_merged(from, "first centres");
    int status = kmeans_round_resized(&fresh, from, KMEANS_LLOYD, k);
    if (status < 0)
        return status;
    kmeans_model *model = fresh->model;
    forget_runs(model);
    model->trial = trial;
    model->sampled = 1;
    if (model->searching)
        model->start = kmeans_usual_start(k);
    status = starts ? kmeans_begin_lloyd(next, fresh, shape) : kmeans_begin_run(next, fresh, shape);
    if (status == SHOAL_OK && starts)
        memcpy(kmeans_view_of(*next).centres, start, (size_t)(k * columns) * sizeof *start);
    shoal_round_free(&fresh);
    return status;
}

int kmeans_begin_draw(shoal_round **next, const shoal_round *from)
{
    return kmeans_round_from(next, from, KMEANS_DRAW, 0);
}

static int update_draw(shoal_round **next, shoal_result **result, const shoal_round *round, shoal_partial *merged,
                       const shoal_shape *shape, const shoal_crew *crew, bool stop)
{
    const kmeans_view view = kmeans_view_of(round);
    void *bytes = NULL, *kept = NULL;
    size_t size = 0;
    (void)result;
    if (stop)
        return kmeans_stop_early(next, round, "drawing a sample");
    if (!sample_bytes(&size, &view))
        return shoal_fail(SHOAL_MEMORY, "out of memory for a sample of %lld rows", (long long)view.model->sample);
    int status = base_alloc(&bytes, size, 1, "the sample");
    if (status < 0)
        return status;
    kept_sample sample = sample_in(bytes, view.model);
    if (!take_sample(&sample, view.model, merged))
        status = kmeans_fail_merged(round, "sampled rows");
    if (status == SHOAL_OK && view.model->searching)
        status = find_starts(&sample, &view, crew);
    if (status == SHOAL_OK)
        status = begin_trial(next, round, 0, bytes, shape);
    if (status == SHOAL_OK && !(kept = shoal_round_keep(*next, size)))
        status = SHOAL_MEMORY;
    if (status == SHOAL_OK)
        memcpy(kept, bytes, size);
    base_free(&bytes);
    return status;
}

const kmeans_phase kmeans_draw = {.name = "sample",
                                  .check = check_draw,
                                  .describe = describe_draw,
                                  .scratch_bytes = scratch_draw,
                                  .map = map_draw,
                                  .update = update_draw};

/* ---- tally: what the clusters are once they stay ----------------------------------------------------------------- */

static bool check_tally(const kmeans_view *view, const shoal_shape *shape)
{
    (void)shape;
    return kmeans_is_trial(view->model) && view->model->sampled && view->model->extra_bytes == 0;
}

static int update_tally(shoal_round **next, shoal_result **result, const shoal_round *round, shoal_partial *merged,
                        const shoal_shape *shape, const shoal_crew *crew, bool stop)
{
    int status = kmeans_round_from(next, round, KMEANS_LABEL, 0);
    (void)result, (void)shape, (void)crew;
    if (status < 0)
        return status;
    kmeans_view view = kmeans_view_of(*next);
    view.model->memo_round = round->number;
    view.model->stopping |= stop;
    for (int64_t j = 0; j < view.model->k; j++)
        view.drift[j] = 0; /* copies of centres stay copies, which nobody looks at */
    return kmeans_tally_sums(&view.model->between, &view.model->away, round, merged);
}

const kmeans_phase kmeans_tally = {.name = "run",
                                   .check = check_tally,
                                   .describe = kmeans_describe_lloyd,
                                   .prepare = kmeans_prepare_centres,
                                   .scratch_bytes = kmeans_scratch_assign,
                                   .map = kmeans_map_lloyd,
                                   .map_many = kmeans_map_many_lloyd,
                                   .update = update_tally};

/* ---- the end of one, and of all ---------------------------------------------------------------------------------- */

/* What is kept of a K that was tried: its centres, then the labels of the sampled rows. */
static size_t trial_bytes(const kmeans_model *model, int64_t k)
{
    return (size_t)(k * model->columns) * sizeof(double) + (size_t)((model->sample + 1) / 2) * 2 * sizeof(int32_t);
}

static const double *centres_in(const void *bytes)
{
    return bytes;
}

static const int32_t *labels_in(const void *bytes, const kmeans_model *model, int64_t k)
{
    return (const int32_t *)(centres_in(bytes) + k * model->columns);
}

static bool are_labels_below(const int32_t *labels, int64_t count, int64_t k)
{
    for (int64_t i = 0; i < count; i++)
        if (labels[i] < 0 || labels[i] >= k)
            return false;
    return true;
}

/* Silhouettes of all that were tried, whose parts `part` has. */
static int find_silhouettes(kmeans_trial *trials, const kmeans_model *model, const void *sample_bytes,
                            const void *const *part, const shoal_crew *crew)
{
    const kmeans_points sample = {sample_bytes, model->sample, model->columns, kmeans_is_cosine(model)};
    const kernel_set *kernel = NULL;
    double scores[BASE_COUNTS_MOST];
    int64_t ks[BASE_COUNTS_MOST];
    int32_t *labels = NULL;
    int status = base_alloc(&labels, (size_t)(model->tried * model->sample), sizeof *labels, "labels of the sample");
    for (int64_t t = 0; status == SHOAL_OK && t < model->tried; t++) {
        ks[t] = trials[t].k;
        memcpy(labels + t * model->sample, labels_in(part[t], model, ks[t]), (size_t)model->sample * sizeof *labels);
    }
    if (status == SHOAL_OK)
        status = kernel_choose(&kernel, crew->kernel);
    if (status == SHOAL_OK)
        status = kmeans_silhouettes(scores, &sample, labels, ks, model->tried, kernel, crew);
    for (int64_t t = 0; status == SHOAL_OK && t < model->tried; t++)
        trials[t].silhouette = scores[t];
    base_free(&labels);
    return status;
}

/* Which of those that were tried a rule picks; -1 when it can't. */
static int64_t pick(const kmeans_trial *trials, int64_t tried, int64_t rule)
{
    double scores[BASE_COUNTS_MOST];
    int64_t ks[BASE_COUNTS_MOST];
    for (int64_t t = 0; t < tried; t++) {
        ks[t] = trials[t].k;
        scores[t] = rule == SHOAL_CHOOSE_ELBOW        ? trials[t].objective
                    : rule == SHOAL_CHOOSE_SILHOUETTE ? trials[t].silhouette
                                                      : trials[t].calinski_harabasz;
    }
    return rule == SHOAL_CHOOSE_ELBOW ? kmeans_elbow(ks, scores, tried) : kmeans_greatest(scores, tried);
}

/* Where a rule can't pick, another does; one K alone needs none. */
static int64_t choose_trial(const kmeans_trial *trials, int64_t tried, int64_t rule)
{
    const int64_t rules[] = {rule, SHOAL_CHOOSE_SILHOUETTE, SHOAL_CHOOSE_CALINSKI};
    int64_t chosen = -1;
    for (int i = 0; i < 3 && chosen < 0; i++)
        chosen = pick(trials, tried, rules[i]);
    return chosen < 0 ? 0 : chosen;
}

/* The round that labels all rows by the centres of the K that is chosen. */
static int label_chosen(shoal_round **next, const shoal_round *from, const void *sample_bytes, const void *const *part,
                        const shoal_crew *crew)
{
    const kmeans_view old = kmeans_view_of(from);
    kmeans_trial trials[BASE_COUNTS_MOST];
    memcpy(trials, old.trial, (size_t)old.model->trials * sizeof *trials);
    for (int64_t t = 0; t < old.model->tried; t++)
        if (!are_labels_below(labels_in(part[t], old.model, trials[t].k), old.model->sample, trials[t].k))
            return kmeans_fail_merged(from, "labels of the sample");
    int status = find_silhouettes(trials, old.model, sample_bytes, part, crew);
    if (status < 0)
        return status;
    const int64_t chosen = choose_trial(trials, old.model->tried, old.model->rule), k = trials[chosen].k;
    status = kmeans_round_resized(next, from, KMEANS_LABEL, k);
    if (status < 0)
        return status;
    const kmeans_view view = kmeans_view_of(*next);
    memcpy(view.centres, centres_in(part[chosen]), (size_t)(k * old.model->columns) * sizeof *view.centres);
    memcpy(view.trial, trials, (size_t)old.model->trials * sizeof *trials);
    forget_runs(view.model);
    view.model->chosen = view.model->finishing = 1;
    view.model->trial = chosen;
    view.model->iteration = trials[chosen].iterations;
    view.model->converged = trials[chosen].converged;
    view.model->runs_done = view.model->runs;
    return kmeans_are_finite(view.centres, k * old.model->columns) ? SHOAL_OK : kmeans_fail_merged(from, "centres");
}

bool kmeans_can_end_trials(const shoal_round *round)
{
    const kmeans_model *model = round->model;
    return kmeans_is_trial(model) && model->tried > 0 && model->phase != KMEANS_LABEL;
}

int kmeans_end_trials(shoal_round **next, const shoal_round *round, const shoal_crew *crew)
{
    const kmeans_model *model = round->model;
    const void *part[BASE_COUNTS_MOST];
    for (int64_t t = 0; t < model->tried; t++)
        part[t] = round->kept[1 + t]->values;
    int status = label_chosen(next, round, round->kept[0]->values, part, crew);
    if (status == SHOAL_OK)
        ((kmeans_model *)(*next)->model)->stopping = 1;
    return status;
}

/* The part of a K that has just been labelled. */
static int make_part(void **out, const kmeans_view *view, const int64_t *sample_labels)
{
    const kmeans_model *model = view->model;
    int status = base_alloc(out, trial_bytes(model, model->k), 1, "the clusters of a trial");
    if (status < 0)
        return status;
    memcpy(*out, view->centres, (size_t)(model->k * model->columns) * sizeof(double));
    int32_t *labels = (int32_t *)((double *)*out + model->k * model->columns);
    for (int64_t at = 0; at < model->sample; at++)
        labels[at] = (int32_t)(sample_labels[at] >= 0 && sample_labels[at] < model->k ? sample_labels[at] : -1);
    return SHOAL_OK;
}

static void note_trial(kmeans_view *view, double objective)
{
    kmeans_model *model = view->model;
    kmeans_trial *trial = &view->trial[model->trial];
    trial->iterations = model->iteration;
    trial->converged = model->converged;
    trial->objective = kmeans_told_objective(model, objective);
    trial->calinski_harabasz = kmeans_calinski_harabasz(model->between, fmax(objective - model->away, 0),
                                                        model->weight_total / model->weight_scale, model->k);
    model->tried = model->trial + 1;
}

int kmeans_end_trial(shoal_round **next, const shoal_round *round, const int64_t *sample_labels, double objective,
                     const shoal_shape *shape, const shoal_crew *crew, bool stop)
{
    shoal_round *noted = NULL;
    const void *part[BASE_COUNTS_MOST];
    void *last = NULL, *kept = NULL, *sample = round->kept[0]->values;
    int status = kmeans_round_from(&noted, round, KMEANS_LABEL, 0);
    if (status < 0)
        return status;
    kmeans_view view = kmeans_view_of(noted);
    const int64_t k = view.model->k, trial = view.model->trial;
    note_trial(&view, objective);
    status = make_part(&last, &view, sample_labels);
    for (int64_t t = 0; t < trial; t++)
        part[t] = round->kept[1 + t]->values;
    part[trial] = last;
    if (status == SHOAL_OK && !are_labels_below(labels_in(last, view.model, k), view.model->sample, k))
        status = kmeans_fail_merged(round, "labels of the sample");
    if (status == SHOAL_OK && (trial + 1 == view.model->trials || stop || view.model->stopping))
        status = label_chosen(next, noted, sample, part, crew);
    else if (status == SHOAL_OK)
        status = begin_trial(next, noted, trial + 1, sample, shape);
    if (status == SHOAL_OK && !(kept = shoal_round_keep(*next, trial_bytes(view.model, k))))
        status = SHOAL_MEMORY;
    if (status == SHOAL_OK) {
        memcpy(kept, last, trial_bytes(view.model, k));
        ((kmeans_model *)(*next)->model)->stopping |= stop && trial + 1 < view.model->trials;
    }
    base_free(&last);
    shoal_round_free(&noted);
    return status;
}

/* ---- the result -------------------------------------------------------------------------------------------------- */

static void tell_pick(shoal_result *result, const char *name, const kmeans_view *view, int64_t rule)
{
    const int64_t picked = pick(view->trial, view->model->tried, rule);
    if (picked >= 0)
        shoal_result_set_whole(result, name, view->trial[picked].k);
    else
        shoal_result_set(result, name, NAN);
}

/* The number of each sampled row, and its labels. */
static int tell_sample(shoal_result *result, const shoal_round *round)
{
    const kmeans_view view = kmeans_view_of(round);
    const kmeans_model *model = view.model;
    const int64_t width = 1 + model->tried;
    int64_t *table = shoal_result_add(result, "sample-labels", SHOAL_INT64, 2, (const int64_t[]){model->sample, width});
    if (!table)
        return SHOAL_MEMORY;
    for (int64_t at = 0; at < model->sample; at++)
        table[at * width] = kmeans_sample_row(model, at);
    for (int64_t t = 0; t < model->tried; t++) {
        const int32_t *labels = labels_in(round->kept[1 + t]->values, model, view.trial[t].k);
        for (int64_t at = 0; at < model->sample; at++)
            table[at * width + 1 + t] = labels[at];
    }
    return SHOAL_OK;
}

int kmeans_tell_trials(shoal_result *result, const shoal_round *round)
{
    const kmeans_view view = kmeans_view_of(round);
    const int64_t tried = view.model->tried, shape[] = {tried};
    int64_t *ks = shoal_result_add(result, "ks", SHOAL_INT64, 1, shape);
    double *objectives = ks ? shoal_result_add(result, "objectives", SHOAL_FLOAT64, 1, shape) : NULL;
    double *silhouettes = objectives ? shoal_result_add(result, "silhouettes", SHOAL_FLOAT64, 1, shape) : NULL;
    double *calinski = silhouettes ? shoal_result_add(result, "calinski_harabasz", SHOAL_FLOAT64, 1, shape) : NULL;
    int64_t *iterations = calinski ? shoal_result_add(result, "iterations_by_k", SHOAL_INT64, 1, shape) : NULL;
    if (!iterations)
        return SHOAL_MEMORY;
    for (int64_t t = 0; t < tried; t++) {
        ks[t] = view.trial[t].k;
        objectives[t] = view.trial[t].objective;
        silhouettes[t] = view.trial[t].silhouette;
        calinski[t] = view.trial[t].calinski_harabasz;
        iterations[t] = view.trial[t].iterations;
    }
    tell_pick(result, "pick_silhouette", &view, SHOAL_CHOOSE_SILHOUETTE);
    tell_pick(result, "pick_calinski_harabasz", &view, SHOAL_CHOOSE_CALINSKI);
    tell_pick(result, "pick_elbow", &view, SHOAL_CHOOSE_ELBOW);
    return tell_sample(result, round);
}

/* ---- from elsewhere ---------------------------------------------------------------------------------------------- */

static bool are_kept(const shoal_round *round, const kmeans_view *view)
{
    const kmeans_model *model = view->model;
    size_t bytes = 0;
    if (round->keeps != (model->sampled ? 1 + model->tried : 0))
        return false;
    if (model->sampled && (!sample_bytes(&bytes, view) || round->kept[0]->bytes != bytes))
        return false;
    for (int64_t t = 0; t < model->tried; t++)
        if (round->kept[1 + t]->bytes != trial_bytes(model, view->trial[t].k))
            return false;
    return true;
}

bool kmeans_are_trials(const shoal_round *round, const kmeans_view *view)
{
    const kmeans_model *model = view->model;
    if (model->trials == 0)
        return round->keeps == 0 && !model->trial && !model->tried && !model->sample && !model->sampled &&
               !model->searching && !model->rule && !model->chosen;
    if (model->sample < 1 || model->sample > model->rows || model->sampled >> 1 != 0 || model->searching >> 1 != 0 ||
        model->chosen >> 1 != 0 || model->rule < SHOAL_CHOOSE_SILHOUETTE || model->rule > SHOAL_CHOOSE_ELBOW ||
        model->trial < 0 || model->trial >= model->trials || model->tried < 0 || model->tried > model->trials)
        return false;
    if (model->chosen ? model->trial >= model->tried || model->phase != KMEANS_LABEL : model->trial != model->tried)
        return false;
    if (model->sampled !=
        (model->phase != KMEANS_RANGE && model->phase != KMEANS_SPREAD && model->phase != KMEANS_DRAW))
        return false;
    for (int64_t t = 0; t < model->trials; t++)
        if (view->trial[t].k < (t ? view->trial[t - 1].k + 1 : 1) || view->trial[t].k > model->rows)
            return false;
    return model->k == view->trial[model->trial].k && are_kept(round, view);
}

/* The sample of a result: the rows that were drawn, and labels of theirs. */
static bool is_sample(const shoal_result *result, const kmeans_view *view, int64_t tried)
{
    const kmeans_model *model = view->model;
    const int64_t width = 1 + tried;
    if (!learn_result_has(result, "sample-labels", SHOAL_INT64, 2, (const int64_t[]){model->sample, width}))
        return false;
    const int64_t *row = shoal_result_tensor(result, "sample-labels")->values;
    for (int64_t at = 0; at < model->sample; at++, row += width) {
        if (row[0] != kmeans_sample_row(model, at))
            return false;
        for (int64_t t = 0; t < tried; t++)
            if (row[1 + t] < 0 || row[1 + t] >= view->trial[t].k)
                return false;
    }
    return true;
}

bool kmeans_are_trial_results(const shoal_result *result, const shoal_round *first)
{
    const kmeans_view view = kmeans_view_of(first);
    const shoal_tensor *ks = shoal_result_tensor(result, "ks");
    if (!ks || ks->rank != 1 || ks->shape[0] < 1 || ks->shape[0] > view.model->trials)
        return false;
    const int64_t *shape = ks->shape;
    if (!learn_result_has(result, "ks", SHOAL_INT64, 1, shape) ||
        !learn_result_has(result, "objectives", SHOAL_FLOAT64, 1, shape) ||
        !learn_result_has(result, "silhouettes", SHOAL_FLOAT64, 1, shape) ||
        !learn_result_has(result, "calinski_harabasz", SHOAL_FLOAT64, 1, shape) ||
        !learn_result_has(result, "iterations_by_k", SHOAL_INT64, 1, shape))
        return false;
    for (int64_t t = 0; t < shape[0]; t++)
        if (((const int64_t *)ks->values)[t] != view.trial[t].k)
            return false;
    return is_sample(result, &view, shape[0]);
}
