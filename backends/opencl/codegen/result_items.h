// The work-items of a GPU's group that share a few results: each is a lane of one of them.
#pragma once

#include <functional>

#include "backends/opencl/codegen/lane_join.h"

namespace hlorun::opencl {

class ResultItems {
 public:
  struct Size {
    int64_t results = 1;   // in all
    int64_t items = 1;     // lanes of a result, in a group
    int64_t across = 1;    // results of a group
    bool is_rows = false;  // neighbouring items are lanes of one result; else they have neighbouring results
    int64_t group() const { return items * across; }
  };
  ResultItems(Emission& e, const Size& size) : e_(e), size_(size) {}

  // Opens a block and names this item's place in it. Behind the last result, items do what those of the last one do,
  // and must store nothing.
  void Open();
  // Closes it: the loops over all groups and items.
  ir::Stmt Close();

  const Index& lane() const { return lane_; }
  const Index& result() const { return result_; }
  const ir::Expr& has_result() const { return has_result_; }  // null: every item has one
  LaneTeam Team() const;
  // What `body` writes, by one item of each result.
  void OnFirstLaneOfEach(const std::function<void()>& body);

 private:
  Index Named(const std::string& name, const ir::Expr& value, int64_t extent);

  Emission& e_;
  Size size_;
  ir::Var group_var_, item_var_;
  Index lane_, across_, result_;
  ir::Expr has_result_;
};

}  // namespace hlorun::opencl
