/* See adopt.h. */
#include "adopt.h"

#include <stdio.h>
#include <string.h>

#include <shoal/error.h>

#include "base/json.h"

static int compare_measures(const sweep_spec *other, const sweep_spec *spec)
{
    if (strcmp(other->objective, spec->objective) != 0 || other->maximise != spec->maximise)
        return shoal_fail(SHOAL_USAGE, "--from %s: its objective is %s:%s, and not %s:%s", spec->from, other->objective,
                          other->maximise ? "max" : "min", spec->objective, spec->maximise ? "max" : "min");
    if (other->steps != spec->steps)
        return shoal_fail(SHOAL_USAGE,
                          "--from %s: its trials have %lld steps, and not %lld (0: as many as they report)", spec->from,
                          (long long)other->steps, (long long)spec->steps);
    return SHOAL_OK;
}

/* A point of the other space with the values that this one has; false when it does not have all of them. */
static bool translate_point(sweep_point *out, const sweep_spec *spec, const sweep_spec *other, const sweep_point *point)
{
    json_t *json = sweep_point_json(other->space, point);
    for (int i = 0; i < other->space->parameters; i++) { /* what is always the same may be left out */
        const sweep_parameter *p = &other->space->parameter[i];
        if (sweep_values_of(p) <= 1 && sweep_space_find(spec->space, p->name) < 0)
            json_object_del(json, p->name);
    }
    const bool fits = json && sweep_point_of_json(out, spec->space, "a trial", json) == SHOAL_OK;
    json_decref(json);
    return fits;
}

/* Appends a trial that has ended, if this space has its point. */
static int append_trial(json_t *list, const sweep_spec *spec, const sweep_spec *other, const sweep_log *log,
                        const sweep_trial *trial)
{
    sweep_point point;
    const bool ended = trial->state == SWEEP_DONE || trial->state == SWEEP_FAILED;
    if (!ended || !translate_point(&point, spec, other, &trial->point))
        return SHOAL_OK;
    json_t *object = json_object();
    base_json_put(&object, "point", sweep_point_json(spec->space, &point));
    base_json_put(&object, "step", json_integer(trial->step));
    if (trial->state == SWEEP_DONE)
        base_json_put(&object, "value", json_real(log->sign * trial->value));
    return json_array_append_new(list, object) < 0
               ? shoal_fail(SHOAL_MEMORY, "out of memory for another sweep's trials")
               : SHOAL_OK;
}

static int list_trials(json_t **out, const sweep_spec *spec, const sweep_spec *other, const sweep_place *place)
{
    sweep_log log;
    json_t *list = json_array();
    sweep_log_init(&log, &other->rules, other->maximise, other->ahead);
    int status = sweep_place_pull(&log, place, false);
    for (int64_t i = 0; i < log.course.trials && status == SHOAL_OK; i++)
        status = append_trial(list, spec, other, &log, &log.course.trial[i]);
    sweep_log_release(&log);
    *out = json_object();
    base_json_put(out, "adopted", list);
    base_json_put(out, "from", base_json_text(spec->from));
    return status == SHOAL_OK && !*out ? shoal_fail(SHOAL_MEMORY, "out of memory for another sweep's trials") : status;
}

int sweep_adopt(json_t **out, const sweep_spec *spec, const sweep_place *place)
{
    sweep_spec *other = NULL;
    const sweep_place its = {.store = place->store, .name = spec->from, .patience = place->patience};
    *out = NULL;
    int status = sweep_place_spec(&other, &its);
    if (status == SHOAL_OK)
        status = compare_measures(other, spec);
    if (status == SHOAL_OK)
        status = list_trials(out, spec, other, &its);
    if (status < 0) {
        json_decref(*out);
        *out = NULL;
    }
    sweep_spec_free(&other);
    return status;
}
