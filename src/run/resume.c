/* Going on with jobs that are in a store.  See resume.h. */
#include "resume.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "arrange.h"
#include "base/memory.h"
#include "blobs.h"
#include "load.h"
#include "outputs.h"
#include "predicted.h"
#include "run.h"
#include "supervisor.h"
#include "kept_request.h"

/* ---- rows that were not uploaded --------------------------------------------------------------------------------- */

/* Whoever submitted the job may have died while it uploaded its rows. */
static int upload_missing(shoal_outcome *outcome, const shoal_job *about)
{
    const run_jobs *jobs = &outcome->jobs;
    bool whole =
        strcmp(about->source, "uploaded") != 0 || run_jobs_count_below(jobs, about->id, "data") >= about->slices;
    if (whole && (!about->shape.weighted || run_jobs_count_below(jobs, about->id, "weights") >= about->slices))
        return SHOAL_OK;
    int status = run_kept_may_load(outcome->kept, about->id);
    if (status == SHOAL_OK)
        status = run_load_alone(outcome);
    if (status == SHOAL_OK)
        status = shoal_job_upload(jobs->store, about->id, outcome->data, outcome->weights, outcome->request->watch.stop,
                                  SHOAL_NEVER);
    if (status < 0)
        status = shoal_fail(status, "job %s lacks rows that were to be uploaded: %s", about->id, shoal_error());
    return status;
}

/* Blobs come from the machine where the job was submitted, so that workers would wait for missing ones in vain.  Only
 * who submitted the job may be told which files to put into its store. */
static int upload_missing_blobs(const shoal_outcome *outcome, const shoal_job *about)
{
    job_spec *spec = NULL;
    int status = outcome->face->blob_of ? run_kept_spec(&spec, &outcome->jobs, about->id, about->spec) : SHOAL_OK;
    if (spec && status == SHOAL_OK)
        status = run_blobs_upload_missing(outcome, spec, run_kept_blobs_from(outcome->kept));
    job_spec_free(&spec);
    return status;
}

/* ---- the request ------------------------------------------------------------------------------------------------- */

/* What is about workers that are started here means nothing where none are. */
static int check_resume_options(const run_resume_options *options)
{
    const run_workers_options *workers = &options->workers;
    const bool kernel = options->place.kernel && strcmp(options->place.kernel, "auto") != 0;
    const char *given = options->place.threads > 0   ? "--threads"
                        : kernel                     ? "--kernel"
                        : workers->ssh               ? "--ssh"
                        : workers->roles             ? "--roles"
                        : workers->worker_memory > 0 ? "--worker-memory"
                                                     : NULL;
    if (run_workers_are_none(workers) && given)
        return shoal_fail(SHOAL_USAGE, "%s is about workers that are started here, and --workers none starts none",
                          given);
    return workers->allow_code ? run_check_hashes(workers->allow_code) : SHOAL_OK;
}

/* As many workers as the job was started with, unless whoever resumes it says otherwise. */
static int choose_workers(run_workers_options *workers, const shoal_outcome *outcome, const shoal_job *about)
{
    const json_t *asked = outcome->kept->asked, *before = json_object_get(asked, "workers"), *spec;
    size_t i;
    if (!workers->roles)
        workers->roles = json_string_value(json_object_get(asked, "roles"));
    if (!workers->ssh)
        workers->ssh = json_string_value(json_object_get(asked, "ssh"));
    if (workers->workers.count == 0) {
        workers->as_scaled = true;
        json_array_foreach(before, i, spec) if (json_is_string(spec) && workers->workers.count < SHOAL_TEXTS_MOST)
            workers->workers.text[workers->workers.count++] = json_string_value(spec);
    } else if (run_workers_are_none(workers)) {
        workers->workers.count = 0;
    }
    int status = run_workers_check(&(run_workers_options){
        .store = outcome->jobs.url, .workers = workers->workers, .roles = workers->roles, .aimed = true});
    if (about->state == SHOAL_JOB_DONE)
        workers->workers.count = 0; /* its outputs may still have to be written */
    return status;
}

/* Makes the request that the job was submitted with, as far as it counts. */
static int make_resuming_request(shoal_outcome **out, const shoal_job *about, const run_kept_request *kept,
                                 const run_resume_options *options)
{
    const shoal_algorithm *algorithm = learn_algorithm_find(about->algorithm);
    const learn_face *face = learn_face_of_algorithm(about->algorithm);
    shoal_request *request = NULL;
    if (options->learner && strcmp(options->learner, about->algorithm) != 0)
        return shoal_fail(SHOAL_USAGE, "job %s is one of %s, not of %s", about->id, about->algorithm, options->learner);
    if (!face || !algorithm)
        return shoal_fail(SHOAL_INVALID, "job %s needs the learner '%s', which this program does not have", about->id,
                          about->algorithm);
    size_t size =
        algorithm->config_size > face->algorithm->config_size ? algorithm->config_size : face->algorithm->config_size;
    int status = base_alloc(&request, 1, sizeof *request + size, "a request");
    if (status == SHOAL_OK)
        status = run_request_init(request, face);
    if (status < 0) {
        base_free(&request);
        return status;
    }
    request->algorithm = algorithm;
    request->place = options->place;
    request->workers = options->workers;
    request->workers.foreign = !kept->own;
    request->json = options->json;
    request->program = options->program;
    request->watch = options->watch;
    if (algorithm == face->algorithm)
        status = run_kept_fill(request, kept, about->id);
    request->force |= options->force;
    if (status == SHOAL_OK)
        status = run_outputs_check_names(request);
    if (status == SHOAL_OK)
        status = run_outcome_new(out, request);
    if (status < 0)
        shoal_request_free(&request);
    else
        (*out)->own = request;
    return status;
}

/* What the job's model is to remember of its columns; jobs of earlier versions kept nothing of that. */
static int take_schema(shoal_outcome *outcome, const shoal_job *about)
{
    learn_schema *schema = &outcome->columns_used.schema;
    const json_t *kept = json_object_get(outcome->kept->asked, "schema");
    const int64_t columns = about->shape.columns - (outcome->face->classes_most > 0);
    char name[SHOAL_JOB_ID_BYTES + 8];
    snprintf(name, sizeof name, "job %s", about->id);
    int status = kept ? learn_schema_take(schema, kept, name) : SHOAL_OK;
    if (status == SHOAL_OK && kept && schema->columns != columns) /* the store may say anything */
        status = shoal_fail(SHOAL_INVALID, "%s: a schema of %" PRId64 " columns, but rows of %" PRId64, name,
                            schema->columns, columns);
    return status;
}

/* What of the spec this process has to know. */
static int note_spec(shoal_outcome *outcome, const shoal_job *about)
{
    run_away *away = &outcome->away;
    job_spec *spec = NULL;
    snprintf(away->id, sizeof away->id, "%s", about->id);
    snprintf(away->spec, sizeof away->spec, "%s", about->spec);
    const char *held = run_arrangement_of(outcome->request).held;
    int status = run_note_data(outcome, about->data, about->shape.rows, about->shape.columns, about->shape.type);
    if (status == SHOAL_OK && held) {
        run_arrange_note(outcome, about->shape.held);
        status = base_copy_text(&outcome->held_name, held);
    }
    if (status == SHOAL_OK)
        status = run_kept_spec(&spec, &outcome->jobs, about->id, about->spec);
    if (status == SHOAL_OK)
        status = run_note_source(away, about->source,
                                 spec->source == JOB_FILE     ? spec->place
                                 : spec->source == JOB_RANGES ? spec->store_url
                                                              : NULL);
    job_spec_free(&spec);
    return status;
}

/* ---- going on ---------------------------------------------------------------------------------------------------- */

/* A job that is submitted without a word of what is to be written has its result in the store alone. */
static int end_job(shoal_outcome *outcome)
{
    outcome->away.bare = !run_is_learning(outcome) || !json_object_get(outcome->kept->asked, "outputs");
    return outcome->away.bare ? SHOAL_OK : run_finish(outcome);
}

static int go_on_with_job(shoal_outcome *outcome, const shoal_job *about)
{
    bool done = about->state == SHOAL_JOB_DONE;
    int status = choose_workers(&outcome->own->workers, outcome, about);
    if (status == SHOAL_OK)
        status = note_spec(outcome, about);
    if (status == SHOAL_OK)
        status = take_schema(outcome, about);
    if (status == SHOAL_OK && done) /* there is no work to be lost, so that nothing has to be written beside */
        status = run_outputs_check_old(outcome);
    if (status == SHOAL_OK && !done)
        status = shoal_job_resume(outcome->jobs.store, about->id, run_jobs_deadline(&outcome->jobs));
    if (status == SHOAL_OK && !done)
        status = upload_missing(outcome, about);
    if (status == SHOAL_OK && !done)
        status = upload_missing_blobs(outcome, about);
    if (status == SHOAL_OK)
        status = run_resumed(outcome);
    if (status < 0 || outcome->away.detached)
        return status;
    if (!done && outcome->kept->own)
        run_predicted_note(outcome);
    return end_job(outcome);
}

int run_resume(shoal_outcome **out, run_jobs *jobs, const char *id, const run_resume_options *options)
{
    shoal_job *about = NULL;
    run_kept_request *kept = NULL;
    *out = NULL;
    int status = check_resume_options(options);
    if (status == SHOAL_OK)
        status = base_alloc(&kept, 1, sizeof *kept, "a job");
    if (status == SHOAL_OK)
        status = shoal_job_describe(&about, jobs->store, id, 0, run_jobs_deadline(jobs));
    if (status == SHOAL_OK)
        status = run_kept_find(kept, about);
    if (status == SHOAL_OK)
        status = run_kept_restrict(kept, jobs, about, &options->workers, &options->watch);
    if (status == SHOAL_OK)
        status = make_resuming_request(out, about, kept, options);
    if (status == SHOAL_OK) {
        (*out)->jobs = *jobs;
        (*out)->kept = kept;
        *jobs = (run_jobs){0};
        kept = NULL;
        status = go_on_with_job(*out, about);
    }
    if (kept)
        run_kept_release(kept);
    base_free(&kept);
    shoal_job_free(&about);
    run_jobs_close(jobs);
    return status;
}

int shoal_request_resume(shoal_outcome **out, const shoal_request *request, const char *id)
{
    const run_jobs_settings where = {.store = request->workers.store};
    const run_resume_options options = {.learner = request->algorithm->name,
                                        .place = request->place,
                                        .workers = request->workers,
                                        .program = request->program,
                                        .watch = request->watch};
    run_jobs jobs = {0};
    char whole[SHOAL_JOB_ID_BYTES];
    *out = NULL;
    int status = run_jobs_open(&jobs, &where, RUN_JOBS_WRITE);
    if (status == SHOAL_OK)
        status = run_jobs_find(whole, &jobs, id);
    if (status == SHOAL_OK)
        return run_resume(out, &jobs, whole, &options);
    run_jobs_close(&jobs);
    return status;
}
