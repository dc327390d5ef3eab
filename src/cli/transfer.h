/* Copying many blobs and files at once.
 *
 *     transfer *copying = NULL;
 *     transfer_start(&copying, &settings, &to);
 *     transfer_add_keys(copying, &from, "", true);         // as often as there are sources
 *     status = transfer_finish(&copying, status, &report);
 *
 * One thread (the caller's) finds what is to be copied, in the order of names; some others copy.  A blob goes to its
 * place at once or not at all, whatever happens.  What was done is written into a journal, so that the same command,
 * given again, goes on from there; what no journal knows is skipped only when both ends have the same bytes.  One that
 * fails does not stop the others.  Memory is bounded: a thread has one buffer of TRANSFER_PIECE bytes, and what is
 * larger goes through it in pieces, which several threads fetch at once. */
#ifndef TRANSFER_H
#define TRANSFER_H

#include "cli.h"
#include "store_open.h"
#include "transfer_journal.h"

enum { TRANSFER_PIECE = 16 << 20, TRANSFER_NAMED = 5 };

typedef struct transfer_settings {
    bool recursive, verify;
    int64_t jobs;
} transfer_settings;

typedef struct transfer_target_settings {
    bool create, if_absent;
} transfer_target_settings;

extern const shoal_option *const transfer_options;        /* of transfer_settings */
extern const shoal_option *const transfer_target_options; /* of transfer_target_settings */

/* What came of it. */
typedef struct transfer_report {
    int64_t files, bytes;        /* copied */
    int64_t skipped;             /* there already, and the same */
    int64_t resumed;             /* bytes that an earlier run had fetched of blobs this run completed */
    int64_t failed, found;       /* found: all of them */
    char *named[TRANSFER_NAMED]; /* what went wrong first */
    double seconds;
} transfer_report;

void transfer_report_release(transfer_report *report);

/* One blob or file to copy. */
typedef struct transfer_entry {
    struct transfer_entry *next;
    const store_place *from; /* NULL: a file */
    char *source, *target;   /* keys, or paths */
    int64_t size;
    shoal_etag version; /* of the source; empty when nobody can tell whether it has changed since */
    int64_t there;      /* the size of what the target is now; -1 when there is nothing */
    shoal_etag there_version;
} transfer_entry;

typedef struct transfer transfer;

/* How it is to be done; `to` is NULL for files. */
typedef struct transfer_plan {
    const transfer_settings *settings;
    const store_place *to;
    bool if_absent, quiet;
    char *from_name, *to_name; /* of both ends, for the journal; this takes them */
} transfer_plan;

int transfer_start(transfer **out, const transfer_plan *plan);
/* Takes a copy of the entry, its texts included, and waits while there are too many already.  SHOAL_STOPPED after a
 * signal. */
int transfer_add(transfer *self, const transfer_entry *entry);
/* Takes note of one that can't be copied, for the reason in shoal_error. */
void transfer_add_failure(transfer *self);
/* Waits for all of it.  `status` is what adding came to; when that failed, nothing new is begun.  Returns the status of
 * the whole: failed entries make it SHOAL_INVALID, with a sentence, or that of the only one. */
int transfer_finish(transfer **self, int status, transfer_report *report);

/* ---- what to copy (transfer_sources.c) --------------------------------------------------------------------------- */

/* The key that `from` names to `target`; with `recursive` all below it, to the same names below `target`. */
int transfer_add_keys(transfer *self, const store_place *from, const char *target, bool recursive);
/* The same of a file or of all files in a folder. */
int transfer_add_files(transfer *self, const char *path, const char *target);
/* One file whose content has no name of its own. */
int transfer_add_unnamed(transfer *self, const char *path, const char *target);

/* ---- for transfer_sources.c -------------------------------------------------------------------------------------- */

const store_place *transfer_to(const transfer *self);

/* ---- telling (transfer_print.c) ---------------------------------------------------------------------------------- */

/* Prints the summary, as text or JSON; `what` is "put".  `stores` are all that took part, `count` of them. */
int transfer_print(const transfer_report *report, const char *what, const cli_print_settings *print,
                   const store_place *const *stores, size_t count);
/* {"get": 12, ...}, and the price of the requests. */
void cli_json_put_counts(json_t **object, const store_place *const *stores, size_t count);

#endif
