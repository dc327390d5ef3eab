/* See plan_search_print.h.  Everything of a search is shown from its trials, so that a search that was resumed shows
 * the same. */
#include "cli.h"
#include "plan_search_print.h"

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "plan/search/search_run.h"
#include "plan/search/search_summary.h"
#include "plan/units.h"

/* ---- values ------------------------------------------------------------------------------------------------------ */

static void format_value(char out[PLAN_UNITS_BYTES], const plan_session *session, double value)
{
    if (session->request->options.objective == PLAN_TIME)
        plan_format_duration(out, value);
    else if (session->request->options.objective == PLAN_COST)
        plan_format_money(out, value);
    else
        snprintf(out, PLAN_UNITS_BYTES, "%.3g $ h", value / 3600);
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

/* The last lines of a file, each after `prefix`. */
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
    return words[session->request->options.objective];
}

static void print_best(const plan_session *session, const plan_trial_record *best)
{
    char text[PLAN_SESSION_BYTES], limits[PLAN_SESSION_BYTES];
    int64_t done = 0;
    for (int64_t i = 0; i < session->trials; i++)
        done += session->trial[i].outcome == PLAN_TRIAL_DONE;
    plan_session_describe(text, session, best);
    printf("best       %s\n", text);
    plan_session_limits(limits, sizeof limits, session, "that meets");
    printf("why        the %s of %" PRId64 " trial%s%s", adjective(session), session->trials,
           base_plural(session->trials), limits);
    if (done < session->trials)
        printf("; %" PRId64 " failed", session->trials - done);
    putchar('\n');
}

static void print_compared(const plan_session *session, const plan_trial_record *best)
{
    static const char *const more[] = {"slower", "dearer", "more"};
    char text[PLAN_SESSION_BYTES];
    const plan_trial_record *next = plan_session_next_best(session, best), *fastest = plan_session_fastest(session);
    if (next) {
        plan_session_describe(text, session, next);
        printf("compared   the next best is %.1f%% %s: %s\n",
               100 * (plan_session_value(session, next) / plan_session_value(session, best) - 1),
               more[session->request->options.objective], text);
    }
    if (fastest && fastest != best && fastest != next) {
        plan_session_describe(text, session, fastest);
        printf("           the fastest was %s\n", text);
    }
}

static void print_expected(const plan_session *session)
{
    char label[PLAN_SEARCH_LABEL_BYTES], value[PLAN_UNITS_BYTES], low[PLAN_UNITS_BYTES], high[PLAN_UNITS_BYTES];
    plan_expected expected = plan_session_expect(session);
    int64_t left = session->space->list.candidates - session->trials;
    if (left <= 0)
        printf("model      every configuration was tried\n");
    if (expected.candidate < 0)
        return;
    plan_search_label(label, session->space, expected.candidate);
    format_value(value, session, expected.value);
    format_value(low, session, expected.low);
    format_value(high, session, expected.high);
    printf("model      of the %" PRId64 " not tried, %s looks best: %s (90%% interval %s to %s)\n", left, label, value,
           low, high);
}

void cli_search_print_end(const plan_session *session)
{
    char label[PLAN_SEARCH_LABEL_BYTES];
    int64_t best = plan_search_best(session->search);
    const plan_trial_record *trial = best >= 0 ? plan_session_trial(session, best) : NULL;
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
    plan_expected expected = plan_session_expect(session);
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
    base_json_put(&object, "objective", json_string(plan_objective_name(session->request->options.objective)));
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
