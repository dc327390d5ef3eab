/* How fast images are read: `shoal data speed`.
 *
 *     speed_outcome outcome = {0};
 *     int status = speed_measure(&outcome, &request, &watcher);
 *     for (int i = 0; status == SHOAL_OK && i < outcome.sources; i++)
 *         ... outcome.source[i].name, outcome.source[i].found.factor[SPEED_BATCH_SIZE].slope ...
 *     speed_outcome_release(&outcome);
 *
 * A run reads `batches` batches of `batch_size` images each, as a training reads them, and is timed as a whole: listing
 * what there is, opening it, reading, checking and decoding to pixels.  docs/images.md says exactly what that is.
 *
 *     speed_source.c   what a word of the command line names, and listing its files
 *     speed_reader.c   batches of pixels from a source
 *     speed.c          the runs: which there are, in which order, and how long they take
 *     speed_fit.c      what can be said of their times
 *     speed_picture.c  the same, drawn
 *     speed_csv.c      the runs as a table */
#ifndef RUN_SPEED_H
#define RUN_SPEED_H

#include <shoal/run.h>

#include "base/counts.h"
#include "base/regression.h"

enum { SPEED_SOURCES_MOST = 16 };

typedef struct speed_request {
    const char *const *words; /* folders, files, URLs */
    int count;
    base_counts batch_sizes, batches;
    int64_t repeat;
    int height, width; /* of an image in a batch */
    int threads;
    uint64_t seed;
    bool cold;  /* files are dropped from memory before each run */
    bool again; /* each regression gets runs of its own */
    bool skip_broken;
} speed_request;

typedef enum speed_kind { SPEED_IMAGES, SPEED_TFRECORD } speed_kind;

/* What the rate may depend on. */
typedef enum speed_factor {
    SPEED_BATCH_SIZE,
    SPEED_BATCHES,
    SPEED_DATA_SIZE, /* images of a run */
    SPEED_REPETITION,
    SPEED_FACTORS
} speed_factor;
extern const char *const speed_factor_names[SPEED_FACTORS];

/* With `again`, a pass over all runs for each factor, and one for the fit; otherwise they share one. */
enum { SPEED_PASSES_MOST = SPEED_FACTORS + 1 };

typedef struct speed_run {
    int source, pass;
    int64_t batch_size, batches, repetition; /* counted from 1 */
    int64_t images, bytes, skipped;          /* that were read; broken ones on the way */
    uint64_t start;                          /* a random number that says where the run begins */
    double began, seconds;                   /* the first since the first run of all began */
    double processor;                        /* seconds, of all threads */
    double resident;                         /* the share of the source in memory before the run; NAN: not known */
} speed_run;

/* What can be said of a factor: how it goes with images a second. */
typedef struct speed_influence {
    base_estimate correlation;
    base_regression line; /* images a second = of[0] + of[1] * factor */
    double explained;     /* the correlation that times as those of the fit would have; NAN where there is no fit */
} speed_influence;

typedef struct speed_found {
    speed_influence factor[SPEED_FACTORS];
    base_regression fit;  /* seconds = of[0] + of[1] * batches + of[2] * images */
    base_regression work; /* the same for seconds of processor time, which others on the machine hardly change */
    double mean, median;  /* images a second */
    double processor;     /* seconds of processor time an image, over all runs */
} speed_found;

typedef struct speed_about {
    char *name;
    speed_kind kind;
    int64_t files, bytes; /* bytes: -1 where only opening them would tell */
    int64_t skipped;      /* times that something broken was passed over */
    char *broken;         /* the first sentence about it; NULL: none */
    speed_found found;
} speed_about;

typedef struct speed_outcome {
    int sources, passes;
    speed_about source[SPEED_SOURCES_MOST];
    speed_run *run; /* in the order in which they were made */
    int64_t runs;
    double pass_seconds[SPEED_PASSES_MOST]; /* of the runs of each */
} speed_outcome;

/* SHOAL_USAGE and SHOAL_INVALID with a sentence about the source that is not as it should be.  *out is zero before, and
 * to be released in any case. */
int speed_measure(speed_outcome *out, const speed_request *request, const shoal_watcher *watcher);
void speed_outcome_release(speed_outcome *outcome);

/* The value of a factor, and images a second, of a run. */
double speed_value(const speed_run *run, speed_factor factor);
double speed_rate(const speed_run *run);
/* Which pass a regression has its runs from: that of a factor, or of the fit, which is SPEED_FACTORS. */
int speed_pass(const speed_outcome *outcome, int regression);
/* Fills in source[].found from the runs. */
int speed_analyse(speed_outcome *outcome);
/* Images a second by each factor with their lines, and the load of processor and files during the runs. */
int speed_draw(const char *path, const speed_outcome *outcome);
/* Refuses a name that does not end with .csv, and a file that holds something else; and writes one row for each run. */
int speed_csv_check(const char *path, bool force);
int speed_csv_write(const char *path, const speed_outcome *outcome);

#endif
