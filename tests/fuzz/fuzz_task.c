/* Fuzzes the readers of what clients of tasks and workers put into stores, by somebody who has the client's key: the
 * first byte chooses the reader, the others are sealed for it.  All texts that are read end, claims and results are
 * written to bytes that read back, and bytes without a seal are never read. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "engine/tasks/task_wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

enum { NUMBER = 3 };
static const unsigned char key[SHOAL_TASK_KEY_BYTES] = "fuzz";
static const task_seal seal = {.id = "fuzz-1", .key = key};
static size_t walked;

static void walk_text(const char *text)
{
    walked += text ? strlen(text) : 0;
}

static void walk_texts(const char **texts)
{
    for (; texts && *texts; texts++)
        walk_text(*texts);
}

static void walk_bytes(const task_bytes *bytes)
{
    if (bytes->size < 0 || (!bytes->apart && bytes->size > 0 && !bytes->inside))
        abort();
    for (int64_t i = 0; !bytes->apart && i < bytes->size; i++)
        walked += ((const unsigned char *)bytes->inside)[i];
    walk_text(bytes->place);
}

static void walk_files(const task_item_file *file, int files)
{
    for (int i = 0; i < files; i++) {
        walk_text(file[i].name);
        walk_bytes(&file[i].bytes);
    }
}

static void read_spec(const void *bytes, size_t size)
{
    task_spec spec;
    if (task_spec_decode(&spec, bytes, size, &seal) == SHOAL_OK)
        walk_text(spec.version);
}

static void read_bundle(const void *bytes, size_t size)
{
    task_bundle bundle = {0};
    if (task_bundle_decode(&bundle, bytes, size, &seal, NUMBER) < 0)
        return;
    for (int i = 0; i < bundle.count; i++) {
        const task_item *item = &bundle.item[i];
        walk_text(item->function);
        walk_texts(item->command);
        walk_texts(item->environment);
        walk_texts(item->outputs);
        walk_files(item->file, item->files);
        walk_bytes(&item->argument);
    }
    task_bundle_release(&bundle);
}

static void read_claim(const void *bytes, size_t size)
{
    task_claim claim, back;
    void *again = NULL;
    size_t again_size = 0;
    if (task_claim_decode(&claim, bytes, size, &seal, NUMBER) < 0)
        return;
    if (task_claim_encode(&again, &again_size, &claim, &seal, NUMBER) < 0 ||
        task_claim_decode(&back, again, again_size, &seal, NUMBER) < 0 || claim.worker != back.worker ||
        claim.common != back.common || claim.index != back.index || claim.alone != back.alone)
        abort();
    base_free(&again);
}

static void read_outcome(const void *bytes, size_t size)
{
    task_outcome outcome = {0};
    if (task_outcome_decode(&outcome, bytes, size) < 0)
        return;
    walk_text(outcome.host);
    walk_text(outcome.message);
    walk_bytes(&outcome.output);
    walk_files(outcome.file, outcome.files);
    task_outcome_release(&outcome);
}

static void read_slots(const void *bytes, size_t size)
{
    task_slots slots = {0}, back = {0};
    void *again = NULL;
    size_t again_size = 0;
    if (task_slots_decode(&slots, bytes, size, &seal, NUMBER) < 0)
        return;
    for (int i = 0; i < slots.count; i++)
        if (slots.slot[i].bytes)
            read_outcome(slots.slot[i].bytes, slots.slot[i].size);
    if (task_slots_encode(&again, &again_size, &slots, &seal, NUMBER) < 0 ||
        task_slots_decode(&back, again, again_size, &seal, NUMBER) < 0 || back.count != slots.count)
        abort();
    base_free(&again);
    task_slots_release(&slots);
    task_slots_release(&back);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const struct {
        void (*read)(const void *bytes, size_t size);
        uint32_t kind; /* 0: without a seal */
        int64_t number;
    } readers[] = {{read_spec, TASK_KIND_SPEC, 0},
                   {read_bundle, TASK_KIND_WORK, NUMBER},
                   {read_claim, TASK_KIND_TAKE, NUMBER},
                   {read_slots, TASK_KIND_DONE, NUMBER},
                   {read_outcome, 0, 0}};
    enum { READERS = sizeof readers / sizeof *readers };
    if (size == 0)
        return 0;
    const int which = bytes[0] % READERS;
    base_writer writer = {0};
    void *sealed = NULL;
    size_t sealed_size = 0;
    base_reader inside;
    base_write_bytes(&writer, bytes + 1, size - 1);
    if (readers[which].kind) {
        if (task_seal_open(&inside, bytes + 1, size - 1, &seal, readers[which].kind, readers[which].number) == SHOAL_OK)
            abort();
        task_seal_write(&writer, &seal, readers[which].kind, readers[which].number);
    }
    if (base_writer_take(&writer, &sealed, &sealed_size) == SHOAL_OK)
        readers[which].read(sealed, sealed_size);
    base_free(&sealed);
    return 0;
}
