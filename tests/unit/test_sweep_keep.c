/* src/sweep/keep.c: a trial's folder goes through a store to another machine; what it no longer has goes; a list that
 * makes no sense, or whose files are gone, makes the trial begin anew and touches nothing else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include <shoal/error.h>

#include "base/io.h"
#include "base/path.h"
#include "sweep/keep.h"

typedef struct fixture {
    shoal_store *store;
    sweep_place place;
    char base[64], here[96], there[96];
} fixture;

static int set_up(void **state)
{
    fixture *self = calloc(1, sizeof *self);
    snprintf(self->base, sizeof self->base, "/tmp/shoal-keep-XXXXXX");
    assert_non_null(mkdtemp(self->base));
    snprintf(self->here, sizeof self->here, "%s/here", self->base);
    snprintf(self->there, sizeof self->there, "%s/there", self->base);
    assert_int_equal(mkdir(self->here, 0777) | mkdir(self->there, 0777), 0);
    assert_int_equal(shoal_store_open(&self->store, "mem:keep", NULL, shoal_after(5)), SHOAL_OK);
    self->place = (sweep_place){.store = self->store, .name = "s", .patience = 5};
    *state = self;
    return 0;
}

static int tear_down(void **state)
{
    fixture *self = *state;
    shoal_store_close(&self->store);
    base_remove_folder(self->base);
    free(self);
    return 0;
}

static sweep_keeper keeper_of(const fixture *self, const char *folder)
{
    return (sweep_keeper){.place = &self->place, .trial = 7, .folder = folder, .holder = folder};
}

static void write_text(const char *folder, const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_int_equal(base_make_folders_above(path, 0777, NULL), 0);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void expect_text(const char *folder, const char *name, const char *text)
{
    char path[256], got[64];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_int_equal(base_read_small(got, sizeof got, path), strlen(text));
    assert_string_equal(got, text);
}

static int64_t count_files(const fixture *self)
{
    shoal_listing page = {0};
    int64_t count = 0;
    do {
        assert_int_equal(shoal_store_list(self->store, "sweeps/s/trial/7/file/", NULL, &page, shoal_after(5)),
                         SHOAL_OK);
        count += (int64_t)page.count;
    } while (page.more);
    shoal_listing_release(&page);
    return count;
}

static void test_goes_to_another_machine_and_back(void **state)
{
    const fixture *self = *state;
    sweep_keeper here = keeper_of(self, self->here), there = keeper_of(self, self->there);
    write_text(self->here, "reports.jsonl", "{}\n");
    assert_int_equal(sweep_keeper_put(&here), SHOAL_OK);
    assert_int_equal(count_files(self), 0); /* nothing but reports */
    write_text(self->here, "model", "one");
    write_text(self->here, "deep/state", "two");
    assert_int_equal(sweep_keeper_put(&here), SHOAL_OK);
    assert_int_equal(count_files(self), 3);
    write_text(self->there, "stale", "?");
    assert_int_equal(sweep_keeper_fetch(&there), SHOAL_OK);
    expect_text(self->there, "model", "one");
    expect_text(self->there, "deep/state", "two");
    expect_text(self->there, "reports.jsonl", "{}\n");
    expect_text(self->there, "stale", "");
    write_text(self->there, "model", "three");
    assert_int_equal(sweep_keeper_put(&there), SHOAL_OK);
    assert_int_equal(count_files(self), 3); /* "one" is gone */
    assert_int_equal(sweep_keeper_fetch(&here), SHOAL_OK);
    expect_text(self->here, "model", "three");
    write_text(self->here, "model", "mine");
    assert_int_equal(sweep_keeper_fetch(&here), SHOAL_OK); /* it was the last: what it has is newer */
    expect_text(self->here, "model", "mine");
    assert_int_equal(sweep_keeper_drop(&here), SHOAL_OK);
    assert_int_equal(count_files(self), 0);
    sweep_keeper_release(&here);
    sweep_keeper_release(&there);
}

static void test_what_makes_no_sense_begins_anew(void **state)
{
    static const char *const lists[] = {
        "{\"holder\": \"x\", \"files\": [{\"name\": \"../out\", \"bytes\": 1, \"sha256\": \"%064d\"}]}",
        "{\"holder\": \"x\", \"files\": [{\"name\": \"a\", \"bytes\": 1, \"sha256\": \"%064d\"}]}",
        "{\"holder\": \"x\", \"files\": [{\"name\": \"a\", \"bytes\": 1, \"sha256\": \"../../%058d\"}]}",
        "{\"holder\": \"x\", \"files\": [7, %d]}",
    };
    const fixture *self = *state;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        char text[256];
        sweep_keeper keeper = keeper_of(self, self->here);
        snprintf(text, sizeof text, lists[i], 0);
        assert_int_equal(sweep_place_put(&self->place, "trial/7/folder", text), SHOAL_OK);
        write_text(self->here, "old", "old");
        assert_int_equal(sweep_keeper_fetch(&keeper), SHOAL_OK);
        expect_text(self->here, "old", "");
        expect_text(self->base, "out", "");
        assert_true(base_path_is_folder(self->here));
        sweep_keeper_release(&keeper);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_goes_to_another_machine_and_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_makes_no_sense_begins_anew, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("sweep_keep", tests, NULL, NULL);
}
