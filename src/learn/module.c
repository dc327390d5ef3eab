/* Modules as learners.  See module.h.
 *
 * Batches are drawn from 16 strata, a run of positions after another; an epoch's last batch ends with it.
 *
 * A round's model is the head below, the numbers that the module calls its model, and the parameters as text.  The sums
 * of a grain are the module's own doubles; those of all grains are added in learn/exact.h, and a round whose sums
 * needed more digits than it had is asked for again with more. */
#include "learn/module.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "learn/check.h"
#include "learn/exact.h"
#include "learn/module_internal.h"
#include "learn/partial.h"

enum { CELL_DIGITS = 0, CELL_RANGE = 1 };
/* Sums of a group are made exact one by one, so groups should not be small. */
enum { STRATA = 16, GROUP_ROWS = 64 };
static const int64_t NUMBERS_MOST = INT64_MAX / 16 / 8 / LEARN_EXACT_DIGITS_MOST;

typedef struct model_head {
    int64_t round; /* of the module's own, which one that is asked for again keeps */
    int64_t sums, numbers;
    uint64_t seed;              /* of batches, */
    int64_t epoch, from, batch; /* and where this round's begins; batch 0: it sees all rows */
    learn_window window;
    double values[]; /* numbers of them; then the parameters, followed by a NUL */
} model_head;

static const char *params_of(const model_head *model)
{
    return (const char *)(model->values + model->numbers);
}

static int need_module(const shoal_module **out)
{
    *out = learn_module_current();
    return *out ? SHOAL_OK : shoal_fail(SHOAL_USAGE, "no module has been loaded");
}

/* ---- rounds ------------------------------------------------------------------------------------------------------ */

static void lay_out_module(shoal_layout *layout, const model_head *head)
{
    layout->cells = 2;
    layout->cell[CELL_DIGITS] =
        (shoal_cell){.name = "digits", .kind = SHOAL_CELL_SUM, .count = head->sums * head->window.digits};
    layout->cell[CELL_RANGE] = (shoal_cell){.name = "range", .kind = SHOAL_CELL_MAX, .count = LEARN_EXACT_RANGE};
    if (head->batch)
        layout->pick = (shoal_pick){.key = shoal_epoch_key(head->seed, head->epoch),
                                    .from = head->from,
                                    .count = head->batch,
                                    .group = GROUP_ROWS};
}

static int make_round(shoal_round **out, const model_head *head, const double *values, const char *params)
{
    size_t length = strlen(params);
    int status = shoal_round_new(out, sizeof *head + (size_t)head->numbers * sizeof(double) + length + 1);
    if (status < 0)
        return status;
    shoal_round *round = *out;
    model_head *model = round->model;
    *model = *head;
    if (values)
        memcpy(model->values, values, (size_t)head->numbers * sizeof(double));
    memcpy(model->values + head->numbers, params, length + 1);
    snprintf(round->phase, sizeof round->phase, "run");
    round->step = head->round;
    lay_out_module(&round->layout, head);
    return SHOAL_OK;
}

/* That a model agrees with itself, and the round's partials with it. */
static int check_module(const shoal_algorithm *self, const shoal_round *round, const shoal_shape *shape)
{
    const model_head *model = round->model;
    shoal_layout expected = {.carry_from = -1};
    (void)self;
    bool good = round->model_bytes > sizeof *model && ((const char *)model)[round->model_bytes - 1] == '\0';
    good = good && model->round >= 0 && model->round < INT64_MAX && model->sums > 0 && model->sums <= NUMBERS_MOST &&
           model->epoch >= 0 && model->epoch < INT64_MAX && model->from >= 0 && model->from < shape->rows &&
           model->batch >= 0 && model->batch <= shape->rows && model->numbers >= 0 &&
           (size_t)model->numbers <= (round->model_bytes - 1 - sizeof *model) / sizeof(double) &&
           learn_window_good(&model->window);
    if (good)
        lay_out_module(&expected, model);
    return good && shoal_layout_same(&round->layout, &expected)
               ? SHOAL_OK
               : shoal_fail(SHOAL_BROKEN, "the model of a round is not that of a module");
}

static int64_t rows_seen(const model_head *model, const shoal_shape *shape)
{
    shoal_layout layout = {0};
    lay_out_module(&layout, model);
    return model->batch ? shoal_pick_rows(&layout.pick, shape) : shape->rows;
}

/* A setting with its parameters, for one call.  The caller frees them. */
static int make_setting(shoal_setting *out, shoal_params **params, const model_head *model, const shoal_shape *shape)
{
    int status = learn_params_new(params, params_of(model));
    *out = (shoal_setting){.rows = shape->rows,
                           .columns = shape->columns,
                           .sums = model->sums,
                           .numbers = model->numbers,
                           .seen = rows_seen(model, shape),
                           .epoch = model->epoch,
                           .params = *params};
    return status;
}

/* Asks the module how many there are; what it leaves open is `usual`. */
static int ask_count(int64_t *out, int64_t (*count)(const shoal_setting *), const shoal_setting *setting, int64_t usual,
                     const char *what)
{
    *out = count ? count(setting) : usual;
    if (*out < 0)
        return *out >= SHOAL_BROKEN ? (int)*out : SHOAL_INVALID; /* with the module's own sentence */
    if (*out > NUMBERS_MOST)
        return shoal_fail(SHOAL_INVALID, "the module asks for %lld %s", (long long)*out, what);
    return SHOAL_OK;
}

static int check_module_numbers(const double *values, int64_t count, const char *who, int64_t round)
{
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(values[i]))
            return shoal_fail(SHOAL_INVALID, "the module's %s made number %lld of the model %s in round %lld", who,
                              (long long)i + 1, isnan(values[i]) ? "NaN" : "infinite", (long long)round);
    return SHOAL_OK;
}

/* Fills setting->sums and numbers. */
static int ask_sizes(const shoal_module *module, shoal_setting *setting)
{
    int status = ask_count(&setting->sums, module->sums, setting, setting->columns, "sums");
    if (status == SHOAL_OK && setting->sums == 0)
        status = shoal_fail(SHOAL_INVALID, "the module asks for no sums");
    return status < 0 ? status : ask_count(&setting->numbers, module->numbers, setting, setting->sums, "numbers");
}

/* Asks the module for the batch of round head->round.  More rows than there are is all of them. */
static int ask_batch(model_head *head, const shoal_module *module, const shoal_setting *last)
{
    shoal_setting setting = *last;
    setting.epoch = head->epoch;
    setting.seen = 0; /* which is what it is asked for */
    if (!module->batch)
        return SHOAL_OK;
    shoal_fail(SHOAL_INVALID, "the module's batch of round %lld has fewer than 0 rows", (long long)head->round);
    int64_t rows = module->batch(head->round, &setting);
    if (rows < 0)
        return rows >= SHOAL_BROKEN ? (int)rows : SHOAL_INVALID; /* with the module's own sentence, if it has one */
    head->batch = rows < setting.rows ? rows : setting.rows;
    return learn_params_check(setting.params);
}

/* Goes on behind this round's batch. */
static void pass_batch(model_head *head, const shoal_shape *shape)
{
    head->from += head->batch < shape->rows - head->from ? head->batch : shape->rows - head->from;
    if (head->from < shape->rows)
        return;
    head->from = 0;
    head->epoch++;
}

/* Any whole number will do, as it does for the learners that are built in. */
static int read_seed(uint64_t *out, const shoal_setting *setting)
{
    double seed = shoal_param(setting, "seed", 0);
    if (!(seed >= 0 && seed <= 0x1p53 && seed == floor(seed)))
        return shoal_fail(SHOAL_USAGE, "the parameter 'seed' must be a whole number from 0 to 2^53");
    *out = (uint64_t)seed;
    return SHOAL_OK;
}

static int start_with(shoal_round **out, const shoal_module *module, shoal_setting *setting, const char *params)
{
    model_head head = {.window = learn_window_usual()};
    int status = ask_sizes(module, setting);
    if (status < 0)
        return status;
    head.sums = setting->sums;
    head.numbers = setting->numbers;
    if (module->batch && (status = read_seed(&head.seed, setting)) == SHOAL_OK)
        status = ask_batch(&head, module, setting);
    if (status == SHOAL_OK)
        status = make_round(out, &head, NULL, params);
    model_head *model = status == SHOAL_OK ? (*out)->model : NULL;
    if (status == SHOAL_OK && module->start)
        status = module->start(model->values, setting);
    if (status == SHOAL_OK)
        status = check_module_numbers(model->values, model->numbers, "start", 0);
    if (status == SHOAL_OK)
        status = learn_params_check(setting->params);
    if (status < 0)
        shoal_round_free(out);
    return status;
}

static int start_module(shoal_round **out, const void *config, const shoal_shape *shape)
{
    const learn_module_config *asked = config;
    const char *text = asked->params ? asked->params : "{}";
    const shoal_module *module = NULL;
    shoal_params *params = NULL;
    int status = need_module(&module);
    if (status == SHOAL_OK && shape->grains > LEARN_EXACT_ADDITIONS_MOST)
        status = shoal_fail(SHOAL_USAGE, "%lld grains are too many: --grain asks for more rows in each",
                            (long long)shape->grains);
    if (status == SHOAL_OK)
        status = learn_params_new(&params, text);
    shoal_setting setting = {.rows = shape->rows, .columns = shape->columns, .params = params};
    if (status == SHOAL_OK)
        status = start_with(out, module, &setting, text);
    learn_params_free(&params);
    return status;
}

/* ---- mapping ----------------------------------------------------------------------------------------------------- */

typedef struct module_ready {
    const shoal_module *module;
    shoal_setting setting;
    shoal_params *params;
} module_ready;

static void forget_module(void **prepared)
{
    module_ready *ready = *prepared;
    if (!ready)
        return;
    learn_params_free(&ready->params);
    base_free(prepared);
}

static int prepare_module(void **prepared, const shoal_round *round, const shoal_shape *shape, const shoal_crew *crew)
{
    module_ready *ready = NULL;
    forget_module(prepared);
    int status = base_alloc(&ready, 1, sizeof *ready, "a module's setting");
    if (status < 0)
        return status;
    *prepared = ready;
    status = need_module(&ready->module);
    if (status == SHOAL_OK)
        status = make_setting(&ready->setting, &ready->params, round->model, shape);
    ready->setting.from = crew->from;
    ready->setting.to = crew->to;
    return status;
}

static size_t align_up(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

static size_t sum_bytes(const model_head *model)
{
    return align_up((size_t)model->sums * sizeof(double));
}

static size_t scratch_module(const shoal_round *round, const void *prepared, const shoal_shape *shape)
{
    (void)prepared;
    int64_t rows = shape->rows_per_grain > GROUP_ROWS ? shape->rows_per_grain : GROUP_ROWS;
    size_t converted = shape->type == SHOAL_FLOAT64 ? 0 : (size_t)rows * (size_t)shape->columns * sizeof(double);
    return sum_bytes(round->model) + converted;
}

static int fail_sum(double sum, int64_t index, const shoal_grain *grain, int64_t round)
{
    const char *what = isnan(sum) ? "NaN" : "infinite";
    if (grain->row && grain->rows > 1)
        return shoal_fail(SHOAL_INVALID, "the module's sum %lld of row %lld and %lld more is %s in round %lld",
                          (long long)index + 1, (long long)grain->row[0] + 1, (long long)grain->rows - 1, what,
                          (long long)round);
    if (grain->rows == 1)
        return shoal_fail(SHOAL_INVALID, "the module's sum %lld of row %lld is %s in round %lld", (long long)index + 1,
                          (long long)(grain->row ? grain->row[0] : grain->first_row) + 1, what, (long long)round);
    return shoal_fail(SHOAL_INVALID, "the module's sum %lld of rows %lld to %lld is %s in round %lld",
                      (long long)index + 1, (long long)grain->first_row + 1,
                      (long long)(grain->first_row + grain->rows), what, (long long)round);
}

static int map_module(shoal_partial *partial, const shoal_round *round, const void *prepared, const shoal_grain *grain,
                      const shoal_scratch *scratch)
{
    const module_ready *ready = prepared;
    const model_head *model = round->model;
    double *sum = scratch->memory, *converted = (double *)((char *)scratch->memory + sum_bytes(model));
    int64_t *digits = shoal_partial_values(partial, CELL_DIGITS), *range = shoal_partial_values(partial, CELL_RANGE);
    shoal_rows rows = {.values = grain->values,
                       .weights = grain->weights,
                       .count = grain->rows,
                       .columns = grain->shape->columns,
                       .first = grain->first_row,
                       .row = grain->row};
    if (grain->shape->type != SHOAL_FLOAT64) {
        shoal_convert_float64(converted, grain->values, grain->shape->type, grain->rows * grain->shape->columns);
        rows.values = converted;
    }
    memset(sum, 0, (size_t)model->sums * sizeof *sum);
    ready->module->map(sum, model->values, &rows, &ready->setting);
    int status = learn_params_check(ready->params);
    if (status < 0)
        return status;
    for (int64_t i = 0; i < model->sums; i++, digits += model->window.digits) {
        if (!isfinite(sum[i]))
            return fail_sum(sum[i], i, grain, model->round);
        learn_exact_add(digits, &model->window, sum[i], range);
    }
    return SHOAL_OK;
}

/* ---- what comes of it -------------------------------------------------------------------------------------------- */

static int make_module_result(shoal_result **out, const double *values, int64_t count, int64_t rounds)
{
    int status = shoal_result_new(out);
    double *copy = status == SHOAL_OK ? shoal_result_add(*out, "result", SHOAL_FLOAT64, 1, &count) : NULL;
    if (!copy) {
        shoal_result_free(out);
        return SHOAL_MEMORY;
    }
    memcpy(copy, values, (size_t)count * sizeof *copy);
    shoal_result_set_whole(*out, "steps", rounds);
    return SHOAL_OK;
}

static int read_sums(double **out, const model_head *model, const shoal_partial *merged)
{
    const int64_t *digits = shoal_partial_values_const(merged, CELL_DIGITS);
    int status = base_alloc(out, (size_t)model->sums, sizeof **out, "sums");
    for (int64_t i = 0; status == SHOAL_OK && i < model->sums; i++) {
        (*out)[i] = learn_exact_value(digits + i * model->window.digits, &model->window);
        if (!isfinite((*out)[i]))
            status = shoal_fail(SHOAL_INVALID, "the module's sum %lld is too large for float64 in round %lld",
                                (long long)i + 1, (long long)model->round);
    }
    return status;
}

/* The module's own update, and what it said of how far things are. */
static int step_module(shoal_round **next, shoal_result **result, const shoal_module *module, const model_head *model,
                       const double *sum, const shoal_shape *shape, bool stop)
{
    shoal_params *params = NULL;
    shoal_setting setting;
    model_head head = *model;
    shoal_round *round = NULL;
    int status = make_setting(&setting, &params, model, shape);
    head.round++;
    pass_batch(&head, shape);
    head.batch = 0; /* unknown until the module has said that there is a next round */
    if (status == SHOAL_OK)
        status = make_round(&round, &head, model->values, params_of(model));
    if (status < 0)
        goto done;
    double *values = ((model_head *)round->model)->values;
    double objective = module->objective ? module->objective(model->values, sum, &setting) : NAN;
    bool last = module->update(values, sum, model->round, &setting);
    status = learn_params_check(params);
    if (status == SHOAL_OK)
        status = check_module_numbers(values, head.numbers, "update", model->round);
    if (status == SHOAL_OK && (last || stop)) {
        status = make_module_result(result, values, head.numbers, head.round);
        if (status == SHOAL_OK) {
            (*result)->incomplete = !last;
            if (!isnan(objective))
                shoal_result_set(*result, "objective", objective);
        }
    } else if (status == SHOAL_OK && (status = ask_batch(&head, module, &setting)) == SHOAL_OK) {
        *(model_head *)round->model = head;
        lay_out_module(&round->layout, &head);
        round->objective = objective;
        *next = round;
        round = NULL;
    }
done:
    shoal_round_free(&round);
    learn_params_free(&params);
    return status;
}

/* The same round with more digits. */
static int ask_again(shoal_round **next, const model_head *model, learn_window window, bool stop)
{
    model_head head = *model;
    head.window = window;
    if (stop)
        return shoal_fail(SHOAL_STOPPED, "stopped before the end of a round");
    return make_round(next, &head, model->values, params_of(model));
}

static int update_module(shoal_round **next, shoal_result **result, const shoal_round *round, shoal_partial *merged,
                         const shoal_shape *shape, const shoal_crew *crew, bool stop)
{
    const model_head *model = round->model;
    const shoal_module *module = NULL;
    double *sum = NULL;
    (void)crew;
    int status = need_module(&module);
    if (status < 0)
        return status;
    learn_window window = model->window;
    if (learn_window_widen(&window, shoal_partial_values_const(merged, CELL_RANGE)))
        return ask_again(next, model, window, stop);
    status = read_sums(&sum, model, merged);
    if (status == SHOAL_OK)
        status = module->update ? step_module(next, result, module, model, sum, shape, stop)
                                : make_module_result(result, sum, model->sums, 1);
    base_free(&sum);
    return status;
}

static int strata_module(const void *config, shoal_shape *shape)
{
    const shoal_module *module = NULL;
    (void)config;
    int status = need_module(&module);
    if (status == SHOAL_OK && module->batch)
        shape->strata = STRATA;
    return status;
}

/* Only a module with an update knows how many rounds it makes; its work per row is taken as the least: an
 * addition a value. */
static int cost_module(shoal_cost *out, const void *config, const shoal_shape *shape)
{
    enum { ROUND_BYTES = 190, PARTIAL_BYTES = 20 }; /* names, numbers and a layout around them on the way */
    const learn_module_config *asked = config;
    const char *text = asked->params ? asked->params : "{}";
    const shoal_module *module = learn_module_current();
    shoal_params *params = NULL;
    *out = (shoal_cost){0};
    if (!module)
        return SHOAL_OK;
    model_head head = {0};
    int status = learn_params_new(&params, text);
    shoal_setting setting = {.rows = shape->rows, .columns = shape->columns, .params = params};
    if (status == SHOAL_OK)
        status = ask_sizes(module, &setting);
    if (status == SHOAL_OK)
        status = ask_batch(&head, module, &setting);
    learn_params_free(&params);
    if (status < 0)
        return status;
    double digits = (double)setting.sums * learn_window_usual().digits, numbers = (double)setting.numbers;
    double rounds = module->update ? 0 : 1; /* it ends when it likes */
    double share = head.batch ? (double)head.batch / (double)shape->rows : 1;
    const shoal_cost_phase run = {.name = "run",
                                  .rounds = rounds,
                                  .operations_per_row = (double)shape->columns * share,
                                  .model_bytes = ROUND_BYTES + sizeof(model_head) + numbers * sizeof(double) +
                                                 (double)strlen(text),
                                  .partial_bytes = PARTIAL_BYTES + (digits + LEARN_EXACT_RANGE) * sizeof(int64_t)};
    *out = (shoal_cost){.operations_per_row = run.operations_per_row,
                        .model_bytes = run.model_bytes,
                        .partial_bytes = run.partial_bytes,
                        .rounds = (int64_t)rounds,
                        .phases = 1,
                        .phase = {run}};
    return SHOAL_OK;
}

const shoal_option learn_module_options[] = {
    {"params", 'p', SHOAL_OPTION_TEXT, offsetof(learn_module_config, params), "FILE|JSON",
     .help = "parameters: a JSON object such as '{\"rate\": 0.1}', or a file that holds one"},
    {0},
};

const shoal_algorithm learn_module = {
    .version = SHOAL_ALGORITHM_VERSION,
    .bytes = sizeof(shoal_algorithm),
    .name = "module",
    .summary = "a learner of your own",
    .options = learn_module_options,
    .config_size = sizeof(learn_module_config),
    .kernel_free = true,
    .start = start_module,
    .check = check_module,
    .prepare = prepare_module,
    .forget = forget_module,
    .strata = strata_module,
    .scratch_bytes = scratch_module,
    .map = map_module,
    .update = update_module,
    .cost = cost_module,
};
