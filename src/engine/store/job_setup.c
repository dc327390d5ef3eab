/* Making a spec: where the rows are, how they are cut, and round 0.  See job_setup.h.
 *
 * Everything is chosen here, once: workers only follow the spec. */
#include "engine/store/job_code.h"
#include "engine/store/job_setup.h"

#include <errno.h>
#include <fenv.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <jansson.h>

#include "base/hex.h"
#include "base/memory.h"
#include "base/pool.h"
#include "base/world.h"
#include "data/data_place.h"
#include "engine/engine_internal.h"
#include "engine/store/job_keys.h"
#include "engine/store/job_spec_internal.h"
#include "kernel/kernel.h"
#include "learn/pick.h"

enum { SLICES_LEAST = 4, SLICES_UNKNOWN = 16, SLICES_A_SLOT = 2, SLICE_BYTES = 256000000 };

/* ---- names ------------------------------------------------------------------------------------------------------- */

int job_setup_check_name(const char *name)
{
    bool good = (name[0] >= 'a' && name[0] <= 'z') || (name[0] >= 'A' && name[0] <= 'Z');
    size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-");
    if (!good || name[length] != '\0' || length > SHOAL_JOB_NAME_MOST)
        return shoal_fail(SHOAL_USAGE, "name must be a letter and then at most %d letters, digits and '-', not '%.80s'",
                          SHOAL_JOB_NAME_MOST - 1, name);
    return SHOAL_OK;
}

int job_setup_id(char id[SHOAL_JOB_ID_BYTES], const char *name)
{
    unsigned char random[8];
    char digits[17];
    int status = job_setup_check_name(name);
    base_entropy(random, sizeof random);
    base_hex_write(digits, random, sizeof random);
    if (status == SHOAL_OK)
        snprintf(id, SHOAL_JOB_ID_BYTES, "%.*s-%s", SHOAL_JOB_NAME_MOST, name, digits);
    return status;
}

/* Whether JSON can hold the text. */
static bool is_utf8(const char *text)
{
    json_t *string = json_string(text);
    json_decref(string);
    return string != NULL;
}

/* For people, so a lost letter does no harm. */
static int copy_readable(char **out, const char *text)
{
    int status = base_copy_text(out, text);
    if (status == SHOAL_OK && !is_utf8(text))
        for (char *at = *out; *at; at++)
            if ((unsigned char)*at >= 0x80)
                *at = '?';
    return status;
}

/* ---- settings ---------------------------------------------------------------------------------------------------- */

static int check_numbers(const shoal_job_options *options)
{
    if (options->slices < 0 || options->slices > SHOAL_JOB_SLICES_MOST)
        return shoal_fail(SHOAL_USAGE, "slices must be 1 to %d, not %lld", SHOAL_JOB_SLICES_MOST,
                          (long long)options->slices);
    if (options->workers < 0 || options->workers > SHOAL_JOB_SLOTS_MOST)
        return shoal_fail(SHOAL_USAGE, "workers must be 0 to %d, not %lld", SHOAL_JOB_SLOTS_MOST,
                          (long long)options->workers);
    if (options->lease != 0 && !(options->lease >= SHOAL_JOB_LEASE_LEAST && options->lease <= SHOAL_JOB_LEASE_MOST))
        return shoal_fail(SHOAL_USAGE, "lease must be %.15g to %.15g seconds, not %.15g", SHOAL_JOB_LEASE_LEAST,
                          SHOAL_JOB_LEASE_MOST, options->lease);
    if (options->keep_rounds < 0 || options->keep_rounds > SHOAL_JOB_KEEP_ROUNDS_MOST)
        return shoal_fail(SHOAL_USAGE, "keep_rounds must be 1 to %d, not %lld", SHOAL_JOB_KEEP_ROUNDS_MOST,
                          (long long)options->keep_rounds);
    return SHOAL_OK;
}

/* ---- slices ------------------------------------------------------------------------------------------------------ */

/* What slices are whole numbers of. */
static int64_t count_units(const shoal_shape *shape)
{
    return shape->strata ? shape->strata : shape->grains;
}

static int choose_slices(int64_t *out, const shoal_shape *shape, const shoal_job_options *options)
{
    const int64_t units = count_units(shape);
    if (options->slices > units)
        return shoal_fail(SHOAL_USAGE, "slices must be at most %lld, the %s, not %lld; ask for fewer%s",
                          (long long)units,
                          shape->strata ? "strata that batches are drawn from" : "grains that the rows make",
                          (long long)options->slices, shape->strata ? "" : ", or for smaller grains");
    if (options->slices > 0) {
        *out = options->slices;
        return SHOAL_OK;
    }
    int64_t slots = options->workers < SHOAL_JOB_SLICES_MOST ? options->workers : SHOAL_JOB_SLICES_MOST;
    int64_t wanted = slots ? slots * SLICES_A_SLOT : SLICES_UNKNOWN;
    wanted = wanted > SLICES_LEAST ? wanted : SLICES_LEAST;
    double grain_bytes = (double)shape->rows_per_grain * (double)shape->columns * (double)shoal_type_size(shape->type);
    int64_t most_grains = grain_bytes < SLICE_BYTES ? (int64_t)(SLICE_BYTES / grain_bytes) : 1;
    int64_t by_bytes = (shape->grains + most_grains - 1) / most_grains;
    wanted = wanted > by_bytes ? wanted : by_bytes;
    wanted = wanted < units ? wanted : units;
    *out = wanted < SHOAL_JOB_SLICES_MOST ? wanted : SHOAL_JOB_SLICES_MOST;
    return SHOAL_OK;
}

/* Where there are two slices per worker and a further step costs next to nothing, those of one worker make a group: it
 * puts one partial. */
static int choose_tree(job_spec *spec, shoal_store *store, const shoal_job_options *options)
{
    bool chosen =
        options->slices == 0 && options->workers > 0 && (!options->reduce || strcmp(options->reduce, "auto") == 0);
    int64_t fan[2] = {SLICES_A_SLOT, (spec->slices + SLICES_A_SLOT - 1) / SLICES_A_SLOT};
    if (chosen && fan[1] > 1 && spec->slices <= 8 * SLICES_A_SLOT && shoal_store_describe(store).wakes &&
        job_tree_make(&spec->tree, spec->slices, 3, fan))
        return SHOAL_OK;
    int status = job_tree_choose(&spec->tree, options->reduce, spec->slices);
    if (status == SHOAL_OK && !job_tree_choose_ranges(&spec->ranged, &spec->range_bytes, options->reduce, &spec->tree))
        status = shoal_fail(SHOAL_USAGE, "reduce: %s makes too many pieces of %lld slices; ask for fewer ranges",
                            options->reduce, (long long)spec->slices);
    return status;
}

/* Evenly: no slice has more than one grain more than another, or one stratum where there are any. */
static int cut_slices(job_spec *spec)
{
    const shoal_shape *shape = &spec->shape;
    int64_t units = count_units(shape);
    int status = base_alloc(&spec->slice, (size_t)spec->slices, sizeof *spec->slice, "the slices of a job");
    for (int64_t i = 0; i < spec->slices && status == SHOAL_OK; i++) {
        int64_t first = i * units / spec->slices, end = (i + 1) * units / spec->slices;
        first = shape->strata ? learn_stratum_grain(shape, first) : first;
        end = shape->strata ? learn_stratum_grain(shape, end) : end;
        spec->slice[i] = (job_slice){.first_grain = first, .grains = end - first};
    }
    return status;
}

/* ---- where the rows are ------------------------------------------------------------------------------------------ */

/* A file that workers may map themselves: its path with all links resolved, or NULL for one that can't be named so. */
static int resolve_file(char **out, const data_place *place)
{
    struct stat info;
    char *real = realpath(place->address, NULL);
    bool good = real && is_utf8(real) && stat(real, &info) == 0 && S_ISREG(info.st_mode) && info.st_size == place->size;
    int status = good ? base_copy_text(out, real) : SHOAL_OK;
    free(real);
    return status;
}

static int choose_source(job_spec *spec, shoal_store *store, const shoal_data *data, bool far)
{
    data_place place = data_place_of(data);
    int status = copy_readable(&spec->data_name, shoal_data_path(data));
    if (status < 0)
        return status;
    spec->offset = place.offset;
    spec->size = place.size;
    switch (place.kind) {
    case DATA_MADE: spec->source = JOB_GENERATED; return base_copy_text(&spec->place, place.address);
    case DATA_IN_BLOB:
        spec->source = JOB_RANGES;
        snprintf(spec->etag.text, sizeof spec->etag.text, "%s", place.etag);
        status = base_copy_text(&spec->store_url, place.address);
        return status == SHOAL_OK ? base_copy_text(&spec->place, place.key) : status;
    case DATA_IN_FILE:
        /* A store on this machine has its workers here too, unless some reach it through a pipe. */
        spec->source = JOB_FILE;
        if (shoal_store_describe(store).wakes && !shoal_store_describe(store).far && !far)
            status = resolve_file(&spec->place, &place);
        if (status < 0 || spec->place)
            return status;
        break;
    case DATA_HERE: break;
    }
    spec->source = JOB_UPLOADED;
    spec->offset = spec->size = 0;
    return base_copy_text(&spec->place, spec->data_name);
}

/* Where blobs are, so that it means the same to every worker. */
static int choose_from(job_spec *spec, const char *from)
{
    char *folder = NULL, *real = NULL;
    if (from[0] == '\0')
        return base_copy_text(&spec->from, from);
    int status = shoal_store_url_folder(&folder, from);
    if (status == SHOAL_OK && folder && !(real = realpath(folder, NULL)))
        status = shoal_fail_errno(SHOAL_SYSTEM, errno, "%s: can't read", folder);
    if (status == SHOAL_OK && real && !is_utf8(real))
        status = shoal_fail(SHOAL_USAGE, "%s: workers can't be told of a folder whose name is not UTF-8", folder);
    if (status == SHOAL_OK && real && strncmp(from, "dir:", 4) == 0)
        status = base_format(&spec->from, "dir:%s", real);
    else if (status == SHOAL_OK)
        status = base_copy_text(&spec->from, real ? real : from);
    free(real);
    shoal_text_free(&folder);
    return status;
}

/* ---- hashes ------------------------------------------------------------------------------------------------------ */

typedef struct hashing {
    job_spec *spec;
    shoal_data *data;
    const double *weights;
    const volatile int *stop;
} hashing;

static int hash_rows(job_slice *slice, shoal_data *data, int64_t first_row, int64_t rows)
{
    size_t size = (size_t)rows * (size_t)shoal_data_columns(data) * shoal_type_size(shoal_data_type(data));
    void *scratch = NULL;
    const void *values = NULL;
    int status = shoal_data_is_resident(data) ? SHOAL_OK : base_alloc_unset(&scratch, size, 1, "rows of a slice");
    if (status == SHOAL_OK)
        status = shoal_data_read(&values, data, first_row, rows, scratch);
    if (status == SHOAL_OK) {
        base_hash_of(slice->hash, values, size);
        status = shoal_data_check(data);
    }
    base_free(&scratch);
    return status;
}

static int hash_slice(void *context, int64_t item, int thread)
{
    const hashing *all = context;
    job_slice *slice = &all->spec->slice[item];
    int64_t first_row = job_slice_first_row(all->spec, item), rows = job_slice_rows(all->spec, item);
    int status = SHOAL_OK;
    (void)thread;
    if (all->stop && *all->stop)
        return shoal_fail(SHOAL_STOPPED, "asked to stop before the job was made");
    if (job_source_is_hashed(all->spec->source))
        status = hash_rows(slice, all->data, first_row, rows);
    if (status == SHOAL_OK && all->weights)
        base_hash_of(slice->weights_hash, all->weights + first_row, (size_t)rows * sizeof *all->weights);
    return status;
}

static int hash_slices(job_spec *spec, shoal_data *data, const double *weights, const volatile int *stop)
{
    hashing all = {.spec = spec, .data = data, .weights = weights, .stop = stop};
    base_pool *pool = NULL;
    if (!job_source_is_hashed(spec->source) && !weights)
        return SHOAL_OK;
    int64_t cores = base_cores();
    int status = base_pool_new(&pool, (int)(cores < spec->slices ? cores : spec->slices));
    if (status == SHOAL_OK)
        status = base_pool_each(pool, spec->slices, hash_slice, &all);
    base_pool_free(&pool);
    return status;
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

/* Round 0 is the same whatever rounding mode the caller has set. */
static int make_first_round(job_spec *spec, const shoal_algorithm *algorithm, const void *config)
{
    fenv_t callers;
    fegetenv(&callers);
    base_default_arithmetic();
    int status = algorithm->start(&spec->first, config, &spec->shape);
    fesetenv(&callers);
    if (status == SHOAL_OK)
        spec->first->number = 0;
    return status;
}

static int choose_all(job_spec *spec, shoal_store *store, const shoal_algorithm *algorithm, const void *config,
                      shoal_data *data, const double *weights, const shoal_job_options *options)
{
    const kernel_set *kernel = NULL;
    if (snprintf(spec->algorithm, sizeof spec->algorithm, "%s", algorithm->name) >= (int)sizeof spec->algorithm)
        SHOAL_BUG("the learner's name %s is too long", algorithm->name);
    snprintf(spec->version, sizeof spec->version, "%s", SHOAL_VERSION);
    spec->keep_rounds = options->keep_rounds;
    spec->workers = options->workers;
    spec->created = (double)time(NULL); /* for people: nothing depends on it */
    spec->lease = options->lease != 0 ? options->lease : shoal_store_describe(store).wakes ? 10 : 30;
    int status = check_numbers(options);
    if (status == SHOAL_OK && options->id) {
        snprintf(spec->id, sizeof spec->id, "%s", options->id);
        status = job_id_check(options->id);
    } else if (status == SHOAL_OK) {
        status = job_setup_id(spec->id, options->name ? options->name : spec->algorithm);
    }
    if (status == SHOAL_OK && options->settings) {
        json_t *json = json_loads(options->settings, JSON_DECODE_ANY, NULL);
        status = json ? base_copy_text(&spec->settings, options->settings)
                      : shoal_fail(SHOAL_USAGE, "the settings of a job must be JSON, not '%.80s'", options->settings);
        json_decref(json);
    }
    if (status == SHOAL_OK)
        status = kernel_choose(&kernel, options->kernel);
    if (status == SHOAL_OK)
        status = engine_fill_shape(&spec->shape, algorithm, config, data, weights, options->rows_per_grain);
    if (status == SHOAL_OK)
        status = choose_slices(&spec->slices, &spec->shape, options);
    if (status == SHOAL_OK)
        status = choose_tree(spec, store, options);
    if (status < 0)
        return status;
    spec->fingerprint = kernel_fingerprint(kernel, algorithm->kernel_free);
    status = make_first_round(spec, algorithm, config);
    if (status == SHOAL_OK)
        status = cut_slices(spec);
    if (status == SHOAL_OK)
        status = choose_source(spec, store, data, options->far);
    if (status == SHOAL_OK)
        status = job_code_list(spec, options->code, options->codes);
    spec->puts = options->puts;
    if (status == SHOAL_OK && options->from)
        status = choose_from(spec, options->from);
    return status == SHOAL_OK ? hash_slices(spec, data, weights, options->stop) : status;
}

int job_setup_spec(job_spec **out, shoal_store *store, const shoal_algorithm *algorithm, const void *config,
                   shoal_data *data, const double *weights, const shoal_job_options *options)
{
    static const shoal_job_options defaults;
    job_spec *spec = NULL;
    *out = NULL;
    int status = base_alloc(&spec, 1, sizeof *spec, "a job's spec");
    if (status == SHOAL_OK)
        status = choose_all(spec, store, algorithm, config, data, weights, options ? options : &defaults);
    if (status < 0)
        job_spec_free(&spec);
    *out = spec;
    return status;
}
