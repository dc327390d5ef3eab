/* Names of a job's blobs: as documented, different for different things, sorted as numbers are, and read back only as
 * they are written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "engine/store/job_keys.h"

static job_tree tree_of(const char *reduce, int64_t slices)
{
    job_tree tree;
    assert_int_equal(job_tree_choose(&tree, reduce, slices), SHOAL_OK);
    return tree;
}

static void names(void **state)
{
    (void)state;
    job_tree tree = tree_of("two-level", 9); /* 3 groups of 3: slices 0 to 8, groups 9 to 11, top 12 */
    assert_string_equal(job_key_of("a-1", "spec").text, "jobs/a-1/spec");
    assert_string_equal(job_key_open("a-1").text, "open/a-1");
    assert_string_equal(job_key_gone("a-1").text, "gone/a-1");
    assert_string_equal(job_key_data("a", 17).text, "jobs/a/data/000017");
    assert_string_equal(job_key_weights("a", 17).text, "jobs/a/weights/000017");
    assert_string_equal(job_key_model("a", 3).text, "jobs/a/round/00000003/model");
    assert_string_equal(job_key_kept("a", 3).text, "jobs/a/round/00000003/kept");
    assert_string_equal(job_key_round("a", 3).text, "jobs/a/round/00000003/");
    assert_string_equal(job_key_piece("a", 3, &tree, 7).text, "jobs/a/round/00000003/00/000002/000007");
    assert_string_equal(job_key_piece("a", 3, &tree, 10).text, "jobs/a/round/00000003/01/000000/000001");
    assert_string_equal(job_key_piece("a", 3, &tree, 12).text, "jobs/a/round/00000003/02/000000/000000");
    assert_string_equal(job_key_children("a", 3, &tree, 11).text, "jobs/a/round/00000003/00/000002/");
    assert_string_equal(job_key_children("a", 3, &tree, 12).text, "jobs/a/round/00000003/01/000000/");
    assert_string_equal(job_key_worker("a", 0xabc).text, "jobs/a/worker/0000000000000abc");
    assert_string_equal(job_key_left("a", UINT64_MAX).text, "jobs/a/left/ffffffffffffffff");
}

static void names_of_ranges(void **state)
{
    (void)state;
    job_tree whole = tree_of("two-level", 9), tree; /* slices 0 to 17, groups 18 to 23, tops 24 and 25, all of it 26 */
    assert_true(job_tree_cut(&tree, &whole, 2));
    assert_string_equal(job_key_piece("a", 3, &tree, 7).text, "jobs/a/round/00000003/00/000002/000007");
    assert_string_equal(job_key_piece("a", 3, &tree, 16).text, "jobs/a/round/00000003/00/000002/000007");
    assert_string_equal(job_key_piece("a", 3, &tree, 19).text, "jobs/a/round/00000003/01/000000/000001/0000");
    assert_string_equal(job_key_piece("a", 3, &tree, 22).text, "jobs/a/round/00000003/01/000000/000001/0001");
    assert_string_equal(job_key_piece("a", 3, &tree, 25).text, "jobs/a/round/00000003/02/000000/000000/0001");
    for (int64_t piece = 0; piece < tree.pieces; piece++) {
        int64_t round, found;
        assert_true(job_key_read_round(&round, &found, "a", &tree, job_key_piece("a", 3, &tree, piece).text));
        assert_int_equal(found, job_tree_is_slice(&tree, piece) ? piece % 9 : piece);
        assert_true(job_key_read_round(&round, &found, "a", NULL, job_key_piece("a", 3, &tree, piece).text));
    }
    static const char *const others[] = {
        "jobs/a/round/00000003/00/000002/000007/0000", /* a slice has none */
        "jobs/a/round/00000003/01/000000/000001",      /* a group has one */
        "jobs/a/round/00000003/01/000000/000001/0002", "jobs/a/round/00000003/01/000000/000001/1",
        "jobs/a/round/00000003/01/000000/000001/",     "jobs/a/round/00000003/03/000000/000000/0000"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        int64_t round, found;
        if (job_key_read_round(&round, &found, "a", &tree, others[i]))
            fail_msg("%s", others[i]);
        if (i != 1)
            assert_false(job_key_read_round(&round, &found, "a", &whole, others[i]));
    }
}

/* The longest there can be. */
static void they_fit(void **state)
{
    (void)state;
    char id[SHOAL_JOB_ID_BYTES];
    memset(id, 'x', sizeof id - 1);
    id[sizeof id - 1] = '\0';
    job_tree tree = tree_of("tree:2", 65536);
    assert_int_equal(job_id_check(id), SHOAL_OK);
    assert_true(strlen(job_key_piece(id, INT64_MAX, &tree, 65535).text) < 190);
}

static void pieces_come_back(void **state)
{
    (void)state;
    static const char *const shapes[] = {"flat", "two-level", "tree:3"};
    for (size_t i = 0; i < 3; i++)
        for (int64_t slices = 1; slices < 40; slices++) {
            job_tree tree = tree_of(shapes[i], slices);
            for (int64_t piece = 0; piece < tree.pieces; piece++) {
                int64_t round, found;
                job_key key = job_key_piece("job", 123456789, &tree, piece);
                assert_true(job_key_read_round(&round, &found, "job", &tree, key.text));
                assert_int_equal(round, 123456789);
                assert_int_equal(found, piece);
                int64_t parent = job_tree_parent(&tree, piece);
                if (parent >= 0) {
                    job_key group = job_key_children("job", 123456789, &tree, parent);
                    assert_memory_equal(key.text, group.text, strlen(group.text));
                }
            }
        }
}

static void models_come_back(void **state)
{
    (void)state;
    int64_t round, piece;
    job_tree tree = tree_of("flat", 3);
    assert_true(job_key_read_round(&round, &piece, "job", &tree, job_key_kept("job", 12).text));
    assert_int_equal(round, 12);
    assert_int_equal(piece, JOB_KEY_KEPT);
    assert_true(job_key_read_round(&round, &piece, "job", &tree, job_key_model("job", 12).text));
    assert_int_equal(round, 12);
    assert_int_equal(piece, -1);
}

static void other_keys_do_not(void **state)
{
    (void)state;
    static const char *const keys[] = {
        "",
        "jobs/job/spec",
        "jobs/job/round/",
        "jobs/job/round/00000001",
        "jobs/job/round/00000001/",
        "jobs/job/round/00000001/models",
        "jobs/job/round/00000001/model/",
        "jobs/job/round/1/model",
        "jobs/job/round/0000001/model",
        "jobs/job/round/000000001/model",
        "jobs/job/round/-0000001/model",
        "jobs/job/round/99999999999999999999/model",
        "jobs/other/round/00000001/model",
        "jobs/jobx/round/00000001/model",
        "xjobs/job/round/00000001/model",
        "jobs/job/round/00000001/00/000000/000009", /* no such slice */
        "jobs/job/round/00000001/00/000001/000001", /* another group's */
        "jobs/job/round/00000001/03/000000/000000", /* no such level */
        "jobs/job/round/00000001/0/000000/000000",
        "jobs/job/round/00000001/00/000000/00000",
        "jobs/job/round/00000001/00/000000/0000000",
        "jobs/job/round/00000001/00/000000/000000x",
        "jobs/job/round/00000001/00/000000/000000/",
        "jobs/job/round/00000001/00/000000/",
    };
    job_tree tree = tree_of("two-level", 9);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        int64_t round, piece;
        if (job_key_read_round(&round, &piece, "job", &tree, keys[i]))
            fail_msg("%s", keys[i]);
    }
}

static void workers_come_back(void **state)
{
    (void)state;
    uint64_t worker = 0;
    assert_true(job_key_read_worker(&worker, job_key_worker("a_b-3", 0xfedcba9876543210).text));
    assert_true(worker == 0xfedcba9876543210);
    assert_true(job_key_read_worker(&worker, job_key_left("a", 1).text));
    assert_int_equal(worker, 1);
    static const char *const keys[] = {
        "jobs/a/worker/",
        "jobs/a/worker/1",
        "jobs/a/worker/000000000000000G",
        "jobs/a/worker/000000000000000A",
        "jobs/a/worker/00000000000000001",
        "jobs/a/workers/0000000000000001",
        "jobs//worker/0000000000000001",
        "jobs/-/worker/0000000000000001",
        "open/a/worker/0000000000000001",
        "jobs/a/b/worker/0000000000000001",
    };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (job_key_read_worker(&worker, keys[i]))
            fail_msg("%s", keys[i]);
}

static void names_of_jobs(void **state)
{
    (void)state;
    static const char *const good[] = {"a", "A", "0", "kmeans-0123456789abcdef", "x_y-", "a__"};
    static const char *const bad[] = {
        "",   "-a",       "_a",  "a/b", "a b",
        "a.", "\xc3\xa4", "a\n", "..",  "0123456789012345678901234567890123456789012345678901234567890123"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_int_equal(job_id_check(good[i]), SHOAL_OK);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(job_id_check(bad[i]), SHOAL_USAGE);
        assert_non_null(strstr(shoal_error(), "can't be the name of a job"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names),
        cmocka_unit_test(names_of_ranges),
        cmocka_unit_test(they_fit),
        cmocka_unit_test(pieces_come_back),
        cmocka_unit_test(models_come_back),
        cmocka_unit_test(other_keys_do_not),
        cmocka_unit_test(workers_come_back),
        cmocka_unit_test(names_of_jobs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
