// Stream-K schedules: which block computes what when there are as many blocks as fit the device at
// once. Tiles that fill whole waves are computed whole, one wave after another (data-parallel). The
// remaining tiles, which would leave most SMs idle in a last wave, are streamed: their K tiles form
// one sequence, which is cut into equal shares, one per block. A tile that is cut has several
// pieces; the block with its first K tile adds the partial sums of the others and stores C.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/gemm.hpp"

namespace gemm::simt {

struct TileSchedule {
  int tile_rows, tile_columns;
  int k_tiles;    // per tile of C
  int whole;      // tiles computed whole: the last ones, a multiple of `blocks`
  int streaming;  // blocks that share the other tiles
  int blocks;

  constexpr int tiles() const { return tile_rows * tile_columns; }
  constexpr int streamed() const { return tiles() - whole; }
  // The first streamed K tile of a rank. Ranks count down against block indices, so that a block
  // waits only on blocks that started before it.
  constexpr int share(int rank) const {
    return static_cast<int>(std::int64_t{streamed()} * k_tiles * rank / streaming);
  }
  constexpr int rank(int block) const { return streaming - 1 - block; }
  bool operator==(const TileSchedule&) const = default;
};

// Number of pieces that do not begin with their tile's first K tile: each is one exchange of
// partial sums.
inline int continued_pieces(const TileSchedule& schedule) {
  int count = 0;
  for (int rank = 1; schedule.streamed() > 0 && rank < schedule.streaming; ++rank)
    if (schedule.share(rank) % schedule.k_tiles != 0) ++count;
  return count;
}

// The ranks that share a tile with the rank that has its first K tile: [rank + 1, the result).
constexpr int end_of_sharers(const TileSchedule& schedule, int rank, int tile) {
  const int end = (tile + 1) * schedule.k_tiles;
  while (schedule.share(rank + 1) < end) ++rank;
  return rank + 1;
}

// A range of K tiles of a tile of C.
struct TilePiece {
  int tile, first, end;

  // Replaces each number by f() of it.
  template <typename F>
  constexpr void map(F f) {
    tile = f(tile);
    first = f(first);
    end = f(end);
  }
};

// Iterates over the pieces of a block: first its share of the streamed tiles, then whole tiles.
class TileWalk {
 public:
  constexpr TileWalk(const TileSchedule& schedule, int block)
      : k_tile_(0), end_(0), tile_(schedule.streamed() + block) {
    if (schedule.rank(block) < 0) return;
    k_tile_ = schedule.share(schedule.rank(block));
    end_ = schedule.share(schedule.rank(block) + 1);
  }
  template <typename F>
  constexpr void map(F f) {
    k_tile_ = f(k_tile_);
    end_ = f(end_);
    tile_ = f(tile_);
  }
  // Whether a piece is left.
  constexpr bool more(const TileSchedule& schedule) const {
    return k_tile_ < end_ || tile_ < schedule.tiles();
  }
  // Number of K tiles left.
  constexpr int left(const TileSchedule& schedule) const {
    const int tiles = schedule.tiles();
    const int whole = tile_ < tiles ? (tiles - tile_ + schedule.blocks - 1) / schedule.blocks : 0;
    return end_ - k_tile_ + whole * schedule.k_tiles;
  }
  constexpr bool next(const TileSchedule& schedule, TilePiece& piece) {
    if (k_tile_ < end_) {
      piece.tile = k_tile_ / schedule.k_tiles;
      piece.first = k_tile_ - piece.tile * schedule.k_tiles;
      const int ahead = end_ - k_tile_;
      piece.end = ahead < schedule.k_tiles - piece.first ? piece.first + ahead : schedule.k_tiles;
      k_tile_ += piece.end - piece.first;
      return true;
    }
    if (tile_ >= schedule.tiles()) return false;
    piece = {tile_, 0, schedule.k_tiles};
    tile_ += schedule.blocks;
    return true;
  }

 private:
  int k_tile_, end_, tile_;
};

// The largest share of a block in the streamed tiles; there is at least one.
struct TileShare {
  double k_tiles;
  bool even;              // every tile has its own blocks, or every block its own tiles
  double pieces, others;  // of the share; further blocks with a piece of the same tile

  explicit TileShare(const TileSchedule& schedule)
      : k_tiles(std::ceil(1.0 * schedule.streamed() * schedule.k_tiles / schedule.streaming)),
        even(schedule.streaming % schedule.streamed() == 0 ||
             schedule.streamed() % schedule.streaming == 0) {
    const double tiles = k_tiles / schedule.k_tiles;
    pieces = std::ceil(tiles) + (even ? 0 : 1);
    others = even ? std::max(1.0, std::ceil(1 / tiles)) - 1 : std::ceil(1 / tiles);
  }
};

// What a schedule adds to the work of computing all of C, which `all` has: how much more the
// busiest SM does than the average, what it does after its products, and partial sums. A tile has
// `c_bytes` of C and `sum_bytes` of accumulators. Where `overlaps`, the products of another tile
// hide what follows those of a tile, except of the last one.
inline Work work_of(const TileSchedule& schedule, Work all, int sms, double c_bytes,
                    double sum_bytes, bool overlaps) {
  const int active = schedule.whole > 0 ? schedule.blocks : schedule.streaming;
  const double waves = 1.0 * schedule.whole / schedule.blocks;
  double k_tiles = waves * schedule.k_tiles, ends = waves;
  if (schedule.streamed() > 0) {
    const TileShare share(schedule);
    k_tiles += share.k_tiles;
    ends += share.pieces;
    all.exchanges = share.others;
    if (share.others > 0) all.tail += (1 + share.others) * sum_bytes;
  }
  const double partials = 2 * sum_bytes * continued_pieces(schedule);
  all.traffic.dram += partials;
  all.traffic.l2 += partials;
  all.busiest = k_tiles * static_cast<double>(ceil_div(active, sms)) * sms /
                (1.0 * schedule.tiles() * schedule.k_tiles);
  all.tail += (overlaps ? 1 : ends) * c_bytes;
  return all;
}

// Whether 32 bits hold the number of rows and columns, also of tiles that reach beyond the edges,
// of K tiles of all tiles, and twice the number of tiles (an iterator adds a grid to a tile index).
inline bool counts_fit(const Problem& p, int rows, int columns, int depth) {
  constexpr int kMost = std::numeric_limits<int>::max();
  const double tiles = 1.0 * ceil_div(p.m, rows) * ceil_div(p.n, columns);
  return std::max({p.m, p.n, p.k}) < kMost - 1023 && tiles <= kMost / 2 &&
         tiles * ceil_div(p.k, depth) <= kMost;
}
inline constexpr char kCountsDoNotFit[] =
    "requires m, n and k below 2^31 - 1024 and fewer than 2^31 K tiles";

// One block per tile. Throws std::length_error if !counts_fit.
inline TileSchedule whole_tiles(const Problem& p, int rows, int columns, int depth) {
  if (!counts_fit(p, rows, columns, depth)) throw std::length_error(kCountsDoNotFit);
  const auto narrow = [](std::int64_t count) { return static_cast<int>(count); };
  TileSchedule schedule{narrow(ceil_div(p.m, rows)),
                        narrow(ceil_div(p.n, columns)),
                        narrow(ceil_div(p.k, depth)),
                        0,
                        1,
                        1};
  schedule.whole = schedule.blocks = schedule.tiles();
  return schedule;
}

// The schedules worth a look on a device that runs `blocks` blocks at once. If the last wave of
// tiles is not full, a block computes each of its tiles, or several blocks each, in equal shares,
// or all blocks stream them; so with up to `streamed_waves` full waves in addition. Throws as
// whole_tiles does.
inline std::vector<TileSchedule> tile_schedules(const Problem& p, int rows, int columns, int depth,
                                                int blocks, int streamed_waves = 0) {
  TileSchedule schedule = whole_tiles(p, rows, columns, depth);
  schedule.blocks = blocks;
  const int tiles = schedule.tiles(), waves = tiles / blocks;
  if (waves * blocks == tiles) return {schedule};
  std::vector<TileSchedule> all;
  const auto add = [&](int streaming) {
    schedule.streaming = streaming;
    if (std::ranges::find(all, schedule) == all.end()) all.push_back(schedule);
  };
  for (int wave = waves; wave >= std::max(0, waves - streamed_waves); --wave) {
    schedule.whole = wave * blocks;
    const int streamed = schedule.streamed(), most = std::min(blocks / streamed, schedule.k_tiles);
    add(static_cast<int>(
        std::min<std::int64_t>(blocks, std::int64_t{streamed} * schedule.k_tiles)));
    if (most > 1) add(streamed);
    for (int cuts = most; cuts > 0; cuts /= 2) add(streamed * cuts);
  }
  return all;
}

// A schedule of several waves that cuts no tile, on no more blocks than its waves need: blocks then
// compute neighbouring tiles, and the same steps along k, at the same time, and share them in the
// L2. Other schedules as they are. For blocks of which an SM runs one at once.
inline TileSchedule evenly(TileSchedule schedule) {
  if (schedule.whole == 0 || schedule.streaming != schedule.streamed()) return schedule;
  const auto waves = ceil_div(schedule.tiles(), schedule.blocks);
  schedule.blocks = static_cast<int>(ceil_div(schedule.tiles(), waves));
  schedule.whole = schedule.tiles() / schedule.blocks * schedule.blocks;
  schedule.streaming = std::max(1, schedule.streamed());
  return schedule;
}

// Its name among the plans of a tile.
inline std::string name_of(const TileSchedule& schedule) {
  return "whole:" + std::to_string(schedule.whole) +
         "/streaming:" + std::to_string(schedule.streamed() > 0 ? schedule.streaming : 0);
}

}  // namespace gemm::simt
