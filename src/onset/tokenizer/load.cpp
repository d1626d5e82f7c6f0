// Finds the file that holds a tokenizer.
#include "onset/base/error.h"
#include "onset/base/file.h"
#include "onset/checkpoint/gguf.h"
#include "onset/tokenizer/tokenizer_data.h"

namespace onset {
namespace {

namespace fs = std::filesystem;

struct PairNames {
  const char* vocab;
  const char* merges;
};
// GPT-2's two files, by Hugging Face's names and by OpenAI's own.
constexpr PairNames pair_names[] = {{"vocab.json", "merges.txt"}, {"encoder.json", "vocab.bpe"}};

TokenizerData load_folder(const fs::path& folder) {
  if (fs::exists(folder / "tokenizer.json")) return load_tokenizer_json(folder / "tokenizer.json");
  if (fs::exists(folder / "tokenizer.model")) return load_sentencepiece(folder / "tokenizer.model");
  for (const auto& names : pair_names) {
    const bool vocab = fs::exists(folder / names.vocab);
    const bool merges = fs::exists(folder / names.merges);
    if (vocab && merges) return load_vocab_and_merges(folder / names.vocab, folder / names.merges);
    require_input(!vocab, folder.string(), ": has ", names.vocab, " but no ", names.merges);
  }
  throw input_error(str_cat(folder.string(),
                            ": has no tokenizer.json, tokenizer.model, vocab.json with merges.txt "
                            "or encoder.json with vocab.bpe"));
}

}  // namespace

TokenizerData load_tokenizer(const fs::path& path) {
  if (fs::is_directory(path)) return load_folder(path);
  require_input(fs::exists(path), path.string(), ": does not exist");
  if (looks_like_gguf(path)) return load_tokenizer_gguf(path);
  if (path.extension() == ".model") return load_sentencepiece(path);
  for (const auto& names : pair_names) {
    const fs::path vocab = path.parent_path() / names.vocab;
    const fs::path merges = path.parent_path() / names.merges;
    const bool named = path.filename() == names.vocab || path.filename() == names.merges;
    if (named && fs::exists(vocab) && fs::exists(merges)) {
      return load_vocab_and_merges(vocab, merges);
    }
  }
  return load_tokenizer_json(path);
}

}  // namespace onset
