/* What whoever leads does next about rented machines.  See ledger_lead.h. */
#include "control/ledger_lead.h"

#include <math.h>
#include <string.h>
#include <shoal/error.h>

#include "base/memory.h"

/* What this process knows of one reservation. */
typedef struct sight {
    uint64_t token, change;
    int64_t since;         /* when this change was first seen */
    int64_t sent, refused; /* requests to start; of these, that the provider answered without starting anything */
    bool seen;             /* in the ledger, this time */
} sight;

struct ledger_lead {
    uint64_t maker;
    ledger_terms terms;
    sight *sight;
    int64_t count, room;
};

int ledger_lead_new(ledger_lead **out, uint64_t maker, const ledger_terms *terms)
{
    int status = base_alloc(out, 1, sizeof **out, "what a leader knows");
    if (status < 0)
        return status;
    (*out)->maker = maker;
    (*out)->terms = *terms;
    return SHOAL_OK;
}

void ledger_lead_free(ledger_lead **lead)
{
    if (*lead)
        base_free(&(*lead)->sight);
    base_free(lead);
}

/* ---- what was seen ----------------------------------------------------------------------------------------------- */

/* `near` is where it probably is: ledgers keep their order. */
static sight *find_sight(const ledger_lead *self, uint64_t token, int64_t near)
{
    for (int64_t i = 0; i < self->count; i++) {
        sight *at = &self->sight[(near + i) % self->count];
        if (at->token == token)
            return at;
    }
    return NULL;
}

static int add_sight(ledger_lead *self, const ledger_entry *entry)
{
    if (self->count == self->room) {
        int64_t room = self->room ? self->room * 2 : 16;
        int status = base_grow(&self->sight, (size_t)self->room, (size_t)room, sizeof *self->sight, "a reservation");
        if (status < 0)
            return status;
        self->room = room;
    }
    self->sight[self->count++] = (sight){.token = entry->token};
    return SHOAL_OK;
}

/* Notes since when each reservation is as it is, and forgets those that are gone: a store that forgot may bring one
 * back, and then it is one of a process that is no more. */
static int look_at_ledger(ledger_lead *self, const ledger *book, int64_t now)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < self->count; i++)
        self->sight[i].seen = false;
    for (int64_t i = 0; i < book->count; i++) {
        const ledger_entry *entry = &book->entry[i];
        sight *at = find_sight(self, entry->token, i);
        if (!at) {
            int status = add_sight(self, entry);
            if (status < 0)
                return status;
            at = &self->sight[self->count - 1];
        }
        if (at->change != entry->change) {
            at->change = entry->change;
            at->since = now;
        }
        at->seen = true;
    }
    for (int64_t i = 0; i < self->count; i++)
        if (self->sight[i].seen)
            self->sight[kept++] = self->sight[i];
    self->count = kept;
    return SHOAL_OK;
}

int ledger_lead_sent(ledger_lead *self, uint64_t token)
{
    sight *at = find_sight(self, token, 0);
    if (!at)
        return shoal_fail(SHOAL_ABSENT, "no such reservation was seen");
    at->sent++;
    return SHOAL_OK;
}

void ledger_lead_answered(ledger_lead *self, uint64_t token, bool started)
{
    sight *at = find_sight(self, token, 0);
    if (at && !started)
        at->refused++;
}

/* ---- what is to be done ------------------------------------------------------------------------------------------ */

/* A machine of that reservation: one that runs rather than one that ended. */
static const ledger_machine *find_machine(const ledger_listing *listing, uint64_t token)
{
    const ledger_machine *found = NULL;
    for (int64_t i = 0; i < listing->count; i++)
        if (listing->machine[i].token == token && (!found || found->ended))
            found = &listing->machine[i];
    return found;
}

static int64_t whole_cost(const ledger_entry *entry)
{
    return ledger_cost(entry->cap, entry->allowed, entry->around);
}

static int64_t billed_cost(const ledger_entry *entry, double seconds)
{
    double least = seconds > LEDGER_BILLED_LEAST ? seconds : LEDGER_BILLED_LEAST;
    return ledger_money_of((double)entry->cap / (double)LEDGER_UNIT * least / 3600);
}

/* Of a machine that is listed.  False: nothing is to be done. */
static bool step_of_listed(ledger_step *out, const ledger_terms *terms, const ledger_entry *entry,
                           const ledger_machine *machine)
{
    double most = 1.01 * (double)entry->allowed + (double)entry->around + terms->lag;
    out->machine = machine->name;
    if (machine->ended) {
        out->act = LEDGER_ENDED;
        out->cost = machine->billed >= 0 ? billed_cost(entry, machine->billed) : whole_cost(entry);
        return true;
    }
    if (machine->billed > most) { /* it was paused, or does not obey */
        out->act = LEDGER_KILL;
        return true;
    }
    out->act = LEDGER_NOTED;
    return entry->state != LEDGER_STARTED || strcmp(entry->machine, machine->name) != 0;
}

/* Of one that no listing shows. */
static bool step_of_missing(ledger_step *out, const ledger_lead *self, const ledger_entry *entry, const sight *at,
                            const ledger_listing *listing)
{
    const ledger_terms *terms = &self->terms;
    double age = (double)(listing->begun - at->since) / 1e9;
    double old = (double)(listing->wall - entry->made) - terms->clocks; /* which a new process knows, too */
    if (entry->witnessed > 0)
        age = fmax(age, (double)(listing->wall - entry->witnessed) - terms->clocks);
    bool mine = entry->maker == self->maker, surely_none = mine && at->sent == at->refused;
    if (entry->state == LEDGER_STARTED) { /* it was there, and is not even listed as ended any more */
        out->act = LEDGER_ENDED;
        out->cost = whole_cost(entry);
        return age >= terms->lag;
    }
    if (entry->state == LEDGER_REVOKED) {
        /* One that ended long ago may have left the listing: then it is not known what it cost. */
        bool would_show = (double)(listing->wall - entry->made) < terms->shown / 2;
        out->act = LEDGER_ENDED;
        out->cost = surely_none || would_show ? 0 : whole_cost(entry);
        return surely_none || age >= terms->settle + terms->signature + terms->lag;
    }
    if (surely_none && at->refused > 0) {
        out->act = LEDGER_ENDED;
        return true;
    }
    out->act = mine && age < terms->patience ? LEDGER_START : LEDGER_REVOKE;
    return out->act == LEDGER_START ? age >= terms->settle : mine || fmax(age, old) >= terms->patience;
}

static bool is_reserved(const ledger *book, const ledger_machine *machine)
{
    const ledger_entry *entry = ledger_find(book, machine->token);
    return entry && (entry->machine[0] == '\0' || strcmp(entry->machine, machine->name) == 0);
}

int ledger_lead_next(ledger_lead *self, ledger_step *step, int64_t room, int64_t *count, const ledger *book,
                     const ledger_listing *listing)
{
    *count = 0;
    int status = look_at_ledger(self, book, listing->begun);
    if (status < 0)
        return status;
    for (int64_t i = 0; i < book->count && *count < room; i++) {
        const ledger_entry *entry = &book->entry[i];
        const ledger_machine *machine = find_machine(listing, entry->token);
        ledger_step *next = &step[*count];
        *next = (ledger_step){.token = entry->token, .seen = entry->change, .machine = entry->machine};
        *count += machine ? step_of_listed(next, &self->terms, entry, machine)
                          : step_of_missing(next, self, entry, find_sight(self, entry->token, i), listing);
    }
    for (int64_t i = 0; i < listing->count && *count < room; i++) {
        const ledger_machine *machine = &listing->machine[i];
        if (!machine->ended && !is_reserved(book, machine))
            step[(*count)++] = (ledger_step){.act = LEDGER_KILL, .token = machine->token, .machine = machine->name};
    }
    return SHOAL_OK;
}
