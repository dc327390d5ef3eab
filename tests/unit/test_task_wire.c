/* Tasks, claims and results as bytes: there and back, every flipped bit, every other key, client, kind and number; and
 * how places are filled once. */
#include "job_support.h"

#include "engine/tasks/task_wire.h"

static const unsigned char key[SHOAL_TASK_KEY_BYTES] = {1, 2, 3}, other_key[SHOAL_TASK_KEY_BYTES] = {1, 2, 4};
static const task_seal seal = {"tasks-1", key};

static const char *const words[] = {"sort", "-n", "", NULL};
static const char *const variables[] = {"A=1", "B=", NULL};
static const char *const outputs[] = {"out/a", NULL};
static const shoal_task_file files[] = {{"in/x", "abc", 3}, {"y", "", 0}};
static const shoal_task full_task = {.command = words,
                                     .bytes = "argument",
                                     .size = 8,
                                     .environment = variables,
                                     .timeout = 2.5,
                                     .files = files,
                                     .file_count = 2,
                                     .outputs = outputs};

static void make_bundle(void **out, size_t *size, const shoal_task *const *task, int count)
{
    void *item[4] = {NULL};
    size_t bytes[4] = {0};
    for (int i = 0; i < count; i++)
        EXPECT_OK(task_item_encode(&item[i], &bytes[i], 100 + i, task[i], NULL));
    EXPECT_OK(task_bundle_encode(out, size, (const void *const *)item, bytes, count, &seal, 7));
    for (int i = 0; i < count; i++)
        base_free(&item[i]);
}

static void test_a_bundle_comes_back(void **state)
{
    const shoal_task function = {.function = "square", .bytes = "", .size = 0};
    void *bytes = NULL;
    size_t size = 0;
    task_bundle bundle;
    (void)state;
    make_bundle(&bytes, &size, (const shoal_task *const[]){&full_task, &function}, 2);
    EXPECT_OK(task_bundle_decode(&bundle, bytes, size, &seal, 7));
    assert_int_equal(bundle.count, 2);
    const task_item *one = &bundle.item[0];
    assert_int_equal(one->number, 100);
    assert_null(one->function);
    assert_string_equal(one->command[0], "sort");
    assert_string_equal(one->command[2], "");
    assert_null(one->command[3]);
    assert_string_equal(one->environment[1], "B=");
    assert_string_equal(one->outputs[0], "out/a");
    assert_true(one->timeout == 2.5);
    assert_int_equal(one->files, 2);
    assert_string_equal(one->file[0].name, "in/x");
    assert_memory_equal(one->file[0].bytes.inside, "abc", 3);
    assert_memory_equal(one->argument.inside, "argument", 8);
    assert_string_equal(bundle.item[1].function, "square");
    assert_null(bundle.item[1].command);
    task_bundle_release(&bundle);
    base_free(&bytes);
}

/* Also when somebody with the key has written it: a client refuses such names before. */
static void test_names_stay_below_the_folder(void **state)
{
    static const char *const up[] = {"a", "../x", NULL};
    const shoal_task_file outside = {"/etc/passwd", "", 0};
    const shoal_task task[] = {{.command = words, .outputs = up},
                               {.command = words, .files = &outside, .file_count = 1}};
    (void)state;
    for (int i = 0; i < 2; i++) {
        void *bytes = NULL;
        size_t size = 0;
        task_bundle bundle;
        make_bundle(&bytes, &size, (const shoal_task *const[]){&task[i]}, 1);
        assert_int_equal(task_bundle_decode(&bundle, bytes, size, &seal, 7), SHOAL_BROKEN);
        base_free(&bytes);
    }
}

static void test_every_flipped_bit_is_seen(void **state)
{
    void *bytes = NULL;
    size_t size = 0;
    task_bundle bundle;
    (void)state;
    make_bundle(&bytes, &size, (const shoal_task *const[]){&full_task}, 1);
    for (size_t i = 0; i < 8 * size; i++) {
        ((unsigned char *)bytes)[i / 8] ^= (unsigned char)(1 << i % 8);
        assert_int_equal(task_bundle_decode(&bundle, bytes, size, &seal, 7), SHOAL_BROKEN);
        ((unsigned char *)bytes)[i / 8] ^= (unsigned char)(1 << i % 8);
    }
    for (size_t i = 0; i < size; i++)
        assert_int_equal(task_bundle_decode(&bundle, bytes, i, &seal, 7), SHOAL_BROKEN);
    base_free(&bytes);
}

static void test_a_seal_is_for_one_place(void **state)
{
    const task_claim claim = {.worker = 5, .common = 1, .index = 2, .alone = 3};
    task_claim back;
    task_slots slots;
    void *bytes = NULL;
    size_t size = 0;
    (void)state;
    EXPECT_OK(task_claim_encode(&bytes, &size, &claim, &seal, 7));
    EXPECT_OK(task_claim_decode(&back, bytes, size, &seal, 7));
    assert_int_equal(back.worker, 5);
    assert_int_equal(back.common, 1);
    assert_int_equal(back.index, 2);
    assert_int_equal(back.alone, 3);
    assert_int_equal(task_claim_decode(&back, bytes, size, &seal, 8), SHOAL_BROKEN);
    assert_int_equal(task_claim_decode(&back, bytes, size, &(task_seal){"tasks-2", key}, 7), SHOAL_BROKEN);
    assert_int_equal(task_claim_decode(&back, bytes, size, &(task_seal){"tasks-1", other_key}, 7), SHOAL_BROKEN);
    assert_int_equal(task_slots_decode(&slots, bytes, size, &seal, 7), SHOAL_BROKEN);
    base_free(&bytes);
}

/* What is sealed but no task: bytes that somebody with the key, and a bug, has written. */
static void test_sealed_nonsense_does_no_harm(void **state)
{
    uint64_t random = 1;
    (void)state;
    for (int round = 0; round < 20000; round++) {
        base_writer writer = {0};
        void *bytes = NULL;
        size_t size = 0;
        task_bundle bundle;
        task_slots slots;
        task_outcome outcome;
        base_write_u32(&writer, (uint32_t)(round % 3));
        for (int i = 0; i < round % 97; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            base_write_u8(&writer, random >> 62 ? 0 : (uint8_t)(random >> 40));
        }
        (void)task_outcome_decode(&outcome, writer.data, writer.size);
        task_outcome_release(&outcome);
        task_seal_write(&writer, &seal, round % 2 ? TASK_KIND_WORK : TASK_KIND_DONE, 7);
        EXPECT_OK(base_writer_take(&writer, &bytes, &size));
        if (task_bundle_decode(&bundle, bytes, size, &seal, 7) == SHOAL_OK)
            task_bundle_release(&bundle);
        if (task_slots_decode(&slots, bytes, size, &seal, 7) == SHOAL_OK)
            task_slots_release(&slots);
        base_free(&bytes);
    }
}

static void test_keys(void **state)
{
    task_place place;
    int64_t number;
    (void)state;
    for (int i = 0; i < TASK_PLACES; i++) {
        job_key made = task_key_of("tasks-1", (task_place)i, INT64_MAX - 3);
        assert_true(task_key_read(&place, &number, "tasks-1", made.text));
        assert_int_equal(place, i);
        assert_true(number == INT64_MAX - 3);
        assert_false(task_key_read(&place, &number, "tasks-2", made.text));
    }
    const char *const others[] = {"jobs/tasks-1/todo/closed",
                                  "jobs/tasks-1/todo/000000000000000",
                                  "jobs/tasks-1/todo/00000000000000000",
                                  "jobs/tasks-1/todo/8000000000000000",
                                  "jobs/tasks-1/todo/000000000000000A",
                                  "jobs/tasks-1/tasks",
                                  ""};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_false(task_key_read(&place, &number, "tasks-1", others[i]));
}

/* ---- places ------------------------------------------------------------------------------------------------------ */

static void fill_slot(task_slots *slots, int index, const char *text)
{
    EXPECT_OK(base_copy_text((char **)&slots->slot[index].bytes, text));
    slots->slot[index].size = strlen(text);
}

static void expect_slot(const task_slots *slots, int index, const char *text)
{
    if (!text) {
        assert_null(slots->slot[index].bytes);
        return;
    }
    assert_int_equal(slots->slot[index].size, strlen(text));
    assert_memory_equal(slots->slot[index].bytes, text, strlen(text));
}

static void test_a_place_is_filled_once(void **state)
{
    shoal_store *store = open_store("mem:");
    task_slots a, b, there;
    shoal_etag etag;
    bool forged;
    int lost = 0;
    (void)state;
    EXPECT_OK(task_slots_new(&a, 3));
    EXPECT_OK(task_slots_new(&b, 3));
    fill_slot(&a, 0, "a0");
    fill_slot(&b, 0, "b0");
    fill_slot(&b, 2, "b2");
    EXPECT_OK(task_slots_merge(&a, &lost, store, &seal, 7, SHOAL_NEVER));
    EXPECT_OK(task_slots_merge(&b, &lost, store, &seal, 7, SHOAL_NEVER));
    assert_int_equal(lost, 1);
    expect_slot(&b, 0, "a0");
    fill_slot(&a, 1, "a1");
    EXPECT_OK(task_slots_merge(&a, &lost, store, &seal, 7, SHOAL_NEVER));
    assert_int_equal(lost, 1);
    expect_slot(&a, 2, "b2");
    assert_true(task_slots_full(&a));
    EXPECT_OK(task_slots_get(&there, &etag, &forged, store, &seal, 7, SHOAL_NEVER));
    expect_slot(&there, 0, "a0");
    expect_slot(&there, 1, "a1");
    expect_slot(&there, 2, "b2");
    task_slots_release(&there);
    task_slots_release(&a);
    task_slots_release(&b);
    shoal_store_close(&store);
}

static void test_what_a_stranger_put_counts_as_absent(void **state)
{
    shoal_store *store = open_store("mem:");
    const job_key place = task_key_of("tasks-1", TASK_DONE, 7);
    void *bytes = NULL;
    size_t size = 0;
    task_slots mine, there;
    shoal_etag etag;
    bool forged = false;
    (void)state;
    EXPECT_OK(task_slots_new(&mine, 1));
    fill_slot(&mine, 0, "forged");
    EXPECT_OK(task_slots_encode(&bytes, &size, &mine, &(task_seal){"tasks-1", other_key}, 7));
    for (int framed = 0; framed < 2; framed++) {
        if (framed)
            EXPECT_OK(shoal_store_put_framed(store, place.text, TASK_KIND_DONE, bytes, size, NULL, NULL, SHOAL_NEVER));
        else
            EXPECT_OK(shoal_store_put(store, place.text, "nonsense", 8, NULL, NULL, SHOAL_NEVER));
        assert_int_equal(task_slots_get(&there, &etag, &forged, store, &seal, 7, SHOAL_NEVER), SHOAL_ABSENT);
        assert_true(forged);
        EXPECT_OK(task_slots_merge(&mine, NULL, store, &seal, 7, SHOAL_NEVER));
        EXPECT_OK(task_slots_get(&there, &etag, &forged, store, &seal, 7, SHOAL_NEVER));
        task_slots_release(&there);
    }
    base_free(&bytes);
    task_slots_release(&mine);
    shoal_store_close(&store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_bundle_comes_back),
        cmocka_unit_test(test_names_stay_below_the_folder),
        cmocka_unit_test(test_every_flipped_bit_is_seen),
        cmocka_unit_test(test_a_seal_is_for_one_place),
        cmocka_unit_test(test_sealed_nonsense_does_no_harm),
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_a_place_is_filled_once),
        cmocka_unit_test(test_what_a_stranger_put_counts_as_absent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
