/* src/plan/calibration*.c: what is written is read again; a damaged file is reported by its entry, wherever the damage
 * is; a store is found under its own name, its account or its scheme, and assumed where it was never measured. / */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include <shoal/error.h>

#include "base/memory.h"
#include "plan/calibration.h"

static char folder[64], path[128];

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/shoal-calibration-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/deep/er/calibration.json", folder);
    return 0;
}

static int remove_folder(void **state)
{
    char deep[192];
    (void)state;
    unlink(path);
    snprintf(deep, sizeof deep, "%s/deep/er", folder);
    rmdir(deep);
    snprintf(deep, sizeof deep, "%s/deep", folder);
    rmdir(deep);
    return rmdir(folder);
}

static plan_calibration example(void)
{
    plan_calibration out = {
        .date = 1700000000, .host = "corn", .kernel = "avx2", .threads = 8, .thread_loss = 0.04, .error = 0.1};
    const shoal_pace run = {"kmeans", "run", 1.25e-10, 3e-11, 2e-5, 1e-10, 0.8, 7e-9},
                     seed = {"kmeans", "seed", 1e-10, 0, 0, 0, 0, 0};
    plan_calibrated_site dir = {.store = "dir", .date = 1700000001};
    plan_calibrated_site box = {.store = "az://acct/box", .date = 1700000002};
    plan_calibrated_site later = {.store = "az://acct/later", .date = 1700000003};
    dir.site = (shoal_site){.get = 1e-5,
                            .put = 2e-5,
                            .wait = 3e-5,
                            .read = 1e9,
                            .write = 5e8,
                            .connections = 1,
                            .worker = 2e9,
                            .account = 3e9,
                            .account_write = 2e9,
                            .get_price = 0,
                            .put_price = 0,
                            .requests = 5,
                            .requests_per_second = 0,
                            .sync = 1e-3,
                            .start = 0.06,
                            .hash = 9e-10,
                            .crowd = 4e-4,
                            .straggle = 0.05,
                            .thread_loss = 0.04,
                            .error = 0.1};
    box.site = dir.site;
    box.site.get_price = 4.4e-7;
    later.site = box.site;
    later.site.get = 0.5;
    assert_int_equal(plan_calibration_set_pace(&out, &run), SHOAL_OK);
    assert_int_equal(plan_calibration_set_pace(&out, &seed), SHOAL_OK);
    assert_int_equal(plan_calibration_set_site(&out, &dir), SHOAL_OK);
    assert_int_equal(plan_calibration_set_site(&out, &box), SHOAL_OK);
    assert_int_equal(plan_calibration_set_site(&out, &later), SHOAL_OK);
    return out;
}

static void write_text(const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

/* ---- reading and writing ----------------------------------------------------------------------------------------- */

static void test_again(void **state)
{
    static plan_calibration before, after;
    char *first = NULL, *second = NULL;
    (void)state;
    before = example();
    assert_int_equal(plan_calibration_write(path, &before), SHOAL_OK);
    memset(&after, 0xff, sizeof after);
    assert_int_equal(plan_calibration_read(&after, path), SHOAL_OK);
    assert_memory_equal(&before, &after, sizeof before);
    assert_int_equal(plan_calibration_json(&first, &before), SHOAL_OK);
    assert_int_equal(plan_calibration_json(&second, &after), SHOAL_OK);
    assert_string_equal(first, second);
    base_free(&first);
    base_free(&second);
}

static void test_empty(void **state)
{
    static plan_calibration none, read;
    (void)state;
    assert_int_equal(plan_calibration_write(path, &none), SHOAL_OK);
    assert_int_equal(plan_calibration_read(&read, path), SHOAL_OK);
    assert_memory_equal(&none, &read, sizeof none);
}

static void test_absent(void **state)
{
    static plan_calibration out;
    (void)state;
    assert_int_equal(plan_calibration_read(&out, "/nowhere/calibration.json"), SHOAL_ABSENT);
    assert_int_equal(plan_calibration_read(&out, folder), SHOAL_SYSTEM);
}

/* Replaces the first `what` of the example's text and expects the sentence. */
static void refuses(const char *what, const char *with, const char *sentence)
{
    static plan_calibration calibration, out;
    char *text = NULL, expected[512];
    static char damaged[1 << 16];
    calibration = example();
    assert_int_equal(plan_calibration_json(&text, &calibration), SHOAL_OK);
    char *at = strstr(text, what);
    assert_non_null(at);
    snprintf(damaged, sizeof damaged, "%.*s%s%s", (int)(at - text), text, with, at + strlen(what));
    write_text(damaged);
    out.paces = 77;
    assert_int_equal(plan_calibration_read(&out, path), SHOAL_INVALID);
    assert_int_equal(out.paces, 0);
    snprintf(expected, sizeof expected, "%s: %s", path, sentence);
    assert_string_equal(shoal_error(), expected);
    base_free(&text);
}

static void test_damaged(void **state)
{
    (void)state;
    refuses("\"version\": 1", "\"version\": 2", "calibration of version 2; this program reads version 1");
    refuses("\"version\": 1,", "", "this is not a calibration: it has no 'version'");
    refuses("\"threads\": 8", "\"threads\": -8", "'threads' is not a number of threads");
    refuses("\"threads\": 8", "\"threads\": 8.5", "'threads' is not a number of threads");
    refuses("\"corn\"", "17", "'host' is not a text");
    refuses("2023-11-14T22:13:20Z", "yesterday", "'date' is not a date such as 2026-01-31T12:00:00Z");
    refuses("\"value\": 1.25e-10", "\"value\": -1", "pace 1 (kmeans run) 'value' is not a number of at least 0");
    refuses("\"value\": 1.25e-10", "\"value\": \"fast\"", "pace 1 (kmeans run) 'value' is not a number of at least 0");
    refuses("\"value\": 1.25e-10,", "", "pace 1 (kmeans run) 'value' is missing");
    refuses("\"store\": \"az://acct/box\",", "", "site 2 'store' is missing");
    refuses("\"get_price\": 0.0,", "", "site 1 (dir) 'get_price' is missing");
    refuses("\"row\": 7e-9", "\"row\": -7e-9", "pace 1 (kmeans run) 'row' is not a number of at least 0");
    refuses("\"paces\": [", "\"paces\": [17, ", "pace 1 is not an object");
    refuses("\"paces\": [", "\"paces\": 3, \"other\": [", "'paces' is not a list");
    refuses("\"sites\": [", "\"places\": [", "'sites' is missing");
}

/* A file of before paces had a row is as good. */
static void test_older(void **state)
{
    static plan_calibration calibration, out;
    char *text = NULL;
    (void)state;
    calibration = example();
    assert_int_equal(plan_calibration_json(&text, &calibration), SHOAL_OK);
    for (char *at; (at = strstr(text, "\"row\"")) != NULL;)
        memcpy(at, "\"old\"", 5);
    write_text(text);
    assert_int_equal(plan_calibration_read(&out, path), SHOAL_OK);
    assert_true(out.pace[0].row == 0 && out.pace[0].value == 1.25e-10);
    base_free(&text);
}

static void test_no_json(void **state)
{
    static plan_calibration out;
    static char long_text[(1 << 20) + 2];
    (void)state;
    static const char *const texts[] = {"",         "{",    "[]", "null", "{\"version\": 1e400}", "{\"version\": 1}",
                                        "\x01\xff", "{} {}"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        write_text(texts[i]);
        assert_int_equal(plan_calibration_read(&out, path), SHOAL_INVALID);
        assert_memory_equal(shoal_error(), path, strlen(path));
    }
    memset(long_text, ' ', sizeof long_text - 1);
    write_text(long_text);
    assert_int_equal(plan_calibration_read(&out, path), SHOAL_INVALID);
}

/* Every single byte that is lost or changed gives a sentence or numbers that are sound, never anything else. */
static void test_any_byte(void **state)
{
    static plan_calibration calibration, out;
    static char copy[1 << 16];
    char *text = NULL;
    (void)state;
    calibration = example();
    assert_int_equal(plan_calibration_json(&text, &calibration), SHOAL_OK);
    size_t length = strlen(text);
    for (size_t at = 0; at < length; at += 3) {
        memcpy(copy, text, length + 1);
        copy[at] = "-9}\"x"[at % 5];
        write_text(copy);
        int status = plan_calibration_read(&out, path);
        assert_true(status == SHOAL_OK || status == SHOAL_INVALID);
        for (int i = 0; i < out.paces; i++)
            assert_true(out.pace[i].value >= 0);
        copy[at] = '\0';
        write_text(copy);
        assert_int_equal(plan_calibration_read(&out, path), SHOAL_INVALID);
    }
    base_free(&text);
}

static void test_path(void **state)
{
    char *out = NULL;
    (void)state;
    setenv("XDG_CONFIG_HOME", "/config", 1);
    assert_int_equal(plan_calibration_path(&out), SHOAL_OK);
    assert_string_equal(out, "/config/shoal/calibration.json");
    base_free(&out);
    setenv("XDG_CONFIG_HOME", "relative", 1);
    setenv("HOME", "/home/me", 1);
    assert_int_equal(plan_calibration_path(&out), SHOAL_OK);
    assert_string_equal(out, "/home/me/.config/shoal/calibration.json");
    base_free(&out);
    unsetenv("HOME");
    unsetenv("XDG_CONFIG_HOME");
    assert_int_equal(plan_calibration_path(&out), SHOAL_USAGE);
    assert_null(out);
}

static void test_memory(void **state)
{
    static plan_calibration calibration, out;
    (void)state;
    calibration = example();
    assert_int_equal(plan_calibration_write(path, &calibration), SHOAL_OK);
    int status = SHOAL_MEMORY;
    for (int n = 0; status != SHOAL_OK; n++) {
        assert_true(n < 50);
        base_memory_fail_after(n);
        status = plan_calibration_write(path, &calibration);
        if (status == SHOAL_OK)
            status = plan_calibration_read(&out, path);
        base_memory_fail_after(-1);
        assert_int_equal(plan_calibration_read(&out, path), SHOAL_OK); /* the old one or the new one */
    }
}

/* ---- stores ------------------------------------------------------------------------------------------------------ */

static void finds(const plan_calibration *calibration, const char *store, bool measured, double get)
{
    shoal_site site;
    bool told = !measured;
    plan_calibration_site(&site, &told, calibration, store);
    assert_int_equal(told, measured);
    if (get > 0)
        assert_true(site.get == get);
    assert_true(site.get > 0 && site.put > 0 && site.wait > 0 && site.read > 0 && site.write > 0 &&
                site.connections >= 1);
    assert_true(site.sync > 0 && site.straggle > 0 && site.error > 0 && site.requests > 0);
}

static void test_sites(void **state)
{
    static plan_calibration calibration;
    (void)state;
    calibration = example();
    finds(&calibration, "dir", true, 1e-5);
    finds(&calibration, "dir:/tmp/x", true, 1e-5);
    finds(&calibration, "/tmp/x", true, 1e-5);
    finds(&calibration, "jobs", true, 1e-5);
    finds(&calibration, "./a:b", true, 1e-5);
    finds(&calibration, "az://acct/box", true, 1e-5);
    finds(&calibration, "az://acct/box/team/a?x=1", true, 1e-5);
    finds(&calibration, "az://acct/new", true, 0.5); /* the account's last */
    finds(&calibration, "az://acc/box", false, 0);
    finds(&calibration, "az://", false, 0);
    finds(&calibration, "az", false, 0);
    finds(&calibration, "s3://bucket/x", false, 0);
    finds(&calibration, "mem:x", false, 0);
    finds(&calibration, "ssh", false, 0);
    finds(NULL, "pipe:/run/x", false, 0);
    finds(NULL, "", false, 0);
    plan_calibrated_site usual = {.store = "az", .date = 5, .site = calibration.site[0].site};
    usual.site.get = 0.25;
    assert_int_equal(plan_calibration_set_site(&calibration, &usual), SHOAL_OK);
    finds(&calibration, "az://other/box", true, 0.25);
}

static void test_names(void **state)
{
    static const char *const names[][2] = {{"/tmp/x", "dir"},
                                           {"dir:st", "dir"},
                                           {"", "dir"},
                                           {"az://a/b/c", "az://a/b"},
                                           {"az://a", "az://a"},
                                           {"az://a/", "az://a"},
                                           {"s3://b/c", "s3://b"},
                                           {"mem:job", "mem"},
                                           {"pipe:/x", "pipe"},
                                           {"s3://b?faults=x", "s3://b"}};
    char out[256], tiny[4];
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        plan_calibration_name(out, sizeof out, names[i][0]);
        assert_string_equal(out, names[i][1]);
    }
    plan_calibration_name(tiny, sizeof tiny, "az://account/box");
    assert_string_equal(tiny, "az:");
}

static void test_replaced(void **state)
{
    static plan_calibration calibration;
    (void)state;
    calibration = example();
    shoal_pace pace = {"kmeans", "seed", 5, 5, 5, 5, 5, 5};
    assert_int_equal(plan_calibration_set_pace(&calibration, &pace), SHOAL_OK);
    assert_int_equal(calibration.paces, 2);
    assert_true(calibration.pace[1].value == 5 && calibration.pace[0].value == 1.25e-10);
    while (calibration.paces < PLAN_PACES_MOST) {
        snprintf(pace.phase, sizeof pace.phase, "%d", calibration.paces);
        assert_int_equal(plan_calibration_set_pace(&calibration, &pace), SHOAL_OK);
    }
    strcpy(pace.phase, "one more");
    assert_int_equal(plan_calibration_set_pace(&calibration, &pace), SHOAL_USAGE);
    plan_calibrated_site site = {.date = 1};
    while (calibration.sites < PLAN_SITES_MOST) {
        snprintf(site.store, sizeof site.store, "s3://%d", calibration.sites);
        assert_int_equal(plan_calibration_set_site(&calibration, &site), SHOAL_OK);
    }
    strcpy(site.store, "s3://more");
    assert_int_equal(plan_calibration_set_site(&calibration, &site), SHOAL_USAGE);
    strcpy(site.store, "dir");
    assert_int_equal(plan_calibration_set_site(&calibration, &site), SHOAL_OK);
    assert_true(calibration.site[0].site.get == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_again),    cmocka_unit_test(test_empty),   cmocka_unit_test(test_absent),
        cmocka_unit_test(test_damaged),  cmocka_unit_test(test_no_json), cmocka_unit_test(test_any_byte),
        cmocka_unit_test(test_memory),   cmocka_unit_test(test_sites),   cmocka_unit_test(test_names),
        cmocka_unit_test(test_replaced), cmocka_unit_test(test_older),   cmocka_unit_test(test_path),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
