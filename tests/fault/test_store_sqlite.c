/* The embedded store while SQLite's n-th allocation fails, for every n: each call answers that there is no memory, or
 * does what it should without it, and the store is as it was or as it should be; the next call works. */
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "store/store_internal.h"
#include "folder_support.h"

/* Opening a store some thousand times takes long under a sanitizer. */
#ifdef UNDER_ADDRESS_SANITIZER
enum { STRIDE = 5 };
#else
enum { STRIDE = 1 };
#endif

static char folder[64], url[96];
static unsigned char bytes[20000];

/* SQLite's own memory, with a switch. */
static sqlite3_mem_methods system_memory;
static long blocks_left = -1, blocks_used;

static bool may_allocate(void)
{
    blocks_used++;
    if (blocks_left == 0)
        return false;
    blocks_left -= blocks_left > 0;
    return true;
}

static void *allocate(int size)
{
    return may_allocate() ? system_memory.xMalloc(size) : NULL;
}

static void *reallocate(void *block, int size)
{
    return may_allocate() ? system_memory.xRealloc(block, size) : NULL;
}

static int setup(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "%s/shoal-sqlite-XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    if (!mkdtemp(folder))
        return -1;
    snprintf(url, sizeof url, "dir:%s/store", folder);
    sqlite3_shutdown();
    sqlite3_config(SQLITE_CONFIG_GETMALLOC, &system_memory);
    sqlite3_mem_methods ours = system_memory;
    ours.xMalloc = allocate;
    ours.xRealloc = reallocate;
    return sqlite3_config(SQLITE_CONFIG_MALLOC, &ours) != SQLITE_OK || sqlite3_initialize() != SQLITE_OK;
}

static int teardown(void **state)
{
    (void)state;
    return nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static int64_t soon(void)
{
    return shoal_after(20);
}

static shoal_store *open_store(void)
{
    shoal_store *store = NULL;
    if (shoal_store_open(&store, url, &(shoal_store_options){.create = true}, soon()) < 0)
        fail_msg("%s", shoal_error());
    return store;
}

/* ---- what is done ------------------------------------------------------------------------------------------------ */

static int put_small(shoal_store *store)
{
    return shoal_store_put(store, "key", bytes, 500, NULL, NULL, soon());
}

static int put_large(shoal_store *store)
{
    return shoal_store_put(store, "key", bytes, sizeof bytes, NULL, NULL, soon());
}

static int get(shoal_store *store)
{
    shoal_blob blob = {0};
    int status = shoal_store_get(store, "key", &blob, soon());
    if (status == SHOAL_OK) {
        assert_true(blob.size == 500 || blob.size == sizeof bytes);
        assert_memory_equal(blob.data, bytes, blob.size);
    }
    shoal_blob_release(&blob);
    return status;
}

static int list(shoal_store *store)
{
    shoal_listing page = {0};
    int status = shoal_store_list(store, "", NULL, &page, soon());
    assert_true(status < 0 || page.count == 1);
    shoal_listing_release(&page);
    return status;
}

static int pass_on(shoal_store *store)
{
    shoal_message message = {0};
    int status = shoal_store_push(store, "q", bytes, sizeof bytes, soon());
    if (status == SHOAL_OK)
        status = shoal_store_take(store, "q", 60, &message, soon());
    if (status == SHOAL_OK)
        status = shoal_store_extend(store, "q", &message, 60, soon());
    if (status == SHOAL_OK)
        status = shoal_store_finish(store, "q", &message, soon());
    shoal_message_release(&message);
    return status;
}

static int drop(shoal_store *store)
{
    return shoal_store_drop(store, "q", soon());
}

static int open_another(shoal_store *store)
{
    shoal_store *other = NULL;
    (void)store;
    int status = shoal_store_open(&other, url, NULL, soon());
    shoal_store_close(&other);
    return status;
}

/* Does it with fewer and fewer failures, on a handle whose statements are not made yet. */
static void fails_well(int (*work)(shoal_store *))
{
    for (long n = 0;; n += STRIDE) {
        assert_true(n < 5000);
        shoal_store *store = open_store();
        blocks_left = n;
        blocks_used = 0;
        int status = work(store);
        bool enough = blocks_used <= n;
        blocks_left = -1;
        if (status != SHOAL_OK && status != SHOAL_MEMORY)
            fail_msg("allocation %ld: %d %s", n, status, shoal_error());
        assert_true(!enough || status == SHOAL_OK);
        assert_int_equal(get(store), SHOAL_OK);
        if ((status = work(store)) < 0)
            fail_msg("after allocation %ld failed: %s", n, shoal_error());
        shoal_store_close(&store);
        if (enough)
            return;
    }
}

static void test_no_memory_for_sqlite(void **state)
{
    int (*const works[])(shoal_store *) = {put_small, put_large, get, list, pass_on, drop, open_another};
    (void)state;
    shoal_store *store = open_store();
    assert_int_equal(put_large(store), SHOAL_OK);
    shoal_store_close(&store);
    for (size_t i = 0; i < sizeof works / sizeof *works; i++)
        fails_well(works[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(test_no_memory_for_sqlite, setup, teardown)};
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(i * 2654435761u >> 24);
    return cmocka_run_group_tests_name("store sqlite", tests, NULL, NULL);
}
