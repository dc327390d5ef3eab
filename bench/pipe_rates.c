/* What the pipe store does over a command such as ssh; bench_workers.py runs it and makes the table.
 *
 *     bench_pipe_rates near NONCE BYTES BLOBS TRIPS COMMAND WORD...   serves a store in memory over COMMAND's streams,
 *                                                                     and prints what the far end tells, JSON
 *     bench_pipe_rates far NONCE BYTES BLOBS TRIPS                 what COMMAND is to start: measures as a worker there
 *
 * BLOBS blobs of BYTES bytes go each way, by one caller and by CALLERS at once, and TRIPS small ones. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <shoal/store.h>

#include "store/pipe/pipe.h"

extern char **environ;

enum { CALLERS = 4, PATIENCE = 120, SMALL = 64 };

static struct {
    const char *nonce;
    size_t bytes;
    int blobs, trips;
} plan;

/* What the other end said last, and whether it is gone. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    char text[1024];
    bool gone;
} heard = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static _Noreturn void stop(const char *what, const char *why)
{
    fprintf(stderr, "bench_pipe_rates: %s: %s\n", what, why);
    exit(1);
}

static void check(int status, const char *what)
{
    if (status < 0)
        stop(what, shoal_error());
}

static void hear(void *context, const char *note)
{
    (void)context;
    pthread_mutex_lock(&heard.lock);
    snprintf(heard.text, sizeof heard.text, "%s", note);
    pthread_cond_signal(&heard.changed);
    pthread_mutex_unlock(&heard.lock);
}

static void hear_end(void *context, const char *why)
{
    (void)context, (void)why;
    pthread_mutex_lock(&heard.lock);
    heard.gone = true;
    pthread_cond_signal(&heard.changed);
    pthread_mutex_unlock(&heard.lock);
}

static void wait_for_other_end(void)
{
    pthread_mutex_lock(&heard.lock);
    while (!heard.text[0] && !heard.gone)
        pthread_cond_wait(&heard.changed, &heard.lock);
    pthread_mutex_unlock(&heard.lock);
}

static const char *key_of(char out[32], const char *kind, int number)
{
    snprintf(out, 32, "%s/%d", kind, number);
    return out;
}

/* Bytes that nothing on the way can make small. */
static unsigned char *make_bytes(size_t size)
{
    size_t words = size / 8 + 1;
    uint64_t *bytes = malloc(8 * words), state = 88172645463325252u;
    if (!bytes)
        stop("memory", strerror(errno));
    for (size_t i = 0; i < words; i++) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        bytes[i] = state;
    }
    return (unsigned char *)bytes;
}

/* ---- near -------------------------------------------------------------------------------------------------------- */

static shoal_store *make_store(void)
{
    shoal_store *store = NULL;
    unsigned char *bytes = make_bytes(plan.bytes);
    char key[32];
    check(shoal_store_open(&store, "mem:bench", &(shoal_store_options){.create = true}, shoal_after(PATIENCE)), "mem:");
    for (int i = 0; i < plan.blobs; i++)
        check(shoal_store_put(store, key_of(key, "large", i), bytes, plan.bytes, NULL, NULL, shoal_after(PATIENCE)),
              key);
    for (int i = 0; i < plan.trips; i++)
        check(shoal_store_put(store, key_of(key, "small", i), bytes, SMALL, NULL, NULL, shoal_after(PATIENCE)), key);
    free(bytes);
    return store;
}

/* Starts the command; ends[0] is what it says, ends[1] what it hears. */
static void start_command(int ends[2], char **words)
{
    int said[2], told[2];
    pid_t child;
    posix_spawn_file_actions_t actions;
    if (pipe2(said, O_CLOEXEC) != 0 || pipe2(told, O_CLOEXEC) != 0)
        stop("pipe2", strerror(errno));
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, told[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, said[1], STDOUT_FILENO);
    errno = posix_spawnp(&child, words[0], &actions, NULL, words, environ);
    if (errno != 0)
        stop(words[0], strerror(errno));
    posix_spawn_file_actions_destroy(&actions);
    close(told[0]);
    close(said[1]);
    ends[0] = said[0];
    ends[1] = told[1];
}

static void run_near(char **command)
{
    int ends[2];
    pipe_server *server = NULL;
    shoal_store *store = make_store();
    start_command(ends, command);
    check(
        pipe_server_new(&server, ends[0], ends[1],
                        &(pipe_server_options){.store = store, .nonce = plan.nonce, .events = {hear, hear_end, NULL}}),
        "the near end");
    wait_for_other_end();
    if (!heard.text[0])
        stop(command[0], "ended before it had measured");
    printf("%s\n", heard.text);
    pipe_server_free(&server);
    shoal_store_close(&store);
}

/* ---- far --------------------------------------------------------------------------------------------------------- */

static struct {
    shoal_store *store;
    unsigned char *bytes;
    bool put;
    _Atomic int next;
} work;

static void *move_blobs(void *unused)
{
    char key[32];
    (void)unused;
    for (int i; (i = atomic_fetch_add(&work.next, 1)) < plan.blobs;) {
        shoal_blob blob = {0};
        if (work.put) {
            check(shoal_store_put(work.store, key_of(key, "put", i), work.bytes, plan.bytes, NULL, NULL,
                                  shoal_after(PATIENCE)),
                  key);
            continue;
        }
        check(shoal_store_get(work.store, key_of(key, "large", i), &blob, shoal_after(PATIENCE)), key);
        if (blob.size != plan.bytes || memcmp(blob.data, work.bytes, plan.bytes) != 0)
            stop(key, "not what was put");
        shoal_blob_release(&blob);
    }
    return NULL;
}

/* Bytes a second. */
static double rate_of(int callers, bool put)
{
    pthread_t threads[CALLERS];
    int64_t start = shoal_now();
    work.put = put;
    atomic_store(&work.next, 0);
    for (int i = 0; i < callers; i++)
        if ((errno = pthread_create(&threads[i], NULL, move_blobs, NULL)) != 0)
            stop("pthread_create", strerror(errno));
    for (int i = 0; i < callers; i++)
        pthread_join(threads[i], NULL);
    return (double)plan.bytes * plan.blobs / ((double)(shoal_now() - start) * 1e-9);
}

static int compare_times(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* The median of small gets, each of another blob, in seconds. */
static double trip_of(void)
{
    int64_t *times = malloc((size_t)plan.trips * sizeof *times);
    char key[32];
    if (!times)
        stop("memory", strerror(errno));
    for (int i = 0; i < plan.trips; i++) {
        shoal_blob blob = {0};
        int64_t start = shoal_now();
        check(shoal_store_get(work.store, key_of(key, "small", i), &blob, shoal_after(PATIENCE)), key);
        times[i] = shoal_now() - start;
        shoal_blob_release(&blob);
    }
    qsort(times, (size_t)plan.trips, sizeof *times, compare_times);
    double median = (double)times[plan.trips / 2] * 1e-9;
    free(times);
    return median;
}

static void run_far(void)
{
    char folder[] = "/tmp/shoal-bench-XXXXXX", path[64], url[80], note[256];
    pipe_hub *hub = NULL;
    if (!mkdtemp(folder))
        stop(folder, strerror(errno));
    snprintf(path, sizeof path, "%s/socket", folder);
    snprintf(url, sizeof url, "pipe:%s", path);
    check(pipe_hub_new(&hub, dup(STDIN_FILENO), dup(STDOUT_FILENO),
                       &(pipe_hub_options){.socket = path,
                                           .nonce = plan.nonce,
                                           .cache_bytes = 1, /* so that each blob travels each time */
                                           .events = {hear, hear_end, NULL}}),
          "the far end");
    check(shoal_store_open(&work.store, url, NULL, shoal_after(PATIENCE)), url);
    work.bytes = make_bytes(plan.bytes);
    trip_of(); /* once to warm up */
    double trip = trip_of(), get = rate_of(1, false), get_many = rate_of(CALLERS, false), put = rate_of(1, true);
    snprintf(note, sizeof note, "{\"trip\": %.9f, \"get\": %.0f, \"get_many\": %.0f, \"put\": %.0f}", trip, get,
             get_many, put);
    check(pipe_hub_tell(hub, note), "the result");
    wait_for_other_end();
    shoal_store_close(&work.store);
    pipe_hub_free(&hub);
    unlink(path);
    rmdir(folder);
}

/* -------------------------------------------------------------------------------------------------------------- */

int main(int count, char **words)
{
    bool near = count > 6 && strcmp(words[1], "near") == 0;
    if (!near && (count != 6 || strcmp(words[1], "far") != 0))
        stop("usage", "bench_pipe_rates near|far NONCE BYTES BLOBS TRIPS [COMMAND WORD...]");
    plan.nonce = words[2];
    plan.bytes = (size_t)atol(words[3]);
    plan.blobs = atoi(words[4]);
    plan.trips = atoi(words[5]);
    if (near)
        run_near(words + 6);
    else
        run_far();
    return 0;
}
