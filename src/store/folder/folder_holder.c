/* Finds the process that holds a lock, from /proc/locks, and wakes it if it is stopped.
 *
 * A process that was stopped (Ctrl-Z, SIGSTOP, a batch system) between entering the gate and leaving it would freeze
 * all others.  It is sent SIGCONT: it continues, lets go a moment later, and nothing is lost, neither its work nor
 * ours.  Killing it would also open the gate, but costs what the process was doing. */
#include "folder_internal.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The bytes of index.db-shm that SQLite locks for a while; every process holds the byte after them while it is
 * there. */
enum { SHM_FIRST = 120, SHM_LAST = 127 };

typedef struct lock_line {
    char kind[16], mode[16];
    long process, first, last;
    unsigned long inode;
} lock_line;

/* "3: FLOCK  ADVISORY  WRITE 1234 fe:00:5678 0 EOF"; false for waiters ("->") and for other lines. */
static bool parse_lock(lock_line *out, const char *line)
{
    char last[24] = "";
    if (sscanf(line, "%*d: %15s %*s %15s %ld %*x:%*x:%lu %ld %23s", out->kind, out->mode, &out->process, &out->inode,
               &out->first, last) != 6)
        return false;
    out->last = strcmp(last, "EOF") == 0 ? -1 : strtol(last, NULL, 10);
    return true;
}

static char process_state(long process)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%ld/stat", process);
    FILE *file = fopen(path, "re");
    size_t size = file ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file)
        fclose(file);
    text[size] = '\0';
    const char *name_end = strrchr(text, ')'); /* the name before it may contain anything */
    return name_end && name_end[1] == ' ' ? name_end[2] : '?';
}

/* Whether the process really has the file open: inode numbers repeat on other disks, and some file systems show another
 * device there than stat does. */
static bool has_open(long process, const struct stat *file)
{
    char path[384];
    bool found = false;
    snprintf(path, sizeof path, "/proc/%ld/fd", process);
    DIR *folder = opendir(path);
    for (struct dirent *entry; folder && !found && (entry = readdir(folder));) {
        struct stat info;
        snprintf(path, sizeof path, "/proc/%ld/fd/%s", process, entry->d_name);
        found = stat(path, &info) == 0 && info.st_dev == file->st_dev && info.st_ino == file->st_ino;
    }
    if (folder)
        closedir(folder);
    return found;
}

static bool is_in_the_way(const lock_line *lock, const char *kind, const struct stat *file)
{
    if (strcmp(lock->kind, kind) != 0 || lock->inode != file->st_ino || lock->process <= 0 ||
        lock->process == (long)getpid())
        return false;
    return strcmp(kind, "FLOCK") == 0 || (lock->last >= SHM_FIRST && lock->first <= SHM_LAST);
}

void folder_wake_holder(const char *kind, const struct stat *file, pid_t *holder, char *state)
{
    char line[256];
    lock_line lock;
    FILE *locks = fopen("/proc/locks", "re");
    *holder = 0;
    while (locks && fgets(line, sizeof line, locks)) {
        if (!parse_lock(&lock, line) || !is_in_the_way(&lock, kind, file))
            continue;
        char found = process_state(lock.process);
        if (*holder == 0 || found == 'T') {
            *holder = (pid_t)lock.process;
            *state = found;
        }
        if (found == 'T' && has_open(lock.process, file))
            kill((pid_t)lock.process, SIGCONT); /* the next attempt at the lock shows whether it helped */
    }
    if (locks)
        fclose(locks);
}

int folder_fail_busy(folder_store *self, const char *key, store_attempt *attempt, pid_t holder, char state)
{
    if (attempt)
        attempt->cause = SHOAL_CAUSE_BUSY;
    if (holder <= 0)
        return store_fail(&self->store, key, SHOAL_AGAIN, "other processes keep the store busy");
    if (state == 'T' || state == 't')
        return store_fail(&self->store, key, SHOAL_AGAIN,
                          "process %ld is stopped and holds the store: continue it (kill -CONT %ld) or end it",
                          (long)holder, (long)holder);
    return store_fail(&self->store, key, SHOAL_AGAIN,
                      "process %ld has held the store for too long: end it if it is stuck", (long)holder);
}
