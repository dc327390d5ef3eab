/* See spec.h. */
#include "spec.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <shoal/error.h>

#include "base/memory.h"
#include "base/text.h"
#include "repeats.h"

enum { VERSION = 1, STEPS_MOST = 1000000 };

static int read_text(const char **out, const char *name, const json_t *json, const char *key, bool needed)
{
    const json_t *value = json_object_get(json, key);
    *out = json_string_value(value);
    if ((needed || value) && (!*out || !**out))
        return shoal_fail(SHOAL_INVALID, "%s: \"%s\" is not a text", name, key);
    return SHOAL_OK;
}

static int read_count(int64_t *out, const char *name, const json_t *json, const char *key, int64_t least, int64_t most)
{
    const json_t *value = json_object_get(json, key);
    *out = json_integer_value(value);
    if (!json_is_integer(value) || *out < least || *out > most)
        return shoal_fail(SHOAL_INVALID, "%s: \"%s\" is not a whole number from %lld to %lld", name, key,
                          (long long)least, (long long)most);
    return SHOAL_OK;
}

static int read_rules(sweep_spec *spec, const char *name)
{
    const char *sampler = NULL, *stopper = NULL;
    int64_t least = 0, seed = 0;
    sweep_rules *rules = &spec->rules;
    int status = read_text(&sampler, name, spec->json, "sampler", true);
    if (status == SHOAL_OK)
        status = read_text(&stopper, name, spec->json, "stop", true);
    if (status == SHOAL_OK)
        status = read_count(&rules->rungs.eta, name, spec->json, "eta", 2, 100);
    if (status == SHOAL_OK)
        status = read_count(&spec->steps, name, spec->json, "steps", 0, STEPS_MOST);
    if (status == SHOAL_OK)
        status = read_count(&least, name, spec->json, "least", 0, STEPS_MOST);
    if (status == SHOAL_OK)
        status = read_count(&spec->ahead, name, spec->json, "ahead", 0, 10000);
    spec->repeat = 1;
    if (status == SHOAL_OK && json_object_get(spec->json, "repeat"))
        status = read_count(&spec->repeat, name, spec->json, "repeat", 1, SWEEP_REPEATS_MOST);
    if (status == SHOAL_OK)
        status = read_count(&seed, name, spec->json, "seed", 0, INT64_MAX);
    if (status < 0)
        return status;
    rules->sampler = sweep_sampler_find(sampler);
    rules->stopper = sweep_stopper_find(stopper);
    rules->seed = (uint64_t)seed;
    if (!rules->sampler || !rules->stopper)
        return shoal_fail(SHOAL_INVALID, "%s: there is no %s '%s'", name,
                          rules->sampler ? "rule of stopping" : "sampler", rules->sampler ? stopper : sampler);
    if (spec->steps == 0 && rules->stopper != &sweep_stopper_none)
        return shoal_fail(SHOAL_USAGE,
                          "--stop %s compares trials on their way: it needs --steps N, how many reports a "
                          "whole trial makes",
                          stopper);
    if (least > spec->steps && spec->steps > 0)
        return shoal_fail(SHOAL_USAGE, "--least %lld is more than all %lld steps of a trial", (long long)least,
                          (long long)spec->steps);
    rules->stopper->lay(&rules->rungs, spec->steps ? spec->steps : SWEEP_STEPS_ENDLESS, least);
    return rules->sampler->check ? rules->sampler->check(spec->space) : SHOAL_OK;
}

/* Of "seconds" and "cost" nothing is reported: they are measured. */
static sweep_measure measure_of(const char *key)
{
    return strcmp(key, "seconds") == 0 ? SWEEP_SECONDS : strcmp(key, "cost") == 0 ? SWEEP_COST : SWEEP_REPORTED;
}

static int add_objective(sweep_spec *spec, const char *name, const json_t *from)
{
    sweep_objective *to = &spec->objectives[spec->objective_count];
    int status = read_text(&to->key, name, from, "objective", true);
    if (status < 0)
        return status;
    if (!base_text_is_clean(to->key))
        return shoal_fail(SHOAL_INVALID, "%s: \"objective\" makes no sense", name);
    to->maximise = json_is_true(json_object_get(from, "maximise"));
    to->measure = measure_of(to->key);
    spec->objective_count++;
    return SHOAL_OK;
}

/* What counts, and then what else is kept. */
static int read_objectives(sweep_spec *spec, const char *name)
{
    const json_t *others = json_object_get(spec->json, "others");
    int status = add_objective(spec, name, spec->json);
    if (status == SHOAL_OK && json_array_size(others) > SWEEP_OTHERS_MOST)
        status = shoal_fail(SHOAL_INVALID, "%s: has more than %d objectives", name, SWEEP_OBJECTIVES_MOST);
    for (size_t i = 0; i < json_array_size(others) && status == SHOAL_OK; i++)
        status = add_objective(spec, name, json_array_get(others, i));
    spec->objective = spec->objectives[0].key;
    spec->maximise = spec->objectives[0].maximise;
    return status;
}

/* A time is known at the end alone, and differs from run to run. */
static int check_measured(const sweep_spec *spec)
{
    const char *key = spec->objective;
    if (spec->objectives[0].measure == SWEEP_REPORTED)
        return SHOAL_OK;
    if (spec->rules.stopper != &sweep_stopper_none)
        return shoal_fail(SHOAL_USAGE, "--objective %s is known at the end of a trial: it excludes --stop %s", key,
                          spec->rules.stopper->name);
    if (spec->repeat > 1)
        return shoal_fail(SHOAL_USAGE, "--objective %s is of one command: it excludes --repeat", key);
    if (spec->ahead > 0)
        return shoal_fail(SHOAL_USAGE, "--objective %s differs from run to run: it excludes --order strict", key);
    if (spec->maximise)
        return shoal_fail(SHOAL_USAGE, "--objective %s:max: time and money can't be as great as possible", key);
    return SHOAL_OK;
}

static int read_spec(sweep_spec *spec, const char *name)
{
    int64_t version = 0;
    const json_t *timeout = json_object_get(spec->json, "timeout");
    int status = read_count(&version, name, spec->json, "sweep", VERSION, VERSION);
    if (status == SHOAL_OK)
        status = sweep_space_of_json(&spec->space, name, json_object_get(spec->json, "space"));
    if (status < 0)
        return status;
    spec->rules.space = spec->space;
    status = read_rules(spec, name);
    if (status == SHOAL_OK)
        status = read_objectives(spec, name);
    if (status == SHOAL_OK)
        status = check_measured(spec);
    if (status == SHOAL_OK)
        status = read_text(&spec->run, name, spec->json, "run", false);
    if (status == SHOAL_OK)
        status = read_text(&spec->learner, name, spec->json, "learner", false);
    if (status == SHOAL_OK)
        status = read_text(&spec->from, name, spec->json, "from", false);
    if (status < 0)
        return status;
    spec->timeout = json_number_value(timeout);
    if (!spec->run == !spec->learner)
        return shoal_fail(SHOAL_INVALID, "%s: has neither \"run\" nor \"learner\", or both", name);
    if (!(spec->timeout >= 0))
        return shoal_fail(SHOAL_INVALID, "%s: \"timeout\" makes no sense", name);
    return SHOAL_OK;
}

int sweep_spec_of_json(sweep_spec **out, const char *name, json_t *json)
{
    sweep_spec *spec = NULL;
    *out = NULL;
    int status = base_alloc(&spec, 1, sizeof *spec, "a sweep");
    if (status < 0) {
        json_decref(json);
        return status;
    }
    spec->json = json;
    status = read_spec(spec, name);
    if (status < 0)
        sweep_spec_free(&spec);
    *out = spec;
    return status;
}

void sweep_spec_free(sweep_spec **inout)
{
    if (!*inout)
        return;
    sweep_space_free(&(*inout)->space);
    json_decref((*inout)->json);
    base_free(inout);
}

static int tell_difference(const char *name, const char *key, const json_t *there, const json_t *asked)
{
    char *old = there ? json_dumps(there, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
    char *now = asked ? json_dumps(asked, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
    int status = shoal_fail(SHOAL_USAGE, "sweep '%s' has %s %.120s, and not %.120s: give it another --name", name, key,
                            old ? old : "no value", now ? now : "none");
    free(old);
    free(now);
    return status;
}

/* The first key whose values differ; NULL when none do. */
static const char *first_difference(json_t *there, json_t *asked)
{
    const char *key;
    json_t *value;
    json_object_foreach(there, key, value)
    {
        if (!json_equal(value, json_object_get(asked, key)))
            return key;
    }
    json_object_foreach(asked, key, value)
    {
        if (!json_object_get(there, key))
            return key;
    }
    return NULL;
}

int sweep_spec_compare(const sweep_spec *there, const sweep_spec *asked, const char *name)
{
    json_t *old = json_object_get(there->json, "space"), *now = json_object_get(asked->json, "space");
    const char *key = first_difference(old, now);
    if (key)
        return tell_difference(name, key, json_object_get(old, key), json_object_get(now, key));
    key = first_difference(there->json, asked->json);
    return key ? tell_difference(name, key, json_object_get(there->json, key), json_object_get(asked->json, key))
               : SHOAL_OK;
}
