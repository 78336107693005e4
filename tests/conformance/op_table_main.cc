// Prints docs/ops.md; with a file, checks that it says the same.
#include <fstream>
#include <iostream>
#include <sstream>

#include "hlo/error.h"
#include "tests/conformance/op_table.h"

int main(int argc, char** argv) {
  try {
    const std::string table = hlorun::conformance::OpTable();
    if (argc < 2) {
      std::cout << table;
      return 0;
    }
    std::stringstream committed;
    committed << std::ifstream(argv[1]).rdbuf();
    if (committed.str() == table) return 0;
    std::cerr << argv[1] << " is not what the opcode table and the cases say: ops_table > " << argv[1] << "\n";
    return 1;
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 2;
  }
}
