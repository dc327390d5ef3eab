/* What was predicted of a run and what happened: for its summary and as a line of the history
 * (plan/history.h), from which `shoal calibrate` fits the model.
 *
 * Predicted is what the calibration of this machine says of the rounds that happened, so that it is the model that is
 * put to the test, and not how many rounds a learner needs.  Nothing of this can fail a run: what can't be read or
 * written is said in one line on stderr, and SHOAL_HISTORY=off leaves the history as it is. */
#ifndef RUN_PREDICTED_H
#define RUN_PREDICTED_H

#include "outcome.h"

/* Fills outcome->predicted once a run is done, and adds it to the history. */
void run_predicted_note(shoal_outcome *outcome);

#endif
