/* Labels: quick threads
 * Time, waiting, checksums: the real world's part of a store. */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/crc.h"
#include "base/world.h"

static void checksums(void **state)
{
    (void)state;
    /* RFC 3720, B.4. */
    unsigned char bytes[32];
    assert_int_equal(base_crc32c(0, "123456789", 9), 0xe3069283);
    memset(bytes, 0, sizeof bytes);
    assert_int_equal(base_crc32c(0, bytes, sizeof bytes), 0x8a9136aa);
    memset(bytes, 0xff, sizeof bytes);
    assert_int_equal(base_crc32c(0, bytes, sizeof bytes), 0x62a8ab43);
    for (int i = 0; i < 32; i++)
        bytes[i] = (unsigned char)i;
    for (size_t cut = 0; cut <= sizeof bytes; cut++)
        assert_int_equal(base_crc32c(base_crc32c(0, bytes, cut), bytes + cut, sizeof bytes - cut), 0x46dd794e);
    assert_int_equal(base_crc32c(0, NULL, 0), 0);
}

static void time_adds_up(void **state)
{
    (void)state;
    int64_t now = base_now();
    assert_true(base_now() >= now);
    assert_int_equal(base_time_after(5, 1.5), 1500000005);
    assert_int_equal(base_time_after(now, INFINITY), INT64_MAX);
    assert_int_equal(base_time_after(now, 1e300), INT64_MAX);
    assert_int_equal(base_time_after(now, NAN), INT64_MAX);
    assert_int_equal(base_time_after(5, -1), 0);
    assert_true(isinf(base_seconds_until(INT64_MAX)));
    int64_t until = base_time_after(now, 0.02);
    base_sleep_until(until);
    assert_true(base_now() >= until);
    assert_true(base_seconds_until(until) <= 0);
}

static _Atomic uint32_t word;

static void *change(void *context)
{
    (void)context;
    atomic_store(&word, 1);
    base_wake_word(&word, INT_MAX);
    return NULL;
}

static void a_word_wakes(void **state)
{
    pthread_t thread;
    (void)state;
    for (int i = 0; i < 200; i++) {
        int64_t deadline = base_time_after(base_now(), 120);
        atomic_store(&word, 0);
        pthread_create(&thread, NULL, change, NULL);
        while (atomic_load(&word) == 0)
            base_wait_word(&word, 0, deadline);
        assert_true(base_now() < deadline); /* nobody slept through the change */
        pthread_join(thread, NULL);
    }
    base_wait_word(&word, 0, INT64_MAX); /* it has another value: no wait */
    base_wait_word(&word, 1, base_now() - 1);
}

static void chance_differs(void **state)
{
    (void)state;
    unsigned char one[40] = {0}, other[40] = {0};
    base_entropy(one, sizeof one);
    base_entropy(other, sizeof other);
    assert_memory_not_equal(one, other, sizeof one);
    assert_memory_not_equal(one + 32, "\0\0\0\0\0\0\0\0", 8);
}

static void the_wall_clock_and_the_boot(void **state)
{
    char one[BASE_BOOT_ID_BYTES], two[BASE_BOOT_ID_BYTES];
    (void)state;
    int64_t seconds = base_wall_now() / 1000000000 - (int64_t)time(NULL);
    assert_true(seconds >= -1 && seconds <= 1);
    assert_true(base_boot_id(one) && base_boot_id(two));
    assert_string_equal(one, two);
    assert_int_equal(strlen(one), 36); /* a UUID, without the end of its line */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checksums),
        cmocka_unit_test(time_adds_up),
        cmocka_unit_test(a_word_wakes),
        cmocka_unit_test(chance_differs),
        cmocka_unit_test(the_wall_clock_and_the_boot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
