/* Rounds, and the bytes that several rounds keep together. */
#include "learn/round.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"

int shoal_round_new(shoal_round **out, size_t model_bytes)
{
    int status = learn_round_new_unset(out, model_bytes);
    if (status == SHOAL_OK)
        memset((*out)->model, 0, model_bytes);
    return status;
}

int learn_round_new_unset(shoal_round **out, size_t model_bytes)
{
    shoal_round *round = NULL;
    int status = base_alloc(&round, 1, sizeof *round, "a round");
    if (status == SHOAL_OK)
        status = base_alloc_unset(&round->model, model_bytes, 1, "a model");
    if (status < 0) {
        shoal_round_free(&round);
        return status;
    }
    round->model_bytes = model_bytes;
    round->layout.carry_from = -1;
    round->objective = round->change = NAN;
    *out = round;
    return SHOAL_OK;
}

static void release_kept(shoal_kept *kept)
{
    if (__atomic_sub_fetch(&kept->holders, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    base_free(&kept->values);
    base_free(&kept);
}

void shoal_round_free(shoal_round **round)
{
    if (!*round)
        return;
    for (int i = 0; i < (*round)->keeps; i++)
        release_kept((*round)->kept[i]);
    base_free(&(*round)->model);
    base_free(round);
}

void *shoal_round_keep(shoal_round *round, size_t bytes)
{
    shoal_kept *kept = NULL;
    if (round->keeps == SHOAL_KEPT_MOST) {
        shoal_fail(SHOAL_USAGE, "a round can keep no more than %d things", SHOAL_KEPT_MOST);
        return NULL;
    }
    if (round->keeps && round->kept[round->keeps - 1]->born < 0) {
        shoal_fail(SHOAL_USAGE, "a round can begin to keep one thing only");
        return NULL;
    }
    int status = base_alloc(&kept, 1, sizeof *kept, "what a round keeps");
    if (status == SHOAL_OK)
        status = base_alloc_unset(&kept->values, bytes, 1, "what a round keeps");
    if (status < 0) {
        base_free(&kept);
        return NULL;
    }
    kept->born = -1;
    kept->bytes = bytes;
    kept->holders = 1;
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
