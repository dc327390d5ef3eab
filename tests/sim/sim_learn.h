/* Learners for simulated jobs, whose maps and updates take virtual time: k-means, and a toy that uses all of the
 * contract. */
#ifndef SIM_LEARN_H
#define SIM_LEARN_H

#include <shoal/learn.h>

/* How long things take in a simulation, and what goes wrong in them. */
typedef struct sim_work {
    double map_row, map_grain; /* seconds */
    double update;
    double straggler;    /* chance that a grain takes twenty times as long */
    int64_t poison_row;  /* the worker that maps this row dies; -1 for none */
    int64_t poison_most; /* how often, at most */
} sim_work;

extern sim_work sim_work_now;
/* Takes the time that a grain takes, or dies of it. */
void sim_work_on_grain(const shoal_grain *grain);

/* Rounds: measure (SUM, MAX, WIDE), collect (RECORD), steps that carry sums from memo to memo, every other one
 * followed by a round that only looks at the memo, and place (ROW). */
typedef struct sim_toy_config {
    int64_t steps;
    int64_t fail_at; /* update of this round fails; -1 for none */
    uint64_t salt;
} sim_toy_config;

extern const shoal_algorithm sim_toy;
/* shoal_kmeans, that takes time. */
const shoal_algorithm *sim_kmeans(void);
/* What workers can run: all of these, ended by NULL. */
const shoal_algorithm *const *sim_algorithms(void);

#endif
