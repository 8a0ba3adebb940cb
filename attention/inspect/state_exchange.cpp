// Records states and replaces them at places.
#include "heed/attention/inspect/state_exchange.h"

#include "heed/autograd/ops.h"

namespace heed {

const char* to_string(StateKind kind) {
  switch (kind) {
    case StateKind::stream:
      return "stream";
    case StateKind::input:
      return "input";
    case StateKind::keys:
      return "keys";
    case StateKind::values:
      return "values";
    case StateKind::output:
      return "output";
  }
  return "";
}

void StateExchange::record() {
  is_recording_ = true;
  recorded_.clear();
  passed_.clear();
  places_ = {};
}

void StateExchange::replace(const StateSite& site, const Tensor& places) {
  const auto found = recorded_.find(site.kind);
  if (found == recorded_.end() || site.layer < 0 || site.layer >= std::ssize(found->second))
    fail("StateExchange: ", to_string(site.kind), " of layer ", site.layer,
         " was not recorded. Call record(), run the model once, and take one of sites().");
  is_recording_ = false;
  passed_.clear();
  site_ = site;
  places_ = places;
}

std::vector<StateSite> StateExchange::sites() const {
  std::vector<StateSite> out;
  for (const auto& [kind, layers] : recorded_) {
    for (int64_t layer = 0; layer < std::ssize(layers); ++layer) out.push_back({kind, layer});
  }
  return out;
}

Tensor StateExchange::state(StateKind kind, const Tensor& x) {
  const int64_t layer = passed_[kind]++;
  if (is_recording_) {
    recorded_[kind].push_back(x.detach());
    return x;
  }
  if (!places_ || StateSite{kind, layer} != site_) return x;
  const Tensor& other = recorded_.at(kind).at(static_cast<size_t>(layer));
  if (other.shape() != x.shape())
    fail("StateExchange: a state is ", x.shape(), ", and ", other.shape(),
         " was recorded. Run both passes on inputs of one shape.");
  const int64_t batch = places_.extent(0), length = places_.extent(1);
  const Shape shape = x.rank() == 4 ? Shape{batch, 1, length, 1} : Shape{batch, length, 1};
  const Tensor here = reshape(cast(places_, x.dtype()), shape);
  return other * here + x * (1.0 - here);
}

Tensor StateExchange::edit_heads(const Module&, const Tensor& heads, const AttentionInput&) {
  return state(StateKind::output, heads);
}

Tensor StateExchange::edit_keys(const Module&, const Tensor& keys) { return state(StateKind::keys, keys); }

Tensor StateExchange::edit_values(const Module&, const Tensor& values) {
  return state(StateKind::values, values);
}

Tensor StateExchange::edit_input(const Module&, const Tensor& x) { return state(StateKind::input, x); }

Tensor StateExchange::edit_stream(const Module&, int64_t, const Tensor& x) {
  return state(StateKind::stream, x);
}

}  // namespace heed
