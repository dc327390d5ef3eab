/* Fuzzes the text of nets: what is parsed is described, cut into memory, and parsed again as one line. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "learn/train/layers.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const train_shape shapes[] = {
        {1, 28, 28, false}, {3, 32, 20, false}, {13, 1, 1, true}, {4096, 1, 65536, false}};
    char *text = NULL, *table = NULL;
    train_net net, again;
    train_work work;
    if (size < 1 || base_copy_text_n(&text, (const char *)bytes + 1, size - 1) < 0)
        return 0;
    const train_shape *in = &shapes[bytes[0] % 4];
    if (train_net_parse(&net, text, "input", in) == SHOAL_OK) {
        int64_t parameters = 0, running = 0;
        for (int i = 0; i < net.layers; i++) {
            const train_layer *layer = &net.layer[i];
            if (layer->first != parameters || train_shape_values(&layer->out) < 1)
                abort();
            parameters += train_layer_parameters(layer);
            if (layer->kind == TRAIN_NORM && layer->running != running)
                abort();
            running += layer->kind == TRAIN_NORM ? 2 * layer->outputs : 0;
            const train_shape *added = layer->source < 0 ? &net.in : &net.layer[layer->source].out;
            if (layer->kind == TRAIN_ADD && (layer->source >= i || !train_shape_same(added, &layer->in)))
                abort();
            if (layer->kind == TRAIN_CONV && (layer->in.channels % layer->groups || layer->outputs % layer->groups))
                abort();
        }
        train_work_cut(&work, &net, 1 << 16, true, NULL);
        if (parameters != net.parameters || running != net.running || train_net_describe(&table, &net) < 0)
            abort();
        train_net_join(text);
        if (train_net_parse(&again, text, "input", in) < 0 || again.layers != net.layers ||
            again.parameters != net.parameters || again.running != net.running)
            abort();
    }
    base_free(&table);
    base_free(&text);
    return 0;
}
