/* Clusters: machines that are rented together, serve the jobs of one store, and end by themselves.
 *
 *     run_cluster *cluster = NULL;
 *     int status = run_cluster_create(&cluster, &jobs, &wish);           // or run_cluster_open
 *     if (status == SHOAL_OK) status = run_cluster_grow(cluster, 8, &watch);
 *     run_cluster_close(&cluster);
 *
 * What is known of a cluster lies in its store: clusters/NAME/spec, what it was asked to be, and clusters/NAME/ledger,
 * what it may cost (control/ledger.h).  Only the ledger's secret lies elsewhere: with the user who made the cluster.
 * Nobody has to be there for machines to end: each has its permit in its user data. */
#ifndef RUN_CLUSTER_CLUSTER_H
#define RUN_CLUSTER_CLUSTER_H

#include <stdbool.h>
#include <stdint.h>
#include <shoal/option.h>

#include "control/ledger_lead.h"
#include "launch/cloud/cloud.h"
#include "place.h"
#include "run/jobs.h"

enum {
    RUN_CLUSTER_NAME_BYTES = 33,
    RUN_CLUSTER_MOST = 1024,
    RUN_CLUSTER_LEDGER_BYTES = 17,
    RUN_CLUSTER_CODE_BYTES = 65
};

typedef enum run_cluster_market { RUN_CLUSTER_SPOT, RUN_CLUSTER_DEMAND, RUN_CLUSTER_MIXED } run_cluster_market;

/* What a cluster is asked to be.  NULL and 0 are the usual; texts of durations and money are read here. */
typedef struct run_cluster_wish {
    const char *name;
    const char *machines; /* a place with types */
    int64_t count;
    int market; /* a run_cluster_market */
    const char *max_price, *budget, *ttl, *idle;
    const char *image, *role, *key, *subnet, *group;
} run_cluster_wish;

/* The same, as it lies in the store. */
typedef struct run_cluster_spec {
    char name[RUN_CLUSTER_NAME_BYTES], ledger[RUN_CLUSTER_LEDGER_BYTES], by[CLOUD_TEXT_BYTES];
    char machines[16 * CLOUD_NAME_BYTES];
    run_cluster_market market;
    double max_price; /* 0: none */
    double idle;
    int64_t allowed, made; /* seconds of uptime of each machine; seconds since 1970 */
    char image[CLOUD_TEXT_BYTES], role[CLOUD_NAME_BYTES], key[CLOUD_NAME_BYTES], subnet[CLOUD_NAME_BYTES],
        group[CLOUD_NAME_BYTES];       /* "" for the usual */
    char code[RUN_CLUSTER_CODE_BYTES]; /* as run_cluster_spec_code */
    bool down;                         /* it is being ended: nothing more is started */
} run_cluster_spec;

int run_cluster_spec_write(char **out, const run_cluster_spec *spec);
/* HMAC-SHA-256 in hex over all but `code` and `down`, which anyone who may write to the store may set: otherwise they
 * could have machines started from an image, and with a role, of their choice. */
int run_cluster_spec_code(char out[RUN_CLUSTER_CODE_BYTES], const run_cluster_spec *spec,
                          const unsigned char secret[LEDGER_SECRET_BYTES]);
/* SHOAL_BROKEN for bytes that are no spec of that name. */
int run_cluster_spec_read(run_cluster_spec *out, const char *name, const char *text, size_t size);

/* Where one machine can be started. */
typedef struct run_pool {
    char type[CLOUD_NAME_BYTES], zone[CLOUD_NAME_BYTES];
    cloud_market market;
    double price, cap; /* dollars an hour: now, and at most */
    int64_t load;      /* machines of this cluster there, or about to be */
    int64_t until;     /* base_now() before which it is not tried again */
    int refusals;      /* one after another */
} run_pool;

/* The pool to start the next machine in: the cheapest, where machines of this cluster make one dearer by a sixth each,
 * so that one pool that is taken away does not take all of them; on demand after spot.  -1: none now. */
int64_t run_pool_choose(const run_pool *pool, int64_t pools, int64_t now);
/* It refused, for that reason: it, or all of its market, rest for a while, longer each time. */
void run_pool_refused(run_pool *pool, int64_t pools, int64_t which, cloud_refusal why, int64_t now);
/* "eu-west-1a/c7i.large/spot", and back: a pool of that name, or -1. */
void run_pool_name(char out[LEDGER_NAME_BYTES], const run_pool *pool);
int64_t run_pool_find(const run_pool *pool, int64_t pools, const char *name);

typedef struct run_cluster_watch {
    void (*say)(void *context, const char *line);
    bool (*stopped)(void);
    void *context;
    double patience; /* seconds for all of it */
} run_cluster_watch;

typedef struct run_cluster {
    shoal_store *store;
    const char *url;
    double patience;
    run_cluster_spec spec;
    char *spec_key, *ledger_key;
    shoal_etag spec_etag;
    ledger_book book;
    ledger_lead *lead;
    uint64_t maker;
    bool has_secret; /* otherwise the ledger can't be read */
    cloud *place;
    /* As last seen. */
    ledger ledger;
    cloud_machines found;
    /* For starting. */
    run_pool *pool;
    int64_t pools;
    char *bundle, hash[65];
    char *far_url;                      /* of the store, for machines */
    char failure[2 * CLOUD_TEXT_BYTES]; /* why no more can be started, or "" */
    char trouble[2 * CLOUD_TEXT_BYTES]; /* the last refusal */
} run_cluster;

/* Makes the cluster, without machines.  SHOAL_USAGE for a wish that is none; SHOAL_CONFLICT when there is a cluster of
 * that name in the store; SHOAL_DENIED when the budget does not do. */
int run_cluster_create(run_cluster **out, const run_jobs *jobs, const run_cluster_wish *wish);
/* SHOAL_ABSENT when there is none. */
int run_cluster_open(run_cluster **out, const run_jobs *jobs, const char *name);
void run_cluster_close(run_cluster **cluster);

/* Looks: lists, reads the ledger, and does what follows from that, starts included. */
int run_cluster_tick(run_cluster *self);
/* The same without doing anything: for who lacks the ledger's secret. */
int run_cluster_look_only(run_cluster *self);
/* Starts `count` machines more, and returns when the provider says that they run, or with a sentence that says how many
 * do.  What was reserved and not started is given back. */
int run_cluster_grow(run_cluster *self, int64_t count, const run_cluster_watch *watch);
/* Ends machines by their ids, or the newest so many. */
int run_cluster_remove(run_cluster *self, const char *id, int64_t count);
/* Ends all, and waits until the provider says so; then removes what the store has of the cluster, unless reservations
 * are left that may still become machines: *held of them.  A ledger that is gone or forged keeps no machine alive:
 * has_secret is false then. */
int run_cluster_down(run_cluster *self, int64_t *held, const run_cluster_watch *watch);

/* Whether a listed machine is this cluster's, and has not ended. */
bool run_cluster_is_alive(const run_cluster *self, const cloud_machine *machine);
/* Its reservation in the ledger as last read; NULL when it has none. */
const ledger_entry *run_cluster_entry(const run_cluster *self, const cloud_machine *machine);

#endif
