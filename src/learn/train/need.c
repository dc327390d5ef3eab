/* How much memory a net takes beside its rows, so that one for which there is none is refused before it is tried.
 *
 * Of each parameter all threads together hold as many bytes as ALL says, and of each moment of the optimiser as many as
 * MOMENT: the round at hand, the next one and one that is used again, the weights turned, the merged sums, and the
 * result.  A thread has its sums, 8 bytes, and its gradient, 4, which is part of what the layers take. */
#include "base/memory.h"
#include "learn/face.h"
#include "learn/train/need.h"
#include "learn/train/train_internal.h"

/* Measured: docs/learn/train.md. */
enum { ALL = 34, MOMENT = 12, SUMS = 8 };

int train_need(double *all, double *each, const void *untyped, const learn_rows *rows)
{
    const train_config *config = untyped;
    train_net net;
    train_work work;
    char *text = NULL;
    int status = train_config_net(&net, &text, config, rows->columns - 1);
    base_free(&text);
    if (status < 0)
        return status;
    const double values = (double)train_net_values(&net);
    train_work_cut(&work, &net, config->group < rows->rows ? config->group : rows->rows, true, NULL);
    *all = values * ALL + (double)train_net_learns(&net) * MOMENT * (double)train_moments(config->optimiser);
    *each = (double)train_net_added(&net) * SUMS + (double)work.bytes;
    return SHOAL_OK;
}
