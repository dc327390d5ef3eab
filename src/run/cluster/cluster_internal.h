/* What the files of clusters share.  See cluster.h. */
#ifndef RUN_CLUSTER_INTERNAL_H
#define RUN_CLUSTER_INTERNAL_H

#include "cluster.h"

/* Seconds that are billed of a machine besides its uptime. */
enum { RUN_CLUSTER_AROUND = 120 };

int64_t run_cluster_deadline(const run_cluster *self);
/* SHOAL_DENIED when the ledger can't be read. */
int run_cluster_need_secret(const run_cluster *self);
int run_cluster_put_spec(run_cluster *self, const shoal_etag *expected);
int run_cluster_get_spec(run_cluster *self);
/* Removes all that is kept of the cluster. */
int run_cluster_forget(run_cluster *self);

/* Where machines can be started, and what they cost; once. */
int run_cluster_find_pools(run_cluster *self);
/* Makes the program's bundle and puts it where machines find it; once. */
int run_cluster_find_bundle(run_cluster *self);

/* Lists and reads the ledger; *begun and *wall are moments before that. */
int run_cluster_look(run_cluster *self, int64_t *begun, int64_t *wall);

#endif
