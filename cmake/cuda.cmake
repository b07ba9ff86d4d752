# SPDX-License-Identifier: Apache-2.0
# Decides whether gpu/ is built with CUDA. No other folder depends on it.
set(MILLRACE_CUDA AUTO CACHE STRING "Copies and kernels for NVIDIA's devices: AUTO (where the toolkit is found), ON, OFF")
set_property(CACHE MILLRACE_CUDA PROPERTY STRINGS AUTO ON OFF)

# The first version that supports all of the architectures below.
set(MILLRACE_CUDA_MINIMUM 12.8)

set(MILLRACE_HAS_CUDA FALSE)
if(NOT MILLRACE_CUDA STREQUAL "OFF")
  include(CheckLanguage)
  check_language(CUDA)
  # The module of CMake 3.25 fails without this library, which CUDA 13 does not have.
  if(NOT TARGET CUDA::nvToolsExt)
    add_library(CUDA::nvToolsExt INTERFACE IMPORTED)
  endif()
  find_package(CUDAToolkit ${MILLRACE_CUDA_MINIMUM} QUIET)
  if(CMAKE_CUDA_COMPILER AND CUDAToolkit_FOUND)
    # Turing, Ampere, Hopper, Blackwell, and code that later drivers compile for newer architectures.
    if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
      set(CMAKE_CUDA_ARCHITECTURES 75-real 80-real 90-real 100-real 100-virtual)
    endif()
    enable_language(CUDA)
    set(MILLRACE_HAS_CUDA TRUE)
  elseif(MILLRACE_CUDA STREQUAL "ON")
    message(FATAL_ERROR "MILLRACE_CUDA is ON, but no CUDA toolkit ${MILLRACE_CUDA_MINIMUM} or later (nvcc) was found")
  endif()
endif()
if(MILLRACE_HAS_CUDA)
  message(STATUS "CUDA ${CUDAToolkit_VERSION}")
else()
  message(STATUS "CUDA: no toolkit is used; building without it")
endif()
