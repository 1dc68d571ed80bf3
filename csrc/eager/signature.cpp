#include "eager/signature.h"

#include "base/error.h"

namespace sampan {
namespace {

uint64_t hash_words(const uint64_t* words, size_t count) {
  uint64_t h = 0x9E3779B97F4A7C15u ^ count;
  for (size_t i = 0; i < count; ++i) {
    h = (h ^ words[i]) * 0xD6E8FEB86659FD93u;
    h ^= h >> 32;
  }
  return h;
}

}  // namespace

size_t SignatureTable::limit_ = 4096;

void SignatureWords::grow() {
  auto* larger = new uint64_t[2 * static_cast<size_t>(capacity_)];
  std::memcpy(larger, data_, size_ * sizeof(uint64_t));
  if (data_ != inline_) delete[] data_;
  data_ = larger;
  capacity_ *= 2;
}

void SignatureTable::set_limit(size_t calls_per_op) {
  if (calls_per_op < 1) throw Error(ErrorKind::kValue, "the signature cache must hold at least one call per op");
  limit_ = calls_per_op;
}

Entry* SignatureTable::find_slow(const SignatureWords& key) {
  if (!size_) return nullptr;
  const uint64_t hash = hash_words(key.data(), key.size());
  const size_t mask = buckets_.size() - 1;
  for (size_t i = hash & mask; buckets_[i]; i = (i + 1) & mask) {
    CachedCall& call = *buckets_[i];
    if (call.hash != hash || !call.matches(key)) continue;
    call.is_recent = true;
    last_ = &call;
    return call.entry.get();
  }
  return nullptr;
}

void SignatureTable::place(std::unique_ptr<CachedCall> call) {
  const size_t mask = buckets_.size() - 1;
  size_t i = call->hash & mask;
  while (buckets_[i]) i = (i + 1) & mask;
  buckets_[i] = std::move(call);
}

void SignatureTable::rebuild(size_t bucket_count) {
  std::vector<std::unique_ptr<CachedCall>> old(bucket_count);
  old.swap(buckets_);
  for (auto& call : old) {
    if (call) place(std::move(call));
  }
}

void SignatureTable::evict() {
  // Second chance: calls that were not met since the last time go; when all were, every second one does.
  std::vector<std::unique_ptr<CachedCall>> old(buckets_.size());
  old.swap(buckets_);
  last_ = nullptr;
  size_t recent = 0;
  for (const auto& call : old) recent += call && call->is_recent;
  const bool keep_half = 2 * recent > size_;
  size_ = 0;
  bool keep = false;
  for (auto& call : old) {
    if (!call || !call->is_recent) continue;
    keep = !keep || !keep_half;
    if (!keep) continue;
    call->is_recent = false;
    place(std::move(call));
    ++size_;
  }
  // The entries die here, when the table is whole again: that may run Python.
  old.clear();
}

void SignatureTable::insert(const SignatureWords& key, std::vector<Ref<const Layout>> layouts, Ref<Entry> entry) {
  if (Entry* known = find(key)) {
    // A nested call made it first; the newer one counts, as it would have without the cache.
    if (known != entry.get()) std::swap(last_->entry, entry);
    return;
  }
  if (size_ >= limit_) evict();
  if (2 * (size_ + 1) > buckets_.size()) rebuild(buckets_.empty() ? 8 : 2 * buckets_.size());
  auto call = std::make_unique<CachedCall>();
  call->words.assign(key.data(), key.data() + key.size());
  call->hash = hash_words(key.data(), key.size());
  call->layouts = std::move(layouts);
  call->entry = std::move(entry);
  last_ = call.get();
  place(std::move(call));
  ++size_;
}

void SignatureTable::clear() {
  std::vector<std::unique_ptr<CachedCall>> old;
  old.swap(buckets_);
  size_ = 0;
  last_ = nullptr;
}

}  // namespace sampan
