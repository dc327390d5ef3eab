/* Fuzzes what engines read from each other: a result, or a round with a partial of its layout behind it.
 *
 * What is accepted must encode to the bytes that were read.  A partial that is refused must leave the one it was to be
 * merged into as it was, and one that is accepted must be what encoding it once more gives. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "learn/partial.h"
#include "learn/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

enum { ROWS = 64, BYTES_MOST = 1 << 16 };

/* The writer must hold just the bytes that are `size` long; released. */
static void expect_written(base_writer *out, const void *bytes, size_t size)
{
    if (out->status < 0 || out->size != size || memcmp(out->data, bytes, size) != 0)
        abort();
    base_writer_release(out);
}

static void read_result(base_reader in)
{
    const unsigned char *start = in.at;
    shoal_result *result = NULL;
    base_writer out = {0};
    if (learn_result_read(&result, &in) < 0) {
        if (result || !shoal_error()[0])
            abort();
        return;
    }
    learn_result_write(&out, result);
    expect_written(&out, start, (size_t)(in.at - start));
    shoal_result_free(&result);
}

/* Whether a partial of the layout is small enough to be made here. */
static bool is_small(const shoal_layout *layout)
{
    for (int i = 0; i < layout->cells; i++)
        if (layout->cell[i].count > BYTES_MOST / 8 || layout->cell[i].bytes > BYTES_MOST / ROWS)
            return false;
    return true;
}

static void merge_partial(const shoal_layout *layout, base_reader in)
{
    shoal_partial *into = NULL;
    base_writer before = {0}, after = {0};
    const unsigned char *start = in.at;
    if (learn_partial_new(&into, layout, 0, ROWS, NULL) < 0)
        abort();
    learn_partial_write(&before, into);
    uint8_t *mended = malloc(in.left + 1); /* with the hash of the layout, which nobody would guess */
    memcpy(mended, start, in.left);
    if (in.left >= 4)
        memcpy(mended, before.data, 4);
    base_reader from = base_reader_of(mended, in.left);
    int status = learn_partial_merge_read(into, &from);
    learn_partial_write(&after, into);
    if (status < 0)
        expect_written(&after, before.data, before.size);
    else if (learn_partial_settle(into) < 0)
        abort(); /* keys were checked to differ */
    base_writer_release(&after);
    base_writer_release(&before);
    free(mended);
    learn_partial_free(&into);
}

static void read_round(base_reader in)
{
    const unsigned char *start = in.at;
    shoal_round *round = NULL;
    base_writer out = {0};
    if (learn_round_read(&round, &in) < 0) {
        if (round || !shoal_error()[0])
            abort();
        return;
    }
    learn_round_write(&out, round);
    expect_written(&out, start, (size_t)(in.at - start));
    if (is_small(&round->layout))
        merge_partial(&round->layout, in);
    shoal_round_free(&round);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    if (size == 0)
        return 0;
    base_reader in = base_reader_of(bytes + 1, size - 1);
    if (bytes[0] == 0)
        read_round(in);
    else
        read_result(in);
    return 0;
}
