/* The commands of one trial: one, or several at once that repeat it (--repeat), whose reports are averaged step by
 * step.  As sweep_process (process.h) otherwise. */
#ifndef SWEEP_REPEATS_H
#define SWEEP_REPEATS_H

#include "process.h"

enum { SWEEP_REPEATS_MOST = 32 };

typedef struct sweep_repeats {
    sweep_process *process[SWEEP_REPEATS_MOST];
    int count;    /* 0: nothing runs */
    double sign;  /* -1 where values are to be great */
    double value; /* the best of their means so far; NaN: none */
    int64_t step; /* the last that all have reported */
    char note[SWEEP_NOTE_BYTES];
} sweep_repeats;

/* As sweep_process_follow, of all of them. */
sweep_event sweep_repeats_follow(sweep_repeats *repeats, int64_t until, double timeout, int64_t moment,
                                 const volatile int *stop);
/* As sweep_process_take: means where all have reported. */
void sweep_repeats_take(sweep_ended *out, sweep_repeats *repeats, int64_t until);
const char *sweep_repeats_note(const sweep_repeats *repeats);
/* Ends all. */
void sweep_repeats_end(sweep_repeats *repeats);

#endif
