/* Labels: threads
 * Batches: on any number of threads and ranks, and with rows and memos from anywhere, maps see the rows that a pick
 * names, and no others, in the groups that it asks for. */
#include "ranks_support.h"

#include "data/data_internal.h"
#include "engine/slice.h"
#include "kernel/kernel.h"
#include "learn/pick.h"

/* ---- a learner that notes what its maps see ---------------------------------------------------------------------- */

enum { COLUMNS = 3 };

typedef struct noter {
    int64_t strata, held, batch, group, epochs;
    bool fills_memo; /* the first round writes a memo, which batches read */
} noter;

typedef struct noter_model {
    noter of;
    int64_t epoch, from; /* from -1: a round over all rows; -2 and -3: over those drawn, and held */
} noter_model;

static int notes_strata(const void *config, shoal_shape *shape)
{
    const noter *of = config;
    shape->strata = of->strata;
    shape->held = of->held;
    return SHOAL_OK;
}

static void describe(shoal_round *round, const shoal_shape *shape)
{
    const noter_model *model = round->model;
    shoal_layout *layout = &round->layout;
    layout->cells = 0;
    layout->cell[layout->cells++] = (shoal_cell){.name = "seen", .kind = SHOAL_CELL_SUM, .count = shape->rows};
    layout->cell[layout->cells++] = (shoal_cell){.name = "maps", .kind = SHOAL_CELL_SUM, .count = 1};
    layout->cell[layout->cells++] = (shoal_cell){.name = "largest", .kind = SHOAL_CELL_MAX, .count = 1};
    layout->cell[layout->cells++] = (shoal_cell){.name = "wrong", .kind = SHOAL_CELL_SUM, .count = 1};
    if (model->from >= 0)
        layout->pick = (shoal_pick){.key = (uint64_t)(7 + model->epoch),
                                    .from = model->from,
                                    .count = model->of.batch,
                                    .group = model->of.group};
    layout->part = model->from == -2 ? SHOAL_DRAWN : model->from == -3 ? SHOAL_HELD : SHOAL_ALL;
    layout->memo_row_bytes = model->of.fills_memo ? sizeof(int64_t) : 0;
    layout->writes_memo = model->of.fills_memo && model->from == -1;
    layout->carry_from = model->of.fills_memo && model->from != -1 ? 0 : -1;
    snprintf(round->phase, sizeof round->phase, "run");
}

static int notes_start(shoal_round **out, const void *config, const shoal_shape *shape)
{
    int status = shoal_round_new(out, sizeof(noter_model));
    if (status < 0)
        return status;
    *(noter_model *)(*out)->model = (noter_model){.of = *(const noter *)config, .from = -1};
    describe(*out, shape);
    return SHOAL_OK;
}

static size_t notes_scratch(const shoal_round *round, const void *prepared, const shoal_shape *shape)
{
    (void)round, (void)prepared, (void)shape;
    return 0;
}

/* A row's first value is its number, and its weight and memo go with it. */
static bool row_is_wrong(const shoal_round *round, const shoal_grain *grain, int64_t i, int64_t number)
{
    const double *values = grain->values;
    const noter_model *model = round->model;
    bool wrong = values[i * COLUMNS] != (double)number || values[i * COLUMNS + 2] != (double)(number % 10);
    wrong |= grain->weights && grain->weights[i] != 0.25 + (double)(number % 5);
    wrong |= (grain->weights != NULL) != grain->shape->weighted;
    if (model->of.fills_memo && model->from != -1)
        wrong |= grain->carried && ((const int64_t *)grain->memo)[i] != number * 3;
    return wrong;
}

static int notes_map(shoal_partial *partial, const shoal_round *round, const void *prepared, const shoal_grain *grain,
                     const shoal_scratch *scratch)
{
    const noter_model *model = round->model;
    int64_t *seen = shoal_partial_values(partial, 0), *wrong = shoal_partial_values(partial, 3);
    (void)prepared, (void)scratch;
    *wrong += (model->from >= 0) != (grain->row != NULL) || grain->rows < 1;
    *wrong += model->from >= 0 && grain->first_row != -1;
    for (int64_t i = 0; i < grain->rows; i++) {
        int64_t number = grain->row ? grain->row[i] : grain->first_row + i;
        if (round->layout.writes_memo)
            ((int64_t *)grain->memo)[i] = number * 3;
        seen[number] += 1 + (grain->index << 8);
        *wrong += row_is_wrong(round, grain, i, number);
    }
    *shoal_partial_values(partial, 1) += 1;
    shoal_max_raise(shoal_partial_values(partial, 2), 0, (double)grain->rows);
    return SHOAL_OK;
}

/* ---- what its maps should see ------------------------------------------------------------------------------------ */

/* test_pick.c has what places and orders are; here they are laid out in groups. */
static int64_t expect_batch(int64_t *seen, int64_t *maps, int64_t *largest, const shoal_pick *pick,
                            const shoal_shape *shape)
{
    int64_t rows = 0, groups = learn_pick_groups(pick, shape);
    for (int64_t s = 0; s < shape->strata; s++) {
        learn_stratum of = learn_stratum_at(shape, s);
        learn_places places = learn_pick_places(pick, shape, &of);
        learn_order order = learn_order_of(pick->key, s, of.drawn);
        for (int64_t i = 0; i < places.count; i++)
            seen[of.first + learn_order_row(&order, places.from + i)] += 1 + ((s * groups + i / pick->group) << 8);
        *maps += (places.count + pick->group - 1) / pick->group;
        *largest = *largest > places.count ? *largest : places.count;
        rows += places.count;
    }
    *largest = *largest < pick->group ? *largest : pick->group;
    return rows;
}

static void expect_part(int64_t *seen, int64_t *maps, int64_t *largest, shoal_part part, const shoal_shape *shape)
{
    for (int64_t grain = 0; grain < shape->grains; grain++) {
        learn_places rows = learn_part_of_grain(part, shape, grain);
        for (int64_t i = 0; i < rows.count; i++)
            seen[rows.from + i] += 1 + (grain << 8);
        *maps += rows.count > 0;
        *largest = *largest > rows.count ? *largest : rows.count;
    }
}

/* The next round: the other parts, the epochs in batches, the end. */
static bool notes_next(noter_model *model, const shoal_shape *shape)
{
    if (model->from < 0 && model->from > -3) {
        model->from--;
        return true;
    }
    model->from = model->from < 0 ? 0 : model->from + model->of.batch;
    if (model->from >= shape->rows - shape->held) {
        model->from = 0;
        model->epoch++;
        model->of.batch += 5; /* batches may change their size */
    }
    return model->epoch < model->of.epochs;
}

static int notes_update(shoal_round **next, shoal_result **result, const shoal_round *round, shoal_partial *merged,
                        const shoal_shape *shape, const shoal_crew *crew, bool stop)
{
    const noter_model *model = round->model;
    const shoal_layout *layout = &round->layout;
    int64_t *seen = calloc((size_t)shape->rows, sizeof *seen), maps = 0, largest = 0;
    (void)crew, (void)stop;
    if (layout->pick.count) {
        int64_t rows = expect_batch(seen, &maps, &largest, &layout->pick, shape);
        if (rows != shoal_pick_rows(&layout->pick, shape))
            return shoal_fail(SHOAL_INVALID, "a batch of %lld rows", (long long)rows);
    } else {
        expect_part(seen, &maps, &largest, layout->part, shape);
    }
    bool same = memcmp(seen, shoal_partial_values(merged, 0), (size_t)shape->rows * sizeof *seen) == 0;
    free(seen);
    if (!same || maps != *shoal_partial_values(merged, 1) || *shoal_partial_values(merged, 3) != 0 ||
        (maps > 0 && shoal_max_value(*shoal_partial_values(merged, 2)) != (double)largest))
        return shoal_fail(SHOAL_INVALID, "round %lld: other rows, or wrong ones (%lld)", (long long)round->number,
                          (long long)*shoal_partial_values(merged, 3));
    noter_model following = *model;
    if (!notes_next(&following, shape)) {
        int status = shoal_result_new(result);
        if (status == SHOAL_OK)
            shoal_result_set_whole(*result, "rounds", round->number);
        return status;
    }
    int status = shoal_round_new(next, sizeof following);
    if (status < 0)
        return status;
    *(noter_model *)(*next)->model = following;
    describe(*next, shape);
    return SHOAL_OK;
}

static const shoal_algorithm notes = {
    ANY_ROUND,           .name = "notes",       .summary = "notes",     .config_size = sizeof(noter),
    .kernel_free = true, .start = notes_start,  .strata = notes_strata, .scratch_bytes = notes_scratch,
    .map = notes_map,    .update = notes_update};

/* ---- runs -------------------------------------------------------------------------------------------------------- */

static shoal_data *make_rows(double **values, int64_t rows)
{
    shoal_data *data = NULL;
    *values = calloc((size_t)(rows * COLUMNS), sizeof **values);
    for (int64_t i = 0; i < rows; i++) {
        (*values)[i * COLUMNS] = (double)i;
        (*values)[i * COLUMNS + 2] = (double)(i % 10);
    }
    assert_int_equal(shoal_data_wrap(&data, *values, rows, COLUMNS, SHOAL_FLOAT64), SHOAL_OK);
    return data;
}

static void expect_noted(const noter *of, int64_t rows, int64_t grain, bool weighted)
{
    double *values = NULL, *weights = weighted ? make_weights(rows) : NULL;
    shoal_data *data = make_rows(&values, rows);
    scene at = {
        .algorithm = &notes, .config = of, .data = data, .weights = weights, .options = {.rows_per_grain = grain}};
    expect_same_everywhere(&at, NULL);
    shoal_data_free(&data);
    free(values);
    free(weights);
}

static void test_batches_of_every_kind(void **state)
{
    (void)state;
    static const struct {
        noter of;
        int64_t rows, grain;
        bool weighted;
    } cases[] = {
        {{.strata = 16, .batch = 64, .group = 4, .epochs = 2}, 1600, 20, false},
        {{.strata = 16, .batch = 64, .group = 3, .epochs = 2}, 1613, 20, true}, /* nothing is divisible */
        {{.strata = 7, .held = 100, .batch = 50, .group = 16, .epochs = 2}, 900, 30, false},
        {{.strata = 1000, .batch = 9, .group = 2, .epochs = 1}, 60, 10, true},     /* fewer grains than strata */
        {{.strata = 4, .batch = 1000, .group = 1000, .epochs = 3}, 77, 10, false}, /* batches of everything */
        {{.strata = 1, .batch = 10, .group = 7, .epochs = 2}, 45, 100, true},      /* one grain, one stratum */
        {{.strata = 3, .held = 29, .batch = 1, .group = 1, .epochs = 1}, 30, 5, false},
        {{.strata = 2, .batch = 1, .group = 1, .epochs = 1}, 1, 1, true}, /* one row */
        {{.strata = 8, .batch = 40, .group = 6, .epochs = 2, .fills_memo = true}, 500, 11, false},
        {{.strata = 8, .held = 90, .batch = 40, .group = 6, .epochs = 2, .fills_memo = true}, 500, 11, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_noted(&cases[i].of, cases[i].rows, cases[i].grain, cases[i].weighted);
}

/* ---- rows that are made whenever they are read ------------------------------------------------------------------- */

/* Sums of the rows of each batch, as bits. */
static int sums_map(shoal_partial *partial, const shoal_round *round, const void *prepared, const shoal_grain *grain,
                    const shoal_scratch *scratch)
{
    const float *values = grain->values;
    (void)round, (void)prepared, (void)scratch;
    for (int64_t i = 0; i < grain->rows * grain->shape->columns; i++)
        shoal_partial_values(partial, 0)[0] += (int64_t)(values[i] * 0x1p20F) * (1 + i % 7);
    return SHOAL_OK;
}

static int sums_start(shoal_round **out, const void *config, const shoal_shape *shape)
{
    (void)config, (void)shape;
    int status = shoal_round_new(out, sizeof(int64_t));
    if (status < 0)
        return status;
    (*out)->layout.cells = 1;
    (*out)->layout.cell[0] = (shoal_cell){.name = "sum", .kind = SHOAL_CELL_SUM, .count = 1};
    (*out)->layout.pick = (shoal_pick){.key = 3, .count = 37, .group = 5};
    return SHOAL_OK;
}

static int sums_strata(const void *config, shoal_shape *shape)
{
    (void)config;
    shape->strata = 6;
    return SHOAL_OK;
}

static int sums_update(shoal_round **next, shoal_result **result, const shoal_round *round, shoal_partial *merged,
                       const shoal_shape *shape, const shoal_crew *crew, bool stop)
{
    (void)crew, (void)stop;
    int64_t sum = (*(const int64_t *)round->model * 31 + *shoal_partial_values(merged, 0)) % (INT64_C(1) << 50);
    shoal_pick pick = round->layout.pick;
    pick.from += pick.count;
    if (pick.from >= shape->rows) {
        int status = shoal_result_new(result);
        if (status == SHOAL_OK)
            shoal_result_set(*result, "sum", (double)sum);
        return status;
    }
    int status = sums_start(next, NULL, shape);
    if (status == SHOAL_OK) {
        *(int64_t *)(*next)->model = sum;
        (*next)->layout.pick = pick;
    }
    return status;
}

static const shoal_algorithm sums = {ANY_ROUND,
                                     .name = "sums",
                                     .summary = "sums",
                                     .kernel_free = true,
                                     .start = sums_start,
                                     .strata = sums_strata,
                                     .scratch_bytes = notes_scratch,
                                     .map = sums_map,
                                     .update = sums_update};

static void test_made_rows_need_not_be_held(void **state)
{
    (void)state;
    double kept = 0;
    for (int64_t memory = 0; memory < 2; memory++) { /* 0: they fit; 1 byte: they are made again */
        shoal_data *data = open_data("gen:uniform?rows=700&cols=5&seed=4");
        shoal_result *result = NULL;
        scene at = {.algorithm = &sums, .data = data, .options = {.rows_per_grain = 30, .memory = memory}};
        expect_same_everywhere(&at, &result);
        double sum = shoal_result_number(result, "sum");
        assert_true(memory == 0 || sum == kept);
        kept = sum;
        shoal_result_free(&result);
        shoal_data_free(&data);
    }
}

/* ---- what a learner must not ask for ----------------------------------------------------------------------------- */

static int bad_strata(const void *config, shoal_shape *shape)
{
    const noter *of = config;
    shape->strata = of->strata;
    shape->held = of->held;
    return SHOAL_OK;
}

static void test_strata_that_can_not_be(void **state)
{
    (void)state;
    shoal_algorithm bad = notes;
    double *values = NULL;
    shoal_data *data = make_rows(&values, 100);
    static const noter cases[] = {{.strata = -1}, {.strata = 2, .held = 100}, {.strata = 2, .held = -1}, {.held = 3}};
    bad.strata = bad_strata;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        shoal_result *result = NULL;
        int status = shoal_run(&result, NULL, &bad, &cases[i], data, NULL, NULL);
        assert_int_equal(status, SHOAL_USAGE);
        assert_non_null(strstr(shoal_error(), "strata"));
    }
    noter none = {.batch = 5, .group = 1, .epochs = 1};
    shoal_result *result = NULL;
    bad.strata = NULL; /* and rounds that are batches all the same */
    assert_int_equal(shoal_run(&result, NULL, &bad, &none, data, NULL, NULL), SHOAL_BROKEN);
    shoal_data_free(&data);
    free(values);
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* Rounds that see all rows ask for scratch, batches for room to gather rows in. */
static size_t scratch_of_all(const shoal_round *round, const void *prepared, const shoal_shape *shape)
{
    (void)prepared, (void)shape;
    return round->layout.pick.count ? 0 : 4000;
}

static void test_scratch_and_gathered_rows_stay_within_their_limit(void **state)
{
    (void)state;
    enum { LIMIT = 5000, GROUP_BYTES = 100 * (int)sizeof(double[COLUMNS]) }; /* enough for one of them, not for both */
    const shoal_shape shape = {
        .rows = 1000, .columns = COLUMNS, .type = SHOAL_FLOAT64, .rows_per_grain = 100, .grains = 10, .strata = 1};
    shoal_algorithm greedy = notes;
    const kernel_set *kernel = NULL;
    engine_mapper *mapper = NULL;
    greedy.scratch_bytes = scratch_of_all;
    assert_int_equal(kernel_choose(&kernel, NULL), SHOAL_OK);
    assert_int_equal(engine_mapper_new(&mapper, &greedy, &shape, 1, kernel), SHOAL_OK);
    engine_mapper_limit(mapper, LIMIT);
    for (int i = 0; i < 4; i++) {
        shoal_round round = {.number = i, .layout = {.carry_from = -1}};
        if (i % 2)
            round.layout.pick = (shoal_pick){.count = 1000, .group = 100};
        assert_int_equal(engine_mapper_begin(mapper, &round), SHOAL_OK);
        assert_in_range(engine_mapper_scratch(mapper), i % 2 ? GROUP_BYTES : 4000, LIMIT);
    }
    engine_mapper_free(&mapper);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_batches_of_every_kind),
        cmocka_unit_test(test_made_rows_need_not_be_held),
        cmocka_unit_test(test_strata_that_can_not_be),
        cmocka_unit_test(test_scratch_and_gathered_rows_stay_within_their_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
