/* The rules, and what some of them share. */
#include "stopper.h"

#include <math.h>
#include <string.h>

enum { HALVINGS = 4 }; /* where nobody says how little a trial may be judged by */

const sweep_stopper *const sweep_stoppers[] = {&sweep_stopper_none, &sweep_stopper_asha, &sweep_stopper_hyperband,
                                               &sweep_stopper_median, NULL};

const sweep_stopper *sweep_stopper_find(const char *name)
{
    for (int i = 0; sweep_stoppers[i]; i++)
        if (strcmp(sweep_stoppers[i]->name, name) == 0)
            return sweep_stoppers[i];
    return NULL;
}

void sweep_lay_halvings(sweep_rungs *rungs, int64_t steps, int64_t least)
{
    int64_t step[SWEEP_RUNGS_MOST];
    int count = 0;
    for (double at = (double)steps; count < SWEEP_RUNGS_MOST; at /= (double)rungs->eta) {
        const int64_t whole = (int64_t)fmax(round(at), 1);
        if (count > 0 && (whole >= step[count - 1] || (least > 0 ? whole < least : count > HALVINGS)))
            break;
        step[count++] = whole;
    }
    rungs->count = count;
    for (int i = 0; i < count; i++)
        rungs->step[i] = step[count - 1 - i];
}

int sweep_first_of_all(const sweep_rungs *rungs, int64_t number)
{
    (void)rungs;
    (void)number;
    return 0;
}

/* Whether a trial was compared at a rung, with others that began at the same one. */
static bool stood_at(const sweep_trial *trial, int rung, int first)
{
    return trial->first == first && trial->rungs > rung;
}

/* The best of those that pause at a rung, if it is among the best 1 / eta of all that came there. */
static int64_t promote_at(const sweep_rungs *rungs, const sweep_trial *trial, int64_t trials, int rung, int first)
{
    int64_t chosen = -1, came = 0, better = 0;
    for (int64_t i = 0; i < trials; i++) {
        if (!stood_at(&trial[i], rung, first))
            continue;
        came++;
        if (trial[i].state == SWEEP_PAUSED && trial[i].rungs == rung + 1 &&
            (chosen < 0 || trial[i].rung[rung] < trial[chosen].rung[rung]))
            chosen = i;
    }
    for (int64_t i = 0; i < trials && chosen >= 0; i++)
        better += stood_at(&trial[i], rung, first) && (trial[i].rung[rung] < trial[chosen].rung[rung] ||
                                                       (trial[i].rung[rung] == trial[chosen].rung[rung] && i < chosen));
    return chosen >= 0 && better < came / rungs->eta ? chosen : -1;
}

int64_t sweep_promote(const sweep_rungs *rungs, const sweep_trial *trial, int64_t trials)
{
    for (int rung = rungs->count - 2; rung >= 0; rung--)
        for (int first = 0; first <= rung; first++) {
            const int64_t chosen = promote_at(rungs, trial, trials, rung, first);
            if (chosen >= 0)
                return chosen;
        }
    return -1;
}

/* ---- none -------------------------------------------------------------------------------------------------------- */

static void lay_one(sweep_rungs *rungs, int64_t steps, int64_t least)
{
    (void)least;
    rungs->count = 1;
    rungs->step[0] = steps;
}

static int64_t promote_none(const sweep_rungs *rungs, const sweep_trial *trial, int64_t trials)
{
    (void)rungs;
    (void)trial;
    (void)trials;
    return -1;
}

const sweep_stopper sweep_stopper_none = {.name = "none",
                                          .summary = "every trial goes to its end",
                                          .lay = lay_one,
                                          .first = sweep_first_of_all,
                                          .next = promote_none};
