/* What a sweep takes over from another one (--from): trials that ended, at points that its own space has, too. */
#ifndef SWEEP_ADOPT_H
#define SWEEP_ADOPT_H

#include "place.h"

/* Makes the entry of the log (log.h) with the trials of the sweep `spec->from` in the same store.  SHOAL_USAGE when
 * their values are no measure for this sweep: another objective, other steps. */
int sweep_adopt(json_t **out, const sweep_spec *spec, const sweep_place *place);

#endif
