/* src/run/cluster and src/launch/cloud: which pool is next, what a cluster's spec may say, the script that a machine
 * runs, and the program that it fetches. tests/system/test_cluster_up.py has machines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <shoal/error.h>

#include "base/memory.h"
#include "launch/cloud/bundle.h"
#include "launch/cloud/user_data.h"
#include "run/cluster/cluster.h"

static const int64_t second = 1000000000;

static void make_pools(run_pool pool[3])
{
    static const double prices[] = {0.10, 0.11, 0.05};
    for (int i = 0; i < 3; i++) {
        pool[i] = (run_pool){.price = prices[i], .cap = 0.2, .market = i == 2 ? CLOUD_DEMAND : CLOUD_SPOT};
        snprintf(pool[i].type, sizeof pool[i].type, "t%d", i);
        snprintf(pool[i].zone, sizeof pool[i].zone, "z%d", i);
    }
}

static void pools_are_taken_by_price_and_load(void **state)
{
    run_pool pool[3];
    char name[LEDGER_NAME_BYTES];
    (void)state;
    make_pools(pool);
    int64_t counts[3] = {0};
    for (int i = 0; i < 10; i++) {
        int64_t which = run_pool_choose(pool, 3, 0);
        assert_in_range(which, 0, 1); /* spot first, however cheap the other is */
        pool[which].load++;
        counts[which]++;
    }
    assert_true(counts[0] >= 5 && counts[1] >= 3);
    pool[0].price = 0.3; /* above the cap */
    pool[1].until = 5 * second;
    assert_int_equal(run_pool_choose(pool, 3, 0), 2);
    assert_int_equal(run_pool_choose(pool, 3, 5 * second), 1);
    pool[2].until = 5 * second;
    assert_int_equal(run_pool_choose(pool, 3, 0), -1);
    for (int64_t i = 0; i < 3; i++) {
        run_pool_name(name, &pool[i]);
        assert_int_equal(run_pool_find(pool, 3, name), i);
    }
    assert_int_equal(run_pool_find(pool, 3, "z0/t1/spot"), -1);
}

static void pauses_grow_and_a_quota_is_of_a_market(void **state)
{
    run_pool pool[3];
    (void)state;
    make_pools(pool);
    for (int i = 0; i < 12; i++) {
        run_pool_refused(pool, 3, 0, CLOUD_NO_CAPACITY, 0);
        int64_t expected = i < 7 ? (5 << i) * second : 600 * second;
        assert_int_equal(pool[0].until, expected < 600 * second ? expected : 600 * second);
    }
    assert_true(pool[1].until == 0 && pool[2].until == 0);
    run_pool_refused(pool, 3, 1, CLOUD_NO_QUOTA, 0);
    assert_true(pool[0].until == 5 * second && pool[1].until == 5 * second && pool[2].until == 0);
}

static void specs_come_back_and_forged_ones_do_not(void **state)
{
    static const char *const changes[][2] = {
        {"\"version\":1", "\"version\":2"},      {"\"market\":2", "\"market\":3"},
        {"\"idle\":60", "\"idle\":-1"},          {"\"allowed\":9", "\"allowed\":0"},
        {"\"role\":\"r\"", "\"role\":7"},        {"\"name\":\"a\"", "\"name\":\"b\""},
        {"\"key\":\"\"", "\"key\":\"\\u001b\""}, {"00112233445566ff", "../../../../../x"}};
    run_cluster_spec spec = {.name = "a",
                             .ledger = "00112233445566ff",
                             .by = "me",
                             .machines = "aws:r/t",
                             .role = "r",
                             .market = RUN_CLUSTER_MIXED,
                             .idle = 60,
                             .allowed = 9,
                             .made = 7,
                             .down = true};
    run_cluster_spec back;
    char *text = NULL;
    (void)state;
    assert_int_equal(run_cluster_spec_write(&text, &spec), SHOAL_OK);
    assert_int_equal(run_cluster_spec_read(&back, "a", text, strlen(text)), SHOAL_OK);
    assert_memory_equal(&back, &spec, sizeof spec);
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        char forged[2048];
        const char *at = strstr(text, changes[i][0]);
        assert_non_null(at);
        snprintf(forged, sizeof forged, "%.*s%s%s", (int)(at - text), text, changes[i][1], at + strlen(changes[i][0]));
        assert_int_equal(run_cluster_spec_read(&back, "a", forged, strlen(forged)), SHOAL_BROKEN);
    }
    assert_int_equal(run_cluster_spec_read(&back, "a", "", 0), SHOAL_BROKEN);
    base_free(&text);
}

/* Who may only write to the store can end a cluster, and choose nothing of what its machines are. */
static void a_code_holds_all_but_the_end(void **state)
{
    static const unsigned char secret[LEDGER_SECRET_BYTES] = {7}, other[LEDGER_SECRET_BYTES] = {8};
    run_cluster_spec spec = {.name = "a", .ledger = "00112233445566ff", .role = "r", .image = "ami-1"};
    char code[RUN_CLUSTER_CODE_BYTES], again[RUN_CLUSTER_CODE_BYTES];
    (void)state;
    assert_int_equal(run_cluster_spec_code(code, &spec, secret), SHOAL_OK);
    memcpy(spec.code, code, sizeof code);
    spec.down = true;
    assert_int_equal(run_cluster_spec_code(again, &spec, secret), SHOAL_OK);
    assert_string_equal(again, code);
    assert_int_equal(run_cluster_spec_code(again, &spec, other), SHOAL_OK);
    assert_string_not_equal(again, code);
    spec.image[4] = '2';
    assert_int_equal(run_cluster_spec_code(again, &spec, secret), SHOAL_OK);
    assert_string_not_equal(again, code);
}

/* Nothing before the guard may wait for anything, and no text may become a command. */
static void the_script_arms_the_power_off_first(void **state)
{
    static const char *const variables[] = {"AWS_REGION=a'; touch /tmp/forged; '", NULL};
    char *text = NULL, path[] = "/tmp/shoal-script-XXXXXX", command[64];
    const cloud_boot boot = {.cluster = "mine",
                             .reservation = "00ff",
                             .allowed = 77,
                             .bundle = "https://x/?a=b&c='d'",
                             .hash = "abc",
                             .store = "s3://b/p$(touch /tmp/forged)",
                             .variables = variables,
                             .idle = 1.5};
    (void)state;
    assert_int_equal(cloud_user_data(&text, &boot), SHOAL_OK);
    const char *armed = strstr(text, "\nguard </dev/null"), *fetched = strstr(text, "\nuntil fetch");
    assert_true(armed && fetched && armed < fetched && strstr(text, "allowed=77\n"));
    assert_true(!memmem(text, (size_t)(armed - text), "curl", 4) && !memmem(text, (size_t)(armed - text), "cp ", 3));
    assert_non_null(strstr(text, "bundle='https://x/?a=b&c='\\''d'\\'''"));
    assert_non_null(strstr(text, "--store 's3://b/p$(touch /tmp/forged)' --idle 1.5 "));
    assert_true(strlen(text) < 16384);
    int file = mkstemp(path);
    assert_int_equal(write(file, text, strlen(text)), strlen(text));
    close(file);
    snprintf(command, sizeof command, "sh -n %s", path);
    assert_int_equal(system(command), 0);
    unlink(path);
    base_free(&text);
}

static void a_bundle_has_the_program_and_its_loader(void **state)
{
    char folder[] = "/tmp/shoal-bundle-XXXXXX", hash[CLOUD_HASH_BYTES], again[CLOUD_HASH_BYTES], command[512];
    char *path = NULL, *same = NULL;
    (void)state;
    assert_non_null(mkdtemp(folder));
    assert_int_equal(cloud_bundle_make(&path, hash, folder), SHOAL_OK);
    assert_int_equal(cloud_bundle_make(&same, again, folder), SHOAL_OK);
    assert_string_equal(path, same);
    assert_string_equal(hash, again);
    snprintf(command, sizeof command,
             "echo '%s  %s' | sha256sum -c >/dev/null && tar -tzf %s | grep -c '^shoal$\\|^libc'"
             " >/dev/null",
             hash, path, path);
    assert_int_equal(system(command), 0);
    unlink(path);
    rmdir(folder);
    base_free(&path);
    base_free(&same);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pools_are_taken_by_price_and_load),
        cmocka_unit_test(pauses_grow_and_a_quota_is_of_a_market),
        cmocka_unit_test(specs_come_back_and_forged_ones_do_not),
        cmocka_unit_test(a_code_holds_all_but_the_end),
        cmocka_unit_test(the_script_arms_the_power_off_first),
        cmocka_unit_test(a_bundle_has_the_program_and_its_loader),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
