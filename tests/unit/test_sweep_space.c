/* src/sweep/space*.c: what a space says is what its points are; whatever contradicts itself is refused with a sentence
 * that names the key; --vary says the same as JSON; points survive being written. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include <shoal/error.h>

#include "base/memory.h"
#include "sweep/space.h"

static sweep_space *read_space(const char *text)
{
    sweep_space *space = NULL;
    json_t *json = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(json);
    if (sweep_space_of_json(&space, "s.json", json) < 0)
        fail_msg("%s", shoal_error());
    json_decref(json);
    return space;
}

static void assert_refused(const char *text, const char *why)
{
    sweep_space *space = NULL;
    json_t *json = json_loads(text, 0, NULL);
    assert_non_null(json);
    assert_int_equal(sweep_space_of_json(&space, "s.json", json), SHOAL_INVALID);
    assert_null(space);
    if (!strstr(shoal_error(), why))
        fail_msg("'%s' does not say '%s'", shoal_error(), why);
    assert_memory_equal(shoal_error(), "s.json: ", 8);
    json_decref(json);
}

static const char usual[] = "{\"momentum\": {\"low\": 0.5, \"high\": 0.99, \"when\": {\"optimiser\": \"momentum\"}},"
                            " \"rate\": {\"low\": 1e-4, \"high\": 0.1, \"scale\": \"log\"},"
                            " \"layers\": {\"low\": 1, \"high\": 8, \"type\": \"integer\"},"
                            " \"batch\": [32, 128, 512], \"optimiser\": [\"sgd\", \"momentum\"],"
                            " \"epochs\": 20}";

static void test_parameters(void **state)
{
    sweep_space *space = read_space(usual);
    char own[SWEEP_TEXT_BYTES];
    (void)state;
    assert_int_equal(space->parameters, 6);
    const sweep_parameter *rate = &space->parameter[sweep_space_find(space, "rate")];
    assert_true(rate->logarithmic && rate->kind == SWEEP_FLOAT);
    assert_string_equal(sweep_text(own, rate, sweep_value_at(rate, 0.5)), "0.00316228");
    assert_true(sweep_value_at(rate, 0) == 1e-4 && sweep_value_at(rate, 1) == 0.1);
    const sweep_parameter *layers = &space->parameter[sweep_space_find(space, "layers")];
    for (int i = 1; i <= 8; i++)
        assert_true(sweep_value_at(layers, sweep_place_of(layers, i)) == i);
    assert_true(sweep_value_at(layers, 0) == 1 && sweep_value_at(layers, 0.9999999) == 8);
    const sweep_parameter *batch = &space->parameter[sweep_space_find(space, "batch")];
    assert_true(batch->ordered && batch->values == 3);
    assert_string_equal(sweep_text(own, batch, 1), "128");
    assert_false(space->parameter[sweep_space_find(space, "optimiser")].ordered);
    assert_true(sweep_values_of(&space->parameter[sweep_space_find(space, "epochs")]) == 1);
    /* What a condition is about comes first. */
    assert_int_equal(space->order[space->parameters - 1] == 0 || space->order[4] == 0 || space->order[5] == 0, 1);
    sweep_point point;
    for (int i = 0; i < SWEEP_PARAMETERS_MOST; i++)
        point.value[i] = NAN;
    assert_false(sweep_is_active(space, &point, 0));
    point.value[4] = 1;
    assert_true(sweep_is_active(space, &point, 0));
    point.value[4] = 0;
    assert_false(sweep_is_active(space, &point, 0));
    sweep_space_free(&space);
}

static void test_refusals(void **state)
{
    (void)state;
    assert_refused("{}", "must be an object with a parameter");
    assert_refused("[1]", "must be an object with a parameter");
    assert_refused("{\"a b\": 1}", "\"a b\" is not a parameter name");
    assert_refused("{\"1a\": 1}", "\"1a\" is not a parameter name");
    assert_refused("{\"value\": 1}", "can't be called \"value\"");
    assert_refused("{\"a\": {\"low\": 2.5, \"high\": 1}}", "\"a\" is an empty range: 2.5 is above 1");
    assert_refused("{\"a\": {\"low\": 0.0, \"high\": 1, \"scale\": \"log\"}}", "\"low\" above 0, and it is 0");
    assert_refused("{\"a\": {\"low\": 1, \"high\": 4}}", "say \"type\": \"integer\" or \"type\": \"float\"");
    assert_refused("{\"a\": {\"low\": 1.5, \"high\": 4, \"type\": \"integer\"}}", "needs whole numbers");
    assert_refused("{\"a\": {\"low\": 1.5, \"high\": 4, \"type\": \"int\"}}", "must be \"float\" or \"integer\"");
    assert_refused("{\"a\": {\"low\": 1.5, \"high\": 4, \"scale\": 3}}", "must be \"linear\" or \"log\"");
    assert_refused("{\"a\": {\"low\": 1.5}}", "\"a\" has no \"high\"");
    assert_refused("{\"a\": {\"low\": \"x\", \"high\": 2}}", "\"low\" is not a number");
    assert_refused("{\"a\": {\"low\": 1.5, \"hihg\": 2}}", "unknown key \"hihg\"; did you mean \"high\"?");
    assert_refused("{\"a\": {\"values\": [1], \"low\": 2}}", "a list has no \"low\"");
    assert_refused("{\"a\": {\"values\": 3}}", "\"values\" is not a list");
    assert_refused("{\"a\": {\"low\": 1.5, \"high\": 2, \"steps\": 0}}", "\"steps\" must be a whole number from 1");
    assert_refused("{\"a\": {\"low\": -1e308, \"high\": 1e308}}", "too wide");
    assert_refused("{\"a\": {\"low\": 1, \"high\": 9007199254740999, \"type\": \"integer\"}}", "beyond 2^53");
    assert_refused("{\"a\": []}", "\"a\" lists no values");
    assert_refused("{\"a\": [1, 2, 1.0]}", "\"a\" lists 1 twice");
    assert_refused("{\"a\": [\"x\", null]}", "neither a number, a text");
    assert_refused("{\"a\": [\"x\\u0007\"]}", "control characters");
    assert_refused("{\"a\": {\"values\": [1], \"when\": {\"b\": 1}}}", "\"b\", which is not a parameter");
    assert_refused("{\"a\": {\"values\": [1], \"when\": 3}}", "\"when\" must be an object");
    assert_refused("{\"a\": {\"values\": [1], \"when\": {\"b\": 3}}, \"b\": [1, 2]}",
                   "depends on \"b\" being 3, which is none of its values");
    assert_refused("{\"a\": {\"values\": [1], \"when\": {\"b\": []}}, \"b\": [1, 2]}", "one of no values");
    assert_refused("{\"a\": {\"values\": [1], \"when\": {\"b\": 3}}, \"b\": {\"low\": 0.0, \"high\": 4}}",
                   "\"b\", which is a range");
    assert_refused("{\"a\": {\"values\": [1], \"when\": {\"b\": 1}}, \"b\": {\"values\": [1], \"when\": {\"a\": 1}}}",
                   "go round in a circle");
    assert_refused("{\"a\": {\"values\": [1, 2], \"when\": {\"a\": 1}}}",
                   "go round in a circle: \"a\" depends on itself");
    /* One of the circle, and not who waits for it. */
    assert_refused("{\"a\": {\"values\": [1], \"when\": {\"b\": 1}}, \"b\": {\"values\": [1], \"when\": {\"a\": 1}},"
                   " \"c\": {\"values\": [1], \"when\": {\"a\": 1}}}",
                   "\"a\" depends on \"b\", and that on \"a\"");
    assert_refused("{\"a\": {\"low\": 1.0000001, \"high\": 1}}", "1.0000001 is above 1");
    assert_refused("{\"a\": [\"x\", \"\"]}", "\"a\" has an empty text");
    assert_refused("{\"c\": [1, 2], \"b\": {\"values\": [1, 2], \"when\": {\"c\": 1}},"
                   " \"a\": {\"values\": [1], \"when\": {\"b\": 1, \"c\": 2}}}",
                   "\"a\" can never be there");
}

static void assert_vary(const char *vary, const char *json)
{
    json_t *space = json_object(), *expected = json_loads(json, 0, NULL);
    if (sweep_space_add_vary(space, vary) < 0)
        fail_msg("%s", shoal_error());
    assert_non_null(expected);
    assert_true(json_equal(space, expected));
    json_decref(space);
    json_decref(expected);
}

static void assert_vary_refused(const char *vary, const char *why)
{
    json_t *space = json_pack("{s:i}", "old", 1);
    assert_int_equal(sweep_space_add_vary(space, vary), SHOAL_USAGE);
    if (!strstr(shoal_error(), why))
        fail_msg("'%s' does not say '%s'", shoal_error(), why);
    json_decref(space);
}

static void test_vary(void **state)
{
    (void)state;
    assert_vary("rate=1e-4..1e-1:log",
                "{\"rate\": {\"type\": \"float\", \"low\": 1e-4, \"high\": 0.1, \"scale\": \"log\"}}");
    assert_vary("layers=1..8", "{\"layers\": {\"type\": \"integer\", \"low\": 1, \"high\": 8}}");
    assert_vary("layers=1..8:float:5", "{\"layers\": {\"type\": \"float\", \"low\": 1, \"high\": 8, \"steps\": 5}}");
    assert_vary("batch=32,128,512", "{\"batch\": [32, 128, 512]}");
    assert_vary("kind=a,b=c,0.5", "{\"kind\": [\"a\", \"b=c\", 0.5]}");
    assert_vary_refused("rate", "must be NAME=LOW..HIGH");
    assert_vary_refused("=3", "must be NAME=LOW..HIGH");
    assert_vary_refused("rate=", "must be NAME=LOW..HIGH");
    assert_vary_refused("old=3", "\"old\" is a parameter already");
    assert_vary_refused("rate=a..3", "a range is LOW..HIGH");
    assert_vary_refused("rate=1..", "a range is LOW..HIGH");
    assert_vary_refused("rate=0.5..3:lin", "'lin' is none of log");
}

static void test_points_survive(void **state)
{
    sweep_space *space = read_space(usual), *again = NULL;
    (void)state;
    json_t *json = sweep_space_json(space);
    assert_int_equal(sweep_space_of_json(&again, "again", json), SHOAL_OK);
    json_t *twice = sweep_space_json(again);
    assert_true(json_equal(json, twice));
    for (int with = 0; with < 2; with++) {
        sweep_point point, read;
        for (int i = 0; i < SWEEP_PARAMETERS_MOST; i++)
            point.value[i] = NAN;
        const double value[] = {with ? 0.75 : (double)NAN, 0.003, 4, 2, with, 0};
        memcpy(point.value, value, sizeof value);
        json_t *written = sweep_point_json(space, &point);
        assert_int_equal(sweep_point_of_json(&read, again, "p", written), SHOAL_OK);
        assert_true(sweep_same_point(space, &point, &read));
        json_object_set_new(written, "layers", json_real(4.5));
        assert_int_equal(sweep_point_of_json(&read, again, "p", written), SHOAL_BROKEN);
        json_object_set_new(written, "layers", json_integer(9));
        assert_int_equal(sweep_point_of_json(&read, again, "p", written), SHOAL_BROKEN);
        json_object_set_new(written, "layers", json_integer(8));
        json_object_set_new(written, "more", json_integer(8));
        assert_int_equal(sweep_point_of_json(&read, again, "p", written), SHOAL_BROKEN);
        json_object_del(written, "more");
        json_object_del(written, "rate");
        assert_int_equal(sweep_point_of_json(&read, again, "p", written), SHOAL_BROKEN);
        json_decref(written);
    }
    json_decref(json);
    json_decref(twice);
    sweep_space_free(&again);
    sweep_space_free(&space);
}

static void test_every_allocation_may_fail(void **state)
{
    (void)state;
    json_t *json = json_loads(usual, 0, NULL);
    for (int64_t n = 0;; n++) {
        sweep_space *space = NULL;
        base_memory_fail_after(n);
        const int status = sweep_space_of_json(&space, "s.json", json);
        base_memory_fail_after(-1);
        sweep_space_free(&space);
        if (status == SHOAL_OK)
            break;
        assert_int_equal(status, SHOAL_MEMORY);
    }
    json_decref(json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parameters),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_vary),
        cmocka_unit_test(test_points_survive),
        cmocka_unit_test(test_every_allocation_may_fail),
    };
    return cmocka_run_group_tests_name("sweep_space", tests, NULL, NULL);
}
