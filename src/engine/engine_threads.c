/* The reference engine: one process, a pool of threads over grains.
 *
 * Every thread adds to a partial of its own; after the grains are done those are added up.  The whole data set is
 * one slice: its memo is one array, and the sums that a learner carries from round to round stay in `kept`. */
#include <string.h>

#include "base/memory.h"
#include "base/pool.h"
#include "engine/engine_internal.h"
#include "learn/partial.h"

enum { MERGE_CHUNK = 1 << 15 };

typedef struct threads_run {
    const engine_job *job;
    base_pool *pool;
    shoal_crew crew;

    shoal_round *round;
    void *prepared;
    void *resident; /* rows of a data set that is made, not mapped, when they fit into memory */

    unsigned char *memo;
    size_t memo_row_bytes;
    int64_t memo_round; /* the round that wrote the memo; -1 when it is void */

    shoal_partial *kept;   /* merged partial of the last round that wrote the memo */
    shoal_partial *other;  /* merged partial of rounds that do not */
    shoal_partial *merged; /* whichever of the two this round fills */
    bool carried;

    shoal_partial **of_thread;
    shoal_scratch *scratch; /* one a thread */
    void **row_buffer;      /* one a thread, when rows are neither mapped nor resident */
} threads_run;

static int each_threads(const shoal_crew *crew, int64_t items, int (*task)(void *, int64_t, int), void *context)
{
    const threads_run *run = (const threads_run *)((const char *)crew - offsetof(threads_run, crew));
    return base_pool_each(run->pool, items, task, context);
}

static int64_t rows_of_grain(const shoal_shape *shape, int64_t grain)
{
    int64_t left = shape->rows - grain * shape->rows_per_grain;
    return left < shape->rows_per_grain ? left : shape->rows_per_grain;
}

static size_t row_bytes(const shoal_shape *shape)
{
    return (size_t)shape->columns * shoal_type_size(shape->type);
}

/* ---- loading ----------------------------------------------------------------------------------------------- */

static int load_grain(void *context, int64_t grain, int thread)
{
    threads_run *run = context;
    const shoal_shape *shape = &run->job->shape;
    int64_t first = grain * shape->rows_per_grain, rows = rows_of_grain(shape, grain);
    unsigned char *to = (unsigned char *)run->resident + (size_t)first * row_bytes(shape);
    const void *from;
    (void)thread;
    int status = shoal_data_read(&from, run->job->data, first, rows, to);
    if (status == SHOAL_OK && from != to)
        memcpy(to, from, (size_t)rows * row_bytes(shape));
    return status;
}

/* Rows that are computed are kept when they fit, and computed again in every round when they do not. */
static int load(threads_run *run)
{
    const shoal_shape *shape = &run->job->shape;
    if (shoal_data_is_resident(run->job->data))
        return SHOAL_OK;
    int64_t limit = run->job->options->memory ? run->job->options->memory : base_memory_available() / 2;
    int status;
    if ((double)shape->rows * (double)row_bytes(shape) <= (double)limit) {
        status = base_alloc(&run->resident, (size_t)shape->rows, row_bytes(shape), "generated rows");
        if (status == SHOAL_OK)
            status = base_pool_each(run->pool, shape->grains, load_grain, run);
        return status;
    }
    status = base_alloc(&run->row_buffer, (size_t)run->job->threads, sizeof *run->row_buffer, "row buffers");
    for (int i = 0; status == SHOAL_OK && i < run->job->threads; i++)
        status = base_alloc(&run->row_buffer[i], (size_t)shape->rows_per_grain, row_bytes(shape), "a row buffer");
    return status;
}

static int read_grain(const void **out, threads_run *run, int64_t first, int64_t rows, int thread)
{
    if (run->resident) {
        *out = (const unsigned char *)run->resident + (size_t)first * row_bytes(&run->job->shape);
        return SHOAL_OK;
    }
    return shoal_data_read(out, run->job->data, first, rows, run->row_buffer ? run->row_buffer[thread] : NULL);
}

/* ---- one round --------------------------------------------------------------------------------------------- */

static int map_grain(void *context, int64_t index, int thread)
{
    threads_run *run = context;
    const shoal_shape *shape = &run->job->shape;
    int64_t first = index * shape->rows_per_grain;
    shoal_grain grain = {.shape = shape,
                         .index = index,
                         .first_row = first,
                         .rows = rows_of_grain(shape, index),
                         .weights = run->job->weights ? run->job->weights + first : NULL,
                         .memo = run->memo ? run->memo + (size_t)first * run->memo_row_bytes : NULL,
                         .carried = run->carried};
    int status = read_grain(&grain.values, run, first, grain.rows, thread);
    if (status < 0)
        return status;
    return run->job->algorithm->map(run->of_thread[thread], run->round, run->prepared, &grain, &run->scratch[thread]);
}

static int make_memo(threads_run *run, const shoal_layout *layout)
{
    if (layout->memo_row_bytes == run->memo_row_bytes)
        return SHOAL_OK;
    base_free(&run->memo);
    run->memo_row_bytes = 0;
    run->memo_round = -1;
    if (!layout->memo_row_bytes)
        return SHOAL_OK;
    int status = base_alloc(&run->memo, (size_t)run->job->shape.rows, layout->memo_row_bytes, "the memo of the rows");
    if (status == SHOAL_OK)
        run->memo_row_bytes = layout->memo_row_bytes;
    return status;
}

static int make_partial(shoal_partial **inout, const shoal_layout *layout, int64_t rows, shoal_partial *rows_of)
{
    /* A layout with ROW cells is made anew: its rows may have been taken by the result. */
    bool has_rows = false;
    for (int i = 0; i < layout->cells; i++)
        has_rows |= layout->cell[i].kind == SHOAL_CELL_ROW;
    if (*inout && !has_rows && learn_layout_equal(shoal_partial_layout(*inout), layout))
        return SHOAL_OK;
    learn_partial_free(inout);
    return learn_partial_new(inout, layout, rows, rows_of);
}

static int clear_partial(void *context, int64_t thread, int by)
{
    threads_run *run = context;
    (void)by;
    learn_partial_clear(run->of_thread[thread], false);
    return SHOAL_OK;
}

static bool carries_sums(const shoal_layout *layout)
{
    for (int i = 0; i < layout->cells; i++)
        if (layout->cell[i].carried)
            return true;
    return false;
}

/* Decides whether the memo and the carried sums still are those of round carry_from. */
static int make_partials(threads_run *run)
{
    const shoal_layout *layout = &run->round->layout;
    int64_t rows = run->job->shape.rows;
    shoal_partial **merged = layout->writes_memo ? &run->kept : &run->other;
    run->carried = layout->carry_from >= 0 && run->memo_round == layout->carry_from;
    if (run->carried && carries_sums(layout))
        run->carried = learn_layout_equal(shoal_partial_layout(run->kept), layout);
    int status = make_partial(merged, layout, rows, NULL);
    for (int i = 0; status == SHOAL_OK && i < run->job->threads; i++)
        status = make_partial(&run->of_thread[i], layout, rows, *merged);
    if (status < 0)
        return status;
    run->merged = *merged;
    learn_partial_clear(run->merged, run->carried);
    return base_pool_each(run->pool, run->job->threads, clear_partial, run);
}

static int make_scratch(threads_run *run)
{
    size_t bytes = run->job->algorithm->scratch_bytes(run->round, run->prepared, &run->job->shape);
    for (int i = 0; i < run->job->threads; i++) {
        shoal_scratch *scratch = &run->scratch[i];
        if (scratch->bytes >= bytes)
            continue;
        base_free(&scratch->memory);
        scratch->bytes = 0;
        int status = base_alloc(&scratch->memory, bytes, 1, "scratch memory of a thread");
        if (status < 0)
            return status;
        scratch->bytes = bytes;
    }
    return SHOAL_OK;
}

/* One chunk of one cell of all threads' partials; `item` counts chunks over all cells. */
static int merge_chunk(void *context, int64_t item, int thread)
{
    threads_run *run = context;
    const shoal_layout *layout = &run->round->layout;
    (void)thread;
    for (int cell = 0; cell < layout->cells; cell++) {
        int64_t count = learn_cell_values(&layout->cell[cell]), chunks = (count + MERGE_CHUNK - 1) / MERGE_CHUNK;
        if (item < chunks) {
            int64_t first = item * MERGE_CHUNK, size = count - first < MERGE_CHUNK ? count - first : MERGE_CHUNK;
            for (int i = 0; i < run->job->threads; i++)
                learn_partial_merge_values(run->merged, run->of_thread[i], cell, first, size);
            return SHOAL_OK;
        }
        item -= chunks;
    }
    return SHOAL_OK;
}

static int merge(threads_run *run)
{
    const shoal_layout *layout = &run->round->layout;
    int64_t chunks = 0;
    for (int cell = 0; cell < layout->cells; cell++)
        chunks += (learn_cell_values(&layout->cell[cell]) + MERGE_CHUNK - 1) / MERGE_CHUNK;
    int status = base_pool_each(run->pool, chunks, merge_chunk, run);
    for (int i = 0; status == SHOAL_OK && i < run->job->threads; i++)
        status = learn_partial_merge_records(run->merged, run->of_thread[i]);
    return status == SHOAL_OK ? learn_partial_settle(run->merged) : status;
}

static int run_round(threads_run *run)
{
    const shoal_algorithm *algorithm = run->job->algorithm;
    const shoal_layout *layout = &run->round->layout;
    int status = SHOAL_OK;
    if (algorithm->prepare)
        status = algorithm->prepare(&run->prepared, run->round, &run->job->shape, &run->crew);
    if (status == SHOAL_OK)
        status = make_memo(run, layout);
    if (status == SHOAL_OK)
        status = make_partials(run);
    if (status == SHOAL_OK)
        status = make_scratch(run);
    if (status < 0)
        return status;
    if (layout->writes_memo)
        run->memo_round = -1;
    status = base_pool_each(run->pool, run->job->shape.grains, map_grain, run);
    if (status == SHOAL_OK)
        status = merge(run);
    if (status == SHOAL_OK && layout->writes_memo)
        run->memo_round = run->round->number;
    return status;
}

/* ---- the run ----------------------------------------------------------------------------------------------- */

static void tell(const threads_run *run, const shoal_round *done, const shoal_round *next, double began)
{
    const shoal_run_options *options = run->job->options;
    if (options->progress)
        options->progress(options->progress_context, done, next, run->job->shape.rows, base_seconds() - began);
}

static bool asked_to_stop(const threads_run *run)
{
    return run->job->options->stop && *run->job->options->stop;
}

static int run_rounds(shoal_result **out, threads_run *run, double began)
{
    const engine_job *job = run->job;
    shoal_result *result = NULL;
    while (!result) {
        shoal_round *next = NULL;
        double round_began = base_seconds();
        int status = run_round(run);
        if (status == SHOAL_OK) {
            bool stop = asked_to_stop(run);
            status = job->algorithm->update(&next, &result, run->round, run->merged, &job->shape, &run->crew, stop);
        }
        engine_report_phase(job->report, run->round->phase, base_seconds() - round_began, 1);
        if (status < 0) {
            job->report->stopped = status == SHOAL_STOPPED;
            return status;
        }
        job->report->rounds++;
        if (next)
            next->number = run->round->number + 1;
        job->report->stopped |= asked_to_stop(run) && (next || result->incomplete);
        tell(run, run->round, next, began);
        shoal_round_free(&run->round);
        run->round = next;
    }
    *out = result;
    return SHOAL_OK;
}

static int open_run(threads_run *run, int64_t *counters[])
{
    const engine_job *job = run->job;
    size_t threads = (size_t)job->threads;
    int status = base_pool_new(&run->pool, job->threads);
    if (status == SHOAL_OK)
        status = base_alloc(&run->of_thread, threads, sizeof *run->of_thread, "partials");
    if (status == SHOAL_OK)
        status = base_alloc(&run->scratch, threads, sizeof *run->scratch, "scratch memory");
    if (status == SHOAL_OK)
        status = base_alloc(counters, threads * 8, sizeof **counters, "counters"); /* a cache line a thread */
    for (size_t i = 0; status == SHOAL_OK && i < threads; i++)
        run->scratch[i].counters = *counters + 8 * i;
    run->crew = (shoal_crew){.each = each_threads, .threads = job->threads, .kernel = job->kernel->name};
    run->memo_round = -1;
    return status;
}

static void close_run(threads_run *run, int64_t *counters[])
{
    const engine_job *job = run->job;
    for (int i = 0; *counters && i < job->threads; i++)
        for (int c = 0; c < SHOAL_COUNTERS; c++)
            job->report->counter[c] += (*counters)[8 * i + c];
    if (job->algorithm->forget)
        job->algorithm->forget(&run->prepared);
    for (int i = 0; i < job->threads; i++) {
        if (run->of_thread)
            learn_partial_free(&run->of_thread[i]);
        if (run->scratch)
            base_free(&run->scratch[i].memory);
        if (run->row_buffer)
            base_free(&run->row_buffer[i]);
    }
    learn_partial_free(&run->kept);
    learn_partial_free(&run->other);
    shoal_round_free(&run->round);
    base_free(&run->memo);
    base_free(&run->resident);
    base_free(&run->row_buffer);
    base_free(&run->of_thread);
    base_free(&run->scratch);
    base_free(counters);
    base_pool_free(&run->pool);
}

static int run_threads(shoal_result **out, const engine_job *job)
{
    threads_run run = {.job = job};
    int64_t *counters = NULL;
    double began = base_seconds();
    int status = job->algorithm->start(&run.round, job->config, &job->shape);
    if (status == SHOAL_OK)
        status = open_run(&run, &counters);
    if (status == SHOAL_OK)
        status = load(&run);
    engine_report_phase(job->report, "load", base_seconds() - began, 0);
    if (status == SHOAL_OK)
        status = run_rounds(out, &run, began);
    close_run(&run, &counters);
    return status;
}

const engine_class engine_threads = {.name = "threads", .run = run_threads};
