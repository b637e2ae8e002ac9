# Ring order: solver and bandwidth store. Pure, links nothing but pccl_base.
if(NOT TARGET pccl_topology)
    add_library(pccl_topology STATIC
        ${CMAKE_CURRENT_LIST_DIR}/topology.c
        ${CMAKE_CURRENT_LIST_DIR}/topology_exact.c
        ${CMAKE_CURRENT_LIST_DIR}/topology_local.c
        ${CMAKE_CURRENT_LIST_DIR}/topology_climb.c
        ${CMAKE_CURRENT_LIST_DIR}/bandwidth.c
        ${CMAKE_CURRENT_LIST_DIR}/bandwidth_plan.c)
    target_link_libraries(pccl_topology PUBLIC pccl_base)
endif()
