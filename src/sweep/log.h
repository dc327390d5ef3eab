/* The log of decisions: what a sweep's course (course.h) was told and what followed, one entry after another.
 *
 *     {"results": [{"order": 3, "step": 6, "value": 0.25}], "asks": 1,
 *      "orders": [{"order": 4, "trial": 4, "until": 2, "point": {"rate": 0.01}}]}
 *
 * An entry takes results in and gives orders, which follow from it and from all entries before.  Whoever looks after a
 * sweep makes the next entry and puts it where there is none yet; if somebody else was first, theirs counts.  So
 * everybody has the same course, and anybody may end at any moment.  Limits, stops and what was found by another sweep
 * are entries, too:
 *
 *     {"adopted": [{"point": {"rate": 0.02}, "step": 9, "value": 0.3}], "from": "other"}
 *
 * In strict order an entry takes one result and gives one order: order k follows from the results of orders 0 to
 * k - ahead and no others, whoever is fast.  Where none follows the place of the order stays empty.
 *
 * Pure: no clock, no store. */
#ifndef SWEEP_LOG_H
#define SWEEP_LOG_H

#include "course.h"

enum { SWEEP_WHY_BYTES = 160 };

typedef struct sweep_log {
    sweep_rules rules;
    double sign;   /* -1 where values are to be great */
    int64_t ahead; /* in strict order; 0: in the order in which results come */
    sweep_course course;
    char **entry; /* their texts */
    int64_t entries, entries_room;
    int64_t *place; /* strict: the order in each place, -1: it stayed empty */
    int64_t places, places_room;
    bool has_adopted;
    double price, budget;      /* dollars: of an hour of a worker, and of all; 0: nobody said */
    int64_t empty;             /* places at the end that stayed empty */
    char why[SWEEP_WHY_BYTES]; /* it was stopped; "" when it was not, or goes on */
} sweep_log;

/* What the next entry is to take in. */
typedef struct sweep_taken {
    const sweep_result *result; /* whose values are as people see them: not negated */
    int64_t results;
    int64_t asks;    /* orders wanted; ignored in strict order, which gives one */
    const char *why; /* it is to stop, and why; NULL otherwise */
    int64_t trials;  /* of new limits, 0: they stay */
    double goal;
    double price, budget; /* with them; dollars, 0: none */
    json_t *adopted;      /* an entry with another sweep's trials; NULL otherwise */
} sweep_taken;

/* `rules` are copied, but for their limits, which entries set. */
void sweep_log_init(sweep_log *log, const sweep_rules *rules, bool maximise, int64_t ahead);
void sweep_log_release(sweep_log *log);
/* The text of the next entry, which the caller frees; the log is as if it had it.  What is not to be put is undone by
 * sweep_log_restart. */
int sweep_log_make(char **out, sweep_log *log, const sweep_taken *taken);
/* Takes an entry that somebody put, whose orders are believed as far as they can be, or, to `check` it, must be those
 * that follow.  SHOAL_BROKEN with a sentence about it. */
int sweep_log_apply(sweep_log *log, const char *text, bool check);
/* Forgets the last entry, which took nothing and gave nothing. */
void sweep_log_drop_idle(sweep_log *log);
/* Makes the course that the first `entries` lead to anew. */
int sweep_log_restart(sweep_log *log, int64_t entries);

/* Strict: the order whose result the next entry takes, -1: none. */
int64_t sweep_log_awaits(const sweep_log *log);
/* Whether nothing more is to be done: it was stopped, the goal was reached, or nothing is open and nothing follows. */
bool sweep_log_is_over(const sweep_log *log);
/* The same for a log whose decisions were only read: whether another would follow is tried. */
int sweep_log_has_ended(bool *out, sweep_log *log);

#endif
