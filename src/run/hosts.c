/* Looking at where workers would run.  See hosts.h. */
#include "run/hosts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <shoal/error.h>

#include "base/memory.h"
#include "base/pool.h"
#include "base/world.h"
#include "launch/slurm_command.h"
#include "launch/slurm_options.h"
#include "launch/ssh_far.h"
#include "run/process.h"
#include "store/store_place.h"

enum { PROBE_BYTES = 16 << 20, POLL_MS = 10, AT_ONCE = 8 };
static const double PROBE_LONGEST = 60, SINFO_LONGEST = 20; /* seconds for one host, and for one answer */
static const char probe_key[] = "probe/blob";

static int add_host_row(run_hosts *self, run_host **out)
{
    int status = base_grow(&self->rows, (size_t)self->count, (size_t)self->count + 1, sizeof *self->rows, "the hosts");
    if (status == SHOAL_OK)
        *out = &self->rows[self->count++];
    return status;
}

/* ---- this machine ------------------------------------------------------------------------------------------------ */

static int check_local(run_hosts *self, int64_t workers)
{
    run_host *row = NULL;
    int status = add_host_row(self, &row);
    if (status < 0)
        return status;
    row->reached = true;
    row->workers = workers;
    row->nodes = 1;
    snprintf(row->name, sizeof row->name, "this machine");
    (void)gethostname(row->facts.host, sizeof row->facts.host - 1);
    far_find_gpu(row->facts.gpu, sizeof row->facts.gpu);
    row->facts.cores = base_cores();
    row->facts.memory = base_memory_total();
    return SHOAL_OK;
}

/* ---- Slurm ------------------------------------------------------------------------------------------------------- */

/* The partition that slurm:64?partition=spot asks for; "" for none. */
static const char *partition_of(const slurm_options *options)
{
    static const char name[] = "--partition=";
    for (int i = 0; i < options->count; i++)
        if (strncmp(options->argument[i], name, strlen(name)) == 0)
            return options->argument[i] + strlen(name);
    return "";
}

/* A line of sinfo, "debug*|up|3/1/0/4|2|1024+": a partition's name, its state, its busy, idle, unusable and all nodes,
 * and the cores and megabytes of one. */
static void take_partition(run_host *row, char *line)
{
    const char *name = strsep(&line, "|"), *state = line ? strsep(&line, "|") : "",
               *nodes = line ? strsep(&line, "|") : "";
    const char *cores = line ? strsep(&line, "|") : "", *memory = line ? line : "";
    const char *idle = strchr(nodes, '/');
    snprintf(row->name, sizeof row->name, "slurm:%.*s", (int)strcspn(name, "*"), name);
    row->nodes = strtoll(nodes, NULL, 10) + (idle ? strtoll(idle + 1, NULL, 10) : 0);
    row->facts.cores = strtoll(cores, NULL, 10);
    row->facts.memory = strtoll(memory, NULL, 10) * (1 << 20);
    row->reached = strcmp(state, "up") == 0 && row->nodes > 0;
    if (!row->reached)
        snprintf(row->why, sizeof row->why, "%s: the partition is %.20s, and %lld of its nodes can be used", row->name,
                 state, (long long)row->nodes);
}

static int ask_sinfo(char **text, const char *partition)
{
    const char *words[] = {"sinfo", "-h", "-o", "%P|%a|%F|%c|%m", *partition ? "-p" : NULL, partition, NULL};
    slurm_command command;
    int status = slurm_command_start(&command, words, NULL, SINFO_LONGEST);
    if (status < 0)
        return status;
    while (!slurm_command_is_over(&command))
        base_sleep_until(base_time_after(base_now(), POLL_MS / 1000.0));
    return slurm_command_finish(&command, text);
}

static int check_slurm(run_hosts *self, const char *rest, int64_t workers)
{
    char *text = NULL;
    run_host *row = NULL;
    slurm_options options;
    int lines = 0, status = slurm_options_parse(&options, rest);
    if (status < 0)
        return status;
    const char *partition = partition_of(&options);
    int asked = ask_sinfo(&text, partition);
    char *left = text;
    for (char *line; status == SHOAL_OK && (line = strsep(&left, "\n")) != NULL;) {
        if (!strchr(line, '|'))
            continue;
        status = add_host_row(self, &row);
        if (status < 0)
            break;
        row->workers = workers;
        row->may_pass = true;
        take_partition(row, line);
        lines++;
    }
    if (status == SHOAL_OK && lines == 0 && (status = add_host_row(self, &row)) == SHOAL_OK) {
        row->may_pass = asked == SHOAL_AGAIN;
        snprintf(row->name, sizeof row->name, "slurm%s%s", *partition ? ":" : "", partition);
        if (asked < 0)
            snprintf(row->why, sizeof row->why, "%s", shoal_error());
        else
            snprintf(row->why, sizeof row->why, "slurm: sinfo lists no partition%s%s", *partition ? " " : "",
                     partition);
    }
    base_free(&text);
    slurm_options_release(&options);
    return status;
}

/* ---- hosts behind ssh -------------------------------------------------------------------------------------------- */

/* Those of one spec. */
typedef struct reaching {
    launch_order order;
    ssh_host *hosts;
    int count, first_row;
    far_host **far;
    far_gate *gate;
} reaching;

static int start_reaching(run_hosts *self, reaching *now, const char *ssh)
{
    ssh_words command = {0};
    run_host *row = NULL;
    int status = base_alloc(&now->far, (size_t)now->count, sizeof *now->far, "the hosts");
    if (status == SHOAL_OK)
        status = ssh_words_split(&command, ssh_command(ssh));
    if (status == SHOAL_OK)
        status = far_gate_new(&now->gate, AT_ONCE);
    now->first_row = self->count;
    for (int i = 0; i < now->count && status == SHOAL_OK; i++) {
        status = add_host_row(self, &row);
        if (status < 0)
            break;
        row->workers = now->hosts[i].workers;
        row->nodes = 1;
        snprintf(row->name, sizeof row->name, "%s", now->hosts[i].target);
        status = ssh_far_host(&now->far[i], &command, now->hosts[i].target,
                              &(far_options){.order = &now->order, .gate = now->gate, .tries = 1});
    }
    ssh_words_release(&command);
    return status;
}

/* Waits until the host has sent what was asked for, or why it can't; true then. */
static bool has_told(run_host *row, far_host *host, bool probed)
{
    int status = far_host_tick(host);
    far_host_facts(host, &row->facts);
    row->reached = row->facts.reached;
    if (probed && row->facts.probed && *row->facts.why) {
        snprintf(row->why, sizeof row->why, "%s: reached, but nothing can be measured: %s", row->name, row->facts.why);
        row->reached = false; /* workers would get no further */
    }
    if (probed ? row->facts.probed : row->facts.reached)
        return true;
    if (status < 0) {
        snprintf(row->why, sizeof row->why, "%s", shoal_error());
        row->reached = false;
    }
    return status < 0;
}

static int await_probe(run_host *row, far_host *host, bool probed, double seconds, const volatile int *stop)
{
    int64_t until = base_time_after(base_now(), seconds);
    while (!has_told(row, host, probed)) {
        if (stop && *stop)
            return shoal_fail(SHOAL_STOPPED, "stopped");
        if (base_now() > until) {
            snprintf(row->why, sizeof row->why, "%s: nothing could be measured within %.0f s", row->name, seconds);
            return SHOAL_OK;
        }
        base_sleep_until(base_time_after(base_now(), POLL_MS / 1000.0));
    }
    return SHOAL_OK;
}

static int reach_hosts(run_hosts *self, reaching *now, const volatile int *stop)
{
    int status = SHOAL_OK;
    for (int i = 0; i < now->count && status == SHOAL_OK; i++)
        status = await_probe(&self->rows[now->first_row + i], now->far[i], false, 1e9, stop);
    return status;
}

static int measure_hosts(run_hosts *self, reaching *now, const volatile int *stop)
{
    int status = SHOAL_OK;
    for (int i = 0; i < now->count && status == SHOAL_OK; i++) {
        run_host *row = &self->rows[now->first_row + i];
        if (!row->reached)
            continue;
        far_host_probe(now->far[i], probe_key);
        status = await_probe(row, now->far[i], true, PROBE_LONGEST, stop);
    }
    return status;
}

/* A store with one blob of incompressible bytes. */
static int make_store(shoal_store **out)
{
    void *bytes = NULL;
    int status = base_alloc_unset(&bytes, 1, PROBE_BYTES, "a blob to measure with");
    if (status == SHOAL_OK)
        status = shoal_store_open(out, "mem:check", &(shoal_store_options){.create = true}, shoal_after(10));
    if (status == SHOAL_OK) {
        base_entropy(bytes, PROBE_BYTES);
        status = shoal_store_put(*out, probe_key, bytes, PROBE_BYTES, NULL, NULL, shoal_after(10));
    }
    base_free(&bytes);
    return status;
}

static void end_reaching(reaching *now)
{
    for (int i = 0; now->far && i < now->count; i++)
        if (now->far[i])
            far_host_stop(now->far[i]);
    for (int i = 0; now->far && i < now->count; i++)
        far_host_free(&now->far[i]);
    far_gate_free(&now->gate);
    base_free(&now->far);
    base_free(&now->hosts);
    shoal_store_close(&now->order.store);
}

static int check_ssh(run_hosts *self, const char *rest, const char *ssh, bool measured, const volatile int *stop)
{
    reaching now = {0};
    int status = ssh_hosts_parse(&now.hosts, &now.count, rest);
    if (status == SHOAL_OK)
        status = make_store(&now.order.store);
    if (status == SHOAL_OK)
        status = start_reaching(self, &now, ssh);
    if (status == SHOAL_OK)
        status = reach_hosts(self, &now, stop);
    if (status == SHOAL_OK && measured)
        status = measure_hosts(self, &now, stop);
    end_reaching(&now);
    return status;
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

static int check_part(run_hosts *self, const launch_part *part, const char *ssh, const volatile int *stop)
{
    if (part->launcher == &launch_local)
        return check_local(self, part->workers);
    if (part->launcher == &launch_ssh)
        return check_ssh(self, part->rest, ssh, true, stop);
    if (part->launcher == &launch_slurm)
        return check_slurm(self, part->rest, part->workers);
    SHOAL_BUG("nobody looks at workers of %s", part->launcher->scheme);
}

int run_hosts_check(run_hosts **out, const launch_specs *specs, const char *ssh, const volatile int *stop)
{
    run_hosts *self = NULL;
    launch_ask ask;
    *out = NULL;
    int status = launch_ask_for(&ask, specs, NULL, 0);
    if (status == SHOAL_OK)
        status = base_alloc(&self, 1, sizeof *self, "the hosts");
    for (int i = 0; i < ask.count && status == SHOAL_OK; i++) {
        int first = self->count;
        status = check_part(self, &ask.part[i], ssh, stop);
        for (int row = first; row < self->count; row++)
            self->rows[row].launcher = ask.part[i].launcher->scheme;
    }
    if (status < 0) {
        run_hosts_free(&self);
        return status;
    }
    *out = self;
    return SHOAL_OK;
}

int run_hosts_can_start(const launch_ask *ask, const char *ssh, bool reach_ssh, const volatile int *stop)
{
    run_hosts hosts = {0};
    int status = SHOAL_OK;
    bool some = ask->count == 0; /* that can start, as far as known */
    for (int i = 0; i < ask->count && !some && status == SHOAL_OK; i++) {
        const launch_part *part = &ask->part[i];
        int first = hosts.count;
        if (part->launcher == &launch_slurm)
            status = check_slurm(&hosts, part->rest, part->workers);
        else if (part->launcher == &launch_ssh && reach_ssh)
            status = check_ssh(&hosts, part->rest, ssh, false, stop);
        else
            some = true;
        for (int row = first; row < hosts.count; row++)
            some = some || hosts.rows[row].reached || hosts.rows[row].may_pass;
    }
    if (status == SHOAL_OK && !some && hosts.count > 1)
        status = shoal_fail(SHOAL_INVALID, "%s; and %d more", hosts.rows[0].why, hosts.count - 1);
    else if (status == SHOAL_OK && !some)
        status = shoal_fail(SHOAL_INVALID, "%s", hosts.rows[0].why);
    base_free(&hosts.rows);
    return status;
}

void run_hosts_free(run_hosts **check)
{
    if (*check)
        base_free(&(*check)->rows);
    base_free(check);
}

/* ---- the store --------------------------------------------------------------------------------------------------- */

static int measure_store_trip(double *out, const store_place *store)
{
    enum { TRIES = 5 };
    int status = SHOAL_OK;
    *out = INFINITY;
    for (int i = 0; i < TRIES && status == SHOAL_OK; i++) {
        shoal_blob blob = {0};
        int64_t began = base_now();
        status =
            shoal_store_get_range(store->store, "check/nothing", 0, 1, NULL, NULL, &blob, shoal_after(store->patience));
        *out = fmin(*out, -base_seconds_until(began));
        shoal_blob_release(&blob);
        status = status == SHOAL_ABSENT ? SHOAL_OK : status;
    }
    return status;
}

int run_store_check(run_store_seen *out, const char *url, double patience)
{
    store_place store = {0};
    int status = run_protect_secrets(url);
    if (status == SHOAL_OK)
        status = store_place_open(&store, url, patience, (shoal_store_options){.read_only = true});
    if (status == SHOAL_OK) {
        status = measure_store_trip(&out->round_trip, &store);
        store_place_close(&store);
    }
    out->reached = status == SHOAL_OK;
    if (status < 0)
        snprintf(out->why, sizeof out->why, "%s", shoal_error());
    return status == SHOAL_USAGE || status == SHOAL_STOPPED ? status : SHOAL_OK;
}
