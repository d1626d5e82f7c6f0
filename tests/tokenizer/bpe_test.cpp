#include "onset/tokenizer/bpe.h"

#include <map>
#include <random>
#include <thread>

#include "tokenizer/small_tokenizer.h"
#include "tokenizer/vocabularies.h"

namespace onset::testing {
namespace {

// Byte-pair encoding as its definition reads: while any pair is known, merge the one of the lowest
// rank, the leftmost if it stands more than once.
std::vector<std::string> naive_bpe(const std::string& text, const MergeList& merges) {
  std::map<std::pair<std::string, std::string>, std::size_t> ranks;
  for (std::size_t rank = 0; rank < merges.size(); ++rank) ranks[merges[rank]] = rank;
  std::vector<std::string> symbols;
  for (const char byte : text) symbols.emplace_back(1, byte);
  while (true) {
    std::size_t best_rank = merges.size();
    std::size_t best = 0;
    for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
      const auto found = ranks.find({symbols[i], symbols[i + 1]});
      if (found == ranks.end() || found->second >= best_rank) continue;
      best_rank = found->second;
      best = i;
    }
    if (best_rank == merges.size()) return symbols;
    symbols[best] += symbols[best + 1];
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

// Random merges of pieces made before, in a random order of ranks.
MergeList random_merges(std::mt19937& random, const std::string& letters, std::size_t count) {
  std::vector<std::string> pieces;
  for (const char letter : letters) pieces.emplace_back(1, letter);
  MergeList merges;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string left = pieces[random() % pieces.size()];
    const std::string right = pieces[random() % pieces.size()];
    merges.emplace_back(left, right);
    pieces.push_back(left + right);
  }
  std::shuffle(merges.begin(), merges.end(), random);
  return merges;
}

std::string random_text(std::mt19937& random, const std::string& letters, std::size_t length) {
  std::string text;
  for (std::size_t i = 0; i < length; ++i) text += letters[random() % letters.size()];
  return text;
}

TEST(Bpe, EqualsTheDefinitionForShortAndLongPieces) {
  std::mt19937 random(3);
  const std::string letters = "abc ";
  for (int round = 0; round < 40; ++round) {
    const MergeList merges = random_merges(random, letters, 1 + random() % 40);
    const Tokenizer tokenizer = open_json(small_tokenizer(merges));
    for (const std::size_t length : {1, 2, 7, 30, 31, 47, 48, 49, 50, 120, 400}) {
      const std::string text = random_text(random, letters, length);
      std::vector<std::string> pieces;
      for (const TokenId id : tokenizer.encode(text)) pieces.push_back(tokenizer.piece_bytes(id));
      ASSERT_EQ(pieces, naive_bpe(text, merges)) << text;
      ASSERT_EQ(tokenizer.encode(text), tokenizer.encode(text));  // from the cache
    }
  }
}

TEST(Bpe, MergesArePairsOrLines) {
  Json lines = small_tokenizer({{"a", "b"}, {"ab", " "}});
  Json pairs = lines;
  pairs["model"]["merges"] = Json::array({{"a", "b"}, {"ab", spelled(" ")}});
  EXPECT_EQ(open_json(lines).encode("ab ab"), open_json(pairs).encode("ab ab"));
  EXPECT_EQ(open_json(pairs).encode("ab ab"), (std::vector<TokenId>{257, 256}));
}

TEST(Bpe, IgnoreMergesTakesWholePieces) {
  Json tokenizer = small_tokenizer({{"a", "b"}});
  tokenizer["model"]["vocab"]["abc"] = 300;
  EXPECT_EQ(open_json(tokenizer).encode("abc"), (std::vector<TokenId>{256, 'c'}));
  tokenizer["model"]["ignore_merges"] = true;
  EXPECT_EQ(open_json(tokenizer).encode("abc"), (std::vector<TokenId>{300}));
}

TEST(Bpe, AByteWithoutTokenIsDroppedUnknownOrSpelledOut) {
  Json tokenizer = small_tokenizer({{"a", "b"}});
  Json& model = tokenizer["model"];
  model["vocab"].erase("x");
  // Neighbours of a dropped byte meet.
  EXPECT_EQ(open_json(tokenizer).encode("axxb"), (std::vector<TokenId>{256}));
  model["vocab"]["<unk>"] = 500;
  model["unk_token"] = "<unk>";
  EXPECT_EQ(open_json(tokenizer).encode("axxbx"), (std::vector<TokenId>{'a', 500, 500, 'b', 500}));
  model["fuse_unk"] = true;
  EXPECT_EQ(open_json(tokenizer).encode("axxbx"), (std::vector<TokenId>{'a', 500, 'b', 500}));
  model["vocab"]["<0x78>"] = 501;
  model["byte_fallback"] = true;
  EXPECT_EQ(open_json(tokenizer).encode("axb"), (std::vector<TokenId>{'a', 501, 'b'}));
}

TEST(Bpe, AMegabyteWithoutASpaceTakesNoQuadraticTime) {
  std::mt19937 random(5);
  const std::string same(std::size_t{1} << 20, 'a');
  const std::string letters = random_text(random, "abcdefghijklmnopqrstuvwxyz", 1U << 20);
  for (const auto& text : {same, letters}) {
    EXPECT_EQ(qwen3().decode(qwen3().encode(text)), text);
  }
}

TEST(Bpe, ThreadsShareATokenizer) {
  const auto rows = read_jsonl(testing::data("tokenizers/qwen3.encode.jsonl"));
  std::vector<std::thread> threads;
  std::array<int, 4> wrong{};
  threads.reserve(wrong.size());
  for (int& count : wrong) {
    threads.emplace_back([&] {
      for (const auto& row : rows) {
        count += qwen3().encode(row["text"].get<std::string>()) == ids_of(row["ids"]) ? 0 : 1;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, (std::array<int, 4>{}));
}

}  // namespace
}  // namespace onset::testing
