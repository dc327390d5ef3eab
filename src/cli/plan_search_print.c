/* See plan_search_print.h.  Everything of a search is shown from its trials, so that a search that was resumed shows
 * the same. */
#include "cli.h"
#include "plan_search_print.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "plan/search/search_run.h"
#include "plan/units.h"

/* ---- values ------------------------------------------------------------------------------------------------------ */

static double trial_value(const plan_session *session, const plan_trial_record *trial)
{
    double dollars = plan_search_dollars(trial, session->space);
    switch (session->wish->options.objective) {
    case PLAN_TIME: return trial->seconds;
    case PLAN_COST: return dollars;
    default: return dollars * trial->seconds;
    }
}

static void format_value(char out[PLAN_UNITS_BYTES], const plan_session *session, double value)
{
    if (session->wish->options.objective == PLAN_TIME)
        plan_format_duration(out, value);
    else if (session->wish->options.objective == PLAN_COST)
        plan_format_money(out, value);
    else
        snprintf(out, PLAN_UNITS_BYTES, "%.3g $ h", value / 3600);
}

/* "8 of c7i.large: 12.4 s, $0.0421" */
static void format_trial(char out[PLAN_SEARCH_LABEL_BYTES + 80], const plan_session *session,
                         const plan_trial_record *trial)
{
    char label[PLAN_SEARCH_LABEL_BYTES], time[PLAN_UNITS_BYTES], money[PLAN_UNITS_BYTES];
    double dollars = plan_search_dollars(trial, session->space);
    plan_search_label(label, session->space, trial->candidate);
    plan_format_duration(time, trial->seconds);
    plan_format_money(money, dollars);
    snprintf(out, PLAN_SEARCH_LABEL_BYTES + 80, "%s: %s%s%s", label, time, isnan(dollars) ? "" : ", ",
             isnan(dollars) ? "" : money);
}

static bool trial_meets(const plan_session *session, const plan_trial_record *trial)
{
    const plan_search_options *options = &session->wish->options;
    return trial->outcome == PLAN_TRIAL_DONE && !(options->deadline > 0 && trial->seconds > options->deadline) &&
           !(options->budget > 0 && plan_search_dollars(trial, session->space) > options->budget);
}

static const plan_trial_record *trial_of(const plan_session *session, int64_t candidate)
{
    for (int64_t i = 0; i < session->trials; i++)
        if (session->trial[i].candidate == candidate)
            return &session->trial[i];
    return NULL;
}

/* The least by some measure, of those that are done (and, if asked, meet the limits), but for one of them; NULL for
 * none. */
static const plan_trial_record *least_trial(const plan_session *session,
                                            double (*measure)(const plan_session *, const plan_trial_record *),
                                            bool must_meet, const plan_trial_record *but)
{
    const plan_trial_record *least = NULL;
    for (int64_t i = 0; i < session->trials; i++) {
        const plan_trial_record *trial = &session->trial[i];
        bool counts = must_meet ? trial_meets(session, trial) : trial->outcome == PLAN_TRIAL_DONE;
        if (counts && trial != but && (!least || measure(session, trial) < measure(session, least)))
            least = trial;
    }
    return least;
}

static double trial_seconds(const plan_session *session, const plan_trial_record *trial)
{
    (void)session;
    return trial->seconds;
}

static double dollars_of(const plan_session *session, const plan_trial_record *trial)
{
    return plan_search_dollars(trial, session->space);
}

/* What the model expects most of, among what was not tried. */
typedef struct expectation {
    int64_t candidate;       /* -1: it has no opinion */
    double value, low, high; /* median, and the limits of 90% */
} expectation;

static expectation expect(const plan_session *session)
{
    expectation out = {.candidate = -1};
    for (int64_t i = 0; i < session->space->list.candidates; i++) {
        double mean, deviation;
        if (trial_of(session, i) || plan_search_opinion(&mean, &deviation, session->search, i) < 0 || !isfinite(mean) ||
            !isfinite(deviation))
            continue;
        if (out.candidate < 0 || exp(mean) < out.value)
            out = (expectation){i, exp(mean), exp(mean - 1.645 * deviation), exp(mean + 1.645 * deviation)};
    }
    return out;
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

static int column_width(const plan_search_dimension *dimension)
{
    size_t width = strlen(dimension->name);
    for (int64_t i = 0; i < dimension->values; i++)
        width = strlen(dimension->text[i]) > width ? strlen(dimension->text[i]) : width;
    return width > 40 ? 40 : (int)width;
}

static void print_value(const plan_search_dimension *dimension, const char *text)
{
    int width = column_width(dimension);
    printf(dimension->is_text ? "  %-*.*s" : "  %*.*s", width, width, text);
}

void cli_search_print_head(const plan_session *session)
{
    printf("%5s", "trial");
    for (int i = 0; i < session->space->dimensions; i++)
        print_value(&session->space->dimension[i], session->space->dimension[i].name);
    printf("  %9s  %9s  %s\n", "time", "cost", "why");
    fflush(stdout);
}

void cli_search_print_trial(const plan_session *session, int64_t index)
{
    const plan_trial_record *trial = &session->trial[index];
    char time[PLAN_UNITS_BYTES], money[PLAN_UNITS_BYTES], trouble[128];
    plan_format_duration(time, trial->seconds);
    plan_format_money(money, plan_search_dollars(trial, session->space));
    plan_search_trouble(trouble, trial);
    printf("%5" PRId64, index + 1);
    for (int i = 0; i < session->space->dimensions; i++)
        print_value(&session->space->dimension[i], plan_search_text(session->space, trial->candidate, i));
    if (trial->outcome == PLAN_TRIAL_TIMED_OUT)
        printf("  %9s  %9s  %s (timed out after %s)\n", "-", money, trial->why, time);
    else if (trial->outcome == PLAN_TRIAL_FAILED)
        printf("  %9s  %9s  %s (%s after %s)\n", "-", money, trial->why, trouble, time);
    else
        printf("  %9s  %9s  %s\n", time, money, trial->why);
    fflush(stdout);
}

/* The last lines of a file, each behind `prefix`. */
static void print_tail(FILE *stream, const char *path, const char *prefix, int lines)
{
    char text[4096];
    plan_search_read_tail(text, sizeof text, path);
    size_t end = strlen(text);
    while (end > 0 && strchr("\n ", text[end - 1]))
        text[--end] = '\0';
    char *from = text + end;
    for (int line = 0; from > text; from--)
        if (from[-1] == '\n' && ++line == lines)
            break;
    for (char *rest = NULL, *line = strtok_r(from, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        fputs(prefix, stream);
        cli_put_text(stream, line);
        fputc('\n', stream);
    }
}

void cli_search_print_failure(const plan_trial_record *trial, const char *stdout_path, const char *stderr_path)
{
    struct stat info;
    if (trial->outcome != PLAN_TRIAL_FAILED)
        return;
    bool in_stderr = stat(stderr_path, &info) == 0 && info.st_size > 0;
    print_tail(stderr, in_stderr ? stderr_path : stdout_path, "       | ", 3);
}

/* ---- the end ----------------------------------------------------------------------------------------------------- */

static const char *adjective(const plan_session *session)
{
    static const char *const words[] = {"fastest", "cheapest", "one with the least cost times time"};
    return words[session->wish->options.objective];
}

/* " that meets the deadline of 2 h and the budget of $5" */
static void format_limits(char *out, size_t size, const plan_session *session, const char *verb)
{
    char deadline[PLAN_UNITS_BYTES], budget[PLAN_UNITS_BYTES];
    const plan_search_options *options = &session->wish->options;
    plan_format_duration(deadline, options->deadline);
    plan_format_money(budget, options->budget);
    out[0] = '\0';
    if (options->deadline > 0 && options->budget > 0)
        snprintf(out, size, " %s the deadline of %s and the budget of %s", verb, deadline, budget);
    else if (options->deadline > 0)
        snprintf(out, size, " %s the deadline of %s", verb, deadline);
    else if (options->budget > 0)
        snprintf(out, size, " %s the budget of %s", verb, budget);
}

static void print_best(const plan_session *session, const plan_trial_record *best)
{
    char text[PLAN_SEARCH_LABEL_BYTES + 80], limits[160];
    int64_t done = 0;
    for (int64_t i = 0; i < session->trials; i++)
        done += session->trial[i].outcome == PLAN_TRIAL_DONE;
    format_trial(text, session, best);
    printf("best       %s\n", text);
    format_limits(limits, sizeof limits, session, "that meets");
    printf("why        the %s of %" PRId64 " trial%s%s", adjective(session), session->trials,
           session->trials == 1 ? "" : "s", limits);
    if (done < session->trials)
        printf("; %" PRId64 " did not get done", session->trials - done);
    putchar('\n');
}

static void print_compared(const plan_session *session, const plan_trial_record *best)
{
    static const char *const more[] = {"slower", "dearer", "more"};
    char text[PLAN_SEARCH_LABEL_BYTES + 80];
    const plan_trial_record *next = least_trial(session, trial_value, true, best),
                            *fastest = least_trial(session, trial_seconds, false, NULL);
    if (next) {
        format_trial(text, session, next);
        printf("compared   the next best is %.1f%% %s: %s\n",
               100 * (trial_value(session, next) / trial_value(session, best) - 1),
               more[session->wish->options.objective], text);
    }
    if (fastest && fastest != best && fastest != next) {
        format_trial(text, session, fastest);
        printf("           the fastest was %s\n", text);
    }
}

static void print_expected(const plan_session *session)
{
    char label[PLAN_SEARCH_LABEL_BYTES], value[PLAN_UNITS_BYTES], low[PLAN_UNITS_BYTES], high[PLAN_UNITS_BYTES];
    expectation expected = expect(session);
    int64_t left = session->space->list.candidates - session->trials;
    if (left <= 0)
        printf("model      everything was tried\n");
    if (expected.candidate < 0)
        return;
    plan_search_label(label, session->space, expected.candidate);
    format_value(value, session, expected.value);
    format_value(low, session, expected.low);
    format_value(high, session, expected.high);
    printf("model      of the %" PRId64 " not tried it expects most of %s: %s (%s to %s in 90%% of cases)\n", left,
           label, value, low, high);
}

void cli_search_print_end(const plan_session *session)
{
    char label[PLAN_SEARCH_LABEL_BYTES];
    int64_t best = plan_search_best(session->search);
    const plan_trial_record *trial = best >= 0 ? trial_of(session, best) : NULL;
    putchar('\n');
    if (trial) {
        print_best(session, trial);
        print_compared(session, trial);
        print_expected(session);
    }
    if (session->next >= 0) {
        plan_search_label(label, session->space, session->next);
        printf("next       try %s: %s\n", label, session->stopped);
        return;
    }
    printf("stopped    %s\n", session->stopped);
    if (session->journal_path)
        printf("journal    %s\n", session->journal_path);
}

int cli_search_check_best(const plan_session *session)
{
    char limits[160], fastest[PLAN_SEARCH_LABEL_BYTES + 80], cheapest[PLAN_SEARCH_LABEL_BYTES + 80], trouble[128];
    const plan_trial_record *quick = least_trial(session, trial_seconds, false, NULL),
                            *cheap = least_trial(session, dollars_of, false, NULL);
    if (plan_search_best(session->search) >= 0 || session->trials == 0)
        return SHOAL_OK;
    if (!quick) {
        plan_search_trouble(trouble, &session->trial[session->trials - 1]);
        if (session->trials == 1)
            return shoal_fail(SHOAL_INVALID, "the only trial did not get done: %s", trouble);
        return shoal_fail(SHOAL_INVALID, "none of the %" PRId64 " trials got done; the last: %s", session->trials,
                          trouble);
    }
    format_limits(limits, sizeof limits, session, "meets");
    format_trial(fastest, session, quick);
    format_trial(cheapest, session, cheap);
    if (session->wish->options.budget > 0 && cheap != quick)
        return shoal_fail(SHOAL_INVALID, "nothing that was tried%s: the fastest was %s; the cheapest was %s", limits,
                          fastest, cheapest);
    return shoal_fail(SHOAL_INVALID, "nothing that was tried%s: the fastest was %s", limits, fastest);
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static json_t *candidate_json(const plan_session *session, int64_t candidate)
{
    json_t *object = json_object();
    for (int i = 0; i < session->space->dimensions; i++) {
        const plan_search_dimension *dimension = &session->space->dimension[i];
        int64_t value = plan_search_value(session->space, candidate, i);
        base_json_put(&object, dimension->name,
                      i == PLAN_SEARCH_COUNT ? json_integer(session->space->candidate[candidate].count)
                      : dimension->is_text   ? base_json_text(dimension->text[value])
                                             : json_real(dimension->number[value]));
    }
    return object;
}

static json_t *expected_json(const plan_session *session)
{
    expectation expected = expect(session);
    if (expected.candidate < 0)
        return json_null();
    json_t *object = candidate_json(session, expected.candidate);
    base_json_put(&object, "value", base_json_real(expected.value));
    base_json_put(&object, "low", base_json_real(expected.low));
    base_json_put(&object, "high", base_json_real(expected.high));
    return object;
}

int cli_search_print_json(const plan_session *session)
{
    json_t *object = json_object(), *list = json_array(), *best = json_null(), *next = NULL;
    int64_t chosen = plan_search_best(session->search);
    for (int64_t i = 0; i < session->trials; i++) {
        json_array_append_new(list, plan_search_trial_json(&session->trial[i], session->space, i + 1));
        if (session->trial[i].candidate == chosen && chosen >= 0)
            best = plan_search_trial_json(&session->trial[i], session->space, i + 1);
    }
    if (session->next >= 0) {
        next = candidate_json(session, session->next);
        base_json_put(&next, "why", base_json_text(session->stopped));
    }
    base_json_put(&object, "objective", json_string(plan_objective_name(session->wish->options.objective)));
    base_json_put(&object, "configurations", json_integer(session->space->list.candidates));
    base_json_put(&object, "best", best);
    base_json_put(&object, "trials", list);
    base_json_put(&object, "expected", expected_json(session));
    if (next)
        base_json_put(&object, "next", next);
    else
        base_json_put(&object, "stopped_because", base_json_text(session->stopped));
    return cli_print_json(object);
}
