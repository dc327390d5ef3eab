/* What the files of a transfer share.
 *
 *     transfer *self = NULL;
 *     int status = transfer_start(&self, options, &to, from_name, to_name);
 *     if (status == SHOAL_OK) status = transfer_add_keys(self, &from, "", true);     // as often as there are sources
 *     status = transfer_finish(&self, status, report);
 *
 * transfer.c has the threads and the list of what they have to do, transfer_sources.c fills it, transfer_copy.c copies
 * one thing.  What is asked for is taken apart in transfer_put.c, transfer_get.c and transfer_between.c. */
#ifndef TRANSFER_INTERNAL_H
#define TRANSFER_INTERNAL_H

#include <pthread.h>

#include "store/store_internal.h"
#include "store/store_place.h"
#include "transfer.h"
#include "transfer_file.h"
#include "transfer_journal.h"

enum { TRANSFER_PIECE = 16 << 20 };

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

/* A blob that goes through a file in pieces. */
typedef struct large_file {
    struct large_file *next;
    transfer_entry *entry;
    transfer_part part;
    int64_t pieces, next_piece, left; /* left: neither done nor being copied */
    int in_hand;
    bool *done;
    uint32_t *crc; /* of each piece */
    int status;    /* of the piece that failed first */
    char *message;
} large_file;

typedef struct transfer {
    const transfer_options *options;
    const store_place *to; /* NULL: files */
    transfer_journal *journal;
    pthread_mutex_t lock;
    pthread_cond_t changed;       /* any of what follows */
    transfer_entry *first, *last; /* not begun */
    size_t waiting;
    large_file *large;          /* started, with pieces that are waiting or being copied */
    int busy, alive;            /* threads that have something in hand; that have not ended */
    bool closed;                /* nothing will be added */
    bool stopping;              /* nothing is to be begun */
    bool no_memory;             /* a thread ended for want of its buffer */
    int64_t found_bytes, moved; /* of all that was found; moved or skipped so far */
    transfer_report report;
    int last_failure;
    int64_t out_of_reach; /* failures in a row, none copied between them, because a passing trouble did not pass */
    bool gave_up;         /* because of them */
    pthread_t *threads, watcher;
    int thread_count;
    bool watched, over;   /* there is a watcher; it may end */
    pthread_cond_t ended; /* `over` is set */
    double started, shown;
} transfer;

/* ---- transfer.c -------------------------------------------------------------------------------------------------- */

/* To a place in a store, or with `to` NULL to files.  The names are those of both ends, for the journal. */
int transfer_start(transfer **out, const transfer_options *options, const store_place *to, const char *from_name,
                   const char *to_name);
/* Takes a copy of the entry, its texts included, and waits while there are too many already.  SHOAL_STOPPED after a
 * stop. */
int transfer_add(transfer *self, const transfer_entry *entry);
/* Takes note of one that can't be copied, for the reason in shoal_error. */
void transfer_add_failure(transfer *self);
/* Waits for all of it.  `status` is what adding came to; when that failed, nothing new is begun.  Returns the status of
 * the whole. */
int transfer_finish(transfer **self, int status, transfer_report *report);

void transfer_free_entry(transfer_entry **entry);
/* Counts a failure and keeps its message, which is shoal_error's. */
void transfer_record_failure(transfer *self, int status);

/* ---- transfer_copy.c --------------------------------------------------------------------------------------------- */

/* Copies a blob or file, or begins to; what it can't finish alone it takes out of *entry and puts into
 * self->large.  The buffer has TRANSFER_PIECE bytes. */
int transfer_copy_entry(transfer *self, transfer_entry **entry, char *buffer);
/* Fetches a piece that was taken.  The thread with the last piece completes the file. */
void transfer_copy_piece(transfer *self, large_file *large, int64_t piece, char *buffer);
/* `keep` leaves its part for the next run. */
void transfer_free_large(large_file **large, bool keep);

/* ---- transfer_sources.c ------------------------------------------------------------------------------------------ */

/* The key that `from` names to `target`; with `recursive` all below it, to the same names below `target`. */
int transfer_add_keys(transfer *self, const store_place *from, const char *target, bool recursive);
/* The same of a file or of all files in a folder. */
int transfer_add_files(transfer *self, const char *path, const char *target);
/* One file whose content has no separate name. */
int transfer_add_unnamed(transfer *self, const char *path, const char *target);

/* Says of a key that is not there whether there is something below it: what -r "takes" or "removes"; `more` ends the
 * sentence when there is nothing. */
int transfer_fail_absent(const store_place *from, const char *does, const char *more);

#endif
