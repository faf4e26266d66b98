/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists of boxes (kernels/boxes.h) as DOP and moves of KV have them, and lists on the device.
 */
#ifndef TESTS_GPU_BOX_LISTS_CUH
#define TESTS_GPU_BOX_LISTS_CUH

#include "kernels/boxes.h"
#include "kernels/kv_pages.h"
#include "tests/gpu/guarded.cuh"

#include <algorithm>

typedef std::vector<struct boxes_box> box_list;

enum { PACK_BLOCKS = 264 /* as in replay */ };

/* At an owner of so many rows: from [ranks][rows][run] to [rows][ranks][run]. */
static inline box_list interleaving(int ranks, int64_t rows, int64_t run_bytes)
{
    box_list list;
    for (int r = 0; r < ranks; r++)
        list.push_back({0, 1, rows, run_bytes, r * rows * run_bytes, 0, run_bytes, r * run_bytes, 0,
                        ranks * run_bytes});
    return list;
}

/* The way back. */
static inline box_list turned(box_list list)
{
    for (struct boxes_box &b : list) {
        std::swap(b.from, b.to);
        std::swap(b.from_block, b.to_block);
        std::swap(b.from_row, b.to_row);
    }
    return list;
}

/* One request, and what a shard holds of it: in bytes, where its extents begin and how long a row
 * is. The shard's rows are as long as the owner's, or part of them (KV heads). */
struct kv_extents {
    int64_t tokens;
    int shard, shards;
    int64_t owner_at, owner_row, shard_at, shard_row;
};

/* From the owner's pages to the shard's: whole blocks of positions, then what is left. */
static inline void add_kv(box_list *list, const struct kv_extents &e)
{
    const int64_t from_block = KV_BLOCK_TOKENS * e.owner_row;
    const int64_t to_block = KV_BLOCK_TOKENS * e.shard_row;
    const int64_t whole = e.tokens / KV_BLOCK_TOKENS, rest = e.tokens % KV_BLOCK_TOKENS;
    const int64_t held = e.shard < whole ? (whole - e.shard - 1) / e.shards + 1 : 0;
    list->push_back({0, held, KV_BLOCK_TOKENS, e.shard_row, e.owner_at + e.shard * from_block,
                     e.shards * from_block, e.owner_row, e.shard_at, to_block, e.shard_row});
    if (whole % e.shards == e.shard)
        list->push_back({0, 1, rest, e.shard_row, e.owner_at + whole * from_block, 0, e.owner_row,
                         e.shard_at + held * to_block, 0, e.shard_row});
}

class device_list
{
  public:
    explicit device_list(const box_list &boxes)
    {
        must(boxes_list_make(&list, boxes.data(), (int)boxes.size(), 0), "boxes_list_make");
    }
    device_list(const device_list &) = delete;
    device_list &operator=(const device_list &) = delete;
    ~device_list()
    {
        boxes_list_free(&list);
    }
    /* `to` by target. */
    cudaError_t copy(const void *from, const std::vector<void *> &to, int blocks) const
    {
        struct boxes_copy p = {list, from, {}};
        std::copy(to.begin(), to.end(), p.to);
        return boxes_copy(&p, blocks, 0);
    }

  private:
    struct boxes_list list = {};
};

#endif
