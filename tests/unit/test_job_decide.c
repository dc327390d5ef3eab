/* Who does what: job_assign on chosen and random histories, and job_decide over everything that can happen to a few
 * workers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "base/random.h"
#include "engine/store/job_decide.h"

/* ---- assigning --------------------------------------------------------------------------------------------------- */

static job_trailer members_of(const job_member *member, int64_t count)
{
    job_trailer trailer = {.members = count};
    assert_int_equal(base_alloc(&trailer.member, (size_t)count + 1, sizeof *member, "members"), SHOAL_OK);
    memcpy(trailer.member, member, (size_t)count * sizeof *member);
    return trailer;
}

static int64_t count_held(const job_trailer *trailer, int64_t slices, int64_t member)
{
    int64_t held = 0;
    for (int64_t s = 0; s < slices; s++)
        held += trailer->holder[s] == member;
    return held;
}

/* One round: the members may have changed; *trailer is replaced.  Returns how many slices changed hands. */
static int64_t next_round(job_trailer *trailer, const job_member *member, int64_t count, const job_tree *tree)
{
    static const uint64_t nobody[64];
    job_trailer next = members_of(member, count);
    int64_t moved = 0;
    assert_int_equal(job_assign(&next, trailer, nobody, tree), SHOAL_OK);
    assert_int_equal(next.pieces, tree->pieces);
    for (int64_t s = 0; s < tree->count[0]; s++) {
        uint64_t before =
            s < trailer->pieces && trailer->holder[s] >= 0 ? trailer->member[trailer->holder[s]].worker : 0;
        uint64_t now = next.holder[s] >= 0 ? next.member[next.holder[s]].worker : 0;
        moved += before && before != now;
    }
    job_trailer_release(trailer);
    *trailer = next;
    return moved;
}

static job_member plain(uint64_t worker)
{
    return (job_member){worker, 1, SHOAL_ROLE_ALL};
}

static void test_first_assignment_is_even_and_side_by_side(void **state)
{
    (void)state;
    for (int64_t slices = 1; slices <= 40; slices++)
        for (int64_t workers = 1; workers <= 12; workers++) {
            job_member member[12];
            job_tree tree;
            job_trailer trailer = {0};
            for (int64_t i = 0; i < workers; i++)
                member[i] = plain((uint64_t)i + 1);
            assert_int_equal(job_tree_choose(&tree, "auto", slices), SHOAL_OK);
            next_round(&trailer, member, workers, &tree);
            int64_t most = (slices + workers - 1) / workers, changes = 0, with_some = 0;
            for (int64_t i = 0; i < workers; i++) {
                assert_true(count_held(&trailer, slices, i) <= most);
                with_some += count_held(&trailer, slices, i) > 0;
            }
            for (int64_t s = 1; s < slices; s++)
                changes += trailer.holder[s] != trailer.holder[s - 1];
            assert_int_equal(with_some, slices < workers ? slices : workers);
            assert_true(changes <= 2 * with_some);
            assert_int_equal(trailer.holder[tree.pieces - 1], trailer.holder[0]);
            job_trailer_release(&trailer);
        }
}

static void test_slices_stay_where_they_are(void **state)
{
    (void)state;
    job_member member[3] = {plain(1), plain(2), plain(3)};
    job_tree tree;
    job_trailer trailer = {0};
    assert_int_equal(job_tree_choose(&tree, "two-level", 12), SHOAL_OK);
    next_round(&trailer, member, 3, &tree);
    for (int i = 0; i < 5; i++)
        assert_int_equal(next_round(&trailer, member, 3, &tree), 0);
    job_trailer_release(&trailer);
}

static void test_who_joins_gets_a_share_and_then_all_is_quiet(void **state)
{
    (void)state;
    job_member member[3] = {plain(1), plain(2), plain(3)};
    job_tree tree;
    job_trailer trailer = {0};
    assert_int_equal(job_tree_choose(&tree, "flat", 8), SHOAL_OK);
    next_round(&trailer, member, 1, &tree);
    assert_int_equal(next_round(&trailer, member, 2, &tree), 1); /* one a round */
    assert_int_equal(count_held(&trailer, 8, 1), 1);
    for (int i = 0; i < 3; i++)
        assert_int_equal(next_round(&trailer, member, 2, &tree), 1);
    assert_int_equal(count_held(&trailer, 8, 1), 4);
    assert_int_equal(next_round(&trailer, member, 2, &tree), 0);
    assert_true(next_round(&trailer, member, 3, &tree) > 0);
    for (int i = 0; i < 6; i++)
        next_round(&trailer, member, 3, &tree);
    assert_true(count_held(&trailer, 8, 2) >= 2);
    assert_int_equal(next_round(&trailer, member, 3, &tree), 0);
    job_trailer_release(&trailer);
}

static void test_slices_of_the_dead_are_taken_over_at_once(void **state)
{
    (void)state;
    job_member member[4] = {plain(1), plain(2), plain(3), plain(4)}, left[2] = {plain(4), plain(2)};
    job_tree tree;
    job_trailer trailer = {0};
    assert_int_equal(job_tree_choose(&tree, "flat", 8), SHOAL_OK);
    next_round(&trailer, member, 4, &tree);
    next_round(&trailer, left, 2, &tree);
    assert_int_equal(count_held(&trailer, 8, 0), 4);
    assert_int_equal(count_held(&trailer, 8, 1), 4);
    job_trailer_release(&trailer);
}

/* After round 0, of which nobody was told anything, and after a death: slices stay where their rows are. */
static void test_slices_stay_with_who_mapped_them(void **state)
{
    (void)state;
    const uint64_t maker[4] = {2, 1, 2, 1}, later[4] = {2, 3, 2, 3};
    job_member member[3] = {plain(1), plain(2), plain(3)}, left[2] = {plain(2), plain(3)};
    job_tree tree;
    job_trailer before = {0}, first = members_of(member, 2), second = members_of(left, 2);
    assert_int_equal(job_tree_choose(&tree, "flat", 4), SHOAL_OK);
    assert_int_equal(job_assign(&first, &before, maker, &tree), SHOAL_OK);
    for (int64_t s = 0; s < 4; s++)
        assert_int_equal(first.member[first.holder[s]].worker, maker[s]);
    assert_int_equal(job_assign(&second, &first, later, &tree), SHOAL_OK);
    for (int64_t s = 0; s < 4; s++)
        assert_int_equal(second.member[second.holder[s]].worker, later[s]);
    job_trailer_release(&first);
    job_trailer_release(&second);
}

/* Who was to map a slice keeps it, though another was quicker this time. */
static void test_who_is_late_once_keeps_its_slices(void **state)
{
    (void)state;
    const uint64_t maker[4] = {1, 1, 2, 2}, quicker[4] = {1, 1, 1, 1};
    job_member member[2] = {plain(1), plain(2)};
    job_tree tree;
    job_trailer before = {0}, first = members_of(member, 2), second = members_of(member, 2);
    assert_int_equal(job_tree_choose(&tree, "flat", 4), SHOAL_OK);
    assert_int_equal(job_assign(&first, &before, maker, &tree), SHOAL_OK);
    assert_int_equal(job_assign(&second, &first, quicker, &tree), SHOAL_OK);
    for (int64_t s = 0; s < 4; s++)
        assert_int_equal(second.holder[s], first.holder[s]);
    job_trailer_release(&first);
    job_trailer_release(&second);
}

static void test_slots_and_roles(void **state)
{
    (void)state;
    job_member member[4] = {
        {1, 1, SHOAL_ROLE_MAP}, {2, 3, SHOAL_ROLE_MAP}, {3, 1, SHOAL_ROLE_REDUCE}, {4, 1, SHOAL_ROLE_LAST}};
    job_tree tree;
    job_trailer trailer = {0};
    assert_int_equal(job_tree_choose(&tree, "two-level", 16), SHOAL_OK);
    next_round(&trailer, member, 4, &tree);
    assert_int_equal(count_held(&trailer, 16, 0), 4);
    assert_int_equal(count_held(&trailer, 16, 1), 12);
    for (int64_t piece = 16; piece < tree.pieces - 1; piece++)
        assert_int_equal(trailer.holder[piece], 2);
    assert_int_equal(trailer.holder[tree.pieces - 1], 3);
    /* Without anybody who may map, slices are nobody's. */
    next_round(&trailer, member + 2, 2, &tree);
    for (int64_t s = 0; s < 16; s++)
        assert_int_equal(trailer.holder[s], -1);
    job_trailer_release(&trailer);
}

/* Whatever comes and goes: every slice has a holder, and a while without change all have their share. */
static void test_random_comings_and_goings(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 300; seed++) {
        job_tree tree;
        job_trailer trailer = {0};
        int64_t slices = 1 + (int64_t)base_random_below(30, seed, BASE_FOR_FAULTS, 0, 0), count = 0;
        job_member member[10];
        assert_int_equal(job_tree_choose(&tree, "auto", slices), SHOAL_OK);
        for (uint64_t round = 0; round < 60; round++) {
            if (round < 20) {
                count = 0;
                for (uint64_t w = 1; w <= 8; w++)
                    if (base_random_below(2, seed, BASE_FOR_FAULTS, 1 + round / 3, (uint32_t)w))
                        member[count++] = plain(w);
                if (count == 0)
                    member[count++] = plain(1);
            }
            next_round(&trailer, member, count, &tree);
            for (int64_t piece = 0; piece < tree.pieces; piece++)
                assert_in_range(trailer.holder[piece], 0, count - 1);
        }
        int64_t most = (slices + count - 1) / count;
        for (int64_t i = 0; i < count; i++) {
            assert_true(count_held(&trailer, slices, i) <= most);
            assert_true(slices < count || count_held(&trailer, slices, i) > 0);
        }
        job_trailer_release(&trailer);
    }
}

/* ---- everything that can happen ---------------------------------------------------------------------------------- */

/* Workers of one round, as a state small enough to be searched: what each knows, what is stored, who is alive. */
enum { WORKERS = 3, PIECES_MOST = 8, STATES_MOST = 1 << 22 };

typedef struct world_state {
    unsigned char flag[WORKERS][PIECES_MOST];
    unsigned char stored[PIECES_MOST];
    unsigned char alive[WORKERS], late[WORKERS];
    unsigned char over; /* the next model is there */
    unsigned char deaths;
} world_state;

typedef struct search {
    job_tree tree;
    int workers, deaths_most;
    world_state *state;
    int *table; /* hash of states */
    int states, finished;
} search;

static uint64_t hash_state(const world_state *s)
{
    uint64_t hash = 1469598103934665603u;
    for (size_t i = 0; i < sizeof *s; i++)
        hash = (hash ^ ((const unsigned char *)s)[i]) * 1099511628211u;
    return hash ^ hash >> 29;
}

static void visit(search *all, const world_state *s)
{
    size_t at = hash_state(s) % (2 * STATES_MOST);
    for (; all->table[at]; at = (at + 1) % (2 * STATES_MOST))
        if (memcmp(&all->state[all->table[at] - 1], s, sizeof *s) == 0)
            return;
    assert_true(all->states < STATES_MOST);
    all->state[all->states++] = *s;
    all->table[at] = all->states;
}

static job_action decide(const search *all, const world_state *s, int worker)
{
    job_view view = {.tree = &all->tree,
                     .piece = s->flag[worker],
                     .roles = SHOAL_ROLE_ALL,
                     .worker = (uint64_t)worker + 1,
                     .round = 7,
                     .late = s->late[worker],
                     .flush = s->late[worker]};
    return job_decide(&view);
}

/* What job_round.c's look does: pieces that are stored, owners that are dead. */
static void look(const search *all, world_state *s, int worker, const int *owner)
{
    for (int64_t i = 0; i < all->tree.pieces; i++) {
        unsigned char *flag = &s->flag[worker][i];
        *flag &= (unsigned char)~(JOB_STORED | JOB_ORPHAN);
        if (s->stored[i])
            *flag |= JOB_STORED;
        if (owner[i] >= 0 && !s->alive[owner[i]])
            *flag |= JOB_ORPHAN;
    }
}

/* Children that are stored become known; true when all of them are here now. */
static bool fetch(const search *all, world_state *s, int worker, int64_t piece)
{
    int64_t first, end;
    bool complete = true;
    job_tree_children(&all->tree, piece, &first, &end);
    for (; first < end; first++) {
        unsigned char *flag = &s->flag[worker][first];
        if (s->stored[first])
            *flag |= JOB_HERE | JOB_STORED;
        else if (!(*flag & JOB_HERE))
            *flag &= (unsigned char)~JOB_STORED;
        complete &= (*flag & JOB_HERE) != 0;
    }
    return complete;
}

/* Does the action; true when anything changed. */
static bool act(const search *all, world_state *s, int worker, job_action action)
{
    world_state before = *s;
    switch (action.act) {
    case JOB_MAP:
        for (int64_t range = action.piece; range < all->tree.count[0]; range += all->tree.nodes[0])
            s->flag[worker][range] |= JOB_HERE;
        break;
    case JOB_PUT: /* of a slice, all ranges */
        for (int64_t range = action.piece; range == action.piece || range < all->tree.count[0];
             range += all->tree.nodes[0]) {
            assert_true(s->flag[worker][range] & JOB_HERE);
            s->stored[range] = 1;
            s->flag[worker][range] |= JOB_STORED;
        }
        break;
    case JOB_MERGE:
        if (fetch(all, s, worker, action.piece)) {
            s->flag[worker][action.piece] |= JOB_HERE;
            s->over = action.piece == all->tree.pieces - 1;
        }
        break;
    case JOB_FETCH: fetch(all, s, worker, action.piece); break;
    case JOB_WAIT: break;
    }
    return memcmp(&before, s, sizeof before) != 0;
}

/* From this state on, with no more deaths, looking and being late: the round must end, in few steps. */
static void must_end(const search *all, world_state s, const int *owner)
{
    for (int step = 0; step < 60 && !s.over; step++)
        for (int w = 0; w < all->workers && !s.over; w++) {
            if (!s.alive[w])
                continue;
            s.late[w] = 1;
            look(all, &s, w, owner);
            act(all, &s, w, decide(all, &s, w));
        }
    assert_true(s.over);
}

static void explore(const char *reduce, int64_t slices, int workers, const int *owner, int deaths_most)
{
    search all = {.workers = workers, .deaths_most = deaths_most};
    world_state start = {0};
    assert_int_equal(job_tree_choose(&all.tree, reduce, slices), SHOAL_OK);
    job_tree whole = all.tree;
    if (strncmp(reduce, "ranged", 6) == 0) /* "flat" where there are fewer than four */
        assert_true(job_tree_cut(&all.tree, &whole, 2));
    assert_true(all.tree.pieces <= PIECES_MOST);
    all.state = calloc(STATES_MOST, sizeof *all.state);
    all.table = calloc(2 * STATES_MOST, sizeof *all.table);
    assert_non_null(all.state);
    assert_non_null(all.table);
    for (int w = 0; w < workers; w++) {
        start.alive[w] = 1;
        for (int64_t i = 0; i < all.tree.pieces; i++)
            start.flag[w][i] = owner[i] == w ? JOB_MINE : 0;
    }
    visit(&all, &start);
    for (int i = 0; i < all.states; i++) {
        world_state from = all.state[i];
        int living = 0;
        if (from.over) {
            all.finished++;
            continue;
        }
        for (int w = 0; w < workers; w++) {
            if (!from.alive[w])
                continue;
            living++;
            world_state to = from;
            act(&all, &to, w, decide(&all, &to, w));
            visit(&all, &to);
            to = from;
            look(&all, &to, w, owner);
            visit(&all, &to);
            to.late[w] = 1;
            visit(&all, &to);
            if (from.deaths < deaths_most) {
                to = from;
                to.alive[w] = 0;
                to.deaths++;
                memset(to.flag[w], 0, sizeof to.flag[w]);
                to.late[w] = 0;
                visit(&all, &to);
            }
        }
        if (living > 0)
            must_end(&all, from, owner);
    }
    assert_true(all.finished > 0);
    assert_true(all.states > 100);
    free(all.state);
    free(all.table);
}

/* Two slices in two ranges: slices 0 and 1 are pieces 0 and 2, 1 and 3; the ranges of their sum 4 and 5, all of it
 * 6. */
static void test_every_round_in_ranges_ends(void **state)
{
    (void)state;
    explore("ranged", 2, 2, (const int[]){0, 1, 0, 1, 0, 1, 0}, 1);
    explore("ranged", 2, 2, (const int[]){0, 1, 0, 1, 1, 0, 1}, 1);
    explore("ranged", 2, 2, (const int[]){0, 0, 0, 0, 1, 1, -1}, 1);
    explore("ranged", 1, 2, (const int[]){0, 0, 1, 1, 0}, 1);
    explore("ranged", 1, 3, (const int[]){0, 0, 1, 2, 1}, 2);
}

static void test_every_round_ends(void **state)
{
    (void)state;
    explore("flat", 2, 2, (const int[]){0, 1, 0}, 1);
    explore("flat", 3, 2, (const int[]){0, 0, 1, 0}, 1);
    explore("flat", 3, 3, (const int[]){0, 1, 2, 1}, 2);
    explore("two-level", 4, 2, (const int[]){0, 0, 1, 1, 0, 1, 0}, 1);
    explore("two-level", 4, 2, (const int[]){0, 1, 0, 1, 1, 0, -1}, 1);
    explore("flat", 2, 2, (const int[]){-1, -1, -1}, 1); /* nobody was told anything */
}

/* Without trouble nobody makes another's piece, and a piece whose parent is one's own stays in memory. */
static void test_nothing_is_made_twice(void **state)
{
    (void)state;
    static const int owner[] = {0, 0, 1, 1, 0, 1, 0};
    search all = {.workers = 2};
    world_state s = {0};
    assert_int_equal(job_tree_choose(&all.tree, "two-level", 4), SHOAL_OK);
    for (int w = 0; w < 2; w++) {
        s.alive[w] = 1;
        for (int64_t i = 0; i < all.tree.pieces; i++)
            s.flag[w][i] = owner[i] == w ? JOB_MINE : 0;
    }
    for (int step = 0; step < 40 && !s.over; step++)
        for (int w = 0; w < 2; w++) {
            job_action action = decide(&all, &s, w);
            assert_false(action.rescue);
            act(&all, &s, w, action);
        }
    assert_true(s.over);
    for (int64_t i = 0; i < all.tree.pieces; i++)
        assert_int_equal(s.stored[i], i == 5); /* only the group that worker 1 merged for worker 0 */
}

/* Who has a piece only as a part of a sum can't put it, whatever the store has lost and however late it is; who has it
 * as it is does. */
static void test_what_was_fetched_is_never_put(void **state)
{
    (void)state;
    job_tree tree;
    assert_int_equal(job_tree_choose(&tree, "two-level", 4), SHOAL_OK); /* slices 0 to 3, groups 4 and 5, top 6 */
    unsigned char flag[7] = {JOB_HERE | JOB_FETCHED, JOB_HERE | JOB_FETCHED, JOB_HERE, 0, 0, JOB_MINE, JOB_MINE};
    job_view view = {.tree = &tree, .piece = flag, .roles = SHOAL_ROLE_ALL, .worker = 7, .round = 3};
    for (int slow = 0; slow < 4; slow++) {
        view.flush = slow & 1;
        view.late = slow & 2;
        flag[2] = JOB_HERE | JOB_STORED;
        assert_int_not_equal(job_decide(&view).act, JOB_PUT);
        flag[2] = JOB_HERE; /* its parent is this worker's own: only the slow show it */
        assert_int_equal(job_decide(&view).act == JOB_PUT, slow > 0);
        assert_true(slow == 0 || job_decide(&view).piece == 2);
    }
}

/* Where nobody puts anything any more, groups that lack nothing may be made by anyone, and slices may not. */
static void test_a_quiet_round_frees_groups(void **state)
{
    (void)state;
    job_tree tree;
    assert_int_equal(job_tree_choose(&tree, "two-level", 4), SHOAL_OK); /* slices 0 to 3, groups 4 and 5, top 6 */
    unsigned char flag[7] = {JOB_STORED, JOB_STORED, JOB_STORED, 0, 0, 0, 0};
    job_view view = {.tree = &tree, .piece = flag, .roles = SHOAL_ROLE_ALL, .worker = 7, .round = 0};
    assert_int_equal(job_decide(&view).act, JOB_WAIT);
    view.quiet = true;
    job_action action = job_decide(&view);
    assert_true(action.act == JOB_MERGE && action.piece == 4 && action.rescue);
    flag[4] = JOB_HERE | JOB_STORED; /* what is left is slice 3, which may take its maker long */
    assert_int_equal(job_decide(&view).act, JOB_WAIT);
    view.late = true;
    action = job_decide(&view);
    assert_true(action.act == JOB_MAP && action.piece == 3 && action.rescue);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_assignment_is_even_and_side_by_side),
        cmocka_unit_test(test_slices_stay_where_they_are),
        cmocka_unit_test(test_who_joins_gets_a_share_and_then_all_is_quiet),
        cmocka_unit_test(test_slices_of_the_dead_are_taken_over_at_once),
        cmocka_unit_test(test_slices_stay_with_who_mapped_them),
        cmocka_unit_test(test_who_is_late_once_keeps_its_slices),
        cmocka_unit_test(test_slots_and_roles),
        cmocka_unit_test(test_random_comings_and_goings),
        cmocka_unit_test(test_every_round_ends),
        cmocka_unit_test(test_every_round_in_ranges_ends),
        cmocka_unit_test(test_nothing_is_made_twice),
        cmocka_unit_test(test_what_was_fetched_is_never_put),
        cmocka_unit_test(test_a_quiet_round_frees_groups),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
