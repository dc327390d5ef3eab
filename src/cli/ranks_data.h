/* Rows for ranks: what has to be parsed is parsed once a host. */
#ifndef CLI_RANKS_DATA_H
#define CLI_RANKS_DATA_H

#include "cli.h"

int cli_ranks_load(cli_job *job, shoal_ranks *ranks, int (*load)(cli_job *job, void *context), void *context);

#endif
