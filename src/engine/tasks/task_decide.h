/* What becomes of tasks, decided without a store, a clock or a thread: which bundle a worker takes next, whose claim
 * has lapsed, which task has killed too many, how many tasks travel together.
 *
 * Tasks travel in *bundles*, which are numbered.  A worker claims a bundle by a blob that is put only if absent; the
 * claim of a dead worker is inherited by a compare-and-swap, and carries how many died before.  A bundle in which a
 * worker died is run one task at a time, and the claim says which, so that the next death has a culprit. */
#ifndef TASK_DECIDE_H
#define TASK_DECIDE_H

#include <stdbool.h>
#include <stdint.h>

/* ---- claims ------------------------------------------------------------------------------------------------------ */

typedef struct task_claim {
    uint64_t worker; /* who runs the bundle */
    uint32_t common; /* workers that died one after another while they ran any of its tasks */
    int32_t index;   /* the one task that is running; -1: any of them may be */
    uint32_t alone;  /* workers that died one after another while they ran that one alone */
} task_claim;

/* The claim on a bundle whose worker died. */
task_claim task_claim_inherit(const task_claim *dead, uint64_t worker);
/* The same claim on its way to another task. */
task_claim task_claim_at(const task_claim *claim, int32_t index);
/* Workers that died while they ran this task. */
uint32_t task_claim_deaths(const task_claim *claim, int32_t index);
/* Whether its tasks are to be run one at a time, each said before. */
bool task_claim_is_careful(const task_claim *claim);
/* Whether the task is not to be run again. */
bool task_claim_is_poison(const task_claim *claim, int32_t index);
/* Whether another death would be its last: then the worker runs nothing else meanwhile, so that it dies of no other. */
bool task_claim_is_decisive(const task_claim *claim, int32_t index);

/* ---- taking ------------------------------------------------------------------------------------------------------ */

/* A bundle that is in the store, as a worker sees it.  Times are nanoseconds of any clock. */
typedef struct task_seen {
    int64_t number;
    bool claimed;       /* by somebody */
    bool mine;          /* by this worker */
    bool held;          /* by this worker, which is at it now */
    int64_t done_at;    /* when this worker put the last of its results; 0: it did not */
    uint64_t owner;     /* who has claimed it, if that was read; 0: it was not */
    bool owner_lives;   /* as far as is known */
    int64_t read_at;    /* when that was read last; 0: never */
    int64_t since;      /* it is known to be claimed; 0: it is not known when */
    int64_t checked_at; /* when it was last checked that its results are there */
} task_seen;

typedef enum task_step {
    TASK_NOTHING, /* until something changes, or the moment `until` */
    TASK_CLAIM,   /* nobody has it */
    TASK_READ,    /* somebody has it, and who is not known or was read long ago */
    TASK_INHERIT, /* its worker is dead */
    TASK_CHECK,   /* this worker has done it, and nobody has fetched it: its results may have been lost */
} task_step;

typedef struct task_choice {
    task_step step;
    int64_t which; /* of `seen` */
    int64_t until;
} task_choice;

/* Who chooses. */
typedef struct task_taker {
    uint64_t worker;
    int64_t rank, of; /* its place among the workers, as far as it knows them: each prefers bundles of its own, */
} task_taker;         /* by their numbers, so that those that wake up together don't reach for the same one */

/* `seen` are in the order of their numbers. */
task_choice task_choose(const task_seen *seen, int64_t count, const task_taker *taker, int64_t lease, int64_t now);

/* Whether a worker that has been at a bundle for that long gives back what it has not begun. */
bool task_gives_back(double seconds, int64_t unbegun, bool careful);

/* ---- bundling ---------------------------------------------------------------------------------------------------- */

/* What a client knows when it makes bundles. */
typedef struct task_load {
    int64_t pending; /* tasks that are in no bundle */
    int64_t out;     /* bundles in the store without all results */
    int64_t slots;   /* of the workers; 0: unknown */
    double seconds;  /* that a task takes on average; negative: unknown */
    double aim;      /* seconds that a bundle may take */
} task_load;

/* How many tasks go into the next bundle; 0: none is to be made now. */
int64_t task_bundle_size(const task_load *load);

enum { TASK_BUNDLE_MOST = 256 };

#endif
