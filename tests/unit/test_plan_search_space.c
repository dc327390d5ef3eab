/* src/plan/search/search_space.c and what it is made of: configurations, their features, and commands with their
 * values; every allocation may fail. */
#include "data_support.h"

#include <math.h>
#include <unistd.h>

#include "base/memory.h"
#include "plan/search/search_command.h"
#include "plan/search/search_space.h"

static const char prices[] = "cloud,region,machine,vcpus,memory_gib,usd_per_hour\n"
                             "x,here,small,2,4,0.1\n"
                             "x,here,large,8,64,0.5\n"
                             "x,here,other,2,4,0.2\n"
                             "x,here,same,2,4,0.2\n";

static void put_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static plan_search_space *read_space(const char *text)
{
    plan_search_space *space = NULL;
    put_file("space.json", text);
    put_file("prices.csv", prices);
    if (plan_search_space_read(&space, "space.json",
                               &(plan_search_terms){.prices = "prices.csv", .need_prices = true}) < 0)
        fail_msg("%s", shoal_error());
    return space;
}

static int feature_named(const plan_search_space *space, const char *name)
{
    for (int i = 0; i < space->list.features; i++)
        if (strcmp(space->list.feature_name[i], name) == 0)
            return i;
    return -1;
}

static void a_candidate_is_one_value_of_each(void **state)
{
    (void)state;
    plan_search_space *space = read_space(
        "{\"machines\": [\"small\", \"large\"], \"count\": \"1,2,4..6\", \"mode\": [\"a\", \"b\"], \"x\": [0.5, 3]}");
    char label[PLAN_SEARCH_LABEL_BYTES];
    int64_t value[PLAN_SEARCH_DIMENSIONS_MOST];
    assert_int_equal(space->list.candidates, 2 * 5 * 2 * 2);
    for (int64_t i = 0; i < space->list.candidates; i++) {
        for (int j = 0; j < space->dimensions; j++)
            value[j] = plan_search_value(space, i, j);
        assert_int_equal(plan_search_candidate(space, value), i);
        assert_true(space->candidate[i].count == strtol(plan_search_text(space, i, PLAN_SEARCH_COUNT), NULL, 10));
        double price = value[0] ? 0.5 : 0.1;
        assert_true(space->candidate[i].dollars_per_hour == price * (double)space->candidate[i].count);
    }
    plan_search_label(label, space, 7);
    assert_string_equal(label, "2 of small, mode b, x 3");
    assert_int_equal(plan_search_value_named(&space->dimension[3], "3e0"), 1);
    assert_int_equal(plan_search_value_named(&space->dimension[3], "4"), -1);
    assert_int_equal(plan_search_value_named(&space->dimension[2], "b"), 1);
    plan_search_space_free(&space);
}

static void features_tell_configurations_apart(void **state)
{
    (void)state;
    plan_search_space *space = read_space(
        "{\"machines\": [\"small\", \"large\"], \"count\": 2, \"mode\": [\"a\", \"b\", \"c\"], \"x\": [-1, 3]}");
    int mode = feature_named(space, "mode=b"), x = feature_named(space, "x");
    assert_true(mode >= 0 && x >= 0 && feature_named(space, "price") < 0);
    assert_false(space->list.logarithmic[x]);
    for (int64_t i = 0; i < space->list.candidates; i++) {
        assert_true(space->candidate[i].feature[mode] == (plan_search_value(space, i, 2) == 1));
        assert_true(space->candidate[i].feature[x] == (plan_search_value(space, i, 3) ? 3 : -1));
    }
    plan_search_space_free(&space);
    space = read_space("{\"machines\": [\"small\", \"other\"]}"); /* as many cores and as much memory */
    assert_true(feature_named(space, "price") >= 0 && space->alike == 0);
    assert_true(space->candidate[1].feature[feature_named(space, "price")] == 0.1);
    plan_search_space_free(&space);
    space = read_space("{\"machines\": [\"other\", \"same\"]}"); /* and the same price */
    assert_true(feature_named(space, "machine=same") >= 0 && space->alike == 0);
    plan_search_space_free(&space);
    space = read_space("{\"machines\": [\"small\", \"large\"], \"count\": [1, 2], \"features\": [\"count\"]}");
    assert_true(feature_named(space, "count") == 0 && space->list.features == 1 && space->alike == 1);
    plan_search_space_free(&space);
    space = read_space("{\"machines\": [\"small\", \"large\"], \"features\": [\"vcpus\", \"price\"]}");
    assert_true(feature_named(space, "vcpus") >= 0 && feature_named(space, "price") >= 0 && space->list.features == 2);
    plan_search_space_free(&space);
}

static void the_hash_is_of_configurations_and_prices(void **state)
{
    (void)state;
    plan_search_space *one = read_space("{\"machines\": [\"small\", \"large\"], \"count\": [1, 2]}");
    plan_search_space *same = read_space("{\"count\": \"1..2\", \"machines\": \"x:here/small,x:here/large\"}");
    plan_search_space *other = read_space("{\"machines\": [\"small\", \"large\"], \"count\": [1, 3]}");
    plan_search_space *dearer =
        read_space("{\"machines\": [\"small\", {\"name\": \"large\", \"usd_per_hour\": 7}], \"count\": [1, 2]}");
    assert_string_equal(one->hash, same->hash);
    assert_string_equal(one->price_hash, same->price_hash);
    assert_string_not_equal(one->hash, other->hash);
    assert_string_equal(one->hash, dearer->hash);
    assert_string_not_equal(one->price_hash, dearer->price_hash);
    assert_true(dearer->machines.machine[1].known.vcpus == 8); /* the table's, since the object has none */
    plan_search_space_free(&one);
    plan_search_space_free(&same);
    plan_search_space_free(&other);
    plan_search_space_free(&dearer);
}

static void values_are_put_into_commands(void **state)
{
    (void)state;
    static const struct {
        const char *command, *expected;
    } cases[] = {
        {"a {machine} {count}", "a 'it'\\''s $1' 2"},
        {"{machine}{machine}{count}", "'it'\\''s $1''it'\\''s $1'2"},
        {"a {machine}; b '{count}'", "a 'it'\\''s $1'; b '2'"},
        {"{{count}} {} {a,b} { count} ${count} {count}{machine}", "{count} {} {a,b} { count} ${count} 2'it'\\''s $1'"},
        {"\\{count} {machine} $({count})", "\\{count} 'it'\\''s $1' $(2)"},
        {"# don't {count}\n{machine} {count}", "# don't {count}\n'it'\\''s $1' 2"},
        {"a \\\n# don't\n{machine} {count}", "a \\\n# don't\n'it'\\''s $1' 2"},
        {"a >b# don't' {machine} {count}", "a >b# don't' 'it'\\''s $1' 2"},
    };
    plan_search_space *space =
        read_space("{\"machines\": [{\"name\": \"it's $1\", \"usd_per_hour\": 1}], \"count\": 2}");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *filled = NULL;
        assert_int_equal(plan_search_command_check(space, cases[i].command), SHOAL_OK);
        assert_int_equal(plan_search_command_fill(&filled, space, cases[i].command, 0), SHOAL_OK);
        assert_string_equal(filled, cases[i].expected);
        base_free(&filled);
    }
    static const char *const wrong[] = {"'{machine}'", "\"{machine}\"",          "\"a\" \"{machine}\"",
                                        "`{machine}`", "\"$(a \"{machine}\")\"", "a <<E\n{machine}"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(plan_search_command_check(space, wrong[i]), SHOAL_USAGE);
    plan_search_space_free(&space);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    plan_search_space *space = read_space("{\"machines\": [\"small\", \"other\", {\"name\": \"new\", \"vcpus\": 1, "
                                          "\"memory_gib\": 2, \"usd_per_hour\": 1}], \"count\": \"1..3\", \"mode\": "
                                          "[\"a\", \"b\"], \"x\": [1, 2]}");
    plan_search_space_free(&space);
    for (int64_t n = 0;; n++) {
        base_memory_fail_after(n);
        int status = plan_search_space_read(&space, "space.json",
                                            &(plan_search_terms){.prices = "prices.csv", .need_prices = true});
        base_memory_fail_after(-1);
        if (status == SHOAL_OK)
            break;
        assert_int_equal(status, SHOAL_MEMORY);
        assert_null(space);
        assert_true(n < 1000);
    }
    plan_search_space_free(&space);
}

/* Files go where nobody else looks. */
static int enter_folder(void **state)
{
    return folder_setup(state) == 0 ? chdir(test_folder) : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_candidate_is_one_value_of_each),
        cmocka_unit_test(features_tell_configurations_apart),
        cmocka_unit_test(the_hash_is_of_configurations_and_prices),
        cmocka_unit_test(values_are_put_into_commands),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, enter_folder, folder_teardown);
}
