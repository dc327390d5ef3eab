/* Ledgers: what a reservation costs, what may be changed, what a machine obeys, what a leader does next; as bytes and
 * in a store.  What happens when all of it is at once is tests/sim/test_sim_ledger.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <shoal/error.h>

#include "base/memory.h"
#include "control/ledger.h"
#include "control/ledger_lead.h"

static const unsigned char secret[LEDGER_SECRET_BYTES] = {7}, other_secret[LEDGER_SECRET_BYTES] = {8};

static ledger ledger_with(double budget)
{
    return (ledger){.currency = "USD", .budget = ledger_money_of(budget)};
}

static ledger_wish wish_of(uint64_t token, double price, int64_t allowed)
{
    return (ledger_wish){.token = token,
                         .maker = 1,
                         .cap = ledger_money_of(price),
                         .allowed = allowed,
                         .around = 30,
                         .made = 1000,
                         .pool = "here",
                         .job = "kmeans-1"};
}

static int add(ledger *book, uint64_t token, double price, int64_t allowed)
{
    const ledger_wish wish = wish_of(token, price, allowed);
    return ledger_add(book, &wish, token + 100);
}

static void test_money(void **state)
{
    (void)state;
    assert_int_equal(ledger_money_of(0.17), 170000000);
    assert_int_equal(ledger_money_of(-1), 0);
    assert_int_equal(ledger_money_of(1e30), INT64_MAX);
    int64_t hour = LEDGER_UNIT;
    assert_int_equal(ledger_cost(hour, 0, 0), hour / 60 + 1);       /* a minute at least, rounded up */
    assert_int_equal(ledger_cost(hour, 3600, 0), hour * 101 / 100); /* a clock that is 1% slow */
    assert_int_equal(ledger_cost(hour, 3600, 36), hour * 102 / 100);
    assert_int_equal(ledger_cost(INT64_MAX, INT64_MAX / 2, 0), INT64_MAX);
    assert_int_equal(ledger_times(hour, 1024), 1024 * hour);
    assert_int_equal(ledger_times(INT64_MAX, 8), INT64_MAX);
    for (int64_t money = 0; money < hour; money += hour / 37) {
        int64_t longest = ledger_affords(money, hour, 30);
        assert_true(longest == 0 || ledger_cost(hour, longest, 30) <= money);
        assert_true(ledger_cost(hour, longest + 2, 30) > money);
    }
}

static void test_the_budget_holds(void **state)
{
    (void)state;
    ledger book = ledger_with(1);
    assert_int_equal(add(&book, 1, 0.5, 3000), SHOAL_OK);
    int64_t committed = ledger_committed(&book);
    assert_int_equal(add(&book, 1, 0.5, 3000), SHOAL_OK); /* again is the same */
    assert_int_equal(ledger_committed(&book), committed);
    assert_int_equal(add(&book, 2, 0.5, 5000), SHOAL_DENIED);
    assert_non_null(strstr(shoal_error(), "the budget of 1.0000 USD has "));
    assert_int_equal(add(&book, 2, 0.5, 3000), SHOAL_OK);
    assert_int_equal(ledger_extend(&book, 1, 5000, 50), SHOAL_DENIED);
    assert_int_equal(ledger_committed(&book), 2 * committed);
    /* Asked for is not yet given back. */
    assert_int_equal(ledger_ask(&book, 2, 100, 51), SHOAL_OK);
    assert_int_equal(ledger_committed(&book), 2 * committed);
    assert_int_equal(ledger_yield(&book, 2, 50, 100, 52), SHOAL_CONFLICT);
    assert_int_equal(ledger_yield(&book, 2, 51, 100, 52), SHOAL_OK);
    assert_true(ledger_committed(&book) < 2 * committed);
    assert_int_equal(ledger_extend(&book, 1, 5000, 53), SHOAL_OK);
    assert_int_equal(ledger_end(&book, 2, 51, 1), SHOAL_CONFLICT);
    assert_int_equal(ledger_end(&book, 2, 52, 1000), SHOAL_OK);
    assert_int_equal(ledger_end(&book, 2, 52, 1000), SHOAL_OK);
    assert_int_equal(book.spent, 1000);
    assert_int_equal(ledger_extend(&book, 2, 1, 54), SHOAL_ABSENT);
    assert_int_equal(ledger_set_budget(&book, 10), SHOAL_OK);
    assert_int_equal(ledger_left(&book), 0);
    assert_int_equal(add(&book, 3, 0.01, 0), SHOAL_DENIED);
    assert_int_equal(add(&book, 0, 0.01, 0), SHOAL_USAGE);
    ledger_release(&book);
}

static void test_a_machine_obeys(void **state)
{
    const int64_t second = 1000000000;
    (void)state;
    ledger book = ledger_with(1);
    ledger_sight sight = {.allowed = 100};
    assert_int_equal(ledger_obey(&sight, &book, 1, 0, 0, 10), -1);
    assert_int_equal(add(&book, 1, 0.1, 100), SHOAL_OK);
    assert_int_equal(ledger_obey(&sight, &book, 1, 1, second, 10), 100);
    assert_int_equal(ledger_extend(&book, 1, 200, 5), SHOAL_OK);
    assert_int_equal(ledger_obey(&sight, &book, 1, 1, 2 * second, 10), 100);
    assert_int_equal(ledger_obey(&sight, &book, 1, 1, 11 * second, 10), 100);
    assert_int_equal(ledger_obey(&sight, &book, 1, 1, 12 * second, 10), 200);
    assert_false(ledger_owes(&sight, &book, 1));
    assert_int_equal(ledger_ask(&book, 1, 50, 6), SHOAL_OK); /* at once, but what is used is used */
    assert_int_equal(ledger_obey(&sight, &book, 1, 70, 13 * second, 10), 70);
    assert_true(ledger_owes(&sight, &book, 1));
    assert_int_equal(ledger_yield(&book, 1, sight.change, 70, 7), SHOAL_OK);
    assert_false(ledger_owes(&sight, &book, 1));
    assert_int_equal(ledger_obey(&sight, &book, 1, 71, 14 * second, 10), 70);
    ledger_release(&book);
}

static void test_bytes(void **state)
{
    void *bytes = NULL;
    size_t size = 0;
    ledger book = ledger_with(3), back;
    (void)state;
    assert_int_equal(add(&book, 1, 0.1, 100), SHOAL_OK);
    assert_int_equal(add(&book, 2, 0.2, 200), SHOAL_OK);
    assert_int_equal(ledger_note(&book, 2, "i-0abc", 9), SHOAL_OK);
    book.entry[0].witnessed = 1234;
    assert_int_equal(ledger_encode(&bytes, &size, &book, "a/ledger", secret), SHOAL_OK);
    assert_int_equal(ledger_decode(&back, bytes, size, "a/ledger", secret), SHOAL_OK);
    assert_int_equal(back.count, 2);
    assert_int_equal(ledger_committed(&back), ledger_committed(&book));
    assert_string_equal(ledger_find(&back, 2)->machine, "i-0abc");
    assert_int_equal(ledger_find(&back, 2)->state, LEDGER_STARTED);
    assert_int_equal(ledger_find(&back, 1)->witnessed, 1234);
    ledger_release(&back);
    assert_int_equal(ledger_decode(&back, bytes, size, "b/ledger", secret), SHOAL_BROKEN);
    assert_int_equal(ledger_decode(&back, bytes, size, "a/ledger", other_secret), SHOAL_BROKEN);
    for (size_t i = 0; i < size; i++) {
        ((unsigned char *)bytes)[i] ^= 1;
        assert_int_equal(ledger_decode(&back, bytes, size, "a/ledger", secret), SHOAL_BROKEN);
        ((unsigned char *)bytes)[i] ^= 1;
        assert_int_equal(ledger_decode(&back, bytes, i, "a/ledger", secret), SHOAL_BROKEN);
    }
    base_free(&bytes);
    ledger_release(&book);
}

static int change_nothing(void *context, ledger *self, uint64_t fresh)
{
    (void)self;
    (void)fresh;
    return *(int *)context;
}

static void test_in_a_store(void **state)
{
    shoal_store *store = NULL;
    shoal_blob old = {0};
    ledger read;
    int failure = SHOAL_DENIED;
    int64_t soon = shoal_after(20);
    (void)state;
    assert_int_equal(shoal_store_open(&store, "mem:test_ledger", &(shoal_store_options){.create = true}, soon), 0);
    ledger_book one = {.store = store, .key = "ledger", .secret = {7}}, two = one,
                thief = {.store = store, .key = "ledger"};
    assert_int_equal(ledger_create(&one, "EUROS", 1, soon), SHOAL_USAGE);
    assert_int_equal(ledger_create(&one, "EUR", LEDGER_UNIT, soon), SHOAL_OK);
    assert_int_equal(ledger_create(&two, "EUR", LEDGER_UNIT, soon), SHOAL_CONFLICT);
    assert_int_equal(shoal_store_get(store, "ledger", &old, soon), SHOAL_OK);
    const ledger_wish wish[] = {wish_of(1, 0.5, 3000), wish_of(2, 0.3, 3000)}, more = wish_of(3, 0.9, 3000);
    assert_int_equal(ledger_reserve(&one, wish, 2, soon), SHOAL_OK);
    assert_int_equal(ledger_reserve(&two, &more, 1, soon), SHOAL_DENIED);
    assert_int_equal(ledger_change(&two, change_nothing, &failure, soon), SHOAL_DENIED);
    assert_int_equal(ledger_read(&read, &two, soon), SHOAL_OK);
    assert_int_equal(read.count, 2);
    assert_int_equal(read.serial, 2);
    ledger_release(&read);
    assert_int_equal(ledger_read(&read, &thief, soon), SHOAL_BROKEN);
    assert_int_equal(shoal_store_put(store, "ledger", old.data, old.size, NULL, NULL, soon), SHOAL_OK);
    assert_int_equal(ledger_read(&read, &two, soon), SHOAL_BROKEN);
    assert_non_null(strstr(shoal_error(), "somebody put back an older ledger"));
    two.allowance = 5;
    assert_int_equal(ledger_read(&read, &two, soon), SHOAL_OK);
    ledger_release(&read);
    shoal_blob_release(&old);
    shoal_store_close(&store);
}

/* ---- leading ----------------------------------------------------------------------------------------------------- */

static const ledger_terms terms = {
    .settle = 10, .signature = 300, .lag = 60, .shown = 3600, .clocks = 20, .patience = 120};

/* The only step at that second, with that machine listed, or none: its act, or -1 for no step. */
static int step_at(ledger_lead *lead, ledger_step *step, const ledger *book, int64_t second,
                   const ledger_machine *machine)
{
    ledger_step steps[4];
    int64_t count = 0;
    const ledger_listing listing = {
        .machine = machine, .count = machine ? 1 : 0, .begun = second * 1000000000, .wall = 1000 + second};
    assert_int_equal(ledger_lead_next(lead, steps, 4, &count, book, &listing), SHOAL_OK);
    assert_true(count <= 1);
    *step = steps[0];
    return count ? (int)steps[0].act : -1;
}

static void test_a_start(void **state)
{
    ledger book = ledger_with(1);
    ledger_lead *mine = NULL, *other = NULL;
    ledger_step step;
    ledger_machine machine = {.name = "i-1", .token = 5, .billed = 4};
    (void)state;
    assert_int_equal(ledger_lead_new(&mine, 1, &terms), SHOAL_OK);
    assert_int_equal(ledger_lead_new(&other, 2, &terms), SHOAL_OK);
    assert_int_equal(add(&book, 5, 0.1, 100), SHOAL_OK);
    assert_int_equal(step_at(mine, &step, &book, 0, NULL), -1);
    assert_int_equal(step_at(mine, &step, &book, 9, NULL), -1);
    assert_int_equal(step_at(mine, &step, &book, 10, NULL), LEDGER_START);
    assert_int_equal(step_at(other, &step, &book, 10, NULL), -1);
    assert_int_equal(step_at(other, &step, &book, 129, NULL), -1);
    assert_int_equal(step_at(other, &step, &book, 130, NULL), LEDGER_REVOKE);
    assert_int_equal(ledger_lead_sent(mine, 5), SHOAL_OK);
    assert_int_equal(step_at(mine, &step, &book, 12, NULL), LEDGER_START); /* again, under its token */
    assert_int_equal(step_at(mine, &step, &book, 12, &machine), LEDGER_NOTED);
    assert_int_equal(ledger_note(&book, 5, "i-1", 77), SHOAL_OK);
    assert_int_equal(step_at(mine, &step, &book, 13, &machine), -1);
    machine.billed = 100 * 1.01 + 30 + 61; /* longer than it may */
    assert_int_equal(step_at(mine, &step, &book, 14, &machine), LEDGER_KILL);
    machine.ended = true;
    machine.billed = 90;
    assert_int_equal(step_at(mine, &step, &book, 15, &machine), LEDGER_ENDED);
    assert_int_equal(step.cost, ledger_money_of(0.1 * 90 / 3600));
    machine.billed = -1;
    assert_int_equal(step_at(mine, &step, &book, 15, &machine), LEDGER_ENDED);
    assert_int_equal(step.cost, ledger_committed(&book));
    assert_int_equal(step_at(mine, &step, &book, 72, NULL), -1);
    assert_int_equal(step_at(mine, &step, &book, 73, NULL), LEDGER_ENDED); /* gone even from the listing */
    assert_int_equal(step.cost, ledger_committed(&book));
    machine = (ledger_machine){.name = "i-2", .token = 99};
    assert_int_equal(ledger_end(&book, 5, 77, 0), SHOAL_OK);
    assert_int_equal(step_at(mine, &step, &book, 80, &machine), LEDGER_KILL); /* no reservation is for it */
    assert_string_equal(step.machine, "i-2");
    ledger_lead_free(&mine);
    ledger_lead_free(&other);
    ledger_release(&book);
}

static void test_a_start_that_is_not_answered(void **state)
{
    ledger book = ledger_with(1);
    ledger_lead *mine = NULL, *other = NULL;
    ledger_step step;
    (void)state;
    assert_int_equal(ledger_lead_new(&mine, 1, &terms), SHOAL_OK);
    assert_int_equal(ledger_lead_new(&other, 2, &terms), SHOAL_OK);
    assert_int_equal(add(&book, 5, 0.1, 100), SHOAL_OK);
    assert_int_equal(step_at(mine, &step, &book, 0, NULL), -1);
    assert_int_equal(ledger_lead_sent(mine, 5), SHOAL_OK);
    assert_int_equal(ledger_lead_sent(mine, 5), SHOAL_OK);
    ledger_lead_answered(mine, 5, false); /* one of two: the other may have been done */
    assert_int_equal(step_at(mine, &step, &book, 119, NULL), LEDGER_START);
    assert_int_equal(step_at(mine, &step, &book, 120, NULL), LEDGER_REVOKE);
    assert_int_equal(ledger_revoke(&book, 5, 78), SHOAL_OK);
    assert_int_equal(step_at(mine, &step, &book, 130, NULL), -1);
    assert_int_equal(step_at(mine, &step, &book, 130 + 369, NULL), -1);
    assert_int_equal(step_at(mine, &step, &book, 130 + 370, NULL), LEDGER_ENDED);
    assert_int_equal(step.cost, 0);
    /* Long after it was made its machine may have come, ended and left the listing. */
    assert_int_equal(step_at(other, &step, &book, 5000, NULL), -1);
    assert_int_equal(step_at(other, &step, &book, 5370, NULL), LEDGER_ENDED);
    assert_int_equal(step.cost, ledger_committed(&book));
    ledger_lead_answered(mine, 5, false); /* now it is certain */
    assert_int_equal(step_at(mine, &step, &book, 5371, NULL), LEDGER_ENDED);
    assert_int_equal(step.cost, 0);
    ledger_lead_free(&mine);
    ledger_lead_free(&other);
    ledger_release(&book);
}

/* Commands are short: what a reservation waits for goes on while no process looks. */
static void test_a_new_process_need_not_wait_again(void **state)
{
    ledger book = ledger_with(1);
    ledger_lead *lead = NULL;
    ledger_step step;
    (void)state;
    assert_int_equal(add(&book, 5, 0.1, 100), SHOAL_OK);
    for (int64_t second = 139; second <= 140; second++) { /* whoever made it is gone */
        assert_int_equal(ledger_lead_new(&lead, 2, &terms), SHOAL_OK);
        assert_int_equal(step_at(lead, &step, &book, second, NULL), second < 140 ? -1 : LEDGER_REVOKE);
        ledger_lead_free(&lead);
    }
    assert_false(ledger_lacks_witness(&book));
    assert_int_equal(ledger_revoke(&book, 5, 78), SHOAL_OK);
    assert_true(ledger_lacks_witness(&book));
    ledger_witness(&book, 1000 + 150);
    ledger_witness(&book, 1000 + 160); /* the first one counts */
    assert_false(ledger_lacks_witness(&book));
    for (int64_t second = 539; second <= 540; second++) { /* 370, and 20 that clocks may differ by */
        assert_int_equal(ledger_lead_new(&lead, 2, &terms), SHOAL_OK);
        assert_int_equal(step_at(lead, &step, &book, second, NULL), second < 540 ? -1 : LEDGER_ENDED);
        ledger_lead_free(&lead);
    }
    assert_int_equal(step.cost, 0);
    assert_int_equal(ledger_note(&book, 5, "i-1", 79), SHOAL_OK); /* the next day */
    assert_true(ledger_lacks_witness(&book));
    ledger_witness(&book, 1000 + 600);
    assert_int_equal(ledger_lead_new(&lead, 2, &terms), SHOAL_OK);
    assert_int_equal(step_at(lead, &step, &book, 679, NULL), -1);
    ledger_lead_free(&lead);
    assert_int_equal(ledger_lead_new(&lead, 2, &terms), SHOAL_OK);
    assert_int_equal(step_at(lead, &step, &book, 86400, NULL), LEDGER_ENDED);
    assert_int_equal(step.cost, ledger_committed(&book));
    ledger_lead_free(&lead);
    ledger_release(&book);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_money),
                                       cmocka_unit_test(test_the_budget_holds),
                                       cmocka_unit_test(test_a_machine_obeys),
                                       cmocka_unit_test(test_bytes),
                                       cmocka_unit_test(test_in_a_store),
                                       cmocka_unit_test(test_a_start),
                                       cmocka_unit_test(test_a_start_that_is_not_answered),
                                       cmocka_unit_test(test_a_new_process_need_not_wait_again)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
