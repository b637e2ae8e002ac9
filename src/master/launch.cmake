# The library of pccl-master: link main.c + pccl_launch + the coordinator.
find_path(EV_INCLUDE_DIR ev.h)
find_library(EV_LIBRARY ev)
if(NOT TARGET pccl_env)
    add_library(pccl_env STATIC ${CMAKE_CURRENT_LIST_DIR}/../env.c)
    target_link_libraries(pccl_env PUBLIC pccl_flags)
endif()
set(launch_sources memory address hosts bind options option_table option_places help rank_env
    descriptor guard spawn link forward proc input reach remote agent job
    job_host job_rank launch)
list(TRANSFORM launch_sources PREPEND ${CMAKE_CURRENT_LIST_DIR}/launch/)
list(TRANSFORM launch_sources APPEND .c)
add_library(pccl_launch STATIC ${launch_sources})
target_compile_definitions(pccl_launch PRIVATE
    PCCL_VERSION="${PROJECT_VERSION}")
target_include_directories(pccl_launch SYSTEM PUBLIC ${EV_INCLUDE_DIR})
target_link_libraries(pccl_launch PUBLIC pccl_env pccl_flags ${EV_LIBRARY})
