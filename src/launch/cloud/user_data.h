/* The script that a rented machine runs when it starts. */
#ifndef CLOUD_USER_DATA_H
#define CLOUD_USER_DATA_H

#include <stdint.h>

/* All texts may hold anything: they are quoted. */
typedef struct cloud_boot {
    const char *cluster, *reservation; /* for who reads the script */
    int64_t allowed;                   /* seconds of uptime after which the machine is off, whatever happens */
    const char *bundle;                /* where the program is (bundle.h): https://..., or a path that it sees */
    const char *hash;                  /* its SHA-256, in hexadecimal digits */
    const char *store;                 /* URL of the store that its worker serves */
    const char *const *variables;      /* "AWS_REGION=eu-west-1", ...; ended by NULL */
    double idle;                       /* seconds without a job after which it is off */
} cloud_boot;

/* The power-off is armed before anything else, and before anything that uses the network.  The machine is also off
 * when its worker ends: because it was idle, because the machine was about to be taken away, or after five crashes.
 * The script is a function of these arguments, so that a start may be repeated. */
int cloud_user_data(char **out, const cloud_boot *boot);

#endif
