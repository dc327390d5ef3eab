/* Labels: threads
 * The threads engine, by a learner made to use all of the contract: every kind of cell, several phases, a memo, sums
 * that are carried, rounds that only read the memo, records.  What it computes is also computed here, plainly. */
#include <fenv.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <shoal/engine.h>

#include "any_round.h"
#include "base/memory.h"
#include "base/random.h"

enum { CLASSES = 5, KEPT = 4, STEPS = 6 };

/* Rounds: 0 measures, 1 collects, 2 .. STEPS + 1 carry sums (each even one followed by one that only peeks), last
 * places. */
typedef enum toy_phase { TOY_MEASURE, TOY_COLLECT, TOY_CARRY, TOY_PEEK, TOY_PLACE } toy_phase;

typedef enum toy_fault { NO_FAULT, FAULT_START, FAULT_PREPARE, FAULT_MAP, FAULT_UPDATE } toy_fault;

typedef struct toy_config {
    toy_fault fault;
    int64_t fault_round;
    bool can_stop; /* returns what it has when asked to stop */
} toy_config;

typedef struct toy_model {
    int64_t phase, step, memo_round;
    toy_config config;
    uint64_t digest; /* of everything that update saw */
    int64_t sums[CLASSES], wide[CLASSES];
    double greatest, total;
} toy_model;

/* What maps saw, for the tests; nothing of it enters a result. */
static struct {
    atomic_int carried, not_carried, prepared, forgotten, misaligned, wrong;
    atomic_int scattered; /* grains whose values do not lie in their place after grain 0's */
} seen;

static _Atomic(const void *) first_values; /* of grain 0; of use with one thread */

static uint64_t mix(uint64_t a, uint64_t b)
{
    return (a ^ b ^ a >> 31) * UINT64_C(0x9E3779B97F4A7C15) + 1;
}

static int32_t class_of(double value, int64_t row, int64_t step)
{
    /* Few rows change class from step to step. */
    return (int32_t)((uint64_t)(row + (int64_t)(value * 100) + (row % 7 == step ? step : 0)) % CLASSES);
}

static double row_value(const shoal_grain *grain, int64_t i)
{
    double value;
    int64_t columns = grain->shape->columns;
    shoal_convert_float64(&value,
                          (const char *)grain->values + (size_t)(i * columns) * shoal_type_size(grain->shape->type),
                          grain->shape->type, 1);
    return value * (grain->weights ? grain->weights[i] : 1);
}

static void describe(shoal_round *round)
{
    static const char *const names[] = {"measure", "collect", "carry", "carry", "place"};
    const toy_model *model = round->model;
    shoal_layout *layout = &round->layout;
    snprintf(round->phase, sizeof round->phase, "%s", names[model->phase]);
    round->step = model->step;
    switch (model->phase) {
    case TOY_MEASURE:
        layout->cells = 3;
        layout->cell[0] = (shoal_cell){"rows", SHOAL_CELL_SUM, 1, 0, false};
        layout->cell[1] = (shoal_cell){"greatest", SHOAL_CELL_MAX, 2, 0, false};
        layout->cell[2] = (shoal_cell){"total", SHOAL_CELL_WIDE, 1, 0, false};
        break;
    case TOY_COLLECT:
        layout->cells = 2;
        layout->cell[0] = (shoal_cell){"greatest rows", SHOAL_CELL_RECORD, KEPT, sizeof(double), false};
        layout->cell[1] = (shoal_cell){"every tenth row", SHOAL_CELL_RECORD, 0, sizeof(double), false};
        break;
    case TOY_CARRY:
        layout->cells = 4; /* carried cells and others side by side; the last is large, to be merged in chunks */
        layout->cell[0] = (shoal_cell){"sums", SHOAL_CELL_SUM, CLASSES, 0, true};
        layout->cell[1] = (shoal_cell){"changes", SHOAL_CELL_SUM, 1, 0, false};
        layout->cell[2] = (shoal_cell){"wide", SHOAL_CELL_WIDE, CLASSES, 0, true};
        layout->cell[3] = (shoal_cell){"many", SHOAL_CELL_SUM, 40000, 0, true};
        layout->memo_row_bytes = sizeof(int32_t);
        layout->carry_from = model->memo_round;
        layout->writes_memo = true;
        break;
    case TOY_PEEK:
        layout->cells = 1;
        layout->cell[0] = (shoal_cell){"sum of classes", SHOAL_CELL_SUM, 1, 0, false};
        layout->memo_row_bytes = sizeof(int32_t);
        layout->carry_from = model->memo_round;
        break;
    default:
        layout->cells = 2;
        layout->cell[0] = (shoal_cell){"numbers", SHOAL_CELL_ROW, 0, sizeof(int64_t), false};
        layout->cell[1] = (shoal_cell){"halves", SHOAL_CELL_ROW, 0, sizeof(float), false};
        break;
    }
}

static int toy_start(shoal_round **out, const void *config, const shoal_shape *shape)
{
    const toy_config *toy = config;
    (void)shape;
    if (toy->fault == FAULT_START)
        return shoal_fail(SHOAL_USAGE, "toy start");
    int status = shoal_round_new(out, sizeof(toy_model));
    if (status == SHOAL_OK) {
        *(toy_model *)(*out)->model = (toy_model){.memo_round = -1, .config = *toy, .digest = 1};
        describe(*out);
    }
    return status;
}

typedef struct toy_prepared {
    int64_t round;
    int64_t *crew_work;
} toy_prepared;

static int crew_task(void *context, int64_t item, int thread)
{
    (void)thread;
    ((int64_t *)context)[item] = item * item;
    return SHOAL_OK;
}

static int toy_prepare(void **inout, const shoal_round *round, const shoal_shape *shape, const shoal_crew *crew)
{
    const toy_model *model = round->model;
    toy_prepared *prepared = *inout;
    int status = SHOAL_OK;
    (void)shape;
    atomic_fetch_add(&seen.prepared, 1);
    if (!prepared) {
        status = base_alloc(&prepared, 1, sizeof *prepared, "toy");
        if (status == SHOAL_OK)
            status = base_alloc(&prepared->crew_work, 50, sizeof(int64_t), "toy work");
        *inout = prepared;
    }
    if (status == SHOAL_OK)
        status = crew->each(crew, 50, crew_task, prepared->crew_work);
    if (status < 0)
        return status;
    prepared->round = round->number;
    if (model->config.fault == FAULT_PREPARE && round->number == model->config.fault_round)
        return shoal_fail(SHOAL_MEMORY, "toy prepare in round %d", (int)round->number);
    return SHOAL_OK;
}

static void toy_forget(void **inout)
{
    toy_prepared *prepared = *inout;
    atomic_fetch_add(&seen.forgotten, 1);
    if (!prepared)
        return;
    base_free(&prepared->crew_work);
    base_free(inout);
}

static size_t toy_scratch(const shoal_round *round, const void *prepared, const shoal_shape *shape)
{
    (void)prepared, (void)shape;
    return (size_t)(round->number * 1000) % 4001; /* grows, shrinks, and is 0 at first */
}

static void map_carry(shoal_partial *partial, const toy_model *model, const shoal_grain *grain)
{
    int64_t *sums = shoal_partial_values(partial, 0), *wide = shoal_partial_values(partial, 2);
    int64_t *many = shoal_partial_values(partial, 3);
    int32_t *memo = grain->memo;
    int bits = shoal_wide_bits(2 * grain->shape->rows);
    for (int64_t i = 0; i < grain->rows; i++) {
        int64_t row = grain->first_row + i;
        int32_t now = class_of(row_value(grain, i), row, model->step);
        double big = ldexp((double)(row + 1), 30);
        if (grain->carried && memo[i] == now)
            continue;
        if (grain->carried) {
            sums[memo[i]] -= row;
            shoal_wide_add(wide, CLASSES, memo[i], -big, bits);
            many[(row * CLASSES + memo[i]) % 40000]--;
        }
        sums[now] += row;
        shoal_wide_add(wide, CLASSES, now, big, bits);
        many[(row * CLASSES + now) % 40000]++;
        shoal_partial_values(partial, 1)[0]++;
        memo[i] = now;
    }
}

static int toy_map(shoal_partial *partial, const shoal_round *round, const void *untyped, const shoal_grain *grain,
                   const shoal_scratch *scratch)
{
    const toy_model *model = round->model;
    const toy_prepared *prepared = untyped;
    const shoal_shape *shape = grain->shape;
    size_t row_bytes = (size_t)shape->columns * shoal_type_size(shape->type);
    int status = SHOAL_OK;
    if (prepared->round != round->number || prepared->crew_work[49] != 49 * 49 || fegetround() != FE_TONEAREST ||
        grain->first_row != grain->index * shape->rows_per_grain || grain->rows < 1 ||
        grain->rows > shape->rows_per_grain || grain->first_row + grain->rows > shape->rows ||
        (shape->weighted != (grain->weights != NULL)) || (grain->memo != NULL) != (round->layout.memo_row_bytes > 0))
        atomic_fetch_add(&seen.wrong, 1);
    if ((uintptr_t)scratch->memory % 64 || scratch->bytes < toy_scratch(round, prepared, shape))
        atomic_fetch_add(&seen.misaligned, 1);
    if (scratch->bytes > 0)
        memset(scratch->memory, (int)round->number, scratch->bytes);
    if (grain->index == 0)
        atomic_store(&first_values, grain->values);
    else if ((const char *)grain->values !=
             (const char *)atomic_load(&first_values) + (size_t)grain->first_row * row_bytes)
        atomic_fetch_add(&seen.scattered, 1);
    scratch->counters[0] += grain->rows;
    scratch->counters[SHOAL_COUNTERS - 1]++;
    if (model->config.fault == FAULT_MAP && round->number == model->config.fault_round &&
        grain->index == shape->grains / 2)
        return shoal_fail(SHOAL_INVALID, "toy map of grain %d", (int)grain->index);
    if (model->phase == TOY_CARRY || model->phase == TOY_PEEK)
        atomic_fetch_add(grain->carried ? &seen.carried : &seen.not_carried, 1);
    if (model->phase == TOY_CARRY)
        map_carry(partial, model, grain);
    for (int64_t i = 0; status == SHOAL_OK && i < grain->rows; i++) {
        int64_t row = grain->first_row + i;
        double value = row_value(grain, i);
        switch (model->phase) {
        case TOY_MEASURE:
            shoal_partial_values(partial, 0)[0]++;
            shoal_max_raise(shoal_partial_values(partial, 1), 0, value);
            shoal_max_raise(shoal_partial_values(partial, 1), 1, -value);
            shoal_wide_add(shoal_partial_values(partial, 2), 1, 0, rint(value * 0x1p60), shoal_wide_bits(shape->rows));
            break;
        case TOY_COLLECT:
            status =
                shoal_partial_record(partial, 0, (shoal_key){(uint64_t)shoal_order_key(value), (uint64_t)row}, &value);
            if (status == SHOAL_OK && row % 10 == 0)
                status = shoal_partial_record(partial, 1, (shoal_key){0, (uint64_t)row}, &value);
            break;
        case TOY_PEEK: {
            int32_t now = class_of(value, row, model->step);
            if (grain->carried && now != ((const int32_t *)grain->memo)[i])
                atomic_fetch_add(&seen.wrong, 1);
            shoal_partial_values(partial, 0)[0] += now;
            break;
        }
        case TOY_PLACE:
            *(int64_t *)shoal_partial_row(partial, 0, row) = row * 3;
            *(float *)shoal_partial_row(partial, 1, row) = (float)value;
            break;
        default: break;
        }
    }
    return status;
}

static uint64_t digest_of(const shoal_partial *merged, uint64_t digest, int64_t rows)
{
    const shoal_layout *layout = shoal_partial_layout(merged);
    for (int cell = 0; cell < layout->cells; cell++) {
        const shoal_cell *c = &layout->cell[cell];
        int64_t values =
            c->kind == SHOAL_CELL_WIDE || c->kind == SHOAL_CELL_SUM || c->kind == SHOAL_CELL_MAX ? c->count : 0;
        bool changes = strcmp(c->name, "changes") == 0; /* how much was saved is not part of a result */
        for (int64_t i = 0; i < values && !changes; i++) {
            const int64_t *of = shoal_partial_values_const(merged, cell);
            int bits = shoal_wide_bits(c->carried ? 2 * rows : rows);
            double wide = c->kind == SHOAL_CELL_WIDE ? shoal_wide_value(of, c->count, i, bits) : 0;
            digest = mix(digest, c->kind == SHOAL_CELL_WIDE ? (uint64_t)shoal_order_key(wide) : (uint64_t)of[i]);
        }
        for (int64_t r = 0; r < shoal_partial_records(merged, cell); r++) {
            shoal_key key;
            double value;
            memcpy(&value, shoal_partial_record_at(merged, cell, r, &key), sizeof value);
            digest = mix(mix(mix(digest, key.high), key.low), (uint64_t)shoal_order_key(value));
        }
    }
    return digest;
}

static int make_result(shoal_result **out, const shoal_round *round, shoal_partial *merged, const shoal_shape *shape)
{
    const toy_model *model = round->model;
    int status = shoal_result_new(out);
    if (status < 0)
        return status;
    int64_t *sums = shoal_result_add(*out, "sums", SHOAL_INT64, 1, (int64_t[]){CLASSES});
    if (!sums)
        return SHOAL_MEMORY;
    memcpy(sums, model->sums, sizeof model->sums);
    shoal_result_set(*out, "digest", (double)(model->digest >> 12));
    shoal_result_set(*out, "greatest", model->greatest);
    shoal_result_set(*out, "total", model->total);
    shoal_result_set_whole(*out, "step", model->step);
    if (model->phase != TOY_PLACE)
        return SHOAL_OK;
    status = shoal_result_take_rows(*out, "numbers", SHOAL_INT64, merged, 0, shape->rows);
    return status < 0 ? status : shoal_result_take_rows(*out, "halves", SHOAL_FLOAT32, merged, 1, shape->rows);
}

static int toy_update(shoal_round **next, shoal_result **result, const shoal_round *round, shoal_partial *merged,
                      const shoal_shape *shape, const shoal_crew *crew, bool stop)
{
    const toy_model *old = round->model;
    (void)crew;
    if (old->config.fault == FAULT_UPDATE && round->number == old->config.fault_round)
        return shoal_fail(SHOAL_INVALID, "toy update of round %d", (int)round->number);
    if (stop && !old->config.can_stop)
        return shoal_fail(SHOAL_STOPPED, "toy stopped");
    if (old->phase == TOY_PLACE || stop) {
        int status = make_result(result, round, merged, shape);
        if (status < 0)
            shoal_result_free(result);
        else
            (*result)->incomplete = stop;
        return status;
    }
    int status = shoal_round_new(next, sizeof *old);
    if (status < 0)
        return status;
    toy_model *model = (*next)->model;
    *model = *old;
    model->digest = digest_of(merged, old->digest, shape->rows);
    (*next)->objective = (double)round->number;
    switch (old->phase) {
    case TOY_MEASURE:
        assert_int_equal(shoal_partial_values(merged, 0)[0], shape->rows);
        model->greatest = shoal_max_value(shoal_partial_values(merged, 1)[0]);
        model->total = shoal_wide_value(shoal_partial_values(merged, 2), 1, 0, shoal_wide_bits(shape->rows));
        model->phase = TOY_COLLECT;
        break;
    case TOY_COLLECT: model->phase = TOY_CARRY; break;
    case TOY_CARRY:
        memcpy(model->sums, shoal_partial_values(merged, 0), sizeof model->sums);
        model->memo_round = round->number;
        if (old->step % 2 == 0) {
            model->phase = TOY_PEEK;
            break;
        }
        model->step++;
        break;
    case TOY_PEEK:
        model->step++;
        model->phase = TOY_CARRY;
        break;
    default: break;
    }
    if (model->step == STEPS)
        model->phase = TOY_PLACE;
    describe(*next);
    return SHOAL_OK;
}

static const shoal_algorithm toy = {ANY_ROUND,
                                    .name = "toy",
                                    .summary = "uses all of the contract",
                                    .config_size = sizeof(toy_config),
                                    .counter = {"rows", NULL, NULL, "grains"},
                                    .start = toy_start,
                                    .prepare = toy_prepare,
                                    .forget = toy_forget,
                                    .scratch_bytes = toy_scratch,
                                    .map = toy_map,
                                    .update = toy_update};

enum { ROUNDS = 2 + STEPS + STEPS / 2 + 1, ROWS = 1003, COLUMNS = 3 };

static float values[ROWS * COLUMNS];
static double weights[ROWS];

static shoal_data *wrap(void)
{
    shoal_data *data = NULL;
    for (int i = 0; i < ROWS * COLUMNS; i++)
        values[i] = (float)base_random_unit(4, BASE_FOR_DATA, (uint64_t)i, 0);
    for (int i = 0; i < ROWS; i++)
        weights[i] = 0.5 + (i % 3);
    assert_int_equal(shoal_data_wrap(&data, values, ROWS, COLUMNS, SHOAL_FLOAT32), SHOAL_OK);
    return data;
}

static shoal_result *run(shoal_report *report, shoal_data *data, const shoal_run_options *options,
                         const double *weighted)
{
    shoal_result *result = NULL;
    memset(&seen, 0, sizeof seen);
    if (shoal_run(&result, report, &toy, &(toy_config){0}, data, weighted, options) < 0)
        fail_msg("%s", shoal_error());
    assert_int_equal(atomic_load(&seen.wrong), 0);
    assert_int_equal(atomic_load(&seen.misaligned), 0);
    assert_int_equal(atomic_load(&seen.forgotten), 1);
    return result;
}

static void expect_same(const shoal_result *a, const shoal_result *b)
{
    assert_int_equal(a->tensors, b->tensors);
    assert_int_equal(a->numbers, b->numbers);
    for (int n = 0; n < a->numbers; n++)
        assert_true(a->number[n].value == b->number[n].value);
    for (int t = 0; t < a->tensors; t++) {
        assert_int_equal(a->tensor[t].shape[0], b->tensor[t].shape[0]);
        assert_memory_equal(a->tensor[t].values, b->tensor[t].values,
                            (size_t)a->tensor[t].shape[0] * shoal_type_size(a->tensor[t].type));
    }
}

/* ---- results ----------------------------------------------------------------------------------------------------- */

static void expect_plain(const shoal_result *result, const double *weighted)
{
    int64_t sums[CLASSES] = {0};
    double greatest = -INFINITY;
    const int64_t *numbers = shoal_result_tensor(result, "numbers")->values;
    const float *halves = shoal_result_tensor(result, "halves")->values;
    __int128 total = 0;
    for (int64_t row = 0; row < ROWS; row++) {
        double value = values[row * COLUMNS] * (weighted ? weighted[row] : 1);
        sums[class_of(value, row, STEPS - 1)] += row;
        greatest = fmax(greatest, value);
        total += (__int128)rint(value * 0x1p60);
        assert_int_equal(numbers[row], row * 3);
        assert_true(halves[row] == (float)value);
    }
    assert_memory_equal(shoal_result_tensor(result, "sums")->values, sums, sizeof sums);
    assert_true(shoal_result_number(result, "greatest") == greatest);
    assert_true(shoal_result_number(result, "total") == (double)total);
    assert_true(shoal_result_number(result, "step") == STEPS);
}

static void test_threads_and_grains_change_nothing(void **state)
{
    (void)state;
    static const int64_t grains[] = {0, 1, 13, 250, 1002, 1003, 5000};
    static const int threads_of[] = {1, 2, 3, 4, 5, 8};
    shoal_data *data = wrap();
    for (int weighted = 0; weighted < 2; weighted++) {
        const double *w = weighted ? weights : NULL;
        shoal_result *expected = run(NULL, data, NULL, w);
        expect_plain(expected, w);
        for (size_t t = 0; t < sizeof threads_of / sizeof *threads_of; t++)
            for (size_t g = weighted ? 1 : 0; g < sizeof grains / sizeof *grains; g += weighted ? 3 : 1) {
                int threads = threads_of[t];
                shoal_report report;
                shoal_run_options options = {.threads = threads, .rows_per_grain = grains[g]};
                shoal_result *result = run(&report, data, &options, w);
                int64_t count = grains[g] ? (ROWS + grains[g] - 1) / grains[g] : report.counter[3] / ROUNDS;
                expect_same(result, expected);
                /* The first of the rounds that carry starts from nothing; none of the others does. */
                assert_int_equal(atomic_load(&seen.not_carried), count);
                assert_int_equal(atomic_load(&seen.carried), count * (STEPS + STEPS / 2 - 1));
                assert_int_equal(atomic_load(&seen.prepared), ROUNDS);
                assert_int_equal(report.threads, threads);
                assert_int_equal(report.rounds, ROUNDS);
                assert_int_equal(report.counter[0], ROUNDS * ROWS);
                assert_int_equal(report.counter[3], ROUNDS * count);
                assert_int_equal(report.counter[1], 0);
                assert_false(report.stopped);
                assert_non_null(report.kernel);
                shoal_result_free(&result);
            }
        shoal_result_free(&expected);
    }
    shoal_data_free(&data);
}

static void test_phases_are_reported(void **state)
{
    (void)state;
    static const char *const names[] = {"load", "measure", "collect", "carry", "place"};
    static const int64_t rounds[] = {0, 1, 1, STEPS + STEPS / 2, 1};
    shoal_report report;
    shoal_data *data = wrap();
    shoal_result *result = run(&report, data, &(shoal_run_options){.threads = 2}, NULL);
    assert_int_equal(report.phases, 5);
    for (int p = 0; p < 5; p++) {
        assert_string_equal(report.phase[p].name, names[p]);
        assert_int_equal(report.phase[p].rounds, rounds[p]);
        assert_true(report.phase[p].seconds >= 0);
    }
    shoal_result_free(&result);
    shoal_data_free(&data);
}

/* ---- progress and stopping --------------------------------------------------------------------------------------- */

typedef struct watching {
    int64_t calls, ended;
    double seconds;
    int64_t stop_after;
    volatile int stop;
} watching;

static void watch(void *context, const shoal_round *done, const shoal_round *next, int64_t rows, double seconds)
{
    watching *job = context;
    assert_int_equal(done->number, job->calls);
    assert_int_equal(rows, ROWS);
    assert_true(seconds >= job->seconds);
    assert_int_equal(job->ended, 0);
    if (next) {
        assert_int_equal(next->number, done->number + 1);
        assert_true(next->objective == (double)done->number);
    }
    job->seconds = seconds;
    job->ended = next == NULL;
    if (++job->calls == job->stop_after)
        job->stop = 1;
}

static void test_progress_comes_in_order(void **state)
{
    (void)state;
    shoal_data *data = wrap();
    watching job = {0};
    shoal_run_options options = {
        .threads = 3, .rows_per_grain = 10, .progress = watch, .progress_context = &job, .stop = &job.stop};
    shoal_result *result = run(NULL, data, &options, NULL);
    assert_int_equal(job.calls, ROUNDS);
    assert_int_equal(job.ended, 1);
    shoal_result_free(&result);
    shoal_data_free(&data);
}

static void test_stopping(void **state)
{
    (void)state;
    shoal_data *data = wrap();
    for (int64_t after = 0; after < ROUNDS; after++)
        for (int can_stop = 0; can_stop < 2; can_stop++) {
            watching job = {.stop_after = after, .stop = after == 0};
            toy_config config = {.can_stop = can_stop};
            shoal_run_options options = {.threads = 2, .progress = watch, .progress_context = &job, .stop = &job.stop};
            shoal_report report;
            shoal_result *result = NULL;
            int status = shoal_run(&result, &report, &toy, &config, data, NULL, &options);
            assert_int_equal(status, can_stop ? SHOAL_OK : SHOAL_STOPPED);
            assert_true(report.stopped);
            assert_int_equal(report.rounds, after + can_stop); /* it ends with the round after the request */
            assert_int_equal(result != NULL, can_stop);
            if (!can_stop)
                assert_string_equal(shoal_error(), "toy stopped");
            shoal_result_free(&result);
        }
    shoal_data_free(&data);
}

/* ---- failures ---------------------------------------------------------------------------------------------------- */

static void test_failures_come_through(void **state)
{
    (void)state;
    static const struct {
        toy_fault fault;
        int status;
        const char *message;
    } cases[] = {{FAULT_START, SHOAL_USAGE, "toy start"},
                 {FAULT_PREPARE, SHOAL_MEMORY, "toy prepare in round"},
                 {FAULT_MAP, SHOAL_INVALID, "toy map of grain"},
                 {FAULT_UPDATE, SHOAL_INVALID, "toy update of round"}};
    shoal_data *data = wrap();
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        for (int64_t round = 0; round < ROUNDS; round++)
            for (int threads = 1; threads <= 4; threads += 3) {
                toy_config config = {.fault = cases[c].fault, .fault_round = round};
                shoal_report report;
                shoal_result *result = NULL;
                shoal_run_options options = {.threads = threads, .rows_per_grain = 50};
                assert_int_equal(shoal_run(&result, &report, &toy, &config, data, NULL, &options), cases[c].status);
                assert_null(result);
                assert_non_null(strstr(shoal_error(), cases[c].message));
                assert_int_equal(report.rounds, cases[c].fault == FAULT_START ? 0 : round);
            }
    shoal_data_free(&data);
}

static void test_wrong_options(void **state)
{
    (void)state;
    shoal_data *data = wrap();
    static const shoal_run_options wrong[] = {
        {.threads = -1}, {.threads = 5000}, {.rows_per_grain = -1}, {.kernel = "abacus"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        shoal_result *result = NULL;
        assert_int_equal(shoal_run(&result, NULL, &toy, &(toy_config){0}, data, NULL, &wrong[i]), SHOAL_USAGE);
        assert_null(result);
        assert_true(strlen(shoal_error()) > 0);
    }
    shoal_data_free(&data);
}

static void test_no_memory(void **state)
{
    (void)state;
    shoal_data *data = wrap();
    shoal_result *expected = run(NULL, data, NULL, NULL);
    for (int threads = 1; threads <= 2; threads++)
        for (int64_t n = 0;; n++) {
            shoal_result *result = NULL;
            base_memory_fail_after(n);
            int status = shoal_run(&result, NULL, &toy, &(toy_config){0}, data, NULL,
                                   &(shoal_run_options){.threads = threads, .rows_per_grain = 100});
            base_memory_fail_after(-1);
            if (status == SHOAL_OK) {
                assert_true(n > 50);
                expect_same(result, expected);
                shoal_result_free(&result);
                break;
            }
            assert_null(result);
            assert_int_equal(status, SHOAL_MEMORY);
            assert_non_null(strstr(shoal_error(), "out of memory"));
        }
    shoal_result_free(&expected);
    shoal_data_free(&data);
}

/* ---- data that is made ------------------------------------------------------------------------------------------- */

static void test_generated_rows(void **state)
{
    (void)state;
    shoal_data *data = NULL;
    assert_int_equal(shoal_data_open(&data, "gen:uniform?rows=1003&cols=3&seed=5", NULL), SHOAL_OK);
    assert_false(shoal_data_is_resident(data));
    shoal_result *expected = run(NULL, data, &(shoal_run_options){.threads = 1, .rows_per_grain = 50}, NULL);
    assert_int_equal(atomic_load(&seen.scattered), 0); /* they fit: made once, and kept */
    shoal_result *result = run(NULL, data, &(shoal_run_options){.threads = 1, .rows_per_grain = 50, .memory = 1}, NULL);
    assert_int_equal(atomic_load(&seen.scattered), 20 * ROUNDS); /* they do not: made in every round */
    expect_same(result, expected);
    shoal_result_free(&result);
    for (int threads = 1; threads <= 4; threads++)
        for (int64_t memory = 1; memory < 100000; memory *= 100) {
            result =
                run(NULL, data, &(shoal_run_options){.threads = threads, .rows_per_grain = 17, .memory = memory}, NULL);
            expect_same(result, expected);
            shoal_result_free(&result);
        }
    shoal_result_free(&expected);
    shoal_data_free(&data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_threads_and_grains_change_nothing),
                                       cmocka_unit_test(test_phases_are_reported),
                                       cmocka_unit_test(test_progress_comes_in_order),
                                       cmocka_unit_test(test_stopping),
                                       cmocka_unit_test(test_failures_come_through),
                                       cmocka_unit_test(test_wrong_options),
                                       cmocka_unit_test(test_no_memory),
                                       cmocka_unit_test(test_generated_rows)};
    return cmocka_run_group_tests_name("engine", tests, NULL, NULL);
}
