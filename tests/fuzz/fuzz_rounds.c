/* Fuzzes what learners do with rounds and partials that somebody else has written.  See forged.h.
 *
 *     byte 0: the run; byte 1: the round; byte 2: whether a stop was asked for; then changes of 5 bytes each:
 *     2 bytes: where (the highest bit: in the partial); 1 byte: which value; 2 bytes: a number for it */
#include "forged.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

enum { CHANGES_MOST = 8 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    forgery change[CHANGES_MOST];
    int changes = 0;
    if (!runs_made)
        make_runs();
    if (size < 3)
        return 0;
    run *of = &runs[bytes[0] % runs_made];
    for (const uint8_t *at = bytes + 3; changes < CHANGES_MOST && at + 5 <= bytes + size; at += 5) {
        uint16_t where = (uint16_t)(at[0] | at[1] << 8);
        change[changes++] = (forgery){
            .partial = where >> 15, .where = where & 0x7fff, .which = at[2], .number = (uint16_t)(at[3] | at[4] << 8)};
    }
    try_forged(of, bytes[1] % of->moments, change, changes, bytes[2] == 1);
    return 0;
}
