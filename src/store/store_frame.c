/* The 48 bytes in front of every blob of a job, little-endian:
 *
 *     0  magic "shoalblb"      8  version, 2 bytes     10  bytes of this frame, 2 bytes     12  kind
 *    16  length of the body   24  put id, 16 bytes     40  CRC32C of the body               44  CRC32C of bytes 0 to 43
 *
 * CRC finds accidents, not attackers. */
#include "store_internal.h"

#include <endian.h>
#include <string.h>

#include "base/crc.h"
#include "base/memory.h"
#include "base/world.h"

static const char magic[8] = "shoalblb";
enum { VERSION = 1 };

static void write_u16(unsigned char *out, uint16_t value)
{
    value = htole16(value);
    memcpy(out, &value, sizeof value);
}

static void write_u32(unsigned char *out, uint32_t value)
{
    value = htole32(value);
    memcpy(out, &value, sizeof value);
}

static uint32_t read_u32(const unsigned char *bytes)
{
    uint32_t value;
    memcpy(&value, bytes, sizeof value);
    return le32toh(value);
}

void store_frame_write(unsigned char out[SHOAL_FRAME_BYTES], const store_frame *frame)
{
    uint64_t length = htole64(frame->length);
    memcpy(out, magic, sizeof magic);
    write_u16(out + 8, VERSION);
    write_u16(out + 10, SHOAL_FRAME_BYTES);
    write_u32(out + 12, frame->kind);
    memcpy(out + 16, &length, sizeof length);
    memcpy(out + 24, frame->put_id, STORE_PUT_ID_BYTES);
    write_u32(out + 40, frame->crc);
    write_u32(out + 44, base_crc32c(0, out, 44));
}

bool store_frame_read(store_frame *out, const void *bytes, size_t size, const char **why)
{
    const unsigned char *head = bytes;
    const char *ignored;
    why = why ? why : &ignored;
    if (size < sizeof magic || memcmp(head, magic, sizeof magic) != 0)
        return *why = "it was not written by shoal", false;
    if (size < SHOAL_FRAME_BYTES)
        return *why = "it is truncated", false;
    if (read_u32(head + 44) != base_crc32c(0, head, 44))
        return *why = "its frame is damaged", false;
    if (read_u32(head + 8) != (SHOAL_FRAME_BYTES << 16 | VERSION))
        return *why = "it was written by another version of shoal", false;
    uint64_t length;
    memcpy(&length, head + 16, sizeof length);
    *out = (store_frame){.kind = read_u32(head + 12), .length = le64toh(length), .crc = read_u32(head + 40)};
    memcpy(out->put_id, head + 24, STORE_PUT_ID_BYTES);
    return true;
}

bool store_frame_check(store_frame *out, const void *bytes, size_t size, const char **why)
{
    if (!store_frame_read(out, bytes, size, why))
        return false;
    const char *ignored;
    why = why ? why : &ignored;
    if (out->length != size - SHOAL_FRAME_BYTES)
        return *why = out->length > size - SHOAL_FRAME_BYTES ? "it is truncated" : "it is too long", false;
    if (out->crc != base_crc32c(0, (const char *)bytes + SHOAL_FRAME_BYTES, out->length))
        return *why = "its bytes are damaged", false;
    return true;
}

int store_put_framed(shoal_store *store, const char *key, uint32_t kind, const void *data, size_t size,
                     const shoal_etag *expected, shoal_etag *etag, int64_t deadline)
{
    unsigned char head[SHOAL_FRAME_BYTES];
    store_frame frame = {.kind = kind, .length = size, .crc = base_crc32c(0, data, size)};
    base_entropy(frame.put_id, sizeof frame.put_id);
    store_frame_write(head, &frame);
    const store_body body = {{{head, sizeof head}, {(void *)data, size}}};
    return store_put(store, key, &body, frame.put_id, expected, etag, deadline);
}

/* A kind in readable form. */
static void kind_text(char out[5], uint32_t kind)
{
    for (int i = 0; i < 4; i++)
        out[i] = (char)(kind >> 8 * i);
    out[4] = '\0';
}

int store_unframe(const shoal_store *store, const char *key, uint32_t kind, shoal_blob *out)
{
    store_frame frame;
    const char *why = NULL;
    char wanted[5], found[5];
    int status = SHOAL_OK;
    if (!store_frame_check(&frame, out->data, out->size, &why)) {
        status = store_fail(store, key, SHOAL_BROKEN, "%s", why);
    } else if (frame.kind != kind) {
        kind_text(wanted, kind);
        kind_text(found, frame.kind);
        status = store_fail(store, key, SHOAL_BROKEN, "it is of kind '%s', not '%s'", found, wanted);
    }
    if (status < 0) {
        shoal_blob_release(out);
        return status;
    }
    out->data = (char *)out->data + SHOAL_FRAME_BYTES;
    out->size -= SHOAL_FRAME_BYTES;
    out->whole = (int64_t)out->size;
    return SHOAL_OK;
}

int store_get_framed(shoal_store *store, const char *key, uint32_t kind, shoal_blob *out, int64_t deadline)
{
    const store_range all = {.length = -1};
    int status = store_get(store, key, &all, out, deadline);
    return status == SHOAL_OK ? store_unframe(store, key, kind, out) : status;
}
