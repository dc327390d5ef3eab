/* What the verbs of the program share.
 *
 * A verb is one row of the table in main.c and one file cli_<verb>.c that defines it: a name, what help says of it,
 * groups of options, and a function.  main.c reads the command line into the verb's settings, calls the function and
 * turns its answer into an exit code; the function never exits, and prints only its result.
 *
 * Exit codes: 0 done, 1 failed, 2 wrong usage, 3 a job stopped that can go on, 130 stopped by a signal before it was
 * done. */
#ifndef CLI_H
#define CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <jansson.h>
#include <shoal/shoal.h>

#include "base/file.h"
#include "base/option.h"

#ifndef SHOAL_VERSION
#define SHOAL_VERSION "0.1.0"
#endif

enum { CLI_DONE = 0, CLI_FAILED = 1, CLI_WRONG_USAGE = 2, CLI_RESUMABLE = 3, CLI_INTERRUPTED = 130 };

/* ---- verbs ------------------------------------------------------------------------------------------------------- */

typedef struct cli_example {
    const char *command, *what; /* what: "cluster rows into 100 groups" */
} cli_example;

enum { CLI_WORDS_MOST = 2 };

typedef struct cli_verb {
    const char *name;                 /* "kmeans"; "data info" is two words on the command line */
    const char *summary;              /* one line without a full stop */
    const char *word[CLI_WORDS_MOST]; /* names of the arguments that are no options: "DATA"; "FILE..." is one or more */
    int words_least;                  /* how many of them must be there */
    bool words_in_synopsis;           /* it shows them itself, and run() counts them: not every use has the same */
    const char *synopsis;             /* the rest of the usage line: "-k K [options]" */
    const char *const *description;   /* paragraphs, ended by NULL: help has the first, the manual all */
    const cli_example *examples;      /* ended by a row without a command */
    const base_option_group *options;
    size_t settings_size; /* of the struct the options fill; it starts with a cli_common */
    bool of_ranks;        /* several ranks run it together (ranks.h) */
    /* Does the work.  `word` has `words` entries, the rest NULL.  Returns SHOAL_OK, a failure with its message set,
     * or CLI_INTERRUPTED or CLI_RESUMABLE after it has said what there is. */
    int (*run)(void *settings, const char *const *word, int words);
} cli_verb;

/* Every verb, in the order help lists them; ended by NULL.  In main.c. */
extern const cli_verb *const cli_verbs[];
extern const cli_verb cli_logistic, cli_autoencoder;
extern const cli_verb cli_kmeans, cli_predict, cli_run, cli_data_info, cli_data_head, cli_data_convert,
    cli_data_patches, cli_man, cli_help;
extern const cli_verb cli_store_ls, cli_store_get, cli_store_put, cli_store_cat, cli_store_rm, cli_store_du,
    cli_store_copy, cli_store_bench;
extern const cli_verb cli_plan_kmeans, cli_plan_logistic, cli_plan_autoencoder, cli_plan_run;
extern const cli_verb cli_calibrate;
extern const cli_verb cli_plan_search;
extern const cli_verb cli_agent, cli_check;
extern const cli_verb cli_worker, cli_job_list, cli_job_show, cli_job_watch, cli_job_wait, cli_job_logs, cli_job_result,
    cli_job_scale, cli_job_resume, cli_job_cancel, cli_job_remove;

/* The verb called by `count` words ("data", "info", or just "data-info"); NULL when there is none. */
const cli_verb *cli_verb_find(const char *const *word, int count);
/* Whether the verb's first word is `first`, as "data" is of several; and whether there is any such verb. */
bool cli_verb_is_of(const cli_verb *verb, const char *first);
bool cli_verb_family(const char *first);
/* Fails with the sentence for a verb that does not exist. */
int cli_verb_unknown(const char *const *word, int count);

/* ---- options that several verbs have ----------------------------------------------------------------------------- */

typedef struct cli_common {
    bool help;
} cli_common;

typedef struct cli_run_settings {
    int64_t threads;
    const char *kernel;
    int64_t rows_per_grain;
} cli_run_settings;

enum { CLI_ENGINE_AUTO, CLI_ENGINE_THREADS, CLI_ENGINE_MPI };

/* With whom, and what is kept on the way.  Options and the rest: ranks.h. */
typedef struct cli_ranks_settings {
    int engine; /* CLI_ENGINE_AUTO, ... */
    int64_t verify;
    double checkpoint; /* seconds; 0: never */
    const char *file;  /* or URL of the checkpoint; NULL: LEARNER.checkpoint */
    bool resume;
} cli_ranks_settings;

typedef struct cli_print_settings {
    bool json, quiet;
} cli_print_settings;

/* How the rounds of a run are told while it goes. */
typedef struct cli_trace_settings {
    const char *trace;       /* a file of JSON lines, or NULL; a verb lists it with its outputs */
    const char *tensorboard; /* a folder, or NULL */
} cli_trace_settings;

extern const shoal_option *const cli_common_options; /* of cli_common */
extern const shoal_option *const cli_data_options;   /* of shoal_data_options */
extern const shoal_option *const cli_run_options;    /* of cli_run_settings */
extern const shoal_option *const cli_print_options;  /* of cli_print_settings */
extern const shoal_option *const cli_trace_options;  /* of cli_trace_settings */

/* What a table of options was given, by name, as JSON: what models and jobs keep of it.  NULL when out of memory. */
json_t *cli_options_json(const shoal_option *table, const void *settings);
/* What an option of the table accepts. */
const char *const *cli_option_choices(const shoal_option *table, const char *name);

/* The columns of the terminal stdout is, or 80. */
int cli_width(void);

/* ---- help (help.c) ----------------------------------------------------------------------------------------------- */

void cli_help_program(FILE *stream);
void cli_help_verb(FILE *stream, const cli_verb *verb);
/* Lists the verbs whose first word is `first`. */
void cli_help_family(FILE *stream, const char *first);
void cli_manual_program(FILE *stream);
void cli_manual_verb(FILE *stream, const cli_verb *verb);

/* ---- signals (signals.c) ----------------------------------------------------------------------------------------- */

/* SIGINT, SIGTERM and SIGHUP remove temporary outputs and end the process, unless a stop is allowed: then the first
 * one only sets the flag.  SIGBUS says that a mapped file shrank; for rows data.h does. */
void cli_signals_start(void);
void cli_signals_allow_stop(bool allow);
/* Allows it throughout, whatever is said in between: for whoever has to clean up after many runs. */
void cli_signals_hold_stop(bool hold);
/* Files and then folders that go when a signal ends the process; ended by NULL, and the caller's.  NULL: none. */
void cli_signals_remove(const char *const *paths);
const volatile int *cli_signals_stop(void);
/* Whether the flag is set, for any thread. */
bool cli_signals_stopped(void);
/* Ends the program after a stop, at once: threads may still wait for a server.  What they have open is left as it is,
 * which must be good for the next run. */
_Noreturn void cli_signals_leave(void);

/* ---- progress and trace (progress.c, trace.c) -------------------------------------------------------------------- */

typedef struct cli_progress {
    FILE *stream; /* NULL when nothing is to be shown */
    bool dirty;   /* there is text on the line */
    double shown; /* when it was last changed */
    char phase[24];
    double phase_started; /* in seconds of the run */
    int64_t phase_rounds;
    double rows_per_second, last; /* of the last round; when it ended */
} cli_progress;

void cli_progress_start(cli_progress *progress, bool quiet);
/* One line of text until something else is shown: "loading rows.npy". */
void cli_progress_say(cli_progress *progress, const char *text);
/* As a shoal_progress callback is called. */
void cli_progress_round(cli_progress *progress, const shoal_round *done, const shoal_round *next, int64_t rows,
                        double seconds);
/* How far a copy is: "3 of 12 files, 1.2 of 3.4 GB, 35 MB/s, 1:03 left". */
typedef struct cli_transferred {
    int64_t files, files_found, bytes, bytes_found;
    bool all_found; /* otherwise there may be more */
    double seconds;
} cli_transferred;
void cli_progress_transfer(cli_progress *progress, const cli_transferred *so_far);
void cli_progress_clear(cli_progress *progress);

/* What is told of a round. */
typedef struct cli_traced {
    int64_t number, step;
    char phase[24];
    double objective, change, seconds;
} cli_traced;

/* Rounds as JSON lines and as events for TensorBoard.  A trace that has neither ignores everything. */
typedef struct cli_trace {
    base_output *output;
    struct cli_events *events;
    double last;     /* seconds at the end of the round before */
    cli_traced held; /* the last round, whose objective only the result knows */
    bool holds;
} cli_trace;

/* Whether the folder of --tensorboard could be written to; the file of --trace is checked with the outputs. */
int cli_trace_check(const cli_trace_settings *settings);
/* `settings` may be NULL. */
int cli_trace_open(cli_trace *trace, const cli_trace_settings *settings);
/* Whether every round has to be told. */
bool cli_trace_is_open(const cli_trace *trace);
void cli_trace_round(cli_trace *trace, const shoal_round *done, const shoal_round *next, double seconds);
/* Writes the last round with the result's objective, renames the file into place and closes the events. */
int cli_trace_commit(cli_trace *trace, double objective);
/* Removes the file; events that were written stay. */
void cli_trace_discard(cli_trace *trace);

/* ---- running a learner (job.c) ----------------------------------------------------------------------------------- */

/* What a job on workers has beside a run of this process. */
typedef struct cli_job_away {
    char id[SHOAL_JOB_ID_BYTES]; /* "" when the run is this process's own */
    char spec[65];               /* SHA-256 of its spec in hex: another is another job */
    shoal_job_report report;
    bool keep;     /* the job stays in its store when its outputs are written */
    bool detached; /* it goes on by itself, and there is no result yet */
    char *store;   /* URL */
    /* What is known of the run, for what was predicted of it. */
    double begun, ended; /* when it was submitted, and when its result was there */
    bool resumed;        /* it was begun by another process */
    bool local;          /* all workers were started on this machine */
    int64_t mappers;     /* workers that --workers asked for; 0: they come from elsewhere */
    const char *through; /* "ssh", "slurm": workers reach the store through this process; NULL: by themselves */
    const char *reduce;  /* --reduce, or NULL; not owned */
    int64_t slices;      /* --slices, or 0 */
    bool split_roles;
    shoal_plan_source source;
} cli_job_away;

/* What was predicted of a run and what happened (predicted.h). */
typedef struct cli_predicted {
    bool asked;        /* it is a run of which something could be predicted */
    bool told;         /* and was */
    bool uncalibrated; /* it was not, since nothing was measured of this machine or learner */
    shoal_estimate estimate;
    double rounds, took; /* that the estimate is for; seconds */
} cli_predicted;

/* One learner over one data set, with the time everything took. */
typedef struct cli_job {
    const shoal_algorithm *algorithm;
    shoal_data *data; /* NULL when only workers have it */
    char *data_name;
    int64_t rows, columns;
    shoal_type type;
    cli_job_away away;
    double *weights;          /* one a row, or NULL */
    shoal_data *lent_weights; /* what `weights` points into, when ranks of this host share them; NULL otherwise */
    void *joined;             /* the rows of `data`, when labels were put beside them; NULL otherwise */
    bool read_once;           /* some of it came through a pipe, and can't be read again */
    const char *code;         /* the folder of what a run of this process brings along; NULL for none; not owned */
    const char *code_hash;    /* of the module or command that is run; NULL for a learner of shoal's own; not owned */
    shoal_result *result;
    shoal_report report;
    cli_progress progress;
    cli_trace trace;
    double started, load_seconds, write_seconds;
    cli_predicted predicted;
    char *checkpoint;               /* of the run; NULL when there are none */
    const struct cli_file *outputs; /* of the verb, none of which may be the checkpoint; may be NULL */
    bool keeps_part; /* a signal ends the run after its round, which leaves a result; otherwise it ends the program */
} cli_job;

void cli_job_init(cli_job *job, const shoal_algorithm *algorithm, bool quiet);
void cli_job_release(cli_job *job);
/* Whether DATA is a blob of a store, whose rows stay there until a run fetches those that it needs. */
bool cli_is_in_store(const char *path);
/* Whether a file can be read only once, and by one process: standard input, a pipe. */
bool cli_is_read_once(const char *path);
/* Opens the data and reads the weights, unless the job has them. */
int cli_job_load(cli_job *job, const char *path, const shoal_data_options *options, const char *weights_path);
/* Tells of a round, as a shoal_progress whose context is the job. */
void cli_job_on_round(void *job, const shoal_round *done, const shoal_round *next, int64_t rows, double seconds);
/* Notes what the data are called and their shape. */
int cli_job_note_data(cli_job *job, const char *name, int64_t rows, int64_t columns, shoal_type type);
/* Reads job->weights. */
int cli_job_load_weights(cli_job *job, const char *path);
/* Runs it.  job->report.stopped says that a signal ended it after a round. */
int cli_job_run(cli_job *job, const void *config, const cli_run_settings *settings, const cli_ranks_settings *ranks,
                int64_t memory, const cli_trace_settings *trace);
/* Once all outputs are written: the checkpoint is not needed any more.  `status` is how writing them went, and is
 * returned unless that is SHOAL_OK. */
int cli_job_close(cli_job *job, int status);
/* What every learner's --json says; the caller adds to it and owns it.  NULL when out of memory. */
json_t *cli_job_json(const cli_job *job);
/* "data       rows.npy: 150 rows, 4 columns, float64" */
void cli_job_print_data(const cli_job *job, FILE *stream);
/* "load 0.01 s, scan 0.10 s, ..." and the kernel and threads, as the summary for people shows them. */
void cli_job_print(const cli_job *job, FILE *stream);

/* Numbers of a result as JSON has them. */
json_t *cli_json_number(const shoal_number *number);

/* A learner that workers know. */
typedef struct cli_learner {
    const shoal_algorithm *algorithm;
    /* Writes the outputs that a job was submitted with and prints what its verb would have printed.  NULL when no
     * verb submits such jobs. */
    int (*finish)(cli_job *job, const json_t *settings, const cli_print_settings *print);
} cli_learner;

/* Ended by a row without an algorithm.  In main.c. */
extern const cli_learner cli_learners[];
/* Their algorithms, ended by NULL. */
const shoal_algorithm *const *cli_algorithms(void);
int cli_kmeans_finish(cli_job *job, const json_t *settings, const cli_print_settings *print);
int cli_logistic_finish(cli_job *job, const json_t *settings, const cli_print_settings *print);
int cli_autoencoder_finish(cli_job *job, const json_t *settings, const cli_print_settings *print);
int cli_run_finish(cli_job *job, const json_t *settings, const cli_print_settings *print);

/* A file of a verb: the option or word that names it, and the path, or NULL when it was not given. */
typedef struct cli_file {
    const char *name; /* "--centres", "DATA" */
    const char *path;
} cli_file;

/* Checks the files of a verb before the work; both lists end with a row without a name.  No two outputs may be one
 * file, none may be an input, all must be writable, and with --json none may be stdout, which has the object. */
int cli_files_check(const cli_file *outputs, const cli_file *inputs, bool json);
/* Where a summary for people goes: stderr when one of the outputs is stdout itself. */
FILE *cli_summary_stream(const cli_file *outputs);
/* "wrote      a.npy, b.npy"; nothing when nothing was.  `trace` may be NULL. */
void cli_print_written(FILE *stream, const cli_file *outputs, const cli_trace_settings *trace);
/* Writes a tensor of the result as .npy; does nothing without a path. */
int cli_write_tensor(const char *path, const shoal_result *result, const char *name);

/* Refuses values that are not finite, by row and column. */
int cli_check_finite(const double *values, int64_t rows, int64_t columns, const char *path);
/* Reads a whole data set as float64; every value is finite. */
int cli_read_float64(double **out, int64_t *rows, int64_t *columns, const char *path);

/* ---- printing ---------------------------------------------------------------------------------------------------- */

/* Prints one line of JSON, in ASCII, to stdout and takes the object, which may be NULL after a failure to make it. */
int cli_print_json(json_t *object);
/* Adds to an object, which becomes NULL when memory runs out and then stays so.  Takes the value. */
void cli_json_put(json_t **object, const char *name, json_t *value);
/* A string of JSON from bytes that may be no UTF-8. */
json_t *cli_json_text(const char *text);
/* A real, or null when it is not finite. */
json_t *cli_json_real(double value);
/* "17 bytes", "1.2 GB": three digits or so, in thousands. */
void cli_format_bytes(char *out, size_t size, double bytes);
/* "1,204" */
void cli_format_count(char *out, size_t size, int64_t count);
/* Writes text from a file, a store or another machine, or its first bytes, without what could speak to a terminal. */
void cli_put_text(FILE *stream, const char *text);
void cli_put_text_n(FILE *stream, const char *text, size_t length);

#endif
