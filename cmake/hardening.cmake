# SPDX-License-Identifier: Apache-2.0
# Compiler options that protect the whole tree against misuse of memory. tools/check_hardening.py checks the
# built programs. `assert` is only in the debug presets. The cheap checks of the standard library are in all:
# an index out of range ends the process instead of reading foreign memory.
include(CheckCXXCompilerFlag)
include(CheckPIESupported)

set(CMAKE_POSITION_INDEPENDENT_CODE ON)
check_pie_supported()
check_cxx_compiler_flag(-fcf-protection MILLRACE_HAS_CF_PROTECTION)  # x86 only

add_compile_definitions(_GLIBCXX_ASSERTIONS)
add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-fstack-protector-strong;$<$<BOOL:${MILLRACE_HAS_CF_PROTECTION}>:-fcf-protection>>")
add_link_options(-Wl,-z,relro,-z,now)

# Fortified calls need the optimiser, and would hide errors from the sanitizers.
set(optimised $<CONFIG:Release,RelWithDebInfo,MinSizeRel>)
add_compile_options($<${optimised}:-U_FORTIFY_SOURCE> $<${optimised}:-D_FORTIFY_SOURCE=3>)
