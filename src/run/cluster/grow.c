/* Machines that are added to a cluster, and taken from it.  See cluster.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <shoal/error.h>

#include "base/memory.h"
#include "base/text.h"
#include "base/world.h"
#include "cluster_internal.h"

static const double EVERY_SECONDS = 0.5; /* between two looks */

static bool is_passing(int status)
{
    return status == SHOAL_AGAIN || status == SHOAL_UNKNOWN;
}

static void say_line(const run_cluster_watch *watch, const char *text)
{
    if (watch->say)
        watch->say(watch->context, text);
}

/* ---- more -------------------------------------------------------------------------------------------------------- */

typedef struct growing {
    run_cluster *self;
    const run_cluster_watch *watch;
    int64_t wanted;
    int64_t reserved, running; /* of them, as last seen */
    char said[2 * CLOUD_TEXT_BYTES];
} growing;

static bool runs(const run_cluster *self, const ledger_entry *entry)
{
    for (int64_t i = 0; i < self->found.count; i++)
        if (run_cluster_entry(self, &self->found.machine[i]) == entry && self->found.machine[i].state == CLOUD_RUNNING)
            return true;
    return false;
}

static void count_own(growing *g)
{
    const run_cluster *self = g->self;
    g->reserved = g->running = 0;
    for (int64_t i = 0; i < self->ledger.count; i++) {
        const ledger_entry *entry = &self->ledger.entry[i];
        if (entry->maker != self->maker || entry->state == LEDGER_REVOKED)
            continue;
        g->reserved++;
        g->running += runs(self, entry);
    }
}

/* Reserves what is missing, each in the pool that is best then. */
static int reserve_missing(growing *g)
{
    run_cluster *self = g->self;
    ledger_wish wish[RUN_CLUSTER_MOST];
    char name[RUN_CLUSTER_MOST][LEDGER_NAME_BYTES];
    int64_t count = 0;
    for (; count < g->wanted - g->reserved; count++) {
        int64_t which = run_pool_choose(self->pool, self->pools, shoal_now());
        if (which < 0)
            break;
        run_pool *pool = &self->pool[which];
        pool->load++;
        run_pool_name(name[count], pool);
        wish[count] = (ledger_wish){.maker = self->maker,
                                    .cap = ledger_money_of(pool->cap),
                                    .allowed = self->spec.allowed,
                                    .around = RUN_CLUSTER_AROUND,
                                    .made = time(NULL),
                                    .pool = name[count],
                                    .job = self->spec.name};
        base_entropy(&wish[count].token, sizeof wish[count].token);
    }
    return count > 0 ? ledger_reserve(&self->book, wish, count, run_cluster_deadline(self)) : SHOAL_OK;
}

static int revoke_unstarted(void *context, ledger *book, uint64_t fresh)
{
    const run_cluster *self = context;
    int status = SHOAL_OK;
    for (int64_t i = 0; i < book->count && status == SHOAL_OK; i++)
        if (book->entry[i].maker == self->maker && book->entry[i].state == LEDGER_RESERVED)
            status = ledger_revoke(book, book->entry[i].token, fresh);
    return status;
}

/* Somebody may be ending the cluster meanwhile. */
static int check_wanted(run_cluster *self)
{
    int status = run_cluster_get_spec(self);
    if (status == SHOAL_OK && self->spec.down)
        status = shoal_fail(SHOAL_STOPPED, "the cluster is being ended by 'shoal cluster down'");
    return status;
}

static void say_news(growing *g)
{
    char line[sizeof g->said];
    snprintf(line, sizeof line, "%lld of %lld machines run%s%.250s", (long long)g->running, (long long)g->wanted,
             *g->self->trouble ? "; " : "", g->self->trouble);
    if (strcmp(line, g->said) != 0)
        say_line(g->watch, line);
    memcpy(g->said, line, sizeof line);
}

/* What ended it other than success; SHOAL_OK while it may go on. */
static int is_over(const growing *g, int64_t deadline)
{
    const run_cluster *self = g->self;
    if (*self->failure)
        return shoal_fail(SHOAL_DENIED, "%s", self->failure);
    if (g->watch->stopped && g->watch->stopped())
        return shoal_fail(SHOAL_STOPPED, "stopped");
    if (shoal_now() >= deadline)
        return shoal_fail(SHOAL_AGAIN, "%s", *self->trouble ? self->trouble : "the provider takes too long");
    return SHOAL_OK;
}

static int grow_step(growing *g)
{
    int status = run_cluster_tick(g->self);
    if (status < 0)
        return status;
    count_own(g);
    if (g->running < g->wanted)
        status = check_wanted(g->self);
    if (status == SHOAL_OK && g->reserved < g->wanted && !*g->self->failure)
        status = reserve_missing(g);
    return status;
}

int run_cluster_grow(run_cluster *self, int64_t count, const run_cluster_watch *watch)
{
    growing g = {.self = self, .watch = watch, .wanted = count};
    int64_t deadline = shoal_after(watch->patience);
    if (count < 1 || count > RUN_CLUSTER_MOST)
        return shoal_fail(SHOAL_USAGE, "%lld machines: there can be 1 to %d at a time", (long long)count,
                          RUN_CLUSTER_MOST);
    int status = run_cluster_need_secret(self);
    if (status == SHOAL_OK)
        status = run_cluster_find_pools(self);
    if (status == SHOAL_OK)
        status = run_cluster_find_bundle(self);
    while (status == SHOAL_OK) {
        status = grow_step(&g);
        if (is_passing(status)) {
            snprintf(self->trouble, sizeof self->trouble, "%.300s", shoal_error());
            status = SHOAL_OK;
        }
        say_news(&g);
        if (status < 0 || g.running >= count)
            break;
        status = is_over(&g, deadline);
        if (status == SHOAL_OK)
            base_sleep_until(shoal_after(EVERY_SECONDS));
    }
    if (status == SHOAL_OK)
        return status;
    char *why = NULL;
    (void)base_copy_text(&why, shoal_error());
    if (self->has_secret)
        (void)ledger_change(&self->book, revoke_unstarted, self, run_cluster_deadline(self));
    shoal_fail(status, "%lld of %lld machines run: %s", (long long)g.running, (long long)count, why ? why : "");
    base_free(&why);
    return status;
}

/* ---- fewer ------------------------------------------------------------------------------------------------------- */

typedef struct revoking {
    const uint64_t *token; /* NULL: all */
    int64_t count;
} revoking;

/* Those that nobody knows to have started.  The others stay reserved until their machines are seen to have ended. */
static int revoke_some(void *context, ledger *book, uint64_t fresh)
{
    const revoking *r = context;
    int status = SHOAL_OK;
    for (int64_t i = 0; i < book->count && status == SHOAL_OK; i++)
        for (int64_t j = 0; j < (r->token ? r->count : 1) && status == SHOAL_OK; j++)
            if (book->entry[i].state == LEDGER_RESERVED && (!r->token || r->token[j] == book->entry[i].token))
                status = ledger_revoke(book, book->entry[i].token, fresh);
    return status;
}

/* Ends machines of the last listing: `which` of them. */
static int end_machines(run_cluster *self, const int64_t *which, int64_t count)
{
    const char *ids[RUN_CLUSTER_MOST];
    for (int64_t i = 0; i < count; i++)
        ids[i] = self->found.machine[which[i]].id;
    return cloud_end(self->place, ids, count, run_cluster_deadline(self));
}

/* The newest machines that are alive, or the one of that id. */
static int64_t choose_machines(int64_t *which, const run_cluster *self, const char *id, int64_t most)
{
    int64_t count = 0;
    for (int64_t i = 0; i < self->found.count; i++) {
        const cloud_machine *machine = &self->found.machine[i];
        if (!run_cluster_is_alive(self, machine) || (id && strcmp(id, machine->id) != 0))
            continue;
        int64_t at = count < most ? count++ : most;
        for (; at > 0 && self->found.machine[which[at - 1]].launched < machine->launched; at--)
            if (at < most)
                which[at] = which[at - 1];
        if (at < most)
            which[at] = i;
    }
    return count;
}

int run_cluster_remove(run_cluster *self, const char *id, int64_t count)
{
    int64_t which[RUN_CLUSTER_MOST], begun, wall;
    uint64_t tokens[RUN_CLUSTER_MOST];
    int status = run_cluster_need_secret(self);
    if (status == SHOAL_OK)
        status = run_cluster_look(self, &begun, &wall);
    if (status < 0)
        return status;
    int64_t found = choose_machines(which, self, id, id ? 1 : count);
    if (id && found == 0)
        return shoal_fail(SHOAL_ABSENT, "no machine '%s' of cluster '%s' runs", id, self->spec.name);
    if (!id && found < count)
        return shoal_fail(SHOAL_USAGE, "cluster '%s' has %lld machine%s, not %lld", self->spec.name, (long long)found,
                          base_plural(found), (long long)count);
    for (int64_t i = 0; i < found; i++) {
        const ledger_entry *entry = run_cluster_entry(self, &self->found.machine[which[i]]);
        tokens[i] = entry ? entry->token : 0;
    }
    status = ledger_change(&self->book, revoke_some, &(revoking){tokens, found}, run_cluster_deadline(self));
    if (status == SHOAL_OK)
        status = end_machines(self, which, found);
    return status == SHOAL_OK ? run_cluster_tick(self) : status; /* what has ended is paid */
}

/* ---- none -------------------------------------------------------------------------------------------------------- */

/* Another process may be writing it, too. */
static int mark_down(run_cluster *self)
{
    int status = SHOAL_OK;
    for (int i = 0; i < 10 && !self->spec.down; i++) {
        shoal_etag seen = self->spec_etag;
        self->spec.down = true;
        status = run_cluster_put_spec(self, &seen);
        if (status != SHOAL_CONFLICT && status != SHOAL_UNKNOWN)
            break;
        status = run_cluster_get_spec(self);
    }
    return status;
}

static int64_t count_alive(const run_cluster *self)
{
    int64_t alive = 0;
    for (int64_t i = 0; i < self->found.count; i++)
        alive += run_cluster_is_alive(self, &self->found.machine[i]);
    return alive;
}

/* Ends all that the last listing has. */
static int end_all(run_cluster *self)
{
    int64_t which[RUN_CLUSTER_MOST];
    int64_t count = choose_machines(which, self, NULL, RUN_CLUSTER_MOST);
    return end_machines(self, which, count);
}

/* Without a ledger that can be read, for want of its secret or because somebody removed or forged it, machines are
 * ended all the same. */
static int look_down(run_cluster *self)
{
    int status = self->has_secret ? run_cluster_tick(self) : run_cluster_look_only(self);
    bool lost = status == SHOAL_ABSENT || status == SHOAL_BROKEN || status == SHOAL_MEMORY; /* the last: a huge one */
    if (self->has_secret && lost) {
        self->has_secret = false;
        ledger_release(&self->ledger);
        status = run_cluster_look_only(self);
    }
    return status;
}

static int64_t count_in_state(const run_cluster *self, ledger_state state)
{
    int64_t count = 0;
    for (int64_t i = 0; i < self->ledger.count; i++)
        count += self->ledger.entry[i].state == state;
    return count;
}

/* Another look, and what follows from it; *left: what may still cost something and is not only to be waited for. */
static int step_down(run_cluster *self, int64_t *left)
{
    int status = look_down(self);
    int64_t alive = count_alive(self), unstarted = count_in_state(self, LEDGER_RESERVED);
    *left = alive + unstarted + count_in_state(self, LEDGER_STARTED);
    if (status == SHOAL_OK && unstarted > 0)
        status = ledger_change(&self->book, revoke_some, &(revoking){0}, run_cluster_deadline(self));
    return status == SHOAL_OK && alive > 0 ? end_all(self) : status;
}

static int fail_down(const run_cluster *self)
{
    int64_t alive = count_alive(self);
    if (alive == 0)
        return shoal_fail(SHOAL_AGAIN,
                          "cluster '%s' has no machines, but the provider does not show yet how %lld ended; run the "
                          "command again",
                          self->spec.name, (long long)self->ledger.count);
    return shoal_fail(SHOAL_AGAIN, "%lld machine%s of cluster '%s' still run%s; run the command again",
                      (long long)alive, base_plural(alive), self->spec.name, alive == 1 ? "s" : "");
}

int run_cluster_down(run_cluster *self, int64_t *held, const run_cluster_watch *watch)
{
    int64_t deadline = shoal_after(watch->patience), before = -1;
    int status = mark_down(self);
    while (status == SHOAL_OK) {
        int64_t left = 1;
        status = step_down(self, &left);
        if (status == SHOAL_OK && left == 0 && (self->ledger.count == 0 || self->ledger.count == before))
            break;
        before = left == 0 ? self->ledger.count : -1;
        if (status == SHOAL_OK && watch->stopped && watch->stopped())
            status = shoal_fail(SHOAL_STOPPED, "stopped; machines that were not ended yet end by themselves");
        if (status == SHOAL_OK && shoal_now() >= deadline)
            status = fail_down(self);
        if (is_passing(status) && shoal_now() < deadline)
            status = SHOAL_OK;
        if (status == SHOAL_OK)
            base_sleep_until(shoal_after(EVERY_SECONDS));
    }
    *held = self->ledger.count;
    if (status == SHOAL_OK && *held == 0)
        status = run_cluster_forget(self);
    return status;
}
