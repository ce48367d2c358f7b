/* The ranks of MPI_Allreduce, for `thinwire bench allreduce --peers mpi`.
 *
 * Arguments: warm-up calls, measured calls, and for each case the number of f32 values. Rank 0 prints a line of JSON for each
 * rank and case. All end when the standard input of rank 0 closes. */

#include <limits.h>
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Seconds that all cores together have worked since the machine started. */
static double busy_seconds(void) {
    unsigned long long user, nice, system, idle, waiting, hard, soft;
    FILE *stat = fopen("/proc/stat", "r");
    if (!stat) return 0;
    int found = fscanf(stat, "cpu %llu %llu %llu %llu %llu %llu %llu", &user, &nice, &system, &idle, &waiting, &hard, &soft);
    fclose(stat);
    return found == 7 ? (double)(user + nice + system + hard + soft) / sysconf(_SC_CLK_TCK) : 0;
}

static void *until_input_closes(void *unused) {
    char byte;
    while (read(0, &byte, 1) > 0) {}
    _exit(1);
    return unused;
}

static void *allocate(size_t bytes) {
    void *memory = malloc(bytes ? bytes : 1);
    if (!memory) {
        fprintf(stderr, "no memory for %zu bytes\n", bytes);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return memory;
}

static void print_case(int index, int ranks, int repeats, const double *seconds, double busy) {
    for (int rank = 0; rank < ranks; rank++) {
        printf("{\"case\":%d,\"rank\":%d,\"seconds\":[", index, rank);
        for (int call = 0; call < repeats; call++)
            printf("%s%.9f", call ? "," : "", seconds[rank * repeats + call]);
        if (rank == 0)
            printf("],\"busy_seconds\":%.2f}\n", busy);
        else
            printf("]}\n");
    }
    fflush(stdout);
}

static void measure(int index, size_t values, int warmup, int repeats) {
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (values > INT_MAX) {
        fprintf(stderr, "MPI counts up to %d values, not %zu\n", INT_MAX, values);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    float *x = allocate(values * sizeof *x), *y = allocate(values * sizeof *y);
    double *own = allocate(repeats * sizeof *own), *all = allocate((size_t)ranks * repeats * sizeof *all), busy = 0;
    /* Small whole numbers, whose sums are exact. */
    for (size_t i = 0; i < values; i++) x[i] = (float)(i % 13) + rank;
    for (int call = 0; call < warmup + repeats; call++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double before = busy_seconds(), begin = MPI_Wtime();
        MPI_Allreduce(x, y, (int)values, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        double seconds = MPI_Wtime() - begin;
        if (call >= warmup) {
            own[call - warmup] = seconds;
            busy += busy_seconds() - before;
        }
    }
    for (size_t i = 0; i < values; i++) {
        if (y[i] != (float)(i % 13) * ranks + ranks * (ranks - 1) / 2) {
            fprintf(stderr, "value %zu of the sum of %zu values is wrong\n", i, values);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
    }
    MPI_Gather(own, repeats, MPI_DOUBLE, all, repeats, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    if (rank == 0) print_case(index, ranks, repeats, all, busy);
    free(x);
    free(y);
    free(own);
    free(all);
}

int main(int count, char **arguments) {
    int rank;
    pthread_t watch;
    MPI_Init(&count, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (count < 3) MPI_Abort(MPI_COMM_WORLD, 2);
    if (rank == 0 && pthread_create(&watch, NULL, until_input_closes, NULL)) MPI_Abort(MPI_COMM_WORLD, 1);
    for (int index = 0; index < count - 3; index++)
        measure(index, strtoull(arguments[index + 3], NULL, 10), atoi(arguments[1]), atoi(arguments[2]));
    MPI_Finalize();
    return 0;
}
