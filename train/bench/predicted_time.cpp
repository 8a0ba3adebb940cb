// The table of known cards, and times by their rates.
#include "heed/train/bench/predicted_time.h"

#include <algorithm>
#include <array>

namespace heed::bench {
namespace {

constexpr std::array known_cards{
    Card{.name = "h100",
         .source = "`heed bench limits` on an H100 80GB HBM3, 2026-11-26: docs/results/cuda.md",
         .bytes_per_second = 2.727e12,
         .exact_flops = 48.7e12,
         .tf32_flops = 158e12,
         .bf16_flops = 287e12,
         .seconds_per_launch = 4.3e-6}};

}  // namespace

double Card::flops(Rounding rounding) const {
  if (rounding == Rounding::bf16) return bf16_flops;
  return rounding == Rounding::tf32 ? tf32_flops : exact_flops;
}

std::span<const Card> cards() { return known_cards; }

const Card& predicted_card(const ParsedArguments& arguments) {
  std::vector<std::string> names;
  for (const Card& card : cards()) names.emplace_back(card.name);
  const std::string name = arguments.word("predict-on", names, names[0]);
  return *std::find_if(cards().begin(), cards().end(), [&](const Card& card) { return card.name == name; });
}

double predicted_seconds(const KernelCall& call, const Card& card) {
  const double memory = static_cast<double>(call.bytes) / card.bytes_per_second;
  const double work = static_cast<double>(call.flops) / card.flops(call.rounding);
  return std::max(memory, work) + static_cast<double>(call.launches) * card.seconds_per_launch;
}

}  // namespace heed::bench
