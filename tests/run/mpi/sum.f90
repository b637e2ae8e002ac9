! sum.f90 - Fortran programs: use mpi, in-place and other named constants,
! attributes and a user's operator, which all cross the C interface.
program sum
    use mpi
    implicit none
    integer :: rank, ranks, error, i, op, half, status(MPI_STATUS_SIZE)
    integer :: request, counts(1)
    integer(kind=MPI_ADDRESS_KIND) :: bound
    logical :: flag
    double precision :: mine(100), total(100)
    external :: add

    call MPI_Init(error)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
    mine = [(dble(i + rank), i = 1, 100)]
    call MPI_Allreduce(mine, total, 100, MPI_DOUBLE_PRECISION, MPI_SUM, &
        MPI_COMM_WORLD, error)
    call check(all(total == [(dble(ranks * i) + ranks * (ranks - 1) / 2, &
        i = 1, 100)]), 1)
    call MPI_Allreduce(MPI_IN_PLACE, mine, 100, MPI_DOUBLE_PRECISION, &
        MPI_SUM, MPI_COMM_WORLD, error)
    call check(all(mine == total), 2)
    call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, bound, flag, error)
    call check(flag .and. bound >= 32767, 3)
    call MPI_Op_create(add, .true., op, error)
    call MPI_Iallreduce(1, i, 1, MPI_INTEGER, op, MPI_COMM_WORLD, request, &
        error)
    call MPI_Wait(request, status, error)
    call check(i == ranks, 4)
    call MPI_Op_free(op, error)
    call MPI_Comm_split(MPI_COMM_WORLD, mod(rank, 2), rank, half, error)
    counts = 1
    call MPI_Allreduce(MPI_IN_PLACE, counts, 1, MPI_INTEGER, MPI_SUM, half, &
        error)
    call MPI_Comm_size(half, i, error)
    call check(counts(1) == i, 5)
    call MPI_Barrier(MPI_COMM_WORLD, error)
    if (rank == 0) print '(A, I0, A)', 'Fortran: all right with ', ranks, &
        ' ranks'
    call MPI_Finalize(error)
contains
    subroutine check(good, number)
        logical, intent(in) :: good
        integer, intent(in) :: number
        integer :: ignored
        if (good) return
        print *, 'check', number, 'of rank', rank, 'failed'
        call MPI_Abort(MPI_COMM_WORLD, number, ignored)
    end subroutine check
end program sum

subroutine add(from, to, count, kind)
    implicit none
    integer :: count, kind, from(count), to(count)
    if (kind == 0) return
    to = to + from
end subroutine add
