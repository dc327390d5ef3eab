/* Requests and answers of the pipe store as bytes.  See pipe_wire.h. */
#include "pipe_wire.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"

/* ---- one list of fields for both ways ---------------------------------------------------------------------------- */

/* Writes when `out` is there, and reads otherwise: so both ways have the same fields in the same order. */
typedef struct codec {
    base_writer *out;
    base_reader *in;
    bool bad;
} codec;

static void flag(codec *codec, bool *value)
{
    if (codec->out) {
        base_write_u8(codec->out, *value);
    } else {
        uint8_t byte = base_read_u8(codec->in);
        codec->bad |= byte > 1;
        *value = byte == 1;
    }
}

static void u8(codec *codec, uint8_t *value)
{
    if (codec->out)
        base_write_u8(codec->out, *value);
    else
        *value = base_read_u8(codec->in);
}

static void u32(codec *codec, uint32_t *value)
{
    if (codec->out)
        base_write_u32(codec->out, *value);
    else
        *value = base_read_u32(codec->in);
}

static void i64(codec *codec, int64_t *value)
{
    if (codec->out)
        base_write_i64(codec->out, *value);
    else
        *value = base_read_i64(codec->in);
}

static void number(codec *codec, double *value)
{
    if (codec->out)
        base_write_double(codec->out, *value);
    else
        *value = base_read_double(codec->in);
    codec->bad |= isnan(*value);
}

static void text(codec *codec, char *value, size_t size)
{
    if (codec->out)
        base_write_text(codec->out, value);
    else
        base_read_text(codec->in, value, size);
}

/* A receipt is any bytes, of which those at its end are mostly zero. */
static void receipt(codec *codec, char *value)
{
    uint32_t length = SHOAL_RECEIPT_BYTES;
    while (codec->out && length > 0 && value[length - 1] == 0)
        length--;
    u32(codec, &length);
    codec->bad |= length > SHOAL_RECEIPT_BYTES;
    if (codec->out) {
        base_write_bytes(codec->out, value, length);
    } else if (!codec->bad) {
        const void *bytes = base_read_bytes(codec->in, length);
        memset(value, 0, SHOAL_RECEIPT_BYTES);
        if (bytes)
            memcpy(value, bytes, length);
    }
}

/* ---- requests ---------------------------------------------------------------------------------------------------- */

static void expected(codec *codec, pipe_request *request)
{
    flag(codec, &request->conditional);
    if (request->conditional)
        text(codec, request->expected.text, sizeof request->expected.text);
}

static void get_fields(codec *codec, pipe_request *request)
{
    i64(codec, &request->offset);
    i64(codec, &request->length);
    text(codec, request->known.text, sizeof request->known.text);
    u32(codec, &request->same_as);
    flag(codec, &request->patient);
    expected(codec, request);
    codec->bad |= request->offset < 0 || request->length < 0;
}

static void list_fields(codec *codec, pipe_request *request)
{
    flag(codec, &request->has_after);
    text(codec, request->after, sizeof request->after);
    text(codec, request->marker, sizeof request->marker);
    u32(codec, &request->page);
}

static void request_fields(codec *codec, pipe_request *request)
{
    uint8_t call = (uint8_t)request->call;
    u8(codec, &call);
    if (codec->in)
        request->call = call;
    flag(codec, &request->data);
    number(codec, &request->seconds);
    u32(codec, &request->number);
    flag(codec, &request->doubt);
    text(codec, request->name, sizeof request->name);
    switch (request->call) {
    case PIPE_GET: get_fields(codec, request); break;
    case PIPE_PUT: expected(codec, request); break;
    case PIPE_LIST: list_fields(codec, request); break;
    case PIPE_TAKE: number(codec, &request->lease); break;
    case PIPE_EXTEND:
        number(codec, &request->lease);
        number(codec, &request->lease_left);
        receipt(codec, request->receipt);
        break;
    case PIPE_FINISH:
        number(codec, &request->lease_left);
        receipt(codec, request->receipt);
        break;
    case PIPE_WAIT: u32(codec, &request->seen); break;
    case PIPE_DESCRIBE:
    case PIPE_REMOVE:
    case PIPE_DISCARD:
    case PIPE_PUSH:
    case PIPE_COUNT:
    case PIPE_DROP: break;
    default: codec->bad = true; break;
    }
}

void pipe_request_write(base_writer *out, const pipe_request *request)
{
    codec codec = {.out = out};
    request_fields(&codec, (pipe_request *)request);
}

bool pipe_request_read(pipe_request *out, const void *bytes, size_t size)
{
    base_reader reader = base_reader_of(bytes, size);
    codec codec = {.in = &reader};
    memset(out, 0, sizeof *out);
    request_fields(&codec, out);
    return !codec.bad && base_reader_done(&reader);
}

/* ---- answers ----------------------------------------------------------------------------------------------------- */

static void status_fields(codec *codec, pipe_answer *answer)
{
    uint8_t status = (uint8_t)-answer->status, cause = (uint8_t)answer->cause;
    u8(codec, &status);
    u8(codec, &cause);
    codec->bad |= status > -SHOAL_BROKEN || cause >= SHOAL_CAUSES;
    if (codec->in) {
        answer->status = -(int)status;
        answer->cause = cause;
    }
    if (answer->status == SHOAL_OK)
        return;
    number(codec, &answer->retry_after);
    text(codec, answer->message, sizeof answer->message);
}

static void answer_fields(codec *codec, pipe_call call, pipe_answer *answer)
{
    status_fields(codec, answer);
    if (answer->status < 0)
        return;
    switch (call) {
    case PIPE_GET:
        text(codec, answer->etag.text, sizeof answer->etag.text);
        i64(codec, &answer->whole);
        number(codec, &answer->age);
        u8(codec, &answer->same);
        codec->bad |= answer->whole < 0 || answer->same > 2;
        break;
    case PIPE_PUT: text(codec, answer->etag.text, sizeof answer->etag.text); break;
    case PIPE_LIST:
        flag(codec, &answer->more);
        text(codec, answer->marker, sizeof answer->marker);
        break;
    case PIPE_TAKE: i64(codec, &answer->number); /* fall through */
    case PIPE_EXTEND: receipt(codec, answer->receipt); break;
    case PIPE_COUNT: i64(codec, &answer->number); break;
    case PIPE_WAIT: u32(codec, &answer->seen); break;
    case PIPE_DESCRIBE:
        flag(codec, &answer->wakes);
        flag(codec, &answer->counts);
        number(codec, &answer->forgets);
        text(codec, answer->store, sizeof answer->store);
        break;
    default: break;
    }
}

void pipe_answer_write(base_writer *out, pipe_call call, const pipe_answer *answer)
{
    codec codec = {.out = out};
    answer_fields(&codec, call, (pipe_answer *)answer);
}

bool pipe_answer_read(pipe_answer *out, pipe_call call, const void *bytes, size_t size)
{
    base_reader reader = base_reader_of(bytes, size);
    codec codec = {.in = &reader};
    memset(out, 0, sizeof *out);
    answer_fields(&codec, call, out);
    return !codec.bad && base_reader_done(&reader);
}

/* ---- listings ---------------------------------------------------------------------------------------------------- */

void pipe_entry_write(base_writer *out, const shoal_entry *entry)
{
    base_write_text(out, entry->key);
    base_write_i64(out, entry->size);
    base_write_text(out, entry->etag.text);
    base_write_double(out, entry->age);
}

int pipe_entries_read(shoal_listing *page, const void *bytes, size_t size)
{
    base_reader in = base_reader_of(bytes, size);
    char key[PIPE_NAME_MOST];
    shoal_etag etag;
    int status = SHOAL_OK;
    while (in.left > 0 && status == SHOAL_OK) {
        base_read_text(&in, key, sizeof key);
        int64_t length = base_read_i64(&in);
        base_read_text(&in, etag.text, sizeof etag.text);
        double age = base_read_double(&in);
        if (in.bad)
            return shoal_fail(SHOAL_INVALID, "the other end of the pipe sent a malformed listing");
        status = store_listing_add(page, key, strlen(key), length, etag.text[0] ? etag.text : NULL);
        status = store_listing_age(page, status, age);
    }
    return status;
}
