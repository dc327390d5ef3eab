/* space.json, and what a candidate's number stands for.  See search_space.h. */
#include "search_space.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <shoal/error.h>

#include "base/hash.h"
#include "base/hex.h"
#include "base/memory.h"
#include "base/option.h"

enum { CANDIDATES_MOST = 10000 };

/* ---- candidates and values --------------------------------------------------------------------------------------- */

int64_t plan_search_value(const plan_search_space *space, int64_t candidate, int dimension)
{
    for (int i = space->dimensions - 1; i > dimension; i--)
        candidate /= space->dimension[i].values;
    return candidate % space->dimension[dimension].values;
}

const char *plan_search_text(const plan_search_space *space, int64_t candidate, int dimension)
{
    return space->dimension[dimension].text[plan_search_value(space, candidate, dimension)];
}

int64_t plan_search_candidate(const plan_search_space *space, const int64_t value[PLAN_SEARCH_DIMENSIONS_MOST])
{
    int64_t candidate = 0;
    for (int i = 0; i < space->dimensions; i++)
        candidate = candidate * space->dimension[i].values + value[i];
    return candidate;
}

int64_t plan_search_value_named(const plan_search_dimension *dimension, const char *text)
{
    double number = 0;
    if (!dimension->is_text && !base_parse_real(&number, text))
        return -1;
    for (int64_t i = 0; i < dimension->values; i++)
        if (dimension->is_text ? strcmp(dimension->text[i], text) == 0 : dimension->number[i] == number)
            return i;
    return -1;
}

int plan_search_dimension_named(const plan_search_space *space, const char *name)
{
    for (int i = 0; i < space->dimensions; i++)
        if (strcmp(space->dimension[i].name, name) == 0)
            return i;
    return -1;
}

void plan_search_label(char out[PLAN_SEARCH_LABEL_BYTES], const plan_search_space *space, int64_t candidate)
{
    size_t at = (size_t)snprintf(out, PLAN_SEARCH_LABEL_BYTES, "%.20s of %.64s",
                                 plan_search_text(space, candidate, PLAN_SEARCH_COUNT),
                                 plan_search_text(space, candidate, PLAN_SEARCH_MACHINE));
    for (int i = PLAN_SEARCH_COUNT + 1; i < space->dimensions && at < PLAN_SEARCH_LABEL_BYTES; i++)
        at += (size_t)snprintf(out + at, PLAN_SEARCH_LABEL_BYTES - at, ", %s %s", space->dimension[i].name,
                               plan_search_text(space, candidate, i));
}

/* ---- dimensions -------------------------------------------------------------------------------------------------- */

static bool is_name(const char *text)
{
    if (!isalpha((unsigned char)*text) && *text != '_')
        return false;
    for (; *text; text++)
        if (!isalnum((unsigned char)*text) && *text != '_')
            return false;
    return true;
}

static int add_machines(plan_search_space *space, const plan_search_terms *terms)
{
    plan_search_dimension *out = &space->dimension[PLAN_SEARCH_MACHINE];
    int status =
        plan_search_machines_read(&space->machines, space->path, json_object_get(space->file, "machines"), terms);
    if (status == SHOAL_OK)
        status = base_alloc(&out->text, (size_t)space->machines.machines, sizeof *out->text, "machines");
    out->name = "machine";
    out->is_text = true;
    for (int64_t i = 0; i < space->machines.machines && status == SHOAL_OK; i++, out->values++)
        status = base_copy_text(&out->text[i], space->machines.machine[i].known.name);
    space->dimensions = 1;
    return status;
}

static int add_parameter(plan_search_space *space, const char *key, json_t *value)
{
    static const char *const slips[] = {"machine", "counts", "feature"};
    static const char *const meant[] = {"machines", "count", "features"};
    for (size_t i = 0; i < sizeof slips / sizeof *slips; i++)
        if (strcmp(key, slips[i]) == 0)
            return shoal_fail(SHOAL_INVALID, "%s: unknown name \"%s\"; did you mean \"%s\"?", space->path, key,
                              meant[i]);
    if (!is_name(key))
        return shoal_fail(SHOAL_INVALID, "%s: \"%s\" is not a parameter name: use letters, digits and _", space->path,
                          key);
    static const char *const taken[] = {"seconds", "cost",   "outcome", "trial",     "why",
                                        "exit",    "signal", "usd",     "cost_told", "said"};
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        if (strcmp(key, taken[i]) == 0)
            return shoal_fail(SHOAL_INVALID, "%s: a parameter can't be called \"%s\": trials have a field of that name",
                              space->path, key);
    if (space->dimensions == PLAN_SEARCH_DIMENSIONS_MOST)
        return shoal_fail(SHOAL_INVALID, "%s: there are more than %d parameters", space->path,
                          PLAN_SEARCH_DIMENSIONS_MOST);
    return plan_search_values_read(&space->dimension[space->dimensions++], space->path, key, value);
}

static int add_dimensions(plan_search_space *space, const plan_search_terms *terms)
{
    json_t *count = json_object_get(space->file, "count"), *value, *one = json_integer(1);
    const char *key;
    int status = add_machines(space, terms);
    if (status == SHOAL_OK) {
        space->dimensions = 2;
        status =
            plan_search_values_read(&space->dimension[PLAN_SEARCH_COUNT], space->path, "count", count ? count : one);
    }
    json_decref(one);
    json_object_foreach(space->file, key, value)
    {
        if (status == SHOAL_OK && strcmp(key, "machines") != 0 && strcmp(key, "count") != 0 &&
            strcmp(key, "features") != 0)
            status = add_parameter(space, key, value);
    }
    return status;
}

/* ---- candidates -------------------------------------------------------------------------------------------------- */

/* Candidates must differ in machine or count: other parameters become part of the machine's name. */
static int name_candidates(plan_search_space *space)
{
    char label[PLAN_SEARCH_LABEL_BYTES];
    if (space->dimensions == 2)
        return SHOAL_OK;
    int status = base_alloc(&space->label, (size_t)space->list.candidates, sizeof *space->label, "configurations");
    for (int64_t i = 0; i < space->list.candidates && status == SHOAL_OK; i++) {
        plan_search_label(label, space, i);
        status = base_format(&space->label[i], "%s (%" PRId64 ")", label, i + 1); /* long labels are cut */
        space->candidate[i].machine = space->label[i];
    }
    return status;
}

static int make_candidates(plan_search_space *space, const plan_search_terms *terms)
{
    int64_t candidates = 1;
    for (int i = 0; i < space->dimensions; i++) {
        candidates *= space->dimension[i].values; /* at most 1e4 times 1e4 */
        if (candidates > CANDIDATES_MOST)
            return shoal_fail(SHOAL_INVALID, "%s: there are more than %d configurations", space->path, CANDIDATES_MOST);
    }
    int status = base_alloc(&space->candidate, (size_t)candidates, sizeof *space->candidate, "configurations");
    space->priced = true;
    for (int64_t i = 0; i < candidates && status == SHOAL_OK; i++) {
        int64_t which = plan_search_value(space, i, PLAN_SEARCH_MACHINE);
        const plan_machine *machine = &space->machines.machine[which].known;
        double price = terms->spot ? machine->dollars_spot : machine->dollars_per_hour;
        plan_candidate *candidate = &space->candidate[i];
        if (terms->need_prices && !(price > 0))
            return shoal_fail(SHOAL_INVALID, "%s: machine %s has no %sprice", space->path, machine->name,
                              terms->spot ? "spot " : "");
        candidate->machine = space->dimension[PLAN_SEARCH_MACHINE].text[which];
        candidate->count =
            (int64_t)space->dimension[PLAN_SEARCH_COUNT].number[plan_search_value(space, i, PLAN_SEARCH_COUNT)];
        candidate->dollars_per_hour = price > 0 ? price * (double)candidate->count : 0;
        space->priced = space->priced && price > 0;
    }
    space->list.candidate = space->candidate;
    space->list.candidates = candidates;
    return status == SHOAL_OK ? name_candidates(space) : status;
}

static void end_hash(char out[17], base_hash *hash)
{
    unsigned char digest[BASE_HASH_SIZE];
    char hex[BASE_HASH_HEX];
    base_hash_end(hash, digest);
    base_hex_write(hex, digest, sizeof digest);
    snprintf(out, 17, "%.16s", hex);
}

static void hash_space(plan_search_space *space, bool with_prices)
{
    char price[40];
    base_hash hash = {0};
    for (int i = 0; i < space->dimensions; i++) {
        base_hash_add(&hash, space->dimension[i].name, strlen(space->dimension[i].name) + 1);
        for (int64_t j = 0; j < space->dimension[i].values; j++)
            base_hash_add(&hash, space->dimension[i].text[j], strlen(space->dimension[i].text[j]) + 1);
        base_hash_add(&hash, "", 1);
    }
    end_hash(space->hash, &hash);
    for (int64_t i = 0; i < space->list.candidates && with_prices; i++) {
        snprintf(price, sizeof price, "%.17g", space->candidate[i].dollars_per_hour);
        base_hash_add(&hash, price, strlen(price) + 1);
    }
    if (with_prices)
        end_hash(space->price_hash, &hash);
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

int plan_search_space_read(plan_search_space **out, const char *path, const plan_search_terms *terms)
{
    json_error_t error;
    plan_search_space *space = NULL;
    int status = base_alloc(&space, 1, sizeof *space, "the space of a search");
    if (status < 0)
        return status;
    space->path = path;
    space->file = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    if (!space->file && json_error_code(&error) == json_error_cannot_open_file)
        status = shoal_fail_errno(SHOAL_SYSTEM, errno, "%s: can't read", path);
    else if (!space->file)
        status = shoal_fail(SHOAL_INVALID, "%s: line %d: not JSON: %s", path, error.line, error.text);
    else if (!json_is_object(space->file))
        status =
            shoal_fail(SHOAL_INVALID,
                       "%s: must be an object, such as {\"machines\": [\"c7i.large\"], \"count\": [2, 4, 8]}", path);
    if (status == SHOAL_OK)
        status = add_dimensions(space, terms);
    if (status == SHOAL_OK)
        status = make_candidates(space, terms);
    if (status == SHOAL_OK)
        status = plan_search_features(space);
    if (status == SHOAL_OK) {
        hash_space(space, terms->need_prices);
        *out = space;
        space = NULL;
    }
    plan_search_space_free(&space);
    return status;
}

void plan_search_space_free(plan_search_space **inout)
{
    plan_search_space *space = *inout;
    if (!space)
        return;
    for (int i = 0; i < space->dimensions; i++)
        plan_search_values_release(&space->dimension[i]);
    plan_search_machines_release(&space->machines);
    for (int64_t i = 0; i < space->list.candidates && space->label; i++)
        base_free(&space->label[i]);
    base_free(&space->label);
    base_free(&space->candidate);
    json_decref(space->file);
    base_free(inout);
}
