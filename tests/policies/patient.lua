-- SPDX-License-Identifier: Apache-2.0
--
-- The first layout that fits, with a cap on requests that depends on the queue: the answer holds
-- until something other than growing contexts happens, so that jumps are long.

local function decide(view)
    local layout = view.current
    if not view.layouts[layout].fits then
        layout = 1
        while not view.layouts[layout].fits do layout = layout + 1 end
    end
    return layout, math.huge, nil, view.n_waiting % 3 + (view.n_prefilling > 0 and 2 or 1)
end

return { decide = decide }
