-- SPDX-License-Identifier: Apache-2.0
return { decide = function(view) return view.current end }
