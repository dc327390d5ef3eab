/* Options, progress and summaries of the verbs that copy.  See the header. */
#include "store_verb.h"

#include "base/text.h"
#include "run/process.h"

static const shoal_option rows[] = {
    {"recursive", 'r', SHOAL_OPTION_FLAG, offsetof(transfer_options, recursive), NULL,
     .help = "copy everything below a name, under the same names"},
    {"verify", 0, SHOAL_OPTION_FLAG, offsetof(transfer_options, verify), NULL,
     .help = "read back what was written and compare checksums (CRC32C)"},
    {"jobs", 'j', SHOAL_OPTION_COUNT, offsetof(transfer_options, jobs), "N",
     .help = "number of copies at the same time", .fallback = "8", .least = 1, .most = 256},
    {0},
};
static const shoal_option target_rows[] = {
    {"create", 0, SHOAL_OPTION_FLAG, offsetof(transfer_options, create), NULL,
     .help = "create the container or bucket if it does not exist; folders are always created"},
    {"if-absent", 0, SHOAL_OPTION_FLAG, offsetof(transfer_options, if_absent), NULL,
     .help = "never replace: fail for a key that has other content"},
    {0},
};
static const shoal_option store_rows[] = {
    {"deadline", 0, SHOAL_OPTION_REAL, offsetof(cli_store_settings, patience), "SECONDS",
     .help = "how long to retry one request", .fallback = "60", .least = 0.001},
    {0},
};
const shoal_option *const cli_store_options = store_rows;
const shoal_option *const cli_transfer_options = rows;
const shoal_option *const cli_target_options = target_rows;

void cli_stores_protect(const char *const *urls, int count)
{
    for (int i = 0; i < count; i++)
        (void)run_protect_secrets(urls[i]);
}

/* ---- while it goes ----------------------------------------------------------------------------------------------- */

static void allow_stop_transfer(void *progress, bool stoppable)
{
    (void)progress;
    cli_signals_allow_stop(stoppable);
}

static void show_progress(void *progress, const transfer_counts *so_far)
{
    static const double SECONDS_UNTIL_PROGRESS = 0.5;
    if (so_far->seconds >= SECONDS_UNTIL_PROGRESS)
        cli_progress_transfer(progress, so_far);
}

static void leave_hanging(void *progress)
{
    cli_progress_clear(progress);
    fputs("shoal: stopped; run the same command again to continue\n", stderr);
    cli_signals_leave();
}

void cli_transfer_follow(transfer_options *options, cli_progress *progress, bool quiet)
{
    cli_progress_start(progress, quiet);
    options->stop = cli_signals_stop();
    options->on_stoppable = allow_stop_transfer;
    options->on_progress = show_progress;
    options->on_hang = leave_hanging;
    options->context = progress;
}

/* ---- what came of it --------------------------------------------------------------------------------------------- */

void cli_json_put_counts(json_t **object, const shoal_store_counts *counts)
{
    static const char *const kinds[SHOAL_REQUEST_KINDS] = {"get", "put", "list", "remove", "queue", "other"};
    json_t *requests = json_object();
    for (int kind = 0; kind < SHOAL_REQUEST_KINDS; kind++)
        base_json_put(&requests, kinds[kind], json_integer(counts->requests[kind]));
    base_json_put(object, "requests", requests);
    base_json_put(object, "sent", json_integer(counts->bytes_sent));
    base_json_put(object, "received", json_integer(counts->bytes_received));
    base_json_put(object, "price", base_json_real(counts->price));
}

static int print_transfer_json(const transfer_report *report)
{
    json_t *object = json_object(), *errors = json_array();
    base_json_put(&object, "files", json_integer(report->files));
    base_json_put(&object, "bytes", json_integer(report->bytes));
    base_json_put(&object, "skipped", json_integer(report->skipped));
    base_json_put(&object, "resumed_bytes", json_integer(report->resumed));
    base_json_put(&object, "failed", json_integer(report->failed));
    base_json_put(&object, "seconds", base_json_real(report->seconds));
    cli_json_put_counts(&object, &report->requests);
    for (int i = 0; i < TRANSFER_NAMED && report->named[i]; i++)
        json_array_append_new(errors, base_json_text(report->named[i]));
    base_json_put(&object, "errors", errors);
    return cli_print_json(object);
}

static void print_transfer_text(const transfer_report *report, const char *what)
{
    char bytes[32], rate[32];
    base_format_bytes(bytes, sizeof bytes, (double)report->bytes);
    base_format_bytes(rate, sizeof rate, report->seconds > 0 ? (double)report->bytes / report->seconds : 0);
    printf("%s %lld file%s", what, (long long)report->files, base_plural(report->files));
    if (report->files)
        printf(", %s in %.2f s (%s/s)", bytes, report->seconds, rate);
    if (report->skipped)
        printf("; %lld there already", (long long)report->skipped);
    if (report->resumed) {
        base_format_bytes(bytes, sizeof bytes, (double)report->resumed);
        printf("; %s of it by an earlier run", bytes);
    }
    putchar('\n');
}

int cli_transfer_print(transfer_report *report, const char *what, const cli_print_settings *print,
                       cli_progress *progress, int status)
{
    int printed = SHOAL_OK;
    cli_progress_clear(progress);
    if (report->begun && report->failed > 1)
        for (int i = 0; i < TRANSFER_NAMED && report->named[i]; i++)
            fprintf(stderr, "shoal: %s\n", report->named[i]);
    if (report->begun && report->failed > TRANSFER_NAMED)
        fprintf(stderr, "shoal: and %lld more\n", (long long)(report->failed - TRANSFER_NAMED));
    if (report->begun && print->json)
        printed = print_transfer_json(report);
    else if (report->begun && !print->quiet && report->files + report->skipped > 0)
        print_transfer_text(report, what);
    transfer_report_release(report);
    return status < 0 ? status : printed;
}
