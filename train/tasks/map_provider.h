// MapProvider: the interface of a task that gives attention maps.
#pragma once

#include <string>
#include <vector>

#include "heed/attention/inspect/lens_view.h"
#include "heed/attention/inspect/map_view.h"
#include "heed/nn/attention.h"
#include "heed/train/tasks/task.h"

namespace heed {

/// Gives the attention maps of one example. A task whose maps shall be in the report and in `heed inspect`
/// derives from it, too.
class MapProvider {
 public:
  virtual ~MapProvider() = default;
  /// Attention maps of one example, given as text (empty: one of the validation split), and its caption.
  virtual std::vector<MapView> maps(Module& model, const std::string& text, std::string& caption) const = 0;
  /// Attention maps of one example with the optional parts that `parts` names, for `heed inspect`. The
  /// default gives maps() without them.
  virtual std::vector<MapView> maps_with(Module& model, const std::string& text, const MapParts& parts,
                                         std::string& caption) const;
  /// The text for maps() and logit_lens() of the first example of the validation split, with what a model
  /// should answer, so that every model reads the same tokens. The data must be loaded. Empty, the default:
  /// those of an empty text are the same for all models.
  virtual std::string example_text() const { return {}; }
  /// What each layer would predict for a text, as maps() takes it. The default is an error that says that
  /// the task gives none.
  virtual LensView logit_lens(Module& model, const std::string& text) const;
};

/// Casts the task to its MapProvider. A usage error where the task is none.
const MapProvider& map_provider(const Task& task);

/// What map_view() shows of a recorded map.
struct MapViewOptions {
  std::string kind = "decoder self";           ///< "encoder self", "decoder self" or "cross"
  int64_t layer = 0;                           ///< layer that attends, from 0
  int64_t sequence = 0;                        ///< sequence of the batch, from 0
  std::vector<std::string> query_tokens = {};  ///< names of the first rows, which are shown
  std::vector<std::string> key_tokens = {};    ///< names of the first columns, which are shown
};
/// A recorded map [B, H, Tq, Tk] of one sequence, with names, cut to the given tokens. Fails where the map
/// has no such sequence, or fewer rows or columns than there are tokens.
MapView map_view(Module& model, const MapRecorder::Map& map, const MapViewOptions& options);
/// Map number `index` of a recorder, with the optional parts that it kept of sequence 0; a usage error for
/// another sequence.
MapView map_view(Module& model, const MapRecorder& recorder, size_t index, const MapViewOptions& options);
/// map_view() with its options one after the other.
inline MapView map_view(Module& model, const MapRecorder::Map& map, const std::string& kind, int64_t layer,
                        const std::vector<std::string>& query_tokens,
                        const std::vector<std::string>& key_tokens, int64_t sequence = 0) {
  return map_view(model, map, {kind, layer, sequence, query_tokens, key_tokens});
}
/// All maps of a recorder, one for each layer of a stack that attends to itself: `kind` is "encoder self" or
/// "decoder self", and `tokens` names queries and keys.
std::vector<MapView> self_attention_views(Module& model, const MapRecorder& recorder, const std::string& kind,
                                          const std::vector<std::string>& tokens);

}  // namespace heed
