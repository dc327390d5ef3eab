/* What a running job is held to, and how that stands: two small blobs beside the job, for whoever looks after its
 * workers, whoever shows it, and whoever goes on after either has died.
 *
 *     control_aim aim;
 *     int status = control_aim_get(&aim, store, id, deadline);        // SHOAL_ABSENT: the job is held to nothing
 *     aim.deadline = now + 5400;
 *     status = control_aim_put(store, id, &aim, deadline);            // `shoal job deadline`: it holds within seconds
 *
 *     jobs/ID/aim      what people want: written by them
 *     jobs/ID/held     how it stands, and what is needed to go on: written by who looks after the workers
 *
 * Both are JSON in a frame, and hostile until checked: numbers out of range make the blob SHOAL_BROKEN. */
#ifndef CONTROL_AIM_H
#define CONTROL_AIM_H

#include <stdbool.h>
#include <stddef.h>
#include <shoal/store.h>

#include "control/choice.h"

typedef struct control_aim {
    double deadline; /* seconds since 1970; 0: none */
    double budget;   /* of money, in all; 0: none */
    double price;    /* of one worker, an hour; 0: none */
    bool or_stop;    /* what can't be met stops the job */
} control_aim;

int control_aim_get(control_aim *out, shoal_store *store, const char *id, int64_t deadline);
int control_aim_put(shoal_store *store, const char *id, const control_aim *aim, int64_t deadline);

bool control_aim_same(const control_aim *a, const control_aim *b);

typedef struct control_held {
    control_trend trend;
    control_state state;
    bool blind;            /* the model knows nothing of the job: the trend is learnt from its rounds alone */
    char phase[24];        /* that the trend was last corrected in */
    double worker_seconds; /* of all workers so far */
    double spent;          /* at the prices there were */
    int64_t workers;       /* that there should be now */
    int64_t least, most;   /* that there may be */
    control_verdict verdict;
    double at;              /* of all this, seconds since 1970 */
    double end, low, high;  /* of the job, seconds since 1970: expected, 90% of cases; 0: not foretold */
    double cost, cost_high; /* of the whole job: expected, and of 95% of cases */
} control_held;

int control_held_get(control_held *out, shoal_store *store, const char *id, int64_t deadline);
int control_held_put(shoal_store *store, const char *id, const control_held *held, int64_t deadline);

/* An hour of a worker costs that from now on: what was worked while nothing had a price counts, too. */
void control_held_price(control_held *held, double price);
/* Whether what is asked for is not even to be expected at that moment: the deadline has passed, or is foretold to. */
bool control_is_hopeless(const control_aim *aim, const control_held *held, double now);

enum { CONTROL_LINE_BYTES = 320 };
/* "ends in 8.2 min (7.9 to 8.6), 1.8 min before its deadline, with 3 of 1 to 8 workers; $0.12 spent, $0.31 in all" */
void control_describe(char out[CONTROL_LINE_BYTES], const control_aim *aim, const control_held *held, double now);

#endif
