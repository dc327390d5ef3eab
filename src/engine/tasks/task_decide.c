/* Decisions about tasks.  See task_decide.h. */
#include "engine/tasks/task_decide.h"

#include <shoal/task.h>

/* ---- claims ------------------------------------------------------------------------------------------------------ */

task_claim task_claim_inherit(const task_claim *dead, uint64_t worker)
{
    task_claim claim = *dead;
    claim.worker = worker;
    if (claim.index < 0)
        claim.common++;
    else
        claim.alone++;
    return claim;
}

task_claim task_claim_at(const task_claim *claim, int32_t index)
{
    task_claim next = *claim;
    if (next.index != index)
        next.alone = 0;
    next.index = index;
    return next;
}

uint32_t task_claim_deaths(const task_claim *claim, int32_t index)
{
    return claim->common + (claim->index == index ? claim->alone : 0);
}

bool task_claim_is_careful(const task_claim *claim)
{
    return claim->common > 0 || claim->alone > 0;
}

bool task_claim_is_poison(const task_claim *claim, int32_t index)
{
    return task_claim_deaths(claim, index) >= SHOAL_TASK_DEATHS_MOST;
}

bool task_claim_is_decisive(const task_claim *claim, int32_t index)
{
    return task_claim_deaths(claim, index) == SHOAL_TASK_DEATHS_MOST - 1;
}

/* ---- taking ------------------------------------------------------------------------------------------------------ */

/* A worker looks at so many of the oldest that are free, and takes the first that falls to it, or else the one that a
 * hash prefers, so that workers that wake up together reach for different ones. */
enum { OLDEST = 32 };

static uint64_t preference(const task_taker *taker, int64_t number)
{
    if (taker->of > 0 && number % taker->of == taker->rank)
        return 0;
    uint64_t x = taker->worker ^ ((uint64_t)number * 0x9e3779b97f4a7c15u);
    x = (x ^ x >> 33) * 0xff51afd7ed558ccdu;
    x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53u;
    return x ^ x >> 33;
}

static bool choose_free(task_choice *out, const task_seen *seen, int64_t count, const task_taker *taker)
{
    uint64_t best = UINT64_MAX;
    int looked = 0;
    *out = (task_choice){TASK_NOTHING, -1, INT64_MAX};
    for (int64_t i = 0; i < count && looked < OLDEST; i++) {
        if (seen[i].claimed)
            continue;
        uint64_t rank = preference(taker, seen[i].number);
        if (out->which < 0 || rank < best) {
            best = rank;
            *out = (task_choice){TASK_CLAIM, i, INT64_MAX};
        }
        looked++;
    }
    return out->which >= 0;
}

static const int64_t BRIEF = 300000000; /* nanoseconds */

/* What is to be done about one that is claimed, or when. */
static task_choice judge_claimed(const task_seen *seen, int64_t which, int64_t lease, int64_t now)
{
    int64_t pause = lease / 4 > 0 ? lease / 4 : 1;
    if (seen->held)
        return (task_choice){TASK_NOTHING, which, INT64_MAX};
    if (seen->mine) {
        int64_t from = seen->checked_at > seen->done_at ? seen->checked_at : seen->done_at;
        return (task_choice){from == 0 || now - from >= lease ? TASK_CHECK : TASK_NOTHING, which,
                             from == 0 ? now : from + lease};
    }
    if (seen->owner != 0 && !seen->owner_lives)
        return (task_choice){TASK_INHERIT, which, now};
    /* Most are done before it is worth a request to know by whom. */
    int64_t first = pause < BRIEF ? pause : BRIEF;
    int64_t due = seen->read_at != 0 ? seen->read_at + pause : seen->since + first;
    return (task_choice){due <= now ? TASK_READ : TASK_NOTHING, which, due};
}

task_choice task_choose(const task_seen *seen, int64_t count, const task_taker *taker, int64_t lease, int64_t now)
{
    task_choice best;
    int64_t until = INT64_MAX;
    if (choose_free(&best, seen, count, taker))
        return best;
    for (int64_t i = 0; i < count; i++) {
        task_choice one = judge_claimed(&seen[i], i, lease, now);
        if (one.step != TASK_NOTHING && one.step > best.step)
            best = one;
        else if (one.step == TASK_NOTHING && one.until < until)
            until = one.until;
    }
    if (best.step == TASK_NOTHING)
        best.until = until;
    return best;
}

bool task_gives_back(double seconds, int64_t unbegun, bool careful)
{
    static const double longest = 0.5;
    return unbegun > 0 && !careful && seconds > longest;
}

/* ---- bundling ---------------------------------------------------------------------------------------------------- */

/* Enough bundles are out that no worker runs dry between two looks, and no more, so that what is pending can be cut by
 * what is known by then.  A task of unknown length travels alone. */
int64_t task_bundle_size(const task_load *load)
{
    enum { UNKNOWN_SLOTS = 4, SPARE = 2 };
    int64_t slots = load->slots > 0 ? load->slots : UNKNOWN_SLOTS;
    if (load->pending <= 0 || load->out >= 2 * slots + SPARE)
        return 0;
    if (load->seconds < 0)
        return 1;
    int64_t share = load->pending / (2 * slots);
    double fit = load->seconds > 0 ? load->aim / load->seconds : TASK_BUNDLE_MOST;
    int64_t most = fit > TASK_BUNDLE_MOST ? TASK_BUNDLE_MOST : (int64_t)fit;
    int64_t size = share < most ? share : most;
    return size > 1 ? size : 1;
}
