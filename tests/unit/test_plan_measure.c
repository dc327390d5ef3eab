/* src/plan/measure/measure_store.c and calibrate.c: measurements say what they do, may be stopped from when there is
 * something to remove, and leave nothing in a store, whether they end or are stopped. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <shoal/error.h>

#include "base/memory.h"
#include "base/path.h"
#include "plan/measure/calibrate.h"
#include "plan/measure/measure_busy.h"
#include "plan/measure/measure_store.h"

static char folder[64], store[128], path[128];

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/shoal-measure-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    snprintf(store, sizeof store, "dir:%s/st/", folder);
    snprintf(path, sizeof path, "%s/calibration.json", folder);
    return setenv("XDG_STATE_HOME", folder, 1);
}

static int remove_folder(void **state)
{
    (void)state;
    base_remove_folder(folder);
    return 0;
}

/* ---- who watches ------------------------------------------------------------------------------------------------- */

typedef struct audience {
    const char *stop_at; /* what is being done when a stop is asked for; NULL: never */
    char heard[1024];    /* all that was said, each in a line */
    char noted[1024];    /* the same of notes */
    bool may_stop;
    bool unheard; /* something was done while a stop would not have been heard */
    volatile int stop;
} audience;

static void hear_doing(void *context, const char *text)
{
    audience *self = context;
    size_t length = strlen(self->heard);
    snprintf(self->heard + length, sizeof self->heard - length, "%s\n", text);
    self->unheard |= !self->may_stop;
    if (self->stop_at && strcmp(self->stop_at, text) == 0)
        self->stop = 1;
}

static void hear_note(void *context, const char *line)
{
    audience *self = context;
    size_t length = strlen(self->noted);
    snprintf(self->noted + length, sizeof self->noted - length, "%s\n", line);
}

static void hear_may_stop(void *context, bool may)
{
    ((audience *)context)->may_stop = may;
}

static shoal_watcher watch_as(audience *self)
{
    return (shoal_watcher){
        .context = self, .doing = hear_doing, .note = hear_note, .may_stop = hear_may_stop, .stop = &self->stop};
}

/* ---- a store ----------------------------------------------------------------------------------------------------- */

static void assert_no_keys(const store_place *place)
{
    store_keys keys = {0};
    const shoal_entry *next = NULL;
    assert_int_equal(store_keys_start(&keys, place, ""), SHOAL_OK);
    assert_int_equal(store_keys_next(&keys, &next), SHOAL_OK);
    assert_null(next);
    store_keys_stop(&keys);
}

static int measure(plan_store_measured *out, audience *who)
{
    static const plan_store_settings settings = {.patience = 20, .seconds = 1, .size = 4096, .create = true};
    const shoal_watcher watcher = watch_as(who);
    return plan_measure_store(out, store, &settings, &watcher);
}

static void a_store_is_measured_and_left_empty(void **state)
{
    plan_store_measured measured = {0};
    audience who = {0};
    (void)state;
    assert_int_equal(measure(&measured, &who), SHOAL_OK);
    assert_true(measured.put.count > 0); /* what comes later may have no time on a busy machine */
    assert_true(0 < measured.put.median && measured.put.median <= measured.put.high);
    assert_non_null(strstr(who.heard, "latency of put\nlatency of get\nlatency of take\nhow soon a put is visible\n"));
    assert_non_null(strstr(who.heard, "bandwidth of 16 connections\nremoving what was put\n"));
    assert_false(who.unheard);
    assert_false(who.may_stop);
    assert_no_keys(&measured.store);
    plan_store_measured_release(&measured);
}

static void a_stop_ends_it_and_leaves_nothing(void **state)
{
    plan_store_measured measured = {0};
    audience who = {.stop_at = "latency of take"};
    (void)state;
    assert_int_equal(measure(&measured, &who), SHOAL_STOPPED);
    assert_string_equal(who.heard, "latency of put\nlatency of get\nlatency of take\nremoving what was put\n");
    assert_int_equal(measured.take.count, 0);
    assert_false(who.may_stop);
    assert_no_keys(&measured.store);
    plan_store_measured_release(&measured);
}

/* ---- all there is ------------------------------------------------------------------------------------------------ */

static int count_entries(const char *below)
{
    char full[192];
    int count = 0;
    snprintf(full, sizeof full, "%s/%s", folder, below);
    DIR *entries = opendir(full);
    assert_non_null(entries);
    while (readdir(entries))
        count++;
    closedir(entries);
    return count - 2; /* . and .. */
}

/* The folder that stands for a store is there while it is measured, and a stop is noticed all the while. */
static void a_stopped_calibration_writes_nothing(void **state)
{
    plan_calibration *kept = NULL;
    char *found = NULL;
    audience who = {.stop_at = "how fast kmeans is"};
    const shoal_watcher watcher = watch_as(&who);
    const plan_calibrate_request request = {
        .learners = {.count = 1, .text = {"kmeans"}}, .workers = 1, .seconds = 1, .out = path};
    (void)state;
    assert_int_equal(base_alloc(&kept, 1, sizeof *kept, "the calibration"), SHOAL_OK);
    assert_int_equal(plan_calibrate(kept, &found, &request, &watcher), SHOAL_STOPPED);
    assert_string_equal(found, path);
    assert_int_equal(access(path, F_OK), -1);
    assert_non_null(strstr(who.heard, "removing what was put\n"));
    assert_non_null(strstr(who.heard, "\nhow fast kmeans is\n"));
    assert_null(strstr(who.heard, "what a round of workers takes"));
    assert_false(who.unheard);
    assert_false(who.may_stop);
    assert_int_equal(count_entries("shoal"), 0);
    base_free(&found);
    base_free(&kept);
}

/* What takes too long is left out and reported: usual figures take its place. */
static void a_calibration_ends_in_time(void **state)
{
    plan_calibration *kept = NULL;
    char *found = NULL;
    audience who = {0};
    const shoal_watcher watcher = watch_as(&who);
    const plan_calibrate_request request = {.learners = {.count = 1, .text = {"kmeans"}},
                                            .workers = 1,
                                            .seconds = 1,
                                            .limit = 1e-3, /* over when the store has been measured */
                                            .out = path};
    (void)state;
    assert_int_equal(base_alloc(&kept, 1, sizeof *kept, "the calibration"), SHOAL_OK);
    assert_int_equal(plan_calibrate(kept, &found, &request, &watcher), SHOAL_OK);
    assert_non_null(strstr(who.noted, "no time to measure how fast kmeans is"));
    assert_non_null(strstr(who.noted, "no time to measure what a round of workers takes"));
    assert_null(strstr(who.heard, "how fast kmeans is"));
    assert_true(kept->paces == 0 && kept->sites == 1 && kept->site[0].site.put > 0 && kept->site[0].site.error >= 0.4);
    assert_int_equal(unlink(path), 0);
    base_free(&found);
    base_free(&kept);
}

/* ---- other programs ---------------------------------------------------------------------------------------------- */

static void others_on_the_machine_are_noticed(void **state)
{
    (void)state;
    assert_true(plan_busy_share(2, 2) == 0 && plan_busy_share(2.1, 2) == 0);
    assert_true(plan_busy_share(0.5, 2) == 0.75 && plan_busy_share(0, 2) == 1);
    assert_true(plan_busy_share(0, 0) == 0);
    double found = plan_measure_busy(0.01);
    assert_true(found >= 0 && found <= 1);
    /* The busier, the less sure; a little counts for nothing. */
    assert_true(plan_error_if_busy(0.12, 0) == 0.12 && plan_error_if_busy(0.12, 0.05) == 0.12);
    assert_true(plan_error_if_busy(0.12, 0.3) > 0.12 && plan_error_if_busy(0.12, 0.9) > plan_error_if_busy(0.12, 0.3));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_store_is_measured_and_left_empty),   cmocka_unit_test(a_stop_ends_it_and_leaves_nothing),
        cmocka_unit_test(a_stopped_calibration_writes_nothing), cmocka_unit_test(a_calibration_ends_in_time),
        cmocka_unit_test(others_on_the_machine_are_noticed),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
