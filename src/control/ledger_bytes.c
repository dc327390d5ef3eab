/* Ledgers as bytes, with their code.  See ledger.h. */
#include <string.h>
#include <shoal/error.h>

#include "base/bytes.h"
#include "base/mac.h"
#include "base/memory.h"
#include "control/ledger.h"

enum { FORMAT = 1 };

static void make_code(unsigned char out[BASE_MAC_SIZE], const void *bytes, size_t size, const char *key,
                      const unsigned char secret[LEDGER_SECRET_BYTES])
{
    static const char purpose[] = "shoal ledger";
    base_mac mac;
    base_mac_begin(&mac, secret, LEDGER_SECRET_BYTES);
    base_mac_add(&mac, purpose, sizeof purpose);
    base_mac_add(&mac, key, strlen(key) + 1);
    base_mac_add(&mac, bytes, size);
    base_mac_end(&mac, out);
}

static void write_entry(base_writer *out, const ledger_entry *entry)
{
    base_write_u64(out, entry->token);
    base_write_u64(out, entry->change);
    base_write_u64(out, entry->maker);
    base_write_u32(out, (uint32_t)entry->state);
    base_write_i64(out, entry->cap);
    base_write_i64(out, entry->allowed);
    base_write_i64(out, entry->wanted);
    base_write_i64(out, entry->around);
    base_write_i64(out, entry->made);
    base_write_i64(out, entry->witnessed);
    base_write_text(out, entry->pool);
    base_write_text(out, entry->job);
    base_write_text(out, entry->machine);
}

int ledger_encode(void **out, size_t *size, const ledger *self, const char *key,
                  const unsigned char secret[LEDGER_SECRET_BYTES])
{
    base_writer bytes = {0};
    unsigned char code[BASE_MAC_SIZE];
    base_write_u32(&bytes, FORMAT);
    base_write_u64(&bytes, self->serial);
    base_write_text(&bytes, self->currency);
    base_write_i64(&bytes, self->budget);
    base_write_i64(&bytes, self->spent);
    base_write_i64(&bytes, self->count);
    for (int64_t i = 0; i < self->count; i++)
        write_entry(&bytes, &self->entry[i]);
    if (bytes.status == SHOAL_OK)
        make_code(code, bytes.data, bytes.size, key, secret);
    base_write_bytes(&bytes, code, bytes.status == SHOAL_OK ? sizeof code : 0);
    return base_writer_take(&bytes, out, size);
}

static bool read_entry(ledger_entry *entry, base_reader *in)
{
    entry->token = base_read_u64(in);
    entry->change = base_read_u64(in);
    entry->maker = base_read_u64(in);
    uint32_t state = base_read_u32(in);
    entry->state = (ledger_state)(state < LEDGER_STATES ? state : 0);
    entry->cap = base_read_i64(in);
    entry->allowed = base_read_i64(in);
    entry->wanted = base_read_i64(in);
    entry->around = base_read_i64(in);
    entry->made = base_read_i64(in);
    entry->witnessed = base_read_i64(in);
    base_read_text(in, entry->pool, sizeof entry->pool);
    base_read_text(in, entry->job, sizeof entry->job);
    base_read_text(in, entry->machine, sizeof entry->machine);
    return state < LEDGER_STATES && entry->token != 0 && entry->cap >= 0 && entry->allowed >= 0 && entry->wanted >= 0 &&
           entry->wanted <= entry->allowed && entry->around >= 0;
}

static bool read_ledger(ledger *out, base_reader *in, int *status)
{
    bool sound = base_read_u32(in) == FORMAT;
    out->serial = base_read_u64(in);
    base_read_text(in, out->currency, sizeof out->currency);
    out->budget = base_read_i64(in);
    out->spent = base_read_i64(in);
    int64_t count = base_read_i64(in);
    if (!sound || in->bad || out->budget < 0 || out->spent < 0 || count < 0 || count > LEDGER_MOST)
        return false;
    *status = base_alloc(&out->entry, (size_t)count, sizeof *out->entry, "a ledger");
    if (*status < 0)
        return false;
    out->room = count;
    for (; out->count < count && sound; out->count++)
        sound = read_entry(&out->entry[out->count], in) && ledger_find(out, out->entry[out->count].token) == NULL;
    return sound && base_reader_done(in);
}

int ledger_decode(ledger *out, const void *bytes, size_t size, const char *key,
                  const unsigned char secret[LEDGER_SECRET_BYTES])
{
    unsigned char code[BASE_MAC_SIZE];
    int status = SHOAL_BROKEN;
    ledger read = {0};
    *out = read;
    if (size < sizeof code)
        return shoal_fail(SHOAL_BROKEN, "%s: this is no ledger", key);
    size_t body = size - sizeof code;
    make_code(code, bytes, body, key, secret);
    if (!base_mac_same(code, (const unsigned char *)bytes + body))
        return shoal_fail(SHOAL_BROKEN, "%s: this is not a ledger that was written with the secret of this budget",
                          key);
    base_reader in = base_reader_of(bytes, body);
    if (!read_ledger(&read, &in, &status)) {
        ledger_release(&read);
        return status == SHOAL_BROKEN || status == SHOAL_OK
                   ? shoal_fail(SHOAL_BROKEN, "%s: this ledger is not in a form that this program knows", key)
                   : status;
    }
    *out = read;
    return SHOAL_OK;
}
