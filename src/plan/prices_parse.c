/* Rows of text become a table of prices: one table of columns says what each is called, where it goes and what it may
 * hold. */
#include "prices_internal.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <shoal/error.h>

#include "base/memory.h"
#include "base/option.h"
#include "base/path.h"

/* ---- columns ----------------------------------------------------------------------------------------------------- */

enum { SHOWN = 60 };

/* What a number that is left empty stands for. */
enum blank { BLANK_REFUSED, BLANK_NAN, BLANK_ZERO, BLANK_ONE };

typedef struct column {
    const char *name;
    bool needed;   /* the table has to have it */
    size_t offset; /* in plan_machine */
    size_t room;   /* of a text; 0 for a number */
    enum blank blank;
    double most; /* that can be meant: more is a slip, such as a price in another unit */
    double unit; /* what 1 in the table is in plan_machine */
} column;

#define TEXT(field) offsetof(plan_machine, field), sizeof((plan_machine *)NULL)->field
#define NUMBER(field) offsetof(plan_machine, field), 0
static const column columns[] = {
    {"cloud", true, TEXT(cloud), BLANK_REFUSED, 0, 0},
    {"region", true, TEXT(region), BLANK_REFUSED, 0, 0},
    {"machine", true, TEXT(name), BLANK_REFUSED, 0, 0},
    {"vcpus", true, NUMBER(vcpus), BLANK_REFUSED, 1e5, 1},
    {"memory_gib", true, NUMBER(memory_gib), BLANK_REFUSED, 1e7, 1},
    {"usd_per_hour", true, NUMBER(dollars_per_hour), BLANK_NAN, 1e6, 1},
    {"usd_per_hour_spot", false, NUMBER(dollars_spot), BLANK_NAN, 1e6, 1},
    {"accelerator", false, TEXT(accelerator), BLANK_ZERO, 0, 0},
    {"accelerators", false, NUMBER(accelerators), BLANK_ZERO, 1e5, 1},
    {"network_mbps", false, NUMBER(network), BLANK_ZERO, 1e8, 1e6 / 8},
    {"speed", false, NUMBER(speed), BLANK_ONE, 1e3, 1},
};
enum { COLUMNS = sizeof columns / sizeof *columns };

typedef struct reader {
    data_table *table;
    int header_fields;
    int at[COLUMNS]; /* which field a column is; -1: the table lacks it */
    plan_prices *prices;
    size_t room; /* for machines */
} reader;

/* ---- the date ---------------------------------------------------------------------------------------------------- */

static bool is_date(const char *text)
{
    static const char form[] = "dddd-dd";
    for (int i = 0; form[i]; i++)
        if (form[i] == 'd' ? !isdigit((unsigned char)text[i]) : text[i] != form[i])
            return false;
    int month = (text[5] - '0') * 10 + text[6] - '0';
    return (strncmp(text, "19", 2) == 0 || strncmp(text, "20", 2) == 0) && month >= 1 && month <= 12 &&
           !isdigit((unsigned char)text[7]);
}

/* The first "2026-08" or "2026-08-01" in a text. */
static void find_date(char out[16], const char *text, const char *stop)
{
    for (const char *at = text; at < stop; at++) {
        if (!is_date(at) || (at > text && isdigit((unsigned char)at[-1])))
            continue;
        bool day = at[7] == '-' && isdigit((unsigned char)at[8]) && isdigit((unsigned char)at[9]) &&
                   !isdigit((unsigned char)at[10]);
        size_t length = day ? 10 : 7;
        memcpy(out, at, length);
        out[length] = '\0';
        return;
    }
}

/* That of a comment, or of the table's name. */
static void find_table_date(char out[16], const data_table *table)
{
    const char *slash = strrchr(table->name, '/'), *name = slash ? slash + 1 : table->name;
    for (const char *line = table->at, *stop; line < table->end && !*out; line = stop + 1) {
        stop = memchr(line, '\n', (size_t)(table->end - line));
        stop = stop ? stop : table->end;
        if (line[strspn(line, " \t")] == '#')
            find_date(out, line, stop);
    }
    if (!*out)
        find_date(out, name, name + strlen(name));
}

/* ---- the header -------------------------------------------------------------------------------------------------- */

/* Blanks inside quotes don't count either. */
static char *trimmed(char *text)
{
    text += strspn(text, " \t");
    for (size_t length = strlen(text); length > 0 && strchr(" \t", text[length - 1]); length--)
        text[length - 1] = '\0';
    return text;
}

static int complain_missing(const reader *r, const char *name)
{
    const char *near =
        r->table->fields > 1 ? base_nearest(name, (const char *const *)r->table->field, r->table->fields) : NULL;
    for (int i = 0; near && i < COLUMNS; i++)
        if (strcasecmp(near, columns[i].name) == 0)
            near = NULL; /* another column that is known is not this one misspelt */
    if (near)
        return shoal_fail(SHOAL_INVALID, "%s: line %lld: the column %s is missing; did you mean '%.*s'?",
                          r->table->name, (long long)r->table->line, name, SHOWN, near);
    return shoal_fail(SHOAL_INVALID,
                      "%s: line %lld: the column %s is missing from the header, a line of names separated by commas",
                      r->table->name, (long long)r->table->line, name);
}

static int read_price_header(reader *r)
{
    int status = SHOAL_OK;
    if (!data_table_next(&status, r->table))
        return status < 0
                   ? status
                   : shoal_fail(SHOAL_INVALID, "%s is empty: a price table begins with a header", r->table->name);
    r->header_fields = r->table->fields;
    for (int c = 0; c < COLUMNS; c++) {
        r->at[c] = -1;
        for (int f = 0; f < r->table->fields; f++) {
            if (strcasecmp(trimmed(r->table->field[f]), columns[c].name) != 0)
                continue;
            if (r->at[c] >= 0)
                return shoal_fail(SHOAL_INVALID, "%s: line %lld: the column %s appears twice", r->table->name,
                                  (long long)r->table->line, columns[c].name);
            r->at[c] = f;
        }
        if (r->at[c] < 0 && columns[c].needed)
            return complain_missing(r, columns[c].name);
    }
    return SHOAL_OK;
}

/* ---- machines ---------------------------------------------------------------------------------------------------- */

static int read_price_text(char *out, const reader *r, const column *c, const char *text)
{
    if (strlen(text) >= c->room)
        return shoal_fail(SHOAL_INVALID, "%s: line %lld: %s is longer than %zu bytes: '%.*s...'", r->table->name,
                          (long long)r->table->line, c->name, c->room - 1, SHOWN / 2, text);
    if (!*text && c->blank == BLANK_REFUSED)
        return shoal_fail(SHOAL_INVALID, "%s: line %lld: %s is empty", r->table->name, (long long)r->table->line,
                          c->name);
    /* What patterns are made of can't be in the names that they are to match. */
    const char *odd = c->blank == BLANK_REFUSED ? strpbrk(text, ":/,*?") : NULL;
    if (odd)
        return shoal_fail(SHOAL_INVALID, "%s: line %lld: %s '%s' has a '%c', which has a meaning in patterns",
                          r->table->name, (long long)r->table->line, c->name, text, *odd);
    strcpy(out, text);
    return SHOAL_OK;
}

static int read_price_number(double *out, const reader *r, const column *c, const char *text)
{
    if (!*text && c->blank != BLANK_REFUSED) {
        *out = c->blank == BLANK_NAN ? NAN : c->blank == BLANK_ONE ? 1 : 0;
        return SHOAL_OK;
    }
    double value = 0;
    if (!base_parse_real(&value, text))
        return shoal_fail(SHOAL_INVALID, "%s: line %lld: %s is '%.*s', which is not a number", r->table->name,
                          (long long)r->table->line, c->name, SHOWN, text);
    if (!(value > 0) && !(value == 0 && c->blank == BLANK_ZERO)) /* no network and no accelerator can be told by 0 */
        return shoal_fail(SHOAL_INVALID, "%s: line %lld: %s is %.*s, and must be greater than 0", r->table->name,
                          (long long)r->table->line, c->name, SHOWN, text);
    if (value > c->most)
        return shoal_fail(SHOAL_INVALID, "%s: line %lld: %s is %.*s, which is too much: the most is %g", r->table->name,
                          (long long)r->table->line, c->name, SHOWN, text, c->most);
    *out = value * c->unit;
    return SHOAL_OK;
}

static int read_machine(plan_machine *out, const reader *r)
{
    if (r->table->fields != r->header_fields)
        return shoal_fail(SHOAL_INVALID, "%s: line %lld has %d fields, and the header %d", r->table->name,
                          (long long)r->table->line, r->table->fields, r->header_fields);
    int status = SHOAL_OK;
    for (int c = 0; c < COLUMNS && status == SHOAL_OK; c++) {
        const char *text = r->at[c] < 0 ? "" : trimmed(r->table->field[r->at[c]]);
        void *place = (char *)out + columns[c].offset;
        status = columns[c].room ? read_price_text(place, r, &columns[c], text)
                                 : read_price_number(place, r, &columns[c], text);
    }
    if (status < 0)
        return status;
    if (isnan(out->dollars_per_hour) && isnan(out->dollars_spot))
        return shoal_fail(SHOAL_INVALID, "%s: line %lld: %s has no price, neither usd_per_hour nor usd_per_hour_spot",
                          r->table->name, (long long)r->table->line, out->name);
    if (*out->accelerator && out->accelerators == 0)
        out->accelerators = 1; /* a table that names it and does not count */
    snprintf(out->id, sizeof out->id, "%s:%s/%s", out->cloud, out->region, out->name);
    out->line = r->table->line;
    return SHOAL_OK;
}

static int read_machines(reader *r)
{
    int status = SHOAL_OK;
    plan_prices *prices = r->prices;
    while (data_table_next(&status, r->table)) {
        if ((size_t)prices->machines == r->room) {
            size_t wider = r->room ? r->room * 2 : 64;
            status = base_grow(&prices->machine, r->room, wider, sizeof *prices->machine, "a table of prices");
            if (status < 0)
                return status;
            r->room = wider;
        }
        status = read_machine(&prices->machine[prices->machines], r);
        if (status < 0)
            return status;
        prices->machines++;
    }
    if (status == SHOAL_OK && prices->machines == 0)
        status = shoal_fail(SHOAL_INVALID, "%s has a header but no machines", r->table->name);
    return status;
}

/* ---- rows that are there twice ----------------------------------------------------------------------------------- */

/* Letters count the same whether small or not, as in patterns. */
static int compare_names(const plan_machine *a, const plan_machine *b)
{
    int order = strcasecmp(a->cloud, b->cloud);
    order = order ? order : strcasecmp(a->region, b->region);
    return order ? order : strcasecmp(a->name, b->name);
}

static int compare_places(const void *a, const void *b)
{
    const plan_machine *first = *(const plan_machine *const *)a, *second = *(const plan_machine *const *)b;
    int order = compare_names(first, second);
    return order ? order : (first->line > second->line) - (first->line < second->line);
}

static int check_once(const plan_prices *prices)
{
    const plan_machine **sorted = NULL, *again = NULL, *before = NULL;
    int status = base_alloc(&sorted, (size_t)prices->machines, sizeof *sorted, "a table of prices");
    if (status < 0)
        return status;
    for (int64_t i = 0; i < prices->machines; i++)
        sorted[i] = &prices->machine[i];
    qsort(sorted, (size_t)prices->machines, sizeof *sorted, compare_places);
    for (int64_t i = 1; i < prices->machines; i++)
        if (compare_names(sorted[i - 1], sorted[i]) == 0 && (!again || sorted[i]->line < again->line)) {
            again = sorted[i];
            before = sorted[i - 1];
        }
    if (again)
        status = shoal_fail(SHOAL_INVALID, "%s: line %lld: %s:%s/%s is in line %lld already", prices->name,
                            (long long)again->line, again->cloud, again->region, again->name, (long long)before->line);
    base_free(&sorted);
    return status;
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

int plan_prices_from(plan_prices **out, data_table *table)
{
    reader r = {.table = table};
    *out = NULL;
    int status = base_alloc(&r.prices, 1, sizeof *r.prices, "a table of prices");
    if (status == SHOAL_OK)
        status = base_copy_text(&r.prices->name, table->name);
    if (status == SHOAL_OK) {
        find_table_date(r.prices->date, table);
        status = read_price_header(&r);
    }
    if (status == SHOAL_OK)
        status = read_machines(&r);
    if (status == SHOAL_OK)
        status = check_once(r.prices);
    if (status < 0)
        plan_prices_free(&r.prices);
    *out = r.prices;
    return status;
}
