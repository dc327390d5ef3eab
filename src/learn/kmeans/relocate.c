/* Empty clusters: one round asks for the rows farthest from their centres, update decides which empty cluster takes
 * which of them, and a second round brings those rows.
 *
 * The sums of the Lloyd round before travel in the model, so that a donor's centre can be computed without the row it
 * gave away. */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "learn/kmeans/kmeans_internal.h"

enum { RELOCATE_ROWS };

/* The model's own section: this, the sums, then `moves` moves. */
typedef struct relocate_state {
    int64_t wanted; /* how many of the farthest rows are enough, whichever may be taken */
    int64_t moves;  /* 0 while it is not decided which rows are taken */
} relocate_state;

typedef struct relocate_move {
    int64_t row, from, to;
} relocate_move;

/* A row far from its centre, as the first round tells of it. */
typedef struct far_row {
    int64_t label;
} far_row;

/* A row that is taken, as the second round brings it. */
typedef struct taken_row {
    double weight;   /* scaled */
    double values[]; /* in units */
} taken_row;

static size_t taken_row_bytes(int64_t columns)
{
    return sizeof(taken_row) + (size_t)columns * sizeof(double);
}

/* ---- the model's section ----------------------------------------------------------------------------------------- */

static size_t sums_count(const kmeans_model *model)
{
    size_t k = (size_t)model->k;
    return k * (size_t)model->columns + k + (model->weighted ? k : 0) + 2 * k * (size_t)model->wide;
}

static kmeans_sums sums_at(int64_t *at, const kmeans_model *model)
{
    kmeans_sums sums = {.values = at, .rows = at + model->k * model->columns};
    at = sums.rows + model->k;
    if (model->weighted) {
        sums.weight = at;
        at += model->k;
    }
    sums.wide = at;
    return sums;
}

static int64_t *sums_of_state(const kmeans_view *view)
{
    return (int64_t *)((relocate_state *)view->extra + 1);
}

static relocate_move *moves_of(const kmeans_view *view)
{
    return (relocate_move *)(sums_of_state(view) + sums_count(view->model));
}

static size_t state_bytes(const kmeans_model *model, int64_t moves)
{
    return sizeof(relocate_state) + sums_count(model) * sizeof(int64_t) + (size_t)moves * sizeof(relocate_move);
}

static bool check_relocate(const kmeans_view *view, const shoal_shape *shape)
{
    const relocate_state *state = view->extra;
    const kmeans_model *model = view->model;
    size_t room = (size_t)model->extra_bytes;
    if (model->empty != SHOAL_EMPTY_FARTHEST || model->iteration >= model->iterations || room < state_bytes(model, 0) ||
        state->wanted < 1 || state->wanted > 3 * model->k || state->moves < 0 || state->moves > model->k ||
        room != state_bytes(model, state->moves))
        return false;
    const kmeans_sums sums = sums_at(sums_of_state(view), model);
    for (int64_t j = 0; j < model->k; j++)
        if (sums.rows[j] < 0 || sums.rows[j] > shape->rows)
            return false;
    const relocate_move *move = moves_of(view);
    for (int64_t m = 0; m < state->moves; m++)
        if (move[m].row < 0 || move[m].row >= shape->rows || move[m].from < 0 || move[m].from >= model->k ||
            move[m].to < 0 || move[m].to >= model->k)
            return false;
    return true;
}

/* Whether the merged records are rows far from their centres. */
static bool are_far_rows(const kmeans_model *model, const shoal_partial *merged)
{
    for (int64_t i = 0; i < shoal_partial_records(merged, RELOCATE_ROWS); i++) {
        shoal_key key;
        const far_row *far = shoal_partial_record_at(merged, RELOCATE_ROWS, i, &key);
        if (far->label < 0 || far->label >= model->k || ~key.low >= (uint64_t)model->rows)
            return false;
    }
    return true;
}

/* Whether they are the rows that are taken, one for each move. */
static bool are_taken_rows(const kmeans_view *view, const shoal_partial *merged)
{
    int64_t moves = ((const relocate_state *)view->extra)->moves;
    if (shoal_partial_records(merged, RELOCATE_ROWS) != moves)
        return false;
    for (int64_t m = 0; m < moves; m++) {
        shoal_key key;
        const taken_row *taken = shoal_partial_record_at(merged, RELOCATE_ROWS, m, &key);
        if (key.high != 0 || key.low != (uint64_t)m || !kmeans_are_sizes(&taken->weight, 1) ||
            !kmeans_are_finite(taken->values, view->model->columns))
            return false;
    }
    return true;
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
    int status = kmeans_round_from(next, round, KMEANS_RELOCATE, state_bytes(old, 0));
    if (status < 0)
        return status;
    kmeans_view view = kmeans_view_of(*next);
    kmeans_sums copy = sums_at(sums_of_state(&view), old);
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
    const relocate_state *state = view.extra;
    shoal_layout *layout = &round->layout;
    layout->cells = 1;
    layout->cell[RELOCATE_ROWS] =
        state->moves > 0 ? (shoal_cell){"taken rows", SHOAL_CELL_RECORD, 0, taken_row_bytes(shape->columns), false}
                         : (shoal_cell){"farthest rows", SHOAL_CELL_RECORD, state->wanted, sizeof(far_row), false};
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
    return kmeans_rows_bytes(shape->columns) + kmeans_cut_size(taken_row_bytes(shape->columns)) +
           kmeans_cut_size(rows * kmeans_memo_bytes(round->model)) + kmeans_cut_size(rows * sizeof(double)) +
           kmeans_assign_bytes(&prepared->pack, prepared->kernel, shape->rows_per_grain);
}

/* ---- the first round: farthest rows ------------------------------------------------------------------------------ */

/* A threshold that at least `wanted` rows reach, if there are that many: it spares the partial most of the others. */
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

static int map_farthest(shoal_partial *partial, const kmeans_view *view, const kmeans_prepared *prepared,
                        const shoal_grain *given, const shoal_scratch *scratch)
{
    shoal_grain grain = *given;
    int64_t columns = view->model->columns;
    unsigned char *memory = scratch->memory;
    kmeans_rows rows;
    kmeans_rows_init(&rows, prepared, view, &grain, &memory);
    void *spare = kmeans_cut(&memory, (size_t)grain.rows * kmeans_memo_bytes(view->model));
    double *distance = kmeans_cut(&memory, (size_t)grain.rows * sizeof(double));
    if (!grain.carried) { /* the labels are gone: find them again */
        grain.memo = spare;
        kmeans_assign(&rows, &prepared->pack, view->centres, false, NULL, NULL, memory, scratch->counters);
    }
    const int32_t *label = kmeans_memo_of(&grain).label;
    int status = kmeans_memo_check(&grain, label, view->model->k);
    if (status < 0)
        return status;
    for (int64_t i = 0; i < grain.rows; i++) /* a row without weight can't fill a cluster */
        distance[i] =
            kmeans_rows_weight(&rows, i) > 0 ? kmeans_rows_distance(&rows, i, view->centres + label[i] * columns) : 0;
    double threshold = threshold_of(distance, grain.rows, shoal_partial_layout(partial)->cell[RELOCATE_ROWS].count);
    for (int64_t i = 0; i < grain.rows; i++) {
        if (!(distance[i] > 0) || distance[i] < threshold)
            continue;
        shoal_key key = {(uint64_t)shoal_order_key(distance[i]), ~(uint64_t)(grain.first_row + i)};
        status = shoal_partial_record(partial, RELOCATE_ROWS, key, &(far_row){label[i]});
        if (status < 0)
            return status;
    }
    return SHOAL_OK;
}

/* Empty clusters in the order of their numbers take the farthest row that is not its cluster's last.  Fills moves,
 * which has room for as many as there are empty clusters, and returns how many. */
static int64_t decide_moves(relocate_move *moves, int64_t *rows, const kmeans_sums *sums, int64_t k,
                            shoal_partial *merged)
{
    int64_t at = shoal_partial_records(merged, RELOCATE_ROWS) - 1, count = 0;
    memcpy(rows, sums->rows, (size_t)k * sizeof *rows);
    for (int64_t j = 0; j < k; j++) {
        if (!kmeans_sums_empty(sums, j))
            continue;
        for (bool taken = false; at >= 0 && !taken; at--) {
            shoal_key key;
            const far_row *far = shoal_partial_record_at(merged, RELOCATE_ROWS, at, &key);
            taken = rows[far->label] > 1;
            if (!taken)
                continue;
            rows[far->label]--;
            rows[j]++;
            moves[count++] = (relocate_move){(int64_t)~key.low, far->label, j};
        }
    }
    return count;
}

static int begin_moves(shoal_round **next, const shoal_round *round, const relocate_move *moves, int64_t count)
{
    kmeans_view view = kmeans_view_of(round);
    int status = kmeans_round_from(next, round, KMEANS_RELOCATE, state_bytes(view.model, count));
    if (status < 0)
        return status;
    kmeans_view fresh = kmeans_view_of(*next);
    memcpy(fresh.extra, view.extra, state_bytes(view.model, 0));
    ((relocate_state *)fresh.extra)->moves = count;
    memcpy(moves_of(&fresh), moves, (size_t)count * sizeof *moves);
    (*next)->objective = round->objective;
    (*next)->change = round->change;
    return SHOAL_OK;
}

static int update_farthest(shoal_round **next, const shoal_round *round, shoal_partial *merged,
                           const shoal_shape *shape, const shoal_crew *crew, bool stop)
{
    kmeans_view view = kmeans_view_of(round);
    kmeans_sums sums = sums_at(sums_of_state(&view), view.model);
    int64_t k = view.model->k, count = 0, *rows = NULL;
    relocate_move *moves = NULL;
    if (!are_far_rows(view.model, merged))
        return kmeans_fail_merged(round, "farthest rows");
    int status = base_alloc(&rows, (size_t)k, sizeof *rows, "cluster sizes");
    if (status == SHOAL_OK)
        status = base_alloc(&moves, (size_t)k, sizeof *moves, "rows to move");
    if (status == SHOAL_OK && !stop)
        count = decide_moves(moves, rows, &sums, k, merged);
    if (status == SHOAL_OK)
        status = count > 0 ? begin_moves(next, round, moves, count)
                           : kmeans_finish_iteration(next, round, &sums, shape, crew, stop);
    base_free(&rows);
    base_free(&moves);
    return status;
}

/* ---- the second round: the rows that are taken ------------------------------------------------------------------- */

static int map_taken(shoal_partial *partial, const kmeans_view *view, const kmeans_prepared *prepared,
                     const shoal_grain *grain, const shoal_scratch *scratch)
{
    const relocate_state *state = view->extra;
    unsigned char *memory = scratch->memory;
    kmeans_rows rows;
    kmeans_rows_init(&rows, prepared, view, grain, &memory);
    taken_row *taken = kmeans_cut(&memory, taken_row_bytes(view->model->columns));
    for (int64_t m = 0; m < state->moves; m++) {
        int64_t i = moves_of(view)[m].row - grain->first_row;
        if (i < 0 || i >= grain->rows)
            continue;
        taken->weight = kmeans_rows_weight(&rows, i);
        kmeans_rows_values(taken->values, &rows, i);
        int status = shoal_partial_record(partial, RELOCATE_ROWS, (shoal_key){0, (uint64_t)m}, taken);
        if (status < 0)
            return status;
    }
    return SHOAL_OK;
}

/* Moves a row that is not at hand as a grain: one that came back as a record. */
static void move_record(const kmeans_sums *sums, const kmeans_view *view, const kmeans_prepared *plain,
                        const taken_row *taken, const relocate_move *move, unsigned char *memory)
{
    const kmeans_model *model = view->model;
    shoal_shape shape = {.rows = 1, .columns = model->columns, .type = SHOAL_FLOAT64, .weighted = model->weighted};
    shoal_grain grain = {.shape = &shape, .rows = 1, .values = taken->values, .weights = &taken->weight};
    kmeans_model unscaled = *model; /* values and weight are scaled already */
    kmeans_view same = *view;
    kmeans_rows rows;
    unscaled.prescale = unscaled.weight_scale = 1;
    unscaled.metric = SHOAL_METRIC_EUCLIDEAN; /* and brought to length 1 */
    same.model = &unscaled;
    kmeans_rows_init(&rows, plain, &same, &grain, &memory);
    kmeans_sums_move(sums, &rows, 0, move->to, move->from);
}

static int update_taken(shoal_round **next, const shoal_round *round, shoal_partial *merged, const shoal_shape *shape,
                        const shoal_crew *crew, bool stop)
{
    kmeans_view view = kmeans_view_of(round);
    const relocate_state *state = view.extra;
    size_t words = sums_count(view.model);
    kmeans_prepared plain = {0};
    int64_t *copy = NULL; /* the sums change: a round's model does not */
    unsigned char *memory = NULL;
    if (!are_taken_rows(&view, merged))
        return kmeans_fail_merged(round, "taken rows");
    int status = kernel_choose(&plain.kernel, crew->kernel);
    if (status == SHOAL_OK)
        status = base_alloc(&copy, words, sizeof *copy, "sums of clusters");
    if (status == SHOAL_OK)
        status = base_alloc(&memory, kmeans_rows_bytes(view.model->columns), 1, "a row");
    if (status == SHOAL_OK) {
        kmeans_sums sums = sums_at(copy, view.model);
        memcpy(copy, sums_of_state(&view), words * sizeof *copy);
        for (int64_t m = 0; m < state->moves; m++)
            move_record(&sums, &view, &plain, shoal_partial_record_at(merged, RELOCATE_ROWS, m, NULL),
                        &moves_of(&view)[m], memory);
        status = kmeans_finish_iteration(next, round, &sums, shape, crew, stop);
    }
    base_free(&copy);
    base_free(&memory);
    return status;
}

/* ---- both -------------------------------------------------------------------------------------------------------- */

static int map_relocate(shoal_partial *partial, const shoal_round *round, const kmeans_prepared *prepared,
                        const shoal_grain *grain, const shoal_scratch *scratch)
{
    kmeans_view view = kmeans_view_of(round);
    return ((relocate_state *)view.extra)->moves > 0 ? map_taken(partial, &view, prepared, grain, scratch)
                                                     : map_farthest(partial, &view, prepared, grain, scratch);
}

static int update_relocate(shoal_round **next, shoal_result **result, const shoal_round *round, shoal_partial *merged,
                           const shoal_shape *shape, const shoal_crew *crew, bool stop)
{
    kmeans_view view = kmeans_view_of(round);
    (void)result;
    return ((relocate_state *)view.extra)->moves > 0 ? update_taken(next, round, merged, shape, crew, stop)
                                                     : update_farthest(next, round, merged, shape, crew, stop);
}

const kmeans_phase kmeans_relocate = {.name = "run",
                                      .check = check_relocate,
                                      .describe = describe_relocate,
                                      .prepare = prepare_relocate,
                                      .scratch_bytes = scratch_relocate,
                                      .map = map_relocate,
                                      .update = update_relocate};
