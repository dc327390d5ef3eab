/* The checkpoints of one run.  See saves.h. */
#include "engine/saves.h"

#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "base/pool.h"
#include "engine/in_step.h"
#include "learn/check.h"
#include "learn/wire.h"

static bool is_first(const engine_call *call)
{
    return !call->options->ranks || call->options->ranks->rank == 0;
}

int engine_saves_init(engine_saves *saves, const engine_call *call, const shoal_round *first, uint64_t fingerprint)
{
    base_writer out = {0};
    base_hash hash = {0};
    *saves = (engine_saves){.call = call, .last = base_seconds()};
    base_write_text(&out, SHOAL_VERSION);
    base_write_text(&out, call->algorithm->name);
    base_write_u64(&out, call->kernel_check);
    base_write_i64(&out, call->shape.rows);
    base_write_i64(&out, call->shape.columns);
    base_write_i64(&out, call->shape.type);
    base_write_i64(&out, call->shape.weighted);
    base_write_i64(&out, call->shape.rows_per_grain);
    base_write_u64(&out, fingerprint);
    base_write_text(&out, call->options->code_hash ? call->options->code_hash : "");
    learn_round_write(&out, first);
    for (int i = 0; i < first->keeps; i++)
        base_write_bytes(&out, first->kept[i]->values, first->kept[i]->bytes);
    void *bytes = NULL;
    size_t size = 0;
    int status = base_writer_take(&out, &bytes, &size);
    if (status < 0)
        return status;
    base_hash_add(&hash, bytes, size);
    base_hash_end(&hash, saves->identity);
    base_free(&bytes);
    return SHOAL_OK;
}

/* ---- going on ---------------------------------------------------------------------------------------------------- */

/* What rank 0 finds; *size is 0 if there is nothing. */
static int find_saved(void **bytes, size_t *size, const engine_saves *saves)
{
    const shoal_run_options *options = saves->call->options;
    int status = engine_checkpoint_get(bytes, size, options->checkpoint);
    if (status == SHOAL_ABSENT) {
        *size = 0;
        return options->checkpoint_seconds > 0 ? engine_checkpoint_check(options->checkpoint) : SHOAL_OK;
    }
    if (status == SHOAL_OK && !options->resume)
        status = shoal_fail(SHOAL_CONFLICT,
                            "%s exists, from a run that did not finish: resume it with --resume, or remove it",
                            options->checkpoint);
    return status;
}

/* Sends all ranks what rank 0 found. */
static int share_saved(void **bytes, size_t *size, shoal_ranks *ranks)
{
    uint64_t length = *size;
    ranks->share(ranks, &length, sizeof length, 0);
    if (length == 0)
        return SHOAL_OK;
    if (ranks->rank > 0)
        engine_must(ranks, base_alloc_unset(bytes, length, 1, "a checkpoint"));
    *size = length;
    ranks->share(ranks, *bytes, length, 0);
    return SHOAL_OK;
}

static int go_on_from_saved(engine_saves *saves, shoal_round **round, const void *bytes, size_t size)
{
    const char *place = saves->call->options->checkpoint;
    shoal_report *report = saves->call->report;
    engine_checkpoint found = {0};
    int status = engine_checkpoint_decode(&found, bytes, size, place);
    if (status < 0)
        return status;
    if (memcmp(found.identity, saves->identity, sizeof found.identity) != 0) {
        status = shoal_fail(
            SHOAL_CONFLICT,
            "%s belongs to another run: other data, options, module or command, or another version of shoal", place);
    } else if ((status = learn_round_check(saves->call->algorithm, found.round, &saves->call->shape)) < 0) {
        status = shoal_fail(status, "%s: %s", place, shoal_error());
    } else {
        shoal_round_free(round);
        *round = found.round;
        found.round = NULL;
        report->rounds = found.rounds;
        report->resumed = (*round)->number;
        for (int i = 0; i < found.phases; i++)
            engine_add_phase(report->phase, &report->phases, found.phase[i].name, found.phase[i].seconds,
                             found.phase[i].rounds);
        memcpy(report->counter, found.counter, sizeof found.counter);
    }
    engine_checkpoint_release(&found);
    return status;
}

int engine_saves_resume(engine_saves *saves, shoal_round **round)
{
    shoal_ranks *ranks = saves->call->options->ranks;
    void *bytes = NULL;
    size_t size = 0;
    int status = is_first(saves->call) ? find_saved(&bytes, &size, saves) : SHOAL_OK;
    if (ranks)
        status = engine_follow_first(ranks, status);
    if (status == SHOAL_OK && ranks)
        status = share_saved(&bytes, &size, ranks);
    if (status == SHOAL_OK && size > 0)
        status = go_on_from_saved(saves, round, bytes, size);
    base_free(&bytes);
    return ranks ? engine_agree(ranks, status) : status;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

int engine_saves_pass(engine_saves *saves, const shoal_round *next, bool at_once)
{
    const engine_call *call = saves->call;
    double interval = call->options->checkpoint_seconds;
    if (!is_first(call) || interval <= 0 || (!at_once && base_seconds() - saves->last < interval))
        return SHOAL_OK;
    engine_checkpoint save = {.round = (shoal_round *)next, .rounds = next->number, .phases = call->report->phases};
    memcpy(save.identity, saves->identity, sizeof save.identity);
    memcpy(save.phase, call->report->phase, sizeof save.phase);
    memcpy(save.counter, call->report->counter, sizeof save.counter);
    for (int i = 0; i < save.phases; i++)
        save.seconds += save.phase[i].seconds;
    void *bytes = NULL;
    size_t size = 0;
    int status = engine_checkpoint_encode(&bytes, &size, &save);
    if (status == SHOAL_OK)
        status = engine_checkpoint_put(call->options->checkpoint, bytes, size);
    base_free(&bytes);
    saves->last = base_seconds();
    return status;
}

int shoal_checkpoint_remove(const char *place)
{
    return engine_checkpoint_remove(place);
}
