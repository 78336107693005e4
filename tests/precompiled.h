// What nearly every test includes beyond cmake/precompiled.h.
#pragma once
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cmake/precompiled.h"
