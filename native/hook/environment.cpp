#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "hook.hpp"

namespace iprof {

Environment environment;

namespace {

void copy_variable(char* target, size_t size, const char* variable) {
    const char* value = getenv(variable);
    snprintf(target, size, "%s", value ? value : "");
}

// The first of the variables that holds a whole number, or -1.
template <size_t N>
int first_number(const char* const (&variables)[N]) {
    for (const char* variable : variables) {
        const char* value = getenv(variable);
        if (!value || !*value) continue;
        char* end = nullptr;
        const long number = strtol(value, &end, 10);
        if (!*end && number >= 0 && number <= INT32_MAX) return static_cast<int>(number);
    }
    return -1;
}

// The arguments of this process, joined by spaces; cut where they do not fit.
void read_command(char* target, size_t size) {
    const int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    const ssize_t length = read(fd, target, size - 1);
    close(fd);
    if (length <= 0) return;
    for (ssize_t i = 0; i + 1 < length; ++i) {
        if (!target[i]) target[i] = ' ';
    }
    target[length] = '\0';
}

void read_executable(char* target, size_t size) {
    const ssize_t length = readlink("/proc/self/exe", target, size - 1);
    target[length > 0 ? length : 0] = '\0';
}

}  // namespace

void read_environment() noexcept {
    const int saved_errno = errno;
    const char* debug_variable = getenv("IPROF_HOOK_DEBUG");
    environment.debug = debug_variable && strcmp(debug_variable, "1") == 0;
    copy_variable(environment.run_id, sizeof environment.run_id, "IPROF_RUN_ID");
    environment.rank = first_number({"RANK", "PALS_RANKID", "PMI_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"});
    environment.local_rank = first_number({"LOCAL_RANK", "PALS_LOCAL_RANKID", "PMI_LOCAL_RANK",
                                           "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"});
    environment.world_size = first_number({"WORLD_SIZE", "PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS"});
    read_executable(environment.executable, sizeof environment.executable);
    read_command(environment.command, sizeof environment.command);
    errno = saved_errno;
}

void debug(const char* format, ...) noexcept {
    if (!environment.debug) return;
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    dprintf(STDERR_FILENO, "iprof-hook[%d]: %s\n", getpid(), line);
}

}  // namespace iprof
