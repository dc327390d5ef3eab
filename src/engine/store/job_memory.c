/* How much memory a worker needs in a round.  See job_memory.h. */
#include "engine/store/job_memory.h"

#include <stdio.h>

#include "engine/store/job_run.h"
#include "learn/partial.h"

/* This round's model, the next one's, the bytes of one in transit, and what a learner derives from it. */
enum { MODEL_COPIES = 4 };

/* The program itself, its threads and its connections. */
static const int64_t PROGRAM = 16 << 20;

/* The overhead of a partial. */
enum { PARTIAL_HEAD = 4096 };

/* ---- sums that stop at the end ----------------------------------------------------------------------------------- */

static int64_t add_bytes(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

static int64_t times(int64_t a, int64_t b)
{
    int64_t product;
    return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

static int64_t bytes_of(size_t bytes)
{
    return bytes > INT64_MAX ? INT64_MAX : (int64_t)bytes;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- partials ---------------------------------------------------------------------------------------------------- */

/* One partial but for its ROW cells.  Cells start at cache lines, and new records are held beside the old ones. */
static int64_t values_bytes(const shoal_layout *layout)
{
    int64_t bytes = PARTIAL_HEAD;
    for (int i = 0; i < layout->cells; i++) {
        const shoal_cell *cell = &layout->cell[i];
        int64_t record = add_bytes(bytes_of(cell->bytes), sizeof(shoal_key));
        if (cell->kind == SHOAL_CELL_RECORD)
            bytes = add_bytes(bytes, times(2, times(cell->count, record)));
        else if (cell->kind != SHOAL_CELL_ROW)
            bytes = add_bytes(bytes, add_bytes(64, times(cell->count, cell->kind == SHOAL_CELL_WIDE ? 16 : 8)));
    }
    return bytes;
}

static int64_t row_bytes(const shoal_layout *layout)
{
    int64_t bytes = 0;
    for (int i = 0; i < layout->cells; i++)
        if (layout->cell[i].kind == SHOAL_CELL_ROW)
            bytes = add_bytes(bytes, bytes_of(layout->cell[i].bytes));
    return bytes;
}

/* The sums of all groups that this worker may merge: alone, it merges all of them.  Those of each level cover all
 * rows. */
static int64_t sums_bytes(const job_spec *spec, const shoal_layout *layout, unsigned roles)
{
    const job_tree *tree = job_spec_tree(spec, layout);
    int64_t bytes = 0;
    for (int level = 1; level < tree->levels; level++) {
        unsigned role = level + 1 < tree->levels ? SHOAL_ROLE_REDUCE : SHOAL_ROLE_LAST;
        if (roles & role) /* a sum has room for all ranges */
            bytes = add_bytes(bytes, add_bytes(times(tree->nodes[level], values_bytes(layout)),
                                               times(spec->shape.rows, row_bytes(layout))));
    }
    return bytes;
}

/* The rows of the largest slice. */
static int64_t slice_rows(const job_spec *spec)
{
    int64_t grains = 1;
    for (int64_t i = 0; i < spec->slices; i++)
        grains = spec->slice[i].grains > grains ? spec->slice[i].grains : grains;
    return least(spec->shape.rows, times(grains, spec->shape.rows_per_grain));
}

static bool merges(unsigned roles)
{
    return roles & (SHOAL_ROLE_REDUCE | SHOAL_ROLE_LAST);
}

/* The least on its way: one piece that is put or fetched; pieces of a group have no more rows than there are.  A worker
 * that only maps puts slices one by one. */
static int64_t travelling_bytes(const job_spec *spec, const shoal_layout *layout, unsigned roles)
{
    return add_bytes(values_bytes(layout),
                     times(merges(roles) ? spec->shape.rows : slice_rows(spec), row_bytes(layout)));
}

/* How many more may be fetched with it, into that much room. */
static int64_t more_pieces(const job_spec *spec, const shoal_layout *layout, unsigned roles, int64_t room)
{
    const job_tree *tree = job_spec_tree(spec, layout);
    int64_t most = tree->ranges, piece = values_bytes(layout) / tree->ranges;
    for (int level = 0; merges(roles) && level + 1 < spec->tree.levels; level++)
        most = spec->tree.fan[level] > most ? spec->tree.fan[level] : most;
    most = least(most, JOB_FETCHED_AT_ONCE) - 1;
    return piece > 0 ? least(most, room / piece) : most;
}

/* As job_piece.c and learn/wire.h write it. */
int64_t job_memory_piece(const shoal_layout *layout, int64_t slices, int64_t rows)
{
    int64_t partial_head = sizeof(uint32_t) + 2 * sizeof(int64_t);
    int64_t bytes = add_bytes(JOB_PIECE_HEAD + partial_head, times(slices, sizeof(uint64_t)));
    for (int i = 0; i < layout->cells; i++) {
        const shoal_cell *cell = &layout->cell[i];
        int64_t record = add_bytes(bytes_of(cell->bytes), sizeof(shoal_key));
        if (cell->kind == SHOAL_CELL_RECORD)
            bytes = add_bytes(bytes, cell->count ? add_bytes(sizeof(uint64_t), times(cell->count, record)) : INT64_MAX);
        else if (cell->kind == SHOAL_CELL_ROW)
            bytes = add_bytes(bytes, times(rows, bytes_of(cell->bytes)));
        else
            bytes = add_bytes(bytes, times(cell->count, cell->kind == SHOAL_CELL_WIDE ? 16 : 8));
    }
    return bytes;
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

int64_t job_memory_kept_rows(int64_t limit)
{
    return limit / 8;
}

int64_t job_memory_blob(int64_t limit)
{
    return limit / 2;
}

/* A file's rows are mapped, and the system may take the memory back. */
static int64_t held_rows_bytes(const job_spec *spec, const job_means *means)
{
    const shoal_shape *shape = &spec->shape;
    int64_t one = times(shape->columns, (int64_t)shoal_type_size(shape->type));
    int64_t grain = times(shape->rows_per_grain, one);
    int64_t all = times(slice_rows(spec), one);
    if (spec->source == JOB_FILE)
        return 0;
    if (spec->source != JOB_GENERATED || all <= job_memory_kept_rows(means->limit))
        return all;
    return least(all, times(grain, means->threads));
}

static int64_t slice_bytes(const job_spec *spec, const shoal_layout *layout, const job_means *means, size_t memo)
{
    int64_t a_row = add_bytes(add_bytes(bytes_of(memo), row_bytes(layout)), spec->shape.weighted ? 8 : 0);
    int64_t partials = times(layout->memo_row_bytes ? 2 : 1, values_bytes(layout)); /* one is carried over */
    return add_bytes(add_bytes(times(slice_rows(spec), a_row), partials), held_rows_bytes(spec, means));
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

static int64_t kept_bytes(const shoal_round *round)
{
    int64_t bytes = 0, largest = 0;
    for (int i = 0; i < round->keeps; i++) {
        int64_t part = bytes_of(round->kept[i]->bytes);
        bytes = add_bytes(bytes, part);
        largest = part > largest ? part : largest;
    }
    return add_bytes(bytes, largest); /* one is in transit */
}

static int64_t notes_bytes(const job_spec *spec)
{
    int64_t piece = (int64_t)(2 + sizeof(int64_t[JOB_COUNTERS]) + sizeof(shoal_partial *) + sizeof(job_put));
    int64_t pieces = spec->ranged.pieces > spec->tree.pieces ? spec->ranged.pieces : spec->tree.pieces;
    return add_bytes(times(pieces, piece), times(spec->slices, (int64_t)(sizeof(job_held) + sizeof(uint64_t))));
}

static void write_bytes(char out[32], int64_t bytes)
{
    static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB", "PB", "EB"};
    double value = (double)bytes;
    int unit = 0;
    for (; value >= 999.5 && unit < 6; unit++)
        value /= 1000;
    snprintf(out, 32, "%.3g %s", value, units[unit]);
}

static int fail_need(const job_spec *spec, const shoal_round *round, int64_t need, int64_t limit)
{
    char needs[32], has[32];
    write_bytes(needs, need);
    write_bytes(has, limit);
    return shoal_fail(SHOAL_MEMORY,
                      "job %s needs %s of memory in round %lld, and this worker may use %s (--memory, or "
                      "--worker-memory where it is started)",
                      spec->id, needs, (long long)round->number, has);
}

int job_memory_plan(job_memory *out, const job_spec *spec, const shoal_round *round, const job_means *means)
{
    const shoal_layout *layout = &round->layout;
    int64_t fixed = add_bytes(PROGRAM, notes_bytes(spec));
    fixed = add_bytes(fixed, times(MODEL_COPIES, bytes_of(round->model_bytes)));
    fixed = add_bytes(fixed, sums_bytes(spec, layout, means->roles));
    fixed = add_bytes(fixed, travelling_bytes(spec, layout, means->roles));
    if (means->roles & SHOAL_ROLE_LAST)
        fixed = add_bytes(fixed, kept_bytes(round));
    if (means->threads > 1)
        fixed = add_bytes(fixed, times(means->threads, values_bytes(layout)));
    int64_t slice = means->roles & SHOAL_ROLE_MAP ? slice_bytes(spec, layout, means, layout->memo_row_bytes) : 0;
    bool spared = layout->memo_row_bytes > 0 && means->spares_memo && slice > (means->limit - fixed) / 2;
    if (spared && slice > 0)
        slice = slice_bytes(spec, layout, means, 0);
    *out = (job_memory){.fixed = fixed, .slice = slice, .blob = job_memory_blob(means->limit), .spared = spared};
    if (add_bytes(fixed, slice) > means->limit)
        return fail_need(spec, round, add_bytes(fixed, slice), means->limit);
    int64_t more = more_pieces(spec, layout, means->roles, means->limit - fixed - slice);
    out->fetched = 1 + more;
    out->fixed = fixed = add_bytes(fixed, times(more, values_bytes(layout) / job_spec_tree(spec, layout)->ranges));
    out->slices = slice > 0 ? (means->limit - fixed) / slice : spec->slices;
    out->spare = means->limit - fixed - slice;
    return SHOAL_OK;
}

void job_memory_scratch(job_memory *plan, int64_t scratch)
{
    if (plan->slice > 0)
        plan->slices = 1 + (plan->spare > scratch ? plan->spare - scratch : 0) / plan->slice;
}
