/* What the verbs of learners share: refusing what is wrong before the work, running here or on workers, writing and
 * telling what was found.
 *
 *     cli_learning learning = {.data_path = word[0], .config = &settings->config, ..., .outputs = written};
 *     cli_job_init(&job, &shoal_kmeans, settings->print.quiet);
 *     status = cli_learning_check(&learning, sources);          // meets other ranks; then the verb's own checks
 *     if (status == SHOAL_OK) status = cli_learning_load(&job, &learning);
 *     ...                                                       // what depends on the shape of the data
 *     if (status == SHOAL_OK) status = cli_learning_run(&job, &learning);
 *     if (status == SHOAL_OK && !job.away.detached) status = cli_learning_end(&job, &ending);
 *     cli_job_release(&job);
 *
 * The learner's `finish`, which ends a job that was resumed, fills the same cli_ending from what the job kept
 * (cli_asked_path, cli_asked_trace), so both write the same files.  cli_kmeans.c is the example. */
#ifndef CLI_LEARN_VERB_H
#define CLI_LEARN_VERB_H

#include "cli.h"
#include "run_job.h"

/* One run of a learner, as the command line asks for it.  All pointers are the verb's. */
typedef struct cli_learning {
    const char *data_path;
    const void *config; /* of the learner; may change until cli_learning_run */
    const shoal_data_options *data;
    const char *weights_path; /* or NULL */
    const char *labels_path;  /* a file whose values become the last column; NULL for none */
    const cli_run_settings *run;
    const cli_ranks_settings *ranks;
    const cli_workers_settings *workers;
    const cli_trace_settings *trace;
    const cli_print_settings *print;
    const cli_file *outputs; /* ended by a row without a name; --trace is one of them, --tensorboard is not */
    bool on_workers;         /* set by cli_learning_check */
} cli_learning;

/* Refuses what can be refused before anything is read: the options of workers, the kernel, outputs that can't be
 * written or are one of `inputs`, which end with a row without a name. */
int cli_learning_check(cli_learning *learning, const cli_file *inputs);
/* Opens the data and reads the weights. */
int cli_learning_load(cli_job *job, const cli_learning *learning);
/* Runs the learner, here or on workers.  Takes `more`: what its `finish` needs beside options and outputs; may be
 * NULL. */
int cli_learning_run(cli_job *job, const cli_learning *learning, json_t *more);

/* How a run ends.  `context` is handed to the functions. */
typedef struct cli_ending {
    const cli_file *outputs; /* as above */
    const cli_trace_settings *trace;
    const cli_print_settings *print;
    /* Refuses a result that is not the learner's: one from a store may be anything that someone put
     * there.  SHOAL_BROKEN. */
    int (*check)(const cli_job *job, const void *context);
    /* Writes all outputs but the trace. */
    int (*write)(const cli_job *job, const void *context);
    /* Optional.  What other ranks do while rank 0 writes: their part of what all of them compute for it. */
    int (*follow)(const cli_job *job, const void *context);
    /* Prints the lines for people between "data" and "time": a word padded to 11 columns, then what there is to say. */
    void (*summary)(FILE *stream, const cli_job *job, const void *context);
    /* Optional.  Adds to the object that --json prints, which may become NULL. */
    void (*json)(json_t **object, const cli_job *job, const void *context);
    const char *kept; /* after a signal: "centres and labels are those", of iteration N */
    const void *context;
} cli_ending;

/* Writes and tells what was found; CLI_INTERRUPTED after a signal, SHOAL_INVALID when the run diverged. */
int cli_learning_end(cli_job *job, const cli_ending *ending);

/* "objective  0.42 after 30 iterations, converged": the line of a learner that went down a gradient
 * (src/learn/gradient). */
void cli_print_descent(FILE *stream, const cli_job *job);
/* Whether there is such a tensor: float64, of one dimension or of two, and of this shape. */
bool cli_is_vector(const shoal_tensor *tensor, int64_t count);
bool cli_is_matrix(const shoal_tensor *tensor, int64_t rows, int64_t columns);

/* From what a job was submitted with: the path of output `name` ("centres"; NULL when there is none) and the
 * traces.  The texts belong to `asked`. */
const char *cli_asked_path(const json_t *asked, const char *name);
cli_trace_settings cli_asked_trace(const json_t *asked);

#endif
