# libshoal-mpi.so, once for every MPI that is there: mpi/openmpi/libshoal-mpi.so, mpi/mpich/libshoal-mpi.so.  The
# program finds the one of the MPI that started it (src/engine/ranks_open.c).
set(SHOAL_MPI "auto" CACHE STRING
    "MPIs to build the plug-in for: auto (those found), off, or a list of compiler wrappers such as /opt/mpi/bin/mpicc")

# Which MPI a wrapper is of.  Others that have MPICH's interface and libraries (Intel MPI, MVAPICH, Cray) count as
# mpich.
function(shoal_mpi_kind out wrapper)
    file(WRITE ${PROJECT_BINARY_DIR}/mpi/kind.c
         "#include <mpi.h>\n#if defined OPEN_MPI\nkind=openmpi\n"
         "#elif defined MPICH || defined MPICH_VERSION\nkind=mpich\n#endif\n")
    execute_process(COMMAND ${wrapper} -E ${PROJECT_BINARY_DIR}/mpi/kind.c OUTPUT_VARIABLE text ERROR_VARIABLE errors
                    RESULT_VARIABLE result)
    string(REGEX MATCH "\nkind=([a-z]+)" found "${text}")
    set(${out} "${CMAKE_MATCH_1}" PARENT_SCOPE)
    set(${out}_errors "${result}\n${errors}" PARENT_SCOPE)
endfunction()

# Makes a target see what a wrapper's words add to the compiler's: how its mpi.h and its library are found.
function(shoal_mpi_use target words)
    foreach(word IN LISTS words)
        if(word MATCHES "^-I(.+)")
            target_include_directories(${target} SYSTEM PRIVATE ${CMAKE_MATCH_1})
        elseif(word MATCHES "^-D|^-U")
            target_compile_options(${target} PRIVATE ${word})
        elseif(word MATCHES "^-l|^/.*[.](so|a)$")
            target_link_libraries(${target} PRIVATE ${word})
        else()
            set_property(TARGET ${target} APPEND_STRING PROPERTY words " ${word}")
        endif()
    endforeach()
    get_target_property(others ${target} words)
    if(others)
        target_link_options(${target} PRIVATE "SHELL:${others}")
    endif()
endfunction()

function(shoal_mpi_plugin kind wrapper)
    execute_process(COMMAND ${wrapper} -show OUTPUT_VARIABLE words OUTPUT_STRIP_TRAILING_WHITESPACE
                    COMMAND_ERROR_IS_FATAL ANY)
    separate_arguments(words UNIX_COMMAND "${words}")
    list(POP_FRONT words)
    foreach(use IN ITEMS plugin plugin_of_pieces)
        set(target mpi_${kind}_${use})
        add_library(${target} MODULE src/mpi/ranks_mpi.c)
        target_include_directories(${target} PRIVATE include)
        shoal_mpi_use(${target} "${words}")
        set_target_properties(${target} PROPERTIES OUTPUT_NAME shoal-mpi
                              LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/mpi/${kind})
    endforeach()
    # What a round costs beside plain MPI, for bench/bench_mpi.py.
    add_executable(bench_mpi_rounds_${kind} EXCLUDE_FROM_ALL bench/mpi_rounds.c)
    target_link_libraries(bench_mpi_rounds_${kind} PRIVATE shoal_static)
    shoal_mpi_use(bench_mpi_rounds_${kind} "${words}")
    add_dependencies(bench_mpi_rounds_${kind} mpi_${kind}_plugin)
    install(TARGETS mpi_${kind}_plugin DESTINATION ${CMAKE_INSTALL_LIBDIR}/shoal/${kind} COMPONENT ${kind})
    # The same with messages cut into small pieces, as those beyond an int's range are: for tests.
    set_target_properties(mpi_${kind}_plugin_of_pieces PROPERTIES OUTPUT_NAME shoal-mpi-pieces EXCLUDE_FROM_ALL ON)
    target_compile_definitions(mpi_${kind}_plugin_of_pieces PRIVATE RANKS_PIECE=1000)
endfunction()

# From the folder of an installed program to where plug-ins are installed.
file(RELATIVE_PATH plugins_from_program /prefix/${CMAKE_INSTALL_BINDIR} /prefix/${CMAKE_INSTALL_LIBDIR}/shoal)
set_property(SOURCE src/engine/ranks_open.c src/kernel/device/kernel_device.c APPEND PROPERTY COMPILE_DEFINITIONS
             SHOAL_PLUGINS_FROM_PROGRAM="${plugins_from_program}")

set(shoal_mpi_kinds "")
if(SHOAL_SANITIZE MATCHES "thread" OR SHOAL_MPI STREQUAL "off")
    return() # what MPI does between threads is not for our sanitizer to judge
endif()
set(wrappers ${SHOAL_MPI})
if(SHOAL_MPI STREQUAL "auto")
    set(wrappers "")
    foreach(name IN ITEMS mpicc.openmpi mpicc.mpich mpicc)
        find_program(shoal_${name} ${name})
        mark_as_advanced(shoal_${name})
        if(shoal_${name} AND NOT (name STREQUAL "mpicc" AND wrappers))
            list(APPEND wrappers ${shoal_${name}})
        endif()
    endforeach()
endif()

foreach(wrapper IN LISTS wrappers)
    shoal_mpi_kind(kind ${wrapper})
    if(kind AND NOT kind IN_LIST shoal_mpi_kinds)
        message(STATUS "The MPI plug-in is built for ${kind} (${wrapper})")
        list(APPEND shoal_mpi_kinds ${kind})
        shoal_mpi_plugin(${kind} ${wrapper})
    elseif(kind)
        message(FATAL_ERROR "SHOAL_MPI: ${wrapper} is a second one for ${kind}: ${wrappers}")
    elseif(SHOAL_MPI STREQUAL "auto")
        message(STATUS "No MPI plug-in by ${wrapper}, which compiles nothing with mpi.h of Open MPI or MPICH")
    else()
        message(FATAL_ERROR "SHOAL_MPI: ${wrapper} compiles nothing with mpi.h of Open MPI or MPICH: ${kind_errors}")
    endif()
endforeach()
if(NOT shoal_mpi_kinds)
    message(STATUS "No MPI is here: no MPI plug-in")
endif()
