/* How a plan is told: a table for people, an object for programs, a picture.  See plan_verb.h. */
#include <math.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "plan/plan_picture.h"
#include "plan_units.h"
#include "plan_verb.h"

enum { ROWS_SHOWN = 18, LIST_SHOWN = 40 };

/* ---- words --------------------------------------------------------------------------------------------------------- */

static const char *machine_of(const plan_option *option)
{
    return option->machine ? option->machine->id : "";
}

static bool is_priced(const plan_option *option)
{
    return option->estimate.cost > 0;
}

/* "12 workers on aws:us-east-1/c7i.large: 3.1 h, $7.10" */
static void describe(char *out, size_t size, const plan_option *option)
{
    const char *name = machine_of(option);
    char time[CLI_UNITS_BYTES], money[CLI_UNITS_BYTES];
    cli_format_duration(time, option->estimate.seconds);
    cli_format_money(money, option->estimate.cost);
    snprintf(out, size, "%lld worker%s%s%s, %s%s%s", (long long)option->workers, option->workers == 1 ? "" : "s",
             name[0] ? " on " : "", name, time, is_priced(option) ? ", " : "", is_priced(option) ? money : "");
}

static void tell_why(char *out, size_t size, const cli_plan_answer *answer)
{
    static const char *const best[] = {[PLAN_WISH_TIME] = "the fastest",
                                       [PLAN_WISH_COST] = "the cheapest",
                                       [PLAN_WISH_BOTH] = "the least cost times time"};
    const plan_question *question = &answer->question;
    char time[CLI_UNITS_BYTES], money[CLI_UNITS_BYTES];
    if (answer->best == &answer->optimum) {
        snprintf(out, size, "the fastest of all, by P* = (3 N F / B)^(2/3) = %.1f", answer->formula);
        return;
    }
    cli_format_duration(time, question->deadline);
    cli_format_money(money, question->budget);
    snprintf(out, size, "%s of %lld%s%s%s%s%s", best[answer->choice.wish], (long long)answer->choice.meeting,
             question->deadline > 0 || question->budget > 0 ? " that" : "",
             question->deadline > 0 ? " end within " : "", question->deadline > 0 ? time : "",
             question->deadline > 0 && question->budget > 0 ? " and" : "",
             question->budget > 0 ? " cost at most " : "");
    if (question->budget > 0)
        snprintf(out + strlen(out), size - strlen(out), "%s", money);
    if (question->deadline > 0 || question->budget > 0)
        snprintf(out + strlen(out), size - strlen(out), " in 95%% of runs");
}

int cli_plan_nothing(const cli_plan_answer *answer)
{
    const plan_choice *choice = &answer->choice;
    const plan_question *question = &answer->question;
    char fast[320], cheap[320], asked[CLI_UNITS_BYTES];
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
    describe(fast, sizeof fast, &choice->option[choice->fastest]);
    describe(cheap, sizeof cheap, &choice->option[choice->cheapest]);
    bool late = choice->option[choice->fastest].in_time == false;
    if (late)
        cli_format_duration(asked, question->deadline);
    else
        cli_format_money(asked, question->budget);
    bool both = question->deadline > 0 && question->budget > 0;
    return shoal_fail(SHOAL_INVALID, "%s: nothing meets %s%s in 95%% of runs: the fastest is %s; the cheapest is %s",
                      late ? "--deadline" : "--budget", asked, both && !late ? " and the deadline" : "", fast, cheap);
}

/* ---- the table ------------------------------------------------------------------------------------------------------- */

/* The best of each machine, or some numbers of workers of the only one. */
static void show_machines(bool *shown, const plan_choice *choice)
{
    for (int64_t first = 0, end; first < choice->options; first = end) {
        int64_t best = first;
        for (end = first; end < choice->options && choice->option[end].machine == choice->option[first].machine; end++)
            if (plan_is_better(&choice->option[end], &choice->option[best], choice->wish))
                best = end;
        shown[best] = choice->option[best].fits;
    }
}

static void show_spread(bool *shown, const plan_choice *choice)
{
    double step =
        pow((double)choice->option[choice->options - 1].workers / (double)choice->option[0].workers, 1.0 / ROWS_SHOWN);
    double next = 0;
    for (int64_t i = 0; i < choice->options; i++)
        if ((double)choice->option[i].workers >= next) {
            shown[i] = true;
            next = (double)choice->option[i].workers * step;
        }
    shown[choice->options - 1] = true;
}

/* All that were asked for, if these are few; otherwise some, and always the best, the fastest and the cheapest. */
static void choose_shown(bool *shown, const cli_plan_answer *answer)
{
    const plan_choice *choice = &answer->choice;
    if (answer->settings->all || choice->options <= LIST_SHOWN) {
        memset(shown, true, (size_t)choice->options * sizeof *shown);
        return;
    }
    if (answer->question.machines && answer->question.machines->machines > 1)
        show_machines(shown, choice);
    else
        show_spread(shown, choice);
    shown[choice->best] = shown[choice->fastest] = shown[choice->cheapest] = true;
}

/* Which columns a table has beside those of all. */
typedef struct columns {
    bool machines, interval, priced;
} columns;

static void print_option(FILE *stream, const plan_option *option, bool best, columns columns)
{
    const shoal_estimate *estimate = &option->estimate;
    char time[CLI_UNITS_BYTES], low[CLI_UNITS_BYTES], high[CLI_UNITS_BYTES], money[CLI_UNITS_BYTES],
        requests[CLI_UNITS_BYTES];
    cli_format_duration(time, estimate->seconds);
    cli_format_duration(low, estimate->low);
    cli_format_duration(high, estimate->high);
    cli_format_money(money, estimate->cost);
    cli_format_money(requests, estimate->request_price);
    fprintf(stream, "%s %7lld", best ? "*" : " ", (long long)option->workers);
    if (columns.machines)
        fprintf(stream, "  %-36s", machine_of(option));
    fprintf(stream, " %9s", time);
    if (columns.interval)
        fprintf(stream, " %9s to %-9s", low, high);
    fprintf(stream, " %9.1f %10.2f", estimate->speedup, estimate->efficiency);
    if (columns.priced)
        fprintf(stream, " %11s %10s", money, requests);
    fprintf(stream, "%s%s\n", option->fits ? "" : "  too little memory",
            option->fits && !(option->in_time && option->in_budget) ? option->in_time ? "  too dear" : "  too late"
                                                                    : "");
}

static int print_table(FILE *stream, const cli_plan_answer *answer)
{
    const plan_choice *choice = &answer->choice;
    const columns columns = {answer->question.machines != NULL, !answer->question.paper, is_priced(answer->best)};
    bool *shown = NULL;
    int64_t hidden = 0;
    int status = base_alloc(&shown, (size_t)choice->options, sizeof *shown, "the rows of a table");
    if (status < 0)
        return status;
    choose_shown(shown, answer);
    fprintf(stream, "  workers");
    if (columns.machines)
        fprintf(stream, "  %-36s", "machine");
    fprintf(stream, " %9s%s %9s %10s", "time", columns.interval ? "   90% of runs take    " : "", "speed-up",
            "efficiency");
    if (columns.priced)
        fprintf(stream, " %11s %10s", "price", "requests");
    fputc('\n', stream);
    for (int64_t i = 0; i < choice->options; i++) {
        hidden += !shown[i];
        if (shown[i])
            print_option(stream, &choice->option[i], &choice->option[i] == answer->best, columns);
    }
    if (hidden > 0)
        fprintf(stream, "  and %lld more (--all, --json)\n", (long long)hidden);
    base_free(&shown);
    return SHOAL_OK;
}

/* ---- below the table --------------------------------------------------------------------------------------------------- */

static void print_parts(FILE *stream, const shoal_estimate *estimate)
{
    const struct {
        const char *name;
        double seconds;
    } parts[] = {{"start", estimate->start},         {"load", estimate->load},        {"map", estimate->map},
                 {"stragglers", estimate->straggle}, {"reduce", estimate->reduce},    {"update", estimate->update},
                 {"publish", estimate->publish},     {"lost workers", estimate->lost}};
    const char *before = "of it       ";
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        char time[CLI_UNITS_BYTES];
        if (parts[i].seconds < 0.001 * estimate->seconds)
            continue;
        cli_format_duration(time, parts[i].seconds);
        fprintf(stream, "%s%s %s", before, parts[i].name, time);
        before = ", ";
    }
    fputc('\n', stream);
}

/* Where the constants come from. */
static void print_sources(FILE *stream, const cli_plan_answer *answer)
{
    char date[16] = "";
    if (answer->question.paper)
        return;
    if (answer->calibration) {
        struct tm calendar;
        time_t then = (time_t)answer->calibration->date;
        gmtime_r(&then, &calendar);
        strftime(date, sizeof date, "%Y-%m-%d", &calendar);
    }
    if (answer->probed)
        fprintf(stream, "measured    %s now, with these options; ", answer->algorithm->name);
    else if (answer->measured_now)
        fprintf(stream, "measured    %s now; ", answer->algorithm->name);
    else if (!answer->settings->flops)
        fprintf(stream, "measured    %s on %s; ", answer->algorithm->name, date);
    else
        fprintf(stream, "measured    ");
    fprintf(stream, "store %s%s%s\n", answer->store, answer->site_measured ? " on " : " as published",
            answer->site_measured ? date : "");
    if (answer->prices)
        fprintf(stream, "prices      %s%s%s\n", answer->prices->name, answer->prices->date[0] ? ", " : "",
                answer->prices->date);
    if (answer->assumed[0])
        fprintf(stream, "assumed     %s\n", answer->assumed);
}

int cli_plan_print(FILE *stream, const cli_plan_answer *answer)
{
    char best[320], why[320];
    const plan_option *option = answer->best;
    int status = print_table(stream, answer);
    if (status < 0)
        return status;
    describe(best, sizeof best, option);
    tell_why(why, sizeof why, answer);
    fprintf(stream, "\nbest        %s: %s\n", best, why);
    print_parts(stream, &option->estimate);
    print_sources(stream, answer);
    return SHOAL_OK;
}

/* ---- JSON ---------------------------------------------------------------------------------------------------------------- */

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
    cli_json_put(&row, "front", json_boolean(option->front));
    cli_json_put(&row, "parts", json_parts(estimate));
    return row;
}

static json_t *json_job(const plan_question *question)
{
    json_t *job = json_object();
    cli_json_put(&job, "rows", cli_json_real(question->job.rows));
    cli_json_put(&job, "columns", cli_json_real(question->job.columns));
    cli_json_put(&job, "value_bytes", cli_json_real(question->job.value_bytes));
    return job;
}

/* What calibrate wrote, or null. */
static json_t *json_calibration(const cli_plan_answer *answer)
{
    char *text = NULL;
    json_t *object = NULL;
    if (answer->calibration && plan_calibration_json(&text, answer->calibration) == SHOAL_OK)
        object = json_loads(text, 0, NULL);
    base_free(&text);
    return object ? object : json_null();
}

int cli_plan_print_json(const cli_plan_answer *answer)
{
    const plan_choice *choice = &answer->choice;
    char why[320];
    json_t *object = json_object(), *rows = json_array();
    tell_why(why, sizeof why, answer);
    cli_json_put(&object, "learner", json_string(answer->algorithm->name));
    cli_json_put(&object, "model", json_string(answer->question.paper ? "paper" : "ours"));
    cli_json_put(&object, "job", json_job(&answer->question));
    cli_json_put(&object, "best", json_option(answer->best));
    cli_json_put(&object, "why", json_string(why));
    cli_json_put(&object, "fastest", json_option(&choice->option[choice->fastest]));
    cli_json_put(&object, "cheapest", json_option(&choice->option[choice->cheapest]));
    if (answer->formula > 0)
        cli_json_put(&object, "formula", cli_json_real(answer->formula));
    for (int64_t i = 0; i < choice->options && rows; i++)
        if (json_array_append_new(rows, json_option(&choice->option[i])) != 0) {
            json_decref(rows);
            rows = NULL;
        }
    cli_json_put(&object, "rows", rows);
    if (!answer->question.paper) {
        cli_json_put(&object, "store", cli_json_text(answer->store));
        cli_json_put(&object, "probed", json_boolean(answer->probed));
        cli_json_put(&object, "store_measured", json_boolean(answer->site_measured));
        cli_json_put(&object, "assumed", cli_json_text(answer->assumed));
        cli_json_put(&object, "calibration", json_calibration(answer));
    }
    if (answer->prices)
        cli_json_put(&object, "prices", cli_json_text(answer->prices->name));
    return cli_print_json(object);
}

/* ---- the picture ------------------------------------------------------------------------------------------------------------ */

static const char *name_of(const plan_option *option)
{
    return option->machine ? option->machine->name : "";
}

/* Whether names alone tell all machines apart. */
static bool is_one_place(const plan_choice *choice)
{
    bool one = true;
    for (int64_t i = 1; i < choice->options && choice->option[0].machine; i++) {
        const plan_machine *a = choice->option[0].machine, *b = choice->option[i].machine;
        one &= strcmp(a->cloud, b->cloud) == 0 && strcmp(a->region, b->region) == 0;
    }
    return one;
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
    bool one_place = is_one_place(choice);
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
                                       .feasible = option->in_time && option->in_budget,
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
