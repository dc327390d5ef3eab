/* Labels: threads
 * What ranks agree on: one status of all, whose sentence names who failed; what differs is found and laid at the right
 * door; cores are shared out.  And, first, that the ranks these tests run with are ranks. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <shoal/error.h>

#include "base/pool.h"
#include "engine/in_step.h"
#include "ranks_here.h"

enum { RANKS_MOST = 7 };

/* What each rank is given and what it gets. */
typedef struct scene {
    int given[RANKS_MOST];
    const char *words[RANKS_MOST];
    int status[RANKS_MOST];
    char message[RANKS_MOST][1200];
    engine_shares shares[RANKS_MOST];
    int64_t wrong; /* answers that were not what they should be, of all ranks; changed atomically */
} scene;

static void note(scene *of, bool right)
{
    __atomic_add_fetch(&of->wrong, !right, __ATOMIC_RELAXED);
}

static void expect_end(int size, void (*body)(shoal_ranks *, void *), scene *of)
{
    ranks_here_end end = ranks_here_run(size, body, of, NULL);
    if (end.aborted)
        fail_msg("%d ranks: rank %d ended all with %d: %s", size, end.rank, end.code, end.message);
    assert_int_equal(of->wrong, 0);
}

/* ---- the ranks of these tests ------------------------------------------------------------------------------------ */

static void use_all(shoal_ranks *ranks, void *context)
{
    scene *of = context;
    int n = ranks->size, me = ranks->rank;
    int64_t in[3] = {me, -me, 1}, out[3], all = (int64_t)n * (n - 1) / 2;
    ranks->sum(ranks, out, in, 3);
    note(of, out[0] == all && out[1] == -all && out[2] == n);
    ranks->max(ranks, in, in, 3);
    note(of, in[0] == n - 1 && in[1] == 0 && in[2] == 1);
    ranks->sum(ranks, NULL, NULL, 0);
    int each[RANKS_MOST];
    ranks->gather(ranks, each, &me, sizeof me);
    size_t some[RANKS_MOST], total = 0;
    char mine[RANKS_MOST], joined[RANKS_MOST * RANKS_MOST];
    for (int i = 0; i < n; i++) {
        note(of, each[i] == i);
        some[i] = (size_t)i; /* rank 0 has none */
        mine[i] = (char)('a' + me);
    }
    ranks->gather_some(ranks, joined, some, mine);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < i; k++)
            note(of, joined[total++] == 'a' + i);
    int from = 100 + me;
    ranks->share(ranks, &from, sizeof from, n - 1);
    note(of, from == 100 + n - 1);
}

static void test_ranks_answer(void **state)
{
    (void)state;
    for (int size = 1; size <= RANKS_MOST; size++) {
        scene of = {0};
        expect_end(size, use_all, &of);
        ranks_here_end end = ranks_here_run(size, use_all, &of, &(ranks_here_options){size - 1, 300, 0, 0});
        assert_false(end.aborted);
        assert_int_equal(end.calls, 6);
        assert_int_equal(of.wrong, 0);
    }
}

/* Two messages from every rank to every other, with a sum between. */
static void post_all(shoal_ranks *ranks, void *context)
{
    scene *of = context;
    int n = ranks->size, me = ranks->rank, sent[2] = {10 + me, 20 + me}, got[RANKS_MOST][2];
    int64_t between = me;
    note(of, ranks->poll(ranks)); /* of nothing */
    ranks->wait(ranks);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < 2; k++) {
            ranks->post_receive(ranks, &got[i][k], sizeof(int), i);
            ranks->post_send(ranks, &sent[k], sizeof(int), i);
        }
    ranks->sum(ranks, &between, &between, 1);
    if (me % 2)
        ranks->wait(ranks);
    else
        while (!ranks->poll(ranks))
            sched_yield();
    note(of, between == (int64_t)n * (n - 1) / 2);
    for (int i = 0; i < n; i++)
        note(of, got[i][0] == 10 + i && got[i][1] == 20 + i);
}

static void test_ranks_do_what_was_posted(void **state)
{
    (void)state;
    for (int size = 1; size <= RANKS_MOST; size++) {
        scene of = {0};
        expect_end(size, post_all, &of);
    }
}

static void raise_alarm(shoal_ranks *ranks, void *context)
{
    scene *of = context;
    int64_t none = 0;
    note(of, !ranks->alarmed(ranks));
    ranks->sum(ranks, &none, &none, 1);
    if (ranks->rank == 1) {
        ranks->alarm(ranks);
        ranks->post_send(ranks, &none, sizeof none, 0);
    } else if (ranks->rank == 0) { /* comes here when it was raised */
        ranks->post_receive(ranks, &none, sizeof none, 1);
    }
    ranks->wait(ranks);
    if (ranks->rank < 2)
        note(of, ranks->alarmed(ranks) == (ranks->rank == 0));
    ranks->sum(ranks, &none, &none, 1);
    note(of, !ranks->alarmed(ranks)); /* for the next time */
}

static void abort_one(shoal_ranks *ranks, void *context)
{
    scene *of = context;
    int64_t none = 0;
    if (ranks->rank == 1)
        ranks->abort(ranks, "I can't go on", 4);
    ranks->sum(ranks, &none, &none, 1);
    note(of, false); /* nobody comes here */
}

static void misuse(shoal_ranks *ranks, void *context)
{
    int64_t numbers[2] = {0};
    switch (((scene *)context)->given[ranks->rank]) {
    case 0: ranks->sum(ranks, numbers, numbers, 1); break;
    case 1: ranks->max(ranks, numbers, numbers, 1); break;
    case 2: ranks->sum(ranks, numbers, numbers, 2); break;
    case 3: break; /* returns while others wait */
    case 4:
        ranks->post_receive(ranks, numbers, 8, 0);
        ranks->wait(ranks);
        break;
    }
}

static void test_ranks_alarm_abort_and_never_hang(void **state)
{
    (void)state;
    scene of = {0};
    expect_end(3, raise_alarm, &of);
    ranks_here_end end = ranks_here_run(3, abort_one, &of, NULL);
    assert_true(end.aborted && end.rank == 1 && end.code == 4);
    assert_string_equal(end.message, "I can't go on");
    assert_int_equal(of.wrong, 0);
    for (int kind = 1; kind <= 4; kind++)
        for (int odd = 0; odd < 3; odd++) {
            scene bad = {0};
            bad.given[odd] = kind;
            end = ranks_here_run(3, misuse, &bad, NULL);
            assert_true(end.aborted && end.code == -1);
        }
    end = ranks_here_run(3, use_all, &of, &(ranks_here_options){.abort_call = 4, .abort_rank = 2});
    assert_true(end.aborted && end.rank == 2 && end.code == 9);
}

/* ---- agreeing ---------------------------------------------------------------------------------------------------- */

static void agree_all(shoal_ranks *ranks, void *context)
{
    scene *of = context;
    int me = ranks->rank, status = of->given[me];
    shoal_fail(SHOAL_USAGE, "an older failure of rank %d", me); /* which is nobody's business */
    if (status < 0)
        shoal_fail(status, "%s", of->words[me]);
    of->status[me] = engine_agree(ranks, status);
    if (of->status[me] < 0)
        snprintf(of->message[me], sizeof of->message[me], "%s", shoal_error());
}

/* Every rank must have come to this; `rank` -1: nobody is named. */
static void expect_agreed(scene *of, int size, int status, int rank, const char *words)
{
    char host[ENGINE_HOST_BYTES], whole[1200];
    engine_host(host);
    snprintf(whole, sizeof whole, "rank %d on %s: %s", rank, host, words);
    expect_end(size, agree_all, of);
    for (int i = 0; i < size; i++) {
        assert_int_equal(of->status[i], status);
        assert_string_equal(of->message[i], rank < 0 ? words : whole);
    }
}

static void test_all_are_fine(void **state)
{
    (void)state;
    for (int size = 1; size <= RANKS_MOST; size++) {
        scene of = {0};
        expect_agreed(&of, size, SHOAL_OK, -1, "");
    }
}

static void test_one_fails(void **state)
{
    (void)state;
    for (int size = 2; size <= RANKS_MOST; size++)
        for (int bad = 0; bad < size; bad++) {
            scene of = {0};
            of.given[bad] = SHOAL_SYSTEM;
            of.words[bad] = "x.npy: no such file";
            expect_agreed(&of, size, SHOAL_SYSTEM, bad, "x.npy: no such file");
        }
}

static void test_several_fail(void **state)
{
    (void)state;
    scene two = {.given = {0, 0, SHOAL_MEMORY, 0, SHOAL_INVALID}, .words = {"", "", "out of memory", "", "bad row"}};
    expect_agreed(&two, 5, SHOAL_MEMORY, 2, "out of memory");
    scene alike = {.given = {0, SHOAL_SYSTEM, SHOAL_SYSTEM}, .words = {"", "no such file", "no such file"}};
    expect_agreed(&alike, 3, SHOAL_SYSTEM, 1, "no such file"); /* rank 0 could, so it matters who could not */
    scene all = {.given = {SHOAL_SYSTEM, SHOAL_SYSTEM, SHOAL_SYSTEM}, .words = {"one", "two", "one"}};
    expect_agreed(&all, 3, SHOAL_SYSTEM, 0, "one");
}

static void test_all_fail_alike(void **state)
{
    (void)state;
    for (int size = 1; size <= RANKS_MOST; size++) {
        scene of = {0};
        for (int i = 0; i < size; i++) {
            of.given[i] = SHOAL_USAGE;
            of.words[i] = "-k must be at least 1";
        }
        expect_agreed(&of, size, SHOAL_USAGE, -1, "-k must be at least 1");
    }
}

/* A rank that was only stopped by another's alarm has nothing to report if that one has. */
static void test_the_real_failure_counts(void **state)
{
    (void)state;
    for (int size = 2; size <= RANKS_MOST; size++)
        for (int bad = 0; bad < size; bad++) {
            scene of = {0};
            for (int i = 0; i < size; i++) {
                of.given[i] = i == bad ? SHOAL_INVALID : SHOAL_STOPPED;
                of.words[i] = i == bad ? "row 7 is not a number" : "stopped";
            }
            expect_agreed(&of, size, SHOAL_INVALID, bad, "row 7 is not a number");
        }
    scene stopped = {.given = {0, SHOAL_STOPPED, SHOAL_STOPPED}, .words = {"", "stopped", "stopped"}};
    expect_agreed(&stopped, 3, SHOAL_STOPPED, 1, "stopped");
    scene all = {.given = {SHOAL_STOPPED, SHOAL_STOPPED}, .words = {"stopped", "stopped"}};
    expect_agreed(&all, 2, SHOAL_STOPPED, -1, "stopped");
}

static void test_long_messages_are_cut(void **state)
{
    (void)state;
    static char words[4000];
    memset(words, 'x', sizeof words - 1);
    scene of = {.given = {0, SHOAL_INVALID}, .words = {"", words}};
    expect_end(2, agree_all, &of);
    assert_int_equal(of.status[0], SHOAL_INVALID);
    assert_string_equal(of.message[0], of.message[1]);
    assert_true(strlen(of.message[0]) > 500);
    assert_non_null(strstr(of.message[0], "rank 1 on "));
}

static void follow(shoal_ranks *ranks, void *context)
{
    scene *of = context;
    int me = ranks->rank;
    if (of->given[me] < 0)
        shoal_fail(of->given[me], "%s", of->words[me]);
    of->status[me] = engine_follow_first(ranks, of->given[me]);
    if (of->status[me] < 0)
        snprintf(of->message[me], sizeof of->message[me], "%s", shoal_error());
}

static void test_rank_0_alone_decides(void **state)
{
    (void)state;
    for (int size = 1; size <= RANKS_MOST; size++) {
        scene bad = {.given = {SHOAL_SYSTEM, SHOAL_INVALID}, .words = {"disk full", "not asked"}};
        expect_end(size, follow, &bad);
        scene good = {.given = {0, SHOAL_INVALID}, .words = {"", "not asked"}};
        expect_end(size, follow, &good);
        for (int i = 0; i < size; i++) {
            assert_int_equal(bad.status[i], SHOAL_SYSTEM);
            assert_string_equal(bad.message[i], "disk full");
            assert_int_equal(good.status[i], SHOAL_OK);
        }
    }
}

static void must(shoal_ranks *ranks, void *context)
{
    scene *of = context;
    int me = ranks->rank;
    int64_t none = 0;
    engine_must(ranks, SHOAL_OK);
    engine_must(ranks, of->given[me] < 0 ? shoal_fail(of->given[me], "%s", of->words[me]) : SHOAL_OK);
    ranks->sum(ranks, &none, &none, 1);
    note(of, false);
}

static void test_what_must_be_ends_all(void **state)
{
    (void)state;
    scene of = {.given = {0, 0, SHOAL_MEMORY}, .words = {"", "", "out of memory"}};
    ranks_here_end end = ranks_here_run(3, must, &of, NULL);
    assert_true(end.aborted);
    assert_int_equal(end.rank, 2);
    assert_int_equal(end.code, 1);
    assert_string_equal(end.message, "out of memory");
    assert_int_equal(of.wrong, 0);
}

/* ---- comparing --------------------------------------------------------------------------------------------------- */

static void compare(shoal_ranks *ranks, void *context)
{
    scene *of = context;
    int me = ranks->rank;
    of->status[me] = engine_compare(ranks, of->words[me], strlen(of->words[me]), "hat");
    if (of->status[me] < 0)
        snprintf(of->message[me], sizeof of->message[me], "%s", shoal_error());
}

static void expect_odd(scene *of, int size, int odd, const char *than)
{
    char host[ENGINE_HOST_BYTES], whole[300];
    engine_host(host);
    snprintf(whole, sizeof whole, "rank %d on %s has another hat than %s", odd, host, than);
    expect_end(size, compare, of);
    for (int i = 0; i < size; i++) {
        assert_int_equal(of->status[i], odd < 0 ? SHOAL_OK : SHOAL_CONFLICT);
        assert_string_equal(of->message[i], odd < 0 ? "" : whole);
    }
}

static void test_what_differs_is_found(void **state)
{
    (void)state;
    for (int size = 1; size <= RANKS_MOST; size++) {
        scene same = {0};
        for (int i = 0; i < size; i++)
            same.words[i] = size == 4 ? "" : "felt";
        expect_odd(&same, size, -1, "");
        for (int odd = 0; size > 2 && odd < size; odd++) {
            scene of = same;
            of.words[odd] = size % 2 ? "straw" : "";
            if (size == 4)
                of.words[odd] = "straw";
            expect_odd(&of, size, odd, odd == 0 ? "the others" : "most others");
        }
    }
    scene two = {.words = {"felt", "straw"}};
    expect_odd(&two, 2, 1, "rank 0");
    scene halves = {.words = {"felt", "straw", "straw", "felt"}};
    expect_odd(&halves, 4, 1, "most others"); /* rank 0's half is as large as the other */
    scene each = {.words = {"a", "b", "c"}};
    expect_odd(&each, 3, 1, "most others");
}

/* ---- cores ------------------------------------------------------------------------------------------------------- */

static void pin(int core)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    sched_setaffinity(0, sizeof one, &one); /* of this thread alone */
}

/* given: threads asked for, or -1 - core to be pinned to. */
static void share_cores(shoal_ranks *ranks, void *context)
{
    scene *of = context;
    int me = ranks->rank, given = of->given[me];
    if (given < 0)
        pin(-1 - given);
    of->status[me] = engine_share_cores(&of->shares[me], ranks, given > 0 ? given : 0);
}

/* What must be true of any shares. */
static void expect_shares(scene *of, int size)
{
    int before = 0;
    expect_end(size, share_cores, of);
    for (int i = 0; i < size; i++) {
        engine_shares *mine = &of->shares[i];
        assert_int_equal(of->status[i], SHOAL_OK);
        assert_true(mine->threads >= 1);
        assert_int_equal(mine->before, before);
        assert_int_equal(mine->hosts, 1);
        assert_int_equal(mine->here, size);
        before += mine->threads;
    }
    for (int i = 0; i < size; i++)
        assert_int_equal(of->shares[i].all, before);
}

static void test_cores_are_shared_out(void **state)
{
    (void)state;
    int cores = base_cores();
    for (int size = 1; size <= RANKS_MOST; size++) {
        scene of = {0};
        int least = 1 << 30, most = 0;
        expect_shares(&of, size);
        for (int i = 0; i < size; i++) {
            least = of.shares[i].threads < least ? of.shares[i].threads : least;
            most = of.shares[i].threads > most ? of.shares[i].threads : most;
        }
        assert_true(most - least <= 1);
        assert_int_equal(of.shares[0].all, cores > size ? cores : size);
    }
}

static void test_threads_that_were_asked_for(void **state)
{
    (void)state;
    scene of = {.given = {3, 1, 5}};
    expect_shares(&of, 3);
    for (int i = 0; i < 3; i++)
        assert_int_equal(of.shares[i].threads, of.given[i]);
    assert_int_equal(of.shares[0].all, 9);
}

/* A launcher that gives each rank its own core has divided them already. */
static void test_ranks_with_a_core_each(void **state)
{
    (void)state;
    cpu_set_t may_use;
    int core[2], found = 0;
    assert_int_equal(sched_getaffinity(0, sizeof may_use, &may_use), 0);
    for (int i = 0; i < CPU_SETSIZE && found < 2; i++)
        if (CPU_ISSET(i, &may_use))
            core[found++] = i;
    if (found < 2)
        skip();
    scene of = {.given = {-1 - core[0], -1 - core[1], -1 - core[0], -1 - core[1]}};
    for (int size = 1; size <= 4; size++) {
        expect_shares(&of, size);
        for (int i = 0; i < size; i++)
            assert_int_equal(of.shares[i].threads, 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranks_answer),
        cmocka_unit_test(test_ranks_do_what_was_posted),
        cmocka_unit_test(test_ranks_alarm_abort_and_never_hang),
        cmocka_unit_test(test_all_are_fine),
        cmocka_unit_test(test_one_fails),
        cmocka_unit_test(test_several_fail),
        cmocka_unit_test(test_all_fail_alike),
        cmocka_unit_test(test_the_real_failure_counts),
        cmocka_unit_test(test_long_messages_are_cut),
        cmocka_unit_test(test_rank_0_alone_decides),
        cmocka_unit_test(test_what_must_be_ends_all),
        cmocka_unit_test(test_what_differs_is_found),
        cmocka_unit_test(test_cores_are_shared_out),
        cmocka_unit_test(test_threads_that_were_asked_for),
        cmocka_unit_test(test_ranks_with_a_core_each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
