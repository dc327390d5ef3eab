/* Finding a store among those that were measured, and what is assumed of one that nobody measured: figures as their
 * makers publish them or as this program finds them in practice.  See calibration.h. */
#include "calibration.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include <shoal/error.h>

/* ---- what is assumed --------------------------------------------------------------------------------------------- */

typedef struct assumed {
    const char *scheme;
    shoal_site site;
} assumed;

static const double MB = 1e6, MS = 1e-3, US = 1e-6;

/* Prices are those of src/store/store_count.c.  What all workers of an account do together is Microsoft's target for a
 * general-purpose v2 account of the larger regions, 60 Gbit/s in; for S3, which names none, 100 Gbit/s.  Latencies and
 * rates of one connection are rules of thumb for machines of the same region: nobody measured them here.  Everything
 * behind pipe and ssh passes through the one machine that started the job: a gigabit link, half a millisecond away. */
static shoal_site assume_site(const char *scheme)
{
    const shoal_site folder = {.get = 5 * US,
                               .put = 40 * US,
                               .wait = 60 * US,
                               .read = 2500 * MB,
                               .write = 1500 * MB,
                               .connections = 1,
                               .account = 3000 * MB,
                               .requests = 1,
                               .sync = 0.3 * MS};
    const assumed table[] = {
        {"mem",
         {.get = 2 * US,
          .put = 5 * US,
          .wait = 50 * US,
          .read = 4000 * MB,
          .write = 2000 * MB,
          .connections = 1,
          .account = 8000 * MB,
          .requests = 4,
          .sync = 1 * MS}},
        {"az",
         {.get = 10 * MS,
          .put = 18 * MS,
          .wait = 60 * MS,
          .read = 60 * MB,
          .write = 50 * MB,
          .connections = 8,
          .account = 7500 * MB,
          .get_price = 0.0044 / 10000,
          .put_price = 0.055 / 10000,
          .requests = 8,
          .requests_per_second = 2,
          .sync = 60 * MS}},
        {"s3",
         {.get = 30 * MS,
          .put = 60 * MS,
          .wait = 80 * MS,
          .read = 85 * MB,
          .write = 60 * MB,
          .connections = 8,
          .account = 12500 * MB,
          .get_price = 0.004 / 10000,
          .put_price = 0.05 / 10000,
          .requests = 8,
          .requests_per_second = 2,
          .sync = 100 * MS}},
        {"pipe",
         {.get = 0.5 * MS,
          .put = 0.7 * MS,
          .wait = 0.7 * MS,
          .read = 110 * MB,
          .write = 110 * MB,
          .connections = 1,
          .worker = 110 * MB,
          .account = 117 * MB,
          .requests = 4,
          .sync = 5 * MS}},
    };
    shoal_site out = folder;
    if (strcmp(scheme, "ssh") == 0 || strcmp(scheme, "slurm") == 0)
        scheme = "pipe";
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strcmp(scheme, table[i].scheme) == 0)
            out = table[i].site;
    out.start = out.get > 1 * MS ? 0.3 : 0.05;
    out.hash = 1 / (1000 * MB);
    out.straggle = 0.1;
    out.thread_loss = 0.03;
    out.loss_threads = 8;
    out.error = 0.4; /* nobody measured: nine runs of ten within a factor of two */
    return out;
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

static bool is_scheme(const char *word)
{
    static const char *const schemes[] = {"dir", "mem", "az", "s3", "pipe", "ssh", "slurm"};
    bool found = false;
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++)
        found |= strcmp(word, schemes[i]) == 0;
    return found;
}

/* The name under which a store is kept: its scheme where all stores of this machine are alike, otherwise scheme,
 * account and container. `levels` of what follows "://" are part of it. */
static void name_store(char *out, size_t size, const char *store, int levels)
{
    size_t length = 0;
    while (islower((unsigned char)store[length]) || isdigit((unsigned char)store[length]))
        length++;
    if (length == 0 || (store[length] != ':' && !is_scheme(store))) { /* a path */
        snprintf(out, size, "dir");
        return;
    }
    if (strncmp(store + length, "://", 3) == 0 && levels > 0) {
        length += 3;
        for (; levels > 0; levels--)
            length += (size_t)(store[length] == '/') + strcspn(store + length + (store[length] == '/'), "/?");
        while (length > 0 && store[length - 1] == '/')
            length--;
    }
    snprintf(out, size, "%.*s", (int)length, store);
}

void plan_calibration_name(char *out, size_t size, const char *store)
{
    name_store(out, size, store, strncmp(store, "az:", 3) == 0 ? 2 : 1);
}

static const plan_calibrated_site *find_site(const plan_calibration *calibration, const char *name)
{
    for (int i = 0; calibration && i < calibration->sites; i++)
        if (strcmp(calibration->site[i].store, name) == 0)
            return &calibration->site[i];
    return NULL;
}

/* The one measured last of those in the same account. */
static const plan_calibrated_site *find_account(const plan_calibration *calibration, const char *account)
{
    const plan_calibrated_site *found = NULL;
    size_t length = strlen(account);
    for (int i = 0; calibration && i < calibration->sites; i++) {
        const plan_calibrated_site *site = &calibration->site[i];
        if (strncmp(site->store, account, length) == 0 && site->store[length] == '/' &&
            (!found || site->date > found->date))
            found = site;
    }
    return found;
}

void plan_calibration_site(shoal_site *out, bool *measured, const plan_calibration *calibration, const char *store)
{
    char name[sizeof calibration->site->store], scheme[sizeof name];
    plan_calibration_name(name, sizeof name, store);
    name_store(scheme, sizeof scheme, store, 0);
    const plan_calibrated_site *site = find_site(calibration, name);
    if (!site && strncmp(name, "az://", 5) == 0) {
        char account[sizeof name];
        name_store(account, sizeof account, store, 1);
        site = find_account(calibration, account);
    }
    if (!site)
        site = find_site(calibration, scheme);
    *measured = site && site->date > 0;
    if (site) {
        *out = site->site;
        out->loss_threads = calibration->threads;
        return;
    }
    *out = assume_site(scheme);
    if (calibration && calibration->threads > 1) {
        out->thread_loss = calibration->thread_loss;
        out->loss_threads = calibration->threads;
    }
}

/* ---- changing ---------------------------------------------------------------------------------------------------- */

int plan_calibration_set_site(plan_calibration *calibration, const plan_calibrated_site *site)
{
    int at = 0;
    while (at < calibration->sites && strcmp(calibration->site[at].store, site->store) != 0)
        at++;
    if (at == PLAN_SITES_MOST)
        return shoal_fail(SHOAL_USAGE, "a calibration holds at most %d stores: no room for %s", PLAN_SITES_MOST,
                          site->store);
    calibration->site[at] = *site;
    calibration->sites += at == calibration->sites;
    return SHOAL_OK;
}

int plan_calibration_set_pace(plan_calibration *calibration, const shoal_pace *pace)
{
    int at = 0;
    while (at < calibration->paces && (strcmp(calibration->pace[at].learner, pace->learner) != 0 ||
                                       strcmp(calibration->pace[at].phase, pace->phase) != 0))
        at++;
    if (at == PLAN_PACES_MOST)
        return shoal_fail(SHOAL_USAGE, "a calibration holds at most %d paces: no room for %s of %s", PLAN_PACES_MOST,
                          pace->phase, pace->learner);
    calibration->pace[at] = *pace;
    calibration->paces += at == calibration->paces;
    return SHOAL_OK;
}
