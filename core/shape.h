// Extents and strides of a tensor: up to six numbers stored inline.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "heed/core/error.h"

namespace heed {

/// A list of at most `max_rank` int64 numbers; the base of Shape and Strides.
class Extents {
 public:
  static constexpr int64_t max_rank = 6;  ///< the largest rank

  Extents() = default;  ///< a list without numbers: rank 0
  /// The numbers of a list, in this order; fails beyond `max_rank`.
  Extents(std::initializer_list<int64_t> values) {
    for (int64_t value : values) push_back(value);
  }
  /// The numbers of a range, in this order; fails beyond `max_rank`.
  explicit Extents(std::span<const int64_t> values) {
    for (int64_t value : values) push_back(value);
  }

  int64_t rank() const { return rank_; }  ///< number of extents
  /// Extent `axis`; negative axes count from the end. Fails when there is no such axis.
  int64_t operator[](int64_t axis) const { return values_[static_cast<size_t>(checked(axis))]; }
  /// A reference to extent `axis`; negative axes count from the end. Fails when there is no such axis.
  int64_t& operator[](int64_t axis) { return values_[static_cast<size_t>(checked(axis))]; }
  int64_t back() const { return (*this)[-1]; }  ///< the last one; fails when there is none
  /// Appends; fails beyond `max_rank`.
  void push_back(int64_t value) {
    if (rank_ == max_rank) fail("shape: more than ", max_rank, " dimensions. Merge some with reshape.");
    values_[static_cast<size_t>(rank_++)] = value;
  }
  void insert(int64_t axis, int64_t value);                ///< inserts before `axis`, 0 <= axis <= rank
  void erase(int64_t axis);                                ///< removes one; negative axes count from the end
  const int64_t* begin() const { return values_.data(); }  ///< the first extent
  const int64_t* end() const { return values_.data() + rank_; }  ///< behind the last extent
  int64_t* begin() { return values_.data(); }                    ///< the first extent, to be changed
  int64_t* end() { return values_.data() + rank_; }              ///< behind the last extent
  bool operator==(const Extents& other) const;                   ///< same rank, same numbers
  /// `axis` as 0 <= axis < rank. Fails when it is out of range.
  int64_t checked(int64_t axis) const {
    const int64_t positive = axis < 0 ? axis + rank_ : axis;
    if (positive < 0 || positive >= rank_) out_of_range(axis);
    return positive;
  }

 protected:
  [[noreturn]] void out_of_range(int64_t axis) const;  ///< fails naming axis and rank
  std::array<int64_t, max_rank> values_{};             ///< the first rank_ of them count
  int64_t rank_ = 0;                                   ///< extents in use
};

/// The extents of a tensor, printed as [2, 8, 64]. A scalar has rank 0 and size 1.
class Shape : public Extents {
 public:
  using Extents::Extents;  ///< from a list of extents; rank 0 without one
  /// Number of elements. Fails where the product does not fit into 63 bits or an extent is negative.
  int64_t size() const;
};

/// Distances in elements between neighbours along each axis.
class Strides : public Extents {
 public:
  using Extents::Extents;                         ///< from a list of distances
  static Strides contiguous(const Shape& shape);  ///< strides of a dense row-major tensor
};

std::string to_string(const Extents& extents);  ///< "[2, 8, 64]"

/// The common shape of two operands (extents equal, or one of them 1). `op` names the caller in the error.
Shape broadcast(const char* op, const Shape& a, const Shape& b);

}  // namespace heed
