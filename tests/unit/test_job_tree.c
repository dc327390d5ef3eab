/* Trees of reduction: for every shape and every number of slices, each slice is below exactly one piece of every level,
 * children and parents agree, and what is refused is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <shoal/error.h>

#include "engine/store/job_tree.h"

static job_tree choose(const char *reduce, int64_t slices)
{
    job_tree tree;
    memset(&tree, 0x55, sizeof tree);
    if (job_tree_choose(&tree, reduce, slices) < 0)
        fail_msg("%s of %lld: %s", reduce ? reduce : "auto", (long long)slices, shoal_error());
    return tree;
}

/* The pieces of a level cover the slices once, in order. */
static void check_level(const job_tree *tree, int level, int64_t slices)
{
    int64_t next = 0;
    for (int64_t i = 0; i < tree->count[level]; i++) {
        int64_t first, end, piece = tree->first[level] + i;
        assert_int_equal(job_tree_level(tree, piece), level);
        job_tree_slices(tree, piece, &first, &end);
        assert_int_equal(first, next);
        assert_true(end > first);
        next = end;
    }
    assert_int_equal(next, slices);
}

static void check_links(const job_tree *tree)
{
    int64_t first, end, children = 0;
    for (int64_t piece = 0; piece < tree->pieces; piece++) {
        job_tree_children(tree, piece, &first, &end);
        children += end - first;
        assert_int_equal(end > first, job_tree_level(tree, piece) > 0);
        for (int64_t child = first; child < end; child++) {
            assert_int_equal(job_tree_parent(tree, child), piece);
            assert_int_equal(job_tree_level(tree, child) + 1, job_tree_level(tree, piece));
        }
    }
    assert_int_equal(children, tree->pieces - 1); /* every piece but the top is someone's child, once */
    assert_int_equal(job_tree_parent(tree, tree->pieces - 1), -1);
}

static void check(const job_tree *tree, int64_t slices)
{
    job_tree again;
    assert_in_range(tree->levels, 2, JOB_LEVELS_MOST);
    assert_int_equal(tree->count[0], slices);
    assert_int_equal(tree->first[0], 0);
    assert_int_equal(tree->count[tree->levels - 1], 1);
    assert_int_equal(tree->first[tree->levels - 1], tree->pieces - 1);
    for (int level = 0; level < tree->levels; level++)
        check_level(tree, level, slices);
    check_links(tree);
    assert_true(job_tree_make(&again, slices, tree->levels, tree->fan));
    assert_memory_equal(&again, tree, sizeof again);
}

static void all_shapes(void **state)
{
    (void)state;
    static const char *const shapes[] = {
        NULL, "auto", "flat", "two-level", "tree:2", "tree:3", "tree:7", "tree:16", "tree:99999999999999999999"};
    for (int64_t slices = 1; slices <= 200; slices++)
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
            job_tree tree = choose(shapes[i], slices);
            check(&tree, slices);
        }
    job_tree tree = choose("tree:2", 65536);
    assert_int_equal(tree.levels, 17);
    check(&tree, 65536);
    tree = choose("auto", 65536);
    assert_int_equal(tree.count[1], 256);
}

static void what_each_is(void **state)
{
    (void)state;
    assert_int_equal(choose("flat", 200).levels, 2);
    assert_int_equal(choose("flat", 1).levels, 2);
    assert_int_equal(choose("two-level", 1).levels, 2);
    assert_int_equal(choose("two-level", 3).levels, 2);
    assert_int_equal(choose("two-level", 4).levels, 3);
    assert_int_equal(choose("auto", 16).levels, 2);
    assert_int_equal(choose("auto", 17).levels, 3);
    assert_int_equal(choose(NULL, 17).levels, 3);
    assert_int_equal(choose("tree:4", 4).levels, 2);
    assert_int_equal(choose("tree:4", 5).levels, 3);
    assert_int_equal(choose("tree:4", 17).levels, 4);
    for (int64_t slices = 4; slices <= 2000; slices++) { /* about as many groups as a group has slices */
        job_tree tree = choose("two-level", slices);
        assert_true(tree.fan[0] * tree.fan[0] <= slices + 2 * tree.fan[0]);
        assert_true(tree.count[1] * tree.count[1] <= slices + 2 * tree.count[1]);
    }
}

/* Each range has a tree of its own over all slices, and their tops make the whole; who merges what is numbered as
 * without ranges. */
static void check_cut(const job_tree *whole, const job_tree *cut, int64_t ranges)
{
    int64_t first, end;
    assert_int_equal(cut->ranges, ranges);
    assert_int_equal(cut->pieces, whole->pieces * ranges + 1);
    check_links(cut);
    job_tree_slices(cut, cut->pieces - 1, &first, &end);
    assert_int_equal(end - first, whole->count[0]);
    for (int64_t piece = 0; piece + 1 < cut->pieces; piece++) {
        int level = job_tree_level(cut, piece);
        int64_t node = job_tree_node(cut, piece), alike = whole->first[level] + node, from, to;
        int64_t parent = job_tree_parent(cut, piece);
        assert_int_equal(piece, cut->first[level] + job_tree_range(cut, piece) * whole->count[level] + node);
        job_tree_slices(cut, piece, &first, &end);
        job_tree_slices(whole, alike, &from, &to);
        assert_int_equal(first, from);
        assert_int_equal(end, to);
        if (level > 0)
            assert_int_equal(job_tree_sum(cut, piece), job_tree_sum(whole, alike));
        if (parent + 1 < cut->pieces)
            assert_int_equal(job_tree_range(cut, parent), job_tree_range(cut, piece));
    }
    assert_int_equal(job_tree_sums(cut), job_tree_sums(whole) + 1);
    for (int64_t unit = 0, before = -1; unit < job_tree_units(cut); unit++) {
        int64_t piece = job_tree_of_unit(cut, unit);
        assert_true(piece > before);
        before = piece;
        assert_true(!job_tree_is_slice(cut, piece) || job_tree_range(cut, piece) == 0);
    }
}

static void trees_in_ranges(void **state)
{
    (void)state;
    static const char *const shapes[] = {"flat", "two-level", "tree:2"};
    job_tree tree, cut;
    int64_t bytes;
    for (int64_t slices = 1; slices <= 40; slices++)
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
            for (int64_t ranges = 2; ranges < 7; ranges++) {
                tree = choose(shapes[i], slices);
                assert_true(job_tree_cut(&cut, &tree, ranges));
                check_cut(&tree, &cut, ranges);
            }
    tree = choose("ranged", 106); /* groups of ten */
    assert_true(job_tree_choose_ranges(&cut, &bytes, "ranged", &tree));
    assert_int_equal(cut.ranges, 10);
    assert_int_equal(bytes, 65536);
    assert_true(job_tree_choose_ranges(&cut, &bytes, "ranged:3", &tree));
    assert_int_equal(cut.ranges, 3);
    assert_int_equal(bytes, 1);
    assert_true(job_tree_choose_ranges(&cut, &bytes, "two-level", &tree));
    assert_int_equal(cut.ranges, 0);
    tree = choose("ranged", 1); /* there is nothing to share */
    assert_true(job_tree_choose_ranges(&cut, &bytes, "ranged", &tree));
    assert_int_equal(cut.ranges, 0);
    tree = choose("tree:2", 65536);
    assert_false(job_tree_cut(&cut, &tree, 100));
    assert_false(job_tree_cut(&cut, &tree, 1));
}

static void expect_refusal(const char *reduce, int64_t slices, const char *words)
{
    job_tree tree;
    assert_int_equal(job_tree_choose(&tree, reduce, slices), SHOAL_USAGE);
    if (!strstr(shoal_error(), words))
        fail_msg("\"%s\" lacks \"%s\"", shoal_error(), words);
}

static void refusals(void **state)
{
    (void)state;
    static const char *const others[] = {"",        "Flat",     "flat ",    "two",        "tree",      "three",
                                         "ranged:", "ranged:1", "ranged:0", "ranged:257", "ranged: 2", "rangedx"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        expect_refusal(others[i], 9, "reduce must be auto, flat, two-level, tree:F or ranged, not '");
    static const char *const fans[] = {"tree:",   "tree:0",  "tree:1",  "tree:-2",
                                       "tree:2x", "tree: 2", "tree:+2", "tree:00000001"};
    for (size_t i = 0; i < sizeof fans / sizeof *fans; i++)
        expect_refusal(fans[i], 9, "a whole number of at least 2");
    expect_refusal("flat", 0, "slices must be 1 to 65536");
    expect_refusal("flat", -1, "slices must be 1 to 65536");
    expect_refusal("flat", INT64_MAX, "slices must be 1 to 65536");
}

static void fans_that_make_no_tree(void **state)
{
    (void)state;
    static const struct {
        int64_t slices;
        int levels;
        int64_t fan[4];
        bool good;
    } cases[] = {
        {1, 2, {1}, true},       {1, 2, {2}, false},       {1, 3, {1, 1}, false},
        {1, 1, {0}, false},      {5, 2, {5}, true},        {5, 2, {4}, false},
        {5, 2, {6}, false},      {5, 3, {2, 3}, true},     {5, 3, {2, 2}, false},
        {5, 3, {1, 5}, false},   {5, 3, {5, 1}, false},    {5, 3, {2, 4}, false},
        {5, 4, {2, 2, 2}, true}, {5, 4, {2, 3, 1}, false}, {5, 2, {-5}, false},
        {5, 2, {0}, false},      {0, 2, {1}, false},       {INT64_MAX, 2, {INT64_MAX}, false},
        {5, 21, {2, 2}, false},  {5, 0, {5}, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        job_tree tree;
        if (job_tree_make(&tree, cases[i].slices, cases[i].levels, cases[i].fan) != cases[i].good)
            fail_msg("case %zu", i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_shapes), cmocka_unit_test(what_each_is),           cmocka_unit_test(trees_in_ranges),
        cmocka_unit_test(refusals),   cmocka_unit_test(fans_that_make_no_tree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
