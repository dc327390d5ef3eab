/* What a sweep is: its space, who decides and how, and what a trial runs.  It is put once, and never changes; limits
 * (how many trials, which goal) are entries of the log, since they may be raised. */
#ifndef SWEEP_SPEC_H
#define SWEEP_SPEC_H

#include "course.h"

/* What a trial is judged by comes first; the others are only kept. */
enum { SWEEP_OBJECTIVES_MOST = 4, SWEEP_OTHERS_MOST = SWEEP_OBJECTIVES_MOST - 1 };

typedef enum sweep_measure {
    SWEEP_REPORTED, /* the trial says it */
    SWEEP_SECONDS,  /* how long its processes ran */
    SWEEP_COST,     /* the same in money */
} sweep_measure;

typedef struct sweep_objective {
    const char *key;
    bool maximise;
    sweep_measure measure;
} sweep_objective;

typedef struct sweep_spec {
    json_t *json; /* all of it as it is put; texts below belong to it */
    sweep_space *space;
    sweep_rules rules;     /* without limits */
    int64_t steps;         /* of a trial; 0: as many as it takes */
    int64_t ahead;         /* strict order; 0: none */
    int64_t repeat;        /* commands of a trial at once, whose reports are averaged; 1 */
    const char *objective; /* what counts: the first of these */
    bool maximise;
    sweep_objective objectives[SWEEP_OBJECTIVES_MOST];
    int objective_count;
    const char *run;     /* the command of a trial, or */
    const char *learner; /* the words of one of our own learners */
    const char *from;    /* a sweep whose trials were taken over; NULL: none */
    double timeout;      /* seconds without a report after which a trial has failed; 0: any */
} sweep_spec;

/* Steps of a trial that goes on until it ends by itself. */
enum { SWEEP_STEPS_ENDLESS = 1000000000 };

/* Takes the JSON.  `name` begins messages.  SHOAL_INVALID names the key. */
int sweep_spec_of_json(sweep_spec **out, const char *name, json_t *json);
void sweep_spec_free(sweep_spec **spec);
/* SHOAL_USAGE with a sentence that names what differs, and how, when a sweep of this name is another. */
int sweep_spec_compare(const sweep_spec *there, const sweep_spec *asked, const char *name);

#endif
