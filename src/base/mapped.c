/* Mapped files and the signal that says they shrank.  See mapped.h.
 *
 * The handler may run on any thread at any moment, so it only walks a list whose members never go away: a mapping that
 * is closed becomes an entry without a range, which the next one takes. */
#include "base/mapped.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <shoal/error.h>

#include "base/memory.h"

struct base_mapped {
    atomic_uintptr_t begin, end; /* begin is 0 while there is no range */
    atomic_bool lost;
    base_mapped *next;   /* in the list of all, which never changes behind its head */
    base_mapped *unused; /* in the list of those without a range */
};

static _Atomic(base_mapped *) all;
static base_mapped *unused;
static pthread_mutex_t lock =
    PTHREAD_MUTEX_INITIALIZER; /* of `unused` and of what was earlier; the handler needs none */

/* What handled SIGBUS when ours was put in front of it, each once; others may have come in front of ours since. */
enum { HANDLERS_MOST = 16 };
static struct sigaction earlier[HANDLERS_MOST];
static int handlers;
static atomic_int last; /* the one that ours is in front of */

/* ---- the signal -------------------------------------------------------------------------------------------------- */

/* The mapping that has this address, which stays while the caller reads there. */
static base_mapped *find_mapped(uintptr_t address)
{
    for (base_mapped *mapped = atomic_load(&all); mapped; mapped = mapped->next) {
        uintptr_t begin = atomic_load(&mapped->begin), end = atomic_load(&mapped->end);
        if (begin && address >= begin && address < end && atomic_load(&mapped->begin) == begin)
            return mapped;
    }
    return NULL;
}

/* All of it at once: single pages would be more mappings than a process may have.  The mark comes first, so that nobody
 * sees zeros without it.  By the system call itself, since what sanitizers put before mmap is not for handlers. */
static bool put_zeros(base_mapped *mapped)
{
    uintptr_t begin = atomic_load(&mapped->begin), end = atomic_load(&mapped->end);
    atomic_store(&mapped->lost, true);
    return syscall(SYS_mmap, begin, end - begin, PROT_READ, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
                   0) == (long)begin;
}

/* As if this handler were not there.  By the default action the process ends: at once when the signal was sent, and
 * when an instruction caused it, it does so again. */
static void pass_on(int number, siginfo_t *info, void *context)
{
    static _Thread_local bool passing; /* to one that knows of ours and passes it back: on to the first of all */
    const struct sigaction *to = &earlier[passing ? 0 : atomic_load(&last)];
    bool was_sent = info->si_code <= 0, outer = !passing;
    passing = true;
    if (to->sa_flags & SA_SIGINFO) {
        to->sa_sigaction(number, info, context);
    } else if (to->sa_handler == SIG_DFL || (to->sa_handler == SIG_IGN && !was_sent)) {
        signal(number, SIG_DFL);
        if (was_sent)
            raise(number);
    } else if (to->sa_handler != SIG_IGN) {
        to->sa_handler(number);
    }
    passing = !outer;
}

static void handle_bus(int number, siginfo_t *info, void *context)
{
    int error = errno;
    bool is_file = info->si_code == BUS_ADRERR || info->si_code == BUS_OBJERR;
    base_mapped *mapped = is_file ? find_mapped((uintptr_t)info->si_addr) : NULL;
    if (!mapped || !put_zeros(mapped))
        pass_on(number, info, context);
    errno = error;
}

static bool is_same_handler(const struct sigaction *a, const struct sigaction *b)
{
    bool told = a->sa_flags & SA_SIGINFO;
    return told == !!(b->sa_flags & SA_SIGINFO) &&
           (told ? a->sa_sigaction == b->sa_sigaction : a->sa_handler == b->sa_handler);
}

/* Puts the handler in front of whatever is there, with the lock held.  What it hands on to is known before it can be
 * called. */
static void install(void)
{
    struct sigaction ours = {.sa_sigaction = handle_bus, .sa_flags = SA_SIGINFO | SA_ONSTACK}, now;
    int known = 0;
    sigemptyset(&ours.sa_mask);
    if (sigaction(SIGBUS, NULL, &now) < 0 || is_same_handler(&now, &ours))
        return;
    while (known < handlers && !is_same_handler(&earlier[known], &now))
        known++;
    if (known == HANDLERS_MOST)
        return;
    if (known == handlers)
        earlier[handlers++] = now;
    atomic_store(&last, known);
    sigaction(SIGBUS, &ours, NULL);
}

/* ---- forks ------------------------------------------------------------------------------------------------------- */

/* A fork copies the lock as it is: one that another thread held would be held in the child for ever. */
static void take_lock(void)
{
    pthread_mutex_lock(&lock);
}

static void give_lock(void)
{
    pthread_mutex_unlock(&lock);
}

static void prepare_for_forks(void)
{
    (void)pthread_atfork(take_lock, give_lock, give_lock); /* without memory for it a fork is as it was */
}

/* ---- mappings ---------------------------------------------------------------------------------------------------- */

/* With the handler in its place. */
static int take_entry(base_mapped **out)
{
    static pthread_once_t prepared = PTHREAD_ONCE_INIT;
    pthread_once(&prepared, prepare_for_forks);
    pthread_mutex_lock(&lock);
    install();
    *out = unused;
    if (unused)
        unused = unused->unused;
    pthread_mutex_unlock(&lock);
    if (*out)
        return SHOAL_OK;
    int status = base_alloc(out, 1, sizeof **out, "a mapped file");
    if (status < 0)
        return status;
    (*out)->next = atomic_load(&all);
    while (!atomic_compare_exchange_weak(&all, &(*out)->next, *out))
        ;
    return SHOAL_OK;
}

static void give_entry(base_mapped *mapped)
{
    pthread_mutex_lock(&lock);
    mapped->unused = unused;
    unused = mapped;
    pthread_mutex_unlock(&lock);
}

int base_mapped_open(base_mapped **out, int descriptor, int64_t offset, size_t size, const char *path)
{
    base_mapped *mapped = NULL;
    *out = NULL;
    int status = take_entry(&mapped);
    if (status < 0)
        return status;
    void *bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE, descriptor, (off_t)offset);
    if (bytes == MAP_FAILED) {
        int error = errno;
        give_entry(mapped);
        return shoal_fail_errno(SHOAL_SYSTEM, error, "%s: can't map %zu bytes", path, size);
    }
    atomic_store(&mapped->lost, false);
    atomic_store(&mapped->end, (uintptr_t)bytes + size);
    atomic_store(&mapped->begin, (uintptr_t)bytes);
    *out = mapped;
    return SHOAL_OK;
}

void base_mapped_close(base_mapped **inout)
{
    base_mapped *mapped = *inout;
    if (!mapped)
        return;
    uintptr_t begin = atomic_exchange(&mapped->begin, 0), end = atomic_load(&mapped->end);
    munmap((void *)begin, end - begin);
    give_entry(mapped);
    *inout = NULL;
}

const unsigned char *base_mapped_bytes(const base_mapped *mapped)
{
    return (const unsigned char *)atomic_load(&mapped->begin);
}

size_t base_mapped_size(const base_mapped *mapped)
{
    return atomic_load(&mapped->end) - atomic_load(&mapped->begin);
}

bool base_mapped_is_lost(const base_mapped *mapped)
{
    return atomic_load(&mapped->lost);
}

int base_mapped_check(const base_mapped *mapped, int descriptor, const char *path)
{
    struct stat now;
    size_t size = base_mapped_size(mapped);
    if (fstat(descriptor, &now) == 0 && (uint64_t)now.st_size < size)
        return shoal_fail(SHOAL_INVALID, "%s: the file shrank from %zu to %lld bytes while it was in use", path, size,
                          (long long)now.st_size);
    if (base_mapped_is_lost(mapped))
        return shoal_fail(SHOAL_INVALID, "%s: the file could not be read any more while it was in use", path);
    return SHOAL_OK;
}
