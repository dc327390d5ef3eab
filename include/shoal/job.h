/* Jobs: learners run by workers that meet only in a store, and that nothing can stop.
 *
 *     char id[SHOAL_JOB_ID_BYTES];
 *     int status = shoal_job_submit(id, store, &shoal_kmeans, &config, data, NULL, NULL);   // on one machine
 *
 *     shoal_worker *worker = NULL;                                                          // on any number of others
 *     status = shoal_worker_new(&worker, store, &(shoal_worker_options){.algorithms = known, .job = id});
 *     status = shoal_worker_run(worker);                     // until the job has ended
 *     shoal_worker_free(&worker);
 *
 *     status = shoal_job_follow(&result, NULL, store, id, NULL);                            // wherever it is wanted
 *
 * The result's bits are those of shoal_run.  Any process may die at any moment, the one that submitted the job
 * included; the others continue, and a job without workers waits for the next one.  docs/engine-store.md explains how,
 * and why it is right. */
#ifndef SHOAL_JOB_H
#define SHOAL_JOB_H

#include <shoal/engine.h>
#include <shoal/learn.h>
#include <shoal/store.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- submitting -------------------------------------------------------------------------------------------------- */

enum { SHOAL_JOB_ID_BYTES = 64 }; /* NUL included */

/* Limits of options, so that callers can refuse other values early. */
enum {
    SHOAL_JOB_NAME_MOST = SHOAL_JOB_ID_BYTES - 18, /* letters of a name; an id adds '-' and 16 digits */
    SHOAL_JOB_SLICES_MOST = 65536,
    SHOAL_JOB_KEEP_ROUNDS_MOST = 1 << 30,
    SHOAL_JOB_WORKERS_MOST = 4096,  /* that can be asked for */
    SHOAL_JOB_SLOTS_MOST = 1 << 20, /* that are expected in all */
};
#define SHOAL_JOB_LEASE_LEAST 1.0 /* seconds */
#define SHOAL_JOB_LEASE_MOST 604800.0
#define SHOAL_JOB_PATIENCE_LEAST 0.1
#define SHOAL_JOB_PATIENCE_MOST 1e9

/* A file that a job brings along for its workers: a module that they load, the source of a program that they run.  It
 * is sent once to each machine, and named by the SHA-256 of its bytes. */
typedef struct shoal_code {
    /* Where it goes in the folder that crew->code names: "module.so", "files/f.py"; relative, no "..". */
    const char *name;
    const void *bytes;
    size_t size;
} shoal_code;

enum { SHOAL_CODE_MOST = 64 };

/* A job that is about to be put in its store. */
typedef struct shoal_job_made {
    const char *id, *spec; /* spec: its SHA-256, in hex */
    const char *source;    /* where its rows are: "uploaded", "stored", "file" or "generated" */
    const char *place;     /* the file's path; the URL of what is stored elsewhere; NULL otherwise */
    const void *bytes;     /* the spec itself, `size` bytes, for shoal_follow_options; gone after the call */
    size_t size;
} shoal_job_made;

typedef struct shoal_job_options {
    const char *name;       /* what the id starts with: a letter, then letters, digits, '-'; NULL: the learner's name */
    const char *id;         /* the whole id, for callers that make unique ones; NULL: name and 64 random bits.
                             * SHOAL_USAGE if it exists */
    int64_t slices;         /* 0: chosen from the data and the workers */
    int64_t workers;        /* how many are expected, in slots; 0: unknown.  Only a hint */
    const char *reduce;     /* "auto" (also NULL), "flat", "two-level", "tree:F", "ranged[:R]" */
    double lease;           /* seconds after which a silent worker counts as dead; 0: chosen from the store */
    int64_t keep_rounds;    /* finished rounds that stay in the store; 0: as few as are safe */
    int64_t rows_per_grain; /* 0: chosen from the shape */
    const char *kernel;     /* as in shoal_run_options */
    const char *settings;   /* the user's settings as JSON text, shown with the job; NULL for none */
    bool far;               /* some workers do not see this machine's files: rows there are uploaded */
    const shoal_code *code; /* what the learner needs besides itself, `codes` of them, at most SHOAL_CODE_MOST */
    int codes;
    /* Where workers get the blobs that maps read: a folder of this machine, the URL of a store, or "" for those that
     * the caller puts with shoal_job_put_blob; NULL: maps read none. */
    const char *from;
    bool puts;                /* maps put blobs: shoal_job_blobs gets them */
    const volatile int *stop; /* as in shoal_run_options: ends the upload with SHOAL_STOPPED */
    /* Called when the job is made, before anything of it is put, so that the caller can keep a note of it.  Any status
     * but SHOAL_OK ends the submission with that status.  May be NULL. */
    int (*made)(void *context, const shoal_job_made *job);
    void *made_context;
} shoal_job_options;

/* Opens rows in a store, a blob that is .npy, or raw as the options say, as a data set that can be described, run on
 * (shoal_run) and submitted, but not read.  `url` names the store and the key.  Runs and workers fetch ranges of the
 * blob, which must not change: its etag is remembered.  SHOAL_INVALID for what can't be used in place: Fortran order,
 * the other byte order, other formats. */
SHOAL_API int shoal_job_data_open(shoal_data **out, const char *url, const shoal_data_options *options,
                                  int64_t deadline);

/* Writes the job's spec, announces its slices, and uploads the rows where workers can't reach them otherwise: generated
 * rows are made by the workers; a plain file on this machine is mapped by them, if the store is on this machine too;
 * what shoal_job_data_open opened is fetched from where it is; all else, and weights, is uploaded.  Workers may start
 * on it before this returns.  `options` may be NULL.  `id` is set as soon as it is known, even if the call fails: what
 * there is of the job can then be resumed (shoal_job_upload, shoal_job_resume) or removed. */
SHOAL_API int shoal_job_submit(char id[SHOAL_JOB_ID_BYTES], shoal_store *store, const shoal_algorithm *algorithm,
                               const void *config, shoal_data *data, const double *weights,
                               const shoal_job_options *options);

/* Puts the files that a job brings along: part of submitting, and repeated if a store forgot them. */
SHOAL_API int shoal_job_put_code(shoal_store *store, const char *id, const shoal_code *code, int codes,
                                 int64_t deadline);

/* Puts a blob for maps to get, of a job whose `from` is "".  Workers wait for those that are not there yet. */
SHOAL_API int shoal_job_put_blob(shoal_store *store, const char *id, const char *name, const void *bytes, size_t size,
                                 int64_t deadline);
/* The blobs that maps of a job have put, to be read; they go with the job.  The store must last as long. */
SHOAL_API int shoal_job_blobs(const shoal_blobs **out, shoal_store *store, const char *id, double patience);

/* ---- working ----------------------------------------------------------------------------------------------------- */

/* What a worker may do, as in the paper: map slices, reduce groups, merge the groups and update. */
enum { SHOAL_ROLE_MAP = 1, SHOAL_ROLE_REDUCE = 2, SHOAL_ROLE_LAST = 4, SHOAL_ROLE_ALL = 7 };

struct shoal_task_entry;

typedef struct shoal_worker_options {
    const shoal_algorithm *const *algorithms; /* those it can run, ended by NULL */
    uint64_t id;                              /* what it is called; 0: random */
    const char *job;                          /* serve only this one; NULL: all jobs of the store, one after another */
    const char *spec;                         /* serve it only if its spec has this SHA-256, in hex; NULL: any */
    int slots;           /* threads it computes with, and its share of the slices; 0: as many as it may use */
    const char *kernel;  /* as in shoal_run_options */
    const char *device;  /* the same */
    unsigned roles;      /* 0: all */
    const char *cache;   /* folder for slices fetched from remote stores; NULL: none are kept */
    int64_t cache_bytes; /* how large that may grow; 0: a tenth of what is free on its disk */
    /* Address of a store that replaces the one the rows are in, for workers that can't reach that; NULL: none. */
    const char *data_url;
    /* Jobs that bring code are served only if `spec` is given, whose hash vouches for it, or if the SHA-256 of
     * everything they bring is among these: hex digits, separated by commas; NULL: none. */
    const char *allow_code;
    /* Makes a learner of the module that a job brings, from the file it is in; NULL: such jobs are refused. */
    int (*load)(const shoal_algorithm **out, int file);
    /* Files and folder stores of this machine are read only below these folders, and other stores only below these
     * URLs, separated by commas ("%2C" is a comma within a URL); NULL: nothing but `store`, "/": any file.  With
     * `spec`, any store that is not a folder may be read too. */
    const char *data_root;
    /* Bytes it may use: a job that needs more is refused, and slices that do not fit are released and loaded again; 0:
     * three quarters of the machine's memory, or of what its control group allows if that is less. */
    int64_t memory;
    /* It runs the tasks (shoal/task.h) of clients with this key, of SHOAL_TASK_KEY_BYTES, and of no others; NULL: of
     * none.  `job` may be a client's id, and `spec` the hash of its description. */
    const unsigned char *task_key;
    const struct shoal_task_entry *functions; /* that it knows itself, ended by a row without a name; or NULL */
    void (*tasks_over)(
        void); /* the tasks of a client are over, for now at least: told those that keep things; or NULL */
    /* Finds the functions of a client's module, which must stay loaded; NULL: clients with modules are refused. */
    int (*load_tasks)(const struct shoal_task_entry **out, int file);
    double idle;     /* seconds without a job after which it returns; 0: never */
    double patience; /* seconds that the store may be out of reach; 0: 300 */
    void (*log)(void *context,
                const char *line); /* one line about what it does, from any of its threads; may be NULL */
    void *log_context;
} shoal_worker_options;

typedef struct shoal_worker shoal_worker;

/* Makes the store refuse blobs that the worker could not hold (shoal_store_bound). */
SHOAL_API int shoal_worker_new(shoal_worker **out, shoal_store *store, const shoal_worker_options *options);
/* Works until the job it serves has ended in any way (SHOAL_OK), it was told to leave (SHOAL_STOPPED), or it can't
 * continue. */
SHOAL_API int shoal_worker_run(shoal_worker *worker);
/* Tells it to leave: what it holds is given back and shoal_worker_run returns within a second, unless the store
 * hangs.  `why` is for people: "SIGTERM".  From any thread. */
SHOAL_API void shoal_worker_leave(shoal_worker *worker, const char *why);
SHOAL_API void shoal_worker_free(shoal_worker **worker);

/* ---- following --------------------------------------------------------------------------------------------------- */

/* What a job took, as far as its workers reported. */
typedef struct shoal_job_report {
    shoal_report run;            /* rounds, phases, counters; threads are those of all workers at its end */
    int64_t workers, lost;       /* that took part; of these, that fell silent */
    int64_t at_end;              /* workers at its end */
    int threads_each;            /* threads of each of those; 0 when they differ */
    int64_t doubled;             /* pieces that were computed for someone else */
    shoal_store_counts requests; /* of all of them, including this process */
} shoal_job_report;

typedef struct shoal_follow_options {
    shoal_progress *progress; /* after every round, in order; rounds are skipped only if the follower falls far
                               * behind */
    void *progress_context;
    bool sparse; /* rounds may be skipped if many end in a hundredth of a second, so that it need not look so often */
    /* Called several times a second: start, watch and end workers here.  Any status but SHOAL_OK ends the following
     * with that status.  May be NULL. */
    int (*tick)(void *context);
    void *tick_context;
    /* Called when the store has forgotten what was submitted, as a crashed server may, after the spec has been put
     * again: put again whatever else was put.  NULL: nothing else was. */
    int (*forgot)(void *context);
    void *forgot_context;
    const volatile int *stop; /* as in shoal_run_options: ends the following with SHOAL_STOPPED; the job continues if it
                               * has workers */
    double patience;          /* seconds without any worker, or without the store, after which it gives up; 0: 60 */
    /* Learners, ended by NULL.  A result that its learner can't have made is ignored; NULL: any result is accepted. */
    const shoal_algorithm *const *algorithms;
    const void *spec; /* the job's spec, `spec_size` bytes, for who has just submitted it; NULL: it is fetched */
    size_t spec_size;
} shoal_follow_options;

/* Waits for the end of a job.  SHOAL_OK with the result; the failure that ended it, with its message; SHOAL_STOPPED
 * when it stopped or was cancelled and can be resumed (shoal_job_resume), with a message that says why; SHOAL_ABSENT
 * when there is no such job. report and options may be NULL; *report is filled also on failure. */
SHOAL_API int shoal_job_follow(shoal_result **out, shoal_job_report *report, shoal_store *store, const char *id,
                               const shoal_follow_options *options);

/* ---- looking after jobs ------------------------------------------------------------------------------------------ */

typedef enum shoal_job_state {
    SHOAL_JOB_RUNNING, /* has no end yet, whether or not it has workers */
    SHOAL_JOB_DONE,
    SHOAL_JOB_FAILED,    /* can be resumed after fixing the cause */
    SHOAL_JOB_CANCELLED, /* can be resumed */
} shoal_job_state;

typedef struct shoal_job_id {
    char text[SHOAL_JOB_ID_BYTES];
} shoal_job_id;

/* The names of all jobs in a store, sorted; the caller frees them. */
SHOAL_API int shoal_job_list(shoal_job_id **out, int64_t *count, shoal_store *store, int64_t deadline);
SHOAL_API void shoal_job_list_free(shoal_job_id **ids);

/* A worker, by the record it last wrote. */
typedef struct shoal_job_worker {
    uint64_t id;
    bool left;  /* it no longer takes part: `state` says why */
    bool alive; /* takes part, and wrote within the job's lease */
    double age; /* seconds since it last wrote; -1 if the store does not say */
    char host[64], kernel[16], version[24], state[400];
    int64_t pid;
    int slots;
    unsigned roles;
    double seconds;               /* since it joined */
    int64_t round, slices;        /* it is in; it holds now */
    int64_t maps, doubled;        /* pieces mapped; computed for someone else */
    int64_t fetched, hits, bytes; /* slices fetched, found in its cache; bytes fetched */
    shoal_store_counts requests;
    char log[4096]; /* its last lines */
} shoal_job_worker;

/* The state of a job. */
typedef struct shoal_job {
    char id[SHOAL_JOB_ID_BYTES], version[24], algorithm[32];
    char spec[65];      /* SHA-256 of its spec, in hex */
    char *data;         /* how messages call the rows */
    const char *source; /* where they are: "uploaded", "stored", "file" or "generated" */
    int codes;          /* files it brings along, and their names and SHA-256 in hex */
    struct shoal_job_code {
        char name[256], sha256[65];
    } code[SHOAL_CODE_MOST];
    char *settings; /* JSON text, or NULL */
    shoal_shape shape;
    double created; /* seconds since 1970 */
    double lease;
    int64_t slices, pieces, levels; /* pieces: of all levels of its reduction */

    shoal_job_state state;
    int status;    /* why it failed or was cancelled */
    char *message; /* the same for people; NULL otherwise */
    int64_t round, step, steps;
    char phase[24];
    double objective, change; /* NaN when there is none */
    double seconds;           /* since its first round began */
    int phases;
    shoal_phase phase_seconds[SHOAL_PHASES_MOST];
    /* Pieces that were computed for other workers; number of workers wanted, -1 if not set. */
    int64_t doubled, want;
    int64_t workers, live;       /* that take or took part; of these, that are alive, */
    int64_t silent, left;        /* that should be but have not written within the lease, that no longer take part */
    shoal_job_worker *worker;    /* NULL when their records were not read */
    int64_t *holder;             /* of each slice: an index into worker, or -1 */
    shoal_store_counts requests; /* of all workers */
} shoal_job;

/* Describes the state of a job, in a few requests.  The records of its workers, one more request each, are read only if
 * there are at most `records` of them: SHOAL_JOB_ALL_RECORDS reads them however many there are, 0 never.  Otherwise
 * `worker`, `holder` and `requests`, which need them, are empty. */
#define SHOAL_JOB_ALL_RECORDS INT64_MAX
SHOAL_API int shoal_job_describe(shoal_job **out, shoal_store *store, const char *id, int64_t records,
                                 int64_t deadline);
SHOAL_API void shoal_job_free(shoal_job **job);

/* The result of a job that is done.  SHOAL_STOPPED if it is not done, with a sentence about its state; SHOAL_BROKEN if
 * the result is not one that its learner can have made, if that is among `algorithms` (ended by NULL, or NULL). */
SHOAL_API int shoal_job_result(shoal_result **out, shoal_store *store, const char *id,
                               const shoal_algorithm *const *algorithms, int64_t deadline);
/* Sets how many workers are wanted, at most SHOAL_JOB_WORKERS_MOST, and reads it: -1 if not set. */
SHOAL_API int shoal_job_want(shoal_store *store, const char *id, int64_t workers, int64_t deadline);
SHOAL_API int shoal_job_wanted(int64_t *out, shoal_store *store, const char *id, int64_t deadline);
/* Tells the others that a worker is known to be dead: they need not wait for its lease to end. */
SHOAL_API int shoal_job_worker_died(shoal_store *store, const char *id, uint64_t worker, const char *why,
                                    int64_t deadline);

/* Ends a job, which can be resumed.  SHOAL_OK also when it was cancelled before; SHOAL_USAGE when it is done or
 * failed. */
SHOAL_API int shoal_job_cancel(shoal_store *store, const char *id, const char *why, int64_t deadline);
/* Takes away the end of a failed or cancelled job and announces it again.  SHOAL_OK also for a running job, and for one
 * that is done, which stays done: it may have ended since the caller looked. */
SHOAL_API int shoal_job_resume(shoal_store *store, const char *id, int64_t deadline);
/* Uploads the missing rows and weights of a job whose submission was interrupted. */
SHOAL_API int shoal_job_upload(shoal_store *store, const char *id, shoal_data *data, const double *weights,
                               const volatile int *stop, int64_t deadline);
/* Removes everything of a job; workers that still serve it stop. */
SHOAL_API int shoal_job_remove(shoal_store *store, const char *id, int64_t deadline);

#ifdef __cplusplus
}
#endif
#endif
