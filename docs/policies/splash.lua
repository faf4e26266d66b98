-- SPDX-License-Identifier: Apache-2.0
--
-- splash: the built-in policy of that name, with the same results to the byte: the fastest feasible
-- layout once it leads the current one by a margin. Options: margin, return_margin, dwell_ms,
-- persist, charge.

local PPM, FOREVER = 1000000, math.huge
local margin_ppm, return_ppm, dwell_ps, persist, charge
local came_from, leader, lead_steps = nil, nil, 0

local function ppm(frac)
    return math.floor(frac * PPM + 0.5)
end

local function init(setup)
    local options = setup.options
    margin_ppm = ppm(tonumber(options.margin) or 0.05)
    return_ppm = ppm(tonumber(options.return_margin) or 0)
    dwell_ps = math.floor((tonumber(options.dwell_ms) or 0) * 1e9 + 0.5)
    persist = tonumber(options.persist) or 1
    charge = options.charge == "1"
end

local function fastest_that_fits(layouts)
    local best
    for i, layout in ipairs(layouts) do
        if layout.fits and (not best or layout.a_ps < layouts[best].a_ps) then
            best = i
        end
    end
    return best
end

-- The best leader that fits, the best of all, and the steps for which both stay so.
local function find_leads(view)
    local layouts, current = view.layouts, view.current
    if not layouts[current].fits then
        local best = fastest_that_fits(layouts)
        return best, best, 1
    end
    local leaders, hold = nil, FOREVER
    for i, layout in ipairs(layouts) do
        if i ~= current and not layout.never then
            local margin = margin_ppm + (i == came_from and return_ppm or 0)
            local leads, span = view:leads(current, i, margin)
            if span < hold then hold = span end
            if leads then
                leaders = leaders or {}
                leaders[#leaders + 1] = i
            end
        end
    end
    if not leaders then
        return current, current, hold
    end
    local pick, wanted
    for k, i in ipairs(leaders) do
        local a_ps = layouts[i].a_ps
        if not wanted or a_ps < layouts[wanted].a_ps then wanted = i end
        if layouts[i].fits and (not pick or a_ps < layouts[pick].a_ps) then pick = i end
        for j = 1, k - 1 do
            local _, before = view:leads(i, leaders[j])
            local _, behind = view:leads(leaders[j], i)
            hold = math.min(hold, before, behind)
        end
    end
    return pick or current, wanted, hold
end

local function repays(view, to)
    local lead_ps = view.layouts[view.current].a_ps - view.layouts[to].a_ps
    return lead_ps * view.steps_left > view:switch_cost_ps(to)
end

local function is_ripe(view, to)
    return lead_steps >= persist
        and (view.since_switch_ps < 0 or view.since_switch_ps >= dwell_ps)
        and (not charge or repays(view, to))
end

local function decide(view)
    local current = view.current
    local pick, wanted, hold = find_leads(view)
    if pick == current then
        leader = nil
        return current, hold, wanted
    end
    lead_steps = pick == leader and lead_steps + 1 or 1
    leader = pick
    local go = not view.layouts[current].fits or is_ripe(view, pick)
    return go and pick or current, 1, wanted
end

local function switched(from)
    came_from = from
    leader = nil
end

return { init = init, decide = decide, switched = switched }
