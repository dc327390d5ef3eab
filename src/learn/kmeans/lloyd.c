/* Lloyd rounds: label, sum, move the centres.
 *
 * The sums are carried: a map adds only rows whose label changed since the round before. */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "learn/kmeans/batch.h"
#include "learn/kmeans/device.h"

/* ---- sums -------------------------------------------------------------------------------------------------------- */

kmeans_sums kmeans_sums_of(shoal_partial *partial, const kmeans_model *model)
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
        int64_t weight = kmeans_rows_whole(rows, kmeans_rows_weight(rows, i) * model->weight_inverse);
        sums->weight[to] = base_add_wrapping(sums->weight[to], weight);
        if (from >= 0)
            sums->weight[from] = base_add_wrapping(sums->weight[from], -weight);
    }
    if (model->wide > 0)
        move_wide(sums, rows, i, to, from);
}

bool kmeans_sums_empty(const kmeans_sums *sums, int64_t cluster)
{
    return sums->weight ? sums->weight[cluster] <= 0 : sums->rows[cluster] <= 0;
}

double kmeans_sums_weight(const kmeans_sums *sums, const kmeans_model *model, int64_t cluster)
{
    return sums->weight ? (double)sums->weight[cluster] / model->weight_inverse : (double)sums->rows[cluster];
}

/* Quanta are powers of two: to multiply by one rounds as to divide by its inverse does, and is faster. */
void kmeans_quanta(double *quantum, const kmeans_view *view)
{
    for (int64_t k = 0; k < view->model->columns; k++)
        quantum[k] = view->inverse[k] > 0 ? 1 / view->inverse[k] : 0;
}

static void add_wide(double *sum, const kmeans_sums *sums, const kmeans_view *view, int64_t cluster)
{
    const kmeans_model *model = view->model;
    for (int64_t w = 0; w < model->wide; w++)
        sum[view->wide_column[w]] = shoal_wide_value(sums->wide, model->k * model->wide, cluster * model->wide + w,
                                                     shoal_wide_bits(model->rows)) /
                                    view->wide_inverse[w];
}

void kmeans_sums_values(double *restrict out, const kmeans_sums *sums, const kmeans_view *view, const double *quantum,
                        int64_t cluster)
{
    const int64_t columns = view->model->columns, *values = sums->values + cluster * columns;
    if (sums->pairs) {
        const kernel_pairs *plain = sums->pairs + cluster * kmeans_pairs(columns);
        for (int64_t k = 0; k < columns; k++)
            out[k] = (double)plain[k] - (double)sums->rows[cluster] * view->origin[k];
        return;
    }
    for (int64_t k = 0; k < columns; k++)
        out[k] = (double)values[k] * quantum[k];
    add_wide(out, sums, view, cluster);
}

/* ---- Lloyd: map -------------------------------------------------------------------------------------------------- */

static bool check_lloyd(const kmeans_view *view, const shoal_shape *shape)
{
    (void)shape;
    return view->model->extra_bytes == 0 && view->model->iteration < view->model->iterations;
}

void kmeans_describe_lloyd(shoal_round *round, const shoal_shape *shape)
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

int kmeans_prepare_centres(kmeans_prepared *prepared, const shoal_round *round, const shoal_shape *shape,
                           const shoal_crew *crew)
{
    kmeans_view view = kmeans_view_of(round);
    prepared->pack.prefers_bytes = false;
    return kmeans_pack_fill(&prepared->pack, prepared->kernel, view.centres,
                            view.model->memo_round >= 0 ? view.drift : NULL, view.model->k, &view, shape->type, crew);
}

size_t kmeans_scratch_assign(const shoal_round *round, const kmeans_prepared *prepared, const shoal_shape *shape)
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

int kmeans_map_lloyd(shoal_partial *partial, const shoal_round *round, const kmeans_prepared *prepared,
                     const shoal_grain *grain, const shoal_scratch *scratch)
{
    kmeans_view view = kmeans_view_of(round);
    unsigned char *memory = scratch->memory;
    kmeans_rows rows;
    kmeans_rows_init(&rows, prepared, &view, grain, &memory);
    adding job = {kmeans_sums_of(partial, view.model), &rows};
    return kmeans_assign(&rows, &prepared->pack, view.centres, grain->carried, add_changed, &job, memory,
                         scratch->counters);
}

int kmeans_map_many_lloyd(shoal_partial *partial, const shoal_round *round, kmeans_held *held, const shoal_crew *crew,
                          int64_t *counters)
{
    const kmeans_view view = kmeans_view_of(round);
    const kmeans_sums sums = kmeans_sums_of(partial, view.model);
    int status = kmeans_device_assign(held, &view, crew, counters);
    if (status < 0)
        return status;
    status = held->device->sums(held->rows, &(kernel_device_sums){sums.values, sums.rows, sums.weight, sums.wide});
    return status < 0 ? kmeans_device_fail(held, status) : SHOAL_OK;
}

/* ---- Lloyd: update ----------------------------------------------------------------------------------------------- */

/* New centres, computed one cluster a task. */
typedef struct moving {
    kmeans_view old, fresh;
    const kmeans_sums *sums;
    const kernel_set *kernel;
    double *quantum;   /* of each column's sums; 0 where they are wide */
    uint64_t *hash;    /* of each old centre */
    double *moved;     /* squared movement of each centre */
    double *objective; /* what each cluster adds to the objective under the old centres, less the rows' own squares */
} moving;

/* What is added up in the order of the columns; a block of them at a time, whose terms are computed on vectors. */
enum { MOVE_BLOCK = 32 };

typedef struct movement {
    double objective, moved;
} movement;

/* How a cluster's sum becomes its centre. */
typedef struct turning {
    bool stays;    /* the cluster is empty, or its sum has no direction: the centre is the old one */
    double weight; /* what the sum is divided by ... */
    double unit;   /* ... or, for the cosine metric, multiplied with; else 0 */
} turning;

/* Turns the sums of up to MOVE_BLOCK columns into the centre, in place. */
static void move_block(movement *total, double *restrict sum, const double *restrict old, const double *restrict origin,
                       int64_t columns, const turning *turn)
{
    const double weight = turn->weight, unit = turn->unit;
    double gain[MOVE_BLOCK], square[MOVE_BLOCK];
    for (int64_t k = 0; k < columns; k++) {
        double from = old[k] - origin[k];
        gain[k] = weight * from * from - 2 * from * sum[k];
    }
    if (turn->stays)
        memcpy(sum, old, (size_t)columns * sizeof *sum);
    else if (unit > 0)
        for (int64_t k = 0; k < columns; k++)
            sum[k] *= unit;
    else
        for (int64_t k = 0; k < columns; k++)
            sum[k] = origin[k] + sum[k] / weight;
    for (int64_t k = 0; k < columns; k++)
        square[k] = (sum[k] - old[k]) * (sum[k] - old[k]);
    for (int64_t k = 0; k < columns; k++) {
        total->objective += gain[k];
        total->moved += square[k];
    }
}

static int move_centre(void *context, int64_t j, int thread)
{
    const moving *job = context;
    int64_t columns = job->old.model->columns;
    const double *old = job->old.centres + j * columns, *origin = job->old.origin;
    double *sum = job->fresh.centres + j * columns; /* sums first, turned into the centre in place */
    turning turn = {.stays = kmeans_sums_empty(job->sums, j),
                    .weight = kmeans_sums_weight(job->sums, job->old.model, j)};
    movement total = {0};
    (void)thread;
    kmeans_sums_values(sum, job->sums, &job->old, job->quantum, j);
    if (kmeans_is_cosine(job->old.model)) {
        turn.unit = kmeans_sum_factor(sum, job->kernel, columns);
        turn.stays |= !(turn.unit > 0);
    }
    for (int64_t k = 0; k < columns; k += MOVE_BLOCK)
        move_block(&total, sum + k, old + k, origin + k, columns - k < MOVE_BLOCK ? columns - k : MOVE_BLOCK, &turn);
    job->moved[j] = total.moved;
    job->objective[j] = total.objective;
    job->hash[j] = kmeans_hash_row(old, columns);
    job->fresh.drift[j] = sqrt(total.moved) * (1 + 0x1p-30);
    return SHOAL_OK;
}

/* A copy of a lower centre was not scored: whatever it does now, rows must look at it. */
static int void_copies(const moving *job)
{
    int64_t k = job->old.model->k;
    int32_t *copy = NULL;
    int status = base_alloc_unset(&copy, (size_t)k, sizeof *copy, "copies of centres");
    if (status == SHOAL_OK)
        status = kmeans_find_copies(copy, job->old.centres, job->hash, k, job->old.model->columns);
    for (int64_t j = 0; status == SHOAL_OK && j < k; j++)
        if (copy[j] != j)
            job->fresh.drift[j] = INFINITY;
    base_free(&copy);
    return status;
}

/* The largest cluster (the lowest on ties) gives half its rows to each empty one: two centres a hair apart. */
static void split_largest(kmeans_view *fresh, const kmeans_sums *sums, int64_t *rows, const kernel_set *kernel)
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
        if (kmeans_is_cosine(fresh->model)) {
            kmeans_make_unit(to, kernel, columns);
            kmeans_make_unit(from, kernel, columns);
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
    split_largest(&job->fresh, sums, rows, job->kernel);
    for (int64_t j = 0; j < k; j++)
        job->moved[j] = squared_movement(job, j);
    base_free(&rows);
    return SHOAL_OK;
}

static int move_all(moving *job, const shoal_crew *crew)
{
    size_t k = (size_t)job->old.model->k;
    int status = kernel_choose(&job->kernel, crew->kernel);
    if (status == SHOAL_OK)
        status = base_alloc_unset(&job->quantum, (size_t)job->old.model->columns, sizeof *job->quantum, "quanta");
    if (status == SHOAL_OK)
        status = base_alloc_unset(&job->hash, k, sizeof *job->hash, "hashes of centres");
    if (status == SHOAL_OK)
        status = base_alloc_unset(&job->moved, k, sizeof *job->moved, "movements");
    if (status == SHOAL_OK)
        status = base_alloc_unset(&job->objective, k, sizeof *job->objective, "objectives");
    if (status < 0)
        return status;
    kmeans_quanta(job->quantum, &job->old);
    status = crew->each(crew, (int64_t)k, move_centre, job);
    if (status == SHOAL_OK)
        status = void_copies(job);
    if (status == SHOAL_OK && job->old.model->empty == SHOAL_EMPTY_SPLIT)
        status = apply_split(job, job->sums);
    return status;
}

static int move_centres(shoal_round *next, const shoal_round *round, const kmeans_sums *sums, const shoal_crew *crew,
                        double *objective)
{
    moving job = {.old = kmeans_view_of(round), .fresh = kmeans_view_of(next), .sums = sums};
    int status = move_all(&job, crew);
    if (status == SHOAL_OK) {
        double total = 0, moved = 0;
        for (int64_t j = 0; j < job.old.model->k; j++) {
            total += job.objective[j];
            moved += job.moved[j];
        }
        *objective = fmax(job.old.model->square_total + total, 0);
        next->change = moved;
    }
    base_free(&job.quantum);
    base_free(&job.hash);
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

kmeans_phase_id kmeans_phase_after_lloyd(const kmeans_model *model)
{
    return model->trials > 0 && !model->chosen ? KMEANS_TALLY : KMEANS_LABEL;
}

int kmeans_finish_iteration(shoal_round **next, const shoal_round *round, const kmeans_sums *sums,
                            const shoal_shape *shape, const shoal_crew *crew, bool stop)
{
    double objective = NAN;
    int status = kmeans_round_moved(next, round, KMEANS_LLOYD, 0);
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
        model->phase = kmeans_phase_after_lloyd(model);
    (*next)->objective = kmeans_told_objective(model, objective);
    (*next)->change = model->variance > 0 ? (*next)->change / model->variance : 0;
    return SHOAL_OK;
}

int kmeans_tally_sums(double *between, double *away, const shoal_round *round, shoal_partial *merged)
{
    const kmeans_view view = kmeans_view_of(round);
    const kmeans_sums sums = kmeans_sums_of(merged, view.model);
    const int64_t columns = view.model->columns, k = view.model->k;
    moving job = {.old = view, .sums = &sums};
    double *mean = NULL, *total = NULL, weight = 0;
    *between = *away = 0;
    int status = base_alloc_unset(&job.quantum, (size_t)columns, sizeof *job.quantum, "quanta");
    if (status == SHOAL_OK)
        status = base_alloc(&mean, (size_t)(k * columns), sizeof *mean, "means of clusters");
    if (status == SHOAL_OK)
        status = base_alloc(&total, (size_t)columns, sizeof *total, "the mean of all rows");
    if (status < 0)
        goto done;
    kmeans_quanta(job.quantum, &job.old);
    for (int64_t j = 0; j < k; j++) { /* sums first, from the origin */
        kmeans_sums_values(mean + j * columns, &sums, &view, job.quantum, j);
        weight += kmeans_sums_weight(&sums, view.model, j);
        for (int64_t c = 0; c < columns; c++)
            total[c] += mean[j * columns + c];
    }
    for (int64_t j = 0; j < k; j++) {
        const double mass = kmeans_sums_weight(&sums, view.model, j);
        double apart = 0, off = 0;
        for (int64_t c = 0; c < columns && mass > 0; c++) {
            const double at = mean[j * columns + c] / mass, from = at - total[c] / weight;
            const double beside = at - (view.centres[j * columns + c] - view.origin[c]);
            apart += from * from;
            off += beside * beside;
        }
        *between += mass * apart;
        *away += mass * off;
    }
done:
    base_free(&job.quantum);
    base_free(&mean);
    base_free(&total);
    return status;
}

static int update_lloyd(shoal_round **next, shoal_result **result, const shoal_round *round, shoal_partial *merged,
                        const shoal_shape *shape, const shoal_crew *crew, bool stop)
{
    const kmeans_model *model = round->model;
    kmeans_sums sums = kmeans_sums_of(merged, model);
    int64_t empty = 0;
    (void)result;
    for (int64_t j = 0; j < model->k; j++)
        empty += kmeans_sums_empty(&sums, j);
    if (empty > 0 && model->empty == SHOAL_EMPTY_FARTHEST && !stop)
        return kmeans_begin_relocate(next, round, &sums, empty);
    return kmeans_finish_iteration(next, round, &sums, shape, crew, stop);
}

const kmeans_phase kmeans_lloyd = {.name = "run",
                                   .check = check_lloyd,
                                   .describe = kmeans_describe_lloyd,
                                   .prepare = kmeans_prepare_centres,
                                   .scratch_bytes = kmeans_scratch_assign,
                                   .map = kmeans_map_lloyd,
                                   .update = update_lloyd,
                                   .map_many = kmeans_map_many_lloyd};

int kmeans_begin_lloyd(shoal_round **next, const shoal_round *from, const shoal_shape *shape)
{
    const kmeans_model *model = from->model;
    const bool moves = model->iterations > 0 && !model->stopping;
    (void)shape;
    int status = moves && model->batch > 0
                     ? kmeans_begin_batches(next, from)
                     : kmeans_round_from(next, from, moves ? KMEANS_LLOYD : kmeans_phase_after_lloyd(model), 0);
    if (status < 0)
        return status;
    kmeans_model *fresh = (*next)->model;
    fresh->iteration = fresh->batches = 0;
    fresh->converged = 0;
    fresh->objective_most = 0;
    fresh->memo_round = -1;
    kmeans_view view = kmeans_view_of(*next);
    for (int64_t j = 0; j < fresh->k; j++)
        view.travel[j] = 0;
    return SHOAL_OK;
}
