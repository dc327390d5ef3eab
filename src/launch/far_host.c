/* One machine reached by a command.  See far_host.h.
 *
 * Only the host's thread uses the command and the link; callers leave requests under the lock and ring its bell.
 * Reports of the link arrive on its own threads, and are stored under the lock too.  Nothing blocks while it holds the
 * lock. */
#include "launch/far_host.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <shoal/error.h>

#include "base/memory.h"
#include "base/world.h"
#include "launch/agent_note.h"
#include "launch/far_start.h"

enum {
    TRIES_UNREACHED = 3, /* that a host which never answered gets before it counts as hopeless; it is still retried */
    SAID_MOST = 1 << 20, /* bytes of the command's standard error that are kept */
    HAPPENINGS_MOST = 100000,
};
static const double PATIENCE = 30, LONGEST_PAUSE = 15, STEADY = 20, PROGRESS_EVERY = 1, END_GRACE = 2, LOOK_EVERY = 1;

/* Something to report in the caller's thread. */
typedef struct happening {
    struct happening *next;
    uint64_t worker; /* that is gone; 0: `text` is for people */
    char *text;
} happening;

/* What callers ask of the host's thread. */
typedef struct requests {
    int64_t count;
    bool leave, progress;
    char probe[256]; /* a key, or "" */
} requests;

struct far_host {
    const launch_order *order;
    far_options options;
    char *name, **words, **words_again;
    base_thread *thread;
    int bell;
    atomic_bool stop;

    pthread_mutex_t lock;
    /* All of this under the lock. */
    requests requests;
    bool serving, over, given_up; /* over: the thread has nothing left to do */
    bool closed;                  /* the link */
    char closed_why[256];
    bool crew_failed;
    int failures;                  /* in a row */
    bool reached;                  /* ever */
    char reason[FAR_REASON_BYTES]; /* of the last failure */
    int64_t running;
    uint64_t *workers; /* that were started and are not known to be gone */
    int64_t worker_count, worker_room;
    far_facts facts;
    happening *first, **last;
    int64_t happenings;

    /* The thread's own. */
    bool no_libraries;
    pipe_server *server;
};

static void ring_host(const far_host *self)
{
    const uint64_t one = 1;
    (void)!write(self->bell, &one, sizeof one);
}

static void hold(const far_host *self)
{
    pthread_mutex_lock((pthread_mutex_t *)&self->lock);
}

static void release_host(const far_host *self)
{
    pthread_mutex_unlock((pthread_mutex_t *)&self->lock);
}

/* ---- what there is to tell --------------------------------------------------------------------------------------- */

/* Under the lock.  Without memory it is not reported: the others find out later, when the lease ends. */
static void add_happening(far_host *self, uint64_t worker, const char *text)
{
    happening *one = NULL;
    if (self->happenings >= HAPPENINGS_MOST || base_alloc(&one, 1, sizeof *one, "news of a host") < 0)
        return;
    if (base_copy_text(&one->text, text) < 0) {
        base_free(&one);
        return;
    }
    one->worker = worker;
    *self->last = one;
    self->last = &one->next;
    self->happenings++;
}

static void drop_happenings(happening *first)
{
    while (first) {
        happening *next = first->next;
        base_free(&first->text);
        base_free(&first);
        first = next;
    }
}

/* In the caller's thread. */
static void tell_happenings(far_host *self)
{
    hold(self);
    happening *first = self->first;
    self->first = NULL;
    self->last = &self->first;
    self->happenings = 0;
    release_host(self);
    for (happening *one = first; one; one = one->next) {
        if (one->worker != 0 && self->order->gone)
            self->order->gone(self->order->context, one->worker, one->text);
        else if (one->worker == 0 && self->order->say)
            self->order->say(self->order->context, one->text);
    }
    drop_happenings(first);
}

/* ---- what the agent tells ---------------------------------------------------------------------------------------- */

static void add_worker(far_host *self, uint64_t worker)
{
    if (self->worker_count == self->worker_room) {
        int64_t room = self->worker_room * 2 + 16;
        if (base_grow(&self->workers, (size_t)self->worker_room, (size_t)room, sizeof *self->workers,
                      "ids of workers") < 0)
            return;
        self->worker_room = room;
    }
    self->workers[self->worker_count++] = worker;
}

static void remove_worker(far_host *self, uint64_t worker)
{
    for (int64_t i = 0; i < self->worker_count; i++)
        if (self->workers[i] == worker) {
            self->workers[i] = self->workers[--self->worker_count];
            return;
        }
}

static void copy_fact(char *out, size_t size, const json_t *note, const char *name)
{
    snprintf(out, size, "%s", agent_note_text(note, name));
    for (char *c = out; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 127)
            *c = '?';
}

static void take_facts(far_facts *facts, const json_t *note)
{
    copy_fact(facts->host, sizeof facts->host, note, "host");
    copy_fact(facts->version, sizeof facts->version, note, "version");
    copy_fact(facts->kernel, sizeof facts->kernel, note, "kernel");
    copy_fact(facts->gpu, sizeof facts->gpu, note, "gpu");
    facts->cores = agent_note_count(note, "cores");
    facts->memory = agent_note_count(note, "memory");
    facts->reached = true;
}

static void take_probe(far_facts *facts, const json_t *note)
{
    facts->round_trip = agent_note_real(note, "round_trip");
    facts->to_host = agent_note_real(note, "to_host");
    facts->from_host = agent_note_real(note, "from_host");
    copy_fact(facts->why, sizeof facts->why, note, "why");
    facts->probed = true;
}

/* Under the lock. */
static void take_note(far_host *self, const json_t *note)
{
    const char *says = agent_note_text(note, "says");
    uint64_t worker = agent_note_worker(note);
    if (strcmp(says, "facts") == 0) {
        take_facts(&self->facts, note);
    } else if (strcmp(says, "started") == 0 && worker != 0) {
        add_worker(self, worker);
    } else if (strcmp(says, "gone") == 0 && worker != 0) {
        remove_worker(self, worker);
        add_happening(self, worker, agent_note_text(note, "why"));
    } else if (strcmp(says, "running") == 0) {
        int64_t count = agent_note_count(note, "count");
        self->running = count > 0 && count <= LAUNCH_WORKERS_MOST ? count : 0;
        if (self->running == 0)
            self->worker_count = 0;
    } else if (strcmp(says, "failed") == 0) {
        self->crew_failed = true;
        snprintf(self->closed_why, sizeof self->closed_why, "%.255s", agent_note_text(note, "why"));
    } else if (strcmp(says, "probed") == 0) {
        take_probe(&self->facts, note);
    }
}

static void on_note(void *context, const char *text)
{
    far_host *self = context;
    json_t *note = agent_note_read(text);
    if (!note)
        return;
    hold(self);
    take_note(self, note);
    release_host(self);
    json_decref(note);
    ring_host(self);
}

static void on_closed(void *context, const char *why)
{
    far_host *self = context;
    hold(self);
    if (!self->closed && !self->crew_failed)
        snprintf(self->closed_why, sizeof self->closed_why, "%.255s", why);
    self->closed = true;
    release_host(self);
    ring_host(self);
}

/* ---- serving it -------------------------------------------------------------------------------------------------- */

/* Sleeps until someone rings or the time is up. */
static void sleep_until_rung(far_host *self, double seconds)
{
    struct pollfd wanted = {.fd = self->bell, .events = POLLIN};
    uint64_t rung;
    if (poll(&wanted, 1, (int)(seconds * 1000) + 1) > 0)
        (void)!read(self->bell, &rung, sizeof rung);
}

static int tell_server(void *link, const char *text)
{
    return pipe_server_tell(link, text);
}

static int send_to_agent(far_host *self, json_t *note)
{
    return agent_note_tell(note, tell_server, self->server);
}

static int tell_start(far_host *self, int64_t count)
{
    const launch_order *order = self->order;
    return send_to_agent(self, json_pack("{s:s,s:s,s:s,s:s,s:s,s:s,s:I,s:I,s:I,s:b,s:I,s:I,s:b}", "says", "start",
                                         "job", order->id, "spec", order->spec, "key",
                                         order->task_key ? order->task_key : "", "kernel", order->kernel, "device",
                                         order->device ? order->device : "auto", "threads", (json_int_t)order->threads,
                                         "memory", (json_int_t)order->memory, "helpers", (json_int_t)order->helpers,
                                         "led", order->led, "first", (json_int_t)self->options.first_slot, "count",
                                         (json_int_t)count, "data", order->data != NULL));
}

/* Which requests the agent has been told so far. */
typedef struct told {
    bool started, left;
    int64_t count, progress;
} told;

static int tell_requests(far_host *self, const requests *requests, told *told)
{
    int status = SHOAL_OK;
    if (!told->started && self->order->id) {
        status = tell_start(self, requests->leave ? 0 : requests->count);
        told->started = true;
        told->count = requests->count;
    }
    if (status == SHOAL_OK && told->started && told->count != requests->count) {
        status = send_to_agent(self, json_pack("{s:s,s:I}", "says", "scale", "count", (json_int_t)requests->count));
        told->count = requests->count;
    }
    if (status == SHOAL_OK && requests->leave && !told->left) {
        status = send_to_agent(self, json_pack("{s:s}", "says", "leave"));
        told->left = true;
    }
    if (status == SHOAL_OK && requests->progress) {
        status = send_to_agent(self, json_pack("{s:s}", "says", "progress"));
        told->progress = base_now();
    }
    if (status == SHOAL_OK && requests->probe[0])
        status =
            send_to_agent(self, json_pack("{s:s,s:o}", "says", "probe", "key", agent_note_string(requests->probe)));
    return status;
}

/* Takes the current requests.  Progress is sent at most once a second: rounds may be much shorter. */
static requests take_requests(far_host *self, const told *told)
{
    hold(self);
    requests now = self->requests;
    if (now.progress && base_now() < base_time_after(told->progress, PROGRESS_EVERY))
        now.progress = false;
    else
        self->requests.progress = false;
    self->requests.probe[0] = '\0';
    release_host(self);
    return now;
}

/* A failure, whose sentence is kept, that no retry will fix. */
static int fail_lasting(far_host *self, const char *why)
{
    return shoal_fail(SHOAL_INVALID, "%s: %s", self->name, why);
}

/* The state of the link: SHOAL_OK while it is up. */
static int look_at_link(far_host *self, far_command *command, const far_start_options *options, int64_t greeting_until)
{
    char why[256], version[24];
    hold(self);
    bool closed = self->closed, failed = self->crew_failed, reached = self->facts.reached;
    snprintf(why, sizeof why, "%s", self->closed_why);
    snprintf(version, sizeof version, "%s", self->facts.version);
    release_host(self);
    if (failed)
        return fail_lasting(self, why);
    if (reached && strcmp(version, SHOAL_VERSION) != 0) {
        snprintf(why, sizeof why, "version %s would run there, but this is " SHOAL_VERSION, version);
        return fail_lasting(self, why);
    }
    if (!reached && (closed || base_now() > greeting_until)) {
        pipe_server_junk(self->server, command->junk, sizeof command->junk - 1);
        command->junk_size = strlen(command->junk);
        return far_command_fail(command, "the agent does not start there", closed ? NULL : "it says nothing", options);
    }
    return closed ? far_command_fail(command, "the link broke", *why ? why : NULL, options) : SHOAL_OK;
}

/* What the command says while all is well does not grow without limit. */
static void trim_said(const far_command *command)
{
    if (command->said >= 0 && lseek(command->said, 0, SEEK_END) > SAID_MOST)
        (void)!ftruncate(command->said, 0);
}

static void note_served(far_host *self, const far_command *command)
{
    char line[512];
    hold(self);
    bool again = self->failures > 0 || self->reached;
    self->reached = self->serving = true;
    snprintf(self->facts.system, sizeof self->facts.system, "%s", command->system);
    snprintf(self->facts.folder, sizeof self->facts.folder, "%s", command->folder);
    self->facts.cached = command->cached;
    if (again) {
        snprintf(line, sizeof line, "%s: reached again", self->name);
        add_happening(self, 0, line);
    }
    release_host(self);
}

/* Serves the agent until the link ends, or until told to stop. */
static int serve_agent(far_host *self, far_command *command, const far_start_options *options)
{
    const int64_t greeting_until = base_time_after(base_now(), options->patience);
    told told = {0};
    bool served = false;
    far_start_options passing = *options;
    passing.judge = NULL; /* it did answer, so a failure from now on may be temporary */
    for (;;) {
        int status = look_at_link(self, command, &passing, greeting_until);
        if (status < 0)
            return status;
        if (atomic_load(&self->stop))
            return shoal_fail(SHOAL_STOPPED, "%s: stopped", self->name);
        hold(self);
        bool reached = self->facts.reached;
        release_host(self);
        if (reached && !served) {
            served = true;
            note_served(self, command);
        }
        if (served) {
            requests now = take_requests(self, &told);
            (void)tell_requests(self, &now, &told); /* a dead link reports itself */
        }
        trim_said(command);
        sleep_until_rung(self, LOOK_EVERY);
    }
}

/* ---- trying again and again -------------------------------------------------------------------------------------- */

/* Those known to run are out of reach, and end there by themselves. */
static void forget_workers(far_host *self)
{
    char why[256];
    snprintf(why, sizeof why, "lost: the link to %.200s broke", self->name);
    hold(self);
    for (int64_t i = 0; i < self->worker_count; i++)
        add_happening(self, self->workers[i], why);
    self->worker_count = self->running = 0;
    self->serving = false;
    release_host(self);
}

static int serve_command(far_host *self, far_command *command, const far_start_options *options)
{
    const pipe_server_options link = {
        .store = self->order->store,
        .data = self->order->data,
        .job = self->order->id, /* a host sees nothing else of the store; one that is only checked has no job */
        .data_key = self->order->data_key,
        .shared = self->order->shared,
        .nonce = command->nonce,
        .events = {.heard = on_note, .closed = on_closed, .context = self},
    };
    hold(self);
    self->closed = self->crew_failed = false;
    self->closed_why[0] = '\0';
    self->facts = (far_facts){0};
    release_host(self);
    int in = command->in, out = command->out;
    command->in = command->out = -1;
    int status = pipe_server_new(&self->server, in, out, &link);
    if (status == SHOAL_OK)
        status = serve_agent(self, command, options);
    pipe_server_free(&self->server);
    return status;
}

/* Runs the command once, to its end.  Never SHOAL_OK. */
static int attempt(far_host *self, bool first)
{
    char why[FAR_REASON_BYTES];
    far_command command = {.in = -1, .out = -1, .said = -1};
    far_start_options options = {
        .name = self->name,
        .words = (const char *const *)(!first && self->words_again ? self->words_again : self->words),
        .program = self->order->program,
        .patience = self->options.patience > 0 ? self->options.patience : PATIENCE,
        .no_libraries = self->no_libraries,
        .gate = self->options.gate,
        .stop = &self->stop,
        .bell = self->bell,
        .judge = self->options.judge,
    };
    int status = far_start(&command, &options);
    if (status == SHOAL_ABSENT && !self->no_libraries) { /* another build may start there */
        snprintf(why, sizeof why, "%s", shoal_error());
        options.no_libraries = self->no_libraries = true;
        status = far_start(&command, &options);
        if (status == SHOAL_ABSENT)
            status = shoal_fail(SHOAL_INVALID, "%s", why);
    }
    if (status < 0)
        return status;
    status = serve_command(self, &command, &options);
    snprintf(why, sizeof why, "%s", shoal_error());
    forget_workers(self);
    (void)far_command_end(&command, status == SHOAL_STOPPED ? END_GRACE : 0);
    return shoal_fail(status, "%s", why);
}

static double pause_after(int failures)
{
    double pause = ldexp(1, failures - 1 < 10 ? failures - 1 : 10);
    return pause < LONGEST_PAUSE ? pause : LONGEST_PAUSE;
}

/* Reports a failure, and whether there will be another try. */
static bool note_failure(far_host *self, int status, double served)
{
    char line[FAR_REASON_BYTES + 32];
    hold(self);
    bool lasting = status != SHOAL_AGAIN && status != SHOAL_SYSTEM && status != SHOAL_MEMORY;
    if (served > STEADY)
        self->failures = 0;
    self->failures++;
    snprintf(self->reason, sizeof self->reason, "%s", shoal_error());
    self->given_up = lasting;
    if (!lasting && self->failures == 1) {
        snprintf(line, sizeof line, "%s; trying again", self->reason);
        add_happening(self, 0, line);
    }
    release_host(self);
    return !lasting;
}

static void run_host(void *context)
{
    far_host *self = context;
    for (bool first = true; !atomic_load(&self->stop); first = false) {
        int64_t began = base_now();
        int status = attempt(self, first);
        if (atomic_load(&self->stop) || !note_failure(self, status, -base_seconds_until(began)))
            break;
        int64_t until = base_time_after(base_now(), pause_after(self->failures));
        while (!atomic_load(&self->stop) && base_now() < until)
            sleep_until_rung(self, base_seconds_until(until));
    }
    hold(self);
    self->over = true;
    release_host(self);
}

/* ---- callers ----------------------------------------------------------------------------------------------------- */

static void free_words(char ***words)
{
    for (char **word = *words; word && *word; word++)
        base_free(word);
    base_free(words);
}

static int copy_words(char ***out, const char *const *words)
{
    int count = 0;
    while (words && words[count])
        count++;
    if (count == 0)
        return SHOAL_OK;
    int status = base_alloc(out, (size_t)count + 1, sizeof **out, "the command");
    for (int i = 0; i < count && status == SHOAL_OK; i++)
        status = base_copy_text(&(*out)[i], words[i]);
    return status;
}

int far_host_new(far_host **out, const far_options *options)
{
    far_host *self = NULL;
    *out = NULL;
    int status = base_alloc(&self, 1, sizeof *self, "a host");
    if (status < 0)
        return status;
    self->order = options->order;
    self->options = *options;
    self->requests.count = options->count;
    self->last = &self->first;
    pthread_mutex_init(&self->lock, NULL);
    self->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (self->bell < 0)
        status = shoal_fail_errno(SHOAL_SYSTEM, errno, "can't look after a host");
    if (status == SHOAL_OK)
        status = base_copy_text(&self->name, options->name);
    if (status == SHOAL_OK)
        status = copy_words(&self->words, options->words);
    if (status == SHOAL_OK)
        status = copy_words(&self->words_again, options->words_again);
    if (status == SHOAL_OK)
        status = base_thread_start(&self->thread, run_host, self);
    if (status < 0) {
        far_host_free(&self);
        return status;
    }
    *out = self;
    return SHOAL_OK;
}

int far_host_tick(far_host *self)
{
    char reason[FAR_REASON_BYTES];
    tell_happenings(self);
    hold(self);
    int tries = self->options.tries > 0 ? self->options.tries : self->reached ? INT_MAX : TRIES_UNREACHED;
    bool hopeless = self->given_up || (!self->serving && self->failures >= tries);
    snprintf(reason, sizeof reason, "%s", self->reason);
    release_host(self);
    return hopeless ? shoal_fail(SHOAL_INVALID, "%s", reason) : SHOAL_OK;
}

/* Without ringing: rounds may be short, and once a second is often enough. */
void far_host_progress(far_host *self)
{
    hold(self);
    self->requests.progress = true;
    release_host(self);
}

void far_host_scale(far_host *self, int64_t count)
{
    hold(self);
    self->requests.count = count;
    release_host(self);
    ring_host(self);
}

int64_t far_host_running(const far_host *self)
{
    hold(self);
    int64_t running = self->running;
    release_host(self);
    return running;
}

int64_t far_host_wanted(const far_host *self)
{
    hold(self);
    int64_t wanted = self->requests.count;
    release_host(self);
    return wanted;
}

/* What is on its way is not waited for. */
static void leave_host(far_host *self)
{
    hold(self);
    self->requests.leave = true;
    bool serving = self->serving;
    release_host(self);
    if (!serving)
        atomic_store(&self->stop, true);
}

void far_host_tell_leave(far_host *self)
{
    leave_host(self);
    ring_host(self);
}

bool far_host_is_over(far_host *self)
{
    hold(self);
    bool serving = self->serving;
    bool over = self->over || !serving || self->running == 0;
    release_host(self);
    if (!serving) {
        atomic_store(&self->stop, true);
        ring_host(self);
    }
    tell_happenings(self);
    return over;
}

void far_host_stop(far_host *self)
{
    atomic_store(&self->stop, true);
    ring_host(self);
}

void far_host_free(far_host **host)
{
    far_host *self = *host;
    if (!self)
        return;
    if (self->thread) {
        far_host_stop(self);
        base_thread_join(&self->thread);
    }
    if (self->bell >= 0)
        close(self->bell);
    drop_happenings(self->first);
    pthread_mutex_destroy(&self->lock);
    free_words(&self->words);
    free_words(&self->words_again);
    base_free(&self->workers);
    base_free(&self->name);
    base_free(host);
}

void far_host_facts(const far_host *self, far_facts *out)
{
    hold(self);
    *out = self->facts;
    release_host(self);
}

void far_host_probe(far_host *self, const char *key)
{
    hold(self);
    snprintf(self->requests.probe, sizeof self->requests.probe, "%s", key);
    release_host(self);
    ring_host(self);
}

/* ---- the gate ---------------------------------------------------------------------------------------------------- */

struct far_gate {
    atomic_int free;
};

int far_gate_new(far_gate **out, int most)
{
    int status = base_alloc(out, 1, sizeof **out, "the hosts");
    if (status == SHOAL_OK)
        atomic_init(&(*out)->free, most);
    return status;
}

void far_gate_free(far_gate **gate)
{
    base_free(gate);
}

int far_gate_pass(far_gate *gate, const atomic_bool *stop, int bell)
{
    struct pollfd wanted = {.fd = bell, .events = POLLIN};
    while (gate && atomic_fetch_sub(&gate->free, 1) <= 0) {
        uint64_t rung;
        atomic_fetch_add(&gate->free, 1);
        if (poll(&wanted, 1, 20) > 0)
            (void)!read(bell, &rung, sizeof rung);
        if (atomic_load(stop))
            return shoal_fail(SHOAL_STOPPED, "stopped");
    }
    return SHOAL_OK;
}

void far_gate_leave(far_gate *gate)
{
    if (gate)
        atomic_fetch_add(&gate->free, 1);
}
