/* The parameters of a module: a JSON object, read once, asked by name from many threads. */
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "base/memory.h"
#include "learn/module.h"

typedef struct list {
    double *values;
    int64_t count;
} list;

struct shoal_params {
    json_t *object;
    list *lists;  /* one for each member of the object, empty for what is not a list of numbers */
    char **texts; /* numbers as options read them; NULL until they are asked for */
    size_t count;
    _Atomic(const char *) misused, wanted; /* one that was asked for as something else than it is, and as what */
    /* The first failure of a call that can't end a map: 0 for none, 1 while it is written, then its status. */
    _Atomic int failure;
    char failed[512];
};

static bool is_number(const json_t *value)
{
    return json_is_number(value) || json_is_boolean(value);
}

static double number_of(const json_t *value)
{
    return json_is_boolean(value) ? json_is_true(value) : json_number_value(value);
}

static int read_numbers(list *out, const json_t *array)
{
    size_t count = json_array_size(array);
    for (size_t i = 0; i < count; i++)
        if (!is_number(json_array_get(array, i)))
            return SHOAL_OK;
    int status = base_alloc(&out->values, count, sizeof *out->values, "parameters");
    for (size_t i = 0; status == SHOAL_OK && i < count; i++)
        out->values[i] = number_of(json_array_get(array, i));
    out->count = status == SHOAL_OK ? (int64_t)count : 0;
    return status;
}

static int read_lists(shoal_params *params)
{
    const char *name;
    json_t *value;
    size_t i = 0;
    params->count = json_object_size(params->object);
    int status = base_alloc(&params->lists, params->count, sizeof *params->lists, "parameters");
    if (status == SHOAL_OK)
        status = base_alloc(&params->texts, params->count, sizeof *params->texts, "parameters");
    if (status < 0)
        return status;
    json_object_foreach(params->object, name, value)
    {
        if (status == SHOAL_OK && json_is_array(value))
            status = read_numbers(&params->lists[i], value);
        i++;
    }
    return status;
}

int learn_params_new(shoal_params **out, const char *text)
{
    json_error_t error;
    shoal_params *params = NULL;
    int status = base_alloc(&params, 1, sizeof *params, "parameters");
    if (status < 0)
        return status;
    params->object = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    if (!params->object)
        status = shoal_fail(SHOAL_USAGE, "--params: line %d, column %d: %s", error.line, error.column, error.text);
    else if (!json_is_object(params->object))
        status = shoal_fail(SHOAL_USAGE, "--params must be a JSON object, such as {\"rate\": 0.1}");
    else
        status = read_lists(params);
    if (status < 0)
        learn_params_free(&params);
    *out = params;
    return status;
}

void learn_params_free(shoal_params **inout)
{
    shoal_params *params = *inout;
    if (!params)
        return;
    for (size_t i = 0; i < params->count; i++) {
        if (params->lists)
            base_free(&params->lists[i].values);
        if (params->texts)
            base_free(&params->texts[i]);
    }
    base_free(&params->lists);
    base_free(&params->texts);
    json_decref(params->object);
    base_free(inout);
}

/* The caller wants a value and can't be given an error; learn_params_check reports it. */
static void note_misuse(const shoal_params *params, const char *name, const char *wanted)
{
    shoal_params *noted = (shoal_params *)params;
    void *member = json_object_iter_at(params->object, name);
    atomic_store(&noted->wanted, wanted);
    atomic_store(&noted->misused, json_object_iter_key(member)); /* which lasts, unlike the caller's text */
}

int learn_params_check(const shoal_params *params)
{
    const char *name = atomic_load(&((shoal_params *)params)->misused);
    int failure = atomic_load(&((shoal_params *)params)->failure);
    if (failure < 0)
        return shoal_fail(failure, "%s", params->failed);
    if (!name)
        return SHOAL_OK;
    return shoal_fail(SHOAL_USAGE, "--params: the module asks for '%s' as %s, and it is something else", name,
                      atomic_load(&((shoal_params *)params)->wanted));
}

double shoal_param(const shoal_setting *setting, const char *name, double fallback)
{
    const json_t *value = json_object_get(setting->params->object, name);
    if (value && !is_number(value))
        note_misuse(setting->params, name, "a number");
    return value && is_number(value) ? number_of(value) : fallback;
}

const char *shoal_param_text(const shoal_setting *setting, const char *name, const char *fallback)
{
    const json_t *value = json_object_get(setting->params->object, name);
    if (value && !json_is_string(value))
        note_misuse(setting->params, name, "a text");
    return json_is_string(value) ? json_string_value(value) : fallback;
}

int64_t shoal_param_list(const shoal_setting *setting, const char *name, const double **out)
{
    const char *member;
    json_t *value;
    size_t i = 0;
    *out = NULL;
    json_object_foreach(setting->params->object, member, value)
    {
        if (strcmp(member, name) == 0) {
            if (!json_is_array(value) || (json_array_size(value) > 0 && !setting->params->lists[i].values))
                note_misuse(setting->params, name, "a list of numbers");
            *out = setting->params->lists[i].values;
            return setting->params->lists[i].count;
        }
        i++;
    }
    return 0;
}

/* As the command line would have it. */
static int make_text(char **out, const json_t *value)
{
    if (json_is_boolean(value))
        return base_copy_text(out, json_is_true(value) ? "true" : "false");
    if (json_is_integer(value))
        return base_format(out, "%lld", (long long)json_integer_value(value));
    return base_format(out, "%.17g", json_real_value(value));
}

static const shoal_option *find_option(const shoal_option *table, const char *name)
{
    for (; table && table->name; table++)
        if (strcmp(table->name, name) == 0)
            return table;
    return NULL;
}

/* What is wrong with an option, which is none of the command line here. */
static int fail_value(int status)
{
    char sentence[512];
    snprintf(sentence, sizeof sentence, "%s", shoal_error());
    return strncmp(sentence, "--", 2) == 0 ? shoal_fail(status, "--params: %s", sentence + 2) : status;
}

static int set_option(void *config, const shoal_option *table, const char *name, const json_t *value, char **text)
{
    const shoal_option *option = find_option(table, name);
    if (!option)
        return shoal_fail(SHOAL_USAGE, "--params: the module has no parameter '%s'", name);
    if (option->kind == SHOAL_OPTION_FLAG && json_is_boolean(value)) {
        *(bool *)((char *)config + option->offset) = json_is_true(value);
        return SHOAL_OK;
    }
    if (!json_is_string(value) && !json_is_number(value))
        return shoal_fail(SHOAL_USAGE, "--params: '%s' must be a number or a text", name);
    int status = json_is_string(value) ? SHOAL_OK : make_text(text, value);
    if (status == SHOAL_OK &&
        (status = shoal_options_set(config, table, name, json_is_string(value) ? json_string_value(value) : *text)) < 0)
        status = fail_value(status);
    return status;
}

int learn_params_set(void *config, const shoal_option *table, shoal_params *params)
{
    const char *name;
    json_t *value;
    size_t i = 0;
    int status = SHOAL_OK;
    json_object_foreach(params->object, name, value)
    {
        if (status == SHOAL_OK)
            status = set_option(config, table, name, value, &params->texts[i]);
        i++;
    }
    return status;
}

/* ---- blobs ------------------------------------------------------------------------------------------------------- */

/* Of several threads that fail, one is heard. */
static int note_failure(const shoal_setting *setting, int status)
{
    shoal_params *params = (shoal_params *)setting->params;
    int none = 0;
    if (status < 0 && atomic_compare_exchange_strong(&params->failure, &none, 1)) {
        snprintf(params->failed, sizeof params->failed, "%s", shoal_error());
        atomic_store(&params->failure, status);
    }
    return status;
}

static int fail_without(const char *option, const char *name)
{
    return shoal_fail(SHOAL_USAGE, "the module asks for the blob '%s': say where with %s", name, option);
}

int shoal_setting_get(const shoal_setting *setting, const char *name, void **bytes, size_t *size)
{
    *bytes = NULL;
    *size = 0;
    return note_failure(setting, setting->from ? setting->from->get(setting->from, name, INT64_MAX, bytes, size)
                                               : fail_without("--blobs-from", name));
}

void shoal_setting_release(const shoal_setting *setting, void **bytes)
{
    if (*bytes)
        setting->from->release(setting->from, bytes);
}

int shoal_setting_put(const shoal_setting *setting, const char *name, const void *bytes, size_t size)
{
    return note_failure(setting, setting->to ? setting->to->put(setting->to, name, bytes, size)
                                             : fail_without("--blobs-to", name));
}
