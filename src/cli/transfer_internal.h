/* What transfer.c (threads, and the list of what they have to do) and transfer_copy.c (copying one thing) share. */
#ifndef TRANSFER_INTERNAL_H
#define TRANSFER_INTERNAL_H

#include <pthread.h>

#include "transfer.h"
#include "transfer_file.h"

/* A blob that goes through a file in pieces. */
typedef struct large_file {
    struct large_file *next;
    transfer_entry *entry;
    transfer_part part;
    int64_t pieces, next_piece, left; /* left: neither done nor in hand */
    int in_hand;
    bool *done;
    uint32_t *crc; /* of each piece */
    int status;    /* of the piece that failed first */
    char *message;
} large_file;

struct transfer {
    transfer_plan plan;
    transfer_journal *journal;
    pthread_mutex_t lock;
    pthread_cond_t changed;       /* any of what follows */
    transfer_entry *first, *last; /* not begun */
    size_t waiting;
    large_file *large;          /* begun, with pieces that nobody has in hand, or that are in hand */
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
    cli_progress progress;
    double started, shown;
};

/* ---- transfer.c -------------------------------------------------------------------------------------------------- */

void transfer_free_entry(transfer_entry **entry);
/* Counts a failure and keeps its message, which is shoal_error's. */
void transfer_record_failure(transfer *self, int status);

/* ---- transfer_copy.c --------------------------------------------------------------------------------------------- */

/* Copies a blob or file, or begins to; what it can't finish alone it takes out of *entry and puts into
 * self->large.  The buffer has TRANSFER_PIECE bytes. */
int transfer_copy_entry(transfer *self, transfer_entry **entry, char *buffer);
/* Fetches a piece that was taken in hand.  Whoever has the last one ends the whole. */
void transfer_copy_piece(transfer *self, large_file *large, int64_t piece, char *buffer);
/* `keep` leaves its part for the next run. */
void transfer_free_large(large_file **large, bool keep);

#endif
