/* Announcing a job: the spec, the queues, the marker, in this order.  See job_setup.h.
 *
 * 1. The spec is put first, and only if absent: it is the job.  Nothing of the job is in the store before it, so an
 *    earlier crash leaves nothing, and if two submit the same name, one is refused before anything is mixed.  The files
 *    that a job brings along come next, before any worker looks for them.
 * 2. Then the queues are filled.  A crash here leaves a job that no worker sees by itself, since it has no marker: `job
 *    remove`, which goes by the spec, removes it, and `job resume` puts the marker.  Pieces that were never announced
 *    are made by idle workers, like those of a dead worker; pieces that are announced twice cost only time.
 * 3. The marker comes last: a worker that finds a job by it finds its work too.  The rows come after that, and workers
 *    wait for those that are not there yet; if the uploader crashes, anyone with the same data can finish the upload
 *    (job_setup_upload). */
#include <stdio.h>
#include <string.h>

#include "base/hex.h"
#include "base/memory.h"
#include "base/world.h"
#include "engine/store/job_admin.h"
#include "engine/store/job_gang.h"
#include "engine/store/job_keys.h"
#include "engine/store/job_setup.h"

enum { PUSHERS = 8 };

typedef struct announcing {
    shoal_store *store;
    const job_spec *spec;
    job_key map, reduce, last;
    int64_t deadline;
} announcing;

/* Announces a slice, or a piece above. */
static int push_piece(void *context, int64_t unit)
{
    const announcing *all = context;
    const job_tree *tree = job_spec_tree(all->spec, &all->spec->first->layout);
    int64_t piece = job_tree_of_unit(tree, unit);
    const char *queue = job_tree_is_slice(tree, piece) ? all->map.text
                        : piece + 1 < tree->pieces     ? all->reduce.text
                                                       : all->last.text;
    char text[24];
    int length = snprintf(text, sizeof text, "%lld", (long long)piece);
    return shoal_store_push(all->store, queue, text, (size_t)length, all->deadline);
}

int job_setup_open(shoal_store *store, const job_spec *spec, int64_t deadline)
{
    announcing all = {.store = store,
                      .spec = spec,
                      .map = job_key_of(spec->id, "map"),
                      .reduce = job_key_of(spec->id, "reduce"),
                      .last = job_key_of(spec->id, "last"),
                      .deadline = deadline};
    int threads = shoal_store_describe(store).wakes ? 1 : PUSHERS; /* threads pay only where there is a round trip */
    int status = job_gang_run(threads, job_tree_units(job_spec_tree(spec, &spec->first->layout)), push_piece, &all);
    return status == SHOAL_OK ? job_open(store, spec->id, deadline) : status;
}

static int fail_exists(shoal_store *store, const char *id)
{
    return shoal_fail(SHOAL_USAGE, "there is a job %s in %s already: choose another name, or remove it first", id,
                      shoal_store_describe(store).name);
}

/* Whether the spec that is there is this one: put by me, before an answer was lost, or by another who mends the
 * store. */
static int is_spec_there(bool *out, shoal_store *store, const job_spec *spec, int64_t deadline)
{
    shoal_blob blob = {0};
    unsigned char hash[BASE_HASH_SIZE] = {0};
    int status = shoal_store_get_framed(store, job_key_of(spec->id, "spec").text, JOB_KIND_SPEC, &blob, deadline);
    if (status == SHOAL_OK)
        base_hash_of(hash, blob.data, blob.size);
    shoal_blob_release(&blob);
    *out = status == SHOAL_OK && memcmp(hash, spec->sha256, BASE_HASH_SIZE) == 0;
    return status == SHOAL_ABSENT || status == SHOAL_BROKEN ? SHOAL_OK : status;
}

static int tell_made(const job_spec *spec, const void *bytes, size_t size, const shoal_job_options *options)
{
    char hash[BASE_HASH_HEX];
    if (!options || !options->made)
        return SHOAL_OK;
    base_hex_write(hash, spec->sha256, sizeof spec->sha256);
    const char *place = spec->source == JOB_FILE ? spec->place : spec->source == JOB_RANGES ? spec->store_url : NULL;
    const shoal_job_made made = {.id = spec->id,
                                 .spec = hash,
                                 .source = job_source_words[spec->source],
                                 .place = place,
                                 .bytes = bytes,
                                 .size = size};
    return options->made(options->made_context, &made);
}

/* SHOAL_OK also when the very same spec is there already.  The options, for who is told of it, may be NULL. */
static int put_spec(shoal_store *store, job_spec *spec, const shoal_job_options *options, int64_t deadline)
{
    void *bytes = NULL;
    size_t size = 0;
    bool mine = false;
    int status = job_spec_encode(&bytes, &size, spec);
    if (status == SHOAL_OK)
        status = tell_made(spec, bytes, size, options);
    if (status == SHOAL_OK)
        status = shoal_store_put_framed(store, job_key_of(spec->id, "spec").text, JOB_KIND_SPEC, bytes, size,
                                        SHOAL_NOTHING, NULL, deadline);
    base_free(&bytes);
    if (status == SHOAL_CONFLICT) {
        status = is_spec_there(&mine, store, spec, deadline);
        if (status == SHOAL_OK && !mine)
            status = fail_exists(store, spec->id);
    }
    return status;
}

int job_setup_announce(shoal_store *store, job_spec *spec, int64_t deadline)
{
    int status = put_spec(store, spec, NULL, deadline);
    return status == SHOAL_OK ? job_setup_open(store, spec, deadline) : status;
}

/* ---- submitting -------------------------------------------------------------------------------------------------- */

/* SHOAL_OK if the key exists, SHOAL_ABSENT if not. */
static int look_for_key(shoal_store *store, const char *key, int64_t deadline)
{
    shoal_blob blob = {0};
    int status = shoal_store_get_range(store, key, 0, 1, NULL, NULL, &blob, deadline);
    shoal_blob_release(&blob);
    return status;
}

/* Checked before hours of hashing; what others do meanwhile shows when the spec is put. */
static int check_unused(shoal_store *store, const char *id, int64_t deadline)
{
    int status = job_id_check(id);
    if (status == SHOAL_OK)
        status = look_for_key(store, job_key_of(id, "spec").text, deadline);
    if (status == SHOAL_OK)
        return fail_exists(store, id);
    if (status == SHOAL_ABSENT)
        status = look_for_key(store, job_key_gone(id).text, deadline);
    if (status == SHOAL_OK)
        return shoal_fail(SHOAL_USAGE,
                          "job %s was removed from %s not long ago, and its workers may still be there: choose "
                          "another name",
                          id, shoal_store_describe(store).name);
    return status == SHOAL_ABSENT ? SHOAL_OK : status;
}

int shoal_job_submit(char id[SHOAL_JOB_ID_BYTES], shoal_store *store, const shoal_algorithm *algorithm,
                     const void *config, shoal_data *data, const double *weights, const shoal_job_options *options)
{
    enum { PATIENCE = 300 };
    job_spec *spec = NULL;
    int status = SHOAL_OK;
    if (options && options->id)
        status = check_unused(store, options->id, shoal_after(PATIENCE));
    if (status == SHOAL_OK)
        status = job_setup_spec(&spec, store, algorithm, config, data, weights, options);
    snprintf(id, SHOAL_JOB_ID_BYTES, "%s", spec ? spec->id : ""); /* only now: options->id may be the same memory */
    if (status == SHOAL_OK)
        status = put_spec(store, spec, options, shoal_after(PATIENCE));
    if (status == SHOAL_OK && options && options->codes > 0)
        status = shoal_job_put_code(store, spec->id, options->code, options->codes, SHOAL_NEVER);
    if (status == SHOAL_OK)
        status = job_setup_open(store, spec, shoal_after(PATIENCE));
    if (status == SHOAL_OK)
        status = job_setup_upload(store, spec, data, weights, options ? options->stop : NULL, SHOAL_NEVER);
    job_spec_free(&spec);
    return status;
}
