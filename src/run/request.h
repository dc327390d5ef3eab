/* What a run is asked to do, from the command line to the job's spec: one structure.
 *
 * Its options are groups of tables (run_request_groups), so that a command line, a program (shoal_request_set) and what
 * a job kept of itself (kept_request.h) fill it alike.  The learner's own options follow it, as large as they
 * are. */
#ifndef RUN_REQUEST_H
#define RUN_REQUEST_H

#include <stdbool.h>
#include <stdint.h>
#include <shoal/run.h>

#include "base/option.h"
#include "data/table/content.h"
#include "learn/face.h"

/* ---- options ----------------------------------------------------------------------------------------------------- */

/* How a process computes. */
typedef struct run_place {
    int64_t threads;
    const char *kernel;
    const char *device;
    int64_t rows_per_grain;
} run_place;

enum { RUN_ENGINE_AUTO, RUN_ENGINE_THREADS, RUN_ENGINE_MPI };

/* With whom, and what is kept on the way. */
typedef struct run_ranks_options {
    int engine; /* RUN_ENGINE_AUTO, ... */
    int64_t verify;
    double checkpoint; /* seconds; 0: never */
    const char *file;  /* or URL of the checkpoint; NULL: LEARNER.checkpoint */
    bool resume;
} run_ranks_options;

/* With less a worker could not do anything. */
enum { RUN_WORKER_MEMORY_LEAST = 32 << 20 };

/* Workers that meet in a store. */
typedef struct run_workers_options {
    const char *store;   /* URL */
    shoal_texts workers; /* "local:8", "ssh:corn10,corn11:8" */
    const char *ssh;     /* the command to use for ssh: */
    const char *reduce, *roles, *name;
    int64_t slices, keep_rounds, worker_memory;
    double lease, patience;
    bool detach;
    /* What the job is held to while it runs (hold.h), as people write it; NULL for nothing. */
    const char *hold_deadline, *budget, *price;
    bool or_stop;
    const char *held_picture; /* listed with the outputs */
    bool aimed;               /* what it is held to lies in the store: it is resumed */
    /* Of `shoal job resume`, for jobs that were submitted elsewhere (kept_request.h). */
    bool foreign;           /* it is one */
    bool write_outputs;     /* also those that only the store names */
    const char *allow_code; /* SHA-256 of what may be run, with commas between */
    const char *data_root;  /* folder, or start of URLs, that rows may be read from */
    bool as_scaled;         /* what `shoal job scale` asked for before counts more than `workers` */
    bool passing;           /* it only measures: it is removed however it ends, nobody is told how it could go on, and
                             * history has no line of it */
} run_workers_options;

/* How the rounds of a run are told while it goes. */
typedef struct run_trace_options {
    const char *trace;       /* a file of JSON lines, or NULL; listed with the outputs */
    const char *tensorboard; /* a folder, or NULL */
} run_trace_options;

/* How rows are drawn as dots (plot.h). */
typedef struct run_plot_settings {
    const char *columns; /* two, for the axes; NULL: those that there are, or principal components */
} run_plot_settings;

/* What people wrote themselves and want run: a command, or a module. */
typedef struct run_function {
    const char *exec;   /* a command line; NULL: the module */
    shoal_texts send;   /* files that the command needs on workers besides */
    const char *module; /* a C file or a shared object */
    int files;          /* in memory, that the command needs on workers */
    shoal_code file[SHOAL_CODE_MOST];
} run_function;

/* Where maps get blobs, and where those go that they put: folders, or URLs of stores; NULL for none. */
typedef struct run_blobs {
    const char *from, *to;
} run_blobs;

extern const shoal_option *const run_function_options;      /* of run_function: --exec, --send */
extern const shoal_option *const run_data_options;          /* of shoal_data_options */
extern const shoal_option *const run_rows_options;          /* the same without `missing`: rows stay as they are */
extern const shoal_option *const run_place_options;         /* of run_place */
extern const shoal_option *const run_ranks_options_table;   /* of run_ranks_options */
extern const shoal_option *const run_engine_options;        /* the first of them: for what has no rounds to speak of */
extern const shoal_option *const run_workers_options_table; /* of run_workers_options */
extern const shoal_option *const run_foreign_options;       /* of the same, for jobs that were submitted elsewhere */
extern const shoal_option *const run_trace_options_table;   /* of run_trace_options */
extern const shoal_option *const run_plot_options;          /* of run_plot_settings */

/* Who leads a job on workers in this process, where only this process knows what the next round is; its workers map and
 * reduce. */
typedef struct run_leader {
    void *context;
    int (*begin)(void *context, const char *store_url, const char *id, const char *spec); /* when it is submitted */
    void (*end)(void *context); /* if it began, before its workers are waited for */
} run_leader;

/* ---- the request ------------------------------------------------------------------------------------------------- */

struct shoal_request {
    const learn_face *face;
    const shoal_algorithm *algorithm; /* the face's, or the module that was loaded */
    const char *data;                 /* the path, or URL; NULL: `rows` */
    shoal_data_options reading;
    learn_inputs inputs;
    const char *output[LEARN_OUTPUTS_MOST]; /* paths, in the order of the face's list */
    bool force;                             /* outputs replace whatever has their names */
    data_picture_settings picture;
    run_blobs blobs;
    run_plot_settings plot;
    run_trace_options trace;
    run_place place;
    run_ranks_options ranks;
    run_workers_options workers;
    bool json; /* stdout has an object, so that no output may go there */

    const double *start; /* values in memory to start from; NULL for none */
    int64_t start_rows, start_columns;
    shoal_data *rows; /* in memory; not owned */
    const double *weights;
    shoal_data *target;           /* what is known of each row; not owned */
    const shoal_row_memory *into; /* where tensors of the result go (shoal_run_options.into); NULL for nowhere */
    const char *program;
    bool bound; /* to this process: workers end with it, and nothing is noted on this machine */
    shoal_watcher watch;
    const run_leader *leader; /* NULL: any worker leads */
    run_function function;    /* of learners that run what people wrote */

    struct run_texts *texts;    /* that shoal_request_set copied */
    _Alignas(16) char config[]; /* the learner's options */
};

/* Texts that options point to. */
typedef struct run_texts run_texts;
int run_texts_keep(const char **out, run_texts **texts, const char *text);
void run_texts_free(run_texts **texts);
/* SHOAL_USAGE for an option that is not there, with the one that was probably meant. */
int run_fail_no_option(const char *whose, const base_option_group *groups, const char *name);

/* Bytes of a request for this learner. */
size_t run_request_size(const learn_face *face);
/* Makes zeroed memory a request with its defaults. */
int run_request_init(shoal_request *request, const learn_face *face);

enum { RUN_GROUPS_MOST = 12 };

/* The groups of options of a request for this learner that lies at `offset`; returns how many there are.  What `groups`
 * points to lasts until the process ends. */
int run_request_groups(base_option_group groups[RUN_GROUPS_MOST], const learn_face *face, size_t offset);

/* Whether the options ask for workers. */
bool run_on_workers(const run_workers_options *options);
/* SHOAL_USAGE for what can be refused before anything is read or met. */
int run_workers_check(const run_workers_options *options);
/* A refusal of the library begins with the field it is about; the user is told the option instead. */
int run_blame_option(int status);

/* ---- its files --------------------------------------------------------------------------------------------------- */

/* A file: the option or word that names it, and the path, or NULL when it was not given. */
typedef struct run_file {
    const char *name; /* "--centres", "DATA" */
    const char *path;
    data_content content; /* of an output: what will be written, as far as it is known */
} run_file;

enum { RUN_FILES_MOST = LEARN_OUTPUTS_MOST + 6 + SHOAL_CODE_MOST, RUN_NAME_BYTES = 40 };

/* Files that a request names, in the order in which they are shown; a row without a name ends them. */
typedef struct run_files {
    run_file file[RUN_FILES_MOST];
    char name[RUN_FILES_MOST][RUN_NAME_BYTES];
} run_files;

/* What it writes: the learner's outputs and the trace; --tensorboard is a folder and not among them. */
void run_request_outputs(run_files *out, const shoal_request *request);
/* The same once the rows are known: `columns` is how many they have. */
void run_request_outputs_for(run_files *out, const shoal_request *request, int64_t columns);
/* What it reads. */
void run_request_inputs(run_files *out, const shoal_request *request);

/* Checks files before the work; both lists end with a row without a name.  The names of outputs must say a format, no
 * two may be one file, none may be an input, all must be writable, and with `json` none may be stdout, which has the
 * object. */
int run_files_check(const run_file *outputs, const run_file *inputs, bool json);
/* Refuses outputs whose names are taken by files that hold something else, unless `force`. */
int run_files_check_old(const run_file *outputs, bool force);

/* Outputs that were written beside their paths, since other files took these during the run. */
typedef struct run_moved {
    char *sentence; /* about the first of them; NULL for none */
} run_moved;

/* Where an output goes at the end of the run: to its path, or beside it when a file has appeared there that may not be
 * replaced, which is noted in *moved.  The caller frees *out. */
int run_file_place(char **out, run_moved *moved, const run_file *output, bool force);
/* Once all is written: SHOAL_SYSTEM, with where to look, if something was moved; `status` otherwise. */
int run_moved_tell(run_moved *moved, int status);

extern const shoal_option *const run_force_options; /* of a bool: --force */
/* Refuses an output that is one of the files of a list; `why` ends the sentence. */
int run_files_apart(const run_file *output, const run_file *list, const run_file *end, const char *why);
/* Whether one of them is stdout itself. */
bool run_files_have_stdout(const run_file *files);

/* Whether DATA is a blob of a store, whose rows stay there until a run fetches those that it needs. */
bool run_is_in_store(const char *path);
/* Whether a file can be read only once, and by one process: standard input, a pipe. */
bool run_is_read_once(const char *path);

#endif
