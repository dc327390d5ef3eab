/* Where the rows of this process come from, and their fingerprint.  See source.h. */
#include "engine/source.h"

#include <stdatomic.h>
#include <string.h>

#include "base/memory.h"
#include "data/data_internal.h"
#include "data/data_place.h"
#include "engine/source_fetch.h"

struct engine_source {
    shoal_data *data;
    shoal_shape shape;
    int64_t first_grain, grains;
    int64_t first_row, rows; /* of those grains */
    size_t row_bytes;
    int threads;
    int64_t memory;

    const unsigned char *kept; /* from first_row on; NULL if the data set lends or makes them */
    void *resident;            /* the memory they are kept in, */
    data_buffer spilled;       /* or the file, if memory is too small */
    void **buffer;             /* one per thread, if rows are made again whenever they are read */
};

/* ---- a source ---------------------------------------------------------------------------------------------------- */

int engine_source_new(engine_source **out, shoal_data *data, const shoal_shape *shape, int64_t first_grain,
                      int64_t grains, int threads, int64_t memory)
{
    engine_source *source = NULL;
    *out = NULL;
    if (first_grain < 0 || grains < 0 || grains > shape->grains - first_grain || threads < 1)
        SHOAL_BUG("a source of grains that the data set does not have");
    int status = base_alloc(&source, 1, sizeof *source, "a source of rows");
    if (status < 0)
        return status;
    source->data = data;
    source->shape = *shape;
    source->first_grain = first_grain;
    source->grains = grains;
    source->first_row = grains ? first_grain * shape->rows_per_grain : 0;
    source->rows = grains ? engine_rows_of(shape, first_grain, grains) : 0;
    source->row_bytes = (size_t)shape->columns * shoal_type_size(shape->type);
    source->threads = threads;
    source->memory = memory;
    data_buffer_init(&source->spilled, shoal_data_path(data), 1); /* only rows that do not fit into memory go there */
    *out = source;
    return SHOAL_OK;
}

void engine_source_free(engine_source **inout)
{
    engine_source *source = *inout;
    if (!source)
        return;
    for (int i = 0; source->buffer && i < source->threads; i++)
        base_free(&source->buffer[i]);
    base_free(&source->buffer);
    base_free(&source->resident);
    data_buffer_release(&source->spilled);
    base_free(inout);
}

/* ---- loading ----------------------------------------------------------------------------------------------------- */

static bool fits_in_memory(const engine_source *source)
{
    int64_t limit = source->memory ? source->memory : base_memory_available() / 2;
    return (double)source->rows * (double)source->row_bytes <= (double)limit;
}

/* The rows of one grain of this source, counted from its own first. */
static int64_t grain_rows(const engine_source *source, int64_t *first_row, int64_t item)
{
    *first_row = (source->first_grain + item) * source->shape.rows_per_grain;
    return engine_rows_of(&source->shape, source->first_grain + item, 1);
}

static int make_grain(void *context, int64_t item, int thread)
{
    engine_source *source = context;
    int64_t first, rows = grain_rows(source, &first, item);
    unsigned char *to = (unsigned char *)source->resident + (size_t)(first - source->first_row) * source->row_bytes;
    const void *made;
    (void)thread;
    return shoal_data_read(&made, source->data, first, rows, to);
}

static int make_rows(engine_source *source, base_pool *pool)
{
    int status = base_alloc_unset(&source->resident, (size_t)source->rows, source->row_bytes, "generated rows");
    if (status == SHOAL_OK)
        status = base_pool_each(pool, source->grains, make_grain, source);
    if (status == SHOAL_OK)
        source->kept = source->resident;
    return status;
}

static int make_buffers(engine_source *source)
{
    int64_t most = source->shape.rows_per_grain < source->rows ? source->shape.rows_per_grain : source->rows;
    int status = base_alloc(&source->buffer, (size_t)source->threads, sizeof *source->buffer, "row buffers");
    for (int i = 0; status == SHOAL_OK && i < source->threads; i++)
        status = base_alloc(&source->buffer[i], (size_t)most, source->row_bytes, "a row buffer");
    return status;
}

static int fetch_rows(engine_source *source, const data_place *place, base_pool *pool)
{
    size_t size = (size_t)source->rows * source->row_bytes;
    void *to = NULL;
    int status;
    if (fits_in_memory(source)) {
        status = base_alloc_unset(&source->resident, size, 1, "rows from a store");
        to = source->resident;
    } else {
        status = data_buffer_reserve(&source->spilled, size);
        to = source->spilled.bytes;
    }
    if (status == SHOAL_OK)
        status = engine_fetch(to, place, source->first_row * (int64_t)source->row_bytes, size, pool);
    if (status == SHOAL_OK && source->shape.type == SHOAL_BOOL)
        engine_clean_bools(to, size);
    if (status == SHOAL_OK)
        source->kept = to;
    return status;
}

int engine_source_load(engine_source *source, base_pool *pool)
{
    data_place place = data_place_of(source->data);
    if (source->rows == 0 || shoal_data_is_resident(source->data))
        return SHOAL_OK;
    if (place.kind == DATA_IN_BLOB)
        return fetch_rows(source, &place, pool);
    return fits_in_memory(source) ? make_rows(source, pool) : make_buffers(source);
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static int read_rows(void *context, const void **out, int64_t first_row, int64_t rows, int thread)
{
    engine_source *source = context;
    if (first_row < source->first_row || rows < 0 || first_row - source->first_row > source->rows - rows)
        SHOAL_BUG("rows %lld and %lld more are not this process's", (long long)first_row, (long long)rows);
    if (source->kept) {
        *out = source->kept + (size_t)(first_row - source->first_row) * source->row_bytes;
        return SHOAL_OK;
    }
    return shoal_data_read(out, source->data, first_row, rows, source->buffer ? source->buffer[thread] : NULL);
}

static int check_rows(void *context)
{
    const engine_source *source = context;
    return shoal_data_check(source->data);
}

/* Where the rows are, if all of them stay in memory. */
static const void *resident_rows(engine_source *source)
{
    const void *rows = source->kept;
    if (!rows && source->rows > 0 && shoal_data_is_resident(source->data) &&
        shoal_data_read(&rows, source->data, source->first_row, source->rows, NULL) < 0)
        return NULL;
    return rows;
}

engine_rows engine_source_rows(engine_source *source, const double *weights)
{
    return (engine_rows){.read = read_rows,
                         .check = check_rows,
                         .context = source,
                         .resident = resident_rows(source),
                         .weights = weights ? weights + source->first_row : NULL};
}

/* ---- what the rows are known by ---------------------------------------------------------------------------------- */

/* Four lanes of multiplications and rotations that a CPU runs in parallel, as in Collet's XXH64; no protection against
 * someone who wants two data sets to look alike. */
enum { LANES = 4 };
static const uint64_t odd_1 = UINT64_C(0x9e3779b97f4a7c15), odd_2 = UINT64_C(0xd1b54a32d192ed03);

static uint64_t rotate(uint64_t value, int by)
{
    return value << by | value >> (64 - by);
}

/* Every bit of the input moves half of the output's: the last steps of SplitMix64 (Steele, Lea and Flood 2014). */
static uint64_t mix(uint64_t value)
{
    value = (value ^ value >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    value = (value ^ value >> 27) * UINT64_C(0x94d049bb133111eb);
    return value ^ value >> 31;
}

static void add_lanes(uint64_t lane[LANES], const unsigned char *bytes)
{
    for (int i = 0; i < LANES; i++) {
        uint64_t word;
        memcpy(&word, bytes + (size_t)i * sizeof word, sizeof word);
        lane[i] = rotate(lane[i] + word * odd_2, 31) * odd_1;
    }
}

static uint64_t hash_bytes(uint64_t seed, const void *data, size_t size)
{
    enum { STEP = LANES * sizeof(uint64_t) };
    const unsigned char *bytes = data;
    uint64_t lane[LANES], hash = mix(seed + size * odd_1);
    unsigned char rest[STEP] = {0};
    size_t done = 0;
    for (int i = 0; i < LANES; i++)
        lane[i] = mix(seed + (uint64_t)i * odd_2);
    for (; size - done >= STEP; done += STEP)
        add_lanes(lane, bytes + done);
    if (done < size) {
        memcpy(rest, bytes + done, size - done);
        add_lanes(lane, rest);
    }
    for (int i = 0; i < LANES; i++)
        hash = mix(hash ^ mix(lane[i])) + odd_2;
    return hash;
}

typedef struct fingerprinting {
    engine_source *source;
    const double *weights;
    atomic_ullong sum; /* wraps, and the order does not matter */
} fingerprinting;

static int add_grain(void *context, int64_t item, int thread)
{
    fingerprinting *job = context;
    engine_source *source = job->source;
    int64_t first, rows = grain_rows(source, &first, item);
    const void *values;
    int status = read_rows(source, &values, first, rows, thread);
    if (status < 0)
        return status;
    uint64_t hash = hash_bytes((uint64_t)(source->first_grain + item), values, (size_t)rows * source->row_bytes);
    if (job->weights)
        hash = mix(hash + odd_1) ^ hash_bytes(hash, job->weights + first, (size_t)rows * sizeof *job->weights);
    atomic_fetch_add(&job->sum, mix(hash));
    return SHOAL_OK;
}

int engine_source_fingerprint(uint64_t *out, engine_source *source, const double *weights, base_pool *pool)
{
    fingerprinting job = {.source = source, .weights = weights};
    int status = base_pool_each(pool, source->grains, add_grain, &job);
    if (status == SHOAL_OK)
        status = check_rows(source);
    *out = atomic_load(&job.sum);
    return status;
}
