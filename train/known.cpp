// Anchors beside scores.
#include "train/known.h"

#include "attention/picture_encode.h"

namespace heed {

std::vector<std::string> known_words(const Task& task, const std::string& score) {
  std::vector<std::string> out;
  for (const Known& one : task.known()) {
    if (one.score == score) out.push_back(one.knowledge + " " + picture::fixed(one.value, 3));
  }
  return out;
}

void put_known(Json& into, const Task& task) {
  Json anchors = Json::object();
  for (const Known& one : task.known()) {
    const Json* before = anchors.find(one.score);
    Json beside = before != nullptr ? *before : Json::object();
    beside.set(one.knowledge, one.value);
    anchors.set(one.score, std::move(beside));
  }
  if (!anchors.members().empty()) into.set("anchors", std::move(anchors));
}

}  // namespace heed
