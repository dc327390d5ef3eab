/* Merging the partials of ranks.
 *
 *     engine_reduction_begin(reduction, &round->layout);                     // rank 0 gets ready for rows
 *     engine_slice_map_parts(&mine, mapper, slice, engine_reduction_parts(reduction)); // rows go meanwhile
 *     status = engine_reduction_end(&merged, &stop, counted, reduction, mine, status);      // or NULL and a failure
 *
 * Sums and maxima take one call each, over all cells.  Records are gathered in the order of ranks.  Values per row go
 * to rank 0 alone: elsewhere the ROW cells of the merged partial have no rows. */
#ifndef ENGINE_REDUCE_H
#define ENGINE_REDUCE_H

#include <shoal/ranks.h>

#include "engine/slice.h"

typedef struct engine_reduction engine_reduction;

/* Rank r has the grains from first[r] to first[r + 1], which all ranks know; *shape and *first must last. */
int engine_reduction_new(engine_reduction **out, shoal_ranks *ranks, const shoal_shape *shape, const int64_t *first);
void engine_reduction_free(engine_reduction **reduction);

void engine_reduction_begin(engine_reduction *reduction, const shoal_layout *layout);
/* In how many parts this rank should map its grains, and who sends the rows of each. */
const engine_parts *engine_reduction_parts(engine_reduction *reduction);
/* For engine_mapper_poll: moves rows along and checks whether another rank has failed, which sets the flag of
 * engine_reduction_watch. */
void engine_reduction_poll(void *reduction);
const _Atomic uint32_t *engine_reduction_watch(const engine_reduction *reduction);

/* Collective.  `status` is how this rank's map went, `mine` what it made, NULL after a failure.  *merged is settled and
 * valid until the next begin.  *stop, in: this rank was asked to stop; out: one of them was.  `counted`, in: by this
 * rank in this round; out: by all.  If one rank failed all fail, and still have to agree on the failure. */
int engine_reduction_end(shoal_partial **merged, bool *stop, int64_t counted[SHOAL_COUNTERS],
                         engine_reduction *reduction, shoal_partial *mine, int status);
/* Leaves out of a result the rows that are not on this rank. */
void engine_reduction_drop_rows(const engine_reduction *reduction, shoal_result *result);

/* Seconds spent waiting for rows that were still on their way when all else was done. */
double engine_reduction_row_seconds(const engine_reduction *reduction);

#endif
