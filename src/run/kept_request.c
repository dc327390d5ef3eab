/* What a job was submitted with.  See kept_request.h. */
#include "kept_request.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "arrange.h"
#include "base/file.h"
#include "base/hex.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/path.h"
#include "data/data_address.h"
#include "engine/store/job_code.h"
#include "engine/store/job_roots.h"
#include "target.h"

/* ---- a request as JSON ------------------------------------------------------------------------------------------ */

/* The same file from any folder. */
static json_t *json_path(const char *path)
{
    char *here = path[0] == '/' || strcmp(path, "-") == 0 || run_is_in_store(path) || strncmp(path, "gen:", 4) == 0
                     ? NULL
                     : getcwd(NULL, 0);
    char *whole = NULL;
    json_t *text = NULL;
    if (base_format(&whole, "%s%s%s", here ? here : "", here ? "/" : "", path) == SHOAL_OK)
        text = base_json_text(whole);
    base_free(&whole);
    free(here);
    return text;
}

static void json_arrangement(json_t **object, const shoal_request *request)
{
    const learn_arrangement how = run_arrangement_of(request);
    if (how.held)
        base_json_put(object, "held", json_path(how.held));
    if (how.held && run_target_file(how.held_target))
        base_json_put(object, "held_target_file", json_path(how.held_target));
    else if (how.held && how.held_target)
        base_json_put(object, "held_target", base_json_text(how.held_target));
    if (how.shuffle)
        base_json_put(object, "shuffle_rows", json_true());
}

/* A target that is a column is kept by its name or number, and one that is a file by its path. */
static json_t *json_data(const shoal_outcome *outcome)
{
    const shoal_request *request = outcome->request;
    const char *target = request->inputs.target;
    json_t *object = base_json_options(run_data_options, &request->reading);
    if (request->data)
        base_json_put(&object, "path", json_path(request->data));
    if (request->inputs.weights)
        base_json_put(&object, "weights", json_path(request->inputs.weights));
    if (target && outcome->columns_used.target_file)
        base_json_put(&object, "target_file", json_path(target));
    else if (target)
        base_json_put(&object, "target", base_json_text(target));
    json_arrangement(&object, request);
    return object;
}

static json_t *json_outputs(const shoal_request *request)
{
    json_t *object = json_object();
    run_files outputs;
    run_request_outputs(&outputs, request);
    for (const run_file *output = outputs.file; output->name; output++)
        if (output->path)
            base_json_put(&object, output->name + strlen("--"), json_path(output->path));
    if (request->blobs.to)
        base_json_put(&object, "blobs-to", json_path(request->blobs.to));
    if (request->trace.tensorboard)
        base_json_put(&object, "tensorboard", json_path(request->trace.tensorboard));
    return object;
}

/* A spec is read by every worker. */
enum { SETTINGS_MOST = 16 << 20 };

int run_kept_text(char **out, const shoal_outcome *outcome)
{
    const shoal_request *request = outcome->request;
    const run_workers_options *workers = &request->workers;
    const char *ssh = workers->ssh ? workers->ssh : getenv("SHOAL_SSH");
    json_t *object = json_object();
    base_json_put(&object, "options", base_json_options(outcome->algorithm->options, outcome->config));
    base_json_put(&object, "data", json_data(outcome));
    base_json_put(&object, "outputs", json_outputs(request));
    if (request->force)
        base_json_put(&object, "force", json_true());
    if (request->blobs.from)
        base_json_put(&object, "blobs-from", json_path(request->blobs.from));
    if (request->picture.shape || request->picture.columns || request->picture.scale)
        base_json_put(&object, "more", base_json_options(data_picture_options, &request->picture));
    if (request->plot.columns)
        base_json_put(&object, "plot", base_json_options(run_plot_options, &request->plot));
    if (learn_schema_says_more(&outcome->columns_used.schema))
        base_json_put(&object, "schema", learn_schema_json(&outcome->columns_used.schema));
    if (workers->workers.count > 0)
        base_json_put(&object, "workers", base_json_texts(workers->workers.text, workers->workers.count));
    if (ssh && workers->workers.count > 0) /* so that whoever resumes it reaches the same hosts */
        base_json_put(&object, "ssh", base_json_text(ssh));
    if (workers->roles)
        base_json_put(&object, "roles", base_json_text(workers->roles));
    char *text = object ? json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;
    json_decref(object);
    int status = text ? base_copy_text(out, text) : shoal_fail(SHOAL_MEMORY, "out of memory for the job's settings");
    if (status == SHOAL_OK && strlen(text) > SETTINGS_MOST) {
        base_free(out);
        status = shoal_fail(SHOAL_USAGE,
                            "%s: what a job keeps of its columns (names, means) takes %zu bytes, more than %d; use "
                            "fewer --columns, or data without names",
                            outcome->data_name, strlen(text), SETTINGS_MOST);
    }
    free(text);
    return status;
}

/* ---- and back ---------------------------------------------------------------------------------------------------- */

static const char *text_in(const json_t *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

const char *run_kept_blobs_from(const run_kept_request *kept)
{
    return kept->own ? text_in(kept->asked, "blobs-from") : NULL;
}

/* Whether an output, or a list of what maps put, can't be written without the options that the job was submitted with.
 */
static bool needs_options(const shoal_request *request)
{
    if (request->face->end_blobs)
        return true;
    for (int i = 0; request->face->outputs[i].name; i++) {
        learn_output_kind kind = request->face->outputs[i].kind;
        if (request->output[i] && (kind == LEARN_MODEL || kind == LEARN_APPLIED || kind == LEARN_PLOT))
            return true;
    }
    return false;
}

int run_kept_fill(shoal_request *request, const run_kept_request *kept, const char *id)
{
    const json_t *data = json_object_get(kept->asked, "data"), *outputs = json_object_get(kept->asked, "outputs"),
                 *more = json_object_get(kept->asked, "more"), *plot = json_object_get(kept->asked, "plot"),
                 *options = json_object_get(kept->asked, "options");
    request->data = text_in(data, "path");
    request->inputs.weights = text_in(data, "weights");
    request->inputs.target = text_in(data, "target_file");
    request->inputs.target_is_column = !request->inputs.target; /* files are read only where leave_data looked */
    if (!request->inputs.target)
        request->inputs.target = text_in(data, "target");
    request->inputs.of_job = true;
    request->inputs.held = text_in(data, "held");
    request->inputs.held_target = text_in(data, "held_target_file");
    request->inputs.held_target_is_column = !request->inputs.held_target;
    if (!request->inputs.held_target)
        request->inputs.held_target = text_in(data, "held_target");
    request->inputs.shuffle_rows = json_is_true(json_object_get(data, "shuffle_rows"));
    for (int i = 0; request->face->outputs[i].name; i++)
        request->output[i] = text_in(outputs, request->face->outputs[i].name);
    request->force = kept->own && json_is_true(json_object_get(kept->asked, "force"));
    request->blobs.to = text_in(outputs, "blobs-to");
    request->trace.trace = text_in(outputs, "trace");
    request->trace.tensorboard = text_in(outputs, "tensorboard");
    int status = base_json_take_options(&request->reading, run_data_options, data);
    if (status == SHOAL_OK)
        status = base_json_take_options(&request->picture, data_picture_options, more);
    if (status == SHOAL_OK)
        status = base_json_take_options(&request->plot, run_plot_options, plot);
    if (status == SHOAL_OK)
        status = base_json_take_options(request->config, request->algorithm->options, options);
    if (status == SHOAL_OK || !needs_options(request)) /* what can't be read stays at its default */
        return SHOAL_OK;
    return shoal_fail(status, "job %s: what it was submitted with can't be read: %s", id, shoal_error());
}

/* ---- the note ---------------------------------------------------------------------------------------------------- */

/* A text as JSON has it, with its quotes. */
static int spell_json(char **out, const char *text)
{
    json_t *value = base_json_text(text);
    char *spelt = value ? json_dumps(value, JSON_ENCODE_ANY) : NULL;
    int status = spelt ? base_copy_text(out, spelt) : shoal_fail(SHOAL_MEMORY, "out of memory for a note");
    free(spelt);
    json_decref(value);
    return status;
}

int run_kept_write(const run_jobs *jobs, const char *id, const char *spec, const char *asked)
{
    char *path = NULL, *place = NULL, *store = NULL, *text = NULL;
    base_output *output = NULL;
    int status = run_jobs_file_path(&path, id, "request");
    if (status == SHOAL_OK)
        status = run_jobs_place(&place, jobs->url);
    if (status == SHOAL_OK)
        status = spell_json(&store, place);
    if (status == SHOAL_OK)
        status = base_format(&text, "{\"spec\": \"%s\", \"store\": %s, \"asked\": %s}\n", spec, store, asked);
    if (status == SHOAL_OK)
        status = base_output_open(&output, path);
    if (status == SHOAL_OK)
        status = base_output_write(output, text, strlen(text));
    if (status == SHOAL_OK)
        status = base_output_commit(&output);
    base_output_discard(&output);
    base_free(&text);
    base_free(&store);
    base_free(&place);
    base_free(&path);
    return status;
}

/* NULL when there is none. */
static json_t *read_note(const char *id)
{
    char *path = NULL;
    json_t *note = run_jobs_file_path(&path, id, "request") == SHOAL_OK ? json_load_file(path, 0, NULL) : NULL;
    base_free(&path);
    return note;
}

static int fail_replaced(const char *id)
{
    return shoal_fail(SHOAL_DENIED, "job %s is not what it was: someone has replaced its spec in the store", id);
}

int run_kept_spec(job_spec **out, const run_jobs *jobs, const char *id, const char *expected)
{
    char hash[BASE_HASH_HEX];
    int status = job_spec_get(out, jobs->store, id, run_jobs_deadline(jobs));
    if (status < 0)
        return status;
    base_hex_write(hash, (*out)->sha256, sizeof(*out)->sha256);
    if (strcmp(hash, expected) == 0)
        return SHOAL_OK;
    job_spec_free(out);
    return fail_replaced(id);
}

int run_kept_find(run_kept_request *out, const shoal_job *about)
{
    json_t *note = read_note(about->id);
    const char *spec = json_string_value(json_object_get(note, "spec"));
    int status = SHOAL_OK;
    *out = (run_kept_request){.own = spec != NULL};
    if (spec && strcmp(spec, about->spec) != 0)
        status = fail_replaced(about->id);
    else if (spec)
        out->asked = json_incref(json_object_get(note, "asked"));
    else if (about->settings)
        out->asked = json_loads(about->settings, 0, NULL);
    json_decref(note);
    return status;
}

void run_kept_release(run_kept_request *kept)
{
    json_decref(kept->asked);
    kept->asked = NULL;
}

/* ---- what is left alone ------------------------------------------------------------------------------------------ */

/* Names the files of a job that someone else submitted, and takes them out: whoever may write to a store must not
 * say which files of this user are replaced. */
static int leave_outputs(json_t *asked, const shoal_watcher *watch)
{
    json_t *outputs = json_object_get(asked, "outputs"), *path;
    const char *name;
    char *line = NULL;
    int status = SHOAL_OK;
    json_object_foreach(outputs, name, path)
    {
        char *longer = NULL;
        if (!json_is_string(path) || status < 0)
            continue;
        status = base_format(&longer, "%s%s%s",
                             line ? line
                                  : "not written, since the job was submitted elsewhere, unless --write-outputs is "
                                    "given: ",
                             line ? ", " : "", json_string_value(path));
        base_free(&line);
        line = longer;
    }
    if (line && watch->warn)
        watch->warn(watch->context, line);
    json_object_clear(outputs);
    base_free(&line);
    return status;
}

/* Takes out a setting of workers; it is mentioned where workers are started without one. */
static int leave_setting(json_t *asked, const char *name, bool mention, const shoal_watcher *watch)
{
    const char *text = json_string_value(json_object_get(asked, name));
    char *line = NULL;
    int status = SHOAL_OK;
    if (text && mention && watch->warn) {
        status = base_format(
            &line, "ignored, since the job was submitted elsewhere, unless you give it yourself: --%s %s", name, text);
        if (status == SHOAL_OK)
            watch->warn(watch->context, line);
        base_free(&line);
    }
    json_object_del(asked, name);
    return status;
}

/* ---- workers and code -------------------------------------------------------------------------------------------- */

/* " --workers 'slurm:4?program=/tmp/x' --workers ..." */
static int spell_workers(char **out, const json_t *list)
{
    int status = base_copy_text(out, "");
    const json_t *spec;
    size_t i;
    json_array_foreach(list, i, spec)
    {
        char *word = NULL, *longer = NULL;
        if (status < 0 || !json_is_string(spec))
            continue;
        status = run_quote(&word, json_string_value(spec));
        if (status == SHOAL_OK)
            status = base_format(&longer, "%s --workers %s", *out, word);
        base_free(&word);
        if (status == SHOAL_OK) {
            base_free(out);
            *out = longer;
        }
    }
    return status;
}

static int refuse_workers(json_t *asked, const shoal_job *about, const run_workers_options *allowed)
{
    char *words = NULL;
    int status = SHOAL_OK;
    bool needed = allowed->workers.count == 0 && about->state != SHOAL_JOB_DONE;
    if (needed && json_array_size(json_object_get(asked, "workers")) > 0) {
        status = spell_workers(&words, json_object_get(asked, "workers"));
        if (status == SHOAL_OK)
            status = shoal_fail(SHOAL_DENIED,
                                "job %s was submitted elsewhere and asks for%s; to start workers, give --workers "
                                "yourself, or --workers none to wait for those of others",
                                about->id, words);
    }
    json_object_del(asked, "workers");
    base_free(&words);
    return status;
}

static bool may_run(const shoal_job *about, const char *allow_code)
{
    bool allowed = true;
    for (int i = 0; i < about->codes; i++)
        allowed = allowed && allow_code && job_code_allowed(allow_code, about->code[i].sha256);
    return allowed;
}

/* ---- code and rows ----------------------------------------------------------------------------------------------- */

/* Rows that are generated lie nowhere, and those in the job's own store are where this user said. */
static int try_reading(const char *place, bool in_store, const run_jobs *jobs, const job_roots *roots)
{
    shoal_store *store = NULL;
    struct stat about;
    char *key = NULL, *path = NULL;
    int file = -1;
    if (strncmp(place, "gen:", 4) == 0)
        return SHOAL_OK;
    int status = data_address_file(&path, place);
    if (status < 0)
        return status;
    if (in_store)
        status = job_roots_open_store(&store, &key, roots, place, jobs->store, false, run_jobs_deadline(jobs));
    else if (stat(path, &about) < 0) /* no option brings it back */
        status = shoal_fail_errno(SHOAL_SYSTEM, errno, "%s: can't read", place);
    else
        status = job_roots_open_file(&file, roots, path);
    base_free(&path);
    shoal_store_close(&store);
    shoal_text_free(&key);
    if (file >= 0)
        close(file);
    return status;
}

int run_kept_root(char **out, const char *place)
{
    char *folder = NULL, *file = NULL;
    struct stat about;
    int status = shoal_store_url_folder(&folder, place);
    if (status == SHOAL_OK && !folder)
        status = data_address_file(&file, place);
    while (folder && strrchr(folder, '/') > folder && (stat(folder, &about) < 0 || !S_ISDIR(about.st_mode)))
        *strrchr(folder, '/') = '\0'; /* what lies in a folder store is no file */
    if (status == SHOAL_OK)
        status = run_quote(out, folder ? folder : file);
    base_free(&file);
    shoal_text_free(&folder);
    return status;
}

/* What workers that are started here would read besides the job's own store: their rows, and blobs beside them. */
typedef struct places {
    const char *place[2];
    bool in_store[2];
    int count;
} places;

static places places_of(const job_spec *spec)
{
    places of = {0};
    if (spec->source == JOB_FILE || (spec->source == JOB_RANGES && spec->store_url)) {
        of.in_store[of.count] = spec->source == JOB_RANGES;
        of.place[of.count++] = spec->source == JOB_FILE ? spec->place : spec->store_url;
    }
    if (spec->from && spec->from[0]) {
        of.in_store[of.count] = spec->from[0] != '/';
        of.place[of.count++] = spec->from;
    }
    return of;
}

/* "A,B": what --data-root has to be for all of them; NULL for none. */
static int list_roots(char **out, const places *of)
{
    int status = SHOAL_OK;
    for (int i = 0; i < of->count && status == SHOAL_OK; i++) {
        char *root = NULL, *longer = NULL;
        status = run_kept_root(&root, of->place[i]);
        if (status == SHOAL_OK)
            status = base_format(&longer, "%s%s%s", *out ? *out : "", *out ? "," : "", root);
        base_free(&root);
        base_free(out);
        *out = longer;
    }
    return status;
}

/* Leaves of the places those that may not be read. */
static int keep_refused(places *of, const run_jobs *jobs, const shoal_job *about, const job_roots *roots)
{
    int kept = 0;
    for (int i = 0; i < of->count; i++) {
        int read = try_reading(of->place[i], of->in_store[i], jobs, roots);
        if (read == SHOAL_DENIED) {
            of->in_store[kept] = of->in_store[i];
            of->place[kept++] = of->place[i];
        } else if (read < 0 && !(read == SHOAL_INVALID && base_path_is_folder(of->place[i]))) {
            return shoal_fail(read, "job %s: %s", about->id, shoal_error());
        }
    }
    of->count = kept;
    return SHOAL_OK;
}

/* All that workers would do which is not allowed, in one sentence, so that it can be allowed in one go. */
static int refuse_work(const run_jobs *jobs, const shoal_job *about, const char *allow_code, const job_roots *roots)
{
    job_spec *spec = NULL;
    char *hashes = NULL, *root = NULL;
    places of = {0};
    int status = run_kept_spec(&spec, jobs, about->id, about->spec);
    if (status == SHOAL_OK) {
        of = places_of(spec);
        status = keep_refused(&of, jobs, about, roots);
    }
    if (status == SHOAL_OK && !may_run(about, allow_code))
        status = run_code_hashes(&hashes, about);
    if (status == SHOAL_OK)
        status = list_roots(&root, &of);
    if (status == SHOAL_OK && (hashes || root))
        status =
            shoal_fail(SHOAL_DENIED, "job %s was submitted elsewhere and %s%s%s%s%s%s; to allow that, give%s%s%s%s",
                       about->id, hashes ? "brings code, which `shoal job show` lists" : "",
                       hashes && root ? ", and " : "", root ? "its workers read " : "", root ? of.place[0] : "",
                       of.count > 1 ? " and " : "", of.count > 1 ? of.place[1] : "", hashes ? " --allow-code " : "",
                       hashes ? hashes : "", root ? " --data-root " : "", root ? root : "");
    base_free(&root);
    base_free(&hashes);
    job_spec_free(&spec);
    return status;
}

/* The files whose rows this process may have to read again: to go on with an upload, to compute --features.  What
 * may not be read is kept as "refused", for the sentence once it is needed. */
static void leave_data(json_t *asked, const run_jobs *jobs, const job_roots *roots)
{
    static const char *const names[] = {"path", "weights", "target_file", "held", "held_target_file"};
    json_t *data = json_object_get(asked, "data"), *refused = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && !refused; i++) {
        json_t *path = json_object_get(data, names[i]);
        const char *text = json_string_value(path);
        if (text && try_reading(text, run_is_in_store(text), jobs, roots) == SHOAL_DENIED)
            refused = path;
    }
    if (refused)
        json_object_set(data, "refused", refused);
    else
        json_object_del(data, "refused");
}

static int fail_refused(const char *id, const char *place)
{
    char *root = NULL;
    int status = run_kept_root(&root, place);
    if (status == SHOAL_OK)
        status = shoal_fail(SHOAL_DENIED,
                            "job %s was submitted elsewhere and its rows are to be read from %s; to allow that, give "
                            "--data-root %s",
                            id, place, root);
    base_free(&root);
    return status;
}

int run_kept_may_load(const run_kept_request *kept, const char *id)
{
    const json_t *data = json_object_get(kept->asked, "data");
    const char *refused = json_string_value(json_object_get(data, "refused"));
    if (refused)
        return fail_refused(id, refused);
    if (!json_string_value(json_object_get(data, "path")))
        return shoal_fail(SHOAL_STOPPED, "nothing says where the rows of job %s are", id);
    return SHOAL_OK;
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

int run_kept_restrict(run_kept_request *kept, const run_jobs *jobs, const shoal_job *about,
                      const run_workers_options *allowed, const shoal_watcher *watch)
{
    bool starts = allowed->workers.count > 0 && !run_workers_are_none(allowed) && about->state != SHOAL_JOB_DONE;
    job_roots *roots = NULL;
    if (kept->own)
        return SHOAL_OK;
    int status = job_roots_new(&roots, allowed->data_root);
    if (status == SHOAL_OK && !allowed->write_outputs)
        status = leave_outputs(kept->asked, watch);
    if (status == SHOAL_OK)
        status = leave_setting(kept->asked, "ssh", starts && !allowed->ssh, watch);
    if (status == SHOAL_OK)
        status = leave_setting(kept->asked, "roles", starts && !allowed->roles, watch);
    if (status == SHOAL_OK) {
        leave_data(kept->asked, jobs, roots);
        status = refuse_workers(kept->asked, about, allowed);
    }
    if (status == SHOAL_OK && starts)
        status = refuse_work(jobs, about, allowed->allow_code, roots);
    job_roots_free(&roots);
    return status;
}

int run_check_hashes(const char *text)
{
    for (const char *at = text; *at || at == text;) {
        size_t length = strcspn(at, ",");
        if (length != 64 || strspn(at, "0123456789abcdefABCDEF") < 64)
            return shoal_fail(
                SHOAL_USAGE,
                "--allow-code: '%s' should be SHA-256 hashes of 64 hexadecimal digits, separated by commas", text);
        at += length + (at[length] == ',');
    }
    return SHOAL_OK;
}

int run_code_hashes(char **out, const shoal_job *job)
{
    enum { EACH = sizeof job->code[0].sha256 }; /* one byte more than its digits: a comma, or the end */
    char *text = NULL;
    int status = base_alloc(&text, (size_t)job->codes * EACH + 1, 1, "the hashes of the code");
    for (int i = 0; i < job->codes && status == SHOAL_OK; i++)
        snprintf(text + strlen(text), EACH + 1, "%s%s", i > 0 ? "," : "", job->code[i].sha256);
    *out = text;
    return status;
}

/* What a worker has to be allowed to read: folders, and other stores than the job's; NULL for nothing. */
static int copy_worker_root(char **out, const run_jobs *jobs, const job_spec *spec)
{
    places of = places_of(spec);
    int status = SHOAL_OK, kept = 0;
    for (int i = 0; i < of.count && status == SHOAL_OK; i++) {
        bool own = false;
        if (of.in_store[i])
            status = shoal_store_url_is_below(&own, of.place[i], shoal_store_describe(jobs->store).name);
        if (!own)
            of.place[kept++] = of.place[i];
    }
    of.count = kept;
    return status == SHOAL_OK ? list_roots(out, &of) : status;
}

int run_worker_command(char **out, const run_jobs *jobs, const shoal_job *about)
{
    char *url = NULL, *root = NULL, *hashes = NULL;
    job_spec *spec = NULL;
    int status = run_kept_spec(&spec, jobs, about->id, about->spec);
    if (status == SHOAL_OK)
        status = copy_worker_root(&root, jobs, spec);
    if (status == SHOAL_OK)
        status = run_quote(&url, jobs->url);
    if (status == SHOAL_OK)
        status = run_code_hashes(&hashes, about);
    if (status == SHOAL_OK)
        status = base_format(out, "shoal worker --store %s --job %s%s%s%s%s", url, about->id,
                             root ? " --data-root " : "", root ? root : "", *hashes ? " --allow-code " : "", hashes);
    base_free(&hashes);
    base_free(&url);
    base_free(&root);
    job_spec_free(&spec);
    return status;
}

bool run_workers_are_none(const run_workers_options *workers)
{
    return workers->workers.count == 1 && strcmp(workers->workers.text[0], "none") == 0;
}
