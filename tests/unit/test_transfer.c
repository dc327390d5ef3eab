/* Labels: threads Copying as a library: folders go into a store and come back, what is there is skipped, a stop leaves
 * something to go on from, and the caller is told. */
#include "data_support.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "store/transfer/transfer.h"

enum { FILES = 12, BYTES = 1000 };

static void run_shell(const char *format, const char *folder)
{
    char command[256];
    snprintf(command, sizeof command, format, folder);
    assert_int_equal(system(command), 0);
}

/* A folder "files" with a few files and one more below; "state" for journals. */
static int setup(void **state)
{
    int failed = folder_setup(state);
    setenv("XDG_STATE_HOME", file_path("state"), 1);
    run_shell("mkdir -p %s/files/sub", test_folder);
    for (int i = 0; i < FILES; i++) {
        char name[32], bytes[BYTES];
        memset(bytes, 'a' + i, sizeof bytes);
        snprintf(name, sizeof name, "files/%s%d", i % 2 ? "sub/" : "", i);
        write_file(name, bytes, sizeof bytes);
    }
    return failed;
}

static int teardown(void **state)
{
    (void)state;
    run_shell("rm -rf %s", test_folder);
    return 0;
}

static const char *store_url(const char *rest)
{
    static char urls[4][256];
    static int next;
    char *url = urls[next++ % 4];
    snprintf(url, sizeof urls[0], "dir:%s/store%s", test_folder, rest);
    return url;
}

static transfer_options recursively(void)
{
    return (transfer_options){.recursive = true, .jobs = 3, .patience = 60};
}

static transfer_report put_files(const transfer_options *options, int expected)
{
    transfer_report report = {0};
    const char *const paths[] = {file_path("files")};
    int status = transfer_put(&report, paths, 1, store_url("/"), options);
    if (status != expected)
        fail_msg("%d: %s", status, shoal_error());
    return report;
}

typedef struct seen {
    int keys, segments;
    int64_t bytes;
    char order[256];
} seen;

static int note_listed(void *context, const transfer_listed *listed)
{
    seen *self = context;
    size_t length = strlen(self->order);
    self->keys++;
    self->segments += listed->starts;
    self->bytes += listed->entry->size;
    if (listed->starts)
        snprintf(self->order + length, sizeof self->order - length, "%.*s ", (int)listed->segment, listed->name);
    return SHOAL_OK;
}

static void test_a_folder_goes_in_and_comes_back(void **state)
{
    const transfer_options options = recursively();
    seen seen = {0};
    (void)state;
    transfer_report put = put_files(&options, SHOAL_OK);
    assert_true(put.begun);
    assert_int_equal(put.files, FILES);
    assert_int_equal(put.bytes, FILES * BYTES);
    assert_true(put.requests.requests[SHOAL_REQUEST_PUT] >= FILES);
    transfer_report_release(&put);

    assert_int_equal(transfer_list(store_url("/files"), 60, note_listed, &seen), SHOAL_OK);
    assert_int_equal(seen.keys, FILES);
    assert_int_equal(seen.bytes, FILES * BYTES);
    assert_string_equal(seen.order, "0 10 2 4 6 8 sub/ ");
    assert_int_equal(transfer_list(store_url("/nothing"), 60, note_listed, &seen), SHOAL_ABSENT);

    transfer_report got = {0};
    const char *const urls[] = {store_url("/files")};
    assert_int_equal(transfer_get(&got, urls, 1, file_path("back"), &options), SHOAL_OK);
    assert_int_equal(got.files, FILES);
    transfer_report_release(&got);
    run_shell("cd %s && diff -r files back", test_folder);
}

static void test_what_is_there_is_skipped(void **state)
{
    const transfer_options options = recursively();
    (void)state;
    for (int round = 0; round < 2; round++) {
        transfer_report report = put_files(&options, SHOAL_OK);
        assert_int_equal(report.files, round ? 0 : FILES);
        assert_int_equal(report.skipped, round ? FILES : 0);
        transfer_report_release(&report);
    }
    transfer_report copied = {0};
    assert_int_equal(transfer_copy(&copied, store_url("/files"), store_url("/again"), &options), SHOAL_OK);
    assert_int_equal(copied.files, FILES);
    transfer_report_release(&copied);
    copied = (transfer_report){0};
    assert_int_equal(transfer_copy(&copied, store_url("/files"), store_url("/files/sub/deeper"), &options),
                     SHOAL_USAGE);
    assert_false(copied.begun);
    transfer_report_release(&copied);
}

static void test_a_whole_store_is_removed_only_on_request(void **state)
{
    transfer_options options = recursively();
    const char *const store[] = {store_url("/")};
    transfer_report report = put_files(&options, SHOAL_OK);
    transfer_report_release(&report);
    (void)state;
    report = (transfer_report){0};
    assert_int_equal(transfer_remove(&report, store, 1, &options), SHOAL_USAGE);
    assert_false(report.begun);
    options.all = true;
    assert_int_equal(transfer_remove(&report, store, 1, &options), SHOAL_OK);
    assert_true(report.begun);
    assert_int_equal(report.files, FILES);
    assert_int_equal(report.bytes, FILES * BYTES);
    transfer_report_release(&report);
}

/* ---- stopping ---------------------------------------------------------------------------------------------------- */

typedef struct told {
    volatile int stop;
    int stoppable, no_longer; /* how often */
    bool stop_at_once;
    atomic_int hangs;
    int pipe[2];
} told;

static void note_stoppable(void *context, bool stoppable)
{
    told *self = context;
    self->stoppable += stoppable;
    self->no_longer += !stoppable;
    if (stoppable && self->stop_at_once)
        __atomic_store_n(&self->stop, 1, __ATOMIC_RELAXED);
}

static void test_a_stop_leaves_something_to_go_on_from(void **state)
{
    told told = {.stop_at_once = true};
    transfer_options options = recursively();
    (void)state;
    options.stop = &told.stop;
    options.on_stoppable = note_stoppable;
    options.context = &told;
    transfer_report report = put_files(&options, SHOAL_STOPPED);
    assert_true(report.begun);
    assert_int_equal(report.files, 0);
    assert_int_equal(told.stoppable, 1);
    assert_int_equal(told.no_longer, 1);
    transfer_report_release(&report);

    told.stop = 0;
    told.stop_at_once = false;
    report = put_files(&options, SHOAL_OK);
    assert_int_equal(report.files, FILES);
    transfer_report_release(&report);
}

/* What hangs here is standard input, and it goes on when the caller was told. */
static void close_input(void *context)
{
    told *self = context;
    self->hangs++;
    close(self->pipe[1]);
}

static void test_the_caller_is_told_what_hangs_after_a_stop(void **state)
{
    told told = {.stop_at_once = true};
    transfer_options options = {.jobs = 1, .patience = 60, .stop = &told.stop};
    transfer_report report = {0};
    const char *const input[] = {"-"};
    (void)state;
    options.on_stoppable = note_stoppable;
    options.on_hang = close_input;
    options.context = &told;
    transfer_report made = put_files(&(transfer_options){.recursive = true, .jobs = 1, .patience = 60}, SHOAL_OK);
    transfer_report_release(&made);
    int old = dup(STDIN_FILENO);
    assert_int_equal(pipe(told.pipe), 0);
    dup2(told.pipe[0], STDIN_FILENO);
    int status = transfer_put(&report, input, 1, store_url("/key"), &options);
    dup2(old, STDIN_FILENO);
    close(old);
    close(told.pipe[0]);
    assert_int_equal(status, SHOAL_STOPPED);
    assert_int_equal(told.hangs, 1);
    transfer_report_release(&report);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_folder_goes_in_and_comes_back, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_is_there_is_skipped, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_whole_store_is_removed_only_on_request, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_stop_leaves_something_to_go_on_from, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_caller_is_told_what_hangs_after_a_stop, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
