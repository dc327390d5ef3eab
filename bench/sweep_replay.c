/* Sweeps on tables of measured trials, in virtual time: how soon simulated workers come near the best of a table.
 *
 *     bench_sweep_replay curves TABLE ROWS PARAMETERS STEPS WORKERS SAMPLER STOPPER SEEDS
 *     bench_sweep_replay values TABLE SPACE.json SAMPLER SEEDS TRIALS
 *
 * A table of curves has, for each row as float64, its parameters, its final value (known to us alone) and its values
 * after 0 to STEPS steps, NaN where it diverged; the sweep chooses among the rows.  For each seed the program prints
 * when some trial was first within 20% and 5% of the way from the median row to the best.  A table of values has one
 * for each point of a space of lists, the last parameter changing fastest; what is printed for each seed is the best
 * after 30, 50 and all trials, and the seconds of processor time that the last suggestion took.
 *
 * Each row takes its own time for a step, e to the power of a normal number of deviation 0.3. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <shoal/error.h>

#include "base/memory.h"
#include "base/random.h"
#include "sweep/course.h"

static void check(int status)
{
    if (status >= 0)
        return;
    fprintf(stderr, "%s\n", shoal_error());
    exit(1);
}

static double *read_table(const char *path, int64_t count)
{
    double *table = NULL;
    FILE *file = fopen(path, "rb");
    check(base_alloc(&table, (size_t)count, sizeof *table, "a table"));
    if (!file || fread(table, sizeof *table, (size_t)count, file) != (size_t)count) {
        fprintf(stderr, "%s: does not have %" PRId64 " numbers\n", path, count);
        exit(1);
    }
    fclose(file);
    return table;
}

/* ---- curves ------------------------------------------------------------------------------------------------------ */

typedef struct world {
    const double *table;
    int64_t rows, parameters, steps, width, workers;
    sweep_space *space;
    sweep_point *pool;
    bool *used;
    double *pace;
    double target[2];
} world;

/* A worker that is busy with an order until some time. */
typedef struct worker {
    int64_t order, row;
    double began, until;
} worker;

static const double *curve_of(const world *w, int64_t row)
{
    return w->table + row * w->width + w->parameters;
}

/* The parameters, all of them along the logarithm. */
static void make_space(world *w)
{
    json_t *json = json_object();
    char name[32];
    for (int64_t p = 0; p < w->parameters; p++) {
        double low = INFINITY, high = -INFINITY;
        for (int64_t r = 0; r < w->rows; r++) {
            low = fmin(low, w->table[r * w->width + p]);
            high = fmax(high, w->table[r * w->width + p]);
        }
        snprintf(name, sizeof name, "p%" PRId64, p);
        json_object_set_new(json, name, json_pack("{s:f,s:f,s:s}", "low", low, "high", high, "scale", "log"));
    }
    check(sweep_space_of_json(&w->space, "the table", json));
    json_decref(json);
    check(base_alloc(&w->pool, (size_t)w->rows, sizeof *w->pool, "points"));
    check(base_alloc(&w->used, (size_t)w->rows, sizeof *w->used, "points"));
    check(base_alloc(&w->pace, (size_t)w->rows, sizeof *w->pace, "points"));
    for (int64_t r = 0; r < w->rows; r++)
        for (int64_t p = 0; p < SWEEP_PARAMETERS_MOST; p++)
            w->pool[r].value[p] = p < w->parameters ? w->table[r * w->width + p] : (double)NAN;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* 20% and 5% of the gap from the best to the median, by the values at the end. */
static void set_targets(world *w)
{
    double *last = NULL;
    int64_t count = 0;
    check(base_alloc(&last, (size_t)w->rows, sizeof *last, "values"));
    for (int64_t r = 0; r < w->rows; r++) {
        double least = INFINITY;
        for (int64_t s = 0; s <= w->steps; s++)
            least = isnan(curve_of(w, r)[s]) ? INFINITY : fmin(least, curve_of(w, r)[s]);
        if (isfinite(least))
            last[count++] = least;
    }
    qsort(last, (size_t)count, sizeof *last, ascending);
    const double best = last[0], median = (last[(count - 1) / 2] + last[count / 2]) / 2;
    w->target[0] = best + 0.2 * (median - best);
    w->target[1] = best + 0.05 * (median - best);
    base_free(&last);
}

static double normal(uint64_t seed, uint64_t index)
{
    const double a = base_random_unit(seed, BASE_FOR_DATA, index, 0),
                 b = base_random_unit(seed, BASE_FOR_DATA, index, 1);
    return sqrt(-2 * log(1 - a)) * cos(2 * 3.14159265358979323846 * b);
}

static int64_t row_of(const world *w, const sweep_point *point)
{
    for (int64_t r = 0; r < w->rows; r++)
        if (!w->used[r] && memcmp(w->pool[r].value, point->value, (size_t)w->parameters * sizeof(double)) == 0)
            return r;
    return -1;
}

/* What became of an order, and when a target was first met on the way. */
static sweep_result end_order(const world *w, const sweep_order *order, const worker *at, double reached[2])
{
    const double *curve = curve_of(w, at->row);
    sweep_result result = {.order = at->order, .step = order->until, .value = INFINITY};
    for (int64_t s = 0; s <= order->until; s++) {
        if (isnan(curve[s])) {
            result.failed = true;
            break;
        }
        result.value = fmin(result.value, curve[s]);
        const double when = at->began + (double)(s - order->from) * w->pace[at->row];
        for (int t = 0; t < 2 && s > order->from; t++)
            if (result.value <= w->target[t])
                reached[t] = fmin(reached[t], when);
    }
    return result;
}

static void replay_curves(world *w, const sweep_sampler *sampler, const sweep_stopper *stopper, uint64_t seed,
                          int64_t eta, int64_t least)
{
    sweep_rules rules = {.space = w->space,
                         .sampler = sampler,
                         .stopper = stopper,
                         .seed = seed,
                         .trials = w->rows,
                         .goal = -INFINITY,
                         .rungs = {.eta = eta}};
    sweep_course course;
    worker busy[1024];
    int64_t count = 0, *row = NULL;
    double now = 0, reached[2] = {INFINITY, INFINITY};
    stopper->lay(&rules.rungs, w->steps, least);
    sweep_course_init(&course, &rules);
    check(base_alloc(&row, (size_t)w->rows, sizeof *row, "rows"));
    memset(w->used, 0, (size_t)w->rows * sizeof *w->used);
    course.pool = w->pool;
    course.used = w->used;
    course.pools = w->rows;
    for (int64_t r = 0; r < w->rows; r++)
        w->pace[r] = exp(0.3 * normal(seed + 1, (uint64_t)r));
    for (;;) {
        sweep_order order;
        while (count < w->workers && sweep_course_give(&course, &order) == SHOAL_OK) {
            if (order.from == 0) {
                row[order.trial] = row_of(w, &course.trial[order.trial].point);
                w->used[row[order.trial]] = true;
            }
            const int64_t r = row[order.trial];
            busy[count++] = (worker){.order = course.orders - 1,
                                     .row = r,
                                     .began = now,
                                     .until = now + (double)(order.until - order.from) * w->pace[r]};
        }
        if (count == 0 || now > reached[1])
            break;
        int64_t first = 0;
        for (int64_t i = 1; i < count; i++)
            first = busy[i].until < busy[first].until ? i : first;
        now = busy[first].until;
        const sweep_result result = end_order(w, &course.order[busy[first].order], &busy[first], reached);
        check(sweep_course_take(&course, &result));
        busy[first] = busy[--count];
    }
    printf("%.6g %.6g\n", reached[0], reached[1]);
    base_free(&row);
    sweep_course_release(&course);
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

static double processor_seconds(void)
{
    struct timespec at;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
    return (double)at.tv_sec + 1e-9 * (double)at.tv_nsec;
}

static void replay_values(const sweep_space *space, const double *table, const sweep_sampler *sampler, uint64_t seed,
                          int64_t trials)
{
    sweep_rules rules = {.space = space,
                         .sampler = sampler,
                         .stopper = &sweep_stopper_none,
                         .seed = seed,
                         .trials = trials,
                         .goal = -INFINITY,
                         .rungs = {.eta = 3, .count = 1, .step = {1}}};
    sweep_course course;
    double took = 0;
    sweep_course_init(&course, &rules);
    for (int64_t i = 0; i < trials; i++) {
        sweep_order order;
        const double began = processor_seconds();
        check(sweep_course_give(&course, &order));
        took = processor_seconds() - began;
        int64_t at = 0;
        for (int p = 0; p < space->parameters; p++)
            at = at * space->parameter[p].values + (int64_t)course.trial[i].point.value[p];
        check(sweep_course_take(&course, &(sweep_result){.order = i, .step = 1, .value = table[at]}));
        if (i + 1 == 30 || i + 1 == 50 || i + 1 == trials)
            printf("%.9g ", course.trial[course.best].value);
    }
    printf("%.6g\n", took);
    sweep_course_release(&course);
}

static const sweep_sampler *sampler_named(const char *name)
{
    const sweep_sampler *sampler = sweep_sampler_find(name);
    if (!sampler)
        fprintf(stderr, "there is no sampler '%s'\n", name);
    return sampler ? sampler : (exit(2), NULL);
}

static const sweep_stopper *stopper_named(const char *name)
{
    const sweep_stopper *stopper = sweep_stopper_find(name);
    if (!stopper)
        fprintf(stderr, "there is no rule '%s'\n", name);
    return stopper ? stopper : (exit(2), NULL);
}

int main(int argc, char **argv)
{
    if (argc >= 10 && strcmp(argv[1], "curves") == 0) {
        world w = {
            .rows = atoll(argv[3]), .parameters = atoll(argv[4]), .steps = atoll(argv[5]), .workers = atoll(argv[6])};
        const sweep_sampler *sampler = sampler_named(argv[7]);
        const sweep_stopper *stopper = stopper_named(argv[8]);
        w.width = w.parameters + w.steps + 1;
        w.table = read_table(argv[2], w.rows * w.width);
        make_space(&w);
        set_targets(&w);
        for (int64_t seed = 0; seed < atoll(argv[9]); seed++)
            replay_curves(&w, sampler, stopper, (uint64_t)seed, argc > 10 ? atoll(argv[10]) : 3,
                          argc > 11 ? atoll(argv[11]) : 0);
        return 0;
    }
    if (argc == 7 && strcmp(argv[1], "values") == 0) {
        sweep_space *space = NULL;
        int64_t points = 1;
        check(sweep_space_read(&space, argv[3], NULL));
        for (int p = 0; p < space->parameters; p++)
            points *= space->parameter[p].values;
        const double *table = read_table(argv[2], points);
        for (int64_t seed = 0; seed < atoll(argv[5]); seed++)
            replay_values(space, table, sampler_named(argv[4]), (uint64_t)seed, atoll(argv[6]));
        return 0;
    }
    fprintf(stderr, "bench_sweep_replay: see bench/sweep_replay.c\n");
    return 2;
}
