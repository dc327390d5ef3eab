/* The embedded store with sync=full when the power goes.
 *
 * A process works on a store while another notes all it asks of the file system (ptrace).  Then, for every moment in
 * between, folders are built as a disk may have them after an outage at that moment: all that was synced, and of the
 * rest, names and sectors alike, nothing, everything, or any part.  In each of them what was acknowledged must be
 * there, and what was not must be there whole or not at all.
 *
 * The disk of this test is as nasty as POSIX lets it be: a file's name is not safe before its folder was synced, a
 * rename between folders may come to light half done, and a write may be torn at any 512 bytes. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <linux/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "store/store_internal.h"
#include "folder_support.h"

enum { LARGE = 20000, SMALL = 300, SECTOR = 512, EVENTS = 8192, FILES = 256, NAME = 160, KEYS = 3, VARIANTS = 3 };

/* Sanitizers make processes so slow to start that only some of the moments are tried under them. */
#ifdef UNDER_ADDRESS_SANITIZER
enum { STRIDE = 11 };
#else
enum { STRIDE = 1 };
#endif

static char folder[64], copy[64], root[96];
static unsigned char bytes[8][LARGE];

static int setup(void **state)
{
    const char *disk = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    (void)state;
    snprintf(folder, sizeof folder, "%s/shoal-power-XXXXXX", disk);
    snprintf(copy, sizeof copy, "%s/shoal-after-XXXXXX", disk);
    if (!mkdtemp(folder) || !mkdtemp(copy))
        return -1;
    snprintf(root, sizeof root, "%s/store", folder);
    for (size_t k = 0; k < 8; k++)
        for (size_t i = 0; i < LARGE; i++)
            bytes[k][i] = (unsigned char)((i + k * 7919) * 2654435761u >> 24);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    return nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS) | nftw(copy, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static int64_t soon(void)
{
    return shoal_after(30);
}

/* ---- what is done ------------------------------------------------------------------------------------------------ */

/* The store after each acknowledgement: the content of each key (0 for none) and its size, and messages in the
 * queue. */
typedef struct world {
    int content[KEYS];
    size_t size[KEYS];
    int messages;
} world;

typedef struct act {
    enum { OPEN, PUT, REMOVE, PUSH, FINISH, CLOSE } what;
    int key, content;
    size_t size;
} act;

static const act acts[] = {
    {OPEN, 0, 0, 0},    {PUT, 0, 1, SMALL}, {PUT, 1, 2, LARGE}, {PUT, 1, 3, LARGE - 1}, {PUSH, 0, 4, LARGE},
    {PUT, 0, 5, LARGE}, {PUT, 2, 6, SMALL}, {REMOVE, 1, 0, 0},  {FINISH, 0, 0, 0},      {PUT, 0, 1, SMALL},
    {CLOSE, 0, 0, 0},   {OPEN, 0, 0, 0},    {PUT, 1, 2, LARGE}, {PUSH, 0, 4, SMALL},    {PUT, 1, 7, LARGE - 2},
    {PUT, 2, 3, SMALL}, {REMOVE, 0, 0, 0},  {PUT, 2, 5, LARGE}, {CLOSE, 0, 0, 0},
};
enum { ACTS = sizeof acts / sizeof *acts };

static world worlds[ACTS + 1];

static void foresee(void)
{
    for (int i = 0; i < ACTS; i++) {
        world *next = &worlds[i + 1];
        *next = worlds[i];
        if (acts[i].what == PUT || acts[i].what == REMOVE) {
            next->content[acts[i].key] = acts[i].content;
            next->size[acts[i].key] = acts[i].size;
        }
        next->messages += (acts[i].what == PUSH) - (acts[i].what == FINISH);
    }
}

static void perform(shoal_store **store, const act *act)
{
    shoal_message message = {0};
    char key[16], url[128];
    snprintf(key, sizeof key, "key/%d", act->key);
    snprintf(url, sizeof url, "dir:%s?sync=full", root);
    switch (act->what) {
    case OPEN: ENSURE(shoal_store_open(store, url, &(shoal_store_options){.create = true}, soon()) == SHOAL_OK); break;
    case PUT:
        ENSURE(shoal_store_put(*store, key, bytes[act->content], act->size, NULL, NULL, soon()) == SHOAL_OK);
        break;
    case REMOVE: ENSURE(shoal_store_remove(*store, key, soon()) == SHOAL_OK); break;
    case PUSH: ENSURE(shoal_store_push(*store, "q", bytes[act->content], act->size, soon()) == SHOAL_OK); break;
    case FINISH:
        ENSURE(shoal_store_take(*store, "q", 60, &message, soon()) == SHOAL_OK);
        ENSURE(shoal_store_finish(*store, "q", &message, soon()) == SHOAL_OK);
        shoal_message_release(&message);
        break;
    case CLOSE: shoal_store_close(store); break;
    }
}

/* ---- taking note of it ------------------------------------------------------------------------------------------- */

/* What was asked of the file system.  Files are known by a number, folders by their path. */
typedef struct event {
    enum { LINK, UNLINK, WRITE, RESIZE, SYNC_FILE, SYNC_FOLDER, ACKNOWLEDGE } what;
    int file; /* -1 for a folder */
    char path[NAME];
    int64_t offset, size;
    unsigned char *data;
} event;

static event *events;
static int event_count;

/* The names as they are now. */
static struct {
    char path[NAME];
    int file;
} names[FILES];
static int name_count, file_count;

static int find_name(const char *path)
{
    for (int i = 0; i < name_count; i++)
        if (strcmp(names[i].path, path) == 0)
            return i;
    return -1;
}

static event *add_event(int what, int file, const char *path)
{
    assert_true(event_count < EVENTS);
    events[event_count] = (event){.what = what, .file = file};
    snprintf(events[event_count].path, NAME, "%s", path);
    return &events[event_count++];
}

static void add_name(const char *path, int file)
{
    int at = find_name(path);
    if (at < 0) {
        at = name_count++;
        assert_true(name_count < FILES);
    }
    snprintf(names[at].path, NAME, "%s", path);
    names[at].file = file;
    add_event(LINK, file, path);
}

static void remove_name(const char *path)
{
    int at = find_name(path);
    if (at < 0)
        return;
    names[at] = names[--name_count];
    add_event(UNLINK, -1, path);
}

/* Whether a path is the store's, and matters: what is only locked or mapped tells nothing. */
static bool matters(const char *path)
{
    static const char *const not [] = {"/gate", "/wake", "/spare", "/index.db-shm"};
    size_t length = strlen(path);
    if (strncmp(path, root, strlen(root)) != 0)
        return strcmp(path, folder) == 0;
    for (size_t i = 0; i < sizeof not / sizeof *not ; i++)
        if (length > strlen(not [i]) && strcmp(path + length - strlen(not [i]), not [i]) == 0)
            return false;
    return true;
}

static void path_of(char out[NAME], pid_t process, int descriptor)
{
    char link[64];
    if (descriptor == AT_FDCWD)
        snprintf(link, sizeof link, "/proc/%d/cwd", (int)process);
    else
        snprintf(link, sizeof link, "/proc/%d/fd/%d", (int)process, descriptor);
    ssize_t length = readlink(link, out, NAME - 1);
    out[length > 0 ? length : 0] = '\0';
}

static void copy_from(pid_t process, void *out, uint64_t from, size_t size)
{
    struct iovec to = {out, size}, at = {(void *)(uintptr_t)from, size};
    assert_int_equal(process_vm_readv(process, &to, 1, &at, 1, 0), size);
}

/* The path that a folder's descriptor and a name in the process's memory mean. */
static void path_at(char out[NAME], pid_t process, uint64_t descriptor, uint64_t name)
{
    char text[NAME] = "", base[NAME];
    for (size_t i = 0; i < NAME - 1; i++) {
        copy_from(process, text + i, name + i, 1);
        if (!text[i])
            break;
    }
    path_of(base, process, (int)descriptor);
    if (text[0] == '/')
        snprintf(out, NAME, "%s", text);
    else
        assert_true(snprintf(out, NAME, "%s/%s", base, text) < NAME);
}

typedef struct call {
    uint64_t number, arguments[6];
    char path[NAME], to[NAME]; /* found at its entry */
} call;

static void note_open(const call *call)
{
    int flags = (int)call->arguments[2];
    if (!matters(call->path) || !(flags & O_CREAT || flags & O_TRUNC))
        return;
    if (find_name(call->path) < 0)
        add_name(call->path, file_count++);
    else if (flags & O_TRUNC)
        add_event(RESIZE, names[find_name(call->path)].file, call->path)->size = 0;
}

static void note_write(pid_t process, const call *call, int64_t written)
{
    int at = find_name(call->path);
    if (!matters(call->path) || at < 0 || names[at].file < 0)
        return;
    static int64_t ends[FILES]; /* where the next write without an offset goes: files are written from their start */
    int64_t offset = call->number == SYS_pwrite64 ? (int64_t)call->arguments[3] : ends[names[at].file];
    ends[names[at].file] = offset + written;
    event *event = add_event(WRITE, names[at].file, call->path);
    event->offset = offset;
    event->size = written;
    event->data = malloc((size_t)written);
    copy_from(process, event->data, call->arguments[1], (size_t)written);
}

static void note_sync(const call *call)
{
    int at = find_name(call->path);
    if (strcmp(call->path, folder) == 0 || (at >= 0 && names[at].file < 0))
        add_event(SYNC_FOLDER, -1, call->path);
    else if (at >= 0)
        add_event(SYNC_FILE, names[at].file, call->path);
}

static void note_rename(const call *call)
{
    int at = find_name(call->path);
    assert_true(at >= 0);
    add_name(call->to, names[at].file);
    remove_name(call->path);
}

/* Takes note of a call that succeeded. */
static void note(pid_t process, const call *call, int64_t result)
{
    int at = find_name(call->path);
    switch (call->number) {
    case SYS_openat: note_open(call); break;
    case SYS_write:
    case SYS_pwrite64: note_write(process, call, result); break;
    case SYS_ftruncate:
        if (matters(call->path) && at >= 0)
            add_event(RESIZE, names[at].file, call->path)->size = (int64_t)call->arguments[1];
        break;
    case SYS_fsync:
    case SYS_fdatasync: note_sync(call); break;
#ifdef SYS_rename
    case SYS_rename:
#endif
    case SYS_renameat:
    case SYS_renameat2: note_rename(call); break;
#ifdef SYS_unlink
    case SYS_unlink:
#endif
    case SYS_unlinkat:
        if (matters(call->path))
            remove_name(call->path);
        break;
#ifdef SYS_mkdir
    case SYS_mkdir:
#endif
    case SYS_mkdirat:
        if (matters(call->path))
            add_name(call->path, -1);
        break;
    default: break;
    }
}

/* Finds the paths of a call while they are what it means. */
static void read_paths(pid_t process, call *call)
{
    call->path[0] = call->to[0] = '\0';
    switch (call->number) {
    case SYS_write:
    case SYS_pwrite64:
    case SYS_ftruncate:
    case SYS_fsync:
    case SYS_fdatasync: path_of(call->path, process, (int)call->arguments[0]); break;
    case SYS_openat:
    case SYS_unlinkat:
    case SYS_mkdirat: path_at(call->path, process, call->arguments[0], call->arguments[1]); break;
    case SYS_renameat:
    case SYS_renameat2:
        path_at(call->path, process, call->arguments[0], call->arguments[1]);
        path_at(call->to, process, call->arguments[2], call->arguments[3]);
        break;
#ifdef SYS_rename
    case SYS_rename:
        path_at(call->path, process, (uint64_t)AT_FDCWD, call->arguments[0]);
        path_at(call->to, process, (uint64_t)AT_FDCWD, call->arguments[1]);
        break;
    case SYS_unlink:
    case SYS_mkdir: path_at(call->path, process, (uint64_t)AT_FDCWD, call->arguments[0]); break;
#endif
    default: break;
    }
}

/* Plays the acts in a child and notes what it asks for; false when nobody may be traced here. */
static bool record(void)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        shoal_store *store = NULL;
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
            _exit(77);
        raise(SIGSTOP);
        for (int i = 0; i < ACTS; i++) {
            perform(&store, &acts[i]);
            kill(0, 0); /* the acknowledgement: a call that is made for nothing else */
        }
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!WIFSTOPPED(status))
        return false;
    ptrace(PTRACE_SETOPTIONS, child, NULL, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
    for (call call = {0};;) {
        struct ptrace_syscall_info info = {0};
        assert_int_equal(ptrace(PTRACE_SYSCALL, child, NULL, NULL), 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        if (!WIFSTOPPED(status))
            break;
        assert_true(ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof info, &info) > 0);
        if (info.op == PTRACE_SYSCALL_INFO_ENTRY) {
            call.number = info.entry.nr;
            memcpy(call.arguments, info.entry.args, sizeof call.arguments);
            read_paths(child, &call);
        } else if (info.op == PTRACE_SYSCALL_INFO_EXIT && !info.exit.is_error) {
            if (call.number == SYS_kill)
                add_event(ACKNOWLEDGE, -1, "");
            else
                note(child, &call, info.exit.rval);
        }
    }
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    return true;
}

/* ---- after an outage --------------------------------------------------------------------------------------------- */

static uint32_t random_next(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*seed >> 33);
}

/* Whether an event was made safe by a later one before the outage. */
static bool is_synced(int at, int outage)
{
    const event *event = &events[at];
    bool is_name = event->what == LINK || event->what == UNLINK;
    size_t parent = (size_t)(strrchr(event->path, '/') - event->path);
    for (int i = at + 1; i < outage; i++) {
        if (is_name && events[i].what == SYNC_FOLDER && strlen(events[i].path) == parent &&
            strncmp(events[i].path, event->path, parent) == 0)
            return true;
        if (!is_name && events[i].what == SYNC_FILE && events[i].file == event->file)
            return true;
    }
    return false;
}

/* Whether something that was not synced is on the disk all the same: never, always, or perhaps. */
static bool is_lucky(int variant, uint64_t *seed)
{
    return variant == 0 ? false : variant == 1 ? true : random_next(seed) % 2;
}

static void write_sectors(int descriptor, const event *event, bool synced, int variant, uint64_t *seed)
{
    for (int64_t done = 0; done < event->size;) {
        int64_t at = event->offset + done, left = SECTOR - at % SECTOR;
        int64_t size = event->size - done < left ? event->size - done : left;
        if (synced || is_lucky(variant, seed))
            assert_int_equal(pwrite(descriptor, event->data + done, (size_t)size, at), size);
        done += size;
    }
}

static void rebuild_file(const char *path, int file, int outage, int variant, uint64_t *seed)
{
    int descriptor = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (descriptor < 0)
        return; /* in a folder that was lost */
    for (int i = 0; i < outage; i++) {
        if (events[i].file != file || (events[i].what != WRITE && events[i].what != RESIZE))
            continue;
        bool synced = is_synced(i, outage);
        if (events[i].what == WRITE)
            write_sectors(descriptor, &events[i], synced, variant, seed);
        else if (synced || is_lucky(variant, seed))
            assert_int_equal(ftruncate(descriptor, events[i].size), 0);
    }
    close(descriptor);
}

/* Makes the folder as a disk may have it when the power goes before event `outage`. */
static void rebuild(int outage, int variant, uint64_t *seed)
{
    static struct {
        char path[NAME];
        int file;
    } found[FILES];
    int count = 0;
    for (int i = 0; i < outage; i++) {
        if ((events[i].what != LINK && events[i].what != UNLINK) || (!is_synced(i, outage) && !is_lucky(variant, seed)))
            continue;
        int at = 0;
        while (at < count && strcmp(found[at].path, events[i].path) != 0)
            at++;
        if (events[i].what == UNLINK && at < count) {
            memmove(&found[at], &found[at + 1], (size_t)(--count - at) * sizeof *found);
        } else if (events[i].what == LINK) {
            memcpy(found[at].path, events[i].path, NAME);
            found[at].file = events[i].file;
            count += at == count;
        }
    }
    for (int i = 0; i < count; i++) {
        char path[2 * NAME];
        snprintf(path, sizeof path, "%s%s", copy, found[i].path + strlen(folder));
        if (found[i].file < 0)
            (void)!mkdir(path, 0700);
        else
            rebuild_file(path, found[i].file, outage, variant, seed);
    }
}

static bool is_state(shoal_store *store, const world *state)
{
    int64_t messages = -1;
    bool same = true;
    for (int i = 0; i < KEYS; i++) {
        shoal_blob blob = {0};
        char key[16];
        snprintf(key, sizeof key, "key/%d", i);
        int status = shoal_store_get(store, key, &blob, soon());
        ENSURE(status == SHOAL_OK || status == SHOAL_ABSENT);
        same &= state->content[i] == 0 ? status == SHOAL_ABSENT
                                       : status == SHOAL_OK && blob.size == state->size[i] &&
                                             memcmp(blob.data, bytes[state->content[i]], blob.size) == 0;
        shoal_blob_release(&blob);
    }
    ENSURE(shoal_store_count(store, "q", &messages, soon()) == SHOAL_OK);
    return same && messages == state->messages;
}

/* In a child: opens what is left and compares.  A caller that was told that the store exists need not create it. */
static void verify(int acknowledged)
{
    shoal_store *store = NULL;
    shoal_message message = {0};
    char url[128];
    snprintf(url, sizeof url, "dir:%s/store?sync=full", copy);
    ENSURE(shoal_store_open(&store, url, &(shoal_store_options){.create = acknowledged == 0}, soon()) == SHOAL_OK);
    ENSURE(is_state(store, &worlds[acknowledged]) ||
           (acknowledged < ACTS && is_state(store, &worlds[acknowledged + 1])));
    for (int left = worlds[acknowledged].messages > 0; left > 0; left--)
        if (shoal_store_take(store, "q", 60, &message, soon()) == SHOAL_OK) {
            ENSURE(memcmp(message.data, bytes[4], message.size) == 0);
            shoal_message_release(&message);
        } else {
            ENSURE(acts[acknowledged].what == FINISH); /* when the power went it had been taken or finished */
        }
    ENSURE(shoal_store_put(store, "after", bytes[0], LARGE, NULL, NULL, soon()) == SHOAL_OK);
    shoal_store_close(&store);
}

static bool survives(int outage, int variant, uint64_t seed, int acknowledged)
{
    int status = 0;
    char path[96];
    snprintf(path, sizeof path, "%s/store", copy);
    if (access(path, F_OK) == 0)
        assert_int_equal(nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS), 0);
    rebuild(outage, variant, &seed);
    pid_t child = fork();
    if (child == 0) {
        verify(acknowledged);
        _exit(0);
    }
    return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void test_the_power_goes(void **state)
{
    int acknowledged = 0, last = 0;
    (void)state;
    events = calloc(EVENTS, sizeof *events);
    foresee();
    if (!record()) {
        print_message("no process may be traced here\n");
        skip();
    }
    for (int outage = 1; outage <= event_count; outage++) {
        acknowledged += events[outage - 1].what == ACKNOWLEDGE;
        for (int variant = 0; variant < VARIANTS; variant++)
            if ((outage + variant) % STRIDE == 0 &&
                !survives(outage, variant, (uint64_t)outage * 1000 + (uint64_t)variant, acknowledged))
                fail_msg("an outage before event %d of %d (after act %d was acknowledged), variant %d", outage,
                         event_count, acknowledged, variant);
        last = acknowledged;
    }
    assert_int_equal(last, ACTS);
    for (int i = 0; i < event_count; i++)
        free(events[i].data);
    free(events);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(test_the_power_goes, setup, teardown)};
    return cmocka_run_group_tests_name("store power", tests, NULL, NULL);
}
