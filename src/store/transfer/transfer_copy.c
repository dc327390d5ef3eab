/* Copying one blob or file: is it there already, reading it from one end, writing it to the other, reading it back.
 * Called by the threads of transfer.c, each with its own buffer. */
#include "transfer_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/crc.h"
#include "base/memory.h"

/* shoal_fail, preceded by the name of a blob, or of a file if there is no store. */
static int fail_about(const store_place *store, const char *name, int status, const char *format, ...)
    SHOAL_PRINTF(4, 5);

static int fail_about(const store_place *store, const char *name, int status, const char *format, ...)
{
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return store ? store_fail(store->store, name, status, "%s", text) : shoal_fail(status, "%s: %s", name, text);
}

void transfer_free_large(large_file **inout, bool keep)
{
    large_file *large = *inout;
    transfer_part_close(&large->part, keep);
    transfer_free_entry(&large->entry);
    base_free(&large->done);
    base_free(&large->crc);
    base_free(&large->message);
    base_free(inout);
}

/* ---- counting ---------------------------------------------------------------------------------------------------- */

static void count_moved(transfer *self, int64_t bytes)
{
    pthread_mutex_lock(&self->lock);
    self->moved += bytes;
    pthread_mutex_unlock(&self->lock);
}

static transfer_mark done_mark(const transfer_entry *entry, const shoal_etag *there)
{
    return transfer_mark_of(
        (const char *const[]){"done", entry->source, entry->target, entry->version.text, there->text, NULL});
}

static transfer_mark piece_mark(const transfer_entry *entry, int64_t piece, uint32_t crc)
{
    char text[64];
    snprintf(text, sizeof text, "%lld of %d: %08x", (long long)piece, TRANSFER_PIECE, crc);
    return transfer_mark_of(
        (const char *const[]){"piece", entry->source, entry->target, entry->version.text, text, NULL});
}

static void record_done(transfer *self, const transfer_entry *entry, const shoal_etag *there)
{
    transfer_mark mark = done_mark(entry, there);
    if (entry->version.text[0])
        transfer_journal_add(self->journal, &mark);
    pthread_mutex_lock(&self->lock);
    self->report.files++;
    self->report.bytes += entry->size;
    self->out_of_reach = 0;
    pthread_mutex_unlock(&self->lock);
}

/* ---- reading either end ------------------------------------------------------------------------------------------ */

static int64_t request_deadline(const store_place *store)
{
    return shoal_after(store->patience);
}

/* Reads a piece of a blob, of that version if one is given, or of a file.  *got is less than `length` where it ends. */
static int read_piece(const store_place *from, const char *name, const shoal_etag *version, int64_t offset,
                      void *buffer, size_t length, size_t *got)
{
    shoal_blob blob = {0};
    if (!from)
        return transfer_file_read(name, offset, buffer, length, got);
    int status = shoal_store_get_range(from->store, name, offset, (int64_t)length, version->text[0] ? version : NULL,
                                       buffer, &blob, request_deadline(from));
    *got = blob.size;
    shoal_blob_release(&blob);
    return status;
}

/* Whether both ends have the same bytes, which are of the same number. */
static bool has_same_bytes(const transfer *self, const transfer_entry *entry, char *buffer)
{
    enum { HALF = TRANSFER_PIECE / 2 };
    char *other = buffer + HALF;
    for (int64_t at = 0; at < entry->size; at += HALF) {
        size_t got = 0, got_other = 0;
        int64_t left = entry->size - at;
        size_t wanted = left < HALF ? (size_t)left : HALF;
        if (read_piece(entry->from, entry->source, &entry->version, at, buffer, wanted, &got) < 0 ||
            read_piece(self->to, entry->target, &entry->there_version, at, other, wanted, &got_other) < 0)
            return false;
        if (got != wanted || got_other != wanted || memcmp(buffer, other, got) != 0)
            return false;
    }
    return true;
}

static bool is_there_already(transfer *self, const transfer_entry *entry, char *buffer)
{
    transfer_mark mark = done_mark(entry, &entry->there_version);
    if (entry->there != entry->size)
        return false;
    if (entry->version.text[0] && transfer_journal_has(self->journal, &mark))
        return true;
    if (!has_same_bytes(self, entry, buffer))
        return false;
    if (entry->version.text[0])
        transfer_journal_add(self->journal, &mark);
    return true;
}

/* Compares what is at the target with the checksums of what was sent, one for each piece. */
static int verify_target(const transfer *self, const transfer_entry *entry, const shoal_etag *there,
                         const uint32_t *crc, char *buffer)
{
    for (int64_t at = 0, piece = 0; at < entry->size; at += TRANSFER_PIECE, piece++) {
        size_t got = 0;
        int status = read_piece(self->to, entry->target, there, at, buffer, TRANSFER_PIECE, &got);
        if (status < 0)
            return status;
        int64_t left = entry->size - at;
        if ((int64_t)got != (left < TRANSFER_PIECE ? left : TRANSFER_PIECE) ||
            base_crc32c(0, buffer, got) != crc[piece])
            return fail_about(self->to, entry->target, SHOAL_BROKEN,
                              "what was read back from byte %lld on differs from what was written", (long long)at);
    }
    return SHOAL_OK;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

/* A put whose answer was lost, or that someone else came before or after, is as good as done when the bytes are
 * there. */
static int settle_doubt(const transfer *self, transfer_entry *entry, shoal_etag *etag, char *buffer, int status)
{
    shoal_entry found = {0};
    int looked = store_place_find(self->to, entry->target, &found);
    if (looked == SHOAL_OK) {
        entry->there = found.size;
        entry->there_version = *etag = found.etag;
        if (found.size == entry->size && has_same_bytes(self, entry, buffer))
            status = SHOAL_OK;
        else if (status == SHOAL_CONFLICT && self->options->if_absent)
            status = fail_about(self->to, entry->target, status, "already exists, with other content");
        else
            status = fail_about(self->to, entry->target, status, "another writer put something there at the same time");
    }
    base_free(&found.key);
    return looked < 0 ? looked : status;
}

/* Checksums of the pieces of what lies in memory or in a mapping. */
static int checksum_pieces(uint32_t **out, const void *data, size_t size)
{
    size_t pieces = (size + TRANSFER_PIECE - 1) / TRANSFER_PIECE;
    int status = base_alloc(out, pieces, sizeof **out, "checksums");
    for (size_t i = 0; i < pieces && status == SHOAL_OK; i++) {
        size_t at = i * TRANSFER_PIECE, left = size - at;
        (*out)[i] = base_crc32c(0, (const char *)data + at, left < TRANSFER_PIECE ? left : TRANSFER_PIECE);
    }
    return status;
}

/* A file may be written to while it is read. */
static int check_unchanged(const transfer_entry *entry)
{
    shoal_etag version = {""};
    int64_t size = 0;
    int status = transfer_file_version(entry->source, &size, &version);
    if (status == SHOAL_OK && strcmp(version.text, entry->version.text) != 0)
        status = shoal_fail(SHOAL_INVALID, "%s: changed while being read; put it again", entry->source);
    return status;
}

static int put_and_verify(transfer *self, transfer_entry *entry, const void *data, size_t size, char *buffer)
{
    const store_place *to = self->to;
    shoal_etag etag = {""};
    uint32_t *crc = NULL;
    int status =
        self->options->verify ? checksum_pieces(&crc, data, size) : SHOAL_OK; /* before the buffer is used again */
    if (status == SHOAL_OK)
        status = shoal_store_put(to->store, entry->target, data, size, self->options->if_absent ? SHOAL_NOTHING : NULL,
                                 &etag, request_deadline(to));
    if (status == SHOAL_OK && crc)
        status = verify_target(self, entry, &etag, crc, buffer);
    if (status == SHOAL_CONFLICT || status == SHOAL_UNKNOWN)
        status = settle_doubt(self, entry, &etag, buffer, status);
    base_free(&crc);
    if (!entry->from && entry->version.text[0]) { /* also after a failure, of which it may be the cause */
        int changed = check_unchanged(entry);
        status = changed < 0 ? changed : status;
    }
    if (status == SHOAL_OK)
        record_done(self, entry, &etag);
    return status;
}

static int commit_file(transfer *self, const transfer_entry *entry, transfer_part *part, const uint32_t *crc,
                       char *buffer)
{
    shoal_etag version = {""};
    int64_t size = 0;
    int status = transfer_part_commit(part, entry->size);
    if (status == SHOAL_OK)
        status = transfer_file_version(entry->target, &size, &version);
    if (status == SHOAL_OK && size != entry->size)
        status = shoal_fail(SHOAL_BROKEN, "%s: has %lld bytes, not %lld", entry->target, (long long)size,
                            (long long)entry->size);
    if (status == SHOAL_OK && self->options->verify)
        status = verify_target(self, entry, &version, crc, buffer);
    if (status == SHOAL_OK)
        record_done(self, entry, &version);
    return status;
}

/* ---- files to a store -------------------------------------------------------------------------------------------- */

/* One that fits into the buffer is read before anything is put: what changes meanwhile is not stored, and what becomes
 * shorter is told of this file alone. */
static int put_small_file(transfer *self, transfer_entry *entry, char *buffer)
{
    size_t got = 0;
    int status = transfer_file_read(entry->source, 0, buffer, (size_t)entry->size, &got);
    if (status == SHOAL_OK && entry->version.text[0])
        status = check_unchanged(entry);
    if (status == SHOAL_OK && (int64_t)got != entry->size)
        status = shoal_fail(SHOAL_INVALID, "%s: only %zu of %lld bytes could be read", entry->source, got,
                            (long long)entry->size);
    if (status == SHOAL_OK)
        status = put_and_verify(self, entry, buffer, got, buffer);
    if (status == SHOAL_OK)
        count_moved(self, entry->size);
    return status;
}

static int put_file(transfer *self, transfer_entry *entry, char *buffer)
{
    transfer_mapping mapping;
    if (entry->size <= TRANSFER_PIECE)
        return put_small_file(self, entry, buffer);
    int status = transfer_map(&mapping, entry->source);
    if (status == SHOAL_OK) {
        entry->size = (int64_t)mapping.size;
        status = put_and_verify(self, entry, mapping.data, mapping.size, buffer);
    }
    transfer_unmap(&mapping);
    if (status == SHOAL_OK)
        count_moved(self, entry->size);
    return status;
}

/* ---- blobs that fit into the buffer ------------------------------------------------------------------------------ */

static int write_small(transfer *self, transfer_entry *entry, char *buffer)
{
    uint32_t crc = self->options->verify ? base_crc32c(0, buffer, (size_t)entry->size) : 0;
    transfer_part part;
    int status = transfer_part_open(&part, entry->target);
    if (status < 0)
        return status;
    status = transfer_part_write(&part, buffer, (size_t)entry->size, 0);
    if (status == SHOAL_OK)
        status = commit_file(self, entry, &part, &crc, buffer);
    transfer_part_close(&part, false);
    return status;
}

/* Whatever version is there now is the one that is copied; *large when it has grown too large meanwhile. */
static int copy_small(transfer *self, transfer_entry *entry, char *buffer, bool *large)
{
    const store_place *from = entry->from;
    shoal_blob blob = {0};
    int status = shoal_store_get_range(from->store, entry->source, 0, TRANSFER_PIECE, NULL, buffer, &blob,
                                       request_deadline(from));
    if (status < 0)
        return status;
    size_t size = blob.size;
    entry->size = blob.whole;
    entry->version = blob.etag;
    shoal_blob_release(&blob);
    *large = entry->size > TRANSFER_PIECE;
    if (*large)
        return SHOAL_OK;
    if ((int64_t)size != entry->size)
        return fail_about(entry->from, entry->source, SHOAL_BROKEN, "received only %zu of %lld bytes", size,
                          (long long)entry->size);
    /* The target is read back through the same buffer, but only when it has been sent. */
    status = self->to ? put_and_verify(self, entry, buffer, size, buffer) : write_small(self, entry, buffer);
    if (status == SHOAL_OK)
        count_moved(self, (int64_t)size);
    return status;
}

/* ---- blobs in pieces --------------------------------------------------------------------------------------------- */

static int64_t piece_size(const large_file *large, int64_t piece)
{
    int64_t left = large->entry->size - piece * TRANSFER_PIECE;
    return left < TRANSFER_PIECE ? left : TRANSFER_PIECE;
}

/* Finds out which pieces an earlier run has left in the part: those whose checksums are in the journal. */
static void find_old_pieces(transfer *self, large_file *large, char *buffer)
{
    const char *path = large->part.path;
    int64_t size = 0, kept = 0;
    shoal_etag ignored;
    if (!path || transfer_file_version(path, &size, &ignored) < 0)
        return;
    for (int64_t i = 0; i < large->pieces && i * TRANSFER_PIECE < size; i++) {
        size_t wanted = (size_t)piece_size(large, i), got = 0;
        if (transfer_file_read(path, i * TRANSFER_PIECE, buffer, wanted, &got) < 0 || got != wanted)
            continue;
        large->crc[i] = base_crc32c(0, buffer, wanted);
        transfer_mark mark = piece_mark(large->entry, i, large->crc[i]);
        large->done[i] = transfer_journal_has(self->journal, &mark);
        large->left -= large->done[i];
        kept += large->done[i] ? (int64_t)wanted : 0;
    }
    pthread_mutex_lock(&self->lock);
    self->report.resumed += kept;
    self->moved += kept;
    pthread_mutex_unlock(&self->lock);
}

/* The end of a large blob: all pieces are there, or one has failed, or a stop came before. */
static void end_large(transfer *self, large_file *large, char *buffer)
{
    transfer_mapping mapping = {0};
    int status = SHOAL_OK;
    if (large->status < 0) {
        status = shoal_fail(large->status, "%s", large->message ? large->message : "out of memory");
    } else if (large->left == 0 && !self->to) {
        status = commit_file(self, large->entry, &large->part, large->crc, buffer);
    } else if (large->left == 0) {
        status = transfer_map_descriptor(&mapping, large->part.descriptor, "a temporary file");
        if (status == SHOAL_OK)
            status = put_and_verify(self, large->entry, mapping.data, mapping.size, buffer);
        transfer_unmap(&mapping);
    }
    if (status < 0)
        transfer_record_failure(self, status);
    transfer_free_large(&large, true); /* the next run continues from what there is of it */
}

static int begin_large(transfer *self, transfer_entry **inout, char *buffer)
{
    large_file *large = NULL;
    int status = base_alloc(&large, 1, sizeof *large, "a large blob");
    if (status < 0)
        return status;
    large->entry = *inout;
    *inout = NULL;
    large->part.descriptor = -1;
    large->left = large->pieces = (large->entry->size + TRANSFER_PIECE - 1) / TRANSFER_PIECE;
    status = base_alloc(&large->done, (size_t)large->pieces, sizeof *large->done, "a large blob");
    if (status == SHOAL_OK)
        status = base_alloc(&large->crc, (size_t)large->pieces, sizeof *large->crc, "a large blob");
    if (status == SHOAL_OK)
        status = transfer_part_open(&large->part, self->to ? NULL : large->entry->target);
    if (status < 0) {
        transfer_free_large(&large, true);
        return status;
    }
    find_old_pieces(self, large, buffer);
    if (large->left == 0) {
        end_large(self, large, buffer);
        return SHOAL_OK;
    }
    pthread_mutex_lock(&self->lock);
    large->next = self->large;
    self->large = large;
    pthread_cond_broadcast(&self->changed);
    pthread_mutex_unlock(&self->lock);
    return SHOAL_OK;
}

static int fetch_piece(transfer *self, large_file *large, int64_t piece, char *buffer)
{
    transfer_entry *entry = large->entry;
    size_t wanted = (size_t)piece_size(large, piece), got = 0;
    int64_t at = piece * TRANSFER_PIECE;
    int status = read_piece(entry->from, entry->source, &entry->version, at, buffer, wanted, &got);
    if (status == SHOAL_CONFLICT)
        return fail_about(entry->from, entry->source, status, "changed while being copied; copy it again");
    if (status == SHOAL_OK && got != wanted)
        status = fail_about(entry->from, entry->source, SHOAL_BROKEN, "received only %zu of %zu bytes at byte %lld",
                            got, wanted, (long long)at);
    if (status == SHOAL_OK)
        status = transfer_part_write(&large->part, buffer, wanted, at);
    if (status < 0)
        return status;
    large->crc[piece] = base_crc32c(0, buffer, wanted);
    transfer_mark mark = piece_mark(entry, piece, large->crc[piece]);
    if (!self->to)
        transfer_journal_add(self->journal, &mark);
    count_moved(self, (int64_t)wanted);
    return SHOAL_OK;
}

/* Takes a large file off the list when nobody works on it any more and no more of it will be started. */
static bool unlist_if_over(transfer *self, large_file *large)
{
    large_file **link = &self->large;
    if (large->in_hand > 0 || (large->left > 0 && large->status == SHOAL_OK && !self->stopping))
        return false;
    while (*link != large)
        link = &(*link)->next;
    *link = large->next;
    return true;
}

void transfer_copy_piece(transfer *self, large_file *large, int64_t piece, char *buffer)
{
    int status = fetch_piece(self, large, piece, buffer);
    pthread_mutex_lock(&self->lock);
    large->in_hand--;
    if (status < 0 && large->status == SHOAL_OK) {
        large->status = status;
        if (base_copy_text(&large->message, shoal_error()) < 0)
            large->message = NULL;
    }
    bool over = unlist_if_over(self, large);
    pthread_mutex_unlock(&self->lock);
    if (over)
        end_large(self, large, buffer);
}

/* ---- one of them ------------------------------------------------------------------------------------------------- */

/* Takes the entry out of *inout if others continue with it. */
int transfer_copy_entry(transfer *self, transfer_entry **inout, char *buffer)
{
    transfer_entry *entry = *inout;
    bool large = entry->size > TRANSFER_PIECE;
    if (is_there_already(self, entry, buffer)) {
        pthread_mutex_lock(&self->lock);
        self->report.skipped++;
        self->moved += entry->size;
        pthread_mutex_unlock(&self->lock);
        return SHOAL_OK;
    }
    if (self->options->if_absent && entry->there >= 0)
        return fail_about(self->to, entry->target, SHOAL_CONFLICT, "already exists, with other content");
    if (!entry->from)
        return put_file(self, entry, buffer);
    int status = large ? SHOAL_OK : copy_small(self, entry, buffer, &large);
    return status == SHOAL_OK && large ? begin_large(self, inout, buffer) : status;
}
