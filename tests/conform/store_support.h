/* What the conformance tests of stores share: the store under test, racers (threads or processes), and how much is
 * done.
 *
 * A racer is one role played by many at once, each with a store handle of its own: threads of this process and, where a
 * store is shared between processes, processes that are this program again.  All open their handle, say that they are
 * ready, and start when the last one is.  What they saw they write as lines, which the test then reads. */
#ifndef CONFORM_STORE_SUPPORT_H
#define CONFORM_STORE_SUPPORT_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <shoal/store.h>

extern char **environ;

enum { URL_MOST = 2048, RACERS_MOST = 32, QUEUES_MOST = 64, LINE_MOST = 256 };

/* The store under test. */
typedef struct target {
    const char *url;                     /* as it was given */
    int seed;                            /* of the faults that every handle has; 0 for none */
    double budget;                       /* seconds that all of it should take */
    double latency;                      /* seconds of a small request, measured */
    char prefix[48];                     /* below which all of it happens */
    bool shared;                         /* between processes */
    shoal_store *keeper;                 /* keeps mem: alive, and is without faults */
    char queues[QUEUES_MOST][LINE_MOST]; /* to be dropped at the end */
    int queue_count;
    atomic_int handles; /* opened so far, so that each has its own seed */
} target;

static target here;
static const char *program;

/* ---- checking ---------------------------------------------------------------------------------------------------- */

#define SOON shoal_after(300)

#define succeed(call)                                                                                                  \
    do {                                                                                                               \
        if ((call) < 0)                                                                                                \
            fail_msg("%s: %s", #call, shoal_error());                                                                  \
    } while (0)

#define expect(status, call)                                                                                           \
    do {                                                                                                               \
        int got_ = (call);                                                                                             \
        if (got_ != (status))                                                                                          \
            fail_msg("%s: gave %d, not %s: %s", #call, got_, #status, shoal_error());                                  \
    } while (0)

/* How often to do something that takes this many requests: `full` times where that is quick, fewer where it would take
 * more than a thirtieth of the budget. */
static int amount(int full, int least, double requests)
{
    double affordable = here.budget / 30 / (here.latency * requests);
    return affordable >= full ? full : affordable <= least ? least : (int)affordable;
}

/* Bytes that are all different from what stands elsewhere. */
static void fill(void *out, size_t size, uint64_t salt)
{
    unsigned char *bytes = out;
    for (size_t at = 0; at < size; at += 8) {
        uint64_t word = (salt + at + 1) * 0x9e3779b97f4a7c15;
        word ^= word >> 29;
        memcpy(bytes + at, &word, size - at < 8 ? size - at : 8);
    }
}

static uint64_t random_word(void)
{
    static _Thread_local uint64_t state;
    if (state == 0)
        state = (uint64_t)shoal_now() ^ (uint64_t)(uintptr_t)&state ^ (uint64_t)getpid() << 32;
    state = state * 6364136223846793005 + 1442695040888963407;
    return state >> 33;
}

/* ---- handles ----------------------------------------------------------------------------------------------------- */

#define COMMON_FAULTS "before:0.03,after:0.03,cut:0.03,throttle:0.02/20ms,delay:0.05/4ms"

/* The URL of the store under test below its prefix and `below`, with these faults or, when NULL, without any. */
static void make_url(char out[URL_MOST], const char *below, const char *faults, int seed)
{
    size_t path = strcspn(here.url, "?");
    bool query = here.url[path] == '?';
    bool slash = path > 0 && (here.url[path - 1] == '/' || here.url[path - 1] == ':');
    int length = snprintf(out, URL_MOST, "%.*s%s%s%s%s%s", (int)path, here.url, slash ? "" : "/", here.prefix,
                          *below ? "/" : "", below, here.url + path);
    if (faults)
        snprintf(out + length, URL_MOST - (size_t)length, "%cfaults=seed:%d,%s", query ? '&' : '?', seed, faults);
}

static shoal_store *open_url(const char *url)
{
    shoal_store *store = NULL;
    if (shoal_store_open(&store, url, &(shoal_store_options){.create = true}, SOON) < 0)
        fail_msg("%s: %s", url, shoal_error());
    return store;
}

/* A handle with exactly these faults; NULL for none. */
static shoal_store *open_with(const char *faults)
{
    char url[URL_MOST];
    make_url(url, "", faults, here.seed * 1000 + atomic_fetch_add(&here.handles, 1));
    return open_url(url);
}

/* The faults a handle has by default, and these more when there are any. */
static const char *usual_faults(const char *more)
{
    static _Thread_local char text[512];
    if (here.seed == 0)
        return NULL;
    snprintf(text, sizeof text, "%s%s%s", COMMON_FAULTS, more ? "," : "", more ? more : "");
    return text;
}

static shoal_store *open_usual(void)
{
    return open_with(usual_faults(NULL));
}

/* A handle that lists few keys at a time. */
static shoal_store *open_small_pages(int keys)
{
    char url[URL_MOST];
    make_url(url, "", usual_faults(NULL), here.seed * 1000 + atomic_fetch_add(&here.handles, 1));
    size_t length = strlen(url);
    snprintf(url + length, sizeof url - length, "%cpage=%d", strchr(url, '?') ? '&' : '?', keys);
    return open_url(url);
}

/* A queue's name that is dropped after the tests. */
static const char *use_queue(const char *name)
{
    if (here.queue_count == QUEUES_MOST)
        fail_msg("too many queues");
    snprintf(here.queues[here.queue_count++], LINE_MOST, "%s", name);
    return name;
}

/* ---- racers ------------------------------------------------------------------------------------------------------ */

typedef int race_role(shoal_store *store, int index, const char *argument, FILE *out);

typedef struct role {
    const char *name;
    race_role *run;
} role;

static const role *find_role(const char *name);

typedef struct racer {
    const struct race *race;
    int index;
    FILE *out;
    pthread_t thread;
    pid_t process;
    char url[URL_MOST];
    bool failed;
} racer;

typedef struct race {
    const char *role, *argument;
    int count;
    bool processes;
    int ready[2], go[2];
    racer racers[RACERS_MOST];
} race;

enum { FD_OUT = 3, FD_READY = 4, FD_GO = 5 };

/* Opens the store, waits for the start, plays the role.  Failures are lines that start with "error". */
static int play(const char *name, const char *url, int index, const char *argument, FILE *out, int ready, int go)
{
    shoal_store *store = NULL;
    char nothing;
    int status = shoal_store_open(&store, url, NULL, SOON);
    if (write(ready, "", 1) != 1)
        status = SHOAL_SYSTEM;
    while (read(go, &nothing, 1) < 0 && errno == EINTR)
        ;
    if (status == SHOAL_OK)
        status = find_role(name)->run(store, index, argument, out);
    if (status < 0)
        fprintf(out, "error %d %.200s\n", status, shoal_error());
    shoal_store_close(&store);
    fflush(out);
    return status;
}

static void *play_in_thread(void *context)
{
    racer *self = context;
    const race *race = self->race;
    self->failed = play(race->role, self->url, self->index, race->argument, self->out, race->ready[1], race->go[0]) < 0;
    return NULL;
}

static void play_in_process(racer *self)
{
    const race *race = self->race;
    char index[16];
    snprintf(index, sizeof index, "%d", self->index);
    char *words[] = {(char *)program, "--racer", (char *)race->role, self->url, index, (char *)race->argument, NULL};
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, fileno(self->out), FD_OUT);
    posix_spawn_file_actions_adddup2(&files, race->ready[1], FD_READY);
    posix_spawn_file_actions_adddup2(&files, race->go[0], FD_GO);
    int error = posix_spawn(&self->process, program, &files, NULL, words, environ);
    posix_spawn_file_actions_destroy(&files);
    if (error)
        fail_msg("%s can't be started: %s", program, strerror(error));
}

/* Descriptors above those that a racer's process has at fixed places. */
static int high(int descriptor)
{
    int copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 10);
    close(descriptor);
    return copy;
}

/* Makes the racers ready and starts them all. */
static race *race_start(const char *role, int count, bool processes, const char *faults, const char *argument)
{
    race *self = calloc(1, sizeof *self);
    assert_non_null(self);
    *self = (race){.role = role, .argument = argument, .count = count, .processes = processes};
    assert_true(pipe2(self->ready, O_CLOEXEC) == 0 && pipe2(self->go, O_CLOEXEC) == 0);
    for (int i = 0; i < 2; i++) {
        self->ready[i] = high(self->ready[i]);
        self->go[i] = high(self->go[i]);
    }
    for (int i = 0; i < count; i++) {
        racer *each = &self->racers[i];
        each->race = self;
        each->index = i;
        make_url(each->url, "", faults, here.seed * 1000 + atomic_fetch_add(&here.handles, 1));
        FILE *low = tmpfile();
        assert_non_null(low);
        each->out = fdopen(fcntl(fileno(low), F_DUPFD_CLOEXEC, 10), "w+");
        fclose(low);
        assert_non_null(each->out);
        if (processes)
            play_in_process(each);
        else
            assert_int_equal(pthread_create(&each->thread, NULL, play_in_thread, each), 0);
    }
    for (int i = 0; i < count; i++) {
        char byte;
        struct pollfd waiting = {.fd = self->ready[0], .events = POLLIN};
        assert_int_equal(poll(&waiting, 1, 60000), 1);
        assert_int_equal(read(self->ready[0], &byte, 1), 1);
    }
    close(self->go[1]);
    return self;
}

/* Waits for the end; calls `see` with every line. */
static void race_join(race *self, void (*see)(void *context, int index, const char *line), void *context)
{
    char line[LINE_MOST], trouble[LINE_MOST] = "";
    for (int i = 0; i < self->count; i++) {
        int status = 0;
        if (self->processes) {
            while (waitpid(self->racers[i].process, &status, 0) < 0 && errno == EINTR)
                ;
            self->racers[i].failed = status != 0;
        } else {
            pthread_join(self->racers[i].thread, NULL);
        }
    }
    for (int i = 0; i < self->count; i++) {
        rewind(self->racers[i].out);
        while (fgets(line, sizeof line, self->racers[i].out)) {
            line[strcspn(line, "\n")] = '\0';
            if (strncmp(line, "error", 5) == 0)
                memcpy(trouble, line, sizeof trouble);
            else if (see)
                see(context, i, line);
        }
        fclose(self->racers[i].out);
        if (self->racers[i].failed && !trouble[0])
            snprintf(trouble, sizeof trouble, "racer %d died", i);
    }
    close(self->ready[0]);
    close(self->ready[1]);
    close(self->go[0]);
    free(self);
    if (trouble[0])
        fail_msg("%s", trouble);
}

#endif
