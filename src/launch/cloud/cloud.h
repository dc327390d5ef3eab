/* Renting machines: one table of functions a provider.
 *
 *     cloud *place = NULL;
 *     cloud_machines found = {0};
 *     int status = cloud_open(&place, "aws:eu-west-1/c7i.large,c7i.xlarge");
 *     if (status == SHOAL_OK) status = cloud_list(&found, place, NULL, shoal_after(60));
 *     cloud_machines_release(&found);
 *     cloud_close(&place);
 *
 * A *place* is a provider's region, and the types that may be rented there.  A *pool* is a type, a zone and a market:
 * each has its own price and its own capacity.  Functions make as many attempts as the deadline allows, with growing
 * random pauses; what a provider answers is hostile until it is checked.  They may be called from several threads. */
#ifndef CLOUD_H
#define CLOUD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct cloud cloud;

enum { CLOUD_NAME_BYTES = 64, CLOUD_TEXT_BYTES = 160, CLOUD_TYPES_MOST = 32 };

typedef enum cloud_market { CLOUD_SPOT, CLOUD_DEMAND } cloud_market;
typedef enum cloud_state { CLOUD_PENDING, CLOUD_RUNNING, CLOUD_ENDING, CLOUD_STOPPED, CLOUD_ENDED } cloud_state;

/* "pending", "running", "ending", "stopped", "ended" */
const char *cloud_state_name(cloud_state state);
/* "spot", "demand" */
const char *cloud_market_name(cloud_market market);

/* A machine as a provider lists it.  Texts are printable; what it does not say is "". */
typedef struct cloud_machine {
    char id[CLOUD_NAME_BYTES], type[CLOUD_NAME_BYTES], zone[CLOUD_NAME_BYTES];
    char address[CLOUD_NAME_BYTES]; /* the public one, or else the private one */
    char cluster[CLOUD_NAME_BYTES], ledger[CLOUD_NAME_BYTES], reservation[CLOUD_NAME_BYTES]; /* its tags */
    char reason[CLOUD_TEXT_BYTES];                                                           /* why it ended */
    cloud_state state;
    cloud_market market;
    int64_t launched, ended; /* seconds since 1970 by the provider's clock; 0: not said */
} cloud_machine;

typedef struct cloud_machines {
    cloud_machine *machine;
    int64_t count;
} cloud_machines;

void cloud_machines_release(cloud_machines *machines);
/* Adds a machine; for providers. */
int cloud_machines_add(cloud_machines *machines, const cloud_machine *machine);

/* What a pool costs now. */
typedef struct cloud_price {
    char type[CLOUD_NAME_BYTES], zone[CLOUD_NAME_BYTES];
    cloud_market market;
    double dollars; /* an hour, above 0 */
    int64_t at;     /* seconds since 1970: since when it has been that */
} cloud_price;

typedef struct cloud_prices {
    cloud_price *price;
    int64_t count;
} cloud_prices;

void cloud_prices_release(cloud_prices *prices);
int cloud_prices_add(cloud_prices *prices, const cloud_price *price);

/* A machine to start.  Texts are letters, digits and "-._" but where something else is said. */
typedef struct cloud_order {
    const char *type, *zone; /* a zone of NULL: any */
    cloud_market market;
    double cap;        /* dollars an hour that spot may cost at most; 0: up to what it costs on demand */
    const char *token; /* that names this start and its pool: a second start by it is the first */
    const char *cluster, *ledger, *reservation; /* tags */
    int64_t moment;                             /* that the request is signed with, in seconds since 1970; 0: now */
    const char *user_data;                      /* a script that it runs first, any text */
    const char *image, *role, *key, *subnet, *group; /* NULL: what the provider has by default */
} cloud_order;

/* Why nothing was started, as far as it decides what comes next. */
typedef enum cloud_refusal {
    CLOUD_REFUSED_OTHERWISE, /* trying again changes nothing */
    CLOUD_NO_CAPACITY,       /* this pool has none now, others may */
    CLOUD_PRICE_TOO_LOW,     /* this pool costs more than `cap` */
    CLOUD_NO_QUOTA,          /* the account may not have more of them, in any zone */
    CLOUD_OTHER_ORDER,       /* the token was used for a start of something else */
    CLOUD_UNANSWERED,        /* it may have been started: only a listing, or the same token, tells */
} cloud_refusal;

/* One line of what `shoal cluster check` tells. */
typedef struct cloud_finding {
    char what[CLOUD_NAME_BYTES], text[2 * CLOUD_TEXT_BYTES];
    bool good;
} cloud_finding;

enum { CLOUD_FINDINGS_MOST = 8 + CLOUD_TYPES_MOST };

/* What a provider implements. */
typedef struct cloud_provider {
    const char *scheme; /* "aws" in aws:eu-west-1/c7i.large */
    size_t size;        /* of its state, which starts with a cloud */
    int (*open)(cloud *self);
    int (*start)(cloud *self, cloud_machine *out, cloud_refusal *why, const cloud_order *order, int64_t deadline);
    int (*list)(cloud *self, cloud_machines *out, const char *cluster, int64_t deadline);
    int (*end)(cloud *self, const char *const *ids, int64_t count, int64_t deadline);
    int (*price)(cloud *self, cloud_prices *out, int64_t deadline);
    int (*check)(cloud *self, cloud_finding out[CLOUD_FINDINGS_MOST], int *count, int64_t deadline);
    void (*close)(cloud *self);
} cloud_provider;

struct cloud {
    const cloud_provider *provider;
    char *name;                                    /* of the place, without types: "aws:eu-west-1" */
    char region[CLOUD_NAME_BYTES];                 /* "" when none was named, before open */
    char type[CLOUD_TYPES_MOST][CLOUD_NAME_BYTES]; /* may have * in them, where only prices are asked for */
    int types;
};

/* SHOAL_USAGE, with a sentence, for what is no place.  Talks to nobody. */
int cloud_open(cloud **out, const char *text);
void cloud_close(cloud **place);

/* SHOAL_OK: it is started, or was by the same token.  Otherwise *why says what that means. */
int cloud_start(cloud_machine *out, cloud_refusal *why, cloud *place, const cloud_order *order, int64_t deadline);
/* Machines that carry a cluster's tag, those that have ended as long as the provider tells of them; NULL: of any
 * cluster.  A machine that was just started may not be in it yet. */
int cloud_list(cloud_machines *out, cloud *place, const char *cluster, int64_t deadline);
/* SHOAL_OK also for those that have ended, or that nobody knows. */
int cloud_end(cloud *place, const char *const *ids, int64_t count, int64_t deadline);
/* Spot prices of the place's types, or of all. */
int cloud_price_now(cloud_prices *out, cloud *place, int64_t deadline);
/* What can be done there, line by line; SHOAL_OK also when a line is not good. */
int cloud_check(cloud_finding out[CLOUD_FINDINGS_MOST], int *count, cloud *place, int64_t deadline);

/* At most room - 1 bytes of a text that came from elsewhere, what is not printable replaced. */
void cloud_copy_text(char *out, size_t room, const char *text, size_t length);

extern const cloud_provider cloud_ec2;

#endif
