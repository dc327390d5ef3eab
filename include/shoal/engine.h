/* Running a learner over a data set: on the threads of this process, or of several that run in step (shoal/ranks.h).
 *
 *     shoal_run_options options = {.threads = 0};                        // all cores
 *     shoal_result *result = NULL;
 *     shoal_report report;
 *     int status = shoal_run(&result, &report, &shoal_kmeans, &config, data, NULL, &options);
 *
 * The result's bits depend on the data and the config alone: not on threads, grain size or kernel set. */
#ifndef SHOAL_ENGINE_H
#define SHOAL_ENGINE_H

#include <shoal/data.h>
#include <shoal/learn.h>
#include <shoal/ranks.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Seconds and rounds spent in one phase of a learner. */
typedef struct shoal_phase {
    char name[24];
    double seconds;
    int64_t rounds;
} shoal_phase;

enum { SHOAL_PHASES_MOST = 8 };

/* What a run did. */
typedef struct shoal_report {
    int threads;      /* of this process */
    int ranks, hosts; /* processes that ran it, and the machines they were on; 1 and 1 without ranks */
    int idle;         /* ranks that got no rows */
    int all_threads;  /* of all ranks */
    const char *kernel;
    int64_t rounds;  /* including those before a checkpoint */
    int64_t resumed; /* the round it resumed from; 0: from the start */
    int phases;
    shoal_phase phase[SHOAL_PHASES_MOST]; /* "load" first */
    int64_t counter[SHOAL_COUNTERS];
    bool stopped;          /* stopped on request before the end */
    const char *device;    /* what the rows of this process lay on at the end, "cuda:0"; NULL: nothing but the CPU */
    char device_lost[256]; /* why they did not, or no longer; "" where nothing went wrong */
    int64_t spared;        /* bytes of the memo of this process's rows, if there was no memory for them; 0: there was */
    /* Seconds of this rank, over all rounds: in maps, in merging with other ranks (including waiting for slower ones),
     * of that waiting for rows on their way to rank 0, and in updates. */
    double map_seconds, reduce_seconds, row_seconds, update_seconds;
} shoal_report;

/* Called after every round, from the thread that called shoal_run. `next` is the round about to start, or NULL
 * at the end; its step, objective and change show the progress. `seconds` since the run began. */
typedef void shoal_progress(void *context, const shoal_round *done, const shoal_round *next, int64_t rows,
                            double seconds);

enum {
    SHOAL_THREADS_MOST = 4096,
    SHOAL_GRAIN_ROWS_MOST = 1 << 30, /* learners count the rows of a grain with int32 */
    SHOAL_STRATA_MOST = 1 << 16,     /* who asks for more gets so many */
};

typedef struct shoal_run_options {
    int threads;            /* 0: as many as this process may use */
    const char *kernel;     /* NULL: the best this CPU has; otherwise its name, or SHOAL_USAGE */
    const char *device;     /* NULL or "auto": a GPU where one is, and the learner can; "cpu"; "cuda", "cuda:N" */
    bool every_round;       /* `progress` is to hear of every round, also where several could be done at once */
    int64_t rows_per_grain; /* 0: chosen from the shape; SHOAL_GRAIN_ROWS_MOST when it is more than that */
    /* Generated rows are kept if they take no more bytes than this, and otherwise made again each round; rows from a
     * store that take more go to a temporary file; so is what a learner that spares_memo would keep with the rows of
     * this process computed again each time; 0: half of what is free. */
    int64_t memory;
    const char *code;      /* the folder with the files that the run brings along; NULL for none */
    const char *code_hash; /* identifies what the learner runs, a module or a command: it must be the same on all ranks
                            * and when a run is resumed; NULL for a built-in learner */
    shoal_progress *progress;
    void *progress_context;
    const volatile int *stop;  /* non-zero, set by a signal handler of this process, ends the run after the round; NULL:
                                * never */
    shoal_ranks *ranks;        /* the processes that run it in step, all with the same options; NULL: this one alone */
    int64_t verify;            /* ranks compare the hash of their models every this many rounds; 0: never */
    double checkpoint_seconds; /* rank 0 writes the round to `checkpoint` every this many seconds; 0: never */
    const char *checkpoint;    /* a file, or the URL of a blob in a store; NULL: no checkpoints */
    bool resume;               /* continue from `checkpoint` if it exists; without this, one that exists is refused */
    /* Where those tensors of the result go, ended by one without a name; NULL: the result has memory of its own.  They
     * must outlast the result.  SHOAL_USAGE with ranks, and for memory of another size. */
    const shoal_row_memory *into;
    const shoal_blobs *from, *to; /* as in shoal_crew; of this process, where there are ranks; NULL for none */
} shoal_run_options;

/* Blobs in a plain folder, or below the URL of a store, to be read, or to be written: then a folder that is missing is
 * made.  A store is asked for `patience` seconds. */
SHOAL_API int shoal_blobs_open(const shoal_blobs **out, const char *place, bool write, double patience);
SHOAL_API void shoal_blobs_close(const shoal_blobs **blobs);

/* Runs `algorithm` to its end.  `weights` has one value per row, or is NULL.  report and options may be NULL.  After a
 * failure *report is filled too, and *out is NULL. */
SHOAL_API int shoal_run(shoal_result **out, shoal_report *report, const shoal_algorithm *algorithm, const void *config,
                        shoal_data *data, const double *weights, const shoal_run_options *options);

/* Removes a checkpoint: the last thing to do, once the result is safe.  SHOAL_OK when there is none. */
SHOAL_API int shoal_checkpoint_remove(const char *place);

#ifdef __cplusplus
}
#endif
#endif
