/* Fuzzes the reader of checkpoints, which lie where others may write.  What is read is whole and is written to the
 * bytes that were read; what is not comes with a sentence and leaves nothing.  It is read as it is, and then with a
 * head that fits: nobody would guess the checksum. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc.h"
#include "base/memory.h"
#include "engine/checkpoint.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

enum { HEAD = 24 };

static void seal(uint8_t *bytes, size_t size)
{
    memcpy(bytes, "shoalckp", 8);
    memcpy(bytes + 8, "\1\0\0", 4);
    for (int i = 0; i < 8; i++)
        bytes[16 + i] = (uint8_t)((uint64_t)size >> 8 * i);
    uint32_t check = base_crc32c(base_crc32c(0, bytes, 12), bytes + 16, size - 16);
    for (int i = 0; i < 4; i++)
        bytes[12 + i] = (uint8_t)(check >> 8 * i);
}

static void write_again(const engine_checkpoint *of, const uint8_t *bytes, size_t size)
{
    void *again = NULL;
    size_t size_again = 0;
    if (engine_checkpoint_encode(&again, &size_again, of) < 0 || size_again != size || memcmp(again, bytes, size) != 0)
        abort();
    base_free(&again);
}

static void read_one(const uint8_t *bytes, size_t size)
{
    engine_checkpoint out;
    int status = engine_checkpoint_decode(&out, bytes, size, "here");
    if (status < 0) {
        if (out.round || strncmp(shoal_error(), "here: ", 6) != 0 || status != SHOAL_BROKEN)
            abort();
        return;
    }
    write_again(&out, bytes, size);
    engine_checkpoint_release(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    read_one(bytes, size);
    if (size < HEAD)
        return 0;
    uint8_t *copy = malloc(size);
    memcpy(copy, bytes, size);
    seal(copy, size);
    read_one(copy, size);
    free(copy);
    return 0;
}
