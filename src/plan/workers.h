/* The numbers of workers that a plan is made for: "1..1000", "10,50,60", "1..8,16,32", "local:1..8". */
#ifndef PLAN_WORKERS_H
#define PLAN_WORKERS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct plan_workers {
    bool local; /* processes of this machine, rather than a machine each */
    int64_t *number;
    int64_t count; /* ascending, none twice */
} plan_workers;

enum { PLAN_WORKERS_MOST = 1000000 };

/* SHOAL_USAGE names --workers and the part that is wrong. */
int plan_workers_parse(plan_workers *out, const char *text);
void plan_workers_free(plan_workers *workers);

#endif
