/* Choosing: threads of this machine, and every number of workers on every machine, are estimated, and one of these
 * options is best.
 *
 *     plan_choice choice;
 *     int status = plan_choose(&choice, &question);
 *     if (status == SHOAL_OK && choice.best >= 0)
 *         printf("%lld workers\n", (long long)choice.option[choice.best].workers);
 *     plan_choice_free(&choice); */
#ifndef PLAN_CHOOSE_H
#define PLAN_CHOOSE_H

#include <shoal/plan.h>

#include "plan/prices.h"

/* Of a machine's memory, what rows, memo and sums may fill: the rest is the system's. */
#define PLAN_MEMORY_USABLE 0.85

typedef enum plan_goal { PLAN_GOAL_NONE, PLAN_GOAL_TIME, PLAN_GOAL_COST, PLAN_GOAL_BOTH } plan_goal;

/* Runs of one process on this machine, with no store. */
typedef struct plan_alone {
    const int64_t *threads; /* numbers of them to look at */
    int64_t count;          /* 0: none of this */
    double start;           /* seconds to start the program and to end it */
    double error;           /* as in shoal_site */
    double one_thread;      /* seconds of a run with one thread, which speed-ups here compare with; 0: not known */
} plan_alone;

/* What is asked.  All pointers are the caller's. */
typedef struct plan_question {
    const shoal_paper *paper; /* estimate by the paper's model; NULL: by ours */
    shoal_plan_job job;
    shoal_site site;
    const shoal_pace *pace;
    int paces;
    shoal_plan_crew crew; /* but for the workers and what the machines say */
    double threads;       /* of a worker; 0: as many as its machine has cores */
    plan_alone alone;     /* runs of one process here, without workers: options that come before all others */
    const int64_t *workers;
    int64_t workers_count;
    const plan_selection *machines; /* NULL: like the one of `crew` */
    double busy;                    /* share of this machine's processor that others have; 0: idle, or other machines */
    bool spot;
    double deadline, budget; /* 0: none */
    plan_goal goal;          /* NONE: cost when there is a deadline, otherwise time */
} plan_question;

typedef struct plan_option {
    const plan_machine *machine; /* NULL: like the one of the question */
    int64_t workers;             /* 1 where it is alone */
    bool alone;                  /* one process here, no workers */
    int64_t threads;             /* of each; 0 in the paper's model */
    shoal_estimate estimate;
    double memory;           /* bytes that a machine needs */
    bool fits;               /* into the memory it has */
    bool in_time, in_budget; /* 95% of runs are */
    bool front;              /* nothing is both faster and cheaper, of what fits */
} plan_option;

typedef struct plan_choice {
    plan_option *option; /* those that are alone, then machine by machine, workers as they were asked for */
    int64_t options;
    int64_t fitting, meeting;        /* how many fit; how many of these meet deadline and budget */
    int64_t best, fastest, cheapest; /* of those that fit, best of those that meet both; -1 when there is none */
    plan_goal goal;                  /* by which best was chosen */
} plan_choice;

int plan_choose(plan_choice *out, const plan_question *question);
/* One process of this machine with that many threads, which need not be among those of the question. */
int plan_estimate_alone(plan_option *out, const plan_question *question, int64_t threads);
void plan_choice_free(plan_choice *choice);

/* Whether a is to be preferred: what fits and meets deadline and budget comes first; of equal ones the other measure
 * decides, then fewer workers. */
bool plan_is_better(const plan_option *a, const plan_option *b, plan_goal goal);

/* Whether all machines are of one cloud and region, so that their names alone tell them apart. */
bool plan_is_one_place(const plan_choice *choice);

#endif
