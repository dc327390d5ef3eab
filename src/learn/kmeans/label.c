/* The last round of a run: labels and the objective; then the next run, or the result.
 *
 * The objective's terms are summed as 128-bit whole numbers.  Should the quantum turn out too coarse, the round is
 * asked once more, now that the greatest term is known. */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "learn/kmeans/choose.h"
#include "learn/kmeans/device.h"

/* Behind these are the distances that are asked for, those of all centres last; or, while K is one of several, the
 * labels of the sample. */
enum { LABEL_ROWS, LABEL_OBJECTIVE, LABEL_MOST, LABEL_SIZES, LABEL_CELLS, LABEL_SAMPLE = LABEL_CELLS };

static int cell_of_nearest(const kmeans_model *model)
{
    return model->distances & KMEANS_NEAREST ? LABEL_CELLS : -1;
}

static int cell_of_all(const kmeans_model *model)
{
    return model->distances & KMEANS_ALL ? LABEL_CELLS + (model->distances & KMEANS_NEAREST ? 1 : 0) : -1;
}

static void describe_label(shoal_round *round, const shoal_shape *shape)
{
    const kmeans_model *model = round->model;
    shoal_layout *layout = &round->layout;
    const bool trial = kmeans_is_trial(model);
    const int nearest = cell_of_nearest(model), all = cell_of_all(model);
    layout->cells = LABEL_CELLS + (nearest >= 0) + (all >= 0) + trial;
    if (nearest >= 0)
        layout->cell[nearest] = (shoal_cell){"distances", SHOAL_CELL_ROW, 0, sizeof(double), false};
    if (all >= 0)
        layout->cell[all] = (shoal_cell){"all-distances", SHOAL_CELL_ROW, 0, (size_t)model->k * sizeof(double), false};
    layout->cell[LABEL_ROWS] = (shoal_cell){"labels", SHOAL_CELL_ROW, 0, sizeof(int32_t), false};
    if (trial) { /* all labels are wanted only of the K that is chosen */
        layout->cell[LABEL_ROWS] = (shoal_cell){"labels", SHOAL_CELL_SUM, 0, 0, false};
        layout->cell[LABEL_SAMPLE] = (shoal_cell){"labels of the sample", SHOAL_CELL_SUM, model->sample, 0, false};
    }
    layout->cell[LABEL_OBJECTIVE] = (shoal_cell){"objective", SHOAL_CELL_WIDE, 1, 0, false};
    layout->cell[LABEL_MOST] = (shoal_cell){"greatest term", SHOAL_CELL_MAX, 1, 0, false};
    layout->cell[LABEL_SIZES] = (shoal_cell){"sizes", SHOAL_CELL_SUM, model->k, 0, false};
    layout->memo_row_bytes = all < 0 ? kmeans_memo_bytes(model) : 0; /* who looks at all distances needs no bounds */
    layout->carry_from = all < 0 ? model->memo_round : -1;
    layout->writes_memo = all < 0;
    round->step = model->iteration;
    round->steps = model->iterations;
    (void)shape;
}

/* No row adds more to the objective than this: its width and the farthest centre's norm give a first bound. */
double kmeans_objective_bound(const kmeans_view *view)
{
    const kmeans_model *model = view->model;
    double farthest = 0;
    if (model->objective_most > 0)
        return model->objective_most;
    for (int64_t j = 0; j < model->k; j++) {
        double square = 0;
        for (int64_t c = 0; c < model->columns; c++) {
            double from = view->centres[j * model->columns + c] - view->origin[c];
            square += from * from;
        }
        farthest = fmax(farthest, square);
    }
    double reach = sqrt(farthest) + sqrt(model->distance_most);
    return reach * reach * (1 + 0x1p-30) * model->weight_most;
}

/* One over the quantum of the objective. */
double kmeans_objective_inverse(const kmeans_view *view)
{
    double most = kmeans_objective_bound(view);
    if (isinf(most))
        return 0; /* centres so far away that squares overflow: the objective is infinite */
    return most > 0 ? fmin(ldexp(1, 2 * shoal_wide_bits(view->model->rows) - 2) / kmeans_power_above(most), 0x1p1000)
                    : 1;
}

/* 1 - cosine is half the squared distance of unit vectors. */
static double told_distance(const kmeans_model *model, double square)
{
    return kmeans_is_cosine(model) ? square / 2 : sqrt(square) / model->prescale;
}

/* Labels and squared distances, in units, of a grain's rows, by bounds and few distances. */
static int label_by_bounds(int32_t *label, double *distance, const kmeans_rows *rows, const kmeans_prepared *prepared,
                           unsigned char *memory, const shoal_scratch *scratch)
{
    const kmeans_view *view = rows->view;
    const shoal_grain *grain = rows->grain;
    int status =
        kmeans_assign(rows, &prepared->pack, view->centres, grain->carried, NULL, NULL, memory, scratch->counters);
    if (status < 0)
        return status;
    memcpy(label, kmeans_memo_of(grain).label, (size_t)grain->rows * sizeof *label);
    kmeans_rows_distances(distance, rows, label, view->centres);
    return SHOAL_OK;
}

static void label_sample(shoal_partial *partial, const kmeans_model *model, int64_t first_row, int64_t rows,
                         const int32_t *label)
{
    int64_t *sample = shoal_partial_values(partial, LABEL_SAMPLE);
    for (int64_t at = kmeans_sample_from(model, first_row); at < model->sample; at++) {
        const int64_t i = kmeans_sample_row(model, at) - first_row;
        if (i >= rows)
            return;
        if (i >= 0)
            sample[at] += label[i];
    }
}

static int map_label(shoal_partial *partial, const shoal_round *round, const kmeans_prepared *prepared,
                     const shoal_grain *grain, const shoal_scratch *scratch)
{
    kmeans_view view = kmeans_view_of(round);
    const int nearest = cell_of_nearest(view.model), all = cell_of_all(view.model);
    unsigned char *memory = scratch->memory;
    const bool trial = kmeans_is_trial(view.model);
    int32_t *label = trial ? kmeans_cut(&memory, (size_t)grain->shape->rows_per_grain * sizeof *label)
                           : shoal_partial_row(partial, LABEL_ROWS, grain->first_row);
    double *distance = kmeans_cut(&memory, (size_t)grain->shape->rows_per_grain * sizeof *distance);
    int status = SHOAL_OK;
    kmeans_rows rows;
    kmeans_rows_init(&rows, prepared, &view, grain, &memory);
    if (all < 0)
        status = label_by_bounds(label, distance, &rows, prepared, memory, scratch);
    else
        kmeans_map_distances(shoal_partial_row(partial, all, grain->first_row), label, distance, &rows, prepared,
                             memory);
    scratch->counters[0] += all < 0 ? 0 : grain->rows * view.model->k;
    if (status < 0)
        return status;
    if (trial)
        label_sample(partial, view.model, grain->first_row, grain->rows, label);
    int64_t *objective = shoal_partial_values(partial, LABEL_OBJECTIVE),
            *sizes = shoal_partial_values(partial, LABEL_SIZES);
    double inverse = prepared->objective_inverse, most = 0;
    int bits = shoal_wide_bits(view.model->rows);
    for (int64_t i = 0; i < grain->rows; i++) {
        double term = kmeans_rows_weight(&rows, i) * distance[i];
        if (inverse > 0)
            shoal_wide_add(objective, 1, 0, rint(term * inverse), bits);
        most = term > most ? term : most;
        sizes[label[i]]++;
        if (nearest >= 0)
            *(double *)shoal_partial_row(partial, nearest, grain->first_row + i) =
                told_distance(view.model, distance[i]);
    }
    shoal_max_raise(shoal_partial_values(partial, LABEL_MOST), 0, most);
    return SHOAL_OK;
}

static int map_many_label(shoal_partial *partial, const shoal_round *round, kmeans_held *held, const shoal_crew *crew,
                          int64_t *counters)
{
    const kmeans_view view = kmeans_view_of(round);
    const kmeans_model *model = view.model;
    const int nearest = cell_of_nearest(model);
    const bool trial = kmeans_is_trial(model);
    int64_t *objective = shoal_partial_values(partial, LABEL_OBJECTIVE);
    int32_t *labels = NULL;
    double *distances = nearest >= 0 ? shoal_partial_row(partial, nearest, held->first_row) : NULL;
    kernel_device_ending ending = {.inverse = kmeans_objective_inverse(&view),
                                   .same = kmeans_same_direction(model),
                                   .bits = shoal_wide_bits(model->rows),
                                   .sizes = shoal_partial_values(partial, LABEL_SIZES),
                                   .label = trial ? NULL : shoal_partial_row(partial, LABEL_ROWS, held->first_row),
                                   .distance = distances};
    int status = trial ? base_alloc_unset(&labels, (size_t)held->count, sizeof *labels, "labels") : SHOAL_OK;
    if (status == SHOAL_OK)
        status = kmeans_device_assign(held, &view, crew, counters);
    if (status < 0)
        goto done;
    if (trial)
        ending.label = labels;
    if ((status = held->device->ending(held->rows, &ending)) < 0) {
        status = kmeans_device_fail(held, status);
        goto done;
    }
    if (trial)
        label_sample(partial, model, held->first_row, held->count, labels);
    for (int digit = 0; digit < 2; digit++)
        objective[digit] = base_add_wrapping(objective[digit], ending.objective[digit]);
    shoal_max_raise(shoal_partial_values(partial, LABEL_MOST), 0, ending.most);
    for (int64_t i = 0; distances && i < held->count; i++)
        distances[i] = told_distance(model, distances[i]);
done:
    base_free(&labels);
    return status;
}

static size_t scratch_label(const shoal_round *round, const kmeans_prepared *prepared, const shoal_shape *shape)
{
    const size_t rows = (size_t)shape->rows_per_grain;
    const size_t labels = kmeans_is_trial(round->model) ? kmeans_cut_size(rows * sizeof(int32_t)) : 0;
    const size_t distances = kmeans_cut_size(rows * sizeof(double));
    return labels + distances +
           (cell_of_all(round->model) >= 0 ? kmeans_scratch_distances(shape)
                                           : kmeans_scratch_assign(round, prepared, shape));
}

static int prepare_label(kmeans_prepared *prepared, const shoal_round *round, const shoal_shape *shape,
                         const shoal_crew *crew)
{
    kmeans_view view = kmeans_view_of(round);
    prepared->objective_inverse = kmeans_objective_inverse(&view);
    return cell_of_all(view.model) >= 0 ? kmeans_pad_centres(prepared, &view)
                                        : kmeans_prepare_centres(prepared, round, shape, crew);
}

static int make_labelled_result(shoal_result **out, const kmeans_view *view, shoal_partial *merged, double objective)
{
    const kmeans_model *model = view->model;
    int64_t shape[2] = {model->k, model->columns};
    shoal_result *result = NULL;
    int status = shoal_result_new(&result);
    if (status < 0)
        return status;
    *out = result;
    double *centres = shoal_result_add(result, "centres", SHOAL_FLOAT64, 2, shape);
    if (!centres)
        return SHOAL_MEMORY;
    for (int64_t i = 0; i < shape[0] * shape[1]; i++)
        centres[i] = view->centres[i] / model->prescale;
    int64_t *sizes = shoal_result_add(result, "sizes", SHOAL_INT64, 1, shape);
    if (!sizes)
        return SHOAL_MEMORY;
    memcpy(sizes, shoal_partial_values(merged, LABEL_SIZES), (size_t)model->k * sizeof *sizes);
    double *seen = view->seen ? shoal_result_add(result, "seen", SHOAL_FLOAT64, 1, shape) : NULL;
    if (view->seen && !seen)
        return SHOAL_MEMORY;
    for (int64_t j = 0; seen && j < model->k; j++)
        seen[j] = view->seen[j] / model->weight_scale;
    status = shoal_result_take_rows(result, "labels", SHOAL_INT32, merged, LABEL_ROWS, model->rows);
    const int nearest = cell_of_nearest(model), all = cell_of_all(model);
    if (status == SHOAL_OK && nearest >= 0)
        status = shoal_result_take_rows(result, "distances", SHOAL_FLOAT64, merged, nearest, model->rows);
    if (status == SHOAL_OK && all >= 0)
        status = shoal_result_take_table(result, "all-distances", SHOAL_FLOAT64, merged, all, model->rows, model->k);
    int64_t empty = 0;
    for (int64_t j = 0; j < model->k; j++)
        empty += sizes[j] == 0;
    result->incomplete = model->stopping || (!model->finishing && model->run + 1 < model->runs);
    shoal_result_set_whole(result, "k", model->k);
    shoal_result_set_whole(result, "iterations", model->iteration);
    if (model->batch > 0)
        shoal_result_set_whole(result, "batches", model->batches);
    shoal_result_set_truth(result, "converged", model->converged);
    shoal_result_set(result, "objective", objective);
    shoal_result_set_whole(result, "run", model->run);
    shoal_result_set_whole(result, "runs_done", model->runs_done + !model->finishing);
    shoal_result_set_whole(result, "empty_clusters", empty);
    return status;
}

void kmeans_remember_best(kmeans_view *view, double objective)
{
    kmeans_model *model = view->model;
    memcpy(view->best, view->centres, (size_t)(model->k * model->columns) * sizeof(double));
    model->best_run = model->run;
    model->best_iterations = model->iteration;
    model->best_converged = model->converged;
    model->best_objective = objective;
}

void kmeans_recall_best(kmeans_view *view)
{
    kmeans_model *model = view->model;
    memcpy(view->centres, view->best, (size_t)(model->k * model->columns) * sizeof(double));
    model->run = model->best_run;
    model->iteration = model->best_iterations;
    model->converged = model->best_converged;
    model->memo_round = -1;
    model->objective_most = 0;
    model->finishing = 1;
}

int kmeans_stop_early(shoal_round **next, const shoal_round *round, const char *doing)
{
    const kmeans_model *model = round->model;
    if (model->best_run < 0)
        return shoal_fail(SHOAL_STOPPED, "stopped while %s; there is nothing to write yet", doing);
    int status = kmeans_round_from(next, round, kmeans_phase_after_lloyd(model), 0);
    if (status == SHOAL_OK) {
        kmeans_view view = kmeans_view_of(*next);
        kmeans_recall_best(&view);
    }
    return status;
}

/* After one of several runs: the next one, or a round that labels once more by the best run's centres. */
static int next_run(shoal_round **next, const shoal_round *round, double objective, bool better,
                    const shoal_shape *shape, bool stop)
{
    shoal_round *after = NULL;
    int status = kmeans_round_from(&after, round, kmeans_phase_after_lloyd(round->model), 0);
    if (status < 0)
        return status;
    kmeans_view view = kmeans_view_of(after);
    view.model->runs_done++;
    if (better)
        kmeans_remember_best(&view, objective);
    if (view.model->run + 1 == view.model->runs || stop) {
        kmeans_recall_best(&view);
        *next = after;
        return SHOAL_OK;
    }
    view.model->run++;
    status = kmeans_begin_run(next, after, shape);
    shoal_round_free(&after);
    return status;
}

double kmeans_objective_value(const kmeans_view *view, const int64_t *digits)
{
    double inverse = kmeans_objective_inverse(view);
    return inverse > 0 ? shoal_wide_value(digits, 1, 0, shoal_wide_bits(view->model->rows)) / inverse : INFINITY;
}

/* A far outlier can make the first bound so large that the quantum swallows what the other rows add. */
static bool is_coarse(const kmeans_view *view, double objective, double most)
{
    if (!(most > 0) || isinf(most))
        return false;
    return isinf(objective) || objective * kmeans_objective_inverse(view) < 0x1p40 * (double)view->model->rows;
}

/* The same round again, now that the greatest term is known. */
static int measure_finer(shoal_round **next, const shoal_round *round, double most)
{
    int status = kmeans_round_from(next, round, KMEANS_LABEL, 0);
    if (status < 0)
        return status;
    kmeans_view view = kmeans_view_of(*next);
    view.model->objective_most = most;
    view.model->memo_round = round->number;
    for (int64_t j = 0; j < view.model->k; j++)
        view.drift[j] = 0; /* copies of centres stay copies, which nobody looks at */
    return SHOAL_OK;
}

static int update_label(shoal_round **next, shoal_result **result, const shoal_round *round, shoal_partial *merged,
                        const shoal_shape *shape, const shoal_crew *crew, bool stop)
{
    kmeans_view view = kmeans_view_of(round);
    kmeans_model *model = view.model;
    double objective = kmeans_objective_value(&view, shoal_partial_values(merged, LABEL_OBJECTIVE));
    double most = shoal_max_value(shoal_partial_values(merged, LABEL_MOST)[0]);
    if (!model->objective_most && is_coarse(&view, objective, most))
        return measure_finer(next, round, most);
    bool better = model->best_run < 0 || objective < model->best_objective;
    bool last = model->finishing || model->run + 1 == model->runs || model->stopping || stop;
    if (last && (better || model->finishing) && kmeans_is_trial(model))
        return kmeans_end_trial(next, round, shoal_partial_values(merged, LABEL_SAMPLE), objective, shape, crew, stop);
    if (last && (better || model->finishing)) {
        int status = make_labelled_result(result, &view, merged, kmeans_told_objective(model, objective));
        return status == SHOAL_OK && model->chosen ? kmeans_tell_trials(*result, round) : status;
    }
    return next_run(next, round, objective, better, shape, stop || model->stopping);
}

const kmeans_phase kmeans_label = {.name = "run",
                                   .describe = describe_label,
                                   .prepare = prepare_label,
                                   .scratch_bytes = scratch_label,
                                   .map = map_label,
                                   .update = update_label,
                                   .map_many = map_many_label};
