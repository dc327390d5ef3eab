/* Probing a learner.  See measure_probe.h. */
#include "measure_probe.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <shoal/engine.h>
#include <shoal/error.h>

#include "base/memory.h"
#include "base/pool.h"
#include "measure_learner.h"

enum { ROWS_LEAST = 64, VALUES_MOST = 1 << 24, SHRINK = 4 };
static const double OPERATIONS_MOST = 4e9; /* of a round, which can't be broken off */

typedef struct probe {
    const plan_probe *what;
    shoal_cost cost;
    shoal_shape shape; /* of the rows that are held */
    void *values;
    int stop;     /* told to the run */
    double until; /* when it is set */
    bool whole;   /* the rows that were run were all of the data, and the learner ended by itself */
} probe;

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static int make_probe_rows(probe *self)
{
    float *values = NULL;
    self->shape.type = SHOAL_FLOAT32;
    int status = plan_measure_rows(&values, self->shape.rows, self->shape.columns, self->what->classes, 1);
    self->values = values;
    return status;
}

/* Runs of rows from all over the data: files are often sorted. */
static int take_probe_rows(probe *self)
{
    shoal_data *data = self->what->data;
    enum { PLACES = 64 };
    size_t row_bytes = (size_t)self->shape.columns * shoal_type_size(self->shape.type);
    int64_t wanted = self->shape.rows, all = shoal_data_rows(data), taken = 0;
    int status = base_alloc_unset(&self->values, (size_t)wanted, row_bytes, "rows for a probe");
    for (int place = 0; place < PLACES && status == SHOAL_OK; place++) {
        int64_t count = wanted * (place + 1) / PLACES - taken, first = (all - count) * place / (PLACES - 1);
        const void *rows = NULL;
        if (count == 0)
            continue;
        char *to = (char *)self->values + (size_t)taken * row_bytes;
        status = shoal_data_read(&rows, data, first, count, to);
        if (status == SHOAL_OK && rows != to)
            memcpy(to, rows, (size_t)count * row_bytes);
        taken += count;
    }
    return status == SHOAL_OK ? shoal_data_check(data) : status;
}

/* ---- runs -------------------------------------------------------------------------------------------------------- */

static void look_at_clock(void *context, const shoal_round *done, const shoal_round *next, int64_t rows, double seconds)
{
    probe *self = context;
    (void)done;
    (void)next;
    (void)rows;
    (void)seconds;
    if (base_seconds() >= self->until || *self->what->stop)
        self->stop = 1;
}

/* Runs the first `rows` of the rows until the time is over.  *out has what was done by then. */
static int run_probe(shoal_report *out, probe *self, int64_t rows, int threads, double seconds)
{
    const shoal_run_options options = {
        .threads = threads, .progress = look_at_clock, .progress_context = self, .stop = &self->stop};
    shoal_data *data = NULL;
    shoal_result *result = NULL;
    self->stop = 0;
    self->until = base_seconds() + seconds;
    int status = shoal_data_wrap(&data, self->values, rows, self->shape.columns, self->shape.type);
    if (status == SHOAL_OK)
        status = shoal_run(&result, out, self->what->algorithm, self->what->config, data, NULL, &options);
    shoal_result_free(&result);
    shoal_data_free(&data);
    if (*self->what->stop)
        return shoal_fail(SHOAL_STOPPED, "stopped");
    return status == SHOAL_STOPPED ? SHOAL_OK : status;
}

/* 0 when none was finished. */
static double rounds_in(const shoal_report *report, const char *phase)
{
    for (int i = 0; i < report->phases; i++)
        if (strcmp(report->phase[i].name, phase) == 0)
            return (double)report->phase[i].rounds;
    return 0;
}

/* Seconds of a round of a phase; 0 when none was finished. */
static double round_seconds(const shoal_report *report, const char *phase)
{
    for (int i = 0; i < report->phases; i++)
        if (strcmp(report->phase[i].name, phase) == 0 && report->phase[i].rounds > 0)
            return report->phase[i].seconds / (double)report->phase[i].rounds;
    return 0;
}

/* Once more, and of each phase the quicker counts: what else the machine does only adds. */
static int run_again(shoal_report *best, probe *self, int64_t rows, int threads, double seconds)
{
    shoal_report again = {0};
    int status = run_probe(&again, self, rows, threads, seconds);
    for (int i = 0; i < best->phases && status == SHOAL_OK; i++) {
        double least = round_seconds(&again, best->phase[i].name);
        if (least > 0)
            best->phase[i].seconds = fmin(best->phase[i].seconds, least * (double)best->phase[i].rounds);
    }
    return status;
}

static bool has_all(const probe *self, const shoal_report *report)
{
    int last = self->cost.phases - 1;
    bool all = round_seconds(report, self->cost.phase[last].name) > 0;
    for (int i = 0; i < last; i++)
        all &= self->cost.phase[i].rounds < 1 || round_seconds(report, self->cost.phase[i].name) > 0;
    return all;
}

/* What a row takes is the difference between many and few; the rest is the round's own. */
static void fit_probe(shoal_pace *pace, const probe *self, const char *phase, const shoal_report *many, int64_t rows,
                      const shoal_report *few, int64_t few_rows)
{
    double more = round_seconds(many, phase), less = round_seconds(few, phase);
    double row = less > 0 ? (more - less) / (double)(rows - few_rows) : more / (double)rows;
    row = fmax(row, 0.5 * more / (double)rows);
    row = fmin(row, more / (double)rows);
    *pace = (shoal_pace){.value = row / (double)self->shape.columns,
                         .round = fmax(more - row * (double)rows, 0),
                         .rounds = self->whole ? rounds_in(many, phase) : 0};
    snprintf(pace->learner, sizeof pace->learner, "%s", self->what->algorithm->name);
    snprintf(pace->phase, sizeof pace->phase, "%s", phase);
}

/* ---- together ---------------------------------------------------------------------------------------------------- */

/* So many rows that the run comes through all phases in its time: fewer and fewer until it does. */
static int find_rows(int64_t *rows, shoal_report *report, probe *self, double seconds)
{
    for (*rows = self->shape.rows; *rows >= ROWS_LEAST; *rows /= SHRINK) {
        int status = run_probe(report, self, *rows, 1, seconds / 3);
        if (status == SHOAL_OK && has_all(self, report)) {
            self->whole = self->what->data && *rows == self->what->shape.rows && !self->stop;
            return SHOAL_OK;
        }
        if (status < 0 && *rows < self->shape.rows)
            break; /* fewer rows than clusters, say */
        if (status < 0)
            return status;
    }
    return shoal_fail(SHOAL_ABSENT, "a probe of %s did not come through all its phases", self->what->algorithm->name);
}

static int measure(shoal_pace *pace, int *paces, double *thread_loss, probe *self)
{
    const double seconds = self->what->seconds;
    shoal_report many = {0}, few = {0}, together = {0};
    int64_t rows = 0;
    int threads = base_cores();
    double ends = base_seconds() + seconds;
    int status = find_rows(&rows, &many, self, seconds);
    bool slow = base_seconds() >= ends; /* a round, or an update, that can't be broken off: once is enough */
    if (status == SHOAL_OK && !slow)
        status = run_again(&many, self, rows, 1, seconds / 3);
    if (status == SHOAL_OK && !slow && run_probe(&few, self, rows / SHRINK, 1, seconds / 6) < 0)
        few = (shoal_report){0}; /* that few are refused: all time counts as the rows' */
    if (status == SHOAL_OK && !slow && threads > 1)
        status = run_probe(&together, self, rows, threads, seconds / 6);
    if (status == SHOAL_OK && !slow && threads > 1)
        status = run_again(&together, self, rows, threads, seconds / 6);
    for (int i = 0; i < self->cost.phases && status == SHOAL_OK; i++)
        if (round_seconds(&many, self->cost.phase[i].name) > 0)
            fit_probe(&pace[(*paces)++], self, self->cost.phase[i].name, &many, rows, &few, rows / SHRINK);
    *thread_loss = NAN;
    const char *last = self->cost.phase[self->cost.phases - 1].name;
    if (status == SHOAL_OK && round_seconds(&together, last) > 0) {
        double ratio = round_seconds(&together, last) / round_seconds(&many, last);
        *thread_loss = fmin(fmax((threads * ratio - 1) / (threads - 1), 0), 1);
    }
    return status;
}

int plan_measure_probe(shoal_pace *pace, int *paces, double *thread_loss, const plan_probe *what)
{
    const shoal_shape *shape = &what->shape;
    probe self = {.what = what, .shape = *shape};
    *paces = 0;
    int status = what->algorithm->cost(&self.cost, what->config, shape);
    double most =
        fmin((double)VALUES_MOST / (double)shape->columns, OPERATIONS_MOST / fmax(self.cost.operations_per_row, 1));
    self.shape.rows = (int64_t)fmin((double)shape->rows, most);
    if (status == SHOAL_OK && self.cost.phases == 0)
        status = shoal_fail(SHOAL_ABSENT, "%s does not tell its phases", what->algorithm->name);
    if (status == SHOAL_OK && self.shape.rows < ROWS_LEAST)
        status =
            shoal_fail(SHOAL_ABSENT, "a probe could have %lld rows, which are too few", (long long)self.shape.rows);
    if (status == SHOAL_OK)
        status = what->data ? take_probe_rows(&self) : make_probe_rows(&self);
    if (status == SHOAL_OK)
        status = measure(pace, paces, thread_loss, &self);
    base_free(&self.values);
    return status;
}
