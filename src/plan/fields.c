/* Structures as JSON objects.  See fields.h. */
#include "fields.h"

#include <math.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

enum { DATE_BYTES = 32, THREADS_MOST = 1 << 20 };

/* ---- dates ------------------------------------------------------------------------------------------------------- */

static void format_date(char out[DATE_BYTES], int64_t date)
{
    time_t seconds = (time_t)date;
    struct tm parts;
    if (!gmtime_r(&seconds, &parts) || !strftime(out, DATE_BYTES, "%Y-%m-%dT%H:%M:%SZ", &parts))
        memcpy(out, "1970-01-01T00:00:00Z", 21);
}

static bool parse_date(int64_t *out, const char *text)
{
    struct tm parts = {0};
    const char *end = strptime(text, "%Y-%m-%dT%H:%M:%SZ", &parts);
    *out = end && !*end ? (int64_t)timegm(&parts) : -1;
    return *out >= 0;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static json_t *json_of_field(const plan_field *field, const void *from)
{
    const void *place = (const char *)from + field->offset;
    char date[DATE_BYTES];
    switch (field->kind) {
    case PLAN_REAL:
    case PLAN_LATER: return json_real(*(const double *)place);
    case PLAN_WHOLE: return json_integer(*(const int64_t *)place);
    case PLAN_THREADS: return json_integer(*(const int *)place);
    case PLAN_TRUTH: return json_boolean(*(const bool *)place);
    case PLAN_DATE:
    case PLAN_LATER_DATE: format_date(date, *(const int64_t *)place); return json_string(date);
    case PLAN_TEXT:
    case PLAN_LATER_TEXT: break;
    }
    return json_string(place);
}

void plan_fields_write(json_t **object, const plan_field *table, const void *from)
{
    for (; table->name && *object; table++)
        if (json_object_set_new(*object, table->name, json_of_field(table, from)) < 0) {
            json_decref(*object);
            *object = NULL;
        }
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static const char *read_text(char *out, size_t size, const json_t *value)
{
    const char *text = json_string_value(value); /* JSON_ALLOW_NUL is off: there is none inside */
    if (!text)
        return "is not a text";
    if (strlen(text) >= size)
        return "is too long";
    for (const char *at = text; *at; at++)
        if ((unsigned char)*at < 0x20 || *at == 0x7f)
            return "has a control character";
    memcpy(out, text, strlen(text) + 1);
    return NULL;
}

static bool is_later(plan_field_kind kind)
{
    return kind == PLAN_LATER || kind == PLAN_LATER_DATE || kind == PLAN_LATER_TEXT;
}

/* NULL, or what is wrong with it. */
static const char *read_field(void *place, const plan_field *field, const json_t *value)
{
    double number = json_is_number(value) ? json_number_value(value) : -1;
    if (!value)
        return is_later(field->kind) ? NULL : "is missing";
    switch (field->kind) {
    case PLAN_REAL:
    case PLAN_LATER:
        *(double *)place = number;
        return number >= 0 && isfinite(number) ? NULL : "is not a number of at least 0";
    case PLAN_WHOLE:
        *(int64_t *)place = json_integer_value(value);
        return json_is_integer(value) && number >= 0 ? NULL : "is not a whole number of at least 0";
    case PLAN_THREADS:
        *(int *)place = number <= THREADS_MOST ? (int)json_integer_value(value) : 0;
        return json_is_integer(value) && number >= 0 && number <= THREADS_MOST ? NULL : "is not a number of threads";
    case PLAN_DATE:
    case PLAN_LATER_DATE:
        return json_is_string(value) && parse_date(place, json_string_value(value))
                   ? NULL
                   : "is not a date such as 2026-01-31T12:00:00Z";
    case PLAN_TRUTH:
        *(bool *)place = json_is_true(value);
        return json_is_boolean(value) ? NULL : "is not true or false";
    case PLAN_TEXT:
    case PLAN_LATER_TEXT: break;
    }
    return read_text(place, field->size, value);
}

const plan_field *plan_fields_read(const char **why, const plan_field *table, const json_t *object, void *to)
{
    *why = NULL;
    for (; table->name && !*why; table++)
        if ((*why = read_field((char *)to + table->offset, table, json_object_get(object, table->name))))
            return table;
    return NULL;
}
