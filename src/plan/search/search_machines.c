/* The machines of a search: names and patterns, looked up in a table of prices, or objects that bring their own
 * numbers. */
#include "search_space.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <shoal/error.h>

#include "base/memory.h"
#include "base/option.h"

typedef struct reader {
    const char *path;
    const plan_search_terms *terms;
    plan_prices *prices;
    plan_search_machines *out;
} reader;

static int add_machine(reader *self, const plan_machine *known, json_t *own)
{
    plan_search_machines *out = self->out;
    char *name = NULL;
    for (int64_t i = 0; i < out->machines; i++) {
        const plan_machine *other = &out->machine[i].known;
        if (strcmp(other->name, known->name) != 0)
            continue;
        if (*known->region && *other->region && strcmp(known->region, other->region) != 0)
            return shoal_fail(SHOAL_INVALID, "%s: %s is ambiguous: it is in %s:%s and in %s:%s; write \"%s:%s/%s\"",
                              self->path, known->name, other->cloud, other->region, known->cloud, known->region,
                              other->cloud, other->region, known->name);
        return shoal_fail(SHOAL_INVALID, "%s: \"machines\" has %s twice", self->path, known->name);
    }
    int status = plan_search_copy_value(&name, self->path, "machines", known->name);
    base_free(&name);
    if (status == SHOAL_OK)
        status = base_grow(&out->machine, (size_t)out->machines, (size_t)out->machines + 1, sizeof *out->machine,
                           "machines");
    if (status == SHOAL_OK)
        out->machine[out->machines++] = (plan_search_machine){.known = *known, .own = own};
    return status;
}

static int unknown(plan_machine *out, const reader *self, const char *name)
{
    *out = (plan_machine){.dollars_per_hour = NAN, .dollars_spot = NAN, .speed = 1};
    if (strlen(name) >= sizeof out->name)
        return shoal_fail(SHOAL_INVALID, "%s: the machine's name %.60s... is too long", self->path, name);
    snprintf(out->name, sizeof out->name, "%s", name);
    return SHOAL_OK;
}

/* A name that no table knows is good enough where nothing has to be paid. */
static int add_named(reader *self, const char *text)
{
    plan_selection chosen = {0};
    int status = plan_prices_select(&chosen, self->prices, text, self->terms->spot && self->terms->need_prices);
    if (status == SHOAL_USAGE && !self->terms->need_prices && !strpbrk(text, "*?:/,") && *text) {
        plan_machine machine;
        status = unknown(&machine, self, text);
        return status == SHOAL_OK ? add_machine(self, &machine, NULL) : status;
    }
    if (status == SHOAL_USAGE) { /* its sentence names the option that other verbs have */
        const char *sentence = shoal_error();
        sentence += strncmp(sentence, "--machines ", 11) == 0 ? 11 : 0;
        status = shoal_fail(SHOAL_INVALID, "%s: \"machines\": %s", self->path, sentence);
    }
    for (int64_t i = 0; i < chosen.machines && status == SHOAL_OK; i++)
        status = add_machine(self, chosen.machine[i], NULL);
    plan_selection_free(&chosen);
    return status;
}

/* ---- objects ----------------------------------------------------------------------------------------------------- */

/* Puts a number of the object in its place; what no field is there for stays in the object, as a feature. */
static int take_machine_number(plan_machine *machine, const char *path, const char *key, json_t *value)
{
    const struct {
        const char *name;
        double *field;
    } known[] = {{"vcpus", &machine->vcpus},
                 {"memory_gib", &machine->memory_gib},
                 {"usd_per_hour", &machine->dollars_per_hour},
                 {"usd_per_hour_spot", &machine->dollars_spot}};
    double number = json_number_value(value);
    if (!json_is_number(value) || !isfinite(number))
        return shoal_fail(SHOAL_INVALID, "%s: machine %s: \"%s\" must be a number", path, machine->name, key);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(key, known[i].name) != 0)
            continue;
        if (!(number > 0))
            return shoal_fail(SHOAL_INVALID, "%s: machine %s: \"%s\" is %g; it must be more than 0", path,
                              machine->name, key, number);
        *known[i].field = number;
    }
    return SHOAL_OK;
}

/* What the table knows of the one machine that has this name. */
static void look_up(plan_machine *machine, const reader *self)
{
    plan_selection chosen = {0};
    if (plan_prices_select(&chosen, self->prices, machine->name, false) == SHOAL_OK && chosen.machines == 1)
        *machine = *chosen.machine[0];
    plan_selection_free(&chosen);
}

static int add_object(reader *self, json_t *object)
{
    plan_machine machine;
    const char *key, *name = json_string_value(json_object_get(object, "name"));
    json_t *value;
    if (!name || !*name)
        return shoal_fail(SHOAL_INVALID, "%s: \"machines\": entry %lld has no \"name\"", self->path,
                          (long long)self->out->machines + 1);
    int status = unknown(&machine, self, name);
    if (status < 0)
        return status;
    look_up(&machine, self);
    json_object_foreach(object, key, value)
    {
        if (status == SHOAL_OK && strcmp(key, "name") != 0)
            status = take_machine_number(&machine, self->path, key, value);
    }
    double price = self->terms->spot ? machine.dollars_spot : machine.dollars_per_hour;
    if (status == SHOAL_OK && self->terms->need_prices && !(price > 0))
        return shoal_fail(SHOAL_INVALID, "%s: machine %s has no price: give it \"%s\"", self->path, machine.name,
                          self->terms->spot ? "usd_per_hour_spot" : "usd_per_hour");
    return status == SHOAL_OK ? add_machine(self, &machine, object) : status;
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

static int add_any(reader *self, json_t *item)
{
    if (json_is_string(item))
        return add_named(self, json_string_value(item));
    if (json_is_object(item))
        return add_object(self, item);
    return shoal_fail(SHOAL_INVALID, "%s: \"machines\" must have names, patterns, or objects with a \"name\"",
                      self->path);
}

int plan_search_machines_read(plan_search_machines *out, const char *path, json_t *from, const plan_search_terms *terms)
{
    reader self = {.path = path, .terms = terms, .out = out};
    if (!from || (json_is_array(from) && json_array_size(from) == 0))
        return shoal_fail(SHOAL_INVALID,
                          "%s: \"machines\" is missing: a list of names, or a pattern such as \"aws:us-east-1/c7i.*\"",
                          path);
    int status = terms->prices ? plan_prices_read(&self.prices, terms->prices) : plan_prices_shipped(&self.prices);
    if (status == SHOAL_OK && !json_is_array(from))
        status = add_any(&self, from);
    for (size_t i = 0; i < json_array_size(from) && status == SHOAL_OK; i++)
        status = add_any(&self, json_array_get(from, i));
    plan_prices_free(&self.prices);
    return status;
}

void plan_search_machines_release(plan_search_machines *machines)
{
    base_free(&machines->machine);
    machines->machines = 0;
}
