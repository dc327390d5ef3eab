/* What a job was submitted with.  See job_wish.h. */
#include "job_wish.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "engine/store/job_code.h"
#include "engine/store/job_roots.h"
#include "job_print.h"
#include "labels.h"

/* ---- the note ---------------------------------------------------------------------------------------------------- */

int cli_wish_write(const char *id, const char *spec, const char *asked)
{
    char *path = NULL, *text = NULL;
    base_output *output = NULL;
    int status = cli_jobs_file_path(&path, id, "wish");
    if (status == SHOAL_OK)
        status = base_format(&text, "{\"spec\": \"%s\", \"asked\": %s}\n", spec, asked);
    if (status == SHOAL_OK)
        status = base_output_open(&output, path);
    if (status == SHOAL_OK)
        status = base_output_write(output, text, strlen(text));
    if (status == SHOAL_OK)
        status = base_output_commit(&output);
    base_output_discard(&output);
    base_free(&text);
    base_free(&path);
    return status;
}

/* NULL when there is none. */
static json_t *read_note(const char *id)
{
    char *path = NULL;
    json_t *note = cli_jobs_file_path(&path, id, "wish") == SHOAL_OK ? json_load_file(path, 0, NULL) : NULL;
    base_free(&path);
    return note;
}

static int fail_replaced(const char *id)
{
    return shoal_fail(SHOAL_DENIED, "job %s is not what it was: someone has replaced its spec in the store", id);
}

int cli_wish_spec(job_spec **out, const cli_jobs *jobs, const char *id, const char *expected)
{
    char hash[JOB_HASH_HEX];
    int status = job_spec_get(out, jobs->store, id, cli_jobs_deadline(jobs));
    if (status < 0)
        return status;
    job_hex_write(hash, (*out)->sha256, sizeof(*out)->sha256);
    if (strcmp(hash, expected) == 0)
        return SHOAL_OK;
    job_spec_free(out);
    return fail_replaced(id);
}

int cli_wish_find(cli_wish *out, const shoal_job *about)
{
    json_t *note = read_note(about->id);
    const char *spec = json_string_value(json_object_get(note, "spec"));
    int status = SHOAL_OK;
    *out = (cli_wish){.own = spec != NULL};
    if (spec && strcmp(spec, about->spec) != 0)
        status = fail_replaced(about->id);
    else if (spec)
        out->asked = json_incref(json_object_get(note, "asked"));
    else if (about->settings)
        out->asked = json_loads(about->settings, 0, NULL);
    json_decref(note);
    return status;
}

void cli_wish_release(cli_wish *wish)
{
    json_decref(wish->asked);
    wish->asked = NULL;
}

/* ---- what is left alone ------------------------------------------------------------------------------------------ */

/* Names the files of a job that someone else submitted, and takes them out: whoever may write to a store must not
 * say which files of this user are replaced. */
static void leave_outputs(json_t *asked, bool quiet)
{
    json_t *outputs = json_object_get(asked, "outputs"), *path;
    const char *name,
        *before = "shoal: not written, since the job was submitted elsewhere, unless --write-outputs is given: ";
    json_object_foreach(outputs, name, path)
    {
        if (quiet || !json_is_string(path))
            continue;
        fputs(before, stderr);
        cli_put_text(stderr, json_string_value(path));
        before = ", ";
    }
    if (before[0] == ',')
        fputc('\n', stderr);
    json_object_clear(outputs);
}

/* Takes out a setting of workers; it is mentioned where workers are started without one. */
static void leave_setting(json_t *asked, const char *name, bool mention)
{
    const char *text = json_string_value(json_object_get(asked, name));
    if (text && mention) {
        fprintf(stderr, "shoal: ignored, since the job was submitted elsewhere, unless you give it yourself: --%s ",
                name);
        cli_put_text(stderr, text);
        fputc('\n', stderr);
    }
    json_object_del(asked, name);
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
        status = cli_quote(&word, json_string_value(spec));
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

static int refuse_workers(json_t *asked, const shoal_job *about, const cli_workers_settings *allowed)
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
static bool may_read(const char *place, bool in_store, const cli_jobs *jobs, const job_roots *roots)
{
    shoal_store *store = NULL;
    char *key = NULL;
    int file = -1, status = SHOAL_OK;
    if (strncmp(place, "gen:", 4) == 0)
        return true;
    if (in_store)
        status = job_roots_open_store(&store, &key, roots, place, jobs->store, false, cli_jobs_deadline(jobs));
    else
        status = job_roots_open_file(&file, roots, place);
    shoal_store_close(&store);
    shoal_text_free(&key);
    if (file >= 0)
        close(file);
    return status == SHOAL_OK;
}

int cli_wish_root(char **out, const char *place)
{
    char *folder = NULL;
    struct stat about;
    int status = shoal_store_url_folder(&folder, place);
    while (folder && strrchr(folder, '/') > folder && (stat(folder, &about) < 0 || !S_ISDIR(about.st_mode)))
        *strrchr(folder, '/') = '\0'; /* what lies in a folder store is no file */
    if (status == SHOAL_OK)
        status = cli_quote(out, folder ? folder : place);
    shoal_text_free(&folder);
    return status;
}

/* What workers that are started here would read: a file, or a blob of another store. */
static const char *place_of(const job_spec *spec)
{
    return spec->source == JOB_FILE ? spec->place : spec->source == JOB_RANGES ? spec->store_url : NULL;
}

/* All that workers would do which is not allowed, in one sentence, so that it can be allowed in one go. */
static int refuse_work(const cli_jobs *jobs, const shoal_job *about, const char *allow_code, const job_roots *roots)
{
    job_spec *spec = NULL;
    char *hashes = NULL, *root = NULL;
    const char *place = NULL;
    bool run = may_run(about, allow_code);
    int status = cli_wish_spec(&spec, jobs, about->id, about->spec);
    if (status == SHOAL_OK)
        place = place_of(spec);
    if (place && may_read(place, spec->source == JOB_RANGES, jobs, roots))
        place = NULL;
    if (status == SHOAL_OK && !run)
        status = cli_job_hashes(&hashes, about);
    if (status == SHOAL_OK && place)
        status = cli_wish_root(&root, place);
    if (status == SHOAL_OK && (hashes || place))
        status = shoal_fail(SHOAL_DENIED, "job %s was submitted elsewhere and %s%s%s%s; to allow that, give%s%s%s%s",
                            about->id, hashes ? "brings code, which `shoal job show` lists" : "",
                            hashes && place ? ", and " : "", place ? "its workers read " : "", place ? place : "",
                            hashes ? " --allow-code " : "", hashes ? hashes : "", place ? " --data-root " : "",
                            place ? root : "");
    base_free(&root);
    base_free(&hashes);
    job_spec_free(&spec);
    return status;
}

/* The files whose rows this process may have to read again: to go on with an upload, to compute --features.  What
 * may not be read is kept as "refused", for the sentence once it is needed. */
static void leave_data(json_t *asked, const cli_jobs *jobs, const job_roots *roots)
{
    static const char *const names[] = {"path", "weights", "labels"};
    json_t *data = json_object_get(asked, "data"), *refused = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && !refused; i++) {
        json_t *path = json_object_get(data, names[i]);
        const char *text = json_string_value(path);
        if (text && !may_read(text, cli_is_in_store(text), jobs, roots))
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
    int status = cli_wish_root(&root, place);
    if (status == SHOAL_OK)
        status = shoal_fail(SHOAL_DENIED,
                            "job %s was submitted elsewhere and its rows are to be read from %s; to allow that, give "
                            "--data-root %s",
                            id, place, root);
    base_free(&root);
    return status;
}

int cli_wish_load(cli_job *job, const json_t *asked)
{
    const json_t *data = json_object_get(asked, "data");
    const char *refused = json_string_value(json_object_get(data, "refused"));
    const char *path = json_string_value(json_object_get(data, "path"));
    const char *labels = json_string_value(json_object_get(data, "labels"));
    const shoal_data_options options = {.rows = json_integer_value(json_object_get(data, "rows")),
                                        .columns = json_integer_value(json_object_get(data, "cols")),
                                        .type = json_string_value(json_object_get(data, "type")),
                                        .drop_columns = json_string_value(json_object_get(data, "drop-column")),
                                        .memory = json_integer_value(json_object_get(data, "memory"))};
    if (refused)
        return fail_refused(job->away.id, refused);
    if (!path)
        return shoal_fail(SHOAL_STOPPED, "nothing says where the rows of job %s are", job->away.id);
    int status = cli_job_load(job, path, &options, json_string_value(json_object_get(data, "weights")));
    return status == SHOAL_OK && labels ? cli_labels_join(job, labels) : status;
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

int cli_wish_restrict(cli_wish *wish, const cli_jobs *jobs, const shoal_job *about, const cli_workers_settings *allowed,
                      bool quiet)
{
    bool none = allowed->workers.count == 1 && strcmp(allowed->workers.text[0], "none") == 0;
    bool starts = allowed->workers.count > 0 && !none && about->state != SHOAL_JOB_DONE;
    job_roots *roots = NULL;
    if (wish->own)
        return SHOAL_OK;
    int status = job_roots_new(&roots, allowed->data_root);
    if (status < 0)
        return status;
    if (!allowed->write_outputs)
        leave_outputs(wish->asked, quiet);
    leave_setting(wish->asked, "ssh", starts && !allowed->ssh && !quiet);
    leave_setting(wish->asked, "roles", starts && !allowed->roles && !quiet);
    leave_data(wish->asked, jobs, roots);
    status = refuse_workers(wish->asked, about, allowed);
    if (status == SHOAL_OK && starts)
        status = refuse_work(jobs, about, allowed->allow_code, roots);
    job_roots_free(&roots);
    return status;
}
