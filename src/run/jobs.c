/* The store that a verb means, and the job in it.  See jobs.h. */
#include "jobs.h"

#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/path.h"
#include "process.h"

static const shoal_option rows[] = {
    {"store", 's', SHOAL_OPTION_TEXT, offsetof(run_jobs_settings, store), "URL",
     .help = "the store that the jobs are in: a folder, az://ACCOUNT/CONTAINER or s3://BUCKET (default: "
             "SHOAL_STORE, or a folder of this user)"},
    {"deadline", 0, SHOAL_OPTION_REAL, offsetof(run_jobs_settings, patience), "SECONDS",
     .help = "how long to retry a request that fails for a temporary reason", .fallback = "60", .least = 0.001},
    {0},
};
const shoal_option *const run_jobs_options = rows;

/* ---- where ------------------------------------------------------------------------------------------------------- */

static int state_path(char **out, const char *name)
{
    return base_user_path(out, BASE_STATE, name, "--store URL is needed");
}

/* The store that the environment names; NULL for none. */
static const char *usual_store(void)
{
    const char *usual = getenv("SHOAL_STORE");
    return usual && *usual ? usual : NULL;
}

int run_jobs_url(char **out, const char *given)
{
    const char *usual = usual_store();
    char *folder = NULL;
    if (given && !*given)
        return shoal_fail(SHOAL_USAGE, "--store needs the URL of a store");
    if (given || usual)
        return base_copy_text(out, given ? given : usual);
    int status = state_path(&folder, "jobs");
    if (status == SHOAL_OK)
        status = base_format(out, "dir:%s", folder);
    base_free(&folder);
    return status;
}

/* Makes the folders above a file, accessible to this user alone, as XDG_STATE_HOME's specification requires. */
static int make_jobs_folders(const char *path)
{
    int error = base_make_folders_above(path, 0700, NULL);
    return error ? shoal_fail_errno(SHOAL_SYSTEM, error, "can't make the folder of %s", path) : SHOAL_OK;
}

int run_jobs_state_path(char **out, const char *name)
{
    int status = state_path(out, name);
    if (status == SHOAL_OK && (status = make_jobs_folders(*out)) < 0)
        base_free(out);
    return status;
}

int run_jobs_open(run_jobs *out, const run_jobs_settings *settings, run_jobs_access access)
{
    *out = (run_jobs){.named = settings->store != NULL, .patience = settings->patience};
    int status = run_jobs_url(&out->url, settings->store);
    if (status == SHOAL_OK && strncmp(out->url, "mem:", 4) == 0)
        status = shoal_fail(SHOAL_USAGE,
                            "%s%s is the memory of this process, where nobody else finds a job: name a folder, "
                            "az://ACCOUNT/CONTAINER or s3://BUCKET",
                            out->named ? "" : "SHOAL_STORE: ", out->url);
    if (status < 0) {
        base_free(&out->url);
        return status;
    }
    shoal_store_options options = {.create = access == RUN_JOBS_CREATE && run_jobs_is_folder(out->url),
                                   .read_only = access == RUN_JOBS_READ};
    if (options.create && !out->named && strncmp(out->url, "dir:/", 5) == 0)
        status = make_jobs_folders(out->url + 4); /* those above it; the store makes the last one */
    if (status == SHOAL_OK)
        status = run_protect_secrets(out->url);
    if (status == SHOAL_OK)
        status = shoal_store_open(&out->store, out->url, &options, run_jobs_deadline(out));
    if (status == SHOAL_ABSENT && !out->named && !usual_store())
        status =
            shoal_fail(status, "there are no jobs yet in %s; --store or SHOAL_STORE names another store", out->url);
    else if (status < 0 && !out->named && usual_store()) /* a user who did not name it may not remember where it was
                                                          * named */
        status = shoal_fail(status, "SHOAL_STORE: %s", shoal_error());
    if (status < 0)
        run_jobs_close(out);
    return status;
}

void run_jobs_close(run_jobs *jobs)
{
    shoal_store_close(&jobs->store);
    base_free(&jobs->url);
}

int64_t run_jobs_deadline(const run_jobs *jobs)
{
    return shoal_after(jobs->patience > 0 ? jobs->patience : 60);
}

/* ---- which ------------------------------------------------------------------------------------------------------- */

static bool is_start_or_end(const char *text, const char *id)
{
    size_t length = strlen(text), whole = strlen(id);
    return length <= whole && (strncmp(id, text, length) == 0 || strcmp(id + whole - length, text) == 0);
}

static int choose_job(char id[SHOAL_JOB_ID_BYTES], const shoal_job_id *ids, int64_t count, const char *text,
                      const char *url)
{
    const char *found = NULL, *other = NULL;
    for (int64_t i = 0; i < count; i++) {
        if (text && strcmp(ids[i].text, text) == 0) {
            found = ids[i].text;
            other = NULL;
            break;
        }
        if (!text || is_start_or_end(text, ids[i].text)) {
            other = found;
            found = ids[i].text;
        }
    }
    if (found && !other) {
        strcpy(id, found);
        return SHOAL_OK;
    }
    if (!text && !found)
        return shoal_fail(SHOAL_ABSENT, "there are no jobs in %s", url);
    if (!text)
        return shoal_fail(SHOAL_USAGE, "there are %lld jobs in %s: name one of them, such as %s", (long long)count, url,
                          found);
    if (!found)
        return shoal_fail(SHOAL_ABSENT, "there is no job %s in %s", text, url);
    return shoal_fail(SHOAL_USAGE, "'%s' is ambiguous: matches %s and %s", text, other, found);
}

int run_jobs_find(char id[SHOAL_JOB_ID_BYTES], const run_jobs *jobs, const char *text)
{
    shoal_job_id *ids = NULL;
    int64_t count = 0;
    if (text && !*text)
        return shoal_fail(SHOAL_USAGE, "the name of a job is missing");
    int status = shoal_job_list(&ids, &count, jobs->store, run_jobs_deadline(jobs));
    if (status == SHOAL_OK)
        status = choose_job(id, ids, count, text, jobs->url);
    shoal_job_list_free(&ids);
    return status;
}

int run_jobs_find_running(char id[SHOAL_JOB_ID_BYTES], const run_jobs *jobs, const char *text)
{
    shoal_job_id *ids = NULL;
    int64_t count = 0, running = 0;
    int status = text ? SHOAL_OK : shoal_job_list(&ids, &count, jobs->store, run_jobs_deadline(jobs));
    for (int64_t i = 0; i < count && status == SHOAL_OK && count > 1; i++) {
        shoal_job *job = NULL;
        if (shoal_job_describe(&job, jobs->store, ids[i].text, 0, run_jobs_deadline(jobs)) == SHOAL_OK &&
            job->state == SHOAL_JOB_RUNNING && running++ == 0)
            strcpy(id, ids[i].text);
        shoal_job_free(&job);
    }
    shoal_job_list_free(&ids);
    return status < 0 || running == 1 ? status : run_jobs_find(id, jobs, text);
}

int run_jobs_open_one(run_jobs *out, char id[SHOAL_JOB_ID_BYTES], const run_jobs_settings *settings,
                      run_jobs_access access, const char *text)
{
    int status = run_jobs_open(out, settings, access);
    return status == SHOAL_OK ? run_jobs_find(id, out, text) : status;
}

/* ---- what to type ------------------------------------------------------------------------------------------------ */

static bool needs_quotes(const char *text)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
    for (const char *c = text; *c; c++)
        if (!strchr(plain, *c) && !(*c & 0x80))
            return true;
    return !*text;
}

int run_quote(char **out, const char *text)
{
    char *at = NULL;
    if (!needs_quotes(text))
        return base_copy_text(out, text);
    int status = base_alloc(out, strlen(text) + 1, 4, "a command"); /* each may become '\'' */
    if (status < 0)
        return status;
    at = *out;
    *at++ = '\'';
    for (; *text; text++)
        at = *text == '\'' ? stpcpy(at, "'\\''") : (*at = *text, at + 1);
    *at = '\'';
    return SHOAL_OK;
}

int run_jobs_command(char **out, const run_jobs *jobs, const char *verb, const char *id)
{
    char *url = NULL;
    int status = jobs->named ? run_quote(&url, jobs->url) : SHOAL_OK;
    if (status == SHOAL_OK)
        status = base_format(out, "shoal job %s %s%s%s", verb, id, url ? " --store " : "", url ? url : "");
    base_free(&url);
    return status;
}

int64_t run_jobs_count_below(const run_jobs *jobs, const char *id, const char *name)
{
    char prefix[SHOAL_JOB_ID_BYTES + 32];
    shoal_listing page = {0};
    int64_t count = 0;
    snprintf(prefix, sizeof prefix, "jobs/%s/%s/", id, name);
    do {
        if (shoal_store_list(jobs->store, prefix, NULL, &page, run_jobs_deadline(jobs)) < 0) {
            count = -1;
            break;
        }
        count += (int64_t)page.count;
    } while (page.more);
    shoal_listing_release(&page);
    return count;
}
