/* Running a learner over several slices, as a worker of a job does, for tests: each slice maps on one mapper, and what
 * travels between workers (rounds, partials) is available as bytes. */
#ifndef SLICE_SUPPORT_H
#define SLICE_SUPPORT_H

#include "unit/kmeans_support.h"

#include "engine/slice.h"
#include "learn/wire.h"

enum { SLICES_MOST = 8 };

typedef struct sliced {
    /* Filled by the caller. */
    const shoal_algorithm *algorithm;
    const void *config;
    const void *values;
    const double *weights;
    shoal_shape shape; /* rows, columns, type, rows_per_grain */
    int slices, threads;
    int64_t unreadable_row; /* reading it fails; -1 for none */

    /* Ours. */
    engine_mapper *mapper;
    engine_slice *slice[SLICES_MOST];
    int64_t first_grain[SLICES_MOST + 1];
} sliced;

static int read_sliced(void *context, const void **out, int64_t first_row, int64_t rows, int thread)
{
    const sliced *run = context;
    (void)thread;
    if (run->unreadable_row >= first_row && run->unreadable_row < first_row + rows)
        return shoal_fail(SHOAL_SYSTEM, "row %d can't be read", (int)run->unreadable_row);
    *out = (const unsigned char *)run->values +
           (size_t)(first_row * run->shape.columns) * shoal_type_size(run->shape.type);
    return SHOAL_OK;
}

static inline int64_t sliced_first_row(const sliced *run, int slice)
{
    int64_t row = run->first_grain[slice] * run->shape.rows_per_grain;
    return row < run->shape.rows ? row : run->shape.rows;
}

static inline void sliced_begin(sliced *run)
{
    const kernel_set *kernel = NULL;
    hand_check(kernel_choose(&kernel, NULL));
    run->shape.grains = (run->shape.rows + run->shape.rows_per_grain - 1) / run->shape.rows_per_grain;
    run->shape.weighted = run->weights != NULL;
    run->unreadable_row = -1;
    hand_check(engine_mapper_new(&run->mapper, run->algorithm, &run->shape, run->threads, kernel));
    for (int s = 0; s <= run->slices; s++)
        run->first_grain[s] = run->shape.grains * s / run->slices;
    for (int s = 0; s < run->slices; s++) {
        engine_rows rows = {.read = read_sliced,
                            .context = run,
                            .weights = run->weights ? run->weights + sliced_first_row(run, s) : NULL};
        hand_check(engine_slice_new(&run->slice[s], run->first_grain[s], run->first_grain[s + 1] - run->first_grain[s],
                                    &rows));
    }
}

static inline void sliced_end(sliced *run)
{
    for (int s = 0; s < run->slices; s++)
        engine_slice_free(&run->slice[s]);
    engine_mapper_free(&run->mapper);
}

/* ---- as bytes ---------------------------------------------------------------------------------------------------- */

typedef struct encoded {
    void *bytes;
    size_t size;
} encoded;

static inline encoded encoded_of(base_writer *out)
{
    encoded made = {0};
    hand_check(base_writer_take(out, &made.bytes, &made.size));
    return made;
}

static inline encoded encode_partial(const shoal_partial *partial)
{
    base_writer out = {0};
    learn_partial_write(&out, partial);
    return encoded_of(&out);
}

static inline encoded encode_round(const shoal_round *round)
{
    base_writer out = {0};
    learn_round_write(&out, round);
    return encoded_of(&out);
}

static inline encoded encode_result(const shoal_result *result)
{
    base_writer out = {0};
    learn_result_write(&out, result);
    return encoded_of(&out);
}

static inline void expect_same_bytes(encoded a, encoded b)
{
    assert_int_equal(a.size, b.size);
    assert_memory_equal(a.bytes, b.bytes, a.size);
}

/* Merges `count` encoded partials in the given order into a new one over `rows` rows from `first_row`. */
static inline shoal_partial *merge_encoded(const shoal_layout *layout, int64_t first_row, int64_t rows,
                                           const encoded *parts, const int64_t *order, int64_t count)
{
    shoal_partial *merged = NULL;
    hand_check(learn_partial_new(&merged, layout, first_row, rows, NULL));
    for (int64_t i = 0; i < count; i++) {
        base_reader in = base_reader_of(parts[order[i]].bytes, parts[order[i]].size);
        hand_check(learn_partial_merge_read(merged, &in));
        assert_true(base_reader_done(&in));
    }
    hand_check(learn_partial_settle(merged));
    return merged;
}

/* ---- a run ------------------------------------------------------------------------------------------------------- */

/* Maps one slice for the round that was begun; its partial as bytes, which are the caller's. */
typedef encoded sliced_map(sliced *run, void *context, const shoal_round *round, int slice);

static inline encoded map_plainly(sliced *run, void *context, const shoal_round *round, int slice)
{
    shoal_partial *partial = NULL;
    (void)context, (void)round;
    hand_check(engine_slice_map(&partial, run->mapper, run->slice[slice]));
    return encode_partial(partial);
}

/* All rounds, between sliced_begin and sliced_end. */
static inline shoal_result *sliced_run_all(sliced *run, sliced_map *map, void *context)
{
    static const int64_t order[SLICES_MOST] = {0, 1, 2, 3, 4, 5, 6, 7};
    const shoal_crew *crew = engine_mapper_crew(run->mapper);
    shoal_round *round = NULL, *next = NULL;
    shoal_result *result = NULL;
    encoded part[SLICES_MOST];
    hand_check(run->algorithm->start(&round, run->config, &run->shape));
    for (; !result; round = next) {
        hand_check(engine_mapper_begin(run->mapper, round));
        for (int s = run->slices - 1; s >= 0; s--)
            part[s] = map(run, context, round, s);
        shoal_partial *merged = merge_encoded(&round->layout, 0, run->shape.rows, part, order, run->slices);
        next = NULL;
        hand_check(run->algorithm->update(&next, &result, round, merged, &run->shape, crew, false));
        if (next)
            next->number = round->number + 1;
        shoal_round_free(&round);
        learn_partial_free(&merged);
        for (int s = 0; s < run->slices; s++)
            base_free(&part[s].bytes);
    }
    return result;
}

/* ---- what is clustered ------------------------------------------------------------------------------------------- */

typedef struct sliced_case {
    const char *init;
    int64_t rows, columns, k, runs;
    data_kind kind;
    bool weighted;
    bool far;     /* a given start that leaves clusters empty, so that rows are relocated */
    bool predict; /* with distances */
} sliced_case;

static const sliced_case sliced_cases[] = {
    {"kmeans++", 300, 3, 5, 1, DATA_BLOBS, false, false, false},
    {"parallel", 400, 9, 12, 1, DATA_UNIFORM, true, false, false},
    {"random", 300, 40, 7, 2, DATA_NARROW, false, false, false},
    {"file", 300, 5, 9, 1, DATA_UNIFORM, true, true, false},
    {"file", 200, 40, 6, 1, DATA_OFFSET, false, false, true},
};
enum { SLICED_CASES = sizeof sliced_cases / sizeof *sliced_cases };

typedef struct sliced_work {
    float *values;
    double *weights, *start;
    shoal_kmeans_config config;
    shoal_predict_config predict;
    const shoal_algorithm *algorithm;
    const void *any_config;
    shoal_shape shape;
} sliced_work;

static inline void make_work(sliced_work *work, const sliced_case *c)
{
    *work = (sliced_work){.values = make_values(c->kind, SHOAL_FLOAT32, c->rows, c->columns, 1, 5)};
    work->shape = (shoal_shape){.rows = c->rows, .columns = c->columns, .type = SHOAL_FLOAT32, .rows_per_grain = 11};
    if (c->weighted) {
        work->weights = malloc((size_t)c->rows * sizeof(double));
        for (int64_t i = 0; i < c->rows; i++)
            work->weights[i] = (double)(i % 4);
    }
    if (strcmp(c->init, "file") == 0) {
        work->start = malloc((size_t)(c->k * c->columns) * sizeof(double));
        shoal_convert_float64(work->start, work->values, SHOAL_FLOAT32, c->k * c->columns);
        for (int64_t i = 0; c->far && i < 2 * c->columns; i++)
            work->start[c->columns + i] += 10;
    }
    work->config = (shoal_kmeans_config){
        .k = c->k, .init = c->init, .start = work->start, .iterations = 9, .runs = c->runs, .seed = 3};
    work->predict = (shoal_predict_config){.centres = work->start, .k = c->k, .columns = c->columns, .distances = true};
    work->algorithm = c->predict ? &shoal_kmeans_predict : &shoal_kmeans;
    work->any_config = c->predict ? (const void *)&work->predict : &work->config;
}

static inline void drop_work(sliced_work *work)
{
    free(work->values);
    free(work->weights);
    free(work->start);
}

static inline sliced sliced_of(const sliced_work *work, const shoal_algorithm *algorithm, int slices, int threads)
{
    return (sliced){.algorithm = algorithm,
                    .config = work->any_config,
                    .values = work->values,
                    .weights = work->weights,
                    .shape = work->shape,
                    .slices = slices,
                    .threads = threads};
}

/* What shoal_run makes of it; report may be NULL. */
static inline shoal_result *run_by_threads(const sliced_work *work, shoal_report *report)
{
    shoal_data *data = NULL;
    shoal_result *result = NULL;
    shoal_run_options options = {.threads = 2, .rows_per_grain = work->shape.rows_per_grain};
    hand_check(shoal_data_wrap(&data, work->values, work->shape.rows, work->shape.columns, SHOAL_FLOAT32));
    hand_check(shoal_run(&result, report, work->algorithm, work->any_config, data, work->weights, &options));
    shoal_data_free(&data);
    return result;
}

#endif
