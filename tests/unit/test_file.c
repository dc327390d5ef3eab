/* Outputs: the old file stays whole until the new one is, and nothing else is ever left behind. */
#include "data_support.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/memory.h"

/* What names of temporaries are made from, in place of the C library's: predictable, and the first two equal. */
ssize_t getrandom(void *bytes, size_t size, unsigned flags)
{
    static unsigned long long calls;
    unsigned long long word = calls++ < 2 ? 0 : calls;
    (void)flags;
    memcpy(bytes, &word, size < sizeof word ? size : sizeof word);
    return (ssize_t)size;
}

static void expect_file(const char *name, const char *text)
{
    char bytes[256];
    size_t size = read_whole_file(bytes, sizeof bytes - 1, file_path(name));
    bytes[size] = 0;
    assert_string_equal(bytes, text);
}

static base_output *open_output(const char *name)
{
    base_output *output = NULL;
    if (base_output_open(&output, file_path(name)) < 0)
        fail_msg("%s", shoal_error());
    return output;
}

/* A file that has the temporary's name is somebody else's: another name is found, and it stays.  This test is the
 * first, since it knows which name is tried first. */
static void test_the_temporary_of_another_stays(void **state)
{
    (void)state;
    char random[64], counted[64];
    snprintf(random, sizeof random, "x.tmp-%ld-%016llx", (long)getpid(), 0ull);
    snprintf(counted, sizeof counted, "x.tmp-%ld-0", (long)getpid());
    write_text(random, "theirs");
    write_text(counted, "theirs too");
    base_output *output = open_output("x");
    base_output_write(output, "ours", 4);
    assert_int_equal(count_files(), 3);
    base_output_discard(&output);
    expect_file(random, "theirs");
    expect_file(counted, "theirs too");
    output = open_output("x");
    base_output_discard_all();
    base_output_discard(&output);
    expect_file(random, "theirs");
    unlink(file_path(random));
    unlink(file_path(counted));
    assert_int_equal(count_files(), 0);
}

static void test_old_file_stays_until_commit(void **state)
{
    (void)state;
    write_text("old", "old");
    base_output *output = open_output("old");
    assert_int_equal(base_output_write(output, "new", 3), SHOAL_OK);
    fprintf(base_output_stream(output), " %d", 7);
    fflush(base_output_stream(output));
    expect_file("old", "old");
    assert_int_equal(count_files(), 2);
    assert_int_equal(base_output_commit(&output), SHOAL_OK);
    assert_null(output);
    expect_file("old", "new 7");
    assert_int_equal(count_files(), 1);
    base_output_discard(&output); /* as the example in file.h has it: harmless after a commit */
    expect_file("old", "new 7");
    unlink(file_path("old"));
}

static void test_a_new_file_appears_at_commit(void **state)
{
    (void)state;
    base_output *output = open_output("fresh");
    assert_int_equal(base_output_write(output, "", 0), SHOAL_OK);
    assert_int_equal(access(file_path("fresh"), F_OK), -1);
    assert_int_equal(base_output_commit(&output), SHOAL_OK);
    expect_file("fresh", "");
    unlink(file_path("fresh"));
}

static void test_discard_leaves_the_old(void **state)
{
    (void)state;
    write_text("old", "old");
    base_output *output = open_output("old"), *none = open_output("none");
    base_output_write(output, "new", 3);
    base_output_discard(&output);
    assert_null(output);
    base_output_discard(&none);
    expect_file("old", "old");
    assert_int_equal(count_files(), 1);
    unlink(file_path("old"));
}

static void test_two_outputs_to_one_path(void **state)
{
    (void)state;
    base_output *first = open_output("both"), *second = open_output("both");
    base_output_write(first, "first", 5);
    base_output_write(second, "second", 6);
    assert_int_equal(base_output_commit(&second), SHOAL_OK);
    expect_file("both", "second");
    assert_int_equal(base_output_commit(&first), SHOAL_OK);
    expect_file("both", "first");
    assert_int_equal(count_files(), 1);
    unlink(file_path("both"));
}

static void test_mode_is_kept(void **state)
{
    (void)state;
    struct stat info;
    write_text("secret", "old");
    chmod(file_path("secret"), 0600);
    base_output *output = open_output("secret");
    assert_int_equal(base_output_commit(&output), SHOAL_OK);
    assert_int_equal(stat(file_path("secret"), &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    mode_t before = umask(077); /* takes nothing from what the old file had */
    chmod(file_path("secret"), 0664);
    output = open_output("secret");
    assert_int_equal(base_output_commit(&output), SHOAL_OK);
    umask(027);
    output = open_output("fresh");
    assert_int_equal(base_output_commit(&output), SHOAL_OK);
    umask(before);
    assert_int_equal(stat(file_path("secret"), &info), 0);
    assert_int_equal(info.st_mode & 0777, 0664);
    assert_int_equal(stat(file_path("fresh"), &info), 0);
    assert_int_equal(info.st_mode & 0777, 0640);
    unlink(file_path("secret"));
    unlink(file_path("fresh"));
}

/* A program whose standard output is a file writes to that very file: replaced, what follows would go to a dead one. */
static void test_what_standard_output_is_redirected_to(void **state)
{
    (void)state;
    base_output *output = NULL;
    fflush(stdout);
    int kept = dup(STDOUT_FILENO);
    assert_int_equal(base_output_descriptor(write_text("out", "")), -1);
    int file = open(file_path("out"), O_WRONLY);
    dup2(file, STDOUT_FILENO);
    bool before = write(STDOUT_FILENO, "before ", 7) == 7;
    int by_name = base_output_descriptor(file_path("out")), by_device = base_output_descriptor("/dev/stdout");
    int status = base_output_open(&output, "/dev/stdout");
    if (status == SHOAL_OK)
        status = base_output_write(output, "middle ", 7);
    if (status == SHOAL_OK)
        status = base_output_commit(&output);
    bool after = write(STDOUT_FILENO, "after", 5) == 5;
    dup2(kept, STDOUT_FILENO);
    close(kept);
    close(file);
    assert_int_equal(status, SHOAL_OK);
    assert_true(before && after);
    assert_int_equal(by_name, STDOUT_FILENO);
    assert_int_equal(by_device, STDOUT_FILENO);
    expect_file("out", "before middle after");
    assert_int_equal(count_files(), 1);
    unlink(file_path("out"));
}

/* A descriptor that was named is written to where it stands. */
static void test_descriptor(void **state)
{
    (void)state;
    base_output *output = NULL;
    char path[32];
    const int file = open(write_text("out", "before "), O_WRONLY | O_APPEND), reads = open(file_path("out"), O_RDONLY);
    snprintf(path, sizeof path, "/dev/fd/%d", reads);
    assert_int_equal(base_output_descriptor(path), -1);
    snprintf(path, sizeof path, "/dev/fd/%dx", file);
    assert_int_equal(base_output_descriptor(path), -1);
    snprintf(path, sizeof path, "/dev/fd/%d", file);
    assert_int_equal(base_output_descriptor(path), file);
    assert_int_equal(base_output_open(&output, path), SHOAL_OK);
    assert_int_equal(base_output_write(output, "middle ", 7), SHOAL_OK);
    assert_int_equal(base_output_commit(&output), SHOAL_OK);
    assert_int_equal(write(file, "after", 5), 5);
    close(file);
    close(reads);
    expect_file("out", "before middle after");
    assert_int_equal(count_files(), 1);
    unlink(file_path("out"));
}

static void test_resolve(void **state)
{
    (void)state;
    char *first = NULL, *second = NULL, path[256];
    assert_int_equal(mkdir(file_path("sub"), 0700), 0);
    snprintf(path, sizeof path, "%s/sub/../new", test_folder);
    assert_int_equal(base_output_resolve(&first, path), SHOAL_OK);
    assert_int_equal(base_output_resolve(&second, file_path("new")), SHOAL_OK);
    assert_string_equal(first, second);
    assert_int_equal(symlink("sub/../new", file_path("link")), 0);
    assert_int_equal(symlink("link", file_path("second")), 0);
    base_free(&second);
    assert_int_equal(base_output_resolve(&second, file_path("second")), SHOAL_OK);
    assert_string_equal(first, second);
    base_free(&first);
    base_free(&second);
    assert_int_equal(symlink("loop", file_path("loop")), 0); /* ends, and opening says what is wrong */
    assert_int_equal(base_output_resolve(&first, file_path("loop")), SHOAL_OK);
    base_free(&first);
    unlink(file_path("loop"));
    unlink(file_path("second"));
    unlink(file_path("link"));
    rmdir(file_path("sub"));
}

/* The file behind the link is replaced; the link stays one. */
static void test_symbolic_link(void **state)
{
    (void)state;
    struct stat info;
    write_text("target", "old");
    assert_int_equal(symlink("target", file_path("link")), 0);
    base_output *output = open_output("link");
    base_output_write(output, "new", 3);
    expect_file("target", "old");
    assert_int_equal(base_output_commit(&output), SHOAL_OK);
    expect_file("target", "new");
    assert_int_equal(lstat(file_path("link"), &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    assert_int_equal(count_files(), 2);
    unlink(file_path("link"));
    unlink(file_path("target"));
}

/* A link to nothing yet: the file it points to is made, and the link stays one. */
static void test_dangling_link(void **state)
{
    (void)state;
    assert_int_equal(symlink("missing", file_path("link")), 0);
    base_output *output = open_output("link");
    base_output_write(output, "new", 3);
    assert_int_equal(base_output_commit(&output), SHOAL_OK);
    expect_file("link", "new");
    expect_file("missing", "new");
    struct stat info;
    assert_int_equal(lstat(file_path("link"), &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    unlink(file_path("link"));
    unlink(file_path("missing"));
    assert_int_equal(count_files(), 0);
}

static void test_full_disk(void **state)
{
    (void)state;
    if (access("/dev/full", W_OK) != 0)
        skip();
    base_output *output = NULL;
    assert_int_equal(base_output_open(&output, "/dev/full"), SHOAL_OK);
    assert_int_equal(base_output_write(output, "x", 1), SHOAL_OK); /* still in the stream's buffer */
    assert_int_equal(base_output_commit(&output), SHOAL_SYSTEM);
    assert_null(output);
    assert_non_null(strstr(shoal_error(), "/dev/full: can't write: No space left"));
    assert_int_equal(base_output_open(&output, "/dev/full"), SHOAL_OK);
    static char much[1 << 20];
    assert_int_equal(base_output_write(output, much, sizeof much), SHOAL_SYSTEM);
    assert_non_null(strstr(shoal_error(), "/dev/full: can't write: No space left"));
    base_output_discard(&output);
    assert_int_equal(base_output_open(&output, "/dev/full"), SHOAL_OK);
    assert_int_equal(base_output_write(output, "x", 1), SHOAL_OK);
    assert_int_equal(base_output_flush(output), SHOAL_SYSTEM);
    assert_non_null(strstr(shoal_error(), "/dev/full: can't write: No space left"));
    base_output_discard(&output);
    /* The stream's own users find out at commit. */
    assert_int_equal(base_output_open(&output, "/dev/full"), SHOAL_OK);
    setvbuf(base_output_stream(output), NULL, _IONBF, 0);
    fputs("lost", base_output_stream(output));
    errno = EACCES; /* what happens between the failure and the commit is not its reason */
    assert_int_equal(base_output_commit(&output), SHOAL_SYSTEM);
    assert_non_null(strstr(shoal_error(), "/dev/full: can't write: No space left"));
    assert_int_equal(access("/dev/full", F_OK), 0);
}

static void test_what_is_no_plain_file_is_written_directly(void **state)
{
    (void)state;
    base_output *output = NULL;
    char bytes[8] = "";
    assert_int_equal(mkfifo(file_path("pipe"), 0600), 0);
    int reader = open(file_path("pipe"), O_RDONLY | O_NONBLOCK);
    assert_true(reader >= 0);
    assert_int_equal(base_output_open(&output, file_path("pipe")), SHOAL_OK);
    base_output_write(output, "through", 7);
    assert_int_equal(base_output_commit(&output), SHOAL_OK);
    assert_int_equal(read(reader, bytes, 7), 7);
    assert_string_equal(bytes, "through");
    close(reader);
    struct stat info;
    assert_int_equal(stat(file_path("pipe"), &info), 0);
    assert_true(S_ISFIFO(info.st_mode));
    assert_int_equal(base_output_open(&output, "/dev/null"), SHOAL_OK);
    assert_int_equal(base_output_commit(&output), SHOAL_OK);
    unlink(file_path("pipe"));
}

static void test_names_that_can_not_be_written(void **state)
{
    (void)state;
    base_output *output = NULL;
    char folder[256];
    snprintf(folder, sizeof folder, "%s/none/x", test_folder);
    assert_int_equal(base_output_open(&output, folder), SHOAL_SYSTEM);
    assert_null(output);
    assert_non_null(strstr(shoal_error(), "none/x: can't write: No such file"));
    assert_int_equal(base_output_check(folder), SHOAL_SYSTEM);
    assert_int_equal(base_output_open(&output, test_folder), SHOAL_SYSTEM);
    assert_null(output);
    assert_int_equal(base_output_check(test_folder), SHOAL_SYSTEM);
    assert_non_null(strstr(shoal_error(), "folder"));
    assert_int_equal(base_output_check(file_path("fine")), SHOAL_OK);
    write_text("kept", "kept");
    assert_int_equal(base_output_check(file_path("kept")), SHOAL_OK);
    expect_file("kept", "kept");
    unlink(file_path("kept"));
    assert_int_equal(base_output_check("/dev/null"), SHOAL_OK);
    assert_int_equal(base_output_check(""), SHOAL_SYSTEM);
    assert_int_equal(count_files(), 0);
}

static void test_unwritable_folder(void **state)
{
    (void)state;
    base_output *output = NULL;
    char inside[256];
    assert_int_equal(mkdir(file_path("closed"), 0700), 0);
    snprintf(inside, sizeof inside, "%s/closed/x", test_folder);
    assert_int_equal(chmod(file_path("closed"), 0500), 0);
    if (geteuid() != 0) {
        assert_int_equal(base_output_open(&output, inside), SHOAL_SYSTEM);
        assert_non_null(strstr(shoal_error(), "Permission denied"));
        assert_int_equal(base_output_check(inside), SHOAL_SYSTEM);
    }
    assert_null(output);
    rmdir(file_path("closed"));
    /* Root may write there; a file for a folder stops even root. */
    write_text("file", "");
    snprintf(inside, sizeof inside, "%s/file/x", test_folder);
    assert_int_equal(base_output_open(&output, inside), SHOAL_SYSTEM);
    assert_null(output);
    assert_non_null(strstr(shoal_error(), "file/x: can't write: Not a directory"));
    unlink(file_path("file"));
}

/* The folder vanishes between open and commit: the rename fails, says so, and leaves nothing. */
static void test_a_failed_rename(void **state)
{
    (void)state;
    assert_int_equal(mkdir(file_path("target"), 0700), 0);
    rmdir(file_path("target"));
    base_output *output = open_output("target");
    base_output_write(output, "new", 3);
    assert_int_equal(mkdir(file_path("target"), 0700), 0); /* a folder took the name meanwhile */
    assert_int_equal(base_output_commit(&output), SHOAL_SYSTEM);
    assert_null(output);
    assert_non_null(strstr(shoal_error(), "target: can't write"));
    assert_int_equal(count_files(), 1);
    rmdir(file_path("target"));
}

static void test_discard_all(void **state)
{
    (void)state;
    base_output *outputs[40];
    write_text("0", "old");
    for (int i = 0; i < 40; i++) { /* more than discard_all remembers */
        char name[16];
        snprintf(name, sizeof name, "%d", i);
        outputs[i] = open_output(name);
    }
    assert_int_equal(count_files(), 41);
    base_output_discard_all();
    assert_true(count_files() <= 41 - 32);
    expect_file("0", "old");
    base_output_discard_all();
    for (int i = 0; i < 40; i++)
        base_output_discard(&outputs[i]);
    assert_int_equal(count_files(), 1);
    /* Slots are free again. */
    base_output *output = open_output("0");
    assert_int_equal(count_files(), 2);
    base_output_discard_all();
    assert_int_equal(count_files(), 1);
    assert_int_equal(base_output_commit(&output), SHOAL_SYSTEM); /* what was taken away is not committed */
    expect_file("0", "old");
    output = open_output("0");
    base_output_write(output, "new", 3);
    assert_int_equal(base_output_commit(&output), SHOAL_OK);
    base_output_discard_all(); /* knows nothing of what is committed */
    expect_file("0", "new");
    unlink(file_path("0"));
}

static void test_no_memory(void **state)
{
    (void)state;
    for (int64_t n = 0; n < 6; n++) {
        base_output *output = NULL;
        base_memory_fail_after(n);
        int status = base_output_open(&output, file_path("x"));
        base_memory_fail_after(-1);
        assert_int_equal(status, SHOAL_MEMORY);
        assert_null(output);
        assert_int_equal(count_files(), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_the_temporary_of_another_stays),
                                       cmocka_unit_test(test_old_file_stays_until_commit),
                                       cmocka_unit_test(test_a_new_file_appears_at_commit),
                                       cmocka_unit_test(test_discard_leaves_the_old),
                                       cmocka_unit_test(test_two_outputs_to_one_path),
                                       cmocka_unit_test(test_mode_is_kept),
                                       cmocka_unit_test(test_what_standard_output_is_redirected_to),
                                       cmocka_unit_test(test_descriptor),
                                       cmocka_unit_test(test_resolve),
                                       cmocka_unit_test(test_symbolic_link),
                                       cmocka_unit_test(test_dangling_link),
                                       cmocka_unit_test(test_full_disk),
                                       cmocka_unit_test(test_what_is_no_plain_file_is_written_directly),
                                       cmocka_unit_test(test_names_that_can_not_be_written),
                                       cmocka_unit_test(test_unwritable_folder),
                                       cmocka_unit_test(test_a_failed_rename),
                                       cmocka_unit_test(test_discard_all),
                                       cmocka_unit_test(test_no_memory)};
    return cmocka_run_group_tests_name("file", tests, folder_setup, folder_teardown);
}
