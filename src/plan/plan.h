/* One plan, from what is asked to what is answered: the job, the machines, the crew, the constants of the model, and
 * every option with the best of them.
 *
 *     plan_request request = {.algorithm = &shoal_kmeans, .config = &config, .shape = {.rows = 500000, ...}, ...};
 *     plan *plan = NULL;
 *     int status = plan_make(&plan, &request);
 *     ... plan->best->estimate.seconds ...
 *     plan_free(&plan);
 *
 * The question in it (choose.h) is what the model is asked; how a command line spells the request is the program's. */
#ifndef PLAN_PLAN_H
#define PLAN_PLAN_H

#include <shoal/data.h>
#include "calibration.h"
#include "choose.h"
#include "history.h"
#include "prices.h"
#include "workers.h"

/* ---- who measures ------------------------------------------------------------------------------------------------ */

/* What is tried to see how fast a learner is with certain options and columns. */
typedef struct plan_probe {
    const shoal_algorithm *algorithm;
    const void *config;
    shoal_data *data; /* NULL: rows of that shape are made up */
    shoal_shape shape;
    int64_t classes; /* labels in the last column of rows that are made up; 0: none */
    double seconds;
    const volatile int *stop;
} plan_probe;

/* How paces are found that nobody kept: src/plan/measure has the functions.  Both fill `pace`, which has room for
 * SHOAL_COST_PHASES, and thread_loss, as in shoal_site, or NAN. */
typedef struct plan_meter {
    /* SHOAL_ABSENT when nothing came of it.  Sets the rounds of a pace only if it had all rows, and the learner ended
     * by itself. */
    int (*probe)(shoal_pace *pace, int *paces, double *thread_loss, const plan_probe *what);
    int (*learner)(shoal_pace *pace, int *paces, double *thread_loss, const shoal_algorithm *algorithm, double seconds,
                   const volatile int *stop);
    /* The share of this machine's processor that other programs have now, measured for so long.  NULL: not known. */
    double (*busy)(double seconds);
    void (*note)(const char *text); /* what people should know: that it takes some seconds */
    const volatile int *stop;
} plan_meter;

/* ---- what is asked ----------------------------------------------------------------------------------------------- */

/* Numbers that are not given are NAN where 0 means something, and 0 elsewhere; texts are NULL. */
typedef struct plan_request {
    /* The job. */
    const shoal_algorithm *algorithm;
    const void *config; /* of the learner */
    const char *path;   /* of the data, or NULL: then `shape` has rows, columns and type */
    shoal_data *data;   /* that were read from there already, which stay the caller's; NULL: they are opened here */
    double open;        /* seconds that reading them took */
    shoal_shape shape;
    int64_t classes; /* labels in the last column of rows that are made up for a probe; 0: none */
    int64_t rounds;  /* of a learner that ends when it likes; 0: not told */
    int source;      /* shoal_plan_source; -1: a file for local workers, otherwise stored */
    const char *reduce;
    bool split_roles;
    /* The workers. */
    bool here; /* this machine: threads without workers, then its processes; `workers` has no numbers then */
    plan_workers workers;
    const char *machines; /* a pattern, or a price table */
    const char *prices;   /* a price table that `machines` chooses from */
    double threads;       /* of a worker; 0: all cores */
    bool spot;
    double price, losses, start; /* may be NAN */
    double speed, replace, billed;
    /* What is wanted. */
    double deadline, budget;
    plan_goal goal;
    /* Constants that replace measured ones. */
    double flops, bandwidth, write_bandwidth, account_bandwidth, latency, connections;
    double straggle; /* may be NAN */
    const char *store;
    bool no_probe;
    /* The paper's model instead of ours, of k-means with that many clusters and iterations. */
    bool by_paper;
    double clusters, iterations;
    plan_meter meter;
} plan_request;

/* ---- what is answered -------------------------------------------------------------------------------------------- */

enum { PLAN_HERE_MOST = 64 };

typedef struct plan {
    const plan_request *request;
    shoal_data *data, *own; /* NULL without a path; the same where they were opened here */
    shoal_shape shape;
    shoal_cost cost;
    plan_prices *prices; /* NULL without */
    plan_selection machines;
    plan_calibration kept;
    const plan_calibration *calibration; /* `kept`; NULL when there is none */
    shoal_pace pace[PLAN_PACES_MOST];
    int64_t here_threads[PLAN_HERE_MOST], here_processes[PLAN_HERE_MOST];
    double open; /* seconds that opening the data took */
    plan_question question;
    plan_choice choice;
    const plan_option *best; /* one of the choice, or `optimum` */
    shoal_paper paper;
    double formula;      /* P* of the paper; 0 with our model */
    plan_option optimum; /* at P*, rounded */
    int64_t usual;       /* threads of the same command without `plan`: one of the options with a request of `here` */
    plan_option alone;   /* that command where workers were asked for, if it is faster and fits; threads 0: not so */
    bool probed;         /* the learner was tried with these very options */
    bool tried_whole;    /* and with all rows, until it ended by itself: that is how many rounds it takes */
    bool measured_now;   /* the learner was measured for this plan alone */
    bool site_measured;
    double busy;       /* share of this machine's processor that other programs have now; 0 for other machines */
    const char *store; /* the scheme or address whose constants were taken */
    bool priced;       /* it is known what a machine costs; if not, `cost` has requests alone */
    char caution
        [PLAN_DOUBT_BYTES]; /* that earlier runs were far from what the calibration says; "" where they were not */
    char assumed[1024];     /* what was neither measured nor given, for people */
} plan;

/* SHOAL_USAGE and SHOAL_INVALID say in the words of the command line what is missing or makes no sense; SHOAL_INVALID
 * when nothing meets deadline and budget: what the cheapest and the fastest would be.  `request` must outlive the
 * plan. */
int plan_make(plan **out, const plan_request *request);
void plan_free(plan **plan);

/* "12 workers on aws:us-east-1/c7i.large, 3.1 h, $7.10"; with the limits that 95% of runs keep where they matter. */
void plan_describe(char *out, size_t size, const plan *plan, const plan_option *option, bool limits);
/* "the cheapest of 527 that end within 8.0 h in 95% of runs" */
void plan_tell_why(char *out, size_t size, const plan *plan);
/* Fails with a sentence about a plan that nothing meets. */
int plan_nothing_meets(const plan *plan);
/* Draws it, as SVG or PNG (picture.h). */
int plan_draw(const char *path, const plan *plan);

#endif
