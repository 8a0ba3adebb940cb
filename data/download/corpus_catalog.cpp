// The table of corpora: addresses, licences and files.
#include "heed/data/download/corpus_catalog.h"

namespace heed {
namespace {

const RemoteCorpus corpora[] = {
    {.name = "cifar10",
     .title = "CIFAR-10: 60,000 colour pictures of 32 x 32 pixels, ten classes; 162 MiB",
     .licence =
         "A. Krizhevsky offers CIFAR-10 on his page without a licence of its own. Cite Krizhevsky, 2009, "
         "Learning multiple layers of features from tiny images.",
     .files = {{.url = "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
                .name = "cifar-10-binary.tar.gz",
                .sha256 = "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"}},
     .unpack = unpacked::cifar10},
    {.name = "imdb",
     .title = "IMDb: 50,000 film reviews, half of them positive; 80 MiB",
     .licence =
         "A. Maas and others offer the reviews for research, without a licence of their own; the texts are "
         "those of IMDb's users. Cite Maas et al., 2011, Learning word vectors for sentiment analysis "
         "(ACL).",
     .files = {{.url = "https://ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz",
                .name = "aclImdb_v1.tar.gz",
                .sha256 = "c40f74a18d3b61f90feba1e17730e0d38e8b97c05fde7008942e91923d1658fe"}},
     .unpack = unpacked::imdb},
    {.name = "mnist",
     .title = "MNIST: 70,000 handwritten digits of 28 x 28 pixels",
     .licence =
         "Y. LeCun, C. Cortes and C. Burges offer MNIST for research; copies name the Creative Commons "
         "Attribution-ShareAlike 3.0 licence. Cite LeCun et al., 1998, Gradient-based learning applied to "
         "document recognition.",
     .files = {{.url = "https://storage.googleapis.com/cvdf-datasets/mnist/train-images-idx3-ubyte.gz",
                .name = "train-images-idx3-ubyte.gz",
                .sha256 = "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"},
               {.url = "https://storage.googleapis.com/cvdf-datasets/mnist/train-labels-idx1-ubyte.gz",
                .name = "train-labels-idx1-ubyte.gz",
                .sha256 = "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"},
               {.url = "https://storage.googleapis.com/cvdf-datasets/mnist/t10k-images-idx3-ubyte.gz",
                .name = "t10k-images-idx3-ubyte.gz",
                .sha256 = "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"},
               {.url = "https://storage.googleapis.com/cvdf-datasets/mnist/t10k-labels-idx1-ubyte.gz",
                .name = "t10k-labels-idx1-ubyte.gz",
                .sha256 = "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"}},
     .unpack = unpacked::mnist},
    {.name = "opus_books",
     .title = "OPUS Books, English and Italian: 32,332 aligned sentence pairs of novels",
     .licence =
         "Terms of OPUS Books (https://opus.nlpl.eu/Books): free for personal, educational and research use. "
         "Commercial use and passing on in bulk need the permission of its compiler, A. Farkas. Cite "
         "J. Tiedemann, 2012, Parallel Data, Tools and Interfaces in OPUS (LREC).",
     .files = {{.url = "https://object.pouta.csc.fi/OPUS-Books/v1/moses/en-it.txt.zip",
                .name = "en-it.txt.zip",
                .sha256 = ""}},
     .unpack = unpacked::opus_books},
    {.name = "tinyshakespeare",
     .title = "Tiny Shakespeare: 40,000 lines of plays",
     .licence = "The text is in the public domain; the repository it comes from (karpathy/char-rnn) is under "
                "the MIT "
                "licence.",
     .files = {{.url = "https://raw.githubusercontent.com/karpathy/char-rnn/"
                       "6f9487a6fe5b420b7ca9afb0d7c078e37c1d1b4e/data/tinyshakespeare/input.txt",
                .name = "tinyshakespeare.txt",
                .sha256 = "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed"}},
     .unpack = unpacked::tinyshakespeare},
    {.name = "wikitext2",
     .title = "WikiText-2: 2.5 million words of Wikipedia, rare ones as <unk>",
     .licence =
         "Text of Wikipedia, under the Creative Commons Attribution-ShareAlike licence. Cite Merity et al., "
         "2016, Pointer sentinel mixture models (arXiv 1609.07843).",
     .files = {{.url = "https://wikitext.smerity.com/wikitext-2-v1.zip",
                .name = "wikitext-2-v1.zip",
                .sha256 = "92675f1d63015c1c8b51f1656a52d5bdbc33aafa60cc47a218a66e7ee817488c"}},
     .unpack = unpacked::wikitext2},
};

}  // namespace

std::span<const RemoteCorpus> remote_corpora() { return corpora; }

}  // namespace heed
