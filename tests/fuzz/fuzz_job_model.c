/* Fuzzes the readers of models and of workers' records, which lie in a store that others write to.  What is read is
 * whole, and is written to bytes that read back and are written to the same bytes. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "engine/store/job_model.h"
#include "engine/store/job_record.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check(const job_model *model, int64_t number)
{
    const job_trailer *trailer = &model->trailer;
    if (model->number != number || (model->round != NULL) != (model->state == SHOAL_JOB_RUNNING) ||
        (model->result != NULL) != (model->state == SHOAL_JOB_DONE) || trailer->steps > JOB_HISTORY_MOST ||
        trailer->phases > SHOAL_PHASES_MOST)
        abort();
    for (int64_t i = 0; i < trailer->pieces; i++)
        if (trailer->holder[i] < -1 || trailer->holder[i] >= trailer->members)
            abort();
}

static void write_again(job_model *model)
{
    job_model *back = NULL;
    void *once = NULL, *twice = NULL;
    size_t size = 0, size_twice = 0;
    uint32_t before = model->check;
    if (job_model_encode(&once, &size, model) < 0 || job_model_decode(&back, model->number, once, size) < 0 ||
        job_model_encode(&twice, &size_twice, back) < 0)
        abort();
    if (size != size_twice || memcmp(once, twice, size) != 0 || before != back->check)
        abort();
    job_model_free(&back);
    base_free(&once);
    base_free(&twice);
}

/* The number that the bytes say, so that what depends on it is reached. */
static int64_t number_in(const uint8_t *bytes, size_t size)
{
    base_reader in = base_reader_of(bytes, size);
    base_read_u64(&in);
    return base_read_i64(&in);
}

static void read_record(const uint8_t *bytes, size_t size)
{
    job_record record;
    void *again = NULL;
    size_t size_again = 0;
    if (job_record_decode(&record, bytes, size) < 0)
        return;
    if (job_record_encode(&again, &size_again, &record) < 0 || size_again != size || memcmp(again, bytes, size) != 0)
        abort();
    base_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    job_model *model = NULL;
    int64_t number = number_in(bytes, size);
    read_record(bytes, size);
    if (job_model_decode(&model, number, bytes, size) < 0) {
        if (model || shoal_error()[0] == '\0')
            abort();
        return 0;
    }
    check(model, number);
    write_again(model);
    job_model_free(&model);
    return 0;
}
