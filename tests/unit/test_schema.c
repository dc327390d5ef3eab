/* src/learn/schema.c: what a model remembers of its columns survives the way through JSON bit by bit, columns are found
 * by name in any order, and whatever else comes from elsewhere is refused with a sentence. */
#include "data_support.h"

#include <jansson.h>
#include <stdlib.h>

#include "base/memory.h"
#include "learn/schema.h"

static shoal_data *open_text(const char *name, const char *text)
{
    shoal_data *data = NULL;
    assert_int_equal(shoal_data_open(&data, write_file(name, text, strlen(text)), NULL), SHOAL_OK);
    return data;
}

static learn_schema note(const char *text, int64_t target)
{
    learn_schema schema = {0};
    shoal_data *data = open_text("noted.csv", text);
    assert_int_equal(learn_schema_note(&schema, data, target, true), SHOAL_OK);
    shoal_data_free(&data);
    return schema;
}

static void names_and_target_are_noted(void **state)
{
    learn_schema schema = note("a,kind,b\n1,2,3\n", 1);
    (void)state;
    assert_int_equal(schema.columns, 2);
    assert_string_equal(schema.names[0], "a");
    assert_string_equal(schema.names[1], "b");
    assert_string_equal(schema.target, "kind");
    assert_int_equal(schema.target_column, 2);
    learn_schema_release(&schema);
    schema = note("a,a,b\n1,2,3\n", -1); /* which do not tell columns apart */
    assert_null(schema.names);
    assert_false(learn_schema_says_more(&schema));
    learn_schema_release(&schema);
    schema = note("1,2,3\n4,5,6\n", 2);
    assert_true(!schema.names && !schema.target && schema.target_column == 3 && learn_schema_says_more(&schema));
    learn_schema_release(&schema);
}

static learn_schema full_schema(void)
{
    static const char *const words[] = {"cat", "dog", "m\303\274cke"};
    static const double numbers[] = {0.1, -1.0 / 3}, scales[] = {5e-324, 1.7976931348623157e308};
    learn_schema schema = note("a,b,kind\n1,2,3\n", 2);
    assert_int_equal(learn_schema_note_classes(&schema, words, 3), SHOAL_OK);
    assert_int_equal(base_alloc(&schema.fill, 2, sizeof(double), "x"), SHOAL_OK);
    assert_int_equal(base_alloc(&schema.mean, 2, sizeof(double), "x"), SHOAL_OK);
    assert_int_equal(base_alloc(&schema.scale, 2, sizeof(double), "x"), SHOAL_OK);
    memcpy(schema.fill, numbers, sizeof numbers);
    memcpy(schema.mean, numbers, sizeof numbers);
    memcpy(schema.scale, scales, sizeof scales);
    return schema;
}

static void assert_same(const learn_schema *a, const learn_schema *b)
{
    assert_true(a->columns == b->columns && a->target_column == b->target_column &&
                a->classes_count == b->classes_count);
    for (int64_t i = 0; i < a->columns; i++)
        assert_string_equal(a->names[i], b->names[i]);
    for (int64_t i = 0; i < a->classes_count; i++)
        assert_string_equal(a->classes[i], b->classes[i]);
    assert_string_equal(a->target, b->target);
    assert_memory_equal(a->fill, b->fill, 2 * sizeof(double));
    assert_memory_equal(a->mean, b->mean, 2 * sizeof(double));
    assert_memory_equal(a->scale, b->scale, 2 * sizeof(double));
}

static void json_keeps_every_bit(void **state)
{
    learn_schema schema = full_schema(), back = {0}, copy = {0};
    json_t *object = learn_schema_json(&schema);
    char *text = json_dumps(object, JSON_REAL_PRECISION(17));
    json_t *again = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    (void)state;
    assert_int_equal(learn_schema_take(&back, again, "m"), SHOAL_OK);
    assert_same(&schema, &back);
    assert_int_equal(learn_schema_copy(&copy, &back), SHOAL_OK);
    assert_same(&schema, &copy);
    learn_schema_release(&schema);
    learn_schema_release(&back);
    learn_schema_release(&copy);
    json_decref(object);
    json_decref(again);
    free(text);
}

static void assert_refused(const char *text, const char *sentence)
{
    learn_schema schema = {0};
    json_t *object = json_loads(text, JSON_DECODE_ANY, NULL);
    assert_int_equal(learn_schema_take(&schema, object, "m"), SHOAL_INVALID);
    assert_string_equal(shoal_error(), sentence);
    assert_true(schema.columns == 0 && !schema.names && !schema.classes && !schema.mean);
    json_decref(object);
}

static void what_is_not_a_schema_is_refused(void **state)
{
    (void)state;
    assert_refused("[1]", "m: its schema is not a JSON object");
    assert_refused("nonsense", "m: its schema is not a JSON object");
    assert_refused("{}", "m: 'columns' of its schema is not a number of columns");
    assert_refused("{\"columns\": -1}", "m: 'columns' of its schema is not a number of columns");
    assert_refused("{\"columns\": 9223372036854775807}", "m: 'columns' of its schema is not a number of columns");
    assert_refused("{\"columns\": 2.0}", "m: 'columns' of its schema is not a number of columns");
    assert_refused("{\"columns\": 2, \"names\": [\"a\"]}",
                   "m: 'names' of its schema does not have one text for each column");
    assert_refused("{\"columns\": 2, \"names\": \"ab\"}",
                   "m: 'names' of its schema does not have one text for each column");
    assert_refused("{\"columns\": 2, \"names\": [\"a\", \"a\"]}", "m: 'names' of its schema has the same text twice");
    assert_refused("{\"columns\": 2, \"names\": [\"a\", 3]}", "m: 'names' of its schema is not plain text");
    assert_refused("{\"columns\": 1, \"names\": [\"a\\u001b[2J\"]}", "m: 'names' of its schema is not plain text");
    assert_refused("{\"columns\": 1, \"names\": [\"a\"], \"target\": \"a\"}",
                   "m: 'target' of its schema is one of its other columns, too");
    assert_refused("{\"columns\": 1, \"target\": {}}", "m: 'target' of its schema is not plain text");
    assert_refused("{\"columns\": 1, \"target_column\": 3}",
                   "m: 'target_column' of its schema is not the number of a column");
    assert_refused("{\"columns\": 1, \"target_column\": 0}",
                   "m: 'target_column' of its schema is not the number of a column");
    assert_refused("{\"columns\": 1, \"classes\": [\"a\"]}",
                   "m: 'classes' of its schema is not a list of 2 to 1,000 words");
    assert_refused("{\"columns\": 1, \"classes\": {\"a\": 1}}",
                   "m: 'classes' of its schema is not a list of 2 to 1,000 words");
    assert_refused("{\"columns\": 1, \"classes\": [\"b\", \"a\"]}", "m: 'classes' of its schema is not in order");
    assert_refused("{\"columns\": 1, \"missing_mean\": [1, 2]}",
                   "m: 'missing_mean' of its schema does not have one number for each column");
    assert_refused("{\"columns\": 1, \"missing_mean\": [null]}",
                   "m: 'missing_mean' of its schema has no finite number");
    assert_refused("{\"columns\": 1, \"standardise_mean\": [1], \"standardise_scale\": [0]}",
                   "m: 'standardise_scale' of its schema has a number that is not above 0");
    assert_refused("{\"columns\": 1, \"standardise_mean\": [1]}",
                   "m: 'standardise_mean' of its schema and 'standardise_scale' go together");
}

static void columns_are_found_by_name(void **state)
{
    learn_schema schema = note("alpha,beta,gamma\n1,2,3\n", -1);
    shoal_data *moved = open_text("moved.csv", "id,gamma,alpha,beta\n1,2,3,4\n");
    shoal_data *less = open_text("less.csv", "id,gama,alpha\n1,2,3\n");
    shoal_data *twice = open_text("twice.csv", "alpha,beta,gamma,beta\n1,2,3,4\n");
    int64_t columns[3];
    (void)state;
    assert_int_equal(learn_schema_match(columns, &schema, moved, shoal_data_columns(moved), "moved.csv", "m"),
                     SHOAL_OK);
    assert_true(columns[0] == 2 && columns[1] == 3 && columns[2] == 1);
    assert_int_equal(learn_column_find(moved, "gamma"), 1);
    assert_int_equal(learn_column_find(moved, "delta"), -1);
    assert_int_equal(learn_schema_match(columns, &schema, less, shoal_data_columns(less), "less.csv", "m"),
                     SHOAL_INVALID);
    assert_string_equal(shoal_error(), "less.csv has no columns 'beta', 'gamma', which m needs; did you mean 'gama'?");
    assert_int_equal(learn_schema_match(columns, &schema, twice, shoal_data_columns(twice), "twice.csv", "m"),
                     SHOAL_INVALID);
    assert_string_equal(shoal_error(), "twice.csv has two columns 'beta', and m needs one");
    shoal_data_free(&moved);
    shoal_data_free(&less);
    shoal_data_free(&twice);
    learn_schema_release(&schema);
}

static void a_near_name_is_named(void **state)
{
    learn_schema schema = note("petal_length,petal_width\n1,2\n", -1);
    shoal_data *data = open_text("near.csv", "petal_lenght,petal_width\n1,2\n");
    int64_t columns[2];
    (void)state;
    assert_int_equal(learn_schema_match(columns, &schema, data, shoal_data_columns(data), "near.csv", "m"),
                     SHOAL_INVALID);
    assert_string_equal(shoal_error(),
                        "near.csv has no column 'petal_length', which m needs; did you mean 'petal_lenght'?");
    shoal_data_free(&data);
    learn_schema_release(&schema);
}

static void every_allocation_may_fail(void **state)
{
    learn_schema full = full_schema();
    json_t *object = learn_schema_json(&full);
    shoal_data *data = open_text("moved.csv", "kind,b,a\n1,2,3\n");
    (void)state;
    for (int64_t n = 0;; n++) {
        learn_schema schema = {0}, copy = {0}, noted = {0};
        int64_t columns[2];
        base_memory_fail_after(n);
        int status = learn_schema_take(&schema, object, "m");
        if (status == SHOAL_OK)
            status = learn_schema_copy(&copy, &schema);
        if (status == SHOAL_OK)
            status = learn_schema_match(columns, &copy, data, shoal_data_columns(data), "moved.csv", "m");
        if (status == SHOAL_OK)
            status = learn_schema_note(&noted, data, 0, true);
        base_memory_fail_after(-1);
        learn_schema_release(&schema);
        learn_schema_release(&copy);
        learn_schema_release(&noted);
        if (status == SHOAL_OK)
            break;
        assert_int_equal(status, SHOAL_MEMORY);
        assert_true(n < 200);
    }
    shoal_data_free(&data);
    json_decref(object);
    learn_schema_release(&full);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_and_target_are_noted),
        cmocka_unit_test(json_keeps_every_bit),
        cmocka_unit_test(what_is_not_a_schema_is_refused),
        cmocka_unit_test(columns_are_found_by_name),
        cmocka_unit_test(a_near_name_is_named),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, folder_setup, folder_teardown);
}
