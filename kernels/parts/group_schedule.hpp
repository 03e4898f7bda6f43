// The tiles of all groups, shared out to persistent blocks on the host, which knows the groups.
//
// Tiles have up to 256 rows in parts of 64, so that a group's last one has no more parts than it
// needs. Each block takes the next tile when it is done with those before, until all have about the
// same work; the tiles that are left fill up what each block has less than its share, cut along k
// where it ends (McNaughton, 1959). The block with the first K tile of a tile adds the sums of the
// others.
//
// Blocks wait only for blocks with lower indices, and these store their sums before they wait, so
// that there is no deadlock even if not all are resident, as long as blocks start in order.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <queue>
#include <utility>
#include <vector>

#include "kernels/tokens.hpp"

namespace gemm {

// A tile of C, or its sums from one K tile to another.
struct GroupPiece {
  static constexpr int kStored = -1;

  std::int32_t group, column;       // the first column
  std::int32_t row;                 // among those of all C, the first one of the tile
  std::int32_t first_row, end_row;  // of the group
  std::int16_t parts;               // of 64 rows, the last one may end behind the group
  std::int16_t others;              // pieces whose sums it adds; kStored: it stores its own
  std::int32_t slot;                // where its sums are stored, or the first of the others'
  std::int32_t first, end;          // K tiles
};

struct GroupSchedule {
  std::vector<GroupPiece> pieces;    // those of each block, one after another
  std::vector<std::int32_t> starts;  // of each block, and at last the number of all
  std::int32_t slots = 0;
};

// With tiles of so many columns and K tiles of so many steps.
class GroupScheduler {
 public:
  GroupScheduler(const Products& p, int blocks, int columns, int depth) : blocks_(blocks) {
    std::vector<std::int32_t> order(p.batch);
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, std::greater(), [&](int which) { return p.rows(which); });
    for (const std::int32_t which : order)
      add_tiles(p, which, columns, static_cast<int>(ceil_div(p.k, depth)));
  }

  GroupSchedule schedule() const {
    double work = 0;
    for (const GroupPiece& tile : tiles_) work += cost(tile);
    for (double share = work / blocks_;; share *= 1.002)
      if (auto found = shared_out(share)) return *std::move(found);
  }

  // In K tiles of 64 rows. Loading B takes as long as half a part. Of two consumers with one part
  // more than the other the first one is waited for, half as long as a part takes.
  static double cost(const GroupPiece& piece) {
    return rate(piece) * (piece.end - piece.first + kOfPiece);
  }

 private:
  static constexpr int kPartRows = 64, kMostParts = 4;
  static constexpr int kBand = 16;    // rows of tiles whose columns come one after another
  static constexpr int kOfPiece = 2;  // K tiles that take as long as storing a part
  static constexpr int kLeast = 4;    // K tiles of a piece of a tile

  static double rate(const GroupPiece& piece) {
    return piece.parts + 0.5 * (piece.parts % 2) + 0.5;
  }

  void add_tiles(const Products& p, std::int32_t which, int columns, int k_tiles) {
    const auto first_row = static_cast<std::int32_t>(p.first_row(which)),
               end_row = static_cast<std::int32_t>(p.first_row(which + 1));
    std::vector<std::pair<std::int32_t, std::int16_t>> rows;  // the first one, and parts
    for (std::int64_t row = first_row, left = 0; row < end_row; row += kPartRows * left) {
      const std::int64_t parts = ceil_div(end_row - row, kPartRows);
      left = parts == kMostParts + 1 ? kMostParts - 1 : std::min<std::int64_t>(parts, kMostParts);
      rows.emplace_back(static_cast<std::int32_t>(row), static_cast<std::int16_t>(left));
    }
    for (std::size_t band = 0; band < rows.size(); band += kBand)
      for (std::int64_t column = 0; column < p.n; column += columns)
        for (std::size_t i = band; i < std::min(band + kBand, rows.size()); ++i)
          tiles_.push_back({.group = which,
                            .column = static_cast<std::int32_t>(column),
                            .row = rows[i].first,
                            .first_row = first_row,
                            .end_row = end_row,
                            .parts = rows[i].second,
                            .others = 0,
                            .slot = 0,
                            .first = 0,
                            .end = k_tiles});
  }

  // Nothing if a share of so much work is too small.
  std::optional<GroupSchedule> shared_out(double share) const {
    std::vector<std::vector<GroupPiece>> of(blocks_);
    std::vector<double> load(blocks_);
    std::size_t next = 0;
    using Block = std::pair<double, int>;
    std::priority_queue<Block, std::vector<Block>, std::greater<>> least;
    for (int block = 0; block < blocks_; ++block) least.emplace(0.0, block);
    for (; next < tiles_.size(); ++next) {
      const auto [before, block] = least.top();
      if (before + cost(tiles_[next]) > share) break;
      least.pop();
      of[block].push_back(tiles_[next]);
      load[block] = before + cost(tiles_[next]);
      least.emplace(load[block], block);
    }

    GroupSchedule found;
    int first = 0,
        adds = 0;  // the K tile from which the next tile is left; the block that began it
    for (int block = blocks_ - 1; block >= 0; --block)
      for (bool whole = true; whole && next < tiles_.size();) {
        GroupPiece piece = tiles_[next];
        const int left = piece.end - first;
        int taken = static_cast<int>((share - load[block]) / rate(piece)) - kOfPiece;
        taken = taken < left ? std::min(taken, left - kLeast) : left;
        if (taken < std::min(left, kLeast)) break;
        whole = taken == left;
        piece.first = first;
        piece.end = first + taken;
        load[block] += cost(piece);
        if (first > 0) {
          piece.slot = found.slots++;
          piece.others = GroupPiece::kStored;
          ++of[adds].back().others;
          of[block].insert(of[block].begin(), piece);  // before the block waits for any
        } else {
          piece.slot = found.slots;
          of[block].push_back(piece);
          adds = block;
        }
        first = whole ? 0 : piece.end;
        next += whole ? 1 : 0;
      }
    if (next < tiles_.size()) return std::nullopt;
    for (const auto& pieces : of) {
      found.starts.push_back(static_cast<std::int32_t>(found.pieces.size()));
      found.pieces.insert(found.pieces.end(), pieces.begin(), pieces.end());
    }
    found.starts.push_back(static_cast<std::int32_t>(found.pieces.size()));
    return found;
  }

  int blocks_;
  std::vector<GroupPiece> tiles_;
};

}  // namespace gemm
