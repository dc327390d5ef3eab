/* Measuring a store as a planner needs it: latency of get, put and take, bandwidth of 1 to 16 connections, and how soon
 * what was put is seen by a waiting worker for it.  What `shoal store bench` prints and `shoal calibrate` keeps.
 *
 *     plan_store_measured measured = {0};
 *     int status = plan_measure_store(&measured, url, &settings, &watcher);
 *     ... measured.get.median ...
 *     plan_store_measured_release(&measured);
 *
 * Everything happens below a random prefix and in a queue of that name; both are removed at the end, also after a
 * failure or a signal.  `seconds` bounds the measurements as a whole: each has a share of it. */
#ifndef PLAN_MEASURE_STORE_H
#define PLAN_MEASURE_STORE_H

#include <stdatomic.h>

#include <shoal/run.h>

#include "store/store_place.h"

enum { PLAN_MEASURED_LEVELS = 5 };
extern const int plan_measured_connections[PLAN_MEASURED_LEVELS]; /* 1 to 16 */

typedef struct plan_store_settings {
    double patience; /* seconds that one request may take, all its attempts included */
    double seconds;
    int64_t size; /* of the blobs that measure bandwidth */
    bool create;  /* make the store when it is not there */
} plan_store_settings;

typedef struct plan_samples {
    double *seconds;
    int64_t count;
    double median, high; /* of all; the 99th percentile */
    double mean;
} plan_samples;

typedef struct plan_store_measured {
    store_place store, other; /* the other handle puts what the first waits for; both stay open */
    plan_samples get, put, take, seen;
    double read[PLAN_MEASURED_LEVELS], write[PLAN_MEASURED_LEVELS]; /* bytes a second; 0 when time ran out before */
    /* Private. */
    const plan_store_settings *settings;
    char *prefix;
    void *body; /* that does not compress */
    int64_t deadline;
    atomic_bool doubt; /* a put may yet be done */
    shoal_watcher watch;
} plan_store_measured;

/* *out is zero before, and is to be released also after a failure.  The watcher is told what is done; once the store is
 * open it may stop, after which what was put is removed: SHOAL_STOPPED. */
int plan_measure_store(plan_store_measured *out, const char *url, const plan_store_settings *settings,
                       const shoal_watcher *watcher);
void plan_store_measured_release(plan_store_measured *measured);

#endif
