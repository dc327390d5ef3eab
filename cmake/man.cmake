# Writes the manual pages, shoal.1 and shoal-VERB.1 for every verb, and the scripts completion.SHELL, as the program
# itself prints them.
# Run as: cmake -Dprogram=PATH -Dfolder=PATH -P man.cmake
function(shoal_says output)
    execute_process(COMMAND ${program} man ${ARGN} OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
    set(${output} "${text}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${folder})
shoal_says(page)
file(WRITE ${folder}/shoal.1 "${page}")
shoal_says(verbs --list)
string(REGEX MATCHALL "[^\n]+" verbs "${verbs}")
foreach(verb IN LISTS verbs)
    string(REPLACE " " ";" words "${verb}")
    string(REPLACE " " "-" name "${verb}")
    shoal_says(page ${words})
    file(WRITE ${folder}/shoal-${name}.1 "${page}")
endforeach()
foreach(shell bash zsh fish)
    execute_process(COMMAND ${program} completion ${shell} OUTPUT_FILE ${folder}/completion.${shell}
                    COMMAND_ERROR_IS_FATAL ANY)
endforeach()
file(TOUCH ${folder}/pages.stamp)
