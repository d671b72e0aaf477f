// SPDX-License-Identifier: Apache-2.0
// The kinds of blocks that the script draws: one file and one line each.
import { command } from "./command.js";
import { distribution } from "./distribution.js";
import { flame } from "./flame.js";
import { series } from "./series.js";
import { sortable } from "./sortable.js";

export const renderers = { command, distribution, flame, series, sortable };
