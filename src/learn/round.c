/* Rounds, and the bytes that several rounds keep together.
 *
 * Where a run's rounds follow each other, the memory of the one that ended becomes that of the one after next: large
 * blocks would otherwise be mapped, zeroed and faulted anew by the system in every round.  See round.h. */
#include "learn/round.h"

#include <math.h>
#include <string.h>
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

#include "base/memory.h"

static _Thread_local learn_recycler *current; /* of the run that this thread is in; NULL outside */

/* ---- recycling --------------------------------------------------------------------------------------------------- */

/* Spare memory is nobody's: whoever still uses it is found out under the address sanitizer, and so is who relies on
 * what it held. */
static void make_untouchable(void *bytes, size_t size)
{
#if defined(__SANITIZE_ADDRESS__)
    memset(bytes, 0xa5, size);
    ASAN_POISON_MEMORY_REGION(bytes, size);
#else
    (void)bytes, (void)size;
#endif
}

static void make_touchable(void *bytes, size_t size)
{
#if defined(__SANITIZE_ADDRESS__)
    ASAN_UNPOISON_MEMORY_REGION(bytes, size);
#else
    (void)bytes, (void)size;
#endif
}

static void free_spare_round(learn_recycler *recycler)
{
    if (!recycler->round)
        return;
    make_touchable(recycler->round->model, recycler->round->model_bytes);
    base_free(&recycler->round->model);
    base_free(&recycler->round);
}

static void free_spare_kept(learn_recycler *recycler)
{
    if (!recycler->kept)
        return;
    make_touchable(recycler->kept->values, recycler->kept->bytes);
    base_free(&recycler->kept->values);
    base_free(&recycler->kept);
}

void learn_recycle_begin(learn_recycler *recycler)
{
    *recycler = (learn_recycler){.outer = current};
    current = recycler;
}

void learn_recycle_end(learn_recycler *recycler)
{
    free_spare_round(recycler);
    free_spare_kept(recycler);
    current = recycler->outer;
}

/* The spare round, with a model of that size; NULL when there is none.  One of another size makes room. */
static shoal_round *take_spare_round(size_t model_bytes)
{
    shoal_round *round = current ? current->round : NULL;
    if (round && round->model_bytes != model_bytes) {
        free_spare_round(current);
        round = NULL;
    }
    if (!round)
        return NULL;
    current->round = NULL;
    make_touchable(round->model, model_bytes);
    *round = (shoal_round){.model = round->model};
    return round;
}

static shoal_kept *take_spare_kept(size_t bytes)
{
    shoal_kept *kept = current ? current->kept : NULL;
    if (kept && kept->bytes != bytes) {
        free_spare_kept(current);
        kept = NULL;
    }
    if (!kept)
        return NULL;
    current->kept = NULL;
    make_touchable(kept->values, bytes);
    return kept;
}

static void give_kept(shoal_kept *kept)
{
    if (!current || !kept->values) {
        base_free(&kept->values);
        base_free(&kept);
        return;
    }
    free_spare_kept(current);
    make_untouchable(kept->values, kept->bytes);
    current->kept = kept;
}

static void give_round(shoal_round *round)
{
    if (!current || !round->model) {
        base_free(&round->model);
        base_free(&round);
        return;
    }
    free_spare_round(current);
    make_untouchable(round->model, round->model_bytes);
    current->round = round;
}

/* ---- rounds ------------------------------------------------------------------------------------------------------ */

int shoal_round_new(shoal_round **out, size_t model_bytes)
{
    int status = shoal_round_new_unset(out, model_bytes);
    if (status == SHOAL_OK)
        memset((*out)->model, 0, model_bytes);
    return status;
}

int shoal_round_new_unset(shoal_round **out, size_t model_bytes)
{
    shoal_round *round = take_spare_round(model_bytes);
    int status = round ? SHOAL_OK : base_alloc(&round, 1, sizeof *round, "a round");
    if (status == SHOAL_OK && !round->model)
        status = base_alloc_unset(&round->model, model_bytes, 1, "a model");
    if (status < 0) {
        base_free(&round);
        return status;
    }
    round->model_bytes = model_bytes;
    round->layout.carry_from = -1;
    round->objective = round->change = NAN;
    strcpy(round->phase, "run");
    *out = round;
    return SHOAL_OK;
}

void shoal_round_free(shoal_round **inout)
{
    shoal_round *round = *inout;
    if (!round)
        return;
    for (int i = 0; i < round->keeps; i++)
        if (__atomic_sub_fetch(&round->kept[i]->holders, 1, __ATOMIC_ACQ_REL) == 0)
            give_kept(round->kept[i]);
    give_round(round);
    *inout = NULL;
}

void *shoal_round_keep(shoal_round *round, size_t bytes)
{
    if (round->keeps == SHOAL_KEPT_MOST) {
        shoal_fail(SHOAL_USAGE, "a round can keep no more than %d things", SHOAL_KEPT_MOST);
        return NULL;
    }
    if (round->keeps && round->kept[round->keeps - 1]->born < 0) {
        shoal_fail(SHOAL_USAGE, "a round can begin to keep one thing only");
        return NULL;
    }
    shoal_kept *kept = take_spare_kept(bytes);
    int status = kept ? SHOAL_OK : base_alloc(&kept, 1, sizeof *kept, "what a round keeps");
    if (status == SHOAL_OK && !kept->values)
        status = base_alloc_unset(&kept->values, bytes, 1, "what a round keeps");
    if (status < 0) {
        base_free(&kept);
        return NULL;
    }
    *kept = (shoal_kept){.born = -1, .bytes = bytes, .values = kept->values, .holders = 1};
    round->kept[round->keeps++] = kept;
    return kept->values;
}

void shoal_round_keep_on(shoal_round *next, const shoal_round *round, int index)
{
    shoal_kept *kept = round->kept[index];
    if (next->keeps == SHOAL_KEPT_MOST)
        SHOAL_BUG("a round keeps more than it can");
    __atomic_add_fetch(&kept->holders, 1, __ATOMIC_RELAXED);
    next->kept[next->keeps++] = kept;
}
