/* The file of measurements: where it lies, and its JSON, which one table of fields both writes and reads.  A file from
 * elsewhere is not trusted: every number must be there, finite and not negative, and what is wrong is named by its
 * entry.  See calibration.h. */
#include "calibration.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>
#include <shoal/error.h>

#include "base/file.h"
#include "base/io.h"
#include "base/memory.h"
#include "base/path.h"

enum { VERSION = 1, FILE_BYTES_MOST = 1 << 20, THREADS_MOST = 1 << 20 };

/* ---- fields ------------------------------------------------------------------------------------------------------ */

typedef enum kind { REAL, LATER, TEXT, DATE, THREADS } kind; /* LATER: a REAL that older files lack, and then is 0 */

typedef struct field {
    const char *name; /* NULL ends a table */
    kind kind;
    size_t offset, size; /* size: of a TEXT */
} field;

#define REAL_OF(type, member)                                                                                          \
    {                                                                                                                  \
#member, REAL, offsetof(type, member), 0                                                                       \
    }
#define TEXT_OF(type, member)                                                                                          \
    {                                                                                                                  \
#member, TEXT, offsetof(type, member), sizeof((type *)0)->member                                               \
    }
#define DATE_OF(type, member)                                                                                          \
    {                                                                                                                  \
#member, DATE, offsetof(type, member), 0                                                                       \
    }

static const field top_fields[] = {
    DATE_OF(plan_calibration, date),
    TEXT_OF(plan_calibration, host),
    TEXT_OF(plan_calibration, kernel),
    {"threads", THREADS, offsetof(plan_calibration, threads), 0},
    REAL_OF(plan_calibration, thread_loss),
    REAL_OF(plan_calibration, error),
    {"busy", LATER, offsetof(plan_calibration, busy), 0},
    {0},
};
static const field pace_fields[] = {
    TEXT_OF(shoal_pace, learner),
    TEXT_OF(shoal_pace, phase),
    REAL_OF(shoal_pace, value),
    REAL_OF(shoal_pace, operation),
    REAL_OF(shoal_pace, round),
    REAL_OF(shoal_pace, model_byte),
    REAL_OF(shoal_pace, rounds),
    {"row", LATER, offsetof(shoal_pace, row), 0},
    {0},
};
static const field store_fields[] = {
    TEXT_OF(plan_calibrated_site, store),
    DATE_OF(plan_calibrated_site, date),
    {0},
};
static const field site_fields[] = {
    REAL_OF(shoal_site, get),
    REAL_OF(shoal_site, put),
    REAL_OF(shoal_site, wait),
    REAL_OF(shoal_site, read),
    REAL_OF(shoal_site, write),
    REAL_OF(shoal_site, connections),
    REAL_OF(shoal_site, worker),
    REAL_OF(shoal_site, account),
    REAL_OF(shoal_site, account_write),
    REAL_OF(shoal_site, get_price),
    REAL_OF(shoal_site, put_price),
    REAL_OF(shoal_site, requests),
    REAL_OF(shoal_site, requests_per_second),
    REAL_OF(shoal_site, start),
    REAL_OF(shoal_site, hash),
    REAL_OF(shoal_site, sync),
    REAL_OF(shoal_site, crowd),
    REAL_OF(shoal_site, straggle),
    REAL_OF(shoal_site, thread_loss),
    REAL_OF(shoal_site, error),
    {0},
};

/* ---- dates ------------------------------------------------------------------------------------------------------- */

enum { DATE_BYTES = 32 };

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

/* NULL when out of memory, or for a number that JSON has no word for. */
static json_t *json_of_field(const field *field, const void *from)
{
    const void *place = (const char *)from + field->offset;
    char date[DATE_BYTES];
    switch (field->kind) {
    case REAL:
    case LATER: return json_real(*(const double *)place);
    case THREADS: return json_integer(*(const int *)place);
    case DATE: format_date(date, *(const int64_t *)place); return json_string(date);
    case TEXT: break;
    }
    return json_string(place);
}

/* Adds the fields to *object, which is let go and becomes NULL when that fails. */
static void add_fields(json_t **object, const field *table, const void *from)
{
    for (; table->name && *object; table++)
        if (json_object_set_new(*object, table->name, json_of_field(table, from)) < 0) {
            json_decref(*object);
            *object = NULL;
        }
}

/* Adds one entry to a list; takes the entry. */
static bool append_entry(json_t *list, json_t *entry)
{
    return entry && json_array_append_new(list, entry) == 0;
}

static bool add_lists(json_t *object, const plan_calibration *calibration)
{
    json_t *paces = json_array(), *sites = json_array();
    bool well = paces && sites;
    for (int i = 0; i < calibration->paces && well; i++) {
        json_t *entry = json_object();
        add_fields(&entry, pace_fields, &calibration->pace[i]);
        well = append_entry(paces, entry);
    }
    for (int i = 0; i < calibration->sites && well; i++) {
        json_t *entry = json_object();
        add_fields(&entry, store_fields, &calibration->site[i]);
        add_fields(&entry, site_fields, &calibration->site[i].site);
        well = append_entry(sites, entry);
    }
    bool had_paces = json_object_set_new(object, "paces", paces) == 0;
    bool had_sites = json_object_set_new(object, "sites", sites) == 0;
    return well && had_paces && had_sites;
}

int plan_calibration_json(char **out, const plan_calibration *calibration)
{
    *out = NULL;
    char *text = NULL;
    json_t *object = json_pack("{s:i}", "version", VERSION);
    add_fields(&object, top_fields, calibration);
    if (object && add_lists(object, calibration))
        text = json_dumps(object, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
    json_decref(object);
    int status = text ? base_copy_text(out, text)
                      : shoal_fail(SHOAL_MEMORY, "no memory for the calibration, or a number in it that is none");
    free(text);
    return status;
}

int plan_calibration_write(const char *path, const plan_calibration *calibration)
{
    char *text = NULL;
    base_output *output = NULL;
    int status = plan_calibration_json(&text, calibration);
    if (status == SHOAL_OK)
        status = base_output_folders(path);
    if (status == SHOAL_OK)
        status = base_output_open(&output, path);
    if (status == SHOAL_OK)
        status = base_output_write(output, text, strlen(text));
    if (status == SHOAL_OK)
        status = base_output_write(output, "\n", 1);
    if (status == SHOAL_OK)
        status = base_output_commit(&output);
    base_output_discard(&output);
    base_free(&text);
    return status;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* What is being read, for messages: "calibration.json: site 2 (az://acct/box)". */
typedef struct reader {
    const char *path;
    char entry[320]; /* "" at the top */
} reader;

static int fail_at_field(const reader *in, const char *name, const char *what)
{
    return shoal_fail(SHOAL_INVALID, "%s:%s%s '%s' %s", in->path, *in->entry ? " " : "", in->entry, name, what);
}

static int read_text(const reader *in, const field *field, const json_t *value, char *place)
{
    const char *text = json_string_value(value);
    if (!text)
        return fail_at_field(in, field->name, "is no text");
    if (json_string_length(value) >= field->size)
        return fail_at_field(in, field->name, "is too long");
    memcpy(place, text, json_string_length(value) + 1); /* JSON_ALLOW_NUL is off: there is none inside */
    return SHOAL_OK;
}

static int read_field(const reader *in, const field *field, const json_t *value, void *place)
{
    double number = json_is_number(value) ? json_number_value(value) : -1;
    if (!value && field->kind == LATER)
        return SHOAL_OK;
    if (!value)
        return fail_at_field(in, field->name, "is missing");
    switch (field->kind) {
    case REAL:
    case LATER:
        *(double *)place = number;
        return number >= 0 && isfinite(number) ? SHOAL_OK : fail_at_field(in, field->name, "is no number from 0 up");
    case THREADS:
        if (!json_is_integer(value) || number < 0 || number > THREADS_MOST)
            return fail_at_field(in, field->name, "is no number of threads");
        *(int *)place = (int)json_integer_value(value);
        return SHOAL_OK;
    case DATE:
        if (!json_is_string(value) || !parse_date(place, json_string_value(value)))
            return fail_at_field(in, field->name, "is no date such as 2026-01-31T12:00:00Z");
        return SHOAL_OK;
    case TEXT: break;
    }
    return read_text(in, field, value, place);
}

/* Fields that are not known are left alone: a later version may have added them. */
static int read_fields(const reader *in, const field *table, const json_t *object, void *to)
{
    int status = SHOAL_OK;
    for (; table->name && status == SHOAL_OK; table++)
        status = read_field(in, table, json_object_get(object, table->name), (char *)to + table->offset);
    return status;
}

/* Names the entry by its number and, where it has them, by the texts it is known by. */
static int enter(reader *in, const char *what, int index, const json_t *entry, const char *first, const char *second)
{
    const char *a = json_string_value(json_object_get(entry, first));
    const char *b = second ? json_string_value(json_object_get(entry, second)) : NULL;
    int length = snprintf(in->entry, sizeof in->entry, "%s %d", what, index + 1);
    if (a)
        snprintf(in->entry + length, sizeof in->entry - (size_t)length, " (%.200s%s%.40s)", a, b ? " " : "",
                 b ? b : "");
    if (!json_is_object(entry))
        return shoal_fail(SHOAL_INVALID, "%s: %s is no object", in->path, in->entry);
    return SHOAL_OK;
}

static int read_pace(reader *in, plan_calibration *out, int index, const json_t *entry)
{
    shoal_pace pace = {0};
    int status = enter(in, "pace", index, entry, "learner", "phase");
    if (status == SHOAL_OK)
        status = read_fields(in, pace_fields, entry, &pace);
    return status == SHOAL_OK ? plan_calibration_set_pace(out, &pace) : status;
}

static int read_site(reader *in, plan_calibration *out, int index, const json_t *entry)
{
    plan_calibrated_site site = {0};
    int status = enter(in, "site", index, entry, "store", NULL);
    if (status == SHOAL_OK)
        status = read_fields(in, store_fields, entry, &site);
    if (status == SHOAL_OK)
        status = read_fields(in, site_fields, entry, &site.site);
    return status == SHOAL_OK ? plan_calibration_set_site(out, &site) : status;
}

static int read_entries(reader *in, plan_calibration *out, const json_t *object, const char *name, int most,
                        int (*read)(reader *in, plan_calibration *out, int index, const json_t *entry))
{
    const json_t *list = json_object_get(object, name);
    int status = SHOAL_OK;
    in->entry[0] = '\0';
    if (!json_is_array(list))
        return fail_at_field(in, name, list ? "is no list" : "is missing");
    if (json_array_size(list) > (size_t)most)
        return shoal_fail(SHOAL_INVALID, "%s: '%s' has %zu entries; %d are the most", in->path, name,
                          json_array_size(list), most);
    for (size_t i = 0; i < json_array_size(list) && status == SHOAL_OK; i++)
        status = read(in, out, (int)i, json_array_get(list, i));
    return status;
}

static int read_object(plan_calibration *out, const json_t *object, const char *path)
{
    reader in = {.path = path};
    const json_t *version = json_object_get(object, "version");
    if (!json_is_object(object) || !json_is_integer(version))
        return shoal_fail(SHOAL_INVALID, "%s: this is no calibration: it has no 'version'", path);
    if (json_integer_value(version) != VERSION)
        return shoal_fail(SHOAL_INVALID, "%s: this is a calibration of version %lld, and this program reads version %d",
                          path, (long long)json_integer_value(version), VERSION);
    int status = read_fields(&in, top_fields, object, out);
    if (status == SHOAL_OK)
        status = read_entries(&in, out, object, "paces", PLAN_PACES_MOST, read_pace);
    if (status == SHOAL_OK)
        status = read_entries(&in, out, object, "sites", PLAN_SITES_MOST, read_site);
    return status;
}

static int read_bytes(char **out, size_t *size, const char *path)
{
    struct stat about;
    if (stat(path, &about) == 0 && S_ISFIFO(about.st_mode)) /* nobody may ever write there */
        return shoal_fail(SHOAL_INVALID, "%s: this is no calibration: it is a pipe", path);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return shoal_fail_errno(errno == ENOENT || errno == ENOTDIR ? SHOAL_ABSENT : SHOAL_SYSTEM, errno,
                                "%s: can't read", path);
    int status = base_read_whole(out, size, file, FILE_BYTES_MOST, path);
    if (status == SHOAL_SYSTEM)
        shoal_fail_errno(status, errno, "%s: can't read", path);
    else if (status == SHOAL_INVALID)
        shoal_fail(status, "%s: this is no calibration: it is longer than 1 MiB", path);
    close(file);
    return status;
}

int plan_calibration_read(plan_calibration *out, const char *path)
{
    char *text = NULL;
    size_t size = 0;
    json_error_t error;
    memset(out, 0, sizeof *out);
    int status = read_bytes(&text, &size, path);
    if (status == SHOAL_OK) {
        json_t *object = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
        status = object ? read_object(out, object, path)
                        : shoal_fail(SHOAL_INVALID, "%s: line %d: %s", path, error.line, error.text);
        json_decref(object);
    }
    base_free(&text);
    if (status < 0)
        memset(out, 0, sizeof *out);
    return status;
}

int plan_calibration_path(char **out)
{
    return base_user_path(out, BASE_CONFIG, "calibration.json", "there is no place for a calibration");
}
