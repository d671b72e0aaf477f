# SPDX-License-Identifier: Apache-2.0
# Twenty birds as JSON.
require 'json'

run(lambda do |_environment|
  body = JSON.generate((1..20).map { |id| { id: id, name: "bird #{id}", wings: 2 } })
  [200, { 'content-type' => 'application/json', 'content-length' => body.bytesize.to_s }, [body]]
end)
