/* What a store does in a second, beside what the machine does without one; bench_store.py runs it and makes the table.
 *
 *     bench_store_rates puts URL PROCESSES SECONDS BYTES always|absent   small puts of several processes at once
 *     bench_store_rates syncs FILE SECONDS BYTES append|rewrite          write() and fdatasync() of one process
 *     bench_store_rates copies URL FOLDER BYTES ROUNDS                   large bodies beside plain files, in turn
 *     bench_store_rates moves URL put|get|ranges BYTES COUNT CALLERS     COUNT blobs by so many threads
 *
 * Prints JSON.  A store that is not there is made.  With sync=full in the URL plain files are synced, too. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <shoal/store.h>

extern char **environ;

enum { PROCESSES_MOST = 64, ROUNDS_MOST = 100, RANGE = 8 << 20, PATIENCE = 300 };

/* ---- what all have in common ------------------------------------------------------------------------------------- */

static _Noreturn void stop(const char *what, const char *why)
{
    fprintf(stderr, "bench_store_rates: %s: %s\n", what, why);
    exit(1);
}

static void check(int status, const char *what)
{
    if (status < 0)
        stop(what, shoal_error());
}

static void check_system(bool fine, const char *what)
{
    if (!fine)
        stop(what, strerror(errno));
}

static double seconds_since(int64_t start)
{
    return (double)(shoal_now() - start) * 1e-9;
}

/* Bytes that no file system or server can make small, and that are in memory before the clock runs. */
static unsigned char *make_bytes(size_t size)
{
    size_t words = size / 8 + 1;
    uint64_t *bytes = malloc(8 * words), state = 88172645463325252u;
    check_system(bytes != NULL, "memory");
    for (size_t i = 0; i < words; i++) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        bytes[i] = state;
    }
    return (unsigned char *)bytes;
}

/* Memory as the store takes it for large blobs, so that both meet the same pages. */
static unsigned char *fresh_memory(size_t size)
{
    enum { HUGE_PAGE = 2 << 20 };
    size_t rounded = (size + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    unsigned char *memory = aligned_alloc(HUGE_PAGE, rounded);
    check_system(memory != NULL, "memory");
    madvise(memory, rounded, MADV_HUGEPAGE);
    return memory;
}

static shoal_store *open_store(const char *url)
{
    shoal_store *store = NULL;
    check(shoal_store_open(&store, url, &(shoal_store_options){.create = true}, shoal_after(PATIENCE)), url);
    return store;
}

/* ---- puts -------------------------------------------------------------------------------------------------------- */

/* In memory that parent and children map.  Nobody starts before all are ready, and all stop at the same moment. */
typedef struct meeting {
    _Atomic int ready;
    _Atomic int64_t until; /* 0: wait */
    int64_t puts[PROCESSES_MOST];
} meeting;

static meeting *map_meeting(int descriptor)
{
    meeting *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    check_system(shared != MAP_FAILED, "mmap");
    return shared;
}

/* One of the processes: child DESCRIPTOR NUMBER URL BYTES always|absent */
static void put_many(char **words)
{
    meeting *shared = map_meeting(atoi(words[0]));
    int number = atoi(words[1]);
    size_t size = (size_t)atol(words[3]);
    const shoal_etag *expected = strcmp(words[4], "absent") == 0 ? SHOAL_NOTHING : NULL;
    unsigned char *body = make_bytes(size);
    shoal_store *store = open_store(words[2]);
    char key[64];
    int64_t run = shoal_now(), count = 0, until;
    snprintf(key, sizeof key, "warm/%lld/%d", (long long)run, number);
    check(shoal_store_put(store, key, body, size, expected, NULL, shoal_after(PATIENCE)), key);
    atomic_fetch_add(&shared->ready, 1);
    while (!(until = atomic_load(&shared->until)))
        usleep(200);
    for (; shoal_now() < until; count++) {
        snprintf(key, sizeof key, "small/%lld/%d/%lld", (long long)run, number, (long long)count);
        check(shoal_store_put(store, key, body, size, expected, NULL, shoal_after(PATIENCE)), key);
    }
    shared->puts[number] = count;
    shoal_store_close(&store);
    free(body);
}

static bool all_alive(const pid_t *children, int count)
{
    for (int i = 0; i < count; i++)
        if (waitpid(children[i], NULL, WNOHANG) != 0)
            return false;
    return true;
}

static void run_puts(char **words)
{
    int count = atoi(words[1]), descriptor = memfd_create("meeting", 0);
    pid_t children[PROCESSES_MOST];
    check_system(descriptor >= 0 && ftruncate(descriptor, sizeof(meeting)) == 0, "memfd");
    if (count < 1 || count > PROCESSES_MOST)
        stop("puts", "1 to 64 processes");
    meeting *shared = map_meeting(descriptor);
    shoal_store *store = open_store(words[0]); /* made before the children race for it, and theirs alone afterwards */
    shoal_store_close(&store);
    for (int i = 0; i < count; i++) {
        char shared_number[16], own_number[16];
        snprintf(shared_number, sizeof shared_number, "%d", descriptor);
        snprintf(own_number, sizeof own_number, "%d", i);
        char *arguments[] = {
            "bench_store_rates", "child", shared_number, own_number, words[0], words[3], words[4], NULL};
        errno = posix_spawn(&children[i], "/proc/self/exe", NULL, NULL, arguments, environ);
        check_system(errno == 0, "posix_spawn");
    }
    while (atomic_load(&shared->ready) < count) {
        if (!all_alive(children, count))
            stop("puts", "a process ended before it began");
        usleep(1000);
    }
    double seconds = atof(words[2]);
    atomic_store(&shared->until, shoal_after(seconds));
    printf("{\"seconds\": %g, \"puts\": [", seconds);
    for (int i = 0; i < count; i++) {
        int how;
        check_system(waitpid(children[i], &how, 0) == children[i], "waitpid");
        if (!WIFEXITED(how) || WEXITSTATUS(how) != 0)
            stop("puts", "a process failed");
        printf("%s%lld", i ? ", " : "", (long long)shared->puts[i]);
    }
    printf("]}\n");
}

/* ---- syncs ------------------------------------------------------------------------------------------------------- */

/* The disk's own rate: what a program gets that writes some bytes and waits for them, again and again.  `append` lets
 * the file grow; `rewrite` goes round in 4 MiB that are written before the clock runs, which spares the file system its
 * journal. */
static void run_syncs(char **words)
{
    double seconds = atof(words[1]);
    size_t size = (size_t)atol(words[2]);
    bool rewrite = strcmp(words[3], "rewrite") == 0;
    enum { ROUND = 4 << 20 };
    unsigned char *bytes = make_bytes(size > ROUND ? size : ROUND);
    int64_t count = 0, at = 0, start, until;
    int file = open(words[0], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    check_system(file >= 0, words[0]);
    if (rewrite)
        check_system(pwrite(file, bytes, ROUND, 0) == ROUND && fsync(file) == 0, words[0]);
    start = shoal_now();
    for (until = shoal_after(seconds); shoal_now() < until; count++) {
        check_system(pwrite(file, bytes, size, at) == (ssize_t)size && fdatasync(file) == 0, words[0]);
        at += (int64_t)size;
        if (rewrite && at + (int64_t)size > ROUND)
            at = 0;
    }
    printf("{\"seconds\": %.6f, \"syncs\": %lld}\n", seconds_since(start), (long long)count);
    close(file);
    unlink(words[0]);
    free(bytes);
}

/* ---- copies ------------------------------------------------------------------------------------------------------ */

typedef struct copying {
    shoal_store *store;
    const char *folder;
    unsigned char *bytes, *buffer; /* what is written; where it is read to */
    size_t size;
    bool sync;
    int round;
} copying;

static char *file_name(const copying *c, const char *kind)
{
    static char name[4096];
    snprintf(name, sizeof name, "%s/%s-%d", c->folder, kind, c->round);
    return name;
}

static void sync_file(const copying *c, int file)
{
    check_system(!c->sync || fdatasync(file) == 0, "fdatasync");
}

static double plain_write(copying *c)
{
    const char *name = file_name(c, "written");
    int64_t start = shoal_now();
    int file = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    check_system(file >= 0, name);
    for (size_t done = 0; done < c->size;) {
        ssize_t now = write(file, c->bytes + done, c->size - done);
        check_system(now > 0, name);
        done += (size_t)now;
    }
    sync_file(c, file);
    check_system(close(file) == 0, name);
    double seconds = seconds_since(start);
    unlink(name);
    return seconds;
}

static void read_into(copying *c, unsigned char *out)
{
    const char *name = file_name(&(copying){.folder = c->folder}, "source");
    int file = open(name, O_RDONLY | O_CLOEXEC);
    check_system(file >= 0, name);
    for (size_t done = 0; done < c->size;) {
        ssize_t now = read(file, out + done, c->size - done);
        check_system(now > 0, name);
        done += (size_t)now;
    }
    close(file);
}

static double plain_read(copying *c)
{
    int64_t start = shoal_now();
    unsigned char *fresh = fresh_memory(c->size);
    read_into(c, fresh);
    double seconds = seconds_since(start);
    free(fresh);
    return seconds;
}

static double plain_read_again(copying *c)
{
    int64_t start = shoal_now();
    read_into(c, c->buffer);
    return seconds_since(start);
}

static double cp(copying *c)
{
    char source[4096], target[4096];
    char *arguments[] = {"cp", source, target, NULL};
    pid_t child;
    int how, file;
    snprintf(source, sizeof source, "%s", file_name(&(copying){.folder = c->folder}, "source"));
    snprintf(target, sizeof target, "%s", file_name(c, "copied"));
    int64_t start = shoal_now();
    errno = posix_spawnp(&child, "cp", NULL, NULL, arguments, environ);
    check_system(errno == 0 && waitpid(child, &how, 0) == child && how == 0, "cp");
    if (c->sync) {
        check_system((file = open(target, O_RDWR | O_CLOEXEC)) >= 0, target);
        sync_file(c, file);
        close(file);
    }
    double seconds = seconds_since(start);
    unlink(target);
    return seconds;
}

static double store_put(copying *c)
{
    char key[32];
    snprintf(key, sizeof key, "large/%d", c->round);
    int64_t start = shoal_now();
    check(shoal_store_put(c->store, key, c->bytes, c->size, NULL, NULL, shoal_after(PATIENCE)), key);
    double seconds = seconds_since(start);
    check(shoal_store_remove(c->store, key, shoal_after(PATIENCE)), key);
    return seconds;
}

static double store_get(copying *c)
{
    shoal_blob blob = {0};
    int64_t start = shoal_now();
    check(shoal_store_get(c->store, "source", &blob, shoal_after(PATIENCE)), "source");
    double seconds = seconds_since(start);
    if (blob.size != c->size || memcmp(blob.data, c->bytes, c->size) != 0)
        stop("source", "not what was put");
    shoal_blob_release(&blob);
    return seconds;
}

static double store_get_again(copying *c)
{
    shoal_blob blob = {0};
    int64_t start = shoal_now();
    check(shoal_store_get_range(c->store, "source", 0, (int64_t)c->size, NULL, c->buffer, &blob, shoal_after(PATIENCE)),
          "source");
    return seconds_since(start);
}

static const struct {
    const char *name;
    double (*run)(copying *c);
} copies[] = {{"write", plain_write},
              {"put", store_put},
              {"cp", cp},
              {"read", plain_read},
              {"get", store_get},
              {"read into a buffer", plain_read_again},
              {"get into a buffer", store_get_again}};
enum { COPIES = sizeof copies / sizeof *copies };

/* All kinds in turn, beginning with another one each round, so that none always has the same one before it. */
static void run_copies(char **words)
{
    copying c = {.folder = words[1], .size = (size_t)atol(words[2]), .sync = strstr(words[0], "sync=full") != NULL};
    static double seconds[COPIES][ROUNDS_MOST];
    int rounds = atoi(words[3]);
    if (rounds < 1 || rounds >= ROUNDS_MOST)
        stop("copies", "1 to 99 rounds");
    c.bytes = make_bytes(c.size);
    c.buffer = make_bytes(c.size);
    c.store = open_store(words[0]);
    check(shoal_store_put(c.store, "source", c.bytes, c.size, NULL, NULL, shoal_after(PATIENCE)), "source");
    int file = open(file_name(&c, "source"), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    check_system(file >= 0 && write(file, c.bytes, c.size) == (ssize_t)c.size && close(file) == 0, "source");
    for (c.round = 0; c.round <= rounds; c.round++) /* the first is to warm up */
        for (int i = 0; i < COPIES; i++) {
            int kind = (i + c.round) % COPIES;
            seconds[kind][c.round] = copies[kind].run(&c);
        }
    for (int kind = 0; kind < COPIES; kind++) {
        printf("%s\"%s\": [", kind ? ", " : "{", copies[kind].name);
        for (int round = 1; round <= rounds; round++)
            printf("%s%.6f", round > 1 ? ", " : "", seconds[kind][round]);
        printf("]");
    }
    printf("}\n");
    unlink(file_name(&(copying){.folder = c.folder}, "source"));
    shoal_store_close(&c.store);
    free(c.bytes);
    free(c.buffer);
}

/* ---- moves ------------------------------------------------------------------------------------------------------- */

typedef struct moving {
    shoal_store *store;
    const char *how;
    unsigned char *bytes;
    size_t size;
    int count;
    _Atomic int next;
} moving;

static void get_one(moving *m, const char *key)
{
    shoal_blob blob = {0};
    check(shoal_store_get(m->store, key, &blob, shoal_after(PATIENCE)), key);
    if (blob.size != m->size)
        stop(key, "it is shorter or longer than what was put");
    shoal_blob_release(&blob);
}

/* A request after the other, on one connection: what a whole get asks for at once.  All go to the same memory, as a
 * peer's go to /dev/null: this is about moving bytes, not about finding room for them. */
static void get_ranges(moving *m, const char *key, unsigned char *buffer)
{
    for (size_t at = 0; at < m->size; at += RANGE) {
        shoal_blob blob = {0};
        int64_t length = (int64_t)(m->size - at < RANGE ? m->size - at : RANGE);
        check(shoal_store_get_range(m->store, key, (int64_t)at, length, NULL, buffer, &blob, shoal_after(PATIENCE)),
              key);
        if ((int64_t)blob.size != length)
            stop(key, "it is shorter than what was put");
    }
}

static void *move_some(void *context)
{
    moving *m = context;
    bool ranges = strcmp(m->how, "ranges") == 0;
    unsigned char *buffer = ranges ? fresh_memory(RANGE) : NULL;
    for (int i; (i = atomic_fetch_add(&m->next, 1)) < m->count;) {
        char key[32];
        snprintf(key, sizeof key, "%zu/%d", m->size, i);
        if (ranges)
            get_ranges(m, key, buffer);
        else if (strcmp(m->how, "get") == 0)
            get_one(m, key);
        else
            check(shoal_store_put(m->store, key, m->bytes, m->size, NULL, NULL, shoal_after(PATIENCE)), key);
    }
    free(buffer);
    return NULL;
}

static void run_moves(char **words)
{
    moving m = {.how = words[1], .size = (size_t)atol(words[2]), .count = atoi(words[3])};
    int callers = atoi(words[4]);
    pthread_t threads[PROCESSES_MOST];
    if (callers < 1 || callers > PROCESSES_MOST)
        stop("moves", "1 to 64 callers");
    if (strcmp(m.how, "put") == 0)
        m.bytes = make_bytes(m.size);
    int64_t start = shoal_now(); /* opening is part of it, as is a peer's first connection */
    m.store = open_store(words[0]);
    for (int i = 0; i < callers; i++) {
        errno = pthread_create(&threads[i], NULL, move_some, &m);
        check_system(errno == 0, "a thread");
    }
    for (int i = 0; i < callers; i++)
        pthread_join(threads[i], NULL);
    shoal_store_close(&m.store);
    printf("{\"seconds\": %.6f}\n", seconds_since(start));
    free(m.bytes);
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    int words;
    void (*run)(char **words);
} verbs[] = {{"puts", 5, run_puts},
             {"child", 5, put_many},
             {"syncs", 4, run_syncs},
             {"copies", 4, run_copies},
             {"moves", 5, run_moves}};

int main(int count, char **words)
{
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        if (count == verbs[i].words + 2 && strcmp(words[1], verbs[i].name) == 0) {
            verbs[i].run(words + 2);
            return 0;
        }
    fprintf(stderr, "usage: bench_store_rates puts|syncs|copies|moves ...; the head of bench/store_rates.c explains\n");
    return 2;
}
