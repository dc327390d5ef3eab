/* The embedded store when its processes are killed or stopped.
 *
 *  - A process is killed before and after every single system call of every operation (ptrace): what was acknowledged
 * is
 *  there, what was not is there whole or not at all, no file is left over once the store has been opened again, and the
 *    index is sound.
 *  - Four processes write, overwrite, remove, push, take and finish, and are killed at random moments.  - One of four
 * writers is stopped at random moments: the others go on.
 *
 * No process forks while it has the store open, since that is forbidden: what is checked is checked in children. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "store/store_internal.h"
#include "folder_support.h"

enum { LARGE = 20000, SMALL = 300, OTHER_LARGE = 30000 };

/* Sanitizers make processes so slow to start that only some of the moments are tried under them. */
#ifdef UNDER_ADDRESS_SANITIZER
enum { STRIDE = 11 };
#else
enum { STRIDE = 1 };
#endif

static char folder[64], url[96], full_url[112];
static unsigned char bytes[2][OTHER_LARGE]; /* the old content and the new */

/* On a disk in memory where there is one: here nothing goes down but processes, and thousands of stores are opened. */
static int setup(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "%s/shoal-crash-XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    if (!mkdtemp(folder))
        return -1;
    snprintf(url, sizeof url, "dir:%s/store", folder);
    snprintf(full_url, sizeof full_url, "%s?sync=full", url);
    for (size_t i = 0; i < OTHER_LARGE; i++) {
        bytes[0][i] = (unsigned char)(i * 2654435761u >> 24);
        bytes[1][i] = (unsigned char)~bytes[0][i];
    }
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    return nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static int64_t soon(void)
{
    return shoal_after(30);
}

static shoal_store *open_store(const char *name)
{
    shoal_store *store = NULL;
    ENSURE(shoal_store_open(&store, name, &(shoal_store_options){.create = true}, soon()) == SHOAL_OK);
    return store;
}

/* What every store that nobody has open must be like. */
static void ensure_sound(void)
{
    sqlite3 *db = open_intact_index(folder);
    sqlite3_stmt *statement = NULL;
    static const char referred[] =
        "SELECT (SELECT count(*) FROM blobs WHERE file IS NOT NULL) + (SELECT count(*) FROM messages WHERE file IS "
        "NOT NULL), (SELECT count(*) FROM garbage)";
    ENSURE(sqlite3_prepare_v2(db, referred, -1, &statement, NULL) == SQLITE_OK);
    ENSURE(sqlite3_step(statement) == SQLITE_ROW);
    ENSURE(sqlite3_column_int(statement, 0) == count_in(folder, "store/bodies"));
    ENSURE(sqlite3_column_int(statement, 1) == 0);
    ENSURE(count_in(folder, "store/temp") == 0);
    sqlite3_finalize(statement);
    sqlite3_close(db);
}

/* Runs work(context) in a child and returns whether it ended well. */
static bool in_child(void (*work)(const void *), const void *context)
{
    int status = 0;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        work(context);
        _exit(0);
    }
    return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* ---- killed at every system call --------------------------------------------------------------------------------- */

/* A state of the store: the blob "key" (which of the contents, its size; -1 for none) and the queue "q". */
typedef struct world {
    int content;
    size_t size;
    int messages;
} world;

/* One operation: what is there before, and after. */
typedef struct operation {
    const char *name;
    world before, after;
    void (*act)(shoal_store *store);
    bool full, opens, takes, closes; /* sync=full; it opens the store itself; a message is held before; it closes it */
} operation;

static shoal_message held;

static void act_put_small(shoal_store *store)
{
    ENSURE(shoal_store_put(store, "key", bytes[1], SMALL, NULL, NULL, soon()) == SHOAL_OK);
}

static void act_put_absent(shoal_store *store)
{
    ENSURE(shoal_store_put(store, "key", bytes[1], LARGE, SHOAL_NOTHING, NULL, soon()) == SHOAL_OK);
}

static void act_put_large(shoal_store *store)
{
    ENSURE(shoal_store_put(store, "key", bytes[1], LARGE, NULL, NULL, soon()) == SHOAL_OK);
}

static void act_remove(shoal_store *store)
{
    ENSURE(shoal_store_remove(store, "key", soon()) == SHOAL_OK);
}

static void act_push_small(shoal_store *store)
{
    ENSURE(shoal_store_push(store, "q", bytes[1], SMALL, soon()) == SHOAL_OK);
}

static void act_push_large(shoal_store *store)
{
    ENSURE(shoal_store_push(store, "q", bytes[1], LARGE, soon()) == SHOAL_OK);
}

static void act_take(shoal_store *store)
{
    ENSURE(shoal_store_take(store, "q", 1000, &held, soon()) == SHOAL_OK);
    ENSURE(held.size == LARGE && memcmp(held.data, bytes[1], LARGE) == 0);
}

static void act_extend(shoal_store *store)
{
    ENSURE(shoal_store_extend(store, "q", &held, 2000, soon()) == SHOAL_OK);
}

static void act_finish(shoal_store *store)
{
    ENSURE(shoal_store_finish(store, "q", &held, soon()) == SHOAL_OK);
}

static void act_drop(shoal_store *store)
{
    ENSURE(shoal_store_drop(store, "q", soon()) == SHOAL_OK);
}

static void act_nothing(shoal_store *store)
{
    (void)store;
}

static const operation operations[] = {
    {"put small", {-1, 0, 0}, {1, SMALL, 0}, act_put_small, .full = false},
    {"overwrite small", {0, SMALL, 0}, {1, SMALL, 0}, act_put_small, .full = false},
    {"put large if absent", {-1, 0, 0}, {1, LARGE, 0}, act_put_absent, .full = false},
    {"overwrite large", {0, OTHER_LARGE, 0}, {1, LARGE, 0}, act_put_large, .full = false},
    {"overwrite large, full", {0, OTHER_LARGE, 0}, {1, LARGE, 0}, act_put_large, .full = true},
    {"large to small", {0, LARGE, 0}, {1, SMALL, 0}, act_put_small, .full = false},
    {"remove small", {0, SMALL, 0}, {-1, 0, 0}, act_remove, .full = false},
    {"remove large", {0, LARGE, 0}, {-1, 0, 0}, act_remove, .full = false},
    {"push small", {-1, 0, 0}, {-1, 0, 1}, act_push_small, .full = false},
    {"push large", {-1, 0, 2}, {-1, 0, 3}, act_push_large, .full = false},
    {"take", {-1, 0, 2}, {-1, 0, 2}, act_take, .full = false},
    {"extend", {-1, 0, 2}, {-1, 0, 2}, act_extend, .takes = true},
    {"finish", {-1, 0, 2}, {-1, 0, 1}, act_finish, .takes = true},
    {"drop", {0, LARGE, 3}, {0, LARGE, 0}, act_drop, .full = false},
    {"open", {0, LARGE, 1}, {0, LARGE, 1}, act_nothing, .opens = true},
    {"close", {0, LARGE, 1}, {0, LARGE, 1}, act_nothing, .closes = true},
};

/* Brings the store into the state before. */
static void prepare(const void *context)
{
    const operation *self = context;
    shoal_store *store = open_store(url);
    ENSURE(shoal_store_put(store, "after", bytes[0], LARGE, NULL, NULL, soon()) == SHOAL_OK); /* it goes on */
    ENSURE(shoal_store_remove(store, "after", soon()) == SHOAL_OK);
    ENSURE(shoal_store_drop(store, "q", soon()) == SHOAL_OK);
    ENSURE(shoal_store_remove(store, "key", soon()) == SHOAL_OK);
    if (self->before.content >= 0)
        ENSURE(shoal_store_put(store, "key", bytes[self->before.content], self->before.size, NULL, NULL, soon()) == 0);
    for (int i = 0; i < self->before.messages; i++)
        ENSURE(shoal_store_push(store, "q", bytes[1], LARGE, soon()) == SHOAL_OK);
    shoal_store_close(&store);
}

static bool is_state(shoal_store *store, const world *state)
{
    shoal_blob blob = {0};
    int64_t messages = -1;
    int status = shoal_store_get(store, "key", &blob, soon());
    ENSURE(status == SHOAL_OK || status == SHOAL_ABSENT);
    bool same = state->content < 0 ? status == SHOAL_ABSENT
                                   : status == SHOAL_OK && blob.size == state->size &&
                                         memcmp(blob.data, bytes[state->content], state->size) == 0;
    shoal_blob_release(&blob);
    ENSURE(shoal_store_count(store, "q", &messages, soon()) == SHOAL_OK);
    return same && messages == state->messages;
}

typedef struct outcome {
    const operation *operation;
    bool acknowledged;
} outcome;

static void verify(const void *context)
{
    const outcome *self = context;
    shoal_store *store = open_store(url);
    bool done = is_state(store, &self->operation->after);
    ENSURE(done || (!self->acknowledged && is_state(store, &self->operation->before)));
    shoal_store_close(&store);
    ensure_sound();
}

static void verify_and_prepare(const void *context)
{
    verify(context);
    prepare(((const outcome *)context)->operation);
}

/* The victim: asks to be traced, stops, acts, and says so. */
static void suffer(const operation *self, int acknowledge)
{
    shoal_store *store = self->opens ? NULL : open_store(self->full ? full_url : url);
    if (self->takes)
        act_take(store);
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
        _exit(77);
    raise(SIGSTOP);
    if (self->opens)
        store = open_store(url);
    self->act(store);
    if (self->closes)
        shoal_store_close(&store);
    ENSURE(write(acknowledge, "x", 1) == 1);
    _exit(0);
}

/* Lets a victim make `stops` entries to and exits from system calls and kills it there; 0 when it was done before, 77
 * when nobody may trace here. */
static int kill_at(const operation *operation, int stops, bool *acknowledged)
{
    int pipes[2], status = 0, result = 1;
    char letter;
    assert_int_equal(pipe(pipes), 0);
    pid_t child = fork();
    if (child == 0)
        suffer(operation, pipes[1]);
    close(pipes[1]);
    assert_int_equal(waitpid(child, &status, 0), child);
    for (int i = 0; i < stops && WIFSTOPPED(status); i++) {
        assert_int_equal(ptrace(PTRACE_SYSCALL, child, NULL, NULL), 0);
        assert_int_equal(waitpid(child, &status, 0), child);
    }
    if (WIFSTOPPED(status)) {
        kill(child, SIGKILL);
        assert_int_equal(waitpid(child, &status, 0), child);
    } else {
        assert_true(WIFEXITED(status));
        result = WEXITSTATUS(status) == 77 ? 77 : 0;
        assert_true(result == 77 || WEXITSTATUS(status) == 0);
    }
    *acknowledged = read(pipes[0], &letter, 1) == 1;
    close(pipes[0]);
    return result;
}

static void test_killed_at_every_system_call(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        outcome outcome = {.operation = &operations[i]};
        int left = 1, stops = 1 + (int)i % STRIDE;
        assert_true(in_child(prepare, outcome.operation));
        for (; left == 1; stops += STRIDE) {
            assert_true(stops < 2000);
            left = kill_at(outcome.operation, stops, &outcome.acknowledged);
            if (left == 77) {
                print_message("no process may be traced here\n");
                skip();
            }
            if (!in_child(verify_and_prepare, &outcome))
                fail_msg("%s, killed at stop %d (%s)", outcome.operation->name, stops,
                         outcome.acknowledged ? "acknowledged" : "not acknowledged");
        }
        assert_true(outcome.acknowledged);
        assert_true(stops > 10);
    }
}

/* Making a store can be cut short anywhere, too. */
static void test_killed_while_it_is_made(void **state)
{
    static const operation making = {"make", {-1, 0, 0}, {-1, 0, 0}, act_nothing, .opens = true};
    outcome outcome = {.operation = &making};
    char path[96];
    (void)state;
    snprintf(path, sizeof path, "%s/store", folder);
    for (int stops = 1, left = 1; left == 1; stops += 3 * STRIDE) {
        if (access(path, F_OK) == 0)
            assert_int_equal(nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS), 0);
        left = kill_at(&making, stops, &outcome.acknowledged);
        if (left == 77)
            skip();
        if (!in_child(verify, &outcome))
            fail_msg("killed at stop %d", stops);
    }
}

/* ---- killed at random -------------------------------------------------------------------------------------------- */

enum { WRITERS = 4, KEYS = 6, LIVES = 60 / STRIDE + 5, MESSAGES = 1 << 16 };

/* What is known of a writer's keys: the number of the put whose content each has, 0 for none; and of the shared
 * queue. */
typedef struct knowledge {
    uint32_t key[WRITERS][KEYS];
    uint32_t doubtful[WRITERS][KEYS]; /* what it may have instead */
    bool in_doubt[WRITERS][KEYS];
    uint32_t next_put[WRITERS], next_message[WRITERS];
    unsigned char pushed[WRITERS][MESSAGES], finished[WRITERS][MESSAGES]; /* 1 perhaps, 2 surely */
} knowledge;

/* What a writer reports, before and after each thing it does. */
typedef struct report {
    enum { PUTS, PUT, REMOVES, REMOVED, PUSHES, PUSHED, FINISHES, FINISHED } what;
    uint32_t key, number, writer;
} report;

static uint32_t random_next(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*seed >> 33);
}

static size_t content(unsigned char *out, uint32_t writer, uint32_t number)
{
    size_t size = number % 3 == 0 ? 9000 + number % 5000 : number % 700 + 8;
    memset(out, (int)(number * 31 + writer), size);
    memcpy(out, &number, sizeof number);
    memcpy(out + 4, &writer, sizeof writer);
    return size;
}

static bool has_content(shoal_store *store, uint32_t writer, uint32_t key, uint32_t number)
{
    unsigned char wanted[16384];
    char name[32];
    shoal_blob blob = {0};
    snprintf(name, sizeof name, "writer/%u/%u", writer, key);
    int status = shoal_store_get(store, name, &blob, soon());
    ENSURE(status == SHOAL_OK || status == SHOAL_ABSENT);
    size_t size = number ? content(wanted, writer, number) : 0;
    bool same = number ? status == SHOAL_OK && blob.size == size && memcmp(blob.data, wanted, size) == 0
                       : status == SHOAL_ABSENT;
    shoal_blob_release(&blob);
    return same;
}

static void tell(int to, int what, uint32_t key, uint32_t number, uint32_t writer)
{
    report report = {.what = what, .key = key, .number = number, .writer = writer};
    ENSURE(write(to, &report, sizeof report) == sizeof report);
}

/* Checks what its last life left, and settles what was in doubt. */
static void check_keys(shoal_store *store, const knowledge *known, uint32_t writer, int to)
{
    for (uint32_t key = 0; key < KEYS; key++) {
        uint32_t number = known->key[writer][key];
        if (!has_content(store, writer, key, number)) {
            ENSURE(known->in_doubt[writer][key]);
            number = known->doubtful[writer][key];
            ENSURE(has_content(store, writer, key, number));
        }
        tell(to, PUT, key, number, writer);
    }
}

static void change_key(shoal_store *store, uint32_t writer, uint32_t key, uint32_t number, int to)
{
    unsigned char data[16384];
    char name[32];
    snprintf(name, sizeof name, "writer/%u/%u", writer, key);
    if (number % 7 == 0) {
        tell(to, REMOVES, key, 0, writer);
        ENSURE(shoal_store_remove(store, name, soon()) == SHOAL_OK);
        tell(to, REMOVED, key, 0, writer);
        return;
    }
    size_t size = content(data, writer, number);
    tell(to, PUTS, key, number, writer);
    ENSURE(shoal_store_put(store, name, data, size, NULL, NULL, soon()) == SHOAL_OK);
    tell(to, PUT, key, number, writer);
}

static void push_one(shoal_store *store, uint32_t writer, uint32_t number, int to)
{
    unsigned char data[16384];
    size_t size = content(data, writer, number);
    tell(to, PUSHES, 0, number, writer);
    ENSURE(shoal_store_push(store, "queue", data, size, soon()) == SHOAL_OK);
    tell(to, PUSHED, 0, number, writer);
}

static bool read_message(const shoal_message *message, uint32_t *writer, uint32_t *number)
{
    unsigned char wanted[16384];
    if (message->size < 8)
        return false;
    memcpy(number, message->data, 4);
    memcpy(writer, (char *)message->data + 4, 4);
    return *writer < WRITERS && *number < MESSAGES && content(wanted, *writer, *number) == message->size &&
           memcmp(wanted, message->data, message->size) == 0;
}

static bool finish_one(shoal_store *store, double lease, int to)
{
    shoal_message message = {0};
    uint32_t writer, number;
    int status = shoal_store_take(store, "queue", lease, &message, soon());
    ENSURE(status == SHOAL_OK || status == SHOAL_ABSENT);
    if (status == SHOAL_ABSENT)
        return false;
    ENSURE(read_message(&message, &writer, &number));
    tell(to, FINISHES, 0, number, writer);
    status = shoal_store_finish(store, "queue", &message, soon());
    ENSURE(status == SHOAL_OK || status == SHOAL_LOST);
    if (status == SHOAL_OK)
        tell(to, FINISHED, 0, number, writer);
    shoal_message_release(&message);
    return true;
}

static void live(const knowledge *known, uint32_t writer, uint64_t seed, int to)
{
    uint32_t put = known->next_put[writer], message = known->next_message[writer];
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    shoal_store *store = open_store(url);
    check_keys(store, known, writer, to);
    for (;;) {
        uint32_t dice = random_next(&seed) % 8;
        if (dice < 5)
            change_key(store, writer, random_next(&seed) % KEYS, ++put, to);
        else if (dice == 5 && message + 1 < MESSAGES)
            push_one(store, writer, ++message, to);
        else
            finish_one(store, 1, to);
    }
}

/* Takes note of a report.  Whatever was begun and not reported as done stays in doubt. */
static void note(knowledge *known, const report *report)
{
    uint32_t w = report->writer, k = report->key, n = report->number;
    switch (report->what) {
    case PUTS:
    case REMOVES:
        known->doubtful[w][k] = n;
        known->in_doubt[w][k] = true;
        known->next_put[w] = n > known->next_put[w] ? n : known->next_put[w];
        break;
    case PUT:
    case REMOVED:
        known->key[w][k] = n;
        known->in_doubt[w][k] = false;
        break;
    case PUSHES: known->next_message[w] = n; /* fall through */
    case PUSHED: known->pushed[w][n] = report->what == PUSHED ? 2 : 1; break;
    case FINISHES: known->finished[w][n] = known->finished[w][n] == 2 ? 2 : 1; break;
    case FINISHED: known->finished[w][n] = 2; break;
    }
}

typedef struct writer {
    pid_t process;
    int from;
} writer;

static void start_writer(writer *out, const knowledge *known, uint32_t number, uint64_t seed)
{
    int pipes[2];
    assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
    fflush(stdout);
    out->process = fork();
    if (out->process == 0)
        live(known, number, seed, pipes[1]);
    close(pipes[1]);
    out->from = pipes[0];
}

/* Reads what there is to read; false at the end. */
static bool drain(const writer *from, knowledge *known)
{
    report reports[64];
    ssize_t size = read(from->from, reports, sizeof reports);
    for (ssize_t i = 0; i < size / (ssize_t)sizeof *reports; i++)
        note(known, &reports[i]);
    return size > 0;
}

/* Reads reports of all until some have come, so that the writers get somewhere before the next is killed. */
static void listen_to(writer *writers, knowledge *known, uint32_t reports)
{
    for (uint32_t i = 0; i < reports;) {
        struct pollfd polls[WRITERS];
        for (int w = 0; w < WRITERS; w++)
            polls[w] = (struct pollfd){.fd = writers[w].from, .events = POLLIN};
        assert_true(poll(polls, WRITERS, 30000) > 0);
        for (int w = 0; w < WRITERS; w++)
            if (polls[w].revents) {
                if (!drain(&writers[w], known))
                    fail_msg("a writer gave up");
                i++;
            }
    }
}

/* In a child: every message that was pushed was finished, or is still there. */
static void check_queue(const void *context)
{
    const knowledge *known = context;
    static unsigned char there[WRITERS][MESSAGES];
    shoal_store *store = open_store(url);
    int64_t left = 1, until = soon();
    while (shoal_store_count(store, "queue", &left, soon()) == SHOAL_OK && left > 0) {
        shoal_message message = {0};
        uint32_t writer, number, seen = 0;
        int status = shoal_store_take(store, "queue", 60, &message, soon());
        ENSURE(status == SHOAL_OK || (status == SHOAL_ABSENT && shoal_now() < until));
        if (status == SHOAL_ABSENT) { /* held by one that was killed: until the lease ends */
            shoal_store_wait(store, "queue", &seen, soon());
            shoal_store_wait(store, "queue", &seen, shoal_after(0.05));
            continue;
        }
        ENSURE(read_message(&message, &writer, &number));
        ENSURE(known->pushed[writer][number] && known->finished[writer][number] != 2 && !there[writer][number]);
        there[writer][number] = 1;
        ENSURE(shoal_store_finish(store, "queue", &message, soon()) == SHOAL_OK);
        shoal_message_release(&message);
    }
    for (uint32_t w = 0; w < WRITERS; w++)
        for (uint32_t n = 0; n < MESSAGES; n++)
            ENSURE(known->pushed[w][n] != 2 || known->finished[w][n] || there[w][n]);
    shoal_store_close(&store);
    store = open_store(url);
    shoal_store_close(&store);
    ensure_sound();
}

static void check_all_keys(const void *context)
{
    const knowledge *known = context;
    int nowhere = open("/dev/null", O_WRONLY);
    shoal_store *store = open_store(url);
    for (uint32_t w = 0; w < WRITERS; w++)
        check_keys(store, known, w, nowhere);
    shoal_store_close(&store);
}

static void test_killed_at_random(void **state)
{
    static knowledge known;
    writer writers[WRITERS];
    uint64_t seed = 20;
    (void)state;
    for (uint32_t w = 0; w < WRITERS; w++)
        start_writer(&writers[w], &known, w, random_next(&seed));
    for (int i = 0; i < LIVES; i++) {
        uint32_t victim = random_next(&seed) % WRITERS;
        int status;
        listen_to(writers, &known, 20 + random_next(&seed) % 200);
        kill(writers[victim].process, SIGKILL);
        while (drain(&writers[victim], &known))
            ;
        close(writers[victim].from);
        assert_int_equal(waitpid(writers[victim].process, &status, 0), writers[victim].process);
        assert_true(WIFSIGNALED(status));
        start_writer(&writers[victim], &known, victim, random_next(&seed));
    }
    for (int w = 0; w < WRITERS; w++)
        kill(writers[w].process, SIGKILL);
    for (int w = 0; w < WRITERS; w++) {
        while (drain(&writers[w], &known))
            ;
        close(writers[w].from);
        waitpid(writers[w].process, NULL, 0);
        assert_true(known.next_put[w] > 50);
    }
    assert_true(in_child(check_all_keys, &known));
    assert_true(in_child(check_queue, &known));
}

/* ---- stopped ----------------------------------------------------------------------------------------------------- */

static void write_on(_Atomic uint64_t *count, int number)
{
    char key[32];
    snprintf(key, sizeof key, "stopped/%d", number);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    shoal_store *store = open_store(url);
    for (;;) {
        ENSURE(shoal_store_put(store, key, bytes[0], *count % 16 ? SMALL : LARGE, NULL, NULL, soon()) == SHOAL_OK);
        ++*count;
    }
}

/* Waits until every writer but one has put twice; the second put began after the other was stopped. */
static bool others_go_on(_Atomic uint64_t *counts, int stopped, double patience)
{
    uint64_t before[WRITERS];
    int64_t deadline = shoal_after(patience);
    for (int w = 0; w < WRITERS; w++)
        before[w] = counts[w];
    for (int w = 0; w < WRITERS; w++)
        while (w != stopped && counts[w] < before[w] + 2) {
            if (shoal_now() > deadline)
                return false;
            usleep(500);
        }
    return true;
}

static void test_a_stopped_writer_does_not_stop_the_others(void **state)
{
    _Atomic uint64_t *counts = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t processes[WRITERS];
    uint64_t seed = 30;
    (void)state;
    for (int w = 0; w < WRITERS; w++) {
        processes[w] = fork();
        if (processes[w] == 0)
            write_on(&counts[w], w);
    }
    assert_true(others_go_on(counts, -1, 30));
    for (int i = 0; i < 30; i++) {
        int victim = (int)(random_next(&seed) % WRITERS);
        usleep(random_next(&seed) % 5000);
        kill(processes[victim], SIGSTOP);
        bool fine = others_go_on(counts, victim, 10); /* a fraction of a second, on a machine that is not busy */
        kill(processes[victim], SIGCONT);
        assert_true(fine);
    }
    assert_true(others_go_on(counts, -1, 30));
    for (int w = 0; w < WRITERS; w++) {
        kill(processes[w], SIGKILL);
        waitpid(processes[w], NULL, 0);
    }
    munmap(counts, 4096);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_killed_at_every_system_call),
        TEST(test_killed_while_it_is_made),
        TEST(test_killed_at_random),
        TEST(test_a_stopped_writer_does_not_stop_the_others),
    };
    return cmocka_run_group_tests_name("store crash", tests, NULL, NULL);
}
