/* Small helpers around jansson.  See json.h. */
#include "json.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/memory.h"
#include "base/option.h"
#include "base/text.h"

json_t *base_json_real(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

json_t *base_json_text(const char *text)
{
    json_t *string = json_string(text);
    char *ascii = NULL;
    if (string || base_copy_text(&ascii, text) < 0)
        return string;
    for (char *c = ascii; *c; c++)
        if ((unsigned char)*c >= 0x80)
            *c = '?';
    string = json_string(ascii);
    base_free(&ascii);
    return string;
}

/* A name that came from a store may be no UTF-8, which JSON can't hold. */
void base_json_put(json_t **object, const char *name, json_t *value)
{
    char *clean = NULL;
    bool fine = base_text_is_clean(name) || base_copy_text(&clean, name) == SHOAL_OK;
    if (clean)
        base_text_clean(clean);
    if (!fine)
        json_decref(value);
    if (!fine || json_object_set_new(*object, clean ? clean : name, value) < 0) {
        json_decref(*object);
        *object = NULL;
    }
    base_free(&clean);
}

json_t *base_json_texts(const char *const *texts, int64_t count)
{
    json_t *list = json_array();
    for (int64_t i = 0; i < count; i++)
        if (json_array_append_new(list, base_json_text(texts[i])) < 0) {
            json_decref(list);
            return NULL;
        }
    return list;
}

static bool is_whole(const shoal_option *option)
{
    return option->kind == SHOAL_OPTION_COUNT || option->kind == SHOAL_OPTION_BYTES ||
           option->kind == SHOAL_OPTION_COUNTS;
}

json_t *base_json_options(const shoal_option *table, const void *settings)
{
    json_t *object = json_object();
    for (const shoal_option *option = table; option && option->name; option++) {
        const char *at = (const char *)settings + option->offset;
        if (option->kind == SHOAL_OPTION_TEXT && *(const char *const *)at)
            base_json_put(&object, option->name, base_json_text(*(const char *const *)at));
        else if (option->kind == SHOAL_OPTION_COUNTS && ((const base_option_counts *)at)->several)
            base_json_put(&object, option->name, base_json_text(((const base_option_counts *)at)->several));
        else if (is_whole(option))
            base_json_put(&object, option->name, json_integer(*(const int64_t *)at));
        else if (option->kind == SHOAL_OPTION_REAL)
            base_json_put(&object, option->name, base_json_real(*(const double *)at));
        else if (option->kind == SHOAL_OPTION_FLAG)
            base_json_put(&object, option->name, json_boolean(*(const bool *)at));
        else if (option->kind == SHOAL_OPTION_CHOICE)
            base_json_put(&object, option->name, json_string(option->choices[*(const int *)at]));
    }
    return object;
}

/* A count of 0 is what an option has that nobody gave, whatever it accepts. */
static bool is_left_out(const shoal_option *option, const json_t *value)
{
    return json_is_null(value) || (json_is_number(value) && json_number_value(value) == 0 && option->least > 0);
}

static int take_option(void *settings, const shoal_option *table, const shoal_option *option, const json_t *value)
{
    char text[64] = "";
    const char *given = json_string_value(value);
    bool text_kind =
        option->kind == SHOAL_OPTION_TEXT || option->kind == SHOAL_OPTION_CHOICE || option->kind == SHOAL_OPTION_COUNTS;
    if (option->kind == SHOAL_OPTION_FLAG && json_is_boolean(value)) {
        *(bool *)((char *)settings + option->offset) = json_is_true(value);
        return SHOAL_OK;
    }
    if (is_whole(option) && json_is_integer(value))
        snprintf(text, sizeof text, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    else if (option->kind == SHOAL_OPTION_REAL && json_is_number(value))
        snprintf(text, sizeof text, "%.17g", json_number_value(value));
    if (text_kind && given)
        return shoal_options_set(settings, table, option->name, given);
    return *text ? shoal_options_set(settings, table, option->name, text)
                 : shoal_fail(SHOAL_BROKEN, "--%s has a value of the wrong kind", option->name);
}

int base_json_take_options(void *settings, const shoal_option *table, const json_t *object)
{
    char why[256] = "";
    for (const shoal_option *option = table; option && option->name; option++) {
        const json_t *value = json_object_get(object, option->name);
        if (value && !is_left_out(option, value) && take_option(settings, table, option, value) < 0 && !*why)
            snprintf(why, sizeof why, "%s", shoal_error());
    }
    return *why ? shoal_fail(SHOAL_BROKEN, "%s", why) : SHOAL_OK;
}
