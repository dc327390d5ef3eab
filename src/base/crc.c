/* CRC32C, with the processor's own instruction where it has one, by tables elsewhere.  See crc.h.
 *
 * Our own, since zlib and libcrypto have no CRC of this polynomial, and isa-l, which has, is no static library in
 * Debian: the program that is copied to other machines could not be linked.
 *
 * The instruction takes three cycles but one can start in each, so long runs are cut into three lanes that go on side
 * by side.  A lane's checksum is joined to the next one by moving it on over as many zero bytes as that lane is long,
 * which is a multiplication of polynomials: by x to the power of 8 * bytes, modulo the CRC's own. */
#include "crc.h"

#include <endian.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

static const uint32_t polynomial = 0x82f63b78; /* Castagnoli's, with the highest power in the lowest bit */

static struct {
    uint32_t table[8][256]; /* [n][byte]: what a byte leaves behind when n bytes follow */
    uint32_t move_long, move_short;
    bool instruction;
} ready;

static pthread_once_t once = PTHREAD_ONCE_INIT;

/* ---- by tables --------------------------------------------------------------------------------------------------- */

static uint64_t load_u64(const unsigned char *bytes)
{
    uint64_t value;
    memcpy(&value, bytes, sizeof value);
    return le64toh(value);
}

static uint32_t add_byte(uint32_t crc, unsigned char byte)
{
    return crc >> 8 ^ ready.table[0][(crc ^ byte) & 255];
}

static uint32_t add_by_tables(uint32_t crc, const unsigned char *next, size_t size)
{
    for (; size >= 8; size -= 8, next += 8) {
        uint64_t word = load_u64(next) ^ crc;
        crc = 0;
        for (int i = 0; i < 8; i++)
            crc ^= ready.table[7 - i][word >> 8 * i & 255];
    }
    for (; size > 0; size--)
        crc = add_byte(crc, *next++);
    return crc;
}

/* ---- by the instruction ------------------------------------------------------------------------------------------ */

enum { LANE_LONG = 2048, LANE_SHORT = 128 };

#if defined(__x86_64__)

/* x to the power of `exponent`, modulo the polynomial; the coefficient of x^0 is the highest bit. */
static uint32_t power_of_x(int exponent)
{
    uint32_t value = 0x80000000u;
    while (exponent-- > 0)
        value = value >> 1 ^ (value & 1 ? polynomial : 0);
    return value;
}

/* The product of 32 by 32 bits comes out one bit low, and the instruction multiplies by x^32 itself: hence 33 powers
 * less. */
static uint32_t move_over(int bytes)
{
    return power_of_x(8 * bytes - 33);
}

#define WITH_INSTRUCTION __attribute__((target("sse4.2,pclmul")))

WITH_INSTRUCTION static uint64_t moved(uint64_t crc, uint32_t by)
{
    __m128i product = _mm_clmulepi64_si128(_mm_cvtsi64_si128((int64_t)crc), _mm_cvtsi32_si128((int)by), 0);
    return _mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(product));
}

/* Three lanes of `lane` bytes, a multiple of 8. */
WITH_INSTRUCTION static inline uint64_t add_lanes(uint64_t crc, const unsigned char *next, size_t lane, uint32_t move)
{
    uint64_t second = 0, third = 0;
    for (size_t i = 0; i < lane; i += 8) {
        crc = _mm_crc32_u64(crc, load_u64(next + i));
        second = _mm_crc32_u64(second, load_u64(next + lane + i));
        third = _mm_crc32_u64(third, load_u64(next + 2 * lane + i));
    }
    return moved(moved(crc, move) ^ second, move) ^ third;
}

WITH_INSTRUCTION static uint32_t add_by_instruction(uint32_t start, const unsigned char *next, size_t size)
{
    uint64_t crc = start;
    for (; size >= 3 * LANE_LONG; size -= 3 * LANE_LONG, next += 3 * LANE_LONG)
        crc = add_lanes(crc, next, LANE_LONG, ready.move_long);
    for (; size >= 3 * LANE_SHORT; size -= 3 * LANE_SHORT, next += 3 * LANE_SHORT)
        crc = add_lanes(crc, next, LANE_SHORT, ready.move_short);
    for (; size >= 8; size -= 8, next += 8)
        crc = _mm_crc32_u64(crc, load_u64(next));
    for (; size > 0; size--)
        crc = _mm_crc32_u8((uint32_t)crc, *next++);
    return (uint32_t)crc;
}

static void look_at_processor(void)
{
    ready.move_long = move_over(LANE_LONG);
    ready.move_short = move_over(LANE_SHORT);
    ready.instruction = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul");
}
#else
static void look_at_processor(void)
{
}
#define add_by_instruction add_by_tables
#endif

/* ---------------------------------------------------------------------------------------------------------------- */

static void get_ready(void)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? polynomial : 0);
        ready.table[0][byte] = crc;
    }
    for (int n = 1; n < 8; n++)
        for (int byte = 0; byte < 256; byte++)
            ready.table[n][byte] = add_byte(ready.table[n - 1][byte], 0);
    look_at_processor();
}

uint32_t base_crc32c(uint32_t crc, const void *bytes, size_t size)
{
    pthread_once(&once, get_ready);
    return ~(ready.instruction ? add_by_instruction : add_by_tables)(~crc, bytes, size);
}
