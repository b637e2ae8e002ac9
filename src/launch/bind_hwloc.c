/* bind_hwloc.c - reads the processor topology by hwloc, which knows machines
 * that /sys describes badly, and what a container may use. */
#include "bind.h"

#ifdef PCCL_HWLOC

#include <hwloc.h>

static int number_of(hwloc_topology_t topology, hwloc_obj_type_t type,
                     hwloc_obj_t at)
{
    hwloc_obj_t above = hwloc_get_ancestor_obj_by_type(topology, type, at);
    return above ? (int)above->logical_index : 0;
}

/* Memory is no ancestor of a processor; it stands beside one. */
static int numa_of(hwloc_topology_t topology, hwloc_obj_t at)
{
    hwloc_obj_t node = NULL;
    while (
        (node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, node)))
        if (hwloc_bitmap_isset(node->cpuset, at->os_index))
            return (int)node->logical_index;
    return 0;
}

static bool read_topology(struct bind_machine *machine,
                          hwloc_topology_t topology)
{
    hwloc_obj_t at = NULL;
    cpu_set_t allowed;
    if (!hwloc_topology_is_thissystem(topology) ||
        sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        return false;
    machine->count = 0;
    while ((at = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_PU, at))) {
        if (at->os_index >= CPU_SETSIZE || !CPU_ISSET(at->os_index, &allowed))
            continue;
        machine->cpus[machine->count++] = (struct bind_cpu){
            .number = (int)at->os_index,
            .core = number_of(topology, HWLOC_OBJ_CORE, at),
            .socket = number_of(topology, HWLOC_OBJ_PACKAGE, at),
            .numa = numa_of(topology, at)};
    }
    return machine->count > 0;
}

void bind_read(struct bind_machine *machine)
{
    hwloc_topology_t topology;
    bool good = false;
    if (hwloc_topology_init(&topology) == 0) {
        good = hwloc_topology_load(topology) == 0 &&
               read_topology(machine, topology);
        hwloc_topology_destroy(topology);
    }
    if (!good) bind_read_system(machine);
}

#else

void bind_read(struct bind_machine *machine)
{
    bind_read_system(machine);
}

#endif
