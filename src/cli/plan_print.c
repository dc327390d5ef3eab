/* How a plan is printed: a table for people, an object for programs.  See plan_verb.h. */
#include <math.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "base/option.h"
#include "plan/units.h"
#include "plan_verb.h"

/* ---- below the table --------------------------------------------------------------------------------------------- */

enum { INDENT = 12 }; /* of what is told below the table */

/* A heading, and text that continues below itself. */
static void print_wrapped(FILE *stream, const char *heading, const char *text)
{
    fprintf(stream, "%-*s", INDENT, heading);
    base_wrap(stream, text, INDENT, INDENT, cli_width());
}

static double rounds_estimated(const shoal_estimate *estimate)
{
    double rounds = 0;
    for (int i = 0; i < estimate->phases; i++)
        rounds += estimate->phase[i].rounds;
    return rounds;
}

/* Whether the rounds are those that earlier runs made, rather than all that may be made. */
static bool by_history(const plan *plan)
{
    const plan_question *question = &plan->question;
    bool any = false;
    for (int i = 0; i < question->paces; i++)
        any |= strcmp(question->pace[i].learner, plan->request->algorithm->name) == 0 && question->pace[i].rounds > 0;
    return any;
}

static void print_parts(FILE *stream, const plan *plan)
{
    const shoal_estimate *estimate = &plan->best->estimate;
    const struct {
        const char *name;
        double seconds;
    } parts[] = {{"start", estimate->start},         {"load", estimate->load},        {"map", estimate->map},
                 {"stragglers", estimate->straggle}, {"reduce", estimate->reduce},    {"update", estimate->update},
                 {"publish", estimate->publish},     {"lost workers", estimate->lost}};
    char text[512] = "";
    const char *before = "";
    if (estimate->phases > 0)
        snprintf(text, sizeof text, "%.0f round%s, %s: ", rounds_estimated(estimate),
                 rounds_estimated(estimate) == 1 ? "" : "s",
                 plan->tried_whole  ? "as in a trial on all rows"
                 : by_history(plan) ? "as in earlier runs"
                                    : "unless it converges earlier");
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        char time[PLAN_UNITS_BYTES];
        size_t used = strlen(text);
        if (parts[i].seconds < 0.001 * estimate->seconds)
            continue;
        plan_format_duration(time, parts[i].seconds);
        snprintf(text + used, sizeof text - used, "%s%s %s", before, parts[i].name, time);
        before = ", ";
    }
    print_wrapped(stream, "breakdown", text);
}

static void print_price(FILE *stream, const shoal_estimate *estimate)
{
    char machines[PLAN_UNITS_BYTES], requests[PLAN_UNITS_BYTES], low[PLAN_UNITS_BYTES], high[PLAN_UNITS_BYTES],
        text[256];
    plan_format_money(machines, estimate->cost - estimate->request_price);
    plan_format_money(requests, estimate->request_price);
    plan_format_money(low, estimate->cost_low);
    plan_format_money(high, estimate->cost_high);
    int used = snprintf(text, sizeof text, "machines %s, requests %s", machines, requests);
    if (estimate->cost_high > estimate->cost_low)
        snprintf(text + used, sizeof text - (size_t)used, "; 90%% of runs cost %s to %s", low, high);
    print_wrapped(stream, "its price", text);
}

static void format_day(char out[16], int64_t seconds)
{
    struct tm calendar;
    time_t then = (time_t)seconds;
    gmtime_r(&then, &calendar);
    strftime(out, 16, "%Y-%m-%d", &calendar);
}

/* What was measured, and when. */
static void print_measured(FILE *stream, const plan *plan)
{
    char day[16] = "", learner[96] = "", store[320] = "", text[sizeof learner + sizeof store];
    const char *name = plan->request->algorithm->name;
    if (plan->calibration)
        format_day(day, plan->calibration->date);
    if (plan->probed || plan->measured_now)
        snprintf(learner, sizeof learner, "%s now%s", name, plan->probed ? ", with these options" : "");
    else if (!(plan->request->flops > 0))
        snprintf(learner, sizeof learner, "%s on %s", name, day);
    if (plan->site_measured)
        snprintf(store, sizeof store, "%sstore %.256s on %s", learner[0] ? "; " : "", plan->store, day);
    snprintf(text, sizeof text, "%s%s", learner, store);
    if (text[0])
        print_wrapped(stream, "measured", text);
}

/* That times are less sure than on an idle machine, and why. */
static void print_busy(FILE *stream, const plan *plan)
{
    const plan_calibration *kept = plan->calibration;
    char text[160];
    if (plan->busy > 0) {
        snprintf(
            text, sizeof text,
            "other programs use %.0f%% of the processor now: a run takes longer than on an idle machine, up to the "
            "upper limit",
            100 * plan->busy);
        print_wrapped(stream, "busy", text);
    }
    if (kept && kept->busy > PLAN_BUSY_LEAST && plan->request->workers.local) {
        snprintf(text, sizeof text,
                 "calibrated while other programs used %.0f%% of the processor: run `shoal calibrate` when it is idle",
                 100 * kept->busy);
        print_wrapped(stream, "uncertain", text);
    }
}

/* Where the constants come from. */
static void print_sources(FILE *stream, const plan *plan)
{
    if (plan->question.paper)
        return;
    print_measured(stream, plan);
    if (plan->prices) {
        char text[512];
        snprintf(text, sizeof text, "%s%s%s", plan->prices->name, plan->prices->date[0] ? ", " : "",
                 plan->prices->date);
        print_wrapped(stream, "prices", text);
    }
    print_busy(stream, plan);
    if (plan->caution[0])
        print_wrapped(stream, "caution", plan->caution);
    if (plan->assumed[0])
        print_wrapped(stream, "assumed", plan->assumed);
}

int cli_plan_print(FILE *stream, const plan *plan, bool all)
{
    char best[320], why[320], text[sizeof best + sizeof why + 2];
    const plan_option *option = plan->best;
    int status = cli_plan_print_table(stream, plan, all);
    if (status < 0)
        return status;
    plan_describe(best, sizeof best, plan, option, false);
    plan_tell_why(why, sizeof why, plan);
    snprintf(text, sizeof text, "%s: %s", best, why);
    fputc('\n', stream);
    print_wrapped(stream, "best", text);
    if (plan->alone.threads > 0) {
        plan_describe(best, sizeof best, plan, &plan->alone, false);
        snprintf(text, sizeof text, "%s: faster without workers, on this machine", best);
        print_wrapped(stream, "but", text);
    }
    print_parts(stream, plan);
    if (plan->priced)
        print_price(stream, &option->estimate);
    print_sources(stream, plan);
    return SHOAL_OK;
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static json_t *json_parts(const shoal_estimate *estimate)
{
    json_t *parts = json_object();
    base_json_put(&parts, "start", base_json_real(estimate->start));
    base_json_put(&parts, "load", base_json_real(estimate->load));
    base_json_put(&parts, "map", base_json_real(estimate->map));
    base_json_put(&parts, "straggle", base_json_real(estimate->straggle));
    base_json_put(&parts, "reduce", base_json_real(estimate->reduce));
    base_json_put(&parts, "update", base_json_real(estimate->update));
    base_json_put(&parts, "publish", base_json_real(estimate->publish));
    base_json_put(&parts, "lost", base_json_real(estimate->lost));
    return parts;
}

static json_t *json_option(const plan_option *option)
{
    const shoal_estimate *estimate = &option->estimate;
    json_t *row = json_object();
    base_json_put(&row, "workers", json_integer(option->alone ? 0 : option->workers));
    base_json_put(&row, "threads", option->threads > 0 ? json_integer(option->threads) : json_null());
    base_json_put(&row, "machine", option->machine ? json_string(option->machine->id) : json_null());
    base_json_put(&row, "units", base_json_real(estimate->units));
    base_json_put(&row, "seconds", base_json_real(estimate->seconds));
    base_json_put(&row, "low", base_json_real(estimate->low));
    base_json_put(&row, "high", base_json_real(estimate->high));
    base_json_put(&row, "sequential", base_json_real(estimate->sequential));
    base_json_put(&row, "speedup", base_json_real(estimate->speedup));
    base_json_put(&row, "efficiency", base_json_real(estimate->efficiency));
    base_json_put(&row, "cost", base_json_real(estimate->cost));
    base_json_put(&row, "cost_low", base_json_real(estimate->cost_low));
    base_json_put(&row, "cost_high", base_json_real(estimate->cost_high));
    base_json_put(&row, "requests", base_json_real(estimate->requests));
    base_json_put(&row, "request_price", base_json_real(estimate->request_price));
    base_json_put(&row, "memory", base_json_real(option->memory));
    base_json_put(&row, "fits", json_boolean(option->fits));
    base_json_put(&row, "in_time", json_boolean(option->in_time));
    base_json_put(&row, "in_budget", json_boolean(option->in_budget));
    base_json_put(&row, "front", json_boolean(option->front));
    base_json_put(&row, "parts", json_parts(estimate));
    return row;
}

static json_t *json_job(const plan *plan)
{
    const plan_question *question = &plan->question;
    json_t *job = json_object();
    base_json_put(&job, "rows", base_json_real(question->job.rows));
    base_json_put(&job, "columns", base_json_real(question->job.columns));
    base_json_put(&job, "value_bytes", base_json_real(question->job.value_bytes));
    if (plan->best->estimate.phases > 0)
        base_json_put(&job, "rounds", base_json_real(rounds_estimated(&plan->best->estimate)));
    return job;
}

static json_t *json_positive(double value)
{
    return value > 0 ? base_json_real(value) : json_null();
}

static json_t *json_goal(const plan *plan)
{
    static const char *const names[] = {
        [PLAN_GOAL_TIME] = "time", [PLAN_GOAL_COST] = "cost", [PLAN_GOAL_BOTH] = "cost*time"};
    const plan_choice *choice = &plan->choice;
    json_t *goal = json_object();
    base_json_put(&goal, "objective", json_string(names[choice->goal]));
    base_json_put(&goal, "deadline", json_positive(plan->question.deadline));
    base_json_put(&goal, "budget", json_positive(plan->question.budget));
    base_json_put(&goal, "fitting", json_integer(choice->fitting));
    base_json_put(&goal, "meeting", json_integer(choice->meeting));
    return goal;
}

/* A machine as it counts where no table says otherwise. */
static json_t *json_crew(const plan *plan)
{
    const plan_question *question = &plan->question;
    json_t *crew = json_object();
    base_json_put(&crew, "local", json_boolean(question->crew.machines == 1));
    base_json_put(&crew, "threads", json_positive(question->threads));
    base_json_put(&crew, "cores", base_json_real(question->crew.cores));
    base_json_put(&crew, "speed", base_json_real(question->crew.speed));
    base_json_put(&crew, "spot", json_boolean(question->spot));
    base_json_put(&crew, "price",
                  plan->priced && !question->machines ? base_json_real(question->crew.dollars_per_hour) : json_null());
    base_json_put(&crew, "start", base_json_real(question->crew.start));
    base_json_put(&crew, "losses", base_json_real(question->crew.losses));
    base_json_put(&crew, "replace", base_json_real(question->crew.replace));
    base_json_put(&crew, "billed", base_json_real(question->crew.billed));
    return crew;
}

/* A calibration as it is kept, or null. */
static json_t *json_calibration(const plan_calibration *calibration)
{
    char *text = NULL;
    json_t *object = NULL;
    if (calibration && plan_calibration_json(&text, calibration) == SHOAL_OK)
        object = json_loads(text, 0, NULL);
    base_free(&text);
    return object ? object : json_null();
}

/* The constants that this answer was made with, in the form of a calibration. */
static json_t *json_constants(const plan *plan)
{
    const plan_question *question = &plan->question;
    plan_calibration *used = NULL;
    if (base_alloc(&used, 1, sizeof *used, "constants") < 0)
        return NULL;
    used->paces = question->paces;
    used->sites = 1;
    memcpy(used->pace, question->pace, (size_t)question->paces * sizeof *used->pace);
    used->site[0].site = question->site;
    snprintf(used->site[0].store, sizeof used->site[0].store, "%s", plan->store);
    json_t *whole = json_calibration(used), *constants = json_object();
    (void)json_object_del(json_array_get(json_object_get(whole, "sites"), 0), "date"); /* nothing of this was kept */
    base_json_put(&constants, "paces", json_incref(json_object_get(whole, "paces")));
    base_json_put(&constants, "site", json_incref(json_array_get(json_object_get(whole, "sites"), 0)));
    json_decref(whole);
    base_free(&used);
    return constants;
}

static json_t *json_rows(const plan_choice *choice)
{
    json_t *rows = json_array();
    for (int64_t i = 0; i < choice->options && rows; i++)
        if (json_array_append_new(rows, json_option(&choice->option[i])) != 0) {
            json_decref(rows);
            rows = NULL;
        }
    return rows;
}

int cli_plan_print_json(const plan *plan)
{
    const plan_choice *choice = &plan->choice;
    char why[320];
    json_t *object = json_object();
    plan_tell_why(why, sizeof why, plan);
    base_json_put(&object, "learner", json_string(plan->request->algorithm->name));
    base_json_put(&object, "model", json_string(plan->question.paper ? "paper" : "ours"));
    base_json_put(&object, "job", json_job(plan));
    base_json_put(&object, "here", json_boolean(plan->request->here));
    base_json_put(&object, "best", json_option(plan->best));
    base_json_put(&object, "why", json_string(why));
    base_json_put(&object, "fastest", json_option(&choice->option[choice->fastest]));
    base_json_put(&object, "cheapest", json_option(&choice->option[choice->cheapest]));
    if (plan->request->here)
        base_json_put(&object, "default_threads", json_integer(plan->usual));
    else
        base_json_put(&object, "without_workers", plan->alone.threads > 0 ? json_option(&plan->alone) : json_null());
    if (plan->formula > 0)
        base_json_put(&object, "formula", base_json_real(plan->formula));
    base_json_put(&object, "goal", json_goal(plan));
    base_json_put(&object, "priced", json_boolean(plan->priced));
    base_json_put(&object, "rows", json_rows(choice));
    if (!plan->question.paper) {
        base_json_put(&object, "store", base_json_text(plan->store));
        base_json_put(&object, "probed", json_boolean(plan->probed));
        base_json_put(&object, "store_measured", json_boolean(plan->site_measured));
        base_json_put(&object, "busy", base_json_real(plan->busy));
        base_json_put(&object, "caution", plan->caution[0] ? base_json_text(plan->caution) : json_null());
        base_json_put(&object, "assumed", base_json_text(plan->assumed));
        base_json_put(&object, "crew", json_crew(plan));
        base_json_put(&object, "constants", json_constants(plan));
        base_json_put(&object, "calibration", json_calibration(plan->calibration));
    }
    if (plan->prices) {
        base_json_put(&object, "prices", base_json_text(plan->prices->name));
        base_json_put(&object, "prices_date", base_json_text(plan->prices->date));
    }
    return cli_print_json(object);
}
