/* See plan_search_print.h.  Everything of a search is shown from its trials, so that a search that was resumed shows
 * the same. */
#include "cli.h"
#include "plan_search_print.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "plan_search_journal.h"
#include "plan_units.h"

/* ---- values ------------------------------------------------------------------------------------------------------ */

static double value_of(const cli_search_state *state, const cli_search_trial *trial)
{
    double dollars = cli_search_dollars(trial, state->space);
    switch (state->options.objective) {
    case PLAN_TIME: return trial->seconds;
    case PLAN_COST: return dollars;
    default: return dollars * trial->seconds;
    }
}

static void format_value(char out[CLI_UNITS_BYTES], const cli_search_state *state, double value)
{
    if (state->options.objective == PLAN_TIME)
        cli_format_duration(out, value);
    else if (state->options.objective == PLAN_COST)
        cli_format_money(out, value);
    else
        snprintf(out, CLI_UNITS_BYTES, "%.3g $ h", value / 3600);
}

/* "8 of c7i.large: 12.4 s, $0.0421" */
static void format_trial(char out[CLI_SEARCH_LABEL_BYTES + 80], const cli_search_state *state,
                         const cli_search_trial *trial)
{
    char label[CLI_SEARCH_LABEL_BYTES], time[CLI_UNITS_BYTES], money[CLI_UNITS_BYTES];
    double dollars = cli_search_dollars(trial, state->space);
    cli_search_label(label, state->space, trial->candidate);
    cli_format_duration(time, trial->seconds);
    cli_format_money(money, dollars);
    snprintf(out, CLI_SEARCH_LABEL_BYTES + 80, "%s: %s%s%s", label, time, isnan(dollars) ? "" : ", ",
             isnan(dollars) ? "" : money);
}

static bool meets(const cli_search_state *state, const cli_search_trial *trial)
{
    const plan_search_options *options = &state->options;
    return trial->outcome == PLAN_TRIAL_DONE && !(options->deadline > 0 && trial->seconds > options->deadline) &&
           !(options->budget > 0 && cli_search_dollars(trial, state->space) > options->budget);
}

static const cli_search_trial *trial_of(const cli_search_state *state, int64_t candidate)
{
    for (int64_t i = 0; i < state->trials; i++)
        if (state->trial[i].candidate == candidate)
            return &state->trial[i];
    return NULL;
}

/* The least by some measure, of those that are done (and, if asked, meet the limits), but for one of them; NULL for
 * none. */
static const cli_search_trial *least_trial(const cli_search_state *state,
                                           double (*measure)(const cli_search_state *, const cli_search_trial *),
                                           bool must_meet, const cli_search_trial *but)
{
    const cli_search_trial *least = NULL;
    for (int64_t i = 0; i < state->trials; i++) {
        const cli_search_trial *trial = &state->trial[i];
        bool counts = must_meet ? meets(state, trial) : trial->outcome == PLAN_TRIAL_DONE;
        if (counts && trial != but && (!least || measure(state, trial) < measure(state, least)))
            least = trial;
    }
    return least;
}

static double seconds_of(const cli_search_state *state, const cli_search_trial *trial)
{
    (void)state;
    return trial->seconds;
}

static double dollars_of(const cli_search_state *state, const cli_search_trial *trial)
{
    return cli_search_dollars(trial, state->space);
}

/* What the model expects most of, among what was not tried. */
typedef struct expectation {
    int64_t candidate;       /* -1: it has no opinion */
    double value, low, high; /* median, and the limits of 90% */
} expectation;

static expectation expect(const cli_search_state *state)
{
    expectation out = {.candidate = -1};
    for (int64_t i = 0; i < state->space->plan.candidates; i++) {
        double mean, deviation;
        if (trial_of(state, i) || plan_search_opinion(&mean, &deviation, state->search, i) < 0 || !isfinite(mean) ||
            !isfinite(deviation))
            continue;
        if (out.candidate < 0 || exp(mean) < out.value)
            out = (expectation){i, exp(mean), exp(mean - 1.645 * deviation), exp(mean + 1.645 * deviation)};
    }
    return out;
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

static int column_width(const cli_search_dimension *dimension)
{
    size_t width = strlen(dimension->name);
    for (int64_t i = 0; i < dimension->values; i++)
        width = strlen(dimension->text[i]) > width ? strlen(dimension->text[i]) : width;
    return width > 40 ? 40 : (int)width;
}

static void print_value(const cli_search_dimension *dimension, const char *text)
{
    int width = column_width(dimension);
    printf(dimension->is_text ? "  %-*.*s" : "  %*.*s", width, width, text);
}

void cli_search_print_head(const cli_search_state *state)
{
    printf("%5s", "trial");
    for (int i = 0; i < state->space->dimensions; i++)
        print_value(&state->space->dimension[i], state->space->dimension[i].name);
    printf("  %9s  %9s  %s\n", "time", "cost", "why");
    fflush(stdout);
}

void cli_search_print_trial(const cli_search_state *state, int64_t index)
{
    const cli_search_trial *trial = &state->trial[index];
    char time[CLI_UNITS_BYTES], money[CLI_UNITS_BYTES], trouble[128];
    cli_format_duration(time, trial->seconds);
    cli_format_money(money, cli_search_dollars(trial, state->space));
    cli_search_trouble(trouble, trial);
    printf("%5" PRId64, index + 1);
    for (int i = 0; i < state->space->dimensions; i++)
        print_value(&state->space->dimension[i], cli_search_text(state->space, trial->candidate, i));
    if (trial->outcome == PLAN_TRIAL_TIMED_OUT)
        printf("  %9s  %9s  %s (timed out after %s)\n", "-", money, trial->why, time);
    else if (trial->outcome == PLAN_TRIAL_FAILED)
        printf("  %9s  %9s  %s (%s after %s)\n", "-", money, trial->why, trouble, time);
    else
        printf("  %9s  %9s  %s\n", time, money, trial->why);
    fflush(stdout);
}

/* ---- the end ----------------------------------------------------------------------------------------------------- */

static const char *adjective(const cli_search_state *state)
{
    static const char *const words[] = {"fastest", "cheapest", "one with the least cost times time"};
    return words[state->options.objective];
}

/* " that meets the deadline of 2 h and the budget of $5" */
static void format_limits(char *out, size_t size, const cli_search_state *state, const char *verb)
{
    char deadline[CLI_UNITS_BYTES], budget[CLI_UNITS_BYTES];
    const plan_search_options *options = &state->options;
    cli_format_duration(deadline, options->deadline);
    cli_format_money(budget, options->budget);
    out[0] = '\0';
    if (options->deadline > 0 && options->budget > 0)
        snprintf(out, size, " %s the deadline of %s and the budget of %s", verb, deadline, budget);
    else if (options->deadline > 0)
        snprintf(out, size, " %s the deadline of %s", verb, deadline);
    else if (options->budget > 0)
        snprintf(out, size, " %s the budget of %s", verb, budget);
}

static void print_best(const cli_search_state *state, const cli_search_trial *best)
{
    char text[CLI_SEARCH_LABEL_BYTES + 80], limits[160];
    int64_t done = 0;
    for (int64_t i = 0; i < state->trials; i++)
        done += state->trial[i].outcome == PLAN_TRIAL_DONE;
    format_trial(text, state, best);
    printf("best       %s\n", text);
    format_limits(limits, sizeof limits, state, "that meets");
    printf("why        the %s of %" PRId64 " trial%s%s", adjective(state), state->trials, state->trials == 1 ? "" : "s",
           limits);
    if (done < state->trials)
        printf("; %" PRId64 " did not get done", state->trials - done);
    putchar('\n');
}

static void print_compared(const cli_search_state *state, const cli_search_trial *best)
{
    static const char *const more[] = {"slower", "dearer", "more"};
    char text[CLI_SEARCH_LABEL_BYTES + 80];
    const cli_search_trial *next = least_trial(state, value_of, true, best),
                           *fastest = least_trial(state, seconds_of, false, NULL);
    if (next) {
        format_trial(text, state, next);
        printf("compared   the next best is %.1f%% %s: %s\n", 100 * (value_of(state, next) / value_of(state, best) - 1),
               more[state->options.objective], text);
    }
    if (fastest && fastest != best && fastest != next) {
        format_trial(text, state, fastest);
        printf("           the fastest was %s\n", text);
    }
}

static void print_expected(const cli_search_state *state)
{
    char label[CLI_SEARCH_LABEL_BYTES], value[CLI_UNITS_BYTES], low[CLI_UNITS_BYTES], high[CLI_UNITS_BYTES];
    expectation expected = expect(state);
    int64_t left = state->space->plan.candidates - state->trials;
    if (left <= 0)
        printf("model      everything was tried\n");
    if (expected.candidate < 0)
        return;
    cli_search_label(label, state->space, expected.candidate);
    format_value(value, state, expected.value);
    format_value(low, state, expected.low);
    format_value(high, state, expected.high);
    printf("model      of the %" PRId64 " not tried it expects most of %s: %s (%s to %s in 90%% of cases)\n", left,
           label, value, low, high);
}

void cli_search_print_end(const cli_search_state *state)
{
    char label[CLI_SEARCH_LABEL_BYTES];
    int64_t best = plan_search_best(state->search);
    const cli_search_trial *trial = best >= 0 ? trial_of(state, best) : NULL;
    putchar('\n');
    if (trial) {
        print_best(state, trial);
        print_compared(state, trial);
        print_expected(state);
    }
    if (state->next >= 0) {
        cli_search_label(label, state->space, state->next);
        printf("next       try %s: %s\n", label, state->stopped);
        return;
    }
    printf("stopped    %s\n", state->stopped);
    if (state->journal)
        printf("journal    %s\n", state->journal);
}

int cli_search_check_best(const cli_search_state *state)
{
    char limits[160], fastest[CLI_SEARCH_LABEL_BYTES + 80], cheapest[CLI_SEARCH_LABEL_BYTES + 80], trouble[128];
    const cli_search_trial *quick = least_trial(state, seconds_of, false, NULL),
                           *cheap = least_trial(state, dollars_of, false, NULL);
    if (plan_search_best(state->search) >= 0 || state->trials == 0)
        return SHOAL_OK;
    if (!quick) {
        cli_search_trouble(trouble, &state->trial[state->trials - 1]);
        if (state->trials == 1)
            return shoal_fail(SHOAL_INVALID, "the only trial did not get done: %s", trouble);
        return shoal_fail(SHOAL_INVALID, "none of the %" PRId64 " trials got done; the last: %s", state->trials,
                          trouble);
    }
    format_limits(limits, sizeof limits, state, "meets");
    format_trial(fastest, state, quick);
    format_trial(cheapest, state, cheap);
    if (state->options.budget > 0 && cheap != quick)
        return shoal_fail(SHOAL_INVALID, "nothing that was tried%s: the fastest was %s; the cheapest was %s", limits,
                          fastest, cheapest);
    return shoal_fail(SHOAL_INVALID, "nothing that was tried%s: the fastest was %s", limits, fastest);
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static json_t *candidate_json(const cli_search_state *state, int64_t candidate)
{
    json_t *object = json_object();
    for (int i = 0; i < state->space->dimensions; i++) {
        const cli_search_dimension *dimension = &state->space->dimension[i];
        int64_t value = cli_search_value(state->space, candidate, i);
        cli_json_put(&object, dimension->name,
                     i == CLI_SEARCH_COUNT ? json_integer(state->space->candidate[candidate].count)
                     : dimension->is_text  ? cli_json_text(dimension->text[value])
                                           : json_real(dimension->number[value]));
    }
    return object;
}

static json_t *expected_json(const cli_search_state *state)
{
    expectation expected = expect(state);
    if (expected.candidate < 0)
        return json_null();
    json_t *object = candidate_json(state, expected.candidate);
    cli_json_put(&object, "value", cli_json_real(expected.value));
    cli_json_put(&object, "low", cli_json_real(expected.low));
    cli_json_put(&object, "high", cli_json_real(expected.high));
    return object;
}

int cli_search_print_json(const cli_search_state *state)
{
    json_t *object = json_object(), *list = json_array(), *best = json_null(), *next = NULL;
    int64_t chosen = plan_search_best(state->search);
    for (int64_t i = 0; i < state->trials; i++) {
        json_array_append_new(list, cli_search_trial_json(&state->trial[i], state->space, i + 1));
        if (state->trial[i].candidate == chosen && chosen >= 0)
            best = cli_search_trial_json(&state->trial[i], state->space, i + 1);
    }
    if (state->next >= 0) {
        next = candidate_json(state, state->next);
        cli_json_put(&next, "why", cli_json_text(state->stopped));
    }
    cli_json_put(&object, "objective", json_string(state->objective));
    cli_json_put(&object, "configurations", json_integer(state->space->plan.candidates));
    cli_json_put(&object, "best", best);
    cli_json_put(&object, "trials", list);
    cli_json_put(&object, "expected", expected_json(state));
    if (next)
        cli_json_put(&object, "next", next);
    else
        cli_json_put(&object, "stopped_because", cli_json_text(state->stopped));
    return cli_print_json(object);
}
