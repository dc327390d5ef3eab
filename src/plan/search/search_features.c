/* What the model sees of a configuration: numbers of its machine, how many there are, and its other parameters.
 *
 * Cores and memory become features as search_space.h describes them; every other number that machines have is one;
 * texts get one for each value, which is 1 or 0.  A price is a feature where only that tells two machines apart, and
 * the name is where nothing else does. */
#include "search_space.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <shoal/error.h>

#include "base/memory.h"
#include "base/option.h"

/* ---- machines whose cores and memory are known ------------------------------------------------------------------- */

void plan_candidates_describe(plan_candidates *list)
{
    static const char *const name[] = {"cores", "memory", "memory per core"};
    list->features = 3;
    for (int j = 0; j < 3; j++) {
        list->feature_name[j] = name[j];
        list->logarithmic[j] = true;
    }
}

void plan_candidate_describe(plan_candidate *candidate, const plan_machine *machine, int64_t count)
{
    candidate->count = count;
    candidate->dollars_per_hour = machine->dollars_per_hour * (double)count;
    candidate->feature[0] = machine->vcpus * (double)count;
    candidate->feature[1] = machine->memory_gib * (double)count;
    candidate->feature[2] = machine->memory_gib / machine->vcpus;
}

/* ---- features of all --------------------------------------------------------------------------------------------- */

static int add_feature(plan_search_space *space, const char *name, bool logarithmic)
{
    plan_candidates *list = &space->list;
    if (list->features == PLAN_FEATURES_MOST)
        return shoal_fail(SHOAL_INVALID, "%s: there are more than %d features; \"features\" can name those that count",
                          space->path, PLAN_FEATURES_MOST);
    snprintf(space->feature_name[list->features], sizeof *space->feature_name, "%s", name);
    list->feature_name[list->features] = space->feature_name[list->features];
    list->logarithmic[list->features++] = logarithmic;
    return SHOAL_OK;
}

/* Whether "features" leaves a name in; without it all are. */
static bool is_wanted_feature(const plan_search_space *space, const char *name)
{
    json_t *wanted = json_object_get(space->file, "features"), *item;
    size_t index;
    if (!wanted)
        return true;
    json_array_foreach(wanted, index, item)
    {
        if (strcmp(json_string_value(item), name) == 0)
            return true;
    }
    return false;
}

static bool is_named(const plan_search_space *space, const char *name)
{
    return json_object_get(space->file, "features") && is_wanted_feature(space, name);
}

/* One feature of all candidates, `value` being that of each value of a dimension. */
static int add_numbers(plan_search_space *space, const char *name, int dimension, const double *value)
{
    bool positive = true, differs = false;
    if (!is_wanted_feature(space, name))
        return SHOAL_OK;
    for (int64_t i = 0; i < space->dimension[dimension].values; i++) {
        positive = positive && value[i] > 0;
        differs = differs || value[i] != value[0];
    }
    if (!differs)
        return SHOAL_OK;
    int place = space->list.features, status = add_feature(space, name, positive);
    for (int64_t i = 0; i < space->list.candidates && status == SHOAL_OK; i++)
        space->candidate[i].feature[place] = value[plan_search_value(space, i, dimension)];
    return status;
}

/* One feature for each value of a dimension; one is enough for two values. */
static int add_names(plan_search_space *space, int dimension)
{
    const plan_search_dimension *from = &space->dimension[dimension];
    int status = SHOAL_OK;
    if (!is_wanted_feature(space, from->name) || from->values < 2)
        return SHOAL_OK;
    if (from->values > PLAN_FEATURES_MOST)
        return shoal_fail(SHOAL_INVALID,
                          "%s: \"%s\" has %lld values that are known by their names alone; %d is the most", space->path,
                          dimension == PLAN_SEARCH_MACHINE ? "machines" : from->name, (long long)from->values,
                          PLAN_FEATURES_MOST);
    for (int64_t value = from->values == 2; value < from->values && status == SHOAL_OK; value++) {
        char name[64];
        int place = space->list.features;
        snprintf(name, sizeof name, "%.24s=%.32s", from->name, from->text[value]);
        status = add_feature(space, name, false);
        for (int64_t i = 0; i < space->list.candidates && status == SHOAL_OK; i++)
            space->candidate[i].feature[place] = plan_search_value(space, i, dimension) == value;
    }
    return status;
}

/* ---- machines ---------------------------------------------------------------------------------------------------- */

static bool all_have(const plan_search_machines *machines, size_t offset)
{
    for (int64_t i = 0; i < machines->machines; i++)
        if (!(*(const double *)((const char *)&machines->machine[i].known + offset) > 0))
            return false;
    return true;
}

static bool is_own_feature(const char *key, bool described)
{
    return strcmp(key, "name") != 0 && strncmp(key, "usd_per_hour", 12) != 0 &&
           !(described && (strcmp(key, "vcpus") == 0 || strcmp(key, "memory_gib") == 0));
}

/* A number that some machines bring along must be there for all of them. */
static int own_numbers(double *out, const plan_search_space *space, const char *key)
{
    for (int64_t i = 0; i < space->machines.machines; i++) {
        const plan_search_machine *machine = &space->machines.machine[i];
        json_t *value = json_object_get(machine->own, key);
        out[i] = json_number_value(value);
        if (strcmp(key, "vcpus") == 0)
            out[i] = machine->known.vcpus;
        else if (strcmp(key, "memory_gib") == 0)
            out[i] = machine->known.memory_gib;
        else if (!value)
            out[i] = NAN;
        if (isnan(out[i]) || (!value && out[i] == 0))
            return shoal_fail(SHOAL_INVALID, "%s: machine %s has no \"%s\", which others have", space->path,
                              machine->known.name, key);
    }
    return SHOAL_OK;
}

/* Every name of a number in the objects, once; each in turn, NULL at the end. */
static const char *next_own_key(const plan_search_space *space, bool described, int64_t *machine, void **place)
{
    for (; *machine < space->machines.machines; ++*machine, *place = NULL) {
        json_t *own = space->machines.machine[*machine].own;
        for (*place = *place ? json_object_iter_next(own, *place) : json_object_iter(own); *place;
             *place = json_object_iter_next(own, *place)) {
            const char *key = json_object_iter_key(*place);
            bool seen = false;
            for (int64_t i = 0; i < *machine; i++)
                seen = seen || json_object_get(space->machines.machine[i].own, key);
            if (!seen && is_own_feature(key, described))
                return key;
        }
    }
    return NULL;
}

static int add_own(plan_search_space *space, bool described)
{
    double *value = NULL;
    int64_t machine = 0;
    void *place = NULL;
    int status = base_alloc(&value, (size_t)space->machines.machines, sizeof *value, "features");
    for (const char *key; status == SHOAL_OK && (key = next_own_key(space, described, &machine, &place));)
        if (is_wanted_feature(space, key) && (status = own_numbers(value, space, key)) == SHOAL_OK)
            status = add_numbers(space, key, PLAN_SEARCH_MACHINE, value);
    base_free(&value);
    return status;
}

/* Machines that have the features of one before them. */
static int64_t count_alike(const plan_search_space *space)
{
    int64_t stride = space->list.candidates / space->machines.machines, alike = 0;
    for (int64_t i = 1; i < space->machines.machines; i++)
        for (int64_t j = 0; j < i; j++) {
            const double *a = space->candidate[i * stride].feature, *b = space->candidate[j * stride].feature;
            if (memcmp(a, b, (size_t)space->list.features * sizeof *a) == 0) {
                alike++;
                break;
            }
        }
    return alike;
}

static int tell_apart(plan_search_space *space)
{
    int status = SHOAL_OK;
    double *value = NULL;
    space->alike = count_alike(space);
    if ((space->alike > 0 || is_named(space, "price")) && space->priced) {
        status = base_alloc(&value, (size_t)space->machines.machines, sizeof *value, "features");
        for (int64_t i = 0; i < space->machines.machines && status == SHOAL_OK; i++) {
            const plan_machine *machine = &space->machines.machine[i].known;
            int64_t first = i * (space->list.candidates / space->machines.machines);
            value[i] = space->candidate[first].dollars_per_hour / (double)space->candidate[first].count;
            value[i] /= machine->vcpus > 0 ? machine->vcpus : 1;
        }
        if (status == SHOAL_OK)
            status = add_numbers(space, "price", PLAN_SEARCH_MACHINE, value);
        base_free(&value);
        space->alike = count_alike(space);
    }
    bool fits = space->machines.machines + space->list.features <= PLAN_FEATURES_MOST;
    if (status == SHOAL_OK && space->alike > 0 && (fits || space->alike == space->machines.machines - 1))
        status = add_names(space, PLAN_SEARCH_MACHINE);
    if (status == SHOAL_OK)
        space->alike = count_alike(space);
    return status;
}

/* Cores, memory and how many there are, as search_space.h has them, or only how many. */
static int describe_candidates(plan_search_space *space, bool known)
{
    if (!known || json_object_get(space->file, "features"))
        return add_numbers(space, "count", PLAN_SEARCH_COUNT, space->dimension[PLAN_SEARCH_COUNT].number);
    plan_candidates_describe(&space->list);
    for (int64_t i = 0; i < space->list.candidates; i++) {
        const plan_search_machine *machine = &space->machines.machine[plan_search_value(space, i, PLAN_SEARCH_MACHINE)];
        plan_candidate *candidate = &space->candidate[i];
        double dollars = candidate->dollars_per_hour;
        plan_candidate_describe(candidate, &machine->known, candidate->count);
        candidate->dollars_per_hour = dollars;
    }
    return SHOAL_OK;
}

/* With "features" cores and memory are what they are, so that either can be left away. */
static int add_known(plan_search_space *space)
{
    static const struct {
        const char *name;
        size_t offset;
    } fields[] = {{"vcpus", offsetof(plan_machine, vcpus)}, {"memory_gib", offsetof(plan_machine, memory_gib)}};
    double *value = NULL;
    int status = base_alloc(&value, (size_t)space->machines.machines, sizeof *value, "features");
    for (size_t f = 0; f < 2 && status == SHOAL_OK; f++) {
        for (int64_t i = 0; i < space->machines.machines; i++)
            value[i] = *(const double *)((const char *)&space->machines.machine[i].known + fields[f].offset);
        status = add_numbers(space, fields[f].name, PLAN_SEARCH_MACHINE, value);
    }
    base_free(&value);
    return status;
}

/* What "features" names must be known of every machine: a feature that is left out in silence would be missed. */
static int check_known(const plan_search_space *space)
{
    for (int64_t i = 0; i < space->machines.machines; i++) {
        const plan_machine *known = &space->machines.machine[i].known;
        const int64_t first = i * (space->list.candidates / space->machines.machines);
        const char *lacks = is_named(space, "vcpus") && !(known->vcpus > 0)                               ? "vcpus"
                            : is_named(space, "memory_gib") && !(known->memory_gib > 0)                   ? "memory_gib"
                            : is_named(space, "price") && !(space->candidate[first].dollars_per_hour > 0) ? "price"
                                                                                                          : NULL;
        if (lacks)
            return shoal_fail(SHOAL_INVALID, "%s: \"features\" names %s, which machine %s does not have", space->path,
                              lacks, known->name);
    }
    return SHOAL_OK;
}

/* ---- "features" -------------------------------------------------------------------------------------------------- */

static int check_wanted(const plan_search_space *space)
{
    json_t *wanted = json_object_get(space->file, "features"), *item;
    size_t index;
    if (wanted && (!json_is_array(wanted) || json_array_size(wanted) == 0))
        return shoal_fail(SHOAL_INVALID, "%s: \"features\" must be a list of names", space->path);
    json_array_foreach(wanted, index, item)
    {
        const char *name = json_string_value(item);
        if (!name)
            return shoal_fail(SHOAL_INVALID, "%s: \"features\" must be a list of names", space->path);
        bool known = strcmp(name, "vcpus") == 0 || strcmp(name, "memory_gib") == 0 || strcmp(name, "price") == 0 ||
                     plan_search_dimension_named(space, name) >= 0;
        for (int64_t i = 0; i < space->machines.machines && !known; i++)
            known = json_object_get(space->machines.machine[i].own, name) && is_own_feature(name, true);
        if (!known)
            return shoal_fail(SHOAL_INVALID,
                              "%s: \"features\" names %s, which is neither a parameter nor a number of a machine",
                              space->path, name);
    }
    return SHOAL_OK;
}

int plan_search_features(plan_search_space *space)
{
    bool known = all_have(&space->machines, offsetof(plan_machine, vcpus)) &&
                 all_have(&space->machines, offsetof(plan_machine, memory_gib));
    int status = check_wanted(space);
    if (status == SHOAL_OK)
        status = check_known(space);
    if (status == SHOAL_OK)
        status = describe_candidates(space, known);
    if (status == SHOAL_OK && known && json_object_get(space->file, "features"))
        status = add_known(space);
    if (status == SHOAL_OK)
        status = add_own(space, known);
    if (status == SHOAL_OK)
        status = tell_apart(space);
    for (int i = PLAN_SEARCH_COUNT + 1; i < space->dimensions && status == SHOAL_OK; i++)
        status = space->dimension[i].is_text
                     ? add_names(space, i)
                     : add_numbers(space, space->dimension[i].name, i, space->dimension[i].number);
    if (status == SHOAL_OK &&
        space->list.features == 0) /* one configuration, or none that differ: a constant is as good as any */
        status = add_feature(space, "nothing", false);
    return status;
}
