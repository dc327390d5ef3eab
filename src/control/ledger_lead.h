/* What whoever leads does next about rented machines.  See ledger.h; any number of processes may do this at once.
 *
 * The answer depends on the ledger, on a listing that began before the ledger was read, and on when this process first
 * saw what; never on another process. */
#ifndef CONTROL_LEDGER_LEAD_H
#define CONTROL_LEDGER_LEAD_H

#include "control/ledger.h"

/* What is assumed of the store and the provider, in seconds. */
typedef struct ledger_terms {
    double settle;    /* that the store may forget, doubled */
    double signature; /* after it was signed, a request to start is refused; with what clocks may differ */
    double lag;       /* a listing shows all that happened so long before it began */
    double shown;     /* ended machines are listed for so long */
    double clocks;    /* what two processes call the same moment differs by so much at most */
    double patience;  /* a reservation of another process that has not been started after so long is revoked */
} ledger_terms;

/* A machine as the provider lists it. */
typedef struct ledger_machine {
    const char *name;
    uint64_t token; /* from its tag; 0: none */
    bool ended;
    double billed; /* seconds, of one that ended; negative: the provider does not say */
} ledger_machine;

typedef struct ledger_listing {
    const ledger_machine *machine;
    int64_t count;
    int64_t begun; /* shoal_now() before it was asked for */
    int64_t wall;  /* seconds since 1970 then */
} ledger_listing;

typedef enum ledger_act {
    LEDGER_START,  /* start it, under this token; then ledger_lead_sent and, when it is answered, _answered */
    LEDGER_NOTED,  /* ledger_note(token, machine) */
    LEDGER_REVOKE, /* ledger_revoke(token) */
    LEDGER_ENDED,  /* ledger_end(token, seen, cost) */
    LEDGER_KILL,   /* end the machine: no reservation is for it */
} ledger_act;

typedef struct ledger_step {
    ledger_act act;
    uint64_t token, seen;
    int64_t cost;
    const char *machine; /* the listing's or the ledger's */
} ledger_step;

typedef struct ledger_lead ledger_lead;

/* `maker` is this process's number: random, new for every process. */
int ledger_lead_new(ledger_lead **out, uint64_t maker, const ledger_terms *terms);
void ledger_lead_free(ledger_lead **lead);

/* The next steps, at most `room`, into *count.  `begun` of the listing is what counts as now.  A START whose moment was
 * taken before the ledger was read is signed with *that* moment (listing->wall), so that a process that is stopped in
 * between sends a request that has expired. */
int ledger_lead_next(ledger_lead *lead, ledger_step *step, int64_t room, int64_t *count, const ledger *book,
                     const ledger_listing *listing);
/* A request to start was sent; from now on it may have been done. */
int ledger_lead_sent(ledger_lead *lead, uint64_t token);
/* The provider answered the last one that was sent: `started`, or refused and started nothing. */
void ledger_lead_answered(ledger_lead *lead, uint64_t token, bool started);

#endif
