/* Conformance: queues, and waiting.  Leases are real time, so these tests are the slow ones. */
#ifndef CONFORM_STORE_QUEUES_H
#define CONFORM_STORE_QUEUES_H

#include "store_support.h"

/* Between two looks at something that passes by itself. */
static void pause_a_little(void)
{
    usleep(here.latency > 0.001 ? 40000 : 10000);
}

/* Takes a message that will be there, as soon as it is. */
static void take_at_last(shoal_store *store, const char *queue, double lease, shoal_message *out)
{
    int64_t deadline = shoal_after(300);
    int status;
    while ((status = shoal_store_take(store, queue, lease, out, SOON)) == SHOAL_ABSENT && shoal_now() < deadline)
        pause_a_little();
    if (status < 0)
        fail_msg("nothing came from %s: %s", queue, shoal_error());
}

static void push_text(shoal_store *store, const char *queue, const char *text)
{
    succeed(shoal_store_push(store, queue, text, strlen(text), SOON));
}

static int64_t count_of(shoal_store *store, const char *queue)
{
    int64_t count = -1;
    succeed(shoal_store_count(store, queue, &count, SOON));
    return count;
}

static bool holds_text(const shoal_message *message, const char *text)
{
    return message->size == strlen(text) && memcmp(message->data, text, message->size) == 0;
}

/* ---- one message ------------------------------------------------------------------------------------------------- */

static void test_messages_of_every_awkward_size(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 100, 48 * 1024 - 1, 48 * 1024, 48 * 1024 + 1, 100 * 1024, 1 << 20};
    const char *queue = use_queue("sizes");
    shoal_store *store = open_with(NULL), *other = open_with(NULL);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        unsigned char *bytes = malloc(sizes[i] + 1);
        shoal_message message = {0}, none = {0};
        fill(bytes, sizes[i], i);
        succeed(shoal_store_push(store, queue, bytes, sizes[i], SOON));
        int64_t before = shoal_now();
        succeed(shoal_store_take(other, queue, 30, &message, SOON));
        if (message.size != sizes[i] || memcmp(message.data, bytes, sizes[i]) != 0)
            fail_msg("a message of %zu bytes came as another one of %zu", sizes[i], message.size);
        assert_int_equal(message.deliveries, 1);
        assert_true(message.lease_ends >= before + INT64_C(30000000000));
        assert_true(message.lease_ends <= shoal_after(300));
        expect(SHOAL_ABSENT, shoal_store_take(store, queue, 30, &none, SOON));
        succeed(shoal_store_finish(other, queue, &message, SOON));
        expect(SHOAL_ABSENT, shoal_store_take(store, queue, 30, &none, SOON));
        shoal_message_release(&message);
        free(bytes);
    }
    shoal_store_close(&store);
    shoal_store_close(&other);
}

static void test_counting_and_dropping(void **state)
{
    (void)state;
    const char *queue = use_queue("counted"), *none = use_queue("never made");
    shoal_store *store = open_with(NULL);
    shoal_message message = {0}, late = {0};
    assert_int_equal(count_of(store, none), 0);
    expect(SHOAL_ABSENT, shoal_store_take(store, none, 5, &message, SOON));
    succeed(shoal_store_drop(store, none, SOON));
    for (int i = 0; i < 5; i++)
        push_text(store, queue, "x");
    assert_int_equal(count_of(store, queue), 5);
    succeed(shoal_store_take(store, queue, 30, &message, SOON));
    assert_int_equal(count_of(store, queue), 5); /* what is held counts */
    succeed(shoal_store_finish(store, queue, &message, SOON));
    shoal_message_release(&message);
    assert_int_equal(count_of(store, queue), 4);
    succeed(shoal_store_take(store, queue, 30, &message, SOON));
    succeed(shoal_store_drop(store, queue, SOON));
    assert_int_equal(count_of(store, queue), 0);
    expect(SHOAL_ABSENT, shoal_store_take(store, queue, 30, &late, SOON));
    shoal_message_release(&message);
    shoal_store_close(&store);
}

static void test_what_is_given_back_is_delivered_at_once(void **state)
{
    (void)state;
    const char *queue = use_queue("given back");
    shoal_store *first = open_with(NULL), *second = open_with(NULL);
    shoal_message message = {0}, again = {0}, copy;
    push_text(first, queue, "hot");
    for (int i = 1; i <= 3; i++) {
        succeed(shoal_store_take(first, queue, 300, &message, SOON));
        assert_int_equal(message.deliveries, i);
        copy = message;
        succeed(shoal_store_extend(first, queue, &message, 0, SOON));
        if (i < 3)
            shoal_message_release(&message);
    }
    succeed(shoal_store_take(second, queue, 300, &again, SOON));
    assert_int_equal(again.deliveries, 4);
    assert_true(holds_text(&again, "hot"));
    expect(SHOAL_LOST, shoal_store_finish(first, queue, &message, SOON));
    expect(SHOAL_LOST, shoal_store_extend(first, queue, &message, 30, SOON));
    expect(SHOAL_LOST, shoal_store_extend(first, queue, &message, 0, SOON));
    expect(SHOAL_LOST, shoal_store_finish(first, queue, &copy, SOON)); /* which does not know that it was given back */
    expect(SHOAL_LOST, shoal_store_extend(first, queue, &copy, 300, SOON));
    succeed(shoal_store_extend(second, queue, &again, 200, SOON));
    succeed(shoal_store_finish(second, queue, &again, SOON));
    assert_int_equal(count_of(second, queue), 0);
    shoal_message_release(&message);
    shoal_message_release(&again);
    shoal_store_close(&first);
    shoal_store_close(&second);
}

/* Names that begin with each other are queues of their own. */
static void test_queues_do_not_mix(void **state)
{
    (void)state;
    static const char *const names[] = {"q", "q/m", "q/l", "q/m/m", "qq", "q-\xc3\xa9 !$%&'()+,;=@~"};
    shoal_store *store = open_with(NULL);
    shoal_message message = {0};
    for (int i = 0; i < 6; i++)
        push_text(store, use_queue(names[i]), names[i]);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(count_of(store, names[i]), 1);
        succeed(shoal_store_take(store, names[i], 30, &message, SOON));
        assert_true(holds_text(&message, names[i]));
        if (i % 2)
            succeed(shoal_store_finish(store, names[i], &message, SOON));
        shoal_message_release(&message);
        expect(SHOAL_ABSENT, shoal_store_take(store, names[i], 30, &message, SOON));
    }
    succeed(shoal_store_drop(store, "q", SOON));
    assert_int_equal(count_of(store, "q"), 0);
    assert_int_equal(count_of(store, "q/m/m"), 0);
    assert_int_equal(count_of(store, "qq"), 1);
    assert_int_equal(count_of(store, "q/l"), 1);
    shoal_listing page = {0}; /* however they are kept, they are not seen among the blobs */
    do {
        succeed(shoal_store_list(store, "", NULL, &page, SOON));
        for (size_t i = 0; i < page.count; i++)
            if (page.entries[i].key[0] == 'q' || strncmp(page.entries[i].key, ".shoal", 6) == 0)
                fail_msg("a listing shows '%s', which is a queue's", page.entries[i].key);
    } while (page.more);
    shoal_listing_release(&page);
    shoal_store_close(&store);
}

/* ---- leases ------------------------------------------------------------------------------------------------------ */

/* Tries to take a message until it gets one; tells when it had it. */
static int role_thief(shoal_store *store, int index, const char *queue, FILE *out)
{
    shoal_message message = {0};
    shoal_blob blob = {0};
    int64_t deadline = shoal_after(60);
    (void)index;
    int status = SHOAL_ABSENT;
    while (status == SHOAL_ABSENT && shoal_now() < deadline) {
        status = shoal_store_take(store, queue, 300, &message, SOON);
        if (status == SHOAL_ABSENT && shoal_store_get(store, "stolen", &blob, SOON) == SHOAL_OK)
            return shoal_blob_release(&blob), SHOAL_OK;
        pause_a_little();
    }
    if (status == SHOAL_OK) {
        fprintf(out, "got %" PRId64 " %" PRId64 "\n", shoal_now(), message.deliveries);
        status = shoal_store_put(store, "stolen", "x", 1, NULL, NULL, SOON);
    }
    if (status == SHOAL_OK)
        status = shoal_store_finish(store, queue, &message, SOON);
    shoal_message_release(&message);
    return status;
}

typedef struct theft {
    int64_t time, deliveries;
    int count;
} theft;

static void see_theft(void *context, int index, const char *line)
{
    theft *theft = context;
    (void)index;
    theft->count += sscanf(line, "got %" SCNd64 " %" SCNd64, &theft->time, &theft->deliveries) == 2;
}

/* Holds a message through three leases among thieves.  False when this process was kept from extending in time. */
static bool hold_among_thieves(shoal_store *store, const char *queue, double lease)
{
    shoal_message message = {0};
    theft theft = {0};
    succeed(shoal_store_remove(here.keeper, "stolen", SOON));
    push_text(here.keeper, queue, "precious");
    take_at_last(here.keeper, queue, lease, &message);
    race *thieves = race_start("thief", 3, here.shared, NULL, queue);
    int64_t end = shoal_after(3 * lease);
    int status = SHOAL_OK;
    while (status == SHOAL_OK && shoal_now() < end) {
        usleep((useconds_t)(lease * 1e6 / 4));
        status = shoal_store_extend(store, queue, &message, lease, SOON);
    }
    bool stalled = status == SHOAL_LOST;
    int64_t mine_until = message.lease_ends;
    if (status == SHOAL_OK) { /* now nobody extends it */
        while (shoal_now() <= mine_until)
            usleep(10000);
        expect(SHOAL_LOST, shoal_store_extend(store, queue, &message, 30, SOON));
        expect(SHOAL_LOST, shoal_store_finish(store, queue, &message, SOON));
    }
    race_join(thieves, see_theft, &theft);
    if (status < 0 && status != SHOAL_LOST)
        fail_msg("%s", shoal_error());
    assert_int_equal(theft.count, 1);
    if (theft.time < mine_until)
        fail_msg("a message was delivered %.3f s before its lease of %g s ended",
                 (double)(mine_until - theft.time) * 1e-9, lease);
    assert_true(theft.deliveries == 2 || here.seed != 0);
    assert_int_equal(count_of(here.keeper, queue), 0);
    shoal_message_release(&message);
    return !stalled;
}

static void test_a_lease_lasts_while_it_is_extended_and_then_ends(void **state)
{
    (void)state;
    const char *queue = use_queue("thieves");
    shoal_store *store = open_with(here.seed ? "delay:0.1/10ms,before:0.05" : NULL);
    for (double lease = 1; !hold_among_thieves(store, queue, lease); lease *= 2)
        assert_true(lease < 64);
    shoal_store_close(&store);
}

/* ---- a race for each message ------------------------------------------------------------------------------------- */

/* Takes from each of some queues once. */
static int role_grab(shoal_store *store, int index, const char *argument, FILE *out)
{
    int queues = atoi(argument), status = SHOAL_OK;
    char queue[32];
    (void)index;
    for (int i = 0; i < queues && status == SHOAL_OK; i++) {
        shoal_message message = {0};
        snprintf(queue, sizeof queue, "grab/%d", i);
        status = shoal_store_take(store, queue, 600, &message, SOON);
        if (status == SHOAL_OK)
            fprintf(out, "won %d\n", i);
        else if (status == SHOAL_ABSENT)
            status = SHOAL_OK;
        shoal_message_release(&message);
    }
    return status;
}

/* One message, many that see it at the same time. */
static void test_a_message_is_taken_by_one_of_16_racers(void **state)
{
    (void)state;
    winners winners = {0};
    char name[32];
    int queues = amount(10, 3, 60);
    for (int i = 0; i < queues; i++) {
        snprintf(name, sizeof name, "grab/%d", i);
        push_text(here.keeper, use_queue(name), "x");
    }
    snprintf(name, sizeof name, "%d", queues);
    race_join(race_start("grab", 16, false, "delay:0.7/3ms", name), see_winner, &winners);
    for (int i = 0; i < queues; i++)
        if (winners.count[i] != 1)
            fail_msg("the message of grab/%d was taken by %d of 16 racers", i, winners.count[i]);
}

/* ---- a storm of takers ------------------------------------------------------------------------------------------- */

/* One time that a message was held: by whom, from when (it was had) until when (it was given up, or its lease
 * ended). */
typedef struct holding {
    int message, racer;
    int64_t from, until, deliveries;
    bool finished;
} holding;

typedef struct storm {
    holding *holdings;
    size_t count;
} storm;

/* What a taker does with a message: 0 to 5 finish, 6 and 7 extend and finish, 8 give back, 9 die over it. */
static int hold_one(shoal_store *store, const char *queue, shoal_message *message, int index, FILE *out)
{
    int number = -1, manner = (int)(random_word() % 10), status = SHOAL_OK;
    int64_t from = shoal_now();
    char text[16] = "";
    bool finished = false;
    memcpy(text, message->data, message->size < 15 ? message->size : 15);
    sscanf(text, "%d", &number);
    for (int i = 0; (manner == 6 || manner == 7) && i < 3 && status == SHOAL_OK; i++) {
        usleep(150000);
        status = shoal_store_extend(store, queue, message, 1, SOON);
    }
    int64_t ends = message->lease_ends, until = ends;
    if (status == SHOAL_OK && (manner < 9 || message->deliveries > 1)) {
        int64_t now = shoal_now();
        until = now < ends ? now : ends;
        status = manner == 8 ? shoal_store_extend(store, queue, message, 0, SOON)
                             : shoal_store_finish(store, queue, message, SOON);
        /* Later it may have been another who finished it, between a lost answer and the next try. */
        finished = status == SHOAL_OK && manner != 8 && shoal_now() < ends;
        if (status == SHOAL_UNKNOWN) /* it may be gone or not: the next one to get it finishes it */
            status = SHOAL_OK;
    }
    fprintf(out, "held %d %d %" PRId64 " %" PRId64 " %" PRId64 " %d\n", number, index, from, until, message->deliveries,
            finished);
    return status == SHOAL_LOST ? SHOAL_OK : status;
}

static int role_storm(shoal_store *store, int index, const char *queue, FILE *out)
{
    int64_t deadline = shoal_after(60), left = 1;
    int status = SHOAL_OK;
    while (status == SHOAL_OK && left > 0 && shoal_now() < deadline) {
        shoal_message message = {0};
        status = shoal_store_take(store, queue, 1, &message, SOON);
        if (status == SHOAL_OK)
            status = hold_one(store, queue, &message, index, out);
        else if (status == SHOAL_ABSENT) {
            pause_a_little();
            status = shoal_store_count(store, queue, &left, SOON);
        }
        shoal_message_release(&message);
    }
    return status;
}

static void see_holding(void *context, int index, const char *line)
{
    storm *storm = context;
    holding each = {0};
    int finished;
    (void)index;
    if (sscanf(line, "held %d %d %" SCNd64 " %" SCNd64 " %" SCNd64 " %d", &each.message, &each.racer, &each.from,
               &each.until, &each.deliveries, &finished) != 6)
        fail_msg("unclear: %s", line);
    each.finished = finished;
    storm->holdings = realloc(storm->holdings, (storm->count + 1) * sizeof each);
    assert_non_null(storm->holdings);
    storm->holdings[storm->count++] = each;
}

static int by_message_and_time(const void *a, const void *b)
{
    const holding *x = a, *y = b;
    if (x->message != y->message)
        return x->message < y->message ? -1 : 1;
    return x->from < y->from ? -1 : x->from > y->from;
}

/* Each message was held by one at a time, ever more often, and not again once it was finished. */
static void judge_storm(storm *storm, int messages, bool duplicates)
{
    qsort(storm->holdings, storm->count, sizeof *storm->holdings, by_message_and_time);
    int seen = 0;
    for (size_t i = 0; i < storm->count; i++) {
        const holding *each = &storm->holdings[i], *next = i + 1 < storm->count ? each + 1 : NULL;
        assert_in_range(each->message, 0, messages - 1);
        seen += i == 0 || each->message != each[-1].message;
        if (!next || next->message != each->message || duplicates)
            continue;
        if (next->from < each->until)
            fail_msg("message %d came to taker %d %.3f s before taker %d's lease ended", each->message, next->racer,
                     (double)(each->until - next->from) * 1e-9, each->racer);
        if (next->deliveries <= each->deliveries)
            fail_msg("delivery %" PRId64 " of message %d came after delivery %" PRId64, next->deliveries, each->message,
                     each->deliveries);
        if (each->finished)
            fail_msg("message %d came to taker %d after taker %d had finished it", each->message, next->racer,
                     each->racer);
    }
    if (seen != messages)
        fail_msg("%d of %d messages were never delivered", messages - seen, messages);
    free(storm->holdings);
}

static void run_storm(const char *queue, bool processes, const char *push_faults, const char *take_faults,
                      bool duplicates)
{
    storm storm = {0};
    char text[16];
    int messages = amount(30, 8, 20);
    shoal_store *pusher = open_with(push_faults);
    use_queue(queue);
    for (int i = 0; i < messages; i++) {
        snprintf(text, sizeof text, "%d", i);
        push_text(pusher, queue, text);
    }
    race_join(race_start("storm", 6, processes, take_faults, queue), see_holding, &storm);
    judge_storm(&storm, messages, duplicates);
    assert_int_equal(count_of(here.keeper, queue), 0);
    shoal_store_close(&pusher);
}

static void test_a_message_has_one_holder_and_comes_at_last(void **state)
{
    (void)state;
    run_storm("storm", here.shared, NULL, usual_faults(NULL), false);
}

/* Lost answers and doubled messages cost deliveries, never a message. */
static void test_every_message_comes_though_answers_are_lost(void **state)
{
    (void)state;
    if (here.seed == 0)
        skip();
    run_storm("storm, doubled", false, "after:0.2,duplicate:0.2,cut:0.1", "after:0.1,cut:0.05,before:0.05", true);
}

/* ---- waiting ----------------------------------------------------------------------------------------------------- */

/* Waits until a key's number is at least `number`. */
static int await_number(shoal_store *store, const char *key, const char *name, int number, uint32_t *seen)
{
    int64_t deadline = shoal_after(20);
    int status;
    do {
        shoal_blob blob = {0};
        int found = -1;
        status = shoal_store_get(store, key, &blob, SOON);
        if (status == SHOAL_OK && blob.size == sizeof found)
            memcpy(&found, blob.data, sizeof found);
        shoal_blob_release(&blob);
        if (found >= number || (status < 0 && status != SHOAL_ABSENT))
            return status;
        status = shoal_store_wait(store, name, seen, deadline);
    } while (status == SHOAL_OK);
    return status;
}

/* Answers every number put as ping/N by the same as pong. */
static int role_pong(shoal_store *store, int index, const char *argument, FILE *out)
{
    uint32_t seen = 0;
    int status = SHOAL_OK, times = atoi(argument);
    (void)index;
    (void)out;
    for (int i = 0; i < times && status == SHOAL_OK; i++) {
        status = await_number(store, "wait/ping", "wait/ping", i, &seen);
        if (status == SHOAL_OK)
            status = shoal_store_put(store, "wait/pong", &i, sizeof i, NULL, NULL, SOON);
    }
    return status;
}

static void play_ping_pong(bool process, const char *watched)
{
    shoal_store *store = open_usual();
    char times[16];
    uint32_t seen = 0;
    bool wakes = shoal_store_describe(store).wakes;
    int count = !wakes ? 3 : here.seed ? 40 : 200, status = SHOAL_OK;
    snprintf(times, sizeof times, "%d", count);
    succeed(shoal_store_remove(store, "wait/ping", SOON));
    succeed(shoal_store_remove(store, "wait/pong", SOON));
    race *race = race_start("pong", 1, process, usual_faults(NULL), times);
    int64_t started = shoal_now();
    for (int i = 0; i < count && status == SHOAL_OK; i++) {
        status = shoal_store_put(store, "wait/ping", &i, sizeof i, NULL, NULL, SOON);
        if (status == SHOAL_OK)
            status = await_number(store, "wait/pong", watched, i, &seen);
    }
    char message[256];
    snprintf(message, sizeof message, "%s", shoal_error());
    race_join(race, NULL, NULL);
    if (status < 0)
        fail_msg("a wake-up was lost: %s", message);
    assert_true(shoal_now() - started < INT64_C(60000000000));
    shoal_store_close(&store);
}

static void test_no_wake_up_is_lost(void **state)
{
    (void)state;
    play_ping_pong(false, "wait/");
    if (shoal_store_describe(here.keeper).wakes)
        play_ping_pong(false, "wait/pong");
    if (here.shared)
        play_ping_pong(true, "wait/pong");
}

static void test_a_wait_ends_at_its_deadline(void **state)
{
    (void)state;
    shoal_store *store = open_usual();
    uint32_t seen = 0;
    int status;
    if (!shoal_store_describe(store).wakes)
        return shoal_store_close(&store);
    succeed(shoal_store_wait(store, "quiet", &seen, SOON)); /* the first is told at once to look */
    assert_int_not_equal(seen, 0);
    int64_t deadline = shoal_after(0.05);
    while ((status = shoal_store_wait(store, "quiet", &seen, deadline)) == SHOAL_OK)
        ; /* there may have been a change: of a key that others have, in the same word */
    assert_int_equal(status, SHOAL_AGAIN);
    assert_true(shoal_now() >= deadline && shoal_now() < deadline + INT64_C(5000000000));
    while ((status = shoal_store_wait(store, "quiet", &seen, shoal_now() - 1)) == SHOAL_OK)
        ;
    assert_int_equal(status, SHOAL_AGAIN);
    put_text(here.keeper, "quiet", "no more");
    succeed(shoal_store_wait(store, "quiet", &seen, SOON));
    shoal_store_close(&store);
}

/* Answers every blob put once as call/N, which it expects three ahead, by another put once as echo/N. */
static int role_echo(shoal_store *store, int index, const char *argument, FILE *out)
{
    enum { AHEAD = 3 };
    char key[32];
    int status = SHOAL_OK, times = atoi(argument);
    (void)index;
    (void)out;
    for (int i = -AHEAD; i < times && status == SHOAL_OK; i++) {
        shoal_blob blob = {0};
        snprintf(key, sizeof key, "call/%d", i + AHEAD);
        shoal_store_expect(store, key);
        if (i < 0)
            continue;
        snprintf(key, sizeof key, "call/%d", i);
        status = shoal_store_await(store, key, shoal_after(20), &blob, SOON);
        snprintf(key, sizeof key, "echo/%d", i);
        if (status == SHOAL_OK)
            status = shoal_store_put(store, key, blob.data, blob.size, NULL, NULL, SOON);
        shoal_blob_release(&blob);
    }
    shoal_store_expect(store, NULL); /* the last three never come */
    return status;
}

static void test_what_is_awaited_comes(void **state)
{
    shoal_store *store = open_usual();
    bool wakes = shoal_store_describe(store).wakes;
    int count = !wakes ? 3 : here.seed ? 20 : 100;
    char times[16], key[32];
    (void)state;
    snprintf(times, sizeof times, "%d", count);
    for (int i = 0; i < count; i++) {
        snprintf(key, sizeof key, "call/%d", i);
        succeed(shoal_store_remove(store, key, SOON));
        snprintf(key, sizeof key, "echo/%d", i);
        succeed(shoal_store_remove(store, key, SOON));
    }
    race *race = race_start("echo", 1, here.shared, usual_faults(NULL), times);
    for (int i = 0; i < count; i++) {
        shoal_blob blob = {0};
        snprintf(key, sizeof key, "call/%d", i);
        put_text(here.keeper, key, key);
        char echo[32];
        snprintf(echo, sizeof echo, "echo/%d", i);
        if (i % 2)
            shoal_store_expect(store, echo);
        succeed(shoal_store_await(store, echo, shoal_after(20), &blob, SOON));
        assert_int_equal(blob.size, strlen(key));
        assert_memory_equal(blob.data, key, strlen(key));
        shoal_blob_release(&blob);
    }
    race_join(race, NULL, NULL);
    shoal_store_close(&store);
}

static void test_what_never_comes_is_absent_in_time(void **state)
{
    shoal_store *store = open_usual();
    shoal_blob blob = {0};
    (void)state;
    for (int expected = 0; expected < 2; expected++) {
        int64_t until = shoal_after(0.05);
        if (expected)
            shoal_store_expect(store, "never");
        expect(SHOAL_ABSENT, shoal_store_await(store, "never", until, &blob, SOON));
        assert_true(shoal_now() >= until && shoal_now() < until + INT64_C(5000000000));
    }
    expect(SHOAL_ABSENT, shoal_store_await(store, "never", shoal_now() - 1, &blob, SOON));
    put_text(here.keeper, "never", "say never"); /* it was expected, and not given up */
    succeed(shoal_store_await(store, "never", shoal_after(20), &blob, SOON));
    assert_int_equal(blob.size, 9);
    shoal_blob_release(&blob);
    shoal_store_expect(store, NULL);
    expect(SHOAL_BROKEN,
           shoal_store_await_framed(store, "never", SHOAL_KIND('t', 'e', 's', 't'), shoal_after(20), &blob, SOON));
    shoal_store_close(&store);
}

static void test_what_is_discarded_goes(void **state)
{
    int64_t deadline = shoal_after(20);
    int status = SHOAL_OK;
    (void)state;
    put_text(here.keeper, "litter", "x");
    while (status == SHOAL_OK && shoal_now() < deadline) { /* a discard may be lost */
        shoal_store *store = open_usual();
        shoal_blob blob = {0};
        succeed(shoal_store_discard(store, "litter", SOON));
        succeed(shoal_store_discard(store, "litter which is not there", SOON));
        shoal_store_close(&store);
        for (int i = 0; i < 20 && status == SHOAL_OK; i++) {
            status = shoal_store_get(here.keeper, "litter", &blob, SOON);
            shoal_blob_release(&blob);
        }
    }
    assert_int_equal(status, SHOAL_ABSENT);
}

/* Takes messages as they come, waiting for the queue between, and acknowledges each by a blob. */
static int role_consume(shoal_store *store, int index, const char *argument, FILE *out)
{
    uint32_t seen = 0;
    int times = 0, status = SHOAL_OK;
    char queue[64] = "";
    (void)index;
    (void)out;
    sscanf(argument, "%d %63s", &times, queue);
    for (int i = 0; i < times && status == SHOAL_OK;) {
        shoal_message message = {0};
        status = shoal_store_take(store, queue, 60, &message, SOON);
        if (status == SHOAL_ABSENT) {
            status = shoal_store_wait(store, queue, &seen, shoal_after(20));
            continue;
        }
        if (status == SHOAL_OK)
            status = shoal_store_finish(store, queue, &message, SOON);
        if (status == SHOAL_OK)
            status = shoal_store_put(store, "wait/pong", &i, sizeof i, NULL, NULL, SOON);
        i++;
        shoal_message_release(&message);
    }
    return status;
}

static void test_a_push_wakes_takers(void **state)
{
    (void)state;
    shoal_store *store = open_with(NULL);
    char argument[64];
    uint32_t seen = 0;
    int count = shoal_store_describe(store).wakes ? 50 : 4, status = SHOAL_OK;
    snprintf(argument, sizeof argument, "%d %s", count, use_queue("wait/queue"));
    succeed(shoal_store_remove(store, "wait/pong", SOON));
    race *race = race_start("consume", 1, here.shared, NULL, argument);
    for (int i = 0; i < count && status == SHOAL_OK; i++) {
        status = shoal_store_push(store, "wait/queue", "x", 1, SOON);
        if (status == SHOAL_OK)
            status = await_number(store, "wait/pong", "wait/pong", i, &seen);
    }
    race_join(race, NULL, NULL);
    succeed(status);
    shoal_store_close(&store);
}

#endif
