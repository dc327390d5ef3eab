/* The runs of a speed test.  See speed.h.
 *
 * All sources' runs are shuffled together, so that whatever else the machine does meanwhile meets all alike. */
#include "speed.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/memory.h"
#include "base/page_cache.h"
#include "base/pool.h"
#include "base/random.h"
#include "speed_reader.h"

/* Each has its numbers, so that millions of runs are refused before they are planned. */
enum { RUNS_MOST = 100000, IMAGES_MOST = 1000000000 };

typedef struct test {
    const speed_request *request;
    const shoal_watcher *watcher;
    speed_outcome *out;
    speed_sources sources;
    speed_list list[SPEED_SOURCES_MOST]; /* what there was at the beginning */
    speed_reader *reader[SPEED_SOURCES_MOST];
    base_pool *pool;
    unsigned char *pixels; /* of the largest batch */
    double started;
} test;

/* ---- the plan ---------------------------------------------------------------------------------------------------- */

typedef struct planned {
    uint64_t key;
    int64_t number;
} planned;

static int compare_keys(const void *a, const void *b)
{
    const planned *first = a, *second = b;
    return first->key != second->key ? (first->key > second->key) - (first->key < second->key)
                                     : (first->number > second->number) - (first->number < second->number);
}

/* Run `number` of a pass, counted through all sources, batch sizes, numbers of batches and repetitions. */
static speed_run run_of_number(const test *self, int pass, int64_t number)
{
    const speed_request *request = self->request;
    speed_run run = {.pass = pass, .resident = NAN};
    run.repetition = number % request->repeat + 1;
    number /= request->repeat;
    run.batches = request->batches.value[number % request->batches.count];
    number /= request->batches.count;
    run.batch_size = request->batch_sizes.value[number % request->batch_sizes.count];
    run.source = (int)(number / request->batch_sizes.count);
    run.images = run.batches * run.batch_size;
    return run;
}

static int plan_runs(test *self)
{
    const speed_request *request = self->request;
    speed_outcome *out = self->out;
    const int64_t pass_runs =
        self->sources.count * request->batch_sizes.count * request->batches.count * request->repeat;
    planned *order = NULL;
    out->passes = request->again ? SPEED_PASSES_MOST : 1;
    if (pass_runs > RUNS_MOST / out->passes)
        return shoal_fail(SHOAL_USAGE, "that would be %" PRId64 " runs; %d are the most", pass_runs * out->passes,
                          RUNS_MOST);
    out->runs = pass_runs * out->passes;
    int status = base_alloc(&out->run, (size_t)out->runs, sizeof *out->run, "runs");
    if (status == SHOAL_OK)
        status = base_alloc(&order, (size_t)pass_runs, sizeof *order, "runs");
    for (int pass = 0; pass < out->passes && status == SHOAL_OK; pass++) {
        const int64_t first = pass * pass_runs;
        for (int64_t i = 0; i < pass_runs; i++)
            order[i] = (planned){base_random_u64(request->seed, BASE_FOR_RUNS, (uint64_t)(first + i), 0), i};
        qsort(order, (size_t)pass_runs, sizeof *order, compare_keys);
        for (int64_t i = 0; i < pass_runs; i++) {
            out->run[first + i] = run_of_number(self, pass, order[i].number);
            out->run[first + i].start =
                base_random_u64(request->seed, BASE_FOR_RUNS, (uint64_t)(first + order[i].number), 1);
        }
    }
    base_free(&order);
    return status;
}

static int64_t greatest(const base_counts *counts)
{
    return counts->value[counts->count - 1];
}

/* ---- before the runs --------------------------------------------------------------------------------------------- */

static int make_batch(test *self)
{
    const speed_request *request = self->request;
    const int64_t images = greatest(&request->batch_sizes), free_now = base_memory_available();
    const size_t pixels = (size_t)request->height * (size_t)request->width * 3;
    if (greatest(&request->batches) > IMAGES_MOST / images)
        return shoal_fail(SHOAL_USAGE, "%" PRId64 " batches of %" PRId64 " images are too many for a run",
                          greatest(&request->batches), images);
    if ((uint64_t)images > (uint64_t)free_now / pixels)
        return shoal_fail(SHOAL_MEMORY, "a batch of %" PRId64 " images of %dx%d pixels does not fit into memory",
                          images, request->height, request->width);
    return base_alloc(&self->pixels, (size_t)images, pixels, "a batch");
}

static int open_sources(test *self)
{
    const speed_request *request = self->request;
    const speed_reading how = {request->height, request->width, request->skip_broken};
    int status = speed_sources_open(&self->sources, request->words, request->count);
    for (int i = 0; i < self->sources.count && status == SHOAL_OK; i++) {
        speed_source *source = &self->sources.source[i];
        if (source->in_store && request->cold)
            return shoal_fail(SHOAL_USAGE,
                              "%s: --cold is for files of this machine: what a store keeps in memory "
                              "can't be told",
                              source->name);
        status = speed_list_fill(&self->list[i], source);
        if (status == SHOAL_OK)
            status = speed_reader_new(&self->reader[i], source, &how, self->pool);
    }
    return status;
}

static int describe_sources(test *self)
{
    speed_outcome *out = self->out;
    int status = SHOAL_OK;
    for (int i = 0; i < self->sources.count && status == SHOAL_OK; i++) {
        const speed_source *source = &self->sources.source[i];
        const speed_list *list = &self->list[i];
        speed_about *about = &out->source[out->sources++];
        *about = (speed_about){.kind = source->kind, .files = list->count};
        status = source->named && source->count > 1
                     ? base_format(&about->name, "%s and %d more", source->name, source->count - 1)
                     : base_copy_text(&about->name, source->name);
        for (int64_t k = 0; k < list->count; k++) {
            struct stat info = {0};
            about->bytes += list->size ? list->size[k] : stat(list->name[k], &info) == 0 ? info.st_size : 0;
        }
    }
    return status;
}

static int read_whole(const speed_source *source, const speed_list *list, int64_t file, unsigned char *room,
                      size_t size)
{
    speed_input input = {.descriptor = -1};
    int status = speed_input_open(&input, source, list, file);
    for (int64_t at = 0; status == SHOAL_OK && at < input.size; at += (int64_t)size)
        status = speed_input_read(&input, room,
                                  (size_t)(input.size - at < (int64_t)size ? input.size - at : (int64_t)size), at);
    speed_input_close(&input);
    return status;
}

static void warn(const test *self, const char *format, const char *name)
{
    char line[1400];
    snprintf(line, sizeof line, format, name);
    if (self->watcher->warn)
        self->watcher->warn(self->watcher->context, line);
}

/* Brings the files of this machine into memory, where they fit. */
static int warm_files(test *self)
{
    enum { ROOM = 1 << 20 };
    unsigned char *room = NULL;
    int64_t left = base_memory_available() / 2;
    int status = base_alloc(&room, ROOM, 1, "reading images");
    for (int i = 0; i < self->sources.count && status == SHOAL_OK; i++) {
        const speed_source *source = &self->sources.source[i];
        if (source->in_store)
            continue;
        if (self->out->source[i].bytes > left) {
            warn(self, "%s: larger than half of the free memory, so that its runs may wait for the disk", source->name);
            continue;
        }
        left -= self->out->source[i].bytes;
        for (int64_t k = 0; k < self->list[i].count && status == SHOAL_OK; k++)
            status = read_whole(source, &self->list[i], k, room, ROOM);
    }
    base_free(&room);
    return status;
}

/* ---- one run ----------------------------------------------------------------------------------------------------- */

static int drop_files(const test *self, speed_run *run)
{
    const speed_list *list = &self->list[run->source];
    base_page_cache left = {0};
    int status = SHOAL_OK;
    for (int64_t i = 0; i < list->count && status == SHOAL_OK; i++)
        status = base_page_cache_drop(list->name[i]);
    for (int64_t i = 0; i < list->count && status == SHOAL_OK; i++)
        status = base_page_cache_add(&left, list->name[i]);
    if (!left.unknown && left.bytes > 0)
        run->resident = (double)left.resident / (double)left.bytes;
    return status;
}

static double processor_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int make_run(test *self, speed_run *run)
{
    speed_reader *reader = self->reader[run->source];
    int status = self->request->cold ? drop_files(self, run) : SHOAL_OK;
    if (status < 0)
        return status;
    const double began = base_seconds(), processor = processor_seconds();
    status = speed_reader_start(reader, run->start);
    for (int64_t i = 0; i < run->batches && status == SHOAL_OK; i++)
        status = speed_reader_batch(reader, self->pixels, run->batch_size);
    speed_reader_stop(reader);
    run->began = began - self->started;
    run->seconds = base_seconds() - began;
    run->processor = processor_seconds() - processor;
    run->bytes = speed_reader_bytes(reader);
    run->skipped = speed_reader_skipped(reader);
    return status;
}

/* Decoders, connections and the memory of a batch are there before the first run that counts. */
static int make_trial_runs(test *self)
{
    int status = SHOAL_OK;
    for (int i = 0; i < self->sources.count && status == SHOAL_OK; i++) {
        speed_run run = {.source = i, .batches = 1, .batch_size = greatest(&self->request->batch_sizes)};
        status = make_run(self, &run);
    }
    return status;
}

static bool is_stopped(const test *self)
{
    return self->watcher->stop && __atomic_load_n(self->watcher->stop, __ATOMIC_RELAXED);
}

static void say_run(const test *self, int64_t number)
{
    const speed_run *run = &self->out->run[number], *last = number > 0 ? run - 1 : NULL;
    char line[300];
    int length = snprintf(line, sizeof line, "run %" PRId64 " of %" PRId64 ": %" PRId64 " batches of %" PRId64,
                          number + 1, self->out->runs, run->batches, run->batch_size);
    if (last)
        length += snprintf(line + length, sizeof line - (size_t)length, ", %.0f images/s", speed_rate(last));
    if (last && last->began > 0)
        snprintf(line + length, sizeof line - (size_t)length, ", about %.0f s left",
                 ceil((last->began + last->seconds) / (double)number * (double)(self->out->runs - number)));
    if (self->watcher->doing)
        self->watcher->doing(self->watcher->context, line);
}

static int make_runs(test *self)
{
    speed_outcome *out = self->out;
    int status = SHOAL_OK;
    self->started = base_seconds();
    for (int64_t i = 0; i < out->runs && status == SHOAL_OK; i++) {
        speed_run *run = &out->run[i];
        if (is_stopped(self))
            return shoal_fail(SHOAL_STOPPED, "stopped after %" PRId64 " of %" PRId64 " runs", i, out->runs);
        say_run(self, i);
        status = make_run(self, run);
        out->pass_seconds[run->pass] += run->seconds;
        out->source[run->source].skipped += run->skipped;
    }
    return status;
}

/* ---- the test ---------------------------------------------------------------------------------------------------- */

static int take_broken(test *self)
{
    int status = SHOAL_OK;
    for (int i = 0; i < self->out->sources && status == SHOAL_OK; i++)
        if (speed_reader_broken(self->reader[i]))
            status = base_copy_text(&self->out->source[i].broken, speed_reader_broken(self->reader[i]));
    return status;
}

int speed_measure(speed_outcome *out, const speed_request *request, const shoal_watcher *watcher)
{
    test self = {.request = request, .watcher = watcher, .out = out};
    int status = base_pool_new(&self.pool, request->threads);
    if (status == SHOAL_OK)
        status = open_sources(&self);
    if (status == SHOAL_OK)
        status = describe_sources(&self);
    if (status == SHOAL_OK)
        status = plan_runs(&self);
    if (status == SHOAL_OK)
        status = make_batch(&self);
    if (status == SHOAL_OK && watcher->doing)
        watcher->doing(watcher->context, request->cold ? "reading a first batch" : "reading everything once");
    if (status == SHOAL_OK && !request->cold)
        status = warm_files(&self);
    if (status == SHOAL_OK)
        status = make_trial_runs(&self);
    if (status == SHOAL_OK && watcher->may_stop)
        watcher->may_stop(watcher->context, true);
    if (status == SHOAL_OK)
        status = make_runs(&self);
    if (status == SHOAL_OK)
        status = take_broken(&self);
    if (status == SHOAL_OK)
        status = speed_analyse(out);
    for (int i = 0; i < self.sources.count; i++) {
        speed_reader_free(&self.reader[i]);
        speed_list_release(&self.list[i]);
    }
    base_free(&self.pixels);
    speed_sources_release(&self.sources);
    base_pool_free(&self.pool);
    return status;
}

void speed_outcome_release(speed_outcome *outcome)
{
    for (int i = 0; i < outcome->sources; i++) {
        base_free(&outcome->source[i].name);
        base_free(&outcome->source[i].broken);
    }
    base_free(&outcome->run);
}
