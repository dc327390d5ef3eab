/* Secrets: what is kept, that it is not dumped, and that it is wiped. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <shoal/error.h>

#include "base/memory.h"
#include "base/secret.h"

static void test_keeping(void **state)
{
    (void)state;
    base_secret *secret = NULL;
    assert_string_equal(base_secret_text(secret), "");
    assert_int_equal(base_secret_size(secret), 0);
    assert_int_equal(base_secret_set(&secret, "a\0b", 3), SHOAL_OK);
    assert_int_equal(base_secret_size(secret), 3);
    assert_memory_equal(base_secret_text(secret), "a\0b", 4);
    assert_int_equal(base_secret_set(&secret, "", 0), SHOAL_OK);
    assert_string_equal(base_secret_text(secret), "");
    base_memory_fail_after(0);
    assert_int_equal(base_secret_set(&secret, "other", 5), SHOAL_MEMORY);
    base_memory_fail_after(-1);
    assert_int_equal(base_secret_size(secret), 0); /* as it was */
    base_secret_free(&secret);
    assert_null(secret);
    base_secret_free(&secret);
}

/* The kernel's own word on the pages: "dd", do not dump. */
static void test_not_dumped(void **state)
{
    (void)state;
    base_secret *secret = NULL;
    char line[512];
    bool inside = false, found = false;
    assert_int_equal(base_secret_set(&secret, "secret", 6), SHOAL_OK);
    FILE *maps = fopen("/proc/self/smaps", "r");
    assert_non_null(maps);
    while (fgets(line, sizeof line, maps)) {
        unsigned long from, to;
        uintptr_t at = (uintptr_t)base_secret_text(secret);
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
            inside = at >= from && at < to;
        else if (inside && strncmp(line, "VmFlags:", 8) == 0)
            found = strstr(line, " dd") != NULL;
    }
    fclose(maps);
    assert_true(found);
    base_secret_free(&secret);
}

static void test_wiping(void **state)
{
    (void)state;
    char bytes[8] = "secret";
    base_wipe(bytes, 3);
    assert_memory_equal(bytes, "\0\0\0ret", 7);
    base_wipe(NULL, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_keeping), cmocka_unit_test(test_not_dumped),
                                       cmocka_unit_test(test_wiping)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
