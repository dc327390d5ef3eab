/* Choosing machines: what a sweep like one that was run takes in time and money on machines of a table. */
#ifndef CLI_SWEEP_MAP_H
#define CLI_SWEEP_MAP_H

#include <stdbool.h>

#include "sweep/picture.h"

typedef struct cli_sweep_map {
    const char *machines, *prices; /* pattern; table; NULL: all of the program's own */
    bool spot, json;
    int64_t most;  /* machines */
    int64_t steps; /* in all; 0: as many as the sweep did */
    double start;  /* seconds until a machine works */
} cli_sweep_map;

/* Draws cost against time, with the front, which is also printed.  `picture` has its curves. */
int cli_sweep_draw_map(const char *path, const sweep_picture *picture, const cli_sweep_map *map);

#endif
