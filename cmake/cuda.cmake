# The CUDA modules: by nvcc for a GPU, by the emulator for the CPU.
#
#   NEEDLE_CUDA            AUTO (where there are nvcc and a GPU), ON (where there is nvcc) or OFF
#   NEEDLE_CUDA_EMU        the emulator's fast modules
#   NEEDLE_CUDA_EMU_CHECK  the emulator's modules that check every access
#
# Each is a target of its own: needle_cuda, needle_cuda_emu, needle_cuda_emu_check.  What does not work here is told in
# one line, which begins with "needle: CUDA:", and never stops the CPU's modules.
set(NEEDLE_CUDA AUTO CACHE STRING "Build the CUDA modules for a GPU: AUTO, ON or OFF")
set_property(CACHE NEEDLE_CUDA PROPERTY STRINGS AUTO ON OFF)
option(NEEDLE_CUDA_APART "Leave the CUDA modules out of the target `all`" OFF)
option(NEEDLE_CUDA_EMU "Build the CUDA modules for the CPU" OFF)
option(NEEDLE_CUDA_EMU_CHECK "Build the CUDA modules for the CPU, every access checked" OFF)

if(NOT EXISTS "${PROJECT_SOURCE_DIR}/src/ndarray_backend_cuda.cu")
  return()  # an early stage
endif()

# The typed kernels, which later stages have.
file(GLOB needle_typed_cuda "${PROJECT_SOURCE_DIR}/src/bindings/kernels_cuda.c[cu]")
if(needle_typed_cuda)
  file(GLOB needle_kernel_files CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/kernels/cuda/*.c[cu]")
  list(APPEND needle_typed_cuda ${needle_kernel_files} "${PROJECT_SOURCE_DIR}/src/kernels/buffer.cc"
    "${PROJECT_SOURCE_DIR}/src/kernels/caching_allocator.cc")
endif()

# The bindings of the course's file, compiled once for all modules made of it: see needle_want_bindings.
function(needle_course_cuda_bindings)
  if(NOT TARGET course_cuda_bindings)
    add_library(course_cuda_bindings STATIC EXCLUDE_FROM_ALL "${PROJECT_SOURCE_DIR}/src/bindings/ndarray_backend_cuda.cc")
    target_link_libraries(course_cuda_bindings PRIVATE needle_options pybind11::headers Python::Module)
  endif()
endfunction()

# needle_cuda_group(NAME TARGET...): a target for what is built together.
function(needle_cuda_group name)
  add_custom_target(${name} DEPENDS ${ARGN})
  if(NEEDLE_CUDA_APART)
    set_target_properties(${ARGN} PROPERTIES EXCLUDE_FROM_ALL TRUE)
  endif()
endfunction()

# ---- the emulator --------------------------------------------------------------------------------------------------

# needle_emulated(SUFFIX [CHECK]): the modules whose names end in SUFFIX.
function(needle_emulated suffix)
  needle_course_cuda_bindings()
  set(src "${PROJECT_SOURCE_DIR}/src")
  cuda_emu_add_library(course_cuda_array${suffix} "${src}/cuda_array.cc" ${ARGN})
  # a kernel file with a PYBIND11_MODULE names the module itself; the definition gives it the name that it has here
  set(course ndarray_backend_cuda${suffix})
  cuda_emu_add_module(${course} "${src}/ndarray_backend_cuda.cu" ${ARGN} INCLUDES "${src}"
    LIBRARIES course_cuda_bindings course_cuda_array${suffix} DEFINITIONS ndarray_backend_cuda=${course})
  needle_want_bindings(${course})
  set(targets ${course} course_cuda_array${suffix} cuda${suffix})
  if(needle_typed_cuda)
    cuda_emu_add_module(kernels_cuda${suffix} ${needle_typed_cuda} ${ARGN} INCLUDES "${src}"
      DEFINITIONS NEEDLE_KERNELS_MODULE=kernels_cuda${suffix})
    list(APPEND targets kernels_cuda${suffix})
  endif()
  needle_cuda_group(needle_cuda${suffix} ${targets})
endfunction()

if(NEEDLE_CUDA_EMU OR NEEDLE_CUDA_EMU_CHECK)
  include("${PROJECT_SOURCE_DIR}/cmake/cuda_emu.cmake")
  if(NEEDLE_CUDA_EMU)
    needle_emulated(_emu)
  endif()
  if(NEEDLE_CUDA_EMU_CHECK)
    needle_emulated(_emu_check CHECK)
  endif()
endif()

# ---- a GPU ---------------------------------------------------------------------------------------------------------

# needle_find_cuda(OUT): make nvcc ready; OUT says why not, or is empty.
macro(needle_find_cuda out)
  set(${out} "")
  if(NOT CMAKE_CUDA_COMPILER)
    unset(CMAKE_CUDA_COMPILER CACHE)  # it may have been installed since
  endif()
  include(CheckLanguage)
  check_language(CUDA)
  if(NOT CMAKE_CUDA_COMPILER)
    find_program(needle_nvcc NAMES nvcc NO_CACHE NO_CMAKE_SYSTEM_PATH)  # on PATH, as check_language looks
    if(needle_nvcc)
      set(${out} "${needle_nvcc} cannot compile with this C++ compiler; update one of them, or set CUDACXX and CUDAHOSTCXX")
    else()
      set(${out} "no nvcc on PATH; to build for a GPU, install the CUDA toolkit")
    endif()
  else()
    needle_choose_architectures()
    enable_language(CUDA)
    find_package(CUDAToolkit QUIET)
    if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 11.0)
      set(${out} "nvcc ${CMAKE_CUDA_COMPILER_VERSION} is too old for C++17; install CUDA 11 or newer")
    elseif(NOT TARGET CUDA::cudart_static)
      set(${out} "${CMAKE_CUDA_COMPILER} comes without the CUDA runtime library; install the whole CUDA toolkit")
    endif()
  endif()
endmacro()

# What is asked for in the environment; else what this machine's GPU needs; else, without one, every major architecture.
macro(needle_choose_architectures)
  if(DEFINED ENV{NEEDLE_CUDA_ARCHITECTURES})
    set(CMAKE_CUDA_ARCHITECTURES "$ENV{NEEDLE_CUDA_ARCHITECTURES}")
  elseif(NOT DEFINED CMAKE_CUDA_ARCHITECTURES AND NOT DEFINED ENV{CUDAARCHS})
    # "native" without a GPU stops old CMakes, and is a guess to new ones
    if(needle_has_gpu)
      set(CMAKE_CUDA_ARCHITECTURES native)
    else()
      set(CMAKE_CUDA_ARCHITECTURES all-major)
    endif()
  endif()
endmacro()

# needle_cuda_extension(NAME SOURCE...): one module for a GPU.  The runtime is linked in, so that a machine without CUDA
# can import the module, which then says what is missing.
function(needle_cuda_extension name)
  pybind11_add_module(${name} MODULE NO_EXTRAS ${ARGN})
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/src")
  target_compile_features(${name} PRIVATE cuda_std_17)
  target_link_libraries(${name} PRIVATE CUDA::cudart_static)
  set_target_properties(${name} PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${NEEDLE_OUTPUT_DIR}" CUDA_RUNTIME_LIBRARY Static)
  install(TARGETS ${name} LIBRARY DESTINATION needle/backend_ndarray)
endfunction()

function(needle_add_cuda_modules)
  needle_course_cuda_bindings()
  set(src "${PROJECT_SOURCE_DIR}/src")
  add_library(course_cuda_array STATIC EXCLUDE_FROM_ALL "${src}/cuda_array.cc")
  target_link_libraries(course_cuda_array PRIVATE needle_options CUDA::cudart_static)
  needle_cuda_extension(ndarray_backend_cuda "${src}/ndarray_backend_cuda.cu")
  target_link_libraries(ndarray_backend_cuda PRIVATE course_cuda_bindings course_cuda_array)
  needle_want_bindings(ndarray_backend_cuda)
  set(modules ndarray_backend_cuda)
  if(needle_typed_cuda)
    needle_cuda_extension(kernels_cuda ${needle_typed_cuda})
    target_compile_definitions(kernels_cuda PRIVATE NEEDLE_KERNELS_MODULE=kernels_cuda)
    list(APPEND modules kernels_cuda)
  endif()
  needle_cuda_group(needle_cuda ${modules})
endfunction()

if(NOT NEEDLE_CUDA)
  return()
endif()
execute_process(COMMAND nvidia-smi -L OUTPUT_VARIABLE needle_gpus ERROR_QUIET RESULT_VARIABLE needle_no_gpu)
if(needle_no_gpu EQUAL 0 AND needle_gpus MATCHES "GPU 0")
  set(needle_has_gpu TRUE)
endif()
if(NEEDLE_CUDA STREQUAL "AUTO" AND NOT needle_has_gpu)
  return()
endif()
needle_find_cuda(needle_why_no_cuda)
if(needle_why_no_cuda)
  message(STATUS "needle: CUDA: ${needle_why_no_cuda}")
else()
  needle_add_cuda_modules()
  message(STATUS "needle: CUDA: nvcc ${CMAKE_CUDA_COMPILER_VERSION} for architectures ${CMAKE_CUDA_ARCHITECTURES}")
endif()
