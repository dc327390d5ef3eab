/* Uploading the slices that workers can't reach otherwise: the set-up service.  See job_setup.h.
 *
 * Each missing slice is one message.  Every machine with the data takes messages until there are none, so that several
 * share the work; at the end each looks once more and puts what is still missing, so that lost messages, or messages
 * held by a dead machine, do no harm.  Blobs are put only if absent, and are plain rows. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/world.h"
#include "engine/store/job_gang.h"
#include "engine/store/job_keys.h"
#include "engine/store/job_setup.h"

enum { UPLOADERS = 8, CALL_SECONDS = 300, LEASE_LEAST = 60 };

typedef struct upload {
    shoal_store *store;
    const job_spec *spec;
    shoal_data *data;
    const double *weights;
    const volatile int *stop;
    int64_t deadline;
    job_key queue;
    _Atomic unsigned char *rows_there, *weights_there; /* for each slice */
    int64_t *missing;                                  /* slices, `count` of them */
    int64_t count;
    atomic_int failed; /* some uploader did, and the others need not continue */
} upload;

/* Until the caller's deadline, but never so long that it waits forever for a store that went away. */
static int64_t call_deadline(const upload *all)
{
    int64_t soon = shoal_after(CALL_SECONDS);
    return soon < all->deadline ? soon : all->deadline;
}

/* ---- one slice --------------------------------------------------------------------------------------------------- */

/* A conflict means that it is there already.  Whether it was mine when an answer is lost does not matter: whoever puts
 * again learns that one is there. */
static int put_if_absent(const upload *all, const char *key, const void *bytes, size_t size)
{
    int status = SHOAL_UNKNOWN;
    for (int i = 0; i < 5 && status == SHOAL_UNKNOWN; i++)
        status = shoal_store_put(all->store, key, bytes, size, SHOAL_NOTHING, NULL, call_deadline(all));
    return status == SHOAL_CONFLICT ? SHOAL_OK : status;
}

static int put_checked(const upload *all, int64_t slice, const char *key, const void *bytes, size_t size,
                       const unsigned char *hash, const char *what)
{
    unsigned char found[BASE_HASH_SIZE];
    int64_t first = job_slice_first_row(all->spec, slice);
    base_hash_of(found, bytes, size);
    if (memcmp(found, hash, BASE_HASH_SIZE) != 0)
        return shoal_fail(SHOAL_INVALID, "%s: %s %lld to %lld changed since the job was made",
                          shoal_data_path(all->data), what, (long long)(first + 1),
                          (long long)(first + job_slice_rows(all->spec, slice)));
    return put_if_absent(all, key, bytes, size);
}

static int upload_rows(const upload *all, int64_t slice)
{
    const job_spec *spec = all->spec;
    int64_t rows = job_slice_rows(spec, slice);
    size_t size = (size_t)rows * (size_t)spec->shape.columns * shoal_type_size(spec->shape.type);
    void *scratch = NULL;
    const void *values = NULL;
    int status = SHOAL_OK;
    if (!shoal_data_is_resident(all->data))
        status = base_alloc_unset(&scratch, size, 1, "rows to be uploaded");
    if (status == SHOAL_OK)
        status = shoal_data_read(&values, all->data, job_slice_first_row(spec, slice), rows, scratch);
    if (status == SHOAL_OK)
        status =
            put_checked(all, slice, job_key_data(spec->id, slice).text, values, size, spec->slice[slice].hash, "rows");
    int lost = shoal_data_check(all->data); /* which says more than that they changed */
    status = lost < 0 ? lost : status;
    base_free(&scratch);
    return status;
}

static int upload_slice(upload *all, int64_t slice)
{
    const job_spec *spec = all->spec;
    int status = SHOAL_OK;
    if (all->stop && *all->stop)
        return shoal_fail(SHOAL_STOPPED, "job %s: asked to stop before its data were uploaded", spec->id);
    if (!atomic_load(&all->rows_there[slice]))
        status = upload_rows(all, slice);
    if (status == SHOAL_OK)
        atomic_store(&all->rows_there[slice], 1);
    if (status == SHOAL_OK && !atomic_load(&all->weights_there[slice]))
        status = put_checked(
            all, slice, job_key_weights(spec->id, slice).text, all->weights + job_slice_first_row(spec, slice),
            (size_t)job_slice_rows(spec, slice) * sizeof *all->weights, spec->slice[slice].weights_hash, "weights");
    if (status == SHOAL_OK)
        atomic_store(&all->weights_there[slice], 1);
    return status;
}

/* ---- what is missing --------------------------------------------------------------------------------------------- */

/* Marks the slices whose key is in the store. */
static int look_below(upload *all, const char *name, job_key (*key_of)(const char *id, int64_t slice),
                      _Atomic unsigned char *there)
{
    job_key prefix = job_key_of(all->spec->id, name);
    size_t length = strlen(prefix.text);
    shoal_listing page = {0};
    int status;
    do {
        status = shoal_store_list(all->store, prefix.text, NULL, &page, call_deadline(all));
        for (size_t i = 0; i < page.count && status == SHOAL_OK; i++) {
            long long slice = strtoll(page.entries[i].key + length, NULL, 10);
            if (slice >= 0 && slice < all->spec->slices &&
                strcmp(key_of(all->spec->id, slice).text, page.entries[i].key) == 0)
                atomic_store(&there[slice], 1);
        }
    } while (status == SHOAL_OK && page.more);
    shoal_listing_release(&page);
    return status;
}

static int find_missing(upload *all)
{
    bool has_rows = all->spec->source == JOB_UPLOADED;
    int status = has_rows ? look_below(all, "data/", job_key_data, all->rows_there) : SHOAL_OK;
    if (status == SHOAL_OK && all->spec->shape.weighted)
        status = look_below(all, "weights/", job_key_weights, all->weights_there);
    all->count = 0;
    for (int64_t i = 0; i < all->spec->slices && status == SHOAL_OK; i++)
        if (!atomic_load(&all->rows_there[i]) || !atomic_load(&all->weights_there[i]))
            all->missing[all->count++] = i;
    return status;
}

/* ---- the service ------------------------------------------------------------------------------------------------- */

static int push_missing(void *context, int64_t item)
{
    upload *all = context;
    char text[24];
    int length = snprintf(text, sizeof text, "%lld", (long long)all->missing[item]);
    return shoal_store_push(all->store, all->queue.text, text, (size_t)length, call_deadline(all));
}

/* The slice that a message names; -1 when it is not one of our messages. */
static int64_t slice_of(const upload *all, const shoal_message *message)
{
    char text[24] = "";
    if (message->size == 0 || message->size >= sizeof text)
        return -1;
    memcpy(text, message->data, message->size);
    if (strspn(text, "0123456789") != message->size)
        return -1;
    long long slice = strtoll(text, NULL, 10);
    return slice < all->spec->slices ? slice : -1;
}

static int handle_message(upload *all, shoal_message *message)
{
    int64_t slice = slice_of(all, message);
    int status = slice >= 0 ? upload_slice(all, slice) : SHOAL_OK;
    if (status < 0) {
        char why[1024];
        snprintf(why, sizeof why, "%s", shoal_error());
        (void)shoal_store_extend(all->store, all->queue.text, message, 0, call_deadline(all)); /* for the next one */
        return shoal_fail(status, "%s", why);
    }
    status = shoal_store_finish(all->store, all->queue.text, message, call_deadline(all));
    return status == SHOAL_LOST ? SHOAL_OK : status;
}

/* Item i is uploader i: takes messages until there are none. */
static int serve_uploads(void *context, int64_t item)
{
    upload *all = context;
    double lease = all->spec->lease > LEASE_LEAST ? all->spec->lease : LEASE_LEAST;
    int status = SHOAL_OK;
    (void)item;
    while (status == SHOAL_OK && !atomic_load(&all->failed)) {
        shoal_message message = {0};
        status = shoal_store_take(all->store, all->queue.text, lease, &message, call_deadline(all));
        if (status == SHOAL_ABSENT)
            return SHOAL_OK;
        if (status == SHOAL_OK)
            status = handle_message(all, &message);
        shoal_message_release(&message);
    }
    if (status < 0)
        atomic_store(&all->failed, 1);
    return status;
}

static int upload_missing(void *context, int64_t item)
{
    upload *all = context;
    return upload_slice(all, all->missing[item]);
}

static int run_upload(upload *all)
{
    int status = find_missing(all);
    int threads = all->count < UPLOADERS ? (int)all->count : UPLOADERS;
    if (status < 0 || all->count == 0)
        return status;
    status = job_gang_run(threads, all->count, push_missing, all);
    if (status == SHOAL_OK)
        status = job_gang_run(threads, threads, serve_uploads, all);
    if (status == SHOAL_OK)
        status = find_missing(all);
    return status == SHOAL_OK ? job_gang_run(threads, all->count, upload_missing, all) : status;
}

static int check_same(const job_spec *spec, const shoal_data *data, const double *weights)
{
    const shoal_shape *shape = &spec->shape;
    if (shoal_data_rows(data) != shape->rows || shoal_data_columns(data) != shape->columns ||
        shoal_data_type(data) != shape->type || (weights != NULL) != shape->weighted)
        return shoal_fail(SHOAL_INVALID,
                          "%s: job %s was made for other data: %lld rows of %lld columns of %s, %s weights",
                          shoal_data_path(data), spec->id, (long long)shape->rows, (long long)shape->columns,
                          shoal_type_name(shape->type), shape->weighted ? "with" : "without");
    return SHOAL_OK;
}

int job_setup_upload(shoal_store *store, const job_spec *spec, shoal_data *data, const double *weights,
                     const volatile int *stop, int64_t deadline)
{
    upload all = {.store = store,
                  .spec = spec,
                  .data = data,
                  .weights = weights,
                  .stop = stop,
                  .deadline = deadline,
                  .queue = job_key_of(spec->id, "setup")};
    size_t slices = (size_t)spec->slices;
    int status = check_same(spec, data, weights);
    if (status < 0 || (spec->source != JOB_UPLOADED && !spec->shape.weighted))
        return status;
    status = base_alloc(&all.rows_there, slices, 1, "an upload");
    if (status == SHOAL_OK)
        status = base_alloc(&all.weights_there, slices, 1, "an upload");
    if (status == SHOAL_OK)
        status = base_alloc(&all.missing, slices, sizeof *all.missing, "an upload");
    for (size_t i = 0; i < slices && status == SHOAL_OK; i++) {
        atomic_init(&all.rows_there[i], spec->source != JOB_UPLOADED);
        atomic_init(&all.weights_there[i], !spec->shape.weighted);
    }
    if (status == SHOAL_OK)
        status = run_upload(&all);
    base_free(&all.missing);
    base_free(&all.weights_there);
    base_free(&all.rows_there);
    return status;
}
