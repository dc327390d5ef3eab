/* One seed, one story: a job, its workers, what befalls them, and what must be true at the end. */
#ifndef SIM_JOB_H
#define SIM_JOB_H

#include <stdbool.h>
#include <stdint.h>

/* What a seed's story is about. */
typedef enum sim_story {
    STORY_CALM,      /* nothing goes wrong */
    STORY_FAULTS,    /* requests fail, answers are lost, messages come twice */
    STORY_DEATHS,    /* processes die at store calls and in between; others take their place */
    STORY_PAUSES,    /* processes are stopped for a while */
    STORY_ELASTIC,   /* workers come and go */
    STORY_STARTER,   /* who submits dies in the middle */
    STORY_CANCEL,    /* the job is cancelled, and resumed later */
    STORY_REMOVE,    /* the job is removed, and another one made under the same workers */
    STORY_POISON,    /* rows that kill the worker that maps them */
    STORY_FORGETS,   /* the store forgets its last seconds */
    STORY_DESERTED,  /* every worker dies; others come later */
    STORY_CROWD,     /* as many workers as the paper had, and more than there is work for */
    STORY_CUT,       /* the store is out of reach for a while */
    STORY_LOST_DATA, /* an uploaded slice vanishes */
    STORY_STALE,     /* the store shows what was there a moment ago */
    STORY_SLEEPER,   /* one worker sleeps through many rounds */
    STORY_FAILS,     /* the learner itself fails */
    STORY_DAMAGE,    /* pieces, models and records are damaged where they lie */
    STORY_ALL,       /* deaths, pauses, faults, coming and going at once */
    STORIES
} sim_story;

typedef struct sim_job_options {
    uint64_t seed;
    int story; /* a sim_story, or -1 for the seed's own */
    bool verbose;
    bool print; /* one line at the end */
} sim_job_options;

/* What a story took. */
typedef struct sim_job_outcome {
    uint64_t history; /* hash of all events */
    double seconds;   /* virtual */
    int64_t rounds, requests, steps;
} sim_job_outcome;

/* Runs it.  Ends the program with status 1, and prints the history, when something is not as it must be. */
sim_job_outcome sim_job_run(const sim_job_options *options);
const char *sim_story_name(sim_story story);

#endif
