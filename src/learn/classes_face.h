/* What the faces of classifiers share.  See face.h and classes.h. */
#ifndef LEARN_CLASSES_FACE_H
#define LEARN_CLASSES_FACE_H

#include "learn/classes.h"
#include "learn/face.h"

/* Rows of options of learn_inputs: the target, and weights. */
#define LEARN_CLASSES_TARGET                                                                                           \
    {                                                                                                                  \
        "target", 'y', SHOAL_OPTION_TEXT, offsetof(learn_inputs, target), "COLUMN|FILE",                               \
            .help =                                                                                                    \
                "the known class of each row, as numbers or words: a column of DATA, by its name, its number from 1, " \
                "or from -1 backwards; or a file of one column or one row",                                            \
            .default_text = "the last column"                                                                          \
    }
#define LEARN_CLASSES_INPUTS                                                                                           \
    LEARN_CLASSES_TARGET,                                                                                              \
    {                                                                                                                  \
        "weights", 'w', SHOAL_OPTION_TEXT, offsetof(learn_inputs, weights), "FILE",                                    \
            .help = "a weight for each row, finite and at least 0, as any data file of one column or one row"          \
    }

/* The row of plan_options for the expected number of classes; `field` is of the learner's config. */
#define LEARN_CLASSES_EXPECTED(config, field)                                                                          \
    {                                                                                                                  \
        "classes", 0, SHOAL_OPTION_COUNT, offsetof(config, field), "N",                                                \
            .help = "number of classes in the data", .fallback = "2", .least = 2, .most = LEARN_CLASSES_MOST           \
    }

/* A face's annotate: the columns are those of the rows that a model labels. */
void learn_classes_annotate(shoal_result *facts, const learn_ended *ended);

/* For rows of one column more than a model has. */
extern const char learn_classes_hint[];
/* Of the tensor "labels" of a prediction, how many rows each class has: in words, and for --json. */
void learn_say_classes(learn_lines *lines, const shoal_result *result, const learn_applied *applied);
int learn_tell_classes(shoal_result *facts, const shoal_result *result, const learn_applied *applied);

#endif
