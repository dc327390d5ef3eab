/* The code that a job brings along: names that stay where they belong, hashes that are checked wherever bytes come
 * from, folders that do not stay, and jobs that are refused by workers that were not told to trust them. */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/hex.h"
#include "engine/store/job_code.h"
#include "job_support.h"

static const shoal_code brought[] = {{"command", "sh f.sh", 7},
                                     {"files/f.sh", "echo 1\n", 7},
                                     {"files/deep/er/data.bin", "\0\1\2", 3},
                                     {"module.so", "no module", 9},
                                     {"files/empty", "", 0}};
enum { BROUGHT = sizeof brought / sizeof *brought };

static void names_stay_below(void **state)
{
    static const char *const good[] = {"module.so", "command", "files/f.py", "files/a/b.c", "files/..x", "files/x."};
    static const char *const bad[] = {"",           "f.py",         "/etc/passwd", "files",       "files/",
                                      "files/../x", "files/a/../b", "files//a",    "files/a/",    "files/./a",
                                      "files/..",   "../x",         "files/a\nb",  "module.so/x", "Command"};
    char longest[JOB_CODE_NAME_MOST + 2] = "files/";
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_true(job_code_name_is_good(good[i]));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(job_code_name_is_good(bad[i]));
    memset(longest + 6, 'x', JOB_CODE_NAME_MOST - 6);
    assert_true(job_code_name_is_good(longest));
    longest[JOB_CODE_NAME_MOST] = 'x';
    assert_false(job_code_name_is_good(longest));
}

static void lists_of_hashes(void **state)
{
    (void)state;
    assert_true(job_code_allowed("abc", "abc"));
    assert_true(job_code_allowed("def,ABC", "abc"));
    assert_true(job_code_allowed("def,abc,012", "abc"));
    assert_false(job_code_allowed("", "abc"));
    assert_false(job_code_allowed("abcd", "abc"));
    assert_false(job_code_allowed("ab,c", "abc"));
}

/* A job that brings `count` files, as a worker gets it. */
static job_spec *bringing(shoal_store *store, int count)
{
    char id[SHOAL_JOB_ID_BYTES];
    job_spec *spec = NULL;
    shoal_data *data = wrapped();
    EXPECT_OK(shoal_job_submit(id, store, &toy, NULL, data, NULL,
                               &(shoal_job_options){.slices = 2, .code = brought, .codes = count}));
    EXPECT_OK(job_spec_get(&spec, store, id, soon()));
    shoal_data_free(&data);
    return spec;
}

static void is_file(const char *folder, const char *name, const void *bytes, size_t size)
{
    char path[600], found[64];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int file = open(path, O_RDONLY);
    assert_true(file >= 0);
    assert_int_equal(read(file, found, sizeof found), size);
    assert_memory_equal(found, bytes, size);
    close(file);
}

static void files_come_as_they_went(void **state)
{
    shoal_store *store = open_store("mem:code");
    job_spec *spec = bringing(store, BROUGHT);
    job_code_here here;
    struct stat about;
    (void)state;
    assert_int_equal(spec->codes, BROUGHT);
    for (int round = 0; round < 2; round++) { /* from the store, and from the cache */
        EXPECT_OK(job_code_bring(&here, spec, store, &(shoal_worker_options){.cache = at("cache")}, soon()));
        assert_true(strncmp(here.folder, job_folder, strlen(job_folder)) == 0);
        for (int i = 0; i < BROUGHT; i++)
            if (strcmp(brought[i].name, JOB_CODE_MODULE) != 0)
                is_file(here.folder, brought[i].name, brought[i].bytes, brought[i].size);
        char module[32];
        assert_int_equal(pread(here.module, module, sizeof module, 0), 9);
        assert_memory_equal(module, "no module", 9);
        assert_true(write(here.module, "x", 1) < 0); /* sealed */
        char folder[600];
        snprintf(folder, sizeof folder, "%s", here.folder);
        job_code_release(&here);
        assert_true(stat(folder, &about) < 0);
        for (int i = 0; i < BROUGHT && round == 0; i++) { /* so that the second time nothing can come from the store */
            char name[BASE_HASH_HEX + 8] = "code/";
            base_hex_write(name + 5, spec->code[i].hash, BASE_HASH_SIZE);
            EXPECT_OK(shoal_store_remove(store, job_key_of(spec->id, name).text, soon()));
        }
    }
    EXPECT_FAIL(job_code_bring(&here, spec, store, &(shoal_worker_options){0}, soon()), SHOAL_AGAIN, "command");
    EXPECT_OK(shoal_job_put_code(store, spec->id, brought, BROUGHT, soon())); /* the store forgot them: once more */
    EXPECT_OK(job_code_bring(&here, spec, store, &(shoal_worker_options){0}, soon()));
    job_code_release(&here);
    job_spec_free(&spec);
    shoal_store_close(&store);
}

static void other_bytes_are_refused(void **state)
{
    shoal_store *store = open_store("mem:code");
    job_spec *spec = bringing(store, 2);
    job_code_here here;
    char name[BASE_HASH_HEX + 8] = "code/";
    (void)state;
    base_hex_write(name + 5, spec->code[1].hash, BASE_HASH_SIZE);
    EXPECT_OK(shoal_store_put(store, job_key_of(spec->id, name).text, "echo 2\n", 7, NULL, NULL, soon()));
    EXPECT_FAIL(job_code_bring(&here, spec, store, &(shoal_worker_options){.cache = at("cache")}, soon()),
                SHOAL_INVALID, "files/f.sh");
    assert_null(here.folder);
    job_spec_free(&spec);
    shoal_store_close(&store);
}

static void only_who_was_told_trusts(void **state)
{
    shoal_store *store = open_store("mem:code");
    job_spec *spec = bringing(store, 2);
    char both[2 * BASE_HASH_HEX + 2], one[BASE_HASH_HEX];
    (void)state;
    base_hex_write(one, spec->code[0].hash, BASE_HASH_SIZE);
    snprintf(both, sizeof both, "%s,", one);
    base_hex_write(both + strlen(both), spec->code[1].hash, BASE_HASH_SIZE);
    EXPECT_FAIL(job_code_check(spec, &(shoal_worker_options){0}), SHOAL_INVALID, one);
    EXPECT_FAIL(job_code_check(spec, &(shoal_worker_options){.allow_code = one}), SHOAL_INVALID, "files/f.sh");
    EXPECT_OK(job_code_check(spec, &(shoal_worker_options){.allow_code = both}));
    EXPECT_OK(job_code_check(spec, &(shoal_worker_options){.spec = "pinned"}));
    job_spec_free(&spec);
    shoal_store_close(&store);
}

static void what_the_killed_left_is_swept(void **state)
{
    char host[64] = "", left[600], other[600];
    shoal_store *store = open_store("mem:code");
    job_spec *spec = bringing(store, 2);
    job_code_here here;
    struct stat about;
    (void)state;
    pid_t dead = fork();
    if (dead == 0)
        _exit(0);
    assert_int_equal(waitpid(dead, NULL, 0), dead);
    gethostname(host, sizeof host - 1);
    mkdir(at("cache"), 0700);
    mkdir(at("cache/run"), 0700);
    snprintf(left, sizeof left, "%s/%s+%d+abcdef", at("cache/run"), host, (int)dead);
    snprintf(other, sizeof other, "%s/elsewhere%s+%d+abcdef", at("cache/run"), host, (int)dead);
    assert_int_equal(mkdir(left, 0700) + mkdir(other, 0700), 0);
    EXPECT_OK(job_code_bring(&here, spec, store, &(shoal_worker_options){.cache = at("cache")}, soon()));
    assert_true(stat(left, &about) < 0);
    assert_int_equal(stat(other, &about), 0); /* of another host, where that process may live */
    job_code_release(&here);
    job_spec_free(&spec);
    shoal_store_close(&store);
}

static void too_much_is_refused(void **state)
{
    shoal_code many[SHOAL_CODE_MOST + 1];
    char id[SHOAL_JOB_ID_BYTES];
    shoal_store *store = open_store("mem:code");
    shoal_data *data = wrapped();
    (void)state;
    for (int i = 0; i <= SHOAL_CODE_MOST; i++)
        many[i] = (shoal_code){"files/a", "", 0};
    EXPECT_FAIL(shoal_job_submit(id, store, &toy, NULL, data, NULL,
                                 &(shoal_job_options){.code = many, .codes = SHOAL_CODE_MOST + 1}),
                SHOAL_USAGE, "65");
    many[0].name = "../a";
    EXPECT_FAIL(shoal_job_submit(id, store, &toy, NULL, data, NULL, &(shoal_job_options){.code = many, .codes = 1}),
                SHOAL_USAGE, "../a");
    shoal_data_free(&data);
    shoal_store_close(&store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_stay_below),
        cmocka_unit_test(lists_of_hashes),
        cmocka_unit_test_setup_teardown(files_come_as_they_went, job_setup, job_teardown),
        cmocka_unit_test_setup_teardown(other_bytes_are_refused, job_setup, job_teardown),
        cmocka_unit_test_setup_teardown(only_who_was_told_trusts, job_setup, job_teardown),
        cmocka_unit_test_setup_teardown(what_the_killed_left_is_swept, job_setup, job_teardown),
        cmocka_unit_test_setup_teardown(too_much_is_refused, job_setup, job_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
