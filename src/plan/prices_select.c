/* Machines by patterns, and, where a pattern matches nothing, what may have been meant.  Letters count the same
 * whether small or not: Azure's names have both, and nobody remembers which. */
#include "prices.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <shoal/error.h>

#include "base/memory.h"
#include "base/option.h"

/* ---- patterns ---------------------------------------------------------------------------------------------------- */

/* CLOUD:REGION/MACHINE in its parts; `text` is all of it, as it was given. */
typedef struct pattern {
    char *text, *parts;
    const char *cloud, *region, *machine;
} pattern;

static char small(char c)
{
    return (char)tolower((unsigned char)c);
}

static bool matches(const char *glob, const char *name)
{
    const char *star = NULL, *resume = NULL; /* the last *, and what it has not yet swallowed */
    while (*name) {
        if (*glob == '*') {
            star = glob++;
            resume = name;
        } else if (*glob && (*glob == '?' || small(*glob) == small(*name))) {
            glob++;
            name++;
        } else if (star) {
            glob = star + 1;
            name = ++resume;
        } else {
            return false;
        }
    }
    return glob[strspn(glob, "*")] == '\0';
}

static void pattern_release(pattern *p)
{
    base_free(&p->text);
    base_free(&p->parts);
}

static int pattern_init(pattern *out, const char *text, size_t length)
{
    while (length > 0 && isspace((unsigned char)*text)) {
        text++;
        length--;
    }
    while (length > 0 && isspace((unsigned char)text[length - 1]))
        length--;
    *out = (pattern){.cloud = "*", .region = "*"};
    if (length == 0)
        return shoal_fail(SHOAL_USAGE,
                          "--machines: a pattern is empty: write CLOUD:REGION/MACHINE, where * matches all");
    int status = base_copy_text_n(&out->text, text, length);
    if (status == SHOAL_OK)
        status = base_copy_text_n(&out->parts, text, length);
    if (status < 0)
        return status;
    char *at = out->parts, *end = at + strcspn(at, ":/");
    if (*end == ':') {
        *end = '\0';
        out->cloud = at;
        at = end + 1;
        end = at + strcspn(at, "/");
    }
    if (*end == '/') {
        *end = '\0';
        out->region = at;
        at = end + 1;
    }
    out->machine = at;
    if (!*out->cloud || !*out->region || !*out->machine)
        return shoal_fail(
            SHOAL_USAGE,
            "--machines %s has an empty part: write CLOUD:REGION/MACHINE, where * matches all, or FILE.csv", out->text);
    return SHOAL_OK;
}

static bool has_price(const plan_machine *machine, bool spot)
{
    return !isnan(spot ? machine->dollars_spot : machine->dollars_per_hour);
}

static bool in_cloud(const plan_machine *machine, const pattern *p)
{
    return matches(p->cloud, machine->cloud);
}

static bool in_region(const plan_machine *machine, const pattern *p)
{
    return in_cloud(machine, p) && matches(p->region, machine->region);
}

/* ---- lists for messages ------------------------------------------------------------------------------------------ */

enum { LISTED_MOST = 12, NEAREST_MOST = 3 };

typedef struct list {
    char text[1024];
    int count;
    bool more;
} list;

/* Adds a word that is not there yet; what comes after the first few becomes "...". */
static void list_add(list *out, const char *word, int most)
{
    char with_comma[160];
    size_t used = strlen(out->text), length = strlen(word);
    for (const char *at = out->text; *at;) {
        size_t step = strcspn(at, ",");
        if (step == length && strncasecmp(at, word, length) == 0)
            return;
        at += step + (at[step] == ',' ? 2 : 0);
    }
    snprintf(with_comma, sizeof with_comma, "%s%s", used ? ", " : "", word);
    if (out->count == most || used + strlen(with_comma) + sizeof ", ..." > sizeof out->text) {
        if (!out->more)
            memcpy(out->text + used, ", ...", sizeof ", ...");
        out->more = true;
        return;
    }
    memcpy(out->text + used, with_comma, strlen(with_comma) + 1);
    out->count++;
}

/* ---- what may have been meant ------------------------------------------------------------------------------------ */

enum { NAME_MOST = sizeof((plan_machine *)NULL)->name };

/* Letters to insert, leave out or replace until the pattern matches the name. */
static int distance_to(const char *glob, const char *name)
{
    int row[NAME_MOST + 1];
    int length = (int)strlen(name);
    for (int j = 0; j <= length; j++)
        row[j] = j;
    for (; *glob; glob++) {
        int corner = row[0];
        row[0] += *glob != '*';
        for (int j = 1; j <= length; j++) {
            int above = row[j], best = above + (*glob != '*');
            int across = corner + (*glob != '?' && small(*glob) != small(name[j - 1]));
            best = across < best ? across : best;
            best = row[j - 1] + (*glob != '*') < best ? row[j - 1] + (*glob != '*') : best;
            row[j] = best;
            corner = above;
        }
    }
    return row[length];
}

/* Also near is a name that has the pattern in it: D4s_v5 in Standard_D4s_v5. */
static int pattern_distance(const char *glob, const char *inside, const char *name)
{
    int whole = distance_to(glob, name), part = distance_to(inside, name) + 1;
    return whole < part ? whole : part;
}

static size_t count_letters(const char *glob)
{
    size_t letters = 0;
    for (; *glob; glob++)
        letters += *glob != '*' && *glob != '?';
    return letters;
}

static size_t same_start(const char *a, const char *b)
{
    size_t length = 0;
    while (a[length] && small(a[length]) == small(b[length]))
        length++;
    return length;
}

/* Whether a is nearer than b: by letters, then by how long they begin alike. */
static bool is_nearer(const char *glob, const char *inside, const char *a, const char *b)
{
    int first = pattern_distance(glob, inside, a), second = pattern_distance(glob, inside, b);
    return first < second || (first == second && same_start(glob, a) > same_start(glob, b));
}

/* A pattern of a family is answered with families: c9i.* with c7i.*. */
static void suggestion(char out[NAME_MOST + 2], const char *glob, const char *name)
{
    size_t length = strlen(glob), dot = strcspn(name, ".");
    bool family = length > 2 && strcmp(glob + length - 2, ".*") == 0 && name[dot];
    snprintf(out, NAME_MOST + 2, "%.*s%s", family ? (int)dot : NAME_MOST, name, family ? ".*" : "");
}

static int list_nearest(list *out, const plan_prices *prices, const pattern *p)
{
    char *inside = NULL, word[NAME_MOST + 2];
    const int most = base_typos_most(count_letters(p->machine));
    int status = base_format(&inside, "*%s*", p->machine);
    for (int found = 0; status == SHOAL_OK && found < NEAREST_MOST; found++) {
        const plan_machine *best = NULL;
        for (int64_t i = 0; i < prices->machines; i++) {
            const plan_machine *machine = &prices->machine[i];
            if (!in_region(machine, p) || pattern_distance(p->machine, inside, machine->name) > most ||
                (best && !is_nearer(p->machine, inside, machine->name, best->name)))
                continue;
            suggestion(word, p->machine, machine->name);
            list trial = *out;
            list_add(&trial, word, NEAREST_MOST);
            if (trial.count > out->count)
                best = machine;
        }
        if (!best)
            break;
        suggestion(word, p->machine, best->name);
        list_add(out, word, NEAREST_MOST);
    }
    base_free(&inside);
    return status;
}

/* ---- complaints -------------------------------------------------------------------------------------------------- */

static int complain_place(const plan_prices *prices, const pattern *p, bool cloud_is_there)
{
    list there = {0};
    for (int64_t i = 0; i < prices->machines; i++)
        if (!cloud_is_there || in_cloud(&prices->machine[i], p))
            list_add(&there, cloud_is_there ? prices->machine[i].region : prices->machine[i].cloud, LISTED_MOST);
    return shoal_fail(SHOAL_USAGE, "--machines %s: %s has no %s '%s'; there %s %s", p->text, prices->name,
                      cloud_is_there ? "region" : "cloud", cloud_is_there ? p->region : p->cloud,
                      there.count > 1 ? "are" : "is", there.text);
}

static int complain_elsewhere(const plan_prices *prices, const pattern *p)
{
    list there = {0};
    char place[80];
    for (int64_t i = 0; i < prices->machines; i++)
        if (matches(p->machine, prices->machine[i].name)) {
            snprintf(place, sizeof place, "%s:%s", prices->machine[i].cloud, prices->machine[i].region);
            list_add(&there, place, LISTED_MOST);
        }
    return there.count == 0 ? SHOAL_OK
                            : shoal_fail(SHOAL_USAGE, "--machines %s: %s has no such machine there, only in %s",
                                         p->text, prices->name, there.text);
}

static int complain_machine(const plan_prices *prices, const pattern *p)
{
    list near = {0};
    int status = complain_elsewhere(prices, p);
    for (int64_t i = 0; i < prices->machines && status == SHOAL_OK; i++) {
        const plan_machine *machine = &prices->machine[i];
        if (strcasecmp(p->machine, machine->region) == 0)
            return shoal_fail(SHOAL_USAGE, "--machines %s: %s is a region; use %s/* for all its machines", p->text,
                              p->machine, p->text);
        if (strcasecmp(p->machine, machine->cloud) == 0)
            return shoal_fail(SHOAL_USAGE, "--machines %s: %s is a cloud; use %s:* for all its machines", p->text,
                              p->machine, p->machine);
    }
    if (status == SHOAL_OK)
        status = list_nearest(&near, prices, p);
    if (status < 0)
        return status;
    if (near.count)
        return shoal_fail(SHOAL_USAGE, "--machines %s: %s has no such machine; the nearest %s %s", p->text,
                          prices->name, near.count > 1 ? "are" : "is", near.text);
    for (int64_t i = 0; i < prices->machines; i++)
        if (in_region(&prices->machine[i], p))
            list_add(&near, prices->machine[i].name, NEAREST_MOST);
    return shoal_fail(SHOAL_USAGE, "--machines %s: %s has no machine of such a name; it has %s", p->text, prices->name,
                      near.text);
}

/* The pattern gave nothing: says why. */
static int complain(const plan_prices *prices, const pattern *p, bool spot)
{
    bool cloud = false, region = false, machine = false;
    for (int64_t i = 0; i < prices->machines; i++) {
        cloud = cloud || in_cloud(&prices->machine[i], p);
        region = region || in_region(&prices->machine[i], p);
        machine = machine || (in_region(&prices->machine[i], p) && matches(p->machine, prices->machine[i].name));
    }
    if (machine)
        return shoal_fail(SHOAL_USAGE, "--machines %s: what matches in %s has no %s price", p->text, prices->name,
                          spot ? "spot" : "ordinary");
    return region ? complain_machine(prices, p) : complain_place(prices, p, cloud);
}

/* ---- selections -------------------------------------------------------------------------------------------------- */

static int mark_matching(bool *chosen, const plan_prices *prices, const char *text, size_t length, bool spot)
{
    pattern p;
    bool any = false;
    int status = pattern_init(&p, text, length);
    for (int64_t i = 0; status == SHOAL_OK && i < prices->machines; i++) {
        const plan_machine *machine = &prices->machine[i];
        if (in_region(machine, &p) && matches(p.machine, machine->name) && has_price(machine, spot))
            any = chosen[i] = true;
    }
    if (status == SHOAL_OK && !any)
        status = complain(prices, &p, spot);
    pattern_release(&p);
    return status;
}

static int collect(plan_selection *out, const plan_prices *prices, const bool *chosen)
{
    int64_t count = 0;
    for (int64_t i = 0; i < prices->machines; i++)
        count += chosen[i];
    int status = base_alloc(&out->machine, (size_t)count, sizeof *out->machine, "chosen machines");
    for (int64_t i = 0; status == SHOAL_OK && i < prices->machines; i++)
        if (chosen[i])
            out->machine[out->machines++] = &prices->machine[i];
    return status;
}

int plan_prices_select(plan_selection *out, const plan_prices *prices, const char *text, bool spot)
{
    bool *chosen = NULL;
    *out = (plan_selection){0};
    int status = base_alloc(&chosen, (size_t)prices->machines, sizeof *chosen, "chosen machines");
    for (const char *at = text; status == SHOAL_OK;) {
        size_t length = strcspn(at, ",");
        status = mark_matching(chosen, prices, at, length, spot);
        if (at[length] == '\0')
            break;
        at += length + 1;
    }
    if (status == SHOAL_OK)
        status = collect(out, prices, chosen);
    base_free(&chosen);
    return status;
}

void plan_selection_free(plan_selection *selection)
{
    base_free(&selection->machine);
    selection->machines = 0;
}
