/* Reading options by their tables: text to values with exact ranges, and argument lists over several tables.
 * See include/shoal/option.h and option.h.  Nothing here allocates: values are numbers or point into the text. */
#include "option.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "counts.h"

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

static locale_t plain_locale;

static void make_plain_locale(void)
{
    plain_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0); /* cannot fail: the C locale is built in */
}

locale_t base_plain_locale(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_plain_locale);
    return plain_locale;
}

/* A decimal number at the start of text.  No hexadecimal, infinity, NaN or leading space, which strtod would take. */
static bool read_decimal(double *out, const char *text, const char **end)
{
    size_t length = strspn(text, "+-.0123456789eE");
    if (length == 0 || strpbrk(text, "0123456789") == NULL || text[0] == 'e' || text[0] == 'E')
        return false;
    if ((text[0] == '0' || ((text[0] == '-' || text[0] == '+') && text[1] == '0')) && strpbrk(text, "xX"))
        return false;
    char *stop = NULL;
    *out = strtod_l(text, &stop, base_plain_locale());
    *end = stop;
    return stop != text && isfinite(*out);
}

bool base_parse_real(double *out, const char *text)
{
    const char *end = NULL;
    return read_decimal(out, text, &end) && *end == '\0';
}

bool base_parse_range(double *low, double *high, const char *text)
{
    const char *end = NULL;
    return read_decimal(low, text, &end) && *end == ':' && base_parse_real(high, end + 1) && *low < *high &&
           isfinite(*high - *low);
}

static bool is_whole_int64(double value)
{
    return value == floor(value) && value >= -0x1p63 && value < 0x1p63;
}

bool base_parse_count(int64_t *out, const char *text)
{
    size_t sign = text[0] == '-' || text[0] == '+';
    if (text[sign] && text[sign + strspn(text + sign, "0123456789")] == '\0') {
        errno = 0;
        *out = strtoll(text, NULL, 10);
        return errno == 0;
    }
    double value = 0;
    if (!base_parse_real(&value, text) || !is_whole_int64(value))
        return false;
    *out = (int64_t)value;
    return true;
}

/* Bytes in one unit: kB and the like count in thousands, K and KiB in 1024s; 0 when there is no such unit. */
static double unit_size(const char *unit)
{
    static const char letters[] = "KMGTP";
    if (unit[0] == '\0' || strcmp(unit, "B") == 0)
        return 1;
    const char *letter = strchr(letters, unit[0] == 'k' ? 'K' : unit[0]);
    if (!letter)
        return 0;
    int power = (int)(letter - letters) + 1;
    if (strcmp(unit + 1, "B") == 0)
        return pow(1000, power);
    return unit[1] == '\0' || strcmp(unit + 1, "iB") == 0 ? ldexp(1, 10 * power) : 0;
}

bool base_parse_bytes(int64_t *out, const char *text)
{
    if (base_parse_count(out, text))
        return true;
    const char *end = NULL;
    double number = 0;
    if (!read_decimal(&number, text, &end))
        return false;
    end += *end == ' ';
    double bytes = floor(number * unit_size(end));
    if (unit_size(end) == 0 || !is_whole_int64(bytes))
        return false;
    *out = (int64_t)bytes;
    return true;
}

/* ---- spelling ---------------------------------------------------------------------------------------------------- */

enum { NAME_MOST = 48 };

/* Insertions, deletions, substitutions and swaps of neighbours that turn one name into the other (the restricted
 * Damerau-Levenshtein distance). */
static int spelling_distance(const char *a, const char *b)
{
    size_t a_length = strlen(a), b_length = strlen(b);
    if (a_length > NAME_MOST || b_length > NAME_MOST)
        return NAME_MOST;
    int rows[3][NAME_MOST + 1];
    for (size_t j = 0; j <= b_length; j++)
        rows[0][j] = (int)j;
    for (size_t i = 1; i <= a_length; i++) {
        int *row = rows[i % 3], *above = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];
        row[0] = (int)i;
        for (size_t j = 1; j <= b_length; j++) {
            int best = above[j - 1] + (a[i - 1] != b[j - 1]);
            best = above[j] + 1 < best ? above[j] + 1 : best;
            best = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && before[j - 2] + 1 < best)
                best = before[j - 2] + 1;
            row[j] = best;
        }
    }
    return rows[a_length % 3][b_length];
}

/* How far `name` is from what was typed; a name that begins with it is near however long it goes on. */
static int unlikeness(const char *text, const char *name)
{
    size_t length = strlen(text);
    int distance = spelling_distance(text, name);
    if (length >= 3 && strncmp(text, name, length) == 0 && distance > 1)
        distance = 1;
    return distance;
}

int base_typos_most(size_t letters)
{
    return letters < 3 ? 1 : letters < 8 ? 2 : 3;
}

const char *base_nearest(const char *text, const char *const *names, int count)
{
    const char *best = NULL;
    int least = base_typos_most(strlen(text)) + 1;
    for (int i = 0; i < count; i++) {
        int distance = unlikeness(text, names[i]);
        if (distance < least && distance < (int)strlen(names[i])) {
            least = distance;
            best = names[i];
        }
    }
    return best;
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

/* Room for "--" and a name, or "-k": how the user called an option. */
typedef struct spelling {
    char text[NAME_MOST + 4];
} spelling;

static spelling spell_long(const char *name)
{
    spelling out;
    snprintf(out.text, sizeof out.text, "--%s", name);
    return out;
}

static spelling spell_letter(char letter)
{
    spelling out;
    snprintf(out.text, sizeof out.text, "-%c", letter);
    return out;
}

/* A limit as a user would write it: sizes that are whole MiB as such. */
static void print_limit(char *out, size_t size, const shoal_option *option, double limit)
{
    bool mebibytes = option->kind == SHOAL_OPTION_BYTES && limit >= 0x1p20 && fmod(limit, 0x1p20) == 0;
    snprintf(out, size, "%.15g%s", mebibytes ? limit / 0x1p20 : limit, mebibytes ? "MiB" : "");
}

static int check_range(const shoal_option *option, const char *called, double value, const char *text)
{
    bool low = value<option->least, high = option->most> option->least && value > option->most;
    char limit[40];
    if (!low && !high)
        return SHOAL_OK;
    print_limit(limit, sizeof limit, option, low ? option->least : option->most);
    return shoal_fail(SHOAL_USAGE, "%s must be at %s %s, not %s", called, low ? "least" : "most", limit, text);
}

static int assign_flag(bool *field, const char *called, const char *text)
{
    static const char *const words[] = {"false", "true", "no", "yes", "0", "1"};
    for (int i = 0; i < 6; i++) {
        if (strcmp(text, words[i]) == 0) {
            *field = i % 2;
            return SHOAL_OK;
        }
    }
    return shoal_fail(SHOAL_USAGE, "%s: '%s' is neither true nor false", called, text);
}

static int assign_whole(int64_t *field, const shoal_option *option, const char *called, const char *text)
{
    int64_t value = 0;
    bool bytes = option->kind == SHOAL_OPTION_BYTES;
    if (!(bytes ? base_parse_bytes : base_parse_count)(&value, text)) {
        double real = 0;
        if (bytes)
            return shoal_fail(SHOAL_USAGE, "%s: '%s' is not a size such as 4096, 64MB or 1.5GiB", called, text);
        if (!base_parse_real(&real, text))
            return shoal_fail(SHOAL_USAGE, "%s: '%s' is not a number", called, text);
        return shoal_fail(SHOAL_USAGE, real == floor(real) ? "%s: %s is too large" : "%s: %s is not a whole number",
                          called, text);
    }
    int status = check_range(option, called, (double)value, text);
    if (status == SHOAL_OK)
        *field = value;
    return status;
}

/* A number, or the text of several, which is checked here and read again by who needs them. */
static int assign_counts(base_option_counts *field, const shoal_option *option, const char *called, const char *text)
{
    base_counts counts;
    if (!strchr(text, ',') && !strstr(text, "..")) {
        field->several = NULL;
        return assign_whole(&field->one, option, called, text);
    }
    int status = base_counts_read(&counts, called, text, (int64_t)option->least, (int64_t)option->most);
    if (status == SHOAL_OK)
        *field = (base_option_counts){.several = text};
    return status;
}

static int assign_real(double *field, const shoal_option *option, const char *called, const char *text)
{
    double value = 0;
    if (!base_parse_real(&value, text))
        return shoal_fail(SHOAL_USAGE, "%s: '%s' is not a number", called, text);
    int status = check_range(option, called, value, text);
    if (status == SHOAL_OK)
        *field = value;
    return status;
}

/* Appends to a bounded text; what does not fit is left out. */
static void append(char *text, size_t size, const char *more)
{
    size_t length = strlen(text);
    snprintf(text + length, size - length, "%s", more);
}

static int assign_choice(int *field, const shoal_option *option, const char *called, const char *text)
{
    char list[256] = "";
    int count = 0;
    for (; option->choices[count]; count++) {
        if (strcmp(text, option->choices[count]) == 0) {
            *field = count;
            return SHOAL_OK;
        }
        append(list, sizeof list, count ? ", " : "");
        append(list, sizeof list, option->choices[count]);
    }
    const char *near = base_nearest(text, option->choices, count);
    if (near)
        return shoal_fail(SHOAL_USAGE, "%s: '%s' is not one of %s; did you mean %s?", called, text, list, near);
    return shoal_fail(SHOAL_USAGE, "%s: '%s' is not one of %s", called, text, list);
}

static int assign_more(shoal_texts *field, const char *called, const char *text)
{
    if (field->count == SHOAL_TEXTS_MOST)
        return shoal_fail(SHOAL_USAGE, "%s can be given at most %d times", called, SHOAL_TEXTS_MOST);
    field->text[field->count++] = text;
    return SHOAL_OK;
}

static int assign(void *settings, const shoal_option *option, const char *called, const char *text)
{
    void *field = (char *)settings + option->offset;
    switch (option->kind) {
    case SHOAL_OPTION_FLAG: return assign_flag(field, called, text);
    case SHOAL_OPTION_COUNT:
    case SHOAL_OPTION_BYTES: return assign_whole(field, option, called, text);
    case SHOAL_OPTION_REAL: return assign_real(field, option, called, text);
    case SHOAL_OPTION_TEXT: *(const char **)field = text; return SHOAL_OK;
    case SHOAL_OPTION_CHOICE: return assign_choice(field, option, called, text);
    case SHOAL_OPTION_LIST: return assign_more(field, called, text);
    case SHOAL_OPTION_COUNTS: return assign_counts(field, option, called, text);
    }
    SHOAL_BUG("option %s has kind %d", option->name, (int)option->kind);
}

int shoal_options_default(void *settings, const shoal_option *table)
{
    for (const shoal_option *option = table; option->name; option++) {
        if (!option->fallback)
            continue;
        int status = assign(settings, option, spell_long(option->name).text, option->fallback);
        if (status < 0)
            return status;
    }
    return SHOAL_OK;
}

int base_options_default(void *settings, const base_option_group *groups)
{
    for (const base_option_group *group = groups; group->title; group++) {
        int status = shoal_options_default((char *)settings + group->offset, *group->table);
        if (status < 0)
            return status;
    }
    return SHOAL_OK;
}

/* ---- finding an option ------------------------------------------------------------------------------------------- */

/* Names that people know from other programs.  They mean the option only where no option has that name and the
 * command has the one they stand for; help does not show them. */
static const struct alias {
    const char *name, *option;
    const char *unset; /* a value that means the default, such as scikit-learn's n_jobs=-1; NULL for none */
} aliases[] = {
    {"centers", "centres", NULL},
    {"k", "clusters", NULL},
    {"n-clusters", "clusters", NULL},
    {"num-clusters", "clusters", NULL},
    {"max-iter", "iterations", NULL},
    {"max-iterations", "iterations", NULL},
    {"n-iter", "iterations", NULL},
    {"n-init", "runs", NULL},
    {"random-state", "seed", NULL},
    {"random-seed", "seed", NULL},
    {"test-size", "test", NULL},
    {"train-size", "train", NULL},
    {"tol", "tolerance", NULL},
    {"batch-size", "batch", NULL},
    {"learning-rate", "rate", NULL},
    {"optimizer", "optimiser", NULL},
    {"n-iter-no-change", "early-stop", NULL},
    {"early-stopping", "early-stop", NULL},
    {"n-jobs", "threads", "-1"},
    {"n-threads", "threads", NULL},
    {"num-threads", "threads", NULL},
    {"color", "colour", NULL},
    {"gray", "grey", NULL},
    {"grayscale", "grey", NULL},
    {"normalize", "normalise", NULL},
    {"standardize", "standardise", NULL},
    {"drop-columns", "drop-column", NULL},
    {"column", "columns", NULL},
    {"usecols", "columns", NULL},
    {"sample-weight", "weights", NULL},
    {"sample-weights", "weights", NULL},
    {"output", "out", NULL},
    {"overwrite", "force", NULL},
    {"scale", "picture-scale", NULL},
};
enum { ALIASES = sizeof aliases / sizeof *aliases };

/* Values that people know from scikit-learn. */
static const struct value_alias {
    const char *option, *text, *means;
} value_aliases[] = {
    {"init", "k-means++", "kmeans++"},
    {"init", "k-means||", "parallel"},
    {"init", "kmeans||", "parallel"},
};
enum { VALUE_ALIASES = sizeof value_aliases / sizeof *value_aliases };

/* What to say of options that other programs have and these commands don't: where the command has the option `has`. */
static const struct hint {
    const char *typed, *has, *text;
} hints[] = {
    {"labels", "target", "known labels are given with --target FILE"},
    {"output", "labels", "each result has an option of its own, such as --labels FILE"},
    {"out", "labels", "each result has an option of its own, such as --labels FILE"},
    {"C", "l2", "--l2 is 1 / C"},
    {"verbose", "quiet", "progress is shown on a terminal, and a summary at the end, unless --quiet is given"},
};
enum { HINTS = sizeof hints / sizeof *hints };

/* Whether the first `length` characters of what was typed are this name; max_iter is max-iter. */
static bool is_name(const char *name, const char *typed, size_t length)
{
    size_t at = 0;
    while (at < length && name[at] && (name[at] == typed[at] || (name[at] == '-' && typed[at] == '_')))
        at++;
    return at == length && name[at] == '\0';
}

/* An option, the group it is of, and the alias it was called by, or NULL. */
typedef struct target {
    const shoal_option *option;
    const base_option_group *group;
    const struct alias *alias;
} target;

/* Finds by the first `length` characters of name, or by letter when name is NULL; no aliases. */
static target find_own(const base_option_group *groups, const char *name, size_t length, char letter)
{
    for (const base_option_group *group = groups; group->title; group++)
        for (const shoal_option *option = *group->table; option->name; option++)
            if (name ? is_name(option->name, name, length) : option->letter == letter)
                return (target){option, group, NULL};
    return (target){NULL, NULL, NULL};
}

static target find(const base_option_group *groups, const char *name, size_t length, char letter)
{
    target found = find_own(groups, name, length, letter);
    for (int i = 0; name && !found.option && i < ALIASES; i++) {
        if (is_name(aliases[i].name, name, length)) {
            found = find_own(groups, aliases[i].option, strlen(aliases[i].option), 0);
            found.alias = &aliases[i];
        }
    }
    return found;
}

const shoal_option *base_options_find(const base_option_group *groups, const char *name, size_t length)
{
    return find(groups, name, length, 0).option;
}

const shoal_option *base_options_letter(const base_option_group *groups, char letter)
{
    return find(groups, NULL, 0, letter).option;
}

/* Makes `option` the nearest so far if it, or the alias it is called by, is nearer to what was typed. */
static void consider(const char **nearest, int *least, const char *typed, const char *called, const char *option)
{
    int distance = unlikeness(typed, called);
    if (distance < *least && distance < (int)strlen(called)) {
        *least = distance;
        *nearest = option;
    }
}

const char *base_options_nearest(const base_option_group *groups, const char *typed)
{
    const char *nearest = NULL;
    int least = base_typos_most(strlen(typed)) + 1;
    for (const base_option_group *group = groups; group->title; group++)
        for (const shoal_option *option = *group->table; option->name; option++)
            consider(&nearest, &least, typed, option->name, option->name);
    for (int i = 0; i < ALIASES; i++)
        if (find_own(groups, aliases[i].option, strlen(aliases[i].option), 0).option)
            consider(&nearest, &least, typed, aliases[i].name, aliases[i].option);
    return nearest;
}

static int fail_unknown(const base_option_group *groups, const char *name, size_t length)
{
    char typed[NAME_MOST + 1];
    snprintf(typed, sizeof typed, "%.*s", (int)(length < NAME_MOST ? length : NAME_MOST), name);
    const char *nearest = base_options_nearest(groups, typed);
    for (int i = 0; i < HINTS; i++)
        if (strcmp(typed, hints[i].typed) == 0 && base_options_find(groups, hints[i].has, strlen(hints[i].has)))
            return shoal_fail(SHOAL_USAGE, "unknown option --%s; %s", typed, hints[i].text);
    if (nearest)
        return shoal_fail(SHOAL_USAGE, "unknown option --%s; did you mean --%s?", typed, nearest);
    return shoal_fail(SHOAL_USAGE, "unknown option --%s", typed);
}

static size_t size_of_kind(shoal_option_kind kind)
{
    switch (kind) {
    case SHOAL_OPTION_FLAG: return sizeof(bool);
    case SHOAL_OPTION_COUNT:
    case SHOAL_OPTION_BYTES: return sizeof(int64_t);
    case SHOAL_OPTION_REAL: return sizeof(double);
    case SHOAL_OPTION_TEXT: return sizeof(const char *);
    case SHOAL_OPTION_CHOICE: return sizeof(int);
    case SHOAL_OPTION_LIST: return sizeof(shoal_texts);
    case SHOAL_OPTION_COUNTS: return sizeof(base_option_counts);
    }
    SHOAL_BUG("an option of kind %d", (int)kind);
}

/* Makes an option what it is when nobody gives it. */
static int reset(void *settings, const shoal_option *option)
{
    memset((char *)settings + option->offset, 0, size_of_kind(option->kind));
    return option->fallback ? assign(settings, option, spell_long(option->name).text, option->fallback) : SHOAL_OK;
}

static int set(void *settings, const target *found, const char *called, const char *text)
{
    void *own = (char *)settings + found->group->offset;
    if (found->alias && found->alias->unset && strcmp(text, found->alias->unset) == 0)
        return reset(own, found->option);
    for (int i = 0; i < VALUE_ALIASES; i++)
        if (strcmp(found->option->name, value_aliases[i].option) == 0 && strcmp(text, value_aliases[i].text) == 0)
            return assign(own, found->option, called, value_aliases[i].means);
    return assign(own, found->option, called, text);
}

int base_options_set(void *settings, const base_option_group *groups, const char *name, const char *text)
{
    target found = find(groups, name, strlen(name), 0);
    if (!found.option)
        return fail_unknown(groups, name, strlen(name));
    return text ? set(settings, &found, spell_long(name).text, text)
                : reset((char *)settings + found.group->offset, found.option);
}

int shoal_options_set(void *settings, const shoal_option *table, const char *name, const char *text)
{
    const base_option_group groups[] = {
        {"", &table, 0},
        {0},
    };
    return base_options_set(settings, groups, name, text);
}

/* ---- argument lists ---------------------------------------------------------------------------------------------- */

typedef struct reader {
    void *settings;
    const base_option_group *groups;
    char *const *argv;
    int argc, next; /* argv[next] is the argument to read */
} reader;

static bool is_option(const reader *in, const char *text)
{
    if (text[0] != '-' || text[1] != '-')
        return false;
    return find(in->groups, text + 2, strcspn(text + 2, "="), 0).option != NULL;
}

/* The argument after an option.  If it is itself an option, the value was probably forgotten. */
static int take_value(const char **out, reader *in, const shoal_option *option, const char *called)
{
    const char *argument = option->argument ? option->argument : "value";
    if (in->next >= in->argc)
        return shoal_fail(SHOAL_USAGE, "%s needs %s", called, argument);
    const char *text = in->argv[in->next];
    if (is_option(in, text))
        return shoal_fail(SHOAL_USAGE, "%s needs %s, not the option %s (write %s=%s if you mean that text)", called,
                          argument, text, called, text);
    in->next++;
    *out = text;
    return SHOAL_OK;
}

static int read_long(reader *in, const char *name)
{
    size_t length = strcspn(name, "=");
    const char *value = name[length] ? name + length + 1 : NULL;
    target found = find(in->groups, name, length, 0);
    if (!found.option)
        return fail_unknown(in->groups, name, length);
    spelling called;
    snprintf(called.text, sizeof called.text, "--%.*s", (int)length, name);
    if (found.option->kind == SHOAL_OPTION_FLAG) {
        if (value)
            return shoal_fail(SHOAL_USAGE, "%s takes no value", called.text);
        value = "true";
    }
    int status = value ? SHOAL_OK : take_value(&value, in, found.option, called.text);
    return status < 0 ? status : set(in->settings, &found, called.text, value);
}

/* -q, -k5, -k 5, and flags run together with at most one value at the end: -qk5. */
static int read_letters(reader *in, const char *letters)
{
    for (; *letters; letters++) {
        target found = find(in->groups, NULL, 0, *letters);
        spelling called = spell_letter(*letters);
        if (!found.option)
            return shoal_fail(SHOAL_USAGE, "unknown option %s", called.text);
        const char *value = "true";
        bool flag = found.option->kind == SHOAL_OPTION_FLAG;
        int status = SHOAL_OK;
        if (!flag && letters[1])
            value = letters + 1 + (letters[1] == '=');
        else if (!flag)
            status = take_value(&value, in, found.option, called.text);
        if (status == SHOAL_OK)
            status = set(in->settings, &found, called.text, value);
        if (status < 0 || !flag)
            return status;
    }
    return SHOAL_OK;
}

int base_options_parse(void *settings, const base_option_group *groups, bool leading, const char **words,
                       int *word_count, int argc, char *const *argv)
{
    reader in = {settings, groups, argv, argc, 0};
    int count = 0, status = SHOAL_OK;
    bool only_words = false;
    while (status == SHOAL_OK && in.next < argc) {
        const char *text = argv[in.next++];
        if (only_words || text[0] != '-' || text[1] == '\0') {
            words[count++] = text;
            only_words |= leading;
        } else if (strcmp(text, "--") == 0) {
            only_words = true;
        } else if (text[1] == '-') {
            status = read_long(&in, text + 2);
        } else {
            status = read_letters(&in, text + 1);
        }
    }
    *word_count = count;
    return status;
}
