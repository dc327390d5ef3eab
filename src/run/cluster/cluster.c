/* Making, opening and closing clusters.  See cluster.h. */
#include "cluster.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <shoal/error.h>

#include "base/hex.h"
#include "base/io.h"
#include "base/memory.h"
#include "base/text.h"
#include "base/world.h"
#include "cluster_internal.h"
#include "plan/units.h"

static const uint32_t kind = SHOAL_KIND('c', 'l', 'u', 's');
enum { SPEC_MOST = 64 << 10, USUAL_TTL = 3600, USUAL_IDLE = 600, LEAST_TTL = 1, MOST_TTL = 366 * 86400 };

int64_t run_cluster_deadline(const run_cluster *self)
{
    return shoal_after(self->patience);
}

/* ---- the secret -------------------------------------------------------------------------------------------------- */

static int secret_path(char **out, const run_cluster *self)
{
    char *name = NULL;
    int status = base_format(&name, "clusters/%s.secret", self->spec.ledger);
    if (status == SHOAL_OK)
        status = run_jobs_state_path(out, name);
    base_free(&name);
    return status;
}

static int write_secret(run_cluster *self)
{
    char text[2 * LEDGER_SECRET_BYTES + 1], *path = NULL;
    base_entropy(self->book.secret, sizeof self->book.secret);
    base_hex_write(text, self->book.secret, sizeof self->book.secret);
    int status = secret_path(&path, self);
    int file = status == SHOAL_OK ? open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600) : -1;
    if (status == SHOAL_OK && (file < 0 || base_write_all(file, text, sizeof text - 1) < 0))
        status = shoal_fail_errno(SHOAL_SYSTEM, errno, "%s can't be written", path);
    if (file >= 0)
        close(file);
    self->has_secret = status == SHOAL_OK;
    base_free(&path);
    return status;
}

/* Without it the ledger can't be read; machines can still be listed and ended. */
static int read_secret(run_cluster *self)
{
    char text[2 * LEDGER_SECRET_BYTES + 1] = "", *path = NULL;
    size_t got = 0;
    int status = secret_path(&path, self);
    int file = status == SHOAL_OK ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file >= 0) {
        if (base_read_all(file, text, sizeof text - 1, &got) < 0)
            text[0] = '\0';
        close(file);
    }
    self->has_secret = base_hex_is(text, (size_t)2 * LEDGER_SECRET_BYTES) &&
                       base_hex_read(self->book.secret, LEDGER_SECRET_BYTES, text);
    base_free(&path);
    return status;
}

static void remove_secret(const run_cluster *self)
{
    char *path = NULL;
    if (secret_path(&path, self) == SHOAL_OK)
        unlink(path);
    base_free(&path);
}

int run_cluster_need_secret(const run_cluster *self)
{
    if (self->has_secret)
        return SHOAL_OK;
    return shoal_fail(
        SHOAL_DENIED,
        "the secret of this cluster's ledger is not with this user: %s made it; 'shoal cluster down' ends "
        "its machines without",
        self->spec.by);
}

/* ---- the spec ---------------------------------------------------------------------------------------------------- */

/* What the maker said, as far as the maker's secret is here. */
static int check_code(const run_cluster *self)
{
    char code[RUN_CLUSTER_CODE_BYTES];
    int status = self->has_secret ? run_cluster_spec_code(code, &self->spec, self->book.secret) : SHOAL_OK;
    if (status == SHOAL_OK && self->has_secret && strcmp(code, self->spec.code) != 0)
        status = shoal_fail(SHOAL_BROKEN,
                            "%s is not what was written by who made the cluster: nothing is done by it; machines end "
                            "by themselves, and 'shoal cluster list' shows them",
                            self->spec_key);
    return status;
}

int run_cluster_put_spec(run_cluster *self, const shoal_etag *expected)
{
    char *text = NULL;
    int status = self->has_secret ? run_cluster_spec_code(self->spec.code, &self->spec, self->book.secret) : SHOAL_OK;
    if (status == SHOAL_OK)
        status = run_cluster_spec_write(&text, &self->spec);
    if (status == SHOAL_OK)
        status = shoal_store_put_framed(self->store, self->spec_key, kind, text, strlen(text), expected,
                                        &self->spec_etag, run_cluster_deadline(self));
    base_free(&text);
    return status;
}

int run_cluster_get_spec(run_cluster *self)
{
    char name[RUN_CLUSTER_NAME_BYTES];
    shoal_blob blob = {0};
    snprintf(name, sizeof name, "%s", self->spec.name);
    int status =
        shoal_store_get_framed_within(self->store, self->spec_key, kind, SPEC_MOST, &blob, run_cluster_deadline(self));
    if (status == SHOAL_ABSENT)
        status = shoal_fail(status, "there is no cluster '%s' in %s", name, self->url);
    if (status == SHOAL_OK) {
        status = run_cluster_spec_read(&self->spec, name, blob.data, blob.size);
        self->spec_etag = blob.etag;
    }
    shoal_blob_release(&blob);
    return status == SHOAL_OK ? check_code(self) : status;
}

int run_cluster_forget(run_cluster *self)
{
    int status = shoal_store_remove(self->store, self->spec_key, run_cluster_deadline(self));
    if (status == SHOAL_OK)
        status = shoal_store_remove(self->store, self->ledger_key, run_cluster_deadline(self));
    if (status == SHOAL_OK)
        remove_secret(self);
    return status;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static int check_name(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
    size_t length = strlen(name);
    if (length == 0 || length >= RUN_CLUSTER_NAME_BYTES || name[0] < 'a' || name[0] > 'z' ||
        strspn(name, letters) < length)
        return shoal_fail(SHOAL_USAGE,
                          "'%s' can't be a cluster's name: a small letter, and up to %d small letters, digits and '-'",
                          name, RUN_CLUSTER_NAME_BYTES - 2);
    return SHOAL_OK;
}

static int start_opening(run_cluster **out, const run_jobs *jobs, const char *name)
{
    int status = check_name(name);
    if (status == SHOAL_OK)
        status = base_alloc(out, 1, sizeof **out, "a cluster");
    if (status < 0)
        return status;
    run_cluster *self = *out;
    self->store = jobs->store;
    self->url = jobs->url;
    self->patience = jobs->patience > 0 ? jobs->patience : 60;
    snprintf(self->spec.name, sizeof self->spec.name, "%s", name);
    base_entropy(&self->maker, sizeof self->maker);
    return base_format(&self->spec_key, "clusters/%s/spec", name);
}

/* When the spec is known. */
static int end_opening(run_cluster *self)
{
    /* EC2 refuses a signature after five minutes, by a clock that may differ by as much from ours; listings are
     * complete after some seconds, and show what ended for an hour.  The stores forget nothing. */
    static const ledger_terms terms = {
        .settle = 0, .signature = 660, .lag = 60, .shown = 3600, .clocks = 600, .patience = 900};
    int status = base_format(&self->ledger_key, "clusters/%s/ledger-%s", self->spec.name, self->spec.ledger);
    self->book.store = self->store;
    self->book.key = self->ledger_key;
    if (status == SHOAL_OK)
        status = ledger_lead_new(&self->lead, self->maker, &terms);
    if (status == SHOAL_OK)
        status = cloud_open(&self->place, self->spec.machines);
    return status;
}

int run_cluster_open(run_cluster **out, const run_jobs *jobs, const char *name)
{
    *out = NULL;
    int status = start_opening(out, jobs, name);
    if (status == SHOAL_OK)
        status = run_cluster_get_spec(*out);
    if (status == SHOAL_OK)
        status = read_secret(*out);
    if (status == SHOAL_OK)
        status = check_code(*out);
    if (status == SHOAL_OK)
        status = end_opening(*out);
    if (status < 0)
        run_cluster_close(out);
    return status;
}

void run_cluster_close(run_cluster **cluster)
{
    run_cluster *self = *cluster;
    if (!self)
        return;
    ledger_lead_free(&self->lead);
    ledger_release(&self->ledger);
    cloud_machines_release(&self->found);
    cloud_close(&self->place);
    base_free(&self->pool);
    base_free(&self->bundle);
    base_free(&self->far_url);
    base_free(&self->spec_key);
    base_free(&self->ledger_key);
    base_free(cluster);
}

/* ---- making ------------------------------------------------------------------------------------------------------ */

static int keep_text(char *out, size_t room, const char *option, const char *text)
{
    if (text && strlen(text) >= room)
        return shoal_fail(SHOAL_USAGE, "%s is longer than %zu characters: '%.40s...'", option, room - 1, text);
    if (text && !base_text_is_clean(text))
        return shoal_fail(SHOAL_USAGE, "%s has characters that can't be printed", option);
    snprintf(out, room, "%s", text ? text : "");
    return SHOAL_OK;
}

static void name_maker(run_cluster_spec *spec)
{
    char host[CLOUD_NAME_BYTES] = "";
    const char *user = getenv("USER");
    gethostname(host, sizeof host - 1);
    char text[CLOUD_TEXT_BYTES];
    snprintf(text, sizeof text, "%.60s@%s", user && *user ? user : "somebody", host);
    cloud_copy_text(spec->by, sizeof spec->by, text, strlen(text));
}

static int fill_texts(run_cluster_spec *spec, const run_cluster_wish *wish)
{
    int status = keep_text(spec->machines, sizeof spec->machines, "--machines", wish->machines);
    if (status == SHOAL_OK)
        status = keep_text(spec->image, sizeof spec->image, "--image", wish->image);
    if (status == SHOAL_OK)
        status = keep_text(spec->role, sizeof spec->role, "--role", wish->role);
    if (status == SHOAL_OK)
        status = keep_text(spec->key, sizeof spec->key, "--key", wish->key);
    if (status == SHOAL_OK)
        status = keep_text(spec->subnet, sizeof spec->subnet, "--subnet", wish->subnet);
    return status == SHOAL_OK ? keep_text(spec->group, sizeof spec->group, "--group", wish->group) : status;
}

/* Within what run_cluster_spec_read believes. */
static int fill_spec(run_cluster_spec *spec, const run_cluster_wish *wish)
{
    double ttl = USUAL_TTL;
    uint64_t id;
    name_maker(spec);
    base_entropy(&id, sizeof id);
    snprintf(spec->ledger, sizeof spec->ledger, "%016llx", (unsigned long long)id);
    spec->market = (run_cluster_market)wish->market;
    spec->idle = USUAL_IDLE;
    spec->made = time(NULL);
    int status = fill_texts(spec, wish);
    if (status == SHOAL_OK && wish->ttl)
        status = plan_parse_duration(&ttl, "--ttl", wish->ttl);
    if (status == SHOAL_OK && wish->idle)
        status = plan_parse_duration(&spec->idle, "--idle", wish->idle);
    if (status == SHOAL_OK && wish->max_price)
        status = plan_parse_money(&spec->max_price, "--max-price", wish->max_price);
    if (status == SHOAL_OK && !(ttl >= LEAST_TTL && ttl <= MOST_TTL))
        status =
            shoal_fail(SHOAL_USAGE, "--ttl %s: a machine lives for a second at least and a year at most", wish->ttl);
    if (status == SHOAL_OK && !(spec->idle >= 0.001 && spec->idle <= MOST_TTL))
        status = shoal_fail(SHOAL_USAGE, "--idle %s: this is less than a millisecond or more than a year", wish->idle);
    if (status == SHOAL_OK && spec->max_price >= 1e6)
        status =
            shoal_fail(SHOAL_USAGE, "--max-price %s: an hour of a machine costs less than a million", wish->max_price);
    spec->allowed = (int64_t)ttl;
    return status;
}

/* How long machines may live for the budget, which is what they cost at most when there is none. */
static int fit_budget(run_cluster *self, int64_t *budget, const run_cluster_wish *wish)
{
    char paid[PLAN_UNITS_BYTES], asked[PLAN_UNITS_BYTES], hourly[PLAN_UNITS_BYTES];
    double dollars = 0;
    int64_t cap = 0;
    for (int64_t i = 0; i < self->pools; i++) {
        int64_t own = ledger_money_of(self->pool[i].cap);
        cap = own > cap ? own : cap;
    }
    int64_t each = ledger_cost(cap, self->spec.allowed, RUN_CLUSTER_AROUND);
    *budget = ledger_times(each, wish->count);
    int status = wish->budget ? plan_parse_money(&dollars, "--budget", wish->budget) : SHOAL_OK;
    if (status < 0 || !wish->budget || ledger_money_of(dollars) >= *budget) {
        *budget = wish->budget && status == SHOAL_OK ? ledger_money_of(dollars) : *budget;
        return status;
    }
    plan_format_money(paid, dollars);
    plan_format_money(asked, (double)*budget / (double)LEDGER_UNIT);
    plan_format_money(hourly, (double)cap / (double)LEDGER_UNIT);
    *budget = ledger_money_of(dollars);
    if (wish->ttl)
        return shoal_fail(SHOAL_DENIED,
                          "%lld machines at up to %s an hour for --ttl %s may cost %s, more than --budget %s",
                          (long long)wish->count, hourly, wish->ttl, asked, paid);
    self->spec.allowed = ledger_affords(*budget / wish->count, cap, RUN_CLUSTER_AROUND);
    if (self->spec.allowed < LEAST_TTL)
        return shoal_fail(SHOAL_DENIED,
                          "--budget %s does not pay for the first minutes of %lld machines at up to %s an hour, which "
                          "are billed from their start to their end",
                          paid, (long long)wish->count, hourly);
    return SHOAL_OK;
}

/* The ledger and its secret first: what has no spec yet is nobody's. */
static int put_cluster(run_cluster *self, int64_t budget)
{
    int status = write_secret(self);
    if (status == SHOAL_OK)
        status = ledger_create(&self->book, "USD", budget, run_cluster_deadline(self));
    if (status < 0)
        return status;
    status = run_cluster_put_spec(self, SHOAL_NOTHING);
    if (status == SHOAL_OK)
        return status;
    char *why = NULL;
    if (base_copy_text(&why, shoal_error()) == SHOAL_OK && status != SHOAL_UNKNOWN)
        (void)shoal_store_remove(self->store, self->ledger_key, run_cluster_deadline(self));
    if (status != SHOAL_UNKNOWN)
        remove_secret(self);
    if (status == SHOAL_CONFLICT)
        shoal_fail(status,
                   "there is a cluster '%s' in %s already: 'shoal cluster show %s' shows it; choose another name, or "
                   "end it with 'shoal cluster down %s'",
                   self->spec.name, self->url, self->spec.name, self->spec.name);
    else
        shoal_fail(status, "%s", why ? why : "out of memory");
    base_free(&why);
    return status;
}

/* Machines of a stand-in see the files of this one. */
static int check_folder(const char *url)
{
    const char *own = getenv("AWS_ENDPOINT_URL_EC2"), *all = getenv("AWS_ENDPOINT_URL");
    if (!run_jobs_is_folder(url) || (own && *own) || (all && *all))
        return SHOAL_OK;
    return shoal_fail(SHOAL_USAGE,
                      "rented machines can't see a folder of this one, %s: --store s3://BUCKET/PREFIX is "
                      "what both reach",
                      url);
}

int run_cluster_create(run_cluster **out, const run_jobs *jobs, const run_cluster_wish *wish)
{
    int64_t budget = 0;
    *out = NULL;
    int status = start_opening(out, jobs, wish->name);
    if (status == SHOAL_OK)
        status = fill_spec(&(*out)->spec, wish);
    if (status == SHOAL_OK)
        status = end_opening(*out);
    if (status == SHOAL_OK)
        status = check_folder(jobs->url);
    if (status == SHOAL_OK && (*out)->place->types == 0)
        status = shoal_fail(SHOAL_USAGE, "--machines %s names no type, as in aws:eu-west-1/c7i.large", wish->machines);
    if (status == SHOAL_OK)
        status = run_cluster_find_pools(*out);
    if (status == SHOAL_OK)
        status = fit_budget(*out, &budget, wish);
    if (status == SHOAL_OK)
        status = run_cluster_find_bundle(*out);
    if (status == SHOAL_OK)
        status = put_cluster(*out, budget);
    if (status < 0)
        run_cluster_close(out);
    return status;
}
