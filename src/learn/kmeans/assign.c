/* Finding each row's nearest centre: the tiers and bounds of docs/learn/kmeans.md, "Labels".
 *
 * A row keeps an upper bound on the distance to its own centre and a lower bound on the distance to all others.
 * After centres moved, the bounds tell how many of the farthest-moved centres the row must look at again: often none.
 * Rows are gathered into blocks that look at the same number of centres and go through the kernels together:
 * bytes or float32 for all of them, float32 for the few that are left, the float64 definition where that can't tell. */
#include <math.h>
#include <string.h>

#include "learn/kmeans/kmeans_internal.h"

enum {
    BLOCK_ROWS = 84,               /* a multiple of every tile's rows */
    BLOCK_SCORES = 1 << 17,        /* scores of one block, if possible: half of a usual second-level cache */
    FEW_BLOCK_ROWS = 336
};

/* One grain being labelled, with its workspace. */
typedef struct assigning {
    const kmeans_rows *rows;
    const kmeans_pack *pack;
    const kernel_set *kernel;
    const double *centres;
    int64_t columns;
    kmeans_memo memo;
    kmeans_changed *changed;
    void *context;
    int64_t *counters;
    double norm_slack; /* relative error of the computed |z|^2, z's own rounding included */

    int block;
    float *z;              /* block x columns */
    float *square;         /* |z|^2, one a row of the block */
    float *row_panels;     /* float32 panels of the block */
    kernel_byte_rows byte; /* or byte panels */
    float *scores;         /* block x padded: scores, or lower bounds on them */
    int32_t *places;       /* candidates of one row */
    float *candidate;      /* their scores */
    float *few_best, *few_second, *few_workspace;
    int32_t *few_index;

    int32_t *pending;      /* rows that must look at some centres ... */
    int32_t *need;         /* ... how many panels each */
    int32_t *sorted;       /* pending, by need */
    int32_t *again;        /* rows that must look at all centres */
    int64_t agains;
} assigning;

kmeans_memo kmeans_memo_of(const shoal_grain *grain)
{
    int32_t *memo = grain->memo;
    return (kmeans_memo){.label = memo, .upper = (float *)(memo + grain->rows), .lower = (float *)(memo + 2 * grain->rows)};
}

/* ---- workspace --------------------------------------------------------------------------------------------- */

static int choose_block(const kmeans_pack *pack, const kernel_set *kernel)
{
    if (pack->few)
        return FEW_BLOCK_ROWS;
    int tile = pack->bytes ? kernel->byte_tile_rows : kernel->tile_rows;
    int64_t fitting = BLOCK_SCORES / pack->padded / tile * tile;
    return fitting >= BLOCK_ROWS ? BLOCK_ROWS : fitting > 2 * tile ? (int)fitting : 2 * tile;
}

/* Cuts the parts that scoring needs.  With memory NULL only counts the bytes. */
static size_t cut_scoring(assigning *a, const kmeans_pack *pack, const kernel_set *kernel, unsigned char *memory)
{
    unsigned char *const start = memory;
    int64_t columns = pack->columns, groups = (columns + 3) / 4;
    size_t block = (size_t)choose_block(pack, kernel) + KERNEL_TILE_ROWS_MOST;
    a->block = choose_block(pack, kernel);
    a->z = kmeans_cut(&memory, block * (size_t)columns * sizeof(float));
    a->square = kmeans_cut(&memory, block * sizeof(float));
    a->places = kmeans_cut(&memory, ((size_t)pack->padded + 32) * sizeof(int32_t));
    a->candidate = kmeans_cut(&memory, ((size_t)pack->padded + 32) * sizeof(float));
    if (pack->few) {
        a->few_best = kmeans_cut(&memory, block * sizeof(float));
        a->few_second = kmeans_cut(&memory, block * sizeof(float));
        a->few_index = kmeans_cut(&memory, block * sizeof(int32_t));
        a->few_workspace = kmeans_cut(&memory, KERNEL_FEW_WORKSPACE * sizeof(float));
        return (size_t)(memory - start);
    }
    a->scores = kmeans_cut(&memory, block * (size_t)pack->padded * sizeof(float));
    if (pack->bytes) {
        a->byte.panels = kmeans_cut(&memory, block * (size_t)groups * 4);
        a->byte.step = kmeans_cut(&memory, block * sizeof(float));
        a->byte.norm = kmeans_cut(&memory, block * sizeof(float));
        a->byte.residual = kmeans_cut(&memory, block * sizeof(float));
    } else {
        a->row_panels = kmeans_cut(&memory, block * (size_t)columns * sizeof(float));
    }
    return (size_t)(memory - start);
}

static size_t cut_lists(assigning *a, int64_t rows, unsigned char *memory)
{
    unsigned char *const start = memory;
    a->pending = kmeans_cut(&memory, (size_t)rows * sizeof(int32_t));
    a->need = kmeans_cut(&memory, (size_t)rows * sizeof(int32_t));
    a->sorted = kmeans_cut(&memory, (size_t)rows * sizeof(int32_t));
    a->again = kmeans_cut(&memory, (size_t)rows * sizeof(int32_t));
    return (size_t)(memory - start);
}

static void init(assigning *a, const kmeans_rows *rows, const kmeans_pack *pack, unsigned char **memory,
                 int64_t *counters)
{
    double roundings = (double)kernel_roundings(pack->columns) * 0x1p-24;
    *a = (assigning){.rows = rows,
                     .pack = pack,
                     .kernel = rows->kernel,
                     .columns = pack->columns,
                     .counters = counters,
                     .norm_slack = roundings / (1 - roundings) + 0x1p-21};
    *memory += cut_scoring(a, pack, rows->kernel, *memory);
}

size_t kmeans_assign_bytes(const kmeans_pack *pack, const kernel_set *kernel, int64_t rows_per_grain)
{
    assigning a = {0};
    static unsigned char anywhere[1];
    return cut_scoring(&a, pack, kernel, anywhere) + cut_lists(&a, rows_per_grain, anywhere);
}

size_t kmeans_nearer_bytes(const kmeans_pack *pack, const kernel_set *kernel)
{
    assigning a = {0};
    static unsigned char anywhere[1];
    return cut_scoring(&a, pack, kernel, anywhere);
}

/* ---- from scores to distances ------------------------------------------------------------------------------ */

/* Bound on the error of any score of a row with the given computed |z|^2. */
static double score_error(const assigning *a, float square)
{
    double norm = sqrt((double)square) * (1 + a->norm_slack);
    return a->pack->error_product * norm + a->pack->error_constant + a->pack->error_square * norm * norm;
}

/* No less than the scaled distance of a centre whose true score is at most `score`.  The factor leaves room for the
 * rounding to float32 and for the definition's own error, so that upper < lower proves the definition's order. */
static float upper_distance(const assigning *a, float square, double score)
{
    double distance = (double)square * (1 + a->norm_slack) + 2 * score;
    return (float)(sqrt(fmax(distance, 0)) * (1 + 0x1p-20));
}

/* No more than the scaled distance of a centre whose true score is at least `score`. */
static float lower_distance(const assigning *a, float square, double score)
{
    double distance = (double)square * (1 - a->norm_slack) + 2 * score;
    return (float)(sqrt(fmax(distance, 0)) * (1 - 0x1p-22));
}

static float up(double value)
{
    return (float)(value * (1 + 0x1p-22));
}

static float down(double value)
{
    return (float)(value - fabs(value) * 0x1p-22);
}

/* ---- scoring ----------------------------------------------------------------------------------------------- */

static float score_of(const assigning *a, const float *z, int64_t place)
{
    return a->pack->bias[place] - a->kernel->dot(z, a->pack->rows + place * a->columns, a->columns);
}

static void load_block(assigning *a, const int32_t *which, int count)
{
    for (int r = 0; r < count; r++) {
        float *z = a->z + (int64_t)r * a->columns;
        kmeans_rows_centre(z, a->rows, which[r]);
        a->square[r] = a->kernel->dot(z, z, a->columns);
    }
}

/* Scores of a loaded block against the first `places` centres. */
static void score_block(assigning *a, int count, int64_t places)
{
    const kmeans_pack *pack = a->pack;
    const kernel_set *kernel = a->kernel;
    int panels = (int)(places / pack->panel);
    a->counters[KMEANS_COMPUTED] += (int64_t)count * (places < pack->count ? places : pack->count);
    if (pack->few) {
        int64_t some = places < pack->count ? places : pack->count;
        kernel->nearest_few(a->few_best, a->few_second, a->few_index, a->z, count, pack->rows, pack->bias, (int)some,
                            a->columns, a->few_workspace);
    } else if (pack->bytes) {
        const kernel_byte_centres centres = {.panels = pack->byte_panels,
                                             .bias = pack->byte_bias,
                                             .step = pack->byte_step,
                                             .offset = pack->byte_offset,
                                             .residual = pack->byte_residual,
                                             .norm = pack->byte_norm};
        int row_panels = (count + kernel->byte_tile_rows - 1) / kernel->byte_tile_rows;
        kernel->quantise_rows(&a->byte, a->z, count, a->columns);
        kernel->score_bytes(a->scores, pack->padded, &a->byte, row_panels, &centres, panels, a->columns);
    } else {
        int row_panels = (count + kernel->tile_rows - 1) / kernel->tile_rows;
        kernel->pack_rows(a->row_panels, a->z, count, a->columns);
        kernel->score_float(a->scores, pack->padded, a->row_panels, row_panels, pack->panels, pack->bias, panels,
                            a->columns);
    }
}

/* ---- deciding ---------------------------------------------------------------------------------------------- */

/* What scoring says of one row. */
typedef struct finding {
    int64_t place;  /* of the nearest centre */
    double score;   /* its computed score */
    double others;  /* no other centre among those looked at has a smaller true score */
} finding;

/* The definition decides among candidates whose scores are too close to call. */
static int64_t decide(const assigning *a, int64_t row, const int32_t *places, const float *scores, int count,
                      double limit)
{
    const kmeans_pack *pack = a->pack;
    double least = INFINITY;
    int64_t winner = -1;
    for (int c = 0; c < count; c++) {
        if (scores && scores[c] > limit)
            continue;
        int64_t place = places ? places[c] : c;
        double distance = kmeans_rows_distance(a->rows, row, a->centres + (int64_t)pack->id[place] * a->columns);
        a->counters[KMEANS_DEFINITIONS]++;
        if (distance < least || (distance == least && pack->id[place] < pack->id[winner])) {
            least = distance;
            winner = place;
        }
    }
    return winner;
}

/* Scores the candidates in float32 and picks the nearest; `rest` is a lower bound on the score of all others. */
static finding choose_candidate(assigning *a, int64_t row, const float *z, int count, double error, double rest)
{
    int best = 0, winner;
    float second = INFINITY;
    for (int c = 0; c < count; c++) {
        float score = a->candidate[c] = score_of(a, z, a->places[c]);
        if (c > 0 && score < a->candidate[best]) {
            second = a->candidate[best];
            best = c;
        } else if (c > 0 && score < second) {
            second = score;
        }
    }
    a->counters[KMEANS_COMPUTED] += count;
    winner = best;
    if (!(second - (double)a->candidate[best] > 2 * error)) {
        int64_t place = decide(a, row, a->places, a->candidate, count, a->candidate[best] + 2 * error);
        for (winner = 0; a->places[winner] != place; winner++)
            ;
        if (winner != best)
            second = a->candidate[best];
    }
    return (finding){a->places[winner], a->candidate[winner], fmin(rest, second - error)};
}

/* Row r of a scored block against the first `places` centres, its own centre (-1: none) among them in any case. */
static finding find_tiled(assigning *a, int r, int64_t row, int64_t places, int64_t own)
{
    const float *z = a->z + (int64_t)r * a->columns, *scores = a->scores + (int64_t)r * a->pack->padded;
    double error = score_error(a, a->square[r]);
    int64_t guess = own >= 0 ? own : a->kernel->least(scores, (int)places);
    /* Scores of float32 panels have an error of their own; those of bytes are lower bounds already. */
    double threshold = score_of(a, z, guess) + (a->pack->bytes ? 2 : 3) * error;
    float rest;
    int count = a->kernel->select(a->places, &rest, scores, (int)places, up(threshold + fabs(threshold) * 0x1p-20));
    bool has_guess = false;
    for (int c = 0; c < count; c++)
        has_guess |= a->places[c] == guess;
    if (!has_guess)
        a->places[count++] = (int32_t)guess;
    return choose_candidate(a, row, z, count, error, a->pack->bytes ? rest : rest - error);
}

/* The same when there are few columns: only the best two of the scores are known. */
static finding find_few(assigning *a, int r, int64_t row, int64_t places, int64_t own)
{
    const float *z = a->z + (int64_t)r * a->columns;
    double error = score_error(a, a->square[r]);
    finding found = {a->few_index[r], a->few_best[r], a->few_second[r] - error};
    double second = a->few_second[r];
    if (own >= places) { /* the row's own centre was not among those scored */
        float score = score_of(a, z, own);
        second = fmin(second, fmax(found.score, score));
        if (score < found.score) {
            found.place = own;
            found.score = score;
        }
        found.others = second - error;
    }
    if (second - found.score > 2 * error)
        return found;
    if (places < a->pack->count)
        return (finding){-1, 0, 0}; /* too close to call without the rest */
    found.place = decide(a, row, NULL, NULL, (int)a->pack->count, INFINITY);
    found.score = score_of(a, z, found.place);
    found.others = fmin(found.others, a->few_best[r] - error);
    return found;
}

static void set_label(assigning *a, int64_t row, int32_t label)
{
    int32_t before = a->memo.label[row];
    if (label == before)
        return;
    a->memo.label[row] = label;
    a->changed(a->context, row, label, before);
}

/* Settles row r of a block; false when it must look at all centres. */
static bool settle(assigning *a, int r, int64_t row, int64_t places, int64_t own)
{
    const kmeans_pack *pack = a->pack;
    bool all = places >= pack->count;
    float outside = all ? INFINITY : down((double)a->memo.lower[row] - pack->drift[places]);
    finding found = pack->few ? find_few(a, r, row, places, all ? -1 : own)
                              : find_tiled(a, r, row, places, all ? -1 : own);
    if (found.place < 0)
        return false;
    double error = score_error(a, a->square[r]);
    float upper = upper_distance(a, a->square[r], found.score + error);
    if (!all && !(upper < outside))
        return false;
    a->memo.upper[row] = upper;
    a->memo.lower[row] = fminf(outside, lower_distance(a, a->square[r], found.others));
    set_label(a, row, pack->id[found.place]);
    return true;
}

/* ---- gathering --------------------------------------------------------------------------------------------- */

static void process(assigning *a, const int32_t *which, int64_t count, int64_t places)
{
    for (int64_t first = 0; first < count; first += a->block) {
        int size = count - first < a->block ? (int)(count - first) : a->block;
        load_block(a, which + first, size);
        score_block(a, size, places);
        for (int r = 0; r < size; r++) {
            int64_t row = which[first + r];
            int32_t label = a->memo.label[row];
            if (!settle(a, r, row, places, label >= 0 ? a->pack->position[label] : -1))
                a->again[a->agains++] = (int32_t)row;
        }
    }
}

/* How many centres, in panels, a row must look at: all that moved more than its bounds can take. */
static int32_t panels_needed(const assigning *a, float upper, float lower)
{
    const kmeans_pack *pack = a->pack;
    int64_t low = 0, high = pack->count;
    int32_t all = (int32_t)((pack->padded + pack->panel - 1) / pack->panel);
    if (!(upper < lower))
        return all;
    while (low < high) { /* the first place whose drift the gap can take */
        int64_t middle = (low + high) / 2;
        if (upper < down((double)lower - pack->drift[middle]))
            high = middle;
        else
            low = middle + 1;
    }
    if (low * 2 > pack->count) /* looking at all costs little more, and makes the bounds tight again */
        return all;
    int64_t step = pack->panel > 16 ? pack->panel : 16;
    return (int32_t)((low + step - 1) / step * step / pack->panel);
}

/* Rows whose bounds hold after the drift are done; the others are listed. */
static int64_t list_pending(assigning *a, int64_t rows)
{
    const kmeans_pack *pack = a->pack;
    const double reach = pack->drift[0];
    int64_t count = 0;
    for (int64_t i = 0; i < rows; i++) {
        int32_t place = pack->position[a->memo.label[i]];
        double drift = place >= 0 ? pack->drift[place] : INFINITY;
        float upper = drift > 0 ? up((double)a->memo.upper[i] + drift) : a->memo.upper[i];
        float lower = reach > 0 ? down((double)a->memo.lower[i] - reach) : a->memo.lower[i];
        if (upper < lower) {
            a->memo.upper[i] = upper;
            a->memo.lower[i] = lower;
        } else {
            a->pending[count++] = (int32_t)i;
        }
    }
    return count;
}

/* Measures the distance to the own centre anew and finds how many centres to look at. */
static int32_t tighten(assigning *a, int64_t row)
{
    const kmeans_pack *pack = a->pack;
    int32_t place = pack->position[a->memo.label[row]];
    if (place < 0)
        return (int32_t)(pack->padded / pack->panel);
    kmeans_rows_centre(a->z, a->rows, row);
    float square = a->kernel->dot(a->z, a->z, a->columns);
    double score = score_of(a, a->z, place) + score_error(a, square);
    float upper = a->memo.upper[row] = upper_distance(a, square, score);
    a->counters[KMEANS_COMPUTED]++;
    int32_t need = panels_needed(a, upper, a->memo.lower[row]);
    if (need == 0)
        a->memo.lower[row] = down((double)a->memo.lower[row] - pack->drift[0]);
    return need;
}

/* Looks at each pending row's own centre and settles what that settles.  The rest is gathered by need, so that a
 * block looks at as many centres as the neediest of its rows; rows that need all go to `again`. */
static void process_pending(assigning *a, int64_t count)
{
    const kmeans_pack *pack = a->pack;
    int32_t all = (int32_t)(pack->padded / pack->panel);
    int32_t most = 0;
    int64_t left = 0, ready = 0;
    for (int64_t i = 0; i < count; i++) {
        int32_t need = tighten(a, a->pending[i]);
        if (need >= all) {
            a->again[a->agains++] = a->pending[i];
        } else if (need > 0) {
            a->pending[left] = a->pending[i];
            a->need[left++] = need;
            most = need > most ? need : most;
        }
    }
    for (int32_t need = 1; need <= most; need++) {
        for (int64_t i = 0; i < left; i++)
            if (a->need[i] == need)
                a->sorted[ready++] = a->pending[i];
        int64_t whole = need == most ? ready : ready / a->block * a->block; /* the others wait for needier ones */
        process(a, a->sorted, whole, (int64_t)need * pack->panel);
        memmove(a->sorted, a->sorted + whole, (size_t)(ready - whole) * sizeof *a->sorted);
        ready -= whole;
    }
}

int kmeans_assign(const kmeans_rows *rows, const kmeans_pack *pack, const double *centres, bool carried,
                  kmeans_changed *changed, void *context, unsigned char *memory, int64_t *counters)
{
    assigning a;
    int64_t count = rows->grain->rows, computed = counters[KMEANS_COMPUTED];
    init(&a, rows, pack, &memory, counters);
    cut_lists(&a, count, memory);
    a.centres = centres;
    a.memo = kmeans_memo_of(rows->grain);
    a.changed = changed;
    a.context = context;
    if (carried) {
        process_pending(&a, list_pending(&a, count));
    } else {
        for (int64_t i = 0; i < count; i++) {
            a.memo.label[i] = -1;
            a.again[i] = (int32_t)i;
        }
        a.agains = count;
    }
    process(&a, a.again, a.agains, pack->padded);
    int64_t saved = count * pack->count - (counters[KMEANS_COMPUTED] - computed);
    counters[KMEANS_SKIPPED] += saved > 0 ? saved : 0;
    return SHOAL_OK;
}

/* ---- seeding ----------------------------------------------------------------------------------------------- */

/* The score a centre must stay below to be nearer than `reach`, with room for every error. */
static float score_limit(const assigning *a, float square, double reach)
{
    double scale = a->rows->view->model->scale, error = score_error(a, square);
    double limit = (reach * scale * scale * (1 + 0x1p-30) - (double)square * (1 - a->norm_slack)) / 2;
    limit += (a->pack->bytes ? 1 : 2) * error;
    return up(limit + fabs(limit) * 0x1p-20);
}

void kmeans_nearer(const kmeans_rows *rows, const kmeans_pack *pack, const int32_t *which, int64_t count,
                   const double *reach, kmeans_visit *visit, void *context, unsigned char *memory, int64_t *counters)
{
    assigning a;
    float rest;
    init(&a, rows, pack, &memory, counters);
    for (int p = 0; pack->few && p < pack->count; p++)
        a.places[p] = p;
    for (int64_t first = 0; first < count; first += a.block) {
        int size = count - first < a.block ? (int)(count - first) : a.block;
        if (pack->few) { /* so few columns that the definition costs no more than a filter */
            for (int r = 0; r < size; r++)
                visit(context, which[first + r], a.places, (int)pack->count);
            continue;
        }
        load_block(&a, which + first, size);
        score_block(&a, size, pack->padded);
        for (int r = 0; r < size; r++) {
            int64_t row = which[first + r];
            int found = a.kernel->select(a.places, &rest, a.scores + (int64_t)r * pack->padded, (int)pack->padded,
                                         score_limit(&a, a.square[r], reach[row]));
            if (found > 0)
                visit(context, row, a.places, found);
        }
    }
}
