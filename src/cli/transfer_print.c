/* What a transfer came to, for people and as JSON. */
#include "transfer.h"

static const char *const kinds[SHOAL_REQUEST_KINDS] = {"get", "put", "list", "remove", "queue", "other"};

void cli_json_put_counts(json_t **object, const store_place *const *stores, size_t count)
{
    json_t *requests = json_object();
    double price = 0;
    int64_t sent = 0, received = 0;
    for (int kind = 0; kind < SHOAL_REQUEST_KINDS; kind++) {
        int64_t sum = 0;
        for (size_t i = 0; i < count; i++)
            sum += shoal_store_counted(stores[i]->store).requests[kind];
        cli_json_put(&requests, kinds[kind], json_integer(sum));
    }
    for (size_t i = 0; i < count; i++) {
        const shoal_store_counts counts = shoal_store_counted(stores[i]->store);
        price += counts.price;
        sent += counts.bytes_sent;
        received += counts.bytes_received;
    }
    cli_json_put(object, "requests", requests);
    cli_json_put(object, "sent", json_integer(sent));
    cli_json_put(object, "received", json_integer(received));
    cli_json_put(object, "price", cli_json_real(price));
}

static int print_json(const transfer_report *report, const store_place *const *stores, size_t count)
{
    json_t *object = json_object(), *errors = json_array();
    cli_json_put(&object, "files", json_integer(report->files));
    cli_json_put(&object, "bytes", json_integer(report->bytes));
    cli_json_put(&object, "skipped", json_integer(report->skipped));
    cli_json_put(&object, "resumed_bytes", json_integer(report->resumed));
    cli_json_put(&object, "failed", json_integer(report->failed));
    cli_json_put(&object, "seconds", cli_json_real(report->seconds));
    cli_json_put_counts(&object, stores, count);
    for (int i = 0; i < TRANSFER_NAMED && report->named[i]; i++)
        json_array_append_new(errors, cli_json_text(report->named[i]));
    cli_json_put(&object, "errors", errors);
    return cli_print_json(object);
}

static void print_text(const transfer_report *report, const char *what)
{
    char bytes[32], rate[32];
    cli_format_bytes(bytes, sizeof bytes, (double)report->bytes);
    cli_format_bytes(rate, sizeof rate, report->seconds > 0 ? (double)report->bytes / report->seconds : 0);
    printf("%s %lld file%s", what, (long long)report->files, report->files == 1 ? "" : "s");
    if (report->files)
        printf(", %s in %.2f s (%s/s)", bytes, report->seconds, rate);
    if (report->skipped)
        printf("; %lld there already", (long long)report->skipped);
    if (report->resumed) {
        cli_format_bytes(bytes, sizeof bytes, (double)report->resumed);
        printf("; %s of it by an earlier run", bytes);
    }
    putchar('\n');
}

int transfer_print(const transfer_report *report, const char *what, const cli_print_settings *print,
                   const store_place *const *stores, size_t count)
{
    if (report->failed > 1)
        for (int i = 0; i < TRANSFER_NAMED && report->named[i]; i++)
            fprintf(stderr, "shoal: %s\n", report->named[i]);
    if (report->failed > TRANSFER_NAMED)
        fprintf(stderr, "shoal: and %lld more\n", (long long)(report->failed - TRANSFER_NAMED));
    if (print->json)
        return print_json(report, stores, count);
    if (!print->quiet && report->files + report->skipped > 0)
        print_text(report, what);
    return SHOAL_OK;
}
