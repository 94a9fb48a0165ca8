// Tokenizer scratch that calls borrow and give back warm.
#ifndef POZOR_MODELS_SCRATCH_POOL_H_
#define POZOR_MODELS_SCRATCH_POOL_H_

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "models/text/tokenizer.h"

namespace pozor {

// At most as many scratches as calls at once; the lock is held for a pointer's move only.
class ScratchPool {
 public:
  // A scratch of the pool for as long as this lives.
  class Lease {
   public:
    explicit Lease(ScratchPool& pool) : pool_(pool), scratch_(pool.Take()) {}
    ~Lease() { pool_.Give(std::move(scratch_)); }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    TokenizeScratch& operator*() const { return *scratch_; }

   private:
    ScratchPool& pool_;
    std::unique_ptr<TokenizeScratch> scratch_;
  };

 private:
  std::unique_ptr<TokenizeScratch> Take() {
    {
      const std::lock_guard lock(mutex_);
      if (!free_.empty()) {
        std::unique_ptr<TokenizeScratch> scratch = std::move(free_.back());
        free_.pop_back();
        return scratch;
      }
    }
    return std::make_unique<TokenizeScratch>();
  }
  void Give(std::unique_ptr<TokenizeScratch> scratch) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(scratch));
  }

  std::mutex mutex_;
  std::vector<std::unique_ptr<TokenizeScratch>> free_;
};

}  // namespace pozor

#endif  // POZOR_MODELS_SCRATCH_POOL_H_
