/* Copying between stores and folders, many blobs and files at once; removing and listing what is in a store.
 *
 *     const transfer_options options = {.recursive = true, .jobs = 8, .patience = 60, .stop = &stop};
 *     transfer_report report = {0};
 *     int status = transfer_put(&report, (const char *const[]){"results"}, 1, "az://acct/box/2026/", &options);
 *     printf("%lld files, %lld failed\n", (long long)report.files, (long long)report.failed);
 *     transfer_report_release(&report);
 *
 * The caller's thread finds what is to be copied, in the order of names; some others copy.  A blob goes to its place at
 * once or not at all, whatever happens.  What was done is written into a journal, so that the same call, made again,
 * goes on from there; what no journal knows is skipped only when both ends have the same bytes.  One that fails does
 * not stop the others.  Memory is bounded: a thread has one buffer of 16 MiB, and what is larger goes through it in
 * pieces, which several threads fetch at once.
 *
 * Places in stores are named by URLs, whose part behind the store itself is a key or the start of keys. */
#ifndef TRANSFER_H
#define TRANSFER_H

#include <stdbool.h>
#include <shoal/store.h>

/* How far it is. */
typedef struct transfer_counts {
    int64_t files, files_found; /* copied, skipped and failed; all that are known of */
    int64_t bytes, bytes_found;
    bool all_found; /* otherwise there may be more */
    double seconds;
} transfer_counts;

/* How it is to be done, and whom to tell meanwhile.  Functions may be NULL. */
typedef struct transfer_options {
    bool recursive;  /* everything below a name, under the same names */
    bool verify;     /* read back what was written and compare checksums */
    bool create;     /* make the target's container or bucket when it is not there; a folder needs no such leave */
    bool if_absent;  /* never replace: a key that has other content already is a failure */
    bool all;        /* a whole store may be removed, with `recursive` */
    int64_t jobs;    /* how many to move at once; 1 or more */
    double patience; /* seconds that one request may take, all its attempts included */

    const volatile int *stop; /* NULL or a flag that a signal handler or another thread sets: nothing more is begun */
    /* Stopping now would leave something to go on from; or no longer.  Called by the caller's thread. */
    void (*on_stoppable)(void *context, bool stoppable);
    /* About ten times a second, or for every thousand keys that are removed; by the caller's thread. */
    void (*on_progress)(void *context, const transfer_counts *so_far);
    /* After a stop a request hangs.  Called by a separate thread, and may end the process: what has no final name yet
     * is for the next call to find.  If it returns, the request is waited for. */
    void (*on_hang)(void *context);
    void *context;
} transfer_options;

/* What came of it. */
enum { TRANSFER_NAMED = 5 };
typedef struct transfer_report {
    bool begun;                  /* nothing was wrong with what was asked, so that there is something to tell */
    int64_t files, bytes;        /* copied, or removed */
    int64_t skipped;             /* there already, and the same */
    int64_t resumed;             /* bytes that an earlier run had moved of blobs this run completed */
    int64_t failed, found;       /* found: all of them */
    char *named[TRANSFER_NAMED]; /* what went wrong first */
    double seconds;
    shoal_store_counts requests; /* to all stores that took part */
} transfer_report;

void transfer_report_release(transfer_report *report);

/* These return the status of the whole: failed entries make it SHOAL_INVALID, with a sentence, or that of the only one;
 * SHOAL_STOPPED after a stop.  The report, zero before, is to be released in any case. */

/* Files, and with `recursive` folders, into a store: one to the key that the URL names; several, or when it ends with
 * '/' or names a store, below it by their own names.  "-" is standard input. */
int transfer_put(transfer_report *report, const char *const *paths, int count, const char *url,
                 const transfer_options *options);
/* Blobs into files: one to the target; several, or when it ends with '/', below it by the last segments of their
 * keys. */
int transfer_get(transfer_report *report, const char *const *urls, int count, const char *target,
                 const transfer_options *options);
/* A key, or all below it, from one store to another or to other keys of the same. */
int transfer_copy(transfer_report *report, const char *from_url, const char *to_url, const transfer_options *options);
/* Removes keys, and with `recursive` all below them. */
int transfer_remove(transfer_report *report, const char *const *urls, int count, const transfer_options *options);

/* The bytes of keys, one after another, to a file, which may be a pipe or /dev/stdout. */
int transfer_stream(const char *const *urls, int count, const char *path, double patience);
/* Whether a path is a pipe or a device, which is written to rather than replaced. */
bool transfer_is_stream(const char *path);

/* One key of a listing.  Keys come in the order of their bytes, so those of one segment follow each other. */
typedef struct transfer_listed {
    const shoal_entry *entry;
    const char *name; /* the part of the entry's key after what the URL names */
    size_t segment;   /* bytes of the name's first segment, its '/' included */
    bool starts;      /* the key before has another first segment */
} transfer_listed;

/* Calls `visit` for the key that the URL names, if there is one, and for all below it, until that returns a failure.
 * SHOAL_ABSENT when there is neither. */
int transfer_list(const char *url, double patience, int (*visit)(void *context, const transfer_listed *listed),
                  void *context);

#endif
