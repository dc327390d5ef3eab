/* Tasks, claims and results as bytes.  See task_wire.h. */
#include "engine/tasks/task_wire.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/hex.h"
#include "base/memory.h"
#include "base/path.h"

/* ---- keys -------------------------------------------------------------------------------------------------------- */

static const char *const folder_of[TASK_PLACES] = {[TASK_WORK] = "todo/", [TASK_TAKE] = "take/", [TASK_DONE] = "done/"};
enum { NUMBER_DIGITS = 16 };

const char task_closed[] = "todo/closed";

job_key task_key_of(const char *id, task_place place, int64_t number)
{
    char name[48];
    snprintf(name, sizeof name, "%s%016llx", folder_of[place], (unsigned long long)number);
    return job_key_of(id, name);
}

job_key task_key_prefix(const char *id, task_place place)
{
    return job_key_of(id, folder_of[place]);
}

job_key task_key_data(const char *id, const unsigned char hash[BASE_HASH_SIZE])
{
    char name[BASE_HASH_HEX + 8] = "data/";
    base_hex_write(name + strlen(name), hash, BASE_HASH_SIZE);
    return job_key_of(id, name);
}

bool task_key_read(task_place *place, int64_t *number, const char *id, const char *key)
{
    for (int i = 0; i < TASK_PLACES; i++) {
        job_key prefix = task_key_prefix(id, (task_place)i);
        size_t length = strlen(prefix.text);
        unsigned char bytes[NUMBER_DIGITS / 2];
        if (strncmp(key, prefix.text, length) != 0 || !base_hex_is(key + length, NUMBER_DIGITS) ||
            !base_hex_read(bytes, sizeof bytes, key + length) || bytes[0] > 0x7f)
            continue;
        *place = (task_place)i;
        *number = 0;
        for (size_t j = 0; j < sizeof bytes; j++)
            *number = *number << 8 | bytes[j];
        return true;
    }
    return false;
}

/* ---- seals ------------------------------------------------------------------------------------------------------- */

static void make_seal(unsigned char out[BASE_MAC_SIZE], const void *bytes, size_t size, const task_seal *seal,
                      uint32_t kind, int64_t number)
{
    unsigned char head[4 + 8 + 1]; /* of fixed size, and the length of the name that follows */
    base_mac mac;
    for (int i = 0; i < 4; i++)
        head[i] = (unsigned char)(kind >> 8 * i);
    for (int i = 0; i < 8; i++)
        head[4 + i] = (unsigned char)((uint64_t)number >> 8 * i);
    head[12] = (unsigned char)strlen(seal->id);
    base_mac_begin(&mac, seal->key, SHOAL_TASK_KEY_BYTES);
    base_mac_add(&mac, head, sizeof head);
    base_mac_add(&mac, seal->id, strlen(seal->id));
    base_mac_add(&mac, bytes, size);
    base_mac_end(&mac, out);
}

void task_seal_write(base_writer *writer, const task_seal *seal, uint32_t kind, int64_t number)
{
    unsigned char code[BASE_MAC_SIZE];
    if (writer->status < 0)
        return;
    make_seal(code, writer->data, writer->size, seal, kind, number);
    base_write_bytes(writer, code, sizeof code);
}

int task_seal_open(base_reader *out, const void *bytes, size_t size, const task_seal *seal, uint32_t kind,
                   int64_t number)
{
    unsigned char code[BASE_MAC_SIZE];
    if (size >= sizeof code) {
        make_seal(code, bytes, size - sizeof code, seal, kind, number);
        if (base_mac_same(code, (const unsigned char *)bytes + size - sizeof code)) {
            *out = base_reader_of(bytes, size - sizeof code);
            return SHOAL_OK;
        }
    }
    return shoal_fail(SHOAL_BROKEN, "it was not written by this client or its workers: its authentication is wrong");
}

/* ---- texts and bytes --------------------------------------------------------------------------------------------- */

/* With its NUL, so that it can be used where it lies. */
static void write_word(base_writer *writer, const char *text)
{
    size_t size = strlen(text) + 1;
    base_write_u32(writer, (uint32_t)size);
    base_write_bytes(writer, text, size);
}

static const char *read_word(base_reader *reader)
{
    uint32_t size = base_read_u32(reader);
    const char *text = size > 0 ? base_read_bytes(reader, size) : NULL;
    if (!text || text[size - 1] != '\0' || strlen(text) != size - 1) {
        reader->bad = true;
        return "";
    }
    return text;
}

static void write_words(base_writer *writer, const char *const *words)
{
    uint32_t count = 0;
    while (words && words[count])
        count++;
    base_write_u32(writer, count);
    for (uint32_t i = 0; i < count; i++)
        write_word(writer, words[i]);
}

static int read_words(const char ***out, base_reader *reader)
{
    uint32_t count = base_read_u32(reader);
    if (count > reader->left / 5) /* a length and a NUL each */
        reader->bad = true;
    if (reader->bad || count == 0)
        return SHOAL_OK;
    int status = base_alloc(out, (size_t)count + 1, sizeof **out, "the words of a task");
    for (uint32_t i = 0; i < count && status == SHOAL_OK; i++)
        (*out)[i] = read_word(reader);
    return status;
}

enum { INSIDE, APART, PLACED };

static void write_bytes(base_writer *writer, const task_bytes *bytes)
{
    base_write_u8(writer, !bytes->apart ? INSIDE : bytes->place ? PLACED : APART);
    base_write_i64(writer, bytes->size);
    if (bytes->apart)
        base_write_bytes(writer, bytes->hash, BASE_HASH_SIZE);
    else if (bytes->size > 0)
        base_write_bytes(writer, bytes->inside, (size_t)bytes->size);
    if (bytes->apart && bytes->place)
        write_word(writer, bytes->place);
}

static void read_bytes(task_bytes *out, base_reader *reader)
{
    uint8_t where = base_read_u8(reader);
    *out = (task_bytes){.apart = where != INSIDE, .size = base_read_i64(reader)};
    if (where > PLACED || out->size < 0) {
        reader->bad = true;
    } else if (!out->apart) {
        out->inside = base_read_bytes(reader, (size_t)out->size);
    } else {
        const void *hash = base_read_bytes(reader, BASE_HASH_SIZE);
        if (hash)
            memcpy(out->hash, hash, BASE_HASH_SIZE);
        out->place = where == PLACED ? read_word(reader) : NULL;
    }
    if (out->place && strncmp(out->place, "out/", 4) != 0)
        reader->bad = true;
}

static int end_decode(const base_reader *reader, int status, const char *what)
{
    return status < 0 || base_reader_done(reader) ? status : shoal_fail(SHOAL_BROKEN, "%s is not well formed", what);
}

/* ---- a client ---------------------------------------------------------------------------------------------------- */

int task_spec_encode(void **out, size_t *size, const task_spec *spec, const task_seal *seal)
{
    base_writer writer = {0};
    base_write_text(&writer, spec->version);
    base_write_double(&writer, spec->lease);
    base_write_double(&writer, spec->keep);
    base_write_u8(&writer, spec->has_module);
    base_write_bytes(&writer, spec->module, sizeof spec->module);
    base_write_i64(&writer, spec->module_size);
    task_seal_write(&writer, seal, TASK_KIND_SPEC, 0);
    return base_writer_take(&writer, out, size);
}

int task_spec_decode(task_spec *out, const void *bytes, size_t size, const task_seal *seal)
{
    base_reader reader;
    int status = task_seal_open(&reader, bytes, size, seal, TASK_KIND_SPEC, 0);
    if (status < 0)
        return status;
    *out = (task_spec){0};
    base_read_text(&reader, out->version, sizeof out->version);
    out->lease = base_read_double(&reader);
    out->keep = base_read_double(&reader);
    out->has_module = base_read_u8(&reader) != 0;
    const void *hash = base_read_bytes(&reader, BASE_HASH_SIZE);
    if (hash)
        memcpy(out->module, hash, BASE_HASH_SIZE);
    out->module_size = base_read_i64(&reader);
    if (!(out->lease > 0) || !(out->keep > 0) || out->module_size < 0)
        reader.bad = true;
    return end_decode(&reader, SHOAL_OK, "the client's description");
}

/* ---- tasks ------------------------------------------------------------------------------------------------------- */

static void write_argument(base_writer *writer, const void *bytes, size_t size, bool apart,
                           const unsigned char (**hash)[BASE_HASH_SIZE])
{
    task_bytes one = {.apart = apart, .size = (int64_t)size, .inside = bytes};
    if (one.apart)
        memcpy(one.hash, *(*hash)++, BASE_HASH_SIZE);
    write_bytes(writer, &one);
}

bool task_is_apart(const shoal_task *task, int file)
{
    return file < 0 ? task->size > TASK_INSIDE_MOST : task->function || task->files[file].size > TASK_INSIDE_MOST;
}

int task_item_encode(void **out, size_t *size, int64_t number, const shoal_task *task,
                     const unsigned char (*hash)[BASE_HASH_SIZE])
{
    base_writer writer = {0};
    base_write_i64(&writer, number);
    base_write_double(&writer, task->timeout);
    base_write_u8(&writer, task->function != NULL);
    if (task->function)
        write_word(&writer, task->function);
    write_words(&writer, task->command);
    write_words(&writer, task->environment);
    write_words(&writer, task->outputs);
    write_argument(&writer, task->bytes, task->size, task_is_apart(task, -1), &hash);
    base_write_u32(&writer, (uint32_t)task->file_count);
    for (int i = 0; i < task->file_count; i++) {
        char name[BASE_HASH_HEX];
        if (task->function)
            base_hex_write(name, *hash, BASE_HASH_SIZE);
        write_word(&writer, task->function ? name : task->files[i].name);
        write_argument(&writer, task->files[i].bytes, task->files[i].size, task_is_apart(task, i), &hash);
    }
    return base_writer_take(&writer, out, size);
}

static int read_files(task_item_file **out, int *count, base_reader *reader)
{
    uint32_t files = base_read_u32(reader);
    if (files > reader->left / 14)
        reader->bad = true;
    if (reader->bad || files == 0)
        return SHOAL_OK;
    int status = base_alloc(out, files, sizeof **out, "the files of a task");
    for (uint32_t i = 0; i < files && status == SHOAL_OK; i++) {
        (*out)[i].name = read_word(reader);
        read_bytes(&(*out)[i].bytes, reader);
        if (!reader->bad && !base_path_stays_below((*out)[i].name))
            reader->bad = true;
        (*count)++;
    }
    return status;
}

static int read_item(task_item *out, base_reader *reader)
{
    out->number = base_read_i64(reader);
    out->timeout = base_read_double(reader);
    if (base_read_u8(reader))
        out->function = read_word(reader);
    int status = read_words(&out->command, reader);
    if (status == SHOAL_OK)
        status = read_words(&out->environment, reader);
    if (status == SHOAL_OK)
        status = read_words(&out->outputs, reader);
    for (int i = 0; status == SHOAL_OK && !reader->bad && out->outputs && out->outputs[i]; i++)
        reader->bad = !base_path_stays_below(out->outputs[i]);
    if (status == SHOAL_OK)
        read_bytes(&out->argument, reader);
    if (status == SHOAL_OK)
        status = read_files(&out->file, &out->files, reader);
    if (!out->function && !out->command)
        reader->bad = true;
    return status;
}

int task_bundle_encode(void **out, size_t *size, const void *const *item, const size_t *bytes, int count,
                       const task_seal *seal, int64_t number)
{
    base_writer writer = {0};
    base_write_u32(&writer, (uint32_t)count);
    for (int i = 0; i < count; i++)
        base_write_bytes(&writer, item[i], bytes[i]);
    task_seal_write(&writer, seal, TASK_KIND_WORK, number);
    return base_writer_take(&writer, out, size);
}

int task_bundle_decode(task_bundle *out, const void *bytes, size_t size, const task_seal *seal, int64_t number)
{
    base_reader reader;
    *out = (task_bundle){0};
    int status = task_seal_open(&reader, bytes, size, seal, TASK_KIND_WORK, number);
    if (status < 0)
        return status;
    uint32_t count = base_read_u32(&reader);
    if (count == 0 || count > TASK_BUNDLE_MOST)
        return shoal_fail(SHOAL_BROKEN, "a bundle of %u tasks is not well formed", count);
    status = base_alloc(&out->item, count, sizeof *out->item, "a bundle of tasks");
    for (uint32_t i = 0; i < count && status == SHOAL_OK && !reader.bad; i++) {
        out->count++;
        status = read_item(&out->item[i], &reader);
    }
    status = end_decode(&reader, status, "a bundle of tasks");
    if (status < 0)
        task_bundle_release(out);
    return status;
}

void task_bundle_release(task_bundle *bundle)
{
    for (int i = 0; i < bundle->count; i++) {
        base_free(&bundle->item[i].command);
        base_free(&bundle->item[i].environment);
        base_free(&bundle->item[i].outputs);
        base_free(&bundle->item[i].file);
    }
    base_free(&bundle->item);
    bundle->count = 0;
}

/* ---- claims ------------------------------------------------------------------------------------------------------ */

int task_claim_encode(void **out, size_t *size, const task_claim *claim, const task_seal *seal, int64_t number)
{
    base_writer writer = {0};
    base_write_u64(&writer, claim->worker);
    base_write_u32(&writer, claim->common);
    base_write_u32(&writer, (uint32_t)claim->index);
    base_write_u32(&writer, claim->alone);
    task_seal_write(&writer, seal, TASK_KIND_TAKE, number);
    return base_writer_take(&writer, out, size);
}

int task_claim_decode(task_claim *out, const void *bytes, size_t size, const task_seal *seal, int64_t number)
{
    base_reader reader;
    int status = task_seal_open(&reader, bytes, size, seal, TASK_KIND_TAKE, number);
    if (status < 0)
        return status;
    out->worker = base_read_u64(&reader);
    out->common = base_read_u32(&reader);
    out->index = (int32_t)base_read_u32(&reader);
    out->alone = base_read_u32(&reader);
    if (out->worker == 0 || out->index < -1 || out->index >= TASK_BUNDLE_MOST)
        reader.bad = true;
    return end_decode(&reader, SHOAL_OK, "a claim");
}

/* ---- results ----------------------------------------------------------------------------------------------------- */

int task_outcome_encode(void **out, size_t *size, const task_outcome *outcome)
{
    base_writer writer = {0};
    base_write_u8(&writer, (uint8_t)outcome->state);
    base_write_u32(&writer, (uint32_t)outcome->status);
    base_write_u32(&writer, (uint32_t)outcome->exit_code);
    base_write_u32(&writer, (uint32_t)outcome->deaths);
    base_write_double(&writer, outcome->seconds);
    write_word(&writer, outcome->host ? outcome->host : "");
    write_word(&writer, outcome->message ? outcome->message : "");
    write_bytes(&writer, &outcome->output);
    base_write_u32(&writer, (uint32_t)outcome->files);
    for (int i = 0; i < outcome->files; i++) {
        write_word(&writer, outcome->file[i].name);
        write_bytes(&writer, &outcome->file[i].bytes);
    }
    return base_writer_take(&writer, out, size);
}

int task_outcome_decode(task_outcome *out, const void *bytes, size_t size)
{
    base_reader reader = base_reader_of(bytes, size);
    *out = (task_outcome){.state = base_read_u8(&reader)};
    out->status = (int)base_read_u32(&reader);
    out->exit_code = (int)base_read_u32(&reader);
    out->deaths = (int)base_read_u32(&reader);
    out->seconds = base_read_double(&reader);
    out->host = read_word(&reader);
    out->message = read_word(&reader);
    read_bytes(&out->output, &reader);
    int status = read_files(&out->file, &out->files, &reader);
    if (out->state < SHOAL_TASK_DONE || out->state >= TASK_STATES || !isfinite(out->seconds))
        reader.bad = true;
    status = end_decode(&reader, status, "a result");
    if (status < 0)
        task_outcome_release(out);
    return status;
}

void task_outcome_release(task_outcome *outcome)
{
    base_free(&outcome->file);
    outcome->files = 0;
}

int task_slots_new(task_slots *out, int count)
{
    *out = (task_slots){.count = count};
    return base_alloc(&out->slot, (size_t)count, sizeof *out->slot, "results");
}

void task_slots_release(task_slots *slots)
{
    for (int i = 0; slots->slot && i < slots->count; i++)
        base_free(&slots->slot[i].bytes);
    base_free(&slots->slot);
    slots->count = 0;
}

bool task_slots_full(const task_slots *slots)
{
    for (int i = 0; i < slots->count; i++)
        if (!slots->slot[i].bytes)
            return false;
    return true;
}

int task_slots_encode(void **out, size_t *size, const task_slots *slots, const task_seal *seal, int64_t number)
{
    base_writer writer = {0};
    base_write_u32(&writer, (uint32_t)slots->count);
    for (int i = 0; i < slots->count; i++) {
        base_write_i64(&writer, (int64_t)slots->slot[i].size);
        base_write_bytes(&writer, slots->slot[i].bytes, slots->slot[i].size);
    }
    task_seal_write(&writer, seal, TASK_KIND_DONE, number);
    return base_writer_take(&writer, out, size);
}

int task_slots_decode(task_slots *out, const void *bytes, size_t size, const task_seal *seal, int64_t number)
{
    base_reader reader;
    *out = (task_slots){0};
    int status = task_seal_open(&reader, bytes, size, seal, TASK_KIND_DONE, number);
    if (status < 0)
        return status;
    uint32_t count = base_read_u32(&reader);
    if (count == 0 || count > TASK_BUNDLE_MOST)
        return shoal_fail(SHOAL_BROKEN, "results of %u tasks are not well formed", count);
    status = task_slots_new(out, (int)count);
    for (int i = 0; i < (int)count && status == SHOAL_OK; i++) {
        int64_t length = base_read_i64(&reader);
        const void *from = length > 0 ? base_read_bytes(&reader, (size_t)length) : NULL;
        if (length < 0)
            reader.bad = true;
        if (from)
            status = base_alloc_unset(&out->slot[i].bytes, (size_t)length, 1, "a result");
        if (from && status == SHOAL_OK) {
            memcpy(out->slot[i].bytes, from, (size_t)length);
            out->slot[i].size = (size_t)length;
        }
    }
    status = end_decode(&reader, status, "results");
    if (status < 0)
        task_slots_release(out);
    return status;
}

int task_slots_get(task_slots *out, shoal_etag *etag, bool *forged, shoal_store *store, const task_seal *seal,
                   int64_t number, int64_t deadline)
{
    job_key key = task_key_of(seal->id, TASK_DONE, number);
    shoal_blob blob = {0};
    *out = (task_slots){0};
    *forged = false;
    int status = shoal_store_get_framed(store, key.text, TASK_KIND_DONE, &blob, deadline);
    if (status == SHOAL_OK) {
        *etag = blob.etag;
        status = task_slots_decode(out, blob.data, blob.size, seal, number);
    } else if (status == SHOAL_BROKEN) { /* its version, for whoever puts something better in its place */
        status = shoal_store_get_range(store, key.text, 0, 0, NULL, NULL, &blob, deadline);
        *etag = blob.etag;
        status = status == SHOAL_OK ? SHOAL_BROKEN : status;
    }
    shoal_blob_release(&blob);
    *forged = status == SHOAL_BROKEN;
    return status == SHOAL_BROKEN ? SHOAL_ABSENT : status;
}

/* Moves what is missing here from `there`, and says whether `there` lacks something. */
static bool take_over(task_slots *slots, int *lost, task_slots *there)
{
    bool lacks = there->count != slots->count;
    for (int i = 0; i < slots->count; i++) {
        struct task_slot *mine = &slots->slot[i], *theirs = i < there->count ? &there->slot[i] : NULL;
        if (!theirs || !theirs->bytes) {
            lacks |= mine->bytes != NULL;
            continue;
        }
        if (mine->bytes && (mine->size != theirs->size || memcmp(mine->bytes, theirs->bytes, mine->size) != 0) && lost)
            (*lost)++;
        base_free(&mine->bytes);
        *mine = *theirs;
        theirs->bytes = NULL;
    }
    return lacks;
}

int task_slots_merge(task_slots *slots, int *lost, shoal_store *store, const task_seal *seal, int64_t number,
                     int64_t deadline)
{
    job_key key = task_key_of(seal->id, TASK_DONE, number);
    shoal_etag etag = shoal_etag_nothing; /* nothing is there, most of the time */
    for (;;) {
        void *bytes = NULL;
        size_t size = 0;
        task_slots there = {0};
        bool forged = false;
        int status = task_slots_encode(&bytes, &size, slots, seal, number);
        if (status == SHOAL_OK)
            status = shoal_store_put_framed(store, key.text, TASK_KIND_DONE, bytes, size, &etag, NULL, deadline);
        base_free(&bytes);
        if (status != SHOAL_CONFLICT && status != SHOAL_UNKNOWN)
            return status;
        status = task_slots_get(&there, &etag, &forged, store, seal, number, deadline);
        if (status == SHOAL_ABSENT) {
            etag = forged ? etag : shoal_etag_nothing;
            continue;
        }
        bool lacks = status < 0 || take_over(slots, lost, &there);
        task_slots_release(&there);
        if (status < 0 || !lacks)
            return status;
    }
}
