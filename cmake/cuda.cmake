# libshoal-cuda.so, where nvcc is: cuda/libshoal-cuda.so.  The program loads it when --device asks for a GPU
# (src/kernel/device/kernel_device.c); nothing else knows of CUDA, and nothing is linked with it.
set(SHOAL_CUDA "auto" CACHE STRING "Build the plug-in for GPUs: auto (where nvcc is), off, or the path of an nvcc")
# sm_80 is Ampere; sm_90a Hopper with its warpgroups; the PTX is for whatever comes after.
set(SHOAL_CUDA_TARGETS "80,90a,80-virtual" CACHE STRING "GPUs that the plug-in is compiled for")

set(shoal_cuda_here "")
if(SHOAL_CUDA STREQUAL "off" OR SHOAL_SANITIZE OR CMAKE_CROSSCOMPILING)
    return()
endif()
if(SHOAL_CUDA STREQUAL "auto")
    find_program(shoal_nvcc nvcc HINTS /usr/local/cuda/bin)
    mark_as_advanced(shoal_nvcc)
else()
    set(shoal_nvcc ${SHOAL_CUDA})
endif()
if(shoal_nvcc)
    execute_process(COMMAND ${shoal_nvcc} --version OUTPUT_VARIABLE about ERROR_QUIET)
    string(REGEX MATCH "release ([0-9]+)" found "${about}")
endif()
if(NOT shoal_nvcc OR NOT found OR CMAKE_MATCH_1 LESS 12)
    if(NOT SHOAL_CUDA STREQUAL "auto")
        message(FATAL_ERROR "SHOAL_CUDA: ${SHOAL_CUDA} is no nvcc of CUDA 12 or newer")
    endif()
    message(STATUS "No nvcc of CUDA 12 or newer is here: no plug-in for GPUs")
    return()
endif()
message(STATUS "The plug-in for GPUs is built (${shoal_nvcc})")
set(shoal_cuda_here ON)

set(targets "")
string(REPLACE "," ";" list "${SHOAL_CUDA_TARGETS}")
foreach(target IN LISTS list)
    if(target MATCHES "^(.+)-virtual$")
        list(APPEND targets -gencode=arch=compute_${CMAKE_MATCH_1},code=compute_${CMAKE_MATCH_1})
    else()
        list(APPEND targets -gencode=arch=compute_${target},code=sm_${target})
    endif()
endforeach()

# Results are defined to the bit: no contraction, no flushing to zero, division and roots rounded to nearest.
file(GLOB cuda_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/cuda/*)
set(plugin ${PROJECT_BINARY_DIR}/cuda/libshoal-cuda.so)
add_custom_command(OUTPUT ${plugin}
                   COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/cuda
                   COMMAND ${shoal_nvcc} -std=c++20 -O3 -fmad=false -ftz=false -prec-div=true -prec-sqrt=true -t 2
                           -Xcompiler=-fPIC,-fvisibility=hidden,-Wall,-ffp-contract=off -shared -cudart static
                           -Xlinker=--as-needed ${targets} -o ${plugin} ${PROJECT_SOURCE_DIR}/src/cuda/shoal_cuda.cu
                   DEPENDS ${cuda_sources} ${PROJECT_SOURCE_DIR}/src/kernel/device/kernel_device.h
                   COMMENT "Building CUDA plug-in cuda/libshoal-cuda.so" VERBATIM)
add_custom_target(cuda_plugin ALL DEPENDS ${plugin})
install(FILES ${plugin} DESTINATION ${CMAKE_INSTALL_LIBDIR}/shoal/cuda COMPONENT cuda)
