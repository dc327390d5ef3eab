/* What rounds of a net say while a run goes.  See learn_face.tell_round. */
#ifndef TRAIN_FOLLOW_H
#define TRAIN_FOLLOW_H

#include "learn/face.h"

/* What the columns of "history" are called, ended by NULL. */
extern const char *const train_follow_names[];

/* `config` is a train_config, or NULL where it is not known. */
void train_follow(learn_told *out, const void *config, const shoal_round *round, const shoal_result *result);
/* Whether what the scan found (train_spread_read) is worth a warning. */
bool train_is_sorted(double sorted, double apart);

#endif
