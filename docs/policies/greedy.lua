-- SPDX-License-Identifier: Apache-2.0
--
-- greedy: the fastest layout that fits, at every step, whatever the switch costs.

local function decide(view)
    local best
    for i, layout in ipairs(view.layouts) do
        if layout.fits and (not best or layout.a_ps < view.layouts[best].a_ps) then
            best = i
        end
    end
    return best
end

return { decide = decide }
