// Part of every executable that is built with a sanitizer: what the OpenCL and MPI runtimes do, and their compilers, is
// not reported. Each line names a library or a component of theirs.
#include <cstdlib>

extern "C" {

int __lsan_is_turned_off();
const char* __lsan_default_options();
const char* __lsan_default_suppressions();
const char* __tsan_default_suppressions();

// Open MPI unloads its components before leaks are looked for, so that theirs have no name to go by. Addresses and
// undefined behaviour are watched in its jobs all the same.
int __lsan_is_turned_off() {
  return std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr || std::getenv("PMI_SIZE") != nullptr;
}

// The tests compare what is printed.
const char* __lsan_default_options() { return "print_suppressions=0"; }

const char* __lsan_default_suppressions() {
  return "leak:libpocl\n"
         "leak:libLLVM\n"
         "leak:libclang\n"
         "leak:libOpenCL\n";
}

const char* __tsan_default_suppressions() {
  return "race:libpocl\n"
         "race:libLLVM\n"
         "race:libclang\n"
         "race:libOpenCL\n"
         "race:libopen-pal\n"
         "race:libmpi\n"
         "mutex:libpocl\n"
         "mutex:libLLVM\n"
         "deadlock:libpocl\n"
         "race:openmpi3/mca_\n"
         "race:libevent\n"
         "deadlock:mca_btl_tcp\n"
         "thread:libpocl\n"
         "called_from_lib:libpocl.so\n"
         "called_from_lib:libpocl-devices-basic\n"
         "called_from_lib:libpocl-devices-pthread\n";
}

}  // extern "C"
