// mylib::square in OpenCL C: each work-item squares one element. COUNT comes from the registration.
__kernel void square(__global const float* x, __global float* y) {
  const size_t i = get_global_id(0);
  if (i < COUNT) y[i] = x[i] * x[i];
}

// In place: the module aliases the result with the operand.
__kernel void square_in_place(__global float* x) {
  const size_t i = get_global_id(0);
  if (i < COUNT) x[i] *= x[i];
}
