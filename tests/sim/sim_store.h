/* A store in a simulated world: one cloud that all processes share, and a handle in each of them.
 *
 * A request takes time, there and back and for its bytes, and meets what the options say.  What a request does is done
 * at one moment, so the cloud itself keeps all promises of shoal/store.h, unless it is told to forget or to show what
 * was there a moment ago. */
#ifndef SIM_STORE_H
#define SIM_STORE_H

#include <stdbool.h>
#include <stdint.h>
#include <shoal/store.h>

#include "sim_world.h"

typedef struct sim_cloud_options {
    bool wakes;                     /* as dir:, otherwise those that wait poll, as on az: and s3: */
    bool far;                       /* with wakes: as pipe:, whose workers tell it what they will wait for */
    bool blob_queue;                /* it has no queues of its own: they are made of blobs, as on s3: */
    double latency;                 /* seconds that a request takes */
    double jitter;                  /* by how much of that it varies, 0 to 1 */
    double worker_rate, total_rate; /* bytes a second of one process and of all; 0: no limit */
    double request_rate, burst;     /* requests a second, and at once, above which it throttles; 0: no limit */
    double forgets;                 /* seconds that it may forget: keeps that much of the past */
    /* As how many bytes this many of a blob travel, all of it or a range; NULL: as many as they are. */
    double (*weigh)(const char *key, size_t bytes);
    /* Chances, for each request. */
    double before;      /* it fails before anything was done */
    double after;       /* its answer is lost */
    double duplicate;   /* what it pushes is there twice */
    double damage;      /* a bit of a piece, a model or a record flips when it is put */
    double stale;       /* a get or a list shows what was there a moment ago */
    double slow;        /* it takes seconds */
    double pause;       /* the process that asks is stopped for a while, before it asks or before it sees the answer */
    double death;       /* the process that asks dies, before it asks or before it sees the answer */
    int pauses, deaths; /* how many there may be at most */
    double loud, quiet; /* faults begin and end at these virtual seconds; quiet 0: they never end */
} sim_cloud_options;

typedef struct sim_cloud sim_cloud;

sim_cloud *sim_cloud_new(const sim_cloud_options *options);
void sim_cloud_free(sim_cloud **cloud);
/* A handle of the calling process. */
int sim_store_open(shoal_store **out, sim_cloud *cloud);
/* Goes back to what it was this many seconds ago. */
void sim_cloud_forget(sim_cloud *cloud, double seconds);
/* Nobody reaches it for this many seconds. */
void sim_cloud_cut(sim_cloud *cloud, double seconds);
/* No more faults from now on. */
void sim_cloud_calm(sim_cloud *cloud);

/* ---- looking in from outside, at no cost ------------------------------------------------------------------------- */

/* How many blobs have keys that start with the prefix and contain the text (NULL for any). */
int64_t sim_cloud_blobs(const sim_cloud *cloud, const char *prefix, const char *text);
int64_t sim_cloud_messages(const sim_cloud *cloud);
/* The first key after `after` (NULL: of all) that starts with the prefix; NULL when there is none. */
const char *sim_cloud_next(const sim_cloud *cloud, const char *prefix, const char *after);
/* Removes the blobs that start with the prefix and contain the text. */
int64_t sim_cloud_remove(sim_cloud *cloud, const char *prefix, const char *text);
/* Flips a bit of one of those blobs; false when there is none. */
bool sim_cloud_damage(sim_cloud *cloud, const char *prefix, const char *text);

/* What was asked of it. */
typedef struct sim_traffic {
    int64_t requests; /* all of them */
    int64_t leases;   /* puts of a worker's record */
    int64_t lists, queues, failed;
    double sent; /* bytes put into rounds, as they are weighed */
    int deaths, pauses;
} sim_traffic;

sim_traffic sim_cloud_traffic(const sim_cloud *cloud);

/* When each model of a job was put, and what had been asked until then. */
typedef struct sim_moment {
    double seconds;
    int64_t requests, leases;
} sim_moment;

int64_t sim_cloud_models(const sim_cloud *cloud, const sim_moment **out);

#endif
