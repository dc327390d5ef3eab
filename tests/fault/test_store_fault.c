/* Stores while the n-th allocation fails, for every n: each call answers SHOAL_MEMORY with a message and nothing else,
 * leaves nothing behind (the address sanitizer looks), and the same handle does it again when there is memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "store/store_internal.h"

static char folder[] = "/tmp/shoal-fault-XXXXXX";
static char folder_url[64], folder_blobs_url[96];
static char large[100000];

/* ---- what is done ------------------------------------------------------------------------------------------------ */

static int open_and_close(const char *url)
{
    shoal_store *store = NULL;
    int status = shoal_store_open(&store, url, &(shoal_store_options){.create = true}, shoal_after(20));
    assert_int_equal(store != NULL, status == SHOAL_OK);
    shoal_store_close(&store);
    return status;
}

static int put_and_get(shoal_store *store, size_t size)
{
    shoal_blob blob = {0};
    shoal_etag etag;
    int64_t deadline = shoal_after(20);
    int status = shoal_store_put_framed(store, "jobs/key", 7, large, size, NULL, &etag, deadline);
    if (status == SHOAL_OK)
        status = shoal_store_put_framed(store, "jobs/key", 7, large, size, &etag, NULL, deadline);
    if (status == SHOAL_OK)
        status = shoal_store_get_framed(store, "jobs/key", 7, &blob, deadline);
    if (status == SHOAL_OK) {
        assert_int_equal(blob.size, size);
        assert_memory_equal(blob.data, large, size);
    }
    shoal_blob_release(&blob);
    if (status == SHOAL_OK)
        status = shoal_store_remove(store, "jobs/key", deadline);
    return status;
}

static int put_small(shoal_store *store)
{
    return put_and_get(store, 100);
}

static int put_large(shoal_store *store)
{
    return put_and_get(store, sizeof large);
}

static int list(shoal_store *store)
{
    shoal_listing page = {0};
    int64_t deadline = shoal_after(20);
    char key[24];
    int status = SHOAL_OK;
    for (int i = 0; i < 5 && status == SHOAL_OK; i++) {
        snprintf(key, sizeof key, "list/%d", i);
        status = shoal_store_put(store, key, key, 6, NULL, NULL, deadline);
    }
    if (status == SHOAL_OK)
        status = shoal_store_list(store, "list/", "list/0", &page, deadline);
    if (status == SHOAL_OK) {
        assert_int_equal(page.count, 4);
        assert_string_equal(page.entries[3].key, "list/4");
    }
    shoal_listing_release(&page);
    return status;
}

static int queue(shoal_store *store)
{
    shoal_message message = {0};
    int64_t deadline = shoal_after(20);
    int status = shoal_store_push(store, "queue", "message", 7, deadline);
    if (status == SHOAL_OK)
        status = shoal_store_take(store, "queue", 60, &message, deadline);
    if (status == SHOAL_OK)
        status = shoal_store_extend(store, "queue", &message, 60, deadline);
    if (status == SHOAL_OK)
        status = shoal_store_finish(store, "queue", &message, deadline);
    shoal_message_release(&message);
    return status == SHOAL_OK ? shoal_store_drop(store, "queue", deadline) : status;
}

/* ---- with memory that fails -------------------------------------------------------------------------------------- */

static void check_status(int status, int64_t n)
{
    if (status != SHOAL_OK && status != SHOAL_MEMORY)
        fail_msg("allocation %lld fails: %d, %s", (long long)n, status, shoal_error());
    if (status == SHOAL_MEMORY)
        assert_string_not_equal(shoal_error(), "");
}

static void fail_each(const char *url, int (*work)(shoal_store *store))
{
    shoal_store *store = NULL;
    int status = SHOAL_MEMORY;
    if (shoal_store_open(&store, url, &(shoal_store_options){.create = true}, shoal_after(20)) < 0)
        fail_msg("%s", shoal_error());
    assert_int_equal(work(store), SHOAL_OK);
    for (int64_t n = 0; status != SHOAL_OK; n++) {
        assert_true(n < 1000);
        base_memory_fail_after(n);
        status = work(store);
        base_memory_fail_after(-1);
        check_status(status, n);
        shoal_store_drop(store, "queue", shoal_after(20)); /* what a failed run left there */
        assert_int_equal(work(store), SHOAL_OK);
    }
    shoal_store_close(&store);
}

static void fail_open(const char *url)
{
    int status = SHOAL_MEMORY;
    for (int64_t n = 0; status != SHOAL_OK; n++) {
        assert_true(n < 1000);
        base_memory_fail_after(n);
        status = open_and_close(url);
        base_memory_fail_after(-1);
        check_status(status, n);
        assert_int_equal(open_and_close(url), SHOAL_OK);
    }
}

static void every_store(void **state)
{
    (void)state;
    const char *const urls[] = {"mem:", "mem:a/prefix?queue=blobs", folder_url, folder_blobs_url};
    int (*const works[])(shoal_store *) = {put_small, put_large, list, queue};
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        fail_open(urls[i]);
        for (size_t j = 0; j < sizeof works / sizeof *works; j++)
            fail_each(urls[i], works[j]);
    }
}

static void faulty_stores(void **state)
{
    (void)state;
    fail_open("mem:?faults=seed:1,delay:0.1/1ms");
}

static int start(void **state)
{
    (void)state;
    memset(large, 'x', sizeof large);
    if (!mkdtemp(folder))
        return -1;
    snprintf(folder_url, sizeof folder_url, "dir:%s/store", folder);
    snprintf(folder_blobs_url, sizeof folder_blobs_url, "%s/prefix?queue=blobs", folder_url);
    return 0;
}

static int finish(void **state)
{
    char command[64];
    (void)state;
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_store), cmocka_unit_test(faulty_stores)};
    return cmocka_run_group_tests(tests, start, finish);
}
