/* How a plan is told: a table for people, an object for programs, a picture.  See plan_verb.h. */
#include <math.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "base/option.h"
#include "plan/picture/picture.h"
#include "plan/units.h"
#include "plan_verb.h"

/* ---- words ------------------------------------------------------------------------------------------------------- */

static const char *machine_of(const plan_option *option)
{
    return option->machine ? option->machine->id : "";
}

/* "12 workers on aws:us-east-1/c7i.large, 3.1 h, $7.10"; with the limits that 95% of runs keep where they matter. */
static void describe(char *out, size_t size, const cli_plan_answer *answer, const plan_option *option, bool limits)
{
    const char *name = machine_of(option);
    const shoal_estimate *estimate = &option->estimate;
    char time[PLAN_UNITS_BYTES], money[PLAN_UNITS_BYTES], late[PLAN_UNITS_BYTES + 16] = "",
                                                                                  dear[PLAN_UNITS_BYTES + 16] = "";
    char limit[PLAN_UNITS_BYTES];
    plan_format_duration(time, estimate->seconds);
    plan_format_money(money, estimate->cost);
    plan_format_duration(limit, estimate->high);
    if (limits && answer->question.deadline > 0 && estimate->high > estimate->seconds)
        snprintf(late, sizeof late, " (at most %s)", limit);
    plan_format_money(limit, estimate->cost_high);
    if (limits && answer->question.budget > 0 && estimate->cost_high > estimate->cost)
        snprintf(dear, sizeof dear, " (at most %s)", limit);
    int used = snprintf(out, size, "%lld worker%s%s%s, %s%s", (long long)option->workers,
                        option->workers == 1 ? "" : "s", name[0] ? " on " : "", name, time, late);
    if (answer->priced && used > 0 && (size_t)used < size)
        snprintf(out + used, size - (size_t)used, ", %s%s", money, dear);
}

/* P* takes √P for ⌈√P⌉, so that a number near it may be a little faster. */
static void tell_formula(char *out, size_t size, const cli_plan_answer *answer)
{
    const plan_option *fastest = &answer->choice.option[answer->choice.fastest];
    char time[PLAN_UNITS_BYTES];
    int used = snprintf(out, size, "the paper's P* = (3 N F / %s)^(2/3) = %.1f",
                        answer->paper.write > 0 ? "(B + B2 / 2)" : "B", answer->formula);
    plan_format_duration(time, fastest->estimate.seconds);
    if (fastest->estimate.seconds < answer->optimum.estimate.seconds)
        snprintf(out + used, size - (size_t)used, "; of those that were asked for %lld take least, %s",
                 (long long)fastest->workers, time);
}

static void tell_why(char *out, size_t size, const cli_plan_answer *answer)
{
    static const char *const best[] = {[PLAN_WISH_TIME] = "the fastest",
                                       [PLAN_WISH_COST] = "the cheapest",
                                       [PLAN_WISH_BOTH] = "the least cost times time"};
    const plan_question *question = &answer->question;
    char time[PLAN_UNITS_BYTES], money[PLAN_UNITS_BYTES];
    if (answer->best == &answer->optimum) {
        tell_formula(out, size, answer);
        return;
    }
    plan_format_duration(time, question->deadline);
    plan_format_money(money, question->budget);
    bool limited = question->deadline > 0 || question->budget > 0, one = answer->choice.meeting == 1;
    if (one)
        snprintf(out, size, "the only one%s",
                 answer->choice.fitting == 1 && answer->choice.options > 1 && !limited ? " that fits and ends" : "");
    else
        snprintf(out, size, "%s of %lld", best[answer->choice.wish], (long long)answer->choice.meeting);
    snprintf(out + strlen(out), size - strlen(out), "%s%s%s%s%s", limited ? " that" : "",
             question->deadline > 0 ? one ? " ends within " : " end within " : "", question->deadline > 0 ? time : "",
             question->deadline > 0 && question->budget > 0 ? " and" : "",
             question->budget > 0 ? one ? " costs at most " : " cost at most " : "");
    if (question->budget > 0)
        snprintf(out + strlen(out), size - strlen(out), "%s", money);
    if (limited)
        snprintf(out + strlen(out), size - strlen(out), " in 95%% of runs");
}

int cli_plan_nothing(const cli_plan_answer *answer)
{
    const plan_choice *choice = &answer->choice;
    const plan_question *question = &answer->question;
    char fast[320], cheap[320], asked[PLAN_UNITS_BYTES];
    if (choice->fastest < 0) {
        const plan_option *last = &choice->option[choice->options - 1];
        if (last->fits)
            return shoal_fail(SHOAL_INVALID,
                              "nothing would ever end: workers are lost faster than the work gets done (--losses %g)",
                              question->crew.losses);
        return shoal_fail(SHOAL_INVALID,
                          "nothing has enough memory: a machine needs %.3g GiB with %lld workers: more --workers, or "
                          "larger --machines",
                          last->memory / 1073741824.0, (long long)last->workers);
    }
    describe(fast, sizeof fast, answer, &choice->option[choice->fastest], true);
    describe(cheap, sizeof cheap, answer, &choice->option[choice->cheapest], true);
    bool late = choice->option[choice->fastest].in_time == false;
    if (late)
        plan_format_duration(asked, question->deadline);
    else
        plan_format_money(asked, question->budget);
    bool both = question->deadline > 0 && question->budget > 0;
    return shoal_fail(SHOAL_INVALID, "%s: nothing meets %s%s in 95%% of runs: the fastest is %s; the cheapest is %s",
                      late ? "--deadline" : "--budget", asked, both && !late ? " and the deadline" : "", fast, cheap);
}

/* ---- below the table --------------------------------------------------------------------------------------------- */

enum { INDENT = 12 }; /* of what is told below the table */

/* A heading, and text that goes on below itself. */
static void print_text(FILE *stream, const char *heading, const char *text)
{
    fprintf(stream, "%-*s", INDENT, heading);
    base_wrap(stream, text, INDENT, INDENT, cli_width());
}

static double rounds_of(const shoal_estimate *estimate)
{
    double rounds = 0;
    for (int i = 0; i < estimate->phases; i++)
        rounds += estimate->phase[i].rounds;
    return rounds;
}

/* Whether the rounds are those that earlier runs made, rather than all that may be made. */
static bool by_history(const cli_plan_answer *answer)
{
    const plan_question *question = &answer->question;
    bool any = false;
    for (int i = 0; i < question->paces; i++)
        any |= strcmp(question->pace[i].learner, answer->algorithm->name) == 0 && question->pace[i].rounds > 0;
    return any;
}

static void print_parts(FILE *stream, const cli_plan_answer *answer)
{
    const shoal_estimate *estimate = &answer->best->estimate;
    const struct {
        const char *name;
        double seconds;
    } parts[] = {{"start", estimate->start},         {"load", estimate->load},        {"map", estimate->map},
                 {"stragglers", estimate->straggle}, {"reduce", estimate->reduce},    {"update", estimate->update},
                 {"publish", estimate->publish},     {"lost workers", estimate->lost}};
    char text[512] = "";
    const char *before = "";
    if (estimate->phases > 0)
        snprintf(text, sizeof text, "%.0f rounds, %s: ", rounds_of(estimate),
                 by_history(answer) ? "by how many of those allowed runs made before"
                                    : "if it does not converge earlier");
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        char time[PLAN_UNITS_BYTES];
        size_t used = strlen(text);
        if (parts[i].seconds < 0.001 * estimate->seconds)
            continue;
        plan_format_duration(time, parts[i].seconds);
        snprintf(text + used, sizeof text - used, "%s%s %s", before, parts[i].name, time);
        before = ", ";
    }
    print_text(stream, "its time", text);
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
    print_text(stream, "its price", text);
}

static void format_day(char out[16], int64_t seconds)
{
    struct tm calendar;
    time_t then = (time_t)seconds;
    gmtime_r(&then, &calendar);
    strftime(out, 16, "%Y-%m-%d", &calendar);
}

/* What was measured, and when. */
static void print_measured(FILE *stream, const cli_plan_answer *answer)
{
    char day[16] = "", learner[96] = "", store[320] = "", text[sizeof learner + sizeof store];
    const char *name = answer->algorithm->name;
    if (answer->calibration)
        format_day(day, answer->calibration->date);
    if (answer->probed || answer->measured_now)
        snprintf(learner, sizeof learner, "%s now%s", name, answer->probed ? ", with these options" : "");
    else if (!(answer->settings->flops > 0))
        snprintf(learner, sizeof learner, "%s on %s", name, day);
    if (answer->site_measured)
        snprintf(store, sizeof store, "%sstore %.256s on %s", learner[0] ? "; " : "", answer->store, day);
    snprintf(text, sizeof text, "%s%s", learner, store);
    if (text[0])
        print_text(stream, "measured", text);
}

/* Where the constants come from. */
static void print_sources(FILE *stream, const cli_plan_answer *answer)
{
    if (answer->question.paper)
        return;
    print_measured(stream, answer);
    if (answer->prices) {
        char text[512];
        snprintf(text, sizeof text, "%s%s%s", answer->prices->name, answer->prices->date[0] ? ", " : "",
                 answer->prices->date);
        print_text(stream, "prices", text);
    }
    if (answer->assumed[0])
        print_text(stream, "assumed", answer->assumed);
}

int cli_plan_print(FILE *stream, const cli_plan_answer *answer)
{
    char best[320], why[320], text[sizeof best + sizeof why + 2];
    const plan_option *option = answer->best;
    int status = cli_plan_print_table(stream, answer);
    if (status < 0)
        return status;
    describe(best, sizeof best, answer, option, false);
    tell_why(why, sizeof why, answer);
    snprintf(text, sizeof text, "%s: %s", best, why);
    fputc('\n', stream);
    print_text(stream, "best", text);
    print_parts(stream, answer);
    if (answer->priced)
        print_price(stream, &option->estimate);
    print_sources(stream, answer);
    return SHOAL_OK;
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static json_t *json_parts(const shoal_estimate *estimate)
{
    json_t *parts = json_object();
    cli_json_put(&parts, "start", cli_json_real(estimate->start));
    cli_json_put(&parts, "load", cli_json_real(estimate->load));
    cli_json_put(&parts, "map", cli_json_real(estimate->map));
    cli_json_put(&parts, "straggle", cli_json_real(estimate->straggle));
    cli_json_put(&parts, "reduce", cli_json_real(estimate->reduce));
    cli_json_put(&parts, "update", cli_json_real(estimate->update));
    cli_json_put(&parts, "publish", cli_json_real(estimate->publish));
    cli_json_put(&parts, "lost", cli_json_real(estimate->lost));
    return parts;
}

static json_t *json_option(const plan_option *option)
{
    const shoal_estimate *estimate = &option->estimate;
    json_t *row = json_object();
    cli_json_put(&row, "workers", json_integer(option->workers));
    cli_json_put(&row, "machine", option->machine ? json_string(machine_of(option)) : json_null());
    cli_json_put(&row, "units", cli_json_real(estimate->units));
    cli_json_put(&row, "seconds", cli_json_real(estimate->seconds));
    cli_json_put(&row, "low", cli_json_real(estimate->low));
    cli_json_put(&row, "high", cli_json_real(estimate->high));
    cli_json_put(&row, "sequential", cli_json_real(estimate->sequential));
    cli_json_put(&row, "speedup", cli_json_real(estimate->speedup));
    cli_json_put(&row, "efficiency", cli_json_real(estimate->efficiency));
    cli_json_put(&row, "cost", cli_json_real(estimate->cost));
    cli_json_put(&row, "cost_low", cli_json_real(estimate->cost_low));
    cli_json_put(&row, "cost_high", cli_json_real(estimate->cost_high));
    cli_json_put(&row, "requests", cli_json_real(estimate->requests));
    cli_json_put(&row, "request_price", cli_json_real(estimate->request_price));
    cli_json_put(&row, "memory", cli_json_real(option->memory));
    cli_json_put(&row, "fits", json_boolean(option->fits));
    cli_json_put(&row, "in_time", json_boolean(option->in_time));
    cli_json_put(&row, "in_budget", json_boolean(option->in_budget));
    cli_json_put(&row, "front", json_boolean(option->front));
    cli_json_put(&row, "parts", json_parts(estimate));
    return row;
}

static json_t *json_job(const cli_plan_answer *answer)
{
    const plan_question *question = &answer->question;
    json_t *job = json_object();
    cli_json_put(&job, "rows", cli_json_real(question->job.rows));
    cli_json_put(&job, "columns", cli_json_real(question->job.columns));
    cli_json_put(&job, "value_bytes", cli_json_real(question->job.value_bytes));
    if (answer->best->estimate.phases > 0)
        cli_json_put(&job, "rounds", cli_json_real(rounds_of(&answer->best->estimate)));
    return job;
}

static json_t *json_positive(double value)
{
    return value > 0 ? cli_json_real(value) : json_null();
}

static json_t *json_wish(const cli_plan_answer *answer)
{
    static const char *const names[] = {
        [PLAN_WISH_TIME] = "time", [PLAN_WISH_COST] = "cost", [PLAN_WISH_BOTH] = "cost*time"};
    const plan_choice *choice = &answer->choice;
    json_t *wish = json_object();
    cli_json_put(&wish, "objective", json_string(names[choice->wish]));
    cli_json_put(&wish, "deadline", json_positive(answer->question.deadline));
    cli_json_put(&wish, "budget", json_positive(answer->question.budget));
    cli_json_put(&wish, "fitting", json_integer(choice->fitting));
    cli_json_put(&wish, "meeting", json_integer(choice->meeting));
    return wish;
}

/* A machine as it counts where no table says otherwise. */
static json_t *json_crew(const cli_plan_answer *answer)
{
    const plan_question *question = &answer->question;
    json_t *crew = json_object();
    cli_json_put(&crew, "local", json_boolean(question->crew.machines == 1));
    cli_json_put(&crew, "threads", json_positive(question->threads));
    cli_json_put(&crew, "cores", cli_json_real(question->crew.cores));
    cli_json_put(&crew, "speed", cli_json_real(question->crew.speed));
    cli_json_put(&crew, "spot", json_boolean(question->spot));
    cli_json_put(&crew, "price",
                 answer->priced && !question->machines ? cli_json_real(question->crew.dollars_per_hour) : json_null());
    cli_json_put(&crew, "start", cli_json_real(question->crew.start));
    cli_json_put(&crew, "losses", cli_json_real(question->crew.losses));
    cli_json_put(&crew, "replace", cli_json_real(question->crew.replace));
    cli_json_put(&crew, "billed", cli_json_real(question->crew.billed));
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
static json_t *json_constants(const cli_plan_answer *answer)
{
    const plan_question *question = &answer->question;
    plan_calibration *used = NULL;
    if (base_alloc(&used, 1, sizeof *used, "constants") < 0)
        return NULL;
    used->paces = question->paces;
    used->sites = 1;
    memcpy(used->pace, question->pace, (size_t)question->paces * sizeof *used->pace);
    used->site[0].site = question->site;
    snprintf(used->site[0].store, sizeof used->site[0].store, "%s", answer->store);
    json_t *whole = json_calibration(used), *constants = json_object();
    (void)json_object_del(json_array_get(json_object_get(whole, "sites"), 0), "date"); /* nothing of this was kept */
    cli_json_put(&constants, "paces", json_incref(json_object_get(whole, "paces")));
    cli_json_put(&constants, "site", json_incref(json_array_get(json_object_get(whole, "sites"), 0)));
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

int cli_plan_print_json(const cli_plan_answer *answer)
{
    const plan_choice *choice = &answer->choice;
    char why[320];
    json_t *object = json_object();
    tell_why(why, sizeof why, answer);
    cli_json_put(&object, "learner", json_string(answer->algorithm->name));
    cli_json_put(&object, "model", json_string(answer->question.paper ? "paper" : "ours"));
    cli_json_put(&object, "job", json_job(answer));
    cli_json_put(&object, "best", json_option(answer->best));
    cli_json_put(&object, "why", json_string(why));
    cli_json_put(&object, "fastest", json_option(&choice->option[choice->fastest]));
    cli_json_put(&object, "cheapest", json_option(&choice->option[choice->cheapest]));
    if (answer->formula > 0)
        cli_json_put(&object, "formula", cli_json_real(answer->formula));
    cli_json_put(&object, "wish", json_wish(answer));
    cli_json_put(&object, "priced", json_boolean(answer->priced));
    cli_json_put(&object, "rows", json_rows(choice));
    if (!answer->question.paper) {
        cli_json_put(&object, "store", cli_json_text(answer->store));
        cli_json_put(&object, "probed", json_boolean(answer->probed));
        cli_json_put(&object, "store_measured", json_boolean(answer->site_measured));
        cli_json_put(&object, "assumed", cli_json_text(answer->assumed));
        cli_json_put(&object, "crew", json_crew(answer));
        cli_json_put(&object, "constants", json_constants(answer));
        cli_json_put(&object, "calibration", json_calibration(answer->calibration));
    }
    if (answer->prices) {
        cli_json_put(&object, "prices", cli_json_text(answer->prices->name));
        cli_json_put(&object, "prices_date", cli_json_text(answer->prices->date));
    }
    return cli_print_json(object);
}

/* ---- the picture ------------------------------------------------------------------------------------------------- */

static const char *name_of(const plan_option *option)
{
    return option->machine ? option->machine->name : "";
}

int cli_plan_draw(const char *path, const cli_plan_answer *answer)
{
    const plan_choice *choice = &answer->choice;
    plan_point *point = NULL;
    char why[320], title[200], rows[32], columns[32];
    int status = base_alloc(&point, (size_t)choice->options, sizeof *point, "the points of a picture");
    if (status < 0)
        return status;
    int64_t points = 0;
    bool one_place = cli_plan_is_one_place(choice);
    for (int64_t i = 0; i < choice->options; i++) {
        const plan_option *option = &choice->option[i];
        const shoal_estimate *estimate = &option->estimate;
        if (!option->fits)
            continue;
        point[points++] = (plan_point){.machine = one_place ? name_of(option) : machine_of(option),
                                       .workers = option->workers,
                                       .seconds = estimate->seconds,
                                       .low = estimate->low,
                                       .high = estimate->high,
                                       .dollars = estimate->cost,
                                       .dollars_low = estimate->cost_low,
                                       .dollars_high = estimate->cost_high,
                                       .front = option->front,
                                       .best = option == answer->best};
    }
    tell_why(why, sizeof why, answer);
    cli_format_count(rows, sizeof rows, (int64_t)answer->question.job.rows);
    cli_format_count(columns, sizeof columns, (int64_t)answer->question.job.columns);
    snprintf(title, sizeof title, "%s, %s rows of %s columns", answer->algorithm->name, rows, columns);
    status = plan_picture_write(path, &(plan_picture){.title = title,
                                                      .why = why,
                                                      .deadline = answer->question.deadline,
                                                      .budget = answer->question.budget,
                                                      .point = point,
                                                      .points = points});
    base_free(&point);
    return status;
}
