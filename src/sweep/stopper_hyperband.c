/* Hyperband (Li, Jamieson, DeSalvo, Rostamizadeh and Talwalkar, JMLR 18 (2018)), its brackets run side by side without
 * waiting: in bracket k trials begin at rung k, so that those that start slowly have their chance, too. */
#include "stopper.h"

#include <math.h>

/* Trials that a bracket gets of each round of all brackets: as many steps as the others. */
static double share_of(const sweep_rungs *rungs, int first)
{
    const int halvings = rungs->count - 1 - first;
    return ceil((double)rungs->count / (halvings + 1) * pow((double)rungs->eta, halvings));
}

/* The golden section puts trials of each bracket evenly among the others. */
static int first_of_bracket(const sweep_rungs *rungs, int64_t number)
{
    double all = 0, place = (double)number * 0.61803398874989485;
    for (int first = 0; first < rungs->count; first++)
        all += share_of(rungs, first);
    place = (place - floor(place)) * all;
    for (int first = 0; first < rungs->count - 1; first++) {
        place -= share_of(rungs, first);
        if (place < 0)
            return first;
    }
    return rungs->count - 1;
}

const sweep_stopper sweep_stopper_hyperband = {.name = "hyperband",
                                               .summary = "asha in brackets that begin to compare later and later",
                                               .lay = sweep_lay_halvings,
                                               .first = first_of_bracket,
                                               .next = sweep_promote};
