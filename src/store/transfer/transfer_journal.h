/* What a transfer has done, so that the same command continues where it was stopped.
 *
 *     transfer_journal *journal = NULL;
 *     transfer_journal_open(&journal, "dir:/tmp/st/jobs", "/home/me/out");
 *     transfer_mark mark = transfer_mark_of((const char *const[]){"done", key, etag, there, NULL});
 *     if (!transfer_journal_has(journal, &mark)) { ...; transfer_journal_add(journal, &mark); }
 *     transfer_journal_close(&journal, true);
 *
 * A journal is a set of marks, and a mark is the hash of all that makes a piece of work the same: a name and the
 * versions at both ends.  So it can only ever say "this very thing was done": a journal that is damaged, cut or
 * somebody else's costs time, never data.  It lies in $XDG_STATE_HOME/shoal (~/.local/state/shoal) under the hash of
 * both ends' names. */
#ifndef TRANSFER_JOURNAL_H
#define TRANSFER_JOURNAL_H

#include <stdbool.h>

typedef struct transfer_journal transfer_journal;

enum { TRANSFER_MARK_BYTES = 16 };

typedef struct transfer_mark {
    unsigned char bytes[TRANSFER_MARK_BYTES];
} transfer_mark;

/* The mark of a list of texts, ended by NULL: its order and where one text ends matter. */
transfer_mark transfer_mark_of(const char *const *texts);

/* Reads the journal of a transfer between two ends, or starts it. */
int transfer_journal_open(transfer_journal **out, const char *from, const char *to);
/* These may be called from any thread, and do nothing when the journal is NULL.  A mark that can't be written is
 * forgotten: the work will be looked at again. */
bool transfer_journal_has(transfer_journal *journal, const transfer_mark *mark);
void transfer_journal_add(transfer_journal *journal, const transfer_mark *mark);
/* When all is done, what this run did not ask for is dropped, so that a journal does not grow forever. */
void transfer_journal_close(transfer_journal **journal, bool all_done);

#endif
