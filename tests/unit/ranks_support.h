/* What the tests of runs in step share: running a learner in ranks that are threads, comparing what each rank has with
 * what a run alone has, and a learner that uses every kind of cell and goes wrong as it is told to.
 *
 *     scene of = toy_scene();
 *     set_fault(IN_UPDATE, 2, 4, SHOAL_INVALID);            // on rank 2, in round 4
 *     run(&of, 3);                                          // in three ranks
 *     expect_failed(&of, 3, SHOAL_INVALID, named(2, "as told"));
 *     end_toy(&of);
 */
#ifndef RANKS_SUPPORT_H
#define RANKS_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <shoal/autoencoder.h>
#include <shoal/engine.h>
#include <shoal/kmeans.h>

#include "any_round.h"
#include "base/memory.h"
#include "base/random.h"
#include "engine/in_step.h"
#include "ranks_here.h"

enum { RANKS_MOST = 7 };
static const int sizes[] = {1, 2, 3, 4, 7};
enum { SIZES = sizeof sizes / sizeof *sizes };

/* ---- runs -------------------------------------------------------------------------------------------------------- */

typedef struct outcome {
    int status;
    char message[1200];
    shoal_result *result;
    shoal_report report;
} outcome;

/* One run, and how it went on each rank. */
typedef struct scene {
    const shoal_algorithm *algorithm;
    const void *config;
    shoal_data *data;
    const double *weights;
    shoal_run_options options; /* of all ranks */
    int threads;               /* of each rank; 0: one more than its number, but no more than three */
    shoal_data *other_data;    /* what odd_rank has instead, or NULL */
    const void *other_config;
    int64_t other_grain;    /* or 0 */
    const char *other_code; /* or NULL */
    int odd_rank;
    void (*enter)(shoal_ranks *ranks); /* called first on each rank; may be NULL */
    int64_t told[RANKS_MOST];          /* calls of progress */
    outcome got[RANKS_MOST];
} scene;

static _Thread_local int this_rank;
static volatile int stops[RANKS_MOST];

static inline void count_told(void *context, const shoal_round *done, const shoal_round *next, int64_t rows,
                              double seconds)
{
    (void)done, (void)next, (void)rows, (void)seconds;
    ++*(int64_t *)context;
}

static inline void run_one(shoal_ranks *ranks, void *context)
{
    scene *of = context;
    int me = ranks ? ranks->rank : 0;
    bool odd = ranks && me == of->odd_rank;
    outcome *got = &of->got[me];
    shoal_run_options options = of->options;
    this_rank = me;
    if (ranks && of->enter)
        of->enter(ranks);
    options.ranks = ranks;
    options.rows_per_grain = odd && of->other_grain ? of->other_grain : options.rows_per_grain;
    options.code_hash = odd && of->other_code ? of->other_code : options.code_hash;
    options.threads = of->threads ? of->threads : 1 + me % 3;
    options.stop = &stops[me];
    options.progress = count_told;
    options.progress_context = &of->told[me];
    got->status =
        shoal_run(&got->result, &got->report, of->algorithm, odd && of->other_config ? of->other_config : of->config,
                  odd && of->other_data ? of->other_data : of->data, of->weights, &options);
    snprintf(got->message, sizeof got->message, "%s", got->status < 0 ? shoal_error() : "");
}

static inline void clear(scene *of)
{
    for (int i = 0; i < RANKS_MOST; i++) {
        shoal_result_free(&of->got[i].result);
        of->got[i] = (outcome){0};
        of->told[i] = 0;
        stops[i] = 0;
    }
}

/* In `size` ranks, which must all return; 0: without ranks. */
static inline void run(scene *of, int size)
{
    clear(of);
    if (size == 0) {
        run_one(NULL, of);
        return;
    }
    ranks_here_end end = ranks_here_run(size, run_one, of, NULL);
    if (end.aborted)
        fail_msg("%d ranks: rank %d ended all with %d: %s", size, end.rank, end.code, end.message);
}

static inline shoal_result *run_alone(scene *of, shoal_report *report)
{
    run(of, 0);
    if (of->got[0].status < 0)
        fail_msg("%s", of->got[0].message);
    shoal_result *result = of->got[0].result;
    of->got[0].result = NULL;
    *report = of->got[0].report;
    return result;
}

static inline bool is_for_rows(const shoal_tensor *tensor)
{
    static const char *const names[] = {"labels", "distances", "probabilities", "features", "numbers"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(tensor->name, names[i]) == 0)
            return true;
    return false;
}

static inline void expect_same_tensor(const shoal_tensor *here, const shoal_tensor *alone, int rank)
{
    size_t bytes = shoal_type_size(alone->type);
    assert_string_equal(here->name, alone->name);
    assert_int_equal(here->type, alone->type);
    assert_int_equal(here->rank, alone->rank);
    bool elsewhere = rank > 0 && is_for_rows(alone);
    for (int i = 0; i < alone->rank; i++) {
        assert_int_equal(here->shape[i], elsewhere && i == 0 ? 0 : alone->shape[i]);
        bytes *= (size_t)alone->shape[i];
    }
    if (!elsewhere && memcmp(here->values, alone->values, bytes) != 0)
        fail_msg("%s differs on rank %d", alone->name, rank);
}

static inline void expect_same_result(const shoal_result *here, const shoal_result *alone, int rank)
{
    assert_non_null(here);
    assert_int_equal(here->tensors, alone->tensors);
    assert_int_equal(here->numbers, alone->numbers);
    assert_int_equal(here->incomplete, alone->incomplete);
    for (int i = 0; i < alone->tensors; i++)
        expect_same_tensor(&here->tensor[i], &alone->tensor[i], rank);
    for (int i = 0; i < alone->numbers; i++) {
        assert_string_equal(here->number[i].name, alone->number[i].name);
        assert_memory_equal(&here->number[i].value, &alone->number[i].value, sizeof(double));
    }
}

static inline void expect_same_report(const shoal_report *here, const shoal_report *alone, const scene *of, int size)
{
    int threads = 0;
    for (int i = 0; i < size; i++)
        threads += of->threads ? of->threads : 1 + i % 3;
    assert_int_equal(here->rounds, alone->rounds);
    assert_int_equal(here->phases, alone->phases);
    for (int i = 0; i < here->phases; i++) {
        assert_string_equal(here->phase[i].name, alone->phase[i].name);
        assert_int_equal(here->phase[i].rounds, alone->phase[i].rounds);
        assert_true(here->phase[i].seconds >= 0);
    }
    assert_int_equal(here->stopped, alone->stopped);
    assert_int_equal(here->ranks, size);
    assert_int_equal(here->hosts, 1);
    assert_int_equal(here->all_threads, threads);
    assert_true(here->map_seconds >= 0 && here->reduce_seconds >= 0 && here->update_seconds >= 0);
}

/* Every rank of this run has what the run alone has. */
static inline void expect_same(scene *of, int size, const shoal_result *alone, const shoal_report *report)
{
    for (int i = 0; i < size; i++) {
        if (of->got[i].status < 0)
            fail_msg("%d ranks, rank %d: %s", size, i, of->got[i].message);
        expect_same_result(of->got[i].result, alone, i);
        expect_same_report(&of->got[i].report, report, of, size);
        assert_int_equal(of->got[i].report.threads, of->threads ? of->threads : 1 + i % 3);
        assert_int_equal(of->told[i], i == 0 ? report->rounds - of->got[i].report.resumed : 0);
    }
}

/* The scene with every number of ranks, compared every round; the result is the caller's when `out` is given. */
static inline void expect_same_everywhere(scene *of, shoal_result **out)
{
    shoal_report report;
    shoal_result *alone = run_alone(of, &report);
    for (int s = 0; s < SIZES; s++) {
        of->options.verify = 1 + s % 2;
        run(of, sizes[s]);
        expect_same(of, sizes[s], alone, &report);
    }
    clear(of);
    if (out)
        *out = alone;
    else
        shoal_result_free(&alone);
}

/* All ranks failed, and say the same of it. */
static inline void expect_failed(const scene *of, int size, int status, const char *words)
{
    for (int i = 0; i < size; i++) {
        if (of->got[i].status != status || !strstr(of->got[i].message, words))
            fail_msg("%d ranks, rank %d: status %d, \"%s\", not %d with \"%s\"", size, i, of->got[i].status,
                     of->got[i].message, status, words);
        assert_string_equal(of->got[i].message, of->got[0].message);
        assert_null(of->got[i].result);
    }
}

static inline char *named(int rank, const char *words)
{
    static char out[300];
    char host[ENGINE_HOST_BYTES];
    engine_host(host);
    snprintf(out, sizeof out, "rank %d on %s: %s", rank, host, words);
    return out;
}

/* ---- data -------------------------------------------------------------------------------------------------------- */

static inline shoal_data *open_data(const char *path)
{
    shoal_data *data = NULL;
    if (shoal_data_open(&data, path, NULL) < 0)
        fail_msg("%s", shoal_error());
    return data;
}

static inline double *make_weights(int64_t rows)
{
    double *weights = calloc((size_t)rows, sizeof *weights);
    for (int64_t i = 0; i < rows; i++)
        weights[i] = 0.25 + (double)(i % 5);
    return weights;
}

/* Rows whose last column is the class that the others tell, more or less. */
static inline shoal_data *make_classes(double **values, int64_t rows, int64_t columns, int classes)
{
    shoal_data *data = NULL;
    *values = calloc((size_t)(rows * columns), sizeof **values);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < columns; k++)
            (*values)[i * columns + k] = k + 1 == columns
                                             ? (double)(i % classes)
                                             : base_random_unit(3, BASE_FOR_DATA, (uint64_t)(i * columns + k), 0) * 2 +
                                                   (double)((i % classes + k) % 3);
    assert_int_equal(shoal_data_wrap(&data, *values, rows, columns, SHOAL_FLOAT64), SHOAL_OK);
    return data;
}

static inline shoal_kmeans_config kmeans_config(int64_t k, const char *init)
{
    shoal_kmeans_config config = {0};
    shoal_options_default(&config, shoal_kmeans.options);
    config.k = k;
    config.init = init;
    config.iterations = 12;
    return config;
}

static inline shoal_autoencoder_config autoencoder_config(void)
{
    shoal_autoencoder_config config = {0};
    shoal_options_default(&config, shoal_autoencoder.options);
    config.hidden = 4;
    config.iterations = 8;
    config.rescale = "auto";
    return config;
}

/* ---- a learner that fails as it is told to ----------------------------------------------------------------------- */

enum { STEPS = 9, TOY_ROWS = 500, TOY_GRAIN = 20, TOY_GRAINS = TOY_ROWS / TOY_GRAIN, PARTS_KEPT = 3 };

typedef enum fault_place {
    NOWHERE,
    IN_START,
    IN_PREPARE,
    IN_MAP,
    IN_UPDATE,
    IN_BITS,
    IN_KEPT,
    IN_STOP,
    IN_END
} fault_place;

/* What goes wrong: on which rank and in which round; a map goes wrong at the grain. */
static struct {
    fault_place place;
    int rank;
    int64_t round, grain;
    int status;
} fault;

typedef struct toy_config {
    int64_t seed;
} toy_config;

typedef struct toy_model {
    int64_t step;
    uint64_t digest;
    unsigned char unused[8]; /* which nothing depends on */
} toy_model;

static inline bool goes_wrong(fault_place place, int64_t round)
{
    return fault.place == place && fault.round == round && (place == IN_MAP || fault.rank == this_rank);
}

static inline int fail_as_told(void)
{
    return shoal_fail(fault.status, "as told");
}

static inline uint64_t mix(uint64_t a, uint64_t b)
{
    return (a ^ b ^ a >> 29) * UINT64_C(0x9E3779B97F4A7C15) + 1;
}

static inline void describe_toy(shoal_round *round)
{
    const toy_model *model = round->model;
    shoal_layout *layout = &round->layout;
    strcpy(round->phase, model->step < 2 ? "first" : "run");
    layout->cells = model->step == STEPS ? 6 : 5;
    layout->cell[0] = (shoal_cell){"rows", SHOAL_CELL_SUM, 2, 0, false};
    layout->cell[1] = (shoal_cell){"greatest", SHOAL_CELL_MAX, 3, 0, false};
    layout->cell[2] = (shoal_cell){"wide", SHOAL_CELL_WIDE, 2, 0, false};
    layout->cell[3] = (shoal_cell){"some", SHOAL_CELL_RECORD, 4, sizeof(int64_t), false};
    layout->cell[4] = (shoal_cell){"all", SHOAL_CELL_RECORD, 0, model->step / 2 % 2 ? sizeof(int64_t) : 0, false};
    layout->cell[5] = (shoal_cell){"numbers", SHOAL_CELL_ROW, 0, sizeof(int64_t), false};
}

static inline int start_toy(shoal_round **out, const void *config, const shoal_shape *shape)
{
    (void)shape;
    if (goes_wrong(IN_START, 0))
        return fail_as_told();
    int status = shoal_round_new(out, sizeof(toy_model));
    if (status == SHOAL_OK) {
        *(toy_model *)(*out)->model = (toy_model){.digest = (uint64_t)((const toy_config *)config)->seed};
        describe_toy(*out);
    }
    return status;
}

static inline int prepare_toy(void **prepared, const shoal_round *round, const shoal_shape *shape,
                              const shoal_crew *crew)
{
    (void)prepared, (void)shape, (void)crew;
    return goes_wrong(IN_PREPARE, round->number) ? fail_as_told() : SHOAL_OK;
}

static inline void forget_toy(void **prepared)
{
    (void)prepared;
}

static inline size_t scratch_toy(const shoal_round *round, const void *prepared, const shoal_shape *shape)
{
    (void)round, (void)prepared, (void)shape;
    return 8;
}

static inline int map_toy(shoal_partial *partial, const shoal_round *round, const void *prepared,
                          const shoal_grain *grain, const shoal_scratch *scratch)
{
    const toy_model *model = round->model;
    const float *values = grain->values;
    int status = SHOAL_OK;
    (void)prepared;
    if (goes_wrong(IN_MAP, round->number) && grain->index == fault.grain)
        return fail_as_told();
    scratch->counters[0] += grain->rows;
    shoal_partial_values(partial, 0)[0] += grain->rows;
    shoal_partial_values(partial, 0)[1] -= grain->index;
    shoal_max_raise(shoal_partial_values(partial, 1), model->step % 3, values[0]);
    for (int64_t i = 0; status == SHOAL_OK && i < grain->rows; i++) {
        int64_t row = grain->first_row + i, value = (int64_t)mix(model->digest, (uint64_t)row);
        shoal_wide_add(shoal_partial_values(partial, 2), 2, row % 2, (double)(value >> 16),
                       shoal_wide_bits(grain->shape->rows));
        if (mix((uint64_t)value, 5) % 7 == 0)
            status = shoal_partial_record(partial, 3, (shoal_key){mix((uint64_t)value, 6), (uint64_t)row}, &value);
        if (status == SHOAL_OK && row % 100 == model->step)
            status = shoal_partial_record(partial, 4, (shoal_key){(uint64_t)row, 0}, &value);
        if (model->step == STEPS)
            *(int64_t *)shoal_partial_row(partial, 5, row) = value;
    }
    return status;
}

static inline uint64_t digest_of(const shoal_partial *merged, uint64_t digest)
{
    static const int64_t counts[] = {2, 3, 4}; /* a wide number has two digits */
    for (int cell = 0; cell < 3; cell++)
        for (int64_t i = 0; i < counts[cell]; i++)
            digest = mix(digest, (uint64_t)shoal_partial_values((shoal_partial *)merged, cell)[i]);
    for (int cell = 3; cell < 5; cell++)
        for (int64_t i = 0; i < shoal_partial_records(merged, cell); i++) {
            shoal_key key;
            int64_t value = 0;
            const void *record = shoal_partial_record_at(merged, cell, i, &key);
            memcpy(&value, record, shoal_partial_layout(merged)->cell[cell].bytes);
            digest = mix(mix(digest, key.high ^ key.low), (uint64_t)value);
        }
    return digest;
}

/* What was kept is part of what comes next, so that it is missed when it is lost. */
static inline int keep_toy(shoal_round *next, const shoal_round *round, uint64_t *digest)
{
    for (int i = 0; i < round->keeps; i++)
        *digest = mix(*digest, *(uint64_t *)round->kept[i]->values);
    for (int i = round->keeps == PARTS_KEPT ? 1 : 0; i < round->keeps; i++)
        shoal_round_keep_on(next, round, i);
    uint64_t *part = shoal_round_keep(next, sizeof *part);
    if (part)
        *part = goes_wrong(IN_KEPT, round->number) ? ~*digest : *digest;
    return part ? SHOAL_OK : SHOAL_MEMORY;
}

static inline int finish_toy(shoal_result **result, shoal_partial *merged, const shoal_shape *shape, uint64_t digest,
                             bool whole)
{
    int status = shoal_result_new(result);
    if (status < 0)
        return status;
    shoal_result_set_whole(*result, "digest", (int64_t)(digest >> 12));
    (*result)->incomplete = !whole;
    if (whole)
        status = shoal_result_take_rows(*result, "numbers", SHOAL_INT64, merged, 5, shape->rows);
    if (status < 0)
        shoal_result_free(result);
    return status;
}

static inline int update_toy(shoal_round **next, shoal_result **result, const shoal_round *round, shoal_partial *merged,
                             const shoal_shape *shape, const shoal_crew *crew, bool stop)
{
    const toy_model *old = round->model;
    uint64_t digest = digest_of(merged, old->digest);
    (void)crew;
    if (goes_wrong(IN_STOP, round->number))
        stops[this_rank] = 1;
    if (goes_wrong(IN_UPDATE, round->number))
        return fail_as_told();
    if (stop && round->number < 2)
        return shoal_fail(SHOAL_STOPPED, "stopped before there was anything");
    if (stop || old->step == STEPS || goes_wrong(IN_END, round->number))
        return finish_toy(result, merged, shape, digest, old->step == STEPS);
    int status = shoal_round_new(next, sizeof *old);
    if (status == SHOAL_OK)
        status = keep_toy(*next, round, &digest);
    if (status < 0) {
        shoal_round_free(next);
        return status;
    }
    toy_model *model = (*next)->model;
    *model = (toy_model){.step = old->step + 1, .digest = digest};
    if (goes_wrong(IN_BITS, round->number))
        model->unused[5] ^= 64;
    describe_toy(*next);
    return SHOAL_OK;
}

static const shoal_algorithm toy = {ANY_ROUND,
                                    .name = "toy",
                                    .summary = "does as it is told",
                                    .config_size = sizeof(toy_config),
                                    .counter = {"rows"},
                                    .start = start_toy,
                                    .prepare = prepare_toy,
                                    .forget = forget_toy,
                                    .scratch_bytes = scratch_toy,
                                    .map = map_toy,
                                    .update = update_toy};

static const toy_config toy_plain = {.seed = 7};
static float toy_values[TOY_ROWS];

static inline scene toy_scene(void)
{
    scene of = {.algorithm = &toy, .config = &toy_plain, .options = {.rows_per_grain = TOY_GRAIN}};
    for (int i = 0; i < TOY_ROWS; i++)
        toy_values[i] = (float)(i % 37);
    memset(&fault, 0, sizeof fault);
    assert_int_equal(shoal_data_wrap(&of.data, toy_values, TOY_ROWS, 1, SHOAL_FLOAT32), SHOAL_OK);
    return of;
}

static inline void end_toy(scene *of)
{
    memset(&fault, 0, sizeof fault);
    clear(of);
    shoal_data_free(&of->data);
}

static inline void set_fault(fault_place place, int rank, int64_t round, int status)
{
    fault.place = place;
    fault.rank = rank;
    fault.round = round;
    fault.status = status;
}

#endif
