-- SPDX-License-Identifier: Apache-2.0
-- One order, built once and posted again and again.
local lines = {}
for i = 1, 20 do
  lines[i] = string.format('{"article":"article-%03d","pieces":%d,"price":%d.5,"tags":["a","b%d"]}', i, i % 5 + 1, i * 3, i)
end
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.body = '{"customer":"customer-17","lines":[' .. table.concat(lines, ",") .. "]}"
