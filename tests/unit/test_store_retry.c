/* Labels: quick
 * Attempts made again: a store that answers by a script, in a world whose clock only moves when someone sleeps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "scripted_world.h"
#include "store/store_internal.h"

/* ---- a world and a store ----------------------------------------------------------------------------------------- */

/* What a call answers, and how long it takes. */
typedef struct answer {
    int status;
    shoal_cause cause;
    double retry_after, takes;
    const char *says;  /* "scripted" when NULL */
    const char *there; /* get: the put id that is found, "mine", "other" or "plain" */
} answer;

static const answer *script; /* ended by a row whose status is 1 */
static struct call {
    char what;
    int64_t at;
    bool doubt;
} calls[64];
static int call_count;
static unsigned char frame_put[SHOAL_FRAME_BYTES]; /* of the last put */

static const answer *next_answer(char what, store_attempt *attempt)
{
    assert_true(call_count < 64);
    if (script->status == 1)
        fail_msg("one call too many: %c", what);
    calls[call_count++] = (struct call){what, clock_now, attempt->doubt};
    clock_now += (int64_t)(script->takes * 1e9);
    attempt->cause = script->cause;
    attempt->retry_after = script->retry_after;
    if (script->status < 0)
        shoal_fail(script->status, "%s", script->says ? script->says : "scripted");
    return script++;
}

static int put_scripted(shoal_store *self, const char *key, const store_body *body, const shoal_etag *expected,
                        shoal_etag *etag, store_attempt *attempt)
{
    (void)self;
    (void)key;
    (void)expected;
    if (body->part[0].iov_len == sizeof frame_put)
        memcpy(frame_put, body->part[0].iov_base, sizeof frame_put);
    strcpy(etag->text, "from-put");
    return next_answer('p', attempt)->status;
}

static int get_scripted(shoal_store *self, const char *key, const store_range *range, shoal_blob *out,
                        store_attempt *attempt)
{
    (void)self;
    (void)key;
    const answer *told = next_answer('g', attempt);
    if (told->status == SHOAL_OK) {
        store_frame frame = {.kind = 7};
        assert_int_equal(range->length, SHOAL_FRAME_BYTES);
        if (strcmp(told->there, "mine") == 0)
            memcpy(range->buffer, frame_put, sizeof frame_put);
        else if (strcmp(told->there, "other") == 0)
            store_frame_write(range->buffer, &frame);
        else
            memset(range->buffer, 'x', SHOAL_FRAME_BYTES);
        out->size = SHOAL_FRAME_BYTES;
        strcpy(out->etag.text, "from-get");
    }
    return told->status;
}

static int remove_scripted(shoal_store *self, const char *key, store_attempt *attempt)
{
    (void)self;
    (void)key;
    return next_answer('r', attempt)->status;
}

static int finish_scripted(shoal_store *self, const char *queue, shoal_message *message, store_attempt *attempt)
{
    (void)self;
    (void)queue;
    (void)message;
    return next_answer('f', attempt)->status;
}

static int extend_scripted(shoal_store *self, const char *queue, shoal_message *message, double lease,
                           store_attempt *attempt)
{
    (void)self;
    (void)queue;
    (void)message;
    (void)lease;
    return next_answer('e', attempt)->status;
}

static const struct store_class scripted = {
    .scheme = "scripted",
    .get = get_scripted,
    .put = put_scripted,
    .remove = remove_scripted,
    .finish = finish_scripted,
    .extend = extend_scripted,
};

static shoal_store store;

static int start(void **state)
{
    (void)state;
    store = (shoal_store){.class = &scripted, .name = "scripted:", .prefix = ""};
    clock_now = 1000;
    call_count = 0;
    random_word = UINT32_MAX; /* the longest pause */
    base_world_set(&scripted_world);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    base_world_set(NULL);
    return 0;
}

static double second(int call)
{
    return (double)(calls[call].at - 1000) * 1e-9;
}

/* A framed put by the script; the deadline is `seconds` away. */
static int put(const answer *answers, const shoal_etag *expected, shoal_etag *etag, double seconds)
{
    script = answers;
    call_count = 0;
    return shoal_store_put_framed(&store, "key", 7, "body", 4, expected, etag, shoal_after(seconds));
}

static const shoal_etag version = {"v1"};

/* ---- tests ------------------------------------------------------------------------------------------------------- */

static void an_answer_is_an_answer(void **state)
{
    (void)state;
    static const int answers[] = {SHOAL_OK,     SHOAL_CONFLICT, SHOAL_DENIED, SHOAL_BROKEN,
                                  SHOAL_SYSTEM, SHOAL_INVALID,  SHOAL_MEMORY};
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        const answer once[] = {{.status = answers[i]}, {.status = 1}};
        assert_int_equal(put(once, SHOAL_NOTHING, NULL, 10), answers[i]);
        assert_int_equal(call_count, 1);
    }
}

static void pauses_grow_to_their_limit(void **state)
{
    (void)state;
    answer troubles[16];
    for (int i = 0; i < 12; i++)
        troubles[i] = (answer){.status = SHOAL_AGAIN, .cause = SHOAL_CAUSE_SERVER};
    troubles[12] = (answer){.status = SHOAL_OK};
    troubles[13] = (answer){.status = 1};
    assert_int_equal(put(troubles, NULL, NULL, 1000), SHOAL_OK);
    assert_int_equal(call_count, 13);
    double expected = 0.05;
    for (int i = 1; i < 13; i++) {
        assert_float_equal((float)(second(i) - second(i - 1)), (float)expected, 1e-3f);
        expected = expected * 2 < 5 ? expected * 2 : 5;
    }
    assert_int_equal(shoal_store_counted(&store).causes[SHOAL_CAUSE_SERVER], 12);
    random_word = 0; /* jitter goes down to nothing */
    clock_now = 1000;
    assert_int_equal(put(troubles, NULL, NULL, 1000), SHOAL_OK);
    assert_true(second(12) < 1e-6);
}

static void what_the_server_asks_for_is_waited(void **state)
{
    (void)state;
    const answer busy[] = {
        {.status = SHOAL_AGAIN, .cause = SHOAL_CAUSE_THROTTLED, .retry_after = 7}, {.status = SHOAL_OK}, {.status = 1}};
    assert_int_equal(put(busy, NULL, NULL, 10), SHOAL_OK);
    assert_true(second(1) >= 7 && second(1) < 7.1);
    /* A wait past the deadline is not begun. */
    clock_now = 1000;
    assert_int_equal(put(busy, NULL, NULL, 6), SHOAL_AGAIN);
    assert_int_equal(call_count, 1);
    assert_int_equal(clock_now, 1000);
    assert_non_null(strstr(shoal_error(), "gave up after 1 attempt in"));
    assert_int_equal(shoal_store_counted(&store).causes[SHOAL_CAUSE_THROTTLED], 2);
}

static void the_deadline_ends_it(void **state)
{
    (void)state;
    answer troubles[32];
    for (int i = 0; i < 32; i++)
        troubles[i] = (answer){.status = SHOAL_AGAIN, .cause = SHOAL_CAUSE_CUT, .takes = 0.001};
    assert_int_equal(put(troubles, NULL, NULL, 2), SHOAL_AGAIN);
    assert_true(clock_now <= 1000 + 2000000000 + 3000000);
    assert_true(call_count > 4); /* the last pauses shrink, so that the time is used */
    assert_true(second(call_count - 1) > 1.9);
    assert_int_equal(put(troubles, NULL, NULL, -1), SHOAL_AGAIN);
    assert_int_equal(call_count, 0);
    assert_non_null(strstr(shoal_error(), "key"));
    /* With an answer lost on the way nobody can say that nothing was done. */
    troubles[1].status = SHOAL_UNKNOWN;
    clock_now = 1000;
    assert_int_equal(put(troubles, NULL, NULL, 2), SHOAL_UNKNOWN);
}

/* A process that was stopped in an attempt has the time of the call once more, and only once: something else may not
 * heed deadlines. */
static void a_sleep_is_forgiven(void **state)
{
    (void)state;
    const answer slept = {.status = SHOAL_AGAIN, .cause = SHOAL_CAUSE_TIMEOUT, .takes = 1000};
    const answer once[] = {slept, {.status = SHOAL_OK}, {.status = 1}};
    const answer twice[] = {slept, slept, {.status = 1}};
    assert_int_equal(put(once, NULL, NULL, 300), SHOAL_OK);
    assert_int_equal(call_count, 2);
    clock_now = 1000;
    assert_int_equal(put(twice, NULL, NULL, 300), SHOAL_AGAIN);
    assert_int_equal(call_count, 2);
    clock_now = 1000;
    int64_t began = clock_now, deadline = base_time_after(began, 10);
    clock_now = base_time_after(began, 10.5);
    assert_int_equal(store_after_sleep(deadline, began), deadline);
    clock_now = base_time_after(began, 100);
    assert_int_equal(store_after_sleep(deadline, began), base_time_after(began, 110));
}

static void the_reason_is_kept(void **state)
{
    (void)state;
    const answer answers[] = {{.status = SHOAL_AGAIN, .cause = SHOAL_CAUSE_SERVER, .says = "the disk burns"},
                              {.status = SHOAL_AGAIN, .cause = SHOAL_CAUSE_TIMEOUT, .takes = 5.1, .says = "timed out"},
                              {.status = 1}};
    assert_int_equal(put(answers, NULL, NULL, 5), SHOAL_AGAIN);
    assert_non_null(strstr(shoal_error(), "the disk burns (gave up after 2 attempts in 5."));
    clock_now = 1000;
    assert_int_equal(put(answers + 1, NULL, NULL, 5), SHOAL_AGAIN);
    assert_non_null(strstr(shoal_error(), "timed out"));
}

static void lost_answers_of_puts(void **state)
{
    (void)state;
    static const struct {
        const char *there;
        int there_status, absent_condition, version_condition;
    } cases[] = {
        {"mine", SHOAL_OK, SHOAL_OK, SHOAL_OK},
        {"other", SHOAL_OK, SHOAL_CONFLICT, SHOAL_UNKNOWN},
        {"plain", SHOAL_OK, SHOAL_CONFLICT, SHOAL_UNKNOWN},
        {"", SHOAL_ABSENT, SHOAL_UNKNOWN, SHOAL_UNKNOWN},
        {"", SHOAL_DENIED, SHOAL_DENIED, SHOAL_DENIED},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const answer answers[] = {{.status = SHOAL_UNKNOWN, .cause = SHOAL_CAUSE_CUT},
                                  {.status = SHOAL_CONFLICT},
                                  {.status = cases[i].there_status, .there = cases[i].there},
                                  {.status = 1}};
        shoal_etag etag = {""};
        assert_int_equal(put(answers, SHOAL_NOTHING, &etag, 10), cases[i].absent_condition);
        assert_int_equal(call_count, 3);
        assert_true(calls[1].doubt && !calls[0].doubt);
        if (cases[i].absent_condition == SHOAL_OK)
            assert_string_equal(etag.text, "from-get");
        assert_int_equal(put(answers, &version, &etag, 10), cases[i].version_condition);
    }
}

static void a_judgement_that_fails_is_made_again(void **state)
{
    (void)state;
    const answer answers[] = {{.status = SHOAL_UNKNOWN, .cause = SHOAL_CAUSE_TIMEOUT},
                              {.status = SHOAL_CONFLICT},
                              {.status = SHOAL_AGAIN, .cause = SHOAL_CAUSE_SERVER},
                              {.status = SHOAL_CONFLICT},
                              {.status = SHOAL_OK, .there = "mine"},
                              {.status = 1}};
    assert_int_equal(put(answers, SHOAL_NOTHING, NULL, 10), SHOAL_OK);
    assert_int_equal(call_count, 5);
}

static void plain_bytes_can_not_tell(void **state)
{
    (void)state;
    const answer answers[] = {
        {.status = SHOAL_UNKNOWN, .cause = SHOAL_CAUSE_CUT}, {.status = SHOAL_CONFLICT}, {.status = 1}};
    script = answers;
    assert_int_equal(shoal_store_put(&store, "key", "x", 1, SHOAL_NOTHING, NULL, shoal_after(10)), SHOAL_UNKNOWN);
    assert_int_equal(call_count, 2);
    /* A conflict without a lost answer is simply a conflict. */
    const answer plain[] = {
        {.status = SHOAL_AGAIN, .cause = SHOAL_CAUSE_SERVER}, {.status = SHOAL_CONFLICT}, {.status = 1}};
    script = plain;
    assert_int_equal(shoal_store_put(&store, "key", "x", 1, SHOAL_NOTHING, NULL, shoal_after(10)), SHOAL_CONFLICT);
}

static void removing_and_leases(void **state)
{
    (void)state;
    shoal_message message = {.receipt = "r", .lease_ends = SHOAL_NEVER};
    const answer lost[] = {
        {.status = SHOAL_UNKNOWN, .cause = SHOAL_CAUSE_CUT}, {.status = SHOAL_ABSENT}, {.status = 1}};
    script = lost;
    assert_int_equal(shoal_store_remove(&store, "key", shoal_after(10)), SHOAL_OK);
    const answer done[] = {{.status = SHOAL_UNKNOWN, .cause = SHOAL_CAUSE_CUT}, {.status = SHOAL_OK}, {.status = 1}};
    script = done;
    call_count = 0;
    assert_int_equal(shoal_store_finish(&store, "queue", &message, shoal_after(10)), SHOAL_OK);
    assert_true(calls[1].doubt);
    const answer never[] = {{.status = SHOAL_UNKNOWN, .cause = SHOAL_CAUSE_CUT, .retry_after = 100}, {.status = 1}};
    script = never;
    assert_int_equal(shoal_store_extend(&store, "queue", &message, 10, shoal_after(10)), SHOAL_LOST);
    const answer nothing[] = {{.status = SHOAL_AGAIN, .cause = SHOAL_CAUSE_CUT, .retry_after = 100}, {.status = 1}};
    script = nothing;
    assert_int_equal(shoal_store_extend(&store, "queue", &message, 10, shoal_after(10)), SHOAL_AGAIN);
    /* The lease counts from before the request. */
    const answer slow[] = {{.status = SHOAL_OK, .takes = 3}, {.status = 1}};
    script = slow;
    int64_t before = clock_now;
    assert_int_equal(shoal_store_extend(&store, "queue", &message, 10, shoal_after(10)), SHOAL_OK);
    assert_int_equal(message.lease_ends, before + 10000000000);
    /* Once it has ended nobody is asked. */
    clock_now = message.lease_ends;
    script = nothing + 1;
    assert_int_equal(shoal_store_extend(&store, "queue", &message, 10, shoal_after(10)), SHOAL_LOST);
    assert_int_equal(shoal_store_finish(&store, "queue", &message, shoal_after(10)), SHOAL_LOST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_answer_is_an_answer, start, stop),
        cmocka_unit_test_setup_teardown(pauses_grow_to_their_limit, start, stop),
        cmocka_unit_test_setup_teardown(what_the_server_asks_for_is_waited, start, stop),
        cmocka_unit_test_setup_teardown(the_deadline_ends_it, start, stop),
        cmocka_unit_test_setup_teardown(a_sleep_is_forgiven, start, stop),
        cmocka_unit_test_setup_teardown(the_reason_is_kept, start, stop),
        cmocka_unit_test_setup_teardown(lost_answers_of_puts, start, stop),
        cmocka_unit_test_setup_teardown(a_judgement_that_fails_is_made_again, start, stop),
        cmocka_unit_test_setup_teardown(plain_bytes_can_not_tell, start, stop),
        cmocka_unit_test_setup_teardown(removing_and_leases, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
