/* src/sweep/log.c: several deciders share one log in simulated time, where puts are lost, deciders die at any moment
 * and others take over: no result is lost or taken twice, everybody sees the same, and every decision follows from what
 * was known.  In strict order the log is the same for any number of workers, whatever dies.  What contradicts itself is
 * refused. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <shoal/error.h>

#include "base/memory.h"
#include "base/random.h"
#include "sweep/log.h"

enum { DECIDERS_MOST = 16, ENTRIES_MOST = 4096, ORDERS_MOST = 2048 };

/* What all share: entries, and results by order, each put once. */
typedef struct world {
    sweep_space *space;
    sweep_rules rules;
    int64_t ahead, trials;
    uint64_t seed, draws;
    char *entry[ENTRIES_MOST];
    int64_t entries;
    bool has_result[ORDERS_MOST];
    sweep_result result[ORDERS_MOST];
    int64_t claimed[ORDERS_MOST]; /* the life of a decider that does it; 0: nobody */
} world;

/* A worker that decides, too; what it knows is lost when it dies. */
typedef struct decider {
    sweep_log log;
    int64_t life;  /* another one after each death */
    int64_t order; /* it does, -1: none */
    int64_t until; /* virtual time when that is done */
    bool pending;  /* a result of its own is not logged */
} decider;

static uint64_t draw(world *w, uint64_t bound)
{
    return base_random_below(bound, w->seed, BASE_FOR_FAULTS, w->draws++, 0);
}

static void read_space(world *w)
{
    static const char text[] =
        "{\"x\": {\"low\": 0.0, \"high\": 1.0}, \"kind\": [\"a\", \"b\"], "
        "\"y\": {\"low\": 1e-3, \"high\": 1.0, \"scale\": \"log\", \"when\": {\"kind\": \"b\"}}}";
    json_t *json = json_loads(text, 0, NULL);
    assert_int_equal(sweep_space_of_json(&w->space, "s", json), SHOAL_OK);
    json_decref(json);
}

static void init_world(world *w, uint64_t seed, int64_t ahead, const sweep_stopper *stopper)
{
    *w = (world){.ahead = ahead, .trials = 30, .seed = seed};
    read_space(w);
    w->rules = (sweep_rules){
        .space = w->space, .sampler = &sweep_sampler_tpe, .stopper = stopper, .seed = 5, .rungs = {.eta = 3}};
    stopper->lay(&w->rules.rungs, 9, 0);
}

static void release_world(world *w)
{
    for (int64_t i = 0; i < w->entries; i++)
        base_free(&w->entry[i]);
    sweep_space_free(&w->space);
}

/* A deterministic trial, some of which fail. */
static sweep_result result_of(const sweep_log *log, int64_t number)
{
    const sweep_order *order = &log->course.order[number];
    const sweep_point *p = &log->course.trial[order->trial].point;
    const double x = p->value[0];
    return (sweep_result){.order = number,
                          .step = order->until,
                          .failed = x > 0.95,
                          .value = (x - 0.3) * (x - 0.3) + 0.1 * p->value[1] + 1 / (double)order->until};
}

static void pull(world *w, decider *d)
{
    while (d->log.entries < w->entries)
        if (sweep_log_apply(&d->log, w->entry[d->log.entries], false) < 0)
            fail_msg("%s", shoal_error());
}

static void die(world *w, decider *d)
{
    const int64_t life = d->life;
    sweep_log_release(&d->log);
    *d = (decider){.life = life + DECIDERS_MOST, .order = -1};
    sweep_log_init(&d->log, &w->rules, false, w->ahead);
}

/* Puts the next entry: it may come too late, and its answer may be lost, which kills. */
static void put(world *w, decider *d, const sweep_taken *taken)
{
    char *text = NULL;
    const int64_t entries = d->log.entries, orders = d->log.course.orders;
    if (sweep_log_make(&text, &d->log, taken) < 0)
        fail_msg("%s", shoal_error());
    if (w->ahead == 0 && taken->results == 0 && taken->trials == 0 && d->log.course.orders == orders) {
        sweep_log_drop_idle(&d->log);
        base_free(&text);
        return;
    }
    if (draw(w, 20) == 0) { /* before the put */
        base_free(&text);
        die(w, d);
        return;
    }
    if (entries < w->entries) { /* somebody was first */
        base_free(&text);
        assert_int_equal(sweep_log_restart(&d->log, entries), SHOAL_OK);
        return;
    }
    assert_true(w->entries < ENTRIES_MOST);
    w->entry[w->entries++] = text;
    if (draw(w, 20) == 0) /* after it */
        die(w, d);
}

static int64_t life_of(const decider *deciders, int64_t count, int64_t life)
{
    for (int64_t i = 0; i < count; i++)
        if (deciders[i].life == life)
            return i;
    return -1;
}

/* One step of one decider. */
static void act(world *w, decider *deciders, int64_t count, decider *d, int64_t now)
{
    sweep_result result[ORDERS_MOST];
    sweep_taken taken = {.result = result, .asks = 1, .goal = INFINITY};
    if (draw(w, 200) == 0) {
        die(w, d);
        return;
    }
    if (d->order >= 0 && now < d->until)
        return;
    if (draw(w, 4) != 0) /* otherwise it decides by what it knew */
        pull(w, d);
    if (d->log.entries == 0) {
        put(w, d, &(sweep_taken){.trials = w->trials, .goal = INFINITY});
        return;
    }
    if (d->order >= 0) {
        w->result[d->order] = result_of(&d->log, d->order);
        w->has_result[d->order] = true;
        d->order = -1;
        if (draw(w, 20) == 0) {
            die(w, d);
            return;
        }
    }
    const int64_t awaited = sweep_log_awaits(&d->log);
    for (int64_t i = 0; i < d->log.course.orders; i++)
        if (w->has_result[i] && !d->log.course.order[i].ended && (w->ahead == 0 || i == awaited))
            result[taken.results++] = w->result[i];
    for (int64_t i = 0; i < d->log.course.orders && d->order < 0; i++)
        if (!w->has_result[i] && life_of(deciders, count, w->claimed[i]) < 0 && !d->log.course.order[i].ended) {
            w->claimed[i] = d->life;
            d->order = i;
            d->until = now + 1 + (int64_t)draw(w, 30);
        }
    if (d->order < 0 && (w->ahead == 0 || awaited < 0 || taken.results > 0) && !sweep_log_is_over(&d->log))
        put(w, d, &taken);
}

/* Runs a sweep to its end; what the log says is in w->entry. */
static void simulate(world *w, int64_t count)
{
    decider deciders[DECIDERS_MOST];
    bool over = false;
    for (int64_t i = 0; i < count; i++) {
        deciders[i] = (decider){.life = 1 + i, .order = -1};
        sweep_log_init(&deciders[i].log, &w->rules, false, w->ahead);
    }
    for (int64_t now = 0; !over; now++) {
        assert_true(now < 200000);
        decider *d = &deciders[draw(w, (uint64_t)count)];
        act(w, deciders, count, d, now);
        over = d->log.entries == w->entries && sweep_log_is_over(&d->log);
    }
    for (int64_t i = 0; i < count; i++)
        sweep_log_release(&deciders[i].log);
}

/* Everything that happened follows, and every order has its one result. */
static void check_world(const world *w)
{
    sweep_log log;
    sweep_log_init(&log, &w->rules, false, w->ahead);
    for (int64_t i = 0; i < w->entries; i++)
        if (sweep_log_apply(&log, w->entry[i], true) < 0)
            fail_msg("%s", shoal_error());
    assert_int_equal(log.course.trials, w->trials);
    for (int64_t i = 0; i < log.course.orders; i++)
        assert_true(log.course.order[i].ended && w->has_result[i]);
    assert_true(sweep_log_is_over(&log));
    sweep_log_release(&log);
}

static void test_deaths_and_lost_puts(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 30; seed++) {
        world w;
        init_world(&w, seed, 0, seed % 2 ? &sweep_stopper_asha : &sweep_stopper_none);
        simulate(&w, 1 + (int64_t)(seed % DECIDERS_MOST));
        check_world(&w);
        release_world(&w);
    }
}

static void test_strict_order_is_the_same_everywhere(void **state)
{
    static const int64_t workers[] = {1, 4, 16};
    const sweep_stopper *const stopper[] = {&sweep_stopper_none, &sweep_stopper_asha, &sweep_stopper_hyperband,
                                            &sweep_stopper_median};
    (void)state;
    for (int s = 0; s < 4; s++) {
        world first;
        for (int i = 0; i < 9; i++) {
            world w;
            init_world(&w, (uint64_t)i, 6, stopper[s]);
            simulate(&w, workers[i % 3]);
            check_world(&w);
            if (i == 0) {
                first = w;
                continue;
            }
            assert_int_equal(w.entries, first.entries);
            for (int64_t e = 0; e < w.entries; e++)
                assert_string_equal(w.entry[e], first.entry[e]);
            release_world(&w);
        }
        release_world(&first);
    }
}

static void test_goals_and_limits(void **state)
{
    world w;
    sweep_log log;
    char *text = NULL;
    (void)state;
    init_world(&w, 0, 0, &sweep_stopper_none);
    sweep_log_init(&log, &w.rules, true, 0);
    assert_false(sweep_log_is_over(&log));
    assert_int_equal(sweep_log_make(&text, &log, &(sweep_taken){.trials = 2, .goal = 0.9}), SHOAL_OK);
    base_free(&text);
    assert_int_equal(sweep_log_make(&text, &log, &(sweep_taken){.asks = 5, .goal = INFINITY}), SHOAL_OK);
    base_free(&text);
    assert_int_equal(log.course.trials, 2);
    const sweep_result good = {.order = 1, .step = 9, .value = 0.95};
    assert_int_equal(sweep_log_make(&text, &log, &(sweep_taken){.result = &good, .results = 1, .asks = 1}), SHOAL_OK);
    assert_non_null(strstr(text, "0.94999999999999996"));
    base_free(&text);
    assert_true(sweep_log_is_over(&log)); /* the goal of a value that is to be great */
    assert_int_equal(sweep_log_make(&text, &log, &(sweep_taken){.trials = 3, .goal = 0.99}), SHOAL_OK);
    base_free(&text);
    assert_false(sweep_log_is_over(&log));
    assert_int_equal(sweep_log_make(&text, &log, &(sweep_taken){.why = "the time is over"}), SHOAL_OK);
    base_free(&text);
    assert_true(sweep_log_is_over(&log));
    assert_string_equal(log.why, "the time is over");
    assert_int_equal(sweep_log_restart(&log, log.entries - 1), SHOAL_OK);
    assert_string_equal(log.why, "");
    assert_int_equal(log.entries, 4);
    sweep_log_release(&log);
    release_world(&w);
}

static void test_entries_that_cannot_be(void **state)
{
    static const char *const wrong[] = {
        "[]",
        "{",
        "{\"results\":[{\"order\":7,\"step\":9,\"value\":1}],\"asks\":1,\"orders\":[]}",
        "{\"results\":[{\"order\":0,\"step\":9}],\"asks\":1,\"orders\":[]}",
        "{\"results\":[],\"asks\":1,\"orders\":[{\"order\":1,\"trial\":0,\"until\":9}]}",
        "{\"results\":[],\"asks\":1,\"orders\":[{\"order\":1,\"trial\":1,\"until\":8,\"point\":{\"x\":0.5,"
        "\"kind\":\"a\"}}]}",
        "{\"results\":[],\"asks\":1,\"orders\":[{\"order\":1,\"trial\":1,\"until\":9,\"point\":{\"x\":5,"
        "\"kind\":\"a\"}}]}",
        "{\"results\":[],\"asks\":1,\"orders\":[{\"order\":-1,\"trial\":-1,\"until\":9}]}",
        "{\"results\":[],\"asks\":1,\"orders\":[{}]}",
        "{\"results\":[],\"asks\":1000000000000,\"orders\":[]}",
        "{\"limits\":{\"trials\":1000000000000}}",
        "{\"limits\":{}}",
        "{\"adopted\":[]}",
        "{\"adopted\":7,\"from\":\"x\"}",
    };
    world w;
    char *text = NULL;
    (void)state;
    init_world(&w, 0, 0, &sweep_stopper_none);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        sweep_log log;
        sweep_log_init(&log, &w.rules, false, 0);
        assert_int_equal(sweep_log_apply(&log, "{\"results\":[],\"asks\":1,\"orders\":[]}", false), SHOAL_BROKEN);
        assert_int_equal(sweep_log_apply(&log, "{\"limits\":{\"trials\":9}}", false), SHOAL_OK);
        assert_int_equal(sweep_log_make(&text, &log, &(sweep_taken){.asks = 1}), SHOAL_OK);
        base_free(&text);
        if (sweep_log_apply(&log, wrong[i], false) != SHOAL_BROKEN)
            fail_msg("%s is taken", wrong[i]);
        sweep_log_release(&log);
    }
    /* One that could be, but does not follow, is refused by a check. */
    sweep_log log;
    sweep_log_init(&log, &w.rules, false, 0);
    assert_int_equal(sweep_log_apply(&log, "{\"limits\":{\"trials\":9}}", true), SHOAL_OK);
    static const char other[] = "{\"results\":[],\"asks\":1,\"orders\":[{\"order\":0,\"trial\":0,\"until\":9,\"point\":"
                                "{\"x\":0.5,\"kind\":\"a\"}}]}";
    assert_int_equal(sweep_log_apply(&log, other, true), SHOAL_BROKEN);
    assert_non_null(strstr(shoal_error(), "what follows is"));
    sweep_log_release(&log);
    sweep_log_init(&log, &w.rules, false, 0);
    assert_int_equal(sweep_log_apply(&log, "{\"limits\":{\"trials\":9}}", false), SHOAL_OK);
    assert_int_equal(sweep_log_apply(&log, other, false), SHOAL_OK);
    sweep_log_release(&log);
    release_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_deaths_and_lost_puts),
        cmocka_unit_test(test_strict_order_is_the_same_everywhere),
        cmocka_unit_test(test_goals_and_limits),
        cmocka_unit_test(test_entries_that_cannot_be),
    };
    return cmocka_run_group_tests_name("sweep_log", tests, NULL, NULL);
}
