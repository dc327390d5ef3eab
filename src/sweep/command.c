/* What a trial runs: the command of --run with its values filled in, or one of our own learners with an option for each
 * parameter. */
#include <stdio.h>
#include <string.h>

#include <shoal/error.h>

#include "base/memory.h"
#include "base/spawn.h"
#include "base/template.h"
#include "learn/face.h"
#include "run/request.h"
#include "runner.h"

static base_template template_of(const sweep_space *space, const char *source, const char *name[SWEEP_PARAMETERS_MOST])
{
    for (int i = 0; i < space->parameters; i++)
        name[i] = space->parameter[i].name;
    return (base_template){.option = "--run", .source = source, .name = name, .names = space->parameters};
}

static int check_run(const sweep_spec *spec, const char *source)
{
    const sweep_space *space = spec->space;
    const char *name[SWEEP_PARAMETERS_MOST];
    bool used[SWEEP_PARAMETERS_MOST] = {0}, exposed[SWEEP_PARAMETERS_MOST] = {0};
    const base_template names = template_of(space, source, name);
    int status = base_template_check(used, exposed, &names, spec->run);
    for (int i = 0; i < space->parameters && status == SHOAL_OK; i++) {
        const sweep_parameter *p = &space->parameter[i];
        if (!used[i] && sweep_values_of(p) > 1)
            return shoal_fail(SHOAL_USAGE, "--run: the command does not use {%s}, which %s varies", p->name, source);
        for (int64_t v = 0; exposed[i] && v < p->values; v++)
            if (!base_template_is_plain(p->text[v]))
                return shoal_fail(SHOAL_USAGE,
                                  "--run: {%s} stands between quotes or in a command with ` or <<, where its value "
                                  "'%s' can't be quoted: separate it from other text",
                                  p->name, p->text[v]);
    }
    return status;
}

/* The face that the first word of the text names. */
static const learn_face *face_of(const char *learner)
{
    char name[64];
    const size_t start = strspn(learner, " \t"), length = strcspn(learner + start, " \t\n");
    snprintf(name, sizeof name, "%.*s", (int)(length < 63 ? length : 63), learner + start);
    const learn_face *face = learn_face_find(name);
    return face && face->summary ? face : NULL;
}

/* How the learner calls a parameter: with dashes where names of a space have _. */
static void option_name(char out[64], const char *parameter)
{
    snprintf(out, 64, "%s", parameter);
    for (char *at = out; *at; at++)
        if (*at == '_')
            *at = '-';
}

static int check_learner(const sweep_spec *spec)
{
    base_option_group groups[RUN_GROUPS_MOST + 1] = {0};
    const learn_face *face = face_of(spec->learner);
    if (!face)
        return shoal_fail(SHOAL_USAGE,
                          "--learner %.60s: its first word is no learner of shoal, such as train or kmeans",
                          spec->learner);
    (void)run_request_groups(groups, face, 0);
    if (spec->repeat > 1 && (!base_options_find(groups, "seed", 4) || strstr(spec->learner, "--seed") ||
                             sweep_space_find(spec->space, "seed") >= 0))
        return shoal_fail(SHOAL_USAGE, "--repeat gives each repeat of a learner a --seed of its own, which %s",
                          base_options_find(groups, "seed", 4) ? "is given already" : "it does not have");
    for (int i = 0; i < spec->space->parameters; i++) {
        char name[64];
        option_name(name, spec->space->parameter[i].name);
        if (base_options_find(groups, name, strlen(name)))
            continue;
        const char *near = base_options_nearest(groups, name);
        if (near)
            return shoal_fail(SHOAL_USAGE, "parameter \"%s\": %s has no option --%s; did you mean --%s?",
                              spec->space->parameter[i].name, face->algorithm->name, name, near);
        return shoal_fail(SHOAL_USAGE, "parameter \"%s\": %s has no option --%s", spec->space->parameter[i].name,
                          face->algorithm->name, name);
    }
    return SHOAL_OK;
}

int sweep_command_check(const sweep_spec *spec, const char *source)
{
    return spec->run ? check_run(spec, source) : check_learner(spec);
}

/* ---- filling ----------------------------------------------------------------------------------------------------- */

/* 'text', whatever is in it. */
static void append_quoted(char *out, size_t size, size_t *at, const char *text)
{
    *at += (size_t)snprintf(out + *at, *at < size ? size - *at : 0, "'");
    for (; *text; text++)
        *at += (size_t)snprintf(out + (*at < size ? *at : size), *at < size ? size - *at : 0,
                                *text == '\'' ? "'\\''" : "%c", *text);
    *at += (size_t)snprintf(out + (*at < size ? *at : size), *at < size ? size - *at : 0, "'");
}

static int fill_learner(char **out, const sweep_run *run, const sweep_point *point, int repeat)
{
    const sweep_space *space = run->spec->space;
    size_t size = 256 + 5 * strlen(run->program) + strlen(run->spec->learner), at = 0;
    char own[SWEEP_TEXT_BYTES], name[64];
    for (int i = 0; i < space->parameters; i++)
        size += 80 + 5 * strlen(sweep_text(own, &space->parameter[i], point->value[i]));
    int status = base_alloc(out, size, 1, "a command");
    if (status < 0)
        return status;
    at += (size_t)snprintf(*out, size, "exec ");
    append_quoted(*out, size, &at, run->program);
    at +=
        (size_t)snprintf(*out + at, size - at,
                         " %s --json --trace /dev/fd/%d --checkpoint 30 --checkpoint-file \"$SHOAL_FOLDER/checkpoint\" "
                         "--resume",
                         run->spec->learner, BASE_SPAWN_EXTRA);
    if (!strstr(run->spec->learner, "--threads") && !strstr(run->spec->learner, " -t"))
        at += (size_t)snprintf(*out + at, size - at, " --threads %lld",
                               (long long)(run->threads > run->spec->repeat ? run->threads / run->spec->repeat : 1));
    if (run->spec->repeat > 1)
        at += (size_t)snprintf(*out + at, size - at, " --seed %d", repeat + 1);
    for (int i = 0; i < space->parameters; i++) {
        const char *text = sweep_text(own, &space->parameter[i], point->value[i]);
        if (!*text)
            continue;
        option_name(name, space->parameter[i].name);
        at += (size_t)snprintf(*out + at, size - at, " --%s=", name);
        append_quoted(*out, size, &at, text);
    }
    return SHOAL_OK;
}

int sweep_command(char **out, const sweep_run *run, const sweep_point *point, int repeat)
{
    const sweep_space *space = run->spec->space;
    char own[SWEEP_PARAMETERS_MOST][SWEEP_TEXT_BYTES];
    const char *name[SWEEP_PARAMETERS_MOST], *value[SWEEP_PARAMETERS_MOST];
    if (run->spec->learner)
        return fill_learner(out, run, point, repeat);
    const base_template names = template_of(space, "the space", name);
    for (int i = 0; i < space->parameters; i++)
        value[i] = sweep_text(own[i], &space->parameter[i], point->value[i]);
    return base_template_fill(out, &names, run->spec->run, value);
}
