/* Measuring a store as a planner needs it: latency of get, put and take, bandwidth of 1 to 16 connections, and how soon
 * what was put is seen by whoever waits for it.  What `shoal store bench` prints and `shoal calibrate` keeps.
 *
 *     cli_store_measured measured = {0};
 *     int status = cli_measure_store(&measured, url, &settings, &progress);
 *     ... measured.get.median ...
 *     cli_store_measured_release(&measured);
 *
 * Everything happens below a random prefix and in a queue of that name; both are removed at the end, also after a
 * failure or a signal.  `seconds` bounds the measurements as a whole: each has a share of it. */
#ifndef CLI_MEASURE_STORE_H
#define CLI_MEASURE_STORE_H

#include <stdatomic.h>

#include "cli.h"
#include "store_open.h"

enum { CLI_MEASURED_LEVELS = 5 };
extern const int cli_measured_connections[CLI_MEASURED_LEVELS]; /* 1 to 16 */

typedef struct cli_measure_settings {
    cli_store_settings store;
    double seconds;
    int64_t size; /* of the blobs that measure bandwidth */
    bool create;  /* make the store when it is not there */
} cli_measure_settings;

typedef struct cli_samples {
    double *seconds;
    int64_t count;
    double median, high; /* of all; the 99th percentile */
    double mean;
} cli_samples;

typedef struct cli_store_measured {
    store_place store, other; /* the other handle puts what the first waits for; both stay open */
    cli_samples get, put, take, seen;
    double read[CLI_MEASURED_LEVELS], write[CLI_MEASURED_LEVELS]; /* bytes a second; 0 when time ran out before */
    /* Private. */
    const cli_measure_settings *settings;
    char *prefix;
    void *body; /* that does not compress */
    int64_t deadline;
    atomic_bool doubt; /* a put may yet be done */
    cli_progress *progress;
} cli_store_measured;

/* *out is zero before, and is to be released also after a failure. */
int cli_measure_store(cli_store_measured *out, const char *url, const cli_measure_settings *settings,
                      cli_progress *progress);
void cli_store_measured_release(cli_store_measured *measured);

/* Seconds in which one thread hashes a byte, as jobs do with rows of files. */
double cli_measure_hash(void);

#endif
