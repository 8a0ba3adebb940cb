// Unpacks image corpora: CIFAR-10, MNIST.
#include <algorithm>

#include "heed/core/io/files.h"
#include "heed/core/io/gzip.h"
#include "heed/data/download/corpus_catalog.h"
#include "heed/data/formats/cifar.h"
#include "heed/data/formats/idx.h"
#include "heed/data/formats/tar.h"

namespace heed {
namespace {

/// Bytes of CIFAR-10's archive, decompressed; it has 184 million.
constexpr int64_t max_pictures = int64_t{256} << 20;

}  // namespace

Downloaded unpacked::cifar10(const RemoteCorpus& corpus, const DownloadOptions& options) {
  const RemoteFile& file = corpus.files[0];
  std::string archive;
  std::vector<TarEntry> wanted;
  fetch(file, options, [&](std::string_view bytes) {
    archive = inflate_text(bytes, max_pictures, file.name);
    wanted.clear();
    for (TarEntry& entry : untar(archive, file.name)) {
      entry.name.erase(0, entry.name.rfind('/') + 1);
      if (entry.name.ends_with(".bin")) parse_cifar(entry.bytes, true, entry.name);
      if (entry.name.ends_with(".bin") || entry.name == "batches.meta.txt")
        wanted.push_back(std::move(entry));
    }
    for (const char* name : {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
                             "data_batch_5.bin", "test_batch.bin"}) {
      if (std::count_if(wanted.begin(), wanted.end(), [&](const TarEntry& e) { return e.name == name; }) != 1)
        fail(Fault::data, file.name, " has no ", name, ". Is this the binary version of CIFAR-10?");
    }
  });
  for (const TarEntry& entry : wanted) io::write(options.folder / entry.name, entry.bytes);
  const bool train =
      as_published(options, "training pictures", read_cifar(options.folder, false).count(), 50000);
  const bool test = as_published(options, "test pictures", read_cifar(options.folder, true).count(), 10000);
  return {.data = options.folder, .as_published = train && test};
}

Downloaded unpacked::mnist(const RemoteCorpus& corpus, const DownloadOptions& options) {
  for (const RemoteFile& file : corpus.files) fetch(file, options);
  const bool train =
      as_published(options, "training images", read_mnist(options.folder, false).images.count, 60000);
  const bool test =
      as_published(options, "test images", read_mnist(options.folder, true).images.count, 10000);
  return {.data = options.folder, .as_published = train && test};
}

}  // namespace heed
