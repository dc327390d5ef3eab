/* Asynchronous successive halving (Li and others, "A system for massively parallel hyperparameter tuning", MLSys 2020):
 * whenever there is room, a trial among the best 1 / eta of its rung goes on, and a new one begins when there is none.
 * What was paused may be taken up much later, when worse ones have come. */
#include "stopper.h"

const sweep_stopper sweep_stopper_asha = {.name = "asha",
                                          .summary = "only the best 1/eta go on from rung to rung, without waiting",
                                          .lay = sweep_lay_halvings,
                                          .first = sweep_first_of_all,
                                          .next = sweep_promote};
