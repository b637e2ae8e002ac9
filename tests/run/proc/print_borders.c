/* print_borders.c - prints the sizes of borders.h, for a test in another
 * language: print_borders memory|tcp WORLD. */
#include "../../../src/bench/borders.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    static const enum plan_coll colls[] = {COLL_ALLREDUCE, COLL_BROADCAST,
                                           COLL_ALLGATHER, COLL_ALLTOALLV};
    if (argc != 3 || atoi(argv[2]) < 2) return 2;
    bool tcp = strcmp(argv[1], "tcp") == 0;
    for (size_t i = 0; i < ARRAY_COUNT(colls); i++) {
        uint64_t sizes[BORDERS_MAX];
        size_t count =
            borders_find(colls[i], tcp ? WHERE_SOCKETS : WHERE_MEMORY,
                         (uint32_t)atoi(argv[2]), sizeof(double), sizes);
        printf("%s", algorithm_coll_name(colls[i]));
        for (size_t k = 0; k < count; k++)
            printf(" %llu", (unsigned long long)sizes[k]);
        printf("\n");
    }
    return 0;
}
