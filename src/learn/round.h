/* Making rounds: what learners with large models need beside the contract in shoal/learn.h. */
#ifndef LEARN_ROUND_H
#define LEARN_ROUND_H

#include <shoal/learn.h>

/* As shoal_round_new, but for who writes every byte of the model: it holds anything at first. */
int learn_round_new_unset(shoal_round **out, size_t model_bytes);

#endif
