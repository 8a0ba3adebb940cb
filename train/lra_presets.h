// Recipes of the Long Range Arena.
#pragma once

#include <span>
#include <string>

#include "train/config.h"

namespace heed {

/// What one recipe sets for one task.
struct LraRecipe {
  const char* task;
  const char* name;
  const char* about;
  const char* more;  ///< lines of `group.key = value`
};

/// All of them; those of a task follow each other, `tiny` first.
std::span<const LraRecipe> lra_recipes();

/// The name of the preset that a recipe is.
std::string preset_of(const LraRecipe& recipe);

/// Keys that recipes of one task disagree on and that decide what a result means. No task has all of them.
std::span<const char* const> lra_choices();

/// The recipes that each task of the Long Range Arena has: `tiny` is the preset lra-TASK, any other one
/// lra-TASK-RECIPE.
std::span<const Preset> lra_presets();

}  // namespace heed
