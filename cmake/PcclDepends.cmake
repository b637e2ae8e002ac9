# What the build needs, and what it uses where it is there. Included by the top
# CMakeLists.txt before everything else, so that what is missing is said in one
# sentence and at once.

option(PCCL_CORES_ONLY
    "Build the pure cores and their tests only, which need no libev" OFF)
set(PCCL_CUDA AUTO CACHE STRING
    "Shared state in GPU memory: ON, OFF, or AUTO (where nvcc is found)")
set(PCCL_MPI AUTO CACHE STRING
    "libmpi_pccl and libmpi_abi: ON, OFF, or AUTO (ON: they need nothing)")
set(PCCL_PYTHON_PACKAGE AUTO CACHE STRING
    "The Python package: ON, OFF, or AUTO (where Python 3.11's headers are)")
foreach(choice PCCL_CUDA PCCL_MPI PCCL_PYTHON_PACKAGE)
    set_property(CACHE ${choice} PROPERTY STRINGS AUTO ON OFF)
    if(NOT ${choice} MATCHES "^(AUTO|ON|OFF)$")
        message(FATAL_ERROR
            "${choice} is ON, OFF or AUTO, and not \"${${choice}}\".")
    endif()
endforeach()

set(missing "")

if(NOT PCCL_CORES_ONLY)
    find_path(EV_INCLUDE_DIR ev.h)
    find_library(EV_LIBRARY ev)
    if(NOT EV_INCLUDE_DIR OR NOT EV_LIBRARY)
        list(APPEND missing "libev (Debian package libev-dev, or \
-DPCCL_CORES_ONLY=ON for the cores alone)")
    endif()
endif()

if(BUILD_TESTING)
    find_path(CMOCKA_INCLUDE_DIR cmocka.h)
    find_library(CMOCKA_LIBRARY cmocka)
    if(NOT CMOCKA_INCLUDE_DIR OR NOT CMOCKA_LIBRARY)
        list(APPEND missing "cmocka (Debian package libcmocka-dev, or \
-DBUILD_TESTING=OFF for no tests)")
    endif()
endif()

# The headers of both of MPI's binary interfaces are ours (include/mpich,
# include/mpi_abi): nothing of another MPI is needed.
set(PCCL_USE_MPI OFF)
set(PCCL_MPI_INCLUDE_DIR ${PROJECT_SOURCE_DIR}/include/mpich)
if(NOT PCCL_CORES_ONLY AND NOT PCCL_MPI STREQUAL "OFF")
    set(PCCL_USE_MPI ON)
endif()

set(PCCL_USE_CUDA OFF)
if(NOT PCCL_CUDA STREQUAL "OFF")
    include(CheckLanguage)
    check_language(CUDA)
    if(CMAKE_CUDA_COMPILER)
        find_package(CUDAToolkit QUIET)
    endif()
    if(CMAKE_CUDA_COMPILER AND CUDAToolkit_FOUND)
        set(PCCL_USE_CUDA ON)
        enable_language(CUDA)
    elseif(PCCL_CUDA STREQUAL "ON")
        list(APPEND missing "the CUDA toolkit with nvcc (Debian package \
nvidia-cuda-toolkit, or -DPCCL_CUDA=OFF for none)")
    endif()
endif()

set(PCCL_USE_PYTHON OFF)
# An interpreter that is not instrumented loads no sanitizer.
if(NOT PCCL_CORES_ONLY AND NOT PCCL_SANITIZE AND NOT PCCL_PYTHON_PACKAGE STREQUAL "OFF")
    find_package(Python 3.11 COMPONENTS Interpreter Development.Module QUIET)
    if(Python_Development.Module_FOUND)
        set(PCCL_USE_PYTHON ON)
    elseif(PCCL_PYTHON_PACKAGE STREQUAL "ON")
        list(APPEND missing "Python 3.11 or later with its headers (Debian \
package python3-dev, or -DPCCL_PYTHON_PACKAGE=OFF for no Python package)")
    endif()
endif()

if(missing)
    list(JOIN missing ", " missing)
    message(FATAL_ERROR "The build needs what was not found: ${missing}.")
endif()
unset(missing)
message(STATUS "GPU memory: ${PCCL_USE_CUDA}, MPI: ${PCCL_USE_MPI}, \
Python: ${PCCL_USE_PYTHON}")
