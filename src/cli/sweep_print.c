/* See sweep_print.h. */
#include "sweep_print.h"

#include <inttypes.h>
#include <math.h>

#include "base/memory.h"
#include "plan/units.h"
#include "sweep/spending.h"

enum { FAILURES_SHOWN = 3 };

const char *cli_sweep_state(const sweep_trial *trial)
{
    static const char *const names[] = {"running", "paused", "done", "failed"};
    return names[trial->state];
}

double cli_sweep_value(const sweep_log *log, int64_t trial)
{
    return log->sign * log->course.trial[trial].value;
}

void cli_sweep_print_point(FILE *stream, const sweep_space *space, const sweep_point *point)
{
    char own[SWEEP_TEXT_BYTES];
    const char *between = "";
    for (int i = 0; i < space->parameters; i++) {
        const sweep_parameter *p = &space->parameter[i];
        if (isnan(point->value[i]) || sweep_values_of(p) <= 1)
            continue;
        fprintf(stream, "%s%s ", between, p->name);
        cli_put_text(stream, sweep_text(own, p, point->value[i]));
        between = ", ";
    }
}

void cli_sweep_print_head(const sweep_spec *spec)
{
    printf("%6s  %-7s  %7s  %20.20s  parameters\n", "trial", "state", "step", spec->objective);
}

void cli_sweep_print_trial(const sweep_log *log, int64_t which)
{
    const sweep_trial *trial = &log->course.trial[which];
    printf("%6" PRId64 "  %-7s  %7" PRId64 "  ", which, cli_sweep_state(trial), trial->step);
    if (isnan(trial->value))
        printf("%20s", "-");
    else
        printf("%20.6g", cli_sweep_value(log, which));
    fputs(which == log->course.best ? "* " : "  ", stdout);
    cli_sweep_print_point(stdout, log->rules.space, &trial->point);
    putchar('\n');
}

static void count_states(int64_t count[4], const sweep_course *course)
{
    for (int64_t i = 0; i < course->trials; i++)
        count[course->trial[i].state]++;
}

/* What workers were there for, and what that costs. */
static void print_spent(const sweep_log *log, const sweep_place *place)
{
    char spent[PLAN_UNITS_BYTES], time[PLAN_UNITS_BYTES], price[PLAN_UNITS_BYTES], budget[PLAN_UNITS_BYTES];
    double seconds;
    if (log->price == 0)
        return;
    if (sweep_spending_sum(&seconds, place, NULL) < 0) {
        printf("spent      not known: %s\n", shoal_error());
        return;
    }
    plan_format_money(spent, seconds / 3600 * log->price);
    plan_format_duration(time, seconds);
    plan_format_money(price, log->price);
    plan_format_money(budget, log->budget);
    printf("spent      %s%s%s: %s of workers at %s an hour\n", spent, log->budget > 0 ? " of " : "",
           log->budget > 0 ? budget : "", time, price);
}

/* Why the last trials that failed did. */
static void print_failures(const sweep_log *log, const sweep_place *place)
{
    const sweep_course *course = &log->course;
    int shown = 0;
    for (int64_t i = course->orders - 1; i >= 0 && shown < FAILURES_SHOWN; i--) {
        const sweep_order *order = &course->order[i];
        sweep_ended ended;
        if (!order->ended || course->trial[order->trial].state != SWEEP_FAILED ||
            sweep_place_get_result(&ended, place, order, i) < 0)
            continue;
        base_free(&ended.curve);
        if (!ended.result.failed)
            continue;
        printf("failed     trial %" PRId64 ": ", order->trial);
        cli_put_text(stdout, ended.note);
        putchar('\n');
        shown++;
    }
}

void cli_sweep_print_end(const sweep_spec *spec, const sweep_log *log, const sweep_place *place)
{
    const sweep_course *course = &log->course;
    int64_t count[4] = {0};
    const char *between = "";
    count_states(count, course);
    if (course->best >= 0) {
        const sweep_trial *best = &course->trial[course->best];
        printf("best       trial %" PRId64 ": %s %.6g", course->best, spec->objective,
               cli_sweep_value(log, course->best));
        if (spec->steps > 0)
            printf(", %" PRId64 " of %" PRId64 " steps", best->step, spec->steps);
        fputs("\n           ", stdout);
        cli_sweep_print_point(stdout, spec->space, &best->point);
        putchar('\n');
    } else {
        printf("best       none: no trial has reported \"%s\"\n", spec->objective);
    }
    printf("trials     %" PRId64 ": ", course->trials);
    static const char *const words[] = {"running", "paused", "done", "failed"};
    for (int i = 3; i >= 0; i--) {
        if (count[i] > 0)
            printf("%s%" PRId64 " %s", between, count[i], words[i]);
        between = count[i] > 0 ? ", " : between;
    }
    printf("%s\n", course->trials ? "" : "none has begun");
    if (count[SWEEP_FAILED] > 0)
        print_failures(log, place);
    if (course->adopted > 0)
        printf("taken over %" PRId64 " of these from sweep '%s'\n", course->adopted, spec->from);
    print_spent(log, place);
    if (log->why[0])
        printf("stopped    %s\n", log->why);
    printf("sweep      %s\n", place->name);
}

json_t *cli_sweep_trial_json(const sweep_log *log, int64_t which)
{
    const sweep_trial *trial = &log->course.trial[which];
    json_t *object = json_object();
    base_json_put(&object, "trial", json_integer(which));
    base_json_put(&object, "state", json_string(cli_sweep_state(trial)));
    base_json_put(&object, "step", json_integer(trial->step));
    base_json_put(&object, "value", base_json_real(cli_sweep_value(log, which)));
    base_json_put(&object, "parameters", sweep_point_json(log->rules.space, &trial->point));
    return object;
}

json_t *cli_sweep_json(const sweep_spec *spec, const sweep_log *log, const char *name)
{
    const sweep_course *course = &log->course;
    json_t *object = json_object(), *trials = json_array();
    base_json_put(&object, "sweep", base_json_text(name));
    base_json_put(&object, "objective", base_json_text(spec->objective));
    base_json_put(&object, "maximise", json_boolean(spec->maximise));
    base_json_put(&object, "best", course->best >= 0 ? cli_sweep_trial_json(log, course->best) : json_null());
    base_json_put(&object, "stopped", log->why[0] ? base_json_text(log->why) : json_null());
    for (int64_t i = 0; i < course->trials; i++)
        json_array_append_new(trials, cli_sweep_trial_json(log, i));
    base_json_put(&object, "trials", trials);
    return object;
}
