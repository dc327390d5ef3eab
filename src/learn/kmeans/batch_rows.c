/* Mini-batch k-means: rows that are drawn to become centres, at the start or in the place of those that hardly get any.
 * See batch.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "learn/kmeans/batch.h"
#include "learn/kmeans/seed.h"

/* ---- what both phases share: rows of positive weight, as records ------------------------------------------------- */

enum { DRAWN_ROWS };

/* A row, float64 in units or bytes as they are, and its weight in quanta of weight sums. */
static size_t drawn_values_bytes(const shoal_round *round, const shoal_shape *shape)
{
    const kmeans_view view = kmeans_view_of(round);
    return (size_t)view.model->columns * (kmeans_rows_are_bytes(&view, shape) ? 1 : sizeof(double));
}

static size_t drawn_bytes(const shoal_round *round, const shoal_shape *shape)
{
    return drawn_values_bytes(round, shape) + sizeof(int64_t);
}

/* At most `most` records; 0: as many as there are. */
static void describe_drawn(shoal_round *round, const shoal_shape *shape, batch_use use, int64_t index, int64_t count,
                           int64_t most)
{
    const kmeans_model *model = round->model;
    shoal_layout *layout = &round->layout;
    layout->cells = 1;
    layout->cell[DRAWN_ROWS] = (shoal_cell){"drawn rows", SHOAL_CELL_RECORD, most, drawn_bytes(round, shape), false};
    layout->pick = (shoal_pick){.key = batch_key(model, use, index), .count = count, .group = BATCH_GROUP_ROWS};
}

static size_t scratch_drawn(const shoal_round *round, const kmeans_prepared *prepared, const shoal_shape *shape)
{
    (void)prepared;
    return kmeans_rows_bytes(shape->columns) + kmeans_cut_size(drawn_bytes(round, shape));
}

/* Those that are kept, where a partial keeps only some, are the greatest of random keys. */
static int map_drawn(shoal_partial *partial, const shoal_round *round, const kmeans_prepared *prepared,
                     const shoal_grain *grain, const shoal_scratch *scratch)
{
    kmeans_view view = kmeans_view_of(round);
    const size_t values_bytes = drawn_values_bytes(round, grain->shape);
    const bool bytes = kmeans_rows_are_bytes(&view, grain->shape);
    const uint64_t order = round->layout.pick.key;
    unsigned char *memory = scratch->memory, *record = kmeans_cut(&memory, values_bytes + sizeof(int64_t));
    int status = SHOAL_OK;
    kmeans_rows rows;
    kmeans_rows_init(&rows, prepared, &view, grain, &memory);
    for (int64_t i = 0; status == SHOAL_OK && i < grain->rows; i++) {
        const int64_t weight = kmeans_rows_whole(&rows, kmeans_rows_weight(&rows, i) * view.model->weight_inverse);
        const uint64_t row = (uint64_t)grain->row[i];
        if (!(kmeans_rows_weight(&rows, i) > 0))
            continue;
        if (bytes)
            memcpy(record, kmeans_rows_raw(&rows, i), values_bytes);
        else
            kmeans_rows_values((double *)record, &rows, i);
        memcpy(record + values_bytes, &weight, sizeof weight);
        status = shoal_partial_record(partial, DRAWN_ROWS,
                                      (shoal_key){base_random_u64(order, BASE_FOR_BATCHES, row, 0), row}, record);
    }
    return status;
}

/* Writes the row of record `index`; false if no map can have made it. */
static bool take_drawn(double *row, int64_t *weight, const shoal_round *round, const shoal_shape *shape,
                       const shoal_partial *merged, int64_t index)
{
    const kmeans_view view = kmeans_view_of(round);
    const int64_t columns = view.model->columns;
    const unsigned char *record = shoal_partial_record_at(merged, DRAWN_ROWS, index, NULL);
    const size_t values_bytes = drawn_values_bytes(round, shape);
    memcpy(weight, record + values_bytes, sizeof *weight);
    if (kmeans_rows_are_bytes(&view, shape))
        shoal_convert_float64(row, record, SHOAL_UINT8, columns);
    else
        memcpy(row, record, values_bytes);
    return *weight >= 0 && *weight <= INT64_MAX / view.model->rows && kmeans_are_finite(row, columns);
}

/* ---- first centres among a sample -------------------------------------------------------------------------------- */

int kmeans_begin_scatter(shoal_round **next, const shoal_round *from)
{
    return kmeans_round_from(next, from, KMEANS_SCATTER, 0);
}

static bool check_scatter(const kmeans_view *view, const shoal_shape *shape)
{
    const kmeans_model *model = view->model;
    (void)shape;
    return model->batch > 0 && model->init_size > 0 && model->extra_bytes == 0;
}

static void describe_scatter(shoal_round *round, const shoal_shape *shape)
{
    const kmeans_model *model = round->model;
    describe_drawn(round, shape, BATCH_TO_START, model->run, model->init_size, 0);
    round->step = model->run;
    round->steps = model->runs;
}

/* Of a sample with fewer different rows than K, some centres are equal: those will be moved to other rows. */
static void repeat_centres(double *centres, const kmeans_model *model, int64_t found)
{
    for (int64_t j = found; j < model->k; j++)
        memcpy(centres + j * model->columns, centres + j % found * model->columns,
               (size_t)model->columns * sizeof *centres);
}

static int find_centres(shoal_round *next, const shoal_round *round, const shoal_partial *merged,
                        const shoal_shape *shape, const shoal_crew *crew)
{
    const kmeans_model *model = round->model;
    const int64_t count = shoal_partial_records(merged, DRAWN_ROWS), columns = model->columns;
    double *point = NULL, *centres = kmeans_view_of(next).centres;
    int64_t *weight = NULL, found = 0;
    int status = base_alloc_unset(&point, (size_t)(count * columns), sizeof *point, "the sample");
    if (status == SHOAL_OK)
        status = base_alloc_unset(&weight, (size_t)count, sizeof *weight, "the sample");
    for (int64_t i = 0; status == SHOAL_OK && i < count; i++)
        if (!take_drawn(point + i * columns, &weight[i], round, shape, merged, i))
            status = kmeans_fail_merged(next, "drawn rows");
    if (status == SHOAL_OK)
        status = seed_recluster(centres, &found, model, point, weight, count, crew);
    if (status == SHOAL_OK && found < model->k && model->init_size == model->rows)
        status = seed_too_few(model, found);
    if (status == SHOAL_OK)
        repeat_centres(centres, model, found);
    base_free(&point);
    base_free(&weight);
    return status;
}

static int update_scatter(shoal_round **next, shoal_result **result, const shoal_round *round, shoal_partial *merged,
                          const shoal_shape *shape, const shoal_crew *crew, bool stop)
{
    const kmeans_model *model = round->model;
    const int64_t count = shoal_partial_records(merged, DRAWN_ROWS);
    (void)result;
    if (stop)
        return kmeans_stop_early(next, round, "choosing the first centres");
    if (count > shoal_pick_rows(&round->layout.pick, shape))
        return kmeans_fail_merged(round, "drawn rows");
    if (count == 0)
        return shoal_fail(SHOAL_INVALID,
                          "none of the %lld rows that first centres are found among has weight: ask for more with "
                          "--init-size",
                          (long long)model->init_size);
    int status = kmeans_begin_lloyd(next, round, shape);
    return status == SHOAL_OK ? find_centres(*next, round, merged, shape, crew) : status;
}

const kmeans_phase kmeans_scatter = {.name = "seed",
                                     .check = check_scatter,
                                     .describe = describe_scatter,
                                     .scratch_bytes = scratch_drawn,
                                     .map = map_drawn,
                                     .update = update_scatter};

/* ---- rows for clusters that have seen next to nothing ------------------------------------------------------------ */

static double threshold(const double *weight, const kmeans_model *model)
{
    double most = 0;
    for (int64_t j = 0; j < model->k; j++)
        most = fmax(most, weight[j]);
    return most * model->reassignment;
}

int64_t batch_count_starved(const double *weight, const kmeans_model *model, int64_t most)
{
    const double least = threshold(weight, model);
    int64_t count = 0;
    for (int64_t j = 0; j < model->k && count < most; j++)
        count += weight[j] < least;
    return count;
}

typedef struct hungry {
    double weight;
    int64_t cluster;
} hungry;

static int compare_hungry(const void *a, const void *b)
{
    const hungry *x = a, *y = b;
    return x->weight != y->weight ? (x->weight < y->weight ? -1 : 1)
                                  : (x->cluster > y->cluster) - (x->cluster < y->cluster);
}

/* The clusters that have seen least, the lowest on ties, get a row each, and the weight of the least of all others: not
 * so little that they would be moved again at once. */
static int refill(kmeans_view *fresh, const shoal_round *round, const shoal_partial *merged, const shoal_shape *shape)
{
    const kmeans_model *model = fresh->model;
    const int64_t rows = shoal_partial_records(merged, DRAWN_ROWS), k = model->k;
    hungry *all = NULL;
    int status = base_alloc_unset(&all, (size_t)k, sizeof *all, "clusters");
    if (status < 0)
        return status;
    for (int64_t j = 0; j < k; j++)
        all[j] = (hungry){fresh->seen[j], j};
    qsort(all, (size_t)k, sizeof *all, compare_hungry);
    for (int64_t i = 0; status == SHOAL_OK && i < rows; i++) {
        int64_t weight;
        if (!take_drawn(fresh->centres + all[i].cluster * model->columns, &weight, round, shape, merged, i)) {
            status = kmeans_fail_merged(round, "drawn rows");
            break;
        }
        fresh->seen[all[i].cluster] = rows < k ? all[rows].weight : 0;
    }
    base_free(&all);
    return status;
}

static bool check_refill(const kmeans_view *view, const shoal_shape *shape)
{
    const batch_state *state = view->extra;
    (void)shape;
    return batch_is_state(view) && state->starved > 0 && state->starved <= view->model->k;
}

/* A pick of so few rows can be short by one in each stratum. */
static void describe_refill(shoal_round *round, const shoal_shape *shape)
{
    const kmeans_model *model = round->model;
    const batch_state *state = kmeans_view_of(round).extra;
    describe_drawn(round, shape, BATCH_TO_REFILL, model->batches, state->starved + shape->strata, state->starved);
    round->step = model->batches;
    round->steps = batch_steps_most(model);
}

static int update_refill(shoal_round **next, shoal_result **result, const shoal_round *round, shoal_partial *merged,
                         const shoal_shape *shape, const shoal_crew *crew, bool stop)
{
    const batch_state *before = kmeans_view_of(round).extra;
    (void)result, (void)crew;
    if (shoal_partial_records(merged, DRAWN_ROWS) > before->starved)
        return kmeans_fail_merged(round, "drawn rows");
    if (stop) {
        int status = kmeans_round_from(next, round, KMEANS_LABEL, 0);
        if (status == SHOAL_OK) {
            kmeans_model *model = (*next)->model;
            model->objective_most = 0;
            model->stopping = 1;
        }
        return status;
    }
    int status = kmeans_round_from(next, round, KMEANS_BATCH, sizeof(batch_state));
    if (status < 0)
        return status;
    kmeans_view fresh = kmeans_view_of(*next);
    batch_state *state = fresh.extra;
    memcpy(state, before, sizeof(batch_state));
    state->starved = 0;
    (*next)->objective = round->objective;
    return refill(&fresh, round, merged, shape);
}

const kmeans_phase kmeans_refill = {.name = "run",
                                    .check = check_refill,
                                    .describe = describe_refill,
                                    .scratch_bytes = scratch_drawn,
                                    .map = map_drawn,
                                    .update = update_refill};
