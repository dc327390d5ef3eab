/* See place.h. */
#include "place.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <shoal/error.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"

enum { SNAPSHOT_KEY = 64 };
static const uint32_t kind = SHOAL_KIND('s', 'w', 'e', 'p');

static int key_of(char out[SHOAL_KEY_MOST + 1], const sweep_place *place, const char *key)
{
    if (snprintf(out, SHOAL_KEY_MOST + 1, "sweeps/%s/%s", place->name, key) > SHOAL_KEY_MOST)
        return shoal_fail(SHOAL_USAGE, "the sweep's name is too long");
    return SHOAL_OK;
}

int sweep_place_get(char **out, const sweep_place *place, const char *key)
{
    char whole[SHOAL_KEY_MOST + 1];
    shoal_blob blob = {0};
    *out = NULL;
    int status = key_of(whole, place, key);
    if (status == SHOAL_OK)
        status = shoal_store_get_framed(place->store, whole, kind, &blob, shoal_after(place->patience));
    if (status == SHOAL_OK)
        status = base_copy_text_n(out, blob.data ? blob.data : "", blob.size);
    shoal_blob_release(&blob);
    return status;
}

int sweep_place_put_once(const sweep_place *place, const char *key, const char *text)
{
    char whole[SHOAL_KEY_MOST + 1];
    int status = key_of(whole, place, key);
    return status < 0 ? status
                      : shoal_store_put_framed(place->store, whole, kind, text, strlen(text), SHOAL_NOTHING, NULL,
                                               shoal_after(place->patience));
}

int sweep_place_put(const sweep_place *place, const char *key, const char *text)
{
    char whole[SHOAL_KEY_MOST + 1];
    int status = key_of(whole, place, key);
    return status < 0 ? status
                      : shoal_store_put_framed(place->store, whole, kind, text, strlen(text), NULL, NULL,
                                               shoal_after(place->patience));
}

double sweep_place_age(const sweep_place *place, const char *key)
{
    char whole[SHOAL_KEY_MOST + 1];
    shoal_blob blob = {0};
    int status = key_of(whole, place, key);
    if (status == SHOAL_OK)
        status = shoal_store_get(place->store, whole, &blob, shoal_after(place->patience));
    const double age = status == SHOAL_OK ? blob.age : status == SHOAL_ABSENT ? (double)INFINITY : -1;
    shoal_blob_release(&blob);
    return age;
}

int sweep_place_each(const sweep_place *place, const char *prefix, int (*each)(void *context, const char *end),
                     void *context)
{
    char whole[SHOAL_KEY_MOST + 1];
    shoal_listing page = {0};
    int status = key_of(whole, place, prefix);
    do {
        status = status < 0 ? status : shoal_store_list(place->store, whole, NULL, &page, shoal_after(place->patience));
        for (size_t i = 0; i < (size_t)page.count && status == SHOAL_OK; i++)
            status = each(context, page.entries[i].key + strlen(whole));
    } while (status == SHOAL_OK && page.more);
    shoal_listing_release(&page);
    return status;
}

int sweep_place_spec(sweep_spec **out, const sweep_place *place)
{
    char *text = NULL;
    *out = NULL;
    int status = sweep_place_get(&text, place, "spec");
    if (status == SHOAL_ABSENT)
        return shoal_fail(SHOAL_ABSENT, "there is no sweep '%s' in %s", place->name,
                          shoal_store_describe(place->store).name);
    if (status < 0)
        return status;
    json_t *json = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    base_free(&text);
    if (!json)
        return shoal_fail(SHOAL_BROKEN, "the spec of sweep '%s' is not JSON", place->name);
    return sweep_spec_of_json(out, place->name, json);
}

/* ---- the log ----------------------------------------------------------------------------------------------------- */

static void entry_key(char out[64], int64_t number)
{
    snprintf(out, 64, "log/%08lld", (long long)number);
}

/* Keys come in order: the last is the newest. */
static int keep_newest(void *key, const char *end)
{
    snprintf(key, SNAPSHOT_KEY, "snapshot/%.40s", end);
    return SHOAL_OK;
}

/* The newest snapshot, line by line. */
static int pull_snapshot(sweep_log *log, const sweep_place *place, bool check)
{
    char key[SNAPSHOT_KEY] = "", *text = NULL;
    int status = sweep_place_each(place, "snapshot/", keep_newest, key);
    if (status == SHOAL_OK && key[0])
        status = sweep_place_get(&text, place, key);
    for (char *line = text, *end; status == SHOAL_OK && line && *line; line = end) {
        end = line + strcspn(line, "\n");
        if (*end)
            *end++ = '\0';
        status = sweep_log_apply(log, line, check);
    }
    base_free(&text);
    return status;
}

int sweep_place_pull(sweep_log *log, const sweep_place *place, bool check)
{
    int status = log->entries == 0 ? pull_snapshot(log, place, check) : SHOAL_OK;
    while (status == SHOAL_OK) {
        char key[64], *text = NULL;
        entry_key(key, log->entries);
        status = sweep_place_get(&text, place, key);
        if (status == SHOAL_OK)
            status = sweep_log_apply(log, text, check);
        base_free(&text);
    }
    return status == SHOAL_ABSENT ? SHOAL_OK : status;
}

static int put_snapshot(const sweep_log *log, const sweep_place *place)
{
    char key[64];
    size_t size = 1, at = 0;
    char *text = NULL;
    for (int64_t i = 0; i < log->entries; i++)
        size += strlen(log->entry[i]) + 1;
    int status = base_alloc_unset(&text, size, 1, "a snapshot of the log");
    for (int64_t i = 0; i < log->entries && status == SHOAL_OK; i++)
        at += (size_t)sprintf(text + at, "%s\n", log->entry[i]);
    snprintf(key, sizeof key, "snapshot/%08lld", (long long)log->entries);
    if (status == SHOAL_OK)
        status = sweep_place_put_once(place, key, text);
    base_free(&text);
    return status == SHOAL_CONFLICT ? SHOAL_OK : status;
}

int sweep_place_push(const sweep_log *log, const sweep_place *place)
{
    char key[64];
    entry_key(key, log->entries - 1);
    int status = sweep_place_put_once(place, key, log->entry[log->entries - 1]);
    if (status == SHOAL_OK && log->entries % SWEEP_SNAPSHOT_EVERY == 0)
        status = put_snapshot(log, place);
    return status;
}

/* ---- results ----------------------------------------------------------------------------------------------------- */

void sweep_result_key(char out[64], const sweep_order *order)
{
    snprintf(out, 64, "trial/%lld/step/%lld", (long long)order->trial, (long long)order->until);
}

static json_t *others_json(const sweep_ended *ended)
{
    json_t *list = json_array();
    for (int i = 0; i < SWEEP_OTHERS_MOST; i++)
        json_array_append_new(list, base_json_real(ended->other[i]));
    return list;
}

int sweep_place_put_result(const sweep_place *place, const sweep_order *order, const sweep_ended *ended)
{
    char key[64];
    bool some = false;
    json_t *object = json_object(), *curve = json_array();
    base_json_put(&object, "step", json_integer(ended->result.step));
    if (ended->result.failed)
        base_json_put(&object, "failed", base_json_text(ended->note));
    else
        base_json_put(&object, "value", json_real(ended->result.value));
    base_json_put(&object, "seconds", json_real(ended->seconds));
    base_json_put(&object, "at", json_real(ended->at));
    base_json_put(&object, "cores", json_integer(ended->cores));
    for (int64_t i = 0; i < ended->reports; i++)
        json_array_append_new(curve, json_pack("[I,f]", (json_int_t)ended->curve[i].step, ended->curve[i].value));
    base_json_put(&object, "curve", curve);
    for (int i = 0; i < SWEEP_OTHERS_MOST; i++)
        some = some || isfinite(ended->other[i]);
    if (some)
        base_json_put(&object, "others", others_json(ended));
    char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;
    sweep_result_key(key, order);
    int status = text ? sweep_place_put_once(place, key, text) : shoal_fail(SHOAL_MEMORY, "out of memory for a result");
    json_decref(object);
    free(text);
    return status;
}

static int read_curve(sweep_ended *out, const json_t *curve)
{
    const size_t count = json_array_size(curve) < SWEEP_CURVE_MOST ? json_array_size(curve) : SWEEP_CURVE_MOST;
    int status = base_alloc(&out->curve, count, sizeof *out->curve, "a learning curve");
    for (size_t i = 0; i < count && status == SHOAL_OK; i++) {
        const json_t *pair = json_array_get(curve, i);
        out->curve[out->reports++] = (sweep_report){.step = json_integer_value(json_array_get(pair, 0)),
                                                    .value = json_number_value(json_array_get(pair, 1))};
    }
    return status;
}

int sweep_place_get_result(sweep_ended *out, const sweep_place *place, const sweep_order *order, int64_t number)
{
    char key[64], *text = NULL;
    *out = (sweep_ended){.result = {.order = number}};
    sweep_result_key(key, order);
    int status = sweep_place_get(&text, place, key);
    if (status < 0)
        return status;
    json_t *json = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    const json_t *step = json_object_get(json, "step"), *value = json_object_get(json, "value"),
                 *failed = json_object_get(json, "failed");
    if (!json_is_integer(step) || (!json_is_number(value) && !json_is_string(failed)))
        status = shoal_fail(SHOAL_BROKEN, "%s/%s is not a result", place->name, key);
    out->result.step = json_integer_value(step);
    out->result.failed = failed != NULL;
    out->result.value = json_number_value(value);
    const double seconds = json_number_value(json_object_get(json, "seconds"));
    out->seconds = seconds > 0 && seconds < 1e12 ? seconds : 0; /* whatever the store says */
    out->at = json_number_value(json_object_get(json, "at"));
    out->cores = json_integer_value(json_object_get(json, "cores"));
    const json_t *others = json_object_get(json, "others");
    for (int i = 0; i < SWEEP_OTHERS_MOST; i++) {
        const json_t *other = json_array_get(others, (size_t)i);
        out->other[i] = json_is_number(other) ? json_number_value(other) : (double)NAN;
    }
    if (json_is_string(failed))
        snprintf(out->note, sizeof out->note, "%s", json_string_value(failed));
    base_text_clean(out->note);
    if (status == SHOAL_OK)
        status = read_curve(out, json_object_get(json, "curve"));
    json_decref(json);
    base_free(&text);
    return status;
}
