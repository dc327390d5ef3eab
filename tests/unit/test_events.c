/* src/run/events.c: events as TensorBoard's protocol buffers have them, in a file that is whole at every moment.
 * tests/system/test_tensorboard.py reads such files with other programs. */
#include "data_support.h"

#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

#include "base/memory.h"
#include "run/events.c"

static void assert_bytes(base_writer *out, const char *expected, size_t size)
{
    assert_int_equal(out->status, SHOAL_OK);
    assert_int_equal(out->size, size);
    assert_memory_equal(out->data, expected, size);
    base_writer_release(out);
}
#define ASSERT_BYTES(out, text) assert_bytes(out, text, sizeof text - 1)

/* Bytes as google.protobuf writes them. */
static void messages_are_protocol_buffers(void **state)
{
    const run_event_value two[] = {{"a", 1}, {"bc", -2.5}};
    base_writer out = {0};
    (void)state;
    run_event_write_version(&out, 1.5);
    ASSERT_BYTES(&out, "\x09\0\0\0\0\0\0\xf8\x3f\x1a\x0d"
                       "brain.Event:2");
    run_event_write_values(&out, 1.5, 300, two, 2);
    ASSERT_BYTES(&out, "\x09\0\0\0\0\0\0\xf8\x3f\x10\xac\x02\x2a\x15\x0a\x08\x0a\x01"
                       "a\x15\0\0\x80\x3f\x0a\x09\x0a\x02"
                       "bc\x15\0\0\x20\xc0");
    run_event_write_values(&out, 0, -1, NULL, 0); /* negative numbers take ten bytes */
    ASSERT_BYTES(&out, "\x09\0\0\0\0\0\0\0\0\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x2a\0");
}

static void what_is_not_finite_is_left_out(void **state)
{
    const run_event_value values[] = {{"a", NAN}, {"b", INFINITY}, {"c", 1e300}, {"d", 0}};
    base_writer out = {0};
    (void)state;
    run_event_write_values(&out, 0, 0, values, 4); /* c is more than a float32 can be */
    ASSERT_BYTES(&out, "\x09\0\0\0\0\0\0\0\0\x10\0\x2a\x0a\x0a\x08\x0a\x01"
                       "d\x15\0\0\0\0");
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static const char *only_file(const char *folder)
{
    static char path[1024];
    int count = 0;
    DIR *entries = opendir(folder);
    assert_non_null(entries);
    for (struct dirent *entry; (entry = readdir(entries));) {
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        count++;
    }
    closedir(entries);
    assert_int_equal(count, 1);
    return path;
}

static int64_t size_of(const char *path)
{
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    return info.st_size;
}

static void remove_all(const char *folder)
{
    DIR *entries = opendir(folder);
    for (struct dirent *entry; (entry = readdir(entries));) {
        char path[1024];
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        unlink(path);
    }
    closedir(entries);
    assert_int_equal(rmdir(folder), 0);
}

static void the_file_grows_with_every_event(void **state)
{
    const run_event_value value = {"x", 1};
    const char *folder = file_path("runs/first");
    run_events *events = NULL;
    (void)state;
    assert_int_equal(run_events_open(&events, folder), SHOAL_OK); /* makes both folders */
    const char *path = only_file(folder);
    assert_non_null(strstr(path, "events.out.tfevents."));
    assert_true(strtoll(strstr(path, "tfevents.") + 9, NULL, 10) >= time(NULL) - 60);
    assert_int_equal(size_of(path), 24 + DATA_TFRECORD_OVERHEAD);
    run_events_add(events, 7, &value, 1);
    assert_int_equal(size_of(path), 24 + 23 + 2 * DATA_TFRECORD_OVERHEAD);
    run_events_add(events, 8, &value, 1);
    assert_int_equal(size_of(path), 24 + 2 * 23 + 3 * DATA_TFRECORD_OVERHEAD);
    assert_int_equal(run_events_close(&events), SHOAL_OK);
    assert_null(events);
    assert_int_equal(run_events_close(&events), SHOAL_OK);
    remove_all(folder);
    assert_int_equal(rmdir(file_path("runs")), 0);
}

static void two_runs_at_once_have_two_files(void **state)
{
    run_events *first = NULL, *second = NULL;
    int count = 0;
    char *folder = strdup(file_path("both/"));
    (void)state;
    assert_int_equal(run_events_open(&first, folder), SHOAL_OK);
    assert_int_equal(run_events_open(&second, folder), SHOAL_OK);
    assert_int_equal(run_events_close(&first), SHOAL_OK);
    assert_int_equal(run_events_close(&second), SHOAL_OK);
    DIR *entries = opendir(folder);
    for (struct dirent *entry; (entry = readdir(entries));)
        count += entry->d_name[0] != '.';
    closedir(entries);
    assert_int_equal(count, 2);
    remove_all(folder);
    free(folder);
}

static void assert_refused(const char *folder, int status, const char *why)
{
    run_events *events = NULL;
    assert_int_equal(run_events_check(folder), status);
    assert_non_null(strstr(shoal_error(), folder));
    assert_non_null(strstr(shoal_error(), why));
    assert_int_equal(run_events_open(&events, folder), status);
    assert_null(events);
}

static void folders_that_can_not_be_are_told(void **state)
{
    run_events *events = NULL;
    (void)state;
    const char *file = write_text("file", "x");
    assert_refused(file, SHOAL_SYSTEM, "Not a directory");
    assert_refused(file_path("file/below/it"), SHOAL_SYSTEM, "Not a directory");
    assert_refused("", SHOAL_USAGE, "folder");
    assert_int_equal(run_events_check(file_path("a/b/c")), SHOAL_OK); /* yet to be made, and not made by this */
    assert_int_equal(access(file_path("a"), F_OK), -1);
    assert_int_equal(run_events_check("."), SHOAL_OK);
    assert_int_equal(run_events_check("none-of-this-name/at-all"), SHOAL_OK);
    assert_int_equal(run_events_open(&events, "/proc/none/here"), SHOAL_SYSTEM); /* seen only when it is made */
    assert_non_null(strstr(shoal_error(), "--tensorboard /proc/none/here: can't write to this folder: "));
    assert_null(events);
    assert_int_equal(run_events_check("/"), geteuid() == 0 ? SHOAL_OK : SHOAL_SYSTEM);
}

/* A disk that is full in the midst of an event: nothing is written after the half, and the end reports it. */
static void a_failure_is_kept_for_the_end(void **state)
{
    const run_event_value value = {"x", 1};
    const char *folder = file_path("full");
    struct rlimit old, small;
    run_events *events = NULL;
    (void)state;
    assert_int_equal(run_events_open(&events, folder), SHOAL_OK);
    const char *path = only_file(folder);
    getrlimit(RLIMIT_FSIZE, &old);
    small = old;
    small.rlim_cur = 60;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    run_events_add(events, 1, &value, 1);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    run_events_add(events, 2, &value, 1);
    assert_int_equal(size_of(path), 60);
    assert_int_equal(run_events_close(&events), SHOAL_SYSTEM);
    assert_non_null(strstr(shoal_error(), path));
    assert_non_null(strstr(shoal_error(), "File too large"));
    assert_null(events);
    remove_all(folder);
}

static void every_allocation_may_fail(void **state)
{
    const run_event_value value = {"x", 1};
    const char *folder = file_path("memory");
    (void)state;
    for (int64_t n = 0;; n++) {
        run_events *events = NULL;
        base_memory_fail_after(n);
        int status = run_events_open(&events, folder);
        if (status == SHOAL_OK) {
            run_events_add(events, 1, &value, 1);
            status = run_events_close(&events);
        }
        base_memory_fail_after(-1);
        assert_null(events);
        if (status == SHOAL_OK)
            break;
        assert_int_equal(status, SHOAL_MEMORY);
        assert_true(n < 100);
        if (access(folder, F_OK) == 0)
            remove_all(folder); /* a file of the second before has the name that this one wants */
    }
    remove_all(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_are_protocol_buffers),    cmocka_unit_test(what_is_not_finite_is_left_out),
        cmocka_unit_test(the_file_grows_with_every_event),  cmocka_unit_test(two_runs_at_once_have_two_files),
        cmocka_unit_test(folders_that_can_not_be_are_told), cmocka_unit_test(a_failure_is_kept_for_the_end),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, folder_setup, folder_teardown);
}
