/* See course.h. */
#include "course.h"

#include <math.h>
#include <string.h>

#include <shoal/error.h>

#include "base/memory.h"

void sweep_course_init(sweep_course *course, const sweep_rules *rules)
{
    *course = (sweep_course){.rules = rules, .best = -1};
}

void sweep_course_release(sweep_course *course)
{
    base_free(&course->trial);
    base_free(&course->order);
}

bool sweep_course_reached(const sweep_course *course)
{
    return course->best >= 0 && course->trial[course->best].value <= course->rules->goal;
}

/* ---- orders ------------------------------------------------------------------------------------------------------ */

/* Room for one more of what there are `count` of. */
static int make_room(void *inout, int64_t *room, int64_t count, size_t size)
{
    if (count < *room)
        return SHOAL_OK;
    const int64_t more = *room ? 2 * *room : 64;
    int status = base_grow(inout, (size_t)*room, (size_t)more, size, "the trials of a sweep");
    if (status == SHOAL_OK)
        *room = more;
    return status;
}

/* A new trial at the end, which is not yet counted. */
static int add_trial(sweep_trial **out, sweep_course *course)
{
    const sweep_rules *rules = course->rules;
    int status = make_room(&course->trial, &course->trials_room, course->trials, sizeof *course->trial);
    if (status < 0)
        return status;
    sweep_trial *trial = *out = &course->trial[course->trials];
    *trial =
        (sweep_trial){.value = NAN, .first = rules->stopper->first(&rules->rungs, course->trials - course->adopted)};
    for (int i = 0; i < trial->first; i++)
        trial->rung[i] = NAN;
    return SHOAL_OK;
}

int sweep_course_adopt(sweep_course *course, const sweep_point *point, double value, int64_t step)
{
    const int rungs = course->rules->rungs.count;
    sweep_trial *trial;
    if (course->orders > 0)
        return shoal_fail(SHOAL_BROKEN, "trials of another sweep come after an order");
    int status = add_trial(&trial, course);
    if (status < 0)
        return status;
    trial->point = *point;
    trial->state = isnan(value) ? SWEEP_FAILED : SWEEP_DONE;
    trial->first = rungs - 1; /* it was compared with none of ours on its way */
    trial->rungs = rungs;
    for (int i = 0; i < rungs - 1; i++)
        trial->rung[i] = NAN;
    trial->rung[rungs - 1] = isnan(value) ? INFINITY : value;
    trial->step = step;
    trial->value = value;
    if (!isnan(value) && (course->best < 0 || value < course->trial[course->best].value))
        course->best = course->trials;
    course->trials++;
    course->adopted++;
    return SHOAL_OK;
}

bool sweep_course_is_full(const sweep_course *course)
{
    return course->exhausted || course->trials - course->adopted >= course->rules->trials;
}

static int begin_trial(sweep_course *course)
{
    const sweep_rules *rules = course->rules;
    sweep_trial *trial;
    if (sweep_course_is_full(course))
        return shoal_fail(SHOAL_ABSENT, "all trials have begun");
    int status = add_trial(&trial, course);
    if (status < 0)
        return status;
    const sweep_question question = {.space = rules->space,
                                     .seed = rules->seed,
                                     .number = course->trials - course->adopted,
                                     .trial = course->trial,
                                     .trials = course->trials,
                                     .adopted = course->adopted,
                                     .pool = course->pool,
                                     .used = course->used,
                                     .pools = course->pools};
    status = rules->sampler->suggest(&trial->point, &question);
    if (status == SHOAL_OK)
        course->trials++;
    course->exhausted = status == SHOAL_ABSENT;
    return status;
}

static int next_rung(const sweep_trial *trial)
{
    return trial->rungs > trial->first ? trial->rungs : trial->first;
}

/* There is room for it. */
static void add_order(sweep_course *course, int64_t which)
{
    sweep_trial *trial = &course->trial[which];
    const int rung = next_rung(trial);
    trial->state = SWEEP_RUNNING;
    course->order[course->orders++] =
        (sweep_order){.trial = which, .rung = rung, .from = trial->step, .until = course->rules->rungs.step[rung]};
    course->open++;
}

int sweep_course_give(sweep_course *course, sweep_order *out)
{
    const sweep_rules *rules = course->rules;
    int status = make_room(&course->order, &course->orders_room, course->orders, sizeof *course->order);
    if (status < 0)
        return status;
    if (sweep_course_reached(course))
        return shoal_fail(SHOAL_ABSENT, "the goal was reached");
    int64_t next = rules->stopper->next(&rules->rungs, course->trial, course->trials);
    if (next < 0) {
        status = begin_trial(course);
        next = course->trials - 1;
    }
    if (status < 0)
        return status;
    add_order(course, next);
    *out = course->order[course->orders - 1];
    return SHOAL_OK;
}

int sweep_course_follow(sweep_course *course, int64_t number, int64_t which, int64_t until, const sweep_point *point)
{
    sweep_trial *trial;
    int status = make_room(&course->order, &course->orders_room, course->orders, sizeof *course->order);
    if (status == SHOAL_OK && point)
        status = add_trial(&trial, course);
    if (status < 0)
        return status;
    const bool known = which >= 0 && which < course->trials;
    if (number != course->orders || (point ? which != course->trials : !known) ||
        (!point && course->trial[which].state != SWEEP_PAUSED) ||
        course->rules->rungs.step[next_rung(&course->trial[which])] != until)
        return shoal_fail(SHOAL_BROKEN, "order %lld is none that trial %lld can have", (long long)number,
                          (long long)which);
    if (point) {
        trial->point = *point;
        course->trials++;
    }
    add_order(course, which);
    return SHOAL_OK;
}

/* ---- results ----------------------------------------------------------------------------------------------------- */

static int check_result(const sweep_course *course, const sweep_result *result)
{
    if (result->order < 0 || result->order >= course->orders || course->order[result->order].ended)
        return shoal_fail(SHOAL_BROKEN, "there is a result of order %lld, which is not open", (long long)result->order);
    const sweep_order *order = &course->order[result->order];
    const sweep_trial *trial = &course->trial[order->trial];
    const bool rises = isfinite(trial->value) && result->value > trial->value;
    if (result->step < order->from || result->step > order->until ||
        (!result->failed && (!isfinite(result->value) || rises || result->step < 1)))
        return shoal_fail(SHOAL_BROKEN, "the result of order %lld is none that its trial can have",
                          (long long)result->order);
    return SHOAL_OK;
}

int sweep_course_take(sweep_course *course, const sweep_result *result)
{
    int status = check_result(course, result);
    if (status < 0)
        return status;
    sweep_order *order = &course->order[result->order];
    sweep_trial *trial = &course->trial[order->trial];
    order->ended = true;
    course->open--;
    trial->step = result->step;
    trial->rung[order->rung] = result->failed ? INFINITY : result->value;
    trial->rungs = order->rung + 1;
    if (!result->failed) {
        trial->value = result->value;
        if (course->best < 0 || trial->value < course->trial[course->best].value)
            course->best = order->trial;
    }
    const bool ended = order->rung == course->rules->rungs.count - 1 || result->step < order->until;
    trial->state = result->failed ? SWEEP_FAILED : ended ? SWEEP_DONE : SWEEP_PAUSED;
    /* One that ended by itself stands at all rungs above, as far as it will ever come. */
    for (int i = trial->rungs; trial->state == SWEEP_DONE && i < course->rules->rungs.count; i++) {
        trial->rung[i] = trial->value;
        trial->rungs = i + 1;
    }
    return SHOAL_OK;
}
