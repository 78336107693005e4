// What the three small loops of jax's issue tracker and its scan benchmark compute, as one would write them by hand.

// carry, xs -> carry + x, carry * x: a chain, so one work-item.
__kernel void scan(__global const float* xs, __global float* last, __global float* ys) {
  float3 carry = (float3)(1.0f);
  for (int i = 0; i < 2000; ++i) {
    const float3 x = vload3(i, xs);
    vstore3(carry * x, i, ys);
    carry += x;
  }
  vstore3(carry, 0, last);
}

uint2 threefry(uint2 key, uint2 counter) {
  const uint keys[3] = {key.x, key.y, key.x ^ key.y ^ 466688986u};
  const int rotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  uint2 x = counter + key;
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < 4; ++i) {
      x.x += x.y;
      x.y = rotate(x.y, (uint)rotations[round % 2][i]) ^ x.x;
    }
    x.x += keys[(round + 1) % 3];
    x.y += keys[(round + 2) % 3] + round + 1;
  }
  return x;
}

// jax.random.split(key, 20)
__kernel void split(__global const uint* key, __global uint* keys) {
  const uint i = get_global_id(0);
  vstore2(threefry(vload2(0, key), (uint2)(0, i)), i, keys);
}

// Sixteen elements at a time: both polynomials, and a mask between them.
float16 inverse_error_function(float16 x) {
  const float16 w = -log1p(-x * x);
  const float16 u = w - 2.5f, v = sqrt(w) - 3.0f;
  float16 p = 2.81022636e-08f, q = -0.000200214257f;
  const float near[8] = {3.43273939e-07f, -3.5233877e-06f, -4.39150654e-06f, 0.00021858087f,
                         -0.00125372503f, -0.00417768164f, 0.246640727f, 1.50140941f};
  const float far[8] = {0.000100950558f, 0.00134934322f, -0.00367342844f, 0.00573950773f,
                        -0.0076224613f, 0.00943887047f, 1.00167406f, 2.83297682f};
  for (int i = 0; i < 8; ++i) {
    p = p * u + near[i];
    q = q * v + far[i];
  }
  return select(select(q, p, w < 5.0f) * x, x * INFINITY, fabs(x) == 1.0f);
}

// jax.random.normal(key, (20, 200))
__kernel void normal(__global const uint* key, __global float* out) {
  const uint block = get_global_id(0);
  const uint keys[3] = {key[0], key[1], key[0] ^ key[1] ^ 466688986u};
  const int rotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  const uint16 lanes = (uint16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  uint16 x = keys[0], y = lanes + 16 * block + keys[1];
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < 4; ++i) {
      x += y;
      y = rotate(y, (uint16)(rotations[round % 2][i])) ^ x;
    }
    x += keys[(round + 1) % 3];
    y += keys[(round + 2) % 3] + round + 1;
  }
  const float16 uniform = as_float16(((x ^ y) >> 9) | 0x3f800000u) - 1.0f;
  const float low = -0.99999994f;
  vstore16(1.41421354f * inverse_error_function(fmax(uniform * (1.0f - low) + low, low)), block, out);
}
