/* The gate that writers pass one at a time.  SQLite's own way of waiting, trying again after pauses, starves writers;
 * here they sleep until it is their turn.
 *
 * The lock is flock on the file `gate` and nothing else: the kernel gives it back when its holder dies.  Hints in
 * shared memory make it quick and fair; they may be wrong at any time, which costs a few milliseconds.
 *
 * A process may pass again and again while others wait, for a turn of a millisecond: handing over at every put would
 * cost a switch of processes each.  Then it lets another pass first.  Who waits is woken the next time the gate opens;
 * if the holder was back before it, it waits for the end of the turn.  So each has its turns, and nobody is woken much
 * in vain.  Where many wait there are no turns: who leaves wakes the next, and the others sleep long, for a hundred
 * that try every millisecond would leave nothing of the processors to the one that is inside. */
#include "folder_internal.h"

#include <errno.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/world.h"

static const int64_t TURN = 1000000;            /* nanoseconds that a process may pass again while others wait */
static const int64_t YIELD_MOST = 3000000;      /* that it lets others go first */
static const int64_t EAGER_MOST = 10000000;     /* of sleep until woken, in case our waker was killed */
static const int64_t PATIENT_MOST = 1000000;    /* of sleep until the end of a turn */
static const int64_t STOPPED_AFTER = 200000000; /* of waiting until we look for a stopped process, and between looks */
static const int64_t HINT_MOST = 500000000;     /* a time further ahead is garbage, not a hint */
static const int64_t CROWD_STEP = 400000;       /* of sleep until woken for each that waits where many do */
enum { CROWD = 4 };                             /* this many waiters count as many */

/* ---- among the threads of a handle ------------------------------------------------------------------------------- */

/* A lock on a word, since those of pthreads can't wait until a moment of our clock. */
static bool lock_writer(folder_store *self, int64_t deadline)
{
    uint32_t free = 0;
    if (atomic_compare_exchange_strong(&self->writer_lock, &free, 1))
        return true;
    while (atomic_exchange(&self->writer_lock, 2) != 0) {
        if (base_now() >= deadline)
            return false; /* the 2 that stays costs the unlocking thread a needless wake */
        base_wait_word(&self->writer_lock, 2, deadline);
    }
    return true;
}

static void unlock_writer(folder_store *self)
{
    if (atomic_exchange(&self->writer_lock, 0) == 2)
        base_wake_word(&self->writer_lock, 1);
}

/* ---- among processes --------------------------------------------------------------------------------------------- */

static bool is_ahead(const _Atomic int64_t *until, int64_t now)
{
    int64_t value = atomic_load(until);
    return value > now && value - now <= HINT_MOST;
}

/* Moves a time further ahead, unless another has. */
static void raise_until(_Atomic int64_t *until, int64_t value, int64_t now)
{
    int64_t old = atomic_load(until);
    while ((old < value || old - now > HINT_MOST) && !atomic_compare_exchange_weak(until, &old, value))
        ;
}

static void wake_one(folder_shared *shared)
{
    atomic_fetch_add(&shared->released, 1);
    base_wake_word(&shared->released, 1);
}

/* At the end of this process's turn: sleeps until another has passed the gate.  Tells whether it did; who had its turn
 * need not be the next that is woken. */
static bool let_others_pass(folder_store *self, int64_t deadline)
{
    folder_shared *shared = self->shared;
    int64_t now = base_now();
    if (atomic_load(&shared->holder) != self->token || now - self->turn_began < TURN ||
        !is_ahead(&shared->wanted_until, now))
        return false;
    wake_one(shared);
    base_wait_word(&shared->holder, self->token, base_time_first(now + YIELD_MOST, deadline));
    self->turn_began = base_now();
    return true;
}

static bool try_lock(folder_store *self, int *error)
{
    int result;
    do
        result = flock(self->gate, LOCK_EX | LOCK_NB);
    while (result < 0 && errno == EINTR);
    *error = result == 0 || errno == EWOULDBLOCK ? 0 : errno;
    return result == 0;
}

/* Whether it is time to look for a stopped holder: nobody has passed for a while, and no other looks now; or it is the
 * last time. */
static bool may_look(folder_shared *shared, uint32_t *passed, int64_t now, int64_t deadline)
{
    uint32_t count = atomic_load(&shared->passed);
    int64_t looked = atomic_load(&shared->looked_at);
    bool moved = count != *passed;
    *passed = count;
    if (moved || now >= deadline)
        return !moved;
    bool just_looked = looked <= now && now - looked < STOPPED_AFTER / 2;
    return !just_looked && atomic_compare_exchange_strong(&shared->looked_at, &looked, now);
}

/* How long to sleep before the gate is tried again. */
static int64_t gate_patience(folder_shared *shared, bool eager)
{
    int64_t waiters = atomic_load(&shared->waiters);
    int64_t crowded = waiters >= CROWD ? waiters * CROWD_STEP : 0, most = eager ? EAGER_MOST : PATIENT_MOST;
    crowded = crowded < HINT_MOST / 4 ? crowded : HINT_MOST / 4;
    return crowded > most ? crowded : most;
}

/* Sleeps and tries until the gate is ours; eager: to be woken the next time it opens. */
static int sleep_at_gate(folder_store *self, const char *key, bool eager, store_attempt *attempt)
{
    folder_shared *shared = self->shared;
    int64_t now = base_now(), next_look = now + STOPPED_AFTER;
    uint32_t passed = atomic_load(&shared->passed);
    pid_t holder = 0;
    char state = '?';
    for (;; eager = false) {
        uint32_t seen = atomic_load(&shared->released);
        int64_t until = now + gate_patience(shared, eager);
        int error;
        /* Announced before trying, so that a process that opens the gate in between sees it. */
        raise_until(&shared->wanted_until, until, now);
        if (eager)
            raise_until(&shared->eager_until, until, now);
        if (try_lock(self, &error)) {
            raise_until(&shared->eager_until, until, now); /* a waiter is seldom alone */
            return SHOAL_OK;
        }
        if (error)
            return shoal_fail_errno(SHOAL_SYSTEM, error, "%s/gate: can't be locked", self->root);
        if (now >= base_time_first(next_look, attempt->deadline)) {
            struct stat info;
            if (may_look(shared, &passed, now, attempt->deadline) && fstat(self->gate, &info) == 0)
                folder_wake_holder("FLOCK", &info, &holder, &state);
            next_look = now + STOPPED_AFTER;
        }
        if (now >= attempt->deadline)
            return folder_fail_busy(self, key, attempt, holder, state);
        base_wait_word(&shared->released, seen, base_time_first(until, attempt->deadline));
        now = base_now();
    }
}

static int wait_for_gate(folder_store *self, const char *key, bool eager, store_attempt *attempt)
{
    atomic_fetch_add(&self->shared->waiters, 1);
    int status = sleep_at_gate(self, key, eager, attempt);
    uint32_t waiters = atomic_load(&self->shared->waiters); /* another may have set it to 0 */
    while (waiters > 0 && !atomic_compare_exchange_weak(&self->shared->waiters, &waiters, waiters - 1))
        ;
    return status;
}

static void announce_to_all(folder_shared *shared)
{
    for (size_t i = 0; i < STORE_WAKE_WORDS; i++) {
        atomic_fetch_add(&shared->wake.word[i], 1);
        base_wake_word(&shared->wake.word[i], INT_MAX);
    }
    atomic_store(&shared->committing, 0);
}

int folder_enter(folder_store *self, const char *key, store_attempt *attempt)
{
    folder_shared *shared = self->shared;
    int error = 0, status = SHOAL_OK;
    if (!lock_writer(self, attempt->deadline))
        return folder_fail_busy(self, key, attempt, 0, '?');
    bool had_turn = let_others_pass(self, attempt->deadline);
    if (!try_lock(self, &error))
        status = error ? shoal_fail_errno(SHOAL_SYSTEM, error, "%s/gate: can't be locked", self->root)
                       : wait_for_gate(self, key, !had_turn, attempt);
    if (status < 0) {
        unlock_writer(self);
        return status;
    }
    atomic_fetch_add(&shared->passed, 1);
    if (atomic_load(&shared->holder) != self->token) {
        atomic_store(&shared->holder, self->token);
        base_wake_word(&shared->holder, INT_MAX); /* the process that let us pass may wait for its next turn */
        self->turn_began = base_now();
    }
    if (atomic_load(&shared->committing))
        announce_to_all(shared);
    return SHOAL_OK;
}

void folder_leave(folder_store *self)
{
    folder_shared *shared = self->shared;
    flock(self->gate, LOCK_UN);
    int64_t now = base_now();
    bool eager = is_ahead(&shared->eager_until, now), wanted = is_ahead(&shared->wanted_until, now);
    bool crowded = atomic_load(&shared->waiters) >= CROWD;
    if (eager)
        atomic_store(&shared->eager_until, 0);
    if (!wanted && crowded)
        atomic_store(&shared->waiters, 0); /* they were killed */
    if (eager || (wanted && (crowded || now - self->turn_began >= TURN)))
        wake_one(shared);
    unlock_writer(self);
}

/* ---- telling what changed ---------------------------------------------------------------------------------------- */

void folder_announce_begin(folder_store *self)
{
    atomic_store(&self->shared->committing, 1);
}

void folder_announce_end(folder_store *self, const char *key)
{
    if (key)
        store_wake_changed(&self->shared->wake, key);
    atomic_store(&self->shared->committing, 0);
}

bool folder_announce_for_the_dead(folder_store *self)
{
    int error;
    if (!atomic_load(&self->shared->committing))
        return false;
    if (self->gate < 0 || !lock_writer(self, 0)) /* a reader can't tell the others */
        return true;
    if (try_lock(self, &error)) {
        if (atomic_load(&self->shared->committing))
            announce_to_all(self->shared);
        flock(self->gate, LOCK_UN);
    }
    unlock_writer(self);
    return true;
}
