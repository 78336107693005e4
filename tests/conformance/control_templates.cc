// Calls, branches, loops, tuples, dynamic sizes.
#include "tests/conformance/template_cases.h"

// Tables, one case a row.
// clang-format off

namespace hlorun::conformance {

std::vector<Template> ControlTemplates() {
  const std::string few = "s32 f32 bf16";
  const std::string branches = "a { x = $T[3] parameter(0)\n ROOT r = $T[3] negate(x) }\nb { x = $T[3] parameter(0)\n ROOT r = $T[3] add(x, x) }\nc { ROOT x = $T[3] parameter(0) }\n";
  const std::string cases = "ENTRY e { i = s32[] parameter(0)\n x = $T[3] parameter(1)\n ROOT r = $T[3] conditional(i, x, x, x), branch_computations={a, b, c} }";
  return {
      {"call", few, "f { x = $T[3] parameter(0)\n y = $T[3] parameter(1)\n ROOT r = $T[3] subtract(x, y) }\nENTRY e { x = $T[3] parameter(0)\n y = $T[3] parameter(1)\n ROOT r = $T[3] call(y, x), to_apply=f }"},
      {"conditional-true", few, branches + "ENTRY e { p = pred[] parameter(0)\n x = $T[3] parameter(1)\n ROOT r = $T[3] conditional(p, x, x), true_computation=a, false_computation=b }", 0, 0, {{0, {1}}}},
      {"conditional-false", few, branches + "ENTRY e { p = pred[] parameter(0)\n x = $T[3] parameter(1)\n ROOT r = $T[3] conditional(p, x, x), true_computation=a, false_computation=b }", 0, 0, {{0, {0}}}},
      {"conditional-0", few, branches + cases, 0, 0, {{0, {0}}}},
      {"conditional-1", few, branches + cases, 0, 0, {{0, {1}}}},
      {"conditional-9", few, branches + cases, 0, 0, {{0, {9}}}},
      {"conditional-negative", few, branches + cases, 0, 0, {{0, {-1}}}},
      {"while", few, "body { s = (s32[], $T[3]) parameter(0)\n i = s32[] get-tuple-element(s), index=0\n x = $T[3] get-tuple-element(s), index=1\n one = s32[] constant(1)\n n = s32[] add(i, one)\n y = $T[3] add(x, x)\n ROOT t = (s32[], $T[3]) tuple(n, y) }\ncond { s = (s32[], $T[3]) parameter(0)\n i = s32[] get-tuple-element(s), index=0\n l = s32[] constant(4)\n ROOT p = pred[] compare(i, l), direction=LT }\nENTRY e { i = s32[] parameter(0)\n x = $T[3] parameter(1)\n s = (s32[], $T[3]) tuple(i, x)\n ROOT w = (s32[], $T[3]) while(s), condition=cond, body=body }"},
      // Rows of a few elements, changed in place.
      {"while-pixels", few, "body { s = (s32[], $T[61,70,3], $T[61,70], $T[3]) parameter(0)\n i = s32[] get-tuple-element(s), index=0\n x = $T[61,70,3] get-tuple-element(s), index=1\n m = $T[61,70] get-tuple-element(s), index=2\n c = $T[3] get-tuple-element(s), index=3\n one = s32[] constant(1)\n n = s32[] add(i, one)\n a = $T[61,70,3] broadcast(m), dimensions={0,1}\n b = $T[61,70,3] broadcast(c), dimensions={2}\n ab = $T[61,70,3] multiply(a, b)\n y = $T[61,70,3] add(x, ab)\n ROOT t = (s32[], $T[61,70,3], $T[61,70], $T[3]) tuple(n, y, m, c) }\ncond { s = (s32[], $T[61,70,3], $T[61,70], $T[3]) parameter(0)\n i = s32[] get-tuple-element(s), index=0\n l = s32[] constant(2)\n ROOT p = pred[] compare(i, l), direction=LT }\nENTRY e { i = s32[] constant(0)\n x = $T[61,70,3] parameter(0)\n m = $T[61,70] parameter(1)\n c = $T[3] parameter(2)\n s = (s32[], $T[61,70,3], $T[61,70], $T[3]) tuple(i, x, m, c)\n w = (s32[], $T[61,70,3], $T[61,70], $T[3]) while(s), condition=cond, body=body\n ROOT r = $T[61,70,3] get-tuple-element(w), index=1 }"},
      {"while-swap", few, "body { s = (s32[], $T[3], $T[3]) parameter(0)\n i = s32[] get-tuple-element(s), index=0\n x = $T[3] get-tuple-element(s), index=1\n y = $T[3] get-tuple-element(s), index=2\n one = s32[] constant(1)\n n = s32[] add(i, one)\n ROOT t = (s32[], $T[3], $T[3]) tuple(n, y, x) }\ncond { s = (s32[], $T[3], $T[3]) parameter(0)\n i = s32[] get-tuple-element(s), index=0\n l = s32[] constant(5)\n ROOT p = pred[] compare(i, l), direction=LT }\nENTRY e { i = s32[] constant(0)\n x = $T[3] parameter(0)\n y = $T[3] parameter(1)\n s = (s32[], $T[3], $T[3]) tuple(i, x, y)\n ROOT w = (s32[], $T[3], $T[3]) while(s), condition=cond, body=body }"},
      {"while-no-iterations", few, "body { ROOT s = $T[] parameter(0) }\ncond { s = $T[] parameter(0)\n ROOT p = pred[] constant(false) }\nENTRY e { x = $T[] parameter(0)\n ROOT w = $T[] while(x), condition=cond, body=body }"},
      {"nested-tuple", few, "ENTRY e { x = $T[2] parameter(0)\n y = $T[3] parameter(1)\n t = ($T[2], $T[3]) tuple(x, y)\n u = (($T[2], $T[3]), $T[3]) tuple(t, y)\n v = ($T[2], $T[3]) get-tuple-element(u), index=0\n w = $T[3] get-tuple-element(v), index=1\n ROOT r = ($T[3], $T[2]) tuple(w, x) }"},
      {"barrier", few, "ENTRY e { x = $T[2] parameter(0)\n y = $T[3] parameter(1)\n t = ($T[2], $T[3]) tuple(x, y)\n b = ($T[2], $T[3]) opt-barrier(t)\n ROOT r = $T[3] get-tuple-element(b), index=1 }"},
      {"set-dimension-size-sum", "s32 f32", "$ADDENTRY e { x = $T[8] parameter(0)\n n = s32[] parameter(1)\n d = $T[<=8] set-dimension-size(x, n), dimensions={0}\n z = $T[] constant(0)\n ROOT r = $T[] reduce(d, z), dimensions={0}, to_apply=add }", 0, 0, {{1, {5}}}},
      {"get-dimension-size", "s32 f32", "ENTRY e { x = $T[8,3] parameter(0)\n n = s32[] parameter(1)\n d = $T[<=8,3] set-dimension-size(x, n), dimensions={0}\n s = s32[] get-dimension-size(d), dimensions={0}\n t = s32[] get-dimension-size(x), dimensions={1}\n ROOT r = (s32[], s32[]) tuple(s, t) }", 0, 0, {{1, {5}}}},
      {"partition-id", "s32", "ENTRY e { x = $T[] parameter(0)\n p = u32[] partition-id()\n q = u32[] replica-id()\n ROOT r = (u32[], u32[], $T[]) tuple(p, q, x) }"},
      {"all-reduce-alone", "s32 f32", "$ADDENTRY e { x = $T[3] parameter(0)\n ROOT r = $T[3] all-reduce(x), replica_groups={{0}}, to_apply=add }"},
      {"collective-permute-alone", "f32", "ENTRY e { x = $T[3] parameter(0)\n ROOT r = $T[3] collective-permute(x), source_target_pairs={} }"},
  };
}

}  // namespace hlorun::conformance
