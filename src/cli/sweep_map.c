/* shoal sweep plot --kind map: money against time of a sweep's trials on machines that can be rented (sweep/map.h). */
#include "sweep_map.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "plan/pareto.h"
#include "plan/picture.h"
#include "plan/prices.h"
#include "plan/units.h"
#include "sweep/map.h"

enum { EACH_UP_TO = 8 }; /* machines: from there on every second power of the square root of two */
static const int64_t TRIALS_MOST = 10000000;

/* What is to be done: so many trials of so many seconds on so many cores. */
typedef struct work {
    double *seconds;
    int64_t trials, cores;
    double steps;
} work;

/* What the trials took, or as many like their mean as make up so many steps. */
static int measure_work(work *out, const sweep_picture *picture, int64_t steps)
{
    const sweep_course *course = &picture->log->course;
    double all = 0, done = 0;
    int64_t ran = 0;
    out->cores = 1;
    int status = base_alloc(&out->seconds, (size_t)course->trials, sizeof *out->seconds, "a map");
    for (int64_t i = 0; i < picture->orders && status == SHOAL_OK; i++) {
        const sweep_order *order = &course->order[i];
        if (!order->ended || picture->ended[i].result.failed)
            continue;
        out->seconds[order->trial] += picture->ended[i].seconds;
        out->cores = picture->ended[i].cores > out->cores ? picture->ended[i].cores : out->cores;
        all += picture->ended[i].seconds;
    }
    for (int64_t i = 0; i < course->trials && status == SHOAL_OK; i++)
        if (out->seconds[i] > 0) {
            done += (double)course->trial[i].step;
            out->seconds[ran++] = out->seconds[i];
        }
    if (status == SHOAL_OK && (ran == 0 || all == 0 || done == 0))
        status = shoal_fail(SHOAL_INVALID, "sweep '%s' has no results that tell how long they took", picture->title);
    out->trials = ran;
    out->steps = done;
    if (status < 0 || steps == 0)
        return status;
    const double each = fmax(1, round(done / (double)ran)), trials = ceil((double)steps / each);
    if (trials > (double)TRIALS_MOST)
        return shoal_fail(SHOAL_USAGE, "--work %" PRId64 ": that is more than %" PRId64 " trials", steps, TRIALS_MOST);
    base_free(&out->seconds);
    out->trials = (int64_t)trials;
    out->steps = (double)steps;
    status = base_alloc(&out->seconds, (size_t)out->trials, sizeof *out->seconds, "a map");
    for (int64_t i = 0; i < out->trials && status == SHOAL_OK; i++)
        out->seconds[i] = all / done * each;
    return status;
}

static int64_t next_count(int64_t count)
{
    const int64_t more = (int64_t)round((double)count * 1.4142135623730951);
    return count < EACH_UP_TO ? count + 1 : more;
}

/* All numbers of one machine; without the cores for one trial it has no points. */
static int add_points(plan_point *point, int64_t *points, const work *work, const plan_machine *machine,
                      const cli_sweep_map *map)
{
    const bool other = !map->machines && machine->accelerators > 0; /* trials were not measured on any */
    const int64_t slots = other ? 0 : (int64_t)machine->vcpus / work->cores;
    const double price = map->spot ? machine->dollars_spot : machine->dollars_per_hour;
    int status = SHOAL_OK;
    for (int64_t count = 1; slots > 0 && count <= map->most && status == SHOAL_OK; count = next_count(count)) {
        double seconds = 0;
        status = sweep_map_time(&seconds, work->seconds, work->trials, count * slots);
        seconds = seconds / machine->speed + map->start;
        const double dollars = seconds / 3600 * price * (double)count;
        point[(*points)++] = (plan_point){.machine = machine->id,
                                          .workers = count,
                                          .seconds = seconds,
                                          .low = seconds,
                                          .high = seconds,
                                          .dollars = dollars,
                                          .dollars_low = dollars,
                                          .dollars_high = dollars};
    }
    return status;
}

static int mark_front(plan_point *point, int64_t points)
{
    plan_tradeoff *outcome = NULL;
    bool *front = NULL;
    int status = base_alloc(&outcome, (size_t)points, sizeof *outcome, "a map");
    if (status == SHOAL_OK)
        status = base_alloc(&front, (size_t)points, sizeof *front, "a map");
    for (int64_t i = 0; i < points && status == SHOAL_OK; i++)
        outcome[i] = (plan_tradeoff){point[i].seconds, point[i].dollars};
    if (status == SHOAL_OK)
        status = plan_pareto(front, outcome, points);
    for (int64_t i = 0; i < points && status == SHOAL_OK; i++)
        point[i].front = front[i];
    base_free(&outcome);
    base_free(&front);
    return status;
}

static int by_time(const void *a, const void *b)
{
    const plan_point *x = a, *y = b;
    return (x->seconds > y->seconds) - (x->seconds < y->seconds);
}

/* Sorts the points, from the fastest on. */
static void print_front(plan_point *point, int64_t points, bool json)
{
    qsort(point, (size_t)points, sizeof *point, by_time);
    for (int64_t i = 0; i < points; i++) {
        char time[PLAN_UNITS_BYTES], money[PLAN_UNITS_BYTES];
        if (!point[i].front)
            continue;
        plan_format_duration(time, point[i].seconds);
        plan_format_money(money, point[i].dollars);
        if (json)
            printf("{\"machine\": \"%s\", \"machines\": %" PRId64 ", \"seconds\": %.6g, \"dollars\": %.6g}\n",
                   point[i].machine, point[i].workers, point[i].seconds, point[i].dollars);
        else
            printf("%4" PRId64 " x %-36s %10s  %s\n", point[i].workers, point[i].machine, time, money);
    }
}

static int draw_map(const char *path, const sweep_picture *picture, const work *work, const plan_selection *chosen,
                    const cli_sweep_map *map)
{
    char title[256], why[256];
    plan_point *point = NULL;
    int64_t points = 0, each = 0;
    for (int64_t count = 1; count <= map->most; count = next_count(count))
        each++;
    int status = base_alloc(&point, (size_t)(chosen->machines * each), sizeof *point, "a map");
    for (int64_t i = 0; i < chosen->machines && status == SHOAL_OK; i++)
        status = add_points(point, &points, work, chosen->machine[i], map);
    if (status == SHOAL_OK && points == 0)
        status = shoal_fail(SHOAL_INVALID, "no machine has the %" PRId64 " cores of a trial", work->cores);
    if (status == SHOAL_OK)
        status = mark_front(point, points);
    snprintf(title, sizeof title, "%.80s: %" PRId64 " trials, %.0f steps in all", picture->title, work->trials,
             work->steps);
    snprintf(why, sizeof why, "trials on %" PRId64 " core%s each, at %sprices; measured on this sweep's workers",
             work->cores, work->cores == 1 ? "" : "s", map->spot ? "spot " : "");
    if (status == SHOAL_OK)
        status = plan_picture_write(
            path, &(plan_picture){.title = title, .why = why, .point = point, .points = points, .counted = "machines"});
    if (status == SHOAL_OK)
        print_front(point, points, map->json);
    base_free(&point);
    return status;
}

int cli_sweep_draw_map(const char *path, const sweep_picture *picture, const cli_sweep_map *map)
{
    plan_prices *prices = NULL;
    plan_selection chosen = {0};
    work work = {0};
    int status = map->prices ? plan_prices_read(&prices, map->prices) : plan_prices_shipped(&prices);
    if (status == SHOAL_OK)
        status = plan_prices_select(&chosen, prices, map->machines ? map->machines : "*", map->spot);
    if (status == SHOAL_OK)
        status = measure_work(&work, picture, map->steps);
    if (status == SHOAL_OK)
        status = draw_map(path, picture, &work, &chosen, map);
    base_free(&work.seconds);
    plan_selection_free(&chosen);
    plan_prices_free(&prices);
    return status;
}
