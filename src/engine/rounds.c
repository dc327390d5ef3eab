/* The engine for one process and for ranks: a pool of threads over the grains of this process, rounds of map and
 * update.
 *
 * Without ranks all grains belong to this process.  With ranks each maps its own run of grains, the partials are merged
 * (reduce.h), and every rank computes the same update from the sum.  A failure on one rank is held until the next point
 * where all ranks agree. */
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/crc.h"
#include "base/memory.h"
#include "base/pool.h"
#include "engine/engine_internal.h"
#include "engine/in_step.h"
#include "engine/reduce.h"
#include "engine/saves.h"
#include "engine/slice.h"
#include "engine/source.h"
#include "learn/pick.h"
#include "learn/round.h"
#include "learn/wire.h"

typedef struct rounds_run {
    const engine_call *call;
    shoal_ranks *ranks; /* NULL: this process alone */
    engine_mapper *mapper;
    engine_source *source;
    engine_slice *slice;
    engine_reduction *reduction;
    base_writer written; /* the round that was compared last, as bytes */
    int64_t *first;      /* the first grain of each rank, then the number of grains */
    engine_saves saves;
    bool kept; /* the round in which a stop was requested is saved: what follows only makes its result */
    int saved; /* the status of the last checkpoint: the others are told of a failure in the next round */
    shoal_round *round;
} rounds_run;

static int agree(const rounds_run *run, int status)
{
    return run->ranks ? engine_agree(run->ranks, status) : status;
}

/* ---- before the first round -------------------------------------------------------------------------------------- */

/* Ranks get grains in proportion to their threads, and whole strata where there are any. */
static int share_grains(rounds_run *run)
{
    const engine_call *call = run->call;
    shoal_ranks *ranks = run->ranks;
    int size = ranks ? ranks->size : 1;
    int status = base_alloc(&run->first, (size_t)size + 1, sizeof *run->first, "the grains of ranks");
    if (status < 0 && ranks)
        engine_must(ranks, status);
    if (status < 0)
        return status;
    run->first[size] = call->shape.grains;
    if (!ranks)
        return SHOAL_OK;
    const shoal_shape *shape = &call->shape;
    int64_t units = shape->strata ? shape->strata : shape->grains;
    int64_t begin = (int64_t)((__int128)units * call->shares.before / call->shares.all);
    begin = shape->strata ? learn_stratum_grain(shape, begin) : begin;
    ranks->gather(ranks, run->first, &begin, sizeof begin);
    for (int i = 0; i < size; i++)
        call->report->idle += run->first[i] == run->first[i + 1];
    return SHOAL_OK;
}

static int open_run(rounds_run *run)
{
    const engine_call *call = run->call;
    int rank = run->ranks ? run->ranks->rank : 0;
    int64_t memory = call->options->memory ? call->options->memory : base_memory_available() / 2 / call->shares.here;
    int64_t begin = run->first[rank], grains = run->first[rank + 1] - begin;
    int status = engine_mapper_new(&run->mapper, call->algorithm, &call->shape, call->threads, call->kernel);
    if (status == SHOAL_OK) {
        engine_mapper_bring(run->mapper, call->options->code);
        engine_mapper_into(run->mapper, call->options->into);
        engine_mapper_blobs(run->mapper, call->options->from, call->options->to);
        engine_mapper_memo(run->mapper, memory);
        engine_mapper_device(run->mapper, call->device);
        status = engine_source_new(&run->source, call->data, &call->shape, begin, grains, call->threads, memory);
    }
    if (status == SHOAL_OK)
        status = engine_source_load(run->source, engine_mapper_pool(run->mapper));
    if (status == SHOAL_OK) {
        engine_rows rows = engine_source_rows(run->source, call->weights);
        status = engine_slice_new(&run->slice, begin, grains, &rows);
    }
    if (status == SHOAL_OK && run->ranks)
        status = engine_reduction_new(&run->reduction, run->ranks, &call->shape, run->first);
    if (status == SHOAL_OK && run->ranks) {
        engine_mapper_watch(run->mapper, engine_reduction_watch(run->reduction));
        engine_mapper_poll(run->mapper, engine_reduction_poll, run->reduction);
    }
    return status;
}

/* A checksum will do for what is compared: nobody wants two ranks to differ. */
static int compare_rounds(rounds_run *run, const shoal_round *round, const char *what)
{
    run->written.size = 0; /* its memory stays for the next time */
    base_write_reserve(&run->written, round->model_bytes + sizeof *round);
    learn_round_write(&run->written, round);
    engine_must(run->ranks, run->written.status);
    uint32_t check = base_crc32c(0, run->written.data, run->written.size);
    for (int i = 0; i < round->keeps; i++)
        if (round->kept[i]->born == round->number)
            check = base_crc32c(check, round->kept[i]->values, round->kept[i]->bytes);
    return engine_compare(run->ranks, &check, sizeof check, what);
}

/* Ranks that were started with different programs, options or data can't come to one result. */
static int compare_runs(rounds_run *run)
{
    const engine_call *call = run->call;
    const shoal_run_options *options = call->options;
    const int64_t agreed[] = {call->shape.rows_per_grain, options->verify, options->resume,
                              options->checkpoint != NULL};
    const int64_t shape[] = {call->shape.rows, call->shape.columns, call->shape.type, call->shape.weighted};
    const char *code = options->code_hash ? options->code_hash : "";
    shoal_ranks *ranks = run->ranks;
    int status = engine_compare(ranks, SHOAL_VERSION, strlen(SHOAL_VERSION), "version of shoal");
    if (status == SHOAL_OK)
        status = engine_compare(ranks, call->algorithm->name, strlen(call->algorithm->name), "learner");
    if (status == SHOAL_OK)
        status = engine_compare(ranks, &call->kernel_check, sizeof call->kernel_check,
                                "kernel set (--kernel names one that all have)");
    if (status == SHOAL_OK)
        status = engine_compare(ranks, shape, sizeof shape, "shape of the data");
    if (status == SHOAL_OK)
        status = engine_compare(ranks, agreed, sizeof agreed, "--grain, --verify, --resume or --checkpoint");
    if (status == SHOAL_OK)
        status = engine_compare(ranks, code, strlen(code), "module or command");
    return status == SHOAL_OK ? compare_rounds(run, run->round, "set of options") : status;
}

static int prepare_saves(rounds_run *run)
{
    const engine_call *call = run->call;
    uint64_t fingerprint = 0;
    if (!call->options->checkpoint)
        return SHOAL_OK;
    int status = agree(
        run, engine_source_fingerprint(&fingerprint, run->source, call->weights, engine_mapper_pool(run->mapper)));
    if (status == SHOAL_OK && run->ranks) {
        int64_t sum = (int64_t)fingerprint;
        run->ranks->sum(run->ranks, &sum, &sum, 1);
        fingerprint = (uint64_t)sum;
    }
    if (status == SHOAL_OK)
        status = agree(run, engine_saves_init(&run->saves, call, run->round, fingerprint));
    return status == SHOAL_OK ? engine_saves_resume(&run->saves, &run->round) : status;
}

/* ---- rounds ------------------------------------------------------------------------------------------------------ */

/* The partial of this round, of all ranks. */
static int map_all(shoal_partial **merged, bool *stop, rounds_run *run)
{
    static const engine_parts whole = {.parts = 1};
    const volatile int *asked = run->call->options->stop;
    shoal_report *report = run->call->report;
    int64_t counted[SHOAL_COUNTERS] = {0};
    double began = base_seconds();
    if (run->reduction)
        engine_reduction_begin(run->reduction, &run->round->layout);
    int status = run->saved < 0 ? run->saved : engine_mapper_begin(run->mapper, run->round);
    if (status == SHOAL_OK)
        status = engine_slice_map_parts(merged, run->mapper, run->slice,
                                        run->reduction ? engine_reduction_parts(run->reduction) : &whole);
    double mapped = base_seconds();
    report->map_seconds += mapped - began;
    *stop = asked && *asked;
    engine_mapper_counted(run->mapper, counted);
    if (run->reduction) {
        status = engine_reduction_end(merged, stop, counted, run->reduction, *merged, status);
        report->reduce_seconds += base_seconds() - mapped;
    }
    for (int i = 0; i < SHOAL_COUNTERS; i++)
        report->counter[i] += counted[i];
    return status;
}

/* One round.  *stop: some rank was asked to stop while this round was mapped.  Ranks whose next rounds have different
 * layouts, or of which only some have finished, would wait for each other in different calls: so all agree on that in
 * every round, whether or not models are compared. */
static int run_round(shoal_round **next, shoal_result **result, bool *stop, rounds_run *run)
{
    static const char same_model[] = "model after the same rounds";
    const engine_call *call = run->call;
    const int64_t verify = call->options->verify;
    shoal_partial *merged = NULL;
    int status = map_all(&merged, stop, run);
    double began = base_seconds();
    if (status == SHOAL_OK)
        status = call->algorithm->update(next, result, run->round, merged, &call->shape,
                                         engine_mapper_crew(run->mapper), *stop);
    if (status == SHOAL_OK && *result)
        status = shoal_result_check(*result);
    if (status == SHOAL_OK && *next)
        engine_number_round(*next, run->round->number + 1);
    if (status == SHOAL_OK && *result && run->reduction)
        engine_reduction_drop_rows(run->reduction, *result);
    double updated = base_seconds();
    call->report->update_seconds += updated - began;
    if (run->ranks)
        status = engine_agree_on(run->ranks, status, *next ? learn_layout_hash(&(*next)->layout) | 1 : 0, same_model);
    /* Every few rounds the next model is compared, and at the end the one that the result was made from. */
    if (status == SHOAL_OK && run->ranks && verify > 0 && (!*next || (*next)->number % verify == 0))
        status = compare_rounds(run, *next ? *next : run->round, same_model);
    call->report->reduce_seconds += run->ranks ? base_seconds() - updated : 0;
    return status;
}

/* Several rounds at once, where all rows lie on a device and nobody wants to hear of each. */
static int leap(shoal_round **next, int64_t *rounds, rounds_run *run)
{
    enum { LEAP_MOST = 64 };
    const shoal_run_options *options = run->call->options;
    shoal_report *report = run->call->report;
    double began = base_seconds();
    *rounds = 0;
    if (run->ranks || options->every_round || !run->call->device || (options->stop && *options->stop) || run->saved < 0)
        return SHOAL_OK;
    int status = engine_slice_leap(next, rounds, run->mapper, run->slice, run->round, LEAP_MOST);
    if (status == SHOAL_OK && *rounds > 0) {
        engine_number_round(*next, run->round->number + *rounds);
        engine_mapper_counted(run->mapper, report->counter);
    }
    report->map_seconds += base_seconds() - began;
    return status;
}

/* A stopped run returns what it has found; its last round is saved so that it can be resumed. */
static void save(rounds_run *run, const shoal_round *next)
{
    const engine_call *call = run->call;
    bool stopped = call->report->stopped;
    if (!call->options->checkpoint || run->kept || (!next && !stopped))
        return;
    run->kept = stopped;
    run->saved = engine_saves_pass(&run->saves, stopped ? run->round : next, stopped);
}

static int run_rounds(shoal_result **result, rounds_run *run, double began)
{
    const shoal_run_options *options = run->call->options;
    const bool tells = options->progress && (!run->ranks || run->ranks->rank == 0);
    shoal_report *report = run->call->report;
    while (!*result) {
        shoal_round *next = NULL;
        bool stop = false;
        double round_began = base_seconds();
        int64_t rounds = 0;
        int status = leap(&next, &rounds, run);
        if (status == SHOAL_OK && rounds == 0)
            status = run_round(&next, result, &stop, run);
        rounds = rounds > 0 ? rounds : 1;
        engine_add_phase(report->phase, &report->phases, run->round->phase, base_seconds() - round_began, rounds);
        if (status < 0) {
            report->stopped = status == SHOAL_STOPPED;
            shoal_round_free(&next);
            return status;
        }
        report->stopped |= stop && (next || (*result)->incomplete);
        if (tells)
            options->progress(options->progress_context, run->round, next, run->call->shape.rows,
                              base_seconds() - began);
        save(run, next); /* last, so that the message of a failure is kept */
        report->rounds += rounds;
        shoal_round_free(&run->round);
        run->round = next;
    }
    return options->checkpoint ? agree(run, run->saved) : SHOAL_OK;
}

/* ---- the run ----------------------------------------------------------------------------------------------------- */

int engine_run_rounds(shoal_result **out, const engine_call *call)
{
    rounds_run run = {.call = call, .ranks = call->options->ranks};
    shoal_result *result = NULL;
    learn_recycler recycler;
    double began = base_seconds();
    learn_recycle_begin(&recycler);
    int status = call->algorithm->start(&run.round, call->config, &call->shape);
    if (status == SHOAL_OK)
        engine_number_round(run.round, 0);
    status = agree(&run, status);
    if (status == SHOAL_OK && run.ranks)
        status = compare_runs(&run);
    if (status == SHOAL_OK) {
        status = share_grains(&run);
        status = agree(&run, status == SHOAL_OK ? open_run(&run) : status);
    }
    if (status == SHOAL_OK)
        status = prepare_saves(&run);
    engine_add_phase(call->report->phase, &call->report->phases, "load", base_seconds() - began, 0);
    if (status == SHOAL_OK)
        status = run_rounds(&result, &run, began);
    call->report->spared = run.mapper ? engine_mapper_spared(run.mapper) : 0;
    call->report->device = run.slice && engine_slice_held(run.slice) ? call->device->name : NULL;
    if (run.mapper)
        snprintf(call->report->device_lost, sizeof call->report->device_lost, "%s", engine_mapper_lost(run.mapper));
    if (run.reduction)
        call->report->row_seconds = engine_reduction_row_seconds(run.reduction);
    if (status < 0)
        shoal_result_free(&result);
    engine_slice_free(&run.slice);
    engine_reduction_free(&run.reduction);
    engine_mapper_free(&run.mapper);
    engine_source_free(&run.source);
    shoal_round_free(&run.round);
    learn_recycle_end(&recycler);
    base_writer_release(&run.written);
    base_free(&run.first);
    *out = result;
    return status;
}
