/* What a run writes when it has ended. */
#ifndef RUN_OUTPUTS_H
#define RUN_OUTPUTS_H

#include "outcome.h"

/* Refuses an output whose name says no format. */
int run_outputs_check(const shoal_request *request);
/* Writes a tensor of the result as .npy. */
int run_write_tensor(const char *path, const shoal_result *result, const char *name);

#endif
