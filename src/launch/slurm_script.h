/* The script that an array job runs. */
#ifndef SLURM_SCRIPT_H
#define SLURM_SCRIPT_H

#include "launch/launch_internal.h"

enum { SLURM_PREFIX_BYTES = 11 }; /* NUL included */

typedef struct slurm_script {
    const launch_order *order;
    int64_t first_slot; /* of the launcher within the group */
    int64_t threads;    /* of each worker */
    const char *program;
    const char *prefix; /* 10 hex digits that the numbers of its workers start with */
} slurm_script;

/* For tasks whose numbers are slots of the launcher, the last of them `last`. */
int slurm_script_compose(char **out, const slurm_script *script, int64_t last);
/* The number of a task's worker after Slurm has restarted it that many times. */
uint64_t slurm_script_worker(const char *prefix, int64_t task, int64_t restarts);
/* `text` between single quotes, as a shell reads it. */
int slurm_quote(char **out, const char *text);

#endif
