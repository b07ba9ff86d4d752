# SPDX-License-Identifier: Apache-2.0
# CPack runs this on the files of a package. It compresses and strips the files for which Debian's policy requires it.
file(GLOB_RECURSE compress ${CPACK_TEMPORARY_DIRECTORY}/*/changelog ${CPACK_TEMPORARY_DIRECTORY}/*.1)
if(compress)
  execute_process(COMMAND gzip -9n ${compress} COMMAND_ERROR_IS_FATAL ANY)
endif()
file(GLOB_RECURSE archives ${CPACK_TEMPORARY_DIRECTORY}/*.a)
if(archives)
  execute_process(COMMAND strip --strip-debug ${archives} COMMAND_ERROR_IS_FATAL ANY)
endif()
