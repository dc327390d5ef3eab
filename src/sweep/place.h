/* A sweep in its store, below sweeps/:
 *
 *     NAME/spec                    what it is (spec.h)
 *     NAME/log/00000012            entry 12 of the log (log.h), put where there is none yet
 *     NAME/snapshot/00000256       the first 256 entries, one per line, so that reading them is one request
 *     NAME/trial/7/step/6          what came of trial 7 up to step 6, put where there is nothing yet
 *     NAME/claim/9/0               who does order 9; /1 once the first has died, and so on
 *     NAME/runner/ID               a process that does orders, and how long its workers were there (spending.h); put
 *                                  again every few seconds while it lives
 *
 * Nothing that counts is ever replaced or removed. */
#ifndef SWEEP_PLACE_H
#define SWEEP_PLACE_H

#include <shoal/store.h>

#include "log.h"
#include "spec.h"

enum { SWEEP_SNAPSHOT_EVERY = 256 };

typedef struct sweep_place {
    shoal_store *store;
    const char *name;
    double patience; /* seconds that one request may take */
} sweep_place;

/* A text by its key below the sweep's name: the caller frees it.  SHOAL_ABSENT when there is none. */
int sweep_place_get(char **out, const sweep_place *place, const char *key);
/* SHOAL_CONFLICT when there is one. */
int sweep_place_put_once(const sweep_place *place, const char *key, const char *text);
int sweep_place_put(const sweep_place *place, const char *key, const char *text);
/* Seconds since a key was put, by the store's clock; -1 when that is not known, INFINITY when there is none. */
double sweep_place_age(const sweep_place *place, const char *key);

/* Calls a function with the end of each key that begins with a prefix, until one fails. */
int sweep_place_each(const sweep_place *place, const char *prefix, int (*each)(void *context, const char *end),
                     void *context);

/* Reads the spec.  SHOAL_ABSENT when there is no such sweep. */
int sweep_place_spec(sweep_spec **out, const sweep_place *place);
/* Applies all entries that the log does not have yet. */
int sweep_place_pull(sweep_log *log, const sweep_place *place, bool check);
/* Puts the log's last entry; SHOAL_CONFLICT when somebody else's is there. */
int sweep_place_push(const sweep_log *log, const sweep_place *place);

/* ---- results ----------------------------------------------------------------------------------------------------- */

enum { SWEEP_NOTE_BYTES = 512, SWEEP_CURVE_MOST = 1000 };

typedef struct sweep_report {
    int64_t step;
    double value;                    /* as it was reported */
    double other[SWEEP_OTHERS_MOST]; /* of the further objectives; NaN where there is none */
} sweep_report;

/* What came of an order, with what the log does not have. */
typedef struct sweep_ended {
    sweep_result result;             /* its value as it was reported */
    double seconds;                  /* it took */
    double at;                       /* when it came, seconds since 1970 by the clock of its machine; 0: not known */
    int64_t cores;                   /* that it had; 0: not known */
    double other[SWEEP_OTHERS_MOST]; /* further objectives where the best value was; NaN: nothing new */
    char note[SWEEP_NOTE_BYTES];     /* why it failed */
    sweep_report *curve;             /* what was reported on the way; the caller's */
    int64_t reports;
} sweep_ended;

/* The key of an order's result. */
void sweep_result_key(char out[64], const sweep_order *order);
int sweep_place_put_result(const sweep_place *place, const sweep_order *order, const sweep_ended *ended);
/* SHOAL_ABSENT when there is none; the caller frees the curve. */
int sweep_place_get_result(sweep_ended *out, const sweep_place *place, const sweep_order *order, int64_t number);

#endif
