/* The agent of another machine.  See agent.h.
 *
 * One thread does everything: it waits for its bell, for signals, and for the time to look at the workers again.  Notes
 * arrive on threads of the link, which only put them into a list and ring the bell. */
#include "launch/agent.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <shoal/error.h>
#include <shoal/store.h>

#include "base/memory.h"
#include "base/pool.h"
#include "base/world.h"
#include "launch/agent_note.h"
#include "launch/far_host.h"

enum { LOOK_MS = 100, NOTES_MOST = 10000, PROBE_TRIES = 20, PARENT_MOST = 70, STALE_SECONDS = 60 };
static const char folder_name[] = "shoal-agent-";
static const double LEAVE_SECONDS = 1, PROBE_SECONDS = 60;

typedef struct heard_note {
    struct heard_note *next;
    char *text;
} heard_note;

typedef struct agent {
    const agent_options *options;
    int bell, signals;
    pthread_mutex_t lock; /* of the list and of `closed` */
    heard_note *first, **last;
    int64_t notes;
    bool closed;
    char why[256];

    char folder[128], socket[160], store_url[176], data_url[200];
    pipe_hub *hub;
    launch_order order; /* the parts that workers here need */
    char id[128], spec[80], kernel[32], device[32], task_key[80];
    int64_t first_slot;
    bool has_data, failed;
    launch_crew *crew;
    int64_t wanted;
    int64_t threads, memory, running; /* of each worker, both; that was last told */
} agent;

/* ---- hearing ----------------------------------------------------------------------------------------------------- */

static void ring_agent(const agent *self)
{
    const uint64_t one = 1;
    (void)!write(self->bell, &one, sizeof one);
}

static void on_note(void *context, const char *text)
{
    agent *self = context;
    heard_note *note = NULL;
    pthread_mutex_lock(&self->lock);
    if (self->notes < NOTES_MOST && base_alloc(&note, 1, sizeof *note, "a note") == SHOAL_OK) {
        if (base_copy_text(&note->text, text) == SHOAL_OK) {
            *self->last = note;
            self->last = &note->next;
            self->notes++;
        } else {
            base_free(&note);
        }
    }
    pthread_mutex_unlock(&self->lock);
    ring_agent(self);
}

static void on_closed(void *context, const char *why)
{
    agent *self = context;
    pthread_mutex_lock(&self->lock);
    self->closed = true;
    snprintf(self->why, sizeof self->why, "%s", why);
    pthread_mutex_unlock(&self->lock);
    ring_agent(self);
}

static bool is_closed(agent *self)
{
    pthread_mutex_lock(&self->lock);
    bool closed = self->closed;
    pthread_mutex_unlock(&self->lock);
    return closed;
}

/* ---- telling ----------------------------------------------------------------------------------------------------- */

static int tell_hub(void *link, const char *text)
{
    return pipe_hub_tell(link, text);
}

/* A dead link is reported by the link itself. */
static void send_to_starter(agent *self, json_t *note)
{
    (void)agent_note_tell(note, tell_hub, self->hub);
}

static void tell_facts(agent *self)
{
    char host[64] = "", gpu[96];
    (void)gethostname(host, sizeof host - 1);
    far_find_gpu(gpu, sizeof gpu);
    send_to_starter(self,
                    json_pack("{s:s,s:o,s:s,s:s,s:o,s:i,s:I}", "says", "facts", "host", agent_note_string(host),
                              "version", SHOAL_VERSION, "kernel", self->options->kernel, "gpu", agent_note_string(gpu),
                              "cores", base_cores(), "memory", (json_int_t)base_memory_total()));
}

static void tell_running(agent *self)
{
    int64_t running = self->crew ? launch_crew_running(self->crew) : 0;
    if (running == self->running)
        return;
    self->running = running;
    send_to_starter(self, json_pack("{s:s,s:I}", "says", "running", "count", (json_int_t)running));
}

static void tell_failed(agent *self)
{
    self->failed = true;
    send_to_starter(self, json_pack("{s:s,s:o}", "says", "failed", "why", agent_note_string(shoal_error())));
}

/* ---- workers ----------------------------------------------------------------------------------------------------- */

static void compose_worker(void *context, launch_arguments *out, int64_t slot, uint64_t worker)
{
    agent *self = context;
    launch_arguments_of(out, &self->order,
                        &(launch_worker){.id = worker,
                                         .slot = self->first_slot + slot,
                                         .threads = self->threads,
                                         .memory = self->memory,
                                         .store_url = self->store_url,
                                         .data_url = self->has_data ? self->data_url : NULL,
                                         .cache = self->options->cache,
                                         .parent = getpid()});
}

static void on_started(void *context, uint64_t worker)
{
    char id[24];
    snprintf(id, sizeof id, "%016llx", (unsigned long long)worker);
    send_to_starter(context, json_pack("{s:s,s:s}", "says", "started", "worker", id));
}

static void on_gone(void *context, uint64_t worker, const char *why)
{
    char id[24];
    snprintf(id, sizeof id, "%016llx", (unsigned long long)worker);
    send_to_starter(context, json_pack("{s:s,s:s,s:o}", "says", "gone", "worker", id, "why", agent_note_string(why)));
}

static void copy_text(char *out, size_t size, const json_t *note, const char *name)
{
    snprintf(out, size, "%s", agent_note_text(note, name));
}

static int64_t count_of(const json_t *note)
{
    int64_t count = agent_note_count(note, "count");
    return count < 0 ? 0 : count > LAUNCH_WORKERS_MOST ? LAUNCH_WORKERS_MOST : count;
}

static int start_crew(agent *self, const json_t *note)
{
    launch_crew_options options = {
        .arguments = compose_worker, .started = on_started, .gone = on_gone, .context = self};
    if (self->crew)
        return SHOAL_OK;
    copy_text(self->task_key, sizeof self->task_key, note, "key");
    options.task_key = self->task_key[0] ? self->task_key : NULL;
    if (options.task_key) /* neither dumps nor other programs of this user are to have it from this memory */
        (void)prctl(PR_SET_DUMPABLE, 0);
    copy_text(self->id, sizeof self->id, note, "job");
    copy_text(self->spec, sizeof self->spec, note, "spec");
    copy_text(self->kernel, sizeof self->kernel, note, "kernel");
    copy_text(self->device, sizeof self->device, note, "device");
    self->wanted = count_of(note);
    self->first_slot = agent_note_count(note, "first");
    self->has_data = json_is_true(json_object_get(note, "data"));
    self->order = (launch_order){.store_url = self->store_url,
                                 .id = self->id,
                                 .spec = self->spec,
                                 .kernel = self->kernel,
                                 .device = self->device,
                                 .task_key = options.task_key,
                                 .helpers = agent_note_count(note, "helpers"),
                                 .led = json_is_true(json_object_get(note, "led"))};
    self->threads = launch_threads_each(agent_note_count(note, "threads"), base_cores(), self->wanted);
    self->memory = launch_memory_each(agent_note_count(note, "memory"), self->wanted);
    return launch_crew_new(&self->crew, self->wanted, &options);
}

/* ---- measuring --------------------------------------------------------------------------------------------------- */

/* The fastest of several empty requests. */
static int measure_round_trip(double *out, shoal_store *store)
{
    int status = SHOAL_OK;
    *out = 1e9;
    for (int i = 0; i < PROBE_TRIES && status == SHOAL_OK; i++) {
        shoal_blob blob = {0};
        int64_t began = base_now();
        status = shoal_store_get_range(store, "probe/nothing", 0, 1, NULL, NULL, &blob, shoal_after(PROBE_SECONDS));
        double seconds = -base_seconds_until(began);
        status = status == SHOAL_ABSENT ? SHOAL_OK : status;
        *out = seconds < *out ? seconds : *out;
        shoal_blob_release(&blob);
    }
    return status;
}

static int measure_link(json_t **out, const char *url, const char *key)
{
    shoal_store *store = NULL;
    shoal_blob blob = {0};
    char back[300];
    double round_trip = 0, to_host = 0, from_host = 0;
    int status = shoal_store_open(&store, url, NULL, shoal_after(PROBE_SECONDS));
    if (status == SHOAL_OK)
        status = measure_round_trip(&round_trip, store);
    int64_t began = base_now();
    if (status == SHOAL_OK)
        status = shoal_store_get(store, key, &blob, shoal_after(PROBE_SECONDS));
    to_host = -base_seconds_until(began);
    snprintf(back, sizeof back, "%s/back", key);
    began = base_now();
    if (status == SHOAL_OK)
        status = shoal_store_put(store, back, blob.data, blob.size, NULL, NULL, shoal_after(PROBE_SECONDS));
    from_host = -base_seconds_until(began);
    if (status == SHOAL_OK)
        *out = json_pack("{s:s,s:f,s:f,s:f}", "says", "probed", "round_trip", round_trip, "to_host",
                         (double)blob.size / to_host, "from_host", (double)blob.size / from_host);
    shoal_blob_release(&blob);
    shoal_store_close(&store);
    return status;
}

/* Nothing else is done meanwhile: a starter that asks for this has no workers here. */
static void probe_host(agent *self, const char *key)
{
    json_t *note = NULL;
    if (measure_link(&note, self->store_url, key) < 0)
        note = json_pack("{s:s,s:o}", "says", "probed", "why", agent_note_string(shoal_error()));
    send_to_starter(self, note);
}

/* ---- the loop ---------------------------------------------------------------------------------------------------- */

static void obey_note(agent *self, const json_t *note)
{
    const char *says = agent_note_text(note, "says");
    int status = SHOAL_OK;
    if (strcmp(says, "start") == 0) {
        status = start_crew(self, note);
    } else if (strcmp(says, "scale") == 0 && self->crew) {
        status = launch_crew_scale(self->crew, count_of(note));
    } else if (strcmp(says, "progress") == 0 && self->crew) {
        launch_crew_progress(self->crew);
    } else if (strcmp(says, "leave") == 0 && self->crew) {
        (void)launch_crew_scale(self->crew, 0); /* so that none is started again */
        launch_crew_tell_leave(self->crew);
    } else if (strcmp(says, "probe") == 0) {
        probe_host(self, agent_note_text(note, "key"));
    }
    if (status < 0)
        tell_failed(self);
}

static void obey_all(agent *self)
{
    pthread_mutex_lock(&self->lock);
    heard_note *first = self->first;
    self->first = NULL;
    self->last = &self->first;
    self->notes = 0;
    pthread_mutex_unlock(&self->lock);
    while (first) {
        heard_note *next = first->next;
        json_t *note = agent_note_read(first->text);
        if (note)
            obey_note(self, note);
        json_decref(note);
        base_free(&first->text);
        base_free(&first);
        first = next;
    }
}

/* Whether a received signal tells the agent to end. */
static bool is_told_to_end(agent *self)
{
    struct signalfd_siginfo signal;
    bool end = false;
    while (read(self->signals, &signal, sizeof signal) == sizeof signal)
        end = end || signal.ssi_signo != SIGCHLD;
    return end;
}

static int serve_starter(agent *self)
{
    while (!is_closed(self)) {
        struct pollfd wanted[2] = {{.fd = self->bell, .events = POLLIN}, {.fd = self->signals, .events = POLLIN}};
        uint64_t rung;
        (void)poll(wanted, 2, LOOK_MS);
        if (is_told_to_end(self))
            return shoal_fail(SHOAL_STOPPED, "a signal told the agent to end");
        (void)!read(self->bell, &rung, sizeof rung);
        obey_all(self);
        if (self->crew && launch_crew_tick(self->crew) < 0 && !self->failed)
            tell_failed(self);
        tell_running(self);
    }
    return SHOAL_OK;
}

static void end_crew(agent *self)
{
    if (!self->crew)
        return;
    launch_crew_tell_leave(self->crew);
    if (!launch_crew_wait(self->crew, LEAVE_SECONDS))
        launch_crew_end(self->crew);
    launch_crew_free(&self->crew);
}

/* ---- its place --------------------------------------------------------------------------------------------------- */

/* Whether some process serves the socket. */
static bool is_served(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%.107s", path);
    bool refused =
        probe >= 0 && connect(probe, (struct sockaddr *)&address, sizeof address) < 0 && errno == ECONNREFUSED;
    if (probe >= 0)
        close(probe);
    return !refused;
}

/* Removes what killed agents of this user left behind.  One that has just started may not be listening yet. */
static void sweep_folders(const char *parent)
{
    char folder[128], path[160];
    struct dirent *entry;
    struct stat about;
    DIR *entries = opendir(parent);
    while (entries && (entry = readdir(entries)) != NULL) {
        if (strncmp(entry->d_name, folder_name, strlen(folder_name)) != 0 || strlen(entry->d_name) > 40)
            continue;
        snprintf(folder, sizeof folder, "%.80s/%.40s", parent, entry->d_name);
        snprintf(path, sizeof path, "%s/s", folder);
        bool old = lstat(path, &about) == 0 && S_ISSOCK(about.st_mode) && about.st_uid == geteuid() &&
                   time(NULL) - about.st_mtime > STALE_SECONDS;
        if (old && !is_served(path) && unlink(path) == 0)
            (void)rmdir(folder);
    }
    if (entries)
        closedir(entries);
}

/* A folder for the socket that nobody else can enter; its path must be short enough for a socket. */
static int make_folder(agent *self)
{
    const char *candidates[] = {getenv("XDG_RUNTIME_DIR"), getenv("TMPDIR"), "/tmp", "/dev/shm", self->options->cache};
    for (size_t i = 0; i < sizeof candidates / sizeof *candidates; i++) {
        const char *parent = candidates[i];
        if (!parent || parent[0] != '/' || strlen(parent) > PARENT_MOST)
            continue;
        snprintf(self->folder, sizeof self->folder, "%s/%sXXXXXX", parent, folder_name);
        if (mkdtemp(self->folder)) {
            snprintf(self->socket, sizeof self->socket, "%s/s", self->folder);
            snprintf(self->store_url, sizeof self->store_url, "pipe:%s", self->socket);
            snprintf(self->data_url, sizeof self->data_url, "pipe:%s?store=data", self->socket);
            sweep_folders(parent);
            return SHOAL_OK;
        }
    }
    self->folder[0] = '\0';
    return shoal_fail_errno(SHOAL_SYSTEM, errno, "there is no folder for a socket");
}

static void remove_folder(agent *self)
{
    if (!self->folder[0])
        return;
    (void)unlink(self->socket);
    (void)rmdir(self->folder);
}

static int open_descriptors(agent *self)
{
    sigset_t wanted;
    sigemptyset(&wanted);
    sigaddset(&wanted, SIGTERM);
    sigaddset(&wanted, SIGINT);
    sigaddset(&wanted, SIGHUP);
    sigaddset(&wanted, SIGCHLD);               /* a worker has ended */
    pthread_sigmask(SIG_BLOCK, &wanted, NULL); /* before any thread runs, so that all have them blocked */
    signal(SIGPIPE, SIG_IGN);
    self->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    self->signals = signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
    return self->bell >= 0 && self->signals >= 0 ? SHOAL_OK
                                                 : shoal_fail_errno(SHOAL_SYSTEM, errno, "the agent can't start");
}

static void release_agent(agent *self)
{
    while (self->first) {
        heard_note *next = self->first->next;
        base_free(&self->first->text);
        base_free(&self->first);
        self->first = next;
    }
    if (self->bell >= 0)
        close(self->bell);
    if (self->signals >= 0)
        close(self->signals);
    pthread_mutex_destroy(&self->lock);
}

int agent_run(const agent_options *options)
{
    agent self = {.options = options, .bell = -1, .signals = -1};
    self.last = &self.first;
    pthread_mutex_init(&self.lock, NULL);
    int status = open_descriptors(&self);
    if (status == SHOAL_OK)
        status = make_folder(&self);
    if (status == SHOAL_OK)
        status = pipe_hub_new(&self.hub, options->in, options->out,
                              &(pipe_hub_options){.socket = self.socket,
                                                  .nonce = options->nonce,
                                                  .events = {.heard = on_note, .closed = on_closed, .context = &self}});
    if (status == SHOAL_OK) {
        tell_facts(&self);
        status = serve_starter(&self);
    }
    end_crew(&self);
    pipe_hub_free(&self.hub);
    remove_folder(&self);
    release_agent(&self);
    return status;
}
