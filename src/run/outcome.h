/* A run on its way and what came of it: rows, result, reports, times. */
#ifndef RUN_OUTCOME_H
#define RUN_OUTCOME_H

#include <shoal/plan.h>
#include <shoal/run.h>

#include "columns.h"
#include "jobs.h"
#include "plan/history.h"
#include "request.h"
#include "trace.h"

/* What a job on workers has beside a run of this process. */
typedef struct run_away {
    char id[SHOAL_JOB_ID_BYTES]; /* "" when the run is this process's own */
    char spec[65];               /* SHA-256 of its spec in hex: another is another job */
    void *spec_bytes;            /* the spec, of a job that this process submitted; NULL otherwise */
    size_t spec_size;
    shoal_job_report report;
    bool keep;        /* the job stays in its store when its outputs are written */
    bool detached;    /* it goes on by itself, and there is no result yet */
    bool alone;       /* and nobody here looks after it: its outputs are written by who resumes it */
    bool bare;        /* nobody said what is to be written of it */
    char *store;      /* URL */
    bool stopped;     /* it stands still, and can be resumed */
    char *file, *url; /* where its rows are: a file of this machine; another store; NULL otherwise */
    char *resume;     /* the command that resumes it, when it stopped and can be resumed */
    char *remove;     /* and the one that removes it, when no worker ever joined it */
    /* What is known of the run, for what was predicted of it. */
    double begun, ended;    /* when it was submitted, and when its result was there */
    bool resumed;           /* it was begun by another process */
    struct launch_ask *ask; /* what --workers asks for, once the store is open (launch/launch.h) */
    shoal_plan_source source;
} run_away;

/* What was predicted of a run and what happened (predicted.h). */
typedef struct run_prediction {
    bool asked;        /* it is a run of which something could be predicted */
    bool told;         /* and was */
    bool uncalibrated; /* it was not, since nothing was measured of this machine or learner */
    shoal_estimate estimate;
    plan_trust trust;    /* in it, by earlier runs */
    double rounds, took; /* that the estimate is for; seconds */
} run_prediction;

struct shoal_outcome {
    const shoal_request *request;
    const learn_face *face;
    const shoal_algorithm *algorithm;
    void *config; /* the learner's options: a copy of the request's, with what the rows and the start add to them */
    struct run_prepared_function *function; /* what people wrote themselves, prepared (function.h); NULL otherwise */
    /* The rows. */
    shoal_data *data; /* NULL when only workers have it */
    bool data_lent;   /* it is the request's, and stays so */
    char *data_name;
    int64_t rows, columns;
    shoal_type type, own_type; /* own: without a target from a file, which may need a wider one */
    int64_t held_rows;         /* of the rows, those of a file of its own that are held out (arrange.h) */
    char *held_name;           /* what that is called; NULL where there is none */
    run_columns columns_used;
    const double *weights;    /* one a row, or NULL: the request's, or one of the two below */
    double *own_weights;      /* that were read; NULL otherwise */
    shoal_data *lent_weights; /* what `weights` points into, when ranks of this host share them; NULL otherwise */
    bool read_once;           /* some of it came through a pipe, and can't be read again */
    double *start[4];         /* what the config points to */
    /* What came of it. */
    shoal_result *result;
    shoal_report report;
    run_away away;
    run_prediction predicted;
    /* On the way. */
    bool is_held; /* it only loads the rows that another run holds out */
    bool warned;  /* of what a round said of the rows */
    run_trace trace;
    const shoal_blobs *blobs_from, *blobs_to; /* open; NULL for none */
    struct run_blobs_counted *blobs_counted;  /* blobs_from as maps of this process see it (blobs_counted.h) */
    int blobs_lock;                           /* the folder of blobs_to, which is this run's alone; -1 for none */
    double blobs_looked;                      /* when it was last seen how many blobs workers have put */
    run_jobs jobs;                            /* the store that the job is in, open; all zero without one */
    struct run_kept_request *kept;            /* what a job that is resumed was submitted with; NULL otherwise */
    shoal_request *own;                       /* the request that was made of it */
    double started, load_seconds, write_seconds;
    char *checkpoint; /* of the run; NULL when there are none */
};

/* The request must last as long. */
int run_outcome_new(shoal_outcome **out, const shoal_request *request);
/* Whether the run is one of the learner itself, and not one that applies its model. */
bool run_is_learning(const shoal_outcome *outcome);

/* What a face is asked about. */
learn_rows run_rows_of(const shoal_outcome *outcome);
learn_ended run_ended(const shoal_outcome *outcome);

/* Tells the watcher. */
void run_doing(const shoal_outcome *outcome, const char *text);
void run_warn(const shoal_outcome *outcome, const char *line);
void run_may_stop(const shoal_outcome *outcome, bool may);
/* Whether a stop was asked for. */
bool run_stopped(const shoal_request *request);
/* Tells what the result says that no round did: a warning, and what the trace lacks of the history. */
void run_tell_end(shoal_outcome *outcome);
/* Tells of a round, as a shoal_progress whose context is the outcome. */
void run_on_round(void *outcome, const shoal_round *done, const shoal_round *next, int64_t rows, double seconds);

#endif
