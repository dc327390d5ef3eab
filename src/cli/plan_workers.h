/* The numbers of workers that a plan is made for: "1..1000", "10,50,60", "1..8,16,32", "local:1..8". */
#ifndef CLI_PLAN_WORKERS_H
#define CLI_PLAN_WORKERS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct cli_plan_workers {
    bool local; /* processes of this machine, rather than a machine each */
    int64_t *number;
    int64_t count; /* ascending, none twice */
} cli_plan_workers;

enum { CLI_PLAN_WORKERS_MOST = 1000000 };

/* SHOAL_USAGE names --workers and the part that is wrong. */
int cli_plan_workers_parse(cli_plan_workers *out, const char *text);
void cli_plan_workers_free(cli_plan_workers *workers);

#endif
