/* A plan in words: an option, why it is the best, and why there is none; and the picture, which says so, too. */
#include <stdio.h>
#include <string.h>

#include <shoal/error.h>

#include "base/memory.h"
#include "base/text.h"
#include "picture.h"
#include "plan.h"
#include "units.h"

void plan_describe(char *out, size_t size, const plan *plan, const plan_option *option, bool limits)
{
    const char *name = option->machine ? option->machine->id : "";
    const shoal_estimate *estimate = &option->estimate;
    char time[PLAN_UNITS_BYTES], money[PLAN_UNITS_BYTES], late[PLAN_UNITS_BYTES + 16] = "",
                                                                                  dear[PLAN_UNITS_BYTES + 16] = "";
    char limit[PLAN_UNITS_BYTES];
    plan_format_duration(time, estimate->seconds);
    plan_format_money(money, estimate->cost);
    plan_format_duration(limit, estimate->high);
    if (limits && plan->question.deadline > 0 && estimate->high > estimate->seconds)
        snprintf(late, sizeof late, " (at most %s)", limit);
    plan_format_money(limit, estimate->cost_high);
    if (limits && plan->question.budget > 0 && estimate->cost_high > estimate->cost)
        snprintf(dear, sizeof dear, " (at most %s)", limit);
    const bool here = option->alone || plan->request->here;
    const long long count = option->alone ? option->threads : option->workers;
    const char *what = option->alone ? "thread" : here ? "process" : "worker";
    const char *plural = count == 1 ? "" : here && !option->alone ? "es" : "s";
    int used = snprintf(out, size, "%lld %s%s%s%s, %s%s", count, what, plural, name[0] ? " on " : "", name, time, late);
    if (plan->priced && used > 0 && (size_t)used < size)
        snprintf(out + used, size - (size_t)used, ", %s%s", money, dear);
}

/* P* takes √P for ⌈√P⌉, so that a number near it may be a little faster. */
static void tell_formula(char *out, size_t size, const plan *plan)
{
    const plan_option *fastest = &plan->choice.option[plan->choice.fastest];
    char time[PLAN_UNITS_BYTES];
    int used = snprintf(out, size, "the paper's P* = (3 N F / %s)^(2/3) = %.1f",
                        plan->paper.write > 0 ? "(B + B2 / 2)" : "B", plan->formula);
    plan_format_duration(time, fastest->estimate.seconds);
    if (fastest->estimate.seconds < plan->optimum.estimate.seconds)
        snprintf(out + used, size - (size_t)used, "; of those listed, %lld take least, %s", (long long)fastest->workers,
                 time);
}

/* The best of those with workers, or of those without. */
static const plan_option *best_of_kind(const plan_choice *choice, bool alone)
{
    const plan_option *best = NULL;
    for (int64_t i = 0; i < choice->options; i++)
        if (choice->option[i].alone == alone && (!best || plan_is_better(&choice->option[i], best, choice->goal)))
            best = &choice->option[i];
    return best;
}

/* "threads here are fastest; 2 processes would take 110 ms" */
static void tell_here(char *out, size_t size, const plan *plan)
{
    const plan_option *alone = best_of_kind(&plan->choice, true), *shared = best_of_kind(&plan->choice, false);
    const bool by_threads = plan->best->alone;
    char time[PLAN_UNITS_BYTES];
    plan_format_duration(time, (by_threads ? shared : alone)->estimate.seconds);
    if (by_threads)
        snprintf(out, size, "threads here are fastest; %lld processes would take %s", (long long)shared->workers, time);
    else
        snprintf(out, size, "--workers local:%lld is faster than threads here, which would take %s",
                 (long long)plan->best->workers, time);
}

void plan_tell_why(char *out, size_t size, const plan *plan)
{
    static const char *const best[] = {[PLAN_GOAL_TIME] = "the fastest",
                                       [PLAN_GOAL_COST] = "the cheapest",
                                       [PLAN_GOAL_BOTH] = "the least cost times time"};
    const plan_question *question = &plan->question;
    char time[PLAN_UNITS_BYTES], money[PLAN_UNITS_BYTES];
    if (plan->best == &plan->optimum) {
        tell_formula(out, size, plan);
        return;
    }
    if (plan->request->here && question->deadline <= 0) {
        tell_here(out, size, plan);
        return;
    }
    plan_format_duration(time, question->deadline);
    plan_format_money(money, question->budget);
    bool limited = question->deadline > 0 || question->budget > 0, one = plan->choice.meeting == 1;
    if (one)
        snprintf(out, size, "the only one%s",
                 plan->choice.fitting == 1 && plan->choice.options > 1 && !limited ? " that fits and ends" : "");
    else
        snprintf(out, size, "%s of %lld", best[plan->choice.goal], (long long)plan->choice.meeting);
    snprintf(out + strlen(out), size - strlen(out), "%s%s%s%s%s", limited ? " that" : "",
             question->deadline > 0 ? one ? " ends within " : " end within " : "", question->deadline > 0 ? time : "",
             question->deadline > 0 && question->budget > 0 ? " and" : "",
             question->budget > 0 ? one ? " costs at most " : " cost at most " : "");
    if (question->budget > 0)
        snprintf(out + strlen(out), size - strlen(out), "%s", money);
    if (limited)
        snprintf(out + strlen(out), size - strlen(out), " in 95%% of runs");
}

int plan_nothing_meets(const plan *plan)
{
    const plan_choice *choice = &plan->choice;
    const plan_question *question = &plan->question;
    char fast[320], cheap[320], asked[PLAN_UNITS_BYTES];
    if (choice->fastest < 0) {
        const plan_option *last = &choice->option[choice->options - 1];
        if (last->fits)
            return shoal_fail(SHOAL_INVALID,
                              "no run would ever end: workers are lost faster than the work gets done (--losses %g)",
                              question->crew.losses);
        return shoal_fail(SHOAL_INVALID,
                          "no machine has enough memory: each needs %.3g GiB with %lld workers; use more --workers or "
                          "larger --machines",
                          last->memory / 1073741824.0, (long long)last->workers);
    }
    plan_describe(fast, sizeof fast, plan, &choice->option[choice->fastest], true);
    plan_describe(cheap, sizeof cheap, plan, &choice->option[choice->cheapest], true);
    bool late = choice->option[choice->fastest].in_time == false;
    if (late)
        plan_format_duration(asked, question->deadline);
    else
        plan_format_money(asked, question->budget);
    bool both = question->deadline > 0 && question->budget > 0;
    return shoal_fail(SHOAL_INVALID, "%s: nothing meets %s%s in 95%% of runs: the fastest is %s; the cheapest is %s",
                      late ? "--deadline" : "--budget", asked, both && !late ? " and the deadline" : "", fast, cheap);
}

int plan_draw(const char *path, const plan *plan)
{
    const plan_choice *choice = &plan->choice;
    plan_point *point = NULL;
    char why[320], title[200], rows[32], columns[32];
    int status = base_alloc(&point, (size_t)choice->options, sizeof *point, "the points of a picture");
    if (status < 0)
        return status;
    int64_t points = 0;
    bool one_place = plan_is_one_place(choice), here = plan->request->here;
    for (int64_t i = 0; i < choice->options; i++) {
        const plan_option *option = &choice->option[i];
        const shoal_estimate *estimate = &option->estimate;
        if (!option->fits)
            continue;
        point[points++] = (plan_point){.machine = option->alone      ? "threads"
                                                  : here             ? "processes"
                                                  : !option->machine ? ""
                                                  : one_place        ? option->machine->name
                                                                     : option->machine->id,
                                       .workers = option->alone ? option->threads : option->workers,
                                       .seconds = estimate->seconds,
                                       .low = estimate->low,
                                       .high = estimate->high,
                                       .dollars = estimate->cost,
                                       .dollars_low = estimate->cost_low,
                                       .dollars_high = estimate->cost_high,
                                       .front = option->front,
                                       .best = option == plan->best};
    }
    plan_tell_why(why, sizeof why, plan);
    base_format_count(rows, sizeof rows, (int64_t)plan->question.job.rows);
    base_format_count(columns, sizeof columns, (int64_t)plan->question.job.columns);
    snprintf(title, sizeof title, "%s, %s row%s of %s column%s", plan->request->algorithm->name, rows,
             base_plural((int64_t)plan->question.job.rows), columns, base_plural((int64_t)plan->question.job.columns));
    status = plan_picture_write(path, &(plan_picture){.title = title,
                                                      .why = why,
                                                      .counted = here ? "threads or processes" : NULL,
                                                      .deadline = plan->question.deadline,
                                                      .budget = plan->question.budget,
                                                      .point = point,
                                                      .points = points});
    base_free(&point);
    return status;
}
