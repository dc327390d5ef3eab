/* Learners whose work takes virtual time.  See sim_learn.h. */
#include "sim_learn.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <shoal/kmeans.h>

#include "../any_round.h"
#include "base/world.h"
#include "sim_world.h"

sim_work sim_work_now = {.poison_row = -1};

/* ---- time -------------------------------------------------------------------------------------------------------- */

static void spend(double seconds)
{
    if (!sim_self())
        return; /* the run that all others are compared with */
    seconds *= sim_process_nature(sim_self())->slowness;
    if (seconds > 0)
        base_sleep_until(base_time_after(base_now(), seconds));
}

void sim_work_on_grain(const shoal_grain *grain)
{
    sim_work *work = &sim_work_now;
    if (!sim_self())
        return;
    if (work->poison_row >= grain->first_row && work->poison_row < grain->first_row + grain->rows &&
        work->poison_most > 0) {
        work->poison_most--;
        sim_event("*** dies of row %lld", (long long)work->poison_row);
        sim_process_kill(sim_self());
    }
    spend((work->map_grain + work->map_row * (double)grain->rows) * (sim_chance(work->straggler) ? 20 : 1));
}

/* ---- k-means ----------------------------------------------------------------------------------------------------- */

static int map_kmeans(shoal_partial *partial, const shoal_round *round, const void *prepared, const shoal_grain *grain,
                      const shoal_scratch *scratch)
{
    sim_work_on_grain(grain);
    return shoal_kmeans.map(partial, round, prepared, grain, scratch);
}

static int update_kmeans(shoal_round **next, shoal_result **result, const shoal_round *round, shoal_partial *merged,
                         const shoal_shape *shape, const shoal_crew *crew, bool stop)
{
    spend(sim_work_now.update);
    return shoal_kmeans.update(next, result, round, merged, shape, crew, stop);
}

const shoal_algorithm *sim_kmeans(void)
{
    static shoal_algorithm kmeans;
    kmeans = shoal_kmeans;
    kmeans.map = map_kmeans;
    kmeans.update = update_kmeans;
    return &kmeans;
}

/* ---- the toy ----------------------------------------------------------------------------------------------------- */

enum { CLASSES = 5, KEPT = 4, HISTORY = 3, HISTORY_WORDS = 40 };

typedef enum toy_phase { TOY_MEASURE, TOY_COLLECT, TOY_CARRY, TOY_PEEK, TOY_PLACE } toy_phase;

typedef struct toy_model {
    int64_t phase, step, memo_round, memo_step;
    sim_toy_config config;
    uint64_t digest; /* of all that update saw */
} toy_model;

static uint64_t mix(uint64_t a, uint64_t b)
{
    return (a ^ b ^ a >> 31) * UINT64_C(0x9E3779B97F4A7C15) + 1;
}

/* Few rows change class from step to step. */
static int32_t class_of(double value, int64_t row, int64_t step)
{
    return (int32_t)((uint64_t)(row + (int64_t)(value * 100) + (row % 7 == step % 7 ? step : 0)) % CLASSES);
}

static double row_value(const shoal_grain *grain, int64_t i)
{
    double value;
    size_t at = (size_t)(i * grain->shape->columns) * shoal_type_size(grain->shape->type);
    shoal_convert_float64(&value, (const char *)grain->values + at, grain->shape->type, 1);
    return value * (grain->weights ? grain->weights[i] : 1);
}

static void describe(shoal_round *round)
{
    static const char *const names[] = {"measure", "collect", "carry", "peek", "place"};
    const toy_model *model = round->model;
    shoal_layout *layout = &round->layout;
    snprintf(round->phase, sizeof round->phase, "%s", names[model->phase]);
    round->step = model->step;
    round->objective = round->change = NAN;
    layout->carry_from = -1;
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
        layout->cell[1] = (shoal_cell){"every third row", SHOAL_CELL_RECORD, 0, sizeof(double), false};
        break;
    case TOY_CARRY:
        layout->cells = 3;
        layout->cell[0] = (shoal_cell){"sums", SHOAL_CELL_SUM, CLASSES, 0, true};
        layout->cell[1] = (shoal_cell){"rows", SHOAL_CELL_SUM, 1, 0, false};
        layout->cell[2] = (shoal_cell){"wide", SHOAL_CELL_WIDE, CLASSES, 0, true};
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

static int start_toy(shoal_round **out, const void *config, const shoal_shape *shape)
{
    (void)shape;
    int status = shoal_round_new(out, sizeof(toy_model));
    if (status == SHOAL_OK) {
        *(toy_model *)(*out)->model = (toy_model){.memo_round = -1, .config = *(const sim_toy_config *)config};
        describe(*out);
    }
    return status;
}

static size_t scratch_toy(const shoal_round *round, const void *prepared, const shoal_shape *shape)
{
    (void)round, (void)prepared, (void)shape;
    return 0;
}

/* A memo that is said to be of the round carry_from must be just that. */
static void check_memo(const toy_model *model, const shoal_grain *grain)
{
    const int32_t *memo = grain->memo;
    for (int64_t i = 0; grain->carried && i < grain->rows; i++)
        if (memo[i] != class_of(row_value(grain, i), grain->first_row + i, model->memo_step))
            sim_fail("row %lld: the memo is not that of round %lld", (long long)(grain->first_row + i),
                     (long long)model->memo_round);
}

static void map_carry(shoal_partial *partial, const toy_model *model, const shoal_grain *grain)
{
    int64_t *sums = shoal_partial_values(partial, 0), *wide = shoal_partial_values(partial, 2);
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
        }
        sums[now] += row;
        shoal_wide_add(wide, CLASSES, now, big, bits);
        memo[i] = now;
    }
    shoal_partial_values(partial, 1)[0] += grain->rows;
}

static void map_peek(shoal_partial *partial, const toy_model *model, const shoal_grain *grain)
{
    const int32_t *memo = grain->memo;
    for (int64_t i = 0; i < grain->rows; i++) {
        int64_t row = grain->first_row + i;
        int32_t class = grain->carried ? memo[i] : class_of(row_value(grain, i), row, model->memo_step);
        shoal_partial_values(partial, 0)[0] += class * (row + 1);
    }
}

static int map_collect(shoal_partial *partial, const shoal_grain *grain)
{
    int status = SHOAL_OK;
    for (int64_t i = 0; i < grain->rows && status == SHOAL_OK; i++) {
        int64_t row = grain->first_row + i;
        double value = row_value(grain, i);
        shoal_key key = {(uint64_t)(shoal_order_key(value) ^ INT64_MIN), (uint64_t)row};
        status = shoal_partial_record(partial, 0, key, &value);
        if (status == SHOAL_OK && row % 3 == 0)
            status = shoal_partial_record(partial, 1, (shoal_key){0, (uint64_t)row}, &value);
    }
    return status;
}

static void map_measure(shoal_partial *partial, const shoal_grain *grain)
{
    for (int64_t i = 0; i < grain->rows; i++) {
        double value = row_value(grain, i);
        shoal_partial_values(partial, 0)[0]++;
        shoal_max_raise(shoal_partial_values(partial, 1), 0, value);
        shoal_max_raise(shoal_partial_values(partial, 1), 1, -value);
        shoal_wide_add(shoal_partial_values(partial, 2), 1, 0, floor(value * 1000),
                       shoal_wide_bits(grain->shape->rows));
    }
}

static int map_toy(shoal_partial *partial, const shoal_round *round, const void *prepared, const shoal_grain *grain,
                   const shoal_scratch *scratch)
{
    const toy_model *model = round->model;
    (void)prepared, (void)scratch;
    sim_work_on_grain(grain);
    switch (model->phase) {
    case TOY_MEASURE: map_measure(partial, grain); break;
    case TOY_COLLECT: return map_collect(partial, grain);
    case TOY_CARRY:
        check_memo(model, grain);
        map_carry(partial, model, grain);
        break;
    case TOY_PEEK:
        check_memo(model, grain);
        map_peek(partial, model, grain);
        break;
    default:
        for (int64_t i = 0; i < grain->rows; i++) {
            int64_t row = grain->first_row + i;
            int64_t *number = shoal_partial_row(partial, 0, row);
            float *half = shoal_partial_row(partial, 1, row);
            *number = row * class_of(row_value(grain, i), row, model->step);
            *half = (float)row / 2;
        }
    }
    return SHOAL_OK;
}

static uint64_t digest_of(const shoal_partial *merged, uint64_t digest, int bits)
{
    const shoal_layout *layout = shoal_partial_layout(merged);
    for (int c = 0; c < layout->cells; c++) {
        const shoal_cell *cell = &layout->cell[c];
        for (int64_t i = 0; cell->kind == SHOAL_CELL_RECORD && i < shoal_partial_records(merged, c); i++) {
            shoal_key key;
            double value;
            memcpy(&value, shoal_partial_record_at(merged, c, i, &key), sizeof value);
            digest = mix(mix(mix(digest, key.high), key.low), (uint64_t)shoal_order_key(value));
        }
        for (int64_t i = 0; (cell->kind == SHOAL_CELL_SUM || cell->kind == SHOAL_CELL_MAX) && i < cell->count; i++)
            digest = mix(digest, (uint64_t)shoal_partial_values_const(merged, c)[i]);
        for (int64_t i = 0; cell->kind == SHOAL_CELL_WIDE && i < cell->count; i++) {
            double sum = shoal_wide_value(shoal_partial_values_const(merged, c), cell->count, i, bits);
            digest = mix(digest, (uint64_t)shoal_order_key(sum));
        }
    }
    return digest;
}

static int finish_toy(shoal_result **out, const toy_model *model, shoal_partial *merged, const shoal_shape *shape)
{
    int status = shoal_result_new(out);
    if (status == SHOAL_OK)
        status = shoal_result_take_rows(*out, "numbers", SHOAL_INT64, merged, 0, shape->rows);
    if (status == SHOAL_OK)
        status = shoal_result_take_rows(*out, "halves", SHOAL_FLOAT32, merged, 1, shape->rows);
    if (status == SHOAL_OK)
        shoal_result_set_whole(*out, "digest", (int64_t)(model->digest >> 16));
    if (status < 0)
        shoal_result_free(out);
    return status;
}

static void next_phase(toy_model *model, int64_t number)
{
    bool stepped = model->phase == TOY_CARRY;
    if (stepped) {
        model->memo_round = number;
        model->memo_step = model->step;
    }
    if (model->phase == TOY_MEASURE) {
        model->phase = TOY_COLLECT;
    } else if (stepped && model->step % 2 == 1) {
        model->phase = TOY_PEEK;
    } else if (model->phase == TOY_COLLECT) {
        model->phase = TOY_CARRY;
    } else {
        model->step++;
        model->phase = model->step < model->config.steps ? TOY_CARRY : TOY_PLACE;
    }
}

/* What was kept goes into the digest, so that a result made from another history differs. */
static uint64_t digest_of_history(const shoal_round *round, uint64_t digest)
{
    for (int i = 0; i < round->keeps; i++) {
        const shoal_kept *kept = round->kept[i];
        const uint64_t *words = kept->values;
        if (!words || kept->bytes != HISTORY_WORDS * sizeof *words || kept->born > round->number)
            sim_fail("round %lld: update does not get what the round keeps", (long long)round->number);
        for (int j = 0; j < HISTORY_WORDS; j++)
            digest = mix(digest, words[j]);
    }
    return digest;
}

/* Every other round or so brings something new, and the last few are kept. */
static int keep_history(shoal_round *next, const shoal_round *round, uint64_t digest)
{
    bool more = digest >> 20 & 1;
    for (int i = round->keeps + more > HISTORY ? 1 : 0; i < round->keeps; i++)
        shoal_round_keep_on(next, round, i);
    uint64_t *words = more ? shoal_round_keep(next, HISTORY_WORDS * sizeof *words) : NULL;
    if (more && !words)
        return SHOAL_MEMORY;
    for (int j = 0; more && j < HISTORY_WORDS; j++)
        words[j] = digest = mix(digest, (uint64_t)j);
    return SHOAL_OK;
}

static int update_toy(shoal_round **next, shoal_result **result, const shoal_round *round, shoal_partial *merged,
                      const shoal_shape *shape, const shoal_crew *crew, bool stop)
{
    toy_model model = *(const toy_model *)round->model;
    (void)crew;
    spend(sim_work_now.update);
    if (stop)
        return shoal_fail(SHOAL_STOPPED, "the toy has nothing yet");
    if (round->number == model.config.fail_at)
        return shoal_fail(SHOAL_INVALID, "the toy fails in round %d", (int)round->number);
    if (model.phase == TOY_PLACE)
        return finish_toy(result, &model, merged, shape);
    int64_t rows = model.phase == TOY_CARRY ? 2 * shape->rows : shape->rows;
    model.digest = mix(digest_of(merged, model.digest, shoal_wide_bits(rows)), (uint64_t)round->number);
    model.digest = digest_of_history(round, model.digest);
    next_phase(&model, round->number);
    int status = shoal_round_new(next, sizeof model);
    if (status == SHOAL_OK) {
        (*next)->number = round->number + 1;
        memcpy((*next)->model, &model, sizeof model);
        describe(*next);
        status = keep_history(*next, round, model.digest);
    }
    if (status < 0)
        shoal_round_free(next);
    return status;
}

static int cost_toy(shoal_cost *out, const void *config, const shoal_shape *shape)
{
    (void)shape;
    *out = (shoal_cost){.operations_per_row = 10,
                        .model_bytes = sizeof(toy_model),
                        .partial_bytes = 200,
                        .memo_row_bytes = 4,
                        .rounds = ((const sim_toy_config *)config)->steps + 3};
    return SHOAL_OK;
}

const shoal_algorithm sim_toy = {
    ANY_ROUND,
    .name = "toy",
    .summary = "Uses all of the contract",
    .config_size = sizeof(sim_toy_config),
    .kernel_free = true,
    .start = start_toy,
    .scratch_bytes = scratch_toy,
    .map = map_toy,
    .update = update_toy,
    .cost = cost_toy,
};

const shoal_algorithm *const *sim_algorithms(void)
{
    static const shoal_algorithm *known[3];
    known[0] = &sim_toy;
    known[1] = sim_kmeans();
    known[2] = NULL;
    return known;
}
