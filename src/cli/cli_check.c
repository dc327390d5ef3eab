/* shoal check: what workers would find where --workers sends them, before a job depends on it. */
#include "cli.h"

#include <math.h>
#include <string.h>

#include "base/text.h"
#include "base/memory.h"
#include "kernel/device/kernel_device.h"
#include "kernel/kernel.h"
#include "run/hosts.h"
#include "store_verb.h"

typedef struct settings {
    cli_common common;
    shoal_texts workers;
    const char *ssh, *store;
    cli_store_settings opening;
    bool json;
} settings;

static const shoal_option rows[] = {
    {"workers", 0, SHOAL_OPTION_LIST, offsetof(settings, workers), "WHERE",
     .help = "places to check, as for commands that run on workers: local:N, ssh:HOST[:N],... or slurm:N; may be given "
             "several times"},
    {"store", 0, SHOAL_OPTION_TEXT, offsetof(settings, store), "URL",
     .help = "also open this store from here and measure a round trip to it"},
    {"ssh", 0, SHOAL_OPTION_TEXT, offsetof(settings, ssh), "COMMAND",
     .help = "the command that ssh: uses, such as 'ssh -F FILE'", .default_text = "$SHOAL_SSH, or ssh"},
    {"json", 0, SHOAL_OPTION_FLAG, offsetof(settings, json), NULL, .help = "print one JSON object"},
    {0},
};
static const shoal_option *const options = rows;

static const base_option_group groups[] = {
    {"Check", &options, 0},
    {"Store", &cli_store_options, offsetof(settings, opening)},
    {"Help", &cli_common_options, offsetof(settings, common)},
    {0},
};

/* ---- for people -------------------------------------------------------------------------------------------------- */

static void format_link_rate(char *out, size_t size, double rate)
{
    char bytes[32];
    base_format_bytes(bytes, sizeof bytes, rate);
    snprintf(out, size, rate > 0 ? "%s/s" : "-", bytes);
}

static void format_seconds(char *out, size_t size, double seconds)
{
    snprintf(out, size, seconds > 0 ? "%.2f ms" : "-", 1e3 * seconds);
}

/* A reason starts with the name, which stands in front of it already. */
static void print_reason(const run_host *row)
{
    size_t length = strlen(row->name);
    bool named = strncmp(row->why, row->name, length) == 0 && strncmp(row->why + length, ": ", 2) == 0;
    cli_put_text(stdout, row->why + (named ? length + 2 : 0));
    putchar('\n');
}

static void print_check_row(const run_host *row, int width)
{
    char cores[48], memory[32], trip[32], to[40], from[40];
    const far_facts *facts = &row->facts;
    printf("%-*s  %-3s ", width, row->name, row->reached ? "yes" : "no");
    if (!row->reached) {
        print_reason(row);
        return;
    }
    base_format_bytes(memory, sizeof memory, (double)facts->memory);
    if (row->nodes > 1)
        snprintf(cores, sizeof cores, "%lldx%lld", (long long)row->nodes, (long long)facts->cores);
    else
        snprintf(cores, sizeof cores, "%lld", (long long)facts->cores);
    format_seconds(trip, sizeof trip, facts->round_trip);
    format_link_rate(to, sizeof to, facts->to_host);
    format_link_rate(from, sizeof from, facts->from_host);
    const char *program = strcmp(row->launcher, "ssh") != 0 ? "-" : facts->cached ? "cached" : "copied";
    printf("%5s %9s  %-8s  %-7s %10s %10s %10s  %s\n", cores, memory, *facts->kernel ? facts->kernel : "-", program,
           trip, to, from, *facts->gpu ? facts->gpu : "-");
}

static void print_check_table(const run_hosts *check, const run_store_seen *store, const char *url)
{
    char trip[32];
    int width = (int)strlen("WHERE");
    for (int i = 0; i < check->count; i++)
        width = width > (int)strlen(check->rows[i].name) ? width : (int)strlen(check->rows[i].name);
    if (check->count > 0)
        printf("%-*s  UP  %5s %9s  %-8s  %-7s %10s %10s %10s  %s\n", width, "WHERE", "CORES", "MEMORY", "KERNEL",
               "PROGRAM", "ROUND TRIP", "THERE", "BACK", "GPU");
    for (int i = 0; i < check->count; i++)
        print_check_row(&check->rows[i], width);
    if (!url)
        return;
    format_seconds(trip, sizeof trip, store->round_trip);
    fputs("store ", stdout);
    cli_put_text(stdout, url);
    fputs(store->reached ? ": reached, round trip " : ": ", stdout);
    cli_put_text(stdout, store->reached ? trip : store->why);
    putchar('\n');
}

/* ---- for programs ------------------------------------------------------------------------------------------------ */

static json_t *json_row(const run_host *row)
{
    const far_facts *facts = &row->facts;
    json_t *object = json_object();
    base_json_put(&object, "where", base_json_text(row->name));
    base_json_put(&object, "launcher", json_string(row->launcher));
    base_json_put(&object, "reached", json_boolean(row->reached));
    if (*row->why)
        base_json_put(&object, "why", base_json_text(row->why));
    if (!row->reached)
        return object;
    base_json_put(&object, "workers", json_integer(row->workers));
    base_json_put(&object, "nodes", json_integer(row->nodes));
    base_json_put(&object, "cores", json_integer(facts->cores));
    base_json_put(&object, "memory", json_integer(facts->memory));
    base_json_put(&object, "gpu", *facts->gpu ? base_json_text(facts->gpu) : json_null());
    if (*facts->host)
        base_json_put(&object, "host", base_json_text(facts->host));
    if (*facts->kernel)
        base_json_put(&object, "kernel", base_json_text(facts->kernel));
    if (strcmp(row->launcher, "ssh") == 0) {
        base_json_put(&object, "system", base_json_text(facts->system));
        base_json_put(&object, "folder", base_json_text(facts->folder));
        base_json_put(&object, "cached", json_boolean(facts->cached));
        base_json_put(&object, "round_trip_seconds", base_json_real(facts->probed ? facts->round_trip : NAN));
        base_json_put(&object, "to_host_bytes_per_second", base_json_real(facts->probed ? facts->to_host : NAN));
        base_json_put(&object, "from_host_bytes_per_second", base_json_real(facts->probed ? facts->from_host : NAN));
    }
    return object;
}

static int print_check_json(const run_hosts *check, const run_store_seen *store, const char *url)
{
    json_t *object = json_object(), *list = json_array();
    for (int i = 0; i < check->count; i++)
        json_array_append_new(list, json_row(&check->rows[i]));
    base_json_put(&object, "workers", list);
    if (url) {
        json_t *about = json_object();
        base_json_put(&about, "url", base_json_text(url));
        base_json_put(&about, "reached", json_boolean(store->reached));
        if (store->reached)
            base_json_put(&about, "round_trip_seconds", base_json_real(store->round_trip));
        else
            base_json_put(&about, "why", base_json_text(store->why));
        base_json_put(&object, "store", about);
    }
    return cli_print_json(object);
}

/* ---- the verb ---------------------------------------------------------------------------------------------------- */

/* What workers here would use, or why they would not use what the driver tells of. */
static void tell_device(far_facts *facts)
{
    kernel_device *device = NULL;
    size_t length = strlen(facts->gpu);
    if (kernel_device_choose(&device, "cuda") == SHOAL_OK)
        snprintf(facts->gpu, sizeof facts->gpu, "%s: %s", device->name, device->about);
    else if (length > 0)
        snprintf(facts->gpu + length, sizeof facts->gpu - length, " (not used: %s)", shoal_error());
}

/* Only this program knows the kernel set that it would choose on this machine. */
static int fill_local(run_hosts *check)
{
    const kernel_set *set = NULL;
    int status = kernel_choose(&set, "auto");
    for (int i = 0; i < check->count && status == SHOAL_OK; i++)
        if (strcmp(check->rows[i].launcher, "local") == 0) {
            snprintf(check->rows[i].facts.kernel, sizeof check->rows[i].facts.kernel, "%s", set->name);
            tell_device(&check->rows[i].facts);
        }
    return status;
}

static bool is_all_reached(const run_hosts *check, const run_store_seen *store, const char *url)
{
    bool all = !url || store->reached;
    for (int i = 0; i < check->count; i++)
        all = all && check->rows[i].reached;
    return all;
}

static int run_check(void *from_main, const char *const *word, int words)
{
    const settings *settings = from_main;
    run_hosts *check = NULL;
    run_store_seen store = {0};
    (void)word;
    (void)words;
    if (settings->workers.count == 0 && !settings->store)
        return shoal_fail(SHOAL_USAGE, "check needs --workers WHERE, --store URL or both");
    cli_signals_allow_stop(true);
    int status = run_hosts_check(&check, &settings->workers, settings->ssh, cli_signals_stop());
    cli_signals_allow_stop(false);
    if (status == SHOAL_OK)
        status = fill_local(check);
    if (status == SHOAL_OK && settings->store)
        status = run_store_check(&store, settings->store, settings->opening.patience);
    if (status == SHOAL_OK && settings->json)
        status = print_check_json(check, &store, settings->store);
    else if (status == SHOAL_OK)
        print_check_table(check, &store, settings->store);
    if (status == SHOAL_OK && !is_all_reached(check, &store, settings->store))
        status = CLI_FAILED;
    run_hosts_free(&check);
    return status;
}

static const char *const description[] = {
    "Tries every place that --workers names and prints a line for each: whether it can be reached, or why not; the "
    "cores and memory that workers would have; the kernel set they would compute with; whether this program was "
    "already there; the round-trip time of a request through the pipe to the store; how fast blobs travel each way; "
    "and the GPU.",
    "An ssh host is reached exactly as a job would reach it, so what works here works there: the program is copied if "
    "it is not there yet, and an agent measures with a blob of 16 MiB. Nothing is left running. For Slurm it prints "
    "what sinfo says: nodes times cores, and the memory of one node.",
    "It exits with 1 if any place can't be reached.",
    NULL,
};

static const learn_example examples[] = {
    {"shoal check --workers ssh:corn10,corn11:8", "can a job run there?"},
    {"shoal check --workers slurm:64 --store az://acct/box/jobs --json", "for a script"},
    {NULL, NULL},
};

const cli_verb cli_check = {
    .name = "check",
    .summary = "check the machines that workers would run on",
    .synopsis = "--workers WHERE... [--store URL] [options]",
    .description = description,
    .examples = examples,
    .options = groups,
    .settings_size = sizeof(settings),
    .run = run_check,
};
