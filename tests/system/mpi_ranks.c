/* Every function of shoal/ranks.h over a plug-in, for test_mpi_ranks.py, which starts this by mpirun.
 *
 *     mpi_ranks find              prints how it was started, as the environment tells
 *     mpi_ranks CASE [PLUGIN]     see `cases` below; "" or nothing: the plug-in that is found
 *
 * A rank whose check fails says so and ends all ranks with 9.  Rank 0 prints "done CASE" and the MPI's name. */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <shoal/ranks.h>

#define CHECK(ranks, condition, ...)                                                                                   \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            char text[200];                                                                                            \
            snprintf(text, sizeof text, "CHECK " __VA_ARGS__);                                                         \
            (ranks)->abort(ranks, text, 9);                                                                            \
        }                                                                                                              \
    } while (0)

static const size_t sizes[] = {0, 1, 1000, 3000000};
enum { SIZES = sizeof sizes / sizeof *sizes };

/* What rank `rank` has at place `i`: of both signs, and with all bits in use. */
static int64_t value(int rank, size_t i)
{
    uint64_t bits = ((uint64_t)rank + 1) * 0x9e3779b97f4a7c15u ^ (i + 1) * 0xbf58476d1ce4e5b9u;
    return (int64_t)(bits ^ bits >> 29) / 1024;
}

static unsigned char byte(int rank, size_t i)
{
    return (unsigned char)value(rank, i);
}

/* The place to be looked at after `i`: in many values some, and the last ones. */
static size_t next_place(size_t i, size_t count)
{
    return count < 100000 || i + 1000 > count ? i + 1 : i + 29;
}

static void *room(shoal_ranks *ranks, size_t bytes)
{
    void *memory = malloc(bytes + 1);
    CHECK(ranks, memory != NULL, "memory");
    return memory;
}

/* ---- collective calls -------------------------------------------------------------------------------------------- */

static void check_sum(shoal_ranks *ranks, const int64_t *got, size_t count, const char *what)
{
    for (size_t i = 0; i < count; i = next_place(i, count)) {
        int64_t wanted = 0;
        for (int rank = 0; rank < ranks->size; rank++)
            wanted += value(rank, i);
        CHECK(ranks, got[i] == wanted, "%s of %zu at %zu: %" PRId64 ", not %" PRId64, what, count, i, got[i], wanted);
    }
}

static void try_reductions(shoal_ranks *ranks, size_t count)
{
    int64_t *in = room(ranks, count * sizeof *in), *out = room(ranks, count * sizeof *out);
    for (size_t i = 0; i < count; i++)
        in[i] = value(ranks->rank, i);
    ranks->sum(ranks, out, in, count);
    check_sum(ranks, out, count, "sum");
    for (size_t i = 0; i < count; i = next_place(i, count))
        CHECK(ranks, in[i] == value(ranks->rank, i), "sum changed what was given to it at %zu", i);
    ranks->max(ranks, out, in, count);
    for (size_t i = 0; i < count; i = next_place(i, count)) {
        int64_t wanted = INT64_MIN;
        for (int rank = 0; rank < ranks->size; rank++)
            wanted = value(rank, i) > wanted ? value(rank, i) : wanted;
        CHECK(ranks, out[i] == wanted, "max of %zu at %zu", count, i);
    }
    memcpy(out, in, count * sizeof *out);
    ranks->max(ranks, in, in, count);
    ranks->sum(ranks, out, out, count);
    check_sum(ranks, out, count, "sum in place");
    free(in);
    free(out);
}

static void try_extremes(shoal_ranks *ranks)
{
    const int64_t in[] = {INT64_MIN, INT64_MAX, ranks->rank == ranks->size - 1 ? INT64_MAX : INT64_MIN};
    int64_t out[3];
    ranks->max(ranks, out, in, 3);
    CHECK(ranks, out[0] == INT64_MIN && out[1] == INT64_MAX && out[2] == INT64_MAX, "max of the extremes");
}

static void try_gathers(shoal_ranks *ranks, size_t bytes)
{
    size_t all = bytes * (size_t)ranks->size, counts[64], place = 0;
    unsigned char *in = room(ranks, bytes), *out = room(ranks, all);
    for (size_t i = 0; i < bytes; i++)
        in[i] = byte(ranks->rank, i);
    ranks->gather(ranks, out, in, bytes);
    for (size_t i = 0; i < all; i = next_place(i, all))
        CHECK(ranks, out[i] == byte((int)(i / bytes), i % bytes), "gather of %zu at %zu", bytes, i);
    memset(out, 0, all);
    for (int rank = 0; rank < ranks->size; rank++) /* every third has nothing */
        counts[rank] = rank % 3 == 1 ? 0 : bytes / (size_t)(rank + 1);
    ranks->gather_some(ranks, out, counts, counts[ranks->rank] > 0 ? in : NULL);
    for (int rank = 0; rank < ranks->size; place += counts[rank++])
        for (size_t i = 0; i < counts[rank]; i = next_place(i, counts[rank]))
            CHECK(ranks, out[place + i] == byte(rank, i), "gather_some of %zu: rank %d at %zu", bytes, rank, i);
    for (int from = 0; from<ranks->size; from += ranks->size> 1 ? ranks->size - 1 : 1) {
        for (size_t i = 0; i < bytes; i++)
            out[i] = byte(ranks->rank, i);
        ranks->share(ranks, out, bytes, from);
        for (size_t i = 0; i < bytes; i = next_place(i, bytes))
            CHECK(ranks, out[i] == byte(from, i), "share of %zu from %d at %zu", bytes, from, i);
    }
    free(in);
    free(out);
}

/* ---- what goes on while we compute ------------------------------------------------------------------------------- */

/* Everybody sends to the next and to the one before at once, each twice, with a sum between them. */
static void try_sends(shoal_ranks *ranks, size_t bytes)
{
    int next = (ranks->rank + 1) % ranks->size, before = (ranks->rank + ranks->size - 1) % ranks->size;
    unsigned char *sent = room(ranks, 2 * bytes), *got[2] = {room(ranks, 2 * bytes), room(ranks, 2 * bytes)};
    int64_t one = 1, all = 0;
    for (size_t i = 0; i < 2 * bytes; i++)
        sent[i] = byte(ranks->rank, i);
    for (size_t part = 0; part < 2; part++) {
        ranks->post_receive(ranks, got[0] + part * bytes, bytes, before);
        ranks->post_send(ranks, sent + part * bytes, bytes, next);
        if (part == 0)
            ranks->sum(ranks, &all, &one, 1);
        if (next != before) { /* else the two directions would be one stream */
            ranks->post_receive(ranks, got[1] + part * bytes, bytes, next);
            ranks->post_send(ranks, sent + part * bytes, bytes, before);
        }
    }
    if (bytes == 1) {
        while (!ranks->poll(ranks))
            ;
        CHECK(ranks, ranks->poll(ranks), "poll after all is done");
    }
    ranks->wait(ranks);
    CHECK(ranks, all == ranks->size, "sum between sends: %" PRId64, all);
    for (size_t i = 0; i < 2 * bytes; i = next_place(i, 2 * bytes)) {
        CHECK(ranks, got[0][i] == byte(before, i), "send of %zu: at %zu", bytes, i);
        CHECK(ranks, next == before || got[1][i] == byte(next, i), "send of %zu backwards: at %zu", bytes, i);
    }
    free(sent);
    free(got[0]);
    free(got[1]);
}

/* What is shorter than its receiver expects, or empty, takes the place of the whole. */
static void try_short_sends(shoal_ranks *ranks, size_t bytes)
{
    size_t sent[] = {bytes, 0, bytes / 2, bytes / 30, 0, bytes};
    enum { SENDS = sizeof sent / sizeof *sent };
    int next = (ranks->rank + 1) % ranks->size, before = (ranks->rank + ranks->size - 1) % ranks->size;
    unsigned char *in = room(ranks, bytes), *out = room(ranks, bytes * SENDS);
    for (size_t i = 0; i < bytes; i++)
        in[i] = byte(ranks->rank, i);
    memset(out, 0xaa, bytes * SENDS);
    for (int i = 0; i < SENDS; i++) {
        ranks->post_receive(ranks, out + (size_t)i * bytes, bytes, before);
        ranks->post_send(ranks, sent[i] > 0 ? in : NULL, sent[i], next);
    }
    ranks->wait(ranks);
    for (int i = 0; i < SENDS; i++)
        for (size_t j = 0; j < bytes; j = next_place(j, bytes))
            CHECK(ranks, out[(size_t)i * bytes + j] == (j < sent[i] ? byte(before, j) : 0xaa), "send %d of %zu: at %zu",
                  i, sent[i], j);
    free(in);
    free(out);
}

/* More messages than there is room for at first, as rows go to rank 0, while sums go on. */
static void try_many(shoal_ranks *ranks)
{
    enum { MESSAGES = 300 };
    int64_t parts[MESSAGES], *got = room(ranks, sizeof parts * (size_t)ranks->size), sum = 1;
    for (int i = 0; i < MESSAGES; i++) {
        parts[i] = value(ranks->rank, (size_t)i);
        if (ranks->rank > 0)
            ranks->post_send(ranks, &parts[i], sizeof parts[i], 0);
        for (int rank = 1; ranks->rank == 0 && rank < ranks->size; rank++)
            ranks->post_receive(ranks, &got[rank * MESSAGES + i], sizeof *got, rank);
        ranks->poll(ranks);
    }
    ranks->sum(ranks, &sum, &sum, 1);
    ranks->wait(ranks);
    CHECK(ranks, sum == ranks->size, "sum beside messages");
    for (int i = MESSAGES; ranks->rank == 0 && i < MESSAGES * ranks->size; i++)
        CHECK(ranks, got[i] == value(i / MESSAGES, (size_t)(i % MESSAGES)), "message %d", i);
    free(got);
}

static void table(shoal_ranks *ranks)
{
    CHECK(ranks, ranks->poll(ranks), "poll with nothing posted");
    ranks->wait(ranks);
    try_extremes(ranks);
    try_many(ranks);
    for (int i = 0; i < SIZES; i++) {
        size_t size =
            getenv("MOST") != NULL && sizes[i] > (size_t)atoi(getenv("MOST")) ? (size_t)atoi(getenv("MOST")) : sizes[i];
        try_reductions(ranks, size);
        try_gathers(ranks, size);
        try_sends(ranks, size);
        try_short_sends(ranks, size);
    }
    CHECK(ranks, !ranks->alarmed(ranks), "an alarm that nobody raised");
}

/* ---- alarms, abort ----------------------------------------------------------------------------------------------- */

static void meet(shoal_ranks *ranks)
{
    int64_t one = 1;
    ranks->sum(ranks, &one, &one, 1);
    CHECK(ranks, one == ranks->size, "a sum among alarms");
}

/* Between two meetings, lest another rank is already at the next alarm. */
static void calm(shoal_ranks *ranks, const char *what)
{
    meet(ranks);
    CHECK(ranks, !ranks->alarmed(ranks), "%s", what);
    meet(ranks);
}

static void alarms(shoal_ranks *ranks)
{
    int last = ranks->size - 1;
    if (ranks->rank == last) { /* one fails while the others compute: they see it without meeting it */
        ranks->alarm(ranks);
        ranks->alarm(ranks);
    } else {
        while (!ranks->alarmed(ranks))
            ;
        CHECK(ranks, ranks->alarmed(ranks), "an alarm holds");
    }
    calm(ranks, "an alarm ends where ranks meet");
    ranks->alarm(ranks); /* all at once, and nobody looks */
    calm(ranks, "alarms that nobody looked at end as well");
    for (int round = 0; round < 20; round++) { /* each round another one */
        if (ranks->rank == round % ranks->size)
            ranks->alarm(ranks);
        else
            while (!ranks->alarmed(ranks))
                ;
        meet(ranks);
    }
    calm(ranks, "no alarm is left over");
    if (ranks->rank == 0) /* and one that is on its way when all leave */
        ranks->alarm(ranks);
}

static void aborts(shoal_ranks *ranks)
{
    meet(ranks);
    if (ranks->rank == ranks->size - 1)
        ranks->abort(ranks, "the rows are gone", 7);
    meet(ranks); /* never ends */
    printf("met an aborted rank\n");
}

/* Waits forever in a sum: for the test that kills one. */
static void hangs(shoal_ranks *ranks)
{
    printf("pid %d\n", (int)getpid());
    fflush(stdout);
    if (ranks->rank == ranks->size - 1)
        pause();
    meet(ranks);
}

static void nothing(shoal_ranks *ranks)
{
    meet(ranks);
}

/* ---- in a program that uses MPI itself --------------------------------------------------------------------------- */

typedef int mpi_init(int *count, char ***words);
typedef int mpi_finalized(int *flag);
typedef int mpi_finalize(void);

static void *mpi_function(const char *name)
{
    void *function = dlsym(RTLD_DEFAULT, name);
    if (function == NULL) {
        printf("no %s\n", name);
        exit(9);
    }
    return function;
}

/* Its MPI is used and left running, also twice. */
static int as_guest(const char *plugin)
{
    shoal_ranks *ranks = NULL;
    int ended = 1;
    if (dlopen(plugin, RTLD_NOW | RTLD_GLOBAL) == NULL) {
        printf("%s\n", dlerror());
        return 9;
    }
    ((mpi_init *)mpi_function("MPI_Init"))(NULL, NULL);
    for (int i = 0; i < 2; i++) {
        if (shoal_ranks_open(&ranks, plugin) != SHOAL_OK) {
            printf("%s\n", shoal_error());
            return 9;
        }
        meet(ranks);
        if (ranks->rank == 0)
            printf("met %d\n", ranks->size);
        shoal_ranks_close(&ranks);
    }
    ((mpi_finalized *)mpi_function("MPI_Finalized"))(&ended);
    ((mpi_finalize *)mpi_function("MPI_Finalize"))();
    if (shoal_ranks_open(&ranks, plugin) == SHOAL_OK)
        return 9;
    printf("%s; %s\n", ended ? "ended" : "left running", shoal_error());
    return 0;
}

static const struct {
    const char *name;
    void (*run)(shoal_ranks *ranks);
} cases[] = {{"table", table}, {"alarms", alarms}, {"aborts", aborts}, {"hangs", hangs}, {"nothing", nothing}};

static int run(const char *name, const char *plugin)
{
    shoal_ranks *ranks = NULL;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (strcmp(name, cases[i].name) != 0)
            continue;
        int status = shoal_ranks_open(&ranks, plugin);
        if (status != SHOAL_OK) {
            printf("status %d: %s\n", status, shoal_error());
            return 3;
        }
        cases[i].run(ranks);
        if (ranks->rank == 0)
            printf("done %s, %d of %s\n", name, ranks->size, ranks->name);
        shoal_ranks_close(&ranks);
        shoal_ranks_close(&ranks);
        return 0;
    }
    printf("no case %s\n", name);
    return 9;
}

int main(int count, char **words)
{
    shoal_ranks_started started;
    const char *plugin = count > 2 && *words[2] != '\0' ? words[2] : NULL;
    if (count < 2)
        return 9;
    if (strcmp(words[1], "guest") == 0)
        return as_guest(plugin);
    if (strcmp(words[1], "find") != 0)
        return run(words[1], plugin);
    bool found = shoal_ranks_find(&started);
    printf("%s %d %d %s %s%s\n", found ? "ranks" : "alone", started.rank, started.size,
           started.launcher != NULL ? started.launcher : "-", started.kind != NULL ? started.kind : "-",
           started.bare ? " bare" : "");
    return 0;
}
