/* What the faces of classifiers share.  See classes_face.h. */
#include "base/text.h"
#include "learn/classes_face.h"

#include <inttypes.h>

/* ---- before the run ---------------------------------------------------------------------------------------------- */

void learn_classes_annotate(shoal_result *facts, const learn_ended *ended)
{
    shoal_result_set_whole(facts, "columns", ended->rows.columns - 1);
}

/* ---- applying a model -------------------------------------------------------------------------------------------- */

const char learn_classes_hint[] = ": leave out the target column";

/* How many rows have the label. */
static int64_t count_rows(const shoal_result *result, double class)
{
    const shoal_tensor *labels = shoal_result_tensor(result, "labels");
    const double *label = labels->values;
    int64_t count = 0;
    for (int64_t i = 0; i < labels->shape[0]; i++)
        count += label[i] == class;
    return count;
}

void learn_say_classes(learn_lines *lines, const shoal_result *result, const learn_applied *applied)
{
    enum { SHOWN = 20 };
    const int64_t count = applied->classes_count;
    learn_say(lines, "classes", "%s", "");
    for (int64_t i = 0; i < count && i < SHOWN; i++) {
        int64_t rows = count_rows(result, applied->classes[i]);
        if (applied->class_names)
            learn_say_more(lines, "%s%s", i > 0 ? ", " : "", applied->class_names[i]);
        else
            learn_say_more(lines, "%s%.10g", i > 0 ? ", " : "", applied->classes[i]);
        learn_say_more(lines, ": %" PRId64 " row%s", rows, base_plural(rows));
    }
    if (count > SHOWN)
        learn_say_more(lines, ", and %" PRId64 " more", count - SHOWN);
}

/* Counts lie in the order of the classes: a label is a number, which no key of JSON can be. */
int learn_tell_classes(shoal_result *facts, const shoal_result *result, const learn_applied *applied)
{
    const int64_t count = applied->classes_count;
    double *label = shoal_result_add(facts, "classes", SHOAL_FLOAT64, 1, &count);
    int64_t *rows = label ? shoal_result_add(facts, "counts", SHOAL_INT64, 1, &count) : NULL;
    for (int64_t i = 0; rows && i < count; i++) {
        label[i] = applied->classes[i];
        rows[i] = count_rows(result, applied->classes[i]);
    }
    return rows ? SHOAL_OK : SHOAL_MEMORY;
}
