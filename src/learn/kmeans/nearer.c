/* For seeding: which of a set of centres may be nearer to a row than what it has.  A filter by scores, whose error
 * bounds are those of assign.h; the caller asks the definition about what is left. */
#include "learn/kmeans/assign.h"

enum { SMALL = 16 }; /* so few centres are scored row by row, without packing */

typedef struct filtering {
    assigning a;
    bool nearest_only;
    const double *reach;
    kmeans_visit *visit;
    void *context;
    assign_tiles tiles;
    float *z, *square, *limit, *few_workspace;
    int32_t *places;
    kernel_nearest few;
} filtering;

static bool is_small(const kmeans_pack *pack)
{
    return pack->count <= SMALL;
}

/* Cuts the workspace and returns its size. */
static size_t cut_filter(filtering *f, const kmeans_pack *pack, const kernel_set *kernel, unsigned char *memory)
{
    unsigned char *const start = memory;
    assign_tiles_cut(&f->tiles, pack, kernel, &memory);
    size_t rows = (size_t)f->tiles.block * sizeof(float);
    f->z = kmeans_cut(&memory, rows * (size_t)pack->columns);
    f->square = kmeans_cut(&memory, rows);
    f->limit = kmeans_cut(&memory, rows);
    f->places = kmeans_cut(&memory, ((size_t)pack->padded + 32) * sizeof(int32_t));
    f->few_workspace = kmeans_cut(&memory, KERNEL_FEW_WORKSPACE * sizeof(float));
    f->few.best = kmeans_cut(&memory, rows);
    f->few.second = kmeans_cut(&memory, rows);
    f->few.index = kmeans_cut(&memory, rows);
    f->few.square = f->square;
    return (size_t)(memory - start);
}

size_t kmeans_nearer_bytes(const kmeans_pack *pack, const kernel_set *kernel)
{
    filtering f;
    static unsigned char anywhere[1];
    return cut_filter(&f, pack, kernel, anywhere);
}

/* The score a centre must stay below to be nearer than `reach`, with room for every error. */
static float score_limit(const filtering *f, float square, int64_t row)
{
    const assigning *a = &f->a;
    double scale = a->rows->view->model->scale;
    double limit = (f->reach[row] * scale * scale * (1 + 0x1p-30) - (double)square * (1 - a->norm_slack)) / 2;
    limit += 2 * assign_error(a, square); /* one would do for scores of bytes, which are lower bounds already */
    return assign_up(limit + fabs(limit) * 0x1p-20);
}

/* Row r of a scored block. */
static void filter_row(filtering *f, int r, int64_t row, const float *scores, int places)
{
    const assigning *a = &f->a;
    float rest, limit = score_limit(f, f->square[r], row);
    if (f->nearest_only) {
        int64_t guess = a->kernel->least(scores, places);
        float score = assign_score(a, f->z + r * a->columns, guess);
        limit = fminf(limit, assign_threshold(a, score, assign_error(a, f->square[r])));
    }
    int count = a->kernel->select(f->places, &rest, scores, places, limit);
    if (count > 0)
        f->visit(f->context, row, f->places, count);
}

/* Row r of a block of few columns and many centres: one place when float32 can tell, all when it can't. */
static void filter_few(filtering *f, int r, int64_t row)
{
    const assigning *a = &f->a;
    if (f->few.best[r] > score_limit(f, f->square[r], row))
        return;
    if (f->nearest_only && f->few.second[r] - (double)f->few.best[r] > 2 * assign_error(a, f->square[r])) {
        f->visit(f->context, row, &f->few.index[r], 1);
        return;
    }
    for (int32_t p = 0; p < a->pack->count; p++)
        f->places[p] = p;
    f->visit(f->context, row, f->places, (int)a->pack->count);
}

static void load_filtered(filtering *f, int r, int64_t row)
{
    const assigning *a = &f->a;
    float *z = f->z + r * a->columns;
    kmeans_rows_centre(z, a->rows, row);
    f->square[r] = a->kernel->dot(z, z, a->columns);
}

static void filter_small(filtering *f, int64_t row)
{
    const kmeans_pack *pack = f->a.pack;
    float *scores = f->tiles.scores;
    load_filtered(f, 0, row);
    f->a.kernel->score_row(scores, f->z, pack->rows, pack->bias, (int)pack->count, pack->columns);
    float limit = score_limit(f, f->square[0], row);
    int count = 0;
    for (int32_t p = 0; p < pack->count; p++)
        if (scores[p] <= limit)
            f->places[count++] = p;
    if (count > 0)
        f->visit(f->context, row, f->places, count);
}

static void filter_block(filtering *f, const int32_t *which, int count)
{
    const kmeans_pack *pack = f->a.pack;
    for (int r = 0; r < count; r++)
        load_filtered(f, r, which[r]);
    if (pack->few) {
        f->a.kernel->nearest_few(&f->few, f->z, count, pack->rows, pack->bias, (int)pack->count, pack->columns,
                                 f->few_workspace);
        for (int r = 0; r < count; r++)
            filter_few(f, r, which[r]);
        return;
    }
    assign_tiles_score(&f->a, &f->tiles, which, f->z, f->square, count, pack->padded);
    for (int r = 0; r < count; r++)
        filter_row(f, r, which[r], f->tiles.scores + r * pack->padded, (int)pack->padded);
}

static void filter(filtering *f, const int32_t *which, int64_t count, unsigned char *memory)
{
    const kmeans_pack *pack = f->a.pack;
    cut_filter(f, pack, f->a.kernel, memory);
    if (is_small(pack)) {
        for (int64_t i = 0; i < count; i++)
            filter_small(f, which[i]);
        f->a.counters[KMEANS_COMPUTED] += count * pack->count;
        return;
    }
    for (int64_t first = 0; first < count; first += f->tiles.block)
        filter_block(f, which + first, count - first < f->tiles.block ? (int)(count - first) : f->tiles.block);
}

/* score_limit for rows first .. first + count - 1, with the norms that quantising left: loops a compiler vectorises. */
static void kept_limits(const filtering *f, float *limit, const kernel_byte_rows *rows, const float *square,
                        const double *reach, int count)
{
    const assigning *a = &f->a;
    const double scale = a->rows->view->model->scale * a->rows->view->model->scale * (1 + 0x1p-30);
    const double less = 1 - a->norm_slack, more = 1 + a->norm_slack;
    const double product = 2 * a->pack->error_product * more, constant = 2 * a->pack->error_constant;
    const double error_square = 2 * a->pack->error_square * more * more;
    for (int r = 0; r < count; r++) {
        double norm = rows->norm[r];
        double bound = (reach[r] * scale - (double)square[r] * less) / 2;
        bound += product * norm + constant + error_square * norm * norm;
        limit[r] = assign_up(bound + fabs(bound) * 0x1p-20);
    }
}

static bool any_at_most(const float *scores, int64_t count, float limit)
{
    int any = 0;
    for (int64_t p = 0; p < (count + 15) / 16 * 16; p++) /* the padding is +infinity */
        any |= scores[p] <= limit;
    return any;
}

/* Scores at most a block of rows that are byte panels, and looks at those with a bound below their limit. */
static void filter_kept(filtering *f, const kernel_byte_rows *bytes, const float *square, int64_t first, int count)
{
    const kmeans_pack *pack = f->a.pack;
    const kernel_set *kernel = f->a.kernel;
    const kernel_byte_rows rows = {.panels = bytes->panels + first * ((pack->columns + 3) / 4 * 4),
                                   .step = bytes->step + first,
                                   .norm = bytes->norm + first,
                                   .residual = bytes->residual + first};
    const kernel_byte_centres centres = kmeans_pack_bytes(pack);
    kernel->score_bytes(f->tiles.scores, pack->padded, &rows, count / kernel->byte_tile_rows, &centres,
                        (int)(pack->padded / pack->panel), pack->columns);
    kept_limits(f, f->limit, &rows, square + first, f->reach + first, count);
    for (int r = 0; r < count; r++) {
        const float *scores = f->tiles.scores + r * pack->padded;
        float limit = f->limit[r];
        int found = 0;
        if (!any_at_most(scores, pack->count, limit))
            continue;
        for (int32_t p = 0; p < pack->count; p++)
            if (scores[p] <= limit)
                f->places[found++] = p;
        f->visit(f->context, first + r, f->places, found);
    }
    f->a.counters[KMEANS_COMPUTED] += count * pack->count;
}

void kmeans_nearer_kept(const kmeans_rows *rows, const kmeans_pack *pack, const kernel_byte_rows *bytes,
                        const float *square, int64_t count, const double *reach, kmeans_visit *visit, void *context,
                        unsigned char *memory, int64_t *counters)
{
    filtering f = {.a = assign_begin(rows, pack, counters), .reach = reach, .visit = visit, .context = context};
    cut_filter(&f, pack, f.a.kernel, memory);
    for (int64_t first = 0; first < count; first += f.tiles.block)
        filter_kept(&f, bytes, square, first, count - first < f.tiles.block ? (int)(count - first) : f.tiles.block);
}

void kmeans_nearer(const kmeans_rows *rows, const kmeans_pack *pack, const int32_t *which, int64_t count,
                   const double *reach, kmeans_visit *visit, void *context, unsigned char *memory, int64_t *counters)
{
    filtering f = {.a = assign_begin(rows, pack, counters), .reach = reach, .visit = visit, .context = context};
    filter(&f, which, count, memory);
}

void kmeans_nearest(const kmeans_rows *rows, const kmeans_pack *pack, const int32_t *which, int64_t count,
                    const double *reach, kmeans_visit *visit, void *context, unsigned char *memory, int64_t *counters)
{
    filtering f = {.a = assign_begin(rows, pack, counters),
                   .nearest_only = true,
                   .reach = reach,
                   .visit = visit,
                   .context = context};
    filter(&f, which, count, memory);
}
