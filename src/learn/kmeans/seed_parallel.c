/* k-means|| (Bahmani, Moseley, Vattani, Kumar and Vassilvitskii, "Scalable k-means++", VLDB 2012): a few rounds each
 * sample about half as many rows as there will be centres, every row with a probability in proportion to its potential;
 * then greedy k-means++ (recluster.c) picks the centres among the samples, each weighted by the rows it is nearest to.
 *
 * Rounds alternate: one measures every row's distance to the newest candidates, one samples. */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "learn/kmeans/seed.h"

enum { SAMPLE_POTENTIAL, SAMPLE_MOST, SAMPLE_WEIGHT, SAMPLE_CELLS };
enum { SAMPLE_ROWS };

/* So many steps have coins of their own.  Each that samples finds something with a probability of 1 - exp(-k/2), so
 * that no run comes near. */
enum { SAMPLE_STEPS_MOST = 1 << 12 };

/* ---- the rounds -------------------------------------------------------------------------------------------------- */

int seed_parallel_first(shoal_round **next, const shoal_round *fetched, shoal_partial *merged)
{
    int status = seed_round_from(next, fetched, KMEANS_SAMPLE, 0, 1);
    if (status < 0)
        return status;
    seed_view view = seed_view_of(*next);
    seed_take_rows(view.candidate, merged, view.base.model->columns);
    view.state->applied = 0;
    view.state->sampling = 0;
    view.state->step = 0;
    view.state->most = view.base.model->distance_most * view.base.model->weight_most;
    return SHOAL_OK;
}

/* A round that samples has measured all candidates; one that measures has some to measure. */
static bool check_sample(const kmeans_view *view, const shoal_shape *shape)
{
    const seed_state *state = view->extra;
    (void)shape;
    return seed_section_is_whole(view) && view->model->start == KMEANS_START_PARALLEL && state->candidates >= 1 &&
           state->step < SAMPLE_STEPS_MOST &&
           (state->sampling ? state->applied == state->candidates && state->potential > 0
                            : state->applied < state->candidates);
}

static void describe_sample(shoal_round *round, const shoal_shape *shape)
{
    seed_view view = seed_view_of(round);
    shoal_layout *layout = &round->layout;
    if (view.state->sampling) {
        layout->cells = 1;
        layout->cell[SAMPLE_ROWS] =
            (shoal_cell){"samples", SHOAL_CELL_RECORD, 0, (size_t)shape->columns * sizeof(double), false};
    } else {
        layout->cells = SAMPLE_CELLS;
        layout->cell[SAMPLE_POTENTIAL] = (shoal_cell){"potential", SHOAL_CELL_SUM, 1, 0, false};
        layout->cell[SAMPLE_MOST] = (shoal_cell){"greatest potential", SHOAL_CELL_MAX, 1, 0, false};
        layout->cell[SAMPLE_WEIGHT] = (shoal_cell){"weights", SHOAL_CELL_SUM, view.state->candidates, 0, false};
    }
    layout->memo_row_bytes = SEED_MEMO_BYTES;
    layout->carry_from = view.base.model->memo_round;
    layout->writes_memo = !view.state->sampling;
    round->step = view.state->step;
    round->steps = SEED_SAMPLING_ROUNDS;
}

static int prepare_sample(kmeans_prepared *prepared, const shoal_round *round, const shoal_shape *shape,
                          const shoal_crew *crew)
{
    seed_view view = seed_view_of(round);
    if (view.state->sampling)
        return SHOAL_OK;
    prepared->pack.prefers_bytes = false;
    return kmeans_pack_fill(&prepared->pack, prepared->kernel, view.candidate + view.state->applied * shape->columns,
                            NULL, view.state->candidates - view.state->applied, &view.base, shape->type, crew);
}

static size_t scratch_sample(const shoal_round *round, const kmeans_prepared *prepared, const shoal_shape *shape)
{
    seed_view view = seed_view_of(round);
    return kmeans_rows_bytes(shape->columns) + kmeans_cut_size((size_t)shape->columns * sizeof(double)) +
           kmeans_cut_size((size_t)shape->rows_per_grain * SEED_MEMO_BYTES) +
           kmeans_cut_size((size_t)shape->rows_per_grain * sizeof(int32_t)) +
           (view.state->sampling ? 0 : kmeans_nearer_bytes(&prepared->pack, prepared->kernel));
}

/* ---- map --------------------------------------------------------------------------------------------------------- */

typedef struct sampling {
    const kmeans_rows *rows;
    const kmeans_prepared *prepared;
    seed_view view;
    seed_memo memo;
    int64_t *counters;
} sampling;

static void look_at(sampling *job, int64_t i, int64_t candidate)
{
    double distance =
        kmeans_rows_distance(job->rows, i, job->view.candidate + candidate * job->rows->grain->shape->columns);
    job->counters[KMEANS_DEFINITIONS]++;
    if (distance < job->memo.distance[i]) {
        job->memo.distance[i] = distance;
        job->memo.nearest[i] = (int32_t)candidate;
    }
}

static void measure_row(void *context, int64_t i, const int32_t *places, int count)
{
    sampling *job = context;
    for (int c = 0; c < count; c++) /* places rise with candidates, so ties go to the lowest */
        look_at(job, i, job->view.state->applied + job->prepared->pack.id[places[c]]);
}

/* The memo is new or was lost: distances to all candidates it should know. */
static void measure_again(sampling *job)
{
    for (int64_t i = 0; i < job->rows->grain->rows; i++) {
        job->memo.distance[i] = INFINITY;
        job->memo.nearest[i] = 0;
        for (int64_t c = 0; c < job->view.state->applied; c++)
            look_at(job, i, c);
        if (job->view.state->applied == 0)
            job->memo.distance[i] = job->view.base.model->distance_most;
    }
}

static int sample_rows(shoal_partial *partial, const sampling *job, double *values)
{
    const kmeans_model *model = job->view.base.model;
    const seed_state *state = job->view.state;
    const shoal_grain *grain = job->rows->grain;
    double wanted = SEED_SAMPLES_PER_CENTRE * (double)model->k;
    for (int64_t i = 0; i < grain->rows; i++) {
        int64_t row = grain->first_row + i;
        double coin = base_random_unit((uint64_t)model->seed, BASE_FOR_SAMPLING, (uint64_t)row,
                                       (uint32_t)(model->run * SAMPLE_STEPS_MOST | state->step));
        if (!(coin * state->potential < wanted * kmeans_rows_weight(job->rows, i) * job->memo.distance[i]))
            continue;
        kmeans_rows_values(values, job->rows, i);
        int status = shoal_partial_record(partial, SAMPLE_ROWS, (shoal_key){0, (uint64_t)row}, values);
        if (status < 0)
            return status;
    }
    return SHOAL_OK;
}

static void measure_rows(shoal_partial *partial, sampling *job, int32_t *which, unsigned char *memory)
{
    const shoal_grain *grain = job->rows->grain;
    double inverse = seed_potential_inverse(job->view.base.model, job->view.state->most), most = 0;
    int64_t *weight = shoal_partial_values(partial, SAMPLE_WEIGHT), potential = 0;
    for (int64_t i = 0; i < grain->rows; i++)
        which[i] = (int32_t)i;
    kmeans_nearest(job->rows, &job->prepared->pack, which, grain->rows, job->memo.distance, measure_row, job, memory,
                   job->counters);
    for (int64_t i = 0; i < grain->rows; i++) {
        int64_t *its = &weight[job->memo.nearest[i]];
        potential = base_add_wrapping(potential, seed_potential(job->rows, i, job->memo.distance[i], inverse));
        *its = base_add_wrapping(*its, seed_potential(job->rows, i, 1, 0));
        most = fmax(most, kmeans_rows_weight(job->rows, i) * job->memo.distance[i]);
    }
    int64_t *all = shoal_partial_values(partial, SAMPLE_POTENTIAL);
    *all = base_add_wrapping(*all, potential);
    shoal_max_raise(shoal_partial_values(partial, SAMPLE_MOST), 0, most);
}

static int map_sample(shoal_partial *partial, const shoal_round *round, const kmeans_prepared *prepared,
                      const shoal_grain *given, const shoal_scratch *scratch)
{
    shoal_grain grain = *given;
    sampling job = {.prepared = prepared, .view = seed_view_of(round), .counters = scratch->counters};
    unsigned char *memory = scratch->memory;
    kmeans_rows rows;
    kmeans_rows_init(&rows, prepared, &job.view.base, &grain, &memory);
    double *values = kmeans_cut(&memory, (size_t)grain.shape->columns * sizeof(double));
    void *spare = kmeans_cut(&memory, (size_t)grain.rows * SEED_MEMO_BYTES);
    int32_t *which = kmeans_cut(&memory, (size_t)grain.rows * sizeof *which);
    job.rows = &rows;
    if (job.view.state->sampling && !grain.carried)
        grain.memo = spare; /* a round that samples does not write the memo */
    job.memo = seed_memo_of(&grain);
    int status = SHOAL_OK;
    if (!grain.carried)
        measure_again(&job);
    else if ((status = kmeans_memo_check(&grain, job.memo.nearest, job.view.state->candidates)) < 0)
        return status;
    if (job.view.state->sampling)
        return sample_rows(partial, &job, values);
    measure_rows(partial, &job, which, memory);
    return SHOAL_OK;
}

/* ---- update: after sampling -------------------------------------------------------------------------------------- */

/* Adds the sampled rows, less copies, to the candidates. */
static int add_samples(shoal_round **next, const shoal_round *round, shoal_partial *merged, const shoal_crew *crew)
{
    seed_view old = seed_view_of(round);
    int64_t columns = old.base.model->columns, before = old.state->candidates;
    int64_t samples = shoal_partial_records(merged, SAMPLE_ROWS), count = before;
    size_t bytes = (size_t)columns * sizeof(double);
    int32_t *copy = NULL;
    if (samples > old.base.model->rows || before > INT32_MAX - samples)
        return kmeans_fail_merged(round, "samples");
    int status = seed_round_from(next, round, KMEANS_SAMPLE, 0, before + samples);
    if (status == SHOAL_OK)
        status = base_alloc(&copy, (size_t)(before + samples), sizeof *copy, "copies of samples");
    if (status < 0)
        return status;
    seed_view view = seed_view_of(*next);
    memcpy(view.candidate, old.candidate, (size_t)before * bytes);
    for (int64_t s = 0; s < samples; s++)
        memcpy(view.candidate + (before + s) * columns, shoal_partial_record_at(merged, SAMPLE_ROWS, s, NULL), bytes);
    status = kmeans_hash_and_find_copies(copy, view.candidate, before + samples, columns, crew);
    for (int64_t s = before; status == SHOAL_OK && s < before + samples; s++)
        if (copy[s] == s)
            memmove(view.candidate + count++ * columns, view.candidate + s * columns, bytes);
    view.state->candidates = count;
    view.state->applied = before;
    view.state->sampling = count == before; /* nothing to measure: sample again, by other coins */
    view.state->step++;
    base_free(&copy);
    return status;
}

/* ---- update: after measuring ------------------------------------------------------------------------------------- */

static int update_sample(shoal_round **next, shoal_result **result, const shoal_round *round, shoal_partial *merged,
                         const shoal_shape *shape, const shoal_crew *crew, bool stop)
{
    seed_view view = seed_view_of(round);
    const kmeans_model *model = view.base.model;
    (void)result;
    if (stop)
        return kmeans_stop_early(next, round, "choosing the first centres");
    if (view.state->sampling)
        return add_samples(next, round, merged, crew);
    int64_t potential = shoal_partial_values(merged, SAMPLE_POTENTIAL)[0];
    double most = shoal_max_value(shoal_partial_values(merged, SAMPLE_MOST)[0]);
    if (potential < 0 || !isfinite(most) ||
        !seed_are_potentials(shoal_partial_values(merged, SAMPLE_WEIGHT), view.state->candidates, 0))
        return kmeans_fail_merged(round, "potentials");
    bool enough = view.state->step >= SEED_SAMPLING_ROUNDS && view.state->candidates >= model->k;
    if (enough || !seed_can_weigh(model, most)) {
        if (view.state->candidates < model->k)
            return seed_too_few(model, view.state->candidates);
        int status = kmeans_begin_lloyd(next, round, shape);
        if (status < 0)
            return status;
        kmeans_view fresh = kmeans_view_of(*next);
        int64_t found = 0;
        status = seed_recluster(fresh.centres, &found, model, view.candidate,
                                shoal_partial_values(merged, SAMPLE_WEIGHT), view.state->candidates, crew);
        return status == SHOAL_OK && found < model->k ? seed_too_few(model, found) : status;
    }
    int status = seed_round_from(next, round, KMEANS_SAMPLE, 0, view.state->candidates);
    if (status < 0)
        return status;
    seed_view after = seed_view_of(*next);
    memcpy(after.candidate, view.candidate, (size_t)(view.state->candidates * model->columns) * sizeof(double));
    after.base.model->memo_round = round->number;
    after.state->most = most;
    if (potential == 0) /* the quantum swallowed all potentials: the same once more, by the greatest there is */
        return SHOAL_OK;
    after.state->applied = view.state->candidates;
    after.state->sampling = 1;
    after.state->potential = (double)potential / seed_potential_inverse(model, view.state->most);
    return SHOAL_OK;
}

const kmeans_phase kmeans_sample = {.name = "seed",
                                    .check = check_sample,
                                    .describe = describe_sample,
                                    .prepare = prepare_sample,
                                    .scratch_bytes = scratch_sample,
                                    .map = map_sample,
                                    .update = update_sample};
