/* The ledger: what rented machines may cost, however many lead, die, or hear nothing from the provider.
 *
 *     ledger_book book = {.store = store, .key = "budgets/mine/ledger", .secret = secret};
 *     ledger_create(&book, "USD", ledger_money_of(5.00), deadline);              // SHOAL_CONFLICT: it is there already
 *     ledger_wish wish = {.token = fresh, .maker = me, .cap = ledger_money_of(0.17), .allowed = 3600, .around = 120,
 *                         .made = wall, .pool = "eu-west-1a/c7i.large", .job = id};
 *     status = ledger_reserve(&book, &wish, 1, deadline);                    // SHOAL_DENIED: the budget is too small
 *     while (leading) {
 *         list the provider's machines; ledger_read(&ledger, &book, deadline);    // in that order
 *         count = ledger_lead_next(lead, &ledger, &listing, step, ROOM);          // START, NOTE, REVOKE, END, KILL
 *         do what each step says (ledger_lead.h), and wait a little;
 *     }
 *     // On the machine, every few seconds: it switches itself off at that uptime, or now when that is negative.
 *     seconds = ledger_obey(&sight, &ledger, token, uptime, now, settle);
 *
 * A reservation is one machine that may exist.  It has a token, which is the provider's client token with the pool, the
 * most that its machine costs an hour, and a *permit*: seconds of uptime in all (CLOCK_BOOTTIME), not an interval, so
 * that no clock has to agree with another.  At every moment
 *
 *     spent + sum over all reservations of cap * max(60 s, 1.01 * allowed + around)  <=  budget
 *
 * and a reservation leaves the sum only when it is proven that its machine has ended or never was.  1.01: clocks drift
 * at most 1%.  `around` is what is billed besides uptime: booting, and the time from power-off to the end.
 *
 * Safety is compare-and-swap of one blob, nothing else: any number of processes may lead at once, and waste only work.
 * Three rules make the order safe.
 *  - Reserve, wait out what the store may forget (`settle`), look again, and only then start.
 *  - A permit that grew is obeyed once it has settled.  One that is to shrink is asked for (`wanted`); the machine arms
 *    its earlier power-off first, and then gives the rest back itself (ledger_yield).
 *  - A start that was never answered keeps its reservation until it is revoked, the revocation has settled, the
 *    signature of the last request has expired, and a listing that began later than that shows no machine.
 *
 * What it does not promise: a machine that its provider pauses counts no uptime while it is billed, so the bound is
 * budget + price * paused seconds, unless somebody ends it (KILL).  The budget covers machine time in the provider's
 * currency, not requests, disks or traffic.  Whoever can write to the store may put back an older ledger, whose code is
 * right: a process that saw a later one refuses it (SHOAL_BROKEN), but a new process can't know.
 *
 * This page changes ledgers and says when it may not; it has no clock and no chance.  ledger_book.c keeps them in a
 * store, and ledger_lead.c says what to do next. */
#ifndef CONTROL_LEDGER_H
#define CONTROL_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <shoal/store.h>

enum {
    LEDGER_MOST = 4096,     /* reservations at a time */
    LEDGER_NAME_BYTES = 96, /* of a pool, a job or a machine's name, NUL included */
    LEDGER_SECRET_BYTES = 32,
    LEDGER_BILLED_LEAST = 60, /* seconds that are billed of any machine */
};

/* Money is whole billionths of a currency's unit: sums are exact. */
#define LEDGER_UNIT 1000000000LL
/* Rounded up, saturated; 0 for what is not above 0. */
int64_t ledger_money_of(double units);

typedef enum ledger_state {
    LEDGER_RESERVED, /* whoever made it may start its machine */
    LEDGER_STARTED,  /* the provider has named the machine */
    LEDGER_REVOKED,  /* no further start is sent; one may be under way */
    LEDGER_STATES
} ledger_state;

typedef struct ledger_entry {
    uint64_t token;  /* random: names the reservation, and is never used again */
    uint64_t change; /* random: new with each change of this entry */
    uint64_t maker;  /* the process that made it, of which alone it may be started */
    ledger_state state;
    int64_t cap;       /* the most that an hour costs, as money */
    int64_t allowed;   /* seconds of uptime, in all */
    int64_t wanted;    /* at most that: as few as whoever leads would have it */
    int64_t around;    /* seconds that are billed before and after uptime */
    int64_t made;      /* seconds since 1970, for people and for listings that forget */
    int64_t witnessed; /* seconds since 1970 at which somebody had read its state; 0: nobody has said so */
    char pool[LEDGER_NAME_BYTES], job[LEDGER_NAME_BYTES],
        machine[LEDGER_NAME_BYTES]; /* machine: "" until it is known */
} ledger_entry;

typedef struct ledger {
    uint64_t serial;  /* counts changes */
    char currency[4]; /* "USD" */
    int64_t budget, spent;
    ledger_entry *entry; /* in the order in which they were made */
    int64_t count, room;
} ledger;

/* What is reserved: the entry's fields of the same names. */
typedef struct ledger_wish {
    uint64_t token, maker;
    int64_t cap, allowed, around, made;
    const char *pool, *job;
} ledger_wish;

void ledger_release(ledger *self);
/* NULL when there is none. */
const ledger_entry *ledger_find(const ledger *self, uint64_t token);
/* The most that a machine with such a permit costs. */
int64_t ledger_cost(int64_t cap, int64_t allowed, int64_t around);
/* Saturated. */
int64_t ledger_times(int64_t cost, int64_t count);
/* What is spent and reserved. */
int64_t ledger_committed(const ledger *self);
/* What is left to reserve; 0 when that is nothing. */
int64_t ledger_left(const ledger *self);
/* The longest permit that so much money buys of a machine of that price; 0 for none. */
int64_t ledger_affords(int64_t money, int64_t cap, int64_t around);

/* ---- changes: of a ledger in memory ------------------------------------------------------------------------------ */

/* Each may be repeated: what is so already is left so.  SHOAL_ABSENT: no such reservation, or not any more.
 * SHOAL_CONFLICT: it is not what the caller saw.  SHOAL_DENIED: the budget does not allow it; nothing was changed. */

int ledger_add(ledger *self, const ledger_wish *wish, uint64_t change);
/* A longer permit. */
int ledger_extend(ledger *self, uint64_t token, int64_t allowed, uint64_t change);
/* Asks its machine for a permit of so much, up to `allowed`. */
int ledger_ask(ledger *self, uint64_t token, int64_t wanted, uint64_t change);
/* By the machine alone, after it has armed its power-off for that uptime.  `seen` is the change that asked for it: one
 * that has been answered by a longer permit meanwhile is void (SHOAL_CONFLICT). */
int ledger_yield(ledger *self, uint64_t token, uint64_t seen, int64_t allowed, uint64_t change);
/* The provider named the machine. */
int ledger_note(ledger *self, uint64_t token, const char *machine, uint64_t change);
int ledger_revoke(ledger *self, uint64_t token, uint64_t change);
/* Says of all that are started or revoked that they were at that moment, unless somebody has said so: whoever looks
 * later, in a new process, need not wait all over again.  For a ledger as it was read, before it is changed. */
void ledger_witness(ledger *self, int64_t wall);
/* Whether that says anything new. */
bool ledger_lacks_witness(const ledger *self);
/* It is proven that its machine has ended, having cost that much, or never was, 0.  `seen` is the entry's change that
 * the proof is about. */
int ledger_end(ledger *self, uint64_t token, uint64_t seen, int64_t cost);
/* Less than what is committed is allowed: nothing more is reserved then. */
int ledger_set_budget(ledger *self, int64_t budget);

/* ---- bytes ------------------------------------------------------------------------------------------------------- */

/* With a code (HMAC-SHA-256) over `key`, where the ledger is kept, and all of it. */
int ledger_encode(void **out, size_t *size, const ledger *self, const char *key,
                  const unsigned char secret[LEDGER_SECRET_BYTES]);
/* SHOAL_BROKEN for bytes that are not those of a ledger kept there by somebody with that secret. */
int ledger_decode(ledger *out, const void *bytes, size_t size, const char *key,
                  const unsigned char secret[LEDGER_SECRET_BYTES]);

/* ---- in a store (ledger_book.c) ---------------------------------------------------------------------------------- */

typedef struct ledger_book {
    shoal_store *store;
    const char *key;
    unsigned char secret[LEDGER_SECRET_BYTES]; /* of those who share the budget; never in the store */
    uint64_t seen;                             /* the greatest serial seen: private, 0 at first */
    int64_t allowance; /* serials by which a store that forgets may go back; 0 where it forgets nothing */
} ledger_book;

int ledger_create(ledger_book *book, const char *currency, int64_t budget, int64_t deadline);
int ledger_read(ledger *out, ledger_book *book, int64_t deadline);
/* Reads, changes and swaps until that succeeds; what `change` returns otherwise.  `change` may be called several times,
 * each with the ledger as it is then and a fresh number for the changes of this attempt. */
int ledger_change(ledger_book *book, int (*change)(void *context, ledger *self, uint64_t fresh), void *context,
                  int64_t deadline);
/* All of them or none. */
int ledger_reserve(ledger_book *book, const ledger_wish *wish, int64_t count, int64_t deadline);

/* ---- on the machine ---------------------------------------------------------------------------------------------- */

/* What a machine has seen of its permit.  At first {.allowed = what its user data says}. */
typedef struct ledger_sight {
    int64_t allowed; /* settled: what it obeys */
    uint64_t change; /* last seen, and since when */
    int64_t since;
} ledger_sight;

/* The uptime in seconds at which the machine has to be off; -1: it has no reservation, and ends at once.  `now` is
 * shoal_now(), `uptime` its seconds so far, rounded up, and `settle` seconds that the store may forget, doubled.  The
 * machine arms its power-off for it; if it owes the rest of its permit then, it calls ledger_yield with that uptime and
 * sight->change.  A ledger that can't be read changes nothing: the last answer holds. */
int64_t ledger_obey(ledger_sight *sight, const ledger *self, uint64_t token, int64_t uptime, int64_t now,
                    double settle);

/* Whether a machine that was asked for the rest of its permit has yet to give it back. */
bool ledger_owes(const ledger_sight *sight, const ledger *self, uint64_t token);

#endif
