/* The reference engine: one process, a pool of threads over grains.
 *
 * The whole data set is one slice, whose rows are mapped from a file, or made and kept in memory when they fit, or made
 * again in every round. */
#include <string.h>

#include "base/memory.h"
#include "base/pool.h"
#include "engine/engine_internal.h"
#include "engine/slice.h"

typedef struct threads_run {
    const engine_job *job;
    engine_mapper *mapper;
    engine_slice *slice;
    shoal_round *round;
    void *resident;    /* rows of a data set that is made, not mapped, when they fit into memory */
    void **row_buffer; /* one a thread, when rows are neither mapped nor resident */
} threads_run;

static size_t row_bytes(const shoal_shape *shape)
{
    return (size_t)shape->columns * shoal_type_size(shape->type);
}

/* ---- loading ----------------------------------------------------------------------------------------------- */

static int load_grain(void *context, int64_t grain, int thread)
{
    threads_run *run = context;
    const shoal_shape *shape = &run->job->shape;
    int64_t first = grain * shape->rows_per_grain, rows = engine_rows_of(shape, grain, 1);
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
            status = base_pool_each(engine_mapper_pool(run->mapper), shape->grains, load_grain, run);
        return status;
    }
    status = base_alloc(&run->row_buffer, (size_t)run->job->threads, sizeof *run->row_buffer, "row buffers");
    for (int i = 0; status == SHOAL_OK && i < run->job->threads; i++)
        status = base_alloc(&run->row_buffer[i], (size_t)shape->rows_per_grain, row_bytes(shape), "a row buffer");
    return status;
}

static int read_rows(void *context, const void **out, int64_t first, int64_t rows, int thread)
{
    threads_run *run = context;
    if (run->resident) {
        *out = (const unsigned char *)run->resident + (size_t)first * row_bytes(&run->job->shape);
        return SHOAL_OK;
    }
    return shoal_data_read(out, run->job->data, first, rows, run->row_buffer ? run->row_buffer[thread] : NULL);
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

static int run_round(shoal_round **next, shoal_result **result, threads_run *run)
{
    const engine_job *job = run->job;
    shoal_partial *merged = NULL;
    int status = engine_mapper_begin(run->mapper, run->round);
    if (status == SHOAL_OK)
        status = engine_slice_map(&merged, run->mapper, run->slice);
    if (status < 0)
        return status;
    return job->algorithm->update(next, result, run->round, merged, &job->shape, engine_mapper_crew(run->mapper),
                                  asked_to_stop(run));
}

static int run_rounds(shoal_result **out, threads_run *run, double began)
{
    const engine_job *job = run->job;
    shoal_result *result = NULL;
    while (!result) {
        shoal_round *next = NULL;
        double round_began = base_seconds();
        int status = run_round(&next, &result, run);
        engine_add_phase(job->report->phase, &job->report->phases, run->round->phase, base_seconds() - round_began, 1);
        if (status < 0) {
            job->report->stopped = status == SHOAL_STOPPED;
            return status;
        }
        job->report->rounds++;
        if (next)
            engine_number_round(next, run->round->number + 1);
        job->report->stopped |= asked_to_stop(run) && (next || result->incomplete);
        tell(run, run->round, next, began);
        shoal_round_free(&run->round);
        run->round = next;
    }
    *out = result;
    return SHOAL_OK;
}

static int open_run(threads_run *run)
{
    const engine_job *job = run->job;
    engine_rows rows = {.read = read_rows, .context = run, .weights = job->weights};
    int status = engine_mapper_new(&run->mapper, job->algorithm, &job->shape, job->threads, job->kernel);
    if (status == SHOAL_OK) {
        engine_mapper_bring(run->mapper, job->options->code);
        status = engine_slice_new(&run->slice, 0, job->shape.grains, &rows);
    }
    return status == SHOAL_OK ? load(run) : status;
}

static void close_run(threads_run *run)
{
    if (run->mapper)
        engine_mapper_counted(run->mapper, run->job->report->counter);
    engine_slice_free(&run->slice);
    engine_mapper_free(&run->mapper);
    shoal_round_free(&run->round);
    for (int i = 0; run->row_buffer && i < run->job->threads; i++)
        base_free(&run->row_buffer[i]);
    base_free(&run->row_buffer);
    base_free(&run->resident);
}

static int run_threads(shoal_result **out, const engine_job *job)
{
    threads_run run = {.job = job};
    double began = base_seconds();
    int status = job->algorithm->start(&run.round, job->config, &job->shape);
    if (status == SHOAL_OK)
        status = open_run(&run);
    engine_add_phase(job->report->phase, &job->report->phases, "load", base_seconds() - began, 0);
    if (status == SHOAL_OK)
        status = run_rounds(out, &run, began);
    close_run(&run);
    return status;
}

const engine_class engine_threads = {.name = "threads", .run = run_threads};
