/* What people see of their own programs and modules, which `shoal run` runs.  See learn/face.h. */
#include "learn/face.h"

#include <math.h>
#include <shoal/exec.h>

#include "learn/module.h"

static const learn_output outputs[] = {
    {"out", 'o', "FILE", "write the result, as .safetensors when it has several tensors (default: print the numbers)",
     .kind = LEARN_RESULT},
    {0},
};

static const shoal_option inputs[] = {
    {"weights", 'w', SHOAL_OPTION_TEXT, offsetof(learn_inputs, weights), "FILE",
     .help = "MODULE: a weight for each row, finite and at least 0, as any data file of one column or one row"},
    {0},
};

static void summarise_exec(learn_lines *lines, const learn_ended *ended)
{
    double objective = shoal_result_number(ended->result, "objective");
    if (!isnan(objective))
        learn_say(lines, "objective", "%.10g", objective);
}

const learn_face learn_exec = {
    .algorithm = &shoal_exec,
    .options_title = "Parameters and results",
    .inputs_title = "Weights",
    .runs_code = true,
    .inputs = inputs,
    .outputs = outputs,
    .summarise = summarise_exec,
};

const learn_face learn_of_module = {
    .algorithm = &learn_module,
    .options_title = "Parameters",
    .inputs_title = "Weights",
    .runs_code = true,
    .inputs = inputs,
    .outputs = outputs,
    .keeps_part = true,
    .summarise = summarise_exec,
};
