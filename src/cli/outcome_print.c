/* What came of a run, for people and as JSON. */
#include "cli.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/pool.h"
#include "base/text.h"
#include "plan/units.h"
#include "run/ranks.h"
#include "run_result.h"
#include "store/store_internal.h"

/* ---- files ------------------------------------------------------------------------------------------------------- */

FILE *cli_summary_stream(const run_file *outputs)
{
    return run_files_have_stdout(outputs) ? stderr : stdout;
}

/* Prints a path after those before it.  Whoever reads standard output sees what was written there. */
static void print_path(FILE *stream, const char **before, const char *path)
{
    if (!path || strcmp(path, "-") == 0)
        return;
    fputs(*before, stream);
    cli_put_text(stream, path);
    *before = ", ";
}

void cli_print_written(FILE *stream, const run_file *outputs, const char *folder)
{
    const char *before = "wrote      ";
    for (; outputs->name; outputs++)
        print_path(stream, &before, outputs->path);
    print_path(stream, &before, folder);
    if (before[0] == ',')
        fputc('\n', stream);
}

/* ---- what was predicted ------------------------------------------------------------------------------------------ */

/* A run of at least that many seconds is worth a word about how it could have been predicted. */
static const double LONG_RUN = 10;

static void print_predicted(FILE *stream, const run_prediction *is)
{
    const shoal_estimate *estimate = &is->estimate;
    char why[PLAN_DOUBT_BYTES], seconds[PLAN_UNITS_BYTES], low[PLAN_UNITS_BYTES], high[PLAN_UNITS_BYTES],
        took[PLAN_UNITS_BYTES];
    if (is->took < PLAN_RUN_SHORT)
        return;
    if (is->told && !is->trust.reliable) {
        plan_trust_describe(why, &is->trust);
        fprintf(stream, "no reliable prediction: %s\n", why);
    } else if (is->told) {
        plan_format_duration(seconds, estimate->seconds);
        plan_format_duration(low, estimate->low);
        plan_format_duration(high, estimate->high);
        plan_format_duration(took, is->took);
        fprintf(stream, "predicted  %s (%s to %s) for these %.0f round%s, took %s\n", seconds, low, high, is->rounds,
                is->rounds == 1 ? "" : "s", took);
    } else if (is->uncalibrated && is->took > LONG_RUN) {
        fprintf(stream, "no prediction: run `shoal calibrate` first\n");
    }
}

static json_t *json_predicted(const run_prediction *is)
{
    const shoal_estimate *estimate = &is->estimate;
    double rounds_seconds = 0;
    if (!is->told)
        return json_null();
    json_t *object = json_object(), *phases = json_object();
    for (int i = 0; i < estimate->phases; i++) {
        base_json_put(&phases, estimate->phase[i].name, base_json_real(estimate->phase[i].seconds));
        rounds_seconds += estimate->phase[i].seconds;
    }
    base_json_put(&object, "seconds", base_json_real(estimate->seconds));
    base_json_put(&object, "low", base_json_real(estimate->low));
    base_json_put(&object, "high", base_json_real(estimate->high));
    base_json_put(&object, "reliable", json_boolean(is->trust.reliable));
    base_json_put(&object, "judged_by", json_integer(is->trust.runs));
    base_json_put(&object, "median_error", base_json_real(is->trust.median));
    base_json_put(&object, "rounds", base_json_real(is->rounds));
    base_json_put(&object, "rounds_seconds", base_json_real(rounds_seconds));
    base_json_put(&object, "took", base_json_real(is->took));
    if (phases)
        base_json_put(&object, "phases", phases);
    return object;
}

/* ---- times and counts -------------------------------------------------------------------------------------------- */

/* Seconds of a phase; what opening the data took is part of "load". */
static double phase_seconds(const shoal_outcome *outcome, const char *name)
{
    double seconds = strcmp(name, "load") == 0 ? outcome->load_seconds : 0;
    for (int i = 0; i < outcome->report.phases; i++)
        if (strcmp(outcome->report.phase[i].name, name) == 0)
            seconds += outcome->report.phase[i].seconds;
    return seconds;
}

/* Phases every report has, in this order, whether or not the learner went through them. */
static const char *const usual_phases[] = {"load", "scan", "seed", "run"};
enum { USUAL_PHASES = 4 };

static bool is_usual(const char *name)
{
    for (int i = 0; i < USUAL_PHASES; i++)
        if (strcmp(name, usual_phases[i]) == 0)
            return true;
    return false;
}

static json_t *json_seconds(const shoal_outcome *outcome)
{
    json_t *seconds = json_object();
    for (int i = 0; i < USUAL_PHASES; i++)
        base_json_put(&seconds, usual_phases[i], base_json_real(phase_seconds(outcome, usual_phases[i])));
    for (int i = 0; i < outcome->report.phases; i++)
        if (!is_usual(outcome->report.phase[i].name))
            base_json_put(&seconds, outcome->report.phase[i].name, base_json_real(outcome->report.phase[i].seconds));
    base_json_put(&seconds, "write", base_json_real(outcome->write_seconds));
    base_json_put(&seconds, "total", base_json_real(base_seconds() - outcome->started));
    return seconds;
}

json_t *cli_json_number(const shoal_result *result, const shoal_number *number)
{
    const char *word = learn_number_word(result, number);
    if (word)
        return json_string(word);
    if (number->truth)
        return json_boolean(number->value != 0);
    return number->whole ? json_integer((json_int_t)number->value) : base_json_real(number->value);
}

static void json_away(json_t **object, const run_away *away)
{
    base_json_put(object, "job", json_string(away->id));
    base_json_put(object, "store", base_json_text(away->store));
    base_json_put(object, "workers", json_integer(away->report.workers));
    base_json_put(object, "lost", json_integer(away->report.lost));
    base_json_put(object, "doubled", json_integer(away->report.doubled));
    base_json_put(object, "requests", json_integer(store_counts_requests(&away->report.requests)));
    base_json_put(object, "price", base_json_real(away->report.requests.price));
}

/* "job        ID, 8 workers (2 lost), 1,204 requests, $0.0006" */
static void print_away(const run_away *away, FILE *stream)
{
    const shoal_job_report *report = &away->report;
    char requests[32];
    base_format_count(requests, sizeof requests, store_counts_requests(&report->requests));
    fprintf(stream, "job        %s, %lld worker%s", away->id, (long long)report->workers, base_plural(report->workers));
    if (report->lost > 0)
        fprintf(stream, " (%lld lost)", (long long)report->lost);
    fprintf(stream, ", %s request%s", requests, base_plural(store_counts_requests(&report->requests)));
    if (report->requests.price > 0)
        fprintf(stream, ", $%.4f", report->requests.price);
    fputc('\n', stream);
}

static void json_ranks(json_t **object, const shoal_report *report)
{
    json_t *seconds = json_object();
    base_json_put(&seconds, "map", base_json_real(report->map_seconds));
    base_json_put(&seconds, "reduce", base_json_real(report->reduce_seconds));
    base_json_put(&seconds, "rows", base_json_real(report->row_seconds));
    base_json_put(&seconds, "update", base_json_real(report->update_seconds));
    base_json_put(object, "ranks", json_integer(report->ranks));
    base_json_put(object, "hosts", json_integer(report->hosts));
    base_json_put(object, "all_threads", json_integer(report->all_threads));
    base_json_put(object, "rank0", seconds);
}

/* "kernel     avx2, 4 ranks on 2 hosts, 8 threads" */
static void print_kernel(const shoal_report *report, FILE *stream)
{
    fprintf(stream, "kernel     %s, ", report->kernel);
    if (run_ranks())
        fprintf(stream, "%d rank%s on %d host%s, ", report->ranks, base_plural(report->ranks), report->hosts,
                base_plural(report->hosts));
    fprintf(stream, "%d thread%s\n", report->all_threads, base_plural(report->all_threads));
    if (report->device)
        fprintf(stream, "device     %s\n", report->device);
}

/* "kernel     avx2, 4 workers with 2 threads each"; nothing of what their records do not say. */
static void print_workers_kernel(const shoal_job_report *report, FILE *stream)
{
    int threads = report->threads_each ? report->threads_each : report->run.threads;
    if (report->at_end == 0)
        return;
    fprintf(stream, "kernel     ");
    cli_put_text(stream, report->run.kernel);
    fprintf(stream, ", %" PRId64 " worker%s with %d thread%s%s\n", report->at_end, base_plural(report->at_end), threads,
            base_plural(threads),
            report->at_end == 1    ? ""
            : report->threads_each ? " each"
                                   : " in all");
}

/* A target from a file is a column of the rows that are learnt from, but not of DATA. */
static int64_t data_columns(const shoal_outcome *outcome)
{
    return outcome->columns - (run_is_learning(outcome) && outcome->columns_used.target_file);
}

/* What the target is called: a column, or a file. */
static void name_target(char *out, size_t size, const shoal_outcome *outcome)
{
    const run_columns *used = &outcome->columns_used;
    const char *given = outcome->request->inputs.target;
    if (used->target_file)
        snprintf(out, size, "%s", given ? given : "a file");
    else if (used->schema.target)
        snprintf(out, size, "%s", used->schema.target);
    else
        snprintf(out, size, "column %" PRId64, used->target);
}

static bool has_target(const shoal_outcome *outcome)
{
    return run_is_learning(outcome) && outcome->columns_used.target > 0;
}

json_t *cli_outcome_json(const shoal_outcome *outcome)
{
    json_t *object = json_object();
    base_json_put(&object, "learner", json_string(outcome->algorithm->name));
    base_json_put(&object, "data", base_json_text(outcome->data_name));
    base_json_put(&object, "rows", json_integer(outcome->rows - outcome->held_rows));
    base_json_put(&object, "columns", json_integer(data_columns(outcome)));
    if (has_target(outcome)) {
        char name[256];
        name_target(name, sizeof name, outcome);
        base_json_put(&object, "target", base_json_text(name));
    }
    if (outcome->held_name) {
        base_json_put(&object, "validation_data", base_json_text(outcome->held_name));
        base_json_put(&object, "validation_rows", json_integer(outcome->held_rows));
    }
    if (outcome->data)
        cli_json_reading(&object, outcome->data);
    if (outcome->columns_used.schema.classes)
        base_json_put(&object, "class_names",
                      base_json_texts((const char *const *)outcome->columns_used.schema.classes,
                                      outcome->columns_used.schema.classes_count));
    if (outcome->columns_used.note)
        base_json_put(&object, "columns_note", base_json_text(outcome->columns_used.note));
    base_json_put(&object, "rounds", json_integer(outcome->report.rounds));
    for (int i = 0; i < outcome->result->numbers; i++)
        base_json_put(&object, outcome->result->number[i].name,
                      cli_json_number(outcome->result, &outcome->result->number[i]));
    base_json_put(&object, "stopped", json_boolean(outcome->report.stopped));
    base_json_put(&object, "seconds", json_seconds(outcome));
    base_json_put(&object, "kernel", json_string(outcome->report.kernel));
    base_json_put(&object, "device", json_string(outcome->report.device ? outcome->report.device : "cpu"));
    base_json_put(&object, "threads", json_integer(outcome->report.threads));
    if (run_ranks())
        json_ranks(&object, &outcome->report);
    if (outcome->report.resumed > 0)
        base_json_put(&object, "resumed", json_integer(outcome->report.resumed));
    for (int i = 0; i < SHOAL_COUNTERS; i++)
        if (outcome->algorithm->counter[i])
            base_json_put(&object, outcome->algorithm->counter[i], json_integer(outcome->report.counter[i]));
    if (outcome->away.id[0])
        json_away(&object, &outcome->away);
    if (outcome->predicted.asked)
        base_json_put(&object, "predicted", json_predicted(&outcome->predicted));
    int64_t peak = base_memory_peak();
    if (peak >= 0)
        base_json_put(&object, "peak_memory", json_integer(peak));
    return object;
}

/* The names of the first columns, by which people see what was taken for a header. */
static void print_header(FILE *stream, const shoal_data *data, int64_t columns)
{
    enum { NAMES_SHOWN = 4 };
    fputs("; the first line is a header: ", stream);
    for (int64_t i = 0; i < columns && i < NAMES_SHOWN; i++) {
        fputs(i > 0 ? ", " : "", stream);
        cli_put_text(stream, shoal_data_column_name(data, i));
    }
    fputs(columns > NAMES_SHOWN ? ", ..." : "", stream);
}

void cli_print_reading(FILE *stream, const shoal_data *data, int64_t columns)
{
    const int64_t missing = shoal_data_missing(data), dropped = shoal_data_rows_dropped(data);
    const int64_t skipped = shoal_data_skipped(data);
    if (shoal_data_has_header(data))
        print_header(stream, data, columns);
    else if (strcmp(shoal_data_format(data), "text") == 0)
        fputs("; no header", stream);
    if (skipped > 0)
        fprintf(stream, "; %" PRId64 " broken record%s left out", skipped, base_plural(skipped));
    if (dropped > 0)
        fprintf(stream, "; %" PRId64 " row%s with missing values left out", dropped, base_plural(dropped));
    else if (missing > 0)
        fprintf(stream, "; %" PRId64 " missing value%s filled in by means", missing, base_plural(missing));
}

void cli_tell_skipped(const shoal_data *data)
{
    if (!shoal_data_skipped_text(data))
        return;
    fputs("shoal: ", stderr);
    cli_put_text(stderr, shoal_data_skipped_text(data));
    fputc('\n', stderr);
}

void cli_json_reading(json_t **object, const shoal_data *data)
{
    const int64_t missing = shoal_data_missing(data);
    if (strcmp(shoal_data_format(data), "text") == 0)
        base_json_put(object, "header", json_boolean(shoal_data_has_header(data)));
    if (shoal_data_skipped(data) > 0)
        base_json_put(object, "records_skipped", json_integer(shoal_data_skipped(data)));
    if (missing > 0)
        base_json_put(object, "missing", json_integer(missing));
    if (missing > 0)
        base_json_put(object, "rows_dropped", json_integer(shoal_data_rows_dropped(data)));
}

/* "target     species: setosa, versicolor, virginica" */
static void print_target(const shoal_outcome *outcome, FILE *stream)
{
    enum { CLASSES_SHOWN = 8 };
    const learn_schema *schema = &outcome->columns_used.schema;
    char name[256];
    name_target(name, sizeof name, outcome);
    fputs("target     ", stream);
    cli_put_text(stream, name);
    for (int64_t i = 0; i < schema->classes_count && i < CLASSES_SHOWN; i++) {
        fputs(i > 0 ? ", " : ": ", stream);
        cli_put_text(stream, schema->classes[i]);
    }
    fputs(schema->classes_count > CLASSES_SHOWN ? ", ...\n" : "\n", stream);
}

void cli_outcome_print_data(const shoal_outcome *outcome, FILE *stream)
{
    const int64_t rows = outcome->rows - outcome->held_rows;
    fprintf(stream, "data       ");
    cli_put_text(stream, outcome->data_name);
    fprintf(stream, ": %" PRId64 " row%s, %" PRId64 " column%s, %s", rows, base_plural(rows), data_columns(outcome),
            base_plural(data_columns(outcome)), shoal_type_name(outcome->type));
    if (outcome->data)
        cli_print_reading(stream, outcome->data, data_columns(outcome));
    if (outcome->held_name) {
        fprintf(stream, "; %" PRId64 " row%s of ", outcome->held_rows, base_plural(outcome->held_rows));
        cli_put_text(stream, outcome->held_name);
        fputs(" held out", stream);
    }
    fputc('\n', stream);
    if (outcome->columns_used.note) {
        fprintf(stream, "columns    ");
        cli_put_text(stream, outcome->columns_used.note);
        fputc('\n', stream);
    }
    if (has_target(outcome))
        print_target(outcome, stream);
}

static void print_phase(FILE *stream, const char **comma, const char *name, double seconds)
{
    if (seconds <= 0)
        return;
    fprintf(stream, "%s%s %.3f s", *comma, name, seconds);
    *comma = ", ";
}

void cli_outcome_print_times(const shoal_outcome *outcome, FILE *stream)
{
    const char *comma = "time       ";
    for (int i = 0; i < USUAL_PHASES; i++)
        print_phase(stream, &comma, usual_phases[i], phase_seconds(outcome, usual_phases[i]));
    for (int i = 0; i < outcome->report.phases; i++)
        if (!is_usual(outcome->report.phase[i].name))
            print_phase(stream, &comma, outcome->report.phase[i].name, outcome->report.phase[i].seconds);
    fprintf(stream, "%swrite %.3f s\n", comma, outcome->write_seconds);
    print_predicted(stream, &outcome->predicted);
    if (outcome->away.id[0])
        print_workers_kernel(&outcome->away.report, stream);
    else
        print_kernel(&outcome->report, stream);
    if (outcome->report.resumed > 0)
        fprintf(stream, "resumed    with round %" PRId64 "\n", outcome->report.resumed);
    if (outcome->away.id[0])
        print_away(&outcome->away, stream);
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

void cli_json_facts(json_t **object, const shoal_result *facts)
{
    for (int i = 0; i < facts->numbers; i++)
        base_json_put(object, facts->number[i].name, cli_json_number(facts, &facts->number[i]));
    for (int i = 0; i < facts->tensors; i++)
        base_json_put(object, facts->tensor[i].name, cli_tensor_list(&facts->tensor[i]));
}

static int print_run_object(const shoal_outcome *outcome)
{
    const learn_ended ended = run_ended(outcome);
    shoal_result *facts = NULL;
    json_t *object = cli_outcome_json(outcome);
    int status = outcome->face->tell ? shoal_result_new(&facts) : SHOAL_OK;
    if (status == SHOAL_OK && facts)
        status = outcome->face->tell(facts, &ended);
    if (status == SHOAL_OK && facts)
        status = shoal_result_check(facts);
    if (status == SHOAL_OK && facts && object)
        cli_json_facts(&object, facts);
    if (status == SHOAL_OK && object &&
        outcome->face->runs_code) /* what people wrote themselves has no names of ours */
        cli_run_json(&object, outcome->result);
    shoal_result_free(&facts);
    if (status < 0) {
        json_decref(object);
        return status;
    }
    return cli_print_json(object);
}

static int print_run_summary(const shoal_outcome *outcome)
{
    const learn_ended ended = run_ended(outcome);
    learn_lines lines = {0};
    run_files outputs;
    run_request_outputs(&outputs, outcome->request);
    FILE *stream = cli_summary_stream(outputs.file);
    if (outcome->face->runs_code && !outcome->request->output[0]) {
        cli_run_print(stdout, outcome->result);
        return SHOAL_OK;
    }
    if (!outcome->face->end_blobs) /* its rows are names, which say nothing */
        cli_outcome_print_data(outcome, stream);
    if (outcome->face->summarise)
        outcome->face->summarise(&lines, &ended);
    if (lines.text)
        fprintf(stream, "%s\n", lines.text);
    base_free(&lines.text);
    cli_outcome_print_times(outcome, stream);
    cli_print_written(stream, outputs.file, outcome->request->trace.tensorboard);
    return lines.status;
}

static int print_detached(const shoal_outcome *outcome, const cli_print_settings *print)
{
    run_files outputs;
    run_request_outputs(&outputs, outcome->request);
    const run_file *written = outputs.file;
    while (written->name && !written->path)
        written++;
    if (outcome->away.alone && !outcome->away.resumed && written->name && !print->quiet)
        fprintf(stderr, "outputs are written here by `%s` once the job is done\n", outcome->away.resume);
    if (print->json) {
        json_t *object = json_object();
        base_json_put(&object, "job", json_string(outcome->away.id));
        base_json_put(&object, "store", base_json_text(outcome->away.store));
        return cli_print_json(object);
    }
    puts(outcome->away.id);
    return SHOAL_OK;
}

/* Of a learner that has iterations. */
static int describe_end(char **out, const shoal_outcome *outcome)
{
    const double iterations = shoal_result_number(outcome->result, "iterations");
    if (!outcome->report.stopped)
        return base_format(out,
                           "diverged in round %" PRId64
                           ": the cost has no finite value further down; the model is that "
                           "of iteration %.0f",
                           outcome->report.rounds, iterations);
    if (outcome->face->kept)
        return base_format(out, "stopped after %.0f iteration%s; %s of iteration %.0f", iterations,
                           iterations == 1 ? "" : "s", outcome->face->kept, iterations);
    return base_format(out, "stopped after %" PRId64 " round%s; the result is that of the last one",
                       outcome->report.rounds, base_plural(outcome->report.rounds));
}

/* What a run had before a signal, or before it diverged, is written, but the run did not succeed. */
static int tell_end(const shoal_outcome *outcome)
{
    const learn_ended ended = run_ended(outcome);
    const bool stopped = outcome->report.stopped;
    char *text = NULL;
    if (!stopped && !(shoal_result_number(outcome->result, "diverged") > 0))
        return SHOAL_OK;
    int status = outcome->face->tell_end ? outcome->face->tell_end(&text, &ended) : describe_end(&text, outcome);
    if (status == SHOAL_OK && stopped)
        fprintf(stderr, "shoal: %s\n", text);
    else if (status == SHOAL_OK)
        status = shoal_fail(SHOAL_INVALID, "%s: %s", outcome->data_name, text);
    base_free(&text);
    return stopped ? CLI_INTERRUPTED : status;
}

int cli_outcome_tell(const shoal_outcome *outcome, const cli_print_settings *print, int status)
{
    if (status < 0 && outcome && outcome->away.stopped) {
        if (outcome->away.resume) {
            fputs("shoal: ", stderr);
            cli_put_text(stderr, shoal_error());
            fprintf(stderr, "; resume job %s with `%s`", outcome->away.id, outcome->away.resume);
            if (outcome->away.remove)
                fprintf(stderr, " or remove it with `%s`", outcome->away.remove);
            fputc('\n', stderr);
        }
        return CLI_RESUMABLE;
    }
    if (status < 0 || !run_is_first())
        return status;
    if (outcome->away.detached)
        return print_detached(outcome, print);
    if (outcome->away.bare) {
        if (!print->quiet)
            printf("job %s is done: shoal job result %s --store %s\n", outcome->away.id, outcome->away.id,
                   outcome->away.store);
        return SHOAL_OK;
    }
    if (print->json)
        status = print_run_object(outcome);
    else if (!print->quiet || (outcome->face->runs_code && !outcome->request->output[0]))
        status = print_run_summary(outcome);
    return status == SHOAL_OK ? tell_end(outcome) : status;
}
