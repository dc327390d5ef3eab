/* First centres: what all ways of seeding share, and the random start.
 *
 * Random rows are drawn by whole numbers: `update` draws a number below the total potential, finds the grain it falls
 * into, and a FETCH round walks to the row inside that grain.  So the drawn row depends on neither grain size nor
 * engine. */
#include "learn/kmeans/seed.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "base/text.h"
#include "learn/kmeans/batch.h"

seed_view seed_view_of(const shoal_round *round)
{
    seed_view view = {.base = kmeans_view_of(round)};
    view.state = view.base.extra;
    view.draw = (seed_draw *)(view.state + 1);
    view.candidate = (double *)(view.draw + view.state->draws);
    return view;
}

bool seed_section_is_whole(const kmeans_view *view)
{
    const seed_state *state = view->extra;
    size_t room = (size_t)view->model->extra_bytes, rows = (size_t)view->model->columns * sizeof(double);
    if (room < sizeof *state || state->draws < 0 || state->candidates < 0 ||
        (size_t)state->draws > (room - sizeof *state) / sizeof(seed_draw))
        return false;
    const double sizes[] = {state->inverse, state->most, state->potential};
    room -= sizeof *state + (size_t)state->draws * sizeof(seed_draw);
    if ((size_t)state->candidates > room / rows || state->candidates > INT32_MAX || state->by_row >> 1 != 0 ||
        state->sampling >> 1 != 0 || state->step < 0 || state->step >= INT32_MAX || state->applied < 0 ||
        !kmeans_are_sizes(sizes, sizeof sizes / sizeof *sizes))
        return false;
    const double *candidate = (const double *)((const seed_draw *)(state + 1) + state->draws);
    return kmeans_are_finite(candidate, state->candidates * view->model->columns);
}

static bool is_seeding(const shoal_round *round)
{
    switch (((const kmeans_model *)round->model)->phase) {
    case KMEANS_WEIGH:
    case KMEANS_FETCH:
    case KMEANS_JUDGE:
    case KMEANS_SAMPLE: return true;
    default: return false;
    }
}

int seed_round_from(shoal_round **out, const shoal_round *from, kmeans_phase_id phase, int64_t draws,
                    int64_t candidates)
{
    const kmeans_model *model = from->model;
    size_t bytes = sizeof(seed_state) + (size_t)draws * sizeof(seed_draw), vectors;
    if (!base_multiply(&vectors, (size_t)candidates, (size_t)model->columns * sizeof(double)) ||
        !base_add(&bytes, bytes, vectors))
        return shoal_fail(SHOAL_MEMORY, "out of memory: %lld candidate centres", (long long)candidates);
    int status = kmeans_round_from(out, from, phase, bytes);
    if (status < 0)
        return status;
    seed_state *state = kmeans_view_of(*out).extra;
    if (is_seeding(from))
        *state = *seed_view_of(from).state;
    state->draws = draws;
    state->candidates = candidates;
    return SHOAL_OK;
}

seed_memo seed_memo_of(const shoal_grain *grain)
{
    double *memo = grain->memo;
    return (seed_memo){.distance = memo, .nearest = (int32_t *)(memo + grain->rows)};
}

int64_t seed_potential(const kmeans_rows *rows, int64_t i, double distance, double inverse)
{
    double weight = kmeans_rows_weight(rows, i);
    return llrint(inverse > 0 ? weight * distance * inverse : weight * rows->view->model->weight_inverse);
}

double seed_potential_inverse(const kmeans_model *model, double most)
{
    if (!(most > 0))
        return 1;
    return fmin(0x1p62 / kmeans_power_above(kmeans_up(most) * (double)model->rows), 0x1p1000);
}

bool seed_can_weigh(const kmeans_model *model, double most)
{
    return most > 0 && most * seed_potential_inverse(model, most) >= 1;
}

int seed_too_few(const kmeans_model *model, int64_t distinct)
{
    return shoal_fail(SHOAL_INVALID, "-k %lld is more than the data's %lld distinct row%s%s", (long long)model->k,
                      (long long)distinct, base_plural(distinct), model->weighted ? " of positive weight" : "");
}

bool seed_are_potentials(const int64_t *potentials, int64_t grains, int64_t least)
{
    int64_t total = 0;
    for (int64_t g = 0; g < grains; g++)
        if (potentials[g] < 0 || __builtin_add_overflow(total, potentials[g], &total))
            return false;
    return total >= least;
}

/* ---- drawing ----------------------------------------------------------------------------------------------------- */

void seed_draw_rows(seed_view *next, const int64_t *potentials, int64_t grains)
{
    const kmeans_model *model = next->base.model;
    uint64_t total = 0, index = (uint64_t)model->run << 40 | (uint64_t)next->state->step;
    for (int64_t g = 0; g < grains; g++)
        total += (uint64_t)potentials[g];
    for (int64_t slot = 0; slot < next->state->draws; slot++) {
        int64_t rest =
            (int64_t)base_random_below(total, (uint64_t)model->seed, BASE_FOR_SEEDING, index, (uint32_t)slot * 64);
        int64_t grain = 0;
        while (rest >= potentials[grain])
            rest -= potentials[grain++];
        next->draw[slot] = (seed_draw){grain, rest};
    }
    next->state->step++;
    next->state->by_row = 0;
}

/* Marks a row as drawn in a set of open addresses; false when it was drawn before. */
static bool mark_row(int64_t *set, size_t places, int64_t row)
{
    size_t at = (size_t)row * UINT64_C(0x9E3779B97F4A7C15) % places;
    while (set[at] != 0 && set[at] != row + 1)
        at = (at + 1) % places;
    bool fresh = set[at] == 0;
    set[at] = row + 1;
    return fresh;
}

static int compare_draws(const void *a, const void *b)
{
    const seed_draw *x = a, *y = b;
    return x->where < y->where ? -1 : x->where > y->where;
}

/* k different row numbers, each set equally likely, in increasing order. */
static int draw_different_rows(seed_view *next)
{
    const kmeans_model *model = next->base.model;
    int64_t *set = NULL;
    size_t places = (size_t)model->k * 2 + 1;
    uint64_t tries = 0;
    int status = base_alloc(&set, places, sizeof *set, "drawn rows");
    for (int64_t slot = 0; status == SHOAL_OK && slot < model->k; slot++) {
        int64_t row;
        do
            row = (int64_t)base_random_below((uint64_t)model->rows, (uint64_t)model->seed, BASE_FOR_SEEDING,
                                             (uint64_t)model->run << 40 | tries++, 0);
        while (!mark_row(set, places, row));
        next->draw[slot] = (seed_draw){row, 0};
    }
    if (status == SHOAL_OK)
        qsort(next->draw, (size_t)model->k, sizeof *next->draw, compare_draws);
    next->state->by_row = 1;
    base_free(&set);
    return status;
}

/* Far more than rows can weigh; products with it stay finite. */
#define SEEN_MOST 0x1p400

/* Brings given centres, and what they have seen, to the learner's units. */
static int scale_centres(shoal_round *round)
{
    kmeans_view view = kmeans_view_of(round);
    int64_t columns = view.model->columns;
    for (int64_t j = 0; view.seen && j < view.model->k; j++)
        view.seen[j] = fmin(view.seen[j] * view.model->weight_scale, SEEN_MOST);
    if (kmeans_is_cosine(view.model))
        return kmeans_make_centres_unit(view.centres, view.model->k, columns);
    for (int64_t i = 0; i < view.model->k * columns; i++) {
        double given = view.centres[i];
        view.centres[i] *= view.model->prescale;
        if (!isfinite(view.centres[i]))
            return shoal_fail(SHOAL_INVALID,
                              "row %lld, column %lld of the given centres, %g, is too large beside the data",
                              (long long)(i / columns + 1), (long long)(i % columns + 1), given);
    }
    return SHOAL_OK;
}

int kmeans_begin_run(shoal_round **next, const shoal_round *from, const shoal_shape *shape)
{
    const kmeans_model *model = from->model;
    int status;
    switch (model->start) {
    case KMEANS_START_GIVEN:
        status = kmeans_begin_lloyd(next, from, shape);
        return status == SHOAL_OK ? scale_centres(*next) : status;
    case KMEANS_START_RANDOM:
        status = seed_round_from(next, from, KMEANS_FETCH, model->k, 0);
        if (status == SHOAL_OK) {
            seed_view view = seed_view_of(*next);
            status = draw_different_rows(&view);
        }
        break;
    case KMEANS_START_GREEDY:
        status = model->batch > 0 ? kmeans_begin_scatter(next, from) : seed_round_from(next, from, KMEANS_WEIGH, 0, 0);
        break;
    default: status = seed_round_from(next, from, KMEANS_WEIGH, 0, 0); break;
    }
    if (status == SHOAL_OK) {
        kmeans_model *fresh = (*next)->model;
        fresh->filled = 0;
        fresh->memo_round = -1;
    }
    return status;
}

/* ---- weigh: potentials before there is a centre are the weights -------------------------------------------------- */

enum { WEIGH_POTENTIAL };

static bool check_weigh(const kmeans_view *view, const shoal_shape *shape)
{
    (void)shape;
    return view->model->start != KMEANS_START_GIVEN && seed_section_is_whole(view);
}

static void describe_weigh(shoal_round *round, const shoal_shape *shape)
{
    round->layout.cells = 1;
    round->layout.cell[WEIGH_POTENTIAL] = (shoal_cell){"potentials", SHOAL_CELL_SUM, shape->grains, 0, false};
    round->step = 0;
    round->steps = ((const kmeans_model *)round->model)->k;
}

static size_t scratch_weigh(const shoal_round *round, const kmeans_prepared *prepared, const shoal_shape *shape)
{
    (void)round, (void)prepared;
    return kmeans_rows_bytes(shape->columns);
}

static int map_weigh(shoal_partial *partial, const shoal_round *round, const kmeans_prepared *prepared,
                     const shoal_grain *grain, const shoal_scratch *scratch)
{
    kmeans_view view = kmeans_view_of(round);
    unsigned char *memory = scratch->memory;
    int64_t *sum = shoal_partial_values(partial, WEIGH_POTENTIAL) + grain->index;
    kmeans_rows rows;
    kmeans_rows_init(&rows, prepared, &view, grain, &memory);
    for (int64_t i = 0; i < grain->rows; i++)
        *sum = base_add_wrapping(*sum, seed_potential(&rows, i, 1, 0));
    return SHOAL_OK;
}

static int update_weigh(shoal_round **next, shoal_result **result, const shoal_round *round, shoal_partial *merged,
                        const shoal_shape *shape, const shoal_crew *crew, bool stop)
{
    (void)result, (void)crew;
    if (stop)
        return kmeans_stop_early(next, round, "choosing the first centres");
    if (!seed_are_potentials(shoal_partial_values(merged, WEIGH_POTENTIAL), shape->grains, 1))
        return kmeans_fail_merged(round, "weights");
    int status = seed_round_from(next, round, KMEANS_FETCH, 1, 0);
    if (status < 0)
        return status;
    seed_view view = seed_view_of(*next);
    seed_draw_rows(&view, shoal_partial_values(merged, WEIGH_POTENTIAL), shape->grains);
    return SHOAL_OK;
}

const kmeans_phase kmeans_weigh = {.name = "seed",
                                   .check = check_weigh,
                                   .describe = describe_weigh,
                                   .scratch_bytes = scratch_weigh,
                                   .map = map_weigh,
                                   .update = update_weigh};

/* ---- fetch: rows that were drawn --------------------------------------------------------------------------------- */

enum { FETCH_ROWS };

/* Draws by row are looked for by their order. */
static bool check_fetch(const kmeans_view *view, const shoal_shape *shape)
{
    const seed_state *state = view->extra;
    const kmeans_model *model = view->model;
    bool random = model->start == KMEANS_START_RANDOM, greedy = model->start == KMEANS_START_GREEDY;
    if (!seed_section_is_whole(view) || model->start == KMEANS_START_GIVEN || state->by_row != random ||
        state->draws != (random                        ? model->k
                         : greedy && model->filled > 0 ? seed_trials(model->k)
                                                       : 1) ||
        (model->filled > 0 && !greedy) || model->filled == model->k || (model->filled > 0) != (state->inverse > 0))
        return false;
    const seed_draw *draw = (const seed_draw *)(state + 1);
    int64_t places = random ? shape->rows : shape->grains;
    for (int64_t i = 0; i < state->draws; i++)
        if (draw[i].where < (random && i ? draw[i - 1].where + 1 : 0) || draw[i].where >= places || draw[i].rest < 0)
            return false;
    return true;
}

static void describe_fetch(shoal_round *round, const shoal_shape *shape)
{
    const kmeans_model *model = round->model;
    round->layout.cells = 1;
    round->layout.cell[FETCH_ROWS] =
        (shoal_cell){"drawn rows", SHOAL_CELL_RECORD, 0, (size_t)shape->columns * sizeof(double), false};
    if (model->memo_round >= 0) {
        round->layout.memo_row_bytes = SEED_MEMO_BYTES + (seed_keeps_bytes(shape) ? seed_bytes_row(shape) : 0);
        round->layout.carry_from = model->memo_round;
    }
    round->step = model->filled;
    round->steps = model->k;
}

int seed_reserve(kmeans_prepared *prepared, int64_t near, int64_t set, int64_t columns)
{
    int status = SHOAL_OK;
    if (prepared->near_capacity < near) {
        base_free(&prepared->near);
        prepared->near_capacity = 0;
        status = base_alloc(&prepared->near, (size_t)near, SEED_MEMBERS * sizeof *prepared->near,
                            "distances between centres");
        if (status == SHOAL_OK)
            prepared->near_capacity = near;
    }
    if (status == SHOAL_OK && prepared->set_capacity < set) {
        base_free(&prepared->set);
        prepared->set_capacity = 0;
        status = base_alloc(&prepared->set, (size_t)set, (size_t)columns * sizeof *prepared->set, "candidate centres");
        if (status == SHOAL_OK)
            prepared->set_capacity = set;
    }
    return status;
}

/* How far the newest centre is from each earlier one: rows well inside another centre's reach need no look at it. */
static int prepare_fetch(kmeans_prepared *prepared, const shoal_round *round, const shoal_shape *shape,
                         const shoal_crew *crew)
{
    kmeans_view view = kmeans_view_of(round);
    int64_t columns = shape->columns, newest = view.model->filled - 1;
    int status = seed_reserve(prepared, view.model->k, 0, columns);
    prepared->pack.prefers_bytes = seed_keeps_bytes(shape);
    if (status == SHOAL_OK && newest > 0)
        status = kmeans_pack_fill(&prepared->pack, prepared->kernel, view.centres + newest * columns, NULL, 1, &view,
                                  shape->type, crew);
    for (int64_t j = 0; status == SHOAL_OK && j < newest; j++)
        prepared->near[j * SEED_MEMBERS] =
            prepared->kernel->distance64(view.centres + newest * columns, view.centres + j * columns, columns);
    return status;
}

static size_t scratch_fetch(const shoal_round *round, const kmeans_prepared *prepared, const shoal_shape *shape)
{
    const kmeans_model *model = round->model;
    return kmeans_rows_bytes(shape->columns) + 2 * kmeans_cut_size((size_t)shape->rows_per_grain * sizeof(double)) +
           kmeans_cut_size((size_t)shape->columns * sizeof(double)) +
           (model->filled > 1 ? kmeans_nearer_bytes(&prepared->pack, prepared->kernel) : 0);
}

/* Squared distance of row i to the nearest of the centres so far, of which the memo may lack the newest. */
static double current_distance(const kmeans_rows *rows, const kmeans_prepared *prepared, int64_t i)
{
    const kmeans_model *model = rows->view->model;
    const double *centres = rows->view->centres;
    double least = INFINITY;
    int64_t first = 0;
    if (rows->grain->carried) {
        seed_memo memo = seed_memo_of(rows->grain);
        least = memo.distance[i];
        first = model->filled - 1;
        if (first > 0 && !seed_may_be_nearer(prepared->near[memo.nearest[i] * SEED_MEMBERS], least))
            return least;
    }
    for (int64_t j = first; j < model->filled; j++)
        least = fmin(least, kmeans_rows_distance(rows, i, centres + j * model->columns));
    return least;
}

typedef struct measuring {
    const kmeans_rows *rows;
    double *distance;
} measuring;

static void measure_newest(void *context, int64_t i, const int32_t *places, int count)
{
    const measuring *job = context;
    const kmeans_view *view = job->rows->view;
    (void)places, (void)count; /* the newest centre alone is packed */
    double distance =
        kmeans_rows_distance(job->rows, i, view->centres + (view->model->filled - 1) * view->model->columns);
    job->distance[i] = distance < job->distance[i] ? distance : job->distance[i];
}

/* current_distance of every row of the grain; rows that are kept as bytes go through a filter. */
static void current_distances(double *out, const kmeans_rows *rows, const kmeans_prepared *prepared,
                              unsigned char *memory, int64_t *counters)
{
    const shoal_grain *grain = rows->grain;
    int64_t done = 0;
    if (grain->carried && rows->view->model->filled > 1 && prepared->pack.bytes && seed_keeps_bytes(grain->shape)) {
        seed_bytes bytes = seed_bytes_of(grain, rows->kernel);
        measuring job = {rows, out};
        done = bytes.count;
        memcpy(out, seed_memo_of(grain).distance, (size_t)done * sizeof *out);
        kmeans_nearer_kept(rows, &prepared->pack, &bytes.rows, bytes.square, done, out, measure_newest, &job, memory,
                           counters);
    }
    for (int64_t i = done; i < grain->rows; i++)
        out[i] = current_distance(rows, prepared, i);
}

static int fetch(shoal_partial *partial, const kmeans_rows *rows, int64_t slot, int64_t i, double *values)
{
    kmeans_rows_values(values, rows, i);
    return shoal_partial_record(partial, FETCH_ROWS, (shoal_key){0, (uint64_t)slot}, values);
}

static int fetch_by_row(shoal_partial *partial, const kmeans_rows *rows, const seed_view *view, double *values)
{
    const shoal_grain *grain = rows->grain;
    int64_t low = 0, high = view->state->draws;
    int status = SHOAL_OK;
    while (low < high) { /* the first draw that is not before this grain */
        int64_t middle = (low + high) / 2;
        if (view->draw[middle].where < grain->first_row)
            low = middle + 1;
        else
            high = middle;
    }
    for (int64_t slot = low; status == SHOAL_OK && slot < view->state->draws; slot++) {
        int64_t i = view->draw[slot].where - grain->first_row;
        if (i >= grain->rows)
            break;
        status = fetch(partial, rows, slot, i, values);
    }
    return status;
}

static int map_fetch(shoal_partial *partial, const shoal_round *round, const kmeans_prepared *prepared,
                     const shoal_grain *grain, const shoal_scratch *scratch)
{
    seed_view view = seed_view_of(round);
    unsigned char *memory = scratch->memory;
    double *values = kmeans_cut(&memory, (size_t)grain->shape->columns * sizeof(double));
    int64_t *potential = kmeans_cut(&memory, (size_t)grain->rows * sizeof(int64_t));
    double *distance = kmeans_cut(&memory, (size_t)grain->rows * sizeof(double));
    bool walked = false;
    kmeans_rows rows;
    kmeans_rows_init(&rows, prepared, &view.base, grain, &memory);
    if (view.state->by_row)
        return fetch_by_row(partial, &rows, &view, values);
    int status = SHOAL_OK;
    for (int64_t slot = 0; slot < view.state->draws; slot++) {
        if (view.draw[slot].where != grain->index)
            continue;
        if (!walked && grain->carried)
            status = kmeans_memo_check(grain, seed_memo_of(grain).nearest, view.base.model->k);
        if (status < 0)
            return status;
        if (!walked && view.state->inverse > 0)
            current_distances(distance, &rows, prepared, memory, scratch->counters);
        for (int64_t i = 0; !walked && i < grain->rows; i++)
            potential[i] = seed_potential(&rows, i, distance[i], view.state->inverse);
        walked = true;
        int64_t rest = view.draw[slot].rest, i = 0;
        while (i < grain->rows && rest >= potential[i])
            rest = base_subtract_wrapping(rest, potential[i++]);
        if (i == grain->rows)
            return shoal_fail(SHOAL_BROKEN, "draw %lld of round %lld is beyond the rows of its grain", (long long)slot,
                              (long long)round->number);
        status = fetch(partial, &rows, slot, i, values);
        if (status < 0)
            return status;
    }
    return SHOAL_OK;
}

bool seed_are_drawn(const shoal_round *fetched, const shoal_partial *merged)
{
    const seed_view view = seed_view_of(fetched);
    if (shoal_partial_records(merged, FETCH_ROWS) != view.state->draws)
        return false;
    for (int64_t slot = 0; slot < view.state->draws; slot++) {
        shoal_key key;
        const double *row = shoal_partial_record_at(merged, FETCH_ROWS, slot, &key);
        if (key.high != 0 || key.low != (uint64_t)slot || !kmeans_are_finite(row, view.base.model->columns))
            return false;
    }
    return true;
}

int64_t seed_take_rows(double *out, shoal_partial *merged, int64_t columns)
{
    int64_t count = 0, records = shoal_partial_records(merged, FETCH_ROWS);
    size_t bytes = (size_t)columns * sizeof(double);
    for (int64_t r = 0; r < records; r++) {
        double *to = out + count * columns;
        bool seen = false;
        memcpy(to, shoal_partial_record_at(merged, FETCH_ROWS, r, NULL), bytes);
        for (int64_t before = 0; !seen && before < count; before++)
            seen = memcmp(out + before * columns, to, bytes) == 0;
        count += !seen;
    }
    return count;
}

static int update_fetch(shoal_round **next, shoal_result **result, const shoal_round *round, shoal_partial *merged,
                        const shoal_shape *shape, const shoal_crew *crew, bool stop)
{
    const kmeans_model *model = round->model;
    size_t bytes = (size_t)model->columns * sizeof(double);
    (void)result, (void)crew;
    if (stop)
        return kmeans_stop_early(next, round, "choosing the first centres");
    if (!seed_are_drawn(round, merged))
        return kmeans_fail_merged(round, "drawn rows");
    if (model->start == KMEANS_START_GREEDY)
        return seed_greedy_judge(next, round, merged);
    if (model->start == KMEANS_START_PARALLEL)
        return seed_parallel_first(next, round, merged);
    int status = kmeans_begin_lloyd(next, round, shape);
    for (int64_t j = 0; status == SHOAL_OK && j < model->k; j++)
        memcpy(kmeans_view_of(*next).centres + j * model->columns, shoal_partial_record_at(merged, FETCH_ROWS, j, NULL),
               bytes);
    return status;
}

const kmeans_phase kmeans_fetch = {.name = "seed",
                                   .check = check_fetch,
                                   .describe = describe_fetch,
                                   .prepare = prepare_fetch,
                                   .scratch_bytes = scratch_fetch,
                                   .map = map_fetch,
                                   .update = update_fetch};
