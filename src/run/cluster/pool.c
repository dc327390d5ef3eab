/* Pools: which one the next machine is started in.  See cluster.h.  Functions of their arguments. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/world.h"
#include "cluster.h"

static double rank_pool(const run_pool *pool)
{
    static const double DEARER_EACH = 1.0 / 6, SPOT_FIRST = 1e6;
    return pool->price * (1 + DEARER_EACH * (double)pool->load) + (pool->market == CLOUD_SPOT ? 0 : SPOT_FIRST);
}

int64_t run_pool_choose(const run_pool *pool, int64_t pools, int64_t now)
{
    int64_t best = -1;
    for (int64_t i = 0; i < pools; i++)
        if (pool[i].until <= now && pool[i].price <= pool[i].cap &&
            (best < 0 || rank_pool(&pool[i]) < rank_pool(&pool[best])))
            best = i;
    return best;
}

void run_pool_refused(run_pool *pool, int64_t pools, int64_t which, cloud_refusal why, int64_t now)
{
    static const double FIRST = 5, MOST = 600;
    run_pool *at = &pool[which];
    double pause = fmin(FIRST * exp2(at->refusals < 10 ? at->refusals : 10), MOST);
    at->refusals++;
    for (int64_t i = 0; i < pools; i++) /* a quota is of all zones */
        if (i == which || (why == CLOUD_NO_QUOTA && pool[i].market == at->market))
            pool[i].until = base_time_after(now, pause);
}

void run_pool_name(char out[LEDGER_NAME_BYTES], const run_pool *pool)
{
    snprintf(out, LEDGER_NAME_BYTES, "%.30s/%.40s/%s", pool->zone, pool->type, cloud_market_name(pool->market));
}

int64_t run_pool_find(const run_pool *pool, int64_t pools, const char *name)
{
    char own[LEDGER_NAME_BYTES];
    for (int64_t i = 0; i < pools; i++) {
        run_pool_name(own, &pool[i]);
        if (strcmp(own, name) == 0)
            return i;
    }
    return -1;
}
