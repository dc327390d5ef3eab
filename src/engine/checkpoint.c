/* Checkpoints as bytes, little-endian:
 *
 *     0  magic "shoalckp"     8  version     12  CRC32C of all but these four bytes     16  length of all, 8 bytes
 *    24  identity    56  seconds, rounds; counters; phases, for each: name, seconds, rounds
 *        the round as learn/wire.h has it, then the values of all that it keeps, one after another
 *
 * The first 24 bytes are the same in every version, so that another version can be told from damage, and a file that is
 * something else is refused before the rest is read. */
#include "engine/checkpoint.h"

#include <ctype.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <shoal/store.h>

#include "base/bytes.h"
#include "base/crc.h"
#include "base/file.h"
#include "base/io.h"
#include "base/memory.h"
#include "learn/wire.h"

static const char magic[8] = "shoalckp";
enum { VERSION = 1, CHECK_AT = 12, LENGTH_AT = 16, HEAD_BYTES = 24 };

void engine_checkpoint_release(engine_checkpoint *checkpoint)
{
    shoal_round_free(&checkpoint->round);
    *checkpoint = (engine_checkpoint){0};
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static uint32_t check_of(const unsigned char *bytes, size_t size)
{
    return base_crc32c(base_crc32c(0, bytes, CHECK_AT), bytes + LENGTH_AT, size - LENGTH_AT);
}

/* Room for all of it at once: what a round keeps may be most of the memory. */
static void reserve_checkpoint(base_writer *out, const shoal_round *round)
{
    size_t size = 2 * (sizeof(engine_checkpoint) + sizeof(shoal_round)) + round->model_bytes;
    for (int i = 0; i < round->keeps; i++)
        size += round->kept[i]->bytes + sizeof(shoal_kept);
    base_write_reserve(out, size);
}

static void write_run(base_writer *out, const engine_checkpoint *checkpoint)
{
    base_write_double(out, checkpoint->seconds);
    base_write_i64(out, checkpoint->rounds);
    for (int i = 0; i < SHOAL_COUNTERS; i++)
        base_write_i64(out, checkpoint->counter[i]);
    base_write_u8(out, (uint8_t)checkpoint->phases);
    for (int i = 0; i < checkpoint->phases; i++) {
        base_write_text(out, checkpoint->phase[i].name);
        base_write_double(out, checkpoint->phase[i].seconds);
        base_write_i64(out, checkpoint->phase[i].rounds);
    }
}

/* The round itself is not changed: ranks that write no checkpoint compare theirs with it byte by byte. */
static void write_round(base_writer *out, const shoal_round *round)
{
    uint32_t before[SHOAL_KEPT_MOST];
    for (int i = 0; i < round->keeps; i++) {
        if (!round->kept[i]->values)
            SHOAL_BUG("round %lld of a checkpoint lacks values that it keeps", (long long)round->number);
        before[i] = round->kept[i]->check;
        round->kept[i]->check = base_crc32c(0, round->kept[i]->values, round->kept[i]->bytes);
    }
    learn_round_write(out, round);
    for (int i = 0; i < round->keeps; i++) {
        round->kept[i]->check = before[i];
        base_write_bytes(out, round->kept[i]->values, round->kept[i]->bytes);
    }
}

int engine_checkpoint_encode(void **out, size_t *size, const engine_checkpoint *checkpoint)
{
    base_writer writer = {0};
    *out = NULL;
    reserve_checkpoint(&writer, checkpoint->round);
    base_write_bytes(&writer, magic, sizeof magic);
    base_write_u32(&writer, VERSION);
    base_write_u32(&writer, 0); /* until the rest is known */
    base_write_u64(&writer, 0);
    base_write_bytes(&writer, checkpoint->identity, sizeof checkpoint->identity);
    write_run(&writer, checkpoint);
    write_round(&writer, checkpoint->round);
    if (writer.status == SHOAL_OK) {
        uint64_t length = htole64(writer.size);
        memcpy(writer.data + LENGTH_AT, &length, sizeof length);
        uint32_t check = htole32(check_of(writer.data, writer.size));
        memcpy(writer.data + CHECK_AT, &check, sizeof check);
    }
    return base_writer_take(&writer, out, size);
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* Whether the first bytes are those of a checkpoint that is `size` bytes long. */
static int check_head(const unsigned char *head, uint64_t size, const char *place)
{
    if (size < sizeof magic || memcmp(head, magic, sizeof magic) != 0)
        return shoal_fail(SHOAL_BROKEN, "%s: is not a shoal checkpoint: remove it, or name another file", place);
    if (size < HEAD_BYTES)
        return shoal_fail(SHOAL_BROKEN, "%s: the checkpoint is cut short", place);
    base_reader in = base_reader_of(head + LENGTH_AT, sizeof(uint64_t));
    uint64_t length = base_read_u64(&in);
    if (length != size)
        return shoal_fail(SHOAL_BROKEN, "%s: the checkpoint is %s: it has %llu bytes, and %llu were written", place,
                          length > size ? "cut short" : "too long", (unsigned long long)size,
                          (unsigned long long)length);
    return SHOAL_OK;
}

static int check_whole(const unsigned char *bytes, size_t size, const char *place)
{
    int status = check_head(bytes, size, place);
    if (status < 0)
        return status;
    base_reader in = base_reader_of(bytes + sizeof magic, 2 * sizeof(uint32_t));
    uint32_t version = base_read_u32(&in);
    if (base_read_u32(&in) != check_of(bytes, size))
        return shoal_fail(SHOAL_BROKEN, "%s: the checkpoint is damaged", place);
    if (version != VERSION)
        return shoal_fail(SHOAL_BROKEN, "%s: the checkpoint was written by another version of shoal", place);
    return SHOAL_OK;
}

static double read_seconds(base_reader *in)
{
    double seconds = base_read_double(in);
    in->bad |= !(seconds >= 0 && seconds < INFINITY);
    return seconds;
}

static int64_t read_rounds(base_reader *in)
{
    int64_t rounds = base_read_i64(in);
    in->bad |= rounds < 0;
    return rounds;
}

static void read_run(engine_checkpoint *out, base_reader *in)
{
    out->seconds = read_seconds(in);
    out->rounds = read_rounds(in);
    for (int i = 0; i < SHOAL_COUNTERS; i++)
        out->counter[i] = base_read_i64(in);
    uint8_t phases = base_read_u8(in);
    in->bad |= phases > SHOAL_PHASES_MOST;
    for (; !in->bad && out->phases < phases; out->phases++) {
        shoal_phase *phase = &out->phase[out->phases];
        base_read_text(in, phase->name, sizeof phase->name);
        phase->seconds = read_seconds(in);
        phase->rounds = read_rounds(in);
    }
}

/* The values are known to be there before memory is allocated: a wrong length allocates nothing. */
static int read_kept(shoal_kept *kept, base_reader *in)
{
    const void *values = base_read_bytes(in, kept->bytes);
    in->bad |= !values || base_crc32c(0, values, kept->bytes) != kept->check;
    if (in->bad)
        return SHOAL_BROKEN;
    int status = base_alloc_unset(&kept->values, kept->bytes, 1, "what a round keeps");
    if (status == SHOAL_OK && kept->bytes)
        memcpy(kept->values, values, kept->bytes);
    return status;
}

static int read_body(engine_checkpoint *out, base_reader *in)
{
    const void *identity = base_read_bytes(in, sizeof out->identity);
    if (identity)
        memcpy(out->identity, identity, sizeof out->identity);
    read_run(out, in);
    int status = in->bad ? SHOAL_BROKEN : learn_round_read(&out->round, in);
    for (int i = 0; status == SHOAL_OK && i < out->round->keeps; i++)
        status = read_kept(out->round->kept[i], in);
    return status == SHOAL_OK && !base_reader_done(in) ? SHOAL_BROKEN : status;
}

int engine_checkpoint_decode(engine_checkpoint *out, const void *bytes, size_t size, const char *place)
{
    *out = (engine_checkpoint){0};
    int status = check_whole(bytes, size, place);
    if (status < 0)
        return status;
    base_reader in = base_reader_of((const unsigned char *)bytes + HEAD_BYTES, size - HEAD_BYTES);
    status = read_body(out, &in);
    if (status == SHOAL_BROKEN)
        shoal_fail(status, "%s: the checkpoint is malformed", place);
    if (status < 0)
        engine_checkpoint_release(out);
    return status;
}

/* ---- a file ------------------------------------------------------------------------------------------------------ */

/* Pipes, devices and the file that standard output goes to can't be replaced as a whole. */
static int check_plain(const char *path)
{
    struct stat info;
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode))
        return shoal_fail(SHOAL_SYSTEM, "%s: can't be a checkpoint: it is %s", path,
                          S_ISDIR(info.st_mode) ? "a folder" : "not a plain file");
    if (base_output_descriptor(path) >= 0)
        return shoal_fail(SHOAL_SYSTEM, "%s: can't be a checkpoint: this program prints into it", path);
    return SHOAL_OK;
}

static int put_file(const char *path, const void *bytes, size_t size)
{
    base_output *output = NULL;
    int status = check_plain(path);
    if (status == SHOAL_OK)
        status = base_output_open(&output, path);
    if (status == SHOAL_OK)
        status = base_output_write(output, bytes, size);
    if (status == SHOAL_OK)
        status = base_output_commit_to_disk(&output);
    base_output_discard(&output);
    return status;
}

static int read_exactly(int file, void *out, size_t size, const char *path)
{
    size_t got;
    int error = base_read_all(file, out, size, &got);
    if (error)
        return shoal_fail_errno(SHOAL_SYSTEM, error, "%s: can't read the checkpoint", path);
    return got < size ? shoal_fail(SHOAL_BROKEN, "%s: the checkpoint is cut short", path) : SHOAL_OK;
}

/* Reads the header first, and nothing more of a file that is not a checkpoint, however long it is. */
static int read_file_whole(void **out, size_t *size, int file, const char *path)
{
    struct stat info;
    unsigned char head[HEAD_BYTES] = {0}, *bytes = NULL;
    if (fstat(file, &info) != 0)
        return shoal_fail_errno(SHOAL_SYSTEM, errno, "%s: can't read the checkpoint", path);
    if (!S_ISREG(info.st_mode))
        return check_plain(path);
    *size = (size_t)info.st_size;
    int status = read_exactly(file, head, *size < HEAD_BYTES ? *size : HEAD_BYTES, path);
    if (status == SHOAL_OK)
        status = check_head(head, *size, path);
    if (status == SHOAL_OK)
        status = base_alloc_unset(&bytes, *size, 1, "a checkpoint");
    if (status < 0)
        return status;
    memcpy(bytes, head, HEAD_BYTES);
    status = read_exactly(file, bytes + HEAD_BYTES, *size - HEAD_BYTES, path);
    if (status < 0)
        base_free(&bytes);
    *out = bytes;
    return status;
}

static int get_file(void **out, size_t *size, const char *path)
{
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe must not block us */
    if (file < 0 && errno == ENOENT)
        return shoal_fail(SHOAL_ABSENT, "%s: there is no checkpoint", path);
    if (file < 0)
        return shoal_fail_errno(SHOAL_SYSTEM, errno, "%s: can't read the checkpoint", path);
    int status = read_file_whole(out, size, file, path);
    close(file);
    return status;
}

/* What put would write: a symbolic link stays one. */
static int remove_file(const char *path)
{
    char *behind = NULL;
    int status = base_output_resolve(&behind, path);
    if (status == SHOAL_OK && unlink(behind) != 0 && errno != ENOENT)
        status = shoal_fail_errno(SHOAL_SYSTEM, errno, "%s: can't remove the checkpoint", path);
    base_free(&behind);
    return status;
}

/* ---- a blob in a store ------------------------------------------------------------------------------------------- */

/* Seconds that a request with this many bytes may take over a slow line. */
static double request_patience(size_t size)
{
    return 60 + (double)size / (1 << 20);
}

/* The caller closes them, also after a failure.  Messages come from the store, which knows which parts of a URL may be
 * shown.  A missing store is a failure; it does not mean that there is no checkpoint. */
static int open_blob(shoal_store **store, char **key, const char *url, bool read_only)
{
    int status = shoal_store_open_at(store, key, url, &(shoal_store_options){.read_only = read_only},
                                     shoal_after(request_patience(0)));
    if (status == SHOAL_OK && !**key)
        return shoal_fail(SHOAL_USAGE, "%s: names a store, but no blob in it", url);
    return status == SHOAL_ABSENT
               ? shoal_fail(SHOAL_SYSTEM, "%s: %s; a checkpoint does not create it", url, shoal_error())
               : status;
}

static void close_blob(shoal_store **store, char **key)
{
    shoal_store_close(store);
    shoal_text_free(key);
}

static int put_blob(const char *url, const void *bytes, size_t size)
{
    shoal_store *store = NULL;
    char *key = NULL;
    int status = open_blob(&store, &key, url, false);
    if (status == SHOAL_OK)
        status = shoal_store_put(store, key, bytes, size, NULL, NULL, shoal_after(request_patience(size)));
    close_blob(&store, &key);
    return status;
}

/* As with a file, reads only the header of what is not a checkpoint. */
static int fetch_checkpoint(void **out, size_t *size, shoal_store *store, const char *key, const char *url)
{
    shoal_blob head = {0}, all = {0};
    unsigned char first[HEAD_BYTES] = {0};
    void *bytes = NULL;
    int status = shoal_store_get_range(store, key, 0, HEAD_BYTES, NULL, first, &head, shoal_after(request_patience(0)));
    if (status < 0)
        return status;
    *size = (size_t)head.whole;
    status = check_head(first, *size, url);
    if (status == SHOAL_OK)
        status = base_alloc_unset(&bytes, *size, 1, "a checkpoint");
    if (status == SHOAL_OK)
        status = shoal_store_get_range(store, key, 0, head.whole, &head.etag, bytes, &all,
                                       shoal_after(request_patience(*size)));
    if (status == SHOAL_OK && all.size != *size)
        status = shoal_fail(SHOAL_BROKEN, "%s: the checkpoint is cut short", url);
    shoal_blob_release(&head);
    shoal_blob_release(&all);
    if (status < 0)
        base_free(&bytes);
    *out = bytes;
    return status;
}

static int get_blob(void **out, size_t *size, const char *url)
{
    shoal_store *store = NULL;
    char *key = NULL;
    int status = open_blob(&store, &key, url, true);
    if (status == SHOAL_OK)
        status = fetch_checkpoint(out, size, store, key, url);
    close_blob(&store, &key);
    return status;
}

static int remove_blob(const char *url)
{
    shoal_store *store = NULL;
    char *key = NULL;
    int status = open_blob(&store, &key, url, false);
    if (status == SHOAL_OK)
        status = shoal_store_remove(store, key, shoal_after(request_patience(0)));
    close_blob(&store, &key);
    return status;
}

/* Whether the key is valid and can be read.  Only a put shows whether writing is allowed; it goes beside the key, since
 * a checkpoint may be there already. */
static int check_blob(const char *url)
{
    shoal_store *store = NULL;
    shoal_blob head = {0};
    unsigned char first[HEAD_BYTES];
    char *key = NULL, *beside = NULL;
    int status = open_blob(&store, &key, url, false);
    if (status == SHOAL_OK)
        status = shoal_store_get_range(store, key, 0, HEAD_BYTES, NULL, first, &head, shoal_after(request_patience(0)));
    shoal_blob_release(&head);
    if (status == SHOAL_OK || status == SHOAL_ABSENT)
        status = base_format(&beside, "%s.try", key);
    if (status == SHOAL_OK)
        status = shoal_store_put(store, beside, "", 0, NULL, NULL, shoal_after(request_patience(0)));
    if (status == SHOAL_OK)
        status = shoal_store_remove(store, beside, shoal_after(request_patience(0)));
    base_free(&beside);
    close_blob(&store, &key);
    return status;
}

/* ---- either ------------------------------------------------------------------------------------------------------ */

/* Whether it begins like the URL of a store: with a name and a colon.  A file with such a name is ./NAME. */
static bool is_url(const char *place)
{
    size_t length = 0;
    while (islower((unsigned char)place[length]) || (length > 0 && isdigit((unsigned char)place[length])))
        length++;
    return length > 0 && place[length] == ':';
}

int engine_checkpoint_put(const char *place, const void *bytes, size_t size)
{
    return is_url(place) ? put_blob(place, bytes, size) : put_file(place, bytes, size);
}

int engine_checkpoint_get(void **out, size_t *size, const char *place)
{
    *out = NULL;
    *size = 0;
    int status = is_url(place) ? get_blob(out, size, place) : get_file(out, size, place);
    if (status < 0)
        *size = 0;
    return status;
}

int engine_checkpoint_remove(const char *place)
{
    return is_url(place) ? remove_blob(place) : remove_file(place);
}

int engine_checkpoint_check(const char *place)
{
    if (is_url(place))
        return check_blob(place);
    int status = check_plain(place);
    return status == SHOAL_OK ? base_output_check(place) : status;
}
