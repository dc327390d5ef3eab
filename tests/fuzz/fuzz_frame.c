/* Fuzzes the reader of frames.  What passes the check must be exactly what writing the same frame gives. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc.h"
#include "store/store_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* Mends the checksums, so that the fuzzer gets behind them. */
static void mend(uint8_t *bytes, size_t size)
{
    uint32_t crc = base_crc32c(0, bytes + SHOAL_FRAME_BYTES, size - SHOAL_FRAME_BYTES);
    memcpy(bytes + 40, &crc, sizeof crc);
    crc = base_crc32c(0, bytes, 44);
    memcpy(bytes + 44, &crc, sizeof crc);
}

static void check(const uint8_t *bytes, size_t size)
{
    store_frame frame;
    const char *why = NULL;
    unsigned char again[SHOAL_FRAME_BYTES];
    if (!store_frame_check(&frame, bytes, size, &why)) {
        if (!why || !*why)
            abort();
        return;
    }
    store_frame_write(again, &frame);
    if (frame.length != size - SHOAL_FRAME_BYTES || memcmp(again, bytes, sizeof again) != 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    check(bytes, size);
    if (size >= SHOAL_FRAME_BYTES) {
        uint8_t *copy = malloc(size);
        memcpy(copy, bytes, size);
        mend(copy, size);
        check(copy, size);
        free(copy);
    }
    return 0;
}
