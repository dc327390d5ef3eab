/* Rows for ranks.  See ranks_data.h.  (Being written.) */
#include "ranks_data.h"

#include "engine/in_step.h"

int cli_ranks_load(cli_job *job, shoal_ranks *ranks, int (*load)(cli_job *job, void *context), void *context)
{
    int status = load(job, context);
    return ranks ? engine_agree(ranks, status) : status;
}
