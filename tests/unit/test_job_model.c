/* Models and records: what is written is read back the same, bit for bit; every cut and most flipped bits are refused,
 * and what is not refused is whole. */
#include "job_support.h"

#include <math.h>

#include "engine/store/job_model.h"
#include "engine/store/job_record.h"

enum { MEMBERS = 3, PIECES = 5, NUMBER = 12 };

/* ---- models ------------------------------------------------------------------------------------------------------ */

static void fill_trailer(job_trailer *trailer)
{
    EXPECT_OK(base_alloc(&trailer->member, MEMBERS, sizeof *trailer->member, "members"));
    EXPECT_OK(base_alloc(&trailer->holder, PIECES, sizeof *trailer->holder, "pieces"));
    trailer->members = MEMBERS;
    trailer->pieces = PIECES;
    for (uint32_t i = 0; i < MEMBERS; i++)
        trailer->member[i] = (job_member){UINT64_C(0x1234567890abcdef) + i, i + 1, SHOAL_ROLE_ALL};
    for (int32_t i = 0; i < PIECES; i++)
        trailer->holder[i] = i % (MEMBERS + 1) - 1;
    trailer->seconds = 1.5;
    trailer->doubled = 7;
    for (int i = 0; i < SHOAL_COUNTERS; i++)
        trailer->counter[i] = 100 + i;
    trailer->phases = 2;
    trailer->phase[0] = (shoal_phase){.name = "scan", .seconds = 0.5, .rounds = 1};
    trailer->phase[1] = (shoal_phase){.name = "run", .seconds = 1, .rounds = 11};
    trailer->steps = 2;
    trailer->step[0] = (job_step){10, 9, 20, 4, 3.5, NAN, 1, "run"};
    trailer->step[1] = (job_step){11, 10, 20, 4, INFINITY, 0.1, 1.5, "run"};
}

static job_model *model_of(shoal_job_state state)
{
    const int64_t shape[] = {2, 3};
    job_model *model = NULL;
    EXPECT_OK(base_alloc(&model, 1, sizeof *model, "a model"));
    model->number = NUMBER;
    model->state = state;
    if (state == SHOAL_JOB_RUNNING) {
        EXPECT_OK(start_toy(&model->round, NULL, &(shoal_shape){.columns = 3}));
        model->round->number = NUMBER;
        model->round->layout.carry_from = 4;
        assert_non_null(shoal_round_keep(model->round, 100));
        model->round->kept[0]->born = NUMBER - 2;
    } else if (state == SHOAL_JOB_DONE) {
        EXPECT_OK(shoal_result_new(&model->result));
        double *values = shoal_result_add(model->result, "centres", SHOAL_FLOAT64, 2, shape);
        assert_non_null(values);
        values[5] = -0.0;
        shoal_result_set(model->result, "objective", 2.5);
    } else {
        model->status = SHOAL_INVALID;
        EXPECT_OK(base_copy_text(&model->message, "row 7 is not a number"));
    }
    fill_trailer(&model->trailer);
    return model;
}

static void expect_same_trailer(const job_trailer *a, const job_trailer *b)
{
    assert_int_equal(a->members, b->members);
    assert_memory_equal(a->member, b->member, (size_t)a->members * sizeof *a->member);
    assert_int_equal(a->pieces, b->pieces);
    assert_memory_equal(a->holder, b->holder, (size_t)a->pieces * sizeof *a->holder);
    assert_true(a->seconds == b->seconds);
    assert_int_equal(a->doubled, b->doubled);
    assert_memory_equal(a->counter, b->counter, sizeof a->counter);
    assert_int_equal(a->phases, b->phases);
    for (int i = 0; i < a->phases; i++) {
        assert_string_equal(a->phase[i].name, b->phase[i].name);
        assert_true(a->phase[i].seconds == b->phase[i].seconds && a->phase[i].rounds == b->phase[i].rounds);
    }
    assert_int_equal(a->steps, b->steps);
    for (int64_t i = 0; i < a->steps; i++) {
        assert_string_equal(a->step[i].phase, b->step[i].phase);
        assert_memory_equal(&a->step[i].number, &b->step[i].number, offsetof(job_step, phase));
    }
}

static void models_round_trip(void **state)
{
    (void)state;
    for (shoal_job_state s = SHOAL_JOB_RUNNING; s <= SHOAL_JOB_CANCELLED; s++) {
        job_model *model = model_of(s), *back = NULL;
        void *bytes = NULL, *again = NULL;
        size_t size = 0, size_again = 0;
        EXPECT_OK(job_model_encode(&bytes, &size, model));
        EXPECT_OK(job_model_decode(&back, NUMBER, bytes, size));
        assert_int_equal(back->number, NUMBER);
        assert_int_equal(back->state, s);
        assert_int_equal(back->check, model->check);
        assert_int_equal(back->round != NULL, s == SHOAL_JOB_RUNNING);
        assert_int_equal(back->result != NULL, s == SHOAL_JOB_DONE);
        if (model->message) {
            assert_string_equal(back->message, model->message);
            assert_int_equal(back->status, SHOAL_INVALID);
        }
        expect_same_trailer(&model->trailer, &back->trailer);
        EXPECT_OK(job_model_encode(&again, &size_again, back));
        assert_int_equal(size, size_again);
        assert_memory_equal(bytes, again, size);
        EXPECT_FAIL(job_model_decode(&back, NUMBER + 1, bytes, size), SHOAL_BROKEN, "13");
        base_free(&bytes);
        base_free(&again);
        job_model_free(&back);
        job_model_free(&model);
    }
}

/* The check is of the content alone: who assigns the pieces otherwise still has the same model. */
static void the_trailer_is_outside_the_check(void **state)
{
    (void)state;
    job_model *model = model_of(SHOAL_JOB_RUNNING);
    void *bytes = NULL;
    size_t size = 0;
    EXPECT_OK(job_model_encode(&bytes, &size, model));
    base_free(&bytes);
    uint32_t check = model->check;
    model->trailer.holder[0] = 2;
    model->trailer.seconds = 99;
    EXPECT_OK(job_model_encode(&bytes, &size, model));
    base_free(&bytes);
    assert_int_equal(model->check, check);
    ((char *)model->round->model)[0] ^= 1;
    EXPECT_OK(job_model_encode(&bytes, &size, model));
    base_free(&bytes);
    assert_true(model->check != check);
    job_model_free(&model);
}

static void expect_whole(const job_model *model)
{
    const job_trailer *trailer = &model->trailer;
    assert_int_equal(model->number, NUMBER);
    assert_int_equal(model->round != NULL, model->state == SHOAL_JOB_RUNNING);
    assert_int_equal(model->result != NULL, model->state == SHOAL_JOB_DONE);
    assert_true(model->state <= SHOAL_JOB_CANCELLED && trailer->steps <= JOB_HISTORY_MOST);
    assert_true(trailer->phases <= SHOAL_PHASES_MOST);
    for (int64_t i = 0; i < trailer->pieces; i++)
        assert_true(trailer->holder[i] >= -1 && trailer->holder[i] < trailer->members);
}

/* Decodes a copy of just that size, so that reading beyond it is seen by a sanitizer. */
static int decode_copy(job_model **out, const void *bytes, size_t size)
{
    void *copy = malloc(size ? size : 1);
    assert_non_null(copy);
    memcpy(copy, bytes, size);
    int status = job_model_decode(out, NUMBER, copy, size);
    free(copy);
    return status;
}

static void damaged_models_are_refused_or_whole(void **state)
{
    (void)state;
    for (shoal_job_state s = SHOAL_JOB_RUNNING; s <= SHOAL_JOB_CANCELLED; s++) {
        job_model *model = model_of(s), *back = NULL;
        unsigned char *bytes = NULL;
        size_t size = 0;
        EXPECT_OK(job_model_encode((void **)&bytes, &size, model));
        for (size_t cut = 0; cut < size; cut++)
            EXPECT_FAIL(decode_copy(&back, bytes, cut), SHOAL_BROKEN, " ");
        for (size_t bit = 0; bit < 8 * size; bit++) {
            bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
            int status = decode_copy(&back, bytes, size);
            bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
            if (status == SHOAL_OK)
                expect_whole(back);
            else
                assert_true(status == SHOAL_BROKEN || status == SHOAL_MEMORY);
            job_model_free(&back);
        }
        EXPECT_OK(base_grow(&bytes, size, size + 1, 1, "bytes"));
        EXPECT_FAIL(decode_copy(&back, bytes, size + 1), SHOAL_BROKEN, " ");
        base_free(&bytes);
        job_model_free(&model);
    }
}

static void trailers_are_copied(void **state)
{
    (void)state;
    job_trailer from = {0}, copy = {0}, empty = {0};
    fill_trailer(&from);
    EXPECT_OK(job_trailer_copy(&copy, &from));
    expect_same_trailer(&from, &copy);
    assert_ptr_not_equal(from.member, copy.member);
    job_trailer_release(&copy);
    EXPECT_OK(job_trailer_copy(&copy, &empty));
    assert_int_equal(copy.members + copy.pieces + copy.steps, 0);
    job_trailer_release(&copy);
    job_trailer_release(&from);
}

/* ---- in the store ------------------------------------------------------------------------------------------------ */

static void put(shoal_store *store, const char *key)
{
    EXPECT_OK(shoal_store_put(store, key, "x", 1, NULL, NULL, soon()));
}

static void the_head_is_the_newest_model(void **state)
{
    (void)state;
    shoal_store *store = open_store("mem:");
    int64_t head = -1;
    EXPECT_OK(job_head(&head, store, "a", soon()));
    assert_int_equal(head, 0);
    put(store, "jobs/a/round/00000009/00/000000/000003");
    put(store, "jobs/a/round/other/model");
    put(store, "jobs/ab/round/00000044/model");
    EXPECT_OK(job_head(&head, store, "a", soon()));
    assert_int_equal(head, 0);
    put(store, job_key_model("a", 7).text);
    put(store, job_key_model("a", 12).text);
    put(store, job_key_model("a", 2).text);
    put(store, "jobs/a/round/00000013/00/000000/000003");
    EXPECT_OK(job_head(&head, store, "a", soon()));
    assert_int_equal(head, 12);
    shoal_store_close(&store);
}

static void what_is_no_model_is_broken(void **state)
{
    (void)state;
    shoal_store *store = open_store("mem:");
    job_model *model = model_of(SHOAL_JOB_RUNNING), *back = NULL;
    void *bytes = NULL;
    size_t size = 0;
    const char *key = "jobs/a/round/00000012/model";
    EXPECT_FAIL(job_model_get(&back, store, "a", NUMBER, soon()), SHOAL_ABSENT, "");
    put(store, key);
    EXPECT_FAIL(job_model_get(&back, store, "a", NUMBER, soon()), SHOAL_BROKEN, key);
    EXPECT_OK(job_model_encode(&bytes, &size, model));
    EXPECT_OK(shoal_store_put_framed(store, key, JOB_KIND_WORKER, bytes, size, NULL, NULL, soon()));
    EXPECT_FAIL(job_model_get(&back, store, "a", NUMBER, soon()), SHOAL_BROKEN, key);
    EXPECT_OK(shoal_store_put_framed(store, key, JOB_KIND_MODEL, bytes, size - 1, NULL, NULL, soon()));
    EXPECT_FAIL(job_model_get(&back, store, "a", NUMBER, soon()), SHOAL_BROKEN, key);
    EXPECT_OK(shoal_store_put_framed(store, key, JOB_KIND_MODEL, bytes, size, NULL, NULL, soon()));
    EXPECT_OK(job_model_get(&back, store, "a", NUMBER, soon()));
    assert_int_equal(back->check, model->check);
    base_free(&bytes);
    job_model_free(&back);
    job_model_free(&model);
    shoal_store_close(&store);
}

/* ---- records ----------------------------------------------------------------------------------------------------- */

static job_record full_record(void)
{
    job_record record;
    memset(&record, 0, sizeof record); /* gaps, too: records are compared as memory */
    record.worker = UINT64_C(0xfedcba9876543210);
    strcpy(record.host, "h\xc3\xb6st");
    strcpy(record.kernel, "avx2");
    strcpy(record.version, "1.2.3");
    record.pid = 4711;
    record.slots = 8;
    record.roles = SHOAL_ROLE_ALL;
    record.beats = 3;
    record.seconds = 12.5;
    record.round = 9;
    record.rescuing = -1;
    record.deaths = 2;
    record.maps = 10;
    record.doubled = 1;
    record.fetched = 2;
    record.hits = 4;
    record.bytes = 1 << 30;
    record.counts.bytes_sent = 5;
    record.counts.bytes_received = 6;
    record.counts.price = 0.25;
    for (int i = 0; i < SHOAL_REQUEST_KINDS; i++)
        record.counts.requests[i] = 10 + i;
    for (int i = 0; i < SHOAL_CAUSES; i++)
        record.counts.causes[i] = 20 + i;
    strcpy(record.state, "working");
    memset(record.log, 'x', sizeof record.log - 1);
    return record;
}

static void records_round_trip(void **state)
{
    (void)state;
    job_record record = full_record(), back;
    void *bytes = NULL;
    size_t size = 0;
    EXPECT_OK(job_record_encode(&bytes, &size, &record));
    EXPECT_OK(job_record_decode(&back, bytes, size));
    assert_memory_equal(&record, &back, sizeof record);
    base_free(&bytes);
}

static void damaged_records_are_refused_or_whole(void **state)
{
    (void)state;
    job_record record = full_record(), back;
    unsigned char *bytes = NULL;
    size_t size = 0;
    strcpy(record.log, "one line\n");
    EXPECT_OK(job_record_encode((void **)&bytes, &size, &record));
    for (size_t cut = 0; cut < size; cut++)
        EXPECT_FAIL(job_record_decode(&back, bytes, cut), SHOAL_BROKEN, "record");
    for (size_t bit = 0; bit < 8 * size; bit++) {
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        int status = job_record_decode(&back, bytes, size);
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        assert_true(status == SHOAL_OK || status == SHOAL_BROKEN);
        assert_non_null(memchr(back.state, 0, sizeof back.state));
        assert_non_null(memchr(back.log, 0, sizeof back.log));
        assert_true(status != SHOAL_OK || memcmp(&back, &record, sizeof back) != 0); /* no bit is without meaning */
    }
    base_free(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(models_round_trip),
        cmocka_unit_test(the_trailer_is_outside_the_check),
        cmocka_unit_test(damaged_models_are_refused_or_whole),
        cmocka_unit_test(trailers_are_copied),
        cmocka_unit_test(the_head_is_the_newest_model),
        cmocka_unit_test(what_is_no_model_is_broken),
        cmocka_unit_test(records_round_trip),
        cmocka_unit_test(damaged_records_are_refused_or_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
