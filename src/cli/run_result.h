/* What came of a run: printed as numbers, or part of a JSON object. */
#ifndef CLI_RUN_RESULT_H
#define CLI_RUN_RESULT_H

#include "cli.h"

/* Prints the numbers when they are few; says what there is otherwise. */
void cli_run_print(FILE *stream, const shoal_result *result);
/* Adds what was found to a JSON object, which may become NULL. */
void cli_run_json(json_t **object, const shoal_result *result);

/* The values of a tensor as a list. */
json_t *cli_tensor_list(const shoal_tensor *tensor);

#endif
