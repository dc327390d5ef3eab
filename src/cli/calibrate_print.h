/* What `shoal calibrate` shows: calibrate_print.c what was measured, history_print.c what happened. */
#ifndef CLI_CALIBRATE_PRINT_H
#define CLI_CALIBRATE_PRINT_H

#include "cli.h"
#include "plan/calibration.h"

/* Prints what the file has, and where it lies. */
void cli_calibration_print(FILE *stream, const plan_calibration *calibration, const char *path);
/* One object: "path", and what the file has. */
int cli_calibration_print_json(const plan_calibration *calibration, const char *path);

/* Lists what was predicted of runs and what happened. */
int cli_history_print(bool json);

#endif
