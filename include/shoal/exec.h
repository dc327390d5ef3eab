/* Any program as a learner: it reads rows as .npy arrays and writes .npy arrays, which are added exactly or joined.
 *
 *     shoal_exec_config config = {.timeout = 600};
 *     shoal_run_options options = {.code = "folder"};  // has `command`, a command line, and `files`, a folder
 *     status = shoal_run(&result, NULL, &shoal_exec, &config, data, NULL, &options);
 *     const shoal_tensor *sum = shoal_result_tensor(result, "result");
 *
 * Round 0 gives the first grain to one program to learn what an answer looks like; round 1 gives each grain to one of
 * as many programs as there are threads.  docs/run.md says what programs get and what is expected of them. */
#ifndef SHOAL_EXEC_H
#define SHOAL_EXEC_H

#include <stdbool.h>
#include <shoal/learn.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct shoal_exec_config {
    const char *params; /* a JSON object for the programs' SHOAL_PARAMS; NULL: {} */
    bool collect;       /* join the answers along their first axis instead of adding them */
    double timeout;     /* seconds that a program may take for a grain; 0: no limit */
} shoal_exec_config;

SHOAL_API extern const shoal_algorithm shoal_exec;

#ifdef __cplusplus
}
#endif
#endif
