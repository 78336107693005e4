// Groups of devices as axes of a mesh: mesh['a'=2,'b'=4], device_ids=([4,2]T(1,0)) {'a','b':(1)2}.
#pragma once

#include "hlo/attributes.h"
#include "hlo/text/lexer.h"

namespace hlorun::hlo {

// At "mesh". The result keeps the text as its mesh_form, and holds the groups that it means.
ReplicaGroups ReadMeshGroups(Lexer& lexer);

}  // namespace hlorun::hlo
