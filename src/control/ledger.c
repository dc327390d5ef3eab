/* Ledgers in memory: what may be changed, and what a machine obeys.  See ledger.h. */
#include "control/ledger.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <shoal/error.h>

#include "base/memory.h"

int64_t ledger_money_of(double units)
{
    if (!(units > 0))
        return 0;
    double money = ceil(units * (double)LEDGER_UNIT - 1e-6); /* 0.17 * 1e9 is 170000000.00000003 */
    return money < 9.2e18 ? (int64_t)money : INT64_MAX;
}

void ledger_release(ledger *self)
{
    base_free(&self->entry);
    *self = (ledger){0};
}

static ledger_entry *find_entry(const ledger *self, uint64_t token)
{
    for (int64_t i = 0; i < self->count; i++)
        if (self->entry[i].token == token)
            return &self->entry[i];
    return NULL;
}

const ledger_entry *ledger_find(const ledger *self, uint64_t token)
{
    return find_entry(self, token);
}

/* ---- sums -------------------------------------------------------------------------------------------------------- */

static int64_t add_saturated(int64_t a, int64_t b)
{
    int64_t sum = 0;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

/* Seconds that are billed at most: what lies between two readings of a clock may be 1% longer. */
static __int128 billed_most(int64_t allowed, int64_t around)
{
    __int128 seconds = ((__int128)allowed * 101 + 99) / 100 + around;
    return seconds > LEDGER_BILLED_LEAST ? seconds : LEDGER_BILLED_LEAST;
}

int64_t ledger_cost(int64_t cap, int64_t allowed, int64_t around)
{
    __int128 cost = (billed_most(allowed, around) * cap + 3599) / 3600;
    return cost < INT64_MAX ? (int64_t)cost : INT64_MAX;
}

int64_t ledger_times(int64_t cost, int64_t count)
{
    int64_t product = 0;
    return __builtin_mul_overflow(cost, count, &product) ? INT64_MAX : product;
}

static int64_t cost_of(const ledger_entry *entry)
{
    return ledger_cost(entry->cap, entry->allowed, entry->around);
}

int64_t ledger_committed(const ledger *self)
{
    int64_t sum = self->spent;
    for (int64_t i = 0; i < self->count; i++)
        sum = add_saturated(sum, cost_of(&self->entry[i]));
    return sum;
}

int64_t ledger_left(const ledger *self)
{
    int64_t committed = ledger_committed(self);
    return committed < self->budget ? self->budget - committed : 0;
}

int64_t ledger_affords(int64_t money, int64_t cap, int64_t around)
{
    if (cap <= 0)
        return INT32_MAX;
    __int128 seconds = (__int128)money * 3600 / cap;
    __int128 allowed = seconds < LEDGER_BILLED_LEAST ? 0 : (seconds - around) * 100 / 101;
    return allowed <= 0 ? 0 : allowed < INT32_MAX ? (int64_t)allowed : INT32_MAX;
}

/* ---- changes ----------------------------------------------------------------------------------------------------- */

static int fail_absent(uint64_t token)
{
    return shoal_fail(SHOAL_ABSENT, "the ledger has no reservation %016llx", (unsigned long long)token);
}

/* Whether so much more may be committed. */
static int check_budget(const ledger *self, int64_t more)
{
    int64_t left = ledger_left(self);
    if (more <= left)
        return SHOAL_OK;
    return shoal_fail(SHOAL_DENIED, "the budget of %.4f %s has %.4f left, and this may cost %.4f",
                      (double)self->budget / LEDGER_UNIT, self->currency, (double)left / LEDGER_UNIT,
                      (double)more / LEDGER_UNIT);
}

static bool copy_name(char out[LEDGER_NAME_BYTES], const char *name)
{
    int written = snprintf(out, LEDGER_NAME_BYTES, "%s", name ? name : "");
    return written < LEDGER_NAME_BYTES;
}

int ledger_add(ledger *self, const ledger_wish *wish, uint64_t change)
{
    ledger_entry entry = {.token = wish->token,
                          .change = change,
                          .maker = wish->maker,
                          .cap = wish->cap,
                          .allowed = wish->allowed,
                          .wanted = wish->allowed,
                          .around = wish->around,
                          .made = wish->made};
    if (find_entry(self, wish->token))
        return SHOAL_OK;
    if (wish->token == 0 || wish->cap < 0 || wish->allowed < 0 || wish->around < 0)
        return shoal_fail(SHOAL_USAGE, "a reservation has a token, a price, a permit and the seconds around it");
    if (!copy_name(entry.pool, wish->pool) || !copy_name(entry.job, wish->job))
        return shoal_fail(SHOAL_USAGE, "'%.120s' or '%.120s' is longer than a ledger holds", wish->pool, wish->job);
    if (self->count == LEDGER_MOST)
        return shoal_fail(SHOAL_DENIED, "the ledger holds %d reservations, the most there can be", LEDGER_MOST);
    int status = check_budget(self, cost_of(&entry));
    if (status == SHOAL_OK && self->count == self->room) {
        int64_t room = self->room ? self->room * 2 : 16;
        status = base_grow(&self->entry, (size_t)self->room, (size_t)room, sizeof *self->entry, "a ledger");
        self->room = status == SHOAL_OK ? room : self->room;
    }
    if (status == SHOAL_OK)
        self->entry[self->count++] = entry;
    return status;
}

int ledger_extend(ledger *self, uint64_t token, int64_t allowed, uint64_t change)
{
    ledger_entry *entry = find_entry(self, token);
    if (!entry)
        return fail_absent(token);
    if (entry->allowed >= allowed && entry->wanted >= allowed)
        return SHOAL_OK;
    int64_t longer = allowed > entry->allowed ? allowed : entry->allowed;
    int status = check_budget(self, ledger_cost(entry->cap, longer, entry->around) - cost_of(entry));
    if (status < 0)
        return status;
    entry->allowed = longer;
    entry->wanted = allowed;
    entry->change = change;
    return SHOAL_OK;
}

int ledger_ask(ledger *self, uint64_t token, int64_t wanted, uint64_t change)
{
    ledger_entry *entry = find_entry(self, token);
    if (!entry)
        return fail_absent(token);
    wanted = wanted > 0 ? wanted : 0;
    if (entry->wanted <= wanted)
        return SHOAL_OK;
    entry->wanted = wanted;
    entry->change = change;
    return SHOAL_OK;
}

int ledger_yield(ledger *self, uint64_t token, uint64_t seen, int64_t allowed, uint64_t change)
{
    ledger_entry *entry = find_entry(self, token);
    if (!entry)
        return fail_absent(token);
    if (entry->allowed <= allowed || allowed < 0)
        return SHOAL_OK;
    if (entry->change != seen)
        return shoal_fail(SHOAL_CONFLICT, "reservation %016llx has changed", (unsigned long long)token);
    entry->allowed = allowed;
    entry->wanted = entry->wanted < allowed ? entry->wanted : allowed;
    entry->change = change;
    return SHOAL_OK;
}

int ledger_note(ledger *self, uint64_t token, const char *machine, uint64_t change)
{
    ledger_entry *entry = find_entry(self, token);
    if (!entry)
        return fail_absent(token);
    if (entry->state == LEDGER_STARTED && strcmp(entry->machine, machine) == 0)
        return SHOAL_OK;
    if (!copy_name(entry->machine, machine))
        return shoal_fail(SHOAL_INVALID, "the provider calls a machine '%.120s', which is longer than a ledger holds",
                          machine);
    entry->state = LEDGER_STARTED;
    entry->witnessed = 0;
    entry->change = change;
    return SHOAL_OK;
}

int ledger_revoke(ledger *self, uint64_t token, uint64_t change)
{
    ledger_entry *entry = find_entry(self, token);
    if (!entry)
        return fail_absent(token);
    if (entry->state == LEDGER_REVOKED)
        return SHOAL_OK;
    if (entry->state == LEDGER_STARTED)
        return shoal_fail(SHOAL_CONFLICT, "reservation %016llx has been started", (unsigned long long)token);
    entry->state = LEDGER_REVOKED;
    entry->change = change;
    return SHOAL_OK;
}

void ledger_witness(ledger *self, int64_t wall)
{
    for (int64_t i = 0; i < self->count; i++)
        if (self->entry[i].state != LEDGER_RESERVED && self->entry[i].witnessed == 0)
            self->entry[i].witnessed = wall;
}

bool ledger_lacks_witness(const ledger *self)
{
    for (int64_t i = 0; i < self->count; i++)
        if (self->entry[i].state != LEDGER_RESERVED && self->entry[i].witnessed == 0)
            return true;
    return false;
}

int ledger_end(ledger *self, uint64_t token, uint64_t seen, int64_t cost)
{
    ledger_entry *entry = find_entry(self, token);
    if (!entry)
        return SHOAL_OK; /* somebody else has said so */
    if (entry->change != seen)
        return shoal_fail(SHOAL_CONFLICT, "reservation %016llx has changed", (unsigned long long)token);
    self->spent = add_saturated(self->spent, cost > 0 ? cost : 0);
    int64_t at = entry - self->entry;
    memmove(entry, entry + 1, (size_t)(self->count - at - 1) * sizeof *entry);
    self->count--;
    return SHOAL_OK;
}

int ledger_set_budget(ledger *self, int64_t budget)
{
    self->budget = budget > 0 ? budget : 0;
    return SHOAL_OK;
}

/* ---- on the machine ---------------------------------------------------------------------------------------------- */

int64_t ledger_obey(ledger_sight *sight, const ledger *self, uint64_t token, int64_t uptime, int64_t now, double settle)
{
    const ledger_entry *entry = find_entry(self, token);
    if (!entry)
        return -1;
    if (entry->change != sight->change) {
        sight->change = entry->change;
        sight->since = now;
    }
    if (entry->wanted < sight->allowed && sight->allowed > uptime) /* what was used can't be given back */
        sight->allowed = entry->wanted > uptime ? entry->wanted : uptime;
    else if ((double)(now - sight->since) >= settle * 1e9 && entry->wanted > sight->allowed)
        sight->allowed = entry->wanted;
    return sight->allowed;
}

bool ledger_owes(const ledger_sight *sight, const ledger *self, uint64_t token)
{
    const ledger_entry *entry = find_entry(self, token);
    return entry && entry->wanted < entry->allowed && sight->allowed < entry->allowed;
}
