/* A run as a line of JSON, which one table of fields both writes and reads.  A line may have been cut short or come
 * from elsewhere: numbers must be finite and not negative, texts must fit and have no control characters.  See
 * history.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>
#include <shoal/error.h>

#include "base/memory.h"
#include "plan/history_internal.h"

enum { VERSION = 1 };

typedef enum kind { REAL, LATER, WHOLE, TEXT, TRUTH } kind; /* LATER: a REAL that older lines lack, and then is 0 */

typedef struct field {
    const char *name; /* NULL ends a table */
    kind kind;
    size_t offset, size; /* size: of a TEXT */
} field;

#define FIELD(kind, type, member)                                                                                      \
    {                                                                                                                  \
#member, kind, offsetof(type, member), sizeof((type *)0)->member                                               \
    }

static const field run_fields[] = {
    FIELD(WHOLE, plan_run, date),
    FIELD(TEXT, plan_run, learner),
    FIELD(TEXT, plan_run, store),
    FIELD(TEXT, plan_run, kernel),
    FIELD(TEXT, plan_run, host),
    FIELD(REAL, plan_run, rows),
    FIELD(REAL, plan_run, columns),
    FIELD(REAL, plan_run, value_bytes),
    FIELD(WHOLE, plan_run, workers),
    FIELD(WHOLE, plan_run, machines),
    FIELD(WHOLE, plan_run, lost),
    FIELD(REAL, plan_run, threads),
    FIELD(REAL, plan_run, cores),
    FIELD(REAL, plan_run, seconds),
    FIELD(REAL, plan_run, predicted),
    FIELD(REAL, plan_run, low),
    FIELD(REAL, plan_run, high),
    FIELD(REAL, plan_run, requests),
    FIELD(TRUTH, plan_run, partial),
    FIELD(TEXT, plan_run, reduce),
    FIELD(TRUTH, plan_run, split_roles),
    FIELD(LATER, plan_run, slices),
    {0},
};

typedef struct plan_run_phase phase;

static const field phase_fields[] = {
    FIELD(TEXT, phase, name),
    FIELD(REAL, phase, rounds),
    FIELD(REAL, phase, seconds),
    FIELD(REAL, phase, expected_rounds),
    FIELD(REAL, phase, operations_per_row),
    FIELD(REAL, phase, model_bytes),
    FIELD(REAL, phase, partial_bytes),
    FIELD(LATER, phase, row_bytes),
    FIELD(LATER, phase, kept_bytes),
    {0},
};

static const char *const sources[] = {[SHOAL_PLAN_STORED] = "stored",
                                      [SHOAL_PLAN_UPLOADED] = "uploaded",
                                      [SHOAL_PLAN_FILE] = "file",
                                      [SHOAL_PLAN_GENERATED] = "generated"};
enum { SOURCES = sizeof sources / sizeof *sources };

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static json_t *json_of_value(const field *of, const void *from)
{
    const char *place = (const char *)from + of->offset;
    switch (of->kind) {
    case REAL:
    case LATER: return json_real(*(const double *)place);
    case WHOLE: return json_integer(*(const int64_t *)place);
    case TRUTH: return json_boolean(*(const bool *)place);
    case TEXT: break;
    }
    return json_string(place);
}

/* False when memory ran out, or a number or text can't be written. */
static bool add_fields(json_t *object, const field *table, const void *from)
{
    bool well = object != NULL;
    for (; table->name && well; table++)
        well = json_object_set_new(object, table->name, json_of_value(table, from)) == 0;
    return well;
}

static bool add_phases(json_t *object, const plan_run *run)
{
    json_t *list = json_array();
    bool well = json_object_set_new(object, "phases", list) == 0;
    for (int i = 0; i < run->phases && well; i++) {
        json_t *entry = json_object();
        well = add_fields(entry, phase_fields, &run->phase[i]);
        well = json_array_append_new(list, entry) == 0 && well;
    }
    return well;
}

int plan_history_line_write(char **out, size_t *size, const plan_run *run)
{
    json_t *object = json_pack("{si}", "version", VERSION);
    bool well = object && (size_t)run->source < SOURCES && add_fields(object, run_fields, run) &&
                json_object_set_new(object, "source", json_string(sources[run->source])) == 0 &&
                add_phases(object, run);
    char *text = well ? json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;
    json_decref(object);
    if (!text)
        return shoal_fail(SHOAL_INVALID, "a run of %s has numbers or names that no line of the history can hold",
                          run->learner);
    int status = base_format(out, "%s\n", text);
    *size = status == SHOAL_OK ? strlen(*out) : 0;
    free(text);
    return status;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static bool read_text(char *out, size_t size, const json_t *value)
{
    const char *text = json_string_value(value);
    if (!text || strlen(text) >= size)
        return false;
    for (const char *at = text; *at; at++)
        if ((unsigned char)*at < 0x20 || *at == 0x7f)
            return false;
    memcpy(out, text, strlen(text) + 1);
    return true;
}

static bool read_real(double *out, const json_t *value)
{
    *out = json_number_value(value);
    return json_is_number(value) && isfinite(*out) && *out >= 0;
}

static bool read_field(void *to, const field *of, const json_t *value)
{
    char *place = (char *)to + of->offset;
    switch (of->kind) {
    case LATER:
        if (!value)
            return true;
        /* fall through */
    case REAL: return read_real((double *)place, value);
    case WHOLE: *(int64_t *)place = json_integer_value(value); return json_is_integer(value) && *(int64_t *)place >= 0;
    case TRUTH: *(bool *)place = json_is_true(value); return json_is_boolean(value);
    case TEXT: break;
    }
    return read_text(place, of->size, value);
}

static bool read_fields(void *to, const field *table, const json_t *object)
{
    bool well = json_is_object(object);
    for (; table->name && well; table++)
        well = read_field(to, table, json_object_get(object, table->name));
    return well;
}

static bool read_source(shoal_plan_source *out, const json_t *value)
{
    const char *text = json_string_value(value);
    for (int i = 0; text && i < SOURCES; i++)
        if (strcmp(text, sources[i]) == 0) {
            *out = (shoal_plan_source)i;
            return true;
        }
    return false;
}

static bool read_phases(plan_run *out, const json_t *list)
{
    size_t count = json_array_size(list);
    if (!json_is_array(list) || count > SHOAL_COST_PHASES)
        return false;
    for (size_t i = 0; i < count; i++)
        if (!read_fields(&out->phase[i], phase_fields, json_array_get(list, i)))
            return false;
    out->phases = (int)count;
    return true;
}

bool plan_history_line_read(plan_run *out, const char *line, size_t size)
{
    /* jansson takes a zero for the end of a number. */
    json_t *object = memchr(line, '\0', size) ? NULL : json_loadb(line, size, JSON_REJECT_DUPLICATES, NULL);
    const json_t *version = json_object_get(object, "version");
    *out = (plan_run){0};
    bool well = json_is_integer(version) && json_integer_value(version) == VERSION &&
                read_fields(out, run_fields, object) && read_source(&out->source, json_object_get(object, "source")) &&
                read_phases(out, json_object_get(object, "phases"));
    json_decref(object);
    return well;
}
