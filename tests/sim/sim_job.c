/* Stories of jobs.  See sim_job.h.
 *
 * Everything about a story is drawn from its seed before it begins (draw_scenario), and printed when it ends badly. 
 * Process 0 directs: it starts and ends the others, looks at the cloud from outside, and judges. */
#include "sim_job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <shoal/engine.h>
#include <shoal/job.h>
#include <shoal/kmeans.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/world.h"
#include "learn/wire.h"
#include "sim_learn.h"
#include "sim_store.h"
#include "sim_world.h"

enum { PEOPLE_MOST = 600, ROWS_MOST = 800, COLUMNS_MOST = 4 };

/* ---- scenarios --------------------------------------------------------------------------------------------------- */

typedef struct scenario {
    uint64_t seed;
    sim_story story;
    /* the job */
    bool toy, generated, weighted;
    int64_t rows, columns, rows_per_grain, slices, keep_rounds;
    char reduce[16];
    double lease;
    sim_toy_config toy_config;
    shoal_kmeans_config kmeans;
    /* the workers */
    int workers;
    bool split_roles, any_job;
    double arrive_within; /* seconds in which they come */
    double skew;          /* clocks are off by up to this many seconds */
    /* what befalls them */
    int kills, pauses, leaves, joins;
    double event_every; /* seconds between two of these, on average */
    double sleeps;      /* seconds that a sleeper sleeps */
    int cuts, forgettings, damages;
    int losses; /* of history; fewer than it takes for a piece to count as poison */
    sim_work work;
    sim_cloud_options cloud;
} scenario;

static const char *const story_names[STORIES] = {
    "calm",     "faults", "deaths", "pauses",    "elastic", "starter", "cancel", "remove", "poison", "forgets",
    "deserted", "crowd",  "cut",    "lost-data", "stale",   "sleeper", "fails",  "damage", "all"};

const char *sim_story_name(sim_story story)
{
    return story_names[story];
}

static int64_t between(sim_stream *stream, int64_t least, int64_t most)
{
    return least + (int64_t)sim_stream_below(stream, (uint64_t)(most - least + 1));
}

static double real_between(sim_stream *stream, double least, double most)
{
    return least + (most - least) * sim_stream_unit(stream);
}

static void draw_learner(scenario *out, sim_stream *stream)
{
    out->toy = sim_stream_chance(stream, 0.6);
    out->rows_per_grain = between(stream, 1, 9);
    out->slices = sim_stream_chance(stream, 0.2) ? between(stream, 1, 3) : between(stream, 1, 40);
    out->rows = out->slices * out->rows_per_grain * between(stream, 1, 3) + between(stream, 0, 5);
    if (out->rows > ROWS_MOST)
        out->rows = ROWS_MOST;
    out->columns = between(stream, 1, COLUMNS_MOST);
    out->generated = sim_stream_chance(stream, 0.4);
    out->weighted = sim_stream_chance(stream, 0.2);
    out->toy_config = (sim_toy_config){
        .steps = sim_stream_chance(stream, 0.1) ? between(stream, 20, 60) : between(stream, 1, 8), .fail_at = -1};
    out->kmeans.k = between(stream, 1, 4);
    out->kmeans.iterations = between(stream, 1, 6);
    out->kmeans.seed = between(stream, 0, 1000);
    if (out->kmeans.k > out->rows)
        out->kmeans.k = out->rows;
    switch (between(stream, 0, 4)) {
    case 0: strcpy(out->reduce, "flat"); break;
    case 1: strcpy(out->reduce, "two-level"); break;
    case 2: snprintf(out->reduce, sizeof out->reduce, "tree:%d", (int)between(stream, 2, 5)); break;
    default: strcpy(out->reduce, "auto");
    }
    out->keep_rounds = sim_stream_chance(stream, 0.3) ? 3 : 0;
    out->lease = sim_stream_chance(stream, 0.5) ? (double)between(stream, 3, 30) : 0;
}

static void draw_work(scenario *out, sim_stream *stream)
{
    static const double costs[] = {0, 0.0001, 0.01, 0.2};
    static const double longest = 10; /* seconds that one usual worker may take to map all rows */
    out->work = (sim_work){.map_row = costs[between(stream, 0, 3)],
                           .map_grain = costs[between(stream, 0, 2)],
                           .update = costs[between(stream, 0, 3)],
                           .straggler = sim_stream_chance(stream, 0.2) ? 0.02 : 0,
                           .poison_row = -1};
    if (out->work.map_row * (double)out->rows > longest)
        out->work.map_row = longest / (double)out->rows;
}

static void draw_cloud(scenario *out, sim_stream *stream)
{
    static const double latencies[] = {0, 0.0001, 0.005, 0.03, 0.2};
    sim_cloud_options *cloud = &out->cloud;
    cloud->wakes = sim_stream_chance(stream, 0.4);
    cloud->blob_queue = sim_stream_chance(stream, 0.3);
    cloud->latency = latencies[between(stream, cloud->wakes ? 0 : 2, cloud->wakes ? 2 : 4)];
    cloud->jitter = sim_stream_unit(stream);
    cloud->far = cloud->wakes && cloud->jitter < 0.5;
    if (sim_stream_chance(stream, 0.2)) {
        cloud->worker_rate = 1e5;
        cloud->total_rate = 1e6;
    }
}

static void draw_workers(scenario *out, sim_stream *stream)
{
    out->workers = (int)(sim_stream_chance(stream, 0.3) ? between(stream, 1, 3) : between(stream, 2, 20));
    out->split_roles = out->workers >= 3 && sim_stream_chance(stream, 0.15);
    out->any_job = sim_stream_chance(stream, 0.2);
    out->arrive_within = sim_stream_chance(stream, 0.5) ? 0 : real_between(stream, 0, 20);
    out->skew = out->cloud.blob_queue
                    ? 0
                    : 1e6; /* queues made of blobs remember leases in this process, for all it simulates */
    out->event_every = real_between(stream, 0.05, 10);
}

static void add_faults(scenario *out, sim_stream *stream)
{
    sim_cloud_options *cloud = &out->cloud;
    cloud->before = real_between(stream, 0, 0.1);
    cloud->after = real_between(stream, 0, 0.1);
    cloud->duplicate = real_between(stream, 0, 0.2);
    cloud->slow = sim_stream_chance(stream, 0.4) ? 0.02 : 0;
    if (sim_stream_chance(stream, 0.3)) {
        cloud->request_rate = 20 * out->workers + 40;
        cloud->burst = 30;
    }
}

static void add_deaths(scenario *out, sim_stream *stream)
{
    out->cloud.death = real_between(stream, 0.001, 0.05);
    out->cloud.deaths = (int)between(stream, 1, 15);
    out->kills = (int)between(stream, 0, 10);
}

static void add_pauses(scenario *out, sim_stream *stream)
{
    out->cloud.pause = real_between(stream, 0.001, 0.02);
    out->cloud.pauses = (int)between(stream, 1, 10);
    out->pauses = (int)between(stream, 1, 8);
}

static void add_story(scenario *out, sim_stream *stream)
{
    switch (out->story) {
    case STORY_FAULTS: add_faults(out, stream); break;
    case STORY_DEATHS: add_deaths(out, stream); break;
    case STORY_PAUSES:
        add_pauses(out, stream);
        if (sim_stream_chance(stream,
                              0.5)) { /* short for a lease and long for a round: others make what is still its own */
            out->lease = 30;
            out->toy = true;
            out->toy_config.steps = between(stream, 20, 60);
            out->pauses = 20;
            out->event_every = 1;
        }
        break;
    case STORY_ELASTIC:
        out->leaves = (int)between(stream, 1, 15);
        out->joins = (int)between(stream, 1, 15);
        break;
    case STORY_STARTER:
        out->cloud.death = 0.3;
        out->cloud.deaths = (int)between(stream, 1, 3);
        break;
    case STORY_CANCEL:
    case STORY_REMOVE: out->event_every = real_between(stream, 0.01, 3); break;
    case STORY_POISON:
        out->work.poison_row = between(stream, 0, out->rows - 1);
        out->work.poison_most = 1000;
        break;
    case STORY_FORGETS:
        out->cloud.forgets = real_between(stream, 1, 10);
        out->forgettings = (int)between(stream, 1, 4);
        break;
    case STORY_DESERTED: out->kills = 1000; break;
    case STORY_CROWD:
        out->workers = (int)between(stream, 40, 200);
        out->toy_config.steps = out->toy_config.steps > 8 ? 8 : out->toy_config.steps;
        out->event_every = 5;
        break;
    case STORY_CUT: out->cuts = (int)between(stream, 1, 3); break;
    case STORY_LOST_DATA: out->generated = false; break;
    case STORY_STALE: out->cloud.stale = real_between(stream, 0.01, 0.3); break;
    case STORY_SLEEPER:
        out->sleeps = real_between(stream, 20, sim_stream_chance(stream, 0.5) ? 300 : 1500);
        out->event_every = real_between(stream, 0.02, 2);
        break;
    case STORY_FAILS: out->toy = true; break;
    case STORY_DAMAGE:
        out->cloud.damage = real_between(stream, 0, 0.1);
        out->damages = (int)between(stream, 1, 30);
        out->losses = 2;
        out->event_every = real_between(stream, 0.01, 0.5);
        break;
    case STORY_ALL:
        add_faults(out, stream);
        add_deaths(out, stream);
        add_pauses(out, stream);
        out->leaves = (int)between(stream, 0, 5);
        out->joins = (int)between(stream, 0, 5);
        out->cuts = (int)between(stream, 0, 1);
        break;
    default: break;
    }
}

/* Sums in ranges, in half of the stories: drawn beside the rest, which stays what it was without them. */
static void draw_ranges(scenario *out)
{
    sim_stream stream = {out->seed * UINT64_C(0xA0761D6478BD642F) + 29};
    sim_stream_next(&stream);
    if (sim_stream_chance(&stream, 0.5))
        snprintf(out->reduce, sizeof out->reduce, "ranged:%d", (int)between(&stream, 2, 5));
}

static scenario draw_scenario(const sim_job_options *options)
{
    sim_stream stream = {options->seed * UINT64_C(0x9E3779B97F4A7C15) + 12345};
    scenario out = {.seed = options->seed};
    out.story = options->story >= 0 ? (sim_story)options->story : (sim_story)(options->seed % STORIES);
    sim_stream_next(&stream);
    shoal_options_default(&out.kmeans, shoal_kmeans.options);
    draw_learner(&out, &stream);
    draw_work(&out, &stream);
    draw_cloud(&out, &stream);
    draw_workers(&out, &stream);
    add_story(&out, &stream);
    draw_ranges(&out);
    if (out.story == STORY_FAILS)
        out.toy_config.fail_at = between(&stream, 0, out.toy_config.steps + 2);
    out.toy_config.salt = out.seed;
    return out;
}

/* ---- the story --------------------------------------------------------------------------------------------------- */

typedef enum person_kind { A_WORKER, A_STARTER, A_FOLLOWER } person_kind;

/* A process and what is known of it. */
typedef struct person {
    person_kind kind;
    char name[16];
    sim_process *process;
    shoal_worker *worker; /* while it runs one */
    unsigned roles;
    bool done, told_to_leave, worked; /* worked: it was running one when told to leave */
    int status;
    char message[512];
    double since, told_at, done_at;
} person;

static struct story {
    scenario scene;
    sim_cloud *cloud;
    shoal_store *outside; /* of process 0 */
    char id[SHOAL_JOB_ID_BYTES];
    int attempt; /* jobs made so far */
    shoal_data *data;
    double *values, *weights;
    void *expected;
    size_t expected_bytes;
    int expected_status;
    char expected_message[512];
    int64_t expected_rounds;
    person people[PEOPLE_MOST];
    int count;
    double patience;
    bool submitted;
    int killed;
    unsigned next_roles; /* of the worker that is started next */
} story;

static void print_scenario(void)
{
    const scenario *scene = &story.scene;
    const sim_cloud_options *cloud = &scene->cloud;
    fprintf(
        stderr,
        "Story '%s', job %s: %s, %lld x %lld rows (%s%s), %lld a grain, %lld slices, reduce %s, lease %g, keep %lld, "
        "%lld rounds; %d workers%s%s in %.1f s; map %g s a row, %g a grain, update %g s, stragglers %g; store: %s%s, "
        "latency %g, jitter %.2f, before %.3f, after %.3f, duplicate %.3f, slow %.3f, stale %.3f, forgets %.1f, rate "
        "%g/%g, requests %g; deaths %d at %.3f and %d, pauses %d at %.3f and %d, leaves %d, joins %d, every %.2f s\n",
        story_names[scene->story], story.id, scene->toy ? "toy" : "kmeans", (long long)scene->rows,
        (long long)scene->columns, scene->generated ? "generated" : "uploaded", scene->weighted ? ", weighted" : "",
        (long long)scene->rows_per_grain, (long long)scene->slices, scene->reduce, scene->lease,
        (long long)scene->keep_rounds, (long long)story.expected_rounds, scene->workers,
        scene->split_roles ? " with split roles" : "", scene->any_job ? " for any job" : "", scene->arrive_within,
        scene->work.map_row, scene->work.map_grain, scene->work.update, scene->work.straggler,
        cloud->far     ? "awaits"
        : cloud->wakes ? "wakes"
                       : "polls",
        cloud->blob_queue ? ", queues of blobs" : "", cloud->latency, cloud->jitter, cloud->before, cloud->after,
        cloud->duplicate, cloud->slow, cloud->stale, cloud->forgets, cloud->worker_rate, cloud->total_rate,
        cloud->request_rate, cloud->deaths, cloud->death, scene->kills, cloud->pauses, cloud->pause, scene->pauses,
        scene->leaves, scene->joins, scene->event_every);
}

static const shoal_algorithm *algorithm(void)
{
    return story.scene.toy ? &sim_toy : sim_kmeans();
}

static const void *config(void)
{
    return story.scene.toy ? (const void *)&story.scene.toy_config : &story.scene.kmeans;
}

static void must_be(int status, int wanted, const char *what)
{
    if (status != wanted)
        sim_fail("%s gave %d instead of %d: %s", what, status, wanted, shoal_error());
}

/* ---- data, and what must come out -------------------------------------------------------------------------------- */

static void make_data(void)
{
    const scenario *scene = &story.scene;
    int64_t count = scene->rows * scene->columns;
    char address[128];
    if (scene->generated) {
        snprintf(address, sizeof address, "gen:uniform?rows=%lld&cols=%lld&seed=%lld", (long long)scene->rows,
                 (long long)scene->columns, (long long)(scene->seed % 1000));
        must_be(shoal_data_open(&story.data, address, NULL), SHOAL_OK, "opening generated rows");
    } else {
        story.values = calloc((size_t)count, sizeof *story.values);
        for (int64_t i = 0; i < count; i++)
            story.values[i] = base_random_unit(scene->seed, BASE_FOR_DATA, (uint64_t)i, 0);
        must_be(shoal_data_wrap(&story.data, story.values, scene->rows, scene->columns, SHOAL_FLOAT64), SHOAL_OK,
                "wrapping rows");
    }
    if (!scene->weighted)
        return;
    story.weights = calloc((size_t)scene->rows, sizeof *story.weights);
    for (int64_t i = 0; i < scene->rows; i++)
        story.weights[i] = 0.5 + base_random_unit(scene->seed, BASE_FOR_DATA, (uint64_t)i, 1);
}

static void encode(void **out, size_t *bytes, const shoal_result *result)
{
    base_writer writer = {0};
    learn_result_write(&writer, result);
    must_be(base_writer_take(&writer, out, bytes), SHOAL_OK, "encoding a result");
}

/* What the threads engine makes of it. */
static void run_reference(void)
{
    shoal_result *result = NULL;
    shoal_report report;
    story.expected_status = shoal_run(&result, &report, algorithm(), config(), story.data, story.weights,
                                      &(shoal_run_options){.threads = 1, .rows_per_grain = story.scene.rows_per_grain});
    story.expected_rounds = report.rounds;
    if (story.expected_status == SHOAL_OK)
        encode(&story.expected, &story.expected_bytes, result);
    else
        snprintf(story.expected_message, sizeof story.expected_message, "%s", shoal_error());
    shoal_result_free(&result);
}

static void compare(const shoal_result *result)
{
    void *bytes = NULL;
    size_t size = 0;
    encode(&bytes, &size, result);
    if (size != story.expected_bytes || memcmp(bytes, story.expected, size) != 0)
        sim_fail("the result is not that of the threads engine");
    base_free(&bytes);
}

/* ---- people ------------------------------------------------------------------------------------------------------ */

static void note_end(person *self, int status)
{
    self->status = status;
    snprintf(self->message, sizeof self->message, "%s", status < 0 ? shoal_error() : "");
    self->done = true;
    self->done_at = sim_seconds();
    sim_event("ends with %d%s%s", status, status < 0 ? ": " : "", self->message);
}

static void log_line(void *context, const char *line)
{
    (void)context;
    sim_event("says: %s", line);
}

static void be_worker(void *context)
{
    person *self = context;
    shoal_store *store = NULL;
    const shoal_worker_options options = {.algorithms = sim_algorithms(),
                                          .job = story.scene.any_job ? NULL : story.id,
                                          .slots = 1,
                                          .idle = 20,
                                          .roles = self->roles,
                                          .log = log_line};
    int status = sim_store_open(&store, story.cloud);
    if (status == SHOAL_OK)
        status = shoal_worker_new(&self->worker, store, &options);
    if (status == SHOAL_OK)
        status = shoal_worker_run(self->worker);
    note_end(self, status);
    shoal_worker_free(&self->worker);
    shoal_store_close(&store);
}

static int submit(shoal_store *store)
{
    const scenario *scene = &story.scene;
    char id[SHOAL_JOB_ID_BYTES];
    const shoal_job_options options = {.id = story.id,
                                       .slices = scene->slices,
                                       .workers = scene->workers,
                                       .reduce = scene->reduce,
                                       .lease = scene->lease,
                                       .keep_rounds = scene->keep_rounds,
                                       .rows_per_grain = scene->rows_per_grain};
    return shoal_job_submit(id, store, algorithm(), config(), story.data, story.weights, &options);
}

static void be_starter(void *context)
{
    person *self = context;
    shoal_store *store = NULL;
    int status = sim_store_open(&store, story.cloud);
    if (status == SHOAL_OK)
        status = submit(store);
    note_end(self, status);
    shoal_store_close(&store);
}

/* A store that forgot the spec may have forgotten the rows, too. */
static int bring_again(void *context)
{
    return shoal_job_upload(context, story.id, story.data, story.weights, NULL, shoal_after(1000));
}

/* Whose life others depend on never dies of a fault. */
static void be_follower(void *context)
{
    person *self = context;
    shoal_store *store = NULL;
    shoal_result *result = NULL;
    shoal_job_report report;
    int status = sim_store_open(&store, story.cloud);
    if (status == SHOAL_OK)
        status = shoal_job_follow(
            &result, &report, store, story.id,
            &(shoal_follow_options){.patience = story.patience, .forgot = bring_again, .forgot_context = store});
    if (status == SHOAL_OK)
        compare(result);
    note_end(self, status);
    shoal_result_free(&result);
    shoal_store_close(&store);
}

/* The roles of the n-th process, where they are split. */
static unsigned split_role(int n)
{
    return n % 3 == 0 ? SHOAL_ROLE_REDUCE : n % 3 == 1 ? SHOAL_ROLE_LAST | SHOAL_ROLE_REDUCE : SHOAL_ROLE_MAP;
}

static person *start_person(person_kind kind, bool mortal)
{
    static void (*const lives[])(void *) = {be_worker, be_starter, be_follower};
    static const char *const names[] = {"worker", "starter", "follower"};
    const scenario *scene = &story.scene;
    if (story.count == PEOPLE_MOST)
        sim_fail("too many processes");
    person *self = &story.people[story.count++];
    *self = (person){.kind = kind, .roles = story.next_roles, .since = sim_seconds()};
    snprintf(self->name, sizeof self->name, "%s %d", names[kind], story.count);
    sim_nature nature = {.name = self->name, .mortal = mortal, .context = self};
    nature.offset = (int64_t)(sim_unit() * scene->skew * 1e9);
    nature.drift = (int64_t)(sim_unit() * 800) - 400;
    nature.slowness = 0.5 + sim_unit();
    if (sim_chance(0.05))
        nature.slowness *= 10;
    sim_event("*** starts %s", self->name);
    self->process = sim_process_start(&nature, lives[kind], self);
    return self;
}

static person *start_worker(unsigned roles, bool mortal)
{
    story.next_roles = roles;
    return start_person(A_WORKER, mortal);
}

static bool lives(const person *person)
{
    return !sim_process_ended(person->process) && !sim_process_killed(person->process) && !person->done;
}

static bool works(const person *person)
{
    return person->kind == A_WORKER && lives(person) && !person->told_to_leave;
}

static int living_workers(void)
{
    int count = 0;
    for (int i = 0; i < story.count; i++)
        count += works(&story.people[i]);
    return count;
}

/* Whether those that live can do all there is to do. */
static bool enough_workers(void)
{
    unsigned roles = 0;
    for (int i = 0; i < story.count; i++)
        roles |= works(&story.people[i]) ? story.people[i].roles : 0;
    return roles == SHOAL_ROLE_ALL;
}

/* A random worker that lives; NULL when there is none. */
static person *some_worker(void)
{
    int count = living_workers();
    int chosen = count > 0 ? (int)sim_draw((uint64_t)count) : -1;
    for (int i = 0; i < story.count; i++) {
        person *each = &story.people[i];
        if (works(each) && chosen-- == 0)
            return each;
    }
    return NULL;
}

static void kill_person(person *victim)
{
    story.killed++;
    sim_event("*** kills %s", victim->name);
    sim_process_kill(victim->process);
}

static void tell_to_leave(person *worker)
{
    worker->told_to_leave = true;
    worker->told_at = sim_seconds();
    sim_event("*** tells %s to leave", worker->name);
    worker->worked = worker->worker != NULL;
    if (worker->worker)
        shoal_worker_leave(worker->worker, "the director says so");
}

/* ---- the director ------------------------------------------------------------------------------------------------ */

/* Waits until someone has ended, dead or alive. */
static void wait_for_end(const person *person, double most)
{
    double until = sim_seconds() + most;
    while (!sim_process_ended(person->process)) {
        if (sim_seconds() > until)
            sim_fail("%s has not ended after %.0f seconds", person->name, most);
        sim_sleep(0.05);
    }
}

static bool job_is_there(void)
{
    char key[128];
    snprintf(key, sizeof key, "jobs/%s/spec", story.id);
    return sim_cloud_blobs(story.cloud, key, NULL) > 0;
}

static void new_id(void)
{
    snprintf(story.id, sizeof story.id, "job-%d", ++story.attempt);
}

/* Someone submits the job, even if others die meanwhile. */
static void submit_job(void)
{
    double hour = 3600;
    new_id();
    person *starter = start_person(A_STARTER, story.scene.story == STORY_STARTER || story.scene.story == STORY_ALL);
    wait_for_end(starter, hour);
    while (!starter->done) {
        sim_event("*** who submitted is dead; the job is %s", job_is_there() ? "there" : "not there");
        if (job_is_there()) {
            must_be(shoal_job_upload(story.outside, story.id, story.data, story.weights, NULL, shoal_after(hour)),
                    SHOAL_OK, "uploading the rest");
            must_be(shoal_job_resume(story.outside, story.id, shoal_after(hour)), SHOAL_OK, "resuming");
            return;
        }
        new_id();
        starter = start_person(A_STARTER, true);
        wait_for_end(starter, hour);
    }
    if (starter->status != SHOAL_OK)
        sim_fail("submitting failed: %s", starter->message);
}

static void start_workers(int count)
{
    for (int i = 0; i < count; i++)
        start_worker(story.scene.split_roles ? split_role(i) : SHOAL_ROLE_ALL, true);
}

/* Who looks at a job in the middle always sees something that makes sense. */
static void check_description(void)
{
    shoal_job *job = NULL;
    int status = shoal_job_describe(&job, story.outside, story.id, SHOAL_JOB_ALL_RECORDS, shoal_after(1000));
    must_be(status, SHOAL_OK, "describing the job");
    if (job->slices != story.scene.slices || job->live > job->workers || job->round > story.expected_rounds + 1)
        sim_fail("the job is told to have %lld slices and %lld of %lld workers in round %lld", (long long)job->slices,
                 (long long)job->live, (long long)job->workers, (long long)job->round);
    shoal_job_free(&job);
}

/* The rounds that have something in the store, and the pieces that are there of all of them. */
static void count_rounds(int64_t *rounds, int64_t *pieces)
{
    char prefix[128], last[192] = "";
    *rounds = *pieces = 0;
    snprintf(prefix, sizeof prefix, "jobs/%s/round/", story.id);
    for (const char *key = NULL; (key = sim_cloud_next(story.cloud, prefix, key));) {
        size_t length = strcspn(key + strlen(prefix), "/");
        *pieces += !strstr(key, "/model");
        if (strlen(last) == length && strncmp(last, key + strlen(prefix), length) == 0)
            continue;
        ++*rounds;
        snprintf(last, sizeof last, "%.*s", (int)length, key + strlen(prefix));
    }
}

static int told_to_leave(void)
{
    int count = 0;
    for (int i = 0; i < story.count; i++)
        count += story.people[i].told_to_leave;
    return count;
}

/* Whether all that was left at the end has been removed: nobody died over it, left in the middle of it, or could not
 * see it. */
static bool is_tidied(void)
{
    const scenario *scene = &story.scene;
    sim_traffic traffic = sim_cloud_traffic(story.cloud);
    return story.expected_status == SHOAL_OK && traffic.deaths + story.killed + told_to_leave() == 0 &&
           scene->cloud.stale == 0;
}

/* A store does not grow with the rounds of a job.  What the dead left is swept by listing, now and then, so that there
 * may be more for a while; and one that forgets keeps older models. */
static void check_growth(bool ended)
{
    int64_t rounds, pieces, keep = story.scene.keep_rounds;
    bool tidied = ended && is_tidied();
    count_rounds(&rounds, &pieces);
    if (ended)
        sim_event("*** %lld rounds and %lld pieces are left", (long long)rounds, (long long)pieces);
    if (story.scene.cloud.forgets > 0)
        return;
    if (tidied && pieces > 0 && keep == 0)
        sim_fail("%lld pieces are in the store though the job is done", (long long)pieces);
    if (rounds > keep + (tidied ? 2 : 16))
        sim_fail("%lld rounds are in the store, of which %lld should be kept", (long long)rounds, (long long)keep);
}

/* A bit flips in something that is made again when it is found to be broken. */
static bool damage_something(void)
{
    static const char *const places[] = {"round/", "round/", "worker/", "left/"};
    char prefix[128];
    snprintf(prefix, sizeof prefix, "jobs/%s/%s", story.id, places[sim_draw(4)]);
    return sim_cloud_damage(story.cloud, prefix, NULL);
}

/* All who have what rounds keep die, and what is in the store of it is damaged: the job has to go back. */
static void lose_history(void)
{
    char prefix[128];
    int count = 0;
    snprintf(prefix, sizeof prefix, "jobs/%s/round/", story.id);
    for (int i = (int)sim_draw(4); i >= 0; i--)
        sim_cloud_damage(story.cloud, prefix, "/kept");
    for (person *worker; (worker = some_worker()) != NULL; count++)
        kill_person(worker);
    start_workers(count);
}

/* One thing that befalls somebody. */
static void one_event(void)
{
    scenario *scene = &story.scene;
    person *worker = some_worker();
    switch (sim_draw(8)) {
    case 0:
        if (scene->kills > 0 && worker) {
            scene->kills--;
            kill_person(worker);
        }
        break;
    case 1:
        if (scene->pauses > 0 && worker) {
            double seconds = sim_chance(0.3) ? 60 * (0.5 + sim_unit()) : 10 * sim_unit();
            scene->pauses--;
            sim_event("*** stops %s for %.1f seconds", worker->name, seconds);
            sim_process_pause(worker->process, seconds);
        }
        break;
    case 2:
        if (scene->leaves > 0 && worker) {
            scene->leaves--;
            tell_to_leave(worker);
        }
        break;
    case 3:
        if (scene->joins > 0) {
            scene->joins--;
            start_worker(scene->split_roles ? split_role((int)sim_draw(3)) : SHOAL_ROLE_ALL, true);
        }
        break;
    case 4:
        if (scene->cuts > 0) {
            scene->cuts--;
            sim_cloud_cut(story.cloud, 1 + 40 * sim_unit());
        }
        break;
    case 5:
        if (scene->forgettings > 0 && story.submitted) {
            scene->forgettings--;
            sim_cloud_forget(story.cloud, scene->cloud.forgets * sim_unit());
        }
        break;
    case 6:
        if (scene->losses > 0 && sim_chance(0.3)) {
            scene->losses--;
            lose_history();
        } else if (scene->damages > 0) {
            scene->damages -= damage_something();
        }
        break;
    default:
        if (scene->sleeps > 0 && worker) {
            sim_event("*** %s sleeps for %.0f seconds", worker->name, scene->sleeps);
            sim_process_pause(worker->process, scene->sleeps);
            scene->sleeps = 0;
        }
    }
}

static void continue_killing(void)
{
    person *worker = some_worker();
    if (worker)
        kill_person(worker);
    sim_sleep(0.1);
}

/* Virtual seconds that a job takes, by far: a round may take as long as the slowest worker needs for all rows. */
static double longest(void)
{
    const sim_work *work = &story.scene.work;
    double slowest = 15, grains = (double)story.scene.rows / (double)story.scene.rows_per_grain + 1;
    double round = slowest * (work->map_row * (double)story.scene.rows + work->map_grain * grains + work->update);
    return 5000 + (double)story.expected_rounds * round;
}

/* Goes on until `follower` ends, doing to the workers what the story says, and keeping someone there. */
static void direct(const person *follower)
{
    const scenario *scene = &story.scene;
    double next_event = sim_seconds() + scene->event_every * sim_unit(), deadline = sim_seconds() + longest();
    double comes_at[2] = {sim_seconds(), scene->arrive_within / (scene->workers + 1)};
    int coming = scene->workers;
    while (!follower->done) {
        if (sim_seconds() > deadline)
            sim_fail("the job has not ended after %.0f seconds", longest());
        while (coming > 0 && sim_seconds() >= comes_at[0]) {
            start_worker(scene->split_roles ? split_role(coming) : SHOAL_ROLE_ALL, true);
            comes_at[0] += comes_at[1];
            coming--;
        }
        if (sim_seconds() >= next_event) {
            one_event();
            next_event = sim_seconds() + 2 * scene->event_every * sim_unit();
        }
        if (coming == 0 && !enough_workers() && !follower->done) {
            if (scene->story == STORY_DESERTED && scene->kills > 0) {
                if (living_workers() == 0)
                    return;
                continue_killing();
                continue;
            }
            sim_sleep(10 * sim_unit());
            if (!follower->done)
                start_worker(SHOAL_ROLE_ALL, scene->story == STORY_POISON || sim_chance(0.5));
        }
        if (scene->story == STORY_CALM || scene->story == STORY_CROWD)
            check_growth(false);
        if (scene->cloud.stale == 0 && scene->cloud.forgets == 0 && scene->story != STORY_DAMAGE && sim_chance(0.02))
            check_description();
        sim_sleep(0.05 + 0.1 * sim_unit());
    }
}

/* Everyone goes home: workers whose job has ended by themselves, others are told to. */
static void everyone_ends(void)
{
    /* A sleeper may have to wake first, or the patience with a store to end. */
    double longest = story.scene.story == STORY_SLEEPER ? 2000 : 400;
    double until = sim_seconds() + longest;
    bool all;
    do {
        all = true;
        for (int i = 0; i < story.count; i++) {
            person *each = &story.people[i];
            if (sim_process_ended(each->process))
                continue;
            all = false;
            if (each->kind == A_WORKER && story.scene.any_job && !each->told_to_leave && lives(each) && each->worker)
                tell_to_leave(each);
            if (sim_seconds() > until)
                sim_fail("%s has not ended %.0f seconds after the job", each->name, longest);
        }
        sim_sleep(0.05);
    } while (!all);
}

/* Where the last worker died before it had tidied up, the next one does that, whatever job it looks for. */
static void tidy_up(void)
{
    if (sim_cloud_blobs(story.cloud, "open/", NULL) == 0)
        return;
    story.scene.any_job = true;
    person *janitor = start_worker(SHOAL_ROLE_ALL, false);
    wait_for_end(janitor, 100);
    if (sim_cloud_blobs(story.cloud, "open/", NULL) > 0)
        sim_fail("the marker of a job that has ended stays");
}

/* Seconds in which a worker that was told to leave must have left, when the store answers: a second, and what is in
 * flight, which is a request, a grain, an update, or a take from a queue, which is several requests where it is made of
 * blobs.  Its record is then moved by two requests more. */
static double leaving_takes(void)
{
    const sim_work *work = &story.scene.work;
    const sim_cloud_options *cloud = &story.scene.cloud;
    double grain = work->map_grain + work->map_row * (double)story.scene.rows_per_grain, slowest = 15;
    double request = cloud->latency * (1 + cloud->jitter) + (cloud->worker_rate > 0 ? 0.2 : 0);
    return 1 + (cloud->blob_queue ? 10 : 4) * request +
           slowest * ((work->straggler > 0 ? 20 : 1) * grain + work->update);
}

static void check_people(void)
{
    for (int i = 0; i < story.count; i++) {
        const person *each = &story.people[i];
        if (each->kind == A_FOLLOWER && each->done && each->status < 0 && story.scene.cloud.deaths > 0 &&
            each->status != story.expected_status)
            sim_fail("%s ended with %d: %s", each->name, each->status, each->message);
        if (each->told_to_leave && each->done && story.scene.story == STORY_ELASTIC && each->worked &&
            each->done_at - each->told_at > leaving_takes())
            sim_fail("%s took %.2f s to leave", each->name, each->done_at - each->told_at);
        if (each->kind != A_WORKER || !each->done)
            continue;
        if (each->status == SHOAL_ABSENT && (story.scene.story == STORY_REMOVE || story.scene.story == STORY_FORGETS))
            continue;
        if (each->status != SHOAL_OK && each->status != SHOAL_STOPPED)
            sim_fail("%s ended with %d: %s", each->name, each->status, each->message);
        if (each->status == SHOAL_STOPPED && !each->told_to_leave)
            sim_fail("%s stopped though nobody told it to: %s", each->name, each->message);
    }
}

static void check_removal(void)
{
    char prefix[128];
    snprintf(prefix, sizeof prefix, "jobs/%s/", story.id);
    must_be(shoal_job_remove(story.outside, story.id, shoal_after(1000)), SHOAL_OK, "removing the job");
    sim_sleep(1);
    if (sim_cloud_blobs(story.cloud, prefix, NULL) > 0)
        sim_fail("after the job was removed there is still %s", sim_cloud_next(story.cloud, prefix, NULL));
    if (sim_cloud_blobs(story.cloud, "open/", NULL) > 0)
        sim_fail("after the job was removed its marker is still there");
    if (sim_cloud_blobs(story.cloud, ".shoal/", NULL) + sim_cloud_messages(story.cloud) > 0)
        sim_fail("after the job was removed there are still messages");
}

/* Nobody asks in a loop. */
static void check_requests(const sim_job_outcome *outcome, int64_t rounds)
{
    sim_traffic traffic = sim_cloud_traffic(story.cloud);
    double people = story.count, pieces = (double)story.scene.slices * 2 + 10;
    double most =
        40 * people * outcome->seconds / 2 + 30 * people * (double)(rounds + 10) + 20 * pieces * (double)(rounds + 10);
    if ((double)traffic.requests > most)
        sim_fail("%lld requests in %.1f seconds and %lld rounds of %d processes are more than %.0f",
                 (long long)traffic.requests, outcome->seconds, (long long)rounds, story.count, most);
}

static person *follow(double patience)
{
    story.patience = patience;
    return start_person(A_FOLLOWER, false);
}

static void expect_end(const person *follower)
{
    if (follower->status != story.expected_status)
        sim_fail("the job ended with %d instead of %d: %s", follower->status, story.expected_status, follower->message);
    if (follower->status < 0 && !strstr(follower->message, story.expected_message))
        sim_fail("the job failed with '%s' instead of '%s'", follower->message, story.expected_message);
}

/* ---- particular stories ------------------------------------------------------------------------------------------ */

static void play_cancel(void)
{
    person *follower = follow(300);
    start_workers(story.scene.workers);
    sim_sleep(story.scene.event_every);
    int status = shoal_job_cancel(story.outside, story.id, "changed my mind", shoal_after(100));
    wait_for_end(follower, 500);
    if (status == SHOAL_OK) {
        if (follower->status != SHOAL_STOPPED || !strstr(follower->message, "changed my mind"))
            sim_fail("a cancelled job ended with %d: %s", follower->status, follower->message);
        if (!story.scene.any_job)
            everyone_ends();
        must_be(shoal_job_resume(story.outside, story.id, shoal_after(100)), SHOAL_OK, "resuming");
        follower = follow(300);
        direct(follower);
    } else {
        must_be(status, SHOAL_USAGE, "cancelling a job that had ended");
    }
    expect_end(follower);
}

/* Who slept while the job was removed does not bring it back. */
static void play_remove(void)
{
    char spec[128], open[128];
    person *follower = follow(300);
    start_workers(story.scene.workers);
    sim_sleep(story.scene.event_every);
    person *sleeper = sim_chance(0.7) ? some_worker() : NULL;
    if (sleeper) {
        sim_event("*** %s sleeps", sleeper->name);
        sim_process_pause(sleeper->process, 10 + 40 * sim_unit());
    }
    must_be(shoal_job_remove(story.outside, story.id, shoal_after(100)), SHOAL_OK, "removing");
    snprintf(spec, sizeof spec, "jobs/%s/spec", story.id);
    snprintf(open, sizeof open, "open/%s", story.id);
    wait_for_end(follower, 500);
    submit_job();
    follower = follow(300);
    direct(follower);
    expect_end(follower);
    if (sleeper && !story.scene.any_job)
        wait_for_end(sleeper, 500);
    if (sim_cloud_blobs(story.cloud, spec, NULL) + sim_cloud_blobs(story.cloud, open, NULL) > 0)
        sim_fail("a job that was removed has come back");
}

static void play_poison(void)
{
    char row[64];
    person *follower = follow(3000);
    direct(follower);
    if (follower->status >= 0 || follower->status == SHOAL_STOPPED)
        sim_fail("a poisoned job ended with %d: %s", follower->status, follower->message);
    snprintf(row, sizeof row, "row");
    if (!strstr(follower->message, row))
        sim_fail("a poisoned job does not name the rows: %s", follower->message);
    sim_work_now.poison_most = 0; /* fixed */
    everyone_ends();
    must_be(shoal_job_resume(story.outside, story.id, shoal_after(100)), SHOAL_OK, "resuming");
    follower = follow(300);
    direct(follower);
    expect_end(follower);
}

static void play_deserted(void)
{
    person *follower = follow(30);
    direct(follower);
    if (!follower->done)
        wait_for_end(follower, 500);
    if (follower->status != SHOAL_OK || story.expected_status != SHOAL_OK) {
        if (follower->status != SHOAL_STOPPED)
            sim_fail("a deserted job ended with %d: %s", follower->status, follower->message);
        story.scene.kills = 0;
        must_be(shoal_job_resume(story.outside, story.id, shoal_after(100)), SHOAL_OK, "resuming");
        follower = follow(300);
        direct(follower);
    }
    expect_end(follower);
}

/* Rows that are gone are brought again by who has them. */
static person *upload_and_resume(void)
{
    everyone_ends();
    must_be(shoal_job_upload(story.outside, story.id, story.data, story.weights, NULL, shoal_after(1000)), SHOAL_OK,
            "uploading again");
    must_be(shoal_job_resume(story.outside, story.id, shoal_after(100)), SHOAL_OK, "resuming");
    person *follower = follow(300);
    direct(follower);
    return follower;
}

static void play_lost_data(void)
{
    char prefix[128];
    snprintf(prefix, sizeof prefix, "jobs/%s/data/", story.id);
    const char *key = NULL;
    for (int64_t skip = (int64_t)sim_draw((uint64_t)story.scene.slices); skip >= 0; skip--) {
        const char *next = sim_cloud_next(story.cloud, prefix, key);
        key = next ? next : key;
    }
    if (!key)
        sim_fail("nothing was uploaded");
    snprintf(prefix, sizeof prefix, "%s", key);
    sim_cloud_remove(story.cloud, prefix, NULL);
    person *follower = follow(300);
    direct(follower);
    if (follower->status >= 0)
        sim_fail("a job whose rows vanished ended with %d: %s", follower->status, follower->message);
    follower = upload_and_resume();
    expect_end(follower);
}

static void play_usual(void)
{
    person *follower = follow(story.scene.cloud.forgets > 0 ? 200 : 2000);
    if (story.scene.cloud.forgets > 0)
        sim_sleep(1); /* somebody has read the spec before it may be forgotten */
    story.submitted = true;
    for (int i = 0; story.scene.cloud.deaths > 0 && i < 2; i++)
        start_person(A_FOLLOWER, true); /* others may follow too, and die */
    direct(follower);
    bool loses_ends = story.scene.cloud.forgets > 0 || story.scene.story == STORY_DAMAGE;
    for (int lives = 0; loses_ends && lives < 9; lives++) /* an end that was made again may be lost again */
        if (follower->status == SHOAL_STOPPED) {
            /* The end of the job was forgotten or damaged, and its marker is gone: a worker that looks for any job does
             * not find it. */
            must_be(shoal_job_resume(story.outside, story.id, shoal_after(100)), SHOAL_OK, "resuming");
            follower = follow(300);
            direct(follower);
        } else if (strstr(follower->message, "are not in the store")) {
            /* Rows that nobody else has were forgotten, or removed before the end was lost. */
            follower = upload_and_resume();
        }
    expect_end(follower);
}

static void play(void)
{
    switch (story.scene.story) {
    case STORY_CANCEL: play_cancel(); break;
    case STORY_REMOVE: play_remove(); break;
    case STORY_POISON: play_poison(); break;
    case STORY_DESERTED: play_deserted(); break;
    case STORY_LOST_DATA: play_lost_data(); break;
    default: play_usual();
    }
}

sim_job_outcome sim_job_run(const sim_job_options *options)
{
    memset(&story, 0, sizeof story);
    story.scene = draw_scenario(options);
    make_data();
    run_reference();
    sim_begin(&(sim_options){
        .seed = options->seed, .verbose = options->verbose, .spurious = 0.01, .describe = print_scenario});
    sim_work_now = story.scene.work;
    story.cloud = sim_cloud_new(&story.scene.cloud);
    must_be(sim_store_open(&story.outside, story.cloud), SHOAL_OK, "opening");
    submit_job();
    if (story.scene.cloud.stale > 0)
        sim_sleep(1); /* then all can see that there is a job */
    play();
    everyone_ends();
    sim_cloud_calm(story.cloud);
    if (story.expected_status == SHOAL_OK)
        tidy_up();
    sim_job_outcome outcome = {.seconds = sim_seconds(), .rounds = story.expected_rounds};
    check_people();
    check_requests(&outcome, story.expected_rounds);
    check_growth(true);
    check_removal();
    outcome.history = sim_history_hash();
    outcome.steps = sim_steps();
    outcome.requests = sim_cloud_traffic(story.cloud).requests;
    if (options->print)
        printf("seed %llu %-9s %3d workers %3lld slices %3lld rounds: %8.2f s, %6lld requests, %7lld steps, history "
               "%016llx\n",
               (unsigned long long)options->seed, story_names[story.scene.story], story.scene.workers,
               (long long)story.scene.slices, (long long)story.expected_rounds, outcome.seconds,
               (long long)outcome.requests, (long long)outcome.steps, (unsigned long long)outcome.history);
    shoal_store_close(&story.outside);
    sim_cloud_free(&story.cloud);
    sim_end();
    shoal_data_free(&story.data);
    base_free(&story.expected);
    free(story.values);
    free(story.weights);
    return outcome;
}
