/* All combinations of values, the last parameter changing fastest; a parameter that a condition leaves out does not
 * multiply them. */
#include "sampler.h"

#include <math.h>

#include <shoal/error.h>

static const int64_t STEPS_LISTED = 1024; /* a range of more integers needs "steps" */

static int64_t digits_of(const sweep_parameter *p)
{
    const double values = sweep_values_of(p);
    if (p->kind == SWEEP_LIST || !p->steps)
        return (int64_t)fmin(values, (double)STEPS_LISTED);
    return (int64_t)fmin((double)p->steps, values);
}

static double value_of_digit(const sweep_parameter *p, int64_t digit)
{
    const int64_t digits = digits_of(p);
    if (p->kind == SWEEP_LIST)
        return (double)digit;
    if (digits == 1)
        return sweep_value_at(p, 0.5);
    if (p->kind == SWEEP_INTEGER && (double)digits == sweep_values_of(p))
        return p->low + (double)digit;
    const double share = (double)digit / (double)(digits - 1); /* both ends belong to it */
    const double least = sweep_place_of(p, p->low), greatest = sweep_place_of(p, p->high);
    return sweep_value_at(p, least + share * (greatest - least));
}

static int check_grid(const sweep_space *space)
{
    for (int i = 0; i < space->parameters; i++) {
        const sweep_parameter *p = &space->parameter[i];
        if (!p->steps && sweep_values_of(p) > (double)STEPS_LISTED)
            return shoal_fail(SHOAL_INVALID,
                              "a grid needs a number of values for \"%s\": \"steps\": 5, or --vary %s=LOW..HIGH:5",
                              p->name, p->name);
    }
    return SHOAL_OK;
}

/* Gives parameters from `place` in the order on their first values. */
static void reset_digits(sweep_point *point, int64_t digit[], const sweep_space *space, int place)
{
    for (int k = place; k < space->parameters; k++) {
        const int i = space->order[k];
        digit[i] = 0;
        point->value[i] = NAN;
        if (sweep_is_active(space, point, i))
            point->value[i] = value_of_digit(&space->parameter[i], 0);
    }
}

/* The next point; false after the last. */
static bool advance(sweep_point *point, int64_t digit[], const sweep_space *space)
{
    for (int k = space->parameters - 1; k >= 0; k--) {
        const int i = space->order[k];
        if (isnan(point->value[i]) || digit[i] + 1 >= digits_of(&space->parameter[i]))
            continue;
        point->value[i] = value_of_digit(&space->parameter[i], ++digit[i]);
        reset_digits(point, digit, space, k + 1);
        return true;
    }
    return false;
}

static bool was_adopted(const sweep_question *question, const sweep_point *point)
{
    for (int64_t i = 0; i < question->adopted; i++)
        if (sweep_same_point(question->space, &question->trial[i].point, point))
            return true;
    return false;
}

static int suggest_grid(sweep_point *out, const sweep_question *question)
{
    int64_t digit[SWEEP_PARAMETERS_MOST] = {0};
    for (int i = 0; i < SWEEP_PARAMETERS_MOST; i++)
        out->value[i] = NAN;
    reset_digits(out, digit, question->space, 0);
    int64_t place = 0; /* among points that another sweep has not tried */
    while (place < question->number || was_adopted(question, out)) {
        place += !was_adopted(question, out);
        if (!advance(out, digit, question->space))
            return shoal_fail(SHOAL_ABSENT, "the grid has no further point");
    }
    return SHOAL_OK;
}

const sweep_sampler sweep_sampler_grid = {
    .name = "grid", .summary = "all combinations", .check = check_grid, .suggest = suggest_grid};
