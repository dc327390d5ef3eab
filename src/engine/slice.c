/* Mapping the grains of a slice on the threads of a mapper.  See slice.h.
 *
 * Every thread adds to its own partial; when all grains are done those are added to the slice's.  Which thread gets a
 * grain differs from map to map but changes nothing, since merging is exact.  A mapper with one thread adds to the
 * slice's partial directly. */
#include "engine/slice.h"

#include <stdatomic.h>
#include <stdio.h>

#include "base/memory.h"
#include "engine/gather.h"
#include "learn/partial.h"
#include "learn/pick.h"

/* Values: what a thread merges at a time, at the least; and, of all partials together, so many that it is worth it to
 * wake threads. */
enum { MERGE_LEAST = 1 << 12, MERGE_WAKES = 1 << 17 };

typedef struct mapper_thread {
    shoal_partial *partial; /* NULL when there is one thread; neutral but for what the current map added */
    shoal_scratch scratch;
    engine_gather gather;
    int64_t counters[SHOAL_COUNTERS];
    bool has_mapped;                          /* the partial holds something of the current map */
} __attribute__((aligned(64))) mapper_thread; /* a thread's own cache lines */

struct engine_mapper {
    const shoal_algorithm *algorithm;
    const shoal_shape *shape;
    const kernel_set *kernel;
    base_pool *pool;
    shoal_crew crew;
    const _Atomic uint32_t *stop;
    void (*poll)(void *context);
    void *poll_context;
    int64_t scratch_most; /* of all threads; 0: any */
    int64_t memo_most;    /* of a slice, where the learner can do without; -1: any */
    int64_t spared;
    const shoal_row_memory *into;
    const shoal_round *round; /* NULL before the first round began, or if that failed */
    bool ready;               /* for maps of grains: prepare and scratch are this round's */
    bool is_lost;             /* the device: nothing is held any more */
    char lost[256];           /* why, or why it did not hold a slice at all */
    void *prepared;
    mapper_thread *thread;
    shoal_partial **mapped; /* room for one a thread */
};

struct engine_slice {
    int64_t first_grain, grains;
    engine_rows rows;

    unsigned char *memo;
    size_t memo_row_bytes;
    int64_t memo_round;            /* the round that wrote the memo; -1 when it is void */
    const kernel_set *memo_kernel; /* and what it was computed with */

    shoal_partial *kept;  /* of the last round that wrote the memo: carried sums continue from it */
    shoal_partial *other; /* of rounds that do not */

    const shoal_algorithm *holder; /* whose `held` it is */
    void *held;                    /* what the device has; NULL for nothing */
    bool was_asked;                /* attach was, and is not asked again */
};

/* ---- the mapper -------------------------------------------------------------------------------------------------- */

static int each_mapper(const shoal_crew *crew, int64_t items, int (*task)(void *, int64_t, int), void *context)
{
    const engine_mapper *mapper = (const engine_mapper *)((const char *)crew - offsetof(engine_mapper, crew));
    return base_pool_each(mapper->pool, items, task, context);
}

static bool asked_mapper(const shoal_crew *crew)
{
    const engine_mapper *mapper = (const engine_mapper *)((const char *)crew - offsetof(engine_mapper, crew));
    if (mapper->poll)
        mapper->poll(mapper->poll_context);
    return mapper->stop && atomic_load_explicit(mapper->stop, memory_order_relaxed);
}

int engine_mapper_new(engine_mapper **out, const shoal_algorithm *algorithm, const shoal_shape *shape, int threads,
                      const kernel_set *kernel)
{
    engine_mapper *mapper = NULL;
    int status = base_alloc(&mapper, 1, sizeof *mapper, "a mapper");
    if (status < 0)
        return status;
    mapper->algorithm = algorithm;
    mapper->shape = shape;
    mapper->kernel = kernel;
    mapper->memo_most = -1;
    mapper->crew = (shoal_crew){.each = each_mapper, .threads = threads, .kernel = kernel->name, .asked = asked_mapper};
    status = base_alloc(&mapper->thread, (size_t)threads, sizeof *mapper->thread, "threads");
    if (status == SHOAL_OK)
        status = base_alloc(&mapper->mapped, (size_t)threads, sizeof *mapper->mapped, "threads");
    if (status == SHOAL_OK)
        status = base_pool_new(&mapper->pool, threads);
    if (status < 0) {
        engine_mapper_free(&mapper);
        return status;
    }
    for (int i = 0; i < threads; i++)
        mapper->thread[i].scratch.counters = mapper->thread[i].counters;
    *out = mapper;
    return SHOAL_OK;
}

void engine_mapper_free(engine_mapper **inout)
{
    engine_mapper *mapper = *inout;
    if (!mapper)
        return;
    if (mapper->algorithm->forget)
        mapper->algorithm->forget(&mapper->prepared);
    for (int i = 0; mapper->thread && i < mapper->crew.threads; i++) {
        learn_partial_free(&mapper->thread[i].partial);
        base_free(&mapper->thread[i].scratch.memory);
        engine_gather_free(&mapper->thread[i].gather);
    }
    base_free(&mapper->thread);
    base_free(&mapper->mapped);
    base_pool_free(&mapper->pool);
    base_free(inout);
}

void engine_mapper_bring(engine_mapper *mapper, const char *code)
{
    mapper->crew.code = code;
}

void engine_mapper_blobs(engine_mapper *mapper, const shoal_blobs *from, const shoal_blobs *to)
{
    mapper->crew.from = from;
    mapper->crew.to = to;
}

void engine_mapper_device(engine_mapper *mapper, struct kernel_device *device)
{
    mapper->crew.device = device;
}

const char *engine_mapper_lost(const engine_mapper *mapper)
{
    return mapper->lost;
}

void engine_mapper_into(engine_mapper *mapper, const shoal_row_memory *into)
{
    mapper->into = into;
}

void engine_mapper_limit(engine_mapper *mapper, int64_t bytes)
{
    mapper->scratch_most = bytes;
}

int64_t engine_mapper_scratch(const engine_mapper *mapper)
{
    int64_t bytes = 0;
    for (int i = 0; i < mapper->crew.threads; i++)
        bytes += (int64_t)(mapper->thread[i].scratch.bytes + mapper->thread[i].gather.bytes);
    return bytes;
}

void engine_mapper_memo(engine_mapper *mapper, int64_t bytes)
{
    mapper->memo_most = bytes;
}

int64_t engine_mapper_spared(const engine_mapper *mapper)
{
    return mapper->spared;
}

const shoal_crew *engine_mapper_crew(const engine_mapper *mapper)
{
    return &mapper->crew;
}

base_pool *engine_mapper_pool(engine_mapper *mapper)
{
    return mapper->pool;
}

void engine_mapper_watch(engine_mapper *mapper, const _Atomic uint32_t *stop)
{
    mapper->stop = stop;
}

void engine_mapper_poll(engine_mapper *mapper, void (*poll)(void *context), void *context)
{
    mapper->poll = poll;
    mapper->poll_context = context;
}

void engine_mapper_counted(engine_mapper *mapper, int64_t *counter)
{
    for (int i = 0; i < mapper->crew.threads; i++)
        for (int c = 0; c < SHOAL_COUNTERS; c++) {
            counter[c] += mapper->thread[i].counters[c];
            mapper->thread[i].counters[c] = 0;
        }
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* What an earlier round needed stays for a later one, unless both together are more than there may be. */
static int make_scratch_of(mapper_thread *thread, size_t bytes, size_t gathered, size_t most)
{
    shoal_scratch *scratch = &thread->scratch;
    int status = SHOAL_OK;
    if (larger(scratch->bytes, bytes) > most - larger(thread->gather.bytes, gathered)) {
        base_free(&scratch->memory);
        scratch->bytes = 0;
        engine_gather_free(&thread->gather);
    }
    if (scratch->bytes < bytes) {
        base_free(&scratch->memory);
        scratch->bytes = 0;
        status = base_alloc(&scratch->memory, bytes, 1, "scratch memory of a thread");
        scratch->bytes = status == SHOAL_OK ? bytes : 0;
    }
    return status == SHOAL_OK ? engine_gather_reserve(&thread->gather, gathered) : status;
}

static int make_scratch(engine_mapper *mapper, const shoal_round *round)
{
    const shoal_algorithm *algorithm = mapper->algorithm;
    size_t bytes = algorithm->scratch_bytes ? algorithm->scratch_bytes(round, mapper->prepared, mapper->shape) : 0;
    size_t gathered = engine_gather_bytes(round, mapper->shape);
    size_t most = mapper->scratch_most ? (size_t)mapper->scratch_most / (size_t)mapper->crew.threads : SIZE_MAX;
    if (gathered > most || bytes > most - gathered)
        return shoal_fail(
            SHOAL_MEMORY,
            "round %lld needs %zu bytes of scratch memory for each of %d threads, and %lld are left for all",
            (long long)round->number, gathered > SIZE_MAX - bytes ? SIZE_MAX : bytes + gathered, mapper->crew.threads,
            (long long)mapper->scratch_most);
    for (int i = 0; i < mapper->crew.threads; i++) {
        mapper_thread *thread = &mapper->thread[i];
        int status = make_scratch_of(thread, bytes, gathered, most);
        if (status < 0)
            return status;
        size_t has = thread->scratch.bytes + thread->gather.bytes;
        thread->scratch.spare = !mapper->scratch_most ? 0 : most > has ? (int64_t)(most - has) : 1;
    }
    return SHOAL_OK;
}

/* What maps of grains need. */
static int make_ready(engine_mapper *mapper, const shoal_round *round)
{
    const shoal_algorithm *algorithm = mapper->algorithm;
    int status = SHOAL_OK;
    if (mapper->ready)
        return SHOAL_OK;
    if (algorithm->prepare) {
        status = algorithm->prepare(&mapper->prepared, round, mapper->shape, &mapper->crew);
        if (status < 0 && algorithm->forget)
            algorithm->forget(&mapper->prepared); /* half-made memory is of no use to the next attempt */
    }
    if (status == SHOAL_OK)
        status = make_scratch(mapper, round);
    mapper->ready = status == SHOAL_OK;
    return status;
}

static bool may_hold(const engine_mapper *mapper, const shoal_round *round)
{
    return mapper->crew.device && mapper->algorithm->map_many && !mapper->is_lost && round->layout.pick.count == 0 &&
           round->layout.part == SHOAL_ALL;
}

int engine_mapper_begin(engine_mapper *mapper, const shoal_round *round)
{
    int status = learn_pick_check(round, mapper->shape);
    mapper->round = NULL;
    mapper->ready = false;
    if (status == SHOAL_OK && !may_hold(mapper, round)) /* else once a slice turns out not to be held */
        status = make_ready(mapper, round);
    if (status == SHOAL_OK)
        mapper->round = round;
    return status;
}

/* ---- the slice --------------------------------------------------------------------------------------------------- */

int64_t engine_rows_of(const shoal_shape *shape, int64_t first_grain, int64_t grains)
{
    int64_t first = first_grain * shape->rows_per_grain, rows = grains * shape->rows_per_grain;
    return grains == 0 || rows < shape->rows - first ? rows : shape->rows - first;
}

int engine_slice_new(engine_slice **out, int64_t first_grain, int64_t grains, const engine_rows *rows)
{
    engine_slice *slice = NULL;
    int status = base_alloc(&slice, 1, sizeof *slice, "a slice");
    if (status < 0)
        return status;
    slice->first_grain = first_grain;
    slice->grains = grains;
    slice->rows = *rows;
    slice->memo_round = -1;
    *out = slice;
    return SHOAL_OK;
}

void engine_slice_free(engine_slice **slice)
{
    if (!*slice)
        return;
    if ((*slice)->held)
        (*slice)->holder->detach(&(*slice)->held);
    base_free(&(*slice)->memo);
    learn_partial_free(&(*slice)->kept);
    learn_partial_free(&(*slice)->other);
    base_free(slice);
}

/* ---- one map ----------------------------------------------------------------------------------------------------- */

typedef struct mapping {
    engine_mapper *mapper;
    engine_slice *slice;
    int64_t first_row, rows; /* of the slice */
    int64_t first_item;      /* grains of the slice before the part that is being mapped */
    int64_t first_stratum;   /* of a batch: the slice's first stratum, and how many groups each has */
    int64_t groups;
    shoal_partial *merged;
    bool carried;
} mapping;

static bool has_cells(const shoal_layout *layout, shoal_cell_kind kind)
{
    for (int i = 0; i < layout->cells; i++)
        if (layout->cell[i].kind == kind)
            return true;
    return false;
}

static bool carries_sums(const shoal_layout *layout)
{
    for (int i = 0; i < layout->cells; i++)
        if (layout->cell[i].carried)
            return true;
    return false;
}

/* Whether there is no room for the memo, and the learner computes anew what it would have had. */
static bool spares_memo(mapping *job, const shoal_layout *layout)
{
    engine_mapper *mapper = job->mapper;
    int64_t bytes;
    if (!mapper->algorithm->spares_memo || mapper->memo_most < 0)
        return false;
    if (__builtin_mul_overflow(job->rows, (int64_t)layout->memo_row_bytes, &bytes))
        bytes = INT64_MAX;
    if (bytes <= mapper->memo_most)
        return false;
    mapper->spared = bytes > mapper->spared ? bytes : mapper->spared;
    return true;
}

static int make_memo(mapping *job, const shoal_layout *layout)
{
    engine_slice *slice = job->slice;
    const size_t bytes = spares_memo(job, layout) ? 0 : layout->memo_row_bytes;
    if (bytes == slice->memo_row_bytes)
        return SHOAL_OK;
    base_free(&slice->memo);
    slice->memo_row_bytes = 0;
    slice->memo_round = -1;
    if (!bytes)
        return SHOAL_OK;
    int status = base_alloc(&slice->memo, (size_t)job->rows, bytes, "the memo of the rows");
    if (status == SHOAL_OK)
        slice->memo_row_bytes = bytes;
    return status;
}

/* Whether the memo, and the carried sums if any, are still those of round carry_from.  A round that was mapped before
 * has left its own number in memo_round, so nothing is carried the second time. */
static bool can_carry(const engine_slice *slice, const engine_mapper *mapper, const shoal_layout *layout)
{
    if (layout->carry_from < 0 || slice->memo_round != layout->carry_from || slice->memo_kernel != mapper->kernel)
        return false;
    if (slice->memo_row_bytes != layout->memo_row_bytes) /* there was no memory for it */
        return false;
    if (!carries_sums(layout))
        return true;
    /* The round that wrote the memo left its partial in `kept`, but perhaps with other sums, and one with ROW cells is
     * made anew. */
    return layout->writes_memo && !has_cells(layout, SHOAL_CELL_ROW) &&
           learn_layout_equal(shoal_partial_layout(slice->kept), layout);
}

static int make_merged(mapping *job, const shoal_layout *layout)
{
    shoal_partial **merged = layout->writes_memo ? &job->slice->kept : &job->slice->other;
    /* One with ROW cells is made anew: the result may have taken its rows. */
    if (*merged && (has_cells(layout, SHOAL_CELL_ROW) || !learn_layout_equal(shoal_partial_layout(*merged), layout)))
        learn_partial_free(merged);
    if (!*merged) {
        int status = learn_partial_new_into(merged, layout, job->first_row, job->rows, job->mapper->into);
        if (status < 0)
            return status;
    } else if (job->mapper->crew.threads == 1) {
        learn_partial_clear(*merged, job->carried);
    } else {
        learn_partial_clear_records(*merged); /* its values are assigned, or added to, when threads are done */
    }
    job->merged = *merged;
    return SHOAL_OK;
}

/* The threads' partials serve every slice in turn; each is cleared as it is merged. */
static int make_partials_of_threads(mapping *job, const shoal_layout *layout)
{
    engine_mapper *mapper = job->mapper;
    for (int i = 0; i < mapper->crew.threads; i++) {
        mapper_thread *thread = &mapper->thread[i];
        const bool is_left_over = thread->has_mapped; /* by a map that failed */
        thread->has_mapped = false;
        if (mapper->crew.threads == 1)
            continue;
        if (thread->partial && learn_layout_equal(shoal_partial_layout(thread->partial), layout)) {
            learn_partial_lend_rows(thread->partial, job->merged);
            if (is_left_over)
                learn_partial_clear(thread->partial, false);
            continue;
        }
        learn_partial_free(&thread->partial);
        int status = learn_partial_new(&thread->partial, layout, job->first_row, job->rows, job->merged);
        if (status < 0)
            return status;
    }
    return SHOAL_OK;
}

static shoal_partial *partial_of(const mapping *job, mapper_thread *thread)
{
    if (!thread->partial)
        return job->merged;
    thread->has_mapped = true;
    return thread->partial;
}

/* The rows of a grain that the round's part has. */
static int read_grain(shoal_grain *grain, const mapping *job, int64_t item, int by)
{
    const engine_slice *slice = job->slice;
    const engine_rows *rows = &slice->rows;
    grain->index = slice->first_grain + job->first_item + item;
    learn_places seen = learn_part_of_grain(job->mapper->round->layout.part, grain->shape, grain->index);
    int64_t before = seen.from - job->first_row;
    grain->first_row = seen.from;
    grain->rows = seen.count;
    grain->weights = rows->weights ? rows->weights + before : NULL;
    grain->memo = slice->memo ? slice->memo + (size_t)before * slice->memo_row_bytes : NULL;
    return seen.count ? rows->read(rows->context, &grain->values, seen.from, seen.count, by) : SHOAL_OK;
}

static int read_group(shoal_grain *grain, const mapping *job, int64_t item, int by)
{
    const engine_gather_from from = {&job->slice->rows, job->first_row, job->slice->memo};
    engine_mapper *mapper = job->mapper;
    int64_t stratum = job->first_stratum + item / job->groups, group = item % job->groups;
    grain->index = stratum * job->groups + group;
    return engine_gather_group(grain, &mapper->thread[by].gather, &mapper->round->layout, &from, stratum, group, by);
}

/* Maps one grain, or one group of a batch. */
static int map_item(void *context, int64_t item, int by)
{
    mapping *job = context;
    engine_mapper *mapper = job->mapper;
    mapper_thread *thread = &mapper->thread[by];
    shoal_grain grain = {.shape = mapper->shape, .carried = job->carried};
    if (mapper->poll && by == 0)
        mapper->poll(mapper->poll_context);
    if (mapper->stop && atomic_load_explicit(mapper->stop, memory_order_relaxed))
        return shoal_fail(SHOAL_STOPPED, "stopped while mapping rows");
    int status = job->groups ? read_group(&grain, job, item, by) : read_grain(&grain, job, item, by);
    if (status < 0 || grain.rows == 0)
        return status;
    return mapper->algorithm->map(partial_of(job, thread), mapper->round, mapper->prepared, &grain, &thread->scratch);
}

/* How the values of all cells are cut for merging. */
typedef struct merging {
    mapping *job;
    int froms;     /* of mapper->mapped */
    int64_t chunk; /* values of a cell that are merged at a time */
} merging;

static int64_t chunks_of(const merging *merging, const shoal_cell *cell)
{
    return (learn_cell_values(cell) + merging->chunk - 1) / merging->chunk;
}

/* One chunk of one cell of all threads' partials; `item` counts chunks over all cells. */
static int merge_chunk(void *context, int64_t item, int by)
{
    const merging *merging = context;
    const mapping *job = merging->job;
    const shoal_layout *layout = &job->mapper->round->layout;
    int cell = 0;
    (void)by;
    for (int64_t chunks; item >= (chunks = chunks_of(merging, &layout->cell[cell])); cell++)
        item -= chunks;
    int64_t first = item * merging->chunk, left = learn_cell_values(&layout->cell[cell]) - first;
    learn_partial_gather_values(job->merged, job->mapper->mapped, merging->froms, cell, first,
                                left < merging->chunk ? left : merging->chunk,
                                job->carried && layout->cell[cell].carried);
    return SHOAL_OK;
}

static int merge_values(mapping *job, int froms)
{
    enum { VALUES_A_LINE = 8, CHUNKS_A_THREAD = 4 };
    engine_mapper *mapper = job->mapper;
    const shoal_layout *layout = &mapper->round->layout;
    int64_t values = 0, chunks = 0;
    for (int cell = 0; cell < layout->cells; cell++)
        values += learn_cell_values(&layout->cell[cell]);
    merging merging = {.job = job, .froms = froms, .chunk = values / (CHUNKS_A_THREAD * mapper->crew.threads)};
    merging.chunk =
        merging.chunk < MERGE_LEAST ? MERGE_LEAST : (merging.chunk + VALUES_A_LINE - 1) / VALUES_A_LINE * VALUES_A_LINE;
    for (int cell = 0; cell < layout->cells; cell++)
        chunks += chunks_of(&merging, &layout->cell[cell]);
    return values < MERGE_WAKES / (froms + 1) ? base_pool_each_awake(mapper->pool, chunks, merge_chunk, &merging)
                                              : base_pool_each(mapper->pool, chunks, merge_chunk, &merging);
}

static int merge(mapping *job)
{
    engine_mapper *mapper = job->mapper;
    int status = SHOAL_OK, froms = 0;
    if (mapper->crew.threads == 1)
        return learn_partial_settle(job->merged);
    for (int i = 0; i < mapper->crew.threads; i++)
        if (mapper->thread[i].has_mapped)
            mapper->mapped[froms++] = mapper->thread[i].partial;
    status = merge_values(job, froms);
    for (int i = 0; status == SHOAL_OK && i < froms; i++) {
        status = learn_partial_merge_records(job->merged, mapper->mapped[i]);
        learn_partial_clear_records(mapper->mapped[i]);
    }
    for (int i = 0; status == SHOAL_OK && i < mapper->crew.threads; i++)
        mapper->thread[i].has_mapped = false;
    return status == SHOAL_OK ? learn_partial_settle(job->merged) : status;
}

/* If the rows changed while they were read, what was computed is discarded, and so is a learner's complaint about
 * them. */
static int check_rows(const engine_rows *rows, int status)
{
    int lost = rows->check ? rows->check(rows->context) : SHOAL_OK;
    return lost < 0 ? lost : status;
}

int64_t engine_part_begin(int64_t grains, int64_t parts, int64_t part)
{
    return grains / parts * part + (grains % parts) * part / parts;
}

static int map_parts(mapping *job, const engine_parts *parts)
{
    const engine_slice *slice = job->slice;
    int status = SHOAL_OK;
    for (int64_t part = 0; status == SHOAL_OK && part < parts->parts; part++) {
        job->first_item = engine_part_begin(slice->grains, parts->parts, part);
        int64_t grains = engine_part_begin(slice->grains, parts->parts, part + 1) - job->first_item;
        status = base_pool_each(job->mapper->pool, grains, map_item, job);
        if (status == SHOAL_OK && parts->done)
            parts->done(parts->context, job->merged, part);
    }
    return status;
}

/* A batch has no rows that anybody could be told of before all is done. */
static int map_batch(mapping *job, const engine_parts *parts)
{
    const engine_slice *slice = job->slice;
    const shoal_shape *shape = job->mapper->shape;
    int64_t end = learn_stratum_from(shape, slice->first_grain + slice->grains);
    job->first_stratum = learn_stratum_from(shape, slice->first_grain);
    job->groups = learn_pick_groups(&job->mapper->round->layout.pick, shape);
    if (job->first_stratum < 0 || end < 0 || parts->parts != 1)
        SHOAL_BUG("a slice has strata that it does not hold as a whole");
    int status = base_pool_each(job->mapper->pool, (end - job->first_stratum) * job->groups, map_item, job);
    if (status == SHOAL_OK && parts->done)
        parts->done(parts->context, job->merged, 0);
    return status;
}

/* ---- on a device ------------------------------------------------------------------------------------------------- */

typedef struct slice_rows {
    shoal_slice_rows rows; /* first */
    const engine_slice *slice;
} slice_rows;

static int read_slice_rows(const shoal_slice_rows *self, const void **out, int64_t first_row, int64_t rows, int thread)
{
    const engine_rows *from = &((const slice_rows *)self)->slice->rows;
    return from->read(from->context, out, first_row, rows, thread);
}

/* What is held is void; the failure's sentence is kept.  A device without room for one slice may have it for another.
 */
static void let_go(engine_slice *slice, engine_mapper *mapper, int status)
{
    if (status != SHOAL_ABSENT)
        snprintf(mapper->lost, sizeof mapper->lost, "%s", shoal_error());
    mapper->is_lost |= status != SHOAL_ABSENT && status != SHOAL_MEMORY;
    slice->holder->detach(&slice->held);
}

/* Whether the device may be asked: it is not where it has refused this slice. */
static bool is_worth_asking(const engine_mapper *mapper, const engine_slice *slice, const shoal_round *round)
{
    return may_hold(mapper, round) && slice->grains > 0 && (slice->held || !slice->was_asked);
}

/* Has the device hold the slice's rows, now if not before.  SHOAL_ABSENT: it does not.  Other failures are the map's:
 * it was stopped while rows went there, or those were not the right rows. */
static int hold(mapping *job)
{
    engine_slice *slice = job->slice;
    engine_mapper *mapper = job->mapper;
    slice_rows rows = {.rows = {.shape = mapper->shape,
                                .first_row = job->first_row,
                                .rows = job->rows,
                                .weights = slice->rows.weights,
                                .read = read_slice_rows},
                       .slice = slice};
    if (!is_worth_asking(mapper, slice, mapper->round))
        return SHOAL_ABSENT;
    if (slice->held)
        return SHOAL_OK;
    slice->holder = mapper->algorithm;
    int status = mapper->algorithm->attach(&slice->held, mapper->round, &rows.rows, &mapper->crew);
    const int checked = check_rows(&slice->rows, SHOAL_OK);
    if (checked < 0 || status == SHOAL_STOPPED) { /* no word against the device */
        mapper->algorithm->detach(&slice->held);
        return checked < 0 ? checked : status;
    }
    slice->was_asked = true;
    if (status < 0)
        let_go(slice, mapper, status);
    return slice->held ? SHOAL_OK : SHOAL_ABSENT;
}

/* The whole slice at once.  SHOAL_ABSENT: grain by grain, as if the device had never been asked. */
static int map_held(mapping *job, const shoal_layout *layout, const engine_parts *parts)
{
    engine_slice *slice = job->slice;
    engine_mapper *mapper = job->mapper;
    int status = hold(job);
    job->carried = false;
    if (status == SHOAL_OK)
        status = make_merged(job, layout);
    if (status < 0)
        return status;
    learn_partial_clear(job->merged, false);
    status =
        mapper->algorithm->map_many(job->merged, mapper->round, slice->held, &mapper->crew, mapper->thread[0].counters);
    if (status != SHOAL_ABSENT && layout->writes_memo)
        slice->memo_round = -1;
    if (status == SHOAL_OK)
        status = learn_partial_settle(job->merged);
    if (status < 0 && status != SHOAL_STOPPED)
        learn_partial_clear(job->merged, false);
    if (status < 0 && status != SHOAL_STOPPED && status != SHOAL_ABSENT) {
        let_go(slice, mapper, status);
        status = SHOAL_ABSENT;
    }
    for (int64_t part = 0; status == SHOAL_OK && parts->done && part < parts->parts; part++)
        parts->done(parts->context, job->merged, part);
    return status;
}

bool engine_slice_held(const engine_slice *slice)
{
    return slice->held != NULL;
}

int engine_slice_leap(shoal_round **next, int64_t *rounds, engine_mapper *mapper, engine_slice *slice,
                      const shoal_round *round, int64_t most)
{
    mapping job = {.mapper = mapper,
                   .slice = slice,
                   .first_row = slice->first_grain * mapper->shape->rows_per_grain,
                   .rows = engine_rows_of(mapper->shape, slice->first_grain, slice->grains)};
    *next = NULL;
    *rounds = 0;
    if (!mapper->algorithm->leap || slice->grains != mapper->shape->grains || !is_worth_asking(mapper, slice, round))
        return SHOAL_OK;
    int status = engine_mapper_begin(mapper, round);
    if (status == SHOAL_OK)
        status = hold(&job);
    if (status < 0)
        return status == SHOAL_ABSENT ? SHOAL_OK : status;
    status = mapper->algorithm->leap(next, rounds, mapper->round, slice->held, most, &mapper->crew,
                                     mapper->thread[0].counters);
    if (status == SHOAL_OK && *rounds > 0)
        slice->memo_round = -1;
    if (status == SHOAL_OK || status == SHOAL_STOPPED)
        return status;
    shoal_round_free(next);
    *rounds = 0;
    if (status != SHOAL_ABSENT)
        let_go(slice, mapper, status);
    return SHOAL_OK;
}

/* ---- grain by grain ---------------------------------------------------------------------------------------------- */

int engine_slice_map(shoal_partial **out, engine_mapper *mapper, engine_slice *slice)
{
    return engine_slice_map_parts(out, mapper, slice, &(engine_parts){.parts = 1});
}

int engine_slice_map_parts(shoal_partial **out, engine_mapper *mapper, engine_slice *slice, const engine_parts *parts)
{
    if (!mapper->round)
        SHOAL_BUG("a slice was mapped before a round began");
    if (slice->first_grain < 0 || slice->grains < 0 || slice->grains > mapper->shape->grains - slice->first_grain)
        SHOAL_BUG("a slice has grains that the data set does not have");
    const shoal_layout *layout = &mapper->round->layout;
    mapping job = {.mapper = mapper,
                   .slice = slice,
                   .first_row = slice->first_grain * mapper->shape->rows_per_grain,
                   .rows = engine_rows_of(mapper->shape, slice->first_grain, slice->grains)};
    int status = map_held(&job, layout, parts);
    if (status != SHOAL_ABSENT) {
        *out = status == SHOAL_OK ? job.merged : *out;
        return status;
    }
    status = make_ready(mapper, mapper->round);
    if (status == SHOAL_OK)
        status = make_memo(&job, layout);
    if (status < 0)
        return status;
    job.carried = can_carry(slice, mapper, layout);
    if (layout->writes_memo)
        slice->memo_round = -1; /* from here on until all of it is written */
    status = make_merged(&job, layout);
    if (status == SHOAL_OK)
        status = make_partials_of_threads(&job, layout);
    if (status == SHOAL_OK)
        status = check_rows(&slice->rows, layout->pick.count ? map_batch(&job, parts) : map_parts(&job, parts));
    if (status == SHOAL_OK)
        status = merge(&job);
    if (status < 0)
        return status;
    if (layout->writes_memo) {
        slice->memo_round = mapper->round->number;
        slice->memo_kernel = mapper->kernel;
    }
    *out = job.merged;
    return SHOAL_OK;
}
