/* Machines of providers, for commands: what they cost, which there are, what can be done where. */
#ifndef RUN_CLUSTER_PLACE_H
#define RUN_CLUSTER_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "launch/cloud/cloud.h"

/* One kind of machine, in one zone or, when nobody was asked, in a region. */
typedef struct run_rate {
    char type[CLOUD_NAME_BYTES], zone[CLOUD_NAME_BYTES];
    double cores, memory_gib; /* 0: the table of this program does not know the type */
    double spot, demand;      /* dollars an hour; NaN: not known */
    int64_t asked;            /* since when, in seconds since 1970, spot has been that; 0: it is the table's */
} run_rate;

typedef struct run_rates {
    run_rate *rate; /* the cheapest core first */
    int64_t count;
    char date[16]; /* of the table */
    char *why;     /* why the provider was not asked, or did not answer; NULL when it did */
} run_rates;

/* Of a place (cloud.h), of which types may be patterns: the provider's spot prices where it tells them, otherwise those
 * of the table of this program, and the table's list prices.  SHOAL_USAGE when there is no such machine. */
int run_rates_get(run_rates *out, const char *place, double patience);
void run_rates_release(run_rates *rates);

#endif
