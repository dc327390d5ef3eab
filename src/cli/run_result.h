/* What came of a run: written to a file, printed as numbers, or part of a JSON object. */
#ifndef CLI_RUN_RESULT_H
#define CLI_RUN_RESULT_H

#include "cli.h"

/* Refuses an output whose name says no format. */
int cli_run_check_output(const char *path);
/* Writes the one tensor there is as .npy, or all of them as .safetensors; does nothing without a path. */
int cli_run_write(const char *path, const cli_job *job);
/* Prints the numbers when they are few; says what there is otherwise. */
void cli_run_print(FILE *stream, const shoal_result *result);
/* Adds what was found to a JSON object, which may become NULL. */
void cli_run_json(json_t **object, const shoal_result *result);

#endif
