/* The learner "exec": programs of the user's that answer every grain with an array.
 *
 *     round 0   grain 0 alone     partial: what its answer looks like           (one record)
 *     round 1   every grain     partial: sums of all answers, or all answers  (digits, or records in the order of rows)
 *
 * Round 1 is asked for again, with more digits, if some answer had values so large or so small that the usual ones do
 * not hold them (learn/exact.h). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <shoal/exec.h>

#include "base/memory.h"
#include "learn/check.h"
#include "learn/exact.h"
#include "learn/exec/exec_parts.h"
#include "learn/exec/exec_pool.h"
#include "learn/partial.h"

enum { PARAMS_BYTES_MOST = 100 * 1000, WHOLE_DIGITS = 2 };
enum { CELL_FORM = 0, CELL_DIGITS = 0, CELL_RANGE = 1, CELL_PARTS = 0 };

/* What an answer looks like. */
typedef struct exec_form {
    int32_t type, rank;
    int64_t shape[EXEC_RANK_MOST];
} exec_form;

/* The model: this, and the params followed by a NUL. */
typedef struct exec_model {
    int32_t runs; /* 0 in round 0 */
    int32_t collect;
    double timeout;
    learn_window window;
    exec_form form;
    int64_t values;     /* of an answer that is added */
    int64_t part_bytes; /* of what a record holds of a collected answer */
    char params[];
} exec_model;

static const shoal_option options[] = {
    {"params", 'p', SHOAL_OPTION_TEXT, offsetof(shoal_exec_config, params), "FILE|JSON",
     .help = "parameters: a JSON object such as '{\"rate\": 0.1}', or a file that holds one"},
    {"collect", 0, SHOAL_OPTION_FLAG, offsetof(shoal_exec_config, collect), NULL,
     .help = "--exec: concatenate the results along their first axis, in the order of the rows, instead of adding "
             "them"},
    {"timeout", 0, SHOAL_OPTION_REAL, offsetof(shoal_exec_config, timeout), "SECONDS",
     .help = "--exec: time limit of a program for one grain; 0 for no limit", .fallback = "600"},
    {0},
};

/* ---- rounds ------------------------------------------------------------------------------------------------------ */

static int make_round(shoal_round **out, const exec_model *model, const char *params)
{
    size_t length = strlen(params);
    int status = shoal_round_new(out, sizeof *model + length + 1);
    if (status < 0)
        return status;
    exec_model *copy = (*out)->model;
    *copy = *model;
    memcpy(copy->params, params, length + 1);
    snprintf((*out)->phase, sizeof(*out)->phase, "%s", model->runs ? "run" : "scan");
    return SHOAL_OK;
}

static bool is_float(int type)
{
    return type == SHOAL_FLOAT32 || type == SHOAL_FLOAT64;
}

static int64_t digits_of(const exec_model *model)
{
    return is_float(model->form.type) ? model->window.digits : WHOLE_DIGITS;
}

static void lay_out_exec(shoal_layout *layout, const exec_model *model)
{
    if (!model->runs) {
        layout->cells = 1;
        layout->cell[CELL_FORM] = (shoal_cell){.name = "form", .kind = SHOAL_CELL_RECORD, .bytes = sizeof(exec_form)};
        return;
    }
    if (model->collect) {
        layout->cells = 1;
        layout->cell[CELL_PARTS] = exec_parts_cell(model->part_bytes);
        return;
    }
    layout->cells = 2;
    layout->cell[CELL_DIGITS] =
        (shoal_cell){.name = "digits", .kind = SHOAL_CELL_SUM, .count = model->values * digits_of(model)};
    layout->cell[CELL_RANGE] = (shoal_cell){.name = "range", .kind = SHOAL_CELL_MAX, .count = LEARN_EXACT_RANGE};
}

/* How many values an answer of this form has; false for a form that can't be. */
static bool count_values(int64_t *out, const exec_form *form, bool collect)
{
    size_t count = 1;
    bool good =
        form->type >= 0 && form->type < SHOAL_TYPES && form->rank >= (collect ? 1 : 0) && form->rank <= EXEC_RANK_MOST;
    for (int i = 0; good && i < form->rank; i++)
        good = form->shape[i] >= 0 && base_multiply(&count, count, (size_t)form->shape[i]);
    *out = (int64_t)count;
    return good && count < (size_t)INT64_MAX / 16 / LEARN_EXACT_DIGITS_MOST;
}

/* That a model agrees with itself, and the round's partials with it. */
static int check_exec(const shoal_algorithm *self, const shoal_round *round, const shoal_shape *shape)
{
    const exec_model *model = round->model;
    shoal_layout expected = {.carry_from = -1};
    (void)self, (void)shape;
    int64_t values = 0;
    bool good = round->model_bytes > sizeof *model && ((const char *)model)[round->model_bytes - 1] == '\0' &&
                learn_window_good(&model->window);
    if (good && model->runs)
        good = count_values(&values, &model->form, model->collect) && model->values == values &&
               exec_parts_good(model->part_bytes);
    if (good)
        lay_out_exec(&expected, model);
    return good && shoal_layout_same(&round->layout, &expected)
               ? SHOAL_OK
               : shoal_fail(SHOAL_BROKEN, "the model of a round is not one of exec");
}

static int start_exec(shoal_round **out, const void *config, const shoal_shape *shape)
{
    const shoal_exec_config *asked = config;
    const char *params = asked->params ? asked->params : "{}";
    const exec_model model = {.collect = asked->collect, .timeout = asked->timeout, .window = learn_window_usual()};
    if (!(asked->timeout >= 0))
        return shoal_fail(SHOAL_USAGE, "--timeout must be at least 0");
    if (strlen(params) > PARAMS_BYTES_MOST)
        return shoal_fail(SHOAL_USAGE,
                          "--params: %zu bytes are too many for a variable of a program: send a file with --send",
                          strlen(params));
    if (shape->grains > LEARN_EXACT_ADDITIONS_MOST)
        return shoal_fail(SHOAL_USAGE, "%lld grains are too many: --grain asks for more rows in each",
                          (long long)shape->grains);
    int status = make_round(out, &model, params);
    if (status == SHOAL_OK) {
        lay_out_exec(&(*out)->layout, &model);
    }
    return status;
}

/* ---- programs ---------------------------------------------------------------------------------------------------- */

static int prepare_exec(void **prepared, const shoal_round *round, const shoal_shape *shape, const shoal_crew *crew)
{
    exec_pool *pool = *prepared;
    const exec_model *model = round->model;
    int status = SHOAL_OK;
    if (!crew->code)
        status = shoal_fail(SHOAL_USAGE, "exec needs the folder that holds its command");
    if (status == SHOAL_OK && !pool) {
        const exec_pool_options asked = {.code = crew->code, .params = model->params, .timeout = model->timeout};
        status = exec_pool_new(&pool, &asked);
        *prepared = pool;
    }
    if (status == SHOAL_OK)
        status = exec_pool_ready(pool, crew->threads < shape->grains ? crew->threads : (int)shape->grains);
    return status;
}

static void forget_exec(void **prepared)
{
    exec_pool *pool = *prepared;
    exec_pool_free(&pool);
    *prepared = NULL;
}

/* ---- mapping ----------------------------------------------------------------------------------------------------- */

/* A single number that is joined with others counts as an axis of length one. */
static exec_form form_of(const exec_answer *answer, bool collect)
{
    exec_form form = {.type = (int32_t)answer->type, .rank = answer->rank};
    for (int i = 0; i < answer->rank; i++)
        form.shape[i] = answer->shape[i];
    if (collect && form.rank == 0) {
        form.rank = 1;
        form.shape[0] = 1;
    }
    return form;
}

static int map_form(shoal_partial *partial, const exec_model *model, exec_pool *pool, const shoal_grain *grain)
{
    exec_answer answer;
    exec_program *program = NULL;
    if (grain->index != 0)
        return SHOAL_OK;
    int status = exec_pool_probe(&answer, &program, pool, grain);
    if (status == SHOAL_OK) {
        const exec_form form = form_of(&answer, model->collect);
        status = shoal_partial_record(partial, CELL_FORM, (shoal_key){0}, &form);
    }
    exec_program_end(&program, 0);
    return status;
}

/* "float64 of 3 x 4", "a single int32" */
static void describe_form(char *out, size_t size, const exec_form *form, bool collect)
{
    const char *type = shoal_type_name((shoal_type)form->type);
    size_t used = (size_t)snprintf(out, size, form->rank ? "%s of " : "a single %s", type);
    for (int i = 0; i < form->rank && used < size; i++)
        if (i == 0 && collect)
            used += (size_t)snprintf(out + used, size - used, "any length");
        else
            used += (size_t)snprintf(out + used, size - used, "%s%lld", i ? " x " : "", (long long)form->shape[i]);
}

static int check_form(const exec_form *form, const exec_model *model, const exec_pool *pool, const exec_program *by,
                      const shoal_grain *grain)
{
    bool same = form->type == model->form.type && form->rank == model->form.rank;
    char is[128], was[128], what[320];
    for (int i = model->collect ? 1 : 0; same && i < form->rank; i++)
        same = form->shape[i] == model->form.shape[i];
    if (same)
        return SHOAL_OK;
    describe_form(is, sizeof is, form, false);
    describe_form(was, sizeof was, &model->form, model->collect);
    snprintf(what, sizeof what, "its answer is %s, but that to the first rows is %s", is, was);
    return exec_pool_fail(pool, by, grain, what);
}

static void add_whole(int64_t *digits, int64_t low, int64_t high)
{
    digits[0] += low;
    digits[1] += high;
}

#define ADD_SIGNED(c_type)                                                                                             \
    for (size_t i = 0; i < answer->count; i++) {                                                                       \
        int64_t value = ((const c_type *)answer->values)[i];                                                           \
        add_whole(digits + i * WHOLE_DIGITS, value & UINT32_MAX, value >> 32);                                         \
    }                                                                                                                  \
    break
#define ADD_UNSIGNED(c_type)                                                                                           \
    for (size_t i = 0; i < answer->count; i++) {                                                                       \
        uint64_t value = ((const c_type *)answer->values)[i];                                                          \
        add_whole(digits + i * WHOLE_DIGITS, (int64_t)(value & UINT32_MAX), (int64_t)(value >> 32));                   \
    }                                                                                                                  \
    break

static void add_integers(int64_t *digits, const exec_answer *answer)
{
    switch (answer->type) {
    case SHOAL_INT8: ADD_SIGNED(int8_t);
    case SHOAL_INT16: ADD_SIGNED(int16_t);
    case SHOAL_INT32: ADD_SIGNED(int32_t);
    case SHOAL_INT64: ADD_SIGNED(int64_t);
    case SHOAL_UINT8: ADD_UNSIGNED(uint8_t);
    case SHOAL_UINT16: ADD_UNSIGNED(uint16_t);
    case SHOAL_UINT32: ADD_UNSIGNED(uint32_t);
    case SHOAL_UINT64: ADD_UNSIGNED(uint64_t);
    case SHOAL_BOOL:
        for (size_t i = 0; i < answer->count; i++)
            add_whole(digits + i * WHOLE_DIGITS, ((const uint8_t *)answer->values)[i] != 0, 0);
        break;
    case SHOAL_FLOAT32:
    case SHOAL_FLOAT64:
    case SHOAL_TYPES: SHOAL_BUG("no integers");
    }
}

/* The first value that is not finite, or the count when all are. */
static size_t add_floats(int64_t *digits, int64_t *range, const exec_answer *answer, const learn_window *window)
{
    for (size_t i = 0; i < answer->count; i++) {
        double value = answer->type == SHOAL_FLOAT32 ? (double)((const float *)answer->values)[i]
                                                     : ((const double *)answer->values)[i];
        if (!isfinite(value))
            return i;
        learn_exact_add(digits + i * (size_t)window->digits, window, value, range);
    }
    return answer->count;
}

static int map_sum(shoal_partial *partial, const exec_model *model, const exec_pool *pool, const exec_answer *answer,
                   const exec_program *by, const shoal_grain *grain)
{
    int64_t *digits = shoal_partial_values(partial, CELL_DIGITS);
    char what[128];
    if (!is_float(answer->type)) {
        add_integers(digits, answer);
        return SHOAL_OK;
    }
    size_t bad = add_floats(digits, shoal_partial_values(partial, CELL_RANGE), answer, &model->window);
    if (bad == answer->count)
        return SHOAL_OK;
    snprintf(what, sizeof what, "value %zu of its answer is NaN or infinite, which can't be added", bad + 1);
    return exec_pool_fail(pool, by, grain, what);
}

static int map_exec(shoal_partial *partial, const shoal_round *round, const void *prepared, const shoal_grain *grain,
                    const shoal_scratch *scratch)
{
    const exec_model *model = round->model;
    exec_pool *pool = (exec_pool *)prepared; /* it has a lock */
    exec_program *program = NULL;
    exec_answer answer;
    if (!model->runs)
        return map_form(partial, model, pool, grain);
    int status = exec_pool_ask(&answer, &program, pool, grain);
    if (status < 0)
        return status;
    const exec_form form = form_of(&answer, model->collect);
    status = check_form(&form, model, pool, program, grain);
    if (status == SHOAL_OK)
        status = model->collect ? exec_parts_add(partial, CELL_PARTS, model->part_bytes, grain->index, form.shape[0],
                                                 answer.values, answer.count * shoal_type_size(answer.type), scratch)
                                : map_sum(partial, model, pool, &answer, program, grain);
    exec_pool_give_back(pool, &program);
    return status;
}

static size_t scratch_exec(const shoal_round *round, const void *prepared, const shoal_shape *shape)
{
    const exec_model *model = round->model;
    (void)prepared;
    (void)shape;
    return model->collect ? exec_parts_scratch(model->part_bytes) : 1;
}

/* ---- what comes of it -------------------------------------------------------------------------------------------- */

/* Most answers are as long as the first one, so that one record holds them whole; if that is empty, perhaps as long as
 * their grain. */
static int64_t choose_part_bytes(const exec_form *form, int64_t rows_per_grain)
{
    double bytes = (double)shoal_type_size((shoal_type)form->type);
    for (int i = 0; i < form->rank; i++)
        bytes *= (double)(i == 0 && form->shape[0] == 0 ? rows_per_grain : form->shape[i]);
    return exec_parts_choose(bytes);
}

/* What the first answer looked like, and how many values it had. */
static int take_form(exec_form *out, int64_t *values, const shoal_partial *merged, bool collect)
{
    bool good = shoal_partial_records(merged, CELL_FORM) == 1;
    if (good)
        memcpy(out, shoal_partial_record_at(merged, CELL_FORM, 0, NULL), sizeof *out);
    return good && count_values(values, out, collect)
               ? SHOAL_OK
               : shoal_fail(SHOAL_BROKEN, "a round of exec found an impossible first answer");
}

static int begin_run(shoal_round **next, const exec_model *before, const shoal_partial *merged,
                     const shoal_shape *shape)
{
    exec_model model = *before;
    int status = take_form(&model.form, &model.values, merged, model.collect);
    if (status < 0)
        return status;
    model.runs = 1;
    model.part_bytes = choose_part_bytes(&model.form, shape->rows_per_grain);
    status = make_round(next, &model, before->params);
    if (status == SHOAL_OK)
        lay_out_exec(&(*next)->layout, &model);
    return status;
}

static int finish_integers(shoal_result *result, const exec_model *model, const int64_t *digits)
{
    int64_t *sum = shoal_result_add(result, "result", SHOAL_INT64, model->form.rank, model->form.shape);
    if (!sum)
        return SHOAL_MEMORY;
    for (int64_t i = 0; i < model->values; i++, digits += WHOLE_DIGITS) {
        __int128 whole = (__int128)digits[1] * ((__int128)1 << 32) + digits[0];
        if (whole > INT64_MAX || whole < INT64_MIN)
            return shoal_fail(SHOAL_INVALID, "sum %lld does not fit int64: let the program answer with floats",
                              (long long)i + 1);
        sum[i] = (int64_t)whole;
    }
    return SHOAL_OK;
}

static int finish_floats(shoal_result *result, const exec_model *model, const int64_t *digits)
{
    double *sum = shoal_result_add(result, "result", SHOAL_FLOAT64, model->form.rank, model->form.shape);
    if (!sum)
        return SHOAL_MEMORY;
    for (int64_t i = 0; i < model->values; i++) {
        sum[i] = learn_exact_value(digits + i * model->window.digits, &model->window);
        if (!isfinite(sum[i]))
            return shoal_fail(SHOAL_INVALID, "sum %lld is too large for float64", (long long)i + 1);
    }
    return SHOAL_OK;
}

static int finish_joined(shoal_result *result, const exec_model *model, const shoal_partial *merged)
{
    exec_form form = model->form;
    form.shape[0] = exec_parts_length(merged, CELL_PARTS, model->part_bytes);
    size_t left = shoal_type_size((shoal_type)form.type);
    for (int i = 0; i < form.rank; i++)
        if (form.shape[i] < 0 || !base_multiply(&left, left, (size_t)form.shape[i]))
            return shoal_fail(SHOAL_BROKEN, "the answers of exec are not what was written");
    unsigned char *to = shoal_result_add(result, "result", (shoal_type)form.type, form.rank, form.shape);
    if (!to)
        return SHOAL_MEMORY;
    return exec_parts_join(to, left, merged, CELL_PARTS);
}

static int finish_run(shoal_result **result, const exec_model *model, const shoal_partial *merged)
{
    int status = shoal_result_new(result);
    if (status < 0)
        return status;
    if (model->collect)
        status = finish_joined(*result, model, merged);
    else if (is_float(model->form.type))
        status = finish_floats(*result, model, shoal_partial_values_const(merged, CELL_DIGITS));
    else
        status = finish_integers(*result, model, shoal_partial_values_const(merged, CELL_DIGITS));
    if (status < 0)
        shoal_result_free(result);
    return status;
}

static int update_exec(shoal_round **next, shoal_result **result, const shoal_round *round, shoal_partial *merged,
                       const shoal_shape *shape, const shoal_crew *crew, bool stop)
{
    const exec_model *model = round->model;
    (void)crew;
    exec_model wider = *model;
    bool again = model->runs && !model->collect &&
                 learn_window_widen(&wider.window, shoal_partial_values_const(merged, CELL_RANGE));
    if (stop && (again || !model->runs))
        return shoal_fail(SHOAL_STOPPED, "stopped before there was a result");
    if (!model->runs)
        return begin_run(next, model, merged, shape);
    if (!again)
        return finish_run(result, model, merged);
    int status = make_round(next, &wider, model->params);
    if (status == SHOAL_OK)
        lay_out_exec(&(*next)->layout, &wider);
    return status;
}

/* What a program does to a row, and how long its answers are, only it knows. */
static int cost_exec(shoal_cost *out, const void *config, const shoal_shape *shape)
{
    (void)config, (void)shape;
    *out = (shoal_cost){0};
    return SHOAL_OK;
}

const shoal_algorithm shoal_exec = {
    .version = SHOAL_ALGORITHM_VERSION,
    .bytes = sizeof(shoal_algorithm),
    .name = "exec",
    .summary = "any program that reads and writes .npy arrays",
    .options = options,
    .config_size = sizeof(shoal_exec_config),
    .kernel_free = true,
    .runs_code = true,
    .start = start_exec,
    .check = check_exec,
    .prepare = prepare_exec,
    .forget = forget_exec,
    .scratch_bytes = scratch_exec,
    .map = map_exec,
    .update = update_exec,
    .cost = cost_exec,
};
