/* The learner "calls".  See exec_calls.h. */
#include "learn/exec/exec_calls.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "learn/check.h"
#include "learn/exec/exec_parts.h"
#include "learn/exec/exec_pool.h"

enum { CELL_PARTS = 0 };
static const double FIRST_ANSWER = 1024; /* bytes that an answer may well have, before there is one */

typedef struct calls_model {
    int64_t call; /* 0: nothing is asked */
    double timeout;
    int64_t part_bytes;
    unsigned char params[];
} calls_model;

static _Thread_local const exec_caller *leads;

void exec_calls_lead(const exec_caller *caller)
{
    leads = caller;
}

/* ---- rounds ------------------------------------------------------------------------------------------------------ */

static void lay_out_calls(shoal_layout *layout, const calls_model *model)
{
    layout->cells = 1;
    layout->cell[CELL_PARTS] = exec_parts_cell(model->part_bytes);
}

static int make_round(shoal_round **out, const calls_model *model, const void *params, size_t bytes)
{
    int status = shoal_round_new(out, sizeof *model + bytes);
    if (status < 0)
        return status;
    calls_model *copy = (*out)->model;
    *copy = *model;
    if (bytes > 0)
        memcpy(copy->params, params, bytes);
    snprintf((*out)->phase, sizeof(*out)->phase, "%s", model->call ? "call" : "start");
    (*out)->step = model->call;
    lay_out_calls(&(*out)->layout, model);
    return SHOAL_OK;
}

static int start_calls(shoal_round **out, const void *config, const shoal_shape *shape)
{
    const shoal_exec_config *asked = config;
    const calls_model model = {.timeout = asked->timeout, .part_bytes = exec_parts_choose(FIRST_ANSWER)};
    (void)shape;
    if (!(asked->timeout >= 0))
        return shoal_fail(SHOAL_USAGE, "--timeout must be at least 0");
    return make_round(out, &model, NULL, 0);
}

static int check_calls(const shoal_algorithm *self, const shoal_round *round, const shoal_shape *shape)
{
    const calls_model *model = round->model;
    shoal_layout expected = {.carry_from = -1};
    (void)self, (void)shape;
    bool good = round->model_bytes >= sizeof *model && model->call >= 0 && model->timeout >= 0 &&
                exec_parts_good(model->part_bytes);
    if (good)
        lay_out_calls(&expected, model);
    return good && shoal_layout_same(&round->layout, &expected)
               ? SHOAL_OK
               : shoal_fail(SHOAL_BROKEN, "the model of a round is not one of calls");
}

/* ---- mapping ----------------------------------------------------------------------------------------------------- */

static int prepare_calls(void **prepared, const shoal_round *round, const shoal_shape *shape, const shoal_crew *crew)
{
    exec_pool *pool = *prepared;
    const calls_model *model = round->model;
    int status = SHOAL_OK;
    if (!crew->code)
        status = shoal_fail(SHOAL_USAGE, "calls need the folder that holds their command");
    if (status == SHOAL_OK && !pool) {
        status =
            exec_pool_new(&pool, &(exec_pool_options){.code = crew->code, .params = "{}", .timeout = model->timeout});
        *prepared = pool;
    }
    if (status == SHOAL_OK)
        exec_pool_tell(pool, model->call, model->params, round->model_bytes - sizeof *model);
    if (status == SHOAL_OK)
        status = exec_pool_ready(pool, crew->threads < shape->grains ? crew->threads : (int)shape->grains);
    return status;
}

static void forget_calls(void **prepared)
{
    exec_pool *pool = *prepared;
    exec_pool_free(&pool);
    *prepared = NULL;
}

static size_t scratch_calls(const shoal_round *round, const void *prepared, const shoal_shape *shape)
{
    const calls_model *model = round->model;
    (void)prepared, (void)shape;
    return exec_parts_scratch(model->part_bytes);
}

static int map_calls(shoal_partial *partial, const shoal_round *round, const void *prepared, const shoal_grain *grain,
                     const shoal_scratch *scratch)
{
    const calls_model *model = round->model;
    exec_pool *pool = (exec_pool *)prepared; /* it has a lock */
    exec_program *program = NULL;
    exec_answer answer;
    if (model->call == 0)
        return SHOAL_OK;
    int status = exec_pool_ask(&answer, &program, pool, grain);
    if (status < 0)
        return status;
    if (answer.type != SHOAL_UINT8 || answer.rank != 1)
        status = exec_pool_fail(pool, program, grain, "its answer is not an array of bytes with one dimension");
    else
        status = exec_parts_add(partial, CELL_PARTS, model->part_bytes, grain->index, answer.shape[0], answer.values,
                                answer.count, scratch);
    exec_pool_give_back(pool, &program);
    return status;
}

/* ---- what comes of it -------------------------------------------------------------------------------------------- */

/* Of the longest answer: the next ones will be as long, and then a record holds one whole. */
static int64_t longest_of(const shoal_partial *merged)
{
    int64_t longest = 0;
    for (int64_t i = 0; i < shoal_partial_records(merged, CELL_PARTS); i++) {
        const exec_part *part = shoal_partial_record_at(merged, CELL_PARTS, i, NULL);
        longest = part->length > longest ? part->length : longest;
    }
    return longest;
}

static int hand_over(const calls_model *model, const shoal_partial *merged)
{
    unsigned char *answers = NULL;
    int64_t length = exec_parts_length(merged, CELL_PARTS, model->part_bytes);
    if (length < 0)
        return shoal_fail(SHOAL_BROKEN, "the answers of calls are not what was written");
    int status = base_alloc(&answers, (size_t)length + 1, 1, "the answers to a call");
    if (status == SHOAL_OK)
        status = exec_parts_join(answers, (size_t)length, merged, CELL_PARTS);
    if (status < 0) {
        base_free(&answers);
        return status;
    }
    leads->answered(leads->context, model->call, answers, (size_t)length);
    return SHOAL_OK;
}

static int update_calls(shoal_round **next, shoal_result **result, const shoal_round *round, shoal_partial *merged,
                        const shoal_shape *shape, const shoal_crew *crew, bool stop)
{
    calls_model model = *(const calls_model *)round->model;
    const void *params = NULL;
    size_t bytes = 0;
    (void)shape, (void)crew, (void)stop;
    if (!leads)
        return shoal_fail(SHOAL_SYSTEM, "calls are led by the process that makes them, and by no other");
    int status = SHOAL_OK;
    if (model.call > 0) {
        status = hand_over(&model, merged);
        model.part_bytes = exec_parts_choose((double)longest_of(merged));
    }
    if (status == SHOAL_OK)
        status = leads->await(leads->context, ++model.call, &params, &bytes);
    if (status == SHOAL_ABSENT)
        return shoal_result_new(result);
    return status == SHOAL_OK ? make_round(next, &model, params, bytes) : status;
}

static const shoal_option no_options[] = {{0}};

/* What a program does to a row, and how long its answers are, only it knows. */
static int cost_calls(shoal_cost *out, const void *config, const shoal_shape *shape)
{
    (void)config, (void)shape;
    *out = (shoal_cost){0};
    return SHOAL_OK;
}

const shoal_algorithm exec_calls = {
    .version = SHOAL_ALGORITHM_VERSION,
    .bytes = sizeof(shoal_algorithm),
    .name = "calls",
    .summary = "any program that answers bytes, called again and again",
    .options = no_options,
    .config_size = sizeof(shoal_exec_config),
    .kernel_free = true,
    .runs_code = true,
    .start = start_calls,
    .check = check_calls,
    .prepare = prepare_calls,
    .forget = forget_calls,
    .scratch_bytes = scratch_calls,
    .map = map_calls,
    .update = update_calls,
    .cost = cost_calls,
};
