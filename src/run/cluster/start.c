/* What starting machines takes: pools with their prices, and the program's bundle.  See cluster.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <shoal/error.h>

#include "base/io.h"
#include "base/memory.h"
#include "base/path.h"
#include "cluster_internal.h"
#include "launch/cloud/bundle.h"
#include "store/store_internal.h"

enum { LENT_SECONDS = 12 * 3600 };

/* ---- pools ------------------------------------------------------------------------------------------------------- */

/* What is not known can't be reserved: then the price has to be said. */
static double cap_of(const run_cluster_spec *spec, const run_rate *rate)
{
    return spec->max_price > 0 ? spec->max_price : rate->demand;
}

static void add_pool(run_cluster *self, const run_rate *rate, cloud_market market, double price)
{
    run_pool *pool = &self->pool[self->pools];
    double cap = cap_of(&self->spec, rate);
    if (isnan(price) || isnan(cap) || price > cap)
        return;
    *pool = (run_pool){.market = market, .price = price, .cap = cap};
    snprintf(pool->type, sizeof pool->type, "%s", rate->type);
    snprintf(pool->zone, sizeof pool->zone, "%s", rate->zone);
    self->pools++;
}

/* Why machines can be started nowhere. */
static int fail_pools(const run_cluster *self, const run_rates *rates)
{
    bool listed = self->spec.max_price > 0;
    for (int64_t i = 0; i < rates->count; i++)
        listed = listed || !isnan(rates->rate[i].demand);
    return shoal_fail(SHOAL_DENIED,
                      !listed ? "the table of this program does not know what machines of %s cost on demand: say with "
                                "--max-price what an hour may cost"
                      : self->spec.max_price > 0 ? "no machine of %s costs at most --max-price now"
                                                 : "no machine of %s costs as little now as it does on demand: say "
                                                   "with --max-price what an hour may cost, or --market mixed",
                      self->spec.machines);
}

int run_cluster_find_pools(run_cluster *self)
{
    run_rates rates;
    if (self->pools > 0)
        return SHOAL_OK;
    int status = run_rates_get(&rates, self->spec.machines, self->patience);
    if (status < 0)
        return status;
    if (rates.why)
        status = shoal_fail(SHOAL_DENIED, "%s", rates.why);
    if (status == SHOAL_OK)
        status = base_alloc(&self->pool, (size_t)rates.count * 2 + 1, sizeof *self->pool, "pools of machines");
    for (int64_t i = 0; i < rates.count && status == SHOAL_OK; i++) {
        const run_rate *rate = &rates.rate[i];
        if (self->spec.market != RUN_CLUSTER_DEMAND)
            add_pool(self, rate, CLOUD_SPOT, rate->spot);
        if (self->spec.market != RUN_CLUSTER_SPOT)
            add_pool(self, rate, CLOUD_DEMAND, rate->demand);
    }
    if (status == SHOAL_OK && self->pools == 0)
        status = fail_pools(self, &rates);
    run_rates_release(&rates);
    return status;
}

/* ---- the program ------------------------------------------------------------------------------------------------- */

/* Into the store, where it has its hash as its name, and from there by an address that is good for some hours. */
static int lend_bundle(run_cluster *self, const char *path)
{
    char *key = NULL, *bytes = NULL;
    size_t size = 0;
    FILE *file = fopen(path, "re");
    int status = base_format(&key, "clusters/program-%s", self->hash);
    if (status == SHOAL_OK)
        status = file ? base_read_whole(&bytes, &size, fileno(file), 1 << 30, path)
                      : shoal_fail(SHOAL_SYSTEM, "%s can't be opened", path);
    if (status == SHOAL_OK)
        status = shoal_store_put(self->store, key, bytes, size, SHOAL_NOTHING, NULL, run_cluster_deadline(self));
    if (status == SHOAL_CONFLICT || status == SHOAL_UNKNOWN) /* it is there; the machine compares the hash */
        status = SHOAL_OK;
    if (status == SHOAL_OK)
        status = store_lend(&self->bundle, self->store, key, LENT_SECONDS, run_cluster_deadline(self));
    if (file)
        fclose(file);
    base_free(&bytes);
    base_free(&key);
    return status;
}

/* A folder has the same path for all who see it. */
static int name_far_store(run_cluster *self)
{
    char *place = NULL;
    if (!run_jobs_is_folder(self->url))
        return base_copy_text(&self->far_url, self->url);
    int status = run_jobs_place(&place, self->url);
    if (status == SHOAL_OK)
        status = base_format(&self->far_url, "dir:%s", place);
    base_free(&place);
    return status;
}

/* A folder is for trying: its machines see the files of this one. */
int run_cluster_find_bundle(run_cluster *self)
{
    char *folder = NULL, *path = NULL;
    base_making making = {0};
    if (self->bundle)
        return SHOAL_OK;
    int status = name_far_store(self);
    if (status == SHOAL_OK)
        status = base_user_path(&folder, BASE_CACHE, "bundles", "the program for rented machines");
    if (status == SHOAL_OK)
        status = base_make_folders(folder, 0700, &making);
    if (status == SHOAL_OK)
        status = cloud_bundle_make(&path, self->hash, folder);
    if (status == SHOAL_OK && run_jobs_is_folder(self->url)) {
        self->bundle = path;
        path = NULL;
    } else if (status == SHOAL_OK) {
        status = lend_bundle(self, path);
    }
    base_free(&folder);
    base_free(&path);
    return status;
}
