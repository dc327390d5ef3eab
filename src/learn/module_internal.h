/* What the files of modules share: module.c makes rounds of a module, module_load.c has the one that is loaded. */
#ifndef LEARN_MODULE_INTERNAL_H
#define LEARN_MODULE_INTERNAL_H

#include "learn/module.h"

/* NULL while none is loaded. */
const shoal_module *learn_module_current(void);

extern const shoal_option learn_module_options[]; /* of learn_module_config */

#endif
