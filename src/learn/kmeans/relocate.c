/* Empty clusters: one round asks for the rows farthest from their centres, and each empty cluster takes one.
 *
 * The sums of the Lloyd round before travel in the model, so that a donor's centre can be computed without the
 * row it gave away. */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "learn/kmeans/kmeans_internal.h"

enum { RELOCATE_ROWS };

/* The model's own section: a header, then the sums. */
typedef struct relocate_state {
    int64_t wanted; /* how many of the farthest rows are enough, whichever may be taken */
} relocate_state;

/* A row far from its centre, as it comes back. */
typedef struct far_row {
    int64_t label;
    double weight;
    double values[]; /* in units */
} far_row;

static size_t far_row_bytes(int64_t columns)
{
    return sizeof(far_row) + (size_t)columns * sizeof(double);
}

static size_t sums_count(const kmeans_model *model)
{
    size_t k = (size_t)model->k;
    return k * (size_t)model->columns + k + (model->weighted ? k : 0) + 2 * k * (size_t)model->wide;
}

static kmeans_sums sums_of_state(const kmeans_view *view)
{
    const kmeans_model *model = view->model;
    int64_t *at = (int64_t *)((relocate_state *)view->extra + 1);
    kmeans_sums sums = {.values = at, .rows = at + model->k * model->columns};
    at = sums.rows + model->k;
    if (model->weighted) {
        sums.weight = at;
        at += model->k;
    }
    sums.wide = at;
    return sums;
}

/* A cluster's last row is passed over.  Of clusters that had one row that is one each; of the others, one for each
 * cluster that gave rows before, so no more than rows were given. */
static int64_t rows_wanted(const kmeans_sums *sums, int64_t k, int64_t empty)
{
    int64_t wanted = 2 * empty;
    for (int64_t j = 0; j < k; j++)
        wanted += sums->rows[j] == 1;
    return wanted;
}

int kmeans_begin_relocate(shoal_round **next, const shoal_round *round, const kmeans_sums *sums, int64_t empty)
{
    const kmeans_model *old = round->model;
    size_t k = (size_t)old->k, word = sizeof(int64_t);
    int status = kmeans_round_from(next, round, KMEANS_RELOCATE, sizeof(relocate_state) + sums_count(old) * word);
    if (status < 0)
        return status;
    kmeans_view view = kmeans_view_of(*next);
    kmeans_sums copy = sums_of_state(&view);
    ((relocate_state *)view.extra)->wanted = rows_wanted(sums, old->k, empty);
    memcpy(copy.values, sums->values, k * (size_t)old->columns * word);
    memcpy(copy.rows, sums->rows, k * word);
    if (copy.weight)
        memcpy(copy.weight, sums->weight, k * word);
    if (old->wide > 0)
        memcpy(copy.wide, sums->wide, 2 * k * (size_t)old->wide * word);
    view.model->memo_round = round->number;
    (*next)->objective = round->objective;
    (*next)->change = round->change;
    return SHOAL_OK;
}

static void describe_relocate(shoal_round *round, const shoal_shape *shape)
{
    kmeans_view view = kmeans_view_of(round);
    shoal_layout *layout = &round->layout;
    layout->cells = 1;
    layout->cell[RELOCATE_ROWS] =
        (shoal_cell){"farthest rows", SHOAL_CELL_RECORD, ((relocate_state *)view.extra)->wanted,
                     far_row_bytes(shape->columns), false};
    layout->memo_row_bytes = kmeans_memo_bytes(view.model);
    layout->carry_from = view.model->memo_round;
    layout->writes_memo = false;
    round->step = view.model->iteration;
    round->steps = view.model->iterations;
}

static int prepare_relocate(kmeans_prepared *prepared, const shoal_round *round, const shoal_shape *shape,
                            const shoal_crew *crew)
{
    kmeans_view view = kmeans_view_of(round);
    prepared->pack.prefers_bytes = false;
    return kmeans_pack_fill(&prepared->pack, prepared->kernel, view.centres, NULL, view.model->k, &view, shape->type,
                            crew);
}

static size_t scratch_relocate(const shoal_round *round, const kmeans_prepared *prepared, const shoal_shape *shape)
{
    size_t rows = (size_t)shape->rows_per_grain;
    return kmeans_rows_bytes(shape->columns) + kmeans_cut_size(far_row_bytes(shape->columns)) +
           kmeans_cut_size(rows * kmeans_memo_bytes(round->model)) + kmeans_cut_size(rows * sizeof(double)) +
           kmeans_assign_bytes(&prepared->pack, prepared->kernel, shape->rows_per_grain);
}

/* A threshold that at least `wanted` rows reach, if there are so many: it spares the partial most of the others. */
static double threshold_of(const double *distance, int64_t rows, int64_t wanted)
{
    double threshold = 0;
    for (int64_t i = 0; i < rows; i++)
        threshold = fmax(threshold, distance[i]);
    for (int step = 0; step < 64; step++, threshold *= 0.875) {
        int64_t reached = 0;
        for (int64_t i = 0; i < rows; i++)
            reached += distance[i] >= threshold;
        if (reached >= wanted)
            return threshold;
    }
    return 0;
}

static int map_relocate(shoal_partial *partial, const shoal_round *round, const kmeans_prepared *prepared,
                        const shoal_grain *given, const shoal_scratch *scratch)
{
    kmeans_view view = kmeans_view_of(round);
    shoal_grain grain = *given;
    int64_t columns = view.model->columns;
    unsigned char *memory = scratch->memory;
    kmeans_rows rows;
    kmeans_rows_init(&rows, prepared, &view, &grain, &memory);
    far_row *far = kmeans_cut(&memory, far_row_bytes(columns));
    void *spare = kmeans_cut(&memory, (size_t)grain.rows * kmeans_memo_bytes(view.model));
    double *distance = kmeans_cut(&memory, (size_t)grain.rows * sizeof(double));
    if (!grain.carried) { /* the labels are gone: find them again */
        grain.memo = spare;
        kmeans_assign(&rows, &prepared->pack, view.centres, false, NULL, NULL, memory, scratch->counters);
    }
    const int32_t *label = kmeans_memo_of(&grain).label;
    for (int64_t i = 0; i < grain.rows; i++) /* a row without weight can't fill a cluster */
        distance[i] =
            kmeans_rows_weight(&rows, i) > 0 ? kmeans_rows_distance(&rows, i, view.centres + label[i] * columns) : 0;
    double threshold = threshold_of(distance, grain.rows, shoal_partial_layout(partial)->cell[RELOCATE_ROWS].count);
    for (int64_t i = 0; i < grain.rows; i++) {
        if (!(distance[i] > 0) || distance[i] < threshold)
            continue;
        shoal_key key = {(uint64_t)shoal_order_key(distance[i]), ~(uint64_t)(grain.first_row + i)};
        far->label = label[i];
        far->weight = kmeans_rows_weight(&rows, i);
        kmeans_rows_values(far->values, &rows, i);
        int status = shoal_partial_record(partial, RELOCATE_ROWS, key, far);
        if (status < 0)
            return status;
    }
    return SHOAL_OK;
}

/* Moves a row that is not at hand as a grain: one that came back as a record. */
static void move_record(const kmeans_sums *sums, const kmeans_view *view, const kmeans_prepared *plain,
                        const far_row *far, int64_t to, double *buffer)
{
    const kmeans_model *model = view->model;
    shoal_shape shape = {.rows = 1, .columns = model->columns, .type = SHOAL_FLOAT64, .weighted = model->weighted};
    shoal_grain grain = {.shape = &shape, .rows = 1, .values = far->values, .weights = &far->weight};
    kmeans_model unscaled = *model; /* values and weight are scaled already */
    kmeans_view same = *view;
    kmeans_rows rows;
    unsigned char *memory = (unsigned char *)buffer;
    unscaled.prescale = unscaled.weight_scale = 1;
    same.model = &unscaled;
    kmeans_rows_init(&rows, plain, &same, &grain, &memory);
    kmeans_sums_move(sums, &rows, 0, to, far->label);
}

static int take_rows(const kmeans_sums *sums, const kmeans_view *view, shoal_partial *merged, const shoal_crew *crew)
{
    kmeans_prepared plain = {0};
    double *buffer = NULL;
    int64_t at = shoal_partial_records(merged, RELOCATE_ROWS) - 1;
    int status = kernel_choose(&plain.kernel, crew->kernel);
    if (status == SHOAL_OK)
        status = base_alloc(&buffer, kmeans_rows_bytes(view->model->columns) / sizeof *buffer, sizeof *buffer, "a row");
    for (int64_t j = 0; status == SHOAL_OK && j < view->model->k; j++) {
        if (!kmeans_sums_empty(sums, j))
            continue;
        const far_row *far = NULL;
        for (; at >= 0 && !far; at--) {
            const far_row *candidate = shoal_partial_record_at(merged, RELOCATE_ROWS, at, NULL);
            if (sums->rows[candidate->label] > 1)
                far = candidate;
        }
        if (!far)
            break;
        move_record(sums, view, &plain, far, j, buffer);
    }
    base_free(&buffer);
    return status;
}

static int update_relocate(shoal_round **next, shoal_result **result, const shoal_round *round, shoal_partial *merged,
                           const shoal_shape *shape, const shoal_crew *crew, bool stop)
{
    kmeans_view view = kmeans_view_of(round);
    shoal_round *copy = NULL; /* the sums change: a round's model does not */
    int status = kmeans_round_from(&copy, round, KMEANS_RELOCATE, (size_t)view.model->extra_bytes);
    (void)result;
    if (status < 0)
        return status;
    kmeans_view mine = kmeans_view_of(copy);
    memcpy(mine.extra, view.extra, (size_t)view.model->extra_bytes);
    kmeans_sums sums = sums_of_state(&mine);
    status = take_rows(&sums, &mine, merged, crew);
    if (status == SHOAL_OK)
        status = kmeans_finish_iteration(next, round, &sums, shape, crew, stop);
    shoal_round_free(&copy);
    return status;
}

const kmeans_phase kmeans_relocate = {.name = "run",
                                      .describe = describe_relocate,
                                      .prepare = prepare_relocate,
                                      .scratch_bytes = scratch_relocate,
                                      .map = map_relocate,
                                      .update = update_relocate};
