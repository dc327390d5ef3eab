/* The median rule (Golovin and others, "Google Vizier", KDD 2017): a trial goes on while it is no worse than the median
 * of the others at the same step. */
#include "stopper.h"

enum { OTHERS_LEAST = 4 }; /* fewer are no measure */

static void lay_evenly(sweep_rungs *rungs, int64_t steps, int64_t least)
{
    least = least > 0 ? least : 1;
    const int64_t most = SWEEP_RUNGS_MOST, gap = steps > most ? (steps + most - 1) / most : 1;
    rungs->count = 0;
    for (int64_t step = steps % gap ? steps % gap : gap; step < steps; step += gap)
        if (step >= least)
            rungs->step[rungs->count++] = step;
    rungs->step[rungs->count++] = steps;
}

static bool is_no_worse(const sweep_trial *trial, int64_t trials, int64_t which)
{
    const int rung = trial[which].rungs - 1;
    int64_t others = 0, better = 0;
    for (int64_t i = 0; i < trials; i++) {
        if (i == which || trial[i].rungs <= rung || trial[i].first > rung)
            continue;
        others++;
        better += trial[i].rung[rung] < trial[which].rung[rung];
    }
    return others < OTHERS_LEAST || 2 * better <= others;
}

/* Those that came farthest first, so that there are trials that end. */
static int64_t next_median(const sweep_rungs *rungs, const sweep_trial *trial, int64_t trials)
{
    int64_t chosen = -1;
    (void)rungs;
    for (int64_t i = 0; i < trials; i++)
        if (trial[i].state == SWEEP_PAUSED && (chosen < 0 || trial[i].rungs > trial[chosen].rungs) &&
            is_no_worse(trial, trials, i))
            chosen = i;
    return chosen;
}

const sweep_stopper sweep_stopper_median = {.name = "median",
                                            .summary = "a trial goes on while it is no worse than the median",
                                            .lay = lay_evenly,
                                            .first = sweep_first_of_all,
                                            .next = next_median};
