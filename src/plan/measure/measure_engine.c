/* Measuring rounds of workers.  See measure_engine.h.
 *
 * The jobs are k-means with some milliseconds of work a round, since workers that are at work answer each other later
 * than idle ones, above all where the server of the store has the same cores.  What the same rounds take without a
 * store is taken off.  Each crew runs a short job and a longer one: what both have in common (starting, submitting)
 * falls out of the difference of their requests. Of several jobs the middle one counts. */
#include "measure_engine.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <shoal/kmeans.h>

#include "base/memory.h"
#include "base/pool.h"
#include "base/sort.h"
#include "engine/store/job_keys.h"
#include "plan/least_squares.h"
#include "run/outcome.h"
#include "run/run.h"
#include "store/store_internal.h"

enum { SHORT = 4, LONGEST = 60, REPEATS = 5, TIMES_MOST = 64, CREWS_LEAST = 2 };

/* What differs more does so because the machine is busy with something else. */
static const double STRAGGLE_MOST = 0.3;

/* ---- one job ----------------------------------------------------------------------------------------------------- */

/* What is run. */
typedef struct task {
    const char *url;
    int64_t workers, rows, columns, clusters, iterations;
    double until; /* when it is too late to start it */
    const volatile int *stop;
} task;

/* What came of it; `start` is all but the rounds. */
typedef struct outcome {
    double seconds, start; /* of the rounds of phase "run"; of the rest */
    double rounds, requests, all_rounds;
} outcome;

static int set_task_config(shoal_kmeans_config *config, const task *task)
{
    int status = shoal_options_default(config, shoal_kmeans.options);
    config->k = task->clusters;
    config->iterations = task->iterations;
    config->tolerance = 0;
    config->init = "random";
    return status;
}

static void judge_run(outcome *out, const shoal_outcome *from, double seconds)
{
    const shoal_report *report = &from->away.report.run;
    *out = (outcome){.start = seconds, .all_rounds = (double)report->rounds};
    out->requests = (double)store_counts_requests(&from->away.report.requests);
    for (int i = 0; i < report->phases; i++) {
        out->start -= report->phase[i].seconds;
        if (strcmp(report->phase[i].name, "run") == 0) {
            out->seconds = report->phase[i].seconds;
            out->rounds = (double)report->phase[i].rounds;
        }
    }
    out->start = fmax(out->start, 0);
}

static int unless_stopped(int status, const volatile int *stop)
{
    bool stopped = (status == SHOAL_OK || status == SHOAL_STOPPED) && *stop;
    return stopped ? shoal_fail(SHOAL_STOPPED, "stopped") : status;
}

/* Removes a job, and what tells for a day that it was: its workers have ended. */
static int remove_measured_job(shoal_outcome *from)
{
    if (!from || !from->away.id[0])
        return SHOAL_OK;
    from->away.keep = false;
    int status = run_away_close(from, SHOAL_OK);
    if (status == SHOAL_ABSENT) /* since its input was wrong, say */
        status = SHOAL_OK;
    if (status == SHOAL_OK)
        status = shoal_store_remove(from->jobs.store, job_key_gone(from->away.id).text, run_jobs_deadline(&from->jobs));
    return status;
}

static int make_task_request(shoal_request **out, const task *task)
{
    char address[128], workers[32];
    snprintf(address, sizeof address, "gen:uniform?rows=%" PRId64 "&cols=%" PRId64 "&seed=1", task->rows,
             task->columns);
    snprintf(workers, sizeof workers, "local:%" PRId64, task->workers);
    int status = shoal_request_new(out, "kmeans");
    if (status == SHOAL_OK)
        status = set_task_config((shoal_kmeans_config *)(*out)->config, task);
    if (status == SHOAL_OK)
        status = shoal_request_set(*out, "data", address);
    if (status == SHOAL_OK)
        status = shoal_request_set(*out, "workers", workers);
    if (status < 0)
        return status;
    (*out)->place.threads = 1;
    (*out)->workers.store = task->url;
    (*out)->workers.name = "calibrate";
    (*out)->workers.patience = 20;
    (*out)->workers.passing = true;
    (*out)->watch.stop = task->stop;
    return SHOAL_OK;
}

/* Runs one job and removes it, however it ends. */
static int run_task(outcome *out, const task *task)
{
    shoal_request *request = NULL;
    shoal_outcome *from = NULL;
    char why[512];
    double began = base_seconds();
    if (began >= task->until)
        return shoal_fail(SHOAL_ABSENT, "there is no time for another job");
    int status = make_task_request(&request, task);
    if (status == SHOAL_OK)
        status = run_request(&from, request);
    if (status == SHOAL_OK)
        judge_run(out, from, base_seconds() - began);
    snprintf(why, sizeof why, "%s", shoal_error()); /* removing leaves others */
    int removed = remove_measured_job(from);
    shoal_outcome_free(&from);
    shoal_request_free(&request);
    if (removed < 0)
        return shoal_fail(removed, "%s: could not remove a job that measured it: %s", task->url, shoal_error());
    if (*task->stop)
        return shoal_fail(SHOAL_STOPPED, "stopped");
    if (status != SHOAL_OK)
        return shoal_fail(status < 0 ? status : SHOAL_SYSTEM, "%s: a job that measured it failed: %s", task->url, why);
    return SHOAL_OK;
}

/* ---- how long rounds take ---------------------------------------------------------------------------------------- */

/* So many iterations that they fill the time, by what a short job took. */
static int64_t iterations_in(double seconds, const outcome *brief)
{
    double round = brief->seconds / fmax(brief->rounds, 1);
    return (int64_t)fmax(fmin((seconds - brief->start) / fmax(round, 1e-6), LONGEST), 2 * SHORT);
}

static double median(double *values, int count)
{
    base_sort_reals(values, (size_t)count);
    return values[count / 2];
}

static int measure_crew(struct plan_crew_measured *out, double *start, const task *kind, int64_t workers,
                        double seconds)
{
    task task = *kind;
    task.workers = workers;
    task.iterations = SHORT;
    outcome brief = {0}, whole = {0};
    double round[REPEATS], began = base_seconds();
    int rounds = 0, status = run_task(&brief, &task);
    if (status < 0)
        return status;
    bool slow = base_seconds() - began > 2 * fmax(seconds, 1); /* then the short job has to do */
    task.iterations = iterations_in((seconds - (base_seconds() - began)) / REPEATS, &brief);
    for (int i = 0; i < REPEATS && !slow && status == SHOAL_OK && (i == 0 || base_seconds() - began < seconds); i++) {
        status = run_task(&whole, &task);
        round[rounds++] = whole.seconds / fmax(whole.rounds, 1);
    }
    if (status < 0)
        return status;
    if (slow) {
        whole = brief;
        round[rounds++] = brief.seconds / fmax(brief.rounds, 1);
    }
    double more = whole.all_rounds - brief.all_rounds;
    *start += (brief.start + whole.start) / 2;
    *out = (struct plan_crew_measured){
        .workers = workers,
        .rows = kind->rows,
        .columns = kind->columns,
        .clusters = kind->clusters,
        .seconds = median(round, rounds),
        .requests =
            fmax(more > 0 ? (whole.requests - brief.requests) / more : whole.requests / fmax(whole.all_rounds, 1), 0)};
    return SHOAL_OK;
}

/* What the rounds of such a job take in this process, with one thread and with as many as there are cores. */
static int measure_alone(double *out, const task *kind, int threads, double seconds)
{
    const task task = {.clusters = kind->clusters, .iterations = LONGEST / 3};
    const shoal_run_options options = {.threads = threads, .stop = kind->stop};
    char address[128];
    double round[REPEATS], began = base_seconds();
    int rounds = 0;
    shoal_kmeans_config config = {0};
    shoal_data *data = NULL;
    int status = set_task_config(&config, &task);
    snprintf(address, sizeof address, "gen:uniform?rows=%" PRId64 "&cols=%" PRId64 "&seed=1", kind->rows,
             kind->columns);
    if (status == SHOAL_OK)
        status = shoal_data_open(&data, address, NULL);
    for (int i = 0; i < REPEATS && status == SHOAL_OK && (i == 0 || base_seconds() - began < seconds); i++) {
        shoal_result *result = NULL;
        shoal_report report;
        status = shoal_run(&result, &report, &shoal_kmeans, &config, data, NULL, &options);
        shoal_result_free(&result);
        if (status < 0)
            break;
        const shoal_phase *last = &report.phase[report.phases - 1];
        round[rounds++] = last->seconds / fmax((double)last->rounds, 1);
    }
    shoal_data_free(&data);
    *out = status == SHOAL_OK ? median(round, rounds) : 0;
    return status;
}

/* ---- how evenly workers work ------------------------------------------------------------------------------------- */

/* When the rounds of phase "run" ended. */
typedef struct clock {
    double times[TIMES_MOST], last;
    int count;
} clock;

static void note_round(void *context, const shoal_round *done, const shoal_round *next, int64_t rows, double seconds)
{
    clock *self = context;
    (void)next, (void)rows;
    if (strcmp(done->phase, "run") == 0 && self->count < TIMES_MOST)
        self->times[self->count++] = fmax(seconds - self->last, 1e-9);
    self->last = seconds;
}

/* The deviation of the logarithm of times that may drift: from the median step between neighbours,
 * which is √2 of it. */
static double deviation(const double *times, int count)
{
    double step[TIMES_MOST];
    for (int i = 0; i + 1 < count; i++)
        step[i] = fabs(log(times[i + 1] / times[i]));
    if (count < 4)
        return NAN;
    base_sort_reals(step, (size_t)(count - 1));
    return 1.4826 * step[(count - 1) / 2] / sqrt(2);
}

/* One thread by itself, with some tens of milliseconds of work in a round: between workers the same differences lie. */
static int measure_straggle(double *out, double seconds, const volatile int *stop)
{
    const task task = {.clusters = 64, .iterations = (int64_t)fmax(fmin(seconds / 0.03, 40), 6)};
    clock clock = {0};
    const shoal_run_options options = {.threads = 1, .progress = note_round, .progress_context = &clock, .stop = stop};
    shoal_kmeans_config config = {0};
    shoal_data *data = NULL;
    shoal_result *result = NULL;
    int status = set_task_config(&config, &task);
    if (status == SHOAL_OK)
        status = shoal_data_open(&data, "gen:uniform?rows=60000&cols=16&seed=2", NULL);
    if (status == SHOAL_OK)
        status = shoal_run(&result, NULL, &shoal_kmeans, &config, data, NULL, &options);
    *out = deviation(clock.times, clock.count);
    shoal_result_free(&result);
    shoal_data_free(&data);
    return status;
}

int plan_measure_engine(plan_engine_measured *out, const char *url, int64_t workers, double seconds, double until,
                        const volatile int *stop)
{
    /* Some milliseconds of work and little to send; and much to send. */
    const task light = {.url = url, .rows = 100000, .columns = 16, .clusters = 32, .stop = stop, .until = until},
               heavy = {.url = url, .rows = 4000, .columns = 128, .clusters = 512, .stop = stop, .until = until};
    const int64_t counts[PLAN_CREWS_MOST] = {1, 2, 4, workers};
    int crews = workers > 4 ? 4 : 3;
    *out = (plan_engine_measured){.straggle = NAN};
    double ends = base_seconds() + 0.8 * seconds, alone[2] = {0}, ignored = 0;
    int status = measure_alone(&alone[0], &light, 1, 0.1 * seconds);
    if (status == SHOAL_OK)
        status = measure_alone(&alone[1], &light, base_cores(), 0.1 * seconds);
    status = unless_stopped(status, stop);
    for (int i = 0; i < crews && status == SHOAL_OK; i++) {
        double share = fmax(ends - base_seconds(), 0) / (crews - i + 1);
        status = measure_crew(&out->crew[i], &out->start, &light, counts[i], share);
        /* A worker has one thread here, so with fewer of them than cores the work takes longer than with all
         * threads. */
        double busy = fmin((double)counts[i], base_cores());
        out->crew[i].alone = fmax(alone[0] / busy, alone[1]);
        out->crews += status == SHOAL_OK;
    }
    out->start /= fmax(out->crews, 1);
    if (status == SHOAL_OK)
        status = measure_crew(&out->heavy, &ignored, &heavy, 4, fmax(ends - base_seconds(), 0));
    if (status == SHOAL_OK)
        status = measure_alone(&out->heavy.alone, &heavy, base_cores() < 4 ? base_cores() : 4, 0.1 * seconds);
    if (status == SHOAL_OK)
        status = measure_straggle(&out->straggle, 0.2 * seconds, stop);
    status = unless_stopped(status, stop);
    return status == SHOAL_ABSENT && out->crews >= CREWS_LEAST ? SHOAL_OK : status;
}

/* ---- fitting ----------------------------------------------------------------------------------------------------- */

/* What is estimated of one crew's rounds besides their work: seconds, and requests. */
static int estimate_crew(double *seconds, double *requests, const shoal_site *site,
                         const struct plan_crew_measured *crew)
{
    const task task = {.clusters = crew->clusters, .iterations = LONGEST};
    const shoal_shape shape = {.rows = crew->rows, .columns = crew->columns, .type = SHOAL_FLOAT32};
    const shoal_plan_crew who = {.workers = crew->workers, .threads = 1, .cores = base_cores(), .machines = 1};
    const shoal_pace work = {.learner = "kmeans", .phase = "run", .row = crew->alone / (double)crew->rows};
    shoal_kmeans_config config = {0};
    shoal_cost cost = {0};
    shoal_estimate out = {0};
    int status = set_task_config(&config, &task);
    if (status == SHOAL_OK)
        status = shoal_kmeans.cost(&cost, &config, &shape);
    for (int i = 0; i < cost.phases; i++)
        if (strcmp(cost.phase[i].name, "run") == 0)
            cost.phase[0] = cost.phase[i];
    cost.phases = 1;
    const shoal_plan_job job = {.cost = &cost,
                                .learner = "kmeans",
                                .rows = (double)crew->rows,
                                .columns = (double)crew->columns,
                                .value_bytes = 4,
                                .source = SHOAL_PLAN_GENERATED,
                                .known_rounds = true};
    if (status == SHOAL_OK)
        status = shoal_plan_estimate(&out, &job, site, &work, 1, &who);
    *seconds = (out.straggle + out.reduce + out.publish) / cost.phase[0].rounds;
    *requests = out.requests / cost.phase[0].rounds;
    return status;
}

/* Bytes of rounds take longer than those of a bench: they are encoded, checked and merged, by cores that have other
 * things to do. */
static int fit_rates(shoal_site *site, const struct plan_crew_measured *crew)
{
    static const double SLOWEST = 0.05;
    shoal_site free = *site;
    double whole = 0, latency = 0, requests = 0;
    if (crew->workers == 0)
        return SHOAL_OK;
    free.read = free.write = 1e15;
    free.account = free.account_write = 0;
    int status = estimate_crew(&whole, &requests, site, crew);
    if (status == SHOAL_OK)
        status = estimate_crew(&latency, &requests, &free, crew);
    double rest = crew->seconds - crew->alone - latency;
    if (status < 0 || !(rest > whole - latency))
        return status;
    double slower = fmax((whole - latency) / rest, SLOWEST);
    site->read *= slower;
    site->write *= slower;
    site->account *= slower;
    site->account_write *= slower;
    return SHOAL_OK;
}

/* What estimates lack is sync, and crowd for each further worker; where they are too long already, workers wait less
 * than a thread that does nothing else.  One worker alone waits for nobody. */
int plan_fit_engine(shoal_site *site, const plan_engine_measured *measured)
{
    double share[2 * PLAN_CREWS_MOST], late[PLAN_CREWS_MOST], found[2] = {0}, requests = 0, sum = 0;
    int several = 0, status = SHOAL_OK;
    if (isfinite(measured->straggle))
        site->straggle = fmin(fmax(measured->straggle, 0.01), STRAGGLE_MOST);
    site->sync = site->crowd = site->requests = 0;
    site->start = measured->start;
    for (int i = 0; i < measured->crews && status == SHOAL_OK; i++) {
        const struct plan_crew_measured *crew = &measured->crew[i];
        double seconds = 0, asked = 0;
        status = estimate_crew(&seconds, &asked, site, crew);
        if (crew->workers < 2)
            continue;
        share[2 * several] = 1;
        share[2 * several + 1] = (double)crew->workers - 1;
        late[several] = crew->seconds - crew->alone - seconds;
        requests += fmax(crew->requests - asked, 0) / (double)crew->workers;
        sum += late[several++];
    }
    if (status < 0 || several == 0)
        return status;
    status = plan_least_squares(found, share, late, several, 2);
    site->sync = fmax(found[0], 1e-6);
    site->crowd = found[1];
    if (sum < 0) /* a round waits twice: for pieces and for the model */
        site->wait = fmax(site->wait + sum / several / 2, 1e-6);
    site->requests = requests / several;
    return status == SHOAL_OK ? fit_rates(site, &measured->heavy) : status;
}
