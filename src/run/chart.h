/* Curves side by side over the same x, as SVG or PNG: LEARN_CHART of learn/face.h. */
#ifndef RUN_CHART_H
#define RUN_CHART_H

#include "learn/face.h"

/* `about` is what the numbers are of; the ending of the path chooses the format. */
int run_chart_write(const char *path, const learn_chart *chart, const char *about);

#endif
