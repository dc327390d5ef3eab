/* An engine made for tests: it drives shoal_kmeans through the contract by hand and does everything an engine may do.
 *
 * Rows are dealt to slices, each with a memo and carried sums of its own.  From a seed: memos vanish (and are filled
 * with garbage), grains are mapped twice, in any order, by any kernel set, into any number of partials merged in any
 * order; what a process prepared is forgotten; and every round's model is copied to fresh memory while the old
 * one is overwritten.  None of it may change a bit. */
#ifndef KMEANS_SUPPORT_H
#define KMEANS_SUPPORT_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <shoal/engine.h>
#include <shoal/kmeans.h>

#include "base/memory.h"
#include "base/random.h"
#include "engine/engine_internal.h"
#include "learn/kmeans/kmeans_internal.h"
#include "learn/partial.h"

/* ---- data -------------------------------------------------------------------------------------------------------- */

typedef enum data_kind {
    DATA_UNIFORM,
    DATA_BLOBS,
    DATA_GRID,   /* small whole numbers: copies and ties */
    DATA_NARROW, /* every third column hardly varies beside the others, so that its sums are wide */
    DATA_OFFSET, /* far from the origin */
    DATA_LINE,   /* row i is i, in every column: equally far from two centres everywhere */
    DATA_TINY,   /* a few of the smallest subnormals */
} data_kind;

static inline double unit(uint64_t seed, uint64_t index, uint32_t draw)
{
    return base_random_unit(seed, BASE_FOR_DATA, index, draw);
}

static inline double made_value(data_kind kind, shoal_type type, uint64_t seed, int64_t i, int64_t k)
{
    double uniform = unit(seed, (uint64_t)i, (uint32_t)k);
    uint64_t blob = base_random_below(9, seed, BASE_FOR_CENTRES, (uint64_t)i, 0);
    switch (kind) {
    case DATA_UNIFORM: return uniform;
    case DATA_BLOBS: return unit(seed + 1, blob, (uint32_t)k) + 0.2 * uniform;
    case DATA_GRID: return floor(4 * uniform) / 4;
    case DATA_NARROW: return k % 3 == 1 ? 1e-40 * uniform : uniform;
    case DATA_OFFSET: return (type == SHOAL_FLOAT64 ? 1e9 : 1e4) * (1 + (double)(k % 7)) + uniform;
    case DATA_LINE: return (double)i / 1024;
    case DATA_TINY: return floor(8 * uniform) * (type == SHOAL_FLOAT64 ? 0x1p-1074 : 0x1p-149);
    }
    return 0;
}

/* rows x columns in `type`, times `factor`; integers of 1/64 steps around zero.  The caller frees it. */
static inline void *make_values(data_kind kind, shoal_type type, int64_t rows, int64_t columns, double factor,
                                uint64_t seed)
{
    unsigned char *values = calloc((size_t)(rows * columns), shoal_type_size(type));
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < columns; k++) {
            double value = made_value(kind, type, seed, i, k) * factor, steps = floor(value * 64);
            void *to = values + (size_t)(i * columns + k) * shoal_type_size(type);
            switch (type) {
            case SHOAL_FLOAT32: *(float *)to = (float)value; break;
            case SHOAL_FLOAT64: *(double *)to = value; break;
            case SHOAL_UINT8: *(uint8_t *)to = (uint8_t)fmin(fmax(steps, 0), 255); break;
            case SHOAL_INT16: *(int16_t *)to = (int16_t)fmin(fmax(steps, -32768), 32767); break;
            case SHOAL_INT64: *(int64_t *)to = (int64_t)steps; break;
            default: fail_msg("no values of that type"); break;
            }
        }
    return values;
}

/* ---- the engine -------------------------------------------------------------------------------------------------- */

typedef struct hand_slice {
    int64_t first, end; /* grains */
    unsigned char *memo;
    int64_t memo_round;
    shoal_partial *kept;
    int set; /* the kernel set that wrote the memo: another one only after a loss, as when another machine takes over */
} hand_slice;

/* What happened, so that a test can tell that it tested something. */
typedef struct hand_story {
    int64_t rounds, carried, lost, twice;
    int64_t phase[KMEANS_PHASES], phase_lost[KMEANS_PHASES];
    int64_t wide_columns;
} hand_story;

enum { HAND_SLICES_MOST = 8, HAND_KERNELS_MOST = 8 };

typedef struct hand_run {
    /* Filled by the caller. */
    const shoal_algorithm *algorithm;
    const void *config;
    const void *values;
    const double *weights;
    shoal_shape shape;
    int slices;
    uint64_t seed;
    double loss, doubling; /* chances that a slice loses its memo, and that a grain is mapped twice */
    const char *kernel;    /* NULL: another one for each slice, and after each loss */
    /* Called when a round's grains are mapped and before update; memos are at slice[..]. */
    void (*look)(const struct hand_run *run, const shoal_round *round);
    void *context;
    hand_story story;

    /* Ours. */
    hand_slice slice[HAND_SLICES_MOST];
    size_t memo_row_bytes;
    uint64_t draws;
    const kernel_set *set[HAND_KERNELS_MOST];
    int sets;
    void *prepared[HAND_KERNELS_MOST];
    bool is_prepared[HAND_KERNELS_MOST];
    shoal_crew crew;
    shoal_scratch scratch[HAND_KERNELS_MOST];
    int64_t counters[SHOAL_COUNTERS];
} hand_run;

static inline uint64_t hand_draw(hand_run *run, uint64_t bound)
{
    return base_random_below(bound, run->seed, BASE_FOR_DATA, run->draws++, 1000);
}

static inline bool hand_chance(hand_run *run, double chance)
{
    return base_random_unit(run->seed, BASE_FOR_DATA, run->draws++, 1000) < chance;
}

/* Items from both ends towards the middle: an order no thread would choose. */
static int hand_each(const shoal_crew *crew, int64_t items, int (*task)(void *, int64_t, int), void *context)
{
    (void)crew;
    for (int64_t i = 0; i < items; i++) {
        int status = task(context, i % 2 ? i / 2 : items - 1 - i / 2, 0);
        if (status < 0)
            return status;
    }
    return SHOAL_OK;
}

static inline void hand_check(int status)
{
    if (status < 0)
        fail_msg("status %d: %s", status, shoal_error());
}

static inline void shuffle(hand_run *run, int64_t *items, int64_t count)
{
    for (int64_t i = count - 1; i > 0; i--) {
        int64_t j = (int64_t)hand_draw(run, (uint64_t)i + 1), item = items[i];
        items[i] = items[j];
        items[j] = item;
    }
}

/* The same round in other memory; the old memory is overwritten before it goes. */
static inline shoal_round *hand_carry_over(shoal_round *round)
{
    shoal_round *copy = NULL;
    hand_check(shoal_round_new(&copy, round->model_bytes));
    void *model = copy->model;
    *copy = *round;
    copy->model = model;
    memcpy(model, round->model, round->model_bytes);
    memset(round->model, 0xa5, round->model_bytes);
    round->keeps = 0; /* what it keeps is the copy's now */
    shoal_round_free(&round);
    return copy;
}

static inline int64_t hand_grain_rows(const shoal_shape *shape, int64_t grain)
{
    int64_t left = shape->rows - grain * shape->rows_per_grain;
    return left < shape->rows_per_grain ? left : shape->rows_per_grain;
}

static inline size_t hand_memo_offset(const hand_run *run, const hand_slice *slice, int64_t grain)
{
    return (size_t)((grain - slice->first) * run->shape.rows_per_grain) * run->memo_row_bytes;
}

static inline void hand_prepare(hand_run *run, int set, const shoal_round *round)
{
    if (run->is_prepared[set])
        return;
    if (hand_chance(run, 0.2))
        run->algorithm->forget(&run->prepared[set]);
    run->crew.kernel = run->set[set]->name;
    hand_check(run->algorithm->prepare(&run->prepared[set], round, &run->shape, &run->crew));
    run->is_prepared[set] = true;
    size_t bytes = run->algorithm->scratch_bytes(round, run->prepared[set], &run->shape);
    base_free(&run->scratch[set].memory); /* allocated each time, so that the sanitizer sees any byte too many */
    hand_check(base_alloc(&run->scratch[set].memory, bytes, 1, "scratch"));
    run->scratch[set].bytes = bytes;
    run->scratch[set].counters = run->counters;
}

static inline void expect_same_partials(const shoal_partial *a, const shoal_partial *b)
{
    const shoal_layout *layout = shoal_partial_layout(a);
    for (int cell = 0; cell < layout->cells; cell++) {
        size_t values = (size_t)learn_cell_values(&layout->cell[cell]);
        if (values)
            assert_memory_equal(shoal_partial_values_const(a, cell), shoal_partial_values_const(b, cell),
                                values * sizeof(int64_t));
        assert_int_equal(shoal_partial_records(a, cell), shoal_partial_records(b, cell));
        for (int64_t r = 0; r < shoal_partial_records(a, cell); r++) {
            shoal_key key_a, key_b;
            const void *bytes_a = shoal_partial_record_at(a, cell, r, &key_a);
            const void *bytes_b = shoal_partial_record_at(b, cell, r, &key_b);
            assert_true(key_a.high == key_b.high && key_a.low == key_b.low);
            if (layout->cell[cell].bytes)
                assert_memory_equal(bytes_a, bytes_b, layout->cell[cell].bytes);
        }
    }
}

static inline void hand_merge(shoal_partial *into, const shoal_partial *from)
{
    const shoal_layout *layout = shoal_partial_layout(into);
    for (int cell = 0; cell < layout->cells; cell++)
        learn_partial_merge_values(into, from, cell, 0, learn_cell_values(&layout->cell[cell]));
    hand_check(learn_partial_merge_records(into, from));
}

/* Maps one grain into `partial`, whose ROW cells are the merged one's. */
static inline void hand_map(hand_run *run, shoal_partial *partial, const shoal_round *round, const hand_slice *slice,
                            int64_t index, int set, bool carried)
{
    int64_t first = index * run->shape.rows_per_grain, rows = hand_grain_rows(&run->shape, index);
    size_t row_bytes = (size_t)run->shape.columns * shoal_type_size(run->shape.type);
    size_t memo_bytes = (size_t)rows * run->memo_row_bytes;
    unsigned char *memo = slice->memo ? slice->memo + hand_memo_offset(run, slice, index) : NULL;
    shoal_grain grain = {.shape = &run->shape,
                         .index = index,
                         .first_row = first,
                         .rows = rows,
                         .values = (const unsigned char *)run->values + (size_t)first * row_bytes,
                         .weights = run->weights ? run->weights + first : NULL,
                         .memo = memo,
                         .carried = carried};
    bool twice = hand_chance(run, run->doubling);
    unsigned char *before = malloc(memo_bytes + 1), *spare = malloc(memo_bytes + 1);
    shoal_partial *thrown_away = NULL, *fresh = NULL;
    hand_prepare(run, set, round);
    if (memo) {
        memcpy(before, memo, memo_bytes);
        memcpy(spare, memo, memo_bytes);
    }
    hand_check(learn_partial_new(&fresh, &round->layout, 0, run->shape.rows, partial));
    if (twice) {
        hand_check(learn_partial_new(&thrown_away, &round->layout, 0, run->shape.rows, NULL));
        grain.memo = memo ? spare : NULL;
        memset(run->scratch[set].memory, 0x5a, run->scratch[set].bytes);
        hand_check(run->algorithm->map(thrown_away, round, run->prepared[set], &grain, &run->scratch[set]));
        run->story.twice++;
    }
    grain.memo = memo;
    memset(run->scratch[set].memory, 0xc3, run->scratch[set].bytes);
    hand_check(run->algorithm->map(fresh, round, run->prepared[set], &grain, &run->scratch[set]));
    if (twice) { /* a map is a function: of the grain, its memo and the round */
        expect_same_partials(fresh, thrown_away);
        if (memo)
            assert_memory_equal(memo, spare, memo_bytes);
    }
    if (memo && !round->layout.writes_memo)
        assert_memory_equal(memo, before, memo_bytes);
    hand_merge(partial, fresh);
    learn_partial_free(&fresh);
    learn_partial_free(&thrown_away);
    free(before);
    free(spare);
}

static inline bool has_carried_cells(const shoal_layout *layout)
{
    bool carried = false;
    for (int i = 0; i < layout->cells; i++)
        carried |= layout->cell[i].carried;
    return carried;
}

static inline void hand_lose(hand_run *run, hand_slice *slice, const shoal_round *round)
{
    size_t bytes = (size_t)((slice->end - slice->first) * run->shape.rows_per_grain) * round->layout.memo_row_bytes;
    for (size_t i = 0; slice->memo && i < bytes; i++)
        slice->memo[i] = (unsigned char)hand_draw(run, 256);
    slice->memo_round = -1;
    learn_partial_free(&slice->kept);
    run->story.lost++;
    run->story.phase_lost[((const kmeans_model *)round->model)->phase]++;
}

static inline void hand_make_memos(hand_run *run, const shoal_round *round)
{
    size_t bytes = round->layout.memo_row_bytes;
    for (int s = 0; s < run->slices && bytes != run->memo_row_bytes; s++) {
        hand_slice *slice = &run->slice[s];
        free(slice->memo);
        slice->memo =
            bytes ? malloc((size_t)((slice->end - slice->first) * run->shape.rows_per_grain) * bytes + 1) : NULL;
        slice->memo_round = -1;
        for (size_t i = 0; slice->memo && i < (size_t)((slice->end - slice->first) * run->shape.rows_per_grain) * bytes;
             i++)
            slice->memo[i] = (unsigned char)hand_draw(run, 256);
    }
    run->memo_row_bytes = bytes;
}

/* One slice of one round: its partial, which stays with it when the round writes the memo. */
static inline void hand_map_slice(hand_run *run, shoal_partial *merged, hand_slice *slice, const shoal_round *round)
{
    const shoal_layout *layout = &round->layout;
    if (layout->carry_from >= 0 && slice->memo_round == layout->carry_from && hand_chance(run, run->loss))
        hand_lose(run, slice, round);
    bool carried = layout->carry_from >= 0 && slice->memo_round == layout->carry_from;
    if (carried && has_carried_cells(layout))
        carried = slice->kept && learn_layout_equal(shoal_partial_layout(slice->kept), layout);
    shoal_partial *sum = NULL;
    if (carried && has_carried_cells(layout)) {
        sum = slice->kept;
        slice->kept = NULL;
        learn_partial_clear(sum, true);
    } else {
        hand_check(learn_partial_new(&sum, layout, 0, run->shape.rows, merged));
    }
    run->story.carried += carried;

    int64_t grains = slice->end - slice->first, *order = malloc((size_t)(grains + 1) * sizeof *order);
    for (int64_t g = 0; g < grains; g++)
        order[g] = slice->first + g;
    shuffle(run, order, grains);
    if (!carried && (layout->writes_memo || slice->memo_round < 0))
        slice->set = run->kernel ? 0 : (int)hand_draw(run, (uint64_t)run->sets);
    for (int64_t g = 0; g < grains;) { /* some grains into a partial of their own, then that into the slice's */
        shoal_partial *part = NULL;
        int64_t some = 1 + (int64_t)hand_draw(run, 3);
        hand_check(learn_partial_new(&part, layout, 0, run->shape.rows, merged));
        for (; some > 0 && g < grains; some--)
            hand_map(run, part, round, slice, order[g++], slice->set, carried);
        hand_merge(sum, part);
        learn_partial_free(&part);
    }
    free(order);
    hand_merge(merged, sum);
    if (layout->writes_memo) {
        learn_partial_free(&slice->kept);
        slice->memo_round = round->number;
    }
    if (layout->writes_memo && has_carried_cells(layout))
        slice->kept = sum;
    else
        learn_partial_free(&sum);
}

static inline shoal_partial *hand_map_all(hand_run *run, const shoal_round *round)
{
    shoal_partial *merged = NULL;
    int64_t order[HAND_SLICES_MOST];
    hand_make_memos(run, round);
    memset(run->is_prepared, 0, sizeof run->is_prepared);
    hand_check(learn_partial_new(&merged, &round->layout, 0, run->shape.rows, NULL));
    for (int s = 0; s < run->slices; s++)
        order[s] = s;
    shuffle(run, order, run->slices);
    for (int s = 0; s < run->slices; s++)
        hand_map_slice(run, merged, &run->slice[order[s]], round);
    hand_check(learn_partial_settle(merged));
    return merged;
}

static inline void hand_begin(hand_run *run)
{
    const kernel_set *chosen = NULL;
    if (run->kernel) {
        hand_check(kernel_choose(&chosen, run->kernel));
        run->set[0] = chosen;
        run->sets = 1;
    } else {
        run->sets = kernel_list(run->set);
    }
    run->crew = (shoal_crew){.each = hand_each, .threads = 1, .kernel = run->set[0]->name};
    run->shape.grains = (run->shape.rows + run->shape.rows_per_grain - 1) / run->shape.rows_per_grain;
    run->shape.weighted = run->weights != NULL;
    for (int s = 0; s < run->slices; s++)
        run->slice[s] = (hand_slice){.first = run->shape.grains * s / run->slices,
                                     .end = run->shape.grains * (s + 1) / run->slices,
                                     .memo_round = -1};
}

static inline void hand_end(hand_run *run)
{
    for (int s = 0; s < run->slices; s++) {
        free(run->slice[s].memo);
        learn_partial_free(&run->slice[s].kept);
    }
    for (int i = 0; i < run->sets; i++) {
        run->algorithm->forget(&run->prepared[i]);
        base_free(&run->scratch[i].memory);
    }
}

/* Runs to the end; the result is the caller's.  Failures of a map are failures of the test; that of start or update is
 * returned. */
static inline int hand_run_all(shoal_result **out, hand_run *run)
{
    shoal_round *round = NULL;
    hand_begin(run);
    int status = run->algorithm->start(&round, run->config, &run->shape);
    while (status == SHOAL_OK && !*out) {
        shoal_round *next = NULL;
        round = hand_carry_over(round);
        const kmeans_model *model = round->model;
        run->story.phase[model->phase]++;
        run->story.rounds++;
        run->story.wide_columns = model->wide;
        shoal_partial *merged = hand_map_all(run, round);
        if (run->look)
            run->look(run, round);
        run->crew.kernel = run->set[hand_draw(run, (uint64_t)run->sets)]->name;
        unsigned char *before = malloc(round->model_bytes);
        memcpy(before, round->model, round->model_bytes);
        status = run->algorithm->update(&next, out, round, merged, &run->shape, &run->crew, false);
        assert_memory_equal(before, round->model, round->model_bytes); /* update makes, it does not change */
        free(before);
        learn_partial_free(&merged);
        if (status == SHOAL_OK)
            assert_true((next != NULL) != (*out != NULL));
        if (next)
            engine_number_round(next, round->number + 1);
        shoal_round_free(&round);
        round = next;
    }
    shoal_round_free(&round);
    hand_end(run);
    return status;
}

/* Everything a result holds is the same, to the bit. */
static inline void expect_same_results(const shoal_result *a, const shoal_result *b)
{
    assert_int_equal(a->tensors, b->tensors);
    for (int t = 0; t < a->tensors; t++) {
        const shoal_tensor *x = &a->tensor[t], *y = &b->tensor[t];
        size_t bytes = shoal_type_size(x->type);
        assert_string_equal(x->name, y->name);
        assert_int_equal(x->type, y->type);
        assert_int_equal(x->rank, y->rank);
        for (int r = 0; r < x->rank; r++) {
            assert_int_equal(x->shape[r], y->shape[r]);
            bytes *= (size_t)x->shape[r];
        }
        assert_memory_equal(x->values, y->values, bytes);
    }
    assert_int_equal(a->numbers, b->numbers);
    for (int n = 0; n < a->numbers; n++) {
        assert_string_equal(a->number[n].name, b->number[n].name);
        assert_memory_equal(&a->number[n].value, &b->number[n].value, sizeof(double));
    }
}

#endif
