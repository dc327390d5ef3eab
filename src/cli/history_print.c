/* The history: predicted and actual times of runs.  See calibrate_print.h. */
#include "calibrate_print.h"

#include <inttypes.h>
#include <math.h>
#include <time.h>

#include "base/memory.h"
#include "base/text.h"
#include "plan/history.h"
#include "plan/units.h"

/* ---- for people -------------------------------------------------------------------------------------------------- */

static void format_date(char *out, size_t size, int64_t date, const char *format)
{
    time_t then = (time_t)date;
    struct tm parts;
    if (!gmtime_r(&then, &parts) || strftime(out, size, format, &parts) == 0)
        snprintf(out, size, "?");
}

static void print_run(const plan_run *run)
{
    char date[32], rows[32], shape[64], store[20], predicted[PLAN_UNITS_BYTES] = "-", low[PLAN_UNITS_BYTES],
                                                   high[PLAN_UNITS_BYTES];
    char interval[2 * PLAN_UNITS_BYTES + 8] = "", actual[PLAN_UNITS_BYTES];
    format_date(date, sizeof date, run->date, "%Y-%m-%d %H:%M");
    base_format_count(rows, sizeof rows, (int64_t)fmin(run->rows, 0x1p62));
    snprintf(shape, sizeof shape, "%s x %.0f", rows, run->columns);
    int length = snprintf(store, sizeof store, "%.19s", run->store[0] ? run->store : "-");
    plan_format_duration(actual, run->seconds);
    if (plan_was_predicted(run)) {
        plan_format_duration(predicted, run->predicted);
        plan_format_duration(low, run->low);
        plan_format_duration(high, run->high);
        snprintf(interval, sizeof interval, "%s to %s", low, high);
    }
    printf("%-16s  %-11.11s  %18s  %7" PRId64 "  ", date, run->learner, shape, run->workers);
    cli_put_text(stdout, store);
    printf("%*s  %9s  %-20s  %9s  ", 19 - length, "", predicted, interval, actual);
    if (plan_was_predicted(run))
        printf("%5.2f\n", run->seconds / run->predicted);
    else
        printf("%5s\n", "-");
}

/* When the present calibration was measured or refitted; 0 where there is none. */
static int64_t calibrated_since(void)
{
    plan_calibration *kept = NULL;
    char *path = NULL;
    int64_t since = 0;
    if (base_alloc(&kept, 1, sizeof *kept, "the calibration") == SHOAL_OK && plan_calibration_path(&path) == SHOAL_OK &&
        plan_calibration_read(kept, path) == SHOAL_OK)
        since = kept->refitted > kept->date ? kept->refitted : kept->date;
    base_free(&path);
    base_free(&kept);
    return since;
}

static int print_table(const plan_history *history)
{
    plan_history_errors errors;
    char median[PLAN_UNITS_BYTES], worst[PLAN_UNITS_BYTES];
    int status = plan_history_judge(&errors, history, calibrated_since());
    if (status < 0)
        return status;
    plan_format_error(median, errors.median);
    plan_format_error(worst, errors.worst);
    if (history->count > 0)
        printf("%-16s  %-11s  %18s  %7s  %-19s  %9s  %-20s  %9s  %5s\n", "date (UTC)", "learner", "rows x columns",
               "workers", "store", "predicted", "90% interval", "actual", "ratio");
    for (int64_t i = 0; i < history->count; i++)
        print_run(&history->run[i]);
    if (history->count == 0)
        printf("no runs yet\n");
    else if (errors.predicted == 0)
        printf("\n%" PRId64 " run%s, no predictions: run `shoal calibrate` first\n", history->count,
               base_plural(history->count));
    else
        printf("\n%" PRId64 " of %" PRId64 " run%s predicted: median error %s, worst %s; %" PRId64
               " fell within their interval\n",
               errors.predicted, history->count, base_plural(history->count), median, worst, errors.within);
    if (errors.poor)
        printf("predictions are not reliable: run `shoal calibrate --refit` to fit them to these runs\n");
    if (history->damaged > 0)
        printf("%" PRId64 " line%s of %s could not be read and %s left out\n", history->damaged,
               base_plural(history->damaged), history->path, history->damaged == 1 ? "was" : "were");
    return SHOAL_OK;
}

/* ---- as JSON ----------------------------------------------------------------------------------------------------- */

/* Whole numbers as such: threads of a worker need not be, where some have more than others. */
static json_t *json_count(double value)
{
    return value == floor(value) && value < 0x1p53 ? json_integer((json_int_t)value) : base_json_real(value);
}

static json_t *json_run(const plan_run *run)
{
    char date[32];
    bool predicted = plan_was_predicted(run);
    json_t *object = json_object();
    format_date(date, sizeof date, run->date, "%Y-%m-%dT%H:%M:%SZ");
    base_json_put(&object, "date", json_string(date));
    base_json_put(&object, "learner", base_json_text(run->learner));
    base_json_put(&object, "rows", json_count(run->rows));
    base_json_put(&object, "columns", json_count(run->columns));
    base_json_put(&object, "workers", json_integer(run->workers));
    base_json_put(&object, "threads", json_count(run->threads));
    base_json_put(&object, "store", run->store[0] ? base_json_text(run->store) : json_null());
    base_json_put(&object, "predicted", predicted ? base_json_real(run->predicted) : json_null());
    base_json_put(&object, "low", predicted ? base_json_real(run->low) : json_null());
    base_json_put(&object, "high", predicted ? base_json_real(run->high) : json_null());
    base_json_put(&object, "actual", base_json_real(run->seconds));
    base_json_put(&object, "ratio", predicted ? base_json_real(run->seconds / run->predicted) : json_null());
    return object;
}

static int print_history_object(const plan_history *history)
{
    plan_history_errors errors;
    int status = plan_history_judge(&errors, history, 0);
    if (status < 0)
        return status;
    json_t *object = json_object(), *runs = json_array();
    for (int64_t i = 0; i < history->count; i++)
        json_array_append_new(runs, json_run(&history->run[i]));
    base_json_put(&object, "path", base_json_text(history->path));
    base_json_put(&object, "runs", runs);
    base_json_put(&object, "predicted", json_integer(errors.predicted));
    base_json_put(&object, "within", json_integer(errors.within));
    base_json_put(&object, "median_error", base_json_real(errors.median));
    base_json_put(&object, "worst_error", base_json_real(errors.worst));
    base_json_put(&object, "damaged", json_integer(history->damaged));
    return cli_print_json(object);
}

/* ---- for the verb ------------------------------------------------------------------------------------------------ */

int cli_history_print(bool json)
{
    plan_history history;
    int status = plan_history_open(&history);
    if (status == SHOAL_OK)
        status = (json ? print_history_object : print_table)(&history);
    plan_history_release(&history);
    return status;
}
