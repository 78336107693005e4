// hlorun-compiler PLATFORM DEVICE FOLDER COUNT: compiles what lies in FOLDER; see compiler_process.h.
#include "backends/opencl/runtime/compiler_process.h"

int main(int argc, char** argv) {
  try {
    return hlorun::opencl::CompilerProcesses::Main(argc, argv);
  } catch (const std::exception&) {
    return 1;  // the owner compiles the program itself and then says what is wrong
  }
}
