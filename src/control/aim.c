/* What a running job is held to, and how that stands, as blobs.  See aim.h. */
#include "control/aim.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <shoal/error.h>

#include "base/json.h"
#include "base/memory.h"

static const uint32_t aim_kind = SHOAL_KIND('a', 'i', 'm', ' '), held_kind = SHOAL_KIND('h', 'e', 'l', 'd');
enum { JSON_MOST = 64 * 1024, KEY_BYTES = 192 };

static void key_of(char out[KEY_BYTES], const char *id, const char *name)
{
    snprintf(out, KEY_BYTES, "jobs/%s/%s", id, name);
}

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

/* One number of a structure, its name in JSON, and what it may be. */
typedef struct field {
    const char *name;
    size_t offset;
    bool whole;
    double least, most;
} field;

static const field aim_fields[] = {
    {"deadline", offsetof(control_aim, deadline), false, 0, 1e12},
    {"budget", offsetof(control_aim, budget), false, 0, 1e12},
    {"price", offsetof(control_aim, price), false, 0, 1e9},
    {0},
};
static const field held_fields[] = {
    {"a", offsetof(control_held, trend.a), false, -100, 100},
    {"b", offsetof(control_held, trend.b), false, -100, 100},
    {"aa", offsetof(control_held, trend.aa), false, 0, 1e6},
    {"ab", offsetof(control_held, trend.ab), false, -1e6, 1e6},
    {"bb", offsetof(control_held, trend.bb), false, 0, 1e6},
    {"noise", offsetof(control_held, trend.noise), false, 0, 100},
    {"seen", offsetof(control_held, trend.seen), false, 0, 1e9},
    {"rounds", offsetof(control_held, trend.rounds), true, 0, 1e15},
    {"low_rounds", offsetof(control_held, state.low), true, 0, 100},
    {"low_most", offsetof(control_held, state.most), true, 0, 1e6},
    {"changes", offsetof(control_held, state.changes), true, 0, 1e9},
    {"worker_seconds", offsetof(control_held, worker_seconds), false, 0, 1e15},
    {"spent", offsetof(control_held, spent), false, 0, 1e12},
    {"workers", offsetof(control_held, workers), true, 0, 1e6},
    {"least", offsetof(control_held, least), true, 0, 1e6},
    {"most", offsetof(control_held, most), true, 0, 1e6},
    {"at", offsetof(control_held, at), false, 0, 1e12},
    {"end", offsetof(control_held, end), false, 0, 1e15},
    {"low", offsetof(control_held, low), false, 0, 1e15},
    {"high", offsetof(control_held, high), false, 0, 1e15},
    {"cost", offsetof(control_held, cost), false, 0, 1e15},
    {"cost_high", offsetof(control_held, cost_high), false, 0, 1e15},
    {0},
};

static void write_fields(json_t **object, const field *fields, const void *from)
{
    for (const field *f = fields; f->name; f++) {
        const char *at = (const char *)from + f->offset;
        double value = f->whole ? (double)*(const int64_t *)at : *(const double *)at;
        value = fmin(fmax(value, f->least), f->most); /* infinitely late is very late */
        base_json_put(object, f->name, f->whole ? json_integer((json_int_t)value) : json_real(value));
    }
}

static bool read_fields(void *to, const field *fields, const json_t *object)
{
    for (const field *f = fields; f->name; f++) {
        char *at = (char *)to + f->offset;
        const json_t *value = json_object_get(object, f->name);
        double number = json_is_number(value) ? json_number_value(value) : NAN;
        if (!(number >= f->least && number <= f->most))
            return false;
        if (f->whole)
            *(int64_t *)at = (int64_t)number;
        else
            *(double *)at = number;
    }
    return true;
}

/* ---- blobs ------------------------------------------------------------------------------------------------------- */

static int put_json(shoal_store *store, const char *id, const char *name, uint32_t kind, json_t *object,
                    int64_t deadline)
{
    char key[KEY_BYTES];
    char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;
    key_of(key, id, name);
    json_decref(object);
    if (!text)
        return shoal_fail(SHOAL_MEMORY, "out of memory");
    int status = shoal_store_put_framed(store, key, kind, text, strlen(text), NULL, NULL, deadline);
    free(text);
    return status;
}

static int get_json(json_t **out, shoal_store *store, const char *id, const char *name, uint32_t kind, int64_t deadline)
{
    char key[KEY_BYTES];
    shoal_blob blob = {0};
    *out = NULL;
    key_of(key, id, name);
    int status = shoal_store_get_framed_within(store, key, kind, JSON_MOST, &blob, deadline);
    if (status < 0)
        return status;
    *out = json_loadb(blob.data, blob.size, 0, NULL);
    shoal_blob_release(&blob);
    return *out ? SHOAL_OK : shoal_fail(SHOAL_BROKEN, "%s is no JSON", key);
}

/* A covariance of which no root can be taken is none. */
static bool is_trend(const control_trend *trend)
{
    return trend->ab * trend->ab <= trend->aa * trend->bb * (1 + 1e-9) + 1e-12;
}

static int fail_broken(const char *id, const char *name)
{
    return shoal_fail(SHOAL_BROKEN, "jobs/%s/%s has a number that can't be one of a job", id, name);
}

int control_aim_get(control_aim *out, shoal_store *store, const char *id, int64_t deadline)
{
    json_t *object = NULL;
    *out = (control_aim){0};
    int status = get_json(&object, store, id, "aim", aim_kind, deadline);
    if (status == SHOAL_OK && !read_fields(out, aim_fields, object)) {
        *out = (control_aim){0};
        status = fail_broken(id, "aim");
    }
    if (status == SHOAL_OK)
        out->or_stop = json_is_true(json_object_get(object, "or_stop"));
    json_decref(object);
    return status;
}

int control_aim_put(shoal_store *store, const char *id, const control_aim *aim, int64_t deadline)
{
    json_t *object = json_object();
    write_fields(&object, aim_fields, aim);
    base_json_put(&object, "or_stop", json_boolean(aim->or_stop));
    return put_json(store, id, "aim", aim_kind, object, deadline);
}

int control_held_get(control_held *out, shoal_store *store, const char *id, int64_t deadline)
{
    json_t *object = NULL;
    *out = (control_held){0};
    int status = get_json(&object, store, id, "held", held_kind, deadline);
    const json_t *phase = json_object_get(object, "phase"), *verdict = json_object_get(object, "verdict");
    json_int_t number = json_is_integer(verdict) ? json_integer_value(verdict) : -1;
    if (status == SHOAL_OK && (!read_fields(out, held_fields, object) || !is_trend(&out->trend) ||
                               !json_is_string(phase) || number < 0 || number >= CONTROL_VERDICTS))
        status = fail_broken(id, "held");
    if (status < 0)
        *out = (control_held){0};
    if (status == SHOAL_OK) {
        snprintf(out->phase, sizeof out->phase, "%s", json_string_value(phase));
        out->verdict = (control_verdict)number;
        out->blind = json_is_true(json_object_get(object, "blind"));
    }
    json_decref(object);
    return status;
}

int control_held_put(shoal_store *store, const char *id, const control_held *held, int64_t deadline)
{
    json_t *object = json_object();
    write_fields(&object, held_fields, held);
    base_json_put(&object, "phase", base_json_text(held->phase));
    base_json_put(&object, "verdict", json_integer(held->verdict));
    base_json_put(&object, "blind", json_boolean(held->blind));
    return put_json(store, id, "held", held_kind, object, deadline);
}

/* ---- what follows from them -------------------------------------------------------------------------------------- */

bool control_aim_same(const control_aim *a, const control_aim *b)
{
    return a->deadline == b->deadline && a->budget == b->budget && a->price == b->price && a->or_stop == b->or_stop;
}

void control_held_price(control_held *held, double price)
{
    if (held->spent == 0)
        held->spent = held->worker_seconds / 3600 * price;
}

bool control_is_hopeless(const control_aim *aim, const control_held *held, double now)
{
    return (aim->deadline > 0 && fmax(now, held->end) > aim->deadline) || (aim->budget > 0 && held->cost > aim->budget);
}

/* ---- for people -------------------------------------------------------------------------------------------------- */

static void format_time(char *out, size_t size, double seconds)
{
    if (seconds < 100)
        snprintf(out, size, "%.1f s", seconds);
    else if (seconds < 100 * 60)
        snprintf(out, size, "%.1f min", seconds / 60);
    else
        snprintf(out, size, "%.1f h", seconds / 3600);
}

static void add(char out[CONTROL_LINE_BYTES], const char *format, ...) SHOAL_PRINTF(2, 3);
static void add(char out[CONTROL_LINE_BYTES], const char *format, ...)
{
    size_t length = strlen(out);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(out + length, CONTROL_LINE_BYTES - length, format, arguments);
    va_end(arguments);
}

void control_describe(char out[CONTROL_LINE_BYTES], const control_aim *aim, const control_held *held, double now)
{
    char expected[32], low[32], high[32], spare[32];
    out[0] = '\0';
    if (held->end > 0) {
        format_time(expected, sizeof expected, fmax(held->end - now, 0));
        format_time(low, sizeof low, fmax(held->low - now, 0));
        format_time(high, sizeof high, fmax(held->high - now, 0));
        add(out, "ends in %s (90%% of cases: %s to %s)", expected, low, high);
    } else {
        add(out, "its end can't be foretold yet");
    }
    if (aim->deadline > 0 && held->end > 0) {
        format_time(spare, sizeof spare, fabs(aim->deadline - held->end));
        add(out, ", %s %s its deadline", spare, held->end <= aim->deadline ? "before" : "after");
    } else if (aim->deadline > 0) {
        format_time(spare, sizeof spare, fabs(aim->deadline - now));
        add(out, "; its deadline %s %s", aim->deadline >= now ? "is in" : "passed", spare);
        add(out, "%s", aim->deadline >= now ? "" : " ago");
    }
    add(out, "; %lld of %lld to %lld workers", (long long)held->workers, (long long)held->least, (long long)held->most);
    if (aim->price > 0)
        add(out, "; $%.4g spent, $%.4g in all", held->spent, held->cost);
    if (aim->budget > 0)
        add(out, " of $%.4g", aim->budget);
}
