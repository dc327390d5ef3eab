/* What the files of `shoal calibrate` share: cli_calibrate.c measures, calibrate_print.c and history_print.c show. */
#ifndef CLI_CALIBRATE_H
#define CLI_CALIBRATE_H

#include "cli.h"
#include "plan/calibration.h"

/* Prints what the file has, and where it lies. */
void cli_calibration_print(FILE *stream, const plan_calibration *calibration, const char *path);
/* One object: "path", and what the file has. */
int cli_calibration_print_json(const plan_calibration *calibration, const char *path);

/* Lists what was predicted of runs and what happened. */
int cli_history_print(bool json);

#endif
