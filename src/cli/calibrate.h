/* What the files of `shoal calibrate` share: cli_calibrate.c measures, calibrate_print.c shows, calibrate_history.c
 * tells of runs. */
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
/* Fits `calibration` to what happened; *used of *count runs could be used.  SHOAL_INVALID when none could. */
int cli_history_refit(plan_calibration *calibration, int64_t *used, int64_t *count);

#endif
