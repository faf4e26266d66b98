-- SPDX-License-Identifier: Apache-2.0
--
-- queue: while requests wait, the layout that computes most rows a second; else the fastest step.
-- It admits at most admit (no limit) requests.

local admit = 0

local function init(setup)
    admit = tonumber(setup.options.admit) or 0
end

-- Picoseconds that a layout takes for what we would have more of.
local function price(view, layout)
    return view.n_waiting > 0 and layout.step_ps / layout.rows or layout.a_ps
end

local function decide(view)
    local best
    for i, layout in ipairs(view.layouts) do
        if layout.fits and (not best or price(view, layout) < price(view, view.layouts[best])) then
            best = i
        end
    end
    return best, 1, nil, admit
end

return { init = init, decide = decide }
