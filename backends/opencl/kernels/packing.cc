#include "backends/opencl/kernels/packing.h"

#include <algorithm>

#include "backends/opencl/codegen/ceil_div.h"
#include "backends/opencl/kernels/index_math.h"
#include "backends/opencl/kernels/turned_panel.h"

namespace hlorun::opencl {
namespace {

using ir::Expr;
using ir::kIndex;
using ir::Stmt;

// Rows that one work-group copies.
constexpr int64_t kRowsOfGroup = 64;

// Source and destination of a copy, and how elements are read.
class Copy {
 public:
  Copy(const MatrixSource& source, hlo::ElementType type, int64_t out_elements, const ArgumentRef& out,
       uint32_t flip = 0)
      : type_(type), flip_(flip), ends_(parameters_) {
    const int64_t elements = source.batch * source.rows * source.columns;
    from_ = parameters_.Add("source", source.storage, elements, source.argument);
    ArgumentRef written = out;
    written.written = true;
    to_ = parameters_.Add("packed", type, out_elements, written);
  }

  Expr Read(const Expr& index, const Expr& predicate = nullptr) const {
    return ir::Cast(ir::Load(from_, index, predicate), type_);
  }
  Expr ReadVector(const Expr& index, int64_t lanes) const { return Read(ir::Ramp(index, static_cast<int>(lanes))); }
  Stmt Write(const Expr& index, const Expr& value) const {
    const Expr flipped = flip_ == 0 ? value : ir::Binary(ir::Op::kXor, value, ir::Int(flip_, value->type));
    return ir::Store(to_, ir::Ramp(index, value->type.lanes), flipped);
  }
  // How many pieces of `size` there are of `bound` rows or columns.
  Expr Pieces(SizedLoop loop, int64_t bound, int64_t size, const std::string& name) {
    loop.bound = bound;
    return ends_.Pieces(loop, size, name);
  }
  const ir::BufferRef& from() const { return from_; }
  const ir::BufferRef& to() const { return to_; }
  KernelDraft Finish(const std::string& name, const Stmt& body, std::vector<ir::Helper> helpers = {}) const {
    return Packing(MakeDraft(name, parameters_, ends_.Before(body), std::move(helpers)));
  }

 private:
  hlo::ElementType type_;
  uint32_t flip_;  // exclusive or of what is written
  KernelParameters parameters_;
  LoopEnds ends_;
  ir::BufferRef from_, to_;
};

// for batch, for panel, for rows in chunks: body(batch, panel, first row, end row)
template <typename Body>
Stmt ForPanels(int64_t batch, int64_t panels, int64_t rows, const Expr& panels_there, const Expr& chunks_there,
               const Body& body, int64_t rows_of_group = kRowsOfGroup) {
  const int64_t chunks = CeilDiv(rows, rows_of_group);
  const ir::Var b = ir::MakeIndex("batch", 0, batch - 1, kIndex), p = ir::MakeIndex("panel", 0, panels - 1, kIndex);
  const ir::Var c = ir::MakeIndex("chunk", 0, chunks - 1, kIndex);
  const Expr first = ir::Ref(c) * rows_of_group;
  const Expr end = rows % rows_of_group == 0 ? first + rows_of_group : ir::Min(first + rows_of_group, Index(rows));
  const Stmt inner =
      ir::For(ir::LoopRole::kParallel, c, Index(0), chunks_there, body(ir::Ref(b), ir::Ref(p), first, end));
  const Stmt middle = ir::For(ir::LoopRole::kParallel, p, Index(0), panels_there, inner);
  return ir::For(ir::LoopRole::kParallel, b, Index(0), Index(batch), middle);
}

Stmt Serial(const ir::Var& var, const Expr& begin, const Expr& end, const Stmt& body, int64_t step = 1) {
  return ir::For(ir::LoopRole::kSerial, var, begin, end, body, step);
}

}  // namespace

KernelDraft PackColumns(const MatrixSource& source, hlo::ElementType type, int64_t lanes, int64_t width,
                        const ArgumentRef& out) {
  const int64_t k = source.rows, n = source.columns, panels = CeilDiv(n, width);
  Copy copy(source, type, source.batch * panels * k * width, out);
  const Expr panels_there = copy.Pieces(source.columns_there, n, width, "columns_end");
  const Expr chunks_there = copy.Pieces(source.rows_there, k, kRowsOfGroup, "rows_end");
  const Stmt body =
      ForPanels(source.batch, panels, k, panels_there, chunks_there,
                [&](const Expr& b, const Expr& p, const Expr& first, const Expr& end) {
                  const ir::Var row = ir::MakeIndex("row", 0, k - 1, kIndex);
                  const Expr from = (b * k + ir::Ref(row)) * n + p * width;
                  const Expr to = ((b * panels + p) * k + ir::Ref(row)) * width;
                  std::vector<Stmt> whole, edge;
                  for (int64_t j = 0; j < width; j += lanes) {
                    whole.push_back(copy.Write(to + j, copy.ReadVector(from + j, lanes)));
                    const Expr column = ir::Ramp(p * width + j, static_cast<int>(lanes));
                    edge.push_back(copy.Write(to + j, copy.Read(ir::Ramp(from + j, static_cast<int>(lanes)),
                                                                ir::Compare(ir::Op::kLt, column, Index(n)))));
                  }
                  const Stmt copy_whole = Serial(row, first, end, ir::Block(std::move(whole)));
                  if (n % width == 0) return copy_whole;
                  const Stmt copy_edge = Serial(row, first, end, ir::Block(std::move(edge)));
                  return ir::If(p < Index(n / width), copy_whole, copy_edge);
                });
  return copy.Finish("pack_columns", body);
}

KernelDraft PackColumnWords(const MatrixSource& source, int64_t lanes, int64_t width, uint32_t flip,
                            const ArgumentRef& out) {
  const int64_t bits = 8 * hlo::BytesOf(source.storage), elements = 32 / bits;
  const int64_t words = CeilDiv(source.rows, elements), n = source.columns, panels = CeilDiv(n, width);
  const bool is_whole = source.rows % elements == 0;
  Copy copy(source, hlo::ElementType::kU32, source.batch * panels * words * width, out, flip);
  const Expr panels_there = copy.Pieces(source.columns_there, n, width, "columns_end"),
             chunks = Index(CeilDiv(words, kRowsOfGroup));
  const Stmt body = ForPanels(
      source.batch, panels, words, panels_there, chunks,
      [&](const Expr& b, const Expr& p, const Expr& first, const Expr& end) {
        const ir::Var word = ir::MakeIndex("word", 0, words - 1, kIndex);
        const Expr from = (b * source.rows + ir::Ref(word) * elements) * n + p * width;
        const Expr to = ((b * panels + p) * words + ir::Ref(word)) * width;
        const auto row_of_words = [&](bool edge) {
          std::vector<Stmt> pieces;
          for (int64_t j = 0; j < width; j += lanes) {
            const auto ramp = [&](const Expr& at) { return ir::Ramp(at + j, static_cast<int>(lanes)); };
            const Expr inside = edge ? ir::Compare(ir::Op::kLt, ramp(p * width), Index(n)) : nullptr;
            Expr joined = copy.Read(ramp(from), inside);
            for (int64_t e = 1; e < elements; ++e) {
              const Expr row = ir::Ref(word) * elements;
              const Expr ahead = is_whole ? Index(e) : ir::Min(Index(e), Index(source.rows - 1) - row);
              Expr next = copy.Read(ramp(from + ahead * n), inside);
              if (!is_whole) next = ir::Select(row + e < Index(source.rows), next, ir::Zero(next->type));
              joined = ir::Binary(ir::Op::kOr, joined, ir::Binary(ir::Op::kShl, next, ir::Int(e * bits, next->type)));
            }
            pieces.push_back(copy.Write(to + j, joined));
          }
          return Serial(word, first, end, ir::Block(std::move(pieces)));
        };
        return n % width == 0 ? row_of_words(false)
                              : ir::If(p < Index(n / width), row_of_words(false), row_of_words(true));
      });
  return copy.Finish("pack_column_words", body);
}

KernelDraft PackTransposed(const MatrixSource& source, hlo::ElementType type, int64_t lanes, int64_t width,
                           uint32_t flip, bool inline_assembly, const ArgumentRef& out) {
  const int64_t n = source.rows, k = source.columns, panels = CeilDiv(n, width);
  Copy copy(source, type, source.batch * panels * k * width, out);
  const Expr panels_there = copy.Pieces(source.rows_there, n, width, "rows_end");
  const Expr chunks_there = copy.Pieces(source.columns_there, k, kRowsOfGroup, "columns_end");
  TurnedPanel panel{copy.from(), copy.to(), type, flip, n, k, width, lanes};
  const bool even = k % lanes == 0 && kRowsOfGroup % lanes == 0;
  const Stmt body = ForPanels(source.batch, panels, k, panels_there, chunks_there,
                              [&](const Expr& b, const Expr& p, const Expr& first, const Expr& end) {
                                panel.number = p;
                                panel.from = (b * n + p * width) * k;
                                panel.to = (b * panels + p) * k * width;
                                return CopyTurned(panel, first, end, even);
                              });
  return copy.Finish("pack_transposed", body, TurnedPanelHelpers(source.storage, type, lanes, inline_assembly));
}

KernelDraft PackTiles(const MatrixSource& source, hlo::ElementType type, int64_t lanes, int64_t width,
                      const ArgumentRef& out) {
  const int64_t k = source.rows, m = source.columns, tiles = CeilDiv(m, width);
  Copy copy(source, type, source.batch * tiles * k * width, out);
  const Expr tiles_there = copy.Pieces(source.columns_there, m, width, "columns_end");
  const Expr chunks_there = copy.Pieces(source.rows_there, k, kRowsOfGroup, "rows_end");
  const Stmt body = ForPanels(source.batch, tiles, k, tiles_there, chunks_there,
                              [&](const Expr& b, const Expr& t, const Expr& first, const Expr& end) {
                                const ir::Var row = ir::MakeIndex("row", 0, k - 1, kIndex);
                                const Expr column = m % width == 0 ? t * width : ir::Min(t * width, Index(m - width));
                                const Expr from = (b * k + ir::Ref(row)) * m + column;
                                const Expr to = ((b * tiles + t) * k + ir::Ref(row)) * width;
                                std::vector<Stmt> pieces;
                                int64_t piece = lanes;
                                for (int64_t j = 0; j < width; j += piece) {
                                  while (piece > width - j) piece /= 2;
                                  pieces.push_back(copy.Write(to + j, copy.ReadVector(from + j, piece)));
                                }
                                return Serial(row, first, end, ir::Block(std::move(pieces)));
                              });
  return copy.Finish("pack_tiles", body);
}

KernelDraft Convert(const MatrixSource& source, hlo::ElementType type, int64_t lanes, const ArgumentRef& out) {
  constexpr int64_t kVectorsOfGroup = 256;
  const int64_t elements = source.batch * source.rows * source.columns;
  Copy copy(source, type, elements, out);
  const int64_t chunk = kVectorsOfGroup * lanes, chunks = CeilDiv(elements, chunk);
  // Rows lie one after another: the first of them are the first elements.
  SizedLoop there{elements, source.batch == 1 ? source.rows_there.extent : std::nullopt,
                  source.rows_there.scale * source.columns};
  const Expr chunks_there = copy.Pieces(there, elements, chunk, "elements_end");
  const ir::Var c = ir::MakeIndex("chunk", 0, chunks - 1, kIndex), i = ir::MakeIndex("i", 0, elements - 1, kIndex);
  const Expr first = ir::Ref(c) * chunk;
  const Expr end = elements % chunk == 0 ? first + chunk : ir::Min(first + chunk, Index(elements));
  const Expr whole =
      elements % lanes == 0 ? end : first + ir::Binary(ir::Op::kFloorDiv, end - first, Index(lanes)) * lanes;
  std::vector<Stmt> body = {Serial(i, first, whole, copy.Write(ir::Ref(i), copy.ReadVector(ir::Ref(i), lanes)), lanes)};
  if (elements % lanes != 0) body.push_back(Serial(i, whole, end, copy.Write(ir::Ref(i), copy.Read(ir::Ref(i)))));
  return copy.Finish("convert",
                     ir::For(ir::LoopRole::kParallel, c, Index(0), chunks_there, ir::Block(std::move(body))));
}

KernelDraft SpreadRows(const MatrixSource& source, hlo::ElementType type, int64_t lanes, int64_t stride,
                       const ArgumentRef& out) {
  constexpr int64_t kRowsOfCopy = 4;
  const int64_t rows = source.rows, columns = source.columns;
  Copy copy(source, type, source.batch * rows * stride, out);
  const Expr chunks_there = copy.Pieces(source.rows_there, rows, kRowsOfCopy, "rows_end");
  const Stmt body = ForPanels(
      source.batch, 1, rows, Index(1), chunks_there,
      [&](const Expr& b, const Expr&, const Expr& first, const Expr& end) {
        const ir::Var row = ir::MakeIndex("row", 0, rows - 1, kIndex),
                      column = ir::MakeIndex("column", 0, columns - 1, kIndex);
        const Expr line = b * rows + ir::Ref(row);
        const Stmt write =
            copy.Write(line * stride + ir::Ref(column), copy.ReadVector(line * columns + ir::Ref(column), lanes));
        return Serial(row, first, end, Serial(column, Index(0), Index(columns), write, lanes));
      },
      kRowsOfCopy);
  return copy.Finish("spread_rows", body);
}

}  // namespace hlorun::opencl
