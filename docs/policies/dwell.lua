-- SPDX-License-Identifier: Apache-2.0
--
-- dwell: the fastest layout that fits, but at least dwell_ms (50) in one before the next switch.

local dwell_ps = 50e9

local function init(setup)
    dwell_ps = (tonumber(setup.options.dwell_ms) or 50) * 1e9
end

local function decide(view)
    local best = view.current
    local stays = view.since_switch_ps >= 0 and view.since_switch_ps < dwell_ps
    if view.layouts[best].fits and stays then
        return best
    end
    for i, layout in ipairs(view.layouts) do
        if layout.fits and (not view.layouts[best].fits or view:leads(best, i)) then
            best = i
        end
    end
    return best
end

return { init = init, decide = decide }
