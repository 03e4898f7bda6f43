// Who computes what of C when there are as many blocks as fit the device at once, and not one for
// each tile. Tiles that fill whole waves are computed whole, a wave after another. The rest, which
// would leave most of the device idle in a last wave, is streamed: its slices along k, tile after
// tile, are one long line that is cut into equal pieces, one a block (stream-K). A tile that is cut
// has several pieces; the block with its first slices adds up the others' sums and stores C.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>

#include "kernels/gemm.hpp"

namespace gemm::simt {

struct TileSchedule {
  int tile_rows, tile_columns;
  int slices;     // of a tile, along k
  int whole;      // tiles that are computed whole: the last ones, a multiple of `blocks`
  int streaming;  // blocks that share the others
  int blocks;

  constexpr int tiles() const { return tile_rows * tile_columns; }
  constexpr int streamed() const { return tiles() - whole; }
  // Where the streamed share of a block begins, in slices. Shares go by rank: the blocks count
  // down, so that who waits for the next rank waits for a block that was started before it.
  constexpr int share(int rank) const {
    return static_cast<int>(std::int64_t{streamed()} * slices * rank / streaming);
  }
  constexpr int rank(int block) const { return streaming - 1 - block; }
};

// How many pieces of tiles do not begin with the first slice.
inline int continued_pieces(const TileSchedule& schedule) {
  int count = 0;
  for (int rank = 1; schedule.streamed() > 0 && rank < schedule.streaming; ++rank)
    if (schedule.share(rank) % schedule.slices != 0) ++count;
  return count;
}

// Some slices of a tile.
struct TilePiece {
  int tile, first, end;
};

// The pieces of a block, one after another: its share of the streamed tiles, then whole ones.
class TileWalk {
 public:
  constexpr TileWalk(const TileSchedule& schedule, int block)
      : slice_(0), end_(0), tile_(schedule.streamed() + block) {
    if (schedule.rank(block) < 0) return;
    slice_ = schedule.share(schedule.rank(block));
    end_ = schedule.share(schedule.rank(block) + 1);
  }
  // Slices that are left.
  constexpr int left(const TileSchedule& schedule) const {
    const int tiles = schedule.tiles();
    const int whole = tile_ < tiles ? (tiles - tile_ + schedule.blocks - 1) / schedule.blocks : 0;
    return end_ - slice_ + whole * schedule.slices;
  }
  constexpr bool next(const TileSchedule& schedule, TilePiece& piece) {
    if (slice_ < end_) {
      piece.tile = slice_ / schedule.slices;
      piece.first = slice_ - piece.tile * schedule.slices;
      const int ahead = end_ - slice_;
      piece.end = ahead < schedule.slices - piece.first ? piece.first + ahead : schedule.slices;
      slice_ += piece.end - piece.first;
      return true;
    }
    if (tile_ >= schedule.tiles()) return false;
    piece = {tile_, 0, schedule.slices};
    tile_ += schedule.blocks;
    return true;
  }

 private:
  int slice_, end_, tile_;
};

// What a block's work costs, in seconds; what it was measured with stands in NOTES.md.
struct TileCost {
  double slice;     // one slice of a tile
  double finish;    // storing a tile, or what a block summed up of one, and beginning another
  double exchange;  // waiting for another block's sums of a tile and adding them
  // Of a slice of a tile that is cut, if that is more: its blocks are at different places of k, so
  // that none finds in the cache what another has read.
  double streamed_slice = 0;
};

inline double seconds(const TileSchedule& schedule, const TileCost& cost) {
  const double waves = 1.0 * schedule.whole / schedule.blocks;
  const double whole = waves * (schedule.slices * cost.slice + cost.finish);
  if (schedule.streamed() == 0) return whole;
  const double share = std::ceil(1.0 * schedule.streamed() * schedule.slices / schedule.streaming);
  const double tiles = share / schedule.slices;
  // Where every tile has its own blocks, or every block its own tiles, nothing is begun twice.
  const bool even = schedule.streaming % schedule.streamed() == 0 ||
                    schedule.streamed() % schedule.streaming == 0;
  const double pieces = std::ceil(tiles) + (even ? 0 : 1);
  const double others = even ? std::max(1.0, std::ceil(1 / tiles)) - 1 : std::ceil(1 / tiles);
  const bool uncut = schedule.streaming == schedule.streamed();
  const double slice = uncut ? cost.slice : std::max(cost.slice, cost.streamed_slice);
  return whole + share * slice + pieces * cost.finish + others * cost.exchange;
}

// Whether 32 bits count the elements of a row or a column, the slices of all tiles, and twice the
// tiles, since a walk adds a grid to a tile.
inline bool counts_fit(const Problem& p, int rows, int columns, int depth) {
  constexpr int kMost = std::numeric_limits<int>::max();
  const auto pieces = [](std::int64_t whole, int piece) { return (whole + piece - 1) / piece; };
  const double tiles = 1.0 * pieces(p.m, rows) * pieces(p.n, columns);
  return std::max({p.m, p.n, p.k}) <= kMost && tiles <= kMost / 2 &&
         tiles * pieces(p.k, depth) <= kMost;
}
inline constexpr char kCountsDoNotFit[] =
    "more rows, columns, or slices of tiles than 32 bits count";

// A block for each tile. Throws std::length_error if !counts_fit.
inline TileSchedule whole_tiles(const Problem& p, int rows, int columns, int depth) {
  const auto pieces = [](std::int64_t whole, int piece) { return (whole + piece - 1) / piece; };
  if (!counts_fit(p, rows, columns, depth)) throw std::length_error(kCountsDoNotFit);
  const auto narrow = [](std::int64_t count) { return static_cast<int>(count); };
  TileSchedule schedule{
      narrow(pieces(p.m, rows)), narrow(pieces(p.n, columns)), narrow(pieces(p.k, depth)), 0, 1, 1};
  schedule.whole = schedule.blocks = schedule.tiles();
  return schedule;
}

// The fastest schedule by that model, on a device that holds so many blocks at once. So many full
// waves may be streamed along with what is left over. Throws as whole_tiles does.
inline TileSchedule tile_schedule(const Problem& p, int rows, int columns, int depth, int blocks,
                                  const TileCost& cost, int streamed_waves = 2) {
  TileSchedule schedule = whole_tiles(p, rows, columns, depth);
  schedule.blocks = blocks;
  const int tiles = schedule.tiles(), waves = tiles / blocks;
  if (waves * blocks == tiles) return schedule;  // nothing is faster, and rounding must not decide
  TileSchedule best = schedule;
  double least = std::numeric_limits<double>::infinity();
  const auto consider = [&](int whole, int streaming) {
    schedule.whole = whole;
    schedule.streaming = streaming;
    const double time = seconds(schedule, cost);
    if (!(time < least)) return;
    least = time;
    best = schedule;
  };
  for (int wave = std::max(0, waves - streamed_waves); wave <= waves; ++wave) {
    const int whole = wave * blocks, streamed = tiles - whole;
    consider(whole, std::min<int>(blocks, std::min<std::int64_t>(
                                              blocks, std::int64_t{streamed} * schedule.slices)));
    for (int cuts = 1; streamed * cuts <= blocks && cuts <= schedule.slices; ++cuts)
      consider(whole, streamed * cuts);
  }
  return best;
}

}  // namespace gemm::simt
