/* Loading the rows of slices.  See job_rows.h.
 *
 * Whatever the source, bytes are checked against the spec before a learner sees them: by SHA-256, by the blob's etag,
 * or because they are made from an address.  A mismatch is a fault of the data, never of the worker. */
#include "engine/store/job_rows.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/mapped.h"
#include "base/memory.h"
#include "engine/store/job_cache.h"
#include "engine/store/job_keys.h"
#include "engine/store/job_roots.h"

struct job_loader {
    const job_spec *spec;
    shoal_store *store;
    job_cache *cache; /* NULL where fetching is as cheap */
    job_roots *roots; /* what may be read besides the job's own store */
    bool trusted;     /* someone vouched for the spec */
    char *data_url;   /* of a store that replaces the one that ranges are in; NULL for none */
    int threads;
    int64_t kept_rows;             /* as in job_loader_options */
    shoal_data *generator;         /* GENERATED */
    _Atomic(shoal_store *) opened; /* RANGES in another store, opened when first needed */
    atomic_llong hits, fetched, bytes;
};

/* Bytes and what holds them: one of the two, or neither. */
typedef struct held {
    const void *data;
    job_cached cached;
    void *memory;
} held;

struct job_rows {
    job_loader *loader;
    int64_t slice, first_row, rows;
    size_t row_bytes;
    held values;          /* no data: rows are made whenever they are read */
    held weights;         /* no data: unweighted */
    base_mapped *mapped;  /* FILE */
    struct stat seen;     /* FILE: as it was hashed */
    void **buffer;        /* for each thread, where rows are made */
    size_t *buffer_bytes; /* of each */
};

/* ---- the loader -------------------------------------------------------------------------------------------------- */

/* Opens the address and checks that it yields what the spec describes. */
static int open_generator(job_loader *loader)
{
    const job_spec *spec = loader->spec;
    const shoal_shape *shape = &spec->shape;
    if (strncmp(spec->place, "gen:", 4) != 0)
        return shoal_fail(SHOAL_INVALID, "job %s: '%s' is not a gen: address", spec->id, spec->place);
    int status = shoal_data_open(&loader->generator, spec->place, NULL);
    if (status == SHOAL_OK &&
        (shoal_data_rows(loader->generator) != shape->rows || shoal_data_columns(loader->generator) != shape->columns ||
         shoal_data_type(loader->generator) != shape->type))
        status =
            shoal_fail(SHOAL_INVALID, "job %s: %s yields other rows than the job was made for", spec->id, spec->place);
    return status;
}

int job_loader_new(job_loader **out, const job_spec *spec, shoal_store *store, const job_loader_options *options)
{
    job_loader *loader = NULL;
    *out = NULL;
    int status = base_alloc(&loader, 1, sizeof *loader, "a loader of rows");
    if (status < 0)
        return status;
    loader->spec = spec;
    loader->store = store;
    loader->trusted = options->trusted;
    loader->kept_rows = options->kept_rows ? options->kept_rows : INT64_MAX;
    loader->threads = options->threads > 0 ? options->threads : 1;
    if (options->cache && (!shoal_store_describe(store).wakes || shoal_store_describe(store).far))
        status = job_cache_new(&loader->cache, options->cache, options->cache_bytes);
    if (status == SHOAL_OK)
        status = job_roots_new(&loader->roots, options->data_root);
    if (status == SHOAL_OK && options->data_url)
        status = base_copy_text(&loader->data_url, options->data_url);
    if (status == SHOAL_OK && spec->source == JOB_GENERATED)
        status = open_generator(loader);
    if (status < 0)
        job_loader_free(&loader);
    *out = loader;
    return status;
}

void job_loader_free(job_loader **inout)
{
    job_loader *loader = *inout;
    if (!loader)
        return;
    shoal_store *opened = atomic_load(&loader->opened);
    shoal_store_close(&opened);
    shoal_data_free(&loader->generator);
    job_cache_free(&loader->cache);
    job_roots_free(&loader->roots);
    base_free(&loader->data_url);
    base_free(inout);
}

void job_loader_counted(const job_loader *loader, int64_t *hits, int64_t *fetched, int64_t *bytes)
{
    *hits = atomic_load(&loader->hits);
    *fetched = atomic_load(&loader->fetched);
    *bytes = atomic_load(&loader->bytes);
}

/* ---- what messages and checks share ------------------------------------------------------------------------------ */

static int fail_changed(const job_rows *rows, const char *place, const char *why)
{
    return shoal_fail(SHOAL_INVALID, "job %s: rows %lld to %lld in %s changed since the job was made: %s",
                      rows->loader->spec->id, (long long)rows->first_row + 1, (long long)(rows->first_row + rows->rows),
                      place, why);
}

static int check_bytes(const job_rows *rows, const char *place, const void *data, size_t size, size_t expected,
                       const unsigned char *hash)
{
    unsigned char found[BASE_HASH_SIZE];
    char why[96];
    if (size != expected) {
        snprintf(why, sizeof why, "there are %zu bytes, not %zu", size, expected);
        return fail_changed(rows, place, why);
    }
    base_hash_of(found, data, size);
    return memcmp(found, hash, BASE_HASH_SIZE) == 0 ? SHOAL_OK
                                                    : fail_changed(rows, place, "their SHA-256 is another one");
}

static void held_release(held *of)
{
    job_cached_release(&of->cached);
    base_free(&of->memory);
    *of = (held){0};
}

static bool hold_cached(held *out, job_loader *loader, const unsigned char *id, size_t size)
{
    if (!loader->cache || !job_cache_get(&out->cached, loader->cache, id, size))
        return false;
    out->data = out->cached.data;
    return true;
}

/* Gets as many bytes as the spec says, so that no more memory is used, however large the blob is. */
static int fetch_bytes(held *out, shoal_blob *about, shoal_store *store, const char *key, int64_t offset, size_t size,
                       const shoal_etag *etag, int64_t deadline)
{
    int status = base_alloc_unset(&out->memory, size, 1, "rows");
    if (status == SHOAL_OK)
        status = shoal_store_get_range(store, key, offset, (int64_t)size, etag, out->memory, about, deadline);
    return status;
}

/* Bytes that were fetched and checked: counts and caches them, and hands them to the caller. */
static void hold_fetched(held *out, job_loader *loader, const unsigned char *id, size_t size)
{
    out->data = out->memory;
    atomic_fetch_add(&loader->bytes, (long long)size);
    if (loader->cache)
        job_cache_put(loader->cache, id, out->memory, size);
}

/* ---- sources ----------------------------------------------------------------------------------------------------- */

/* A blob of the job whose content has this hash: rows or weights. */
static int fetch_upload(held *out, const job_rows *rows, const char *key, const unsigned char *hash, size_t size,
                        bool *hit, int64_t deadline)
{
    job_loader *loader = rows->loader;
    *hit = hold_cached(out, loader, hash, size);
    if (*hit)
        return SHOAL_OK;
    shoal_blob about = {0};
    int status = fetch_bytes(out, &about, loader->store, key, 0, size, NULL, deadline);
    if (status == SHOAL_OK)
        status = check_bytes(rows, key, out->memory, (size_t)about.whole, size, hash);
    if (status == SHOAL_OK)
        hold_fetched(out, loader, hash, size);
    return status;
}

/* The store that stands in was named by whoever started this worker, and every other one by the spec. */
static int open_ranges(shoal_store **out, char **key, job_loader *loader, int64_t deadline)
{
    const job_spec *spec = loader->spec;
    if (loader->data_url)
        return shoal_store_open_at(out, key, loader->data_url, &(shoal_store_options){.read_only = true}, deadline);
    int status =
        job_roots_open_store(out, key, loader->roots, spec->store_url, loader->store, loader->trusted, deadline);
    if (status < 0)
        return shoal_fail(status, "job %s: %s", spec->id, shoal_error());
    if (strcmp(*key, spec->place) != 0)
        return shoal_fail(SHOAL_INVALID, "job %s: %s names the key '%s', not '%s'", spec->id, spec->store_url, *key,
                          spec->place);
    return SHOAL_OK;
}

/* The store that ranges are in.  If two threads open it at the same moment, the second closes its own again. */
static int ranges_store(shoal_store **out, job_loader *loader, int64_t deadline)
{
    shoal_store *fresh = NULL, *none = NULL;
    char *key = NULL;
    *out = loader->spec->store_url ? atomic_load(&loader->opened) : loader->store;
    if (*out)
        return SHOAL_OK;
    int status = open_ranges(&fresh, &key, loader, deadline);
    shoal_text_free(&key);
    if (status == SHOAL_OK && atomic_compare_exchange_strong(&loader->opened, &none, fresh))
        fresh = NULL;
    shoal_store_close(&fresh);
    *out = atomic_load(&loader->opened);
    return status;
}

/* Ranges have no hashes, so in the cache they are named by the blob's version. */
static int name_range(unsigned char id[BASE_HASH_SIZE], shoal_store *store, const job_spec *spec, int64_t offset,
                      size_t size)
{
    char *text = NULL;
    const char *where = spec->store_url ? spec->store_url : shoal_store_describe(store).name;
    int status =
        base_format(&text, "%s\n%s\n%s\n%lld\n%zu", where, spec->place, spec->etag.text, (long long)offset, size);
    if (status == SHOAL_OK)
        base_hash_of(id, text, strlen(text));
    base_free(&text);
    return status;
}

/* These bytes have not been checked: a bool that is neither 0 nor 1 counts as 1, as it does in files. */
static void clean_bools(unsigned char *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        values[i] = values[i] != 0;
}

static int fetch_range(job_rows *rows, size_t size, bool *hit, int64_t deadline)
{
    job_loader *loader = rows->loader;
    const job_spec *spec = loader->spec;
    int64_t offset = spec->offset + rows->first_row * (int64_t)rows->row_bytes;
    unsigned char id[BASE_HASH_SIZE];
    shoal_store *store = NULL;
    shoal_blob about = {0};
    int status = ranges_store(&store, loader, deadline);
    if (status == SHOAL_OK)
        status = name_range(id, store, spec, offset, size);
    if (status < 0)
        return status;
    if ((*hit = hold_cached(&rows->values, loader, id, size)))
        return SHOAL_OK;
    const char *place = spec->store_url ? spec->store_url : spec->place;
    status = fetch_bytes(&rows->values, &about, store, spec->place, offset, size, &spec->etag, deadline);
    if (status == SHOAL_CONFLICT)
        return fail_changed(rows, place, "the blob has another version");
    if (status == SHOAL_ABSENT)
        return fail_changed(rows, place, "the blob is gone");
    if (status < 0)
        return status;
    if (about.size != size)
        return fail_changed(rows, place, "the blob is shorter");
    if (spec->shape.type == SHOAL_BOOL)
        clean_bools(rows->values.memory, size);
    hold_fetched(&rows->values, loader, id, size);
    return SHOAL_OK;
}

/* Reads the file instead of its mapping: if it shrinks meanwhile, that is an error and not a signal. */
static int hash_file(const job_rows *rows, int file, int64_t offset, size_t size)
{
    enum { STEP = 1 << 20 };
    const job_spec *spec = rows->loader->spec;
    unsigned char *buffer = NULL, found[BASE_HASH_SIZE];
    base_hash hash = {0};
    int status = base_alloc_unset(&buffer, STEP, 1, "rows to be checked");
    for (size_t now; size > 0 && status == SHOAL_OK; offset += (int64_t)now, size -= now) {
        size_t wanted = size < STEP ? size : STEP;
        int error = base_read_all_at(file, buffer, wanted, offset, &now);
        if (error)
            status = shoal_fail_errno(SHOAL_SYSTEM, error, "%s: can't read", spec->place);
        else if (now < wanted)
            status = fail_changed(rows, spec->place, "the file is shorter");
        else
            base_hash_add(&hash, buffer, now);
    }
    base_hash_end(&hash, found);
    if (status == SHOAL_OK && memcmp(found, spec->slice[rows->slice].hash, BASE_HASH_SIZE) != 0)
        status = fail_changed(rows, spec->place, "their SHA-256 is another one");
    base_free(&buffer);
    return status;
}

static int map_file(job_rows *rows, int file, int64_t offset, size_t size)
{
    int64_t page = sysconf(_SC_PAGESIZE), start = offset / page * page;
    int status =
        base_mapped_open(&rows->mapped, file, start, size + (size_t)(offset - start), rows->loader->spec->place);
    if (status == SHOAL_OK)
        rows->values.data = base_mapped_bytes(rows->mapped) + (offset - start);
    return status;
}

static int load_file(job_rows *rows, size_t size)
{
    const job_spec *spec = rows->loader->spec;
    int64_t offset = spec->offset + rows->first_row * (int64_t)rows->row_bytes;
    int file = -1;
    int status = job_roots_open_file(&file, rows->loader->roots, spec->place);
    if (status < 0)
        return shoal_fail(status, "job %s: %s", spec->id, shoal_error());
    if (fstat(file, &rows->seen) < 0)
        status = shoal_fail_errno(SHOAL_SYSTEM, errno, "%s: can't read", spec->place);
    if (status == SHOAL_OK && rows->seen.st_size != spec->size)
        status = fail_changed(rows, spec->place, "the file has another size");
    if (status == SHOAL_OK)
        status = hash_file(rows, file, offset, size);
    if (status == SHOAL_OK)
        status = map_file(rows, file, offset, size);
    close(file);
    return status;
}

/* Rows are made once when they leave most of the memory free, and otherwise whenever they are read. */
static int make_rows(job_rows *rows, size_t size)
{
    job_loader *loader = rows->loader;
    size_t threads = (size_t)loader->threads;
    const void *made;
    int status = SHOAL_OK;
    if ((int64_t)size <= loader->kept_rows && (int64_t)size < base_memory_available() / 8) {
        status = base_alloc_unset(&rows->values.memory, size, 1, "generated rows");
        if (status == SHOAL_OK)
            status = shoal_data_read(&made, loader->generator, rows->first_row, rows->rows, rows->values.memory);
        rows->values.data = rows->values.memory;
        return status;
    }
    status = base_alloc(&rows->buffer, threads, sizeof *rows->buffer, "buffers of threads");
    if (status == SHOAL_OK)
        status = base_alloc(&rows->buffer_bytes, threads, sizeof *rows->buffer_bytes, "buffers of threads");
    return status;
}

int job_loader_check(const job_loader *loader)
{
    const job_spec *spec = loader->spec;
    int file = -1;
    if (spec->source != JOB_FILE)
        return SHOAL_OK;
    int status = job_roots_open_file(&file, loader->roots, spec->place);
    if (file >= 0)
        close(file);
    return status == SHOAL_DENIED ? shoal_fail(status, "job %s: %s", spec->id, shoal_error()) : SHOAL_OK;
}

/* ---- loading and reading ----------------------------------------------------------------------------------------- */

static int load_values(job_rows *rows, int64_t deadline)
{
    job_loader *loader = rows->loader;
    const job_spec *spec = loader->spec;
    size_t size = (size_t)rows->rows * rows->row_bytes;
    bool hit = false;
    int status = SHOAL_OK;
    switch (spec->source) {
    case JOB_UPLOADED:
        status = fetch_upload(&rows->values, rows, job_key_data(spec->id, rows->slice).text,
                              spec->slice[rows->slice].hash, size, &hit, deadline);
        break;
    case JOB_RANGES: status = fetch_range(rows, size, &hit, deadline); break;
    case JOB_FILE: status = load_file(rows, size); break;
    case JOB_GENERATED: status = make_rows(rows, size); break;
    }
    if (status == SHOAL_OK)
        atomic_fetch_add(hit ? &loader->hits : &loader->fetched, 1);
    return status;
}

int job_rows_load(job_rows **out, job_loader *loader, int64_t slice, int64_t deadline)
{
    const job_spec *spec = loader->spec;
    job_rows *rows = NULL;
    bool hit;
    *out = NULL;
    if (slice < 0 || slice >= spec->slices)
        SHOAL_BUG("slice %lld of %lld", (long long)slice, (long long)spec->slices);
    int status = base_alloc(&rows, 1, sizeof *rows, "the rows of a slice");
    if (status < 0)
        return status;
    rows->loader = loader;
    rows->slice = slice;
    rows->first_row = job_slice_first_row(spec, slice);
    rows->rows = job_slice_rows(spec, slice);
    rows->row_bytes = (size_t)spec->shape.columns * shoal_type_size(spec->shape.type);
    status = load_values(rows, deadline);
    if (status == SHOAL_OK && spec->shape.weighted)
        status = fetch_upload(&rows->weights, rows, job_key_weights(spec->id, slice).text,
                              spec->slice[slice].weights_hash, (size_t)rows->rows * sizeof(double), &hit, deadline);
    if (status < 0)
        job_rows_free(&rows);
    *out = rows;
    return status;
}

void job_rows_free(job_rows **inout)
{
    job_rows *rows = *inout;
    if (!rows)
        return;
    held_release(&rows->values);
    held_release(&rows->weights);
    base_mapped_close(&rows->mapped);
    for (int i = 0; i < rows->loader->threads && rows->buffer; i++)
        base_free(&rows->buffer[i]);
    base_free(&rows->buffer_bytes);
    base_free(&rows->buffer);
    base_free(inout);
}

static int read_made(job_rows *rows, const void **out, int64_t first_row, int64_t count, int thread)
{
    size_t size = (size_t)count * rows->row_bytes;
    int status = SHOAL_OK;
    if (rows->buffer_bytes[thread] < size) {
        base_free(&rows->buffer[thread]);
        rows->buffer_bytes[thread] = 0;
        status = base_alloc_unset(&rows->buffer[thread], size, 1, "generated rows");
        if (status == SHOAL_OK)
            rows->buffer_bytes[thread] = size;
    }
    if (status == SHOAL_OK)
        status = shoal_data_read(out, rows->loader->generator, first_row, count, rows->buffer[thread]);
    return status;
}

static int read_rows(void *context, const void **out, int64_t first_row, int64_t count, int thread)
{
    job_rows *rows = context;
    if (first_row < rows->first_row || count < 0 || first_row - rows->first_row > rows->rows - count ||
        thread >= rows->loader->threads)
        SHOAL_BUG("rows %lld and %lld more are not in slice %lld", (long long)first_row, (long long)count,
                  (long long)rows->slice);
    if (!rows->values.data)
        return read_made(rows, out, first_row, count, thread);
    *out = (const char *)rows->values.data + (size_t)(first_row - rows->first_row) * rows->row_bytes;
    return SHOAL_OK;
}

static int check_rows(void *context)
{
    return job_rows_check(context);
}

engine_rows job_rows_view(job_rows *rows)
{
    return (engine_rows){.read = read_rows,
                         .check = check_rows,
                         .context = rows,
                         .resident = rows->values.data,
                         .weights = rows->weights.data};
}

int job_rows_check(const job_rows *rows)
{
    const struct stat *seen = &rows->seen;
    const char *place = rows->loader->spec->place;
    struct stat now;
    if (job_cached_is_lost(&rows->values.cached) || job_cached_is_lost(&rows->weights.cached))
        return shoal_fail(SHOAL_SYSTEM, "job %s: a file in %s (--cache) shrank or can no longer be read",
                          rows->loader->spec->id, job_cache_folder(rows->loader->cache));
    if (!rows->mapped)
        return SHOAL_OK;
    if (stat(place, &now) < 0)
        return fail_changed(rows, place, "the file is gone");
    if (now.st_size < seen->st_size)
        return fail_changed(rows, place, "the file shrank");
    if (now.st_dev != seen->st_dev || now.st_ino != seen->st_ino || now.st_size != seen->st_size ||
        now.st_mtim.tv_sec != seen->st_mtim.tv_sec || now.st_mtim.tv_nsec != seen->st_mtim.tv_nsec)
        return fail_changed(rows, place, "the file was written to or replaced");
    if (base_mapped_is_lost(rows->mapped))
        return fail_changed(rows, place, "the file can no longer be read");
    return SHOAL_OK;
}
