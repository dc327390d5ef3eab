/* A run as a line of JSON.  See history.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>
#include <shoal/error.h>

#include "base/memory.h"
#include "plan/fields.h"
#include "plan/history_internal.h"

enum { VERSION = 1 };

static const plan_field run_fields[] = {
    PLAN_FIELD(WHOLE, plan_run, date),        PLAN_FIELD(TEXT, plan_run, learner),
    PLAN_FIELD(TEXT, plan_run, store),        PLAN_FIELD(TEXT, plan_run, kernel),
    PLAN_FIELD(TEXT, plan_run, host),         PLAN_FIELD(REAL, plan_run, rows),
    PLAN_FIELD(REAL, plan_run, columns),      PLAN_FIELD(REAL, plan_run, value_bytes),
    PLAN_FIELD(WHOLE, plan_run, workers),     PLAN_FIELD(WHOLE, plan_run, machines),
    PLAN_FIELD(WHOLE, plan_run, lost),        PLAN_FIELD(REAL, plan_run, threads),
    PLAN_FIELD(REAL, plan_run, cores),        PLAN_FIELD(REAL, plan_run, seconds),
    PLAN_FIELD(REAL, plan_run, predicted),    PLAN_FIELD(REAL, plan_run, low),
    PLAN_FIELD(REAL, plan_run, high),         PLAN_FIELD(REAL, plan_run, requests),
    PLAN_FIELD(TRUTH, plan_run, partial),     PLAN_FIELD(TEXT, plan_run, reduce),
    PLAN_FIELD(TRUTH, plan_run, split_roles), PLAN_FIELD(LATER, plan_run, slices),
    PLAN_FIELD(LATER_TEXT, plan_run, job),    {0},
};

typedef struct plan_run_phase phase;

static const plan_field phase_fields[] = {
    PLAN_FIELD(TEXT, phase, name),
    PLAN_FIELD(REAL, phase, rounds),
    PLAN_FIELD(REAL, phase, seconds),
    PLAN_FIELD(REAL, phase, expected_rounds),
    PLAN_FIELD(REAL, phase, operations_per_row),
    PLAN_FIELD(REAL, phase, model_bytes),
    PLAN_FIELD(REAL, phase, partial_bytes),
    PLAN_FIELD(LATER, phase, row_bytes),
    PLAN_FIELD(LATER, phase, kept_bytes),
    {0},
};

static const char *const sources[] = {[SHOAL_PLAN_STORED] = "stored",
                                      [SHOAL_PLAN_UPLOADED] = "uploaded",
                                      [SHOAL_PLAN_FILE] = "file",
                                      [SHOAL_PLAN_GENERATED] = "generated"};
enum { SOURCES = sizeof sources / sizeof *sources };

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static bool add_phases(json_t *object, const plan_run *run)
{
    json_t *list = json_array();
    bool well = json_object_set_new(object, "phases", list) == 0;
    for (int i = 0; i < run->phases && well; i++) {
        json_t *entry = json_object();
        plan_fields_write(&entry, phase_fields, &run->phase[i]);
        well = entry && json_array_append_new(list, entry) == 0;
    }
    return well;
}

int plan_history_line_write(char **out, size_t *size, const plan_run *run)
{
    json_t *object = json_pack("{si}", "version", VERSION);
    plan_fields_write(&object, run_fields, run);
    bool well = object && (size_t)run->source < SOURCES &&
                json_object_set_new(object, "source", json_string(sources[run->source])) == 0 &&
                add_phases(object, run);
    char *text = well ? json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;
    json_decref(object);
    if (!text)
        return shoal_fail(SHOAL_INVALID, "a run of %s has figures or names that the history cannot hold", run->learner);
    int status = base_format(out, "%s\n", text);
    *size = status == SHOAL_OK ? strlen(*out) : 0;
    free(text);
    return status;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static bool read_fields(void *to, const plan_field *table, const json_t *object)
{
    const char *why = NULL;
    return json_is_object(object) && !plan_fields_read(&why, table, object, to);
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
