/* Reading the input of a run on ranks.  See ranks_data.h. */
#include "ranks_data.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "arrange.h"
#include "base/bytes.h"
#include "base/memory.h"
#include "base/pool.h"
#include "base/world.h"
#include "data/data_lend.h"
#include "data/data_place.h"
#include "engine/in_step.h"
#include "load.h"

/* Processes that see each other's below /proc, and the same files, have the same one. */
typedef struct home {
    char text[192];
} home;

/* What the first rank of a host sends to the host's other ranks. */
typedef struct notice {
    int32_t status;
    int32_t process;                 /* whose descriptors these are */
    int32_t rows, weights;           /* descriptors; -1: every rank reads the data itself; there are no weights */
    int32_t read_once, unused;       /* shoal_outcome.read_once */
    int64_t target;                  /* run_columns.target */
    int64_t held, own_type;          /* shoal_outcome.held_rows, own_type */
    int64_t rows_note, weights_note; /* bytes of the descriptions of both, */
    int64_t text;                    /* and of what follows: a failure's message, or the name of the data */
} notice;

typedef struct loading {
    shoal_outcome *outcome;
    shoal_ranks *ranks;
    int first, here; /* the first rank of this host, and how many there are on it */
    home *homes;     /* of all ranks */
    notice *notices; /* of all ranks */
    void *note;      /* what follows this rank's notice: two descriptions and a text */
    size_t note_bytes;
} loading;

/* ---- hosts ------------------------------------------------------------------------------------------------------- */

/* A rank that does not know where it is shares with nobody. */
static home find_home(int rank)
{
    home here = {{0}};
    char boot[BASE_BOOT_ID_BYTES], processes[64], mounts[64];
    bool booted = base_boot_id(boot);
    ssize_t in_processes = readlink("/proc/self/ns/pid", processes, sizeof processes),
            in_mounts = readlink("/proc/self/ns/mnt", mounts, sizeof mounts);
    if (!booted || in_processes <= 0 || in_mounts <= 0)
        snprintf(here.text, sizeof here.text, "rank %d", rank);
    else
        snprintf(here.text, sizeof here.text, "%s %.*s %.*s", boot, (int)in_processes, processes, (int)in_mounts,
                 mounts);
    return here;
}

static bool is_neighbour(const loading *self, int rank)
{
    return memcmp(&self->homes[rank], &self->homes[self->ranks->rank], sizeof(home)) == 0;
}

static void find_neighbours(loading *self)
{
    const home here = find_home(self->ranks->rank);
    self->ranks->gather(self->ranks, self->homes, &here, sizeof here);
    self->first = self->ranks->size;
    for (int i = self->ranks->size - 1; i >= 0; i--)
        if (is_neighbour(self, i)) {
            self->first = i;
            self->here++;
        }
}

/* ---- the first rank of a host ------------------------------------------------------------------------------------ */

/* The weights move to a separate data set, so that they can be lent. */
static int lend_weights(int *descriptor, void **note, size_t *size, shoal_outcome *outcome)
{
    shoal_data *weights = NULL;
    const void *values = NULL;
    int status = shoal_data_wrap(&weights, outcome->weights, outcome->rows, 1, SHOAL_FLOAT64);
    if (status == SHOAL_OK)
        status = data_lend(descriptor, weights);
    if (status == SHOAL_OK)
        status = shoal_data_read(&values, weights, 0, outcome->rows, NULL);
    if (status == SHOAL_OK)
        status = data_lent_describe(note, size, weights);
    if (status < 0) {
        shoal_data_free(&weights);
        return status;
    }
    base_free(&outcome->own_weights);
    outcome->weights = values;
    outcome->lent_weights = weights;
    return SHOAL_OK;
}

static int lend_rows(int *descriptor, void **note, size_t *size, shoal_outcome *outcome)
{
    const void *values = NULL;
    int status = SHOAL_OK;
    if (outcome->data_lent) { /* by the caller, who keeps the original */
        status = shoal_data_read(&values, outcome->data, 0, outcome->rows, NULL);
        if (status == SHOAL_OK)
            status = shoal_data_wrap(&outcome->data, values, outcome->rows, outcome->columns, outcome->type);
        outcome->data_lent = status < 0;
    }
    if (status == SHOAL_OK)
        status = data_lend(descriptor, outcome->data);
    if (status < 0)
        return status;
    return data_lent_describe(note, size, outcome->data);
}

/* Rows that only this process has, and weights, which are always of that kind. */
static int lend(loading *self, notice *out, base_writer *notes)
{
    shoal_outcome *outcome = self->outcome;
    void *rows = NULL, *weights = NULL;
    size_t rows_size = 0, weights_size = 0;
    int status = SHOAL_OK;
    if (data_place_of(outcome->data).kind == DATA_HERE)
        status = lend_rows(&out->rows, &rows, &rows_size, outcome);
    if (status == SHOAL_OK && outcome->weights)
        status = lend_weights(&out->weights, &weights, &weights_size, outcome);
    if (status == SHOAL_OK) { /* otherwise a message is all that follows the notice */
        base_write_bytes(notes, rows, rows_size);
        base_write_bytes(notes, weights, weights_size);
        out->rows_note = (int64_t)rows_size;
        out->weights_note = (int64_t)weights_size;
    }
    base_free(&rows);
    base_free(&weights);
    return status;
}

/* A rank that may wait for minutes leaves the cores to those that work. */
static void wait_for_first(const loading *self)
{
    const struct timespec a_moment = {.tv_nsec = 1000000};
    shoal_ranks *ranks = self->ranks;
    char done = 0;
    ranks->post_receive(ranks, &done, sizeof done, self->first);
    while (!ranks->poll(ranks))
        nanosleep(&a_moment, NULL);
}

static void wake_others(const loading *self)
{
    static const char done = 1;
    shoal_ranks *ranks = self->ranks;
    for (int i = ranks->rank + 1; i < ranks->size; i++)
        if (is_neighbour(self, i))
            ranks->post_send(ranks, &done, sizeof done, i);
    ranks->wait(ranks);
}

static int load_first(loading *self, notice *mine)
{
    base_writer notes = {0};
    int status = run_load_alone(self->outcome);
    if (status == SHOAL_OK && self->here > 1)
        status = lend(self, mine, &notes);
    const char *text = status < 0 ? shoal_error() : self->outcome->data_name;
    mine->status = status;
    mine->read_once = self->outcome->read_once;
    mine->target = self->outcome->columns_used.target;
    mine->held = self->outcome->held_rows;
    mine->own_type = self->outcome->own_type;
    mine->text = (int64_t)strlen(text) + 1;
    base_write_bytes(&notes, text, (size_t)mine->text);
    engine_must(self->ranks, base_writer_take(&notes, &self->note, &self->note_bytes));
    wake_others(self);
    return status;
}

/* ---- the others -------------------------------------------------------------------------------------------------- */

static int borrow_one(shoal_data **out, const notice *from, int descriptor, const void *note, int64_t size)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)from->process, (int)descriptor);
    return data_borrow(out, note, (size_t)size, path);
}

/* What the first one has in memory and lends. */
static int borrow(shoal_outcome *outcome, const notice *from, const char *notes)
{
    const char *name = notes + from->rows_note + from->weights_note;
    const void *weights = NULL;
    int status = SHOAL_OK;
    if (from->rows >= 0)
        status = borrow_one(&outcome->data, from, from->rows, notes, from->rows_note);
    if (status == SHOAL_OK && from->rows >= 0)
        status = run_note_data(outcome, name, shoal_data_rows(outcome->data), shoal_data_columns(outcome->data),
                               shoal_data_type(outcome->data));
    if (status == SHOAL_OK && from->weights >= 0)
        status = borrow_one(&outcome->lent_weights, from, from->weights, notes + from->rows_note, from->weights_note);
    if (status == SHOAL_OK && from->weights >= 0)
        status = shoal_data_read(&weights, outcome->lent_weights, 0, shoal_data_rows(outcome->lent_weights), NULL);
    if (status < 0) {
        shoal_data_free(&outcome->data);
        shoal_data_free(&outcome->lent_weights);
        return status;
    }
    outcome->weights = weights;
    return SHOAL_OK;
}

/* A rank that can't see what is lent reads it as the first one did, if it can still be read. */
static int load_other(loading *self, const notice *first, const char *notes)
{
    double started = base_seconds();
    if (first->status < 0)
        return shoal_fail(first->status, "%s", notes);
    int status = borrow(self->outcome, first, notes);
    if (status < 0 && first->read_once)
        return status;
    if (status < 0 || first->rows < 0)
        return run_load_alone(self->outcome);
    self->outcome->columns_used.target = first->target;
    self->outcome->own_type = (shoal_type)first->own_type;
    if (first->held > 0)
        run_arrange_note(self->outcome, first->held);
    self->outcome->load_seconds = base_seconds() - started;
    return SHOAL_OK;
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

static int64_t notice_bytes(const notice *of)
{
    return of->rows_note + of->weights_note + of->text;
}

/* Every rank gets what follows all notices, and finds the part of its host's first rank. */
static void gather_notes(char **out, const char **first, const loading *self)
{
    size_t all = 0, *bytes = NULL, before = 0;
    engine_must(self->ranks, base_alloc(&bytes, (size_t)self->ranks->size, sizeof *bytes, "what ranks tell"));
    for (int i = 0; i < self->ranks->size; i++) {
        bytes[i] = (size_t)notice_bytes(&self->notices[i]);
        before += i < self->first ? bytes[i] : 0;
        all += bytes[i];
    }
    engine_must(self->ranks, base_alloc(out, all, 1, "what ranks tell"));
    self->ranks->gather_some(self->ranks, *out, bytes, self->note ? self->note : "");
    *first = *out + before;
    base_free(&bytes);
}

static int compare_one(const loading *self, const void *bytes, size_t size, const char *what)
{
    char *named = NULL;
    engine_must(self->ranks, base_format(&named, "%s %s", what, self->outcome->data_name));
    int status = engine_compare(self->ranks, bytes, size, named);
    base_free(&named);
    return status;
}

/* A file may differ on another host though it has the same name, and a blob may be replaced while ranks open it. */
static int compare_notices(const loading *self)
{
    const shoal_outcome *outcome = self->outcome;
    const int64_t shape[] = {outcome->rows, outcome->columns, outcome->type, outcome->weights != NULL};
    const data_place place = data_place_of(outcome->data);
    const char *version = place.kind == DATA_IN_BLOB ? place.etag : "";
    int status = compare_one(self, shape, sizeof shape, "number of rows or columns, or type of values, in");
    return status == SHOAL_OK ? compare_one(self, version, strlen(version), "version of") : status;
}

static int load_all(loading *self)
{
    shoal_ranks *ranks = self->ranks;
    notice mine = {.process = getpid(), .rows = -1, .weights = -1};
    const char *first = NULL;
    char *notes = NULL;
    int status = SHOAL_OK;
    find_neighbours(self);
    if (self->first == ranks->rank)
        status = load_first(self, &mine);
    else
        wait_for_first(self);
    ranks->gather(ranks, self->notices, &mine, sizeof mine);
    gather_notes(&notes, &first, self);
    if (self->first != ranks->rank)
        status = load_other(self, &self->notices[self->first], first);
    base_free(&notes);
    status = engine_agree(ranks, status);
    return status == SHOAL_OK ? compare_notices(self) : status;
}

int run_ranks_load(shoal_outcome *outcome, shoal_ranks *ranks)
{
    loading self = {.outcome = outcome, .ranks = ranks};
    if (!ranks)
        return run_load_alone(outcome);
    engine_must(ranks, base_alloc(&self.homes, (size_t)ranks->size, sizeof *self.homes, "the hosts of ranks"));
    engine_must(ranks, base_alloc(&self.notices, (size_t)ranks->size, sizeof *self.notices, "what ranks tell"));
    int status = load_all(&self);
    base_free(&self.homes);
    base_free(&self.notices);
    base_free(&self.note);
    return status;
}
