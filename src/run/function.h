/* What people wrote themselves and want run: a command, or a module. */
#ifndef RUN_FUNCTION_H
#define RUN_FUNCTION_H

#include "code.h"
#include "outcome.h"

/* Everything of one run that is made for it and freed with it. */
typedef struct run_prepared_function {
    run_code code;
    char *params; /* as text of JSON */
} run_prepared_function;

/* Refuses what belongs to commands alone, or to modules alone. */
int run_function_check(const shoal_request *request);
/* Loads or compiles the module, or takes the command along, and reads its parameters, for this run alone. */
int run_function_prepare(run_prepared_function *out, shoal_outcome *outcome);
void run_function_release(run_prepared_function *prepared, shoal_outcome *outcome);

/* The file that --params names; NULL when it is the object itself, or there is none. */
const char *run_params_file(const shoal_request *request);

#endif
