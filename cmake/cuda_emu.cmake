# The CUDA emulator: .cu files compiled by the C++ compiler, run on the CPU.  docs/cuda_emulator.md says what it does.
#
#   cuda_emu_runtime([CHECK])      the target cuda_emu, or cuda_emu_check: the runtime, a shared library
#   cuda_emu_add_module(NAME SOURCE... [CHECK] [LIBRARIES target...] [INCLUDES dir...] [DEFINITIONS name...])
#                                  a Python module of .cu files and, beside them, .cc files
#   cuda_emu_add_library(NAME SOURCE... [CHECK] ...)
#                                  the same as a static library: bindings that are compiled once, say
#   cuda_emu_sources(OUT SOURCE... [CHECK] [INCLUDES dir...])
#                                  the rewritten sources, for targets of another kind
#
# There is one runtime for all modules of a process, so that they share device memory.  It lies beside them, where they
# look for it ($ORIGIN), in NEEDLE_OUTPUT_DIR if that is set.  Files that are not .cu are compiled as they are, even for
# CHECK: they are code of the host, which may include <cuda_runtime.h> and launches nothing.

get_filename_component(CUDA_EMU_DIR "${CMAKE_CURRENT_LIST_DIR}/../src/cuda_emu" ABSOLUTE)

function(cuda_emu_runtime)
  cmake_parse_arguments(PARSE_ARGV 0 arg "CHECK" "" "")
  set(target cuda_emu)
  set(sources "")
  if(arg_CHECK)
    set(target cuda_emu_check)
    set(sources check_access check_hooks check_profile check_races)
  endif()
  if(TARGET ${target})
    return()
  endif()
  cuda_emu_core()
  list(TRANSFORM sources REPLACE "(.+)" "${CUDA_EMU_DIR}/runtime/\\1.cc")
  add_library(${target} SHARED ${sources} $<TARGET_OBJECTS:cuda_emu_core>)
  set_target_properties(${target} PROPERTIES LINKER_LANGUAGE CXX)
  cuda_emu_compile(${target})
  if(arg_CHECK)
    target_compile_definitions(${target} INTERFACE CUDA_EMU_CHECK)
  endif()
  target_link_libraries(${target} PUBLIC Threads::Threads PRIVATE ${CMAKE_DL_LIBS})
  if(NOT APPLE)
    # its own functions are its own: an instrumented copy in a module must not take their place
    target_link_options(${target} PRIVATE LINKER:-Bsymbolic)
  endif()
  cuda_emu_place(${target})
endfunction()

# What both builds of the runtime have in common, compiled once.
function(cuda_emu_core)
  if(TARGET cuda_emu_core)
    return()
  endif()
  find_package(Threads REQUIRED)
  set(sources api arena barrier clock context deadlock errors faults launch no_checks options scheduler shared_memory
    source_lines warp workers)
  list(TRANSFORM sources REPLACE "(.+)" "${CUDA_EMU_DIR}/runtime/\\1.cc")
  add_library(cuda_emu_core OBJECT EXCLUDE_FROM_ALL ${sources})
  cuda_emu_compile(cuda_emu_core)
endfunction()

function(cuda_emu_compile target)
  target_include_directories(${target} PUBLIC "${CUDA_EMU_DIR}/include")
  target_compile_features(${target} PUBLIC cxx_std_17)
  target_compile_options(${target} PRIVATE -O2 -g1 -Wall -Wextra)
  set_target_properties(${target} PROPERTIES
    POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
endfunction()

# Where a module or a runtime goes, and where it looks for the runtime.
function(cuda_emu_place target)
  set(origin "$ORIGIN")
  if(APPLE)
    set(origin "@loader_path")
  endif()
  set_target_properties(${target} PROPERTIES BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "${origin}")
  if(NEEDLE_OUTPUT_DIR)
    set_target_properties(${target} PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${NEEDLE_OUTPUT_DIR}")
    install(TARGETS ${target} LIBRARY DESTINATION needle/backend_ndarray)
  endif()
endfunction()

# rewrite.py turns each .cu file into a .cc file of the same lines, and the headers that need it with it.
function(cuda_emu_sources out)
  cmake_parse_arguments(PARSE_ARGV 1 arg "CHECK" "" "LIBRARIES;INCLUDES;DEFINITIONS")
  set(build fast)
  # -g1: reports name lines of the source, which addr2line (2.40) can mix up in DWARF 5; NDEBUG would turn the assertions
  # of kernels off
  set(options -O3 -gdwarf-4 -g1 -UNDEBUG)
  if(arg_CHECK)
    # compiled with, but not linked with, ThreadSanitizer: the runtime brings functions of its own in its place
    set(build check)
    set(options -O1 -gdwarf-4 -g1 -UNDEBUG -fsanitize=thread,bounds,alignment -fno-sanitize-recover=bounds,alignment)
    if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
      list(APPEND options -mllvm -tsan-instrument-read-before-write)  # a += b reads a, too
    endif()
  endif()
  list(TRANSFORM arg_INCLUDES PREPEND "-I")
  set(rewritten "")
  foreach(source IN LISTS arg_UNPARSED_ARGUMENTS)
    get_filename_component(source "${source}" ABSOLUTE)
    if(source MATCHES "\\.cu$")
      file(RELATIVE_PATH name "${PROJECT_SOURCE_DIR}" "${source}")
      string(MAKE_C_IDENTIFIER "${name}" identifier)
      set(made "${CMAKE_CURRENT_BINARY_DIR}/cuda_emu/${identifier}.${build}.cc")
      add_custom_command(OUTPUT "${made}" DEPFILE "${made}.d" VERBATIM
        DEPENDS "${source}" "${CUDA_EMU_DIR}/rewrite.py"
        COMMAND "${Python_EXECUTABLE}" "${CUDA_EMU_DIR}/rewrite.py" "${source}" "${made}" ${arg_INCLUDES}
        COMMENT "Rewriting ${name} for the CUDA emulator (${build})")
      set_source_files_properties("${made}" PROPERTIES COMPILE_OPTIONS "${options}")
      set(source "${made}")
    endif()
    list(APPEND rewritten "${source}")
  endforeach()
  set(${out} "${rewritten}" PARENT_SCOPE)
endfunction()

function(cuda_emu_add_module name)
  cuda_emu_sources(sources ${ARGN})
  pybind11_add_module(${name} MODULE NO_EXTRAS ${sources})
  cuda_emu_finish(${name} ${ARGN})
  cuda_emu_place(${name})
endfunction()

function(cuda_emu_add_library name)
  cuda_emu_sources(sources ${ARGN})
  add_library(${name} STATIC ${sources})
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden)
  cuda_emu_finish(${name} ${ARGN})
endfunction()

# What modules and libraries have in common.
function(cuda_emu_finish name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "CHECK" "" "LIBRARIES;INCLUDES;DEFINITIONS")
  if(arg_CHECK)
    cuda_emu_runtime(CHECK)
    set(runtime cuda_emu_check)
  else()
    cuda_emu_runtime()
    set(runtime cuda_emu)
  endif()
  target_include_directories(${name} PRIVATE ${arg_INCLUDES})
  target_compile_definitions(${name} PRIVATE ${arg_DEFINITIONS})
  target_link_libraries(${name} PRIVATE ${arg_LIBRARIES} ${runtime})
endfunction()
