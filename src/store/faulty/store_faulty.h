/* What the files of the faulty store share.  See store_faulty.c. */
#ifndef STORE_FAULTY_H
#define STORE_FAULTY_H

#include "store/store_internal.h"

/* ---- what is asked for (store_faulty_spec.c) --------------------------------------------------------------------- */

/* One kind of fault: how likely a call meets it, and its parameter. */
typedef struct fault {
    double chance;
    double seconds;
    shoal_cause cause; /* SHOAL_CAUSE_NONE for any that fits */
    bool given;
} fault;

typedef struct fault_spec {
    uint64_t seed;
    fault before, after, cut, throttle, delay, duplicate, stale, forget;
} fault_spec;

/* Reads "seed:7,before:0.05,delay:0.1/20ms".  SHOAL_USAGE with a sentence. */
int fault_spec_parse(fault_spec *out, const char *text);

/* ---- what was there before (store_faulty_past.c) ----------------------------------------------------------------- */

/* A change that went through this handle, and what it takes to undo it. */
typedef struct past_change {
    enum { PAST_BLOB, PAST_PUSH, PAST_FINISH } what;
    int64_t time;
    char *name;         /* key or queue */
    shoal_blob former;  /* what was there, with etag and age; for a queue the message */
    bool was_there;     /* whether anything was */
    shoal_etag version; /* what was written; empty when it was removed */
} past_change;

/* The changes of the last `seconds`, oldest first.  The owner locks it. */
typedef struct past {
    double seconds; /* 0: none are kept */
    past_change *changes;
    size_t count, room;
} past;

/* Takes the change over, also when it fails. */
int past_add(past *past, past_change *change);
/* The first change of a blob since a moment, whose `former` was there then; NULL when it was not changed. */
const past_change *past_since(const past *past, const char *key, int64_t since);
/* Makes a page look as it did at that moment.  `first` when it is the first page. */
int past_show(const past *past, shoal_listing *page, const char *prefix, const char *after, bool first, int64_t since);
/* Undoes in `store` what was done since a moment, the last first, and forgets it.  What someone else has changed
 * meanwhile stays as it is. */
int past_undo(past *past, shoal_store *store, int64_t since);
void past_change_release(past_change *change);
void past_release(past *past);

#endif
