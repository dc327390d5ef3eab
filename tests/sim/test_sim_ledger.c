/* The ledger among leaders, machines, a provider and a store of which each may fail, second by second, with a bill that
 * knows all.
 *
 * What is real is src/control: every change of a ledger, what a leader does next, what a machine obeys.  A change that
 * is swapped in is a change of the newest ledger at one moment, so that is what is simulated; one whose answer was lost
 * comes twice.  `--seed N` runs one seed, and says what happens. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <shoal/error.h>

#include "base/random.h"
#include "control/ledger.h"
#include "control/ledger_lead.h"

enum {
    LEADERS = 2,
    MACHINES_MOST = 256,
    VERSIONS = 64,
    REQUESTS = 64,
    CHANGES = 128,
    STEPS = 64,
    WILD = 3 * 3600, /* seconds in which everything fails */
    CALM = 4 * 3600, /* in which nothing more is reserved or fails */
    FORGETS = 5,     /* seconds of writes that the store may lose */
    LAG = 60,        /* of listings */
    SIGNATURE = 300,
    SKEW = 5, /* after which a request is refused; by how much clocks differ */
    SHOWN = 3600,
    BOOT = 60,
    SHUTDOWN = 30,   /* with two seconds to spare, since time goes by the second */
    LOOKS_EVERY = 7, /* a machine at the ledger */
};
static const ledger_terms terms = {
    .settle = 2 * FORGETS, .signature = SIGNATURE + SKEW, .lag = LAG, .shown = SHOWN, .clocks = SKEW, .patience = 120};

typedef struct machine {
    uint64_t token;
    char name[16];
    int64_t price, created, ended; /* ended: 0 while it is not */
    int64_t boots;                 /* seconds until it is up */
    double uptime, rate;           /* of its clock */
    int64_t paused_until, paused;  /* and seconds that it was */
    bool off;                      /* is switching itself off */
    int64_t gone_at;
    int64_t armed;
    ledger_sight sight;
} machine;

/* A request that is under way. */
typedef struct request {
    bool used;
    int64_t arrives, signed_at;
    uint64_t token;
    int64_t price, allowed;
    int leader;
    uint64_t maker;
    bool answer_lost;
} request;

typedef enum change_kind { RESERVE, EXTEND, ASK, YIELD, NOTE, REVOKED, ENDED } change_kind;

/* A change that reaches the store later. */
typedef struct change {
    bool used, again;
    change_kind kind;
    int64_t at;
    uint64_t token, seen, maker;
    int64_t amount, price;
    char machine[16];
} change;

typedef struct world {
    uint64_t seed, draws;
    bool says;
    int64_t now;
    ledger version[VERSIONS]; /* the newest last */
    int64_t written[VERSIONS];
    int versions;
    machine machine[MACHINES_MOST];
    int machines;
    request request[REQUESTS];
    change change[CHANGES];
    struct leader {
        ledger_lead *lead;
        uint64_t maker;
        int64_t next, paused_until;
        /* What was found when it last looked, acted upon later. */
        bool looking;
    } leader[LEADERS];
    bool paused_ever;
} world;

/* ---- chance ------------------------------------------------------------------------------------------------------ */

static uint64_t draw(world *self)
{
    return base_random_u64(self->seed, BASE_FOR_FAULTS, self->draws++, 0);
}

static int64_t below(world *self, int64_t n)
{
    return (int64_t)(draw(self) % (uint64_t)n);
}

static bool chance(world *self, int64_t one_in)
{
    return self->now < WILD && below(self, one_in) == 0;
}

static void say(const world *self, const char *what, uint64_t token, int64_t number)
{
    if (self->says)
        printf("%6lld %-12s %04llx %lld\n", (long long)self->now, what, (unsigned long long)(token & 0xffff),
               (long long)number);
}

/* ---- the store --------------------------------------------------------------------------------------------------- */

static ledger *newest(world *self)
{
    return &self->version[self->versions - 1];
}

static ledger copy_of(const ledger *from)
{
    ledger out = *from;
    out.entry = malloc((size_t)(from->room ? from->room : 1) * sizeof *out.entry);
    assert_non_null(out.entry);
    memcpy(out.entry, from->entry, (size_t)from->count * sizeof *out.entry);
    return out;
}

/* The ledger grows in memory that base_grow gives: tests copy into malloc'd blocks, so room is kept ahead. */
static ledger roomy_copy(const ledger *from)
{
    ledger out = *from;
    out.room = from->count + 8;
    out.entry = malloc((size_t)out.room * sizeof *out.entry);
    assert_non_null(out.entry);
    memcpy(out.entry, from->entry, (size_t)from->count * sizeof *out.entry);
    return out;
}

static void drop_version(world *self, int at)
{
    free(self->version[at].entry);
    memmove(&self->version[at], &self->version[at + 1], (size_t)(self->versions - at - 1) * sizeof(ledger));
    memmove(&self->written[at], &self->written[at + 1], (size_t)(self->versions - at - 1) * sizeof(int64_t));
    self->versions--;
}

static void forget_writes(world *self)
{
    while (self->versions > 1 && self->written[self->versions - 1] > self->now - FORGETS) {
        say(self, "forgets", 0, (int64_t)newest(self)->serial);
        drop_version(self, self->versions - 1);
    }
}

static int apply(ledger *book, const change *what, uint64_t fresh)
{
    ledger_wish wish = {.token = what->token,
                        .maker = what->maker,
                        .cap = what->price,
                        .allowed = what->amount,
                        .around = BOOT + SHUTDOWN,
                        .made = (int64_t)what->seen,
                        .pool = "here",
                        .job = "a"};
    switch (what->kind) {
    case RESERVE: return ledger_add(book, &wish, fresh);
    case EXTEND: return ledger_extend(book, what->token, what->amount, fresh);
    case ASK: return ledger_ask(book, what->token, what->amount, fresh);
    case YIELD: return ledger_yield(book, what->token, what->seen, what->amount, fresh);
    case NOTE: return ledger_note(book, what->token, what->machine, fresh);
    case REVOKED: return ledger_revoke(book, what->token, fresh);
    case ENDED: return ledger_end(book, what->token, what->seen, what->amount);
    }
    return SHOAL_OK;
}

static void swap_in(world *self, const change *what)
{
    ledger next = roomy_copy(newest(self));
    ledger_witness(&next, self->now + (int64_t)(self->now % (2 * SKEW + 1)) - SKEW);
    if (apply(&next, what, draw(self)) < 0) {
        free(next.entry);
        return;
    }
    next.serial++;
    if (self->versions == VERSIONS)
        drop_version(self, 0);
    self->version[self->versions] = next;
    self->written[self->versions++] = self->now;
}

static void send_change(world *self, change what)
{
    for (int i = 0; i < CHANGES; i++)
        if (!self->change[i].used) {
            what.used = true;
            what.at = self->now + below(self, chance(self, 10) ? 200 : 4);
            what.again = chance(self, 8);
            self->change[i] = what;
            return;
        }
}

static void deliver_changes(world *self)
{
    for (int i = 0; i < CHANGES; i++) {
        change *what = &self->change[i];
        if (!what->used || what->at > self->now)
            continue;
        swap_in(self, what);
        what->used = what->again; /* its answer was lost: it is tried again */
        what->again = false;
        what->at = self->now + 1 + below(self, 20);
    }
}

/* ---- the provider ------------------------------------------------------------------------------------------------ */

static machine *machine_of(world *self, uint64_t token)
{
    for (int i = 0; i < self->machines; i++)
        if (self->machine[i].token == token)
            return &self->machine[i];
    return NULL;
}

static void create_machine(world *self, const request *from)
{
    if (machine_of(self, from->token) || self->machines == MACHINES_MOST)
        return;
    machine *new = &self->machine[self->machines++];
    *new = (machine){.token = from->token,
                     .price = from->price,
                     .created = self->now,
                     .boots = below(self, 2) ? BOOT - 2 : below(self, BOOT - 1),
                     .rate = below(self, 2) ? 0.9901 : 0.99 + 0.02 * (double)below(self, 1001) / 1000,
                     .armed = from->allowed,
                     .sight = {.allowed = from->allowed}};
    snprintf(new->name, sizeof new->name, "m%d", self->machines);
    say(self, "created", new->token, new->armed);
}

static void deliver_requests(world *self)
{
    for (int i = 0; i < REQUESTS; i++) {
        request *at = &self->request[i];
        if (!at->used || at->arrives > self->now)
            continue;
        struct leader *leader = &self->leader[at->leader];
        bool expired = self->now - at->signed_at > SIGNATURE;
        bool full = !machine_of(self, at->token) && chance(self, 5);
        at->used = false;
        if (!expired && !full)
            create_machine(self, at);
        if (!at->answer_lost && leader->maker == at->maker)
            ledger_lead_answered(leader->lead, at->token, !expired && !full);
    }
}

static void end_machine(world *self, machine *at)
{
    if (at->ended || at->off)
        return;
    at->off = true;
    at->gone_at = self->now + (below(self, 2) ? SHUTDOWN - 1 : below(self, SHUTDOWN));
}

/* What the provider shows: as it was some time ago. */
static int64_t list_machines(world *self, ledger_machine *out)
{
    int64_t as_of = self->now - below(self, LAG), count = 0;
    for (int i = 0; i < self->machines; i++) {
        const machine *at = &self->machine[i];
        bool ended = at->ended && at->ended <= as_of;
        if (at->created > as_of || (ended && at->ended + SHOWN < as_of))
            continue;
        out[count++] = (ledger_machine){.name = at->name,
                                        .token = at->token,
                                        .ended = ended,
                                        .billed = (double)((ended ? at->ended : as_of) - at->created)};
    }
    return count;
}

/* ---- machines ---------------------------------------------------------------------------------------------------- */

static void look_at_permit(world *self, machine *at)
{
    if (chance(self, 4))
        return; /* the store can't be reached */
    int64_t most =
        ledger_obey(&at->sight, newest(self), at->token, (int64_t)at->uptime + 1, self->now * 1000000000, terms.settle);
    at->armed = most;
    if (ledger_owes(&at->sight, newest(self), at->token))
        send_change(self, (change){.kind = YIELD, .token = at->token, .amount = most, .seen = at->sight.change});
}

static void run_machine(world *self, machine *at)
{
    if (at->ended)
        return;
    if (at->off) {
        at->ended = self->now >= at->gone_at ? self->now : 0;
        return;
    }
    if (chance(self, 4000)) {
        at->paused_until = self->now + below(self, 1200);
        self->paused_ever = true;
        say(self, "paused", at->token, at->paused_until);
    }
    if (self->now < at->paused_until) {
        at->paused++;
        return;
    }
    if (self->now - at->created - at->paused < at->boots)
        return;
    at->uptime += at->rate;
    if ((self->now + at->boots) % LOOKS_EVERY == 0)
        look_at_permit(self, at);
    if (at->uptime >= (double)at->armed) {
        say(self, "off", at->token, (int64_t)at->uptime);
        end_machine(self, at);
    }
}

/* ---- leaders ----------------------------------------------------------------------------------------------------- */

static void begin_leader(world *self, int index)
{
    struct leader *leader = &self->leader[index];
    ledger_lead_free(&leader->lead);
    leader->maker = draw(self) | 1;
    assert_int_equal(ledger_lead_new(&leader->lead, leader->maker, &terms), SHOAL_OK);
}

static void send_start(world *self, int index, const ledger *book, const ledger_step *step, int64_t signed_at)
{
    const ledger_entry *entry = ledger_find(book, step->token);
    assert_int_equal(ledger_lead_sent(self->leader[index].lead, step->token), SHOAL_OK);
    say(self, "start", step->token, entry->wanted);
    for (int i = 0; i < REQUESTS && !chance(self, 8); i++) /* some never arrive */
        if (!self->request[i].used) {
            self->request[i] = (request){.used = true,
                                         .arrives = self->now + below(self, chance(self, 6) ? 900 : 5),
                                         .signed_at = signed_at + below(self, 2 * SKEW + 1) - SKEW,
                                         .token = step->token,
                                         .price = entry->cap,
                                         .allowed = entry->wanted,
                                         .leader = index,
                                         .maker = entry->maker,
                                         .answer_lost = chance(self, 5)};
            return;
        }
}

static void do_step(world *self, int index, const ledger *book, const ledger_step *step, int64_t signed_at)
{
    change what = {.token = step->token, .seen = step->seen, .amount = step->cost};
    switch (step->act) {
    case LEDGER_START: send_start(self, index, book, step, signed_at); return;
    case LEDGER_KILL:
        for (int i = 0; i < self->machines; i++)
            if (strcmp(self->machine[i].name, step->machine) == 0 && !chance(self, 3)) {
                say(self, "kill", step->token, 0);
                end_machine(self, &self->machine[i]);
            }
        return;
    case LEDGER_NOTED:
        what.kind = NOTE;
        snprintf(what.machine, sizeof what.machine, "%s", step->machine);
        break;
    case LEDGER_REVOKE: what.kind = REVOKED; break;
    case LEDGER_ENDED: what.kind = ENDED; break;
    }
    say(self,
        step->act == LEDGER_ENDED   ? "ended"
        : step->act == LEDGER_NOTED ? "noted"
                                    : "revoke",
        step->token, step->cost);
    send_change(self, what);
}

/* What leaders wish is left to chance: more machines, longer or shorter permits. */
static void wish_something(world *self, const struct leader *leader, const ledger *book)
{
    int64_t choice = below(self, 6);
    change what = {.maker = leader->maker, .seen = (uint64_t)self->now};
    if (self->now >= WILD)
        return;
    if (choice <= 1) {
        what.kind = RESERVE;
        what.token = draw(self) | 1;
        what.price = (1 + below(self, 4)) * LEDGER_UNIT / 4;
        what.amount = below(self, 2400);
    } else if (book->count > 0 && choice <= 4) {
        const ledger_entry *entry = &book->entry[below(self, book->count)];
        what.kind = choice == 2 ? EXTEND : ASK;
        what.token = entry->token;
        what.amount = choice == 2 ? entry->allowed + below(self, 1200) : entry->allowed - below(self, 600);
    } else {
        return;
    }
    send_change(self, what);
}

static void run_leader(world *self, int index)
{
    struct leader *leader = &self->leader[index];
    ledger_machine listed[MACHINES_MOST];
    ledger_step step[STEPS];
    int64_t count = 0;
    if (self->now < leader->next)
        return;
    if (chance(self, 60))
        begin_leader(self, index); /* it died, and somebody else leads */
    leader->next = self->now + 5 + below(self, 15) + (chance(self, 30) ? below(self, 900) : 0);
    ledger_listing listing = {
        .machine = listed, .count = list_machines(self, listed), .begun = self->now * 1000000000, .wall = self->now};
    ledger book = copy_of(newest(self));
    assert_int_equal(ledger_lead_next(leader->lead, step, STEPS, &count, &book, &listing), SHOAL_OK);
    for (int64_t i = 0; i < count; i++)
        do_step(self, index, &book, &step[i], self->now - (chance(self, 10) ? below(self, 200) : 0));
    wish_something(self, leader, &book);
    free(book.entry);
}

/* ---- the bill ---------------------------------------------------------------------------------------------------- */

/* What all machines cost so far, knowing everything; and what of it pauses are to blame for. */
static void write_bill(const world *self, double *bill, double *pauses)
{
    *bill = *pauses = 0;
    for (int i = 0; i < self->machines; i++) {
        const machine *at = &self->machine[i];
        int64_t seconds = (at->ended ? at->ended : self->now) - at->created;
        double price = (double)at->price / LEDGER_UNIT / 3600;
        *bill += price * (double)(seconds > 60 ? seconds : 60);
        *pauses += price * (double)at->paused;
    }
}

/* Each machine that runs has a reservation in the newest ledger, which counts at least what it has cost so far. */
static void check_reservations(world *self)
{
    for (int i = 0; i < self->machines; i++) {
        const machine *at = &self->machine[i];
        if (at->ended)
            continue;
        const ledger_entry *entry = ledger_find(newest(self), at->token);
        double counted = entry ? (double)ledger_cost(entry->cap, entry->allowed, entry->around) / LEDGER_UNIT : 0;
        int64_t billed = self->now - at->created - at->paused;
        if ((double)at->price / LEDGER_UNIT / 3600 * (double)(billed > 60 ? billed : 60) > counted + 1e-9)
            fail_msg("seed %llu, second %lld: machine %s cost more than the %.4f of its reservation",
                     (unsigned long long)self->seed, (long long)self->now, at->name, counted);
        if (entry && at->armed > entry->allowed)
            fail_msg("seed %llu, second %lld: machine %s obeys %lld seconds of %lld", (unsigned long long)self->seed,
                     (long long)self->now, at->name, (long long)at->armed, (long long)entry->allowed);
    }
}

typedef struct tally {
    int64_t machines, killed_seeds;
    double bills, budgets;
} tally;

static void run_seed(uint64_t seed, bool says, tally *all)
{
    world *self = calloc(1, sizeof *self);
    assert_non_null(self);
    self->seed = seed;
    self->says = says;
    double budget = 1 + (double)below(self, 8), bill = 0, pauses = 0;
    self->version[0] = (ledger){.currency = "USD", .budget = ledger_money_of(budget)};
    self->version[0].entry = malloc(1);
    self->versions = 1;
    for (int i = 0; i < LEADERS; i++)
        begin_leader(self, i);
    for (self->now = 1; self->now < WILD + CALM; self->now++) {
        if (chance(self, 200))
            forget_writes(self);
        deliver_changes(self);
        deliver_requests(self);
        for (int i = 0; i < self->machines; i++)
            run_machine(self, &self->machine[i]);
        for (int i = 0; i < LEADERS; i++)
            run_leader(self, i);
        check_reservations(self);
        write_bill(self, &bill, &pauses);
        if (bill > budget + pauses + 1e-9)
            fail_msg("seed %llu, second %lld: the bill is %.4f of %.4f, %.4f of it for pauses",
                     (unsigned long long)seed, (long long)self->now, bill, budget, pauses);
    }
    /* Everything ends by itself, and the ledger has not lost count. */
    for (int i = 0; i < self->machines; i++)
        if (!self->machine[i].ended)
            fail_msg("seed %llu: machine %s still runs", (unsigned long long)seed, self->machine[i].name);
    if (newest(self)->count != 0)
        fail_msg("seed %llu: %lld reservations are left", (unsigned long long)seed, (long long)newest(self)->count);
    if ((double)newest(self)->spent / LEDGER_UNIT + 1e-6 < bill)
        fail_msg("seed %llu: %.4f was spent, and the ledger says %.4f", (unsigned long long)seed, bill,
                 (double)newest(self)->spent / LEDGER_UNIT);
    all->machines += self->machines;
    all->bills += bill - pauses;
    all->budgets += budget;
    for (int i = 0; i < self->versions; i++)
        free(self->version[i].entry);
    for (int i = 0; i < LEADERS; i++)
        ledger_lead_free(&self->leader[i].lead);
    free(self);
}

static uint64_t only_seed;

static void test_bill(void **state)
{
    tally all = {0};
    (void)state;
    if (only_seed) {
        run_seed(only_seed, true, &all);
        return;
    }
    for (uint64_t seed = 1; seed <= 60; seed++)
        run_seed(seed, false, &all);
    assert_true(all.machines > 1000);           /* something happens */
    assert_true(all.bills > 0.3 * all.budgets); /* and budgets are used */
    printf("%lld machines; of the budgets %.0f%% was spent\n", (long long)all.machines, 100 * all.bills / all.budgets);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bill)};
    if (argc == 3 && strcmp(argv[1], "--seed") == 0)
        only_seed = strtoull(argv[2], NULL, 10);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
