/* Mini-batch k-means: the batches, and the choice among first centres.  See batch.h. */
#include "learn/kmeans/batch.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "base/text.h"
#include "learn/pick.h"

/* ---- what is asked for ------------------------------------------------------------------------------------------- */

/* Each worker holds whole strata, and each map has rows of one. */
enum { STRATA_LEAST = 16, STRATA_MOST = 256, STRATUM_ROWS = 64 };

int kmeans_check_batch(const shoal_kmeans_config *config)
{
    if (config->batch < 0 || config->init_size < 0 || config->max_no_improvement < 0 ||
        !(config->reassignment_ratio >= 0 && config->reassignment_ratio <= 1))
        return shoal_fail(SHOAL_USAGE, "--batch, --init-size and --max-no-improvement can't be negative, and "
                                       "--reassignment-ratio is from 0 to 1");
    if (config->batch == 0) {
        const char *lonely = config->init_size > 0 ? "--init-size"
                             : config->max_no_improvement != 0 && config->max_no_improvement != KMEANS_PATIENCE
                                 ? "--max-no-improvement"
                             : config->reassignment_ratio != 0 && config->reassignment_ratio != KMEANS_REASSIGNMENT
                                 ? "--reassignment-ratio"
                                 : NULL;
        return lonely ? shoal_fail(SHOAL_USAGE, "%s is for mini-batch k-means and needs --batch B", lonely) : SHOAL_OK;
    }
    if (config->ks)
        return shoal_fail(SHOAL_USAGE, "--batch is for one K, but -k is %s: give one K, or leave out --batch",
                          config->ks);
    if (config->empty != SHOAL_EMPTY_FARTHEST)
        return shoal_fail(SHOAL_USAGE, "--empty is for updates that see all rows; with --batch, --reassignment-ratio "
                                       "says what becomes of clusters that get hardly any");
    if (config->init_size > 0 && config->init_size < config->k)
        return shoal_fail(SHOAL_USAGE, "--init-size %lld is too few rows to find %lld centres among",
                          (long long)config->init_size, (long long)config->k);
    return SHOAL_OK;
}

int64_t kmeans_init_size(const shoal_kmeans_config *config, int64_t rows)
{
    const int64_t batch = config->batch < rows ? config->batch : rows;
    int64_t size = config->init_size > 0 ? config->init_size : 3 * (batch < config->k ? config->k : batch);
    return size < rows ? size : rows;
}

void kmeans_ask_batches(kmeans_model *header, const shoal_kmeans_config *config, const shoal_shape *shape)
{
    if (config->batch == 0)
        return;
    header->batch = config->batch;
    header->init_size = kmeans_init_size(config, shape->rows);
    header->patience = config->max_no_improvement;
    header->reassignment = config->reassignment_ratio;
}

int kmeans_strata(const void *untyped, shoal_shape *shape)
{
    const shoal_kmeans_config *config = untyped;
    const int64_t wanted = config->batch / STRATUM_ROWS;
    if (config->batch > 0)
        shape->strata = wanted < STRATA_LEAST ? STRATA_LEAST : wanted > STRATA_MOST ? STRATA_MOST : wanted;
    return SHOAL_OK;
}

/* ---- places ------------------------------------------------------------------------------------------------------ */

uint64_t batch_key(const kmeans_model *model, batch_use use, int64_t index)
{
    return base_random_u64((uint64_t)model->seed, BASE_FOR_BATCHES, (uint64_t)index, (uint32_t)use);
}

int64_t batch_rows(const kmeans_model *model)
{
    return model->batch < model->rows ? model->batch : model->rows;
}

int64_t batch_steps(const kmeans_model *model)
{
    const int64_t rows = batch_rows(model);
    return model->rows / rows + (model->rows % rows > 0);
}

int64_t batch_steps_most(const kmeans_model *model)
{
    int64_t most;
    return __builtin_mul_overflow(model->iterations, batch_steps(model), &most) ? INT64_MAX : most;
}

/* ---- rounds ------------------------------------------------------------------------------------------------------ */

bool batch_is_state(const kmeans_view *view)
{
    const kmeans_model *model = view->model;
    const batch_state *state = view->extra;
    return model->batch > 0 && (size_t)model->extra_bytes == sizeof(batch_state) && state->unchecked >= 0 &&
           state->unchecked <= INT64_MAX / 2 && state->unimproved >= 0 && state->unimproved < INT64_MAX &&
           state->smoothed >= -1 && state->least >= -1 && state->moved >= 0 && model->batches < batch_steps_most(model);
}

static bool check_batch(const kmeans_view *view, const shoal_shape *shape)
{
    const batch_state *state = view->extra;
    (void)shape;
    return batch_is_state(view) && state->starved == 0;
}

static bool check_rate(const kmeans_view *view, const shoal_shape *shape)
{
    const batch_state *state = view->extra;
    return check_batch(view, shape) && view->model->batches == 0 && state->polished >= 0 &&
           state->polished <= BATCH_POLISHES && (view->model->runs > 1 || state->polished < BATCH_POLISHES);
}

/* Behind the cells of a Lloyd round. */
enum { BATCH_OBJECTIVE = 4 };

/* Bytes without weights are added up as they are, in half the memory: what they add up to is whole, and so is known
 * exactly, whatever the quanta are. */
static bool adds_pairs(const kmeans_view *view, const shoal_shape *shape, const shoal_pick *pick)
{
    const int64_t rows_most = INT32_MAX / UINT8_MAX;
    return kmeans_rows_are_bytes(view, shape) && !shape->weighted && pick->count <= rows_most;
}

static kmeans_sums batch_sums_of(shoal_partial *partial, const shoal_round *round, const shoal_shape *shape)
{
    const kmeans_view view = kmeans_view_of(round);
    kmeans_sums sums = kmeans_sums_of(partial, view.model);
    if (adds_pairs(&view, shape, &round->layout.pick))
        sums.pairs = (kernel_pairs *)sums.values;
    return sums;
}

/* Sums and objective of the rows that a pick names. */
static void describe_picked(shoal_round *round, const shoal_shape *shape, const shoal_pick *pick)
{
    const kmeans_view view = kmeans_view_of(round);
    shoal_layout *layout = &round->layout;
    kmeans_describe_lloyd(round, shape);
    if (adds_pairs(&view, shape, pick)) {
        layout->cell[LLOYD_VALUES].count = view.model->k * kmeans_pairs(view.model->columns) / 2;
        layout->cell[LLOYD_WIDE].count = 0;
    }
    for (int i = 0; i < layout->cells; i++)
        layout->cell[i].carried = false;
    layout->cell[layout->cells++] = (shoal_cell){"objective", SHOAL_CELL_WIDE, 1, 0, false};
    layout->memo_row_bytes = 0;
    layout->carry_from = -1;
    layout->writes_memo = false;
    layout->pick = *pick;
    layout->pick.group = BATCH_GROUP_ROWS;
}

static void describe_batch(shoal_round *round, const shoal_shape *shape)
{
    const kmeans_model *model = round->model;
    const int64_t steps = batch_steps(model), rows = batch_rows(model);
    describe_picked(round, shape,
                    &(shoal_pick){.key = shoal_epoch_key((uint64_t)model->seed, model->batches / steps),
                                  .from = model->batches % steps * rows,
                                  .count = rows});
    round->step = model->batches;
    round->steps = batch_steps_most(model);
}

static void describe_rate(shoal_round *round, const shoal_shape *shape)
{
    const kmeans_model *model = round->model;
    const batch_state *state = kmeans_view_of(round).extra;
    const uint64_t key = state->polished < BATCH_POLISHES ? batch_key(model, BATCH_TO_START, model->run)
                                                          : batch_key(model, BATCH_TO_RATE, 0);
    describe_picked(round, shape, &(shoal_pick){.key = key, .count = model->init_size});
    round->step = model->run;
    round->steps = model->runs;
}

static int prepare_batch(kmeans_prepared *prepared, const shoal_round *round, const shoal_shape *shape,
                         const shoal_crew *crew)
{
    kmeans_view view = kmeans_view_of(round);
    prepared->objective_inverse = kmeans_objective_inverse(&view);
    return kmeans_prepare_centres(prepared, round, shape, crew);
}

static size_t scratch_batch(const shoal_round *round, const kmeans_prepared *prepared, const shoal_shape *shape)
{
    const int64_t rows = learn_pick_group_rows(&round->layout.pick, shape);
    return kmeans_cut_size((size_t)rows * KMEANS_MEMO_BYTES) + kmeans_cut_size((size_t)rows * sizeof(double)) +
           kmeans_rows_bytes(shape->columns) + kmeans_assign_bytes(&prepared->pack, prepared->kernel, rows);
}

typedef struct batch_adding {
    kmeans_sums sums;
    const kmeans_rows *rows;
} batch_adding;

static void add_row(void *context, int64_t i, int32_t label, int32_t before)
{
    const batch_adding *job = context;
    const int64_t columns = job->rows->view->model->columns;
    (void)before; /* none: each row is labelled once */
    if (!job->sums.pairs) {
        kmeans_sums_move(&job->sums, job->rows, i, label, -1);
        return;
    }
    job->rows->kernel->add8(job->sums.pairs + label * kmeans_pairs(columns), kmeans_rows_raw(job->rows, i), columns);
    job->sums.rows[label]++;
}

static void add_objective(shoal_partial *partial, const kmeans_rows *rows, const double *distance, double inverse)
{
    int64_t *digits = shoal_partial_values(partial, BATCH_OBJECTIVE);
    const int bits = shoal_wide_bits(rows->view->model->rows);
    for (int64_t i = 0; i < rows->grain->rows; i++)
        shoal_wide_add(digits, 1, 0, rint(kmeans_rows_weight(rows, i) * distance[i] * inverse), bits);
}

static int map_batch(shoal_partial *partial, const shoal_round *round, const kmeans_prepared *prepared,
                     const shoal_grain *gathered, const shoal_scratch *scratch)
{
    kmeans_view view = kmeans_view_of(round);
    unsigned char *memory = scratch->memory;
    shoal_grain grain = *gathered; /* with a memo that lasts as long as this map */
    kmeans_rows rows;
    grain.memo = kmeans_cut(&memory, (size_t)grain.rows * KMEANS_MEMO_BYTES);
    grain.carried = false;
    kmeans_rows_init(&rows, prepared, &view, &grain, &memory);
    double *distance = kmeans_cut(&memory, (size_t)grain.rows * sizeof *distance);
    batch_adding job = {.sums = batch_sums_of(partial, round, grain.shape), .rows = &rows};
    int status = kmeans_assign(&rows, &prepared->pack, view.centres, false, add_row, &job, memory, scratch->counters);
    if (status == SHOAL_OK && prepared->objective_inverse > 0) {
        kmeans_rows_distances(distance, &rows, kmeans_memo_of(&grain).label, view.centres);
        add_objective(partial, &rows, distance, prepared->objective_inverse);
    }
    return status;
}

/* ---- moving the centres ------------------------------------------------------------------------------------------ */

/* New centres, one cluster a task. */
typedef struct batch_moving {
    kmeans_view old, fresh;
    const kmeans_sums *sums;
    const kernel_set *kernel;
    double *quantum, *square; /* of each column; by how much each centre moved */
} batch_moving;

/* The mean of all rows so far: (N c + S) / (N + m), from the origin; its direction for the cosine. */
static int move_centre(void *context, int64_t j, int thread)
{
    const batch_moving *job = context;
    const kmeans_model *model = job->old.model;
    const int64_t columns = model->columns;
    const double *restrict old = job->old.centres + j * columns, *restrict origin = job->old.origin;
    double *restrict centre = job->fresh.centres + j * columns;
    const double before = job->old.seen[j], weight = kmeans_sums_weight(job->sums, model, j), all = before + weight;
    (void)thread;
    job->square[j] = 0;
    if (kmeans_sums_empty(job->sums, j)) {
        memcpy(centre, old, (size_t)columns * sizeof *centre);
        return SHOAL_OK;
    }
    kmeans_sums_values(centre, job->sums, &job->old, job->quantum, j);
    for (int64_t c = 0; c < columns; c++)
        centre[c] = before * (old[c] - origin[c]) + centre[c];
    if (kmeans_is_cosine(model)) {
        const double unit = kmeans_sum_factor(centre, job->kernel, columns);
        for (int64_t c = 0; c < columns; c++)
            centre[c] = unit > 0 ? centre[c] * unit : old[c];
    } else {
        for (int64_t c = 0; c < columns; c++)
            centre[c] = origin[c] + centre[c] / all;
    }
    job->fresh.seen[j] = all;
    job->square[j] = job->kernel->distance64(centre, old, columns);
    return SHOAL_OK;
}

static int move_centres(shoal_round *next, const shoal_round *round, const kmeans_sums *sums, const shoal_crew *crew)
{
    batch_moving job = {.old = kmeans_view_of(round), .fresh = kmeans_view_of(next), .sums = sums};
    const kmeans_model *model = job.old.model;
    batch_state *state = job.fresh.extra;
    int status = kernel_choose(&job.kernel, crew->kernel);
    if (status == SHOAL_OK)
        status = base_alloc_unset(&job.quantum, (size_t)model->columns, sizeof *job.quantum, "quanta");
    if (status == SHOAL_OK)
        status = base_alloc_unset(&job.square, (size_t)model->k, sizeof *job.square, "movements");
    if (status < 0)
        goto done;
    memcpy(state, job.old.extra, sizeof(batch_state));
    kmeans_quanta(job.quantum, &job.old);
    status = crew->each(crew, model->k, move_centre, &job);
    next->change = 0;
    for (int64_t j = 0; j < model->k; j++)
        next->change += job.square[j];
    state->moved += next->change;
done:
    base_free(&job.quantum);
    base_free(&job.square);
    return status;
}

/* ---- first centres ----------------------------------------------------------------------------------------------- */

/* First centres that nobody gave are improved before they are compared, and before the batches. */
static bool has_rates(const kmeans_model *model)
{
    return !model->finishing && (model->runs > 1 || model->start != KMEANS_START_GIVEN);
}

/* Given centres may have seen something: those that have not seen enough of it get rows first. */
static int64_t count_given_starved(const kmeans_view *view)
{
    double most = 0;
    for (int64_t j = 0; j < view->model->k; j++)
        most = fmax(most, view->seen[j]);
    return most > 0 ? batch_count_starved(view->seen, view->model, batch_rows(view->model) / 2) : 0;
}

int kmeans_begin_batches(shoal_round **next, const shoal_round *from)
{
    const kmeans_model *model = from->model;
    int status = kmeans_round_from(next, from, has_rates(model) ? KMEANS_RATE : KMEANS_BATCH, sizeof(batch_state));
    if (status < 0)
        return status;
    kmeans_view fresh = kmeans_view_of(*next);
    batch_state *state = fresh.extra;
    state->smoothed = state->least = -1;
    for (int64_t j = 0; model->start != KMEANS_START_GIVEN && j < model->k; j++)
        fresh.seen[j] = 0;
    state->starved = count_given_starved(&fresh);
    if (state->starved > 0)
        fresh.model->phase = KMEANS_REFILL;
    return SHOAL_OK;
}

/* Each centre moves to the mean of the sample's rows that are nearest to it, but has seen nothing yet. */
static int polish(shoal_round **next, const shoal_round *round, shoal_partial *merged, const shoal_shape *shape,
                  const shoal_crew *crew)
{
    const kmeans_model *model = round->model;
    kmeans_sums sums = batch_sums_of(merged, round, shape);
    int status = kmeans_round_moved(next, round, KMEANS_RATE, sizeof(batch_state));
    if (status == SHOAL_OK)
        status = move_centres(*next, round, &sums, crew);
    if (status < 0)
        return status;
    kmeans_view fresh = kmeans_view_of(*next);
    batch_state *state = fresh.extra;
    state->polished++;
    state->moved = 0;
    for (int64_t j = 0; j < model->k; j++)
        fresh.seen[j] = 0;
    if (state->polished == BATCH_POLISHES && model->runs == 1)
        fresh.model->phase = KMEANS_BATCH;
    return SHOAL_OK;
}

/* Goes on with the next run's first centres, or with the best ones' batches. */
static int compare_runs(shoal_round **next, const shoal_round *round, double objective, const shoal_shape *shape)
{
    shoal_round *after = NULL;
    int status = kmeans_round_from(&after, round, KMEANS_RATE, 0);
    if (status < 0)
        return status;
    kmeans_view view = kmeans_view_of(after);
    view.model->runs_done++;
    if (view.model->best_run < 0 || objective < view.model->best_objective)
        kmeans_remember_best(&view, objective);
    if (view.model->run + 1 == view.model->runs)
        kmeans_recall_best(&view);
    else
        view.model->run++;
    status = view.model->finishing ? kmeans_begin_batches(next, after) : kmeans_begin_run(next, after, shape);
    shoal_round_free(&after);
    return status;
}

static int update_rate(shoal_round **next, shoal_result **result, const shoal_round *round, shoal_partial *merged,
                       const shoal_shape *shape, const shoal_crew *crew, bool stop)
{
    kmeans_view view = kmeans_view_of(round);
    const batch_state *state = view.extra;
    (void)result;
    if (stop)
        return kmeans_stop_early(next, round, "choosing the first centres");
    if (state->polished < BATCH_POLISHES)
        return polish(next, round, merged, shape, crew);
    return compare_runs(next, round, kmeans_objective_value(&view, shoal_partial_values(merged, BATCH_OBJECTIVE)),
                        shape);
}

/* ---- when it ends ------------------------------------------------------------------------------------------------ */

/* Rows of a batch that have weight, and what they weigh. */
typedef struct batch_seen {
    int64_t rows;
    double weight, objective; /* the mean of a row */
} batch_seen;

static bool count_seen(batch_seen *out, const kmeans_view *view, const kmeans_sums *sums, shoal_partial *merged)
{
    const kmeans_model *model = view->model;
    *out = (batch_seen){0};
    for (int64_t j = 0; j < model->k; j++) {
        if (sums->rows[j] < 0 || sums->rows[j] > model->rows - out->rows || (sums->weight && sums->weight[j] < 0))
            return false;
        out->rows += sums->rows[j];
        out->weight += kmeans_sums_weight(sums, model, j);
    }
    const double objective = kmeans_objective_value(view, shoal_partial_values(merged, BATCH_OBJECTIVE));
    out->objective = out->weight > 0 ? fmax(objective, 0) / out->weight : 0;
    return true;
}

/* Smooths the objective; whether it has not improved for as many batches as may be.  The first batch does not count:
 * its objective is that of the first centres. */
static bool is_settled(batch_state *state, const kmeans_model *model, const batch_seen *seen)
{
    const double part = fmin(2 * (double)seen->rows / ((double)model->rows + 1), 1);
    if (seen->rows == 0 || model->batches == 1)
        return false;
    if (state->smoothed < 0 || !isfinite(seen->objective) || !isfinite(state->smoothed))
        state->smoothed = seen->objective;
    else
        state->smoothed = state->smoothed * (1 - part) + seen->objective * part;
    if (state->least < 0 || state->smoothed < state->least) {
        state->least = state->smoothed;
        state->unimproved = 0;
    } else {
        state->unimproved++;
    }
    return model->patience > 0 && state->unimproved >= model->patience;
}

/* At the end of a pass: the movements of m batches, squared and added up, are at least 1/m of the pass's. */
static bool is_still(batch_state *state, const kmeans_model *model)
{
    const int64_t steps = batch_steps(model);
    if (model->batches % steps != 0)
        return false;
    const double most = (double)steps * state->moved;
    state->moved = 0;
    return model->tolerance > 0 && most <= model->tolerance * model->variance;
}

/* Clusters are looked at while one has seen nothing, and after every 10 K rows. */
static bool is_due(batch_state *state, const double *before, const kmeans_model *model, const batch_seen *seen)
{
    bool due = false;
    state->unchecked += seen->rows;
    for (int64_t j = 0; j < model->k; j++)
        due |= before[j] == 0;
    due |= state->unchecked >= 10 * model->k;
    if (due)
        state->unchecked = 0;
    return due;
}

/* Labels of all rows come next. */
static int end_batches(shoal_round **inout)
{
    shoal_round *last = *inout;
    *inout = NULL;
    int status = kmeans_round_from(inout, last, KMEANS_LABEL, 0);
    if (status == SHOAL_OK) {
        ((kmeans_model *)(*inout)->model)->objective_most = 0;
        (*inout)->objective = last->objective;
        (*inout)->change = last->change;
    }
    shoal_round_free(&last);
    return status;
}

static int update_batch(shoal_round **next, shoal_result **result, const shoal_round *round, shoal_partial *merged,
                        const shoal_shape *shape, const shoal_crew *crew, bool stop)
{
    kmeans_view old = kmeans_view_of(round);
    kmeans_sums sums = batch_sums_of(merged, round, shape);
    batch_seen seen;
    (void)result;
    if (!count_seen(&seen, &old, &sums, merged))
        return kmeans_fail_merged(round, "sums");
    int status = kmeans_round_moved(next, round, KMEANS_BATCH, sizeof(batch_state));
    if (status == SHOAL_OK)
        status = move_centres(*next, round, &sums, crew);
    if (status < 0)
        return status;
    kmeans_model *model = (*next)->model;
    batch_state *state = kmeans_view_of(*next).extra;
    model->objective_most = kmeans_objective_bound(&old); /* as centres are means of rows and of what they were */
    model->batches++;
    model->iteration = (model->batches - 1) / batch_steps(model) + 1;
    model->stopping |= stop;
    model->converged = is_settled(state, model, &seen);
    model->converged |= is_still(state, model);
    (*next)->objective =
        state->smoothed >= 0 ? kmeans_told_objective(model, state->smoothed * model->weight_total) : NAN;
    (*next)->change = model->variance > 0 ? (*next)->change / model->variance : 0;
    if (model->converged || model->stopping || model->batches >= batch_steps_most(model))
        return end_batches(next);
    if (is_due(state, old.seen, model, &seen)) {
        state->starved = batch_count_starved(kmeans_view_of(*next).seen, model, seen.rows / 2);
        model->phase = state->starved > 0 ? KMEANS_REFILL : KMEANS_BATCH;
    }
    return SHOAL_OK;
}

const kmeans_phase kmeans_rate = {.name = "seed",
                                  .check = check_rate,
                                  .describe = describe_rate,
                                  .prepare = prepare_batch,
                                  .scratch_bytes = scratch_batch,
                                  .map = map_batch,
                                  .update = update_rate};

const kmeans_phase kmeans_batch = {.name = "run",
                                   .check = check_batch,
                                   .describe = describe_batch,
                                   .prepare = prepare_batch,
                                   .scratch_bytes = scratch_batch,
                                   .map = map_batch,
                                   .update = update_batch};
