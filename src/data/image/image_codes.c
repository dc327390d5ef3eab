/* Counting codes, and the tables that suit the counts.  See image_codes.h. */
#include "image_codes.h"

#include <endian.h>
#include <string.h>

enum { SYMBOLS = 256, LONGEST = 16, BLOCK = 64 };

/* ---- codes ------------------------------------------------------------------------------------------------------- */

/* A symbol, and how many bits its code has together with those that the symbol says follow. */
typedef struct code {
    unsigned char symbol, bits;
} code;

enum { LOOKUP_BITS = 10 /* codes that are longer are rare */ };

typedef struct decoder {
    code begins[1 << LOOKUP_BITS]; /* by the first bits; none: a longer code */
    uint32_t past[LONGEST + 1]; /* of each length: the first 16 bits that no code as long begins with, nor a shorter */
    int next[LONGEST + 1];      /* which value is the first of the next length */
    const data_huffman_table *table;
    int sizes; /* the bits of a symbol that say how many bits follow its code */
} decoder;

static code code_of(const decoder *self, int value, int length)
{
    const unsigned char symbol = self->table->values[value];
    return (code){symbol, (unsigned char)(length + (symbol & self->sizes))};
}

static void init_decoder(decoder *self, const data_huffman_table *table, int sizes)
{
    uint32_t start = 0; /* a code and zeros behind it, 16 bits */
    int value = 0;
    *self = (decoder){.table = table, .sizes = sizes};
    for (int length = 1; length <= LONGEST; length++) {
        for (int i = 0; i < table->counts[length]; i++, value++) {
            const uint32_t past = start + (1u << (LONGEST - length));
            for (; length <= LOOKUP_BITS && start < past; start += 1u << (LONGEST - LOOKUP_BITS))
                self->begins[start >> (LONGEST - LOOKUP_BITS)] = code_of(self, value, length);
            start = past;
        }
        self->past[length] = start;
        self->next[length] = value;
    }
}

static code find_longer(const decoder *self, uint32_t bits)
{
    for (int length = LOOKUP_BITS + 1; length <= LONGEST; length++)
        if (bits < self->past[length])
            return code_of(self, self->next[length] - 1 - (int)((self->past[length] - 1 - bits) >> (LONGEST - length)),
                           length);
    return (code){0};
}

/* ---- bits -------------------------------------------------------------------------------------------------------- */

typedef struct reader {
    const unsigned char *next, *past;
    uint64_t window; /* the next bits, the first one highest */
    int left;        /* how many there are */
    int missing;     /* how many of them, zeros, are not in the file */
} reader;

/* A code and what follows it have 31 bits at most. */
static inline void refill(reader *in)
{
    if (in->left >= 32)
        return;
    if (in->past - in->next >= 8) {
        uint64_t bytes;
        memcpy(&bytes, in->next, sizeof bytes);
        in->window |= be64toh(bytes) >> in->left; /* some bits beyond `left`, too: they will be the same again */
        in->next += (63 - in->left) >> 3;
        in->left += (63 - in->left) & ~7;
        return;
    }
    for (; in->left <= 56 && in->next < in->past; in->left += 8)
        in->window |= (uint64_t)*in->next++ << (56 - in->left);
    if (in->left < 32) {
        in->missing += 32 - in->left;
        in->left = 32;
    }
}

static inline int read_symbol(reader *in, const decoder *by)
{
    refill(in);
    code found = by->begins[in->window >> (64 - LOOKUP_BITS)];
    if (found.bits == 0)
        found = find_longer(by, (uint32_t)(in->window >> (64 - LONGEST)));
    in->window <<= found.bits;
    in->left -= found.bits;
    return found.symbol;
}

/* Segments begin with two bytes of a marker, and two of the length of the rest. */
static size_t segment_size(const unsigned char *bytes)
{
    return 2 + (size_t)(bytes[2] << 8 | bytes[3]);
}

/* What is between the header of the scan and the next marker, without the zero behind each byte of ones. */
static reader open_scan(unsigned char *bytes, size_t size)
{
    enum { START_OF_SCAN = 0xda };
    unsigned char *next = bytes + 2, *past = bytes + size;
    bool header = false;
    while (!header) {
        if (past - next < 4 || (size_t)(past - next) < segment_size(next))
            return (reader){.next = past, .past = past};
        header = next[1] == START_OF_SCAN;
        next += segment_size(next);
    }
    unsigned char *to = next;
    const unsigned char *first = next;
    while (next < past) {
        const unsigned char *ones = memchr(next, 0xff, (size_t)(past - next));
        const size_t run = (size_t)((ones ? ones + 1 : past) - next);
        memmove(to, next, run);
        to += run;
        next += run;
        if (ones && (next == past || *next++ != 0)) { /* a marker */
            to--;
            break;
        }
    }
    return (reader){.next = first, .past = to};
}

/* ---- counting ---------------------------------------------------------------------------------------------------- */

static void count_block(reader *in, int64_t *dc_counts, int64_t *ac_counts, const decoder *dc, const decoder *ac)
{
    reader at = *in;
    dc_counts[read_symbol(&at, dc)]++;
    for (int i = 1; i < BLOCK; i++) {
        const int symbol = read_symbol(&at, ac);
        ac_counts[symbol]++;
        if (symbol == 0) /* the rest is zeros */
            break;
        i += symbol >> 4;
    }
    *in = at;
}

bool data_huffman_count(data_huffman_tallies *tallies, const data_huffman_set *tables, unsigned char *bytes,
                        size_t size, int64_t units, int luminance)
{
    decoder dc[2], ac[2];
    reader in = open_scan(bytes, size);
    for (int kind = 0; kind < 2; kind++) {
        init_decoder(&dc[kind], &tables->dc[kind], 0xff);
        init_decoder(&ac[kind], &tables->ac[kind], 0xf);
    }
    for (int64_t unit = 0; unit < units; unit++) {
        for (int block = 0; block < luminance + 2; block++) {
            const int kind = block >= luminance;
            count_block(&in, tallies->dc[kind], tallies->ac[kind], &dc[kind], &ac[kind]);
        }
        if (in.missing > in.left)
            return false;
    }
    return in.past - in.next + (in.left - in.missing) / 8 == 0;
}

/* ---- tables ------------------------------------------------------------------------------------------------------ */

enum { TREES = SYMBOLS + 1, SPARE = SYMBOLS /* takes the code that would be all ones, which none may have */ };

/* Trees that are not part of another, by falling count, and by growing symbol where counts are equal: so the last is
 * the next to be joined.  Each is a number, its count and how far its symbol is from the last. */
typedef struct forest {
    uint64_t trees[TREES];
    int count;
} forest;

static void plant(forest *in, int64_t count, int symbol)
{
    const uint64_t tree = (uint64_t)count * TREES + (uint64_t)(SPARE - symbol);
    int from = 0, past = in->count;
    while (from < past) {
        const int middle = (from + past) / 2;
        if (in->trees[middle] > tree)
            from = middle + 1;
        else
            past = middle;
    }
    memmove(&in->trees[from + 1], &in->trees[from], (size_t)(in->count++ - from) * sizeof *in->trees);
    in->trees[from] = tree;
}

/* How long the codes of symbols are that occur so often, some of more than 16 bits perhaps. */
static void find_lengths(int lengths[TREES], const int64_t counts[SYMBOLS])
{
    forest in = {.count = 0};
    int next[TREES], last[TREES]; /* of a tree: a list of its symbols, the first of which names it */
    for (int i = 0; i < TREES; i++) {
        lengths[i] = 0;
        next[i] = -1;
        last[i] = i;
        if (i == SPARE || counts[i] > 0)
            plant(&in, i == SPARE ? 1 : counts[i], i);
    }
    while (in.count > 1) {
        const uint64_t least = in.trees[in.count - 1], second = in.trees[in.count - 2];
        const int symbol = SPARE - (int)(least % TREES), other = SPARE - (int)(second % TREES);
        in.count -= 2;
        plant(&in, (int64_t)(least / TREES + second / TREES), symbol);
        next[last[symbol]] = other;
        last[symbol] = last[other];
        for (int i = symbol; i >= 0; i = next[i])
            lengths[i]++;
    }
}

/* Codes that are too long become shorter two by two: one takes the place of both, the other a place below the next
 * shorter code. */
static void limit_lengths(int of_length[TREES])
{
    for (int length = TREES - 1; length > LONGEST; length--)
        while (of_length[length] > 0) {
            int above = length - 2;
            while (of_length[above] == 0)
                above--;
            of_length[length] -= 2;
            of_length[length - 1]++;
            of_length[above + 1] += 2;
            of_length[above]--;
        }
}

static void find_shortest(data_huffman_table *out, const int64_t counts[SYMBOLS])
{
    int lengths[TREES], of_length[TREES] = {0}, first[TREES] = {0}, longest = LONGEST;
    *out = (data_huffman_table){0};
    find_lengths(lengths, counts);
    for (int i = 0; i < TREES; i++)
        of_length[lengths[i]] += lengths[i] > 0;
    for (int length = 1; length < TREES; length++)
        first[length] = first[length - 1] + of_length[length - 1];
    for (int i = 0; i < SYMBOLS; i++)
        if (lengths[i] > 0)
            out->values[first[lengths[i]]++] = (unsigned char)i;
    limit_lengths(of_length);
    while (longest > 1 && of_length[longest] == 0)
        longest--;
    of_length[longest]--; /* the spare one */
    for (int length = 1; length <= LONGEST; length++)
        out->counts[length] = (unsigned char)of_length[length];
}

void data_huffman_shortest(data_huffman_set *out, const data_huffman_tallies *tallies)
{
    for (int kind = 0; kind < 2; kind++) {
        find_shortest(&out->dc[kind], tallies->dc[kind]);
        find_shortest(&out->ac[kind], tallies->ac[kind]);
    }
}
