/* Measuring learners.  See measure_learner.h.
 *
 * Each shape is run with few rows, which shows what a round takes however little there is to do, and with so many that
 * the time given is used.  Of several runs the quickest counts, and of its time what the processor gave to it: what
 * else the machine does only adds.  Errors count as shares, since rounds take from microseconds to seconds.
 *
 * Where all of this takes too long, since the machine is busy, runs are stopped after a round, and what is left of the
 * shapes is left out. */
#include "measure_learner.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <shoal/engine.h>

#include "base/memory.h"
#include "base/pool.h"
#include "base/sort.h"
#include "learn/face.h"
#include "measure_busy.h"
#include "plan/least_squares.h"

/* How much longer than it should all of it may take: this factor, or so many seconds. */
static const double LATE = 1.25, LATE_LEAST = 2;

enum { FEW_ROWS = 2000, VALUES_MOST = 1 << 24, POINTS_MOST = 4 * LEARN_PROBES_MOST, CONSTANTS = 5 };

/* ---- measuring --------------------------------------------------------------------------------------------------- */

/* What one round of a phase took, and what it had to do. */
typedef struct point {
    char phase[24];
    double seconds, rows, columns, operations, model;
} point;

typedef struct measuring {
    const learn_face *face;
    const volatile int *stop;
    double share; /* of the time, for the larger run of one shape */
    double until; /* when all has to end, once there is enough for a fit */
    int shapes;   /* that were measured, with few rows and with many */
    int halt;     /* told to the run */
    double busy;  /* share of the processor that others had during the last run of one thread */
    struct part { /* of that run, by phase: what the processor gave to it */
        char phase[24];
        double processor;
    } part[SHOAL_COST_PHASES];
    int parts;
    double before; /* what the processor had given to the thread at the end of the last round */
    point point[POINTS_MOST * SHOAL_COST_PHASES];
    int points;
    double loss[LEARN_PROBES_MOST];
    int losses;
} measuring;

/* One shape with its rows. */
typedef struct example {
    void *config;
    float *values;
    shoal_shape shape;
} example;

static int set_example_config(example *self, const learn_face *face, int shape)
{
    const shoal_option *table = face->algorithm->options;
    const learn_probe *probe = face->probe;
    const char *size = probe->shape[shape].size;
    int status = base_alloc(&self->config, 1, face->algorithm->config_size, "a learner's settings");
    if (status == SHOAL_OK)
        status = shoal_options_default(self->config, table);
    for (int i = 0; status == SHOAL_OK && probe->set[i][0]; i++)
        status = shoal_options_set(self->config, table, probe->set[i][0], probe->set[i][1]);
    if (status == SHOAL_OK)
        status = probe->size_option ? shoal_options_set(self->config, table, probe->size_option, size)
                                    : shoal_options_set(self->config, face->plan_options, "classes", size);
    return status;
}

/* Classes that the first columns say something about, and that no plane parts. */
static void make_labels(float *values, int64_t rows, int64_t columns, int64_t classes)
{
    for (int64_t i = 0; i < rows; i++) {
        float *row = values + i * columns;
        double mixed = 0.5 * row[0] + 0.2 * row[columns / 2] + 0.3 * row[columns - 1];
        row[columns - 1] = (float)fmin(floor(mixed * (double)classes), (double)classes - 1);
    }
}

int plan_measure_rows(float **out, int64_t rows, int64_t columns, int64_t classes, int seed)
{
    char address[128];
    shoal_data *data = NULL;
    const void *made = NULL;
    size_t count = (size_t)rows * (size_t)columns;
    snprintf(address, sizeof address, "gen:uniform?rows=%lld&cols=%lld&seed=%d", (long long)rows, (long long)columns,
             seed);
    int status = base_alloc_unset(out, count, sizeof **out, "generated rows");
    if (status == SHOAL_OK)
        status = shoal_data_open(&data, address, NULL);
    if (status == SHOAL_OK)
        status = shoal_data_read(&made, data, 0, rows, *out);
    if (status == SHOAL_OK && made != *out)
        memcpy(*out, made, count * sizeof **out);
    if (status == SHOAL_OK && classes > 0)
        make_labels(*out, rows, columns, classes);
    shoal_data_free(&data);
    return status;
}

/* With a column of labels where the learner needs one. */
static int make_example_rows(example *self, const learn_probe *probe, int shape, int64_t rows)
{
    const int64_t classes = probe->size_option ? 0 : atoi(probe->shape[shape].size);
    const int64_t columns = probe->shape[shape].columns + (classes > 0);
    self->shape = (shoal_shape){.rows = rows, .columns = columns, .type = SHOAL_FLOAT32};
    base_free(&self->values);
    return plan_measure_rows(&self->values, rows, columns, classes, shape + 1);
}

static bool is_over(const measuring *self)
{
    return self->shapes > 0 && base_seconds() >= self->until;
}

static void look_at_clock(void *context, const shoal_round *done, const shoal_round *next, int64_t rows, double seconds)
{
    measuring *self = context;
    (void)next, (void)rows, (void)seconds;
    double now = plan_thread_seconds();
    int at = 0;
    while (at < self->parts && strcmp(self->part[at].phase, done->phase) != 0)
        at++;
    if (at == self->parts && self->parts < SHOAL_COST_PHASES) {
        self->part[at] = (struct part){0};
        memcpy(self->part[at].phase, done->phase, sizeof done->phase);
        self->parts++;
    }
    if (at < self->parts)
        self->part[at].processor += now - self->before;
    self->before = now;
    self->halt = is_over(self) || *self->stop;
}

/* What the processor gave to each phase of a run of one thread, where that is less than what passed: the rest was
 * others'. */
static void leave_out_others(shoal_report *report, const measuring *self)
{
    for (int i = 0; i < report->phases; i++)
        for (int j = 0; j < self->parts; j++)
            if (strcmp(report->phase[i].name, self->part[j].phase) == 0)
                report->phase[i].seconds = fmin(report->phase[i].seconds, self->part[j].processor);
}

/* One run, with the seconds of a single thread as its processor counts them.  One that was stopped by the clock counts
 * as far as it came. */
static int run_once(shoal_report *out, measuring *of, const example *self, int threads)
{
    const shoal_run_options options = {
        .threads = threads, .progress = look_at_clock, .progress_context = of, .stop = &of->halt};
    shoal_data *data = NULL;
    shoal_result *result = NULL;
    of->halt = *of->stop;
    int status = shoal_data_wrap(&data, self->values, self->shape.rows, self->shape.columns, self->shape.type);
    double began = base_seconds(), had = plan_thread_seconds();
    of->parts = 0;
    of->before = had;
    if (status == SHOAL_OK)
        status = shoal_run(&result, out, of->face->algorithm, self->config, data, NULL, &options);
    double processor = plan_thread_seconds() - had, wall = base_seconds() - began;
    if (threads == 1 && (status == SHOAL_OK || status == SHOAL_STOPPED)) {
        leave_out_others(out, of);
        of->busy = plan_busy_share(processor, wall);
    }
    shoal_result_free(&result);
    shoal_data_free(&data);
    if ((status == SHOAL_OK || status == SHOAL_STOPPED) && *of->stop)
        return shoal_fail(SHOAL_STOPPED, "stopped");
    return status == SHOAL_STOPPED ? SHOAL_OK : status;
}

/* Runs it so often, and leaves in *out the report with the least seconds of each phase. */
static int run_example(shoal_report *out, measuring *of, const example *self, int threads, int times)
{
    int status = run_once(out, of, self, threads);
    for (int i = 1; i < times && status == SHOAL_OK && !is_over(of); i++) {
        shoal_report again = {0};
        status = run_once(&again, of, self, threads);
        bool whole = status == SHOAL_OK && !of->halt && again.phases == out->phases;
        for (int j = 0; whole && j < out->phases; j++)
            out->phase[j].seconds = fmin(out->phase[j].seconds, again.phase[j].seconds);
    }
    return status;
}

static double seconds_of_rounds(const shoal_report *report)
{
    double sum = 0;
    for (int i = 0; i < report->phases; i++)
        sum += report->phase[i].rounds > 0 ? report->phase[i].seconds : 0;
    return sum;
}

/* Seconds a round of the main phase. */
static double main_seconds(const shoal_report *report)
{
    const shoal_phase *last = &report->phase[report->phases - 1];
    return last->seconds / fmax((double)last->rounds, 1);
}

static int add_points(measuring *self, const shoal_report *report, const example *example)
{
    shoal_cost cost = {0};
    int status = self->face->algorithm->cost(&cost, example->config, &example->shape);
    if (status == SHOAL_OK && cost.phases == 0) {
        cost.phase[0] = (shoal_cost_phase){
            .name = "run", .operations_per_row = cost.operations_per_row, .model_bytes = cost.model_bytes};
        cost.phases = 1;
    }
    for (int i = 0; i < cost.phases && status == SHOAL_OK; i++)
        for (int j = 0; j < report->phases; j++) {
            const shoal_phase *phase = &report->phase[j];
            if (strcmp(phase->name, cost.phase[i].name) != 0 || phase->rounds == 0)
                continue;
            point *point = &self->point[self->points++];
            *point = (struct point){.seconds = fmax(phase->seconds / (double)phase->rounds, 1e-9),
                                    .rows = (double)example->shape.rows,
                                    .columns = (double)example->shape.columns,
                                    .operations = cost.phase[i].operations_per_row,
                                    .model = cost.phase[i].model_bytes};
            snprintf(point->phase, sizeof point->phase, "%s", phase->name);
        }
    return status;
}

/* So many rows that a run takes its share of the time, with what others leave of the processor, as far as memory and
 * sense go. */
static int64_t more_rows(const measuring *self, const example *few, const shoal_report *report)
{
    double rows = FEW_ROWS * self->share * (1 - self->busy) / fmax(seconds_of_rounds(report), 1e-6);
    return (int64_t)fmax(fmin(rows, (double)(VALUES_MOST / few->shape.columns)), 2 * FEW_ROWS);
}

static int measure_threads(measuring *self, const example *example, const shoal_report *single)
{
    shoal_report several;
    int threads = base_cores();
    if (threads < 2 || self->busy > PLAN_BUSY_LEAST || is_over(self)) /* what others take is not what threads lose */
        return SHOAL_OK;
    int status = run_example(&several, self, example, threads, 2);
    if (status == SHOAL_OK && !self->halt) {
        double ratio = main_seconds(&several) / fmax(main_seconds(single), 1e-9);
        self->loss[self->losses++] = fmin(fmax((threads * ratio - 1) / (threads - 1), 0), 1);
    }
    return status;
}

static int measure_shape(measuring *self, int shape)
{
    example example = {0};
    shoal_report report;
    int status = set_example_config(&example, self->face, shape);
    if (status == SHOAL_OK)
        status = make_example_rows(&example, self->face->probe, shape, FEW_ROWS);
    if (status == SHOAL_OK)
        status = run_example(&report, self, &example, 1, 3);
    if (status == SHOAL_OK)
        status = add_points(self, &report, &example);
    const bool more = status == SHOAL_OK && !is_over(self);
    if (more)
        status = make_example_rows(&example, self->face->probe, shape, more_rows(self, &example, &report));
    if (status == SHOAL_OK && more)
        status = run_example(&report, self, &example, 1, 2);
    if (status == SHOAL_OK && more)
        status = add_points(self, &report, &example);
    self->shapes += status == SHOAL_OK && more;
    if (status == SHOAL_OK && more)
        status = measure_threads(self, &example, &report);
    base_free(&example.config);
    base_free(&example.values);
    return status;
}

/* ---- fitting ----------------------------------------------------------------------------------------------------- */

static int fit_phase(shoal_pace *out, const measuring *self, const char *phase)
{
    double *a = NULL, b[POINTS_MOST * SHOAL_COST_PHASES], x[CONSTANTS] = {0};
    int rows = 0;
    int status = base_alloc(&a, (size_t)self->points * CONSTANTS, sizeof *a, "a fit");
    for (int i = 0; i < self->points && status == SHOAL_OK; i++) {
        const point *point = &self->point[i];
        if (strcmp(point->phase, phase) != 0)
            continue;
        const double line[CONSTANTS] = {point->rows * point->columns, point->rows * point->operations, 1, point->model,
                                        point->rows};
        for (int j = 0; j < CONSTANTS; j++)
            a[rows * CONSTANTS + j] = line[j] / point->seconds;
        b[rows++] = 1;
    }
    if (status == SHOAL_OK)
        status = plan_least_squares(x, a, b, rows, CONSTANTS);
    base_free(&a);
    *out = (shoal_pace){.value = x[0], .operation = x[1], .round = x[2], .model_byte = x[3], .row = x[4]};
    snprintf(out->learner, sizeof out->learner, "%s", self->face->algorithm->name);
    snprintf(out->phase, sizeof out->phase, "%s", phase);
    return status;
}

static int fit_phases(shoal_pace *pace, int *paces, const measuring *self)
{
    int status = SHOAL_OK;
    *paces = 0;
    for (int i = 0; i < self->points && status == SHOAL_OK; i++) {
        bool known = false;
        for (int j = 0; j < *paces; j++)
            known |= strcmp(pace[j].phase, self->point[i].phase) == 0;
        if (!known && *paces < SHOAL_COST_PHASES)
            status = fit_phase(&pace[(*paces)++], self, self->point[i].phase);
    }
    return status;
}

int plan_measure_learner(shoal_pace *pace, int *paces, double *thread_loss, const shoal_algorithm *algorithm,
                         double seconds, const volatile int *stop)
{
    const learn_face *face = learn_face_find(algorithm->name);
    measuring *self = NULL;
    int shapes = 0;
    *paces = 0;
    *thread_loss = NAN;
    if (!face || face->algorithm != algorithm || !face->probe)
        return shoal_fail(SHOAL_USAGE, "%s cannot be measured", algorithm->name);
    int status = base_alloc(&self, 1, sizeof *self, "measurements");
    if (status < 0)
        return status;
    self->face = face;
    self->stop = stop;
    while (shapes < LEARN_PROBES_MOST && face->probe->shape[shapes].columns > 0)
        shapes++;
    self->share = seconds / shapes / 4; /* twice with one thread, twice with all; making the rows */
    self->until = base_seconds() + fmax(LATE * seconds, LATE_LEAST);
    for (int i = 0; i < shapes && status == SHOAL_OK && !is_over(self); i++)
        status = measure_shape(self, i);
    if (status == SHOAL_OK)
        status = fit_phases(pace, paces, self);
    if (self->losses > 0) {
        base_sort_reals(self->loss, (size_t)self->losses);
        *thread_loss = self->loss[self->losses / 4]; /* what else the machine does only adds to it */
    }
    base_free(&self);
    return status;
}
