/* The file of measurements: where it is, and its JSON.  A file from elsewhere is not trusted, and the entry that is
 * wrong is named.  See calibration.h. */
#include "calibration.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
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
#include "fields.h"

enum { VERSION = 1, FILE_BYTES_MOST = 1 << 20 };

/* ---- fields ------------------------------------------------------------------------------------------------------ */

static const plan_field top_fields[] = {
    PLAN_FIELD(DATE, plan_calibration, date),
    PLAN_FIELD(TEXT, plan_calibration, host),
    PLAN_FIELD(TEXT, plan_calibration, kernel),
    PLAN_FIELD(THREADS, plan_calibration, threads),
    PLAN_FIELD(REAL, plan_calibration, thread_loss),
    PLAN_FIELD(REAL, plan_calibration, error),
    PLAN_FIELD(LATER, plan_calibration, busy),
    PLAN_FIELD(LATER_DATE, plan_calibration, refitted),
    {0},
};
static const plan_field pace_fields[] = {
    PLAN_FIELD(TEXT, shoal_pace, learner),
    PLAN_FIELD(TEXT, shoal_pace, phase),
    PLAN_FIELD(REAL, shoal_pace, value),
    PLAN_FIELD(REAL, shoal_pace, operation),
    PLAN_FIELD(REAL, shoal_pace, round),
    PLAN_FIELD(REAL, shoal_pace, model_byte),
    PLAN_FIELD(REAL, shoal_pace, rounds),
    PLAN_FIELD(LATER, shoal_pace, row),
    {0},
};
static const plan_field store_fields[] = {
    PLAN_FIELD(TEXT, plan_calibrated_site, store),
    PLAN_FIELD(DATE, plan_calibrated_site, date),
    {0},
};
static const plan_field site_fields[] = {
    PLAN_FIELD(REAL, shoal_site, get),
    PLAN_FIELD(REAL, shoal_site, put),
    PLAN_FIELD(REAL, shoal_site, wait),
    PLAN_FIELD(REAL, shoal_site, read),
    PLAN_FIELD(REAL, shoal_site, write),
    PLAN_FIELD(REAL, shoal_site, connections),
    PLAN_FIELD(REAL, shoal_site, worker),
    PLAN_FIELD(REAL, shoal_site, account),
    PLAN_FIELD(REAL, shoal_site, account_write),
    PLAN_FIELD(REAL, shoal_site, get_price),
    PLAN_FIELD(REAL, shoal_site, put_price),
    PLAN_FIELD(REAL, shoal_site, requests),
    PLAN_FIELD(REAL, shoal_site, requests_per_second),
    PLAN_FIELD(REAL, shoal_site, start),
    PLAN_FIELD(REAL, shoal_site, hash),
    PLAN_FIELD(REAL, shoal_site, sync),
    PLAN_FIELD(REAL, shoal_site, crowd),
    PLAN_FIELD(REAL, shoal_site, straggle),
    PLAN_FIELD(REAL, shoal_site, thread_loss),
    PLAN_FIELD(REAL, shoal_site, error),
    {0},
};

/* ---- writing ----------------------------------------------------------------------------------------------------- */

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
        plan_fields_write(&entry, pace_fields, &calibration->pace[i]);
        well = append_entry(paces, entry);
    }
    for (int i = 0; i < calibration->sites && well; i++) {
        json_t *entry = json_object();
        plan_fields_write(&entry, store_fields, &calibration->site[i]);
        plan_fields_write(&entry, site_fields, &calibration->site[i].site);
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
    plan_fields_write(&object, top_fields, calibration);
    if (object && add_lists(object, calibration))
        text = json_dumps(object, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
    json_decref(object);
    int status = text ? base_copy_text(out, text)
                      : shoal_fail(SHOAL_MEMORY, "no memory for the calibration, or a figure in it is not a number");
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

static int read_fields(const reader *in, const plan_field *table, const json_t *object, void *to)
{
    const char *why = NULL;
    const plan_field *wrong = plan_fields_read(&why, table, object, to);
    return wrong ? fail_at_field(in, wrong->name, why) : SHOAL_OK;
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
        return shoal_fail(SHOAL_INVALID, "%s: %s is not an object", in->path, in->entry);
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
        return fail_at_field(in, name, list ? "is not a list" : "is missing");
    if (json_array_size(list) > (size_t)most)
        return shoal_fail(SHOAL_INVALID, "%s: '%s' has %zu entries; at most %d are allowed", in->path, name,
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
        return shoal_fail(SHOAL_INVALID, "%s: this is not a calibration: it has no 'version'", path);
    if (json_integer_value(version) != VERSION)
        return shoal_fail(SHOAL_INVALID, "%s: calibration of version %lld; this program reads version %d", path,
                          (long long)json_integer_value(version), VERSION);
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
        return shoal_fail(SHOAL_INVALID, "%s: this is not a calibration: it is a pipe", path);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return shoal_fail_errno(errno == ENOENT || errno == ENOTDIR ? SHOAL_ABSENT : SHOAL_SYSTEM, errno,
                                "%s: cannot read", path);
    int status = base_read_whole(out, size, file, FILE_BYTES_MOST, path);
    if (status == SHOAL_SYSTEM)
        shoal_fail_errno(status, errno, "%s: cannot read", path);
    else if (status == SHOAL_INVALID)
        shoal_fail(status, "%s: this is not a calibration: it is longer than 1 MiB", path);
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

bool plan_calibration_is_begun(const char *path)
{
    char *text = NULL;
    size_t size = 0;
    int version = 0;
    bool begun = read_bytes(&text, &size, path) == SHOAL_OK && /* followed by a zero */
                 (text[strspn(text, " \t\r\n")] == '\0' || sscanf(text, " { \"version\" : %d", &version) == 1);
    base_free(&text);
    return begun;
}

int plan_calibration_path(char **out)
{
    return base_user_path(out, BASE_CONFIG, "calibration.json", "cannot store the calibration");
}
