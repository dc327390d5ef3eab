/* Labels: asan
 * Seconds: 20
 * Tasks under simulation: a client, workers, and what befalls them, seed after seed, each in a process of its own.
 *
 *     test_sim_tasks                          the seeds that every run of the tests tries
 *     test_sim_tasks --seed 7 [--verbose]     one, again; its history to the last request
 *     test_sim_tasks --seconds 600            on and on, from a seed that nobody tried yet
 *     test_sim_tasks --story deaths ...       only of that kind
 *
 * Whatever happens, each task has one result, and that is the one its function makes, unless it was cancelled, which
 * then was said, or killed those that ran it; and nothing is left in the store when the client has closed. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <shoal/job.h>
#include <shoal/task.h>

#include "base/option.h"
#include "base/world.h"
#include "sim_store.h"
#include "sim_world.h"

typedef enum story {
    CALM,    /* nothing goes wrong */
    FAULTS,  /* requests fail, answers are lost */
    DEATHS,  /* workers die at requests and in between; others take their place */
    PAUSES,  /* workers are stopped for a while, and wake up as those whom everybody thinks dead */
    ELASTIC, /* workers come and go */
    CUT,     /* the store is out of reach for a while */
    FORGETS, /* the store forgets its last seconds */
    STALE,   /* the store shows what was there a moment ago */
    POISON,  /* tasks that kill whoever runs them */
    CANCEL,  /* tasks are cancelled, before, while and after they run */
    ALL,     /* deaths, pauses, faults, cancelling, coming and going at once */
    STORIES
} story;

static const char *const names[STORIES] = {"calm",    "faults", "deaths", "pauses", "elastic", "cut",
                                           "forgets", "stale",  "poison", "cancel", "all"};

enum { TASKS_MOST = 200, PEOPLE_MOST = 400, LONG_BYTES = 66000 };
#ifdef SIM_SANITIZED
enum { SEEDS = 4 * STORIES, TWICE = 2, SECONDS_A_SEED = 600 };
#else
enum { SEEDS = 40 * STORIES, TWICE = 6, SECONDS_A_SEED = 120 };
#endif
static const unsigned char key[SHOAL_TASK_KEY_BYTES] = {7};

/* Seeds that found something: a client so busy that what the store had forgotten was away for longer than a lease; a
 * worker that was told to leave and had too little time to take its record along. */
static const uint64_t once_failed[] = {179512412300645, 179512442903192};

/* ---- scenarios --------------------------------------------------------------------------------------------------- */

static struct scene {
    uint64_t seed;
    story story;
    int tasks, workers, slots;
    bool any;                      /* workers serve whatever there is */
    double lease, seconds, spread; /* of the workers; that tasks take, and by which factor that varies */
    double submit_every;           /* seconds between two submissions; 0: all at once */
    double event_every;
    int kills, pauses, leaves, joins, cuts, forgettings, cancels, poisons;
    sim_cloud_options cloud;
} scene;

static int64_t between(sim_stream *stream, int64_t least, int64_t most)
{
    return least + (int64_t)sim_stream_below(stream, (uint64_t)(most - least + 1));
}

static void add_story(sim_stream *stream)
{
    story told = scene.story;
    if (told == FAULTS || told == ALL) {
        scene.cloud.before = 0.1 * sim_stream_unit(stream);
        scene.cloud.after = 0.1 * sim_stream_unit(stream);
        scene.cloud.slow = sim_stream_chance(stream, 0.3) ? 0.02 : 0;
    }
    if (told == DEATHS || told == ALL) {
        scene.cloud.death = 0.02 * sim_stream_unit(stream);
        scene.cloud.deaths = (int)between(stream, 1, 15);
        scene.kills = (int)between(stream, 1, 10);
    }
    if (told == PAUSES || told == ALL) {
        scene.cloud.pause = 0.01 * sim_stream_unit(stream);
        scene.cloud.pauses = (int)between(stream, 1, 8);
        scene.pauses = (int)between(stream, 1, 8);
    }
    if (told == ELASTIC || told == ALL) {
        scene.leaves = (int)between(stream, 1, 10);
        scene.joins = (int)between(stream, 1, 10);
    }
    if (told == CUT || told == ALL)
        scene.cuts = (int)between(stream, 1, 2);
    if (told == FORGETS) {
        scene.cloud.forgets = 1 + 9 * sim_stream_unit(stream);
        scene.forgettings = (int)between(stream, 1, 4);
    }
    if (told == STALE)
        scene.cloud.stale = 0.01 + 0.2 * sim_stream_unit(stream);
    if (told == POISON)
        scene.poisons = (int)between(stream, 1, 3);
    if (told == CANCEL || told == ALL)
        scene.cancels = (int)between(stream, 1, 40);
}

static void draw_scene(uint64_t seed, int told)
{
    static const double latencies[] = {0, 0.0001, 0.005, 0.03, 0.2}, lengths[] = {0, 0.0001, 0.01, 0.3, 3};
    sim_stream stream = {seed * UINT64_C(0x9E3779B97F4A7C15) + 777};
    sim_stream_next(&stream);
    scene = (struct scene){.seed = seed, .story = told >= 0 ? (story)told : (story)(seed % STORIES)};
    scene.tasks = (int)(sim_stream_chance(&stream, 0.3) ? between(&stream, 1, 5) : between(&stream, 1, TASKS_MOST));
    scene.workers = (int)between(&stream, 1, 8);
    scene.slots = (int)between(&stream, 1, 3);
    scene.any = sim_stream_chance(&stream, 0.4);
    scene.lease = (double)between(&stream, 2, 20);
    scene.seconds = lengths[between(&stream, 0, 4)];
    scene.spread = sim_stream_chance(&stream, 0.5) ? 1 : 30;
    scene.submit_every = sim_stream_chance(&stream, 0.6) ? 0 : 0.3 * sim_stream_unit(&stream);
    scene.event_every = 0.05 + 3 * sim_stream_unit(&stream);
    scene.cloud.wakes = sim_stream_chance(&stream, 0.5);
    scene.cloud.latency = latencies[between(&stream, scene.cloud.wakes ? 0 : 2, scene.cloud.wakes ? 2 : 4)];
    scene.cloud.jitter = sim_stream_unit(&stream);
    scene.cloud.far = scene.cloud.wakes && sim_stream_chance(&stream, 0.3);
    add_story(&stream);
}

static void print_scene(void)
{
    fprintf(stderr,
            "Story '%s': %d tasks of %g s (x %g), one every %g s; %d workers of %d slots%s, lease %g; store %s, "
            "latency %g, before %.3f, after %.3f, stale %.3f, forgets %.1f; deaths %d at %.3f and %d, pauses %d at "
            "%.3f and %d, leaves %d, joins %d, cuts %d, cancels %d, poisons %d, every %.2f s\n",
            names[scene.story], scene.tasks, scene.seconds, scene.spread, scene.submit_every, scene.workers,
            scene.slots, scene.any ? " for any" : "", scene.lease,
            scene.cloud.far     ? "far"
            : scene.cloud.wakes ? "wakes"
                                : "polls",
            scene.cloud.latency, scene.cloud.before, scene.cloud.after, scene.cloud.stale, scene.cloud.forgets,
            scene.cloud.deaths, scene.cloud.death, scene.kills, scene.cloud.pauses, scene.cloud.pause, scene.pauses,
            scene.leaves, scene.joins, scene.cuts, scene.cancels, scene.poisons, scene.event_every);
}

/* ---- the tasks, and who knows all of them ------------------------------------------------------------------------ */

static struct known {
    int began, ended; /* runs */
    bool poison, cancelled, fetched;
} known[TASKS_MOST];

static uint64_t answer_of(uint64_t number)
{
    return (number + scene.seed) * UINT64_C(0xD1B54A32D192ED03);
}

/* Some arguments and results are too long to travel inside: their bytes after the first eight are what those are. */
static size_t size_of_argument(uint64_t number)
{
    return number % 11 == 5 ? LONG_BYTES : sizeof number;
}

static size_t size_of_answer(uint64_t number)
{
    return number % 13 == 5 ? LONG_BYTES : sizeof number;
}

static void fill_bytes(void *out, size_t size, uint64_t number)
{
    memset(out, (int)(number & 0xff), size);
    memcpy(out, &number, sizeof number);
}

static int run_task(void **bytes, size_t *size, const shoal_task_call *call)
{
    uint64_t number = 0;
    if (call->size >= sizeof number)
        memcpy(&number, call->bytes, sizeof number);
    if (call->size != size_of_argument(number))
        sim_fail("a task has %zu bytes", call->size);
    if (number >= (uint64_t)scene.tasks || (int64_t)number != call->number)
        sim_fail("task %lld is called %llu", (long long)call->number, (unsigned long long)number);
    known[number].began++;
    sim_event("runs task %llu", (unsigned long long)number);
    if (known[number].poison) {
        sim_sleep(0.01);
        sim_process_kill(sim_self());
    }
    double seconds = scene.seconds * (scene.spread > 1 && number % 7 == 3 ? scene.spread : 1);
    for (double until = sim_seconds() + seconds; sim_seconds() < until;) {
        sim_sleep(seconds / 8 < 0.05 ? seconds / 8 : 0.05);
        if (atomic_load(call->stop))
            return shoal_fail(SHOAL_STOPPED, "stopped");
    }
    *size = size_of_answer(number);
    *bytes = malloc(*size);
    fill_bytes(*bytes, *size, answer_of(number));
    known[number].ended++;
    return SHOAL_OK;
}

static const shoal_task_entry functions[] = {{"run", run_task}, {NULL, NULL}};

static void judge_result(const shoal_task_result *result)
{
    struct known *task = &known[result->number];
    uint64_t answer = 0;
    if (result->number < 0 || result->number >= scene.tasks || task->fetched)
        sim_fail("task %lld has a result too many", (long long)result->number);
    task->fetched = true;
    if (result->size == size_of_answer((uint64_t)result->number))
        memcpy(&answer, result->bytes, sizeof answer);
    switch (result->state) {
    case SHOAL_TASK_DONE:
        if (answer != answer_of((uint64_t)result->number) || task->poison || task->cancelled)
            sim_fail("the result of task %lld is wrong", (long long)result->number);
        break;
    case SHOAL_TASK_CANCELLED:
        if (!task->cancelled)
            sim_fail("task %lld is cancelled, and nobody was told so", (long long)result->number);
        break;
    case SHOAL_TASK_POISON: /* the first death may have been that of another task in the bundle */
        if (task->began - task->ended < SHOAL_TASK_DEATHS_MOST - 1)
            sim_fail("task %lld is said to be poison after %d runs, of which %d ended", (long long)result->number,
                     task->began, task->ended);
        break;
    default: sim_fail("task %lld failed: %s", (long long)result->number, result->message);
    }
}

/* ---- people ------------------------------------------------------------------------------------------------------ */

typedef struct person {
    char name[16];
    sim_process *process;
    shoal_worker *worker;
    bool done, told;
    int status;
    char message[512];
} person;

static sim_cloud *cloud;
static person people[PEOPLE_MOST], client;
static int count;
static char id[SHOAL_TASK_ID_BYTES];
static bool closes; /* the client is about to, or has */

static void note_end(person *self, int status)
{
    self->status = status;
    snprintf(self->message, sizeof self->message, "%s", status < 0 ? shoal_error() : "");
    self->done = true;
    sim_event("ends with %d%s%s", status, status < 0 ? ": " : "", self->message);
}

static void log_line(void *context, const char *line)
{
    (void)context;
    sim_event("says: %s", line);
}

static void be_worker(void *context)
{
    static const shoal_algorithm *const none[] = {NULL};
    person *self = context;
    shoal_store *store = NULL;
    const shoal_worker_options options = {.algorithms = none,
                                          .job = scene.any ? NULL : id,
                                          .slots = scene.slots,
                                          .task_key = key,
                                          .functions = functions,
                                          .log = log_line};
    int status = sim_store_open(&store, cloud);
    if (status == SHOAL_OK)
        status = shoal_worker_new(&self->worker, store, &options);
    if (status == SHOAL_OK)
        status = shoal_worker_run(self->worker);
    note_end(self, status);
    shoal_worker_free(&self->worker);
    shoal_store_close(&store);
}

static int cancel_some(shoal_tasks *tasks, int submitted)
{
    if (scene.cancels <= 0 || submitted == 0 || !sim_chance(0.2))
        return SHOAL_OK;
    int64_t number = (int64_t)sim_draw((uint64_t)submitted);
    scene.cancels--;
    sim_event("*** cancels task %lld", (long long)number);
    int status = shoal_task_cancel(tasks, number, shoal_after(1e5));
    if (status == SHOAL_OK)
        known[number].cancelled = true;
    return status == SHOAL_CONFLICT || status == SHOAL_ABSENT ? SHOAL_OK : status;
}

static int submit_one(shoal_tasks *tasks, int which)
{
    char bytes[LONG_BYTES];
    int64_t number = -1;
    size_t size = size_of_argument((uint64_t)which);
    fill_bytes(bytes, size, (uint64_t)which);
    int status = shoal_task_submit(&number, tasks, &(shoal_task){.function = "run", .bytes = bytes, .size = size});
    if (status == SHOAL_OK && number != which)
        sim_fail("task %d is called %lld", which, (long long)number);
    return status;
}

static int fetch_one(shoal_tasks *tasks, double wait, int *fetched)
{
    shoal_task_result *result = NULL;
    int status = shoal_task_next(&result, tasks, shoal_after(wait));
    if (status == SHOAL_OK) {
        judge_result(result);
        ++*fetched;
    }
    shoal_task_result_free(&result);
    return status == SHOAL_AGAIN || status == SHOAL_ABSENT ? SHOAL_OK : status;
}

static void be_client(void *context)
{
    person *self = context;
    shoal_store *store = NULL;
    shoal_tasks *tasks = NULL;
    int submitted = 0, fetched = 0;
    int status = sim_store_open(&store, cloud);
    if (status == SHOAL_OK)
        status = shoal_tasks_open(
            &tasks, store, &(shoal_tasks_options){.key = key, .lease = scene.lease, .patience = 1e5, .warn = log_line});
    if (status == SHOAL_OK)
        snprintf(id, sizeof id, "%s", shoal_tasks_id(tasks));
    while (status == SHOAL_OK && fetched < scene.tasks) {
        if (submitted < scene.tasks)
            status = submit_one(tasks, submitted++);
        if (status == SHOAL_OK && scene.submit_every > 0)
            sim_sleep(scene.submit_every);
        if (status == SHOAL_OK)
            status = cancel_some(tasks, submitted);
        if (status == SHOAL_OK && (submitted == scene.tasks || scene.submit_every > 0))
            status = fetch_one(tasks, submitted == scene.tasks ? 0.5 : 0, &fetched);
    }
    if (status == SHOAL_OK) {
        shoal_tasks_counts counts = shoal_tasks_count(tasks);
        if (counts.fetched != scene.tasks || counts.ended != scene.tasks || counts.forged != 0)
            sim_fail("%lld ended, %lld fetched, %lld forged of %d tasks", (long long)counts.ended,
                     (long long)counts.fetched, (long long)counts.forged, scene.tasks);
    }
    closes = true;
    if (status == SHOAL_OK)
        status = shoal_tasks_close(&tasks);
    note_end(self, status);
    shoal_store_close(&store);
}

static sim_process *start_process(person *self, const char *name, void (*life)(void *), bool mortal)
{
    *self = (person){0};
    snprintf(self->name, sizeof self->name, "%s", name);
    sim_nature nature = {.name = self->name, .mortal = mortal, .context = self};
    nature.offset = (int64_t)(sim_unit() * 1e15);
    nature.drift = (int64_t)(sim_unit() * 800) - 400;
    nature.slowness = 0.5 + sim_unit();
    sim_event("*** starts %s", self->name);
    return self->process = sim_process_start(&nature, life, self);
}

static void start_worker(void)
{
    char name[16];
    if (count == PEOPLE_MOST)
        sim_fail("too many workers");
    snprintf(name, sizeof name, "worker %d", count);
    person *self = &people[count++];
    start_process(self, name, be_worker, true);
}

static bool works(const person *person)
{
    return !sim_process_ended(person->process) && !sim_process_killed(person->process) && !person->done &&
           !person->told;
}

static int working(void)
{
    int living = 0;
    for (int i = 0; i < count; i++)
        living += works(&people[i]);
    return living;
}

static person *some_worker(void)
{
    int living = working(), chosen = living > 0 ? (int)sim_draw((uint64_t)living) : -1;
    for (int i = 0; i < count; i++)
        if (works(&people[i]) && chosen-- == 0)
            return &people[i];
    return NULL;
}

static void tell_to_leave(person *worker)
{
    worker->told = true;
    sim_event("*** tells %s to leave", worker->name);
    if (worker->worker)
        shoal_worker_leave(worker->worker, "the director says so");
}

/* ---- the director ------------------------------------------------------------------------------------------------ */

static void one_event(void)
{
    person *worker = some_worker();
    switch (sim_draw(6)) {
    case 0:
        if (scene.kills > 0 && worker) {
            scene.kills--;
            sim_event("*** kills %s", worker->name);
            sim_process_kill(worker->process);
        }
        break;
    case 1:
        if (scene.pauses > 0 && worker) {
            scene.pauses--;
            double seconds = sim_chance(0.3) ? 60 * (0.5 + sim_unit()) : 10 * sim_unit();
            sim_event("*** stops %s for %.1f seconds", worker->name, seconds);
            sim_process_pause(worker->process, seconds);
        }
        break;
    case 2:
        if (scene.leaves > 0 && worker && worker->worker) {
            scene.leaves--;
            tell_to_leave(worker);
        }
        break;
    case 3:
        if (scene.joins > 0) {
            scene.joins--;
            start_worker();
        }
        break;
    case 4:
        if (scene.cuts > 0) {
            scene.cuts--;
            sim_cloud_cut(cloud, 1 + 40 * sim_unit());
        }
        break;
    default:
        if (scene.forgettings > 0) {
            scene.forgettings--;
            sim_cloud_forget(cloud, scene.cloud.forgets * sim_unit());
        }
    }
}

static void direct(void)
{
    double longest = 20000 + scene.tasks * scene.seconds * scene.spread * 20;
    double next_event = sim_seconds() + scene.event_every * sim_unit(), deadline = sim_seconds() + longest;
    while (!client.done && id[0] == '\0')
        sim_sleep(0.01);
    for (int i = 0; i < scene.workers; i++)
        start_worker();
    while (!client.done && !closes) {
        if (sim_seconds() > deadline)
            sim_fail("the tasks have not ended after %.0f seconds", longest);
        if (sim_seconds() >= next_event) {
            one_event();
            next_event = sim_seconds() + 2 * scene.event_every * sim_unit();
        }
        if (working() == 0 && !closes) {
            sim_sleep(5 * sim_unit());
            start_worker();
        }
        sim_sleep(0.05 + 0.1 * sim_unit());
    }
    sim_cloud_calm(cloud);
    while (!client.done) {
        if (sim_seconds() > deadline)
            sim_fail("the client has not closed after %.0f seconds", longest);
        sim_sleep(0.1);
    }
    if (client.status < 0)
        sim_fail("the client ended with %d: %s", client.status, client.message);
}

static void everyone_ends(void)
{
    double until = sim_seconds() + 1000;
    for (bool all = false; !all;) {
        all = sim_process_ended(client.process);
        for (int i = 0; i < count; i++) {
            person *each = &people[i];
            if (sim_process_ended(each->process))
                continue;
            all = false;
            if (scene.any && each->worker && works(each))
                tell_to_leave(each);
            if (sim_seconds() > until)
                sim_fail("%s has not ended 1000 seconds after the client", each->name);
        }
        sim_sleep(0.05);
    }
}

static void check_end(void)
{
    for (int i = 0; i < count; i++)
        if (people[i].done && people[i].status < 0 && people[i].status != SHOAL_STOPPED &&
            people[i].status != SHOAL_ABSENT)
            sim_fail("%s ended with %d: %s", people[i].name, people[i].status, people[i].message);
    /* One that died while it wrote that it lives may leave that; and who saw an old listing, anything. */
    if (scene.story == STALE)
        return;
    if (scene.cloud.deaths > 0)
        sim_cloud_remove(cloud, "jobs/", "/worker/");
    if (sim_cloud_blobs(cloud, "jobs/", NULL) > 0)
        sim_fail("after the client has closed there is still %s", sim_cloud_next(cloud, "jobs/", NULL));
    if (sim_cloud_blobs(cloud, "open/", NULL) > 0)
        sim_fail("after the client has closed its marker is still there");
    for (int i = 0; i < scene.tasks; i++) {
        if (scene.story == CALM && known[i].began != 1)
            sim_fail("task %d ran %d times, though nothing went wrong", i, known[i].began);
        if (known[i].poison && known[i].began > 2 * SHOAL_TASK_DEATHS_MOST)
            sim_fail("task %d killed %d workers", i, known[i].began);
    }
}

static uint64_t run_story(uint64_t seed, int told, bool verbose, bool print)
{
    draw_scene(seed, told);
    sim_begin(&(sim_options){.seed = seed, .limit = 1e6, .verbose = verbose, .describe = print_scene});
    for (int i = 0; i < scene.poisons; i++)
        known[sim_draw((uint64_t)scene.tasks)].poison = true;
    cloud = sim_cloud_new(&scene.cloud);
    start_process(&client, "client", be_client, false);
    direct();
    everyone_ends();
    check_end();
    uint64_t history = sim_history_hash();
    if (print) {
        print_scene();
        printf("seed %llu, %s: %.1f virtual seconds, %lld requests, %lld steps\n", (unsigned long long)seed,
               names[scene.story], sim_seconds(), (long long)sim_cloud_traffic(cloud).requests, (long long)sim_steps());
    }
    sim_end();
    sim_cloud_free(&cloud);
    return history;
}

/* ---- seeds ------------------------------------------------------------------------------------------------------- */

static void on_signal(int number)
{
    signal(number, SIG_DFL);
    sim_fail("%s",
             number == SIGALRM ? "it takes too long: someone spins, or waits with the baton in hand" : "it crashed");
}

/* Runs one seed in a child; its history, or 0 when it failed. */
static uint64_t run_seed(uint64_t seed, int told, bool verbose, bool print)
{
    int ends[2], status = 0;
    uint64_t history = 0;
    if (pipe(ends) < 0)
        return perror("pipe"), 0;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        const int caught[] = {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGALRM};
        for (size_t i = 0; i < sizeof caught / sizeof *caught; i++)
            signal(caught[i], on_signal);
        alarm(SECONDS_A_SEED);
        close(ends[0]);
        history = run_story(seed, told, verbose, print);
        fflush(NULL);
        if (write(ends[1], &history, sizeof history) < 0)
            perror("write");
        _exit(0); /* what dead processes left in memory is nobody's loss */
    }
    close(ends[1]);
    if (read(ends[0], &history, sizeof history) != sizeof history)
        history = 0;
    close(ends[0]);
    return child < 0 || waitpid(child, &status, 0) < 0 || status != 0 ? 0 : history;
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

int main(int words, char **word)
{
    uint64_t first = 0, seeds = SEEDS, done = 0;
    int told = -1, failed = 0;
    double seconds = 0, began = now();
    bool verbose = false, print = false;
    for (int i = 1; i < words; i++) {
        int64_t number = 0;
        const char *value = i + 1 < words ? word[i + 1] : "";
        bool numeric = base_parse_count(&number, value);
        if (strcmp(word[i], "--verbose") == 0) {
            verbose = true;
            continue;
        }
        if (strcmp(word[i], "--list") == 0) {
            print = true;
            continue;
        }
        if (strcmp(word[i], "--seed") == 0 && numeric)
            first = (uint64_t)number, seeds = 1, print = true;
        else if (strcmp(word[i], "--first") == 0 && numeric)
            first = (uint64_t)number;
        else if (strcmp(word[i], "--count") == 0 && numeric)
            seeds = (uint64_t)number;
        else if (strcmp(word[i], "--seconds") == 0 && numeric)
            seconds = (double)number, first = (uint64_t)time(NULL) * 100000 + (uint64_t)getpid() % 1000;
        else if (strcmp(word[i], "--story") == 0)
            for (told = STORIES - 1; told >= 0 && strcmp(names[told], value) != 0; told--)
                ;
        i++;
    }
    for (uint64_t i = 0; seconds > 0 ? now() - began < seconds : i < seeds; i++, done++) {
        const bool again = seeds == SEEDS && seconds == 0 && i >= seeds - sizeof once_failed / sizeof *once_failed;
        uint64_t seed = again ? once_failed[seeds - 1 - i] : first + i;
        uint64_t history = run_seed(seed, told, verbose, print);
        if (history == 0) {
            printf("FAILED: seed %llu; replay it by: %s%s%s --seed %llu --verbose\n", (unsigned long long)seed, word[0],
                   told >= 0 ? " --story " : "", told >= 0 ? names[told] : "", (unsigned long long)seed);
            failed++;
        } else if (i < TWICE && seconds == 0 && seeds > 1 && run_seed(seed, told, false, false) != history) {
            printf("FAILED: seed %llu has two histories\n", (unsigned long long)seed);
            failed++;
        }
    }
    printf("%llu seeds, %d failed, %.1f s\n", (unsigned long long)done, failed, now() - began);
    return failed > 0;
}
