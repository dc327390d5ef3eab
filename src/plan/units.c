/* See units.h.  Numbers have a point, whatever the locale. */
#include "units.h"

#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <shoal/error.h>

#include "base/option.h"
#include "base/text.h"

static const double MINUTE = 60, HOUR = 3600, DAY = 86400;

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* Reads one number of plain digits and moves past it and the spaces that follow. */
static bool read_leading_number(double *out, const char **text)
{
    char number[64];
    size_t length = strspn(*text, "0123456789.");
    if (length == 0 || length >= sizeof number)
        return false;
    memcpy(number, *text, length);
    number[length] = '\0';
    *text += length;
    *text += strspn(*text, " ");
    return base_parse_real(out, number);
}

/* The seconds of a unit, which the letters before the next number spell; 0 when there is no such unit. */
static double read_unit(const char **text)
{
    static const struct {
        const char *name;
        double seconds;
    } units[] = {{"s", 1},       {"sec", 1},      {"m", 60},    {"min", 60},    {"h", 3600},
                 {"hour", 3600}, {"hours", 3600}, {"d", 86400}, {"day", 86400}, {"days", 86400}};
    size_t length = 0;
    while (isalpha((unsigned char)(*text)[length]))
        length++;
    const char *name = *text;
    *text += length;
    *text += strspn(*text, " ");
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strlen(units[i].name) == length && strncmp(units[i].name, name, length) == 0)
            return units[i].seconds;
    return 0;
}

static bool read_duration(double *out, const char *text)
{
    double total = 0, last = INFINITY;
    if (base_parse_real(out, text))
        return true;
    do {
        double number = 0;
        if (!read_leading_number(&number, &text))
            return false;
        double unit = read_unit(&text);
        if (unit == 0 || unit >= last) /* "30m1h" is more likely a slip than meant */
            return false;
        total += number * unit;
        last = unit;
    } while (*text);
    *out = total;
    return true;
}

static int parse_duration(double *seconds, const char *called, const char *text, bool may_be_nothing)
{
    double value = 0;
    if (!read_duration(&value, text))
        return shoal_fail(SHOAL_USAGE, "%s: '%s' is not a duration such as 30s, 90m, 2h, 1d or 1h30m", called, text);
    if (!(value > 0) && !(may_be_nothing && value == 0))
        return shoal_fail(SHOAL_USAGE, "%s: '%s' is %s", called, text,
                          may_be_nothing ? "less than 0" : "not more than 0");
    if (!(value <= 36525 * DAY))
        return shoal_fail(SHOAL_USAGE, "%s: '%s' is more than 100 years", called, text);
    *seconds = value;
    return SHOAL_OK;
}

int plan_parse_duration(double *seconds, const char *called, const char *text)
{
    return parse_duration(seconds, called, text, false);
}

int plan_parse_pause(double *seconds, const char *called, const char *text)
{
    return parse_duration(seconds, called, text, true);
}

int plan_parse_money(double *dollars, const char *called, const char *text)
{
    char number[64];
    const char *from = text + strspn(text, " ");
    bool sign = *from == '$';
    from += sign;
    size_t length = strlen(from);
    while (length > 0 && from[length - 1] == ' ')
        length--;
    bool unit = length >= 3 && strncasecmp(from + length - 3, "usd", 3) == 0;
    length -= unit ? 3 : 0;
    while (unit && length > 0 && from[length - 1] == ' ')
        length--;
    double value = 0;
    if (length == 0 || length >= sizeof number)
        return shoal_fail(SHOAL_USAGE, "%s: '%s' is not an amount of money such as 5usd or $5", called, text);
    memcpy(number, from, length);
    number[length] = '\0';
    if (!base_parse_real(&value, number) || !isfinite(value))
        return shoal_fail(SHOAL_USAGE, "%s: '%s' is not an amount in US dollars such as 5usd or $5", called, text);
    if (!(value > 0))
        return shoal_fail(SHOAL_USAGE, "%s: '%s' is not more than 0", called, text);
    *dollars = value;
    return SHOAL_OK;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

/* One decimal while there is only one digit before the point. */
static void format_in(char out[PLAN_UNITS_BYTES], double value, double one_digit_below, const char *unit)
{
    snprintf(out, PLAN_UNITS_BYTES, value < one_digit_below ? "%.1f %s" : "%.0f %s", value, unit);
}

void plan_format_duration(char out[PLAN_UNITS_BYTES], double seconds)
{
    if (isnan(seconds))
        snprintf(out, PLAN_UNITS_BYTES, "-");
    else if (isinf(seconds))
        snprintf(out, PLAN_UNITS_BYTES, "never");
    else if (seconds == 0)
        snprintf(out, PLAN_UNITS_BYTES, "0 s");
    else if (seconds < 0.9995)
        format_in(out, 1e3 * seconds, 9.95, "ms");
    else if (seconds < 99.95)
        format_in(out, seconds, 99.95, "s");
    else if (seconds < 59.5 * MINUTE)
        format_in(out, seconds / MINUTE, 9.95, "min");
    else if (seconds < 47.95 * HOUR)
        format_in(out, seconds / HOUR, 99, "h");
    else if (seconds < 1e6 * DAY)
        format_in(out, seconds / DAY, 99.95, "days");
    else
        snprintf(out, PLAN_UNITS_BYTES, "%.1e days", seconds / DAY);
}

void plan_format_error(char out[PLAN_UNITS_BYTES], double error)
{
    if (isnan(error))
        snprintf(out, PLAN_UNITS_BYTES, "-");
    else if (error < 9.995)
        snprintf(out, PLAN_UNITS_BYTES, "%.*f%%", error < 0.0995 ? 1 : 0, 100 * error);
    else
        snprintf(out, PLAN_UNITS_BYTES, error < 1e6 ? "a factor of %.0f" : "a factor of %.0e", 1 + error);
}

void plan_format_money(char out[PLAN_UNITS_BYTES], double dollars)
{
    char whole[PLAN_UNITS_BYTES - 4];
    const char *sign = dollars < 0 ? "-" : "";
    double size = fabs(dollars);
    if (isnan(dollars))
        snprintf(out, PLAN_UNITS_BYTES, "-");
    else if (size == 0)
        snprintf(out, PLAN_UNITS_BYTES, "$0");
    else if (size < 9.995e-5 || size >= 1e15)
        snprintf(out, PLAN_UNITS_BYTES, "%s$%.2e", sign, size);
    else if (size >= 999.995) {
        base_format_count(whole, sizeof whole, (int64_t)llround(size));
        snprintf(out, PLAN_UNITS_BYTES, "%s$%s", sign, whole);
    } else {
        int digits = size >= 0.9995 ? 2 : 2 - (int)floor(log10(size * (1 + 5e-4)));
        snprintf(out, PLAN_UNITS_BYTES, "%s$%.*f", sign, digits, size);
    }
}
