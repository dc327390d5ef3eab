/* Blobs of a job.  See job_blobs.h.
 *
 * What maps put lies below the job, where every worker may write anyway, so no spec can make a worker write elsewhere.
 * What they get is read under the same rules as rows (job_roots.h). */
#include "engine/store/job_blobs.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/memory.h"
#include "engine/store/job_keys.h"

/* A file that is not there is told apart from one that can't be read for now. */
static int open_file_below(void *roots, int *out, const char *path)
{
    int status = job_roots_open_file(out, roots, path);
    if (status == SHOAL_SYSTEM && access(path, F_OK) < 0 && (errno == ENOENT || errno == ENOTDIR))
        status = shoal_fail(SHOAL_ABSENT, "%s: there is no such file", path);
    return status;
}

/* Workers that can't reach other stores have no blobs there: for them those are put into the job's own. */
static int open_elsewhere(job_blobs *out, const job_spec *spec, shoal_store *own, const shoal_worker_options *options,
                          double patience)
{
    engine_blobs_in in = {.patience = patience, .owned = true};
    char *key = NULL;
    int status = job_roots_open_store(&in.store, &key, out->roots, spec->from, own, options->spec != NULL,
                                      shoal_after(patience));
    if (status < 0)
        return shoal_fail(status, "job %s: %s", spec->id, shoal_error());
    in.prefix = key;
    status = engine_blobs_in_store(&out->from, &in);
    shoal_text_free(&key);
    return status;
}

static int open_from(job_blobs *out, const job_spec *spec, shoal_store *store, const shoal_worker_options *options,
                     double patience)
{
    const job_key prefix = job_key_of(spec->id, "from/");
    if (!spec->from)
        return SHOAL_OK;
    if (spec->from[0] == '\0')
        return engine_blobs_in_store(
            &out->from,
            &(engine_blobs_in){
                .store = store, .prefix = prefix.text, .patience = patience, .hashed = true, .awaited = true});
    int status = job_roots_new(&out->roots, options->data_root);
    if (status < 0)
        return status;
    return spec->from[0] == '/' ? engine_blobs_in_folder(&out->from, spec->from, open_file_below, out->roots)
                                : open_elsewhere(out, spec, store, options, patience);
}

static int open_to(engine_blobs **out, const char *id, shoal_store *store, double patience)
{
    const job_key prefix = job_key_of(id, "to/");
    return engine_blobs_in_store(out, &(engine_blobs_in){.store = store, .prefix = prefix.text, .patience = patience});
}

int job_blobs_open(job_blobs *out, const job_spec *spec, shoal_store *store, const shoal_worker_options *options,
                   double patience)
{
    *out = (job_blobs){0};
    int status = open_from(out, spec, store, options, patience);
    if (status == SHOAL_OK && spec->puts)
        status = open_to(&out->to, spec->id, store, patience);
    if (status < 0)
        job_blobs_release(out);
    return status;
}

void job_blobs_release(job_blobs *blobs)
{
    engine_blobs_free(&blobs->from);
    engine_blobs_free(&blobs->to);
    job_roots_free(&blobs->roots);
}

/* ---- from outside ------------------------------------------------------------------------------------------------ */

int shoal_job_put_blob(shoal_store *store, const char *id, const char *name, const void *bytes, size_t size,
                       int64_t deadline)
{
    char *key = NULL;
    int status = job_id_check(id);
    if (status == SHOAL_OK)
        status = engine_blobs_hashed_key(&key, job_key_of(id, "from/").text, name);
    if (status == SHOAL_OK)
        status = shoal_store_put(store, key, bytes, size, NULL, NULL, deadline);
    base_free(&key);
    return status;
}

int shoal_job_blobs(const shoal_blobs **out, shoal_store *store, const char *id, double patience)
{
    engine_blobs *blobs = NULL;
    int status = job_id_check(id);
    if (status == SHOAL_OK)
        status = open_to(&blobs, id, store, patience);
    *out = engine_blobs_table(blobs);
    return status;
}
