/* Lloyd rounds: label, sum, move the centres; and the last round, which labels and measures.
 *
 * The sums are carried: a map adds only rows whose label changed since the round before. */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "learn/kmeans/kmeans_internal.h"

/* ---- sums -------------------------------------------------------------------------------------------------- */

enum { LLOYD_VALUES, LLOYD_ROWS, LLOYD_WEIGHT, LLOYD_WIDE };

static kmeans_sums sums_of(shoal_partial *partial, const kmeans_model *model)
{
    return (kmeans_sums){.values = shoal_partial_values(partial, LLOYD_VALUES),
                         .rows = shoal_partial_values(partial, LLOYD_ROWS),
                         .weight = model->weighted ? shoal_partial_values(partial, LLOYD_WEIGHT) : NULL,
                         .wide = shoal_partial_values(partial, LLOYD_WIDE)};
}

static void move_wide(const kmeans_sums *sums, const kmeans_rows *rows, int64_t i, int64_t to, int64_t from)
{
    const kmeans_view *view = rows->view;
    int64_t wide = view->model->wide, all = view->model->k * wide;
    int bits = shoal_wide_bits(view->model->rows);
    double weight = kmeans_rows_weight(rows, i);
    kmeans_rows_values(rows->row64, rows, i);
    for (int64_t w = 0; w < wide; w++) {
        int64_t k = view->wide_column[w];
        double cell = rint(weight * (rows->row64[k] - view->origin[k]) * view->wide_inverse[w]);
        shoal_wide_add(sums->wide, all, to * wide + w, cell, bits);
        if (from >= 0)
            shoal_wide_add(sums->wide, all, from * wide + w, -cell, bits);
    }
}

void kmeans_sums_move(const kmeans_sums *sums, const kmeans_rows *rows, int64_t i, int64_t to, int64_t from)
{
    const kmeans_model *model = rows->view->model;
    kmeans_rows_move(rows, i, sums->values + to * model->columns,
                     from >= 0 ? sums->values + from * model->columns : NULL);
    int64_t counts = kmeans_rows_weight(rows, i) > 0;
    sums->rows[to] += counts;
    if (from >= 0)
        sums->rows[from] -= counts;
    if (sums->weight) {
        int64_t weight = (int64_t)rint(kmeans_rows_weight(rows, i) * model->weight_inverse);
        sums->weight[to] += weight;
        if (from >= 0)
            sums->weight[from] -= weight;
    }
    if (model->wide > 0)
        move_wide(sums, rows, i, to, from);
}

bool kmeans_sums_empty(const kmeans_sums *sums, int64_t cluster)
{
    return sums->weight ? sums->weight[cluster] <= 0 : sums->rows[cluster] <= 0;
}

/* ---- Lloyd: map -------------------------------------------------------------------------------------------- */

static void describe_lloyd(shoal_round *round, const shoal_shape *shape)
{
    const kmeans_model *model = round->model;
    shoal_layout *layout = &round->layout;
    layout->cells = 4;
    layout->cell[LLOYD_VALUES] = (shoal_cell){"sums", SHOAL_CELL_SUM, model->k * model->columns, 0, true};
    layout->cell[LLOYD_ROWS] = (shoal_cell){"rows", SHOAL_CELL_SUM, model->k, 0, true};
    layout->cell[LLOYD_WEIGHT] = (shoal_cell){"weights", SHOAL_CELL_SUM, model->weighted ? model->k : 0, 0, true};
    layout->cell[LLOYD_WIDE] = (shoal_cell){"wide sums", SHOAL_CELL_WIDE, model->k * model->wide, 0, true};
    layout->memo_row_bytes = kmeans_memo_bytes(model);
    layout->carry_from = model->memo_round;
    layout->writes_memo = true;
    round->step = model->iteration;
    round->steps = model->iterations;
    (void)shape;
}

static int prepare_lloyd(kmeans_prepared *prepared, const shoal_round *round, const shoal_shape *shape,
                         const shoal_crew *crew)
{
    kmeans_view view = kmeans_view_of(round);
    prepared->pack.prefers_bytes = false;
    return kmeans_pack_fill(&prepared->pack, prepared->kernel, view.centres,
                            view.model->memo_round >= 0 ? view.drift : NULL, view.model->k, &view, shape->type, crew);
}

static size_t scratch_lloyd(const shoal_round *round, const kmeans_prepared *prepared, const shoal_shape *shape)
{
    (void)round;
    return kmeans_rows_bytes(shape->columns) +
           kmeans_assign_bytes(&prepared->pack, prepared->kernel, shape->rows_per_grain);
}

typedef struct adding {
    kmeans_sums sums;
    const kmeans_rows *rows;
} adding;

static void add_changed(void *context, int64_t i, int32_t label, int32_t before)
{
    const adding *job = context;
    kmeans_sums_move(&job->sums, job->rows, i, label, before);
}

static int map_lloyd(shoal_partial *partial, const shoal_round *round, const kmeans_prepared *prepared,
                     const shoal_grain *grain, const shoal_scratch *scratch)
{
    kmeans_view view = kmeans_view_of(round);
    unsigned char *memory = scratch->memory;
    kmeans_rows rows;
    kmeans_rows_init(&rows, prepared, &view, grain, &memory);
    adding job = {sums_of(partial, view.model), &rows};
    return kmeans_assign(&rows, &prepared->pack, view.centres, grain->carried, add_changed, &job, memory,
                         scratch->counters);
}

/* ---- Lloyd: update ----------------------------------------------------------------------------------------- */

/* New centres, computed one cluster a task. */
typedef struct moving {
    kmeans_view old, fresh;
    const kmeans_sums *sums;
    const int32_t *copy;
    double *moved;     /* squared movement of each centre */
    double *objective; /* what each cluster adds to the objective under the old centres, less the rows' own squares */
} moving;

static double cluster_weight(const moving *job, int64_t j)
{
    return job->sums->weight ? (double)job->sums->weight[j] / job->old.model->weight_inverse
                             : (double)job->sums->rows[j];
}

static double sum_of(const moving *job, int64_t j, int64_t k)
{
    double inverse = job->old.inverse[k];
    return inverse > 0 ? (double)job->sums->values[j * job->old.model->columns + k] / inverse : 0;
}

static void add_wide(const moving *job, int64_t j, double *sum)
{
    const kmeans_model *model = job->old.model;
    for (int64_t w = 0; w < model->wide; w++)
        sum[job->old.wide_column[w]] = shoal_wide_value(job->sums->wide, model->k * model->wide, j * model->wide + w,
                                                        shoal_wide_bits(model->rows)) /
                                       job->old.wide_inverse[w];
}

static int move_centre(void *context, int64_t j, int thread)
{
    const moving *job = context;
    const kmeans_model *model = job->old.model;
    int64_t columns = model->columns;
    const double *old = job->old.centres + j * columns, *origin = job->old.origin;
    double *sum = job->fresh.centres + j * columns; /* sums first, turned into the centre in place */
    double weight = cluster_weight(job, j), objective = 0, moved = 0;
    bool empty = kmeans_sums_empty(job->sums, j);
    (void)thread;
    for (int64_t k = 0; k < columns; k++)
        sum[k] = sum_of(job, j, k);
    add_wide(job, j, sum);
    for (int64_t k = 0; k < columns; k++) {
        double from = old[k] - origin[k];
        objective += weight * from * from - 2 * from * sum[k];
        sum[k] = empty ? old[k] : origin[k] + sum[k] / weight;
        moved += (sum[k] - old[k]) * (sum[k] - old[k]);
    }
    job->moved[j] = moved;
    job->objective[j] = objective;
    /* A copy of a lower centre was not scored: whatever it does now, rows must look at it. */
    job->fresh.drift[j] = job->copy[j] != j ? INFINITY : sqrt(moved) * (1 + 0x1p-30);
    return SHOAL_OK;
}

/* The largest cluster (the lowest on ties) gives half its rows to each empty one: two centres a hair apart. */
static void split_largest(kmeans_view *fresh, const kmeans_sums *sums, int64_t *rows)
{
    int64_t k = fresh->model->k, columns = fresh->model->columns;
    for (int64_t empty = 0; empty < k; empty++) {
        if (!kmeans_sums_empty(sums, empty))
            continue;
        int64_t largest = 0;
        for (int64_t j = 1; j < k; j++)
            if (rows[j] > rows[largest])
                largest = j;
        double *from = fresh->centres + largest * columns, *to = fresh->centres + empty * columns;
        for (int64_t c = 0; c < columns; c++) {
            double apart = (from[c] - fresh->origin[c]) * 0x1p-10 * (c % 2 ? 1 : -1);
            to[c] = from[c] + apart;
            from[c] -= apart;
        }
        fresh->drift[largest] = fresh->drift[empty] = INFINITY;
        rows[empty] = rows[largest] / 2;
        rows[largest] -= rows[empty];
    }
}

static double squared_movement(const moving *job, int64_t j)
{
    int64_t columns = job->old.model->columns;
    const double *old = job->old.centres + j * columns, *fresh = job->fresh.centres + j * columns;
    double moved = 0;
    for (int64_t c = 0; c < columns; c++)
        moved += (fresh[c] - old[c]) * (fresh[c] - old[c]);
    return moved;
}

static int apply_split(moving *job, const kmeans_sums *sums)
{
    int64_t k = job->fresh.model->k, *rows = NULL;
    int status = base_alloc(&rows, (size_t)k, sizeof *rows, "cluster sizes");
    if (status < 0)
        return status;
    memcpy(rows, sums->rows, (size_t)k * sizeof *rows);
    split_largest(&job->fresh, sums, rows);
    for (int64_t j = 0; j < k; j++)
        job->moved[j] = squared_movement(job, j);
    base_free(&rows);
    return SHOAL_OK;
}

static int move_centres(shoal_round *next, const shoal_round *round, const kmeans_sums *sums, const shoal_crew *crew,
                        double *objective)
{
    int32_t *copy = NULL;
    moving job = {.old = kmeans_view_of(round), .fresh = kmeans_view_of(next), .sums = sums};
    int64_t k = job.old.model->k;
    int status = base_alloc(&copy, (size_t)k, sizeof *copy, "copies of centres");
    if (status == SHOAL_OK)
        status = base_alloc(&job.moved, (size_t)k, sizeof *job.moved, "movements");
    if (status == SHOAL_OK)
        status = base_alloc(&job.objective, (size_t)k, sizeof *job.objective, "objectives");
    if (status == SHOAL_OK)
        status = kmeans_find_copies(copy, job.old.centres, k, job.old.model->columns);
    job.copy = copy;
    if (status == SHOAL_OK)
        status = crew->each(crew, k, move_centre, &job);
    if (status == SHOAL_OK && job.old.model->empty == SHOAL_EMPTY_SPLIT)
        status = apply_split(&job, sums);
    if (status == SHOAL_OK) {
        double total = 0, moved = 0;
        for (int64_t j = 0; j < k; j++) {
            total += job.objective[j];
            moved += job.moved[j];
        }
        *objective = fmax(job.old.model->square_total + total, 0);
        next->change = moved;
    }
    base_free(&copy);
    base_free(&job.moved);
    base_free(&job.objective);
    return status;
}

/* Adds the drift to the way travelled.  False when some drift is infinite: then bounds that count on the way are void,
 * and so is the memo if it holds such bounds. */
static bool add_travel(kmeans_view *view)
{
    bool finite = true;
    for (int64_t j = 0; j < view->model->k; j++) {
        finite &= isfinite(view->drift[j]) != 0;
        view->travel[j] = kmeans_up(view->travel[j] + view->drift[j]);
    }
    for (int64_t j = 0; !finite && j < view->model->k; j++)
        view->travel[j] = 0; /* they begin anew with the next memo */
    return finite || !kmeans_keeps_bounds(view->model);
}

int kmeans_finish_iteration(shoal_round **next, const shoal_round *round, const kmeans_sums *sums,
                            const shoal_shape *shape, const shoal_crew *crew, bool stop)
{
    double objective = NAN;
    int status = kmeans_round_from(next, round, KMEANS_LLOYD, 0);
    if (status == SHOAL_OK)
        status = move_centres(*next, round, sums, crew, &objective);
    if (status < 0)
        return status;
    kmeans_view fresh = kmeans_view_of(*next), old = kmeans_view_of(round);
    kmeans_model *model = fresh.model;
    size_t bytes = (size_t)(model->k * model->columns) * sizeof(double);
    (void)shape;
    if (!add_travel(&fresh))
        model->memo_round = -1;
    else if (old.model->phase ==
             KMEANS_LLOYD) /* a relocate round leaves the memo as the Lloyd round before it wrote it */
        model->memo_round = round->number;
    model->iteration++;
    model->stopping |= stop;
    model->converged =
        memcmp(fresh.centres, old.centres, bytes) == 0 || (*next)->change <= model->tolerance * model->variance;
    if (model->converged || model->stopping || model->iteration >= model->iterations)
        model->phase = KMEANS_LABEL;
    (*next)->objective = objective / model->prescale / model->prescale / model->weight_scale;
    (*next)->change = model->variance > 0 ? (*next)->change / model->variance : 0;
    return SHOAL_OK;
}

static int update_lloyd(shoal_round **next, shoal_result **result, const shoal_round *round, shoal_partial *merged,
                        const shoal_shape *shape, const shoal_crew *crew, bool stop)
{
    const kmeans_model *model = round->model;
    kmeans_sums sums = sums_of(merged, model);
    int64_t empty = 0;
    (void)result;
    for (int64_t j = 0; j < model->k; j++)
        empty += kmeans_sums_empty(&sums, j);
    if (empty > 0 && model->empty == SHOAL_EMPTY_FARTHEST && !stop)
        return kmeans_begin_relocate(next, round, &sums, empty);
    return kmeans_finish_iteration(next, round, &sums, shape, crew, stop);
}

const kmeans_phase kmeans_lloyd = {.name = "run",
                                   .describe = describe_lloyd,
                                   .prepare = prepare_lloyd,
                                   .scratch_bytes = scratch_lloyd,
                                   .map = map_lloyd,
                                   .update = update_lloyd};

int kmeans_begin_lloyd(shoal_round **next, const shoal_round *from, const shoal_shape *shape)
{
    const kmeans_model *model = from->model;
    (void)shape;
    int status =
        kmeans_round_from(next, from, model->iterations > 0 && !model->stopping ? KMEANS_LLOYD : KMEANS_LABEL, 0);
    if (status < 0)
        return status;
    kmeans_model *fresh = (*next)->model;
    fresh->iteration = 0;
    fresh->converged = 0;
    fresh->objective_most = 0;
    fresh->memo_round = -1;
    kmeans_view view = kmeans_view_of(*next);
    for (int64_t j = 0; j < fresh->k; j++)
        view.travel[j] = 0;
    return SHOAL_OK;
}

/* ---- the last round: labels and the objective -------------------------------------------------------------- */

enum { LABEL_ROWS, LABEL_OBJECTIVE, LABEL_MOST, LABEL_SIZES, LABEL_DISTANCES };

static void describe_label(shoal_round *round, const shoal_shape *shape)
{
    const kmeans_model *model = round->model;
    shoal_layout *layout = &round->layout;
    layout->cells = model->distances ? 5 : 4;
    layout->cell[LABEL_DISTANCES] = (shoal_cell){"distances", SHOAL_CELL_ROW, 0, sizeof(double), false};
    layout->cell[LABEL_ROWS] = (shoal_cell){"labels", SHOAL_CELL_ROW, 0, sizeof(int32_t), false};
    layout->cell[LABEL_OBJECTIVE] = (shoal_cell){"objective", SHOAL_CELL_WIDE, 1, 0, false};
    layout->cell[LABEL_MOST] = (shoal_cell){"greatest term", SHOAL_CELL_MAX, 1, 0, false};
    layout->cell[LABEL_SIZES] = (shoal_cell){"sizes", SHOAL_CELL_SUM, model->k, 0, false};
    layout->memo_row_bytes = kmeans_memo_bytes(model);
    layout->carry_from = model->memo_round;
    layout->writes_memo = true;
    round->step = model->iteration;
    round->steps = model->iterations;
    (void)shape;
}

/* No row adds more to the objective than this: its width and the farthest centre's norm give a first bound. */
static double objective_bound(const kmeans_view *view)
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
static double objective_inverse(const kmeans_view *view)
{
    double most = objective_bound(view);
    if (isinf(most))
        return 0; /* centres so far away that squares overflow: the objective is infinite */
    return most > 0 ? fmin(ldexp(1, 2 * shoal_wide_bits(view->model->rows) - 2) / kmeans_power_above(most), 0x1p1000)
                    : 1;
}

static int map_label(shoal_partial *partial, const shoal_round *round, const kmeans_prepared *prepared,
                     const shoal_grain *grain, const shoal_scratch *scratch)
{
    kmeans_view view = kmeans_view_of(round);
    unsigned char *memory = scratch->memory;
    kmeans_rows rows;
    kmeans_rows_init(&rows, prepared, &view, grain, &memory);
    int status =
        kmeans_assign(&rows, &prepared->pack, view.centres, grain->carried, NULL, NULL, memory, scratch->counters);
    if (status < 0)
        return status;
    const int32_t *label = kmeans_memo_of(grain).label;
    int64_t *objective = shoal_partial_values(partial, LABEL_OBJECTIVE),
            *sizes = shoal_partial_values(partial, LABEL_SIZES);
    double inverse = prepared->objective_inverse, most = 0;
    int bits = shoal_wide_bits(view.model->rows);
    memcpy(shoal_partial_row(partial, LABEL_ROWS, grain->first_row), label, (size_t)grain->rows * sizeof *label);
    for (int64_t i = 0; i < grain->rows; i++) {
        double distance = kmeans_rows_distance(&rows, i, view.centres + label[i] * view.model->columns);
        double term = kmeans_rows_weight(&rows, i) * distance;
        if (inverse > 0)
            shoal_wide_add(objective, 1, 0, rint(term * inverse), bits);
        most = term > most ? term : most;
        sizes[label[i]]++;
        if (view.model->distances)
            *(double *)shoal_partial_row(partial, LABEL_DISTANCES, grain->first_row + i) =
                sqrt(distance) / view.model->prescale;
    }
    shoal_max_raise(shoal_partial_values(partial, LABEL_MOST), 0, most);
    return SHOAL_OK;
}

static int prepare_label(kmeans_prepared *prepared, const shoal_round *round, const shoal_shape *shape,
                         const shoal_crew *crew)
{
    kmeans_view view = kmeans_view_of(round);
    prepared->objective_inverse = objective_inverse(&view);
    return prepare_lloyd(prepared, round, shape, crew);
}

static int make_result(shoal_result **out, const kmeans_view *view, shoal_partial *merged, double objective)
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
    status = shoal_result_take_rows(result, "labels", SHOAL_INT32, merged, LABEL_ROWS, model->rows);
    if (status == SHOAL_OK && model->distances)
        status = shoal_result_take_rows(result, "distances", SHOAL_FLOAT64, merged, LABEL_DISTANCES, model->rows);
    int64_t empty = 0;
    for (int64_t j = 0; j < model->k; j++)
        empty += sizes[j] == 0;
    shoal_result_set_whole(result, "k", model->k);
    shoal_result_set_whole(result, "iterations", model->iteration);
    shoal_result_set_truth(result, "converged", model->converged);
    shoal_result_set(result, "objective", objective);
    shoal_result_set_whole(result, "run", model->run);
    shoal_result_set_whole(result, "empty_clusters", empty);
    return status;
}

static void remember_best(kmeans_view *view, double objective)
{
    kmeans_model *model = view->model;
    memcpy(view->best, view->centres, (size_t)(model->k * model->columns) * sizeof(double));
    model->best_run = model->run;
    model->best_iterations = model->iteration;
    model->best_converged = model->converged;
    model->best_objective = objective;
}

static void recall_best(kmeans_view *view)
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
    int status = kmeans_round_from(next, round, KMEANS_LABEL, 0);
    if (status == SHOAL_OK) {
        kmeans_view view = kmeans_view_of(*next);
        recall_best(&view);
    }
    return status;
}

/* After one of several runs: the next one, or a round that labels once more by the best run's centres. */
static int next_run(shoal_round **next, const shoal_round *round, double objective, bool better,
                    const shoal_shape *shape, bool stop)
{
    shoal_round *after = NULL;
    int status = kmeans_round_from(&after, round, KMEANS_LABEL, 0);
    if (status < 0)
        return status;
    kmeans_view view = kmeans_view_of(after);
    if (better)
        remember_best(&view, objective);
    if (view.model->run + 1 == view.model->runs || stop) {
        recall_best(&view);
        *next = after;
        return SHOAL_OK;
    }
    view.model->run++;
    status = kmeans_begin_run(next, after, shape);
    shoal_round_free(&after);
    return status;
}

static double objective_of(const kmeans_view *view, shoal_partial *merged)
{
    double inverse = objective_inverse(view);
    const int64_t *digits = shoal_partial_values(merged, LABEL_OBJECTIVE);
    return inverse > 0 ? shoal_wide_value(digits, 1, 0, shoal_wide_bits(view->model->rows)) / inverse : INFINITY;
}

/* A far outlier can make the first bound so large that the quantum swallows what the other rows add. */
static bool is_coarse(const kmeans_view *view, double objective, double most)
{
    if (!(most > 0) || isinf(most))
        return false;
    return isinf(objective) || objective * objective_inverse(view) < 0x1p40 * (double)view->model->rows;
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
    double objective = objective_of(&view, merged);
    double most = shoal_max_value(shoal_partial_values(merged, LABEL_MOST)[0]);
    if (!model->objective_most && is_coarse(&view, objective, most))
        return measure_finer(next, round, most);
    bool better = model->best_run < 0 || objective < model->best_objective;
    bool last = model->finishing || model->run + 1 == model->runs || model->stopping || stop;
    (void)crew;
    if (last && (better || model->finishing))
        return make_result(result, &view, merged, objective / model->prescale / model->prescale / model->weight_scale);
    return next_run(next, round, objective, better, shape, stop || model->stopping);
}

const kmeans_phase kmeans_label = {.name = "run",
                                   .describe = describe_label,
                                   .prepare = prepare_label,
                                   .scratch_bytes = scratch_lloyd,
                                   .map = map_label,
                                   .update = update_label};
