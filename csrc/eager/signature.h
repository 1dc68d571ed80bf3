// The key of a call, as a sequence of words, and each op's table from keys to entries.
#pragma once
#include <cstring>
#include <memory>
#include <vector>

#include "eager/entry.h"

namespace sampan {

// The first word of a parameter's part says what it is; every part has a length that its first word determines, so that equal
// sequences mean equal calls. A tensor is its layout's address, with the lowest bit set when it wants a gradient: addresses
// are larger than every tag.
enum SignatureTag : uint64_t {
  kNoTag = 0,
  kTagNone,
  kTagScalarBool,
  kTagScalarInt,
  kTagScalarFloat,
  kTagScalarComplex,
  kTagTensors,  // | count << 8
  kTagTrue,
  kTagFalse,
  kTagInt,      // the value
  kTagBigInt,   // | words << 8, two's complement
  kTagFloat,    // the bits
  kTagComplex,  // the bits of both parts
  kTagString,   // | bytes << 8, the bytes
  kTagSequence, // | count << 8
  kTagSlice,    // start, stop, step
  kTagEllipsis,
  kTagDType,    // | the dtype << 8
  kTagObject,   // a number from the table of interned objects
};

// Words on the stack for all but the longest calls.
class SignatureWords {
 public:
  SignatureWords() = default;
  ~SignatureWords() {
    if (data_ != inline_) delete[] data_;
  }
  SignatureWords(const SignatureWords&) = delete;
  SignatureWords& operator=(const SignatureWords&) = delete;
  void push(uint64_t word) {
    if (size_ == capacity_) [[unlikely]] grow();
    data_[size_++] = word;
  }
  const uint64_t* data() const { return data_; }
  uint32_t size() const { return size_; }
  void truncate(uint32_t size) { size_ = size; }

 private:
  void grow();
  static constexpr uint32_t kInline = 48;
  uint64_t inline_[kInline];
  uint64_t* data_ = inline_;
  uint32_t size_ = 0;
  uint32_t capacity_ = kInline;
};

struct CachedCall {
  std::vector<uint64_t> words;
  uint64_t hash;
  std::vector<Ref<const Layout>> layouts;  // keeps the addresses in words from being used again
  Ref<Entry> entry;
  bool is_recent = false;  // met again since the last eviction

  bool matches(const SignatureWords& key) const {
    if (words.size() != key.size()) return false;
    for (uint32_t i = 0; i < key.size(); ++i) {
      if (words[i] != key.data()[i]) return false;
    }
    return true;
  }
};

class SignatureTable {
 public:
  // Null when the key is unknown. What is returned lives until the next call of insert or clear.
  Entry* find(const SignatureWords& key) {
    if (last_ && last_->matches(key)) [[likely]] {
      last_->is_recent = true;
      return last_->entry.get();
    }
    return find_slow(key);
  }
  void insert(const SignatureWords& key, std::vector<Ref<const Layout>> layouts, Ref<Entry> entry);
  void clear();
  size_t size() const { return size_; }

  static void set_limit(size_t calls_per_op);
  static size_t limit() { return limit_; }

 private:
  Entry* find_slow(const SignatureWords& key);
  void evict();
  void rebuild(size_t bucket_count);
  void place(std::unique_ptr<CachedCall> call);

  std::vector<std::unique_ptr<CachedCall>> buckets_;  // open addressing, a power of two, at most half full
  size_t size_ = 0;
  CachedCall* last_ = nullptr;  // most ops are called in the same way again
  static size_t limit_;
};

}  // namespace sampan
