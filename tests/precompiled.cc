// CMake compiles a header for a target that has a source: this one.
