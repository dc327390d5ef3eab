/* What was predicted of a run and what happened: for its summary, for --json, and as a line of the history
 * (plan/history.h), from which `shoal calibrate` fits the model.
 *
 * Predicted is what the calibration of this machine says of the rounds that happened, so that it is the model that is
 * put to the test, and not how many rounds a learner needs.  Nothing of this can fail a run: what can't be read or
 * written is said in one line on stderr, and SHOAL_HISTORY=off leaves the history as it is. */
#ifndef CLI_PREDICTED_H
#define CLI_PREDICTED_H

#include "cli.h"

/* Fills job->predicted once a run is done, and adds it to the history.  `config` is the learner's. */
void cli_predicted_note(cli_job *job, const void *config);
/* The same for a job whose options are known as JSON, as cli_options_json made them; NULL when they are not. */
void cli_predicted_note_asked(cli_job *job, const json_t *options);

/* "predicted  0.42 s (0.36 to 0.50) for these 28 rounds, took 0.44 s" */
void cli_predicted_print(FILE *stream, const cli_job *job);
/* The same for --json; null when nothing was predicted. */
json_t *cli_predicted_json(const cli_predicted *predicted);

#endif
