/* Notes between the agent and its starter: what comes from the other side is read whatever it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <shoal/error.h>

#include "launch/agent_note.h"

static void test_what_is_no_note(void **state)
{
    static const char *const wrong[] = {
        "", "x", "[1]", "\"says\"", "{\"says\":", "{\"a\":1,\"a\":2}", "{\"says\":\"\xff\"}"};
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_null(agent_note_read(wrong[i]));
}

static void test_what_is_missing(void **state)
{
    json_t *note = agent_note_read("{\"says\":7,\"count\":\"x\",\"round_trip\":[],\"worker\":\"xyz\"}");
    (void)state;
    assert_non_null(note);
    assert_string_equal(agent_note_text(note, "says"), "");
    assert_string_equal(agent_note_text(note, "why"), "");
    assert_int_equal(agent_note_count(note, "count"), 0);
    assert_int_equal(agent_note_count(note, "first"), 0);
    assert_true(agent_note_real(note, "round_trip") == 0);
    assert_int_equal(agent_note_worker(note), 0);
    json_decref(note);
}

static int keep(void *link, const char *text)
{
    snprintf(link, 200, "%s", text);
    return SHOAL_OK;
}

static void test_what_is_told_is_heard(void **state)
{
    char text[200];
    (void)state;
    assert_int_equal(agent_note_tell(json_pack("{s:s,s:s,s:I,s:f,s:o}", "says", "gone", "worker", "8000000000000001",
                                               "count", (json_int_t)INT64_MAX, "round_trip", 0.25, "why",
                                               agent_note_string("\xfe died \"so\"")),
                                     keep, text),
                     SHOAL_OK);
    json_t *note = agent_note_read(text);
    assert_non_null(note);
    assert_string_equal(agent_note_text(note, "says"), "gone");
    assert_string_equal(agent_note_text(note, "why"), "? died \"so\"");
    assert_true(agent_note_worker(note) == 0x8000000000000001u);
    assert_true(agent_note_count(note, "count") == INT64_MAX);
    assert_true(agent_note_real(note, "round_trip") == 0.25);
    json_decref(note);
    assert_int_equal(agent_note_tell(NULL, keep, text), SHOAL_MEMORY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_no_note),
        cmocka_unit_test(test_what_is_missing),
        cmocka_unit_test(test_what_is_told_is_heard),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
