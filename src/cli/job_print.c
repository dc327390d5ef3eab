/* How jobs are shown: as lines for people and as JSON. */
#include "job_print.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "base/text.h"
#include "plan/units.h"
#include "run/jobs.h"
#include "store/store_internal.h"

static const char *const request_names[SHOAL_REQUEST_KINDS] = {"get", "put", "list", "remove", "queue", "other"};

/* ---- small things ------------------------------------------------------------------------------------------------ */

void cli_format_age(char *out, size_t size, double seconds)
{
    if (seconds < 100)
        snprintf(out, size, "%.0f s", fmax(seconds, 0));
    else if (seconds < 6000)
        snprintf(out, size, "%.0f min", seconds / 60);
    else if (seconds < 48 * 3600)
        snprintf(out, size, "%.0f h", seconds / 3600);
    else
        snprintf(out, size, "%.0f days", seconds / 86400);
}

void cli_format_learner(char *out, size_t size, const shoal_job *job)
{
    snprintf(out, size, "%s", job->algorithm);
    base_text_clean(out);
}

void cli_format_place(char *out, size_t size, const shoal_job *job)
{
    if (job->state != SHOAL_JOB_RUNNING)
        snprintf(out, size, "-");
    else if (job->steps > 0)
        snprintf(out, size, "%s %" PRId64 "/%" PRId64, job->phase, job->step, job->steps);
    else
        snprintf(out, size, "%s %" PRId64, job->phase, job->step);
    base_text_clean(out);
}

static int64_t all_causes(const shoal_store_counts *counts)
{
    int64_t sum = 0;
    for (int i = SHOAL_CAUSE_NONE + 1; i < SHOAL_CAUSES; i++)
        sum += counts->causes[i];
    return sum;
}

/* The slices a worker holds: "0-3,7". */
static void format_slices(char *out, size_t size, const shoal_job *job, int64_t worker)
{
    size_t at = 0;
    out[0] = '\0';
    for (int64_t i = 0; i < job->slices && at + 1 < size; i++) {
        int64_t end = i;
        if (job->holder[i] != worker)
            continue;
        while (end + 1 < job->slices && job->holder[end + 1] == worker)
            end++;
        int length = i == end ? snprintf(out + at, size - at, "%s%" PRId64, at ? "," : "", i)
                              : snprintf(out + at, size - at, "%s%" PRId64 "-%" PRId64, at ? "," : "", i, end);
        at += (size_t)length;
        i = end;
    }
    if (out[0] == '\0')
        snprintf(out, size, "-");
}

static const struct {
    unsigned role;
    const char *word;
} role_words[] = {{SHOAL_ROLE_MAP, "map"}, {SHOAL_ROLE_REDUCE, "reduce"}, {SHOAL_ROLE_LAST, "last"}};
enum { ROLE_WORDS = sizeof role_words / sizeof *role_words };

/* "all", "map", "reduce,last" */
static void format_roles(char *out, size_t size, unsigned roles)
{
    size_t at = 0;
    snprintf(out, size, "%s", roles == SHOAL_ROLE_ALL ? "all" : "-");
    for (int i = 0; i < ROLE_WORDS && roles != SHOAL_ROLE_ALL; i++)
        if (roles & role_words[i].role)
            at += (size_t)snprintf(out + at, size - at, "%s%s", at ? "," : "", role_words[i].word);
}

/* ---- for people -------------------------------------------------------------------------------------------------- */

static void show_state(FILE *stream, const shoal_job *job, const char *start)
{
    char place[64], age[24];
    fprintf(stream, "state      %s", run_jobs_state_name(job));
    if (job->state == SHOAL_JOB_RUNNING) {
        cli_format_place(place, sizeof place, job);
        fprintf(stream, ", round %" PRId64 ", %s", job->round, place);
    }
    if (isfinite(job->objective))
        fprintf(stream, ", objective %.10g", job->objective);
    if (isfinite(job->change))
        fprintf(stream, ", change %.2g", job->change);
    cli_format_age(age, sizeof age, (double)time(NULL) - job->created);
    fprintf(stream, "; submitted %s ago\n", age);
    if (job->message) {
        fputs("           ", stream);
        cli_put_text(stream, job->message);
        fputc('\n', stream);
    }
    if (start) {
        fputs("           it waits for workers, such as `", stream);
        cli_put_text(stream, start);
        fputs("`\n", stream);
    }
}

static void show_rounds(FILE *stream, const shoal_job *job)
{
    fprintf(stream, "rounds     %" PRId64 " in %.3f s", job->round, job->seconds);
    for (int i = 0; i < job->phases; i++) {
        fputs(i ? ", " : ": ", stream);
        cli_put_text(stream, job->phase_seconds[i].name);
        fprintf(stream, " %.3f s (%" PRId64 ")", job->phase_seconds[i].seconds, job->phase_seconds[i].rounds);
    }
    fputc('\n', stream);
}

static void show_requests(FILE *stream, const shoal_store_counts *counts)
{
    char text[32];
    const char *before = " (";
    base_format_count(text, sizeof text, store_counts_requests(counts));
    fprintf(stream, "requests   %s", text);
    for (int i = 0; i < SHOAL_REQUEST_KINDS; i++) {
        if (counts->requests[i] > 0) {
            base_format_count(text, sizeof text, counts->requests[i]);
            fprintf(stream, "%s%s %s", before, text, request_names[i]);
            before = ", ";
        }
    }
    fputs(before[0] == ',' ? ")" : "", stream);
    if (counts->price > 0)
        fprintf(stream, ", $%.4f", counts->price);
    if (all_causes(counts) > 0)
        fprintf(stream, "; %" PRId64 " had to be made again", all_causes(counts));
    fputc('\n', stream);
}

static void show_worker(FILE *stream, const shoal_job *job, int64_t index)
{
    const shoal_job_worker *worker = &job->worker[index];
    char slices[40], age[24], roles[20];
    format_slices(slices, sizeof slices, job, index);
    format_roles(roles, sizeof roles, worker->roles);
    cli_format_age(age, sizeof age, worker->age);
    fprintf(stream, "  %016" PRIx64 "  ", worker->id);
    char host[20];
    snprintf(host, sizeof host, "%.18s", worker->host);
    base_text_clean(host);
    fprintf(stream, "%-18s %8" PRId64 " %5d %-10s %8" PRId64 "  %-14s ", host, worker->pid, worker->slots, roles,
            worker->maps, slices);
    if (!worker->left && !worker->alive)
        fprintf(stream, "silent for %s", age);
    else
        cli_put_text(stream, worker->state);
    fputc('\n', stream);
}

static void show_workers(FILE *stream, const shoal_job *job)
{
    fprintf(stream, "workers    %" PRId64 " active", job->live);
    if (job->silent > 0)
        fprintf(stream, ", %" PRId64 " silent", job->silent);
    if (job->left > 0)
        fprintf(stream, ", %" PRId64 " gone", job->left);
    if (job->want >= 0)
        fprintf(stream, "; %" PRId64 " requested", job->want);
    if (job->doubled > 0)
        fprintf(stream, "; %" PRId64 " piece%s computed for others", job->doubled, base_plural(job->doubled));
    fputs(job->workers > 0 && !job->worker ? "; --workers shows each of them\n" : "\n", stream);
    if (!job->worker || job->workers == 0)
        return;
    fprintf(stream, "  %-16s  %-18s %8s %5s %-10s %8s  %-14s %s\n", "worker", "host", "process", "slots", "roles",
            "mapped", "holds", "state");
    for (int64_t i = 0; i < job->workers; i++)
        show_worker(stream, job, i);
    fputs("  slots: threads; roles: map (computes slices), reduce (adds up groups of them), last (makes the next "
          "model);\n  mapped: slices computed so far; holds: slices it computes every round\n",
          stream);
}

static void show_held(FILE *stream, const shoal_job *job, const cli_job_held *held)
{
    char line[CONTROL_LINE_BYTES], budget[PLAN_UNITS_BYTES];
    bool running = job->state == SHOAL_JOB_RUNNING;
    if (!held->aimed || (held->aim.deadline <= 0 && held->aim.budget <= 0))
        return;
    plan_format_money(budget, held->aim.budget);
    if (running && held->known) {
        control_describe(line, &held->aim, &held->held, (double)time(NULL));
        fprintf(stream, "held       %s\n", line);
    } else {
        fprintf(stream, "held       to %s%s%s\n", held->aim.deadline > 0 ? "a deadline" : "",
                held->aim.deadline > 0 && held->aim.budget > 0 ? " and " : "", held->aim.budget > 0 ? budget : "");
    }
}

void cli_job_show_text(FILE *stream, const shoal_job *job, const cli_job_held *held, const char *start)
{
    char maker[80];
    snprintf(maker, sizeof maker, "%s by shoal %s", job->algorithm, job->version);
    base_text_clean(maker);
    fprintf(stream, "job        %s, %s\n", job->id, maker);
    fprintf(stream, "data       ");
    cli_put_text(stream, job->data);
    fprintf(stream, ": %" PRId64 " row%s, %" PRId64 " column%s, %s, %s\n", job->shape.rows,
            base_plural(job->shape.rows), job->shape.columns, base_plural(job->shape.columns),
            shoal_type_name(job->shape.type), job->source);
    for (int i = 0; i < job->codes; i++) {
        fprintf(stream, "code       %s  ", job->code[i].sha256);
        cli_put_text(stream, job->code[i].name);
        fputc('\n', stream);
    }
    show_state(stream, job, start);
    show_held(stream, job, held);
    show_rounds(stream, job);
    fprintf(stream, "slices     %" PRId64 ", merged in %" PRId64 " level%s", job->slices, job->levels - 1,
            base_plural(job->levels - 1));
    if (job->pieces - job->slices > 1)
        fprintf(stream, " with %" PRId64 " group%s", job->pieces - job->slices - 1,
                base_plural(job->pieces - job->slices - 1));
    fprintf(stream, "; lease %.3g s\n", job->lease);
    if (job->worker)
        show_requests(stream, &job->requests);
    show_workers(stream, job);
}

/* ---- for scripts ------------------------------------------------------------------------------------------------- */

static json_t *json_requests(const shoal_store_counts *counts)
{
    json_t *object = json_object();
    for (int i = 0; i < SHOAL_REQUEST_KINDS; i++)
        base_json_put(&object, request_names[i], json_integer(counts->requests[i]));
    base_json_put(&object, "all", json_integer(store_counts_requests(counts)));
    base_json_put(&object, "again", json_integer(all_causes(counts)));
    base_json_put(&object, "sent", json_integer(counts->bytes_sent));
    base_json_put(&object, "received", json_integer(counts->bytes_received));
    base_json_put(&object, "price", base_json_real(counts->price));
    return object;
}

static json_t *json_worker(const shoal_job *job, int64_t index)
{
    const shoal_job_worker *worker = &job->worker[index];
    char id[24];
    json_t *object = json_object(), *slices = json_array(), *roles = json_array();
    snprintf(id, sizeof id, "%016" PRIx64, worker->id);
    for (int i = 0; i < ROLE_WORDS; i++)
        if (worker->roles & role_words[i].role)
            json_array_append_new(roles, json_string(role_words[i].word));
    base_json_put(&object, "id", json_string(id));
    base_json_put(&object, "host", base_json_text(worker->host));
    base_json_put(&object, "pid", json_integer(worker->pid));
    base_json_put(&object, "alive", json_boolean(worker->alive));
    base_json_put(&object, "left", json_boolean(worker->left));
    base_json_put(&object, "state", base_json_text(worker->state));
    base_json_put(&object, "kernel", base_json_text(worker->kernel));
    base_json_put(&object, "slots", json_integer(worker->slots));
    base_json_put(&object, "roles", roles);
    base_json_put(&object, "round", json_integer(worker->round));
    base_json_put(&object, "seconds", base_json_real(worker->seconds));
    base_json_put(&object, "age", base_json_real(worker->age));
    base_json_put(&object, "mapped", json_integer(worker->maps));
    base_json_put(&object, "doubled", json_integer(worker->doubled));
    base_json_put(&object, "fetched", json_integer(worker->fetched));
    base_json_put(&object, "cached", json_integer(worker->hits));
    base_json_put(&object, "fetched_bytes", json_integer(worker->bytes));
    base_json_put(&object, "requests", json_requests(&worker->requests));
    for (int64_t i = 0; i < job->slices; i++)
        if (job->holder[i] == index)
            json_array_append_new(slices, json_integer(i));
    base_json_put(&object, "slices", slices);
    return object;
}

static json_t *json_phases(const shoal_job *job)
{
    json_t *object = json_object();
    for (int i = 0; i < job->phases; i++)
        base_json_put(&object, job->phase_seconds[i].name, base_json_real(job->phase_seconds[i].seconds));
    return object;
}

static json_t *json_code(const shoal_job *job)
{
    json_t *object = json_object();
    for (int i = 0; i < job->codes; i++)
        base_json_put(&object, job->code[i].name, json_string(job->code[i].sha256));
    return object;
}

static json_t *json_moment(double moment)
{
    return moment > 0 ? json_real(moment) : json_null();
}

/* Moments are seconds since 1970. */
static json_t *json_held(const cli_job_held *held)
{
    static const char *const verdict[CONTROL_VERDICTS] = {"kept", "late", "dear", "either"};
    json_t *object = json_object();
    base_json_put(&object, "deadline", json_moment(held->aim.deadline));
    base_json_put(&object, "budget", held->aim.budget > 0 ? json_real(held->aim.budget) : json_null());
    base_json_put(&object, "price", base_json_real(held->aim.price));
    if (!held->known)
        return object;
    base_json_put(&object, "end", json_moment(held->held.end));
    base_json_put(&object, "end_low", json_moment(held->held.low));
    base_json_put(&object, "end_high", json_moment(held->held.high));
    base_json_put(&object, "workers", json_integer(held->held.workers));
    base_json_put(&object, "workers_least", json_integer(held->held.least));
    base_json_put(&object, "workers_most", json_integer(held->held.most));
    base_json_put(&object, "changes", json_integer(held->held.state.changes));
    base_json_put(&object, "verdict", json_string(verdict[held->held.verdict]));
    base_json_put(&object, "spent", base_json_real(held->held.spent));
    base_json_put(&object, "outstanding", base_json_real(held->held.cost - held->held.spent));
    base_json_put(&object, "projected", base_json_real(held->held.cost));
    base_json_put(&object, "projected_high", base_json_real(held->held.cost_high));
    base_json_put(&object, "worker_seconds", base_json_real(held->held.worker_seconds));
    return object;
}

json_t *cli_job_show_json(const shoal_job *job, const cli_job_held *held)
{
    json_t *object = json_object();
    if (held)
        base_json_put(&object, "held", held->aimed ? json_held(held) : json_null());
    base_json_put(&object, "id", json_string(job->id));
    base_json_put(&object, "learner", base_json_text(job->algorithm));
    base_json_put(&object, "state", json_string(run_jobs_state_name(job)));
    base_json_put(&object, "message", job->message ? base_json_text(job->message) : json_null());
    base_json_put(&object, "round", json_integer(job->round));
    base_json_put(&object, "phase", base_json_text(job->phase));
    base_json_put(&object, "step", json_integer(job->step));
    base_json_put(&object, "steps", json_integer(job->steps));
    base_json_put(&object, "objective", base_json_real(job->objective));
    base_json_put(&object, "change", base_json_real(job->change));
    base_json_put(&object, "workers", json_integer(job->live));
    base_json_put(&object, "silent", json_integer(job->silent));
    base_json_put(&object, "left", json_integer(job->left));
    base_json_put(&object, "wanted", job->want >= 0 ? json_integer(job->want) : json_null());
    base_json_put(&object, "age", base_json_real((double)time(NULL) - job->created));
    base_json_put(&object, "data", base_json_text(job->data));
    base_json_put(&object, "rows", json_integer(job->shape.rows));
    base_json_put(&object, "columns", json_integer(job->shape.columns));
    base_json_put(&object, "source", json_string(job->source));
    base_json_put(&object, "slices", json_integer(job->slices));
    base_json_put(&object, "groups", json_integer(job->pieces - job->slices));
    base_json_put(&object, "lease", base_json_real(job->lease));
    base_json_put(&object, "seconds", base_json_real(job->seconds));
    base_json_put(&object, "phases", json_phases(job));
    base_json_put(&object, "doubled", json_integer(job->doubled));
    base_json_put(&object, "version", base_json_text(job->version));
    base_json_put(&object, "spec", json_string(job->spec));
    if (job->codes > 0)
        base_json_put(&object, "code", json_code(job));
    if (job->worker) {
        json_t *workers = json_array();
        for (int64_t i = 0; i < job->workers; i++)
            json_array_append_new(workers, json_worker(job, i));
        base_json_put(&object, "requests", json_requests(&job->requests));
        base_json_put(&object, "worker", workers);
    }
    json_t *settings = job->settings ? json_loads(job->settings, 0, NULL) : NULL;
    if (settings)
        base_json_put(&object, "settings", settings);
    return object;
}
