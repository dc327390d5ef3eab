/* The rows of a run in another order, and with others among them.  See arrange.h. */
#include "arrange.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/pool.h"
#include "base/random.h"
#include "base/text.h"
#include "data/data_internal.h"
#include "data/data_place.h"
#include "data/table/data_select.h"
#include "engine/engine_internal.h"
#include "engine/source_fetch.h"
#include "learn/pick.h"
#include "load.h"
#include "target.h"

/* Rows that are no array in memory are read this many bytes at a time. */
enum { AT_ONCE_BYTES = 1 << 20 };

static learn_arrangement find_arrangement(const shoal_request *request, void *config)
{
    learn_arrangement how = {0};
    if (request->face->arrange)
        request->face->arrange(&how, config, &request->inputs);
    return how;
}

learn_arrangement run_arrangement_of(const shoal_request *request)
{
    learn_arrangement how = find_arrangement(request, (void *)(uintptr_t)request->config);
    how.held_rows = NULL;
    return how;
}

void run_arrange_note(shoal_outcome *outcome, int64_t held)
{
    const learn_arrangement how = find_arrangement(outcome->request, outcome->config);
    outcome->held_rows = held;
    if (how.held_rows)
        *how.held_rows = held;
}

/* ---- reading rows ------------------------------------------------------------------------------------------------ */

typedef struct row_reader {
    shoal_data *data;
    void *scratch; /* for rows from `first` on, `count` of them; NULL where they are an array in memory */
    int64_t first, count, at_once;
    const char *read;
} row_reader;

static int open_reader(row_reader *self, shoal_data *data, bool in_order)
{
    const size_t bytes = data_row_bytes(data);
    *self = (row_reader){.data = data, .at_once = in_order ? AT_ONCE_BYTES / ((int64_t)bytes + 1) + 1 : 1};
    return shoal_data_is_resident(data) ? SHOAL_OK : base_alloc(&self->scratch, (size_t)self->at_once, bytes, "rows");
}

/* The row lasts until the next one is read. */
static int read_row(const char **out, row_reader *self, int64_t row)
{
    const int64_t left = shoal_data_rows(self->data) - row;
    const void *read = NULL;
    if (row < self->first || row >= self->first + self->count) {
        const int64_t count = self->scratch && left > self->at_once ? self->at_once : left;
        int status = shoal_data_read(&read, self->data, row, count, self->scratch);
        if (status < 0)
            return status;
        self->first = row;
        self->count = count;
        self->read = read;
    }
    *out = self->read + (size_t)(row - self->first) * data_row_bytes(self->data);
    return SHOAL_OK;
}

/* Rows that stay in a store are fetched, all of them: this is where they are put in order. */
static int fetch_rows(shoal_outcome *outcome)
{
    shoal_data *data = outcome->data;
    const data_place place = data_place_of(data);
    const size_t bytes = (size_t)data->rows * data_row_bytes(data);
    data_buffer buffer;
    base_pool *pool = NULL;
    if (place.kind != DATA_IN_BLOB)
        return SHOAL_OK;
    data_buffer_init(&buffer, data->path, outcome->request->reading.memory);
    int status = data_buffer_reserve(&buffer, bytes);
    if (status == SHOAL_OK)
        status = base_pool_new(&pool, base_cores());
    if (status == SHOAL_OK)
        status = engine_fetch(buffer.bytes, &place, 0, bytes, pool);
    if (status == SHOAL_OK) {
        buffer.size = bytes;
        data_replace_rows(data, &buffer, data->rows);
    }
    base_pool_free(&pool);
    data_buffer_release(&buffer);
    return status;
}

/* Once rows are in another order, nobody could say where in its file a value was. */
static int check_finite(shoal_outcome *outcome)
{
    const int64_t columns = outcome->columns;
    double *values = NULL;
    row_reader reader = {0};
    const char *row = NULL;
    if (outcome->type != SHOAL_FLOAT32 && outcome->type != SHOAL_FLOAT64)
        return SHOAL_OK;
    int status = open_reader(&reader, outcome->data, true);
    if (status == SHOAL_OK)
        status = base_alloc(&values, (size_t)columns, sizeof *values, "a row");
    for (int64_t i = 0; i < outcome->rows && status == SHOAL_OK; i++) {
        status = read_row(&row, &reader, i);
        if (status == SHOAL_OK)
            shoal_convert_float64(values, row, outcome->type, columns);
        for (int64_t k = 0; k < columns && status == SHOAL_OK; k++)
            if (!isfinite(values[k]))
                status = shoal_fail(SHOAL_INVALID, "%s: row %" PRId64 ", column %" PRId64 " is %s", outcome->data_name,
                                    i + 1, k + 1, isnan(values[k]) ? "not a number" : "infinite");
    }
    base_free(&reader.scratch);
    base_free(&values);
    return status == SHOAL_INVALID ? run_explain_missing(outcome, status) : status;
}

/* ---- the rows that are held out ---------------------------------------------------------------------------------- */

typedef struct arranging {
    shoal_outcome *outcome;
    learn_arrangement how;
    shoal_request *request; /* that loads the other file, */
    shoal_outcome *held;    /* and what it loaded; NULL for none */
    double *class;          /* of the held rows, as a value of the target of DATA */
    double *row;            /* one row, where types differ */
} arranging;

/* The other file is read as DATA is, with its own target. */
static int load_held(arranging *self)
{
    const shoal_request *asked = self->outcome->request;
    const size_t size = run_request_size(asked->face);
    int status = base_alloc((char **)&self->request, size, 1, "a request");
    if (status < 0)
        return status;
    memcpy(self->request, asked, size);
    self->request->data = self->how.held;
    self->request->rows = self->request->target = NULL;
    self->request->weights = NULL;
    self->request->start = NULL;
    self->request->inputs.weights = self->request->inputs.start = NULL;
    if (self->how.held_target) {
        self->request->inputs.target = self->how.held_target;
        self->request->inputs.target_is_column = asked->inputs.of_job && asked->inputs.held_target_is_column;
    } else if (self->outcome->columns_used.target_file) {
        self->request->inputs.target = NULL;
    }
    status = run_outcome_new(&self->held, self->request);
    if (status == SHOAL_OK) {
        self->held->is_held = true;
        status = run_load_rows(self->held);
    }
    if (status == SHOAL_OK)
        status = fetch_rows(self->held);
    if (status == SHOAL_OK)
        status = check_finite(self->held);
    return status < 0 ? shoal_fail(status, "--validation: %s", shoal_error()) : SHOAL_OK;
}

static int fail_shape(const arranging *self, const char *what)
{
    return shoal_fail(SHOAL_INVALID, "--validation: %s has %s", self->held->data_name, what);
}

static int check_columns(const arranging *self)
{
    const shoal_outcome *outcome = self->outcome, *held = self->held;
    const bool lacks = outcome->columns_used.target_file && !self->how.held_target;
    char what[160];
    if (held->columns != outcome->columns) {
        snprintf(what, sizeof what, "%" PRId64 " columns with its target, but the rows to train on have %" PRId64 "%s",
                 held->columns, outcome->columns, lacks ? "; --validation-target FILE says what is known of them" : "");
        return fail_shape(self, what);
    }
    if (held->columns_used.target != outcome->columns_used.target) {
        snprintf(what, sizeof what,
                 "its target in column %" PRId64 ", but the rows to train on have it in %" PRId64 "%s",
                 held->columns_used.target, outcome->columns_used.target,
                 lacks ? "; --validation-target FILE names another" : "");
        return fail_shape(self, what);
    }
    if (!run_type_holds(outcome->type, held->type) ||
        (held->type == SHOAL_FLOAT32) + (held->type == SHOAL_FLOAT64) !=
            (outcome->type == SHOAL_FLOAT32) + (outcome->type == SHOAL_FLOAT64)) {
        snprintf(what, sizeof what, "%s values, but the rows to train on have %s", shoal_type_name(held->type),
                 shoal_type_name(outcome->type));
        return fail_shape(self, what);
    }
    return SHOAL_OK;
}

/* Names and dimensions, where both have them. */
static int check_meaning(const arranging *self)
{
    const shoal_data *data = self->outcome->data, *held = self->held->data;
    const int64_t *ours = NULL, *theirs = NULL;
    const int dimensions = shoal_data_dimensions(data, &ours), other = shoal_data_dimensions(held, &theirs);
    char what[160];
    bool same = dimensions == other;
    for (int i = 0; i < dimensions && same; i++)
        same = ours[i] == theirs[i];
    if (!same && dimensions > 1 && other > 1)
        return fail_shape(self, "images of another shape than the rows to train on");
    for (int64_t i = 0; i < data->columns && data->names && held->names; i++) {
        const char *name = shoal_data_column_name(data, i), *there = shoal_data_column_name(held, i);
        if (i == self->outcome->columns_used.target - 1 || strcmp(name, there) == 0)
            continue;
        snprintf(what, sizeof what, "a column '%.40s' where the rows to train on have '%.40s'", there, name);
        return fail_shape(self, what);
    }
    return SHOAL_OK;
}

/* ---- classes ----------------------------------------------------------------------------------------------------- */

static int compare_numbers(const void *a, const void *b)
{
    const double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

/* What is known of each row. */
static int read_target(double **out, const shoal_outcome *of)
{
    const size_t place = (size_t)(of->columns_used.target - 1) * shoal_type_size(of->type);
    row_reader reader;
    const char *row = NULL;
    int status = open_reader(&reader, of->data, true);
    if (status == SHOAL_OK)
        status = base_alloc(out, (size_t)of->rows, sizeof **out, "classes");
    for (int64_t i = 0; i < of->rows && status == SHOAL_OK; i++) {
        status = read_row(&row, &reader, i);
        if (status == SHOAL_OK)
            shoal_convert_float64(&(*out)[i], row + place, of->type, 1);
    }
    base_free(&reader.scratch);
    return status;
}

/* The number of the word among those of DATA. */
static int64_t find_word(const shoal_data *data, const char *word)
{
    int64_t at = 0;
    while (shoal_data_word(data, at) && strcmp(shoal_data_word(data, at), word) != 0)
        at++;
    return shoal_data_word(data, at) ? at : -1;
}

static int translate_words(arranging *self)
{
    const shoal_data *data = self->outcome->data, *held = self->held->data;
    if (!shoal_data_word(data, 0) != !shoal_data_word(held, 0))
        return shoal_fail(SHOAL_INVALID, "--validation: the classes of %s are %s, and those of %s are %s",
                          self->held->data_name, shoal_data_word(held, 0) ? "words" : "numbers",
                          self->outcome->data_name, shoal_data_word(data, 0) ? "words" : "numbers");
    for (int64_t i = 0; i < self->held->rows && shoal_data_word(held, 0); i++) {
        const char *word = shoal_data_word(held, (int64_t)self->class[i]);
        const int64_t place = word ? find_word(data, word) : -1;
        if (place < 0)
            return shoal_fail(SHOAL_INVALID, "--validation: row %" PRId64 " of %s is '%s', which no row of %s is",
                              i + 1, self->held->data_name, word ? word : "nothing", self->outcome->data_name);
        self->class[i] = (double)place;
    }
    return SHOAL_OK;
}

/* A class that there is nothing to learn of would be one more value of the softmax. */
static int check_classes(arranging *self)
{
    double *known = NULL;
    int64_t different = 1;
    int status = read_target(&self->class, self->held);
    if (status == SHOAL_OK)
        status = translate_words(self);
    if (status == SHOAL_OK)
        status = read_target(&known, self->outcome);
    if (status < 0)
        goto done;
    qsort(known, (size_t)self->outcome->rows, sizeof *known, compare_numbers);
    for (int64_t i = 1; i < self->outcome->rows; i++)
        if (known[i] != known[different - 1])
            known[different++] = known[i];
    for (int64_t i = 0; i < self->held->rows && status == SHOAL_OK; i++)
        if (!bsearch(&self->class[i], known, (size_t)different, sizeof *known, compare_numbers))
            status = shoal_fail(SHOAL_INVALID,
                                "--validation: row %" PRId64 " of %s is of class %.10g, which no row of %s is", i + 1,
                                self->held->data_name, self->class[i], self -> outcome -> data_name);
done:
    base_free(&known);
    return status;
}

/* ---- putting rows in order --------------------------------------------------------------------------------------- */

/* Writes a held row as one of DATA. */
static void write_held(unsigned char *to, const arranging *self, const char *from, int64_t row)
{
    const shoal_outcome *outcome = self->outcome, *held = self->held;
    const size_t size = shoal_type_size(outcome->type);
    if (held->type == outcome->type) {
        memcpy(to, from, (size_t)outcome->columns * size);
    } else {
        shoal_convert_float64(self->row, from, held->type, held->columns);
        for (int64_t i = 0; i < held->columns; i++)
            run_put_value(to + (size_t)i * size, outcome->type, self->row[i]);
    }
    run_put_value(to + (size_t)(outcome->columns_used.target - 1) * size, outcome->type, self->class[row]);
}

/* Goes through the strata: the rows of DATA that each has, and then those that are held out of it. */
static int copy_rows(unsigned char *to, const arranging *self, const shoal_shape *shape)
{
    const learn_order order =
        learn_order_of(base_random_u64(self->how.seed, BASE_FOR_ORDER, 0, 0), 0, self->outcome->rows);
    const size_t bytes = data_row_bytes(self->outcome->data);
    row_reader rows = {0}, held = {0};
    const char *row = NULL;
    int status = open_reader(&rows, self->outcome->data, !self->how.shuffle);
    if (status == SHOAL_OK && self->held)
        status = open_reader(&held, self->held->data, true);
    for (int64_t s = 0, own = 0, other = 0; s < shape->strata && status == SHOAL_OK; s++) {
        const learn_stratum of = learn_stratum_at(shape, s);
        const int64_t drawn = self->held ? of.drawn : of.rows;
        for (int64_t i = 0; i < of.rows && status == SHOAL_OK; i++, to += bytes) {
            if (i < drawn) {
                status = read_row(&row, &rows, self->how.shuffle ? learn_order_row(&order, own) : own);
                own++;
            } else {
                status = read_row(&row, &held, other++);
            }
            if (status == SHOAL_OK && i < drawn)
                memcpy(to, row, bytes);
            else if (status == SHOAL_OK)
                write_held(to, self, row, other - 1);
        }
    }
    base_free(&rows.scratch);
    base_free(&held.scratch);
    if (status == SHOAL_OK && self->held)
        status = shoal_data_check(self->held->data);
    return status == SHOAL_OK ? shoal_data_check(self->outcome->data) : status;
}

/* The shape that the run will have, with all rows. */
static int find_shape(shoal_shape *out, const arranging *self, int64_t all)
{
    shoal_outcome *outcome = self->outcome;
    shoal_data *whole = NULL;
    int status = data_new(&whole, outcome->data_name, 0);
    if (status == SHOAL_OK)
        status = data_set_shape(whole, (uint64_t)all, (uint64_t)outcome->columns, outcome->type);
    if (status == SHOAL_OK)
        status = engine_fill_shape(out, outcome->algorithm, outcome->config, whole, NULL,
                                   outcome->request->place.rows_per_grain);
    shoal_data_free(&whole);
    return status;
}

static int arrange_rows(arranging *self)
{
    shoal_outcome *outcome = self->outcome;
    const int64_t held = self->held ? self->held->rows : 0, all = outcome->rows + held;
    const size_t bytes = data_row_bytes(outcome->data);
    shoal_shape shape;
    data_buffer buffer;
    if (outcome->data_lent) { /* the caller's rows stay as they are */
        int status = data_alias(&outcome->data, outcome->request->rows);
        if (status < 0)
            return status;
        outcome->data_lent = false;
    }
    data_buffer_init(&buffer, outcome->data->path, outcome->request->reading.memory);
    run_arrange_note(outcome, held);
    int status = find_shape(&shape, self, all);
    if (status == SHOAL_OK)
        status = data_buffer_reserve(&buffer, (size_t)all * bytes);
    if (status == SHOAL_OK && self->held)
        status = base_alloc(&self->row, (size_t)self->held->columns, sizeof *self->row, "a row");
    if (status == SHOAL_OK)
        status = copy_rows(buffer.bytes, self, &shape);
    if (status == SHOAL_OK) {
        buffer.size = (size_t)all * bytes;
        data_replace_rows(outcome->data, &buffer, all);
        outcome->rows = all;
    }
    data_buffer_release(&buffer);
    return status == SHOAL_OK && self->held ? base_copy_text(&outcome->held_name, self->held->data_name) : status;
}

int run_arrange(shoal_outcome *outcome)
{
    arranging self = {.outcome = outcome, .how = find_arrangement(outcome->request, outcome->config)};
    int status = SHOAL_OK;
    if (!run_is_learning(outcome) || !(self.how.held || self.how.shuffle))
        return SHOAL_OK;
    if (outcome->request->data && run_is_in_store(outcome->request->data) && run_on_workers(&outcome->request->workers))
        return shoal_fail(SHOAL_USAGE,
                          self.how.shuffle
                              ? "--shuffle-rows: the rows of %s stay in their store, in their order: shuffle them "
                                "before, by shoal data pack --shuffle or shoal data split; or fetch them first with "
                                "shoal store get"
                              : "--validation: the rows of %s stay in their store, and no others can be put among "
                                "them: hold out a share of them; or fetch them first with shoal store get",
                          outcome->request->data);
    status = fetch_rows(outcome);
    if (status == SHOAL_OK)
        status = check_finite(outcome);
    if (status == SHOAL_OK && self.how.held)
        status = load_held(&self);
    if (status == SHOAL_OK && self.held)
        status = check_columns(&self);
    if (status == SHOAL_OK && self.held)
        status = check_meaning(&self);
    if (status == SHOAL_OK && self.held)
        status = check_classes(&self);
    if (status == SHOAL_OK)
        status = arrange_rows(&self);
    if (self.held)
        outcome->read_once |= self.held->read_once;
    shoal_outcome_free(&self.held);
    base_free(&self.request);
    base_free(&self.class);
    base_free(&self.row);
    return status;
}
