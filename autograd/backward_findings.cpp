// Collects the findings of backward passes: each thread has its own.
#include "heed/autograd/backward_findings.h"

#include <algorithm>
#include <utility>

namespace heed {
namespace {

thread_local BackwardFindings findings;

}  // namespace

BackwardFindings take_backward_findings() { return std::exchange(findings, {}); }

void detail::find_omitted_dropout(const Node& node) {
  findings.omitted_dropout = std::max(findings.omitted_dropout, node.omitted_dropout);
}

void detail::find_stray(const std::shared_ptr<Node>& leaf, const Node& reader) {
  if (leaf->leaf && !leaf->in_arena && findings.strays.size() < max_stray_leaves)
    findings.strays.push_back({leaf, reader.op});
}

}  // namespace heed
