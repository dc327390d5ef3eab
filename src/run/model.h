/* A model in memory.  See shoal/model.h. */
#ifndef RUN_MODEL_H
#define RUN_MODEL_H

#include <shoal/model.h>

#include "learn/face.h"

struct shoal_model {
    char *name;            /* the path, for messages */
    void *bytes;           /* of a model that was not opened as a file; NULL otherwise */
    learn_model_file file; /* open; nothing in it for a data file of centres */
    const learn_face *face;
    learn_schema schema; /* what it remembers of its columns */
    learn_applied loaded;
};

/* Room for the options of the predictor. */
int run_model_new_config(learn_applied *out, const learn_predictor *predictor);
/* Frees the options and what they point to. */
void run_model_release(learn_applied *applied);

#endif
