# SPDX-License-Identifier: Apache-2.0
# Installs BUILD's component `development` into PREFIX, which is emptied first.
file(REMOVE_RECURSE ${PREFIX})
execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILD} --prefix ${PREFIX}
                        --component development
                COMMAND_ERROR_IS_FATAL ANY)
