/* What people wrote themselves and want run.  See function.h. */
#include "function.h"

#include <stddef.h>
#include <string.h>
#include <shoal/exec.h>

#include "base/memory.h"
#include "learn/module.h"
#include "params.h"
#include "ranks.h"

/* Commands and modules alike have a config that begins with their parameters. */
_Static_assert(offsetof(shoal_exec_config, params) == 0 && offsetof(learn_module_config, params) == 0,
               "parameters come first");

const char *run_params_file(const shoal_request *request)
{
    const char *params = *(const char *const *)request->config;
    return params && !run_params_are_json(params) ? params : NULL;
}

int run_function_check(const shoal_request *request)
{
    const run_function *function = &request->function;
    if (function->exec && !function->exec[strspn(function->exec, " \t\n")])
        return shoal_fail(SHOAL_USAGE, "--exec needs a command line");
    if (!function->exec && !function->module)
        return shoal_fail(SHOAL_USAGE, "run needs MODULE and DATA, or --exec COMMAND and DATA");
    if (function->exec && (request->inputs.weights || request->weights))
        return shoal_fail(SHOAL_USAGE, "--weights is for modules: programs see rows alone");
    if (!function->exec && (function->send.count > 0 || function->files > 0))
        return shoal_fail(SHOAL_USAGE, "--send and --collect need --exec COMMAND");
    if (function->files > 0 && !run_on_workers(&request->workers))
        return shoal_fail(SHOAL_USAGE, "files in memory need workers: without them a command runs in this folder");
    return SHOAL_OK;
}

int run_function_prepare(run_prepared_function *out, shoal_outcome *outcome)
{
    const shoal_request *request = outcome->request;
    const run_function *function = &request->function;
    const char **params = outcome->config, *file = run_params_file(request);
    bool away = run_on_workers(&request->workers);
    outcome->function = out;
    int status = file ? run_ranks_can_read("--params", file) : SHOAL_OK;
    if (status == SHOAL_OK)
        status = run_params_read(&out->params, *params);
    if (status == SHOAL_OK)
        status = function->exec ? run_code_command(&out->code, function, away)
                                : run_code_module(&out->code, &outcome->algorithm, function->module);
    if (status == SHOAL_OK)
        run_code_name(&out->code);
    if (status == SHOAL_OK && function->exec && !away)
        status = run_code_folder(&out->code, &request->watch);
    *params = out->params;
    return status;
}

void run_function_release(run_prepared_function *prepared, shoal_outcome *outcome)
{
    run_code_release(&prepared->code, &outcome->request->watch);
    base_free(&prepared->params);
    *(const char **)outcome->config = NULL;
    outcome->function = NULL;
}
