/* The values of one dimension of a search: numbers ([2, 4, 8], "2..16", "1,2,4..8"), or texts. */
#include "search_space.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <shoal/error.h>

#include "base/memory.h"
#include "base/option.h"

enum { VALUES_MOST = 10000 };
static const double COUNT_MOST = 1e6;

int plan_search_copy_value(char **out, const char *path, const char *name, const char *text)
{
    if (!*text)
        return shoal_fail(SHOAL_INVALID, "%s: \"%s\" has an empty text", path, name);
    for (const char *c = text; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            return shoal_fail(SHOAL_INVALID, "%s: \"%s\" has a text with a control character: %s", path, name, text);
    return base_copy_text(out, text);
}

/* A number as short as it can be told exactly. */
static int number_text(char **out, double number)
{
    char text[40];
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, number);
        if (strtod(text, NULL) == number)
            break;
    }
    if (number == floor(number) && fabs(number) < 1e15)
        snprintf(text, sizeof text, "%.0f", number);
    return base_copy_text(out, text);
}

static int add_place(plan_search_dimension *out, const char *path)
{
    if (out->values == VALUES_MOST)
        return shoal_fail(SHOAL_INVALID, "%s: \"%s\" has more than %d values", path, out->name, VALUES_MOST);
    int status = base_grow(&out->text, (size_t)out->values, (size_t)out->values + 1, sizeof *out->text, "values");
    if (status == SHOAL_OK && !out->is_text)
        status = base_grow(&out->number, (size_t)out->values, (size_t)out->values + 1, sizeof *out->number, "values");
    return status;
}

static int add_value_text(plan_search_dimension *out, const char *path, const char *text)
{
    for (int64_t i = 0; i < out->values; i++)
        if (strcmp(out->text[i], text) == 0)
            return shoal_fail(SHOAL_INVALID, "%s: \"%s\" has %s twice", path, out->name, text);
    int status = add_place(out, path);
    if (status == SHOAL_OK)
        status = plan_search_copy_value(&out->text[out->values], path, out->name, text);
    out->values += status == SHOAL_OK;
    return status;
}

static int add_number(plan_search_dimension *out, const char *path, double number)
{
    bool is_count = strcmp(out->name, "count") == 0;
    if (!isfinite(number))
        return shoal_fail(SHOAL_INVALID, "%s: \"%s\" has a number that is not finite", path, out->name);
    if (is_count && number != floor(number))
        return shoal_fail(SHOAL_INVALID, "%s: \"count\" has %g, which is not a whole number", path, number);
    if (is_count && !(number >= 1 && number <= COUNT_MOST))
        return shoal_fail(SHOAL_INVALID, "%s: \"count\" has %g; it must be 1 to %.0f", path, number, COUNT_MOST);
    for (int64_t i = 0; i < out->values; i++)
        if (out->number[i] == number)
            return shoal_fail(SHOAL_INVALID, "%s: \"%s\" has %s twice", path, out->name, out->text[i]);
    int status = add_place(out, path);
    if (status == SHOAL_OK)
        status = number_text(&out->text[out->values], number == 0 ? 0 : number);
    if (status == SHOAL_OK)
        out->number[out->values++] = number;
    return status;
}

/* ---- "1,2,4..8" -------------------------------------------------------------------------------------------------- */

/* One part between commas: a number, or two whole ones with ".." between.  False when it is neither. */
static bool read_value_part(double *low, double *high, bool *is_range, const char *from, size_t length)
{
    char part[64];
    if (length == 0 || length >= sizeof part)
        return false;
    memcpy(part, from, length);
    part[length] = '\0';
    char *dots = strstr(part, "..");
    *is_range = dots != NULL;
    if (!dots)
        return base_parse_real(low, part);
    *dots = '\0';
    return base_parse_real(low, part) && base_parse_real(high, dots + 2);
}

static bool is_list_of_numbers(const char *text)
{
    for (;; text++) {
        double low, high;
        bool is_range;
        size_t length = strcspn(text, ",");
        if (!read_value_part(&low, &high, &is_range, text, length))
            return false;
        text += length;
        if (!*text)
            return true;
    }
}

static int read_value_list(plan_search_dimension *out, const char *path, const char *text)
{
    int status = SHOAL_OK;
    for (;; text++) {
        double low = 0, high = 0;
        bool is_range = false;
        size_t length = strcspn(text, ",");
        read_value_part(&low, &high, &is_range, text, length);
        if (is_range && (low != floor(low) || high != floor(high) || !(low <= high) || !(high - low < VALUES_MOST)))
            return shoal_fail(
                SHOAL_INVALID,
                "%s: \"%s\" has the range %.*s, whose ends must be whole numbers that rise, with at most %d values",
                path, out->name, (int)length, text, VALUES_MOST);
        const int64_t last = is_range ? (int64_t)(high - low) : 0;
        for (int64_t i = 0; status == SHOAL_OK && i <= last; i++)
            status = add_number(out, path, low + (double)i);
        text += length;
        if (status < 0 || !*text)
            return status;
    }
}

/* ---- what JSON has ----------------------------------------------------------------------------------------------- */

static int read_array(plan_search_dimension *out, const char *path, json_t *from)
{
    int status = SHOAL_OK;
    size_t index;
    json_t *item;
    if (json_array_size(from) == 0)
        return shoal_fail(SHOAL_INVALID, "%s: \"%s\" is an empty list", path, out->name);
    out->is_text = !json_is_number(json_array_get(from, 0));
    json_array_foreach(from, index, item)
    {
        if (json_is_number(item) != !out->is_text ||
            (!json_is_number(item) && !json_is_string(item) && !json_is_boolean(item)))
            return shoal_fail(SHOAL_INVALID,
                              "%s: \"%s\" must be a list of numbers, or one of texts; its entry %zu is something else",
                              path, out->name, index + 1);
        if (!out->is_text)
            status = add_number(out, path, json_number_value(item));
        else
            status = add_value_text(out, path,
                                    json_is_string(item) ? json_string_value(item)
                                    : json_is_true(item) ? "true"
                                                         : "false");
        if (status < 0)
            break;
    }
    return status;
}

int plan_search_values_read(plan_search_dimension *out, const char *path, const char *name, json_t *from)
{
    int status;
    out->name = name;
    if (json_is_array(from))
        status = read_array(out, path, from);
    else if (json_is_number(from))
        status = add_number(out, path, json_number_value(from));
    else if (json_is_string(from) && is_list_of_numbers(json_string_value(from)))
        status = read_value_list(out, path, json_string_value(from));
    else if (json_is_string(from) && strcmp(name, "count") != 0) {
        out->is_text = true;
        status = add_value_text(out, path, json_string_value(from));
    } else
        status = shoal_fail(SHOAL_INVALID, "%s: \"%s\" must be a number, a list of them, or a range such as \"2..16\"",
                            path, name);
    if (status == SHOAL_OK && out->is_text && strcmp(name, "count") == 0)
        status = shoal_fail(SHOAL_INVALID,
                            "%s: \"count\" must be a number, a list of them, or a range such as \"2..16\"", path);
    return status;
}

void plan_search_values_release(plan_search_dimension *dimension)
{
    for (int64_t i = 0; i < dimension->values; i++)
        base_free(&dimension->text[i]);
    base_free(&dimension->text);
    base_free(&dimension->number);
    *dimension = (plan_search_dimension){0};
}
