/* What samplers share. */
#include "sampler.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <shoal/error.h>

#include "base/random.h"

const sweep_sampler *const sweep_samplers[] = {&sweep_sampler_tpe,   &sweep_sampler_gp,   &sweep_sampler_random,
                                               &sweep_sampler_sobol, &sweep_sampler_grid, NULL};

const sweep_sampler *sweep_sampler_find(const char *name)
{
    for (int i = 0; sweep_samplers[i]; i++)
        if (strcmp(sweep_samplers[i]->name, name) == 0)
            return sweep_samplers[i];
    return NULL;
}

double sweep_chance(const sweep_question *question, uint32_t draw)
{
    return base_random_unit(question->seed, BASE_FOR_SWEEPS, (uint64_t)question->number, draw);
}

void sweep_point_at(sweep_point *out, const sweep_space *space, const double place[SWEEP_PARAMETERS_MOST])
{
    for (int i = 0; i < SWEEP_PARAMETERS_MOST; i++)
        out->value[i] = NAN;
    for (int k = 0; k < space->parameters; k++) {
        const int i = space->order[k];
        if (sweep_is_active(space, out, i))
            out->value[i] = sweep_value_at(&space->parameter[i], place[i]);
    }
}

static int choose_of_pool(sweep_point *out, const sweep_question *question)
{
    int64_t left = 0;
    for (int64_t i = 0; i < question->pools; i++)
        left += !question->used[i];
    if (left == 0)
        return shoal_fail(SHOAL_ABSENT, "every point of the table was tried");
    int64_t skip =
        (int64_t)base_random_below((uint64_t)left, question->seed, BASE_FOR_SWEEPS, (uint64_t)question->number, 0);
    for (int64_t i = 0; i < question->pools; i++)
        if (!question->used[i] && skip-- == 0)
            *out = question->pool[i];
    return SHOAL_OK;
}

int sweep_point_by_chance(sweep_point *out, const sweep_question *question)
{
    double place[SWEEP_PARAMETERS_MOST];
    if (question->pool)
        return choose_of_pool(out, question);
    for (int i = 0; i < question->space->parameters; i++)
        place[i] = sweep_chance(question, (uint32_t)i);
    sweep_point_at(out, question->space, place);
    return SHOAL_OK;
}

bool sweep_was_tried(const sweep_question *question, const sweep_point *point)
{
    for (int64_t i = 0; i < question->trials; i++)
        if (sweep_same_point(question->space, &question->trial[i].point, point))
            return true;
    return false;
}

static int by_success(const void *a, const void *b, void *context)
{
    const sweep_question *question = context;
    const int64_t i = *(const int64_t *)a, j = *(const int64_t *)b;
    const sweep_trial *x = &question->trial[i], *y = &question->trial[j];
    const bool x_failed = x->state == SWEEP_FAILED || !isfinite(x->value);
    const bool y_failed = y->state == SWEEP_FAILED || !isfinite(y->value);
    if (x_failed != y_failed)
        return x_failed - y_failed;
    if (!x_failed && x->rungs != y->rungs)
        return (y->rungs > x->rungs) - (y->rungs < x->rungs);
    if (!x_failed && x->value != y->value)
        return (x->value > y->value) - (x->value < y->value);
    return (i > j) - (i < j);
}

int64_t sweep_rank_trials(int64_t *order, const sweep_question *question)
{
    int64_t count = 0;
    for (int64_t i = 0; i < question->trials; i++)
        if (question->trial[i].rungs > 0 || question->trial[i].state == SWEEP_FAILED)
            order[count++] = i;
    qsort_r(order, (size_t)count, sizeof *order, by_success, (void *)question);
    return count;
}
