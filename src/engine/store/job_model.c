/* Models as they lie in the store.  See job_model.h. */
#include "engine/store/job_model.h"

#include <string.h>

#include "base/bytes.h"
#include "base/crc.h"
#include "base/memory.h"
#include "engine/store/job_keys.h"
#include "learn/check.h"
#include "learn/wire.h"

void job_trailer_release(job_trailer *trailer)
{
    base_free(&trailer->member);
    base_free(&trailer->holder);
    *trailer = (job_trailer){0};
}

void job_model_free(job_model **inout)
{
    job_model *model = *inout;
    if (!model)
        return;
    shoal_round_free(&model->round);
    shoal_result_free(&model->result);
    base_free(&model->message);
    job_trailer_release(&model->trailer);
    base_free(inout);
}

int job_trailer_copy(job_trailer *out, const job_trailer *from)
{
    job_trailer copy = *from;
    copy.member = NULL;
    copy.holder = NULL;
    int status = base_alloc(&copy.member, (size_t)from->members + 1, sizeof *copy.member, "the members of a job");
    if (status == SHOAL_OK)
        status = base_alloc(&copy.holder, (size_t)from->pieces + 1, sizeof *copy.holder, "the pieces of a job");
    if (status < 0) {
        job_trailer_release(&copy);
        return status;
    }
    if (from->members)
        memcpy(copy.member, from->member, (size_t)from->members * sizeof *copy.member);
    if (from->pieces)
        memcpy(copy.holder, from->holder, (size_t)from->pieces * sizeof *copy.holder);
    *out = copy;
    return SHOAL_OK;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static void write_content(base_writer *out, const job_model *model)
{
    base_write_i64(out, model->number);
    base_write_u8(out, (uint8_t)model->state);
    if (model->state == SHOAL_JOB_RUNNING) {
        learn_round_write(out, model->round);
    } else if (model->state == SHOAL_JOB_DONE) {
        learn_result_write(out, model->result);
    } else {
        base_write_i64(out, model->status);
        base_write_text(out, model->message ? model->message : "");
    }
}

static void write_step(base_writer *out, const job_step *step)
{
    base_write_i64(out, step->number);
    base_write_i64(out, step->step);
    base_write_i64(out, step->steps);
    base_write_i64(out, step->k);
    base_write_double(out, step->objective);
    base_write_double(out, step->change);
    base_write_double(out, step->seconds);
    base_write_text(out, step->phase);
}

static void write_trailer(base_writer *out, const job_trailer *trailer)
{
    base_write_i64(out, trailer->members);
    for (int64_t i = 0; i < trailer->members; i++) {
        base_write_u64(out, trailer->member[i].worker);
        base_write_u32(out, trailer->member[i].slots);
        base_write_u32(out, trailer->member[i].roles);
    }
    base_write_i64(out, trailer->pieces);
    for (int64_t i = 0; i < trailer->pieces; i++)
        base_write_u32(out, (uint32_t)trailer->holder[i]);
    base_write_double(out, trailer->seconds);
    base_write_i64(out, trailer->doubled);
    for (int i = 0; i < SHOAL_COUNTERS; i++)
        base_write_i64(out, trailer->counter[i]);
    base_write_u32(out, (uint32_t)trailer->phases);
    for (int i = 0; i < trailer->phases; i++) {
        base_write_text(out, trailer->phase[i].name);
        base_write_double(out, trailer->phase[i].seconds);
        base_write_i64(out, trailer->phase[i].rounds);
    }
    base_write_i64(out, trailer->steps);
    for (int64_t i = 0; i < trailer->steps; i++)
        write_step(out, &trailer->step[i]);
}

int job_model_encode(void **out, size_t *size, job_model *model)
{
    base_writer writer = {0};
    base_write_u64(&writer, 0); /* the content's length, known only behind it */
    write_content(&writer, model);
    if (writer.status == SHOAL_OK) {
        size_t content = writer.size - sizeof(uint64_t);
        base_writer length = {0};
        base_write_u64(&length, content);
        if (length.status == SHOAL_OK)
            memcpy(writer.data, length.data, length.size);
        base_writer_release(&length);
        model->check = base_crc32c(0, writer.data + sizeof(uint64_t), content);
    }
    write_trailer(&writer, &model->trailer);
    return base_writer_take(&writer, out, size);
}

static const double SECONDS_MOST = 1e12;

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static void read_step(base_reader *in, job_step *step)
{
    step->number = base_read_i64(in);
    step->step = base_read_i64(in);
    step->steps = base_read_i64(in);
    step->k = base_read_i64(in);
    step->objective = base_read_double(in);
    step->change = base_read_double(in);
    step->seconds = base_read_double(in);
    base_read_text(in, step->phase, sizeof step->phase);
}

/* Reads how many there are of something that takes at least `bytes` each. */
static int64_t read_count(base_reader *in, int64_t most, size_t bytes)
{
    int64_t count = base_read_i64(in);
    if (count < 0 || count > most || (uint64_t)count > in->left / bytes) {
        in->bad = true;
        return 0;
    }
    return count;
}

static int read_members(base_reader *in, job_trailer *trailer)
{
    trailer->members = read_count(in, INT32_MAX, 16);
    int status = base_alloc(&trailer->member, (size_t)trailer->members + 1, sizeof *trailer->member, "members");
    for (int64_t i = 0; status == SHOAL_OK && i < trailer->members; i++) {
        trailer->member[i].worker = base_read_u64(in);
        trailer->member[i].slots = base_read_u32(in);
        trailer->member[i].roles = base_read_u32(in);
    }
    return status;
}

static int read_holders(base_reader *in, job_trailer *trailer)
{
    trailer->pieces = read_count(in, 4 * (int64_t)SHOAL_JOB_SLICES_MOST, sizeof(uint32_t));
    int status = base_alloc(&trailer->holder, (size_t)trailer->pieces + 1, sizeof *trailer->holder, "pieces");
    for (int64_t i = 0; status == SHOAL_OK && i < trailer->pieces; i++) {
        trailer->holder[i] = (int32_t)base_read_u32(in);
        if (trailer->holder[i] < -1 || trailer->holder[i] >= trailer->members)
            in->bad = true;
    }
    return status;
}

static int read_trailer(base_reader *in, job_trailer *trailer)
{
    int status = read_members(in, trailer);
    if (status == SHOAL_OK)
        status = read_holders(in, trailer);
    if (status < 0)
        return status;
    trailer->seconds = base_read_double(in);
    in->bad |= !(trailer->seconds >= 0 && trailer->seconds < SECONDS_MOST); /* they are counted on */
    trailer->doubled = base_read_i64(in);
    for (int i = 0; i < SHOAL_COUNTERS; i++)
        trailer->counter[i] = base_read_i64(in);
    uint32_t phases = base_read_u32(in);
    if (phases > SHOAL_PHASES_MOST)
        in->bad = true;
    for (uint32_t i = 0; !in->bad && i < phases; i++) {
        base_read_text(in, trailer->phase[i].name, sizeof trailer->phase[i].name);
        trailer->phase[i].seconds = base_read_double(in);
        trailer->phase[i].rounds = base_read_i64(in);
        in->bad |= trailer->phase[i].rounds < 0 || trailer->phase[i].rounds > INT64_MAX / 2; /* it is counted on */
        trailer->phases++;
    }
    trailer->steps = read_count(in, JOB_HISTORY_MOST, 60);
    for (int64_t i = 0; i < trailer->steps; i++)
        read_step(in, &trailer->step[i]);
    return SHOAL_OK;
}

static int read_end(base_reader *in, job_model *model)
{
    int64_t code = base_read_i64(in);
    uint32_t length = base_read_u32(in);
    const char *text = base_read_bytes(in, length);
    if (code >= 0 || code < -100 || (text && memchr(text, 0, length)))
        in->bad = true;
    model->status = in->bad ? SHOAL_BROKEN : (int)code;
    return base_copy_text_n(&model->message, in->bad ? "" : text, in->bad ? 0 : length);
}

static int read_content(base_reader *in, job_model *model)
{
    model->number = base_read_i64(in);
    uint8_t state = base_read_u8(in);
    model->state = state;
    if (in->bad || state > SHOAL_JOB_CANCELLED)
        return shoal_fail(SHOAL_BROKEN, "a model of an unknown kind");
    if (state == SHOAL_JOB_RUNNING)
        return learn_round_read(&model->round, in);
    if (state == SHOAL_JOB_DONE)
        return learn_result_read(&model->result, in);
    return read_end(in, model);
}

int job_model_decode(job_model **out, int64_t number, const void *bytes, size_t size)
{
    job_model *model = NULL;
    base_reader in = base_reader_of(bytes, size);
    uint64_t length = base_read_u64(&in);
    const void *content = length <= in.left ? base_read_bytes(&in, (size_t)length) : NULL;
    if (!content)
        return shoal_fail(SHOAL_BROKEN, "a model that ends too soon");
    int status = base_alloc(&model, 1, sizeof *model, "a model");
    if (status < 0)
        return status;
    base_reader inner = base_reader_of(content, (size_t)length);
    model->check = base_crc32c(0, content, (size_t)length);
    status = read_content(&inner, model);
    if (status == SHOAL_OK)
        status = read_trailer(&in, &model->trailer);
    if (status == SHOAL_OK && (!base_reader_done(&inner) || !base_reader_done(&in) || model->number != number ||
                               (model->round && model->round->number != number)))
        status = shoal_fail(SHOAL_BROKEN, "a model of another round than %lld", (long long)number);
    if (status < 0) {
        job_model_free(&model);
        return status;
    }
    *out = model;
    return SHOAL_OK;
}

/* ---- checking ---------------------------------------------------------------------------------------------------- */

int job_model_check(const job_model *model, const job_spec *spec, const shoal_algorithm *algorithm)
{
    if (model->state == SHOAL_JOB_RUNNING)
        return learn_round_check(algorithm, model->round, &spec->shape);
    if (model->state == SHOAL_JOB_DONE)
        return learn_result_check(algorithm, model->result, spec->first, &spec->shape);
    return SHOAL_OK;
}

int job_model_check_end(const job_model *model, const job_spec *spec, const shoal_algorithm *const *algorithms)
{
    const shoal_algorithm *algorithm = job_find_algorithm(algorithms, spec->algorithm);
    if (!algorithm || !algorithm->check_result || model->state != SHOAL_JOB_DONE)
        return SHOAL_OK;
    int status = learn_round_check(algorithm, spec->first, &spec->shape);
    return status == SHOAL_OK ? job_model_check(model, spec, algorithm) : status;
}

const shoal_algorithm *job_find_algorithm(const shoal_algorithm *const *algorithms, const char *name)
{
    for (int i = 0; algorithms && algorithms[i]; i++)
        if (strcmp(algorithms[i]->name, name) == 0)
            return algorithms[i];
    return NULL;
}

/* ---- in the store ------------------------------------------------------------------------------------------------ */

int job_model_first(job_model **out, const job_spec *spec)
{
    job_model model = {.state = SHOAL_JOB_RUNNING, .round = spec->first};
    void *bytes = NULL;
    size_t size = 0;
    int status = job_model_encode(&bytes, &size, &model);
    if (status == SHOAL_OK)
        status = job_model_decode(out, 0, bytes, size);
    base_free(&bytes);
    return status;
}

static int read_model(job_model **out, const char *id, int64_t number, int status, shoal_blob *blob)
{
    if (status == SHOAL_OK)
        status = job_model_decode(out, number, blob->data, blob->size);
    if (status == SHOAL_BROKEN)
        status = shoal_fail(SHOAL_BROKEN, "%s: %s", job_key_model(id, number).text, shoal_error());
    shoal_blob_release(blob);
    return status;
}

int job_model_get(job_model **out, shoal_store *store, const char *id, int64_t number, int64_t deadline)
{
    shoal_blob blob = {0};
    int status = shoal_store_get_framed(store, job_key_model(id, number).text, JOB_KIND_MODEL, &blob, deadline);
    return read_model(out, id, number, status, &blob);
}

int job_model_await(job_model **out, shoal_store *store, const char *id, int64_t number, int64_t until,
                    int64_t deadline)
{
    shoal_blob blob = {0};
    job_key key = job_key_model(id, number);
    int status = shoal_store_await_framed(store, key.text, JOB_KIND_MODEL, until, &blob, deadline);
    return read_model(out, id, number, status, &blob);
}

int job_model_peek(shoal_job_state *state, int64_t *whole, shoal_store *store, const char *id, int64_t number,
                   int64_t deadline)
{
    unsigned char first[SHOAL_FRAME_BYTES + 2 * sizeof(uint64_t) + 1];
    job_key key = job_key_model(id, number);
    shoal_blob blob = {0};
    int status = shoal_store_get_range(store, key.text, 0, sizeof first, NULL, first, &blob, deadline);
    if (status < 0)
        return status;
    base_reader in = base_reader_of(first, blob.size);
    (void)base_read_bytes(&in, SHOAL_FRAME_BYTES);
    (void)base_read_u64(&in); /* the content's length */
    int64_t named = base_read_i64(&in);
    uint8_t code = base_read_u8(&in);
    *whole = blob.whole;
    *state = code;
    if (in.bad || named != number || code > SHOAL_JOB_CANCELLED)
        return shoal_fail(SHOAL_BROKEN, "%s is not the model of round %lld", key.text, (long long)number);
    return SHOAL_OK;
}

int job_head(int64_t *out, shoal_store *store, const char *id, int64_t deadline)
{
    job_key prefix = job_key_of(id, "round/");
    shoal_listing page = {0};
    int status;
    *out = 0;
    do {
        status = shoal_store_list(store, prefix.text, NULL, &page, deadline);
        for (size_t i = 0; status == SHOAL_OK && i < page.count; i++) {
            int64_t round, piece;
            if (job_key_read_round(&round, &piece, id, NULL, page.entries[i].key) && piece == JOB_KEY_MODEL &&
                round > *out)
                *out = round;
        }
    } while (status == SHOAL_OK && page.more);
    shoal_listing_release(&page);
    return status;
}
