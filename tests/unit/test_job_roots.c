/* What a worker may read: plain files below the folders it was given, whichever links lead there or away, and stores
 * below the URLs it was given; all else is denied before it is opened. */
#include "job_support.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "engine/store/job_roots.h"

static job_roots *roots_of(const char *list)
{
    job_roots *roots = NULL;
    EXPECT_OK(job_roots_new(&roots, list));
    return roots;
}

static void write_file(const char *path)
{
    int file = open(path, O_CREAT | O_WRONLY, 0600);
    assert_int_equal(write(file, "x", 1), 1);
    close(file);
}

static void make_folder(const char *path)
{
    assert_int_equal(mkdir(path, 0700), 0);
}

static void make_link(const char *to, const char *path)
{
    assert_int_equal(symlink(to, path), 0);
}

static void expect_file(const job_roots *roots, const char *path, int expected, const char *words)
{
    int file = -1, status = job_roots_open_file(&file, roots, path);
    if (status != expected || (status < 0 && !strstr(shoal_error(), words)))
        fail_msg("%s: status %d, \"%s\", not %d with \"%s\"", path, status, shoal_error(), expected, words);
    assert_int_equal(file >= 0, status == SHOAL_OK);
    if (file >= 0)
        close(file);
}

static void files(void **state)
{
    (void)state;
    char list[1100];
    make_folder(at("in"));
    make_folder(at("in/deep"));
    make_folder(at("inside")); /* whose name the root's begins */
    make_folder(at("also"));
    write_file(at("in/deep/file"));
    write_file(at("also/file"));
    write_file(at("inside/file"));
    write_file(at("out"));
    make_link(at("in"), at("link"));
    make_link(at("out"), at("in/away"));
    make_link("deep/file", at("in/near"));
    make_link("/proc/self/cwd", at("in/magic"));
    assert_int_equal(mkfifo(at("in/pipe"), 0600), 0);
    snprintf(list, sizeof list, "%s,%s/", at("link"), at("also"));
    job_roots *roots = roots_of(list);
    expect_file(roots, at("in/deep/file"), SHOAL_OK, "");
    expect_file(roots, at("link/deep/file"), SHOAL_OK, "");
    expect_file(roots, at("in/near"), SHOAL_OK, "");
    expect_file(roots, at("in/../also/file"), SHOAL_OK, "");
    expect_file(roots, at("inside/file"), SHOAL_DENIED, "below --data-root");
    expect_file(roots, at("out"), SHOAL_DENIED, "below --data-root");
    expect_file(roots, at("in/away"), SHOAL_DENIED, "below --data-root");
    expect_file(roots, at("in/../out"), SHOAL_DENIED, "below --data-root");
    expect_file(roots, at("in/magic/CMakeLists.txt"), SHOAL_DENIED, "");
    expect_file(roots, at("in/none"), SHOAL_DENIED, "below --data-root"); /* as for what is elsewhere */
    expect_file(roots, at("in/../none"), SHOAL_DENIED, "below --data-root");
    expect_file(roots, at("in/pipe"), SHOAL_INVALID, "in/pipe is not a plain file");
    expect_file(roots, at("in"), SHOAL_INVALID, "is not a plain file");
    job_roots_free(&roots);
    roots = roots_of("/");
    expect_file(roots, at("in/deep/file"), SHOAL_OK, "");
    expect_file(roots, at("in/away"), SHOAL_OK, "");
    expect_file(roots, "/dev/zero", SHOAL_INVALID, "/dev/zero is not a plain file");
    job_roots_free(&roots);
    roots = roots_of(NULL);
    expect_file(roots, at("out"), SHOAL_DENIED, "allow it with --data-root");
    expect_file(roots, at("none"), SHOAL_DENIED, "allow it with --data-root"); /* nor does it tell what there is */
    job_roots_free(&roots);
}

/* A root is what it was when the worker got it: a link in its place leads nowhere. */
static void a_root_that_is_replaced(void **state)
{
    (void)state;
    make_folder(at("in"));
    write_file(at("in/file"));
    make_folder(at("secret"));
    write_file(at("secret/file"));
    job_roots *roots = roots_of(at("in"));
    assert_int_equal(rename(at("in"), at("old")), 0);
    make_link(at("secret"), at("in"));
    expect_file(roots, at("in/file"), SHOAL_DENIED, "below --data-root");
    job_roots_free(&roots);
}

static void lists_that_make_no_sense(void **state)
{
    (void)state;
    job_roots *roots = NULL;
    write_file(at("file"));
    EXPECT_FAIL(job_roots_new(&roots, at("none")), SHOAL_USAGE, "is not a folder that can be opened");
    EXPECT_FAIL(job_roots_new(&roots, at("file")), SHOAL_USAGE, "is not a folder that can be opened");
    EXPECT_FAIL(job_roots_new(&roots, "az://a:b@c/d"), SHOAL_USAGE, "--data-root: ");
    EXPECT_FAIL(job_roots_new(&roots, "ftp://a/b"), SHOAL_USAGE, "unknown kind of store 'ftp'");
    assert_null(roots);
}

static void expect_store(const job_roots *roots, const char *url, const shoal_store *own, int expected)
{
    shoal_store *store = NULL;
    char *key = NULL;
    int status = job_roots_open_store(&store, &key, roots, url, own, false, soon());
    if (status != expected)
        fail_msg("%s: status %d, \"%s\", not %d", url, status, shoal_error(), expected);
    shoal_store_close(&store);
    shoal_text_free(&key);
}

static void stores(void **state)
{
    (void)state;
    make_folder(at("in"));
    make_folder(at("in/plain"));
    shoal_store *own = open_store(at("own")), *in = open_store(at("in/store")), *out = open_store(at("out"));
    shoal_store_close(&in);
    shoal_store_close(&out);
    make_link(at("out"), at("in/link"));
    make_link(at("in/store"), at("way"));
    job_roots *none = roots_of(""), *roots = roots_of(at("in"));
    expect_store(none, at("own/key"), own, SHOAL_OK);
    expect_store(none, at("in/store/key"), own, SHOAL_DENIED);
    expect_store(none, "mem:x/key", own, SHOAL_DENIED);
    expect_store(roots, at("in/store/some/key"), own, SHOAL_OK);
    expect_store(roots, at("way/key"), own, SHOAL_OK);
    expect_store(roots, at("out/key"), own, SHOAL_DENIED);
    expect_store(roots, at("in/link/key"), own, SHOAL_DENIED);
    expect_store(roots, at("in/store/../../out/key"), own, SHOAL_DENIED);
    expect_store(roots, at("in/plain/key"), own, SHOAL_SYSTEM);  /* where there is no store */
    expect_store(roots, "az://acct/box/key", own, SHOAL_DENIED); /* at once: nobody was asked */
    expect_store(roots, "no:such", own, SHOAL_DENIED);
    job_roots_free(&roots);
    job_roots_free(&none);
    shoal_store_close(&own);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(files, job_setup, job_teardown),
        cmocka_unit_test_setup_teardown(a_root_that_is_replaced, job_setup, job_teardown),
        cmocka_unit_test_setup_teardown(lists_that_make_no_sense, job_setup, job_teardown),
        cmocka_unit_test_setup_teardown(stores, job_setup, job_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
