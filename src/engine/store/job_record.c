/* A worker's record as bytes.  See job_record.h. */
#include "engine/store/job_record.h"

#include <string.h>

#include "base/bytes.h"

/* The whole numbers of a record, in the order they are written. */
enum { NUMBERS = 12 };

static void number_places(int64_t *place[NUMBERS], job_record *record)
{
    int64_t *const all[NUMBERS] = {&record->pid,
                                   &record->beats,
                                   &record->round,
                                   &record->rescuing,
                                   &record->deaths,
                                   &record->maps,
                                   &record->doubled,
                                   &record->fetched,
                                   &record->hits,
                                   &record->bytes,
                                   &record->counts.bytes_sent,
                                   &record->counts.bytes_received};
    memcpy(place, all, sizeof all);
}

int job_record_encode(void **out, size_t *size, const job_record *record)
{
    base_writer writer = {0};
    int64_t *place[NUMBERS];
    job_record copy = *record;
    number_places(place, &copy);
    base_write_u64(&writer, record->worker);
    base_write_text(&writer, record->host);
    base_write_text(&writer, record->kernel);
    base_write_text(&writer, record->version);
    base_write_u32(&writer, record->slots);
    base_write_u32(&writer, record->roles);
    base_write_double(&writer, record->seconds);
    for (int i = 0; i < NUMBERS; i++)
        base_write_i64(&writer, *place[i]);
    base_write_double(&writer, record->counts.price);
    for (int i = 0; i < SHOAL_REQUEST_KINDS; i++)
        base_write_i64(&writer, record->counts.requests[i]);
    for (int i = 0; i < SHOAL_CAUSES; i++)
        base_write_i64(&writer, record->counts.causes[i]);
    base_write_text(&writer, record->state);
    base_write_text(&writer, record->log);
    return base_writer_take(&writer, out, size);
}

int job_record_decode(job_record *out, const void *bytes, size_t size)
{
    base_reader in = base_reader_of(bytes, size);
    int64_t *place[NUMBERS];
    memset(out, 0, sizeof *out);
    number_places(place, out);
    out->worker = base_read_u64(&in);
    base_read_text(&in, out->host, sizeof out->host);
    base_read_text(&in, out->kernel, sizeof out->kernel);
    base_read_text(&in, out->version, sizeof out->version);
    out->slots = base_read_u32(&in);
    out->roles = base_read_u32(&in);
    out->seconds = base_read_double(&in);
    for (int i = 0; i < NUMBERS; i++)
        *place[i] = base_read_i64(&in);
    out->counts.price = base_read_double(&in);
    for (int i = 0; i < SHOAL_REQUEST_KINDS; i++)
        out->counts.requests[i] = base_read_i64(&in);
    for (int i = 0; i < SHOAL_CAUSES; i++)
        out->counts.causes[i] = base_read_i64(&in);
    base_read_text(&in, out->state, sizeof out->state);
    base_read_text(&in, out->log, sizeof out->log);
    return base_reader_done(&in) ? SHOAL_OK : shoal_fail(SHOAL_BROKEN, "not a worker's record");
}

/* Texts and numbers of a record take less. */
enum { RECORD_MOST = JOB_LOG_BYTES + 16384 };

int job_record_get(job_record *out, shoal_store *store, const char *key, int64_t deadline)
{
    shoal_blob blob = {0};
    int status = shoal_store_get_framed_within(store, key, JOB_KIND_WORKER, RECORD_MOST, &blob, deadline);
    if (status == SHOAL_MEMORY && blob.whole > 0)
        status = shoal_fail(SHOAL_BROKEN, "it has %lld bytes", (long long)blob.whole);
    if (status == SHOAL_OK)
        status = job_record_decode(out, blob.data, blob.size);
    if (status == SHOAL_BROKEN)
        status = shoal_fail(SHOAL_BROKEN, "%s: %s", key, shoal_error());
    shoal_blob_release(&blob);
    return status;
}
