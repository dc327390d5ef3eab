/* What every verb that runs a learner does around the run: data and weights in, progress and trace while it goes,
 * times and counts out. */
#include "cli.h"

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/pool.h"
#include "predicted.h"
#include "ranks.h"
#include "store_open.h"

enum { STORE_PATIENCE = 60 }; /* seconds */

void cli_job_init(cli_job *job, const shoal_algorithm *algorithm, bool quiet)
{
    *job = (cli_job){.algorithm = algorithm, .started = base_seconds()};
    cli_progress_start(&job->progress, quiet || !cli_is_first());
}

void cli_job_release(cli_job *job)
{
    cli_progress_clear(&job->progress);
    cli_trace_discard(&job->trace);
    shoal_result_free(&job->result);
    shoal_data_free(&job->data);
    base_free(&job->joined);
    base_free(&job->data_name);
    base_free(&job->away.store);
    base_free(&job->checkpoint);
    if (job->lent_weights)
        job->weights = NULL;
    shoal_data_free(&job->lent_weights);
    base_free(&job->weights);
}

/* ---- input ------------------------------------------------------------------------------------------------------- */

/* One weight a row, as a column or as a row. */
int cli_job_load_weights(cli_job *job, const char *path)
{
    int64_t rows = 0, columns = 0, needed = job->rows;
    double largest = 0;
    int status = cli_read_float64(&job->weights, &rows, &columns, path);
    if (status < 0)
        return status;
    if (!(columns == 1 && rows == needed) && !(rows == 1 && columns == needed))
        return shoal_fail(
            SHOAL_INVALID,
            "%s: %lld rows and %lld columns, but --weights needs one value for each of the %lld rows of %s", path,
            (long long)rows, (long long)columns, (long long)needed, job->data_name);
    for (int64_t i = 0; i < needed; i++) {
        if (job->weights[i] < 0)
            return shoal_fail(SHOAL_INVALID, "%s: row %lld is %g, but a weight is at least 0", path, (long long)(i + 1),
                              job->weights[i]);
        largest = job->weights[i] > largest ? job->weights[i] : largest;
    }
    return largest > 0 ? SHOAL_OK : shoal_fail(SHOAL_INVALID, "%s: every weight is 0", path);
}

int cli_job_note_data(cli_job *job, const char *name, int64_t rows, int64_t columns, shoal_type type)
{
    job->rows = rows;
    job->columns = columns;
    job->type = type;
    base_free(&job->data_name);
    return base_copy_text(&job->data_name, name);
}

bool cli_is_in_store(const char *path)
{
    return strstr(path, "://") || strncmp(path, "dir:", 4) == 0;
}

bool cli_is_read_once(const char *path)
{
    struct stat about;
    return strcmp(path, "-") == 0 || (stat(path, &about) == 0 && !S_ISREG(about.st_mode) && !S_ISDIR(about.st_mode));
}

/* Once it is open, messages call a blob as the command line does. */
static int open_data(cli_job *job, const char *path, const shoal_data_options *options)
{
    bool in_store = cli_is_in_store(path);
    int status = in_store ? cli_store_protect(path) : SHOAL_OK;
    if (status < 0)
        return status;
    status = in_store ? shoal_job_data_open(&job->data, path, options, shoal_after(STORE_PATIENCE))
                      : shoal_data_open(&job->data, path, options);
    if (status < 0)
        return status;
    return cli_job_note_data(job, in_store ? path : shoal_data_path(job->data), shoal_data_rows(job->data),
                             shoal_data_columns(job->data), shoal_data_type(job->data));
}

int cli_job_load(cli_job *job, const char *path, const shoal_data_options *options, const char *weights_path)
{
    char text[256];
    snprintf(text, sizeof text, "loading %s", path);
    cli_progress_say(&job->progress, text);
    double started = base_seconds();
    bool reads_weights = weights_path && !job->weights;
    job->read_once |= cli_is_read_once(path) || (reads_weights && cli_is_read_once(weights_path));
    int status = open_data(job, path, options);
    if (status == SHOAL_OK && reads_weights)
        status = cli_job_load_weights(job, weights_path);
    job->load_seconds = base_seconds() - started;
    return status;
}

/* ---- files that must not be one another -------------------------------------------------------------------------- */

/* Whether two paths mean one file that would be replaced.  Pipes, terminals and what stdout and stderr are redirected
 * to take one output after the other. */
static int is_same_file(bool *same, const char *output, const char *other)
{
    struct stat a, b;
    bool has_a = stat(output, &a) == 0;
    bool has_b = strcmp(other, "-") == 0 ? fstat(STDIN_FILENO, &b) == 0 : stat(other, &b) == 0;
    *same = false;
    if ((has_a && !S_ISREG(a.st_mode)) || base_output_standard(output) >= 0)
        return SHOAL_OK;
    if (has_a && has_b)
        *same = a.st_dev == b.st_dev && a.st_ino == b.st_ino;
    if (has_a || has_b)
        return SHOAL_OK;
    char *path = NULL, *other_path = NULL;
    int status = base_output_resolve(&path, output);
    if (status == SHOAL_OK)
        status = base_output_resolve(&other_path, other);
    if (status == SHOAL_OK)
        *same = strcmp(path, other_path) == 0;
    base_free(&path);
    base_free(&other_path);
    return status;
}

/* Refuses an output that is one of the files of a list, up to `end`. */
static int check_apart(const cli_file *output, const cli_file *list, const cli_file *end, const char *why)
{
    for (; list != end && list->name; list++) {
        bool same = false;
        int status = list->path ? is_same_file(&same, output->path, list->path) : SHOAL_OK;
        if (status < 0)
            return status;
        if (same)
            return shoal_fail(SHOAL_USAGE, "%s %s and %s %s are the same file%s", output->name, output->path,
                              list->name, list->path, why);
    }
    return SHOAL_OK;
}

/* ---- the run ----------------------------------------------------------------------------------------------------- */

void cli_job_on_round(void *context, const shoal_round *done, const shoal_round *next, int64_t rows, double seconds)
{
    cli_job *job = context;
    cli_progress_round(&job->progress, done, next, rows, seconds);
    cli_trace_round(&job->trace, done, next, seconds);
}

/* The place of the checkpoint, when there is to be one.  It is removed in the end, and so would be an output there. */
static int name_checkpoint(cli_job *job, const cli_ranks_settings *ranks)
{
    if (ranks->checkpoint <= 0 && !ranks->resume)
        return SHOAL_OK;
    if (ranks->file && cli_is_in_store(ranks->file))
        return cli_store_protect(ranks->file) < 0 ? SHOAL_USAGE : base_copy_text(&job->checkpoint, ranks->file);
    int status = ranks->file ? base_copy_text(&job->checkpoint, ranks->file)
                             : base_format(&job->checkpoint, "%s.checkpoint", job->algorithm->name);
    if (status < 0 || !job->outputs || !cli_is_first())
        return status;
    return check_apart(&(cli_file){"the checkpoint", job->checkpoint}, job->outputs, NULL, ": each needs its own");
}

static void tell_idle(const shoal_report *report)
{
    int grains = report->ranks - report->idle;
    if (report->idle > 0 && cli_is_first())
        fprintf(stderr, "shoal: %d of %d ranks had nothing to do: there %s only %d grain%s of rows\n", report->idle,
                report->ranks, grains == 1 ? "is" : "are", grains, grains == 1 ? "" : "s");
}

/* Whether the failure is one of reading rows, which says where they are. */
static bool names_data(const cli_job *job)
{
    const char *path = shoal_data_path(job->data), *found = strstr(shoal_error(), path);
    return found && (cli_is_in_store(job->data_name) || strncmp(found + strlen(path), ": ", 2) == 0);
}

int cli_job_run(cli_job *job, const void *config, const cli_run_settings *settings, const cli_ranks_settings *ranks,
                int64_t memory, const cli_trace_settings *trace)
{
    int status = name_checkpoint(job, ranks);
    shoal_run_options options = {.threads = (int)settings->threads,
                                 .kernel = settings->kernel,
                                 .rows_per_grain = settings->rows_per_grain,
                                 .memory = memory,
                                 .code = job->code,
                                 .code_hash = job->code_hash,
                                 .progress = cli_job_on_round,
                                 .progress_context = job,
                                 .stop = cli_signals_stop(),
                                 .ranks = cli_ranks(),
                                 .verify = ranks->verify,
                                 .checkpoint_seconds = ranks->checkpoint,
                                 .checkpoint = job->checkpoint,
                                 .resume = ranks->resume};
    if (status == SHOAL_OK && cli_is_first())
        status = cli_trace_open(&job->trace, trace);
    if (status < 0)
        return status;
    cli_signals_allow_stop(job->keeps_part);
    status = shoal_run(&job->result, &job->report, job->algorithm, config, job->data, job->weights, &options);
    cli_signals_allow_stop(false);
    cli_progress_clear(&job->progress);
    if (status == SHOAL_INVALID && !names_data(job)) /* a learner sees rows, not files */
        status = shoal_fail(status, "%s: %s", job->data_name, shoal_error());
    tell_idle(&job->report);
    if (status == SHOAL_OK && job->report.ranks == 1 && job->report.resumed == 0)
        cli_predicted_note(job, config);
    return cli_ranks_settled(status);
}

int cli_job_close(cli_job *job, int status)
{
    if (status < 0 || !job->checkpoint || job->report.stopped)
        return status;
    return shoal_checkpoint_remove(job->checkpoint);
}

/* ---- output ------------------------------------------------------------------------------------------------------ */

/* Whether the path is what stdout is, other than /dev/null, where nothing mixes. */
static bool is_stdout(const char *path)
{
    struct stat out, file, null;
    if (fstat(STDOUT_FILENO, &out) < 0 || stat(path, &file) < 0 || file.st_dev != out.st_dev ||
        file.st_ino != out.st_ino)
        return false;
    return stat("/dev/null", &null) < 0 || null.st_dev != out.st_dev || null.st_ino != out.st_ino;
}

int cli_files_check(const cli_file *outputs, const cli_file *inputs, bool json)
{
    for (const cli_file *output = outputs; output->name; output++) {
        if (!output->path)
            continue;
        if (strcmp(output->path, "-") == 0)
            return shoal_fail(SHOAL_USAGE, "%s: '-' is no file; for standard output say /dev/stdout", output->name);
        if (json && is_stdout(output->path))
            return shoal_fail(SHOAL_USAGE, "%s %s is standard output, which --json prints to: write to another file",
                              output->name, output->path);
        int status = check_apart(output, outputs, output, ": each output needs its own");
        if (status == SHOAL_OK)
            status = check_apart(output, inputs, NULL, ", which would be lost: write to another");
        if (status == SHOAL_OK)
            status = base_output_check(output->path);
        if (status < 0)
            return status;
    }
    return SHOAL_OK;
}

FILE *cli_summary_stream(const cli_file *outputs)
{
    for (; outputs->name; outputs++)
        if (outputs->path && is_stdout(outputs->path))
            return stderr;
    return stdout;
}

/* Prints a path behind the ones before it. */
static void print_path(FILE *stream, const char **before, const char *path)
{
    if (!path)
        return;
    fputs(*before, stream);
    cli_put_text(stream, path);
    *before = ", ";
}

void cli_print_written(FILE *stream, const cli_file *outputs, const cli_trace_settings *trace)
{
    const char *before = "wrote      ";
    for (; outputs->name; outputs++)
        print_path(stream, &before, outputs->path);
    if (trace)
        print_path(stream, &before, trace->tensorboard);
    if (before[0] == ',')
        fputc('\n', stream);
}

int cli_write_tensor(const char *path, const shoal_result *result, const char *name)
{
    if (!path)
        return SHOAL_OK;
    const shoal_tensor *tensor = shoal_result_tensor(result, name);
    if (!tensor)
        SHOAL_BUG("the result has no %s", name);
    return shoal_npy_write(path, tensor->values, tensor->type, tensor->rank, tensor->shape);
}

/* Seconds of a phase; what opening the data took is part of "load". */
static double phase_seconds(const cli_job *job, const char *name)
{
    double seconds = strcmp(name, "load") == 0 ? job->load_seconds : 0;
    for (int i = 0; i < job->report.phases; i++)
        if (strcmp(job->report.phase[i].name, name) == 0)
            seconds += job->report.phase[i].seconds;
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

static json_t *json_seconds(const cli_job *job)
{
    json_t *seconds = json_object();
    for (int i = 0; i < USUAL_PHASES; i++)
        cli_json_put(&seconds, usual_phases[i], cli_json_real(phase_seconds(job, usual_phases[i])));
    for (int i = 0; i < job->report.phases; i++)
        if (!is_usual(job->report.phase[i].name))
            cli_json_put(&seconds, job->report.phase[i].name, cli_json_real(job->report.phase[i].seconds));
    cli_json_put(&seconds, "write", cli_json_real(job->write_seconds));
    cli_json_put(&seconds, "total", cli_json_real(base_seconds() - job->started));
    return seconds;
}

json_t *cli_json_number(const shoal_number *number)
{
    if (number->truth)
        return json_boolean(number->value != 0);
    return number->whole ? json_integer((json_int_t)number->value) : cli_json_real(number->value);
}

static int64_t all_requests(const shoal_store_counts *counts)
{
    int64_t sum = 0;
    for (int i = 0; i < SHOAL_REQUEST_KINDS; i++)
        sum += counts->requests[i];
    return sum;
}

static void json_away(json_t **object, const cli_job_away *away)
{
    cli_json_put(object, "job", json_string(away->id));
    cli_json_put(object, "store", cli_json_text(away->store));
    cli_json_put(object, "workers", json_integer(away->report.workers));
    cli_json_put(object, "lost", json_integer(away->report.lost));
    cli_json_put(object, "doubled", json_integer(away->report.doubled));
    cli_json_put(object, "requests", json_integer(all_requests(&away->report.requests)));
    cli_json_put(object, "price", cli_json_real(away->report.requests.price));
}

/* "job        ID, 8 workers (2 lost), 1,204 requests, $0.0006" */
static void print_away(const cli_job_away *away, FILE *stream)
{
    const shoal_job_report *report = &away->report;
    char requests[32];
    cli_format_count(requests, sizeof requests, all_requests(&report->requests));
    fprintf(stream, "job        %s, %lld worker%s", away->id, (long long)report->workers,
            report->workers == 1 ? "" : "s");
    if (report->lost > 0)
        fprintf(stream, " (%lld lost)", (long long)report->lost);
    fprintf(stream, ", %s requests", requests);
    if (report->requests.price > 0)
        fprintf(stream, ", $%.4f", report->requests.price);
    fputc('\n', stream);
}

static void json_ranks(json_t **object, const shoal_report *report)
{
    json_t *seconds = json_object();
    cli_json_put(&seconds, "map", cli_json_real(report->map_seconds));
    cli_json_put(&seconds, "reduce", cli_json_real(report->reduce_seconds));
    cli_json_put(&seconds, "rows", cli_json_real(report->row_seconds));
    cli_json_put(&seconds, "update", cli_json_real(report->update_seconds));
    cli_json_put(object, "ranks", json_integer(report->ranks));
    cli_json_put(object, "hosts", json_integer(report->hosts));
    cli_json_put(object, "all_threads", json_integer(report->all_threads));
    cli_json_put(object, "rank0", seconds);
}

/* "kernel     avx2, 4 ranks on 2 hosts, 8 threads" */
static void print_kernel(const shoal_report *report, FILE *stream)
{
    fprintf(stream, "kernel     %s, ", report->kernel);
    if (cli_ranks())
        fprintf(stream, "%d rank%s on %d host%s, ", report->ranks, report->ranks == 1 ? "" : "s", report->hosts,
                report->hosts == 1 ? "" : "s");
    fprintf(stream, "%d thread%s\n", report->all_threads, report->all_threads == 1 ? "" : "s");
}

json_t *cli_job_json(const cli_job *job)
{
    json_t *object = json_object();
    cli_json_put(&object, "learner", json_string(job->algorithm->name));
    cli_json_put(&object, "data", cli_json_text(job->data_name));
    cli_json_put(&object, "rows", json_integer(job->rows));
    cli_json_put(&object, "columns", json_integer(job->columns));
    cli_json_put(&object, "rounds", json_integer(job->report.rounds));
    for (int i = 0; i < job->result->numbers; i++)
        cli_json_put(&object, job->result->number[i].name, cli_json_number(&job->result->number[i]));
    cli_json_put(&object, "stopped", json_boolean(job->report.stopped));
    cli_json_put(&object, "seconds", json_seconds(job));
    cli_json_put(&object, "kernel", json_string(job->report.kernel));
    cli_json_put(&object, "threads", json_integer(job->report.threads));
    if (cli_ranks())
        json_ranks(&object, &job->report);
    if (job->report.resumed > 0)
        cli_json_put(&object, "resumed", json_integer(job->report.resumed));
    for (int i = 0; i < SHOAL_COUNTERS; i++)
        if (job->algorithm->counter[i])
            cli_json_put(&object, job->algorithm->counter[i], json_integer(job->report.counter[i]));
    if (job->away.id[0])
        json_away(&object, &job->away);
    if (job->predicted.asked)
        cli_json_put(&object, "predicted", cli_predicted_json(&job->predicted));
    int64_t peak = base_memory_peak();
    if (peak >= 0)
        cli_json_put(&object, "peak_memory", json_integer(peak));
    return object;
}

void cli_job_print_data(const cli_job *job, FILE *stream)
{
    fprintf(stream, "data       ");
    cli_put_text(stream, job->data_name);
    fprintf(stream, ": %" PRId64 " rows, %" PRId64 " columns, %s\n", job->rows, job->columns,
            shoal_type_name(job->type));
}

static void print_phase(FILE *stream, const char **comma, const char *name, double seconds)
{
    if (seconds <= 0)
        return;
    fprintf(stream, "%s%s %.3f s", *comma, name, seconds);
    *comma = ", ";
}

void cli_job_print(const cli_job *job, FILE *stream)
{
    const char *comma = "time       ";
    for (int i = 0; i < USUAL_PHASES; i++)
        print_phase(stream, &comma, usual_phases[i], phase_seconds(job, usual_phases[i]));
    for (int i = 0; i < job->report.phases; i++)
        if (!is_usual(job->report.phase[i].name))
            print_phase(stream, &comma, job->report.phase[i].name, job->report.phase[i].seconds);
    fprintf(stream, "%swrite %.3f s\n", comma, job->write_seconds);
    cli_predicted_print(stream, job);
    print_kernel(&job->report, stream);
    if (job->report.resumed > 0)
        fprintf(stream, "resumed    with round %" PRId64 "\n", job->report.resumed);
    if (job->away.id[0])
        print_away(&job->away, stream);
}
