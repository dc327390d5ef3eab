/* Measured tables: what workloads took on machines, one row a run, in text with commas:
 *
 *     nodes,vm,workload,framework,input,run,completed,elapsed_time
 *     10,c4.2xlarge,join,spark,bigdata,1,True,305.064
 *
 * Columns are found by their names, in any order; nodes, vm, workload and elapsed_time must be there, others are
 * optional, and any more are not looked at.  A workload is what workload, framework and input say together; a candidate
 * is a machine and how many of it.  What a machine has and costs comes from a table of prices (prices.h).
 *
 *     plan_table *table = NULL;
 *     int status = plan_table_read(&table, "scout_multi.csv", prices);
 *
 * A run that was not completed counts as timed out when it took at least as long as every completed run of the whole
 * table, and as failed otherwise: the table does not tell.  Several runs of one workload on one candidate count as one
 * that took their mean; those that were not completed are looked at only when none was. */
#ifndef BENCH_SEARCH_TABLE_H
#define BENCH_SEARCH_TABLE_H

#include <stdint.h>
#include "plan/prices.h"
#include "plan/search/search_space.h"

typedef struct plan_workload {
    char *name;        /* "join/spark/bigdata" */
    int64_t measured;  /* of the candidates */
    plan_trial *trial; /* one a candidate, in their order: what running it did; seconds is NaN where nobody did */
} plan_workload;

typedef struct plan_table {
    char *name; /* of the file */
    plan_candidates space;
    plan_candidate *candidate; /* those of `space`, in the order of their first rows */
    plan_workload *workload;   /* in the order of their first rows */
    int64_t workloads;
    char **machine; /* names that candidates point to */
    int64_t machines;
} plan_table;

/* SHOAL_INVALID names file and line: a column that is missing, too few fields, a number that is none or is not
 * positive, a machine that the prices do not have or have twice, a run that is there twice (both lines); SHOAL_SYSTEM
 * when the file cannot be read. */
int plan_table_read(plan_table **out, const char *path, const plan_prices *prices);
void plan_table_free(plan_table **table);

#endif
