/* A file of 16-byte marks after a line that says what it is, and the same marks in a hash table.  See the header. */
#include "transfer_journal.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <shoal/error.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/hex.h"
#include "base/memory.h"
#include "base/path.h"

/* As long as a mark, so that every mark starts at a multiple of its size. */
static const char magic[TRANSFER_MARK_BYTES + 1] = "shoal-journal-1\n";

typedef struct slot {
    transfer_mark mark;
    bool taken, asked; /* asked: this run had to do with it */
} slot;

struct transfer_journal {
    pthread_mutex_t lock;
    char *path;
    int descriptor;
    slot *slots;
    size_t room, count; /* room is a power of two, at least twice the count */
};

/* ---- marks ------------------------------------------------------------------------------------------------------- */

transfer_mark transfer_mark_of(const char *const *texts)
{
    unsigned char digest[BASE_HASH_SIZE];
    transfer_mark out;
    base_hash hash = {0};
    for (; *texts; texts++)
        base_hash_add(&hash, *texts, strlen(*texts) + 1); /* with its NUL: "ab", "c" is not "a", "bc" */
    base_hash_end(&hash, digest);
    memcpy(out.bytes, digest, sizeof out.bytes);
    return out;
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

/* The slot that has the mark, or the one where it would go. */
static slot *find_mark(transfer_journal *journal, const transfer_mark *mark)
{
    uint64_t hash;
    memcpy(&hash, mark->bytes, sizeof hash);
    for (size_t i = (size_t)hash;; i++) {
        slot *here = &journal->slots[i & (journal->room - 1)];
        if (!here->taken || memcmp(&here->mark, mark, sizeof *mark) == 0)
            return here;
    }
}

static int make_slot_room(transfer_journal *journal)
{
    slot *old = journal->slots;
    size_t old_room = journal->room, room = old_room ? 2 * old_room : 1024;
    if (old && 2 * (journal->count + 1) <= old_room)
        return SHOAL_OK;
    slot *fresh = NULL;
    int status = base_alloc(&fresh, room, sizeof *fresh, "the journal of a transfer");
    if (status < 0)
        return status;
    journal->slots = fresh;
    journal->room = room;
    for (size_t i = 0; i < old_room; i++)
        if (old[i].taken)
            *find_mark(journal, &old[i].mark) = old[i];
    base_free(&old);
    return SHOAL_OK;
}

/* Whether the mark is new.  `asked` as in the slot. */
static int insert_mark(transfer_journal *journal, const transfer_mark *mark, bool asked, bool *is_new)
{
    int status = make_slot_room(journal);
    *is_new = false;
    if (status < 0)
        return status;
    slot *here = find_mark(journal, mark);
    *is_new = !here->taken;
    journal->count += !here->taken;
    *here = (slot){.mark = *mark, .taken = true, .asked = here->asked || asked};
    return SHOAL_OK;
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

static int journal_path(char **out, const char *from, const char *to)
{
    transfer_mark name = transfer_mark_of((const char *const[]){from, to, NULL});
    char text[2 * TRANSFER_MARK_BYTES + 16];
    base_hex_write(text, name.bytes, sizeof name.bytes);
    strcat(text, ".journal");
    return base_user_path(out, BASE_STATE, text, "can't store the journal of the transfer");
}

/* A last mark that is not whole was cut by the end of a process or of the disk's space: the next one is written
 * there. */
static int read_marks(transfer_journal *journal)
{
    struct stat info;
    char start[TRANSFER_MARK_BYTES];
    int status = SHOAL_OK;
    if (fstat(journal->descriptor, &info) < 0)
        return shoal_fail_errno(SHOAL_SYSTEM, errno, "%s: can't read", journal->path);
    off_t size = info.st_size / TRANSFER_MARK_BYTES * TRANSFER_MARK_BYTES, at = TRANSFER_MARK_BYTES;
    bool ours = size > 0 && pread(journal->descriptor, start, sizeof start, 0) == (ssize_t)sizeof start &&
                memcmp(start, magic, sizeof start) == 0;
    if (!ours) {
        if (ftruncate(journal->descriptor, 0) < 0 ||
            write(journal->descriptor, magic, TRANSFER_MARK_BYTES) != TRANSFER_MARK_BYTES)
            return shoal_fail_errno(SHOAL_SYSTEM, errno, "%s: can't write", journal->path);
        return SHOAL_OK;
    }
    if (size != info.st_size && ftruncate(journal->descriptor, size) < 0)
        return shoal_fail_errno(SHOAL_SYSTEM, errno, "%s: can't write", journal->path);
    while (status == SHOAL_OK && at < size) {
        transfer_mark block[512];
        ssize_t got = pread(journal->descriptor, block, sizeof block, at);
        bool is_new;
        if (got < TRANSFER_MARK_BYTES)
            break;
        for (ssize_t i = 0; i < got / TRANSFER_MARK_BYTES && status == SHOAL_OK; i++)
            status = insert_mark(journal, &block[i], false, &is_new);
        at += got / TRANSFER_MARK_BYTES * TRANSFER_MARK_BYTES;
    }
    return status;
}

int transfer_journal_open(transfer_journal **out, const char *from, const char *to)
{
    transfer_journal *journal = NULL;
    int status = base_alloc(&journal, 1, sizeof *journal, "the journal of a transfer");
    if (status < 0)
        return status;
    pthread_mutex_init(&journal->lock, NULL);
    journal->descriptor = -1;
    status = journal_path(&journal->path, from, to);
    if (status == SHOAL_OK)
        status = make_slot_room(journal);
    if (status == SHOAL_OK) {
        base_make_folders_above(journal->path, 0700, NULL); /* whatever is wrong shows when the file is opened */
        journal->descriptor = open(journal->path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (journal->descriptor < 0)
            status = shoal_fail_errno(SHOAL_SYSTEM, errno, "%s: can't write", journal->path);
    }
    if (status == SHOAL_OK)
        status = read_marks(journal);
    if (status < 0)
        transfer_journal_close(&journal, false);
    *out = journal;
    return status;
}

bool transfer_journal_has(transfer_journal *journal, const transfer_mark *mark)
{
    if (!journal)
        return false;
    pthread_mutex_lock(&journal->lock);
    slot *here = find_mark(journal, mark);
    here->asked = here->taken;
    bool has = here->taken;
    pthread_mutex_unlock(&journal->lock);
    return has;
}

void transfer_journal_add(transfer_journal *journal, const transfer_mark *mark)
{
    bool is_new = false;
    if (!journal)
        return;
    pthread_mutex_lock(&journal->lock);
    int status = insert_mark(journal, mark, true, &is_new);
    if (status == SHOAL_OK && is_new && write(journal->descriptor, mark, sizeof *mark) < 0)
        is_new = false; /* the next run will find out by itself that this was done */
    pthread_mutex_unlock(&journal->lock);
}

/* Writes only what this run asked for; when that fails the old file stays, which is as good. */
static void compact_journal(transfer_journal *journal)
{
    base_output *output = NULL;
    int status = base_output_open(&output, journal->path);
    if (status == SHOAL_OK)
        status = base_output_write(output, magic, TRANSFER_MARK_BYTES);
    for (size_t i = 0; i < journal->room && status == SHOAL_OK; i++)
        if (journal->slots[i].taken && journal->slots[i].asked)
            status = base_output_write(output, &journal->slots[i].mark, TRANSFER_MARK_BYTES);
    if (status == SHOAL_OK)
        status = base_output_commit(&output);
    base_output_discard(&output);
}

void transfer_journal_close(transfer_journal **inout, bool all_done)
{
    transfer_journal *journal = *inout;
    size_t asked = 0;
    if (!journal)
        return;
    for (size_t i = 0; i < journal->room; i++)
        asked += journal->slots[i].taken && journal->slots[i].asked;
    if (all_done && asked < journal->count)
        compact_journal(journal);
    if (journal->descriptor >= 0)
        close(journal->descriptor);
    pthread_mutex_destroy(&journal->lock);
    base_free(&journal->slots);
    base_free(&journal->path);
    base_free(inout);
}
