/* What came of a run.  See run_result.h. */
#include "run_result.h"

#include <inttypes.h>

#include "data/data_internal.h"

enum { VALUES_SHOWN = 10000 };

static int64_t count_values(const shoal_tensor *tensor)
{
    int64_t count = 1;
    for (int i = 0; i < tensor->rank; i++)
        count *= tensor->shape[i];
    return count;
}

static void print_shape(FILE *stream, const shoal_tensor *tensor)
{
    fputs(shoal_type_name(tensor->type), stream);
    for (int i = 0; i < tensor->rank; i++)
        fprintf(stream, "%s%" PRId64, i ? " x " : ", ", tensor->shape[i]);
}

/* A line for each run of the last axis. */
static void print_values(FILE *stream, const shoal_tensor *tensor)
{
    int64_t count = count_values(tensor), a_line = tensor->rank > 0 ? tensor->shape[tensor->rank - 1] : 1;
    for (int64_t i = 0; i < count; i++) {
        char text[DATA_NUMBER_CHARS];
        data_number_print(text, tensor->values, tensor->type, i);
        fputs(text, stream);
        fputc((i + 1) % a_line == 0 ? '\n' : ' ', stream);
    }
}

void cli_run_print(FILE *stream, const shoal_result *result)
{
    for (int i = 0; i < result->tensors; i++) {
        const shoal_tensor *tensor = &result->tensor[i];
        bool few = count_values(tensor) <= VALUES_SHOWN;
        if (result->tensors > 1 || !few) {
            cli_put_text(stream, tensor->name);
            fputs(few ? ":\n" : ": ", stream);
        }
        if (few) {
            print_values(stream, tensor);
        } else {
            print_shape(stream, tensor);
            fputs("; use --out FILE.npy to write it\n", stream);
        }
    }
}

static json_t *json_value(const shoal_tensor *tensor, int64_t index)
{
    double value;
    switch (tensor->type) {
    case SHOAL_BOOL: return json_boolean(((const uint8_t *)tensor->values)[index] != 0);
    case SHOAL_INT8: return json_integer(((const int8_t *)tensor->values)[index]);
    case SHOAL_INT16: return json_integer(((const int16_t *)tensor->values)[index]);
    case SHOAL_INT32: return json_integer(((const int32_t *)tensor->values)[index]);
    case SHOAL_INT64: return json_integer(((const int64_t *)tensor->values)[index]);
    case SHOAL_UINT8: return json_integer(((const uint8_t *)tensor->values)[index]);
    case SHOAL_UINT16: return json_integer(((const uint16_t *)tensor->values)[index]);
    case SHOAL_UINT32: return json_integer(((const uint32_t *)tensor->values)[index]);
    default: break;
    }
    const char *at = (const char *)tensor->values + (size_t)index * shoal_type_size(tensor->type);
    shoal_convert_float64(&value, at, tensor->type, 1);
    return base_json_real(value);
}

json_t *cli_tensor_list(const shoal_tensor *tensor)
{
    json_t *values = json_array();
    int64_t count = count_values(tensor);
    for (int64_t i = 0; i < count; i++)
        json_array_append_new(values, json_value(tensor, i));
    return values;
}

static json_t *json_tensor(const shoal_tensor *tensor)
{
    json_t *object = json_object(), *shape = json_array();
    int64_t count = count_values(tensor);
    for (int i = 0; i < tensor->rank; i++)
        json_array_append_new(shape, json_integer(tensor->shape[i]));
    base_json_put(&object, "type", json_string(shoal_type_name(tensor->type)));
    base_json_put(&object, "shape", shape);
    if (count <= VALUES_SHOWN)
        base_json_put(&object, "values", cli_tensor_list(tensor));
    return object;
}

void cli_run_json(json_t **object, const shoal_result *result)
{
    json_t *tensors = json_object();
    if (result->tensors == 1) {
        json_decref(tensors);
        base_json_put(object, "result", json_tensor(&result->tensor[0]));
        return;
    }
    for (int i = 0; i < result->tensors; i++)
        base_json_put(&tensors, result->tensor[i].name, json_tensor(&result->tensor[i]));
    base_json_put(object, "tensors", tensors);
}
