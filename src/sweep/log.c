/* See log.h. */
#include "log.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <shoal/error.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"

/* Far more than anybody asks for. */
enum { TRIALS_MOST = 1000000, ASKS_MOST = 10000 };

/* Nothing may begin before an entry sets the limits. */
void sweep_log_init(sweep_log *log, const sweep_rules *rules, bool maximise, int64_t ahead)
{
    *log = (sweep_log){.rules = *rules, .sign = maximise ? -1 : 1, .ahead = ahead};
    log->rules.trials = 0;
    log->rules.goal = -INFINITY;
    sweep_course_init(&log->course, &log->rules);
}

void sweep_log_release(sweep_log *log)
{
    sweep_course_release(&log->course);
    for (int64_t i = 0; i < log->entries; i++)
        base_free(&log->entry[i]);
    base_free(&log->entry);
    base_free(&log->place);
}

static int make_room(void *inout, int64_t *room, int64_t count, size_t size)
{
    if (count < *room)
        return SHOAL_OK;
    const int64_t more = *room ? 2 * *room : 64;
    int status = base_grow(inout, (size_t)*room, (size_t)more, size, "the log of a sweep");
    if (status == SHOAL_OK)
        *room = more;
    return status;
}

static int keep_entry(sweep_log *log, const char *text)
{
    int status = make_room(&log->entry, &log->entries_room, log->entries, sizeof *log->entry);
    if (status == SHOAL_OK)
        status = base_copy_text(&log->entry[log->entries], text);
    if (status == SHOAL_OK)
        log->entries++;
    return status;
}

/* ---- what is asked ----------------------------------------------------------------------------------------------- */

int64_t sweep_log_awaits(const sweep_log *log)
{
    const int64_t place = log->places - log->ahead;
    return log->ahead > 0 && place >= 0 ? log->place[place] : -1;
}

bool sweep_log_is_over(const sweep_log *log)
{
    if (log->entries == 0)
        return false;
    const sweep_course *course = &log->course;
    if (log->why[0] || sweep_course_reached(course))
        return true;
    if (course->open > 0)
        return false;
    if (log->ahead > 0) /* so many places stayed empty, and all results are known */
        return log->empty >= log->ahead;
    return sweep_course_is_full(course) &&
           log->rules.stopper->next(&log->rules.rungs, course->trial, course->trials) < 0;
}

/* ---- results ----------------------------------------------------------------------------------------------------- */

static json_t *result_json(const sweep_result *result)
{
    json_t *object = json_object();
    base_json_put(&object, "order", json_integer(result->order));
    base_json_put(&object, "step", json_integer(result->step));
    if (result->failed)
        base_json_put(&object, "failed", json_true());
    else
        base_json_put(&object, "value", json_real(result->value));
    return object;
}

static bool read_whole(int64_t *out, const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    *out = json_integer_value(value);
    return json_is_integer(value);
}

static int take_results(sweep_log *log, const json_t *results)
{
    for (size_t i = 0; i < json_array_size(results); i++) {
        const json_t *from = json_array_get(results, i), *value = json_object_get(from, "value");
        sweep_result result = {.failed = json_is_true(json_object_get(from, "failed"))};
        if (!read_whole(&result.order, from, "order") || !read_whole(&result.step, from, "step") ||
            (!result.failed && !json_is_number(value)))
            return shoal_fail(SHOAL_BROKEN, "a result has no order, step or value");
        if (log->ahead > 0 && (i > 0 || result.order != sweep_log_awaits(log)))
            return shoal_fail(SHOAL_BROKEN, "the result of order %lld is not the next in strict order",
                              (long long)result.order);
        result.value = log->sign * json_number_value(value);
        int status = sweep_course_take(&log->course, &result);
        if (status < 0)
            return status;
    }
    if (log->ahead > 0 && sweep_log_awaits(log) >= 0 && !json_array_size(results))
        return shoal_fail(SHOAL_BROKEN, "the result of order %lld is missing in strict order",
                          (long long)sweep_log_awaits(log));
    return SHOAL_OK;
}

/* ---- orders ------------------------------------------------------------------------------------------------------ */

static json_t *order_json(const sweep_log *log, const sweep_order *order)
{
    json_t *object = json_object();
    base_json_put(&object, "order", json_integer(log->course.orders - 1));
    base_json_put(&object, "trial", json_integer(order->trial));
    base_json_put(&object, "until", json_integer(order->until));
    if (order->from == 0)
        base_json_put(&object, "point", sweep_point_json(log->rules.space, &log->course.trial[order->trial].point));
    return object;
}

/* Notes what became of a place in strict order. */
static int keep_place(sweep_log *log, int64_t order)
{
    if (log->ahead == 0)
        return SHOAL_OK;
    int status = make_room(&log->place, &log->places_room, log->places, sizeof *log->place);
    if (status == SHOAL_OK) {
        log->place[log->places++] = order;
        log->empty = order < 0 ? log->empty + 1 : 0;
    }
    return status;
}

/* Gives what follows, at most so many. */
static int give_orders(json_t **out, sweep_log *log, int64_t asks)
{
    int status = SHOAL_OK;
    *out = json_array();
    for (int64_t i = 0; i < asks && status == SHOAL_OK; i++) {
        sweep_order order;
        status = sweep_course_give(&log->course, &order);
        if (status == SHOAL_OK && json_array_append_new(*out, order_json(log, &order)) < 0)
            status = shoal_fail(SHOAL_MEMORY, "out of memory for the log of a sweep");
    }
    return status == SHOAL_ABSENT ? SHOAL_OK : status;
}

/* Gives what is written, if the course allows it. */
static int give_as_written(sweep_log *log, const json_t *orders)
{
    for (size_t i = 0; i < json_array_size(orders); i++) {
        const json_t *from = json_array_get(orders, i), *point = json_object_get(from, "point");
        int64_t number, trial, until;
        sweep_point read;
        if (!read_whole(&number, from, "order") || !read_whole(&trial, from, "trial") ||
            !read_whole(&until, from, "until"))
            return shoal_fail(SHOAL_BROKEN, "an order has no number, trial or step");
        int status = point ? sweep_point_of_json(&read, log->rules.space, "an order's point", point) : SHOAL_OK;
        if (status == SHOAL_OK)
            status = sweep_course_follow(&log->course, number, trial, until, point ? &read : NULL);
        if (status < 0)
            return status;
    }
    return SHOAL_OK;
}

/* ---- entries ----------------------------------------------------------------------------------------------------- */

static void set_limits(sweep_log *log, const json_t *limits)
{
    const json_t *goal = json_object_get(limits, "goal");
    log->rules.trials = json_integer_value(json_object_get(limits, "trials"));
    log->rules.goal = goal ? log->sign * json_number_value(goal) : -INFINITY;
    log->price = json_number_value(json_object_get(limits, "price"));
    log->budget = json_number_value(json_object_get(limits, "budget"));
    log->course.exhausted = false;
    log->empty = 0;
    log->why[0] = '\0';
}

static json_t *limits_json(const sweep_taken *taken)
{
    json_t *object = json_object();
    base_json_put(&object, "trials", json_integer(taken->trials));
    if (isfinite(taken->goal))
        base_json_put(&object, "goal", json_real(taken->goal));
    if (taken->price > 0)
        base_json_put(&object, "price", json_real(taken->price));
    if (taken->budget > 0)
        base_json_put(&object, "budget", json_real(taken->budget));
    return object;
}

/* What an entry tells the course: all but its orders. */
static json_t *inputs_json(const sweep_log *log, const sweep_taken *taken)
{
    json_t *object = json_object();
    if (taken->trials > 0) {
        base_json_put(&object, "limits", limits_json(taken));
        return object;
    }
    if (taken->adopted) {
        json_decref(object);
        return json_deep_copy(taken->adopted);
    }
    if (taken->why) {
        base_json_put(&object, "stop", base_json_text(taken->why));
        return object;
    }
    json_t *results = json_array();
    for (int64_t i = 0; i < taken->results; i++)
        json_array_append_new(results, result_json(&taken->result[i]));
    base_json_put(&object, "results", results);
    if (log->ahead == 0)
        base_json_put(&object, "asks", json_integer(taken->asks));
    return object;
}

static int adopt_trials(sweep_log *log, const json_t *adopted)
{
    int status = SHOAL_OK;
    if (log->has_adopted || log->course.orders > 0 || !json_is_array(adopted) || json_array_size(adopted) > TRIALS_MOST)
        return shoal_fail(SHOAL_BROKEN, "it has no list of another sweep's trials, or comes too late");
    for (size_t i = 0; i < json_array_size(adopted) && status == SHOAL_OK; i++) {
        const json_t *from = json_array_get(adopted, i), *value = json_object_get(from, "value");
        sweep_point point;
        int64_t step;
        status = sweep_point_of_json(&point, log->rules.space, "another sweep's trial", json_object_get(from, "point"));
        if (status == SHOAL_OK && (!read_whole(&step, from, "step") || step < 0 || (value && !json_is_number(value))))
            status = shoal_fail(SHOAL_BROKEN, "another sweep's trial has no step or value");
        if (status == SHOAL_OK)
            status = sweep_course_adopt(&log->course, &point,
                                        value ? log->sign * json_number_value(value) : (double)NAN, step);
    }
    log->has_adopted = true;
    return status;
}

/* Takes what an entry tells.  *asks is how many orders it may give. */
static int take_inputs(int64_t *asks, sweep_log *log, const json_t *entry)
{
    const json_t *limits = json_object_get(entry, "limits"), *stop = json_object_get(entry, "stop");
    *asks = 0;
    if (log->entries == 0 && !limits)
        return shoal_fail(SHOAL_BROKEN, "the first entry does not set the limits");
    if (limits) {
        const int64_t trials = json_integer_value(json_object_get(limits, "trials"));
        if (trials < 1 || trials > TRIALS_MOST)
            return shoal_fail(SHOAL_BROKEN, "it limits trials to %lld", (long long)trials);
        set_limits(log, limits);
        return SHOAL_OK;
    }
    if (json_object_get(entry, "adopted"))
        return adopt_trials(log, json_object_get(entry, "adopted"));
    if (stop) {
        snprintf(log->why, sizeof log->why, "%s", json_is_string(stop) ? json_string_value(stop) : "stopped");
        base_text_clean(log->why);
        return SHOAL_OK;
    }
    int status = take_results(log, json_object_get(entry, "results"));
    *asks = log->why[0] ? 0 : log->ahead > 0 ? 1 : json_integer_value(json_object_get(entry, "asks"));
    if (status == SHOAL_OK && (*asks < 0 || *asks > ASKS_MOST))
        return shoal_fail(SHOAL_BROKEN, "it asks for %lld orders", (long long)*asks);
    return status;
}

static int end_place(sweep_log *log, const json_t *entry, int64_t before)
{
    if (!json_object_get(entry, "results"))
        return SHOAL_OK;
    return keep_place(log, log->course.orders > before ? log->course.orders - 1 : -1);
}

int sweep_log_make(char **out, sweep_log *log, const sweep_taken *taken)
{
    const int64_t before = log->course.orders;
    int64_t asks = 0;
    json_t *entry = inputs_json(log, taken), *orders = NULL;
    *out = NULL;
    int status = entry ? take_inputs(&asks, log, entry) : shoal_fail(SHOAL_MEMORY, "out of memory for a log entry");
    if (status == SHOAL_OK && json_object_get(entry, "results")) {
        status = give_orders(&orders, log, asks);
        base_json_put(&entry, "orders", orders);
        if (status == SHOAL_OK)
            status = end_place(log, entry, before);
    }
    char *text = status == SHOAL_OK && entry ? json_dumps(entry, JSON_COMPACT) : NULL;
    if (status == SHOAL_OK && !text)
        status = shoal_fail(SHOAL_MEMORY, "out of memory for a log entry");
    if (status == SHOAL_OK)
        status = base_copy_text(out, text);
    if (status == SHOAL_OK)
        status = keep_entry(log, text);
    if (status < 0)
        base_free(out);
    json_decref(entry);
    free(text);
    return status;
}

static int apply_checked(sweep_log *log, const json_t *entry, int64_t asks)
{
    json_t *orders = NULL;
    int status = give_orders(&orders, log, asks);
    if (status == SHOAL_OK && !json_equal(orders, json_object_get(entry, "orders"))) {
        char *text = json_dumps(orders, JSON_COMPACT);
        status = shoal_fail(SHOAL_BROKEN, "what follows is %.200s", text ? text : "something else");
        free(text);
    }
    json_decref(orders);
    return status;
}

int sweep_log_apply(sweep_log *log, const char *text, bool check)
{
    json_error_t error;
    int64_t asks = 0;
    const int64_t before = log->course.orders;
    json_t *entry = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    if (!json_is_object(entry)) {
        json_decref(entry);
        return shoal_fail(SHOAL_BROKEN, "entry %lld of the log is not JSON", (long long)log->entries);
    }
    int status = take_inputs(&asks, log, entry);
    if (status == SHOAL_OK && json_object_get(entry, "results"))
        status = check ? apply_checked(log, entry, asks) : give_as_written(log, json_object_get(entry, "orders"));
    if (status == SHOAL_OK)
        status = end_place(log, entry, before);
    if (status == SHOAL_OK)
        status = keep_entry(log, text);
    json_decref(entry);
    if (status == SHOAL_MEMORY || status == SHOAL_OK)
        return status;
    char why[400];
    snprintf(why, sizeof why, "%s", shoal_error());
    return shoal_fail(SHOAL_BROKEN, "entry %lld of the log: %s", (long long)log->entries, why);
}

void sweep_log_drop_idle(sweep_log *log)
{
    base_free(&log->entry[--log->entries]);
}

int sweep_log_restart(sweep_log *log, int64_t entries)
{
    char **old = log->entry;
    const int64_t count = log->entries;
    int status = SHOAL_OK;
    sweep_course_release(&log->course);
    base_free(&log->place);
    log->places = log->places_room = log->entries = log->entries_room = log->empty = 0;
    log->entry = NULL;
    log->why[0] = '\0';
    log->has_adopted = false;
    log->price = log->budget = 0;
    log->rules.trials = 0;
    log->rules.goal = -INFINITY;
    sweep_course_init(&log->course, &log->rules);
    for (int64_t i = 0; i < entries && i < count && status == SHOAL_OK; i++)
        status = sweep_log_apply(log, old[i], false);
    for (int64_t i = 0; i < count; i++)
        base_free(&old[i]);
    base_free(&old);
    return status;
}

int sweep_log_has_ended(bool *out, sweep_log *log)
{
    const int64_t entries = log->entries, orders = log->course.orders;
    char *text = NULL;
    *out = sweep_log_is_over(log);
    if (*out || entries == 0 || log->course.open > 0 || log->ahead > 0)
        return SHOAL_OK;
    int status = sweep_log_make(&text, log, &(sweep_taken){.asks = 1, .goal = INFINITY});
    base_free(&text);
    if (status == SHOAL_OK && log->course.orders == orders) {
        sweep_log_drop_idle(log);
        *out = sweep_log_is_over(log);
        return SHOAL_OK;
    }
    const int restarted = sweep_log_restart(log, entries);
    return status < 0 ? status : restarted;
}
