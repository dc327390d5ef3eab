/* How many machines a job should have now.
 *
 *     control_state state = {0};
 *     control_question question = {.option = option, .options = 8, .trend = &trend, .course = course, .running = 2,
 *                                  .deadline = 600, .budget = INFINITY};
 *     control_answer answer = control_choose(&state, &question);     // once a round
 *     ... answer.machines; answer.verdict says whether what was asked for can be kept
 *
 * With a deadline: the fewest machines whose 95% bound meets it.  With a budget: the fastest whose bound fits it.  With
 * both: the cheapest that meets both.  Where nothing does, it is the best that can be done; with a budget, which always
 * holds, the fastest within it.  Up at once, a little further each time; down only when three rounds in a row agree and
 * by at least 15%, and then to the most that these three wanted.  Pure. */
#ifndef CONTROL_CHOICE_H
#define CONTROL_CHOICE_H

#include <stdbool.h>
#include <stdint.h>

#include "control/forecast.h"

typedef struct control_question {
    const control_option *option; /* of 1, 2, ... machines, or of those that are allowed, ascending */
    int64_t options;
    const control_trend *trend;
    control_course course; /* but for `now` */
    int64_t running;       /* machines that are there or on their way; 0: none yet */
    double deadline;       /* seconds from now; INFINITY: none */
    double budget;         /* money from now on; INFINITY: none */
} control_question;

typedef enum control_verdict {
    CONTROL_KEPT,   /* the bound meets what was asked for */
    CONTROL_LATE,   /* nothing meets the deadline: this is what comes nearest */
    CONTROL_DEAR,   /* nothing fits the budget: this is the cheapest */
    CONTROL_EITHER, /* it can be expected, but not in 95% of cases; or one of the two can be met and not both */
    CONTROL_VERDICTS
} control_verdict;

/* What is remembered from round to round. */
typedef struct control_state {
    int64_t low;     /* rounds in a row that wanted fewer */
    int64_t most;    /* that these wanted */
    int64_t changes; /* so far: the more there were, the more is needed for another */
} control_state;

typedef struct control_answer {
    int64_t machines; /* how many there should be */
    int64_t wanted;   /* what this moment alone says */
    control_verdict verdict;
    control_band band; /* with `machines` */
} control_answer;

control_answer control_choose(control_state *state, const control_question *question);

#endif
