/* Reading and writing safetensors and pictures while the n-th allocation fails, ours and jansson's, for every n. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/memory.h"
#include "data/image/picture.h"
#include "data/format/safetensors.h"

static char folder[] = "/tmp/shoal-fault-XXXXXX";
static char path[64];

/* jansson's memory, with the same switch as ours has. */
static long json_blocks_left = -1;

static void *json_allocate(size_t size)
{
    if (json_blocks_left == 0)
        return NULL;
    if (json_blocks_left > 0)
        json_blocks_left--;
    return malloc(size);
}

static int start(void **state)
{
    (void)state;
    json_set_alloc_funcs(json_allocate, free);
    snprintf(path, sizeof path, "%s/file", mkdtemp(folder) ? folder : "/nowhere");
    return 0;
}

static int finish(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(folder); /* fails when something half-written is left */
}

static int write_tensors(void)
{
    static const double values[6] = {1, 2, 3, 4, 5, 6};
    const data_tensor tensors[] = {{"a", SHOAL_FLOAT64, 2, {2, 3}, values, 0}, {"b", SHOAL_FLOAT64, 1, {1}, values, 0}};
    const data_metadata metadata[] = {{"learner", "kmeans"}};
    return data_safetensors_write(path, tensors, 2, metadata, 1);
}

static int read_tensors(void)
{
    data_tensors *file = NULL;
    int status = data_safetensors_open(&file, path);
    if (status == SHOAL_OK) {
        assert_int_equal(data_safetensors_count(file), 2);
        assert_string_equal(data_safetensors_metadata(file, "learner"), "kmeans");
    } else {
        assert_null(file);
    }
    data_safetensors_close(&file);
    return status;
}

static int write_picture(void)
{
    static const double values[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    const data_sheet sheet = {.values = values, .images = 2, .height = 2, .width = 2};
    return data_picture_write(path, &sheet);
}

/* Until it passes, `work` fails with a message and leaves nothing, whichever allocation it is that fails. */
static void fails_well(int (*work)(void), bool of_jansson)
{
    for (long n = 0;; n++) {
        assert_true(n < 10000);
        base_memory_fail_after(of_jansson ? -1 : n);
        json_blocks_left = of_jansson ? n : -1;
        int status = work();
        base_memory_fail_after(-1);
        json_blocks_left = -1;
        if (status == SHOAL_OK) {
            assert_true(n > 0);
            return;
        }
        /* jansson takes a token it has no memory for as one that should not be there. */
        if (status != SHOAL_MEMORY && !(of_jansson && status == SHOAL_INVALID))
            fail_msg("allocation %ld: %s", n, shoal_error());
        assert_string_not_equal(shoal_error(), "");
    }
}

static void every_allocation_of_safetensors_may_fail(void **state)
{
    (void)state;
    fails_well(write_tensors, false);
    fails_well(read_tensors, false);
}

static void every_allocation_of_jansson_may_fail(void **state)
{
    (void)state;
    fails_well(write_tensors, true);
    fails_well(read_tensors, true);
}

static void every_allocation_of_a_picture_may_fail(void **state)
{
    (void)state;
    fails_well(write_picture, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation_of_safetensors_may_fail),
        cmocka_unit_test(every_allocation_of_jansson_may_fail),
        cmocka_unit_test(every_allocation_of_a_picture_may_fail),
    };
    return cmocka_run_group_tests(tests, start, finish);
}
