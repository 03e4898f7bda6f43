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

// The cost of a block's work in seconds, as measured on an H100 and an H200 (NOTES.md).
struct TileCost {
  double k_tile;              // one K tile
  double finish;              // storing a tile or a partial sum, and starting the next tile
  double exchange;            // waiting for another block's partial sums and adding them
  double further = exchange;  // the same for each further block's
  double one_wave = 1;        // share of k_tile that is left where no whole wave is computed
  double alone = 1;           // the same where no other block loads, of a single wave
  // One K tile of a tile that is cut, if that costs more: blocks at different positions along k do
  // not share what they read in the L2. Where all tiles are cut at the same positions, those at one
  // position share it: the cost of each position.
  double streamed_k_tile = 0, position_k_tile = 0;
  // The least time of a K tile if all blocks load: the L2's for all of them, and for one block that
  // of its share of DRAM or of its SM. Whole tiles are also loaded during stores.
  double loaded_k_tile = 0, own_k_tile = 0;
  // The least time of a wave of whole tiles: that of storing them at the rate of DRAM. Stores
  // overlap the products of the next wave, but nothing follows those of the last tiles.
  double stored_wave = 0;
  // What a block's last tile takes beyond `finish`: products of other tiles hide this part, but
  // nothing follows the last one.
  double last = 0;

  // TMA reads so much less from the L2 where blocks do not read the same lines at the same time.
  static constexpr double kUnshared = 2;

  // In seconds of a device with another SM clock.
  TileCost on(const Device& device) const {
    TileCost scaled = *this;
    for (double* cost :
         {&scaled.k_tile, &scaled.finish, &scaled.exchange, &scaled.further, &scaled.last})
      *cost *= device.clock_ratio();
    return scaled;
  }
};

// What a block, or a cluster, reads of each K tile.
struct TileReads {
  int rows, columns;    // of A, of B
  double k_tile_bytes;  // of one row of A, or column of B
  int group;            // rows of tiles that are computed together
  double blocks;        // or clusters, that run at once
};
// Sets the costs of reading streamed tiles from DRAM, at so many bytes per second. If the rows of A
// and columns of B of all tiles that are computed at once exceed half of the L2, each block reads
// its K tiles from DRAM, except those of a matrix that fits half of the L2 and what blocks at the
// same position along k share.
inline void add_reads_of_streamed_tiles(TileCost& cost, const Problem& p, const Device& device,
                                        const TileReads& tile, double dram) {
  const auto m = static_cast<double>(p.m), n = static_cast<double>(p.n),
             depth = traits_of(p.precision).input_bytes * static_cast<double>(p.k),
             half_cache = static_cast<double>(device.last_level_cache_bytes) / 2;
  const double columns = std::min(n, tile.blocks / tile.group * tile.columns),
               rows = std::min(m, tile.blocks / std::ceil(columns / tile.columns) * tile.rows);
  if ((rows + columns) * depth <= half_cache) return;
  const bool a = m * depth > half_cache, b = n * depth > half_cache;
  const double per_line = tile.k_tile_bytes / dram;
  cost.streamed_k_tile = tile.blocks * per_line * ((a ? tile.rows : 0) + (b ? tile.columns : 0));
  cost.position_k_tile = per_line * ((a ? rows : 0) + (b ? columns : 0));
}

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
  double exchanges(const TileCost& cost) const {
    return others > 0 ? cost.exchange + (others - 1) * cost.further : 0;
  }
};

// The time where two limits apply, (a^4 + b^4)^(1/4): near the larger, but 19 % more if they are
// equal.
inline double limited_by(double one, double other) {
  const auto square = [](double value) { return value * value; };
  return std::sqrt(std::sqrt(square(square(one)) + square(square(other))));
}

inline double seconds(const TileSchedule& schedule, const TileCost& cost) {
  const double waves = 1.0 * schedule.whole / schedule.blocks;
  const double whole =
      waves * std::max({schedule.k_tiles * cost.k_tile + cost.finish, cost.stored_wave,
                        schedule.k_tiles * std::max(cost.loaded_k_tile, cost.own_k_tile)});
  const double of_wave = std::min(1.0, 1.0 * schedule.tiles() / schedule.blocks);
  const double last = std::max(cost.last, of_wave * cost.stored_wave - cost.finish);
  if (schedule.streamed() == 0) return whole + last;
  const TileShare share(schedule);
  const auto [k_tiles, even, pieces, others] = share;
  const double unshared =
      !even        ? std::max(cost.streamed_k_tile, TileCost::kUnshared * cost.loaded_k_tile)
      : others > 0 ? std::min(cost.streamed_k_tile, (others + 1) * cost.position_k_tile)
                   : 0;
  const double busy = schedule.whole > 0 ? 1 : 1.0 * schedule.streaming / schedule.blocks;
  const double left =
      (schedule.whole > 0 ? 1 : cost.one_wave) * (cost.alone + (1 - cost.alone) * busy);
  const double k_tile = std::max({left * cost.k_tile, cost.own_k_tile, unshared});
  const double computed = k_tiles * k_tile + pieces * cost.finish;
  return whole + std::max(computed, k_tiles * busy * cost.loaded_k_tile) + share.exchanges(cost) +
         last;
}

// What follows the last loads where all blocks end at once, with one wave of whole tiles or with
// streamed tiles alone: a store, and the exchange of partial sums. Else 0: others load meanwhile.
inline double tail_seconds(const TileSchedule& schedule, const TileCost& cost) {
  if (schedule.whole > (schedule.streamed() == 0 ? schedule.blocks : 0)) return 0;
  return cost.finish + cost.last +
         (schedule.streamed() > 0 ? TileShare(schedule).exchanges(cost) : 0);
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

// The fastest schedule by this model on a device that runs `blocks` blocks at once. Up to
// `streamed_waves` full waves may be streamed along with the remainder. Throws as whole_tiles does.
inline TileSchedule tile_schedule(const Problem& p, int rows, int columns, int depth, int blocks,
                                  const TileCost& cost, int streamed_waves = 2) {
  TileSchedule schedule = whole_tiles(p, rows, columns, depth);
  schedule.blocks = blocks;
  const int tiles = schedule.tiles(), waves = tiles / blocks;
  if (waves * blocks == tiles) return schedule;  // already optimal; do not let rounding decide
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
                                              blocks, std::int64_t{streamed} * schedule.k_tiles)));
    for (int cuts = 1; streamed * cuts <= blocks && cuts <= schedule.k_tiles; ++cuts)
      consider(whole, streamed * cuts);
  }
  return best;
}

}  // namespace gemm::simt
