/* Labels: quick
 * Requests are counted by kind and priced by the store they went to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "store/store_internal.h"

static void prices(void **state)
{
    (void)state;
    const shoal_store_counts none = {.price = 7};
    shoal_store_counts counts = {.requests = {[SHOAL_REQUEST_GET] = 10000, [SHOAL_REQUEST_PUT] = 20000}};
    assert_float_equal(store_price("s3", &counts), 0.004f + 2 * 0.05f, 1e-6f);
    assert_float_equal(store_price("az", &counts), 0.0044f + 2 * 0.055f, 1e-6f);
    assert_true(store_price("dir", &counts) == 0 && store_price("s3", &none) == 0);
    counts = (shoal_store_counts){.requests = {[SHOAL_REQUEST_REMOVE] = 1000000}}; /* removing is free */
    assert_true(store_price("s3", &counts) == 0 && store_price("az", &counts) == 0);
    counts = (shoal_store_counts){.requests = {[SHOAL_REQUEST_LIST] = 1, [SHOAL_REQUEST_QUEUE] = 10}};
    assert_true(store_price("az", &counts) > store_price("s3", &counts));
}

static void every_call_counts(void **state)
{
    (void)state;
    shoal_store *store = NULL;
    shoal_blob blob = {0};
    shoal_listing page = {0};
    int64_t deadline = shoal_after(10), messages = 0;
    assert_int_equal(shoal_store_open(&store, "mem:", NULL, deadline), SHOAL_OK);
    assert_int_equal(shoal_store_put(store, "key", "12345", 5, NULL, NULL, deadline), SHOAL_OK);
    assert_int_equal(shoal_store_get(store, "key", &blob, deadline), SHOAL_OK);
    shoal_blob_release(&blob);
    assert_int_equal(shoal_store_get(store, "absent", &blob, deadline), SHOAL_ABSENT);
    assert_int_equal(shoal_store_list(store, "", NULL, &page, deadline), SHOAL_OK);
    shoal_listing_release(&page);
    assert_int_equal(shoal_store_push(store, "queue", "123", 3, deadline), SHOAL_OK);
    assert_int_equal(shoal_store_count(store, "queue", &messages, deadline), SHOAL_OK);
    assert_int_equal(shoal_store_remove(store, "key", deadline), SHOAL_OK);
    assert_int_equal(shoal_store_put(store, "no//key", "1", 1, NULL, NULL, deadline), SHOAL_USAGE); /* never sent */
    shoal_store_counts counts = shoal_store_counted(store);
    static const int64_t expected[SHOAL_REQUEST_KINDS] = {2, 1, 1, 1, 2, 0};
    assert_memory_equal(counts.requests, expected, sizeof expected);
    assert_int_equal(counts.bytes_sent, 8);
    assert_int_equal(counts.bytes_received, 5);
    for (int i = 0; i < SHOAL_CAUSES; i++)
        assert_int_equal(counts.causes[i], 0);
    shoal_store_close(&store);
}

static void causes_have_names(void **state)
{
    (void)state;
    for (int i = 0; i < SHOAL_CAUSES; i++)
        for (int j = 0; j < i; j++)
            assert_string_not_equal(shoal_cause_name((shoal_cause)i), shoal_cause_name((shoal_cause)j));
    assert_string_equal(shoal_cause_name(SHOAL_CAUSE_THROTTLED), "throttled");
    assert_string_equal(shoal_cause_name((shoal_cause)99), "?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(prices), cmocka_unit_test(every_call_counts),
                                       cmocka_unit_test(causes_have_names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
