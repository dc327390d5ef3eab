/* Jobs in which nothing goes wrong, or only for a while.  See sim_calm.h. */
#include "sim_calm.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <shoal/job.h>

#include "../any_round.h"
#include "sim_world.h"

/* ---- the learner ------------------------------------------------------------------------------------------------- */

typedef struct count_config {
    int64_t steps, sums;
} count_config;

typedef struct count_model {
    int64_t step, steps, sums, sum;
} count_model;

static void describe(shoal_round *round)
{
    const count_model *model = round->model;
    strcpy(round->phase, "count");
    round->step = model->step;
    round->steps = model->steps;
    round->objective = round->change = NAN;
    round->layout = (shoal_layout){.cells = 1, .carry_from = -1};
    round->layout.cell[0] = (shoal_cell){"rows", SHOAL_CELL_SUM, model->sums, 0, false};
}

static int start_count(shoal_round **out, const void *config, const shoal_shape *shape)
{
    (void)shape;
    int status = shoal_round_new(out, sizeof(count_model));
    if (status == SHOAL_OK) {
        const count_config *counting = config;
        *(count_model *)(*out)->model = (count_model){.steps = counting->steps, .sums = counting->sums};
        describe(*out);
    }
    return status;
}

static size_t scratch_count(const shoal_round *round, const void *prepared, const shoal_shape *shape)
{
    (void)round, (void)prepared, (void)shape;
    return 0;
}

static int map_count(shoal_partial *partial, const shoal_round *round, const void *prepared, const shoal_grain *grain,
                     const shoal_scratch *scratch)
{
    (void)round, (void)prepared, (void)scratch;
    sim_work_on_grain(grain);
    shoal_partial_values(partial, 0)[0] += grain->rows;
    return SHOAL_OK;
}

static int update_count(shoal_round **next, shoal_result **result, const shoal_round *round, shoal_partial *merged,
                        const shoal_shape *shape, const shoal_crew *crew, bool stop)
{
    count_model model = *(const count_model *)round->model;
    (void)shape, (void)crew, (void)stop;
    model.sum += shoal_partial_values(merged, 0)[0];
    if (++model.step == model.steps) {
        int status = shoal_result_new(result);
        if (status == SHOAL_OK)
            shoal_result_set_whole(*result, "sum", model.sum);
        return status;
    }
    int status = shoal_round_new(next, sizeof model);
    if (status == SHOAL_OK) {
        memcpy((*next)->model, &model, sizeof model);
        describe(*next);
    }
    return status;
}

static int cost_count(shoal_cost *out, const void *config, const shoal_shape *shape)
{
    (void)shape;
    *out = (shoal_cost){.operations_per_row = 1,
                        .model_bytes = 32,
                        .partial_bytes = 8,
                        .rounds = ((const count_config *)config)->steps};
    return SHOAL_OK;
}

static const shoal_algorithm count = {
    ANY_ROUND,
    .name = "count",
    .summary = "Counts rows, again and again",
    .config_size = sizeof(count_config),
    .kernel_free = true,
    .start = start_count,
    .scratch_bytes = scratch_count,
    .map = map_count,
    .update = update_count,
    .cost = cost_count,
};

/* ---- bytes ------------------------------------------------------------------------------------------------------- */

/* Of a stand-in's partial, so that it can be cut into ranges; and what a piece has beside them, at most. */
enum { SUMS = 10000, PIECE_HEAD = 200 };

static double bytes_now, slice_bytes_now; /* for weigh, which has no context */

static double weigh(const char *key, size_t bytes)
{
    const char *name = strrchr(key, '/');
    if (name && strcmp(name, "/model") == 0)
        return bytes_now;
    if (strstr(key, "/round/") && bytes > PIECE_HEAD)
        return bytes_now * (double)(bytes - PIECE_HEAD) / (SUMS * sizeof(int64_t));
    return strstr(key, "/data/") ? slice_bytes_now : (double)bytes;
}

/* ---- people ------------------------------------------------------------------------------------------------------ */

static const char id[] = "calm";

typedef struct calm {
    sim_cloud *cloud;
    double ended;
    int started; /* workers so far */
} calm;

typedef struct hand {
    calm *calm;
    unsigned roles;
    sim_process *process;
} hand;

static void work(void *context)
{
    hand *self = context;
    shoal_store *store = NULL;
    shoal_worker *worker = NULL;
    static const shoal_algorithm *const known[] = {&count, NULL};
    const shoal_worker_options options = {.algorithms = known, .job = id, .slots = 1, .roles = self->roles};
    int status = sim_store_open(&store, self->calm->cloud);
    if (status == SHOAL_OK)
        status = shoal_worker_new(&worker, store, &options);
    if (status == SHOAL_OK)
        status = shoal_worker_run(worker);
    if (status < 0)
        sim_fail("a worker ended with %d: %s", status, shoal_error());
    shoal_worker_free(&worker);
    shoal_store_close(&store);
}

static void follow(void *context)
{
    calm *self = context;
    shoal_store *store = NULL;
    shoal_result *result = NULL;
    int status = sim_store_open(&store, self->cloud);
    if (status == SHOAL_OK)
        status = shoal_job_follow(&result, NULL, store, id, &(shoal_follow_options){.patience = 1000});
    if (status < 0)
        sim_fail("the job ended with %d: %s", status, shoal_error());
    self->ended = sim_seconds();
    shoal_result_free(&result);
    shoal_store_close(&store);
}

static void submit(sim_cloud *cloud, const sim_calm_options *options)
{
    shoal_store *store = NULL;
    shoal_data *data = NULL;
    char made[SHOAL_JOB_ID_BYTES];
    double *rows = calloc((size_t)options->slices, sizeof *rows);
    int64_t workers = options->workers + options->mappers;
    const count_config config = {.steps = options->rounds, .sums = options->bytes > 0 ? SUMS : 1};
    const shoal_job_options job = {.id = id,
                                   .slices = options->slices,
                                   .workers = workers,
                                   .reduce = options->reduce,
                                   .lease = options->lease,
                                   .rows_per_grain = 1};
    int status = sim_store_open(&store, cloud);
    if (status == SHOAL_OK)
        status = shoal_data_wrap(&data, rows, options->slices, 1, SHOAL_FLOAT64);
    if (status == SHOAL_OK)
        status = shoal_job_submit(made, store, &count, &config, data, NULL, &job);
    if (status < 0)
        sim_fail("submitting failed: %s", shoal_error());
    shoal_data_free(&data);
    shoal_store_close(&store);
    free(rows);
}

static void start_hand(hand *out, calm *calm, unsigned roles)
{
    char name[32];
    snprintf(name, sizeof name, "worker %d", calm->started++);
    *out = (hand){.calm = calm, .roles = roles};
    out->process = sim_process_start(&(sim_nature){.name = name}, work, out);
}

static void start_hands(hand *hands, calm *calm, const sim_calm_options *options)
{
    const int wanted[4] = {options->workers, options->mappers, options->reducers, options->last};
    static const unsigned roles[4] = {SHOAL_ROLE_ALL, SHOAL_ROLE_MAP, SHOAL_ROLE_REDUCE, SHOAL_ROLE_LAST};
    for (int kind = 0; kind < 4; kind++)
        for (int i = 0; i < wanted[kind]; i++)
            start_hand(&hands[calm->started], calm, roles[kind]);
}

/* ---- trouble ----------------------------------------------------------------------------------------------------- */

/* One worker is killed, and another comes, or it is stopped, until the trouble ends at the latest. */
static void strike(hand *victim, const sim_trouble *trouble, double until)
{
    double left = until - sim_seconds(), seconds = trouble->stop_most * sim_unit();
    if (sim_process_ended(victim->process))
        return;
    if (sim_chance(trouble->kills)) {
        sim_event("*** kills %s", sim_process_nature(victim->process)->name);
        sim_process_kill(victim->process);
        start_hand(victim, victim->calm, victim->roles);
    } else {
        seconds = seconds < left ? seconds : left;
        sim_event("*** stops %s for %.1f seconds", sim_process_nature(victim->process)->name, seconds);
        sim_process_pause(victim->process, seconds);
    }
}

static void make_trouble(hand *hands, int count, const sim_trouble *trouble, double began)
{
    double until = began + trouble->until;
    sim_sleep(trouble->from);
    while (sim_seconds() < until) {
        strike(&hands[sim_draw((uint64_t)count)], trouble, until);
        sim_sleep(2 * trouble->every * sim_unit());
    }
}

/* Returns when they died. */
static double desert(hand *hands, int count, const sim_calm_options *options)
{
    const sim_cloud *cloud = hands->calm->cloud;
    while (sim_cloud_messages(cloud) > 0 ||
           sim_cloud_blobs(cloud, "jobs/calm/round/00000000/00/", NULL) < options->deserted)
        sim_sleep(0.001);
    for (int i = 0; i < count; i++) {
        sim_process_kill(hands[i].process);
        start_hand(&hands[i], hands[i].calm, hands[i].roles);
    }
    return sim_seconds();
}

/* ---- figures ----------------------------------------------------------------------------------------------------- */

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Rounds from one model to another: the median of their seconds, and the average of a worker's requests. */
static void measure_span(double *seconds, double *requests, const sim_moment *moment, int64_t first, int64_t last,
                         int workers)
{
    if (last <= first)
        return;
    double *length = calloc((size_t)(last - first), sizeof *length);
    for (int64_t i = first; i < last; i++)
        length[i - first] = moment[i + 1].seconds - moment[i].seconds;
    qsort(length, (size_t)(last - first), sizeof *length, by_size);
    *seconds = length[(last - first) / 2];
    int64_t asked = moment[last].requests - moment[first].requests - (moment[last].leases - moment[first].leases);
    *requests = (double)asked / (double)(last - first) / workers;
    free(length);
}

/* The first model that was put at that moment or later, of those that end a round. */
static int64_t model_at(const sim_moment *moment, int64_t models, double seconds)
{
    int64_t i = 0;
    while (i < models && moment[i].seconds < seconds)
        i++;
    return i;
}

static void measure_trouble(sim_calm_figures *out, const sim_moment *moment, int64_t models, double from, double until,
                            int workers)
{
    int64_t begins = model_at(moment, models, from), ends = model_at(moment, models, until), last = models - 2;
    if (begins < 4 || ends + SIM_ROUNDS_TO_RECOVER >= last)
        sim_fail("the trouble is not in the middle of the job: models %lld to %lld of %lld", (long long)begins,
                 (long long)ends, (long long)models);
    measure_span(&out->pace, &out->pace_requests, moment, begins / 2, begins - 1, workers);
    measure_span(&out->after_seconds, &out->after_requests, moment, ends, last, workers);
    out->troubled = ends - begins;
    out->trouble_seconds =
        (moment[ends].seconds - moment[begins].seconds) / (double)(out->troubled ? out->troubled : 1);
    int64_t back = ends + SIM_ROUNDS_TO_RECOVER;
    for (int64_t i = ends; i < back; i++)
        out->recovering = fmax(out->recovering, moment[i + 1].seconds - moment[i].seconds);
    int64_t count = last - back < SIM_ROUNDS_AFTER ? last - back : SIM_ROUNDS_AFTER;
    out->back_seconds = (moment[back + count].seconds - moment[back].seconds) / (double)count;
    for (int64_t i = ends; i < back + count; i++)
        out->slow += moment[i + 1].seconds - moment[i].seconds > 1.5 * out->pace;
}

static void measure_rounds(sim_calm_figures *out, const sim_cloud *cloud, int workers)
{
    const sim_moment *moment;
    int64_t models = sim_cloud_models(cloud, &moment);
    measure_span(&out->round_seconds, &out->round_requests, moment, models / 2, models - 2, workers);
}

sim_calm_figures sim_calm_run(const sim_calm_options *options)
{
    sim_calm_figures figures = {0};
    calm calm = {0};
    int most = options->workers + options->mappers + options->reducers + options->last;
    hand *hands = calloc((size_t)most, sizeof *hands);
    sim_begin(&(sim_options){.seed = options->seed, .steps = 500000000, .verbose = options->verbose});
    sim_work_now = options->work;
    sim_work_now.poison_row = -1;
    bytes_now = options->bytes;
    slice_bytes_now = options->slice_bytes;
    sim_cloud_options cloud = options->cloud;
    cloud.weigh = options->bytes > 0 ? weigh : NULL;
    calm.cloud = sim_cloud_new(&cloud);
    submit(calm.cloud, options);
    double began = sim_seconds();
    start_hands(hands, &calm, options);
    sim_process *follower = sim_process_start(&(sim_nature){.name = "follower"}, follow, &calm);
    if (options->trouble.until > 0)
        make_trouble(hands, most, &options->trouble, began);
    double deserted = options->deserted > 0 ? desert(hands, most, options) : 0;
    bool all;
    do {
        sim_sleep(1);
        all = sim_process_ended(follower);
        for (int i = 0; i < most; i++)
            all &= sim_process_ended(hands[i].process);
    } while (!all);
    figures.seconds = calm.ended - began;
    figures.requests = sim_cloud_traffic(calm.cloud).requests;
    figures.round_sent = sim_cloud_traffic(calm.cloud).sent / most / (double)options->rounds;
    measure_rounds(&figures, calm.cloud, most);
    const sim_moment *moment;
    int64_t models = sim_cloud_models(calm.cloud, &moment);
    figures.deserted_seconds = moment[0].seconds - deserted;
    if (options->trouble.until > 0) {
        measure_trouble(&figures, moment, models, began + options->trouble.from, began + options->trouble.until, most);
    }
    sim_cloud_free(&calm.cloud);
    sim_end();
    free(hands);
    return figures;
}
