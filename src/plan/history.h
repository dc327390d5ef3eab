/* What was predicted and what happened, one line of JSON a run, at the end of $XDG_STATE_HOME/shoal/history.jsonl
 * (~/.local/state/shoal/...). A line is written in one piece, so runs that end at the same time do not mix; a line that
 * is damaged or of a later version is left out and counted. */
#ifndef PLAN_HISTORY_H
#define PLAN_HISTORY_H

#include <stdbool.h>
#include <shoal/plan.h>
#include "calibration.h"

typedef struct plan_run {
    int64_t date; /* seconds since 1970 */
    /* Store: "" for a run of one process, otherwise the scheme or the account, without secrets or keys. */
    char learner[32], store[256];
    char kernel[16];
    double rows, columns, value_bytes;
    shoal_plan_source source;
    int64_t workers, machines, lost;
    double threads, cores; /* of a worker; of the machine */
    int phases;            /* what happened */
    struct plan_run_phase {
        char name[24];
        double rounds, seconds, expected_rounds;
        double operations_per_row, model_bytes, partial_bytes, row_bytes, kept_bytes;
    } phase[SHOAL_COST_PHASES];
    double seconds;              /* from the first round to the last, with loading and starting */
    double predicted, low, high; /* for the rounds that happened; 0: nothing was predicted */
    double requests;
    char host[64];   /* that started it */
    char job[64];    /* its id; "" for a run of one process */
    char reduce[24]; /* as in shoal_plan_job; "" for auto */
    bool split_roles;
    double slices; /* as in shoal_plan_job; 0: as the job chose them */
    bool partial; /* it was stopped, or went on from where another run of it was: not for what is known of whole runs */
} plan_run;

/* Shorter runs say nothing about predictions: starting threads and reading clocks is most of them. */
#define PLAN_RUN_SHORT 0.05

/* The file's path; the caller frees it. */
int plan_history_path(char **out);
/* Adds a line, unless one of the same job is there: several processes may have followed it.  Makes the file and the
 * folders above it where they are missing.  A file of more than 4 MB keeps its newer half, in one step.  SHOAL_INVALID
 * for a path that is not a plain file; SHOAL_SYSTEM names the file. */
int plan_history_add(const char *path, const plan_run *run);
/* The runs of the last `most` lines (0: all), oldest first; the caller frees them.  *damaged counts those of the lines
 * that were left out.  A file that is not there has none. */
int plan_history_read(plan_run **out, int64_t *count, int64_t *damaged, const char *path, int64_t most);

/* What the calibration predicts for the rounds of a run, as they happened.  A run whose workers share one machine also
 * has their start. Fails as shoal_plan_estimate does. */
int plan_history_estimate(shoal_estimate *out, const plan_calibration *calibration, const plan_run *run);

/* How far a prediction can be trusted. */
typedef struct plan_trust {
    int64_t runs;  /* earlier ones like it that it is judged by, the newest ones */
    double median; /* of |happened / estimated - 1|; NAN without any */
    double error;  /* as in shoal_site: 9 of 10 of these runs lay within it; 0 where they are too few to say */
    double worst;  /* the greatest of them */
    bool reliable; /* false when the median of at least five is off by more than half, or the interval is so wide that
                    * it says nothing */
    bool refitted; /* the calibration has been fitted to these runs already: fitting again changes nothing */
} plan_trust;

/* Judges what the calibration says of a run by what it says of earlier ones, oldest first, of which those count that
 * are like it, are not short, and took no small fraction of its seconds (0: not known). */
void plan_history_trust(plan_trust *out, const plan_calibration *calibration, const plan_run *run,
                        const plan_run *earlier, int64_t count);
/* plan_history_estimate with an interval that is no narrower than earlier runs justify. */
int plan_history_predict(shoal_estimate *out, plan_trust *trust, const plan_calibration *calibration,
                         const plan_run *run, const plan_run *earlier, int64_t count);

enum { PLAN_DOUBT_BYTES = 256 };
/* Why a prediction is not reliable, and what to do: "the last 12 runs were off by 79% (median); run ...". */
void plan_trust_describe(char out[PLAN_DOUBT_BYTES], const plan_trust *trust);

/* Fits paces, sync and errors to what happened, starting from `calibration`, which it changes; what no run tells of
 * stays.  *used counts the runs it could use. */
int plan_history_refit(plan_calibration *calibration, int64_t *used, const plan_run *run, int64_t count);

/* ---- all of this user's ------------------------------------------------------------------------------------------ */

typedef struct plan_history {
    plan_run *run;
    int64_t count, damaged;
    char *path;
} plan_history;

/* Reads it; release it, whatever was returned. */
int plan_history_open(plan_history *out);
void plan_history_release(plan_history *history);

/* |happened / predicted - 1| of those that were predicted. */
typedef struct plan_history_errors {
    double median, worst; /* NAN without any */
    int64_t predicted;
    int64_t within; /* that lay in their interval */
    bool poor;      /* of five or more since `since`, half are off by more than half, or a quarter lay outside */
} plan_history_errors;

/* Of a run that is long enough to tell. */
bool plan_was_predicted(const plan_run *run);
/* `since`: when the calibration was made or refitted, which earlier predictions say nothing about; 0: not known. */
int plan_history_judge(plan_history_errors *out, const plan_history *history, int64_t since);
/* Fits `calibration` to what happened; *used of *count runs could be used.  SHOAL_INVALID when none could. */
int plan_history_learn(plan_calibration *calibration, int64_t *used, int64_t *count);

#endif
