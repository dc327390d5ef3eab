/* Plans: what a run will take, in time and in money, before it is started.
 *
 *     shoal_cost cost;
 *     shoal_kmeans.cost(&cost, &config, &shape);                           // what the learner does to a row, and sends
 *     shoal_plan_job job = {.cost = &cost, .learner = "kmeans", .rows = 500e6, .columns = 100, .value_bytes = 4};
 *     shoal_plan_crew crew = {.workers = 64, .threads = 4, .cores = 4, .dollars_per_hour = 0.17, .start = 40};
 *     shoal_estimate estimate;
 *     int status = shoal_plan_estimate(&estimate, &job, &site, pace, paces, &crew);
 *
 * `site` and `pace` are what `shoal calibrate` measured.  All times are in seconds, rates in bytes per second, money in
 * US dollars. docs/plan.md has the mathematics, each symbol with its unit and where it is measured. */
#ifndef SHOAL_PLAN_H
#define SHOAL_PLAN_H

#include <stdbool.h>
#include <stdint.h>
#include <shoal/learn.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- what is measured -------------------------------------------------------------------------------------------- */

/* What one thread takes for one phase of a learner.  A round over n rows takes
 *     round + model_byte * (bytes of the model) + n * (row + value * columns + operation * (operations a row)). */
typedef struct shoal_pace {
    char learner[32], phase[24]; /* as the algorithm and its reports call them */
    double value, operation;
    double round, model_byte;
    double rounds; /* rounds after which earlier runs ended, if cost() allowed more; 0: unknown */
    double row;    /* per row, whatever it holds: its memo, loop overhead */
} shoal_pace;

/* A store as workers find it, and what happens to workers that use it. */
typedef struct shoal_site {
    double get, put;             /* latency of a small blob */
    double wait;                 /* from a put until a waiting worker is told */
    double read, write;          /* rate of one connection */
    double connections;          /* that a worker uses at once, at least 1 */
    double worker;               /* most that one worker reads or writes; 0: no limit of its own */
    double account;              /* most that all of them together read; 0: no limit */
    double account_write;        /* most that they write; 0: as much as they read */
    double get_price, put_price; /* of one request */
    double requests;             /* per worker and round, besides those for its pieces and models */
    /* Of a worker that waits by polling; 0 for a store that wakes waiting workers. */
    double requests_per_second;
    double start;        /* of a job with local workers, besides its rounds: submitting, starting, ending */
    double hash;         /* seconds per byte: rows in files are hashed when submitted and again when mapped */
    double sync;         /* the overhead of a round, however little there is to do: listings, records */
    double crowd;        /* the same for each further worker on the same machine: they get in each other's way */
    double straggle;     /* standard deviation of the logarithm of the time a worker takes for its part of a round */
    double thread_loss;  /* t threads of one machine do the work of t / (1 + (t - 1) thread_loss) */
    double loss_threads; /* the number of threads it was measured with: more lose no more; 0: any number */
    /* Standard deviation of the logarithm of (happened / estimated): how far estimates can be trusted. */
    double error;
} shoal_site;

/* ---- what is asked ----------------------------------------------------------------------------------------------- */

/* Where the rows are before the run. */
typedef enum shoal_plan_source {
    SHOAL_PLAN_STORED,    /* in the store: each worker fetches its part */
    SHOAL_PLAN_UPLOADED,  /* on the machine that starts the job: they are put there first */
    SHOAL_PLAN_FILE,      /* where every worker sees them as a file */
    SHOAL_PLAN_GENERATED, /* made by the workers */
} shoal_plan_source;

typedef struct shoal_plan_job {
    const shoal_cost *cost;
    const char *learner;
    double rows, columns, value_bytes;
    shoal_plan_source source;
    const char *reduce; /* "auto" (also NULL), "flat", "two-level", "tree:F", "ranged[:R]" */
    double open;        /* seconds to open the rows in one process: to parse a text, say */
    double slices;      /* that the rows are cut into; 0: as a job chooses; -1: one per worker, as in the paper */
    double grains;      /* that the rows make, the smallest unit; 0: as for most learners */
    bool split_roles;   /* as in the paper: `workers` map, about √workers reduce, one reduces last */
    bool known_rounds;  /* cost->phase[].rounds are exact: shoal_pace.rounds is ignored */
} shoal_plan_job;

/* The workers. */
typedef struct shoal_plan_crew {
    int64_t workers;
    bool alone;              /* one process, no store between */
    double threads;          /* of a worker */
    double cores;            /* of a machine */
    int64_t machines;        /* that the workers share; 0: each has its own */
    double speed;            /* of a core, as a multiple of the measured one; 0 counts as 1 */
    double dollars_per_hour; /* of a machine */
    double billed;           /* seconds that are billed at least, and in steps of which: 1, 60, 3600; 0: as they come */
    double start;            /* seconds until a worker is there */
    double losses;           /* of a worker, an hour */
    double replace;          /* seconds until a lost one counts as dead and another has its rows */
} shoal_plan_crew;

/* ---- what is answered -------------------------------------------------------------------------------------------- */

typedef struct shoal_estimate {
    double seconds, low, high; /* mean, and the limits of 90% of runs */
    /* Parts of `seconds`. */
    double start, load, map, straggle, reduce, update, publish, lost;
    double sequential;          /* what one thread without a store would take */
    double units;               /* processing units: workers, and reducers where they are apart */
    double speedup, efficiency; /* sequential / seconds; that, a thread */
    double requests, request_price;
    double cost, cost_low, cost_high; /* machines and requests */
    int phases;
    struct shoal_estimate_phase {
        char name[24];
        double rounds, seconds;
    } phase[SHOAL_COST_PHASES];
} shoal_estimate;

/* Estimates one run.  SHOAL_USAGE, naming it, for sizes that make no sense, a learner whose cost is unknown, or a phase
 * without a pace.  out->seconds is INFINITY if workers are lost faster than the work gets done. */
SHOAL_API int shoal_plan_estimate(shoal_estimate *out, const shoal_plan_job *job, const shoal_site *site,
                                  const shoal_pace *pace, int paces, const shoal_plan_crew *crew);

/* ---- the model of Durut and Rossi -------------------------------------------------------------------------------- */

/* "Communication challenges in cloud k-means", ESANN 2011, with the poster's separate times to read and to write. */
typedef struct shoal_paper {
    double rows, columns, clusters, iterations;
    double flops;            /* of one processing unit */
    double read, write;      /* bytes a second; write 0: not counted, as in the paper */
    double dollars_per_hour; /* of one processing unit */
    double dollars_per_request;
    double billed; /* as in shoal_plan_crew */
} shoal_paper;

/* Fills units, seconds (load, map, reduce), sequential, speedup, efficiency, requests, cost; the interval is empty. */
SHOAL_API int shoal_paper_estimate(shoal_estimate *out, const shoal_paper *paper, int64_t mappers);
/* P* = (3 N F / (B1 + B2 / 2))^(2/3), with B1 = B and no B2 where writing is not counted. */
SHOAL_API double shoal_paper_best(const shoal_paper *paper);

#ifdef __cplusplus
}
#endif
#endif
