/* src/sweep/runner.c: the entry that ends a sweep is put again when somebody else's is there first; a sweep that is to
 * take over another's trials takes no name where there is no other. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <shoal/error.h>

#include "base/memory.h"
#include "base/path.h"
#include "sweep/runner.h"

typedef struct fixture {
    char folder[64];
    shoal_store *store;
    sweep_spec *spec;
    sweep_run run;
    int looks;
} fixture;

static bool never_stops(void *context)
{
    (void)context;
    return false;
}

static void begin(fixture *self, const char *more)
{
    char text[512];
    snprintf(text, sizeof text,
             "{\"sweep\": 1, \"space\": {\"x\": [1, 2]}, \"sampler\": \"random\", \"stop\": \"none\", \"eta\": 3,"
             " \"least\": 0, \"steps\": 0, \"ahead\": 0, \"seed\": 1, \"objective\": \"loss\", \"maximise\": false,"
             " \"others\": [], \"run\": \"true {x}\", \"timeout\": 0.0%s}",
             more);
    *self = (fixture){.folder = "/tmp/shoal-runner-XXXXXX"};
    assert_non_null(mkdtemp(self->folder));
    assert_int_equal(shoal_store_open(&self->store, "mem:runner", NULL, shoal_after(5)), SHOAL_OK);
    if (sweep_spec_of_json(&self->spec, "s", json_loads(text, 0, NULL)) < 0)
        fail_msg("%s", shoal_error());
    self->run = (sweep_run){.spec = self->spec,
                            .place = {.store = self->store, .name = "s", .patience = 5},
                            .folder = self->folder,
                            .program = "shoal",
                            .seconds = 1e-3,
                            .trials = 3,
                            .goal = INFINITY,
                            .stops = never_stops,
                            .context = self};
}

static void end(fixture *self)
{
    sweep_spec_free(&self->spec);
    shoal_store_close(&self->store);
    base_remove_folder(self->folder);
}

/* Another process decides something just before the time is over. */
static bool decide_elsewhere(void *context)
{
    fixture *self = context;
    sweep_log log;
    char *text = NULL;
    if (self->looks++ > 0)
        return false;
    sweep_log_init(&log, &self->spec->rules, false, 0);
    assert_int_equal(sweep_place_pull(&log, &self->run.place, false), SHOAL_OK);
    assert_int_equal(sweep_log_make(&text, &log, &(sweep_taken){.trials = 4, .goal = INFINITY}), SHOAL_OK);
    assert_int_equal(sweep_place_push(&log, &self->run.place), SHOAL_OK);
    base_free(&text);
    sweep_log_release(&log);
    return false;
}

static void test_the_end_is_put_again(void **state)
{
    fixture self;
    sweep_log log;
    (void)state;
    begin(&self, "");
    self.run.stops = decide_elsewhere;
    assert_int_equal(sweep_run_open(&self.run, false), SHOAL_OK);
    sweep_log_init(&log, &self.spec->rules, false, 0);
    if (sweep_run_trials(&log, &self.run) < 0)
        fail_msg("%s", shoal_error());
    assert_int_equal(log.rules.trials, 4); /* the other's entry came first */
    sweep_log_release(&log);
    sweep_log_init(&log, &self.spec->rules, false, 0);
    assert_int_equal(sweep_place_pull(&log, &self.run.place, false), SHOAL_OK);
    assert_string_equal(log.why, "the time is over"); /* as all see it */
    sweep_log_release(&log);
    end(&self);
}

static void test_another_that_is_not_there(void **state)
{
    sweep_spec *there = NULL;
    fixture self;
    (void)state;
    begin(&self, ", \"from\": \"other\"");
    assert_int_equal(sweep_run_open(&self.run, false), SHOAL_ABSENT);
    assert_non_null(strstr(shoal_error(), "there is no sweep 'other'"));
    assert_int_equal(sweep_place_spec(&there, &self.run.place), SHOAL_ABSENT);
    end(&self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_end_is_put_again),
        cmocka_unit_test(test_another_that_is_not_there),
    };
    return cmocka_run_group_tests_name("sweep_runner", tests, NULL, NULL);
}
