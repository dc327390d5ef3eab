/* Spaces from JSON and back.  Whatever contradicts itself is refused with a sentence that names the key. */
#include "space.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <shoal/error.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/option.h"
#include "base/text.h"

/* Integers up to here are exact as doubles. */
static const double WHOLE_MOST = 9007199254740992.0;

typedef struct reader {
    const char *name; /* of the file, for messages */
    sweep_space *space;
} reader;

/* ---- names ------------------------------------------------------------------------------------------------------- */

static bool is_name(const char *text)
{
    if (!isalpha((unsigned char)*text) && *text != '_')
        return false;
    for (; *text; text++)
        if (!isalnum((unsigned char)*text) && *text != '_')
            return false;
    return true;
}

static int check_name(const reader *from, const char *key)
{
    static const char *const taken[] = {"trial", "state", "value", "steps", "seconds", "note"};
    if (!is_name(key) || strlen(key) > 63)
        return shoal_fail(SHOAL_INVALID,
                          "%s: \"%s\" is not a parameter name: use up to 63 letters, digits and _, not a digit first",
                          from->name, key);
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        if (strcmp(key, taken[i]) == 0)
            return shoal_fail(SHOAL_INVALID,
                              "%s: a parameter can't be called \"%s\": tables of trials have a column "
                              "of that name",
                              from->name, key);
    return SHOAL_OK;
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

/* The text of a listed value and, if it is one, the number. */
static int read_listed(char **text, double *number, const reader *from, const char *key, const json_t *json)
{
    char shown[SWEEP_TEXT_BYTES] = "";
    *number = NAN;
    if (json_is_integer(json)) {
        *number = (double)json_integer_value(json);
        if (fabs(*number) > WHOLE_MOST)
            return shoal_fail(SHOAL_INVALID, "%s: \"%s\" has a whole number beyond 2^53", from->name, key);
        snprintf(shown, sizeof shown, "%lld", (long long)json_integer_value(json));
    } else if (json_is_real(json)) {
        *number = json_real_value(json);
        for (int digits = 6; digits <= 17 && (digits == 6 || strtod(shown, NULL) != *number); digits++)
            snprintf(shown, sizeof shown, "%.*g", digits, *number);
    } else if (json_is_boolean(json)) {
        snprintf(shown, sizeof shown, "%s", json_is_true(json) ? "true" : "false");
    } else if (!json_is_string(json)) {
        return shoal_fail(SHOAL_INVALID, "%s: \"%s\" has a value that is neither a number, a text, true nor false",
                          from->name, key);
    }
    const char *said = json_is_string(json) ? json_string_value(json) : shown;
    if (!*said)
        return shoal_fail(SHOAL_INVALID, "%s: \"%s\" has an empty text, which stands for a parameter that is left out",
                          from->name, key);
    if (strlen(said) > 1000 || !base_text_is_clean(said))
        return shoal_fail(SHOAL_INVALID, "%s: \"%s\" has a text of more than 1,000 bytes, or with control characters",
                          from->name, key);
    return base_copy_text(text, said);
}

/* Numbers that grow are in order; two of one text are refused. */
static int look_at_list(const reader *from, sweep_parameter *p)
{
    bool numbers = true;
    p->ordered = true;
    for (int64_t i = 0; i < p->values; i++) {
        numbers = numbers && !isnan(p->number[i]);
        p->ordered = p->ordered && (i == 0 || p->number[i] > p->number[i - 1]);
        for (int64_t j = 0; j < i; j++)
            if (strcmp(p->text[i], p->text[j]) == 0 || p->number[i] == p->number[j])
                return shoal_fail(SHOAL_INVALID, "%s: \"%s\" lists %s twice", from->name, p->name, p->text[i]);
    }
    if (!numbers) {
        p->ordered = false;
        base_free(&p->number);
    }
    return SHOAL_OK;
}

/* A list of values, or one that is always the same. */
static int read_list(const reader *from, sweep_parameter *p, const json_t *json)
{
    const size_t count = json_is_array(json) ? json_array_size(json) : 1;
    p->kind = SWEEP_LIST;
    if (count == 0)
        return shoal_fail(SHOAL_INVALID, "%s: \"%s\" lists no values", from->name, p->name);
    if (count > SWEEP_VALUES_MOST)
        return shoal_fail(SHOAL_INVALID, "%s: \"%s\" lists more than %d values", from->name, p->name,
                          SWEEP_VALUES_MOST);
    int status = base_alloc(&p->text, count, sizeof *p->text, "values of a space");
    if (status == SHOAL_OK)
        status = base_alloc(&p->number, count, sizeof *p->number, "values of a space");
    for (size_t i = 0; i < count && status == SHOAL_OK; i++, p->values++)
        status = read_listed(&p->text[i], &p->number[i], from, p->name,
                             json_is_array(json) ? json_array_get(json, i) : json);
    return status == SHOAL_OK ? look_at_list(from, p) : status;
}

/* ---- ranges ------------------------------------------------------------------------------------------------------ */

static int read_end(double *out, const reader *from, const sweep_parameter *p, const json_t *json, const char *key)
{
    const json_t *value = json_object_get(json, key);
    if (!value)
        return shoal_fail(SHOAL_INVALID,
                          "%s: \"%s\" has no \"%s\": a range has \"low\" and \"high\", a list \"values\"", from->name,
                          p->name, key);
    if (!json_is_number(value))
        return shoal_fail(SHOAL_INVALID, "%s: \"%s\": \"%s\" is not a number", from->name, p->name, key);
    *out = json_number_value(value);
    return SHOAL_OK;
}

/* One of two words; the first when the key is not there. */
static int read_word(bool *second, const reader *from, const sweep_parameter *p, const json_t *json, const char *key,
                     const char *const word[2])
{
    const json_t *value = json_object_get(json, key);
    const char *said = value ? json_string_value(value) : word[0];
    *second = said && strcmp(said, word[1]) == 0;
    if (*second || (said && strcmp(said, word[0]) == 0))
        return SHOAL_OK;
    return shoal_fail(SHOAL_INVALID, "%s: \"%s\": \"%s\" must be \"%s\" or \"%s\"", from->name, p->name, key, word[0],
                      word[1]);
}

static int read_steps(sweep_parameter *p, const reader *from, const json_t *json)
{
    const json_t *steps = json_object_get(json, "steps");
    if (!steps)
        return SHOAL_OK;
    p->steps = json_integer_value(steps);
    if (!json_is_integer(steps) || p->steps < 1 || p->steps > SWEEP_VALUES_MOST)
        return shoal_fail(SHOAL_INVALID, "%s: \"%s\": \"steps\" must be a whole number from 1 to %d", from->name,
                          p->name, SWEEP_VALUES_MOST);
    return SHOAL_OK;
}

static int check_range(const reader *from, const sweep_parameter *p)
{
    if (!(p->low <= p->high))
        return shoal_fail(SHOAL_INVALID, "%s: \"%s\" is an empty range: %.15g is above %.15g", from->name, p->name,
                          p->low, p->high);
    if (p->kind == SWEEP_INTEGER && (p->low != floor(p->low) || p->high != floor(p->high)))
        return shoal_fail(SHOAL_INVALID, "%s: \"%s\": a range of integers needs whole numbers as \"low\" and \"high\"",
                          from->name, p->name);
    if (p->kind == SWEEP_INTEGER && (fabs(p->low) > WHOLE_MOST || fabs(p->high) > WHOLE_MOST))
        return shoal_fail(SHOAL_INVALID, "%s: \"%s\" has a whole number beyond 2^53", from->name, p->name);
    if (p->kind == SWEEP_FLOAT && !isfinite(p->high - p->low))
        return shoal_fail(SHOAL_INVALID, "%s: \"%s\" is a range too wide for arithmetic", from->name, p->name);
    if (p->logarithmic && !(p->low > 0))
        return shoal_fail(SHOAL_INVALID, "%s: \"%s\": \"scale\": \"log\" needs \"low\" above 0, and it is %g",
                          from->name, p->name, p->low);
    return SHOAL_OK;
}

static int read_range(const reader *from, sweep_parameter *p, const json_t *json)
{
    static const char *const types[2] = {"float", "integer"}, *const scales[2] = {"linear", "log"};
    bool whole = false;
    int status = read_end(&p->low, from, p, json, "low");
    if (status == SHOAL_OK)
        status = read_end(&p->high, from, p, json, "high");
    if (status == SHOAL_OK && !json_object_get(json, "type") && json_is_integer(json_object_get(json, "low")) &&
        json_is_integer(json_object_get(json, "high")))
        status = shoal_fail(SHOAL_INVALID,
                            "%s: \"%s\" is from one whole number to another: say \"type\": \"integer\" or "
                            "\"type\": \"float\"",
                            from->name, p->name);
    if (status == SHOAL_OK)
        status = read_word(&whole, from, p, json, "type", types);
    if (status == SHOAL_OK)
        status = read_word(&p->logarithmic, from, p, json, "scale", scales);
    if (status == SHOAL_OK)
        status = read_steps(p, from, json);
    p->kind = whole ? SWEEP_INTEGER : SWEEP_FLOAT;
    return status == SHOAL_OK ? check_range(from, p) : status;
}

static int check_keys(const reader *from, const sweep_parameter *p, const json_t *json)
{
    static const char *const keys[] = {"low", "high", "scale", "type", "steps", "when", "values"};
    enum { KEYS = sizeof keys / sizeof *keys, OF_LISTS = 2 };
    const int first = json_object_get(json, "values") ? KEYS - OF_LISTS : 0, end = first ? KEYS : KEYS - 1;
    const char *key;
    const json_t *value;
    json_object_foreach((json_t *)json, key, value)
    {
        bool known = false;
        for (int i = first; i < end; i++)
            known = known || strcmp(key, keys[i]) == 0;
        const char *near = known ? NULL : base_nearest(key, keys, KEYS);
        if (!known && near && strcmp(near, key) != 0)
            return shoal_fail(SHOAL_INVALID, "%s: \"%s\": unknown key \"%s\"; did you mean \"%s\"?", from->name,
                              p->name, key, near);
        if (!known)
            return shoal_fail(SHOAL_INVALID, "%s: \"%s\": %s has no \"%s\"", from->name, p->name,
                              first ? "a list" : "a range", key);
    }
    return SHOAL_OK;
}

static int read_parameter(const reader *from, sweep_parameter *p, const json_t *json)
{
    if (!json_is_object(json))
        return read_list(from, p, json);
    int status = check_keys(from, p, json);
    if (status < 0)
        return status;
    const json_t *values = json_object_get(json, "values");
    if (values && !json_is_array(values))
        return shoal_fail(SHOAL_INVALID, "%s: \"%s\": \"values\" is not a list", from->name, p->name);
    return values ? read_list(from, p, values) : read_range(from, p, json);
}

/* ---- conditions -------------------------------------------------------------------------------------------------- */

static int allow_value(const reader *from, const sweep_parameter *p, sweep_condition *condition, const json_t *json)
{
    const sweep_parameter *of = &from->space->parameter[condition->parameter];
    char *text = NULL;
    double number;
    int status = read_listed(&text, &number, from, p->name, json);
    bool found = false;
    for (int64_t i = 0; i < of->values && status == SHOAL_OK; i++)
        if (of->number ? of->number[i] == number : strcmp(of->text[i], text) == 0)
            found = condition->allowed[i] = true;
    if (status == SHOAL_OK && !found)
        status = shoal_fail(SHOAL_INVALID, "%s: \"%s\" depends on \"%s\" being %s, which is none of its values",
                            from->name, p->name, of->name, text);
    base_free(&text);
    return status;
}

static int read_condition(const reader *from, sweep_parameter *p, const char *key, const json_t *json)
{
    sweep_condition *condition = &p->condition[p->conditions];
    condition->parameter = sweep_space_find(from->space, key);
    if (condition->parameter < 0)
        return shoal_fail(SHOAL_INVALID, "%s: \"%s\" depends on \"%s\", which is not a parameter", from->name, p->name,
                          key);
    const sweep_parameter *of = &from->space->parameter[condition->parameter];
    if (of->kind != SWEEP_LIST)
        return shoal_fail(SHOAL_INVALID,
                          "%s: \"%s\" depends on \"%s\", which is a range: only listed values can be told apart",
                          from->name, p->name, key);
    const size_t count = json_is_array(json) ? json_array_size(json) : 1;
    if (count == 0)
        return shoal_fail(SHOAL_INVALID, "%s: \"%s\" depends on \"%s\" being one of no values", from->name, p->name,
                          key);
    int status = base_alloc(&condition->allowed, (size_t)of->values, sizeof *condition->allowed, "conditions");
    p->conditions++;
    for (size_t i = 0; i < count && status == SHOAL_OK; i++)
        status = allow_value(from, p, condition, json_is_array(json) ? json_array_get(json, i) : json);
    return status;
}

static int read_conditions(const reader *from, sweep_parameter *p, json_t *json)
{
    json_t *when = json_object_get(json, "when"), *value;
    const char *key;
    int status = SHOAL_OK;
    if (!when)
        return SHOAL_OK;
    if (!json_is_object(when) || json_object_size(when) == 0)
        return shoal_fail(SHOAL_INVALID, "%s: \"%s\": \"when\" must be an object, such as {\"optimiser\": \"sgd\"}",
                          from->name, p->name);
    if (json_object_size(when) > SWEEP_CONDITIONS_MOST)
        return shoal_fail(SHOAL_INVALID, "%s: \"%s\" has more than %d conditions", from->name, p->name,
                          SWEEP_CONDITIONS_MOST);
    json_object_foreach(when, key, value)
    {
        if (status == SHOAL_OK)
            status = read_condition(from, p, key, value);
    }
    return status;
}

/* A parameter that depends on itself, and what it depends on for that, of those that were not taken: each of them waits
 * for another, so that whoever goes on and on from one comes to a circle. */
static int tell_circle(const reader *from, const bool taken[SWEEP_PARAMETERS_MOST], int at)
{
    const sweep_parameter *parameter = from->space->parameter;
    int next = at;
    for (int step = 0; step <= from->space->parameters; step++) {
        at = next;
        for (int c = 0; c < parameter[at].conditions; c++)
            if (!taken[parameter[at].condition[c].parameter])
                next = parameter[at].condition[c].parameter;
    }
    if (next == at)
        return shoal_fail(SHOAL_INVALID, "%s: the conditions go round in a circle: \"%s\" depends on itself",
                          from->name, parameter[at].name);
    return shoal_fail(SHOAL_INVALID,
                      "%s: the conditions go round in a circle: \"%s\" depends on \"%s\", and that on \"%s\"",
                      from->name, parameter[at].name, parameter[next].name, parameter[at].name);
}

/* Repeatedly takes the first parameter whose conditions are about those that were taken before. */
static int sort_by_conditions(const reader *from)
{
    sweep_space *space = from->space;
    bool taken[SWEEP_PARAMETERS_MOST] = {0};
    for (int place = 0; place < space->parameters; place++) {
        int next = -1, waits = -1;
        for (int i = 0; i < space->parameters && next < 0; i++) {
            const sweep_parameter *p = &space->parameter[i];
            bool ready = !taken[i];
            for (int c = 0; c < p->conditions; c++)
                ready = ready && taken[p->condition[c].parameter];
            next = ready ? i : -1;
            waits = !taken[i] ? i : waits;
        }
        if (next < 0)
            return tell_circle(from, taken, waits);
        space->order[place] = next;
        taken[next] = true;
    }
    return SHOAL_OK;
}

/* Conditions that contradict each other would leave a parameter out for ever: that is a slip. */
static int check_reachable(const reader *from)
{
    const sweep_space *space = from->space;
    for (int i = 0; i < space->parameters; i++) {
        const sweep_parameter *p = &space->parameter[i];
        for (int c = 0; c < p->conditions; c++) {
            const sweep_parameter *of = &space->parameter[p->condition[c].parameter];
            for (int d = 0; d < of->conditions; d++)
                for (int e = 0; e < p->conditions; e++) {
                    if (p->condition[e].parameter != of->condition[d].parameter)
                        continue;
                    bool both = false;
                    for (int64_t v = 0; v < space->parameter[p->condition[e].parameter].values; v++)
                        both = both || (p->condition[e].allowed[v] && of->condition[d].allowed[v]);
                    if (!both)
                        return shoal_fail(SHOAL_INVALID,
                                          "%s: \"%s\" can never be there: its conditions and those of \"%s\" "
                                          "contradict each other",
                                          from->name, p->name, of->name);
                }
        }
    }
    return SHOAL_OK;
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

static int add_parameter(const reader *from, const char *key, const json_t *json)
{
    sweep_space *space = from->space;
    int status = check_name(from, key);
    if (status < 0)
        return status;
    if (space->parameters == SWEEP_PARAMETERS_MOST)
        return shoal_fail(SHOAL_INVALID, "%s: there are more than %d parameters", from->name, SWEEP_PARAMETERS_MOST);
    sweep_parameter *p = &space->parameter[space->parameters++];
    status = base_copy_text(&p->name, key);
    return status == SHOAL_OK ? read_parameter(from, p, json) : status;
}

int sweep_space_of_json(sweep_space **out, const char *name, const json_t *json)
{
    reader from = {.name = name};
    const char *key;
    json_t *value;
    *out = NULL;
    if (!json_is_object(json) || json_object_size(json) == 0)
        return shoal_fail(SHOAL_INVALID,
                          "%s: must be an object with a parameter or more, such as {\"rate\": {\"low\": 1e-4, "
                          "\"high\": 0.1, \"scale\": \"log\"}}",
                          name);
    int status = base_alloc(&from.space, 1, sizeof *from.space, "a space");
    if (status < 0)
        return status;
    json_object_foreach((json_t *)json, key, value)
    {
        if (status == SHOAL_OK)
            status = add_parameter(&from, key, value);
    }
    for (int i = 0; i < from.space->parameters && status == SHOAL_OK; i++)
        status =
            read_conditions(&from, &from.space->parameter[i], json_object_get(json, from.space->parameter[i].name));
    if (status == SHOAL_OK)
        status = sort_by_conditions(&from);
    if (status == SHOAL_OK)
        status = check_reachable(&from);
    if (status == SHOAL_OK) {
        *out = from.space;
        from.space = NULL;
    }
    sweep_space_free(&from.space);
    return status;
}

void sweep_space_free(sweep_space **inout)
{
    sweep_space *space = *inout;
    if (!space)
        return;
    for (int i = 0; i < space->parameters; i++) {
        sweep_parameter *p = &space->parameter[i];
        for (int64_t v = 0; v < p->values; v++)
            base_free(&p->text[v]);
        for (int c = 0; c < p->conditions; c++)
            base_free(&p->condition[c].allowed);
        base_free(&p->text);
        base_free(&p->number);
        base_free(&p->name);
    }
    base_free(inout);
}

int sweep_space_read(sweep_space **out, const char *path, const shoal_texts *vary)
{
    json_error_t error;
    json_t *json = NULL;
    int status = SHOAL_OK;
    *out = NULL;
    json = path ? json_load_file(path, JSON_REJECT_DUPLICATES, &error) : json_object();
    if (!json && !path)
        return shoal_fail(SHOAL_MEMORY, "out of memory for a space");
    if (!json && json_error_code(&error) == json_error_cannot_open_file)
        return shoal_fail_errno(SHOAL_SYSTEM, errno, "%s: can't read", path);
    if (!json)
        return shoal_fail(SHOAL_INVALID, "%s: line %d: not JSON: %s", path, error.line, error.text);
    for (int i = 0; vary && i < vary->count && status == SHOAL_OK; i++)
        status = sweep_space_add_vary(json, vary->text[i]);
    if (status == SHOAL_OK)
        status = sweep_space_of_json(out, path ? path : "--vary", json);
    json_decref(json);
    return status == SHOAL_INVALID && !path ? SHOAL_USAGE : status;
}

/* ---- back to JSON ------------------------------------------------------------------------------------------------ */

static json_t *listed_json(const sweep_parameter *p, int64_t i)
{
    if (!p->number)
        return json_string(p->text[i]);
    const bool whole = strspn(p->text[i], "-0123456789") == strlen(p->text[i]);
    return whole ? json_integer((json_int_t)p->number[i]) : json_real(p->number[i]);
}

static json_t *end_json(const sweep_parameter *p, double end)
{
    return p->kind == SWEEP_INTEGER ? json_integer((json_int_t)end) : json_real(end);
}

static json_t *parameter_json(const sweep_space *space, const sweep_parameter *p)
{
    json_t *object = json_object();
    if (p->kind == SWEEP_LIST) {
        json_t *values = json_array();
        for (int64_t i = 0; i < p->values; i++)
            json_array_append_new(values, listed_json(p, i));
        base_json_put(&object, "values", values);
    } else {
        base_json_put(&object, "type", json_string(p->kind == SWEEP_INTEGER ? "integer" : "float"));
        base_json_put(&object, "low", end_json(p, p->low));
        base_json_put(&object, "high", end_json(p, p->high));
        base_json_put(&object, "scale", json_string(p->logarithmic ? "log" : "linear"));
        if (p->steps)
            base_json_put(&object, "steps", json_integer(p->steps));
    }
    json_t *when = p->conditions ? json_object() : NULL;
    for (int c = 0; c < p->conditions; c++) {
        const sweep_parameter *of = &space->parameter[p->condition[c].parameter];
        json_t *allowed = json_array();
        for (int64_t i = 0; i < of->values; i++)
            if (p->condition[c].allowed[i])
                json_array_append_new(allowed, listed_json(of, i));
        base_json_put(&when, of->name, allowed);
    }
    if (p->conditions)
        base_json_put(&object, "when", when);
    return object;
}

json_t *sweep_space_json(const sweep_space *space)
{
    json_t *object = json_object();
    for (int i = 0; i < space->parameters; i++)
        base_json_put(&object, space->parameter[i].name, parameter_json(space, &space->parameter[i]));
    return object;
}
