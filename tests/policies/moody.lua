-- SPDX-License-Identifier: Apache-2.0
--
-- Layouts and caps by chance and by what it has been told, asked at every step: whatever is wrong
-- in who is asked when, what is told or what a cap does to a jump shows as other bytes.

local told, admit = 0, 0

local function decide(view)
    local fitting = {}
    for i, layout in ipairs(view.layouts) do
        if layout.fits then fitting[#fitting + 1] = i end
    end
    if math.random(20) == 1 then admit = math.random(0, 4) end
    local sticks = view.layouts[view.current].fits and (told + view.n_waiting) % 7 > 0
    return sticks and view.current or fitting[math.random(#fitting)], 1, math.random(#view.layouts), admit
end

local function step_done(layout, n, elapsed_ps, now_ps)
    told = told + n
end

return { decide = decide, step_done = step_done }
