/* Points of a space: which parameters they have, and how values, places and texts belong together. */
#include "space.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <shoal/error.h>

#include "base/json.h"
#include "base/memory.h"

int sweep_space_find(const sweep_space *space, const char *name)
{
    for (int i = 0; i < space->parameters; i++)
        if (strcmp(space->parameter[i].name, name) == 0)
            return i;
    return -1;
}

bool sweep_is_active(const sweep_space *space, const sweep_point *point, int parameter)
{
    const sweep_parameter *p = &space->parameter[parameter];
    for (int i = 0; i < p->conditions; i++) {
        const double value = point->value[p->condition[i].parameter];
        if (isnan(value) || !p->condition[i].allowed[(int64_t)value])
            return false;
    }
    return true;
}

/* ---- places ------------------------------------------------------------------------------------------------------ */

/* A whole number has the room from half below to half above it. */
static void find_ends(double *low, double *high, const sweep_parameter *p)
{
    const double half = p->kind == SWEEP_INTEGER ? 0.5 : 0;
    *low = p->logarithmic ? log(p->low - half) : p->low - half;
    *high = p->logarithmic ? log(p->high + half) : p->high + half;
}

double sweep_place_of(const sweep_parameter *p, double value)
{
    double low, high;
    if (p->kind == SWEEP_LIST)
        return (value + 0.5) / (double)p->values;
    find_ends(&low, &high, p);
    if (!(high > low))
        return 0.5;
    const double place = p->logarithmic ? (log(value) - low) / (high - low) : value / (high - low) - low / (high - low);
    return fmin(fmax(place, 0), 1);
}

/* Six digits are what people read, and more than a model can tell apart. */
static double round_to_digits(double value)
{
    char text[SWEEP_TEXT_BYTES];
    snprintf(text, sizeof text, "%.6g", value);
    return strtod(text, NULL);
}

double sweep_value_at(const sweep_parameter *p, double place)
{
    double low, high;
    if (p->kind == SWEEP_LIST)
        return fmin(fmax(floor(place * (double)p->values), 0), (double)p->values - 1);
    find_ends(&low, &high, p);
    double value = low * (1 - place) + high * place; /* their difference may be infinite */
    value = p->logarithmic ? exp(value) : value;
    value = p->kind == SWEEP_INTEGER ? round(value) : round_to_digits(value);
    return fmin(fmax(value, p->low), p->high);
}

double sweep_values_of(const sweep_parameter *p)
{
    return p->kind == SWEEP_LIST    ? (double)p->values
           : p->low == p->high      ? 1
           : p->kind == SWEEP_FLOAT ? (double)INFINITY
                                    : p->high - p->low + 1;
}

/* ---- texts ------------------------------------------------------------------------------------------------------- */

const char *sweep_text(char own[SWEEP_TEXT_BYTES], const sweep_parameter *p, double value)
{
    own[0] = '\0';
    if (isnan(value))
        return own;
    if (p->kind == SWEEP_LIST)
        return p->text[(int64_t)value];
    for (int digits = 6; digits <= 17; digits++) { /* the fewest that are this number */
        snprintf(own, SWEEP_TEXT_BYTES, "%.*g", p->kind == SWEEP_INTEGER ? 17 : digits, value);
        if (strtod(own, NULL) == value)
            break;
    }
    return own;
}

bool sweep_same_point(const sweep_space *space, const sweep_point *a, const sweep_point *b)
{
    for (int i = 0; i < space->parameters; i++)
        if (a->value[i] != b->value[i] && !(isnan(a->value[i]) && isnan(b->value[i])))
            return false;
    return true;
}

/* ---- points as JSON ---------------------------------------------------------------------------------------------- */

static json_t *value_json(const sweep_parameter *p, double value)
{
    if (p->kind == SWEEP_LIST)
        return p->number ? json_real(p->number[(int64_t)value]) : json_string(p->text[(int64_t)value]);
    return p->kind == SWEEP_INTEGER ? json_integer((json_int_t)value) : json_real(value);
}

json_t *sweep_point_json(const sweep_space *space, const sweep_point *point)
{
    json_t *object = json_object();
    for (int i = 0; i < space->parameters; i++) {
        const sweep_parameter *p = &space->parameter[i];
        if (!isnan(point->value[i]))
            base_json_put(&object, p->name, value_json(p, point->value[i]));
    }
    return object;
}

static bool read_value(double *out, const sweep_parameter *p, const json_t *json)
{
    if (p->kind != SWEEP_LIST) {
        *out = json_number_value(json);
        return json_is_number(json) && *out >= p->low && *out <= p->high &&
               (p->kind == SWEEP_FLOAT || *out == floor(*out));
    }
    for (int64_t i = 0; i < p->values; i++) {
        *out = (double)i;
        if (p->number ? json_is_number(json) && json_number_value(json) == p->number[i]
                      : json_is_string(json) && strcmp(json_string_value(json), p->text[i]) == 0)
            return true;
    }
    return false;
}

int sweep_point_of_json(sweep_point *out, const sweep_space *space, const char *name, const json_t *json)
{
    size_t found = 0;
    for (int i = 0; i < SWEEP_PARAMETERS_MOST; i++)
        out->value[i] = NAN;
    for (int k = 0; k < space->parameters; k++) {
        const int i = space->order[k];
        const sweep_parameter *p = &space->parameter[i];
        const json_t *value = json_object_get(json, p->name);
        const bool active = sweep_is_active(space, out, i);
        if (active != (value != NULL))
            return shoal_fail(SHOAL_BROKEN, "%s: parameter \"%s\" %s", name, p->name,
                              active ? "is missing" : "is there against its condition");
        if (value && !read_value(&out->value[i], p, value))
            return shoal_fail(SHOAL_BROKEN, "%s: parameter \"%s\" has a value that the space does not have", name,
                              p->name);
        found += value != NULL;
    }
    return json_object_size(json) == found
               ? SHOAL_OK
               : shoal_fail(SHOAL_BROKEN, "%s: has a parameter that the space does not have", name);
}
