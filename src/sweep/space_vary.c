/* Parameters from the command line: --vary rate=1e-4..1e-1:log, --vary batch=32,128,512. */
#include "space.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <shoal/error.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/option.h"

/* A number as JSON has it: whole where it was written so. */
static json_t *read_number(const char *text)
{
    double value;
    char *end;
    if (text[0] && strspn(text, "+-0123456789") == strlen(text) && strlen(text) < 17)
        return json_integer(strtoll(text, &end, 10));
    return base_parse_real(&value, text) && isfinite(value) ? json_real(value) : NULL;
}

/* "log", "int", "float" or a number of steps. */
static int add_suffix(json_t **object, const char *vary, const char *word)
{
    int64_t steps;
    if (strcmp(word, "log") == 0)
        base_json_put(object, "scale", json_string("log"));
    else if (strcmp(word, "int") == 0)
        base_json_put(object, "type", json_string("integer"));
    else if (strcmp(word, "float") == 0)
        base_json_put(object, "type", json_string("float"));
    else if (base_parse_count(&steps, word))
        base_json_put(object, "steps", json_integer(steps));
    else
        return shoal_fail(SHOAL_USAGE, "--vary %s: '%s' is none of log, int, float and the number of values in a grid",
                          vary, word);
    return SHOAL_OK;
}

static int read_range(json_t **out, const char *vary, char *text)
{
    char *rest = NULL, *dots = strstr(text, "..");
    *dots = '\0';
    char *high = strtok_r(dots + 2, ":", &rest);
    json_t *ends[2] = {read_number(text), high ? read_number(high) : NULL};
    int status = SHOAL_OK;
    if (!ends[0] || !ends[1]) {
        json_decref(ends[0]);
        json_decref(ends[1]);
        return shoal_fail(SHOAL_USAGE, "--vary %s: a range is LOW..HIGH, two numbers, such as 1e-4..1e-1:log", vary);
    }
    *out = json_object();
    base_json_put(out, "type", json_string(json_is_integer(ends[0]) && json_is_integer(ends[1]) ? "integer" : "float"));
    base_json_put(out, "low", ends[0]);
    base_json_put(out, "high", ends[1]);
    for (char *word; status == SHOAL_OK && (word = strtok_r(NULL, ":", &rest));)
        status = add_suffix(out, vary, word);
    return status;
}

static json_t *read_values(char *text)
{
    json_t *values = json_array();
    for (char *next; text; text = next) {
        next = strchr(text, ',');
        if (next)
            *next++ = '\0';
        json_t *number = read_number(text);
        json_array_append_new(values, number ? number : base_json_text(text));
    }
    return values;
}

int sweep_space_add_vary(json_t *space, const char *vary)
{
    const char *equals = strchr(vary, '=');
    char *text = NULL;
    json_t *value = NULL;
    if (!equals || equals == vary || !equals[1])
        return shoal_fail(SHOAL_USAGE,
                          "--vary %s: must be NAME=LOW..HIGH or NAME=VALUE,VALUE,..., such as rate=1e-4..1e-1:log",
                          vary);
    int status = base_copy_text(&text, vary);
    if (status < 0)
        return status;
    text[equals - vary] = '\0';
    char *said = text + (equals - vary) + 1;
    if (json_object_get(space, text))
        status = shoal_fail(SHOAL_USAGE, "--vary %s: \"%s\" is a parameter already", vary, text);
    else if (strstr(said, ".."))
        status = read_range(&value, vary, said);
    else
        value = read_values(said);
    if (status == SHOAL_OK && (!value || json_object_set(space, text, value) < 0))
        status = shoal_fail(SHOAL_MEMORY, "out of memory for a space");
    json_decref(value);
    base_free(&text);
    return status;
}
