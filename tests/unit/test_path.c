/* Folders that are made, and where things belong. */
#include <errno.h>
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

#include "base/memory.h"
#include "base/path.h"

static char root[64];

static const char *at(const char *name)
{
    static char path[8][256];
    static int next;
    char *out = path[next++ % 8];
    snprintf(out, sizeof path[0], "%s/%s", root, name);
    return out;
}

static int make_root(void **state)
{
    (void)state;
    snprintf(root, sizeof root, "/tmp/shoal-path-XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
    struct stat info;
    (void)state;
    base_remove_folder(root);
    return stat(root, &info) == 0 ? -1 : 0;
}

static int mode_of(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode) ? (int)(info.st_mode & 0777) : -1;
}

static void write_file(const char *path)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
}

static void folders_and_those_above(void **state)
{
    base_making making;
    mode_t mask = umask(022);
    (void)state;
    assert_int_equal(base_make_folders(at("one/two/three"), 0700, &making), 0);
    assert_int_equal(making.first, strlen(at("one")));
    assert_int_equal(mode_of(at("one")), 0700);
    assert_int_equal(mode_of(at("one/two/three")), 0700);
    assert_int_equal(base_make_folders_above(at("one/wide//file"), 0777, &making), 0);
    assert_int_equal(making.first, strlen(at("one/wide")));
    assert_int_equal(mode_of(at("one/wide")), 0755);
    assert_int_equal(mode_of(at("one/wide/file")), -1);
    assert_int_equal(base_make_folders(at("one/two/"), 0777, &making), 0);
    assert_int_equal(making.first, 0);
    assert_int_equal(mode_of(at("one/two")), 0700); /* what is there stays as it is */
    assert_int_equal(base_make_folders_above("file", 0777, NULL), 0);
    assert_int_equal(base_make_folders_above("/file", 0777, NULL), 0);
    assert_int_equal(base_make_folders("/", 0777, NULL), 0);
    assert_int_equal(base_make_folders("", 0777, NULL), 0);
    umask(mask);
}

static void what_stands_in_the_way(void **state)
{
    base_making making;
    char deep[5000];
    (void)state;
    write_file(at("file"));
    assert_int_equal(symlink("file", at("to-file")), 0);
    assert_int_equal(symlink("nowhere", at("dangling")), 0);
    assert_int_equal(mkdir(at("real"), 0700), 0);
    assert_int_equal(symlink("real", at("link")), 0);
    assert_int_equal(base_make_folders(at("file"), 0700, &making), ENOTDIR);
    assert_int_equal(making.failed, strlen(at("file")));
    assert_int_equal(base_make_folders_above(at("file/below/x"), 0700, &making), ENOTDIR);
    assert_int_equal(making.failed, strlen(at("file")));
    assert_int_equal(base_make_folders(at("to-file"), 0700, NULL), ENOTDIR);
    assert_int_equal(base_make_folders(at("dangling/x"), 0700, &making), ENOENT);
    assert_int_equal(making.failed, strlen(at("dangling")));
    assert_int_equal(base_make_folders(at("link/below"), 0700, &making), 0);
    assert_int_equal(mode_of(at("real/below")), 0700);
    memset(deep, 'x', sizeof deep - 1);
    deep[sizeof deep - 1] = '\0';
    assert_int_equal(base_make_folders(deep, 0700, NULL), ENAMETOOLONG);
}

static void removing_follows_no_links(void **state)
{
    (void)state;
    assert_int_equal(base_make_folders(at("kept"), 0700, NULL), 0);
    write_file(at("kept/file"));
    assert_int_equal(base_make_folders(at("gone/deep"), 0700, NULL), 0);
    write_file(at("gone/deep/file"));
    assert_int_equal(symlink(at("kept"), at("gone/link")), 0);
    base_remove_folder(at("gone"));
    assert_int_equal(mode_of(at("gone")), -1);
    assert_int_equal(access(at("kept/file"), F_OK), 0);
    base_remove_folder(at("gone")); /* it no longer exists, which is fine */
}

static void expect_path(base_place place, const char *name, const char *wanted)
{
    char *path = NULL;
    assert_int_equal(base_user_path(&path, place, name, "a test needs it"), SHOAL_OK);
    assert_string_equal(path, wanted);
    base_free(&path);
}

static void where_a_users_files_are(void **state)
{
    char *path = NULL;
    (void)state;
    setenv("HOME", "/home/fish", 1);
    setenv("XDG_CONFIG_HOME", "/etc/mine", 1);
    setenv("XDG_STATE_HOME", "relative", 1); /* is to be ignored */
    unsetenv("XDG_CACHE_HOME");
    expect_path(BASE_CONFIG, "calibration.json", "/etc/mine/shoal/calibration.json");
    expect_path(BASE_STATE, "jobs", "/home/fish/.local/state/shoal/jobs");
    expect_path(BASE_CACHE, NULL, "/home/fish/.cache/shoal");
    setenv("HOME", "", 1);
    expect_path(BASE_CONFIG, NULL, "/etc/mine/shoal");
    assert_int_equal(base_user_path(&path, BASE_STATE, "jobs", "a test needs it"), SHOAL_USAGE);
    assert_string_equal(shoal_error(), "a test needs it: neither XDG_STATE_HOME nor HOME names a folder");
    unsetenv("HOME");
    path = (char *)root;
    assert_int_equal(base_user_path(&path, BASE_CACHE, NULL, NULL), SHOAL_OK);
    assert_null(path);
}

static void temporary_ones(void **state)
{
    char *folder = NULL, bytes[4];
    const char *where = NULL;
    (void)state;
    unsetenv("TMPDIR");
    assert_string_equal(base_temporary_folder(), "/tmp");
    setenv("TMPDIR", "relative", 1);
    assert_string_equal(base_temporary_folder(), "/tmp");
    setenv("TMPDIR", root, 1);
    assert_int_equal(base_make_temporary_folder(&folder, "shoal-test"), SHOAL_OK);
    assert_memory_equal(folder, at("shoal-test-"), strlen(at("shoal-test-")));
    assert_int_equal(mode_of(folder), 0700);
    base_free(&folder);
    int file = base_open_temporary(&where);
    assert_true(file >= 0);
    assert_string_equal(where, root);
    assert_int_equal(write(file, "fish", 4), 4);
    assert_int_equal(pread(file, bytes, 4, 0), 4);
    close(file);
    setenv("TMPDIR", at("nowhere"), 1);
    assert_int_equal(base_open_temporary(&where), -1);
    assert_string_equal(where, at("nowhere"));
    assert_int_equal(base_make_temporary_folder(&folder, "shoal-test"), SHOAL_SYSTEM);
    assert_null(folder);
    assert_non_null(strstr(shoal_error(), "can't make a folder: No such file or directory"));
}

static void names_of_files(void **state)
{
    (void)state;
    assert_string_equal(base_path_name("a/b.npy"), "b.npy");
    assert_string_equal(base_path_name("/b"), "b");
    assert_string_equal(base_path_name("b"), "b");
    assert_string_equal(base_path_name("a/"), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folders_and_those_above),
        cmocka_unit_test(what_stands_in_the_way),
        cmocka_unit_test(removing_follows_no_links),
        cmocka_unit_test(where_a_users_files_are),
        cmocka_unit_test(temporary_ones),
        cmocka_unit_test(names_of_files),
    };
    return cmocka_run_group_tests(tests, make_root, remove_root);
}
