/* Reads what faults are asked for: names, chances and parameters, "seed:7,before:0.05/cut,delay:0.1/20ms". */
#include "store_faulty.h"

#include <stddef.h>
#include <string.h>

#include "base/memory.h"
#include "base/option.h"

typedef enum parameter { PARAMETER_NONE, PARAMETER_SECONDS, PARAMETER_CAUSE } parameter;

typedef struct fault_kind {
    const char *name;
    size_t offset;
    parameter parameter;
    double seconds; /* when none are given */
} fault_kind;

static const fault_kind kinds[] = {
    {"before", offsetof(fault_spec, before), PARAMETER_CAUSE, 0},
    {"after", offsetof(fault_spec, after), PARAMETER_CAUSE, 0},
    {"cut", offsetof(fault_spec, cut), PARAMETER_NONE, 0},
    {"throttle", offsetof(fault_spec, throttle), PARAMETER_SECONDS, 0},
    {"delay", offsetof(fault_spec, delay), PARAMETER_SECONDS, 0.02},
    {"duplicate", offsetof(fault_spec, duplicate), PARAMETER_NONE, 0},
    {"stale", offsetof(fault_spec, stale), PARAMETER_SECONDS, 0.1},
    {"forget", offsetof(fault_spec, forget), PARAMETER_SECONDS, 2},
};

static int read_seconds(double *out, const char *text, const char *item)
{
    static const struct {
        const char *unit;
        double seconds;
    } units[] = {{"ms", 1e-3}, {"us", 1e-6}, {"s", 1}};
    size_t length = strlen(text);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        size_t unit = strlen(units[i].unit);
        char number[32];
        if (length <= unit || length - unit >= sizeof number || strcmp(text + length - unit, units[i].unit) != 0)
            continue;
        memcpy(number, text, length - unit);
        number[length - unit] = '\0';
        if (!base_parse_real(out, number))
            break;
        *out *= units[i].seconds;
        if (*out >= 0 && *out <= 3600)
            return SHOAL_OK;
    }
    return shoal_fail(SHOAL_USAGE, "faults: in '%s' the time must be like 20ms or 1.5s, at most an hour", item);
}

static int read_cause(shoal_cause *out, const char *text, const char *item)
{
    static const char *const names[SHOAL_CAUSES] = {
        [SHOAL_CAUSE_THROTTLED] = "throttled",
        [SHOAL_CAUSE_SERVER] = "server",
        [SHOAL_CAUSE_UNREACHABLE] = "unreachable",
        [SHOAL_CAUSE_CUT] = "cut",
        [SHOAL_CAUSE_TIMEOUT] = "timeout",
        [SHOAL_CAUSE_RACE] = "race",
        [SHOAL_CAUSE_BUSY] = "busy",
    };
    for (int i = SHOAL_CAUSE_NONE + 1; i < SHOAL_CAUSES; i++)
        if (strcmp(names[i], text) == 0)
            return *out = (shoal_cause)i, SHOAL_OK;
    return shoal_fail(SHOAL_USAGE,
                      "faults: in '%s' the cause must be throttled, server, unreachable, cut, timeout, race or busy",
                      item);
}

static int read_fault(fault *out, const fault_kind *kind, char *chance, const char *item)
{
    char *detail = strchr(chance, '/');
    if (out->given)
        return shoal_fail(SHOAL_USAGE, "faults: '%s' is given twice", kind->name);
    *out = (fault){.seconds = kind->seconds, .given = true};
    if (detail)
        *detail++ = '\0';
    if (!base_parse_real(&out->chance, chance) || !(out->chance >= 0 && out->chance <= 1))
        return shoal_fail(SHOAL_USAGE, "faults: in '%s' the chance must be a number from 0 to 1", item);
    if (!detail)
        return SHOAL_OK;
    if (kind->parameter == PARAMETER_SECONDS)
        return read_seconds(&out->seconds, detail, item);
    if (kind->parameter == PARAMETER_CAUSE)
        return read_cause(&out->cause, detail, item);
    return shoal_fail(SHOAL_USAGE, "faults: '%s' takes only a chance", kind->name);
}

static int read_item(fault_spec *spec, const char *item)
{
    char text[128];
    int64_t seed;
    if (strlen(item) >= sizeof text)
        return shoal_fail(SHOAL_USAGE, "faults: '%.40s...' is too long", item);
    strcpy(text, item);
    char *value = strchr(text, ':');
    if (!value)
        return shoal_fail(SHOAL_USAGE, "faults: '%s' is not name:value", item);
    *value++ = '\0';
    if (strcmp(text, "seed") == 0) {
        if (!base_parse_count(&seed, value) || seed < 0)
            return shoal_fail(SHOAL_USAGE, "faults: in '%s' the seed must be a whole number", item);
        spec->seed = (uint64_t)seed;
        return SHOAL_OK;
    }
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i].name, text) == 0)
            return read_fault((fault *)((char *)spec + kinds[i].offset), &kinds[i], value, item);
    return shoal_fail(
        SHOAL_USAGE,
        "faults: unknown fault '%s'; use before, after, cut, throttle, delay, duplicate, stale, forget or seed", text);
}

int fault_spec_parse(fault_spec *out, const char *text)
{
    char *copy = NULL, *rest, *item;
    *out = (fault_spec){0};
    int status = base_copy_text(&copy, text);
    rest = copy;
    while (status == SHOAL_OK && (item = strsep(&rest, ",")))
        status = read_item(out, item);
    base_free(&copy);
    return status;
}
