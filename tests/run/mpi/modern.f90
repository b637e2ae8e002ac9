! modern.f90 - the types of mpi_f08.
program modern
    use mpi_f08
    implicit none
    type(MPI_Comm) :: comm
    type(MPI_Request) :: requests(2)
    type(MPI_Status) :: status, statuses(2)
    type(MPI_Datatype) :: column
    type(MPI_Op) :: op
    type(MPI_Info) :: info
    integer :: rank, size, next, before, got, count, bad, total, m(3, 4), i
    character(MPI_MAX_OBJECT_NAME) :: name
    logical :: flag
    bad = 0
    call MPI_Init()
    call MPI_Comm_rank(MPI_COMM_WORLD, rank)
    call MPI_Comm_size(MPI_COMM_WORLD, size)
    next = mod(rank + 1, size)
    before = mod(rank + size - 1, size)
    call MPI_Comm_dup(MPI_COMM_WORLD, comm)
    call MPI_Comm_set_name(comm, 'modern')
    call MPI_Comm_get_name(comm, name, i)
    if (name /= 'modern' .or. comm == MPI_COMM_WORLD) bad = bad + 1
    call MPI_Irecv(got, 1, MPI_INTEGER, before, 1, comm, requests(1))
    call MPI_Isend(rank, 1, MPI_INTEGER, next, 1, comm, requests(2))
    call MPI_Waitall(2, requests, statuses)
    if (got /= before .or. statuses(1)%MPI_SOURCE /= before) bad = bad + 1
    call MPI_Get_count(statuses(1), MPI_INTEGER, count)
    if (count /= 1) bad = bad + 1
    m = reshape([(100 * rank + i, i = 1, 12)], [3, 4])
    call MPI_Type_vector(4, 1, 3, MPI_INTEGER, column)
    call MPI_Type_commit(column)
    call MPI_Bcast(m(2, 1), 1, column, size - 1, comm)
    if (any(m(2, :) /= [(100 * (size - 1) + 2 + 3 * i, i = 0, 3)])) &
        bad = bad + 1
    if (any(m(1, :) /= [(100 * rank + 1 + 3 * i, i = 0, 3)])) bad = bad + 1
    call MPI_Type_free(column)
    call MPI_Sendrecv(rank, 1, MPI_INTEGER, next, 2, got, 1, MPI_INTEGER, &
                      before, 2, comm, status)
    if (status%MPI_TAG /= 2) bad = bad + 1
    call MPI_Recv_init(got, 1, MPI_INTEGER, before, 3, comm, requests(1))
    call MPI_Send_init(rank, 1, MPI_INTEGER, next, 3, comm, requests(2))
    call MPI_Startall(2, requests)
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
    call MPI_Request_free(requests(1))
    call MPI_Request_free(requests(2))
    call MPI_Op_create(larger, .true., op)
    call MPI_Allreduce(rank, got, 1, MPI_INTEGER, op, comm)
    if (got /= size - 1) bad = bad + 1
    call MPI_Op_free(op)
    call MPI_Info_create(info)
    call MPI_Info_set(info, 'a', 'b')
    call MPI_Info_get(info, 'a', 10, name, flag)
    if (.not. flag .or. name /= 'b') bad = bad + 1
    call MPI_Info_free(info)
    call MPI_Comm_free(comm)
    if (comm /= MPI_COMM_NULL) bad = bad + 1
    total = bad
    call MPI_Allreduce(MPI_IN_PLACE, total, 1, MPI_INTEGER, MPI_SUM, &
                       MPI_COMM_WORLD)
    if (rank == 0 .and. total == 0) &
        print '(a,i0,a)', 'all right with ', size, ' ranks'
    call MPI_Finalize()
    if (total /= 0) stop 1
contains
    subroutine larger(in, inout, n, type)
        use, intrinsic :: iso_c_binding, only: c_ptr, c_f_pointer
        type(c_ptr), value :: in, inout
        integer :: n
        type(MPI_Datatype) :: type
        integer, pointer :: a(:), b(:)
        call c_f_pointer(in, a, [n])
        call c_f_pointer(inout, b, [n])
        b = max(a, b)
        if (type == MPI_DATATYPE_NULL) n = 0
    end subroutine
end program
