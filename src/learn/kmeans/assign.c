/* Finding each row's nearest centre: the tiers and bounds of docs/learn/kmeans.md, "Labels".
 *
 * A row keeps an upper bound on the distance to its own centre and a lower bound on the distance to all others.
 * After centres moved, the bounds tell how many of the farthest-moved centres the row must look at again: often none.
 * Rows are gathered in queues that go through the kernels together: bytes or float32 for all centres in question,
 * float32 for the few that are left, the float64 definition where that can't tell. */
#include "learn/kmeans/assign.h"

#include <string.h>

enum {
    BLOCK_ROWS = 84,        /* rows of bytes: a multiple of every tile's */
    BLOCK_SCORES = 1 << 17, /* scores of one block, if possible: half of a usual second-level cache */
};

/* Rows that wait to be scored together. */
typedef struct queue {
    float *z;         /* block x columns */
    float *square;    /* |z|^2 */
    float *own_score; /* of the row's own centre, when it has one */
    int32_t *own;     /* place of that centre, or -1 */
    int32_t *row;
    int count;
    int64_t places; /* how many centres of the pack are looked at, from the first */
} queue;

typedef struct tiling {
    assigning a;
    assign_tiles tiles;
    queue some, all;  /* rows that must look at some centres, and at all */
    int32_t *places;  /* candidates of one row ... */
    float *candidate; /* ... and their scores */
    elkan_space elkan;
    int32_t *refused; /* rows of a queue that must look at all centres */
} tiling;

kmeans_memo kmeans_memo_of(const shoal_grain *grain)
{
    int32_t *memo = grain->memo;
    return (kmeans_memo){
        .label = memo, .upper = (float *)(memo + grain->rows), .lower = (float *)(memo + 2 * grain->rows)};
}

int kmeans_memo_check(const shoal_grain *grain, const int32_t *index, int64_t limit)
{
    const int32_t most = (int32_t)(limit - 1);
    int32_t outside = 0; /* a loop that becomes vectors on every CPU */
    for (int64_t i = 0; i < grain->rows; i++)
        outside |= (index[i] < 0) | (index[i] > most);
    if (!outside)
        return SHOAL_OK;
    return shoal_fail(SHOAL_BROKEN, "a round goes on from a memo that is not of the rounds before it");
}

/* ---- workspace --------------------------------------------------------------------------------------------------- */

static int choose_block(const kmeans_pack *pack, const kernel_set *kernel)
{
    int tile = pack->bytes ? kernel->byte_tile_rows : kernel->tile_rows;
    int most = pack->bytes ? BLOCK_ROWS : KERNEL_BLOCK_ROWS;
    int64_t fitting = (int64_t)BLOCK_SCORES * most / BLOCK_ROWS / pack->padded / tile * tile;
    return fitting >= most ? most : fitting > 2 * tile ? (int)fitting : 2 * tile;
}

static void cut_queue(queue *q, size_t block, int64_t columns, unsigned char **memory)
{
    q->z = kmeans_cut(memory, (block + 1) * (size_t)columns * sizeof(float)); /* one more to load into */
    q->square = kmeans_cut(memory, (block + 1) * sizeof(float));
    q->own_score = kmeans_cut(memory, (block + 1) * sizeof(float));
    q->own = kmeans_cut(memory, (block + 1) * sizeof(int32_t));
    q->row = kmeans_cut(memory, (block + 1) * sizeof(int32_t));
}

void assign_tiles_cut(assign_tiles *tiles, const kmeans_pack *pack, const kernel_set *kernel, unsigned char **memory)
{
    int64_t columns = pack->columns, groups = (columns + 3) / 4;
    tiles->block = choose_block(pack, kernel);
    size_t block = (size_t)tiles->block + KERNEL_TILE_ROWS_MOST;
    tiles->scores = kmeans_cut(memory, block * (size_t)pack->padded * sizeof(float));
    if (pack->bytes) {
        tiles->byte.panels = kmeans_cut(memory, block * (size_t)groups * 4);
        tiles->byte.step = kmeans_cut(memory, block * sizeof(float));
        tiles->byte.norm = kmeans_cut(memory, block * sizeof(float));
        tiles->byte.residual = kmeans_cut(memory, block * sizeof(float));
    } else {
        tiles->row_panels = kmeans_cut(memory, block * (size_t)columns * sizeof(float));
    }
}

/* Returns the bytes that were cut. */
static size_t cut_tiling(tiling *t, const kmeans_pack *pack, const kernel_set *kernel, unsigned char *memory)
{
    unsigned char *const start = memory;
    assign_tiles_cut(&t->tiles, pack, kernel, &memory);
    cut_queue(&t->some, (size_t)t->tiles.block, pack->columns, &memory);
    cut_queue(&t->all, (size_t)t->tiles.block, pack->columns, &memory);
    t->places = kmeans_cut(&memory, ((size_t)pack->padded + 32) * sizeof(int32_t));
    t->candidate = kmeans_cut(&memory, ((size_t)pack->padded + 32) * sizeof(float));
    size_t centres = ((size_t)pack->capacity + 32) * sizeof(float);
    t->elkan = (elkan_space){.places = t->places, .scores = t->candidate};
    t->elkan.near = kmeans_cut(&memory, centres);
    t->elkan.lower = kmeans_cut(&memory, centres);
    t->elkan.left = kmeans_cut(&memory, centres);
    t->refused = kmeans_cut(&memory, (size_t)t->tiles.block * sizeof(int32_t));
    return (size_t)(memory - start);
}

static size_t tiling_bytes(const kmeans_pack *pack, const kernel_set *kernel)
{
    tiling t;
    static unsigned char anywhere[1];
    return cut_tiling(&t, pack, kernel, anywhere);
}

size_t kmeans_assign_bytes(const kmeans_pack *pack, const kernel_set *kernel, int64_t rows_per_grain)
{
    return kmeans_cut_size((size_t)rows_per_grain * sizeof(int32_t)) +
           (pack->few ? assign_few_bytes(pack) : tiling_bytes(pack, kernel));
}

assigning assign_begin(const kmeans_rows *rows, const kmeans_pack *pack, int64_t *counters)
{
    double roundings = (double)kernel_roundings(pack->columns) * 0x1p-24;
    return (assigning){.rows = rows,
                       .pack = pack,
                       .kernel = rows->kernel,
                       .columns = pack->columns,
                       .counters = counters,
                       .norm_slack = roundings / (1 - roundings) + 0x1p-21};
}

/* ---- scoring ----------------------------------------------------------------------------------------------------- */

/* Rows that are bytes by nature: nothing is lost, and the step is that of the scale. */
static void place_rows(const assigning *a, const assign_tiles *tiles, const int32_t *rows, const float *square,
                       int count)
{
    int tile = a->kernel->byte_tile_rows, padded = (count + tile - 1) / tile * tile;
    for (int r = 0; r < padded; r++) {
        bool real = r < count;
        if (real)
            a->kernel->place_bytes(tiles->byte.panels, kmeans_rows_raw(a->rows, rows[r]), r, a->columns);
        tiles->byte.step[r] = real ? (float)a->rows->view->model->scale : 0;
        tiles->byte.norm[r] = real ? assign_up(sqrt((double)square[r]) * (1 + a->norm_slack)) : 0;
        tiles->byte.residual[r] = 0;
    }
}

void assign_tiles_score(const assigning *a, const assign_tiles *tiles, const int32_t *rows, const float *z,
                        const float *square, int count, int64_t places)
{
    const kmeans_pack *pack = a->pack;
    const kernel_set *kernel = a->kernel;
    int panels = (int)(places / pack->panel);
    a->counters[KMEANS_COMPUTED] += (int64_t)count * (places < pack->count ? places : pack->count);
    if (pack->bytes) {
        const kernel_byte_centres centres = kmeans_pack_bytes(pack);
        int row_panels = (count + kernel->byte_tile_rows - 1) / kernel->byte_tile_rows;
        if (pack->direct)
            place_rows(a, tiles, rows, square, count);
        else
            kernel->quantise_rows(&tiles->byte, z, count, pack->columns);
        kernel->score_bytes(tiles->scores, pack->padded, &tiles->byte, row_panels, &centres, panels, pack->columns);
    } else {
        int row_panels = (count + kernel->tile_rows - 1) / kernel->tile_rows;
        kernel->pack_rows(tiles->row_panels, z, count, pack->columns);
        kernel->score_float(tiles->scores, pack->padded, tiles->row_panels, row_panels, pack->panels, pack->bias,
                            panels, pack->columns);
    }
}

/* ---- deciding ---------------------------------------------------------------------------------------------------- */

/* What the definition prefers the least of: the squared distance, or the negated product of unit vectors. */
static double definition(const assigning *a, int64_t row, int32_t centre)
{
    const double *values = a->centres + (int64_t)centre * a->columns;
    return a->rows->unit ? -kmeans_rows_product(a->rows, row, values) : kmeans_rows_distance(a->rows, row, values);
}

int64_t assign_decide(const assigning *a, int64_t row, const int32_t *places, const float *scores, int64_t count,
                      double limit)
{
    const kmeans_pack *pack = a->pack;
    double least = INFINITY;
    int64_t winner = -1;
    for (int64_t c = 0; c < count; c++) {
        if (scores && scores[c] > limit)
            continue;
        int64_t place = places ? places[c] : c;
        double value = definition(a, row, pack->id[place]);
        a->counters[KMEANS_DEFINITIONS]++;
        if (winner < 0 || value < least || (value == least && pack->id[place] < pack->id[winner])) {
            least = value;
            winner = place;
        }
    }
    return winner;
}

/* What scoring says of one row. */
typedef struct finding {
    int64_t place; /* of the nearest centre */
    double score;  /* its computed score */
    double others; /* no other centre among those looked at has a smaller true score */
} finding;

float assign_choose(const assigning *a, int64_t row, const int32_t *places, const float *scores, int count,
                    double error, int *winner)
{
    int best = 0;
    float second = INFINITY;
    for (int c = 1; c < count; c++) {
        if (scores[c] < scores[best]) {
            second = scores[best];
            best = c;
        } else if (scores[c] < second) {
            second = scores[c];
        }
    }
    *winner = best;
    if (second - (double)scores[best] > 2 * error)
        return second;
    int64_t place = assign_decide(a, row, places, scores, count, scores[best] + 2 * error);
    for (*winner = 0; places[*winner] != place; ++*winner)
        ;
    return *winner == best ? second : scores[best];
}

/* Picks the nearest of `count` scored candidates; `rest` is a lower bound on the score of all that are none. */
static finding choose_nearest(tiling *t, int64_t row, int count, double error, double rest)
{
    int winner;
    float second = assign_choose(&t->a, row, t->places, t->candidate, count, error, &winner);
    return (finding){t->places[winner], t->candidate[winner], fmin(rest, second - error)};
}

/* Row r of a scored queue.  A guess at the nearest centre, the row's own if it has one, gives a threshold that few
 * scores are below; only those are computed in float32. */
static finding find_nearest(tiling *t, const queue *q, int r, double error)
{
    const kmeans_pack *pack = t->a.pack;
    const float *z = q->z + (int64_t)r * pack->columns, *scores = t->tiles.scores + (int64_t)r * pack->padded;
    int64_t guess = q->own[r] >= 0 ? q->own[r] : t->a.kernel->least(scores, (int)q->places);
    float guess_score = q->own[r] >= 0 ? q->own_score[r] : assign_score(&t->a, z, guess);
    float rest;
    int count =
        t->a.kernel->select(t->places, &rest, scores, (int)q->places, assign_threshold(&t->a, guess_score, error));
    bool has_guess = false;
    for (int c = 0; c < count; c++) {
        bool is_guess = t->places[c] == guess;
        t->candidate[c] = is_guess ? guess_score : assign_score(&t->a, z, t->places[c]);
        has_guess |= is_guess;
    }
    if (!has_guess) {
        t->candidate[count] = guess_score;
        t->places[count++] = (int32_t)guess;
    }
    t->a.counters[KMEANS_COMPUTED] += count;
    return choose_nearest(t, q->row[r], count, error, pack->bytes ? rest : rest - error);
}

/* Settles row r of a scored queue; false when the centres it did not look at might be nearer. */
static bool settle_row(tiling *t, const queue *q, int r)
{
    const kmeans_pack *pack = t->a.pack;
    kmeans_memo *memo = &t->a.memo;
    int64_t row = q->row[r];
    double error = assign_error(&t->a, q->square[r]);
    float outside =
        q->places >= pack->count ? INFINITY : assign_down((double)memo->lower[row] - pack->drift[q->places]);
    finding found = find_nearest(t, q, r, error);
    float upper = assign_upper(&t->a, q->square[r], found.score + error);
    if (!(upper < outside) && q->places < pack->count)
        return false;
    memo->upper[row] = upper;
    memo->lower[row] = fminf(outside, assign_lower(&t->a, q->square[r], found.others));
    if (t->a.bounds)
        assign_elkan_store(&t->a, row, q->square[r], t->tiles.scores + (int64_t)r * pack->padded);
    assign_label(&t->a, row, pack->id[found.place]);
    return true;
}

/* ---- queues ------------------------------------------------------------------------------------------------------ */

static void push(tiling *t, queue *q, const queue *from, int r);

/* Scores and settles what waits.  Rows that must look farther move on to the queue for all centres. */
static void flush(tiling *t, queue *q)
{
    int refused = 0;
    if (q->count > 0)
        assign_tiles_score(&t->a, &t->tiles, q->row, q->z, q->square, q->count, q->places);
    for (int r = 0; r < q->count; r++)
        if (!settle_row(t, q, r))
            t->refused[refused++] = r;
    /* Only now: pushing may flush the other queue, which needs the memory of the scores. */
    for (int i = 0; i < refused; i++)
        push(t, &t->all, q, t->refused[i]);
    q->count = 0;
    if (q == &t->some)
        q->places = 0;
}

static void push(tiling *t, queue *q, const queue *from, int r)
{
    int64_t columns = t->a.columns;
    if (q->count == t->tiles.block)
        flush(t, q);
    int at = q->count++;
    memcpy(q->z + at * columns, from->z + r * columns, (size_t)columns * sizeof(float));
    q->square[at] = from->square[r];
    q->own_score[at] = from->own_score[r];
    q->own[at] = from->own[r];
    q->row[at] = from->row[r];
}

/* How many of the pack's centres a row must look at: all that moved more than its bounds can take. */
static int64_t places_needed(const kmeans_pack *pack, float upper, float lower)
{
    int64_t low = 0, high = pack->count, step = pack->panel > 16 ? pack->panel : 16;
    if (!(upper < lower))
        return pack->padded;
    while (low < high) { /* the first place whose drift the gap can take */
        int64_t middle = (low + high) / 2;
        if (upper < assign_down((double)lower - pack->drift[middle]))
            high = middle;
        else
            low = middle + 1;
    }
    if (low * 2 > pack->count) /* looking at all costs little more, and makes the bounds tight again */
        return pack->padded;
    return (low + step - 1) / step * step;
}

/* Centres a row into the next place of queue `q` and measures the distance to its own centre. */
static void load_row(tiling *t, queue *q, int64_t row)
{
    int at = q->count;
    float *z = q->z + at * t->a.columns;
    int32_t label = t->a.memo.label[row];
    kmeans_rows_centre(z, t->a.rows, row);
    q->square[at] = t->a.kernel->dot(z, z, t->a.columns);
    q->row[at] = (int32_t)row;
    q->own[at] = label >= 0 ? t->a.pack->position[label] : -1;
    if (q->own[at] < 0)
        return;
    q->own_score[at] = assign_score(&t->a, z, q->own[at]);
    t->a.memo.upper[row] = assign_upper(&t->a, q->square[at], q->own_score[at] + assign_error(&t->a, q->square[at]));
    t->a.counters[KMEANS_COMPUTED]++;
}

/* The row just loaded has a bound on every centre. */
static void settle_by_bounds(tiling *t, const queue *q)
{
    int r = q->count;
    const elkan_row row = {.row = q->row[r],
                           .z = q->z + r * t->a.columns,
                           .square = q->square[r],
                           .own_score = q->own_score[r],
                           .own = q->own[r],
                           .error = assign_error(&t->a, q->square[r])};
    assign_elkan(&t->a, &row, &t->elkan);
}

/* Looks at a row whose bounds broke: measuring its own centre may mend them; otherwise it waits in a queue. */
static void look_again(tiling *t, int64_t row)
{
    kmeans_memo *memo = &t->a.memo;
    queue *q = &t->some;
    if (q->count == t->tiles.block)
        flush(t, q);
    load_row(t, q, row);
    if (t->a.bounds && q->own[q->count] >= 0) {
        settle_by_bounds(t, q);
        return;
    }
    int64_t need =
        q->own[q->count] < 0 ? t->a.pack->padded : places_needed(t->a.pack, memo->upper[row], memo->lower[row]);
    if (need == 0) {
        memo->lower[row] = assign_down((double)memo->lower[row] - t->a.pack->drift[0]);
    } else if (need >= t->a.pack->count) {
        push(t, &t->all, q, q->count);
    } else {
        q->places = need > q->places ? need : q->places;
        q->count++;
    }
}

static void assign_tiled(tiling *t, const int32_t *which, int64_t count, bool carried)
{
    t->some.count = t->all.count = 0;
    t->some.places = 0;
    t->all.places = t->a.pack->padded;
    for (int64_t i = 0; i < count; i++) {
        if (carried) {
            look_again(t, which[i]);
            continue;
        }
        if (t->all.count == t->tiles.block)
            flush(t, &t->all);
        load_row(t, &t->all, which[i]);
        t->all.count++;
    }
    flush(t, &t->some);
    flush(t, &t->all);
}

/* ---- the whole grain --------------------------------------------------------------------------------------------- */

/* Lists rows whose bounds do not hold after the centres' drift; the others' bounds are moved along. */
static int64_t list_broken(const assigning *a, int32_t *broken, int64_t rows)
{
    const float reach = a->pack->reach, *drift = a->pack->drift_of;
    int64_t count = 0;
    for (int64_t i = 0; i < rows; i++) {
        float upper = (a->memo.upper[i] + drift[a->memo.label[i]]) * (1 + 0x1p-22f);
        float lower = (a->memo.lower[i] - reach) * (1 - 0x1p-22f);
        bool holds = upper < lower;
        a->memo.upper[i] = holds ? upper : a->memo.upper[i];
        a->memo.lower[i] = holds ? lower : a->memo.lower[i];
        broken[count] = (int32_t)i;
        count += !holds;
    }
    return count;
}

static int64_t list_all(const assigning *a, int32_t *which, int64_t rows)
{
    for (int64_t i = 0; i < rows; i++) {
        a->memo.label[i] = -1;
        which[i] = (int32_t)i;
    }
    return rows;
}

/* Centres so far from the data that no bound holds: bounds that promise nothing, and the definition for every row. */
static void assign_by_definition(const assigning *a, int64_t rows, bool carried)
{
    for (int64_t i = 0; i < rows; i++) {
        if (!carried)
            a->memo.label[i] = -1;
        a->memo.upper[i] = INFINITY;
        a->memo.lower[i] = 0;
        if (a->bounds)
            memset(a->bounds + i * a->rows->view->model->k, 0, (size_t)a->rows->view->model->k * sizeof(float));
        assign_label(a, i, a->pack->id[assign_decide(a, i, NULL, NULL, a->pack->count, INFINITY)]);
    }
    a->counters[KMEANS_COMPUTED] += rows * a->pack->count;
}

int kmeans_assign(const kmeans_rows *rows, const kmeans_pack *pack, const double *centres, bool carried,
                  kmeans_changed *changed, void *context, unsigned char *memory, int64_t *counters)
{
    tiling t = {.a = assign_begin(rows, pack, counters)};
    int64_t count = rows->grain->rows, computed = counters[KMEANS_COMPUTED];
    int32_t *which = kmeans_cut(&memory, (size_t)count * sizeof *which);
    t.a.centres = centres;
    t.a.memo = kmeans_memo_of(rows->grain);
    t.a.bounds = kmeans_keeps_bounds(rows->view->model) ? t.a.memo.lower + count : NULL;
    t.a.changed = changed;
    t.a.context = context;
    int status = carried ? kmeans_memo_check(rows->grain, t.a.memo.label, rows->view->model->k) : SHOAL_OK;
    if (status < 0)
        return status;
    if (pack->far) {
        assign_by_definition(&t.a, count, carried);
        return SHOAL_OK;
    }
    int64_t listed = carried ? list_broken(&t.a, which, count) : list_all(&t.a, which, count);
    if (pack->few) {
        assign_few(&t.a, which, listed, memory);
    } else {
        cut_tiling(&t, pack, rows->kernel, memory);
        assign_tiled(&t, which, listed, carried);
    }
    int64_t saved = count * pack->count - (counters[KMEANS_COMPUTED] - computed);
    counters[KMEANS_SKIPPED] += saved > 0 ? saved : 0;
    return SHOAL_OK;
}
