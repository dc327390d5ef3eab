/* What a sweep may choose from: parameters with ranges or lists of values, some of them only where others have certain
 * values.
 *
 *     {"rate": {"low": 1e-4, "high": 0.1, "scale": "log"},
 *      "batch": [32, 128, 512],
 *      "optimiser": ["sgd", "momentum"],
 *      "momentum": {"low": 0.5, "high": 0.99, "when": {"optimiser": "momentum"}}}
 *
 * docs/sweep.md has the whole form.  A point of a space is one number a parameter: the value of a range, the index of
 * a listed value, or NaN where a condition leaves the parameter out. */
#ifndef SWEEP_SPACE_H
#define SWEEP_SPACE_H

#include <stdbool.h>
#include <stdint.h>
#include <jansson.h>
#include <shoal/option.h>

enum {
    SWEEP_PARAMETERS_MOST = 32,
    SWEEP_VALUES_MOST = 1024, /* of a list */
    SWEEP_CONDITIONS_MOST = 4,
    SWEEP_TEXT_BYTES = 32 /* a number as text */
};

typedef enum sweep_kind { SWEEP_FLOAT, SWEEP_INTEGER, SWEEP_LIST } sweep_kind;

/* A parameter is there only where another, whose values are listed, has one of some of them. */
typedef struct sweep_condition {
    int parameter;
    bool *allowed; /* for each value of that */
} sweep_condition;

typedef struct sweep_parameter {
    char *name;
    sweep_kind kind;
    double low, high; /* of a range, both inclusive */
    bool logarithmic;
    int64_t steps;  /* values of a range in a grid; 0: nobody said */
    int64_t values; /* of a list */
    char **text;    /* of each */
    double *number; /* of each; NULL where they are not all numbers */
    bool ordered;   /* they are numbers that grow: near ones are alike */
    int conditions; /* all of which must hold */
    sweep_condition condition[SWEEP_CONDITIONS_MOST];
} sweep_parameter;

typedef struct sweep_space {
    int parameters;
    sweep_parameter parameter[SWEEP_PARAMETERS_MOST];
    int order[SWEEP_PARAMETERS_MOST]; /* parameters after those that their conditions are about */
} sweep_space;

typedef struct sweep_point {
    double value[SWEEP_PARAMETERS_MOST];
} sweep_point;

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* Of JSON; messages begin with `name`.  SHOAL_INVALID names the key. */
int sweep_space_of_json(sweep_space **out, const char *name, const json_t *json);
/* Of a file (space_read.c) and of what --vary was given, "rate=1e-4..1e-1:log" (space_vary.c); either may be NULL or
 * empty, but not both. */
int sweep_space_read(sweep_space **out, const char *path, const shoal_texts *vary);
/* Adds to an object what one --vary says.  SHOAL_USAGE. */
int sweep_space_add_vary(json_t *space, const char *text);
void sweep_space_free(sweep_space **space);
/* The same space as JSON that sweep_space_of_json reads; NULL when out of memory. */
json_t *sweep_space_json(const sweep_space *space);

/* ---- points ------------------------------------------------------------------------------------------------------ */

/* The parameter of that name; -1 for none. */
int sweep_space_find(const sweep_space *space, const char *name);
/* Whether the conditions of a parameter hold, once those before it in the order have their values. */
bool sweep_is_active(const sweep_space *space, const sweep_point *point, int parameter);
/* A value as a place in (0, 1), along the logarithm where the range is one; and the value nearest to a place. */
double sweep_place_of(const sweep_parameter *parameter, double value);
double sweep_value_at(const sweep_parameter *parameter, double place);
/* How many values a parameter can have; INFINITY for a range of floats. */
double sweep_values_of(const sweep_parameter *parameter);
/* The text of a value, which is in `own` or belongs to the space; "" where there is none. */
const char *sweep_text(char own[SWEEP_TEXT_BYTES], const sweep_parameter *parameter, double value);
bool sweep_same_point(const sweep_space *space, const sweep_point *a, const sweep_point *b);

/* A point as an object of values by name, without those that are left out; NULL when out of memory. */
json_t *sweep_point_json(const sweep_space *space, const sweep_point *point);
/* The way back: SHOAL_BROKEN, with a sentence that begins with `name`, for what is no point of this space. */
int sweep_point_of_json(sweep_point *out, const sweep_space *space, const char *name, const json_t *json);

#endif
