/* What the verbs of the program share.
 *
 * A verb is one row of the table in main.c and one file cli_<verb>.c that defines it: a name, what help says of it,
 * groups of options, and a function.  main.c reads the command line into the verb's settings, calls the function and
 * turns its answer into an exit code; the function never exits, and prints only its result.
 *
 * Exit codes: 0 done, 1 failed, 2 wrong usage, 3 a job stopped that can be resumed, 130 stopped by a signal. */
#ifndef CLI_H
#define CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <jansson.h>
#include <shoal/shoal.h>

#include "base/file.h"
#include "base/json.h"
#include "base/option.h"
#include "base/text.h"
#include "run/outcome.h"
#include "store/transfer/transfer.h"

#ifndef SHOAL_VERSION
#define SHOAL_VERSION "0.1.0"
#endif

enum { CLI_DONE = 0, CLI_FAILED = 1, CLI_WRONG_USAGE = 2, CLI_RESUMABLE = 3, CLI_INTERRUPTED = 130 };

/* ---- verbs ------------------------------------------------------------------------------------------------------- */

enum { CLI_WORDS_MOST = 3 };

typedef struct cli_verb {
    const char *name;    /* "kmeans"; "data info" is two words on the command line */
    const char *summary; /* one line without a full stop */
    const char
        *word[CLI_WORDS_MOST]; /* names of the arguments that are not options: "DATA"; "FILE..." is one or more */
    int words_least;           /* how many of them must be there, */
    bool (*stands_alone)(const void *settings); /* unless its options say all; may be NULL */
    bool words_in_synopsis;         /* it shows them itself, and run() counts them: not every use has the same */
    const char *synopsis;           /* the rest of the usage line: "-k K [options]" */
    bool options_lead;              /* what follows the first word are words, too: those of a command */
    const char *const *description; /* paragraphs, ended by NULL: help has the first, the manual all */
    const learn_example *examples;  /* ended by a row without a command */
    const base_option_group *options;
    size_t settings_size;   /* of the struct the options fill; it starts with a cli_common */
    bool of_ranks;          /* several ranks run it together (run/ranks.h) */
    const learn_face *face; /* the learner whose verb it is; NULL for others */
    /* Does the work.  `word` has `words` entries, the rest NULL.  Returns SHOAL_OK, a failure with its message set,
     * or CLI_INTERRUPTED or CLI_RESUMABLE after it has said what there is. */
    int (*run)(void *settings, const char *const *word, int words);
} cli_verb;

/* Every verb, in the order help lists them; ended by NULL.  In main.c. */
const cli_verb *const *cli_verbs(void);
/* The verb of a learner, made from its face; NULL when it has none (learner_verb.c). */
const cli_verb *cli_learner_verb(const learn_face *face);
/* `shoal plan NAME`, made from the same; NULL when there is none.  And the one for modules (cli_plan.c). */
const cli_verb *cli_plan_verb(const learn_face *face);
const cli_verb *cli_plan_run(void);
/* Lists the outputs that `shoal predict` has, from the faces of all learners. */
void cli_predict_prepare(void);
/* Makes the options of `shoal run`. */
void cli_run_prepare(void);
/* Makes the options of `shoal data pack`. */
void cli_data_pack_prepare(void);
extern const cli_verb cli_predict, cli_run, cli_data_info, cli_data_head, cli_data_convert, cli_data_split,
    cli_data_shuffle, cli_data_patches, cli_data_pack, cli_data_verify, cli_data_speed, cli_man, cli_help,
    cli_completion;
extern const cli_verb cli_store_ls, cli_store_get, cli_store_put, cli_store_cat, cli_store_rm, cli_store_du,
    cli_store_copy, cli_store_bench;
extern const cli_verb cli_map;
extern const cli_verb cli_calibrate;
extern const cli_verb cli_plan_search;
extern const cli_verb cli_sweep, cli_sweep_show, cli_sweep_best, cli_sweep_table, cli_sweep_export, cli_sweep_check,
    cli_sweep_list, cli_sweep_plot, cli_sweep_watch;
extern const cli_verb *const cli_cluster_verbs[]; /* ended by NULL */
extern const cli_verb cli_agent, cli_check;
extern const cli_verb cli_worker, cli_job_list, cli_job_show, cli_job_watch, cli_job_wait, cli_job_logs, cli_job_result,
    cli_job_scale, cli_job_deadline, cli_job_budget, cli_job_resume, cli_job_cancel, cli_job_remove;

/* The verb called by `count` words ("data", "info", or just "data-info"); NULL when there is none. */
const cli_verb *cli_verb_find(const char *const *word, int count);
/* Whether the verb's first word is `first`, as "data" is of several; and whether there is any such verb. */
bool cli_verb_is_of(const cli_verb *verb, const char *first);
bool cli_verb_family(const char *first);
/* Fails with the sentence for a verb that does not exist, or (for `shoal help`) a topic. */
int cli_verb_unknown(const char *const *word, int count);
int cli_topic_unknown(const char *const *word, int count);

/* ---- options that several verbs have ----------------------------------------------------------------------------- */

typedef struct cli_common {
    bool help;
    const struct cli_verb *verb; /* that runs */
} cli_common;

typedef struct cli_print_settings {
    bool json, quiet;
} cli_print_settings;

extern const shoal_option *const cli_common_options; /* of cli_common */
extern const shoal_option *const cli_print_options;  /* of cli_print_settings */

/* The columns of the terminal stdout is, or 80. */
int cli_width(void);

/* ---- topics of help (topics.c) ----------------------------------------------------------------------------------- */

/* A term and its meaning, or a paragraph when the term is NULL; a row without a text ends a list. */
typedef struct cli_note {
    const char *term, *text;
} cli_note;

typedef struct cli_topic {
    const char *name;    /* "exit-codes" */
    const char *summary; /* one line without a full stop */
    const cli_note *notes;
} cli_topic;

extern const cli_topic *const cli_topics; /* ended by a row without a name */
extern const cli_note cli_exit_codes[], cli_variables[];

/* The topic that the words name; NULL when there is none. */
const cli_topic *cli_topic_find(const char *const *word, int count);
void cli_help_topic(FILE *stream, const cli_topic *topic);
void cli_manual_notes(FILE *stream, const cli_note *notes);

/* ---- help (help.c) ----------------------------------------------------------------------------------------------- */

void cli_help_program(FILE *stream);
void cli_help_verb(FILE *stream, const cli_verb *verb);
/* Lists the verbs whose first word is `first`, and explains the topic of that name if there is one. */
void cli_help_family(FILE *stream, const char *first);
void cli_manual_program(FILE *stream);
void cli_manual_verb(FILE *stream, const cli_verb *verb);

/* ---- signals (signals.c) ----------------------------------------------------------------------------------------- */

/* SIGINT, SIGTERM and SIGHUP remove temporary outputs and end the process, unless a stop is allowed: then the first
 * one only sets the flag.  SIGBUS says that a mapped file shrank; for rows data.h does. */
void cli_signals_start(void);
void cli_signals_allow_stop(bool allow);
/* Files and then folders that go when a signal ends the process; ended by NULL, and the caller's.  NULL: none. */
void cli_signals_remove(const char *const *paths);
const volatile int *cli_signals_stop(void);
/* Whether the flag is set, for any thread. */
bool cli_signals_stopped(void);
/* Ends the program after a stop, at once: threads may still wait for a server.  What they have open is left as it is,
 * which must be good for the next run. */
_Noreturn void cli_signals_leave(void);

/* ---- progress (progress.c, watch.c) -------------------------------------------------------------------- */

typedef struct cli_progress {
    FILE *stream; /* NULL when nothing is to be shown */
    bool dirty;   /* there is text on the line */
    double shown; /* when it was last changed */
    char phase[24];
    double phase_started; /* in seconds of the run */
    int64_t phase_rounds;
    double rows_per_second, last; /* of the last round; when it ended */
    const learn_face *face;       /* of the run, for what it says of rounds; NULL: it is not known */
    struct {
        bool known; /* the first round of which the face said how far it is */
        double done, rows, seconds;
    } begun;
} cli_progress;

void cli_progress_start(cli_progress *progress, bool quiet);
/* One line of text until something else is shown: "loading rows.npy". */
void cli_progress_say(cli_progress *progress, const char *text);
/* As a shoal_progress callback is called. */
void cli_progress_round(cli_progress *progress, const shoal_round *done, const shoal_round *next, int64_t rows,
                        double seconds);
/* How far a copy is: "3 of 12 files, 1.2 of 3.4 GB, 35 MB/s, 1:03 left". */
void cli_progress_transfer(cli_progress *progress, const transfer_counts *so_far);
void cli_progress_clear(cli_progress *progress);

/* How a verb watches a run: a line of progress, and what it says. */
typedef struct cli_watch {
    cli_progress progress;
    bool quiet;
} cli_watch;

void cli_watch_start(cli_watch *watch, bool quiet);
/* For a request; `watch` must last as long. */
shoal_watcher cli_watcher(cli_watch *watch);

/* ---- what came of a run (outcome_print.c) ------------------------------------------------------------------------ */

/* Tells of a run that shoal_request_run or run_resume has ended with `status`: the summary or the object that --json
 * prints, the sentence after a stop.  Returns what the verb does. */
int cli_outcome_tell(const shoal_outcome *outcome, const cli_print_settings *print, int status);
/* What every --json of a run says; the caller adds to it and owns it.  NULL when out of memory. */
json_t *cli_outcome_json(const shoal_outcome *outcome);
/* "data       rows.npy: 150 rows, 4 columns, float64" */
void cli_outcome_print_data(const shoal_outcome *outcome, FILE *stream);
/* How a file was read: its header, with the names of its own first `columns`, and what became of missing values; to go
 * on with a line, and for --json. */
void cli_print_reading(FILE *stream, const shoal_data *data, int64_t columns);
void cli_json_reading(json_t **object, const shoal_data *data);
/* A line on stderr about records that --skip-broken left out, if there are any. */
void cli_tell_skipped(const shoal_data *data);
/* "load 0.01 s, scan 0.10 s, ..." and the kernel and threads, as the summary for people shows them. */
void cli_outcome_print_times(const shoal_outcome *outcome, FILE *stream);
/* Adds what a face tells: numbers, and tensors of one dimension as lists. */
void cli_json_facts(json_t **object, const shoal_result *facts);
/* Numbers of a result as JSON has them. */
json_t *cli_json_number(const shoal_result *result, const shoal_number *number);

/* Where a summary for people goes: stderr when one of the outputs is stdout itself. */
FILE *cli_summary_stream(const run_file *outputs);
/* "wrote      a.npy, b.npy"; nothing when nothing was.  `folder` may be NULL. */
void cli_print_written(FILE *stream, const run_file *outputs, const char *folder);

/* ---- printing ---------------------------------------------------------------------------------------------------- */

/* Prints one line of JSON, in ASCII, to stdout and takes the object, which may be NULL after a failure to make it. */
int cli_print_json(json_t *object);
/* Writes text from a file, a store or another machine, or its first bytes, without what could speak to a terminal. */
void cli_put_text(FILE *stream, const char *text);
void cli_put_text_n(FILE *stream, const char *text, size_t length);

#endif
