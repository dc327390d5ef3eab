/* See search_command.h. */
#include "search_command.h"

#include <shoal/error.h>

#include "base/template.h"

static base_template template_of(const plan_search_space *space, const char *name[PLAN_SEARCH_DIMENSIONS_MOST])
{
    for (int i = 0; i < space->dimensions; i++)
        name[i] = space->dimension[i].name;
    return (base_template){.option = "--run", .source = space->path, .name = name, .names = space->dimensions};
}

int plan_search_command_check(const plan_search_space *space, const char *command)
{
    const char *name[PLAN_SEARCH_DIMENSIONS_MOST];
    bool used[PLAN_SEARCH_DIMENSIONS_MOST] = {0}, exposed[PLAN_SEARCH_DIMENSIONS_MOST] = {0};
    const base_template names = template_of(space, name);
    int status = base_template_check(used, exposed, &names, command);
    if (status < 0)
        return status;
    for (int d = 0; d < space->dimensions; d++)
        for (int64_t i = 0; exposed[d] && i < space->dimension[d].values; i++)
            if (!base_template_is_plain(space->dimension[d].text[i]))
                return shoal_fail(SHOAL_USAGE,
                                  "--run: {%s} stands between quotes or in a command with ` or <<, where its value "
                                  "'%s' can't be quoted: separate it from other text",
                                  space->dimension[d].name, space->dimension[d].text[i]);
    for (int i = 0; i < space->dimensions; i++)
        if (!used[i] && space->dimension[i].values > 1)
            return shoal_fail(SHOAL_USAGE, "--run: the command does not use {%s}, which has %lld values in %s",
                              space->dimension[i].name, (long long)space->dimension[i].values, space->path);
    return SHOAL_OK;
}

int plan_search_command_fill(char **out, const plan_search_space *space, const char *command, int64_t candidate)
{
    const char *name[PLAN_SEARCH_DIMENSIONS_MOST], *value[PLAN_SEARCH_DIMENSIONS_MOST];
    const base_template names = template_of(space, name);
    for (int i = 0; i < space->dimensions; i++)
        value[i] = plan_search_text(space, candidate, i);
    return base_template_fill(out, &names, command, value);
}
