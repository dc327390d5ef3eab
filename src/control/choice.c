/* How many machines a job should have now.  See choice.h. */
#include "control/choice.h"

#include <math.h>
#include <stddef.h>

enum { AGREE = 3 };
static const double LOWER = 0.15;          /* fewer by less than this are no reason to change */
static const double LOWER_EACH = 0.02;     /* that much more with every change */
static const double RAISE_EACH = 0.01;     /* of a deadline, that a raise has in hand, with every change */
static const double NEARLY_AS_CHEAP = 1.1; /* for which a deadline is worth being kept by what may not be paid for */
static const double RESERVE = 0.02;        /* of a deadline, for what happens after the last round was foretold */

static const control_option *option_of(const control_question *question, int64_t machines)
{
    const control_option *best = NULL;
    for (int64_t i = 0; i < question->options; i++)
        if (!best || question->option[i].machines <= machines)
            best = &question->option[i];
    return best;
}

static control_band foresee(const control_question *question, const control_option *option)
{
    control_course course = question->course;
    course.now = question->running > 0 ? option_of(question, question->running) : NULL;
    return control_foresee(question->trend, option, &course);
}

/* What one number of machines means for deadline and budget. */
typedef struct outlook {
    const control_option *option;
    control_band band;
    bool in_time, fits,
        likely; /* 95% of cases are in time; 95% cost no more than there is; the expected one does not */
} outlook;

static outlook look_at(const control_question *question, const control_option *option, double reserve)
{
    control_band band = foresee(question, option);
    return (outlook){.option = option,
                     .band = band,
                     .in_time = band.high <= question->deadline * (1 - reserve),
                     .fits = band.cost_high <= question->budget,
                     .likely = band.cost <= question->budget};
}

/* Keeps in *best what has less of something. */
static void keep_less(outlook *best, double *least, const outlook *one, bool counts, double value)
{
    if (!counts || (best->option && value >= *least))
        return;
    *best = *one;
    *least = value;
}

/* What this moment alone asks for. */
static const control_option *choose_now(control_verdict *verdict, const control_question *question, double reserve)
{
    enum { FEWEST, BOTH, NEARLY, FASTEST, AFFORDABLE, LIKELY, CHEAPEST, KINDS };
    outlook best[KINDS] = {{0}};
    double least[KINDS] = {0};
    for (int64_t i = 0; i < question->options; i++) {
        outlook one = look_at(question, &question->option[i], reserve);
        double cost = one.band.cost, high = one.band.high;
        keep_less(&best[FEWEST], &least[FEWEST], &one, one.in_time, (double)one.option->machines);
        keep_less(&best[BOTH], &least[BOTH], &one, one.in_time && one.fits, cost);
        keep_less(&best[NEARLY], &least[NEARLY], &one, one.in_time && one.likely, cost);
        keep_less(&best[FASTEST], &least[FASTEST], &one, true, high);
        keep_less(&best[AFFORDABLE], &least[AFFORDABLE], &one, one.fits, high);
        keep_less(&best[LIKELY], &least[LIKELY], &one, one.likely, high);
        keep_less(&best[CHEAPEST], &least[CHEAPEST], &one, true, cost);
    }
    const control_option *present = question->running > 0 ? option_of(question, question->running) : NULL;
    double least_cost_in_time = best[FEWEST].option ? best[FEWEST].band.cost : INFINITY;
    bool timed = isfinite(question->deadline), bounded = isfinite(question->budget);
    *verdict = CONTROL_KEPT;
    if (!timed && !bounded)
        return option_of(question, question->running);
    if (!bounded && best[FEWEST].option)
        return best[FEWEST].option;
    if (timed && bounded && best[BOTH].option)
        return best[BOTH].option;
    if (!timed && best[AFFORDABLE].option)
        return best[AFFORDABLE].option;
    *verdict = !bounded || (!best[FEWEST].option && best[AFFORDABLE].option) ? CONTROL_LATE
               : best[NEARLY].option || best[AFFORDABLE].option              ? CONTROL_EITHER
                                                                             : CONTROL_DEAR;
    return !bounded                                                                         ? best[FASTEST].option
           : best[NEARLY].option                                                            ? best[NEARLY].option
           : best[AFFORDABLE].option                                                        ? best[AFFORDABLE].option
           : best[LIKELY].option                                                            ? best[LIKELY].option
           : best[FEWEST].option && least_cost_in_time <= NEARLY_AS_CHEAP * least[CHEAPEST] ? best[FEWEST].option
           : present && look_at(question, present, reserve).band.cost <= NEARLY_AS_CHEAP * least[CHEAPEST]
               ? present
               : best[CHEAPEST].option;
}

/* Fewer by enough, three times in a row: then the most of the three. */
static int64_t lower_by_consent(control_state *state, int64_t wanted, int64_t running)
{
    double enough = LOWER + LOWER_EACH * (double)state->changes;
    if ((double)wanted > (1 - enough) * (double)running) {
        state->low = 0;
        return running;
    }
    if (++state->low == 1 || wanted > state->most)
        state->most = wanted;
    return state->low >= AGREE ? state->most : running;
}

control_answer control_choose(control_state *state, const control_question *question)
{
    control_answer answer = {0};
    int64_t running = question->running;
    answer.wanted = choose_now(&answer.verdict, question, RESERVE)->machines;
    answer.machines = answer.wanted;
    if (running > 0) {
        outlook present = look_at(question, option_of(question, running), RESERVE);
        bool holds = present.in_time && present.fits && option_of(question, running)->machines == running;
        double off = fabs((double)(answer.wanted - running));
        if (answer.verdict != CONTROL_KEPT && off <= LOWER * (double)running) {
            answer.machines = running; /* what can't be kept is no reason to run about */
            state->low = 0;
        } else if (answer.wanted < running) {
            answer.machines = lower_by_consent(state, answer.wanted, running);
        } else if (answer.wanted > running && holds && !isfinite(question->deadline) && off > LOWER * (double)running) {
            state->low = 0; /* money is there to be faster */
        } else if (answer.wanted > running && !holds) {
            /* A little more than that, the more so the more often it was not enough. */
            control_verdict verdict;
            double reserve = RESERVE + RAISE_EACH * (double)(1 + state->changes);
            const control_option *more = choose_now(&verdict, question, fmin(reserve, 0.5));
            answer.machines = verdict == CONTROL_KEPT ? more->machines : answer.wanted;
            state->low = 0;
        } else {
            answer.machines = running;
            state->low = 0;
        }
    }
    if (answer.machines != running) {
        state->changes += running > 0;
        state->low = 0;
    }
    answer.band = foresee(question, option_of(question, answer.machines));
    return answer;
}
