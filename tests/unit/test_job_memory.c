/* What a worker needs in a round: each thing that takes memory counts, and numbers that no machine has make no sum
 * overflow. */
#include "job_support.h"

#include "engine/store/job_memory.h"

/* A job of 10 slices of 4 grains of 100 rows of 8 float64, merged in pairs, and a round that needs next to nothing. */
typedef struct subject {
    job_spec spec;
    job_slice slice[10];
    shoal_round round;
    shoal_kept kept;
    job_means means;
} subject;

enum { GRAIN = 100 * 8 * 8 };

static subject make_subject(void)
{
    subject self = {.means = {.threads = 2, .roles = SHOAL_ROLE_ALL, .limit = INT64_C(1) << 40}};
    self.spec =
        (job_spec){.id = "job-1",
                   .source = JOB_UPLOADED,
                   .slices = 10,
                   .shape = {.rows = 4000, .columns = 8, .type = SHOAL_FLOAT64, .rows_per_grain = 100, .grains = 40}};
    for (int i = 0; i < 10; i++)
        self.slice[i] = (job_slice){.first_grain = 4 * i, .grains = 4};
    EXPECT_OK(job_tree_choose(&self.spec.tree, "tree:2", 10));
    self.round.layout.cells = 1;
    self.round.layout.cell[0] = (shoal_cell){.kind = SHOAL_CELL_SUM, .count = 1};
    return self;
}

static job_memory plan(subject *self)
{
    job_memory out = {0};
    self->spec.slice = self->slice;
    EXPECT_OK(job_memory_plan(&out, &self->spec, &self->round, &self->means));
    return out;
}

/* What more it needs than the subject as it was made. */
static job_memory more(subject *self)
{
    subject usual = make_subject();
    job_memory before = plan(&usual), after = plan(self);
    return (job_memory){.fixed = after.fixed - before.fixed, .slice = after.slice - before.slice};
}

static void everything_counts(void **state)
{
    (void)state;
    subject self = make_subject();
    assert_true(plan(&self).slice >= 4 * GRAIN && plan(&self).slice < 4 * GRAIN + 8192);
    self.round.model_bytes = 1000000;
    assert_true(more(&self).fixed >= 3000000);
    self = make_subject();
    self.round.layout.memo_row_bytes = 1000;
    assert_true(more(&self).slice >= 400 * 1000);
    self = make_subject();
    self.round.layout.cell[0].count =
        100000; /* of both threads, of a slice, of 5 + 3 + 2 + 1 sums, of those on their way */
    assert_true(more(&self).fixed >= (2 + 11 + 2) * 790000);
    assert_true(more(&self).slice >= 790000);
    self.round.layout.cell[0].kind = SHOAL_CELL_WIDE;
    assert_true(more(&self).slice >= 1590000);
    self.round.layout.cell[0] = (shoal_cell){.kind = SHOAL_CELL_RECORD, .count = 1000, .bytes = 500};
    assert_true(more(&self).slice >= 500000);
    self.round.layout.cell[0] = (shoal_cell){.kind = SHOAL_CELL_ROW, .bytes = 100};
    assert_true(more(&self).slice >= 400 * 90);
    assert_true(more(&self).fixed >= 4 * 4000 * 100 - 100000); /* sums of four levels cover all rows */
    self = make_subject();
    self.spec.shape.weighted = true;
    assert_int_equal(more(&self).slice, 400 * 8);
    self = make_subject();
    self.slice[7].grains = 40; /* the largest counts */
    assert_int_equal(more(&self).slice, 36 * GRAIN);
    self = make_subject();
    self.kept.bytes = 1000000;
    self.round.kept[0] = &self.kept;
    self.round.keeps = 1;
    assert_int_equal(more(&self).fixed, 2000000);
}

static void roles_need_what_they_do(void **state)
{
    (void)state;
    subject self = make_subject();
    self.round.layout.cell[0].count = 100000;
    int64_t all = plan(&self).fixed, all_slice = plan(&self).slice;
    self.means.roles = SHOAL_ROLE_MAP;
    assert_true(plan(&self).fixed <= all - 11 * 800000);
    assert_int_equal(plan(&self).slice, all_slice);
    self.means.roles = SHOAL_ROLE_LAST;
    assert_true(plan(&self).fixed <= all - 10 * 800000);
    assert_int_equal(plan(&self).slice, 0);
    assert_int_equal(plan(&self).slices, 10);
}

/* In ranges whoever may reduce may merge the tops of ranges, too, and the last one puts them together. */
static void ranges_need_sums_by_role(void **state)
{
    (void)state;
    subject self = make_subject();
    self.round.layout.cell[0].count = 100000;
    self.means.roles = SHOAL_ROLE_REDUCE;
    int64_t reducer = plan(&self).fixed - 100000 * 8 * (plan(&self).fetched - 1);
    self.means.roles = SHOAL_ROLE_LAST;
    int64_t last = plan(&self).fixed - 100000 * 8 * (plan(&self).fetched - 1);
    self.spec.range_bytes = 1;
    assert_true(job_tree_cut(&self.spec.ranged, &self.spec.tree, 2));
    assert_in_range(100000 + plan(&self).fixed - 100000 * 4 * (plan(&self).fetched - 1) - last, 0, 200000);
    self.means.roles = SHOAL_ROLE_REDUCE;
    assert_in_range(plan(&self).fixed - 100000 * 4 * (plan(&self).fetched - 1) - reducer, 700000, 900000);
}

/* Who only maps puts the rows of one slice at a time, however many there are in all. */
static void mappers_put_slice_by_slice(void **state)
{
    (void)state;
    subject self = make_subject();
    self.means.roles = SHOAL_ROLE_MAP;
    int64_t without = plan(&self).fixed;
    self.round.layout.cell[0] = (shoal_cell){.kind = SHOAL_CELL_ROW, .bytes = 100};
    assert_true(plan(&self).fixed - without <= 400 * 100);
    self.means.roles = SHOAL_ROLE_MAP | SHOAL_ROLE_REDUCE;
    assert_true(plan(&self).fixed - without >= 4000 * 100);
}

static void rows_by_their_source(void **state)
{
    (void)state;
    subject self = make_subject();
    self.spec.source = JOB_FILE;
    assert_int_equal(more(&self).slice, -4 * GRAIN);
    self.spec.source = JOB_RANGES;
    assert_int_equal(more(&self).slice, 0);
    self.spec.source = JOB_GENERATED; /* all of them are kept, or each thread makes a grain */
    assert_int_equal(more(&self).slice, 0);
    self.spec.shape.rows_per_grain = 1 << 20;
    self.spec.shape.rows = INT64_C(40) << 20;
    self.means.limit = INT64_C(1) << 30;
    assert_true(plan(&self).slice >= INT64_C(2) * (64 << 20) && plan(&self).slice < INT64_C(2) * (64 << 20) + 8192);
}

static void what_fits(void **state)
{
    (void)state;
    subject self = make_subject();
    job_memory need = plan(&self), found;
    self.means.limit = need.fixed + 3 * need.slice + 5;
    found = plan(&self);
    assert_int_equal(found.slices, 3);
    assert_int_equal(found.spare, 2 * need.slice + 5);
    self.means.limit = need.fixed + need.slice;
    assert_int_equal(plan(&self).slices, 1);
    int64_t fetched = plan(&self).fetched;
    assert_true(fetched > 1); /* where there is less room, fewer pieces are fetched at once */
    self.means.limit--;
    assert_int_equal(plan(&self).fetched, fetched - 1);
    self.means.limit = 0;
    while (job_memory_plan(&found, &self.spec, &self.round, &self.means) < 0)
        self.means.limit += self.means.limit < need.fixed / 2 ? need.fixed / 2 : 8;
    assert_int_equal(found.fetched, 1);
    assert_int_equal(found.slices, 1);
    self.means.limit -= 8;
    self.round.number = 7;
    EXPECT_FAIL(job_memory_plan(&found, &self.spec, &self.round, &self.means), SHOAL_MEMORY,
                "job job-1 needs 16.9 MB of memory in round 7, and this worker may use 16.9 MB");
}

/* A learner that does without a memo has none where it would take more than half of what there is for slices. */
static void memos_are_spared(void **state)
{
    (void)state;
    subject self = make_subject();
    const job_memory without = plan(&self);
    self.round.layout.memo_row_bytes = 1000;
    self.means.spares_memo = true;
    const job_memory with = plan(&self);
    assert_true(!without.spared && !with.spared && with.slice >= without.slice + 400 * 1000);
    self.means.limit = with.fixed + 2 * with.slice;
    assert_false(plan(&self).spared);
    self.means.limit = without.fixed + with.slice;
    assert_true(plan(&self).spared);
    assert_true(plan(&self).slice < without.slice + 400 * 1000);
    job_memory found = {0};
    self.means.spares_memo = false;
    self.means.limit -= 8192;
    EXPECT_FAIL(job_memory_plan(&found, &self.spec, &self.round, &self.means), SHOAL_MEMORY, "needs");
}

static void slices_make_room_for_scratch(void **state)
{
    (void)state;
    subject self = make_subject();
    job_memory found = plan(&self);
    self.means.limit = found.fixed + 5 * found.slice + 5;
    found = plan(&self);
    assert_int_equal(found.slices, 5);
    job_memory_scratch(&found, 0);
    assert_int_equal(found.slices, 5);
    job_memory_scratch(&found, found.slice + 5);
    assert_int_equal(found.slices, 4);
    job_memory_scratch(&found, found.slice + 6);
    assert_int_equal(found.slices, 3);
    job_memory_scratch(&found, found.spare);
    assert_int_equal(found.slices, 1);
    job_memory_scratch(&found, INT64_MAX);
    assert_int_equal(found.slices, 1);
}

static void pieces_have_what_their_layout_has(void **state)
{
    (void)state;
    shoal_layout layout = {.cells = 4};
    layout.cell[0] = (shoal_cell){.kind = SHOAL_CELL_SUM, .count = 10};
    layout.cell[1] = (shoal_cell){.kind = SHOAL_CELL_WIDE, .count = 10};
    layout.cell[2] = (shoal_cell){.kind = SHOAL_CELL_ROW, .bytes = 3};
    layout.cell[3] = (shoal_cell){.kind = SHOAL_CELL_RECORD, .count = 5, .bytes = 100};
    int64_t head = job_memory_piece(&(shoal_layout){0}, 2, 50);
    assert_int_equal(job_memory_piece(&layout, 2, 50) - head, 80 + 160 + 150 + 8 + 5 * 116);
    assert_int_equal(job_memory_piece(&layout, 3, 50) - job_memory_piece(&layout, 2, 50), 8);
    layout.cell[3].count = 0;
    assert_true(job_memory_piece(&layout, 2, 50) == INT64_MAX);
}

static void absurd_numbers(void **state)
{
    (void)state;
    job_memory found;
    for (int i = 0; i < 7; i++) {
        subject self = make_subject();
        plan(&self);
        self.means.limit = INT64_MAX - 1;
        shoal_cell *cell = &self.round.layout.cell[0];
        switch (i) {
        case 0: self.spec.shape.columns = INT64_MAX; break;
        case 1: self.spec.shape.rows_per_grain = self.spec.shape.rows = INT64_MAX; break;
        case 2: self.round.model_bytes = SIZE_MAX; break;
        case 3: self.round.layout.memo_row_bytes = SIZE_MAX; break;
        case 4: *cell = (shoal_cell){.kind = SHOAL_CELL_WIDE, .count = INT64_MAX / 16}; break;
        case 5: *cell = (shoal_cell){.kind = SHOAL_CELL_ROW, .bytes = SIZE_MAX}; break;
        case 6: *cell = (shoal_cell){.kind = SHOAL_CELL_RECORD, .count = INT64_MAX / 16, .bytes = SIZE_MAX}; break;
        }
        EXPECT_FAIL(job_memory_plan(&found, &self.spec, &self.round, &self.means), SHOAL_MEMORY, "needs 9.22 EB");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_counts),
        cmocka_unit_test(roles_need_what_they_do),
        cmocka_unit_test(ranges_need_sums_by_role),
        cmocka_unit_test(mappers_put_slice_by_slice),
        cmocka_unit_test(pieces_have_what_their_layout_has),
        cmocka_unit_test(rows_by_their_source),
        cmocka_unit_test(what_fits),
        cmocka_unit_test(memos_are_spared),
        cmocka_unit_test(slices_make_room_for_scratch),
        cmocka_unit_test(absurd_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
